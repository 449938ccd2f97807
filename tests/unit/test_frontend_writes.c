/* Parameters that are written must be declared so: plain tensors, in kernels, wrappers and on the host,
 * directly and through names that branches and loops rebind. Windows may be written in any case. */
#include "frontend_check.h"

#define TILE "pl.load(y, [0, 0], [4, N])"
#define WRITTEN(line, column, name)                                                          \
    {                                                                                        \
        "PYPTO-T217", line, column, "parameter '" name "' is only read", "pl.Out[...] or pl" \
    }

static void test_kernels(void **state)
{
    (void)state;
    const struct {
        const char *source;
        expected_error error;
    } rows[] = {
        {KERNEL("    pl.store(" TILE ", [0, 0], x)\n"), WRITTEN(1, 49, "x")},
        {KERNEL("    x = pl.store(" TILE ", [0, 0], x)\n    pl.store(" TILE ", [0, 0], x)\n"),
         WRITTEN(1, 53, "x")},
        {KERNEL("    z = x\n    pl.store(" TILE ", [0, 0], output_tensor=z)\n"),
         WRITTEN(2, 63, "x")},
        {KERNEL("    z = y\n    if b:\n        z = x\n    pl.store(" TILE ", [0, 0], z)\n"),
         WRITTEN(4, 49, "x")},
        {KERNEL("    z = y\n"
                "    for i in pl.range(n):\n"
                "        pl.store(" TILE ", [0, 0], z)\n"
                "        z = x\n"),
         WRITTEN(3, 53, "x")},
        {KERNEL("    p = x\n    q = y\n"
                "    for i in pl.range(n):\n"
                "        pl.store(" TILE ", [0, 0], q)\n"
                "        p, q = q, p\n"),
         WRITTEN(4, 53, "x")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_error(rows[i].source, "h", KERNEL_LINE, rows[i].error);
}

#define CALLS(directions, kernel, host)                                                            \
    HEAD                                                                                           \
        "@pl.jit.incore\n"                                                                         \
        "def k(x: pl.Tensor[[4, N], pl.FP32], y: pl.Out[pl.Tensor[[4, N], pl.FP32]]):\n"           \
        "    pl.store(pl.load(x, [0, 0], [4, N]), [0, 0], y)\n"                                    \
        "@pl.jit\n"                                                                                \
        "def c(" directions "):\n"                                                                 \
        "    " kernel "\n"                                                                         \
        "@pl.jit.host\n"                                                                           \
        "def h(x: pl.Tensor[[NR, 4, N], pl.FP32], y: pl.InOut[pl.Tensor[[NR, 4, N], pl.FP32]]):\n" \
        "    for r in pl.range(pld.world_size()):\n"                                               \
        "        " host "\n"
#define IN_OUT "x: pl.Tensor[[4, N], pl.FP32], y: pl.InOut[pl.Tensor[[4, N], pl.FP32]]"

static void test_calls(void **state)
{
    (void)state;
    const struct {
        const char *source;
        expected_error error;
    } rows[] = {
        {CALLS(IN_OUT, "k(y, x)", "c(x[r], y[r], device=r)"), WRITTEN(12, 9, "x")},
        {CALLS(IN_OUT, "k(y, y=x)", "c(x[r], y[r], device=r)"), WRITTEN(12, 11, "x")},
        {CALLS(IN_OUT, "k(x, y)", "c(y[r], x[r], device=r)"), WRITTEN(16, 16, "x")},
        {CALLS(IN_OUT, "k(x, y)", "c(y[r], pl.slice(x[r], [4, N], [0, 0]), device=r)"),
         WRITTEN(16, 16, "x")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_error(rows[i].source, "h", 1, rows[i].error);
    lowered l = lower(CALLS(IN_OUT, "k(x, y)", "c(x[r], y[r], device=r)"), "h");
    expect_ok(&l);
    lowered_free(&l);
}

/* Two parameters are two mistakes; each is told once. */
static void test_each_parameter_once(void **state)
{
    (void)state;
    lowered l = lower(CALLS("x: pl.Tensor[[4, N], pl.FP32], y: pl.Tensor[[4, N], pl.FP32]",
                            "k(y, x)\n    k(y, x)\n    k(x, y)", "c(x[r], y[r], device=r)"),
                      "h");
    const expected_error errors[] = {WRITTEN(12, 9, "x"), WRITTEN(14, 9, "y")};
    expect_errors(&l, 1, errors, 2);
    lowered_free(&l);
}

static void test_windows_have_no_direction(void **state)
{
    (void)state;
    const char *source = HEAD
        "@pl.jit.incore\n"
        "def k(y: pl.Out[pl.Tensor[[4, N], pl.FP32]], w: pld.DistributedTensor[[4, N], pl.FP32], "
        "s: pld.DistributedTensor[[NR, 1], pl.INT32]):\n"
        "    pl.store(pl.load(y, [0, 0], [4, N]), [0, 0], w)\n"
        "    pld.system.notify(s, 0, [0, 0], 1, op=OP)\n"
        "@pl.jit.incore\n"
        "def into(y: pl.Out[pl.Tensor[[4, N], pl.FP32]]):\n"
        "    pl.store(pl.load(y, [0, 0], [4, N]), [0, 0], y)\n"
        "@pl.jit\n"
        "def c(y: pl.Out[pl.Tensor[[4, N], pl.FP32]], w: pld.DistributedTensor[[4, N], pl.FP32], "
        "s: pld.DistributedTensor[[NR, 1], pl.INT32]):\n"
        "    k(y, w, s)\n"
        "    into(w)\n"
        "@pl.jit.host\n"
        "def h(y: pl.Out[pl.Tensor[[NR, 4, N], pl.FP32]]):\n"
        "    wb = pld.alloc_window_buffer([4, N], dtype=pl.FP32)\n"
        "    sb = pld.alloc_window_buffer(pld.world_size() * 4)\n"
        "    for r in pl.range(pld.world_size()):\n"
        "        w = pld.window(wb, [4, N], dtype=pl.FP32)\n"
        "        s = pld.window(sb, [pld.world_size(), 1], dtype=pl.INT32)\n"
        "        c(y[r], w, s, device=r)\n";
    lowered l = lower(source, "h");
    expect_ok(&l);
    lowered_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_each_parameter_once),
        cmocka_unit_test(test_windows_have_no_direction),
    };
    return RUN_TESTS(tests);
}
