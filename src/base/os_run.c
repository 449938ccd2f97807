/* Child programs that run to their end: the C compiler.
 *
 * No shell: arguments arrive as they are. The child gets default signals, an empty standard input
 * and one pipe for output and errors, which is read to its end so that a talkative compiler never
 * blocks.
 *
 * Who may interrupt the run ends a whole family with it: a compiler's driver runs other programs, which
 * would go on writing files. So the child is then the head of a process group of its own, and Ctrl-C at a
 * terminal reaches the calling program alone, which is asked.
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

/* A program that is told to end removes its temporary files first; one that does not end by then is killed. */
#define GRACE_NS ((int64_t)500 * 1000000)

/* A program that runs. */
typedef struct running {
    pid_t pid;
    bool is_head; /* of a process group of its own */
    int output;   /* what it writes can be read here */
    int pidfd;    /* -1 where there are none */
} running;

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

/* Where SIGINT would end this process, Ctrl-C is to end the child, too: it stays in our process group. */
static bool survives_interrupts(void)
{
    struct sigaction now;
    return sigaction(SIGINT, NULL, &now) == 0 &&
           ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL);
}

/* Starts argv with `output` as its standard output and errors; 0 or the error. */
static int start(const char *const *argv, int output, running *child)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    const int flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                      (child->is_head ? POSIX_SPAWN_SETPGROUP : 0);
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error != 0)
        goto destroy_actions;

    /* Any of these can only fail for want of memory. A group of its own is number 0, as it is made. */
    if ((error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)) != 0 ||
        (error = posix_spawn_file_actions_adddup2(&actions, output, 1)) != 0 ||
        (error = posix_spawn_file_actions_adddup2(&actions, output, 2)) != 0 ||
        (error = posix_spawnattr_setsigdefault(&attributes, &all)) != 0 ||
        (error = posix_spawnattr_setsigmask(&attributes, &none)) != 0 ||
        (error = posix_spawnattr_setflags(&attributes, (short)flags)) != 0)
        goto destroy_attributes;

    /* exec does not write to the arguments; its type is older than const. */
    union {
        const char *const *given;
        char *const *wanted;
    } arguments = {.given = argv};
    error = posix_spawnp(&child->pid, argv[0], &actions, &attributes, arguments.wanted, environ);

destroy_attributes:
    posix_spawnattr_destroy(&attributes);
destroy_actions:
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* What the program writes; the first OUTPUT_MAX bytes are kept. False when there will be no more. */
static bool read_output(const running *child, char *kept, int64_t *length)
{
    char rest[4096];
    const bool room = kept != NULL && *length < OUTPUT_MAX;
    const ssize_t count = room ? read(child->output, kept + *length, (size_t)(OUTPUT_MAX - *length))
                               : read(child->output, rest, sizeof rest);
    if (count == 0 || (count < 0 && errno != EINTR))
        return false;
    *length += room && count > 0 ? count : 0;
    return true;
}

/* Whether the caller wants an end: asked when something has happened that may be a reason. */
static bool gives_up(const os_interrupts *interrupts, bool rung)
{
    if (interrupts == NULL)
        return false;
    if (rung) {
        uint64_t rings;
        const ssize_t got = read(interrupts->event, &rings, sizeof rings);
        (void)got;
    }
    return interrupts->asked(interrupts->context);
}

/* Reads what the program writes until it is dead or has closed its output. False: the caller wants it to end. */
static bool drain(const running *child, const os_interrupts *interrupts, char *kept)
{
    struct pollfd waits[3] = {{child->output, POLLIN, 0},
                              {child->pidfd, POLLIN, 0},
                              {interrupts != NULL ? interrupts->event : -1, POLLIN, 0}};
    int64_t length = 0;
    int timeout_ms = -1;
    if (gives_up(interrupts, false)) /* a signal from before the event was watched */
        return false;
    for (;;) {
        const int ready = poll(waits, 3, timeout_ms);
        const bool signalled = ready < 0 && errno == EINTR;
        if ((signalled || (ready > 0 && waits[2].revents != 0)) && gives_up(interrupts, !signalled))
            return false;
        if (signalled)
            continue;
        if (ready <= 0)
            return true;
        if (waits[0].revents != 0) {
            if (!read_output(child, kept, &length))
                return true;
        } else if (waits[1].revents != 0) {
            /* Dead. What it wrote between the two looks of this poll is still in the pipe. */
            waits[1].fd = -1;
            timeout_ms = 0;
        }
    }
}

/* Waits until `event`, of the program, is ready, but no longer than GRACE_NS; meanwhile nobody waits for us to read. */
static void wait_for_end(const running *child, int event)
{
    const int64_t until = os_now_ns() + GRACE_NS;
    struct pollfd waits[2] = {{child->output, POLLIN, 0}, {event, POLLIN, 0}};
    int64_t length = 0;
    for (int64_t left = GRACE_NS; left > 0; left = until - os_now_ns()) {
        const int ready = poll(waits, 2, (int)(left / 1000000) + 1);
        if (ready > 0 && waits[1].revents != 0)
            return;
        if (ready > 0 && !read_output(child, NULL, &length))
            return; /* nobody has the pipe: they are dead */
    }
}

/* Ends the program, and those that it has started. Helpers of a killed one may be about to make files; the pipe ends
 * with the last of them. One that has left the group, as servers do, may have it, too, and is not waited for. */
static void end(const running *child)
{
    const pid_t family = child->is_head ? -child->pid : child->pid;
    kill(family, SIGTERM);
    wait_for_end(child, child->pidfd);
    kill(family, SIGKILL);
    wait_for_end(child, -1);
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

pypto_status os_run(arena *a, const char *const *argv, const os_interrupts *interrupts,
                    char **output, int32_t *exit_code)
{
    /* First, because the arena may jump and everything after this must be given back. */
    char *kept = arena_alloc(a, OUTPUT_MAX + 1);
    *output = kept;
    *exit_code = -1;
    int ends[2];
    int error = open_pipe(ends);
    if (error != 0)
        return diag_system(error, NULL, "make a pipe for %s", argv[0]);
    running child = {.is_head = interrupts != NULL && survives_interrupts(), .output = ends[0]};
    error = start(argv, ends[1], &child);
    os_close(&ends[1]);
    bool finished = true;
    if (error == 0) {
        child.pidfd = os_open_pidfd(child.pid);
        finished = drain(&child, interrupts, kept);
        if (!finished)
            end(&child);
        os_close(&child.pidfd);
        *exit_code = reap(child.pid);
    }
    os_close(&ends[0]);
    if (error != 0)
        return diag_system(error, NULL, "run %s", argv[0]);
    return finished ? STATUS_OK : diag_status(DIAG_CANCELLED, NULL, "%s was interrupted", argv[0]);
}
