/* Nodes and edges: see graph.h. */
#include "runtime/graph.h"

#include "base/alloc.h"

bool node_after(node *later, node *earlier)
{
    if (earlier->successor_count == earlier->successor_capacity) {
        const int32_t capacity = earlier->successor_capacity * 2 + 4;
        node **grown = alloc_resize(earlier->successors, capacity, (int64_t)sizeof(node *));
        if (grown == NULL)
            return false;
        earlier->successors = grown;
        earlier->successor_capacity = capacity;
    }
    earlier->successors[earlier->successor_count++] = later;
    ++later->waits;
    return true;
}

void node_over(node *n, void (*ready)(void *context, node *successor), void *context)
{
    const int32_t count = n->successor_count;
    n->successor_count = 0;
    for (int32_t i = 0; i < count; ++i)
        if (--n->successors[i]->waits == 0)
            ready(context, n->successors[i]);
}

void node_reset(node *n)
{
    n->waits = 0;
    n->successor_count = 0;
}

void node_free(node *n)
{
    alloc_free(n->successors);
    *n = (node){0};
}
