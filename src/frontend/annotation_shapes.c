/* Shapes in annotations. A dimension is a number, a constant of the script, a pl.dynamic symbol, a scalar
 * parameter written before it, or arithmetic over those. A whole shape may be a list of the script. */
#include "frontend/annotations_internal.h"
#include "frontend/names.h"
#include "frontend/scalars.h"

#include "ops/dtypes.h"

#include <string.h>

/* ---- dimensions ---- */

static dsl_value dim_of_meaning(lowering *fl, const name_value *v, const char *name,
                                pypto_span span)
{
    if (v->kind == NAME_INT)
        return literal_int(fl->a, v->integer, span);
    if (v->kind == NAME_DYNAMIC) {
        const ir_expr *symbol = symbol_expr(fl, v->text, span);
        return symbol == NULL ? poison() : scalar_value(symbol, span);
    }
    if (v->kind == NAME_DIM) {
        dsl_value x = dim_of_meaning(fl, &v->items[0], name, span);
        dsl_value y = dim_of_meaning(fl, &v->items[1], name, span);
        bool ok = x.kind != VALUE_POISON && y.kind != VALUE_POISON;
        return ok ? scalar_binary(fl, v->text, x, y, span) : poison();
    }
    const ir_expr *param = v->kind == NAME_UNDEFINED ? scalar_param(fl, name) : NULL;
    if (param != NULL)
        return scalar_value(param, span);
    if (v->kind == NAME_UNDEFINED)
        return report(fl->fe, DIAG_BAD_ANNOTATION, span,
                      arena_printf(fl->a, "define it before the function: %s = pl.dynamic(\"%s\")",
                                   name, name),
                      "Unknown shape variable '%s'", name);
    return report(fl->fe, DIAG_BAD_ANNOTATION, span,
                  "a dimension is an int or a pl.dynamic(\"NAME\")",
                  "shape variable '%s' must be int or pl.dynamic, not %s", name,
                  v->kind == NAME_OTHER ? v->text : name_value_text(fl->a, v));
}

static dsl_value unresolved_dim(lowering *fl, const syntax_expr *e)
{
    return report(fl->fe, DIAG_BAD_ANNOTATION, e->span,
                  "a dimension is a number, a constant, a pl.dynamic name, or arithmetic on them",
                  "Cannot resolve expression in a shape");
}

/* pl.dynamic("X") or pl.const(4, pl.INT32), written in place. */
static dsl_value dim_call(lowering *fl, const syntax_expr *e)
{
    const char *path = canonical_path(fl->fe, fl->function, e->a);
    bool is_dynamic = path != NULL && strcmp(path, "pl.dynamic") == 0;
    bool is_const = path != NULL && strcmp(path, "pl.const") == 0;
    if (is_dynamic && e->items.count == 1 && e->items.items[0]->kind == SYNTAX_STRING) {
        const ir_expr *symbol = symbol_expr(fl, e->items.items[0]->text, e->span);
        return symbol == NULL ? poison() : scalar_value(symbol, e->span);
    }
    if (is_const && e->items.count == 2)
        return dim_value(fl, e->items.items[0]);
    return is_dynamic || is_const
               ? report(fl->fe, DIAG_BAD_ANNOTATION, e->span,
                        is_const ? "write pl.const(4, pl.INT32)" : "write pl.dynamic(\"NAME\")",
                        "Cannot resolve expression in a shape")
               : unresolved_dim(fl, e);
}

/* SHAPE[0], an element of a list of the script. */
static dsl_value dim_item(lowering *fl, const syntax_expr *e)
{
    const char *name = dotted_words(fl->a, e->a);
    const name_value *list = name == NULL ? NULL : resolve_name(fl->fe, fl->function, name);
    int64_t index = 0;
    if (list == NULL || list->kind != NAME_LIST || e->items.count != 1)
        return unresolved_dim(fl, e);
    dsl_value v = dim_value(fl, e->items.items[0]);
    if (v.kind == VALUE_POISON)
        return v;
    if (!ir_is_const_int(v.expr, &index))
        return unresolved_dim(fl, e);
    index += index < 0 ? list->count : 0;
    if (index < 0 || index >= list->count)
        return report(fl->fe, DIAG_BAD_ANNOTATION, e->span,
                      "use an index that it has, from 0; negative ones count from its end",
                      "Failed to evaluate expression in a shape: '%s' has %d elements", name,
                      list->count);
    return dim_of_meaning(fl, &list->items[index], name, e->span);
}

