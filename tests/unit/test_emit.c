/* The emitter: its text for the quick start, word for word; that compilers have nothing to say
 * about it; and that it computes what the script says, by running emitted programs on a small
 * stand-in for the runtime (stub_runtime.h).
 *
 * `PYPTO_UPDATE_GOLDEN=1 test_emit` rewrites tests/golden/seed.*. */
#include "codegen/emit.h"
#include "frontend_check.h"
#include "passes/passes.h"
#include "seed_program.h"

#include "base/os.h"

#include <dlfcn.h>

/* ---- files and compilers ---- */

static char folder[] = "/tmp/pypto-test-emit-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int drop_folder(void **state)
{
    (void)state;
    os_remove_tree(folder);
    return 0;
}

static const char *source_path(arena *a, const char *below)
{
    const char *include = getenv("PYPTO_INCLUDE_DIR");
    assert_non_null(include); /* set by tests/unit/meson.build */
    return arena_printf(a, "%s/../%s", include, below);
}

static void write_file(const char *path, const char *content)
{
    pypto_status status = os_write_file(path, content, (int64_t)strlen(content));
    assert_true(status_ok(status));
}

/* Runs a compiler (without `output`: only its checks); its complaints become the failure. False
 * when it is not installed. */
static bool compiled(arena *a, const char *compiler, const char *const *flags, const char *input,
                     const char *output)
{
    if (os_find_program(a, compiler) == NULL)
        return false;
    const char *argv[40] = {compiler,
                            "-std=c17",
                            "-fPIC",
                            "-fwrapv",
                            "-ffp-contract=off",
                            "-I",
                            source_path(a, "include"),
                            input,
                            "-fsyntax-only"};
    int count = 9;
    if (output != NULL) {
        argv[8] = "-shared";
        argv[count++] = "-o";
        argv[count++] = output;
    }
    while (*flags != NULL)
        argv[count++] = *flags++;
    char *said = NULL;
    int32_t code = 0;
    pypto_status status = os_run(a, argv, NULL, &said, &code);
    assert_true(status_ok(status));
    if (code != 0)
        fail_msg("%s: %s", compiler, said);
    return true;
}

static const char *emitted(lowered *l, const char *platform_name)
{
    expect_ok(l);
    l->status = passes_run(l->result.program, platform_find(platform_name), NULL);
    expect_ok(l);
    text out = {.a = l->a};
    emit_program(&out, l->result.program, NULL);
    return out.bytes;
}

/* One compiler's warnings are enough for most programs: `thoroughly` asks them all. */
static void compiles_without_warnings(lowered *l, const char *c_text, bool thoroughly)
{
    static const char *const flags[] = {
        "-O1",     "-Wall",       "-Wextra", "-Wshadow", "-Wconversion", "-Wstrict-prototypes",
        "-Wundef", "-Wcast-qual", "-Werror", NULL};
    const char *path = arena_printf(l->a, "%s/program.c", folder);
    const char *object = arena_printf(l->a, "%s/warnings.so", folder);
    write_file(path, c_text);
    bool done = compiled(l->a, "gcc", flags, path, object);
    if (thoroughly || !done)
        done |= compiled(l->a, "clang", flags, path, NULL);
    assert_true(done);
}

/* ---- the quick start ---- */

static void compare_golden(arena *a, const char *name, const char *actual)
{
    const char *path = source_path(a, arena_printf(a, "tests/golden/%s", name));
    if (getenv("PYPTO_UPDATE_GOLDEN") != NULL)
        write_file(path, actual);
    const char *expected = os_read_file(a, path, NULL);
    assert_non_null(expected);
    assert_string_equal(actual, expected);
}

static lowered seed_lowered(int64_t size, pypto_dtype dtype)
{
    lowered l = {.a = arena_create()};
    assert_non_null(l.a);
    arena_set_recovery(l.a, &memory_exhausted);
    l.result.program = seed_program(l.a, size, dtype);
    return l;
}

static void the_seed_reads_like_its_script(void **state)
{
    (void)state;
    lowered l = seed_lowered(256, PYPTO_FP32);
    const char *c_text = emitted(&l, "a2a3");
    text ir = {.a = l.a};
    ir_print_program(&ir, l.result.program);
    compare_golden(l.a, "seed.c", c_text);
    compare_golden(l.a, "seed.ir", ir.bytes);
    compiles_without_warnings(&l, c_text, true);
    lowered_free(&l);
}

