/* Whole rounds and collectives, for every endless sequence of collectives and every interleaving: a model of
 * src/collective/channel.{h,c} (flags, stages, numbers of rounds) and of how src/collective/{reduce,move}.c use them.
 * `scripts/check model` runs it; by hand:
 *
 *     spin -DP=3 -a rounds.pml && cc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m1000000
 *
 * Whoever is the first in a collective decides which one it is; the others do the same. All counters are kept
 * modulo a few, so there are finitely many states, and no end. What is checked:
 *   - nobody waits for ever ("invalid end state");
 *   - no rank leaves a round before all have entered it, nor gets two rounds ahead of one;
 *   - a message or stage that is read is the one of this round;
 *   - a window of a peer is touched only during the peer's own call of the same collective, and when the call
 *     returns all have written to it. A rank fills its window in front of the call and overwrites it behind;
 *   - with -DPUSHES: what ranks push into windows of peers before they enter, after the peer has left the
 *     collective before, takes part.
 *
 * Steps of ranks happen in one order for all: flags are seq_cst, and messages, stages and windows are written
 * before a flag is and read after it was found. Each write is a step of its own. What a rank does behind a
 * round to memory of its peers is one step, which may come at any time until its next round: where the access to
 * one peer can be too late, so can be that to all. Sleeping while a flag is awaited is the subject of sleep.pml: here
 * a rank sees a flag at the latest when nothing else can happen.
 *
 * MODULUS is how many numbers of rounds a flag can tell apart; those of the source never come back. In a set of
 * flags stands the number of this round or of the one before the last (or nothing yet), so 3 are enough, and 2
 * are not. Rooted rounds, which need more, are in rooted.pml.
 *
 * -DBREAK=n takes out one ingredient of the protocol; the check must then fail:
 *   1 one set of flags, not two                     2 one set of stages
 *   3 a round waits for one other rank, not for all 4 windows are touched without a round before
 *   5 no round behind touching windows              6 the flag is written before its message
 *   7 the stage is filled behind the flags          8 with PUSHES: no round is repeated
 *   9 with PUSHES: who has pushed repeats the round, others do not */
/* 2 or 3. */
#ifndef P
#define P 2
#endif
#ifndef MODULUS
#define MODULUS 4
#endif
#ifndef BREAK
#define BREAK 0
#endif

/* Numbers of rounds, as far as the model can tell: they know which set is used, and what flags say. */
#if MODULUS == 3
#define NUMBERS 6
#else
#define NUMBERS 4
#endif
/* Of a message or stage that nobody may read. */
#define NOTHING 255

#if BREAK == 1
#define FLAG_SET(n) 0
#else
#define FLAG_SET(n) ((n) % 2)
#endif
#if BREAK == 2
#define STAGE_SET(n) 0
#else
#define STAGE_SET(n) ((n) % 2)
#endif
#define FLAG(n, owner, writer) ((FLAG_SET(n) * P + (owner)) * P + (writer))
#define STAGE(n, owner) (STAGE_SET(n) * P + (owner))

/* Shared: what a flag says; which round its message is of; which round a stage is of. What has been read and
 * what is left from earlier rounds is NOTHING, for fewer states. */
byte flag[2 * P * P]; /* 8 more: its rank has pushed */
byte message[2 * P * P] = NOTHING;
byte stage[2 * P] = NOTHING;
/* How many ranks have written into a window. */
byte written[P];
/* Whose pushes are in a window, as bits; and were in it when a message or a stage was filled from it. */
byte pushed_into[P];
byte message_has[2 * P * P];
byte stage_has[2 * P];

/* What only the assertions read. */
#define OUTSIDE 255
byte pushers[2]; /* of a collective */
bit next[P];     /* the collective that a rank is in, or enters next */
#define ALL_PUSHES(q) (pushers[c] & ~(1 << (q)))
byte entered[P]; /* the latest round */
byte inside[P] = OUTSIDE; /* the collective that lasts */

/* What the collectives are: of a few bytes, of some more, of many. */
#define UNDECIDED 0
#define MESSAGES 1
#define STAGES 2
#define WINDOWS 3
byte plan[2];
byte joined[2];

/* The first one decides; the last one makes room for the one after the next. */
inline decide()
{
    if
    :: plan[c] == UNDECIDED ->
        if
        :: kind = MESSAGES
        :: kind = STAGES
        :: kind = WINDOWS
        fi;
        plan[c] = kind
    :: else -> kind = plan[c]
    fi;
    joined[c]++;
    if
    :: joined[c] == P ->
        joined[c] = 0;
        pushers[1 - c] = 0;
        plan[c] = UNDECIDED
    :: else
    fi
}

inline round_begin()
{
    atomic {
        round = (round + 1) % NUMBERS;
        entered[me] = round;
        stage[STAGE(round, me)] = NOTHING;
        stage_has[STAGE(round, me)] = 0
    }
}

