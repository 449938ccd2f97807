/* The cells of collectives.h by the collectives of pld.h, in windows, as kernels call them. When there is a CPU
 * for each rank, each cell is measured twice: where the system runs the ranks, and with each bound to a
 * CPU of its own, which is where Open MPI has its ranks.
 *
 *     collectives RANKS [CELL...]     the cells
 *     collectives canary              one-way ns of a flag */
#include "collectives.h"
#include "worker_set.h"

typedef enum way { FREE, BOUND } way;

static const char *const way_names[] = {"free", "bound"};

/* ---- the kernel ---- */

enum { ARG_INPUT, ARG_TARGET, ARG_COUNTS, ARG_SIGNAL, ARG_CELL, ARG_WAY, ARG_TIMES, ARGS };

typedef struct job {
    pld_core *core;
    const pld_tensor *input;  /* [parts, elements] */
    const pld_tensor *target; /* the same; the input's memory where a collective works in place */
    const pld_tensor *counts; /* [ranks, 1] */
    const pld_tensor *signal;
    int rank, ranks;
    collectives_cell cell;
    int64_t elems; /* of a part */
    int64_t turns;
    int32_t send_counts[PYPTO_MAX_RANKS];
} job;

static float *floats(const pld_tensor *tensor)
{
    return (float *)(void *)tensor->data;
}

static const float *result(const job *j)
{
    return floats(j->target) + (j->cell == REDUCE_SCATTER ? j->rank * j->elems : 0);
}

static void collective(job *j, int root)
{
    pld_tensor send_counts = {.data = (char *)j->send_counts,
                              .dtype = PYPTO_INT32,
                              .ndim = 1,
                              .shape = {j->ranks},
                              .stride = {1}};
    switch (j->cell) {
    case BARRIER: pld_barrier(j->core, j->signal); break;
    case ALLREDUCE: pld_allreduce(j->core, j->target, j->signal, PLD_SUM, PLD_AUTO); break;
    case BROADCAST: pld_broadcast(j->core, j->target, j->signal, root); break;
    case ALLGATHER: pld_allgather(j->core, j->input, j->target, j->signal); break;
    case REDUCE_SCATTER: pld_reduce_scatter(j->core, j->target, j->signal, PLD_SUM); break;
    case ALL_TO_ALL: pld_all_to_all(j->core, j->input, j->target, j->signal); break;
    case ALL_TO_ALL_V:
        pld_all_to_all_v(j->core, j->input, j->target, j->signal, &send_counts, j->counts);
        break;
    case CELLS: break;
    }
}

static void run(job *j, int64_t count)
{
    for (int64_t i = 0; i < count; ++i) {
        const int root = (int)(j->turns++ % j->ranks);
        if (j->cell != BROADCAST || root == j->rank)
            produce(floats(j->input), input_parts(j->cell, j->ranks) * j->elems,
                    (float)(j->rank + 1));
        collective(j, root);
        consume(result(j), result_parts(j->cell, j->ranks) * j->elems);
    }
}

static void check(job *j)
{
    fill_input(j->cell, floats(j->input), j->elems, j->rank, j->ranks);
    collective(j, j->ranks - 1);
    if (!result_is_right(j->cell, result(j), j->elems, j->rank, j->ranks, j->ranks - 1))
        pld_fail(j->core, "%s is wrong", cells[j->cell].name);
}

