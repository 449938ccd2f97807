/* Host functions and calls: dispatches, windows, views, specialisation, and what the front end says
 * about calls that do not fit. */
#include "frontend_check.h"

#define WINDOWS                                                                 \
    "    wb = pld.alloc_window_buffer(N * 4)\n"                                 \
    "    sb = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)\n" \
    "    w = pld.window(wb, [1, N], dtype=pl.FP32)\n"                           \
    "    s = pld.window(sb, [pld.world_size(), 1], dtype=pl.INT32)\n"

/* ---- what works ---- */

static void test_dispatches(void **state)
{
    (void)state;
    expect_body(HOST(WINDOWS "    world = pld.world_size()\n"
                             "    for r in pl.range(world):\n"
                             "        z = c2(x[r], n=(r + 1) % world, y=y[r])\n"
                             "        c3(z, w, s, device=r)\n"
                             "    c2(x[0], y[P - 3], q, device=None)\n"
                             "    return y\n"),
                "h", "h",
                "wb = pld.alloc_window_buffer(32)\n"
                "sb = pld.alloc_window_buffer((pld.world_size() * 4))\n"
                "w = pld.window(wb, [1, 8], dtype=fp32)\n"
                "s = pld.window(sb, [pld.world_size(), 1], dtype=int32)\n"
                "world = pld.world_size()\n"
                "for r in range(0, world, 1)\n"
                "  t0 = tensor.subscript(x, [r])\n"
                "  t1 = tensor.subscript(y, [r])\n"
                "  call c2(t0, t1, int32(((r + 1) % world)))\n"
                "  call c3(t1, w, s) device r\n"
                "t2 = tensor.subscript(x, [0])\n"
                "t3 = tensor.subscript(y, [1])\n"
                "call c2(t2, t3, int32(q))\n");
}

static void test_world_dimensions(void **state)
{
    (void)state;
    const char *source =
        HEAD "@pl.jit\n"
             "def c(x: pl.Tensor[[N], pl.FP32]):\n"
             "    pass\n"
             "@pl.jit.host\n"
             "def h(a: pl.Tensor[[NR, N], pl.FP32], b: pl.Tensor[[3, NR, N], pl.FP32], "
             "d: pl.Tensor[[3, NR, N], pl.FP32], e: pl.Tensor[[NR, N], pl.FP32]):\n"
             "    n = pld.world_size()\n"
             "    for r in pl.range(n):\n"
             "        c(a[r])\n"
             "        c(b[2, r])\n"
             "        c(d[1][r])\n"
             "    for i in pl.range(2):\n"
             "        c(e[i])\n"
             "    for k in pl.range(1, n):\n"
             "        c(e[k])\n";
    lowered l = lower(source, "h");
    expect_ok(&l);
    const ir_function *h = function_named(&l, "h");
    const int32_t expected[] = {0, 1, 1, -1};
    for (int32_t i = 0; i < 4; i++)
        assert_int_equal(h->world_dims.items[i], expected[i]);
    lowered_free(&l);
}

/* A window is seen in the shape that the callee declares. */
static void test_windows_of_another_shape(void **state)
{
    (void)state;
    const char *source =
        HEAD "@pl.jit\n"
             "def c(a: pld.DistributedTensor[[1, N], pl.FP32], b: pl.Tensor[[2, 4], pl.FP32]):\n"
             "    pass\n"
             "@pl.jit.host\n"
             "def h(x: pl.Tensor[[NR, 1], pl.FP32]):\n"
             "    wb = pld.alloc_window_buffer(32)\n"
             "    w = pld.window(wb, [N], dtype=pl.FP32)\n"
             "    v = pld.window(wb, [2, 4], dtype=pl.FP32)\n"
             "    for r in pl.range(pld.world_size()):\n"
             "        c(w, v, device=r)\n";
    lowered l = lower(source, "h");
    expect_ok(&l);
    const ir_function *h = function_named(&l, "h");
    assert_ptr_equal(var_named(h, "w")->root, var_named(h, "wb"));
    assert_int_equal(var_named(h, "v")->buffer, 0);
    lowered_free(&l);
}

