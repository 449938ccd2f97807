/* A runtime of one rank and one device in plain C, for running emitted programs in tests without
 * libpypto: it is included behind the emitted text and compiled with it into one shared object
 * (test_emit.c). No checks; a dispatch and a task run at once. What pld_submit receives is
 * recorded for the test. */
#include <pypto/program.h>

#include <stdlib.h>
#include <string.h>

#undef pld_get_comm
#undef pld_view
#undef pld_load
#undef pld_store
#undef pld_remote_load
#undef pld_notify
#undef pld_wait
#undef pld_submit
#undef pld_fail
#undef pld_world_size
#undef pld_alloc_window
#undef pld_window_view
#undef pld_index
#undef pld_slice
#undef pld_dispatch
#undef pld_host_fail

struct pld_core {
    const pld_function *function;
};
struct pld_host {
    int64_t dispatches;
};

#define STUB_WORLD 3
#define MOST_RECORDS 4096

pld_arg stub_records[MOST_RECORDS];
int32_t stub_record_count;
int32_t stub_lines[MOST_RECORDS]; /* of every noted line, in order */
int32_t stub_line_count;
int64_t stub_devices[MOST_RECORDS]; /* of every dispatch */
int64_t stub_device_count;
const char *stub_failure;

static char stub_buffers[8][1 << 16];
static _Alignas(64) char stub_scratch[1 << 20];
static pld_comm stub_comm = {0, 1, {0}};
static pld_window stub_windows[8];

static void note_line(int32_t line)
{
    if (stub_line_count < MOST_RECORDS)
        stub_lines[stub_line_count++] = line;
}

void pld_line(pld_core *core, int32_t line)
{
    (void)core;
    note_line(line);
}

void pld_poll(pld_core *core)
{
    (void)core;
}

void pld_host_line(pld_host *host, int32_t line)
{
    (void)host;
    note_line(line);
}

void *pld_scratch(pld_core *core)
{
    (void)core;
    return stub_scratch;
}

const pld_comm *pld_get_comm(pld_core *core, const pld_tensor *tensor)
{
    (void)core;
    (void)tensor;
    return &stub_comm;
}

static pld_tensor packed(const pld_tensor *tensor, int32_t ndim, const int64_t *shape)
{
    pld_tensor view = *tensor;
    int64_t stride = 1;
    view.ndim = ndim;
    for (int32_t i = ndim - 1; i >= 0; i--) {
        view.shape[i] = shape[i];
        view.stride[i] = stride;
        stride *= shape[i];
    }
    return view;
}

pld_tensor pld_view(pld_core *core, const pld_tensor *tensor, int32_t ndim, const int64_t *shape)
{
    (void)core;
    return packed(tensor, ndim, shape);
}

static int64_t element_bytes(const pld_tensor *tensor)
{
    static const int64_t bytes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8};
    return bytes[tensor->dtype];
}

static void copy_box(char *tile, const pld_tensor *tensor, const int64_t *offsets,
                     const int64_t *extents, bool load)
{
    int64_t elem = element_bytes(tensor);
    int64_t count = 1;
    for (int32_t i = 0; i < tensor->ndim; i++)
        count *= extents[i];
    for (int64_t n = 0; n < count; n++) {
        int64_t rest = n;
        int64_t at = 0;
        for (int32_t i = tensor->ndim - 1; i >= 0; i--) {
            at += (offsets[i] + rest % extents[i]) * tensor->stride[i];
            rest /= extents[i];
        }
        if (load)
            memcpy(tile + n * elem, tensor->data + at * elem, (size_t)elem);
        else
            memcpy(tensor->data + at * elem, tile + n * elem, (size_t)elem);
    }
}

void pld_load(pld_core *core, void *tile, const pld_tensor *source, const int64_t *offsets,
              const int64_t *extents)
{
    (void)core;
    copy_box(tile, source, offsets, extents, true);
}

void pld_store(pld_core *core, const void *tile, const pld_tensor *target, const int64_t *offsets,
               const int64_t *extents)
{
    (void)core;
    copy_box((char *)(uintptr_t)tile, target, offsets, extents, false);
}

