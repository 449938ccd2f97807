/* The words of the language that are no operations: the table words.def, searched. Whoever lists
 * names, or looks for the one that was meant, asks here as well as in the table of operations. */
#include "ops/ops.h"

#include <string.h>

static const language_word words[WORD_COUNT] = {
#define WORD(path, parameters, doc) {path, parameters, doc},
#include "ops/words.def"
#undef WORD
};

const language_word *language_words(void)
{
    return words;
}

bool is_language_word(const char *path)
{
    for (int32_t i = 0; i < WORD_COUNT; i++) {
        if (strcmp(words[i].path, path) == 0)
            return true;
    }
    return false;
}
