/* Runs of boxes, element by element: see box_runs.h. */
#include "runtime/box_runs.h"

#include <pypto/pld_math.h>

#include <stdatomic.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define COPY_STRIDED(type)                                                              \
    for (int64_t i = 0; i < count; ++i, target += target_step, source += source_step) { \
        type element;                                                                   \
        memcpy(&element, source, sizeof element);                                       \
        memcpy(target, &element, sizeof element);                                       \
    }

void box_run_copy(char *target, int64_t target_step, const char *source, int64_t source_step,
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
void box_run_copy_words(char *target, int64_t target_step, const char *source, int64_t source_step,
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

void box_run_add(char *target, int64_t target_step, const char *source, int64_t source_step,
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
