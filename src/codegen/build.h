/* From C text to a shared object in a folder: in the cache, or in a private folder where the cache takes nothing. */
#ifndef CODEGEN_BUILD_H
#define CODEGEN_BUILD_H

#include "base/text.h"
#include "codegen/cache.h"
#include "codegen/toolchain.h"

/* Files that a program consists of, beside its object: the build writes what it is given. */
typedef struct program_text {
    text c;           /* program.c */
    text ir;          /* program.ir */
    text description; /* program.json */
} program_text;

typedef struct build_job {
    arena *a;
    const cache *cache;
    const toolchain *tools;
    const program_text *text; /* texts of length 0 are not written */
    const text
        *object; /* the object where it is there already, and is only put in its place; or NULL */
    const char *
        edited; /* the user's own file that the C text was read from, when it is not as it was emitted */
    /* Called with true before and false after a long wait (the C compiler), on the calling thread. */
    void (*waiting)(void *context, bool begins);
    void *waiting_context;
    const os_interrupts *interrupts; /* what ends that wait; looked at when it has begun; or NULL */
    bool is_waiting;
    char *folder; /* heap; goes away with build_drop(), unless it has been published; or NULL */
    const char *trouble; /* why the cache took nothing */
    pypto_status status;
} build_job;

/* The key of the object of a C text on a machine. */
hash_key build_key(hash_key c_text, hash_key machine);

/* Returns the folder of the object, or NULL with an error in `status`. *hit: the cache had it; else it is made.
 * *temporary: the folder is nobody's but ours; it is job->folder, and `status` is
 * a success with a diagnostic that tells why. */
const char *build_object(build_job *job, hash_key back, bool *hit, bool *temporary);

/* The folder of a build that ended well is somebody's now. */
void build_keep(build_job *job);
/* What must not be left behind when a build ends early; does nothing after one that ended well. */
void build_drop(build_job *job);
void build_set_waiting(build_job *job, bool begins);

#endif
