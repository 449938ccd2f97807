/* The collectives that only move data: barrier, broadcast, allgather, all_to_all, all_to_all_v.
 *
 * A few bytes go through the flags, a few more through stages, in one round. Of more, a rank reads the part that
 * it needs from where the peer has it, between two rounds: the reader's own memory is what gets written, so that
 * no line that a peer has read has to be taken back from it. A source in memory that peers cannot see (a tensor
 * made by the kernel) is pushed into their windows instead. */
#include "collective/operands.h"

#include "sched/describe.h"

#include <string.h>

void(pld_barrier)(pld_core *core, const pld_tensor *signal)
{
    const pld_comm *comm = task_need_window(core, signal)->comm;
    const collective_call call = {.kind = COLLECTIVE_BARRIER, .buffer = -1, .ranks = comm->nranks};
    collective c;
    collective_enter(&c, core, signal, &call);
    round_all(&c, NULL, 0);
    collective_leave(&c);
}

void(pld_broadcast)(pld_core *core, const pld_tensor *target, const pld_tensor *signal,
                    int64_t root)
{
    need_window(core, "target", target, signal);
    const pld_comm *comm = signal->window->comm;
    if (root < 0 || root >= comm->nranks)
        task_fail(core, DIAG_BAD_COLLECTIVE, "root (%lld) must be a valid rank in [0, %d)",
                  (long long)root, comm->nranks);
    const int64_t count = tensor_elements(target);
    const int64_t bytes = pypto_dtype_size((pypto_dtype)target->dtype, count);
    collective_call call = describe_target(COLLECTIVE_BROADCAST, comm, target, count);
    call.root = (int32_t)root;
    const int32_t from = (int32_t)root;
    const bool receives = comm->rank != from;
    collective c;
    collective_enter(&c, core, signal, &call);
    if (rooted_fits(&c, bytes)) {
        if (receives)
            memcpy(target->data, rooted_receive(&c, from, bytes), (size_t)bytes);
        else
            rooted_send(&c, target->data, bytes);
    } else if (bytes <= FLAG_MESSAGE) {
        do
            round_all(&c, target->data, receives ? 0 : bytes);
        while (round_again(&c));
        if (receives)
            memcpy(target->data, round_message(&c, from), (size_t)bytes);
    } else if (bytes <= STAGE_BYTES) {
        do
            round_stage_all(&c, target->data, receives ? 0 : bytes);
        while (round_again(&c));
        if (receives)
            memcpy(target->data, round_stage(&c, from), (size_t)bytes);
    } else {
        round_all(&c, NULL, 0);
        if (receives)
            copy_bytes(core, target->data, peer_address(comm, target->window, target->data, from),
                       bytes);
        round_all(&c, NULL, 0);
    }
    collective_leave(&c);
}

/* ---- exchanges ---- */

/* What a rank tells its peers when it does not send the data itself. */
typedef struct whereabouts {
    int64_t source; /* offset in the segment; -1: where peers cannot look */
    int32_t count;  /* all_to_all_v: rows that mean something */
    int32_t reserved;
} whereabouts;

/* Room for data in a message behind the whereabouts. */
#define SHORT_PART (FLAG_MESSAGE - (int64_t)sizeof(whereabouts))

typedef struct exchange {
    const char *source;
    int64_t part;             /* bytes that each rank gets from each */
    bool scatters;            /* part p is for rank p; otherwise all get the same one */
    char *target;             /* P parts; part s comes from rank s */
    const pld_window *window; /* the target's */
    const int32_t *send;      /* counts: one for each rank, or NULL */
    int32_t *received;        /* one from each rank */
} exchange;

static const char *part_for(const exchange *x, int32_t peer)
{
    return x->source + (x->scatters ? x->part * peer : 0);
}

static int64_t offset_of(const segment *seg, const char *source)
{
    return source >= seg->base && source < seg->base + seg->bytes ? source - seg->base : -1;
}

