/* The entry of a program: arguments against annotations, patterns, baked scalars; and annotations,
 * statements and operations that the DSL does not have. */
#include "frontend_check.h"

#define TENSOR1(t, a)                                                     \
    {                                                                     \
        .kind = FRONTEND_TENSOR, .dtype = (t), .ndim = 1, .shape = {(a) } \
    }
#define TENSOR3(t, a, b, c)                                                         \
    {                                                                               \
        .kind = FRONTEND_TENSOR, .dtype = (t), .ndim = 3, .shape = {(a), (b), (c) } \
    }

static const char entry[] = HEAD
    "@pl.jit.host\n"
    "def h(x: pl.Tensor[[NR, 4, N], pl.FP32], y: pl.Out[pl.Tensor[[2, 4, N], pl.FP32]], q: pl.INDEX):\n"
    "    pass\n";

static const char three_scalars[] =
    HEAD "@pl.jit.host\n"
         "def h(i: pl.Scalar[pl.INT8], g: pl.Scalar[pl.FP32], b: pl.Scalar[pl.BOOL]):\n"
         "    pass\n";

/* ---- patterns ---- */

static void test_pattern(void **state)
{
    (void)state;
    const frontend_arg args[] = {TENSOR3(PYPTO_FP32, 2, 4, 8),
                                 TENSOR3(PYPTO_FP32, 2, 4, 8),
                                 {.kind = FRONTEND_INT, .integer = 7}};
    lowered l = lower_args(entry, "h", args, 3);
    expect_ok(&l);
    const frontend_arg *pattern = l.result.pattern.items;
    assert_int_equal(l.result.pattern.count, 3);
    assert_int_equal(pattern[0].kind, FRONTEND_TENSOR);
    assert_int_equal(pattern[0].dtype, PYPTO_FP32);
    assert_int_equal(pattern[0].ndim, 3);
    assert_int_equal(pattern[0].shape[0], -1);
    assert_int_equal(pattern[0].shape[2], 8);
    assert_int_equal(pattern[1].shape[0], 2);
    assert_int_equal(pattern[2].kind, FRONTEND_INT);
    assert_int_equal(pattern[2].integer, 7);
    lowered_free(&l);

    l = lower(entry, "h");
    expect_ok(&l);
    assert_int_equal(l.result.pattern.items[0].shape[0], -1);
    assert_int_equal(l.result.pattern.items[1].shape[0], 2);
    assert_int_equal(l.result.pattern.items[2].kind, FRONTEND_INT);
    lowered_free(&l);
}

static void test_bare_parameters(void **state)
{
    (void)state;
    const char *source = HEAD "@pl.jit.host\n"
                              "def h(x: pl.Tensor, y: pl.Out[pl.Tensor]):\n"
                              "    pass\n";
    const frontend_arg args[] = {TENSOR1(PYPTO_INT32, 5), TENSOR3(PYPTO_FP32, 1, 2, 3)};
    lowered l = lower_args(source, "h", args, 2);
    expect_ok(&l);
    assert_int_equal(l.result.pattern.items[0].shape[0], 5);
    assert_int_equal(l.result.pattern.items[1].ndim, 3);
    assert_int_equal(function_named(&l, "h")->params.items[1]->direction, PLD_OUT);
    lowered_free(&l);
    expect_error(HEAD "@pl.jit.host\n"
                      "def h(x: pl.Tensor):\n"
                      "    pass\n",
                 "h", 8,
                 (expected_error){"PYPTO-H402", 1, 9, "bare 'pl.Tensor'", "sample arguments"});
}

