/* Scopes: what stands behind `with`, and the loops that launch blocks.
 *
 *   pl.at(level=CORE_GROUP)   a kernel written where it is submitted (scope_at.c, outline.c)
 *   pl.at(level=CHIP)         a wrapper written where the host dispatches it
 *   pl.at(any other level)    a mark in the hierarchy: the body stands where it is
 *   pl.spmd(n)                its kernel call, or its body as a kernel, runs as n blocks (scope_spmd.c)
 *   pl.manual_scope()         tasks in it are ordered by deps= alone
 *   pl.scope()                the opposite, where the function's option auto_scope is off
 *   pl.cluster()              hints for where tasks run
 *   pl.split_aiv(2, mode=)    lanes of one core: one after the other, or both at once as one
 *
 * Hints for hardware (optimizations=, allow_early_resolve=, sync_start=, windowize=) are checked, and
 * change nothing. */
#include "frontend/expressions.h"
#include "frontend/loops.h"
#include "frontend/scopes_internal.h"
#include "frontend/statements.h"

#include <string.h>

/* ---- the body in its place ---- */

void lower_in_place(lowering *fl, const syntax_stmt *s)
{
    lower_block(fl, &s->body);
}

/* ---- pl.manual_scope, pl.scope ---- */

static bool is_manual(lowering *fl, const scope *sc, const syntax_expr *mode, bool *manual)
{
    *manual = strcmp(sc->word, "pl.manual_scope") == 0;
    if (mode == NULL)
        return true;
    const dsl_value v = eval(fl, mode);
    if (v.kind == VALUE_POISON)
        return false;
    if (v.kind != VALUE_ENUM || strcmp(v.text, "ScopeMode") != 0)
        return bad_scope(fl, mode->span, "write mode=pl.ScopeMode.MANUAL",
                         "pl.scope takes a member of pl.ScopeMode");
    *manual = v.integer == enum_value("ScopeMode", "MANUAL");
    return true;
}

static void lower_ordering(lowering *fl, const scope *sc)
{
    static const char *const keys[] = {"mode", NULL};
    const bool takes_mode = strcmp(sc->word, "pl.scope") == 0;
    const keyword_rules rules = {sc->word, takes_mode ? keys : keys + 1, takes_mode ? 1 : 0, NULL};
    const syntax_expr *given[1] = {NULL};
    bool manual = false;
    if (!bind_keywords(fl, &rules, sc->call, given) || !is_manual(fl, sc, given[0], &manual))
        return;
    const char *mode = manual ? "MANUAL" : "AUTO";
    if (fl->ir->plane != PLD_PLANE_CHIP) {
        report(fl->fe, DIAG_WRONG_PLANE, sc->call->span,
               "it orders the tasks of a per-device wrapper (@pl.jit, FunctionType.Orchestration)",
               "'%s' can only be used in a per-device wrapper, outside of pl.at(CORE_GROUP)",
               sc->word);
    } else if (fl->manual) {
        bad_scope(
            fl, sc->call->span, "end the outer scope first",
            arena_printf(fl->a, "a scope of mode %s cannot be nested inside a MANUAL one", mode));
    } else if (!manual && !fl->no_auto_scope) {
        bad_scope(fl, sc->call->span,
                  "tasks are ordered by their arguments everywhere; leave it out, or write "
                  "auto_scope=False in the function's decorator",
                  "pl.scope() requires the function to be auto_scope=False");
    } else {
        fl->manual = manual;
        lower_in_place(fl, sc->syntax);
        fl->manual = false;
    }
}

/* ---- pl.cluster ---- */

static void lower_cluster(lowering *fl, const scope *sc)
{
    static const char *const keys[] = {"name_hint", NULL};
    static const keyword_rules rules = {"pl.cluster", keys, 0, NULL};
    const syntax_expr *given[1] = {NULL};
    const char *name = NULL;
    if (!bind_keywords(fl, &rules, sc->call, given) || !scope_name(fl, sc->word, given[0], &name))
        return;
    if (fl->ir->plane != PLD_PLANE_CHIP)
        bad_scope(fl, sc->call->span, "it stands in a per-device wrapper",
                  "pl.cluster groups the tasks of a per-device wrapper");
    else
        lower_in_place(fl, sc->syntax);
}

/* ---- pl.split_aiv ---- */

