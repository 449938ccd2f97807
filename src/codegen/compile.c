/* The compile driver: what happens between a call in a script and a shared object on disk.
 *
 *   1. toolchain   which compiler, flags, headers, processor       (toolchain.c)
 *   2. front       manifest of the entry: does a remembered program still hold?   (manifest.c)
 *                  yes, and its object is there: done
 *   3. lower       front end, passes, emitter: the C text
 *   4. back        object of that text and this machine there? else compile, publish  (build.c, cache.c)
 *   5. remember    the manifest gets the new variant
 *
 * compile_lower() takes the third step alone. Memory is one arena per job. What a job holds outside of it, a build
 * folder and the "waiting" state of the caller, is in the job, so that it can be undone when memory is exhausted in
 * between. Results are copied to the heap at the very end.
 */
#include "codegen/compile.h"

#include "codegen/build.h"
#include "codegen/lower.h"
#include "codegen/manifest.h"
#include "codegen/results.h"
#include "passes/passes.h"

#include "base/diag.h"
#include "base/os.h"
#include "base/settings.h"

#include <fenv.h>
#include <stdio.h>

typedef struct job {
    const compile_request *request;
    compile_output *output; /* of compile_program(); else NULL */
    compile_text *texts;    /* of compile_lower(); else NULL */
    arena *a;
    const platform *target;
    toolchain tools;
    cache cache;
    hash_key front;
    manifest known;           /* what the manifest says now */
    manifest_variant variant; /* the program that is found or made */
    lowered made;             /* if it had to be made */
    build_job build;          /* owns what must not be left behind */
    pypto_status status;
} job;

/* ---- keys ---- */

/* Which compiler this is: between two builds of one version, its file tells them apart. */
static void hash_own_build(arena *a, hasher *h)
{
    os_facts facts;
    const char *path = os_library_path(a);
    hasher_string(h, PYPTO_VERSION);
    if (path != NULL && os_file_facts(path, &facts)) {
        hasher_int(h, facts.bytes);
        hasher_int(h, facts.modified_ns);
    }
}

static hash_key front_key(arena *a, const compile_request *request)
{
    hasher h;
    hasher_init(&h);
    hash_own_build(a, &h);
    hasher_string(&h, request->entry_digest);
    hasher_string(&h, request->platform);
    return hasher_finish(&h);
}

/* ---- the front ---- */

static bool serves(arena *a, const compile_request *request, bool from_annotations,
                   const frontend_arg *pattern, int64_t pattern_count, const frontend_fact *facts,
                   int64_t fact_count)
{
    bool matches = request->args == NULL ? from_annotations
                                         : pattern_matches(pattern, (int32_t)pattern_count,
                                                           request->args, request->arg_count);
    return matches && facts_hold(a, request->embedder, facts, fact_count);
}

static void read_manifest(job *j)
{
    const char *path = cache_front_path(&j->cache, j->front);
    int64_t bytes;
    const char *content = path != NULL ? os_read_file(j->a, path, &bytes) : NULL;
    if (content == NULL || !manifest_parse(j->a, content, bytes, &j->known))
        j->known = (manifest){0};
}

/* The variant that serves the request, or NULL. */
static const manifest_variant *find_variant(job *j)
{
    for (int32_t i = 0; i < j->known.count; i++) {
        const manifest_variant *v = &j->known.variants[i];
        if (serves(j->a, j->request, v->from_annotations, v->pattern.items, v->pattern.count,
                   v->facts.items, v->facts.count))
            return v;
    }
    return NULL;
}

static void remember(job *j)
{
    manifest_add(&j->known, &j->variant);
    text out = {.a = j->a};
    manifest_print(&out, &j->known);
    cache_write_front(&j->cache, j->front, out.bytes, out.length);
}

/* ---- lowering ---- */

static bool lower(job *j)
{
    j->status = lower_program(j->a, j->request, j->target, &j->made);
    if (!status_ok(j->status))
        return false;
    const frontend_result *result = &j->made.result;
    j->variant = (manifest_variant){.c_text = hash_of(j->made.text.c.bytes, j->made.text.c.length),
                                    .from_annotations = j->request->args == NULL};
    j->variant.pattern.items = result->pattern.items;
    j->variant.pattern.count = result->pattern.count;
    j->variant.facts.items = result->facts.items;
    j->variant.facts.count = result->facts.count;
    return true;
}

/* ---- building ---- */

static const char *build(job *j, hash_key back, bool *hit, bool *temporary)
{
    j->build.cache = &j->cache;
    j->build.tools = &j->tools;
    j->build.text = &j->made.text;
    const char *directory = build_object(&j->build, back, hit, temporary);
    j->status = j->build.status;
    return directory;
}

/* ---- what the caller gets ---- */

