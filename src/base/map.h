/* A map from strings to pointers, on an arena. Keys are copied. Iteration is in insertion order, so
 * whatever is printed from it is deterministic. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/arena.h"

typedef struct map_entry {
    const char *key;
    void *value;
    uint64_t hash;
} map_entry;

typedef struct map {
    arena *a;
    map_entry *entries; /* insertion order, `count` of them */
    int64_t count;
    int64_t capacity;
    int32_t *slots; /* open addressing: index into entries + 1, 0 is empty */
    int64_t slot_count;
} map;

map map_make(arena *a);
void *map_get(const map *m, const char *key); /* NULL when absent */
void map_set(map *m, const char *key, void *value);
#endif
