/* The shared segment of a worker set: one sparse memory file, laid out once by segment_plan(), used
 * by the host and every rank. Nothing in it is a pointer: positions are offsets from its first
 * byte.
 *
 *     set_header         one page, written by host and ranks
 *     rank_header[P+S]   state, bell, breadcrumb, failure and wait table of each rank, then of each SubWorker
 *     control area       dispatch queues (blocks handed out by the host)
 *     staging area       copies of the caller's tensors that ranks cannot see in place
 *     attached files     address space over which host and ranks map files of the caller (host/attach.c)
 *     symmetric heap     P slices of `stride` bytes: a window is at the same offset in each
 *
 * Protocols (who writes, who reads, in which order):
 *
 *   Bell. A rank that has nothing to do reads `bell`, adds 1 to `sleepers` (seq_cst), looks at
 *   everything it waits for once more, then sleeps on `bell`. Whoever changes something that a rank
 *   may wait for makes the change by a seq_cst read-modify-write (or store), then reads `sleepers`
 *   (seq_cst), and only if it is not 0 adds 1 to `bell` and wakes. In the single order of seq_cst
 *   operations either the waiter sees the change or the changer sees the sleeper. It is a count,
 *   because with a flag the second of two sleepers could clear the first one's mark.
 *
 *   Park. `running` in the set header counts ranks that are not asleep. The rank that makes it 0
 *   rings the host. A rank that is about to sleep publishes what it waits for and then makes `epoch`
 *   odd; the first thing that it does when it goes on is to make it even. Two equal odd readings mean
 *   that it was parked, and its wait table true, all the time between them. SubWorkers are not counted: one
 *   that is about to sleep makes its epoch odd, and then rings the host if `running` is 0; the host looks at epochs.
 *
 *   Queue. The host writes a record, then stores `posted` (runtime/queue.h); the owner reads it.
 *   The owner tells (seq_cst) when a dispatch's effects are in memory: `completed` is the number up to
 *   which all are done, and the bits of `done` tell of later ones, which may be done before. A bit is
 *   cleared before `completed` passes its number, so a reader that loads `completed` first may trust it.
 *
 *   Poison. Two calls can be in flight, one with an even and one with an odd number; each has a word of
 *   `poison`, which holds the latest number that must end, and only grows. A rank drops every task and
 *   dispatch of that call, then stores the number in its word of `acknowledged`; records that it takes later it
 *   drops unread. A task of the other call lets the rank do so at its next device call. A SubWorker says whose
 *   function it is about to run, and then looks at the poison: whoever poisons and then finds that it runs nothing of
 *   the call need not wait for it.
 *
 *   Failure. A rank fills its `failure` record of the call, stores `failure.order` (release) from the set's
 *   counter, then poisons the call and rings everybody. */
#ifndef TRANSPORT_SEGMENT_H
#define TRANSPORT_SEGMENT_H

#include <pypto/pld.h>

#include <assert.h>
#include <stdatomic.h>

#define CACHE_LINE 64
#define SEGMENT_MAGIC 0x7079746f70726f67u
#define SEGMENT_VERSION 4u

/* Calls whose dispatches can be under way at once. */
#define CALLS_IN_FLIGHT 2

/* Which of the words and records that there are for each call in flight is that of a call. */
static inline int call_slot(uint64_t call)
{
    return (int)(call % CALLS_IN_FLIGHT);
}

/* Blocked tasks of one rank that a deadlock look can see. Untouched slots cost no memory. */
#define WAIT_SLOTS 16384

/* A dispatch may be done while one this much earlier is not. */
#define DONE_WINDOW 65536

#define FAILURE_TEXT 1024

/* Of SubWorkers, which have tracebacks to show. */
#define FAILURE_NOTE 16384

/* SubWorkers that one set can have. */
#define MAX_SUB_WORKERS 64
#define MAX_CONSUMERS (PYPTO_MAX_RANKS + MAX_SUB_WORKERS)

