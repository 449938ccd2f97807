/* The inference of domains while it lasts, for the files that share the work. */
#ifndef PASSES_INFER_INTERNAL_H
#define PASSES_INFER_INTERNAL_H

#include "ops/ops.h"
#include "passes/passes.h"

/* What is known of a variable of the host function. */
typedef struct var_facts {
    int32_t definitions;
    const ir_expr *value; /* of its only definition, when that is a scalar */
    uint64_t *buffers;    /* windows and buffers: set of buffer indices */
} var_facts;

typedef struct inference {
    ir_program *p;
    ir_function *f;
    var_facts *facts; /* by variable id */
    int64_t words;    /* of a set of buffers */
    bool changed;
    bool *viewed; /* by buffer */
    bool *dispatched;
    VEC(const ir_stmt *) collectives; /* of f */
    pypto_status errors;
} inference;

/* ---- infer_domains.c ---- */

/* The devices of the set share the buffers that the window may stand for. */
void add_contribution(inference *inf, const ir_var *window, const ir_device_set *set);
/* Those that share any of them, as far as is known. */
ir_device_set devices_of(const inference *inf, const ir_var *window);
bool same_devices(const ir_device_set *x, const ir_device_set *y);

/* ---- infer_collectives.c ---- */

/* Gives the windows of each collective of the host function one domain, and the collective its devices. */
void infer_collectives(inference *inf);

#endif
