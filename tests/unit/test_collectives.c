/* Collectives under the compiler: folds against their rules; random sequences of all collectives with random sizes,
 * element types and delays, on one signal and one window, each result checked element by element inside of
 * the kernels; what ranks that disagree are told; what a kernel in C can get wrong. */
#include "collective/channel.h"
#include "collective/fold.h"

#include <pypto/pypto.h>

#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "worker_sets.h"

/* ---- random numbers ---- */

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int64_t below(uint64_t *state, int64_t limit)
{
    return (int64_t)(next_random(state) % (uint64_t)limit);
}

/* ---- folds ---- */

static uint32_t folded(pypto_dtype dtype, pld_reduce_op op, const void *const *values,
                       int32_t count)
{
    const char *sources[PYPTO_MAX_RANKS];
    for (int32_t i = 0; i < count; ++i)
        sources[i] = values[i];
    uint32_t result = 0;
    char *target = (char *)&result;
    fold_of(dtype, op)->run(sources, count, &target, 1, 1);
    return result;
}

static uint32_t folded_floats(pld_reduce_op op, float a, float b)
{
    return folded(PYPTO_FP32, op, (const void *const[]){&a, &b}, 2);
}

static void test_nan_and_zero_follow_the_rules(void **state)
{
    (void)state;
    const float nan = pld_bits_float(0xffc12345u);
    static const pld_reduce_op ops[] = {PLD_SUM, PLD_MAX, PLD_MIN, PLD_PROD};
    for (int i = 0; i < 4; ++i) {
        assert_int_equal(folded_floats(ops[i], nan, 1.0f), 0x7fc00000u);
        assert_int_equal(folded_floats(ops[i], 1.0f, nan), 0x7fc00000u);
        assert_int_equal(folded_floats(ops[i], nan, nan), 0x7fc00000u);
    }
    assert_int_equal(folded_floats(PLD_SUM, INFINITY, -INFINITY), 0x7fc00000u);
    assert_int_equal(folded_floats(PLD_MAX, 0.0f, -0.0f), 0);
    assert_int_equal(folded_floats(PLD_MAX, -0.0f, 0.0f), 0);
    assert_int_equal(folded_floats(PLD_MIN, 0.0f, -0.0f), 0x80000000u);
    assert_int_equal(folded_floats(PLD_MIN, -0.0f, 0.0f), 0x80000000u);
    assert_int_equal(folded_floats(PLD_MAX, -0.0f, -0.0f), 0x80000000u);
    assert_int_equal(folded_floats(PLD_SUM, -0.0f, -0.0f), 0x80000000u);
}

static void test_halves_are_rounded_once(void **state)
{
    (void)state;
    /* 2048 + 1 + 1: step by step in FP16 it stays 2048. */
    const uint16_t large = pld_float_to_fp16(2048.0f), one = pld_float_to_fp16(1.0f);
    const uint32_t sum = folded(PYPTO_FP16, PLD_SUM, (const void *const[]){&large, &one, &one}, 3);
    assert_int_equal(sum, pld_float_to_fp16(2050.0f));
    const uint16_t big = pld_float_to_bf16(256.0f), unit = pld_float_to_bf16(1.0f);
    const uint32_t sum2 = folded(PYPTO_BF16, PLD_SUM, (const void *const[]){&big, &unit, &unit}, 3);
    assert_int_equal(sum2, pld_float_to_bf16(258.0f));
}

static void test_integers_wrap(void **state)
{
    (void)state;
    const int8_t a = 127, b = 1;
    assert_int_equal((int8_t)folded(PYPTO_INT8, PLD_SUM, (const void *const[]){&a, &b}, 2), -128);
    const uint16_t x = 65535, y = 65535;
    assert_int_equal(folded(PYPTO_UINT16, PLD_PROD, (const void *const[]){&x, &y}, 2), 1);
    const int32_t low = INT32_MIN, minus = -1;
    assert_int_equal((int32_t)folded(PYPTO_INT32, PLD_SUM, (const void *const[]){&low, &minus}, 2),
                     INT32_MAX);
    assert_null(fold_of(PYPTO_BOOL, PLD_SUM));
    assert_null(fold_of(PYPTO_FP4, PLD_SUM));
    assert_null(fold_of(PYPTO_FP32, (pld_reduce_op)9));
}

/* Sources and targets of a fold, in one block that begins where the test likes. */
enum { FOLD_SOURCES = 3, FOLD_BYTES = 648 };

typedef const fold *(*fold_set)(pypto_dtype dtype, pld_reduce_op op);

