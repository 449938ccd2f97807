/* IR -> C text: one readable file per program, ended by its pld_program table. Deterministic: the
 * same IR gives the same bytes. */
#ifndef CODEGEN_EMIT_H
#define CODEGEN_EMIT_H

#include "base/text.h"
#include "ir/ir.h"

/* Name of the emitted file: what #line calls the parts that belong to no script. */
#define EMIT_FILE_NAME "program.c"

/* The passes have run on `p`. */
void emit_program(text *out, const ir_program *p);
#endif
