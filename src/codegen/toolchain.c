/* Finds and runs the C compiler.
 *
 * Which one: $PYPTO_CC, else $CC, else cc, gcc, clang, whichever is found first. Both variables
 * may hold arguments ("ccache gcc", "gcc-13 -m64").
 *
 * Flags, and why each:
 *   -std=c17 -O3 -march=native    loops over tiles become vector code for this very machine
 *   -ffp-contract=off             each operation of the DSL rounds by itself
 *   -fno-math-errno               square roots and rounding become instructions
 *   -fno-trapping-math            comparisons may be evaluated early: choices become vector code
 *   -fwrapv                       integers wrap
 *   -fno-strict-aliasing          tiles of several types share scratch memory over time
 *   -fPIC -fno-plt -shared        a shared object whose calls of libpypto go straight to it
 *   -Wl,-z,now                    all of them bound when it is loaded, not on a fiber's small stack
 *   -nostdlib                     it needs nothing but libpypto and libc, which are loaded already
 *   -g1                           debuggers and profilers see script lines; costs 1 or 2 ms
 *   -pipe                         the assembler runs beside the compiler
 *   -fno-gcse -fno-tree-vrp --param=max-jump-thread-duplication-stmts=0
 *   --param=max-fields-for-field-sensitive=0
 *                                 for gcc, whose time for a long function grows with the square of
 *                                 its branches and views in these passes; kernels gain nothing from
 *                                 them: loops over tiles have constant bounds, and tiles constant
 *                                 distances. Clang knows and ignores these spellings, unlike
 *                                 -fno-thread-jumps.
 *   -w                            warnings about generated code help nobody
 *
 * Nothing is run to find out about a compiler: its path, size and modification time stand for its
 * version. The identity also covers flags, device headers (by content) and processor.
 *
 * Linking with the full path of libpypto.so.0 makes the object say DT_NEEDED libpypto.so.0,
 * without a path; the library that is loaded already satisfies it by that name. */
#include "codegen/toolchain.h"

#include "base/diag.h"
#include "base/os.h"
#include "base/settings.h"
#include "base/text.h"
#include "base/vec.h"

#include <pypto/types.h>

#include <stdlib.h>
#include <string.h>

static const char *const compile_flags[] = {
    "-std=c17",
    "-O3",
#if defined(__aarch64__)
    "-mcpu=native",
#elif defined(__x86_64__)
    "-march=native",
#endif
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fPIC",
    "-fno-plt",
    "-fno-gcse",
    "-fno-tree-vrp",
    "--param=max-fields-for-field-sensitive=0",
    "--param=max-jump-thread-duplication-stmts=0",
    "-g1",
    "-pipe",
    "-w",
    "-shared",
    "-nostdlib",
    "-Wl,-z,now",
};

