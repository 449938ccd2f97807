/* The passes: device sets, scratch plans, C names, and what the verifier refuses. */
#include "frontend_check.h"
#include "passes/passes.h"
#include "seed_program.h"

/* ---- programs ---- */

static ir_program *new_seed(lowered *l, int64_t size)
{
    *l = (lowered){.a = arena_create()};
    assert_non_null(l->a);
    arena_set_recovery(l->a, &memory_exhausted);
    l->result.program = seed_program(l->a, size, PYPTO_FP32);
    return l->result.program;
}

static void run_passes(lowered *l, const char *platform_name)
{
    expect_ok(l);
    l->status = passes_run(l->result.program, platform_find(platform_name), NULL);
}

static lowered passed(const char *source)
{
    lowered l = lower(source, "h");
    run_passes(&l, "a2a3");
    expect_ok(&l);
    return l;
}

static ir_device_set devices_of(const char *source, int32_t buffer)
{
    lowered l = passed(source);
    ir_device_set set = l.result.program->buffers.items[buffer].devices;
    lowered_free(&l);
    return set;
}

static void refused(const char *source, const char *code, const char *message)
{
    lowered l = lower(source, "h");
    run_passes(&l, "a2a3");
    const pypto_diagnostic *d = l.status.diagnostics;
    if (d == NULL || strcmp(d->code, code) != 0 || strstr(d->message, message) == NULL) {
        print_errors(&l);
        fail_msg("expected %s: %s", code, message);
    }
    assert_true(d->span.line > 0);
    lowered_free(&l);
}

/* ---- the quick start ---- */

static void the_seed_passes(void **state)
{
    (void)state;
    lowered l;
    ir_program *p = new_seed(&l, 256);
    run_passes(&l, "a2a3");
    expect_ok(&l);
    assert_true(p->buffers.items[0].devices.all);
    assert_true(p->buffers.items[1].devices.all);
    const ir_function *kernel = p->functions.items[0];
    assert_int_equal(kernel->scratch_bytes, 2048);
    assert_int_equal(var_named(kernel, "local")->scratch_offset, 0);
    assert_int_equal(var_named(kernel, "acc")->scratch_offset, 0);
    assert_int_equal(var_named(kernel, "peer_tile")->scratch_offset, 1024);
    assert_int_equal(p->functions.items[2]->world_dims.items[0], 0);
    /* Running them again changes nothing. */
    text first = {.a = l.a};
    text again = {.a = l.a};
    ir_print_program(&first, p);
    run_passes(&l, "a2a3");
    expect_ok(&l);
    ir_print_program(&again, p);
    assert_string_equal(first.bytes, again.bytes);
    lowered_free(&l);
}

/* ---- domains ---- */

#define WINDOWS                                                \
    "    b = pld.alloc_window_buffer([1, N], dtype=pl.FP32)\n" \
    "    t = pld.alloc_window_buffer(pld.world_size() * 4)\n"  \
    "    w = pld.window(b, [1, N], dtype=pl.FP32)\n"           \
    "    s = pld.window(t, [pld.world_size(), 1], dtype=pl.INT32)\n"

static void a_loop_over_the_world_means_all(void **state)
{
    (void)state;
    assert_true(devices_of(HOST(WINDOWS "    for r in pl.range(pld.world_size()):\n"
                                        "        c3(x[r], w, s, device=r)\n"),
                           0)
                    .all);
    assert_true(devices_of(HOST(WINDOWS "    p = pld.world_size()\n"
                                        "    for r in pl.range(p):\n"
                                        "        c3(x[r], w, s, device=r)\n"),
                           1)
                    .all);
    /* A name for the loop variable is the loop variable. */
    assert_true(devices_of(HOST(WINDOWS "    for r in pl.range(0, pld.world_size()):\n"
                                        "        d = r\n"
                                        "        c3(x[d], w, s, device=d)\n"),
                           0)
                    .all);
}

