/* Lines that kernels and wrappers print: collected piece by piece, then written. */
#ifndef RUNTIME_PRINT_H
#define RUNTIME_PRINT_H

#include <stdint.h>

/* What a pl.printf has collected; a rank has one, because no task leaves the CPU within a pl.printf. */
typedef struct print_buffer {
    char *bytes;
    int64_t count;
    int64_t capacity;
} print_buffer;

void print_destroy(print_buffer *buffer);

#endif
