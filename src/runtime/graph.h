/* Order among things that run: a node counts the predecessors that are not over and knows its
 * successors. Used for the dispatches of a rank and for the tasks of a dispatch.
 *
 * Edges only lead from earlier nodes to later ones, so there are no cycles. Not thread-safe: a graph
 * belongs to its rank's thread. */
#ifndef RUNTIME_GRAPH_H
#define RUNTIME_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

typedef struct node {
    int32_t waits; /* predecessors that are not over */
    int32_t successor_count;
    int64_t successor_capacity;
    struct node **successors; /* may name one node several times, as `waits` then counts it */
} node;

/* `later` may begin only when `earlier`, which is not over, is. False: no memory. */
bool node_after(node *later, node *earlier);

/* `n` is over. `ready` is told of each successor that waits for nothing now. */
void node_over(node *n, void (*ready)(void *context, node *successor), void *context);

/* Forgets edges; the memory stays for the next use. */
void node_reset(node *n);
void node_free(node *n);

#endif
