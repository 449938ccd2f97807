/* Calls of functions that have no code of their own: the callee's body is lowered in the place of the call, with
 * names of its own. Its parameters are names that start with the arguments, as by assignment; its return gives
 * the call its value (statements.c). */
#include "frontend/calls_internal.h"
#include "frontend/scalars.h"
#include "frontend/signature.h"
#include "frontend/statements.h"

#include <string.h>

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
    assign_name(fl, scope_find(fl, param->name), v, param->span);
    return v.kind != VALUE_POISON;
}

dsl_value splice_call(lowering *fl, const call_site *site)
{
    lowering caller = *fl;
    splice inner = {.outer = fl->spliced, .function = site->function, .depth = fl->depth};
    const syntax_function *callee = site->callee->syntax;
    int64_t errors_before = fl->fe->error_count;
    fl->function = site->function;
    fl->syntax = callee;
    fl->names = (name_scope){0};
    fl->trail = (name_changes){0};
    fl->loop = NULL;
    fl->carries = NULL;
    fl->in_branch = false;
    fl->spliced = &inner;
    memset(&fl->loop_memories, 0, sizeof fl->loop_memories);
    for (int32_t i = 0; i < site->count; i++)
        scope_declare(fl, callee->params.items[i].name, true);
    scope_collect(fl, &callee->body);
    bool ok = true;
    for (int32_t i = 0; i < site->count; i++)
        ok = bind_spliced(fl, &callee->params.items[i], site->values[i]) && ok;
    if (ok)
        lower_block(fl, &callee->body);
    fl->function = caller.function;
    fl->syntax = caller.syntax;
    fl->names = caller.names;
    fl->trail = caller.trail;
    fl->loop = caller.loop;
    fl->carries = caller.carries;
    fl->in_branch = caller.in_branch;
    fl->spliced = caller.spliced;
    fl->loop_memories.items = caller.loop_memories.items;
    fl->loop_memories.count = caller.loop_memories.count;
    fl->loop_memories.capacity = caller.loop_memories.capacity;
    fl->terminated = caller.terminated;
    if (!ok || fl->fe->error_count != errors_before)
        return poison();
    if (!inner.returned && callee->class_form && site->callee->inlined)
        return report(fl->fe, DIAG_BAD_RETURN, site->syntax->span, "end it with a return",
                      "inline function '%s' has no return value", site->name);
    inner.value.span = site->syntax->span;
    return inner.returned ? inner.value
                          : (dsl_value){.kind = VALUE_NONE, .span = site->syntax->span};
}
