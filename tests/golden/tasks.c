/* Program 'host', compiled by pypto 0.1.0 from
 * tests/golden/tasks.py
 * and written for reading: edit the script, not this file.
 *
 *   scale                in-core kernel, line 10, 64 bytes of scratch
 *   gate                 in-core kernel, line 27
 *   copy                 in-core kernel, line 30, 64 bytes of scratch
 *   ring                 in-core kernel, line 34
 *   sums                 in-core kernel, line 36, 192 bytes of scratch
 *   chip_scope           in-core kernel, line 38
 *   chip                 per-device wrapper, line 17
 *   host_scope           in-core kernel, line 55, 128 bytes of scratch
 *   host_scope           per-device wrapper, line 54
 *   host                 host function, line 44
 */
#include <pypto/pld_tile.h>
#include <pypto/program.h>

static const pld_function scale_function;
static const pld_function gate_function;
static const pld_function copy_function;
static const pld_function ring_function;
static const pld_function sums_function;
static const pld_function chip_scope_function;
static const pld_function chip_function;
static const pld_function host_scope_function;
static const pld_function host_scope_2_function;

/* scale: in-core kernel, tasks.py:10 */
#line 10 "tests/golden/tasks.py"
static void scale(pld_core *core, const pld_tensor *x, const pld_tensor *y, float by)
{
    char *const scratch = pld_scratch(core);
    float *const t0 = (float *)scratch; /* tile [1, 8] fp32 */
    float *const t1 = (float *)scratch; /* tile [1, 8] fp32 */

#line 11
    const int64_t row = pld_block_index(core);
    pld_load(core, t0, x, PLD_AT(row, 0), PLD_EXTENTS(1, 8));
#line 12
    for (int64_t i = 0; i < 8; ++i) t1[i] = t0[i] * by;
#line 12
    pld_store(core, t1, y, PLD_AT(row, 0), PLD_EXTENTS(1, 8));
}

/* gate: in-core kernel, tasks.py:27 */
#line 27
static void gate(pld_core *core, const pld_tensor *epoch, const pld_tensor *bell)
{
#line 28
    const int32_t need = (int32_t)pld_read_int(core, epoch, PLD_EXTENTS(0, 0));
    pld_defer_wait(core, bell, PLD_AT(0, 0), need, PLD_GE);
}

/* copy: in-core kernel, tasks.py:30 */
#line 30
static void copy(pld_core *core, const pld_tensor *y, const pld_tensor *x, int64_t k)
{
    char *const scratch = pld_scratch(core);
    float *const t0 = (float *)scratch; /* tile [1, 8] fp32 */

#line 31
    pld_load(core, t0, x, PLD_AT(k, 0), PLD_EXTENTS(1, 8));
#line 31
    pld_store(core, t0, y, PLD_AT(k, 0), PLD_EXTENTS(1, 8));
}

/* ring: in-core kernel, tasks.py:34 */
#line 34
static void ring(pld_core *core, const pld_tensor *bell, int32_t to, int32_t need)
{
#line 35
    pld_notify(core, bell, to, PLD_AT(0, 0), need, PLD_SET);
}

/* sums: in-core kernel, tasks.py:36 */
#line 36
static void sums(pld_core *core, const pld_tensor *x, const pld_tensor *total)
{
    char *const scratch = pld_scratch(core);
    float *const t4 = (float *)scratch; /* tile [4, 8] fp32 */
    float *const total_2 = (float *)(scratch + 128); /* tile [4, 1] fp32 */

#line 37
    pld_load(core, t4, x, PLD_AT(0, 0), PLD_EXTENTS(4, 8));
#line 37
    pld_row_sum_f32(total_2, t4, 4, 8, 8);
#line 37
    pld_store(core, total_2, total, PLD_AT(0, 0), PLD_EXTENTS(4, 1));
}

/* chip_scope: in-core kernel, tasks.py:38 */
#line 38
static void chip_scope(pld_core *core, const pld_tensor *y, const pld_tensor *t5)
{
#line 38
    const int64_t i = pld_block_index(core);
    const float t6 = pld_read_float(core, t5, PLD_EXTENTS(i, 0));
#line 39
    pld_write_float(core, y, PLD_EXTENTS(i, 0), t6);
}