static void the_same_ir_gives_the_same_bytes(void **state)
{
    (void)state;
    lowered l = seed_lowered(20001, PYPTO_INT32);
    lowered m = seed_lowered(20001, PYPTO_INT32);
    assert_string_equal(emitted(&l, "cpu"), emitted(&m, "cpu"));
    lowered_free(&l);
    lowered_free(&m);
}

static void dtypes_compile(void **state)
{
    (void)state;
    static const pypto_dtype dtypes[] = {PYPTO_INT8, PYPTO_UINT64, PYPTO_FP16, PYPTO_BF16};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        lowered l = seed_lowered(17, dtypes[i]);
        compiles_without_warnings(&l, emitted(&l, "a2a3"), false);
        lowered_free(&l);
    }
}

/* ---- running ---- */

typedef struct loaded {
    void *handle;
    const pld_program *program;
    void (*run)(int32_t index, const pld_arg *args);
    const pld_arg *records;
    const int32_t *record_count;
    const int32_t *lines;
    const int32_t *line_count;
    const int64_t *devices;
    const int64_t *device_count;
} loaded;

static void *symbol(const loaded *o, const char *name)
{
    void *found = dlsym(o->handle, name);
    assert_non_null(found);
    return found;
}

/* Compiles the program together with the stand-in and loads both. */
static loaded load(lowered *l, const char *c_text, const char *name)
{
    static const char *const flags[] = {"-O0", "-w", NULL};
    const char *path = arena_printf(l->a, "%s/%s.c", folder, name);
    const char *object = arena_printf(l->a, "%s/%s.so", folder, name);
    write_file(path, arena_printf(l->a, "%s\n#include \"%s\"\n", c_text,
                                  source_path(l->a, "tests/unit/stub_runtime.h")));
    assert_true(compiled(l->a, "gcc", flags, path, object) ||
                compiled(l->a, "clang", flags, path, object));
    loaded o = {.handle = dlopen(object, RTLD_NOW | RTLD_LOCAL)};
    if (o.handle == NULL)
        fail_msg("%s", dlerror());
    o.program = symbol(&o, PLD_PROGRAM_SYMBOL);
    *(void **)&o.run = symbol(&o, "stub_run");
    o.records = symbol(&o, "stub_records");
    o.record_count = symbol(&o, "stub_record_count");
    o.lines = symbol(&o, "stub_lines");
    o.line_count = symbol(&o, "stub_line_count");
    o.devices = symbol(&o, "stub_devices");
    o.device_count = symbol(&o, "stub_device_count");
    return o;
}

static pld_tensor tensor_of(void *data, pypto_dtype dtype, int32_t ndim, const int64_t *shape)
{
    pld_tensor t = {.data = data, .dtype = (int32_t)dtype, .ndim = ndim};
    int64_t stride = 1;
    for (int32_t i = ndim - 1; i >= 0; i--) {
        t.shape[i] = shape[i];
        t.stride[i] = stride;
        stride *= shape[i];
    }
    return t;
}

static void the_table_describes_the_program(void **state)
{
    (void)state;
    lowered l = seed_lowered(256, PYPTO_FP32);
    loaded o = load(&l, emitted(&l, "a2a3"), "table");
    const pld_program *p = o.program;
    assert_int_equal(p->abi, PLD_ABI);
    assert_int_equal(p->size, sizeof(pld_program));
    assert_string_equal(p->name, "orchestrator");
    assert_int_equal(p->nfunctions, 3);
    assert_int_equal(p->host, 2);
    assert_int_equal(p->nbuffers, 2);
    assert_string_equal(p->buffers[1].name, "signal_buf");
    assert_int_equal(p->buffers[1].line, 64);

    const pld_function *kernel = p->functions[0];
    assert_string_equal(kernel->name, "reduce_step");
    assert_string_equal(kernel->file, SEED_FILE);
    assert_int_equal(kernel->line, 8);
    assert_int_equal(kernel->plane, PLD_PLANE_CORE);
    assert_int_equal(kernel->scratch_bytes, 2048);
    assert_int_equal(kernel->nparams, 4);
    assert_int_equal(kernel->params[2].kind, PLD_PARAM_WINDOW);
    assert_int_equal(kernel->params[2].direction, PLD_INOUT);
    assert_int_equal(kernel->params[3].shape[0], -1);
    assert_int_equal(kernel->params[3].shape[1], 1);
    assert_string_equal(kernel->dims[0], "NR");

    const pld_function *host = p->functions[2];
    assert_null(host->run);
    assert_non_null(host->run_host);
    assert_int_equal(host->params[0].world_dim, 0);
    assert_int_equal(host->params[1].direction, PLD_OUT);
    assert_int_equal(host->params[0].shape[0], -1);
    assert_int_equal(host->params[0].shape[2], 256);
    dlclose(o.handle);
    lowered_free(&l);
}

