/* pl.at: a kernel or a wrapper that is written where it is submitted, or a mark in the hierarchy of levels. */
#include "frontend/expressions.h"
#include "frontend/scopes_internal.h"

#include <string.h>

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

/* A kernel of the body. */
static void lower_core_group(lowering *fl, const scope *sc, const syntax_expr *const *given,
                             const char *name)
{
    launch_request request = {0};
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
               lower_name_list(fl, sc->word, "dumps", given[AT_DUMPS], &request.marked,
                               &request.marked_count)) {
        const outline_request outlined = {.plane = PLD_PLANE_CORE,
                                          .name = name,
                                          .span = sc->call->span,
                                          .body = &sc->syntax->body,
                                          .block_index = -1,
                                          .launch = &request,
                                          .early = given[AT_EARLY]};
        if (lower_outlined(fl, &outlined))
            capture_id(fl, sc, &request);
    }
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

void lower_at(lowering *fl, const scope *sc)
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
        return;
    if (level == enum_value("Level", "CORE_GROUP"))
        lower_core_group(fl, sc, given, name);
    else if (level == enum_value("Level", "CHIP"))
        lower_chip(fl, sc, given, name);
    else if (no_capture(fl, sc))
        lower_in_place(fl, sc->syntax);
}
