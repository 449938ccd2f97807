/* Tells libFuzzer to mutate texts as scripts: one to four mutations of mutate.h, and now and then its
 * own, which know nothing of scripts. */
#include "mutate.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
                                 size_t size2, uint8_t *out, size_t most, unsigned int seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
    random_bits r = {seed};
    if (draw(&r, 50) == 0)
        return LLVMFuzzerMutate(data, size, most);
    for (int64_t n = 1 + draw(&r, 4); n > 0; n--)
        size = mutate_script(&r, (char *)data, size, most);
    return size;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
                                 size_t size2, uint8_t *out, size_t most, unsigned int seed)
{
    random_bits r = {seed};
    return cross_scripts(&r, (const char *)data1, size1, (const char *)data2, size2, (char *)out,
                         most);
}
