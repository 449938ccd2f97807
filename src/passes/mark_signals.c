/* Which window buffers hold signals of collectives (ir_buffer.collectives), and whether kernels reach peers in any other
 * way (ir_program.collectives_only).
 *
 * The runtime keeps a channel behind such a buffer for each signal that may be in it, and has to know how many
 * when it allocates: one, if every signal is the whole buffer, as its kernels see it; else as many as fit.
 *
 * In each function we follow where windows come from: its parameters, or in a host function the buffers. A
 * window is the whole of its origin, from the first cell, or a part somewhere in it (a slice, a view of another
 * shape). What a collective does to the origins of its signal is what a call does to the origins of the
 * argument; callees come before callers, so one walk over the functions is enough. */
#include "base/bits.h"
#include "base/diag.h"
#include "ops/ops.h"
#include "passes/passes.h"

typedef struct origins {
    uint64_t *whole; /* sets of origins */
    uint64_t *part;
} origins;

typedef struct marking {
    ir_program *p;
    const ir_function *f;
    int64_t words;              /* of a set */
    origins *of;                /* by variable of f */
    pld_collectives **by_param; /* by function and parameter */
    pld_collectives *mine;      /* by origin of f */
    bool changed;
} marking;

/* ---- where windows come from ---- */

static void add(marking *m, uint64_t *to, const uint64_t *from)
{
    for (int64_t i = 0; i < m->words; i++) {
        m->changed |= (from[i] & ~to[i]) != 0;
        to[i] |= from[i];
    }
}

static void flow(marking *m, const ir_var *target, const ir_var *source, bool same)
{
    const origins *to = &m->of[target->id];
    const origins *from = &m->of[source->id];
    add(m, same ? to->whole : to->part, from->whole);
    add(m, to->part, from->part);
}

/* A statement whose result is, or lies in, the memory of an operand. */
static void flow_statement(void *context, ir_stmt *s)
{
    marking *m = context;
    if (s->target == NULL || !ir_is_handle(s->target->type.kind))
        return;
    if (s->kind == IR_ASSIGN && s->source != NULL)
        flow(m, s->target, s->source, true);
    for (int32_t i = 0; s->kind == IR_DO && i < s->operand_count; i++) {
        const bool same = s->op_def->id == OP_WINDOW || s->op_def->result_param == i;
        if (s->operands[i].kind == IR_OPERAND_VAR)
            flow(m, s->target, s->operands[i].var, same);
    }
}

static void find_origins(marking *m)
{
    const ir_function *f = m->f;
    const bool host = f->plane == PLD_PLANE_HOST;
    arena *a = m->p->a;
    const int64_t count = host ? m->p->buffers.count : f->params.count;
    m->words = count / 64 + 1;
    m->mine = arena_array(a, pld_collectives, count + 1);
    m->of = arena_array(a, origins, f->vars.count + 1);
    for (int64_t i = 0; i < f->vars.count; i++) {
        const ir_var *var = f->vars.items[i];
        m->of[i] =
            (origins){arena_array(a, uint64_t, m->words), arena_array(a, uint64_t, m->words)};
        if (host && var->type.kind == IR_BUFFER && var->buffer >= 0)
            bits_add(m->of[i].whole, var->buffer);
    }
    for (int64_t i = 0; !host && i < f->params.count; i++)
        bits_add(m->of[f->params.items[i]->id].whole, i);
    do {
        m->changed = false;
        ir_visit_stmts(&f->body, flow_statement, m);
    } while (m->changed);
}

/* ---- marks ---- */

static void mark_set(marking *m, const uint64_t *set, pld_collectives mark)
{
    for (int64_t i = 0; i < m->words * 64; i++) {
        if (bits_have(set, i) && m->mine[i] < mark)
            m->mine[i] = mark;
    }
}

static void mark_statement(void *context, ir_stmt *s)
{
    marking *m = context;
    for (int32_t i = 0; i < s->operand_count; i++) {
        pld_collectives mark = PLD_NO_COLLECTIVES;
        if (s->kind == IR_DO && (s->op_def->signals >> i & 1) != 0)
            mark = PLD_ONE_SIGNAL;
        if (s->kind == IR_CALL)
            mark = m->by_param[s->callee->index][i];
        if (mark == PLD_NO_COLLECTIVES || s->operands[i].kind != IR_OPERAND_VAR)
            continue;
        mark_set(m, m->of[s->operands[i].var->id].whole, mark);
        mark_set(m, m->of[s->operands[i].var->id].part, PLD_MANY_SIGNALS);
    }
}

static void look_for_peers(void *context, ir_stmt *s)
{
    bool *found = context;
    *found |= s->kind == IR_DO && op_reaches_peers(s->op_def);
}

static bool uses_collectives_only(const ir_program *p)
{
    bool collectives = false, peers = false;
    for (int64_t i = 0; i < p->buffers.count; i++)
        collectives |= p->buffers.items[i].collectives != PLD_NO_COLLECTIVES;
    for (int64_t i = 0; i < p->functions.count; i++)
        ir_visit_stmts(&p->functions.items[i]->body, look_for_peers, &peers);
    return collectives && !peers;
}

pypto_status pass_mark_signals(ir_program *p)
{
    marking m = {.p = p};
    m.by_param = arena_array(p->a, pld_collectives *, p->functions.count + 1);
    for (int64_t i = 0; i < p->functions.count; i++) {
        m.f = p->functions.items[i];
        find_origins(&m);
        ir_visit_stmts(&m.f->body, mark_statement, &m);
        m.by_param[i] = m.mine;
        for (int64_t k = 0; m.f->plane == PLD_PLANE_HOST && k < p->buffers.count; k++)
            p->buffers.items[k].collectives = m.mine[k];
    }
    p->collectives_only = uses_collectives_only(p);
    return STATUS_OK;
}
