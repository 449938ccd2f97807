/* Words of the language that look like calls but are no operations of the table: pl.min and pl.max of
 * scalars with Python's min, max and abs, pl.yield_ in branches, pl.cond out of place,
 * pl.static_assert and pl.static_print, extents of tensors; and `a if c else b`. */
#include "frontend/calls.h"
#include "frontend/expressions.h"
#include "frontend/lower.h"
#include "frontend/names.h"
#include "frontend/scalars.h"
#include "frontend/scopes.h"

#include "ops/dtypes.h"

#include <string.h>

static dsl_value bad_arguments(lowering *fl, const syntax_expr *e, const char *path,
                               const char *problem)
{
    return report(fl->fe, DIAG_BAD_ARGUMENTS, e->span,
                  arena_printf(fl->a, "see its signature: help(%s)", path), "%s %s", path, problem);
}

/* ---- min, max, abs ---- */

/* One argument that is a tuple stands for its items, as in Python. */
static bool scalar_arguments(lowering *fl, const syntax_expr *e, const char *path, dsl_value *all)
{
    if (e->keywords.count > 0) {
        bad_arguments(fl, e, path, "takes positional arguments only");
        return false;
    }
    *all = (dsl_value){.kind = VALUE_TUPLE, .count = (int32_t)e->items.count, .span = e->span};
    dsl_value *items = arena_array(fl->a, dsl_value, all->count);
    for (int32_t i = 0; i < all->count; i++)
        items[i] = eval(fl, e->items.items[i]);
    all->items = items;
    if (all->count == 1 && items[0].kind == VALUE_TUPLE)
        *all = items[0];
    for (int32_t i = 0; i < all->count; i++) {
        if (all->items[i].kind == VALUE_POISON)
            return false;
    }
    return true;
}

static dsl_value lower_extreme(lowering *fl, const char *path, ir_operator op, const syntax_expr *e)
{
    dsl_value all;
    if (!scalar_arguments(fl, e, path, &all))
        return poison();
    if (all.count < 2)
        return bad_arguments(fl, e, path, "takes two numbers or more");
    dsl_value result = all.items[0];
    for (int32_t i = 1; i < all.count && result.kind != VALUE_POISON; i++)
        result = scalar_extreme(fl, path, op, result, all.items[i], e->span);
    return result;
}

static dsl_value lower_abs(lowering *fl, const syntax_expr *e, int64_t target)
{
    dsl_value all;
    if (!scalar_arguments(fl, e, "abs", &all))
        return poison();
    if (all.count != 1)
        return bad_arguments(fl, e, "abs", "takes one number");
    dsl_value x = all.items[0];
    if (x.kind == VALUE_VAR)
        return lower_values(fl, op_find("pl.abs"), &x, 1, e->span, target);
    bool is_unsigned =
        x.kind == VALUE_SCALAR && ir_is_integer(x.expr->dtype) && !dtype_is_signed(x.expr->dtype);
    if (is_unsigned)
        return x; /* 0 - x wraps, and may well be the larger one */
    dsl_value negative = scalar_unary(fl, "-", x, e->span);
    return negative.kind == VALUE_POISON ? negative
                                         : scalar_extreme(fl, "abs", IR_MAX, x, negative, e->span);
}

bool lower_python_builtin(lowering *fl, const syntax_expr *e, int64_t target, dsl_value *result)
{
    static const char *const names[] = {"min", "max", "abs"};
    if (e->a->kind != SYNTAX_NAME || binding_find(fl, e->a->text) >= 0)
        return false;
    int found = -1;
    for (int i = 0; i < 3; i++)
        found = strcmp(e->a->text, names[i]) == 0 ? i : found;
    if (found < 0)
        return false;
    const name_value *v = resolve_name(fl->fe, fl->function, e->a->text);
    if (v->kind != NAME_OTHER || strcmp(v->text, "builtin_function_or_method") != 0)
        return false;
    *result = found == 2 ? lower_abs(fl, e, target)
                         : lower_extreme(fl, names[found], found == 0 ? IR_MIN : IR_MAX, e);
    return true;
}

/* ---- at compile time ---- */

