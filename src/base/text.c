/* The text buffer of all printers: emitted C, printed IR, reports, rendered errors.
 *
 * One growing array, doubled when full, NUL-terminated after every write. On an arena the old array
 * is simply left behind; on the heap it is reallocated, and the first failure makes every later
 * write a no-op, so that a printer needs one check of `failed` at its end.
 *
 * Pitfall: arguments must not point into the buffer itself, which moves. */
#include "base/text.h"

#include "base/alloc.h"
#include "base/format.h"

#include <string.h>

#define TEXT_FIRST 256

/* Makes room for `count` more bytes and the NUL; false when the text has failed. */
static bool reserve(text *t, int64_t count)
{
    if (t->failed)
        return false;
    int64_t needed;
    if (!size_add(t->length + 1, count, &needed))
        needed = INT64_MAX; /* which no allocator has */
    if (needed <= t->capacity)
        return true;
    int64_t capacity = t->capacity > 0 ? t->capacity : TEXT_FIRST;
    while (capacity < needed && size_mul(capacity, 2, &capacity)) {
    }
    if (capacity < needed)
        capacity = needed;

    char *bytes;
    if (t->a != NULL) {
        bytes = arena_alloc(t->a, capacity);
        if (t->length > 0)
            memcpy(bytes, t->bytes, (size_t)t->length);
    } else {
        bytes = alloc_resize(t->bytes, capacity, 1);
        if (bytes == NULL) {
            t->failed = true;
            return false;
        }
    }
    bytes[t->length] = '\0';
    t->bytes = bytes;
    t->capacity = capacity;
    return true;
}

void text_add_n(text *t, const char *bytes, int64_t count)
{
    if (!reserve(t, count))
        return;
    if (count > 0)
        memcpy(t->bytes + t->length, bytes, (size_t)count);
    t->length += count;
    t->bytes[t->length] = '\0';
}

void text_add(text *t, const char *string)
{
    text_add_n(t, string, (int64_t)strlen(string));
}

void text_vprintf(text *t, const char *format, va_list args)
{
    /* Most pieces fit into what is left: format once, and a second time only after growing. */
    if (!reserve(t, 0))
        return;
    va_list again;
    va_copy(again, args);
    int64_t room = t->capacity - t->length;
    int64_t count = format_text_v(t->bytes + t->length, room, format, args);
    if (count < 0) {
        t->bytes[t->length] = '\0';
        reserve(t, INT64_MAX); /* fails in the way this text fails */
    } else {
        if (count >= room) {
            t->bytes[t->length] = '\0'; /* what did not fit must not stay when growing fails */
            if (reserve(t, count))
                format_text_v(t->bytes + t->length, count + 1, format, again);
        }
        if (!t->failed)
            t->length += count;
    }
    va_end(again);
}

void text_printf(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_vprintf(t, format, args);
    va_end(args);
}

/* One byte of a quoted string; `previous` is the byte before it. */
static void add_escaped(text *t, unsigned char byte, unsigned char previous)
{
    static const char shared_from[] = "\"\\\n\t\r\b\f";
    static const char shared_to[] = "\"\\ntrbf";
    const char *found = byte != 0 ? strchr(shared_from, byte) : NULL;
    if (found != NULL) {
        char escape[2] = {'\\', shared_to[found - shared_from]};
        text_add_n(t, escape, 2);
    } else if (byte < 0x20 || byte == 0x7f || (byte == '?' && previous == '?')) {
        /* Three digits always, so that a digit which follows does not join them. */
        text_printf(t, "\\%03o", byte);
    } else {
        char plain = (char)byte;
        text_add_n(t, &plain, 1);
    }
}

void text_quoted(text *t, const char *string)
{
    unsigned char previous = 0;
    text_add_n(t, "\"", 1);
    for (const char *p = string; *p != '\0'; p++) {
        add_escaped(t, (unsigned char)*p, previous);
        previous = (unsigned char)*p;
    }
    text_add_n(t, "\"", 1);
}

void text_json(text *t, const char *string)
{
    text_add_n(t, "\"", 1);
    for (const char *p = string; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20)
            text_printf(t, "\\u%04x", (unsigned)*p);
        else if (*p == '"' || *p == '\\')
            text_printf(t, "\\%c", *p);
        else
            text_add_n(t, p, 1);
    }
    text_add_n(t, "\"", 1);
}

void text_free(text *t)
{
    if (t->a == NULL)
        alloc_free(t->bytes);
    *t = (text){.a = t->a};
}

const char *text_article(const char *noun)
{
    return strchr("aeioAEIO", noun[0]) != NULL || strncmp(noun, "fp", 2) == 0 ? "an" : "a";
}
