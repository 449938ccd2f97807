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
#include "ops/ops.h"
#include "passes/passes.h"

#include "base/diag.h"

#include <string.h>

typedef struct verifier {
    ir_program *p; /* read only, but op_check wants to allocate */
    ir_function *f;
    const ir_stmt *s;
    const char *after;
    int64_t words;
    uint64_t *defined; /* variables that are assigned here, by id */
    /* Of the innermost loop: what is assigned at every break and continue so far; NULL: none yet. */
    uint64_t *at_break;
    uint64_t *at_continue;
    int32_t loops;
    pypto_status *errors;
} verifier;

static bool failed(const verifier *v)
{
    return !status_ok(*v->errors);
}

static void __attribute__((format(printf, 2, 3))) fail(verifier *v, const char *format, ...)
{
    if (failed(v))
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
    return (v->defined[var->id / 64] >> (var->id % 64) & 1) != 0;
}

static void define(verifier *v, const ir_var *var)
{
    v->defined[var->id / 64] |= UINT64_C(1) << (var->id % 64);
}

static void check_read(void *context, ir_var *var)
{
    verifier *v = context;
    if (failed(v))
        return;
    if (!is_registered(v, var))
        fail(v, "variable '%s' belongs to another function", var->name);
    else if (!is_defined(v, var) && !var->may_be_unset)
        fail(v, "variable '%s' is read where it is not assigned on every path", var->name);
}

/* ---- expressions ---- */

static char category(pypto_dtype dtype)
{
    if (ir_is_float(dtype))
        return 'f';
    return ir_is_integer(dtype) ? (char)'i' : dtype == PYPTO_TASK_ID ? (char)'t' : (char)'b';
}

static void check_op(verifier *v, const op_def *op, const ir_operand *operands, int32_t count,
                     pypto_span span, ir_type *result);
static void check_expr(verifier *v, const ir_expr *e);

static void check_operands(verifier *v, const ir_operand *operands, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (operands[i].kind == IR_OPERAND_EXPR)
            check_expr(v, operands[i].expr);
        for (int32_t k = 0; operands[i].kind == IR_OPERAND_LIST && k < operands[i].count; k++)
            check_expr(v, operands[i].exprs[k]);
    }
}

static void check_binary(verifier *v, const ir_expr *e)
{
    char a = category(e->a->dtype);
    if (a != category(e->b->dtype))
        fail(v, "operands of dtype %s and %s meet in one expression", pypto_dtype_name(e->a->dtype),
             pypto_dtype_name(e->b->dtype));
    bool compares = e->op >= IR_LT && e->op <= IR_NE;
    bool logical = e->op == IR_AND || e->op == IR_OR;
    bool wants_ints = e->op == IR_SHL || e->op == IR_SHR || e->op == IR_BITAND ||
                      e->op == IR_BITOR || e->op == IR_BITXOR;
    if (compares || logical ? e->dtype != PYPTO_BOOL : category(e->dtype) != a)
        fail(v, "an expression of dtype %s computes with %s", pypto_dtype_name(e->dtype),
             pypto_dtype_name(e->a->dtype));
    if ((logical && a != 'b') || (wants_ints && a != 'i') || (e->op == IR_DIV && a != 'f') ||
        (!compares && !logical && a == 'b') || a == 't')
        fail(v, "an operator that %s does not have", pypto_dtype_name(e->a->dtype));
}

static void check_expr(verifier *v, const ir_expr *e)
{
    if (e == NULL || failed(v)) {
        fail(v, "an expression is missing");
        return;
    }
    switch (e->kind) {
    case IR_INT:
        if (!ir_is_integer(e->dtype) && !(e->dtype == PYPTO_TASK_ID && e->integer == 0))
            fail(v, "an integer constant of dtype %s", pypto_dtype_name(e->dtype));
        break;
    case IR_FLOAT:
        if (!ir_is_float(e->dtype))
            fail(v, "a float constant of dtype %s", pypto_dtype_name(e->dtype));
        break;
    case IR_BOOL: break;
    case IR_VAR:
        if (e->var->type.kind != IR_SCALAR || e->var->type.dtype != e->dtype)
            fail(v, "'%s' is used as a scalar of dtype %s", e->var->name,
                 pypto_dtype_name(e->dtype));
        break;
    case IR_UNARY: check_expr(v, e->a); break;
    case IR_BINARY:
        check_expr(v, e->a);
        check_expr(v, e->b);
        if (!failed(v))
            check_binary(v, e);
        break;
    case IR_CONVERT: check_expr(v, e->a); break;
    case IR_OP: {
        ir_type result;
        check_operands(v, e->operands, e->operand_count);
        check_op(v, e->op_def, e->operands, e->operand_count, e->span, &result);
        break;
    }
    }
}

