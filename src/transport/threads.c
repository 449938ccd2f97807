/* The threads transport: ranks are threads of the host's process and use its mapping. The memory is
 * the same memory file as with shm, so that allocation, reservation and offsets are the same code.
 */
#include "base/diag.h"
#include "base/os.h"
#include "transport/transport.h"

static pypto_status threads_create(int32_t rank_count, int32_t sub_count, segment *out)
{
    pypto_status status = transport_shm.create(rank_count, sub_count, out);
    out->transport = &transport_threads;
    return status;
}

static pypto_status threads_attach(int fd, const segment *host, segment *out)
{
    os_close(&fd);
    *out = *host;
    out->fd = -1;
    return STATUS_OK;
}

/* Only the host's view owns the mapping; a rank's view has no descriptor. */
static void threads_detach(segment *s)
{
    if (s->fd >= 0)
        transport_shm.detach(s);
    s->base = NULL;
    s->set = NULL;
}

static void threads_sleep(_Atomic uint32_t *word, uint32_t seen)
{
    transport_shm.sleep(word, seen);
}

static void threads_wake(_Atomic uint32_t *word)
{
    transport_shm.wake(word);
}

const transport transport_threads = {
    .name = "threads",
    .one_process = true,
    .create = threads_create,
    .attach = threads_attach,
    .detach = threads_detach,
    .sleep = threads_sleep,
    .wake = threads_wake,
};
