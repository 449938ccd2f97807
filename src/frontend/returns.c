/* Returns, and the annotation of what a function returns.
 *
 * A return emits nothing by itself: it says which parameters' storage the function's value is, and only
 * leaves the function where something would still follow. */
#include "frontend/expressions.h"
#include "frontend/lower.h"
#include "frontend/scopes.h"
#include "frontend/signature.h"
#include "frontend/statements.h"

/* The parameter whose storage the value is, or the tensor that becomes one (made_results.c); NULL after reporting. */
static ir_var *returned_param(lowering *fl, const dsl_value *v)
{
    ir_var *root = v->kind == VALUE_VAR ? v->var->root : NULL;
    if (root != NULL && (root->kind == IR_VAR_PARAM || is_made_tensor(fl, root)))
        return root;
    bool tile = v->kind == VALUE_VAR && v->var->type.kind == IR_TILE;
    if (v->kind == VALUE_VAR && ir_is_handle(v->var->type.kind) && root == NULL)
        report(fl->fe, DIAG_BAD_RETURN, v->span,
               "return the same parameter, or the same tensor of the function's own, on every path",
               "the returned value is not the same parameter on all paths");
    else if (v->kind != VALUE_POISON)
        report(
            fl->fe, DIAG_BAD_RETURN, v->span,
            tile
                ? "store it first: return pl.store(tile, offsets, out)"
                : "return a parameter or, outside of kernels, a tensor of pl.create_tensor: by name, or "
                  "what pl.store or a call gave for it",
            "a function returns storage of its parameters, not %s", describe(fl->a, v));
    return NULL;
}

/* The return of a spliced function gives the call its value. */
static void return_spliced(lowering *fl, const syntax_stmt *s, dsl_value v)
{
    splice *into = fl->spliced;
    into->value = v;
    if (fl->depth > into->depth)
        into->value =
            report(fl->fe, DIAG_UNSUPPORTED_STATEMENT, s->span,
                   "give a name the result on each path, and return it at the end",
                   "a return inside a loop or scope is not supported in '%s', which is inlined",
                   fl->syntax->name);
    into->returned = true;
    fl->terminated = true;
}

/* The function around a scope returns, once the scope is over. */
static void return_from_scope(lowering *fl, const syntax_stmt *s, dsl_value v)
{
    outline *scope = fl->outlined;
    scope->returned = s;
    scope->value = v;
    if (fl->depth > scope->depth)
        scope->value = report(fl->fe, DIAG_UNSUPPORTED_STATEMENT, s->span,
                              "return at the end of the scope, or behind it",
                              "a return inside if or for is not supported in a scope of '%s'",
                              fl->syntax->name);
    fl->terminated = true;
}

void lower_return(lowering *fl, const syntax_stmt *s)
{
    dsl_value v = {.kind = VALUE_NONE, .span = s->span};
    if (s->value != NULL)
        v = eval(fl, s->value);
    if (fl->outlined != NULL && fl->outlined->spliced == fl->spliced)
        return_from_scope(fl, s, v);
    else
        lower_returned(fl, s, v);
}

/* A window of a host function ends with the call: it may be returned, and the caller gets nothing. */
static bool ends_here(const lowering *fl, const dsl_value *v)
{
    return fl->ir->plane == PLD_PLANE_HOST && v->kind == VALUE_VAR &&
           v->var->type.kind == IR_WINDOW;
}

void lower_returned(lowering *fl, const syntax_stmt *s, dsl_value v)
{
    if (fl->spliced != NULL) {
        return_spliced(fl, s, v);
        return;
    }
    VEC(ir_var *) results = {0};
    bool ok = v.kind != VALUE_POISON;
    if (v.kind == VALUE_TUPLE) {
        for (int32_t i = 0; i < v.count; i++) {
            if (ends_here(fl, &v.items[i]))
                continue;
            ir_var *param = returned_param(fl, &v.items[i]);
            ok = ok && param != NULL;
            vec_push(fl->a, &results, param);
        }
    } else if (ok && v.kind != VALUE_NONE && !ends_here(fl, &v)) {
        ir_var *param = returned_param(fl, &v);
        ok = param != NULL;
        vec_push(fl->a, &results, param);
    }
    if (fl->depth > 0)
        ir_stmt_create(fl->fe->program, fl->block, IR_RETURN, s->span);
    fl->terminated = true;
    fl->notes->result_poisoned = fl->notes->result_poisoned || !ok;
    if (!ok)
        return;
    bool same = results.count == fl->ir->results.count;
    for (int64_t i = 0; fl->notes->returned && same && i < results.count; i++)
        same = results.items[i] == fl->ir->results.items[i];
    if (fl->notes->returned && !same && !fl->notes->result_poisoned)
        report(fl->fe, DIAG_BAD_RETURN, s->span, "return the same parameters on every path",
               "the returns of '%s' give different parameters", fl->syntax->name);
    for (int64_t i = 0; !fl->notes->returned && i < results.count; i++)
        vec_push(fl->a, &fl->ir->results, results.items[i]);
    fl->notes->returned = true;
}

/* What the function declares to return, without what ends_here(). */
static int32_t declared_results(const lowering *fl, const dsl_annotation *declared,
                                const dsl_annotation **items)
{
    const bool tuple = declared->form == ANNOTATION_TUPLE;
    const int32_t count = tuple ? declared->count : 1;
    dsl_annotation *kept = arena_array(fl->a, dsl_annotation, count);
    int32_t wanted = 0;
    for (int32_t i = 0; i < count; i++) {
        const dsl_annotation *item = tuple ? &declared->items[i] : declared;
        const bool window = fl->ir->plane == PLD_PLANE_HOST && item->type.kind == IR_WINDOW;
        if (!window && (tuple || item->form != ANNOTATION_NONE))
            kept[wanted++] = *item;
    }
    *items = kept;
    return wanted;
}

void check_results(lowering *fl)
{
    if (fl->syntax->returns == NULL)
        return;
    dsl_annotation declared = read_annotation(fl, fl->syntax->returns);
    int64_t count = fl->ir->results.count;
    if (declared.form == ANNOTATION_FAILED || fl->notes->result_poisoned || !fl->notes->returned)
        return;
    const dsl_annotation *items;
    const int32_t wanted = declared_results(fl, &declared, &items);
    if (wanted != count) {
        report(fl->fe, DIAG_BAD_RETURN, fl->syntax->returns->span,
               "make the annotation and the return agree",
               "'%s' declares %d result(s) but returns %lld", fl->syntax->name, wanted,
               (long long)count);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (items[i].form != ANNOTATION_NONE)
            (void)check_declared(fl, &items[i], &fl->ir->results.items[i]->type, items[i].span,
                                 "the result");
    }
}
