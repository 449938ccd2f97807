/* Where compiled programs are kept, and how they get there.
 *
 *     <cache>/v1/front/<hash>      manifests (manifest.h)
 *     <cache>/v1/object/<hash>/    program.so program.sum program.c program.ir program.json
 *     <cache>/v1/failed/<hash>/    what the C compiler refused, for the report
 *
 * An object is built in a folder of its own beside the others and renamed into place, so that a
 * reader sees all of it or nothing. rename() does not replace a folder that has content: of two
 * processes that build the same object the first wins and the second takes its result.
 *
 * Code is loaded from here, so the folder must be this user's alone: v1 is made with mode 0700 and
 * refused when somebody else owns it or may write to it. A cache that is refused, read-only or
 * full is no error; what is there is still used, and new objects go to a temporary folder
 * (compile.c).
 *
 * Loading a damaged shared object kills the process. program.sum holds size and hash of program.so;
 * an object whose content does not agree, after a full disk, a power cut or a bad copy, is made
 * again. Checking costs some ten microseconds.
 *
 * Each of the three folders is bounded. Whoever publishes removes the entries used least recently
 * beyond CACHE_ENTRIES, and build folders of compiles that never ended. Use is the modification
 * time, renewed by hits once a day. What is younger than an hour is never removed: somebody may be
 * about to load it. The whole cache may be removed at any time. */
#include "codegen/cache.h"

#include "codegen/toolchain.h"

#include "base/diag.h"
#include "base/os.h"
#include "base/settings.h"

#include <pypto/program.h>

#include <stdlib.h>
#include <string.h>

#define HOUR_NS ((int64_t)3600 * 1000000000)
#define DAY_NS (24 * HOUR_NS)
#define BUILD_PREFIX \
    "pypto-" /* of folders that os_temp_dir() makes, and of what is being removed */

/* .../v1, or NULL when the environment does not say where. */
static const char *root_path(arena *a)
{
    const char *chosen = setting_text(SETTING_CACHE_DIR);
    if (chosen[0] != '\0')
        return arena_printf(a, "%s/v1", chosen);
    const char *caches = getenv("XDG_CACHE_HOME");
    if (caches != NULL && caches[0] == '/')
        return arena_printf(a, "%s/pypto/v1", caches);
    const char *home = getenv("HOME");
    if (home != NULL && home[0] == '/')
        return arena_printf(a, "%s/.cache/pypto/v1", home);
    return NULL;
}

/* What went wrong with the cache fails nothing. */
static bool done(pypto_status status)
{
    bool ok = status_ok(status);
    pypto_status_clear(&status);
    return ok;
}

/* The same, with a word on it, if a compile has to do without. */
static bool done_or_told(arena *a, pypto_status status, const char **trouble)
{
    if (!status_ok(status) && status.diagnostics != NULL)
        *trouble = arena_strdup(a, status.diagnostics->message);
    return done(status);
}

cache cache_open(arena *a)
{
    cache c = {.a = a, .place = "the user's cache"};
    const char *root = root_path(a);
    os_facts facts;
    if (root == NULL) {
        c.trouble =
            "there is no place for it: neither PYPTO_CACHE_DIR, nor XDG_CACHE_HOME, nor HOME says where";
        return c;
    }
    c.place = root;
    bool exists = os_file_facts(root, &facts);
    if (!exists)
        exists = done_or_told(a, os_make_dirs(root), &c.trouble) && os_file_facts(root, &facts);
    if (exists && facts.directory && facts.is_private)
        c.root = root;
    else if (exists)
        c.trouble = !facts.directory ? "it is no directory"
                                     : "it belongs to another user, or others may write to it";
    return c;
}

static const char *place(const cache *c, const char *folder, hash_key key)
{
    if (c->root == NULL)
        return NULL;
    char hex[33];
    hash_hex(key, hex);
    return arena_printf(c->a, "%s/%s/%s", c->root, folder, hex);
}

