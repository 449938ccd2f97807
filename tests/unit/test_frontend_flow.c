/* Control flow in the front end: what names are bound to after branches and loops, loop variables,
 * values that loops carry, and the errors of paths that do not agree. */
#include "frontend_check.h"

#define LOAD "pl.load(x, [0, 0], [4, N])"

/* ---- branches ---- */

static void test_branches_share_a_variable(void **state)
{
    (void)state;
    expect_body(KERNEL("    if b:\n"
                       "        t = " LOAD "\n"
                       "        m = n\n"
                       "    elif n > 3:\n"
                       "        t = pl.load(w, [0, 0], [4, N])\n"
                       "        m = n + 1\n"
                       "    else:\n"
                       "        t = pl.load(y, [0, 0], [4, N])\n"
                       "        m = 2 * n\n"
                       "    pl.store(pl.add(t, 1), [0, 0], y)\n"
                       "    pld.system.wait(s, [m, 0], 1, cmp=pld.WaitCmp.Ge)\n"),
                "h", "k",
                "if b\n"
                "  t = pl.load(x, [0, 0], [4, 8])\n"
                "  m = n\n"
                "else\n"
                "  if (n > int32(3))\n"
                "    t = pl.load(w, [0, 0], [4, 8])\n"
                "    m = (n + int32(1))\n"
                "  else\n"
                "    t = pl.load(y, [0, 0], [4, 8])\n"
                "    m = (int32(2) * n)\n"
                "t0 = pl.add(t, 1.0)\n"
                "pl.store(t0, [0, 0], y)\n"
                "pld.system.wait(s, [m, 0], 1, cmp=WaitCmp.Ge)\n");
}

/* A parameter is not assigned: the branch that leaves its name alone copies it. */
static void test_branch_rebinds_a_parameter(void **state)
{
    (void)state;
    expect_body(KERNEL("    if b:\n"
                       "        n = n + 1\n"
                       "    pld.system.wait(s, [n, 0], 1, cmp=pld.WaitCmp.Ge)\n"),
                "h", "k",
                "if b\n"
                "  n.1 = (n + int32(1))\n"
                "else\n"
                "  n.1 = n\n"
                "pld.system.wait(s, [n.1, 0], 1, cmp=WaitCmp.Ge)\n");
}

static void test_branches_merge_handles(void **state)
{
    (void)state;
    const char *source = KERNEL("    if b:\n"
                                "        src = x\n"
                                "    else:\n"
                                "        src = y\n"
                                "    if b:\n"
                                "        w = pl.store(pl.load(src, [0, 0], [4, N]), [0, 0], w)\n"
                                "    return w\n");
    lowered l = lower(source, "h");
    expect_ok(&l);
    assert_string_equal(body_text(&l, "k"), "if b\n"
                                            "  src = x\n"
                                            "else\n"
                                            "  src = y\n"
                                            "if b\n"
                                            "  t0 = pl.load(src, [0, 0], [4, 8])\n"
                                            "  pl.store(t0, [0, 0], w)\n");
    assert_null(var_named(function_named(&l, "k"), "src")->root);
    assert_string_equal(function_named(&l, "k")->results.items[0]->name, "w");
    lowered_free(&l);
}

/* What the script's constants decide is decided at compile time. */
static void test_constant_conditions(void **state)
{
    (void)state;
    expect_body(KERNEL("    if N == 8 and not N > 8:\n"
                       "        t = " LOAD "\n"
                       "    else:\n"
                       "        t = nonsense(1)\n"
                       "    if DT.get_byte() == 2:\n"
                       "        return x\n"
                       "    pl.store(t, [0, 0], y)\n"),
                "h", "k",
                "t = pl.load(x, [0, 0], [4, 8])\n"
                "pl.store(t, [0, 0], y)\n");
}

static void test_names_of_one_branch(void **state)
{
    (void)state;
    expect_error(KERNEL("    if b:\n"
                        "        t = " LOAD "\n"
                        "    pl.store(t, [0, 0], y)\n"
                        "    pl.store(t, [0, 0], y)\n"),
                 "h", KERNEL_LINE,
                 (expected_error){"PYPTO-S106", 3, 13,
                                  "assigned in only one branch of the 'if' at line 9",
                                  "both branches"});
    /* A branch that has returned does not count. */
    lowered l = lower(KERNEL("    if b:\n"
                             "        t = " LOAD "\n"
                             "    else:\n"
                             "        return y\n"
                             "    return pl.store(t, [0, 0], y)\n"),
                      "h");
    expect_ok(&l);
    lowered_free(&l);
}

