/* Growing arrays on an arena:  VEC(int) v = {0};  vec_push(a, &v, 3);  v.items[0], v.count. */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include "base/arena.h"
#include "base/export.h"

#define VEC(type)         \
    struct {              \
        type *items;      \
        int64_t count;    \
        int64_t capacity; \
    }

/* Appends; the array moves when it grows, so do not keep pointers into it across a push. */
#define vec_push(a, v, item)                                                         \
    ((v)->count == (v)->capacity                                                     \
         ? (void)((v)->items = vec_grow((a), (v)->items, (v)->count, &(v)->capacity, \
                                        (int64_t)sizeof *(v)->items))                \
         : (void)0,                                                                  \
     (void)((v)->items[(v)->count++] = (item)))

void *vec_grow(arena *a, void *items, int64_t count, int64_t *capacity, int64_t bytes)
    EXPORTED(vec_grow);

#endif
