/* What -march=native means on this machine, as input of a hash.
 *
 * Home folders are shared between machines: an object that was compiled on a newer processor must
 * not be found on an older one. On x86-64 the CPUID leaves that compilers look at are hashed,
 * without the fields that differ from core to core or from boot to boot; elsewhere the lines of
 * /proc/cpuinfo that name features and models. More entries than necessary cost a recompile, fewer
 * would cost an illegal instruction. */
#include "codegen/toolchain.h"

#include "base/os.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* Each use of CPUID costs microseconds in a virtual machine: as few as possible. */
static void hash_leaf(hasher *h, unsigned leaf, unsigned subleaf, unsigned ebx_mask)
{
    unsigned eax;
    unsigned ebx;
    unsigned ecx;
    unsigned edx;
    __cpuid_count(leaf, subleaf, eax, ebx, ecx, edx);
    hasher_int(h, (int64_t)((uint64_t)eax << 32 | (ebx & ebx_mask)));
    hasher_int(h, (int64_t)((uint64_t)ecx << 32 | edx));
    if (leaf != 1 || (ecx & bit_OSXSAVE) == 0)
        return;
    /* Which registers the operating system saves: AVX is of no use where it does not. */
    unsigned low;
    unsigned high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    hasher_int(h, (int64_t)((uint64_t)high << 32 | low));
}

void cpu_features(arena *a, hasher *h)
{
    (void)a;
    unsigned most;
    unsigned subleaves = 0;
    unsigned ebx;
    unsigned ecx;
    unsigned edx;
    __cpuid(0, most, ebx, ecx, edx);
    hasher_string(h, "x86-64");
    hasher_int(h, (int64_t)((uint64_t)ebx << 32 | ecx)); /* the maker */
    hash_leaf(h, 1, 0, 0);                               /* ebx holds the number of the core */
    if (most >= 7) {
        __cpuid_count(7, 0, subleaves, ebx, ecx, edx);
        hasher_int(h, (int64_t)((uint64_t)ebx << 32 | ecx));
        hasher_int(h, edx);
        if (subleaves >= 1)
            hash_leaf(h, 7, 1, ~0u);
    }
    hash_leaf(h, 0x80000001, 0, ~0u);
}

#else

static bool names_features(const char *line)
{
    static const char *const keys[] = {"Features", "CPU implementer", "CPU part", "CPU variant",
                                       "isa",      "cpu\t",           "flags"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strncmp(line, keys[i], strlen(keys[i])) == 0)
            return true;
    return false;
}

void cpu_features(arena *a, hasher *h)
{
    char *text = os_read_file(a, "/proc/cpuinfo", NULL);
    hasher_string(h, "cpuinfo");
    for (char *line = text; line != NULL && *line != '\0';) {
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        if (names_features(line))
            hasher_string(h, line);
        line = end != NULL ? end + 1 : NULL;
    }
}

#endif
