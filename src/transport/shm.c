/* The shm transport: the segment is an anonymous memory file (memfd), mapped by every process.
 *
 * Nothing has a name in the file system, so nothing can be left behind. The file is sparse: its
 * size is address space, not memory; the host reserves pages when it hands out blocks (heap.c).
 * Where the address space is limited (ulimit -v) or file sizes are (ulimit -f), the reservation is
 * halved until it fits. */
#include "base/diag.h"
#include "base/format.h"
#include "base/os.h"
#include "transport/transport.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LARGEST_SEGMENT ((int64_t)1 << 40)
#define SMALLEST_SEGMENT ((int64_t)16 << 20)

static long futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
    return syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static void shm_sleep(_Atomic uint32_t *word, uint32_t seen)
{
    futex(word, FUTEX_WAIT, seen);
}

static void shm_wake(_Atomic uint32_t *word)
{
    futex(word, FUTEX_WAKE, INT_MAX);
}

/* Growing a file past RLIMIT_FSIZE would raise SIGXFSZ, so the limit is looked at first. */
static int64_t file_size_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur > (rlim_t)LARGEST_SEGMENT)
        return LARGEST_SEGMENT;
    return (int64_t)limit.rlim_cur & ~(int64_t)4095;
}

static char *map_file(int fd, int64_t bytes)
{
    void *base =
        mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED)
        return NULL;
    madvise(base, (size_t)bytes,
            MADV_DONTDUMP); /* core files stay small; failure does not matter */
    return base;
}

/* The largest mapping that the limits allow. When address space is scarce, half of what there is
 * stays free for the workers' own needs: they inherit the limit. */
static char *map_largest(int fd, int64_t *bytes)
{
    int64_t size = file_size_limit();
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        while (size > SMALLEST_SEGMENT && (rlim_t)size > limit.rlim_cur / 4)
            size /= 2;
    for (; size >= SMALLEST_SEGMENT; size = size / 2 & ~(int64_t)4095) {
        if (ftruncate(fd, size) != 0)
            continue;
        char *base = map_file(fd, size);
        if (base != NULL) {
            *bytes = size;
            return base;
        }
    }
    return NULL;
}

static pypto_status shm_create(int32_t rank_count, int32_t sub_count, segment *out)
{
    int fd = os_high_fd(memfd_create("pypto-segment", MFD_CLOEXEC));
    if (fd < 0)
        return diag_system(errno, NULL, "create a shared memory file");
    int64_t bytes;
    char *base = map_largest(fd, &bytes);
    if (base == NULL) {
        /* Nothing is tried when files may not be that large. */
        const int error = file_size_limit() < SMALLEST_SEGMENT ? EFBIG : errno;
        char limit[OS_LIMIT_TEXT], hint[OS_LIMIT_TEXT + 16];
        os_close(&fd);
        format_text(
            hint, sizeof hint, "raise %s",
            os_limit_text(error == EFBIG ? "file size" : "address space", limit, sizeof limit));
        return diag_system(error, hint, "map at least %lld MiB of shared memory",
                           (long long)(SMALLEST_SEGMENT >> 20));
    }
    set_header *set = (set_header *)base;
    if (!segment_plan(set, rank_count, sub_count, bytes)) {
        munmap(base, (size_t)bytes);
        os_close(&fd);
        return diag_status(
            DIAG_NO_SPACE, "raise `ulimit -v` or `ulimit -f`, or use fewer devices",
            "%d ranks do not fit into the %lld MiB of address space that the limits allow",
            rank_count, (long long)(bytes >> 20));
    }
    *out = (segment){&transport_shm, base, bytes, fd, set};
    return STATUS_OK;
}

static pypto_status shm_attach(int fd, const segment *host, segment *out)
{
    (void)host;
    int64_t bytes = lseek(fd, 0, SEEK_END);
    if (bytes < (int64_t)sizeof(set_header))
        return diag_status(DIAG_INTERNAL, NULL, "the segment that the host sent is too small");
    char *base = map_file(fd, bytes);
    if (base == NULL)
        return diag_system(errno, "raise `ulimit -v`", "map %lld MiB of shared memory",
                           (long long)(bytes >> 20));
    set_header *set = (set_header *)base;
    if (set->magic != SEGMENT_MAGIC || set->version != SEGMENT_VERSION ||
        set->bytes != (uint64_t)bytes) {
        munmap(base, (size_t)bytes);
        return diag_status(DIAG_WORKER_START, "reinstall pypto: library and pypto-worker differ",
                           "the worker and the host are of different versions");
    }
    *out = (segment){&transport_shm, base, bytes, fd, set};
    return STATUS_OK;
}

static void shm_detach(segment *s)
{
    if (s->base != NULL)
        munmap(s->base, (size_t)s->bytes);
    os_close(&s->fd);
    s->base = NULL;
    s->set = NULL;
}

bool segment_map_file(const segment *s, int64_t offset, int64_t bytes, int fd, bool writable)
{
    char *at = s->base + offset;
    const int access = PROT_READ | (writable ? PROT_WRITE : 0);
    if (mmap(at, (size_t)bytes, access, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0) !=
        MAP_FAILED) {
        madvise(at, (size_t)bytes, MADV_DONTDUMP);
        return true;
    }
    const int error = errno;
    segment_unmap_file(s, offset, bytes); /* the system may have removed it already */
    errno = error;
    return false;
}

void segment_unmap_file(const segment *s, int64_t offset, int64_t bytes)
{
    /* If that fails, the file stays where it is until the next one takes its place. */
    char *at = s->base + offset;
    if (mmap(at, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
             s->fd, offset) != MAP_FAILED)
        madvise(at, (size_t)bytes, MADV_DONTDUMP);
}

const transport transport_shm = {
    .name = "shm",
    .one_process = false,
    .create = shm_create,
    .attach = shm_attach,
    .detach = shm_detach,
    .sleep = shm_sleep,
    .wake = shm_wake,
};
