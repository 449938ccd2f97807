/* The compile driver and its cache: hits and misses on both levels, what does not fit the cache,
 * compilers that are missing or fail, processes that compile at once, exhausted memory; and the
 * manifest's text. */
#include "child.h"
#include "codegen/compile.h"
#include "codegen/manifest.h"
#include "codegen/toolchain.h"
#include "frontend_check.h"

#include "base/hash.h"
#include "base/os.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A program whose shapes come from the module's constant N. */
#define SEED(size)                                                                    \
    "import pypto.language as pl\n"                                                   \
    "import pypto.language.distributed as pld\n"                                      \
    "NR = pl.dynamic('NR')\n"                                                         \
    "N = " size "\n"                                                                  \
    "DT = pl.FP32\n"                                                                  \
    "@pl.jit.incore\n"                                                                \
    "def step(a: pl.Tensor[[1, N], DT], b: pl.Out[pl.Tensor[[1, N], DT]]):\n"         \
    "    t = pl.load(a, [0, 0], [1, N])\n"                                            \
    "    return pl.store(pl.add(t, 1.0), [0, 0], b)\n"                                \
    "@pl.jit\n"                                                                       \
    "def chip(a: pl.Tensor[[1, N], DT], b: pl.Out[pl.Tensor[[1, N], DT]]):\n"         \
    "    return step(a, b)\n"                                                         \
    "@pl.jit.host\n"                                                                  \
    "def main(x: pl.Tensor[[NR, 1, N], DT], y: pl.Out[pl.Tensor[[NR, 1, N], DT]]):\n" \
    "    for r in pl.range(pld.world_size()):\n"                                      \
    "        chip(x[r], y[r], device=r)\n"                                            \
    "    return y\n"

/* ---- surroundings: a folder with an empty cache for each test ---- */

static char *folder;

static char *below(const char *name)
{
    char *path = alloc_printf("%s/%s", folder, name);
    assert_non_null(path);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    char made[] = "/tmp/pypto-test-compile-XXXXXX";
    if (mkdtemp(made) == NULL)
        return -1;
    folder = alloc_strdup(made);
    char *cache_dir = below("cache");
    char *private_dir = below("tmp");
    setenv("PYPTO_CACHE_DIR", cache_dir, 1);
    setenv("TMPDIR", private_dir, 1);
    mkdir(private_dir, 0700);
    unsetenv("PYPTO_CC");
    unsetenv("PYPTO_DUMP");
    alloc_free(cache_dir);
    alloc_free(private_dir);
    return 0;
}

static int drop_folder(void **state)
{
    (void)state;
    os_remove_tree(folder);
    alloc_free(folder);
    unsetenv("PYPTO_CC");
    return 0;
}

/* Entries of a folder below ours; -1 when it does not exist. */
static int entries(const char *name)
{
    char *path = below(name);
    struct stat info;
    int count = -1;
    if (stat(path, &info) == 0) {
        char *command = alloc_printf("ls -A %s | wc -l", path);
        FILE *out = popen(command, "r");
        assert_int_equal(fscanf(out, "%d", &count), 1);
        pclose(out);
        alloc_free(command);
    }
    alloc_free(path);
    return count;
}

/* ---- compiling ---- */

typedef struct project {
    arena *a;
    script *module;
    frontend_embedder embedder;
    frontend_arg args[2];
    compile_request request;
} project;

static void set_shape(project *p, int64_t ranks, int64_t size, pypto_dtype dtype)
{
    for (int i = 0; i < 2; i++)
        p->args[i] = (frontend_arg){
            .kind = FRONTEND_TENSOR, .dtype = dtype, .ndim = 3, .shape = {ranks, 1, size}};
}

