/* Child programs that run to their end: the C compiler.
 *
 * No shell: arguments arrive as they are. The child gets default signals, an empty standard input
 * and one pipe for output and errors, which is read to its end so that a talkative compiler never
 * blocks.
 *
 * Pitfalls. The pipe may outlive the program (a compiler wrapper that leaves a server behind keeps
 * the write end): the death of the process ends the reading, not only the end of the pipe. And the
 * calling program may ignore SIGCHLD, in which case the kernel throws the exit status away. */
#include "base/os.h"

#include "base/diag.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_MAX ((int64_t)64 * 1024)

static bool is_program(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

/* `path` from the root on. */
static char *absolute(arena *a, char *path)
{
    char here[PATH_MAX];
    if (path[0] == '/' || getcwd(here, sizeof here) == NULL)
        return path;
    return arena_printf(a, "%s/%s", here, path);
}

char *os_find_program(arena *a, const char *name)
{
    if (name[0] == '\0')
        return NULL;
    if (strchr(name, '/') != NULL)
        return is_program(name) ? absolute(a, arena_strdup(a, name)) : NULL;
    const char *search = getenv("PATH");
    if (search == NULL)
        search = "/usr/local/bin:/usr/bin:/bin";
    for (;;) {
        int length = (int)strcspn(search, ":");
        /* An empty entry of PATH is the current directory. */
        char *path = length > 0 ? arena_printf(a, "%.*s/%s", length, search, name)
                                : arena_printf(a, "./%s", name);
        if (is_program(path))
            return absolute(a, path);
        if (search[length] == '\0')
            return NULL;
        search += length + 1;
    }
}

/* Both ends >= 3 and close-on-exec; 0 or the error. */
static int open_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    ends[0] = os_high_fd(ends[0]);
    int error = ends[0] < 0 ? errno : 0;
    ends[1] = os_high_fd(ends[1]);
    if (ends[1] < 0 && error == 0)
        error = errno;
    if (error != 0) {
        os_close(&ends[0]);
        os_close(&ends[1]);
    }
    return error;
}

/* Starts argv with `output` as its standard output and errors; 0 or the error. */
static int start(const char *const *argv, int output, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error != 0)
        goto destroy_actions;

    /* Any of these can only fail for want of memory. */
    if ((error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)) != 0 ||
        (error = posix_spawn_file_actions_adddup2(&actions, output, 1)) != 0 ||
        (error = posix_spawn_file_actions_adddup2(&actions, output, 2)) != 0 ||
        (error = posix_spawnattr_setsigdefault(&attributes, &all)) != 0 ||
        (error = posix_spawnattr_setsigmask(&attributes, &none)) != 0 ||
        (error = posix_spawnattr_setflags(&attributes,
                                          POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK)) != 0)
        goto destroy_attributes;

    /* exec does not write to the arguments; its type is older than const. */
    union {
        const char *const *given;
        char *const *wanted;
    } arguments = {.given = argv};
    error = posix_spawnp(pid, argv[0], &actions, &attributes, arguments.wanted, environ);

destroy_attributes:
    posix_spawnattr_destroy(&attributes);
destroy_actions:
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Reads what the program writes until it is dead or has closed its output; keeps the first
 * OUTPUT_MAX bytes. */
static void drain(int pipe_end, int pidfd, char *kept)
{
    struct pollfd waits[2] = {{pipe_end, POLLIN, 0}, {pidfd, POLLIN, 0}};
    char rest[4096];
    int64_t length = 0;
    int timeout_ms = -1;
    for (;;) {
        int ready = poll(waits, 2, timeout_ms);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return;
        if (waits[0].revents != 0) {
            bool room = length < OUTPUT_MAX;
            ssize_t count = room ? read(pipe_end, kept + length, (size_t)(OUTPUT_MAX - length))
                                 : read(pipe_end, rest, sizeof rest);
            if (count == 0 || (count < 0 && errno != EINTR))
                return;
            length += room && count > 0 ? count : 0;
        } else {
            /* Dead. What it wrote between the two looks of this poll is still in the pipe. */
            waits[1].fd = -1;
            timeout_ms = 0;
        }
    }
}

/* The exit code, 128 + signal, or -1. */
static int32_t reap(pid_t pid)
{
    int status;
    pid_t reaped;
    do
        reaped = waitpid(pid, &status, 0);
    while (reaped < 0 && errno == EINTR);
    if (reaped < 0)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

pypto_status os_run(arena *a, const char *const *argv, char **output, int32_t *exit_code)
{
    /* First, because the arena may jump and everything after this must be given back. */
    char *kept = arena_alloc(a, OUTPUT_MAX + 1);
    *output = kept;
    *exit_code = -1;
    int ends[2];
    int error = open_pipe(ends);
    if (error != 0)
        return diag_system(error, NULL, "make a pipe for %s", argv[0]);
    pid_t pid;
    error = start(argv, ends[1], &pid);
    os_close(&ends[1]);
    if (error == 0) {
        int pidfd = os_open_pidfd(pid);
        drain(ends[0], pidfd, kept);
        os_close(&pidfd);
        *exit_code = reap(pid);
    }
    os_close(&ends[0]);
    return error == 0 ? STATUS_OK : diag_system(error, NULL, "run %s", argv[0]);
}
