/* Figures of one-sided transfers between two processes, beside the copy that bounds them.
 *
 *     transfers [rounds]      one line per figure: name, unit, median, min, max, rounds
 *
 * For each size, in turns within the same rounds: put and get of rank 0, and memcpy between the very same
 * addresses; the put once more of INT32, whose words must stay whole, in place and from 4 bytes further on; then
 * put, notify and wait in turns by both ranks, one way. Last, at 1 KiB: the checks of one put
 * (peer, and both boxes) by themselves, and a put that moves nothing. */
#include "runtime/box.h"

#include <pypto/pypto.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_BYTES ((int64_t)64 << 20)
#define MAX_ROUNDS 101

enum {
    COPY_OUT,
    PUT,
    COPY_IN,
    GET,
    PUT_WORDS,
    PUT_APART,
    ONE_WAY,
    NOTIFY,
    PLACES,
    CHECKS,
    NOTHING,
    FIGURES
};
enum { DATA, SIGNAL, BYTES, ROUNDS, TIMES };

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* ---- the kernel ---- */

/* What box_check calls is not visible outside the library. */
void box_fail(pld_core *core, const char *what, const pld_tensor *tensor, const int64_t *offsets,
              const int64_t *extents, int32_t d)
{
    (void)tensor, (void)offsets, (void)extents;
    pld_fail(core, "%s leaves dimension %d", what, (int)d);
}

void box_fail_in_byte(pld_core *core, const char *what, const pld_tensor *tensor)
{
    (void)tensor;
    pld_fail(core, "%s cuts a byte", what);
}

/* Where a put starts, with and without the checks that runtime/transfer.c makes first. The barriers keep the
 * compiler from doing it once for all. */
static void place(pld_core *core, const pld_tensor *to, int64_t peer, const pld_tensor *from,
                  bool checks)
{
    static int64_t origin[PYPTO_MAX_DIMS];
    int64_t at = 0;
    __asm__ volatile("" ::: "memory");
    if (checks) {
        if (to->window == NULL || peer < 0 || peer >= to->window->comm->nranks)
            pld_fail(core, "no such peer");
        if (to->ndim != from->ndim || to->dtype != from->dtype || to->shape[0] != from->shape[0])
            pld_fail(core, "no pair");
        at = box_check(core, "a put", to, origin, from->shape) +
             box_check(core, "a put", from, origin, from->shape);
    } else {
        for (int32_t d = 0; d < to->ndim; ++d)
            at += origin[d] * to->stride[d] * box_width(to);
        for (int32_t d = 0; d < from->ndim; ++d)
            at += origin[d] * from->stride[d] * box_width(from);
    }
    __asm__ volatile("" : : "r"(at) : "memory");
}

static int64_t repetitions(int64_t bytes)
{
    const int64_t count = ((int64_t)16 << 20) / (bytes + 4096);
    return count > 2000 ? 2000 : count < 1 ? 1 : count;
}

/* Sends the first half of the peer's window to and fro; both ranks run it. */
static void ping_pong(pld_core *core, const pld_tensor *to, const pld_tensor *from,
                      const pld_tensor *signal, int64_t count, int64_t *round)
{
    const int32_t rank = pld_get_comm(core, signal)->rank;
    for (int64_t i = 0; i < count; ++i) {
        ++*round;
        for (int32_t turn = 0; turn < 2; ++turn) {
            if (turn == rank) {
                if (to != NULL)
                    pld_put(core, to, 1 - rank, from, NULL, NULL, NULL, PLD_PLAIN);
                pld_notify(core, signal, 1 - rank, PLD_AT(0), 1, PLD_ATOMIC_ADD);
            } else {
                pld_wait(core, signal, PLD_AT(0), *round, PLD_GE);
            }
        }
    }
}

