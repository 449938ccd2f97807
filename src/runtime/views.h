/* Views: what a part of a tensor is, for kernels and for host functions. */
#ifndef RUNTIME_VIEWS_H
#define RUNTIME_VIEWS_H

#include <pypto/pld.h>

/* The view of `extents` at `offsets`, one entry of each per dimension, without those whose extent is PLD_DROP.
 * Returns the first dimension that the part leaves, or -1 when *view is filled. */
int32_t view_part(const pld_tensor *tensor, const int64_t *offsets, const int64_t *extents,
                  pld_tensor *view);

/* Fills everything of a packed row-major tensor but its memory. Returns its bytes, or -1 when an extent is
 * negative or they cannot be counted. */
int64_t view_packed(pld_tensor *tensor, int32_t dtype, int32_t ndim, const int64_t *shape);

/* Sets every element of a packed tensor of zeros, which has that many bytes. */
void view_fill(const pld_tensor *tensor, int64_t bytes, double value);

#endif
