/* Environment variables: one table (settings.def) of name, default and help. Read once per use, so
 * that a test can set one; never cached across calls that the user can see. */
#ifndef BASE_SETTINGS_H
#define BASE_SETTINGS_H

#include <stdint.h>

/* Exported from libpypto, without promise, for python/module and the command line program. */
#pragma GCC visibility push(default)

typedef enum setting {
#define SETTING(id, name, fallback, help) SETTING_##id,
#include "base/settings.def"
#undef SETTING
    SETTING_COUNT
} setting;

const char *setting_name(setting s);
const char *setting_help(setting s);
/* The variable's text, or its default when it is unset or empty ("": no default). Never NULL. */
const char *setting_text(setting s);
/* As a decimal number; the default when it is no number, and 0 when that is none either. */
int64_t setting_int(setting s);

#pragma GCC visibility pop

#endif
