/* Program 'host', compiled by pypto 0.1.0 from
 * tests/golden/results.py
 * and written for reading: edit the script, not this file.
 *
 *   double_kernel        in-core kernel, line 11, 64 bytes of scratch
 *   twice_and_more       per-device wrapper, line 18
 *   double               per-device wrapper, line 28
 *   host                 host function, line 33
 */
#include <pypto/program.h>

static const pld_function double_kernel_function;
static const pld_function twice_and_more_function;
static const pld_function double__function;

/* double_kernel: in-core kernel, results.py:11 */
#line 11 "tests/golden/results.py"
static void double_kernel(pld_core *core, const pld_tensor *x, const pld_tensor *y)
{
    char *const scratch = pld_scratch(core);
    float *const t0 = (float *)scratch; /* tile [1, 8] fp32 */
    float *const t1 = (float *)scratch; /* tile [1, 8] fp32 */
    const int64_t M = x->shape[0];

#line 12
    for (int64_t i = 0; i < M; ++i) {
        pld_load(core, t0, x, PLD_AT(i, 0), PLD_EXTENTS(1, 8));
#line 13
        for (int64_t i_2 = 0; i_2 < 8; ++i_2) t1[i_2] = t0[i_2] * 2.0f;
#line 13
        pld_store(core, t1, y, PLD_AT(i, 0), PLD_EXTENTS(1, 8));
    }
}

/* twice_and_more: per-device wrapper, results.py:18 */
static void twice_and_more(pld_core *core, const pld_tensor *x, int32_t n, const pld_tensor *twice,
                           const pld_tensor *more)
{
    const int64_t M = x->shape[0];
    (void)n;

#line 22
    pld_submit(core, &double_kernel_function, PLD_ARGS(PLD_TENSOR(x), PLD_TENSOR(twice)), 2);
    const pld_tensor t0 = pld_part(core, more, PLD_AT(0, 0), PLD_EXTENTS(M, 8));
#line 23
    pld_submit(core, &double_kernel_function, PLD_ARGS(PLD_TENSOR(twice), PLD_TENSOR(&t0)), 2);
}

/* double: per-device wrapper, results.py:28 */
#line 28
static void double_(pld_core *core, const pld_tensor *x, const pld_tensor *y)
{
#line 29
    pld_submit(core, &double_kernel_function, PLD_ARGS(PLD_TENSOR(x), PLD_TENSOR(y)), 2);
}

/* host: host function, results.py:33 */
static void host_(pld_host *host, const pld_tensor *x, const pld_tensor *out,
                  const pld_tensor *twice)
{
    int64_t turn = 0; /* counts the dispatches without device= */

#line 34
    for (int64_t r = 0, r_end = pld_world_size(host); r < r_end; ++r) {
        const pld_tensor x_r = pld_index(host, x, 1, PLD_AT(r));
#line 35
        const pld_tensor twice_2 = pld_host_create_tensor(host, PYPTO_FP32, 2, PLD_EXTENTS(4, 8), 0);
#line 35
        const pld_tensor more = pld_host_create_tensor(host, PYPTO_FP32, 2, PLD_EXTENTS(6, 8), 0);
#line 35
        pld_dispatch(host, r, &twice_and_more_function, PLD_ARGS(PLD_TENSOR(&x_r), PLD_INT(2), PLD_TENSOR(&twice_2), PLD_TENSOR(&more)), 4);
        const pld_tensor out_r = pld_index(host, out, 1, PLD_AT(r));
#line 36
        pld_dispatch(host, r, &double__function, PLD_ARGS(PLD_TENSOR(&more), PLD_TENSOR(&out_r)), 2);
#line 35
        pld_host_release_tensor(host, &twice_2);
#line 35
        pld_host_release_tensor(host, &more);
    }
    const pld_tensor x_0 = pld_index(host, x, 1, PLD_AT(0));
#line 37
    const pld_tensor more_2 = pld_host_create_tensor(host, PYPTO_FP32, 2, PLD_EXTENTS(4, 8), 0);
#line 37
    {
        const pld_arg twice_and_more_args[] = {PLD_TENSOR(&x_0), PLD_INT(0), PLD_TENSOR(twice),
                                               PLD_TENSOR(&more_2)};
#line 37
        pld_dispatch(host, turn++ % pld_world_size(host), &twice_and_more_function, twice_and_more_args, 4);
    }
}

