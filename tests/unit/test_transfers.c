/* Transfers under the compiler: the routine that moves boxes, against one that moves them element by
 * element; what a kernel in C can get wrong; and that every kind of write into a peer's signal cell wakes
 * the peer when it is asleep. Under ThreadSanitizer only threads are run. */
#include "base/diag.h"
#include "runtime/box.h"

#include <pypto/pypto.h>

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "child.h"
#include "worker_sets.h"

/* ---- boxes ---- */

static uint64_t random_state = 88172645463325252u;

static int64_t pick(int64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (int64_t)(random_state % (uint64_t)below);
}

#define PLACE_BYTES (1 << 16)

typedef struct random_box {
    int32_t ndim;
    int64_t extents[PYPTO_MAX_DIMS];
    int64_t target_stride[PYPTO_MAX_DIMS];
    int64_t source_stride[PYPTO_MAX_DIMS];
    int64_t target_at; /* elements */
    int64_t source_at;
} random_box;

/* Row-major strides with gaps here and there; returns the elements that it spans. */
static int64_t pick_strides(const random_box *b, int64_t *stride)
{
    int64_t step = 1;
    for (int32_t d = b->ndim - 1; d >= 0; --d) {
        step += pick(3) == 0 ? pick(3) : 0;
        stride[d] = step;
        step *= b->extents[d] > 0 ? b->extents[d] : 1;
    }
    return step;
}

static void pick_box(random_box *b, int64_t elems, bool same)
{
    b->ndim = (int32_t)pick(6);
    for (int32_t d = 0; d < b->ndim; ++d)
        b->extents[d] = pick(20) == 0 ? 0 : 1 + pick(4);
    const int64_t target = pick_strides(b, b->target_stride);
    const int64_t source = same ? target : pick_strides(b, b->source_stride);
    if (same)
        memcpy(b->source_stride, b->target_stride, sizeof b->source_stride);
    b->target_at = pick(elems - target);
    b->source_at = same ? b->target_at + pick(9) - 4 : pick(elems - source);
    if (b->source_at < 0 || b->source_at > elems - source)
        b->source_at = b->target_at;
}

static void add_element(char *target, const char *source, pypto_dtype dtype)
{
    switch (dtype) {
    case PYPTO_INT8: *target = (char)(*target + *source); break;
    case PYPTO_INT16: *(int16_t *)(void *)target += *(const int16_t *)(const void *)source; break;
    case PYPTO_INT32: *(uint32_t *)(void *)target += *(const uint32_t *)(const void *)source; break;
    case PYPTO_UINT64:
        *(uint64_t *)(void *)target += *(const uint64_t *)(const void *)source;
        break;
    default: *(float *)(void *)target += *(const float *)(const void *)source; break;
    }
}

/* As if the whole source had been read first. */
static void move_reference(const random_box *b, char *target, const char *source, int64_t width,
                           box_mode mode, pypto_dtype dtype)
{
    static char copy[PLACE_BYTES];
    memcpy(copy, source, PLACE_BYTES);
    int64_t count = 1;
    for (int32_t d = 0; d < b->ndim; ++d)
        count *= b->extents[d];
    for (int64_t n = 0; n < count; ++n) {
        int64_t rest = n, to = b->target_at, from = b->source_at;
        for (int32_t d = b->ndim - 1; d >= 0; --d) {
            to += rest % b->extents[d] * b->target_stride[d];
            from += rest % b->extents[d] * b->source_stride[d];
            rest /= b->extents[d];
        }
        if (mode == BOX_ADD)
            add_element(target + to * width, copy + from * width, dtype);
        else
            memcpy(target + to * width, copy + from * width, (size_t)width);
    }
}

static _Alignas(64) char target_place[PLACE_BYTES],
    source_place[PLACE_BYTES], expected[PLACE_BYTES];

static void fill(char *place, pypto_dtype dtype)
{
    if (dtype == PYPTO_FP32)
        for (int64_t i = 0; i < PLACE_BYTES / 4; ++i)
            ((float *)(void *)place)[i] = (float)(pick(1000) - 500);
    else
        for (int64_t i = 0; i < PLACE_BYTES; ++i)
            place[i] = (char)pick(256);
}

