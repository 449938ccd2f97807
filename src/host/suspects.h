/* Who could still satisfy the waits of stuck ranks. See suspects.c. */
#ifndef HOST_SUSPECTS_H
#define HOST_SUSPECTS_H

#include "host/report.h"
#include "sched/sched.h"

/* The state of a stuck call. Sets of ranks are masks. */
typedef struct look {
    pypto_worker *w;
    uint64_t call;
    uint64_t blocked;                   /* ranks that wait */
    wait_entry wait[PYPTO_MAX_RANKS];   /* of a blocked rank: the first it published */
    uint64_t suspects[PYPTO_MAX_RANKS]; /* of a blocked rank: who could satisfy it */
    uint64_t
        behind[PYPTO_MAX_RANKS]; /* of a blocked rank: whom it waits for, also through others */
    bool incomplete;             /* some notifies are not on record */
} look;

static inline uint64_t bit(int32_t rank)
{
    return (uint64_t)1 << rank;
}

void look_at(look *l, pypto_worker *w, uint64_t call);

bool waits_for_signal(const wait_entry *wait);
/* What the rank has to do with a cell, or NULL. */
const signal_entry *account(const look *l, int32_t rank, int64_t cell_offset);
/* Who has notified a cell. */
uint64_t senders_of(const look *l, int64_t cell_offset);
/* The ranks that wait for each other, this one among them; 0: it is on no circle. */
uint64_t circle_of(const look *l, int32_t rank);

#endif
