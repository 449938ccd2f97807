/* Program 'host', compiled by pypto 0.1.0 from
 * tests/golden/collectives.py
 * and written for reading: edit the script, not this file.
 *
 *   exchange             in-core kernel, line 10
 *   reduce_scatter       in-core kernel, line 31
 *   barrier              in-core kernel, line 32
 *   broadcast            in-core kernel, line 32
 *   chip                 per-device wrapper, line 22
 *   allreduce            in-core kernel, line 46
 *   allreduce            per-device wrapper, line 46
 *   host                 host function, line 36
 */
#include <pypto/program.h>

static const pld_function exchange_function;
static const pld_function reduce_scatter_function;
static const pld_function barrier_function;
static const pld_function broadcast_function;
static const pld_function chip_function;
static const pld_function allreduce_function;
static const pld_function allreduce_2_function;

/* exchange: in-core kernel, collectives.py:10 */
#line 10 "tests/golden/collectives.py"
static void exchange(pld_core *core, const pld_tensor *x, const pld_tensor *y,
                     const pld_tensor *data, const pld_tensor *signals)
{
#line 16
    const pld_tensor t0 = pld_part(core, signals, PLD_AT(0, 0), PLD_EXTENTS(PLD_DROP, 64));
#line 16
    pld_all_to_all(core, x, data, &t0);
    const pld_tensor t1 = pld_part(core, signals, PLD_AT(1, 0), PLD_EXTENTS(PLD_DROP, 64));
#line 17
    pld_barrier(core, &t1);
    const pld_comm *const t2 = pld_get_comm(core, data);
#line 18
    pld_get(core, y, t2->rank, data, NULL, NULL, NULL);
}

/* reduce_scatter: in-core kernel, collectives.py:31 */
#line 31
static void reduce_scatter(pld_core *core, int64_t NR, const pld_tensor *data,
                           const pld_tensor *signal)
{
    (void)NR;

#line 31
    pld_reduce_scatter(core, data, signal, PLD_MAX);
}

/* barrier: in-core kernel, collectives.py:32 */
#line 32
static void barrier(pld_core *core, int64_t NR, const pld_tensor *signal)
{
    (void)NR;

#line 32
    pld_barrier(core, signal);
}

/* broadcast: in-core kernel, collectives.py:32 */
#line 32
static void broadcast(pld_core *core, int64_t NR, const pld_tensor *data, const pld_tensor *signal,
                      int32_t root)
{
    (void)NR;

#line 32
    pld_broadcast(core, data, signal, root);
}

/* chip: per-device wrapper, collectives.py:22 */
#line 22
static void chip(pld_core *core, const pld_tensor *x, const pld_tensor *y, const pld_tensor *data,
                 const pld_tensor *signals, const pld_tensor *signal, int32_t root)
{
    const int64_t NR = x->shape[0];

#line 30
    pld_submit(core, &exchange_function, PLD_ARGS(PLD_TENSOR(x), PLD_TENSOR(y), PLD_TENSOR(data), PLD_TENSOR(signals)), 4);
    pld_submit(core, &reduce_scatter_function, PLD_ARGS(PLD_INT(NR), PLD_TENSOR(data), PLD_TENSOR(signal)), 3);
    pld_submit(core, &barrier_function, PLD_ARGS(PLD_INT(NR), PLD_TENSOR(signal)), 2);
#line 32
    const int32_t t0 = root + 1;
#line 32
    pld_submit(core, &broadcast_function, PLD_ARGS(PLD_INT(NR), PLD_TENSOR(data), PLD_TENSOR(signal), PLD_INT(t0)), 4);
}

/* allreduce: in-core kernel, collectives.py:46 */
#line 46
static void allreduce(pld_core *core, const pld_tensor *data,
                      const pld_tensor *user__allreduce_signal_0)
{
#line 46
    pld_allreduce(core, data, user__allreduce_signal_0, PLD_MIN, PLD_MESH);
}

/* allreduce: per-device wrapper, collectives.py:46 */
#line 46
static void allreduce_2(pld_core *core, const pld_tensor *data,
                        const pld_tensor *user__allreduce_signal_0)
{
#line 46
    pld_submit(core, &allreduce_function, PLD_ARGS(PLD_TENSOR(data), PLD_TENSOR(user__allreduce_signal_0)), 2);
}

