/* for and while, break and continue, and the explicit carries of pl.yield_.
 *
 * A turn of a loop starts where the loop was entered *and* where the turn before it ended. So that both
 * find each name in one place, names that the body binds get a variable of their own before the loop:
 * scalars and tiles always, if they have none yet; turns that end with another value in hand assign it.
 * For handles a variable would hide which storage a name means, so only those get one that turn out to
 * need it. That is known after the body, which is then lowered once more. What was found out is remembered
 * per loop, so that lowering an outer loop again does not lower the inner ones twice each: a body is
 * lowered at most ATTEMPTS times per loop around it, not a power of it.
 *
 * After the loop, names are what the ends of turns, the breaks, and the way past the loop agree on.
 *
 * Explicit carries, `for i, (a, b) in pl.range(n, init_values=(x, y)):`, are assignments a, b = x, y before
 * the loop, a, b = e1, e2 in place of `r, s = pl.yield_(e1, e2)`, and r, s = a, b behind it. All other
 * names of such a body live in it only. */
#include "frontend/loops.h"
#include "frontend/calls.h"
#include "frontend/expressions.h"
#include "frontend/flow.h"
#include "frontend/lower.h"
#include "frontend/scalars.h"
#include "frontend/scopes.h"
#include "frontend/statements.h"

#include "ops/dtypes.h"

#include <string.h>

enum { ATTEMPTS = 4 };

typedef struct loop {
    const syntax_stmt *syntax;
    syntax_block body;
    const syntax_expr *condition; /* of a while, else NULL */
    int64_t target;               /* the loop variable's name, or -1 */
    pypto_span target_span;
    iterator range;
    name_set assigned; /* names that live on after a turn, without the target */
    carry_frame *carries;
    const char *no_jumps;
    /* One attempt. */
    binding **entry; /* of the assigned names, where a turn starts: copies that show who is read */
    bool endless;    /* the condition is always true */
    ir_stmt *stmt;
    flow_paths turns; /* the ends of turns */
    flow_paths breaks;
} loop;

/* ---- before the body ---- */

static loop_memory *remembered(lowering *fl, const syntax_stmt *s)
{
    for (int64_t i = 0; i < fl->loop_memories.count; i++) {
        if (fl->loop_memories.items[i]->loop == s)
            return fl->loop_memories.items[i];
    }
    return NULL;
}

static bool contains(const name_set *set, int64_t name)
{
    for (int64_t i = 0; set != NULL && i < set->count; i++) {
        if (set->items[i] == name)
            return true;
    }
    return false;
}

/* Gives the name a variable of that type, which it has from turn to turn. */
static void carry(lowering *fl, int64_t name, ir_type type)
{
    binding *b = fl->names.bindings[name];
    ir_var *var = scope_target(fl, name, &type, b->span);
    bool handle = ir_is_handle(type.kind);
    var->may_be_unset = var->may_be_unset || b->open;
    if (handle) {
        vec_push(fl->a, &fl->cells, var);
        mark_read(b);
    }
    emit_assign(fl, var, &b->v, b->span);
    scope_bind(fl, name, var_value(fl->a, var, b->span), b->span);
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
                      (memory->attempts >= ATTEMPTS - 1 || contains(&memory->carried, name))
                : var == NULL || !scope_owns(fl, name, var) || !ir_type_equal(&var->type, &type);
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
        scope_set(fl, name, copy);
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
        vec_push(fl->a, &fl->world_loops, l->stmt->target);
}

