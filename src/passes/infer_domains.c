/* Which devices share each window buffer, and which dimensions of host tensors count devices.
 *
 * A buffer's communication domain is the set of devices that are dispatched with one of its
 * windows. What a dispatch contributes follows from its device= expression:
 *
 *     k                                            {k}
 *     variable of pl.range(..., pld.world_size())  all devices
 *     variable of pl.range(start, stop)            {start ... stop-1}, constant bounds, step 1
 *     anything else                                an error: ranks could not be numbered
 *
 * where a name that is assigned once stands for its value. Contributions of a buffer are united;
 * "all" swallows the rest. A collective of the host function runs on the devices that share its windows, so
 * these must be one domain: signals and counts get the devices of its data, and any window that no
 * dispatch receives those of the others. A buffer whose only uses the constants of the script have left out
 * (`if debug:`) is everybody's.
 *
 * Before: ir_buffer.devices empty. After: filled, and ir_stmt.spread of collectives; ir_var.buffer of every
 * window set where it is one buffer's, and ir_function.world_dims filled if the front end has not.
 *
 * Only host functions matter here: windows reach devices by dispatches, and a wrapper or kernel
 * sees the domain of what it was handed. A window variable may stand for several buffers (an `if`
 * merges them); all of them must then have the same devices, or ranks would change their numbers.
 */
#include "passes/infer_internal.h"

#include "base/bits.h"
#include "base/diag.h"

#define NO_BUFFER (-1)

typedef struct loop_scope {
    const ir_stmt *loop;
    const struct loop_scope *outer;
} loop_scope;

/* ---- facts ---- */

static void count_definition(void *context, ir_stmt *s)
{
    inference *inf = context;
    if (s->target == NULL)
        return;
    var_facts *facts = &inf->facts[s->target->id];
    facts->definitions++;
    facts->value = s->kind == IR_ASSIGN ? s->value : NULL;
}

static void add_buffers(inference *inf, const ir_var *to, const ir_var *from)
{
    uint64_t *target = inf->facts[to->id].buffers;
    const uint64_t *source = inf->facts[from->id].buffers;
    for (int64_t i = 0; i < inf->words; i++) {
        if ((source[i] & ~target[i]) != 0)
            inf->changed = true;
        target[i] |= source[i];
    }
}

/* One step of the flow of buffers into windows: through pld.window, aliases and results of
 * operations that name an operand's storage. */
static void flow_buffers(void *context, ir_stmt *s)
{
    inference *inf = context;
    if (s->target == NULL)
        return;
    if (s->kind == IR_ASSIGN && s->source != NULL)
        add_buffers(inf, s->target, s->source);
    if (s->kind == IR_DO && s->op_def->id == OP_WINDOW)
        add_buffers(inf, s->target, s->operands[0].var);
    if (s->kind == IR_DO && s->op_def->result_param >= 0)
        add_buffers(inf, s->target, s->operands[s->op_def->result_param].var);
}

static void note_views(void *context, ir_stmt *s)
{
    inference *inf = context;
    if (s->kind != IR_DO || s->op_def->id != OP_WINDOW)
        return;
    const uint64_t *buffers = inf->facts[s->operands[0].var->id].buffers;
    for (int64_t i = 0; i < inf->p->buffers.count; i++)
        if (bits_have(buffers, i))
            inf->viewed[i] = true;
}

static void collect_facts(inference *inf)
{
    const ir_function *f = inf->f;
    inf->facts = arena_array(inf->p->a, var_facts, f->vars.count + 1);
    for (int64_t i = 0; i < f->vars.count; i++) {
        const ir_var *var = f->vars.items[i];
        uint64_t *buffers = arena_array(inf->p->a, uint64_t, inf->words);
        if (var->type.kind == IR_BUFFER && var->buffer >= 0)
            bits_add(buffers, var->buffer);
        inf->facts[i].buffers = buffers;
    }
    ir_visit_stmts(&f->body, count_definition, inf);
    do {
        inf->changed = false;
        ir_visit_stmts(&f->body, flow_buffers, inf);
    } while (inf->changed);
    ir_visit_stmts(&f->body, note_views, inf);
}

/* Follows conversions and names that are assigned once to what they stand for. */
static const ir_expr *resolve(const inference *inf, const ir_expr *e)
{
    for (;;) {
        if (e->kind == IR_CONVERT && ir_is_integer(e->dtype)) {
            e = e->a;
        } else if (e->kind == IR_VAR && e->var->kind == IR_VAR_LOCAL &&
                   inf->facts[e->var->id].definitions == 1 &&
                   inf->facts[e->var->id].value != NULL) {
            e = inf->facts[e->var->id].value;
        } else {
            return e;
        }
    }
}

static bool is_world_size(const inference *inf, const ir_expr *e)
{
    e = resolve(inf, e);
    return e->kind == IR_OP && e->op_def->id == OP_WORLD_SIZE;
}