/* chip: per-device wrapper, tasks.py:17 */
#line 17
static void chip(pld_core *core, const pld_tensor *x, const pld_tensor *y, const pld_tensor *epoch,
                 const pld_tensor *bell, int32_t to)
{
#line 24
    pld_scope_begin(core, "pl.manual_scope", "chip", 0);
    int64_t prev = 0;
    int64_t gate_2 = 0;
#line 26
    int32_t need = 0;
#line 26
    for (int64_t k = 0; k < 4; ++k) {
        pld_scope_begin(core, "pl.at", "gate", 1);
#line 27
        {
            const pld_arg gate_args[] = {PLD_TENSOR(epoch), PLD_TENSOR(bell)};
            const pld_task gate_after[] = {prev};
            const pld_submit_options gate_options = {.after = gate_after, .after_count = 1, .manual = true};
#line 27
            gate_2 = pld_submit_with(core, &gate_function, gate_args, 2, &gate_options);
        }
#line 28
        const int32_t t3 = (int32_t)pld_read_int(core, epoch, PLD_EXTENTS(0, 0));
#line 27
        need = t3;
#line 27
        pld_scope_end(core, 1);
#line 30
        pld_scope_begin(core, "pl.at", "copy", 1);
#line 30
        {
            const pld_arg copy_args[] = {PLD_TENSOR(y), PLD_TENSOR(x), PLD_INT(k)};
            const pld_task copy_after[] = {gate_2};
            const pld_submit_options copy_options = {.after = copy_after, .after_count = 1, .manual = true};
#line 30
            prev = pld_submit_with(core, &copy_function, copy_args, 3, &copy_options);
        }
#line 30
        pld_scope_end(core, 1);
    }
    int64_t t1;
#line 32
    {
        const pld_arg scale_args[] = {PLD_TENSOR(y), PLD_TENSOR(y), PLD_FLOAT(2.0f)};
        const pld_task scale_after[] = {prev};
        const pld_submit_options scale_options = {.after = scale_after, .after_count = 1, .blocks = 4, .manual = true, .independent_args = 0x2};
#line 32
        t1 = pld_submit_with(core, &scale_function, scale_args, 3, &scale_options);
    }
#line 32
    const int64_t scaled = t1;
    {
        const pld_task join_after[] = {gate_2, scaled};
        const pld_submit_options join_options = {.after = join_after, .after_count = 2};
#line 33
        pld_submit_join(core, &join_options);
    }
#line 34
    pld_scope_begin(core, "pl.at", "ring", 1);
#line 34
    {
        const pld_arg ring_args[] = {PLD_TENSOR(bell), PLD_INT(to), PLD_INT(need)};
        const pld_submit_options ring_options = {.manual = true};
#line 34
        pld_submit_with(core, &ring_function, ring_args, 3, &ring_options);
    }
#line 34
    pld_scope_end(core, 1);
#line 24
    pld_scope_end(core, 0);
#line 36
    pld_scope_begin(core, "pl.at", "sums", 0);
#line 36
    const pld_tensor t5 = pld_create_tensor(core, PYPTO_FP32, 2, PLD_EXTENTS(4, 1), 0);
#line 36
    pld_submit(core, &sums_function, PLD_ARGS(PLD_TENSOR(x), PLD_TENSOR(&t5)), 2);
#line 36
    pld_scope_end(core, 0);
#line 38
    pld_scope_begin(core, "pl.spmd", "chip", 0);
#line 38
    {
        const pld_arg chip_scope_args[] = {PLD_TENSOR(y), PLD_TENSOR(&t5)};
        const int64_t chip_scope_element[] = {0, 0};
        const pld_predicate chip_scope_predicate = {epoch, chip_scope_element, PLD_GREATER, 1};
        const pld_submit_options chip_scope_options = {.predicate = &chip_scope_predicate, .blocks = 4};
#line 38
        pld_submit_with(core, &chip_scope_function, chip_scope_args, 2, &chip_scope_options);
    }
#line 38
    pld_scope_end(core, 0);
}

