/* Annotation syntax to types: parameters, results and annotated assignments.
 *
 *   pl.Tensor[[d0, d1], dtype]    pld.DistributedTensor[[...], dtype]    pl.Tile[[...], dtype]
 *   pl.Tensor    pld.DistributedTensor      shape and dtype from the argument
 *   pl.Out[...]  pl.InOut[...]              around a tensor
 *   pl.Scalar[dtype]    pl.INT32            a scalar
 *   pld.CommCtx                             a communication domain, of kernels only
 *   tuple[A, B]    None                     results only
 *   T                                       a name that the script has given to one of these
 *
 * Names mean here what they mean outside the function, because Python evaluates annotations there
 * (annotation_words.c). Shapes are read by annotation_shapes.c, what stands behind them by
 * annotation_slots.c. */
#include "frontend/annotations_internal.h"
#include "frontend/names.h"
#include "ops/dtypes.h"
#include <string.h>

/* ---- parts ---- */

static dsl_annotation failed(void)
{
    return (dsl_annotation){.form = ANNOTATION_FAILED};
}

dsl_annotation bad_annotation(lowering *fl, pypto_span span, const char *hint, const char *message)
{
    report(fl->fe, DIAG_BAD_ANNOTATION, span, hint, "%s", message);
    return failed();
}

/* Reports what is no type: "X is not a type of the DSL", or that it will be one. */
static dsl_annotation no_type(lowering *fl, const char *path, const char *suffix, pypto_span span)
{
    if (op_is_later(path)) {
        report(fl->fe, DIAG_LATER, span, op_later_hint(path), "%s is not supported yet", path);
        return failed();
    }
    return bad_annotation(fl, span,
                          "pl.Tensor[[...], dtype], pld.DistributedTensor[[...], dtype], "
                          "pl.Scalar[dtype]",
                          arena_printf(fl->a, "'%s%s' is not a type of the DSL", path, suffix));
}

/* ---- whole annotations ---- */

/* pl.Tensor[1, 256, pl.FP32] instead of pl.Tensor[[1, 256], pl.FP32]. */
static bool is_dimension(lowering *fl, const syntax_expr *e)
{
    if (e->kind != SYNTAX_NAME)
        return e->kind == SYNTAX_INT || e->kind == SYNTAX_BINARY;
    const name_value *v = resolve_name(fl->fe, fl->function, e->text);
    return v->kind == NAME_INT || v->kind == NAME_DYNAMIC;
}

/* pl.Array[n, dtype] */
static dsl_annotation read_array(lowering *fl, const syntax_expr *e)
{
    dsl_annotation result = {.form = ANNOTATION_TYPE, .span = e->span};
    result.type.kind = IR_ARRAY;
    if (e->items.count != 2 || !is_dimension(fl, e->items.items[0]))
        return bad_annotation(fl, e->span, "write pl.Array[16, pl.INT32]",
                              "pl.Array needs a number of elements and an element type");
    dsl_value extent = dim_value(fl, e->items.items[0]);
    bool ok = add_dim(fl, &result.type, &extent);
    return read_dtype(fl, e->items.items[1], &result.type.dtype) && ok ? result : failed();
}

/* `args` are the items of Head[...] or Head(...). */
static dsl_annotation read_shaped(lowering *fl, const char *path, const syntax_expr *e)
{
    dsl_annotation result = {.form = ANNOTATION_TYPE, .span = e->span};
    result.type.kind = shaped_kind(path);
    if (result.type.kind == IR_ARRAY)
        return read_array(fl, e);
    if (e->items.count < 2)
        return bad_annotation(fl, e->span, arena_printf(fl->a, "write %s[[1, 256], pl.FP32]", path),
                              arena_printf(fl->a, "%s needs a shape and an element type", path));
    if (is_dimension(fl, e->items.items[0]))
        return bad_annotation(
            fl, e->items.items[0]->span,
            arena_printf(fl->a, "write the shape in brackets: %s[[1, 256], pl.FP32]", path),
            "the shape must be a list or tuple");
    bool extras_ok = true;
    for (int64_t i = 2; i < e->items.count; i++)
        extras_ok = check_slot(fl, path, e->items.items[i]) && extras_ok;
    if (!extras_ok)
        return failed();
    bool shape_ok = read_shape(fl, e->items.items[0], &result.type);
    bool dtype_ok = read_dtype(fl, e->items.items[1], &result.type.dtype);
    if (!shape_ok || !dtype_ok)
        return failed();
    if (result.type.dtype == PYPTO_TASK_ID && result.type.kind != IR_ARRAY)
        return bad_annotation(fl, e->items.items[1]->span, "use pl.array.create(n, pl.TASK_ID)",
                              "ids of tasks are in scalars and arrays only");
    int64_t last = 0;
    if (pypto_dtype_packed(result.type.dtype) && result.type.ndim > 0 &&
        (!ir_is_const_int(result.type.shape[result.type.ndim - 1], &last) || last % 2 != 0))
        return bad_annotation(
            fl, e->items.items[0]->span, "two elements lie in a byte",
            arena_printf(fl->a, "the last dimension of %s must be a constant, even number",
                         pypto_dtype_name(result.type.dtype)));
    return result;
}

