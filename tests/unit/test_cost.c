/* What compiling costs without the C compiler: long functions and deep nests, from script to C. The limits,
 * in time of the CPU, are far above what a machine needs and far below what a quadratic or exponential step
 * would take; on a busy machine, where caches are shared, one attempt of a few has to keep them. Each script repeats one shape of code, so that a new quadratic step shows whatever it
 * depends on: names, variables, branches, loops, tiles, handles. */
#include "frontend_check.h"

#include "codegen/emit.h"
#include "passes/passes.h"

#include <time.h>

/* Instrumented builds are several times slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMIT 5.0
#else
#define LIMIT 1.0
#endif

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* From script to C; the seconds that all but parsing the script took. */
static double compile_seconds(const char *source, const char *name)
{
    lowered l = {.a = arena_create()};
    arena_set_recovery(l.a, &memory_exhausted);
    l.module = script_parse(l.a, "t.py", source);
    frontend_embedder embedder = script_embedder(l.module);
    double start = seconds();
    l.status = frontend_lower(l.a, &embedder, script_function(l.module, "h"), NULL, 0, &l.result);
    expect_ok(&l);
    double lowered_at = seconds();
    pypto_status status = passes_run(l.result.program, platform_find("cpu"), NULL);
    assert_true(status_ok(status));
    double passed_at = seconds();
    text out = {.a = l.a};
    emit_program(&out, l.result.program, NULL);
    double end = seconds();
    print_message("%-28s %5.0f ms: front end %.0f, passes %.0f, emitter %.0f\n", name,
                  (end - start) * 1e3, (lowered_at - start) * 1e3, (passed_at - lowered_at) * 1e3,
                  (end - passed_at) * 1e3);
    lowered_free(&l);
    return end - start;
}

static void expect_cheap(const char *source, const char *name)
{
    double least = compile_seconds(source, name);
    for (int attempt = 1; attempt < 5 && least >= LIMIT; attempt++) {
        const double another = compile_seconds(source, name);
        least = another < least ? another : least;
    }
    assert_true(least < LIMIT);
}

/* A kernel whose body repeats a few lines; in them, # is the number of the repetition. */
static const char *kernel(arena *a, const char *before, const char *lines, int count)
{
    text body = {.a = a};
    text_add(&body, before);
    for (int i = 0; i < count; i++) {
        for (const char *c = lines; *c != '\0'; c++) {
            if (*c == '#')
                text_printf(&body, "%d", i);
            else
                text_add_n(&body, c, 1);
        }
    }
    return body.bytes;
}

typedef struct cost_row {
    const char *name;
    const char *before;
    const char *lines;
    int count;
} cost_row;

#define TILE "t = pl.load(x, [0, 0], [4, N])\n"

static const cost_row rows[] = {
    {"one scalar", "    m = n\n", "    m = m * 3 + #\n", 2000},
    {"scalars", "", "    m# = n * 3 + #\n", 2000},
    {"a chain of scalars", "    m = n\n", "    a# = m + #\n    m = a# * 2\n", 1000},
    {"tiles", "    " TILE, "    t# = pl.add(t, 1.0)\n    t = pl.mul(t#, t)\n", 1000},
    {"branches", "    m = n\n",
     "    if m > #:\n        a# = m\n    else:\n        a# = n\n    m = m + a#\n", 400},
    {"loops", "    m = n\n",
     "    for i in pl.range(m):\n        if i == #:\n            break\n        m = m + 1\n", 500},
    {"loops after each other", "    " TILE,
     "    for i# in pl.range(n):\n        u# = pl.add(t, 1.0)\n        t = pl.mul(u#, t)\n", 660},
    {"a chain that nobody reads", "    a0 = n\n", "    a# = n + #\n    b# = a# + 1\n", 1000},
    {"tiles that nobody reads", "    " TILE, "    t# = pl.add(t, 1.0)\n", 2000},
    {"stores", "    " TILE, "    y = pl.store(t, [0, 0], y)\n", 2000},
};

/* KERNEL around a body. */
static const char *around(arena *a, const char *body)
{
    text source = {.a = a};
    const char *whole = KERNEL("%BODY%");
    const char *at = strstr(whole, "%BODY%");
    text_add_n(&source, whole, at - whole);
    text_add(&source, body);
    text_add(&source, at + strlen("%BODY%"));
    return source.bytes;
}

static void test_long_functions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        arena *a = arena_create();
        arena_set_recovery(a, &memory_exhausted);
        const char *body = kernel(a, rows[i].before, rows[i].lines, rows[i].count);
        expect_cheap(around(a, body), rows[i].name);
        arena_destroy(a);
    }
}

static void test_long_host_functions(void **state)
{
    (void)state;
    arena *a = arena_create();
    arena_set_recovery(a, &memory_exhausted);
    text source = {.a = a};
    text_add(&source, HOST("    for r in pl.range(pld.world_size()):\n"));
    text_add(&source, kernel(a, "", "        c2(x[r], y[r], #, device=r)\n", 2000));
    expect_cheap(source.bytes, "dispatches");
    arena_destroy(a);
}

static void indent_to(text *out, int depth)
{
    for (int i = 0; i <= depth; i++)
        text_add(out, "    ");
}

/* Loops in loops, each of which rebinds what the ones around it bind: one attempt too many per level
 * would be 2^depth bodies. */
static void test_deep_nests(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "i0 = i0 + %d\n",               /* an outer loop variable */
        "n = n + %d\n",                 /* a parameter */
        "src = w if n > %d else src\n", /* a handle */
        "t = pl.add(t, %d.0)\n",
    };
    for (size_t k = 0; k < sizeof lines / sizeof lines[0]; k++) {
        arena *a = arena_create();
        arena_set_recovery(a, &memory_exhausted);
        text body = {.a = a};
        text_add(&body, "    src = w\n    t = pl.load(x, [0, 0], [4, N])\n");
        enum { DEPTH = 24 };
        for (int d = 0; d < DEPTH; d++) {
            indent_to(&body, d);
            text_printf(&body, "for i%d in pl.range(n):\n", d);
            indent_to(&body, d + 1);
            text_printf(&body, lines[k], d);
        }
        text_add(&body, "    pl.store(t, [0, 0], y)\n");
        expect_cheap(around(a, body.bytes), "nested loops");
        arena_destroy(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_functions),
        cmocka_unit_test(test_long_host_functions),
        cmocka_unit_test(test_deep_nests),
    };
    return RUN_TESTS(tests);
}