static void open_project(project *p, const char *source, int64_t size)
{
    *p = (project){.a = arena_create()};
    assert_non_null(p->a);
    arena_set_recovery(p->a, &memory_exhausted);
    p->module = script_parse(p->a, "main.py", source);
    p->embedder = script_embedder(p->module);
    set_shape(p, 2, size, PYPTO_FP32);
    p->request = (compile_request){.embedder = &p->embedder,
                                   .entry = script_function(p->module, "main"),
                                   .entry_digest = "digest of main",
                                   .entry_name = "main",
                                   .args = p->args,
                                   .arg_count = 2,
                                   .platform = "a2a3"};
}

static void expect_compiled(pypto_status status)
{
    if (status_ok(status)) {
        pypto_status_clear(&status); /* a warning */
        return;
    }
    char *rendered = pypto_status_text(&status);
    print_message("%s\n", rendered);
    free(rendered);
    pypto_status_clear(&status);
    fail_msg("it does not compile");
}

/* Compiles SEED(size) and says which levels hit. */
static void compile_once(const char *source, int64_t size, bool *front, bool *back)
{
    project p;
    compile_output output;
    open_project(&p, source, size);
    expect_compiled(compile_program(&p.request, &output));
    assert_true(os_file_exists(output.object_path));
    assert_false(output.temporary);
    assert_true(compile_still_serves(&output, &p.request));
    *front = output.front_hit;
    *back = output.back_hit;
    compile_output_clear(&output);
    arena_destroy(p.a);
}

static void expect_hits(const char *source, int64_t size, bool front, bool back)
{
    bool front_hit;
    bool back_hit;
    compile_once(source, size, &front_hit, &back_hit);
    assert_int_equal(front_hit, front);
    assert_int_equal(back_hit, back);
}

