/* The words that every other public header is written in: element types, limits, source spans.
 *
 * Compiles alone in C17 and C++17. Nothing here allocates or can fail. */
#ifndef PYPTO_TYPES_H
#define PYPTO_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PYPTO_API __attribute__((visibility("default")))
#define PYPTO_NODISCARD __attribute__((warn_unused_result))
#define PYPTO_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define PYPTO_NORETURN __attribute__((noreturn))
#else
#define PYPTO_API
#define PYPTO_NODISCARD
#define PYPTO_PRINTF(text, first)
#define PYPTO_NORETURN
#endif

#define PYPTO_VERSION "0.1.0"

/* Most dimensions a tensor, window or tile can have. */
#define PYPTO_MAX_DIMS 8

/* Most devices of one worker set, and so most ranks of one communication domain. */
#define PYPTO_MAX_RANKS 64

/* Element types: name, text, bits of one element, class (b bool, i signed, u unsigned, f float; t task,
 * which is no number; for storage only: s float, n integer).
 * The numbers are part of the interface of compiled programs: append only. */
#define PYPTO_DTYPES(X)               \
    X(BOOL, "bool", 8, 'b')           \
    X(INT8, "int8", 8, 'i')           \
    X(INT16, "int16", 16, 'i')        \
    X(INT32, "int32", 32, 'i')        \
    X(INT64, "int64", 64, 'i')        \
    X(UINT8, "uint8", 8, 'u')         \
    X(UINT16, "uint16", 16, 'u')      \
    X(UINT32, "uint32", 32, 'u')      \
    X(UINT64, "uint64", 64, 'u')      \
    X(FP16, "fp16", 16, 'f')          \
    X(BF16, "bfloat16", 16, 'f')      \
    X(FP32, "fp32", 32, 'f')          \
    X(INDEX, "index", 64, 'i')        \
    X(FP8E4M3FN, "fp8e4m3fn", 8, 's') \
    X(FP8E5M2, "fp8e5m2", 8, 's')     \
    X(FP8E8M0, "fp8e8m0", 8, 's')     \
    X(FP4, "fp4", 4, 's')             \
    X(INT4, "int4", 4, 'n')           \
    X(UINT4, "uint4", 4, 'n')         \
    X(TASK_ID, "task_id", 64, 't')

typedef enum pypto_dtype {
#define PYPTO_DTYPE_ENUM(name, text, bits, class_) PYPTO_##name,
    PYPTO_DTYPES(PYPTO_DTYPE_ENUM)
#undef PYPTO_DTYPE_ENUM
        PYPTO_DTYPE_COUNT
} pypto_dtype;

/* Lower-case name of an element type ("fp32"), or "?" for a number that is none. Never NULL. */
PYPTO_API const char *pypto_dtype_name(pypto_dtype dtype);

/* Bytes of one element in memory, 0 for a number that is no element type. Elements of 4 bits lie two in a
 * byte, and count as 1 here: pypto_dtype_size() counts those of many. */
PYPTO_API int64_t pypto_dtype_bytes(pypto_dtype dtype);

/* Whether elements of the type lie two in a byte. */
PYPTO_API bool pypto_dtype_packed(pypto_dtype dtype);

/* Bytes of so many elements, or from the first to that one: an even number where they lie two in a byte. */
PYPTO_API int64_t pypto_dtype_size(pypto_dtype dtype, int64_t elems);

/* Whether an argument of type `carrier` may bring the elements of a parameter of type `dtype`: the same type,
 * or UINT8 for a type that is for storage only; elements that lie two in a byte come as UINT8 of half the
 * last extent, and in no other way. Unsigned elements of 16 bits or more may come as signed ones with the
 * same bits: PyTorch has long had no others. Those of INDEX come as INT64. */
PYPTO_API bool pypto_dtype_carries(pypto_dtype carrier, pypto_dtype dtype);

/* A place in the user's source: lines count from 1, columns from 0 as Python's `ast` counts them.
 * line 0 means "no place known". `file` is borrowed from whatever owns the span. */
typedef struct pypto_span {
    const char *file;
    int32_t line;
    int32_t column;
    int32_t end_line;
    int32_t end_column;
} pypto_span;

#ifdef __cplusplus
}
#endif
#endif