/* The headers that an emitted file includes. */
static const char *const device_headers[] = {
    "program.h",   "pld.h",      "pld_math.h", "pld_collectives.h",
    "pld_small.h", "pld_tile.h", "types.h"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char install_hint[] =
    "install one (apt-get install gcc), or set PYPTO_CC to the path of a C compiler";

typedef VEC(const char *) words;

/* Splits at blanks. */
static words split(arena *a, const char *string)
{
    words list = {0};
    for (const char *p = string; *p != '\0';) {
        p += strspn(p, " \t");
        size_t length = strcspn(p, " \t");
        if (length > 0)
            vec_push(a, &list, arena_strndup(a, p, (int64_t)length));
        p += length;
    }
    return list;
}

/* The command named by a variable; its first word replaced by the full path. False when it names
 * none that exists. */
static bool command_of(arena *a, const char *string, words *command)
{
    *command = split(a, string);
    if (command->count == 0)
        return false;
    const char *path = os_find_program(a, command->items[0]);
    command->items[0] = path;
    return path != NULL;
}

static pypto_status find_command(arena *a, words *command)
{
    static const char *const names[] = {"cc", "gcc", "clang"};
    const char *chosen = setting_text(SETTING_CC);
    if (chosen[0] != '\0') {
        if (command_of(a, chosen, command))
            return STATUS_OK;
        return diag_status(DIAG_NO_COMPILER, install_hint,
                           "there is no C compiler '%s', which PYPTO_CC names", chosen);
    }
    const char *usual = getenv("CC");
    if (usual != NULL && command_of(a, usual, command))
        return STATUS_OK;
    for (size_t i = 0; i < COUNT(names); i++)
        if (command_of(a, names[i], command))
            return STATUS_OK;
    return diag_status(
        DIAG_NO_COMPILER, install_hint,
        "no C compiler was found: programs are compiled to C, and neither cc nor gcc nor "
        "clang is in PATH");
}

/* ---- headers and library ---- */

static bool has_headers(arena *a, const char *directory)
{
    return os_file_exists(arena_printf(a, "%s/pypto/pld.h", directory));
}

static const char *find_headers(arena *a)
{
    const char *chosen = setting_text(SETTING_INCLUDE_DIR);
    if (chosen[0] != '\0')
        return chosen;
    const char *library = os_library_dir(a);
    if (library != NULL) {
        const char *installed = arena_printf(a, "%s/../include", library);
        if (has_headers(a, installed))
            return installed;
    }
    /* Run from the build folder. */
    return has_headers(a, PYPTO_BUILD_INCLUDE_DIR) ? PYPTO_BUILD_INCLUDE_DIR : NULL;
}

static const char *find_library(arena *a)
{
    const char *path = os_library_path(a);
    if (path == NULL)
        return NULL;
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    return strncmp(name, "libpypto.so", strlen("libpypto.so")) == 0 ? path : NULL;
}

/* ---- identity ---- */

static void hash_compiler(hasher *h, const char *path)
{
    os_facts facts = {0};
    (void)os_file_facts(path, &facts);
    hasher_string(h, path);
    hasher_int(h, facts.bytes);
    hasher_int(h, facts.modified_ns);
}

static pypto_status hash_headers(arena *a, hasher *h, const char *directory)
{
    for (size_t i = 0; i < COUNT(device_headers); i++) {
        const char *path = arena_printf(a, "%s/pypto/%s", directory, device_headers[i]);
        int64_t bytes;
        const char *content = os_read_file(a, path, &bytes);
        if (content == NULL)
            return diag_status(DIAG_NO_COMPILER, "install pypto again, or set PYPTO_INCLUDE_DIR",
                               "the header %s, which compiled programs include, cannot be read",
                               path);
        hasher_bytes(h, content, bytes);
    }
    return STATUS_OK;
}

pypto_status toolchain_headers(arena *a, toolchain *t)
{
    *t = (toolchain){.headers = find_headers(a)};
    if (t->headers != NULL)
        return STATUS_OK;
    return diag_status(
        DIAG_NO_COMPILER, "install pypto again, or set PYPTO_INCLUDE_DIR",
        "the headers that compiled programs include, pypto/pld.h and others, cannot be found");
}

pypto_status toolchain_find(arena *a, toolchain *t)
{
    *t = (toolchain){0};
    words command = {0};
    pypto_status status = find_command(a, &command);
    if (!status_ok(status) || command.count == 0)
        return status;
    status = toolchain_headers(a, t);
    if (!status_ok(status))
        return status;
    const char *headers = t->headers;
    t->compiler = command.items[0];
    t->library = find_library(a);
    for (size_t i = 0; i < COUNT(compile_flags); i++)
        vec_push(a, &command, compile_flags[i]);

    hasher h;
    hasher_init(&h);
    hasher_string(&h, PYPTO_VERSION);
    hash_compiler(&h, t->compiler);
    for (int64_t i = 1; i < command.count; i++)
        hasher_string(&h, command.items[i]);
    hasher_string(&h, t->library != NULL ? "linked" : "static");
    cpu_features(a, &h);
    status = hash_headers(a, &h, headers);
    t->identity = hasher_finish(&h);

    vec_push(a, &command, "-I");
    vec_push(a, &command, headers);
    vec_push(a, &command, NULL);
    t->command = command.items;
    return status;
}

/* ---- running ---- */

#define QUOTED_LINES 12

/* The first lines of the compiler's output. */
static const char *first_lines(arena *a, const char *output)
{
    const char *end = output;
    for (int i = 0; i < QUOTED_LINES && *end != '\0'; i++) {
        const char *newline = strchr(end, '\n');
        if (newline == NULL)
            return output;
        end = newline + 1;
    }
    return end > output && *end != '\0' ? arena_printf(a, "%.*s...", (int)(end - output), output)
                                        : output;
}

/* What programs print when the machine refuses them something, and what to do about it. Compilers run
 * programs of their own, so the text says more than the exit code. */
static const struct {
    const char *said;
    const char *hint;
} refusals[] = {
    {"No space left on device", "make room in the cache folder and in TMPDIR"},
    {"Disk quota exceeded", "make room in the cache folder and in TMPDIR"},
    {"File size limit exceeded", "raise the limit: ulimit -f"},
    {"File too large", "raise the limit: ulimit -f"},
    {"Read-only file system", "set TMPDIR to a folder that you may write to"},
    {"Resource temporarily unavailable", "too many processes: end some, or raise ulimit -u"},
    {"Too many open files", "raise the limit: ulimit -n"},
    {"Cannot allocate memory", "the compiler needs more memory than there is"},
    {"memory exhausted", "the compiler needs more memory than there is"},
    {"Killed signal terminated program", "the compiler needs more memory than there is"},
    {"collect2: fatal error: cannot find", "set PATH, by which the compiler finds the linker"},
    {"Permission denied", "check the rights on the compiler, the cache folder and TMPDIR"},
    {"Input/output error", "check the disk"},
};

/* The line of `output` that holds `at`. */
static const char *line_around(arena *a, const char *output, const char *at)
{
    while (at > output && at[-1] != '\n')
        at--;
    return arena_strndup(a, at, (int64_t)strcspn(at, "\n"));
}

/* The error of a compiler that failed because of the machine; STATUS_OK when it did not. */
static pypto_status refused(arena *a, const toolchain *t, const char *output, int32_t exit_code)
{
    for (size_t i = 0; i < COUNT(refusals); i++) {
        const char *at = strstr(output, refusals[i].said);
        if (at != NULL)
            return diag_status(DIAG_COMPILER_FAILED, refusals[i].hint,
                               "%s could not do its work: %s", t->compiler,
                               line_around(a, output, at));
    }
    if (exit_code > 128)
        return diag_status(DIAG_COMPILER_FAILED,
                           "run it again; the system kills programs when memory runs out",
                           "%s was ended by signal %d", t->compiler, exit_code - 128);
    return STATUS_OK;
}

pypto_status toolchain_run(arena *a, const toolchain *t, const char *c_path,
                           const char *object_path, const char *kept, bool edited,
                           const os_interrupts *interrupts)
{
    VEC(const char *) argv = {0};
    for (int64_t i = 0; t->command[i] != NULL; i++)
        vec_push(a, &argv, t->command[i]);
    vec_push(a, &argv, "-o");
    vec_push(a, &argv, object_path);
    vec_push(a, &argv, c_path);
    if (t->library != NULL)
        vec_push(a, &argv, t->library);
    vec_push(a, &argv, NULL);

    char *output = NULL;
    int32_t exit_code = 0;
    pypto_status status = os_run(a, argv.items, interrupts, &output, &exit_code);
    if (!status_ok(status))
        return status;
    if (exit_code == 0 || (exit_code < 0 && os_file_exists(object_path)))
        return STATUS_OK;

    status = refused(a, t, output, exit_code);
    if (!status_ok(status))
        return status;
    status = diag_status(
        DIAG_COMPILER_FAILED,
        edited ? "correct what was edited there, or compile the program again"
               : "please report this, with the script; PYPTO_CC chooses another compiler",
        "%s failed on %s (exit code %d)", t->compiler,
        edited ? "a program.c that was edited, or has lost its program.sum" : "the emitted C",
        exit_code);
    diag_note(&status, "%s", first_lines(a, output));
    diag_note(&status, "the C file is %s", kept);
    return status;
}
