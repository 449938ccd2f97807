/* The cells of beside.c (pypto) and beside_mpi.c (Open MPI), and how often each is repeated:
 *
 *   signal        a token around the ring of ranks, one hop
 *   put_signal    the same with 8 bytes that travel with it
 *   put, get      every rank to or from its right neighbour, all at once; until all have done
 *   allreduce     FP32 sum; before each the whole input is written, behind it the whole result is read,
 *                 because repeating on unchanged data leaves every line shared and flatters zero copy */
#ifndef BENCH_BESIDE_H
#define BENCH_BESIDE_H

#include "pair.h"

typedef enum beside_cell { SIGNAL, PUT_SIGNAL, PUT, GET, ALLREDUCE, CELLS } beside_cell;

static const char *const cell_names[CELLS] = {"signal", "put_signal", "put", "get", "allreduce"};

/* The first size of a cell, and the one behind `bytes`; 0: no more. */
static inline int64_t next_bytes(beside_cell cell, int64_t bytes)
{
    static const int64_t largest[CELLS] = {8, 8, 1 << 26, 1 << 26, 1 << 20};
    return size_behind(bytes, largest[cell]);
}

/* Of which a repetition is one operation each. */
static inline int hops_of(beside_cell cell, int ranks)
{
    return cell == SIGNAL || cell == PUT_SIGNAL ? ranks : 1;
}

/* So many that a batch takes about BATCH_US on a middling machine. */
static inline int64_t repetitions(beside_cell cell, int64_t bytes, int ranks)
{
    static const double latency[CELLS] = {.2, .3, .1, .1, .5};
    const double size = (double)bytes;
    const double share = (double)ranks / 2;
    double each = ranks > 2 && cell != PUT && cell != GET ? 2.0 * ranks : latency[cell];
    each += share * (cell == ALLREDUCE ? size / 3000 * share : size / 8000);
    return fill_batch(each);
}

#endif
