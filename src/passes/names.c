/* C names: every function and variable gets one, the user's own wherever C allows it.
 *
 * A name changes only for a reason that a reader of the emitted C can see:
 *   int      -> int_            a word of C, or a name that emitted functions use themselves
 *   pld_x    -> user_pld_x      the device API's names; leading underscores that C reserves
 *   größe    -> gr_u00f6_u00dfe C names stay ASCII; another character becomes its code point
 *   x        -> x_2             a second variable of the name: the script rebound x to another type
 *   x[r]     -> x_r             a view that the script did not name
 * Functions additionally keep away from the C library's functions, which are external names that a
 * compiler knows by heart; a parameter called `signal` or `index` stays as it is.
 *
 * Names are unique in their function and differ from all names at file level, so that nothing is
 * shadowed. Loop variables live in their loops only: two loops after one another may both use
 * `peer`.
 *
 * The words stand in reserved.def, sorted for binary search; a unit test checks that. */
#include "ops/ops.h"
#include "passes/passes.h"

#include "base/diag.h"
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

static const char *const reserved_words[] = {
#define RESERVED(word) #word,
#define LIBRARY(word)
#include "passes/reserved.def"
#undef RESERVED
#undef LIBRARY
};

static const char *const library_functions[] = {
#define LIBRARY(word) #word,
#define RESERVED(word)
#include "passes/reserved.def"
#undef RESERVED
#undef LIBRARY
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int compare_words(const void *key, const void *element)
{
    return strcmp(key, *(const char *const *)element);
}

static bool is_listed(const char *name, const char *const *words, size_t count)
{
    return bsearch(name, words, count, sizeof *words, compare_words) != NULL;
}

static bool is_reserved(const char *name, bool at_file_level)
{
    return is_listed(name, reserved_words, COUNT(reserved_words)) ||
           (at_file_level && is_listed(name, library_functions, COUNT(library_functions)));
}

/* ---- spelling ---- */

static bool starts_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

/* What goes in front of a name that C or this project keeps for itself. */
static const char *prefix_for(const char *name, bool at_file_level)
{
    if (starts_with(name, "pld_") || starts_with(name, "pypto_") || starts_with(name, "PLD_") ||
        starts_with(name, "PYPTO_"))
        return "user_";
    if (name[0] == '_' && (at_file_level || name[1] == '_' || is_upper(name[1])))
        return "user";
    return "";
}

/* Reads one UTF-8 character; a byte that starts none stands for itself. */
static const char *next_character(const char *p, unsigned *code)
{
    unsigned char first = (unsigned char)*p++;
    int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
    *code = more == 0 ? first : first & (0x3fu >> more);
    for (; more > 0 && ((unsigned char)*p & 0xc0) == 0x80; more--, p++)
        *code = *code << 6 | ((unsigned char)*p & 0x3fu);
    return p;
}

static bool is_identifier_character(unsigned code)
{
    return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') ||
           (code >= '0' && code <= '9') || code == '_';
}

/* The name as C can spell it, not looking at clashes with others. */
static const char *spell(arena *a, const char *name, bool at_file_level)
{
    text spelt = {.a = a};
    text_add(&spelt, prefix_for(name, at_file_level));
    if (name[0] >= '0' && name[0] <= '9')
        text_add(&spelt, "v");
    for (const char *p = name; *p != '\0';) {
        unsigned code;
        const char *next = next_character(p, &code);
        if (is_identifier_character(code))
            text_add_n(&spelt, p, next - p);
        else
            text_printf(&spelt, "_u%04x", code);
        p = next;
    }
    if (spelt.length == 0)
        text_add(&spelt, "v");
    if (is_reserved(spelt.bytes, at_file_level))
        text_add(&spelt, "_");
    return spelt.bytes;
}

/* ---- file level ---- */

static const char *const suffixes[] = {"", NAME_SUFFIX_ENTRY, NAME_SUFFIX_TABLE, NAME_SUFFIX_PARAMS,
                                       NAME_SUFFIX_DIMS};

/* Registers a function's name and those derived from it; false, and nothing registered, when one of
 * them is taken. */
static bool claim_function_name(arena *a, map *file_names, const char *name)
{
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        const char *derived = arena_printf(a, "%s%s", name, suffixes[i]);
        if (map_get(file_names, derived) != NULL || is_reserved(derived, true))
            return false;
    }
    for (size_t i = 0; i < COUNT(suffixes); i++)
        map_set(file_names, arena_printf(a, "%s%s", name, suffixes[i]), file_names);
    return true;
}

static void name_function(ir_program *p, ir_function *f, map *file_names)
{
    const char *name = spell(p->a, f->name, true);
    f->c_name = name;
    for (int n = 2; !claim_function_name(p->a, file_names, f->c_name); n++)
        f->c_name = arena_printf(p->a, "%s_%d", name, n);
}

/* ---- inside a function ---- */

typedef struct loop_name {
    const char *name;
    const struct loop_name *outer;
} loop_name;

typedef struct namer {
    arena *a;
    const map *file_names;
    map names; /* of the function's variables except loop variables */
    map next;  /* name -> the number to try first when it is taken, an int */
} namer;

static bool is_free(const namer *n, const loop_name *loops, const char *name)
{
    if (map_get(n->file_names, name) != NULL || map_get(&n->names, name) != NULL)
        return false;
    for (; loops != NULL; loops = loops->outer)
        if (strcmp(loops->name, name) == 0)
            return false;
    return true;
}

