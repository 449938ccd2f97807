/* Where tensors end that loops make (pl.create_tensor, results of scopes): at the end of the turn, so that the
 * next one may have their memory.
 *
 * A tensor ends with its block if nothing can reach it afterwards. Variables are places, so we collect those
 * that may hold it or a view of it, and each of them has to live within the block: the first statement that
 * mentions it assigns it, and all others stand below the block of that one. What a later turn, a statement
 * behind the loop or a caller may still see does not, and stays until the dispatch, or the call, ends.
 *
 * The runtime waits for tasks, or dispatches, that use the memory (runtime/task, host/staging). A turn that leaves its block early ends its
 * tensors in front of the break or continue. */
#include "base/diag.h"
#include "ops/ops.h"
#include "passes/passes.h"

typedef struct ending {
    ir_program *p;
    ir_function *f;
    bool *holds; /* by variable: it may hold the tensor */
    bool changed;
    const ir_var *counted;
    int64_t mentions;
} ending;

/* ---- who holds it ---- */

static void hold(ending *e, const ir_stmt *s, const ir_var *source)
{
    if (source == NULL || !e->holds[source->id] || e->holds[s->target->id])
        return;
    e->holds[s->target->id] = true;
    e->changed = true;
}

static void follow(void *context, ir_stmt *s)
{
    ending *e = context;
    if (s->target == NULL || !ir_is_handle(s->target->type.kind))
        return;
    hold(e, s, s->source);
    for (int32_t i = 0; i < s->operand_count; i++)
        hold(e, s, s->operands[i].kind == IR_OPERAND_VAR ? s->operands[i].var : NULL);
}

/* ---- how long ---- */

static void count_use(void *context, ir_var *var)
{
    ending *e = context;
    e->mentions += var == e->counted;
}

static void count(void *context, ir_stmt *s)
{
    ending *e = context;
    e->mentions += s->target == e->counted;
    ir_visit_uses(s, count_use, e);
}

static int64_t mentions(ending *e, const ir_block *block, const ir_var *var)
{
    e->counted = var;
    e->mentions = 0;
    ir_visit_stmts(block, count, e);
    return e->mentions;
}

/* The block of the first statement that mentions the variable, and that statement. */
static const ir_block *first_mention(ending *e, const ir_block *block, const ir_var *var,
                                     const ir_stmt **first)
{
    for (int64_t i = 0; i < block->count; i++) {
        const ir_stmt *s = block->items[i];
        if (s->target == var || ir_reads(s, var)) {
            *first = s;
            return block;
        }
        const ir_block *found = first_mention(e, &s->body, var, first);
        if (found == NULL)
            found = first_mention(e, &s->orelse, var, first);
        if (found != NULL)
            return found;
    }
    return NULL;
}

static bool lives_within(ending *e, const ir_block *block, const ir_var *var)
{
    const ir_stmt *first = NULL;
    const ir_block *home = first_mention(e, block, var, &first);
    return var->kind == IR_VAR_LOCAL && home != NULL && first->target == var &&
           !ir_reads(first, var) && mentions(e, home, var) == mentions(e, &e->f->body, var);
}

static bool ends_with(ending *e, const ir_block *block, const ir_var *tensor)
{
    e->holds = arena_array(e->p->a, bool, e->f->vars.count + 1);
    e->holds[tensor->id] = true;
    do {
        e->changed = false;
        ir_visit_stmts(&e->f->body, follow, e);
    } while (e->changed);
    bool ends = true;
    for (int64_t i = 0; i < e->f->vars.count; i++)
        ends = ends && (!e->holds[i] || lives_within(e, block, e->f->vars.items[i]));
    return ends;
}

/* ---- ends ---- */

/* Puts the end in front of what leaves the block's turn early, and behind the block; `from` is the index of
 * the first statement to look at. */
static void put_ends(ending *e, ir_block *block, int64_t from, const ir_stmt *made, bool is_home)
{
    for (int64_t i = from; i < block->count; i++) {
        ir_stmt *s = block->items[i];
        if (s->kind == IR_IF) {
            put_ends(e, &s->body, 0, made, false);
            put_ends(e, &s->orelse, 0, made, false);
        }
    }
    const ir_stmt_kind last = block->count > 0 ? block->items[block->count - 1]->kind : IR_DO;
    const bool leaves = last == IR_BREAK || last == IR_CONTINUE;
    if (last == IR_RETURN || !(is_home || leaves))
        return;
    ir_stmt *end = ir_stmt_create(e->p, block, IR_DO, made->span);
    end->op_def =
        op_get(e->f->plane == PLD_PLANE_HOST ? OP_HOST_RELEASE_TENSOR : OP_RELEASE_TENSOR);
    end->operand_count = 1;
    end->operands = arena_array(e->p->a, ir_operand, 1);
    end->operands[0] =
        (ir_operand){.kind = IR_OPERAND_VAR, .var = made->target, .span = made->span};
    if (!leaves)
        return;
    block->items[block->count - 1] = block->items[block->count - 2];
    block->items[block->count - 2] = end;
}

static void visit_block(ending *e, ir_block *block, bool in_loop)
{
    const int64_t count_now = block->count; /* ends come behind */
    for (int64_t i = 0; i < block->count && i < count_now; i++) {
        ir_stmt *s = block->items[i];
        const bool loops = s->kind == IR_FOR || s->kind == IR_WHILE;
        visit_block(e, &s->body, in_loop || loops);
        visit_block(e, &s->orelse, in_loop);
        int64_t definitions = 0;
        if (in_loop && s->kind == IR_DO && op_creates_tensor(s->op_def) && s->target != NULL &&
            ir_definition(&e->f->body, s->target, &definitions) == s && definitions == 1 &&
            ends_with(e, block, s->target))
            put_ends(e, block, i + 1, s, true);
    }
}

pypto_status pass_release(ir_program *p)
{
    ending e = {.p = p};
    for (int64_t i = 0; i < p->functions.count; i++) {
        e.f = p->functions.items[i];
        visit_block(&e, &e.f->body, false);
    }
    return STATUS_OK;
}
