/* Parameters: from annotations and from what is known of the arguments to IR variables.
 *
 * An annotation decides a parameter's type; only a bare pl.Tensor or pld.DistributedTensor takes shape
 * and element type from the argument. Extents of the caller that vary become dimensions of their own
 * in the callee. A domain has no place among arguments: its parameter is a window of it, which the function asks
 * for the domain at its start.
 *
 * A number passed to the entry in a jit call is baked in: the parameter stays in the signature, but
 * reading its name gives the constant. */
#include "frontend/signature.h"
#include "frontend/expressions.h"
#include "frontend/lower.h"
#include "frontend/names.h"

#include "ops/dtypes.h"

#include <string.h>

/* ---- parameters ---- */

static bool check_param_kind(lowering *fl, const syntax_param *param,
                             const dsl_annotation *declared)
{
    const char *message = NULL;
    const char *hint = "write a tensor, window or scalar type";
    ir_kind kind = declared->type.kind;
    if (declared->form == ANNOTATION_TUPLE) {
        message = "Parameter type cannot be a tuple";
        hint = "declare one parameter per value";
    } else if (declared->form == ANNOTATION_NONE) {
        message = "a parameter cannot be None";
    } else if (kind == IR_TILE) {
        message = "a Tile is local to its kernel and cannot be a parameter";
        hint = "pass the tensor and load it: pl.load(x, offsets, shapes)";
    } else if (kind == IR_ARRAY) {
        message = "an Array is local to its function and cannot be a parameter";
        hint = "pass a tensor, or the elements that are needed as scalars";
    } else if (kind == IR_BUFFER) {
        message = "a window buffer cannot be a parameter";
        hint = "pass a view of it: pld.window(buffer, shape, dtype=...)";
    } else if (kind == IR_COMM && fl->ir->plane != PLD_PLANE_CORE) {
        message =
            "a communication domain cannot be a parameter of a function that runs no kernel code";
        hint = "pass the window; its kernel calls pld.get_comm_ctx(window)";
    } else if (kind == IR_WINDOW && fl->ir->plane == PLD_PLANE_HOST) {
        message = "a host function does not take windows as parameters";
        hint = "pld.alloc_window_buffer and pld.window make them in the host function";
    } else if (kind == IR_WINDOW && fl->ir->plane == PLD_PLANE_SUB) {
        message = "a SubWorker does not take windows, which only devices see";
        hint = "have a kernel copy the window to a tensor, and pass that";
    }
    if (message != NULL)
        report(fl->fe, DIAG_BAD_ANNOTATION, param->annotation->span, hint, "%s", message);
    return message == NULL;
}

/* The argument's type. Extents that the caller does not know are dimensions of this function. */
static ir_type copied_type(lowering *fl, const syntax_param *param, const ir_type *given)
{
    ir_type type = {.kind = given->kind, .dtype = given->dtype, .ndim = given->ndim};
    for (int32_t i = 0; i < type.ndim; i++) {
        int64_t extent = 0;
        bool known = ir_is_const_int(given->shape[i], &extent) &&
                     !dimension_is_marked(fl->fe, fl->function, param->name, i);
        type.shape[i] = known ? ir_int(fl->a, extent) : NULL; /* named in finish_dimensions() */
    }
    return type;
}

/* The shape of a bare parameter. */
static bool bare_type(lowering *fl, const syntax_param *param, const given_param *given,
                      ir_type *type)
{
    if (given == NULL || given->kind == GIVEN_OPEN || fl->syntax->class_form) {
        if (fl->syntax->class_form)
            report(fl->fe, DIAG_BAD_ANNOTATION, param->annotation->span,
                   "write pl.Tensor[[1, 256], pl.FP32]",
                   "parameter '%s': Incomplete type annotation: it needs a shape and a dtype",
                   param->name);
        else
            report(fl->fe, DIAG_ARGUMENT_TYPE, param->annotation->span,
                   "write pl.Tensor[[1, 256], pl.FP32], or compile with sample arguments",
                   "parameter '%s': bare 'pl.Tensor' needs an argument to take its shape from",
                   param->name);
        return false;
    }
    bool memory = ir_is_memory(given->type.kind);
    if (given->kind != GIVEN_TYPE || !memory)
        return false;                /* the call reports what is wrong with the argument */
    const ir_kind kind = type->kind; /* a window may be passed for a tensor */
    *type = copied_type(fl, param, &given->type);
    type->kind = kind;
    return true;
}

