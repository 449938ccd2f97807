/* Where a program starts: the arguments that Python gives against the entry's parameters, and the host
 * function of a program that has none.
 *
 * A program runs from a host function. One that starts with a per-device wrapper gets a host function
 * made here, with the same parameters and results, whose body is one dispatch of the wrapper on the
 * first device; a program that is a single kernel first gets such a wrapper, and so does each kernel that
 * a host function dispatches. From there on nobody can tell the difference:
 *
 *     chip add(x, z)  ->  host add(x, z): add(x, z, device=0) */
#include "frontend/lower.h"
#include "frontend/signature.h"

#include "ops/dtypes.h"

/* ---- the arguments ---- */

static bool check_count(frontend *fe, const syntax_function *syntax, int32_t given)
{
    if (given == syntax->params.count)
        return true;
    text names = {.a = fe->a};
    for (int64_t i = 0; i < syntax->params.count; i++)
        text_printf(&names, "%s'%s'", i == 0 ? "" : ", ", syntax->params.items[i].name);
    report(fe, DIAG_ARGUMENT_COUNT, syntax->span,
           arena_printf(fe->a, "pass one argument per parameter: %s",
                        syntax->params.count == 0 ? "none" : names.bytes),
           "%s() expects %lld argument(s), got %d", syntax->name, (long long)syntax->params.count,
           given);
    return false;
}

static given_param *entry_given(arena *a, const frontend_arg *args, int32_t count)
{
    given_param *given = arena_array(a, given_param, count);
    for (int32_t i = 0; i < count; i++) {
        const frontend_arg *arg = &args[i];
        bool open = arg->kind == FRONTEND_OPEN || arg->kind == FRONTEND_RUNTIME;
        given[i].kind = open                           ? GIVEN_OPEN
                        : arg->kind == FRONTEND_TENSOR ? GIVEN_TYPE
                                                       : GIVEN_CONSTANT;
        given[i].type = (ir_type){.kind = IR_TENSOR, .dtype = arg->dtype, .ndim = arg->ndim};
        switch (arg->kind) {
        case FRONTEND_TENSOR:
            for (int32_t d = 0; d < arg->ndim; d++)
                given[i].type.shape[d] = ir_int(a, arg->shape[d]);
            break;
        case FRONTEND_INT: given[i].number = ir_int(a, arg->integer); break;
        case FRONTEND_UINT: given[i].number = ir_int_of(a, arg->integer, PYPTO_UINT64); break;
        case FRONTEND_FLOAT: given[i].number = ir_float(a, arg->real); break;
        case FRONTEND_BOOL: given[i].number = ir_bool(a, arg->integer != 0); break;
        case FRONTEND_OPEN:
        case FRONTEND_RUNTIME: break;
        }
    }
    return given;
}

static void check_entry_scalar(frontend *fe, const ir_var *param, const frontend_arg *arg)
{
    if (arg->kind == FRONTEND_OPEN)
        report(fe, DIAG_ARGUMENT_TYPE, param->span,
               arena_printf(fe->a, "pass %s=<number>, or %s=pl.RUNTIME to keep it a parameter",
                            param->name, param->name),
               "scalar parameter '%s' has no value", param->name);
    if (arg->kind == FRONTEND_OPEN || arg->kind == FRONTEND_RUNTIME)
        return;
    pypto_dtype dtype = param->type.dtype;
    const char *given = arg->kind == FRONTEND_TENSOR  ? "a tensor"
                        : arg->kind == FRONTEND_BOOL  ? "a bool"
                        : arg->kind == FRONTEND_FLOAT ? "a float"
                                                      : "an int";
    bool is_large = arg->kind == FRONTEND_UINT, is_int = arg->kind == FRONTEND_INT || is_large;
    bool fits = dtype == PYPTO_BOOL  ? arg->kind == FRONTEND_BOOL
                : ir_is_float(dtype) ? is_int || arg->kind == FRONTEND_FLOAT
                                     : is_int;
    if (!fits)
        report(fe, DIAG_ARGUMENT_TYPE, param->span, "pass a number of that kind",
               "argument '%s' is %s, but its parameter is %s %s scalar", param->name, given,
               text_article(pypto_dtype_name(dtype)), pypto_dtype_name(dtype));
    else if (is_large ? ir_is_integer(dtype) && dtype != PYPTO_UINT64
                      : is_int && ir_is_integer(dtype) && !dtype_holds(dtype, arg->integer))
        report(fe, DIAG_ARGUMENT_TYPE, param->span,
               "pass a smaller number, or declare a wider type",
               "argument '%s': %s does not fit %s", param->name,
               is_large ? arena_printf(fe->a, "%llu", (unsigned long long)arg->integer)
                        : arena_printf(fe->a, "%lld", (long long)arg->integer),
               pypto_dtype_name(dtype));
}