static void constants_and_ranges_unite(void **state)
{
    (void)state;
    ir_device_set set = devices_of(HOST(WINDOWS "    c3(x[0], w, s, device=5)\n"
                                                "    for r in pl.range(1, 3):\n"
                                                "        c3(x[r], w, s, device=r)\n"),
                                   0);
    assert_false(set.all);
    assert_int_equal(set.mask, 1u << 5 | 1u << 1 | 1u << 2);
    set = devices_of(HOST(WINDOWS "    c3(x[0], w, s, device=0)\n"
                                  "    for r in pl.range(pld.world_size()):\n"
                                  "        c3(x[r], w, s, device=r)\n"),
                     1);
    assert_true(set.all);
}

static void overlapping_groups_keep_apart(void **state)
{
    (void)state;
    lowered l = passed(HOST(WINDOWS "    b2 = pld.alloc_window_buffer([1, N], dtype=pl.FP32)\n"
                                    "    t2 = pld.alloc_window_buffer(64)\n"
                                    "    w2 = pld.window(b2, [1, N], dtype=pl.FP32)\n"
                                    "    s2 = pld.window(t2, [2, 1], dtype=pl.INT32)\n"
                                    "    for r in pl.range(2):\n"
                                    "        c3(x[r], w, s, device=r)\n"
                                    "    for r in pl.range(1, 3):\n"
                                    "        c3(x[r], w2, s2, device=r)\n"));
    const ir_program *p = l.result.program;
    assert_int_equal(p->buffers.items[0].devices.mask, 3);
    assert_int_equal(p->buffers.items[2].devices.mask, 6);
    assert_int_equal(p->buffers.items[3].devices.mask, 6);
    lowered_free(&l);
}

static void devices_that_cannot_be_told_are_refused(void **state)
{
    (void)state;
    refused(HOST(WINDOWS "    for r in pl.range(pld.world_size()):\n"
                         "        c3(x[r], w, s, device=(r + 1) % pld.world_size())\n"),
            "PYPTO-T213", "device= expression must be ConstInt or the induction var");
    refused(HOST(WINDOWS "    c3(x[0], w, s, device=q)\n"), "PYPTO-T213",
            "is not the induction variable");
    refused(HOST(WINDOWS "    for r in pl.range(q):\n"
                         "        c3(x[r], w, s, device=r)\n"),
            "PYPTO-T213", "loop bound must be ConstInt or pld.system.world_size()");
    refused(HOST(WINDOWS "    for r in pl.range(0, 4, 2):\n"
                         "        c3(x[r], w, s, device=r)\n"),
            "PYPTO-T215", "non-unit-step loop is not supported");
    refused(HOST(WINDOWS "    for r in pl.range(60, 70):\n"
                         "        c3(x[0], w, s, device=r)\n"),
            "PYPTO-T213", "devices 60 to 69");
}

static void unused_windows_are_refused(void **state)
{
    (void)state;
    refused(HOST("    b = pld.alloc_window_buffer(64)\n"), "PYPTO-T216",
            "no pld.tensor.window materialisation");
    refused(HOST("    b = pld.alloc_window_buffer(64)\n"
                 "    w = pld.window(b, [1, N], dtype=pl.FP32)\n"),
            "PYPTO-T216", "not consumed by any chip_orch dispatch");
}

static void merged_windows_need_one_domain(void **state)
{
    (void)state;
#define MERGE(devices)                                                  \
    WINDOWS "    b2 = pld.alloc_window_buffer([1, N], dtype=pl.FP32)\n" \
            "    w2 = pld.window(b2, [1, N], dtype=pl.FP32)\n"          \
            "    for r in pl.range(2):\n"                               \
            "        c3(x[r], w, s, device=r)\n"                        \
            "    for r in pl.range(" devices "):\n"                     \
            "        c3(x[r], w2, s, device=r)\n"                       \
            "    if q > 0:\n"                                           \
            "        m = w\n"                                           \
            "    else:\n"                                               \
            "        m = w2\n"                                          \
            "    c3(x[0], m, s, device=0)\n"
    lowered l = passed(HOST(MERGE("2")));
    assert_int_equal(l.result.program->buffers.items[2].devices.mask, 3);
    lowered_free(&l);
    refused(HOST(MERGE("1, 3")), "PYPTO-T213", "a window of 'b' or of 'b2'");
}

