/* Moving boxes: see box.h.
 *
 * A box is first reduced: dimensions of one element go, and neighbours that lie without a gap in both
 * places become one. What is left is a nest of loops around a run, which is one memcpy when it is
 * packed on both sides, else a loop over elements of a known width. So a full slice of any rank is one
 * memcpy, rows of a matrix are one per row, and a column is a plain loop.
 *
 * A transfer of gigabytes must not keep its rank from noticing that the call was given up: the poison
 * is looked at behind every PIECE bytes, and behind every ADDED elements of an atomic add, each of which takes
 * as long as a cache line of a copy. */
#include "runtime/box.h"

#include "sched/describe.h"

#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define PIECE (INT64_C(4) << 20)
#define ADDED (INT64_C(64) << 10)

/* A reduced box: byte strides, outermost first. */
typedef struct loops {
    char *target;
    const char *source;
    int64_t target_step[PYPTO_MAX_DIMS];
    int64_t source_step[PYPTO_MAX_DIMS];
    int64_t count[PYPTO_MAX_DIMS];
    int32_t depth;
    int64_t width;
    bool overlap;
} loops;

void box_fail(pld_core *core, const char *what, const pld_tensor *tensor, const int64_t *offsets,
              const int64_t *extents, int32_t d)
{
    char name[NAME_TEXT], at[LIST_TEXT], size[LIST_TEXT], shape[LIST_TEXT];
    if (offsets[d] < 0)
        task_fail(
            core, DIAG_INDEX_OUT_OF_BOUNDS,
            "%s of %s at %s leaves %s of shape %s: negative index %lld in dimension %d; indices "
            "count from 0, and -1 is not the last",
            what, describe_list(size, sizeof size, extents, tensor->ndim),
            describe_list(at, sizeof at, offsets, tensor->ndim),
            task_describe(core, tensor, name, sizeof name),
            describe_list(shape, sizeof shape, tensor->shape, tensor->ndim), (long long)offsets[d],
            d);
    task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS,
              "%s of %s at %s leaves %s of shape %s: dimension %d ends at %lld, needs %lld + %lld",
              what, describe_list(size, sizeof size, extents, tensor->ndim),
              describe_list(at, sizeof at, offsets, tensor->ndim),
              task_describe(core, tensor, name, sizeof name),
              describe_list(shape, sizeof shape, tensor->shape, tensor->ndim), d,
              (long long)tensor->shape[d], (long long)offsets[d], (long long)extents[d]);
}

void box_fail_in_byte(pld_core *core, const char *what, const pld_tensor *tensor)
{
    char name[NAME_TEXT];
    task_fail(
        core, DIAG_INDEX_OUT_OF_BOUNDS,
        "%s of %s begins or ends in the middle of a byte: in the last dimension, offsets and extents "
        "of %s count pairs of elements",
        what, task_describe(core, tensor, name, sizeof name),
        pypto_dtype_name((pypto_dtype)tensor->dtype));
}

void box_align(const pld_tensor *tensor, int32_t ndim, int64_t *extents, int64_t *stride)
{
    const int32_t leading = ndim - tensor->ndim;
    const int64_t *valid = pld_valid(tensor);
    bool nothing = false;
    for (int32_t d = 0; d < -leading; ++d)
        nothing = nothing || valid[d] == 0;
    for (int32_t d = 0; d < ndim; ++d) {
        extents[d] = nothing ? 0 : d < leading ? 1 : valid[d - leading];
        stride[d] = d < leading ? 0 : tensor->stride[d - leading];
    }
}

int64_t box_pack(const int64_t *extents, int32_t ndim, int64_t *stride)
{
    int64_t elems = 1;
    for (int32_t d = ndim - 1; d >= 0; --d) {
        stride[d] = elems;
        elems *= extents[d];
    }
    return elems;
}

/* ---- reducing ---- */

/* False when the box is empty. */
static bool reduce(const box *b, loops *l)
{
    l->target = b->target;
    l->source = b->source;
    l->width = b->width;
    l->depth = 0;
    for (int32_t d = 0; d < b->ndim; ++d) {
        if (b->extents[d] <= 0)
            return false;
        if (b->extents[d] == 1)
            continue;
        const int64_t count = b->extents[d];
        const int64_t target_step = b->target_stride[d] * b->width;
        const int64_t source_step = b->source_stride[d] * b->width;
        const int32_t outer = l->depth - 1;
        if (outer >= 0 && l->target_step[outer] == target_step * count &&
            l->source_step[outer] == source_step * count) {
            l->count[outer] *= count;
            l->target_step[outer] = target_step;
            l->source_step[outer] = source_step;
            continue;
        }
        l->count[l->depth] = count;
        l->target_step[l->depth] = target_step;
        l->source_step[l->depth] = source_step;
        ++l->depth;
    }
    return true;
}

