/* Sleeping, waking and the deadlock look, for every program of a few notifies and waits and every
 * interleaving: a model of src/sched/park.c, src/sched/signal.c (pld_notify), src/runtime/loop.c
 * (has_work, completion), src/transport/segment.h (rank_ring) and src/host/{call,deadlock}.c (the wait, the
 * look). `scripts/check model` runs it; by hand:
 *
 *     spin -DP=2 -DOPS=3 -a sleep.pml && cc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m1000000
 *
 * What is checked:
 *   - nobody sleeps for ever: a state without successor in which the host or a rank has not ended is an
 *     error ("invalid end state"). That is a lost wake-up, or a deadlock that is not reported;
 *   - a notify rings a sleeper, without help from the host;
 *   - a deadlock is reported only if no rank can ever go on (the assertions in the host).
 *
 * Each read and write of the shared words is a step of its own, in one order for all: that is what
 * seq_cst gives, and the words modelled here are seq_cst in the source, or published before one that is.
 * Bells and epochs are counters that only one reader compares; here they are one bit each, set by a
 * change and cleared by the reading. -DBREAK=n takes out one ingredient of the protocol; the check must then fail:
 *   1 the sleeper does not look again after announcing itself     2 a notify reads the sleeper count first
 *   3 the host believes one reading of the epochs                 4 nobody rings the host when all sleep
 *   5 the host does not ask whether what it posted has been taken
 *   6 whether a rank is parked is a word beside the epoch
 *   7 the host looks at one rank after the other, instead of at all between two readings of all epochs
 *   8 with -DSUB: a SubWorker does not ring the host
 * With -DSUB the last rank is a SubWorker: `running` does not count it, and it rings the host when no rank runs.
 * (6 and 7 are mistakes that this model has found.) */
/* 2 or 3. */
#ifndef P
#define P 2
#endif
#ifndef OPS
#define OPS 3
#endif
#ifndef BREAK
#define BREAK 0
#endif

#if P == 2
#define ALL_DOWN (down[0] && down[1])
#else
#define ALL_DOWN (down[0] && down[1] && down[2])
#endif

#ifdef SUB
#define COUNTED(r) (r != P - 1)
#define RANKS (P - 1)
#else
#define COUNTED(r) true
#define RANKS P
#endif

/* Of each rank. */
byte cell[P];
bool rung[P];  /* the bell, as far as its only reader can tell: different from what it has seen */
byte sleepers[P];
bool moved[P];  /* the epoch, as far as its only reader (the host) can tell: different from its reading, */
bool parked[P]; /* and whether it is odd */
byte awaited[P]; /* what the published wait needs; 0: no wait */
bool posted[P];
bool taken[P];
bool completed[P];

/* Of the set. */
byte running = RANKS;
byte outstanding = P;
bool host_waiting;
bool event;
bool over; /* the call has ended: poison */

/* The value that a rank's next wait needs, for the assertions: 0 when it computes, 255 when it is done. */
byte needs[P];
bool down[P]; /* really asleep; nobody reads it but the assertions */

inline ring(r)
{
    if
    :: sleepers[r] > 0 -> rung[r] = true
    :: else
    fi
}

inline ring_host()
{
    if
    :: host_waiting -> event = true
    :: else
    fi
}

/* need > 0: a task waits for the cell; 0: the rank is idle. */
inline park(me, need)
{
    awaited[me] = need;
#if BREAK == 6
    parked[me] = true;
    moved[me] = true;
#else
    atomic {
        parked[me] = true;
        moved[me] = true
    }
#endif
    rung[me] = false;
    sleepers[me]++;
    if
#if BREAK != 1
    :: over || (need > 0 && cell[me] >= need) || (posted[me] && !taken[me])
#endif
    :: else ->
        if
        :: COUNTED(me) ->
            atomic {
                running--;
                last = running == 0
            }
#if BREAK == 8
        :: else -> last = false
#else
        :: else -> last = running == 0
#endif
        fi;
#if BREAK != 4
        if
        :: last -> ring_host()
        :: else
        fi;
#endif
        down[me] = true;
        rung[me];
        down[me] = false;
        if
        :: COUNTED(me) -> running++
        :: else
        fi
    fi;
    sleepers[me]--;
#if BREAK == 6
    moved[me] = true;
    parked[me] = false
#else
    atomic {
        parked[me] = false;
        moved[me] = true
    }
#endif
}

