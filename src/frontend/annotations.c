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
 * A dimension is a number, a constant of the script, a pl.dynamic symbol, a scalar parameter written
 * before it, or arithmetic over those. Names mean here what they mean outside the function, because
 * Python evaluates annotations there. */
#include "frontend/lower.h"
#include "frontend/names.h"
#include "frontend/scalars.h"
#include "frontend/signature.h"

#include "ops/dtypes.h"

#include <string.h>

static dsl_annotation failed(void)
{
    return (dsl_annotation){.form = ANNOTATION_FAILED};
}

static dsl_annotation bad(lowering *fl, pypto_span span, const char *hint, const char *message)
{
    report(fl->fe, DIAG_BAD_ANNOTATION, span, hint, "%s", message);
    return failed();
}

/* ---- heads ---- */

/* Reports what is no type: "X is not a type of the DSL", or that it will be one. */
static dsl_annotation no_type(lowering *fl, const char *path, const char *suffix, pypto_span span)
{
    if (op_is_later(path)) {
        report(fl->fe, DIAG_LATER, span, NULL, "%s is not supported yet", path);
        return failed();
    }
    return bad(fl, span,
               "pl.Tensor[[...], dtype], pld.DistributedTensor[[...], dtype], "
               "pl.Scalar[dtype]",
               arena_printf(fl->a, "'%s%s' is not a type of the DSL", path, suffix));
}

/* The short names that annotations may use without an import. */
static const char *short_form(arena *a, const char *name)
{
    static const char *const known[] = {"Tensor", "Tile", "Scalar", "Out", "InOut", "Tuple"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i], name) == 0)
            return arena_printf(a, "pl.%s", name);
    }
    return NULL;
}

/* "a.b.c" as written; NULL when it is not only names. */
static const char *dotted_words(arena *a, const syntax_expr *e)
{
    if (e->kind == SYNTAX_NAME)
        return e->text;
    const char *base = e->kind == SYNTAX_ATTRIBUTE ? dotted_words(a, e->a) : NULL;
    return base == NULL ? NULL : arena_printf(a, "%s.%s", base, e->text);
}

/* The canonical dotted name that an expression spells, or NULL; reports nothing. */
static const char *dotted(frontend *fe, int32_t function, const syntax_expr *e)
{
    if (e->kind == SYNTAX_NAME) {
        const name_value *v = resolve_name(fe, function, e->text);
        if (v->kind == NAME_PATH)
            return v->text;
        /* Python's own: tuple[A, B]. */
        if (v->kind == NAME_OTHER && strcmp(e->text, "tuple") == 0)
            return "tuple";
        return v->kind == NAME_UNDEFINED ? short_form(fe->a, e->text) : NULL;
    }
    if (e->kind != SYNTAX_ATTRIBUTE)
        return NULL;
    const char *base = dotted(fe, function, e->a);
    if (base == NULL) {
        /* A member of a module of the script: types.DT. */
        const char *name = dotted_words(fe->a, e);
        const name_value *v = name == NULL ? NULL : resolve_name(fe, function, name);
        return v != NULL && v->kind == NAME_PATH ? v->text : NULL;
    }
    dsl_value v = path_value(fe->a, arena_printf(fe->a, "%s.%s", base, e->text), e->span);
    if (v.kind == VALUE_DTYPE)
        return arena_printf(fe->a, "pl.%s", dtype_spelling(v.dtype));
    return v.kind == VALUE_PATH ? v.text : NULL;
}

static bool is_direction(const char *path)
{
    return strcmp(path, "pl.Out") == 0 || strcmp(path, "pl.InOut") == 0;
}

/* IR_NONE when the path is no type that takes a shape. */
static ir_kind shaped_kind(const char *path)
{
    if (strcmp(path, "pl.Tensor") == 0)
        return IR_TENSOR;
    if (strcmp(path, "pld.DistributedTensor") == 0)
        return IR_WINDOW;
    if (strcmp(path, "pl.Array") == 0)
        return IR_ARRAY;
    return strcmp(path, "pl.Tile") == 0 ? IR_TILE : IR_NONE;
}

/* The same of a named annotation. */
static bool named_is_bare(const name_value *v)
{
    if (v->kind == NAME_TYPE && v->count == 1 && is_direction(v->text))
        return named_is_bare(&v->items[0]);
    return v->kind == NAME_PATH &&
           (shaped_kind(v->text) == IR_TENSOR || shaped_kind(v->text) == IR_WINDOW);
}

