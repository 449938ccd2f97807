/* The cells of collectives.h by MPI. Allreduces both ways, in place and out of place. MPI_Alltoallv is told what
 * it receives; pld_all_to_all_v finds out. Built and started by beside.py.
 *
 *     mpirun -n RANKS collectives_mpi RANKS [CELL...] */
#include "collectives.h"
#include "mpi_times.h"

static int rank, ranks;
static float *input, *output;
static int64_t turns;
static int *counts, *starts; /* of MPI_Alltoallv: the same elements to and from each */

static void collective(collectives_cell cell, bool in_place, int64_t elems, int root)
{
    const int n = (int)elems;
    switch (cell) {
    case BARRIER: MPI_Barrier(MPI_COMM_WORLD); break;
    case ALLREDUCE:
        if (in_place)
            MPI_Allreduce(MPI_IN_PLACE, input, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        else
            MPI_Allreduce(input, output, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case BROADCAST: MPI_Bcast(input, n, MPI_FLOAT, root, MPI_COMM_WORLD); break;
    case ALLGATHER: MPI_Allgather(input, n, MPI_FLOAT, output, n, MPI_FLOAT, MPI_COMM_WORLD); break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_block(input, output, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case ALL_TO_ALL: MPI_Alltoall(input, n, MPI_FLOAT, output, n, MPI_FLOAT, MPI_COMM_WORLD); break;
    case ALL_TO_ALL_V:
        MPI_Alltoallv(input, counts, starts, MPI_FLOAT, output, counts, starts, MPI_FLOAT,
                      MPI_COMM_WORLD);
        break;
    case CELLS: break;
    }
}

static void run(collectives_cell cell, bool in_place, int64_t elems, int64_t count)
{
    const float *result = in_place ? input : output;
    for (int64_t i = 0; i < count; ++i) {
        const int root = (int)(turns++ % ranks);
        if (cell != BROADCAST || root == rank)
            produce(input, input_parts(cell, ranks) * elems, (float)(rank + 1));
        collective(cell, in_place, elems, root);
        consume(result, result_parts(cell, ranks) * elems);
    }
}

static void check(collectives_cell cell, bool in_place, int64_t elems)
{
    fill_input(cell, input, elems, rank, ranks);
    collective(cell, in_place, elems, ranks - 1);
    if (result_is_right(cell, in_place ? input : output, elems, rank, ranks, ranks - 1))
        return;
    fprintf(stderr, "collectives_mpi: %s is wrong\n", cells[cell].name);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void measure(collectives_cell cell, bool in_place, int64_t bytes)
{
    const int64_t count = repetitions(cell, bytes, ranks), elems = bytes / 4;
    batch_times times = {{0}, {0}};
    for (int r = 0; r < ranks; ++r) {
        counts[r] = (int)elems;
        starts[r] = (int)(r * elems);
    }
    check(cell, in_place, elems);
    for (int batch = -1; batch < batches(bytes); ++batch) {
        MPI_Barrier(MPI_COMM_WORLD);
        const int64_t began = now_ns();
        run(cell, in_place, elems, count);
        if (batch >= 0) {
            times.began[batch] = began;
            times.ended[batch] = now_ns();
        }
    }
    gather_times(&times);
    if (rank == 0)
        print_cell(cells[cell].name, in_place ? "in_place" : "out_of_place", bytes, &times,
                   batches(bytes), (double)count);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    input = aligned_alloc(4096, MOST_BYTES);
    output = aligned_alloc(4096, MOST_BYTES);
    counts = calloc((size_t)ranks, sizeof *counts);
    starts = calloc((size_t)ranks, sizeof *starts);
    if (input == NULL || output == NULL || counts == NULL || starts == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(input, 0, MOST_BYTES);
    memset(output, 0, MOST_BYTES);
    for (collectives_cell cell = 0; cell < CELLS; ++cell) {
        for (int64_t bytes = 0; wanted(cells[cell].name, argv + 2, argc - 2) &&
                                (bytes = next_bytes(cell, bytes, ranks)) != 0;) {
            if (cell != BROADCAST)
                measure(cell, false, bytes);
            if (cell == ALLREDUCE || cell == BROADCAST)
                measure(cell, true, bytes);
        }
    }
    MPI_Finalize();
    return 0;
}
