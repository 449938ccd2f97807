/* The small part of the operating system: clock, process, descriptors, and where this library lies on disk.
 * os_file.c, os_cpu.c and os_run.c are the others behind os.h.
 *
 * Descriptors. The calling program may have closed its standard descriptors, so that the next
 * open() gives 0, 1 or 2, and somebody's error message would be written into our cache file or
 * socket. Every descriptor of ours goes through os_high_fd(): number 3 or above, close-on-exec. */
#include "base/os.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int64_t os_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void os_sleep_ms(int32_t ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    (void)nanosleep(&time, NULL);
}

int32_t os_process_id(void)
{
    return getpid();
}

int os_high_fd(int fd)
{
    if (fd < 0)
        return -1;
    if (fd > STDERR_FILENO) {
        int flags = fcntl(fd, F_GETFD);
        if (flags >= 0 && ((flags & FD_CLOEXEC) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) == 0))
            return fd;
    }
    int moved = fd > STDERR_FILENO ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int error = errno;
    close(fd);
    errno = error;
    return moved;
}

void os_close(int *fd)
{
    /* Linux releases the number even when close() is interrupted: never again. */
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int os_open_read(const char *path)
{
    int fd;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    while (fd < 0 && errno == EINTR);
    return os_high_fd(fd);
}

int os_open_pidfd(int64_t pid)
{
    /* By number: the C library has a wrapper only since 2.36. The kernel sets close-on-exec. */
    return os_high_fd((int)syscall(SYS_pidfd_open, (pid_t)pid, 0));
}

/* The file that this function's code was mapped from, into `path`. */
static bool find_own_file(char path[PATH_MAX])
{
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1((void *)(uintptr_t)&os_now_ns, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 &&
        map != NULL && map->l_name[0] != '\0')
        return realpath(map->l_name, path) != NULL;
    /* Linked into the program itself, whose name the loader knows only as argv[0]. */
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = '\0';
    return length > 0;
}

int os_start_thread(pthread_t *thread, int64_t stack_bytes, void *(*run)(void *), void *argument)
{
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error != 0)
        return error;
    error = pthread_attr_setstacksize(&attributes, (size_t)stack_bytes);
    if (error == 0)
        error = pthread_create(thread, &attributes, run, argument);
    pthread_attr_destroy(&attributes);
    return error;
}

char *os_library_path(arena *a)
{
    char path[PATH_MAX];
    return arena_strdup(a, find_own_file(path) ? path : "");
}

char *os_library_dir(arena *a)
{
    char *path = os_library_path(a);
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        return arena_strdup(a, ".");
    slash[slash == path ? 1 : 0] = '\0';
    return path;
}
