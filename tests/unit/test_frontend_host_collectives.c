/* Collectives in host functions, up to the passes: the functions that are made of one, signals that are made, the
 * devices that it is dispatched to, and what is refused. */
#include "frontend_check.h"
#include "ops/ops.h"
#include "passes/passes.h"

/* a, b: data; s: a signal of all ranks; t: one of two. */
#define BODY_LINE 18
#define PROGRAM                                                            \
    HEAD "@pl.jit.incore\n"                                                \
         "def k(w: pl.InOut[pld.DistributedTensor[[4, N], DT]]):\n"        \
         "    pl.store(pl.load(w, [0, 0], [4, N]), [0, 0], w)\n"           \
         "@pl.jit.host\n"                                                  \
         "def h(x: pl.Tensor[[NR, 4, N], DT], p: pl.Scalar[pl.INDEX]):\n"  \
         "    ab = pld.alloc_window_buffer([4, N], dtype=DT)\n"            \
         "    sb = pld.alloc_window_buffer(64)\n"                          \
         "    a = pld.window(ab, [4, N], dtype=DT)\n"                      \
         "    s = pld.window(sb, [pld.world_size(), 1], dtype=pl.INT32)\n" \
         "    t = pld.window(sb, [2, 2], dtype=pl.INT32)\n"                \
         "    bb = pld.alloc_window_buffer([4, N], dtype=DT)\n"            \
         "%s"

#define EVERYWHERE "    for r in pl.range(pld.world_size()):\n        k(a, device=r)\n"
#define PAIR "    k(a, device=0)\n    k(a, device=3)\n"
#define USE_B "    b = pld.window(bb, [4, N], dtype=DT)\n    k(b, device=0)\n"
#define USE_B_WITH_A                             \
    "    b = pld.window(bb, [4, N], dtype=DT)\n" \
    "    pld.tensor.all_to_all(a, b, s)\n"

static lowered passed(const char *body)
{
    char source[4096];
    (void)snprintf(source, sizeof source, PROGRAM, body);
    lowered l = lower(source, "h");
    expect_ok(&l);
    l.status = verify_program(l.result.program, NULL);
    expect_ok(&l);
    l.status = passes_run(l.result.program, platform_find("cpu"), NULL);
    return l;
}

/* The last statement of the host function. */
static const ir_stmt *last(const lowered *l)
{
    const ir_block *body = &function_named(l, "h")->body;
    return body->items[body->count - 1];
}

static const ir_buffer *buffer_named(const lowered *l, const char *name)
{
    const ir_program *p = l->result.program;
    for (int64_t i = 0; i < p->buffers.count; i++) {
        if (strcmp(p->buffers.items[i].name, name) == 0)
            return &p->buffers.items[i];
    }
    return NULL;
}

static void a_dispatch_per_device(void **state)
{
    (void)state;
    lowered l = passed(EVERYWHERE USE_B_WITH_A "    pld.tensor.broadcast(b, s, root=p)\n");
    expect_ok(&l);
    const ir_stmt *loop = last(&l);
    assert_int_equal(loop->kind, IR_FOR);
    assert_int_equal(loop->stop->op_def->id, OP_WORLD_SIZE);
    assert_int_equal(loop->body.count, 1);
    const ir_stmt *call = loop->body.items[0];
    assert_int_equal(call->kind, IR_CALL);
    assert_null(call->spread);
    assert_ptr_equal(call->device->var, loop->target);
    /* A wrapper, which calls a kernel, which is the collective. */
    const ir_function *wrapper = call->callee;
    assert_int_equal(wrapper->plane, PLD_PLANE_CHIP);
    assert_int_equal(wrapper->body.count, 1);
    const ir_function *kernel = wrapper->body.items[0]->callee;
    assert_int_equal(kernel->plane, PLD_PLANE_CORE);
    assert_true(kernel->is_collective);
    const ir_stmt *s = kernel->body.items[0];
    assert_int_equal(s->op_def->id, OP_BROADCAST);
    assert_string_equal(s->operands[0].var->name, "b");
    assert_string_equal(s->operands[1].var->name, "s");
    assert_int_equal(s->operands[2].expr->kind, IR_VAR);
    assert_int_equal(s->span.line, BODY_LINE + 4);
    /* b and s are in the domain of a, and s is marked. */
    assert_true(buffer_named(&l, "bb")->devices.all);
    assert_true(buffer_named(&l, "sb")->devices.all);
    assert_int_equal(buffer_named(&l, "sb")->collectives, PLD_ONE_SIGNAL);
    lowered_free(&l);
}

