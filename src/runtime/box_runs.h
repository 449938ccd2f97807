/* What box.c does with one dimension of a box: `count` elements, whose distances on both sides are given in bytes. */
#ifndef RUNTIME_BOX_RUNS_H
#define RUNTIME_BOX_RUNS_H

#include <pypto/types.h>

#include <stdint.h>

/* Elements of 1, 2, 4 or 8 bytes. */
void box_run_copy(char *target, int64_t target_step, const char *source, int64_t source_step,
                  int64_t count, int64_t width);
/* Words, each of them whole to whoever looks meanwhile; packed runs about as fast as memcpy. */
void box_run_copy_words(char *target, int64_t target_step, const char *source, int64_t source_step,
                        int64_t count);
/* Adds each element atomically, in no order. */
void box_run_add(char *target, int64_t target_step, const char *source, int64_t source_step,
                 int64_t count, pypto_dtype dtype);

#endif
