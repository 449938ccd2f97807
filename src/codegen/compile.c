/* The compile driver: what happens between a call in a script and a shared object on disk.
 *
 *   1. toolchain   which compiler, flags, headers, processor       (toolchain.c)
 *   2. front       manifest of the entry: does a remembered program still hold?   (manifest.c)
 *                  yes, and its object is there: done
 *   3. lower       front end, passes, emitter: the C text
 *   4. back        object of that text and this machine there? else compile, publish  (build.c, cache.c)
 *   5. remember    the manifest gets the new variant
 *
 * Memory is one arena per compile. Exhausted memory jumps to compile_program(), which then undoes
 * what a job holds outside the arena: a build folder and the "waiting" state of the caller;
 * everything of that kind is therefore in the job. Results are copied to the heap at the very end.
 */
#include "codegen/compile.h"

#include "codegen/build.h"
#include "codegen/lower.h"
#include "codegen/manifest.h"
#include "passes/passes.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/os.h"
#include "base/settings.h"

#include <stdio.h>
#include <string.h>

typedef struct job {
    const compile_request *request;
    compile_output *output;
    arena *a;
    const platform *target;
    toolchain tools;
    cache cache;
    hash_key front;
    manifest known;           /* what the manifest says now */
    manifest_variant variant; /* the program that is found or made */
    program_text text;
    build_job build; /* owns what must not be left behind */
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

static hash_key text_key(const text *t)
{
    hasher h;
    hasher_init(&h);
    hasher_bytes(&h, t->bytes, t->length);
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
    lowered made = {0};
    j->status = lower_program(j->a, j->request, j->target, &made);
    if (!status_ok(j->status))
        return false;
    j->text = made.text;
    j->variant = (manifest_variant){.c_text = text_key(&j->text.c),
                                    .from_annotations = j->request->args == NULL};
    j->variant.pattern.items = made.result.pattern.items;
    j->variant.pattern.count = made.result.pattern.count;
    j->variant.facts.items = made.result.facts.items;
    j->variant.facts.count = made.result.facts.count;
    return true;
}

/* ---- building ---- */

static const char *build(job *j, hash_key back, bool *hit, bool *temporary)
{
    j->build.cache = &j->cache;
    j->build.tools = &j->tools;
    j->build.text = &j->text;
    const char *directory = build_object(&j->build, back, hit, temporary);
    j->status = j->build.status;
    return directory;
}

/* ---- results ---- */

static bool copy_facts(const manifest_variant *from, compile_output *to)
{
    to->facts = alloc_zeroed(from->facts.count + 1, (int64_t)sizeof *to->facts);
    if (to->facts == NULL)
        return false;
    for (int64_t i = 0; i < from->facts.count; i++) {
        const frontend_fact *fact = &from->facts.items[i];
        char *name = alloc_strdup(fact->name);
        char *value = alloc_strdup(fact->value);
        to->facts[i] = (frontend_fact){fact->function, name, value};
        to->fact_count++;
        if (name == NULL || value == NULL)
            return false;
    }
    return true;
}

static bool copy_pattern(const manifest_variant *from, compile_output *to)
{
    to->pattern = alloc_zeroed(from->pattern.count + 1, (int64_t)sizeof *to->pattern);
    if (to->pattern == NULL)
        return false;
    if (from->pattern.count > 0)
        memcpy(to->pattern, from->pattern.items, (size_t)from->pattern.count * sizeof *to->pattern);
    to->pattern_count = (int32_t)from->pattern.count;
    to->from_annotations = from->from_annotations;
    return true;
}

static bool fill_output(job *j, const char *directory)
{
    compile_output *output = j->output;
    output->directory = alloc_strdup(directory);
    output->object_path = alloc_printf("%s/" PROGRAM_OBJECT, directory);
    if (output->directory != NULL && output->object_path != NULL &&
        copy_facts(&j->variant, output) && copy_pattern(&j->variant, output))
        return true;
    pypto_status_clear(&j->status);
    j->status = diag_no_memory();
    return false;
}

/* PYPTO_DUMP=ir,c: both as they are kept, so that hits show them too. */
static void dump(job *j, const char *directory, const char *word, const char *file)
{
    if (!setting_lists(SETTING_DUMP, word))
        return;
    const char *content = os_read_file(j->a, arena_printf(j->a, "%s/%s", directory, file), NULL);
    if (content != NULL)
        fputs(content, stderr);
}

static bool finish(job *j, const char *directory)
{
    if (!fill_output(j, directory))
        return false;
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

static void compile(job *j)
{
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

/* Runs the job with a way back for exhausted memory. A function of its own: the job must not be a
 * local of the function that setjmp returns to twice. */
static void compile_guarded(void *context)
{
    job *j = context;
    jmp_buf recovery;
    if (setjmp(recovery) != 0) {
        build_set_waiting(&j->build, false);
        pypto_status_clear(&j->status);
        j->status = diag_no_memory();
        return;
    }
    arena_set_recovery(j->a, &recovery);
    compile(j);
}

pypto_status compile_program(const compile_request *request, compile_output *output)
{
    *output = (compile_output){0};
    job j = {.request = request, .output = output, .status = STATUS_OK};
    j.target = platform_find(request->platform);
    if (j.target == NULL)
        return diag_status(DIAG_BAD_PLATFORM, NULL, "Invalid platform '%s'; there are %s",
                           request->platform, platform_names());
    j.a = arena_create();
    if (j.a == NULL)
        return diag_no_memory();
    j.build = (build_job){.a = j.a,
                          .waiting = request->waiting,
                          .waiting_context = request->waiting_context,
                          .status = STATUS_OK};
    lower_with_default_rounding(compile_guarded, &j);
    build_drop(&j.build);
    if (!status_ok(j.status))
        compile_output_clear(output);
    arena_destroy(j.a);
    return j.status;
}

/* ---- later ---- */

typedef struct question {
    arena *a;
    const compile_output *output;
    const compile_request *request;
    bool answer;
} question;

static void ask_guarded(question *q)
{
    jmp_buf recovery;
    if (setjmp(recovery) != 0) {
        q->answer = false;
        return;
    }
    arena_set_recovery(q->a, &recovery);
    q->answer = serves(q->a, q->request, q->output->from_annotations, q->output->pattern,
                       q->output->pattern_count, q->output->facts, q->output->fact_count);
}

bool compile_still_serves(const compile_output *output, const compile_request *request)
{
    if (!os_file_exists(
            output->object_path)) /* the cache was cleared: new workers could not load it */
        return false;
    question q = {arena_create(), output, request, false};
    if (q.a != NULL)
        ask_guarded(&q);
    arena_destroy(q.a);
    return q.answer;
}

/* Facts on the heap own their strings, though the type says const: the front end's do not. */
static void free_string(const char *string)
{
    union {
        const char *borrowed;
        void *owned;
    } pointer = {.borrowed = string};
    alloc_free(pointer.owned);
}

void compile_output_clear(compile_output *output)
{
    if (output->temporary && output->directory != NULL)
        os_remove_tree(output->directory);
    for (int32_t i = 0; i < output->fact_count; i++) {
        free_string(output->facts[i].name);
        free_string(output->facts[i].value);
    }
    alloc_free(output->facts);
    alloc_free(output->pattern);
    alloc_free(output->object_path);
    alloc_free(output->directory);
    *output = (compile_output){0};
}
