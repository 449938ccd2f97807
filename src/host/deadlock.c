/* Deadlocks: whether there is one, and what is said about it.
 *
 * Whether: the epochs of all ranks are read, each must say "parked"; then every wait that they have
 * published must be false and everything posted taken; then the epochs must be the same again. So there
 * was a moment, between the last of the first readings and the first of the second ones, at which all
 * were parked and all of it was true. Nothing can ever change then, because only ranks (and the host,
 * which is here) change anything. tests/model/sleep.pml checks this exhaustively.
 *
 * Why: each rank keeps an account of the cells that it has notified and waited for in this call
 * (segment.h, signal_entry). From these follows who has notified the cells waited for, who has not,
 * which notifies went to cells that nobody waits for, and by that who waits for whom: in a cycle, for a
 * rank that has ended, or only behind those. The accounts are evidence, not proof: a program may mean
 * something else. Called by call.c with the set's lock held.
 *
 * A rank in a collective names the rank that it waits for. When that one has ended its part of the call, or waits in
 * a collective on another signal, the two do not call the same collectives, and the error says so. */
#include "host/report.h"
#include "sched/describe.h"
#include "sched/sched.h"

#include <string.h>

/* ---- whether ---- */

/* Whether nothing that a parked rank waits for has come. */
static bool rank_is_stuck(const pypto_worker *w, int32_t rank)
{
    const rank_header *h = segment_rank(&w->seg, rank);
    const uint32_t waits = atomic_load_explicit(&h->wait_count, memory_order_acquire);
    if (waits > WAIT_SLOTS)
        return false; /* more than can be looked at: not provable */
    const uint64_t posted = atomic_load_explicit(&h->posted, memory_order_seq_cst);
    const uint64_t taken = atomic_load_explicit(&h->taken, memory_order_acquire);
    const uint64_t completed = atomic_load_explicit(&h->completed, memory_order_seq_cst);
    if ((posted != taken && taken - completed < DONE_WINDOW) || (waits == 0 && taken != completed))
        return false; /* it has not woken up for its work yet */
    for (uint32_t i = 0; i < waits; ++i) {
        wait_entry wait;
        wait_copy(&wait, &h->waits[i]);
        if (wait_satisfied(&w->seg, &wait))
            return false;
    }
    return true;
}

static uint64_t epoch_of(const pypto_worker *w, int32_t rank)
{
    return atomic_load_explicit(&segment_rank(&w->seg, rank)->epoch, memory_order_acquire);
}

static bool all_stuck(const pypto_worker *w)
{
    uint64_t before[PYPTO_MAX_RANKS];
    if (atomic_load_explicit(&w->seg.set->running, memory_order_seq_cst) != 0)
        return false;
    for (int32_t rank = 0; rank < w->device_count; ++rank) {
        before[rank] = epoch_of(w, rank);
        if (!epoch_is_parked(before[rank]))
            return false;
    }
    for (int32_t rank = 0; rank < w->device_count; ++rank)
        if (!rank_is_stuck(w, rank))
            return false;
    for (int32_t rank = 0; rank < w->device_count; ++rank)
        if (epoch_of(w, rank) != before[rank])
            return false;
    return atomic_load_explicit(&w->seg.set->outstanding, memory_order_seq_cst) > 0;
}

/* ---- the accounts ---- */

typedef struct look {
    pypto_worker *w;
    uint64_t call;
    uint64_t blocked;                   /* ranks, as a mask */
    wait_entry wait[PYPTO_MAX_RANKS];   /* of a blocked rank: the first it published */
    uint64_t suspects[PYPTO_MAX_RANKS]; /* of a blocked rank: who could satisfy it */
    bool incomplete;                    /* some notifies are not on record */
} look;

static uint64_t bit(int32_t rank)
{
    return (uint64_t)1 << rank;
}

static bool waits_for_signal(const wait_entry *wait)
{
    return wait->kind == WAIT_SIGNAL || wait->kind == WAIT_DEFERRED;
}

static const signal_entry *account(const look *l, int32_t rank, int64_t cell_offset)
{
    const signal_entry *e = segment_signal(segment_rank(&l->w->seg, rank), cell_offset, l->call);
    return e != NULL && e->call == l->call && e->cell_offset == cell_offset ? e : NULL;
}

/* Who has notified a cell. */
static uint64_t senders_of(const look *l, int64_t cell_offset)
{
    uint64_t senders = 0;
    for (int32_t rank = 0; rank < l->w->device_count; ++rank) {
        const signal_entry *e = account(l, rank, cell_offset);
        if (e != NULL && e->notifies > 0)
            senders |= bit(rank);
    }
    return senders;
}

