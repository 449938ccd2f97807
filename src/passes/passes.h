/* Passes: IR -> IR, one file each, run in the order of the table in passes.c. The verifier runs
 * after each. */
#ifndef PASSES_PASSES_H
#define PASSES_PASSES_H

#include "ir/ir.h"

/* Limits of the platform that a program is compiled for. */
typedef struct platform {
    const char *name;
    int64_t scratch_bytes; /* most that one kernel may use; 0: no limit */
} platform;

/* "a2a3", "a2a3sim", "a5", "a5sim", "cpu"; NULL for any other. */
const platform *platform_find(const char *name);
/* All of them, for messages: "a2a3, a2a3sim, a5, a5sim, cpu". */
const char *platform_names(void);

/* Is shown the program as the front end made it ("front_end"), and behind each pass. */
typedef struct pass_observer {
    void (*seen)(void *context, const char *stage, const ir_program *p);
    void *context;
} pass_observer;

/* All passes. Errors of the user's program are added to the status. `observer` may be NULL. */
PYPTO_NODISCARD pypto_status passes_run(ir_program *p, const platform *target,
                                        const pass_observer *observer);

/* Which devices share each window, from the dispatches that pass it (distributed.md §6.2), and
 * which dimensions of host tensors count devices. */
PYPTO_NODISCARD pypto_status pass_infer_domains(ir_program *p);
/* The operation that a dispatch with a `spread` stands for: its wrapper calls a kernel, both with the same
 * parameters, that does nothing else. */
const ir_stmt *collective_of(const ir_stmt *dispatch);
/* Makes one dispatch per device of those that run on each device of a domain. */
PYPTO_NODISCARD pypto_status pass_spread(ir_program *p);
/* Marks the window buffers that hold signals of collectives. */
PYPTO_NODISCARD pypto_status pass_mark_signals(ir_program *p);
/* Notes what kernels do to their window parameters (ir_var.uses). */
PYPTO_NODISCARD pypto_status pass_effects(ir_program *p);
/* Ends the tensors that loops make where nothing uses them any more. */
PYPTO_NODISCARD pypto_status pass_release(ir_program *p);
/* Places every tile in its kernel's scratch memory; tiles whose lives do not overlap share it. */
PYPTO_NODISCARD pypto_status pass_plan_scratch(ir_program *p, const platform *target);
/* Gives every function and variable a C name of its own. */
PYPTO_NODISCARD pypto_status pass_names(ir_program *p);

/* Consistency of the IR: operands defined and of the kinds the op table says, spans present, and
 * what the passes up to `after` promise. NULL: the front end's result. Changes nothing. */
PYPTO_NODISCARD pypto_status verify_program(ir_program *p, const char *after);

/* Whether a C name is taken in a function (names.c): the emitter asks before it makes up a local.
 * f may be NULL: at file level. */
bool name_is_taken(const ir_program *p, const ir_function *f, const char *name);
/* For the unit test: the first word of the reserved lists that is out of order, or NULL. */
const char *names_first_unsorted(void);

/* What the emitter puts behind a function's C name for the things that belong to it. */
#define NAME_SUFFIX_ENTRY "_entry"
#define NAME_SUFFIX_TABLE "_function"
#define NAME_SUFFIX_PARAMS "_params"
#define NAME_SUFFIX_DIMS "_dims"

#endif
