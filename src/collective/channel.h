/* Channels: what the ranks of a domain tell each other in a collective.
 *
 * A channel belongs to the signal that the user passes, and lies behind the signal's window buffer, in each
 * rank's slice of the symmetric heap (so it is zero when the window is allocated). Rank r's part of it:
 *
 *     record          what r is doing, for reports, and the number of the latest round
 *     flags[2][P]     64-byte lines; flags[n % 2][q] is written by rank q in round n: the number of the
 *                     round, a fingerprint of the collective, and up to 56 bytes of message
 *     stage[2]        8 KiB each; stage[n % 2] is filled by r before round n, read by the others behind it
 *
 * Round. The one primitive of all collectives: each rank writes its flag into every other rank's part, then
 * waits until every other rank's flag of this round is in its own part. So:
 *
 *     (1) No rank leaves round n before all ranks have entered it.
 *     (2) What a rank did before it entered round n is visible to those that have left it.
 *     (3) Flags and stages of round n may be overwritten in round n + 2, because whoever enters that has left
 *         round n + 1, which by (1) all have entered, and so all have left round n and read what they needed.
 *
 * (2) holds because a flag is written by a seq_cst read-modify-write behind the rank's plain accesses, and found
 * by a seq_cst load; (1) needs that no rank skips a round, which the fingerprint checks. Numbers of rounds
 * travel as 16 bits: by (3) a flag is at most two rounds old. tests/model/rounds.pml checks all of this.
 *
 * A collective of a few bytes is one round with the data in flags or stages. A longer one is two: behind
 * the first, all have entered, and windows of peers may be read and written; behind the second, all have done
 * with that.
 *
 * What a rank has pushed into peers' windows before it entered takes part as well. In two rounds it does by (2). In
 * one, a peer may have sent its data before: so flags tell who has pushed since its last collective on the
 * channel, and if anybody has, the round is repeated, with what is in the windows then. All see the same flags, so all
 * repeat it or none does.
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

#define FLAG_MESSAGE 56
#define STAGE_BYTES 8192

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
    int64_t offset; /* of the target in its buffer */
    int32_t buffer; /* the target's; -1: none */
    int32_t ranks;
} collective_call;

typedef struct channel_record {
    _Alignas(CACHE_LINE) collective_call what;
    int32_t function; /* where */
    int32_t line;
    uint32_t rounds;      /* so far */
    uint32_t busy : 1;    /* a core of this rank is inside */
    uint32_t pushes : 31; /* of this rank into windows of peers when it entered last */
    /* all_to_all_v: a count that was more than fits. */
    int32_t clamped_line; /* 0: none */
    int32_t clamped_rank;
    int32_t clamped_count;
    int32_t clamped_to;
} channel_record;

typedef struct flag_line {
    _Alignas(CACHE_LINE) _Atomic uint64_t word;
    unsigned char message[FLAG_MESSAGE];
} flag_line;

/* A rank's part in a collective, while it lasts. */
typedef struct collective {
    pld_core *core;
    const pld_comm *comm;
    const pld_window *window; /* the signal's */
    int64_t at;               /* of the channel, from the window's first byte */
    channel_record *record;
    uint64_t fingerprint;
    uint32_t round;
    bool pushed; /* this rank has, since its last collective here */
    bool again;  /* some rank has: see round_again() */
} collective;

/* Begins a collective on a channel: checks the signal, tells what this rank does. */
void collective_enter(collective *c, pld_core *core, const pld_tensor *signal,
                      const collective_call *call);
void collective_leave(collective *c);

/* A round in three steps. Between round_begin() and round_end() each peer's flag is written once, in any
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