static void dispatches_without_windows_need_no_domain(void **state)
{
    (void)state;
    lowered l = passed(HOST("    c2(x[0], y[0], q)\n"
                            "    c2(x[1], y[1], q + 1, device=(q + 1) % 2)\n"));
    lowered_free(&l);
}

/* ---- scratch: plans are checked by running the program on bytes that remember their writer ----
 */

#define TILES 12
#define MOST_STATEMENTS 60

typedef struct generator {
    ir_program *p;
    ir_function *f;
    ir_var *memory;
    ir_var *tiles[TILES];
    ir_var *loop;
    uint64_t seed;
    int statements;
} generator;

static uint32_t next_random(generator *g, uint32_t below)
{
    g->seed = g->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(g->seed >> 33) % below;
}

static int any_of(generator *g, uint32_t set)
{
    if (set == 0)
        return -1;
    for (;;) {
        int i = (int)next_random(g, TILES);
        if ((set >> i & 1) != 0)
            return i;
    }
}

/* Another tile of the same shape among the set, or the tile itself. */
static int partner_of(generator *g, uint32_t set, int tile)
{
    for (int tries = 0; tries < 8; tries++) {
        int other = any_of(g, set);
        if (ir_type_equal(&g->tiles[other]->type, &g->tiles[tile]->type))
            return other;
    }
    return tile;
}

static uint32_t generate_block(generator *g, ir_block *into, uint32_t defined, int depth);

static uint32_t generate_stmt(generator *g, ir_block *into, uint32_t defined, int depth)
{
    arena *a = g->p->a;
    uint32_t kind = next_random(g, depth < 3 ? 12 : 9);
    int target = (int)next_random(g, TILES);
    int source = any_of(g, defined);
    ir_operand origin = operand_list(a, 2, ir_int(a, 0), ir_int(a, 0));
    int32_t line = ++g->statements;
    if (kind < 4 || source < 0) {
        ir_operand whole = operand_list(a, 2, ir_int(a, 1), g->tiles[target]->type.shape[1]);
        DO(g->p, into, line, g->tiles[target], OP_LOAD, operand_var(g->memory), origin, whole);
        return defined | 1u << target;
    }
    int other = partner_of(g, defined, source);
    for (int i = 0; i < TILES && kind < 8; i++, target = (target + 1) % TILES)
        if (ir_type_equal(&g->tiles[target]->type, &g->tiles[source]->type))
            break;
    if (kind < 7) {
        DO(g->p, into, line, g->tiles[target], OP_ADD, operand_var(g->tiles[source]),
           operand_var(g->tiles[other]));
        return defined | 1u << target;
    }
    if (kind < 8) {
        if (target != source)
            seed_alias(g->p, into, line, g->tiles[target], g->tiles[source]);
        return target != source ? defined | 1u << target : defined;
    }
    if (kind < 9) {
        DO(g->p, into, line, NULL, OP_STORE, operand_var(g->tiles[source]), origin,
           operand_var(g->memory));
        return defined;
    }
    if (kind < 10) {
        ir_var *loop =
            ir_var_create(g->p, g->f, IR_VAR_LOOP, "i", ir_scalar_type(PYPTO_INDEX), seed_span(1));
        ir_stmt *s = seed_for(g->p, into, line, loop, ir_int(a, 3));
        generate_block(g, &s->body, defined, depth + 1);
        return defined; /* it may not run */
    }
    ir_stmt *s =
        seed_if(g->p, into, line,
                ir_binary(a, IR_LT, ir_ref(a, g->loop), ir_int(a, 1), PYPTO_BOOL, seed_span(1)));
    uint32_t then = generate_block(g, &s->body, defined, depth + 1);
    uint32_t orelse =
        next_random(g, 2) != 0 ? generate_block(g, &s->orelse, defined, depth + 1) : defined;
    return then & orelse;
}

static uint32_t generate_block(generator *g, ir_block *into, uint32_t defined, int depth)
{
    int count = 1 + (int)next_random(g, depth == 0 ? 20 : 5);
    for (int i = 0; i < count && g->statements < MOST_STATEMENTS; i++)
        defined = generate_stmt(g, into, defined, depth);
    return defined;
}