const char *cache_front_path(const cache *c, hash_key front)
{
    return place(c, "front", front);
}

void cache_write_front(const cache *c, hash_key front, const char *bytes, int64_t count)
{
    const char *path = cache_front_path(c, front);
    if (path == NULL || done(os_write_file(path, bytes, count)))
        return;
    /* The first manifest of this cache, or a cache that takes nothing. */
    if (done(os_make_dirs(arena_printf(c->a, "%s/front", c->root))))
        (void)done(os_write_file(path, bytes, count));
}

const char *cache_object_dir(const cache *c, hash_key back)
{
    return place(c, "object", back);
}

/* The first line of program.sum for an object, or NULL when there is none. */
static const char *content_line(arena *a, const char *directory)
{
    int64_t bytes;
    const char *content = os_read_file(a, arena_printf(a, "%s/" PROGRAM_OBJECT, directory), &bytes);
    if (content == NULL || bytes == 0)
        return NULL;
    char hex[33];
    hash_hex(hash_of(content, bytes), hex);
    return arena_printf(a, "%lld %s\n", (long long)bytes, hex);
}

/* The third: of which text the object was made. */
static const char *source_line(arena *a, const char *directory)
{
    char source[33];
    int64_t bytes = 0;
    const char *text = os_read_file(a, arena_printf(a, "%s/" PROGRAM_C, directory), &bytes);
    hash_hex(hash_of(text, bytes), source);
    return arena_printf(a, "source %s\n", source);
}

/* The second and the third: also for which processor. The name of an object's folder in the cache says more, so they are
 * of use only elsewhere. */
static const char *origin_lines(arena *a, const char *directory)
{
    char machine[33];
    hasher h;
    hasher_init(&h);
    hasher_int(&h, PLD_ABI);
    cpu_features(a, &h);
    hash_hex(hasher_finish(&h), machine);
    return arena_printf(a, "machine %s\n%s", machine, source_line(a, directory));
}

bool cache_seal(arena *a, const char *directory)
{
    os_make_private(arena_printf(a, "%s/" PROGRAM_OBJECT, directory)); /* linkers go by the umask */
    const char *content = content_line(a, directory);
    if (content == NULL)
        return false;
    const char *sum = arena_printf(a, "%s%s", content, origin_lines(a, directory));
    return done(
        os_write_file(arena_printf(a, "%s/" PROGRAM_SUM, directory), sum, (int64_t)strlen(sum)));
}

/* What program.sum says behind its first line, if that is true; else NULL. */
static const char *behind_true_content(arena *a, const char *directory)
{
    const char *recorded = os_read_file(a, arena_printf(a, "%s/" PROGRAM_SUM, directory), NULL);
    const char *actual = recorded != NULL ? content_line(a, directory) : NULL;
    if (actual == NULL || strncmp(recorded, actual, strlen(actual)) != 0)
        return NULL;
    return recorded + strlen(actual);
}

bool cache_has_object(arena *a, const char *directory)
{
    return directory != NULL && behind_true_content(a, directory) != NULL;
}

bool cache_has_object_of_here(arena *a, const char *directory)
{
    const char *origin = behind_true_content(a, directory);
    return origin != NULL && strcmp(origin, origin_lines(a, directory)) == 0;
}

bool cache_records_text(arena *a, const char *directory)
{
    const char *recorded = os_read_file(a, arena_printf(a, "%s/" PROGRAM_SUM, directory), NULL);
    return recorded != NULL && strstr(recorded, source_line(a, directory)) != NULL;
}

void cache_touch(const char *path)
{
    os_facts facts;
    if (path != NULL && os_file_facts(path, &facts) &&
        os_file_now_ns() - facts.modified_ns > DAY_NS)
        os_touch(path);
}

/* ---- the bound ---- */

typedef struct entry {
    const char *name;
    int64_t used_ns;
} entry;

