/* Memory files that are passed on: see memory_file.h. */
#include "transport/memory_file.h"

#include "base/diag.h"
#include "base/os.h"
#include "transport/promise.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* 0 or the error. */
static int fill(int fd, int64_t bytes)
{
    if (ftruncate(fd, bytes) != 0)
        return errno;
    int result;
    do
        result = fallocate(fd, 0, 0, bytes);
    while (result != 0 && errno == EINTR);
    if (result != 0)
        return errno;
    return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0 ? errno : 0;
}

static int map(memory_file *file, int64_t bytes)
{
    struct stat info;
    if (fstat(file->fd, &info) != 0)
        return errno;
    file->device = info.st_dev;
    file->inode = info.st_ino;
    void *base = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
    if (base == MAP_FAILED)
        return errno;
    file->low = (int64_t)(intptr_t)base;
    file->high = file->low + bytes;
    return 0;
}

pypto_status memory_file_create(int64_t bytes, memory_file *file)
{
    *file = (memory_file){.fd = -1};
    pypto_status status = promise_make(NULL, bytes, "shared tensors");
    if (!status_ok(status))
        return status;
    const int64_t limit = os_limit("file size"); /* beyond it ftruncate() would raise a signal */
    if (limit >= 0 && bytes > limit)
        return diag_status(DIAG_NO_SPACE, "raise `ulimit -f`",
                           "a shared tensor of %lld bytes is larger than files may be",
                           (long long)bytes);
    file->fd = os_high_fd(memfd_create("pypto-shared", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (file->fd < 0)
        return diag_system(errno, "raise `ulimit -n`, or use fewer shared tensors",
                           "create a shared memory file");
    int error = fill(file->fd, bytes);
    if (error == 0)
        error = map(file, bytes);
    if (error == 0)
        return STATUS_OK;
    os_close(&file->fd);
    return diag_system(error, "use smaller tensors, or raise `ulimit -v`",
                       "make a shared tensor of %lld MiB", (long long)(bytes >> 20));
}

void memory_file_destroy(memory_file *file)
{
    munmap((void *)(intptr_t)file->low, (size_t)(file->high - file->low));
    os_close(&file->fd);
}
