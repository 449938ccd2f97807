/* Collectives in kernels and wrappers, up to the passes: what the rules refuse, which operand is the value, the
 * task that one in a wrapper becomes, and which window buffers are marked as signals. */
#include "frontend_check.h"
#include "ops/ops.h"
#include "passes/passes.h"

/* d, e: data; s, f: signals of NR ranks; s4, d4, ring, c4: of 4; q: a small one; i8, b8: other element types. */
#define PARAMETERS                                                                            \
    "x: pl.Tensor[[1, N], DT], n: pl.Scalar[pl.INT32], "                                      \
    "d: pld.DistributedTensor[[NR, N], DT], e: pld.DistributedTensor[[NR, N], DT], "          \
    "s: pld.DistributedTensor[[NR, 1], pl.INT32], f: pld.DistributedTensor[[NR], pl.INT32], " \
    "s4: pld.DistributedTensor[[4, 1], pl.INT32], d4: pld.DistributedTensor[[4, N], DT], "    \
    "e4: pld.DistributedTensor[[4, N], DT], ring: pld.DistributedTensor[[6, 4], pl.INT32], "  \
    "c4: pld.DistributedTensor[[4, 1], pl.INT32], q: pld.DistributedTensor[[2, N], DT], "     \
    "i8: pld.DistributedTensor[[NR, N], pl.INT8], b8: pld.DistributedTensor[[NR, N], pl.BOOL]"
#define ARGUMENTS "x, n, d, e, s, f, s4, d4, e4, ring, c4, q, i8, b8"
#define KERNEL_BODY_LINE 10
#define PROGRAM(kernel, wrapper)                                              \
    HEAD "R = pld.ReduceOp\n"                                                 \
         "@pl.jit.incore\n"                                                   \
         "def k(" PARAMETERS "):\n" kernel "    pl.load(x, [0, 0], [1, N])\n" \
         "@pl.jit\n"                                                          \
         "def c(" PARAMETERS "):\n" wrapper "    k(" ARGUMENTS ")\n"          \
         "@pl.jit.host\n"                                                     \
         "def h(x: pl.Tensor[[NR, 1, N], DT]):\n"                             \
         "    B = pld.world_size()\n"                                         \
         "    db = pld.alloc_window_buffer([B, N], dtype=DT)\n"               \
         "    eb = pld.alloc_window_buffer([B, N], dtype=DT)\n"               \
         "    sb = pld.alloc_window_buffer([B], dtype=pl.INT32)\n"            \
         "    fb = pld.alloc_window_buffer([B], dtype=pl.INT32)\n"            \
         "    s4b = pld.alloc_window_buffer([4], dtype=pl.INT32)\n"           \
         "    d4b = pld.alloc_window_buffer([4, N], dtype=DT)\n"              \
         "    e4b = pld.alloc_window_buffer([4, N], dtype=DT)\n"              \
         "    rb = pld.alloc_window_buffer([6, 4], dtype=pl.INT32)\n"         \
         "    cb = pld.alloc_window_buffer([4], dtype=pl.INT32)\n"            \
         "    qb = pld.alloc_window_buffer([2, N], dtype=DT)\n"               \
         "    i8b = pld.alloc_window_buffer([B, N], dtype=pl.INT8)\n"         \
         "    b8b = pld.alloc_window_buffer([B, N], dtype=pl.BOOL)\n"         \
         "    for r in pl.range(B):\n"                                        \
         "        d = pld.window(db, [B, N], dtype=DT)\n"                     \
         "        e = pld.window(eb, [B, N], dtype=DT)\n"                     \
         "        s = pld.window(sb, [B, 1], dtype=pl.INT32)\n"               \
         "        f = pld.window(fb, [B], dtype=pl.INT32)\n"                  \
         "        s4 = pld.window(s4b, [4, 1], dtype=pl.INT32)\n"             \
         "        d4 = pld.window(d4b, [4, N], dtype=DT)\n"                   \
         "        e4 = pld.window(e4b, [4, N], dtype=DT)\n"                   \
         "        ring = pld.window(rb, [6, 4], dtype=pl.INT32)\n"            \
         "        c4 = pld.window(cb, [4, 1], dtype=pl.INT32)\n"              \
         "        q = pld.window(qb, [2, N], dtype=DT)\n"                     \
         "        i8 = pld.window(i8b, [B, N], dtype=pl.INT8)\n"              \
         "        b8 = pld.window(b8b, [B, N], dtype=pl.BOOL)\n"              \
         "        c(x[r], r, d, e, s, f, s4, d4, e4, ring, c4, q, i8, b8, device=r)\n"

