/* Between sched.c, park.c and notes.c. */
#ifndef SCHED_SCHED_INTERNAL_H
#define SCHED_SCHED_INTERNAL_H

#include "sched/sched.h"

static inline bool core_satisfied(const pld_core *core)
{
    return core->wait.kind == WAIT_TASKS ? *core->awaited == 0
                                         : wait_satisfied(&core->owner->seg, &core->wait);
}

/* park.c: sleeps until the bell rings, unless there is work after all. */
void sched_park(sched *s);

/* notes.c, of cores and ranks whose call is recorded. */
void note_ready(pld_core *core);
void note_started(sched *s, pld_core *core);
/* Its last instruction is behind it, or it is dropped. Again: does nothing. */
void note_ended(sched *s, pld_core *core);
void note_turn(sched *s, bool idle);

#endif
