/* Whether one task must come after another because of the memory that both use: what the order among the tasks of a
 * dispatch is derived from, when they are submitted (task.c), and again when a recorded one is shown (src/trace). */
#ifndef RUNTIME_CONFLICT_H
#define RUNTIME_CONFLICT_H

#include "runtime/rank.h"

/* What a task does to an argument, as pld_use bits. */
uint32_t task_uses(const task *t, int32_t i);

/* The number of the first argument of `earlier` because of which a later access to `tensor`, with those pld_use bits, must
 * wait for it; the number of its arguments if it is the element that it tests; -1: there is none. */
int32_t task_conflict(const task *earlier, const pld_tensor *tensor, byte_range range,
                      uint32_t later);

static inline bool task_must_precede(const task *earlier, const pld_tensor *tensor,
                                     byte_range range, uint32_t later)
{
    return task_conflict(earlier, tensor, range, later) >= 0;
}

bool task_must_follow(const task *later, const task *earlier);

#endif