static void print_value(text *out, arena *a, const dsl_value *v)
{
    switch (v->kind) {
    case VALUE_SCALAR:
        if (v->literal && ir_is_float(v->expr->dtype))
            text_printf(out, "%.17g", v->real);
        else
            ir_print_expr(out, v->expr);
        break;
    case VALUE_VAR:
        text_printf(out, "%s: ", v->var->name);
        ir_print_type(out, &v->var->type);
        break;
    case VALUE_TUPLE:
        text_add(out, "(");
        for (int32_t i = 0; i < v->count; i++) {
            text_add(out, i > 0 ? ", " : "");
            print_value(out, a, &v->items[i]);
        }
        text_add(out, v->count == 1 ? ",)" : ")");
        break;
    case VALUE_STRING: text_add(out, v->text); break;
    default: text_add(out, describe(a, v)); break;
    }
}

static dsl_value lower_static_print(lowering *fl, const syntax_expr *e)
{
    text line = {.a = fl->a};
    text_add(&line, "");
    for (int64_t i = 0; i < e->items.count; i++) {
        dsl_value v = eval(fl, e->items.items[i]);
        if (v.kind == VALUE_POISON)
            return v;
        text_add(&line, i > 0 ? " " : "");
        print_value(&line, fl->a, &v);
    }
    if (fl->fe->embedder->print != NULL)
        fl->fe->embedder->print(fl->fe->embedder->context, line.bytes);
    return (dsl_value){.kind = VALUE_NONE, .span = e->span};
}

static dsl_value lower_static_assert(lowering *fl, const syntax_expr *e)
{
    int64_t count = e->items.count;
    if (count < 1 || count > 2 || e->keywords.count > 0)
        return report(fl->fe, DIAG_BAD_STATIC, e->span,
                      "write pl.static_assert(condition, \"message\")",
                      "pl.static_assert takes 1 or 2 arguments");
    if (count == 2 && e->items.items[1]->kind != SYNTAX_STRING)
        return report(fl->fe, DIAG_BAD_STATIC, e->items.items[1]->span, NULL,
                      "the message of pl.static_assert must be a string literal");
    dsl_value v = eval(fl, e->items.items[0]);
    if (v.kind == VALUE_POISON)
        return v;
    bool number = v.kind == VALUE_SCALAR && (v.expr->kind == IR_BOOL || v.expr->kind == IR_INT);
    if (!number)
        return report(fl->fe, DIAG_STATIC_ASSERT, e->items.items[0]->span,
                      "use constants and static extents alone, or check with an if when it runs",
                      "the condition of pl.static_assert must be compile-time evaluable");
    if (v.expr->integer == 0)
        return report(fl->fe, DIAG_STATIC_ASSERT, e->span,
                      "the constants that the condition names do not satisfy it: change them",
                      "static_assert failed%s%s", count == 2 ? ": " : "",
                      count == 2 ? e->items.items[1]->text : "");
    return (dsl_value){.kind = VALUE_NONE, .span = e->span};
}

/* ---- pl.yield_ of an if ---- */

static dsl_value branch_value(lowering *fl, const syntax_expr *e)
{
    int64_t count = e->items.count;
    if (!fl->in_branch)
        return report(fl->fe, DIAG_BAD_LOOP, e->span,
                      "it is the whole right side of an assignment, in an if or in a loop with "
                      "init_values",
                      "pl.yield_ is misplaced here");
    if (count == 0 || e->keywords.count > 0)
        return bad_arguments(fl, e, "pl.yield_", "takes the values that the branch gives");
    if (count == 1)
        return eval(fl, e->items.items[0]);
    dsl_value *items = arena_array(fl->a, dsl_value, count);
    for (int64_t i = 0; i < count; i++) {
        items[i] = settle(fl, eval(fl, e->items.items[i]));
        if (items[i].kind == VALUE_POISON)
            return poison();
    }
    return tuple_value(items, (int32_t)count, e->span);
}

/* ---- extents ---- */

bool shape_value(lowering *fl, const dsl_value *v, pypto_span span, dsl_value *result)
{
    bool shaped =
        v->kind == VALUE_VAR && (ir_is_memory(v->var->type.kind) || v->var->type.kind == IR_TILE);
    if (!shaped)
        return false;
    const ir_type *type = &v->var->type;
    dsl_value *items = arena_array(fl->a, dsl_value, type->ndim);
    for (int32_t i = 0; i < type->ndim; i++) {
        int64_t extent = 0;
        items[i] = ir_is_const_int(type->shape[i], &extent) ? literal_int(fl->a, extent, span)
                                                            : scalar_value(type->shape[i], span);
    }
    *result = tuple_value(items, type->ndim, span);
    return true;
}