/* host_scope: in-core kernel, tasks.py:55 */
#line 55
static void host_scope(pld_core *core, const pld_tensor *s, int64_t NR, const pld_tensor *x)
{
    char *const scratch = pld_scratch(core);
    float *const t3 = (float *)scratch; /* tile [4, 8] fp32 */
    float *const t4 = (float *)scratch; /* tile [4, 8] fp32 */
    (void)NR;

#line 56
    const pld_tensor t2 = pld_part(core, x, PLD_AT(0, 0, 0), PLD_EXTENTS(PLD_DROP, 4, 8));
#line 56
    pld_load(core, t3, &t2, PLD_AT(0, 0), PLD_EXTENTS(4, 8));
#line 56
    for (int64_t i = 0; i < 32; ++i) t4[i] = t3[i] * 3.0f;
#line 56
    pld_store(core, t4, s, PLD_AT(0, 0), PLD_EXTENTS(4, 8));
}

/* host_scope: per-device wrapper, tasks.py:54 */
#line 54
static void host_scope_2(pld_core *core, const pld_tensor *s, int64_t NR, const pld_tensor *x)
{
#line 55
    pld_scope_begin(core, "pl.at", "host", 0);
#line 55
    pld_submit(core, &host_scope_function, PLD_ARGS(PLD_TENSOR(s), PLD_INT(NR), PLD_TENSOR(x)), 3);
#line 55
    pld_scope_end(core, 0);
}

/* host: host function, tasks.py:44 */
#line 44
static void host_(pld_host *host, const pld_tensor *x, const pld_tensor *y, const pld_tensor *epoch,
                  const pld_tensor *s)
{
    const int64_t NR = x->shape[0];
    int64_t turn = 0; /* counts the dispatches without device= */

    const pld_buffer buffer = pld_alloc_window(host, 0, 4, pld_all_devices(host));
    for (int64_t r = 0, r_end = pld_world_size(host); r < r_end; ++r) {
        const pld_tensor bell = pld_window_view(host, buffer, PYPTO_INT32, 2, PLD_EXTENTS(1, 1));
        const pld_tensor x_r = pld_index(host, x, 1, PLD_AT(r));
#line 53
        const pld_tensor y_r = pld_index(host, y, 1, PLD_AT(r));
#line 53
        {
            const pld_arg chip_args[] = {PLD_TENSOR(&x_r), PLD_TENSOR(&y_r), PLD_TENSOR(epoch),
                                         PLD_TENSOR(&bell),
                                         PLD_INT((int32_t)pld_floormod(r + 1, pld_world_size(host)))};
#line 53
            pld_dispatch(host, r, &chip_function, chip_args, 5);
        }
    }
#line 54
    pld_dispatch(host, turn++ % pld_world_size(host), &host_scope_2_function, PLD_ARGS(PLD_TENSOR(s), PLD_INT(NR), PLD_TENSOR(x)), 3);
}

#line 256 "program.c"
/* For the runtime: entries, which unpack arguments, and tables. */

static void scale_entry(pld_core *core, const pld_arg *args)
{
    scale(core, args[0].tensor, args[1].tensor, (float)args[2].real);
}

static const pld_param scale_params[] = {
    {"x", PLD_PARAM_TENSOR, PLD_IN, PYPTO_FP32, 2, {4, 8}, -1, 0},
    {"y", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 2, {4, 8}, -1, 0},
    {"by", PLD_PARAM_SCALAR, PLD_IN, PYPTO_FP32, 0, {0}, -1, 0},
};
static const pld_function scale_function = {
    .name = "scale",
    .file = "tests/golden/tasks.py",
    .line = 10,
    .plane = PLD_PLANE_CORE,
    .run = scale_entry,
    .scratch_bytes = 64,
    .nparams = 3,
    .params = scale_params,
};

static void gate_entry(pld_core *core, const pld_arg *args)
{
    gate(core, args[0].tensor, args[1].tensor);
}

static const pld_param gate_params[] = {
    {"epoch", PLD_PARAM_TENSOR, PLD_IN, PYPTO_INT32, 2, {1, 1}, -1, 0},
    {"bell", PLD_PARAM_WINDOW, PLD_IN, PYPTO_INT32, 2, {1, 1}, -1, PLD_AWAITS},
};
static const pld_function gate_function = {
    .name = "gate",
    .file = "tests/golden/tasks.py",
    .line = 27,
    .plane = PLD_PLANE_CORE,
    .run = gate_entry,
    .nparams = 2,
    .params = gate_params,
};

