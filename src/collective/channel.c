/* Channels and rounds: see channel.h for what they are and why they work. */
#include "collective/channel.h"

#include "base/alloc.h"
#include "sched/describe.h"

#include <stdio.h>
#include <string.h>

/* ---- layout ---- */

static int64_t stage_at(int32_t ranks)
{
    return (int64_t)sizeof(channel_record) + 2 * ranks * (int64_t)sizeof(flag_line);
}

static int64_t channel_bytes(int32_t ranks)
{
    return stage_at(ranks) + 2 * STAGE_BYTES;
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

static flag_line *flags_of(const collective *c, int32_t rank)
{
    char *own = c->window->base + c->at + sizeof(channel_record);
    flag_line *flags = (flag_line *)(void *)peer_address(c->comm, c->window, own, rank);
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

/* 64 bits to 47, each of which depends on all. Finalizer of MurmurHash3 (Austin Appleby, public domain). */
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
                                   UINT64_C(0x94d049bb133111eb), UINT64_C(0xd6e8feb86659fd93)};
    uint64_t words[sizeof *call / 8], sum = 0;
    static_assert(sizeof odd == sizeof words, "a number for each word");
    memcpy(words, call, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i)
        sum += words[i] * odd[i];
    return mixed(sum);
}
static_assert(sizeof(collective_call) % 8 == 0, "a call is whole words");

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
            task_describe(core, signal, name, sizeof name), c->record->line);
    const uint32_t pushes = core->owner->pushes & UINT32_C(0x7fffffff);
    c->pushed = c->record->pushes != pushes;
    c->again = c->pushed;
    c->record->pushes = pushes & UINT32_C(0x7fffffff);
    c->record->busy = 1;
    c->record->what = *call;
    c->record->function = core->function_index;
    c->record->line = core->line;
    c->fingerprint = fingerprint_of(call);
}

void collective_leave(collective *c)
{
    c->record->busy = 0;
}

/* ---- rounds ---- */

void round_begin(collective *c)
{
    task_check(c->core);
    c->round = ++c->record->rounds;
}

/* In a flag beside fingerprint and round: its rank has pushed, see channel.h. */
#define FLAG_PUSHED (UINT64_C(1) << 63)

static uint64_t flag_word(const collective *c)
{
    const uint64_t word = c->fingerprint << FLAG_ROUND_BITS | FLAG_ROUND(c->round);
    return c->pushed ? word | FLAG_PUSHED : word & ~FLAG_PUSHED;
}

void round_post(collective *c, int32_t peer, const void *message, int64_t bytes)
{
    flag_line *flag = flags_of(c, peer) + c->comm->rank;
    if (bytes > 0)
        memcpy(flag->message, message, (size_t)bytes);
    /* Releases what this rank has done, and comes before the look at the peer's sleepers. */
    atomic_exchange_explicit(&flag->word, flag_word(c), memory_order_seq_cst);
    const segment *seg = &c->core->owner->seg;
    rank_ring(seg, segment_rank(seg, c->comm->devices[peer]));
}

static void fail_mismatch(const collective *c, int32_t peer) PYPTO_NORETURN;

/* Waits for one peer's flag of this round. */
static void await_flag(collective *c, int32_t peer)
{
    pld_core *core = c->core;
    const flag_line *flag = flags_of(c, c->comm->rank) + peer;
    uint64_t word = atomic_load_explicit(&flag->word, memory_order_seq_cst);
    if (FLAG_ROUND(word) != FLAG_ROUND(c->round)) {
        core->wait = (wait_entry){.kind = WAIT_COLLECTIVE,
                                  .program = core->program,
                                  .function = core->function_index,
                                  .line = core->line,
                                  .cell_offset = (const char *)flag - core->owner->seg.base,
                                  .expected = (int32_t)FLAG_ROUND(c->round),
                                  .cmp = c->record->what.kind,
                                  .buffer = c->window->buffer,
                                  .param = -1,
                                  .device = c->comm->devices[peer],
                                  .cell = {c->at},
                                  .block = core->block_index,
                                  .blocks = core->block_count};
        task_wait(core);
        word = atomic_load_explicit(&flag->word, memory_order_seq_cst);
    }
    if (__builtin_expect(((word ^ flag_word(c)) & ~FLAG_PUSHED) != 0, 0))
        fail_mismatch(c, peer);
    c->again |= (word & FLAG_PUSHED) != 0;
}

