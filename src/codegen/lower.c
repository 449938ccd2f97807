/* Lowering. Memory is the caller's arena. */
#include "codegen/lower.h"

#include "codegen/describe.h"
#include "codegen/emit.h"
#include "passes/passes.h"

#include "base/diag.h"

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