static void copy_entry(pld_core *core, const pld_arg *args)
{
    copy(core, args[0].tensor, args[1].tensor, args[2].integer);
}

static const pld_param copy_params[] = {
    {"y", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 2, {4, 8}, -1, 0},
    {"x", PLD_PARAM_TENSOR, PLD_IN, PYPTO_FP32, 2, {4, 8}, -1, 0},
    {"k", PLD_PARAM_SCALAR, PLD_IN, PYPTO_INDEX, 0, {0}, -1, 0},
};
static const pld_function copy_function = {
    .name = "copy",
    .file = "tests/golden/tasks.py",
    .line = 30,
    .plane = PLD_PLANE_CORE,
    .run = copy_entry,
    .scratch_bytes = 64,
    .nparams = 3,
    .params = copy_params,
};

static void ring_entry(pld_core *core, const pld_arg *args)
{
    ring(core, args[0].tensor, (int32_t)args[1].integer, (int32_t)args[2].integer);
}

static const pld_param ring_params[] = {
    {"bell", PLD_PARAM_WINDOW, PLD_OUT, PYPTO_INT32, 2, {1, 1}, -1, PLD_NOTIFIES},
    {"to", PLD_PARAM_SCALAR, PLD_IN, PYPTO_INT32, 0, {0}, -1, 0},
    {"need", PLD_PARAM_SCALAR, PLD_IN, PYPTO_INT32, 0, {0}, -1, 0},
};
static const pld_function ring_function = {
    .name = "ring",
    .file = "tests/golden/tasks.py",
    .line = 34,
    .plane = PLD_PLANE_CORE,
    .run = ring_entry,
    .nparams = 3,
    .params = ring_params,
};

static void sums_entry(pld_core *core, const pld_arg *args)
{
    sums(core, args[0].tensor, args[1].tensor);
}

static const pld_param sums_params[] = {
    {"x", PLD_PARAM_TENSOR, PLD_IN, PYPTO_FP32, 2, {4, 8}, -1, 0},
    {"total", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 2, {4, 1}, -1, 0},
};
static const pld_function sums_function = {
    .name = "sums",
    .file = "tests/golden/tasks.py",
    .line = 36,
    .plane = PLD_PLANE_CORE,
    .run = sums_entry,
    .scratch_bytes = 192,
    .nparams = 2,
    .params = sums_params,
};

static void chip_scope_entry(pld_core *core, const pld_arg *args)
{
    chip_scope(core, args[0].tensor, args[1].tensor);
}

static const pld_param chip_scope_params[] = {
    {"y", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 2, {4, 8}, -1, 0},
    {"t5", PLD_PARAM_TENSOR, PLD_IN, PYPTO_FP32, 2, {4, 1}, -1, 0},
};
static const pld_function chip_scope_function = {
    .name = "chip_scope",
    .file = "tests/golden/tasks.py",
    .line = 38,
    .plane = PLD_PLANE_CORE,
    .run = chip_scope_entry,
    .nparams = 2,
    .params = chip_scope_params,
};

static void chip_entry(pld_core *core, const pld_arg *args)
{
    chip(core, args[0].tensor, args[1].tensor, args[2].tensor, args[3].tensor,
         (int32_t)args[4].integer);
}

static const pld_param chip_params[] = {
    {"x", PLD_PARAM_TENSOR, PLD_IN, PYPTO_FP32, 2, {4, 8}, -1, 0},
    {"y", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 2, {4, 8}, -1, 0},
    {"epoch", PLD_PARAM_TENSOR, PLD_IN, PYPTO_INT32, 2, {1, 1}, -1, 0},
    {"bell", PLD_PARAM_WINDOW, PLD_INOUT, PYPTO_INT32, 2, {1, 1}, -1, 0},
    {"to", PLD_PARAM_SCALAR, PLD_IN, PYPTO_INT32, 0, {0}, -1, 0},
};
static const pld_function chip_function = {
    .name = "chip",
    .file = "tests/golden/tasks.py",
    .line = 17,
    .plane = PLD_PLANE_CHIP,
    .run = chip_entry,
    .nparams = 5,
    .params = chip_params,
};

