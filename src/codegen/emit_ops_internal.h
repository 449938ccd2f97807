/* What the files that write operations share. */
#ifndef CODEGEN_EMIT_OPS_INTERNAL_H
#define CODEGEN_EMIT_OPS_INTERNAL_H

#include "codegen/emit_internal.h"

/* A use of a row of the table. */
typedef struct op_template {
    const op_def *op;
    const ir_operand *operands;
    const ir_var *target;
    bool element; /* names mean elements */
} op_template;

/* ---- emit_operands.c ---- */

/* Offsets or extents as an argument; `macro` makes the array. */
const char *list_text(emitter *e, const char *macro, const ir_expr *const *exprs, int32_t count);
/* An operand as an argument of a function of the device library. */
const char *operand_text(emitter *e, const op_param *param, const ir_operand *operand);
/* A tile's shape, or its valid extents, with one entry per dimension of a memory of at least its
 * rank. */
const char *tile_extents(emitter *e, const ir_var *tile, int32_t ndim, bool valid);
/* The valid extents of a tile of any kind, as an array. */
const char *valid_text(emitter *e, const ir_var *tile);
/* Extents as pld_part takes them; a constant 0 stands for an axis that is dropped. */
const char *part_extents(emitter *e, const ir_expr *const *extents, int32_t count);
/* The same without the axes that another list names. */
const char *kept_extents(emitter *e, const ir_operand *extents, const ir_operand *dropped);
/* Elements of all dimensions but the last. */
long long tile_rows(const ir_var *tile);
/* A mask of devices. */
const char *device_set_text(emitter *e, const ir_device_set *set);

/* ---- emit_elements.c ---- */

/* The end of the name of a function that works on elements as they are stored; those of 8 bits for
 * storage only are moved as bytes. */
const char *element_suffix(pypto_dtype dtype);
/* A stored element as the value that C computes with, and back. */
const char *value_of_bits(emitter *e, pypto_dtype dtype, const char *bits);
const char *bits_of_value(emitter *e, pypto_dtype dtype, const char *value);
/* The value of a tile's element at hand, or of a scalar. */
const char *element_text(emitter *e, const ir_operand *operand);
/* The element of a tile at some indices, as an lvalue. */
const char *tile_element(emitter *e, const ir_var *tile, const ir_operand *indices);
/* The element of an array, as an lvalue. */
const char *array_slot(emitter *e, const ir_var *array, const ir_operand *index);
/* An element converted as pl.cast says: the text of the new element. */
const char *cast_text(emitter *e, const op_template *t, const ir_operand *operand);
/* A pad value as an element of that type. */
const char *pad_text(emitter *e, pypto_dtype dtype, const ir_operand *pad);
/* Elements to walk over, and the distance from one to the next: those of a tile, or one scalar. */
const char *pointer_text(emitter *e, const ir_operand *operand, pypto_dtype dtype);
/* The element's bit of a mask, whose rows start at an element of the mask. */
const char *bit_text(emitter *e, const ir_var *mask);

/* ---- emit_parts.c ---- */

/* What {name.part} stands for, `operand` being what is named; NULL when there is no such part. */
const char *part_text(emitter *e, const op_template *t, const ir_operand *operand,
                      const char *part);

/* ---- emit_templates.c ---- */

/* The format with its placeholders filled in. */
const char *expand(emitter *e, const op_template *t, const char *format);
/* What the table says of one element: usually `usual`; `rare`, if there is one, where any meets `condition`. */
typedef struct element_forms {
    const char *usual;
    const char *condition;
    const char *rare;
} element_forms;
element_forms element_forms_of(emitter *e, const op_def *op);
/* The value of one element of an elementwise operation, as the element type of its target; `expression` is a form
 * of it. */
const char *op_element_text(emitter *e, const ir_stmt *s, const char *expression);

/* ---- emit_ops.c ---- */

/* Whether the text of an element asks for its row or column. */
bool loop_wants_places(const char *format);

/* ---- emit_shared.c ---- */

/* Writes an elementwise operation as a call of a loop that others use as well; false when it has none. */
bool emit_shared_call(emitter *e, const ir_stmt *s);

/* ---- emit_valid.c ---- */

/* A copy of a tile onto itself: both names have one place. */
bool copies_itself(const ir_stmt *s);
/* A reshape of a ragged tile moves axes of extent 1 only; the others keep their extents. */
void emit_reshaped_valid(emitter *e, const ir_stmt *s);
/* The table's statement for the valid extents. */
void emit_given_valid(emitter *e, const ir_stmt *s, const char *format);

#endif