/* host: host function, collectives.py:36 */
#line 36
static void host_(pld_host *host, const pld_tensor *x, const pld_tensor *y)
{
#line 37
    const int64_t ranks = pld_world_size(host);
    const pld_buffer data_buf = pld_alloc_window(host, 0, ranks * 32, pld_all_devices(host));
    const pld_buffer pair_buf = pld_alloc_window(host, 1, 512, pld_all_devices(host));
    const pld_buffer signal_buf = pld_alloc_window(host, 2, ranks * 4, pld_all_devices(host));
    const pld_tensor data = pld_window_view(host, data_buf, PYPTO_FP32, 2, PLD_EXTENTS(ranks, 8));
    for (int64_t r = 0; r < ranks; ++r) {
        const pld_tensor pair = pld_window_view(host, pair_buf, PYPTO_INT32, 2, PLD_EXTENTS(2, 64));
        const pld_tensor signal = pld_window_view(host, signal_buf, PYPTO_INT32, 2, PLD_EXTENTS(ranks, 1));
        const pld_tensor x_r = pld_index(host, x, 1, PLD_AT(r));
#line 45
        const pld_tensor y_r = pld_index(host, y, 1, PLD_AT(r));
#line 45
        {
            const pld_arg chip_args[] = {PLD_TENSOR(&x_r), PLD_TENSOR(&y_r), PLD_TENSOR(&data),
                                         PLD_TENSOR(&pair), PLD_TENSOR(&signal), PLD_INT(-1)};
#line 45
            pld_dispatch(host, r, &chip_function, chip_args, 6);
        }
    }
#line 46
    const int64_t user__allreduce_signal_world_size_0 = pld_world_size(host);
#line 46
    const pld_buffer user__allreduce_signal_buf_0 = pld_alloc_window(host, 3, user__allreduce_signal_world_size_0 * 4, pld_all_devices(host));
#line 46
    const pld_tensor user__allreduce_signal_0 = pld_window_view(host, user__allreduce_signal_buf_0, PYPTO_INT32, 2, PLD_EXTENTS(user__allreduce_signal_world_size_0, 1));
#line 46
    for (int64_t r = 0, r_end = pld_world_size(host); r < r_end; ++r) {
#line 46
        pld_dispatch(host, r, &allreduce_2_function, PLD_ARGS(PLD_TENSOR(&data), PLD_TENSOR(&user__allreduce_signal_0)), 2);
    }
}

#line 146 "program.c"
/* For the runtime: entries, which unpack arguments, and tables. */

static void exchange_entry(pld_core *core, const pld_arg *args)
{
    exchange(core, args[0].tensor, args[1].tensor, args[2].tensor, args[3].tensor);
}

static const pld_param exchange_params[] = {
    {"x", PLD_PARAM_TENSOR, PLD_IN, PYPTO_FP32, 2, {-1, 8}, -1, 0},
    {"y", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 2, {-1, 8}, -1, 0},
    {"data", PLD_PARAM_WINDOW, PLD_INOUT, PYPTO_FP32, 2, {-1, 8}, -1, PLD_READS | PLD_WRITES},
    {"signals", PLD_PARAM_WINDOW, PLD_IN, PYPTO_INT32, 2, {2, 64}, -1, PLD_READS | PLD_WRITES},
};
static const char *const exchange_dims[] = {"NR"};
static const pld_function exchange_function = {
    .name = "exchange",
    .file = "tests/golden/collectives.py",
    .line = 10,
    .plane = PLD_PLANE_CORE,
    .run = exchange_entry,
    .nparams = 4,
    .params = exchange_params,
    .ndims = 1,
    .dims = exchange_dims,
};

static void reduce_scatter_entry(pld_core *core, const pld_arg *args)
{
    const int64_t NR = args[0].integer;
#line 31 "tests/golden/collectives.py"
    const pld_tensor data = pld_view(core, args[1].tensor, 2, PLD_EXTENTS(NR, 8));
#line 31
    const pld_tensor signal = pld_view(core, args[2].tensor, 2, PLD_EXTENTS(NR, 1));
    reduce_scatter(core, args[0].integer, &data, &signal);
}

