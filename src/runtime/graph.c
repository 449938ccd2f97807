/* Nodes and edges: see graph.h. */
#include "runtime/graph.h"

#include "base/alloc.h"

bool node_after(node *later, node *earlier)
{
    if (!alloc_grow(earlier->successors, earlier->successor_capacity, earlier->successor_count + 1))
        return false;
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
