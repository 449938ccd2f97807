/* Signals: pld_notify, pld_wait and pld_defer_wait, and the failures of a task. The memory model of pld.h is made
 * here by three orders: the notify's read-modify-write is seq_cst (a release of all that the task
 * did), the wait's load is seq_cst (an acquire), and the sleeper count is read after the one and
 * raised before the other (segment.h, Bell). */
#include "sched/account.h"
#include "sched/describe.h"
#include "sched/sched.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void(pld_line)(pld_core *core, int32_t line)
{
    core->line = line;
    atomic_store_explicit(&core->owner->header->breadcrumb, core->breadcrumb | (uint32_t)line,
                          memory_order_relaxed);
}

void pld_poll(pld_core *core)
{
    task_check(core);
}

/* ---- failures ---- */

void sched_fail(sched *s, uint64_t call, int32_t program, int32_t function, int32_t line,
                diag_code code, const char *text, const char *note)
{
    failure_record *failure = &s->header->failure[call_slot(call)];
    if (atomic_load_explicit(&failure->call, memory_order_relaxed) == call)
        return; /* the first one of a rank counts */
    failure->code = (int32_t)code;
    failure->program = program;
    failure->function = function;
    failure->line = line;
    snprintf(failure->text, sizeof failure->text, "%s", text);
    snprintf(failure->note, sizeof failure->note, "%s", note != NULL ? note : "");
    segment_fail(&s->seg, failure, call);
    sched_ring_host(s);
}

