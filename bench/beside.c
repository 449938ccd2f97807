/* The cells of beside.h by kernels as users write them: pld_put and pld_get, notify and wait, allreduces of
 * a mesh by hand.
 *
 *     beside RANKS [CELL...]     the cells
 *     beside canary              one-way ns of a flag */
#include "beside.h"
#include "worker_set.h"

/* Ways of doing a cell. PLAIN and WORDS: into a window of FP32, which holds data, or of INT32, which may
 * hold signals. PULL: everybody reads everybody's input. SPREAD: everybody writes theirs to everybody. SPLIT:
 * rank r sums part r of all and writes it to all. */
typedef enum way { PLAIN, WORDS, PULL, SPREAD, SPLIT, WAYS } way;

static const char *const way_names[WAYS] = {"fp32", "int32", "pull", "spread", "split"};

/* Elements of a row of the data window, of which a cell may use fewer: rows share no cache line. */
#define ROW(bytes) ((bytes) < 4096 ? 1024 : (bytes) / 4)

/* Elements that SPLIT sums at once. */
#define PIECE 4096

/* ---- the kernel ---- */

enum { ARG_DATA, ARG_SIGNAL, ARG_CELL, ARG_WAY, ARG_BYTES, ARG_TIMES, ARGS };

/* Cells of the signal window: the token's, then one for each rank's arrivals at barriers. */
enum { TOKEN, ARRIVALS };

typedef struct job {
    pld_core *core;
    const pld_tensor *data; /* [rows, ROW(bytes)] */
    const pld_tensor *signal;
    int32_t rank, ranks;
    beside_cell cell;
    way way;
    int64_t elems;
    int64_t barriers, tokens, sums; /* so far */
    float *input, *output, *row;    /* tiles */
} job;

static void barrier(job *j)
{
    ++j->barriers;
    for (int32_t peer = 0; peer < j->ranks; ++peer)
        if (peer != j->rank)
            pld_notify(j->core, j->signal, peer, PLD_AT(ARRIVALS + j->rank), 1, PLD_ATOMIC_ADD);
    for (int32_t peer = 0; peer < j->ranks; ++peer)
        if (peer != j->rank)
            pld_wait(j->core, j->signal, PLD_AT(ARRIVALS + peer), j->barriers, PLD_GE);
}

static void put(job *j)
{
    pld_put(j->core, j->data, (j->rank + 1) % j->ranks, j->data, PLD_AT(1, 0), PLD_AT(0, 0),
            PLD_EXTENTS(1, j->elems), PLD_PLAIN);
}

static void pass_token(job *j)
{
    ++j->tokens;
    for (int turn = 0; turn < 2; ++turn) {
        if ((turn == 0) == (j->rank == 0)) {
            if (j->cell == PUT_SIGNAL)
                put(j);
            pld_notify(j->core, j->signal, (j->rank + 1) % j->ranks, PLD_AT(TOKEN), 1,
                       PLD_ATOMIC_ADD);
        } else {
            pld_wait(j->core, j->signal, PLD_AT(TOKEN), j->tokens, PLD_GE);
        }
    }
}

static void add(float *restrict sum, const float *restrict row, int64_t count)
{
    for (int64_t i = 0; i < count; ++i)
        sum[i] += row[i];
}

/* Two buffers in turns, so one barrier is enough: who is at the barrier of sum n+1 has read sum n. */
static void sum_by_pull(job *j)
{
    const int64_t buffer = j->sums++ % 2;
    pld_store(j->core, j->input, j->data, PLD_AT(buffer, 0), PLD_EXTENTS(1, j->elems));
    barrier(j);
    for (int32_t peer = 0; peer < j->ranks; ++peer) {
        float *const tile = peer == 0 ? j->output : j->row;
        pld_remote_load(j->core, tile, j->data, peer, PLD_AT(buffer, 0), PLD_EXTENTS(1, j->elems));
        if (peer > 0)
            add(j->output, tile, j->elems);
    }
}