static void lower_body(lowering *fl, loop *l)
{
    loop_frame frame = {.outer = fl->loop, .no_jumps = l->no_jumps, .mark = fl->trail.count};
    ir_block *block = fl->block;
    carry_frame *carries = fl->carries;
    bool in_branch = fl->in_branch;
    create_stmt(fl, l);
    fl->block = &l->stmt->body;
    fl->loop = &frame;
    fl->carries = l->carries;
    fl->in_branch = false;
    fl->depth++;
    fl->loops++;
    if (l->condition != NULL)
        lower_condition(fl, l);
    else
        scope_bind(fl, l->target, var_value(fl->a, l->stmt->target, l->target_span),
                   l->target_span);
    lower_block(fl, &l->body);
    l->turns = frame.continues;
    l->breaks = frame.breaks;
    if (!fl->terminated)
        vec_push(fl->a, &l->turns, path_here(fl, frame.mark, fl->block, false));
    fl->terminated = false;
    scope_undo(fl, frame.mark);
    fl->loops--;
    fl->depth--;
    fl->in_branch = in_branch;
    fl->carries = carries;
    fl->loop = frame.outer;
    fl->block = block;
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

/* ---- what the paths agree on ---- */

typedef struct meeting {
    flow_paths paths; /* turns, then breaks */
    int64_t turns;    /* how many are turns */
    binding ***ends;  /* per path, per assigned name */
    binding **target; /* per path; NULL without a loop variable */
} meeting;

static meeting meet(lowering *fl, const loop *l)
{
    meeting m = {.turns = l->turns.count};
    for (int64_t i = 0; i < l->turns.count; i++)
        vec_push(fl->a, &m.paths, l->turns.items[i]);
    for (int64_t i = 0; i < l->breaks.count; i++)
        vec_push(fl->a, &m.paths, l->breaks.items[i]);
    name_set target = {0};
    if (l->target >= 0)
        vec_push(fl->a, &target, l->target);
    m.ends = arena_array(fl->a, binding **, m.paths.count);
    m.target = arena_array(fl->a, binding *, m.paths.count);
    for (int64_t i = 0; i < m.paths.count; i++) {
        m.ends[i] = path_bindings(fl, &m.paths.items[i], &l->assigned);
        if (l->target >= 0)
            m.target[i] = path_bindings(fl, &m.paths.items[i], &target)[0];
    }
    return m;
}

/* One name at the end of one path: brings its value to where the next turn, and what follows the
 * loop, expects it. True: the name needs a variable that it does not have, or a wider one. */
static bool settle_end(lowering *fl, const loop *l, meeting *m, int64_t p, int64_t i)
{
    ir_type type;
    binding *entry = l->entry[i];
    binding *end = m->ends[p][i];
    bool passes = !l->range.surely_runs || l->breaks.count > 0;
    if (entry->state == BINDING_LOOP_END && end != entry && end->state != BINDING_POISONED &&
        passes)
        keep_loop_variable(fl, l->assigned.items[i], entry);
    if (entry->state != BINDING_BOUND || end == entry)
        return false;
    keep_value(fl, l->assigned.items[i], end);
    if (entry->open)
        note_bound(fl, l->assigned.items[i], &m->paths.items[p], &m->ends[p][i], 1);
    if (end->state != BINDING_BOUND || same_value(&entry->v, &end->v) ||
        !meeting_type(fl, (binding *[]){entry, end}, 2, &type))
        return false;
    ir_var *var = value_var(&entry->v);
    if (!ir_type_equal(&type, &var->type) && !same_type(entry, end))
        return entry->read || passes;
    bool handle = end->v.kind == VALUE_VAR && ir_is_handle(end->v.var->type.kind);
    if (handle && !entry->cell)
        return entry->read || passes;
    path_assign(fl, &m->paths.items[p], var, end);
    mark_read(end);
    m->ends[p][i] = entry;
    return false;
}

/* Handles first: where one needs a variable, nothing has been assigned yet. */
static bool settle_ends(lowering *fl, const loop *l, meeting *m, name_set *missing)
{
    for (int64_t i = 0; i < l->assigned.count; i++) {
        bool needed = false;
        for (int64_t p = 0; p < m->paths.count; p++)
            needed = settle_end(fl, l, m, p, i) || needed;
        if (needed)
            vec_push(fl->a, missing, l->assigned.items[i]);
    }
    return missing->count == 0;
}

static binding *retyped(lowering *fl, int64_t name, const binding *entry, const binding *end)
{
    report(
        fl->fe, DIAG_RETYPED_NAME, end->span, retype_hint(fl->a, &entry->v, &end->v),
        "Cannot reassign '%s' with a different type: it becomes %s here, and the next turn of the "
        "loop reads it as the %s of line %d",
        fl->names.names[name], type_name(fl->a, &end->v), type_name(fl->a, &entry->v),
        entry->span.line);
    return state_binding(fl, BINDING_POISONED, end->span);
}

/* The first end whose type differs from that at the entry, or NULL. */
static const binding *other_type(const binding *entry, binding *const *bs, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        bool same = bs[i]->state == BINDING_BOUND &&
                    (same_value(&entry->v, &bs[i]->v) || same_type(entry, bs[i]));
        if (!same)
            return bs[i];
    }
    return NULL;
}

