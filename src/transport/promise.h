/* Memory that the machine has for the host and the ranks of a set. It is given out when it is touched: who does not ask has
 * a process killed for what is too much. And whoever asks alone is told of memory that another one has been told
 * of, and has not touched yet. So what was promised stands in the set's header until it is kept, and the machine (or
 * its control group) has to have enough for all of it. (Other sets, and other programs, are seen only by what they
 * have touched.)
 *
 * Whoever needs much asks for it, touches it, and says so. Few bytes are had without asking; they are counted
 * together, and when they have become many, the machine is asked whether it has as much once more.
 *
 * Where `set` is NULL there is nobody to share with. */
#ifndef TRANSPORT_PROMISE_H
#define TRANSPORT_PROMISE_H

#include "transport/segment.h"

#include <pypto/status.h>

/* Amounts below this are not worth the reading of files: to touch as much takes a millisecond. */
#define PROMISE_FROM ((int64_t)4 << 20)

/* Asks for memory. True: it is there; if it is PROMISE_FROM or more, promise_keep() is to be called for as many bytes. */
bool promise_try(set_header *set, int64_t bytes);
/* The same with an error, in which it is called `what`. */
PYPTO_NODISCARD pypto_status promise_make(set_header *set, int64_t bytes, const char *what);
/* So much of what was promised has been touched, or is not needed. Of what was not promised, because it was little, it
 * says nothing. */
void promise_keep(set_header *set, int64_t promised, int64_t bytes);

/* Touches memory that was promised and says so, piece by piece. What is there stays as it is. Ends early when a call
 * is to end (0: none), because gigabytes take longer than it has. */
void promise_touch(set_header *set, uint64_t call, char *start, int64_t bytes);

#endif
