/* Scopes: what stands behind `with`, and the loops that launch blocks.
 *
 *   pl.at(level=CORE_GROUP)   a kernel written where it is submitted (outline.c)
 *   pl.at(level=CHIP)         a wrapper written where the host dispatches it
 *   pl.at(any other level)    a mark in the hierarchy: the body stands where it is
 *   pl.spmd(n)                its kernel call, or its body as a kernel, runs as n blocks
 *   pl.manual_scope()         tasks in it are ordered by deps= alone
 *   pl.scope()                the opposite, where the function's option auto_scope is off
 *   pl.cluster()              hints for where tasks run
 *   pl.split_aiv(2, mode=)    lanes of one core: one after the other, or both at once as one
 *
 * Hints for hardware (optimizations=, allow_early_resolve=, sync_start=, dumps=, windowize=) are checked, and
 * change nothing. */
#include "frontend/scopes.h"
#include "frontend/calls.h"
#include "frontend/expressions.h"
#include "frontend/loops.h"
#include "frontend/lower.h"
#include "frontend/names.h"
#include "frontend/statements.h"

#include "ops/dtypes.h"

#include <ctype.h>
#include <string.h>

/* ---- arguments that several scopes have ---- */

static bool is_python_keyword(const char *word)
{
    static const char *const all[] = {
        "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
        "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
        "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
        "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i], word) == 0)
            return true;
    }
    return false;
}

static bool is_identifier(const char *word)
{
    if (!isalpha((unsigned char)word[0]) && word[0] != '_')
        return false;
    for (const char *c = word; *c != '\0'; c++) {
        if (!isalnum((unsigned char)*c) && *c != '_')
            return false;
    }
    return !is_python_keyword(word);
}

/* The name of what the scope becomes. */
static bool scope_name(lowering *fl, const char *word, const syntax_expr *hint, const char **name)
{
    *name = arena_printf(fl->a, "%s_scope", fl->syntax->name);
    if (hint == NULL)
        return true;
    if (hint->kind != SYNTAX_STRING || !is_identifier(hint->text))
        return bad_scope(
            fl, hint->span, "write name_hint=\"gather\"",
            arena_printf(fl->a,
                         "%s: name_hint must be a string that is a valid non-keyword identifier",
                         word));
    *name = hint->text;
    return true;
}

/* pl.split(mode) or pl.cross_core_slot(slot_num=N). */
static bool check_optimization(lowering *fl, const syntax_expr *e, bool *split)
{
    const char *path = called_path(fl, e);
    bool is_split = path != NULL && strcmp(path, "pl.split") == 0;
    bool is_slot = path != NULL && strcmp(path, "pl.cross_core_slot") == 0;
    if (!is_split && !is_slot)
        return bad_scope(fl, e->span, "write pl.split(mode) or pl.cross_core_slot(slot_num=n)",
                         "Unsupported entry in optimizations=");
    static const char *const split_keys[] = {"mode", NULL};
    static const char *const slot_keys[] = {"slot_num", NULL};
    const keyword_rules rules = {path, is_split ? split_keys : slot_keys, is_split ? 1 : 0, NULL};
    const syntax_expr *given[1] = {NULL};
    if (!bind_keywords(fl, &rules, e, given))
        return false;
    if (given[0] == NULL)
        return bad_scope(fl, e->span, NULL,
                         arena_printf(fl->a, "%s requires %s=", path, rules.keys[0]));
    const dsl_value v = eval(fl, given[0]);
    int64_t number = 0;
    if (v.kind == VALUE_POISON)
        return false;
    if (is_split && (v.kind != VALUE_ENUM || strcmp(v.text, "SplitMode") != 0))
        return bad_scope(fl, given[0]->span, "write pl.split(pl.SplitMode.UP_DOWN)",
                         "pl.split takes a member of pl.SplitMode");
    if (is_slot && (v.kind != VALUE_SCALAR || !ir_is_const_int(v.expr, &number) || number < 1))
        return bad_scope(fl, given[0]->span, "write pl.cross_core_slot(slot_num=2)",
                         "pl.cross_core_slot takes a positive integer constant");
    if (is_split && *split)
        return bad_scope(fl, e->span, "name one mode", "duplicate pl.split in optimizations=");
    *split = *split || is_split;
    return true;
}

