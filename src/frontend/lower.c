/* The driver of the front end: from the entry function to a whole ir_program.
 *
 * specialise() lowers one function for one typing of its arguments. It is called for the entry, and by
 * calls.c for every callee when it is first met, so functions are finished in the order "callees before
 * callers", which is the order that the program wants. A call of a function with a RUNNING instance is a
 * recursion.
 *
 * Only parameters annotated without a shape (a bare pl.Tensor) make two typings of one function differ:
 * all others have the type that is written, whoever calls.
 *
 * Errors are collected in frontend.errors; each gets the text of its source line here. At the end they are
 * put in order, see base/diag.h. */
#include "frontend/lower.h"
#include "frontend/scopes.h"
#include "frontend/signature.h"
#include "frontend/statements.h"

#include <stdarg.h>
#include <string.h>

/* ---- errors ---- */

/* What to do is said always: where the place knows nothing better, what the table of explanations says.
 * Of a name that is still to come there is nothing to say. */
static void give_hint(frontend *fe, const pypto_diagnostic *last)
{
    for (diag_code code = 0; code < DIAG_COUNT; code++)
        if (code != DIAG_LATER && strcmp(diag_lookup(code)->code, last->code) == 0)
            diag_hint(&fe->errors, diag_explain(code)->fix);
}

void reported(frontend *fe)
{
    fe->error_count++;
    const pypto_diagnostic *last = fe->errors.diagnostics;
    while (last != NULL && last->next != NULL)
        last = last->next;
    if (last != NULL && last->hint == NULL)
        give_hint(fe, last);
    if (last == NULL || last->source != NULL || last->span.line == 0 || last->span.file == NULL)
        return;
    const char *line =
        fe->embedder->line_text(fe->embedder->context, fe->a, last->span.file, last->span.line);
    if (line != NULL)
        diag_source(&fe->errors, line);
}

dsl_value report(frontend *fe, diag_code code, pypto_span span, const char *hint,
                 const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diag_vadd(&fe->errors, code, span, hint, format, args);
    va_end(args);
    reported(fe);
    return poison();
}

/* ---- sources ---- */

typedef struct source_entry {
    const frontend_source *source; /* NULL: there is none, which has been reported */
} source_entry;

const frontend_source *source_of(frontend *fe, int32_t function)
{
    const char *key = arena_printf(fe->a, "%d", function);
    source_entry *entry = map_get(&fe->sources, key);
    if (entry != NULL)
        return entry->source;
    entry = arena_new(fe->a, source_entry);
    entry->source = fe->embedder->source(fe->embedder->context, fe->a, function, &fe->errors);
    if (entry->source == NULL && status_ok(fe->errors))
        report(fe, DIAG_NO_SOURCE, SPAN_NONE, "define the function in a file",
               "the source of a DSL function cannot be read");
    else if (entry->source == NULL)
        reported(fe);
    map_set(&fe->sources, key, entry);
    return entry->source;
}

/* ---- specialisations ---- */

static void key_type(text *key, const ir_type *type)
{
    text_printf(key, "%d:%s[", (int)type->kind, pypto_dtype_name(type->dtype));
    for (int32_t i = 0; i < type->ndim; i++) {
        int64_t extent = 0;
        if (ir_is_const_int(type->shape[i], &extent))
            text_printf(key, "%lld,", (long long)extent);
        else
            text_add(key, "?,");
    }
    text_add(key, "]");
}

/* The function, the types of those arguments that its annotations leave open (windows in the place of domains among
 * them), and which are valid in part. */
static const char *instance_key(frontend *fe, int32_t function, const syntax_function *syntax,
                                const given_param *given, int32_t count)
{
    text key = {.a = fe->a};
    text_printf(&key, "%d", function);
    for (int32_t i = 0; i < count && i < syntax->params.count; i++) {
        if (given[i].kind == GIVEN_TYPE && given[i].type.ragged)
            text_printf(&key, " %d ragged", i);
        const syntax_expr *annotation = syntax->params.items[i].annotation;
        if (!annotation_is_bare(fe, function, annotation) &&
            !annotation_is_comm(fe, function, annotation))
            continue;
        text_printf(&key, " %d=", i);
        if (given[i].kind == GIVEN_TYPE)
            key_type(&key, &given[i].type);
    }
    return key.bytes;
}

/* ---- leftovers ---- */

static void mark_used(void *context, ir_var *var)
{
    bool *used = context;
    used[var->id] = true;
}

static void mark_stmt(void *context, ir_stmt *s)
{
    ir_visit_uses(s, mark_used, context);
    if (s->target != NULL)
        mark_used(context, s->target);
}

static bool is_outer(const ir_var *var)
{
    return var->kind == IR_VAR_PARAM || var->kind == IR_VAR_DIM;
}

