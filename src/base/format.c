/* printf in the C locale, for the three printers of base (alloc_printf, arena_printf, text_printf)
 * and for whoever prints into a buffer of his own.
 *
 * The one idea: switch this thread, and only this thread, to the C locale around vsnprintf. The C
 * library keeps the C locale as a constant, so that newlocale("C") neither allocates nor needs a
 * matching freelocale. */
#include "base/format.h"

#include <locale.h>
#include <stdio.h>

int64_t format_text_v(char *buffer, int64_t bytes, const char *format, va_list args)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = uselocale(plain);
    int length = vsnprintf(buffer, (size_t)bytes, format, args);
    uselocale(before);
    return length < 0 ? -1 : length;
}

int64_t format_text(char *buffer, int64_t bytes, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int64_t length = format_text_v(buffer, bytes, format, args);
    va_end(args);
    return length;
}
