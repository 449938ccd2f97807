/* What the tests of the front end share: lower a script, then look at the IR or at the errors.
 *
 * KERNEL(body) is a whole program around the body of an in-core function `k`, so that a test shows only
 * what it is about; its first line is line KERNEL_LINE of the script. HOST(body) does the same for the
 * body of a host function `h` and HOST_LINE. */
#ifndef TESTS_FRONTEND_CHECK_H
#define TESTS_FRONTEND_CHECK_H

#include "base/alloc.h"
#include "base/diag.h"
#include "script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD                                     \
    "import pypto.language as pl\n"              \
    "import pypto.language.distributed as pld\n" \
    "NR = pl.dynamic('NR')\n"                    \
    "N = 8\n"                                    \
    "DT = pl.FP32\n"                             \
    "OP = pld.NotifyOp.Set\n"

#define PARAMS                                                               \
    "x: pl.Tensor[[4, N], pl.FP32], y: pl.Out[pl.Tensor[[4, N], pl.FP32]], " \
    "w: pl.InOut[pld.DistributedTensor[[4, N], pl.FP32]], "                  \
    "s: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]], "                \
    "n: pl.Scalar[pl.INT32], f: pl.Scalar[pl.FP32], b: pl.Scalar[pl.BOOL]"

#define KERNEL_LINE 9
#define KERNEL(body)                                                                              \
    HEAD "@pl.jit.incore\n"                                                                       \
         "def k(" PARAMS "):\n" body "@pl.jit\n"                                                  \
         "def c(" PARAMS "):\n"                                                                   \
         "    return k(x, y, w, s, n, f, b)\n"                                                    \
         "@pl.jit.host\n"                                                                         \
         "def h(x: pl.Tensor[[NR, 4, N], pl.FP32], y: pl.Out[pl.Tensor[[NR, 4, N], pl.FP32]]):\n" \
         "    wb = pld.alloc_window_buffer([4, N], dtype=pl.FP32)\n"                              \
         "    sb = pld.alloc_window_buffer(pld.world_size() * 4)\n"                               \
         "    for r in pl.range(pld.world_size()):\n"                                             \
         "        w = pld.window(wb, [4, N], dtype=pl.FP32)\n"                                    \
         "        s = pld.window(sb, [pld.world_size(), 1], dtype=pl.INT32)\n"                    \
         "        c(x[r], y[r], w, s, r, 1.5, True, device=r)\n"                                  \
         "    return y\n"

/* c2 takes tensors and a number, c3 windows too. */
#define HOST_LINE 19
#define HOST(body)                                                                                    \
    HEAD                                                                                              \
        "@pl.jit.incore\n"                                                                            \
        "def k(x: pl.Tensor[[4, N], pl.FP32], y: pl.Out[pl.Tensor[[4, N], pl.FP32]]):\n"              \
        "    return pl.store(pl.load(x, [0, 0], [4, N]), [0, 0], y)\n"                                \
        "@pl.jit\n"                                                                                   \
        "def c2(x: pl.Tensor[[4, N], pl.FP32], y: pl.Out[pl.Tensor[[4, N], pl.FP32]], "               \
        "n: pl.Scalar[pl.INT32]):\n"                                                                  \
        "    return k(x, y)\n"                                                                        \
        "@pl.jit\n"                                                                                   \
        "def c3(x: pl.Tensor[[4, N], pl.FP32], w: pl.InOut[pld.DistributedTensor[[1, N], pl.FP32]], " \
        "s: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]]):\n"                                   \
        "    pass\n"                                                                                  \
        "P = 4\n"                                                                                     \
        "@pl.jit.host\n"                                                                              \
        "def h(x: pl.Tensor[[NR, 4, N], pl.FP32], y: pl.Out[pl.Tensor[[NR, 4, N], pl.FP32]], "        \
        "q: pl.Scalar[pl.INDEX]):\n" body

static jmp_buf memory_exhausted; /* set by run_group(), which outlives every arena */

static inline int run_group(const struct CMUnitTest *tests, size_t count)
{
    if (setjmp(memory_exhausted) != 0)
        return 1;
    return _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
}
#define RUN_TESTS(tests) run_group((tests), sizeof(tests) / sizeof((tests)[0]))

typedef struct lowered {
    arena *a;
    script *module;
    frontend_result result;
    pypto_status status;
} lowered;

static inline void lower_into(lowered *l, const char *source, const char *entry,
                              const frontend_arg *args, int32_t count)
{
    l->a = arena_create();
    assert_non_null(l->a);
    arena_set_recovery(l->a, &memory_exhausted);
    l->module = script_parse(l->a, "t.py", source);
    frontend_embedder embedder = script_embedder(l->module);
    l->status =
        frontend_lower(l->a, &embedder, script_function(l->module, entry), args, count, &l->result);
}

