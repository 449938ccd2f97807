/* Calls between DSL functions: a host function dispatches per-device wrappers (device=r), a wrapper
 * calls in-core kernels, which become tasks, and a kernel calls others, as part of its own task. A kernel
 * that a host function dispatches gets a wrapper made for it (entry.c). What is written to be inlined has no
 * code of its own: its body is lowered in the place of the call (splices.c). Nothing else may call.
 *
 * A call binds its arguments to the callee's parameters, specialises the callee (which lowers it the
 * first time), compares types (call_arguments.c) and becomes one IR_CALL. Its value is what the callee
 * returns: always storage of some of its parameters, so always some of the arguments, or of what is created
 * for the call (made_results.c). */
#include "frontend/calls_internal.h"
#include "frontend/expressions.h"
#include "frontend/names.h"
#include "frontend/signature.h"

#include <string.h>

/* ---- may it be called here? ---- */

static bool report_recursion(lowering *fl, const call_site *site)
{
    report(fl->fe, DIAG_RECURSION, site->syntax->span, "write a loop",
           "'%s' calls itself, directly or through others", site->name);
    return false;
}

/* A function that is being lowered is one of those that called the present one. */
static bool check_recursion(lowering *fl, const call_site *site)
{
    for (int64_t i = 0; i < fl->fe->instances.count; i++) {
        const instance *caller = fl->fe->instances.items[i];
        if (caller->function != site->function || caller->state != INSTANCE_RUNNING)
            continue;
        return report_recursion(fl, site);
    }
    for (const splice *s = fl->spliced; s != NULL; s = s->outer) {
        if (s->function == site->function)
            return report_recursion(fl, site);
    }
    return true;
}

/* A function of pl.function outside of the class becomes part of the program under its own name, which
 * must be nobody else's. */
static bool check_external(lowering *fl, const call_site *site)
{
    const syntax_function *callee = site->callee->syntax;
    const bool sub = site->callee->plane == PLD_PLANE_SUB; /* jit functions may call those, too */
    if ((fl->syntax->program == NULL && !sub) || !callee->class_form || callee->program != NULL)
        return true;
    const char *sibling = arena_printf(fl->a, "self.%s", site->name);
    const char *problem = NULL;
    if (fl->syntax->program != NULL &&
        resolve_name(fl->fe, fl->function, sibling)->kind != NAME_UNDEFINED)
        problem =
            arena_printf(fl->a, "external function '%s' conflicts with program function of '%s'",
                         site->name, fl->syntax->program);
    for (int64_t i = 0; i < fl->fe->instances.count && problem == NULL; i++) {
        int32_t other = fl->fe->instances.items[i]->function;
        const frontend_source *source = source_of(fl->fe, other);
        if (other != site->function && source != NULL && source->syntax->class_form &&
            source->syntax->program == NULL && strcmp(source->syntax->name, site->name) == 0)
            problem = arena_printf(fl->a, "Conflicting external functions: two are called '%s'",
                                   site->name);
    }
    if (problem != NULL)
        report(fl->fe, DIAG_BAD_PROGRAM_CLASS, site->syntax->span, "rename one of them", "%s",
               problem);
    return problem == NULL;
}

static bool takes_comm(const lowering *fl, const call_site *site)
{
    for (int32_t i = 0; i < site->count; i++) {
        if (annotation_is_comm(fl->fe, site->function,
                               site->callee->syntax->params.items[i].annotation))
            return true;
    }
    return false;
}

bool is_spliced(const lowering *fl, const call_site *site)
{
    pld_plane from = fl->ir->plane;
    pld_plane to = site->callee->plane;
    return site->callee->inlined || (from == PLD_PLANE_CORE && takes_comm(fl, site)) ||
           (from == PLD_PLANE_CHIP && to == PLD_PLANE_CHIP && site->callee->syntax->class_form);
}

static bool check_planes(lowering *fl, const call_site *site)
{
    pld_plane from = fl->ir->plane;
    pld_plane to = site->callee->plane;
    pypto_span span = site->syntax->span;
    if (site->callee->is_extern) {
        report(
            fl->fe, DIAG_UNSUPPORTED_EXPRESSION, span, "write it as a @pl.jit.incore function",
            "'%s' is a hand-written kernel (@pl.jit.extern) for the hardware's tool-chain, which is "
            "not here",
            site->name);
        return false;
    }
    if (from == PLD_PLANE_HOST && to == PLD_PLANE_CORE && takes_comm(fl, site)) {
        report(fl->fe, DIAG_BAD_CALL, span,
               "pass the window; the in-core function calls pld.get_comm_ctx(window)",
               "'%s' takes a communication domain, which a host function cannot hand to a task",
               site->name);
        return false;
    }
    if ((from == PLD_PLANE_HOST && to != PLD_PLANE_HOST) ||
        (from == PLD_PLANE_CHIP && to == PLD_PLANE_CORE) ||
        (from == PLD_PLANE_CORE && to == PLD_PLANE_CORE) || is_spliced(fl, site))
        return true;
    if (to == PLD_PLANE_SUB)
        report(fl->fe, DIAG_BAD_CALL, span,
               "call it from the host function, behind the dispatches whose results it reads",
               "SubWorker '%s' is called from %s: it runs on the host's side, where only a host "
               "function can call it",
               site->name, from == PLD_PLANE_CHIP ? "a wrapper" : "a kernel");
    else if (to == PLD_PLANE_HOST)
        report(fl->fe, DIAG_BAD_CALL, span, "a host function is called from Python only",
               "host function '%s' cannot be called from a DSL function", site->name);
    else if (from == PLD_PLANE_CHIP)
        report(fl->fe, DIAG_BAD_CALL, span,
               "call the in-core functions of that wrapper, or dispatch both from the host",
               "a @pl.jit wrapper cannot call another one, '%s'", site->name);
    else
        report(fl->fe, DIAG_BAD_CALL, span, "call both from the @pl.jit wrapper",
               "an in-core function cannot call a @pl.jit wrapper, '%s'", site->name);
    return false;
}