/* Part of the first round: the whereabouts for one peer, and its data if it is short. */
static void post_part(collective *c, const exchange *x, int32_t peer)
{
    unsigned char message[FLAG_MESSAGE];
    const whereabouts told = {.source = offset_of(&c->core->owner->seg, x->source),
                              .count = x->send != NULL ? x->send[peer] : 0};
    memcpy(message, &told, sizeof told);
    int64_t bytes = sizeof told;
    if (x->part <= SHORT_PART) {
        memcpy(message + bytes, part_for(x, peer), (size_t)x->part);
        bytes += x->part;
    }
    round_post(c, peer, message, bytes);
}

/* The part that `peer` has for this rank goes to its place. */
static void take_part(const collective *c, const exchange *x, int32_t peer, int64_t staged)
{
    const char *message = round_message(c, peer);
    char *to = x->target + x->part * peer;
    const int64_t at = x->scatters ? x->part * c->comm->rank : 0;
    whereabouts told;
    memcpy(&told, message, sizeof told);
    if (x->received != NULL)
        x->received[peer] = told.count;
    if (x->part <= SHORT_PART)
        memcpy(to, message + sizeof told, (size_t)x->part);
    else if (staged > 0)
        memcpy(to, round_stage(c, peer) + at, (size_t)x->part);
    else if (told.source >= 0)
        copy_bytes(c->core, to, c->core->owner->seg.base + told.source + at, x->part);
}

static void push_parts(const collective *c, const exchange *x)
{
    const int32_t ranks = c->comm->nranks, me = c->comm->rank;
    for (int32_t i = 1; i < ranks; ++i) {
        const int32_t peer = (me + i) % ranks;
        char *to = peer_address(c->comm, x->window, x->target + x->part * me, peer);
        copy_bytes(c->core, to, part_for(x, peer), x->part);
    }
}

static void run_exchange(collective *c, const exchange *x)
{
    const int32_t ranks = c->comm->nranks, me = c->comm->rank;
    const int64_t total = x->scatters ? x->part * ranks : x->part;
    const int64_t staged = x->part > SHORT_PART && total <= STAGE_BYTES ? total : 0;
    const bool by_address = x->part > SHORT_PART && staged == 0;
    do {
        round_begin(c);
        if (staged > 0 && x->scatters)
            fill_stage_parts(c, x->source, x->part);
        else if (staged > 0)
            memcpy(round_stage(c, me), x->source, (size_t)staged);
        for (int32_t i = 1; i < ranks; ++i)
            post_part(c, x, (me + i) % ranks);
        round_end(c);
    } while (!by_address && round_again(c));
    copy_bytes(c->core, x->target + x->part * me, part_for(x, me), x->part);
    if (x->received != NULL)
        x->received[me] = x->send[me];
    for (int32_t i = 1; i < ranks; ++i)
        take_part(c, x, (me + i) % ranks, staged);
    if (!by_address)
        return;
    if (offset_of(&c->core->owner->seg, x->source) < 0)
        push_parts(c, x);
    round_all(c, NULL, 0);
}

static void need_same_parts(pld_core *core, const char *what, int64_t has, int64_t needs)
{
    if (has != needs)
        task_fail(core, DIAG_BAD_COLLECTIVE, "%s has %lld bytes, the target's part of a rank %lld",
                  what, (long long)has, (long long)needs);
}

static int64_t elements_in(const pld_tensor *target, int32_t ranks)
{
    return tensor_elements(target) / ranks;
}

void(pld_allgather)(pld_core *core, const pld_tensor *local, const pld_tensor *target,
                    const pld_tensor *signal)
{
    need_window(core, "target", target, signal);
    need_pair(core, local, target);
    const pld_comm *comm = signal->window->comm;
    const int64_t part = need_parts(core, "target", target, comm->nranks);
    need_same_parts(core, "the local data",
                    pypto_dtype_size((pypto_dtype)local->dtype, tensor_elements(local)), part);
    const collective_call call =
        describe_target(COLLECTIVE_ALLGATHER, comm, target, elements_in(target, comm->nranks));
    const exchange x = {
        .source = local->data, .part = part, .target = target->data, .window = target->window};
    collective c;
    collective_enter(&c, core, signal, &call);
    run_exchange(&c, &x);
    collective_leave(&c);
}

