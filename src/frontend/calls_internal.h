/* One call while it is lowered, for the files that share the work. */
#ifndef FRONTEND_CALLS_INTERNAL_H
#define FRONTEND_CALLS_INTERNAL_H

#include "frontend/calls.h"
#include "frontend/signature.h"

typedef struct call_site {
    int32_t function; /* the callee: the embedder's number */
    const frontend_source *callee;
    const syntax_expr *syntax;
    const char *name;
    int32_t count;             /* parameters */
    const syntax_expr **given; /* per parameter; NULL: its default value */
    dsl_value *values;         /* per parameter */
    const syntax_keyword *device_keyword;
    const ir_expr *device;
    uint64_t independent; /* bit i: argument i orders nothing */
    bool ok;
} call_site;

/* ---- calls.c ---- */

/* Whether the callee becomes part of the function at hand: what is written to be inlined; in class form
 * orchestration called by orchestration; and a kernel with a parameter that no task has. */
bool is_spliced(const lowering *fl, const call_site *site);

/* ---- call_arguments.c ---- */

/* Fills site->given, and the keyword device=. False after an error. */
bool bind_arguments(lowering *fl, call_site *site);
/* Fills site->values and site->device; clears site->ok after an error. */
void eval_arguments(lowering *fl, call_site *site);
/* An argument against the parameter of the specialised callee; it becomes the operand. */
bool check_argument(lowering *fl, const call_site *site, const instance *callee, int32_t index,
                    dim_match *match, ir_operand *operand);

/* ---- made_results.c ---- */

/* The operands for parameters that stand for tensors of the callee's own: creates them here. False after an error. */
bool create_results(lowering *fl, const call_site *site, const ir_function *callee,
                    ir_operand *operands);

/* ---- splices.c ---- */

/* Lowers the callee's body here, with names of its own; its value is what it returns. */
dsl_value splice_call(lowering *fl, const call_site *site);

#endif
