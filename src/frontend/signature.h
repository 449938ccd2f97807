/* Types as the script writes them: annotations, symbols for dimensions, parameters of a function. */
#ifndef FRONTEND_SIGNATURE_H
#define FRONTEND_SIGNATURE_H

#include "frontend/lower.h"

/* ---- annotations.c ---- */

typedef enum annotation_form {
    ANNOTATION_FAILED, /* reported */
    ANNOTATION_TYPE,   /* type */
    ANNOTATION_BARE,   /* kind alone: pl.Tensor, pld.DistributedTensor */
    ANNOTATION_TUPLE,  /* items: results only */
    ANNOTATION_NONE    /* None: results only */
} annotation_form;

typedef struct dsl_annotation {
    annotation_form form;
    ir_type type;
    pld_direction direction;
    const struct dsl_annotation *items;
    int32_t count;
    pypto_span span;
} dsl_annotation;

/* The element type of that name but for a typing error, as "pl.FP32", or NULL. */
const char *nearest_dtype(arena *a, const char *path);
dsl_annotation read_annotation(lowering *fl, const syntax_expr *e);
/* Whether the annotation is a bare pl.Tensor or pld.DistributedTensor, also inside pl.Out/pl.InOut;
 * reports nothing. */
bool annotation_is_bare(frontend *fe, int32_t function, const syntax_expr *e);
/* Whether it is pld.CommCtx; reports nothing. */
bool annotation_is_comm(frontend *fe, int32_t function, const syntax_expr *e);

/* ---- declared_types.c ---- */

/* Whether a value has the type that is declared for `what`: "'x'" or "the result"; reports otherwise. */
bool check_declared(lowering *fl, const dsl_annotation *declared, const ir_type *have,
                    pypto_span span, const char *what);
/* A literal, or an integer beside INDEX, in the declared scalar type; others must have it. */
dsl_value annotated_scalar(lowering *fl, const dsl_annotation *declared, dsl_value v,
                           pypto_span span, const char *what);

/* ---- dims.c ---- */

/* The value of a pl.dynamic symbol. In a signature its variable comes into being at the first mention;
 * in a body it must exist. NULL after reporting. */
const ir_expr *symbol_expr(lowering *fl, const char *name, pypto_span span);
/* The scalar parameter of that name, as far as the signature has been read; NULL when there is none. */
const ir_expr *scalar_param(const lowering *fl, const char *name);
/* Finds for every symbol the parameter that defines it; reports those that none does. */
void bind_symbols(lowering *fl);
/* An argument's type against the callee's parameter, dimension by dimension. `found` holds what the
 * callee's symbols have been matched with so far, one entry per ir->dims. */
typedef struct dim_match {
    const ir_expr **found;
    int32_t count;
} dim_match;
dim_match dim_match_make(arena *a, const ir_function *callee);
/* NULL, or what does not fit: "dimension 0 is 4, but 2 is declared". The ranks are equal. */
const char *match_dims(arena *a, dim_match *match, const ir_function *callee, int32_t param,
                       const ir_type *argument);

/* ---- made_results.c ---- */

/* Whether the function may return storage of this root that is none of its parameters'. */
bool is_made_tensor(const lowering *fl, const ir_var *var);
/* Behind the body: parameters for results that are not. Reports those that cannot be. */
void make_result_params(lowering *fl);

/* ---- marks.c ---- */

/* Whether a dimension of a bare parameter is dynamic because a function that it is passed to says so. */
bool dimension_is_marked(frontend *fe, int32_t function, const char *param, int32_t dim);

/* ---- signature.c ---- */

/* x.bind_dynamic(0, M) of a parameter: lower_signature() has dealt with it. */
bool is_bind_dynamic(const lowering *fl, const syntax_expr *e);
void lower_signature(lowering *fl, const given_param *given, int32_t count);

/* ---- writes.c ---- */

/* Reports parameters that are written but declared as inputs, and warns of outputs that are only rebound.
 * After the body; ids count variables. */
void check_writes(lowering *fl);

#endif
