/* IR -> C text: one readable file per program, ended by its pld_program table. Deterministic: the
 * same IR gives the same bytes. */
#ifndef CODEGEN_EMIT_H
#define CODEGEN_EMIT_H

#include "base/text.h"
#include "ir/ir.h"

/* Name of the emitted file: what #line calls the parts that belong to no script. */
#define EMIT_FILE_NAME "program.c"

/* The lines of the text, from 1, that a function takes up. */
typedef struct emit_lines_of {
    int64_t first;
    int64_t last;
} emit_lines_of;

/* The passes have run on `p`. `lines` gets an entry per function; it may be NULL. */
void emit_program(text *out, const ir_program *p, emit_lines_of *lines);
#endif
