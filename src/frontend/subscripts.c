/* x[...]: views of tensors and windows, parts of tiles, elements of all of them, and assignments to them.
 * Views in host functions continue in host_views.c.
 *
 * An index drops its dimension, a slice keeps it, and dimensions that are not mentioned are whole. One
 * index per dimension is an element. A view is a handle: it names a part of the storage, and reading it
 * later sees what is there then. A part of a tile is a copy. */
#include "frontend/subscripts.h"
#include "frontend/expressions.h"
#include "frontend/lower.h"
#include "frontend/scalars.h"

#include "ops/dtypes.h"

static bool bad_index(lowering *fl, pypto_span span, const char *hint, const char *message)
{
    report(fl->fe, DIAG_BAD_INDEX, span, hint, "%s", message);
    return false;
}

static const ir_expr *without_widening(const ir_expr *e)
{
    while (e->kind == IR_CONVERT && dtype_widens(e->a->dtype, e->dtype))
        e = e->a;
    return e;
}

/* A sum of multiples of expressions, and a number. */
#define LINEAR_TERMS 8

typedef struct linear {
    const ir_expr *terms[LINEAR_TERMS];
    int64_t factors[LINEAR_TERMS];
    int32_t count;
    int64_t constant;
    bool unknown; /* too many terms, or too large numbers */
} linear;

static void add_term(linear *sum, const ir_expr *e, int64_t factor)
{
    int32_t k = 0;
    while (k < sum->count && !ir_expr_equal(sum->terms[k], e))
        k++;
    if (k == LINEAR_TERMS) {
        sum->unknown = true;
        return;
    }
    if (k == sum->count) {
        sum->terms[sum->count++] = e;
        sum->factors[k] = 0;
    }
    sum->unknown |= __builtin_add_overflow(sum->factors[k], factor, &sum->factors[k]);
}

/* Adds e, factor times. Narrow numbers are taken as if they did not wrap: what they wrap to is the bound of no
 * slice. */
static void add_linear(linear *sum, const ir_expr *e, int64_t factor)
{
    int64_t number = 0;
    e = without_widening(e);
    if (ir_is_const_int(e, &number)) {
        sum->unknown |= __builtin_mul_overflow(number, factor, &number);
        sum->unknown |= __builtin_add_overflow(sum->constant, number, &sum->constant);
    } else if (e->kind == IR_BINARY && (e->op == IR_ADD || e->op == IR_SUB)) {
        int64_t other = factor;
        sum->unknown |= e->op == IR_SUB && __builtin_sub_overflow(0, factor, &other);
        add_linear(sum, e->a, factor);
        add_linear(sum, e->b, other);
    } else if (e->kind == IR_BINARY && e->op == IR_MUL &&
               (ir_is_const_int(e->b, &number) || ir_is_const_int(e->a, &number))) {
        const bool second = ir_is_const_int(e->b, &number);
        sum->unknown |= __builtin_mul_overflow(number, factor, &factor);
        add_linear(sum, second ? e->a : e->b, factor);
    } else {
        add_term(sum, e, factor);
    }
}

/* upper - lower, a constant wherever the two differ by one: also (i + 1) * 8 - i * 8. */
static const ir_expr *extent_of(lowering *fl, const ir_expr *lower, const ir_expr *upper,
                                pypto_span span)
{
    linear difference = {0};
    add_linear(&difference, upper, 1);
    add_linear(&difference, lower, -1);
    for (int32_t i = 0; i < difference.count; i++)
        difference.unknown |= difference.factors[i] != 0;
    if (!difference.unknown)
        return ir_int(fl->a, difference.constant);
    return ir_binary(fl->a, IR_SUB, upper, lower, PYPTO_INDEX, span);
}

static bool eval_bound(lowering *fl, const syntax_expr *e, int32_t d, const ir_expr **bound)
{
    dsl_value v;
    int64_t number = 0;
    if (e == NULL)
        return true;
    v = eval(fl, e);
    if (v.kind != VALUE_POISON && (v.kind != VALUE_SCALAR || !ir_is_integer(v.expr->dtype)))
        return bad_index(
            fl, e->span, "convert it: pl.cast(x, pl.INDEX)",
            arena_printf(fl->a,
                         "index element %d must be an integer scalar, not %s: it must be an "
                         "index expression",
                         d, describe(fl->a, &v)));
    if (v.kind == VALUE_POISON)
        return false;
    if (is_beyond_index(v.expr))
        return bad_index(fl, e->span, "use a smaller number",
                         arena_printf(fl->a, "index element %d: %s does not fit index", d,
                                      constant_text(fl->a, v.expr)));
    if (ir_is_const_int(v.expr, &number) && number < 0)
        return bad_index(
            fl, e->span, "indices count from the start",
            arena_printf(fl->a, "index element %d is negative: %lld", d, (long long)number));
    *bound = as_index(fl->a, v.expr, e->span);
    return true;
}