static bool split_arguments(lowering *fl, const scope *sc, int64_t *lanes)
{
    static const char *const keys[] = {"n", "mode", NULL};
    static const keyword_rules rules = {"pl.split_aiv", keys, 1, NULL};
    static const char hint[] = "write `for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):`";
    const syntax_expr *given[2] = {NULL, NULL};
    int64_t number = 0;
    if (sc->syntax->target->kind != SYNTAX_NAME)
        return bad_scope(fl, sc->syntax->target->span, hint,
                         "pl.split_aiv has a single loop variable");
    if (!bind_keywords(fl, &rules, sc->call, given))
        return false;
    const dsl_value n = given[0] == NULL ? (dsl_value){.kind = VALUE_NONE} : eval(fl, given[0]);
    if (n.kind == VALUE_POISON)
        return false;
    if (n.kind != VALUE_SCALAR || !ir_is_const_int(n.expr, &number) || number != 2)
        return bad_scope(fl, sc->call->span, hint, "pl.split_aiv requires n == 2");
    if (given[1] == NULL)
        return bad_scope(fl, sc->call->span, hint, "pl.split_aiv requires mode=");
    const dsl_value mode = eval(fl, given[1]);
    if (mode.kind == VALUE_POISON)
        return false;
    if (mode.kind != VALUE_ENUM || strcmp(mode.text, "SplitMode") != 0)
        return bad_scope(fl, given[1]->span, hint,
                         "pl.split_aiv: mode= is a member of pl.SplitMode");
    if (fl->ir->plane != PLD_PLANE_CORE)
        return bad_scope(fl, sc->call->span, "write it in a kernel, or in pl.at(CORE_GROUP)",
                         "pl.split_aiv divides the work of a kernel");
    *lanes = mode.integer == enum_value("SplitMode", "NONE") ? 2 : 1;
    return true;
}

/* With halves of tiles per lane, one turn over whole tiles does what both lanes do. */
static void lower_split(lowering *fl, const scope *sc)
{
    int64_t lanes = 0;
    if (!split_arguments(fl, sc, &lanes))
        return;
    const int64_t name = binding_find(fl, sc->syntax->target->text);
    const ir_expr *outer = fl->lane;
    loop_frame *loop = fl->loop;
    carry_frame *carries = fl->carries;
    const int64_t errors = fl->fe->error_count;
    fl->loop = NULL; /* break and continue have no meaning between lanes */
    fl->carries = NULL;
    for (int64_t lane = 0; lane < lanes && fl->fe->error_count == errors; lane++) {
        fl->lane = ir_int(fl->a, lane);
        bind_name(fl, name, literal_int(fl->a, lane, sc->syntax->target->span),
                  sc->syntax->target->span);
        lower_in_place(fl, sc->syntax);
    }
    fl->lane = outer;
    fl->loop = loop;
    fl->carries = carries;
}

/* ---- pl.dump_tag ---- */

dsl_value lower_dump_tag(lowering *fl, const syntax_expr *e)
{
    const dsl_value done = {.kind = VALUE_NONE, .span = e->span};
    if (e->items.count != 1 || e->keywords.count != 0)
        return report(fl->fe, DIAG_BAD_SCOPE, e->span, "write pl.dump_tag(x)",
                      "pl.dump_tag takes exactly one positional argument");
    if (fl->ir->plane != PLD_PLANE_CHIP)
        return report(fl->fe, DIAG_BAD_SCOPE, e->span, "move it to where the tensor is passed on",
                      "pl.dump_tag is only valid inside an Orchestration function");
    const syntax_expr *item = e->items.items[0];
    if (item->kind != SYNTAX_NAME)
        return report(fl->fe, DIAG_BAD_SCOPE, item->span, "give it a name first",
                      "pl.dump_tag takes a bare variable name");
    const dsl_value v = eval(fl, item);
    if (v.kind == VALUE_VAR)
        vec_push(fl->a, &fl->notes->tagged, v.var);
    return v.kind == VALUE_POISON ? v : done;
}

/* ---- statements ---- */

/* What records of calls name a scope: what name_hint= says, or the function. */
static const char *name_of(const lowering *fl, const scope *sc)
{
    for (int64_t i = 0; i < sc->call->keywords.count; i++) {
        const syntax_keyword *k = &sc->call->keywords.items[i];
        if (k->name != NULL && strcmp(k->name, "name_hint") == 0 && k->value->kind == SYNTAX_STRING)
            return k->value->text;
    }
    return fl->syntax->name;
}

/* Marks where a scope of a wrapper begins and ends, for records of calls. Kernels and host functions have none. */
static void lower_marked(lowering *fl, const scope *sc, void (*lower)(lowering *, const scope *))
{
    const pypto_span span = sc->call->span;
    const dsl_value depth = literal_int(fl->a, fl->scopes, span);
    const dsl_value begin[] = {string_value(sc->word, span), string_value(name_of(fl, sc), span),
                               depth};
    if (fl->ir->plane != PLD_PLANE_CHIP) {
        lower(fl, sc);
        return;
    }
    lower_values(fl, op_get(OP_SCOPE_BEGIN), begin, 3, span, -1);
    fl->scopes++;
    lower(fl, sc);
    fl->scopes--;
    if (!fl->terminated)
        lower_values(fl, op_get(OP_SCOPE_END), &depth, 1, span, -1);
}

typedef struct scope_row {
    const char *word;
    bool captures; /* may have `as` */
    void (*lower)(lowering *fl, const scope *sc);
} scope_row;

