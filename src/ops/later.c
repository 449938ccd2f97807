/* Which dotted names belong to the language but not to this version: the table later.def, searched.
 *
 * Asked only about names that no other table knows, so a linear search is fast enough. */
#include "ops/ops.h"

#include <string.h>

typedef struct later_row {
    const char *namespaces;
    const char *names;
    const char *hint;
} later_row;

static const later_row rows[] = {
#define LATER(namespaces, names, hint) {namespaces, names, hint},
#include "ops/later.def"
#undef LATER
};

#define ROWS ((int32_t)(sizeof rows / sizeof rows[0]))

/* Whether the word, of that length, is one of the words of the list. */
static bool has_word(const char *list, const char *word, size_t length)
{
    while (*list != '\0') {
        size_t next = strcspn(list, " ");
        if (next == length && strncmp(list, word, length) == 0)
            return true;
        list += next;
        list += strspn(list, " ");
    }
    return false;
}

/* "pl.MemorySpace": a name that leads to members. */
static bool is_enumeration(const char *path)
{
    int32_t count;
    const enum_member *members = enum_members(&count);
    const char *dot = strchr(path, '.');
    for (int32_t i = 0; dot != NULL && i < count; i++) {
        if (strncmp(members[i].module, path, (size_t)(dot - path)) == 0 &&
            strcmp(members[i].enumeration, dot + 1) == 0)
            return true;
    }
    return false;
}

static const later_row *find_row(const char *path)
{
    const char *dot = strrchr(path, '.');
    if (dot == NULL || op_find(path) != NULL || is_language_word(path) || is_enumeration(path))
        return NULL;
    for (int32_t i = 0; i < ROWS; i++) {
        if (has_word(rows[i].namespaces, path, (size_t)(dot - path)) &&
            has_word(rows[i].names, dot + 1, strlen(dot + 1)))
            return &rows[i];
    }
    return NULL;
}

bool op_is_later(const char *path)
{
    return find_row(path) != NULL;
}

const char *op_later_hint(const char *path)
{
    const later_row *row = find_row(path);
    return row == NULL ? NULL : row->hint;
}
