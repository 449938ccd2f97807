/* Statements other than if, for, while and return: assignments, annotated and augmented ones, and what the
 * DSL does not have.
 *
 * What assigning means depends on the kind of value, see bindings.c. */
#include "frontend/statements.h"
#include "frontend/calls.h"
#include "frontend/expressions.h"
#include "frontend/flow.h"
#include "frontend/loops.h"
#include "frontend/lower.h"
#include "frontend/scalars.h"
#include "frontend/scopes.h"
#include "frontend/signature.h"
#include "frontend/subscripts.h"

#include "ops/dtypes.h"

#include <string.h>

/* ---- assigning to a name ---- */

/* What a scalar becomes when the name already holds one: a literal takes its type if it fits, and in a
 * branch or loop a narrower number is widened to it, so that the paths agree. */
static void adapt_to_name(lowering *fl, const binding *b, dsl_value *v)
{
    if (b->state != BINDING_BOUND || b->v.kind != VALUE_SCALAR)
        return;
    pypto_dtype have = b->v.expr->dtype;
    pypto_dtype given = v->expr->dtype;
    bool fits = ir_is_integer(given) ? ir_is_float(have) || dtype_holds_constant(have, v->expr)
                                     : dtype_same_category(given, have);
    if (v->literal && fits) {
        const ir_expr *number = ir_is_float(given) ? ir_float(fl->a, v->real) : v->expr;
        v->expr = ir_convert(fl->a, number, have, v->span);
    } else if (!v->literal && b->depth < fl->depth && dtype_same_category(given, have) &&
               dtype_widens(given, have)) {
        v->expr = ir_convert(fl->a, v->expr, have, v->span);
    }
    v->literal = false;
}

static void assign_scalar(lowering *fl, int64_t name, dsl_value v, pypto_span span)
{
    bool once = fl->names.assignments[name] == 1;
    if (once && v.literal) {
        bind_name(fl, name, v, span);
        return;
    }
    adapt_to_name(fl, fl->names.bindings[name], &v);
    ir_type type = ir_scalar_type(v.expr->dtype);
    ir_var *target = binding_target(fl, name, &type, span);
    emit_assign(fl, target, &v, span);
    if (once && v.expr->kind == IR_OP && v.expr->op_def->id == OP_WORLD_SIZE)
        vec_push(fl->a, &fl->notes->world_sizes, target);
    if (once && v.expr->kind == IR_OP && v.expr->op_def->id == OP_NRANKS)
        vec_push(fl->a, &fl->notes->rank_counts, target);
    bind_name(fl, name, var_value(fl->a, target, span), span);
}

/* An output that is rebound to a new tensor would never be written. */
static bool rebinds_output(lowering *fl, int64_t name, const dsl_value *v, pypto_span span)
{
    const ir_var *root = v->var->root;
    const char *output = fl->names.names[name];
    if (v->var->type.kind != IR_TENSOR || root == NULL || root->kind != IR_VAR_LOCAL)
        return false;
    for (int64_t i = 0; i < fl->ir->params.count; i++) {
        const ir_var *param = fl->ir->params.items[i];
        if (strcmp(param->name, output) != 0 || param->direction == PLD_IN)
            continue;
        report(fl->fe, DIAG_BAD_ASSIGNMENT, span, "give the new tensor a name of its own",
               "'%s' is an output: rebound to a new tensor, the caller's would never be written",
               output);
        return true;
    }
    return false;
}

static void assign_handle(lowering *fl, int64_t name, dsl_value v, pypto_span span)
{
    if (rebinds_output(fl, name, &v, span)) {
        binding_poison(fl, name);
        return;
    }
    const binding *b = fl->names.bindings[name];
    bool at_run_time = b->state == BINDING_BOUND && b->cell && b->v.kind == VALUE_VAR &&
                       is_own(fl, b->v.var) && ir_type_equal(&b->v.var->type, &v.var->type);
    if (at_run_time) {
        ir_var *cell = b->v.var;
        emit_assign(fl, cell, &v, span);
        v = var_value(fl->a, cell, span);
    } else if (v.kind == VALUE_VAR && is_cell(fl, v.var)) {
        /* The other name may be set again; this one stays. */
        ir_var *own = binding_target(fl, name, &v.var->type, span);
        own->root = v.var->root;
        own->buffer = v.var->buffer;
        emit_assign(fl, own, &v, span);
        v = var_value(fl->a, own, span);
    }
    bind_name(fl, name, v, span);
    fl->names.bindings[name]->cell = at_run_time;
}