typedef enum wait_kind {
    WAIT_NONE,
    WAIT_SIGNAL,     /* a cell of the own window */
    WAIT_DEFERRED,   /* the same, of a task that has ended but is not over before */
    WAIT_DISPATCH,   /* an earlier dispatch of another device */
    WAIT_COLLECTIVE, /* another device's part in a collective */
    WAIT_TASKS       /* tasks of the own dispatch; never published */
} wait_kind;

/* What one blocked task of a rank waits for. Written by the owner before it parks; read by the host
 * between two equal epochs. */
typedef struct wait_entry {
    _Alignas(8) int32_t kind; /* wait_kind */
    int32_t program;
    int32_t function; /* index in the program; -1: the dispatch itself has not started */
    int32_t line;
    /* From the segment's first byte. SIGNAL, DEFERRED: of the INT32 cell. COLLECTIVE: of the flag. */
    int64_t cell_offset;
    int32_t expected;
    int32_t cmp;    /* pld_wait_cmp; COLLECTIVE: collective_kind */
    int32_t buffer; /* allocation */
    int32_t param;  /* parameter of the function that names the window, or -1 */
    int32_t ndim;
    int32_t device;    /* DISPATCH, COLLECTIVE: the device waited for */
    uint64_t sequence; /* DISPATCH: its dispatch number; COLLECTIVE: that of the round */
    uint64_t devices;  /* SIGNAL, DEFERRED: domain */
    int64_t block;     /* SIGNAL, DEFERRED: of its task's blocks */
    int64_t blocks;
    int64_t cell
        [PYPTO_MAX_DIMS]; /* COLLECTIVE: where the channel begins: [0] in its window, [1] in the segment */
} wait_entry;

/* The table is read while its owner may be rewriting it; the epoch tells afterwards whether it was.
 * Entries are copied as atomic words, so that what is read meanwhile is stale at worst and never
 * torn. A reader that sees a new word (acquire) of an entry (release) also sees the epoch of the
 * wake-up before it. */
static inline void wait_copy(wait_entry *to, const wait_entry *from)
{
    _Atomic uint64_t *target = (_Atomic uint64_t *)(void *)to;
    const _Atomic uint64_t *source = (const _Atomic uint64_t *)(const void *)from;
    for (size_t i = 0; i < sizeof(wait_entry) / 8; ++i)
        atomic_store_explicit(&target[i], atomic_load_explicit(&source[i], memory_order_acquire),
                              memory_order_release);
}
static_assert(sizeof(wait_entry) % 8 == 0, "wait entries are whole words");

/* A line of a program. */
typedef struct signal_place {
    int32_t function; /* + 1 */
    int32_t line;     /* 0: none */
} signal_place;

/* What a rank has done with one signal cell in a call. Written by that rank; the atomic fields are read by others
 * meanwhile, the rest by the host while the rank is parked or has ended its part. */
typedef struct signal_entry {
    _Atomic int64_t cell_offset; /* from the segment's first byte; 0: free */
    _Atomic uint64_t call;       /* an entry of an earlier call is free too */
    _Atomic int64_t notifies;    /* sent to it */
    int64_t sum;     /* of their values since the latest set, which counts as its value */
    int64_t waits;   /* that have been satisfied by it; own cells only */
    int32_t device;  /* whose cell it is */
    int32_t buffer;  /* allocation */
    int32_t program; /* of the latest notify: where */
    int32_t function;
    int32_t line;
    int32_t ndim;
    int64_t cell[PYPTO_MAX_DIMS];
    /* For the lint. */
    signal_place set;          /* the latest that was no reset by the owner */
    signal_place added;        /* the latest */
    signal_place wrapped;      /* an addition beyond the range of INT32 */
    signal_place reused;       /* a wait that only old arrivals have satisfied */
    signal_place reused_after; /* the wait that had seen them before */
    bool lowered;              /* something was set or taken away */
    int32_t waiter;            /* program of the latest wait */
    struct {                   /* the latest satisfied wait */
        int64_t arrivals;      /* notifies of all ranks, when they were last counted */
        int64_t own;           /* of the own ones among them */
        int32_t value;
        int32_t expected;
        int32_t cmp;
        signal_place place;
        const void *task; /* compared, never followed */
        int64_t block;
    } last;
} signal_entry;