/* Bytes from the first element's begin to the last one's end. */
static int64_t extent_of(const loops *l, const int64_t *step)
{
    int64_t bytes = l->width;
    for (int32_t i = 0; i < l->depth; ++i)
        bytes += (l->count[i] - 1) * step[i];
    return bytes;
}

/* A box that moves up within its own bytes is copied from its end, as memmove does. */
static void order(loops *l, box_mode mode)
{
    const uintptr_t target = (uintptr_t)l->target;
    const uintptr_t source = (uintptr_t)l->source;
    l->overlap = target < source + (uintptr_t)extent_of(l, l->source_step) &&
                 source < target + (uintptr_t)extent_of(l, l->target_step);
    if (!l->overlap || target <= source)
        return;
    for (int32_t i = 0; i < l->depth; ++i) {
        if (i == l->depth - 1 && mode != BOX_ADD && l->target_step[i] == l->width &&
            l->source_step[i] == l->width)
            break; /* move_run() sees to it */
        l->target += (l->count[i] - 1) * l->target_step[i];
        l->source += (l->count[i] - 1) * l->source_step[i];
        l->target_step[i] = -l->target_step[i];
        l->source_step[i] = -l->source_step[i];
    }
}

/* ---- runs ---- */

#define COPY_STRIDED(type)                                                              \
    for (int64_t i = 0; i < count; ++i, target += target_step, source += source_step) { \
        type element;                                                                   \
        memcpy(&element, source, sizeof element);                                       \
        memcpy(target, &element, sizeof element);                                       \
    }

static void copy_strided(char *target, int64_t target_step, const char *source, int64_t source_step,
                         int64_t count, int64_t width)
{
    switch (width) {
    case 1: COPY_STRIDED(uint8_t) break;
    case 2: COPY_STRIDED(uint16_t) break;
    case 4: COPY_STRIDED(uint32_t) break;
    default: COPY_STRIDED(uint64_t) break;
    }
}

static void copy_word(char *target, const char *source)
{
    atomic_store_explicit(
        (_Atomic uint32_t *)(void *)target,
        atomic_load_explicit((const _Atomic uint32_t *)(const void *)source, memory_order_relaxed),
        memory_order_relaxed);
}

/* How many bytes one instruction moves without ever showing half of an aligned word. Processors with AVX
 * promise it of aligned 16 bytes; older ones and AArch64 move those in halves of 8, which will do as well.
 * A volatile vector is one access to both compilers. The thread sanitizer knows of no such promise. */
#if defined(__SANITIZE_THREAD__)
#define WHOLE_BYTES 8
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WHOLE_BYTES 8
#endif
#endif
#if !defined(WHOLE_BYTES) && (defined(__SSE2__) || defined(__aarch64__))
#define WHOLE_BYTES 16
typedef uint32_t whole_words __attribute__((vector_size(16), may_alias));

static void copy_whole(char *target, const char *source)
{
    *(volatile whole_words *)(void *)target = *(const volatile whole_words *)(const void *)source;
}
#else
#undef WHOLE_BYTES
#define WHOLE_BYTES 8

static void copy_whole(char *target, const char *source)
{
    atomic_store_explicit(
        (_Atomic uint64_t *)(void *)target,
        atomic_load_explicit((const _Atomic uint64_t *)(const void *)source, memory_order_relaxed),
        memory_order_relaxed);
}
#endif

#if WHOLE_BYTES == 16
/* The four words that begin `shift` words into eight. */
#if defined(__SSE2__)
#define JOINED(low, high, shift)                                            \
    ((whole_words)_mm_or_si128(_mm_srli_si128((__m128i)(low), 4 * (shift)), \
                               _mm_slli_si128((__m128i)(high), 16 - 4 * (shift))))
#else
#define JOINED(low, high, shift) \
    ((whole_words)vextq_u32((uint32x4_t)(low), (uint32x4_t)(high), shift))