static void test_boxes_move_like_their_elements(void **state)
{
    (void)state;
    static const pypto_dtype dtypes[] = {PYPTO_INT8, PYPTO_INT16, PYPTO_INT32, PYPTO_UINT64,
                                         PYPTO_FP32};
    for (int turn = 0; turn < 4000; ++turn) {
        const pypto_dtype dtype = dtypes[pick(5)];
        const int64_t width = pypto_dtype_bytes(dtype);
        const bool overlap = turn % 2 == 1;
        box_mode mode = dtype == PYPTO_INT32 ? BOX_WORDS : BOX_COPY;
        if (pick(3) == 0)
            mode = BOX_ADD;
        random_box b;
        pick_box(&b, PLACE_BYTES / width / 2, overlap);
        if (turn % 100 < 2) {
            fill(target_place, dtype);
            fill(source_place, dtype);
        }
        const char *source = overlap ? target_place : source_place;
        memcpy(expected, target_place, PLACE_BYTES);
        move_reference(&b, expected, source, width, mode, dtype);
        const box moved = {target_place + b.target_at * width,
                           b.target_stride,
                           source + b.source_at * width,
                           b.source_stride,
                           b.extents,
                           b.ndim,
                           width};
        box_move(NULL, &moved, mode, dtype);
        if (memcmp(expected, target_place, PLACE_BYTES) != 0)
            fail_msg("turn %d: %s, mode %d, %d dimensions, overlap %d", turn,
                     pypto_dtype_name(dtype), (int)mode, (int)b.ndim, (int)overlap);
    }
}

/* Runs in words have a head, a body of larger pieces and a tail. */
static void test_words_of_any_length_and_place(void **state)
{
    (void)state;
    static const int64_t packed[] = {1};
    fill(source_place, PYPTO_INT32);
    for (int64_t n = 0; n < 5 * 5 * 80; ++n) {
        const int64_t to = n % 5, from = n / 5 % 5, count = n / 25;
        memset(target_place, (int)n, PLACE_BYTES);
        memset(expected, (int)n, PLACE_BYTES);
        memcpy(expected + to * 4, source_place + from * 4, (size_t)count * 4);
        const box b = {
            target_place + to * 4, packed, source_place + from * 4, packed, &count, 1, 4};
        box_move(NULL, &b, BOX_WORDS, PYPTO_INT32);
        if (memcmp(expected, target_place, PLACE_BYTES) != 0)
            fail_msg("%d words from %d to %d", (int)count, (int)from, (int)to);
    }
}

/* ---- kernels ---- */

enum { DATA, SIGNAL, MODE };

enum {
    WAKE_REMOTE_STORE,
    WAKE_REMOTE_ADD,
    WAKE_PUT,
    WAKE_PUT_PART,
    WAKE_PUT_ADD,
    WAKE_REMOTE_ASSEMBLE,
    WAKE_COUNT,
    WRONG_DTYPE,
    WRONG_RANK,
    WRONG_SHAPE,
    NO_WINDOW,
    SMALL_VIEW
};

/* Rank 0 writes 1 into cell 0 of rank 1, which has slept for some time, and goes on computing until rank
 * 1 has answered: while a rank computes, nobody else wakes a sleeper. */
