/* Which dispatches must be complete before the next one starts. Called by pld_dispatch() around the
 * posting; the ranks carry it out (runtime/loop.c).
 *
 * A dispatch comes after every earlier one that touches the same host memory, one of the two writing, and on one
 * device after those that pass a window of the same domain. But among devices of one domain, of which both pass
 * windows, a dispatch that only writes waits for nobody, and a writer not for readers: they may be meant to fill
 * and to read one tensor in step with each other. SubWorkers are in step with nobody.
 *
 * Where a dispatch comes after one that touches the same memory, later ones of the call need not name that: a chain of n dispatches
 * has n dependencies, not n * n. A later call names it: what is left of a failed call is dropped in any order. */
#include "host/host.h"

#include "base/alloc.h"
#include "base/text.h"
#include "runtime/overlap.h"

#include <string.h>

static bool add_dep(pld_host *host, int32_t device, uint64_t sequence)
{
    host_order *order = &host->w->order;
    /* A record of the call tells of those that are over by now, too. */
    if (host->recording == NULL &&
        segment_dispatch_done(segment_rank(&host->w->seg, device), sequence))
        return true;
    const queue_dep dep = {.device = device, .sequence = sequence};
    if (order->dep_count > 0 && order->deps[order->dep_count - 1].device == device &&
        order->deps[order->dep_count - 1].sequence == sequence)
        return true;
    if (!alloc_grow(order->deps, order->dep_capacity, order->dep_count + 1))
        return false;
    order->deps[order->dep_count++] = dep;
    return true;
}

/* ---- windows ---- */

static uint64_t domain_of(const pld_host *host, const pld_tensor *window)
{
    return host->windows[window->window->buffer].devices;
}

static host_turn *find_turn(const host_order *order, uint64_t domain, int32_t device)
{
    for (int32_t i = 0; i < order->turn_count; ++i)
        if (order->turns[i].device == device && order->turns[i].domain == domain)
            return &order->turns[i];
    return NULL;
}

static bool take_turn(host_order *order, const host_turn *latest)
{
    host_turn *turn = find_turn(order, latest->domain, latest->device);
    if (turn != NULL) {
        *turn = *latest;
        return true;
    }
    if (!alloc_grow(order->turns, order->turn_capacity, order->turn_count + 1))
        return false;
    order->turns[order->turn_count++] = *latest;
    return true;
}

/* Domains are numbered in the order of their first buffers. */
static int32_t number_of(const pld_host *host, uint64_t domain)
{
    int32_t number = 0;
    for (int32_t i = 0; i < host->table->nbuffers; ++i) {
        const host_window *window = &host->windows[i];
        bool first = window->allocated;
        for (int32_t k = 0; k < i && first; ++k)
            first = !host->windows[k].allocated || host->windows[k].devices != window->devices;
        if (first && window->devices == domain)
            return number;
        number += first;
    }
    return number;
}

static void add_devices(text *out, uint64_t devices)
{
    const char *separator = "[";
    for (int32_t device = 0; device < PYPTO_MAX_RANKS; ++device) {
        if ((devices >> device & 1) == 0)
            continue;
        text_printf(out, "%s%d", separator, device);
        separator = ", ";
    }
    text_add(out, "]");
}

static void fail_for_missing(pld_host *host, const host_turn *last, uint64_t devices)
{
    text line = {0};
    text_printf(&line, "domain comm_d%d (window '", number_of(host, last->domain));
    for (int32_t i = 0; i < host->table->nbuffers; ++i) {
        if (!host->windows[i].allocated || host->windows[i].devices != last->domain)
            continue;
        text_printf(&line, "%s') spans devices ", host->table->buffers[i].name);
        break;
    }
    add_devices(&line, last->domain);
    text_printf(&line, " but function '%s' was dispatched only on ", last->wrapper->name);
    add_devices(&line, devices);
    pypto_status status = STATUS_OK;
    host->line = last->line;
    diag_add(&status, DIAG_MISSING_DISPATCH,
             (pypto_span){.file = host->function->file, .line = host->line},
             "dispatch on each device of the domain, or let the loop run over fewer devices", "%s",
             line.failed ? "a device of a domain has no dispatch" : line.bytes);
    text_free(&line);
    host_leave(host, status);
}

void order_check_domains(pld_host *host)
{
    const host_order *order = &host->w->order;
    for (int32_t i = 0; i < order->turn_count; ++i) {
        const host_turn *last = &order->turns[i];
        uint64_t devices = 0;
        for (int32_t k = 0; k < order->turn_count; ++k)
            if (order->turns[k].domain == last->domain)
                devices |= (uint64_t)1 << order->turns[k].device;
        if (devices != last->domain)
            fail_for_missing(host, last, devices);
    }
}

/* ---- host memory ---- */

/* The domains of whose windows a dispatch passes some: a bit for the first buffer of each. With more than 64 buffers two
 * domains may share one. */
static uint64_t domains_of(const pld_host *host, const pld_arg *args, int32_t count)
{
    uint64_t domains = 0;
    for (int32_t i = 0; i < count; ++i) {
        if (args[i].kind != PLD_ARG_TENSOR || args[i].tensor->window == NULL)
            continue;
        const uint64_t domain = domain_of(host, args[i].tensor);
        int32_t first = 0;
        while (!host->windows[first].allocated || host->windows[first].devices != domain)
            ++first;
        domains |= (uint64_t)1 << first % 64;
    }
    return domains;
}