void assign_name(lowering *fl, int64_t name, dsl_value v, pypto_span span)
{
    if (v.kind == VALUE_SCALAR) {
        assign_scalar(fl, name, v, span);
    } else if (v.kind == VALUE_VAR && ir_is_private(v.var->type.kind)) {
        ir_var *target = binding_target(fl, name, &v.var->type, span);
        emit_assign(fl, target, &v, span);
        bind_name(fl, name, var_value(fl->a, target, span), span);
    } else if (v.kind == VALUE_VAR) {
        assign_handle(fl, name, v, span);
    } else if (v.kind == VALUE_NONE && fl->ir->plane == PLD_PLANE_CHIP &&
               fl->names.assignments[name] > 1) {
        assign_scalar(fl, name, no_task(fl->a, span), span); /* tasks will be assigned to it */
    } else {
        bind_name(fl, name, settle(fl, v), span);
    }
}

/* ---- targets ---- */

static void poison_target(lowering *fl, const syntax_expr *target)
{
    if (target->kind == SYNTAX_NAME)
        binding_poison(fl, binding_find(fl, target->text));
    if (target->kind == SYNTAX_STARRED)
        poison_target(fl, target->a);
    if (syntax_is_sequence(target)) {
        for (int64_t i = 0; i < target->items.count; i++)
            poison_target(fl, target->items.items[i]);
    }
}

static void bad_target(lowering *fl, const syntax_expr *target)
{
    if (target->kind == SYNTAX_SUBSCRIPT && fl->ir->plane == PLD_PLANE_HOST) {
        report(
            fl->fe, DIAG_BAD_ASSIGNMENT, target->span,
            "write it in the kernel or wrapper (@pl.jit) that gets the tensor, or in Python in front "
            "of the call",
            "Unsupported assignment: a host function passes tensors on and does not touch their "
            "elements");
        return;
    }
    const char *hint = target->kind == SYNTAX_SUBSCRIPT
                           ? "write a tile into a tensor with pl.store(tile, offsets, tensor)"
                           : "assign to a plain name";
    report(fl->fe, DIAG_BAD_ASSIGNMENT, target->span, hint,
           "Unsupported assignment: the target must be a variable name");
}

static bool is_submission(lowering *fl, const syntax_expr *e)
{
    return calls_path(fl, e, "pl.submit") || calls_path(fl, e, "pl.spmd_submit");
}

/* One name for two values: the second would take the first one's place unseen. What is named _ is not
 * wanted. */
bool check_named_once(lowering *fl, const syntax_expr *names)
{
    for (int64_t i = 0; i < names->items.count; i++) {
        const syntax_expr *item = names->items.items[i];
        for (int64_t k = 0; k < i && item->kind == SYNTAX_NAME && strcmp(item->text, "_") != 0;
             k++) {
            const syntax_expr *other = names->items.items[k];
            if (other->kind != SYNTAX_NAME || strcmp(other->text, item->text) != 0)
                continue;
            report(fl->fe, DIAG_BAD_ASSIGNMENT, item->span,
                   "name each value, or write _ for those not needed",
                   "conflicting bindings: '%s' is named for two values", item->text);
            return false;
        }
    }
    return true;
}

/* Names, and in the result of pl.submit a tuple of names: (a, b), tid = pl.submit(...). */
static bool check_unpacked(lowering *fl, const syntax_expr *target, bool nested)
{
    for (int64_t i = 0; i < target->items.count; i++) {
        const syntax_expr *item = target->items.items[i];
        const bool inner = nested && syntax_is_sequence(item);
        if (item->kind == SYNTAX_NAME || (inner && check_unpacked(fl, item, false)))
            continue;
        if (!inner)
            report(fl->fe, DIAG_BAD_ASSIGNMENT, item->span, "unpack into plain names",
                   "Tuple unpacking target must be a variable name");
        return false;
    }
    return check_named_once(fl, target);
}