/* Types for storage only have tensors and tiles. */
static dsl_annotation scalar_annotation(lowering *fl, dsl_annotation result, pypto_span span)
{
    if (!dtype_is_storage(result.type.dtype))
        return result;
    return bad_annotation(
        fl, span, "use pl.FP32; a tile of it can be converted",
        arena_printf(fl->a, "there are no scalars of %s", pypto_dtype_name(result.type.dtype)));
}

static dsl_annotation add_direction(lowering *fl, const char *path, dsl_annotation inner,
                                    pypto_span span)
{
    bool is_out = strcmp(path, "pl.Out") == 0;
    if (inner.form == ANNOTATION_FAILED)
        return inner;
    if (inner.form == ANNOTATION_TYPE && inner.type.kind == IR_SCALAR)
        return bad_annotation(
            fl, span, "scalars are passed by value",
            arena_printf(fl->a, "Scalar parameters cannot have %s direction", path + 3));
    bool memory = ir_is_memory(inner.type.kind);
    if ((inner.form != ANNOTATION_TYPE && inner.form != ANNOTATION_BARE) || !memory)
        return bad_annotation(
            fl, span, "leave it out",
            arena_printf(fl->a, "%s takes a pl.Tensor or a pld.DistributedTensor", path));
    if (inner.direction != PLD_IN)
        return bad_annotation(fl, span, "write one of the two", "pl.Out and pl.InOut do not nest");
    inner.direction = is_out ? PLD_OUT : PLD_INOUT;
    inner.span = span;
    return inner;
}

static dsl_annotation read_direction(lowering *fl, const char *path, const syntax_expr *e)
{
    if (e->items.count != 1)
        return bad_annotation(fl, e->span, "write it around one type",
                              arena_printf(fl->a, "%s takes one type", path));
    return add_direction(fl, path, read_annotation(fl, e->items.items[0]), e->span);
}

static dsl_annotation read_tuple(lowering *fl, const syntax_expr *e)
{
    dsl_annotation *items = arena_array(fl->a, dsl_annotation, e->items.count);
    for (int64_t i = 0; i < e->items.count; i++) {
        items[i] = read_annotation(fl, e->items.items[i]);
        if (items[i].form == ANNOTATION_FAILED)
            return failed();
        if (items[i].form == ANNOTATION_TUPLE)
            return bad_annotation(fl, items[i].span, "write all results in one tuple",
                                  "Nested tuple types are not supported");
    }
    return (dsl_annotation){.form = ANNOTATION_TUPLE,
                            .items = items,
                            .count = (int32_t)e->items.count,
                            .span = e->span};
}

static dsl_annotation read_subscript(lowering *fl, const char *path, const syntax_expr *e)
{
    if (shaped_kind(path) != IR_NONE)
        return read_shaped(fl, path, e);
    if (is_direction(path))
        return read_direction(fl, path, e);
    if (strcmp(path, "tuple") == 0 || strcmp(path, "pl.Tuple") == 0)
        return read_tuple(fl, e);
    if (strcmp(path, "pl.Scalar") == 0 && e->items.count == 1) {
        dsl_annotation result = {.form = ANNOTATION_TYPE, .span = e->span};
        result.type.kind = IR_SCALAR;
        return read_dtype(fl, e->items.items[0], &result.type.dtype)
                   ? scalar_annotation(fl, result, e->span)
                   : failed();
    }
    return no_type(fl, path, "[...]", e->span);
}

