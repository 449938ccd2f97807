/* Collectives in host functions: what is special about them there.
 *
 * A collective that a wrapper calls becomes a task, and one of a host function a dispatch of such a wrapper, to
 * each of the devices that share its windows:
 *
 *     data = pld.tensor.allreduce(data, signal)   ->   core allreduce(data, signal): pld.tensor.allreduce(...)
 *                                                      chip allreduce(data, signal): call allreduce(...)
 *                                                      ...
 *                                                      call allreduce(data, signal) device each
 *
 * Which devices these are is known when all dispatches are (passes/infer_domains). An allreduce without a signal
 * gets one of its own, in a buffer of its own. */
#include "frontend/expressions.h"
#include "frontend/lower.h"

#include "ops/dtypes.h"

#include <string.h>

/* ---- where it may stand ---- */

bool check_host_collective(lowering *fl, const op_def *op, const syntax_expr *call)
{
    const char *name = op->spellings[0];
    if (fl->whole != call) {
        report(
            fl->fe, DIAG_BAD_HOST_COLLECTIVE, call->span,
            "give its result a name, and use that in the next statement",
            "%s in a host function must be a direct assignment, a statement of its own, or what is "
            "returned",
            name);
        return false;
    }
    if (op->id == OP_ALL_TO_ALL_V && fl->loops > 0) {
        report(fl->fe, DIAG_BAD_HOST_COLLECTIVE, call->span,
               "call it in a kernel, where it may stand in loops",
               "%s is not supported inside a for/while loop of a host function", name);
        return false;
    }
    return true;
}

/* ---- an allreduce without a signal ---- */

static bool is_taken(const lowering *fl, const char *name)
{
    if (binding_find(fl, name) >= 0)
        return true;
    for (int64_t i = 0; i < fl->fe->program->buffers.count; i++) {
        if (strcmp(fl->fe->program->buffers.items[i].name, name) == 0)
            return true;
    }
    return false;
}

/* The variables are called after the operation, and numbered. */
typedef struct signal_names {
    const char *world_size;
    const char *buffer;
    const char *view;
} signal_names;

static signal_names free_names(const lowering *fl)
{
    signal_names names = {NULL, NULL, NULL};
    for (int64_t n = 0; names.view == NULL || is_taken(fl, names.world_size) ||
                        is_taken(fl, names.buffer) || is_taken(fl, names.view);
         n++) {
        names.world_size = arena_printf(fl->a, "__allreduce_signal_world_size_%lld", (long long)n);
        names.buffer = arena_printf(fl->a, "__allreduce_signal_buf_%lld", (long long)n);
        names.view = arena_printf(fl->a, "__allreduce_signal_%lld", (long long)n);
    }
    return names;
}

static ir_var *named(const dsl_value *v, const char *name)
{
    v->var->name = name;
    v->var->is_made = false;
    return v->var;
}

/* A cell per device and core: zero when the call begins, used here only. */
static ir_var *make_signal(lowering *fl, const op_call *call)
{
    const signal_names names = free_names(fl);
    const pypto_span span = call->span;
    const ir_type count_type = ir_scalar_type(PYPTO_INT64);
    ir_var *count = temporary(fl, &count_type, span);
    const dsl_value world = lower_values(fl, op_get(OP_WORLD_SIZE), NULL, 0, span, -1);
    emit_assign(fl, count, &world, span);
    count->name = names.world_size;
    count->is_made = false;

    const ir_expr *cores = call->operands[op_param_index(call->op, "core_num")].expr;
    const dsl_value extents[2] = {var_value(fl->a, count, span), scalar_value(cores, span)};
    const dsl_value shape = tuple_value(extents, 2, span);
    const dsl_value dtype = {.kind = VALUE_DTYPE, .dtype = PYPTO_INT32, .span = span};
    const dsl_value sizes[2] = {shape, dtype};
    const dsl_value buffer = lower_values(fl, op_get(OP_ALLOC_WINDOW), sizes, 2, span, -1);
    fl->fe->program->buffers.items[named(&buffer, names.buffer)->buffer].name = names.buffer;
    const dsl_value viewed[3] = {buffer, shape, dtype};
    const dsl_value view = lower_values(fl, op_get(OP_WINDOW), viewed, 3, span, -1);
    return named(&view, names.view);
}

bool complete_host_collective(lowering *fl, op_call *call)
{
    const int32_t index = op_param_index(call->op, "signal");
    ir_operand *signal = &call->operands[index];
    if (signal->kind != IR_OPERAND_NONE)
        return true;
    if (fl->loops > 0) {
        report(fl->fe, DIAG_BAD_HOST_COLLECTIVE, call->span,
               "allocate a signal in front of the loop, and pass it",
               "%s without an explicit signal is not supported inside a for/while loop",
               call->op->spellings[0]);
        return false;
    }
    *signal =
        (ir_operand){.kind = IR_OPERAND_VAR, .var = make_signal(fl, call), .span = call->span};
    return true;
}

/* ---- the dispatch ---- */

void spread_call(lowering *fl, ir_stmt *call)
{
    call->callee->is_collective = true;
    call->callee = caller_of(fl->fe, call->callee, PLD_PLANE_CHIP);
    call->callee->is_scope = true;
    call->spread = arena_new(fl->a, ir_device_set);
}
