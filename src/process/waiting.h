/* How the host waits: one poll() for completion, death of a worker and Ctrl-C.
 *
 * Workers write the event descriptor; a dead worker's pidfd (or its channel's hang-up) becomes
 * readable. A signal could arrive just before poll() starts, or on another thread; while a host
 * waits, SIGINT is therefore relayed: our handler calls the one that was installed before (Python's)
 * and then writes the event descriptors of all waiting hosts. Where SIGINT has its default
 * action nothing is touched. */
#ifndef PROCESS_WAITING_H
#define PROCESS_WAITING_H

#include "base/export.h"
#include "process/process.h"

typedef enum host_wake {
    HOST_WAKE_EVENT = 1,  /* rung, or nothing in particular: look at everything again */
    HOST_WAKE_DEATH = 2,  /* some worker may be dead: ask process_dead() */
    HOST_WAKE_SIGNAL = 4, /* a signal came */
    HOST_WAKE_TIMEOUT = 8
} host_wake;

/* Eventfd >= 3, non-blocking, close-on-exec; -1 with errno. */
int host_event_create(void) EXPORTED(host_event_create);

/* Ends the host_wait() of that event, or the next one. */
void host_ring(int event);

/* As if a signal had come to all who wait: each host_wait() ends with HOST_WAKE_SIGNAL. */
void host_relay_all(void);

/* Gives the CPU to whoever is ready. */
void host_yield(void);

/* Waits; a set of host_wake bits. Drains the event. timeout_ms < 0: for ever. *signals_seen is the
 * number of relayed signals that the caller knows of; HOST_WAKE_SIGNAL says that it has grown (or
 * that another signal interrupted the wait), and it is brought up to date. */
unsigned host_wait(int event, const process *processes, int32_t count, int32_t timeout_ms,
                   uint32_t *signals_seen);

/* The same while messages of those that are `awaited` are: one that has come, or the end of one of them, wakes, too. */
unsigned host_wait_messages(int event, const process *processes, const bool *awaited, int32_t count,
                            int32_t timeout_ms, uint32_t *signals_seen);

/* Between begin and end, SIGINT also rings `event`. Returns the number of signals relayed so far. A
 * signal that came before is the caller's to ask for. Thread-safe; calls of different threads may
 * overlap. */
uint32_t host_relay_begin(int event) EXPORTED(host_relay_begin);
void host_relay_end(int event) EXPORTED(host_relay_end);

#endif
