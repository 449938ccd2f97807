/* Type rules: one function per family, named in the table, and the helpers that they share.
 *
 * A rule runs after op_check() has checked that every operand has the kind that the signature says:
 * an OPERAND_OFFSETS operand is a list of integer expressions, an OPERAND_EXTENTS one a list of
 * positive constants, and so on. It adds one diagnostic and returns false, or sets the result type. */
#ifndef OPS_RULES_H
#define OPS_RULES_H

#include "base/diag.h"
#include "ops/ops.h"

/* rules_scalar.c */
bool rule_const(op_call *call, ir_type *result);
bool rule_cast(op_call *call, ir_type *result);
bool rule_world_size(op_call *call, ir_type *result);
bool rule_comm(op_call *call, ir_type *result);
bool rule_rank(op_call *call, ir_type *result);
bool rule_scalars(op_call *call, ir_type *result);
bool rule_cast_tile(op_call *call, ir_type *result);

/* rules_elementwise.c */
bool rule_create_tile(op_call *call, ir_type *result);
bool rule_move(op_call *call, ir_type *result);
bool rule_elementwise(op_call *call, ir_type *result);
bool rule_elementwise_float(op_call *call, ir_type *result);
bool rule_elementwise_int(op_call *call, ir_type *result);

/* rules_memory.c */
bool rule_load(op_call *call, ir_type *result);
bool rule_store(op_call *call, ir_type *result);
bool rule_read(op_call *call, ir_type *result);
bool rule_write(op_call *call, ir_type *result);
bool rule_subscript(op_call *call, ir_type *result);
bool rule_slice(op_call *call, ir_type *result);
bool rule_assemble(op_call *call, ir_type *result);
bool rule_expand_clone(op_call *call, ir_type *result);
bool rule_reshape_memory(op_call *call, ir_type *result);

/* rules_tile.c */
bool rule_row(op_call *call, ir_type *result);
bool rule_col(op_call *call, ir_type *result);
bool rule_row_index(op_call *call, ir_type *result);
bool rule_col_index(op_call *call, ir_type *result);
bool rule_row_expand(op_call *call, ir_type *result);
bool rule_row_expand_float(op_call *call, ir_type *result);
bool rule_col_expand(op_call *call, ir_type *result);
bool rule_col_expand_float(op_call *call, ir_type *result);
bool rule_matmul(op_call *call, ir_type *result);
bool rule_matmul_acc(op_call *call, ir_type *result);
bool rule_reshape(op_call *call, ir_type *result);

/* rules_transfer.c */
bool rule_remote_store(op_call *call, ir_type *result);
bool rule_remote_store_tensor(op_call *call, ir_type *result);
bool rule_put(op_call *call, ir_type *result);
bool rule_get(op_call *call, ir_type *result);
bool rule_put_staged(op_call *call, ir_type *result);
bool rule_get_staged(op_call *call, ir_type *result);
bool rule_notify(op_call *call, ir_type *result);
bool rule_wait(op_call *call, ir_type *result);
bool rule_defer_wait(op_call *call, ir_type *result);

/* rules_collective.c */
bool rule_allreduce(op_call *call, ir_type *result);
bool rule_barrier(op_call *call, ir_type *result);
bool rule_broadcast(op_call *call, ir_type *result);
bool rule_allgather(op_call *call, ir_type *result);
bool rule_reduce_scatter(op_call *call, ir_type *result);
bool rule_all_to_all(op_call *call, ir_type *result);
bool rule_all_to_all_v(op_call *call, ir_type *result);

/* rules_shape.c */
bool rule_cmp(op_call *call, ir_type *result);
bool rule_select(op_call *call, ir_type *result);
bool rule_transpose(op_call *call, ir_type *result);
bool rule_transpose_view(op_call *call, ir_type *result);
bool rule_tensor_view(op_call *call, ir_type *result);
bool rule_concat(op_call *call, ir_type *result);
bool rule_set_valid(op_call *call, ir_type *result);
bool rule_fillpad(op_call *call, ir_type *result);
bool rule_reinterpret(op_call *call, ir_type *result);
bool rule_ci(op_call *call, ir_type *result);
bool rule_tri(op_call *call, ir_type *result);

