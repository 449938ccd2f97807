/* The heap's one door.
 *
 * Everything that lives on the heap (arenas, diagnostics, runtime objects, heap texts) is allocated
 * here and nowhere else, so that one counter can make the n-th allocation of a test fail. The
 * functions wrap malloc's family one to one: memory from here may be released with free(), which
 * the public interface promises for pypto_status_text().
 *
 * Pitfalls. Sizes are signed: a negative count or an overflowing product is "exhausted", not a huge
 * allocation. A size of 0 gives a valid pointer, so NULL always means failure. alloc_resize does
 * not zero what it adds. */
#include "base/alloc.h"

#include "base/format.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Allocations until the one that fails; 0 is off. Relaxed everywhere: it orders nothing else. */
static _Atomic int64_t fail_countdown;

/* Larger requests are mistakes, and fail here: a sanitizer's malloc would end the process. */
#define LARGEST ((int64_t)1 << 39)

void alloc_fail_at(int64_t n)
{
    atomic_store_explicit(&fail_countdown, n, memory_order_relaxed);
}

/* Counts this allocation; true when it is the one that a test has chosen. */
static bool chosen_to_fail(void)
{
    int64_t left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);
    while (left > 0) {
        if (atomic_compare_exchange_weak_explicit(&fail_countdown, &left, left - 1,
                                                  memory_order_relaxed, memory_order_relaxed))
            return left == 1;
    }
    return false;
}

/* The bytes to ask for, at least 1; false when they cannot exist or this allocation is to fail. */
static bool admit(int64_t count, int64_t bytes, size_t *total)
{
    int64_t product;
    if (count < 0 || bytes < 0 || !size_mul(count, bytes, &product) || product > LARGEST)
        return false;
    if (chosen_to_fail())
        return false;
    *total = product > 0 ? (size_t)product : 1;
    return true;
}

void *alloc_zeroed(int64_t count, int64_t bytes)
{
    size_t total;
    return admit(count, bytes, &total) ? calloc(1, total) : NULL;
}

void *alloc_resize(void *memory, int64_t count, int64_t bytes)
{
    size_t total;
    return admit(count, bytes, &total) ? realloc(memory, total) : NULL;
}

bool alloc_grow_bytes(void *items, int64_t *capacity, int64_t wanted, int64_t bytes)
{
    enum { FIRST = 8 };
    if (wanted <= *capacity)
        return true;
    int64_t room = *capacity <= LARGEST / 2 ? *capacity * 2 : wanted;
    if (room < FIRST)
        room = FIRST;
    if (room < wanted)
        room = wanted;
    void *memory; /* copied, because a T ** is no void ** */
    memcpy(&memory, items, sizeof memory);
    memory = alloc_resize(memory, room, bytes);
    if (memory == NULL)
        return false;
    memcpy(items, &memory, sizeof memory);
    *capacity = room;
    return true;
}

void alloc_free(void *memory)
{
    free(memory);
}

char *alloc_strdup(const char *text)
{
    size_t length = strlen(text);
    char *copy = alloc_zeroed((int64_t)length + 1, 1);
    if (copy != NULL)
        memcpy(copy, text, length + 1);
    return copy;
}

char *alloc_vprintf(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int64_t length = format_text_v(NULL, 0, format, again);
    va_end(again);
    char *text = length < 0 ? NULL : alloc_zeroed(length + 1, 1);
    if (text != NULL)
        format_text_v(text, length + 1, format, args);
    return text;
}

char *alloc_printf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = alloc_vprintf(format, args);
    va_end(args);
    return text;
}
