/* Sets of small numbers, as bits in words of 64; whoever makes one knows how many words it has. */
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

#endif