static void sum_by_spread(job *j)
{
    const int64_t first = j->sums++ % 2 * j->ranks;
    for (int32_t peer = 0; peer < j->ranks; ++peer)
        if (peer != j->rank)
            pld_remote_store(j->core, j->input, j->data, peer, PLD_AT(first + j->rank, 0),
                             PLD_EXTENTS(1, j->elems), NULL, PLD_PLAIN);
    barrier(j);
    for (int32_t peer = 0; peer < j->ranks; ++peer) {
        float *const tile = peer == 0 ? j->output : j->row;
        if (peer == j->rank)
            memcpy(tile, j->input, (size_t)j->elems * 4);
        else
            pld_load(j->core, tile, j->data, PLD_AT(first + peer, 0), PLD_EXTENTS(1, j->elems));
        if (peer > 0)
            add(j->output, tile, j->elems);
    }
}

static void sum_by_split(job *j)
{
    pld_store(j->core, j->input, j->data, PLD_AT(0, 0), PLD_EXTENTS(1, j->elems));
    barrier(j);
    const int64_t end = j->elems * (j->rank + 1) / j->ranks;
    for (int64_t at = j->elems * j->rank / j->ranks, count; at < end; at += count) {
        count = end - at < PIECE ? end - at : PIECE;
        for (int32_t peer = 0; peer < j->ranks; ++peer) {
            float *const tile = peer == 0 ? j->output : j->row;
            pld_remote_load(j->core, tile, j->data, peer, PLD_AT(0, at), PLD_EXTENTS(1, count));
            if (peer > 0)
                add(j->output, tile, count);
        }
        for (int32_t peer = 0; peer < j->ranks; ++peer)
            pld_remote_store(j->core, j->output, j->data, peer, PLD_AT(0, at),
                             PLD_EXTENTS(1, count), NULL, PLD_PLAIN);
    }
    barrier(j);
    pld_load(j->core, j->output, j->data, PLD_AT(0, 0), PLD_EXTENTS(1, j->elems));
}

static void run(job *j, int64_t count)
{
    for (int64_t i = 0; i < count; ++i) {
        switch (j->cell) {
        case SIGNAL:
        case PUT_SIGNAL: pass_token(j); break;
        case PUT: put(j); break;
        case GET:
            pld_get(j->core, j->data, (j->rank + 1) % j->ranks, j->data, PLD_AT(0, 0), PLD_AT(1, 0),
                    PLD_EXTENTS(1, j->elems));
            break;
        default:
            produce(j->input, j->elems, (float)(j->rank + 1));
            if (j->way == PULL)
                sum_by_pull(j);
            else if (j->way == SPREAD)
                sum_by_spread(j);
            else
                sum_by_split(j);
            consume(j->output, j->elems);
            break;
        }
    }
}

static void require(job *j, bool holds, const char *what)
{
    if (!holds)
        pld_fail(j->core, "%s is wrong", what);
}

/* Row `row` of my slice has the value of rank `source` at both ends. */
static bool has_row_of(const job *j, int64_t row, int32_t source)
{
    const unsigned char *at = (const unsigned char *)j->data->data + row * j->data->stride[0] * 4;
    return at[0] == source + 1 && at[j->elems * 4 - 1] == source + 1;
}

/* Does it once on data that tells. */
static void check(job *j)
{
    const int32_t right = (j->rank + 1) % j->ranks, left = (j->rank + j->ranks - 1) % j->ranks;
    const bool sums = j->cell == ALLREDUCE;
    if (!sums)
        memset(j->data->data + (j->cell == GET ? j->data->stride[0] * 4 : 0), j->rank + 1,
               (size_t)(j->elems * 4));
    barrier(j);
    run(j, 1);
    barrier(j);
    const float sum = (float)(j->ranks * (j->ranks + 1) / 2);
    if (j->cell == PUT || j->cell == PUT_SIGNAL)
        require(j, has_row_of(j, 1, left), "a put");
    if (j->cell == GET)
        require(j, has_row_of(j, 0, right), "a get");
    require(j, !sums || (j->output[0] == sum && j->output[j->elems - 1] == sum), "a sum");
}

static void measure(pld_core *core, const pld_arg *args)
{
    const pld_tensor *data = args[ARG_DATA].tensor;
    const pld_comm *comm = pld_get_comm(core, data);
    const int64_t bytes = args[ARG_BYTES].integer;
    float *scratch = pld_scratch(core);
    job j = {.core = core,
             .data = data,
             .signal = args[ARG_SIGNAL].tensor,
             .rank = comm->rank,
             .ranks = comm->nranks,
             .cell = (beside_cell)args[ARG_CELL].integer,
             .way = (way)args[ARG_WAY].integer,
             .elems = bytes / 4,
             .input = scratch,
             .output = scratch + (1 << 18),
             .row = scratch + 2 * (1 << 18)};
    const int64_t count = repetitions(j.cell, bytes, j.ranks);
    check(&j);
    for (int batch = -1; batch < BATCHES; ++batch) {
        barrier(&j);
        const int64_t began = now_ns();
        run(&j, count);
        if (j.cell == PUT || j.cell == GET)
            barrier(&j);
        if (batch >= 0)
            note_batch(core, args[ARG_TIMES].tensor, batch, began, now_ns());
    }
}