#endif

/* The source lies `shift` words behind a multiple of 16 bytes. */
#define COPY_SHIFTED(shift)                                                                      \
    for (int64_t i = 1; i <= pieces; ++i, target += 16) {                                        \
        const whole_words high = *(const volatile whole_words *)(const void *)(blocks + 16 * i); \
        *(volatile whole_words *)(void *)target = JOINED(low, high, shift);                      \
        low = high;                                                                              \
    }

/* Where the sides differ mod 16, an aligned piece of the target is put together from two neighbouring aligned
 * pieces of the source: a load or a store that is not aligned promises nothing. Reads the source up to the end
 * of the piece that holds its last word. */
static void copy_shifted(char *target, const char *source, int64_t pieces)
{
    const int64_t shift = (int64_t)((uintptr_t)source & 15) / 4;
    const char *const blocks = source - shift * 4;
    whole_words low = *(const volatile whole_words *)(const void *)blocks;
    switch (shift) {
    case 1: COPY_SHIFTED(1) break;
    case 2: COPY_SHIFTED(2) break;
    default: COPY_SHIFTED(3) break;
    }
}
#endif

/* Words by words; a packed run in the largest pieces that stay whole, which makes it about as fast as a
 * memcpy. */
static void copy_words(char *target, int64_t target_step, const char *source, int64_t source_step,
                       int64_t count)
{
    const uintptr_t mask = WHOLE_BYTES - 1;
    const int64_t words = WHOLE_BYTES / 4;
    const bool packed = target_step == 4 && source_step == 4;
    if (packed && ((uintptr_t)target & mask) == ((uintptr_t)source & mask)) {
        for (; count > 0 && ((uintptr_t)target & mask) != 0; --count, target += 4, source += 4)
            copy_word(target, source);
        for (; count >= 4 * words; count -= 4 * words) {
            for (int piece = 0; piece < 4; ++piece)
                copy_whole(target + piece * WHOLE_BYTES, source + piece * WHOLE_BYTES);
            target += 4 * WHOLE_BYTES;
            source += 4 * WHOLE_BYTES;
        }
        for (; count >= words; count -= words, target += WHOLE_BYTES, source += WHOLE_BYTES)
            copy_whole(target, source);
    }
#if WHOLE_BYTES == 16
    else if (packed && count >= 4 * words) {
        /* At least 4 words first, and not the last piece: nothing outside of the source is read. */
        for (int i = 0; i < words || ((uintptr_t)target & mask) != 0;
             ++i, target += 4, source += 4) {
            copy_word(target, source);
            --count;
        }
        const int64_t pieces = count / words - 1;
        copy_shifted(target, source, pieces);
        count -= pieces * words;
        target += pieces * WHOLE_BYTES;
        source += pieces * WHOLE_BYTES;
    }
#endif
    for (int64_t i = 0; i < count; ++i, target += target_step, source += source_step)
        copy_word(target, source);
}

/* No order: whoever reads the sums has waited for a notify of everybody who adds. */
#define ADD_INTEGERS(type)                                                            \
    for (int64_t i = 0; i < count; ++i, target += target_step, source += source_step) \
        atomic_fetch_add_explicit((_Atomic type *)(void *)target,                     \
                                  *(const type *)(const void *)source, memory_order_relaxed);

#define ADD_FLOATS(bits_type, sum)                                                              \
    for (int64_t i = 0; i < count; ++i, target += target_step, source += source_step) {         \
        _Atomic bits_type *cell = (_Atomic bits_type *)(void *)target;                          \
        const bits_type addend = *(const bits_type *)(const void *)source;                      \
        bits_type before = atomic_load_explicit(cell, memory_order_relaxed);                    \
        while (!atomic_compare_exchange_weak_explicit(cell, &before, sum, memory_order_relaxed, \
                                                      memory_order_relaxed))                    \
            ;                                                                                   \
    }

static uint32_t add_fp32(uint32_t x_bits, uint32_t y_bits)
{
    float x, y;
    memcpy(&x, &x_bits, sizeof x);
    memcpy(&y, &y_bits, sizeof y);
    x += y;
    memcpy(&x_bits, &x, sizeof x);
    return x_bits;
}