/* Leaves the caller the `number`-th of the CPUs that it may use. */
static void bind_to(int number)
{
    cpu_set_t allowed, one;
    sched_getaffinity(0, sizeof allowed, &allowed);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET((size_t)cpu, &allowed) && number-- == 0)
            CPU_SET((size_t)cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static void measure(pld_core *core, const pld_arg *args)
{
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    const pld_tensor *target = args[ARG_TARGET].tensor;
    const pld_comm *comm = pld_get_comm(core, target);
    const collectives_cell cell = (collectives_cell)args[ARG_CELL].integer;
    const bool in_place = cell == ALLREDUCE || cell == BROADCAST || cell == REDUCE_SCATTER;
    job j = {.core = core,
             .input = in_place ? target : args[ARG_INPUT].tensor,
             .target = target,
             .counts = args[ARG_COUNTS].tensor,
             .signal = args[ARG_SIGNAL].tensor,
             .rank = comm->rank,
             .ranks = comm->nranks,
             .cell = cell,
             .elems = target->shape[1]};
    for (int r = 0; r < j.ranks; ++r)
        j.send_counts[r] = 1;
    const int64_t count = repetitions(j.cell, j.elems * 4, j.ranks);
    if (args[ARG_WAY].integer == BOUND)
        bind_to(j.rank);
    check(&j);
    for (int batch = -1; batch < batches(j.elems * 4); ++batch) {
        pld_barrier(core, j.signal);
        const int64_t began = now_ns();
        run(&j, count);
        if (batch >= 0)
            note_batch(core, args[ARG_TIMES].tensor, batch, began, now_ns());
    }
    sched_setaffinity(0, sizeof before, &before);
}

/* ---- the program ---- */

static const pld_param params[] = {
    {.name = "input", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "target", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "counts", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "signal", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "cell", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
    {.name = "way", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
    {.name = "times", .kind = PLD_PARAM_TENSOR, .direction = PLD_OUT, .world_dim = -1},
};
static const pld_function kernel = {.name = "measure",
                                    .file = __FILE__,
                                    .plane = PLD_PLANE_CORE,
                                    .run = measure,
                                    .nparams = ARGS,
                                    .params = params};

static void wrapper(pld_core *core, const pld_arg *args)
{
    pld_submit(core, &kernel, args, ARGS);
}

static const pld_function chip = CHIP_FUNCTION(wrapper, params);

enum { INPUT_BUF, TARGET_BUF, COUNTS_BUF, SIGNAL_BUF, BUFFERS };

static pld_tensor window(pld_host *host, int32_t buffer, int32_t dtype, int64_t rows,
                         int64_t columns)
{
    pld_buffer b = pld_alloc_window(host, buffer, rows * columns * 4, pld_all_devices(host));
    return pld_window_view(host, b, dtype, 2, PLD_EXTENTS(rows, columns));
}

static void host_function(pld_host *host, const pld_arg *args)
{
    const int64_t ranks = pld_world_size(host), elems = args[HOST_BYTES].integer / 4;
    const collectives_cell cell = (collectives_cell)args[HOST_CELL].integer;
    const bool parts = cells[cell].inputs == EACH || cells[cell].results == EACH;
    const bool inputs = cell == ALLGATHER || cell == ALL_TO_ALL || cell == ALL_TO_ALL_V;
    pld_tensor input = window(host, INPUT_BUF, PYPTO_FP32,
                              inputs ? input_parts(cell, (int)ranks) : 1, inputs ? elems : 1);
    pld_tensor target = window(host, TARGET_BUF, PYPTO_FP32, parts ? ranks : 1, elems);
    pld_tensor counts = window(host, COUNTS_BUF, PYPTO_INT32, ranks, 1);
    pld_tensor signal = window(host, SIGNAL_BUF, PYPTO_INT32, ranks, 1);
    for (int64_t r = 0; r < ranks; ++r) {
        pld_tensor times = pld_index(host, args[HOST_TIMES].tensor, 1, PLD_AT(r));
        pld_dispatch(host, r, &chip,
                     PLD_ARGS(PLD_TENSOR(&input), PLD_TENSOR(&target), PLD_TENSOR(&counts),
                              PLD_TENSOR(&signal), PLD_INT(cell), PLD_INT(args[HOST_WAY].integer),
                              PLD_TENSOR(&times)),
                     ARGS);
    }
}

static const pld_function host_entry = HOST_FUNCTION(host_function);
static const pld_buffer_info buffers[BUFFERS] = {
    [INPUT_BUF] = {"input_buf", 0, PLD_NO_COLLECTIVES},
    [TARGET_BUF] = {"target_buf", 0, PLD_NO_COLLECTIVES},
    [COUNTS_BUF] = {"counts_buf", 0, PLD_NO_COLLECTIVES},
    [SIGNAL_BUF] = {"signal_buf", 0, PLD_ONE_SIGNAL}};
static const pld_function *const functions[] = {&kernel, &chip, &host_entry};
static const pld_program table = {.abi = PLD_ABI,
                                  .size = sizeof(pld_program),
                                  .name = "collectives",
                                  .nfunctions = 3,
                                  .host = 2,
                                  .functions = functions,
                                  .nbuffers = BUFFERS,
                                  .collectives_only = 1,
                                  .buffers = buffers};

int main(int argc, char **argv)
{
    worker_set set = start_workers(argc, argv, &table);
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    const way last = set.ranks <= CPU_COUNT(&allowed) ? BOUND : FREE;
    for (collectives_cell cell = 0; cell < CELLS; ++cell)
        for (int64_t bytes = 0; wanted(cells[cell].name, argv + 2, argc - 2) &&
                                (bytes = next_bytes(cell, bytes, set.ranks)) != 0;)
            for (way chosen = FREE; chosen <= last; ++chosen) {
                const batch_times times = run_cell(&set, cell, chosen, bytes);
                print_cell(cells[cell].name, way_names[chosen], bytes, &times, batches(bytes),
                           (double)repetitions(cell, bytes, set.ranks));
            }
    stop_workers(&set);
    return 0;
}