static void check_entry_tensor(frontend *fe, const ir_function *f, int32_t index, dim_match *match,
                               const frontend_arg *arg)
{
    const ir_var *param = f->params.items[index];
    const ir_type *type = &param->type;
    if (arg->kind == FRONTEND_OPEN)
        return;
    if (arg->kind == FRONTEND_RUNTIME) {
        report(fe, DIAG_ARGUMENT_TYPE, param->span, "leave it out: its annotation decides",
               "'%s' received pl.RUNTIME, but is a tensor", param->name);
        return;
    }
    if (arg->kind != FRONTEND_TENSOR) {
        report(fe, DIAG_ARGUMENT_TYPE, param->span, "pass a torch tensor or a NumPy array",
               "argument '%s' is a number, but its parameter is a tensor", param->name);
        return;
    }
    if (!pypto_dtype_carries(arg->dtype, type->dtype))
        report(fe, DIAG_ARGUMENT_TYPE, param->span,
               pypto_dtype_packed(type->dtype)
                   ? "pass its bytes as uint8, two elements in each, of half the last extent"
                   : arena_printf(fe->a, "convert it, or annotate the parameter with pl.%s",
                                  dtype_spelling(arg->dtype)),
               "argument '%s' has dtype %s, but %s is declared", param->name,
               pypto_dtype_name(arg->dtype), pypto_dtype_name(type->dtype));
    if (arg->ndim != type->ndim) {
        report(fe, DIAG_ARGUMENT_TYPE, param->span,
               "reshape the argument, or change the annotation",
               "argument '%s' has %d dimensions, but %d are declared", param->name, arg->ndim,
               type->ndim);
        return;
    }
    ir_type actual = {.kind = IR_TENSOR, .dtype = arg->dtype, .ndim = arg->ndim};
    for (int32_t d = 0; d < arg->ndim; d++)
        actual.shape[d] = ir_int(fe->a, arg->shape[d]);
    if (pypto_dtype_packed(type->dtype) && arg->ndim > 0) /* two elements in each UINT8 */
        actual.shape[arg->ndim - 1] = ir_int(fe->a, arg->shape[arg->ndim - 1] * 2);
    const char *problem = match_dims(fe->a, match, f, index, &actual);
    if (problem != NULL)
        report(fe, DIAG_ARGUMENT_TYPE, param->span,
               "for a dimension that varies, the number of devices for instance, write "
               "NR = pl.dynamic(\"NR\") before the function and NR in the annotation",
               "argument '%s': %s", param->name, problem);
}

static frontend_arg pattern_of(const ir_var *param, const frontend_arg *arg)
{
    const ir_type *type = &param->type;
    frontend_arg pattern = {.dtype = type->dtype, .ndim = type->ndim};
    if (arg != NULL && (arg->kind == FRONTEND_OPEN || arg->kind == FRONTEND_RUNTIME)) {
        pattern.kind = arg->kind;
        return pattern;
    }
    if (type->kind == IR_SCALAR) {
        pattern.kind = arg != NULL                 ? arg->kind
                       : type->dtype == PYPTO_BOOL ? FRONTEND_BOOL
                       : ir_is_float(type->dtype)  ? FRONTEND_FLOAT
                                                   : FRONTEND_INT;
        pattern.integer = arg != NULL ? arg->integer : 0;
        pattern.real = arg != NULL ? arg->real : 0.0;
        return pattern;
    }
    pattern.kind = FRONTEND_TENSOR;
    for (int32_t d = 0; d < type->ndim; d++) {
        pattern.shape[d] = -1;
        (void)ir_is_const_int(type->shape[d], &pattern.shape[d]);
    }
    return pattern;
}

/* `count` parameters are the script's; what follows are results that Python allocates. */
static void check_entry(frontend *fe, const instance *entry, const frontend_arg *args,
                        int64_t count)
{
    const ir_function *f = entry->ir;
    dim_match match = dim_match_make(fe->a, f);
    for (int32_t i = 0; i < count; i++) {
        const ir_var *param = f->params.items[i];
        const frontend_arg *arg = args == NULL ? NULL : &args[i];
        if (param->type.kind == IR_WINDOW)
            report(fe, DIAG_BAD_CALL, param->span,
                   "start with a host function, which makes the window and dispatches this one",
                   "'%s' takes a window, so it cannot be called from Python", f->name);
        else if (param->type.kind == IR_SCALAR && arg != NULL)
            check_entry_scalar(fe, param, arg);
        else if (param->type.kind == IR_TENSOR && arg != NULL)
            check_entry_tensor(fe, f, i, &match, arg);
        frontend_arg pattern = pattern_of(param, arg);
        vec_push(fe->a, &fe->result->pattern, pattern);
    }
}