static bool comes_after(const pld_host *host, const host_access *earlier, int32_t device,
                        const pld_tensor *view, byte_range range, pld_direction direction)
{
    const bool in_step = earlier->device != device && earlier->call == host->call &&
                         (earlier->domains & host->w->order.domains) != 0;
    const bool conflict =
        in_step ? earlier->writes && direction != PLD_OUT : earlier->writes || direction != PLD_IN;
    return conflict && views_overlap(&earlier->view, earlier->range, view, range);
}

/* Whether all of its call that would come after an earlier access to `view` comes after the dispatch that is being posted.
 * Not so where others may be in step with it. A record of the call tells of all accesses. */
static bool others_come_after(const pld_host *host, pld_direction direction)
{
    return direction != PLD_IN && host->w->order.domains == 0 && host->recording == NULL;
}

static bool same_view(const pld_tensor *a, const pld_tensor *b)
{
    const size_t bytes = (size_t)a->ndim * sizeof *a->shape;
    return a->data == b->data && a->ndim == b->ndim && a->dtype == b->dtype &&
           memcmp(a->shape, b->shape, bytes) == 0 && memcmp(a->stride, b->stride, bytes) == 0;
}

static bool collect_accesses(pld_host *host, int32_t device, const pld_tensor *view,
                             pld_direction direction)
{
    const byte_range range = view_range(view);
    const bool supersedes = others_come_after(host, direction);
    for (int64_t i = 0; i < host->w->order.access_count; ++i) {
        host_access *earlier = &host->w->order.accesses[i];
        const bool of_call = earlier->call == host->call;
        if ((of_call && earlier->superseded) ||
            !comes_after(host, earlier, device, view, range, direction))
            continue;
        if (!add_dep(host, earlier->device, earlier->sequence))
            return false;
        earlier->superseded |= of_call && supersedes && same_view(&earlier->view, view);
    }
    return true;
}

/* Forgets what is done. */
static void prune(pld_host *host)
{
    host_order *order = &host->w->order;
    int64_t kept = 0;
    for (int64_t i = 0; i < order->access_count; ++i) {
        const host_access *a = &order->accesses[i];
        if ((host->recording != NULL && a->call == host->call) ||
            !segment_dispatch_done(segment_rank(&host->w->seg, a->device), a->sequence))
            order->accesses[kept++] = *a;
    }
    order->access_count = kept;
}

static bool record_access(pld_host *host, int32_t device, uint64_t sequence, const pld_tensor *view,
                          bool writes)
{
    host_order *order = &host->w->order;
    const host_access access = {.view = *view,
                                .range = view_range(view),
                                .device = device,
                                .call = host->call,
                                .domains = order->domains,
                                .writes = writes,
                                .sequence = sequence};
    if (access.range.low == access.range.high)
        return true;
    if (order->access_count == order->access_capacity) {
        prune(host); /* room enough, if it frees half of it */
        if (order->access_count * 2 >= order->access_capacity &&
            !alloc_grow(order->accesses, order->access_capacity, order->access_capacity + 1))
            return false;
    }
    order->accesses[order->access_count++] = access;
    return true;
}

bool order_uses(const pld_host *host, const char *low, const char *high)
{
    const host_order *order = &host->w->order;
    for (int64_t i = 0; i < order->access_count; ++i) {
        const host_access *a = &order->accesses[i];
        if (a->range.low < high && low < a->range.high &&
            !segment_dispatch_done(segment_rank(&host->w->seg, a->device), a->sequence))
            return true;
    }
    return false;
}

/* ---- a dispatch ---- */

bool order_collect(pld_host *host, int32_t device, const pld_function *wrapper, const pld_arg *args,
                   int32_t count)
{
    bool memory = true;
    host->w->order.domains = domains_of(host, args, count);
    host->w->order.dep_count = 0;
    for (int32_t i = 0; i < count && memory; ++i) {
        if (args[i].kind != PLD_ARG_TENSOR)
            continue;
        const pld_tensor *tensor = args[i].tensor;
        if (tensor->window == NULL) {
            memory = collect_accesses(host, device, tensor, wrapper->params[i].direction);
        } else {
            const host_turn *turn = find_turn(&host->w->order, domain_of(host, tensor), device);
            memory = turn == NULL || add_dep(host, device, turn->sequence);
        }
    }
    return memory;
}

bool order_record(pld_host *host, int32_t device, uint64_t sequence, const pld_function *wrapper,
                  const pld_arg *args, int32_t count)
{
    bool memory = true;
    for (int32_t i = 0; i < count && memory; ++i) {
        if (args[i].kind != PLD_ARG_TENSOR)
            continue;
        const pld_tensor *tensor = args[i].tensor;
        memory = tensor->window == NULL
                     ? record_access(host, device, sequence, tensor,
                                     wrapper->params[i].direction != PLD_IN)
                     : take_turn(&host->w->order, &(host_turn){domain_of(host, tensor), device,
                                                               sequence, wrapper, host->line});
    }
    return memory;
}

void order_forget(host_order *order)
{
    order->access_count = 0;
    order->turn_count = 0;
    order->dep_count = 0;
}

void order_destroy(host_order *order)
{
    alloc_free(order->accesses);
    alloc_free(order->turns);
    alloc_free(order->deps);
    *order = (host_order){0};
}
