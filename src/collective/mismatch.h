/* Disagreements of ranks about what they call on a channel: who differs where, in words. For the ranks, which find one in
 * a round, and for the host, which looks at parts of a channel when ranks wait for each other or have ended. */
#ifndef COLLECTIVE_MISMATCH_H
#define COLLECTIVE_MISMATCH_H

#include "collective/channel.h"

#define ENTRY_TEXT 256

/* "allreduce(256 x fp32, op=Sum, mode=mesh, buffer 0) in step at script.py:12" */
void describe_entry(const pld_program *table, const channel_entry *entry, char *text, size_t bytes);

/* Whether two ranks have done different rooted rounds, as far as no round has found yet. */
bool channel_histories_differ(const channel_record *a, const channel_record *b);
/* The first collectives since their latest common whole round that differ; NULL for a rank that has not come so far. */
bool channels_differ(const channel_record *a, const channel_record *b,
                     const channel_entry *calls[2]);
/* How many rounds a rank has entered. */
uint64_t channel_position(const channel_record *record);

/* A round has found that a peer has done something else. */
void mismatch_fail(const collective *c, int32_t peer) PYPTO_NORETURN;

#endif