/* ---- the call ---- */

/* No task is given a domain: in its place the window passes that it is of, and the kernel asks that (signature.c). */
static void pass_windows(lowering *fl, call_site *site)
{
    for (int32_t i = 0; i < site->count; i++) {
        const syntax_param *param = &site->callee->syntax->params.items[i];
        dsl_value *v = &site->values[i];
        if (v->kind == VALUE_POISON ||
            !annotation_is_comm(fl->fe, site->function, param->annotation))
            continue;
        if (is_domain_of_window(v)) {
            *v = var_value(fl->a, v->var->root, v->span);
            continue;
        }
        const bool merged = v->kind == VALUE_VAR && v->var->type.kind == IR_COMM;
        *v = report(fl->fe, DIAG_BAD_CALL, v->span,
                    merged ? "call pld.get_comm_ctx behind the branch or loop"
                           : "pass pld.get_comm_ctx(window)",
                    "argument '%s' of '%s' must be a CommCtx%s, not %s", param->name, site->name,
                    merged ? " of one window" : "",
                    merged ? "one that the path decides" : describe(fl->a, v));
        site->ok = false;
    }
}

static instance *specialise_callee(lowering *fl, const call_site *site)
{
    given_param *given = arena_array(fl->a, given_param, site->count);
    for (int32_t i = 0; i < site->count; i++) {
        if (value_type(&site->values[i], &given[i].type))
            given[i].kind = GIVEN_TYPE;
    }
    return specialise(fl->fe, site->function, given, site->count);
}

static dsl_value call_value(lowering *fl, const call_site *site, const instance *callee,
                            const ir_operand *operands)
{
    const ir_function *f = callee->ir;
    int32_t count = (int32_t)f->results.count;
    dsl_value *items = arena_array(fl->a, dsl_value, count);
    for (int32_t i = 0; i < count; i++) {
        for (int32_t p = 0; p < f->params.count; p++) {
            if (f->params.items[p] == f->results.items[i])
                items[i] = p < site->count ? site->values[p]
                                           : var_value(fl->a, operands[p].var, site->syntax->span);
        }
        items[i].span = site->syntax->span;
    }
    if (count == 0)
        return (dsl_value){.kind = VALUE_NONE, .span = site->syntax->span};
    if (count == 1)
        return items[0];
    return tuple_value(items, count, site->syntax->span);
}

dsl_value lower_call(lowering *fl, int32_t function, const syntax_expr *call)
{
    launch_request *request = fl->launch; /* of this call, and of none among its arguments */
    fl->launch = NULL;
    call_site site = {
        .function = function, .callee = source_of(fl->fe, function), .syntax = call, .ok = true};
    if (site.callee == NULL)
        return poison();
    site.name = site.callee->syntax->name;
    site.count = (int32_t)site.callee->syntax->params.count;
    site.given = arena_array(fl->a, const syntax_expr *, site.count);
    site.values = arena_array(fl->a, dsl_value, site.count);
    if (!check_recursion(fl, &site) || !check_external(fl, &site) || !check_planes(fl, &site) ||
        !bind_arguments(fl, &site))
        return poison();
    eval_arguments(fl, &site);
    if (is_spliced(fl, &site))
        return site.ok ? splice_call(fl, &site) : poison();
    pass_windows(fl, &site);
    instance *callee = specialise_callee(fl, &site);
    if (callee == NULL || !callee->signature_ok)
        return poison();

    const int32_t count = (int32_t)callee->ir->params.count;
    ir_operand *operands = arena_array(fl->a, ir_operand, count);
    dim_match match = dim_match_make(fl->a, callee->ir);
    for (int32_t i = 0; i < site.count; i++) {
        if (site.values[i].kind != VALUE_POISON)
            site.ok = check_argument(fl, &site, callee, i, &match, &operands[i]) && site.ok;
    }
    if (!site.ok || callee->state == INSTANCE_FAILED ||
        !create_results(fl, &site, callee->ir, operands))
        return poison();
    ir_stmt *s = ir_stmt_create(fl->fe->program, fl->block, IR_CALL, call->span);
    bool dispatches_kernel = fl->ir->plane == PLD_PLANE_HOST && callee->ir->plane == PLD_PLANE_CORE;
    s->callee = dispatches_kernel ? wrapper_of(fl->fe, callee) : callee->ir;
    s->operands = operands;
    s->operand_count = count;
    s->device = site.device;
    attach_launch(fl, s, request, site.independent);
    count_written(fl, s);
    return call_value(fl, &site, callee, operands);
}