/* The number of the dimension is known at run time only: an array of the extents has the answer. */
static dsl_value chosen_dim(lowering *fl, const dsl_value *v, const dsl_value *shape,
                            dsl_value index, pypto_span span)
{
    if (fl->ir->plane == PLD_PLANE_HOST)
        return report(fl->fe, DIAG_NOT_CONSTANT, index.span, "write x.shape[0]",
                      "the dimension of pl.tensor.dim must be a constant in a host function");
    ir_type type = {.kind = IR_ARRAY, .dtype = PYPTO_INDEX, .ndim = 1};
    type.shape[0] = ir_int(fl->a, shape->count);
    ir_var *array = ir_var_create(fl->fe->program, fl->ir, IR_VAR_LOCAL,
                                  arena_printf(fl->a, "%s_shape", v->var->name), type, span);
    ir_stmt *create = ir_stmt_create(fl->fe->program, fl->block, IR_DO, span);
    create->op_def = op_get(OP_ARRAY_CREATE);
    create->target = array;
    create->operand_count = create->op_def->param_count;
    create->operands = arena_array(fl->a, ir_operand, create->operand_count);
    create->operands[0] = (ir_operand){.kind = IR_OPERAND_EXPR, .expr = type.shape[0]};
    create->operands[1] = (ir_operand){.kind = IR_OPERAND_DTYPE, .dtype = PYPTO_INDEX};
    dsl_value place = var_value(fl->a, array, span);
    for (int32_t i = 0; i < shape->count; i++) {
        dsl_value values[3] = {place, literal_int(fl->a, i, span), shape->items[i]};
        lower_values(fl, op_get(OP_ARRAY_SET), values, 3, span, -1);
    }
    dsl_value values[2] = {place, index};
    return lower_values(fl, op_get(OP_ARRAY_GET), values, 2, span, -1);
}

static dsl_value lower_dim(lowering *fl, const syntax_expr *e)
{
    dsl_value shape;
    dsl_value index;
    int64_t i = 0;
    if (e->items.count != 2 || e->keywords.count > 0)
        return bad_arguments(fl, e, "pl.tensor.dim",
                             "takes a tensor and the number of a dimension");
    dsl_value v = eval(fl, e->items.items[0]);
    if (v.kind == VALUE_POISON || !eval_integer(fl, e->items.items[1], "the dimension", &index))
        return poison();
    if (!shape_value(fl, &v, e->span, &shape))
        return report(fl->fe, DIAG_KIND_MISMATCH, v.span, "pass a tensor, window or tile",
                      "pl.tensor.dim takes a tensor, not %s", describe(fl->a, &v));
    if (!ir_is_const_int(index.expr, &i))
        return chosen_dim(fl, &v, &shape, index, e->span);
    i += i < 0 ? shape.count : 0;
    if (i < 0 || i >= shape.count)
        return report(fl->fe, DIAG_BAD_INDEX, index.span,
                      "dimensions count from 0; negative ones from the last",
                      "dimension %lld of a tensor with %d", (long long)i, shape.count);
    return shape.items[i];
}

/* Lanes are run one after the other, so the index of one is a constant. */
static bool is_subblock_index(const char *path)
{
    return strcmp(path, "pl.tile.get_subblock_idx") == 0 ||
           strcmp(path, "pl.tensor.get_subblock_idx") == 0 ||
           strcmp(path, "pl.get_subblock_idx") == 0;
}

bool lower_builtin(lowering *fl, const char *path, const syntax_expr *e, dsl_value *result)
{
    if (strcmp(path, "pl.min") == 0)
        *result = lower_extreme(fl, path, IR_MIN, e);
    else if (strcmp(path, "pl.max") == 0)
        *result = lower_extreme(fl, path, IR_MAX, e);
    else if (strcmp(path, "pl.yield_") == 0)
        *result = branch_value(fl, e);
    else if (strcmp(path, "pl.cond") == 0)
        *result = report(
            fl->fe, DIAG_BAD_LOOP, e->span,
            "write it at the top of the loop: for (i,) in pl.while_(init_values=(0,)): pl.cond(i < n)",
            "pl.cond must be the first statement of a pl.while_ loop");
    else if (strcmp(path, "pl.static_assert") == 0)
        *result = lower_static_assert(fl, e);
    else if (strcmp(path, "pl.static_print") == 0)
        *result = lower_static_print(fl, e);
    else if (strcmp(path, "pl.printf") == 0)
        *result = lower_printf(fl, e);
    else if (strcmp(path, "pl.tensor.dim") == 0 || strcmp(path, "pl.dim") == 0)
        *result = lower_dim(fl, e);
    else if (strcmp(path, "pl.submit") == 0 || strcmp(path, "pl.spmd_submit") == 0)
        *result = lower_submit(fl, e, path[3] == 's' && path[4] == 'p');
    else if (strcmp(path, "pl.system.task_dummy") == 0)
        *result = lower_join(fl, e);
    else if (strcmp(path, "pl.dump_tag") == 0)
        *result = lower_dump_tag(fl, e);
    else if (strcmp(path, "pl.no_dep") == 0)
        *result = report(fl->fe, DIAG_BAD_SCOPE, e->span, "write kernel(pl.no_dep(x), y)",
                         "pl.no_dep wraps an argument of a call of a DSL function");
    else if (is_subblock_index(path))
        *result = scalar_value(fl->lane != NULL ? fl->lane : ir_int(fl->a, 0), e->span);
    else
        return false;
    return true;
}