static void calls_note_the_lines_of_the_script(void **state)
{
    (void)state;
    lowered l = seed_lowered(8, PYPTO_FP32);
    loaded o = load(&l, emitted(&l, "a2a3"), "lines");
    float in[3][8] = {{1, 2, 3}, {10, 20, 30}};
    float out[3][8] = {{0}};
    const int64_t shape[] = {3, 1, 8};
    pld_tensor inputs = tensor_of(in, PYPTO_FP32, 3, shape);
    pld_tensor outputs = tensor_of(out, PYPTO_FP32, 3, shape);
    pld_arg args[] = {PLD_TENSOR(&inputs), PLD_TENSOR(&outputs)};
    o.run(2, args);
    /* alloc, alloc (world_size inside), range, then the first device: two views, two subscripts,
     * dispatch, submit, and the kernel. */
    static const int32_t expected[] = {63, 64, 64, 66, 67, 68, 68, 69,
                                       69, 69, 56, 14, 19, 20, 37, 46};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_int_equal(o.lines[i], expected[i]);
    assert_int_equal(*o.device_count, 3);
    assert_memory_equal(in, out, sizeof in); /* one rank: its own data */
    dlclose(o.handle);
    lowered_free(&l);
}

/* A kernel's body run on x (4 x 8 floats, 0, 1, 2, ...), y (zeros), n = `n`; y is compared. */
static void kernel_gives(const char *source, int64_t n, const float *expected)
{
    static int number;
    lowered l = lower(source, "h");
    const char *c_text = emitted(&l, "a2a3");
    compiles_without_warnings(&l, c_text, false);
    loaded o = load(&l, c_text, arena_printf(l.a, "kernel%d", number++));
    float x[32];
    float y[32] = {0};
    float w[32] = {0};
    int32_t s[4] = {0};
    for (int i = 0; i < 32; i++)
        x[i] = (float)i;
    const int64_t matrix[] = {4, 8};
    const int64_t cells[] = {4, 1};
    pld_tensor tx = tensor_of(x, PYPTO_FP32, 2, matrix);
    pld_tensor ty = tensor_of(y, PYPTO_FP32, 2, matrix);
    pld_tensor tw = tensor_of(w, PYPTO_FP32, 2, matrix);
    pld_tensor ts = tensor_of(s, PYPTO_INT32, 2, cells);
    pld_arg args[] = {PLD_TENSOR(&tx), PLD_TENSOR(&ty), PLD_TENSOR(&tw), PLD_TENSOR(&ts),
                      PLD_INT(n),      PLD_FLOAT(1.5),  PLD_INT(1)};
    o.run(0, args);
    for (int i = 0; i < 32; i++)
        if (y[i] != expected[i])
            fail_msg("element %d is %g, not %g\n%s", i, (double)y[i], (double)expected[i], c_text);
    dlclose(o.handle);
    lowered_free(&l);
}

static void tiles_carry_through_loops_and_branches(void **state)
{
    (void)state;
    float expected[32];
    for (int i = 0; i < 32; i++)
        expected[i] = (float)i * 4 + (float)i * 2;
    kernel_gives(KERNEL("    acc = pl.load(x, [0, 0], [4, N])\n"
                        "    twice = pl.add(acc, acc)\n"
                        "    for i in pl.range(n):\n"
                        "        if i > 0:\n"
                        "            t = pl.load(x, [0, 0], [4, N])\n"
                        "            acc = pl.add(acc, t)\n"
                        "    acc = pl.add(acc, twice)\n"
                        "    pl.store(acc, [0, 0], y)\n"),
                 4, expected);
}

static void copies_of_tiles_are_values(void **state)
{
    (void)state;
    float expected[32];
    for (int i = 0; i < 32; i++)
        expected[i] = (float)i * 8 + (float)i;
    kernel_gives(KERNEL("    first = pl.load(x, [0, 0], [4, N])\n"
                        "    kept = first\n"
                        "    for i in pl.range(3):\n"
                        "        first = pl.add(first, first)\n"
                        "    pl.store(pl.add(first, kept), [0, 0], y)\n"),
                 0, expected);
}