/* Numbers of a jit call are constants of the program; compiled without them they are read. */
static void test_baked_scalars(void **state)
{
    (void)state;
    const char *source = HEAD "@pl.jit.incore\n"
                              "def k(x: pl.Tensor[[8], pl.FP32], n: pl.Scalar[pl.INT32]):\n"
                              "    for i in pl.range(n):\n"
                              "        pass\n"
                              "@pl.jit\n"
                              "def c(x: pl.Tensor[[8], pl.FP32], n: pl.Scalar[pl.INT16]):\n"
                              "    if n > 2:\n"
                              "        k(x, n + 1)\n"
                              "    n = n + 3\n"
                              "    k(x, n)\n";
    const frontend_arg args[] = {TENSOR1(PYPTO_FP32, 8), {.kind = FRONTEND_INT, .integer = 4}};
    lowered l = lower_args(source, "c", args, 2);
    expect_ok(&l);
    assert_string_equal(body_text(&l, "c"), "call k(x, int32(5))\n"
                                            "n.1 = int16(7)\n"
                                            "call k(x, int32(n.1))\n");
    assert_int_equal(function_named(&l, "c")->params.count, 2);
    lowered_free(&l);
    l = lower(source, "c");
    expect_ok(&l);
    assert_string_equal(body_text(&l, "c"), "if (n > int16(2))\n"
                                            "  call k(x, int32((n + int16(1))))\n"
                                            "n.1 = (n + int16(3))\n"
                                            "call k(x, int32(n.1))\n");
    lowered_free(&l);
}

/* ---- programs without a host function ---- */

static const char wrapper[] =
    HEAD "@pl.jit.incore\n"
         "def k(x: pl.Tensor[[NR, 4], pl.FP32], y: pl.Out[pl.Tensor[[NR * 2], pl.FP32]]):\n"
         "    pl.write(y, [0], pl.read(x, [0, 0]))\n"
         "    return y\n"
         "@pl.jit\n"
         "def c(x: pl.Tensor[[NR, 4], pl.FP32], y: pl.Out[pl.Tensor[[NR * 2], pl.FP32]]):\n"
         "    return k(x, y)\n";

static void test_host_function_is_made(void **state)
{
    (void)state;
    lowered l = lower(wrapper, "c");
    expect_ok(&l);
    const ir_program *p = l.result.program;
    assert_int_equal(p->functions.count, 3);
    text out = {.a = l.a};
    ir_print_function(&out, p->functions.items[2]);
    assert_string_equal(out.bytes, "host c ; t.py:12\n"
                                   "  param x: in Tensor[[NR, 4], fp32]\n"
                                   "  param y: out Tensor[[(NR * 2)], fp32]\n"
                                   "  dim NR = x.shape[0]\n"
                                   "  result y\n"
                                   "  body\n"
                                   "    call c(x, y) device 0 ; t.py:12\n");
    lowered_free(&l);
}

/* ---- arguments that do not fit ---- */

static void expect_argument_error(const char *source, const frontend_arg *args, int32_t count,
                                  expected_error error)
{
    lowered l = lower_args(source, "h", args, count);
    expect_errors(&l, 8, &error, 1);
    lowered_free(&l);
}

static void test_wrong_arguments(void **state)
{
    (void)state;
    frontend_arg args[] = {TENSOR3(PYPTO_FP32, 2, 4, 8),
                           TENSOR3(PYPTO_FP32, 2, 4, 8),
                           {.kind = FRONTEND_INT, .integer = 7}};
    expect_argument_error(
        entry, args, 2,
        (expected_error){"PYPTO-H401", 1, 0, "h() expects 3 argument(s), got 2", "'x', 'y', 'q'"});
    args[1].shape[0] = 4;
    expect_argument_error(entry, args, 3,
                          (expected_error){"PYPTO-H402", 1, 41,
                                           "argument 'y': dimension 0 is 4, but 2 is declared",
                                           "pl.dynamic(\"NR\")"});
    args[1].shape[0] = 2;
    args[0].dtype = PYPTO_FP16;
    expect_argument_error(entry, args, 3,
                          (expected_error){"PYPTO-H402", 1, 6,
                                           "argument 'x' has dtype fp16, but fp32 is declared",
                                           "pl.FP16"});
    args[0].dtype = PYPTO_FP32;
    args[0].ndim = 2;
    expect_argument_error(entry, args, 3,
                          (expected_error){"PYPTO-H402", 1, 6,
                                           "argument 'x' has 2 dimensions, but 3 are declared",
                                           NULL});
    args[0] = args[2];
    expect_argument_error(
        entry, args, 3, (expected_error){"PYPTO-H402", 1, 6, "argument 'x' is a number", "NumPy"});
    args[0] = args[1];
    args[2] = args[1];
    expect_argument_error(entry, args, 3,
                          (expected_error){"PYPTO-H402", 1, -1, "argument 'q' is a tensor", NULL});
}