static void wake(pld_core *core, const pld_tensor *data, const pld_tensor *signal, int64_t mode)
{
    static const int32_t one = 1;
    const int64_t peer = 1;
    const pld_tensor cell = pld_part(core, data, PLD_AT(3), PLD_EXTENTS(1));
    const pld_tensor square = pld_reshape(core, &cell, 2, PLD_EXTENTS(1, 1));
    pld_store(core, &one, data, PLD_AT(3), PLD_EXTENTS(1));
    usleep(20000);
    switch (mode) {
    case WAKE_REMOTE_STORE:
        pld_remote_store(core, &one, signal, peer, PLD_AT(0, 0), PLD_EXTENTS(1, 1), NULL,
                         PLD_PLAIN);
        break;
    case WAKE_REMOTE_ADD:
        pld_remote_store(core, &one, signal, peer, PLD_AT(0, 0), PLD_EXTENTS(1, 1),
                         PLD_EXTENTS(1, 1), PLD_ADD);
        break;
    case WAKE_PUT: {
        const pld_tensor target = pld_part(core, signal, PLD_AT(0, 0), PLD_EXTENTS(1, 1));
        pld_put(core, &target, peer, &square, NULL, NULL, NULL, PLD_PLAIN);
        break;
    }
    case WAKE_PUT_PART:
        pld_put(core, signal, peer, &square, PLD_AT(0, 0), NULL, PLD_EXTENTS(1, 1), PLD_PLAIN);
        break;
    case WAKE_PUT_ADD:
        pld_put(core, signal, peer, &square, NULL, PLD_AT(0, 0), PLD_EXTENTS(1, 1), PLD_ADD);
        break;
    case WAKE_REMOTE_ASSEMBLE:
        pld_remote_assemble(core, signal, peer, &cell, PLD_AT(0, 0), PLD_PLAIN);
        break;
    default: pld_fail(core, "what?");
    }
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (pld_read_int(core, signal, PLD_AT(1, 0)) == 0) {
        sched_yield();
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - start.tv_sec > PATIENCE_S)
            pld_fail(core, "write %d did not wake the peer", (int)mode);
    }
}

static void wake_kernel(pld_core *core, const pld_arg *args)
{
    const pld_tensor *signal = args[SIGNAL].tensor;
    if (pld_get_comm(core, signal)->rank == 0) {
        wake(core, args[DATA].tensor, signal, args[MODE].integer);
        return;
    }
    pld_wait(core, signal, PLD_AT(0, 0), 1, PLD_EQ);
    pld_notify(core, signal, 0, PLD_AT(1, 0), 1, PLD_SET);
}

static void wrong_kernel(pld_core *core, const pld_arg *args)
{
    const pld_tensor *data = args[DATA].tensor;
    const pld_tensor *signal = args[SIGNAL].tensor;
    pld_tensor other = *data;
    switch (args[MODE].integer) {
    case WRONG_DTYPE:
        other.dtype = PYPTO_FP32;
        pld_put(core, data, 0, &other, NULL, NULL, NULL, PLD_PLAIN);
        break;
    case WRONG_RANK: pld_get(core, data, 0, signal, NULL, NULL, NULL); break;
    case WRONG_SHAPE:
        other.shape[0] = 3;
        pld_get(core, data, 0, &other, NULL, NULL, NULL);
        break;
    case NO_WINDOW:
        other.window = NULL;
        pld_put(core, &other, 0, data, NULL, NULL, NULL, PLD_PLAIN);
        break;
    default: (void)pld_view(core, data, 1, PLD_EXTENTS(5)); break;
    }
}

/* ---- tables ---- */

