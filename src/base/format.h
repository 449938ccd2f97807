/* printf into memory, the same in every locale. What the library prints (emitted C, IR, cache keys)
 * must not depend on setlocale() in the calling program: with LC_NUMERIC=de_DE, snprintf("%g", 0.5)
 * gives "0,5". Thread-safe. */
#ifndef BASE_FORMAT_H
#define BASE_FORMAT_H

#include <stdarg.h>
#include <stdint.h>

/* As snprintf: writes at most `bytes` bytes including the NUL (buffer may be NULL when bytes is 0)
 * and returns the length of the whole text; -1 when it cannot be formatted. */
int64_t format_text(char *buffer, int64_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int64_t format_text_v(char *buffer, int64_t bytes, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
#endif
