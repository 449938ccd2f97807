/* The front end on whole programs: the quick start to IR, storage and results of kernels, names and
 * spellings, facts. */
#include "frontend_check.h"

/* ---- the quick start ---- */

static const char quick_start[] =
    "import pypto.language as pl\n"
    "import pypto.language.distributed as pld\n"
    "\n"
    "NR = pl.dynamic(\"NR\")\n"
    "SIZE = 256\n"
    "\n"
    "@pl.jit.incore\n"
    "def reduce_step(\n"
    "    inp: pl.Tensor[[1, SIZE], pl.FP32],\n"
    "    out: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],\n"
    "    data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],\n"
    "    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],\n"
    ") -> pl.Tensor[[1, SIZE], pl.FP32]:\n"
    "    ctx = pld.get_comm_ctx(data)\n"
    "    my_rank = pld.rank(ctx)\n"
    "    nranks = pld.nranks(ctx)\n"
    "\n"
    "    # 1. Stage-in\n"
    "    local = pl.load(inp, [0, 0], [1, SIZE])\n"
    "    data = pl.store(local, [0, 0], data)\n"
    "\n"
    "    for peer in pl.range(nranks):\n"
    "        if peer != my_rank:\n"
    "            pld.system.notify(\n"
    "                signal, peer=peer, offsets=[my_rank, 0],\n"
    "                value=1, op=pld.NotifyOp.AtomicAdd,\n"
    "            )\n"
    "    for src in pl.range(nranks):\n"
    "        if src != my_rank:\n"
    "            pld.system.wait(\n"
    "                signal, offsets=[src, 0],\n"
    "                expected=1, cmp=pld.WaitCmp.Ge,\n"
    "            )\n"
    "\n"
    "    acc = pl.load(data, [0, 0], [1, SIZE])\n"
    "    for peer in pl.range(nranks):\n"
    "        if peer != my_rank:\n"
    "            peer_tile = pld.tile.remote_load(\n"
    "                data, peer=peer, offsets=[0, 0], shape=[1, SIZE]\n"
    "            )\n"
    "            acc = pl.add(acc, peer_tile)\n"
    "\n"
    "    return pl.store(acc, [0, 0], out)\n"
    "\n"
    "@pl.jit\n"
    "def chip_orch(\n"
    "    inp: pl.Tensor[[1, SIZE], pl.FP32],\n"
    "    out: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],\n"
    "    data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],\n"
    "    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],\n"
    ") -> pl.Tensor[[1, SIZE], pl.FP32]:\n"
    "    return reduce_step(inp, out, data, signal)\n"
    "\n"
    "@pl.jit.host\n"
    "def orchestrator(\n"
    "    inputs: pl.Tensor[[NR, 1, SIZE], pl.FP32],\n"
    "    outputs: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]],\n"
    ") -> pl.Tensor[[NR, 1, SIZE], pl.FP32]:\n"
    "    data_buf = pld.alloc_window_buffer(SIZE * pl.FP32.get_byte())\n"
    "    signal_buf = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())\n"
    "\n"
    "    for r in pl.range(pld.world_size()):\n"
    "        data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)\n"
    "        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)\n"
    "        chip_orch(inputs[r], outputs[r], data, signal, device=r)\n"
    "    return outputs\n";

