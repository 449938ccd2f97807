/* Random tasks of a wrapper and random dispatches of a host function on overlapping views of a small
 * memory: the result is that of running them one after the other. Some wait in their middle for signals
 * of another rank, so that others run meanwhile, and what runs too early or too late shows: a task
 * multiplies what it changes by a number of its own.
 *
 * The memory has 64 elements, so that a set of them is a word. A signal is waited for by tasks that come
 * later in the list than the task, of another rank, that sends it; as running the list in order is one
 * way to run it, no list deadlocks. */
#include <pypto/pypto.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker_sets.h"

enum { RANKS = 3, N = 64, TASKS = 150, DISPATCHES = 60, LISTS = 150 };

/* ---- random lists, the same for whoever asks with the same seed ---- */

static uint32_t pick(uint64_t *state, uint32_t bound)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % bound;
}

/* Rows and columns of elements. */
typedef struct box {
    int64_t at, shape[2], stride[2];
    uint64_t elements;
} box;

static int64_t element_of(const box *b, int64_t i)
{
    return b->at + i / b->shape[1] * b->stride[0] + i % b->shape[1] * b->stride[1];
}

/* One that lies in the memory and has no element twice. */
static box random_box(uint64_t *state)
{
    for (;;) {
        box b = {.at = pick(state, N)};
        b.shape[0] = 1 + pick(state, 4);
        b.shape[1] = 1 + pick(state, 8);
        b.stride[0] = 1 + pick(state, 20);
        b.stride[1] = 1 + pick(state, 3);
        int64_t i = 0;
        for (; i < b.shape[0] * b.shape[1]; ++i) {
            const int64_t at = element_of(&b, i);
            if (at >= N || (b.elements >> at & 1) != 0)
                break;
            b.elements |= (uint64_t)1 << at;
        }
        if (i == b.shape[0] * b.shape[1])
            return b;
    }
}

typedef enum job_kind {
    PLAIN,
    WAITS,
    DEFERS,
    RINGS,
    WRAPPER_ADDS,
    MANUAL,
    MANUAL_WAITS,
    KINDS
} job_kind;

/* to = to * 31 + from + number. */
typedef struct job {
    job_kind kind;
    box from, to;
    int64_t number, delay;
    int64_t signals; /* how many it waits for */
    /* If not negative: runs only when that element is positive. */
    int64_t tested;
} job;

/* The list of one rank; `sent` counts what its left neighbour has sent before each. */
static job random_job(uint64_t *state, int64_t *sent)
{
    job j = {.kind = (job_kind)pick(state, KINDS), .tested = -1};
    j.from = random_box(state);
    j.to = random_box(state);
    j.number = pick(state, 1000);
    if (pick(state, 4) == 0)
        j.delay = pick(state, 2000);
    if (pick(state, 8) == 0)
        j.tested = pick(state, N);
    j.signals = pick(state, (uint32_t)*sent + 1);
    if (pick(state, 2) == 0)
        j.signals = *sent;
    *sent += j.kind == RINGS;
    /* Whoever waits counts on the ring. */
    if (j.kind == RINGS || j.kind >= WRAPPER_ADDS)
        j.tested = -1;
    return j;
}

static void apply(const job *j, int32_t *memory)
{
    int32_t from[N], to[N];
    const int64_t from_count = j->from.shape[0] * j->from.shape[1];
    const int64_t to_count = j->to.shape[0] * j->to.shape[1];
    for (int64_t i = 0; i < from_count; ++i)
        from[i] = memory[element_of(&j->from, i)];
    for (int64_t i = 0; i < to_count; ++i)
        to[i] = memory[element_of(&j->to, i)];
    for (int64_t i = 0; i < to_count; ++i)
        memory[element_of(&j->to, i)] =
            (int32_t)((uint32_t)to[i] * 31 + (uint32_t)from[i % from_count] + (uint32_t)j->number);
}

/* ---- kernels: from, to, number, delay, bell, signals ---- */

