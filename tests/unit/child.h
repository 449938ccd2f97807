/* Helpers for tests that change their own process: closed descriptors, signals, limits. Linked into
 * all unit tests. */
#ifndef UNIT_CHILD_H
#define UNIT_CHILD_H

#include <stdint.h>

/* How long a test waits for what has to come. It only matters when something is broken, and so it is more than
 * the busiest machine needs. */
#define PATIENCE_S 600
#define PATIENCE_MS (1000 * PATIENCE_S)

/* Runs `body` in a forked child: 0 when it returns, 1 when a CHILD_CHECK failed, 128 + signal when
 * it was killed, as it is after PATIENCE_S. cmocka's assertions do not work in there. */
int child_run(void (*body)(void));

/* In the child: when it does not hold, prints it with the values and ends the child. */
#define CHILD_CHECK(condition) child_check((condition), #condition, __FILE__, __LINE__)
#define CHILD_EQUAL(value, expected) \
    child_equal((int64_t)(value), (int64_t)(expected), #value, __FILE__, __LINE__)
void child_check(int holds, const char *condition, const char *file, int line);
void child_equal(int64_t value, int64_t expected, const char *what, const char *file, int line);

/* In the child: closes all descriptors but the standard ones and the one for its own reports. */
void child_close_others(void);

/* Open descriptors of this process. */
int child_count_fds(void);
#endif
