/* Boxes: what every load, store and transfer moves. A box is a number of elements along each of up to
 * eight dimensions, at one place in a strided source and one in a strided target; either may be a
 * packed tile, a tensor of the host, or any rank's slice of a window. */
#ifndef RUNTIME_BOX_H
#define RUNTIME_BOX_H

#include "runtime/views.h"
#include "sched/sched.h"

typedef enum box_mode {
    BOX_COPY,
    /* A copy of 32-bit words none of which is ever seen half written: into INT32 windows, whose cells
     * somebody may wait for. */
    BOX_WORDS,
    /* target += source, atomic for each element. */
    BOX_ADD
} box_mode;

typedef struct box {
    char *target; /* first element */
    const int64_t *target_stride;
    const char *source;
    const int64_t *source_stride; /* strides in elements */
    const int64_t *extents;
    int32_t ndim;
    int64_t width; /* bytes of an element */
} box;

/* Moves a box; `dtype` matters to BOX_ADD, which has every element type but BOOL and those for storage only,
 * and where elements lie two in a byte. Boxes may
 * overlap when both have the same strides (a transfer within one window). Leaves the task when the
 * call is poisoned meanwhile, which it asks every few megabytes. */
void box_move(pld_core *core, const box *b, box_mode mode, pypto_dtype dtype);

/* From memory into the packed tile of `extents`, and back: the part of `valid` elements from the origin.
 * `first` is the box's first element in memory. */
void box_load(pld_core *core, void *tile, const char *first, const pld_tensor *source,
              const int64_t *extents, const int64_t *valid);
void box_store(pld_core *core, const void *tile, char *first, const pld_tensor *target,
               const int64_t *extents, const int64_t *valid, bool adds);

/* pld_load_part, from the slice whose address corresponds to source->data. */
void box_load_part(pld_core *core, const char *what, void *tile, const pld_tensor *source,
                   const char *slice, const int64_t *offsets, const int64_t *extents,
                   const int64_t *valid, bool clamp, int64_t *loaded);

/* The extents and strides of what counts of a tensor as a box of `ndim` dimensions: leading ones have one element.
 * With fewer dimensions than it has, its own leading ones are left out. */
void box_align(const pld_tensor *tensor, int32_t ndim, int64_t *extents, int64_t *stride);

/* The strides of a packed box; returns its elements. */
int64_t box_pack(const int64_t *extents, int32_t ndim, int64_t *stride);

/* How to write into a tensor: in words where its cells may be signals. */
static inline box_mode box_write_mode(const pld_tensor *target, bool adds)
{
    if (adds)
        return BOX_ADD;
    return target->window != NULL && target->dtype == PYPTO_INT32 ? BOX_WORDS : BOX_COPY;
}

/* Behind a write into a tensor on the rank of `owner`: wakes it if its cells may be signals. */
static inline void box_written(pld_core *core, const pld_tensor *target, rank_header *owner)
{
    if (target->window != NULL && target->dtype == PYPTO_INT32)
        rank_ring_behind(&core->owner->seg, owner);
}

/* Bits of a tensor's elements, and bytes that one of them takes by itself. */
static inline int64_t box_bits(const pld_tensor *tensor)
{
    static const uint8_t bits_of[PYPTO_DTYPE_COUNT] = {
#define BOX_BITS(name, text, bits, class_) bits,
        PYPTO_DTYPES(BOX_BITS)
#undef BOX_BITS
    };
    return (uint32_t)tensor->dtype < PYPTO_DTYPE_COUNT ? bits_of[tensor->dtype] : 0;
}

static inline int64_t box_width(const pld_tensor *tensor)
{
    return (box_bits(tensor) + 7) / 8;
}

/* Fails for an access that leaves a tensor in dimension d. */
void box_fail(pld_core *core, const char *what, const pld_tensor *tensor, const int64_t *offsets,
              const int64_t *extents, int32_t d) PYPTO_NORETURN;

/* Fails for an access to one of two elements of a byte. */
void box_fail_in_byte(pld_core *core, const char *what, const pld_tensor *tensor) PYPTO_NORETURN;

/* Bytes from tensor->data to the box's first element; fails when the box leaves the tensor. `what`
 * begins the message: "a load". Offsets and extents may be any int64: a negative one is larger than
 * any shape when taken as unsigned, and nothing can overflow. */
static inline int64_t box_check(pld_core *core, const char *what, const pld_tensor *tensor,
                                const int64_t *offsets, const int64_t *extents)
{
    int64_t elems = 0;
    for (int32_t d = 0; d < tensor->ndim; ++d) {
        const uint64_t room = (uint64_t)tensor->shape[d];
        if (__builtin_expect((uint64_t)extents[d] > room ||
                                 (uint64_t)offsets[d] > room - (uint64_t)extents[d],
                             0))
            box_fail(core, what, tensor, offsets, extents, d);
        elems += offsets[d] * tensor->stride[d];
    }
    if (__builtin_expect(box_bits(tensor) < 8, 0) && view_cuts_byte(tensor, offsets, extents))
        box_fail_in_byte(core, what, tensor);
    return elems * box_bits(tensor) / 8;
}

#endif