static void check_integer(verifier *v, const ir_expr *e, const char *what)
{
    check_expr(v, e);
    if (!failed(v) && !ir_is_integer(e->dtype))
        fail(v, "%s of dtype %s", what, pypto_dtype_name(e->dtype));
}

/* ---- operations ---- */

/* The table's own check, on a copy of the operands because it may normalise them. */
static void check_op(verifier *v, const op_def *op, const ir_operand *operands, int32_t count,
                     pypto_span span, ir_type *result)
{
    *result = (ir_type){.kind = IR_NONE};
    if (failed(v))
        return;
    if (count != op->param_count) {
        fail(v, "%s has %d operands", op->spellings[0], count);
        return;
    }
    if (!op_allowed(op, v->f->plane)) {
        fail(v, "%s stands in a function of the wrong plane", op->spellings[0]);
        return;
    }
    ir_operand copies[OP_MAX_PARAMS];
    if (count > 0)
        memcpy(copies, operands, (size_t)count * sizeof *copies);
    pypto_status errors = STATUS_OK;
    op_call call = {v->p, v->f, op, copies, span, &errors};
    if (!op_check(&call, result))
        fail(v, "%s", errors.diagnostics != NULL ? errors.diagnostics->message : op->spellings[0]);
    pypto_status_clear(&errors);
}

static void check_do(verifier *v, const ir_stmt *s)
{
    ir_type result;
    check_operands(v, s->operands, s->operand_count);
    check_op(v, s->op_def, s->operands, s->operand_count, s->span, &result);
    if (failed(v))
        return;
    if (s->target == NULL) {
        if (s->op_def->result_param < 0 && (ir_is_private(result.kind) || result.kind == IR_BUFFER))
            fail(v, "the result of %s has no place", s->op_def->spellings[0]);
        return;
    }
    bool same = s->target->type.kind == result.kind;
    if (same && (ir_is_private(result.kind) || result.kind == IR_SCALAR))
        same = ir_type_equal(&s->target->type, &result);
    if (!same)
        fail(v, "'%s' does not have the type of %s's result", s->target->name,
             s->op_def->spellings[0]);
    if (result.kind == IR_BUFFER &&
        (s->target->buffer < 0 || s->target->buffer >= v->p->buffers.count))
        fail(v, "'%s' is no registered buffer", s->target->name);
}

static void check_argument(verifier *v, const ir_operand *operand, const ir_var *param)
{
    bool ok = false;
    switch (param->type.kind) {
    case IR_SCALAR:
        ok = operand->kind == IR_OPERAND_EXPR &&
             category(operand->expr->dtype) == category(param->type.dtype);
        break;
    case IR_TENSOR:
        ok = operand->kind == IR_OPERAND_VAR &&
             (operand->var->type.kind == IR_TENSOR || operand->var->type.kind == IR_WINDOW);
        break;
    case IR_WINDOW:
        ok = operand->kind == IR_OPERAND_VAR && operand->var->type.kind == IR_WINDOW;
        break;
    default: break;
    }
    if (!ok)
        fail(v, "an argument that does not fit parameter '%s' of '%s'", param->name,
             v->s->callee->name);
}

static void check_launch(verifier *v, const ir_launch *l)
{
    if (v->f->plane != PLD_PLANE_CHIP)
        fail(v, "a task of a function that has none");
    if (l->blocks != NULL)
        check_integer(v, l->blocks, "a number of blocks");
    for (int32_t i = 0; i < l->after_count; i++) {
        check_expr(v, l->after[i]);
        if (!failed(v) && l->after[i]->dtype != PYPTO_TASK_ID)
            fail(v, "a task after a %s", pypto_dtype_name(l->after[i]->dtype));
    }
    for (int32_t i = 0; l->tested != NULL && i < l->tested->type.ndim; i++)
        check_integer(v, l->element[i], "an index of a predicate");
    if (l->tested != NULL)
        check_integer(v, l->limit, "a predicate");
}