void round_end(collective *c)
{
    const int32_t ranks = c->comm->nranks;
    for (int32_t i = 1; i < ranks; ++i)
        await_flag(c, (c->comm->rank + i) % ranks);
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
    char *own =
        c->window->base + c->at + stage_at(c->comm->nranks) + (int64_t)(c->round % 2) * STAGE_BYTES;
    return peer_address(c->comm, c->window, own, rank);
}

void fill_stage_parts(const collective *c, const char *parts, int64_t bytes)
{
    char *stage = round_stage(c, c->comm->rank);
    const int64_t mine = c->comm->rank * bytes, behind = mine + bytes;
    memcpy(stage, parts, (size_t)mine);
    memcpy(stage + behind, parts + behind, (size_t)(c->comm->nranks * bytes - behind));
}

/* ---- disagreement ---- */

const char *collective_name(int32_t kind)
{
    static const char *const names[] = {[COLLECTIVE_BARRIER] = "barrier",
                                        [COLLECTIVE_ALLREDUCE] = "allreduce",
                                        [COLLECTIVE_BROADCAST] = "broadcast",
                                        [COLLECTIVE_ALLGATHER] = "allgather",
                                        [COLLECTIVE_REDUCE_SCATTER] = "reduce_scatter",
                                        [COLLECTIVE_ALL_TO_ALL] = "all_to_all",
                                        [COLLECTIVE_ALL_TO_ALL_V] = "all_to_all_v"};
    return kind > 0 && kind <= COLLECTIVE_ALL_TO_ALL_V ? names[kind] : "a collective";
}

static const char *op_name(uint8_t op)
{
    static const char *const names[] = {
        [PLD_SUM] = "Sum", [PLD_MAX] = "Max", [PLD_MIN] = "Min", [PLD_PROD] = "Prod"};
    return op < sizeof names / sizeof names[0] ? names[op] : "?";
}

static const char *mode_name(uint8_t mode)
{
    static const char *const names[] = {
        [PLD_MESH] = "mesh", [PLD_RING] = "ring", [PLD_AUTO] = "auto"};
    return mode < sizeof names / sizeof names[0] ? names[mode] : "?";
}

#define CALL_TEXT 256

/* "allreduce(256 x fp32, op=Sum, mode=mesh, buffer 0) in step at script.py:12" */
static void describe_call(const collective *c, const channel_record *record, char *text,
                          size_t bytes)
{
    const collective_call *call = &record->what;
    const pld_program *table = c->core->table;
    char more[96] = "", target[64] = "";
    if (call->kind == COLLECTIVE_ALLREDUCE)
        snprintf(more, sizeof more, ", op=%s, mode=%s", op_name(call->op), mode_name(call->mode));
    else if (call->kind == COLLECTIVE_REDUCE_SCATTER)
        snprintf(more, sizeof more, ", op=%s", op_name(call->op));
    else if (call->kind == COLLECTIVE_BROADCAST)
        snprintf(more, sizeof more, ", root=%d", call->root);
    if (call->buffer >= 0 && call->buffer < table->nbuffers)
        snprintf(target, sizeof target, ", window '%.32s' from byte %lld",
                 table->buffers[call->buffer].name, (long long)call->offset);
    const pld_function *f = record->function >= 0 && record->function < table->nfunctions
                                ? table->functions[record->function]
                                : NULL;
    int used = snprintf(text, bytes, "%s", collective_name(call->kind));
    if (call->kind != COLLECTIVE_BARRIER)
        used +=
            snprintf(text + used, bytes - (size_t)used, "(%lld x %s%s%s)", (long long)call->count,
                     pypto_dtype_name((pypto_dtype)call->dtype), more, target);
    if (f != NULL && (size_t)used < bytes)
        snprintf(text + used, bytes - (size_t)used, " in %s at %s:%d", f->name, f->file,
                 record->line);
}

static void fail_mismatch(const collective *c, int32_t peer)
{
    char mine[CALL_TEXT], theirs[CALL_TEXT];
    const channel_record *other = (const channel_record *)(const void *)peer_address(
        c->comm, c->window, (const char *)c->record, peer);
    describe_call(c, c->record, mine, sizeof mine);
    describe_call(c, other, theirs, sizeof theirs);
    task_fail(c->core, DIAG_COLLECTIVE_MISMATCH,
              "ranks disagree about a collective: rank %d calls %s; rank %d calls %s",
              c->comm->rank, mine, peer, theirs);
}
