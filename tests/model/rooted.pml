/* Rooted rounds between whole ones, for every interleaving: a model of what src/collective/channel.{h,c} says of both.
 * rounds.pml is about what collectives do around whole rounds. `scripts/check model` runs it; by hand:
 *
 *     spin -DP=3 -a rooted.pml && cc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m1000000
 *
 * Without -DSTEPS: every endless sequence of rounds that all ranks agree about. Whoever comes first decides what the next one
 * is, and who its root. Checked is that nobody waits for ever, and that what a rank reads is the message of this
 * round.
 *
 * With -DSTEPS=n: each rank calls up to n collectives of its own choice, the same as the others or not. Checked is
 *   - that a rank which takes a message has called the same as its root so far, and gets the one that is meant;
 *   - that when all have ended, and no round has found a difference, nor has the comparison behind the call,
 *     all have called the same;
 *   - that when ranks wait for ever, they have not, and one of them waits for one that has ended or is as far as
 *     itself, which is how the deadlock look finds out.
 *
 * Numbers of rounds do not come back, so whether a line or flag has that of this round is one bit, which goes back to 0
 * where all that look for this number have found it: of a flag, with its one reader; of lines, when all ranks are in
 * the next whole round. Messages that have been read are NOTHING, for fewer states. All fingerprints here are the
 * histories themselves.
 *
 * -DBREAK=n takes out one ingredient; the check must then fail:
 *   1 lines are used again without a whole round    2 a line's number is written before its message
 *   3 numbers come back                             4 a whole round waits for one other rank, not for all
 *   5 one set of flags, not two
 *   6 with STEPS: whole rounds do not compare histories
 *   7 with STEPS: nor does anybody behind the call  8 with STEPS: receivers do not compare with the root
 *   9 with STEPS: the root's fingerprint is of this call only */
/* 2 or 3. */
#ifndef P
#define P 2
#endif
/* Rooted rounds between two whole ones. */
#ifndef LINES
#define LINES 2
#endif
#ifndef BREAK
#define BREAK 0
#endif

#if BREAK == 5
#define FLAG(set, owner, writer) ((owner) * P + (writer))
#else
#define FLAG(set, owner, writer) (((set) * P + (owner)) * P + (writer))
#endif
#define LINE(owner, n) ((owner) * LINES + (n) % LINES)

/* What a collective is: whole, or that of a root. */
#define UNDECIDED 0
#define WHOLE 1
#define ROOTED 2 /* + the root */
#define KINDS (ROOTED + P)

#define NOTHING 255
bit flag[2 * P * P];
byte flag_message[2 * P * P] = NOTHING;
bit line[P * LINES];
byte line_message[P * LINES] = NOTHING;
byte entered; /* ranks that are in the latest whole round */

/* The last one that comes: all have read all lines. */
inline enter_whole()
{
    set = 1 - set;
    entered++;
    if
    :: entered == P ->
        entered = 0;
        for (i : 0 .. P * LINES - 1) {
#if BREAK != 3
            line[i] = 0;
#endif
            line_message[i] = NOTHING
        }
        i = 0
    :: else
    fi
}

#ifndef STEPS

/* ---- all agree ---- */

/* Between the slowest, which has not left a whole round, and the fastest, which is in the next one. */
#define PLANS (LINES + 2)
byte plan[PLANS];
byte joined[PLANS];

inline decide()
{
    if
    :: plan[at] != UNDECIDED
    :: plan[at] == UNDECIDED -> plan[at] = WHOLE
#if BREAK == 1
    :: plan[at] == UNDECIDED ->
#else
    :: plan[at] == UNDECIDED && used < LINES ->
#endif
        if
        :: plan[at] = ROOTED
        :: plan[at] = ROOTED + 1
#if P > 2
        :: plan[at] = ROOTED + 2
#endif
        fi
    fi;
    kind = plan[at];
    joined[at]++;
    if
    :: joined[at] == P ->
        joined[at] = 0;
        plan[at] = UNDECIDED
    :: else
    fi
}

proctype rank(byte me)
{
    byte used, at, kind, i;
    bit set; /* of flags */

    do
    ::
        atomic { decide() }
        if
        :: kind == WHOLE ->
            atomic { enter_whole() }
            i = 1;
            do
            :: i == P -> break
            :: i < P ->
                flag_message[FLAG(set, (me + i) % P, me)] = at;
                atomic {
                    flag[FLAG(set, (me + i) % P, me)] = 1;
                    i++
                }
            od;
            i = 1;
            do
            :: i == P -> break
            :: i < P ->
#if BREAK == 4
                atomic { i > 1 || flag[FLAG(set, me, (me + i) % P)] == 1; i++ }
#else
                atomic { flag[FLAG(set, me, (me + i) % P)] == 1; i++ }
#endif
            od;
            atomic {
                for (i : 1 .. P - 1) {
                    assert(flag_message[FLAG(set, me, (me + i) % P)] == at);
                    flag_message[FLAG(set, me, (me + i) % P)] = NOTHING;
                    flag[FLAG(set, me, (me + i) % P)] = 0
                }
                used = 0
            }
        :: kind == ROOTED + me ->
#if BREAK == 2
            line[LINE(me, used)] = 1;
#endif
            line_message[LINE(me, used)] = at;
            atomic {
#if BREAK != 2
                line[LINE(me, used)] = 1;
#endif
                used++
            }
        :: else ->
            line[LINE(kind - ROOTED, used)] == 1;
            atomic {
                assert(line_message[LINE(kind - ROOTED, used)] == at);
                used++
            }
        fi;
        atomic {
            i = 0;
            kind = UNDECIDED;
            at = (at + 1) % PLANS
        }
    od
}

