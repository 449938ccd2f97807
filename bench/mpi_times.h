/* The times of the programs by Open MPI. */
#ifndef BENCH_MPI_TIMES_H
#define BENCH_MPI_TIMES_H

#include "pair.h"

#include <mpi.h>

/* Makes the times of each rank those of all, on rank 0. */
static inline void gather_times(batch_times *times)
{
    batch_times all = *times;
    MPI_Reduce(times->began, all.began, BATCHES, MPI_INT64_T, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(times->ended, all.ended, BATCHES, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    *times = all;
}

#endif