static lowered passed(const char *source)
{
    lowered l = lower(source, "h");
    expect_ok(&l);
    l.status = passes_run(l.result.program, platform_find("cpu"), NULL);
    expect_ok(&l);
    return l;
}

/* ---- what is refused ---- */

typedef struct refusal {
    const char *statement;
    expected_error error;
} refusal;

static void expect_refusals(const refusal *rows, size_t count)
{
    char source[8192];
    for (size_t i = 0; i < count; i++) {
        const int length =
            snprintf(source, sizeof source, PROGRAM("    %s\n", ""), rows[i].statement);
        assert_in_range(length, 1, sizeof source - 1);
        expect_error(source, "h", KERNEL_BODY_LINE, rows[i].error);
    }
}

static void allreduce_checks_its_operands(void **state)
{
    (void)state;
    static const refusal rows[] = {
        {"pld.tensor.allreduce(x, s)",
         {"PYPTO-T205", 1, 25, "pld.tensor.allreduce: target must be a DistributedTensor",
          "pld.window"}},
        {"pld.tensor.allreduce(d, x)",
         {"PYPTO-T205", 1, 28, "signal must be a DistributedTensor", NULL}},
        {"pld.tensor.allreduce(d)",
         {"PYPTO-S108", 1, 4, "requires an explicit signal outside host orchestrator functions",
          "pass it on"}},
        {"pld.tensor.allreduce(d, None)", {"PYPTO-T205", 1, 28, "signal cannot be None", NULL}},
        {"pld.tensor.allreduce(b8, s)",
         {"PYPTO-T204", 1, 25, "target dtype must be FP16 or FP32", NULL}},
        {"pld.tensor.allreduce(d, e)",
         {"PYPTO-T204", 1, 28, "signal must have INT32 element type, not fp32", "pl.INT32"}},
        {"pld.tensor.allreduce(d, f)",
         {"PYPTO-T203", 1, 28, "signal must be 2D [NR, 1], but its rank is 1", NULL}},
        {"pld.tensor.allreduce(d4, ring)",
         {"PYPTO-T203", 1, 29, "signal shape[1] must be 1", NULL}},
        {"pld.tensor.allreduce(d4, ring[0:5, 0:4], mode='ring')",
         {"PYPTO-T203", 1, -1, "must equal 2*(NR-1)", "2 * (NR - 1)"}},
        {"pld.tensor.allreduce(d4, s4, mode='ring')",
         {"PYPTO-T203", 1, 29, "must equal 2*(NR-1)", NULL}},
        {"pld.tensor.allreduce(d4, ring[0:5, 0:4], mode='auto')",
         {"PYPTO-T203", 1, -1, "must equal 2*(NR-1)", NULL}},
        {"pld.tensor.allreduce(d, f, mode='ring')",
         {"PYPTO-T203", 1, 28, "signal must be 2D [2*(NR-1), NR]", NULL}},
        {"pld.tensor.allreduce(d, s, mode='tree')",
         {"PYPTO-T205", 1, 36, "mode must be \"ring\" or \"mesh\" or \"auto\", not 'tree'", NULL}},
        {"pld.tensor.allreduce(d, s, mode=R)", {"PYPTO-T205", 1, 36, "mode cannot be", NULL}},
        {"pld.tensor.allreduce(d, s, op=pld.ReduceOp.Mean)",
         {"PYPTO-T205", 1, -1, "op", "pld.ReduceOp.Sum"}},
        {"pld.tensor.allreduce(d, s, op=pld.NotifyOp.Set)",
         {"PYPTO-T205", 1, -1, "op must be ReduceOp.Sum, Max, Min, or Prod", NULL}},
        {"pld.tensor.allreduce(d, s, core_num=2)",
         {"PYPTO-S108", 1, 40, "supported only in a HOST orchestrator", "leave it out"}},
        {"pld.tensor.allreduce(d, s, core_num=0)",
         {"PYPTO-S108", 1, 40, "core_num must be positive, not 0", NULL}},
        {"pld.tensor.allreduce(d, s, core_num=n)",
         {"PYPTO-T214", 1, 40, "core_num must be a compile-time int", NULL}},
        {"pld.tensor.allreduce(d, s, core_num=True)",
         {"PYPTO-T214", 1, 40, "core_num must be a compile-time int", NULL}},
        {"pld.tensor.allreduce(d, s, core_num=1.0)",
         {"PYPTO-T214", 1, 40, "core_num must be a compile-time int", NULL}},
        {"pld.tensor.allreduce(s, s)",
         {"PYPTO-S108", 1, 28, "target and signal must be different windows", NULL}},
        {"pld.tensor.allreduce(s4, s4[0:4, 0:1])",
         {"PYPTO-S108", 1, -1, "target and signal must be different windows", NULL}},
        {"pld.tensor.allreduce(d, s, R.Sum)",
         {"PYPTO-S108", 1, 4, "takes from 1 to 2 positional arguments but 3 were given", NULL}},
        {"pld.tensor.allreduces(d, s)",
         {"PYPTO-S107", 1, 4, "pld.tensor.allreduces", "pld.tensor.allreduce"}},
        {"pld.allreduce(d, s)",
         {"PYPTO-S107", 1, 4, "Unknown distributed operation 'pld.allreduce'",
          "pld.tensor.allreduce"}},
    };
    expect_refusals(rows, sizeof rows / sizeof rows[0]);
}