/* ---- a if c else b ---- */

static dsl_value eval_choice(lowering *fl, const syntax_expr *e, ir_block *block)
{
    ir_block *saved = fl->block;
    fl->block = block;
    const bool sometimes = fl->sometimes;
    const ir_expr *reached = fl->reached;
    fl->sometimes = true;
    fl->reached = NULL;
    fl->depth++;
    dsl_value v = eval(fl, e);
    fl->depth--;
    fl->sometimes = sometimes;
    fl->reached = reached;
    fl->block = saved;
    return v;
}

/* Literals take the type that the assigned name has. */
static void choose_type(lowering *fl, int64_t target, dsl_value *x)
{
    const binding *b = target < 0 ? NULL : fl->names.bindings[target];
    if (b == NULL || b->state != BINDING_BOUND || b->v.kind != VALUE_SCALAR || !x->literal)
        return;
    pypto_dtype have = b->v.expr->dtype;
    pypto_dtype given = x->expr->dtype;
    if (!dtype_same_category(given, have) ||
        (ir_is_integer(given) && !dtype_holds_constant(have, x->expr)))
        return;
    x->expr =
        ir_convert(fl->a, ir_is_float(given) ? ir_float(fl->a, x->real) : x->expr, have, x->span);
    x->literal = false;
}

static bool unify_choices(lowering *fl, int64_t target, dsl_value *x, dsl_value *y, ir_type *type,
                          pypto_span span)
{
    if (x->kind == VALUE_SCALAR && y->kind == VALUE_SCALAR) {
        if (x->literal && y->literal) {
            choose_type(fl, target, x);
            choose_type(fl, target, y);
        }
        if (!scalar_unify(fl, "if else", x, y, span, &type->dtype))
            return false;
        *type = ir_scalar_type(type->dtype);
        return true;
    }
    ir_type other;
    if (value_type(x, type) && value_type(y, &other) && ir_type_equal(type, &other))
        return true;
    report(fl->fe, DIAG_RETYPED_NAME, span, "give both the same type, or write an if statement",
           "the two values of a conditional expression have different types: %s and %s",
           describe(fl->a, x), describe(fl->a, y));
    return false;
}

static void assign_choice(lowering *fl, ir_block *block, ir_var *var, const dsl_value *v)
{
    ir_block *saved = fl->block;
    fl->block = block;
    emit_assign(fl, var, v, v->span);
    fl->block = saved;
}

dsl_value lower_conditional(lowering *fl, const syntax_expr *e, int64_t target)
{
    dsl_value test;
    bool ok = condition(fl, e->b, "if", &test);
    if (ok && test.expr->kind == IR_BOOL)
        return eval_into(fl, test.expr->integer != 0 ? e->a : e->c, target);
    ir_stmt *s = arena_new(fl->a, ir_stmt);
    s->kind = IR_IF;
    s->span = e->span;
    s->value = ok ? test.expr : ir_bool(fl->a, true);
    dsl_value x = eval_choice(fl, e->a, &s->body);
    dsl_value y = eval_choice(fl, e->c, &s->orelse);
    ir_type type = {.kind = IR_NONE};
    if (!ok || x.kind == VALUE_POISON || y.kind == VALUE_POISON ||
        !unify_choices(fl, target, &x, &y, &type, e->span))
        return poison();
    vec_push(fl->a, fl->block, s);
    ir_var *var = temporary(fl, &type, e->span);
    if (x.kind == VALUE_VAR) {
        var->root = x.var->root == y.var->root ? x.var->root : NULL;
        var->buffer = x.var->buffer == y.var->buffer ? x.var->buffer : -1;
    }
    assign_choice(fl, &s->body, var, &x);
    assign_choice(fl, &s->orelse, var, &y);
    return var_value(fl->a, var, e->span);
}
