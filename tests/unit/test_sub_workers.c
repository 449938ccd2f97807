/* SubWorkers from C: their order among dispatches, failures, death, Ctrl-C, and what is forked when. */
#include "base/diag.h"

#include <pypto/pypto.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker_sets.h"

/* ---- the program: an array of cells, and what is done with them ---- */

#define CELLS 8

enum { CELL, VALUE, WHAT };

/* What a function does before it adds `value` to its cell: nothing, sleeps so many milliseconds, or one of these. */
enum { AT_ONCE = 0, FAILS = -1, EXITS = -2, HANGS = -3, TELLS_PID = -4, WAITS = -5 };

static int gate[2]; /* what WAITS reads a byte from */

static const pld_param params[] = {
    {.name = "cell",
     .kind = PLD_PARAM_TENSOR,
     .direction = PLD_INOUT,
     .dtype = PYPTO_INT64,
     .ndim = 1,
     .shape = {1},
     .world_dim = -1},
    {.name = "value", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
    {.name = "what", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};
static const pld_param copy_params[] = {
    {.name = "from",
     .kind = PLD_PARAM_TENSOR,
     .direction = PLD_IN,
     .dtype = PYPTO_INT64,
     .ndim = 1,
     .shape = {1},
     .world_dim = -1},
    {.name = "to",
     .kind = PLD_PARAM_TENSOR,
     .direction = PLD_OUT,
     .dtype = PYPTO_INT64,
     .ndim = 1,
     .shape = {1},
     .world_dim = -1},
    {.name = "ms", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};
static const pld_param wait_params[] = {
    {.name = "cell",
     .kind = PLD_PARAM_TENSOR,
     .direction = PLD_INOUT,
     .dtype = PYPTO_INT64,
     .ndim = 1,
     .shape = {1},
     .world_dim = -1},
    {.name = "bell", .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1},
    {.name = "rings", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};

static void add_kernel(pld_core *core, const pld_arg *args)
{
    if (args[WHAT].integer > 0)
        usleep((useconds_t)args[WHAT].integer * 1000);
    if (args[WHAT].integer == FAILS)
        pld_fail(core, "as asked");
    const int64_t old = pld_read_int(core, args[CELL].tensor, PLD_AT(0));
    pld_write_int(core, args[CELL].tensor, PLD_AT(0), old + args[VALUE].integer);
}

static void copy_kernel(pld_core *core, const pld_arg *args)
{
    usleep((useconds_t)args[2].integer * 1000);
    const int64_t value = pld_read_int(core, args[0].tensor, PLD_AT(0));
    pld_write_int(core, args[1].tensor, PLD_AT(0), value);
}

static void wait_kernel(pld_core *core, const pld_arg *args)
{
    if (args[2].integer != 0)
        pld_notify(core, args[1].tensor, 0, PLD_AT(0), 1, PLD_ATOMIC_ADD);
    else
        pld_wait(core, args[1].tensor, PLD_AT(0), 1, PLD_GE);
    const int64_t old = pld_read_int(core, args[CELL].tensor, PLD_AT(0));
    pld_write_int(core, args[CELL].tensor, PLD_AT(0), old + 1);
}

#define KERNEL(kernel)                                                     \
    static const pld_function kernel##_core = {.name = #kernel,            \
                                               .file = "kernels.c",        \
                                               .line = 1,                  \
                                               .plane = PLD_PLANE_CORE,    \
                                               .run = kernel##_kernel,     \
                                               .nparams = 3,               \
                                               .params = kernel##_params}; \
    static void kernel##_wrapper(pld_core *core, const pld_arg *args)      \
    {                                                                      \
        pld_submit(core, &kernel##_core, args, 3);                         \
    }                                                                      \
    static const pld_function kernel##_chip = {.name = #kernel "_chip",    \
                                               .file = "kernels.c",        \
                                               .line = 2,                  \
                                               .plane = PLD_PLANE_CHIP,    \
                                               .run = kernel##_wrapper,    \
                                               .nparams = 3,               \
                                               .params = kernel##_params}
#define add_params params
KERNEL(add);
KERNEL(copy);
KERNEL(wait);

static void add_in_sub(pld_sub *sub, const pld_arg *args)
{
    int64_t *cell = (int64_t *)(void *)args[CELL].tensor->data;
    switch (args[WHAT].integer) {
    case AT_ONCE: break;
    case FAILS: pld_sub_fail(sub, "first line\nsecond line", "bad %s", "data"); return;
    case EXITS: _exit(3);
    case HANGS:
        for (;;)
            pause();
    case TELLS_PID: *cell = getpid(); return;
    case WAITS: {
        char byte;
        if (read(gate[0], &byte, 1) != 1)
            pld_sub_fail(sub, NULL, "the gate is broken");
        break;
    }
    default: usleep((useconds_t)args[WHAT].integer * 1000);
    }
    *cell += args[VALUE].integer;
}

static void copy_in_sub(pld_sub *sub, const pld_arg *args)
{
    (void)sub;
    usleep((useconds_t)args[2].integer * 1000);
    memcpy(args[1].tensor->data, args[0].tensor->data, 8);
}

static const pld_function add_sub = {.name = "add_sub",
                                     .file = "subs.c",
                                     .line = 5,
                                     .plane = PLD_PLANE_SUB,
                                     .run_sub = add_in_sub,
                                     .nparams = 3,
                                     .params = params};
static const pld_function copy_sub = {.name = "copy_sub",
                                      .file = "subs.c",
                                      .line = 6,
                                      .plane = PLD_PLANE_SUB,
                                      .run_sub = copy_in_sub,
                                      .nparams = 3,
                                      .params = copy_params};
static const pld_function bound_sub = {.name = "bound_sub",
                                       .file = "subs.c",
                                       .line = 7,
                                       .plane = PLD_PLANE_SUB,
                                       .nparams = 3,
                                       .params = params};

static pld_tensor cell_at(pld_host *host, const pld_tensor *cells, int64_t i)
{
    return pld_slice(host, cells, PLD_EXTENTS(1), PLD_AT(i));
}

typedef struct host_call {
    pld_host *host;
    pld_tensor cell[CELLS];
} host_call;

static void add_on(host_call *c, int64_t device, int i, int64_t value, int64_t what)
{
    pld_dispatch(c->host, device, &add_chip,
                 PLD_ARGS(PLD_TENSOR(&c->cell[i]), PLD_INT(value), PLD_INT(what)), 3);
}

static void add_beside(host_call *c, int i, int64_t value, int64_t what)
{
    pld_call_sub(c->host, &add_sub,
                 PLD_ARGS(PLD_TENSOR(&c->cell[i]), PLD_INT(value), PLD_INT(what)), 3);
}

static void copy_beside(host_call *c, int from, int to, int64_t ms)
{
    pld_call_sub(c->host, &copy_sub,
                 PLD_ARGS(PLD_TENSOR(&c->cell[from]), PLD_TENSOR(&c->cell[to]), PLD_INT(ms)), 3);
}

enum plan {
    CHAIN,     /* device, SubWorker, device, each behind the one before */
    OVERWRITE, /* a SubWorker overwrites what a slow device reads */
    IN_STEP, /* device 0 waits for device 1, which waits for a slow SubWorker, and a SubWorker for device 0 */
    STUCK,    /* a SubWorker waits for a device that waits for ever */
    ONE,      /* add_sub alone, as `what` says, then a device that depends on it */
    TWO_PIDS, /* which processes run which functions */
    MANY,     /* a thousand in a row */
    BOUND,    /* a function that has no code of its own */
    BAD_SHAPE,
    LATE,      /* a device fails while a SubWorker is busy */
    RANK_FAILS /* a device fails */
};

static void host_function(pld_host *host, const pld_arg *args)
{
    const int64_t what = args[2].integer;
    host_call c = {.host = host};
    for (int i = 0; i < CELLS; ++i)
        c.cell[i] = cell_at(host, args[0].tensor, i);
    switch ((enum plan)args[1].integer) {
    case CHAIN:
        add_on(&c, 0, 0, 1, 5);
        add_beside(&c, 0, 10, 5);
        add_on(&c, 1, 0, 100, AT_ONCE);
        copy_beside(&c, 0, 1, 0);
        add_on(&c, 0, 1, 1000, AT_ONCE);
        break;
    case OVERWRITE:
        pld_dispatch(host, 0, &copy_chip,
                     PLD_ARGS(PLD_TENSOR(&c.cell[0]), PLD_TENSOR(&c.cell[1]), PLD_INT(50)), 3);
        add_beside(&c, 0, 10, AT_ONCE);
        add_beside(&c, 1, 100, AT_ONCE);
        break;
    case IN_STEP:
    case STUCK: {
        const bool stuck = args[1].integer == STUCK;
        const pld_buffer buffer = pld_alloc_window(host, 0, 4, pld_all_devices(host));
        const pld_tensor bell = pld_window_view(host, buffer, PYPTO_INT32, 1, PLD_EXTENTS(1));
        add_beside(&c, 1, 10, what); /* the device that would ring waits for it */
        pld_dispatch(host, 0, &wait_chip,
                     PLD_ARGS(PLD_TENSOR(&c.cell[0]), PLD_TENSOR(&bell), PLD_INT(0)), 3);
        copy_beside(&c, 0, 2, 0);
        add_beside(&c, 3, 7, AT_ONCE); /* nobody holds it up */
        pld_dispatch(host, 1, &wait_chip,
                     PLD_ARGS(PLD_TENSOR(&c.cell[stuck ? 2 : 1]), PLD_TENSOR(&bell), PLD_INT(1)),
                     3);
        break;
    }
    case ONE:
        add_on(&c, 0, 0, 1, AT_ONCE);
        add_beside(&c, 0, 10, what);
        add_on(&c, 1, 0, 100, AT_ONCE);
        break;
    case TWO_PIDS:
        add_beside(&c, 0, 0, TELLS_PID);
        add_beside(&c, 1, 0, TELLS_PID);
        add_beside(&c, 2, 0, TELLS_PID);
        break;
    case MANY:
        for (int i = 0; i < 1000; ++i)
            add_beside(&c, 0, 1, AT_ONCE);
        break;
    case BOUND:
        pld_call_sub(host, &bound_sub, PLD_ARGS(PLD_TENSOR(&c.cell[0]), PLD_INT(5), PLD_INT(what)),
                     3);
        break;
    case BAD_SHAPE:
        pld_call_sub(host, &add_sub, PLD_ARGS(PLD_TENSOR(args[0].tensor), PLD_INT(5), PLD_INT(0)),
                     3);
        break;
    case RANK_FAILS: add_on(&c, 0, 0, 1, FAILS); break;
    case LATE:
        add_beside(&c, 1, 10, 100);
        add_on(&c, 0, 0, 1, FAILS);
        break;
    }
}

static const pld_param entry_params[] = {
    {.name = "cells",
     .kind = PLD_PARAM_TENSOR,
     .direction = PLD_INOUT,
     .dtype = PYPTO_INT64,
     .ndim = 1,
     .shape = {CELLS},
     .world_dim = -1},
    {.name = "plan", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
    {.name = "what", .kind = PLD_PARAM_SCALAR, .world_dim = -1},
};
static const pld_function host_entry = {.name = "host",
                                        .file = "host.c",
                                        .line = 1,
                                        .plane = PLD_PLANE_HOST,
                                        .run_host = host_function,
                                        .nparams = 3,
                                        .params = entry_params};
static const pld_function *const functions[] = {&add_core,  &copy_core, &wait_core, &add_chip,
                                                &copy_chip, &wait_chip, &add_sub,   &copy_sub,
                                                &bound_sub, &host_entry};
static const pld_buffer_info buffers[] = {{"bell_buf", 1, PLD_NO_COLLECTIVES}};
static const pld_program table = {.abi = PLD_ABI,
                                  .size = sizeof(pld_program),
                                  .name = "subs",
                                  .nfunctions = 10,
                                  .host = 9,
                                  .functions = functions,
                                  .nbuffers = 1,
                                  .buffers = buffers};

/* ---- asking ---- */

static pypto_program *program;
static volatile sig_atomic_t interrupts;

static bool interrupted(void *context)
{
    (void)context;
    return interrupts > 0;
}

static int forks_before, forks_parent;

static void before_fork(void *context)
{
    assert_ptr_equal(context, &forks_before);
    ++forks_before;
}

static void after_fork(void *context, bool child)
{
    (void)context;
    forks_parent += !child;
}

static void run_bound(void *context, const pld_function *f, pld_sub *sub, const pld_arg *args)
{
    if (context != &forks_before || strcmp(f->name, "bound_sub") != 0)
        pld_sub_fail(sub, NULL, "wrong context or function");
    else
        *(int64_t *)(void *)args[CELL].tensor->data = args[VALUE].integer * 2;
}

static const int32_t ids[] = {0, 1};

static pypto_worker_options options_of(pypto_start start, int32_t subs)
{
    pypto_worker_options options = PYPTO_WORKER_OPTIONS_INIT;
    options.device_ids = ids;
    options.device_count = 2;
    options.start = start;
    options.interrupted = interrupted;
    options.sub_workers = subs;
    options.run_sub = run_bound;
    options.before_fork = before_fork;
    options.after_fork = after_fork;
    options.sub_context = &forks_before;
    return options;
}

static pypto_worker *make(pypto_start start, int32_t subs)
{
    const pypto_worker_options options = options_of(start, subs);
    pypto_worker *w = NULL;
    pypto_status status = pypto_worker_create(&options, &w);
    if (status.kind != PYPTO_ERROR_NONE)
        fail_msg("create: %s", pypto_status_text(&status));
    return w;
}

typedef struct request {
    int64_t cells[CELLS];
    pypto_argument arguments[3];
    pypto_run *run;
} request;

static void prepare(request *r, enum plan plan, int64_t what)
{
    *r = (request){.arguments = {{.kind = PLD_ARG_TENSOR},
                                 {.kind = PLD_ARG_INT, .integer = plan},
                                 {.kind = PLD_ARG_INT, .integer = what}}};
    r->arguments[0].tensor = (pypto_tensor){
        .data = r->cells, .dtype = PYPTO_INT64, .ndim = 1, .shape = {CELLS}, .stride = {1}};
}

/* The text of what a call ended with, to be freed; NULL: it has succeeded. */
static char *told(pypto_status status, pypto_error_kind expected)
{
    char *text = status.kind == PYPTO_ERROR_NONE ? NULL : pypto_status_text(&status);
    if (status.kind != expected)
        fail_msg("%s instead of %s: %s", pypto_error_kind_name(status.kind),
                 pypto_error_kind_name(expected), text != NULL ? text : "");
    pypto_status_clear(&status);
    return text;
}

static char *run(pypto_worker *w, request *r, enum plan plan, int64_t what,
                 pypto_error_kind expected)
{
    prepare(r, plan, what);
    return told(pypto_worker_run(w, program, r->arguments, 3), expected);
}

static void expect_text(char *text, const char *words)
{
    if (text == NULL || strstr(text, words) == NULL)
        fail_msg("'%s' is not in: %s", words, text != NULL ? text : "(nothing)");
}

/* Dead, and not reaped: that is the library's business. */
static void kill_and_wait(pid_t pid)
{
    siginfo_t info;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

/* The set still works, all of it. */
static void expect_chain(pypto_worker *w)
{
    request r;
    run(w, &r, CHAIN, 0, PYPTO_ERROR_NONE);
    assert_int_equal(r.cells[0], 111);
    assert_int_equal(r.cells[1], 1111);
}

/* ---- order ---- */

static void test_dispatches_and_sub_workers_wait_for_each_other(void **state)
{
    (void)state;
    for (int s = 0; s < START_COUNT; ++s) {
        for (int32_t subs = 1; subs <= 3; ++subs) {
            pypto_worker *w = make(starts[s], subs);
            for (int i = 0; i < 5; ++i)
                expect_chain(w);
            request r;
            run(w, &r, OVERWRITE, 0, PYPTO_ERROR_NONE);
            assert_int_equal(r.cells[0], 10);
            assert_int_equal(r.cells[1], 100); /* what the device read was not overwritten yet */
            run(w, &r, IN_STEP, 20, PYPTO_ERROR_NONE);
            assert_int_equal(r.cells[0], 1);
            assert_int_equal(r.cells[1], 11);
            assert_int_equal(r.cells[2], 1);
            assert_int_equal(r.cells[3], 7);
            run(w, &r, MANY, 0, PYPTO_ERROR_NONE);
            assert_int_equal(r.cells[0], 1000);
            pypto_worker_close(w);
        }
    }
}

static void test_a_deadlock_behind_a_sub_worker_is_found(void **state)
{
    (void)state;
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *w = make(starts[s], 1);
        request r;
        /* No false alarm while it sleeps; then device 0 waits for device 1, which waits for the copy, which waits for
         * device 0. */
        char *text = run(w, &r, STUCK, 30, PYPTO_ERROR_DEADLOCK);
        expect_text(text, "SubWorker 0");
        expect_text(text, "cycle: rank 0 -> rank 1 -> rank 0");
        free(text);
        expect_chain(w);
        pypto_worker_close(w);
    }
}

static void test_each_function_has_a_process_of_its_own(void **state)
{
    (void)state;
#ifndef NO_FORK
    pypto_worker *w = make(PYPTO_START_FORK, 2);
    request r;
    run(w, &r, TWO_PIDS, 0, PYPTO_ERROR_NONE);
    const int64_t pids[2] = {pypto_worker_sub_pid(w, 0), pypto_worker_sub_pid(w, 1)};
    assert_int_not_equal(pids[0], pids[1]);
    assert_int_equal(pypto_worker_sub_pid(w, 2), 0);
    for (int i = 0; i < 3; ++i)
        assert_true(r.cells[i] == pids[0] || r.cells[i] == pids[1]);
    pypto_worker_close(w);
#endif
}

/* ---- failures ---- */

static void test_a_failing_function_fails_its_call(void **state)
{
    (void)state;
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *w = make(starts[s], 1);
        request r;
        char *text = run(w, &r, ONE, FAILS, PYPTO_ERROR_DEVICE);
        expect_text(text, "add_sub failed on SubWorker 0: bad data");
        expect_text(text, "first line");
        expect_text(text, "second line");
        expect_text(text, "subs.c:5");
        free(text);
        assert_true(pypto_worker_usable(w));
        expect_chain(w);

        /* What runs is let to its end when a rank fails. */
        free(run(w, &r, LATE, 0, PYPTO_ERROR_DEVICE));
        expect_chain(w);

        text = run(w, &r, BAD_SHAPE, 0, PYPTO_ERROR_TYPE);
        expect_text(text, "'cell' of add_sub expects shape (1,)");
        free(text);
        run(w, &r, BOUND, 0, PYPTO_ERROR_NONE);
        assert_int_equal(r.cells[0], 10);
        pypto_worker_close(w);

        w = make(starts[s], 0);
        text = run(w, &r, ONE, AT_ONCE, PYPTO_ERROR_VALUE);
        expect_text(text, "the worker set has none");
        free(text);
        pypto_worker_close(w);
    }
}

/* What a SubWorker runs for one call holds up neither the failure of another one nor its end. */
static void test_a_call_that_fails_waits_for_its_own_function_only(void **state)
{
    (void)state;
    for (int s = 0; s < START_COUNT; ++s) {
        pypto_worker *w = make(starts[s], 1);
        request busy, bad;
        prepare(&busy, ONE, WAITS);
        prepare(&bad, RANK_FAILS, 0);
        free(told(pypto_worker_submit(w, program, busy.arguments, 3, &busy.run), PYPTO_ERROR_NONE));
        free(told(pypto_worker_submit(w, program, bad.arguments, 3, &bad.run), PYPTO_ERROR_NONE));
        bool over;
        free(told(pypto_run_wait(bad.run, -1, &over), PYPTO_ERROR_DEVICE));
        assert_false(pypto_run_done(busy.run));
        assert_int_equal(write(gate[1], "x", 1), 1);
        free(told(pypto_run_wait(busy.run, -1, &over), PYPTO_ERROR_NONE));
        assert_int_equal(busy.cells[0], 111);
        pypto_run_release(busy.run);
        pypto_run_release(bad.run);
        expect_chain(w);
        pypto_worker_close(w);
    }
}

static void test_a_death_fails_the_call_and_no_more(void **state)
{
    (void)state;
#ifndef NO_FORK
    pypto_worker *w = make(PYPTO_START_FORK, 1);
    request r;
    for (int i = 0; i < 3; ++i) {
        char *text = run(w, &r, ONE, EXITS, PYPTO_ERROR_WORKER_DIED);
        expect_text(text, "add_sub failed on SubWorker 0: its process");
        expect_text(text, "exit code 3");
        free(text);
        assert_true(pypto_worker_usable(w));
        assert_int_equal(pypto_worker_sub_pid(w, 0), 0);
        expect_chain(w); /* in another one */
    }
    /* Between calls nobody misses it. */
    const pid_t old = (pid_t)pypto_worker_sub_pid(w, 0);
    kill_and_wait(old);
    expect_chain(w);
    assert_int_not_equal(pypto_worker_sub_pid(w, 0), old);

    /* Two in flight: both have something to do there. */
    request first, second;
    prepare(&first, ONE, HANGS);
    prepare(&second, ONE, AT_ONCE);
    free(told(pypto_worker_submit(w, program, first.arguments, 3, &first.run), PYPTO_ERROR_NONE));
    free(told(pypto_worker_submit(w, program, second.arguments, 3, &second.run), PYPTO_ERROR_NONE));
    assert_false(pypto_run_done(first.run));
    assert_int_equal(kill((pid_t)pypto_worker_sub_pid(w, 0), SIGKILL), 0);
    bool over;
    char *text = told(pypto_run_wait(second.run, -1, &over), PYPTO_ERROR_WORKER_DIED);
    expect_text(text, "signal 9 (SIGKILL)");
    free(text);
    while (!pypto_run_done(first.run)) /* also by asking alone */
        ;
    text = told(pypto_run_wait(first.run, -1, &over), PYPTO_ERROR_WORKER_DIED);
    expect_text(text, "signal 9 (SIGKILL)");
    free(text);
    pypto_run_release(first.run);
    pypto_run_release(second.run);
    expect_chain(w);
    pypto_worker_close(w);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
#endif
}

static void test_ctrl_c_ends_a_function_that_hangs(void **state)
{
    (void)state;
#ifndef NO_FORK
    pypto_worker *w = make(PYPTO_START_FORK, 1);
    request r;
    prepare(&r, ONE, HANGS);
    free(told(pypto_worker_submit(w, program, r.arguments, 3, &r.run), PYPTO_ERROR_NONE));
    interrupts = 1;
    bool over;
    free(told(pypto_run_wait(r.run, -1, &over), PYPTO_ERROR_INTERRUPTED));
    interrupts = 0;
    pypto_run_release(r.run);
    assert_true(pypto_worker_usable(w));
    expect_chain(w);
    pypto_worker_close(w);
#endif
}

/* ---- one-shot calls ---- */

static void test_one_shot_calls_fork_each_time(void **state)
{
    (void)state;
#ifndef NO_FORK
    pypto_worker_options options = options_of(PYPTO_START_FORK, 2);
    forks_before = forks_parent = 0;
    int64_t pid = 0;
    for (int i = 0; i < 3; ++i) {
        request r;
        prepare(&r, TWO_PIDS, 0);
        free(told(pypto_call(&options, program, r.arguments, 3), PYPTO_ERROR_NONE));
        assert_int_not_equal(r.cells[0], pid);
        pid = r.cells[0];
        assert_int_equal(kill((pid_t)pid, 0), -1); /* it has ended with the call */
        prepare(&r, CHAIN, 0);
        free(told(pypto_call(&options, program, r.arguments, 3), PYPTO_ERROR_NONE));
        assert_int_equal(r.cells[1], 1111);
    }
    assert_int_equal(forks_before, 12);
    assert_int_equal(forks_parent, 12);
    options.sub_workers = 0; /* the same set, as it happens */
    request r;
    prepare(&r, ONE, AT_ONCE);
    free(told(pypto_call(&options, program, r.arguments, 3), PYPTO_ERROR_VALUE));
    pypto_shutdown();
    options.sub_workers = 65;
    free(told(pypto_call(&options, program, r.arguments, 3), PYPTO_ERROR_DEVICE));
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
#endif
}

int main(void)
{
    pypto_status status = pypto_program_from_table(&table, &program);
    if (status.kind != PYPTO_ERROR_NONE || pipe(gate) != 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dispatches_and_sub_workers_wait_for_each_other),
        cmocka_unit_test(test_a_deadlock_behind_a_sub_worker_is_found),
        cmocka_unit_test(test_each_function_has_a_process_of_its_own),
        cmocka_unit_test(test_a_failing_function_fails_its_call),
        cmocka_unit_test(test_a_call_that_fails_waits_for_its_own_function_only),
        cmocka_unit_test(test_a_death_fails_the_call_and_no_more),
        cmocka_unit_test(test_ctrl_c_ends_a_function_that_hangs),
        cmocka_unit_test(test_one_shot_calls_fork_each_time),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pypto_program_release(program);
    return failed;
}
