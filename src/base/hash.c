/* The hash of cache keys: what names a compiled program on disk.
 *
 * SipHash-2-4 with 128 bits of result, after Aumasson and Bernstein. A hasher is a chain: each
 * piece is hashed under the state so far as the key, first its length, then its bytes. Bytes are
 * taken in little-endian order whatever the machine, so that keys agree between machines that share
 * a cache directory. Not for secrets: the starting key is printed below. */
#include "base/hash.h"

#include "base/format.h"

#include <string.h>

/* Any constant does; changing it renames every file of every cache. */
#define HASHER_START ((hash_key){0x707970746f2d6b65u, 0x7973207631000000u})

static uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

/* Up to eight bytes as a little-endian number. */
static uint64_t read_word(const unsigned char *bytes, int64_t count)
{
    uint64_t word = 0;
    for (int64_t i = 0; i < count; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

static void absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

static uint64_t squeeze(uint64_t v[4])
{
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

hash_key hash_bytes(hash_key key, const void *bytes, int64_t count)
{
    /* "somepseudorandomlygeneratedbytes", and 0xee where the 128-bit variant differs. */
    uint64_t v[4] = {
        0x736f6d6570736575u ^ key.low,
        0x646f72616e646f6du ^ key.high ^ 0xee,
        0x6c7967656e657261u ^ key.low,
        0x7465646279746573u ^ key.high,
    };
    const unsigned char *at = bytes;
    int64_t left = count;
    for (; left >= 8; left -= 8, at += 8)
        absorb(v, read_word(at, 8));
    absorb(v, read_word(at, left) | (uint64_t)count << 56);

    hash_key result;
    v[2] ^= 0xee;
    result.low = squeeze(v);
    v[1] ^= 0xdd;
    result.high = squeeze(v);
    return result;
}

void hasher_init(hasher *h)
{
    h->state = HASHER_START;
}

void hasher_bytes(hasher *h, const void *bytes, int64_t count)
{
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)count >> (8 * i));
    h->state = hash_bytes(h->state, length, sizeof length);
    h->state = hash_bytes(h->state, bytes, count);
}

void hasher_string(hasher *h, const char *string)
{
    hasher_bytes(h, string, (int64_t)strlen(string));
}

void hasher_int(hasher *h, int64_t value)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)value >> (8 * i));
    hasher_bytes(h, bytes, sizeof bytes);
}

hash_key hasher_finish(const hasher *h)
{
    return h->state;
}

hash_key hash_of(const void *bytes, int64_t count)
{
    hasher h;
    hasher_init(&h);
    hasher_bytes(&h, bytes, count);
    return hasher_finish(&h);
}

void hash_hex(hash_key key, char text[33])
{
    format_text(text, 33, "%016llx%016llx", (unsigned long long)key.high,
                (unsigned long long)key.low);
}
