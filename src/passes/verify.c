/* The verifier: is this IR what ir.h promises? Runs after the front end and after each pass.
 *
 * Whatever it finds is a defect of the compiler, never of the user's program, so it reports one
 * VERIFIER diagnostic per run: the first, with function, statement and rule. What it knows:
 *
 *   - variables and functions are registered where their ids say; callees stand before callers
 *   - every variable is assigned on every path before it is read. A loop's body counts as run once,
 *     because a script may use after a loop what the loop has set; a break must have set it too
 *   - break and continue stand in a loop, at the end of their block
 *   - operations have the operands and the result that the op table's own check accepts
 *     (op_check), and stand in a plane where the table allows them
 *   - expressions compute within one category (integer, float, bool); loops and conditions have
 *     integer and BOOL values; a loop variable is assigned by its loop only and read inside it only
 *   - calls go from host to chip, from chip to core and from core to core, with one operand per parameter of its kind
 *   - statements have places in a script
 *   - and, as soon as the pass has run that fills it in: tiles have places inside the kernel's
 *     scratch memory, everything has a C name */
#include "passes/verify_internal.h"

#include "base/diag.h"

#include "base/bits.h"

#include <string.h>

void verify_fail(verifier *v, const char *format, ...)
{
    if (verify_failed(v))
        return;
    va_list args;
    va_start(args, format);
    const char *message = arena_vprintf(v->p->a, format, args);
    va_end(args);
    pypto_span span = v->s != NULL ? v->s->span : v->f != NULL ? v->f->span : SPAN_NONE;
    diag_add(v->errors, DIAG_VERIFIER, span, "please report this, with the script",
             "after %s, in '%s': %s", v->after != NULL ? v->after : "the front end",
             v->f != NULL ? v->f->name : v->p->name, message);
}

/* ---- variables ---- */

static bool is_registered(const verifier *v, const ir_var *var)
{
    return var->id >= 0 && var->id < v->f->vars.count && v->f->vars.items[var->id] == var;
}

static bool is_defined(const verifier *v, const ir_var *var)
{
    return bits_have(v->defined, var->id);
}

static void define(verifier *v, const ir_var *var)
{
    bits_add(v->defined, var->id);
}

static void check_read(void *context, ir_var *var)
{
    verifier *v = context;
    if (verify_failed(v))
        return;
    if (!is_registered(v, var))
        verify_fail(v, "variable '%s' belongs to another function", var->name);
    else if (!is_defined(v, var) && !var->may_be_unset)
        verify_fail(v, "variable '%s' is read where it is not assigned on every path", var->name);
}

/* ---- statements ---- */

static bool check_block(verifier *v, const ir_block *block);

static void check_target(verifier *v, const ir_stmt *s)
{
    if (s->target == NULL || verify_failed(v))
        return;
    if (!is_registered(v, s->target))
        verify_fail(v, "variable '%s' belongs to another function", s->target->name);
    else if ((s->target->kind == IR_VAR_LOOP) != (s->kind == IR_FOR) ||
             s->target->kind == IR_VAR_DIM)
        verify_fail(v, "'%s' cannot be assigned here", s->target->name);
    else
        define(v, s->target);
}

static void intersect(const verifier *v, uint64_t *into, const uint64_t *set)
{
    for (int64_t i = 0; i < v->words; i++)
        into[i] &= set[i];
}

static uint64_t *copy_defined(const verifier *v)
{
    uint64_t *copy = arena_array(v->p->a, uint64_t, v->words);
    memcpy(copy, v->defined, (size_t)v->words * sizeof *copy);
    return copy;
}

static void check_jump(verifier *v, const ir_stmt *s)
{
    uint64_t **at = s->kind == IR_BREAK ? &v->at_break : &v->at_continue;
    if (v->loops == 0)
        verify_fail(v, "a jump outside of loops");
    else if (*at == NULL)
        *at = copy_defined(v);
    else
        intersect(v, *at, v->defined);
}