static void add_run(char *target, int64_t target_step, const char *source, int64_t source_step,
                    int64_t count, pypto_dtype dtype)
{
    switch (dtype) {
    case PYPTO_INT8:
    case PYPTO_UINT8: ADD_INTEGERS(uint8_t) break;
    case PYPTO_INT16:
    case PYPTO_UINT16: ADD_INTEGERS(uint16_t) break;
    case PYPTO_INT32:
    case PYPTO_UINT32: ADD_INTEGERS(uint32_t) break;
    case PYPTO_FP16:
        ADD_FLOATS(uint16_t,
                   pld_float_to_fp16(pld_fp16_to_float(before) + pld_fp16_to_float(addend)))
        break;
    case PYPTO_BF16:
        ADD_FLOATS(uint16_t,
                   pld_float_to_bf16(pld_bf16_to_float(before) + pld_bf16_to_float(addend)))
        break;
    case PYPTO_FP32: ADD_FLOATS(uint32_t, add_fp32(before, addend)) break;
    default: ADD_INTEGERS(uint64_t) break;
    }
}

/* ---- boxes ---- */

static void move_piece(const loops *l, char *target, int64_t target_step, const char *source,
                       int64_t source_step, int64_t count, box_mode mode, pypto_dtype dtype)
{
    const bool packed = target_step == l->width && source_step == l->width;
    if (mode == BOX_ADD)
        add_run(target, target_step, source, source_step, count, dtype);
    else if (packed && l->overlap)
        memmove(target, source, (size_t)(count * l->width));
    else if (mode == BOX_WORDS)
        copy_words(target, target_step, source, source_step, count);
    else if (packed)
        memcpy(target, source, (size_t)(count * l->width));
    else
        copy_strided(target, target_step, source, source_step, count, l->width);
}

static int64_t elements_of_a_piece(const loops *l, box_mode mode)
{
    return mode == BOX_ADD ? ADDED : PIECE / l->width;
}

/* The innermost dimension, in pieces; a packed one that moves up within its own bytes from its end. */
static void move_run(pld_core *core, const loops *l, box_mode mode, pypto_dtype dtype)
{
    const int32_t last = l->depth - 1;
    const int64_t target_step = last < 0 ? l->width : l->target_step[last];
    const int64_t source_step = last < 0 ? l->width : l->source_step[last];
    const int64_t most = elements_of_a_piece(l, mode);
    const bool from_end =
        l->overlap && target_step > 0 && (uintptr_t)l->target > (uintptr_t)l->source;
    int64_t begin = 0, end = last < 0 ? 1 : l->count[last];
    while (begin < end) {
        const int64_t count = end - begin < most ? end - begin : most;
        const int64_t at = from_end ? end - count : begin;
        move_piece(l, l->target + at * target_step, target_step, l->source + at * source_step,
                   source_step, count, mode, dtype);
        if (from_end)
            end -= count;
        else
            begin += count;
        if (begin < end)
            task_check(core);
    }
}

/* Elements of 4 bits move as the bytes that hold two of them. */
static box in_bytes(const box *b, int64_t *target_stride, int64_t *source_stride, int64_t *extents)
{
    for (int32_t d = 0; d < b->ndim; ++d) {
        const bool last = d == b->ndim - 1;
        target_stride[d] = last ? b->target_stride[d] : b->target_stride[d] / 2;
        source_stride[d] = last ? b->source_stride[d] : b->source_stride[d] / 2;
        extents[d] = last ? b->extents[d] / 2 : b->extents[d];
    }
    return (box){b->target, target_stride, b->source, source_stride, extents, b->ndim, 1};
}

/* Bytes of a box that lies without a gap in both places, or -1. */
static int64_t packed_bytes(const box *b)
{
    int64_t run = 1;
    for (int32_t d = b->ndim - 1; d >= 0; --d) {
        if (b->extents[d] != 1 && (b->target_stride[d] != run || b->source_stride[d] != run))
            return -1;
        run *= b->extents[d];
    }
    return run * b->width;
}

/* Small boxes without gaps are most of all boxes: for these the reduction would cost more than the copy. */
#define SMALL_BYTES 4096