static const char quick_start_ir[] =
    "program orchestrator\n"
    "buffer 0 data_buf ; t.py:59\n"
    "buffer 1 signal_buf ; t.py:60\n"
    "\n"
    "core reduce_step ; t.py:8\n"
    "  param inp: in Tensor[[1, 256], fp32]\n"
    "  param out: out Tensor[[1, 256], fp32]\n"
    "  param data: inout DistributedTensor[[1, 256], fp32]\n"
    "  param signal: inout DistributedTensor[[NR, 1], int32]\n"
    "  var ctx: CommCtx of data\n"
    "  var my_rank: Scalar[int32]\n"
    "  var nranks: Scalar[int32]\n"
    "  var local: Tile[[1, 256], fp32]\n"
    "  loop peer: Scalar[index]\n"
    "  loop src: Scalar[index]\n"
    "  var acc: Tile[[1, 256], fp32]\n"
    "  loop peer.1: Scalar[index]\n"
    "  var peer_tile: Tile[[1, 256], fp32]\n"
    "  dim NR = signal.shape[0]\n"
    "  result out\n"
    "  body\n"
    "    ctx = pld.get_comm_ctx(data) ; t.py:14\n"
    "    my_rank = pld.rank(ctx) ; t.py:15\n"
    "    nranks = pld.nranks(ctx) ; t.py:16\n"
    "    local = pl.load(inp, [0, 0], [1, 256]) ; t.py:19\n"
    "    pl.store(local, [0, 0], data) ; t.py:20\n"
    "    for peer in range(0, index(nranks), 1) ; t.py:22\n"
    "      if (peer != index(my_rank)) ; t.py:23\n"
    "        pld.system.notify(signal, peer, [my_rank, 0], 1, op=NotifyOp.AtomicAdd) ; t.py:24\n"
    "    for src in range(0, index(nranks), 1) ; t.py:28\n"
    "      if (src != index(my_rank)) ; t.py:29\n"
    "        pld.system.wait(signal, [src, 0], 1, cmp=WaitCmp.Ge) ; t.py:30\n"
    "    acc = pl.load(data, [0, 0], [1, 256]) ; t.py:35\n"
    "    for peer.1 in range(0, index(nranks), 1) ; t.py:36\n"
    "      if (peer.1 != index(my_rank)) ; t.py:37\n"
    "        peer_tile = pld.tile.remote_load(data, peer.1, [0, 0], [1, 256]) ; t.py:38\n"
    "        acc = pl.add(acc, peer_tile) ; t.py:41\n"
    "    pl.store(acc, [0, 0], out) ; t.py:43\n"
    "\n"
    "chip chip_orch ; t.py:46\n"
    "  param inp: in Tensor[[1, 256], fp32]\n"
    "  param out: out Tensor[[1, 256], fp32]\n"
    "  param data: inout DistributedTensor[[1, 256], fp32]\n"
    "  param signal: inout DistributedTensor[[NR, 1], int32]\n"
    "  dim NR = signal.shape[0]\n"
    "  result out\n"
    "  body\n"
    "    call reduce_step(inp, out, data, signal) ; t.py:52\n"
    "\n"
    "host orchestrator ; t.py:55\n"
    "  param inputs: in Tensor[[NR, 1, 256], fp32]\n"
    "  param outputs: out Tensor[[NR, 1, 256], fp32]\n"
    "  var data_buf: Buffer buffer 0\n"
    "  var signal_buf: Buffer buffer 1\n"
    "  loop r: Scalar[index]\n"
    "  var data: DistributedTensor[[1, 256], fp32] of data_buf buffer 0\n"
    "  var signal: DistributedTensor[[pld.world_size(), 1], int32] of signal_buf buffer 1\n"
    "  var t0: Tensor[[1, 256], fp32] of inputs\n"
    "  var t1: Tensor[[1, 256], fp32] of outputs\n"
    "  dim NR = inputs.shape[0]\n"
    "  world inputs.shape[0]\n"
    "  world outputs.shape[0]\n"
    "  result outputs\n"
    "  body\n"
    "    data_buf = pld.alloc_window_buffer(1024) ; t.py:59\n"
    "    signal_buf = pld.alloc_window_buffer((pld.world_size() * int64(4))) ; t.py:60\n"
    "    for r in range(0, pld.world_size(), 1) ; t.py:62\n"
    "      data = pld.window(data_buf, [1, 256], dtype=fp32) ; t.py:63\n"
    "      signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=int32) ; t.py:64\n"
    "      t0 = tensor.subscript(inputs, [r]) ; t.py:65\n"
    "      t1 = tensor.subscript(outputs, [r]) ; t.py:65\n"
    "      call chip_orch(t0, t1, data, signal) device r ; t.py:65\n";

