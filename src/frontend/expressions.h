/* Evaluating expressions: names, operations of the table, words of the language. */
#ifndef FRONTEND_EXPRESSIONS_H
#define FRONTEND_EXPRESSIONS_H

#include "frontend/lower.h"

/* ---- expressions.c ---- */

/* `target` is the name that the value will be assigned to, or -1: operations compute in its place. */
dsl_value eval(lowering *fl, const syntax_expr *e);
dsl_value eval_into(lowering *fl, const syntax_expr *e, int64_t target);
/* [f(k) for k in range(n)] with constant bounds: a tuple of its elements. */
dsl_value eval_comprehension(lowering *fl, const syntax_expr *e);
/* A scalar of an integer type; reports otherwise as "<what> must be an integer scalar". */
bool eval_integer(lowering *fl, const syntax_expr *e, const char *what, dsl_value *v);

/* ---- operators.c ---- */

dsl_value eval_unary(lowering *fl, const syntax_expr *e, int64_t target);
dsl_value eval_binary(lowering *fl, const syntax_expr *e, int64_t target);
dsl_value eval_comparison(lowering *fl, const syntax_expr *e);
/* `and`, `or` */
dsl_value eval_logic(lowering *fl, const syntax_expr *e);
/* x op y: scalars, or tiles with tiles and scalars. */
dsl_value value_binary(lowering *fl, const char *op, dsl_value x, dsl_value y, pypto_span span,
                       int64_t target);

/* ---- builtins.c ---- */

/* Whether the dotted name is a word of the language rather than an operation; if so, its value. */
bool lower_builtin(lowering *fl, const char *path, const syntax_expr *e, dsl_value *result);
/* The same for calls of Python's own functions. */
bool lower_python_builtin(lowering *fl, const syntax_expr *e, int64_t target, dsl_value *result);
dsl_value lower_conditional(lowering *fl, const syntax_expr *e, int64_t target);
/* The extents of a tensor, window or tile; false for anything else. */
bool shape_value(lowering *fl, const dsl_value *v, pypto_span span, dsl_value *result);

/* ---- operations.c ---- */

/* A call of an operation of the table; `written` is its spelling in the script, which decides which
 * forms of it may be meant. */
dsl_value lower_operation(lowering *fl, const op_def *op, const char *written,
                          const syntax_expr *call, int64_t target);
/* An operation on values: those of its first `count` parameters; the others have their defaults. */
dsl_value lower_values(lowering *fl, const op_def *op, const dsl_value *values, int32_t count,
                       pypto_span span, int64_t target);

/* ---- tensor_values.c ---- */

/* A tensor or window in a kernel: operations on tiles take it as a whole. */
bool is_tensor_operand(const lowering *fl, const dsl_value *v);
/* Whether such a value is given for a parameter that takes a tile. */
bool stands_for_tile(const lowering *fl, const op_def *op, int32_t index, const dsl_value *v);
/* Behind a write through a tensor or window: if it is a view that is valid in part only, all of it counts from
 * here on. And for each such argument that a call may have written. */
void count_whole(lowering *fl, ir_var *memory, pypto_span span);
void count_written(lowering *fl, const ir_stmt *call);
/* The tile of a whole tensor; `what` names the operation in messages. */
dsl_value load_whole(lowering *fl, const char *what, const dsl_value *v);

/* ---- host_collectives.c ---- */

/* Whether a call of a collective in a host function stands where it may; reports. */
bool check_host_collective(lowering *fl, const op_def *op, const syntax_expr *call);
/* What a host function may leave out of its operands, which have been checked; false after an error. */
bool complete_host_collective(lowering *fl, op_call *call);
/* Makes a call of its kernel a dispatch to each device of its windows' domain. */
void spread_call(lowering *fl, ir_stmt *call);

/* ---- printing.c ---- */

dsl_value lower_printf(lowering *fl, const syntax_expr *e);

#endif
