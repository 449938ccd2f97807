/* Overlap of strided views: see overlap.h.
 *
 * An element of `a` begins at a0 + sum(i_d * s_d), one of `b` at b0 + sum(j_e * t_e). Two of them
 * share a byte when the difference of their places lies between -(width of a) and +(width of b), both
 * excluded. So the question is whether the bounded sum  sum(i_d * s_d) - sum(j_e * t_e)  can fall into
 * an interval: a knapsack with one term per dimension, where dimensions of equal stride are one term.
 * Taken from the largest stride down, what the smaller ones can still add leaves one or two values to
 * try for each term. */
#include "runtime/overlap.h"

#include "runtime/views.h"

#include <stddef.h>

#define TERMS (2 * PYPTO_MAX_DIMS)
#define STEPS 256

typedef struct term {
    int64_t stride; /* bytes, above 0 */
    int64_t low;    /* the factor's range */
    int64_t high;
} term;

typedef struct search {
    term terms[TERMS];
    int32_t count;
    int64_t least[TERMS + 1]; /* what terms from here on add up to at least, at most */
    int64_t most[TERMS + 1];
    int32_t steps;
} search;

byte_range view_range(const pld_tensor *view)
{
    int64_t first = 0, last = 0;
    const pld_tensor bytes = view_in_bytes(view);
    view = &bytes;
    const int64_t width = pypto_dtype_bytes((pypto_dtype)view->dtype);
    for (int32_t d = 0; d < view->ndim; ++d) {
        if (view->shape[d] == 0)
            return (byte_range){view->data, view->data};
        const int64_t reach = view->stride[d] * (view->shape[d] - 1);
        if (reach < 0)
            first += reach;
        else
            last += reach;
    }
    return (byte_range){view->data + first * width, view->data + (last + 1) * width};
}

/* Adds factor * stride, factor in [low, high], to the sum; terms stay sorted by stride. */
static void add_term(search *s, int64_t stride, int64_t low, int64_t high)
{
    if (stride < 0) {
        const int64_t swap = low;
        stride = -stride;
        low = -high;
        high = -swap;
    }
    if (stride == 0 || (low == 0 && high == 0))
        return;
    int32_t i = s->count;
    for (int32_t k = 0; k < s->count; ++k) {
        if (s->terms[k].stride == stride) {
            s->terms[k].low += low;
            s->terms[k].high += high;
            return;
        }
    }
    for (; i > 0 && s->terms[i - 1].stride < stride; --i)
        s->terms[i] = s->terms[i - 1];
    s->terms[i] = (term){stride, low, high};
    ++s->count;
}

static void add_view(search *s, const pld_tensor *view, int sign)
{
    const pld_tensor bytes = view_in_bytes(view);
    view = &bytes;
    const int64_t width = pypto_dtype_bytes((pypto_dtype)view->dtype);
    for (int32_t d = 0; d < view->ndim; ++d) {
        const int64_t last = view->shape[d] - 1;
        add_term(s, view->stride[d] * width, sign > 0 ? 0 : -last, sign > 0 ? last : 0);
    }
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && a < 0);
}

/* Whether the terms from `i` on can add up to something in [low, high]. */
static bool reaches(search *s, int32_t i, int64_t low, int64_t high)
{
    if (low > s->most[i] || high < s->least[i])
        return false;
    if (i == s->count)
        return true; /* the interval holds 0 */
    const term *t = &s->terms[i];
    int64_t first = -floor_div(s->most[i + 1] - low, t->stride);
    int64_t last = floor_div(high - s->least[i + 1], t->stride);
    first = first < t->low ? t->low : first;
    last = last > t->high ? t->high : last;
    for (int64_t factor = first; factor <= last; ++factor) {
        if (++s->steps > STEPS)
            return true;
        if (reaches(s, i + 1, low - factor * t->stride, high - factor * t->stride))
            return true;
    }
    return false;
}

bool views_overlap(const pld_tensor *a, byte_range a_range, const pld_tensor *b, byte_range b_range)
{
    if (a_range.low == a_range.high || b_range.low == b_range.high || a_range.high <= b_range.low ||
        b_range.high <= a_range.low)
        return false;
    search s = {.count = 0};
    add_view(&s, a, 1);
    add_view(&s, b, -1);
    for (int32_t i = s.count - 1; i >= 0; --i) {
        s.least[i] = s.least[i + 1] + s.terms[i].stride * s.terms[i].low;
        s.most[i] = s.most[i + 1] + s.terms[i].stride * s.terms[i].high;
    }
    const int64_t distance = (int64_t)((intptr_t)b->data - (intptr_t)a->data);
    return reaches(&s, 0, distance - pypto_dtype_bytes((pypto_dtype)a->dtype) + 1,
                   distance + pypto_dtype_bytes((pypto_dtype)b->dtype) - 1);
}
