/* The device calls behind pl.printf: see print.h and frontend/printing.c.
 *
 * The lines of a call are written with the rank in front of each, to the standard output that the rank has
 * from its host. One write() for each line, or for all where they are short: what other ranks print
 * stands between lines, never in them, as far as the system keeps writes of PIPE_BUF bytes together. */
#include "runtime/print.h"

#include "base/alloc.h"
#include "base/os.h"
#include "runtime/rank.h"

#include <pypto/pld_math.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WRITE_BYTES 4096 /* PIPE_BUF of Linux */
#define LONG_AXIS 16     /* of a longer axis, the first and last EDGE elements are shown */
#define EDGE 3
#define NUMBER_TEXT 512

void print_destroy(print_buffer *buffer)
{
    alloc_free(buffer->bytes);
    *buffer = (print_buffer){0};
}

static print_buffer *buffer_of(pld_core *core)
{
    return &((dispatch *)core->dispatch)->owner->printed;
}

static void append(pld_core *core, const char *text, int64_t count)
{
    print_buffer *buffer = buffer_of(core);
    if (!alloc_grow(buffer->bytes, buffer->capacity, buffer->count + count)) {
        buffer->count = 0;
        task_fail(core, DIAG_OUT_OF_MEMORY, "no memory for the text of a pl.printf");
    }
    memcpy(buffer->bytes + buffer->count, text, (size_t)count);
    buffer->count += count;
}

static void append_format(pld_core *core, const char *format, ...)
{
    char text[NUMBER_TEXT];
    va_list args;
    va_start(args, format);
    const int count = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    append(core, text, count < (int)sizeof text ? count : (int)sizeof text - 1);
}

void pld_print_text(pld_core *core, const char *text)
{
    append(core, text, (int64_t)strlen(text));
}

void pld_print_int(pld_core *core, const char *format, int64_t value)
{
    append_format(core, format, (long long)value);
}

void pld_print_float(pld_core *core, const char *format, double value)
{
    append_format(core, format, value);
}

/* ---- tiles ---- */

static void append_element(pld_core *core, pypto_dtype dtype, const char *at)
{
    switch (dtype) {
    case PYPTO_BOOL: pld_print_text(core, *at != 0 ? "True" : "False"); break;
    case PYPTO_INT8: append_format(core, "%d", *(const int8_t *)at); break;
    case PYPTO_UINT8: append_format(core, "%u", *(const uint8_t *)at); break;
    case PYPTO_INT16: append_format(core, "%d", *(const int16_t *)(const void *)at); break;
    case PYPTO_UINT16: append_format(core, "%u", *(const uint16_t *)(const void *)at); break;
    case PYPTO_INT32: append_format(core, "%d", *(const int32_t *)(const void *)at); break;
    case PYPTO_UINT32: append_format(core, "%u", *(const uint32_t *)(const void *)at); break;
    case PYPTO_UINT64:
        append_format(core, "%llu", (unsigned long long)*(const uint64_t *)(const void *)at);
        break;
    case PYPTO_FP16:
        append_format(core, "%g", (double)pld_fp16_to_float(*(const uint16_t *)(const void *)at));
        break;
    case PYPTO_BF16:
        append_format(core, "%g", (double)pld_bf16_to_float(*(const uint16_t *)(const void *)at));
        break;
    case PYPTO_FP32: append_format(core, "%g", (double)*(const float *)(const void *)at); break;
    default: append_format(core, "%lld", (long long)*(const int64_t *)(const void *)at); break;
    }
}

typedef struct printed_tile {
    pypto_dtype dtype;
    int32_t ndim;
    const int64_t *valid;
    int64_t stride[PYPTO_MAX_DIMS]; /* bytes */
} printed_tile;

/* The part of the tile below axis d, in brackets; rows begin on new lines. */
static void append_axis(pld_core *core, const printed_tile *tile, const char *at, int32_t d)
{
    const int64_t count = tile->valid[d];
    const bool last = d == tile->ndim - 1;
    pld_print_text(core, "[");
    for (int64_t i = 0; i < count; ++i) {
        if (i > 0)
            pld_print_text(core, last ? ", " : ",\n");
        for (int32_t k = 0; !last && i > 0 && k <= d; ++k)
            pld_print_text(core, " ");
        if (count > LONG_AXIS && i == EDGE) {
            pld_print_text(core, "...");
            i = count - EDGE - 1;
            continue;
        }
        if (last)
            append_element(core, tile->dtype, at + i * tile->stride[d]);
        else
            append_axis(core, tile, at + i * tile->stride[d], d + 1);
    }
    pld_print_text(core, "]");
}

void pld_print_tile(pld_core *core, int32_t dtype, const void *tile, int32_t ndim,
                    const int64_t *extents, const int64_t *valid)
{
    printed_tile printed = {.dtype = (pypto_dtype)dtype, .ndim = ndim, .valid = valid};
    int64_t stride = pypto_dtype_bytes(printed.dtype);
    for (int32_t d = ndim - 1; d >= 0; --d) {
        printed.stride[d] = stride;
        stride *= extents[d];
    }
    append_axis(core, &printed, tile, 0);
}

/* ---- writing ---- */

static void write_bytes(const char *bytes, int64_t count)
{
    while (count > 0) {
        const int64_t written = os_write_some(1, bytes, count);
        if (written <= 0)
            return; /* nobody listens any more, which is no matter of the program's */
        bytes += written;
        count -= written;
    }
}

void(pld_print_end)(pld_core *core)
{
    task_check(core);
    char prefix[32];
    print_buffer *buffer = buffer_of(core);
    print_buffer lines = {0};
    const int prefix_bytes = snprintf(prefix, sizeof prefix, "rank %d: ", (int)core->owner->rank);
    int64_t collected = buffer->count;
    buffer->count = 0;
    if (collected > 0 && buffer->bytes[collected - 1] == '\n')
        --collected; /* a call ends its line anyway */
    for (int64_t from = 0; from <= collected;) {
        const char *start = buffer->bytes != NULL ? buffer->bytes + from : "";
        const char *end = collected > from ? memchr(start, '\n', (size_t)(collected - from)) : NULL;
        const int64_t length = end != NULL ? end - start : collected - from;
        const int64_t line = prefix_bytes + length + 1;
        if (lines.count > 0 && lines.count + line > WRITE_BYTES) {
            write_bytes(lines.bytes, lines.count);
            lines.count = 0;
        }
        if (!alloc_grow(lines.bytes, lines.capacity, lines.count + line))
            break;
        memcpy(lines.bytes + lines.count, prefix, (size_t)prefix_bytes);
        memcpy(lines.bytes + lines.count + prefix_bytes, start, (size_t)length);
        lines.bytes[lines.count + line - 1] = '\n';
        lines.count += line;
        from += length + 1;
    }
    write_bytes(lines.bytes, lines.count);
    print_destroy(&lines);
}