static void mix(pld_core *core, const pld_arg *args, job_kind kind)
{
    const pld_tensor *from = args[0].tensor, *to = args[1].tensor;
    int32_t a[N], b[N];
    pld_load(core, a, from, PLD_AT(0, 0), from->shape);
    pld_load(core, b, to, PLD_AT(0, 0), to->shape);
    const int64_t count = to->shape[0] * to->shape[1];
    for (int64_t i = 0; i < count; ++i)
        b[i] = (int32_t)((uint32_t)b[i] * 31 + (uint32_t)a[i % (from->shape[0] * from->shape[1])] +
                         (uint32_t)args[2].integer);
    for (int64_t i = 0; i < args[3].integer; ++i)
        pld_poll(core);
    if (kind == WAITS)
        pld_wait(core, args[4].tensor, PLD_AT(0), args[5].integer, PLD_GE);
    if (kind == DEFERS)
        pld_defer_wait(core, args[4].tensor, PLD_AT(0), args[5].integer, PLD_GE);
    pld_store(core, b, to, PLD_AT(0, 0), to->shape);
    if (kind == RINGS) {
        const pld_comm *comm = pld_get_comm(core, args[4].tensor);
        pld_notify(core, args[4].tensor, (comm->rank + 1) % comm->nranks, PLD_AT(0), 1,
                   PLD_ATOMIC_ADD);
    }
}

#define SCALAR(n)                                              \
    {                                                          \
        .name = (n), .kind = PLD_PARAM_SCALAR, .world_dim = -1 \
    }
#define TENSOR(n, d)                                                             \
    {                                                                            \
        .name = (n), .kind = PLD_PARAM_TENSOR, .direction = (d), .world_dim = -1 \
    }
#define WINDOW(n, u)                                                                              \
    {                                                                                             \
        .name = (n), .kind = PLD_PARAM_WINDOW, .direction = PLD_INOUT, .world_dim = -1, .uses = u \
    }
#define MIX_PARAMS(uses)                                                                    \
    {                                                                                       \
        TENSOR("from", PLD_IN), TENSOR("to", PLD_INOUT), SCALAR("number"), SCALAR("delay"), \
            WINDOW("bell", uses), SCALAR("signals")                                         \
    }
#define FUNCTION(variable, where, code, count, parameters)    \
    static const pld_function variable = {.name = #variable,  \
                                          .file = "random.c", \
                                          .line = 1,          \
                                          .plane = (where),   \
                                          .run = (code),      \
                                          .nparams = (count), \
                                          .params = (parameters)}

static void plain_kernel(pld_core *core, const pld_arg *args)
{
    mix(core, args, PLAIN);
}
static void waits_kernel(pld_core *core, const pld_arg *args)
{
    mix(core, args, WAITS);
}
static void defers_kernel(pld_core *core, const pld_arg *args)
{
    mix(core, args, DEFERS);
}
static void rings_kernel(pld_core *core, const pld_arg *args)
{
    mix(core, args, RINGS);
}
static const pld_param await_params[] = MIX_PARAMS(PLD_AWAITS);
static const pld_param ring_params[] = MIX_PARAMS(PLD_NOTIFIES);
FUNCTION(plain, PLD_PLANE_CORE, plain_kernel, 4, await_params);
FUNCTION(waits, PLD_PLANE_CORE, waits_kernel, 6, await_params);
FUNCTION(defers, PLD_PLANE_CORE, defers_kernel, 6, await_params);
FUNCTION(rings, PLD_PLANE_CORE, rings_kernel, 6, ring_params);
static const pld_function *const kernels[KINDS] = {&plain, &waits, &defers, &rings,
                                                   NULL,   &plain, &waits};

static pld_tensor view_of(const pld_tensor *memory, const box *b)
{
    pld_tensor view = *memory;
    view.data += b->at * 4;
    view.ndim = 2;
    memcpy(view.shape, b->shape, sizeof b->shape);
    memcpy(view.stride, b->stride, sizeof b->stride);
    return view;
}

/* ---- a wrapper that submits a list ---- */

/* Manual tasks have a memory of their own, and name the tasks that they come after. */
typedef struct manual_task {
    uint64_t reads, writes;
    pld_task id;
} manual_task;

static int32_t find_conflicts(const manual_task *earlier, int32_t count, const job *j,
                              pld_task *after)
{
    int32_t found = 0;
    const uint64_t reads = j->from.elements | j->to.elements, writes = j->to.elements;
    for (int32_t i = 0; i < count; ++i)
        if ((earlier[i].writes & reads) != 0 || (earlier[i].reads & writes) != 0)
            after[found++] = earlier[i].id;
    return found;
}

