/* Dynamic dimensions: pl.dynamic("NR") as a symbol of the function whose signature mentions it.
 *
 * A symbol is known by its string. Every function has symbols of its own, recovered from its own
 * arguments each time it runs: the first parameter that shows the symbol as a plain dimension defines
 * it; failing that, one whose dimension is linear in it (NR * 4 + 2) or a quotient of it (NR // 2) does, by
 * solving. ir_function.dims says which. A scalar parameter with the symbol's name is the symbol.
 *
 * At a call the same reasoning runs the other way: match_dims() finds what the callee's symbols will
 * be, as far as the argument's extents are known, to report shapes that cannot agree. */
#include "frontend/lower.h"
#include "frontend/signature.h"

#include "base/alloc.h"

#include <string.h>

/* ---- symbols ---- */

const ir_expr *scalar_param(const lowering *fl, const char *name)
{
    for (int64_t i = 0; i < fl->ir->params.count; i++) {
        const ir_var *param = fl->ir->params.items[i];
        int64_t index = binding_find(fl, param->name);
        if (strcmp(param->name, name) != 0 || param->type.kind != IR_SCALAR || index < 0)
            continue;
        const binding *b = fl->names.bindings[index];
        return b->state == BINDING_BOUND && b->v.kind == VALUE_SCALAR &&
                       ir_is_integer(b->v.expr->dtype)
                   ? b->v.expr
                   : NULL;
    }
    return NULL;
}

static const ir_expr *new_symbol(lowering *fl, const char *name, pypto_span span)
{
    dim_symbol added = {.name = name, .span = span};
    added.expr = scalar_param(fl, name);
    added.bound = added.expr != NULL;
    if (added.expr == NULL) {
        added.var = ir_var_create(fl->fe->program, fl->ir, IR_VAR_DIM, name,
                                  ir_scalar_type(PYPTO_INDEX), span);
        added.expr = ir_ref(fl->a, added.var);
    }
    vec_push(fl->a, &fl->notes->symbols, added);
    return added.expr;
}

const ir_expr *symbol_expr(lowering *fl, const char *name, pypto_span span)
{
    for (int64_t i = 0; i < fl->notes->symbols.count; i++) {
        const dim_symbol *s = &fl->notes->symbols.items[i];
        if (strcmp(s->name, name) == 0)
            return fl->in_signature || s->bound ? s->expr : NULL;
    }
    if (fl->in_signature)
        return new_symbol(fl, name, span);
    report(fl->fe, DIAG_UNBOUND_DIM, span,
           "use it as a dimension of a parameter, or pass the number as a scalar",
           "Cannot recover dynamic dimension '%s': no parameter of '%s' has it", name,
           fl->syntax->name);
    return NULL;
}

/* ---- recovering ---- */

/* e as scale * var + offset; false when it is anything else. */
static bool linear(const ir_expr *e, const ir_var *var, int64_t *scale, int64_t *offset)
{
    *scale = 0;
    *offset = 0;
    if (ir_is_const_int(e, offset))
        return true;
    if (e->kind == IR_VAR) {
        *scale = 1;
        return e->var == var;
    }
    if (e->kind != IR_BINARY)
        return false;
    int64_t a = 0;
    int64_t b = 0;
    int64_t c = 0;
    int64_t d = 0;
    if (!linear(e->a, var, &a, &b) || !linear(e->b, var, &c, &d))
        return false;
    switch (e->op) {
    case IR_ADD:
        return !__builtin_add_overflow(a, c, scale) && !__builtin_add_overflow(b, d, offset);
    case IR_SUB:
        return !__builtin_sub_overflow(a, c, scale) && !__builtin_sub_overflow(b, d, offset);
    case IR_MUL:
        if (a != 0 && c != 0)
            return false;
        return !__builtin_mul_overflow(a != 0 ? a : c, a != 0 ? d : b, scale) &&
               !__builtin_mul_overflow(b, d, offset);
    default: return false;
    }
}

/* e as var // quotient; false when it is anything else. */
static bool quotient_of(const ir_expr *e, const ir_var *var, int64_t *quotient)
{
    return e->kind == IR_BINARY && e->op == IR_FLOORDIV && e->a->kind == IR_VAR &&
           e->a->var == var && ir_is_const_int(e->b, quotient) && *quotient > 0;
}

/* `plain` looks only for dimensions that are the symbol itself. */
static bool find_definition_of(lowering *fl, ir_var *var, bool plain, ir_dim *found)
{
    for (int32_t p = 0; p < fl->ir->params.count; p++) {
        const ir_type *type = &fl->ir->params.items[p]->type;
        for (int32_t d = 0; ir_is_memory(type->kind) && d < type->ndim; d++) {
            ir_dim dim = {.var = var, .param = p, .dim = d};
            if (!linear(type->shape[d], var, &dim.scale, &dim.offset) || dim.scale == 0) {
                if (!quotient_of(type->shape[d], var, &dim.quotient))
                    continue;
                dim.scale = 1;
                dim.offset = 0;
            }
            if (plain && (dim.scale != 1 || dim.offset != 0 || dim.quotient != 0))
                continue;
            *found = dim;
            return true;
        }
    }
    return false;
}

