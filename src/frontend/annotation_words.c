/* The words of annotations: which type form, direction or dtype an expression spells. Nothing is evaluated, and
 * nothing reported. */
#include "frontend/annotations_internal.h"
#include "frontend/names.h"
#include "ops/dtypes.h"
#include <string.h>

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

const char *dotted_words(arena *a, const syntax_expr *e)
{
    if (e->kind == SYNTAX_NAME)
        return e->text;
    const char *base = e->kind == SYNTAX_ATTRIBUTE ? dotted_words(a, e->a) : NULL;
    return base == NULL ? NULL : arena_printf(a, "%s.%s", base, e->text);
}

/* Types have two names, of which one is canonical. */
static const char *synonym(const char *path)
{
    if (strcmp(path, "pld.CommCtxType") == 0)
        return "pld.CommCtx";
    return strcmp(path, "pl.PtrType") == 0 ? "pl.Ptr" : path;
}

const char *canonical_path(frontend *fe, int32_t function, const syntax_expr *e)
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
    const char *base = canonical_path(fe, function, e->a);
    if (base == NULL) {
        /* A member of a module of the script: types.DT. */
        const char *name = dotted_words(fe->a, e);
        const name_value *v = name == NULL ? NULL : resolve_name(fe, function, name);
        return v != NULL && v->kind == NAME_PATH ? v->text : NULL;
    }
    dsl_value v = path_value(fe->a, arena_printf(fe->a, "%s.%s", base, e->text), e->span);
    if (v.kind == VALUE_DTYPE)
        return arena_printf(fe->a, "pl.%s", dtype_spelling(v.dtype));
    return v.kind == VALUE_PATH ? synonym(v.text) : NULL;
}

bool is_direction(const char *path)
{
    return strcmp(path, "pl.Out") == 0 || strcmp(path, "pl.InOut") == 0;
}

ir_kind shaped_kind(const char *path)
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
    return v->kind == NAME_PATH && ir_is_memory(shaped_kind(v->text));
}

bool annotation_is_bare(frontend *fe, int32_t function, const syntax_expr *e)
{
    if (e == NULL)
        return false;
    if (e->kind == SYNTAX_NAME)
        return named_is_bare(resolve_name(fe, function, e->text));
    if (e->kind == SYNTAX_SUBSCRIPT && e->items.count == 1) {
        const char *head = canonical_path(fe, function, e->a);
        return head != NULL && is_direction(head) &&
               annotation_is_bare(fe, function, e->items.items[0]);
    }
    const char *path = canonical_path(fe, function, e);
    return path != NULL && ir_is_memory(shaped_kind(path));
}

bool annotation_is_comm(frontend *fe, int32_t function, const syntax_expr *e)
{
    const char *path = e == NULL ? NULL : canonical_path(fe, function, e);
    return path != NULL && strcmp(path, "pld.CommCtx") == 0;
}
