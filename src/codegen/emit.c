/* A program as one C file, for people to read and for a C compiler to compile.
 *
 * In this order: a comment that says what the file is; the include; the functions of the script,
 * callees first, each with its #line directives; then, for the runtime, entries and tables. Called
 * by compile.c, after the passes. Nothing here can fail: what could be wrong with a program was
 * found before.
 *
 * Deterministic: everything is printed in the order of the IR's vectors, in the C locale. */
#include "codegen/emit.h"

#include "codegen/emit_internal.h"

#include <string.h>

static void emit_head(emitter *e)
{
    static const char *const planes[] = {"host function", "per-device wrapper", "in-core kernel",
                                         "SubWorker"};
    const ir_function *entry = e->p->functions.items[e->p->functions.count - 1];
    emit_line(e, "/* Program '%s', compiled by pypto " PYPTO_VERSION " from",
              emit_comment_text(e, e->p->name));
    emit_line(e, " * %s", emit_comment_text(e, entry->span.file != NULL ? entry->span.file : "?"));
    emit_line(e, " * and written for reading: edit the script, not this file.");
    emit_line(e, " *");
    for (int64_t i = 0; i < e->p->functions.count; i++) {
        const ir_function *f = e->p->functions.items[i];
        const char *scratch = f->scratch_bytes > 0 ? arena_printf(e->a, ", %lld bytes of scratch",
                                                                  (long long)f->scratch_bytes)
                                                   : "";
        emit_line(e, " *   %-20s %s, line %d%s", emit_comment_text(e, f->name), planes[f->plane],
                  f->span.line, scratch);
    }
    emit_line(e, " */");
}

static void find_copy(void *context, ir_stmt *s)
{
    bool *found = context;
    *found |= s->kind == IR_ASSIGN && s->source != NULL && ir_is_private(s->source->type.kind) &&
              s->source->scratch_offset != s->target->scratch_offset;
}

/* Operations on whole tiles have a function per element type, in a header of its own. */
static void find_tile_operation(void *context, ir_stmt *s)
{
    bool *found = context;
    const char *emitted = s->kind == IR_DO ? s->op_def->emit : "";
    const bool whole =
        strstr(emitted, "_{element}(") != NULL || strstr(emitted, "_{lhs.type}(") != NULL;
    *found |= strstr(emitted, "pld_holds_") != NULL || (whole && !op_is_elementwise(s->op_def));
}

static void emit_includes(emitter *e)
{
    bool copies = false;
    bool tiles = false;
    for (int64_t i = 0; i < e->p->functions.count; i++) {
        ir_visit_stmts(&e->p->functions.items[i]->body, find_copy, &copies);
        ir_visit_stmts(&e->p->functions.items[i]->body, find_tile_operation, &tiles);
    }
    if (tiles)
        emit_line(e, "#include <pypto/pld_tile.h>");
    emit_line(e, "#include <pypto/program.h>");
    emit_blank(e);
    if (copies) {
        emit_line(e, "#include <string.h>");
        emit_blank(e);
    }
}

typedef struct called {
    bool *functions; /* by index */
} called;

static void find_callee(void *context, ir_stmt *s)
{
    called *c = context;
    if (s->kind == IR_CALL && s->callee != NULL)
        c->functions[s->callee->index] = true;
}

/* Tables stand behind the functions that name them. */
static void emit_declarations(emitter *e)
{
    called c = {arena_array(e->a, bool, e->p->functions.count)};
    bool any = false;
    for (int64_t i = 0; i < e->p->functions.count; i++)
        ir_visit_stmts(&e->p->functions.items[i]->body, find_callee, &c);
    for (int64_t i = 0; i < e->p->functions.count; i++) {
        if (!c.functions[i])
            continue;
        emit_line(e, "static const pld_function %s_function;", e->p->functions.items[i]->c_name);
        any = true;
    }
    if (any)
        emit_blank(e);
}

void emit_program(text *out, const ir_program *p, emit_lines_of *lines)
{
    emitter e = {.a = p->a, .out = out, .p = p, .c_line = 1};
    emit_head(&e);
    emit_includes(&e);
    emit_declarations(&e);
    for (int64_t i = 0; i < p->functions.count; i++) {
        const int64_t first = e.c_line;
        emit_function(&e, p->functions.items[i]);
        if (lines != NULL)
            lines[i] = (emit_lines_of){first, e.c_line - 1};
        emit_blank(&e);
    }
    emit_own_place(&e);
    emit_line(&e, "/* For the runtime: entries, which unpack arguments, and tables. */");
    emit_blank(&e);
    for (int64_t i = 0; i < p->functions.count; i++)
        emit_table(&e, p->functions.items[i]);
    emit_own_place(&e);
    emit_program_table(&e);
}