inline post(with_message)
{
    i = 1;
    do
    :: i == P -> break
    :: i < P ->
#if BREAK == 6
        flag[FLAG(round, (me + i) % P, me)] = round % MODULUS + (pushed -> 8 : 0);
#endif
        atomic {
            message[FLAG(round, (me + i) % P, me)] = (with_message -> round : NOTHING);
            message_has[FLAG(round, (me + i) % P, me)] = (with_message -> pushed_into[me] : 0)
        }
#if BREAK != 6
        flag[FLAG(round, (me + i) % P, me)] = round % MODULUS + (pushed -> 8 : 0);
#endif
        i++
    od
}

inline round_end()
{
    i = 1;
    do
    :: i == P -> break
    :: i < P ->
#if BREAK == 3
        if
        :: i == 1 -> flag[FLAG(round, me, (me + i) % P)] % 8 == round % MODULUS
        :: else
        fi;
#else
        flag[FLAG(round, me, (me + i) % P)] % 8 == round % MODULUS;
#endif
        i++
    od;
    atomic {
        i = 1;
        do
        :: i == P -> break
        :: i < P ->
            assert(entered[(me + i) % P] == round || entered[(me + i) % P] == (round + 1) % NUMBERS);
#if BREAK != 9
            again = again || flag[FLAG(round, me, (me + i) % P)] >= 8;
#endif
            i++
        od;
        i = 0
    }
}

/* Behind a round with data: whether it has to be repeated. */
inline round_again()
{
    atomic {
#if BREAK == 8
        again = false;
#endif
        repeat = again;
        again = false;
        pushed = false
    }
}

inline read_messages(with_data)
{
    atomic {
        i = 1;
        do
        :: i == P -> break
        :: i < P ->
            assert(message[FLAG(round, me, (me + i) % P)] == round);
            assert(!with_data || message_has[FLAG(round, me, (me + i) % P)] == ALL_PUSHES((me + i) % P));
            message[FLAG(round, me, (me + i) % P)] = NOTHING;
            message_has[FLAG(round, me, (me + i) % P)] = 0;
            i++
        od;
        i = 0
    }
}

inline few_bytes()
{
    do
    :: round_begin();
        post(true);
        round_end();
        round_again();
        if
        :: repeat
        :: else -> break
        fi
    od;
    read_messages(true)
}

inline fill_stage()
{
    atomic {
        stage[STAGE(round, me)] = round;
        stage_has[STAGE(round, me)] = pushed_into[me]
    }
}

inline some_bytes()
{
    do
    :: round_begin();
#if BREAK != 7
        fill_stage();
#endif
        post(false);
#if BREAK == 7
        fill_stage();
#endif
        round_end();
        round_again();
        if
        :: repeat
        :: else -> break
        fi
    od;
    atomic {
        i = 1;
        do
        :: i == P -> break
        :: i < P ->
            assert(stage[STAGE(round, (me + i) % P)] == round);
            assert(stage_has[STAGE(round, (me + i) % P)] == ALL_PUSHES((me + i) % P));
            i++
        od;
        i = 0
    }
}

/* The first round may carry messages (where the data lies), which are read between the rounds. */
inline many_bytes()
{
#if BREAK != 4
    round_begin();
    post(true);
    round_end();
    read_messages(false);
#endif
    atomic {
        i = 1;
        do
        :: i == P -> break
        :: i < P ->
            assert(inside[(me + i) % P] == c);
            assert(pushed_into[(me + i) % P] == ALL_PUSHES((me + i) % P));
            written[(me + i) % P]++;
            i++
        od;
        i = 0
    }
#if BREAK != 5
    round_begin();
    post(false);
    round_end();
#endif
    assert(written[me] == P - 1)
}

proctype rank(byte me)
{
    byte round, kind, i;
    bit c; /* which collective, of those that ranks can be in at the same time */
    bool pushed, again, repeat;

    do
    ::
#ifdef PUSHES
        if
        :: skip
        :: atomic {
                pushed = true;
                again = true;
                pushers[c] = pushers[c] | (1 << me)
            }
            i = 1;
            do
            :: i == P -> break
            :: i < P ->
                atomic {
                    next[(me + i) % P] == c; /* the user has a signal for that */
                    pushed_into[(me + i) % P] = pushed_into[(me + i) % P] | (1 << me);
                    i++
                }
            od
        fi;
#endif
        atomic {
            decide();
            written[me] = 0; /* fills its window */
            inside[me] = c
        }
        if
        :: kind == MESSAGES -> few_bytes()
        :: kind == STAGES -> some_bytes()
        :: kind == WINDOWS -> many_bytes()
        fi;
        atomic {
            inside[me] = OUTSIDE;
            pushed = false;
            again = false;
            repeat = false;
            pushed_into[me] = 0;
            next[me] = 1 - c;
            kind = UNDECIDED;
            c = 1 - c
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
