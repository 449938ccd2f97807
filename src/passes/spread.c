/* Collectives of host functions: from one dispatch for all devices of a domain to one per device.
 *
 *     call allreduce(data, signal) device each   ->   for r in range(0, world_size()):
 *                                                          call allreduce(data, signal) device r
 *
 * or, where the devices are known, a dispatch for each of them. What could not be checked before the devices
 * were known is checked here, as far as the number of ranks is known now; the rest is up to the run. */
#include "ops/ops.h"
#include "passes/passes.h"

#include "base/diag.h"

#include <pypto/pld_collectives.h>

typedef struct spreading {
    ir_program *p;
    ir_function *f;
    pypto_status errors;
} spreading;

const ir_stmt *collective_of(const ir_stmt *dispatch)
{
    return dispatch->callee->body.items[0]->callee->body.items[0];
}

/* ---- checks ---- */

static bool is_ring(const ir_stmt *s)
{
    const int32_t mode = op_param_index(s->op_def, "mode");
    return mode >= 0 && s->operands[mode].number == PLD_RING;
}

static int32_t rank_count(const ir_device_set *set)
{
    return __builtin_popcountll(set->mask);
}

/* The cells that the host function's view of a signal has: one per rank, in rows as long as they are. */
static bool check_signal(spreading *sp, const ir_stmt *s, int32_t ranks)
{
    const op_def *op = s->op_def;
    const ir_operand *signal = NULL;
    for (int32_t i = 0; i < s->operand_count; i++) {
        if ((op->signals >> i & 1) != 0)
            signal = &s->operands[i];
    }
    const ir_type *type = &signal->var->type;
    const bool ring = is_ring(s);
    const int32_t needed = ring ? 2 * (ranks - 1) + 1 : ranks;
    int64_t rows = 0;
    int64_t columns = 0;
    if (ir_is_const_int(type->shape[0], &rows) && rows < needed) {
        diag_add(
            &sp->errors, DIAG_BAD_HOST_COLLECTIVE, signal->span,
            ring ? "view it as [2 * (NR - 1) + 1, NR]"
                 : "make it [pld.world_size()], or as long as there are devices",
            ring ? "%s: signal shape[0] is %lld, but must be at least 2*(NR-1) + 1 = %d for the "
                   "participating device count %d"
                 : "%s: signal shape[0] is %lld, but must be at least %d: the participating device "
                   "count is %d",
            op->spellings[0], (long long)rows, needed, ranks);
        return false;
    }
    if (ring && ir_is_const_int(type->shape[1], &columns) && columns < ranks) {
        diag_add(&sp->errors, DIAG_BAD_HOST_COLLECTIVE, signal->span,
                 "view it as [2 * (NR - 1) + 1, NR]",
                 "%s: signal shape[1] is %lld, but the participating device count is %d",
                 op->spellings[0], (long long)columns, ranks);
        return false;
    }
    return true;
}

static bool check_root(spreading *sp, const ir_stmt *s, int32_t ranks)
{
    const int32_t index = op_param_index(s->op_def, "root");
    int64_t root = 0;
    if (index < 0 || !ir_is_const_int(s->operands[index].expr, &root) || root < ranks)
        return true;
    diag_add(&sp->errors, DIAG_BAD_HOST_COLLECTIVE, s->operands[index].span,
             "ranks are numbered within the domain, in the order of devices",
             "%s: root (%lld) must be a valid rank in [0, %d)", s->op_def->spellings[0],
             (long long)root, ranks);
    return false;
}

/* ---- dispatches ---- */

static ir_stmt *dispatch_to(const spreading *sp, const ir_stmt *call, ir_block *block,
                            const ir_expr *device)
{
    ir_stmt *s = ir_stmt_create(sp->p, block, IR_CALL, call->span);
    s->callee = call->callee;
    s->operands = call->operands;
    s->operand_count = call->operand_count;
    s->device = device;
    return s;
}

static void spread_call(spreading *sp, ir_stmt *call, ir_block *into)
{
    arena *a = sp->p->a;
    const ir_device_set *set = call->spread;
    if (!set->all) {
        const ir_stmt *s = collective_of(call);
        const int32_t ranks = rank_count(set);
        if (!check_signal(sp, s, ranks) || !check_root(sp, s, ranks))
            return;
        for (int32_t device = 0; device < PYPTO_MAX_RANKS; device++) {
            if ((set->mask >> device & 1) != 0)
                (void)dispatch_to(sp, call, into, ir_int(a, device));
        }
        return;
    }
    ir_stmt *loop = ir_stmt_create(sp->p, into, IR_FOR, call->span);
    loop->target =
        ir_var_create(sp->p, sp->f, IR_VAR_LOOP, "r", ir_scalar_type(PYPTO_INDEX), call->span);
    loop->target->is_made = true;
    loop->start = ir_int(a, 0);
    loop->step = ir_int(a, 1);
    loop->stop = ir_op(a, op_get(OP_WORLD_SIZE), NULL, 0, PYPTO_INT64, call->span);
    (void)dispatch_to(sp, call, &loop->body, ir_ref(a, loop->target));
}

static void spread_block(spreading *sp, ir_block *block)
{
    ir_block result = {0};
    for (int64_t i = 0; i < block->count; i++) {
        ir_stmt *s = block->items[i];
        spread_block(sp, &s->body);
        spread_block(sp, &s->orelse);
        if (s->kind == IR_CALL && s->spread != NULL)
            spread_call(sp, s, &result);
        else
            vec_push(sp->p->a, &result, s);
    }
    *block = result;
}

pypto_status pass_spread(ir_program *p)
{
    spreading sp = {.p = p, .errors = STATUS_OK};
    for (int64_t i = 0; i < p->functions.count; i++) {
        sp.f = p->functions.items[i];
        if (sp.f->plane == PLD_PLANE_HOST)
            spread_block(&sp, &sp.f->body);
    }
    return sp.errors;
}
