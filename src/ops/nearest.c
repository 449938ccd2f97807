/* "Did you mean": the candidate that differs from a word by the fewest typing errors.
 *
 * Distance counts insertions, deletions, replacements and swapped neighbours (optimal string
 * alignment). A candidate is near when no more than a third of the longer word is wrong, and at most
 * three letters. Used for operations, names of a scope and members of enumerations. */
#include "ops/ops.h"

#include <string.h>

#define LONGEST 64

static int32_t min3(int32_t a, int32_t b, int32_t c)
{
    int32_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Rows of the usual table: `before`, `above` and `row` are the last three. */
static int32_t distance(const char *a, const char *b)
{
    int32_t na = (int32_t)strlen(a);
    int32_t nb = (int32_t)strlen(b);
    int32_t rows[3][LONGEST + 1];
    for (int32_t j = 0; j <= nb; j++)
        rows[0][j] = j;
    for (int32_t i = 1; i <= na; i++) {
        const int32_t *before = rows[(i + 1) % 3];
        const int32_t *above = rows[(i - 1) % 3];
        int32_t *row = rows[i % 3];
        row[0] = i;
        for (int32_t j = 1; j <= nb; j++) {
            int32_t replace = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = min3(above[j] + 1, row[j - 1] + 1, replace);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
    }
    return rows[na % 3][nb];
}

const char *nearest_word(const char *word, const char *const *candidates, int64_t count)
{
    size_t length = strlen(word);
    if (length > LONGEST)
        return NULL;
    const char *best = NULL;
    int32_t best_distance = 4;
    for (int64_t i = 0; i < count; i++) {
        if (candidates[i] == NULL)
            continue;
        size_t other = strlen(candidates[i]);
        if (other > LONGEST)
            continue;
        int32_t d = distance(word, candidates[i]);
        int32_t longer = (int32_t)(length > other ? length : other);
        if (d < best_distance && d * 3 <= longer) {
            best = candidates[i];
            best_distance = d;
        }
    }
    return best;
}