void box_move(pld_core *core, const box *b, box_mode mode, pypto_dtype dtype)
{
    if (mode == BOX_COPY && !pypto_dtype_packed(dtype)) {
        const int64_t bytes = packed_bytes(b);
        if (bytes >= 0 && bytes <= SMALL_BYTES) {
            memmove(b->target, b->source, (size_t)bytes);
            return;
        }
    }
    loops l;
    box bytes;
    int64_t target_stride[PYPTO_MAX_DIMS], source_stride[PYPTO_MAX_DIMS], extents[PYPTO_MAX_DIMS];
    if (__builtin_expect(pypto_dtype_packed(dtype), 0)) {
        bytes = in_bytes(b, target_stride, source_stride, extents);
        b = &bytes;
    }
    if (!reduce(b, &l))
        return;
    order(&l, mode);
    const int32_t outer = l.depth - 1; /* the innermost is the run */
    if (outer <= 0) {
        move_run(core, &l, mode, dtype);
        return;
    }
    const int64_t most = elements_of_a_piece(&l, mode);
    int64_t index[PYPTO_MAX_DIMS] = {0};
    int64_t moved = 0;
    for (;;) {
        move_run(core, &l, mode, dtype);
        moved += l.count[outer];
        if (moved > most) {
            task_check(core);
            moved = 0;
        }
        int32_t d = outer - 1;
        for (; d >= 0; --d) {
            l.target += l.target_step[d];
            l.source += l.source_step[d];
            if (++index[d] < l.count[d])
                break;
            l.target -= l.target_step[d] * l.count[d];
            l.source -= l.source_step[d] * l.count[d];
            index[d] = 0;
        }
        if (d < 0)
            return;
    }
}

/* ---- tiles ---- */

void box_load(pld_core *core, void *tile, const char *first, const pld_tensor *source,
              const int64_t *extents, const int64_t *valid)
{
    int64_t stride[PYPTO_MAX_DIMS];
    (void)box_pack(extents, source->ndim, stride);
    const box b = {tile, stride, first, source->stride, valid, source->ndim, box_width(source)};
    box_move(core, &b, BOX_COPY, (pypto_dtype)source->dtype);
}

void box_store(pld_core *core, const void *tile, char *first, const pld_tensor *target,
               const int64_t *extents, const int64_t *valid, bool adds)
{
    int64_t stride[PYPTO_MAX_DIMS];
    (void)box_pack(extents, target->ndim, stride);
    const box b = {first, target->stride, tile, stride, valid, target->ndim, box_width(target)};
    box_move(core, &b, box_write_mode(target, adds), (pypto_dtype)target->dtype);
}

void box_load_part(pld_core *core, const char *what, void *tile, const pld_tensor *source,
                   const char *slice, const int64_t *offsets, const int64_t *extents,
                   const int64_t *valid, bool clamp, int64_t *loaded)
{
    bool whole = true;
    for (int32_t d = 0; d < source->ndim; ++d) {
        int64_t wanted = valid != NULL ? valid[d] : extents[d];
        if (wanted < 0 || wanted > extents[d])
            task_fail(core, DIAG_INDEX_OUT_OF_BOUNDS,
                      "%s: valid_shape %d is %lld, but the tile has %lld elements there", what, d,
                      (long long)wanted, (long long)extents[d]);
        const int64_t limit = pld_extents(source)[d];
        if (clamp && offsets[d] >= 0 && offsets[d] > limit - wanted)
            wanted = offsets[d] >= limit ? 0 : limit - offsets[d];
        loaded[d] = wanted;
        whole = whole && wanted == extents[d];
    }
    int64_t inside
        [PYPTO_MAX_DIMS]; /* an empty box may start anywhere when it was clamped or counts for nothing */
    if (__builtin_expect(source->partial, 0)) {
        for (int32_t d = 0; d < source->ndim; ++d)
            inside[d] = clamp && loaded[d] == 0 && offsets[d] > 0 ? 0 : offsets[d];
        const pld_tensor declared = view_declared(source);
        (void)box_check(core, what, &declared, inside, loaded);
        (void)view_valid_part(source, offsets, loaded, loaded);
        whole = false;
    }
    for (int32_t d = 0; d < source->ndim; ++d)
        inside[d] = (clamp || source->partial) && loaded[d] == 0 && offsets[d] > 0 ? 0 : offsets[d];
    const int64_t at = box_check(core, what, source, inside, loaded);
    if (!whole) {
        int64_t stride[PYPTO_MAX_DIMS];
        const int64_t elems = box_pack(extents, source->ndim, stride);
        memset(tile, 0, (size_t)(pypto_dtype_size((pypto_dtype)source->dtype, elems)));
    }
    box_load(core, tile, slice + at, source, extents, loaded);
}
