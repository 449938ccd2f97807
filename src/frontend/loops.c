/* for and while, break and continue.
 *
 * A turn of a loop starts where the loop was entered *and* where the turn before it ended. So that both
 * find each name in one place, names that the body binds get a variable of their own before the loop:
 * scalars and tiles always, if they have none yet; turns that end with another value in hand assign it.
 * For handles a variable would hide which storage a name means, so only those get one that turn out to
 * need it. That is known after the body, which is then lowered once more. What was found out is remembered
 * per loop, so that lowering an outer loop again does not lower the inner ones twice each: a body is
 * lowered at most ATTEMPTS times per loop around it, not a power of it.
 *
 * After the loop, names are what the ends of turns, the breaks, and the way past the loop agree on
 * (loop_ends.c). */
#include "frontend/bindings.h"
#include "frontend/loops_internal.h"
#include "frontend/scalars.h"
#include "frontend/scopes.h"
#include "frontend/statements.h"

#include <string.h>

enum { ATTEMPTS = 4 };

/* ---- before the body ---- */

static loop_memory *remembered(lowering *fl, const syntax_stmt *s)
{
    for (int64_t i = 0; i < fl->loop_memories->count; i++) {
        if (fl->loop_memories->items[i]->loop == s)
            return fl->loop_memories->items[i];
    }
    return NULL;
}

/* Gives the name a variable of that type, which it has from turn to turn. */
static void carry(lowering *fl, int64_t name, ir_type type)
{
    binding *b = fl->names.bindings[name];
    ir_var *var = binding_target(fl, name, &type, b->span);
    bool handle = ir_is_handle(type.kind);
    var->may_be_unset = var->may_be_unset || b->open;
    if (handle) {
        vec_push(fl->a, &fl->notes->cells, var);
        mark_read(b);
    }
    emit_assign(fl, var, &b->v, b->span);
    bind_name(fl, name, var_value(fl->a, var, b->span), b->span);
    fl->names.bindings[name]->cell = handle;
    fl->names.bindings[name]->open = b->open;
}

/* The type that a name was found to have from turn to turn, where it starts as a `type`. */
static ir_type widened(const loop_memory *memory, int64_t name, ir_type type)
{
    for (int64_t i = 0; memory != NULL && i < memory->widened.count; i++) {
        const widened_name *w = &memory->widened.items[i];
        if (w->name == name && type_widens(&type, &w->type))
            type = w->type;
    }
    return type;
}

static void carry_names(lowering *fl, const loop *l, const loop_memory *memory)
{
    for (int64_t i = 0; i < l->assigned.count; i++) {
        int64_t name = l->assigned.items[i];
        binding *b = fl->names.bindings[name];
        ir_type type;
        if (b->state == BINDING_INSIDE)
            keep_value(fl, name, b);
        if (b->state != BINDING_BOUND || !value_type(&b->v, &type))
            continue;
        const ir_var *var = value_var(&b->v);
        type = widened(memory, name, type);
        bool wanted =
            ir_is_handle(type.kind)
                ? memory != NULL && !b->cell &&
                      (memory->attempts >= ATTEMPTS - 1 || name_set_has(&memory->carried, name))
                : var == NULL || !binding_owns(fl, name, var) || !ir_type_equal(&var->type, &type);
        if (wanted)
            carry(fl, name, type);
    }
}

/* Names that the body binds start as copies, which show whether they were read. */
static void copy_entry(lowering *fl, loop *l)
{
    l->entry = arena_array(fl->a, binding *, l->assigned.count);
    for (int64_t i = 0; i < l->assigned.count; i++) {
        int64_t name = l->assigned.items[i];
        binding *copy = arena_new(fl->a, binding);
        *copy = *fl->names.bindings[name];
        copy->read = false;
        copy->origin = fl->names.bindings[name];
        binding_set(fl, name, copy);
        l->entry[i] = copy;
    }
}

/* ---- the body ---- */