/* ---- the host function of a program without one ---- */

typedef struct caller_vars {
    arena *a;
    ir_var **of; /* by the callee's variable */
} caller_vars;

static const ir_expr *in_caller(void *context, ir_var *var)
{
    const caller_vars *vars = context;
    return ir_ref(vars->a, vars->of[var->id]);
}

static ir_var *copy_into(frontend *fe, ir_function *caller, const ir_var *var)
{
    ir_var *copy = ir_var_create(fe->program, caller, var->kind, var->name, var->type, var->span);
    copy->direction = var->direction;
    return copy;
}

ir_function *caller_of(frontend *fe, ir_function *f, pld_plane plane)
{
    arena *a = fe->a;
    ir_function *caller = ir_function_create(fe->program, f->name, plane, f->span);
    caller_vars vars = {a, arena_array(a, ir_var *, f->vars.count)};
    ir_operand *operands = arena_array(a, ir_operand, f->params.count);
    for (int64_t i = 0; i < f->params.count; i++) {
        const ir_var *param = f->params.items[i];
        ir_var *copy = vars.of[param->id] = copy_into(fe, caller, param);
        bool scalar = param->type.kind == IR_SCALAR;
        operands[i] = (ir_operand){.kind = scalar ? IR_OPERAND_EXPR : IR_OPERAND_VAR,
                                   .var = scalar ? NULL : copy,
                                   .expr = scalar ? ir_ref(a, copy) : NULL,
                                   .span = param->span};
        if (plane == PLD_PLANE_HOST)
            vec_push(a, &caller->world_dims, -1);
    }
    for (int64_t i = 0; i < f->dims.count; i++) {
        ir_dim dim = f->dims.items[i];
        dim.var = vars.of[dim.var->id] = copy_into(fe, caller, dim.var);
        vec_push(a, &caller->dims, dim);
    }
    for (int64_t i = 0; i < caller->params.count; i++) {
        ir_type *type = &caller->params.items[i]->type;
        for (int32_t d = 0; d < type->ndim; d++)
            type->shape[d] = ir_substitute(a, type->shape[d], in_caller, &vars);
    }
    for (int64_t i = 0; i < f->results.count; i++)
        vec_push(a, &caller->results, vars.of[f->results.items[i]->id]);
    ir_stmt *call = ir_stmt_create(fe->program, &caller->body, IR_CALL, f->span);
    call->callee = f;
    call->operands = operands;
    call->operand_count = (int32_t)f->params.count;
    if (plane == PLD_PLANE_HOST)
        call->device = ir_int(a, 0);
    return caller;
}

ir_function *wrapper_of(frontend *fe, instance *kernel)
{
    if (kernel->wrapper == NULL) {
        kernel->wrapper = caller_of(fe, kernel->ir, PLD_PLANE_CHIP);
        vec_push(fe->a, &fe->finished, kernel->wrapper);
    }
    return kernel->wrapper;
}

void lower_entry(frontend *fe, int32_t entry, const frontend_arg *args, int32_t arg_count)
{
    const frontend_source *source = source_of(fe, entry);
    if (source == NULL)
        return;
    fe->program = ir_program_create(fe->a, source->syntax->name);
    fe->result->program = fe->program;
    if (source->plane == PLD_PLANE_CORE && !source->syntax->class_form) {
        report(fe, DIAG_BAD_CALL, source->syntax->span,
               "call a @pl.jit wrapper of it, or a @pl.jit.host function that dispatches one",
               "in-core function '%s' cannot be called from Python", source->syntax->name);
        return;
    }
    if (args != NULL && !check_count(fe, source->syntax, arg_count))
        return;
    const given_param *given = args == NULL ? NULL : entry_given(fe->a, args, arg_count);
    instance *self = specialise(fe, entry, given, args == NULL ? 0 : arg_count);
    check_entry(fe, self, args, source->syntax->params.count);
    if (!status_ok(fe->errors))
        return;
    ir_function *f = self->ir;
    if (f->plane == PLD_PLANE_CORE)
        f = wrapper_of(fe, self);
    if (f->plane == PLD_PLANE_CHIP)
        vec_push(fe->a, &fe->finished, caller_of(fe, f, PLD_PLANE_HOST));
}
