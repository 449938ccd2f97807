/* Calls between DSL functions: a host function dispatches per-device wrappers (device=r), a wrapper
 * calls in-core kernels, which become tasks, and a kernel calls others, as part of its own task. A kernel
 * that a host function dispatches gets a wrapper made for it (entry.c). What is written to be inlined has no code of its own: its body is lowered in the place of the call. Nothing else
 * may call.
 *
 * A call binds its arguments to the callee's parameters, specialises the callee (which lowers it the
 * first time), compares types and becomes one IR_CALL. Its value is what the callee returns: always
 * storage of some of its parameters, so always some of the arguments.
 *
 * Tensors must agree in element type, rank and extents. Windows need not: the callee's declaration is
 * the shape in which it sees the window's bytes. */
#include "frontend/calls.h"
#include "frontend/expressions.h"
#include "frontend/lower.h"
#include "frontend/names.h"
#include "frontend/scalars.h"
#include "frontend/signature.h"
#include "frontend/statements.h"
#include "frontend/subscripts.h"

#include <string.h>

typedef struct call_site {
    int32_t function; /* the callee: the embedder's number */
    const frontend_source *callee;
    const syntax_expr *syntax;
    const char *name;
    int32_t count;             /* parameters */
    const syntax_expr **given; /* per parameter; NULL: its default value */
    dsl_value *values;         /* per parameter */
    const syntax_keyword *device_keyword;
    const ir_expr *device;
    uint64_t independent; /* bit i: argument i orders nothing */
    bool ok;
} call_site;

/* ---- may it be called here? ---- */

static bool is_recursion(lowering *fl, const call_site *site)
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
        return is_recursion(fl, site);
    }
    for (const splice *s = fl->spliced; s != NULL; s = s->outer) {
        if (s->function == site->function)
            return is_recursion(fl, site);
    }
    return true;
}

/* A function of pl.function outside of the class becomes part of the program under its own name, which
 * must be nobody else's. */
