/* Overlap of strided views: against marking every byte, for random views of one buffer, and for the
 * shapes that programs are made of. */
#include "runtime/overlap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES = 4096 };

static uint32_t seed = 12345;
static int64_t pick(int64_t bound)
{
    seed = seed * 1664525u + 1013904223u;
    return (int64_t)(seed >> 8) % bound;
}

static void mark(const pld_tensor *t, const char *base, unsigned char *bytes)
{
    const int64_t width = pypto_dtype_bytes((pypto_dtype)t->dtype);
    int64_t index[PYPTO_MAX_DIMS] = {0};
    for (int32_t d = 0; d < t->ndim; ++d)
        if (t->shape[d] == 0)
            return;
    for (;;) {
        int64_t at = t->data - base;
        for (int32_t d = 0; d < t->ndim; ++d)
            at += index[d] * t->stride[d] * width;
        memset(bytes + at, 1, (size_t)width);
        int32_t d = t->ndim - 1;
        for (; d >= 0 && ++index[d] == t->shape[d]; --d)
            index[d] = 0;
        if (d < 0)
            return;
    }
}

static bool share_a_byte(const pld_tensor *a, const pld_tensor *b, const char *base)
{
    static unsigned char in_a[BYTES], in_b[BYTES];
    memset(in_a, 0, sizeof in_a);
    memset(in_b, 0, sizeof in_b);
    mark(a, base, in_a);
    mark(b, base, in_b);
    for (int i = 0; i < BYTES; ++i)
        if (in_a[i] && in_b[i])
            return true;
    return false;
}

/* A block of a packed tensor of 2 to 4 dimensions; now and then a dimension runs backwards. */
static pld_tensor random_view(char *base, pypto_dtype dtype, int32_t ndim, const int64_t *shape)
{
    pld_tensor t = {.dtype = (int32_t)dtype, .ndim = ndim, .data = base};
    int64_t elems = 1, at = 0;
    for (int32_t d = ndim - 1; d >= 0; --d) {
        t.stride[d] = elems;
        elems *= shape[d];
        t.shape[d] = pick(shape[d] + 1);
        const int64_t offset = pick(shape[d] - t.shape[d] + 1);
        if (t.shape[d] > 0 && pick(5) == 0) {
            at += (offset + t.shape[d] - 1) * t.stride[d];
            t.stride[d] = -t.stride[d];
        } else {
            at += offset * t.stride[d];
        }
    }
    t.data += at * pypto_dtype_bytes(dtype);
    return t;
}

static bool overlap(const pld_tensor *a, const pld_tensor *b)
{
    return views_overlap(a, view_range(a), b, view_range(b));
}

static void test_blocks_of_one_tensor_exactly(void **state)
{
    (void)state;
    static char base[BYTES];
    int overlapping = 0;
    for (int round = 0; round < 20000; ++round) {
        const int32_t ndim = 1 + (int32_t)pick(4);
        int64_t shape[4];
        for (int32_t d = 0; d < ndim; ++d)
            shape[d] = 1 + pick(5);
        const pld_tensor a = random_view(base, PYPTO_FP32, ndim, shape);
        const pld_tensor b = random_view(base, PYPTO_FP32, ndim, shape);
        const bool truth = share_a_byte(&a, &b, base);
        assert_int_equal(overlap(&a, &b), truth);
        assert_int_equal(overlap(&b, &a), truth);
        overlapping += truth;
    }
    assert_in_range(overlapping, 1000, 19000);
}

static void test_views_of_different_shapes_and_widths_are_never_missed(void **state)
{
    (void)state;
    static char base[BYTES];
    int needless = 0;
    for (int round = 0; round < 20000; ++round) {
        int64_t shape[2][4];
        pld_tensor view[2];
        for (int k = 0; k < 2; ++k) {
            const int32_t ndim = 1 + (int32_t)pick(4);
            for (int32_t d = 0; d < ndim; ++d)
                shape[k][d] = 1 + pick(5);
            view[k] =
                random_view(base + pick(64), pick(2) ? PYPTO_INT8 : PYPTO_INT64, ndim, shape[k]);
        }
        const bool truth = share_a_byte(&view[0], &view[1], base);
        const bool answer = overlap(&view[0], &view[1]);
        assert_false(truth && !answer);
        needless += answer && !truth;
    }
    assert_int_equal(needless, 0);
}

static void test_a_search_that_would_be_long_says_yes(void **state)
{
    (void)state;
    static char base[BYTES];
    pld_tensor a = {.dtype = PYPTO_INT8, .ndim = 8, .data = base};
    pld_tensor b = {.dtype = PYPTO_INT8, .ndim = 8, .data = base + 1};
    for (int32_t d = 0; d < 8; ++d) { /* strides that do not nest, all even: they never meet */
        a.shape[d] = b.shape[d] = 4;
        a.stride[d] = 100 + 2 * d;
        b.stride[d] = 130 + 2 * d;
    }
    assert_true(overlap(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_of_one_tensor_exactly),
        cmocka_unit_test(test_views_of_different_shapes_and_widths_are_never_missed),
        cmocka_unit_test(test_a_search_that_would_be_long_says_yes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