static void devices_that_are_known(void **state)
{
    (void)state;
    lowered l = passed(PAIR "    k(pld.window(bb, [4, N], dtype=DT), device=0)\n"
                            "    pld.tensor.broadcast(a, t, root=1)\n");
    expect_ok(&l);
    const ir_block *body = &function_named(&l, "h")->body;
    int64_t device = -1;
    for (int64_t i = 0; i < 2; i++) {
        const ir_stmt *call = body->items[body->count - 2 + i];
        assert_string_equal(call->callee->name, "broadcast");
        assert_true(ir_is_const_int(call->device, &device));
        assert_int_equal(device, i == 0 ? 0 : 3);
    }
    assert_int_equal(buffer_named(&l, "sb")->devices.mask, 9);
    lowered_free(&l);
}

static void signals_are_made(void **state)
{
    (void)state;
    lowered l = passed(EVERYWHERE USE_B_WITH_A "    __allreduce_signal_buf_0 = 3\n"
                                               "    pld.tensor.allreduce(a)\n"
                                               "    a = pld.tensor.allreduce(a, core_num=3)\n");
    expect_ok(&l);
    assert_null(buffer_named(&l, "__allreduce_signal_buf_0"));
    for (int i = 1; i <= 2; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "__allreduce_signal_buf_%d", i);
        assert_true(buffer_named(&l, name)->devices.all);
        assert_int_equal(buffer_named(&l, name)->collectives, PLD_ONE_SIGNAL);
        (void)snprintf(name, sizeof name, "__allreduce_signal_%d", i);
        int64_t lanes = 0;
        const ir_var *view = var_named(function_named(&l, "h"), name);
        assert_true(ir_is_const_int(view->type.shape[1], &lanes));
        assert_int_equal(lanes, i == 1 ? 1 : 3);
    }
    lowered_free(&l);
}

typedef struct refusal {
    const char *body;
    const char *code;
    int32_t line; /* of the body */
    const char *words;
} refusal;

static void mistakes_are_found(void **state)
{
    (void)state;
    static const refusal rows[] = {
        {EVERYWHERE USE_B "    pld.tensor.all_to_all(a, b, s)\n", "PYPTO-T223", 5,
         "must resolve to the same comm-domain scope"},
        {EVERYWHERE USE_B "    pld.tensor.all_to_all(a, pld.window(ab, [4, N], dtype=DT), s)\n",
         "PYPTO-T222", 5, "input and target must be different window allocations"},
        {EVERYWHERE USE_B "    for i in pl.range(3):\n        pld.tensor.allreduce(a)\n",
         "PYPTO-T222", 6, "without an explicit signal is not supported inside a for/while"},
        {EVERYWHERE USE_B "    k(pld.tensor.allreduce(a), device=0)\n", "PYPTO-T222", 5,
         "must be a direct assignment"},
        {EVERYWHERE USE_B "    pld.tensor.allreduce(a, mode='ring')\n", "PYPTO-T222", 5,
         "requires an explicit signal"},
        {EVERYWHERE USE_B "    pld.tensor.barrier(s)\n", "PYPTO-T213", 5,
         "has no inferred comm-domain coverage"},
        {PAIR USE_B "    pld.tensor.broadcast(a, t, root=2)\n", "PYPTO-T222", 5,
         "root (2) must be a valid rank in [0, 2)"},
        {PAIR USE_B "    k(a, device=1)\n    pld.tensor.broadcast(a, t, root=2)\n", "PYPTO-T222", 6,
         "must be at least 3: the participating device count is 3"},
        {PAIR USE_B "    pld.tensor.allreduce(a, t, mode='ring')\n", "PYPTO-T222", 5,
         "must be at least 2*(NR-1) + 1"},
        {PAIR USE_B "    pld.tensor.allreduce(a, t, core_num=3)\n", "PYPTO-T222", 5,
         "must be at least the required lane count"},
    };
    char source[4096];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)snprintf(source, sizeof source, PROGRAM, rows[i].body);
        lowered l = lower(source, "h");
        if (status_ok(l.status))
            l.status = passes_run(l.result.program, platform_find("cpu"), NULL);
        const pypto_diagnostic *found = l.status.diagnostics;
        while (found != NULL && strcmp(found->code, rows[i].code) != 0)
            found = found->next;
        if (found == NULL || found->span.line != BODY_LINE + rows[i].line - 1 ||
            strstr(found->message, rows[i].words) == NULL) {
            print_errors(&l);
            fail_msg("%s", rows[i].body);
        }
        lowered_free(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dispatch_per_device),
        cmocka_unit_test(devices_that_are_known),
        cmocka_unit_test(signals_are_made),
        cmocka_unit_test(mistakes_are_found),
    };
    return RUN_TESTS(tests);
}