dsl_value dim_value(lowering *fl, const syntax_expr *e)
{
    switch (e->kind) {
    case SYNTAX_INT:
        if (e->overflow || e->is_unsigned)
            return report(fl->fe, DIAG_BAD_ANNOTATION, e->span, "use a smaller number",
                          "the number does not fit 64 bits");
        return literal_int(fl->a, e->integer, e->span);
    case SYNTAX_NAME:
        return dim_of_meaning(fl, resolve_name(fl->fe, fl->function, e->text), e->text, e->span);
    case SYNTAX_ATTRIBUTE: {
        const char *name = dotted_words(fl->a, e);
        if (name != NULL)
            return dim_of_meaning(fl, resolve_name(fl->fe, fl->function, name), name, e->span);
        return unresolved_dim(fl, e);
    }
    case SYNTAX_SUBSCRIPT: return dim_item(fl, e);
    case SYNTAX_CALL: return dim_call(fl, e);
    case SYNTAX_BINARY: {
        dsl_value x = dim_value(fl, e->a);
        dsl_value y = dim_value(fl, e->b);
        if (x.kind == VALUE_POISON || y.kind == VALUE_POISON)
            return poison();
        return scalar_binary(fl, e->text, x, y, e->span);
    }
    case SYNTAX_UNARY: {
        dsl_value x = dim_value(fl, e->a);
        return x.kind == VALUE_POISON ? x : scalar_unary(fl, e->text, x, e->span);
    }
    default: return unresolved_dim(fl, e);
    }
}

/* ---- shapes ---- */

bool add_dim(lowering *fl, ir_type *type, const dsl_value *v)
{
    int64_t extent = 0;
    if (v->kind == VALUE_POISON)
        return false;
    if (!ir_is_integer(v->expr->dtype))
        report(
            fl->fe, DIAG_BAD_ANNOTATION, v->span, "a dimension is an int or a pl.dynamic(\"NAME\")",
            "shape element %d must be int, not %s", type->ndim, pypto_dtype_name(v->expr->dtype));
    else if (is_beyond_index(v->expr))
        report(fl->fe, DIAG_BAD_ANNOTATION, v->span, "use a smaller number",
               "dimension %d: %s does not fit index", type->ndim, constant_text(fl->a, v->expr));
    else if (ir_is_const_int(v->expr, &extent) && extent <= 0)
        report(fl->fe, DIAG_BAD_ANNOTATION, v->span, "make it at least 1",
               "dimension %d is %lld: all dimensions must be positive", type->ndim,
               (long long)extent);
    else if (ir_is_private(type->kind) && v->expr->kind != IR_INT)
        report(fl->fe, DIAG_BAD_ANNOTATION, v->span,
               "tiles have a fixed shape; use a constant and handle the rest by a loop",
               "dimension %d of %s must be a constant", type->ndim,
               type->kind == IR_TILE ? "a Tile" : "an Array");
    else if (type->ndim == PYPTO_MAX_DIMS)
        report(fl->fe, DIAG_BAD_ANNOTATION, v->span, "join dimensions", "more than %d dimensions",
               PYPTO_MAX_DIMS);
    else {
        type->shape[type->ndim++] = ir_convert(fl->a, v->expr, PYPTO_INDEX, v->span);
        return true;
    }
    return false;
}

bool read_named_shape(lowering *fl, const name_value *v, const char *name, pypto_span span,
                      ir_type *type)
{
    if (v->kind == NAME_UNDEFINED) {
        report(fl->fe, DIAG_BAD_ANNOTATION, span, "define it before the function",
               "Unknown shape variable '%s'", name);
        return false;
    }
    if (v->kind != NAME_LIST) {
        report(fl->fe, DIAG_BAD_ANNOTATION, span, "write the shape in brackets: [1, 256]",
               "shape '%s' must be a list or tuple", name);
        return false;
    }
    bool ok = true;
    for (int32_t i = 0; i < v->count; i++) {
        name_kind kind = v->items[i].kind;
        if (kind != NAME_INT && kind != NAME_DYNAMIC && kind != NAME_DIM) {
            report(fl->fe, DIAG_BAD_ANNOTATION, span, "use whole numbers and pl.dynamic names",
                   "shape '%s': element %d must be int or pl.dynamic", name, i);
            return false;
        }
        dsl_value dim = dim_of_meaning(fl, &v->items[i], name, span);
        ok = add_dim(fl, type, &dim) && ok;
    }
    return ok;
}

bool read_shape(lowering *fl, const syntax_expr *e, ir_type *type)
{
    bool ok = true;
    const char *words = dotted_words(fl->a, e);
    if (words != NULL) {
        ok = read_named_shape(fl, resolve_name(fl->fe, fl->function, words), words, e->span, type);
    } else if (syntax_is_sequence(e)) {
        for (int64_t i = 0; i < e->items.count; i++) {
            dsl_value dim = dim_value(fl, e->items.items[i]);
            ok = add_dim(fl, type, &dim) && ok;
        }
    } else {
        report(fl->fe, DIAG_BAD_ANNOTATION, e->span, "write the shape in brackets: [1, 256]",
               "the shape must be a list or tuple");
        return false;
    }
    if (ok && type->ndim == 0) {
        report(fl->fe, DIAG_BAD_ANNOTATION, e->span, "give at least one dimension",
               "the shape must not be empty");
        return false;
    }
    return ok;
}
