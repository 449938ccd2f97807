/* Worker processes as the host sees them: start by exec or fork, death, kill.
 *
 * A process is started with one end of a SOCK_SEQPACKET socket pair (channel.h) and nothing else:
 * everything further travels over it. exec passes it as descriptor 3; fork as an argument. The
 * child is always our own: we reap it, by pid only, never with wait(-1), so the caller's other
 * children are not disturbed.
 *
 * Not thread-safe per object; different objects may be used from different threads. */
#ifndef PROCESS_PROCESS_H
#define PROCESS_PROCESS_H

#include <pypto/status.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct process {
    int64_t pid; /* 0: none */
    int pidfd;   /* becomes readable when the process is dead; -1 where the kernel forbids pidfds */
    int channel; /* our end; hang-up also means death */
    bool reaped;
    int32_t exit_code;   /* when reaped: exit code, or -1 if unknown (somebody else reaped it) */
    int32_t exit_signal; /* when reaped: the signal that ended it, 0 if none */
} process;

#define PROCESS_NONE ((process){0, -1, -1, false, 0, 0})

/* Starts `program` (a full path) with argv {"pypto-worker", title, NULL}: `title` shows in ps. Uses
 * posix_spawn, whose cost does not grow with the caller's memory. All signals that the caller
 * handles, ignores or blocks are reset in the child, except that SIGINT is blocked until the worker
 * calls parent_prepare_signals(), which it must do first; descriptors 0-2 may be closed here and
 * are then /dev/null there; no other descriptor of ours leaks in. */
PYPTO_NODISCARD pypto_status process_spawn(const char *program, const char *title, process *out);

/* Forks without exec; the child runs `entry(channel, context)` and _exits with its result. Our
 * other channels and pidfds in the parent's table `others` (count, may be 0) are closed in the
 * child. The child has called parent_prepare_signals() before any signal can reach it. */
PYPTO_NODISCARD pypto_status process_fork(int (*entry)(int channel, void *context), void *context,
                                          const process *others, int32_t other_count, process *out);

/* True once the process is dead; then exit_code / exit_signal are known. Does not block.
 * PROCESS_NONE is dead. */
bool process_dead(process *p);

/* CPU time that it has used, in nanoseconds; -1 when that is not known. */
int64_t process_cpu_ns(const process *p);

/* Whether it sleeps or is stopped, instead of running or waiting for a CPU, memory or a disk; also when that is not known. */
bool process_is_idle(const process *p);

/* SIGKILL, without waiting for the end. */
void process_send_kill(process *p);

/* SIGKILL, then waits for the end and reaps. */
void process_kill(process *p);

/* Closes the channel, which tells the worker to end, and does not wait. */
void process_hang_up(process *p);

/* Hangs up, waits up to `timeout_ms` (-1: for ever), then
 * kills. Releases all descriptors; how it ended stays readable. Accepts PROCESS_NONE, and a process
 * that is closed already. */
void process_close(process *p, int32_t timeout_ms);

/* Closes descriptors without touching the process: for a forked child of the user that inherited
 * us. */
void process_disown(process *p);

/* "exit code 3", "signal 9 (SIGKILL)", "unknown status" into `text`. */
void process_describe_exit(const process *p, char *text, int64_t bytes);
#endif