static void scalars_are_declared_where_they_live(void **state)
{
    (void)state;
    float expected[32] = {0};
    /* k: 0, 2, 4 in a loop over three; row k // 2 is written when k is not 2. */
    for (int i = 0; i < 8; i++) {
        expected[i] = 0.0f + (float)i;
        expected[16 + i] = 16.0f + (float)i;
    }
    kernel_gives(KERNEL("    k = n - n\n"
                        "    for i in pl.range(3):\n"
                        "        if k == 2:\n"
                        "            skip = True\n"
                        "        else:\n"
                        "            skip = False\n"
                        "        row = k // 2\n"
                        "        if not skip:\n"
                        "            t = pl.load(x, [row, 0], [1, N])\n"
                        "            pl.store(t, [row, 0], y)\n"
                        "        k = k + 2\n"),
                 7, expected);
}

static void loops_run_as_python_would(void **state)
{
    (void)state;
    float expected[32] = {0};
    for (int i = 8; i < 32; i++)
        expected[i] = (float)i;
    /* The bound is evaluated once; steps may be negative or unknown. */
    kernel_gives(KERNEL("    m = n\n"
                        "    for i in pl.range(1, m):\n"
                        "        m = m - 1\n"
                        "        pl.store(pl.load(x, [i, 0], [1, N]), [i, 0], y)\n"),
                 4, expected);
    kernel_gives(KERNEL("    for i in pl.range(3, 0, -1):\n"
                        "        pl.store(pl.load(x, [i, 0], [1, N]), [i, 0], y)\n"),
                 4, expected);
    kernel_gives(KERNEL("    d = n - 5\n"
                        "    for i in pl.range(3, 0, d):\n"
                        "        pl.store(pl.load(x, [i, 0], [1, N]), [i, 0], y)\n"),
                 4, expected);
    kernel_gives(KERNEL("    last = pl.cast(n, pl.INDEX)\n"
                        "    for i in pl.range(n):\n"
                        "        last = i\n"
                        "    for i in pl.range(1, last + 1):\n"
                        "        pl.store(pl.load(x, [i, 0], [1, N]), [i, 0], y)\n"),
                 4, expected);
}

/* The turns of loops whose variable comes near the ends of int64_t; n is 4. */
static void steps_do_not_overflow(void **state)
{
    (void)state;
    static const struct {
        const char *range;
        int turns;
    } cases[] = {
        {"0, 9223372036854775807, 4611686018427387904", 2},
        {"0, -9223372036854775807, -4611686018427387904", 2},
        {"0, big, 4611686018427387904", 2},
        {"big, 9223372036854775807, 2", 2},
        {"big, 9223372036854775807, 3", 1},
        {"big, big + 1, n", 1},
        {"big, 9223372036854775807, n", 1},
        {"-big, -9223372036854775807, n - 8", 1},
        {"-big, -big - 3, -2", 2},
        {"-9223372036854775807, 9223372036854775807, big", 3},
        {"5, 5, n", 0},
        {"5, 6, n - 8", 0},
        {"n, n + n, 2", 2},
        {"n, n + n, 3", 2},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        arena *a = arena_create();
        assert_non_null(a);
        arena_set_recovery(a, &memory_exhausted);
        float expected[32] = {0};
        for (int i = 0; i < cases[c].turns * 8; i++)
            expected[i] = (float)i;
        kernel_gives(
            arena_printf(a,
                         KERNEL("    big = pl.cast(n, pl.INT64) + 9223372036854775800\n"
                                "    turns = n - n\n"
                                "    for i in pl.range(%s):\n"
                                "        turns = turns + 1\n"
                                "    for i in pl.range(turns):\n"
                                "        pl.store(pl.load(x, [i, 0], [1, N]), [i, 0], y)\n"),
                         cases[c].range),
            4, expected);
        arena_destroy(a);
    }
}

