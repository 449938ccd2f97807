/* Writing lines of C: indentation, #line directives, lists that wrap.
 *
 * A #line directive makes the C compiler take the next line for a line of the user's script, and
 * counts on from there. The emitter tracks what the compiler counts (at_file, at_line) and writes
 * a directive only where that differs from the truth. Statements that note __LINE__ stay on one
 * physical line: compilers do not agree on the line of a macro call that spans several. */
#include "codegen/emit_internal.h"

#include "codegen/emit.h"
#include "passes/passes.h"

#include <string.h>

static void end_line(emitter *e)
{
    text_add(e->out, "\n");
    e->c_line++;
    e->at_line++;
}

static void indent(emitter *e)
{
    text_printf(e->out, "%*s", e->depth * EMIT_INDENT, "");
}

void emit_line(emitter *e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    indent(e);
    text_vprintf(e->out, format, args);
    va_end(args);
    end_line(e);
}

void emit_blank(emitter *e)
{
    end_line(e);
}

static void set_place(emitter *e, const char *file, int64_t line)
{
    text_printf(e->out, "#line %lld", (long long)line);
    if (e->at_file == NULL || strcmp(e->at_file, file) != 0) {
        text_add(e->out, " ");
        text_quoted(e->out, file);
    }
    end_line(e);
    e->at_file = file;
    e->at_line = line;
}

void emit_place(emitter *e, const pypto_span *span)
{
    if (span->line <= 0 || span->file == NULL)
        return;
    if (e->at_line != span->line || e->at_file == NULL || strcmp(e->at_file, span->file) != 0)
        set_place(e, span->file, span->line);
}

void emit_own_place(emitter *e)
{
    if (e->at_file != NULL && (strcmp(e->at_file, EMIT_FILE_NAME) != 0 || e->at_line != e->c_line))
        set_place(e, EMIT_FILE_NAME, e->c_line + 1); /* the line behind the directive */
}

void emit_list(emitter *e, const char *head, const char *const *items, int64_t count,
               const char *tail)
{
    size_t length = strlen(head) + strlen(tail);
    for (int64_t i = 0; i < count; i++)
        length += strlen(items[i]) + 2;
    bool wraps = (size_t)(e->depth * EMIT_INDENT) + length > EMIT_COLUMNS;

    indent(e);
    text_add(e->out, head);
    size_t margin = (size_t)(e->depth * EMIT_INDENT) + strlen(head);
    size_t column = margin;
    for (int64_t i = 0; i < count; i++) {
        size_t width = strlen(items[i]);
        size_t needed = 2 + width + (i + 1 < count ? 1 : strlen(tail));
        if (i > 0 && wraps && column + needed > EMIT_COLUMNS) {
            text_add(e->out, ",");
            end_line(e);
            text_printf(e->out, "%*s", (int)margin, "");
            column = margin;
        } else if (i > 0) {
            text_add(e->out, ", ");
            column += 2;
        }
        text_add(e->out, items[i]);
        column += width;
    }
    text_add(e->out, tail);
    end_line(e);
}

const char *emit_comment_text(emitter *e, const char *string)
{
    text safe = {.a = e->a};
    text_add(&safe, "");
    for (const char *p = string; *p != '\0'; p++) {
        unsigned char byte = (unsigned char)*p;
        if (byte < 0x20 || byte == 0x7f || byte == '\\') /* a backslash could join lines */
            text_printf(&safe, "%%%02x", byte);
        else if ((byte == '/' && p > string && p[-1] == '*') ||
                 (byte == '*' && p > string && p[-1] == '/'))
            text_printf(&safe, " %c", byte);
        else
            text_add_n(&safe, p, 1);
    }
    return safe.bytes;
}

const char *emit_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

const char *emit_free_name(emitter *e, const char *wish)
{
    const char *name = wish;
    for (int i = 2; name_is_taken(e->p, e->f, name); i++)
        name = arena_printf(e->a, "%s_%d", wish, i);
    return name;
}

bool emit_fits(const emitter *e, size_t length, size_t columns)
{
    return (size_t)e->depth * EMIT_INDENT + length <= columns;
}