void(pld_all_to_all)(pld_core *core, const pld_tensor *input, const pld_tensor *target,
                     const pld_tensor *signal)
{
    need_window(core, "target", target, signal);
    need_pair(core, input, target);
    const pld_comm *comm = signal->window->comm;
    const int64_t part = need_parts(core, "target", target, comm->nranks);
    need_same_parts(core, "the input's part of a rank",
                    need_parts(core, "input", input, comm->nranks), part);
    const collective_call call =
        describe_target(COLLECTIVE_ALL_TO_ALL, comm, target, elements_in(target, comm->nranks));
    const exchange x = {.source = input->data,
                        .part = part,
                        .scatters = true,
                        .target = target->data,
                        .window = target->window};
    collective c;
    collective_enter(&c, core, signal, &call);
    run_exchange(&c, &x);
    collective_leave(&c);
}

/* The counts of a vector of P cells. */
static void read_counts(pld_core *core, const pld_tensor *counts, int32_t ranks, int32_t *out)
{
    char name[NAME_TEXT], shape[LIST_TEXT];
    if (counts->dtype != PYPTO_INT32 || counts->ndim < 1 || counts->shape[0] < ranks)
        task_fail(core, DIAG_BAD_COLLECTIVE,
                  "send_counts %s of shape %s needs an INT32 count for each of %d ranks",
                  task_describe(core, counts, name, sizeof name),
                  describe_list(shape, sizeof shape, counts->shape, counts->ndim), ranks);
    for (int32_t p = 0; p < ranks; ++p) {
        memcpy(&out[p], counts->data + counts->stride[0] * p * (int64_t)sizeof(int32_t),
               sizeof(int32_t));
        if (out[p] < 0)
            task_fail(core, DIAG_BAD_COLLECTIVE,
                      "send_counts[%d] is %d: a count of rows cannot be negative", p, out[p]);
    }
}

/* A count of more rows than a part has counts those; the lint tells of it. */
static void clamp_counts(const collective *c, int32_t *counts, int64_t rows)
{
    for (int32_t p = 0; p < c->comm->nranks; ++p) {
        if (counts[p] <= rows)
            continue;
        c->record->clamped_line = c->core->line;
        c->record->clamped_rank = p;
        c->record->clamped_count = counts[p];
        c->record->clamped_to = (int32_t)rows;
        counts[p] = (int32_t)rows;
    }
}

void(pld_all_to_all_v)(pld_core *core, const pld_tensor *input, const pld_tensor *target,
                       const pld_tensor *signal, const pld_tensor *send_counts,
                       const pld_tensor *recv_counts)
{
    char name[NAME_TEXT], shape[LIST_TEXT];
    need_window(core, "target", target, signal);
    need_window(core, "recv_counts", recv_counts, signal);
    need_pair(core, input, target);
    const pld_comm *comm = signal->window->comm;
    const int32_t ranks = comm->nranks;
    const int64_t part = need_parts(core, "target", target, ranks);
    need_same_parts(core, "the input's part of a rank", need_parts(core, "input", input, ranks),
                    part);
    if (recv_counts->dtype != PYPTO_INT32 || tensor_elements(recv_counts) < ranks)
        task_fail(core, DIAG_BAD_COLLECTIVE,
                  "recv_counts %s of shape %s needs an INT32 cell for each of %d ranks",
                  task_describe(core, recv_counts, name, sizeof name),
                  describe_list(shape, sizeof shape, recv_counts->shape, recv_counts->ndim), ranks);
    need_apart(core, recv_counts, target);
    need_apart(core, recv_counts, input);
    need_apart(core, recv_counts, send_counts);
    int32_t send[PYPTO_MAX_RANKS], received[PYPTO_MAX_RANKS];
    read_counts(core, send_counts, ranks, send);
    const collective_call call =
        describe_target(COLLECTIVE_ALL_TO_ALL_V, comm, target, elements_in(target, ranks));
    const exchange x = {.source = input->data,
                        .part = part,
                        .scatters = true,
                        .target = target->data,
                        .window = target->window,
                        .send = send,
                        .received = received};
    collective c;
    collective_enter(&c, core, signal, &call);
    clamp_counts(&c, send, target->shape[0] / ranks);
    run_exchange(&c, &x);
    for (int32_t p = 0; p < ranks; ++p)
        atomic_store_explicit((_Atomic int32_t *)(void *)recv_counts->data + p, received[p],
                              memory_order_seq_cst);
    collective_leave(&c);
}
