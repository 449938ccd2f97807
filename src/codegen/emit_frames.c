/* Small stack frames for long functions.
 *
 * What a statement puts on the stack, views of tensors and arrays of arguments, stays there to the end of its
 * block, for all that C compilers do about it; and tasks have small stacks, because many may wait. A function with
 * many such statements gets blocks of its own for them, which share their memory:
 *
 *     {
 *         const pld_tensor x_0 = pld_index(core, x, 1, PLD_AT(0));
 *         pld_submit(core, &step_function, PLD_ARGS(PLD_TENSOR(&x_0)), 1);
 *     }
 *
 * Such a block holds the statement and those behind it up to the last one that mentions what is declared in it. */
#include "codegen/emit_internal.h"

/* Statements of a function that take stack, before it gets such blocks; and how many a block may hold. */
#define FRAME_STATEMENTS 48
#define FRAME_GROUP 32

static void count_taker(void *context, ir_stmt *s)
{
    *(int64_t *)context += calls_library(s) ? 1 : 0;
}

void plan_frames(emitter *e)
{
    int64_t takers = 0;
    ir_visit_stmts(&e->f->body, count_taker, &takers);
    e->splits_frame = takers > FRAME_STATEMENTS;
}

/* ---- the blocks of one block ---- */

typedef struct mentions {
    emitter *e;
    int64_t at; /* the statement of the block that is being looked into */
} mentions;

static void note_mention(void *context, ir_var *var)
{
    const mentions *m = context;
    m->e->vars[var->id].last_mention = m->at;
}

static void note_mentions(void *context, ir_stmt *s)
{
    const mentions *m = context;
    ir_visit_uses(s, note_mention, context);
    if (s->target != NULL)
        m->e->vars[s->target->id].last_mention = m->at;
}

/* The last statement that mentions what this one declares. */
static int64_t needed_until(const emitter *e, const ir_stmt *s)
{
    const ir_var *const *before;
    const int64_t count = declared_before(e, s, &before);
    int64_t until = 0;
    if (s->target != NULL && e->vars[s->target->id].defined_by == s)
        until = e->vars[s->target->id].last_mention;
    for (int64_t i = 0; i < count; i++) {
        const int64_t last = e->vars[before[i]->id].last_mention;
        until = last > until ? last : until;
    }
    return until;
}

static int32_t group_at(const emitter *e, const ir_block *block, int64_t first)
{
    int64_t until = first;
    bool worth = false;
    for (int64_t i = first; i <= until && i < first + FRAME_GROUP; i++) {
        const int64_t needed = needed_until(e, block->items[i]);
        until = needed > until ? needed : until;
        worth = worth || calls_library(block->items[i]);
    }
    return worth && until < first + FRAME_GROUP ? (int32_t)(until + 1 - first) : 0;
}

const int32_t *frame_groups(emitter *e, const ir_block *block)
{
    if (!e->splits_frame)
        return NULL;
    mentions m = {.e = e};
    for (; m.at < block->count; m.at++) {
        ir_stmt *s = block->items[m.at];
        note_mentions(&m, s);
        ir_visit_stmts(&s->body, note_mentions, &m);
        ir_visit_stmts(&s->orelse, note_mentions, &m);
    }
    int32_t *groups = arena_array(e->a, int32_t, block->count + 1);
    for (int64_t i = 0, size; i < block->count; i += size) {
        groups[i] = group_at(e, block, i);
        size = groups[i] > 0 ? groups[i] : 1;
    }
    return groups;
}
