/* The one door to the heap. Every allocation of the library goes through here, so that a test can
 * make the n-th one fail. All functions return NULL when memory is exhausted. Thread-safe. */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `count * bytes` zeroed bytes; NULL also when the product overflows. */
void *alloc_zeroed(int64_t count, int64_t bytes);
/* As realloc: what is added is not zeroed, and on failure `memory` stays as it was. */
void *alloc_resize(void *memory, int64_t count, int64_t bytes);
/* Room for `wanted` items of an array that grows by doubling. False when memory is exhausted; then nothing has
 * changed. `items` (a pointer to them, NULL at first) and `capacity` (an int64_t) are variables. */
#define alloc_grow(items, capacity, wanted) \
    alloc_grow_bytes(&(items), &(capacity), (wanted), (int64_t)sizeof *(items))
/* The function behind it; `items` points to the pointer. */
bool alloc_grow_bytes(void *items, int64_t *capacity, int64_t wanted, int64_t bytes);
char *alloc_strdup(const char *text);
char *alloc_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *alloc_vprintf(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
void alloc_free(void *memory);

/* For tests: the n-th allocation from now (1 is the next) fails, and only that one; 0: none. */
void alloc_fail_at(int64_t n);

/* a * b and a + b for sizes; false when the result does not fit (then *result is not set). */
static inline bool size_mul(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_mul_overflow(a, b, result);
}
static inline bool size_add(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_add_overflow(a, b, result);
}
#endif
