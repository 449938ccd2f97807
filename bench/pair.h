/* What the two programs of a pair share, of which one does a thing with pypto and one with Open MPI: what they
 * do with their data, how they time, and the line that they print for each cell and way of doing it:
 *
 *     cell  way  bytes  median  min  max       in us for one operation, over batches
 *
 * A batch takes from when the first rank begins it until the last one has ended it. No rank's own clock
 * tells: where ranks share CPUs, one that gets its CPU back late, from the barrier that all begin behind, begins
 * when others are done, and would see a fraction of the time, or all of it, by the way barriers wake ranks. */
#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

#include "canary.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES 21
#define BATCH_US 500.0

/* The size of cells behind `bytes`; 0: no more up to `largest`. */
static inline int64_t size_behind(int64_t bytes, int64_t largest)
{
    static const int64_t sizes[] = {8,     64,     1024,    4096,    16384,
                                    65536, 262144, 1 << 20, 1 << 23, 1 << 26};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        if (sizes[i] > bytes)
            return sizes[i] <= largest ? sizes[i] : 0;
    return 0;
}

/* How many operations of `each` us make a batch. */
static inline int64_t fill_batch(double each)
{
    const double count = BATCH_US / each;
    return count > 2000 ? 2000 : count < 1 ? 1 : (int64_t)count;
}

/* Whether the arguments behind RANKS, if there are any, name the cell. */
static inline bool wanted(const char *cell, char *const *names, int count)
{
    bool found = count <= 0;
    for (int i = 0; i < count; ++i)
        found |= strcmp(names[i], cell) == 0;
    return found;
}

/* A program makes its input, and looks at its result, by whole cache lines, so that as little as possible of
 * the time is its own. Neither can be left out or joined with what is between them. */
typedef float data_line __attribute__((vector_size(64)));

#define LINE_FLOATS (int64_t)(sizeof(data_line) / sizeof(float))

static inline void produce(float *data, int64_t count, float value)
{
    const data_line values = (data_line){0} + value;
    int64_t i = 0;
    for (; i + LINE_FLOATS <= count; i += LINE_FLOATS)
        memcpy(data + i, &values, sizeof values);
    for (; i < count; ++i)
        data[i] = value;
    __asm__ volatile("" : : "r"(data) : "memory");
}

static inline void consume(const float *data, int64_t count)
{
    data_line sum[4] = {{0}}, next;
    float rest = 0;
    int64_t i = 0;
    for (; i + 4 * LINE_FLOATS <= count; i += 4 * LINE_FLOATS)
        for (int k = 0; k < 4; ++k) {
            memcpy(&next, data + i + k * LINE_FLOATS, sizeof next);
            sum[k] += next;
        }
    for (; i < count; ++i)
        rest += data[i];
    sum[0] += sum[1] + sum[2] + sum[3];
    __asm__ volatile("" : : "m"(sum[0]), "m"(rest) : "memory");
}

static inline int by_time(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* When each batch began and ended, in ns: of one rank, or of all. */
typedef struct batch_times {
    int64_t began[BATCHES], ended[BATCHES];
} batch_times;

/* Of `count` batches of so many operations, by all ranks. */
static inline void print_cell(const char *cell, const char *way, int64_t bytes,
                              const batch_times *all, int count, double operations)
{
    float times[BATCHES];
    for (int batch = 0; batch < count; ++batch)
        times[batch] = (float)((double)(all->ended[batch] - all->began[batch]) * 1e-3 / operations);
    qsort(times, (size_t)count, sizeof *times, by_time);
    printf("%s\t%s\t%lld\t%.4f\t%.4f\t%.4f\n", cell, way, (long long)bytes,
           (double)times[count / 2], (double)times[0], (double)times[count - 1]);
    fflush(stdout);
}

#endif