static void unpack_value(lowering *fl, const syntax_stmt *s, const syntax_expr *target,
                         const dsl_value *v)
{
    if (v->kind == VALUE_TUPLE && v->count == target->items.count) {
        for (int32_t i = 0; i < v->count; i++) {
            const syntax_expr *item = target->items.items[i];
            if (syntax_is_sequence(item))
                unpack_value(fl, s, item, &v->items[i]);
            else
                assign_name(fl, binding_find(fl, item->text), v->items[i], s->span);
        }
        return;
    }
    if (v->kind != VALUE_POISON && is_submission(fl, s->value))
        report(fl->fe, DIAG_BAD_SCOPE, s->span, "write out, tid = pl.submit(...)",
               "what pl.submit gives must be unpacked into its result and the task's id");
    else if (v->kind == VALUE_TUPLE)
        report(fl->fe, DIAG_BAD_ASSIGNMENT, s->span, "use as many names as there are values",
               "cannot unpack %d values into %lld names", v->count, (long long)target->items.count);
    else if (v->kind != VALUE_POISON)
        report(fl->fe, DIAG_BAD_ASSIGNMENT, s->value->span,
               "only tuples and calls with several results can be unpacked", "cannot unpack %s",
               describe(fl->a, v));
    poison_target(fl, target);
}

static void unpack(lowering *fl, const syntax_stmt *s)
{
    if (!check_unpacked(fl, s->target, is_submission(fl, s->value))) {
        poison_target(fl, s->target);
        return;
    }
    dsl_value v = eval(fl, s->value);
    /* a, b = b, a: all of the right side is read before any name changes. */
    if (v.kind == VALUE_TUPLE && syntax_is_sequence(s->value))
        v = settle(fl, v);
    unpack_value(fl, s, s->target, &v);
}

/* x[...] of a variable; hosts do not touch elements. */
static bool is_element_target(const lowering *fl, const syntax_expr *target)
{
    return target->kind == SYNTAX_SUBSCRIPT && target->a->kind == SYNTAX_NAME &&
           fl->ir->plane != PLD_PLANE_HOST;
}

static void lower_assign(lowering *fl, const syntax_stmt *s)
{
    if (lower_yield(fl, s))
        return;
    if (syntax_is_sequence(s->target)) {
        unpack(fl, s);
    } else if (is_element_target(fl, s->target)) {
        lower_subscript_write(fl, s->target, eval(fl, s->value), s->span);
    } else if (s->target->kind != SYNTAX_NAME) {
        bad_target(fl, s->target);
        eval(fl, s->value);
    } else {
        int64_t name = binding_find(fl, s->target->text);
        assign_name(fl, name, eval_into(fl, s->value, name), s->span);
    }
}

static void lower_augmented(lowering *fl, const syntax_stmt *s)
{
    if (is_element_target(fl, s->target)) {
        dsl_value old = eval(fl, s->target);
        dsl_value by = eval(fl, s->value);
        bool good = old.kind != VALUE_POISON && by.kind != VALUE_POISON;
        if (good)
            lower_subscript_write(fl, s->target, value_binary(fl, s->text, old, by, s->span, -1),
                                  s->span);
        return;
    }
    if (s->target->kind != SYNTAX_NAME) {
        bad_target(fl, s->target);
        return;
    }
    int64_t name = binding_find(fl, s->target->text);
    dsl_value x = binding_read(fl, name, s->target->span);
    dsl_value y = eval(fl, s->value);
    bool ok = x.kind != VALUE_POISON && y.kind != VALUE_POISON;
    assign_name(fl, name, ok ? value_binary(fl, s->text, x, y, s->span, name) : poison(), s->span);
}

/* ---- annotations ---- */

static void lower_annotated(lowering *fl, const syntax_stmt *s)
{
    dsl_annotation declared = read_annotation(fl, s->annotation);
    if (s->value == NULL)
        return;
    if (s->target->kind != SYNTAX_NAME) {
        bad_target(fl, s->target);
        return;
    }
    int64_t name = binding_find(fl, s->target->text);
    const char *what = arena_printf(fl->a, "'%s'", s->target->text);
    dsl_value v = eval_into(fl, s->value, name);
    ir_type have;
    bool typed = declared.form == ANNOTATION_TYPE || declared.form == ANNOTATION_BARE;
    if (v.kind == VALUE_SCALAR && typed && declared.type.kind == IR_SCALAR)
        v = annotated_scalar(fl, &declared, v, s->annotation->span, what);
    else if (typed && value_type(&v, &have) &&
             !check_declared(fl, &declared, &have, s->annotation->span, what))
        v = poison();
    assign_name(fl, name, v, s->span);
}

