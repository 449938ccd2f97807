/* Folding the elements of several ranks into one: the arithmetic of allreduce and reduce_scatter.
 *
 * An element is folded in the order of the sources, from the first one's value. Floats of 16 bits are folded in
 * FP32 and rounded once, at the end. A NaN that comes out is the quiet NaN without sign and payload; in a
 * maximum or minimum NaN wins, and +0 is larger than -0; integers wrap. So the bits of the result depend on the
 * values and their order alone: not on the CPU, the width of its vectors, or where a piece begins. */
#ifndef COLLECTIVE_FOLD_H
#define COLLECTIVE_FOLD_H

#include <pypto/pld.h>

typedef struct fold {
    int64_t width; /* bytes of an element */
    /* Folds `count` elements of `sources` into each of `targets`. A target may be a source, but not
     * overlap one otherwise. */
    void (*run)(const char *const *sources, int32_t source_count, char *const *targets,
                int32_t target_count, int64_t count);
} fold;

/* How elements of a type are folded; NULL for a type without arithmetic. */
const fold *fold_of(pypto_dtype dtype, pld_reduce_op op);

/* The sets of loops that fold_of() chooses from: fold_loops.c, compiled for every CPU of the architecture and
 * for those with wider vectors. */
const fold *fold_of_any_cpu(pypto_dtype dtype, pld_reduce_op op);
const fold *fold_of_avx2(pypto_dtype dtype, pld_reduce_op op);
const fold *fold_of_avx512(pypto_dtype dtype, pld_reduce_op op);

#endif