bool annotation_is_bare(frontend *fe, int32_t function, const syntax_expr *e)
{
    if (e == NULL)
        return false;
    if (e->kind == SYNTAX_NAME)
        return named_is_bare(resolve_name(fe, function, e->text));
    if (e->kind == SYNTAX_SUBSCRIPT && e->items.count == 1) {
        const char *head = dotted(fe, function, e->a);
        return head != NULL && is_direction(head) &&
               annotation_is_bare(fe, function, e->items.items[0]);
    }
    const char *path = dotted(fe, function, e);
    return path != NULL && (shaped_kind(path) == IR_TENSOR || shaped_kind(path) == IR_WINDOW);
}

bool annotation_is_comm(frontend *fe, int32_t function, const syntax_expr *e)
{
    const char *path = e == NULL ? NULL : dotted(fe, function, e);
    return path != NULL && strcmp(path, "pld.CommCtx") == 0;
}

/* ---- dimensions ---- */

static dsl_value dim_value(lowering *fl, const syntax_expr *e);

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
    const char *path = dotted(fl->fe, fl->function, e->a);
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
        return report(fl->fe, DIAG_BAD_ANNOTATION, e->span, NULL,
                      "Failed to evaluate expression in a shape: '%s' has %d elements", name,
                      list->count);
    return dim_of_meaning(fl, &list->items[index], name, e->span);
}

