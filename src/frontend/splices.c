/* Calls of functions that have no code of their own: the callee's body is lowered in the place of the call, with
 * names of its own. Its parameters are names that start with the arguments, as by assignment; its return gives
 * the call its value (returns.c), also from within branches (early_returns.c). */
#include "frontend/calls_internal.h"
#include "frontend/early_returns.h"
#include "frontend/scalars.h"
#include "frontend/signature.h"
#include "frontend/statements.h"

/* Gives a parameter its argument, as an assignment would. */
static bool bind_spliced(lowering *fl, const syntax_param *param, dsl_value v)
{
    if (param->annotation != NULL && v.kind == VALUE_SCALAR) {
        dsl_annotation declared = read_annotation(fl, param->annotation);
        if (declared.form == ANNOTATION_TYPE && declared.type.kind == IR_SCALAR)
            v = scalar_convert(
                fl, v, declared.type.dtype,
                arena_printf(fl->a, "argument '%s' of '%s'", param->name, fl->syntax->name));
    }
    assign_name(fl, binding_find(fl, param->name), v, param->span);
    return v.kind != VALUE_POISON;
}

/* The value of a function with early returns. */
static void take_result(lowering *fl, const early_returns *early)
{
    dsl_value *items = arena_array(fl->a, dsl_value, early->count + 1);
    for (int32_t i = 0; i < early->count; i++) {
        const int64_t name = binding_find(fl, early->names[i]);
        const binding *b = fl->names.bindings[name];
        if (b->state == BINDING_UNBOUND)
            return; /* the constants of the script leave all returns out */
        if (b->state == BINDING_PARTIAL && !b->by_loop)
            items[i] = report(fl->fe, DIAG_BAD_RETURN, b->span, "return a value at the end, too",
                              "'%s' returns a value on some paths only", fl->syntax->name);
        else if (b->state == BINDING_CONFLICT)
            items[i] =
                report(fl->fe, DIAG_BAD_RETURN, b->span, "return values of one type on every path",
                       "'%s' returns %s at line %d, but %s at line %d", fl->syntax->name,
                       type_name(fl->a, &b->v), b->span.line, type_name(fl->a, &b->other),
                       b->other_span.line);
        else
            items[i] = binding_read(fl, name, b->span);
    }
    if (early->count == 0)
        return;
    fl->spliced->returned = true;
    fl->spliced->value =
        early->count == 1 ? items[0]
                          : (dsl_value){.kind = VALUE_TUPLE, .items = items, .count = early->count};
}

dsl_value splice_call(lowering *fl, const call_site *site)
{
    lowering body = *fl;
    loop_memories memories = {0};
    splice here = {.outer = fl->spliced, .function = site->function, .depth = fl->depth};
    const syntax_function *callee = site->callee->syntax;
    int64_t errors_before = fl->fe->error_count;
    body.function = site->function;
    body.syntax = callee;
    body.names = (name_scope){0};
    body.trail = (name_changes){0};
    body.loop = NULL;
    body.carries = NULL;
    body.in_branch = false;
    body.spliced = &here;
    body.loop_memories = &memories;
    for (int32_t i = 0; i < site->count; i++)
        binding_declare(&body, callee->params.items[i].name, true);
    binding_collect(&body, &callee->body);
    early_returns early = {0};
    const bool parts = returns_early(&callee->body) && part_at_returns(&body, callee, &early);
    if (parts)
        binding_collect(&body, &early.body);
    bool ok = true;
    for (int32_t i = 0; i < site->count; i++)
        ok = bind_spliced(&body, &callee->params.items[i], site->values[i]) && ok;
    if (ok)
        lower_block(&body, parts ? &early.body : &callee->body);
    if (ok && parts)
        take_result(&body, &early);
    if (!ok || fl->fe->error_count != errors_before)
        return poison();
    if (!here.returned && callee->class_form && site->callee->inlined)
        return report(fl->fe, DIAG_BAD_RETURN, site->syntax->span, "end it with a return",
                      "inline function '%s' has no return value", site->name);
    here.value.span = site->syntax->span;
    return here.returned ? here.value : (dsl_value){.kind = VALUE_NONE, .span = site->syntax->span};
}