static binding *merged(lowering *fl, const loop *l, int64_t name, flow_path *paths, binding **bs,
                       int64_t count)
{
    binding *b = copy_binding(fl, merge_bindings(fl, name, l->syntax->span, paths, bs, count));
    if (b->state == BINDING_PARTIAL && b->span.line == l->syntax->span.line)
        b->by_loop = true;
    return b;
}

/* Whether the paths behind the loop may come from before it. */
static bool may_pass(const loop *l)
{
    return !l->range.surely_runs && !l->endless;
}

/* After a loop that may not run: a name that its body binds, and an `if` before may have bound. */
static binding *maybe_unbound(lowering *fl, const loop *l)
{
    binding *b = state_binding(fl, BINDING_PARTIAL, l->syntax->span);
    b->by_loop = true;
    return b;
}

static bool is_unbound(const binding *b)
{
    return b->state == BINDING_UNBOUND;
}

/* A name that was not bound before the loop, when the paths from `first` on lead out of it. Where one of them
 * does not bind it, an earlier turn may have. */
static binding *bound_in_loop(lowering *fl, const loop *l, int64_t i, const meeting *m,
                              binding **bs, int64_t first)
{
    int64_t name = l->assigned.items[i];
    int64_t count = m->paths.count;
    flow_path *paths = arena_array(fl->a, flow_path, count);
    binding **bound = arena_array(fl->a, binding *, count);
    bool always = !may_pass(l);
    for (int64_t p = first; p < count; p++)
        always = always && !is_unbound(bs[p]);
    if (always)
        return merged(fl, l, name, m->paths.items + first, bs + first, count - first);
    int64_t n = 0;
    for (int64_t p = 0; p < count; p++) {
        if (is_unbound(bs[p]))
            continue;
        paths[n] = m->paths.items[p];
        bound[n++] = bs[p];
    }
    if (n == 0)
        return l->entry[i]->origin;
    binding *b = merged(fl, l, name, paths, bound, n);
    /* Turns that leave it as it was may have changed what it shares with another name. */
    return open_binding(fl, name, b, n == count ? l->stmt : NULL, paths, bound, n);
}

/* What an assigned name is bound to after the loop, when `count` paths lead out of it. `turns` are the
 * ends of turns. */
static binding *after_loop(lowering *fl, const loop *l, int64_t i, flow_path *paths, binding **bs,
                           int64_t count, binding *const *turns, int64_t turn_count)
{
    binding *entry = l->entry[i];
    int64_t name = l->assigned.items[i];
    bool unchanged = true;
    bool poisoned = entry->state == BINDING_POISONED;
    for (int64_t k = 0; k < count; k++) {
        unchanged = unchanged && bs[k] == entry;
        poisoned = poisoned || bs[k]->state == BINDING_POISONED;
    }
    if (poisoned)
        return state_binding(fl, BINDING_POISONED, bs[0]->span);
    const binding *other =
        entry->state == BINDING_BOUND ? other_type(entry, turns, turn_count) : NULL;
    if (other != NULL && other->state != BINDING_POISONED && entry->read)
        return retyped(fl, name, entry, other);
    if (unchanged)
        return entry->origin;
    if (entry->state == BINDING_PARTIAL)
        return may_pass(l) ? maybe_unbound(fl, l) : merged(fl, l, name, paths, bs, count);
    other = entry->state == BINDING_BOUND ? other_type(entry, bs, count) : bs[0];
    if (other == NULL) {
        mark_read(entry);
        binding *b = merged(fl, l, name, paths, bs, count);
        b->depth = entry->depth;
        b->cell = entry->cell;
        b->open = b->open || (entry->open && may_pass(l));
        mark_open(b);
        return b;
    }
    return may_pass(l) ? conflict_binding(fl, entry, other) : merged(fl, l, name, paths, bs, count);
}