static inline lowered lower(const char *source, const char *entry)
{
    lowered l;
    lower_into(&l, source, entry, NULL, 0);
    return l;
}

static inline lowered lower_args(const char *source, const char *entry, const frontend_arg *args,
                                 int32_t count)
{
    lowered l;
    lower_into(&l, source, entry, args, count);
    return l;
}

static inline void lowered_free(lowered *l)
{
    pypto_status_clear(&l->status);
    arena_destroy(l->a);
}

static inline void print_errors(const lowered *l)
{
    char *rendered = pypto_status_text(&l->status);
    print_message("%s\n", rendered == NULL ? "?" : rendered);
    free(rendered);
}

static inline void expect_ok(const lowered *l)
{
    if (!status_ok(l->status)) {
        print_errors(l);
        fail_msg("the script does not compile");
    }
}

static inline const ir_function *function_named(const lowered *l, const char *name)
{
    const ir_program *p = l->result.program;
    for (int64_t i = 0; i < p->functions.count; i++) {
        if (strcmp(p->functions.items[i]->name, name) == 0)
            return p->functions.items[i];
    }
    fail_msg("there is no function %s", name);
    return NULL;
}

static inline ir_var *var_named(const ir_function *f, const char *name)
{
    for (int64_t i = 0; i < f->vars.count; i++) {
        if (strcmp(f->vars.items[i]->name, name) == 0)
            return f->vars.items[i];
    }
    fail_msg("there is no variable %s", name);
    return NULL;
}

/* The statements of a function, without their places, one per line. */
static inline const char *body_text(const lowered *l, const char *name)
{
    text all = {.a = l->a};
    text out = {.a = l->a};
    ir_print_function(&all, function_named(l, name));
    text_add(&out, "");
    const char *at = strstr(all.bytes, "  body\n");
    for (at = at == NULL ? "" : at + 7; *at != '\0';) {
        size_t line = strcspn(at, "\n");
        size_t kept = line;
        for (size_t i = 0; i + 2 < line; i++) {
            if (strncmp(at + i, " ; ", 3) == 0)
                kept = i;
        }
        text_add_n(&out, at + 4, (int64_t)kept - 4);
        text_add(&out, "\n");
        at += at[line] == '\n' ? line + 1 : line;
    }
    return out.bytes;
}

/* Lowers the script and compares the body of one of its functions. */
static inline void expect_body(const char *source, const char *entry, const char *function,
                               const char *expected)
{
    lowered l = lower(source, entry);
    expect_ok(&l);
    assert_string_equal(body_text(&l, function), expected);
    lowered_free(&l);
}

/* Every error says what to do, but those about what is not there yet. */
typedef struct expected_error {
    const char *code; /* "PYPTO-S106" */
    int32_t line;     /* from the first line of the body, which is 1; 0: not compared */
    int32_t column;   /* -1: not compared */
    const char *message;
    const char *hint; /* NULL: not compared */
} expected_error;

static inline bool error_matches(const pypto_diagnostic *d, const expected_error *e, int32_t first)
{
    return d != NULL && strcmp(d->code, e->code) == 0 &&
           (e->line == 0 || d->span.line == first + e->line - 1) &&
           (e->column < 0 || d->span.column == e->column) &&
           strstr(d->message, e->message) != NULL &&
           (d->hint != NULL || strcmp(d->code, diag_lookup(DIAG_LATER)->code) == 0) &&
           (e->hint == NULL || (d->hint != NULL && strstr(d->hint, e->hint) != NULL)) &&
           (d->span.line == 0 || d->source != NULL);
}

/* All errors of the script, in order, and no others. `first` is the line that counts as 1. */
static inline void expect_errors(const lowered *l, int32_t first, const expected_error *errors,
                                 int32_t count)
{
    const pypto_diagnostic *d = l->status.diagnostics;
    for (int32_t i = 0; i < count; i++, d = d == NULL ? NULL : d->next) {
        if (!error_matches(d, &errors[i], first)) {
            print_errors(l);
            fail_msg("error %d is not %s at %d:%d \"%s\"", i, errors[i].code,
                     first + errors[i].line - 1, errors[i].column, errors[i].message);
        }
    }
    if (d != NULL) {
        print_errors(l);
        fail_msg("there are more than %d errors", count);
    }
}

static inline void expect_error(const char *source, const char *entry, int32_t first,
                                expected_error error)
{
    lowered l = lower(source, entry);
    expect_errors(&l, first, &error, 1);
    lowered_free(&l);
}

#endif
