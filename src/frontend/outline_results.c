/* Values of a scope that are needed behind it: keep_scope_value().
 *
 * A number is computed once more behind the call, if that takes nothing that only the kernel has. Else the scope
 * gets one parameter more, a tensor that the function around creates in front of the call: the scope stores the
 * value in it at its end, and a number is read out of it behind the call. */
#include "frontend/expressions.h"
#include "frontend/outline_internal.h"

/* ---- a parameter more ---- */

/* The last parameter of the scope, for what it has computed. */
static ir_var *add_result(lowering *fl, const scope_call *scope, int64_t name, const dsl_value *v,
                          const dsl_value *tensor)
{
    ir_function *f = scope->f;
    ir_var *param = ir_var_create(fl->fe->program, f, IR_VAR_PARAM, fl->names.names[name],
                                  tensor->var->type, v->span);
    param->direction = PLD_OUT;
    ir_function *around = fl->ir;
    ir_block *block = fl->block;
    fl->ir = f;
    fl->block = &f->body;
    const dsl_value target = var_value(fl->a, param, v->span);
    dsl_value *zeros = arena_array(fl->a, dsl_value, PYPTO_MAX_DIMS);
    for (int32_t d = 0; d < param->type.ndim; d++)
        zeros[d] = literal_int(fl->a, 0, v->span);
    const dsl_value origin = tuple_value(zeros, param->type.ndim, v->span);
    if (v->kind == VALUE_SCALAR) {
        const dsl_value values[3] = {target, origin, *v};
        (void)lower_values(fl, op_get(OP_WRITE), values, 3, v->span, -1);
    } else if (v->var->type.kind == IR_TENSOR) {
        const dsl_value values[3] = {target, *v, origin};
        (void)lower_values(fl, op_get(OP_ASSEMBLE), values, 3, v->span, -1);
    } else {
        const dsl_value values[3] = {*v, origin, target};
        (void)lower_values(fl, op_get(OP_STORE), values, 3, v->span, -1);
    }
    fl->ir = around;
    fl->block = block;
    return param;
}

static void pass_result(lowering *fl, const scope_call *scope, ir_var *tensor)
{
    ir_stmt *call = scope->call;
    ir_operand *operands = arena_array(fl->a, ir_operand, call->operand_count + 1);
    for (int32_t i = 0; i < call->operand_count; i++)
        operands[i] = call->operands[i];
    operands[call->operand_count++] =
        (ir_operand){.kind = IR_OPERAND_VAR, .var = tensor, .span = call->span};
    call->operands = operands;
}

/* ---- computing once more ---- */

/* Statements of `from` go into the block of the call, in front of it or behind it. */
static void insert_beside(lowering *fl, const scope_call *scope, const ir_block *from, bool behind)
{
    int64_t at = ir_index_of(scope->block, scope->call) + (behind ? 1 : 0);
    for (int64_t i = 0; i < from->count; i++)
        insert_stmt(fl, scope->block, at + i, from->items[i]);
}

/* Variables that a number is traced back through; one that uses another twice is followed twice. */
enum { MOST_STEPS = 256 };

typedef struct recomputation {
    lowering *fl; /* of the function around */
    const scope_call *scope;
    int32_t steps;
} recomputation;

static const ir_expr *recomputed_var(void *context, ir_var *var);

/* An expression of the scope, computed once more behind it, of what the call passes; NULL if that takes more. */
static const ir_expr *recomputed(recomputation *r, const ir_expr *e)
{
    return ir_substitute(r->fl->a, e, recomputed_var, r);
}

/* An element that the scope has read can be read behind it just as well, if nothing changes it: the scope only
 * waits. */
static const ir_expr *recomputed_read(recomputation *r, const ir_stmt *s)
{
    lowering *fl = r->fl;
    const scope_call *scope = r->scope;
    const ir_operand *indices = &s->operands[1];
    dsl_value *items = arena_array(fl->a, dsl_value, indices->count + 1);
    const ir_var *tensor = s->operands[0].var;
    ir_var *outer = NULL;
    for (int32_t i = 0; i < scope->call->operand_count; i++) {
        if (scope->f->params.items[i] == tensor)
            outer = scope->call->operands[i].var;
    }
    if (!scope->defers || outer == NULL || indices->kind != IR_OPERAND_LIST)
        return NULL;
    for (int32_t i = 0; i < indices->count; i++) {
        const ir_expr *index = recomputed(r, indices->exprs[i]);
        if (index == NULL)
            return NULL;
        items[i] = scalar_value(index, s->span);
    }
    const dsl_value values[2] = {var_value(fl->a, outer, s->span),
                                 tuple_value(items, indices->count, s->span)};
    const dsl_value v = lower_values(fl, op_get(OP_READ), values, 2, s->span, -1);
    return v.kind == VALUE_SCALAR ? v.expr : NULL;
}

