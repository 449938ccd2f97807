/* Whether two accesses touch the same memory: what automatic order is derived from, on the host
 * (dispatches) and in a rank (tasks). */
#ifndef RUNTIME_OVERLAP_H
#define RUNTIME_OVERLAP_H

#include <pypto/pld.h>

/* The bytes that a view touches lie in [low, high); equal when it is empty. */
typedef struct byte_range {
    const char *low;
    const char *high;
} byte_range;
byte_range view_range(const pld_tensor *view);

/* Whether two strided views in one address space share a byte. Exact for views whose strides nest
 * (rows, columns and blocks of one tensor); in a contrived case that would take long to decide it
 * answers true, which only costs overlap in time. Who compares a view with many computes its range once. */
bool views_overlap(const pld_tensor *a, byte_range a_range, const pld_tensor *b,
                   byte_range b_range);

#endif