static void barrier_and_broadcast_check_their_operands(void **state)
{
    (void)state;
    static const refusal rows[] = {
        {"pld.tensor.barrier()", {"PYPTO-S108", 1, 4, "positional argument: 'signal'", NULL}},
        {"pld.tensor.barrier(d)",
         {"PYPTO-T204", 1, 23, "signal must have INT32 element type", NULL}},
        {"pld.tensor.barrier(ring)", {"PYPTO-T203", 1, 23, "signal shape[1] must be 1", NULL}},
        {"pld.tensor.broadcast(d, s)",
         {"PYPTO-S108", 1, 4, "missing 1 required keyword-only argument: 'root'", NULL}},
        {"pld.tensor.broadcast(d, s, root=-1)",
         {"PYPTO-S108", 1, 36, "root rank must be non-negative, not -1", NULL}},
        {"pld.tensor.broadcast(d4, s4, root=5)",
         {"PYPTO-S108", 1, 38, "root (5) must be a valid rank in [0, 4)", NULL}},
        {"pld.tensor.broadcast(d, s, root=0.5)",
         {"PYPTO-T205", 1, 36, "root must be an integer or index scalar", NULL}},
        {"pld.tensor.broadcast(x, s, root=0)",
         {"PYPTO-T205", 1, 25, "pld.tensor.broadcast: target must be a DistributedTensor", NULL}},
        {"pld.tensor.broadcast(f, f, root=0)",
         {"PYPTO-S108", 1, 28, "target and signal must be different", NULL}},
    };
    expect_refusals(rows, sizeof rows / sizeof rows[0]);
}

