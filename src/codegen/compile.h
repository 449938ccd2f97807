/* The compile driver: DSL source to a shared object on disk, through the two-level cache.
 *
 *   front key  what the user wrote: entry's digest, platform, our version; then, per variant,
 *              argument types and the meaning of every name that was asked for. A hit skips front
 *              end, passes and emitter.
 *   back key   C text, flags, compiler (path, size, time), processor (home folders are shared
 *              between machine types), device headers. A hit skips the C compiler.
 *
 * On disk, below the cache directory (settings.def CACHE_DIR), each published by rename so that a
 * reader sees a whole file or none:
 *   v1/front/<front hash>     the manifest: up to 8 variants (facts, argument pattern, hash of the
 *                             C text), newest first
 *   v1/object/<back hash>/    program.so  program.sum  program.c  program.ir  program.json
 *
 * A front hash covers entry digest, platform and version only; each variant's facts are then
 * re-asked, in their recorded order, from the embedder and compared. A variant names its C text,
 * not its object: the back key is made from that and from the machine at hand.
 *
 * A cache directory that cannot be used (read-only, full, another user's) is replaced by a private
 * temporary one; a compile never fails because of the cache. Thread-safe. */
#ifndef CODEGEN_COMPILE_H
#define CODEGEN_COMPILE_H

#include "base/export.h"
#include "base/os.h"
#include "frontend/frontend.h"

typedef struct compile_request {
    const frontend_embedder *embedder;
    int32_t entry;            /* the embedder's number of the entry function */
    const char *entry_digest; /* changes whenever the entry's source text or place does */
    const char *entry_name;
    const frontend_arg *args; /* NULL: from annotations alone */
    int32_t arg_count;
    const char *platform;
    bool stages; /* keep the IR behind each pass */
    /* Called with true before and false after a long wait (the C compiler), on the calling thread.
     */
    void (*waiting)(void *context, bool begins);
    void *waiting_context;
    const os_interrupts
        *interrupts; /* ends that wait, with CANCELLED; looked at when it has begun; or NULL */
} compile_request;

/* The IR behind a pass. */
typedef struct compile_stage {
    const char *name; /* "front_end", or that of the pass; static */
    char *ir;
} compile_stage;

/* In the order of the passes, on the heap. */
typedef struct compile_stages {
    compile_stage *items;
    int32_t count;
} compile_stages;

/* A finished compile: heap-owned, released by compile_output_clear(). Facts and pattern let the
 * caller ask later whether the same program still serves. */
typedef struct compile_output {
    char *object_path; /* .../program.so */
    char *directory;   /* holds program.so, program.c, program.ir, program.json */
    bool temporary;    /* the directory goes away with this output */
    bool front_hit;
    bool back_hit;
    int64_t front_ns; /* key, front end, passes, emitter */
    int64_t back_ns;  /* C compiler */
    frontend_fact *facts;
    int32_t fact_count;
    frontend_arg *pattern; /* one per argument of the entry; dynamic extents are -1 */
    int32_t pattern_count;
    bool from_annotations; /* compiled without sample arguments */
    compile_stages stages; /* of a program that was lowered now, if they were asked for */
} compile_output;

PYPTO_NODISCARD pypto_status compile_program(const compile_request *request, compile_output *output)
    EXPORTED(compile_program);

/* What a program is compiled from, on the heap, released by compile_text_clear(). */
typedef struct compile_text {
    char *c;           /* program.c */
    char *ir;          /* program.ir: the IR behind all passes */
    char *description; /* program.json (describe.c) */
    compile_stages stages;
} compile_text;

/* All of a compile but the C compiler. Touches no cache. */
PYPTO_NODISCARD pypto_status compile_lower(const compile_request *request, compile_text *output)
    EXPORTED(compile_lower);
void compile_text_clear(compile_text *output) EXPORTED(compile_text_clear);
void compile_stages_clear(compile_stages *stages) EXPORTED(compile_stages_clear);

/* The program in a folder that somebody has kept (load.c): its program.so, if it is undamaged and made of its program.c
 * for this machine, else one made now.  Fails (VALUE) when the folder or a file of it could have been written by another
 * user, is a symbolic link, or when there is no program.c. The output has no facts: it serves no request. */
PYPTO_NODISCARD pypto_status compile_load(const char *directory,
                                          void (*waiting)(void *context, bool begins),
                                          void *waiting_context, const os_interrupts *interrupts,
                                          compile_output *output) EXPORTED(compile_load);

/* Whether `output` serves this request too: same argument pattern, every fact still true. A request
 * without arguments is served by what was compiled without them. */
bool compile_still_serves(const compile_output *output, const compile_request *request)
    EXPORTED(compile_still_serves);

void compile_output_clear(compile_output *output) EXPORTED(compile_output_clear);

#endif