/* memory, manual memory, bell, seed */
static void list_wrapper(pld_core *core, const pld_arg *args)
{
    const pld_tensor *memory = args[0].tensor, *bell = args[2].tensor;
    const pld_comm *comm = pld_get_comm(core, bell);
    uint64_t state = (uint64_t)args[3].integer;
    int64_t sent[RANKS] = {0};
    manual_task manual[TASKS];
    pld_task after[TASKS];
    int32_t manuals = 0;
    for (int64_t i = 0; i < TASKS * RANKS; ++i) {
        const int32_t owner = (int32_t)(i % RANKS);
        /* What a rank waits for is what the one before it in the ring has sent. */
        int64_t seen = sent[(owner + RANKS - 1) % RANKS];
        const int64_t before = seen;
        const job j = random_job(&state, &seen);
        sent[owner] += seen - before;
        if (owner != comm->rank)
            continue;
        const pld_tensor *where = j.kind >= MANUAL ? args[1].tensor : memory;
        const pld_tensor from = view_of(where, &j.from), to = view_of(where, &j.to);
        if (j.kind == WRAPPER_ADDS) {
            const int64_t x = pld_read_int(core, &from, PLD_AT(0, 0));
            const int64_t y = pld_read_int(core, &to, PLD_AT(0, 0));
            pld_write_int(core, &to, PLD_AT(0, 0), y * 31 + x + j.number);
            continue;
        }
        const pld_predicate positive = {memory, &j.tested, PLD_GREATER, 0};
        pld_submit_options options = {0};
        if (j.tested >= 0)
            options.predicate = &positive;
        if (j.kind >= MANUAL) {
            options.manual = true;
            options.after = after;
            options.after_count = find_conflicts(manual, manuals, &j, after);
        }
        const pld_function *kernel = kernels[j.kind];
        const pld_task id =
            pld_submit_with(core, kernel,
                            PLD_ARGS(PLD_TENSOR(&from), PLD_TENSOR(&to), PLD_INT(j.number),
                                     PLD_INT(j.delay), PLD_TENSOR(bell), PLD_INT(j.signals)),
                            kernel->nparams, &options);
        if (j.kind >= MANUAL)
            manual[manuals++] = (manual_task){j.from.elements | j.to.elements, j.to.elements, id};
    }
}

static const pld_param list_params[] = {TENSOR("memory", PLD_INOUT), TENSOR("manual", PLD_INOUT),
                                        WINDOW("bell", 0), SCALAR("seed")};
FUNCTION(list, PLD_PLANE_CHIP, list_wrapper, 4, list_params);

static void tasks_host(pld_host *host, const pld_arg *args)
{
    const pld_buffer buffer = pld_alloc_window(host, 0, 4, pld_all_devices(host));
    const pld_tensor bell = pld_window_view(host, buffer, PYPTO_INT32, 1, PLD_EXTENTS(1));
    for (int64_t r = 0; r < RANKS; ++r) {
        const pld_tensor memory = pld_index(host, args[0].tensor, 2, PLD_AT(r, 0));
        const pld_tensor manual = pld_index(host, args[0].tensor, 2, PLD_AT(r, 1));
        pld_dispatch(host, r, &list,
                     PLD_ARGS(PLD_TENSOR(&memory), PLD_TENSOR(&manual), PLD_TENSOR(&bell), args[1]),
                     4);
    }
}

static void run_list_in_order(int32_t memory[RANKS][2][N], uint64_t state)
{
    int64_t sent[RANKS] = {0};
    for (int64_t i = 0; i < TASKS * RANKS; ++i) {
        const int64_t owner = i % RANKS;
        int64_t seen = sent[(owner + RANKS - 1) % RANKS];
        const int64_t before = seen;
        job j = random_job(&state, &seen);
        sent[owner] += seen - before;
        if (j.kind == WRAPPER_ADDS) /* the first element only */
            j.to.shape[0] = j.to.shape[1] = 1;
        if (j.tested < 0 || memory[owner][0][j.tested] > 0)
            apply(&j, memory[owner][j.kind >= MANUAL]);
    }
}

/* ---- a host function that dispatches a list ---- */