static void measure(pld_core *core, const pld_arg *args)
{
    const pld_tensor *data = args[DATA].tensor;
    const pld_tensor *signal = args[SIGNAL].tensor;
    const int64_t bytes = args[BYTES].integer;
    const int64_t count = repetitions(bytes);
    const int32_t rank = pld_get_comm(core, data)->rank;
    const pld_tensor here = pld_part(core, data, PLD_AT(0, 0), PLD_EXTENTS(PLD_DROP, bytes));
    const pld_tensor there = pld_part(core, data, PLD_AT(1, 0), PLD_EXTENTS(PLD_DROP, bytes));
    pld_tensor words[3]; /* there, here, and here but for the first word */
    for (int part = 0; part < 3; ++part) {
        words[part] = part == 0 ? there : here;
        words[part].dtype = PYPTO_INT32;
        words[part].shape[0] = (bytes - (part == 2 ? 4 : 0)) / 4;
        words[part].data += part == 2 ? 4 : 0;
    }
    const int64_t *all_but_one = words[2].shape;
    const pld_window *window = data->window;
    char *peer = window->device_base + window->stride + (there.data - window->base);
    int64_t round = 0;
    ping_pong(core, NULL, NULL, signal, 1, &round);
    for (int64_t r = 0; r < args[ROUNDS].integer; ++r) {
        for (int figure = 0; figure < FIGURES; ++figure) {
            double start = now_us();
            for (int64_t i = 0; rank == 0 && i < count; ++i) {
                switch (figure) {
                case COPY_OUT: memcpy(peer, here.data, (size_t)bytes); break;
                case PUT: pld_put(core, &there, 1, &here, NULL, NULL, NULL, PLD_PLAIN); break;
                case COPY_IN: memcpy(here.data, peer, (size_t)bytes); break;
                case GET: pld_get(core, &here, 1, &there, NULL, NULL, NULL); break;
                case PUT_WORDS:
                    pld_put(core, &words[0], 1, &words[1], NULL, NULL, NULL, PLD_PLAIN);
                    break;
                case PUT_APART:
                    pld_put(core, &words[0], 1, &words[2], PLD_AT(0), PLD_AT(0), all_but_one,
                            PLD_PLAIN);
                    break;
                case PLACES: place(core, &there, 1, &here, false); break;
                case CHECKS: place(core, &there, 1, &here, true); break;
                case NOTHING:
                    pld_put(core, &there, 1, &here, PLD_AT(0), PLD_AT(0), PLD_EXTENTS(0),
                            PLD_PLAIN);
                    break;
                default: break;
                }
            }
            double each = (now_us() - start) / (double)count;
            if (figure == ONE_WAY || figure == NOTIFY) {
                ping_pong(core, NULL, NULL, signal, 1, &round); /* both are there */
                start = now_us();
                ping_pong(core, figure == ONE_WAY ? &there : NULL, &here, signal, count, &round);
                each = (now_us() - start) / (double)count / 2;
            }
            float time = (float)each;
            pld_store(core, &time, args[TIMES].tensor, PLD_AT(figure, r), PLD_EXTENTS(1, 1));
        }
    }
}

/* ---- the program ---- */

