/* Lowering: from DSL source to the texts of a program, by front end, passes and emitter. */
#ifndef CODEGEN_LOWER_H
#define CODEGEN_LOWER_H

#include "codegen/build.h"
#include "codegen/compile.h"
#include "passes/passes.h"

/* The IR behind a pass. */
typedef struct lower_stage {
    const char *name;
    text ir;
} lower_stage;

/* On the arena. */
typedef struct lowered {
    frontend_result result;
    program_text text;
    VEC(lower_stage) stages; /* empty unless the request asks for them */
} lowered;

PYPTO_NODISCARD pypto_status lower_program(arena *a, const compile_request *request,
                                           const platform *target, lowered *out);

#endif