static const ir_expr *recomputed_var(void *context, ir_var *var)
{
    recomputation *r = context;
    const scope_call *scope = r->scope;
    if (++r->steps > MOST_STEPS)
        return NULL;
    for (int32_t i = 0; i < scope->call->operand_count; i++) {
        if (scope->f->params.items[i] == var)
            return scope->call->operands[i].expr;
    }
    int64_t count = 0;
    const ir_stmt *s = ir_definition(&scope->f->body, var, &count);
    if (count != 1 || ir_index_of(&scope->f->body, s) == scope->f->body.count)
        return NULL;
    if (s->kind == IR_ASSIGN && s->value != NULL)
        return recomputed(r, s->value);
    return s->kind == IR_DO && s->op_def->id == OP_READ ? recomputed_read(r, s) : NULL;
}

/* Numbers that need nothing of the kernel: nobody waits for it. */
static bool recompute_number(lowering *fl, const scope_call *scope, int64_t name, binding *b)
{
    ir_block *block = fl->block;
    ir_block made = {0};
    recomputation r = {.fl = fl, .scope = scope};
    fl->block = &made;
    const ir_expr *outside = b->v.kind == VALUE_SCALAR ? recomputed(&r, b->v.expr) : NULL;
    if (outside != NULL) {
        const ir_type type = ir_scalar_type(outside->dtype);
        const dsl_value v = scalar_value(outside, b->span);
        ir_var *var = binding_target(fl, name, &type, b->span);
        emit_assign(fl, var, &v, b->span);
        for (binding *same = b; same != NULL; same = same->origin) {
            same->state = BINDING_BOUND;
            same->v = var_value(fl->a, var, b->span);
        }
    }
    fl->block = block;
    if (outside != NULL)
        insert_beside(fl, scope, &made, true);
    return outside != NULL;
}

/* ---- either of them ---- */

/* A tensor that the scope has created may, but no view of another one: that would be a copy then. */
static bool can_leave(const ir_function *f, const dsl_value *v, const ir_type *type)
{
    if (type->kind == IR_TENSOR && v->var->root != NULL && ir_static_elems(type) > 0) {
        const ir_stmt *s = ir_operation_of(&f->body, v->var->root);
        return s != NULL && s->op_def->id == OP_CREATE_TENSOR && v->var == v->var->root;
    }
    return (type->kind == IR_TILE || type->kind == IR_SCALAR) && type->dtype != PYPTO_TASK_ID;
}

/* A tile becomes a tensor of the wrapper, a number one element of such a tensor, which is read behind the
 * call. */
bool keep_scope_value(lowering *fl, int64_t name, binding *b)
{
    const scope_call *scope = b->scope;
    ir_type type;
    if (scope == NULL || !value_type(&b->v, &type) || !can_leave(scope->f, &b->v, &type))
        return false;
    if (recompute_number(fl, scope, name, b))
        return true;
    if (!scope->gives)
        return false;
    ir_block *block = fl->block;
    ir_block made = {0};
    fl->block = &made;
    const bool number = type.kind == IR_SCALAR;
    dsl_value *extents = arena_array(fl->a, dsl_value, PYPTO_MAX_DIMS);
    for (int32_t d = 0; d < (number ? 1 : type.ndim); d++)
        extents[d] = number ? literal_int(fl->a, 1, b->span) : scalar_value(type.shape[d], b->span);
    const dsl_value values[2] = {tuple_value(extents, number ? 1 : type.ndim, b->span),
                                 {.kind = VALUE_DTYPE, .dtype = type.dtype, .span = b->span}};
    dsl_value result = lower_values(fl, op_get(OP_CREATE_TENSOR), values, 2, b->span, -1);
    fl->block = block;
    if (result.kind != VALUE_VAR)
        return false;
    insert_beside(fl, scope, &made, false);
    (void)add_result(fl, scope, name, &b->v, &result);
    pass_result(fl, scope, result.var);
    if (number) {
        ir_block read = {0};
        const dsl_value zero = literal_int(fl->a, 0, b->span);
        const dsl_value origin = tuple_value(&zero, 1, b->span);
        const dsl_value from[2] = {result, origin};
        fl->block = &read;
        result = lower_values(fl, op_get(OP_READ), from, 2, b->span, name);
        fl->block = block;
        insert_beside(fl, scope, &read, true);
    }
    for (binding *same = b; same != NULL; same = same->origin) {
        same->state = BINDING_BOUND;
        same->v = result;
    }
    return true;
}
