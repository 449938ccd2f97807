/* Fuzz target of the compiler: the text of a script -> syntax tree -> IR -> passes -> C.
 *
 * The text is read by the reader of the unit tests (tests/unit/script.h), which makes the trees that
 * Python's parser makes; what it cannot read Python could not either, and is not our business. Every
 * function is checked by its annotations, then every host function is compiled as an entry. The
 * mutator (mutate.c) keeps most texts readable.
 *
 * A finding is what the sanitizers say, a text that takes longer than the time-out, and, found here:
 *   - the verifier rejects what the front end or a pass made, or the compiler reports a defect of itself
 *   - a diagnostic without a message, without a hint or, if it has a place, without its source line
 *   - the same text compiled twice gives different C
 *
 * With PYPTO_FUZZ_EMIT=<folder> the C of every text that compiles is written there, for compilers to
 * look at. */
#include "codegen/emit.h"
#include "frontend/frontend.h"
#include "passes/passes.h"
#include "script.h"

#include "base/diag.h"
#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void __attribute__((noreturn)) finding(const char *what, const pypto_status *status)
{
    char *text = pypto_status_text(status);
    fprintf(stderr, "FINDING: %s\n%s\n", what, text == NULL ? "" : text);
    free(text);
    abort();
}

/* Diagnostics of passes have no source line: the compile driver adds it. */
static void inspect(pypto_status *status, bool of_passes)
{
    const char *later = diag_lookup(DIAG_LATER)->code;
    for (const pypto_diagnostic *d = status->diagnostics; d != NULL; d = d->next) {
        if (strcmp(d->code, diag_lookup(DIAG_VERIFIER)->code) == 0 ||
            strcmp(d->code, diag_lookup(DIAG_INTERNAL)->code) == 0)
            finding("an internal error", status);
        if (d->message == NULL || d->message[0] == '\0' || strstr(d->message, "(null)") != NULL)
            finding("a diagnostic without a message", status);
        if ((d->hint == NULL || d->hint[0] == '\0') && strcmp(d->code, later) != 0)
            finding("a diagnostic without a hint", status);
        if (d->span.line > 0 && d->source == NULL && !of_passes)
            finding("a diagnostic without its source line", status);
    }
    char *text = pypto_status_text(status);
    free(text);
    pypto_status_clear(status);
}

/* Samples of arguments for an entry, drawn from the text's hash: what a call would bring. */
static int32_t draw_arguments(uint64_t bits, frontend_arg args[4])
{
    static const frontend_arg samples[] = {
        {.kind = FRONTEND_TENSOR, .dtype = PYPTO_FP32, .ndim = 3, .shape = {2, 4, 8}},
        {.kind = FRONTEND_TENSOR, .dtype = PYPTO_INT32, .ndim = 2, .shape = {4, 8}},
        {.kind = FRONTEND_INT, .integer = 3},
        {.kind = FRONTEND_FLOAT, .real = 0.5},
        {.kind = FRONTEND_BOOL, .integer = 1},
        {.kind = FRONTEND_OPEN},
        {.kind = FRONTEND_RUNTIME},
        {.kind = FRONTEND_TENSOR, .dtype = PYPTO_FP32, .ndim = 3, .shape = {0, 4, 8}},
    };
    int32_t count = (int32_t)(bits % 5);
    for (int32_t i = 0; i < count && i < 4; i++)
        args[i] = samples[bits >> (8 + 8 * i) & 7];
    return count;
}

static void write_c(const text *c, const uint8_t *data, size_t size)
{
    const char *folder = getenv("PYPTO_FUZZ_EMIT");
    if (folder == NULL)
        return;
    char hex[33];
    char path[4096];
    hash_hex(hash_of(data, (int64_t)size), hex);
    snprintf(path, sizeof path, "%s/%s.c", folder, hex);
    FILE *file = fopen(path, "w");
    if (file == NULL || fwrite(c->bytes, 1, (size_t)c->length, file) != (size_t)c->length ||
        fclose(file) != 0)
        abort();
}

/* Lowers, runs the passes, prints; false when the text ends in a diagnostic. */
static bool compile(arena *a, script *s, int32_t entry, const frontend_arg *args, int32_t count,
                    const char *target, text *c)
{
    frontend_embedder embedder = script_embedder(s);
    frontend_result result = {0};
    pypto_status status = frontend_lower(a, &embedder, entry, args, count, &result);
    bool lowered = status_ok(status);
    if (lowered)
        status = passes_run(result.program, platform_find(target), NULL);
    bool good = status_ok(status);
    if (good) {
        text ir = {.a = a};
        ir_print_program(&ir, result.program);
        emit_program(c, result.program, NULL);
    }
    inspect(&status, lowered);
    return good;
}

static void compile_entry(arena *a, script *s, int32_t entry, const uint8_t *data, size_t size)
{
    uint64_t bits = hash_of(data, (int64_t)size).low;
    frontend_arg args[4];
    int32_t count = draw_arguments(bits, args);
    text unused = {.a = a};
    (void)compile(a, s, entry, args, count, "a2a3", &unused);

    text first = {.a = a};
    text second = {.a = a};
    bool good = compile(a, s, entry, NULL, 0, "cpu", &first);
    if (!good)
        return;
    (void)compile(a, s, entry, NULL, 0, "cpu", &second);
    if (first.length != second.length ||
        memcmp(first.bytes, second.bytes, (size_t)first.length) != 0)
        finding("the same text gives different C", &(pypto_status){0});
    write_c(&first, data, size);
}

static void try_text(arena *a, const uint8_t *data, size_t size)
{
    script *s = script_try(a, "fuzz.py", arena_strndup(a, (const char *)data, (int64_t)size));
    if (s == NULL)
        return;
    int32_t count = script_function_count(s);
    frontend_embedder embedder = script_embedder(s);
    for (int32_t i = 0; i < count; i++) {
        pypto_status status = frontend_check(a, &embedder, &i, 1);
        inspect(&status, false);
    }
    for (int32_t i = 0; i < count; i++) {
        pypto_status status = STATUS_OK;
        const frontend_source *source = embedder.source(embedder.context, a, i, &status);
        if (source->plane == PLD_PLANE_HOST)
            compile_entry(a, s, i, data, size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena *a = arena_create();
    jmp_buf exhausted;
    if (a == NULL)
        return 0;
    if (setjmp(exhausted) == 0) {
        arena_set_recovery(a, &exhausted);
        try_text(a, data, size);
    }
    arena_destroy(a);
    return 0;
}
