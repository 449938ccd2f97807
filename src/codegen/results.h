/* What a compile leaves to its caller, on the heap: copies of what it has made on its arena. Copying returns false when
 * memory is exhausted; what was copied before that goes with compile_output_clear() and compile_text_clear(). */
#ifndef CODEGEN_RESULTS_H
#define CODEGEN_RESULTS_H

#include "codegen/compile.h"
#include "codegen/lower.h"
#include "codegen/manifest.h"

/* The folder of the object. */
bool results_place(compile_output *output, const char *directory);
/* What the program depended on. */
bool results_variant(compile_output *output, const manifest_variant *variant);
bool results_stages(compile_stages *stages, const lowered *from);
bool results_texts(compile_text *texts, const lowered *from);

#endif
