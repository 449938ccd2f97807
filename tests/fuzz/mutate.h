/* Mutations of a script's text that leave it a script: what is exchanged, doubled, dropped or wrapped
 * is a word, an argument, a statement or a block with everything that is indented under it. New words
 * and statements come from the tables of the language, so that what the tables gain is fuzzed too. */
#ifndef TESTS_FUZZ_MUTATE_H
#define TESTS_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

typedef struct random_bits {
    uint64_t state;
} random_bits;

/* 0 <= result < below; 0 for below < 1. */
int64_t draw(random_bits *r, int64_t below);

/* One mutation of `text` (not NUL-terminated), in place, at most `most` bytes. Returns the new size. */
size_t mutate_script(random_bits *r, char *text, size_t size, size_t most);

/* A block of `other` in the place of one of `text`, or behind it; written to `out`. */
size_t cross_scripts(random_bits *r, const char *text, size_t size, const char *other,
                     size_t other_size, char *out, size_t most);

#endif
