/* What stands behind the shape in an annotation: the element type; and in the third and fourth slot a layout, a
 * memory space or a view, which are checked and change nothing. */
#include "frontend/annotations_internal.h"
#include "frontend/names.h"
#include "ops/dtypes.h"
#include <string.h>

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

bool read_dtype(lowering *fl, const syntax_expr *e, pypto_dtype *dtype)
{
    const char *path = canonical_path(fl->fe, fl->function, e);
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
        report(fl->fe, DIAG_LATER, e->span, op_later_hint(path), "%s is not supported yet", path);
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

static bool bad_slot(lowering *fl, pypto_span span, const char *hint, const char *message)
{
    (void)bad_annotation(fl, span, hint, message);
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
        return bad_slot(fl, span, "leave it out: the layout of a tile is the compiler's business",
                        "Tile does not accept layouts like pl.NZ");
    if (layout) {
        const char *name = enum_member_name("TensorLayout", v->integer);
        bool row_major = strcmp(name, "DN") != 0 && strcmp(name, "NZ") != 0;
        return row_major ||
               bad_slot(fl, span, "leave it out: tensors are row-major",
                        arena_printf(fl->a, "%s[..., %s] is not supported", path, written));
    }
    bool unknown = v->kind == VALUE_PATH && strncmp(v->text, "pl.", 3) == 0;
    return bad_slot(
        fl, span, "pl.ND, pl.MX_A_ZZ, pl.MX_B_NN",
        arena_printf(fl->a, unknown ? "Unknown layout '%s'" : "layout '%s' must be a TensorLayout",
                     written));
}

/* pl.TensorView(...), pl.TileView(...), pl.MemRef(...) */
static bool check_view(lowering *fl, const syntax_expr *e)
{
    static const char *const keywords[] = {"valid_shape", "stride", "layout", "pad",
                                           "start_offset"};
    const char *path = canonical_path(fl->fe, fl->function, e->a);
    bool tensor_view = path != NULL && strcmp(path, "pl.TensorView") == 0;
    bool tile_view = path != NULL && strcmp(path, "pl.TileView") == 0;
    if (path != NULL && strcmp(path, "pl.MemRef") == 0)
        return true;
    if (!tensor_view && !tile_view)
        return bad_slot(fl, e->span, NULL, "the layout must be a TensorLayout");
    for (int64_t i = 0; tensor_view && i < e->keywords.count; i++) {
        const syntax_keyword *k = &e->keywords.items[i];
        bool known = false;
        for (size_t n = 0; k->name != NULL && n < sizeof keywords / sizeof *keywords; n++)
            known = known || strcmp(keywords[n], k->name) == 0;
        if (!known)
            return bad_slot(fl, k->span, "valid_shape, stride, layout, pad",
                            arena_printf(fl->a, "Unknown TensorView keyword '%s'",
                                         k->name == NULL ? "**" : k->name));
    }
    if (!fl->syntax->class_form && tensor_view) {
        report(fl->fe, DIAG_ARGUMENT_TYPE, e->span, "leave it out: tensors are row-major",
               "a jit annotation does not yet support pl.TensorView");
        return false;
    }
    return tile_view || (e->items.count == 0 && e->keywords.count == 0) ||
           bad_slot(fl, e->span, "leave it out: tensors are row-major",
                    "pl.Tensor[..., pl.TensorView(...)] is not supported");
}

bool check_slot(lowering *fl, const char *path, const syntax_expr *e)
{
    if (e->kind == SYNTAX_STRING)
        return true;
    if (e->kind == SYNTAX_CALL)
        return check_view(fl, e);
    const char *written = dotted_words(fl->a, e);
    if (written == NULL)
        return bad_slot(fl, e->span, NULL, "the layout must be a TensorLayout");
    const name_value *meaning = outer_meaning(fl, e);
    if (meaning == NULL || meaning->kind == NAME_UNDEFINED)
        return bad_slot(fl, e->span, "pl.ND, pl.MX_A_ZZ, pl.MX_B_NN",
                        arena_printf(fl->a, "Unknown layout '%s'", written));
    dsl_value v = {.kind = VALUE_OTHER};
    if (meaning->kind == NAME_PATH)
        v = path_value(fl->a, meaning->text, e->span);
    return check_placement(fl, path, written, &v, e->span);
}
