/* Lowering, and compile_lower(), which does nothing else. Memory is the caller's arena; exhausted memory jumps to the
 * caller's recovery. */
#include "codegen/lower.h"

#include "codegen/describe.h"
#include "codegen/emit.h"
#include "passes/passes.h"

#include "base/alloc.h"
#include "base/diag.h"

#include <fenv.h>

/* Passes know no source text: each of their errors gets its line here. */
static void add_sources(arena *a, const frontend_embedder *embedder, pypto_status *status)
{
    pypto_status all = STATUS_OK;
    pypto_diagnostic *next;
    for (pypto_diagnostic *d = status->diagnostics; d != NULL; d = next) {
        next = d->next;
        d->next = NULL;
        pypto_status one = {d->kind, d};
        if (d->source == NULL && d->span.line > 0 && d->span.file != NULL) {
            const char *line =
                embedder->line_text(embedder->context, a, d->span.file, d->span.line);
            if (line != NULL)
                diag_source(&one, line);
        }
        diag_append(&all, &one);
    }
    *status = all;
    diag_sort(status);
}

/* ---- the program behind each pass ---- */

typedef struct stage_notes {
    arena *a;
    lowered *out;
} stage_notes;

static void note_stage(void *context, const char *name, const ir_program *p)
{
    const stage_notes *notes = context;
    lower_stage stage = {name, {.a = notes->a}};
    ir_print_program(&stage.ir, p);
    vec_push(notes->a, &notes->out->stages, stage);
}

pypto_status lower_program(arena *a, const compile_request *request, const platform *target,
                           lowered *out)
{
    *out = (lowered){0};
    pypto_status status = frontend_lower(a, request->embedder, request->entry, request->args,
                                         request->arg_count, &out->result);
    if (!status_ok(status))
        return status;
    ir_program *p = out->result.program;
    stage_notes notes = {a, out};
    const pass_observer observer = {note_stage, &notes};
    status = passes_run(p, target, request->stages ? &observer : NULL);
    if (!status_ok(status)) {
        add_sources(a, request->embedder, &status);
        return status;
    }
    emit_lines_of *lines = arena_array(a, emit_lines_of, p->functions.count);
    out->text = (program_text){{.a = a}, {.a = a}, {.a = a}};
    ir_print_program(&out->text.ir, p);
    emit_program(&out->text.c, p, lines);
    describe_program(&out->text.description, p, lines);
    return STATUS_OK;
}

void lower_with_default_rounding(void (*steps)(void *context), void *context)
{
    fenv_t callers;
    fegetenv(&callers);
    fesetenv(FE_DFL_ENV);
    steps(context);
    fesetenv(&callers);
}

/* ---- only lowering ---- */

typedef struct lower_job {
    arena *a;
    const compile_request *request;
    const platform *target;
    lowered made;
    pypto_status status;
} lower_job;

static void lower_guarded(void *context)
{
    lower_job *j = context;
    jmp_buf recovery;
    if (setjmp(recovery) != 0) {
        pypto_status_clear(&j->status);
        j->status = diag_no_memory();
        return;
    }
    arena_set_recovery(j->a, &recovery);
    j->status = lower_program(j->a, j->request, j->target, &j->made);
}

static bool copy_text(const text *from, char **to)
{
    *to = alloc_strdup(from->bytes);
    return *to != NULL;
}

static bool copy_stages(const lowered *from, compile_text *to)
{
    to->stages = alloc_zeroed(from->stages.count + 1, (int64_t)sizeof *to->stages);
    if (to->stages == NULL)
        return false;
    for (int64_t i = 0; i < from->stages.count; i++) {
        to->stages[i].name = from->stages.items[i].name;
        to->stage_count++;
        if (!copy_text(&from->stages.items[i].ir, &to->stages[i].ir))
            return false;
    }
    return true;
}

pypto_status compile_lower(const compile_request *request, compile_text *output)
{
    lower_job j = {.request = request, .status = STATUS_OK};
    *output = (compile_text){0};
    j.target = platform_find(request->platform);
    if (j.target == NULL)
        return diag_status(DIAG_BAD_PLATFORM, NULL, "Invalid platform '%s'; there are %s",
                           request->platform, platform_names());
    j.a = arena_create();
    if (j.a == NULL)
        return diag_no_memory();
    lower_with_default_rounding(lower_guarded, &j);
    if (status_ok(j.status) &&
        !(copy_text(&j.made.text.c, &output->c) && copy_text(&j.made.text.ir, &output->ir) &&
          copy_text(&j.made.text.description, &output->description) &&
          copy_stages(&j.made, output))) {
        compile_text_clear(output);
        j.status = diag_no_memory();
    }
    arena_destroy(j.a);
    return j.status;
}

void compile_text_clear(compile_text *output)
{
    for (int32_t i = 0; i < output->stage_count; i++)
        alloc_free(output->stages[i].ir);
    alloc_free(output->stages);
    alloc_free(output->c);
    alloc_free(output->ir);
    alloc_free(output->description);
    *output = (compile_text){0};
}
