/* What -march=native means on this machine, as input of a hash.
 *
 * Home folders are shared between machines: an object that was compiled on a newer processor must not
 * be found on an older one. On x86-64 the CPUID leaves that compilers look at are hashed, without the fields
 * that differ from core to core or from boot to boot; elsewhere the lines of /proc/cpuinfo that name features and
 * models. More entries than necessary cost a recompile, fewer would cost an illegal instruction. */
#include "codegen/toolchain.h"

#include "base/os.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

void cpu_features(arena *a, hasher *h)
{
    static const struct {
        unsigned leaf;
        unsigned subleaf;
        unsigned ebx_mask; /* leaf 1: the upper half holds the number of the core */
    } leaves[] = {
        {0x0, 0, ~0u}, {0x1, 0, 0}, {0x7, 0, ~0u}, {0x7, 1, ~0u}, {0xd, 1, 0}, {0x80000001, 0, ~0u},
    };
    (void)a;
    hasher_string(h, "x86-64");
    for (size_t i = 0; i < sizeof leaves / sizeof leaves[0]; i++) {
        unsigned eax = 0;
        unsigned ebx = 0;
        unsigned ecx = 0;
        unsigned edx = 0;
        __get_cpuid_count(leaves[i].leaf, leaves[i].subleaf, &eax, &ebx, &ecx, &edx);
        hasher_int(h, (int64_t)eax << 32 | (ebx & leaves[i].ebx_mask));
        hasher_int(h, (int64_t)ecx << 32 | edx);
    }
    /* Which registers the operating system saves: AVX is of no use where it does not. */
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    bool saves = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_OSXSAVE) != 0;
    unsigned low = 0;
    unsigned high = 0;
    if (saves)
        __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    hasher_int(h, (int64_t)high << 32 | low);
}

#else

static bool names_features(const char *line)
{
    static const char *const keys[] = {"Features", "CPU implementer", "CPU part", "CPU variant",
                                       "isa", "cpu\t", "flags"};
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
