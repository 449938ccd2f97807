/* Text that grows: a buffer for the printers and emitters, always terminated by NUL. Lives on an
 * arena (a != NULL) or on the heap (a == NULL, then text_free releases it and exhausted memory sets
 * `failed` instead of jumping). */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/arena.h"
#include "base/export.h"

#include <stdbool.h>

typedef struct text {
    arena *a;
    char *bytes; /* never NULL after the first write */
    int64_t length;
    int64_t capacity;
    bool failed;
} text;

void text_add(text *t, const char *string) EXPORTED(text_add);
void text_add_n(text *t, const char *bytes, int64_t count);
/* In the C locale, whatever the calling program has set. Arguments must not point into the text. */
void text_printf(text *t, const char *format, ...) EXPORTED(text_printf)
    __attribute__((format(printf, 2, 3)));
void text_vprintf(text *t, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
/* The string inside double quotes: quote, backslash, newline, tab and so on escaped as C and JSON
 * both read them. For the few characters where no such form exists (other control characters, the
 * second '?' of what C would take for a trigraph) the octal form of C is written. */
void text_quoted(text *t, const char *string) EXPORTED(text_quoted);
/* The string inside double quotes as JSON reads it; bytes beyond ASCII stay, so UTF-8 does. */
void text_json(text *t, const char *string);
void text_free(text *t);
/* "a" or "an", whichever the noun wants: an Array, an int32, an fp32, a uint8. */
const char *text_article(const char *noun);

#endif