/* True when nothing follows the loop. */
static bool check_loop(verifier *v, const ir_stmt *s)
{
    uint64_t *at_break = v->at_break;
    uint64_t *at_continue = v->at_continue;
    uint64_t *before = copy_defined(v);
    bool endless = s->kind == IR_WHILE && s->value->kind == IR_BOOL && s->value->integer != 0;
    v->at_break = NULL;
    v->at_continue = NULL;
    v->loops++;
    bool ends = check_block(v, &s->body);
    v->loops--;
    /* The ends of turns and the breaks lead out; past a body that always returns, the way in does. */
    uint64_t *exit = ends ? NULL : v->defined;
    if (v->at_continue != NULL && exit != NULL)
        intersect(v, exit, v->at_continue);
    else if (v->at_continue != NULL)
        exit = v->at_continue;
    if (endless)
        exit = NULL;
    if (v->at_break != NULL && exit != NULL)
        intersect(v, exit, v->at_break);
    else if (v->at_break != NULL)
        exit = v->at_break;
    bool leaves = exit != NULL || !endless;
    memcpy(before, exit != NULL ? exit : before, (size_t)v->words * sizeof *before);
    memcpy(v->defined, before, (size_t)v->words * sizeof *before);
    v->at_break = at_break;
    v->at_continue = at_continue;
    return !leaves;
}

static void check_for(verifier *v, const ir_stmt *s)
{
    int64_t step;
    verify_integer(v, s->start, "a loop bound");
    verify_integer(v, s->stop, "a loop bound");
    verify_integer(v, s->step, "a loop step");
    if (!verify_failed(v) && ir_is_const_int(s->step, &step) && step == 0)
        verify_fail(v, "a loop whose step is 0");
    if (!verify_failed(v) && (s->target == NULL || !ir_is_integer(s->target->type.dtype)))
        verify_fail(v, "a loop without an integer variable");
    check_target(v, s);
    (void)check_loop(v, s);
    if (!verify_failed(v) && s->target != NULL) /* read inside the loop only */
        bits_remove(v->defined, s->target->id);
}

static void check_condition(verifier *v, const ir_stmt *s)
{
    verify_expr(v, s->value);
    if (!verify_failed(v) && s->value->dtype != PYPTO_BOOL)
        verify_fail(v, "a condition of dtype %s", pypto_dtype_name(s->value->dtype));
}

static bool check_while(verifier *v, const ir_stmt *s)
{
    check_condition(v, s);
    return !verify_failed(v) && check_loop(v, s);
}

/* True when the statement never reaches what follows. */
static bool check_if(verifier *v, const ir_stmt *s)
{
    check_condition(v, s);
    if (verify_failed(v))
        return false;
    uint64_t *before = v->defined;
    size_t bytes = (size_t)v->words * sizeof *before;
    uint64_t *then = arena_array(v->p->a, uint64_t, v->words);
    uint64_t *orelse = arena_array(v->p->a, uint64_t, v->words);
    memcpy(then, before, bytes);
    memcpy(orelse, before, bytes);
    v->defined = then;
    bool then_ends = check_block(v, &s->body);
    v->defined = orelse;
    bool orelse_ends = check_block(v, &s->orelse);
    v->defined = before;
    for (int64_t i = 0; i < v->words; i++)
        before[i] = then_ends ? orelse[i] : orelse_ends ? then[i] : then[i] & orelse[i];
    return then_ends && orelse_ends;
}

