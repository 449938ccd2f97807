/* pl.assemble in a host function: what one host tensor holds goes into another. It is a dispatch like any other,
 * behind what it reads and in front of what reads it:
 *
 *     y = pl.assemble(y, t, [0, 0])   ->   with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):
 *                                              with pl.at(level=pl.Level.CORE_GROUP):
 *                                                  y = pl.assemble(y, t, [0, 0])
 *
 * Without a device, it is the next one's turn. */
#include "frontend/expressions.h"
#include "frontend/loops.h"
#include "frontend/scopes.h"

#include "ops/dtypes.h"

#include <string.h>

/* The call, if the statement is one, or gives its result a name. */
static const syntax_expr *copy_of(lowering *fl, const syntax_stmt *s)
{
    const bool may = s->kind == SYNTAX_EXPR || s->kind == SYNTAX_RETURN ||
                     (s->kind == SYNTAX_ASSIGN && s->target->kind == SYNTAX_NAME);
    const char *path = may ? called_path(fl, s->value) : NULL;
    const op_def *op = path != NULL ? op_find(path) : NULL;
    return op != NULL && op->id == OP_ASSEMBLE ? s->value : NULL;
}

static bool check_copy(lowering *fl, const syntax_expr *call)
{
    for (int64_t i = 0; i < call->keywords.count; i++) {
        const syntax_keyword *keyword = &call->keywords.items[i];
        if (keyword->name == NULL || strcmp(keyword->name, "atomic") != 0)
            continue;
        const dsl_value v = eval(fl, keyword->value);
        if (v.kind != VALUE_ENUM || v.integer == 0)
            continue;
        report(fl->fe, DIAG_WRONG_PLANE, keyword->span, "add in a kernel",
               "pl.assemble with atomic= is only supported inside an InCore function");
        return false;
    }
    return true;
}

bool lower_host_copy(lowering *fl, const syntax_stmt *s)
{
    const bool inside =
        fl->ir->plane == PLD_PLANE_CHIP && fl->outlined != NULL && fl->outlined->copies;
    if (!inside && fl->ir->plane != PLD_PLANE_HOST)
        return false;
    const syntax_expr *call = copy_of(fl, s);
    if (call == NULL)
        return false;
    if (!check_copy(fl, call)) {
        if (s->target != NULL)
            binding_poison(fl, binding_find(fl, s->target->text));
        return true;
    }
    syntax_stmt *statement = arena_new(fl->a, syntax_stmt);
    *statement = *s;
    syntax_block body = {0};
    vec_push(fl->a, &body, statement);
    const outline_request request = {.plane = inside ? PLD_PLANE_CORE : PLD_PLANE_CHIP,
                                     .name = "assemble",
                                     .span = s->span,
                                     .body = &body,
                                     .block_index = -1,
                                     .copies = !inside};
    (void)lower_outlined(fl, &request);
    return true;
}