static inline bool signal_is(const signal_entry *e, int64_t cell_offset, uint64_t call)
{
    return atomic_load_explicit(&e->call, memory_order_acquire) == call &&
           atomic_load_explicit(&e->cell_offset, memory_order_relaxed) == cell_offset;
}

/* Cells of which a rank keeps an account in one call; of more there is none. */
#define SIGNAL_SLOTS 2048

/* The accounts of one of the calls in flight: the other has its own, so neither takes the other's place. Written by the
 * owner, read by the host while it is parked. */
typedef struct signal_accounts {
    _Alignas(CACHE_LINE)
        signal_entry entries[SIGNAL_SLOTS]; /* found by hashing the cell's offset */
    _Atomic uint64_t lost;                  /* the latest call in which a cell found no slot */
    /* The entries of the latest call that has any. */
    uint64_t call;
    int32_t count;
    uint16_t used[SIGNAL_SLOTS];
} signal_accounts;

/* How a rank's part of a call ended before its time. */
typedef struct failure_record {
    _Atomic uint64_t call; /* written last: the rest is that of this call */
    uint64_t order;        /* among all failures of the set's life, from 1 */
    int32_t code;          /* diag_code */
    int32_t program;
    int32_t function;
    int32_t line;
    char text[FAILURE_TEXT];
    char note[FAILURE_NOTE]; /* more about it, in lines; may be empty */
} failure_record;

typedef struct rank_header {
    /* Written by the owner. */
    _Alignas(CACHE_LINE) _Atomic uint64_t epoch; /* see Park */
    _Atomic uint32_t
        wait_count; /* entries of `waits` in use; more tasks than slots: WAIT_SLOTS + 1 */
    _Atomic uint64_t completed; /* all dispatches up to this one are done */
    _Atomic uint64_t taken;     /* dispatches taken from the queue */
    _Atomic uint64_t acknowledged[CALLS_IN_FLIGHT];
    _Atomic uint64_t running_call; /* of a SubWorker: whose function it runs; 0: none */
    _Atomic uint32_t
        lost_host; /* of a SubWorker: what it ran has closed its way to the host; so it ends */
    _Atomic int32_t cpu; /* that it last waited on for some time: number + 1; 0: none yet */
    _Atomic uint32_t counted_waiting; /* in set_header.dispatch_waiters */
    /* Written by everybody. */
    _Alignas(CACHE_LINE) _Atomic uint32_t bell;
    _Atomic uint32_t sleepers;
    /* Written by the owner at every device call: (function + 1) << 32 | line; 0 between tasks. */
    _Alignas(CACHE_LINE) _Atomic uint64_t breadcrumb;
    _Atomic int32_t breadcrumb_program;
    /* The breadcrumb of the task dropped last, and the call that it belonged to. */
    _Atomic uint64_t dropped;
    _Atomic uint64_t dropped_call;
    /* Written by the host. */
    _Alignas(CACHE_LINE) _Atomic uint64_t posted;
    int64_t queue_offset; /* first block of the queue, set before the worker starts */
    /* Rare. */
    _Alignas(CACHE_LINE) failure_record failure[CALLS_IN_FLIGHT];
    _Alignas(CACHE_LINE) wait_entry waits[WAIT_SLOTS];
    signal_accounts accounts[CALLS_IN_FLIGHT];
    /* Bit n % DONE_WINDOW: dispatch n, later than `completed`, is done. */
    _Alignas(CACHE_LINE) _Atomic uint64_t done[DONE_WINDOW / 64];
} rank_header;

/* The account of a cell in a call: the entry, or where a new one may be made, or NULL. */
static inline signal_entry *segment_signal(rank_header *h, int64_t cell_offset, uint64_t call)
{
    const uint64_t hash = (uint64_t)(cell_offset >> 2) * 0x9e3779b97f4a7c15u;
    for (uint64_t probe = 0; probe < 8; ++probe) {
        signal_entry *e =
            &h->accounts[call_slot(call)].entries[((hash >> 48) + probe) % SIGNAL_SLOTS];
        if (atomic_load_explicit(&e->call, memory_order_acquire) != call ||
            atomic_load_explicit(&e->cell_offset, memory_order_relaxed) == cell_offset)
            return e;
    }
    return NULL;
}