/* A kernel that computes for long can be cancelled: each turn of each loop passes a device call. */
static void loops_poll_where_no_call_checks(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int polls;
    } cases[] = {
        {"    t = pl.load(x, [0, 0], [1, N])\n"
         "    for i in pl.range(n):\n"
         "        t = pl.add(t, 1.0)\n"
         "    pl.store(t, [0, 0], y)\n",
         1},
        {"    for i in pl.range(n):\n"
         "        t = pl.load(x, [i, 0], [1, N])\n"
         "        pl.store(t, [i, 0], y)\n",
         0},
        {"    t = pl.load(x, [0, 0], [1, N])\n"
         "    for i in pl.range(n):\n" /* the inner loop may have no turns */
         "        for j in pl.range(i):\n"
         "            pl.store(t, [j, 0], y)\n",
         1},
        {"    t = pl.load(x, [0, 0], [1, N])\n"
         "    for i in pl.range(n):\n"
         "        if i == 3:\n"
         "            pl.store(t, [i, 0], y)\n",
         1},
        {"    t = pl.load(x, [0, 0], [1, N])\n"
         "    for i in pl.range(n):\n"
         "        if i == 3:\n"
         "            pl.store(t, [i, 0], y)\n"
         "        else:\n"
         "            pl.store(t, [0, 0], y)\n",
         0},
        {"    k = n\n"
         "    for i in pl.range(n):\n"
         "        k = k * 3\n"
         "    if k == 0:\n"
         "        pl.store(pl.load(x, [0, 0], [1, N]), [0, 0], y)\n",
         1},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        arena *a = arena_create();
        assert_non_null(a);
        arena_set_recovery(a, &memory_exhausted);
        lowered l = lower(arena_printf(a, KERNEL("%s"), cases[c].body), "h");
        const char *c_text = emitted(&l, "a2a3");
        compiles_without_warnings(&l, c_text, false);
        int polls = 0;
        for (const char *p = c_text; (p = strstr(p, "pld_poll(core);")) != NULL; p++)
            polls++;
        if (polls != cases[c].polls)
            fail_msg("%d polls, not %d:\n%s", polls, cases[c].polls, c_text);
        lowered_free(&l);
        arena_destroy(a);
    }
}

static void early_returns_end_the_kernel(void **state)
{
    (void)state;
    float expected[32] = {0};
    for (int i = 0; i < 8; i++)
        expected[i] = (float)i;
    kernel_gives(KERNEL("    pl.store(pl.load(x, [0, 0], [1, N]), [0, 0], y)\n"
                        "    if n > 3:\n"
                        "        return y\n"
                        "    elif n > 2:\n"
                        "        pl.store(pl.load(x, [1, 0], [1, N]), [1, 0], y)\n"
                        "    pl.store(pl.load(x, [2, 0], [1, N]), [2, 0], y)\n"
                        "    return y\n"),
                 4, expected);
}

static void unread_names_bring_no_warnings(void **state)
{
    (void)state;
    float expected[32] = {0};
    kernel_gives(KERNEL("    ctx = pld.get_comm_ctx(w)\n"
                        "    me = pld.rank(ctx)\n"
                        "    other = me + 1\n"
                        "    t = pl.load(x, [0, 0], [4, N])\n"
                        "    u = t\n"
                        "    v = pl.add(t, t)\n"),
                 0, expected);
    /* Extents that are set only, and a tile in the place of another. */
    lowered l = lower(KERNEL("    part = pl.load(x, [0, 0], [4, N], valid_shape=[n, N])\n"
                             "    extents = pl.add(part, part)\n"
                             "    sums = pl.col_sum(part)\n"
                             "    zeros = pl.tile.full([4, N], pl.FP32, 0.0)\n"
                             "    same = pl.reshape(zeros, [N, 4])\n"),
                      "h");
    compiles_without_warnings(&l, emitted(&l, "cpu"), true);
    lowered_free(&l);
}

/* ---- host functions ---- */

static void hosts_alias_and_rebind_handles(void **state)
{
    (void)state;
    lowered l = lower(HOST("    a = x[0]\n"
                           "    kept = a\n"
                           "    for r in pl.range(2):\n"
                           "        c2(a, y[r], q)\n"
                           "        a = x[2]\n"
                           "    if q > 5:\n"
                           "        b = x[1]\n"
                           "    else:\n"
                           "        b = kept\n"
                           "    c2(b, y[2], q + 1, device=q // 2)\n"
                           "    return y\n"),
                      "h");
    const char *c_text = emitted(&l, "a2a3");
    compiles_without_warnings(&l, c_text, true);
    loaded o = load(&l, c_text, "aliases");
    float x[3][32];
    float y[3][32] = {{0}};
    for (int i = 0; i < 96; i++)
        x[i / 32][i % 32] = (float)i;
    const int64_t shape[] = {3, 4, 8};
    pld_tensor tx = tensor_of(x, PYPTO_FP32, 3, shape);
    pld_tensor ty = tensor_of(y, PYPTO_FP32, 3, shape);
    pld_arg args[] = {PLD_TENSOR(&tx), PLD_TENSOR(&ty), PLD_INT(4)};
    o.run(o.program->host, args);
    assert_memory_equal(y[0], x[0], sizeof y[0]);
    assert_memory_equal(y[1], x[2], sizeof y[0]);
    assert_memory_equal(y[2], x[0], sizeof y[0]);
    /* Without device=: in turn over the devices. */
    assert_int_equal(*o.device_count, 3);
    assert_int_equal(o.devices[0], 0);
    assert_int_equal(o.devices[1], 1);
    assert_int_equal(o.devices[2], 2);
    dlclose(o.handle);
    lowered_free(&l);
}