/* A number of the entry as a constant of the parameter's type; NULL when it does not fit, which
 * check_entry() reports. */
static const ir_expr *baked(arena *a, const ir_expr *number, pypto_dtype dtype)
{
    bool to_float = ir_is_integer(number->dtype) && ir_is_float(dtype);
    if (!to_float && !dtype_same_category(number->dtype, dtype))
        return NULL;
    if (number->kind == IR_INT && ir_is_integer(dtype) && !dtype_holds_constant(dtype, number))
        return NULL;
    return ir_convert(a, number, dtype, SPAN_NONE);
}

/* ---- x.bind_dynamic(0, M) ---- */

/* The call's object, a plain name, when the expression is such a call; NULL otherwise. */
static const char *bound_name(const syntax_expr *e)
{
    bool call = e->kind == SYNTAX_CALL && e->a->kind == SYNTAX_ATTRIBUTE &&
                e->a->a->kind == SYNTAX_NAME && strcmp(e->a->text, "bind_dynamic") == 0;
    return call ? e->a->a->text : NULL;
}

/* "M" of pl.dynamic("M"); NULL for anything else. */
static const char *dynamic_literal(lowering *fl, const syntax_expr *e)
{
    if (e->kind != SYNTAX_CALL || e->items.count != 1 || e->items.items[0]->kind != SYNTAX_STRING)
        return NULL;
    const name_value *head = outer_meaning(fl, e->a);
    bool is_dynamic =
        head != NULL && head->kind == NAME_PATH && strcmp(head->text, "pl.dynamic") == 0;
    return is_dynamic ? e->items.items[0]->text : NULL;
}

/* The symbol that an expression names: pl.dynamic("M"), a constant of the script, or a name that the
 * body sets to one. */
static const char *symbol_named(lowering *fl, const syntax_expr *e)
{
    const char *symbol = dynamic_literal(fl, e);
    if (symbol != NULL || e->kind != SYNTAX_NAME)
        return symbol;
    const syntax_block *body = &fl->syntax->body;
    for (int64_t i = 0; i < body->count; i++) {
        const syntax_stmt *s = body->items[i];
        if (s->kind == SYNTAX_ASSIGN && s->target->kind == SYNTAX_NAME &&
            strcmp(s->target->text, e->text) == 0)
            return dynamic_literal(fl, s->value);
    }
    const name_value *v = outer_meaning(fl, e);
    return v != NULL && v->kind == NAME_DYNAMIC ? v->text : NULL;
}

/* The dimensions of a parameter that the body declares to be dynamic. */
static void bind_dimensions(lowering *fl, const char *name, ir_type *type)
{
    const syntax_block *body = &fl->syntax->body;
    for (int64_t i = 0; i < body->count; i++) {
        const syntax_expr *call =
            body->items[i]->kind == SYNTAX_EXPR ? body->items[i]->value : NULL;
        const char *object = call == NULL ? NULL : bound_name(call);
        if (object == NULL || strcmp(object, name) != 0)
            continue;
        const syntax_exprs *args = &call->items;
        bool good = args->count == 2 && call->keywords.count == 0 &&
                    args->items[0]->kind == SYNTAX_INT && args->items[0]->integer >= 0 &&
                    args->items[0]->integer < type->ndim;
        const char *symbol = good ? symbol_named(fl, args->items[1]) : NULL;
        if (symbol == NULL)
            report(fl->fe, DIAG_BAD_ARGUMENTS, call->span,
                   "write x.bind_dynamic(0, M), with M = pl.dynamic(\"M\") before it",
                   "bind_dynamic takes a dimension of '%s' and a pl.dynamic", name);
        else
            type->shape[args->items[0]->integer] = symbol_expr(fl, symbol, call->span);
    }
}

/* What the body says of a parameter's dimensions; then a symbol each for those of a bare parameter that
 * the caller does not know. */
static void finish_dimensions(lowering *fl, const syntax_param *param, ir_type *type)
{
    bind_dimensions(fl, param->name, type);
    for (int32_t i = 0; i < type->ndim; i++) {
        if (type->shape[i] == NULL)
            type->shape[i] =
                symbol_expr(fl, arena_printf(fl->a, "%s_dim%d", param->name, i), param->span);
    }
}

