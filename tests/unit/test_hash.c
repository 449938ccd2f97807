/* SipHash-2-4-128 against the vectors published with it, and the chain of pieces. */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The result as a string of bytes, as the vectors print it. */
static void as_bytes(hash_key key, unsigned char bytes[16])
{
    for (int i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(key.low >> (8 * i));
        bytes[8 + i] = (unsigned char)(key.high >> (8 * i));
    }
}

/* Key 00 01 ... 0f, message 00 01 ... of the given length. */
static void published_vectors(void **state)
{
    (void)state;
    static const struct {
        int length;
        unsigned char result[16];
    } vectors[] = {
        {0, "\xa3\x81\x7f\x04\xba\x25\xa8\xe6\x6d\xf6\x72\x14\xc7\x55\x02\x93"},
        {1, "\xda\x87\xc1\xd8\x6b\x99\xaf\x44\x34\x76\x59\x11\x9b\x22\xfc\x45"},
        {7, "\xa1\xf1\xeb\xbe\xd8\xdb\xc1\x53\xc0\xb8\x4a\xa6\x1f\xf0\x82\x39"},
        {8, "\x3b\x62\xa9\xba\x62\x58\xf5\x61\x0f\x83\xe2\x64\xf3\x14\x97\xb4"},
        {15, "\x54\x93\xe9\x99\x33\xb0\xa8\x11\x7e\x08\xec\x0f\x97\xcf\xc3\xd9"},
        {16, "\x6e\xe2\xa4\xca\x67\xb0\x54\xbb\xfd\x33\x15\xbf\x85\x23\x05\x77"},
        {63, "\x51\x50\xd1\x77\x2f\x50\x83\x4a\x50\x3e\x06\x9a\x97\x3f\xbd\x7c"},
    };
    unsigned char message[64];
    for (int i = 0; i < 64; i++)
        message[i] = (unsigned char)i;
    const hash_key key = {.low = 0x0706050403020100u, .high = 0x0f0e0d0c0b0a0908u};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        unsigned char result[16];
        as_bytes(hash_bytes(key, message, vectors[i].length), result);
        assert_memory_equal(result, vectors[i].result, 16);
    }
}

static void assert_differ(const hasher *left, const hasher *right)
{
    char texts[2][33];
    hash_hex(hasher_finish(left), texts[0]);
    hash_hex(hasher_finish(right), texts[1]);
    assert_string_not_equal(texts[0], texts[1]);
}

static void pieces_are_kept_apart(void **state)
{
    (void)state;
    hasher h[4];
    for (int i = 0; i < 4; i++)
        hasher_init(&h[i]);
    hasher_string(&h[0], "ab");
    hasher_string(&h[0], "c");
    hasher_string(&h[1], "a");
    hasher_string(&h[1], "bc");
    hasher_string(&h[2], "abc");
    hasher_bytes(&h[3], "ab", 2);
    hasher_bytes(&h[3], "c", 1);
    assert_differ(&h[0], &h[1]);
    assert_differ(&h[0], &h[2]);
    assert_differ(&h[1], &h[2]);
    char left[33];
    char right[33];
    hash_hex(hasher_finish(&h[0]), left);
    hash_hex(hasher_finish(&h[3]), right);
    assert_string_equal(left, right);
}

static void empty_pieces_and_numbers_count(void **state)
{
    (void)state;
    hasher h[4];
    for (int i = 0; i < 4; i++)
        hasher_init(&h[i]);
    hasher_string(&h[1], "");
    hasher_int(&h[2], -1);
    hasher_int(&h[3], 1);
    for (int i = 0; i < 4; i++)
        for (int k = i + 1; k < 4; k++)
            assert_differ(&h[i], &h[k]);
}

/* Cache keys of one release must not change by accident: they are shared between machines. */
static void keys_are_stable(void **state)
{
    (void)state;
    hasher h;
    hasher_init(&h);
    hasher_string(&h, "reduce_step");
    hasher_int(&h, 256);
    char text[33];
    hash_hex(hasher_finish(&h), text);
    assert_string_equal(text, "e39c67c4de5b695b50b007299c7c46ed");
    hash_hex((hash_key){.high = 0x0123456789abcdefu, .low = 0xf}, text);
    assert_string_equal(text, "0123456789abcdef000000000000000f");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(pieces_are_kept_apart),
        cmocka_unit_test(empty_pieces_and_numbers_count),
        cmocka_unit_test(keys_are_stable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