static void the_second_compile_is_a_hit(void **state)
{
    (void)state;
    expect_hits(SEED("8"), 8, false, false);
    expect_hits(SEED("8"), 8, true, true);
    assert_int_equal(entries("cache/v1/object"), 1);
    assert_int_equal(entries("cache/v1/front"), 1);
    assert_int_equal(entries("tmp"), 0);
    char *root = below("cache/v1");
    struct stat info;
    assert_int_equal(stat(root, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    alloc_free(root);
}

static void a_changed_constant_is_a_miss(void **state)
{
    (void)state;
    expect_hits(SEED("8"), 8, false, false);
    expect_hits(SEED("9"), 9, false, false);
    /* Both variants of the entry are remembered. */
    expect_hits(SEED("8"), 8, true, true);
    expect_hits(SEED("9"), 9, true, true);
    assert_int_equal(entries("cache/v1/front"), 1);
    assert_int_equal(entries("cache/v1/object"), 2);
}

static void each_level_hits_by_itself(void **state)
{
    (void)state;
    expect_hits(SEED("8"), 8, false, false);
    char *front = below("cache/v1/front");
    char *object = below("cache/v1/object");
    os_remove_tree(front);
    expect_hits(SEED("8"), 8, false, true);
    expect_hits(SEED("8"), 8, true, true);
    os_remove_tree(object);
    expect_hits(SEED("8"), 8, false, false);
    expect_hits(SEED("8"), 8, true, true);
    alloc_free(front);
    alloc_free(object);
}

/* Those of a program that is lowered for the compile, not of one that the cache has; the last is program.ir. */
static void stages_are_kept_when_asked_for(void **state)
{
    (void)state;
    project p;
    compile_output output;
    compile_text texts;
    open_project(&p, SEED("8"), 8);
    p.request.stages = true;
    expect_compiled(compile_lower(&p.request, &texts));
    expect_compiled(compile_program(&p.request, &output));
    assert_true(texts.stages.count > 1);
    assert_int_equal(output.stages.count, texts.stages.count);
    for (int32_t i = 0; i < texts.stages.count; i++) {
        assert_string_equal(output.stages.items[i].name, texts.stages.items[i].name);
        assert_string_equal(output.stages.items[i].ir, texts.stages.items[i].ir);
    }
    assert_string_equal(output.stages.items[output.stages.count - 1].ir, texts.ir);
    compile_output_clear(&output);
    compile_text_clear(&texts);
    expect_compiled(compile_program(&p.request, &output));
    assert_true(output.front_hit);
    assert_int_equal(output.stages.count, 0);
    compile_output_clear(&output);
    p.request.stages = false;
    expect_compiled(compile_lower(&p.request, &texts));
    assert_int_equal(texts.stages.count, 0);
    compile_text_clear(&texts);
    arena_destroy(p.a);
}

static void only_dynamic_extents_are_free(void **state)
{
    (void)state;
    project p;
    compile_output output;
    open_project(&p, SEED("8"), 8);
    expect_compiled(compile_program(&p.request, &output));
    set_shape(&p, 7, 8, PYPTO_FP32);
    assert_true(compile_still_serves(&output, &p.request));
    set_shape(&p, 2, 9, PYPTO_FP32);
    assert_false(compile_still_serves(&output, &p.request));
    set_shape(&p, 2, 8, PYPTO_INT32);
    assert_false(compile_still_serves(&output, &p.request));
    set_shape(&p, 2, 8, PYPTO_FP32);
    p.request.arg_count = 1;
    assert_false(compile_still_serves(&output, &p.request));
    /* Compiled from samples: does not serve who has none. */
    p.request.args = NULL;
    p.request.arg_count = 0;
    assert_false(compile_still_serves(&output, &p.request));
    compile_output_clear(&output);

    expect_compiled(compile_program(&p.request, &output));
    assert_true(compile_still_serves(&output, &p.request));
    compile_output_clear(&output);
    arena_destroy(p.a);
}

static void another_platform_is_another_entry(void **state)
{
    (void)state;
    project p;
    compile_output output;
    open_project(&p, SEED("8"), 8);
    expect_compiled(compile_program(&p.request, &output));
    compile_output_clear(&output);
    p.request.platform = "cpu";
    expect_compiled(compile_program(&p.request, &output));
    assert_false(output.front_hit);
    assert_true(output.back_hit); /* the same C */
    compile_output_clear(&output);
    p.request.platform = "a9";
    pypto_status status = compile_program(&p.request, &output);
    assert_string_equal(status.diagnostics->code, "PYPTO-C304");
    assert_non_null(strstr(status.diagnostics->message, "Invalid platform 'a9'"));
    pypto_status_clear(&status);
    arena_destroy(p.a);
}

/* Puts `content` in the place of the only manifest. */
static void replace_manifest(const char *content)
{
    char *path = below("cache/v1/front");
    char *command = alloc_printf("for f in %s/*; do printf '%%s' '%s' > $f; done", path, content);
    assert_int_equal(system(command), 0);
    alloc_free(command);
    alloc_free(path);
}

static void corrupt_manifests_are_rewritten(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "pypto-front 1\n", "garbage",
                                      "pypto-front 1\nvariant x\n",
                                      "pypto-front 1\nend 00000000000000000000000000000000\n"};
    expect_hits(SEED("8"), 8, false, false);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        replace_manifest(bad[i]);
        expect_hits(SEED("8"), 8, false, true);
        expect_hits(SEED("8"), 8, true, true);
    }
}

static void an_object_without_content_is_made_again(void **state)
{
    (void)state;
    expect_hits(SEED("8"), 8, false, false);
    char *object = below("cache/v1/object");
    char *command = alloc_printf("for f in %s/*/program.so; do : > $f; done", object);
    assert_int_equal(system(command), 0);
    expect_hits(SEED("8"), 8, false, false);
    expect_hits(SEED("8"), 8, true, true);
    alloc_free(command);
    alloc_free(object);
}

/* Runs a shell command in the folder of objects. */
static void in_objects(const char *commands)
{
    char *object = below("cache/v1/object");
    char *command = alloc_printf("cd %s && { %s; }", object, commands);
    assert_int_equal(system(command), 0);
    alloc_free(command);
    alloc_free(object);
}

