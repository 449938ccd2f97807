/* Channels: what the ranks of a domain tell each other in a collective.
 *
 * A channel belongs to the signal that the user passes, and lies behind the signal's window buffer, in each
 * rank's slice of the symmetric heap (so it is zero when the window is allocated). Rank r's part of it:
 *
 *     record          what r is doing, for reports, and the numbers of the latest rounds
 *     history[N]      what r has done in rooted rounds since the latest whole one, for reports
 *     lines[N]        64-byte lines; lines[i] is written by r as root of the i-th rooted round since then: its number,
 *                     a fingerprint, and up to 48 bytes of message
 *     flags[2][P]     such lines; flags[n % 2][q] is written by rank q in whole round n
 *     stage[2]        8 KiB each; stage[n % 2] is filled by r before whole round n, read by the others behind it
 *     rooted stage    16 KiB, for longer messages of rooted rounds: one behind the other
 *
 * Whole round. Each rank writes its flag into every other rank's part, then waits until every other rank's flag of
 * this round is in its own part. So:
 *
 *     (1) No rank leaves whole round n before all ranks have entered it.
 *     (2) What a rank did before it entered whole round n is visible to those that have left it.
 *     (3) Flags and stages of whole round n may be overwritten in round n + 2, because whoever enters that has left
 *         round n + 1, which by (1) all have entered, and so all have left round n and read what they needed.
 *
 * (2) holds because a flag is written by a seq_cst read-modify-write behind the rank's plain accesses, and found
 * by a seq_cst load; (1) needs that no rank skips a round, which the fingerprint checks.
 *
 * Rooted round. One rank, the root, has something for all others: it writes a line in its own part, and goes on. The
 * others wait for that line and take what they need. Nobody waits for the slowest. Lines and places in the
 * rooted stage are used in turn, the same ones on all ranks whoever the root is; when one of the two
 * is used up, the collective is done in a whole round instead, and both begin anew:
 *
 *     (4) A line or place that rooted rounds since whole round n use is overwritten behind whole round n + 1 at the
 *         earliest; whoever has left that knows by (1) that all have entered it, and so have read what was there.
 *     (5) What stands in a line from before can not be taken for a new message: numbers do not come back.
 *
 * tests/model/rounds.pml and rooted.pml check all of this.
 *
 * Disagreement. What ranks have to agree on makes a fingerprint. In a whole round each compares those of all others. In a
 * rooted round receivers compare with the root; so that nothing is missed, each rank folds the fingerprints of its
 * rooted rounds into a history, which takes part in the fingerprint of every later round, up to the next whole
 * one. A receiver that has found the root's fingerprint so knows that both have used the same places, and never reads
 * anything else than what was meant. Histories that no whole round has compared the host compares at the end of
 * the call (mismatch.h). Ranks that wait for each other, because they take different ones for the root, are
 * found by the deadlock look.
 *
 * A collective of a few bytes is one round with the data in flags or stages. A longer one is two: behind
 * the first whole round, all have entered, and windows of peers may be read and written; behind the second, all have done
 * with that.
 *
 * What a rank has pushed into peers' windows before it entered takes part as well. In two rounds it does by (2). In
 * one, a peer may have sent its data before: so flags tell who has pushed since its last collective on the
 * channel, and if anybody has, the round is repeated, with what is in the windows then. All see the same flags, so all
 * repeat it or none does. A root that does not wait cannot know what others will have pushed. So rooted rounds are for
 * programs whose kernels reach into slices of peers by collectives alone (pld_program.collectives_only): nobody pushes there,
 * nor could see in another way that ranks have gone on before others came.
 *
 * So no rank's window is touched outside of its own call, which is the whole of the rules of
 * entry and exit, and why a window can be used again at once (pld_collectives.h). */
#ifndef COLLECTIVE_CHANNEL_H
#define COLLECTIVE_CHANNEL_H

#include "sched/sched.h"

#include <pypto/program.h>

/* ---- tensors ---- */

static inline int64_t tensor_elements(const pld_tensor *tensor)
{
    int64_t count = 1;
    for (int32_t d = 0; d < tensor->ndim; ++d)
        count *= tensor->shape[d];
    return count;
}

/* Row-major without gaps, or empty. */
static inline bool tensor_is_packed(const pld_tensor *tensor)
{
    if (tensor_elements(tensor) == 0)
        return true;
    int64_t stride = 1;
    for (int32_t d = tensor->ndim - 1; d >= 0; --d) {
        if (tensor->shape[d] != 1 && tensor->stride[d] != stride)
            return false;
        stride *= tensor->shape[d];
    }
    return true;
}

/* ---- layout, for the host ---- */

/* Channels of a buffer of `bytes` that `ranks` ranks share. */
int32_t channel_count(pld_collectives collectives, int64_t bytes, int32_t ranks);
/* Bytes of a window and the channels behind it. False: more than can be counted. */
bool channel_block(int64_t window_bytes, int32_t channels, int32_t ranks, int64_t *block);

/* ---- what a rank has done, for the lint ---- */

struct channel_record;
/* Of a rank's part of a channel; `window` is the first byte of its slice of the window. */
const struct channel_record *channel_record_at(const char *window, int64_t bytes, int32_t ranks,
                                               int32_t channel);

/* ---- use, for the collectives ---- */

#define FLAG_MESSAGE 48
#define STAGE_BYTES 8192