static void test_types_that_do_not_agree(void **state)
{
    (void)state;
    expect_error(
        KERNEL("    t = " LOAD "\n"
               "    if b:\n"
               "        t = pl.load(x, [0, 0], [2, N])\n"
               "    pl.store(t, [0, 0], y)\n"),
        "h", KERNEL_LINE,
        (expected_error){"PYPTO-T206", 4, 13,
                         "Tile[[2, 8], fp32] at line 11, Tile[[4, 8], fp32] at line 9, and both",
                         "another name"});
    /* Nobody reads the name afterwards. */
    lowered l = lower(KERNEL("    t = " LOAD "\n"
                             "    if b:\n"
                             "        t = pl.load(x, [0, 0], [2, N])\n"
                             "        pl.store(t, [0, 0], y)\n"
                             "    t = n\n"),
                      "h");
    expect_ok(&l);
    lowered_free(&l);
}

/* ---- loops ---- */

static void test_ranges(void **state)
{
    (void)state;
    expect_body(KERNEL("    for i in pl.range(3):\n"
                       "        pass\n"
                       "    for i in pl.range(n, 2 * n + 1):\n"
                       "        for j in pl.range(stop=i, start=0, step=-n):\n"
                       "            pass\n"
                       "    for _ in pl.range(pld.nranks(pld.get_comm_ctx(w))):\n"
                       "        pass\n"),
                "h", "k",
                "for i in range(0, 3, 1)\n"
                "for i.1 in range(index(n), index(((int32(2) * n) + int32(1))), 1)\n"
                "  for j in range(0, i.1, index((-n)))\n"
                "t0 = pld.get_comm_ctx(w)\n"
                "for _ in range(0, index(pld.nranks(t0)), 1)\n");
}

static void test_accumulators_keep_their_place(void **state)
{
    (void)state;
    expect_body(KERNEL("    acc = " LOAD "\n"
                       "    count = 0\n"
                       "    for i in pl.range(n):\n"
                       "        acc = pl.add(acc, pl.load(w, [0, 0], [4, N]))\n"
                       "        count = count + n\n"
                       "        count += 1\n"
                       "    pl.store(acc, [0, 0], y)\n"
                       "    pld.system.wait(s, [0, 0], count, cmp=pld.WaitCmp.Ge)\n"),
                "h", "k",
                "acc = pl.load(x, [0, 0], [4, 8])\n"
                "count = 0\n"
                "for i in range(0, index(n), 1)\n"
                "  t0 = pl.load(w, [0, 0], [4, 8])\n"
                "  acc = pl.add(acc, t0)\n"
                "  count = (count + index(n))\n"
                "  count = (count + 1)\n"
                "pl.store(acc, [0, 0], y)\n"
                "pld.system.wait(s, [0, 0], count, cmp=WaitCmp.Ge)\n");
}

/* The name of a parameter that the body changes gets a variable before the loop. */
static void test_loop_carries_a_parameter(void **state)
{
    (void)state;
    expect_body(KERNEL("    for i in pl.range(n):\n"
                       "        n = n + 1\n"
                       "        t = " LOAD "\n"
                       "        pl.store(t, [0, 0], y)\n"
                       "    pld.system.wait(s, [n, 0], 1, cmp=pld.WaitCmp.Ge)\n"),
                "h", "k",
                "n.1 = n\n"
                "for i in range(0, index(n), 1)\n"
                "  n.1 = (n.1 + int32(1))\n"
                "  t = pl.load(x, [0, 0], [4, 8])\n"
                "  pl.store(t, [0, 0], y)\n"
                "pld.system.wait(s, [n.1, 0], 1, cmp=WaitCmp.Ge)\n");
}

/* Two windows that change places in each turn are handles at run time; the body is lowered twice, and
 * the first attempt leaves nothing behind. */
