/* Views: what a part of a tensor is, for kernels and for host functions; and the value of an element. */
#ifndef RUNTIME_VIEWS_H
#define RUNTIME_VIEWS_H

#include <pypto/pld.h>

/* The view of `extents` at `offsets`, one entry of each per dimension, without those whose extent is PLD_DROP.
 * Returns the first dimension that the part leaves, or -1 when *view is filled. */
int32_t view_part(const pld_tensor *tensor, const int64_t *offsets, const int64_t *extents,
                  pld_tensor *view);

/* The same where of the part only `valid` elements count (NULL: all), as far as they count in the tensor.
 * That box must lie inside, or with `clamp` need not; the part itself may reach over the end. */
int32_t view_part_valid(const pld_tensor *tensor, const int64_t *offsets, const int64_t *extents,
                        const int64_t *valid, bool clamp, pld_tensor *view);

/* Where a box of `extents` from the origin of a packed tensor of `shape` lies when that has the shape
 * `other`; false when it is no box there. Unit axes come and go, and a box that is one run of elements from
 * the first stays one. */
bool view_box_reshaped(const int64_t *shape, const int64_t *extents, int32_t ndim,
                       const int64_t *other, int64_t *found, int32_t other_ndim);

/* What counts of the box of `extents` at `offsets`, extents not negative; false: nothing. */
bool view_valid_part(const pld_tensor *tensor, const int64_t *offsets, const int64_t *extents,
                     int64_t *found);

/* The tensor as the program sees it: its declared shape in the place of what is there. */
static inline pld_tensor view_declared(const pld_tensor *tensor)
{
    pld_tensor view = *tensor;
    for (int32_t d = 0; d < view.ndim; ++d)
        view.shape[d] = pld_extents(tensor)[d];
    return view;
}

/* Fills everything of a packed row-major tensor but its memory. Returns its bytes, or -1 when an extent is
 * negative or they cannot be counted. */
int64_t view_packed(pld_tensor *tensor, int32_t dtype, int32_t ndim, const int64_t *shape);

/* Sets every element of a packed tensor of zeros, which has that many bytes. */
void view_fill(const pld_tensor *tensor, int64_t bytes, double value);

/* The same memory as bytes: where elements lie two in a byte, along the last dimension, a view of half its
 * extent; others as they are. */
static inline pld_tensor view_in_bytes(const pld_tensor *tensor)
{
    pld_tensor view = *tensor;
    if (!pypto_dtype_packed((pypto_dtype)tensor->dtype))
        return view;
    view.dtype = PYPTO_UINT8;
    for (int32_t d = 0; d < view.ndim - 1; ++d)
        view.stride[d] /= 2;
    if (view.ndim > 0)
        view.shape[view.ndim - 1] /= 2;
    return view;
}

/* Whether a part of a tensor begins or ends in the middle of a byte. */
static inline bool view_cuts_byte(const pld_tensor *tensor, const int64_t *offsets,
                                  const int64_t *extents)
{
    const int32_t last = tensor->ndim - 1;
    return __builtin_expect(pypto_dtype_packed((pypto_dtype)tensor->dtype), 0) && last >= 0 &&
           (offsets[last] % 2 != 0 || extents[last] % 2 != 0 || extents[last] == PLD_DROP);
}
/* An element of an integer or BOOL type (UINT64 by its bits), and of a float type. */
int64_t element_int(pypto_dtype dtype, const void *at);
float element_float(pypto_dtype dtype, const void *at);

#endif
