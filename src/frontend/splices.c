/* Calls of functions that have no code of their own: the callee's body is lowered in the place of the call, with
 * names of its own. Its parameters are names that start with the arguments, as by assignment; its return gives
 * the call its value (statements.c). */
#include "frontend/calls_internal.h"
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
    bool ok = true;
    for (int32_t i = 0; i < site->count; i++)
        ok = bind_spliced(&body, &callee->params.items[i], site->values[i]) && ok;
    if (ok)
        lower_block(&body, &callee->body);
    if (!ok || fl->fe->error_count != errors_before)
        return poison();
    if (!here.returned && callee->class_form && site->callee->inlined)
        return report(fl->fe, DIAG_BAD_RETURN, site->syntax->span, "end it with a return",
                      "inline function '%s' has no return value", site->name);
    here.value.span = site->syntax->span;
    return here.returned ? here.value : (dsl_value){.kind = VALUE_NONE, .span = site->syntax->span};
}
