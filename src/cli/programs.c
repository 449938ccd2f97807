/* `pypto cache`, `pypto ir`, `pypto c`: compiled programs on disk.
 *
 * Reads the layout that codegen/cache.c writes: <root>/object/<hash>/ with program.ir, whose first line
 * names the entry function. */
#include "cli/cli.h"

#include "base/os.h"
#include "base/vec.h"
#include "codegen/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct object {
    const char *hash;
    const char *directory;
    const char *name; /* of the entry function */
    int64_t bytes;
    int64_t modified_ns;
} object;

typedef VEC(object) object_list;

static int64_t bytes_below(arena *a, const char *path)
{
    os_facts facts;
    if (!os_file_facts(path, &facts))
        return 0;
    int64_t total = facts.bytes;
    os_names names = {0};
    if (facts.directory)
        names = os_list_dir(a, path);
    for (int64_t i = 0; i < names.count; i++)
        total += bytes_below(a, arena_printf(a, "%s/%s", path, names.items[i]));
    return total;
}

/* "program orchestrator\n..." -> "orchestrator" */
static const char *entry_name(arena *a, const char *directory)
{
    int64_t bytes = 0;
    char *ir = os_read_file(a, arena_printf(a, "%s/program.ir", directory), &bytes);
    static const char head[] = "program ";
    if (ir == NULL || strncmp(ir, head, sizeof head - 1) != 0)
        return NULL;
    char *name = ir + sizeof head - 1;
    name[strcspn(name, "\n")] = '\0';
    return name;
}

static int newest_first(const void *x, const void *y)
{
    const object *a = x;
    const object *b = y;
    if (a->modified_ns != b->modified_ns)
        return a->modified_ns < b->modified_ns ? 1 : -1;
    return strcmp(a->hash, b->hash);
}

static object_list objects_of(arena *a, const cache *c)
{
    object_list list = {0};
    const char *folder = arena_printf(a, "%s/object", c->root);
    os_names names = os_list_dir(a, folder);
    for (int64_t i = 0; i < names.count; i++) {
        const char *hash = names.items[i];
        object o = {.hash = hash, .directory = arena_printf(a, "%s/%s", folder, hash)};
        os_facts facts;
        o.name = entry_name(a, o.directory);
        if (o.name == NULL || !os_file_facts(arena_printf(a, "%s/program.so", o.directory), &facts))
            continue; /* a build under way, or the rest of one */
        o.modified_ns = facts.modified_ns;
        o.bytes = bytes_below(a, o.directory);
        vec_push(a, &list, o);
    }
    if (list.count > 0)
        qsort(list.items, (size_t)list.count, sizeof *list.items, newest_first);
    return list;
}

static bool open_cache(arena *a, cache *c)
{
    *c = cache_open(a);
    if (c->root == NULL)
        fputs("pypto: there is no cache folder that this user can use; see `pypto doctor`\n",
              stderr);
    return c->root != NULL;
}

static int clear(arena *a, const cache *c)
{
    int64_t bytes = bytes_below(a, c->root);
    os_remove_tree(c->root);
    printf("removed %s (%.1f MB)\n", c->root, (double)bytes / 1e6);
    return 0;
}

int cli_cache(arena *a, int count, char **words)
{
    cache c;
    const char *word = count == 1 ? words[0] : "";
    bool list = strcmp(word, "list") == 0;
    if (count > 1 || (count == 1 && !list && strcmp(word, "clear") != 0)) {
        fputs("usage: pypto cache [list|clear]\n", stderr);
        return 2;
    }
    if (!open_cache(a, &c))
        return 1;
    if (count == 1 && !list)
        return clear(a, &c);
    object_list objects = objects_of(a, &c);
    if (!list) {
        printf("%s\n%lld programs, %.1f MB\n", c.root, (long long)objects.count,
               (double)bytes_below(a, c.root) / 1e6);
        return 0;
    }
    for (int64_t i = 0; i < objects.count; i++) {
        const object *o = &objects.items[i];
        printf("%.12s  %8.1f kB  %s\n", o->hash, (double)o->bytes / 1e3, o->name);
    }
    return 0;
}

/* The newest program of that name or with a hash that begins so; NULL when there is none. */
static const char *find_program(arena *a, const char *word)
{
    cache c;
    os_facts facts;
    if (os_file_facts(arena_printf(a, "%s/program.ir", word), &facts))
        return word;
    if (!open_cache(a, &c))
        return NULL;
    object_list objects = objects_of(a, &c);
    for (int64_t i = 0; i < objects.count; i++) {
        const object *o = &objects.items[i];
        if (strcmp(o->name, word) == 0 || strncmp(o->hash, word, strlen(word)) == 0)
            return o->directory;
    }
    fprintf(stderr, "pypto: there is no program '%s' in %s; `pypto cache list` has all\n", word,
            c.root);
    return NULL;
}

int cli_show(arena *a, int count, char **words, const char *file)
{
    if (count != 1 || words[0][0] == '\0') {
        fputs("usage: pypto ir PROGRAM   (a function's name, a hash or its start, or a folder)\n",
              stderr);
        return 2;
    }
    const char *directory = find_program(a, words[0]);
    int64_t bytes = 0;
    char *text = directory == NULL
                     ? NULL
                     : os_read_file(a, arena_printf(a, "%s/%s", directory, file), &bytes);
    if (text == NULL)
        return 1;
    fwrite(text, 1, (size_t)bytes, stdout);
    return 0;
}