static bool check_optimizations(lowering *fl, const char *word, const syntax_expr *list)
{
    bool split = false;
    if (list == NULL)
        return true;
    if (list->kind != SYNTAX_LIST)
        return bad_scope(fl, list->span, "write optimizations=[pl.split(pl.SplitMode.UP_DOWN)]",
                         arena_printf(fl->a, "%s: optimizations= must be a list literal", word));
    for (int64_t i = 0; i < list->items.count; i++) {
        if (!check_optimization(fl, list->items.items[i], &split))
            return false;
    }
    return true;
}

/* ---- the body in its place ---- */

static void lower_in_place(lowering *fl, const syntax_stmt *s)
{
    lower_block(fl, &s->body);
}

/* ---- as tid ---- */

typedef struct scope {
    const syntax_stmt *syntax;
    const syntax_expr *call;
    const char *word;          /* "pl.at" */
    const syntax_expr *target; /* of `as`, or NULL */
} scope;

static bool no_capture(lowering *fl, const scope *sc)
{
    return sc->target == NULL ||
           bad_scope(fl, sc->target->span, "leave `as` out: only scopes that are tasks have an id",
                     arena_printf(fl->a,
                                  "`as %s`: cannot capture a TaskId when nested in a scope that "
                                  "is no task",
                                  sc->target->text));
}

static int64_t capture_name(const lowering *fl, const scope *sc)
{
    return sc->target == NULL ? -1 : scope_find(fl, sc->target->text);
}

static void capture(lowering *fl, const scope *sc, launch_request *request)
{
    if (sc->target != NULL && request->call != NULL)
        (void)capture_task(fl, request->call, capture_name(fl, sc), sc->target->span);
}

static void poison_capture(lowering *fl, const scope *sc)
{
    if (sc->target != NULL)
        scope_poison(fl, capture_name(fl, sc));
}

/* ---- pl.at ---- */

enum {
    AT_LEVEL,
    AT_ROLE,
    AT_OPTIMIZATIONS,
    AT_DEPS,
    AT_NO_DEP_ARGS,
    AT_DUMPS,
    AT_EARLY,
    AT_NAME_HINT,
    AT_WINDOWIZE,
    AT_KEYS
};
static const char *const at_keys[] = {"level",       "role",  "optimizations",       "deps",
                                      "no_dep_args", "dumps", "allow_early_resolve", "name_hint",
                                      "windowize",   NULL};

static bool member_of(lowering *fl, const syntax_expr *e, const char *enumeration, int64_t *member)
{
    const dsl_value v = eval(fl, e);
    if (v.kind == VALUE_POISON)
        return false;
    *member = v.integer;
    return (v.kind == VALUE_ENUM && strcmp(v.text, enumeration) == 0) ||
           bad_scope(fl, e->span, NULL,
                     arena_printf(fl->a, "pl.at takes a member of pl.%s here, not %s", enumeration,
                                  describe(fl->a, &v)));
}

static int64_t enum_value(const char *enumeration, const char *member)
{
    return enum_find(enumeration, member)->value;
}

/* A kernel of the body. */
static void lower_core_group(lowering *fl, const scope *sc, const syntax_expr *const *given,
                             const char *name)
{
    launch_request request = {0};
    const char *const *dumped = NULL;
    int32_t dumped_count = 0;
    if (given[AT_ROLE] != NULL) {
        bad_scope(fl, given[AT_ROLE]->span, "leave it out", "role= is not allowed at CORE_GROUP");
    } else if (fl->ir->plane != PLD_PLANE_CHIP) {
        bad_scope(
            fl, sc->call->span,
            fl->ir->plane == PLD_PLANE_CORE
                ? "put the statements into the scope around it"
                : "write it inside `with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):`",
            fl->ir->plane == PLD_PLANE_CORE
                ? "pl.at(CORE_GROUP) cannot be nested inside a kernel or another CORE_GROUP scope"
                : "pl.at(CORE_GROUP) cannot stand directly in a host function");
    } else if (lower_deps(fl, given[AT_DEPS], sc->target == NULL ? NULL : sc->target->text,
                          &request.launch) &&
               lower_name_list(fl, sc->word, "no_dep_args", given[AT_NO_DEP_ARGS],
                               &request.independent, &request.independent_count) &&
               lower_name_list(fl, sc->word, "dumps", given[AT_DUMPS], &dumped, &dumped_count)) {
        const outline_request outlined = {.plane = PLD_PLANE_CORE,
                                          .name = name,
                                          .span = sc->call->span,
                                          .body = &sc->syntax->body,
                                          .block_index = -1,
                                          .launch = &request,
                                          .early = given[AT_EARLY]};
        if (lower_outlined(fl, &outlined)) {
            capture(fl, sc, &request);
            return;
        }
    }
    poison_capture(fl, sc);
}

