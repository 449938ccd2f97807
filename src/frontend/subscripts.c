/* x[...] in wrappers and kernels: views of tensors and windows, elements of tensors, windows and tiles, and
 * assignments to them. Host functions have subscripts of their own, in operations.c.
 *
 * An index drops its dimension, a slice keeps it, and dimensions that are not mentioned are whole. One
 * index per dimension is an element. A view is a handle: it names a part of the storage, and reading it
 * later sees what is there then. */
#include "frontend/lower.h"

#include "ops/dtypes.h"

#include <string.h>

/* A subscript, dimension by dimension. */
typedef struct part {
    const ir_type *type;
    const ir_expr *offsets[PYPTO_MAX_DIMS];
    const ir_expr *extents[PYPTO_MAX_DIMS]; /* constant 0: an index, which drops the dimension */
    int32_t indices;                        /* how many of those */
} part;

static bool bad_index(lowering *fl, pypto_span span, const char *hint, const char *message)
{
    report(fl->fe, DIAG_BAD_INDEX, span, hint, "%s", message);
    return false;
}

/* e as base + constant. */
static const ir_expr *split_constant(const ir_expr *e, int64_t *constant)
{
    *constant = 0;
    int64_t c = 0;
    bool sum = e->kind == IR_BINARY && (e->op == IR_ADD || e->op == IR_SUB);
    if (!sum || !ir_is_const_int(e->b, &c))
        return e;
    *constant = e->op == IR_ADD ? c : -c;
    return e->a;
}

/* upper - lower, a constant wherever the two differ by one. */
static const ir_expr *extent_of(lowering *fl, const ir_expr *lower, const ir_expr *upper,
                                pypto_span span)
{
    int64_t above = 0;
    int64_t below = 0;
    const ir_expr *x = split_constant(upper, &above);
    const ir_expr *y = split_constant(lower, &below);
    if (ir_expr_equal(x, y))
        return ir_int(fl->a, above - below);
    return ir_binary(fl->a, IR_SUB, upper, lower, PYPTO_INDEX, span);
}

static bool eval_bound(lowering *fl, const syntax_expr *e, int32_t d, const ir_expr **bound)
{
    dsl_value v;
    int64_t number = 0;
    if (e == NULL)
        return true;
    if (!eval_integer(fl, e, arena_printf(fl->a, "index element %d", d), &v))
        return false;
    if (ir_is_const_int(v.expr, &number) && number < 0)
        return bad_index(
            fl, e->span, "indices count from the start",
            arena_printf(fl->a, "index element %d is negative: %lld", d, (long long)number));
    *bound = as_index(fl->a, v.expr, e->span);
    return true;
}

static bool eval_slice(lowering *fl, const syntax_expr *e, int32_t d, part *p)
{
    const ir_expr *upper = p->type->shape[d];
    int64_t extent = 0;
    if (e->c != NULL) {
        report(fl->fe, DIAG_UNSUPPORTED_EXPRESSION, e->c->span, NULL,
               "a slice with a step is not supported");
        return false;
    }
    if (!eval_bound(fl, e->a, d, &p->offsets[d]) || !eval_bound(fl, e->b, d, &upper))
        return false;
    p->extents[d] = extent_of(fl, p->offsets[d], upper, e->span);
    bool whole = e->a == NULL && e->b == NULL;
    if (!whole && !ir_is_const_int(p->extents[d], &extent))
        return bad_index(fl, e->span, "write x[i * 8 : i * 8 + 8]",
                         "a slice needs a positive static extent");
    return whole || extent > 0 ||
           bad_index(fl, e->span, NULL,
                     arena_printf(fl->a, "a slice needs a positive static extent, not %lld",
                                  (long long)extent));
}

static bool eval_part(lowering *fl, const dsl_value *base, const syntax_expr *e, part *p)
{
    *p = (part){.type = &base->var->type};
    if (e->items.count > p->type->ndim)
        return bad_index(fl, e->span, NULL,
                         arena_printf(fl->a, "%lld indices but the %s is %dD",
                                      (long long)e->items.count,
                                      p->type->kind == IR_TILE ? "tile" : "tensor", p->type->ndim));
    bool ok = true;
    for (int32_t d = 0; d < p->type->ndim; d++) {
        const syntax_expr *item = d < e->items.count ? e->items.items[d] : NULL;
        p->offsets[d] = ir_int(fl->a, 0);
        p->extents[d] = p->type->shape[d];
        if (item == NULL)
            continue;
        if (item->kind == SYNTAX_SLICE) {
            ok = eval_slice(fl, item, d, p) && ok;
            continue;
        }
        p->extents[d] = ir_int(fl->a, 0);
        p->indices++;
        ok = eval_bound(fl, item, d, &p->offsets[d]) && ok;
    }
    return ok;
}

