/* What a program consists of, as data: for those who take it apart (the artifact directory, tools). */
#ifndef CODEGEN_DESCRIBE_H
#define CODEGEN_DESCRIBE_H

#include "base/text.h"
#include "codegen/emit.h"
#include "ir/ir.h"

/* The passes have run on `p`; `lines` is what emit_program() has filled in for it. */
void describe_program(text *out, const ir_program *p, const emit_lines_of *lines);

#endif
