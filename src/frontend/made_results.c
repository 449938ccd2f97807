/* Results that a function makes itself: it returns a tensor of pl.create_tensor, which no caller has passed.
 *
 * A result is storage of a parameter, always. So such a tensor becomes one: the last of the function, pl.Out, of
 * which the script knows nothing. Its creation leaves the body, and each call creates it in front of itself, zeroed
 * and of the shape that the callee's dimensions and numbers give:
 *
 *     chip step(x: [M, 64]):                       chip step(x: [M, 64], y: Out [M * 2, 64]):
 *         y = create_tensor([M * 2, 64])               scale(x, y)
 *         scale(x, y)                              host run(x: [N, 64], out):
 *         return y                                     y = create_tensor([N * 2, 64])
 *     host run(x: [N, 64], out):                       step(x, y, device=0)
 *         y = step(x, device=0)                        finish(y, out, device=0)
 *         finish(y, out, device=0)
 *
 * Dispatches are ordered by it as by any host tensor. A host function's own results are outputs of the program that
 * Python allocates. Kernels have none: their blocks would share what each of them creates. */
#include "frontend/calls_internal.h"
#include "frontend/expressions.h"
#include "frontend/lower.h"
#include "frontend/signature.h"

#include <string.h>

bool is_made_tensor(const lowering *fl, const ir_var *var)
{
    return fl->ir->plane != PLD_PLANE_CORE && var != NULL && var->kind == IR_VAR_LOCAL &&
           var->type.kind == IR_TENSOR;
}

/* ---- the function's side ---- */

/* A number of the function in terms of its parameters and dimensions; NULL if they do not give it. */
static const ir_expr *of_params(void *context, ir_var *var)
{
    lowering *fl = context;
    if (var->kind == IR_VAR_PARAM || var->kind == IR_VAR_DIM)
        return ir_ref(fl->a, var);
    int64_t definitions = 0;
    const ir_stmt *s = ir_definition(&fl->ir->body, var, &definitions);
    if (definitions != 1 || s->kind != IR_ASSIGN || s->value == NULL ||
        ir_index_of(&fl->ir->body, s) == fl->ir->body.count)
        return NULL;
    return ir_substitute(fl->a, s->value, of_params, fl);
}

static bool refuse(lowering *fl, const ir_var *tensor, const char *hint, const char *problem)
{
    report(fl->fe, DIAG_BAD_RETURN, tensor->span, hint, "'%s' returns tensor '%s', %s",
           fl->syntax->name, tensor->name, problem);
    return false;
}

static bool is_zero(const ir_expr *e)
{
    return e->kind == IR_FLOAT ? e->real == 0.0
                               : (e->kind == IR_INT || e->kind == IR_BOOL) && e->integer == 0;
}

static void remove_stmt(ir_block *block, int64_t at)
{
    for (int64_t i = at; i + 1 < block->count; i++)
        block->items[i] = block->items[i + 1];
    block->count--;
}

/* Its own, if no parameter has that. */
static const char *result_name(const lowering *fl, const ir_var *tensor)
{
    const char *name = tensor->name;
    for (int64_t i = 0; i < fl->ir->params.count; i++) {
        if (strcmp(fl->ir->params.items[i]->name, name) != 0)
            continue;
        name = arena_printf(fl->a, "%s_result", name);
        i = -1;
    }
    return name;
}