static dsl_value list_value(lowering *fl, const ir_expr *const *exprs, int32_t count,
                            pypto_span span)
{
    dsl_value *items = arena_array(fl->a, dsl_value, count);
    for (int32_t i = 0; i < count; i++)
        items[i] = scalar_value(exprs[i], span);
    return (dsl_value){.kind = VALUE_TUPLE, .items = items, .count = count, .span = span};
}

dsl_value lower_part(lowering *fl, dsl_value base, const syntax_expr *e, int64_t target)
{
    part p;
    bool tile = base.var->type.kind == IR_TILE;
    if (!eval_part(fl, &base, e, &p))
        return poison();
    dsl_value values[3] = {base, list_value(fl, p.offsets, p.type->ndim, e->span),
                           list_value(fl, p.extents, p.type->ndim, e->span)};
    if (p.indices == p.type->ndim)
        return lower_values(fl, op_get(tile ? OP_TILE_READ : OP_READ), values, 2, e->span, target);
    if (tile)
        return report(fl->fe, DIAG_UNSUPPORTED_EXPRESSION, e->span, "load the part that you need",
                      "parts of tiles are not supported in a subscript");
    return lower_values(fl, op_get(OP_PART), values, 3, e->span, target);
}

/* ---- assignments ---- */

/* The extents on the left against those of the tile. */
static bool check_source(lowering *fl, const part *p, const ir_type *source, pypto_span span)
{
    int32_t kept = 0;
    if (source->ndim != p->type->ndim && source->ndim != p->type->ndim - p->indices)
        return bad_index(fl, span, NULL,
                         arena_printf(fl->a, "the source must be %dD to match the target",
                                      p->type->ndim - p->indices));
    for (int32_t d = 0; d < p->type->ndim; d++) {
        int64_t extent = 0;
        int64_t have = 0;
        bool dropped = ir_is_const_int(p->extents[d], &extent) && extent == 0;
        if (dropped && source->ndim < p->type->ndim)
            continue;
        if (ir_is_const_int(p->extents[d], &extent) &&
            ir_is_const_int(source->shape[kept], &have) && have != (dropped ? 1 : extent))
            return bad_index(fl, span, NULL,
                             arena_printf(fl->a,
                                          "shape mismatch on source axis %d: %lld, but the target "
                                          "has %lld",
                                          kept, (long long)have,
                                          (long long)(dropped ? 1 : extent)));
        kept++;
    }
    return true;
}

static void write_part(lowering *fl, const dsl_value *base, const part *p, const dsl_value *v,
                       pypto_span span)
{
    bool memory = base->var->type.kind != IR_TILE;
    bool tile = v->kind == VALUE_VAR && v->var->type.kind == IR_TILE;
    if (!memory || !tile) {
        report(fl->fe, DIAG_BAD_INDEX, span, "write a tile: x[a:b, c:d] = tile",
               "Subscript-write source must also be a Tile for parts of a Tensor, not %s in a %s",
               describe(fl->a, v), ir_kind_name(base->var->type.kind));
        return;
    }
    if (!check_source(fl, p, &v->var->type, span))
        return;
    dsl_value values[3] = {*v, list_value(fl, p->offsets, p->type->ndim, span), *base};
    lower_values(fl, op_get(OP_STORE), values, 3, span, -1);
}

void lower_subscript_write(lowering *fl, const syntax_expr *target, dsl_value v, pypto_span span)
{
    part p;
    dsl_value base = eval(fl, target->a);
    if (base.kind == VALUE_POISON)
        return;
    bool shaped = base.kind == VALUE_VAR &&
                  (base.var->type.kind == IR_TENSOR || base.var->type.kind == IR_WINDOW ||
                   base.var->type.kind == IR_TILE);
    if (!shaped) {
        report(fl->fe, DIAG_BAD_INDEX, target->span, NULL,
               "Subscript requires Tuple, Tensor, Tile, or Array, not %s", describe(fl->a, &base));
        return;
    }
    if (!eval_part(fl, &base, target, &p) || v.kind == VALUE_POISON)
        return;
    if (p.indices < p.type->ndim) {
        write_part(fl, &base, &p, &v, span);
        return;
    }
    bool tile = base.var->type.kind == IR_TILE;
    if (v.kind == VALUE_SCALAR && v.literal)
        v = scalar_convert(fl, v, p.type->dtype, "the value");
    if (v.kind == VALUE_POISON)
        return;
    dsl_value values[3] = {base, list_value(fl, p.offsets, p.type->ndim, target->span), v};
    lower_values(fl, op_get(tile ? OP_TILE_WRITE : OP_WRITE), values, 3, span, -1);
}
