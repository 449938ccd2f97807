/* What users see of an error: the rendering of a status as text, and its release.
 *
 * Called by the Python extension (as the exception's message), by the command line program and by C
 * programs. One diagnostic looks like this:
 *
 *     script.py:12:9: ParserTypeError [PYPTO-T203]: the shapes [1, 256] and [1, 128] do not agree
 *             x = pl.add(a, b)
 *                 ^~~~~~~~~~~~
 *     note: a is loaded in line 10
 *     hint: load both with the same extents
 *
 * Columns inside a span are byte offsets from 0 in UTF-8, as Python's `ast` counts them; the
 * printed one counts from 1, as editors do. The underline is laid out in terminal cells: tabs are
 * expanded in both lines, wide characters take two cells, combining marks none. A diagnostic
 * without a file is its message alone, because the exception's class already says the kind. */
#include "base/alloc.h"
#include "base/diag_internal.h"
#include "base/text.h"

#include <pypto/status.h>

#include <string.h>

#define TAB_CELLS 8
#define INDENT "    "

const char *pypto_error_kind_name(pypto_error_kind kind)
{
    switch (kind) {
#define KIND_NAME(name, python) \
    case PYPTO_ERROR_##name: return python;
        PYPTO_ERROR_KINDS(KIND_NAME)
#undef KIND_NAME
    case PYPTO_ERROR_NONE: break;
    }
    return "";
}

void diag_release(pypto_diagnostic *d)
{
    diag_free_text(d->span.file);
    diag_free_text(d->message);
    diag_free_text(d->hint);
    diag_free_text(d->note);
    diag_free_text(d->source);
    alloc_free(d);
}

void pypto_status_clear(pypto_status *status)
{
    pypto_diagnostic *d = status->diagnostics;
    while (d != NULL && d != &diag_exhausted) {
        pypto_diagnostic *next = d->next;
        diag_release(d);
        d = next;
    }
    *status = (pypto_status){PYPTO_ERROR_NONE, NULL};
}

/* One character of a source line. */
typedef struct glyph {
    int64_t bytes;
    int64_t cells;
    bool printable; /* else a space or '?' is shown in its place */
} glyph;

static bool between(uint32_t value, uint32_t low, uint32_t high)
{
    return value >= low && value <= high;
}

/* Cells of a code point on a terminal: the blocks that matter in source text, not all of them. */
static int64_t cells_of(uint32_t code)
{
    if (between(code, 0x300, 0x36f) || between(code, 0x200b, 0x200d) ||
        between(code, 0xfe00, 0xfe0f))
        return 0;
    if (between(code, 0x1100, 0x115f) || between(code, 0x2e80, 0xa4cf) ||
        between(code, 0xac00, 0xd7a3) || between(code, 0xf900, 0xfaff) ||
        between(code, 0xfe30, 0xfe6f) || between(code, 0xff00, 0xff60) ||
        between(code, 0xffe0, 0xffe6) || between(code, 0x1f300, 0x1faff) ||
        between(code, 0x20000, 0x3fffd))
        return 2;
    return 1;
}

/* Reads the character at `at`, which is not the end of the string. Bytes that are not UTF-8 count
 * as characters of their own. */
static glyph read_glyph(const char *at, int64_t column)
{
    unsigned char lead = (unsigned char)at[0];
    if (lead == '\t')
        return (glyph){1, TAB_CELLS - column % TAB_CELLS, false};
    if (lead < 0x80)
        return (glyph){1, 1, lead >= 0x20 && lead != 0x7f};
    int64_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    uint32_t code = lead & (0x7fu >> bytes);
    if (lead < 0xc2 || lead > 0xf4)
        return (glyph){1, 1, false};
    for (int64_t i = 1; i < bytes; i++) {
        unsigned char byte = (unsigned char)at[i];
        if ((byte & 0xc0) != 0x80)
            return (glyph){1, 1, false};
        code = code << 6 | (byte & 0x3f);
    }
    return (glyph){bytes, cells_of(code), true};
}

