/* Environment variables: one table (settings.def) of name, valid values, default and help. Read once per use, so
 * that a test can set one; never cached across calls that the user can see.
 *
 * Whoever begins something for a user (a compile, a set of workers, a call) asks settings_check() first. So what reads a
 * setting afterwards need not handle bad values: it gets the default. */
#ifndef BASE_SETTINGS_H
#define BASE_SETTINGS_H

#include "base/export.h"

#include <pypto/status.h>

#include <stdbool.h>
#include <stdint.h>

typedef enum setting {
#define SETTING(id, name, valid, bad, fallback, help) SETTING_##id,
#include "base/settings.def"
#undef SETTING
    SETTING_COUNT
} setting;

const char *setting_name(setting s) EXPORTED(setting_name);
const char *setting_help(setting s) EXPORTED(setting_help);
/* What it may be, as the table has it; "": anything. */
const char *setting_valid(setting s) EXPORTED(setting_valid);
/* Whether a bad value is an error; else a warning. */
bool setting_bad_is_error(setting s) EXPORTED(setting_bad_is_error);

bool setting_is_set(setting s) EXPORTED(setting_is_set);
/* The variable's text, or its default when it is unset or empty ("": no default). Never NULL. */
const char *setting_text(setting s) EXPORTED(setting_text);
/* The number that it stands for; that of the default when the value is bad, and 0 when there is none. */
int64_t setting_int(setting s) EXPORTED(setting_int);

/* Whether a setting that is a list has this word. */
bool setting_lists(setting s, const char *word);

/* An error if the value is bad: variable, value, and what is valid. */
PYPTO_NODISCARD pypto_status setting_check(setting s) EXPORTED(setting_check);
/* All bad values that are errors, in one status. */
PYPTO_NODISCARD pypto_status settings_check(void) EXPORTED(settings_check);

#endif
