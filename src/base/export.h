/* Functions that are not public but leave libpypto all the same, because python/module, a shared
 * object of its own, calls them. As symbols they carry the library's prefix, so that no other
 * library of the user's process can take their place.
 *
 *     void *arena_alloc(arena *a, int64_t bytes) EXPORTED(arena_alloc); */
#ifndef BASE_EXPORT_H
#define BASE_EXPORT_H

#define EXPORTED(name) __asm__("pypto_private_" #name) __attribute__((visibility("default")))

#endif