static void rows_per_rank_are_checked(void **state)
{
    (void)state;
    static const refusal rows[] = {
        {"pld.tensor.allgather(d4, d, s)",
         {"PYPTO-T203", 1, 25, "local_data must be [1, SIZE]", NULL}},
        {"pld.tensor.allgather(f, d, s)",
         {"PYPTO-T203", 1, 25, "local_data must be 2D [1, SIZE]", NULL}},
        {"pld.tensor.allgather(x, f, s)",
         {"PYPTO-T203", 1, 28, "target must be 2D [NR, SIZE]", NULL}},
        {"pld.tensor.allgather(x, i8, s)",
         {"PYPTO-T204", 1, 28, "target dtype must equal that of local_data: int8 is not fp32",
          NULL}},
        {"pld.tensor.allgather(x[:, 0:4], d, s)",
         {"PYPTO-T203", 1, -1, "target SIZE must equal input SIZE", NULL}},
        {"pld.tensor.allgather(d4[0:1, :], d4, s)",
         {"PYPTO-S108", 1, -1, "local_data and target must be different", NULL}},
        {"pld.tensor.allgather(x, d4, s4[0:2, :])",
         {"PYPTO-T203", 1, 28, "target has 4 rows", NULL}},
        {"pld.tensor.allgather(x, x, s)",
         {"PYPTO-T205", 1, 28, "target must be a DistributedTensor", NULL}},
        {"pld.tensor.reduce_scatter(f, s)",
         {"PYPTO-T203", 1, 30, "target must be 2D [NR, SIZE]", NULL}},
        {"pld.tensor.reduce_scatter(b8, s)", {"PYPTO-T204", 1, 30, "target dtype must be", NULL}},
        {"pld.tensor.reduce_scatter(d4, s4[0:2, :])",
         {"PYPTO-T203", 1, 30, "target has 4 rows", NULL}},
        {"pld.tensor.reduce_scatter(d, d)", {"PYPTO-T204", 1, 33, "signal must have INT32", NULL}},
        {"pld.tensor.all_to_all(d4, q, s)",
         {"PYPTO-T203", 1, 30, "target shape must equal input shape", NULL}},
        {"pld.tensor.all_to_all(d, i8, s)", {"PYPTO-T204", 1, 29, "target dtype must equal", NULL}},
        {"pld.tensor.all_to_all(f, d, s)",
         {"PYPTO-T203", 1, 26, "input must be 2D [NR, SIZE]", NULL}},
        {"pld.tensor.all_to_all(d, d, s)",
         {"PYPTO-S108", 1, 29, "input and target must be different", NULL}},
        {"pld.tensor.all_to_all(d4, e4, s4[0:2, :])",
         {"PYPTO-T203", 1, 30, "target has 4 rows", NULL}},
        {"pld.tensor.all_to_all(d, s)", {"PYPTO-S108", 1, 4, "required positional argument", NULL}},
    };
    expect_refusals(rows, sizeof rows / sizeof rows[0]);
}

static void all_to_all_v_checks_its_counts(void **state)
{
    (void)state;
    static const refusal rows[] = {
        {"pld.tensor.all_to_all_v(d, e, s, f)",
         {"PYPTO-S108", 1, 4, "missing 1 required positional argument: 'recv_counts'", NULL}},
        {"pld.tensor.all_to_all_v(d, e, f, f, c4)",
         {"PYPTO-T203", 1, 34, "signal must be 2D [NR, 1]", NULL}},
        {"pld.tensor.all_to_all_v(q, q, s4, f, c4)",
         {"PYPTO-S108", 1, -1, "input and target must be different", NULL}},
        {"pld.tensor.all_to_all_v(q, q[0:2, :], s4, f, c4)",
         {"PYPTO-S108", 1, -1, "input and target must be different", NULL}},
        {"pld.tensor.all_to_all_v(d4[0:2, :], q, s4, f, c4)",
         {"PYPTO-T203", 1, -1, "signal dim 0, 4, must divide target dim 0, 2", NULL}},
        {"pld.tensor.all_to_all_v(d, e, s, d, c4)",
         {"PYPTO-T204", 1, 37, "send_counts must have INT32 element type", NULL}},
        {"pld.tensor.all_to_all_v(d, e, s, ring, c4)",
         {"PYPTO-T203", 1, 37, "send_counts must be 1D [NR] or 2D [NR, 1]", NULL}},
        {"pld.tensor.all_to_all_v(d4, e4, s4, c4[0:3, :], c4)",
         {"PYPTO-T203", 1, -1, "send_counts dim 0 must equal signal dim 0, 4", NULL}},
        {"pld.tensor.all_to_all_v(d, e, s, f, e)",
         {"PYPTO-T204", 1, 40, "recv_counts must have INT32 element type", NULL}},
        {"pld.tensor.all_to_all_v(d, e, s, c4, f)",
         {"PYPTO-T203", 1, 41, "recv_counts must be 2D [NR, 1]", NULL}},
        {"pld.tensor.all_to_all_v(d, e, s, c4, ring)",
         {"PYPTO-T203", 1, 41, "recv_counts second dimension must be 1", NULL}},
        {"pld.tensor.all_to_all_v(d, e, s, c4, c4)",
         {"PYPTO-S108", 1, 41, "send_counts and recv_counts must be different", NULL}},
        {"pld.tensor.all_to_all_v(d, e, s, f, s)",
         {"PYPTO-S108", 1, 40, "signal and recv_counts must be different", NULL}},
        {"pld.tensor.all_to_all_v(d, e, s, s, c4)",
         {"PYPTO-S108", 1, 37, "signal and send_counts must be different", NULL}},
    };
    expect_refusals(rows, sizeof rows / sizeof rows[0]);
}