static int32_t rank_in(uint64_t domain, int32_t device)
{
    return __builtin_popcountll(domain & (bit(device) - 1));
}

static int32_t device_in(uint64_t domain, int64_t rank)
{
    for (int32_t device = 0; device < PYPTO_MAX_RANKS; ++device)
        if ((domain >> device & 1) != 0 && rank-- == 0)
            return device;
    return -1;
}

/* Many programs give each sender a cell of its own, indexed by the sender's rank. True when all
 * notifies through this buffer have been like that; *dim tells in which dimension. */
static bool indexed_by_sender(const look *l, const wait_entry *wait, int32_t *dim)
{
    for (*dim = 0; *dim < wait->ndim; ++*dim) {
        int64_t seen = 0, like_that = 0;
        for (int32_t rank = 0; rank < l->w->device_count; ++rank) {
            const rank_header *h = segment_rank(&l->w->seg, rank);
            for (int32_t i = 0; i < SIGNAL_SLOTS; ++i) {
                const signal_entry *e = &h->signals[i];
                if (e->call != l->call || e->buffer != wait->buffer || e->notifies == 0)
                    continue;
                ++seen;
                like_that += e->ndim == wait->ndim && e->cell[*dim] == rank_in(wait->devices, rank);
            }
        }
        if (seen > 0 && seen == like_that)
            return true;
    }
    return false;
}

/* Who could still satisfy a wait: whose cell it is by the look of it, else who has not notified it
 * yet, else anybody. */
static uint64_t suspects_of(const look *l, int32_t rank, const wait_entry *wait)
{
    if (wait->kind == WAIT_DISPATCH || wait->kind == WAIT_COLLECTIVE)
        return bit(wait->device);
    int32_t dim;
    if (indexed_by_sender(l, wait, &dim)) {
        const int32_t device = device_in(wait->devices, wait->cell[dim]);
        if (device >= 0 && device != rank)
            return bit(device);
    }
    const uint64_t others = wait->devices & ~bit(rank);
    const uint64_t absent = others & ~senders_of(l, wait->cell_offset);
    return absent != 0 ? absent : others != 0 ? others : wait->devices;
}

static void look_at(look *l, pypto_worker *w, uint64_t call)
{
    *l = (look){.w = w, .call = call};
    for (int32_t rank = 0; rank < w->device_count; ++rank) {
        const rank_header *h = segment_rank(&w->seg, rank);
        l->incomplete |= atomic_load_explicit(&h->signals_lost, memory_order_relaxed) == call;
        if (atomic_load_explicit(&h->wait_count, memory_order_relaxed) == 0)
            continue;
        l->blocked |= bit(rank);
        wait_copy(&l->wait[rank], &h->waits[0]);
    }
    for (int32_t rank = 0; rank < w->device_count; ++rank)
        if ((l->blocked & bit(rank)) != 0)
            l->suspects[rank] = suspects_of(l, rank, &l->wait[rank]);
}

/* ---- words ---- */

static void note(pypto_status *status, text *line)
{
    if (!line->failed)
        diag_note(status, "%s", line->bytes);
    text_free(line);
}

static void add_cell(text *out, const look *l, int32_t program, int32_t buffer, int32_t ndim,
                     const int64_t *cell, int32_t owner)
{
    char list[LIST_TEXT];
    text_printf(out, "'%s'%s of ", report_buffer(l->w, program, buffer),
                describe_list(list, sizeof list, cell, ndim));
    report_rank(out, l->w, owner);
}

static void add_place(text *out, const look *l, const signal_entry *e)
{
    const pld_function *f = report_function(l->w, e->program, e->function);
    if (f != NULL)
        text_printf(out, " at %s:%d", f->file, e->line);
}

static void add_ranks(text *out, const look *l, uint64_t ranks)
{
    const char *separator = "";
    for (int32_t rank = 0; rank < l->w->device_count; ++rank) {
        if ((ranks & bit(rank)) == 0)
            continue;
        text_add(out, separator);
        report_rank(out, l->w, rank);
        separator = ", ";
    }
}