static void test_loop_carries_handles(void **state)
{
    (void)state;
    const char *source = KERNEL("    p = x\n"
                                "    q = y\n"
                                "    for i in pl.range(n):\n"
                                "        pl.store(pl.load(p, [0, 0], [4, N]), [0, 0], w)\n"
                                "        p, q = q, p\n"
                                "    pl.store(pl.load(p, [0, 0], [4, N]), [0, 0], w)\n");
    lowered l = lower(source, "h");
    expect_ok(&l);
    assert_string_equal(body_text(&l, "k"), "p = x\n"
                                            "q = y\n"
                                            "for i in range(0, index(n), 1)\n"
                                            "  t0 = pl.load(p, [0, 0], [4, 8])\n"
                                            "  pl.store(t0, [0, 0], w)\n"
                                            "  t1 = q\n"
                                            "  t2 = p\n"
                                            "  p = t1\n"
                                            "  q = t2\n"
                                            "t3 = pl.load(p, [0, 0], [4, 8])\n"
                                            "pl.store(t3, [0, 0], w)\n");
    const ir_function *k = function_named(&l, "k");
    for (int64_t i = 0; i < k->vars.count; i++) {
        assert_int_equal(k->vars.items[i]->id, i);
        assert_int_equal(k->vars.items[i]->version, 0);
    }
    lowered_free(&l);
}

static void test_loop_variable_after_its_loop(void **state)
{
    (void)state;
    expect_body(KERNEL("    for i in pl.range(3):\n"
                       "        for j in pl.range(2):\n"
                       "            i = j\n"
                       "        last = j + i\n"
                       "    pld.system.wait(s, [last, 0], i, cmp=pld.WaitCmp.Ge)\n"),
                "h", "k",
                "j.1 = 0\n"
                "for i in range(0, 3, 1)\n"
                "  i.1 = i\n"
                "  for j in range(0, 2, 1)\n"
                "    j.1 = j\n"
                "    i.1 = j\n"
                "  last = (j.1 + i.1)\n"
                "pld.system.wait(s, [last, 0], i.1, cmp=WaitCmp.Ge)\n");
    /* A loop that does not run leaves what the name was. */
    expect_body(KERNEL("    i = n\n"
                       "    for i in pl.range(n):\n"
                       "        pass\n"
                       "    pld.system.wait(s, [i, 0], 1, cmp=pld.WaitCmp.Ge)\n"),
                "h", "k",
                "i = n\n"
                "i.2 = index(i)\n"
                "for i.1 in range(0, index(n), 1)\n"
                "  i.2 = i.1\n"
                "pld.system.wait(s, [i.2, 0], 1, cmp=WaitCmp.Ge)\n");
}

#define WAIT(value) "    pld.system.wait(s, [0, 0], " value ", cmp=pld.WaitCmp.Ge)\n"

/* What only a loop binds is checked where it is read, and nothing is said of what nobody reads. */
static void test_names_of_loops_that_may_not_run(void **state)
{
    (void)state;
    expect_body(KERNEL("    for i in pl.range(n):\n"
                       "        m = 3\n"
                       "        t = " LOAD "\n" WAIT("m + m")),
                "h", "k",
                "m_bound = False\n"
                "for i in range(0, index(n), 1)\n"
                "  t = pl.load(x, [0, 0], [4, 8])\n"
                "  m_bound = True\n"
                "if (not m_bound)\n"
                "  check.unbound(\"m\")\n"
                "pld.system.wait(s, [0, 0], 6, cmp=WaitCmp.Ge)\n");
    expect_body(
        KERNEL("    for i in pl.range(n):\n        z = x\n    t = pl.load(z, [0, 0], [4, 8])\n"),
        "h", "k",
        "for i in range(0, index(n), 1)\n"
        "t = pl.load(x, [0, 0], [4, 8])\n");
    expect_body(KERNEL("    for i in pl.range(n):\n"
                       "        for j in pl.range(3):\n"
                       "            pass\n" WAIT("j")),
                "h", "k",
                "j_bound = False\n"
                "j.1 = 0\n"
                "for i in range(0, index(n), 1)\n"
                "  for j in range(0, 3, 1)\n"
                "    j.1 = j\n"
                "  j_bound = True\n"
                "if (not j_bound)\n"
                "  check.unbound(\"j\")\n"
                "pld.system.wait(s, [0, 0], j.1, cmp=WaitCmp.Ge)\n");
    expect_body(KERNEL("    for i in pl.range(4):\n"
                       "        if i == n:\n"
                       "            continue\n"
                       "        t = " LOAD "\n"
                       "        if i == 2:\n"
                       "            break\n"
                       "    if n > 0 and i > 2:\n"
                       "        pl.store(t, [0, 0], y)\n"),
                "h", "k",
                "t_bound = False\n"
                "i.1 = 0\n"
                "for i in range(0, 4, 1)\n"
                "  i.1 = i\n"
                "  if (i == index(n))\n"
                "    continue\n"
                "  t = pl.load(x, [0, 0], [4, 8])\n"
                "  if (i == 2)\n"
                "    t_bound = True\n"
                "    break\n"
                "  t_bound = True\n"
                "if ((n > int32(0)) and (i.1 > 2))\n"
                "  if (not t_bound)\n"
                "    check.unbound(\"t\")\n"
                "  pl.store(t, [0, 0], y)\n");
    expect_body(KERNEL("    for i in pl.range(1, pld.nranks(pld.get_comm_ctx(w))):\n"
                       "        m = n\n"
                       "    if n > 0 and m > 2:\n"
                       "        pass\n"),
                "h", "k",
                "m_bound = False\n"
                "t0 = pld.get_comm_ctx(w)\n"
                "for i in range(1, index(pld.nranks(t0)), 1)\n"
                "  m = n\n"
                "  m_bound = True\n"
                "if ((n > int32(0)) and (not m_bound))\n"
                "  check.unbound(\"m\")\n"
                "if ((n > int32(0)) and (m > int32(2)))\n");
    /* An if leaves it open at compile time. */
    const expected_error partly = {"PYPTO-S106", 5, 31,
                                   "'m' may not be defined: the loop at line 11", "before"};
    expect_error(KERNEL("    if b:\n"
                        "        m = n\n"
                        "    for i in pl.range(n):\n"
                        "        m = n\n" WAIT("m")),
                 "h", KERNEL_LINE, partly);
    const char *const good[] = {
        KERNEL("    for i in pl.range(1):\n        t = " LOAD "\n    pl.store(t, [0, 0], y)\n"),
        KERNEL("    for i in pl.range(4, 0, -2):\n        m = n\n" WAIT("m + i")),
        /* A domain has a rank. */
        KERNEL("    for i in pl.range(pld.nranks(pld.get_comm_ctx(w))):\n        m = 3\n" WAIT(
            "m + i")),
        KERNEL("    p = pld.nranks(pld.get_comm_ctx(w))\n"
               "    for i in pl.range(p):\n        m = 3\n" WAIT("m + i")),
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        lowered l = lower(good[i], "h");
        expect_ok(&l);
        lowered_free(&l);
    }
}

