/* The host's side of worker processes: start, death, end. Called by src/host.
 *
 * Start. posix_spawn for exec (glibc makes it with CLONE_VM, so it costs the same from a process of
 * any size), fork for the rest. Either way the child has one end of a channel and nothing else from
 * us.
 *
 * Death. The pidfd is the name of the process wherever there is one: unlike its number it cannot be
 * recycled, when the calling program (or its SIGCHLD handler, or SIGCHLD set to "ignore") has
 * reaped our child behind our back. Without pidfds the number has to do. ECHILD means dead, status
 * unknown.
 *
 * End. Closing the channel tells the worker to end. A plain close would not do, because a forked
 * child of the calling program may hold a copy of our end: shutdown() closes the connection itself.
 *
 * Pitfalls. Between fork and _exit the child of process_fork is a copy of a program with perhaps
 * many threads: it must not take locks of others. Descriptors of ours are all close-on-exec from
 * birth, so a fork and exec in another thread cannot leak them. */
#include "process/process.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/format.h"
#include "base/os.h"
#include "process/channel.h"
#include "process/parent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* P_PIDFD, which C libraries before 2.36 do not name. */
#define WAIT_BY_PIDFD ((idtype_t)3)

/* Where an exec'd worker finds its channel. */
#define WORKER_CHANNEL 3

static pypto_status start_failed(int error, const char *program)
{
    bool shortage = error == EAGAIN || error == ENOMEM;
    char limit[OS_LIMIT_TEXT], more[OS_LIMIT_TEXT + 128];
    format_text(more, sizeof more,
                "raise %s, free memory, or use fewer devices: each is a process of two threads",
                os_limit_text("processes", limit, sizeof limit));
    const char *hint =
        shortage ? more : "PYPTO_WORKER names the worker program; is pypto fully installed?";
    char reason[128];
    return diag_status(DIAG_WORKER_START, hint, "cannot start the worker process %s: %s", program,
                       strerror_r(error, reason, sizeof reason));
}

static void adopt(process *out, pid_t pid, int channel)
{
    *out = PROCESS_NONE;
    out->pid = pid;
    out->pidfd = os_open_pidfd(pid);
    out->channel = channel;
}

/* What the child's descriptors 0 to 3 are; 0 or the error. */
static int plan_descriptors(posix_spawn_file_actions_t *actions, int channel)
{
    int error = 0;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && error == 0; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0 || (flags & FD_CLOEXEC) != 0)
            error = posix_spawn_file_actions_addopen(actions, fd, "/dev/null", O_RDWR, 0);
    }
    /* When channel is 3 already, this still clears its close-on-exec flag. */
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(actions, channel, WORKER_CHANNEL);
    return error;
}

/* All signals as if nobody had touched them, but SIGINT is blocked: a Ctrl-C while the worker
 * starts stays pending until parent_prepare_signals() ignores it. 0 or the error. */
static int plan_signals(posix_spawnattr_t *attributes)
{
    sigset_t all;
    sigset_t blocked;
    sigfillset(&all);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    int error = posix_spawnattr_setsigdefault(attributes, &all);
    if (error == 0)
        error = posix_spawnattr_setsigmask(attributes, &blocked);
    if (error == 0)
        error =
            posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    return error;
}

/* 0 or the error. */
static int spawn_with_channel(const char *program, char *title, int channel, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error != 0)
        goto destroy_actions;
    error = plan_descriptors(&actions, channel);
    if (error == 0)
        error = plan_signals(&attributes);
    if (error == 0) {
        char name[] = "pypto-worker";
        char *argv[] = {name, title, NULL};
        error = posix_spawn(pid, program, &actions, &attributes, argv, environ);
    }
    posix_spawnattr_destroy(&attributes);
destroy_actions:
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

pypto_status process_spawn(const char *program, const char *title, process *out)
{
    *out = PROCESS_NONE;
    char *own_title = alloc_strdup(title); /* exec wants a pointer that is not const */
    if (own_title == NULL)
        return diag_no_memory();
    int ends[2];
    pypto_status status = channel_pair(ends);
    if (status_ok(status)) {
        pid_t pid;
        int error = spawn_with_channel(program, own_title, ends[1], &pid);
        os_close(&ends[1]);
        if (error == 0) {
            adopt(out, pid, ends[0]);
        } else {
            os_close(&ends[0]);
            status = start_failed(error, program);
        }
    }
    alloc_free(own_title);
    return status;
}

/* The forked child: never returns. All signals are still blocked. */
static _Noreturn void run_child(int (*entry)(int channel, void *context), void *context,
                                int ends[2], const process *others, int32_t other_count)
{
    parent_prepare_signals();
    os_close(&ends[0]);
    for (int32_t i = 0; i < other_count; i++) {
        process copy = others[i];
        process_disown(&copy);
    }
    _exit(entry(ends[1], context));
}

