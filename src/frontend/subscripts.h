/* x[...], read and written: parts of tensors and tiles, elements, entries of arrays. */
#ifndef FRONTEND_SUBSCRIPTS_H
#define FRONTEND_SUBSCRIPTS_H

#include "frontend/lower.h"

/* What stands in brackets, dimension by dimension. */
typedef struct subscript {
    const ir_type *type; /* of the value that it belongs to */
    const ir_expr *offsets[PYPTO_MAX_DIMS];
    const ir_expr *extents[PYPTO_MAX_DIMS]; /* constant 0: an index, which drops the dimension */
    /* Of a tile: how much of the extent is valid, where a slice ends at a bound known at run time only. */
    const ir_expr *valid[PYPTO_MAX_DIMS];
    bool ragged;     /* any of them is not the extent */
    int32_t indices; /* how many of those */
} subscript;

/* Whether an extent of a subscript says that an index stands there. */
bool is_index(const ir_expr *extent);
/* The first `count` expressions as a list. */
dsl_value list_value(lowering *fl, const ir_expr *const *exprs, int32_t count, pypto_span span);
/* x[...] of a tensor, window or tile: a view, a part of a tile, or an element. */
dsl_value lower_subscript(lowering *fl, dsl_value base, const syntax_expr *e, int64_t target);
/* target[...] = v */
void lower_subscript_write(lowering *fl, const syntax_expr *target, dsl_value v, pypto_span span);

/* ---- arrays.c ---- */

bool is_array(const dsl_value *v);
/* array[i], and array[i] = v. */
dsl_value lower_array_item(lowering *fl, dsl_value array, const syntax_expr *e, int64_t target);
void lower_array_write(lowering *fl, dsl_value array, const syntax_expr *target, dsl_value v,
                       pypto_span span);
/* pl.array.update_element, its operands checked: the array with one element changed. */
dsl_value update_array(lowering *fl, const op_call *call, int64_t target);

/* ---- host_views.c ---- */

dsl_value lower_host_view(lowering *fl, dsl_value base, const subscript *sub, pypto_span span,
                          int64_t target);

#endif
