/* Fibers: separate stacks that one thread switches between. A fiber never changes its thread.
 *
 * A switch saves what the calling convention says a function call keeps (about 7 ns on x86-64); a
 * portable twin on ucontext serves other CPUs and can be forced with -DPYPTO_FIBER_UCONTEXT. Stacks
 * come from mmap with a guard page below, so an overflow is a SIGSEGV and not silent corruption.
 * AddressSanitizer and ThreadSanitizer are told of every switch.
 *
 * Dropping: a fiber that is never switched to again is simply reused (fiber_reset) or destroyed.
 * Nothing on its stack is unwound, which is why code that runs on one owns no resources. */
#ifndef SCHED_FIBER_H
#define SCHED_FIBER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fiber fiber;
typedef void (*fiber_entry)(void *argument);

/* The calling thread as something to switch back to. NULL when memory is exhausted. */
fiber *fiber_of_thread(void);

/* A new fiber that runs nothing yet. NULL when memory is exhausted. */
fiber *fiber_create(int64_t stack_bytes);

/* Makes the next switch to `f` start `entry(argument)`, whatever `f` was doing. `entry` must end by
 * switching away, never by returning. */
void fiber_reset(fiber *f, fiber_entry entry, void *argument);

/* Leaves `from` (which must be the running one) and continues `to`. `finished`: `from` will not be
 * continued before a fiber_reset. */
void fiber_switch(fiber *from, fiber *to, bool finished);

/* Accepts NULL. Not the running fiber. */
void fiber_destroy(fiber *f);

#endif