/* Objects that would crash whoever loads them. */
static void damaged_objects_are_made_again(void **state)
{
    (void)state;
    static const char *const damage[] = {
        "f=$(echo */program.so); truncate -s $(($(stat -c %s $f) * 6 / 10)) $f",
        "truncate -s 100 */program.so",
        "printf x | dd of=$(echo */program.so) bs=1 seek=5000 conv=notrunc 2> /dev/null",
        "cp /bin/true $(echo */program.so)",
        "rm */program.so",
        "rm */program.sum",
        "echo > $(echo */program.sum)",
    };
    expect_hits(SEED("8"), 8, false, false);
    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        in_objects(damage[i]);
        expect_hits(SEED("8"), 8, false, false);
        expect_hits(SEED("8"), 8, true, true);
        assert_int_equal(entries("cache/v1/object"), 1);
    }
}

static void the_cache_is_bounded(void **state)
{
    (void)state;
    expect_hits(SEED("8"), 8, false, false);
    in_objects("touch -d '3 days ago' *; "
               "for i in $(seq 1000); do mkdir old$i; done; touch -d '2 days ago' old*; "
               "mkdir pypto-crashed pypto-building; touch -d '2 days ago' pypto-crashed");
    /* A hit makes it the youngest but for what follows. */
    expect_hits(SEED("8"), 8, true, true);
    expect_hits(SEED("9"), 9, false, false);
    assert_int_equal(entries("cache/v1/object"), 1000 + 1); /* and pypto-building */
    in_objects("test -d pypto-building && ! test -d pypto-crashed");
    expect_hits(SEED("8"), 8, true, true);
    expect_hits(SEED("9"), 9, true, true);
    /* What is younger than an hour stays, though there is too much of it. */
    in_objects("for i in $(seq 10); do mkdir young$i; done; touch old*");
    expect_hits(SEED("10"), 10, false, false);
    assert_int_equal(entries("cache/v1/object"), 1000 + 1 + 10 + 1);
}

/* ---- caches that cannot be used ---- */

static void compiles_privately(void)
{
    project p;
    compile_output output;
    open_project(&p, SEED("8"), 8);
    pypto_status status = compile_program(&p.request, &output);
    assert_non_null(status.diagnostics);
    assert_string_equal(status.diagnostics->code, "PYPTO-C308");
    expect_compiled(status);
    assert_true(output.temporary);
    assert_true(os_file_exists(output.object_path));
    assert_int_equal(entries("tmp"), 1);
    compile_output_clear(&output);
    assert_int_equal(entries("tmp"), 0);
    arena_destroy(p.a);
}

static void a_cache_that_cannot_be_made_is_done_without(void **state)
{
    (void)state;
    setenv("PYPTO_CACHE_DIR", "/dev/null/cache", 1);
    compiles_privately();
}

static void a_cache_that_others_may_write_is_refused(void **state)
{
    (void)state;
    char *root = below("cache/v1");
    char *cache_dir = below("cache");
    mkdir(cache_dir, 0755);
    mkdir(root, 0700);
    assert_int_equal(chmod(root, 0770), 0);
    compiles_privately();
    assert_int_equal(chmod(root, 0700), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(root, 12345, 0), 0);
        compiles_privately();
    }
    alloc_free(root);
    alloc_free(cache_dir);
}

static void a_read_only_cache_still_hits(void **state)
{
    (void)state;
    expect_hits(SEED("8"), 8, false, false);
    /* For root, nothing is read-only: a file where the folder of objects should be has the same
     * effect. */
    char *object = below("cache/v1/object");
    char *front = below("cache/v1/front");
    assert_int_equal(chmod(object, 0500), 0);
    assert_int_equal(chmod(front, 0500), 0);
    expect_hits(SEED("8"), 8, true, true);
    assert_int_equal(chmod(object, 0700), 0);
    assert_int_equal(chmod(front, 0700), 0);
    os_remove_tree(object);
    FILE *blocker = fopen(object, "w");
    assert_non_null(blocker);
    fclose(blocker);
    compiles_privately();
    alloc_free(object);
    alloc_free(front);
}