bool is_bind_dynamic(const lowering *fl, const syntax_expr *e)
{
    const char *name = bound_name(e);
    if (name == NULL)
        return false;
    for (int64_t i = 0; i < fl->syntax->params.count; i++) {
        if (strcmp(fl->syntax->params.items[i].name, name) == 0)
            return true;
    }
    return false;
}

/* ---- one parameter ---- */

/* A scalar of a dimension's name is that dimension, for the annotations behind it. */
static bool check_symbol_order(lowering *fl, const syntax_param *param)
{
    for (int64_t i = 0; i < fl->notes->symbols.count; i++) {
        if (strcmp(fl->notes->symbols.items[i].name, param->name) != 0)
            continue;
        report(fl->fe, DIAG_BAD_ANNOTATION, param->span,
               "write it in front of them, or give it another name",
               "scalar parameter '%s' stands behind annotations that use the dimension of its name",
               param->name);
        return false;
    }
    return true;
}

static void declare_param(lowering *fl, const syntax_param *param, const given_param *given)
{
    ir_type type = {.kind = IR_NONE};
    pld_direction direction = PLD_IN;
    bool ok = param->annotation != NULL;
    bool asks_window = false; /* a domain: the parameter is a window of it */
    if (!ok) {
        report(fl->fe, DIAG_MISSING_ANNOTATION, param->span,
               "write its type: pl.Tensor[[1, 256], pl.FP32]",
               "parameter '%s' is missing type annotation", param->name);
    } else {
        dsl_annotation declared = read_annotation(fl, param->annotation);
        type = declared.type;
        direction = declared.direction;
        ok = declared.form != ANNOTATION_FAILED && check_param_kind(fl, param, &declared) &&
             (declared.form != ANNOTATION_BARE || bare_type(fl, param, given, &type));
        asks_window = ok && type.kind == IR_COMM && given != NULL && given->kind == GIVEN_TYPE &&
                      given->type.kind == IR_WINDOW;
        if (asks_window)
            type = copied_type(fl, param, &given->type);
    }
    if (ok && ir_is_memory(type.kind)) {
        finish_dimensions(fl, param, &type);
        type.ragged = given != NULL && given->kind == GIVEN_TYPE && given->type.ragged;
    }
    ok = ok && (type.kind != IR_SCALAR || check_symbol_order(fl, param));
    if (!ok)
        type = (ir_type){.kind = IR_NONE};
    ir_var *var =
        ir_var_create(fl->fe->program, fl->ir, IR_VAR_PARAM, param->name, type, param->span);
    var->direction = direction;
    int64_t name = binding_find(fl, param->name);
    if (!ok) {
        binding_poison(fl, name);
        return;
    }
    dsl_value v = var_value(fl->a, var, param->span);
    if (type.kind == IR_SCALAR && given != NULL && given->kind == GIVEN_CONSTANT) {
        const ir_expr *number = baked(fl->a, given->number, type.dtype);
        v = number == NULL ? poison() : scalar_value(number, param->span);
    }
    if (asks_window)
        v = lower_values(fl, op_get(OP_GET_COMM_CTX), &v, 1, param->span, -1);
    bind_name(fl, name, v, param->span);
}

void lower_signature(lowering *fl, const given_param *given, int32_t count)
{
    const syntax_function *syntax = fl->syntax;
    fl->in_signature = true;
    for (int64_t i = 0; i < syntax->refusals.count; i++) {
        const syntax_refusal *refusal = &syntax->refusals.items[i];
        report(fl->fe, DIAG_UNSUPPORTED_STATEMENT, refusal->span, refusal->hint,
               "'%s': a DSL function cannot have %s", syntax->name, refusal->what);
        if (refusal->name != NULL)
            binding_poison(fl, binding_find(fl, refusal->name));
    }
    for (int64_t i = 0; i < syntax->params.count; i++) {
        declare_param(fl, &syntax->params.items[i], i < count ? &given[i] : NULL);
        if (fl->ir->plane == PLD_PLANE_HOST)
            vec_push(fl->a, &fl->ir->world_dims, -1);
    }
    bind_symbols(fl);
    fl->in_signature = false;
}
