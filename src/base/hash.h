/* A 128-bit content hash for cache keys (not for secrets). Deterministic across machines.
 * SipHash-2-4 with a fixed key, 128-bit variant: Aumasson and Bernstein, "SipHash: a fast
 * short-input PRF", 2012. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/export.h"

#include <stdint.h>

typedef struct hash_key {
    uint64_t high;
    uint64_t low;
} hash_key;

/* SipHash-2-4-128 itself; the first eight bytes of key and result are `low`. */
hash_key hash_bytes(hash_key key, const void *bytes, int64_t count);

/* Accumulates pieces: the hash of a sequence of (length, bytes), so that "ab","c" != "a","bc". */
typedef struct hasher {
    hash_key state;
} hasher;

void hasher_init(hasher *h) EXPORTED(hasher_init);
void hasher_bytes(hasher *h, const void *bytes, int64_t count) EXPORTED(hasher_bytes);
void hasher_string(hasher *h, const char *string);
void hasher_int(hasher *h, int64_t value);
hash_key hasher_finish(const hasher *h) EXPORTED(hasher_finish);

/* The hash of one piece alone. */
hash_key hash_of(const void *bytes, int64_t count) EXPORTED(hash_of);

/* 32 lower-case hexadecimal digits and a NUL. */
void hash_hex(hash_key key, char text[33]) EXPORTED(hash_hex);

#endif