#line 183 "program.c"
static const pld_param reduce_scatter_params[] = {
    {"NR", PLD_PARAM_SCALAR, PLD_IN, PYPTO_INDEX, 0, {0}, -1, 0},
    {"data", PLD_PARAM_WINDOW, PLD_INOUT, PYPTO_FP32, 2, {-1, 8}, -1, PLD_READS | PLD_WRITES},
    {"signal", PLD_PARAM_WINDOW, PLD_INOUT, PYPTO_INT32, 2, {-1, 1}, -1, PLD_READS | PLD_WRITES},
};
static const char *const reduce_scatter_dims[] = {"NR"};
static const pld_function reduce_scatter_function = {
    .name = "reduce_scatter",
    .file = "tests/golden/collectives.py",
    .line = 31,
    .plane = PLD_PLANE_CORE,
    .run = reduce_scatter_entry,
    .nparams = 3,
    .params = reduce_scatter_params,
    .ndims = 1,
    .dims = reduce_scatter_dims,
};

static void barrier_entry(pld_core *core, const pld_arg *args)
{
    const int64_t NR = args[0].integer;
#line 32 "tests/golden/collectives.py"
    const pld_tensor signal = pld_view(core, args[1].tensor, 2, PLD_EXTENTS(NR, 1));
    barrier(core, args[0].integer, &signal);
}

#line 210 "program.c"
static const pld_param barrier_params[] = {
    {"NR", PLD_PARAM_SCALAR, PLD_IN, PYPTO_INDEX, 0, {0}, -1, 0},
    {"signal", PLD_PARAM_WINDOW, PLD_INOUT, PYPTO_INT32, 2, {-1, 1}, -1, PLD_READS | PLD_WRITES | PLD_FENCES},
};
static const char *const barrier_dims[] = {"NR"};
static const pld_function barrier_function = {
    .name = "barrier",
    .file = "tests/golden/collectives.py",
    .line = 32,
    .plane = PLD_PLANE_CORE,
    .run = barrier_entry,
    .nparams = 2,
    .params = barrier_params,
    .ndims = 1,
    .dims = barrier_dims,
};

static void broadcast_entry(pld_core *core, const pld_arg *args)
{
    const int64_t NR = args[0].integer;
#line 32 "tests/golden/collectives.py"
    const pld_tensor data = pld_view(core, args[1].tensor, 2, PLD_EXTENTS(NR, 8));
#line 32
    const pld_tensor signal = pld_view(core, args[2].tensor, 2, PLD_EXTENTS(NR, 1));
    broadcast(core, args[0].integer, &data, &signal, (int32_t)args[3].integer);
}

#line 238 "program.c"
static const pld_param broadcast_params[] = {
    {"NR", PLD_PARAM_SCALAR, PLD_IN, PYPTO_INDEX, 0, {0}, -1, 0},
    {"data", PLD_PARAM_WINDOW, PLD_INOUT, PYPTO_FP32, 2, {-1, 8}, -1, PLD_READS | PLD_WRITES},
    {"signal", PLD_PARAM_WINDOW, PLD_INOUT, PYPTO_INT32, 2, {-1, 1}, -1, PLD_READS | PLD_WRITES},
    {"root", PLD_PARAM_SCALAR, PLD_IN, PYPTO_INT32, 0, {0}, -1, 0},
};
static const char *const broadcast_dims[] = {"NR"};
static const pld_function broadcast_function = {
    .name = "broadcast",
    .file = "tests/golden/collectives.py",
    .line = 32,
    .plane = PLD_PLANE_CORE,
    .run = broadcast_entry,
    .nparams = 4,
    .params = broadcast_params,
    .ndims = 1,
    .dims = broadcast_dims,
};

static void chip_entry(pld_core *core, const pld_arg *args)
{
    const int64_t NR = args[0].tensor->shape[0];
#line 22 "tests/golden/collectives.py"
    const pld_tensor data = pld_view(core, args[2].tensor, 2, PLD_EXTENTS(NR, 8));
#line 22
    const pld_tensor signal = pld_view(core, args[4].tensor, 2, PLD_EXTENTS(NR, 1));
    chip(core, args[0].tensor, args[1].tensor, &data, args[3].tensor, &signal,
         (int32_t)args[5].integer);
}