static void check_set(fold_set set, pypto_dtype dtype, pld_reduce_op op, int64_t count,
                      int64_t shift, uint64_t *random)
{
    static char inputs[FOLD_SOURCES][FOLD_BYTES], results[FOLD_SOURCES][FOLD_BYTES];
    static char expected[FOLD_BYTES];
    const char *sources[FOLD_SOURCES];
    char *target = expected, *targets[FOLD_SOURCES];
    for (int s = 0; s < FOLD_SOURCES; ++s) {
        for (size_t i = 0; i < FOLD_BYTES; ++i)
            inputs[s][i] = (char)below(random, 256);
        sources[s] = inputs[s] + shift;
        targets[s] = results[s] + shift;
    }
    const size_t bytes = (size_t)(count * set(dtype, op)->width);
    fold_of_any_cpu(dtype, op)->run(sources, FOLD_SOURCES, &target, 1, count);
    memcpy(results, inputs, sizeof results);
    set(dtype, op)->run((const char *const *)targets, FOLD_SOURCES, targets, FOLD_SOURCES, count);
    for (int s = 0; s < FOLD_SOURCES; ++s) {
        if (memcmp(expected, targets[s], bytes) != 0)
            fail_msg("dtype %d op %d count %lld target %d", (int)dtype, (int)op, (long long)count,
                     s);
        memcpy(targets[s], inputs[s] + shift, bytes);
    }
    assert_memory_equal(results, inputs, sizeof results);
}

/* Every bit pattern counts as an element. The loops for wider vectors give the bits of those for any CPU, whatever
 * the count, wherever the memory begins, also in place, and touch nothing behind. */
static void test_vectors_do_not_change_bits(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 2, 3, 4, 5, 7, 14, 16, 17, 31, 33, 64, 79};
    fold_set sets[3] = {fold_of, fold_of_any_cpu};
    int set_count = 2;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2"))
        sets[set_count++] = fold_of_avx2;
#endif
    uint64_t random = 20;
    for (pypto_dtype dtype = 0; dtype < PYPTO_DTYPE_COUNT; ++dtype)
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; ++c)
            for (pld_reduce_op op = PLD_SUM; op <= PLD_PROD && fold_of(dtype, op) != NULL; ++op)
                for (int s = 0; s < set_count; ++s)
                    check_set(sets[s], dtype, op, counts[c], (int64_t)(c % 2) * 8, &random);
}

/* ---- random sequences ---- */

#define TARGET_BYTES (1 << 19)
#define WINDOW_BYTES (2 * TARGET_BYTES)

typedef struct plan {
    collective_kind kind;
    pypto_dtype dtype;
    pld_reduce_op op;
    int64_t count; /* per part */
    int64_t root;
    int64_t seed;
    bool private_input;
} plan;

/* Of a sequence in which most are broadcasts of a few bytes. */
#define BROADCASTS_FROM 1000

static plan pick_plan(uint64_t *state, int32_t ranks, bool broadcasts)
{
    static const int64_t counts[] = {1, 2, 5, 7, 14, 15, 17, 31, 100, 255, 512, 513, 1025, 4097};
    static const pypto_dtype dtypes[] = {PYPTO_INT8,  PYPTO_UINT8, PYPTO_INT16,
                                         PYPTO_INT32, PYPTO_INT64, PYPTO_UINT64,
                                         PYPTO_FP16,  PYPTO_BF16,  PYPTO_FP32};
    plan p = {.kind = (collective_kind)(1 + below(state, COLLECTIVE_ALL_TO_ALL_V)),
              .dtype = dtypes[below(state, (int64_t)(sizeof dtypes / sizeof dtypes[0]))],
              .op = (pld_reduce_op)below(state, 4),
              .count = counts[below(state, (int64_t)(sizeof counts / sizeof counts[0]))],
              .root = below(state, ranks),
              .seed = below(state, 1000),
              .private_input = below(state, 4) == 0};
    if (broadcasts && below(state, 40) > 0) {
        p.kind = COLLECTIVE_BROADCAST;
        p.count = below(state, 3) == 0 ? p.count : p.count % 7 + 1;
    }
    while (p.count * pypto_dtype_bytes(p.dtype) * ranks > TARGET_BYTES)
        p.count /= 2;
    return p;
}

/* Small whole numbers: sums and products of eight are exact in every type. */
static int64_t value_of(const plan *p, int64_t rank, int64_t i)
{
    static const int64_t values[] = {1, 2, 1, -1, 1, -2, 1};
    return values[(uint64_t)(p->seed + 3 * rank + 5 * i + i / 7) % 7];
}

static int64_t combine(pld_reduce_op op, int64_t a, int64_t b)
{
    switch (op) {
    case PLD_SUM: return a + b;
    case PLD_MAX: return a > b ? a : b;
    case PLD_MIN: return a < b ? a : b;
    case PLD_PROD: break;
    }
    return a * b;
}

static void write_element(char *at, pypto_dtype dtype, int64_t value)
{
    const float real = (float)value;
    const uint16_t half = dtype == PYPTO_BF16 ? pld_float_to_bf16(real) : pld_float_to_fp16(real);
    if (dtype == PYPTO_FP32)
        memcpy(at, &real, sizeof real);
    else if (dtype == PYPTO_FP16 || dtype == PYPTO_BF16)
        memcpy(at, &half, sizeof half);
    else
        memcpy(at, &value, (size_t)pypto_dtype_bytes(dtype)); /* little-endian, as all of this is */
}

