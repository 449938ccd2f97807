/* Program 'orchestrator', compiled by pypto 0.1.0 from
 * /home/user/script.py
 * and written for reading: edit the script, not this file.
 *
 *   reduce_step          in-core kernel, line 8, 2048 bytes of scratch
 *   chip_orch            per-device wrapper, line 49
 *   orchestrator         host function, line 59
 */
#include <pypto/program.h>

static const pld_function reduce_step_function;
static const pld_function chip_orch_function;

/* reduce_step: in-core kernel, script.py:8 */
#line 8 "/home/user/script.py"
static void reduce_step(pld_core *core, const pld_tensor *inp, const pld_tensor *out,
                        const pld_tensor *data, const pld_tensor *signal)
{
    char *const scratch = pld_scratch(core);
    float *const local = (float *)scratch; /* tile [1, 256] fp32 */
    float *const acc = (float *)scratch; /* tile [1, 256] fp32 */
    float *const peer_tile = (float *)(scratch + 1024); /* tile [1, 256] fp32 */

#line 14
    const pld_comm *const ctx = pld_get_comm(core, data);
    const int32_t my_rank = ctx->rank;
    const int32_t nranks = ctx->nranks;
#line 19
    pld_load(core, local, inp, PLD_AT(0, 0), PLD_EXTENTS(1, 256));
    pld_store(core, local, data, PLD_AT(0, 0), PLD_EXTENTS(1, 256));
#line 23
    for (int64_t peer = 0; peer < nranks; ++peer) {
        pld_poll(core);
#line 24
        if (peer != my_rank) {
            pld_notify(core, signal, peer, PLD_AT(my_rank, 0), 1, PLD_ATOMIC_ADD);
        }
    }
#line 29
    for (int64_t src = 0; src < nranks; ++src) {
        pld_poll(core);
#line 30
        if (src != my_rank) {
            pld_wait(core, signal, PLD_AT(src, 0), 1, PLD_GE);
        }
    }
#line 37
    pld_load(core, acc, data, PLD_AT(0, 0), PLD_EXTENTS(1, 256));
    for (int64_t peer = 0; peer < nranks; ++peer) {
        pld_poll(core);
#line 39
        if (peer != my_rank) {
            pld_remote_load(core, peer_tile, data, peer, PLD_AT(0, 0), PLD_EXTENTS(1, 256));
#line 43
            for (int64_t i = 0; i < 256; ++i) acc[i] = acc[i] + peer_tile[i];
        }
    }
    pld_store(core, acc, out, PLD_AT(0, 0), PLD_EXTENTS(1, 256));
}

/* chip_orch: per-device wrapper, script.py:49 */
#line 49
static void chip_orch(pld_core *core, const pld_tensor *inp, const pld_tensor *out,
                      const pld_tensor *data, const pld_tensor *signal)
{
#line 56
    pld_submit(core, &reduce_step_function, PLD_ARGS(PLD_TENSOR(inp), PLD_TENSOR(out), PLD_TENSOR(data), PLD_TENSOR(signal)), 4);
}

/* orchestrator: host function, script.py:59 */
#line 59
static void orchestrator(pld_host *host, const pld_tensor *inputs, const pld_tensor *outputs)
{
#line 63
    const pld_buffer data_buf = pld_alloc_window(host, 0, 1024, pld_all_devices(host));
    const pld_buffer signal_buf = pld_alloc_window(host, 1, pld_world_size(host) * 4, pld_all_devices(host));
#line 66
    for (int64_t r = 0, r_end = pld_world_size(host); r < r_end; ++r) {
        const pld_tensor data = pld_window_view(host, data_buf, PYPTO_FP32, 2, PLD_EXTENTS(1, 256));
        const pld_tensor signal = pld_window_view(host, signal_buf, PYPTO_INT32, 2, PLD_EXTENTS(pld_world_size(host), 1));
        const pld_tensor inputs_r = pld_index(host, inputs, 1, PLD_AT(r));
#line 69
        const pld_tensor outputs_r = pld_index(host, outputs, 1, PLD_AT(r));
#line 69
        {
            const pld_arg chip_orch_args[] = {PLD_TENSOR(&inputs_r), PLD_TENSOR(&outputs_r),
                                              PLD_TENSOR(&data), PLD_TENSOR(&signal)};
#line 69
            pld_dispatch(host, r, &chip_orch_function, chip_orch_args, 4);
        }
    }
}

