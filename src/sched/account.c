/* Accounts of signal cells: see account.h.
 *
 * Reuse without reset. A hand-written barrier whose cells are not taken back, and whose threshold does not grow,
 * works once: the next time, the arrivals of the first time let everybody pass. It shows as a wait that is satisfied
 * at once, for no more than an earlier wait of this rank, by a cell that nobody has changed since. The value
 * alone does not tell (it may have been taken back and have come again), so the notifies to the cell are counted over
 * all ranks; each is on record before it changes the cell. The sum is made when all else points to it, so that
 * waits of correct programs hardly ever pay for it. */
#include "sched/account.h"

static void list_entry(signal_accounts *all, const signal_entry *e, uint64_t call)
{
    if (all->call != call) {
        all->call = call;
        all->count = 0;
    }
    if (all->count < SIGNAL_SLOTS)
        all->used[all->count++] = (uint16_t)(e - all->entries);
}

static signal_entry *account_of(pld_core *core, const pld_tensor *signal, int64_t cell_offset,
                                int32_t device, const int64_t *cell)
{
    signal_accounts *all = &core->owner->header->accounts[call_slot(core->call)];
    signal_entry *e = segment_signal(core->owner->header, cell_offset, core->call);
    if (e == NULL) {
        atomic_store_explicit(&all->lost, core->call, memory_order_relaxed);
        return NULL;
    }
    if (atomic_load_explicit(&e->call, memory_order_relaxed) == core->call)
        return e;
    /* Other ranks may look at it meanwhile: it belongs to no call until it is filled. */
    atomic_store_explicit(&e->call, 0, memory_order_relaxed);
    atomic_store_explicit(&e->notifies, 0, memory_order_release);
    atomic_store_explicit(&e->cell_offset, cell_offset, memory_order_relaxed);
    e->sum = 0;
    e->waits = 0;
    e->device = device;
    e->buffer = signal->window->buffer;
    e->ndim = signal->ndim;
    e->set = e->added = e->wrapped = e->reused = (signal_place){0};
    e->lowered = false;
    for (int32_t d = 0; d < signal->ndim; ++d)
        e->cell[d] = cell[d];
    atomic_store_explicit(&e->call, core->call, memory_order_release);
    list_entry(all, e, core->call);
    return e;
}

static signal_place here(const pld_core *core)
{
    return (signal_place){core->function_index + 1, core->line};
}

signal_entry *account_notify(pld_core *core, const pld_tensor *signal, int64_t cell_offset,
                             int32_t device, const int64_t *cell, int64_t value, pld_notify_op op)
{
    signal_entry *e = account_of(core, signal, cell_offset, device, cell);
    if (e == NULL)
        return NULL;
    const int64_t notifies = atomic_load_explicit(&e->notifies, memory_order_relaxed);
    atomic_store_explicit(&e->notifies, notifies + 1, memory_order_relaxed);
    e->sum = op == PLD_SET ? value : e->sum + value;
    e->program = core->program;
    e->function = core->function_index;
    e->line = core->line;
    /* The owner takes back what has arrived by setting its cell to 0: that is no mixture. */
    if (op == PLD_SET && (device != core->owner->rank || value != 0))
        e->set = here(core);
    if (op != PLD_SET)
        e->added = here(core);
    e->lowered |= op == PLD_SET || value < 0;
    return e;
}

void account_added(pld_core *core, signal_entry *e, int32_t old, int64_t value)
{
    int32_t sum;
    if (e != NULL && __builtin_expect(__builtin_add_overflow(old, (int32_t)value, &sum), 0))
        e->wrapped = here(core);
}

/* Notifies of all ranks to a cell in this call. */
static int64_t arrivals_at(const pld_core *core, int64_t cell_offset)
{
    const segment *seg = &core->owner->seg;
    int64_t arrivals = 0;
    for (int32_t rank = 0; rank < (int32_t)seg->set->rank_count; ++rank) {
        const signal_entry *e = segment_signal(segment_rank(seg, rank), cell_offset, core->call);
        if (e != NULL && signal_is(e, cell_offset, core->call))
            arrivals += atomic_load_explicit(&e->notifies, memory_order_relaxed);
    }
    return arrivals;
}

void account_wait(pld_core *core, const pld_tensor *signal, const wait_entry *wait,
                  const int64_t *cell, bool at_once)
{
    signal_entry *e = account_of(core, signal, wait->cell_offset, core->owner->rank, cell);
    if (e == NULL)
        return;
    const _Atomic int32_t *at =
        (const _Atomic int32_t *)(const void *)(core->owner->seg.base + wait->cell_offset);
    const int32_t value = atomic_load_explicit(at, memory_order_relaxed);
    const int64_t own = atomic_load_explicit(&e->notifies, memory_order_relaxed);
    /* The blocks of one task may wait for one arrival, each for itself. */
    const bool sibling =
        e->last.task == core->task && core->task != NULL && e->last.block != core->block_index;
    if (e->waits == 0) {
        e->last.arrivals = arrivals_at(core, wait->cell_offset);
    } else if (at_once && !sibling && value == e->last.value && own == e->last.own &&
               wait->expected <= e->last.expected) {
        const int64_t arrivals = arrivals_at(core, wait->cell_offset);
        if (arrivals > 0 && arrivals == e->last.arrivals && e->reused.line == 0) {
            e->reused = here(core);
            e->reused_after = e->last.place;
        }
        e->last.arrivals = arrivals;
    }
    ++e->waits;
    e->last.value = value;
    e->last.own = own;
    e->last.expected = wait->expected;
    e->last.cmp = wait->cmp;
    e->last.place = here(core);
    e->last.task = core->task;
    e->last.block = core->block_index;
    e->waiter = core->program;
}