static void host_scope_entry(pld_core *core, const pld_arg *args)
{
    const int64_t NR = args[1].integer;
    if (args[2].tensor->shape[0] != NR)
#line 55 "tests/golden/tasks.py"
        pld_fail(core, "dimension 0 of 'x' does not have the extent that 'host_scope' declares: NR, which is %lld; it has %lld", (long long)NR, (long long)args[2].tensor->shape[0]);
    host_scope(core, args[0].tensor, args[1].integer, args[2].tensor);
}

#line 411 "program.c"
static const pld_param host_scope_params[] = {
    {"s", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 2, {4, 8}, -1, 0},
    {"NR", PLD_PARAM_SCALAR, PLD_IN, PYPTO_INDEX, 0, {0}, -1, 0},
    {"x", PLD_PARAM_TENSOR, PLD_IN, PYPTO_FP32, 3, {-1, 4, 8}, -1, 0},
};
static const char *const host_scope_dims[] = {"NR"};
static const pld_function host_scope_function = {
    .name = "host_scope",
    .file = "tests/golden/tasks.py",
    .line = 55,
    .plane = PLD_PLANE_CORE,
    .run = host_scope_entry,
    .scratch_bytes = 128,
    .nparams = 3,
    .params = host_scope_params,
    .ndims = 1,
    .dims = host_scope_dims,
};

static void host_scope_2_entry(pld_core *core, const pld_arg *args)
{
    const int64_t NR = args[1].integer;
    if (args[2].tensor->shape[0] != NR)
#line 54 "tests/golden/tasks.py"
        pld_fail(core, "dimension 0 of 'x' does not have the extent that 'host_scope' declares: NR, which is %lld; it has %lld", (long long)NR, (long long)args[2].tensor->shape[0]);
    host_scope_2(core, args[0].tensor, args[1].integer, args[2].tensor);
}

#line 440 "program.c"
static const pld_param host_scope_2_params[] = {
    {"s", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 2, {4, 8}, -1, 0},
    {"NR", PLD_PARAM_SCALAR, PLD_IN, PYPTO_INDEX, 0, {0}, -1, 0},
    {"x", PLD_PARAM_TENSOR, PLD_IN, PYPTO_FP32, 3, {-1, 4, 8}, -1, 0},
};
static const char *const host_scope_2_dims[] = {"NR"};
static const pld_function host_scope_2_function = {
    .name = "host_scope",
    .file = "tests/golden/tasks.py",
    .line = 54,
    .plane = PLD_PLANE_CHIP,
    .run = host_scope_2_entry,
    .nparams = 3,
    .params = host_scope_2_params,
    .ndims = 1,
    .dims = host_scope_2_dims,
};

static void host__entry(pld_host *host, const pld_arg *args)
{
    host_(host, args[0].tensor, args[1].tensor, args[2].tensor, args[3].tensor);
}

static const pld_param host__params[] = {
    {"x", PLD_PARAM_TENSOR, PLD_IN, PYPTO_FP32, 3, {-1, 4, 8}, 0, 0},
    {"y", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 3, {-1, 4, 8}, 0, 0},
    {"epoch", PLD_PARAM_TENSOR, PLD_IN, PYPTO_INT32, 2, {1, 1}, -1, 0},
    {"s", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 2, {4, 8}, -1, 0},
};
static const char *const host__dims[] = {"NR"};
static const pld_function host__function = {
    .name = "host",
    .file = "tests/golden/tasks.py",
    .line = 44,
    .plane = PLD_PLANE_HOST,
    .run_host = host__entry,
    .nparams = 4,
    .params = host__params,
    .ndims = 1,
    .dims = host__dims,
};

static const pld_function *const program_functions[] = {&scale_function, &gate_function,
                                                        &copy_function, &ring_function,
                                                        &sums_function, &chip_scope_function,
                                                        &chip_function, &host_scope_function,
                                                        &host_scope_2_function, &host__function};
static const pld_buffer_info program_buffers[] = {{"buffer", 50, PLD_NO_COLLECTIVES}};

PYPTO_API const pld_program pypto_program = {
    .abi = PLD_ABI,
    .size = sizeof(pld_program),
    .name = "host",
    .nfunctions = 10,
    .host = 9,
    .functions = program_functions,
    .nbuffers = 1,
    .buffers = program_buffers,
};