/* while: the condition, or where it takes statements `if not condition: break` at the body's start. */
static void lower_condition(lowering *fl, loop *l)
{
    dsl_value test;
    bool ok = condition(fl, l->condition, "while", &test);
    l->stmt->value = ok ? test.expr : ir_bool(fl->a, false);
    l->endless = ok && test.expr->kind == IR_BOOL && test.expr->integer != 0;
    if (l->stmt->body.count == 0)
        return;
    pypto_span span = l->condition->span;
    ir_stmt *leave = ir_stmt_create(fl->fe->program, fl->block, IR_IF, span);
    leave->value = ir_unary(fl->a, IR_NOT, l->stmt->value, PYPTO_BOOL, span);
    ir_stmt_create(fl->fe->program, &leave->body, IR_BREAK, span);
    l->stmt->value = ir_bool(fl->a, true);
}

static void create_stmt(lowering *fl, loop *l)
{
    const syntax_stmt *s = l->syntax;
    if (l->condition != NULL) {
        l->stmt = ir_stmt_create(fl->fe->program, fl->block, IR_WHILE, s->span);
        return;
    }
    l->stmt = ir_stmt_create(fl->fe->program, fl->block, IR_FOR, s->span);
    l->stmt->start = l->range.start;
    l->stmt->stop = l->range.stop;
    l->stmt->step = l->range.step;
    l->stmt->target =
        ir_var_create(fl->fe->program, fl->ir, IR_VAR_LOOP, fl->names.names[l->target],
                      ir_scalar_type(PYPTO_INDEX), l->target_span);
    if (l->range.over_world)
        vec_push(fl->a, &fl->notes->world_loops, l->stmt->target);
}

static void lower_body(lowering *fl, loop *l)
{
    loop_frame frame = {.outer = fl->loop, .no_jumps = l->no_jumps, .mark = fl->trail.count};
    create_stmt(fl, l);
    lowering body = *fl;
    body.block = &l->stmt->body;
    body.loop = &frame;
    body.carries = l->carries;
    body.in_branch = false;
    body.depth++;
    body.loops++;
    if (l->condition != NULL)
        lower_condition(&body, l);
    else
        bind_name(&body, l->target, var_value(fl->a, l->stmt->target, l->target_span),
                  l->target_span);
    lower_block(&body, &l->body);
    l->turns = frame.continues;
    l->breaks = frame.breaks;
    if (!body.terminated)
        vec_push(fl->a, &l->turns, path_here(&body, frame.mark, body.block, false));
    binding_undo(&body, frame.mark);
}

void lower_jump(lowering *fl, const syntax_stmt *s)
{
    bool leaves = s->kind == SYNTAX_BREAK;
    const char *word = leaves ? "break" : "continue";
    loop_frame *frame = fl->loop;
    fl->terminated = true;
    if (frame == NULL) {
        report(fl->fe, DIAG_MISPLACED_JUMP, s->span, NULL, "'%s' outside loop", word);
        return;
    }
    if (frame->no_jumps != NULL) {
        report(fl->fe, DIAG_MISPLACED_JUMP, s->span, "use pl.range", "'%s' not supported inside %s",
               word, frame->no_jumps);
        return;
    }
    ir_stmt_create(fl->fe->program, fl->block, leaves ? IR_BREAK : IR_CONTINUE, s->span);
    flow_path end = path_here(fl, frame->mark, fl->block, true);
    if (leaves)
        vec_push(fl->a, &frame->breaks, end);
    else
        vec_push(fl->a, &frame->continues, end);
}

/* Takes out what stands behind a statement (NULL: everything). What has been put in front stays. */
static void drop_behind(ir_block *block, const ir_stmt *last)
{
    while (block->count > 0 && block->items[block->count - 1] != last)
        block->count--;
}