static void check_call(verifier *v, const ir_stmt *s)
{
    const ir_function *callee = s->callee;
    if (s->target != NULL && (v->f->plane != PLD_PLANE_CHIP || s->target->type.kind != IR_SCALAR ||
                              s->target->type.dtype != PYPTO_TASK_ID))
        fail(v, "'%s' cannot hold a task", s->target->name);
    if (s->launch != NULL)
        check_launch(v, s->launch);
    if (callee == NULL && (s->operand_count != 0 || v->f->plane != PLD_PLANE_CHIP))
        fail(v, "a call of nothing");
    if (callee == NULL)
        return;
    bool planes = (v->f->plane == PLD_PLANE_HOST && callee->plane == PLD_PLANE_CHIP) ||
                  (v->f->plane == PLD_PLANE_HOST && callee->plane == PLD_PLANE_SUB) ||
                  (v->f->plane == PLD_PLANE_CHIP && callee->plane == PLD_PLANE_CORE) ||
                  (v->f->plane == PLD_PLANE_CORE && callee->plane == PLD_PLANE_CORE);
    if (!planes)
        fail(v, "a call of '%s', which is of the wrong plane", callee->name);
    else if (callee->index >= v->f->index)
        fail(v, "callee '%s' does not stand before its caller", callee->name);
    else if (s->operand_count != callee->params.count)
        fail(v, "a call of '%s' with %d arguments", callee->name, s->operand_count);
    else if (callee->plane == PLD_PLANE_SUB && (s->device != NULL || s->spread != NULL))
        fail(v, "a device for '%s', which runs on none", callee->name);
    else if (s->device != NULL && v->f->plane != PLD_PLANE_HOST)
        fail(v, "a device in a function that runs on one");
    else if (s->spread != NULL && (v->f->plane != PLD_PLANE_HOST || s->device != NULL))
        fail(v, "a dispatch to each device that is none");
    if (s->device != NULL)
        check_integer(v, s->device, "a device");
    check_operands(v, s->operands, s->operand_count);
    for (int32_t i = 0; i < s->operand_count && !failed(v); i++)
        check_argument(v, &s->operands[i], callee->params.items[i]);
}

static void check_assign(verifier *v, const ir_stmt *s)
{
    if (s->target == NULL || (s->value == NULL) == (s->source == NULL)) {
        fail(v, "an assignment needs a target and one value");
    } else if (s->value != NULL) {
        check_expr(v, s->value);
        if (!failed(v) && (s->target->type.kind != IR_SCALAR ||
                           category(s->target->type.dtype) != category(s->value->dtype)))
            fail(v, "'%s' is assigned a scalar of dtype %s", s->target->name,
                 pypto_dtype_name(s->value->dtype));
    } else if (s->source->type.kind != s->target->type.kind ||
               (ir_is_private(s->source->type.kind) &&
                !ir_value_fits(&s->source->type, &s->target->type))) {
        fail(v, "'%s' is assigned '%s', which has another type", s->target->name, s->source->name);
    }
}

/* ---- statements ---- */

static bool check_block(verifier *v, const ir_block *block);

static void check_target(verifier *v, const ir_stmt *s)
{
    if (s->target == NULL || failed(v))
        return;
    if (!is_registered(v, s->target))
        fail(v, "variable '%s' belongs to another function", s->target->name);
    else if ((s->target->kind == IR_VAR_LOOP) != (s->kind == IR_FOR) ||
             s->target->kind == IR_VAR_DIM)
        fail(v, "'%s' cannot be assigned here", s->target->name);
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
        fail(v, "a jump outside of loops");
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
    check_integer(v, s->start, "a loop bound");
    check_integer(v, s->stop, "a loop bound");
    check_integer(v, s->step, "a loop step");
    if (!failed(v) && ir_is_const_int(s->step, &step) && step == 0)
        fail(v, "a loop whose step is 0");
    if (!failed(v) && (s->target == NULL || !ir_is_integer(s->target->type.dtype)))
        fail(v, "a loop without an integer variable");
    check_target(v, s);
    (void)check_loop(v, s);
    if (!failed(v) && s->target != NULL) /* read inside the loop only */
        v->defined[s->target->id / 64] &= ~(UINT64_C(1) << (s->target->id % 64));
}