static void mix_chip(pld_core *core, const pld_arg *args)
{
    pld_submit(core, &plain, args, 4);
}
static void waits_chip(pld_core *core, const pld_arg *args)
{
    pld_submit(core, &waits, args, 6);
}
static void rings_chip(pld_core *core, const pld_arg *args)
{
    pld_submit(core, &rings, args, 6);
}
static void nothing_chip(pld_core *core, const pld_arg *args)
{
    (void)core, (void)args;
}
static const pld_param nothing_params[] = {WINDOW("bell", 0)};
FUNCTION(dispatch_nothing, PLD_PLANE_CHIP, nothing_chip, 1, nothing_params);
FUNCTION(dispatch_plain, PLD_PLANE_CHIP, mix_chip, 4, await_params);
FUNCTION(dispatch_waits, PLD_PLANE_CHIP, waits_chip, 6, await_params);
FUNCTION(dispatch_rings, PLD_PLANE_CHIP, rings_chip, 6, ring_params);

typedef struct dispatched {
    job job;
    int32_t device;
    uint64_t before; /* the dispatches that come before it */
} dispatched;

static bool passes_window(const job *j)
{
    return j->kind == WAITS || j->kind == RINGS;
}

/* Whether the order of the two is promised (docs/architecture.md, Order). */
static bool in_order(const dispatched *a, const dispatched *b)
{
    const uint64_t a_reads = a->job.from.elements | a->job.to.elements;
    const uint64_t b_reads = b->job.from.elements | b->job.to.elements;
    if (a->device != b->device)
        return (a->job.to.elements & b_reads) != 0;
    return (a->job.to.elements & b_reads) != 0 || (a_reads & b->job.to.elements) != 0 ||
           (passes_window(&a->job) && passes_window(&b->job));
}

/* A list in which all that conflict are in order, be it by way of others: one that writes what another
 * device reads has to come after a dispatch that does. */
static void random_dispatches(dispatched list_of[DISPATCHES], uint64_t seed)
{
    uint64_t state = seed;
    int64_t sent[RANKS] = {0};
    for (int32_t i = 0; i < DISPATCHES;) {
        dispatched *d = &list_of[i];
        *d = (dispatched){.device = (int32_t)pick(&state, RANKS)};
        int64_t seen = sent[(d->device + RANKS - 1) % RANKS];
        const int64_t before = seen;
        d->job = random_job(&state, &seen);
        if (d->job.kind > RINGS || d->job.kind == DEFERS)
            d->job.kind = PLAIN;
        bool defined = true;
        for (int32_t k = i - 1; k >= 0; --k)
            if (in_order(&list_of[k], d))
                d->before |= list_of[k].before | (uint64_t)1 << k;
        for (int32_t k = 0; k < i; ++k) {
            const dispatched *e = &list_of[k];
            const bool conflict =
                (e->job.to.elements & (d->job.from.elements | d->job.to.elements)) != 0 ||
                ((e->job.from.elements | e->job.to.elements) & d->job.to.elements) != 0;
            if (conflict && (d->before >> k & 1) == 0)
                defined = false;
        }
        if (!defined)
            continue;
        sent[d->device] += seen - before;
        ++i;
    }
}

static void dispatches_host(pld_host *host, const pld_arg *args)
{
    static const pld_function *const chips[] = {
        [PLAIN] = &dispatch_plain, [WAITS] = &dispatch_waits, [RINGS] = &dispatch_rings};
    const pld_buffer buffer = pld_alloc_window(host, 0, 4, pld_all_devices(host));
    const pld_tensor bell = pld_window_view(host, buffer, PYPTO_INT32, 1, PLD_EXTENTS(1));
    const pld_tensor memory = pld_index(host, args[0].tensor, 2, PLD_AT(0, 0));
    dispatched all[DISPATCHES];
    random_dispatches(all, (uint64_t)args[1].integer);
    for (int32_t device = 0; device < RANKS; ++device) /* no device of the domain may be left out */
        pld_dispatch(host, device, &dispatch_nothing, PLD_ARGS(PLD_TENSOR(&bell)), 1);
    for (int32_t i = 0; i < DISPATCHES; ++i) {
        const job *j = &all[i].job;
        const pld_tensor from = view_of(&memory, &j->from), to = view_of(&memory, &j->to);
        const pld_function *chip = chips[j->kind];
        pld_dispatch(host, all[i].device, chip,
                     PLD_ARGS(PLD_TENSOR(&from), PLD_TENSOR(&to), PLD_INT(j->number),
                              PLD_INT(j->delay), PLD_TENSOR(&bell), PLD_INT(j->signals)),
                     chip->nparams);
    }
}

static void run_dispatches_in_order(int32_t *memory, uint64_t seed)
{
    dispatched all[DISPATCHES];
    random_dispatches(all, seed);
    for (int32_t i = 0; i < DISPATCHES; ++i)
        apply(&all[i].job, memory);
}