/* Bare parameters take their type from the call: one function for each. */
static void test_specialisation(void **state)
{
    (void)state;
    const char *source =
        HEAD "@pl.jit.incore\n"
             "def k(x: pl.Tensor, y: pl.Out[pl.Tensor]):\n"
             "    pl.store(pl.load(x, [0, 0], [1, 4]), [0, 0], y)\n"
             "@pl.jit\n"
             "def c(x: pl.Tensor, y: pl.Out[pl.Tensor]):\n"
             "    k(x, y)\n"
             "    k(y, y)\n"
             "    k(x, y)\n"
             "@pl.jit.host\n"
             "def h(x: pl.Tensor[[NR, 4, 4], pl.FP32], y: pl.Out[pl.Tensor[[NR, 2, 4], pl.FP32]], "
             "z: pl.Out[pl.Tensor[[4, NR * 2 + 1], pl.FP32]]):\n"
             "    c(x[0], y[0])\n"
             "    c(x[1], y[1])\n"
             "    c(x[0], z)\n";
    lowered l = lower(source, "h");
    expect_ok(&l);
    const ir_program *p = l.result.program;
    const char *const names[] = {"k", "k", "c", "k", "k", "c", "h"};
    assert_int_equal(p->functions.count, 7);
    for (int32_t i = 0; i < 7; i++) {
        assert_string_equal(p->functions.items[i]->name, names[i]);
        assert_int_equal(p->functions.items[i]->index, i);
    }
    text out = {.a = l.a};
    ir_print_type(&out, &p->functions.items[3]->params.items[1]->type);
    assert_string_equal(out.bytes, "Tensor[[4, y_dim1], fp32]");
    assert_int_equal(p->functions.items[3]->dims.count, 1);
    lowered_free(&l);
}

/* A symbol is found from a plain dimension, else by solving a linear one. */
static void test_dynamic_dimensions(void **state)
{
    (void)state;
    const char *source = HEAD
        "M = pl.dynamic('M')\n"
        "K = pl.dynamic('K')\n"
        "@pl.jit\n"
        "def c(a: pl.Tensor[[M * 2 + 4, K - 1], pl.FP32], b: pl.Tensor[[3 * (M + 1), N], pl.FP32], "
        "d: pl.Tensor[[K, pl.dynamic('M') * K], pl.FP32]):\n"
        "    for i in pl.range(M + K):\n"
        "        pass\n";
    lowered l = lower(source, "c");
    expect_ok(&l);
    text out = {.a = l.a};
    ir_print_function(&out, function_named(&l, "c"));
    assert_non_null(strstr(out.bytes, "dim M = (a.shape[0] - 4) / 2\n"));
    assert_non_null(strstr(out.bytes, "dim K = d.shape[0]\n"));
    assert_non_null(strstr(out.bytes, "Tensor[[(3 * (M + 1)), 8], fp32]"));
    lowered_free(&l);
}

static void test_scalar_parameter_as_dimension(void **state)
{
    (void)state;
    const char *source =
        HEAD "@pl.jit\n"
             "def c(NR: pl.INDEX, n: pl.Scalar[pl.INT32], a: pl.Tensor[[NR, n * 2], pl.FP32]):\n"
             "    pass\n";
    lowered l = lower(source, "c");
    expect_ok(&l);
    text out = {.a = l.a};
    ir_print_type(&out, &function_named(&l, "c")->params.items[2]->type);
    assert_int_equal(function_named(&l, "c")->dims.count, 0);
    assert_string_equal(out.bytes, "Tensor[[NR, index((n * int32(2)))], fp32]");
    lowered_free(&l);
}

/* ---- planes ---- */

