/* The clock of the benchmarks, and their canary: the one-way time of a flag between two CPUs of this
 * machine, measured by two processes. On virtual machines it tells which neighbours the CPUs are at the
 * moment, and with them every other latency changes. */
#ifndef BENCH_CANARY_H
#define BENCH_CANARY_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The same clock in all processes. */
static inline int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline double now_us(void)
{
    return (double)now_ns() * 1e-3;
}

#define CANARY_TRIPS 2000

static inline void canary_side(_Atomic unsigned *mine, _Atomic unsigned *theirs, int first)
{
    for (unsigned i = 1; i <= CANARY_TRIPS; ++i) {
        if (first)
            atomic_store_explicit(theirs, i, memory_order_release);
        for (long spins = 0; atomic_load_explicit(mine, memory_order_acquire) != i; ++spins)
            if (spins > 1000)
                sched_yield();
        if (!first)
            atomic_store_explicit(theirs, i, memory_order_release);
    }
}

/* Puts the caller on the first or last CPU that it may use, so that the two sides do not share one.
 */
static inline void pin(int last)
{
    cpu_set_t allowed, one;
    sched_getaffinity(0, sizeof allowed, &allowed);
    int chosen = -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET((size_t)cpu, &allowed) && (chosen < 0 || last))
            chosen = cpu;
    CPU_ZERO(&one);
    CPU_SET((size_t)chosen, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* One-way nanoseconds, the best of several tries. */
static inline double canary_ns(void)
{
    double best = 1e9;
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    for (int attempt = 0; attempt < 5; ++attempt) {
        _Atomic unsigned *flags =
            mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (flags == MAP_FAILED)
            return -1;
        pid_t child = fork();
        pin(child == 0);
        if (child == 0) {
            canary_side(&flags[64], &flags[128], 0);
            _exit(0);
        }
        double start = now_us();
        canary_side(&flags[128], &flags[64], 1);
        double one_way = (now_us() - start) * 1000.0 / (2.0 * CANARY_TRIPS);
        sched_setaffinity(0, sizeof before, &before);
        waitpid(child, NULL, 0);
        munmap(flags, 4096);
        best = one_way < best ? one_way : best;
    }
    return best;
}

#endif
