/* Between plan_scratch.c and tile_lives.c. */
#ifndef PASSES_PLAN_SCRATCH_INTERNAL_H
#define PASSES_PLAN_SCRATCH_INTERNAL_H

#include "passes/passes.h"

/* One place in scratch memory: a tile, or several that were joined. */
typedef struct place {
    ir_var *var; /* the tile; of joined ones the first */
    int32_t id;
    int32_t joined; /* index of the place that this one became part of, or its own */
    int64_t first;  /* positions: alive from first to last, both included */
    int64_t last;
    int64_t first_line;
    int64_t last_line;
    int64_t bytes;  /* of the tile */
    int64_t size;   /* the same, rounded up */
    int64_t offset; /* -1: not placed */
} place;

typedef struct planner {
    ir_program *p;
    ir_function *f;
    place *places;
    int32_t count;
    int32_t *place_of; /* by variable id, -1: no tile */
    int64_t position;
} planner;

/* tile_lives.c: first and last of each place, and leaves `position` at the front of the body. */
void find_lives(planner *pl);

#endif
