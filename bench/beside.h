/* What the benchmark beside Open MPI measures: the cells, how often each is repeated, and what a program
 * does with its data, the same for beside.c (pypto) and beside_mpi.c (Open MPI).
 *
 * Each program prints one line per cell and way of doing it:
 *
 *     cell  way  bytes  median  min  max       in us for one operation, over batches, seen by rank 0
 *
 *   signal        a token around the ring of ranks, one hop
 *   put_signal    the same with 8 bytes that travel with it
 *   put, get      every rank to or from its right neighbour, all at once; until all have done
 *   allreduce     FP32 sum; before each the whole input is written, behind it the whole result is read,
 *                 because repeating on unchanged data leaves every line shared and flatters zero copy */
#ifndef BENCH_BESIDE_H
#define BENCH_BESIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef enum beside_cell { SIGNAL, PUT_SIGNAL, PUT, GET, ALLREDUCE, CELLS } beside_cell;

static const char *const cell_names[CELLS] = {"signal", "put_signal", "put", "get", "allreduce"};

#define BATCHES 21
#define BATCH_US 500.0

/* The first size of a cell, and the one behind `bytes`; 0: no more. */
static inline int64_t next_bytes(beside_cell cell, int64_t bytes)
{
    static const int64_t sizes[] = {8, 64, 1024, 16384, 65536, 262144, 1 << 20, 1 << 23, 1 << 26};
    static const int64_t largest[CELLS] = {8, 8, 1 << 26, 1 << 26, 1 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        if (sizes[i] > bytes)
            return sizes[i] <= largest[cell] ? sizes[i] : 0;
    return 0;
}

/* So many that a batch takes about BATCH_US on a middling machine. */
static inline int64_t repetitions(beside_cell cell, int64_t bytes, int ranks)
{
    static const double latency[CELLS] = {.2, .3, .1, .1, .5};
    const double size = (double)bytes;
    const double share = (double)ranks / 2;
    double each = ranks > 2 && cell != PUT && cell != GET ? 2.0 * ranks : latency[cell];
    each += share * (cell == ALLREDUCE ? size / 3000 * share : size / 8000);
    const double count = BATCH_US / each;
    return count > 2000 ? 2000 : count < 1 ? 1 : (int64_t)count;
}

/* A program makes its input, and looks at its result. Neither can be left out or joined with what is
 * between them. */
static inline void produce(float *data, int64_t count, float value)
{
    for (int64_t i = 0; i < count; ++i)
        data[i] = value;
    __asm__ volatile("" : : "r"(data) : "memory");
}

static inline void consume(const float *data, int64_t count)
{
    uint32_t sum[16] = {0};
    const uint32_t *bits = (const uint32_t *)(const void *)data;
    int64_t i = 0;
    for (; i + 16 <= count; i += 16)
        for (int lane = 0; lane < 16; ++lane)
            sum[lane] += bits[i + lane];
    for (; i < count; ++i)
        sum[0] += bits[i];
    __asm__ volatile("" : : "r"(sum) : "memory");
}

static inline int by_time(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static inline void print_cell(beside_cell cell, const char *way, int64_t bytes, float *times)
{
    qsort(times, BATCHES, sizeof *times, by_time);
    printf("%s\t%s\t%lld\t%.4f\t%.4f\t%.4f\n", cell_names[cell], way, (long long)bytes,
           (double)times[BATCHES / 2], (double)times[0], (double)times[BATCHES - 1]);
    fflush(stdout);
}

#endif