static void check_condition(verifier *v, const ir_stmt *s)
{
    check_expr(v, s->value);
    if (!failed(v) && s->value->dtype != PYPTO_BOOL)
        fail(v, "a condition of dtype %s", pypto_dtype_name(s->value->dtype));
}

static bool check_while(verifier *v, const ir_stmt *s)
{
    check_condition(v, s);
    return !failed(v) && check_loop(v, s);
}

/* True when the statement never reaches what follows. */
static bool check_if(verifier *v, const ir_stmt *s)
{
    check_condition(v, s);
    if (failed(v))
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
        fail(v, "a statement without a place");
    ir_visit_uses(s, check_read, v);
    bool ends = false;
    switch (s->kind) {
    case IR_ASSIGN: check_assign(v, s); break;
    case IR_DO: check_do(v, s); break;
    case IR_CALL: check_call(v, s); break;
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
    for (int64_t i = 0; i < block->count && !failed(v); i++)
        ends |= check_stmt(v, block->items[i]);
    return ends;
}

/* ---- functions ---- */

static void check_dims(verifier *v)
{
    for (int64_t i = 0; i < v->f->dims.count && !failed(v); i++) {
        const ir_dim *dim = &v->f->dims.items[i];
        bool param = dim->param >= 0 && dim->param < v->f->params.count;
        if (!param || dim->dim < 0 || dim->dim >= v->f->params.items[dim->param]->type.ndim ||
            dim->scale == 0 || dim->quotient < 0 || !is_registered(v, dim->var) ||
            dim->var->kind != IR_VAR_DIM)
            fail(v, "dynamic dimension %lld is not bound to a parameter", (long long)i);
        else
            define(v, dim->var);
    }
}

static void check_var(verifier *v, const ir_var *var, int64_t index)
{
    if (var->id != index)
        fail(v, "variable '%s' is not where its id says", var->name);
    else if (ir_is_private(var->type.kind) && ir_static_elems(&var->type) <= 0)
        fail(v, "tile '%s' has no static shape", var->name);
    bool named = v->after != NULL && strcmp(v->after, "names") == 0;
    bool planned = named || (v->after != NULL && strcmp(v->after, "plan_scratch") == 0);
    if (named && var->c_name == NULL)
        fail(v, "variable '%s' has no C name", var->name);
    if (planned && var->scratch_offset >= 0) {
        int64_t bytes = ir_static_bytes(&var->type);
        if (var->scratch_offset % 64 != 0 || var->scratch_offset + bytes > v->f->scratch_bytes)
            fail(v, "tile '%s' lies outside the scratch memory", var->name);
    }
}

static void check_function(verifier *v, ir_function *f, int64_t index)
{
    v->f = f;
    v->s = NULL;
    v->words = f->vars.count / 64 + 1;
    v->defined = arena_array(v->p->a, uint64_t, v->words);
    if (f->index != index)
        fail(v, "the function is not where its index says");
    for (int64_t i = 0; i < f->vars.count && !failed(v); i++)
        check_var(v, f->vars.items[i], i);
    for (int64_t i = 0; i < f->params.count && !failed(v); i++) {
        if (is_registered(v, f->params.items[i]) && f->params.items[i]->kind == IR_VAR_PARAM)
            define(v, f->params.items[i]);
        else
            fail(v, "parameter %lld is no variable of the function", (long long)i);
    }
    check_dims(v);
    for (int64_t i = 0; i < f->results.count && !failed(v); i++)
        if (!is_registered(v, f->results.items[i]) || f->results.items[i]->kind != IR_VAR_PARAM)
            fail(v, "result %lld is no parameter", (long long)i);
    check_block(v, &f->body);
}

pypto_status verify_program(ir_program *p, const char *after)
{
    pypto_status errors = STATUS_OK;
    verifier v = {.p = p, .after = after, .errors = &errors};
    if (p->functions.count == 0)
        fail(&v, "there is no function");
    for (int64_t i = 0; i < p->functions.count && !failed(&v); i++)
        check_function(&v, p->functions.items[i], i);
    return errors;
}