/* Who has notified the cell that a rank waits for. */
static void note_history(const look *l, int32_t rank, pypto_status *status)
{
    const wait_entry *wait = &l->wait[rank];
    if (!waits_for_signal(wait))
        return;
    text line = {0};
    text_add(&line, "  ");
    add_cell(&line, l, wait->program, wait->buffer, wait->ndim, wait->cell, rank);
    const uint64_t senders = senders_of(l, wait->cell_offset);
    if (senders == 0)
        text_printf(&line, ": %s has notified it", l->incomplete ? "perhaps nobody" : "nobody");
    const char *separator = ": notified by ";
    for (int32_t sender = 0; sender < l->w->device_count; ++sender) {
        const signal_entry *e = account(l, sender, wait->cell_offset);
        if (e == NULL || e->notifies == 0)
            continue;
        text_add(&line, separator);
        report_rank(&line, l->w, sender);
        text_printf(&line, " (%lld in %lld, last", (long long)e->sum, (long long)e->notifies);
        add_place(&line, l, e);
        text_add(&line, ")");
        separator = ", ";
    }
    const uint64_t absent = wait->devices & ~senders & ~bit(rank);
    if (senders != 0 && absent != 0) {
        text_add(&line, "; not by ");
        add_ranks(&line, l, absent);
    }
    const _Atomic int32_t *cell =
        (const _Atomic int32_t *)(const void *)(l->w->seg.base + wait->cell_offset);
    if (wait->cmp == PLD_EQ && atomic_load_explicit(cell, memory_order_relaxed) > wait->expected &&
        senders != 0)
        text_printf(&line,
                    "; it is past %d, and a wait for == misses a value that is added to: use "
                    "WaitCmp.Ge",
                    wait->expected);
    note(status, &line);
}

static bool is_awaited(const look *l, const signal_entry *e)
{
    const rank_header *owner = segment_rank(&l->w->seg, e->device);
    const uint32_t count = atomic_load_explicit(&owner->wait_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count && i < WAIT_SLOTS; ++i)
        if (owner->waits[i].cell_offset == e->cell_offset)
            return true;
    const signal_entry *own = account(l, e->device, e->cell_offset);
    return own != NULL && own->waits > 0;
}

static bool is_waited_through(const look *l, int32_t buffer)
{
    for (int32_t rank = 0; rank < l->w->device_count; ++rank)
        if ((l->blocked & bit(rank)) != 0 && waits_for_signal(&l->wait[rank]) &&
            l->wait[rank].buffer == buffer)
            return true;
    return false;
}

/* Notifies through the windows waited for that went to cells for which nobody has waited. */
#define NEAR_MISSES 4

static void note_near_misses(const look *l, pypto_status *status)
{
    int32_t noted = 0;
    for (int32_t rank = 0; rank < l->w->device_count; ++rank) {
        const rank_header *h = segment_rank(&l->w->seg, rank);
        for (int32_t i = 0; i < SIGNAL_SLOTS && noted < NEAR_MISSES; ++i) {
            const signal_entry *e = &h->signals[i];
            if (e->call != l->call || e->notifies == 0 || is_awaited(l, e) ||
                !is_waited_through(l, e->buffer))
                continue;
            text line = {0};
            text_add(&line, "  ");
            report_rank(&line, l->w, rank);
            text_add(&line, " has notified ");
            add_cell(&line, l, e->program, e->buffer, e->ndim, e->cell, e->device);
            add_place(&line, l, e);
            text_add(&line, ", and nobody waits for that cell");
            note(status, &line);
            ++noted;
        }
    }
}

/* The rank that another one waits for: one that has ended if there is one. -1: itself alone. */
static int32_t next_of(const look *l, int32_t rank)
{
    const uint64_t ended = l->suspects[rank] & ~l->blocked;
    const uint64_t next = ended != 0 ? ended : l->suspects[rank];
    return next == 0 ? -1 : __builtin_ctzll(next);
}

static void note_end(const look *l, int32_t rank, int32_t ended, pypto_status *status)
{
    text line = {0};
    text_add(&line, "  ");
    report_rank(&line, l->w, rank);
    text_add(&line, " waits for ");
    report_rank(&line, l->w, ended);
    text_add(&line, ", which has ended its part of the call");
    note(status, &line);
}

static void note_cycle(const look *l, int32_t start, pypto_status *status)
{
    text line = {0};
    text_add(&line, "  cycle: ");
    report_rank(&line, l->w, start);
    int32_t rank = start;
    do {
        rank = next_of(l, rank);
        text_add(&line, " -> ");
        report_rank(&line, l->w, rank);
    } while (rank != start);
    note(status, &line);
}

