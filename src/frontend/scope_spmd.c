/* pl.spmd, as a context and as a loop: n blocks of one kernel. The kernel is the one that the body calls, or the
 * body itself, if it asks for the index of its block. */
#include "frontend/loops.h"
#include "frontend/names.h"
#include "frontend/scopes_internal.h"

#include <string.h>

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

void lower_spmd(lowering *fl, const scope *sc)
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
        capture_id(fl, sc, &request);
}

void lower_spmd_loop(lowering *fl, const scope *sc)
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
    const int64_t index = binding_find(fl, s->target->text);
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