/* A wrapper of the body. */
static void lower_chip(lowering *fl, const scope *sc, const syntax_expr *const *given,
                       const char *name)
{
    int64_t role = 0;
    if (fl->ir->plane != PLD_PLANE_HOST) {
        bad_scope(fl, sc->call->span, "it stands in a host function",
                  "pl.at(CHIP) cannot be nested inside a function that runs on a device");
        return;
    }
    if (given[AT_ROLE] != NULL && !member_of(fl, given[AT_ROLE], "Role", &role))
        return;
    if (role != enum_value("Role", "Orchestrator")) {
        bad_scope(fl, given[AT_ROLE]->span, "write role=pl.Role.Orchestrator",
                  "pl.at(CHIP) has the role Orchestrator");
        return;
    }
    for (int k = AT_DEPS; k <= AT_DUMPS; k++) {
        if (given[k] == NULL)
            continue;
        bad_scope(fl, given[k]->span, "dispatches are ordered by what they read and write",
                  arena_printf(fl->a, "%s= only applies to pl.at(CORE_GROUP)", at_keys[k]));
        return;
    }
    const outline_request outlined = {.plane = PLD_PLANE_CHIP,
                                      .name = name,
                                      .span = sc->call->span,
                                      .body = &sc->syntax->body,
                                      .block_index = -1};
    if (no_capture(fl, sc))
        (void)lower_outlined(fl, &outlined);
}

static void lower_at(lowering *fl, const scope *sc)
{
    static const keyword_rules rules = {"pl.at", at_keys, 2, NULL};
    const syntax_expr *given[AT_KEYS] = {NULL};
    const char *name = NULL;
    int64_t level = 0;
    bool ok = bind_keywords(fl, &rules, sc->call, given);
    if (ok && given[AT_LEVEL] == NULL)
        ok = bad_scope(fl, sc->call->span, "write pl.at(level=pl.Level.CORE_GROUP)",
                       "pl.at requires a level argument");
    ok = ok && member_of(fl, given[AT_LEVEL], "Level", &level) &&
         scope_name(fl, sc->word, given[AT_NAME_HINT], &name) &&
         check_bool_literal(fl, sc->word, "allow_early_resolve", given[AT_EARLY]) &&
         check_bool_literal(fl, sc->word, "windowize", given[AT_WINDOWIZE]) &&
         check_optimizations(fl, sc->word, given[AT_OPTIMIZATIONS]);
    if (!ok)
        poison_capture(fl, sc);
    else if (level == enum_value("Level", "CORE_GROUP"))
        lower_core_group(fl, sc, given, name);
    else if (level == enum_value("Level", "CHIP"))
        lower_chip(fl, sc, given, name);
    else if (no_capture(fl, sc))
        lower_in_place(fl, sc->syntax);
}

/* ---- pl.spmd ---- */

enum {
    SPMD_CORE_NUM,
    SPMD_SYNC_START,
    SPMD_NAME_HINT,
    SPMD_OPTIMIZATIONS,
    SPMD_EARLY,
    SPMD_PREDICATE,
    SPMD_DEPS,
    SPMD_INIT_VALUES,
    SPMD_KEYS
};
static const char *const spmd_keys[] = {"core_num",      "sync_start",          "name_hint",
                                        "optimizations", "allow_early_resolve", "predicate",
                                        "deps",          "init_values",         NULL};

/* What the body has in it, as it is written. */
typedef struct content {
    lowering *fl;
    int32_t launches; /* calls of DSL functions */
    bool reads_index;
} content;

static bool look_at_expr(void *context, const syntax_expr *e)
{
    content *c = context;
    if (e->kind != SYNTAX_CALL)
        return false;
    const char *path = called_path(c->fl, e);
    const name_value *callee = outer_meaning(c->fl, e->a);
    size_t length = path == NULL ? 0 : strlen(path);
    c->reads_index =
        c->reads_index || (length > 14 && strcmp(path + length - 14, ".get_block_idx") == 0);
    c->launches += callee != NULL && callee->kind == NAME_FUNCTION ? 1 : 0;
    return false;
}