#line 269 "program.c"
static const pld_param chip_params[] = {
    {"x", PLD_PARAM_TENSOR, PLD_IN, PYPTO_FP32, 2, {-1, 8}, -1, 0},
    {"y", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 2, {-1, 8}, -1, 0},
    {"data", PLD_PARAM_WINDOW, PLD_INOUT, PYPTO_FP32, 2, {-1, 8}, -1, 0},
    {"signals", PLD_PARAM_WINDOW, PLD_IN, PYPTO_INT32, 2, {2, 64}, -1, 0},
    {"signal", PLD_PARAM_WINDOW, PLD_IN, PYPTO_INT32, 2, {-1, 1}, -1, 0},
    {"root", PLD_PARAM_SCALAR, PLD_IN, PYPTO_INT32, 0, {0}, -1, 0},
};
static const char *const chip_dims[] = {"NR"};
static const pld_function chip_function = {
    .name = "chip",
    .file = "tests/golden/collectives.py",
    .line = 22,
    .plane = PLD_PLANE_CHIP,
    .run = chip_entry,
    .nparams = 6,
    .params = chip_params,
    .ndims = 1,
    .dims = chip_dims,
};

static void allreduce_entry(pld_core *core, const pld_arg *args)
{
    allreduce(core, args[0].tensor, args[1].tensor);
}

static const pld_param allreduce_params[] = {
    {"data", PLD_PARAM_WINDOW, PLD_INOUT, PYPTO_FP32, 2, {-1, 8}, -1, PLD_READS | PLD_WRITES},
    {"__allreduce_signal_0", PLD_PARAM_WINDOW, PLD_INOUT, PYPTO_INT32, 2, {-2, 1}, -1, PLD_READS | PLD_WRITES},
};
static const char *const allreduce_dims[] = {"extent0", "extent1"};
static const pld_function allreduce_function = {
    .name = "allreduce",
    .file = "tests/golden/collectives.py",
    .line = 46,
    .plane = PLD_PLANE_CORE,
    .run = allreduce_entry,
    .nparams = 2,
    .params = allreduce_params,
    .ndims = 2,
    .dims = allreduce_dims,
};

static void allreduce_2_entry(pld_core *core, const pld_arg *args)
{
    allreduce_2(core, args[0].tensor, args[1].tensor);
}

static const pld_param allreduce_2_params[] = {
    {"data", PLD_PARAM_WINDOW, PLD_INOUT, PYPTO_FP32, 2, {-1, 8}, -1, 0},
    {"__allreduce_signal_0", PLD_PARAM_WINDOW, PLD_INOUT, PYPTO_INT32, 2, {-2, 1}, -1, 0},
};
static const char *const allreduce_2_dims[] = {"extent0", "extent1"};
static const pld_function allreduce_2_function = {
    .name = "allreduce",
    .file = "tests/golden/collectives.py",
    .line = 46,
    .plane = PLD_PLANE_CHIP,
    .run = allreduce_2_entry,
    .nparams = 2,
    .params = allreduce_2_params,
    .ndims = 2,
    .dims = allreduce_2_dims,
};

static void host__entry(pld_host *host, const pld_arg *args)
{
    host_(host, args[0].tensor, args[1].tensor);
}

static const pld_param host__params[] = {
    {"x", PLD_PARAM_TENSOR, PLD_IN, PYPTO_FP32, 3, {-1, -1, 8}, 0, 0},
    {"y", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 3, {-1, -1, 8}, 0, 0},
};
static const char *const host__dims[] = {"NR"};
static const pld_function host__function = {
    .name = "host",
    .file = "tests/golden/collectives.py",
    .line = 36,
    .plane = PLD_PLANE_HOST,
    .run_host = host__entry,
    .nparams = 2,
    .params = host__params,
    .ndims = 1,
    .dims = host__dims,
};

static const pld_function *const program_functions[] = {&exchange_function,
                                                        &reduce_scatter_function, &barrier_function,
                                                        &broadcast_function, &chip_function,
                                                        &allreduce_function, &allreduce_2_function,
                                                        &host__function};
static const pld_buffer_info program_buffers[] = {{"data_buf", 38, PLD_NO_COLLECTIVES},
                                                  {"pair_buf", 39, PLD_MANY_SIGNALS},
                                                  {"signal_buf", 40, PLD_ONE_SIGNAL},
                                                  {"__allreduce_signal_buf_0", 46, PLD_ONE_SIGNAL}};

PYPTO_API const pld_program pypto_program = {
    .abi = PLD_ABI,
    .size = sizeof(pld_program),
    .name = "host",
    .nfunctions = 8,
    .host = 7,
    .functions = program_functions,
    .nbuffers = 4,
    .buffers = program_buffers,
};
