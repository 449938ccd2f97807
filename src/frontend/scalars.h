/* Arithmetic, comparisons and conversions of numbers. */
#ifndef FRONTEND_SCALARS_H
#define FRONTEND_SCALARS_H

#include "frontend/lower.h"

dsl_value scalar_binary(lowering *fl, const char *op, dsl_value x, dsl_value y, pypto_span span);
dsl_value scalar_unary(lowering *fl, const char *op, dsl_value x, pypto_span span);
dsl_value scalar_compare(lowering *fl, const char *op, dsl_value x, dsl_value y, pypto_span span);
dsl_value scalar_logic(lowering *fl, const char *op, dsl_value x, dsl_value y, pypto_span span);
/* IR_MIN or IR_MAX of two numbers; `what` names it in messages. */
dsl_value scalar_extreme(lowering *fl, const char *what, ir_operator op, dsl_value x, dsl_value y,
                         pypto_span span);
/* Brings two scalars to one type, which *dtype becomes. False after reporting. */
bool scalar_unify(lowering *fl, const char *op, dsl_value *x, dsl_value *y, pypto_span span,
                  pypto_dtype *dtype);
/* The type of a name that is any of the values where paths meet: the widest, if it holds every value of
 * the others. False: there is none. */
bool scalar_meeting(const dsl_value *const *values, int64_t count, pypto_dtype *dtype);
/* A scalar as a number of that type: literals must fit, integers wrap, floats round; between integers
 * and floats it is an error. `what` names it in the message. */
dsl_value scalar_convert(lowering *fl, dsl_value v, pypto_dtype dtype, const char *what);
/* A BOOL scalar for `if`; reports others. */
bool condition(lowering *fl, const syntax_expr *e, const char *statement, dsl_value *v);

#endif