static void windows_of_other_shapes_are_viewed(void **state)
{
    (void)state;
    lowered l = lower(HOST("    wb = pld.alloc_window_buffer([N], dtype=pl.FP32)\n"
                           "    sb = pld.alloc_window_buffer(16)\n"
                           "    w = pld.window(wb, [N], dtype=pl.FP32)\n"
                           "    s = pld.window(sb, [4, 1], dtype=pl.INT32)\n"
                           "    for r in pl.range(2):\n"
                           "        c3(x[r], w, s, device=r)\n"
                           "    return y\n"),
                      "h");
    const char *c_text = emitted(&l, "a2a3");
    assert_non_null(strstr(
        c_text, "const pld_tensor w = pld_view(core, args[1].tensor, 2, PLD_EXTENTS(1, 8));"));
    assert_null(strstr(c_text, "const pld_tensor s = pld_view"));
    assert_non_null(strstr(c_text, "pld_device_range(host, 0, 2)"));
    compiles_without_warnings(&l, c_text, true);
    lowered_free(&l);
}

/* ---- expressions: emitted C against folding ---- */

#define VALUES 10
#define EXPRESSIONS 100
#define ROUNDS 20

typedef struct expressions {
    ir_program *p;
    ir_function *f;
    ir_var *vars[VALUES];
    int64_t integers[VALUES];
    double reals[VALUES];
    uint64_t seed;
} expressions;

static const pypto_dtype value_dtypes[VALUES] = {
    PYPTO_INDEX,  PYPTO_INDEX,  PYPTO_INT32, PYPTO_INT32, PYPTO_INT8,
    PYPTO_UINT32, PYPTO_UINT64, PYPTO_FP32,  PYPTO_FP32,  PYPTO_FP16};

static uint32_t pick(expressions *x, uint32_t below)
{
    x->seed = x->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(x->seed >> 33) % below;
}

static const ir_expr *any_expr(expressions *x, pypto_dtype dtype, int depth);

static const ir_expr *any_leaf(expressions *x, pypto_dtype dtype)
{
    arena *a = x->p->a;
    int start = (int)pick(x, VALUES);
    for (int i = 0; i < VALUES; i++)
        if (value_dtypes[(start + i) % VALUES] == dtype && pick(x, 3) != 0)
            return ir_ref(a, x->vars[(start + i) % VALUES]);
    if (ir_is_float(dtype))
        return ir_convert(a, ir_float(a, (double)pick(x, 64) / 8 - 4), dtype, SPAN_NONE);
    return ir_int_of(a, (int64_t)pick(x, 300) - 100, dtype);
}

static const ir_expr *any_condition(expressions *x, int depth)
{
    static const ir_operator comparisons[] = {IR_LT, IR_LE, IR_GT, IR_GE, IR_EQ, IR_NE};
    arena *a = x->p->a;
    if (pick(x, 4) == 0)
        return ir_unary(a, IR_NOT, any_expr(x, PYPTO_BOOL, depth - 1), PYPTO_BOOL, SPAN_NONE);
    if (depth > 1 && pick(x, 3) == 0)
        return ir_binary(a, pick(x, 2) != 0 ? IR_AND : IR_OR, any_expr(x, PYPTO_BOOL, depth - 1),
                         any_expr(x, PYPTO_BOOL, depth - 1), PYPTO_BOOL, SPAN_NONE);
    pypto_dtype dtype = value_dtypes[pick(x, VALUES)];
    return ir_binary(a, comparisons[pick(x, 6)], any_expr(x, dtype, depth - 1),
                     any_expr(x, dtype, depth - 1), PYPTO_BOOL, SPAN_NONE);
}

