/* The cells of beside.h by MPI, as its users write them: one-sided transfers in a window that is locked once
 * for all, send and receive, MPI_Allreduce. Built and started by beside.py.
 *
 *     mpirun -n RANKS beside_mpi RANKS [CELL...] */
#include "beside.h"
#include "mpi_times.h"

/* Ways of doing a cell. */
enum { TWO_SIDED, ONE_SIDED };

static int rank, ranks;
static MPI_Win window;
static char *own; /* the window's memory: a page of flags, then data */
static char *input, *output;
static int64_t token;

#define DATA 4096

static void require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "beside_mpi: %s is wrong\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Until the flag in my window has come. Other ranks may need this CPU; MPI wants to be called. */
static void await_flag(int64_t value)
{
    const volatile int64_t *flag = (const volatile int64_t *)(const void *)own;
    for (long turns = 1; *flag < value; ++turns) {
        if (turns % 64 == 0)
            MPI_Win_sync(window);
        if (ranks > 2)
            sched_yield();
        if (turns % 4096 == 0) {
            int there;
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        }
    }
    MPI_Win_sync(window);
}

static void pass_token(beside_cell cell, int way, int right, int left)
{
    const int bytes = cell == PUT_SIGNAL ? 8 : 0;
    for (int turn = 0; turn < 2; ++turn) {
        const bool sends = (turn == 0) == (rank == 0);
        if (sends && way == TWO_SIDED) {
            MPI_Send(input, bytes, MPI_BYTE, right, 0, MPI_COMM_WORLD);
        } else if (sends) {
            if (bytes > 0) {
                MPI_Put(input, bytes, MPI_BYTE, right, DATA, bytes, MPI_BYTE, window);
                MPI_Win_flush(right, window); /* data before flag */
            }
            MPI_Put(&token, 8, MPI_BYTE, right, 0, 8, MPI_BYTE, window);
            MPI_Win_flush(right, window);
        } else if (way == TWO_SIDED) {
            MPI_Recv(output, bytes, MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            await_flag(token);
        }
    }
}

static void run(beside_cell cell, int way, int64_t bytes, int64_t count)
{
    const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    const int size = (int)bytes, elems = (int)(bytes / 4);
    for (int64_t i = 0; i < count; ++i) {
        switch (cell) {
        case SIGNAL:
        case PUT_SIGNAL:
            ++token;
            pass_token(cell, way, right, left);
            break;
        case PUT:
            MPI_Put(input, size, MPI_BYTE, right, DATA, size, MPI_BYTE, window);
            MPI_Win_flush(right, window);
            break;
        case GET:
            MPI_Get(output, size, MPI_BYTE, right, DATA, size, MPI_BYTE, window);
            MPI_Win_flush(right, window);
            break;
        default:
            produce((float *)(void *)input, elems, (float)(rank + 1));
            MPI_Allreduce(input, output, elems, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            consume((const float *)(const void *)output, elems);
            break;
        }
    }
}

/* Leaves in data what it must become, and looks. */
static void check(beside_cell cell, int64_t bytes)
{
    const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    const size_t last = (size_t)bytes - 1;
    MPI_Barrier(MPI_COMM_WORLD);
    memset(input, rank + 1, (size_t)bytes);
    if (cell == GET)
        memset(own + DATA, rank + 1, (size_t)bytes);
    MPI_Win_sync(window);
    MPI_Barrier(MPI_COMM_WORLD);
    run(cell, ONE_SIDED, bytes, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window);
    if (cell == PUT || cell == PUT_SIGNAL)
        require(own[DATA] == left + 1 && own[DATA + last] == left + 1, "a put");
    if (cell == GET)
        require(output[0] == right + 1 && output[last] == right + 1, "a get");
    const float sum = (float)(ranks * (ranks + 1) / 2);
    if (cell == ALLREDUCE)
        require(*(float *)(void *)output == sum && *(float *)(void *)(output + last - 3) == sum,
                "a sum");
}

static void measure(beside_cell cell, int way, const char *name, int64_t bytes)
{
    const int64_t count = repetitions(cell, bytes, ranks);
    batch_times times = {{0}, {0}};
    check(cell, bytes);
    for (int batch = -1; batch < BATCHES; ++batch) {
        MPI_Barrier(MPI_COMM_WORLD);
        const int64_t began = now_ns();
        run(cell, way, bytes, count);
        if (cell == PUT || cell == GET)
            MPI_Barrier(MPI_COMM_WORLD);
        if (batch >= 0) {
            times.began[batch] = began;
            times.ended[batch] = now_ns();
        }
    }
    gather_times(&times);
    if (rank == 0)
        print_cell(cell_names[cell], name, bytes, &times, BATCHES,
                   (double)count * hops_of(cell, ranks));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const size_t most = (size_t)1 << 26;
    input = aligned_alloc(4096, most);
    output = aligned_alloc(4096, most);
    MPI_Win_allocate((MPI_Aint)(most + DATA), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
    if (input == NULL || output == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(own, 0, DATA);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    for (beside_cell cell = 0; cell < CELLS; ++cell) {
        if (!wanted(cell_names[cell], argv + 2, argc - 2))
            continue;
        for (int64_t bytes = 0; (bytes = next_bytes(cell, bytes)) != 0;) {
            if (cell == SIGNAL || cell == PUT_SIGNAL) {
                measure(cell, TWO_SIDED, "send", bytes);
                measure(cell, ONE_SIDED, "put", bytes);
            } else {
                measure(cell, ONE_SIDED, "mpi", bytes);
            }
        }
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
