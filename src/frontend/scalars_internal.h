/* What the files that compute with scalars share. */
#ifndef FRONTEND_SCALARS_INTERNAL_H
#define FRONTEND_SCALARS_INTERNAL_H

#include "frontend/scalars.h"

#include "ops/dtypes.h"

/* An operator of the script, and the IR's. */
typedef struct operator_row {
    const char *spelling;
    ir_operator op;
    bool integers_only;
} operator_row;

/* ---- scalars.c ---- */

/* An arithmetic operator, or NULL. */
const operator_row *find_operator(const char *spelling);

/* ---- scalar_operands.c ---- */

/* Of a floating-point type. */
bool is_real(const dsl_value *v);
/* The number that a literal is, as a double. */
double literal_real(const dsl_value *v);
/* Reports anything that is no scalar. */
bool need_scalar(lowering *fl, const char *op, const dsl_value *v);
/* One message even if both are wrong: they are for the same reason. */
bool need_scalars(lowering *fl, const char *op, const dsl_value *x, const dsl_value *y);
/* Reports ids of tasks and truth values. */
bool need_number(lowering *fl, const char *op, const dsl_value *v);
/* Reports that an integer meets a float. */
dsl_value category_error(lowering *fl, const char *op, const dsl_value *x, const dsl_value *y,
                         pypto_span span);
/* A literal as a scalar of the other side's type. False after reporting. */
bool adapt_literal(lowering *fl, const char *op, dsl_value *literal, const dsl_value *other,
                   pypto_span span);

/* ---- literals.c ---- */

/* Reports a constant that does not fit 64 bits. */
dsl_value too_large(lowering *fl, pypto_span span);
/* A literal; reports what fits neither INT64 nor UINT64. */
dsl_value literal_wide(lowering *fl, wide_int number, pypto_span span);
dsl_value zero_division(lowering *fl, pypto_span span);
/* x op y of two literals. */
dsl_value literal_float_binary(lowering *fl, const char *op, double x, double y, pypto_span span);
dsl_value literal_int_binary(lowering *fl, const char *op, const dsl_value *x, const dsl_value *y,
                             pypto_span span);

#endif