void task_fail(pld_core *core, diag_code code, const char *format, ...)
{
    char text[FAILURE_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    task_check(core); /* a rank whose call is over already does not add failures to it */
    sched_fail(core->owner, core->call, core->program, core->function_index, core->line, code, text,
               NULL);
    task_leave(core);
}

void(pld_fail)(pld_core *core, const char *format, ...)
{
    char text[FAILURE_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    task_fail(core, DIAG_KERNEL_FAILED, "%s", text);
}

void(pld_unbound)(pld_core *core, const char *name)
{
    task_fail(core, DIAG_UNBOUND_NAME, UNBOUND_TEXT, name);
}

void(pld_misfit)(pld_core *core, int64_t dim, int64_t have, int64_t wanted)
{
    task_fail(
        core, DIAG_INDEX_OUT_OF_BOUNDS,
        "shape mismatch: the source has %lld elements in dimension %lld, but the target has %lld there",
        (long long)have, (long long)dim, (long long)wanted);
}

/* ---- peers ---- */

const pld_window *task_need_window(pld_core *core, const pld_tensor *tensor)
{
    char name[NAME_TEXT];
    if (__builtin_expect(tensor->window == NULL, 0))
        task_fail(core, DIAG_NO_WINDOW, "%s is plain memory: only pld.DistributedTensor has peers",
                  task_describe(core, tensor, name, sizeof name));
    return tensor->window;
}

static void fail_peer(pld_core *core, const pld_tensor *tensor, int64_t peer) PYPTO_NORETURN;
static void fail_peer(pld_core *core, const pld_tensor *tensor, int64_t peer)
{
    char name[NAME_TEXT], devices[2 * LIST_TEXT] = "", other[64] = "";
    const pld_comm *comm = tensor->window->comm;
    int64_t list[PYPTO_MAX_RANKS];
    bool renumbered = false;
    for (int32_t r = 0; r < comm->nranks; ++r) {
        list[r] = comm->devices[r];
        renumbered |= list[r] != r;
        if (list[r] == peer)
            snprintf(other, sizeof other, ", where device %d is rank %d", (int)peer, r);
    }
    if (renumbered) {
        strcpy(devices, ", which are the devices ");
        (void)describe_list(devices + strlen(devices), (int64_t)(sizeof devices - strlen(devices)),
                            list, comm->nranks);
    }
    task_fail(core, DIAG_PEER_OUT_OF_RANGE,
              "peer %lld does not exist: the domain of %s has ranks 0 to %d%s%s", (long long)peer,
              task_describe(core, tensor, name, sizeof name), comm->nranks - 1, devices, other);
}

int32_t task_device_of(pld_core *core, const pld_tensor *tensor, int64_t peer)
{
    const pld_comm *comm = task_need_window(core, tensor)->comm;
    if (__builtin_expect(peer < 0 || peer >= comm->nranks, 0))
        fail_peer(core, tensor, peer);
    return comm->devices[peer];
}

/* ---- signals ---- */

/* Offset in elements of a signal cell; fails unless the tensor is an INT32 window that has it. */
static int64_t cell_index(pld_core *core, const pld_tensor *signal, const int64_t *cell)
{
    char name[NAME_TEXT];
    char at[LIST_TEXT];
    char shape[LIST_TEXT];
    (void)task_need_window(core, signal);
    if (signal->dtype != PYPTO_INT32)
        task_fail(core, DIAG_KERNEL_FAILED, "%s is %s: signals are INT32",
                  task_describe(core, signal, name, sizeof name),
                  pypto_dtype_name((pypto_dtype)signal->dtype));
    int64_t index = 0;
    for (int32_t d = 0; d < signal->ndim; ++d) {
        if (cell[d] < 0 || cell[d] >= signal->shape[d])
            task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS,
                      "signal cell %s is outside %s of shape %s (dimension %d)",
                      describe_list(at, sizeof at, cell, signal->ndim),
                      task_describe(core, signal, name, sizeof name),
                      describe_list(shape, sizeof shape, signal->shape, signal->ndim), d);
        index += cell[d] * signal->stride[d];
    }
    return index;
}

/* ---- notify and wait ---- */

/* A number for a cell, or to compare one with: what does not fit would come out as another number. */
static int32_t cell_number(pld_core *core, const char *what, int64_t number)
{
    if (__builtin_expect(number != (int32_t)number, 0))
        task_fail(core, DIAG_KERNEL_FAILED, "%s is %lld, and signal cells are INT32", what,
                  (long long)number);
    return (int32_t)number;
}

void(pld_notify)(pld_core *core, const pld_tensor *signal, int64_t peer, const int64_t *cell,
                 int64_t value, pld_notify_op op)
{
    task_check(core);
    const int64_t index = cell_index(core, signal, cell);
    const int32_t device = task_device_of(core, signal, peer);
    const int32_t number = cell_number(core, "pld.system.notify: value", value);
    const pld_window *w = signal->window;
    char *at = w->device_base + w->stride * device + (signal->data + index * 4 - w->base);
    _Atomic int32_t *target = (_Atomic int32_t *)(void *)at;
    signal_entry *account =
        account_notify(core, signal, at - core->owner->seg.base, device, cell, value, op);
    if (op == PLD_SET)
        atomic_exchange_explicit(target, number, memory_order_seq_cst);
    else
        account_added(core, account,
                      atomic_fetch_add_explicit(target, number, memory_order_seq_cst), value);
    core->owner->pushes += device != core->owner->rank; /* cells can be data */
    rank_ring(&core->owner->seg, segment_rank(&core->owner->seg, device));
}

/* What a wait for a cell is, in words for reports and as a condition. */
static wait_entry describe_wait(const pld_core *core, wait_kind kind, const pld_tensor *signal,
                                int64_t index, const int64_t *cell, int64_t expected,
                                pld_wait_cmp cmp)
{
    wait_entry wait = {.kind = (int32_t)kind,
                       .program = core->program,
                       .function = core->function_index,
                       .line = core->line,
                       .cell_offset = signal->data + index * 4 - core->owner->seg.base,
                       .expected = (int32_t)expected,
                       .cmp = (int32_t)cmp,
                       .buffer = signal->window->buffer,
                       .param = task_param_of(core, signal),
                       .block = core->block_index,
                       .blocks = core->block_count,
                       .ndim = signal->ndim};
    for (int32_t r = 0; r < signal->window->comm->nranks; ++r)
        wait.devices |= (uint64_t)1 << signal->window->comm->devices[r];
    for (int32_t d = 0; d < signal->ndim; ++d)
        wait.cell[d] = cell[d];
    return wait;
}

void(pld_wait)(pld_core *core, const pld_tensor *signal, const int64_t *cell, int64_t expected,
               pld_wait_cmp cmp)
{
    task_check(core);
    const int64_t index = cell_index(core, signal, cell);
    const wait_entry quick = {.kind = WAIT_SIGNAL,
                              .cell_offset = signal->data + index * 4 - core->owner->seg.base,
                              .expected = cell_number(core, "pld.system.wait: expected", expected),
                              .cmp = (int32_t)cmp};
    const bool at_once = wait_satisfied(&core->owner->seg, &quick);
    if (!at_once) {
        core->wait = describe_wait(core, WAIT_SIGNAL, signal, index, cell, expected, cmp);
        task_wait(core);
    }
    account_wait(core, signal, &quick, cell, at_once);
}

void(pld_defer_wait)(pld_core *core, const pld_tensor *signal, const int64_t *cell,
                     int64_t expected, pld_wait_cmp cmp)
{
    task_check(core);
    if (core->task == NULL)
        task_fail(core, DIAG_KERNEL_FAILED,
                  "a per-device wrapper cannot defer: its tasks can, each for itself");
    const int64_t index = cell_index(core, signal, cell);
    if (expected < 0 || expected > INT32_MAX)
        task_fail(core, DIAG_KERNEL_FAILED,
                  "pld.system.defer_wait: expected must be in [0, INT32_MAX], and is %lld",
                  (long long)expected);
    if (!alloc_grow(core->deferred, core->deferred_capacity, core->deferred_count + 1))
        task_fail(core, DIAG_OUT_OF_MEMORY, "no memory for another deferred wait");
    const wait_entry wait = describe_wait(core, WAIT_DEFERRED, signal, index, cell, expected, cmp);
    core->deferred[core->deferred_count++] = wait;
    account_wait(core, signal, &wait, cell, false);
}