static void look_at(content *c, const syntax_block *block)
{
    for (int64_t i = 0; i < block->count; i++) {
        (void)syntax_any(block->items[i]->value, look_at_expr, c);
        (void)syntax_any(block->items[i]->target, look_at_expr, c);
        look_at(c, &block->items[i]->body);
        look_at(c, &block->items[i]->orelse);
    }
}

/* The whole body is `self.k(...)`, or an assignment of that. */
static bool is_one_call(lowering *fl, const syntax_block *body)
{
    const syntax_stmt *s = body->count == 1 ? body->items[0] : NULL;
    bool simple =
        s != NULL && s->value != NULL && s->value->kind == SYNTAX_CALL &&
        (s->kind == SYNTAX_EXPR || s->kind == SYNTAX_ASSIGN || s->kind == SYNTAX_ANNOTATED);
    const name_value *callee = simple ? outer_meaning(fl, s->value->a) : NULL;
    return callee != NULL && callee->kind == NAME_FUNCTION;
}

static bool spmd_arguments(lowering *fl, const scope *sc, bool loop,
                           const syntax_expr *const *given, launch_request *request,
                           const char **name)
{
    static const char place[] = "it submits tasks of a per-device wrapper (@pl.jit, "
                                "FunctionType.Orchestration)";
    if (given[SPMD_INIT_VALUES] != NULL)
        return bad_scope(fl, given[SPMD_INIT_VALUES]->span, "blocks carry nothing to each other",
                         "pl.spmd does not accept 'init_values='");
    if (given[SPMD_DEPS] != NULL && (loop || sc->target == NULL))
        return bad_scope(fl, given[SPMD_DEPS]->span, "write `with pl.spmd(n, deps=[...]) as tid:`",
                         "pl.spmd does not accept 'deps=' without `as tid`");
    if (given[SPMD_CORE_NUM] == NULL)
        return bad_scope(fl, sc->call->span, "write pl.spmd(n)", "pl.spmd requires core_num");
    if (fl->ir->plane == PLD_PLANE_HOST)
        return bad_scope(fl, sc->call->span, place,
                         "pl.spmd cannot stand directly in a host function");
    if (fl->ir->plane == PLD_PLANE_CORE)
        return bad_scope(fl, sc->call->span, place, "pl.spmd cannot be nested inside a kernel");
    return scope_name(fl, sc->word, given[SPMD_NAME_HINT], name) &&
           check_bool_literal(fl, sc->word, "sync_start", given[SPMD_SYNC_START]) &&
           check_bool_literal(fl, sc->word, "allow_early_resolve", given[SPMD_EARLY]) &&
           check_optimizations(fl, sc->word, given[SPMD_OPTIMIZATIONS]) &&
           lower_blocks(fl, given[SPMD_CORE_NUM], "core_num", &request->launch) &&
           lower_predicate(fl, given[SPMD_PREDICATE], &request->launch) &&
           lower_deps(fl, given[SPMD_DEPS], sc->target == NULL ? NULL : sc->target->text,
                      &request->launch);
}

static bool bind_spmd(lowering *fl, const scope *sc, const syntax_expr **given)
{
    static const keyword_rules rules = {"pl.spmd", spmd_keys, 1,
                                        "pl.spmd takes at most one positional argument"};
    return bind_keywords(fl, &rules, sc->call, given);
}

/* The single call as n blocks. */
static bool launch_call(lowering *fl, const scope *sc, launch_request *request)
{
    int64_t errors = fl->fe->error_count;
    fl->launch = request;
    lower_in_place(fl, sc->syntax);
    fl->launch = NULL;
    if (request->call == NULL && fl->fe->error_count == errors)
        bad_scope(fl, sc->call->span, "call an in-core function",
                  "pl.spmd: an inlined function is no task");
    return request->call != NULL;
}