/* ---- the program ---- */

static const pld_param params[] = {
    {.name = "data", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "signal", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "cell", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
    {.name = "way", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
    {.name = "bytes", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
    {.name = "times", .kind = PLD_PARAM_TENSOR, .direction = PLD_OUT, .world_dim = -1},
};
static const pld_function kernel = {.name = "measure",
                                    .file = __FILE__,
                                    .plane = PLD_PLANE_CORE,
                                    .run = measure,
                                    .nparams = ARGS,
                                    .params = params,
                                    .scratch_bytes = 3 << 20};

static void wrapper(pld_core *core, const pld_arg *args)
{
    pld_submit(core, &kernel, args, ARGS);
}

static const pld_function chip = CHIP_FUNCTION(wrapper, params);

static void host_function(pld_host *host, const pld_arg *args)
{
    const int64_t ranks = pld_world_size(host), bytes = args[HOST_BYTES].integer;
    const int64_t rows = args[HOST_WAY].integer == SPREAD ? 2 * ranks : 2;
    const int32_t dtype = args[HOST_WAY].integer == WORDS ? PYPTO_INT32 : PYPTO_FP32;
    pld_buffer data_buf = pld_alloc_window(host, 0, rows * ROW(bytes) * 4, pld_all_devices(host));
    pld_buffer signal_buf =
        pld_alloc_window(host, 1, (ARRIVALS + ranks) * 4, pld_all_devices(host));
    pld_tensor data = pld_window_view(host, data_buf, dtype, 2, PLD_EXTENTS(rows, ROW(bytes)));
    pld_tensor signal =
        pld_window_view(host, signal_buf, PYPTO_INT32, 1, PLD_EXTENTS(ARRIVALS + ranks));
    for (int64_t r = 0; r < ranks; ++r) {
        pld_tensor times = pld_index(host, args[HOST_TIMES].tensor, 1, PLD_AT(r));
        pld_dispatch(host, r, &chip,
                     PLD_ARGS(PLD_TENSOR(&data), PLD_TENSOR(&signal),
                              PLD_INT(args[HOST_CELL].integer), PLD_INT(args[HOST_WAY].integer),
                              PLD_INT(bytes), PLD_TENSOR(&times)),
                     ARGS);
    }
}

static const pld_function host_entry = HOST_FUNCTION(host_function);
static const pld_buffer_info buffers[] = {{"data_buf", 0, PLD_NO_COLLECTIVES},
                                          {"signal_buf", 0, PLD_NO_COLLECTIVES}};
static const pld_function *const functions[] = {&kernel, &chip, &host_entry};
static const pld_program table = {.abi = PLD_ABI,
                                  .size = sizeof(pld_program),
                                  .name = "beside",
                                  .nfunctions = 3,
                                  .host = 2,
                                  .functions = functions,
                                  .nbuffers = 2,
                                  .buffers = buffers};

int main(int argc, char **argv)
{
    worker_set set = start_workers(argc, argv, &table);
    for (beside_cell cell = 0; cell < CELLS; ++cell) {
        if (!wanted(cell_names[cell], argv + 2, argc - 2))
            continue;
        for (int64_t bytes = 0; (bytes = next_bytes(cell, bytes)) != 0;) {
            const bool transfer = cell == PUT || cell == GET;
            const way first = cell == ALLREDUCE ? PULL : PLAIN;
            const way last = cell == ALLREDUCE ? SPLIT : transfer ? WORDS : PLAIN;
            const double operations =
                (double)repetitions(cell, bytes, set.ranks) * hops_of(cell, set.ranks);
            for (way chosen = first; chosen <= last; ++chosen) {
                const batch_times times = run_cell(&set, cell, chosen, bytes);
                print_cell(cell_names[cell], way_names[chosen], bytes, &times, BATCHES, operations);
            }
        }
    }
    stop_workers(&set);
    return 0;
}