/* Lays out source[from, to) starting in cell `column`: the characters themselves when fill is 0,
 * else `fill` in each of their cells. Returns the cell behind it. */
static int64_t lay_out(text *t, const char *source, int64_t from, int64_t to, int64_t column,
                       char fill)
{
    for (int64_t at = from; at < to;) {
        glyph g = read_glyph(source + at, column);
        char replacement = fill;
        if (fill == 0)
            replacement = (char)((unsigned char)source[at] < 0x80 ? ' ' : '?');
        if (fill == 0 && g.printable)
            text_add_n(t, source + at, g.bytes);
        else
            for (int64_t i = 0; i < g.cells; i++)
                text_add_n(t, &replacement, 1);
        column += g.cells;
        at += g.bytes;
    }
    return column;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Places found while running are lines without a column. */
static bool has_column(const pypto_span *span)
{
    return span->end_line > 0 || span->column > 0 || span->end_column > 0;
}

/* The column as people count it: characters, from 1. Spans count bytes. */
static int64_t shown_column(const pypto_diagnostic *d)
{
    const int64_t bytes = clamp(d->span.column, 0, INT32_MAX);
    int64_t column = 1;
    for (int64_t i = 0; i < bytes; i++)
        if (d->source == NULL || d->source[i] == '\0')
            return bytes + 1;
        else if (((unsigned char)d->source[i] & 0xc0) != 0x80)
            ++column;
    return column;
}

/* The source line and, below it, the underlined place. */
static void add_source(text *t, const pypto_diagnostic *d)
{
    const char *source = d->source;
    int64_t length = (int64_t)strlen(source);
    while (length > 0 && strchr(" \t\r\n\f", source[length - 1]) != NULL)
        length--;
    const pypto_span *span = &d->span;
    int64_t from = clamp(span->column, 0, length);
    int64_t to = span->end_line > span->line ? length : clamp(span->end_column, from, length);
    if (!has_column(span)) { /* the whole statement */
        from = (int64_t)strspn(source, " \t\f");
        to = length;
    }

    text_add(t, "\n" INDENT);
    lay_out(t, source, 0, length, 0, 0);
    text_add(t, "\n" INDENT);
    int64_t column = lay_out(t, source, 0, from, 0, ' ');
    int64_t caret = t->length;
    lay_out(t, source, from, to, column, '~');
    if (t->length == caret)
        text_add(t, "^"); /* an empty span still is a place */
    else if (!t->failed)
        t->bytes[caret] = '^';
}

static void add_diagnostic(text *t, const pypto_diagnostic *d)
{
    const pypto_span *span = &d->span;
    if (span->file != NULL) {
        text_add(t, span->file);
        if (span->line > 0)
            text_printf(t, ":%d", span->line);
        if (span->line > 0 && has_column(span))
            text_printf(t, ":%lld", (long long)shown_column(d));
        text_printf(t, ": %s [%s]: ", pypto_error_kind_name(d->kind), d->code);
    }
    text_add(t, d->message);
    if (span->file != NULL && span->line > 0 && d->source != NULL)
        add_source(t, d);
    if (d->note != NULL) {
        /* A note that is a table is indented, and starts on a line of its own. */
        text_add(t, d->note[0] == ' ' ? "\nnote:\n" : "\nnote: ");
        text_add(t, d->note);
    }
    if (d->hint != NULL) {
        text_add(t, "\nhint: ");
        text_add(t, d->hint);
    }
}

char *pypto_status_text(const pypto_status *status)
{
    text t = {0};
    text_add(&t, "");
    for (const pypto_diagnostic *d = status->diagnostics; d != NULL; d = d->next) {
        add_diagnostic(&t, d);
        if (d->next != NULL)
            text_add(&t, "\n\n");
    }
    if (t.failed)
        text_free(&t);
    return t.bytes;
}