static bool element_is(const char *at, pypto_dtype dtype, int64_t value)
{
    char expected[8];
    write_element(expected, dtype, value);
    return memcmp(at, expected, (size_t)pypto_dtype_bytes(dtype)) == 0;
}

/* Unsigned types fold other values than int64_t shows: -1 is large. */
static int64_t folded_value(const plan *p, int32_t ranks, int64_t i)
{
    int64_t result = value_of(p, 0, i);
    for (int32_t r = 1; r < ranks; ++r) {
        const int64_t next = value_of(p, r, i);
        const bool unsigned_order = (p->dtype == PYPTO_UINT8 || p->dtype == PYPTO_UINT64) &&
                                    (p->op == PLD_MAX || p->op == PLD_MIN);
        if (unsigned_order)
            result = ((uint64_t)result > (uint64_t)next) == (p->op == PLD_MAX) ? result : next;
        else
            result = combine(p->op, result, next);
    }
    return result;
}

static pld_tensor part_of(const pld_tensor *window, int64_t at, pypto_dtype dtype, int32_t ndim,
                          int64_t rows, int64_t columns)
{
    pld_tensor t = *window;
    t.data += at;
    t.dtype = (int32_t)dtype;
    t.ndim = ndim;
    t.shape[0] = ndim == 1 ? columns : rows;
    t.stride[0] = ndim == 1 ? 1 : columns;
    t.shape[1] = columns;
    t.stride[1] = 1;
    return t;
}

static void fill(const pld_tensor *t, const plan *p, int64_t rank, int64_t from)
{
    const int64_t width = pypto_dtype_bytes(p->dtype);
    for (int64_t i = 0; i < tensor_elements(t); ++i)
        write_element(t->data + i * width, p->dtype, value_of(p, rank, from + i));
}

static void expect(pld_core *core, const plan *p, const pld_tensor *t, int64_t i, int64_t value)
{
    if (!element_is(t->data + i * pypto_dtype_bytes(p->dtype), p->dtype, value))
        pld_fail(core, "kind %d op %d dtype %d count %lld: element %lld is not %lld", (int)p->kind,
                 (int)p->op, (int)p->dtype, (long long)p->count, (long long)i, (long long)value);
}

static void linger(uint64_t *own)
{
    for (int64_t n = below(own, 4) == 0 ? below(own, 4) : 0; n > 0; --n)
        sched_yield();
}

enum { DATA, SIGNAL, SEED, ROUNDS };

static void run_plan(pld_core *core, const plan *p, const pld_tensor *data,
                     const pld_tensor *signal, uint64_t *own)
{
    const pld_comm *comm = pld_get_comm(core, data);
    const int32_t P = comm->nranks, me = comm->rank;
    const bool parts = p->kind >= COLLECTIVE_ALLGATHER;
    pld_tensor target = part_of(data, 0, p->dtype, parts ? 2 : 1, P, p->count);
    pld_tensor input =
        part_of(data, TARGET_BYTES, p->dtype, 2, p->kind == COLLECTIVE_ALLGATHER ? 1 : P, p->count);
    if (p->private_input)
        input = pld_create_tensor(core, (int32_t)p->dtype, 2, input.shape, 0.0);
    linger(own);
    switch (p->kind) {
    case COLLECTIVE_BARRIER: pld_barrier(core, signal); break;
    case COLLECTIVE_ALLREDUCE:
        fill(&target, p, me, 0);
        pld_allreduce(core, &target, signal, p->op, PLD_MESH);
        for (int64_t i = 0; i < p->count; ++i)
            expect(core, p, &target, i, folded_value(p, P, i));
        break;
    case COLLECTIVE_BROADCAST:
        fill(&target, p, me, 0);
        pld_broadcast(core, &target, signal, p->root);
        for (int64_t i = 0; i < p->count; ++i)
            expect(core, p, &target, i, value_of(p, p->root, i));
        break;
    case COLLECTIVE_REDUCE_SCATTER:
        fill(&target, p, me, 0);
        pld_reduce_scatter(core, &target, signal, p->op);
        for (int64_t i = 0; i < p->count * P; ++i)
            expect(core, p, &target, i,
                   i / p->count == me ? folded_value(p, P, i) : value_of(p, me, i));
        break;
    case COLLECTIVE_ALLGATHER:
        fill(&input, p, me, 0);
        pld_allgather(core, &input, &target, signal);
        for (int64_t i = 0; i < p->count * P; ++i)
            expect(core, p, &target, i, value_of(p, i / p->count, i % p->count));
        break;
    case COLLECTIVE_ALL_TO_ALL:
        fill(&input, p, me, 0);
        pld_all_to_all(core, &input, &target, signal);
        for (int64_t i = 0; i < p->count * P; ++i)
            expect(core, p, &target, i, value_of(p, i / p->count, me * p->count + i % p->count));
        break;
    case COLLECTIVE_ALL_TO_ALL_V: {
        int32_t counts[PYPTO_MAX_RANKS];
        for (int32_t r = 0; r < P; ++r)
            counts[r] = (r + me) % 3; /* blocks have one row: 2 becomes 1 */
        pld_tensor send = {
            .data = (char *)counts, .dtype = PYPTO_INT32, .ndim = 1, .shape = {P}, .stride = {1}};
        pld_tensor received = part_of(data, 2 * TARGET_BYTES, PYPTO_INT32, 2, P, 1);
        fill(&input, p, me, 0);
        pld_all_to_all_v(core, &input, &target, signal, &send, &received);
        for (int32_t r = 0; r < P; ++r)
            if (((const int32_t *)(const void *)received.data)[r] != ((r + me) % 3 > 0))
                pld_fail(core, "count of %d is wrong", r);
        for (int64_t i = 0; i < p->count * P; ++i)
            expect(core, p, &target, i, value_of(p, i / p->count, me * p->count + i % p->count));
        break;
    }
    }
    linger(own);
}

