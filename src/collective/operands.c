/* Operands of collectives: see operands.h. The compiler has refused what it can tell; here are the checks that
 * need values, and the same again for kernels written in C. */
#include "collective/operands.h"

#include "sched/describe.h"

#include <string.h>

bool same_domain(const pld_tensor *a, const pld_tensor *b)
{
    const pld_comm *x = a->window->comm, *y = b->window->comm;
    return x->nranks == y->nranks && memcmp(x->devices, y->devices, (size_t)x->nranks) == 0;
}

/* From its first byte to behind its last. */
static int64_t span_of(const pld_tensor *tensor)
{
    int64_t last = 0;
    if (tensor_elements(tensor) == 0)
        return 0;
    for (int32_t d = 0; d < tensor->ndim; ++d)
        last += (tensor->shape[d] - 1) * tensor->stride[d];
    return pypto_dtype_size((pypto_dtype)tensor->dtype, last + 1);
}

void need_apart(pld_core *core, const pld_tensor *a, const pld_tensor *b)
{
    char name[NAME_TEXT], other[NAME_TEXT];
    if (a->data < b->data + span_of(b) && b->data < a->data + span_of(a))
        task_fail(
            core, DIAG_BAD_COLLECTIVE, "%s and %s share memory: give each a window of its own",
            task_describe(core, a, name, sizeof name), task_describe(core, b, other, sizeof other));
}

static void need_packed(pld_core *core, const char *role, const pld_tensor *tensor)
{
    char name[NAME_TEXT];
    if (tensor->partial || !tensor_is_packed(tensor))
        task_fail(core, DIAG_BAD_COLLECTIVE,
                  "%s %s %s: a collective requires a packed source and target", role,
                  task_describe(core, tensor, name, sizeof name),
                  tensor->partial ? "counts in part only" : "has gaps between its rows");
}

void need_part_of_window(pld_core *core, const char *role, const pld_tensor *tensor,
                         const pld_tensor *signal)
{
    char name[NAME_TEXT], other[NAME_TEXT];
    (void)task_need_window(core, tensor);
    (void)task_need_window(core, signal);
    if (!same_domain(tensor, signal))
        task_fail(core, DIAG_BAD_COLLECTIVE, "%s %s and signal %s are windows of different domains",
                  role, task_describe(core, tensor, name, sizeof name),
                  task_describe(core, signal, other, sizeof other));
    need_apart(core, tensor, signal);
    if (!tensor->partial)
        need_packed(core, role, tensor);
}

void need_window(pld_core *core, const char *role, const pld_tensor *tensor,
                 const pld_tensor *signal)
{
    need_part_of_window(core, role, tensor, signal);
    need_packed(core, role, tensor);
}

int64_t need_parts(pld_core *core, const char *role, const pld_tensor *tensor, int32_t ranks)
{
    char name[NAME_TEXT], shape[LIST_TEXT];
    const int64_t elements = tensor_elements(tensor);
    const int64_t bytes = pypto_dtype_size((pypto_dtype)tensor->dtype, elements / ranks);
    if (tensor->ndim < 1 || tensor->shape[0] % ranks != 0)
        task_fail(core, DIAG_BAD_COLLECTIVE,
                  "%s %s of shape %s does not have a part for each of %d ranks along dimension 0",
                  role, task_describe(core, tensor, name, sizeof name),
                  describe_list(shape, sizeof shape, tensor->shape, tensor->ndim), ranks);
    if (bytes * ranks != pypto_dtype_size((pypto_dtype)tensor->dtype, elements))
        task_fail(core, DIAG_BAD_COLLECTIVE,
                  "%s %s: the part of a rank ends in the middle of a byte, because elements of %s "
                  "lie two in one",
                  role, task_describe(core, tensor, name, sizeof name),
                  pypto_dtype_name((pypto_dtype)tensor->dtype));
    return bytes;
}

void need_pair(pld_core *core, const pld_tensor *input, const pld_tensor *target)
{
    char name[NAME_TEXT];
    need_packed(core, "input", input);
    if (input->dtype != target->dtype)
        task_fail(core, DIAG_BAD_COLLECTIVE, "input %s has element type %s, the target %s",
                  task_describe(core, input, name, sizeof name),
                  pypto_dtype_name((pypto_dtype)input->dtype),
                  pypto_dtype_name((pypto_dtype)target->dtype));
    need_apart(core, input, target);
}

void copy_bytes(pld_core *core, char *target, const char *source, int64_t bytes)
{
    while (bytes > COPY_PIECE) {
        memcpy(target, source, (size_t)COPY_PIECE);
        target += COPY_PIECE;
        source += COPY_PIECE;
        bytes -= COPY_PIECE;
        task_check(core);
    }
    memcpy(target, source, (size_t)bytes);
}

/* ---- regions ---- */

region region_of(const pld_tensor *tensor)
{
    const int64_t *valid = pld_valid(tensor);
    region r = {.count = 1, .run = 1};
    for (int32_t d = 0; d < tensor->ndim; ++d)
        r.count *= valid[d];
    int32_t d = tensor->ndim;
    while (d > 0 && (valid[d - 1] == 1 || tensor->stride[d - 1] == r.run))
        r.run *= valid[--d];
    r.ndim = d;
    memcpy(r.shape, valid, (size_t)d * sizeof *valid);
    memcpy(r.stride, tensor->stride, (size_t)d * sizeof *valid);
    return r;
}

int64_t region_begin(const region *r, int64_t number)
{
    int64_t offset = 0;
    for (int32_t d = r->ndim - 1; d >= 0; --d) {
        offset += number % r->shape[d] * r->stride[d];
        number /= r->shape[d];
    }
    return offset;
}

void region_pack(const region *r, int64_t width, const char *data, char *packed)
{
    for (int64_t i = 0; i * r->run < r->count; ++i)
        memcpy(packed + i * r->run * width, data + region_begin(r, i) * width,
               (size_t)(r->run * width));
}

void region_unpack(const region *r, int64_t width, const char *packed, char *data)
{
    for (int64_t i = 0; i * r->run < r->count; ++i)
        memcpy(data + region_begin(r, i) * width, packed + i * r->run * width,
               (size_t)(r->run * width));
}

/* ---- calls ---- */

collective_call describe_target(collective_kind kind, const pld_comm *comm,
                                const pld_tensor *target, int64_t count)
{
    return (collective_call){.kind = (uint8_t)kind,
                             .dtype = (uint8_t)target->dtype,
                             .count = count,
                             .run = count,
                             .offset = target->data - target->window->base,
                             .buffer = target->window->buffer,
                             .ranks = comm->nranks};
}