/* What a byte of scratch memory holds: the tile that wrote it and its how manieth value. */
typedef struct machine {
    generator *g;
    int64_t owner[1 << 16];
    int64_t version[1 << 16];
    int64_t current[TILES];
    int steps;
} machine;

static int tile_number(const generator *g, const ir_var *var)
{
    for (int i = 0; i < TILES; i++)
        if (g->tiles[i] == var)
            return i;
    return -1;
}

static int64_t tile_bytes(const ir_var *tile)
{
    return ir_static_elems(&tile->type) * pypto_dtype_bytes(tile->type.dtype);
}

static void check_value(machine *m, const ir_var *tile)
{
    int number = tile_number(m->g, tile);
    for (int64_t i = 0; i < tile_bytes(tile); i++) {
        assert_int_equal(m->owner[tile->scratch_offset + i], number);
        assert_int_equal(m->version[tile->scratch_offset + i], m->current[number]);
    }
}

static void write_value(machine *m, const ir_var *tile)
{
    int number = tile_number(m->g, tile);
    m->current[number]++;
    for (int64_t i = 0; i < tile_bytes(tile); i++) {
        m->owner[tile->scratch_offset + i] = number;
        m->version[tile->scratch_offset + i] = m->current[number];
    }
}

/* A loop over elements may write where it reads the same element, or elsewhere altogether. */
static void check_same_or_apart(const ir_var *x, const ir_var *y)
{
    bool apart = x->scratch_offset + tile_bytes(x) <= y->scratch_offset ||
                 y->scratch_offset + tile_bytes(y) <= x->scratch_offset;
    assert_true(apart || x->scratch_offset == y->scratch_offset);
}

static void run_block(machine *m, const ir_block *block);

static void run_stmt(machine *m, const ir_stmt *s)
{
    for (int32_t i = 0; i < s->operand_count; i++) {
        ir_var *var = s->operands[i].kind == IR_OPERAND_VAR ? s->operands[i].var : NULL;
        if (var == NULL || var->type.kind != IR_TILE)
            continue;
        check_value(m, var);
        if (s->target != NULL)
            check_same_or_apart(var, s->target);
    }
    if (s->source != NULL) {
        check_value(m, s->source);
        check_same_or_apart(s->source, s->target);
    }
    if (s->target != NULL && s->target->type.kind == IR_TILE)
        write_value(m, s->target);
    if (s->kind == IR_FOR)
        for (uint32_t i = next_random(m->g, 4); i > 0 && m->steps++ < 2000; i--)
            run_block(m, &s->body);
    if (s->kind == IR_IF)
        run_block(m, next_random(m->g, 2) != 0 ? &s->body : &s->orelse);
}

static void run_block(machine *m, const ir_block *block)
{
    for (int64_t i = 0; i < block->count; i++)
        run_stmt(m, block->items[i]);
}

static void generate(generator *g, lowered *l, uint64_t seed)
{
    *l = (lowered){.a = arena_create()};
    assert_non_null(l->a);
    arena *a = l->a;
    arena_set_recovery(a, &memory_exhausted);
    *g = (generator){.seed = seed};
    next_random(g, 2);
    g->p = ir_program_create(a, "random");
    l->result.program = g->p;
    g->f = ir_function_create(g->p, "kernel", PLD_PLANE_CORE, seed_span(1));
    const ir_expr *shape[] = {ir_int(a, 1), ir_int(a, 4096)};
    g->memory = ir_var_create(g->p, g->f, IR_VAR_PARAM, "memory",
                              seed_memory(IR_TENSOR, PYPTO_FP32, 2, shape), seed_span(1));
    g->loop =
        ir_var_create(g->p, g->f, IR_VAR_PARAM, "n", ir_scalar_type(PYPTO_INDEX), seed_span(1));
    for (int i = 0; i < TILES; i++) {
        static const int64_t extents[] = {1, 3, 16, 17, 200};
        const ir_expr *tile[] = {ir_int(a, 1), ir_int(a, extents[next_random(g, 5)])};
        g->tiles[i] = seed_local(g->p, g->f, "t", seed_memory(IR_TILE, PYPTO_FP32, 2, tile), 1);
    }
    generate_block(g, &g->f->body, 0, 0);
}