/* Whether a parameter's annotation failed: it might have defined any symbol. */
static bool incomplete(const lowering *fl)
{
    for (int64_t i = 0; i < fl->ir->params.count; i++) {
        if (fl->ir->params.items[i]->type.kind == IR_NONE)
            return true;
    }
    return false;
}

void bind_symbols(lowering *fl)
{
    bool silent = incomplete(fl);
    for (int64_t i = 0; i < fl->notes->symbols.count; i++) {
        dim_symbol *s = &fl->notes->symbols.items[i];
        if (s->bound)
            continue;
        ir_dim found;
        if (find_definition_of(fl, s->var, true, &found) ||
            find_definition_of(fl, s->var, false, &found)) {
            s->bound = true;
            vec_push(fl->a, &fl->ir->dims, found);
            continue;
        }
        if (silent)
            continue;
        report(fl->fe, DIAG_UNBOUND_DIM, s->span,
               "give one parameter the plain dimension, or pass the number as a scalar",
               "Cannot recover dynamic dimension '%s': no parameter has it alone in a dimension",
               s->name);
    }
}

/* ---- matching at calls ---- */

dim_match dim_match_make(arena *a, const ir_function *callee)
{
    return (dim_match){arena_array(a, const ir_expr *, callee->dims.count),
                       (int32_t)callee->dims.count};
}

static int32_t dim_index(const ir_function *callee, const ir_var *var)
{
    for (int32_t i = 0; i < callee->dims.count; i++) {
        if (callee->dims.items[i].var == var)
            return i;
    }
    return -1;
}

/* The callee's dimension in the caller's terms; NULL when it is not known. */
static const ir_expr *substitute(arena *a, const dim_match *match, const ir_function *callee,
                                 const ir_expr *e)
{
    if (e->kind == IR_INT)
        return e;
    if (e->kind == IR_VAR) {
        int32_t index = dim_index(callee, e->var);
        return index < 0 ? NULL : match->found[index];
    }
    if (e->kind != IR_BINARY)
        return NULL;
    const ir_expr *x = substitute(a, match, callee, e->a);
    const ir_expr *y = substitute(a, match, callee, e->b);
    return x == NULL || y == NULL ? NULL : ir_binary(a, e->op, x, y, e->dtype, e->span);
}

/* Solves the symbols that this dimension defines. False when there is no whole number that fits. */
static bool solve(arena *a, dim_match *match, const ir_function *callee, int32_t param, int32_t dim,
                  const ir_expr *extent)
{
    for (int32_t i = 0; i < match->count; i++) {
        const ir_dim *d = &callee->dims.items[i];
        if (d->param != param || d->dim != dim)
            continue;
        int64_t known = 0;
        if (d->quotient != 0) {
            int64_t value = 0;
            if (!ir_is_const_int(extent, &known) || !size_mul(known, d->quotient, &value))
                continue;
            match->found[i] = ir_int(a, value);
        } else if (d->scale == 1 && d->offset == 0) {
            match->found[i] = extent;
        } else if (ir_is_const_int(extent, &known)) {
            int64_t scaled = 0;
            if (__builtin_sub_overflow(known, d->offset, &scaled) || scaled % d->scale != 0)
                return false;
            match->found[i] = ir_int(a, scaled / d->scale);
        }
    }
    return true;
}

const char *match_dims(arena *a, dim_match *match, const ir_function *callee, int32_t param,
                       const ir_type *argument)
{
    const ir_type *declared = &callee->params.items[param]->type;
    for (int32_t d = 0; d < declared->ndim; d++) {
        const ir_expr *have = argument->shape[d];
        if (!solve(a, match, callee, param, d, have))
            return arena_printf(a, "dimension %d is %s, which %s cannot be", d,
                                ir_expr_text(a, have), ir_expr_text(a, declared->shape[d]));
        const ir_expr *want = substitute(a, match, callee, declared->shape[d]);
        int64_t have_known = 0;
        int64_t want_known = 0;
        if (want == NULL || !ir_is_const_int(want, &want_known))
            continue;
        bool known = ir_is_const_int(have, &have_known);
        bool written = declared->shape[d]->kind == IR_INT;
        /* A window is seen in the shape that the callee writes, whatever the view's shape is. */
        if (written && declared->kind == IR_WINDOW)
            continue;
        if (known && have_known != want_known)
            return arena_printf(
                a, "dimension %d is %lld, but %s%s", d, (long long)have_known,
                written ? "" : arena_printf(a, "%s makes it ", ir_expr_text(a, declared->shape[d])),
                arena_printf(a, written ? "%lld is declared" : "%lld", (long long)want_known));
        if (!known && written)
            return arena_printf(a, "dimension %d is %s, which varies, but %lld is declared", d,
                                ir_expr_text(a, have), (long long)want_known);
    }
    return NULL;
}