static void test_planes(void **state)
{
    (void)state;
    const struct {
        const char *source;
        int32_t first;
        expected_error error;
    } rows[] = {
        {KERNEL("    m = pld.world_size()\n    m = m + 1\n"),
         KERNEL_LINE,
         {"PYPTO-S109", 1, 8, "can only be called in HOST orchestration context", "pld.nranks"}},
        {KERNEL("    q = pld.alloc_window_buffer(4)\n"),
         KERNEL_LINE,
         {"PYPTO-S109", 1, 8, "'k' is an InCore function", "pass a pld.window"}},
        {HOST("    t = pl.load(x, [0, 0, 0], [1, 4, N])\n"),
         HOST_LINE,
         {"PYPTO-S109", 1, 8, "'pl.load' cannot be used in a HOST function",
          "Move this operation into a lower-level function"}},
        {HOST("    x[0, 0] = 3\n"),
         HOST_LINE,
         {"PYPTO-S105", 1, 4, "does not touch their elements", "@pl.jit"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_error(rows[i].source, "h", rows[i].first, rows[i].error);
    expect_error(HEAD "@pl.jit\n"
                      "def c(x: pl.Tensor[[4], pl.FP32]):\n"
                      "    t = pl.load(x, [0], [4])\n",
                 "c", 9,
                 (expected_error){"PYPTO-S109", 1, 8, "should be inside InCore block", "incore"});
    /* Where nothing better is known, the hint comes from the table. */
    expect_error(
        HEAD "@pl.jit\n"
             "def c(x: pl.Tensor[[4], pl.FP32]):\n"
             "    break\n",
        "c", 9, (expected_error){"PYPTO-S117", 1, -1, "'break' outside loop", "a loop of its own"});
    expect_error(HEAD "@pl.jit\n"
                      "def d(x: pl.Tensor[[4], pl.FP32]):\n"
                      "    pass\n"
                      "@pl.jit\n"
                      "def c(x: pl.Tensor[[4], pl.FP32]):\n"
                      "    d(x)\n",
                 "c", 12,
                 (expected_error){"PYPTO-S111", 1, 4, "cannot call another one, 'd'", NULL});
    expect_error(HEAD "@pl.jit.incore\n"
                      "def k(x: pl.Tensor[[4], pl.FP32]):\n"
                      "    pass\n",
                 "k", 8,
                 (expected_error){"PYPTO-S111", 1, 0, "cannot be called from Python", "host"});
}

#define OTHERS                              \
    "@pl.jit.incore\n"                      \
    "def k2(x: pl.Tensor[[4], pl.FP32]):\n" \
    "    pass\n"                            \
    "@pl.jit.host\n"                        \
    "def h2(x: pl.Tensor[[4], pl.FP32]):\n" \
    "    pass\n"

static void test_calls_from_kernels(void **state)
{
    (void)state;
    expect_error(OTHERS KERNEL("    c(x, y, w, s, n, f, b)\n"), "h", KERNEL_LINE + 6,
                 (expected_error){"PYPTO-S113", 1, 4, "'c' calls itself", "loop"});
    expect_error(OTHERS KERNEL("    k2(x)\n"), "h", KERNEL_LINE + 6,
                 (expected_error){"PYPTO-T203", 1, 7, "2 dimensions instead of 1", NULL});
    expect_error(
        OTHERS KERNEL("    h2(x)\n"), "h", KERNEL_LINE + 6,
        (expected_error){"PYPTO-S111", 1, 4, "host function 'h2' cannot be called", "from Python"});
}

static void test_recursion(void **state)
{
    (void)state;
    expect_error(KERNEL("    k(x, y, w, s, n, f, b)\n"), "h", KERNEL_LINE,
                 (expected_error){"PYPTO-S113", 1, 4, "'k' calls itself", "loop"});
    expect_error(KERNEL("    c(x, y, w, s, n, f, b)\n"), "h", KERNEL_LINE,
                 (expected_error){"PYPTO-S113", 1, 4, "'c' calls itself", "loop"});
    expect_error(HEAD "@pl.jit\n"
                      "def c(x: pl.Tensor[[4], pl.FP32]):\n"
                      "    c(x)\n",
                 "c", 9, (expected_error){"PYPTO-S113", 1, 4, "'c' calls itself", "loop"});
}

/* ---- binding ---- */

static void test_call_arguments(void **state)
{
    (void)state;
    const struct {
        const char *source;
        expected_error error;
    } rows[] = {
        {HOST("    c2(x[0], y[0])\n"),
         {"PYPTO-S111", 1, 4, "expects 3 argument(s), got 2", "missing: 'n'"}},
        {HOST("    c2(x[0], y[0], 1, 2)\n"),
         {"PYPTO-S111", 1, 4, "expects 3 argument(s), got 4", NULL}},
        {HOST("    c2(x[0], y[0], m=1)\n"),
         {"PYPTO-S111", 1, 19, "does not accept keyword argument 'm'", NULL}},
        {HOST("    c2(x[0], y[0], 1, devcie=0)\n"),
         {"PYPTO-S111", 1, 22, "does not accept keyword argument 'devcie'", NULL}},
        {HOST("    c2(x[0], y[0], 1, x=x[0])\n"),
         {"PYPTO-S111", 1, 22, "multiple values for argument 'x'", NULL}},
        {HOST("    c2(x[0], y[0], **q)\n"), {"PYPTO-S111", 1, -1, "**kwargs", NULL}},
        {HOST("    c2(*x)\n"), {"PYPTO-S111", 1, 7, "*args", NULL}},
        {HOST("    c2(x[0], y[0], x[0])\n"),
         {"PYPTO-S111", 1, 19, "argument 'n' of 'c2' must be a scalar, not a Tensor", NULL}},
        {HOST("    c2(x[0], 1, 1)\n"),
         {"PYPTO-S111", 1, 13, "argument 'y' of 'c2' must be a Tensor, not a Scalar", NULL}},
        {HOST("    c2(x[0], y[0], 1.5)\n"),
         {"PYPTO-T204", 1, 19, "has dtype fp32, but int32 is wanted", "pl.cast(x, pl.INT32)"}},
        {HOST("    c2(x[0], y[0], 3000000000)\n"),
         {"PYPTO-T210", 1, 19, "3000000000 does not fit int32", NULL}},
        {HOST("    len(x)\n"),
         {"PYPTO-S103", 1, 4, "Unsupported function call: 'len'", "pl.tensor.dim(x, 0)"}},
        {HOST("    x.clone()\n"), {"PYPTO-S103", 1, 4, "no method 'clone'", NULL}},
        {HOST("    m = x.strides\n"), {"PYPTO-S103", 1, 8, "Standalone attribute access", NULL}},
        {HOST("    c4(x)\n"), {"PYPTO-S106", 1, 4, "Undefined variable 'c4'", NULL}},
        {HOST("    c2(x[0], y[0], qq)\n"), {"PYPTO-S106", 1, 19, "Undefined variable 'qq'", NULL}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_error(rows[i].source, "h", HOST_LINE, rows[i].error);
}

static void test_devices(void **state)
{
    (void)state;
    expect_error(
        HOST(WINDOWS "    c3(x[0], w, s)\n"), "h", HOST_LINE,
        (expected_error){"PYPTO-S112", 5, 4, "passes a window, so it needs 'device='", "device=r"});
    expect_error(HOST("    c2(x[0], y[0], 1, device=-1)\n"), "h", HOST_LINE,
                 (expected_error){"PYPTO-S112", 1, 29, "'device' -1 does not exist", NULL});
    expect_error(HOST("    c2(x[0], y[0], 1, device=1.5)\n"), "h", HOST_LINE,
                 (expected_error){"PYPTO-T210", 1, 29, "'device' must be an integer scalar", NULL});
    const char *source = HEAD "@pl.jit.incore\n"
                              "def k(x: pl.Tensor[[4], pl.FP32]):\n"
                              "    pass\n"
                              "@pl.jit\n"
                              "def c(x: pl.Tensor[[4], pl.FP32]):\n"
                              "    k(x, device=0)\n";
    expect_error(source, "c", 12,
                 (expected_error){"PYPTO-S112", 1, 9,
                                  "'device' is for dispatches of a host function", "leave it out"});
}

/* ---- types ---- */

static void test_shapes_that_do_not_fit(void **state)
{
    (void)state;
    const struct {
        const char *source;
        expected_error error;
    } rows[] = {
        {HOST("    c2(pl.slice(x, [1, 4, N], [q, 0, 0]), y[0], 1)\n"),
         {"PYPTO-T203", 1, 7, "3 dimensions instead of 2",
          "write x[q], which drops the leading one"}},
        {HOST("    c2(x, y[0], 1)\n"),
         {"PYPTO-T203", 1, 7, "argument 'x' of 'c2' has type Tensor[[NR, 4, 8], fp32]", "x[r]"}},
        {HOST("    c2(x[0][0], y[0], 1)\n"),
         {"PYPTO-T203", 1, 7, "1 dimensions instead of 2", NULL}},
        {HOST(WINDOWS "    c3(x[0], x[0], s, device=0)\n"),
         {"PYPTO-S111", 5, 13, "argument 'w' of 'c3' must be a DistributedTensor, not a Tensor",
          "pld.window"}},
        {HOST(WINDOWS "    c3(x[0], wb, s, device=0)\n"),
         {"PYPTO-S111", 5, 13, "must be a DistributedTensor", "pass a view of the buffer"}},
        {HOST(WINDOWS "    c3(x[0], s, s, device=0)\n"),
         {"PYPTO-T204", 5, 13, "has dtype int32, but fp32 is declared", NULL}},
        {HOST("    b2 = pld.alloc_window_buffer(4)\n"
              "    v = pld.window(b2, [1], dtype=pl.INT32)\n" WINDOWS
              "    c3(x[0], w, v, device=0)\n"),
         {"PYPTO-T203", 7, 16, "a dynamic dimension needs a window of the same rank", NULL}},
        {HOST("    b2 = pld.alloc_window_buffer(16)\n"
              "    v = pld.window(b2, [1, 4], dtype=pl.FP32)\n" WINDOWS
              "    c3(x[0], v, s, device=0)\n"),
         {"PYPTO-T212", 7, 13, "larger than buffer 'b2' of 16 bytes", "bytes"}},
        {HOST("    c2(pl.slice(x[0], [2, N], [0, 0]), y[0], 1)\n"),
         {"PYPTO-T203", 1, 7, "dimension 0 is 2, but 4 is declared", NULL}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_error(rows[i].source, "h", HOST_LINE, rows[i].error);
}

static void test_dimensions_that_disagree(void **state)
{
    (void)state;
#define TWO(a, b)                                                                     \
    HEAD "M = pl.dynamic('M')\n"                                                      \
         "@pl.jit.incore\n"                                                           \
         "def k(p: pl.Tensor[[M, 2], pl.FP32], q: pl.Tensor[[M * 2, 2], pl.FP32]):\n" \
         "    pass\n"                                                                 \
         "@pl.jit\n"                                                                  \
         "def c(a: pl.Tensor[[4, 2], pl.FP32], b: pl.Tensor[[8, 2], pl.FP32], "       \
         "d: pl.Tensor[[M, 2], pl.FP32]):\n"                                          \
         "    k(" a ", " b ")\n"
    lowered l = lower(TWO("a", "b"), "c");
    expect_ok(&l);
    lowered_free(&l);
    l = lower(TWO("d", "b"), "c");
    expect_ok(&l);
    lowered_free(&l);
    expect_error(
        TWO("b", "a"), "c", 13,
        (expected_error){"PYPTO-T203", 1, 9, "dimension 0 is 4, but (M * 2) makes it 16", NULL});
    expect_error(
        HEAD "M = pl.dynamic('M')\n"
             "@pl.jit.incore\n"
             "def k(p: pl.Tensor[[M * 3, 2], pl.FP32]):\n"
             "    pass\n"
             "@pl.jit\n"
             "def c(a: pl.Tensor[[4, 2], pl.FP32]):\n"
             "    k(a)\n",
        "c", 13,
        (expected_error){"PYPTO-T203", 1, 6, "dimension 0 is 4, which (M * 3) cannot be", NULL});
    expect_error(
        HEAD "@pl.jit.incore\n"
             "def k(p: pl.Tensor[[2], pl.FP32]):\n"
             "    pass\n"
             "@pl.jit\n"
             "def c(a: pl.Tensor[[NR], pl.FP32]):\n"
             "    k(a)\n",
        "c", 12,
        (expected_error){"PYPTO-T203", 1, 6, "is NR, which varies, but 2 is declared", NULL});
}

/* The callee's own mistakes are reported once, however often it is called. */
static void test_errors_in_a_callee(void **state)
{
    (void)state;
    expect_error(HEAD "@pl.jit.incore\n"
                      "def k(p: pl.Tensor[[2], pl.FP32]):\n"
                      "    pl.store(nothing, [0], p)\n"
                      "    return p\n"
                      "@pl.jit\n"
                      "def c(a: pl.Tensor[[2], pl.FP32]):\n"
                      "    d = k(a)\n"
                      "    k(d)\n"
                      "    return d\n",
                 "c", 9, (expected_error){"PYPTO-S106", 1, 13, "'nothing'", NULL});
}

/* ---- windows ---- */

static void test_allocations(void **state)
{
    (void)state;
    const struct {
        const char *source;
        expected_error error;
    } rows[] = {
        {HOST("    for r in pl.range(2):\n        b2 = pld.alloc_window_buffer(4)\n"),
         {"PYPTO-S116", 2, 13, "cannot stand in a loop", "allocate once outside"}},
        {HOST("    pld.alloc_window_buffer(4)\n"),
         {"PYPTO-S116", 1, 4, "must appear as the RHS of a simple assignment", "name ="}},
        {HOST("    v = pld.window(pld.alloc_window_buffer(4), [1], dtype=pl.INT32)\n"),
         {"PYPTO-S116", 1, 19, "must appear as the RHS of a simple assignment", NULL}},
        {HOST("    b2 = pld.alloc_window_buffer(4)\n    b2 = pld.alloc_window_buffer(8)\n"),
         {"PYPTO-S116", 2, 9, "'b2' is already declared in this program", NULL}},
        {HOST("    b2 = pld.alloc_window_buffer(4, name='b')\n"),
         {"PYPTO-S116", 1, 36, "'name' kwarg cannot be passed explicitly", NULL}},
        {HOST("    b2 = pld.alloc_window_buffer(4, dtype=pl.FP32)\n"),
         {"PYPTO-S116", 1, 42, "dtype= is only valid when the first argument is a shape", NULL}},
        {HOST("    b2 = pld.alloc_window_buffer([4])\n"),
         {"PYPTO-S116", 1, 33, "requires dtype=", NULL}},
        {HOST("    b2 = pld.alloc_window_buffer([], dtype=pl.FP32)\n"),
         {"PYPTO-S116", 1, 33, "shape must be non-empty", NULL}},
        {HOST("    b2 = pld.alloc_window_buffer(P)\n"
              "    v = pld.window(b2, [P], dtype=pl.INT32)\n"),
         {"PYPTO-T212", 2, 23, "a view of 16 bytes is larger than its buffer 'b2' of 4 bytes",
          "takes bytes"}},
        {HOST("    v = pld.window(x, [P], dtype=pl.INT32)\n"),
         {"PYPTO-T205", 1, 19, "Ptr handle", NULL}},
        {HOST("    b2 = pld.alloc_window_buffer(P)\n    v = pld.window(b2, [P])\n"),
         {"PYPTO-S108", 2, 8, "missing 1 required keyword-only argument: 'dtype'", "*, dtype"}},
        {HOST("    b2 = pld.alloc_window_buffer(P)\n    v = b2[0]\n"),
         {"PYPTO-T207", 2, 8, "Subscript requires", NULL}},
        {HOST(WINDOWS "    v = w[0]\n"),
         {"PYPTO-T207", 5, 8, "cannot index a DistributedTensor", NULL}},
        {HOST("    b2: pl.Ptr = pld.alloc_window_buffer(P)\n    b3: pl.Ptr = 3\n"),
         {"PYPTO-T202", 2, 8, "expression has type Scalar", NULL}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_error(rows[i].source, "h", HOST_LINE, rows[i].error);
}

static void test_subscripts(void **state)
{
    (void)state;
    const struct {
        const char *source;
        expected_error error;
    } rows[] = {
        {HOST("    a = x[0, 0, 0, 0]\n"),
         {"PYPTO-T207", 1, 8, "4 indices but the tensor is 3D", NULL}},
        {HOST("    a = x[0, 0, 0]\n"), {"PYPTO-T207", 1, 8, "read an element", NULL}},
        {HOST("    a = x[0, 4]\n"), {"PYPTO-T208", 1, 8, "index 4 is outside dimension 1", NULL}},
        {HOST("    a = x[0:5, 2:6]\n"), {"PYPTO-T208", 1, 8, "index 2 to 5 is outside", NULL}},
        {HOST("    a = x[1.5]\n"),
         {"PYPTO-T207", 1, 10, "index element 0 must be an integer scalar", NULL}},
        {HOST("    a = pl.slice(x, [1, 4, N], [0, 1, 0])\n"),
         {"PYPTO-T208", 1, 31, "past the end of dimension 1", NULL}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_error(rows[i].source, "h", HOST_LINE, rows[i].error);
    expect_error(KERNEL("    a = x[9223372036854775807]\n"), "h", KERNEL_LINE,
                 (expected_error){"PYPTO-T208", 1, 8, "is outside dimension 0", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dispatches),
        cmocka_unit_test(test_world_dimensions),
        cmocka_unit_test(test_windows_of_another_shape),
        cmocka_unit_test(test_specialisation),
        cmocka_unit_test(test_dynamic_dimensions),
        cmocka_unit_test(test_scalar_parameter_as_dimension),
        cmocka_unit_test(test_planes),
        cmocka_unit_test(test_calls_from_kernels),
        cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_call_arguments),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_shapes_that_do_not_fit),
        cmocka_unit_test(test_dimensions_that_disagree),
        cmocka_unit_test(test_errors_in_a_callee),
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_subscripts),
    };
    return RUN_TESTS(tests);
}
