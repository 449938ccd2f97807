/* Names to pointers: scopes, symbol tables, interned names of the compiler.
 *
 * Two arrays on the arena. `entries` holds keys and values in the order of insertion, which is the
 * order of iteration; `slots` is an open-addressing table of indices into it, at most three
 * quarters full, so that a probe always ends at an empty slot. Nothing is ever removed. The hash
 * needs no secret: keys are the user's own names. */
#include "base/map.h"

#include "base/vec.h"

#include <string.h>

#define SLOTS_FIRST 16

map map_make(arena *a)
{
    return (map){.a = a};
}

/* FNV-1a, 64 bits. */
static uint64_t hash_name(const char *key)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *p = key; *p != '\0'; p++)
        hash = (hash ^ (unsigned char)*p) * 0x100000001b3u;
    return hash;
}

/* The slot that holds the key, or the empty one where it belongs. The table must not be empty. */
static int64_t find_slot(const map *m, const char *key, uint64_t hash)
{
    uint64_t mask = (uint64_t)m->slot_count - 1;
    uint64_t slot = (hash ^ hash >> 32) & mask;
    for (; m->slots[slot] != 0; slot = (slot + 1) & mask) {
        const map_entry *entry = &m->entries[m->slots[slot] - 1];
        if (entry->hash == hash && strcmp(entry->key, key) == 0)
            break;
    }
    return (int64_t)slot;
}

void *map_get(const map *m, const char *key)
{
    if (m->count == 0)
        return NULL;
    int32_t index = m->slots[find_slot(m, key, hash_name(key))];
    return index != 0 ? m->entries[index - 1].value : NULL;
}

static void grow_slots(map *m)
{
    m->slot_count = m->slot_count > 0 ? m->slot_count * 2 : SLOTS_FIRST;
    m->slots = arena_array(m->a, int32_t, m->slot_count);
    for (int64_t i = 0; i < m->count; i++)
        m->slots[find_slot(m, m->entries[i].key, m->entries[i].hash)] = (int32_t)(i + 1);
}

void map_set(map *m, const char *key, void *value)
{
    if ((m->count + 1) * 4 > m->slot_count * 3)
        grow_slots(m);
    uint64_t hash = hash_name(key);
    int32_t *slot = &m->slots[find_slot(m, key, hash)];
    if (*slot != 0) {
        m->entries[*slot - 1].value = value;
        return;
    }
    if (m->count == m->capacity)
        m->entries = vec_grow(m->a, m->entries, m->count, &m->capacity, sizeof(map_entry));
    m->entries[m->count++] = (map_entry){arena_strdup(m->a, key), value, hash};
    *slot = (int32_t)m->count;
}