static int older_first(const void *x, const void *y)
{
    const entry *a = x;
    const entry *b = y;
    if (a->used_ns != b->used_ns)
        return a->used_ns < b->used_ns ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Out of readers' sight first, so that nobody sees half an object. */
static void remove_entry(const cache *c, const char *folder, const char *name)
{
    const char *path = arena_printf(c->a, "%s/%s", folder, name);
    const char *aside = arena_printf(c->a, "%s/" BUILD_PREFIX "old-%s", folder, name);
    os_remove_tree(done(os_rename(path, aside)) ? aside : path);
}

static void trim(const cache *c, const char *which)
{
    const char *folder = arena_printf(c->a, "%s/%s", c->root, which);
    os_names names = os_list_dir(c->a, folder);
    entry *entries = arena_array(c->a, entry, names.count + 1);
    int64_t count = 0;
    int64_t now = os_file_now_ns();
    for (int64_t i = 0; i < names.count; i++) {
        const char *name = names.items[i];
        bool building = strncmp(name, BUILD_PREFIX, strlen(BUILD_PREFIX)) == 0;
        os_facts facts;
        if (!building && names.count <= CACHE_ENTRIES)
            continue;
        if (!os_file_facts(arena_printf(c->a, "%s/%s", folder, name), &facts))
            continue;
        if (!building)
            entries[count++] = (entry){name, facts.modified_ns};
        else if (now - facts.modified_ns > DAY_NS)
            os_remove_tree(arena_printf(c->a, "%s/%s", folder, name));
    }
    if (count <= CACHE_ENTRIES)
        return;
    qsort(entries, (size_t)count, sizeof *entries, older_first);
    for (int64_t i = 0; i < count - CACHE_ENTRIES; i++)
        if (now - entries[i].used_ns > HOUR_NS)
            remove_entry(c, folder, entries[i].name);
}

void cache_trim(const cache *c)
{
    if (c->root == NULL)
        return;
    trim(c, "object");
    trim(c, "front");
    trim(c, "failed");
}

char *cache_build_dir(const cache *c, const char **trouble)
{
    char *path = NULL;
    *trouble = c->trouble;
    if (c->root == NULL)
        return NULL;
    const char *objects = arena_printf(c->a, "%s/object", c->root);
    if (!done_or_told(c->a, os_make_dirs(objects), trouble) ||
        !done_or_told(c->a, os_temp_dir(c->a, objects, &path), trouble))
        return NULL;
    return path;
}

const char *cache_publish(const cache *c, const char *build_dir, hash_key back,
                          const char **trouble)
{
    const char *directory = cache_object_dir(c, back);
    *trouble = "it takes no more files";
    if (directory == NULL || !cache_seal(c->a, build_dir))
        return NULL;
    if (done(os_rename(build_dir, directory)))
        return directory;
    if (cache_has_object(c->a, directory)) {
        os_remove_tree(build_dir);
        return directory;
    }
    /* In the way: a damaged object. */
    os_remove_tree(directory);
    if (done_or_told(c->a, os_rename(build_dir, directory), trouble))
        return directory;
    return cache_has_object(c->a, directory) ? (os_remove_tree(build_dir), directory) : NULL;
}

void cache_tell(const cache *c, const char *trouble, pypto_status *status)
{
    diag_add(status, DIAG_CACHE_UNUSABLE, SPAN_NONE,
             "name a directory of your own with PYPTO_CACHE_DIR, or make room",
             "the cache of compiled programs, %s, cannot be used: each process compiles them again",
             c->place);
    if (trouble != NULL)
        diag_note(status, "%s", trouble);
    status->kind = PYPTO_ERROR_NONE;
}

const char *cache_failed_dir(const cache *c, hash_key back)
{
    const char *directory = place(c, "failed", back);
    if (directory == NULL || !done(os_make_dirs(arena_printf(c->a, "%s/failed", c->root))))
        return NULL;
    return directory;
}
