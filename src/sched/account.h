/* What a rank notes about the signal cells that it notifies and waits for (segment.h, signal_entry): evidence for
 * deadlock reports (host/deadlock.c) and for the lint (host/lint.c). Nothing here changes what a program does. */
#ifndef SCHED_ACCOUNT_H
#define SCHED_ACCOUNT_H

#include "sched/sched.h"

/* Before a notify changes the cell, so that whoever sees the change finds it on record. The cell is that of
 * `device`, at `cell_offset` from the segment's first byte. NULL: no room for another cell. */
signal_entry *account_notify(pld_core *core, const pld_tensor *signal, int64_t cell_offset,
                             int32_t device, const int64_t *cell, int64_t value, pld_notify_op op);

/* Behind an addition of `value` to what was `old`. */
void account_added(pld_core *core, signal_entry *e, int32_t old, int64_t value);

/* Behind a satisfied wait; `at_once` when the condition held already. */
void account_wait(pld_core *core, const pld_tensor *signal, const wait_entry *wait,
                  const int64_t *cell, bool at_once);

#endif
