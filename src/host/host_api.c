/* What a host function calls: windows and dispatches; its tensors are in host_tensors.c. All of it runs in the calling process;
 * nothing here waits for a device, unless it is far behind (ahead.c). A call that fails leaves the host function's fiber for good (see
 * call.c). */
#include "host/host.h"
#include "runtime/args.h"
#include "runtime/views.h"
#include "sched/describe.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void(pld_host_line)(pld_host *host, int32_t line)
{
    host->line = line;
}

/* ---- failing ---- */

void host_leave(pld_host *host, pypto_status status)
{
    diag_place(&status, (pypto_span){.file = host->function->file, .line = host->line});
    host->status = status;
    fiber_switch(host->fiber, host->main, true);
    __builtin_unreachable();
}

void host_error(pld_host *host, diag_code code, const char *hint, const char *format, ...)
{
    pypto_status status = STATUS_OK;
    va_list args;
    va_start(args, format);
    const pypto_span span = {.file = host->function->file, .line = host->line};
    diag_vadd(&status, code, span, hint, format, args);
    va_end(args);
    host_leave(host, status);
}

void(pld_host_fail)(pld_host *host, const char *format, ...)
{
    char text[FAILURE_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    host_error(host, DIAG_BAD_DISPATCH, NULL, "%s", text);
}

void(pld_host_unbound)(pld_host *host, const char *name)
{
    host_error(host, DIAG_UNBOUND_NAME, "assign it before the loop, too", UNBOUND_TEXT, name);
}

/* ---- Ctrl-C ---- */

/* To look at the clock costs as much as a few turns of an empty loop, to ask takes Python's lock. */
#define POLLS_PER_LOOK 64
#define ASK_NS (INT64_C(20) * 1000000)

void host_ask(pld_host *host, host_asks asks)
{
    /* Signal handlers of the script run then: not on this small stack. */
    host->asks = asks;
    fiber_switch(host->fiber, host->main, false);
    if (!status_ok(host->status))
        host_leave(host, host->status);
}

void(pld_host_poll)(pld_host *host)
{
    if (++host->polls % POLLS_PER_LOOK != 0)
        return;
    const int64_t now = os_now_ns();
    if (now - host->asked_at < ASK_NS)
        return;
    host->asked_at = now;
    host_ask(host, HOST_ASKS_FOR_CTRL_C);
}

/* ---- devices and windows ---- */

#define MORE_DEVICES \
    "device= counts the device ids of the run from 0: give the run more of them, or dispatch on fewer"

int64_t(pld_world_size)(pld_host *host)
{
    return host->w->device_count;
}

uint64_t pld_all_devices(pld_host *host)
{
    const int32_t n = host->w->device_count;
    return n >= 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

uint64_t pld_device_range(pld_host *host, int64_t start, int64_t stop)
{
    if (start < 0 || stop > host->w->device_count)
        host_error(host, DIAG_BAD_DISPATCH, MORE_DEVICES,
                   "this window buffer is dispatched on device %lld, the run has devices 0 to %d",
                   (long long)stop - 1, host->w->device_count - 1);
    uint64_t mask = 0;
    for (int64_t device = start; device < stop; ++device)
        mask |= (uint64_t)1 << device;
    return mask;
}

static const char *buffer_name(const pld_host *host, int32_t buffer)
{
    return host->table->buffers[buffer].name;
}

/* A persistent window that an earlier call has made. */
static void check_unchanged(pld_host *host, int32_t buffer, int64_t bytes, uint64_t devices)
{
    const host_window *window = &host->windows[buffer];
    if (window->bytes != bytes || window->devices != devices)
        host_error(host, DIAG_CHANGED_WINDOW, "prepare another worker for another size",
                   "persistent window '%s' has a changed specification: %lld bytes on %d devices, "
                   "and %lld bytes on %d devices in an earlier call",
                   buffer_name(host, buffer), (long long)bytes, __builtin_popcountll(devices),
                   (long long)window->bytes, __builtin_popcountll(window->devices));
}

static void take_window(pld_host *host, int32_t buffer, int64_t block, uint64_t devices)
{
    bool known = false;
    for (int32_t i = 0; i < host->table->nbuffers; ++i)
        known |= host->windows[i].allocated && host->windows[i].devices == devices;
    pypto_status status = window_take(host->w, block, devices, buffer_name(host, buffer),
                                      &host->windows[buffer].offset);
    if (!status_ok(status))
        host_leave(host, status);
    host->w->domain_count += !known;
}

pld_buffer(pld_alloc_window)(pld_host *host, int32_t buffer, int64_t bytes, uint64_t devices)
{
    if (buffer < 0 || buffer >= host->table->nbuffers)
        host_error(host, DIAG_BAD_DISPATCH, NULL, "buffer %d is not in the program's table",
                   buffer);
    host_window *window = &host->windows[buffer];
    if (window->allocated)
        host_error(host, DIAG_BAD_DISPATCH, "allocate each window buffer once, outside loops",
                   "window buffer '%s' is allocated twice in one call", buffer_name(host, buffer));
    if (bytes < 0)
        host_error(host, DIAG_BAD_DISPATCH, "sizes are in bytes",
                   "window buffer '%s' has %lld bytes", buffer_name(host, buffer),
                   (long long)bytes);
    if (devices == 0 || (devices & ~pld_all_devices(host)) != 0)
        host_error(host, DIAG_BAD_DISPATCH, MORE_DEVICES,
                   "window buffer '%s' is used on devices that the run does not have (it has %d)",
                   buffer_name(host, buffer), host->w->device_count);
    const int32_t ranks = __builtin_popcountll(devices);
    const int32_t channels = channel_count(host->table->buffers[buffer].collectives, bytes, ranks);
    int64_t block;
    if (!channel_block(bytes, channels, ranks, &block))
        host_error(host, DIAG_NO_SPACE, NULL, "window buffer '%s' is too large",
                   buffer_name(host, buffer));
    if (window->kept)
        check_unchanged(host, buffer, bytes, devices);
    else
        take_window(host, buffer, block, devices);
    window->allocated = true;
    window->bytes = bytes;
    window->block = block;
    window->devices = devices;
    window->view = (pld_window){.base = segment_slice(&host->w->seg, 0) + window->offset,
                                .device_base = segment_slice(&host->w->seg, 0) + window->offset,
                                .stride = host->w->seg.set->stride,
                                .bytes = bytes,
                                .buffer = buffer,
                                .channels = channels};
    return (pld_buffer){buffer};
}

pld_tensor(pld_window_view)(pld_host *host, pld_buffer buffer, int32_t dtype, int32_t ndim,
                            const int64_t *shape)
{
    if (buffer.index < 0 || buffer.index >= host->table->nbuffers ||
        !host->windows[buffer.index].allocated)
        host_error(host, DIAG_BAD_DISPATCH, "pass what pld_alloc_window returned in this call",
                   "window buffer %d has not been allocated", buffer.index);
    if (pypto_dtype_bytes((pypto_dtype)dtype) == 0)
        host_error(host, DIAG_BAD_DISPATCH, NULL, "%d is no element type", dtype);
    const host_window *window = &host->windows[buffer.index];
    pld_tensor t;
    char text[LIST_TEXT];
    if (ndim < 0 || ndim > PYPTO_MAX_DIMS)
        host_error(host, DIAG_BAD_DISPATCH, NULL,
                   "a window has %d dimensions, at most %d are possible", ndim, PYPTO_MAX_DIMS);
    const int64_t bytes = view_packed(&t, dtype, ndim, shape);
    t.data = window->view.base;
    t.window = &window->view;
    if (bytes < 0 || bytes > window->bytes)
        host_error(
            host, DIAG_WINDOW_TOO_LARGE,
            "alloc_window_buffer(size) counts bytes; the form with a shape and dtype= counts "
            "elements",
            "a view of shape %s (%s, %lld bytes) does not fit into window buffer '%s' of %lld "
            "bytes",
            describe_list(text, sizeof text, shape, ndim), pypto_dtype_name((pypto_dtype)dtype),
            (long long)bytes, buffer_name(host, buffer.index), (long long)window->bytes);
    return t;
}

/* ---- dispatch ---- */

static void encode_tensor(pld_host *host, queue_arg *to, const pld_tensor *t)
{
    to->dtype = t->dtype;
    to->ndim = t->ndim;
    memcpy(to->shape, t->shape, sizeof to->shape);
    memcpy(to->stride, t->stride, sizeof to->stride);
    to->buffer = -1;
    if (t->window == NULL) {
        to->data = t->data - host->w->seg.base;
        return;
    }
    const host_window *window = &host->windows[t->window->buffer];
    to->buffer = t->window->buffer;
    to->devices = window->devices;
    to->window_start = window->offset;
    to->window_bytes = window->bytes;
    to->channels = window->view.channels;
    to->data = window->offset + (t->data - window->view.base);
}

static int32_t wrapper_index(pld_host *host, const pld_function *wrapper)
{
    const int32_t index = function_index(host->table, wrapper, PLD_PLANE_CHIP);
    if (index >= 0)
        return index;
    host_error(host, DIAG_BAD_DISPATCH, "dispatch a per-device wrapper of this program",
               "'%s' is not a per-device wrapper of program '%s'", wrapper->name,
               host->table->name);
}

static void check_dispatch(pld_host *host, int64_t device, const pld_function *wrapper,
                           const pld_arg *args, int32_t count)
{
    if (device < 0 || device >= host->w->device_count)
        host_error(
            host, DIAG_BAD_DISPATCH,
            "device= is a rank, which counts the device_ids of the run from 0, and no device id",
            "device %lld does not exist: the run has %d (0 to %d)", (long long)device,
            host->w->device_count, host->w->device_count - 1);
    char why[NAME_TEXT];
    if (!args_fit(wrapper, args, count, why, sizeof why))
        host_error(host, DIAG_BAD_DISPATCH, NULL, "%s", why);
    for (int32_t i = 0; i < count; ++i) {
        if (args[i].kind != PLD_ARG_TENSOR || args[i].tensor->window == NULL)
            continue;
        const int32_t buffer = args[i].tensor->window->buffer;
        if ((host->windows[buffer].devices >> device & 1) == 0)
            host_error(host, DIAG_BAD_DISPATCH, "dispatch a window on the devices that share it",
                       "window '%s' is dispatched on device %lld, which is not in its domain",
                       buffer_name(host, buffer), (long long)device);
    }
}

/* Posts a dispatch to a consumer. */
static void post(pld_host *host, int32_t device, const pld_function *wrapper, int32_t index,
                 const pld_arg *given, int32_t count)
{
    pypto_worker *w = host->w;
    ahead_of_dispatches(host);
    const pld_arg *args = host->holds ? resident_arguments(host, device, given, count) : given;
    if (segment_poisoned(&w->seg, host->call, memory_order_relaxed))
        host_leave(host, STATUS_OK); /* a rank has failed already: call.c reports it */
    if (!order_collect(host, device, wrapper, args, count))
        host_leave(host, diag_no_memory());
    queue_record *record;
    pypto_status status = queue_reserve(&w->writers[device], RECORD_DISPATCH, host->call,
                                        host->w->order.dep_count, count, &record);
    if (!status_ok(status))
        host_leave(host, status);
    record->program = host->program_id;
    record->function = index;
    record->log = records_log(host, device);
    if (record->dep_count > 0)
        memcpy(record_deps(record), host->w->order.deps,
               (size_t)record->dep_count * sizeof *host->w->order.deps);
    queue_arg *to = record_args(record);
    for (int32_t i = 0; i < count; ++i) {
        to[i] = (queue_arg){.kind = (int32_t)args[i].kind,
                            .buffer = -1,
                            .integer = args[i].integer,
                            .real = args[i].real};
        if (args[i].kind == PLD_ARG_TENSOR)
            encode_tensor(host, &to[i], args[i].tensor);
    }
    atomic_fetch_add_explicit(&w->seg.set->outstanding, 1, memory_order_relaxed);
    const uint64_t sequence = host->holds ? queue_append(&w->writers[device], record)
                                          : queue_publish(&w->writers[device], record);
    if (!order_record(host, device, sequence, wrapper, args, count))
        host_leave(host, diag_no_memory());
}

void(pld_dispatch)(pld_host *host, int64_t device, const pld_function *wrapper, const pld_arg *args,
                   int32_t count)
{
    const int32_t index = wrapper_index(host, wrapper);
    check_dispatch(host, device, wrapper, args, count);
    host->dispatched |= (uint64_t)1 << device;
    (pld_host_poll)(host);
    post(host, (int32_t)device, wrapper, index, args, count);
}

void(pld_call_sub)(pld_host *host, const pld_function *function, const pld_arg *args, int32_t count)
{
    const int32_t index = function_index(host->table, function, PLD_PLANE_SUB);
    if (index < 0)
        host_error(host, DIAG_BAD_DISPATCH, NULL, "'%s' is no SubWorker of program '%s'",
                   function->name, host->table->name);
    pypto_status status = check_sub_arguments(function, args, count);
    if (!status_ok(status))
        host_leave(host, status);
    const int32_t consumer = subs_choose(host, function);
    if (consumer < 0)
        host_error(host, DIAG_BAD_DISPATCH, "set pypto_worker_options.sub_workers",
                   "SubWorker '%s' is called, but the worker set has none", function->name);
    (pld_host_poll)(host);
    post(host, consumer, function, index, args, count);
}
