/* The devices that the collectives of a host function run on: those that share their windows.
 *
 * Which ones share data, its dispatches say. Signals and counts join the domain of the data, and so does data
 * that no dispatch receives; joined windows may be operands of further collectives, so this is repeated until
 * nothing changes. Then all windows of a collective must have the same devices. */
#include "passes/infer_internal.h"

#include "base/diag.h"

static bool is_empty(const ir_device_set *set)
{
    return !set->all && set->mask == 0;
}

/* Signals, and counts that come beside the result, as opposed to data that a program fills. */
static bool is_auxiliary(const ir_stmt *call, int32_t operand)
{
    const ir_stmt *s = collective_of(call);
    const ir_var *param = call->callee->body.items[0]->callee->params.items[operand];
    for (int32_t i = 0; i < s->operand_count; i++) {
        if (s->operands[i].var != param)
            continue;
        const uint32_t bit = 1u << i;
        return (s->op_def->signals & bit) != 0 ||
               (i != s->op_def->result_param && (s->op_def->writes & bit) != 0);
    }
    return false;
}

static ir_device_set data_devices(const inference *inf, const ir_stmt *call)
{
    ir_device_set set = {false, 0};
    for (int32_t i = 0; i < call->operand_count; i++) {
        if (call->operands[i].kind != IR_OPERAND_VAR || is_auxiliary(call, i))
            continue;
        const ir_device_set more = devices_of(inf, call->operands[i].var);
        set.all |= more.all;
        set.mask |= more.mask;
    }
    return set;
}

static void join_windows(inference *inf, const ir_stmt *call)
{
    const ir_device_set set = data_devices(inf, call);
    for (int32_t i = 0; i < call->operand_count && !is_empty(&set); i++) {
        if (call->operands[i].kind != IR_OPERAND_VAR)
            continue;
        const ir_device_set before = devices_of(inf, call->operands[i].var);
        if (is_auxiliary(call, i) || is_empty(&before))
            add_contribution(inf, call->operands[i].var, &set);
        const ir_device_set after = devices_of(inf, call->operands[i].var);
        inf->changed = inf->changed || !same_devices(&before, &after);
    }
}

static const char *devices_text(arena *a, const ir_device_set *set)
{
    text out = {.a = a};
    if (set->all)
        return "all devices";
    for (int32_t i = 0; i < PYPTO_MAX_RANKS; i++) {
        if ((set->mask >> i & 1) != 0)
            text_printf(&out, "%s%d", out.length == 0 ? "the devices " : ", ", i);
    }
    return out.bytes != NULL ? out.bytes : "no device";
}

/* The set that all of its windows have. */
static void settle_collective(inference *inf, const ir_stmt *call)
{
    const ir_operand *first = NULL;
    int32_t windows = 0;
    for (int32_t i = 0; i < call->operand_count; i++) {
        const ir_operand *operand = &call->operands[i];
        if (operand->kind != IR_OPERAND_VAR)
            continue;
        windows++;
        const ir_device_set set = devices_of(inf, operand->var);
        if (first == NULL) {
            first = operand;
            *call->spread = set;
            continue;
        }
        if (same_devices(&set, call->spread))
            continue;
        arena *a = inf->p->a;
        diag_add(
            &inf->errors, DIAG_SPLIT_COLLECTIVE, call->span,
            "dispatch all of them to the same devices, or use windows of their own",
            "the windows of pld.tensor.%s must resolve to the same comm-domain scope, but '%s' is "
            "of %s and '%s' of %s",
            call->callee->name, first->var->name, devices_text(a, call->spread), operand->var->name,
            devices_text(a, &set));
        return;
    }
    if (!is_empty(call->spread) || windows > 1)
        return; /* data that no dispatch receives is reported with its buffers */
    diag_add(&inf->errors, DIAG_BAD_DEVICE_SET, call->span,
             "pass the signal to a dispatch with device= too, or to a collective with data",
             "pld.tensor.%s: signal buffer has no inferred comm-domain coverage: no dispatch says "
             "which devices '%s' is of",
             call->callee->name, first->var->name);
    const ir_device_set none = {false, 0};
    add_contribution(inf, first->var, &none);
}

static void join_all(inference *inf)
{
    do {
        inf->changed = false;
        for (int64_t i = 0; i < inf->collectives.count; i++)
            join_windows(inf, inf->collectives.items[i]);
    } while (inf->changed);
}

/* Everybody has the buffers whose dispatches the constants of the script have left out. */
static void share_left_out(inference *inf)
{
    for (int64_t i = 0; i < inf->p->buffers.count; i++) {
        ir_buffer *buffer = &inf->p->buffers.items[i];
        if (!buffer->left_out || inf->dispatched[i])
            continue;
        buffer->devices.all = true;
        inf->viewed[i] = true;
        inf->dispatched[i] = true;
    }
}

void infer_collectives(inference *inf)
{
    join_all(inf);
    share_left_out(inf);
    join_all(inf);
    for (int64_t i = 0; i < inf->collectives.count; i++)
        settle_collective(inf, inf->collectives.items[i]);
}
