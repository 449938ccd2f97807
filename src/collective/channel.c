/* Channels and rounds: see channel.h for what they are and why they work. */
#include "collective/mismatch.h"

#include "base/alloc.h"
#include "sched/describe.h"

#include <string.h>

/* ---- layout ---- */

static int64_t lines_at(void)
{
    return (int64_t)sizeof(channel_record);
}

static int64_t flags_at(void)
{
    return lines_at() + ROOTED_ROUNDS * (int64_t)sizeof(flag_line);
}

static int64_t stage_at(int32_t ranks)
{
    return flags_at() + 2 * ranks * (int64_t)sizeof(flag_line);
}

static int64_t rooted_stage_at(int32_t ranks)
{
    return stage_at(ranks) + INT64_C(2) * STAGE_BYTES;
}

static int64_t channel_bytes(int32_t ranks)
{
    return rooted_stage_at(ranks) + ROOTED_BYTES;
}

static int64_t channels_at(int64_t window_bytes)
{
    return (window_bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

/* A signal has at least one cell per rank, so that two which do not overlap begin in different groups of so
 * many cells: signals that begin in group i use channel i. */
int32_t channel_count(pld_collectives collectives, int64_t bytes, int32_t ranks)
{
    switch (collectives) {
    case PLD_NO_COLLECTIVES: return 0;
    case PLD_ONE_SIGNAL: return 1;
    case PLD_MANY_SIGNALS: break;
    }
    const int64_t groups = bytes / (int64_t)sizeof(int32_t) / ranks;
    return groups < 1 ? 1 : groups > INT32_MAX ? INT32_MAX : (int32_t)groups;
}

bool channel_block(int64_t window_bytes, int32_t channels, int32_t ranks, int64_t *block)
{
    *block = window_bytes;
    if (channels == 0)
        return true;
    int64_t bytes;
    if (!size_add(window_bytes, CACHE_LINE, &bytes) ||
        !size_mul(channels, channel_bytes(ranks), &bytes))
        return false;
    return size_add(channels_at(window_bytes), bytes, block);
}

const channel_record *channel_record_at(const char *window, int64_t bytes, int32_t ranks,
                                        int32_t channel)
{
    return (const channel_record *)(const void *)(window + channels_at(bytes) +
                                                  channel * channel_bytes(ranks));
}

/* ---- finding one ---- */

/* What lies so many bytes behind the beginning of a rank's part. */
static char *in_channel(const collective *c, int32_t rank, int64_t at)
{
    return peer_address(c->comm, c->window, c->window->base + c->at + at, rank);
}

static flag_line *flags_of(const collective *c, int32_t rank)
{
    flag_line *flags = (flag_line *)(void *)in_channel(c, rank, flags_at());
    return flags + (int64_t)(c->round % 2) * c->comm->nranks;
}

/* Cells of a signal that are looked at: those of every mesh signal, and of a ring of 23 ranks. */
#define CELLS_CHECKED 1024

/* The user's signal: an INT32 window with a cell for each rank, packed, all zero. */
static void check_signal(const collective *c, pld_core *core, const pld_tensor *signal)
{
    char name[NAME_TEXT], shape[LIST_TEXT];
    const int64_t cells = tensor_elements(signal);
    if (signal->dtype != PYPTO_INT32)
        task_fail(core, DIAG_BAD_SIGNAL, "%s is %s: signals are INT32",
                  task_describe(core, signal, name, sizeof name),
                  pypto_dtype_name((pypto_dtype)signal->dtype));
    if (!tensor_is_packed(signal) || cells < c->comm->nranks)
        task_fail(
            core, DIAG_BAD_SIGNAL,
            "%s of shape %s is no signal for %d ranks: it needs a cell for each, without gaps",
            task_describe(core, signal, name, sizeof name),
            describe_list(shape, sizeof shape, signal->shape, signal->ndim), c->comm->nranks);
    for (int64_t i = 0; i < cells && i < CELLS_CHECKED; ++i) {
        const int32_t value = atomic_load_explicit(
            (const _Atomic int32_t *)(const void *)(signal->data + i * 4), memory_order_relaxed);
        if (__builtin_expect(value != 0, 0))
            task_fail(core, DIAG_BAD_SIGNAL,
                      "cell %lld of signal %s is %d: the signal of a collective is zero when it "
                      "begins (take back what was added, or use a window of its own)",
                      (long long)i, task_describe(core, signal, name, sizeof name), value);
    }
}

/* 64 bits to 64, each of which depends on all. Finalizer of MurmurHash3 (Austin Appleby, public domain). */
static uint64_t mixed(uint64_t h)
{
    h ^= h >> 33;
    h *= UINT64_C(0xff51afd7ed558ccd);
    h ^= h >> 33;
    h *= UINT64_C(0xc4ceb9fe1a85ec53);
    h ^= h >> 33;
    return h;
}

/* Each word times an odd number of its own, so that calls which differ in one word have different sums. */
static uint64_t fingerprint_of(const collective_call *call)
{
    static const uint64_t odd[] = {UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xbf58476d1ce4e5b9),
                                   UINT64_C(0x94d049bb133111eb), UINT64_C(0xd6e8feb86659fd93),
                                   UINT64_C(0x8ebc6af09c88c6e3)};
    uint64_t words[sizeof *call / 8], sum = 0;
    static_assert(sizeof odd == sizeof words, "a number for each word");
    memcpy(words, call, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i)
        sum += words[i] * odd[i];
    return mixed(sum);
}
static_assert(sizeof(collective_call) % 8 == 0, "a call is whole words");

#define PUSHES_COUNTED UINT32_C(0x3fffffff)

void collective_enter(collective *c, pld_core *core, const pld_tensor *signal,
                      const collective_call *call)
{
    char name[NAME_TEXT];
    task_check(core);
    const pld_window *window = task_need_window(core, signal);
    *c = (collective){.core = core, .comm = window->comm, .window = window};
    check_signal(c, core, signal);
    const int64_t first = (signal->data - window->base) / (int64_t)sizeof(int32_t);
    const int64_t channel = first / c->comm->nranks;
    if (channel >= window->channels)
        task_fail(core, DIAG_BAD_SIGNAL,
                  window->channels == 0
                      ? "%s has no channel for a collective: its buffer is not marked in the "
                        "program's table (pld_buffer_info.collectives)"
                      : "%s begins inside of a buffer that is marked as one signal",
                  task_describe(core, signal, name, sizeof name));
    c->at = channels_at(window->bytes) + channel * channel_bytes(c->comm->nranks);
    c->record = (channel_record *)(void *)(window->base + c->at);
    if (c->record->busy != 0)
        task_fail(
            core, DIAG_BAD_SIGNAL,
            "signal %s is in use by another collective of this rank, at line %d: tasks that may "
            "overlap need signals of their own",
            task_describe(core, signal, name, sizeof name), c->record->now.line);
    const uint32_t pushes = core->owner->pushes & PUSHES_COUNTED;
    c->pushed = c->record->pushes != pushes;
    c->again = c->pushed;
    c->record->pushes = pushes & PUSHES_COUNTED;
    c->record->busy = 1;
    c->record->whole = 0;
    c->record->now = (channel_entry){*call, core->function_index, core->line};
    c->fingerprint = fingerprint_of(call);
}

void collective_leave(collective *c)
{
    c->record->busy = 0;
}

/* ---- whole rounds ---- */

/* In the fingerprint of a flag: its rank has pushed, see channel.h. */
#define FLAG_PUSHED (UINT64_C(1) << 63)

/* Of all that ranks have to have done alike since the latest whole round. */
static uint64_t with_history(const collective *c)
{
    return mixed(c->record->history + c->fingerprint) & ~FLAG_PUSHED;
}

void round_begin(collective *c)
{
    task_check(c->core);
    c->record->whole = 1;
    c->round = ++c->record->rounds;
    c->told = with_history(c);
}

/* What is in the line gets seen by whoever finds the number. Comes before the look at the sleepers of peers. */
static void publish(flag_line *line, uint64_t number)
{
    atomic_exchange_explicit(&line->number, number, memory_order_seq_cst);
}

static void ring(const collective *c, int32_t peer)
{
    const segment *seg = &c->core->owner->seg;
    rank_ring(seg, segment_rank(seg, c->comm->devices[peer]));
}

void round_post(collective *c, int32_t peer, const void *message, int64_t bytes)
{
    flag_line *flag = flags_of(c, peer) + c->comm->rank;
    if (bytes > 0)
        memcpy(flag->message, message, (size_t)bytes);
    flag->fingerprint = c->pushed ? c->told | FLAG_PUSHED : c->told;
    publish(flag, c->round);
    ring(c, peer);
}

/* Waits until a peer has written a line of this round. */
static void await(collective *c, const flag_line *line, int32_t peer)
{
    if (atomic_load_explicit(&line->number, memory_order_seq_cst) == c->round)
        return;
    pld_core *core = c->core;
    const char *base = core->owner->seg.base;
    core->wait = (wait_entry){.kind = WAIT_COLLECTIVE,
                              .program = core->program,
                              .function = core->function_index,
                              .line = core->line,
                              .cell_offset = (const char *)line - base,
                              .sequence = c->round,
                              .cmp = c->record->now.what.kind,
                              .buffer = c->window->buffer,
                              .param = -1,
                              .device = c->comm->devices[peer],
                              .cell = {c->at, (const char *)c->record - base},
                              .block = core->block_index,
                              .blocks = core->block_count};
    task_wait(core);
    /* Acquires what the peer has done. */
    (void)atomic_load_explicit(&line->number, memory_order_seq_cst);
}

void round_end(collective *c)
{
    const int32_t ranks = c->comm->nranks;
    for (int32_t i = 1; i < ranks; ++i) {
        const int32_t peer = (c->comm->rank + i) % ranks;
        const flag_line *flag = flags_of(c, c->comm->rank) + peer;
        await(c, flag, peer);
        if (__builtin_expect((flag->fingerprint & ~FLAG_PUSHED) != c->told, 0))
            mismatch_fail(c, peer);
        c->again |= (flag->fingerprint & FLAG_PUSHED) != 0;
    }
    c->record->rooted = 0;
    c->record->history = 0;
    c->record->staged = 0;
}

bool round_again(collective *c)
{
    const bool again = c->again;
    c->again = false;
    c->pushed = false;
    return again;
}

static void post_all(collective *c, const void *message, int64_t bytes)
{
    for (int32_t i = 1; i < c->comm->nranks; ++i)
        round_post(c, (c->comm->rank + i) % c->comm->nranks, message, bytes);
}

void round_all(collective *c, const void *message, int64_t bytes)
{
    round_begin(c);
    post_all(c, message, bytes);
    round_end(c);
}

void round_stage_all(collective *c, const void *data, int64_t bytes)
{
    round_begin(c);
    memcpy(round_stage(c, c->comm->rank), data, (size_t)bytes);
    post_all(c, NULL, 0);
    round_end(c);
}

void round_stage_parts(collective *c, const char *parts, int64_t bytes)
{
    round_begin(c);
    fill_stage_parts(c, parts, bytes);
    post_all(c, NULL, 0);
    round_end(c);
}

void round_parts(collective *c, const char *parts, int64_t bytes)
{
    round_begin(c);
    for (int32_t i = 1; i < c->comm->nranks; ++i) {
        const int32_t peer = (c->comm->rank + i) % c->comm->nranks;
        round_post(c, peer, parts + bytes * peer, bytes);
    }
    round_end(c);
}

const void *round_message(const collective *c, int32_t peer)
{
    return flags_of(c, c->comm->rank)[peer].message;
}

char *round_stage(const collective *c, int32_t rank)
{
    return in_channel(c, rank, stage_at(c->comm->nranks) + (int64_t)(c->round % 2) * STAGE_BYTES);
}

void fill_stage_parts(const collective *c, const char *parts, int64_t bytes)
{
    char *stage = round_stage(c, c->comm->rank);
    const int64_t mine = c->comm->rank * bytes, behind = mine + bytes;
    memcpy(stage, parts, (size_t)mine);
    memcpy(stage + behind, parts + behind, (size_t)(c->comm->nranks * bytes - behind));
}

/* ---- rooted rounds ---- */

/* Bytes of the rooted stage for a message. */
static int64_t staged_bytes(int64_t bytes)
{
    return bytes <= FLAG_MESSAGE ? 0 : (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

bool rooted_fits(const collective *c, int64_t bytes)
{
    const channel_record *record = c->record;
    return c->core->table->collectives_only != 0 && record->rooted < ROOTED_ROUNDS &&
           bytes <= STAGE_BYTES && record->staged + staged_bytes(bytes) <= ROOTED_BYTES;
}

/* The line and the place for the message of this rooted round, in the root's part. */
typedef struct rooted_place {
    flag_line *line;
    char *message;
} rooted_place;

static rooted_place rooted_begin(collective *c, int32_t root, int64_t bytes)
{
    task_check(c->core);
    channel_record *record = c->record;
    flag_line *line = (flag_line *)(void *)in_channel(c, root, lines_at()) + record->rooted;
    const int64_t stage = rooted_stage_at(c->comm->nranks) + record->staged;
    const rooted_place place = {line, bytes <= FLAG_MESSAGE ? (char *)line->message
                                                            : in_channel(c, root, stage)};
    c->told = with_history(c);
    c->round = ++record->rooted_rounds;
    record->history = c->told;
    record->entries[record->rooted++] = record->now;
    record->staged += staged_bytes(bytes);
    return place;
}

void rooted_send(collective *c, const void *data, int64_t bytes)
{
    const int32_t ranks = c->comm->nranks, me = c->comm->rank;
    const rooted_place place = rooted_begin(c, me, bytes);
    memcpy(place.message, data, (size_t)bytes);
    place.line->fingerprint = c->told;
    publish(place.line, c->round);
    for (int32_t i = 1; i < ranks; ++i)
        ring(c, (me + i) % ranks);
}

const void *rooted_receive(collective *c, int32_t root, int64_t bytes)
{
    const rooted_place place = rooted_begin(c, root, bytes);
    await(c, place.line, root);
    if (__builtin_expect(place.line->fingerprint != c->told, 0))
        mismatch_fail(c, root);
    return place.message;
}