/* Who waits for whom: cycles, ranks that wait for ended ones, and those behind them. */
static void note_causes(const look *l, pypto_status *status)
{
    uint64_t behind = 0, told = 0;
    for (int32_t rank = 0; rank < l->w->device_count; ++rank) {
        if ((l->blocked & bit(rank)) == 0 || (told & bit(rank)) != 0)
            continue;
        uint64_t path = 0;
        int32_t at = rank;
        while (at >= 0 && (l->blocked & bit(at)) != 0 && (path & bit(at)) == 0) {
            path |= bit(at);
            at = next_of(l, at);
        }
        if (at < 0)
            continue;
        if ((l->blocked & bit(at)) == 0) {
            if (next_of(l, rank) == at)
                note_end(l, rank, at, status);
            else
                behind |= bit(rank);
            continue;
        }
        /* `at` is on a cycle. */
        if ((told & bit(at)) == 0) {
            int32_t on = at;
            do {
                told |= bit(on);
                on = next_of(l, on);
            } while (on != at);
            note_cycle(l, at, status);
        }
        if ((told & bit(rank)) == 0)
            behind |= bit(rank);
    }
    if (behind != 0) {
        text line = {0};
        text_add(&line, "  held up behind these: ");
        add_ranks(&line, l, behind);
        note(status, &line);
    }
}

/* ---- collectives ---- */

/* A rank in a collective that waits for one which will not join. -1: there is none. */
static int32_t left_alone(const look *l)
{
    for (int32_t rank = 0; rank < l->w->device_count; ++rank) {
        const wait_entry *wait = &l->wait[rank];
        if ((l->blocked & bit(rank)) == 0 || wait->kind != WAIT_COLLECTIVE)
            continue;
        if ((l->blocked & bit(wait->device)) == 0)
            return rank;
        const wait_entry *other = &l->wait[wait->device];
        if (other->kind == WAIT_COLLECTIVE &&
            (other->buffer != wait->buffer || other->cell[0] != wait->cell[0]))
            return rank;
    }
    return -1;
}

static void add_collective(text *out, const look *l, int32_t rank)
{
    const wait_entry *wait = &l->wait[rank];
    const pld_function *f = report_function(l->w, wait->program, wait->function);
    report_rank(out, l->w, rank);
    text_printf(out, " is in %s on signal '%s'", collective_name(wait->cmp),
                report_buffer(l->w, wait->program, wait->buffer));
    if (f != NULL)
        text_printf(out, " at %s:%d", f->file, wait->line);
}

static void add_headline(const look *l, pypto_span first, pypto_status *status)
{
    const int32_t rank = left_alone(l);
    if (rank < 0) {
        diag_add(status, DIAG_DEADLOCK, first,
                 "check that each wait has a notify to the same cell of this rank, sent before the "
                 "sender waits itself",
                 "deadlock: %d of %d ranks wait for a signal and no work can run",
                 __builtin_popcountll(l->blocked), l->w->device_count);
        return;
    }
    const wait_entry *wait = &l->wait[rank];
    text line = {0};
    add_collective(&line, l, rank);
    text_add(&line, ", but ");
    if ((l->blocked & bit(wait->device)) != 0) {
        add_collective(&line, l, wait->device);
    } else {
        report_rank(&line, l->w, wait->device);
        text_add(&line, " has ended its part of the call");
    }
    diag_add(
        status, DIAG_COLLECTIVE_MISMATCH,
        report_span(l->w, wait->program, wait->function, wait->line),
        "every rank of a domain calls the same collectives in the same order: look for a branch "
        "or loop that comes out differently",
        "ranks disagree about a collective: %s",
        line.failed ? "one of them waits for ever" : line.bytes);
    text_free(&line);
}

pypto_status report_deadlock(pypto_worker *w, uint64_t call)
{
    if (!all_stuck(w)) {
        /* A rank whose wait is satisfied has been rung by whoever satisfied it; ringing once more
         * is harmless and mends what a lost ring would break. */
        segment_ring_all(&w->seg);
        return STATUS_OK;
    }
    look l;
    look_at(&l, w, call);
    pypto_span first = SPAN_NONE;
    if (l.blocked != 0) {
        const wait_entry *wait = &l.wait[__builtin_ctzll(l.blocked)];
        first = report_span(w, wait->program, wait->function, wait->line);
    }
    pypto_status status = STATUS_OK;
    add_headline(&l, first, &status);
    report_states(w, call, &status);
    for (int32_t rank = 0; rank < w->device_count; ++rank)
        if ((l.blocked & bit(rank)) != 0)
            note_history(&l, rank, &status);
    note_near_misses(&l, &status);
    note_causes(&l, &status);
    return status;
}
