/* What a rank notes of its cores and turns when their call is recorded: see sched.h and trace.h. Blocks that run at the same
 * time are in lanes of their own, the lowest that is free. */
#include "sched/sched_internal.h"

#include "base/bits.h"
#include "base/os.h"

#include <sched.h>

void note_ready(pld_core *core)
{
    core->ready_ns = os_now_ns();
    core->started_ns = core->ended_ns = 0;
    core->lane = -1;
}

static int32_t take_lane(sched *s)
{
    for (int32_t i = 0; i < TRACE_LANES / 64; ++i) {
        if (~s->lanes[i] == 0)
            continue;
        const int32_t bit = __builtin_ctzll(~s->lanes[i]);
        s->lanes[i] |= UINT64_C(1) << bit;
        return i * 64 + bit;
    }
    return TRACE_LANES - 1;
}

void note_started(sched *s, pld_core *core)
{
    core->started_ns = os_now_ns();
    core->cpu = sched_getcpu();
    if (core->task != NULL)
        core->lane = take_lane(s);
}

void note_ended(sched *s, pld_core *core)
{
    if (core->started_ns == 0 || core->ended_ns != 0)
        return;
    core->ended_ns = os_now_ns();
    if (core->lane >= 0)
        bits_remove(s->lanes, core->lane);
}

void sched_note_phase(sched *s, trace_phase phase, int64_t began_ns, int32_t tasks)
{
    if (s->log == NULL)
        return;
    event_phase *e = trace_begin(s->log, EVENT_PHASE, s->log_dispatch, (int64_t)sizeof *e);
    if (e == NULL)
        return;
    e->phase = (int32_t)phase;
    e->tasks = tasks;
    e->turn = s->turns;
    e->began_ns = began_ns;
    e->ended_ns = os_now_ns();
    trace_commit(s->log, e);
}

void note_turn(sched *s, bool idle)
{
    ++s->turns;
    if (idle == (s->phase_ns != 0))
        return;
    if (idle) {
        s->phase_ns = os_now_ns();
        return;
    }
    sched_note_phase(s, PHASE_IDLE, s->phase_ns, 0);
    s->phase_ns = 0;
}

void sched_end_phases(sched *s)
{
    if (s->phase_ns != 0)
        sched_note_phase(s, PHASE_IDLE, s->phase_ns, 0);
    s->phase_ns = 0;
    s->log = NULL;
}