/* ---- compilers ---- */

static pypto_status compile_with(const char *compiler)
{
    project p;
    compile_output output;
    setenv("PYPTO_CC", compiler, 1);
    open_project(&p, SEED("8"), 8);
    pypto_status status = compile_program(&p.request, &output);
    compile_output_clear(&output);
    arena_destroy(p.a);
    return status;
}

static void a_missing_compiler_is_explained(void **state)
{
    (void)state;
    pypto_status status = compile_with("/no/such/cc -O9");
    assert_string_equal(status.diagnostics->code, "PYPTO-C301");
    assert_non_null(strstr(status.diagnostics->message, "/no/such/cc"));
    assert_non_null(strstr(status.diagnostics->hint, "apt-get install gcc"));
    assert_non_null(strstr(status.diagnostics->hint, "PYPTO_CC"));
    pypto_status_clear(&status);

    char *path = alloc_strdup(getenv("PATH"));
    setenv("PATH", "/no/such/folder", 1);
    unsetenv("CC");
    status = compile_with("");
    setenv("PATH", path, 1);
    alloc_free(path);
    assert_string_equal(status.diagnostics->code, "PYPTO-C301");
    assert_non_null(strstr(status.diagnostics->message, "no C compiler was found"));
    pypto_status_clear(&status);
}

static void a_failing_compiler_leaves_the_c_file(void **state)
{
    (void)state;
    pypto_status status = compile_with("gcc -fno-such-option");
    const pypto_diagnostic *d = status.diagnostics;
    assert_string_equal(d->code, "PYPTO-C302");
    assert_non_null(strstr(d->note, "-fno-such-option"));
    const char *kept = strstr(d->note, "the C file is ");
    assert_non_null(kept);
    char *path = alloc_strdup(kept + strlen("the C file is "));
    path[strcspn(path, "\n")] = '\0';
    assert_true(os_file_exists(path));
    alloc_free(path);
    pypto_status_clear(&status);
    assert_int_equal(entries("cache/v1/failed"), 1);
    assert_int_equal(entries("cache/v1/object"), 0);
    /* Once more: it takes the place of the first. */
    status = compile_with("gcc -fno-such-option");
    pypto_status_clear(&status);
    assert_int_equal(entries("cache/v1/failed"), 1);
}

/* A compiler that fails because of the machine is not asked to be reported. */
static void a_machine_that_fails_the_compiler_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        const char *message;
    } cases[] = {
        {"echo 'as: /tmp/x.o: No space left on device' >&2; exit 1", "No space left on device"},
        {"echo 'gcc: fatal error: cannot execute cc1: vfork: Resource temporarily unavailable' >&2; "
         "exit 1",
         "Resource temporarily unavailable"},
        {"echo 'Cannot create temporary file in /tmp/: Permission denied' >&2; exit 1",
         "Permission denied"},
        {"echo 'gcc: fatal error: Killed signal terminated program cc1' >&2; exit 1",
         "Killed signal terminated program"},
        {"echo 'virtual memory exhausted: Cannot allocate memory' >&2; exit 1",
         "Cannot allocate memory"},
        {"kill -9 $$", "signal 9"},
    };
    char *path = below("compiler");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "#!/bin/sh\n%s\n", cases[i].script);
        fclose(file);
        assert_int_equal(chmod(path, 0700), 0);
        pypto_status status = compile_with(path);
        assert_false(status_ok(status));
        const pypto_diagnostic *d = status.diagnostics;
        assert_string_equal(d->code, "PYPTO-C302");
        if (strstr(d->message, cases[i].message) == NULL)
            fail_msg("'%s' does not name '%s'", d->message, cases[i].message);
        assert_null(strstr(d->hint, "report"));
        pypto_status_clear(&status);
    }
    alloc_free(path);
}