#define ONLY_BARRIERS 0
#define ONLY_BROADCASTS (-1)

static void broadcast_number(pld_core *core, const pld_tensor *data, const pld_tensor *signal,
                             int64_t number)
{
    const pld_comm *comm = pld_get_comm(core, data);
    pld_tensor x = part_of(data, 0, PYPTO_INT64, 1, 0, 1);
    const int64_t root = number / 3 % comm->nranks;
    const int64_t mine = root == comm->rank ? number : -1;
    memcpy(x.data, &mine, sizeof mine);
    pld_broadcast(core, &x, signal, root);
    if (memcmp(x.data, &number, sizeof number) != 0)
        pld_fail(core, "broadcast %lld has brought something else", (long long)number);
}

static void sequence_kernel(pld_core *core, const pld_arg *args)
{
    const pld_tensor *data = args[DATA].tensor;
    const pld_comm *comm = pld_get_comm(core, data);
    if (args[SEED].integer == ONLY_BARRIERS) {
        for (int64_t i = 0; i < args[ROUNDS].integer; ++i)
            pld_barrier(core, args[SIGNAL].tensor);
        return;
    }
    if (args[SEED].integer == ONLY_BROADCASTS) {
        for (int64_t i = 0; i < args[ROUNDS].integer; ++i)
            broadcast_number(core, data, args[SIGNAL].tensor, i);
        return;
    }
    uint64_t common = (uint64_t)args[SEED].integer * 2654435761u + 1;
    uint64_t own = common + (uint64_t)comm->rank * 977;
    for (int64_t i = 0; i < args[ROUNDS].integer; ++i) {
        const plan p = pick_plan(&common, comm->nranks, args[SEED].integer >= BROADCASTS_FROM);
        run_plan(core, &p, data, args[SIGNAL].tensor, &own);
    }
}

/* ---- mistakes ---- */

typedef enum mistake {
    OTHER_KIND,
    OTHER_OP,
    OTHER_COUNT,
    OTHER_ROOT,
    OTHER_ORDER,
    NOT_JOINED,
    OTHER_SIGNAL,
    SIGNAL_NOT_ZERO,
    BAD_ROOT,
    SIGNAL_TOO_SHORT,
    NO_RING,
    SHARED_MEMORY,
    GAPS,
    NO_ARITHMETIC,
    NEGATIVE_COUNT,
    COUNTS_IN_TARGET,
    COUNTS_IN_INPUT,
    COUNTS_IN_PLACE,
    UNEVEN,
    BEGINS_INSIDE,
    /* In rooted rounds. */
    BOTH_ROOTS,
    BOTH_ROOTS_BEFORE_BARRIER,
    EACH_OTHERS_RECEIVER,
    NOT_RECEIVED,
    NEVER_SENT,
    LONGER_AT_THE_ROOT,
    ANOTHER_BEFORE,
    ONE_MORE,
    BARRIER_AT_THE_ROOT,
    HELD_UP_ONLY,
    MISTAKE_COUNT
} mistake;

static void mistaken_broadcasts(pld_core *core, mistake what, const pld_tensor *data,
                                const pld_tensor *signal)
{
    const pld_comm *comm = pld_get_comm(core, data);
    const bool odd = comm->rank == 1;
    pld_tensor x = part_of(data, 0, PYPTO_FP32, 1, 0, 8);
    for (int64_t i = 0; i < 3; ++i)
        broadcast_number(core, data, signal, i);
    switch (what) {
    case BOTH_ROOTS: pld_broadcast(core, &x, signal, comm->rank); break;
    case BOTH_ROOTS_BEFORE_BARRIER:
        pld_broadcast(core, &x, signal, comm->rank);
        pld_broadcast(core, &x, signal, comm->rank);
        pld_barrier(core, signal);
        break;
    case EACH_OTHERS_RECEIVER: pld_broadcast(core, &x, signal, 1 - comm->rank); break;
    case NOT_RECEIVED:
        if (!odd)
            pld_broadcast(core, &x, signal, 0);
        break;
    case NEVER_SENT:
        if (odd)
            pld_broadcast(core, &x, signal, 0);
        break;
    case LONGER_AT_THE_ROOT:
        x.shape[0] = odd ? 7 : 8;
        pld_broadcast(core, &x, signal, 0);
        break;
    case ANOTHER_BEFORE:
        /* The root of the last one finds nothing wrong with it. */
        x.shape[0] = odd ? 100 : 101;
        pld_broadcast(core, &x, signal, comm->rank);
        x.shape[0] = 8;
        pld_broadcast(core, &x, signal, 1);
        break;
    case ONE_MORE:
        for (int64_t i = 0; i < (odd ? 6 : 5); ++i)
            pld_broadcast(core, &x, signal, 1);
        pld_allreduce(core, &x, signal, PLD_SUM, PLD_MESH);
        break;
    case BARRIER_AT_THE_ROOT:
        if (!odd)
            pld_barrier(core, signal);
        pld_broadcast(core, &x, signal, 0);
        break;
    case HELD_UP_ONLY:
        /* Rank 0 waits for a broadcast of rank 1, which waits for a signal. */
        if (odd) {
            pld_tensor cells = part_of(data, 2 * TARGET_BYTES, PYPTO_INT32, 2, comm->nranks, 1);
            pld_wait(core, &cells, PLD_AT(0, 0), 1, PLD_GE);
        }
        pld_broadcast(core, &x, signal, 1);
        break;
    default: break;
    }
}

