/* What a worker knows of its parent: when it is gone, so must the worker be.
 *
 * PR_SET_PDEATHSIG would fire when the *thread* that started us ends, so the worker's control
 * thread polls the parent's pidfd instead; where pidfds are forbidden, the channel's hang-up
 * serves. */
#ifndef PROCESS_PARENT_H
#define PROCESS_PARENT_H

#include <stdbool.h>

/* A pidfd of the parent, or -1 (forbidden, or the parent is gone already: then *gone is true). */
int parent_open(bool *gone);

/* Blocks until `channel` is readable (returns true) or the parent or the channel is gone (false).
 * A channel that is readable and hung up counts as readable first. */
bool parent_wait_message(int parent_pidfd, int channel);

/* Worker-side signal state: SIGINT, SIGPIPE ignored; everything else default. Names the thread. */
void parent_prepare_signals(void);
#endif
