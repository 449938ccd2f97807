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
    /* `acc` has room for FOLD_PIECE elements of 8 bytes; count is FOLD_PIECE at most. */
    void (*first)(void *acc, const void *source, int64_t count);
    void (*next)(void *acc, const void *source, int64_t count);
    void (*result)(void *target, void *acc, int64_t count);
} fold;

/* How elements of a type are folded; NULL for a type without arithmetic. */
const fold *fold_of(pypto_dtype dtype, pld_reduce_op op);

/* Elements folded at a time: what they take stays in the first-level cache. */
#define FOLD_PIECE 1024

/* Folds `count` (at most FOLD_PIECE) elements of `sources` into each of `targets`, which may be sources too. */
void fold_piece(const fold *f, const char *const *sources, int32_t source_count,
                char *const *targets, int32_t target_count, int64_t count);

#endif