static void values_survive_until_they_are_read(void **state)
{
    (void)state;
    static machine m;
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        generator g;
        lowered l;
        generate(&g, &l, seed);
        run_passes(&l, "cpu");
        expect_ok(&l);
        assert_true(g.f->scratch_bytes < (1 << 16));
        for (int run = 0; run < 4; run++) {
            memset(&m, 0xff, sizeof m);
            m.g = &g;
            m.steps = 0;
            run_block(&m, &g.f->body);
        }
        lowered_free(&l);
    }
}

static void a_dying_operand_gives_its_place(void **state)
{
    (void)state;
    lowered l = passed(KERNEL("    a = pl.load(x, [0, 0], [4, N])\n"
                              "    b = pl.load(x, [0, 0], [4, N])\n"
                              "    c = pl.add(a, b)\n"
                              "    d = pl.mul(c, 2.0)\n"
                              "    pl.store(d, [0, 0], y)\n"
                              "    pl.store(b, [0, 0], w)\n"));
    const ir_function *k = function_named(&l, "k");
    assert_int_equal(var_named(k, "a")->scratch_offset, var_named(k, "c")->scratch_offset);
    assert_int_equal(var_named(k, "c")->scratch_offset, var_named(k, "d")->scratch_offset);
    assert_int_not_equal(var_named(k, "a")->scratch_offset, var_named(k, "b")->scratch_offset);
    assert_int_equal(k->scratch_bytes, 256);
    lowered_free(&l);
}

static void a_carried_tile_keeps_its_place(void **state)
{
    (void)state;
    lowered l = passed(KERNEL("    acc = pl.load(x, [0, 0], [4, N])\n"
                              "    for i in pl.range(n):\n"
                              "        t = pl.load(w, [0, 0], [4, N])\n"
                              "        u = pl.load(x, [0, 0], [4, N])\n"
                              "        v = pl.mul(t, u)\n"
                              "        acc = pl.add(acc, v)\n"
                              "    pl.store(acc, [0, 0], y)\n"));
    const ir_function *k = function_named(&l, "k");
    int64_t acc = var_named(k, "acc")->scratch_offset;
    assert_int_not_equal(var_named(k, "t")->scratch_offset, acc);
    assert_int_not_equal(var_named(k, "u")->scratch_offset, acc);
    assert_int_equal(k->scratch_bytes, 3 * 128);
    lowered_free(&l);
}

static void too_much_scratch_is_refused_with_a_map(void **state)
{
    (void)state;
    lowered l;
    new_seed(&l, 24000); /* two tiles of 96000 bytes */
    run_passes(&l, "a2a3");
    const pypto_diagnostic *d = l.status.diagnostics;
    assert_non_null(d);
    assert_string_equal(d->code, "PYPTO-C306");
    assert_non_null(strstr(d->message, "'reduce_step' need 192000 bytes"));
    assert_non_null(strstr(d->message, "\"a2a3\" has 188416"));
    assert_non_null(strstr(d->hint, "\"cpu\""));
    assert_non_null(strstr(d->note, "peer_tile Tile[[1, 24000], fp32]  <- beyond the limit"));
    assert_non_null(strstr(d->note, "acc Tile[[1, 24000], fp32]"));
    lowered_free(&l);

    new_seed(&l, 24000);
    run_passes(&l, "a5");
    expect_ok(&l);
    lowered_free(&l);
    new_seed(&l, 10000000);
    run_passes(&l, "cpu");
    expect_ok(&l);
    lowered_free(&l);
}

static void sizes_of_tiles_do_not_overflow(void **state)
{
    (void)state;
    lowered l;
    new_seed(&l, INT64_MAX / 8);
    run_passes(&l, "cpu");
    const pypto_diagnostic *d = l.status.diagnostics;
    assert_non_null(d);
    assert_string_equal(d->code, "PYPTO-C306");
    assert_non_null(strstr(d->message, "larger than any memory"));
    lowered_free(&l);
}

/* ---- names ---- */

static const char *c_name_of(const char *name)
{
    static char kept[200];
    lowered l;
    ir_program *p = new_seed(&l, 8);
    ir_function *kernel = p->functions.items[0];
    var_named(kernel, "acc")->name = name;
    run_passes(&l, "cpu");
    expect_ok(&l);
    snprintf(kept, sizeof kept, "%s", kernel->vars.items[var_named(kernel, name)->id]->c_name);
    lowered_free(&l);
    return kept;
}

