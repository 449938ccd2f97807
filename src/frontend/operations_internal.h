/* The steps from the arguments of a call to operands, for operations.c. */
#ifndef FRONTEND_OPERATIONS_INTERNAL_H
#define FRONTEND_OPERATIONS_INTERNAL_H

#include "frontend/lower.h"

/* Fills `given`, one entry for each parameter; NULL: left out. Reports what does not fit, and returns false. */
bool bind_operation(lowering *fl, const op_def *op, const syntax_expr *call,
                    const syntax_expr **given);

/* The operand for a parameter. Reports a value of a kind that no parameter of this one takes. */
bool value_operand(lowering *fl, const op_def *op, const op_param *param, const dsl_value *v,
                   ir_operand *operand);
/* A default as the table writes it: None, a number, an element type in quotes, or Enumeration.Member. */
ir_operand default_operand(arena *a, const op_param *param);

#endif