static const ir_stmt *loop_of(const loop_scope *loops, const ir_expr *e)
{
    if (e->kind == IR_VAR)
        for (; loops != NULL; loops = loops->outer)
            if (loops->loop->target == e->var)
                return loops->loop;
    return NULL;
}

/* ---- one dispatch ---- */

static const char device_hint[] =
    "write device=r inside `for r in pl.range(pld.world_size())`, or device= with a number";

static bool is_device(int64_t device)
{
    return device >= 0 && device < PYPTO_MAX_RANKS;
}

/* {start ... stop-1} */
static bool range_set(inference *inf, const ir_stmt *loop, ir_device_set *set)
{
    int64_t start;
    int64_t stop;
    int64_t step;
    if (!ir_is_const_int(resolve(inf, loop->step), &step) || step != 1) {
        diag_add(
            &inf->errors, DIAG_DEVICE_LOOP_STEP, loop->span,
            "let the loop run over each device of the group, and skip inside it what must not run",
            "this loop dispatches windows to devices: non-unit-step loop is not supported");
        return false;
    }
    if (is_world_size(inf, loop->stop)) {
        set->all = true;
        return true;
    }
    if (!ir_is_const_int(resolve(inf, loop->start), &start) ||
        !ir_is_const_int(resolve(inf, loop->stop), &stop)) {
        diag_add(
            &inf->errors, DIAG_BAD_DEVICE_SET, loop->span, device_hint,
            "this loop dispatches windows to devices that are not known before it runs: the loop "
            "bound must be ConstInt or pld.system.world_size()");
        return false;
    }
    if (start < stop && (!is_device(start) || !is_device(stop - 1))) {
        diag_add(
            &inf->errors, DIAG_BAD_DEVICE_SET, loop->span, device_hint,
            "this loop dispatches to the devices %lld to %lld; a run has devices 0 to %d at most",
            (long long)start, (long long)stop - 1, PYPTO_MAX_RANKS - 1);
        return false;
    }
    for (int64_t device = start; device < stop; device++)
        set->mask |= UINT64_C(1) << device;
    return true;
}

static bool device_set(inference *inf, const ir_stmt *call, const loop_scope *loops,
                       ir_device_set *set)
{
    if (call->device == NULL) {
        diag_add(&inf->errors, DIAG_BAD_DEVICE, call->span, device_hint,
                 "'%s' receives a window, so the dispatch must say on which device it runs",
                 call->callee->name);
        return false;
    }
    const ir_expr *e = resolve(inf, call->device);
    int64_t device;
    if (ir_is_const_int(e, &device)) {
        if (is_device(device)) {
            set->mask = UINT64_C(1) << device;
            return true;
        }
        diag_add(&inf->errors, DIAG_BAD_DEVICE_SET, call->span, device_hint,
                 "device=%lld does not exist; a run has devices 0 to %d at most", (long long)device,
                 PYPTO_MAX_RANKS - 1);
        return false;
    }
    const ir_stmt *loop = loop_of(loops, e);
    if (loop != NULL)
        return range_set(inf, loop, set);
    if (e->kind == IR_VAR)
        diag_add(&inf->errors, DIAG_BAD_DEVICE_SET, call->span, device_hint,
                 "device=%s is not the induction variable of a loop around this dispatch, so the "
                 "devices that share its windows are not known",
                 e->var->name);
    else
        diag_add(&inf->errors, DIAG_BAD_DEVICE_SET, call->span, device_hint,
                 "the devices that share the windows of this dispatch are not known: the device= "
                 "expression must be ConstInt or the induction variable of a loop around it");
    return false;
}

void add_contribution(inference *inf, const ir_var *window, const ir_device_set *set)
{
    const uint64_t *buffers = inf->facts[window->id].buffers;
    for (int64_t i = 0; i < inf->p->buffers.count; i++) {
        if (!bits_have(buffers, i))
            continue;
        inf->p->buffers.items[i].devices.all |= set->all;
        inf->p->buffers.items[i].devices.mask |= set->mask;
        inf->dispatched[i] = true;
    }
}

ir_device_set devices_of(const inference *inf, const ir_var *window)
{
    ir_device_set set = {false, 0};
    const uint64_t *buffers = inf->facts[window->id].buffers;
    for (int64_t i = 0; i < inf->p->buffers.count; i++) {
        if (!bits_have(buffers, i))
            continue;
        set.all |= inf->p->buffers.items[i].devices.all;
        set.mask |= inf->p->buffers.items[i].devices.mask;
    }
    return set;
}

bool same_devices(const ir_device_set *x, const ir_device_set *y)
{
    return x->all == y->all && (x->all || x->mask == y->mask);
}

static void infer_dispatch(inference *inf, const ir_stmt *call, const loop_scope *loops)
{
    ir_device_set set = {false, 0};
    if (call->spread != NULL) {
        vec_push(inf->p->a, &inf->collectives, call);
        return;
    }
    bool asked = false;
    for (int32_t i = 0; i < call->operand_count; i++) {
        const ir_operand *operand = &call->operands[i];
        if (operand->kind != IR_OPERAND_VAR || operand->var->type.kind != IR_WINDOW)
            continue;
        if (!asked) /* one error for the dispatch; its windows still count as dispatched */
            device_set(inf, call, loops, &set);
        asked = true;
        add_contribution(inf, operand->var, &set);
    }
}

