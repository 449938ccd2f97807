/* The evidence behind a deadlock report: who could still satisfy the waits of stuck ranks.
 *
 * Each rank keeps an account of the cells that it has notified and waited for in this call (segment.h,
 * signal_entry). From these follows who has notified the cells waited for and who has not, and from the look of
 * all notifies through a window which of the absent ones it should have been. The accounts are evidence, not
 * proof: a program may mean something else. Used by deadlock.c, with the set's lock held. */
#include "host/suspects.h"

bool waits_for_signal(const wait_entry *wait)
{
    return wait->kind == WAIT_SIGNAL || wait->kind == WAIT_DEFERRED;
}

const signal_entry *account(const look *l, int32_t rank, int64_t cell_offset)
{
    const signal_entry *e = segment_signal(segment_rank(&l->w->seg, rank), cell_offset, l->call);
    return e != NULL && signal_is(e, cell_offset, l->call) ? e : NULL;
}

uint64_t senders_of(const look *l, int64_t cell_offset)
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

/* Whether the ranks that are stuck on cells of this buffer all wait for an arrival at another index than their own rank. */
static bool waits_for_others(const look *l, const wait_entry *wait, int32_t dim)
{
    for (int32_t rank = 0; rank < l->w->device_count; ++rank) {
        const wait_entry *w = &l->wait[rank];
        if ((l->blocked & bit(rank)) == 0 || !waits_for_signal(w) || w->buffer != wait->buffer)
            continue;
        if (w->ndim != wait->ndim || w->expected != 1 ||
            w->cell[dim] == rank_in(w->devices, rank) ||
            w->cell[dim] >= __builtin_popcountll(w->devices))
            return false;
    }
    return true;
}

/* Many programs give each sender a cell of its own, indexed by the sender's rank. True when all
 * notifies through this buffer have been like that, or there are none and the waits look like it; *dim tells in
 * which dimension. */
static bool indexed_by_sender(const look *l, const wait_entry *wait, int32_t *dim)
{
    for (*dim = 0; *dim < wait->ndim; ++*dim) {
        int64_t seen = 0, like_that = 0;
        for (int32_t rank = 0; rank < l->w->device_count; ++rank) {
            const rank_header *h = segment_rank(&l->w->seg, rank);
            for (int32_t i = 0; i < SIGNAL_SLOTS; ++i) {
                const signal_entry *e = &h->accounts[call_slot(l->call)].entries[i];
                if (e->call != l->call || e->buffer != wait->buffer || e->notifies == 0)
                    continue;
                ++seen;
                like_that += e->ndim == wait->ndim && e->cell[*dim] == rank_in(wait->devices, rank);
            }
        }
        if (seen > 0 ? seen == like_that : waits_for_others(l, wait, *dim))
            return true;
    }
    return false;
}

/* In others, each rank notifies the one that is so many ranks further on. True when all notifies through this buffer have
 * gone that far. */
static bool at_one_distance(const look *l, const wait_entry *wait, int32_t *distance)
{
    const int32_t ranks = __builtin_popcountll(wait->devices);
    int64_t seen = 0;
    *distance = 0;
    for (int32_t rank = 0; rank < l->w->device_count; ++rank) {
        const rank_header *h = segment_rank(&l->w->seg, rank);
        for (int32_t i = 0; i < SIGNAL_SLOTS; ++i) {
            const signal_entry *e = &h->accounts[call_slot(l->call)].entries[i];
            if (e->call != l->call || e->buffer != wait->buffer || e->notifies == 0)
                continue;
            const int32_t from = rank_in(wait->devices, rank);
            const int32_t there = (rank_in(wait->devices, e->device) - from + ranks) % ranks;
            if (seen++ > 0 && there != *distance)
                return false;
            *distance = there;
        }
    }
    return seen > 0;
}

/* The ranks that a SubWorker waits for, also through others of its kind. */
static uint64_t behind_sub(const look *l, int32_t consumer, int32_t depth)
{
    const rank_header *h = segment_rank(&l->w->seg, consumer);
    const uint32_t count = atomic_load_explicit(&h->wait_count, memory_order_relaxed);
    uint64_t ranks = 0;
    for (uint32_t i = 0; i < count && i < WAIT_SLOTS; ++i) {
        wait_entry wait;
        wait_copy(&wait, &h->waits[i]);
        if (wait.device < l->w->device_count)
            ranks |= bit(wait.device);
        else if (depth > 0)
            ranks |= behind_sub(l, wait.device, depth - 1);
    }
    return ranks;
}

/* Who could still satisfy a wait: whose cell it is by the look of it, else who has not notified it
 * yet (the one of them that it would be by the look of the other notifies), else anybody. */
static uint64_t suspects_of(const look *l, int32_t rank, const wait_entry *wait)
{
    if (wait->kind == WAIT_DISPATCH && wait->device >= l->w->device_count) {
        const uint64_t behind = behind_sub(l, wait->device, l->w->sub_count);
        return behind != 0 ? behind : bit(rank);
    }
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
    int32_t distance;
    if (at_one_distance(l, wait, &distance)) {
        const int32_t ranks = __builtin_popcountll(wait->devices);
        const int32_t from = (rank_in(wait->devices, rank) - distance + ranks) % ranks;
        const uint64_t sender = bit(device_in(wait->devices, from));
        if ((absent & sender) != 0)
            return sender;
    }
    return absent != 0 ? absent : others != 0 ? others : wait->devices;
}

/* Who waits for whom, also through others. Where some of the suspects have ended, the wait ends there: those that wait
 * themselves may be innocent. */
static void find_circles(look *l)
{
    for (int32_t rank = 0; rank < l->w->device_count; ++rank) {
        const bool ends = (l->suspects[rank] & ~l->blocked) != 0;
        l->behind[rank] = ends ? 0 : l->suspects[rank];
    }
    for (int32_t via = 0; via < l->w->device_count; ++via)
        for (int32_t rank = 0; rank < l->w->device_count; ++rank)
            if ((l->behind[rank] & bit(via)) != 0)
                l->behind[rank] |= l->behind[via];
}

uint64_t circle_of(const look *l, int32_t rank)
{
    uint64_t circle = 0;
    for (int32_t other = 0; other < l->w->device_count; ++other)
        if ((l->behind[rank] & bit(other)) != 0 && (l->behind[other] & bit(rank)) != 0)
            circle |= bit(other);
    return circle;
}

void look_at(look *l, pypto_worker *w, uint64_t call)
{
    *l = (look){.w = w, .call = call};
    for (int32_t rank = 0; rank < w->device_count; ++rank) {
        const rank_header *h = segment_rank(&w->seg, rank);
        l->incomplete |=
            atomic_load_explicit(&h->accounts[call_slot(call)].lost, memory_order_relaxed) == call;
        if (atomic_load_explicit(&h->wait_count, memory_order_relaxed) == 0)
            continue;
        l->blocked |= bit(rank);
        wait_copy(&l->wait[rank], &h->waits[0]);
    }
    for (int32_t rank = 0; rank < w->device_count; ++rank)
        if ((l->blocked & bit(rank)) != 0)
            l->suspects[rank] = suspects_of(l, rank, &l->wait[rank]);
    find_circles(l);
}