/* A name that had a value keeps it when the loop does not run. */
static void test_values_from_before_the_loop(void **state)
{
    (void)state;
    expect_body(
        KERNEL("    z = x\n"
               "    m = n\n"
               "    t = " LOAD "\n"
               "    u = pl.add(t, 1)\n"
               "    i = n\n"
               "    for i in pl.range(n):\n"
               "        z = y\n"
               "        m = 3\n"
               "        t = u\n"
               "    pl.store(pl.add(t, pl.load(z, [0, 0], [4, N])), [0, 0], y)\n" WAIT("m + i")),
        "h", "k",
        "m = n\n"
        "t = pl.load(x, [0, 0], [4, 8])\n"
        "u = pl.add(t, 1.0)\n"
        "i = n\n"
        "z = x\n"
        "i.2 = index(i)\n"
        "for i.1 in range(0, index(n), 1)\n"
        "  i.2 = i.1\n"
        "  z = y\n"
        "  m = int32(3)\n"
        "  t = u\n"
        "t0 = pl.load(z, [0, 0], [4, 8])\n"
        "t1 = pl.add(t, t0)\n"
        "pl.store(t1, [0, 0], y)\n"
        "pld.system.wait(s, [0, 0], (index(m) + i.2), cmp=WaitCmp.Ge)\n");
}