/* rules_view.c */
bool rule_view(op_call *call, ir_type *result);
bool rule_tile_slice(op_call *call, ir_type *result);
bool rule_part(op_call *call, ir_type *result);
bool rule_whole(op_call *call, ir_type *result);

/* rules_create.c */
bool rule_no_result(op_call *call, ir_type *result);
bool rule_create_tensor(op_call *call, ir_type *result);
bool rule_array_create(op_call *call, ir_type *result);
bool rule_array_get(op_call *call, ir_type *result);
bool rule_array_set(op_call *call, ir_type *result);

/* rules_window.c */
bool rule_alloc_window(op_call *call, ir_type *result);
bool rule_window(op_call *call, ir_type *result);

/* ---- helpers (rules.c) ---- */

/* Adds a diagnostic at an operand (NULL: at the whole call); returns false. The message is prefixed by
 * the operation's name. The hint is the rule's own: what the table says of a code is of any operation. */
bool rule_fail(op_call *call, diag_code code, const ir_operand *at, const char *hint,
               const char *format, ...) __attribute__((format(printf, 5, 6), nonnull(4)));

/* The first operand whose parameter has that kind; the table guarantees that there is one. */
ir_operand *rule_operand(op_call *call, op_operand kind);

/* Gives a scalar beside a tile or element the element's type; literals if they fit. */
bool rule_match_scalar(op_call *call, ir_operand *scalar, pypto_dtype dtype);

/* Whether a tile has elements to compute with: neither bool nor a type for storage only. */
#define ELEMENTS_HINT "choose extents whose product is the number of elements"
/* Whether a new tile has dimensions, and a number of elements. */
bool rule_check_size(op_call *call, const ir_operand *shape, const ir_type *tile);
bool rule_numeric(op_call *call, const ir_operand *tile);

/* Whether the last extent is even, for elements that lie two in a byte. */
bool rule_check_packed(op_call *call, const ir_operand *at, const ir_type *type);

/* Whether a tile has the element type of another one; and also its shape. */
bool rule_match_dtype(op_call *call, const ir_operand *other, const ir_type *first);
bool rule_match_tile(op_call *call, const ir_operand *other, const ir_type *first);

/* Whether an OPERAND_PAD operand is a pad value. (rules_shape.c) */
bool rule_pad_value(op_call *call, const ir_operand *pad);

/* The constants of an OPERAND_EXTENTS list. */
void rule_extents(const ir_operand *list, int64_t *extents);

/* A constant extent of a tile; 0 for one that is not constant. */
int64_t rule_extent(const ir_type *type, int32_t dim);

/* The operand of that name; NULL when the operation has none or it was not given. */
const ir_operand *rule_given(op_call *call, const char *name);

/* ---- helpers about memory (rules_memory.c) ---- */

/* Whether the list of that kind has an entry per dimension: "offsets rank is 1, but the tensor has
 * rank 2". */
bool rule_check_rank(op_call *call, op_operand kind, const ir_type *memory);

/* Whether the box of `extents` may lie in the memory; 0 stands for an extent known at run time only.
 * `does` is what a box that does not lie there does: "reads past the end of". */
bool rule_check_box(op_call *call, const char *does, const ir_type *memory,
                    const ir_operand *offsets, const int64_t *extents);

/* Whether a valid_shape (NULL: not given) fits a result of `sizes`, which it narrows to it; entries that are
 * known at run time only become 0, which nothing contradicts; sizes of 0 are likewise. */
bool rule_check_valid(op_call *call, const ir_operand *valid, int32_t ndim, int64_t *sizes,
                      bool *ragged);

/* Whether the operand `peer`, if there is one, may be a rank. */
bool rule_check_peer(op_call *call);

#endif
