/* The cells of collectives.c (pypto) and collectives_mpi.c (Open MPI): every collective on FP32, sums where it
 * reduces. Before each operation a rank writes the whole of its input, behind it it reads the whole of its
 * result, because repeating on unchanged data leaves every line shared and flatters zero copy. The root of a
 * broadcast goes around, so that none runs ahead of the others. `bytes` is what a rank has of an allreduce or
 * broadcast, and one part of the others. */
#ifndef BENCH_COLLECTIVES_H
#define BENCH_COLLECTIVES_H

#include "pair.h"

typedef enum collectives_cell {
    BARRIER,
    ALLREDUCE,
    BROADCAST,
    ALLGATHER,
    REDUCE_SCATTER,
    ALL_TO_ALL,
    ALL_TO_ALL_V,
    CELLS
} collectives_cell;

/* Parts of the input and of the result: 0, 1, or one for each rank. */
enum { EACH = -1 };

static const struct {
    const char *name;
    int inputs, results;
} cells[CELLS] = {
    [BARRIER] = {"barrier", 0, 0},
    [ALLREDUCE] = {"allreduce", 1, 1},
    [BROADCAST] = {"broadcast", 1, 1},
    [ALLGATHER] = {"allgather", 1, EACH},
    [REDUCE_SCATTER] = {"reduce_scatter", EACH, 1},
    [ALL_TO_ALL] = {"all_to_all", EACH, EACH},
    [ALL_TO_ALL_V] = {"all_to_all_v", EACH, EACH},
};

#define MOST_BYTES (INT64_C(1) << 26)

static inline int64_t input_parts(collectives_cell cell, int ranks)
{
    return cells[cell].inputs == EACH ? ranks : cells[cell].inputs;
}

static inline int64_t result_parts(collectives_cell cell, int ranks)
{
    return cells[cell].results == EACH ? ranks : cells[cell].results;
}

/* The first size of a cell, and the one behind `bytes`; 0: no more. No rank has more than MOST_BYTES. */
static inline int64_t next_bytes(collectives_cell cell, int64_t bytes, int ranks)
{
    const bool parts = cells[cell].inputs == EACH || cells[cell].results == EACH;
    return size_behind(bytes, cell == BARRIER ? 8 : parts ? MOST_BYTES / ranks : MOST_BYTES);
}

/* Every rank is the root of as many broadcasts: its own end sooner. */
static inline int64_t repetitions(collectives_cell cell, int64_t bytes, int ranks)
{
    const double moved = (double)(bytes * (input_parts(cell, ranks) + result_parts(cell, ranks)));
    const double each = ranks > 2 ? 2.0 * ranks : .3;
    const int64_t count = fill_batch(each + moved * ranks / 2 / 8000);
    return cell == BROADCAST ? (count + ranks - 1) / ranks * ranks : count;
}

/* Long operations are less easily disturbed. */
static inline int batches(int64_t bytes)
{
    return bytes < 1 << 23 ? BATCHES : BATCHES / 3;
}

/* ---- the check that each cell makes once ---- */

/* Element i of what `rank` has for rank `part`. Sums are exact. */
static inline float element(int rank, int64_t part, int64_t i)
{
    return (float)(64 * rank + 8 * (int)part + (int)(i % 7));
}

static inline void fill_input(collectives_cell cell, float *input, int64_t elems, int rank,
                              int ranks)
{
    for (int64_t part = 0; part < input_parts(cell, ranks); ++part)
        for (int64_t i = 0; i < elems; ++i)
            input[part * elems + i] = element(rank, part, i);
}

static inline float expected(collectives_cell cell, int64_t part, int64_t i, int rank, int ranks,
                             int root)
{
    float sum = 0;
    switch (cell) {
    case BROADCAST: return element(root, 0, i);
    case ALLGATHER: return element((int)part, 0, i);
    case ALL_TO_ALL:
    case ALL_TO_ALL_V: return element((int)part, rank, i);
    default:
        for (int r = 0; r < ranks; ++r)
            sum += element(r, cell == REDUCE_SCATTER ? rank : 0, i);
        return sum;
    }
}

static inline bool result_is_right(collectives_cell cell, const float *result, int64_t elems,
                                   int rank, int ranks, int root)
{
    for (int64_t part = 0; part < result_parts(cell, ranks); ++part)
        for (int64_t i = 0; i < elems; ++i)
            if (result[part * elems + i] != expected(cell, part, i, rank, ranks, root))
                return false;
    return true;
}

#endif