static dsl_annotation read_path(lowering *fl, const char *path, const syntax_expr *e)
{
    dsl_annotation result = {.form = ANNOTATION_TYPE, .span = e->span};
    dsl_value v = path_value(fl->a, path, e->span);
    if (v.kind == VALUE_DTYPE) {
        result.type = ir_scalar_type(v.dtype);
        return scalar_annotation(fl, result, e->span);
    }
    result.type.kind = shaped_kind(path);
    if (ir_is_memory(result.type.kind)) {
        result.form = ANNOTATION_BARE;
        return result;
    }
    if (strcmp(path, "pl.TaskId") == 0) {
        result.type = ir_scalar_type(PYPTO_TASK_ID);
        return result;
    }
    if (strcmp(path, "pl.Ptr") == 0 || strcmp(path, "pld.CommCtx") == 0) {
        result.type.kind = strcmp(path, "pl.Ptr") == 0 ? IR_BUFFER : IR_COMM;
        return result;
    }
    if (ir_is_private(result.type.kind) || strcmp(path, "pl.Scalar") == 0 || is_direction(path))
        return bad_annotation(
            fl, e->span, "write what it holds in brackets",
            arena_printf(fl->a, "Incomplete type annotation '%s': it needs [...]", path));
    return no_type(fl, path, "", e->span);
}

/* ---- annotations that the script has given a name ---- */

/* T = pl.Tensor[[1, 256], pl.FP32]: Python has evaluated it, so it arrives as values. */
static dsl_annotation read_named(lowering *fl, const name_value *v, const syntax_expr *e)
{
    dsl_annotation result = {.form = ANNOTATION_TYPE, .span = e->span};
    if (v->kind == NAME_PATH)
        return read_path(fl, v->text, e);
    if (v->kind != NAME_TYPE)
        return bad_annotation(fl, e->span, NULL,
                              arena_printf(fl->a, "'%s' is not a type of the DSL", e->text));
    if (is_direction(v->text) && v->count == 1)
        return add_direction(fl, v->text, read_named(fl, &v->items[0], e), e->span);
    bool scalar = strcmp(v->text, "pl.Scalar") == 0 && v->count == 1;
    const name_value *last = v->count == 0 ? v : &v->items[v->count - 1];
    dsl_value dtype = last->kind == NAME_PATH ? path_value(fl->a, last->text, e->span) : poison();
    result.type.kind = scalar ? IR_SCALAR : shaped_kind(v->text);
    result.type.dtype = dtype.dtype;
    if (result.type.kind == IR_NONE || dtype.kind != VALUE_DTYPE || (!scalar && v->count != 2))
        return bad_annotation(
            fl, e->span, "write the annotation in place, without the name",
            arena_printf(fl->a, "'%s' names an annotation that cannot be used by name", e->text));
    bool ok = scalar || read_named_shape(fl, &v->items[0], e->text, e->span, &result.type);
    if (ok && !scalar && result.type.ndim == 0)
        return bad_annotation(fl, e->span, "give at least one dimension",
                              "the shape must not be empty");
    return ok ? result : failed();
}

dsl_annotation read_annotation(lowering *fl, const syntax_expr *e)
{
    if (e->kind == SYNTAX_NAME) {
        const name_value *v = resolve_name(fl->fe, fl->function, e->text);
        if (v->kind == NAME_TYPE)
            return read_named(fl, v, e);
    }
    if (e->kind == SYNTAX_NONE)
        return (dsl_annotation){.form = ANNOTATION_NONE, .span = e->span};
    bool applied = e->kind == SYNTAX_SUBSCRIPT || e->kind == SYNTAX_CALL;
    const syntax_expr *head = applied ? e->a : e;
    const char *path = canonical_path(fl->fe, fl->function, head);
    if (path != NULL && e->kind == SYNTAX_SUBSCRIPT)
        return read_subscript(fl, path, e);
    if (path != NULL && e->kind == SYNTAX_CALL && shaped_kind(path) != IR_NONE)
        return read_shaped(fl, path, e);
    if (path != NULL && !applied)
        return read_path(fl, path, e);
    if (path == NULL && head->kind == SYNTAX_NAME &&
        resolve_name(fl->fe, fl->function, head->text)->kind == NAME_UNDEFINED) {
        report(fl->fe, DIAG_UNDEFINED_NAME, head->span, "import pypto.language as pl",
               "Undefined variable '%s'", head->text);
        return failed();
    }
    return bad_annotation(fl, e->span,
                          "pl.Tensor[[...], dtype], pld.DistributedTensor[[...], dtype], "
                          "pl.Scalar[dtype]",
                          "the annotation is not a type of the DSL");
}