/* ---- what is accepted ---- */

static const char *const accepted[] = {
    "pld.tensor.allreduce(d, s)",
    "pld.tensor.allreduce(target=d, signal=s, op=R.Prod, mode='mesh', core_num=1)",
    "pld.tensor.allreduce(d4, ring, mode='ring', op=pld.ReduceOp.Max)",
    "pld.tensor.allreduce(d4, ring, mode='auto')",
    "pld.tensor.allreduce(d4, s4, mode='auto')",
    "pld.tensor.allreduce(i8, s, op=R.Min)",
    "pld.tensor.allreduce(f, s)",
    "pld.tensor.barrier(s)",
    "pld.tensor.barrier(f)",
    "pld.tensor.barrier(ring[:, 0:1])",
    "pld.tensor.broadcast(b8, f, root=3)",
    "pld.tensor.broadcast(d4, s4, root=n)",
    "pld.tensor.allgather(x, d, s)",
    "pld.tensor.allgather(q[0:1, :], d4, f)",
    "pld.tensor.reduce_scatter(d, s, op=R.Max)",
    "pld.tensor.all_to_all(d, e, s)",
    "pld.tensor.all_to_all_v(d, e, s, f, c4)",
    "pld.tensor.all_to_all_v(d4, e4, s4, c4, ring[0:4, 0:1])",
};

static void general_operands_are_accepted(void **state)
{
    (void)state;
    char source[8192];
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        (void)snprintf(source, sizeof source, PROGRAM("    %s\n", ""), accepted[i]);
        lowered l = passed(source);
        const ir_block *body = &function_named(&l, "k")->body;
        int64_t found = 0;
        for (int64_t k = 0; k < body->count; k++)
            found += body->items[k]->kind == IR_DO && body->items[k]->op_def->signals != 0;
        assert_int_equal(found, 1);
        lowered_free(&l);
    }
}

/* The value is the target, of the barrier the signal, under the same name or another. */
static void the_value_is_the_target(void **state)
{
    (void)state;
    lowered l =
        passed(PROGRAM("    d = pld.tensor.allreduce(d, s)\n"
                       "    t = pld.tensor.barrier(s)\n"
                       "    g = pld.tensor.allgather(x, pld.tensor.broadcast(d, t, root=0), t)\n"
                       "    pl.store(pl.load(g, [0, 0], [1, N]), [0, 0], d)\n",
                       ""));
    const ir_block *body = &function_named(&l, "k")->body;
    const ir_var *d = body->items[0]->operands[0].var;
    const ir_var *s = body->items[1]->operands[0].var;
    assert_string_equal(d->name, "d");
    assert_string_equal(s->name, "s");
    assert_int_equal(body->items[2]->op_def->id, OP_BROADCAST);
    assert_ptr_equal(body->items[2]->operands[1].var, s);
    assert_int_equal(body->items[3]->op_def->id, OP_ALLGATHER);
    assert_ptr_equal(body->items[3]->operands[1].var, d);
    assert_ptr_equal(body->items[3]->operands[2].var, s);
    assert_ptr_equal(body->items[4]->operands[0].var, d);
    lowered_free(&l);
}

/* ---- effects ---- */

static uint32_t uses_of(const ir_function *f, const char *param)
{
    for (int64_t i = 0; i < f->params.count; i++) {
        if (strcmp(f->params.items[i]->name, param) == 0)
            return f->params.items[i]->uses;
    }
    fail_msg("no parameter %s", param);
    return 0;
}