static void another_compiler_is_another_object(void **state)
{
    (void)state;
    setenv("PYPTO_CC", "gcc", 1);
    expect_hits(SEED("8"), 8, false, false);
    setenv("PYPTO_CC", "gcc -DANOTHER", 1);
    expect_hits(SEED("8"), 8, false, false);
    setenv("PYPTO_CC", "gcc", 1);
    expect_hits(SEED("8"), 8, true, true);
}

/* What compile_program() writes to standard error. */
static const char *dumped(project *p, const char *what)
{
    char *path = below("stderr");
    int kept = dup(2);
    assert_non_null(freopen(path, "w", stderr));
    setenv("PYPTO_DUMP", what, 1);
    compile_output output;
    pypto_status status = compile_program(&p->request, &output);
    unsetenv("PYPTO_DUMP");
    fflush(stderr);
    assert_true(dup2(kept, 2) == 2);
    close(kept);
    expect_compiled(status);
    compile_output_clear(&output);
    const char *content = os_read_file(p->a, path, NULL);
    alloc_free(path);
    return content;
}

static void dumps_show_hits_too(void **state)
{
    (void)state;
    project p;
    open_project(&p, SEED("8"), 8);
    for (int round = 0; round < 2; round++) {
        const char *both = dumped(&p, "ir,c");
        assert_non_null(strstr(both, "program main\n"));
        assert_non_null(strstr(both, "#include <pypto/program.h>"));
        const char *one = dumped(&p, "c");
        assert_null(strstr(one, "program main\n"));
        assert_non_null(strstr(one, "#include <pypto/program.h>"));
    }
    assert_string_equal(dumped(&p, ""), "");
    arena_destroy(p.a);
}

/* ---- errors of the program ---- */

static void errors_of_passes_show_their_line(void **state)
{
    (void)state;
    project p;
    compile_output output;
    open_project(&p, SEED("100000"), 100000);
    pypto_status status = compile_program(&p.request, &output);
    assert_string_equal(status.diagnostics->code, "PYPTO-C306");
    assert_non_null(strstr(status.diagnostics->source, "def step("));
    assert_null(output.object_path);
    pypto_status_clear(&status);
    arena_destroy(p.a);
    assert_int_equal(entries("cache/v1/front"), -1);
}

/* ---- several at once ---- */

static int run_compile(void)
{
    project p;
    compile_output output;
    open_project(&p, SEED("8"), 8);
    pypto_status status = compile_program(&p.request, &output);
    int code = status_ok(status) && os_file_exists(output.object_path) && !output.temporary ? 0 : 1;
    compile_output_clear(&output);
    pypto_status_clear(&status);
    arena_destroy(p.a);
    return code;
}

static void processes_compile_at_once(void **state)
{
    (void)state;
    pid_t children[3];
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            _exit(run_compile());
    }
    for (int i = 0; i < 3; i++) {
        int result = -1;
        assert_int_equal(waitpid(children[i], &result, 0), children[i]);
        assert_int_equal(result, 0);
    }
    assert_int_equal(entries("cache/v1/object"), 1);
    assert_int_equal(entries("cache/v1/front"), 1);
    assert_int_equal(entries("tmp"), 0);
    expect_hits(SEED("8"), 8, true, true);
}

/* ---- waiting, memory ---- */

static void count_waiting(void *context, bool begins)
{
    int *balance = context;
    balance[0] += begins ? 1 : -1;
    balance[1]++;
}