static const ir_expr *any_expr(expressions *x, pypto_dtype dtype, int depth)
{
    static const ir_operator integers[] = {IR_ADD,   IR_SUB,    IR_MUL, IR_FLOORDIV,
                                           IR_MOD,   IR_SHL,    IR_SHR, IR_BITAND,
                                           IR_BITOR, IR_BITXOR, IR_MIN, IR_MAX};
    static const ir_operator floats[] = {IR_ADD, IR_SUB, IR_MUL, IR_DIV, IR_MIN, IR_MAX};
    arena *a = x->p->a;
    if (dtype == PYPTO_BOOL)
        return depth <= 0 ? ir_bool(a, pick(x, 2) != 0) : any_condition(x, depth);
    if (depth <= 0 || pick(x, 8) == 0)
        return any_leaf(x, dtype);
    if (pick(x, 6) == 0) {
        pypto_dtype from = value_dtypes[pick(x, VALUES)];
        if (ir_is_float(from) == ir_is_float(dtype))
            return ir_convert(a, any_expr(x, from, depth - 1), dtype, SPAN_NONE);
    }
    if (pick(x, 8) == 0)
        return ir_unary(a, ir_is_float(dtype) || pick(x, 2) != 0 ? IR_NEG : IR_INVERT,
                        any_expr(x, dtype, depth - 1), dtype, SPAN_NONE);
    ir_operator op = ir_is_float(dtype) ? floats[pick(x, 6)] : integers[pick(x, 12)];
    const ir_expr *right = (op == IR_SHL || op == IR_SHR) && pick(x, 2) != 0
                               ? ir_int_of(a, (int64_t)pick(x, 8), dtype)
                               : any_expr(x, dtype, depth - 1);
    return ir_binary(a, op, any_expr(x, dtype, depth - 1), right, dtype, SPAN_NONE);
}

/* The expression with its variables replaced by constants, folded on the way. */
static const ir_expr *substitute(expressions *x, const ir_expr *e)
{
    arena *a = x->p->a;
    switch (e->kind) {
    case IR_VAR:
        for (int i = 0; i < VALUES; i++) {
            if (x->vars[i] != e->var)
                continue;
            return ir_is_float(e->dtype)
                       ? ir_convert(a, ir_float(a, x->reals[i]), e->dtype, SPAN_NONE)
                       : ir_int_of(a, x->integers[i], e->dtype);
        }
        return e;
    case IR_UNARY: return ir_unary(a, e->op, substitute(x, e->a), e->dtype, SPAN_NONE);
    case IR_BINARY:
        return ir_binary(a, e->op, substitute(x, e->a), substitute(x, e->b), e->dtype, SPAN_NONE);
    case IR_CONVERT: return ir_convert(a, substitute(x, e->a), e->dtype, SPAN_NONE);
    default: return e;
    }
}

static ir_function *sink_for(expressions *x, pypto_dtype dtype)
{
    const char *name = arena_printf(x->p->a, "sink_%s", pypto_dtype_name(dtype));
    ir_function *f = ir_function_create(x->p, name, PLD_PLANE_CORE, seed_span(1));
    ir_var_create(x->p, f, IR_VAR_PARAM, "value", ir_scalar_type(dtype), seed_span(1));
    return f;
}

static bool constant_value(const ir_expr *e, pld_arg *value)
{
    *value = (pld_arg){PLD_ARG_INT, NULL, e->integer, 0.0};
    if (e->kind == IR_FLOAT)
        *value = (pld_arg){PLD_ARG_FLOAT, NULL, 0, e->real};
    return e->kind == IR_INT || e->kind == IR_BOOL || e->kind == IR_FLOAT;
}