void pld_remote_load(pld_core *core, void *tile, const pld_tensor *source, int64_t peer,
                     const int64_t *offsets, const int64_t *extents)
{
    (void)peer;
    pld_load(core, tile, source, offsets, extents);
}

void pld_notify(pld_core *core, const pld_tensor *signal, int64_t peer, const int64_t *cell,
                int64_t value, pld_notify_op op)
{
    (void)core, (void)signal, (void)peer, (void)cell, (void)value, (void)op;
}

void pld_wait(pld_core *core, const pld_tensor *signal, const int64_t *cell, int64_t expected,
              pld_wait_cmp cmp)
{
    (void)core, (void)signal, (void)cell, (void)expected, (void)cmp;
}

pld_task pld_submit(pld_core *core, const pld_function *kernel, const pld_arg *args, int32_t count)
{
    (void)core;
    for (int32_t i = 0; i < count && stub_record_count < MOST_RECORDS; i++)
        stub_records[stub_record_count++] = args[i];
    pld_core task = {kernel};
    kernel->run(&task, args);
    return 1;
}

void pld_fail(pld_core *core, const char *message, ...)
{
    (void)core;
    stub_failure = message;
    abort();
}

int64_t pld_world_size(pld_host *host)
{
    (void)host;
    return STUB_WORLD;
}

uint64_t pld_all_devices(pld_host *host)
{
    (void)host;
    return (1u << STUB_WORLD) - 1;
}

uint64_t pld_device_range(pld_host *host, int64_t start, int64_t stop)
{
    (void)host;
    return ((UINT64_C(1) << stop) - 1) & ~((UINT64_C(1) << start) - 1);
}

pld_buffer pld_alloc_window(pld_host *host, int32_t buffer, int64_t bytes, uint64_t devices)
{
    (void)host, (void)devices;
    memset(stub_buffers[buffer], 0, sizeof stub_buffers[buffer]);
    stub_windows[buffer] =
        (pld_window){&stub_comm, stub_buffers[buffer], NULL, 0, bytes, buffer, 0};
    return (pld_buffer){buffer};
}

pld_tensor pld_window_view(pld_host *host, pld_buffer buffer, int32_t dtype, int32_t ndim,
                           const int64_t *shape)
{
    (void)host;
    pld_tensor view = {
        stub_buffers[buffer.index], &stub_windows[buffer.index], dtype, ndim, {0}, {0}};
    return packed(&view, ndim, shape);
}

pld_tensor pld_index(pld_host *host, const pld_tensor *tensor, int32_t count,
                     const int64_t *indices)
{
    (void)host;
    pld_tensor view = *tensor;
    for (int32_t i = 0; i < count; i++)
        view.data += indices[i] * tensor->stride[i] * element_bytes(tensor);
    view.ndim -= count;
    for (int32_t i = 0; i < view.ndim; i++) {
        view.shape[i] = tensor->shape[i + count];
        view.stride[i] = tensor->stride[i + count];
    }
    return view;
}

pld_tensor pld_slice(pld_host *host, const pld_tensor *tensor, const int64_t *shape,
                     const int64_t *offsets)
{
    (void)host;
    pld_tensor view = *tensor;
    for (int32_t i = 0; i < view.ndim; i++) {
        view.data += offsets[i] * tensor->stride[i] * element_bytes(tensor);
        view.shape[i] = shape[i];
    }
    return view;
}

void pld_dispatch(pld_host *host, int64_t device, const pld_function *wrapper, const pld_arg *args,
                  int32_t count)
{
    (void)count;
    host->dispatches++;
    if (stub_device_count < MOST_RECORDS)
        stub_devices[stub_device_count++] = device;
    pld_core task = {wrapper};
    wrapper->run(&task, args);
}

void pld_host_fail(pld_host *host, const char *message, ...)
{
    (void)host;
    stub_failure = message;
    abort();
}

/* Runs function number `index` of the program. */
PYPTO_API void stub_run(int32_t index, const pld_arg *args)
{
    const pld_function *f = pypto_program.functions[index];
    pld_core core = {f};
    pld_host host = {0};
    stub_record_count = 0;
    stub_line_count = 0;
    stub_device_count = 0;
    if (f->plane == PLD_PLANE_HOST)
        f->run_host(&host, args);
    else
        f->run(&core, args);
}
