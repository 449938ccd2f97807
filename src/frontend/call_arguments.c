/* Arguments of calls: which parameter each belongs to, their values, and whether they fit.
 *
 * Tensors must agree in element type, rank and extents. Windows need not: the callee's declaration is
 * the shape in which it sees the window's bytes. */
#include "frontend/calls_internal.h"
#include "frontend/expressions.h"
#include "frontend/scalars.h"
#include "frontend/signature.h"

#include <string.h>

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
        const int64_t count = callee->params.count;
        const char **names = arena_array(fl->a, const char *, count);
        for (int64_t i = 0; i < count; i++)
            names[i] = callee->params.items[i].name;
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

bool bind_arguments(lowering *fl, call_site *site)
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

/* ---- values ---- */

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

static bool passes_window(const call_site *site)
{
    for (int32_t i = 0; i < site->count; i++) {
        if (site->values[i].kind == VALUE_VAR && site->values[i].var->type.kind == IR_WINDOW)
            return true;
    }
    return false;
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

/* What a SubWorker cannot be given. */
static bool check_sub_call(lowering *fl, const call_site *site)
{
    for (int32_t i = 0; i < site->count; i++) {
        const dsl_value *v = &site->values[i];
        if (v->kind != VALUE_VAR || v->var->type.kind != IR_WINDOW)
            continue;
        report(fl->fe, DIAG_BAD_CALL, v->span,
               "have a kernel copy the window to a tensor, and pass that",
               "SubWorker '%s' cannot see the window '%s': windows belong to devices", site->name,
               v->var->name);
        return false;
    }
    if (site->device_keyword == NULL)
        return true;
    report(fl->fe, DIAG_BAD_DEVICE, site->device_keyword->span, "leave device= out",
           "SubWorker '%s' runs on no device", site->name);
    return false;
}

void eval_arguments(lowering *fl, call_site *site)
{
    for (int32_t i = 0; i < site->count; i++) {
        const syntax_param *param = &site->callee->syntax->params.items[i];
        bool independent = false;
        const syntax_expr *given = without_no_dep(fl, site->given[i], &independent);
        if (given == NULL && site->given[i] != NULL)
            site->values[i] = poison(); /* reported */
        else
            site->values[i] = given != NULL ? eval(fl, given) : default_value(fl, site, param);
        site->ok = site->ok && site->values[i].kind != VALUE_POISON &&
                   (!independent || add_independent(fl, i, given->span, &site->independent));
    }
    if (site->callee->plane == PLD_PLANE_SUB) {
        site->ok = check_sub_call(fl, site) && site->ok;
        return;
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

/* ---- one argument against its parameter ---- */

/* A rank's part of a host tensor is x[r]; who passes pl.slice(x, [1, ...], [r, ...]) or all of x has one
 * leading dimension too many. */
static const char *shape_hint(lowering *fl, const ir_var *argument, const ir_type *declared)
{
    static const char agree[] = "make the argument and the callee's annotation agree";
    if (argument->type.ndim != declared->ndim + 1 || fl->ir->plane != PLD_PLANE_HOST)
        return agree;
    const ir_stmt *s = ir_operation_of(&fl->ir->body, argument);
    if (s != NULL && s->op_def->id == OP_SLICE)
        return arena_printf(
            fl->a, "pl.slice keeps all dimensions; write %s[%s], which drops the leading one",
            s->operands[0].var->name, ir_expr_text(fl->a, s->operands[2].exprs[0]));
    return s == NULL ? arena_printf(fl->a, "pass one rank's part: %s[r]", argument->name) : agree;
}

static bool wrong_shape(lowering *fl, const call_site *site, const ir_var *param,
                        const dsl_value *v, const char *problem)
{
    report(fl->fe, DIAG_SHAPE_MISMATCH, v->span, shape_hint(fl, v->var, &param->type),
           "argument '%s' of '%s' has type %s, but %s is declared: %s", param->name, site->name,
           ir_type_text(fl->a, &v->var->type), ir_type_text(fl->a, &param->type), problem);
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
    if (v->var->type.ragged && !ir_shape_equal(&v->var->type, &param->type))
        return wrong_shape(fl, site, param, v, "a view that is valid in part only keeps its shape");
    if (v->var->type.ndim != param->type.ndim && !is_static)
        return wrong_shape(fl, site, param, v,
                           "a dynamic dimension needs a window of the same rank");
    const ir_stmt *allocation =
        v->var->root == NULL ? NULL : ir_operation_of(&fl->ir->body, v->var->root);
    int64_t buffer = 0;
    int64_t view = ir_static_bytes(&param->type);
    if (!is_static || allocation == NULL || allocation->op_def->id != OP_ALLOC_WINDOW ||
        !ir_is_const_int(allocation->operands[0].expr, &buffer) || (view >= 0 && view <= buffer))
        return true;
    report(fl->fe, DIAG_WINDOW_TOO_LARGE, v->span,
           "pld.alloc_window_buffer(size) takes bytes; make the buffer larger",
           "parameter '%s' of '%s' is %s, which is larger than buffer '%s' of %lld bytes",
           param->name, site->name, ir_type_text(fl->a, &param->type), v->var->root->name,
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

bool check_argument(lowering *fl, const call_site *site, const instance *callee, int32_t index,
                    dim_match *match, ir_operand *operand)
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
