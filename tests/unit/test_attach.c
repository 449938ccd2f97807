/* Tensors in place, through the C interface: memory of pypto_shared_alloc() and files that the caller has mapped, on ranks
 * that are threads and forked processes; what the system does not answer for quickly; strict sets. */
#include "base/diag.h"
#include "base/os.h"
#include "host/host.h"

#include <pypto/pypto.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker_sets.h"

/* Adds 1 to every element, in place. */
static void kernel(pld_core *core, const pld_arg *args)
{
    const pld_tensor *t = args[0].tensor;
    for (int64_t i = 0; i < t->shape[0]; ++i)
        pld_write_int(core, t, PLD_AT(i), pld_read_int(core, t, PLD_AT(i)) + 1);
}

static const pld_param params[] = {{.name = "t",
                                    .kind = PLD_PARAM_TENSOR,
                                    .direction = PLD_INOUT,
                                    .dtype = PYPTO_INT32,
                                    .ndim = 1,
                                    .shape = {-1},
                                    .world_dim = -1}};
static const char *const dims[] = {"N"};
static const pld_function kernel_function = {.name = "add_one",
                                             .file = "t.c",
                                             .plane = PLD_PLANE_CORE,
                                             .run = kernel,
                                             .nparams = 1,
                                             .params = params};
static void chip(pld_core *core, const pld_arg *args)
{
    pld_submit(core, &kernel_function, args, 1);
}
static const pld_function chip_function = {.name = "chip",
                                           .file = "t.c",
                                           .plane = PLD_PLANE_CHIP,
                                           .run = chip,
                                           .nparams = 1,
                                           .params = params};
/* On both devices, one after the other, because both write. */
static void host(pld_host *h, const pld_arg *args)
{
    const int64_t half = args[0].tensor->shape[0] / 2;
    for (int64_t device = 0; device < 2; ++device) {
        const pld_tensor part =
            pld_slice(h, args[0].tensor, PLD_EXTENTS(half), PLD_AT(device * half));
        pld_dispatch(h, device, &chip_function, PLD_ARGS(PLD_TENSOR(&part)), 1);
    }
}
static const pld_function host_function = {.name = "host",
                                           .file = "t.c",
                                           .plane = PLD_PLANE_HOST,
                                           .run_host = host,
                                           .nparams = 1,
                                           .params = params,
                                           .ndims = 1,
                                           .dims = dims};
static const pld_function *const functions[] = {&kernel_function, &chip_function, &host_function};
static const pld_program table = {.abi = PLD_ABI,
                                  .size = sizeof(pld_program),
                                  .name = "add",
                                  .nfunctions = 3,
                                  .host = 2,
                                  .functions = functions};

static pypto_program *program;

static int open_program(void **state)
{
    (void)state;
    pypto_status status = pypto_program_from_table(&table, &program);
    return status.kind == PYPTO_ERROR_NONE ? 0 : -1;
}

static int close_program(void **state)
{
    (void)state;
    pypto_program_release(program);
    return 0;
}

static pypto_argument vector(void *data, int64_t count)
{
    pypto_argument a = {.kind = PLD_ARG_TENSOR};
    a.tensor = (pypto_tensor){
        .data = data, .dtype = PYPTO_INT32, .ndim = 1, .shape = {count}, .stride = {1}};
    return a;
}

static void run(pypto_worker *w, void *data, int64_t count)
{
    const pypto_argument argument = vector(data, count);
    pypto_status status = pypto_worker_run(w, program, &argument, 1);
    if (status.kind != PYPTO_ERROR_NONE)
        fail_msg("%s", pypto_status_text(&status));
}

static int32_t *shared(int64_t count)
{
    void *address;
    pypto_status status = pypto_shared_alloc(count * 4, &address);
    if (status.kind != PYPTO_ERROR_NONE)
        fail_msg("%s", pypto_status_text(&status));
    return address;
}

static void assert_all(const int32_t *data, int64_t count, int32_t value)
{
    for (int64_t i = 0; i < count; ++i)
        assert_int_equal(data[i], value);
}

/* ---- tests ---- */

static void test_shared_memory_is_not_copied(void **state)
{
    (void)state;
    for (int kind = 0; kind < START_COUNT; ++kind) {
        pypto_worker *w = make_set(starts[kind], 2, 0, NULL);
        int32_t *data = shared(1000); /* the workers are there already */
        for (int i = 0; i < 3; ++i)
            run(w, data, 1000);
        run(w, data + 500, 400); /* another part of it */
        assert_all(data, 500, 3);
        assert_all(data + 500, 400, 4);
        assert_all(data + 900, 100, 3);
        assert_int_equal(pypto_worker_copied_bytes(w), 0);
        assert_int_equal(w->file_count, 1);
        pypto_shared_free(data);
        assert_int_equal(w->file_count, 0);
        int32_t private[8] = {0};
        run(w, private, 8);
        assert_all(private, 8, 1);
        assert_int_equal(pypto_worker_copied_bytes(w), 2 * 32);
        pypto_worker_close(w);
    }
}

