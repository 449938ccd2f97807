/* Environment variables that the library reads, by the table settings.def. Called wherever a
 * setting counts; `pypto doctor` prints the table.
 *
 * The text belongs to the environment: like getenv's, it is good until the variable is changed, so
 * use it at once. */
#include "base/settings.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct setting_info {
    const char *name;
    const char *fallback;
    const char *help;
} setting_info;

static const setting_info settings[SETTING_COUNT] = {
#define SETTING(id, name, fallback, help) [SETTING_##id] = {name, fallback, help},
#include "base/settings.def"
#undef SETTING
};

const char *setting_name(setting s)
{
    return settings[s].name;
}

const char *setting_help(setting s)
{
    return settings[s].help;
}

const char *setting_text(setting s)
{
    const char *value = getenv(settings[s].name);
    return value != NULL && value[0] != '\0' ? value : settings[s].fallback;
}

/* The whole text as a decimal number. */
static bool parse_number(const char *text, int64_t *number)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0)
        return false;
    *number = value;
    return true;
}

int64_t setting_int(setting s)
{
    int64_t number = 0;
    if (!parse_number(setting_text(s), &number))
        parse_number(settings[s].fallback, &number);
    return number;
}