static void the_caller_is_told_of_the_wait(void **state)
{
    (void)state;
    int balance[2] = {0, 0};
    project p;
    compile_output output;
    open_project(&p, SEED("8"), 8);
    p.request.waiting = count_waiting;
    p.request.waiting_context = balance;
    for (int i = 0; i < 2; i++) { /* only the first runs a compiler */
        expect_compiled(compile_program(&p.request, &output));
        compile_output_clear(&output);
    }
    assert_int_equal(balance[0], 0);
    assert_int_equal(balance[1], 2);
    arena_destroy(p.a);
}

/* Build folders that were neither published nor removed. */
static int builds_left(void)
{
    char *command = alloc_printf("ls -d %s/cache/v1/object/pypto-* 2>/dev/null | wc -l", folder);
    FILE *out = popen(command, "r");
    int count = -1;
    assert_int_equal(fscanf(out, "%d", &count), 1);
    pclose(out);
    alloc_free(command);
    return count;
}

static void exhausted_memory_is_an_error_everywhere(void **state)
{
    (void)state;
    /* A quick compiler that leaves no object: every round goes all the way. */
    setenv("PYPTO_CC", "/bin/true", 1);
    int balance[2] = {0, 0};
    int successes = 0; /* in a row: single ones are failures that a cache may have */
    for (int64_t n = 1; successes < 20; n++) {
        assert_true(n < 2000);
        project p;
        compile_output output;
        open_project(&p, SEED("8"), 8);
        p.request.waiting = count_waiting;
        p.request.waiting_context = balance;
        alloc_fail_at(n);
        pypto_status status = compile_program(&p.request, &output);
        alloc_fail_at(0);
        successes = status_ok(status) ? successes + 1 : 0;
        if (!status_ok(status))
            assert_int_equal(status.kind, PYPTO_ERROR_MEMORY);
        assert_int_equal(balance[0], 0);
        compile_output_clear(&output);
        pypto_status_clear(&status);
        arena_destroy(p.a);
        assert_int_equal(entries("tmp"), 0);
        assert_int_equal(builds_left(), 0);
    }
}

/* ---- the manifest ---- */

static manifest_variant variant_of(arena *a, int64_t extent, const char *value)
{
    manifest_variant v = {.c_text = {0x0123456789abcdef, 0xfedcba9876543210}};
    frontend_arg tensor = {
        .kind = FRONTEND_TENSOR, .dtype = PYPTO_BF16, .ndim = 2, .shape = {-1, extent}};
    frontend_arg number = {.kind = FRONTEND_INT, .integer = INT64_MIN};
    frontend_arg large = {.kind = FRONTEND_UINT, .integer = INT64_MIN}; /* 2^63 */
    frontend_arg real = {.kind = FRONTEND_FLOAT, .real = -0.1};
    frontend_arg truth = {.kind = FRONTEND_BOOL, .integer = 1};
    vec_push(a, &v.pattern, tensor);
    vec_push(a, &v.pattern, number);
    vec_push(a, &v.pattern, large);
    vec_push(a, &v.pattern, real);
    vec_push(a, &v.pattern, truth);
    frontend_fact fact = {3, "name", value};
    vec_push(a, &v.facts, fact);
    return v;
}

