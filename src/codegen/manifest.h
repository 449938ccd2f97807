/* What the cache remembers of one entry function: for each program made from it, on what it
 * depended. */
#ifndef CODEGEN_MANIFEST_H
#define CODEGEN_MANIFEST_H

#include "base/hash.h"
#include "base/text.h"
#include "frontend/frontend.h"

/* Programs remembered per entry function, newest first. */
#define MANIFEST_VARIANTS 8

typedef struct manifest_variant {
    hash_key c_text;       /* hash of the emitted C */
    bool from_annotations; /* compiled without sample arguments */
    VEC(frontend_arg) pattern;
    VEC(frontend_fact) facts; /* in the order in which they were asked */
} manifest_variant;

typedef struct manifest {
    manifest_variant variants[MANIFEST_VARIANTS];
    int32_t count;
} manifest;

void manifest_print(text *out, const manifest *m);
/* Strings on the arena. False when the text is damaged: its checksum or its form is not that of
 * manifest_print(). Reads any bytes. */
bool manifest_parse(arena *a, const char *bytes, int64_t count, manifest *m);
/* Puts a variant first; one with the same pattern and facts goes, and the oldest if there are too
 * many. */
void manifest_add(manifest *m, const manifest_variant *variant);

/* Whether arguments match a pattern: same kinds, element types and shapes (-1: any extent), same
 * scalars. */
bool pattern_matches(const frontend_arg *pattern, int32_t pattern_count, const frontend_arg *args,
                     int32_t arg_count);
/* Whether each fact is still true, asked in order. */
bool facts_hold(arena *a, const frontend_embedder *embedder, const frontend_fact *facts,
                int64_t count);

#endif
