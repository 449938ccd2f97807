/* Makes the nodes of the IR: programs, functions, variables, statements, types; and compares them.
 *
 * Called by the front end, by passes that add nodes, and by tests that build programs by hand.
 * Every node lives on the program's arena, so nothing here fails and nothing is released.
 * Expressions are in fold.c.
 *
 * Pitfall: the vectors of a function move when they grow; keep the ir_var and ir_stmt pointers,
 * which never move, not pointers into the vectors. */
#include "ir/ir.h"

#include "base/alloc.h"

#include <string.h>

ir_program *ir_program_create(arena *a, const char *name)
{
    ir_program *p = arena_new(a, ir_program);
    p->a = a;
    p->name = arena_strdup(a, name);
    return p;
}

ir_function *ir_function_create(ir_program *p, const char *name, pld_plane plane, pypto_span span)
{
    ir_function *f = arena_new(p->a, ir_function);
    f->name = arena_strdup(p->a, name);
    f->plane = plane;
    f->index = (int32_t)p->functions.count;
    f->span = span;
    vec_push(p->a, &p->functions, f);
    return f;
}

ir_var *ir_var_create(ir_program *p, ir_function *f, ir_var_kind kind, const char *name,
                      ir_type type, pypto_span span)
{
    ir_var *var = arena_new(p->a, ir_var);
    var->kind = kind;
    var->id = (int32_t)f->vars.count;
    var->name = arena_strdup(p->a, name);
    if (f->latest.a == NULL)
        f->latest = map_make(p->a);
    const ir_var *previous = map_get(&f->latest, name);
    var->version = previous == NULL ? 0 : previous->version + 1;
    map_set(&f->latest, name, var);
    var->type = type;
    var->span = span;
    var->scratch_offset = -1;
    var->buffer = -1;
    if (type.kind == IR_BUFFER || (kind == IR_VAR_PARAM && ir_is_handle(type.kind)))
        var->root = var;
    vec_push(p->a, &f->vars, var);
    if (kind == IR_VAR_PARAM)
        vec_push(p->a, &f->params, var);
    return var;
}

ir_stmt *ir_stmt_create(ir_program *p, ir_block *into, ir_stmt_kind kind, pypto_span span)
{
    ir_stmt *s = arena_new(p->a, ir_stmt);
    s->kind = kind;
    s->span = span;
    vec_push(p->a, into, s);
    return s;
}

ir_type ir_scalar_type(pypto_dtype dtype)
{
    return (ir_type){.kind = IR_SCALAR, .dtype = dtype};
}

bool ir_is_memory(ir_kind kind)
{
    return kind == IR_TENSOR || kind == IR_WINDOW;
}

bool ir_is_handle(ir_kind kind)
{
    return ir_is_memory(kind) || kind == IR_BUFFER || kind == IR_COMM;
}

bool ir_is_private(ir_kind kind)
{
    return kind == IR_TILE || kind == IR_ARRAY;
}

const char *ir_kind_name(ir_kind kind)
{
    switch (kind) {
    case IR_NONE: return "None";
    case IR_SCALAR: return "Scalar";
    case IR_TENSOR: return "Tensor";
    case IR_WINDOW: return "DistributedTensor";
    case IR_TILE: return "Tile";
    case IR_ARRAY: return "Array";
    case IR_BUFFER: return "Buffer";
    case IR_COMM: return "CommCtx";
    }
    return "?";
}

/* ---- equality ---- */

static bool operand_equal(const ir_operand *x, const ir_operand *y)
{
    if (x->kind != y->kind)
        return false;
    switch (x->kind) {
    case IR_OPERAND_NONE: return true;
    case IR_OPERAND_VAR: return x->var == y->var;
    case IR_OPERAND_EXPR: return ir_expr_equal(x->expr, y->expr);
    case IR_OPERAND_DTYPE: return x->dtype == y->dtype;
    case IR_OPERAND_ENUM: return x->number == y->number;
    case IR_OPERAND_TEXT: return strcmp(x->text, y->text) == 0;
    case IR_OPERAND_LIST: break;
    }
    if (x->count != y->count)
        return false;
    for (int32_t i = 0; i < x->count; i++)
        if (!ir_expr_equal(x->exprs[i], y->exprs[i]))
            return false;
    return true;
}