static bool check_stmt(verifier *v, const ir_stmt *s)
{
    v->s = s;
    if (s->span.line <= 0 || s->span.file == NULL)
        verify_fail(v, "a statement without a place");
    ir_visit_uses(s, check_read, v);
    bool ends = false;
    switch (s->kind) {
    case IR_ASSIGN: verify_assign(v, s); break;
    case IR_DO: verify_do(v, s); break;
    case IR_CALL: verify_call(v, s); break;
    case IR_FOR: check_for(v, s); break;
    case IR_WHILE: ends = check_while(v, s); break;
    case IR_IF: ends = check_if(v, s); break;
    case IR_BREAK:
    case IR_CONTINUE:
        check_jump(v, s);
        ends = true;
        break;
    case IR_RETURN: ends = true; break;
    }
    if (s->kind == IR_ASSIGN || s->kind == IR_DO || s->kind == IR_CALL)
        check_target(v, s);
    return ends;
}

static bool check_block(verifier *v, const ir_block *block)
{
    bool ends = false;
    for (int64_t i = 0; i < block->count && !verify_failed(v); i++)
        ends |= check_stmt(v, block->items[i]);
    return ends;
}

/* ---- functions ---- */

static void check_dims(verifier *v)
{
    for (int64_t i = 0; i < v->f->dims.count && !verify_failed(v); i++) {
        const ir_dim *dim = &v->f->dims.items[i];
        bool param = dim->param >= 0 && dim->param < v->f->params.count;
        if (!param || dim->dim < 0 || dim->dim >= v->f->params.items[dim->param]->type.ndim ||
            dim->scale == 0 || dim->quotient < 0 || !is_registered(v, dim->var) ||
            dim->var->kind != IR_VAR_DIM)
            verify_fail(v, "dynamic dimension %lld is not bound to a parameter", (long long)i);
        else
            define(v, dim->var);
    }
}

static void check_var(verifier *v, const ir_var *var, int64_t index)
{
    if (var->id != index)
        verify_fail(v, "variable '%s' is not where its id says", var->name);
    else if (ir_is_private(var->type.kind) && ir_static_elems(&var->type) <= 0)
        verify_fail(v, "tile '%s' has no static shape", var->name);
    bool named = v->after != NULL && strcmp(v->after, "names") == 0;
    bool planned = named || (v->after != NULL && strcmp(v->after, "plan_scratch") == 0);
    if (named && var->c_name == NULL)
        verify_fail(v, "variable '%s' has no C name", var->name);
    if (planned && var->scratch_offset >= 0) {
        int64_t bytes = ir_static_bytes(&var->type);
        if (var->scratch_offset % 64 != 0 || var->scratch_offset + bytes > v->f->scratch_bytes)
            verify_fail(v, "tile '%s' lies outside the scratch memory", var->name);
    }
}

static void check_function(verifier *v, ir_function *f, int64_t index)
{
    v->f = f;
    v->s = NULL;
    v->words = f->vars.count / 64 + 1;
    v->defined = arena_array(v->p->a, uint64_t, v->words);
    if (f->index != index)
        verify_fail(v, "the function is not where its index says");
    for (int64_t i = 0; i < f->vars.count && !verify_failed(v); i++)
        check_var(v, f->vars.items[i], i);
    for (int64_t i = 0; i < f->params.count && !verify_failed(v); i++) {
        if (is_registered(v, f->params.items[i]) && f->params.items[i]->kind == IR_VAR_PARAM)
            define(v, f->params.items[i]);
        else
            verify_fail(v, "parameter %lld is no variable of the function", (long long)i);
    }
    check_dims(v);
    for (int64_t i = 0; i < f->results.count && !verify_failed(v); i++)
        if (!is_registered(v, f->results.items[i]) || f->results.items[i]->kind != IR_VAR_PARAM)
            verify_fail(v, "result %lld is no parameter", (long long)i);
    check_block(v, &f->body);
}

pypto_status verify_program(ir_program *p, const char *after)
{
    pypto_status errors = STATUS_OK;
    verifier v = {.p = p, .after = after, .errors = &errors};
    if (p->functions.count == 0)
        verify_fail(&v, "there is no function");
    for (int64_t i = 0; i < p->functions.count && !verify_failed(&v); i++)
        check_function(&v, p->functions.items[i], i);
    return errors;
}
