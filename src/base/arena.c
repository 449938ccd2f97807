/* The arena: memory of one compile, and the growing arrays (vec.h) that live on it.
 *
 * Called by every part of the compiler and by text, map and os for their results. Memory comes in
 * chunks from alloc.h, zeroed once by calloc, and is handed out from the front of the newest chunk;
 * nothing is given back before arena_destroy. Chunks double from 16 KiB to 1 MiB; an allocation
 * that would waste much of a chunk gets one of its own.
 *
 * Exhausted memory is a longjmp to the recovery point, which is that of the innermost arena_guard(). The
 * pitfall for callers: a function that holds a descriptor, a lock or heap memory must not allocate here until
 * it has let go. Allocate first, acquire afterwards (os_run does).
 *
 * Under AddressSanitizer the unused part of a chunk is poisoned and allocations are kept apart by a
 * red zone, so that an overrun is reported as on the heap. */
#include "base/arena.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/format.h"
#include "base/vec.h"

#include <assert.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif
#ifndef ARENA_ASAN
#define ARENA_ASAN 0
#endif

#if ARENA_ASAN
#include <sanitizer/asan_interface.h>
#define RED_ZONE 16
#else
#define RED_ZONE 0
#define ASAN_POISON_MEMORY_REGION(start, bytes) ((void)(start), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(start, bytes) ((void)(start), (void)(bytes))
#endif

#define ALIGNMENT 16
#define CHUNK_FIRST ((int64_t)16 * 1024)
#define CHUNK_LAST ((int64_t)1024 * 1024)

/* Header of a chunk; the memory that is handed out follows it. */
typedef struct chunk {
    struct chunk *next;
    int64_t bytes; /* of the memory behind the header */
} chunk;

static_assert(sizeof(chunk) % ALIGNMENT == 0, "memory behind a chunk header must stay aligned");

struct arena {
    jmp_buf *recovery; /* borrowed */
    chunk *chunks;     /* owned, newest first */
    char *free;        /* unused part of the chunk that is being handed out */
    int64_t free_bytes;
    int64_t next_bytes; /* size of the next ordinary chunk */
};

arena *arena_create(void)
{
    arena *a = alloc_zeroed(1, sizeof(arena));
    if (a != NULL)
        a->next_bytes = CHUNK_FIRST;
    return a;
}

void arena_destroy(arena *a)
{
    if (a == NULL)
        return;
    for (chunk *c = a->chunks; c != NULL;) {
        chunk *next = c->next;
        ASAN_UNPOISON_MEMORY_REGION(c + 1, (size_t)c->bytes);
        alloc_free(c);
        c = next;
    }
    alloc_free(a);
}

void arena_set_recovery(arena *a, jmp_buf *recovery)
{
    a->recovery = recovery;
}

bool arena_guard(arena *a, void (*steps)(void *context), void *context)
{
    jmp_buf *const outer = a->recovery;
    jmp_buf recovery;
    if (setjmp(recovery) != 0) {
        a->recovery = outer;
        return false;
    }
    a->recovery = &recovery;
    steps(context);
    a->recovery = outer;
    return true;
}

typedef struct single_step {
    arena *a;
    pypto_status (*step)(arena *a, void *context);
    void *context;
    pypto_status status;
} single_step;

static void take_step(void *context)
{
    single_step *s = context;
    s->status = s->step(s->a, s->context);
}

pypto_status arena_run(pypto_status (*step)(arena *a, void *context), void *context)
{
    single_step s = {arena_create(), step, context, STATUS_OK};
    if (s.a == NULL || !arena_guard(s.a, take_step, &s))
        s.status = diag_no_memory();
    arena_destroy(s.a);
    return s.status;
}

static _Noreturn void exhausted(arena *a)
{
    /* Without a recovery point there is nowhere to go and no way to say so: a defect of the caller,
     * stopped here rather than by a jump through garbage. */
    if (a->recovery == NULL)
        __builtin_trap();
    longjmp(*a->recovery, 1);
}

/* A new chunk with room for `bytes`. */
static char *chunk_add(arena *a, int64_t bytes)
{
    int64_t total;
    chunk *c = size_add(bytes, sizeof(chunk), &total) ? alloc_zeroed(1, total) : NULL;
    if (c == NULL)
        exhausted(a);
    c->bytes = bytes;
    c->next = a->chunks;
    a->chunks = c;
    ASAN_POISON_MEMORY_REGION(c + 1, (size_t)bytes);
    return (char *)(c + 1);
}

void *arena_alloc(arena *a, int64_t bytes)
{
    int64_t padded;
    if (bytes < 0 || !size_add(bytes > 0 ? bytes : 1, RED_ZONE + ALIGNMENT - 1, &padded))
        exhausted(a);
    padded -= padded % ALIGNMENT;

    char *memory;
    if (padded <= a->free_bytes) {
        memory = a->free;
    } else if (padded > a->next_bytes / 4) {
        /* Its own chunk; the rest of the current one stays in use. */
        memory = chunk_add(a, padded);
        ASAN_UNPOISON_MEMORY_REGION(memory, (size_t)bytes);
        return memory;
    } else {
        memory = chunk_add(a, a->next_bytes);
        a->free_bytes = a->next_bytes;
        if (a->next_bytes < CHUNK_LAST)
            a->next_bytes *= 2;
    }
    a->free = memory + padded;
    a->free_bytes -= padded;
    ASAN_UNPOISON_MEMORY_REGION(memory, (size_t)bytes);
    return memory;
}

void *arena_alloc_array(arena *a, int64_t count, int64_t bytes)
{
    int64_t total;
    if (count < 0 || bytes < 0 || !size_mul(count, bytes, &total))
        exhausted(a);
    return arena_alloc(a, total);
}

char *arena_strndup(arena *a, const char *text, int64_t bytes)
{
    size_t length = strnlen(text, (size_t)bytes);
    char *copy = arena_alloc(a, (int64_t)length + 1);
    memcpy(copy, text, length);
    return copy;
}

char *arena_strdup(arena *a, const char *text)
{
    size_t length = strlen(text);
    char *copy = arena_alloc(a, (int64_t)length + 1);
    memcpy(copy, text, length + 1);
    return copy;
}

char *arena_vprintf(arena *a, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int64_t length = format_text_v(NULL, 0, format, again);
    va_end(again);
    if (length < 0)
        exhausted(a);
    char *text = arena_alloc(a, length + 1);
    format_text_v(text, length + 1, format, args);
    return text;
}

char *arena_printf(arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = arena_vprintf(a, format, args);
    va_end(args);
    return text;
}

void *vec_grow(arena *a, void *items, int64_t count, int64_t *capacity, int64_t bytes)
{
    int64_t larger = 8;
    if (*capacity > 0 && !size_mul(*capacity, 2, &larger))
        exhausted(a);
    void *moved = arena_alloc_array(a, larger, bytes);
    if (count > 0)
        memcpy(moved, items, (size_t)(count * bytes));
    *capacity = larger;
    return moved;
}