static const scope_row contexts[] = {
    {"pl.at", true, lower_at},
    {"pl.spmd", true, lower_spmd},
    {"pl.manual_scope", false, lower_ordering},
    {"pl.scope", false, lower_ordering},
    {"pl.cluster", false, lower_cluster},
};
static const scope_row loops[] = {
    {"pl.spmd", false, lower_spmd_loop},
    {"pl.split_aiv", false, lower_split},
};

static const scope_row *find_row(const scope_row *rows, size_t count, const char *path)
{
    for (size_t i = 0; path != NULL && i < count; i++) {
        if (strcmp(rows[i].word, path) == 0)
            return &rows[i];
    }
    return NULL;
}

static bool check_target(lowering *fl, const scope *sc, const scope_row *row)
{
    if (sc->target == NULL)
        return true;
    if (!row->captures)
        return bad_scope(
            fl, sc->target->span, "leave it out",
            arena_printf(fl->a, "`as` only applies to pl.at and pl.spmd, not to %s", row->word));
    return sc->target->kind == SYNTAX_NAME ||
           bad_scope(fl, sc->target->span, "write `as tid`",
                     "the target of `as` must be a plain variable");
}

/* Anything else behind `with`. */
static void refuse_context(lowering *fl, const syntax_expr *opener)
{
    enum { COUNT = sizeof contexts / sizeof contexts[0] };
    const char *words[COUNT];
    text hint = {.a = fl->a};
    for (int i = 0; i < COUNT; i++) {
        words[i] = contexts[i].word;
        text_printf(&hint, "%s%s(...)", i == 0 ? "" : i == COUNT - 1 ? " and " : ", ", words[i]);
    }
    text_add(&hint, " are the scopes; files and locks are for code outside of DSL functions");
    const dsl_value v = eval(fl, opener);
    if (v.kind == VALUE_PATH) {
        const char *near = nearest_word(v.text, words, COUNT);
        report(fl->fe, DIAG_BAD_SCOPE, opener->span,
               near == NULL ? hint.bytes : arena_printf(fl->a, "did you mean %s(...)?", near),
               "`with` holds a scope of pl, and %s is none", v.text);
    } else if (v.kind != VALUE_POISON) {
        const bool named = opener->kind == SYNTAX_NAME || opener->kind == SYNTAX_ATTRIBUTE;
        report(fl->fe, DIAG_BAD_SCOPE, opener->span, hint.bytes,
               "`with` holds a scope of pl, and %s is none",
               named ? arena_printf(fl->a, "'%s'", opener->text) : describe(fl->a, &v));
    }
}

static void lower_context(lowering *fl, const syntax_stmt *s)
{
    if (s->items.count != 2) {
        bad_scope(fl, s->span, "write one `with` inside the other",
                  "one context manager per `with`");
        return;
    }
    const syntax_expr *context = s->items.items[0];
    const scope_row *row =
        find_row(contexts, sizeof contexts / sizeof contexts[0], called_path(fl, context));
    if (row == NULL) {
        refuse_context(fl, context->kind == SYNTAX_CALL ? context->a : context);
        return;
    }
    const scope sc = {s, context, row->word, s->items.items[1]};
    if (check_target(fl, &sc, row))
        lower_marked(fl, &sc, row->lower);
}

/* Where a scope is refused, for a mistake in it or in front of it, what it would have bound is unknown: to read that
 * behind it is no mistake of its own. */
typedef struct scope_names {
    name_set bound;
    binding **before;
} scope_names;

static scope_names enter_scope(lowering *fl, const syntax_stmt *s)
{
    scope_names names = {0};
    syntax_stmt scope_itself = *s;
    syntax_stmt *items[] = {&scope_itself};
    names_bound(fl, &(syntax_block){.items = items, .count = 1}, &names.bound);
    names.before = arena_array(fl->a, binding *, names.bound.count);
    for (int64_t i = 0; i < names.bound.count; i++)
        names.before[i] = fl->names.bindings[names.bound.items[i]];
    return names;
}

static void leave_scope(lowering *fl, const scope_names *names)
{
    for (int64_t i = 0; fl->fe->error_count > 0 && i < names->bound.count; i++) {
        if (fl->names.bindings[names->bound.items[i]] == names->before[i])
            binding_poison(fl, names->bound.items[i]);
    }
}

void lower_with(lowering *fl, const syntax_stmt *s)
{
    const scope_names names = enter_scope(fl, s);
    lower_context(fl, s);
    leave_scope(fl, &names);
}

static const scope_row *loop_row(lowering *fl, const syntax_stmt *s)
{
    return find_row(loops, sizeof loops / sizeof loops[0], called_path(fl, s->value));
}

bool is_scope_loop(lowering *fl, const syntax_stmt *s)
{
    return s->kind == SYNTAX_FOR && loop_row(fl, s) != NULL;
}

bool lower_scope_loop(lowering *fl, const syntax_stmt *s)
{
    const scope_row *row = loop_row(fl, s);
    if (row == NULL)
        return false;
    const scope sc = {s, s->value, row->word, NULL};
    const scope_names names = enter_scope(fl, s);
    lower_marked(fl, &sc, row->lower);
    leave_scope(fl, &names);
    return true;
}