static dsl_value dim_value(lowering *fl, const syntax_expr *e)
{
    switch (e->kind) {
    case SYNTAX_INT:
        if (e->overflow)
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

static bool add_dim(lowering *fl, ir_type *type, const dsl_value *v)
{
    int64_t extent = 0;
    if (v->kind == VALUE_POISON)
        return false;
    if (!ir_is_integer(v->expr->dtype))
        report(
            fl->fe, DIAG_BAD_ANNOTATION, v->span, "a dimension is an int or a pl.dynamic(\"NAME\")",
            "shape element %d must be int, not %s", type->ndim, pypto_dtype_name(v->expr->dtype));
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

/* A whole shape may be a constant of the script: SHAPE = [1, 256]. `name` is for messages. */
static bool read_named_shape(lowering *fl, const name_value *v, const char *name, pypto_span span,
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

static bool read_shape(lowering *fl, const syntax_expr *e, ir_type *type)
{
    bool ok = true;
    const char *words = dotted_words(fl->a, e);
    if (words != NULL) {
        ok = read_named_shape(fl, resolve_name(fl->fe, fl->function, words), words, e->span, type);
    } else if (e->kind == SYNTAX_LIST || e->kind == SYNTAX_TUPLE) {
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

/* ---- element types ---- */

const char *nearest_dtype(arena *a, const char *path)
{
    const char *all[PYPTO_DTYPE_COUNT];
    for (int32_t i = 0; i < PYPTO_DTYPE_COUNT; i++)
        all[i] = arena_printf(a, "pl.%s", dtype_spelling((pypto_dtype)i));
    return nearest_word(path, all, PYPTO_DTYPE_COUNT);
}

static const char *dtype_hint(arena *a, const char *path)
{
    const char *near = nearest_dtype(a, path);
    return near == NULL ? "pl.FP32, pl.INT32, ..." : arena_printf(a, "did you mean %s?", near);
}

static bool read_dtype(lowering *fl, const syntax_expr *e, pypto_dtype *dtype)
{
    const char *path = dotted(fl->fe, fl->function, e);
    dsl_value v = path == NULL ? poison() : path_value(fl->a, path, e->span);
    bool named = e->kind == SYNTAX_NAME; /* a variable of the script, not pl.<something> */
    if (path == NULL || (named && v.kind != VALUE_DTYPE)) {
        const char *name = dotted_words(fl->a, e);
        report(fl->fe, DIAG_BAD_ANNOTATION, e->span, "pl.FP32, pl.INT32, ...",
               name == NULL ? "the element type must be a DataType"
                            : "the element type '%s' must be a DataType",
               name);
        return false;
    }
    if (v.kind != VALUE_DTYPE && op_is_later(path)) {
        report(fl->fe, DIAG_LATER, e->span, NULL, "%s is not supported yet", path);
        return false;
    }
    if (v.kind != VALUE_DTYPE) {
        report(fl->fe, DIAG_BAD_ANNOTATION, e->span, dtype_hint(fl->a, path), "Unknown dtype '%s'",
               path);
        return false;
    }
    *dtype = v.dtype;
    return true;
}

/* ---- third and fourth slots ---- */

static bool bad_extra(lowering *fl, pypto_span span, const char *hint, const char *message)
{
    (void)bad(fl, span, hint, message);
    return false;
}

/* A layout or a memory space, `written` in the annotation and meaning `v`. */
static bool check_placement(lowering *fl, const char *path, const char *written, const dsl_value *v,
                            pypto_span span)
{
    bool tile = shaped_kind(path) == IR_TILE;
    bool layout = v->kind == VALUE_ENUM && strcmp(v->text, "TensorLayout") == 0;
    if (v->kind == VALUE_ENUM && strcmp(v->text, "MemorySpace") == 0)
        return true; /* where the tile lies has no influence on its value */
    if (tile && layout)
        return bad_extra(fl, span, "leave it out: the layout of a tile is the compiler's business",
                         "Tile does not accept layouts like pl.NZ");
    if (layout) {
        const char *name = enum_member_name("TensorLayout", v->integer);
        bool row_major = strcmp(name, "DN") != 0 && strcmp(name, "NZ") != 0;
        return row_major ||
               bad_extra(fl, span, "leave it out: tensors are row-major",
                         arena_printf(fl->a, "%s[..., %s] is not supported", path, written));
    }
    bool unknown = v->kind == VALUE_PATH && strncmp(v->text, "pl.", 3) == 0;
    return bad_extra(
        fl, span, "pl.ND, pl.MX_A_ZZ, pl.MX_B_NN",
        arena_printf(fl->a, unknown ? "Unknown layout '%s'" : "layout '%s' must be a TensorLayout",
                     written));
}

/* pl.TensorView(...), pl.TileView(...), pl.MemRef(...) */
static bool check_view(lowering *fl, const syntax_expr *e)
{
    static const char *const keywords[] = {"valid_shape", "stride", "layout", "pad",
                                           "start_offset"};
    const char *path = dotted(fl->fe, fl->function, e->a);
    bool tensor_view = path != NULL && strcmp(path, "pl.TensorView") == 0;
    bool tile_view = path != NULL && strcmp(path, "pl.TileView") == 0;
    if (path != NULL && strcmp(path, "pl.MemRef") == 0)
        return true;
    if (!tensor_view && !tile_view)
        return bad_extra(fl, e->span, NULL, "the layout must be a TensorLayout");
    for (int64_t i = 0; tensor_view && i < e->keywords.count; i++) {
        const syntax_keyword *k = &e->keywords.items[i];
        bool known = false;
        for (size_t n = 0; k->name != NULL && n < sizeof keywords / sizeof *keywords; n++)
            known = known || strcmp(keywords[n], k->name) == 0;
        if (!known)
            return bad_extra(fl, k->span, "valid_shape, stride, layout, pad",
                             arena_printf(fl->a, "Unknown TensorView keyword '%s'",
                                          k->name == NULL ? "**" : k->name));
    }
    if (!fl->syntax->class_form && tensor_view) {
        report(fl->fe, DIAG_ARGUMENT_TYPE, e->span, "leave it out: tensors are row-major",
               "a jit annotation does not yet support pl.TensorView");
        return false;
    }
    return tile_view || (e->items.count == 0 && e->keywords.count == 0) ||
           bad_extra(fl, e->span, "leave it out: tensors are row-major",
                     "pl.Tensor[..., pl.TensorView(...)] is not supported");
}

static bool check_extra(lowering *fl, const char *path, const syntax_expr *e)
{
    if (e->kind == SYNTAX_STRING)
        return true;
    if (e->kind == SYNTAX_CALL)
        return check_view(fl, e);
    const char *written = dotted_words(fl->a, e);
    if (written == NULL)
        return bad_extra(fl, e->span, NULL, "the layout must be a TensorLayout");
    const name_value *meaning = outer_meaning(fl, e);
    if (meaning == NULL || meaning->kind == NAME_UNDEFINED)
        return bad_extra(fl, e->span, "pl.ND, pl.MX_A_ZZ, pl.MX_B_NN",
                         arena_printf(fl->a, "Unknown layout '%s'", written));
    dsl_value v = {.kind = VALUE_OTHER};
    if (meaning->kind == NAME_PATH)
        v = path_value(fl->a, meaning->text, e->span);
    return check_placement(fl, path, written, &v, e->span);
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
        return bad(fl, e->span, "write pl.Array[16, pl.INT32]",
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
        return bad(fl, e->span, arena_printf(fl->a, "write %s[[1, 256], pl.FP32]", path),
                   arena_printf(fl->a, "%s needs a shape and an element type", path));
    if (is_dimension(fl, e->items.items[0]))
        return bad(fl, e->items.items[0]->span,
                   arena_printf(fl->a, "write the shape in brackets: %s[[1, 256], pl.FP32]", path),
                   "the shape must be a list or tuple");
    bool extras_ok = true;
    for (int64_t i = 2; i < e->items.count; i++)
        extras_ok = check_extra(fl, path, e->items.items[i]) && extras_ok;
    if (!extras_ok)
        return failed();
    bool shape_ok = read_shape(fl, e->items.items[0], &result.type);
    bool dtype_ok = read_dtype(fl, e->items.items[1], &result.type.dtype);
    if (!shape_ok || !dtype_ok)
        return failed();
    if (result.type.dtype == PYPTO_TASK_ID && result.type.kind != IR_ARRAY)
        return bad(fl, e->items.items[1]->span, "use pl.array.create(n, pl.TASK_ID)",
                   "ids of tasks are in scalars and arrays only");
    int64_t last = 0;
    if (pypto_dtype_packed(result.type.dtype) && result.type.ndim > 0 &&
        (!ir_is_const_int(result.type.shape[result.type.ndim - 1], &last) || last % 2 != 0))
        return bad(fl, e->items.items[0]->span, "two elements lie in a byte",
                   arena_printf(fl->a, "the last dimension of %s must be a constant, even number",
                                pypto_dtype_name(result.type.dtype)));
    return result;
}

/* Types for storage only have tensors and tiles. */
static dsl_annotation scalar_annotation(lowering *fl, dsl_annotation result, pypto_span span)
{
    if (!dtype_is_storage(result.type.dtype))
        return result;
    return bad(
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
        return bad(fl, span, "scalars are passed by value",
                   arena_printf(fl->a, "Scalar parameters cannot have %s direction", path + 3));
    bool memory = inner.type.kind == IR_TENSOR || inner.type.kind == IR_WINDOW;
    if ((inner.form != ANNOTATION_TYPE && inner.form != ANNOTATION_BARE) || !memory)
        return bad(fl, span, "leave it out",
                   arena_printf(fl->a, "%s takes a pl.Tensor or a pld.DistributedTensor", path));
    if (inner.direction != PLD_IN)
        return bad(fl, span, "write one of the two", "pl.Out and pl.InOut do not nest");
    inner.direction = is_out ? PLD_OUT : PLD_INOUT;
    inner.span = span;
    return inner;
}

static dsl_annotation read_direction(lowering *fl, const char *path, const syntax_expr *e)
{
    if (e->items.count != 1)
        return bad(fl, e->span, "write it around one type",
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
            return bad(fl, items[i].span, "write all results in one tuple",
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
    if (result.type.kind == IR_TENSOR || result.type.kind == IR_WINDOW) {
        result.form = ANNOTATION_BARE;
        return result;
    }
    if (strcmp(path, "pl.Ptr") == 0 || strcmp(path, "pld.CommCtx") == 0) {
        result.type.kind = strcmp(path, "pl.Ptr") == 0 ? IR_BUFFER : IR_COMM;
        return result;
    }
    if (ir_is_private(result.type.kind) || strcmp(path, "pl.Scalar") == 0 || is_direction(path))
        return bad(fl, e->span, "write what it holds in brackets",
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
        return bad(fl, e->span, NULL,
                   arena_printf(fl->a, "'%s' is not a type of the DSL", e->text));
    if (is_direction(v->text) && v->count == 1)
        return add_direction(fl, v->text, read_named(fl, &v->items[0], e), e->span);
    bool scalar = strcmp(v->text, "pl.Scalar") == 0 && v->count == 1;
    const name_value *last = v->count == 0 ? v : &v->items[v->count - 1];
    dsl_value dtype = last->kind == NAME_PATH ? path_value(fl->a, last->text, e->span) : poison();
    result.type.kind = scalar ? IR_SCALAR : shaped_kind(v->text);
    result.type.dtype = dtype.dtype;
    if (result.type.kind == IR_NONE || dtype.kind != VALUE_DTYPE || (!scalar && v->count != 2))
        return bad(
            fl, e->span, "write the annotation in place, without the name",
            arena_printf(fl->a, "'%s' names an annotation that cannot be used by name", e->text));
    bool ok = scalar || read_named_shape(fl, &v->items[0], e->text, e->span, &result.type);
    if (ok && !scalar && result.type.ndim == 0)
        return bad(fl, e->span, "give at least one dimension", "the shape must not be empty");
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
    const char *path = dotted(fl->fe, fl->function, head);
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
    return bad(fl, e->span,
               "pl.Tensor[[...], dtype], pld.DistributedTensor[[...], dtype], "
               "pl.Scalar[dtype]",
               "the annotation is not a type of the DSL");
}