static void manifests_survive_their_text(void **state)
{
    (void)state;
    lowered l = {.a = arena_create()};
    arena_set_recovery(l.a, &memory_exhausted);
    manifest m = {0};
    for (int i = 0; i < 11; i++) {
        manifest_variant v = variant_of(l.a, i, "string \"a b\n100%\xc3\xb6\"");
        v.from_annotations = i == 10;
        manifest_add(&m, &v);
    }
    assert_int_equal(m.count, MANIFEST_VARIANTS);
    text printed = {.a = l.a};
    manifest_print(&printed, &m);

    manifest read;
    assert_true(manifest_parse(l.a, printed.bytes, printed.length, &read));
    assert_int_equal(read.count, MANIFEST_VARIANTS);
    assert_true(read.variants[0].from_annotations);
    assert_int_equal(read.variants[0].pattern.items[0].shape[1], 10);
    assert_int_equal(read.variants[0].pattern.items[1].integer, INT64_MIN);
    assert_int_equal(read.variants[0].pattern.items[2].kind, FRONTEND_UINT);
    assert_true(read.variants[0].pattern.items[3].real == -0.1);
    assert_string_equal(read.variants[0].facts.items[0].value, "string \"a b\n100%\xc3\xb6\"");
    text again = {.a = l.a};
    manifest_print(&again, &read);
    assert_string_equal(printed.bytes, again.bytes);

    /* The same program again moves to the front. */
    manifest_variant known = read.variants[5];
    manifest_add(&read, &known);
    assert_int_equal(read.count, MANIFEST_VARIANTS);
    assert_int_equal(read.variants[0].pattern.items[0].shape[1], known.pattern.items[0].shape[1]);
    lowered_free(&l);
}

static void no_other_text_is_a_manifest(void **state)
{
    (void)state;
    lowered l = {.a = arena_create()};
    arena_set_recovery(l.a, &memory_exhausted);
    manifest m = {0};
    manifest_variant v = variant_of(l.a, 8, "int 8");
    manifest_add(&m, &v);
    text printed = {.a = l.a};
    manifest_print(&printed, &m);
    manifest read;
    for (int64_t length = 0; length < printed.length; length++) /* torn */
        assert_false(manifest_parse(l.a, printed.bytes, length, &read));
    for (int64_t i = 0; i < printed.length; i++) { /* one byte changed */
        char *changed = arena_strndup(l.a, printed.bytes, printed.length);
        changed[i] ^= 1;
        assert_false(manifest_parse(l.a, changed, printed.length, &read));
    }
    lowered_free(&l);
}

static void processors_are_told_apart_stably(void **state)
{
    (void)state;
    lowered l = {.a = arena_create()};
    arena_set_recovery(l.a, &memory_exhausted);
    hasher x;
    hasher y;
    hasher_init(&x);
    hasher_init(&y);
    hash_key empty = hasher_finish(&x);
    cpu_features(l.a, &x);
    cpu_features(l.a, &y);
    hash_key first = hasher_finish(&x);
    hash_key second = hasher_finish(&y);
    assert_memory_equal(&first, &second, sizeof first);
    assert_memory_not_equal(&first, &empty, sizeof first);
    lowered_free(&l);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, make_folder, drop_folder)
    const struct CMUnitTest tests[] = {
        CASE(the_second_compile_is_a_hit),
        CASE(a_changed_constant_is_a_miss),
        CASE(each_level_hits_by_itself),
        CASE(stages_are_kept_when_asked_for),
        CASE(only_dynamic_extents_are_free),
        CASE(another_platform_is_another_entry),
        CASE(corrupt_manifests_are_rewritten),
        CASE(an_object_without_content_is_made_again),
        CASE(damaged_objects_are_made_again),
        CASE(the_cache_is_bounded),
        CASE(a_cache_that_cannot_be_made_is_done_without),
        CASE(a_cache_that_others_may_write_is_refused),
        CASE(a_read_only_cache_still_hits),
        CASE(a_missing_compiler_is_explained),
        CASE(a_failing_compiler_leaves_the_c_file),
        CASE(a_machine_that_fails_the_compiler_is_named),
        CASE(another_compiler_is_another_object),
        CASE(dumps_show_hits_too),
        CASE(errors_of_passes_show_their_line),
        CASE(processes_compile_at_once),
        CASE(the_caller_is_told_of_the_wait),
        CASE(exhausted_memory_is_an_error_everywhere),
        CASE(manifests_survive_their_text),
        CASE(no_other_text_is_a_manifest),
        CASE(processors_are_told_apart_stably),
    };
    unsetenv("MALLOC_PERTURB_"); /* the compilers would inherit it, and take twice as long */
    return RUN_TESTS(tests);
}
