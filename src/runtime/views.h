/* Views: what a part of a tensor is, for kernels and for host functions. */
#ifndef RUNTIME_VIEWS_H
#define RUNTIME_VIEWS_H

#include <pypto/pld.h>

/* The view of `extents` at `offsets`, one entry of each per dimension, without those whose extent is PLD_DROP.
 * Returns the first dimension that the part leaves, or -1 when *view is filled. */
int32_t view_part(const pld_tensor *tensor, const int64_t *offsets, const int64_t *extents,
                  pld_tensor *view);

#endif