static void test_wrong_scalars(void **state)
{
    (void)state;
    frontend_arg args[] = {{.kind = FRONTEND_INT, .integer = 100},
                           {.kind = FRONTEND_INT, .integer = 1},
                           {.kind = FRONTEND_BOOL, .integer = 1}};
    lowered l = lower_args(three_scalars, "h", args, 3);
    expect_ok(&l);
    lowered_free(&l);
    args[0].integer = 128;
    expect_argument_error(three_scalars, args, 3,
                          (expected_error){"PYPTO-H402", 1, 6, "128 does not fit int8", NULL});
    args[0].kind = FRONTEND_BOOL;
    expect_argument_error(three_scalars, args, 3,
                          (expected_error){"PYPTO-H402", 1, 6,
                                           "'i' is a bool, but its parameter is an int8 scalar",
                                           NULL});
    args[0] = (frontend_arg){.kind = FRONTEND_INT};
    args[2] = (frontend_arg){.kind = FRONTEND_FLOAT, .real = 1.0};
    expect_argument_error(three_scalars, args, 3,
                          (expected_error){"PYPTO-H402", 1, -1, "'b' is a float", NULL});
}

static void test_dimensions_that_disagree(void **state)
{
    (void)state;
    const char *source =
        HEAD "@pl.jit.host\n"
             "def h(x: pl.Tensor[[NR], pl.FP32], y: pl.Tensor[[NR * 2], pl.FP32]):\n"
             "    pass\n";
    frontend_arg args[] = {TENSOR1(PYPTO_FP32, 3), TENSOR1(PYPTO_FP32, 6)};
    lowered l = lower_args(source, "h", args, 2);
    expect_ok(&l);
    lowered_free(&l);
    args[1].shape[0] = 7;
    expect_argument_error(
        source, args, 2,
        (expected_error){"PYPTO-H402", 1, -1,
                         "argument 'y': dimension 0 is 7, but (NR * 2) makes it 6", NULL});
}

static void test_entries_that_cannot_be_called(void **state)
{
    (void)state;
    expect_error(HEAD "@pl.jit\n"
                      "def c(w: pld.DistributedTensor[[4], pl.FP32]):\n"
                      "    pass\n",
                 "c", 8, (expected_error){"PYPTO-S111", 1, 6, "takes a window", "a host function"});
    expect_error(HEAD "@pl.jit.host\n"
                      "def h(w: pld.DistributedTensor[[4], pl.FP32]):\n"
                      "    pass\n",
                 "h", 8,
                 (expected_error){"PYPTO-T202", 1, 9, "does not take windows as parameters",
                                  "pld.alloc_window_buffer"});
}

/* ---- annotations ---- */

#define PARAM(a) HEAD "@pl.jit\ndef c(p: " a "):\n    pass\n"
#define LOCAL(a) KERNEL("    t: " a " = pl.load(x, [0, 0], [4, N])\n")