static bool check_external(lowering *fl, const call_site *site)
{
    const syntax_function *callee = site->callee->syntax;
    if (fl->syntax->program == NULL || !callee->class_form || callee->program != NULL ||
        site->callee->is_callback)
        return true;
    const char *sibling = arena_printf(fl->a, "self.%s", site->name);
    const char *problem = NULL;
    if (resolve_name(fl->fe, fl->function, sibling)->kind != NAME_UNDEFINED)
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

/* Whether the callee becomes part of the function at hand: what is written to be inlined; in class form
 * orchestration called by orchestration; and a kernel with a parameter that no task has. */
static bool is_spliced(const lowering *fl, const call_site *site)
{
    pld_plane from = fl->ir->plane;
    pld_plane to = site->callee->plane;
    return site->callee->inlined || takes_comm(fl, site) ||
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
    if (from != PLD_PLANE_CORE && to == PLD_PLANE_CORE && !site->callee->inlined &&
        takes_comm(fl, site)) {
        report(fl->fe, DIAG_BAD_CALL, span,
               "pass the window; the in-core function calls pld.get_comm_ctx(window)",
               "'%s' takes a communication domain, which %s cannot hand to a task", site->name,
               from == PLD_PLANE_HOST ? "a host function" : "a wrapper");
        return false;
    }
    if ((from == PLD_PLANE_HOST && (to == PLD_PLANE_CHIP || to == PLD_PLANE_CORE)) ||
        (from == PLD_PLANE_CHIP && to == PLD_PLANE_CORE) ||
        (from == PLD_PLANE_CORE && to == PLD_PLANE_CORE) || is_spliced(fl, site))
        return true;
    if (site->callee->is_callback)
        report(fl->fe, DIAG_UNSUPPORTED_EXPRESSION, span,
               "compute it on the host before or behind the call of the program",
               "SubWorker '%s' cannot be called: SubWorkers are not supported yet", site->name);
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

/* ---- binding ---- */

static int64_t param_index(const syntax_function *f, const char *name)
{
    for (int64_t i = 0; i < f->params.count; i++) {
        if (strcmp(f->params.items[i].name, name) == 0)
            return i;
    }
    return -1;
}

static bool bind_keyword(lowering *fl, call_site *site, const syntax_keyword *keyword)
{
    const syntax_function *callee = site->callee->syntax;
    const char *name = keyword->name;
    int64_t index = name == NULL ? -1 : param_index(callee, name);
    if (name == NULL) {
        report(fl->fe, DIAG_BAD_CALL, keyword->span, "write the arguments one by one",
               "'%s' does not accept **kwargs", site->name);
    } else if (index >= 0 && site->given[index] != NULL) {
        report(fl->fe, DIAG_BAD_CALL, keyword->span, "pass it once, by position or by name",
               "%s() got multiple values for argument '%s'", site->name, name);
    } else if (index >= 0) {
        site->given[index] = keyword->value;
        return true;
    } else if (strcmp(name, "attrs") == 0) {
        return true; /* hints for hardware schedulers */
    } else if (strcmp(name, "device") != 0) {
        const char *names[PYPTO_MAX_RANKS];
        int64_t count = 0;
        for (int64_t i = 0; i < callee->params.count && i < PYPTO_MAX_RANKS; i++)
            names[count++] = callee->params.items[i].name;
        const char *near = nearest_word(name, names, count);
        report(fl->fe, DIAG_BAD_CALL, keyword->span,
               near == NULL ? "pass the function's own parameters, and device= from the host"
                            : arena_printf(fl->a, "did you mean '%s'?", near),
               "'%s' does not accept keyword argument '%s'", site->name, name);
    } else if (fl->ir->plane != PLD_PLANE_HOST) {
        report(fl->fe, DIAG_BAD_DEVICE, keyword->span,
               "leave it out: the wrapper runs on its device already",
               "'device' is for dispatches of a host function; '%s' is called without it",
               site->name);
    } else {
        site->device_keyword = keyword;
        return true;
    }
    return false;
}

static bool bind_arguments(lowering *fl, call_site *site)
{
    const syntax_expr *syntax = site->syntax;
    int64_t positional = syntax->items.count;
    int64_t given = positional;
    bool ok = true;
    for (int64_t i = 0; i < positional; i++) {
        const syntax_expr *item = syntax->items.items[i];
        if (item->kind == SYNTAX_STARRED) {
            report(fl->fe, DIAG_BAD_CALL, item->span, "write the arguments one by one",
                   "'%s' does not accept *args", site->name);
            return false;
        }
        if (i < site->count)
            site->given[i] = item;
    }
    for (int64_t i = 0; i < syntax->keywords.count; i++) {
        ok = bind_keyword(fl, site, &syntax->keywords.items[i]) && ok;
        const char *name = syntax->keywords.items[i].name;
        given += name != NULL && param_index(site->callee->syntax, name) >= 0 ? 1 : 0;
    }
    if (!ok)
        return false;
    text missing = {.a = fl->a};
    for (int32_t i = 0; i < site->count; i++) {
        if (site->given[i] == NULL && site->callee->syntax->params.items[i].fallback == NULL)
            text_printf(&missing, "%s'%s'", missing.length == 0 ? "missing: " : ", ",
                        site->callee->syntax->params.items[i].name);
    }
    if (positional <= site->count && missing.length == 0)
        return true;
    report(fl->fe, DIAG_BAD_CALL, syntax->span,
           missing.length > 0 ? missing.bytes : "leave the last ones out",
           "'%s' expects %d argument(s), got %lld", site->name, site->count, (long long)given);
    return false;
}

static void eval_device(lowering *fl, call_site *site)
{
    if (site->device_keyword == NULL || site->device_keyword->value->kind == SYNTAX_NONE)
        return;
    dsl_value v;
    int64_t device = 0;
    if (!eval_integer(fl, site->device_keyword->value, "'device'", &v)) {
        site->ok = false;
    } else if (ir_is_const_int(v.expr, &device) && (device < 0 || device >= PYPTO_MAX_RANKS)) {
        report(fl->fe, DIAG_BAD_DEVICE, v.span, "device= counts from 0 to len(device_ids) - 1",
               "'device' %lld does not exist", (long long)device);
        site->ok = false;
    } else {
        site->device = v.expr;
    }
}

/* ---- one argument against its parameter ---- */

static const char *type_text(arena *a, const ir_type *type)
{
    text out = {.a = a};
    ir_print_type(&out, type);
    return out.bytes;
}

static const char *expr_text(arena *a, const ir_expr *e)
{
    text out = {.a = a};
    ir_print_expr(&out, e);
    return out.bytes;
}

/* A rank's part of a host tensor is x[r]; who passes pl.slice(x, [1, ...], [r, ...]) or all of x has one
 * leading dimension too many. */
static const char *shape_hint(lowering *fl, const ir_var *argument, const ir_type *declared)
{
    static const char agree[] = "make the argument and the callee's annotation agree";
    if (argument->type.ndim != declared->ndim + 1 || fl->ir->plane != PLD_PLANE_HOST)
        return agree;
    const ir_stmt *s = find_definition(&fl->ir->body, argument);
    if (s != NULL && s->op_def->id == OP_SLICE)
        return arena_printf(
            fl->a, "pl.slice keeps all dimensions; write %s[%s], which drops the leading one",
            s->operands[0].var->name, expr_text(fl->a, s->operands[2].exprs[0]));
    return s == NULL ? arena_printf(fl->a, "pass one rank's part: %s[r]", argument->name) : agree;
}

static bool wrong_shape(lowering *fl, const call_site *site, const ir_var *param,
                        const dsl_value *v, const char *problem)
{
    report(fl->fe, DIAG_SHAPE_MISMATCH, v->span, shape_hint(fl, v->var, &param->type),
           "argument '%s' of '%s' has type %s, but %s is declared: %s", param->name, site->name,
           type_text(fl->a, &v->var->type), type_text(fl->a, &param->type), problem);
    return false;
}

static bool check_kind(lowering *fl, const call_site *site, const ir_var *param, const dsl_value *v)
{
    ir_kind have = v->kind == VALUE_VAR ? v->var->type.kind : IR_NONE;
    /* As memory of this rank alone a window serves as a tensor too. */
    if (have == param->type.kind || (have == IR_WINDOW && param->type.kind == IR_TENSOR))
        return true;
    const char *hint = "pass what the parameter's annotation says";
    if (have == IR_TENSOR)
        hint =
            "a plain tensor has no peers: make a window with pld.alloc_window_buffer and pld.window";
    if (have == IR_BUFFER)
        hint = "pass a view of the buffer: pld.window(buffer, shape, dtype=...)";
    report(fl->fe, DIAG_BAD_CALL, v->span, hint, "argument '%s' of '%s' must be %s %s, not %s",
           param->name, site->name, text_article(ir_kind_name(param->type.kind)),
           ir_kind_name(param->type.kind), describe(fl->a, v));
    return false;
}

/* A window parameter's own shape must fit into the buffer, as far as both are known. */
static bool check_window(lowering *fl, const call_site *site, const ir_var *param,
                         const dsl_value *v)
{
    bool is_static = ir_static_elems(&param->type) >= 0;
    if (v->var->type.ndim != param->type.ndim && !is_static)
        return wrong_shape(fl, site, param, v,
                           "a dynamic dimension needs a window of the same rank");
    const ir_stmt *allocation =
        v->var->root == NULL ? NULL : find_definition(&fl->ir->body, v->var->root);
    int64_t buffer = 0;
    int64_t view = ir_static_bytes(&param->type);
    if (!is_static || allocation == NULL || allocation->op_def->id != OP_ALLOC_WINDOW ||
        !ir_is_const_int(allocation->operands[0].expr, &buffer) || (view >= 0 && view <= buffer))
        return true;
    report(fl->fe, DIAG_WINDOW_TOO_LARGE, v->span,
           "pld.alloc_window_buffer(size) takes bytes; make the buffer larger",
           "parameter '%s' of '%s' is %s, which is larger than buffer '%s' of %lld bytes",
           param->name, site->name, type_text(fl->a, &param->type), v->var->root->name,
           (long long)buffer);
    return false;
}

static bool check_memory(lowering *fl, const call_site *site, const instance *callee, int32_t index,
                         dim_match *match)
{
    const ir_var *param = callee->ir->params.items[index];
    const dsl_value *v = &site->values[index];
    if (!check_kind(fl, site, param, v))
        return false;
    const ir_type *have = &v->var->type;
    if (have->dtype != param->type.dtype) {
        report(fl->fe, DIAG_DTYPE_MISMATCH, v->span, "use one element type on both sides",
               "argument '%s' of '%s' has dtype %s, but %s is declared", param->name, site->name,
               pypto_dtype_name(have->dtype), pypto_dtype_name(param->type.dtype));
        return false;
    }
    if (param->type.kind == IR_WINDOW && !check_window(fl, site, param, v))
        return false;
    if (have->ndim != param->type.ndim)
        return param->type.kind == IR_WINDOW ||
               wrong_shape(fl, site, param, v,
                           arena_printf(fl->a, "%d dimensions instead of %d", have->ndim,
                                        param->type.ndim));
    const char *problem = match_dims(fl->a, match, callee->ir, index, have);
    return problem == NULL || wrong_shape(fl, site, param, v, problem);
}

static bool check_argument(lowering *fl, const call_site *site, const instance *callee,
                           int32_t index, dim_match *match, ir_operand *operand)
{
    const ir_var *param = callee->ir->params.items[index];
    const dsl_value *v = &site->values[index];
    *operand = (ir_operand){.kind = IR_OPERAND_VAR, .var = v->var, .span = v->span};
    if (param->type.kind != IR_SCALAR)
        return check_memory(fl, site, callee, index, match);
    if (v->kind != VALUE_SCALAR) {
        report(fl->fe, DIAG_BAD_CALL, v->span, "pass a number",
               "argument '%s' of '%s' must be a scalar, not %s", param->name, site->name,
               describe(fl->a, v));
        return false;
    }
    const char *what = arena_printf(fl->a, "argument '%s' of '%s'", param->name, site->name);
    dsl_value number = scalar_convert(fl, *v, param->type.dtype, what);
    *operand = (ir_operand){.kind = IR_OPERAND_EXPR, .expr = number.expr, .span = v->span};
    return number.kind != VALUE_POISON;
}

/* ---- the call ---- */

static bool passes_window(const call_site *site)
{
    for (int32_t i = 0; i < site->count; i++) {
        if (site->values[i].kind == VALUE_VAR && site->values[i].var->type.kind == IR_WINDOW)
            return true;
    }
    return false;
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

static dsl_value call_value(lowering *fl, const call_site *site, const instance *callee)
{
    const ir_function *f = callee->ir;
    int32_t count = (int32_t)f->results.count;
    dsl_value *items = arena_array(fl->a, dsl_value, count);
    for (int32_t i = 0; i < count; i++) {
        for (int32_t p = 0; p < site->count; p++) {
            if (f->params.items[p] == f->results.items[i])
                items[i] = site->values[p];
        }
        items[i].span = site->syntax->span;
    }
    if (count == 0)
        return (dsl_value){.kind = VALUE_NONE, .span = site->syntax->span};
    if (count == 1)
        return items[0];
    return (dsl_value){
        .kind = VALUE_TUPLE, .items = items, .count = count, .span = site->syntax->span};
}

/* What Python has computed when it met the callee's `def`: names mean what they mean outside of it. */
static dsl_value default_value(lowering *fl, const call_site *site, const syntax_param *param)
{
    lowering outside = *fl;
    outside.function = site->function;
    outside.names = (name_scope){0};
    dsl_value v = eval(&outside, param->fallback);
    if (v.kind == VALUE_POISON || (v.kind == VALUE_SCALAR && v.literal))
        return v;
    return report(fl->fe, DIAG_NOT_CONSTANT, param->fallback->span,
                  "write a number, or pass the value at each call",
                  "the default value of '%s' must be a number", param->name);
}

static void eval_arguments(lowering *fl, call_site *site)
{
    for (int32_t i = 0; i < site->count; i++) {
        const syntax_param *param = &site->callee->syntax->params.items[i];
        bool independent = false;
        const syntax_expr *given = without_no_dep(fl, site->given[i], &independent);
        if (given == NULL && site->given[i] != NULL)
            site->values[i] = poison(); /* reported */
        else
            site->values[i] = given != NULL ? eval(fl, given) : default_value(fl, site, param);
        site->independent |= independent && i < 64 ? UINT64_C(1) << i : 0;
        site->ok = site->ok && site->values[i].kind != VALUE_POISON;
    }
    eval_device(fl, site);
    bool no_device =
        site->device_keyword == NULL || site->device_keyword->value->kind == SYNTAX_NONE;
    if (fl->ir->plane == PLD_PLANE_HOST && no_device && passes_window(site) &&
        !is_spliced(fl, site)) {
        report(fl->fe, DIAG_BAD_DEVICE, site->syntax->span,
               "write device=r, with r of `for r in pl.range(pld.world_size()):`",
               "the dispatch of '%s' passes a window, so it needs 'device='", site->name);
        site->ok = false;
    }
}

/* ---- functions without code of their own ---- */

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

/* Lowers the callee's body here, with names of its own; its value is what it returns. */
static dsl_value splice_call(lowering *fl, const call_site *site)
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
    instance *callee = specialise_callee(fl, &site);
    if (callee == NULL || !callee->signature_ok)
        return poison();

    ir_operand *operands = arena_array(fl->a, ir_operand, site.count);
    dim_match match = dim_match_make(fl->a, callee->ir);
    for (int32_t i = 0; i < site.count; i++) {
        if (site.values[i].kind != VALUE_POISON)
            site.ok = check_argument(fl, &site, callee, i, &match, &operands[i]) && site.ok;
    }
    if (!site.ok || callee->state == INSTANCE_FAILED)
        return poison();
    ir_stmt *s = ir_stmt_create(fl->fe->program, fl->block, IR_CALL, call->span);
    bool dispatches_kernel = fl->ir->plane == PLD_PLANE_HOST && callee->ir->plane == PLD_PLANE_CORE;
    s->callee = dispatches_kernel ? wrapper_of(fl->fe, callee) : callee->ir;
    s->operands = operands;
    s->operand_count = site.count;
    s->device = site.device;
    attach_launch(fl, s, request, site.independent);
    return call_value(fl, &site, callee);
}

/* ---- pl.func_attr ---- */

static bool is_func_attr(lowering *fl, const syntax_stmt *s)
{
    if (s->kind != SYNTAX_EXPR || s->value->kind != SYNTAX_CALL)
        return false;
    const name_value *head = outer_meaning(fl, s->value->a);
    return head != NULL && head->kind == NAME_PATH && strcmp(head->text, "pl.func_attr") == 0;
}

static dsl_value bad_attr(lowering *fl, pypto_span span, const char *message)
{
    return report(fl->fe, DIAG_BAD_ATTRIBUTE, span, "pl.func_attr({\"name\": value})", "%s",
                  message);
}

/* The keys of one dict literal: strings that no earlier pl.func_attr of the function has. */
static dsl_value check_attr_keys(lowering *fl, const syntax_expr *call)
{
    const syntax_exprs *entries = &call->items.items[0]->items; /* key, value, key, value */
    for (int64_t i = 0; i < entries->count; i += 2) {
        const syntax_expr *key = entries->items[i];
        if (key == NULL || key->kind != SYNTAX_STRING)
            return bad_attr(fl, call->span,
                            "pl.func_attr keys must be strings: each key must be a "
                            "string literal");
        if (strcmp(key->text, "auto_scope") == 0 || strcmp(key->text, "external_source") == 0)
            return bad_attr(fl, key->span,
                            arena_printf(fl->a, "'%s' cannot be set with pl.func_attr", key->text));
        for (int64_t n = 0; n < fl->syntax->body.count; n++) {
            const syntax_stmt *s = fl->syntax->body.items[n];
            const syntax_exprs *others = NULL;
            if (is_func_attr(fl, s) && s->value->items.count == 1)
                others = &s->value->items.items[0]->items;
            for (int64_t k = 0; others != NULL && k < others->count; k += 2) {
                const syntax_expr *other = others->items[k];
                if (other == key)
                    break;
                if (other != NULL && other->kind == SYNTAX_STRING &&
                    strcmp(other->text, key->text) == 0)
                    return bad_attr(
                        fl, key->span,
                        arena_printf(fl->a, "duplicate key '%s' in pl.func_attr", key->text));
            }
            if (s->value == call)
                break;
        }
    }
    return (dsl_value){.kind = VALUE_NONE, .span = call->span};
}

dsl_value lower_func_attr(lowering *fl, const syntax_expr *call)
{
    const syntax_block *body = &fl->syntax->body;
    int64_t at = 0;
    while (at < body->count && is_func_attr(fl, body->items[at]) && body->items[at]->value != call)
        at++;
    if (at == body->count || body->items[at]->value != call)
        return bad_attr(fl, call->span, "pl.func_attr must appear before every other statement");
    if (call->items.count != 1 || call->keywords.count != 0)
        return bad_attr(fl, call->span, "pl.func_attr takes exactly one positional dict argument");
    const syntax_expr *dict = call->items.items[0];
    if (dict->kind != SYNTAX_OTHER || strcmp(dict->text, "Dict") != 0)
        return bad_attr(fl, dict->span, "the argument of pl.func_attr must be a dict literal");
    return check_attr_keys(fl, call);
}