static const pld_param params[] = {
    {.name = "data", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "signal", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "bytes", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
    {.name = "rounds", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
    {.name = "times", .kind = PLD_PARAM_TENSOR, .direction = PLD_OUT, .world_dim = -1},
};
static const pld_function kernel = {.name = "measure",
                                    .file = __FILE__,
                                    .plane = PLD_PLANE_CORE,
                                    .run = measure,
                                    .nparams = 5,
                                    .params = params};

static void wrapper(pld_core *core, const pld_arg *args)
{
    pld_submit(core, &kernel, args, 5);
}

static const pld_function chip = {.name = "chip",
                                  .file = __FILE__,
                                  .plane = PLD_PLANE_CHIP,
                                  .run = wrapper,
                                  .nparams = 5,
                                  .params = params};

static void host_function(pld_host *host, const pld_arg *args)
{
    const int64_t bytes = args[1].integer;
    pld_buffer data_buf = pld_alloc_window(host, 0, 2 * bytes, pld_all_devices(host));
    pld_buffer signal_buf = pld_alloc_window(host, 1, 4, pld_all_devices(host));
    pld_tensor data = pld_window_view(host, data_buf, PYPTO_UINT8, 2, PLD_EXTENTS(2, bytes));
    pld_tensor signal = pld_window_view(host, signal_buf, PYPTO_INT32, 1, PLD_EXTENTS(1));
    for (int64_t r = 0; r < 2; ++r) {
        pld_tensor times = pld_index(host, args[0].tensor, 1, PLD_AT(r));
        pld_dispatch(host, r, &chip,
                     PLD_ARGS(PLD_TENSOR(&data), PLD_TENSOR(&signal), PLD_INT(bytes),
                              PLD_INT(args[2].integer), PLD_TENSOR(&times)),
                     5);
    }
}

static const pld_param host_params[] = {
    {.name = "times",
     .kind = PLD_PARAM_TENSOR,
     .direction = PLD_OUT,
     .dtype = PYPTO_FP32,
     .ndim = 3,
     .shape = {2, FIGURES, MAX_ROUNDS},
     .world_dim = 0},
    {.name = "bytes", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
    {.name = "rounds", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};
static const pld_function host_entry = {.name = "host",
                                        .file = __FILE__,
                                        .plane = PLD_PLANE_HOST,
                                        .run_host = host_function,
                                        .nparams = 3,
                                        .params = host_params};
static const pld_buffer_info buffers[] = {{"data_buf", 0, PLD_NO_COLLECTIVES},
                                          {"signal_buf", 0, PLD_NO_COLLECTIVES}};
static const pld_function *const functions[] = {&kernel, &chip, &host_entry};
static const pld_program table = {.abi = PLD_ABI,
                                  .size = sizeof(pld_program),
                                  .name = "transfers",
                                  .nfunctions = 3,
                                  .host = 2,
                                  .functions = functions,
                                  .nbuffers = 2,
                                  .buffers = buffers};

/* ---- measuring ---- */

static void die(pypto_status status)
{
    fprintf(stderr, "%s\n", pypto_status_text(&status));
    exit(1);
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void report(const char *name, int64_t bytes, float *values, int rounds)
{
    char label[64];
    snprintf(label, sizeof label, "%s_%lld", name, (long long)bytes);
    qsort(values, (size_t)rounds, sizeof *values, by_value);
    printf("%s\tus\t%.4f\t%.4f\t%.4f\t%d\n", bytes > 0 ? label : name, (double)values[rounds / 2],
           (double)values[0], (double)values[rounds - 1], rounds);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const char *const names[FIGURES] = {
        "memcpy_out", "put",    "memcpy_in",    "get",           "put_int32",     "put_int32_apart",
        "put_notify", "notify", "place_of_put", "checked_place", "put_of_nothing"};
    static float times[2][FIGURES][MAX_ROUNDS];
    static const int32_t ids[] = {0, 1};
    const int rounds = argc > 1 ? atoi(argv[1]) : 21;
    if (rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: %s [rounds up to %d]\n", argv[0], MAX_ROUNDS);
        return 2;
    }
    pypto_worker *worker = NULL;
    pypto_program *program = NULL;
    pypto_worker_options options = PYPTO_WORKER_OPTIONS_INIT;
    options.device_ids = ids;
    options.device_count = 2;
    pypto_status status = pypto_worker_create(&options, &worker);
    if (status.kind == PYPTO_ERROR_NONE)
        status = pypto_program_from_table(&table, &program);
    if (status.kind != PYPTO_ERROR_NONE)
        die(status);
    for (int64_t bytes = 8; bytes <= MOST_BYTES;
         bytes *= bytes == 8 || bytes == MOST_BYTES / 16 ? 16 : 8) {
        pypto_argument args[3] = {{.kind = PLD_ARG_TENSOR},
                                  {.kind = PLD_ARG_INT, .integer = bytes},
                                  {.kind = PLD_ARG_INT, .integer = rounds}};
        args[0].tensor = (pypto_tensor){.data = times,
                                        .dtype = PYPTO_FP32,
                                        .ndim = 3,
                                        .shape = {2, FIGURES, MAX_ROUNDS},
                                        .stride = {(int64_t)FIGURES * MAX_ROUNDS, MAX_ROUNDS, 1}};
        status = pypto_worker_run(worker, program, args, 3);
        if (status.kind != PYPTO_ERROR_NONE)
            die(status);
        for (int figure = 0; figure < NOTIFY; ++figure)
            report(names[figure], bytes, times[0][figure], rounds);
        for (int figure = NOTIFY; bytes == 1024 && figure < FIGURES; ++figure)
            report(names[figure], 0, times[0][figure], rounds);
    }
    pypto_program_release(program);
    pypto_worker_close(worker);
    return 0;
}