/* Loops that may not run leave the name what it was, whatever nests. */
static void test_loop_variables_of_loops_that_do_not_run(void **state)
{
    (void)state;
#define READ_I "    pld.system.wait(s, [i, 0], 1, cmp=pld.WaitCmp.Ge)\n"
    expect_body(KERNEL("    i = NR\n"
                       "    for r in pl.range(2):\n"
                       "        for i in pl.range(1 - r):\n"
                       "            pass\n" READ_I),
                "h", "k",
                "i = NR\n"
                "for r in range(0, 2, 1)\n"
                "  for i.1 in range(0, (1 - r), 1)\n"
                "    i = i.1\n"
                "pld.system.wait(s, [i, 0], 1, cmp=WaitCmp.Ge)\n");
    expect_body(KERNEL("    for i in pl.range(3):\n"
                       "        pass\n"
                       "    for r in pl.range(n):\n"
                       "        for i in pl.range(r):\n"
                       "            pass\n" READ_I),
                "h", "k",
                "i.2 = 0\n"
                "for i in range(0, 3, 1)\n"
                "  i.2 = i\n"
                "for r in range(0, index(n), 1)\n"
                "  for i.1 in range(0, r, 1)\n"
                "    i.2 = i.1\n"
                "pld.system.wait(s, [i.2, 0], 1, cmp=WaitCmp.Ge)\n");
    expect_body(KERNEL("    i = NR + 1\n"
                       "    for i in pl.range(n):\n"
                       "        i = 2 * i\n" READ_I),
                "h", "k",
                "i = (NR + 1)\n"
                "for i.1 in range(0, index(n), 1)\n"
                "  i = (2 * i.1)\n"
                "pld.system.wait(s, [i, 0], 1, cmp=WaitCmp.Ge)\n");
    const expected_error different = {"PYPTO-T206", 0, -1, "with a different type", NULL};
    expect_error(KERNEL("    i = " LOAD "\n"
                        "    for i in pl.range(n):\n"
                        "        pass\n" READ_I),
                 "h", KERNEL_LINE, different);
    expect_error(KERNEL("    if b:\n"
                        "        i = NR\n"
                        "    else:\n"
                        "        i = f\n"
                        "    for i in pl.range(n):\n"
                        "        i = 2\n" READ_I),
                 "h", KERNEL_LINE, different);
    expect_error(KERNEL("    i = f\n"
                        "    for r in pl.range(n):\n"
                        "        for i in pl.range(r):\n"
                        "            pass\n" READ_I),
                 "h", KERNEL_LINE, different);
}

/* Bounds are evaluated once, also when the body assigns what they read. */
static void test_bounds_are_fixed(void **state)
{
    (void)state;
    expect_body(KERNEL("    m = n + 1\n"
                       "    for i in pl.range(0, m, m):\n"
                       "        m = m + 1\n"),
                "h", "k",
                "m = (n + int32(1))\n"
                "t0 = index(m)\n"
                "t1 = index(m)\n"
                "for i in range(0, t0, t1)\n"
                "  m = (m + int32(1))\n");
}

/* Names may be reused for something else from loop to loop. */
static void test_names_reused_across_loops(void **state)
{
    (void)state;
    expect_body(KERNEL("    for d in pl.range(3):\n"
                       "        t = " LOAD "\n"
                       "    for e in pl.range(3):\n"
                       "        d = e // 2\n"
                       "        t = d + 1\n"
                       "        pld.system.wait(s, [t, 0], d, cmp=pld.WaitCmp.Ge)\n"),
                "h", "k",
                "for d in range(0, 3, 1)\n"
                "  t = pl.load(x, [0, 0], [4, 8])\n"
                "for e in range(0, 3, 1)\n"
                "  d.1 = (e // 2)\n"
                "  t.1 = (d.1 + 1)\n"
                "  pld.system.wait(s, [t.1, 0], d.1, cmp=WaitCmp.Ge)\n");
}

static void test_loop_types_that_do_not_agree(void **state)
{
    (void)state;
    expect_error(
        KERNEL("    t = " LOAD "\n"
               "    for i in pl.range(n):\n"
               "        pl.store(t, [0, 0], y)\n"
               "        t = pl.load(x, [0, 0], [2, N])\n"
               "    pl.store(t, [0, 0], y)\n"),
        "h", KERNEL_LINE,
        (expected_error){
            "PYPTO-T206", 4, 8,
            "it becomes Tile[[2, 8], fp32] here, and the next turn of the loop reads it as "
            "the Tile[[4, 8], fp32] of line 9",
            "another name"});
    expect_error(KERNEL("    m = pl.cast(n, pl.UINT64)\n"
                        "    for i in pl.range(n):\n"
                        "        m = i\n"
                        "    pld.system.wait(s, [0, 0], m, cmp=pld.WaitCmp.Ge)\n"),
                 "h", KERNEL_LINE,
                 (expected_error){"PYPTO-T206", 4, 31,
                                  "uint64 at line 9, index at line 11, and both",
                                  "pl.const(3, pl.UINT64)"});
    expect_error(KERNEL("    m = 0\n"
                        "    for i in pl.range(n):\n"
                        "        if b:\n"
                        "            m = 1.5\n"
                        "    pld.system.wait(s, [0, 0], m, cmp=pld.WaitCmp.Ge)\n"),
                 "h", KERNEL_LINE,
                 (expected_error){"PYPTO-T206", 0, -1, "fp32", "pl.cast(x, pl.FP32)"});
    expect_error(KERNEL("    t = " LOAD "\n"
                        "    for i in pl.range(n):\n"
                        "        t = pl.load(x, [0, 0], [2, N])\n"
                        "    pl.store(t, [0, 0], y)\n"),
                 "h", KERNEL_LINE, (expected_error){"PYPTO-T206", 4, 13, "different type", NULL});
    /* A loop that surely runs decides the type. */
    lowered l = lower(KERNEL("    t = " LOAD "\n"
                             "    for i in pl.range(2):\n"
                             "        t = pl.load(x, [0, 0], [2, N])\n"
                             "    pl.store(t, [2, 0], y)\n"),
                      "h");
    expect_ok(&l);
    lowered_free(&l);
}