static void names_are_kept_where_c_allows(void **state)
{
    (void)state;
    assert_null(names_first_unsorted());
    assert_string_equal(c_name_of("total"), "total");
    assert_string_equal(c_name_of("exp"), "exp"); /* a library function is no clash for a local */
    assert_string_equal(c_name_of("_"), "_");
    assert_string_equal(c_name_of("int"), "int_");
    assert_string_equal(c_name_of("typeof"), "typeof_");
    assert_string_equal(c_name_of("int64_t"), "int64_t_");
    assert_string_equal(c_name_of("core"), "core_");
    assert_string_equal(c_name_of("scratch"), "scratch_");
    assert_string_equal(c_name_of("memcpy"), "memcpy_");
    assert_string_equal(c_name_of("pld_load"), "user_pld_load");
    assert_string_equal(c_name_of("PLD_AT"), "user_PLD_AT");
    assert_string_equal(c_name_of("pypto_program"), "user_pypto_program");
    assert_string_equal(c_name_of("__x"), "user__x");
    assert_string_equal(c_name_of("_X"), "user_X");
    assert_string_equal(c_name_of("gr\xc3\xb6\xc3\x9f"
                                  "e"),
                        "gr_u00f6_u00dfe");
    assert_string_equal(c_name_of("\xe6\x95\xb0"), "_u6570");
    /* Names at file level are not shadowed. */
    assert_string_equal(c_name_of("chip_orch"), "chip_orch_2");
    assert_string_equal(c_name_of("chip_orch_function"), "chip_orch_function_2");
}

static void functions_keep_away_from_the_library(void **state)
{
    (void)state;
    lowered l;
    ir_program *p = new_seed(&l, 8);
    p->functions.items[0]->name = "exp";
    p->functions.items[1]->name = "exp";
    p->functions.items[2]->name = "_main";
    run_passes(&l, "cpu");
    expect_ok(&l);
    assert_string_equal(p->functions.items[0]->c_name, "exp_");
    assert_string_equal(p->functions.items[1]->c_name, "exp__2");
    assert_string_equal(p->functions.items[2]->c_name, "user_main");
    lowered_free(&l);

    p = new_seed(&l, 8);
    p->functions.items[0]->name = "step";
    p->functions.items[1]->name = "step_entry";
    run_passes(&l, "cpu");
    expect_ok(&l);
    assert_string_equal(p->functions.items[1]->c_name, "step_entry_2");
    lowered_free(&l);
}

static void loops_share_a_name_and_others_do_not(void **state)
{
    (void)state;
    lowered l = passed(KERNEL("    for i in pl.range(n):\n"
                              "        for j in pl.range(n):\n"
                              "            pl.store(pl.load(x, [i, j], [1, 1]), [0, 0], y)\n"
                              "    for i in pl.range(n):\n"
                              "        pl.store(pl.load(x, [i, 0], [1, 1]), [0, 0], y)\n"
                              "    a = pl.load(x, [0, 0], [1, 1])\n"
                              "    pl.store(a, [0, 0], y)\n"
                              "    a = pl.load(x, [0, 0], [1, 2])\n"
                              "    pl.store(a, [0, 0], y)\n"));
    const ir_function *k = function_named(&l, "k");
    int loops = 0;
    int tiles = 0;
    for (int64_t i = 0; i < k->vars.count; i++) {
        const ir_var *var = k->vars.items[i];
        if (strcmp(var->name, "i") == 0) {
            assert_string_equal(var->c_name, "i");
            loops++;
        }
        if (strcmp(var->name, "a") == 0)
            assert_string_equal(var->c_name, tiles++ == 0 ? "a" : "a_2");
    }
    assert_true(loops >= 1);
    assert_int_equal(tiles, 2);
    lowered_free(&l);
}

/* ---- the verifier ---- */