/* Those of loop bodies that were lowered more than once. Identities and versions count what is left. */
void prune_variables(frontend *fe, ir_function *f)
{
    bool *used = arena_array(fe->a, bool, f->vars.count);
    ir_visit_stmts(&f->body, mark_stmt, used);
    ir_var **kept = arena_array(fe->a, ir_var *, f->vars.count);
    int64_t count = 0;
    for (int64_t i = 0; i < f->vars.count; i++) { /* results of its own became parameters late */
        if (is_outer(f->vars.items[i]))
            kept[count++] = f->vars.items[i];
    }
    for (int64_t i = 0; i < f->vars.count; i++) {
        if (used[i] && !is_outer(f->vars.items[i]))
            kept[count++] = f->vars.items[i];
    }
    f->latest = map_make(fe->a);
    for (int64_t i = 0; i < count; i++) {
        ir_var *var = f->vars.items[i] = kept[i];
        const ir_var *previous = map_get(&f->latest, var->name);
        var->version = previous == NULL ? 0 : previous->version + 1;
        map_set(&f->latest, var->name, var);
        var->id = (int32_t)i;
    }
    f->vars.count = count;
}

/* The body of a SubWorker is none of ours. Its call is worth what it writes first, whatever it returns. */
static void finish_sub(lowering *fl)
{
    for (int64_t i = 0; i < fl->ir->params.count && fl->ir->results.count == 0; i++) {
        ir_var *param = fl->ir->params.items[i];
        if (param->type.kind == IR_TENSOR && param->direction != PLD_IN)
            vec_push(fl->a, &fl->ir->results, param);
    }
}

static void lower_function(frontend *fe, instance *self, const frontend_source *source,
                           const given_param *given, int32_t count)
{
    function_notes notes = {0};
    loop_memories memories = {0};
    lowering fl = {.fe = fe,
                   .a = fe->a,
                   .function = self->function,
                   .syntax = source->syntax,
                   .loop_memories = &memories,
                   .ir = self->ir,
                   .notes = &notes,
                   .no_auto_scope = source->no_auto_scope};
    const syntax_function *syntax = source->syntax;
    int64_t errors_before = fe->error_count;
    for (int64_t i = 0; i < syntax->params.count; i++)
        binding_declare(&fl, syntax->params.items[i].name, true);
    for (int64_t i = 0; i < syntax->refusals.count; i++) {
        if (syntax->refusals.items[i].name != NULL)
            binding_declare(&fl, syntax->refusals.items[i].name, true);
    }
    binding_collect(&fl, &syntax->body);
    fl.block = &self->ir->body;

    lower_signature(&fl, given, count);
    self->signature_ok = fe->error_count == errors_before;
    for (int64_t i = 0; i < self->ir->params.count; i++)
        self->signature_ok = self->signature_ok && self->ir->params.items[i]->type.kind != IR_NONE;
    if (source->plane == PLD_PLANE_SUB) {
        finish_sub(&fl);
    } else {
        lower_block(&fl, &syntax->body);
        make_result_params(&fl);
        check_results(&fl);
    }
    clear_late_vars(&fl);
    prune_variables(fe, self->ir);
    check_writes(&fl);
    bool failed = fe->error_count != errors_before || !self->signature_ok;
    self->state = failed ? INSTANCE_FAILED : INSTANCE_DONE;
}

instance *specialise(frontend *fe, int32_t function, const given_param *given, int32_t count)
{
    const frontend_source *source = source_of(fe, function);
    if (source == NULL)
        return NULL;
    const char *key = instance_key(fe, function, source->syntax, given, count);
    for (int64_t i = 0; i < fe->instances.count; i++) {
        if (strcmp(fe->instances.items[i]->key, key) == 0)
            return fe->instances.items[i];
    }
    instance *self = arena_new(fe->a, instance);
    self->key = key;
    self->function = function;
    self->ir =
        ir_function_create(fe->program, source->syntax->name, source->plane, source->syntax->span);
    vec_push(fe->a, &fe->instances, self);
    lower_function(fe, self, source, given, count);
    finish_scopes(fe, self->ir);
    vec_push(fe->a, &fe->finished, self->ir);
    return self;
}

/* ---- the driver ---- */

static void order_functions(frontend *fe)
{
    for (int64_t i = 0; i < fe->finished.count; i++) {
        fe->program->functions.items[i] = fe->finished.items[i];
        fe->finished.items[i]->index = (int32_t)i;
    }
    fe->program->functions.count = fe->finished.count; /* without scopes of repeated loop bodies */
}

pypto_status frontend_check(arena *a, const frontend_embedder *embedder, const int32_t *functions,
                            int32_t count)
{
    frontend_result result = {0};
    frontend *fe = arena_new(a, frontend);
    fe->a = a;
    fe->embedder = embedder;
    fe->result = &result;
    fe->answers = map_make(a);
    fe->sources = map_make(a);
    fe->checking = true;
    fe->program = ir_program_create(a, "check");
    for (int32_t i = 0; i < count; i++)
        (void)specialise(fe, functions[i], NULL, 0);
    diag_sort(&fe->errors);
    return fe->errors;
}

pypto_status frontend_lower(arena *a, const frontend_embedder *embedder, int32_t entry,
                            const frontend_arg *args, int32_t arg_count, frontend_result *result)
{
    *result = (frontend_result){0};
    frontend *fe = arena_new(a, frontend);
    fe->a = a;
    fe->embedder = embedder;
    fe->result = result;
    fe->answers = map_make(a);
    fe->sources = map_make(a);
    lower_entry(fe, entry, args, arg_count);
    if (status_ok(fe->errors))
        order_functions(fe);
    diag_sort(&fe->errors);
    return fe->errors;
}