static void test_annotations(void **state)
{
    (void)state;
    const struct {
        const char *source;
        expected_error error;
    } rows[] = {
        {HEAD "@pl.jit\ndef c(p):\n    pass\n",
         {"PYPTO-T201", 1, 6, "'p' is missing type annotation", "pl.Tensor"}},
        {HEAD "@pl.jit\ndef c(*p):\n    pass\n",
         {"PYPTO-S102", 1, 6, "cannot have *p", "name every parameter"}},
        {PARAM("pl.Tensor[[4], pl.FP33]"),
         {"PYPTO-T202", 1, 24, "Unknown dtype 'pl.FP33'", "pl.FP32"}},
        {PARAM("pl.Tensor[[4], 3]"), {"PYPTO-T202", 1, 24, "must be a DataType", NULL}},
        {PARAM("pl.Tensor[[4]]"), {"PYPTO-T202", 1, 9, "needs a shape and an element type", NULL}},
        {PARAM("pl.Tensor[4, pl.FP32]"), {"PYPTO-T202", 1, 19, "must be a list or tuple", NULL}},
        {PARAM("pl.Tensor[N, pl.FP32]"), {"PYPTO-T202", 1, 19, "must be a list or tuple", NULL}},
        {PARAM("pl.Tensor[[], pl.FP32]"), {"PYPTO-T202", 1, 19, "must not be empty", NULL}},
        {PARAM("pl.Tensor[[0], pl.FP32]"), {"PYPTO-T202", 1, 20, "must be positive", NULL}},
        {PARAM("pl.Tensor[[4 - N], pl.FP32]"), {"PYPTO-T202", 1, 20, "must be positive", NULL}},
        {PARAM("pl.Tensor[[M], pl.FP32]"),
         {"PYPTO-T202", 1, 20, "Unknown shape variable 'M'", "M = pl.dynamic(\"M\")"}},
        {PARAM("pl.Tensor[[DT], pl.FP32]"),
         {"PYPTO-T202", 1, 20, "must be int or pl.dynamic", NULL}},
        {PARAM("pl.Tensor[[1.5], pl.FP32]"),
         {"PYPTO-T202", 1, 20, "Cannot resolve expression", NULL}},
        {PARAM("pl.Tensor[[pl.dynamic(3)], pl.FP32]"),
         {"PYPTO-T202", 1, 20, "Cannot resolve expression", "NAME"}},
        {PARAM("pl.Tensor[[N // 0], pl.FP32]"), {"PYPTO-T210", 1, 20, "division by zero", NULL}},
        {PARAM("pl.Tensor[[4], pl.FP32, pl.DN]"),
         {"PYPTO-T202", 1, 33, "pl.Tensor[..., pl.DN] is not supported", "row-major"}},
        {PARAM("pl.Tensor[[1, 2, 3, 4, 5, 6, 7, 8, 9], pl.FP32]"),
         {"PYPTO-T202", 1, -1, "more than 8 dimensions", NULL}},
        {PARAM("pl.Out[pl.Scalar[pl.INT32]]"),
         {"PYPTO-T202", 1, 9, "Scalar parameters cannot have Out direction", "by value"}},
        {PARAM("pl.Out[pl.InOut[pl.Tensor]]"), {"PYPTO-T202", 1, 9, "do not nest", NULL}},
        {PARAM("pl.Out"), {"PYPTO-T202", 1, 9, "Incomplete type annotation", NULL}},
        {PARAM("pl.Out[pl.Ptr]"), {"PYPTO-T202", 1, 9, "takes a pl.Tensor", NULL}},
        {PARAM("pl.Tile[[4], pl.FP32]"), {"PYPTO-T202", 1, 9, "a Tile is local", NULL}},
        {PARAM("pl.Tile[[NR], pl.FP32]"), {"PYPTO-T202", 1, 18, "must be a constant", NULL}},
        {PARAM("pl.Ptr"), {"PYPTO-T202", 1, 9, "window buffer cannot be a parameter", NULL}},
        {PARAM("tuple[pl.Tensor, pl.Tensor]"),
         {"PYPTO-T202", 1, 9, "Parameter type cannot be a tuple", NULL}},
        {PARAM("None"), {"PYPTO-T202", 1, 9, "cannot be None", NULL}},
        {PARAM("pl.load"),
         {"PYPTO-T202", 1, 9, "'pl.load' is not a type", "pl.Tensor[[...], dtype]"}},
        {PARAM("pl.Tensor[1, N, pl.FP32]"),
         {"PYPTO-T202", 1, 19, "the shape must be a list or tuple",
          "pl.Tensor[[1, 256], pl.FP32]"}},
        {PARAM("pl.Tensor[NR, pl.FP32]"),
         {"PYPTO-T202", 1, 19, "the shape must be a list or tuple", "in brackets"}},
        {PARAM("pl.MemRefType[3]"),
         {"PYPTO-S123", 1, 9, "pl.MemRefType is not supported yet", NULL}},
        {PARAM("pl.Tensor[[4], pl.HF8]"),
         {"PYPTO-S123", 1, 24, "pl.HF8 is not supported yet", NULL}},
        {PARAM("pl.Foo[3]"), {"PYPTO-T202", 1, 9, "'pl.Foo[...]' is not a type", NULL}},
        {PARAM("N"), {"PYPTO-T202", 1, 9, "not a type of the DSL", NULL}},
        {PARAM("Matrix[[4], pl.FP32]"), {"PYPTO-S106", 1, 9, "Undefined variable 'Matrix'", NULL}},
        {PARAM("pl.Tensor[[NR % 2], pl.FP32]"),
         {"PYPTO-T211", 1, 20, "Cannot recover dynamic dimension 'NR'", "plain dimension"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_error(rows[i].source, "c", 8, rows[i].error);
    /* Accepted spellings. */
    const char *const good[] = {PARAM("pl.Tensor((4, N), pl.FP32)"), PARAM("pl.INT32"),
                                PARAM("Out[Tensor[[4], pl.FP32]]"),
                                PARAM("pl.InOut[pl.Tensor[[4, N * 2 - 1], DT]]"),
                                PARAM("pl.Tensor[[NR], pl.FP32, 'window_buffer=x']")};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        lowered l = lower(good[i], "c");
        expect_ok(&l);
        lowered_free(&l);
    }
}

static void test_local_annotations(void **state)
{
    (void)state;
    lowered l = lower(LOCAL("pl.Tile[[4, N], pl.FP32]"), "h");
    expect_ok(&l);
    lowered_free(&l);
    const struct {
        const char *source;
        expected_error error;
    } rows[] = {
        {LOCAL("pl.Tensor[[4, N], pl.FP32]"),
         {"PYPTO-T202", 1, 7, "Type annotation for 't' is Tensor but expression has type Tile",
          NULL}},
        {LOCAL("pl.Tile[[4, N], pl.INT32]"),
         {"PYPTO-T202", 1, 7, "dtype int32 but expression has dtype fp32", NULL}},
        {LOCAL("pl.Tile[[4], pl.FP32]"),
         {"PYPTO-T202", 1, 7, "rank 1 but expression has rank 2", NULL}},
        {LOCAL("pl.Tile[[4, 9], pl.FP32]"),
         {"PYPTO-T202", 1, 7, "shape dimension 1 = 9 but expression has 8", NULL}},
        {LOCAL("pl.Tensor[[pl.dynamic('Q')], pl.FP32]"),
         {"PYPTO-T211", 1, -1, "Cannot recover dynamic dimension 'Q'", NULL}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_error(rows[i].source, "h", KERNEL_LINE, rows[i].error);
}

/* ---- results ---- */

static void test_results(void **state)
{
    (void)state;
    const struct {
        const char *source;
        expected_error error;
    } rows[] = {
        {KERNEL("    return pl.load(x, [0, 0], [4, N])\n"),
         {"PYPTO-S115", 1, 11, "returns storage of its parameters, not a Tile", "pl.store"}},
        {KERNEL("    return n + 1\n"), {"PYPTO-S115", 1, 11, "not a Scalar", NULL}},
        {KERNEL("    return y, 3\n"), {"PYPTO-S115", 1, 14, "not a Scalar", NULL}},
        {KERNEL("    if b:\n        return y\n    return w\n"),
         {"PYPTO-S115", 3, 4, "give different parameters", "every path"}},
        {KERNEL("    if b:\n        z = x\n    else:\n        z = y\n    return z\n"),
         {"PYPTO-S115", 5, 11, "not the same parameter on all paths", NULL}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_error(rows[i].source, "h", KERNEL_LINE, rows[i].error);
#define RETURNS(a, body) HEAD "@pl.jit\ndef c(p: pl.Tensor[[4], pl.FP32]) -> " a ":\n" body
    expect_error(RETURNS("pl.Tensor[[4], pl.INT32]", "    return p\n"), "c", 8,
                 (expected_error){"PYPTO-T202", 1, -1,
                                  "Type annotation for the result is dtype int32", NULL});
    expect_error(RETURNS("tuple[pl.Tensor, pl.Tensor]", "    return p\n"), "c", 8,
                 (expected_error){"PYPTO-S115", 1, -1, "declares 2 result(s) but returns 1", NULL});
    const char *const good[] = {RETURNS("pl.Tensor[[4], pl.FP32]", "    return p\n"),
                                RETURNS("None", "    pass\n"), RETURNS("pl.Tensor", "    pass\n"),
                                RETURNS("None", "    return None\n"),
                                RETURNS("pl.Tuple[pl.Tensor, pl.Tensor]", "    return p, p\n")};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        lowered l = lower(good[i], "c");
        expect_ok(&l);
        lowered_free(&l);
    }
}

/* ---- statements and operations ---- */

static void test_statements(void **state)
{
    (void)state;
    const struct {
        const char *source;
        expected_error error;
    } rows[] = {
        {KERNEL("    while n:\n        pass\n"),
         {"PYPTO-T209", 1, 10, "while condition must be a Bool-typed scalar", NULL}},
        {KERNEL("    with pl.scope():\n        pass\n"),
         {"PYPTO-S109", 1, 9, "per-device wrapper", NULL}},
        {KERNEL("    break\n"), {"PYPTO-S117", 1, 4, "'break' outside loop", NULL}},
        {KERNEL("    continue\n"), {"PYPTO-S117", 1, 4, "'continue' outside loop", NULL}},
        {KERNEL("    assert b\n"),
         {"PYPTO-S102", 1, 4, "Unsupported statement type: Assert", NULL}},
        {KERNEL("    m = q = 3\n"), {"PYPTO-S105", 1, 4, "Unsupported assignment", NULL}},
        {KERNEL("    x.y[0, 0] = 3\n"),
         {"PYPTO-S105", 1, 4, "must be a variable name", "pl.store"}},
        {KERNEL("    x.y = 3\n"), {"PYPTO-S105", 1, 4, "must be a variable name", NULL}},
        {KERNEL("    m, x[0] = 3, 4\n"),
         {"PYPTO-S105", 1, 7, "Tuple unpacking target must be a variable name", NULL}},
        {KERNEL("    i = 0\n    m, x[i] = 3, 4\n"),
         {"PYPTO-S105", 2, 7, "Tuple unpacking target must be a variable name", NULL}},
        {KERNEL("    m, (p, *q) = 3, 4\n"),
         {"PYPTO-S105", 1, 7, "Tuple unpacking target must be a variable name", NULL}},
        {KERNEL("    m, q = 1, 2, 3\n"),
         {"PYPTO-S105", 1, 4, "cannot unpack 3 values into 2", NULL}},
        {KERNEL("    m, q = n\n"), {"PYPTO-S105", 1, 11, "cannot unpack a Scalar", NULL}},
        {KERNEL("    m = m + 1\n"), {"PYPTO-S106", 1, 8, "nothing is assigned to it before", NULL}},
        {KERNEL("    m = {}\n"), {"PYPTO-S103", 1, 8, "Dict", NULL}},
        {KERNEL("    nranks = n\n    m = nrnaks\n"),
         {"PYPTO-S106", 2, 8, "Undefined variable 'nrnaks'", "did you mean 'nranks'?"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_error(rows[i].source, "h", KERNEL_LINE, rows[i].error);
}

static void test_operations(void **state)
{
    (void)state;
    const struct {
        const char *source;
        expected_error error;
    } rows[] = {
        {KERNEL("    t = pl.nonsense(x)\n"),
         {"PYPTO-S107", 1, 8, "Unknown operation 'pl.nonsense'", NULL}},
        {KERNEL("    t = pl.laod(x)\n"),
         {"PYPTO-S107", 1, 8, "Unknown operation 'pl.laod'", "did you mean 'pl.load'?"}},
        {KERNEL("    pld.notify(s)\n"),
         {"PYPTO-S107", 1, 4, "Unknown distributed operation 'pld.notify'", "pld.system.notify"}},
        {KERNEL("    t = pl.load(x)\n"),
         {"PYPTO-S108", 1, 8, "missing 2 required positional arguments: 'offsets' and 'shapes'",
          "pl.load(tensor, offsets, shapes, valid_shape=None, target_memory=MemorySpace.Vec, clamp=False)"}},
        {KERNEL("    t = pl.load(x, [0, 0], [4, N], 3, 4, 5, 6)\n"),
         {"PYPTO-S108", 1, 8, "takes from 3 to 6 positional arguments but 7 were given", NULL}},
        {KERNEL("    t = pl.load(x, [0, 0], [4, N], offsets=[0, 0])\n"),
         {"PYPTO-S108", 1, 35, "multiple values for argument 'offsets'", NULL}},
        {KERNEL("    t = pl.load(x, [0, 0], shape=[4, N])\n"),
         {"PYPTO-S108", 1, 27, "unexpected keyword argument 'shape'", "shapes"}},
        {KERNEL("    t = pl.load(x, *n)\n"), {"PYPTO-S108", 1, 19, "does not accept *args", NULL}},
        {KERNEL("    t = pl.gather(x)\n"),
         {"PYPTO-S123", 1, 8, "pl.gather is not supported yet", NULL}},
        {KERNEL("    pld.system.wait(s, [0, 0], 1, cmp=pld.WaitCmp.Gt)\n"),
         {"PYPTO-T205", 1, 38, "cmp cannot be pld.WaitCmp.Gt", "pld.WaitCmp.Eq or pld.WaitCmp.Ge"}},
        {KERNEL("    pld.system.notify(s, 0, [0, 0], 1, op='set')\n"),
         {"PYPTO-T205", 1, 42, "op cannot be a string",
          "pld.NotifyOp.AtomicAdd or pld.NotifyOp.Set"}},
        {KERNEL("    t = pl.load(x, **n)\n"),
         {"PYPTO-S108", 1, -1, "does not accept **kwargs", NULL}},
        {KERNEL("    pld.system.wait(s, [0, 0], 1)\n"),
         {"PYPTO-S108", 1, 4, "missing 1 required keyword-only argument: 'cmp'", "*, cmp"}},
        {KERNEL("    pld.system.wait(s, [0, 0], 1, pld.WaitCmp.Ge)\n"),
         {"PYPTO-S108", 1, 4, "takes 3 positional arguments but 4 were given", NULL}},
        {KERNEL("    pld.system.wait(s, [0, 0], 1, cmp=OP)\n"),
         {"PYPTO-T205", 1, 38, "must be WaitCmp.Eq or WaitCmp.Ge", NULL}},
        {KERNEL("    pld.system.notify(s, 0, [0], 1, op=OP)\n"),
         {"PYPTO-T203", 1, 28, "offsets rank is 1", "one entry per dimension"}},
        {KERNEL("    pld.system.notify(x, 0, [0, 0], 1, op=OP)\n"),
         {"PYPTO-T205", 1, 22, "target must be a DistributedTensor, got Tensor", "no peers"}},
        {KERNEL("    pld.system.notify(w, 0, [0, 0], 1, op=OP)\n"),
         {"PYPTO-T204", 1, 22, "signal dtype must be INT32", NULL}},
        {KERNEL("    m = pld.rank(w)\n"),
         {"PYPTO-T205", 1, 17, "expected CommCtx", "pld.get_comm_ctx"}},
        {KERNEL("    m = pld.get_comm_ctx(x)\n"),
         {"PYPTO-T205", 1, 25, "must be a DistributedTensor", NULL}},
        {KERNEL("    pl.store(x, [0, 0], y)\n"),
         {"PYPTO-T205", 1, 13, "expected Tile, got Tensor", "pl.load"}},
        {KERNEL("    pl.store(pl.store, [0, 0], y)\n"),
         {"PYPTO-T205", 1, 13, "tile cannot be pl.store", NULL}},
        {KERNEL("    t = pl.load(x, ['a', 0], [4, N])\n"),
         {"PYPTO-T207", 1, 20, "must be an integer or index scalar, not a string", NULL}},
        {KERNEL("    t = pl.load(x, [0, 0], [4, n])\n"),
         {"PYPTO-T214", 1, 27, "must be a constant", "fixed shape"}},
        {KERNEL("    t = pl.load(x, [0, 0], [4, N + 1])\n"),
         {"PYPTO-T208", 1, 19, "reads past the end of dimension 1", NULL}},
        {KERNEL("    m = DT.get_bits()\n"),
         {"PYPTO-S107", 1, 8, "no method 'get_bits'", "get_byte"}},
        {KERNEL("    m = DT.get_byte(1)\n"), {"PYPTO-S108", 1, 8, "takes no arguments", NULL}},
        {KERNEL("    m = pl.dynamic('Q')\n"),
         {"PYPTO-T211", 1, 8, "no parameter of 'k' has it", NULL}},
        {KERNEL("    m = pl.dynamic(3)\n"), {"PYPTO-S108", 1, 8, "takes one string", NULL}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_error(rows[i].source, "h", KERNEL_LINE, rows[i].error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pattern),
        cmocka_unit_test(test_bare_parameters),
        cmocka_unit_test(test_baked_scalars),
        cmocka_unit_test(test_host_function_is_made),
        cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_wrong_scalars),
        cmocka_unit_test(test_dimensions_that_disagree),
        cmocka_unit_test(test_entries_that_cannot_be_called),
        cmocka_unit_test(test_annotations),
        cmocka_unit_test(test_local_annotations),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_statements),
        cmocka_unit_test(test_operations),
    };
    return RUN_TESTS(tests);
}
