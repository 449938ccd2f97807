/* When the tiles of a kernel are alive: step 1 of plan_scratch.c.
 *
 * Liveness goes backwards over the structured statements with sets of tiles. The result is one interval of positions per
 * tile, the hull of all points where its value is needed; each statement has two positions, in front of it (even) and
 * behind it (odd). What a loop's body reads of the turn before is found by a walk ahead (gather_block); such a tile is
 * alive at both ends of the body, hence in the whole loop. (So is one that a branch of the body writes and that is read
 * after the loop.) So each walk passes each statement once, however deeply loops are nested. */
#include "passes/plan_scratch_internal.h"

#include "base/bits.h"

#include <string.h>

typedef struct liveness {
    planner *plan;
    int64_t words;     /* of a set of tiles */
    uint64_t *touched; /* tiles that the statement at hand reads, collected by note_use */
    /* Per loop, in the order in which both walks enter them: tiles that a turn needs at its start. */
    VEC(uint64_t *) needed;
    int64_t loop;             /* the next one of them */
    const uint64_t *at_break; /* of the innermost loop: alive behind it, and where a turn starts */
    const uint64_t *at_continue;
} liveness;

/* ---- sets of tiles ---- */

static uint64_t *new_set(const liveness *l)
{
    return arena_array(l->plan->p->a, uint64_t, l->words);
}

static uint64_t *copy_set(const liveness *l, const uint64_t *set)
{
    uint64_t *copy = new_set(l);
    memcpy(copy, set, (size_t)l->words * sizeof *copy);
    return copy;
}

static void unite(const liveness *l, uint64_t *into, const uint64_t *set)
{
    for (int64_t i = 0; i < l->words; i++)
        into[i] |= set[i];
}

/* ---- the walks ---- */

/* The tiles of the set are alive at that position. */
static void mark(liveness *l, const uint64_t *set, int64_t position, int64_t line)
{
    for (int64_t word = 0; word < l->words; word++) {
        for (uint64_t bits = set[word]; bits != 0; bits &= bits - 1) {
            place *at = &l->plan->places[word * 64 + __builtin_ctzll(bits)];
            if (position < at->first) {
                at->first = position;
                at->first_line = line;
            }
            if (position > at->last) {
                at->last = position;
                at->last_line = line;
            }
        }
    }
}

static void note_use(void *context, ir_var *var)
{
    liveness *l = context;
    if (l->plan->place_of[var->id] >= 0)
        bits_add(l->touched, l->plan->place_of[var->id]);
}

/* Moves `live` over the block backwards, as live_block() does, without marking anything. Jumps count
 * as needing nothing: what a loop needs is then what its body reads before it writes it. */
static void gather_block(liveness *l, const ir_block *block, uint64_t *live);

static void gather_stmt(liveness *l, const ir_stmt *s, uint64_t *live)
{
    bool jumps = s->kind == IR_RETURN || s->kind == IR_BREAK || s->kind == IR_CONTINUE;
    if (jumps)
        memset(live, 0, (size_t)l->words * sizeof *live);
    if (s->kind == IR_FOR || s->kind == IR_WHILE) {
        int64_t index = l->needed.count;
        uint64_t *entry = new_set(l);
        vec_push(l->plan->p->a, &l->needed, entry);
        gather_block(l, &s->body, entry);
        unite(l, live, l->needed.items[index]);
    }
    if (s->kind == IR_IF) {
        uint64_t *orelse = copy_set(l, live);
        gather_block(l, &s->orelse, orelse);
        gather_block(l, &s->body, live);
        unite(l, live, orelse);
    }
    int32_t target = s->target != NULL ? l->plan->place_of[s->target->id] : -1;
    if (target >= 0)
        bits_remove(live, target);
    l->touched = live;
    ir_visit_uses(s, note_use, l);
}

static void gather_block(liveness *l, const ir_block *block, uint64_t *live)
{
    for (int64_t i = block->count - 1; i >= 0; i--)
        gather_stmt(l, block->items[i], live);
}

static void live_block(liveness *l, const ir_block *block, uint64_t *live);

static void live_loop(liveness *l, const ir_stmt *s, uint64_t *live)
{
    const uint64_t *at_break = l->at_break;
    const uint64_t *at_continue = l->at_continue;
    uint64_t *behind = copy_set(l, live);
    unite(l, live, l->needed.items[l->loop++]);
    uint64_t *turn = copy_set(l, live);
    l->at_break = behind;
    l->at_continue = live;
    live_block(l, &s->body, turn);
    l->at_break = at_break;
    l->at_continue = at_continue;
}

static void live_if(liveness *l, const ir_stmt *s, uint64_t *live)
{
    uint64_t *orelse = copy_set(l, live);
    live_block(l, &s->orelse, orelse);
    live_block(l, &s->body, live);
    unite(l, live, orelse);
}

/* Moves `live` from behind the statement to before it. */
static void live_stmt(liveness *l, const ir_stmt *s, uint64_t *live)
{
    bool nested = s->kind == IR_FOR || s->kind == IR_WHILE || s->kind == IR_IF;
    size_t set_bytes = (size_t)l->words * sizeof *live;
    if (s->kind == IR_FOR || s->kind == IR_WHILE)
        live_loop(l, s, live);
    if (s->kind == IR_IF)
        live_if(l, s, live);
    if (s->kind == IR_RETURN)
        memset(live, 0, set_bytes);
    if (s->kind == IR_BREAK)
        memcpy(live, l->at_break, set_bytes);
    if (s->kind == IR_CONTINUE)
        memcpy(live, l->at_continue, set_bytes);

    l->plan->position -= 2;
    int32_t target = s->target != NULL ? l->plan->place_of[s->target->id] : -1;
    if (target >= 0)
        bits_add(live, target); /* written here, even if never read */
    if (!nested)
        mark(l, live, l->plan->position + 1, s->span.line);
    l->touched = live;
    ir_visit_uses(s, note_use, l);
    mark(l, live, l->plan->position, s->span.line);
    if (target >= 0 && !ir_reads(s, s->target))
        bits_remove(live, target);
}

static void live_block(liveness *l, const ir_block *block, uint64_t *live)
{
    for (int64_t i = block->count - 1; i >= 0; i--)
        live_stmt(l, block->items[i], live);
}

static void count_stmt(void *context, ir_stmt *s)
{
    (void)s;
    *(int64_t *)context += 2;
}

void find_lives(planner *plan)
{
    liveness l = {.plan = plan, .words = plan->count / 64 + 1};
    const ir_block *body = &plan->f->body;
    ir_visit_stmts(body, count_stmt, &plan->position);
    gather_block(&l, body, new_set(&l));
    live_block(&l, body, new_set(&l));
    plan->position = 0;
}
