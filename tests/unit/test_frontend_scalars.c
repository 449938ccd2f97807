/* Scalars in the front end: literals and typed numbers, promotion, comparisons, logic, conversions, and
 * the errors of what does not go together. */
#include "frontend_check.h"

/* The scalar expression `e` as a signal value, in a kernel with n: INT32, f: FP32, b: BOOL. */
#define VALUE(e) KERNEL("    pld.system.notify(s, 0, [0, 0], " e ", op=OP)\n")
#define PRINTED(e) "pld.system.notify(s, 0, [0, 0], " e ", op=NotifyOp.Set)\n"

static void test_literals_are_pythons(void **state)
{
    (void)state;
    const char *const rows[][2] = {
        {VALUE("2 ** 5 - 1"), PRINTED("31")},
        {VALUE("-7 // 2"), PRINTED("-4")},
        {VALUE("-7 % 3"), PRINTED("2")},
        {VALUE("N * 3 + 1 << 2"), PRINTED("100")},
        {VALUE("(N | 1) & ~2 ^ 4"), PRINTED("13")},
        {VALUE("-1 >> 70"), PRINTED("-1")},
        {VALUE("(-1) ** 3"), PRINTED("-1")},
        {VALUE("pl.BF16.get_byte() + pl.BOOL.get_bit()"), PRINTED("3")},
        {VALUE("DT.get_byte()"), PRINTED("4")},
        {VALUE("pl.cast(7.9, pl.INT32)"), PRINTED("int32(7)")},
        {VALUE("pl.cast(1 / 4 * 10, pl.INT32)"), PRINTED("int32(2)")},
        {VALUE("pl.const(-4, pl.INT32)"), PRINTED("int32(-4)")},
        {VALUE("(3, 4)[1]"), PRINTED("4")},
        {VALUE("+n"), PRINTED("n")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_body(rows[i][0], "h", "k", rows[i][1]);
}

static void test_promotion(void **state)
{
    (void)state;
    const char *const rows[][2] = {
        /* A literal takes the type of what it meets. */
        {VALUE("n + 1"), PRINTED("(n + int32(1))")},
        {VALUE("1 - n"), PRINTED("(int32(1) - n)")},
        {VALUE("n * (2 + 3)"), PRINTED("(n * int32(5))")},
        /* The wider type wins. */
        {VALUE("n + NR"), PRINTED("(index(n) + NR)")},
        {VALUE("pl.cast(n, pl.INT8) + n"), PRINTED("(int32(int8(n)) + n)")},
        {VALUE("pl.cast(n, pl.UINT32) - n"), PRINTED("(uint32(n) - uint32(n))")},
        {VALUE("pl.cast(n, pl.INT64) + NR"), PRINTED("(int64(n) + NR)")},
        {VALUE("(n - 1) % pld.nranks(pld.get_comm_ctx(w))"),
         "t0 = pld.get_comm_ctx(w)\n" PRINTED("((n - int32(1)) % pld.nranks(t0))")},
        {VALUE("n << 3 | n & 1"), PRINTED("((n << 3) | (n & int32(1)))")},
        {VALUE("~n - -n"), PRINTED("((~n) - (-n))")},
        {VALUE("pl.cast(f * 2 + 0.5, target_type=pl.INT32)"), PRINTED("int32(((f * 2.0) + 0.5))")},
        {VALUE("n + 0"), PRINTED("n")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_body(rows[i][0], "h", "k", rows[i][1]);
}

#define TEST(e) KERNEL("    if " e ":\n        pass\n")

static void test_conditions(void **state)
{
    (void)state;
    const char *const rows[][2] = {
        {TEST("n == 1"), "if (n == int32(1))\n"},
        {TEST("NR != n"), "if (NR != index(n))\n"},
        {TEST("pl.cast(n, pl.UINT32) < n"), "if (index(uint32(n)) < index(n))\n"},
        {TEST("0 < n <= 4"), "if ((int32(0) < n) and (n <= int32(4)))\n"},
        {TEST("not b and (n > 1 or f < 2)"), "if ((not b) and ((n > int32(1)) or (f < 2.0)))\n"},
        {TEST("b == True"), "if (b == True)\n"},
        {TEST("N == 8 and b"), "if b\n"},
        {TEST("b or N < 8"), "if b\n"},
        {TEST("NR > -9223372036854775808"), "if (NR > -9223372036854775808)\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_body(rows[i][0], "h", "k", rows[i][1]);
    /* Decided at compile time. */
    expect_body(TEST("1 < 2.5 < 3"), "h", "k", "");
    expect_body(TEST("0.1 + 0.2 == 0.3"), "h", "k", "");
    expect_body(TEST("b and N < 8"), "h", "k", "");
}

/* A name that holds a number keeps its type where paths meet. */
static void test_names_adapt(void **state)
{
    (void)state;
    expect_body(KERNEL("    m = n\n"
                       "    i = 0\n"
                       "    g = f\n"
                       "    if b:\n"
                       "        m = 5\n"
                       "        i = n\n"
                       "        g = 2\n"
                       "    v: pl.Scalar[pl.INT64] = 0\n"
                       "    u: pl.Scalar[pl.INT32] = NR\n"
                       "    pld.system.notify(s, u, [m, i], v + pl.cast(g, pl.INDEX), op=OP)\n"),
                "h", "k",
                "m = n\n"
                "i = 0\n"
                "g = f\n"
                "if b\n"
                "  m = int32(5)\n"
                "  i = index(n)\n"
                "  g = 2.0\n"
                "v = int64(0)\n"
                "u = int32(NR)\n"
                "pld.system.notify(s, u, [m, i], (v + index(g)), op=NotifyOp.Set)\n");
}

/* a, b = b, a */
static void test_unpacking_reads_first(void **state)
{
    (void)state;
    expect_body(KERNEL("    u, v = n, n + 1\n"
                       "    u, v = v, u\n"
                       "    pld.system.wait(s, [u, 0], v, cmp=pld.WaitCmp.Eq)\n"),
                "h", "k",
                "t0 = (n + int32(1))\n"
                "u = n\n"
                "v = t0\n"
                "t1 = v\n"
                "t2 = u\n"
                "u = t1\n"
                "v = t2\n"
                "pld.system.wait(s, [u, 0], v, cmp=WaitCmp.Eq)\n");
}

static void test_errors(void **state)
{
    (void)state;
    const struct {
        const char *source;
        expected_error error;
    } rows[] = {
        {VALUE("n + f"), {"PYPTO-T210", 1, 36, "requires same numeric dtype category", "pl.cast"}},
        {VALUE("n + 0.5"),
         {"PYPTO-T210", 1, 36, "requires same numeric dtype category", "pl.cast"}},
        {VALUE("b + 1"), {"PYPTO-T210", 1, 36, "does not accept bool dtype", NULL}},
        {VALUE("n / 2"), {"PYPTO-T210", 1, 36, "'/' divides floats, not int32", "//"}},
        {VALUE("f // 2"), {"PYPTO-T210", 1, 36, "'//' needs integers", "pl.cast"}},
        {VALUE("n // 0"), {"PYPTO-T210", 1, 36, "division by zero", NULL}},
        {VALUE("1 % 0"), {"PYPTO-T210", 1, 36, "division by zero", NULL}},
        {VALUE("1 / 0.0"), {"PYPTO-T210", 1, 36, "division by zero", NULL}},
        {VALUE("n << 32"), {"PYPTO-T210", 1, 41, "a shift by 32", NULL}},
        {VALUE("1 << -1"), {"PYPTO-T210", 1, 41, "must not be negative", NULL}},
        {VALUE("n ** 2"), {"PYPTO-S103", 1, 36, "Unsupported binary operator '**'", "constants"}},
        {VALUE("n @ 2"), {"PYPTO-S103", 1, 36, "Unsupported binary operator '@'", NULL}},
        {VALUE("18446744073709551615 + 1"), {"PYPTO-T210", 1, 36, "does not fit 64 bits", NULL}},
        {VALUE("99999999999999999999"), {"PYPTO-T210", 1, 36, "does not fit 64 bits", NULL}},
        {VALUE("10 ** 30"), {"PYPTO-T210", 1, 36, "does not fit 64 bits", NULL}},
        {VALUE("n + 5000000000"), {"PYPTO-T210", 1, 40, "5000000000 does not fit int32", "INT64"}},
        {VALUE("pl.const(300, pl.INT8)"), {"PYPTO-T210", 1, 45, "does not fit int8", NULL}},
        {VALUE("pl.const(n, pl.INT8)"), {"PYPTO-T214", 1, 45, "numeric literal", "pl.cast"}},
        {VALUE("~f"), {"PYPTO-T210", 1, 36, "'~' needs an integer", NULL}},
        {VALUE("not n"), {"PYPTO-T209", 1, 40, "'not' needs a Bool-typed scalar", "x == 0"}},
        {VALUE("x + 1"), {"PYPTO-T205", 1, 36, "must be a scalar, not a Tile", NULL}},
        {VALUE("x ** 2"), {"PYPTO-T210", 1, 36, "must be ScalarExpr or Var with ScalarType", NULL}},
        {VALUE("(1, 2)[2]"), {"PYPTO-T207", 1, -1, "past the end of the tuple", NULL}},
        {VALUE("(1, 2)[-1]"), {"PYPTO-T207", 1, -1, "must be non-negative", NULL}},
        {VALUE("(1, 2)[n]"), {"PYPTO-T207", 1, -1, "must be a constant", NULL}},
        {VALUE("n[0]"), {"PYPTO-T207", 1, 36, "Subscript requires Tuple, Tensor", NULL}},
        {VALUE("1 if n else 2"), {"PYPTO-T209", 1, -1, "if condition must be a Bool-typed", NULL}},
        {VALUE("1 if b else x"), {"PYPTO-T206", 1, 36, "different types", "if statement"}},
        {VALUE("pl.min(1)"), {"PYPTO-S108", 1, 36, "two numbers or more", NULL}},
        {VALUE("pl.max(n, f)"), {"PYPTO-T210", 1, 36, "same numeric dtype category", NULL}},
        {VALUE("[i for i in x]"), {"PYPTO-S103", 1, 36, "ListComp", NULL}},
        {TEST("n"), {"PYPTO-T209", 1, 7, "if condition must be a Bool-typed scalar", "x != 0"}},
        {TEST("x"), {"PYPTO-T209", 1, 7, "not a Tensor", NULL}},
        {TEST("n and b"), {"PYPTO-T209", 1, 7, "operand of 'and' must be a Bool-typed", "x != 0"}},
        {TEST("b < True"), {"PYPTO-T210", 1, 7, "does not accept bool dtype", NULL}},
        {TEST("n == f"), {"PYPTO-T210", 1, 7, "requires same numeric dtype category", "pl.cast"}},
        {TEST("n is 1"), {"PYPTO-S103", 1, 7, "Unsupported comparison 'is'", NULL}},
        {KERNEL("    t = pl.load(x, [0, 0], [4, N])\n    t = t ** t\n"),
         {"PYPTO-T210", 2, 8, "must be ScalarExpr or Var with ScalarType", NULL}},
        {KERNEL("    v: pl.Scalar[pl.INT32] = f\n"),
         {"PYPTO-T202", 1, 7, "dtype int32 but expression has dtype fp32", NULL}},
        {KERNEL("    v: pl.Scalar[pl.INT8] = 300\n"),
         {"PYPTO-T210", 1, -1, "300 does not fit int8", NULL}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_error(rows[i].source, "h", KERNEL_LINE, rows[i].error);
}

/* One mistake, one message: everything that depends on it stays silent. */
static void test_poison(void **state)
{
    (void)state;
    expect_error(KERNEL("    m = undefined + 1\n"
                        "    k2 = [m, 0]\n"
                        "    if m > 3:\n"
                        "        m = m * 2\n"
                        "    for i in pl.range(m):\n"
                        "        m += i\n"
                        "    p, q = m, 3\n"
                        "    pld.system.wait(s, k2, p, cmp=pld.WaitCmp.Eq)\n"),
                 "h", KERNEL_LINE, (expected_error){"PYPTO-S106", 1, 8, "'undefined'", NULL});
}

static void test_all_errors_are_collected(void **state)
{
    (void)state;
    lowered l = lower(KERNEL("    m = one + 1\n"
                             "    t = pl.load(x, [0, two], [4, 99])\n"
                             "    while n:\n"
                             "        break\n"
                             "    pl.store(t, [0, 0], three)\n"),
                      "h");
    const expected_error errors[] = {
        {"PYPTO-S106", 1, 8, "Undefined variable 'one'", NULL},
        {"PYPTO-S106", 2, 23, "Undefined variable 'two'", NULL},
        {"PYPTO-S106", 5, 24, "Undefined variable 'three'", NULL},
        {"PYPTO-T209", 3, 10, "while condition must be a Bool-typed scalar", NULL},
    };
    expect_errors(&l, KERNEL_LINE, errors, 4);
    assert_string_equal(l.status.diagnostics->source, "    m = one + 1");
    lowered_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_literals_are_pythons),
        cmocka_unit_test(test_promotion),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_names_adapt),
        cmocka_unit_test(test_unpacking_reads_first),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_poison),
        cmocka_unit_test(test_all_errors_are_collected),
    };
    return RUN_TESTS(tests);
}
