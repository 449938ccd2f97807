/* The folder of compiled programs. Nothing here fails a compile: what cannot be kept is not kept.
 */
#ifndef CODEGEN_CACHE_H
#define CODEGEN_CACHE_H

#include "base/arena.h"
#include "base/export.h"
#include "base/hash.h"

#include <pypto/status.h>

#include <stdbool.h>

/* Programs kept, and manifests, and reports of failed compiles. */
#define CACHE_ENTRIES 1000

/* The files of a program's folder. */
#define PROGRAM_OBJECT "program.so"
#define PROGRAM_SUM "program.sum"          /* its size and hash, and what it was made for and of */
#define PROGRAM_C "program.c"              /* what the object was compiled from */
#define PROGRAM_IR "program.ir"            /* what that was printed from */
#define PROGRAM_DESCRIPTION "program.json" /* what it consists of (describe.c) */

typedef struct cache {
    arena *a;
    const char *root;    /* .../v1, private to this user; NULL: there is no usable cache */
    const char *place;   /* where it is or would be, for messages */
    const char *trouble; /* why there is none; else NULL */
} cache;

/* Finds the folder (settings.def CACHE_DIR), making it if need be. */
cache cache_open(arena *a) EXPORTED(cache_open);

/* The file for the manifest of one entry function; NULL without a cache. */
const char *cache_front_path(const cache *c, hash_key front);
/* Replaces it, if that can be done. */
void cache_write_front(const cache *c, hash_key front, const char *bytes, int64_t count);

/* The folder of an object, whether or not it exists; NULL without a cache. */
const char *cache_object_dir(const cache *c, hash_key back);
/* Whether a folder holds a finished and undamaged object. */
bool cache_has_object(arena *a, const char *directory);
/* The same, and it was made of the folder's program.c as that is now, for this processor and this version of the
 * library's interface. */
bool cache_has_object_of_here(arena *a, const char *directory);
/* Whether program.sum says that the folder's program.c is what a compile has written. */
bool cache_records_text(arena *a, const char *directory);
/* Writes program.sum for the object of a folder; false when that cannot be done. */
bool cache_seal(arena *a, const char *directory);
/* A folder to build an object in, beside its later place; NULL when none can be made: *trouble says why. */
char *cache_build_dir(const cache *c, const char **trouble);
/* Moves a finished build to its place. When another process was faster, its object is used and
 * ours is removed. Returns the object's folder, or NULL when the build must stay where it is: *trouble says why. */
const char *cache_publish(const cache *c, const char *build_dir, hash_key back,
                          const char **trouble);
/* Where a build that the C compiler refused is kept for the report, replacing the last of its
 * kind; NULL without a cache. The caller moves it there. */
const char *cache_failed_dir(const cache *c, hash_key back);

/* Adds to the diagnostics of a success that the cache cannot be used, and why. */
void cache_tell(const cache *c, const char *trouble, pypto_status *status);

/* Notes that an entry (a folder of objects, a manifest; NULL is accepted) was of use. */
void cache_touch(const char *path);
/* Removes what was used least recently, beyond CACHE_ENTRIES of a kind. */
void cache_trim(const cache *c);

#endif
