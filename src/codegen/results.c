/* Results of a compile: copied here from the arena to the heap, and released here. */
#include "codegen/results.h"

#include "base/alloc.h"
#include "base/os.h"

#include <string.h>

bool results_place(compile_output *output, const char *directory)
{
    output->directory = alloc_strdup(directory);
    output->object_path = alloc_printf("%s/" PROGRAM_OBJECT, directory);
    return output->directory != NULL && output->object_path != NULL;
}

static bool copy_facts(compile_output *output, const manifest_variant *from)
{
    output->facts = alloc_zeroed(from->facts.count + 1, (int64_t)sizeof *output->facts);
    if (output->facts == NULL)
        return false;
    for (int64_t i = 0; i < from->facts.count; i++) {
        const frontend_fact *fact = &from->facts.items[i];
        char *name = alloc_strdup(fact->name);
        char *value = alloc_strdup(fact->value);
        output->facts[i] = (frontend_fact){fact->function, name, value};
        output->fact_count++;
        if (name == NULL || value == NULL)
            return false;
    }
    return true;
}

static bool copy_pattern(compile_output *output, const manifest_variant *from)
{
    output->pattern = alloc_zeroed(from->pattern.count + 1, (int64_t)sizeof *output->pattern);
    if (output->pattern == NULL)
        return false;
    if (from->pattern.count > 0)
        memcpy(output->pattern, from->pattern.items,
               (size_t)from->pattern.count * sizeof *output->pattern);
    output->pattern_count = (int32_t)from->pattern.count;
    output->from_annotations = from->from_annotations;
    return true;
}

bool results_variant(compile_output *output, const manifest_variant *variant)
{
    return copy_facts(output, variant) && copy_pattern(output, variant);
}

static bool copy_text(char **to, const text *from)
{
    *to = alloc_strdup(from->bytes);
    return *to != NULL;
}

bool results_stages(compile_stages *stages, const lowered *from)
{
    if (from->stages.count == 0)
        return true;
    stages->items = alloc_zeroed(from->stages.count, (int64_t)sizeof *stages->items);
    if (stages->items == NULL)
        return false;
    for (int64_t i = 0; i < from->stages.count; i++) {
        stages->items[i].name = from->stages.items[i].name;
        stages->count++;
        if (!copy_text(&stages->items[i].ir, &from->stages.items[i].ir))
            return false;
    }
    return true;
}

bool results_texts(compile_text *texts, const lowered *from)
{
    return copy_text(&texts->c, &from->text.c) && copy_text(&texts->ir, &from->text.ir) &&
           copy_text(&texts->description, &from->text.description) &&
           results_stages(&texts->stages, from);
}

/* ---- released ---- */

void compile_stages_clear(compile_stages *stages)
{
    for (int32_t i = 0; i < stages->count; i++)
        alloc_free(stages->items[i].ir);
    alloc_free(stages->items);
    *stages = (compile_stages){0};
}

void compile_text_clear(compile_text *output)
{
    compile_stages_clear(&output->stages);
    alloc_free(output->c);
    alloc_free(output->ir);
    alloc_free(output->description);
    *output = (compile_text){0};
}

/* Facts on the heap own their strings, though the type says const: the front end's do not. */
static void free_string(const char *string)
{
    union {
        const char *borrowed;
        void *owned;
    } pointer = {.borrowed = string};
    alloc_free(pointer.owned);
}

void compile_output_clear(compile_output *output)
{
    if (output->temporary && output->directory != NULL)
        os_remove_tree(output->directory);
    for (int32_t i = 0; i < output->fact_count; i++) {
        free_string(output->facts[i].name);
        free_string(output->facts[i].value);
    }
    compile_stages_clear(&output->stages);
    alloc_free(output->facts);
    alloc_free(output->pattern);
    alloc_free(output->object_path);
    alloc_free(output->directory);
    *output = (compile_output){0};
}
