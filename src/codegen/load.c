/* A program from a folder that was kept from an earlier compile.
 *
 * Its code will run here, so the folder and the files that decide what runs must be nobody else's: see
 * os_is_trusted(). program.so is used when program.sum says that it is whole, and made for this processor
 * of the program.c beside it; else program.c is compiled again, through the cache like any other program. So a folder
 * can be carried to another machine, and an edited program.c has its effect. The folder itself is never written.
 *
 * What is used is a copy in the cache, or in a folder of its own: the dynamic loader takes files of one name for one
 * object, and a later compile may put another program into this folder. */
#include "codegen/compile.h"

#include "codegen/build.h"
#include "codegen/results.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/os.h"

typedef struct load_job {
    arena *a;
    const char *directory;
    compile_output *output;
    cache cache;
    toolchain tools;
    program_text text;
    text object; /* as it is in the folder */
    build_job build;
    pypto_status status;
} load_job;

static const char trust_hint[] =
    "compile the program again, or, if you trust it: chown and chmod go-w";

/* Whether a file of the folder is there; one that is, but not ours alone, is an error. */
static bool find_file(load_job *j, const char *name)
{
    const char *path = arena_printf(j->a, "%s/%s", j->directory, name);
    if (!status_ok(j->status) || !os_entry_exists(path))
        return false;
    if (os_is_trusted(path, false))
        return true;
    j->status = diag_status(
        DIAG_BAD_ARTIFACT, trust_hint,
        "%s is not loaded: it is a link or no file, belongs to another user, or others may "
        "write it",
        path);
    return false;
}

static bool read_text(load_job *j, const char *name, text *t)
{
    *t = (text){.a = j->a};
    if (!find_file(j, name))
        return false;
    int64_t bytes;
    const char *content =
        os_read_file(j->a, arena_printf(j->a, "%s/%s", j->directory, name), &bytes);
    if (content == NULL) {
        j->status = diag_status(DIAG_BAD_ARTIFACT, "compile the program again",
                                "%s/%s cannot be read", j->directory, name);
        return false;
    }
    text_add_n(t, content, bytes);
    return true;
}

/* Its object is in the cache, or comes there. */
static void place_object(load_job *j, hash_key back)
{
    const int64_t start = os_now_ns();
    bool temporary = false;
    const char *directory = build_object(&j->build, back, &j->output->back_hit, &temporary);
    j->output->back_ns = os_now_ns() - start;
    j->status = j->build.status;
    if (!j->output->back_hit)
        cache_trim(&j->cache);
    if (directory == NULL)
        return;
    if (!results_place(j->output, directory)) {
        pypto_status_clear(&j->status);
        j->status = diag_no_memory();
        return;
    }
    j->output->temporary = temporary;
    build_keep(&j->build);
}

static void load(void *context)
{
    load_job *j = context;
    if (!os_is_trusted(j->directory, true)) {
        j->status = diag_status(DIAG_BAD_ARTIFACT, trust_hint,
                                "nothing is loaded from %s: it is no directory, belongs to another "
                                "user, or others may write to it",
                                j->directory);
        return;
    }
    const bool has_text = find_file(j, PROGRAM_C);
    const bool whole = find_file(j, PROGRAM_OBJECT) && find_file(j, PROGRAM_SUM) &&
                       cache_has_object_of_here(j->a, j->directory);
    if (status_ok(j->status) && !has_text)
        j->status = diag_status(DIAG_BAD_ARTIFACT, "compile the program again",
                                "there is no %s/" PROGRAM_C, j->directory);
    if (!status_ok(j->status) || !read_text(j, PROGRAM_C, &j->text.c))
        return;
    (void)read_text(j, PROGRAM_IR, &j->text.ir);
    (void)read_text(j, PROGRAM_DESCRIPTION, &j->text.description);
    if (whole)
        (void)read_text(j, PROGRAM_OBJECT, &j->object);
    else if (status_ok(j->status))
        j->status = toolchain_find(j->a, &j->tools);
    if (!whole && !cache_records_text(j->a, j->directory))
        j->build.edited = arena_printf(j->a, "%s/" PROGRAM_C, j->directory);
    if (!status_ok(j->status))
        return;
    j->cache = cache_open(j->a);
    j->build.cache = &j->cache;
    j->build.tools = &j->tools;
    j->build.text = &j->text;
    j->build.object = whole ? &j->object : NULL;
    const hash_key front = hash_of(j->text.c.bytes, j->text.c.length);
    place_object(j, build_key(front, whole ? hash_of(j->object.bytes, j->object.length)
                                           : j->tools.identity));
}

pypto_status compile_load(const char *directory, void (*waiting)(void *context, bool begins),
                          void *waiting_context, const os_interrupts *interrupts,
                          compile_output *output)
{
    *output = (compile_output){0};
    load_job j = {.directory = directory, .output = output, .status = STATUS_OK};
    j.a = arena_create();
    if (j.a == NULL)
        return diag_no_memory();
    j.build = (build_job){.a = j.a,
                          .waiting = waiting,
                          .waiting_context = waiting_context,
                          .interrupts = interrupts,
                          .status = STATUS_OK};
    if (!arena_guard(j.a, load, &j)) {
        build_set_waiting(&j.build, false);
        pypto_status_clear(&j.status);
        j.status = diag_no_memory();
    }
    build_drop(&j.build);
    if (!status_ok(j.status))
        compile_output_clear(output);
    arena_destroy(j.a);
    return j.status;
}
