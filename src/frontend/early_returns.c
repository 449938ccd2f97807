/* Early returns of a function that is spliced in: they would leave its caller. So what follows a branch that returns
 * becomes part of the other branch, and each return gives a name its value, which is read at the end:
 *
 *     if n > 1:                     if n > 1:
 *         return a                      clamp_result = a
 *     b = pl.add(a, 1)       ->     else:
 *     return b                          b = pl.add(a, 1)
 *                                       clamp_result = b
 *
 * What follows a branch that returns on some of its paths stands behind each of them. Returns in loops stay, and are
 * refused (returns.c). */
#include "frontend/early_returns.h"
#include "frontend/lower.h"

#include <string.h>

/* What follows branches may have to be written so many times in all, before it is left to the script. */
#define MOST_STATEMENTS 4096

typedef struct rewriting {
    arena *a;
    const char *const *names;
    int32_t arity; /* several: returns are tuples; 0: returns have no value */
    int32_t statements;
} rewriting;

/* ---- what there is ---- */

static bool has_return(const syntax_block *block)
{
    for (int64_t i = 0; i < block->count; i++) {
        const syntax_stmt *s = block->items[i];
        if (s->kind == SYNTAX_RETURN ||
            (s->kind == SYNTAX_IF && (has_return(&s->body) || has_return(&s->orelse))))
            return true;
    }
    return false;
}

static bool always_returns(const syntax_block *block)
{
    for (int64_t i = 0; i < block->count; i++) {
        const syntax_stmt *s = block->items[i];
        if (s->kind == SYNTAX_RETURN ||
            (s->kind == SYNTAX_IF && always_returns(&s->body) && always_returns(&s->orelse)))
            return true;
    }
    return false;
}

/* How many values the returns give: the largest number. */
static int32_t arity_of(const syntax_block *block)
{
    int32_t most = 0;
    for (int64_t i = 0; i < block->count; i++) {
        const syntax_stmt *s = block->items[i];
        int32_t arity = 0;
        if (s->kind == SYNTAX_RETURN && s->value != NULL)
            arity = s->value->kind == SYNTAX_TUPLE ? (int32_t)s->value->items.count : 1;
        if (s->kind == SYNTAX_IF) {
            const int32_t other = arity_of(&s->orelse);
            arity = arity_of(&s->body);
            arity = arity > other ? arity : other;
        }
        most = arity > most ? arity : most;
    }
    return most;
}

/* ---- the other way to write it ---- */

static syntax_expr *name_expr(const rewriting *r, int32_t index, pypto_span span)
{
    syntax_expr *e = arena_new(r->a, syntax_expr);
    *e = (syntax_expr){.kind = SYNTAX_NAME, .span = span, .text = r->names[index]};
    return e;
}

static syntax_stmt *result_assignment(const rewriting *r, const syntax_stmt *returned)
{
    syntax_stmt *s = arena_new(r->a, syntax_stmt);
    *s = (syntax_stmt){.kind = SYNTAX_ASSIGN, .span = returned->span, .value = returned->value};
    if (r->arity == 1) {
        s->target = name_expr(r, 0, returned->span);
        return s;
    }
    s->target = arena_new(r->a, syntax_expr);
    *s->target = (syntax_expr){.kind = SYNTAX_TUPLE, .span = returned->span};
    for (int32_t i = 0; i < r->arity; i++)
        vec_push(r->a, &s->target->items, name_expr(r, i, returned->span));
    return s;
}

static syntax_block rewritten(rewriting *r, const syntax_block *block, const syntax_block *rest);

/* The statements of a branch and, unless it returns, what follows the branch. */
static syntax_block branch_with(rewriting *r, const syntax_block *branch, const syntax_block *rest)
{
    const syntax_block nothing = {0};
    return rewritten(r, branch, always_returns(branch) ? &nothing : rest);
}

static syntax_block rewritten(rewriting *r, const syntax_block *block, const syntax_block *rest)
{
    syntax_block all = {0};
    for (int64_t i = 0; i < block->count; i++)
        vec_push(r->a, &all, block->items[i]);
    for (int64_t i = 0; i < rest->count; i++)
        vec_push(r->a, &all, rest->items[i]);
    syntax_block out = {0};
    for (int64_t i = 0; i < all.count && r->statements < MOST_STATEMENTS; i++) {
        const syntax_stmt *s = all.items[i];
        r->statements++;
        if (s->kind == SYNTAX_RETURN) {
            if (s->value != NULL)
                vec_push(r->a, &out, result_assignment(r, s));
            break;
        }
        if (s->kind != SYNTAX_IF || (!has_return(&s->body) && !has_return(&s->orelse))) {
            vec_push(r->a, &out, all.items[i]);
            continue;
        }
        syntax_block behind = all;
        behind.items += i + 1;
        behind.count -= i + 1;
        syntax_stmt *parted = arena_new(r->a, syntax_stmt);
        *parted = *s;
        parted->body = branch_with(r, &s->body, &behind);
        parted->orelse = branch_with(r, &s->orelse, &behind);
        vec_push(r->a, &out, parted);
        break;
    }
    return out;
}

static bool is_taken(const lowering *fl, const char *name)
{
    return binding_find(fl, name) >= 0;
}

bool returns_early(const syntax_block *body)
{
    for (int64_t i = 0; i < body->count; i++) {
        const syntax_stmt *s = body->items[i];
        if (s->kind == SYNTAX_IF && (has_return(&s->body) || has_return(&s->orelse)))
            return true;
    }
    return false;
}

bool part_at_returns(const lowering *fl, const syntax_function *f, early_returns *found)
{
    rewriting r = {.a = fl->a, .arity = arity_of(&f->body)};
    const char **names = arena_array(fl->a, const char *, r.arity + 1);
    for (int32_t i = 0; i < r.arity; i++) {
        names[i] = r.arity == 1 ? arena_printf(fl->a, "%s_result", f->name)
                                : arena_printf(fl->a, "%s_result%d", f->name, i);
        while (is_taken(fl, names[i]))
            names[i] = arena_printf(fl->a, "%s_", names[i]);
    }
    r.names = names;
    const syntax_block nothing = {0};
    *found = (early_returns){rewritten(&r, &f->body, &nothing), names, r.arity};
    return r.statements < MOST_STATEMENTS;
}
