/* The loops of a script: for and while statements.
 *
 * A bound or step that the body could change, or that computes something, is evaluated once, into a
 * variable of the for statement.
 *
 * A task that was cancelled leaves at its next device call. A loop of a kernel or wrapper that makes
 * none at some turn gets pld_poll at the head of its body, one of a host function that dispatches nothing at some turn
 * pld_host_poll; loops over elements do not. */
#include "codegen/emit_internal.h"

typedef struct var_search {
    const ir_var *var;
    bool found;
} var_search;

static void find_assignment(void *context, ir_stmt *s)
{
    var_search *search = context;
    search->found |= s->target == search->var;
}

/* Whether a bound may be written into the loop's condition as it is. */
static bool stays_the_same(const ir_stmt *loop, const ir_expr *bound)
{
    while (bound->kind == IR_CONVERT)
        bound = bound->a;
    if (bound->kind == IR_INT)
        return true;
    if (bound->kind != IR_VAR)
        return false;
    var_search search = {bound->var, false};
    ir_visit_stmts(&loop->body, find_assignment, &search);
    return !search.found;
}

/* The declarations of the for statement besides the variable itself, and the text of bound or step.
 */
static const char *held_text(emitter *e, const ir_stmt *s, const ir_expr *bound, const char *suffix,
                             text *held)
{
    pypto_dtype dtype = s->target->type.dtype;
    const char *value = expr_as(e, bound, dtype).text;
    if (stays_the_same(s, bound))
        return value;
    const char *name = emit_free_name(e, arena_printf(e->a, "%s_%s", s->target->c_name, suffix));
    text_printf(held, ", %s = %s", name, value);
    return name;
}

static const char *condition_text(emitter *e, const ir_stmt *s, const char *stop, const char *step)
{
    const char *name = s->target->c_name;
    int64_t value;
    if (!ir_is_const_int(s->step, &value))
        return arena_printf(e->a, "%s > 0 ? %s < %s : %s > %s", step, name, stop, name, stop);
    return arena_printf(e->a, value > 0 ? "%s < %s" : "%s > %s", name, stop);
}

/* Whether a constant step past a bound still fits the loop variable, for any value of the bound. */
static bool step_fits(const ir_stmt *s, int64_t step)
{
    const ir_expr *stop = s->stop;
    int64_t bound;
    int64_t sum;
    if (step == 1 || step == -1)
        return true;
    if (ir_is_const_int(stop, &bound))
        return !__builtin_add_overflow(bound, step, &sum);
    while (stop->kind == IR_CONVERT && ir_is_integer(stop->a->dtype))
        stop = stop->a;
    return pypto_dtype_bytes(stop->dtype) <= 4 && step > INT32_MIN && step < INT32_MAX;
}

/* The step of a loop, which must not overflow. Where it might, it is taken only when it is smaller
 * than what is left (a difference of two int64_t is exact as uint64_t); else the variable becomes
 * the bound, which ends the loop. */
static const char *advance_text(emitter *e, const ir_stmt *s, const char *stop, const char *step)
{
    const char *name = s->target->c_name;
    int64_t value;
    const char *up = arena_printf(e->a, "(uint64_t)%s - (uint64_t)%s", stop, name);
    const char *down = arena_printf(e->a, "(uint64_t)%s - (uint64_t)%s", name, stop);
    if (!ir_is_const_int(s->step, &value))
        return arena_printf(e->a,
                            "%s = (%s > 0 ? %s > (uint64_t)%s : %s > 0 - (uint64_t)%s) ? "
                            "%s + %s : %s",
                            name, step, up, step, down, step, name, step, stop);
    if (value == 1 || value == -1)
        return arena_printf(e->a, value == 1 ? "++%s" : "--%s", name);
    const char *size = value > 0 || value == INT64_MIN ? step : step + 1; /* without its sign */
    const char *sign = value > 0 || value == INT64_MIN ? "+" : "-";
    if (step_fits(s, value))
        return arena_printf(e->a, "%s %s= %s", name, sign, size);
    return arena_printf(e->a, "%s = %s > %s%s ? %s %s %s : %s", name, value > 0 ? up : down,
                        value == INT64_MIN ? "(uint64_t)" : "", size, name, sign, size, stop);
}

/* An operation that touches nothing but tiles, arrays and scalars is compiled into the kernel. */
static bool calls_device(const ir_stmt *s)
{
    for (int32_t i = 0; i < s->operand_count; i++) {
        if (s->operands[i].kind == IR_OPERAND_VAR && !ir_is_private(s->operands[i].var->type.kind))
            return s->op_def->effects[0] != '\0';
    }
    return false;
}

/* Whether a block passes, on every path through it, a device call that ends a cancelled task:
 * those that move data, signal, or submit; on the host, dispatch. A loop in it may have no turns. */
static bool always_checks(const ir_block *block)
{
    for (int64_t i = 0; i < block->count; i++) {
        const ir_stmt *s = block->items[i];
        if (s->kind == IR_CALL || (s->kind == IR_DO && calls_device(s)) ||
            (s->kind == IR_IF && always_checks(&s->body) && always_checks(&s->orelse)))
            return true;
    }
    return false;
}

/* Whoever computes must notice that the call was cancelled. */
static void emit_poll(emitter *e, const ir_stmt *loop)
{
    if (!always_checks(&loop->body))
        emit_line(e, "%s(%s);", e->f->plane == PLD_PLANE_HOST ? "pld_host_poll" : "pld_poll",
                  e->context);
}

void emit_for(emitter *e, const ir_stmt *s)
{
    text held = {.a = e->a};
    text_add(&held, "");
    const char *stop = held_text(e, s, s->stop, "end", &held);
    const char *step = held_text(e, s, s->step, "step", &held);
    const char *start = expr_as(e, s->start, s->target->type.dtype).text;
    int64_t constant_step;
    emit_place(e, &s->span);
    if (!ir_is_const_int(s->step, &constant_step)) {
        emit_line(e, "if (%s == 0)", expr_text(e, s->step, PRECEDENCE_LESS));
        emit_place(e, &s->span);
        emit_line(e, "    %s(%s, \"the step of pl.range is 0\");",
                  e->f->plane == PLD_PLANE_HOST ? "pld_host_fail" : "pld_fail", e->context);
        emit_place(e, &s->span);
    }
    emit_line(e, "for (%s %s = %s%s; %s; %s) {", c_scalar_type(s->target->type.dtype),
              s->target->c_name, start, held.bytes, condition_text(e, s, stop, step),
              advance_text(e, s, stop, step));
    e->depth++;
    emit_poll(e, s);
    emit_block(e, &s->body);
    e->depth--;
    emit_line(e, "}");
}

void emit_while(emitter *e, const ir_stmt *s)
{
    emit_place(e, &s->span);
    emit_line(e, "while (%s) {", expr_c(e, s->value).text);
    e->depth++;
    emit_poll(e, s);
    emit_block(e, &s->body);
    e->depth--;
    emit_line(e, "}");
}