void lower_loop(lowering *fl, loop *l)
{
    loop_memory *memory = remembered(fl, l->syntax);
    int64_t mark = fl->trail.count;
    const ir_stmt *last = fl->block->count > 0 ? fl->block->items[fl->block->count - 1] : NULL;
    for (;;) {
        int64_t errors = fl->fe->error_count;
        int32_t temporaries = fl->notes->temporaries;
        carry_names(fl, l, memory);
        int64_t entered = fl->trail.count;
        copy_entry(fl, l);
        lower_body(fl, l);
        meeting m = meet(fl, l);
        name_set missing = {0};
        bool settled = settle_ends(fl, l, &m, &missing);
        if (settled || fl->fe->error_count != errors ||
            (memory != NULL && memory->attempts >= ATTEMPTS)) {
            binding_undo(fl, entered);
            finish_loop(fl, l, &m);
            return;
        }
        if (memory == NULL) {
            memory = arena_new(fl->a, loop_memory);
            memory->loop = l->syntax;
            vec_push(fl->a, fl->loop_memories, memory);
        }
        remember(fl, l, &m, memory, &missing);
        memory->attempts++;
        drop_behind(fl->block, last);
        fl->notes->temporaries = temporaries;
        binding_undo(fl, mark);
    }
}

/* ---- for ---- */

typedef struct name_search {
    const lowering *fl;
    const name_set *names;
    bool found;
} name_search;

static void find_assigned(void *context, ir_var *var)
{
    name_search *search = context;
    for (int64_t i = 0; i < search->names->count; i++) {
        const char *name = search->fl->names.names[search->names->items[i]];
        search->found =
            search->found || (var->kind == IR_VAR_LOCAL && strcmp(var->name, name) == 0);
    }
}

const ir_expr *fixed_bound(lowering *fl, const name_set *assigned, const ir_expr *e)
{
    name_search search = {fl, assigned, false};
    ir_visit_expr(e, find_assigned, &search);
    return search.found ? settle(fl, scalar_value(e, e->span)).expr : e;
}

static void no_else(lowering *fl, const syntax_stmt *s, const char *statement)
{
    if (s->orelse.count > 0)
        report(fl->fe, DIAG_UNSUPPORTED_STATEMENT, s->orelse.items[0]->span, NULL,
               "Unsupported statement type: else of a %s loop", statement);
}

static void names_without(const name_set *names, int64_t name, arena *a, name_set *result)
{
    for (int64_t i = 0; i < names->count; i++) {
        if (names->items[i] != name)
            vec_push(a, result, names->items[i]);
    }
}

const char *jump_refusal(iterator_kind kind)
{
    switch (kind) {
    case ITERATOR_PARALLEL: return "parallel loops";
    case ITERATOR_UNROLL: return "unrolled loops";
    case ITERATOR_PIPELINE: return "pipelined loops";
    default: return NULL;
    }
}

static void lower_simple_for(lowering *fl, const syntax_stmt *s, const iterator *range)
{
    loop l = {.syntax = s, .body = s->body, .range = *range, .target_span = s->target->span};
    l.no_jumps = jump_refusal(range->kind);
    l.target = binding_find(fl, s->target->text);
    name_set bound = {0};
    names_bound(fl, &s->body, &bound);
    l.range.stop = fixed_bound(fl, &bound, l.range.stop);
    l.range.step = fixed_bound(fl, &bound, l.range.step);
    names_without(&bound, l.target, fl->a, &l.assigned);
    lower_loop(fl, &l);
}

/* ---- the statements ---- */

void lower_for(lowering *fl, const syntax_stmt *s)
{
    no_else(fl, s, "for");
    if (lower_scope_loop(fl, s))
        return;
    iterator range = lower_iterator(fl, s->value);
    if (!range.ok && s->target->kind != SYNTAX_NAME)
        return; /* reported; so is whatever its names would be */
    if (range.init_values != NULL)
        lower_carrying(fl, s, &range);
    else if (s->target->kind != SYNTAX_NAME)
        bad_loop(fl, s->target->span, "write `for i in pl.range(n):`",
                 "the target of a for loop must be a single loop variable");
    else
        lower_simple_for(fl, s, &range);
}

void lower_while(lowering *fl, const syntax_stmt *s)
{
    no_else(fl, s, "while");
    loop l = {.syntax = s, .body = s->body, .condition = s->value, .target = -1};
    names_bound(fl, &s->body, &l.assigned);
    lower_loop(fl, &l);
}