/* PYPTO_DUMP=ir,c: both as they are kept, so that hits show them too. */
static void dump(job *j, const char *directory, const char *word, const char *file)
{
    if (!setting_lists(SETTING_DUMP, word))
        return;
    const char *content = os_read_file(j->a, arena_printf(j->a, "%s/%s", directory, file), NULL);
    if (content != NULL)
        fputs(content, stderr);
}

static void out_of_memory(job *j)
{
    pypto_status_clear(&j->status);
    j->status = diag_no_memory();
}

static bool finish(job *j, const char *directory)
{
    if (!results_place(j->output, directory) || !results_variant(j->output, &j->variant) ||
        !results_stages(&j->output->stages, &j->made)) {
        out_of_memory(j);
        return false;
    }
    dump(j, directory, "ir", PROGRAM_IR);
    dump(j, directory, "c", PROGRAM_C);
    return true;
}

/* ---- the whole way ---- */

/* True when the output is filled, by a hit on both levels. */
static bool try_hit(job *j)
{
    j->cache = cache_open(j->a);
    j->front = front_key(j->a, j->request);
    read_manifest(j);
    const manifest_variant *found = find_variant(j);
    if (found == NULL)
        return false;
    const char *directory =
        cache_object_dir(&j->cache, build_key(found->c_text, j->tools.identity));
    if (!cache_has_object(j->a, directory))
        return false;
    cache_touch(directory);
    cache_touch(cache_front_path(&j->cache, j->front));
    j->variant = *found;
    j->output->front_hit = true;
    j->output->back_hit = true;
    return finish(j, directory);
}

static void compile(void *context)
{
    job *j = context;
    int64_t start = os_now_ns();
    compile_output *output = j->output;
    j->status = toolchain_find(j->a, &j->tools);
    if (!status_ok(j->status))
        return;
    if (try_hit(j)) {
        output->front_ns = os_now_ns() - start;
        return;
    }
    if (!status_ok(j->status) || !lower(j))
        return;
    int64_t lowered_at = os_now_ns();
    output->front_ns = lowered_at - start;

    hash_key back = build_key(j->variant.c_text, j->tools.identity);
    bool temporary = false;
    const char *directory = build(j, back, &output->back_hit, &temporary);
    output->back_ns = os_now_ns() - lowered_at;
    if (directory == NULL)
        return;
    if (!temporary)
        remember(j);
    if (!output->back_hit)
        cache_trim(&j->cache);
    if (!finish(j, directory))
        return;
    output->temporary = temporary;
    build_keep(&j->build); /* the output's now, or published */
}

static void only_lower(void *context)
{
    job *j = context;
    if (lower(j) && !results_texts(j->texts, &j->made))
        out_of_memory(j);
}

/* Constants are folded as the program would compute them: not as the caller's thread does, which may flush denormals. */
static pypto_status run(job *j, void (*steps)(void *job))
{
    const compile_request *request = j->request;
    j->status = STATUS_OK;
    j->target = platform_find(request->platform);
    if (j->target == NULL)
        return diag_status(DIAG_BAD_PLATFORM, NULL, "Invalid platform '%s'; there are %s",
                           request->platform, platform_names());
    j->a = arena_create();
    if (j->a == NULL)
        return diag_no_memory();
    j->build = (build_job){.a = j->a,
                           .waiting = request->waiting,
                           .waiting_context = request->waiting_context,
                           .interrupts = request->interrupts,
                           .status = STATUS_OK};
    fenv_t callers;
    fegetenv(&callers);
    fesetenv(FE_DFL_ENV);
    if (!arena_guard(j->a, steps, j)) {
        build_set_waiting(&j->build, false);
        out_of_memory(j);
    }
    fesetenv(&callers);
    build_drop(&j->build);
    arena_destroy(j->a);
    return j->status;
}

pypto_status compile_program(const compile_request *request, compile_output *output)
{
    *output = (compile_output){0};
    job j = {.request = request, .output = output};
    pypto_status status = run(&j, compile);
    if (!status_ok(status))
        compile_output_clear(output);
    return status;
}

pypto_status compile_lower(const compile_request *request, compile_text *output)
{
    *output = (compile_text){0};
    job j = {.request = request, .texts = output};
    pypto_status status = run(&j, only_lower);
    if (!status_ok(status))
        compile_text_clear(output);
    return status;
}

/* ---- later ---- */

typedef struct question {
    const compile_output *output;
    const compile_request *request;
    bool answer;
} question;

static pypto_status ask(arena *a, void *context)
{
    question *q = context;
    const compile_output *output = q->output;
    q->answer = serves(a, q->request, output->from_annotations, output->pattern,
                       output->pattern_count, output->facts, output->fact_count);
    return STATUS_OK;
}

bool compile_still_serves(const compile_output *output, const compile_request *request)
{
    if (!os_file_exists(
            output->object_path)) /* the cache was cleared: new workers could not load it */
        return false;
    question q = {output, request, false};
    pypto_status status = arena_run(ask, &q);
    pypto_status_clear(&status);
    return q.answer;
}