/* pld.subscript x[..., r, ...] of a parameter, r a loop over all devices. */
static void infer_world_dim(inference *inf, const ir_stmt *s, const loop_scope *loops)
{
    const ir_var *source = s->operands[0].var;
    const ir_var *param = source->root != NULL ? source->root : source;
    if (param->kind != IR_VAR_PARAM || param->type.ndim != source->type.ndim)
        return;
    for (int32_t d = 0; d < s->operands[1].count; d++) {
        const ir_stmt *loop = loop_of(loops, resolve(inf, s->operands[1].exprs[d]));
        if (loop == NULL || !is_world_size(inf, loop->stop))
            continue;
        for (int64_t i = 0; i < inf->f->params.count; i++)
            if (inf->f->params.items[i] == param)
                inf->f->world_dims.items[i] = d;
        return;
    }
}

static void infer_block(inference *inf, const ir_block *block, const loop_scope *loops, bool world)
{
    for (int64_t i = 0; i < block->count; i++) {
        const ir_stmt *s = block->items[i];
        if (s->kind == IR_CALL)
            infer_dispatch(inf, s, loops);
        if (s->kind == IR_DO && s->op_def->id == OP_SUBSCRIPT && world)
            infer_world_dim(inf, s, loops);
        loop_scope here = {s, loops};
        infer_block(inf, &s->body, s->kind == IR_FOR ? &here : loops, world);
        infer_block(inf, &s->orelse, loops, world);
    }
}

/* ---- results ---- */

/* The first buffer that a window stands for, and another whose devices differ from its. */
static void check_window(inference *inf, ir_var *window)
{
    const uint64_t *buffers = inf->facts[window->id].buffers;
    int64_t first = NO_BUFFER;
    int64_t count = 0;
    for (int64_t i = 0; i < inf->p->buffers.count; i++) {
        if (!bits_have(buffers, i))
            continue;
        count++;
        if (first == NO_BUFFER) {
            first = i;
            continue;
        }
        const ir_buffer *a = &inf->p->buffers.items[first];
        const ir_buffer *b = &inf->p->buffers.items[i];
        if (same_devices(&a->devices, &b->devices))
            continue;
        diag_add(&inf->errors, DIAG_BAD_DEVICE_SET, window->span,
                 "dispatch the two windows in statements of their own",
                 "'%s' may be a window of '%s' or of '%s', which different devices share",
                 window->name, a->name, b->name);
        return;
    }
    if (count == 1)
        window->buffer = (int32_t)first;
}

static void check_buffers(inference *inf)
{
    for (int64_t i = 0; i < inf->p->buffers.count; i++) {
        const ir_buffer *buffer = &inf->p->buffers.items[i];
        if (!inf->viewed[i])
            diag_add(&inf->errors, DIAG_UNUSED_WINDOW, buffer->span,
                     "view it with pld.window(...) and pass the view to a dispatch, or remove it",
                     "dead allocation: window buffer '%s' has no pld.tensor.window materialisation",
                     buffer->name);
        else if (!inf->dispatched[i])
            diag_add(
                &inf->errors, DIAG_UNUSED_WINDOW, buffer->span,
                "pass a window of it to a per-device wrapper with device=, or remove it",
                "window buffer '%s' is viewed but not consumed by any chip_orch dispatch, so no "
                "device would have it",
                buffer->name);
    }
}

static void infer_function(inference *inf, ir_function *f)
{
    inf->f = f;
    collect_facts(inf);
    bool world = f->world_dims.count == 0;
    for (int64_t i = 0; world && i < f->params.count; i++)
        vec_push(inf->p->a, &f->world_dims, -1);
    inf->collectives.count = 0;
    infer_block(inf, &f->body, NULL, world);
    infer_collectives(inf);
    for (int64_t i = 0; i < f->vars.count; i++)
        if (f->vars.items[i]->type.kind == IR_WINDOW && f->vars.items[i]->kind != IR_VAR_PARAM)
            check_window(inf, f->vars.items[i]);
}

pypto_status pass_infer_domains(ir_program *p)
{
    inference inf = {.p = p, .words = p->buffers.count / 64 + 1, .errors = STATUS_OK};
    inf.viewed = arena_array(p->a, bool, p->buffers.count + 1);
    inf.dispatched = arena_array(p->a, bool, p->buffers.count + 1);
    for (int64_t i = 0; i < p->buffers.count; i++)
        p->buffers.items[i].devices = (ir_device_set){false, 0};
    for (int64_t i = 0; i < p->functions.count; i++)
        if (p->functions.items[i]->plane == PLD_PLANE_HOST)
            infer_function(&inf, p->functions.items[i]);
    check_buffers(&inf);
    return inf.errors;
}