static void test_a_mapped_file_is_not_copied(void **state)
{
    (void)state;
    for (int kind = 0; kind < START_COUNT; ++kind) {
        pypto_worker *w = make_set(starts[kind], 2, 0, NULL);
        int fd = memfd_create("test", MFD_CLOEXEC);
        assert_int_equal(ftruncate(fd, 3 * 4096), 0);
        int32_t *data = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
        int32_t *again = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        run(w, data, 2048);
        run(w, again, 3 * 1024);
        assert_all(again, 1024, 1);
        assert_all(data, 2048, 2);
        assert_int_equal(w->file_count, 1);
        assert_int_equal(pypto_worker_copied_bytes(w), 0);
        /* Two mappings, seen as two by the system, are one piece of memory where they continue each other. */
        assert_int_equal(mprotect(again, 4096, PROT_READ), 0);
        const pypto_argument argument = vector(again, 3 * 1024);
        pypto_status status = pypto_worker_run(w, program, &argument, 1);
        assert_string_equal(status.diagnostics->code, diag_lookup(DIAG_ARGUMENT_READ_ONLY)->code);
        pypto_status_clear(&status);
        assert_int_equal(mprotect(again, 4096, PROT_READ | PROT_WRITE), 0);
        os_close(&fd);
        run(w, data, 2048); /* the set has a descriptor of its own */
        assert_all(data, 2048, 3);
        assert_int_equal(pypto_worker_copied_bytes(w), 0);
        munmap(data, 2 * 4096);
        munmap(again, 3 * 4096);
        int32_t private[2] = {0};
        run(w, private, 2); /* looks after it */
        assert_int_equal(w->file_count, os_maps_are_quick(w->maps) ? 0 : 1);
        pypto_worker_close(w);
    }
}

static void test_where_the_system_answers_slowly_only_large_ones_are_looked_for(void **state)
{
    (void)state;
    pypto_worker *w = make_set(PYPTO_START_THREAD, 2, 0, NULL);
    w->maps = os_maps_open();
    w->maps_quick = false;
    const int64_t large = 1 << 20; /* bytes */
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, large), 0);
    int32_t *data = mmap(NULL, (size_t)large, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    run(w, data, large / 4);
    assert_int_equal(w->copied_bytes, 0);
    run(w, data, 100);
    assert_int_equal(w->copied_bytes, 2 * 400);
    assert_all(data, 100, 2);
    assert_all(data + 100, 100, 1);
    int32_t *own = shared(100);
    run(w, own, 100);
    assert_int_equal(w->copied_bytes, 2 * 400);
    /* What was private is taken to be so, which only costs a copy. */
    int32_t *private =
        mmap(NULL, (size_t)large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    run(w, private, large / 4);
    assert_int_equal(w->copied_bytes, 2 * 400 + 2 * large);
    assert_ptr_equal(
        mmap(private, (size_t)large, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0),
        private);
    run(w, private, large / 4);
    assert_int_equal(w->copied_bytes, 2 * 400 + 4 * large);
    assert_all(data + 100, 100, 2);
    munmap(private, (size_t)large);
    munmap(data, (size_t)large);
    os_close(&fd);
    pypto_shared_free(own);
    pypto_worker_close(w);
}

static void test_a_strict_set_copies_nothing(void **state)
{
    (void)state;
    static const int32_t ids[] = {0, 1};
    for (int kind = 0; kind < START_COUNT; ++kind) {
        pypto_worker_options options = PYPTO_WORKER_OPTIONS_INIT;
        options.device_ids = ids;
        options.device_count = 2;
        options.start = starts[kind];
        options.shared_only = true;
        pypto_worker *w;
        pypto_status status = pypto_worker_create(&options, &w);
        assert_int_equal(status.kind, PYPTO_ERROR_NONE);
        int32_t private[8] = {0};
        const pypto_argument argument = vector(private, 8);
        status = pypto_worker_run(w, program, &argument, 1);
        assert_int_equal(status.kind, PYPTO_ERROR_TYPE);
        assert_non_null(strstr(status.diagnostics->message, "shared memory"));
        pypto_status_clear(&status);
        run(w, private, 0); /* of nothing, nothing is copied */
        int32_t *data = shared(8);
        run(w, data, 8);
        assert_all(data, 8, 1);
        assert_all(private, 8, 0);
        pypto_shared_free(data);
        pypto_worker_close(w);
    }
}

static void test_blocks_come_and_go(void **state)
{
    (void)state;
    int32_t *blocks[40];
    for (int i = 0; i < 40; ++i) {
        blocks[i] = shared(i * 1000 + 1);
        blocks[i][i * 1000] = i;
        if (i % 3 == 2) {
            pypto_shared_free(blocks[i - 1]);
            blocks[i - 1] = NULL;
        }
    }
    for (int i = 0; i < 40; ++i) {
        os_mapping mapping;
        int fd;
        if (blocks[i] == NULL)
            continue;
        const int64_t low = (int64_t)(intptr_t)blocks[i];
        assert_int_equal(blocks[i][i * 1000], i);
        assert_true(shared_find(low, low + i * 4000 + 4, &mapping, &fd));
        assert_false(shared_find(low, low + i * 4000 + 5, &mapping, &fd));
        pypto_shared_free(blocks[i]);
        assert_false(shared_find(low, low + 4, &mapping, &fd));
    }
    pypto_shared_free(NULL);
    pypto_shared_free(&blocks); /* none of ours */
    void *address = &blocks;
    pypto_status status = pypto_shared_alloc((int64_t)1 << 60, &address);
    assert_int_equal(status.kind, PYPTO_ERROR_MEMORY);
    assert_null(address);
    pypto_status_clear(&status);
    status = pypto_shared_alloc(-1, &address);
    assert_int_equal(status.kind, PYPTO_ERROR_MEMORY);
    pypto_status_clear(&status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_memory_is_not_copied),
        cmocka_unit_test(test_a_mapped_file_is_not_copied),
        cmocka_unit_test(test_where_the_system_answers_slowly_only_large_ones_are_looked_for),
        cmocka_unit_test(test_a_strict_set_copies_nothing),
        cmocka_unit_test(test_blocks_come_and_go),
    };
    return cmocka_run_group_tests(tests, open_program, close_program);
}