/* Numbers of different width meet in the wider type, wherever paths meet. */
static void test_numbers_widen(void **state)
{
    (void)state;
#define READ_M "    pld.system.wait(s, [0, 0], m, cmp=pld.WaitCmp.Ge)\n"
    static const struct {
        const char *source;
        const char *body;
    } rows[] = {
        {KERNEL("    m = n\n"
                "    for i in pl.range(n):\n"
                "        m = m + i\n" READ_M),
         "m = n\n"
         "m.1 = index(m)\n"
         "for i in range(0, index(n), 1)\n"
         "  m.1 = (m.1 + i)\n"
         "pld.system.wait(s, [0, 0], m.1, cmp=WaitCmp.Ge)\n"},
        {KERNEL("    m = pl.const(7, pl.INT8)\n"
                "    while b:\n"
                "        if n > 2:\n"
                "            m = pl.cast(n, pl.INT16)\n"
                "            continue\n"
                "        m = n\n" READ_M),
         "m = int8(7)\n"
         "m.1 = int32(m)\n"
         "while b\n"
         "  if (n > int32(2))\n"
         "    m.1 = int32(int16(n))\n"
         "    continue\n"
         "  m.1 = n\n"
         "pld.system.wait(s, [0, 0], m.1, cmp=WaitCmp.Ge)\n"},
        {KERNEL("    if b:\n"
                "        m = 7\n"
                "    elif n > 1:\n"
                "        m = n\n"
                "    else:\n"
                "        m = pl.cast(n, pl.INT16)\n" READ_M),
         "if b\n"
         "  m = 7\n"
         "else\n"
         "  if (n > int32(1))\n"
         "    m.1 = n\n"
         "  else\n"
         "    m.2 = int16(n)\n"
         "    m.1 = int32(m.2)\n"
         "  m = index(m.1)\n"
         "pld.system.wait(s, [0, 0], m, cmp=WaitCmp.Ge)\n"},
        {KERNEL("    for i, (m,) in pl.range(4, init_values=(n,)):\n"
                "        m = pl.yield_(m * NR)\n" READ_M),
         "m = n\n"
         "m.1 = index(m)\n"
         "for i in range(0, 4, 1)\n"
         "  m.1 = (m.1 * NR)\n"
         "m.2 = m.1\n"
         "pld.system.wait(s, [0, 0], m.2, cmp=WaitCmp.Ge)\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_body(rows[i].source, "h", "k", rows[i].body);
}

static void test_a_return_in_a_loop(void **state)
{
    (void)state;
    expect_body(KERNEL("    for i in pl.range(n):\n"
                       "        if i == 2:\n"
                       "            return y\n"
                       "    return y\n"),
                "h", "k",
                "for i in range(0, index(n), 1)\n"
                "  if (i == 2)\n"
                "    return\n");
    /* Nothing but a loop without turns leads behind it, and then its variable is what it was. */
    expect_body(KERNEL("    i = " LOAD "\n"
                       "    for i in pl.range(n):\n"
                       "        return y\n"
                       "    return pl.store(i, [0, 0], y)\n"),
                "h", "k",
                "i = pl.load(x, [0, 0], [4, 8])\n"
                "for i.1 in range(0, index(n), 1)\n"
                "  return\n"
                "pl.store(i, [0, 0], y)\n");
}

/* ---- what a loop must look like ---- */

/* ---- while, break, continue ---- */

static void test_while(void **state)
{
    (void)state;
    expect_body(KERNEL("    while n < 10:\n"
                       "        n = n * 2\n"
                       "    pld.system.wait(s, [n, 0], 1, cmp=pld.WaitCmp.Ge)\n"),
                "h", "k",
                "n.1 = n\n"
                "while (n.1 < int32(10))\n"
                "  n.1 = (n.1 * int32(2))\n"
                "pld.system.wait(s, [n.1, 0], 1, cmp=WaitCmp.Ge)\n");
    /* Nothing follows a loop that never ends. */
    expect_body(KERNEL("    while True:\n"
                       "        n = n + 1\n"
                       "        if n > 5:\n"
                       "            return y\n"
                       "    nonsense(1)\n"),
                "h", "k",
                "n.1 = n\n"
                "while True\n"
                "  n.1 = (n.1 + int32(1))\n"
                "  if (n.1 > int32(5))\n"
                "    return\n");
}

static void test_jumps(void **state)
{
    (void)state;
    expect_body(KERNEL("    m = 0\n"
                       "    for i in pl.range(n):\n"
                       "        if i == 3:\n"
                       "            continue\n"

                       "            pass\n"
                       "        m = m + i\n"
                       "        if m > 9:\n"
                       "            m = 7\n"
                       "            break\n"
                       "    pld.system.wait(s, [m, 0], 1, cmp=pld.WaitCmp.Ge)\n"),
                "h", "k",
                "m = 0\n"
                "for i in range(0, index(n), 1)\n"
                "  if (i == 3)\n"
                "    continue\n"
                "  m = (m + i)\n"
                "  if (m > 9)\n"
                "    m = 7\n"
                "    break\n"
                "pld.system.wait(s, [m, 0], 1, cmp=WaitCmp.Ge)\n");
}

/* What follows a break is not looked at; the break's own value reaches the end of the loop. */
static void test_a_break_with_a_handle(void **state)
{
    (void)state;
    expect_body(KERNEL("    src = x\n"
                       "    for i in pl.range(n):\n"
                       "        if i > 3:\n"
                       "            src = y\n"
                       "            break\n"
                       "    pl.store(pl.load(src, [0, 0], [4, N]), [0, 0], w)\n"),
                "h", "k",
                "src = x\n"
                "for i in range(0, index(n), 1)\n"
                "  if (i > 3)\n"
                "    src = y\n"
                "    break\n"
                "t0 = pl.load(src, [0, 0], [4, 8])\n"
                "pl.store(t0, [0, 0], w)\n");
}

static void test_bad_loops(void **state)
{
    (void)state;
    const struct {
        const char *source;
        expected_error error;
    } rows[] = {
        {KERNEL("    for i in [1, 2]:\n        pass\n"),
         {"PYPTO-S104", 1, 13, "must use pl.range()", "for i in pl.range(n)"}},
        {KERNEL("    for i in range(3):\n        pass\n"),
         {"PYPTO-S104", 1, 13, "must use pl.range(), not range", "pl.range"}},
        {KERNEL("    for i in pl.add(3):\n        pass\n"),
         {"PYPTO-S104", 1, 13, "must use pl.range(), not pl.add", NULL}},
        {KERNEL("    for i in pl.range(3, stage=2):\n        pass\n"),
         {"PYPTO-S104", 1, -1, "stage= is only supported on pl.pipeline", NULL}},
        {KERNEL("    for i in pl.range(3, chunk=2):\n        pass\n"),
         {"PYPTO-S104", 1, -1, "does not accept 'chunk='", NULL}},
        {KERNEL("    for i in pl.pipeline(3):\n        pass\n"),
         {"PYPTO-S104", 1, 13, "requires stage=", NULL}},
        {KERNEL("    for i in pl.pipeline(3, stage=0):\n        pass\n"),
         {"PYPTO-S104", 1, -1, "stage must be >= 1", NULL}},
        {KERNEL("    for i in pl.pipeline(3, stage=n):\n        pass\n"),
         {"PYPTO-S104", 1, -1, "stage must be a compile-time constant", NULL}},
        {KERNEL("    for i in pl.unroll(n):\n        pass\n"),
         {"PYPTO-S104", 1, 13, "compile-time constant integer bounds", NULL}},
        {KERNEL("    for i, (a,) in pl.unroll(2, init_values=(1,)):\n        pass\n"),
         {"PYPTO-S104", 1, -1, "cannot be combined with init_values", NULL}},
        {KERNEL("    for i in pl.parallel(3):\n        break\n"),
         {"PYPTO-S117", 2, 8, "'break' not supported inside parallel loops", NULL}},
        {KERNEL("    for i in pl.unroll(3):\n        continue\n"),
         {"PYPTO-S117", 2, 8, "'continue' not supported inside unrolled loops", NULL}},
        {KERNEL("    for i in pl.while_():\n        pass\n"),
         {"PYPTO-S104", 1, 13, "requires init_values", NULL}},
        {KERNEL("    for (i,) in pl.while_(init_values=(0,)):\n        pass\n"),
         {"PYPTO-S104", 2, 8, "must start with pl.cond", NULL}},
        {KERNEL("    for i in pl.range(2, init_values=(0,)):\n        pass\n"),
         {"PYPTO-S104", 1, 8, "must be a tuple when init_values", NULL}},
        {KERNEL("    for i, j in pl.range(2, init_values=(0,)):\n        pass\n"),
         {"PYPTO-S104", 1, -1, "target must be", NULL}},
        {KERNEL("    for i, (j, k) in pl.range(2, init_values=(0,)):\n        pass\n"),
         {"PYPTO-S104", 1, -1, "Mismatch", NULL}},
        {KERNEL("    for i, (j,) in pl.range(2, init_values=(0,)):\n        pl.yield_(j)\n"),
         {"PYPTO-S104", 2, 8, "requires an assignment-form pl.yield_", NULL}},
        {KERNEL(
             "    for i, (j,) in pl.range(2, init_values=(0,)):\n        k, m = pl.yield_(j, j)\n"),
         {"PYPTO-S104", 2, 8, "Mismatch", NULL}},
        {KERNEL("    k = pl.yield_(3)\n"),
         {"PYPTO-S104", 1, 4, "stands in an if, or in a loop with init_values", NULL}},
        {KERNEL("    for i in pl.range():\n        pass\n"),
         {"PYPTO-S104", 1, 13, "requires at least 1 argument", NULL}},
        {KERNEL("    for i in pl.range(1, 2, 3, 4):\n        pass\n"),
         {"PYPTO-S104", 1, 13, "takes 1 to 3 arguments, not 4", NULL}},
        {KERNEL("    for i in pl.range(1, foo=2):\n        pass\n"),
         {"PYPTO-S104", 1, 25, "Unknown keyword argument 'foo'", NULL}},
        {KERNEL("    for i in pl.range(1, 2, stop=2):\n        pass\n"),
         {"PYPTO-S104", 1, 28, "multiple values for argument 'stop'", NULL}},
        {KERNEL("    for i in pl.range(1, **x):\n        pass\n"),
         {"PYPTO-S104", 1, -1, "does not accept **kwargs", NULL}},
        {KERNEL("    for i in pl.range(1, init_values=2):\n        pass\n"),
         {"PYPTO-S104", 1, -1, "must be a list or tuple", NULL}},
        {KERNEL("    for i, j in pl.range(3):\n        pass\n"),
         {"PYPTO-S104", 1, 8, "single loop variable", NULL}},
        {KERNEL("    for i in pl.range(0, 4, 0):\n        pass\n"),
         {"PYPTO-S104", 1, 28, "cannot be zero", NULL}},
        {KERNEL("    for i in pl.range(f):\n        pass\n"),
         {"PYPTO-T210", 1, 22, "stop must be an integer scalar, not a Scalar of type fp32", NULL}},
        {KERNEL("    for i in pl.range(3):\n        pass\n    else:\n        pass\n"),
         {"PYPTO-S102", 4, 8, "else of a for loop", NULL}},
        {KERNEL("    k = pl.range(3)\n"), {"PYPTO-S104", 1, 8, "iterator of a for loop", NULL}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_error(rows[i].source, "h", KERNEL_LINE, rows[i].error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_branches_share_a_variable),
        cmocka_unit_test(test_branch_rebinds_a_parameter),
        cmocka_unit_test(test_branches_merge_handles),
        cmocka_unit_test(test_constant_conditions),
        cmocka_unit_test(test_names_of_one_branch),
        cmocka_unit_test(test_types_that_do_not_agree),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_accumulators_keep_their_place),
        cmocka_unit_test(test_loop_carries_a_parameter),
        cmocka_unit_test(test_loop_carries_handles),
        cmocka_unit_test(test_loop_variable_after_its_loop),
        cmocka_unit_test(test_names_of_loops_that_may_not_run),
        cmocka_unit_test(test_values_from_before_the_loop),
        cmocka_unit_test(test_loop_variables_of_loops_that_do_not_run),
        cmocka_unit_test(test_bounds_are_fixed),
        cmocka_unit_test(test_names_reused_across_loops),
        cmocka_unit_test(test_loop_types_that_do_not_agree),
        cmocka_unit_test(test_numbers_widen),
        cmocka_unit_test(test_a_return_in_a_loop),
        cmocka_unit_test(test_while),
        cmocka_unit_test(test_jumps),
        cmocka_unit_test(test_a_break_with_a_handle),
        cmocka_unit_test(test_bad_loops),
    };
    return RUN_TESTS(tests);
}
