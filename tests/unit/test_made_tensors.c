/* Tensors that a host function makes and ends within a call: their memory is used again, but not while a dispatch
 * that was given them runs, and is zero each time. */
#include "base/diag.h"

#include <pypto/pypto.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "worker_sets.h"

#define BYTES 4096

enum { TENSOR, BELL, ROLE };

/* Device 0 writes when device 1 has rung. */
static void gate_kernel(pld_core *core, const pld_arg *args)
{
    const pld_tensor *bell = args[BELL].tensor;
    const pld_comm *ctx = pld_get_comm(core, bell);
    if (ctx->rank == 1) {
        pld_notify(core, bell, 0, PLD_AT(0), 1, PLD_SET);
        return;
    }
    pld_wait(core, bell, PLD_AT(0), 1, PLD_EQ);
    const int8_t seven = 7;
    for (int64_t i = 0; i < BYTES; ++i)
        pld_store(core, &seven, args[TENSOR].tensor, PLD_AT(i), PLD_EXTENTS(1));
}

static const pld_param params[] = {{.name = "tensor",
                                    .kind = PLD_PARAM_TENSOR,
                                    .direction = PLD_OUT,
                                    .dtype = PYPTO_INT8,
                                    .ndim = 1,
                                    .shape = {BYTES},
                                    .world_dim = -1},
                                   {.name = "bell",
                                    .kind = PLD_PARAM_WINDOW,
                                    .direction = PLD_INOUT,
                                    .dtype = PYPTO_INT32,
                                    .ndim = 1,
                                    .shape = {1},
                                    .world_dim = -1}};
static const pld_function gate_function = {.name = "gate",
                                           .file = "t.c",
                                           .plane = PLD_PLANE_CORE,
                                           .run = gate_kernel,
                                           .nparams = 2,
                                           .params = params};

static void gate_chip_run(pld_core *core, const pld_arg *args)
{
    pld_submit(core, &gate_function, args, 2);
}

static const pld_function gate_chip = {.name = "gate_chip",
                                       .file = "t.c",
                                       .plane = PLD_PLANE_CHIP,
                                       .run = gate_chip_run,
                                       .nparams = 2,
                                       .params = params};

static bool used_again;  /* the memory of a tensor that nobody was given */
static bool taken_early; /* that of one that a dispatch has still to write */
static bool was_zero;

static pld_tensor make(pld_host *host)
{
    return pld_host_create_tensor(host, PYPTO_INT8, 1, PLD_EXTENTS(BYTES), 0);
}

static void host_run(pld_host *host, const pld_arg *args)
{
    (void)args;
    const pld_buffer buffer = pld_alloc_window(host, 0, 4, pld_all_devices(host));
    const pld_tensor bell = pld_window_view(host, buffer, PYPTO_INT32, 1, PLD_EXTENTS(1));
    const pld_tensor first = make(host);
    memset(first.data, 1, BYTES);
    pld_host_release_tensor(host, &first);
    const pld_tensor second = make(host);
    used_again = second.data == first.data;
    was_zero = true;
    for (int64_t i = 0; i < BYTES; ++i)
        was_zero = was_zero && second.data[i] == 0;
    pld_dispatch(host, 0, &gate_chip, PLD_ARGS(PLD_TENSOR(&second), PLD_TENSOR(&bell)), 2);
    pld_host_release_tensor(host, &second);
    const pld_tensor third = make(host);
    taken_early = third.data == second.data;
    pld_dispatch(host, 1, &gate_chip, PLD_ARGS(PLD_TENSOR(&third), PLD_TENSOR(&bell)), 2);
}

static const pld_function host_function = {
    .name = "host", .file = "t.c", .plane = PLD_PLANE_HOST, .run_host = host_run};
static const pld_function *const functions[] = {&gate_function, &gate_chip, &host_function};
static const pld_buffer_info buffers[] = {{"bell", 1, PLD_NO_COLLECTIVES}};
static const pld_program table = {.abi = PLD_ABI,
                                  .size = sizeof(pld_program),
                                  .name = "made",
                                  .nfunctions = 3,
                                  .host = 2,
                                  .functions = functions,
                                  .nbuffers = 1,
                                  .buffers = buffers};

static void test_memory_is_used_again_when_no_dispatch_has_it(void **state)
{
    (void)state;
    for (int k = 0; k < START_COUNT; ++k) {
        pypto_worker *worker = make_set(starts[k], 2, 0, NULL);
        pypto_program *program = NULL;
        pypto_status status = pypto_program_from_table(&table, &program);
        for (int round = 0; round < 3 && status.kind == PYPTO_ERROR_NONE; ++round) {
            status = pypto_worker_run(worker, program, NULL, 0);
            assert_true(used_again);
            assert_true(was_zero);
            assert_false(taken_early);
        }
        if (status.kind != PYPTO_ERROR_NONE)
            fail_msg("%s", pypto_status_text(&status));
        pypto_program_release(program);
        pypto_worker_close(worker);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_used_again_when_no_dispatch_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
