/* Memory of one compile: allocated piece by piece, freed at once.
 *
 * A compiler pass does not check for exhausted memory at each of its thousand small allocations:
 * the arena jumps to the recovery point that the compile driver has set. That is the only longjmp
 * of the project, and it never crosses foreign frames: the front end's callbacks into Python return
 * before an arena is touched again. Not thread-safe; one compile has one arena. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/export.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

typedef struct arena arena;

/* NULL when memory is exhausted. */
arena *arena_create(void) EXPORTED(arena_create);
void arena_destroy(arena *a) EXPORTED(arena_destroy);

/* Where an allocation that cannot be served jumps to. Must be set before the first allocation. */
void arena_set_recovery(arena *a, jmp_buf *recovery) EXPORTED(arena_set_recovery);

/* Zeroed memory, 16-byte aligned. Never returns NULL. */
void *arena_alloc(arena *a, int64_t bytes) EXPORTED(arena_alloc);
#define arena_new(a, type) ((type *)arena_alloc((a), (int64_t)sizeof(type)))
#define arena_array(a, type, count) ((type *)arena_alloc_array((a), (count), (int64_t)sizeof(type)))
void *arena_alloc_array(arena *a, int64_t count, int64_t bytes) EXPORTED(arena_alloc_array);
char *arena_strdup(arena *a, const char *text) EXPORTED(arena_strdup);
char *arena_strndup(arena *a, const char *text, int64_t bytes);
char *arena_printf(arena *a, const char *format, ...) EXPORTED(arena_printf)
    __attribute__((format(printf, 2, 3)));
char *arena_vprintf(arena *a, const char *format, va_list args);

#endif