/* ---- all of them ---- */

/* What it would have bound is poisoned, so that its uses are not reported as undefined. */
static void lower_other(lowering *fl, const syntax_stmt *s)
{
    if (strcmp(s->text, "Assign") == 0)
        report(fl->fe, DIAG_BAD_ASSIGNMENT, s->span, "write one assignment per line",
               "Unsupported assignment: several targets");
    else
        report(fl->fe, DIAG_UNSUPPORTED_STATEMENT, s->span,
               "a DSL function has assignments, calls, if, for, while, with and return",
               "Unsupported statement type: %s", s->text);
    for (int64_t i = 0; i < s->items.count; i++)
        binding_poison(fl, binding_find(fl, s->items.items[i]->text));
}

/* With strict_ssa=True a name has one definition, and parts of tensors none. */
static void check_single_definition(lowering *fl, const syntax_expr *target)
{
    if (target->kind == SYNTAX_SUBSCRIPT) {
        report(fl->fe, DIAG_UNSUPPORTED_STATEMENT, target->span,
               "write name = pl.assemble(target, source, offsets), or leave strict_ssa=True out",
               "an assignment to a part of a tensor is not supported before SSA conversion "
               "(strict_ssa=True)");
        return;
    }
    for (int64_t i = 0; i < target->items.count && target->kind != SYNTAX_NAME; i++)
        check_single_definition(fl, target->items.items[i]);
    int64_t name = target->kind == SYNTAX_NAME ? binding_find(fl, target->text) : -1;
    const binding *b = name < 0 ? NULL : fl->names.bindings[name];
    if (b != NULL && (b->state == BINDING_BOUND || b->state == BINDING_LOOP_END))
        report(fl->fe, DIAG_SECOND_DEFINITION, target->span, NULL,
               "'%s' is already defined at line %d (strict_ssa=True)", target->text, b->span.line);
}

static void lower_stmt(lowering *fl, const syntax_stmt *s)
{
    bool assigns = s->kind == SYNTAX_ASSIGN || s->kind == SYNTAX_AUGMENTED ||
                   (s->kind == SYNTAX_ANNOTATED && s->value != NULL);
    if (fl->syntax->strict_ssa && assigns)
        check_single_definition(fl, s->target);
    fl->whole = s->value;
    if (lower_host_copy(fl, s))
        return;
    switch (s->kind) {
    case SYNTAX_ASSIGN: lower_assign(fl, s); break;
    case SYNTAX_ANNOTATED: lower_annotated(fl, s); break;
    case SYNTAX_AUGMENTED: lower_augmented(fl, s); break;
    case SYNTAX_EXPR:
        if (s->value->kind != SYNTAX_STRING && !lower_yield(fl, s))
            eval(fl, s->value);
        break;
    case SYNTAX_FOR: lower_for(fl, s); break;
    case SYNTAX_IF: lower_if(fl, s); break;
    case SYNTAX_RETURN: lower_return(fl, s); break;
    case SYNTAX_PASS: break;
    case SYNTAX_WHILE: lower_while(fl, s); break;
    case SYNTAX_WITH: lower_with(fl, s); break;
    case SYNTAX_BREAK:
    case SYNTAX_CONTINUE: lower_jump(fl, s); break;
    case SYNTAX_STMT_OTHER: lower_other(fl, s); break;
    }
}

/* What follows a return on the same path is never run, and not looked at. */
void lower_block(lowering *fl, const syntax_block *block)
{
    int64_t i = 0;
    while (i < block->count && !fl->terminated)
        lower_stmt(fl, block->items[i++]);
    if (i == block->count)
        return;
    syntax_block rest = *block;
    rest.items += i;
    rest.count -= i;
    leave_out(fl, &rest);
}
