/* The platforms that a program can be compiled for. All run on the CPU; the names of devices bring
 * the device's limit on scratch memory with them (its unified buffer, less the 8 KiB at the top
 * that the device keeps), so that a program which would not fit there is refused here too. */
#include "passes/passes.h"

#include <string.h>

#define KIB INT64_C(1024)

/* X(name, bytes of scratch memory), in the order of messages. */
#define PLATFORMS(X)        \
    X("a2a3", 184 * KIB)    \
    X("a2a3sim", 184 * KIB) \
    X("a5", 240 * KIB)      \
    X("a5sim", 240 * KIB)   \
    X("cpu", 0)

static const platform platforms[] = {
#define PLATFORM_ROW(name, bytes) {name, bytes},
    PLATFORMS(PLATFORM_ROW)
#undef PLATFORM_ROW
};

const platform *platform_find(const char *name)
{
    for (size_t i = 0; i < sizeof platforms / sizeof platforms[0]; i++)
        if (strcmp(platforms[i].name, name) == 0)
            return &platforms[i];
    return NULL;
}

const char *platform_names(void)
{
    /* Each name brings a separator in front of it; skip the first. */
    static const char names[] =
#define PLATFORM_NAME(name, bytes) ", " name
        PLATFORMS(PLATFORM_NAME)
#undef PLATFORM_NAME
        ;
    return names + 2;
}