static void test_quick_start(void **state)
{
    (void)state;
    lowered l = lower(quick_start, "orchestrator");
    expect_ok(&l);
    text out = {.a = l.a};
    ir_print_program(&out, l.result.program);
    assert_string_equal(out.bytes, quick_start_ir);

    const ir_function *host = function_named(&l, "orchestrator");
    assert_int_equal(host->index, 2);
    assert_int_equal(host->world_dims.count, 2);
    assert_int_equal(host->world_dims.items[1], 0);
    const ir_function *kernel = function_named(&l, "reduce_step");
    assert_int_equal(kernel->params.items[1]->direction, PLD_OUT);
    assert_int_equal(kernel->params.items[2]->direction, PLD_INOUT);
    assert_int_equal(kernel->dims.items[0].param, 3);
    assert_ptr_equal(var_named(kernel, "ctx")->root, kernel->params.items[2]);
    lowered_free(&l);
}

/* A parameter is read only where it can be: everything else is recorded as a fact, in the order asked. */
static void test_facts(void **state)
{
    (void)state;
    lowered l = lower(quick_start, "orchestrator");
    expect_ok(&l);
    text out = {.a = l.a};
    for (int64_t i = 0; i < l.result.facts.count; i++) {
        const frontend_fact *fact = &l.result.facts.items[i];
        text_printf(&out, "%d %s = %s\n", fact->function, fact->name, fact->value);
    }
    assert_string_equal(out.bytes, "2 pl = path pl\n"
                                   "2 NR = dynamic NR\n"
                                   "2 SIZE = int 256\n"
                                   "2 pld = path pld\n"
                                   "2 chip_orch = function chip_orch@46\n"
                                   "1 pl = path pl\n"
                                   "1 SIZE = int 256\n"
                                   "1 pld = path pld\n"
                                   "1 NR = dynamic NR\n"
                                   "1 reduce_step = function reduce_step@8\n"
                                   "0 pl = path pl\n"
                                   "0 SIZE = int 256\n"
                                   "0 pld = path pld\n"
                                   "0 NR = dynamic NR\n");
    lowered_free(&l);
}

