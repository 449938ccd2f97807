/* Environment variables: one table (settings.def) of name, default and help. Read once per use, so
 * that a test can set one; never cached across calls that the user can see. */
#ifndef BASE_SETTINGS_H
#define BASE_SETTINGS_H

#include "base/export.h"

#include <stdint.h>

typedef enum setting {
#define SETTING(id, name, fallback, help) SETTING_##id,
#include "base/settings.def"
#undef SETTING
    SETTING_COUNT
} setting;

const char *setting_name(setting s) EXPORTED(setting_name);
const char *setting_help(setting s) EXPORTED(setting_help);
/* The variable's text, or its default when it is unset or empty ("": no default). Never NULL. */
const char *setting_text(setting s) EXPORTED(setting_text);
/* As a decimal number; the default when it is no number, and 0 when that is none either. */
int64_t setting_int(setting s);

#endif