/* Numbers of names that live everywhere are not tried twice. */
static const char *free_name(namer *n, const loop_name *loops, const char *user_name)
{
    const char *spelt = spell(n->a, user_name, false);
    const char *name = spelt;
    int *next = map_get(&n->next, spelt);
    int number = loops == NULL && next != NULL ? *next : 2;
    for (; !is_free(n, loops, name); number++)
        name = arena_printf(n->a, "%s_%d", spelt, number);
    if (loops == NULL && name != spelt) {
        if (next == NULL) {
            next = arena_new(n->a, int);
            map_set(&n->next, spelt, next);
        }
        *next = number;
    }
    return name;
}

/* Names the loop variables that name_variables() left: those of one loop. */
static void name_loops(namer *n, const ir_block *block, const loop_name *loops)
{
    for (int64_t i = 0; i < block->count; i++) {
        ir_stmt *s = block->items[i];
        if (s->kind != IR_FOR) {
            name_loops(n, &s->body, loops);
            name_loops(n, &s->orelse, loops);
            continue;
        }
        if (s->target->c_name == NULL)
            s->target->c_name = free_name(n, loops, s->target->name);
        loop_name here = {s->target->c_name, loops};
        name_loops(n, &s->body, &here);
    }
}

static void count_loop(void *context, ir_stmt *s)
{
    int32_t *counts = context;
    if (s->kind == IR_FOR)
        counts[s->target->id]++;
}

typedef struct made_names {
    arena *a;
    const char **wishes; /* by variable id; NULL: the variable's name */
} made_names;

/* A view x[r] that the script did not name is called x_r. */
static void wish_for_view(void *context, ir_stmt *s)
{
    made_names *made = context;
    if (s->kind != IR_DO || s->op_def->id != OP_SUBSCRIPT || s->target == NULL ||
        !s->target->is_made || s->operands[1].count != 1)
        return;
    const ir_expr *index = s->operands[1].exprs[0];
    int64_t number;
    if (index->kind == IR_VAR)
        made->wishes[s->target->id] =
            arena_printf(made->a, "%s_%s", s->operands[0].var->name, index->var->name);
    if (ir_is_const_int(index, &number) && number >= 0)
        made->wishes[s->target->id] =
            arena_printf(made->a, "%s_%lld", s->operands[0].var->name, (long long)number);
}

/* Parameters first: they are what a reader of the C knows from the script's signature. Then all
 * that lives anywhere in the function, a variable of several loops too. */
static void name_variables(ir_program *p, ir_function *f, const map *file_names)
{
    namer n = {p->a, file_names, map_make(p->a), map_make(p->a)};
    int32_t *loops_of = arena_array(p->a, int32_t, f->vars.count + 1);
    ir_visit_stmts(&f->body, count_loop, loops_of);
    made_names made = {p->a, arena_array(p->a, const char *, f->vars.count + 1)};
    ir_visit_stmts(&f->body, wish_for_view, &made);
    for (int64_t i = 0; i < f->vars.count; i++)
        f->vars.items[i]->c_name = NULL;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < f->vars.count; i++) {
            ir_var *var = f->vars.items[i];
            if (loops_of[var->id] == 1 || (var->kind == IR_VAR_PARAM) != (pass == 0))
                continue;
            const char *wish = made.wishes[var->id];
            var->c_name = free_name(&n, NULL, wish != NULL ? wish : var->name);
            map_set(&n.names, var->c_name, var);
        }
    }
    name_loops(&n, &f->body, NULL);
}

pypto_status pass_names(ir_program *p)
{
    map file_names = map_make(p->a);
    map_set(&file_names, PLD_PROGRAM_SYMBOL, p);
    for (int64_t i = 0; i < p->functions.count; i++)
        name_function(p, p->functions.items[i], &file_names);
    for (int64_t i = 0; i < p->functions.count; i++)
        name_variables(p, p->functions.items[i], &file_names);
    return STATUS_OK;
}

/* ---- for the emitter ---- */

static bool is_name_of_function(const ir_function *f, const char *name)
{
    size_t length = strlen(f->c_name);
    if (strncmp(name, f->c_name, length) != 0)
        return false;
    for (size_t i = 0; i < COUNT(suffixes); i++)
        if (strcmp(name + length, suffixes[i]) == 0)
            return true;
    return false;
}

bool name_is_taken(const ir_program *p, const ir_function *f, const char *name)
{
    if (is_reserved(name, f == NULL) || strcmp(name, PLD_PROGRAM_SYMBOL) == 0)
        return true;
    for (int64_t i = 0; i < p->functions.count; i++)
        if (is_name_of_function(p->functions.items[i], name))
            return true;
    for (int64_t i = 0; f != NULL && i < f->vars.count; i++)
        if (strcmp(f->vars.items[i]->c_name, name) == 0)
            return true;
    return false;
}

const char *names_first_unsorted(void)
{
    for (size_t i = 1; i < COUNT(reserved_words); i++)
        if (strcmp(reserved_words[i - 1], reserved_words[i]) >= 0)
            return reserved_words[i];
    for (size_t i = 1; i < COUNT(library_functions); i++)
        if (strcmp(library_functions[i - 1], library_functions[i]) >= 0)
            return library_functions[i];
    return NULL;
}
