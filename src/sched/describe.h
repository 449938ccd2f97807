/* Words for reports: lists of numbers and the names behind tensors. */
#ifndef SCHED_DESCRIBE_H
#define SCHED_DESCRIBE_H

#include <stdint.h>

/* "[1, 0]" into `text` (cut when it does not fit); returns `text`. */
const char *describe_list(char *text, int64_t bytes, const int64_t *values, int32_t count);

/* Room that a list of PYPTO_MAX_DIMS numbers needs, and a tensor's name usually. */
#define LIST_TEXT 192
#define NAME_TEXT 192

#endif
