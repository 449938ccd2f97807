/* Deadlocks: whether there is one, and what is said about it.
 *
 * Whether: the epochs of all ranks are read, each must say "parked"; then every wait that they have
 * published must be false and everything posted taken; then the epochs must be the same again. So there
 * was a moment, between the last of the first readings and the first of the second ones, at which all
 * were parked and all of it was true. Nothing can ever change then, because only ranks (and the host,
 * which is here) change anything. tests/model/sleep.pml checks this exhaustively.
 *
 * Why: who has notified the cells waited for, who has not, which notifies went to cells that nobody waits for,
 * and who waits for whom (suspects.c): in a circle, for a rank that has ended, or only behind
 * those. Called by call.c with the set's lock held.
 *
 * A rank in a collective names the rank that it waits for. When that one has ended its part of the call, waits in
 * a collective on another signal, or is as far on the same one, the two do not call the same collectives, and the
 * error says so. */
#include "collective/mismatch.h"
#include "host/report.h"
#include "host/suspects.h"
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
    return atomic_load_explicit(&segment_rank(&w->seg, rank)->epoch, memory_order_seq_cst);
}

/* A SubWorker that is not there does nothing, and nothing is posted for it. */
static bool takes_part(const pypto_worker *w, int32_t consumer)
{
    return consumer < w->device_count || sub_lives(w, consumer);
}

/* Its function may take its time: that is no reason to wake the ranks again and again. */
static bool sub_runs(const pypto_worker *w)
{
    for (int32_t sub = w->device_count; sub < consumer_count(w); ++sub)
        if (sub_lives(w, sub) && !epoch_is_parked(epoch_of(w, sub)))
            return true;
    return false;
}

static bool all_stuck(const pypto_worker *w)
{
    uint64_t before[MAX_CONSUMERS];
    if (atomic_load_explicit(&w->seg.set->running, memory_order_seq_cst) != 0)
        return false;
    for (int32_t rank = 0; rank < consumer_count(w); ++rank) {
        before[rank] = epoch_of(w, rank);
        if (takes_part(w, rank) && !epoch_is_parked(before[rank]))
            return false;
    }
    for (int32_t rank = 0; rank < consumer_count(w); ++rank)
        if (takes_part(w, rank) && !rank_is_stuck(w, rank))
            return false;
    for (int32_t rank = 0; rank < consumer_count(w); ++rank)
        if (takes_part(w, rank) && epoch_of(w, rank) != before[rank])
            return false;
    return atomic_load_explicit(&w->seg.set->outstanding, memory_order_seq_cst) > 0;
}

/* ---- words ---- */

static void note(pypto_status *status, text *line)
{
    if (!line->failed)
        diag_note(status, "%s", line->bytes);
    text_free(line);
}

static void add_cell(text *out, const look *l, int32_t program, int32_t buffer, int32_t ndim,
                     const int64_t *cell, uint64_t owners)
{
    char list[LIST_TEXT];
    text_printf(out, "'%s'%s of ", report_buffer(l->w, program, buffer),
                describe_list(list, sizeof list, cell, ndim));
    report_ranks(out, l->w, owners);
}

static void add_place(text *out, const look *l, const signal_entry *e)
{
    const pld_function *f = report_function(l->w, e->program, e->function);
    if (f != NULL)
        text_printf(out, " at %s:%d", f->file, e->line);
}

/* What is wrong with the notifies that have come: a wait for == that they have passed; a count that they would make if they
 * were added instead of set. */
static void add_advice(text *line, const look *l, const wait_entry *wait)
{
    const _Atomic int32_t *cell =
        (const _Atomic int32_t *)(const void *)(l->w->seg.base + wait->cell_offset);
    const int32_t value = atomic_load_explicit(cell, memory_order_relaxed);
    int64_t arrivals = 0;
    const signal_entry *set = NULL;
    for (int32_t sender = 0; sender < l->w->device_count; ++sender) {
        const signal_entry *e = account(l, sender, wait->cell_offset);
        if (e == NULL)
            continue;
        arrivals += atomic_load_explicit(&e->notifies, memory_order_relaxed);
        set = e->set.line != 0 ? e : set;
    }
    if (wait->cmp == PLD_EQ && value > wait->expected && arrivals > 0)
        text_printf(line,
                    "; it is past %d, and a wait for == misses a value that is added to: use "
                    "WaitCmp.Ge",
                    wait->expected);
    else if (set != NULL && value < wait->expected && arrivals >= wait->expected)
        text_printf(
            line,
            "; %lld notifies have come, but to set a cell wipes out what was there: use NotifyOp.AtomicAdd",
            (long long)arrivals);
}

