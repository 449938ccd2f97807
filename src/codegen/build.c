/* Building objects. In a folder beside their later place in the cache, which is then renamed; when the cache takes
 * nothing (read-only, full, another user's), in a temporary folder of this process. A full disk and a complaint of
 * the compiler are told apart by whether the folder takes files at all. Of a build that was interrupted nothing is left. */
#include "codegen/build.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/os.h"

/* Changes when an object's folder gets other files, so that older ones are not found. */
#define LAYOUT_NUMBER 2

hash_key build_key(hash_key c_text, hash_key machine)
{
    hasher h;
    hasher_init(&h);
    hasher_int(&h, LAYOUT_NUMBER);
    hasher_int(&h, (int64_t)c_text.high);
    hasher_int(&h, (int64_t)c_text.low);
    hasher_int(&h, (int64_t)machine.high);
    hasher_int(&h, (int64_t)machine.low);
    return hasher_finish(&h);
}

void build_set_waiting(build_job *j, bool begins)
{
    if (j->waiting != NULL && j->is_waiting != begins)
        j->waiting(j->waiting_context, begins);
    j->is_waiting = begins;
}

/* ---- the folder ---- */

void build_drop(build_job *j)
{
    if (j->folder != NULL)
        os_remove_tree(j->folder);
    alloc_free(j->folder);
    j->folder = NULL;
}

void build_keep(build_job *j)
{
    alloc_free(j->folder);
    j->folder = NULL;
}

static bool take_folder(build_job *j, const char *path)
{
    j->folder = alloc_strdup(path);
    if (j->folder != NULL)
        return true;
    os_remove_tree(path);
    j->status = diag_no_memory();
    return false;
}

/* A folder outside the cache. */
static bool take_private_folder(build_job *j)
{
    char *path = NULL;
    build_drop(j);
    j->status = os_temp_dir(j->a, NULL, &path);
    return status_ok(j->status) && take_folder(j, path);
}

/* Whether a folder takes files as large as objects are: what tells a full disk from a compiler's complaint. */
static bool takes_files(build_job *j, const char *directory)
{
    const int64_t enough = ((int64_t)1 << 20) + 8 * j->text->c.length;
    const char *path = arena_printf(j->a, "%s/probe", directory);
    pypto_status status = os_write_file(path, arena_alloc(j->a, enough), enough);
    bool ok = status_ok(status);
    pypto_status_clear(&status);
    os_remove_tree(path);
    return ok;
}

/* ---- the object ---- */

static pypto_status write_text(build_job *j, const char *name, const text *t)
{
    if (t->length == 0)
        return STATUS_OK;
    return os_write_file(arena_printf(j->a, "%s/%s", j->folder, name), t->bytes, t->length);
}

static pypto_status write_sources(build_job *j)
{
    pypto_status status = write_text(j, PROGRAM_C, &j->text->c);
    if (status_ok(status))
        status = write_text(j, PROGRAM_IR, &j->text->ir);
    if (status_ok(status))
        status = write_text(j, PROGRAM_DESCRIPTION, &j->text->description);
    return status;
}

/* Or writes what it has made before. `kept`: where the build folder will be after a failure. */
static pypto_status make_object(build_job *j, const char *kept)
{
    const char *c_path = arena_printf(j->a, "%s/" PROGRAM_C, j->folder);
    const char *object_path = arena_printf(j->a, "%s/" PROGRAM_OBJECT, j->folder);
    const char *kept_path =
        j->edited != NULL ? j->edited : arena_printf(j->a, "%s/" PROGRAM_C, kept);
    if (j->object != NULL)
        return os_write_file(object_path, j->object->bytes, j->object->length);
    build_set_waiting(j, true);
    pypto_status status = toolchain_run(j->a, j->tools, c_path, object_path, kept_path,
                                        j->edited != NULL, j->interrupts);
    build_set_waiting(j, false);
    return status;
}

static bool was_interrupted(const build_job *j)
{
    return j->status.kind == PYPTO_ERROR_INTERRUPTED;
}

/* Builds in the cache. False: the cache does not take it; nothing is left of the attempt. */
static bool build_in_cache(build_job *j, hash_key back)
{
    const char *path = cache_build_dir(j->cache, &j->trouble);
    if (path == NULL || !take_folder(j, path))
        return !status_ok(j->status);
    const char *failed = cache_failed_dir(j->cache, back);
    j->status = write_sources(j);
    if (status_ok(j->status))
        j->status = make_object(j, failed != NULL ? failed : j->folder);
    if (status_ok(j->status) || was_interrupted(j))
        return true;
    if (!takes_files(j, j->folder)) {
        j->trouble = arena_strdup(j->a, j->status.diagnostics->message);
        pypto_status_clear(&j->status);
        build_drop(j);
        return false;
    }
    if (failed != NULL) {
        os_remove_tree(failed);
        pypto_status moved = os_rename(j->folder, failed);
        pypto_status_clear(&moved);
    }
    build_keep(j); /* for whoever reads the report */
    return true;
}

static bool build_privately(build_job *j)
{
    if (!take_private_folder(j))
        return false;
    j->status = write_sources(j);
    if (!status_ok(j->status))
        return false;
    j->status = make_object(j, j->folder);
    if (status_ok(j->status)) {
        (void)cache_seal(j->a, j->folder);
        return true;
    }
    if (!was_interrupted(j))
        build_keep(j); /* as above */
    return false;
}

const char *build_object(build_job *j, hash_key back, bool *hit, bool *temporary)
{
    const char *there = cache_object_dir(j->cache, back);
    *temporary = false;
    *hit = cache_has_object(j->a, there);
    if (*hit) {
        cache_touch(there);
        return there;
    }
    if (build_in_cache(j, back)) {
        if (!status_ok(j->status))
            return NULL;
        const char *directory = cache_publish(j->cache, j->folder, back, &j->trouble);
        if (directory != NULL) {
            build_keep(j);
            return directory;
        }
    } else if (!build_privately(j)) {
        return NULL;
    }
    *temporary = true;
    cache_tell(j->cache, j->trouble, &j->status);
    return arena_strdup(j->a, j->folder);
}
