/* Looking ahead in the text of a function: where a name is read, and where it is bound.
 *
 * Lowering goes through the statements in order and asks here what will come. Whether a name takes a value
 * out of a scope (crosses_scopes) decides if the scope has to give it: giving costs a parameter and a wait, so
 * two scopes that merely use the same name for themselves, `for j in pl.range(8)` in each, must
 * not have anything to do with each other. Both questions are about names as they are written; a
 * condition may go either way, and a loop may have any number of turns.
 *
 * What will not be lowered is looked at too: buffers that only it uses are no mistake (leave_out). */
#include "frontend/flow.h"
#include "frontend/lower.h"
#include "frontend/scopes.h"

#include <string.h>

typedef enum mention_kind { MENTION_NONE, MENTION_READ, MENTION_BOUND } mention_kind;

static bool is_name(void *context, const syntax_expr *e)
{
    const char *const *name = context;
    return e->kind == SYNTAX_NAME && strcmp(e->text, *name) == 0;
}

static bool expr_mentions(const syntax_expr *e, const char *name)
{
    return syntax_any(e, is_name, &name);
}

/* `x[i] = value` reads x. */
static mention_kind target_mention(const syntax_expr *target, const char *name)
{
    if (!expr_mentions(target, name))
        return MENTION_NONE;
    return target->kind == SYNTAX_SUBSCRIPT ? MENTION_READ : MENTION_BOUND;
}

static mention_kind first_mention(const syntax_block *block, const char *name)
{
    mention_kind kind = MENTION_NONE;
    for (int64_t i = 0; i < block->count && kind == MENTION_NONE; i++) {
        const syntax_stmt *s = block->items[i];
        if (expr_mentions(s->value, name) ||
            (s->kind == SYNTAX_AUGMENTED && expr_mentions(s->target, name)))
            return MENTION_READ;
        kind = target_mention(s->target, name);
        for (int64_t k = 0; k < s->items.count && kind == MENTION_NONE; k++) {
            const bool is_target = s->kind == SYNTAX_WITH && k % 2 == 1;
            if (expr_mentions(s->items.items[k], name))
                kind = is_target ? target_mention(s->items.items[k], name) : MENTION_READ;
        }
        if (kind == MENTION_NONE)
            kind = first_mention(&s->body, name);
        if (kind == MENTION_NONE)
            kind = first_mention(&s->orelse, name);
    }
    return kind;
}

bool reads_first(const syntax_block *block, const char *name)
{
    return first_mention(block, name) == MENTION_READ;
}

/* ---- values that leave a scope ---- */

/* One name on its way through the text. */
typedef struct crossing {
    lowering *fl;
    const char *name;
    bool reaches; /* it may be what a scope that has ended bound it to */
    bool jumped;  /* the same, at a break or continue of the loop at hand */
    bool binds;   /* the text so far has bound it */
    bool crosses; /* it was read while it might be */
} crossing;

static void cross_block(crossing *c, const syntax_block *block);

static void cross_read(crossing *c, const syntax_expr *e)
{
    c->crosses = c->crosses || (c->reaches && expr_mentions(e, c->name));
}

static void cross_target(crossing *c, const syntax_stmt *s, const syntax_expr *target)
{
    const mention_kind kind = target_mention(target, c->name);
    if (kind == MENTION_READ || (kind == MENTION_BOUND && s->kind == SYNTAX_AUGMENTED))
        cross_read(c, target);
    if (kind != MENTION_BOUND)
        return;
    c->reaches = false;
    c->binds = true;
}

static void cross_if(crossing *c, const syntax_stmt *s)
{
    const bool before = c->reaches;
    cross_block(c, &s->body);
    const bool after = c->reaches;
    c->reaches = before;
    cross_block(c, &s->orelse);
    c->reaches = c->reaches || after;
}

/* The end of a turn leads to its head. A second turn finds something new only if the first one began without what
 * then reaches its end. */
