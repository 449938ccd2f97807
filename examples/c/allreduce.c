/* The quick start by hand: every rank puts its row into its window, tells its peers, and adds up
 * the rows of all ranks.
 *
 *     export PKG_CONFIG_PATH=$PWD/.venv/lib/pkgconfig           # from the project's folder, after `make`
 *     cc examples/c/allreduce.c $(pkg-config --cflags --libs pypto) \
 *         -Wl,-rpath,$PWD/.venv/lib -o allreduce
 *     ./allreduce [ranks [size]]
 *
 * This is what the compiler makes of the DSL program examples/quickstart.py: a host function, a
 * per-device wrapper, an in-core kernel, and the table that names them. Prints one line per rank;
 * exits 1 when a sum is wrong. */
#include <pypto/pypto.h>

#include <stdio.h>
#include <stdlib.h>

#define MAX_SIZE 65536

static int64_t size = 256;

/* ---- the in-core kernel ---- */

enum { INP, OUT, DATA, SIGNAL };

static void reduce_step(pld_core *core, const pld_arg *args)
{
    const pld_tensor *inp = args[INP].tensor;
    const pld_tensor *out = args[OUT].tensor;
    const pld_tensor *data = args[DATA].tensor;
    const pld_tensor *signal = args[SIGNAL].tensor;
    const int64_t n = inp->shape[1];
    float *acc = pld_scratch(core);
    float *row = acc + n;
    const pld_comm *ctx = pld_get_comm(core, data);

    /* 1. My row goes into my slice of the window. */
    pld_load(core, acc, inp, PLD_AT(0, 0), PLD_EXTENTS(1, n));
    pld_store(core, acc, data, PLD_AT(0, 0), PLD_EXTENTS(1, n));

    /* 2. Tell every peer, wait for every peer. */
    for (int32_t peer = 0; peer < ctx->nranks; ++peer)
        if (peer != ctx->rank)
            pld_notify(core, signal, peer, PLD_AT(ctx->rank, 0), 1, PLD_ATOMIC_ADD);
    for (int32_t source = 0; source < ctx->nranks; ++source)
        if (source != ctx->rank)
            pld_wait(core, signal, PLD_AT(source, 0), 1, PLD_GE);

    /* 3. Add the peers' rows to mine. */
    for (int32_t peer = 0; peer < ctx->nranks; ++peer) {
        if (peer == ctx->rank)
            continue;
        pld_remote_load(core, row, data, peer, PLD_AT(0, 0), PLD_EXTENTS(1, n));
        for (int64_t i = 0; i < n; ++i)
            acc[i] += row[i];
    }

    /* 4. The sum goes into my output. */
    pld_store(core, acc, out, PLD_AT(0, 0), PLD_EXTENTS(1, n));
}