/* Who has notified the cell that a rank waits for, behind the cell's name. */
static void add_history(text *line, const look *l, int32_t rank)
{
    const wait_entry *wait = &l->wait[rank];
    const uint64_t senders = senders_of(l, wait->cell_offset);
    if (senders == 0)
        text_printf(line, ": %s has notified it", l->incomplete ? "perhaps nobody" : "nobody");
    const char *separator = ": notified by ";
    for (int32_t sender = 0; sender < l->w->device_count; ++sender) {
        const signal_entry *e = account(l, sender, wait->cell_offset);
        if (e == NULL || e->notifies == 0)
            continue;
        text_add(line, separator);
        report_rank(line, l->w, sender);
        text_printf(line, " (%lld in %lld, last", (long long)e->sum, (long long)e->notifies);
        add_place(line, l, e);
        text_add(line, ")");
        separator = ", ";
    }
    const uint64_t absent = wait->devices & ~senders & ~bit(rank);
    if (senders != 0 && absent != 0) {
        text_add(line, "; not by ");
        report_ranks(line, l->w, absent);
    }
    add_advice(line, l, wait);
}

/* Ranks that wait for the same cell of theirs, which has the same history, share a line. */
static void note_histories(const look *l, pypto_status *status)
{
    uint64_t told = 0;
    for (int32_t rank = 0; rank < l->w->device_count; ++rank) {
        const wait_entry *wait = &l->wait[rank];
        if ((l->blocked & bit(rank)) == 0 || (told & bit(rank)) != 0 || !waits_for_signal(wait))
            continue;
        text history = {0};
        add_history(&history, l, rank);
        uint64_t same = bit(rank);
        for (int32_t other = rank + 1; other < l->w->device_count; ++other) {
            const wait_entry *theirs = &l->wait[other];
            if ((l->blocked & bit(other)) == 0 || !waits_for_signal(theirs) ||
                theirs->program != wait->program || theirs->buffer != wait->buffer ||
                memcmp(theirs->cell, wait->cell, (size_t)wait->ndim * sizeof *wait->cell) != 0)
                continue;
            text its = {0};
            add_history(&its, l, other);
            if (!its.failed && !history.failed && strcmp(its.bytes, history.bytes) == 0)
                same |= bit(other);
            text_free(&its);
        }
        told |= same;
        text line = {0};
        text_add(&line, "  ");
        add_cell(&line, l, wait->program, wait->buffer, wait->ndim, wait->cell, same);
        text_add(&line, history.failed ? "" : history.bytes);
        note(status, &line);
        text_free(&history);
    }
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
            const signal_entry *e = &h->accounts[call_slot(l->call)].entries[i];
            if (e->call != l->call || e->notifies == 0 || is_awaited(l, e) ||
                !is_waited_through(l, e->buffer))
                continue;
            text line = {0};
            text_add(&line, "  ");
            report_rank(&line, l->w, rank);
            text_add(&line, " has notified ");
            add_cell(&line, l, e->program, e->buffer, e->ndim, e->cell, bit(e->device));
            add_place(&line, l, e);
            text_add(&line, ", and nobody waits for that cell");
            note(status, &line);
            ++noted;
        }
    }
}

static bool is_single(uint64_t ranks)
{
    return (ranks & (ranks - 1)) == 0;
}

/* The blocked ranks that wait for just these ended ones. */
static uint64_t waiting_for(const look *l, uint64_t ended)
{
    uint64_t ranks = 0;
    for (int32_t rank = 0; rank < l->w->device_count; ++rank)
        if ((l->blocked & bit(rank)) != 0 && (l->suspects[rank] & ~l->blocked) == ended)
            ranks |= bit(rank);
    return ranks;
}