static void choose_values(expressions *x, pld_arg *args)
{
    static const int64_t special[] = {0,   1,         -1,        7,         -7,
                                      255, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    for (int i = 0; i < VALUES; i++) {
        int64_t integer = pick(x, 2) != 0 ? special[pick(x, 10)] : (int64_t)pick(x, 2000) - 1000;
        x->integers[i] = ir_is_float(value_dtypes[i])
                             ? 0
                             : ir_int_of(x->p->a, integer, value_dtypes[i])->integer;
        x->reals[i] = ((double)pick(x, 4000) - 2000) / 16;
        args[i] = ir_is_float(value_dtypes[i]) ? (pld_arg)PLD_FLOAT(x->reals[i])
                                               : (pld_arg)PLD_INT(x->integers[i]);
    }
}

static void expressions_compute_what_folding_says(void **state)
{
    (void)state;
    lowered l = {.a = arena_create()};
    arena_set_recovery(l.a, &memory_exhausted);
    expressions x = {.p = ir_program_create(l.a, "expressions"), .seed = 20250101};
    l.result.program = x.p;
    ir_function *sinks[PYPTO_DTYPE_COUNT];
    for (int i = 0; i < PYPTO_DTYPE_COUNT; i++)
        sinks[i] = sink_for(&x, (pypto_dtype)i);
    x.f = ir_function_create(x.p, "compute", PLD_PLANE_CHIP, seed_span(1));
    for (int i = 0; i < VALUES; i++)
        x.vars[i] = ir_var_create(x.p, x.f, IR_VAR_PARAM, arena_printf(l.a, "v%d", i),
                                  ir_scalar_type(value_dtypes[i]), seed_span(1));
    const ir_expr *all[EXPRESSIONS];
    for (int i = 0; i < EXPRESSIONS; i++) {
        pypto_dtype dtype = pick(&x, 5) == 0 ? PYPTO_BOOL : value_dtypes[pick(&x, VALUES)];
        all[i] = any_expr(&x, dtype, 4);
        ir_stmt *s = seed_call(x.p, &x.f->body, i + 1, sinks[dtype], 0, NULL, NULL);
        s->operands[0] = operand_expr(all[i]);
        s->operand_count = 1;
    }
    const char *c_text = emitted(&l, "cpu");
    compiles_without_warnings(&l, c_text, true);
    loaded o = load(&l, c_text, "expressions");

    int compared = 0;
    for (int round = 0; round < ROUNDS; round++) {
        pld_arg args[VALUES];
        choose_values(&x, args);
        o.run(o.program->host, args);
        assert_int_equal(*o.record_count, EXPRESSIONS);
        for (int i = 0; i < EXPRESSIONS; i++) {
            pld_arg expected;
            if (!constant_value(substitute(&x, all[i]), &expected))
                continue; /* overflows 64 bits, divides by 0, ... */
            compared++;
            bool same = expected.kind == PLD_ARG_INT
                            ? o.records[i].integer == expected.integer
                            : o.records[i].real == expected.real ||
                                  (o.records[i].real != o.records[i].real &&
                                   expected.real != expected.real);
            if (!same) {
                text shown = {.a = l.a};
                ir_print_expr(&shown, all[i]);
                fail_msg("expression %d, %s: %lld %g, not %lld %g", i, shown.bytes,
                         (long long)o.records[i].integer, o.records[i].real,
                         (long long)expected.integer, expected.real);
            }
        }
    }
    assert_true(compared > EXPRESSIONS * ROUNDS / 2);
    dlclose(o.handle);
    lowered_free(&l);
}

/* ---- awkward names ---- */

static void awkward_names_compile(void **state)
{
    (void)state;
    lowered l = seed_lowered(8, PYPTO_FP32);
    static const char *const names[] = {"int",     "i",      "core",  "pld_load", "signal",
                                        "index",   "args",   "floor", "NULL",     "restrict",
                                        "scratch", "memcpy", "host",  "turn",     "exp"};
    ir_function *kernel = l.result.program->functions.items[0];
    for (int64_t i = 0; i < kernel->vars.count; i++)
        kernel->vars.items[i]->name = names[i];
    l.result.program->functions.items[0]->name = "exp";
    l.result.program->functions.items[1]->name = "gr\xc3\xb6\xc3\x9f"
                                                 "e";
    for (int64_t i = 0; i < 3; i++)
        l.result.program->functions.items[i]->span.file = "/tmp/a \"b\" */ \\x\?\?/dir/script.py";
    const char *c_text = emitted(&l, "a2a3");
    compiles_without_warnings(&l, c_text, true);
    lowered_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_seed_reads_like_its_script),
        cmocka_unit_test(the_same_ir_gives_the_same_bytes),
        cmocka_unit_test(dtypes_compile),
        cmocka_unit_test(the_table_describes_the_program),
        cmocka_unit_test(calls_note_the_lines_of_the_script),
        cmocka_unit_test(tiles_carry_through_loops_and_branches),
        cmocka_unit_test(copies_of_tiles_are_values),
        cmocka_unit_test(scalars_are_declared_where_they_live),
        cmocka_unit_test(loops_run_as_python_would),
        cmocka_unit_test(steps_do_not_overflow),
        cmocka_unit_test(loops_poll_where_no_call_checks),
        cmocka_unit_test(early_returns_end_the_kernel),
        cmocka_unit_test(unread_names_bring_no_warnings),
        cmocka_unit_test(hosts_alias_and_rebind_handles),
        cmocka_unit_test(windows_of_other_shapes_are_viewed),
        cmocka_unit_test(expressions_compute_what_folding_says),
        cmocka_unit_test(awkward_names_compile),
    };
    unsetenv("MALLOC_PERTURB_"); /* the compilers would inherit it, and take twice as long */
    if (setjmp(memory_exhausted) != 0)
        return 1;
    return _cmocka_run_group_tests("emit", tests, sizeof tests / sizeof tests[0], make_folder,
                                   drop_folder);
}