static const pld_param step_params[] = {
    {.name = "inp", .kind = PLD_PARAM_TENSOR, .direction = PLD_IN, .world_dim = -1},
    {.name = "out", .kind = PLD_PARAM_TENSOR, .direction = PLD_OUT, .world_dim = -1},
    {.name = "data", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "signal", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
};

static const pld_function reduce_step_function = {
    .name = "reduce_step",
    .file = __FILE__,
    .line = 28,
    .plane = PLD_PLANE_CORE,
    .run = reduce_step,
    .scratch_bytes = 2 * MAX_SIZE * (int64_t)sizeof(float),
    .nparams = 4,
    .params = step_params,
};

/* ---- the per-device wrapper ---- */

static void chip_orch(pld_core *core, const pld_arg *args)
{
    pld_submit(core, &reduce_step_function, args, 4);
}

static const pld_function chip_orch_function = {
    .name = "chip_orch",
    .file = __FILE__,
    .line = 82,
    .plane = PLD_PLANE_CHIP,
    .run = chip_orch,
    .nparams = 4,
    .params = step_params,
};

/* ---- the host function: runs in this process, once per call ---- */

static void orchestrator(pld_host *host, const pld_arg *args)
{
    const pld_tensor *inputs = args[0].tensor;
    const pld_tensor *outputs = args[1].tensor;
    const int64_t ranks = pld_world_size(host);
    const pld_buffer data_buf = pld_alloc_window(host, 0, size * 4, pld_all_devices(host));
    const pld_buffer signal_buf = pld_alloc_window(host, 1, ranks * 4, pld_all_devices(host));
    for (int64_t r = 0; r < ranks; ++r) {
        pld_tensor data = pld_window_view(host, data_buf, PYPTO_FP32, 2, PLD_EXTENTS(1, size));
        pld_tensor signal =
            pld_window_view(host, signal_buf, PYPTO_INT32, 2, PLD_EXTENTS(ranks, 1));
        pld_tensor inp = pld_index(host, inputs, 1, PLD_AT(r));
        pld_tensor out = pld_index(host, outputs, 1, PLD_AT(r));
        pld_dispatch(
            host, r, &chip_orch_function,
            PLD_ARGS(PLD_TENSOR(&inp), PLD_TENSOR(&out), PLD_TENSOR(&data), PLD_TENSOR(&signal)),
            4);
    }
}

static const char *const dims[] = {"NR", "SIZE"};
static const pld_param host_params[] = {
    {.name = "inputs",
     .kind = PLD_PARAM_TENSOR,
     .direction = PLD_IN,
     .dtype = PYPTO_FP32,
     .ndim = 3,
     .shape = {-1, 1, -2},
     .world_dim = 0},
    {.name = "outputs",
     .kind = PLD_PARAM_TENSOR,
     .direction = PLD_OUT,
     .dtype = PYPTO_FP32,
     .ndim = 3,
     .shape = {-1, 1, -2},
     .world_dim = 0},
};

static const pld_function orchestrator_function = {
    .name = "orchestrator",
    .file = __FILE__,
    .line = 99,
    .plane = PLD_PLANE_HOST,
    .run_host = orchestrator,
    .nparams = 2,
    .params = host_params,
    .ndims = 2,
    .dims = dims,
};

static const pld_function *const functions[] = {&reduce_step_function, &chip_orch_function,
                                                &orchestrator_function};
static const pld_buffer_info buffers[] = {{"data_buf", 105, PLD_NO_COLLECTIVES},
                                          {"signal_buf", 106, PLD_NO_COLLECTIVES}};

static const pld_program program_table = {
    .abi = PLD_ABI,
    .size = sizeof(pld_program),
    .name = "allreduce",
    .nfunctions = 3,
    .host = 2,
    .functions = functions,
    .nbuffers = 2,
    .buffers = buffers,
};

/* ---- the program that runs it ---- */

static pypto_argument tensor_argument(float *data, int32_t ranks)
{
    pypto_argument argument = {.kind = PLD_ARG_TENSOR};
    argument.tensor = (pypto_tensor){.data = data,
                                     .dtype = PYPTO_FP32,
                                     .ndim = 3,
                                     .shape = {ranks, 1, size},
                                     .stride = {size, size, 1}};
    return argument;
}

static int check(const float *inputs, const float *outputs, int32_t ranks)
{
    int wrong = 0;
    for (int32_t r = 0; r < ranks; ++r) {
        int64_t bad = 0;
        for (int64_t i = 0; i < size; ++i) {
            float sum = 0.0f; /* small whole numbers: exact in any order */
            for (int32_t k = 0; k < ranks; ++k)
                sum += inputs[k * size + i];
            bad += outputs[r * size + i] != sum;
        }
        printf("rank %d: %s (first element %g)\n", r, bad == 0 ? "ok" : "WRONG",
               (double)outputs[r * size]);
        wrong |= bad != 0;
    }
    return wrong;
}

static int run(int32_t ranks, float *inputs, float *outputs)
{
    int32_t device_ids[PYPTO_MAX_RANKS];
    for (int32_t r = 0; r < ranks; ++r)
        device_ids[r] = r;
    pypto_worker_options options = PYPTO_WORKER_OPTIONS_INIT;
    options.device_ids = device_ids;
    options.device_count = ranks;
    options.title = "allreduce";
    pypto_program *program = NULL;
    pypto_worker *worker = NULL;
    pypto_argument args[2] = {tensor_argument(inputs, ranks), tensor_argument(outputs, ranks)};
    pypto_status status = pypto_program_from_table(&program_table, &program);
    if (status.kind == PYPTO_ERROR_NONE)
        status = pypto_worker_create(&options, &worker);
    if (status.kind == PYPTO_ERROR_NONE)
        status = pypto_worker_run(worker, program, args, 2);
    int result = status.kind == PYPTO_ERROR_NONE ? check(inputs, outputs, ranks) : 1;
    if (status.kind != PYPTO_ERROR_NONE) {
        char *text = pypto_status_text(&status);
        fprintf(stderr, "%s\n", text != NULL ? text : "out of memory");
        free(text);
        pypto_status_clear(&status);
    }
    pypto_worker_close(worker);
    pypto_program_release(program);
    return result;
}

int main(int argc, char **argv)
{
    const int32_t ranks = argc > 1 ? atoi(argv[1]) : 2;
    size = argc > 2 ? atoll(argv[2]) : 256;
    if (ranks < 1 || ranks > PYPTO_MAX_RANKS || size < 1 || size > MAX_SIZE) {
        fprintf(stderr, "usage: %s [ranks 1..%d [size 1..%d]]\n", argv[0], PYPTO_MAX_RANKS,
                MAX_SIZE);
        return 2;
    }
    float *inputs = calloc((size_t)(ranks * size), sizeof *inputs);
    float *outputs = calloc((size_t)(ranks * size), sizeof *outputs);
    int result = 1;
    if (inputs != NULL && outputs != NULL) {
        for (int64_t i = 0; i < ranks * size; ++i)
            inputs[i] = (float)(i % 1000);
        result = run(ranks, inputs, outputs);
    }
    free(inputs);
    free(outputs);
    return result;
}