static bool operands_equal(const ir_expr *x, const ir_expr *y)
{
    if (x->op_def != y->op_def || x->operand_count != y->operand_count)
        return false;
    for (int32_t i = 0; i < x->operand_count; i++)
        if (!operand_equal(&x->operands[i], &y->operands[i]))
            return false;
    return true;
}

static bool is_commutative(ir_operator op)
{
    switch (op) {
    case IR_ADD:
    case IR_MUL:
    case IR_BITAND:
    case IR_BITOR:
    case IR_BITXOR:
    case IR_MIN:
    case IR_MAX:
    case IR_EQ:
    case IR_NE:
    case IR_AND:
    case IR_OR: return true;
    default: return false;
    }
}

static bool binary_equal(const ir_expr *x, const ir_expr *y)
{
    if (x->op != y->op)
        return false;
    if (ir_expr_equal(x->a, y->a) && ir_expr_equal(x->b, y->b))
        return true;
    return is_commutative(x->op) && ir_expr_equal(x->a, y->b) && ir_expr_equal(x->b, y->a);
}

/* -0.0 is not 0.0, and a NaN is itself. */
static bool same_bits(double x, double y)
{
    uint64_t x_bits;
    uint64_t y_bits;
    memcpy(&x_bits, &x, sizeof x_bits);
    memcpy(&y_bits, &y, sizeof y_bits);
    return x_bits == y_bits;
}

bool ir_expr_equal(const ir_expr *x, const ir_expr *y)
{
    if (x == y)
        return true;
    if (x == NULL || y == NULL || x->kind != y->kind)
        return false;
    switch (x->kind) {
    case IR_INT:
    case IR_BOOL: return x->integer == y->integer;
    case IR_FLOAT: return same_bits(x->real, y->real);
    case IR_VAR: return x->var == y->var;
    case IR_UNARY: return x->op == y->op && ir_expr_equal(x->a, y->a);
    case IR_BINARY: return binary_equal(x, y);
    case IR_CONVERT: return x->dtype == y->dtype && ir_expr_equal(x->a, y->a);
    case IR_OP: return operands_equal(x, y);
    }
    return false;
}

bool ir_shape_equal(const ir_type *x, const ir_type *y)
{
    if (x->ndim != y->ndim)
        return false;
    for (int32_t i = 0; i < x->ndim; i++)
        if (!ir_expr_equal(x->shape[i], y->shape[i]))
            return false;
    return true;
}

bool ir_type_equal(const ir_type *x, const ir_type *y)
{
    if (x->kind != y->kind)
        return false;
    switch (x->kind) {
    case IR_SCALAR: return x->dtype == y->dtype;
    case IR_TENSOR:
    case IR_WINDOW:
    case IR_ARRAY:
    case IR_TILE: return x->dtype == y->dtype && x->ragged == y->ragged && ir_shape_equal(x, y);
    default: return true;
    }
}

bool ir_value_fits(const ir_type *source, const ir_type *target)
{
    ir_type ragged = *source;
    ragged.ragged = target->ragged;
    return source->ragged <= target->ragged && ir_type_equal(&ragged, target);
}

int64_t ir_static_elems(const ir_type *type)
{
    int64_t elems = 1;
    for (int32_t i = 0; i < type->ndim; i++) {
        int64_t extent;
        if (!ir_is_const_int(type->shape[i], &extent) || extent < 0 ||
            !size_mul(elems, extent, &elems))
            return -1;
    }
    return elems;
}

int64_t ir_static_bytes(const ir_type *type)
{
    int64_t elems = ir_static_elems(type);
    int64_t bytes;
    if (elems < 0)
        return -1;
    if (pypto_dtype_packed(type->dtype))
        return pypto_dtype_size(type->dtype, elems);
    return __builtin_mul_overflow(elems, pypto_dtype_bytes(type->dtype), &bytes) ? -1 : bytes;
}