/* A number, or made of numbers and dimensions: it means the same everywhere in the function. */
static bool is_fixed(const ir_expr *e)
{
    if (e->kind == IR_BINARY)
        return is_fixed(e->a) && is_fixed(e->b);
    if (e->kind == IR_CONVERT)
        return is_fixed(e->a);
    return e->kind == IR_INT ||
           (e->kind == IR_VAR && (e->var->kind == IR_VAR_DIM || e->var->is_extent));
}

/* A tile has a constant shape. Where the upper bound is known at run time only, the slice reaches to the
 * tile's end and is valid up to the bound. */
static bool narrow_tile(lowering *fl, const syntax_expr *e, int32_t d, subscript *p)
{
    int64_t lower = 0;
    int64_t limit = 0;
    if (!ir_is_const_int(p->offsets[d], &lower)) {
        report(fl->fe, DIAG_UNSUPPORTED_EXPRESSION, e->span, "write t[i : i + 8]",
               "Dynamic lower bounds of a tile's slice need a constant extent");
        return false;
    }
    (void)ir_is_const_int(p->type->shape[d], &limit);
    p->valid[d] = p->extents[d];
    p->extents[d] = ir_int(fl->a, limit - lower);
    p->ragged = true;
    return limit > lower || bad_index(fl, e->span, NULL,
                                      arena_printf(fl->a,
                                                   "the slice starts at %lld, past the end of "
                                                   "dimension %d, which has %lld",
                                                   (long long)lower, d, (long long)limit));
}

static bool eval_slice(lowering *fl, const syntax_expr *e, int32_t d, subscript *p)
{
    const ir_expr *upper = p->type->shape[d];
    int64_t extent = 0;
    if (e->c != NULL) {
        report(fl->fe, DIAG_UNSUPPORTED_EXPRESSION, e->c->span,
               "leave the step out, and take every n-th element in a loop over pl.range",
               "a slice with a step is not supported");
        return false;
    }
    if (!eval_bound(fl, e->a, d, &p->offsets[d]) || !eval_bound(fl, e->b, d, &upper))
        return false;
    p->extents[d] = extent_of(fl, p->offsets[d], upper, e->span);
    p->valid[d] = p->extents[d];
    if (ir_is_const_int(p->extents[d], &extent))
        return extent > 0 ||
               bad_index(fl, e->span, "the bound behind the colon is the first index left out",
                         arena_printf(fl->a, "a slice needs a positive static extent, not %lld",
                                      (long long)extent));
    if (p->type->kind == IR_TILE)
        return narrow_tile(fl, e, d, p);
    return is_fixed(p->extents[d]) ||
           bad_index(
               fl, e->span,
               "write x[i * 8 : i * 8 + 8], and what is left over in a branch of its own; or load a tile with valid_shape=",
               "a slice needs a positive static extent, and this one is only known at run time");
}

static bool eval_part(lowering *fl, const dsl_value *base, const syntax_expr *e, subscript *p)
{
    *p = (subscript){.type = &base->var->type};
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
        p->valid[d] = p->type->shape[d];
        if (item == NULL)
            continue;
        if (item->kind == SYNTAX_SLICE) {
            ok = eval_slice(fl, item, d, p) && ok;
            continue;
        }
        p->extents[d] = ir_int(fl->a, 0);
        p->valid[d] = ir_int(fl->a, 1);
        p->indices++;
        ok = eval_bound(fl, item, d, &p->offsets[d]) && ok;
    }
    return ok;
}

dsl_value list_value(lowering *fl, const ir_expr *const *exprs, int32_t count, pypto_span span)
{
    dsl_value *items = arena_array(fl->a, dsl_value, count);
    for (int32_t i = 0; i < count; i++)
        items[i] = scalar_value(exprs[i], span);
    return tuple_value(items, count, span);
}

bool is_index(const ir_expr *extent)
{
    int64_t number = 1;
    return ir_is_const_int(extent, &number) && number == 0;
}

