/* Making an order among threads, so that a test assumes none. Linked into all unit tests. */
#ifndef UNIT_ORDER_H
#define UNIT_ORDER_H

#include <stdatomic.h>
#include <sys/types.h>

/* Waits until a thread of this process has put its number (gettid) there and sleeps in poll(), as one does that waits
 * for a call; then it takes the number away. Where the system does not tell where threads are, it waits for a moment,
 * and in the end it gives up: a test must hold as well when the thread has not come that far. */
void order_until_it_polls(_Atomic pid_t *thread);
#endif
