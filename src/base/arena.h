/* Memory of one compile: allocated piece by piece, freed at once.
 *
 * A compiler pass does not check for exhausted memory at each of its thousand small allocations:
 * the arena jumps out of the steps that arena_guard() runs. That is the only longjmp of the project,
 * and it never crosses foreign frames: the front end's callbacks into Python return before an arena
 * is touched again. Not thread-safe; one compile has one arena. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/export.h"

#include <pypto/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct arena arena;

/* NULL when memory is exhausted. */
arena *arena_create(void) EXPORTED(arena_create);
void arena_destroy(arena *a) EXPORTED(arena_destroy);

/* Runs steps that allocate. False when memory was exhausted: then they were left in their midst, and what they hold
 * outside of the arena is the caller's to undo; so it must be reachable from `context`. */
PYPTO_NODISCARD bool arena_guard(arena *a, void (*steps)(void *context), void *context);
/* Runs one step, which owns nothing else, with an arena that ends with it. Fails as the step does, and when memory was
 * exhausted. */
PYPTO_NODISCARD pypto_status arena_run(pypto_status (*step)(arena *a, void *context), void *context)
    EXPORTED(arena_run);
/* For tests, whose steps are the rest of a function: where an allocation that cannot be served jumps to. */
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
