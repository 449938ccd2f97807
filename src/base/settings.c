/* Environment variables that the library reads, by the table settings.def, which also says what each may be: all
 * values are understood here, wherever they count. `pypto doctor` prints the table.
 *
 * The text belongs to the environment: like getenv's, it is good until the variable is changed, so
 * use it at once. */
#include "base/settings.h"

#include "base/diag.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct setting_info {
    const char *name;
    const char *valid;
    bool bad_is_error;
    const char *fallback;
    const char *help;
} setting_info;

enum { WARNING, ERROR };

#define BLANKS " \t\n"

static const setting_info settings[SETTING_COUNT] = {
#define SETTING(id, name, valid, bad, fallback, help) \
    [SETTING_##id] = {name, valid, bad, fallback, help},
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

const char *setting_valid(setting s)
{
    return settings[s].valid;
}

bool setting_bad_is_error(setting s)
{
    return settings[s].bad_is_error;
}

/* ---- what is valid ---- */

/* One of the alternatives: a word, or with `word` NULL a range. */
typedef struct alternative {
    const char *word;
    int64_t length;
    int64_t low, high; /* of a word: its number, twice */
} alternative;

/* The next one of a text that begins with its place; false: there is none. */
static bool next_alternative(const char **from, int64_t place, alternative *found)
{
    const char *at = *from;
    const size_t length = strcspn(at, "|,");
    if (length == 0)
        return false;
    *from = at + length + (at[length] != '\0');
    *found = (alternative){at, (int64_t)length, place, place};
    const char *dots = strstr(at, "..");
    const char *sign = memchr(at, '=', length);
    if (sign != NULL) {
        found->length = sign - at;
        found->low = found->high = strtoll(sign + 1, NULL, 10);
    } else if (dots != NULL && dots < at + length) {
        *found = (alternative){.low = strtoll(at, NULL, 10), .high = strtoll(dots + 2, NULL, 10)};
    }
    return true;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same_word(const char *a, const char *b, size_t length)
{
    while (length > 0 && lower(a[length - 1]) == lower(b[length - 1]))
        --length;
    return length == 0;
}

static bool is_list(const char *valid)
{
    return strchr(valid, ',') != NULL;
}

/* All of `length` bytes as a decimal number. */
static bool parse_number(const char *value, size_t length, int64_t *number)
{
    char *end;
    const size_t digits = strspn(value + (*value == '-'), "0123456789");
    if (digits == 0 || digits + (*value == '-') != length)
        return false;
    errno = 0;
    *number = strtoll(value, &end, 10);
    return errno == 0;
}

/* What `length` bytes of a value stand for. */
static bool parse_one(const char *valid, const char *value, size_t length, int64_t *number)
{
    alternative a;
    int64_t given = 0;
    const bool is_number = parse_number(value, length, &given);
    for (int64_t place = 0; next_alternative(&valid, place, &a); ++place) {
        *number = a.low;
        if (a.word != NULL && (size_t)a.length == length && same_word(a.word, value, length))
            return true;
        if (a.word != NULL || !is_number || given < a.low || given > a.high)
            continue;
        *number = given;
        return true;
    }
    return false;
}

/* A part of a value: up to the next comma if it is a list. Without blanks around it. False: there is none. */
static bool next_part(const char **value, bool list, const char **part, size_t *length)
{
    if (*value == NULL)
        return false;
    *part = *value + strspn(*value, BLANKS);
    *length = strcspn(*part, list ? "," : "");
    *value = (*part)[*length] == '\0' ? NULL : *part + *length + 1;
    while (*length > 0 && strchr(BLANKS, (*part)[*length - 1]) != NULL)
        --*length;
    return true;
}

/* The number that a value stands for; of a list the last one. */
static bool parse(const char *valid, const char *value, int64_t *number)
{
    const char *part;
    size_t length;
    *number = 0;
    if (valid[0] == '\0' || value[0] == '\0')
        return true;
    while (next_part(&value, is_list(valid), &part, &length))
        if (!parse_one(valid, part, length, number))
            return false;
    return true;
}

/* "shm or threads" */
static void describe(text *out, const char *valid)
{
    alternative a;
    bool more = next_alternative(&valid, 0, &a);
    for (int64_t place = 1; more; ++place) {
        const alternative now = a;
        more = next_alternative(&valid, place, &a);
        if (place > 1)
            text_add(out, more ? ", " : " or ");
        if (now.word != NULL)
            text_printf(out, "%.*s", (int)now.length, now.word);
        else
            text_printf(out, "a number from %lld to %lld", (long long)now.low, (long long)now.high);
    }
}

/* ---- values ---- */

static const char *value_of(setting s)
{
    const char *value = getenv(settings[s].name);
    return value != NULL ? value : "";
}

bool setting_is_set(setting s)
{
    return value_of(s)[0] != '\0';
}

const char *setting_text(setting s)
{
    const char *value = value_of(s);
    return value[0] != '\0' ? value : settings[s].fallback;
}

int64_t setting_int(setting s)
{
    int64_t number;
    if (!parse(settings[s].valid, setting_text(s), &number))
        (void)parse(settings[s].valid, settings[s].fallback, &number);
    return number;
}

bool setting_lists(setting s, const char *word)
{
    const char *value = setting_text(s), *part;
    size_t length;
    while (next_part(&value, true, &part, &length))
        if (strlen(word) == length && same_word(part, word, length))
            return true;
    return false;
}

static void check(pypto_status *status, setting s)
{
    const setting_info *info = &settings[s];
    int64_t number;
    if (parse(info->valid, value_of(s), &number))
        return;
    text allowed = {0};
    describe(&allowed, info->valid);
    if (is_list(info->valid))
        text_add(&allowed, ", or several of them with commas between them");
    diag_add(status, DIAG_BAD_SETTING, SPAN_NONE, "correct it, or unset it for the default",
             "%s must be %s, not '%s'", info->name, allowed.failed ? "valid" : allowed.bytes,
             value_of(s));
    text_free(&allowed);
}

pypto_status setting_check(setting s)
{
    pypto_status status = STATUS_OK;
    check(&status, s);
    return status;
}

pypto_status settings_check(void)
{
    pypto_status status = STATUS_OK;
    for (int i = 0; i < SETTING_COUNT; ++i)
        if (settings[i].bad_is_error)
            check(&status, (setting)i);
    return status;
}