/* The extents with 1 for an index. */
static dsl_value box_value(lowering *fl, const subscript *p, pypto_span span)
{
    const ir_expr *extents[PYPTO_MAX_DIMS];
    for (int32_t d = 0; d < p->type->ndim; d++)
        extents[d] = is_index(p->extents[d]) ? ir_int(fl->a, 1) : p->extents[d];
    return list_value(fl, extents, p->type->ndim, span);
}

/* The extents that are left, behind as many of 1 as bring the rank to `least`. */
static dsl_value kept_value(lowering *fl, const subscript *p, int32_t least, pypto_span span)
{
    const ir_expr *extents[PYPTO_MAX_DIMS];
    int32_t count = 0;
    for (int32_t missing = least - (p->type->ndim - p->indices); missing > 0; missing--)
        extents[count++] = ir_int(fl->a, 1);
    for (int32_t d = 0; d < p->type->ndim; d++) {
        if (!is_index(p->extents[d]))
            extents[count++] = p->extents[d];
    }
    return list_value(fl, extents, count, span);
}

/* ---- reading ---- */

/* A copy of the part. Tiles keep two dimensions, as devices have them. */
static dsl_value lower_tile_part(lowering *fl, dsl_value base, const subscript *p, pypto_span span,
                                 int64_t target)
{
    int32_t rank = p->type->ndim;
    dsl_value values[4] = {base, box_value(fl, p, span), list_value(fl, p->offsets, rank, span),
                           list_value(fl, p->valid, rank, span)};
    int32_t count = p->ragged ? 4 : 3;
    if (p->indices == 0 || rank < 2)
        return lower_values(fl, op_get(OP_TILE_SLICE), values, count, span, target);
    dsl_value box = lower_values(fl, op_get(OP_TILE_SLICE), values, count, span, -1);
    dsl_value reshaped[2] = {box, kept_value(fl, p, 2, span)};
    return box.kind == VALUE_POISON
               ? box
               : lower_values(fl, op_get(OP_RESHAPE), reshaped, 2, span, target);
}

static dsl_value part_view(lowering *fl, const dsl_value *base, const subscript *p, pypto_span span,
                           int64_t target)
{
    dsl_value values[3] = {*base, list_value(fl, p->offsets, p->type->ndim, span),
                           list_value(fl, p->extents, p->type->ndim, span)};
    return lower_values(fl, op_get(OP_PART), values, 3, span, target);
}

dsl_value lower_subscript(lowering *fl, dsl_value base, const syntax_expr *e, int64_t target)
{
    subscript p;
    ir_kind kind = base.var->type.kind;
    bool host = fl->ir->plane == PLD_PLANE_HOST;
    if (host && kind != IR_TENSOR)
        return report(fl->fe, DIAG_BAD_INDEX, e->span,
                      "pass the whole window; each rank sees its own slice",
                      "a host function cannot index a %s", ir_kind_name(kind));
    if (!eval_part(fl, &base, e, &p))
        return poison();
    if (host)
        return lower_host_view(fl, base, &p, e->span, target);
    if (p.indices == p.type->ndim) {
        dsl_value values[2] = {base, list_value(fl, p.offsets, p.type->ndim, e->span)};
        return lower_values(fl, op_get(kind == IR_TILE ? OP_TILE_READ : OP_READ), values, 2,
                            e->span, target);
    }
    return kind == IR_TILE ? lower_tile_part(fl, base, &p, e->span, target)
                           : part_view(fl, &base, &p, e->span, target);
}

/* ---- assignments ---- */

/* Compares two extents that are known at run time only. */
static void check_extent(lowering *fl, int32_t dim, const ir_expr *have, const ir_expr *wanted,
                         pypto_span span)
{
    ir_block *block = fl->block;
    ir_stmt *s = ir_stmt_create(fl->fe->program, block, IR_IF, span);
    s->value = ir_binary(fl->a, IR_NE, have, wanted, PYPTO_BOOL, span);
    fl->block = &s->body;
    const dsl_value values[3] = {literal_int(fl->a, dim, span), scalar_value(have, span),
                                 scalar_value(wanted, span)};
    (void)lower_values(fl, op_get(OP_MISFIT), values, 3, span, -1);
    fl->block = block;
}

/* The extents on the left against those of the source. Of a tile that is valid in part only that is
 * written, whatever it is. */