#line 95 "program.c"
/* For the runtime: entries, which unpack arguments, and tables. */

static void reduce_step_entry(pld_core *core, const pld_arg *args)
{
    reduce_step(core, args[0].tensor, args[1].tensor, args[2].tensor, args[3].tensor);
}

static const pld_param reduce_step_params[] = {
    {"inp", PLD_PARAM_TENSOR, PLD_IN, PYPTO_FP32, 2, {1, 256}, -1, 0},
    {"out", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 2, {1, 256}, -1, 0},
    {"data", PLD_PARAM_WINDOW, PLD_INOUT, PYPTO_FP32, 2, {1, 256}, -1, PLD_READS | PLD_WRITES},
    {"signal", PLD_PARAM_WINDOW, PLD_INOUT, PYPTO_INT32, 2, {-1, 1}, -1, PLD_NOTIFIES | PLD_AWAITS},
};
static const char *const reduce_step_dims[] = {"NR"};
static const pld_function reduce_step_function = {
    .name = "reduce_step",
    .file = "/home/user/script.py",
    .line = 8,
    .plane = PLD_PLANE_CORE,
    .run = reduce_step_entry,
    .scratch_bytes = 2048,
    .nparams = 4,
    .params = reduce_step_params,
    .ndims = 1,
    .dims = reduce_step_dims,
};

static void chip_orch_entry(pld_core *core, const pld_arg *args)
{
    chip_orch(core, args[0].tensor, args[1].tensor, args[2].tensor, args[3].tensor);
}

static const pld_param chip_orch_params[] = {
    {"inp", PLD_PARAM_TENSOR, PLD_IN, PYPTO_FP32, 2, {1, 256}, -1, 0},
    {"out", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 2, {1, 256}, -1, 0},
    {"data", PLD_PARAM_WINDOW, PLD_INOUT, PYPTO_FP32, 2, {1, 256}, -1, 0},
    {"signal", PLD_PARAM_WINDOW, PLD_INOUT, PYPTO_INT32, 2, {-1, 1}, -1, 0},
};
static const char *const chip_orch_dims[] = {"NR"};
static const pld_function chip_orch_function = {
    .name = "chip_orch",
    .file = "/home/user/script.py",
    .line = 49,
    .plane = PLD_PLANE_CHIP,
    .run = chip_orch_entry,
    .nparams = 4,
    .params = chip_orch_params,
    .ndims = 1,
    .dims = chip_orch_dims,
};

static void orchestrator_entry(pld_host *host, const pld_arg *args)
{
    orchestrator(host, args[0].tensor, args[1].tensor);
}

static const pld_param orchestrator_params[] = {
    {"inputs", PLD_PARAM_TENSOR, PLD_IN, PYPTO_FP32, 3, {-1, 1, 256}, 0, 0},
    {"outputs", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 3, {-1, 1, 256}, 0, 0},
};
static const char *const orchestrator_dims[] = {"NR"};
static const pld_function orchestrator_function = {
    .name = "orchestrator",
    .file = "/home/user/script.py",
    .line = 59,
    .plane = PLD_PLANE_HOST,
    .run_host = orchestrator_entry,
    .nparams = 2,
    .params = orchestrator_params,
    .ndims = 1,
    .dims = orchestrator_dims,
};

static const pld_function *const program_functions[] = {&reduce_step_function, &chip_orch_function,
                                                        &orchestrator_function};
static const pld_buffer_info program_buffers[] = {{"data_buf", 63, PLD_NO_COLLECTIVES},
                                                  {"signal_buf", 64, PLD_NO_COLLECTIVES}};

PYPTO_API const pld_program pypto_program = {
    .abi = PLD_ABI,
    .size = sizeof(pld_program),
    .name = "orchestrator",
    .nfunctions = 3,
    .host = 2,
    .functions = program_functions,
    .nbuffers = 2,
    .buffers = program_buffers,
};