static void mistaken_kernel(pld_core *core, const pld_arg *args)
{
    const pld_tensor *data = args[DATA].tensor, *signal = args[SIGNAL].tensor;
    const pld_comm *comm = pld_get_comm(core, data);
    const bool odd = comm->rank == 1;
    pld_tensor x = part_of(data, 0, PYPTO_FP32, 1, 0, 256);
    pld_tensor grid = part_of(data, 0, PYPTO_FP32, 2, comm->nranks, 16);
    pld_tensor other = part_of(data, TARGET_BYTES, PYPTO_FP32, 2, comm->nranks, 16);
    pld_tensor counts = part_of(data, 2 * TARGET_BYTES, PYPTO_INT32, 2, comm->nranks, 1);
    pld_tensor short_signal = *signal;
    int32_t negative[PYPTO_MAX_RANKS] = {1, -3}, positive[PYPTO_MAX_RANKS] = {1, 1};
    pld_tensor send = {.data = (char *)negative,
                       .dtype = PYPTO_INT32,
                       .ndim = 1,
                       .shape = {comm->nranks},
                       .stride = {1}};
    switch ((mistake)args[SEED].integer) {
    case OTHER_KIND:
        if (odd)
            pld_barrier(core, signal);
        else
            pld_allreduce(core, &x, signal, PLD_SUM, PLD_MESH);
        break;
    case OTHER_OP: pld_allreduce(core, &x, signal, odd ? PLD_MAX : PLD_SUM, PLD_MESH); break;
    case OTHER_COUNT:
        x.shape[0] = odd ? 255 : 256;
        pld_allreduce(core, &x, signal, PLD_SUM, PLD_MESH);
        break;
    case OTHER_ROOT: pld_broadcast(core, &x, signal, odd ? 1 : 0); break;
    case OTHER_ORDER:
        pld_barrier(core, signal);
        if (odd)
            pld_broadcast(core, &x, signal, 0);
        pld_reduce_scatter(core, &grid, signal, PLD_SUM);
        if (!odd)
            pld_broadcast(core, &x, signal, 0);
        break;
    case NOT_JOINED:
        if (!odd)
            pld_barrier(core, signal);
        break;
    case OTHER_SIGNAL:
        short_signal.data += 4 * (odd ? comm->nranks : 0);
        short_signal.shape[0] = comm->nranks;
        pld_barrier(core, &short_signal);
        break;
    case SIGNAL_NOT_ZERO:
        if (odd)
            pld_notify(core, signal, 1, PLD_AT(0, 0), 7, PLD_SET);
        pld_barrier(core, signal);
        break;
    case BAD_ROOT: pld_broadcast(core, &x, signal, 5); break;
    case SIGNAL_TOO_SHORT:
        short_signal.shape[0] = 1;
        pld_barrier(core, &short_signal);
        break;
    case NO_RING: pld_allreduce(core, &x, signal, PLD_SUM, PLD_RING); break;
    case SHARED_MEMORY: pld_all_to_all(core, &grid, &grid, signal); break;
    case GAPS:
        grid.stride[0] = 17;
        pld_reduce_scatter(core, &grid, signal, PLD_SUM);
        break;
    case NO_ARITHMETIC:
        x.dtype = PYPTO_BOOL;
        pld_allreduce(core, &x, signal, PLD_SUM, PLD_MESH);
        break;
    case NEGATIVE_COUNT: pld_all_to_all_v(core, &other, &grid, signal, &send, &counts); break;
    case COUNTS_IN_TARGET:
        counts.data = grid.data;
        send.data = (char *)positive;
        pld_all_to_all_v(core, &other, &grid, signal, &send, &counts);
        break;
    case COUNTS_IN_INPUT:
        counts.data = other.data + 4;
        send.data = (char *)positive;
        pld_all_to_all_v(core, &other, &grid, signal, &send, &counts);
        break;
    case COUNTS_IN_PLACE: pld_all_to_all_v(core, &other, &grid, signal, &counts, &counts); break;
    case UNEVEN:
        grid.shape[0] = comm->nranks + 1;
        pld_reduce_scatter(core, &grid, signal, PLD_SUM);
        break;
    case BEGINS_INSIDE:
        short_signal.data += 4 * 3 * comm->nranks;
        short_signal.shape[0] = comm->nranks;
        pld_barrier(core, &short_signal);
        break;
    default: mistaken_broadcasts(core, (mistake)args[SEED].integer, data, signal); break;
    }
}