static bool check_source(lowering *fl, const subscript *p, const ir_type *source, pypto_span span)
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
        const ir_expr *wanted = dropped ? ir_int(fl->a, 1) : p->extents[d];
        if (ir_is_const_int(p->extents[d], &extent) &&
            ir_is_const_int(source->shape[kept], &have) && have != (dropped ? 1 : extent))
            return bad_index(fl, span,
                             "take the part of the source that has the target's shape, or write "
                             "to the part of the target that has the source's",
                             arena_printf(fl->a,
                                          "shape mismatch on source axis %d: %lld, but the target "
                                          "has %lld",
                                          kept, (long long)have,
                                          (long long)(dropped ? 1 : extent)));
        const bool known =
            ir_is_const_int(wanted, &extent) && ir_is_const_int(source->shape[kept], &have);
        if (!known && p->type->kind != IR_TILE && !source->ragged &&
            !ir_expr_equal(wanted, source->shape[kept]))
            check_extent(fl, kept, source->shape[kept], wanted, span);
        kept++;
    }
    return true;
}

/* Into a part of a tensor or window, which is a view where indices leave dimensions out. */
static void write_memory(lowering *fl, const dsl_value *base, const subscript *p,
                         const dsl_value *v, pypto_span span)
{
    dsl_value target = *base;
    const ir_expr *offsets[PYPTO_MAX_DIMS];
    for (int32_t d = 0; d < p->type->ndim; d++)
        offsets[d] = p->offsets[d];
    if (v->var->type.ndim < p->type->ndim) {
        target = part_view(fl, base, p, span, -1);
        for (int32_t d = 0; d < p->type->ndim; d++)
            offsets[d] = ir_int(fl->a, 0);
    }
    if (target.kind == VALUE_POISON)
        return;
    dsl_value at = list_value(fl, offsets, target.var->type.ndim, span);
    dsl_value stored[3] = {*v, at, target};
    dsl_value assembled[3] = {target, *v, at};
    if (v->var->type.kind == IR_TILE)
        lower_values(fl, op_get(OP_STORE), stored, 3, span, -1);
    else
        lower_values(fl, op_get(OP_ASSEMBLE), assembled, 3, span, -1);
}

static void write_tile(lowering *fl, const dsl_value *base, const subscript *p, const dsl_value *v,
                       pypto_span span)
{
    dsl_value source = *v;
    if (v->var->type.ndim < p->type->ndim) {
        dsl_value values[2] = {*v, box_value(fl, p, span)};
        source = lower_values(fl, op_get(OP_RESHAPE), values, 2, span, -1);
    }
    dsl_value values[3] = {*base, source, list_value(fl, p->offsets, p->type->ndim, span)};
    if (source.kind != VALUE_POISON)
        lower_values(fl, op_get(OP_TILE_ASSEMBLE), values, 3, span, -1);
}

static void write_part(lowering *fl, const dsl_value *base, const subscript *p, const dsl_value *v,
                       pypto_span span)
{
    ir_kind source = v->kind == VALUE_VAR ? v->var->type.kind : IR_NONE;
    bool tile = base->var->type.kind == IR_TILE;
    bool fits = source == IR_TILE || (!tile && ir_is_memory(source));
    if (!fits) {
        report(fl->fe, DIAG_BAD_INDEX, v->span,
               tile ? "load it first: pl.load(x, offsets, shapes)"
                    : "one value everywhere is pl.full(shape, dtype, value)",
               "Subscript-write source must also be a %s for a part of a %s, not %s",
               tile ? "Tile" : "Tensor or Tile", ir_kind_name(base->var->type.kind),
               describe(fl->a, v));
        return;
    }
    if (!check_source(fl, p, &v->var->type, span))
        return;
    if (tile)
        write_tile(fl, base, p, v, span);
    else
        write_memory(fl, base, p, v, span);
}

void lower_subscript_write(lowering *fl, const syntax_expr *target, dsl_value v, pypto_span span)
{
    subscript p;
    dsl_value base = eval(fl, target->a);
    if (base.kind == VALUE_POISON)
        return;
    if (is_array(&base)) {
        lower_array_write(fl, base, target, v, span);
        return;
    }
    bool shaped = base.kind == VALUE_VAR &&
                  (ir_is_memory(base.var->type.kind) || base.var->type.kind == IR_TILE);
    if (!shaped) {
        report(fl->fe, DIAG_BAD_INDEX, target->span,
               "assign to elements of tensors, windows, tiles and arrays; bind numbers to names",
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
