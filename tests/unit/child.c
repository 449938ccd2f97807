/* Forked children for unit tests; see child.h. */
#include "child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* The test's own standard error, for children that have closed theirs. */
static int report_fd = -1;

int child_run(void (*body)(void))
{
    report_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(PATIENCE_S);
        body();
        _exit(0);
    }
    close(report_fd);
    int status;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void child_check(int holds, const char *condition, const char *file, int line)
{
    if (holds)
        return;
    dprintf(report_fd, "%s:%d: in the child: not true: %s\n", file, line, condition);
    _exit(1);
}

void child_equal(int64_t value, int64_t expected, const char *what, const char *file, int line)
{
    if (value == expected)
        return;
    dprintf(report_fd, "%s:%d: in the child: %s is %lld, not %lld\n", file, line, what,
            (long long)value, (long long)expected);
    _exit(1);
}

void child_close_others(void)
{
    for (int fd = 3; fd < 1024; fd++)
        if (fd != report_fd)
            close(fd);
}

int child_count_fds(void)
{
    DIR *listing = opendir("/proc/self/fd");
    int count = 0;
    if (listing == NULL)
        return -1;
    while (readdir(listing) != NULL)
        count++;
    closedir(listing);
    return count - 3; /* ".", ".." and the listing's own */
}