/* What orders tasks: those that use one signal come one after the other. */
static void kernels_use_what_their_collectives_use(void **state)
{
    (void)state;
    lowered l = passed(PROGRAM("    pld.tensor.allreduce(d, s)\n"
                               "    pld.tensor.all_to_all(q, e, f)\n",
                               ""));
    const ir_function *k = function_named(&l, "k");
    assert_int_equal(uses_of(k, "d"), PLD_READS | PLD_WRITES);
    assert_int_equal(uses_of(k, "s"), PLD_READS | PLD_WRITES);
    assert_int_equal(uses_of(k, "f"), PLD_READS | PLD_WRITES);
    assert_int_equal(uses_of(k, "q"), PLD_READS);
    assert_int_equal(uses_of(k, "e"), PLD_WRITES);
    assert_int_equal(uses_of(k, "c4"), PLD_USES_NOTHING);
    lowered_free(&l);
}

static void a_kernel_that_is_a_barrier_alone_is_a_fence(void **state)
{
    (void)state;
    static const struct {
        const char *source;
        uint32_t uses;
    } rows[] = {
        {PROGRAM("    for i in pl.range(3):\n        pld.tensor.barrier(s)\n", ""),
         PLD_READS | PLD_WRITES | PLD_FENCES},
        {PROGRAM("    pld.tensor.barrier(s)\n    pld.tensor.allreduce(d, s)\n", ""),
         PLD_READS | PLD_WRITES},
        {PROGRAM("    pld.tensor.barrier(s)\n    pl.load(d, [0, 0], [1, N])\n", ""),
         PLD_READS | PLD_WRITES},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        lowered l = passed(rows[i].source);
        assert_int_equal(uses_of(function_named(&l, "k"), "s"), rows[i].uses);
        lowered_free(&l);
    }
}

/* ---- marks ---- */

/* Whether a word is one of those in a list with blanks between them. */
static bool is_among(const char *word, const char *list)
{
    char wanted[64];
    char all[256];
    (void)snprintf(wanted, sizeof wanted, " %s ", word);
    (void)snprintf(all, sizeof all, " %s ", list);
    return strstr(all, wanted) != NULL;
}

static void expect_marks(const char *source, const char *one, const char *many)
{
    lowered l = passed(source);
    const ir_program *p = l.result.program;
    for (int64_t i = 0; i < p->buffers.count; i++) {
        const ir_buffer *buffer = &p->buffers.items[i];
        const char *name = buffer->name;
        const pld_collectives expected = is_among(name, one)    ? PLD_ONE_SIGNAL
                                         : is_among(name, many) ? PLD_MANY_SIGNALS
                                                                : PLD_NO_COLLECTIVES;
        if (buffer->collectives != expected)
            fail_msg("%s is marked %d, not %d", name, (int)buffer->collectives, (int)expected);
    }
    lowered_free(&l);
}

static void buffers_of_signals_are_marked(void **state)
{
    (void)state;
    expect_marks(PROGRAM("", ""), "", "");
    expect_marks(PROGRAM("    pld.tensor.barrier(s)\n", ""), "sb", "");
    expect_marks(PROGRAM("", "    pld.tensor.barrier(s)\n"), "sb", "");
    expect_marks(PROGRAM("    s = pld.tensor.barrier(s)\n"
                         "    for i in pl.range(3):\n"
                         "        s = pld.tensor.barrier(s)\n",
                         ""),
                 "sb", "");
    /* A part of a buffer, in the kernel or where it is called. */
    expect_marks(PROGRAM("    pld.tensor.barrier(ring[0:4, 0:1])\n", ""), "", "rb");
    expect_marks(PROGRAM("    pld.tensor.barrier(f)\n",
                         "    with pl.at(level=pl.Level.CORE_GROUP):\n"
                         "        t = ring[:, 1:2]\n"
                         "        pld.tensor.barrier(t)\n"),
                 "fb", "rb");
    /* Which of two is known at run time only. */
    expect_marks(PROGRAM("    t = s4\n"
                         "    if n > 0:\n"
                         "        t = c4\n"
                         "    pld.tensor.barrier(t)\n",
                         ""),
                 "s4b cb", "");
}

static void expect_collectives_only(const char *source, bool expected)
{
    lowered l = passed(source);
    if (l.result.program->collectives_only != expected)
        fail_msg("collectives only: not %d in %s", expected, source);
    lowered_free(&l);
}