static void verifier_says(lowered *l, const char *message)
{
    pypto_status_clear(&l->status);
    l->status = verify_program(l->result.program, NULL);
    const pypto_diagnostic *d = l->status.diagnostics;
    if (d == NULL || strcmp(d->code, "PYPTO-C303") != 0 || strstr(d->message, message) == NULL) {
        print_errors(l);
        fail_msg("the verifier does not say: %s", message);
    }
    lowered_free(l);
}

static void the_verifier_finds_defects(void **state)
{
    (void)state;
    lowered l;
    ir_program *p = new_seed(&l, 8);
    ir_function *kernel = p->functions.items[0];
    kernel->body.items[4]->operands[0].var = var_named(kernel, "acc");
    verifier_says(&l, "'acc' is read where it is not assigned");

    p = new_seed(&l, 8);
    p->functions.items[0]->body.items[5]->span.line = 0;
    verifier_says(&l, "without a place");

    p = new_seed(&l, 8);
    kernel = p->functions.items[0];
    kernel->body.items[3]->operand_count = 2;
    verifier_says(&l, "has 2 operands");

    p = new_seed(&l, 8);
    kernel = p->functions.items[0];
    kernel->plane = PLD_PLANE_CHIP;
    verifier_says(&l, "wrong plane");

    p = new_seed(&l, 8);
    kernel = p->functions.items[0];
    kernel->body.items[5]->step = ir_int(l.a, 0);
    verifier_says(&l, "step is 0");

    p = new_seed(&l, 8);
    kernel = p->functions.items[0];
    kernel->body.items[5]->body.items[0]->value = ir_int(l.a, 1);
    verifier_says(&l, "a condition of dtype index");

    p = new_seed(&l, 8);
    p->functions.items[1]->body.items[0]->operand_count = 3;
    verifier_says(&l, "with 3 arguments");

    p = new_seed(&l, 8);
    p->functions.items[1]->body.items[0]->operands[3].var = p->functions.items[1]->params.items[0];
    verifier_says(&l, "does not fit parameter 'signal'");

    p = new_seed(&l, 8);
    kernel = p->functions.items[0];
    const ir_expr *mixed = ir_binary(l.a, IR_LT, ir_ref(l.a, var_named(kernel, "my_rank")),
                                     ir_float(l.a, 1.0), PYPTO_BOOL, seed_span(1));
    kernel->body.items[5]->body.items[0]->value = mixed;
    verifier_says(&l, "meet in one expression");

    p = new_seed(&l, 8);
    p->functions.items[1]->body.items[0]->callee = p->functions.items[2];
    verifier_says(&l, "wrong plane");
}

static void platforms_are_known_by_name(void **state)
{
    (void)state;
    assert_int_equal(platform_find("a2a3sim")->scratch_bytes, 184 * 1024);
    assert_int_equal(platform_find("a5")->scratch_bytes, 240 * 1024);
    assert_int_equal(platform_find("cpu")->scratch_bytes, 0);
    assert_null(platform_find("gpu"));
    assert_null(platform_find(""));
    assert_string_equal(platform_names(), "a2a3, a2a3sim, a5, a5sim, cpu");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_seed_passes),
        cmocka_unit_test(a_loop_over_the_world_means_all),
        cmocka_unit_test(constants_and_ranges_unite),
        cmocka_unit_test(overlapping_groups_keep_apart),
        cmocka_unit_test(devices_that_cannot_be_told_are_refused),
        cmocka_unit_test(unused_windows_are_refused),
        cmocka_unit_test(merged_windows_need_one_domain),
        cmocka_unit_test(dispatches_without_windows_need_no_domain),
        cmocka_unit_test(values_survive_until_they_are_read),
        cmocka_unit_test(a_dying_operand_gives_its_place),
        cmocka_unit_test(a_carried_tile_keeps_its_place),
        cmocka_unit_test(too_much_scratch_is_refused_with_a_map),
        cmocka_unit_test(sizes_of_tiles_do_not_overflow),
        cmocka_unit_test(names_are_kept_where_c_allows),
        cmocka_unit_test(functions_keep_away_from_the_library),
        cmocka_unit_test(loops_share_a_name_and_others_do_not),
        cmocka_unit_test(the_verifier_finds_defects),
        cmocka_unit_test(platforms_are_known_by_name),
    };
    return RUN_TESTS(tests);
}