static inline bool epoch_is_parked(uint64_t epoch)
{
    return (epoch & 1) != 0;
}

/* Whether the dispatch of that number (from 1) is done. Seq_cst: see Bell. */
static inline bool segment_dispatch_done(const rank_header *h, uint64_t number)
{
    const uint64_t completed = atomic_load_explicit(&h->completed, memory_order_seq_cst);
    if (number <= completed)
        return true;
    if (number - completed > DONE_WINDOW)
        return false;
    const uint64_t bit = number % DONE_WINDOW;
    return (atomic_load_explicit(&h->done[bit / 64], memory_order_seq_cst) >> bit % 64 & 1) != 0;
}

/* What the host waits for: that all is complete (or has failed, or is stuck), or each record, because another call is in
 * flight behind the one that it waits for. */
enum host_waits { HOST_WAITS_FOR_NOTHING, HOST_WAITS_FOR_ALL, HOST_WAITS_FOR_EACH };

typedef struct set_header {
    uint64_t magic;
    uint32_t version;
    uint32_t rank_count;
    uint32_t consumer_count; /* ranks and SubWorkers: who has a header and a queue */
    uint32_t reserved;
    uint64_t bytes;
    int64_t ranks_offset;
    int64_t control_offset;
    int64_t control_bytes;
    int64_t staging_offset;
    int64_t staging_bytes;
    int64_t files_offset;
    int64_t files_bytes;
    int64_t heap_offset;
    int64_t stride; /* bytes of one rank's slice of the heap */
    /* Read at every device call, written at most once per call. */
    _Alignas(CACHE_LINE) _Atomic uint64_t poison[CALLS_IN_FLIGHT];
    /* Ranks that are not parked. */
    _Alignas(CACHE_LINE) _Atomic int32_t running;
    /* The host sleeps in poll() and wants to be rung, see host_waits. */
    _Alignas(CACHE_LINE) _Atomic uint32_t host_waiting;
    /* Records posted and not completed, of all ranks. */
    _Alignas(CACHE_LINE) _Atomic int64_t outstanding;
    /* Bytes of memory, see promise.h: that were promised and are not in use yet, and that nobody has asked for. */
    _Alignas(CACHE_LINE) _Atomic int64_t promised;
    _Atomic int64_t unasked;
    /* Ranks asleep on another rank's dispatch. */
    _Atomic int32_t dispatch_waiters;
    _Atomic uint64_t failures;
} set_header;

static_assert(sizeof(set_header) <= 4096, "the set header is one page");
static_assert(sizeof(rank_header) % CACHE_LINE == 0, "rank headers do not share lines");
static_assert(sizeof(_Atomic uint64_t) == 8 && sizeof(_Atomic uint32_t) == 4,
              "atomics have no lock");

/* Layout for `rank_count` ranks and `sub_count` SubWorkers in `bytes` bytes of address space: fills the
 * constant fields of `header`. False when it does not fit. The one place that computes offsets. */
bool segment_plan(set_header *header, int32_t rank_count, int32_t sub_count, int64_t bytes);

/* A process's (or thread's) view of a segment. Plain value; owns the mapping and, unless the
 * transport shares it, the descriptor. */
typedef struct segment {
    const struct transport *transport;
    char *base;
    int64_t bytes;
    int fd; /* of the memory file */
    set_header *set;
} segment;

/* Whether a call must end. Seq_cst where a sleeper or a host decides by it, else relaxed. */
static inline bool segment_poisoned(const segment *s, uint64_t call, memory_order order)
{
    return atomic_load_explicit(&s->set->poison[call_slot(call)], order) >= call;
}

/* Of a rank, or behind the ranks of a SubWorker. */
static inline rank_header *segment_rank(const segment *s, int32_t rank)
{
    return (rank_header *)(s->base + s->set->ranks_offset) + rank;
}

/* First byte of a device's slice of the symmetric heap. */
static inline char *segment_slice(const segment *s, int32_t device)
{
    return s->base + s->set->heap_offset + s->set->stride * device;
}

#endif