pypto_status process_fork(int (*entry)(int channel, void *context), void *context,
                          const process *others, int32_t other_count, process *out)
{
    *out = PROCESS_NONE;
    int ends[2];
    pypto_status status = channel_pair(ends);
    if (!status_ok(status))
        return status;
    /* Blocked across the fork, so that no handler of the calling program runs in the child. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        run_child(entry, context, ends, others, other_count);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    os_close(&ends[1]);
    if (pid < 0) {
        os_close(&ends[0]);
        return start_failed(error, "(a copy of this program)");
    }
    adopt(out, pid, ends[0]);
    return STATUS_OK;
}

/* Looks (WNOHANG) or waits (0) for the end of the process and reaps it; true when it is dead. */
static bool reap(process *p, int options)
{
    if (p->pid == 0 || p->reaped)
        return true;
    siginfo_t info;
    int failed;
    do {
        info.si_pid = 0;
        failed = p->pidfd >= 0 ? waitid(WAIT_BY_PIDFD, (id_t)p->pidfd, &info, WEXITED | options)
                               : waitid(P_PID, (id_t)p->pid, &info, WEXITED | options);
        if (failed && errno == EINVAL && p->pidfd >= 0) /* Linux 5.3: pidfds, but not here */
            failed = waitid(P_PID, (id_t)p->pid, &info, WEXITED | options);
    } while (failed && errno == EINTR);
    if (!failed && info.si_pid == 0)
        return false;
    p->reaped = true;
    p->exit_code = -1;
    p->exit_signal = 0;
    if (!failed && info.si_code == CLD_EXITED)
        p->exit_code = info.si_status;
    else if (!failed)
        p->exit_signal = info.si_status;
    return true;
}

bool process_dead(process *p)
{
    return reap(p, WNOHANG);
}

int64_t process_cpu_ns(const process *p)
{
    clockid_t clock;
    struct timespec used;
    if (p->pid <= 0 || p->reaped || clock_getcpuclockid((pid_t)p->pid, &clock) != 0 ||
        clock_gettime(clock, &used) != 0)
        return -1;
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

bool process_is_idle(const process *p)
{
    char path[32];
    char text[256];
    format_text(path, sizeof path, "/proc/%lld/stat", (long long)p->pid);
    int fd = p->pid > 0 && !p->reaped ? os_open_read(path) : -1;
    const ssize_t count = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    os_close(&fd);
    text[count > 0 ? count : 0] = '\0';
    const char *state = strrchr(text, ')'); /* the name before it may hold anything */
    return state == NULL || strlen(state) < 3 || strchr("RD", state[2]) == NULL;
}

void process_send_kill(process *p)
{
    if (reap(p, WNOHANG))
        return;
    if (p->pidfd < 0 || syscall(SYS_pidfd_send_signal, p->pidfd, SIGKILL, NULL, 0) != 0)
        kill((pid_t)p->pid, SIGKILL);
}

void process_kill(process *p)
{
    process_send_kill(p);
    reap(p, 0);
}

/* Waits for death until the time is over (-1: for ever); true when it came. */
static bool wait_dead(process *p, int32_t timeout_ms)
{
    int64_t start_ns = os_now_ns();
    int64_t timeout_ns = (int64_t)timeout_ms * 1000000;
    int64_t pause_ns = 100000;
    while (!reap(p, WNOHANG)) {
        int64_t left_ns = timeout_ms < 0 ? INT64_MAX : timeout_ns - (os_now_ns() - start_ns);
        if (left_ns <= 0)
            return false;
        struct pollfd death = {p->pidfd, POLLIN, 0};
        /* Without a pidfd there is nothing to wait on: look again after growing pauses. */
        int64_t step_ns = p->pidfd >= 0 || pause_ns > left_ns ? left_ns : pause_ns;
        struct timespec step = {(time_t)(step_ns / 1000000000), (long)(step_ns % 1000000000)};
        ppoll(&death, 1, &step, NULL);
        if (pause_ns < 5000000)
            pause_ns *= 2;
    }
    return true;
}

void process_hang_up(process *p)
{
    if (p->channel >= 0)
        shutdown(p->channel, SHUT_RDWR);
    os_close(&p->channel);
}

void process_close(process *p, int32_t timeout_ms)
{
    process_hang_up(p);
    if (!wait_dead(p, timeout_ms))
        process_kill(p);
    os_close(&p->pidfd);
}

void process_disown(process *p)
{
    os_close(&p->channel);
    os_close(&p->pidfd);
    *p = PROCESS_NONE;
}

void process_describe_exit(const process *p, char *text, int64_t bytes)
{
    if (p->reaped && p->exit_signal != 0) {
        const char *name = sigabbrev_np(p->exit_signal);
        if (name != NULL)
            format_text(text, bytes, "signal %d (SIG%s)", p->exit_signal, name);
        else
            format_text(text, bytes, "signal %d", p->exit_signal);
    } else if (p->reaped && p->exit_code >= 0) {
        format_text(text, bytes, "exit code %d", p->exit_code);
    } else {
        format_text(text, bytes, "unknown status");
    }
}