/* After the loop its variable keeps the last value, should somebody read it. */
static binding *after_target(lowering *fl, const loop *l, const meeting *m)
{
    bool own = false;
    for (int64_t p = 0; p < m->paths.count; p++)
        own = own || m->target[p]->state != BINDING_BOUND ||
              value_var(&m->target[p]->v) != l->stmt->target;
    binding *previous = fl->names.bindings[l->target];
    const bool opens = may_pass(l) && (previous->state == BINDING_UNBOUND || previous->open);
    if (may_pass(l) && previous->state == BINDING_PARTIAL)
        return maybe_unbound(fl, l);
    if (may_pass(l) && m->paths.count == 0) /* every turn leaves the function */
        return previous;
    if (own) { /* the body has bound the name itself */
        binding *end = merged(fl, l, l->target, m->paths.items, m->target, m->paths.count);
        if (opens && previous->state == BINDING_UNBOUND)
            return open_binding(fl, l->target, end, l->stmt, m->paths.items, m->target,
                                m->paths.count);
        const bool one_variable = end->state == BINDING_BOUND && previous->state == BINDING_BOUND &&
                                  value_var(&end->v) != NULL &&
                                  value_var(&end->v) == value_var(&previous->v);
        return !may_pass(l) || one_variable || end->state == BINDING_POISONED
                   ? end
                   : conflict_binding(fl, previous, end);
    }
    const bool integer = previous->v.kind == VALUE_SCALAR && ir_is_integer(previous->v.expr->dtype);
    if (may_pass(l) &&
        (previous->state == BINDING_CONFLICT || (previous->state == BINDING_BOUND && !integer)))
        return conflict_binding(fl, previous, m->target[0]);
    binding *b = state_binding(fl, BINDING_LOOP_END, l->target_span);
    b->previous = previous;
    b->loop = l->stmt;
    b->block = fl->block;
    b->open = opens;
    if (opens)
        note_bound(fl, l->target, m->paths.items, m->target, m->paths.count);
    return b;
}

static void finish_loop(lowering *fl, const loop *l, meeting *m)
{
    int64_t first = l->endless ? m->turns : 0;
    int64_t count = m->paths.count - first;
    if (l->target >= 0)
        scope_set(fl, l->target, after_target(fl, l, m));
    binding **bs = arena_array(fl->a, binding *, m->paths.count);
    for (int64_t i = 0; i < l->assigned.count; i++) {
        for (int64_t p = 0; p < m->paths.count; p++)
            bs[p] = m->ends[p][i];
        binding *after = l->entry[i]->origin;
        if (count > 0 && is_unbound(l->entry[i]))
            after = bound_in_loop(fl, l, i, m, bs, first);
        else if (count > 0)
            after = after_loop(fl, l, i, m->paths.items + first, bs + first, count, bs, m->turns);
        if (after != fl->names.bindings[l->assigned.items[i]])
            scope_set(fl, l->assigned.items[i], after);
    }
    fl->terminated = count == 0 && l->endless;
}

/* What a name of `missing` needs: a handle a variable at all, anything else a type that holds what all
 * turns end with. */
static void remember(lowering *fl, const loop *l, const meeting *m, loop_memory *memory,
                     const name_set *missing)
{
    for (int64_t i = 0; i < l->assigned.count; i++) {
        int64_t name = l->assigned.items[i];
        if (!contains(missing, name))
            continue;
        ir_type entered;
        if (value_type(&l->entry[i]->v, &entered) && ir_is_handle(entered.kind)) {
            vec_push(fl->a, &memory->carried, name);
            continue;
        }
        for (int64_t p = 0; p < m->paths.count; p++) {
            ir_type type;
            if (m->ends[p][i]->state != BINDING_BOUND ||
                !meeting_type(fl, (binding *[]){l->entry[i], m->ends[p][i]}, 2, &type))
                continue;
            widened_name w = {name, type};
            vec_push(fl->a, &memory->widened, w);
        }
    }
}

