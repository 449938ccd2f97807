/* Where compiled programs are kept, and how they get there.
 *
 *     <cache>/v1/front/<hash>      manifests (manifest.h)
 *     <cache>/v1/object/<hash>/    program.so program.c program.ir
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
 * Nothing is ever deleted but what is replaced; the whole folder may be removed at any time. */
#include "codegen/cache.h"

#include "base/diag.h"
#include "base/os.h"
#include "base/settings.h"

#include <stdlib.h>

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

/* What went wrong with the cache is nobody's news. */
static bool done(pypto_status status)
{
    bool ok = status_ok(status);
    pypto_status_clear(&status);
    return ok;
}

cache cache_open(arena *a)
{
    cache c = {a, NULL};
    const char *root = root_path(a);
    os_facts facts;
    if (root == NULL)
        return c;
    bool exists = os_file_facts(root, &facts);
    if (!exists)
        exists = done(os_make_dirs(root)) && os_file_facts(root, &facts);
    if (exists && facts.directory && facts.is_private)
        c.root = root;
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

bool cache_has_object(arena *a, const char *directory)
{
    os_facts facts;
    return directory != NULL &&
           os_file_facts(arena_printf(a, "%s/program.so", directory), &facts) && facts.bytes > 0;
}

char *cache_build_dir(const cache *c)
{
    char *path = NULL;
    if (c->root == NULL)
        return NULL;
    const char *objects = arena_printf(c->a, "%s/object", c->root);
    if (!done(os_make_dirs(objects)) || !done(os_temp_dir(c->a, objects, &path)))
        return NULL;
    return path;
}

const char *cache_publish(const cache *c, const char *build_dir, hash_key back)
{
    const char *directory = cache_object_dir(c, back);
    if (directory == NULL)
        return NULL;
    if (done(os_rename(build_dir, directory)))
        return directory;
    if (cache_has_object(c->a, directory)) {
        os_remove_tree(build_dir);
        return directory;
    }
    /* In the way: what a power cut has left, without an object. */
    os_remove_tree(directory);
    if (done(os_rename(build_dir, directory)))
        return directory;
    return cache_has_object(c->a, directory) ? (os_remove_tree(build_dir), directory) : NULL;
}

const char *cache_failed_dir(const cache *c, hash_key back)
{
    const char *directory = place(c, "failed", back);
    if (directory == NULL || !done(os_make_dirs(arena_printf(c->a, "%s/failed", c->root))))
        return NULL;
    return directory;
}