static void test_fact_texts(void **state)
{
    (void)state;
    arena *a = arena_create();
    arena_set_recovery(a, &memory_exhausted);
    name_value items[] = {
        {.kind = NAME_INT, .integer = -1}, {.kind = NAME_FLOAT, .real = 1.5}, {.kind = NAME_NONE}};
    const struct {
        name_value value;
        const char *expected;
    } rows[] = {
        {{.kind = NAME_UNDEFINED}, "undefined"},
        {{.kind = NAME_BOOL, .integer = 1}, "bool 1"},
        {{.kind = NAME_FLOAT, .real = -0.0}, "float 0x8000000000000000"},
        {{.kind = NAME_STRING, .text = "a\"b"}, "string \"a\\\"b\""},
        {{.kind = NAME_OTHER, .text = "dict"}, "other dict"},
        {{.kind = NAME_LIST, .items = items, .count = 3},
         "list [int -1, float 0x3ff8000000000000, none]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(name_value_text(a, &rows[i].value), rows[i].expected);
    arena_destroy(a);
}

/* ---- storage and results ---- */

static void test_store_binds_no_new_variable(void **state)
{
    (void)state;
    expect_body(KERNEL("    z = pl.store(pl.load(x, [0, 0], [4, N]), [0, 0], w)\n"
                       "    _ = pl.store(pl.load(z, [0, 0], [1, N]), [3, 0], y)\n"
                       "    return _\n"),
                "h", "k",
                "t0 = pl.load(x, [0, 0], [4, 8])\n"
                "pl.store(t0, [0, 0], w)\n"
                "t1 = pl.load(w, [0, 0], [1, 8])\n"
                "pl.store(t1, [3, 0], y)\n");
}

static void test_tiles_are_values(void **state)
{
    (void)state;
    expect_body(KERNEL("    a = pl.load(x, [0, 0], [4, N])\n"
                       "    b2 = a\n"
                       "    a = pl.mul(a, 2)\n"
                       "    a = pl.sub(pl.add(a, b2), a)\n"
                       "    y = pl.store(a, [0, 0], y)\n"
                       "    return y\n"),
                "h", "k",
                "a = pl.load(x, [0, 0], [4, 8])\n"
                "b2 = a\n"
                "a = pl.mul(a, 2.0)\n"
                "t0 = pl.add(a, b2)\n"
                "a = pl.sub(t0, a)\n"
                "pl.store(a, [0, 0], y)\n");
}

/* Rebinding a parameter's name, or a name to another type, makes a second variable. */
static void test_rebinding(void **state)
{
    (void)state;
    expect_body(KERNEL("    x = pl.load(x, [0, 0], [4, N])\n"
                       "    t = pl.load(w, [0, 0], [1, N])\n"
                       "    t = pl.load(w, [0, 0], [2, N])\n"
                       "    t = pl.load(w, [2, 0], [1, N])\n"
                       "    pl.store(t, [0, 0], y)\n"),
                "h", "k",
                "x.1 = pl.load(x, [0, 0], [4, 8])\n"
                "t = pl.load(w, [0, 0], [1, 8])\n"
                "t.1 = pl.load(w, [0, 0], [2, 8])\n"
                "t = pl.load(w, [2, 0], [1, 8])\n"
                "pl.store(t, [0, 0], y)\n");
}

static void test_temporaries_avoid_the_users_names(void **state)
{
    (void)state;
    expect_body(KERNEL("    t0 = pl.load(x, [0, 0], [4, N])\n"
                       "    pl.store(pl.add(t0, pl.load(w, [0, 0], [4, N])), [0, 0], y)\n"),
                "h", "k",
                "t0 = pl.load(x, [0, 0], [4, 8])\n"
                "t1 = pl.load(w, [0, 0], [4, 8])\n"
                "t2 = pl.add(t0, t1)\n"
                "pl.store(t2, [0, 0], y)\n");
}

static void test_early_return(void **state)
{
    (void)state;
    const char *source = KERNEL("    if n == 0:\n"
                                "        return pl.store(pl.load(x, [0, 0], [4, N]), [0, 0], y)\n"
                                "    return y\n"
                                "    nonsense()\n");
    lowered l = lower(source, "h");
    expect_ok(&l);
    assert_string_equal(body_text(&l, "k"), "if (n == int32(0))\n"
                                            "  t0 = pl.load(x, [0, 0], [4, 8])\n"
                                            "  pl.store(t0, [0, 0], y)\n"
                                            "  return\n");
    assert_int_equal(function_named(&l, "k")->results.count, 1);
    assert_string_equal(function_named(&l, "c")->results.items[0]->name, "y");
    lowered_free(&l);
}

static void test_tuple_results(void **state)
{
    (void)state;
    const char *source =
        HEAD "@pl.jit.incore\n"
             "def k(a: pl.Out[pl.Tensor[[8], pl.FP32]], b: pl.Out[pl.Tensor[[8], pl.INT32]]) -> "
             "tuple[pl.Tensor[[8], pl.INT32], pl.Tensor[[8], pl.FP32]]:\n"
             "    return b, a\n"
             "@pl.jit\n"
             "def c(a: pl.Out[pl.Tensor[[8], pl.FP32]], b: pl.Out[pl.Tensor[[8], pl.INT32]]):\n"
             "    p, q = k(a, b)\n"
             "    r = k(a, p)\n"
             "    k(b=p, a=r[1])\n"
             "    return q\n";
    lowered l = lower(source, "c");
    expect_ok(&l);
    assert_string_equal(body_text(&l, "c"), "call k(a, b)\ncall k(a, b)\ncall k(a, b)\n");
    assert_int_equal(function_named(&l, "k")->results.count, 2);
    assert_string_equal(function_named(&l, "k")->results.items[0]->name, "b");
    assert_string_equal(function_named(&l, "c")->results.items[0]->name, "a");
    lowered_free(&l);
}

/* ---- names ---- */

static void test_any_alias_of_the_modules(void **state)
{
    (void)state;
    expect_body("import pypto.language as L\n"
                "import pypto.language.distributed as D\n"
                "from pypto.language import load as fetch\n"
                "from pypto.language.distributed import WaitCmp\n"
                "from pypto.language import FP32\n"
                "GE = WaitCmp.Ge\n"
                "SHAPE = [4, 8]\n"
                "@L.jit.incore\n"
                "def k(x: L.InOut[L.Tensor[SHAPE, FP32]], s: D.DistributedTensor[[1], L.INT32]):\n"
                "    t = fetch(x, [0, 0], SHAPE)\n"
                "    L.tile.store(offsets=[0, 0], tile=t, output_tensor=x)\n"
                "    D.system.wait(s, [0], FP32.get_byte(), cmp=GE)\n"
                "@L.jit\n"
                "def c(x: L.InOut[L.Tensor[SHAPE, FP32]], s: D.DistributedTensor[[1], L.INT32]):\n"
                "    k(x, s)\n"
                "@L.jit.host\n"
                "def h(x: L.InOut[L.Tensor[SHAPE, FP32]]):\n"
                "    b = D.alloc_window_buffer([1], dtype=L.INT32)\n"
                "    w = D.window(b, [1], dtype=L.INT32)\n"
                "    c(x, w, device=0)\n",
                "h", "k",
                "t = pl.load(x, [0, 0], [4, 8])\n"
                "pl.store(t, [0, 0], x)\n"
                "pld.system.wait(s, [0], 4, cmp=WaitCmp.Ge)\n");
}

/* A constant assigned once may stand where constants are needed. */
static void test_local_constants(void **state)
{
    (void)state;
    expect_body(KERNEL("    rows = 2\n"
                       "    half = rows * N // 2\n"
                       "    dt = pl.INT16\n"
                       "    shape = [rows, half]\n"
                       "    t = pl.load(x, [0, 0], shape)\n"
                       "    pl.store(t, [rows, 0], y)\n"
                       "    pld.system.notify(s, 0, [0, 0], dt.get_byte(), op=OP)\n"),
                "h", "k",
                "t = pl.load(x, [0, 0], [2, 8])\n"
                "pl.store(t, [2, 0], y)\n"
                "pld.system.notify(s, 0, [0, 0], 2, op=NotifyOp.Set)\n");
}

static void test_dynamic_dimension_as_a_number(void **state)
{
    (void)state;
    expect_body(
        KERNEL("    for i in pl.range(NR):\n"
               "        pld.system.wait(s, [i, 0], pl.dynamic('NR') - 1, cmp=pld.WaitCmp.Eq)\n"),
        "h", "k",
        "for i in range(0, NR, 1)\n"
        "  pld.system.wait(s, [i, 0], (NR - 1), cmp=WaitCmp.Eq)\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quick_start),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_fact_texts),
        cmocka_unit_test(test_store_binds_no_new_variable),
        cmocka_unit_test(test_tiles_are_values),
        cmocka_unit_test(test_rebinding),
        cmocka_unit_test(test_temporaries_avoid_the_users_names),
        cmocka_unit_test(test_early_return),
        cmocka_unit_test(test_tuple_results),
        cmocka_unit_test(test_any_alias_of_the_modules),
        cmocka_unit_test(test_local_constants),
        cmocka_unit_test(test_dynamic_dimension_as_a_number),
    };
    return RUN_TESTS(tests);
}
