/* Sets of small numbers, as bits in words of 64; whoever makes one knows how many words it has. One that is a
 * single word has no place for 64 and more. */
#ifndef BASE_BITS_H
#define BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>

static inline bool bits_have(const uint64_t *bits, int64_t number)
{
    return (bits[number / 64] >> (number % 64) & 1) != 0;
}

static inline void bits_add(uint64_t *bits, int64_t number)
{
    bits[number / 64] |= UINT64_C(1) << (number % 64);
}

static inline void bits_remove(uint64_t *bits, int64_t number)
{
    bits[number / 64] &= ~(UINT64_C(1) << (number % 64));
}

/* The number's bit in a set of a single word; 0 for a number that has no place in it. */
static inline uint64_t word_bit(int64_t number)
{
    return number < 64 ? UINT64_C(1) << number : 0;
}

#endif
