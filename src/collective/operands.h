/* What collectives ask of their data, and what they do with it between rounds. */
#ifndef COLLECTIVE_OPERANDS_H
#define COLLECTIVE_OPERANDS_H

#include "collective/channel.h"

/* Whether the same devices share the two windows. */
bool same_domain(const pld_tensor *a, const pld_tensor *b);
/* The target of a collective: a packed window of the signal's domain that shares no byte with it. Fails
 * otherwise; `role` is what the message calls it. */
void need_window(pld_core *core, const char *role, const pld_tensor *tensor,
                 const pld_tensor *signal);
/* The same, but the target may count in part only. */
void need_part_of_window(pld_core *core, const char *role, const pld_tensor *tensor,
                         const pld_tensor *signal);
/* [P, n] or, with `blocks`, [P * m, n]; returns the bytes of one of the P parts. */
int64_t need_parts(pld_core *core, const char *role, const pld_tensor *tensor, int32_t ranks);
/* Fails if two operands have a byte in common. */
void need_apart(pld_core *core, const pld_tensor *a, const pld_tensor *b);
/* Source and target of a movement: the same dtype and number of elements in each part, no byte in common. */
void need_pair(pld_core *core, const pld_tensor *input, const pld_tensor *target);

/* Bytes between two looks at the poison. */
#define COPY_PIECE (INT64_C(4) << 20)

/* memcpy of any size that notices when its call is given up. */
void copy_bytes(pld_core *core, char *target, const char *source, int64_t bytes);

/* What counts of a tensor, in row-major order: runs of elements that lie side by side. */
typedef struct region {
    int64_t count; /* of all elements */
    int64_t run;   /* elements of a run */
    int32_t ndim;  /* of the runs */
    int64_t shape[PYPTO_MAX_DIMS];
    int64_t stride[PYPTO_MAX_DIMS]; /* in elements */
} region;

region region_of(const pld_tensor *tensor);
/* Where a run begins, in elements from the first one. */
int64_t region_begin(const region *r, int64_t number);
/* Between where the elements are and a place without gaps; `width` is the bytes of one. */
void region_pack(const region *r, int64_t width, const char *data, char *packed);
void region_unpack(const region *r, int64_t width, const char *packed, char *data);

/* The fields of a call that describe its target. */
collective_call describe_target(collective_kind kind, const pld_comm *comm,
                                const pld_tensor *target, int64_t count);

#endif