init
{
    atomic {
        byte n;
        for (n : 0 .. P - 1) {
            run rank(n)
        }
    }
}

#else

/* ---- each as it likes ---- */

#define NOBODY 255
#define CALL(owner, n) call[(owner) * STEPS + (n)]
byte call[P * STEPS];
byte steps[P]; /* that a rank has entered */
bool over[P];
byte waits_for[P] = NOBODY;
bool failed; /* some round has found a difference: all give up */
byte flag_print[2 * P * P];
byte line_print[P * LINES];
byte history[P];
byte rooted[P]; /* all rooted rounds so far */

/* History and call: at most LINES + 1 digits. */
#define WITH(h) ((h) * KINDS + kind)

inline give_up()
{
    failed = true;
    goto end
}

proctype rank(byte me)
{
    byte used, kind, i, told;
    bit set; /* of flags */

    do
    :: steps[me] == STEPS -> break
    :: steps[me] < STEPS -> break
    :: steps[me] < STEPS ->
        atomic {
            if
            :: kind = WHOLE
            :: kind = ROOTED
            :: kind = ROOTED + 1
#if P > 2
            :: kind = ROOTED + 2
#endif
            fi;
            CALL(me, steps[me]) = kind;
            steps[me]++;
            told = WITH(history[me])
        }
        if
        :: kind == WHOLE || used == LINES ->
#if BREAK == 6
            told = kind;
#endif
            atomic { enter_whole() }
            i = 1;
            do
            :: i == P -> break
            :: i < P ->
                atomic {
                    flag_print[FLAG(set, (me + i) % P, me)] = told;
                    flag[FLAG(set, (me + i) % P, me)] = 1;
                    i++
                }
            od;
            i = 1;
            do
            :: i == P -> break
            :: i < P ->
                waits_for[me] = (me + i) % P;
                atomic {
                    failed || flag[FLAG(set, me, (me + i) % P)] == 1;
                    waits_for[me] = NOBODY;
                    if
                    :: failed || flag_print[FLAG(set, me, (me + i) % P)] != told -> give_up()
                    :: else
                    fi;
                    flag[FLAG(set, me, (me + i) % P)] = 0;
                    i++
                }
            od;
            atomic {
                used = 0;
                history[me] = 0
            }
        :: else ->
            atomic {
                history[me] = told;
                rooted[me]++
            }
#if BREAK == 9
            told = kind;
#endif
            if
            :: kind == ROOTED + me ->
                atomic {
                    line_message[LINE(me, used)] = steps[me];
                    line_print[LINE(me, used)] = told;
                    line[LINE(me, used)] = 1
                }
            :: else ->
                waits_for[me] = kind - ROOTED;
                atomic {
                    failed || line[LINE(kind - ROOTED, used)] == 1;
                    waits_for[me] = NOBODY;
                    if
                    :: failed -> give_up()
#if BREAK != 8
                    :: !failed && line_print[LINE(kind - ROOTED, used)] != told -> give_up()
#endif
                    :: else
                    fi;
                    assert(line_message[LINE(kind - ROOTED, used)] == steps[me]);
                    for (i : 0 .. steps[me] - 1) {
                        assert(CALL(me, i) == CALL(kind - ROOTED, i))
                    }
                }
            fi;
            used++
        fi
    od;
end:
    over[me] = true
}

inline compare_calls()
{
    same = true;
    for (a : 1 .. P - 1) {
        same = same && steps[a] == steps[0];
        for (n : 0 .. STEPS - 1) {
            same = same && (n >= steps[a] || n >= steps[0] || CALL(a, n) == CALL(0, n))
        }
    }
}

/* A rank that waits for one that has ended, or is as far. */
inline look_for_culprit()
{
    found = false;
    for (a : 0 .. P - 1) {
        if
        :: waits_for[a] != NOBODY ->
            found = found || over[waits_for[a]] || steps[waits_for[a]] >= steps[a]
        :: else
        fi
    }
}

init
{
    byte a, n;
    bool same, found;

    atomic {
        for (n : 0 .. P - 1) {
            run rank(n)
        }
        n = 0
    }
    if
    :: _nr_pr == 1 ->
        atomic {
            compare_calls();
            found = failed;
#if BREAK != 7
            for (a : 1 .. P - 1) {
                found = found || history[a] != history[0] || rooted[a] != rooted[0]
            }
#endif
            assert(same || found);
            assert(!(same && found))
        }
    :: timeout ->
        atomic {
            compare_calls();
            assert(!same);
            look_for_culprit();
            assert(found);
            failed = true /* all are told */
        }
    fi
}

#endif