/* Takes out what stands behind a statement (NULL: everything). What has been put in front stays. */
static void drop_behind(ir_block *block, const ir_stmt *last)
{
    while (block->count > 0 && block->items[block->count - 1] != last)
        block->count--;
}

/* Lowers the body until every name that it carries has a variable. */
static void lower_loop(lowering *fl, loop *l)
{
    loop_memory *memory = remembered(fl, l->syntax);
    int64_t mark = fl->trail.count;
    const ir_stmt *last = fl->block->count > 0 ? fl->block->items[fl->block->count - 1] : NULL;
    for (;;) {
        int64_t errors = fl->fe->error_count;
        int32_t temporaries = fl->temporaries;
        carry_names(fl, l, memory);
        int64_t entered = fl->trail.count;
        copy_entry(fl, l);
        lower_body(fl, l);
        meeting m = meet(fl, l);
        name_set missing = {0};
        bool settled = settle_ends(fl, l, &m, &missing);
        if (settled || fl->fe->error_count != errors ||
            (memory != NULL && memory->attempts >= ATTEMPTS)) {
            scope_undo(fl, entered);
            finish_loop(fl, l, &m);
            return;
        }
        if (memory == NULL) {
            memory = arena_new(fl->a, loop_memory);
            memory->loop = l->syntax;
            vec_push(fl->a, &fl->loop_memories, memory);
        }
        remember(fl, l, &m, memory, &missing);
        memory->attempts++;
        drop_behind(fl->block, last);
        fl->temporaries = temporaries;
        scope_undo(fl, mark);
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

/* Bounds are evaluated once: one that reads what the body assigns is kept in a temporary. */
static const ir_expr *fixed_bound(lowering *fl, const name_set *assigned, const ir_expr *e)
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

static const char *jump_refusal(iterator_kind kind)
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
    l.target = scope_find(fl, s->target->text);
    name_set bound = {0};
    names_bound(fl, &s->body, &bound);
    l.range.stop = fixed_bound(fl, &bound, l.range.stop);
    l.range.step = fixed_bound(fl, &bound, l.range.step);
    names_without(&bound, l.target, fl->a, &l.assigned);
    lower_loop(fl, &l);
}

/* ---- explicit carries ---- */

static bool bad_loop(lowering *fl, pypto_span span, const char *hint, const char *message)
{
    report(fl->fe, DIAG_BAD_LOOP, span, hint, "%s", message);
    return false;
}

static bool is_tuple(const syntax_expr *e)
{
    return e->kind == SYNTAX_TUPLE || e->kind == SYNTAX_LIST;
}

/* The part of the target that holds the carried values: (a, b) of `i, (a, b)`, all of it for
 * pl.while_. NULL after reporting. */
static const syntax_expr *carried_target(lowering *fl, const syntax_stmt *s, const iterator *range)
{
    const syntax_expr *target = s->target;
    bool is_while = range->kind == ITERATOR_WHILE;
    const char *form = is_while ? "write `for (a, b) in pl.while_(init_values=(x, y)):`"
                                : "write `for i, (a, b) in pl.range(n, init_values=(x, y)):`";
    if (!is_tuple(target)) {
        bad_loop(fl, target->span, form,
                 "the loop target must be a tuple when init_values is used");
        return NULL;
    }
    const syntax_expr *names = target;
    if (!is_while) {
        bool shaped = target->items.count == 2 && target->items.items[0]->kind == SYNTAX_NAME &&
                      is_tuple(target->items.items[1]);
        if (!shaped) {
            bad_loop(fl, target->span, form, "the loop target must be `i, (a, b)`");
            return NULL;
        }
        names = target->items.items[1];
    }
    for (int64_t i = 0; i < names->items.count; i++) {
        if (names->items.items[i]->kind != SYNTAX_NAME) {
            bad_loop(fl, names->items.items[i]->span, form,
                     "the loop target must be made of variable names");
            return NULL;
        }
    }
    if (names->items.count == range->init_values->items.count)
        return names;
    bad_loop(fl, names->span, form,
             arena_printf(fl->a, "Mismatch: %lld names take %lld init_values",
                          (long long)names->items.count,
                          (long long)range->init_values->items.count));
    return NULL;
}

/* The names of `r, s = pl.yield_(...)`; none for another statement. */
static void yield_targets(lowering *fl, const syntax_stmt *s, name_set *names)
{
    if (s->kind != SYNTAX_ASSIGN || !calls_path(fl, s->value, "pl.yield_"))
        return;
    for (int64_t i = 0; is_tuple(s->target) && i < s->target->items.count; i++) {
        const syntax_expr *item = s->target->items.items[i];
        if (item->kind == SYNTAX_NAME)
            vec_push(fl->a, names, scope_find(fl, item->text));
    }
    if (s->target->kind == SYNTAX_NAME)
        vec_push(fl->a, names, scope_find(fl, s->target->text));
}

/* What a name was outside the body that it is local to. */
typedef struct shadow {
    int64_t name;
    name_storage storage;
    binding *b;
} shadow;
typedef VEC(shadow) shadow_list;

static void hide(lowering *fl, const name_set *names, shadow_list *shadows)
{
    for (int64_t i = 0; i < names->count; i++) {
        int64_t name = names->items[i];
        shadow hidden = {name, fl->names.storage[name], fl->names.bindings[name]};
        vec_push(fl->a, shadows, hidden);
        fl->names.storage[name] = (name_storage){0};
    }
}

static void unhide(lowering *fl, const shadow_list *shadows)
{
    for (int64_t i = 0; i < shadows->count; i++) {
        const shadow *hidden = &shadows->items[i];
        fl->names.storage[hidden->name] = hidden->storage;
        scope_set(fl, hidden->name, hidden->b);
    }
}

static void add_name(lowering *fl, name_set *set, int64_t name)
{
    if (!contains(set, name))
        vec_push(fl->a, set, name);
}

/* The names of a body with explicit carries that nobody outside it knows. */
static void local_names(lowering *fl, const loop *l, const carry_frame *carries, name_set *locals)
{
    name_set bound = {0};
    name_set results = {0};
    names_bound(fl, &l->body, &bound);
    for (int64_t i = 0; i < l->body.count; i++)
        yield_targets(fl, l->body.items[i], &results);
    for (int64_t i = 0; i < bound.count; i++) {
        if (!contains(&results, bound.items[i]) && bound.items[i] != l->target)
            add_name(fl, locals, bound.items[i]);
    }
    for (int32_t i = 0; i < carries->count; i++)
        add_name(fl, locals, carries->names[i]);
}

/* pl.while_: the condition is the first statement. */
static bool take_condition(lowering *fl, const syntax_stmt *s, loop *l)
{
    const syntax_stmt *first = s->body.count > 0 ? s->body.items[0] : NULL;
    bool found =
        first != NULL && first->kind == SYNTAX_EXPR && calls_path(fl, first->value, "pl.cond");
    if (!found || first->value->items.count != 1 || first->value->keywords.count != 0)
        return bad_loop(fl, first != NULL ? first->span : s->span, "write pl.cond(i < n)",
                        "the body of a pl.while_ loop must start with pl.cond(condition)");
    l->condition = first->value->items.items[0];
    l->body = (syntax_block){.items = s->body.items + 1, .count = s->body.count - 1};
    return true;
}

/* A pl.yield_ of another number of names has been reported. */
static void bind_results(lowering *fl, const syntax_stmt *yield, const dsl_value *values,
                         int32_t count)
{
    name_set names = {0};
    yield_targets(fl, yield, &names);
    for (int64_t i = 0; i < names.count; i++)
        assign_name(fl, names.items[i], names.count == count ? values[i] : poison(), yield->span);
}

/* In a wrapper None is a task that the loop may carry another one for. */
static dsl_value tasks_of_none(lowering *fl, dsl_value init)
{
    dsl_value *items = arena_array(fl->a, dsl_value, init.count + 1);
    if (init.kind != VALUE_TUPLE || fl->ir->plane != PLD_PLANE_CHIP)
        return init;
    for (int32_t i = 0; i < init.count; i++)
        items[i] = init.items[i].kind == VALUE_NONE ? no_task(fl->a, init.span) : init.items[i];
    init.items = items;
    return init;
}

static void lower_carrying(lowering *fl, const syntax_stmt *s, const iterator *range)
{
    loop l = {.syntax = s, .body = s->body, .range = *range, .target = -1};
    dsl_value init = eval(fl, range->init_values);
    const syntax_expr *names = carried_target(fl, s, range);
    if (names == NULL || (range->kind == ITERATOR_WHILE && !take_condition(fl, s, &l)))
        return;
    carry_frame carries = {.count = (int32_t)names->items.count};
    int64_t *indices = arena_array(fl->a, int64_t, carries.count);
    for (int32_t i = 0; i < carries.count; i++)
        indices[i] = scope_find(fl, names->items.items[i]->text);
    carries.names = indices;
    l.carries = &carries;
    l.no_jumps = jump_refusal(range->kind);
    if (range->kind != ITERATOR_WHILE) {
        l.target = scope_find(fl, s->target->items.items[0]->text);
        l.target_span = s->target->items.items[0]->span;
    }
    name_set locals = {0};
    shadow_list shadows = {0};
    local_names(fl, &l, &carries, &locals);
    l.range.stop = fixed_bound(fl, &locals, l.range.stop);
    l.range.step = fixed_bound(fl, &locals, l.range.step);
    if (init.kind == VALUE_TUPLE)
        init = settle(fl, init);
    init = tasks_of_none(fl, init);
    hide(fl, &locals, &shadows);
    for (int32_t i = 0; i < carries.count; i++) {
        assign_name(fl, indices[i], init.kind == VALUE_TUPLE ? init.items[i] : poison(), s->span);
        add_name(fl, &l.assigned, indices[i]);
    }
    lower_loop(fl, &l);
    dsl_value *values = arena_array(fl->a, dsl_value, carries.count);
    for (int32_t i = 0; i < carries.count && !fl->terminated; i++)
        values[i] = scope_read(fl, indices[i], s->span);
    unhide(fl, &shadows);
    if (carries.yield != NULL && !fl->terminated)
        bind_results(fl, carries.yield, values, carries.count);
}

static int64_t target_count(const syntax_stmt *s)
{
    return is_tuple(s->target) ? s->target->items.count : 1;
}

bool lower_yield(lowering *fl, const syntax_stmt *s)
{
    if (!calls_path(fl, s->value, "pl.yield_") || fl->in_branch)
        return false;
    carry_frame *carries = fl->carries;
    int64_t count = s->value->items.count;
    if (carries == NULL)
        return !bad_loop(fl, s->span, "assign the value: names carry it by themselves",
                         "pl.yield_ stands in an if, or in a loop with init_values");
    if (s->kind != SYNTAX_ASSIGN)
        return !bad_loop(fl, s->span, "write result = pl.yield_(value)",
                         "a loop with init_values requires an assignment-form pl.yield_");
    carries->yield = s;
    if (count != carries->count || count != target_count(s))
        return !bad_loop(
            fl, s->span, NULL,
            arena_printf(fl->a,
                         "Mismatch: pl.yield_ gives %lld values to %lld names, and the loop "
                         "has %d init_values",
                         (long long)count, (long long)target_count(s), carries->count));
    dsl_value *values = arena_array(fl->a, dsl_value, count);
    for (int64_t i = 0; i < count; i++) {
        dsl_value v = eval(fl, s->value->items.items[i]);
        values[i] = count > 1 ? settle(fl, v) : v;
    }
    for (int64_t i = 0; i < count; i++)
        assign_name(fl, carries->names[i], values[i], s->span);
    return true;
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