/* ---- running ---- */

static const pld_param host_params[] = {{.name = "memory",
                                         .kind = PLD_PARAM_TENSOR,
                                         .direction = PLD_INOUT,
                                         .dtype = PYPTO_INT32,
                                         .ndim = 3,
                                         .shape = {RANKS, 2, N},
                                         .world_dim = -1},
                                        SCALAR("seed")};
static const pld_buffer_info buffers[] = {{"bell_buf", 1, PLD_NO_COLLECTIVES}};

#define PROGRAM(variable)                                                             \
    static const pld_function variable##_entry = {.name = #variable,                  \
                                                  .file = "random.c",                 \
                                                  .plane = PLD_PLANE_HOST,            \
                                                  .run_host = variable##_host,        \
                                                  .nparams = 2,                       \
                                                  .params = host_params};             \
    static const pld_function *const variable##_functions[] = {                       \
        &plain,           &waits,          &defers,                                   \
        &rings,           &list,           &dispatch_plain,                           \
        &dispatch_waits,  &dispatch_rings, &dispatch_nothing,                         \
        &variable##_entry};                                                           \
    static const pld_program variable##_program = {.abi = PLD_ABI,                    \
                                                   .size = sizeof(pld_program),       \
                                                   .name = #variable,                 \
                                                   .nfunctions = 10,                  \
                                                   .host = 9,                         \
                                                   .functions = variable##_functions, \
                                                   .nbuffers = 1,                     \
                                                   .buffers = buffers}

PROGRAM(tasks);
PROGRAM(dispatches);

static int32_t memory[RANKS][2][N], expected[RANKS][2][N];

static void run(pypto_worker *worker, const pld_program *table, int64_t seed)
{
    for (int32_t r = 0; r < RANKS; ++r)
        for (int32_t i = 0; i < 2 * N; ++i)
            memory[r][i / N][i % N] = r + i;
    memcpy(expected, memory, sizeof expected);
    pypto_program *program = NULL;
    pypto_status status = pypto_program_from_table(table, &program);
    pypto_argument arguments[2] = {{.kind = PLD_ARG_TENSOR},
                                   {.kind = PLD_ARG_INT, .integer = seed}};
    arguments[0].tensor = (pypto_tensor){.data = memory,
                                         .dtype = PYPTO_INT32,
                                         .ndim = 3,
                                         .shape = {RANKS, 2, N},
                                         .stride = {2 * N, N, 1}};
    if (status.kind == PYPTO_ERROR_NONE)
        status = pypto_worker_run(worker, program, arguments, 2);
    pypto_program_release(program);
    if (status.kind != PYPTO_ERROR_NONE)
        fail_msg("list %d: %s", (int)seed, pypto_status_text(&status));
}

static void check(int64_t seed)
{
    for (int32_t r = 0; r < RANKS; ++r)
        for (int32_t i = 0; i < 2 * N; ++i) {
            const int32_t got = memory[r][i / N][i % N], wanted = expected[r][i / N][i % N];
            if (got != wanted)
                fail_msg("list %d: element %d of part %d of rank %d is %d, not %d", (int)seed,
                         (int)(i % N), (int)(i / N), (int)r, (int)got, (int)wanted);
        }
}

static pypto_worker *make_worker(pypto_start start)
{
    return make_set(start, RANKS, 0, NULL);
}

static void test_random_tasks(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof starts / sizeof *starts; ++s) {
        pypto_worker *worker = make_worker(starts[s]);
        for (int64_t seed = 0; seed < LISTS; ++seed) {
            run(worker, &tasks_program, seed);
            run_list_in_order(expected, (uint64_t)seed);
            check(seed);
        }
        pypto_worker_close(worker);
    }
}

static void test_random_dispatches(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof starts / sizeof *starts; ++s) {
        pypto_worker *worker = make_worker(starts[s]);
        for (int64_t seed = 0; seed < LISTS; ++seed) {
            run(worker, &dispatches_program, seed);
            run_dispatches_in_order(expected[0][0], (uint64_t)seed);
            check(seed);
        }
        pypto_worker_close(worker);
    }
}

int main(void)
{
    const struct CMUnitTest tests_[] = {
        cmocka_unit_test(test_random_tasks),
        cmocka_unit_test(test_random_dispatches),
    };
    return cmocka_run_group_tests(tests_, NULL, NULL);
}