/* Of a channel between two whole rounds: rooted rounds, and bytes of their messages that are longer than a flag's. */
#define ROOTED_ROUNDS 32
#define ROOTED_BYTES 16384

/* The collectives, as reports name them. */
typedef enum collective_kind {
    COLLECTIVE_BARRIER = 1,
    COLLECTIVE_ALLREDUCE,
    COLLECTIVE_BROADCAST,
    COLLECTIVE_ALLGATHER,
    COLLECTIVE_REDUCE_SCATTER,
    COLLECTIVE_ALL_TO_ALL,
    COLLECTIVE_ALL_TO_ALL_V
} collective_kind;

/* "allreduce" and so on, also for a number that is none of them. */
const char *collective_name(int32_t kind);

/* What all ranks of a domain have to agree on. No padding: it is hashed and compared as bytes. */
typedef struct collective_call {
    uint8_t kind;
    uint8_t op;   /* pld_reduce_op */
    uint8_t mode; /* pld_mode */
    uint8_t dtype;
    int32_t root;
    int64_t count;  /* elements that each rank contributes to each */
    int64_t run;    /* of them lie side by side: count, but for views that count in part */
    int64_t offset; /* of the target in its buffer */
    int32_t buffer; /* the target's; -1: none */
    int32_t ranks;
} collective_call;

/* A collective that a rank has called, and where. */
typedef struct channel_entry {
    collective_call what;
    int32_t function;
    int32_t line;
} channel_entry;

typedef struct channel_record {
    _Alignas(CACHE_LINE) channel_entry now; /* or the latest */
    uint64_t rounds;                        /* whole ones so far */
    uint32_t busy : 1;                      /* a core of this rank is inside */
    uint32_t whole : 1;                     /* in a whole round */
    uint32_t pushes : 30; /* of this rank into windows of peers when it entered last */
    int32_t rooted;       /* rooted rounds since the latest whole one */
    _Alignas(CACHE_LINE) uint64_t rooted_rounds; /* all so far */
    uint64_t history; /* fingerprints of those since; 0: there are none */
    int64_t staged;   /* bytes of the rooted stage in use */
    /* all_to_all_v: a count that was more than fits. */
    int32_t clamped_line; /* 0: none */
    int32_t clamped_rank;
    int32_t clamped_count;
    int32_t clamped_to;
    channel_entry entries[ROOTED_ROUNDS];
} channel_record;

typedef struct flag_line {
    _Alignas(CACHE_LINE) _Atomic uint64_t number; /* of the round: the rest of the line is there */
    uint64_t fingerprint;
    unsigned char message[FLAG_MESSAGE];
} flag_line;

/* A rank's part in a collective, while it lasts. */
typedef struct collective {
    pld_core *core;
    const pld_comm *comm;
    const pld_window *window; /* the signal's */
    int64_t at;               /* of the channel, from the window's first byte */
    channel_record *record;
    uint64_t fingerprint; /* of the call */
    uint64_t told;        /* of the call and the history before it */
    uint64_t round;
    bool pushed; /* this rank has, since its last collective here */
    bool again;  /* some rank has: see round_again() */
} collective;

/* Begins a collective on a channel: checks the signal, tells what this rank does. */
void collective_enter(collective *c, pld_core *core, const pld_tensor *signal,
                      const collective_call *call);
void collective_leave(collective *c);

/* A whole round in three steps. Between round_begin() and round_end() each peer's flag is written once, in any
 * order. `bytes` is FLAG_MESSAGE at most; the message's memory may be used again at once. */
void round_begin(collective *c);
void round_post(collective *c, int32_t peer, const void *message, int64_t bytes);
void round_end(collective *c);
/* Whole rounds: every peer gets the same message, which may be empty; peer p gets part p of `parts`; the own stage
 * is filled, and the message is empty; the same with the parts of all peers. */
void round_all(collective *c, const void *message, int64_t bytes);
void round_parts(collective *c, const char *parts, int64_t bytes);
void round_stage_all(collective *c, const void *data, int64_t bytes);
void round_stage_parts(collective *c, const char *parts, int64_t bytes);

/* Whether the round of a collective in which a root has so many bytes for all others may be a rooted one. The same
 * on all ranks. */
bool rooted_fits(const collective *c, int64_t bytes);
/* The root's part in it, and that of the others: where the root's data is, until the next round. */
void rooted_send(collective *c, const void *data, int64_t bytes);
const void *rooted_receive(collective *c, int32_t root, int64_t bytes);

/* Behind the first round of a collective that sends its data in it: whether a rank has pushed data into windows of
 * peers before it entered, so that the round has to be repeated, once. */
bool round_again(collective *c);

/* Behind round_end(), until the next round ends: what a peer has sent in it. */
const void *round_message(const collective *c, int32_t peer);
/* A rank's stage of this round: the own one is filled between round_begin() and round_end(), those of peers
 * are read behind it, until the next round ends. */
char *round_stage(const collective *c, int32_t rank);
/* Fills the own one with part p of `parts`, `bytes` long, for each peer p; nobody reads a part for me. */
void fill_stage_parts(const collective *c, const char *parts, int64_t bytes);

/* The address in rank `peer`'s slice that corresponds to `own` in mine. */
static inline char *peer_address(const pld_comm *comm, const pld_window *window, const char *own,
                                 int32_t peer)
{
    return window->device_base + window->stride * comm->devices[peer] + (own - window->base);
}

#endif
