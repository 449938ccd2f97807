/* Records of calls: what files there are and what they say, with every start of workers; nothing without a wish; no room;
 * calls that fail; and times. The files' forms are tested from Python (tests/python/test_records.py). */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/os.h"
#include "trace/trace.h"

#include <pypto/pypto.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker_sets.h"

enum { ROW, COUNT };
enum { TASKS_FAIL = -1, WRAPPER_FAILS = -2, WRAPPER_DIES = -3 };

/* Adds 1 to each element of its row. */
static void kernel(pld_core *core, const pld_arg *args)
{
    const pld_tensor *row = args[ROW].tensor;
    if (args[COUNT].integer == TASKS_FAIL)
        pld_fail(core, "as asked");
    for (int64_t i = pld_block_index(core); i < 4; i += pld_block_count(core))
        pld_write_int(core, row, PLD_AT(i), pld_read_int(core, row, PLD_AT(i)) + 1);
}

static const pld_param params[] = {
    {.name = "row", .kind = PLD_PARAM_TENSOR, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "count", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};
static const pld_function add_one = {.name = "add_one",
                                     .file = "kernels.c",
                                     .line = 1,
                                     .plane = PLD_PLANE_CORE,
                                     .run = kernel,
                                     .nparams = 2,
                                     .params = params};

/* Tasks behind each other, the last in two blocks. */
static void wrapper(pld_core *core, const pld_arg *args)
{
    const pld_submit_options blocks = {.blocks = 2};
    const int64_t count = args[COUNT].integer;
    if (count == WRAPPER_FAILS || count == WRAPPER_DIES) {
        pld_scope_begin(core, "pl.at", "gather", 0);
        if (count == WRAPPER_DIES)
            (void)raise(SIGKILL);
        pld_fail(core, "as asked");
    }
    for (int64_t i = 1; i < count; ++i)
        pld_submit(core, &add_one, args, 2);
    pld_submit_with(core, &add_one, args, 2, &blocks);
}

static const pld_function chip = {.name = "chip",
                                  .file = "kernels.c",
                                  .line = 20,
                                  .plane = PLD_PLANE_CHIP,
                                  .run = wrapper,
                                  .nparams = 2,
                                  .params = params};

/* Two dispatches on each device. */
static void host_function(pld_host *host, const pld_arg *args)
{
    for (int64_t i = 0; i < 2 * pld_world_size(host); ++i) {
        const pld_tensor row = pld_index(host, args[ROW].tensor, 1, PLD_AT(i / 2));
        pld_dispatch(host, i / 2, &chip, PLD_ARGS(PLD_TENSOR(&row), PLD_INT(args[COUNT].integer)),
                     2);
    }
}

static const pld_param entry_params[] = {
    {.name = "rows",
     .kind = PLD_PARAM_TENSOR,
     .direction = PLD_INOUT,
     .dtype = PYPTO_INT32,
     .ndim = 2,
     .shape = {-1, 4},
     .world_dim = 0},
    {.name = "count", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};
static const char *const dims[] = {"NR"};
static const pld_function host_entry = {.name = "host",
                                        .file = "host.c",
                                        .line = 1,
                                        .plane = PLD_PLANE_HOST,
                                        .run_host = host_function,
                                        .nparams = 2,
                                        .params = entry_params,
                                        .ndims = 1,
                                        .dims = dims};
static const pld_function *const functions[] = {&add_one, &chip, &host_entry};
static const pld_program table = {.abi = PLD_ABI,
                                  .size = sizeof(pld_program),
                                  .name = "records",
                                  .nfunctions = 3,
                                  .host = 2,
                                  .functions = functions};

static pypto_program *program;
static arena *texts;
static char *folder;

/* ---- calling ---- */

static void need(pypto_status status)
{
    if (status.kind != PYPTO_ERROR_NONE)
        fail_msg("%s", pypto_status_text(&status));
}

static pypto_status call(pypto_worker *w, int32_t rows[2][4], int64_t count)
{
    const pypto_argument args[2] = {
        {.kind = PLD_ARG_TENSOR,
         .tensor =
             {.data = rows, .dtype = PYPTO_INT32, .ndim = 2, .shape = {2, 4}, .stride = {4, 1}}},
        {.kind = PLD_ARG_INT, .integer = count}};
    return pypto_worker_run(w, program, args, 2);
}

static pypto_records all_records(const char *name)
{
    pypto_records r = PYPTO_RECORDS_INIT;
    r.directory = arena_printf(texts, "%s/%s", folder, name);
    r.per_rank = true;
    r.swimlane = 4;
    r.dump_args = 2;
    r.pmu = 2;
    r.dependencies = true;
    r.scope_stats = true;
    r.bytes_per_rank = 1 << 20;
    return r;
}

/* Text of a file of a dispatch; NULL: it does not exist. */
static const char *file_of(const pypto_records *r, int rank, int index, const char *name)
{
    return os_read_file(
        texts, arena_printf(texts, "%s/rank%d/d%d/%s", r->directory, rank, index, name), NULL);
}

static int occurrences(const char *content, const char *word)
{
    int count = 0;
    assert_non_null(content);
    for (const char *at = strstr(content, word); at != NULL; at = strstr(at + 1, word))
        ++count;
    return count;
}

static void expect(const pypto_records *r, const char *name, const char *word, int count)
{
    for (int rank = 0; rank < 2; ++rank)
        for (int index = 0; index < 2; ++index)
            assert_int_equal(occurrences(file_of(r, rank, index, name), word), count);
}

/* ---- tests ---- */

static void test_files(void **state)
{
    (void)state;
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *w = make_set(starts[s], 2, 0, NULL);
        pypto_records r = all_records(s == 0 ? "threads" : "fork");
        need(pypto_worker_set_records(w, &r));
        int32_t rows[2][4] = {{0}};
        need(call(w, rows, 3));
        assert_int_equal(rows[1][3], 6);
        expect(&r, "dispatch_program.json", "\"chip\"", 1);
        expect(&r, "deps.json", "\"kernel_ids\":[-1,0,-1]", 3);
        expect(&r, "deps.json", "\"pred\":\"0\",\"succ\":\"1\"", 1);
        expect(&r, "deps.json", "\"pred\":\"1\",\"succ\":\"2\"", 1);
        expect(&r, "deps.json", "\"pred\"", 2); /* 0 before 2 follows */
        expect(&r, "chip_swimlane_records.json", "\"submit_idx\"", 3);
        expect(&r, "scope_stats/scope_stats.jsonl", "kernels.c:20", 2);
        expect(&r, "pmu.csv", "\n", 5); /* a line for each block, and one above */
        expect(&r, "name_map.json", "\"0\":\"add_one\"", 1);
        expect(&r, "args_dump/args_dump.json", "\"bin_size\":16", 6);
        const char *content = file_of(&r, 0, 1, "args_dump/args.bin");
        int32_t first[8];
        memcpy(first, content, sizeof first);
        assert_int_equal(first[0], 3); /* what the first dispatch left */
        assert_int_equal(first[4], 4); /* behind the first task */
        pypto_worker_close(w);
    }
}

static void test_nothing_without_a_wish(void **state)
{
    (void)state;
    pypto_worker *w = make_set(PYPTO_START_THREAD, 2, 0, NULL);
    pypto_records r = all_records("wish");
    int32_t rows[2][4] = {{0}};
    need(call(w, rows, 2));
    assert_false(os_file_exists(r.directory));
    need(pypto_worker_set_records(w, &r));
    need(call(w, rows, 2));
    assert_non_null(file_of(&r, 1, 1, "pmu.csv"));
    /* Less is asked for now; what was there is gone, and what others put there is not. */
    need(os_write_file(arena_printf(texts, "%s/rank0/notes", r.directory), "x", 1));
    r.pmu = 0;
    r.per_rank = false;
    need(pypto_worker_set_records(w, &r));
    need(call(w, rows, 2));
    assert_null(file_of(&r, 1, 1, "pmu.csv"));
    assert_false(os_file_exists(arena_printf(texts, "%s/rank0/d0", r.directory)));
    assert_true(os_file_exists(arena_printf(texts, "%s/rank0/notes", r.directory)));
    assert_true(os_file_exists(arena_printf(texts, "%s/deps.json", r.directory)));
    assert_true(os_file_exists(
        arena_printf(texts, "%s/name_map_%s.json", r.directory, strrchr(folder, '/') + 1)));
    need(pypto_worker_set_records(w, NULL));
    os_remove_tree(r.directory);
    need(call(w, rows, 2));
    assert_false(os_file_exists(r.directory));
    pypto_worker_close(w);
}

/* What is noted is the beginning; the call itself does not notice. */
static void test_no_room(void **state)
{
    (void)state;
    pypto_worker *w = make_set(PYPTO_START_THREAD, 2, 0, NULL);
    for (int64_t bytes = 1; bytes < 20000; bytes = bytes * 2 + 40) {
        pypto_records r = all_records("room");
        r.bytes_per_rank = bytes;
        need(pypto_worker_set_records(w, &r));
        int32_t rows[2][4] = {{0}};
        need(call(w, rows, 20));
        assert_int_equal(rows[0][0], 40);
        const char *deps = file_of(&r, 0, 0, "deps.json");
        if (deps != NULL)
            assert_int_equal(occurrences(deps, "\"dropped\":0"), 0);
    }
    pypto_worker_close(w);
}

static void test_a_call_that_fails(void **state)
{
    (void)state;
    pypto_worker *w = make_set(PYPTO_START_THREAD, 2, 0, NULL);
    pypto_records r = all_records("failure");
    need(pypto_worker_set_records(w, &r));
    int32_t rows[2][4] = {{0}};
    pypto_status status = call(w, rows, TASKS_FAIL);
    assert_int_equal(status.kind, PYPTO_ERROR_DEVICE);
    pypto_status_clear(&status);
    need(call(w, rows, 2));
    /* Which rank failed first is open; the other one may not have begun. */
    status = call(w, rows, TASKS_FAIL);
    assert_int_equal(status.kind, PYPTO_ERROR_DEVICE);
    pypto_status_clear(&status);
    assert_true(file_of(&r, 0, 0, "deps.json") != NULL || file_of(&r, 1, 0, "deps.json") != NULL);
    pypto_worker_close(w);
}

/* What is open when a call fails ends with it, and says so; also where its rank has died. */
static void test_what_a_failure_leaves_open(void **state)
{
    (void)state;
    static const struct {
        pypto_start start;
        int64_t count;
        pypto_error_kind kind;
    } ways[] = {{PYPTO_START_THREAD, WRAPPER_FAILS, PYPTO_ERROR_DEVICE},
                {PYPTO_START_FORK, WRAPPER_FAILS, PYPTO_ERROR_DEVICE},
                {PYPTO_START_FORK, WRAPPER_DIES, PYPTO_ERROR_WORKER_DIED}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
        pypto_worker *w = make_set(ways[i].start, 2, 0, NULL);
        pypto_records r = all_records("open");
        need(pypto_worker_set_records(w, &r));
        int32_t rows[2][4] = {{0}};
        pypto_status status = call(w, rows, ways[i].count);
        assert_int_equal(status.kind, ways[i].kind);
        pypto_status_clear(&status);
        int found = 0;
        for (int32_t rank = 0; rank < 2; ++rank) { /* the other one may not have begun */
            const char *lines = file_of(&r, rank, 0, "scope_stats/scope_stats.jsonl");
            if (lines == NULL || strstr(lines, "\"name\":\"gather\"") == NULL)
                continue;
            ++found;
            assert_non_null(strstr(lines, "\"fatal\":true"));
            assert_non_null(strstr(lines, "\"total\":4"));
            assert_int_equal(occurrences(lines, "\"phase\":\"begin\""), 2);
            assert_int_equal(occurrences(lines, "\"phase\":\"end\""), 2);
            assert_int_equal(occurrences(lines, "\"failed\":true"), 2);
            /* The inner one ends first. */
            assert_true(strstr(strstr(lines, "\"phase\":\"end\""), "\"scope\":\"function\"") !=
                        NULL);
        }
        assert_true(found >= 1);
        pypto_worker_close(w);
    }
}

static void test_one_shot(void **state)
{
    (void)state;
    const int32_t ids[2] = {3, 5};
    int32_t rows[2][4] = {{0}};
    const pypto_argument args[2] = {
        {.kind = PLD_ARG_TENSOR,
         .tensor =
             {.data = rows, .dtype = PYPTO_INT32, .ndim = 2, .shape = {2, 4}, .stride = {4, 1}}},
        {.kind = PLD_ARG_INT, .integer = 2}};
    pypto_records r = all_records("one_shot");
    pypto_worker_options options = PYPTO_WORKER_OPTIONS_INIT;
    options.device_ids = ids;
    options.device_count = 2;
    options.start = PYPTO_START_THREAD;
    options.records = &r;
    need(pypto_call(&options, program, args, 2));
    expect(&r, "deps.json", "\"pred\"", 1);
    os_remove_tree(r.directory);
    options.records = NULL;
    need(pypto_call(&options, program, args, 2));
    assert_false(os_file_exists(r.directory));
    pypto_shutdown();
}

static void test_times(void **state)
{
    (void)state;
    pypto_worker *w = make_set(PYPTO_START_THREAD, 2, 0, NULL);
    pypto_records r = PYPTO_RECORDS_INIT;
    r.times = true;
    need(pypto_worker_set_records(w, &r));
    const pypto_dispatch_times *times;
    assert_int_equal(pypto_worker_times(w, &times), 0);
    int32_t rows[2][4] = {{0}};
    const int64_t before = os_now_ns();
    need(call(w, rows, 2));
    const int64_t behind = os_now_ns();
    assert_int_equal(pypto_worker_times(w, &times), 4);
    for (int i = 0; i < 4; ++i) {
        assert_int_equal(times[i].rank, i / 2);
        assert_int_equal(times[i].index, i % 2);
        assert_string_equal(times[i].name, "chip");
        assert_true(before <= times[i].taken_ns && times[i].taken_ns <= times[i].begun_ns);
        assert_true(times[i].begun_ns <= times[i].wrapper_ns);
        assert_true(times[i].wrapper_ns <= times[i].over_ns && times[i].over_ns <= behind);
    }
    pypto_worker_close(w);
}

static void refuse(pypto_worker *w, const pypto_records *r, const char *word)
{
    pypto_status status = pypto_worker_set_records(w, r);
    assert_int_equal(status.kind, PYPTO_ERROR_VALUE);
    assert_non_null(strstr(status.diagnostics->message, word));
    pypto_status_clear(&status);
}

static void test_what_cannot_be_recorded(void **state)
{
    (void)state;
    pypto_worker *w = make_set(PYPTO_START_THREAD, 2, 0, NULL);
    pypto_records r = all_records("refused");
    r.swimlane = 5;
    refuse(w, &r, "collection level in 0..4");
    r = all_records("refused");
    r.dump_args = 3;
    refuse(w, &r, "0..2");
    r = all_records("refused");
    r.bytes_per_rank = -1;
    refuse(w, &r, "bytes_per_rank");
    r = all_records("refused");
    r.directory = NULL;
    refuse(w, &r, "dfx_base is required");
    r.per_rank = false;
    refuse(w, &r, "output_prefix is required");
    r.size = 1;
    refuse(w, &r, "size");
    /* A place where nothing can be made: told before anything runs. */
    r = all_records("refused");
    need(os_write_file(r.directory, "x", 1));
    need(pypto_worker_set_records(w, &r));
    int32_t rows[2][4] = {{0}};
    pypto_status status = call(w, rows, 2);
    assert_int_equal(status.kind, PYPTO_ERROR_SYSTEM);
    assert_int_equal(rows[0][0], 0);
    pypto_status_clear(&status);
    pypto_worker_close(w);
}

static void test_more_memory_than_there_is(void **state)
{
    (void)state;
    pypto_worker *w = make_set(PYPTO_START_THREAD, 2, 0, NULL);
    const int64_t sizes[] = {INT64_C(1) << 60, INT64_MAX, INT64_MAX - 63};
    for (int i = 0; i < 3; ++i) {
        pypto_records r = all_records("memory");
        r.bytes_per_rank = sizes[i];
        need(pypto_worker_set_records(w, &r));
        int32_t rows[2][4] = {{0}};
        pypto_status status = call(w, rows, 2);
        assert_int_equal(status.kind, PYPTO_ERROR_MEMORY);
        assert_non_null(strstr(status.diagnostics->hint, "PYPTO_RECORD_BYTES"));
        assert_int_equal(rows[0][0], 0);
        pypto_status_clear(&status);
    }
    need(pypto_worker_set_records(w, NULL));
    int32_t rows[2][4] = {{0}};
    need(call(w, rows, 2));
    pypto_worker_close(w);
}

/* Each allocation on the way fails once: the call ends with an error or as it should. */
static void test_allocations_that_fail(void **state)
{
    (void)state;
    pypto_worker *w = make_set(PYPTO_START_THREAD, 2, 0, NULL);
    pypto_records r = all_records("exhausted");
    r.pmu = r.dump_args = 0;
    need(pypto_worker_set_records(w, &r));
    int32_t rows[2][4] = {{0}};
    need(call(w, rows, 3)); /* loads the program */
    int failures = 0;
    for (int64_t n = 1; n < 90; ++n) {
        memset(rows, 0, sizeof rows);
        alloc_fail_at(n);
        pypto_status status = call(w, rows, 3);
        alloc_fail_at(0);
        failures += status.kind != PYPTO_ERROR_NONE;
        if (status.kind == PYPTO_ERROR_NONE)
            assert_int_equal(rows[1][3], 6);
        pypto_status_clear(&status);
        assert_true(pypto_worker_usable(w));
    }
    assert_true(failures > 5);
    need(call(w, rows, 3));
    expect(&r, "deps.json", "\"pred\"", 2);
    pypto_worker_close(w);
}

static void test_strings(void **state)
{
    (void)state;
    static const struct {
        const char *string;
        const char *json;
    } rows[] = {
        {"plain", "\"plain\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"\n\x01", "\"\\u000a\\u0001\""},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"\xff\xc3", "\"\\udcff\\udcc3\""},
        {"\xed\xa0\x80", "\"\\udced\\udca0\\udc80\""},
        {"\xc0\x80\xe0\x80\x80", "\"\\udcc0\\udc80\\udce0\\udc80\\udc80\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        text out = {0};
        json_string(&out, rows[i].string);
        assert_string_equal(out.bytes, rows[i].json);
        text_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_nothing_without_a_wish),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_a_call_that_fails),
        cmocka_unit_test(test_what_a_failure_leaves_open),
        cmocka_unit_test(test_one_shot),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_what_cannot_be_recorded),
        cmocka_unit_test(test_more_memory_than_there_is),
        cmocka_unit_test(test_allocations_that_fail),
        cmocka_unit_test(test_strings),
    };
    texts = arena_create();
    if (texts == NULL || os_temp_dir(texts, NULL, &folder).kind != PYPTO_ERROR_NONE ||
        pypto_program_from_table(&table, &program).kind != PYPTO_ERROR_NONE)
        return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pypto_program_release(program);
    os_remove_tree(folder);
    arena_destroy(texts);
    return failed;
}
