/* The C compiler: which one, with which flags, and what decides whether its output still serves. */
#ifndef CODEGEN_TOOLCHAIN_H
#define CODEGEN_TOOLCHAIN_H

#include "base/arena.h"
#include "base/export.h"
#include "base/hash.h"
#include "base/os.h"

#include <pypto/status.h>

/* Everything on the arena. */
typedef struct toolchain {
    const char *const
        *command;         /* compiler and its flags, NULL-terminated: file names are added behind */
    const char *compiler; /* full path */
    const char *headers;  /* the folder that compiled programs find <pypto/pld.h> in */
    const char
        *library; /* libpypto.so of this process, to link with; NULL: it is linked statically */
    hash_key identity; /* differs whenever the object code of one C text may differ */
} toolchain;

/* Finds the compiler and the device headers. Cheap: nothing is run. */
PYPTO_NODISCARD pypto_status toolchain_find(arena *a, toolchain *t) EXPORTED(toolchain_find);

/* The headers alone, which does not ask for a compiler. */
PYPTO_NODISCARD pypto_status toolchain_headers(arena *a, toolchain *t) EXPORTED(toolchain_headers);

/* Compiles and links one C file to a shared object. On failure the error quotes the compiler and
 * names `kept`, where the C file will be found; `edited`: that one is not as it was emitted. It is
 * CANCELLED when `interrupts`, which may be NULL, ends the compiler. */
PYPTO_NODISCARD pypto_status toolchain_run(arena *a, const toolchain *t, const char *c_path,
                                           const char *object_path, const char *kept, bool edited,
                                           const os_interrupts *interrupts);

/* The features of this machine's processor, as far as they decide what -march=native means (cpu.c).
 */
void cpu_features(arena *a, hasher *h);

#endif
