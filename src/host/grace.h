/* How long a rank may take to drop a call that has failed, before it is given up and killed.
 *
 * What a busy machine does to a rank is not its fault: only its own time counts. That is the CPU that it has used, for
 * one that computes without device calls; and for one that sleeps in hand-written C or is stopped, the time in which it
 * did so although nothing kept it from running. One that waits for a CPU has all the time that this takes. The host
 * may be kept from looking, too, by others or by Ctrl-Z; so a look counts for GRACE_LOOK_MS at most. */
#ifndef HOST_GRACE_H
#define HOST_GRACE_H

#include <stdbool.h>
#include <stdint.h>

#define GRACE_CPU_MS 50
#define GRACE_IDLE_MS 2000
#define GRACE_LOOK_MS 100

/* Of one rank. */
typedef struct grace {
    int64_t cpu_ns;  /* that it had used at the beginning; below 0: not known */
    int64_t idle_ns; /* that it has slept or been stopped since */
    int64_t looked_ns;
} grace;

void grace_begin(grace *g, int64_t cpu_ns, int64_t now_ns);

/* Another look at it: the CPU that it has used, whether it sleeps or is stopped. How many nanoseconds it needs at least to
 * use up what it has left, or until the next look if that comes first; 0 or less: it has nothing left. */
int64_t grace_left(grace *g, int64_t cpu_ns, bool idle, int64_t now_ns);
#endif