#line 93 "program.c"
/* For the runtime: entries, which unpack arguments, and tables. */

static void double_kernel_entry(pld_core *core, const pld_arg *args)
{
    double_kernel(core, args[0].tensor, args[1].tensor);
}

static const pld_param double_kernel_params[] = {
    {"x", PLD_PARAM_TENSOR, PLD_IN, PYPTO_FP32, 2, {-1, 8}, -1, 0},
    {"y", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 2, {-1, 8}, -1, 0},
};
static const char *const double_kernel_dims[] = {"M"};
static const pld_function double_kernel_function = {
    .name = "double_kernel",
    .file = "tests/golden/results.py",
    .line = 11,
    .plane = PLD_PLANE_CORE,
    .run = double_kernel_entry,
    .scratch_bytes = 64,
    .nparams = 2,
    .params = double_kernel_params,
    .ndims = 1,
    .dims = double_kernel_dims,
};

static void twice_and_more_entry(pld_core *core, const pld_arg *args)
{
    const int64_t M = args[0].tensor->shape[0];
    const int32_t n = (int32_t)args[1].integer;
    if (args[3].tensor->shape[0] != M + n)
#line 18 "tests/golden/results.py"
        pld_fail(core, "dimension 0 of 'more' does not have the extent that 'twice_and_more' declares: (M + index(n)), which is %lld; it has %lld", (long long)(M + n), (long long)args[3].tensor->shape[0]);
    twice_and_more(core, args[0].tensor, (int32_t)args[1].integer, args[2].tensor, args[3].tensor);
}

#line 129 "program.c"
static const pld_param twice_and_more_params[] = {
    {"x", PLD_PARAM_TENSOR, PLD_IN, PYPTO_FP32, 2, {-1, 8}, -1, 0},
    {"n", PLD_PARAM_SCALAR, PLD_IN, PYPTO_INT32, 0, {0}, -1, 0},
    {"twice", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 2, {-1, 8}, -1, 0},
    {"more", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 2, {-2, 8}, -1, 0},
};
static const char *const twice_and_more_dims[] = {"M", "(M + index(n))"};
static const pld_function twice_and_more_function = {
    .name = "twice_and_more",
    .file = "tests/golden/results.py",
    .line = 18,
    .plane = PLD_PLANE_CHIP,
    .run = twice_and_more_entry,
    .nparams = 4,
    .params = twice_and_more_params,
    .ndims = 2,
    .dims = twice_and_more_dims,
};

static void double__entry(pld_core *core, const pld_arg *args)
{
    double_(core, args[0].tensor, args[1].tensor);
}

static const pld_param double__params[] = {
    {"x", PLD_PARAM_TENSOR, PLD_IN, PYPTO_FP32, 2, {-1, 8}, -1, 0},
    {"y", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 2, {-1, 8}, -1, 0},
};
static const char *const double__dims[] = {"M"};
static const pld_function double__function = {
    .name = "double",
    .file = "tests/golden/results.py",
    .line = 28,
    .plane = PLD_PLANE_CHIP,
    .run = double__entry,
    .nparams = 2,
    .params = double__params,
    .ndims = 1,
    .dims = double__dims,
};

static void host__entry(pld_host *host, const pld_arg *args)
{
    host_(host, args[0].tensor, args[1].tensor, args[2].tensor);
}

static const pld_param host__params[] = {
    {"x", PLD_PARAM_TENSOR, PLD_IN, PYPTO_FP32, 3, {-1, 4, 8}, 0, 0},
    {"out", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 3, {-1, 6, 8}, 0, 0},
    {"twice", PLD_PARAM_TENSOR, PLD_OUT, PYPTO_FP32, 2, {4, 8}, -1, 0},
};
static const char *const host__dims[] = {"NR"};
static const pld_function host__function = {
    .name = "host",
    .file = "tests/golden/results.py",
    .line = 33,
    .plane = PLD_PLANE_HOST,
    .run_host = host__entry,
    .nparams = 3,
    .params = host__params,
    .ndims = 1,
    .dims = host__dims,
};

static const pld_function *const program_functions[] = {&double_kernel_function,
                                                        &twice_and_more_function, &double__function,
                                                        &host__function};

PYPTO_API const pld_program pypto_program = {
    .abi = PLD_ABI,
    .size = sizeof(pld_program),
    .name = "host",
    .nfunctions = 4,
    .host = 3,
    .functions = program_functions,
};