/* Makes a parameter of a tensor that the function creates and returns. */
static bool make_param(lowering *fl, ir_var *tensor)
{
    ir_function *f = fl->ir;
    int64_t definitions = 0;
    const ir_stmt *s = ir_definition(&f->body, tensor, &definitions);
    const int64_t at = ir_index_of(&f->body, s);
    if (definitions != 1 || at == f->body.count ||
        !(s->kind == IR_DO && op_creates_tensor(s->op_def)))
        return refuse(fl, tensor, "create it once, in front of the loop or branch",
                      "which is made in a loop or branch");
    for (int32_t d = 0; d < tensor->type.ndim; d++) {
        const ir_expr *extent = ir_substitute(fl->a, tensor->type.shape[d], of_params, fl);
        if (extent == NULL)
            return refuse(fl, tensor, "compute its shape from dimensions and numbers it is given",
                          "whose shape does not follow from the parameters alone");
        tensor->type.shape[d] = extent;
    }
    if (!is_zero(s->operands[op_param_index(s->op_def, "init_value")].expr))
        return refuse(fl, tensor, "leave init_value out, and have a kernel write the values",
                      "which the caller creates, so it begins with zeros");
    remove_stmt(&f->body, at);
    tensor->kind = IR_VAR_PARAM;
    tensor->direction = PLD_OUT;
    tensor->name = result_name(fl, tensor);
    tensor->is_made = false;
    vec_push(fl->a, &f->params, tensor);
    if (f->plane == PLD_PLANE_HOST)
        vec_push(fl->a, &f->world_dims, -1);
    return true;
}

void make_result_params(lowering *fl)
{
    for (int64_t i = 0; i < fl->ir->results.count && !fl->notes->result_poisoned; i++) {
        ir_var *result = fl->ir->results.items[i];
        if (result->kind == IR_VAR_LOCAL && !make_param(fl, result))
            fl->notes->result_poisoned = true;
    }
}

/* ---- the caller's side ---- */

typedef struct callers_terms {
    lowering *fl;
    const ir_function *callee;
    const ir_operand *operands;
} callers_terms;

/* A parameter or dimension of the callee as the call gives it. */
static const ir_expr *in_caller(void *context, ir_var *var)
{
    const callers_terms *terms = context;
    arena *a = terms->fl->a;
    for (int64_t i = 0; i < terms->callee->params.count; i++) {
        if (terms->callee->params.items[i] == var)
            return terms->operands[i].expr;
    }
    for (int64_t i = 0; i < terms->callee->dims.count; i++) {
        const ir_dim *dim = &terms->callee->dims.items[i];
        if (dim->var != var)
            continue;
        const ir_expr *extent = terms->operands[dim->param].var->type.shape[dim->dim];
        const pypto_span span = terms->operands[dim->param].span;
        if (dim->quotient != 0)
            return ir_binary(a, IR_MUL, extent, ir_int(a, dim->quotient), PYPTO_INDEX, span);
        if (dim->offset != 0)
            extent = ir_binary(a, IR_SUB, extent, ir_int(a, dim->offset), PYPTO_INDEX, span);
        return dim->scale == 1
                   ? extent
                   : ir_binary(a, IR_FLOORDIV, extent, ir_int(a, dim->scale), PYPTO_INDEX, span);
    }
    return NULL;
}

bool create_results(lowering *fl, const call_site *site, const ir_function *callee,
                    ir_operand *operands)
{
    callers_terms terms = {fl, callee, operands};
    const pypto_span span = site->syntax->span;
    const op_def *op =
        op_get(fl->ir->plane == PLD_PLANE_HOST ? OP_HOST_CREATE_TENSOR : OP_CREATE_TENSOR);
    for (int64_t i = site->count; i < callee->params.count; i++) {
        const ir_var *param = callee->params.items[i];
        dsl_value *extents = arena_array(fl->a, dsl_value, PYPTO_MAX_DIMS);
        for (int32_t d = 0; d < param->type.ndim; d++) {
            const ir_expr *extent = ir_substitute(fl->a, param->type.shape[d], in_caller, &terms);
            extents[d] = extent == NULL ? poison() : scalar_value(extent, span);
        }
        const dsl_value values[2] = {
            tuple_value(extents, param->type.ndim, span),
            {.kind = VALUE_DTYPE, .dtype = param->type.dtype, .span = span}};
        const dsl_value made = lower_values(fl, op, values, 2, span, -1);
        if (made.kind != VALUE_VAR)
            return false;
        made.var->name = param->name;
        operands[i] = (ir_operand){.kind = IR_OPERAND_VAR, .var = made.var, .span = span};
    }
    return true;
}
