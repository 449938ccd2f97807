/* Operators: of scalars, of tiles, comparisons and logic. What scalars do with each other is in scalars.c and
 * comparisons.c; operators of tiles are operations of the table. */
#include "frontend/calls.h"
#include "frontend/expressions.h"
#include "frontend/loops.h"
#include "frontend/lower.h"
#include "frontend/names.h"
#include "frontend/scalars.h"
#include "frontend/signature.h"
#include "frontend/subscripts.h"

#include "ops/dtypes.h"

#include <string.h>

static bool is_tile(const lowering *fl, const dsl_value *v)
{
    bool tile = v->kind == VALUE_VAR && v->var->type.kind == IR_TILE;
    return tile || is_tensor_operand(fl, v);
}

/* Operators on tiles are operations, and on tensors in kernels. Those that have a form of their own
 * for a scalar on the right name it second. A scalar on the left changes sides where the order makes no
 * difference, s - t is -t + s, to the last bit, and for the others the scalar is spread over a tile. */
static const char *tile_operation(const char *op, bool scalar)
{
    static const struct {
        const char *op;
        const char *tiles;
        const char *scalar;
    } rows[] = {
        {"+", "pl.add", "pl.add"},   {"-", "pl.sub", "pl.sub"},  {"*", "pl.mul", "pl.mul"},
        {"/", "pl.div", "pl.div"},   {"%", "pl.rem", "pl.rems"}, {"&", "pl.and_", "pl.ands"},
        {"|", "pl.or_", "pl.ors"},   {"^", "pl.xor", "pl.xors"}, {"<<", "pl.shl", "pl.shls"},
        {">>", "pl.shr", "pl.shrs"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].op, op) == 0)
            return scalar ? rows[i].scalar : rows[i].tiles;
    }
    return NULL;
}

dsl_value value_binary(lowering *fl, const char *op, dsl_value x, dsl_value y, pypto_span span,
                       int64_t target)
{
    const bool scalar_first = x.kind == VALUE_SCALAR && is_tile(fl, &y);
    bool commutes = strlen(op) == 1 && strchr("+*&|^", op[0]) != NULL;
    if (strcmp(op, "-") == 0 && scalar_first) {
        y = lower_values(fl, op_find("pl.neg"), &y, 1, span, -1);
        if (y.kind == VALUE_POISON)
            return y;
        op = "+";
        commutes = true;
    } else if (scalar_first && !commutes && tile_operation(op, false) != NULL) {
        dsl_value spread[2] = {y, x};
        x = lower_values(fl, op_find("pl.expands"), spread, 2, span, -1);
        if (x.kind == VALUE_POISON)
            return x;
    }
    if (commutes && scalar_first) {
        dsl_value scalar = x;
        x = y;
        y = scalar;
    }
    bool right = is_tile(fl, &y) || y.kind == VALUE_SCALAR;
    const char *path = is_tile(fl, &x) && right ? tile_operation(op, !is_tile(fl, &y)) : NULL;
    const op_def *row = path == NULL ? NULL : op_find(path);
    /* What is neither a tile nor a number comes first: it is the operand to complain about. */
    const bool other_first =
        row == NULL && is_tile(fl, &x) && !right && tile_operation(op, false) != NULL;
    if (row == NULL)
        return scalar_binary(fl, op, other_first ? y : x, other_first ? x : y, span);
    dsl_value values[2] = {x, y};
    return lower_values(fl, row, values, 2, span, target);
}

dsl_value eval_binary(lowering *fl, const syntax_expr *e, int64_t target)
{
    dsl_value x = eval(fl, e->a);
    dsl_value y = eval(fl, e->b);
    if (x.kind == VALUE_POISON || y.kind == VALUE_POISON)
        return poison();
    return value_binary(fl, e->text, x, y, e->span, target);
}

dsl_value eval_unary(lowering *fl, const syntax_expr *e, int64_t target)
{
    const syntax_expr *operand = e->a;
    dsl_value x = eval(fl, operand);
    if (x.kind == VALUE_POISON)
        return x;
    const char *path = strcmp(e->text, "-") == 0   ? "pl.neg"
                       : strcmp(e->text, "~") == 0 ? "pl.not_"
                                                   : NULL;
    const op_def *row = path == NULL || !is_tile(fl, &x) ? NULL : op_find(path);
    return row != NULL ? lower_values(fl, row, &x, 1, e->span, target)
                       : scalar_unary(fl, e->text, x, e->span);
}

/* a < b < c is a < b and b < c. */
dsl_value eval_comparison(lowering *fl, const syntax_expr *e)
{
    dsl_value left = eval(fl, e->a);
    dsl_value result = poison();
    bool ok = left.kind != VALUE_POISON;
    for (int64_t i = 0; i < e->items.count; i++) {
        dsl_value right = eval(fl, e->items.items[i]);
        if (right.kind == VALUE_POISON)
            ok = false;
        if (!ok)
            continue;
        dsl_value link = scalar_compare(fl, e->texts.items[i], left, right, e->span);
        if (link.kind == VALUE_POISON)
            return link;
        result = i == 0 ? link : scalar_logic(fl, "and", result, link, e->span);
        left = right;
    }
    return ok ? result : poison();
}

/* An item behind others is evaluated only if those have not decided. */
static dsl_value eval_operand(lowering *fl, const syntax_expr *e, int64_t i,
                              const dsl_value *before)
{
    if (i == 0 || before->kind != VALUE_SCALAR || before->expr->dtype != PYPTO_BOOL)
        return eval(fl, e->items.items[i]);
    const bool sometimes = fl->sometimes;
    const ir_expr *reached = fl->reached;
    const ir_expr *open = before->expr;
    if (strcmp(e->text, "or") == 0)
        open = ir_unary(fl->a, IR_NOT, open, PYPTO_BOOL, e->span);
    fl->sometimes = true;
    fl->reached =
        reached == NULL ? open : ir_binary(fl->a, IR_AND, reached, open, PYPTO_BOOL, e->span);
    const dsl_value item = eval(fl, e->items.items[i]);
    fl->sometimes = sometimes;
    fl->reached = reached;
    return item;
}

dsl_value eval_logic(lowering *fl, const syntax_expr *e)
{
    dsl_value result = poison();
    bool ok = true;
    for (int64_t i = 0; i < e->items.count; i++) {
        dsl_value item = eval_operand(fl, e, i, &result);
        ok = ok && item.kind != VALUE_POISON;
        if (ok)
            result = i == 0 ? item : scalar_logic(fl, e->text, result, item, e->span);
        ok = ok && result.kind != VALUE_POISON;
    }
    return ok ? result : poison();
}