proctype rank(byte me)
{
    byte step, need, asleep;
    bool last;

    /* Nothing to do until the host posts. */
    do
    :: over -> goto end
    :: posted[me] -> break
    :: else -> park(me, 0)
    od;
    taken[me] = true;

    do
    :: step == OPS -> break
    :: step < OPS ->
        step++;
        if
        :: /* notify the next rank */
#if BREAK == 2
            asleep = sleepers[(me + 1) % P];
            cell[(me + 1) % P]++;
            if
            :: asleep > 0 -> rung[(me + 1) % P] = true
            :: else
            fi
#else
            cell[(me + 1) % P]++;
            ring((me + 1) % P)
#endif
        :: /* wait for one more than the last time */
            need++;
            needs[me] = need;
            do
            :: over -> goto end
            :: cell[me] >= need -> break
            :: else -> park(me, need)
            od;
            needs[me] = 0
        fi
    od;

    needs[me] = 255;
    completed[me] = true;
    atomic {
        outstanding--;
        last = outstanding == 0
    }
    if
    :: last -> ring_host()
    :: else
    fi;
    do
    :: over -> break
    :: else -> park(me, 0)
    od;
end:
    skip
}

inline note_epoch(r)
{
    atomic {
        moved[r] = false;
        stuck = stuck && parked[r]
    }
}

inline look()
{
    stuck = true;
#if BREAK != 7
    r = 0;
    do
    :: r == P -> break
    :: r < P ->
        note_epoch(r);
        r++
    od;
#endif
    r = 0;
    do
    :: r == P -> break
    :: r < P ->
#if BREAK == 7
        note_epoch(r);
#endif
#if BREAK != 5
        if
        :: posted[r] && !taken[r] -> stuck = false
        :: else
        fi;
#endif
        if
        :: awaited[r] > 0 && cell[r] >= awaited[r] -> stuck = false
        :: awaited[r] == 0 && taken[r] && !completed[r] -> stuck = false
        :: else
        fi;
        r++
    od;
#if BREAK != 3
    r = 0;
    do
    :: r == P -> break
    :: r < P ->
        if
        :: moved[r] -> stuck = false
        :: else
        fi;
        r++
    od;
#endif
    if
    :: outstanding == 0 -> stuck = false
    :: else
    fi
}

proctype host()
{
    byte r;
    bool stuck, asleep;

    r = 0;
    do
    :: r == P -> break
    :: r < P ->
        posted[r] = true;
        ring(r);
        r++
    od;

    do
    :: host_waiting = true;
        if
        :: outstanding == 0 -> break
        :: else
        fi;
        asleep = running == 0;
#ifdef SUB
        /* While it runs there is nothing to find, and nobody to be woken to no purpose. */
        asleep = asleep && parked[P - 1];
#endif
        if
        :: asleep ->
            look();
            if
            :: stuck ->
                /* True for ever: whoever is not done needs what nobody is left to send. */
                r = 0;
                do
                :: r == P -> break
                :: r < P ->
                    assert(needs[r] > 0);
                    assert(needs[r] == 255 || cell[r] < needs[r]);
                    r++
                od;
                break
            :: else ->
                /* When all sleep no notify is under way, so one that has arrived must have rung. */
                r = 0;
                do
                :: r == P -> break
                :: r < P ->
                    assert(!ALL_DOWN || rung[r] || awaited[r] == 0 || cell[r] < awaited[r]);
                    r++
                od;
                r = 0;
                do
                :: r == P -> break
                :: r < P -> ring(r); r++
                od
            fi
        :: else
        fi;
        event;
        event = false;
        host_waiting = false
    od;

    over = true;
    r = 0;
    do
    :: r == P -> break
    :: r < P -> rung[r] = true; r++
    od
}

init
{
    atomic {
        byte i;
        run host();
        for (i : 0 .. P - 1) {
            run rank(i)
        }
    }
}