/* ---- tables ---- */

static const pld_param step_params[] = {
    {.name = "data", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "signal", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "seed", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
    {.name = "rounds", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};

#define FUNCTION(variable, text, plane_, run_)                 \
    static const pld_function variable = {.name = text,        \
                                          .file = "kernels.c", \
                                          .line = 1,           \
                                          .plane = plane_,     \
                                          .run = run_,         \
                                          .nparams = 4,        \
                                          .params = step_params}
FUNCTION(sequence_function, "sequence", PLD_PLANE_CORE, sequence_kernel);
FUNCTION(mistaken_function, "mistaken", PLD_PLANE_CORE, mistaken_kernel);

static void wrapper(pld_core *core, const pld_arg *args)
{
    pld_submit(core, args[ROUNDS].integer > 0 ? &sequence_function : &mistaken_function, args, 4);
}

FUNCTION(chip_function, "chip", PLD_PLANE_CHIP, wrapper);

static void host_function(pld_host *host, const pld_arg *args)
{
    const int64_t ranks = pld_world_size(host);
    const uint64_t all = pld_all_devices(host);
    const pld_buffer data_buf = pld_alloc_window(host, 0, WINDOW_BYTES + 4 * ranks, all);
    const pld_buffer signal_buf = pld_alloc_window(host, 1, 4 * 4 * ranks, all);
    pld_tensor data =
        pld_window_view(host, data_buf, PYPTO_INT8, 1, PLD_EXTENTS(WINDOW_BYTES + 4 * ranks));
    pld_tensor signal = pld_window_view(host, signal_buf, PYPTO_INT32, 2, PLD_EXTENTS(ranks, 1));
    for (int64_t r = 0; r < ranks; ++r)
        pld_dispatch(host, r, &chip_function,
                     PLD_ARGS(PLD_TENSOR(&data), PLD_TENSOR(&signal), PLD_INT(args[0].integer),
                              PLD_INT(args[1].integer)),
                     4);
}

static const pld_param entry_params[] = {
    {.name = "seed", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
    {.name = "rounds", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};
static const pld_function host_entry = {.name = "host",
                                        .file = "host.c",
                                        .line = 1,
                                        .plane = PLD_PLANE_HOST,
                                        .run_host = host_function,
                                        .nparams = 2,
                                        .params = entry_params};
static const pld_function *const functions[] = {&sequence_function, &mistaken_function,
                                                &chip_function, &host_entry};

#define PROGRAM(variable, marks, only)                                                        \
    static const pld_buffer_info variable##_buffers[] = {{"data_buf", 1, PLD_NO_COLLECTIVES}, \
                                                         {"signal_buf", 2, marks}};           \
    static const pld_program variable = {.abi = PLD_ABI,                                      \
                                         .size = sizeof(pld_program),                         \
                                         .name = "collectives",                               \
                                         .nfunctions = 4,                                     \
                                         .host = 3,                                           \
                                         .functions = functions,                              \
                                         .nbuffers = 2,                                       \
                                         .collectives_only = (only),                          \
                                         .buffers = variable##_buffers}
PROGRAM(many_signals, PLD_MANY_SIGNALS, 0);
PROGRAM(one_signal, PLD_ONE_SIGNAL, 1);
PROGRAM(no_signal, PLD_NO_COLLECTIVES, 0);

/* ---- running ---- */

static pypto_status run(pypto_worker *worker, const pld_program *table, int64_t seed,
                        int64_t rounds)
{
    pypto_program *program = NULL;
    pypto_status status = pypto_program_from_table(table, &program);
    const pypto_argument arguments[] = {{.kind = PLD_ARG_INT, .integer = seed},
                                        {.kind = PLD_ARG_INT, .integer = rounds}};
    if (status.kind == PYPTO_ERROR_NONE)
        status = pypto_worker_run(worker, program, arguments, 2);
    pypto_program_release(program);
    return status;
}

static void test_random_sequences(void **state)
{
    (void)state;
    static const int32_t rank_counts[] = {1, 2, 3, 4, 8};
    for (int s = 0; s < START_COUNT; ++s)
        for (size_t k = 0; k < sizeof rank_counts / sizeof rank_counts[0]; ++k) {
            pypto_worker *worker = make_set(starts[s], rank_counts[k], 0, NULL);
            for (int64_t seed = 1; seed <= 4; ++seed) {
                pypto_status status =
                    run(worker, seed % 2 == 0 ? &many_signals : &one_signal, seed, 40);
                if (status.kind != PYPTO_ERROR_NONE)
                    fail_msg("%d ranks: %s", rank_counts[k], pypto_status_text(&status));
            }
            pypto_worker_close(worker);
        }
}

/* Rooted rounds, until there is no room for more, and other collectives in between. */
static void test_broadcasts_in_a_row(void **state)
{
    (void)state;
    static const int32_t rank_counts[] = {2, 3, 8};
    for (int s = 0; s < START_COUNT; ++s)
        for (size_t k = 0; k < sizeof rank_counts / sizeof rank_counts[0]; ++k) {
            pypto_worker *worker = make_set(starts[s], rank_counts[k], 0, NULL);
            for (int64_t seed = BROADCASTS_FROM; seed < BROADCASTS_FROM + 4; ++seed) {
                pypto_status status = run(worker, &one_signal, seed, 300);
                if (status.kind != PYPTO_ERROR_NONE)
                    fail_msg("%d ranks: %s", rank_counts[k], pypto_status_text(&status));
            }
            pypto_worker_close(worker);
        }
}

static void test_sixty_four_ranks(void **state)
{
    (void)state;
    pypto_worker *worker = make_set(PYPTO_START_THREAD, 64, 0, NULL);
    pypto_status status = run(worker, &one_signal, 77, 16);
    if (status.kind == PYPTO_ERROR_NONE)
        status = run(worker, &one_signal, BROADCASTS_FROM + 77, 80);
    if (status.kind != PYPTO_ERROR_NONE)
        fail_msg("%s", pypto_status_text(&status));
    pypto_worker_close(worker);
}

static void test_many_rounds_on_one_signal(void **state)
{
    (void)state;
    pypto_worker *worker = make_set(PYPTO_START_THREAD, 2, 0, NULL);
    pypto_status status = run(worker, &one_signal, ONLY_BARRIERS, 70000);
    if (status.kind == PYPTO_ERROR_NONE)
        status = run(worker, &one_signal, ONLY_BROADCASTS, 70000);
    if (status.kind != PYPTO_ERROR_NONE)
        fail_msg("%s", pypto_status_text(&status));
    pypto_worker_close(worker);
}

static void expect_failure(pypto_worker *worker, const pld_program *table, int64_t seed,
                           pypto_error_kind kind, const char *const *words)
{
    pypto_status status = run(worker, table, seed, 0);
    char *text = pypto_status_text(&status);
    if (status.kind != kind)
        fail_msg("case %d: kind %d: %s", (int)seed, (int)status.kind, text);
    for (int i = 0; i < 3 && words[i] != NULL; ++i)
        if (strstr(text, words[i]) == NULL)
            fail_msg("case %d: '%s' is not in: %s", (int)seed, words[i], text);
    free(text);
    pypto_status_clear(&status);
}

typedef struct mistake_case {
    mistake what;
    pypto_error_kind kind;
    const char *words[3];
} mistake_case;

static void tell_mistakes(const pld_program *table, const mistake_case *cases, size_t count)
{
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *worker = make_set(starts[s], 2, 0, NULL);
        for (size_t i = 0; i < count; ++i) {
            expect_failure(worker, table, cases[i].what, cases[i].kind, cases[i].words);
            pypto_status status = run(worker, table, 3, 3); /* the set goes on */
            if (status.kind != PYPTO_ERROR_NONE)
                fail_msg("after case %d: %s", (int)cases[i].what, pypto_status_text(&status));
        }
        pypto_worker_close(worker);
    }
}

static void test_mistakes_are_told(void **state)
{
    (void)state;
    static const mistake_case cases[] = {
        {OTHER_KIND,
         PYPTO_ERROR_COLLECTIVE_MISMATCH,
         {"calls allreduce(256 x fp32, op=Sum, mode=mesh, window 'data_buf' from byte 0) in mistaken at kernels.c:",
          "calls barrier in mistaken at kernels.c:"}},
        {OTHER_OP, PYPTO_ERROR_COLLECTIVE_MISMATCH, {"op=Sum", "op=Max"}},
        {OTHER_COUNT, PYPTO_ERROR_COLLECTIVE_MISMATCH, {"256 x fp32", "255 x fp32"}},
        {OTHER_ROOT, PYPTO_ERROR_COLLECTIVE_MISMATCH, {"root=0", "root=1"}},
        {OTHER_ORDER, PYPTO_ERROR_COLLECTIVE_MISMATCH, {"broadcast(", "reduce_scatter("}},
        {NOT_JOINED,
         PYPTO_ERROR_COLLECTIVE_MISMATCH,
         {"is in barrier on signal 'signal_buf' at kernels.c:",
          "but rank 1 has ended its part of the call"}},
        {OTHER_SIGNAL,
         PYPTO_ERROR_COLLECTIVE_MISMATCH,
         {"rank 0 is in barrier on signal 'signal_buf'", "but rank 1 is in barrier"}},
        {SIGNAL_NOT_ZERO, PYPTO_ERROR_DEVICE, {"cell 0 of signal window 'signal_buf'", "is 7"}},
        {BAD_ROOT, PYPTO_ERROR_DEVICE, {"root (5) must be a valid rank in [0, 2)"}},
        {SIGNAL_TOO_SHORT, PYPTO_ERROR_DEVICE, {"is no signal for 2 ranks"}},
        {NO_RING, PYPTO_ERROR_DEVICE, {"does not fit 2 ranks", "[2*(P-1), P]"}},
        {SHARED_MEMORY, PYPTO_ERROR_DEVICE, {"share memory"}},
        {COUNTS_IN_TARGET, PYPTO_ERROR_DEVICE, {"share memory"}},
        {COUNTS_IN_INPUT, PYPTO_ERROR_DEVICE, {"share memory"}},
        {COUNTS_IN_PLACE, PYPTO_ERROR_DEVICE, {"share memory"}},
        {GAPS, PYPTO_ERROR_DEVICE, {"requires a packed source"}},
        {NO_ARITHMETIC, PYPTO_ERROR_DEVICE, {"cannot be reduced"}},
        {NEGATIVE_COUNT, PYPTO_ERROR_DEVICE, {"send_counts[1] is -3"}},
        {UNEVEN, PYPTO_ERROR_DEVICE, {"does not have a part for each of 2 ranks"}},
    };
    tell_mistakes(&many_signals, cases, sizeof cases / sizeof cases[0]);
}

static void test_mistakes_in_rooted_rounds_are_told(void **state)
{
    (void)state;
    static const mistake_case cases[] = {
        {BOTH_ROOTS,
         PYPTO_ERROR_COLLECTIVE_MISMATCH,
         {"rank 0 calls broadcast(8 x fp32, root=0, window 'data_buf' from byte 0) in mistaken at kernels.c:",
          "; rank 1 calls broadcast(8 x fp32, root=1, "}},
        {BOTH_ROOTS_BEFORE_BARRIER,
         PYPTO_ERROR_COLLECTIVE_MISMATCH,
         {"calls broadcast(8 x fp32, root=0", "calls broadcast(8 x fp32, root=1"}},
        {EACH_OTHERS_RECEIVER,
         PYPTO_ERROR_COLLECTIVE_MISMATCH,
         {"rank 0 calls broadcast(8 x fp32, root=1", "rank 1 calls broadcast(8 x fp32, root=0"}},
        {NOT_RECEIVED,
         PYPTO_ERROR_COLLECTIVE_MISMATCH,
         {"rank 0 calls broadcast(8 x fp32, root=0", "rank 1 has ended its part of the call"}},
        {NEVER_SENT,
         PYPTO_ERROR_COLLECTIVE_MISMATCH,
         {"rank 1 is in broadcast on signal 'signal_buf' at kernels.c:",
          "but rank 0 has ended its part of the call"}},
        {LONGER_AT_THE_ROOT,
         PYPTO_ERROR_COLLECTIVE_MISMATCH,
         {"rank 1 calls broadcast(7 x fp32, root=0", "rank 0 calls broadcast(8 x fp32, root=0"}},
        {ANOTHER_BEFORE,
         PYPTO_ERROR_COLLECTIVE_MISMATCH,
         {"rank 0 calls broadcast(101 x fp32, root=0",
          "rank 1 calls broadcast(100 x fp32, root=1"}},
        {ONE_MORE,
         PYPTO_ERROR_COLLECTIVE_MISMATCH,
         {"calls allreduce(8 x fp32", "calls broadcast(8 x fp32, root=1"}},
        {BARRIER_AT_THE_ROOT,
         PYPTO_ERROR_COLLECTIVE_MISMATCH,
         {"calls barrier in mistaken at kernels.c:", "calls broadcast(8 x fp32, root=0"}},
        {HELD_UP_ONLY, PYPTO_ERROR_DEADLOCK, {"is in broadcast on signal 'signal_buf'"}},
    };
    tell_mistakes(&one_signal, cases, sizeof cases / sizeof cases[0]);
}

static void test_buffers_must_be_marked(void **state)
{
    (void)state;
    pypto_worker *worker = make_set(PYPTO_START_THREAD, 2, 0, NULL);
    expect_failure(worker, &no_signal, OTHER_ROOT, PYPTO_ERROR_DEVICE,
                   (const char *const[]){"has no channel for a collective", NULL, NULL});
    expect_failure(worker, &one_signal, BEGINS_INSIDE, PYPTO_ERROR_DEVICE,
                   (const char *const[]){"begins inside of a buffer", NULL, NULL});
    pypto_worker_close(worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nan_and_zero_follow_the_rules),
        cmocka_unit_test(test_halves_are_rounded_once),
        cmocka_unit_test(test_integers_wrap),
        cmocka_unit_test(test_vectors_do_not_change_bits),
        cmocka_unit_test(test_random_sequences),
        cmocka_unit_test(test_broadcasts_in_a_row),
        cmocka_unit_test(test_sixty_four_ranks),
        cmocka_unit_test(test_many_rounds_on_one_signal),
        cmocka_unit_test(test_mistakes_are_told),
        cmocka_unit_test(test_mistakes_in_rooted_rounds_are_told),
        cmocka_unit_test(test_buffers_must_be_marked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