static void lower_spmd(lowering *fl, const scope *sc)
{
    const syntax_expr *given[SPMD_KEYS] = {NULL};
    launch_request request = {0};
    const char *name = NULL;
    content c = {.fl = fl};
    look_at(&c, &sc->syntax->body);
    bool ok = bind_spmd(fl, sc, given) && spmd_arguments(fl, sc, false, given, &request, &name);
    const outline_request outlined = {.plane = PLD_PLANE_CORE,
                                      .name = name,
                                      .span = sc->call->span,
                                      .body = &sc->syntax->body,
                                      .block_index = -1,
                                      .launch = &request};
    if (ok && is_one_call(fl, &sc->syntax->body))
        ok = launch_call(fl, sc, &request);
    else if (ok && c.reads_index)
        ok = lower_outlined(fl, &outlined);
    else if (ok && c.launches > 1)
        ok = bad_scope(fl, sc->call->span, "write a scope for each of them",
                       arena_printf(fl->a,
                                    "pl.spmd launches %d kernels; its body is one kernel call",
                                    c.launches));
    else if (ok)
        ok = bad_scope(
            fl, sc->call->span, "use i = pl.tile.get_block_idx(), or call one kernel",
            "the body of pl.spmd neither reads the per-block index nor is one kernel call");
    if (ok)
        capture(fl, sc, &request);
    else
        poison_capture(fl, sc);
}

static void lower_spmd_loop(lowering *fl, const scope *sc)
{
    const syntax_stmt *s = sc->syntax;
    const syntax_expr *given[SPMD_KEYS] = {NULL};
    launch_request request = {0};
    const char *name = NULL;
    if (s->target->kind != SYNTAX_NAME) {
        bad_scope(fl, s->target->span, "write `for i in pl.spmd(n):`",
                  "pl.spmd has a single loop variable");
        return;
    }
    const int64_t index = scope_find(fl, s->target->text);
    if (!bind_spmd(fl, sc, given) || !spmd_arguments(fl, sc, true, given, &request, &name))
        return;
    const outline_request outlined = {.plane = PLD_PLANE_CORE,
                                      .name = name,
                                      .span = sc->call->span,
                                      .body = &s->body,
                                      .block_index = index,
                                      .block_span = s->target->span,
                                      .launch = &request};
    (void)lower_outlined(fl, &outlined);
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
    const keyword_rules rules = {sc->word, strcmp(sc->word, "pl.scope") == 0 ? keys : keys + 1, 1,
                                 NULL};
    const syntax_expr *given[1] = {NULL};
    bool manual = false;
    const keyword_rules none = {sc->word, keys + 1, 0, NULL};
    if (!bind_keywords(fl, strcmp(sc->word, "pl.scope") == 0 ? &rules : &none, sc->call, given) ||
        !is_manual(fl, sc, given[0], &manual))
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
    const int64_t name = scope_find(fl, sc->syntax->target->text);
    const ir_expr *outer = fl->lane;
    loop_frame *loop = fl->loop;
    carry_frame *carries = fl->carries;
    const int64_t errors = fl->fe->error_count;
    fl->loop = NULL; /* break and continue have no meaning between lanes */
    fl->carries = NULL;
    for (int64_t lane = 0; lane < lanes && fl->fe->error_count == errors; lane++) {
        fl->lane = ir_int(fl->a, lane);
        scope_bind(fl, name, literal_int(fl->a, lane, sc->syntax->target->span),
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
    return v.kind == VALUE_POISON ? v : done;
}

/* ---- statements ---- */

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

void lower_with(lowering *fl, const syntax_stmt *s)
{
    static const char hint[] =
        "scopes are pl.at, pl.spmd, pl.manual_scope, pl.scope and pl.cluster";
    if (s->items.count != 2) {
        bad_scope(fl, s->span, "write one `with` inside the other",
                  "one context manager per `with`");
        return;
    }
    const syntax_expr *context = s->items.items[0];
    const scope_row *row =
        find_row(contexts, sizeof contexts / sizeof contexts[0], called_path(fl, context));
    if (row == NULL) {
        const dsl_value v = context->kind == SYNTAX_CALL ? eval(fl, context->a) : eval(fl, context);
        if (v.kind != VALUE_POISON)
            report(fl->fe, DIAG_BAD_SCOPE, context->span, hint,
                   "`with` opens a scope of pl, such as pl.at(...), and %s is none",
                   describe(fl->a, &v));
        return;
    }
    const scope sc = {s, context, row->word, s->items.items[1]};
    if (check_target(fl, &sc, row))
        row->lower(fl, &sc);
}

bool lower_scope_loop(lowering *fl, const syntax_stmt *s)
{
    const scope_row *row =
        find_row(loops, sizeof loops / sizeof loops[0], called_path(fl, s->value));
    if (row == NULL)
        return false;
    const scope sc = {s, s->value, row->word, NULL};
    row->lower(fl, &sc);
    return true;
}
