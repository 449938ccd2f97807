/* Dynamic marks: which extents of a bare parameter stay open although the argument's are known.
 *
 * A wrapper that writes `x: pl.Tensor` takes shape and element type from the arguments of the call. Where
 * it passes x on to a function that declares the dimension as a pl.dynamic, or binds it with bind_dynamic,
 * a constant would only make a program per extent, all alike. So such a dimension is dynamic in the
 * wrapper too, through any number of bare parameters in between. Marks do not pass through x[r] or any
 * other expression, and not through a name that is assigned again.
 *
 * Only syntax is looked at, so that signatures know marks before any body is lowered. */
#include "frontend/lower.h"
#include "frontend/names.h"
#include "frontend/signature.h"

#include <string.h>

typedef struct search {
    frontend *fe;
    int32_t function;
    const char *name;
    int32_t dim;
    int32_t depth; /* of calls, against recursion */
} search;

static bool marked(search s);

/* ---- annotations ---- */

static bool is_dynamic_value(const name_value *v)
{
    return v->kind == NAME_DYNAMIC || v->kind == NAME_DIM;
}

static bool is_dynamic_dim(const search *s, const syntax_expr *e)
{
    switch (e->kind) {
    case SYNTAX_NAME: return is_dynamic_value(resolve_name(s->fe, s->function, e->text));
    case SYNTAX_BINARY: return is_dynamic_dim(s, e->a) || is_dynamic_dim(s, e->b);
    case SYNTAX_CALL:
        return (e->a->kind == SYNTAX_NAME || e->a->kind == SYNTAX_ATTRIBUTE) &&
               strcmp(e->a->text, "dynamic") == 0;
    default: return false;
    }
}

/* T = pl.Out[pl.Tensor[[NR, 4], pl.FP32]] */
static bool named_declares(const name_value *v, int32_t dim)
{
    if (v->kind != NAME_TYPE || v->count == 0)
        return false;
    if (v->count == 1)
        return named_declares(&v->items[0], dim);
    const name_value *shape = &v->items[0];
    return shape->kind == NAME_LIST && dim < shape->count && is_dynamic_value(&shape->items[dim]);
}

/* Whether the annotation declares the dimension as dynamic. */
static bool declares(const search *s, const syntax_expr *e)
{
    if (e == NULL)
        return false;
    if (e->kind == SYNTAX_NAME)
        return named_declares(resolve_name(s->fe, s->function, e->text), s->dim);
    if ((e->kind != SYNTAX_SUBSCRIPT && e->kind != SYNTAX_CALL) || e->items.count == 0)
        return false;
    const syntax_expr *shape = e->items.items[0];
    if (e->items.count == 1)
        return declares(s, shape); /* pl.Out[...] */
    if (shape->kind == SYNTAX_NAME) {
        const name_value *list = resolve_name(s->fe, s->function, shape->text);
        return list->kind == NAME_LIST && s->dim < list->count &&
               is_dynamic_value(&list->items[s->dim]);
    }
    bool listed = syntax_is_sequence(shape);
    return listed && s->dim < shape->items.count && is_dynamic_dim(s, shape->items.items[s->dim]);
}

/* ---- bodies ---- */

static bool is_the_name(const search *s, const syntax_expr *e)
{
    return e->kind == SYNTAX_NAME && strcmp(e->text, s->name) == 0;
}

/* Whether the function that is called marks what the name is passed to. */
static bool call_marks(const search *s, const syntax_expr *call)
{
    if (call->a->kind != SYNTAX_NAME)
        return false;
    const name_value *callee = resolve_name(s->fe, s->function, call->a->text);
    const frontend_source *source =
        callee->kind == NAME_FUNCTION ? source_of(s->fe, callee->function) : NULL;
    if (source == NULL)
        return false;
    search inner = {s->fe, callee->function, NULL, s->dim, s->depth + 1};
    for (int64_t i = 0; i < source->syntax->params.count; i++) {
        inner.name = source->syntax->params.items[i].name;
        bool passed = i < call->items.count && is_the_name(s, call->items.items[i]);
        for (int64_t k = 0; k < call->keywords.count && !passed; k++) {
            const syntax_keyword *keyword = &call->keywords.items[k];
            passed = keyword->name != NULL && strcmp(keyword->name, inner.name) == 0 &&
                     is_the_name(s, keyword->value);
        }
        if (passed && marked(inner))
            return true;
    }
    return false;
}

/* x.bind_dynamic(0, M) */
static bool binds(const search *s, const syntax_expr *call)
{
    return call->a->kind == SYNTAX_ATTRIBUTE && strcmp(call->a->text, "bind_dynamic") == 0 &&
           is_the_name(s, call->a->a) && call->items.count > 0 &&
           call->items.items[0]->kind == SYNTAX_INT && call->items.items[0]->integer == s->dim;
}

static bool expr_marks(void *context, const syntax_expr *e)
{
    const search *s = context;
    return e->kind == SYNTAX_CALL && (binds(s, e) || call_marks(s, e));
}

static bool block_marks(search *s, const syntax_block *block)
{
    for (int64_t i = 0; i < block->count; i++) {
        const syntax_stmt *stmt = block->items[i];
        if (syntax_any(stmt->value, expr_marks, s) || block_marks(s, &stmt->body) ||
            block_marks(s, &stmt->orelse))
            return true;
    }
    return false;
}

static bool is_assigned(const search *s, const syntax_block *block)
{
    for (int64_t i = 0; i < block->count; i++) {
        const syntax_stmt *stmt = block->items[i];
        if ((stmt->target != NULL && is_the_name(s, stmt->target)) || is_assigned(s, &stmt->body) ||
            is_assigned(s, &stmt->orelse))
            return true;
    }
    return false;
}

static bool marked(search s)
{
    enum { DEEPEST = 16 };
    const frontend_source *source = s.depth > DEEPEST ? NULL : source_of(s.fe, s.function);
    if (source == NULL)
        return false;
    for (int64_t i = 0; i < source->syntax->params.count; i++) {
        const syntax_param *param = &source->syntax->params.items[i];
        if (strcmp(param->name, s.name) == 0 && declares(&s, param->annotation))
            return true;
    }
    return !is_assigned(&s, &source->syntax->body) && block_marks(&s, &source->syntax->body);
}

bool dimension_is_marked(frontend *fe, int32_t function, const char *param, int32_t dim)
{
    return marked((search){fe, function, param, dim, 0});
}
