/* What the files that read annotations share. */
#ifndef FRONTEND_ANNOTATIONS_INTERNAL_H
#define FRONTEND_ANNOTATIONS_INTERNAL_H

#include "frontend/signature.h"

/* ---- annotations.c ---- */

/* Reports it; ANNOTATION_FAILED. */
dsl_annotation bad_annotation(lowering *fl, pypto_span span, const char *hint, const char *message);

/* ---- annotation_words.c ---- */

/* "a.b.c" as written; NULL when it is not only names. */
const char *dotted_words(arena *a, const syntax_expr *e);
/* The canonical dotted name that an expression spells, or NULL; reports nothing. */
const char *canonical_path(frontend *fe, int32_t function, const syntax_expr *e);
/* pl.Out, pl.InOut */
bool is_direction(const char *path);
/* IR_NONE when the path is no type that takes a shape. */
ir_kind shaped_kind(const char *path);

/* ---- annotation_shapes.c ---- */

/* One dimension. */
dsl_value dim_value(lowering *fl, const syntax_expr *e);
/* Adds it to the shape of a type, which says what dimensions may be. False after reporting. */
bool add_dim(lowering *fl, ir_type *type, const dsl_value *v);
/* A whole shape may be a constant of the script: SHAPE = [1, 256]. `name` is for messages. */
bool read_named_shape(lowering *fl, const name_value *v, const char *name, pypto_span span,
                      ir_type *type);
/* [...], or a name of a list, into the type. */
bool read_shape(lowering *fl, const syntax_expr *e, ir_type *type);

/* ---- annotation_slots.c ---- */

bool read_dtype(lowering *fl, const syntax_expr *e, pypto_dtype *dtype);
/* The third or fourth slot of an annotation of the form `path`. */
bool check_slot(lowering *fl, const char *path, const syntax_expr *e);

#endif