static void note_ended(const look *l, uint64_t ranks, uint64_t ended, pypto_status *status)
{
    const bool one = is_single(ended);
    text line = {0};
    text_add(&line, "  ");
    report_ranks(&line, l->w, ranks);
    text_add(&line, is_single(ranks) ? " waits for " : " wait for ");
    text_add(&line, one ? "" : "one of ");
    report_ranks(&line, l->w, ended);
    text_printf(&line, ", which %s ended %s part of the call", one ? "has" : "have",
                one ? "its" : "their");
    note(status, &line);
}

/* Each member waits for one other, or they wait for several of each other. */
static void note_circle(const look *l, uint64_t circle, pypto_status *status)
{
    const int32_t start = __builtin_ctzll(circle);
    bool chain = true;
    for (int32_t rank = 0; rank < l->w->device_count; ++rank)
        chain = chain && ((circle & bit(rank)) == 0 ||
                          __builtin_popcountll(l->suspects[rank] & circle) == 1);
    text line = {0};
    if (!chain) {
        text_add(&line, "  all of these wait for each other: ");
        report_ranks(&line, l->w, circle);
        note(status, &line);
        return;
    }
    text_add(&line, "  cycle: ");
    report_rank(&line, l->w, start);
    int32_t rank = start;
    do {
        rank = __builtin_ctzll(l->suspects[rank] & circle);
        text_add(&line, " -> ");
        report_rank(&line, l->w, rank);
    } while (rank != start);
    note(status, &line);
}

/* Who waits for whom: circles, ranks that wait for ended ones, and those behind them. */
static void note_causes(const look *l, pypto_status *status)
{
    uint64_t held_up = 0, told = 0;
    for (int32_t rank = 0; rank < l->w->device_count; ++rank) {
        if ((l->blocked & bit(rank)) == 0 || (told & bit(rank)) != 0)
            continue;
        const uint64_t ended = l->suspects[rank] & ~l->blocked;
        const uint64_t circle = circle_of(l, rank);
        const uint64_t alike = ended != 0 ? waiting_for(l, ended) & ~told : 0;
        told |= bit(rank) | circle | alike;
        if (ended != 0)
            note_ended(l, alike, ended, status);
        else if (circle != 0)
            note_circle(l, circle, status);
        else
            held_up |= bit(rank);
    }
    if (held_up != 0) {
        text line = {0};
        text_add(&line, "  held up behind these: ");
        report_ranks(&line, l->w, held_up);
        note(status, &line);
    }
}

/* ---- collectives ---- */

/* A device's part of the channel that a rank waits in. */
static const channel_record *record_of(const look *l, int32_t rank, int32_t device)
{
    const segment *seg = &l->w->seg;
    const char *own = seg->base + l->wait[rank].cell[1];
    const ptrdiff_t at = own - segment_slice(seg, rank);
    return (const channel_record *)(const void *)(segment_slice(seg, device) + at);
}

static bool on_one_signal(const wait_entry *a, const wait_entry *b)
{
    return b->kind == WAIT_COLLECTIVE && b->buffer == a->buffer && b->cell[0] == a->cell[0];
}

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
        if (other->kind != WAIT_COLLECTIVE)
            continue;
        /* On one signal, whoever is behind may be held up by others. */
        if (!on_one_signal(wait, other) || channel_position(record_of(l, rank, wait->device)) >=
                                               channel_position(record_of(l, rank, rank)))
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
    const channel_record *const records[2] = {record_of(l, rank, rank),
                                              record_of(l, rank, wait->device)};
    const channel_entry *calls[2];
    if (channels_differ(records[0], records[1], calls) && calls[0] != NULL && calls[1] != NULL) {
        report_disagreement(status, l->w, wait->program, (int32_t[]){rank, wait->device}, records);
        return;
    }
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

bool is_deadlock(pypto_worker *w)
{
    if (atomic_load_explicit(&w->seg.set->running, memory_order_seq_cst) != 0 || sub_runs(w))
        return false;
    if (all_stuck(w))
        return true;
    /* A rank whose wait is satisfied has been rung by whoever satisfied it; ringing once more
     * is harmless and mends what a lost ring would break. */
    segment_ring_all(&w->seg);
    return false;
}

pypto_status report_deadlock(pypto_worker *w, uint64_t call)
{
    if (!is_deadlock(w))
        return STATUS_OK;
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
    note_histories(&l, &status);
    note_near_misses(&l, &status);
    note_causes(&l, &status);
    return status;
}