static void cross_loop(crossing *c, const syntax_stmt *s)
{
    const bool jumped = c->jumped;
    bool reached = c->reaches;
    c->jumped = c->reaches;
    for (;;) {
        if (s->kind == SYNTAX_FOR)
            cross_target(c, s, s->target);
        else
            cross_read(c, s->value);
        cross_block(c, &s->body);
        c->reaches = c->reaches || c->jumped;
        if (reached || !c->reaches)
            break;
        reached = true;
    }
    c->jumped = jumped;
    cross_block(c, &s->orelse);
}

static void cross_scope(crossing *c, const syntax_stmt *s)
{
    const bool binds = c->binds;
    c->binds = false;
    for (int64_t k = 1; k < s->items.count; k += 2)
        cross_target(c, s, s->items.items[k]);
    if (s->kind == SYNTAX_FOR)
        cross_target(c, s, s->target);
    cross_block(c, &s->body);
    c->reaches = c->reaches || c->binds;
    c->binds = c->binds || binds;
}

static void cross_stmt(crossing *c, const syntax_stmt *s)
{
    cross_read(c, s->value);
    cross_read(c, s->annotation);
    for (int64_t k = 0; k < s->items.count; k += s->kind == SYNTAX_WITH ? 2 : 1)
        cross_read(c, s->items.items[k]);
    switch (s->kind) {
    case SYNTAX_IF: cross_if(c, s); break;
    case SYNTAX_WITH: cross_scope(c, s); break;
    case SYNTAX_FOR:
    case SYNTAX_WHILE:
        if (is_scope_loop(c->fl, s))
            cross_scope(c, s);
        else
            cross_loop(c, s);
        break;
    case SYNTAX_BREAK:
    case SYNTAX_CONTINUE: c->jumped = c->jumped || c->reaches; break;
    default: cross_target(c, s, s->target); break;
    }
}

static void cross_block(crossing *c, const syntax_block *block)
{
    for (int64_t i = 0; i < block->count && !c->crosses; i++)
        cross_stmt(c, block->items[i]);
}

bool crosses_scopes(lowering *fl, int64_t name)
{
    bool *known = &fl->names.crossings[name].known;
    bool *crosses = &fl->names.crossings[name].crosses;
    if (!*known) {
        crossing c = {.fl = fl, .name = fl->names.names[name]};
        cross_block(&c, &fl->syntax->body);
        *crosses = c.crosses;
        *known = true;
    }
    return *crosses;
}

/* ---- which names a block mentions ---- */

typedef struct mentions {
    lowering *fl;
    name_set set;
} mentions;

static bool note_mention(void *context, const syntax_expr *e)
{
    mentions *m = context;
    lowering *fl = m->fl;
    int64_t name = e->kind == SYNTAX_NAME ? binding_find(fl, e->text) : -1;
    if (name >= 0 && fl->names.slots[name] < 0) {
        fl->names.slots[name] = m->set.count;
        vec_push(fl->a, &m->set, name);
    }
    return false;
}

static void mention_block(mentions *m, const syntax_block *block)
{
    for (int64_t i = 0; i < block->count; i++) {
        const syntax_stmt *s = block->items[i];
        (void)syntax_any(s->target, note_mention, m);
        (void)syntax_any(s->annotation, note_mention, m);
        (void)syntax_any(s->value, note_mention, m);
        for (int64_t k = 0; k < s->items.count; k++)
            (void)syntax_any(s->items.items[k], note_mention, m);
        mention_block(m, &s->body);
        mention_block(m, &s->orelse);
    }
}

name_set mentioned(lowering *fl, const syntax_block *block)
{
    mentions m = {.fl = fl};
    mention_block(&m, block);
    for (int64_t i = 0; i < m.set.count; i++)
        fl->names.slots[m.set.items[i]] = -1;
    return m.set;
}

void leave_out(lowering *fl, const syntax_block *block)
{
    const name_set names = mentioned(fl, block);
    for (int64_t i = 0; i < names.count; i++) {
        const binding *b = fl->names.bindings[names.items[i]];
        if (b->state == BINDING_BOUND && b->v.kind == VALUE_VAR && b->v.var->buffer >= 0)
            fl->fe->program->buffers.items[b->v.var->buffer].left_out = true;
    }
}
