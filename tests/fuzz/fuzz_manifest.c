/* Fuzz target of the cache's memory: a manifest is a file that anybody can damage. The bytes are read
 * as they are, and again with the checksum that they should have, so that what stands behind the
 * checksum is reached too. A finding is what the sanitizers say, and a manifest that is not the same
 * after it was printed and read again. */
#include "codegen/manifest.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_manifest(arena *a, const char *bytes, int64_t count)
{
    manifest m;
    if (!manifest_parse(a, bytes, count, &m))
        return;
    text once = {.a = a};
    text twice = {.a = a};
    manifest_print(&once, &m);
    if (!manifest_parse(a, once.bytes, once.length, &m))
        abort();
    manifest_print(&twice, &m);
    if (once.length != twice.length || memcmp(once.bytes, twice.bytes, (size_t)once.length) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena *a = arena_create();
    jmp_buf exhausted;
    if (a == NULL)
        return 0;
    if (setjmp(exhausted) == 0) {
        arena_set_recovery(a, &exhausted);
        /* On the heap, so that reading behind the end is seen. */
        char *copy = malloc(size + 1);
        memcpy(copy, data, size);
        read_manifest(a, copy, (int64_t)size);
        free(copy);

        char hex[33];
        text sealed = {.a = a};
        text_add_n(&sealed, (const char *)data, (int64_t)size);
        hash_hex(hash_of(data, (int64_t)size), hex);
        text_printf(&sealed, "end %s\n", hex);
        read_manifest(a, sealed.bytes, sealed.length);
    }
    arena_destroy(a);
    return 0;
}