static const pld_param step_params[] = {
    {.name = "data", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "signal", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "mode", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};
static const pld_function wake_function = {.name = "wake",
                                           .file = "kernels.c",
                                           .line = 1,
                                           .plane = PLD_PLANE_CORE,
                                           .run = wake_kernel,
                                           .nparams = 3,
                                           .params = step_params};
static const pld_function wrong_function = {.name = "wrong",
                                            .file = "kernels.c",
                                            .line = 1,
                                            .plane = PLD_PLANE_CORE,
                                            .run = wrong_kernel,
                                            .nparams = 3,
                                            .params = step_params};

static void wrapper(pld_core *core, const pld_arg *args)
{
    pld_submit(core, args[MODE].integer < WAKE_COUNT ? &wake_function : &wrong_function, args, 3);
}

static const pld_function chip_function = {.name = "chip",
                                           .file = "kernels.c",
                                           .line = 1,
                                           .plane = PLD_PLANE_CHIP,
                                           .run = wrapper,
                                           .nparams = 3,
                                           .params = step_params};

static void host_function(pld_host *host, const pld_arg *args)
{
    const int64_t ranks = pld_world_size(host);
    const pld_buffer data_buf = pld_alloc_window(host, 0, 16, pld_all_devices(host));
    const pld_buffer signal_buf = pld_alloc_window(host, 1, 4 * ranks, pld_all_devices(host));
    pld_tensor data = pld_window_view(host, data_buf, PYPTO_INT32, 1, PLD_EXTENTS(4));
    pld_tensor signal = pld_window_view(host, signal_buf, PYPTO_INT32, 2, PLD_EXTENTS(ranks, 1));
    for (int64_t r = 0; r < ranks; ++r)
        pld_dispatch(host, r, &chip_function,
                     PLD_ARGS(PLD_TENSOR(&data), PLD_TENSOR(&signal), PLD_INT(args[0].integer)), 3);
}

static const pld_param mode_param[] = {{.name = "mode", .kind = PLD_PARAM_SCALAR, .world_dim = -1}};
static const pld_function host_entry = {.name = "host",
                                        .file = "host.c",
                                        .line = 1,
                                        .plane = PLD_PLANE_HOST,
                                        .run_host = host_function,
                                        .nparams = 1,
                                        .params = mode_param};
static const pld_buffer_info buffers[] = {{"data_buf", 1, PLD_NO_COLLECTIVES},
                                          {"signal_buf", 2, PLD_NO_COLLECTIVES}};
static const pld_function *const functions[] = {&wake_function, &wrong_function, &chip_function,
                                                &host_entry};
static const pld_program program_table = {.abi = PLD_ABI,
                                          .size = sizeof(pld_program),
                                          .name = "transfers",
                                          .nfunctions = 4,
                                          .host = 3,
                                          .functions = functions,
                                          .nbuffers = 2,
                                          .buffers = buffers};

/* ---- running ---- */

static pypto_worker *make_worker(pypto_start start)
{
    return make_set(start, 2, 0, NULL);
}

static pypto_status run(pypto_worker *worker, int64_t mode)
{
    pypto_program *program = NULL;
    pypto_status status = pypto_program_from_table(&program_table, &program);
    const pypto_argument argument = {.kind = PLD_ARG_INT, .integer = mode};
    if (status.kind == PYPTO_ERROR_NONE)
        status = pypto_worker_run(worker, program, &argument, 1);
    pypto_program_release(program);
    return status;
}

static void test_every_write_wakes_who_waits_for_its_cell(void **state)
{
    (void)state;
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *worker = make_worker(starts[s]);
        for (int64_t mode = 0; mode < WAKE_COUNT; ++mode) {
            pypto_status status = run(worker, mode);
            if (status.kind != PYPTO_ERROR_NONE)
                fail_msg("run: %s", pypto_status_text(&status));
        }
        pypto_worker_close(worker);
    }
}

static void test_tensors_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct {
        int64_t mode;
        const char *words;
    } cases[] = {
        {WRONG_DTYPE,
         "does not fit into window 'data_buf' (parameter 'data') of shape [4] (int32)"},
        {WRONG_RANK, "a transfer of window 'signal_buf' (parameter 'signal') of shape [2, 1]"},
        {WRONG_SHAPE, "of shape [3] (int32) does not fit into"},
        {NO_WINDOW, "is plain memory: only pld.DistributedTensor has peers"},
        {SMALL_VIEW, "a view of shape [5] (int32) does not fit into window 'data_buf'"},
    };
    pypto_worker *worker = make_worker(PYPTO_START_THREAD);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        pypto_status status = run(worker, cases[i].mode);
        assert_int_not_equal(status.kind, PYPTO_ERROR_NONE);
        char *text = pypto_status_text(&status);
        if (strstr(text, cases[i].words) == NULL)
            fail_msg("'%s' is not in: %s", cases[i].words, text);
        free(text);
        pypto_status_clear(&status);
    }
    pypto_worker_close(worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boxes_move_like_their_elements),
        cmocka_unit_test(test_words_of_any_length_and_place),
        cmocka_unit_test(test_every_write_wakes_who_waits_for_its_cell),
        cmocka_unit_test(test_tensors_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