/* A kernel that reaches peers by itself can tell whether a broadcast holds ranks together. */
static void other_ways_to_peers_are_seen(void **state)
{
    (void)state;
    static const char *const ways[] = {
        "    pld.system.notify(s4, 0, [0, 0], 1, op=pld.NotifyOp.Set)\n",
        "    pld.tensor.put(d, 0, e)\n",
        "    pld.tensor.get(d, 0, e)\n",
        "    t = pld.tile.remote_load(d, 0, [0, 0], [1, 8])\n",
        "    pld.tile.remote_store(pl.load(x, [0, 0], [1, 8]), d, 0, [0, 0])\n",
        "    pld.tensor.remote_store(pl.load(x, [0, 0], [1, 8]), d, 0, [0, 0])\n",
    };
    expect_collectives_only(PROGRAM("", ""), false); /* nor collectives */
    expect_collectives_only(PROGRAM("    pld.tensor.barrier(s)\n", ""), true);
    expect_collectives_only(PROGRAM("", "    pld.tensor.broadcast(d, f, root=0)\n"), true);
    expect_collectives_only(PROGRAM("    pld.tensor.barrier(s)\n"
                                    "    pld.system.wait(c4, [0, 0], 0, cmp=pld.WaitCmp.Ge)\n",
                                    ""),
                            true);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char source[8192];
        (void)snprintf(source, sizeof source, PROGRAM("    pld.tensor.barrier(s)\n%s", ""),
                       ways[i]);
        expect_collectives_only(source, false);
    }
}

/* ---- in a wrapper ---- */

static void one_in_a_wrapper_is_a_task(void **state)
{
    (void)state;
    lowered l = passed(PROGRAM("", "    d = pld.tensor.allreduce(d, s, op=R.Min)\n"
                                   "    pld.tensor.broadcast(d, f, root=n + 1)\n"));
    const ir_function *task = function_named(&l, "allreduce");
    assert_int_equal(task->plane, PLD_PLANE_CORE);
    assert_int_equal(task->params.count, 3); /* and NR, which the shapes of both have */
    assert_int_equal(var_named(task, "d")->direction, PLD_INOUT);
    assert_int_equal(var_named(task, "s")->direction, PLD_INOUT);
    assert_int_equal(task->body.count, 1);
    assert_int_equal(task->body.items[0]->op_def->id, OP_ALLREDUCE);
    assert_int_equal(task->body.items[0]->operands[2].number, PLD_MIN);
    const ir_function *other = function_named(&l, "broadcast");
    assert_int_equal(other->params.count, 4);
    assert_int_equal(other->body.items[0]->operands[2].expr->kind, IR_VAR);
    assert_int_equal(other->body.items[0]->operands[2].expr->var->kind, IR_VAR_PARAM);
    const ir_function *wrapper = function_named(&l, "c");
    assert_ptr_equal(wrapper->body.items[0]->callee, task);
    lowered_free(&l);
}

/* The rules are the same there. */
static void a_wrapper_is_checked_likewise(void **state)
{
    (void)state;
    expect_error(
        PROGRAM("", "    pld.tensor.allreduce(d, s, core_num=2)\n"), "h", KERNEL_BODY_LINE + 3,
        (expected_error){"PYPTO-S108", 1, 40, "supported only in a HOST orchestrator", NULL});
    expect_error(PROGRAM("", "    pld.tensor.barrier(d)\n"), "h", KERNEL_BODY_LINE + 3,
                 (expected_error){"PYPTO-T204", 1, 23, "signal must have INT32", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allreduce_checks_its_operands),
        cmocka_unit_test(barrier_and_broadcast_check_their_operands),
        cmocka_unit_test(rows_per_rank_are_checked),
        cmocka_unit_test(all_to_all_v_checks_its_counts),
        cmocka_unit_test(general_operands_are_accepted),
        cmocka_unit_test(the_value_is_the_target),
        cmocka_unit_test(kernels_use_what_their_collectives_use),
        cmocka_unit_test(a_kernel_that_is_a_barrier_alone_is_a_fence),
        cmocka_unit_test(buffers_of_signals_are_marked),
        cmocka_unit_test(other_ways_to_peers_are_seen),
        cmocka_unit_test(one_in_a_wrapper_is_a_task),
        cmocka_unit_test(a_wrapper_is_checked_likewise),
    };
    return RUN_TESTS(tests);
}
