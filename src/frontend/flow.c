/* if and for: lowering blocks, and joining what names are bound to where paths meet.
 *
 * A join compares the bindings of both paths. The same value on both is kept. Values of one type get
 * one variable: the branch that has the other one assigns it at its end. Different types make a
 * conflict, which is an error only if the name is read afterwards.
 *
 * A loop's body starts where the loop was entered *and* where the body ended. Whether the two agree is
 * only known after the body, so it is lowered first as if they did; names that turn out to be carried
 * get a variable that is set before the loop, and the body is lowered again. Tiles and scalars that
 * have their variable already, the usual case, agree at once. */
#include "frontend/lower.h"

#include "ops/dtypes.h"

#include <string.h>

/* The same meaning at a place where paths have met. */
static binding *copy_binding(lowering *fl, const binding *b)
{
    binding *copy = arena_new(fl->a, binding);
    *copy = *b;
    copy->depth = fl->depth;
    copy->read = false;
    copy->origin = NULL;
    return copy;
}

static binding *conflict(lowering *fl, const binding *x, const binding *y)
{
    binding *b = arena_new(fl->a, binding);
    b->state = BINDING_CONFLICT;
    b->v = x->state == BINDING_LOOP_END ? scalar_value(ir_int(fl->a, 0), x->span) : x->v;
    b->other = y->state == BINDING_LOOP_END ? scalar_value(ir_int(fl->a, 0), y->span) : y->v;
    b->span = x->span;
    b->other_span = y->span;
    b->depth = fl->depth;
    return b;
}

static binding *state_binding(lowering *fl, binding_state state, pypto_span span)
{
    binding *b = arena_new(fl->a, binding);
    b->state = state;
    b->span = span;
    b->depth = fl->depth;
    return b;
}

/* After a loop that may not run: a name that only its body binds. */
static binding *maybe_unbound(lowering *fl, pypto_span loop)
{
    binding *b = state_binding(fl, BINDING_PARTIAL, loop);
    b->by_loop = true;
    return b;
}

static bool is_unbound(const binding *b)
{
    return b->state == BINDING_UNBOUND || b->state == BINDING_PARTIAL;
}

static bool same_type(const binding *x, const binding *y)
{
    ir_type a;
    ir_type b;
    return value_type(&x->v, &a) && value_type(&y->v, &b) && ir_type_equal(&a, &b);
}

static bool is_integer(const binding *b)
{
    return b->v.kind == VALUE_SCALAR && ir_is_integer(b->v.expr->dtype);
}

/* Whether the binding's variable belongs to the name, so that it may be assigned. */
static bool owns_variable(const lowering *fl, int64_t name, const binding *b)
{
    const ir_var *var = value_var(&b->v);
    return var != NULL && var->kind == IR_VAR_LOCAL && !ir_is_handle(var->type.kind) &&
           strcmp(var->name, fl->names.names[name]) == 0;
}

static void assign_in(lowering *fl, ir_block *block, ir_var *target, const binding *b)
{
    ir_block *saved = fl->block;
    fl->block = block;
    emit_assign(fl, target, &b->v, b->span);
    fl->block = saved;
}

/* ---- if ---- */

typedef struct branch {
    ir_block *block;
    binding **names; /* at its end */
    bool terminated;
} branch;

static branch lower_branch(lowering *fl, const syntax_block *syntax, ir_block *block)
{
    ir_block *saved = fl->block;
    fl->block = block;
    fl->depth++;
    lower_block(fl, syntax);
    fl->depth--;
    fl->block = saved;
    branch result = {block, scope_snapshot(fl), fl->terminated};
    fl->terminated = false;
    return result;
}

/* Two values of one type: one variable for both. */
static binding *merge_values(lowering *fl, int64_t name, branch *first, branch *second)
{
    binding *x = first->names[name];
    binding *y = second->names[name];
    ir_type type;
    (void)value_type(&x->v, &type);
    const ir_var *xv = value_var(&x->v);
    const ir_var *yv = value_var(&y->v);
    ir_var *target = owns_variable(fl, name, x)   ? value_var(&x->v)
                     : owns_variable(fl, name, y) ? value_var(&y->v)
                                                  : scope_target(fl, name, &type, x->span);
    if (ir_is_handle(type.kind)) {
        target->root = xv->root == yv->root ? xv->root : NULL;
        target->buffer = xv->buffer == yv->buffer ? xv->buffer : -1;
    }
    assign_in(fl, first->block, target, x);
    assign_in(fl, second->block, target, y);
    binding *merged = state_binding(fl, BINDING_BOUND, x->span);
    merged->v = var_value(fl->a, target, x->span);
    return merged;
}

static binding *merge(lowering *fl, int64_t name, pypto_span span, branch *first, branch *second)
{
    binding *x = first->names[name];
    binding *y = second->names[name];
    if (x == y)
        return x;
    if (x->state == BINDING_POISONED || y->state == BINDING_POISONED)
        return state_binding(fl, BINDING_POISONED, span);
    if (x->state == BINDING_PARTIAL || y->state == BINDING_PARTIAL)
        return copy_binding(fl, x->state == BINDING_PARTIAL ? x : y);
    bool both_unbound = x->state == BINDING_UNBOUND && y->state == BINDING_UNBOUND;
    if (is_unbound(x) || is_unbound(y))
        return state_binding(fl, both_unbound ? BINDING_UNBOUND : BINDING_PARTIAL, span);
    if (x->state != BINDING_BOUND || y->state != BINDING_BOUND)
        return conflict(fl, x, y);
    mark_read(x);
    mark_read(y);
    if (same_value(&x->v, &y->v))
        return copy_binding(fl, x);
    return same_type(x, y) ? merge_values(fl, name, first, second) : conflict(fl, x, y);
}

static void join(lowering *fl, pypto_span span, branch *first, branch *second)
{
    fl->terminated = first->terminated && second->terminated;
    if (first->terminated || second->terminated) {
        scope_restore(fl, first->terminated ? second->names : first->names);
        return;
    }
    for (int64_t i = 0; i < fl->names.count; i++)
        fl->names.bindings[i] = merge(fl, i, span, first, second);
}

void lower_if(lowering *fl, const syntax_stmt *s)
{
    dsl_value test;
    bool ok = condition(fl, s->value, "if", &test);
    /* A condition that the constants of the script decide chooses what is compiled at all. */
    if (ok && test.expr->kind == IR_BOOL) {
        lower_block(fl, test.expr->integer != 0 ? &s->body : &s->orelse);
        return;
    }
    ir_stmt *stmt = ir_stmt_create(fl->fe->program, fl->block, IR_IF, s->span);
    stmt->value = ok ? test.expr : ir_bool(fl->a, true);
    binding **entry = scope_snapshot(fl);
    branch first = lower_branch(fl, &s->body, &stmt->body);
    scope_restore(fl, entry);
    branch second = lower_branch(fl, &s->orelse, &stmt->orelse);
    join(fl, s->span, &first, &second);
}

/* ---- the iterator ---- */

typedef struct loop_range {
    const ir_expr *start;
    const ir_expr *stop;
    const ir_expr *step;
    bool ok;
    bool over_world; /* range(pld.world_size()) */
    bool surely_runs;
} loop_range;

static bool is_world_size(const lowering *fl, const ir_expr *e)
{
    if (e->kind == IR_OP)
        return e->op_def->id == OP_WORLD_SIZE;
    for (int64_t i = 0; e->kind == IR_VAR && i < fl->world_sizes.count; i++) {
        if (fl->world_sizes.items[i] == e->var)
            return true;
    }
    return false;
}

/* A domain has at least one rank. */
static bool is_rank_count(const lowering *fl, const ir_expr *e)
{
    while (e->kind == IR_CONVERT)
        e = e->a;
    if (e->kind == IR_OP)
        return e->op_def->id == OP_NRANKS;
    for (int64_t i = 0; e->kind == IR_VAR && i < fl->rank_counts.count; i++) {
        if (fl->rank_counts.items[i] == e->var)
            return true;
    }
    return false;
}

static bool check_iterator(lowering *fl, const syntax_expr *e)
{
    const char *hint = "write `for i in pl.range(n):`";
    if (e->kind != SYNTAX_CALL) {
        report(fl->fe, DIAG_BAD_LOOP, e->span, hint, "a for loop must use pl.range()");
        return false;
    }
    dsl_value callee = eval(fl, e->a);
    if (callee.kind == VALUE_POISON)
        return false;
    const op_def *op = callee.kind == VALUE_PATH ? op_find(callee.text) : NULL;
    if (op != NULL && op->id == OP_RANGE)
        return true;
    report(fl->fe, DIAG_BAD_LOOP, e->a->span, hint, "a for loop must use pl.range(), not %s",
           callee.kind == VALUE_PATH   ? callee.text
           : e->a->kind == SYNTAX_NAME ? e->a->text
                                       : describe(fl->a, &callee));
    return false;
}

static bool bad_range_keyword(lowering *fl, const syntax_keyword *k, bool unknown)
{
    if (k->name == NULL)
        report(fl->fe, DIAG_BAD_LOOP, k->span, "write start, stop and step",
               "pl.range does not accept **kwargs");
    else if (!unknown)
        report(fl->fe, DIAG_BAD_LOOP, k->span, "pass it once",
               "pl.range got multiple values for argument '%s'", k->name);
    else if (strcmp(k->name, "init_values") == 0)
        report(fl->fe, DIAG_BAD_LOOP, k->span,
               "assign to the name in the body; its value is carried",
               "init_values= of pl.range is not supported yet");
    else
        report(fl->fe, DIAG_BAD_LOOP, k->span, "pl.range(start, stop, step)",
               "Unknown keyword argument '%s' of pl.range", k->name);
    return false;
}

/* range(stop), range(start, stop), range(start, stop, step), each also by keyword. */
static bool bind_range(lowering *fl, const syntax_expr *e, const syntax_expr **given)
{
    static const char *const names[] = {"start", "stop", "step"};
    int64_t count = e->items.count;
    if (count > 3) {
        report(fl->fe, DIAG_BAD_LOOP, e->span, "pl.range(start, stop, step)",
               "pl.range takes 1 to 3 arguments, not %lld", (long long)count);
        return false;
    }
    for (int64_t i = 0; i < count; i++)
        given[count == 1 ? 1 : i] = e->items.items[i];
    for (int64_t i = 0; i < e->keywords.count; i++) {
        const syntax_keyword *k = &e->keywords.items[i];
        int64_t at = 3;
        for (int64_t n = 0; k->name != NULL && n < 3; n++)
            at = strcmp(names[n], k->name) == 0 ? n : at;
        if (at == 3 || given[at] != NULL)
            return bad_range_keyword(fl, k, at == 3);
        given[at] = k->value;
    }
    if (given[1] != NULL)
        return true;
    report(fl->fe, DIAG_BAD_LOOP, e->span, "pl.range(stop), or pl.range(start, stop, step)",
           "pl.range requires at least 1 argument");
    return false;
}

static bool bound(lowering *fl, const syntax_expr *e, const char *what, const ir_expr **result)
{
    dsl_value v;
    if (e == NULL)
        return true;
    if (!eval_integer(fl, e, what, &v))
        return false;
    *result = as_index(fl->a, v.expr, e->span);
    return true;
}

static bool surely_runs(const loop_range *range)
{
    int64_t start = 0;
    int64_t stop = 0;
    int64_t step = 0;
    if (!ir_is_const_int(range->start, &start) || !ir_is_const_int(range->stop, &stop) ||
        !ir_is_const_int(range->step, &step))
        return false;
    return step > 0 ? start < stop : start > stop;
}

static loop_range lower_range(lowering *fl, const syntax_expr *e)
{
    loop_range range = {ir_int(fl->a, 0), ir_int(fl->a, 0), ir_int(fl->a, 1), false, false, false};
    const syntax_expr *given[3] = {NULL, NULL, NULL};
    if (!check_iterator(fl, e) || !bind_range(fl, e, given))
        return range;
    range.ok = bound(fl, given[0], "start", &range.start);
    range.ok = bound(fl, given[1], "stop", &range.stop) && range.ok;
    range.ok = bound(fl, given[2], "step", &range.step) && range.ok;
    int64_t start = 0;
    int64_t step = 0;
    bool from_zero = ir_is_const_int(range.start, &start) && start == 0;
    bool constant = ir_is_const_int(range.step, &step);
    if (constant && step == 0 && range.ok) {
        report(fl->fe, DIAG_BAD_LOOP, given[2]->span, "use a positive or a negative step",
               "the step of pl.range cannot be zero");
        range.ok = false;
    }
    range.over_world =
        range.ok && from_zero && constant && step == 1 && is_world_size(fl, range.stop);
    bool over_ranks =
        range.ok && from_zero && constant && step > 0 && is_rank_count(fl, range.stop);
    range.surely_runs = range.over_world || over_ranks || surely_runs(&range);
    return range;
}

/* ---- for ---- */

typedef struct loop {
    const syntax_stmt *syntax;
    int64_t target;
    loop_range range;
    name_set assigned; /* names that the body binds */
    binding **before;  /* bindings where the loop is entered */
    ir_stmt *stmt;
} loop;

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

/* One attempt at the body. Names that it binds start as copies, which show whether they were read. */
static void lower_body(lowering *fl, loop *l)
{
    const syntax_stmt *s = l->syntax;
    const ir_type index = ir_scalar_type(PYPTO_INDEX);
    for (int64_t i = 0; i < l->assigned.count; i++) {
        int64_t name = l->assigned.items[i];
        binding *copy = arena_new(fl->a, binding);
        *copy = *fl->names.bindings[name];
        copy->read = false;
        copy->origin = fl->names.bindings[name];
        fl->names.bindings[name] = copy;
        l->before[name] = copy;
    }
    l->stmt = ir_stmt_create(fl->fe->program, fl->block, IR_FOR, s->span);
    l->stmt->start = l->range.start;
    l->stmt->stop = l->range.stop;
    l->stmt->step = l->range.step;
    l->stmt->target = ir_var_create(fl->fe->program, fl->ir, IR_VAR_LOOP,
                                    fl->names.names[l->target], index, s->target->span);
    if (l->range.over_world)
        vec_push(fl->a, &fl->world_loops, l->stmt->target);
    ir_block *saved = fl->block;
    fl->block = &l->stmt->body;
    fl->depth++;
    fl->loops++;
    scope_bind(fl, l->target, var_value(fl->a, l->stmt->target, s->target->span), s->target->span);
    lower_block(fl, &s->body);
    fl->loops--;
    fl->depth--;
    fl->block = saved;
}

/* Whether the name needs a variable of its own that is set before the loop and at the end of the
 * body: its value differs there, but not its type, and somebody may see either. */
static bool is_carried(const loop *l, const binding *entry, const binding *end)
{
    return entry->state == BINDING_BOUND && end->state == BINDING_BOUND &&
           !same_value(&entry->v, &end->v) && same_type(entry, end) &&
           (entry->read || !l->range.surely_runs);
}

static void carry(lowering *fl, int64_t name)
{
    binding *b = fl->names.bindings[name];
    ir_type type;
    (void)value_type(&b->v, &type);
    ir_var *var = scope_target(fl, name, &type, b->span);
    emit_assign(fl, var, &b->v, b->span);
    mark_read(b);
    scope_bind(fl, name, var_value(fl->a, var, b->span), b->span);
    fl->names.bindings[name]->cell = ir_is_handle(type.kind);
}

/* What a name is bound to after the loop. */
static binding *after_loop(lowering *fl, const loop *l, int64_t name)
{
    binding *entry = l->before[name];
    binding *end = fl->names.bindings[name];
    if (end->state == BINDING_POISONED || entry->state == BINDING_POISONED)
        return state_binding(fl, BINDING_POISONED, end->span);
    if (end == entry)
        return entry->origin;
    if (is_unbound(entry)) {
        bool told = is_unbound(end) || end->state == BINDING_CONFLICT;
        return l->range.surely_runs || told ? copy_binding(fl, end)
                                            : maybe_unbound(fl, l->syntax->span);
    }
    bool agree = entry->state == BINDING_BOUND && end->state == BINDING_BOUND &&
                 (same_value(&entry->v, &end->v) || same_type(entry, end));
    if (agree) {
        mark_read(entry);
        binding *b = copy_binding(fl, end);
        b->depth = entry->depth;
        b->cell = entry->cell;
        return b;
    }
    if (entry->state == BINDING_BOUND && entry->read) {
        report(fl->fe, DIAG_RETYPED_NAME, end->span, retype_hint(fl->a, &entry->v, &end->v),
               "Cannot reassign '%s' with a different type: %s here, %s at line %d, and the next "
               "turn of the loop reads it",
               fl->names.names[name], type_name(fl->a, &end->v), type_name(fl->a, &entry->v),
               entry->span.line);
        return state_binding(fl, BINDING_POISONED, end->span);
    }
    /* A loop's variable remembers what it was before its loop, and so also before this one. */
    bool same_state = entry->state == end->state && entry->state == BINDING_LOOP_END;
    bool keeps = end->state != BINDING_LOOP_END && l->range.surely_runs;
    return same_state || keeps ? copy_binding(fl, end) : conflict(fl, entry, end);
}

/* The body has bound the name of its loop's variable itself: after the loop it is what the body made
 * it, unless the loop did not run. */
static binding *rebound_target(lowering *fl, const loop *l, binding *previous)
{
    binding *end = fl->names.bindings[l->target];
    if (l->range.surely_runs || is_unbound(end))
        return copy_binding(fl, end);
    if (is_unbound(previous))
        return maybe_unbound(fl, l->syntax->span);
    if (previous->state == BINDING_POISONED || end->state == BINDING_POISONED)
        return state_binding(fl, BINDING_POISONED, end->span);
    if (end->state == BINDING_LOOP_END)
        keep_loop_variable(fl, l->target, end);
    if (previous->state == BINDING_LOOP_END)
        keep_loop_variable(fl, l->target, previous);
    if (previous->state != BINDING_BOUND || end->state != BINDING_BOUND ||
        !same_type(previous, end) || !owns_variable(fl, l->target, end))
        return conflict(fl, previous, end);
    mark_read(previous);
    fl->block->count--; /* the FOR statement, which has to follow */
    emit_assign(fl, value_var(&end->v), &previous->v, l->stmt->span);
    vec_push(fl->a, fl->block, l->stmt);
    return copy_binding(fl, end);
}

/* After the loop its variable keeps the last value, should somebody read it. */
static binding *after_target(lowering *fl, const loop *l, binding *previous)
{
    const binding *end = fl->names.bindings[l->target];
    if (end->state != BINDING_BOUND || value_var(&end->v) != l->stmt->target)
        return rebound_target(fl, l, previous);
    if (is_unbound(previous) && !l->range.surely_runs)
        return maybe_unbound(fl, l->syntax->span);
    bool other_type = previous->state == BINDING_CONFLICT ||
                      (previous->state == BINDING_BOUND && !is_integer(previous));
    if (other_type && !l->range.surely_runs)
        return conflict(fl, previous, end);
    binding *b = state_binding(fl, BINDING_LOOP_END, l->syntax->target->span);
    b->loop = l->stmt;
    b->block = fl->block;
    b->previous = previous;
    return b;
}

static void finish_loop(lowering *fl, const loop *l, binding *previous)
{
    bool ended = fl->terminated;
    fl->terminated = false;
    binding *target = after_target(fl, l, previous);
    for (int64_t i = 0; i < l->assigned.count; i++) {
        int64_t name = l->assigned.items[i];
        if (name != l->target)
            fl->names.bindings[name] = ended ? l->before[name]->origin : after_loop(fl, l, name);
    }
    fl->names.bindings[l->target] = target;
}

static bool is_index(const binding *b)
{
    return b->state == BINDING_BOUND && is_integer(b) && b->v.expr->dtype == PYPTO_INDEX;
}

/* An index that the name of a loop inside the body has had before: its last value is carried. */
static void keep_inner_targets(lowering *fl, const loop *l)
{
    for (int64_t i = 0; i < l->assigned.count; i++) {
        int64_t name = l->assigned.items[i];
        binding *end = fl->names.bindings[name];
        if (name != l->target && end->state == BINDING_LOOP_END && is_index(l->before[name]))
            keep_loop_variable(fl, name, end);
    }
}

/* Lowers the body until the names that it carries are known; each attempt adds at least one. */
static void lower_loop(lowering *fl, loop *l)
{
    binding *previous = fl->names.bindings[l->target];
    for (int64_t attempts = 0;; attempts++) {
        int64_t errors = fl->fe->error_count;
        int32_t temporaries = fl->temporaries;
        binding **names = scope_snapshot(fl);
        l->before = scope_snapshot(fl);
        lower_body(fl, l);
        keep_inner_targets(fl, l);
        name_set carried = {0};
        for (int64_t i = 0; i < l->assigned.count && !fl->terminated; i++) {
            int64_t name = l->assigned.items[i];
            if (name != l->target && is_carried(l, l->before[name], fl->names.bindings[name]))
                vec_push(fl->a, &carried, name);
        }
        if (carried.count == 0 || fl->fe->error_count != errors || attempts > l->assigned.count)
            break;
        fl->block->count--; /* the FOR statement of this attempt */
        fl->temporaries = temporaries;
        scope_restore(fl, names);
        for (int64_t i = 0; i < carried.count; i++)
            carry(fl, carried.items[i]);
    }
    finish_loop(fl, l, previous);
}

void lower_for(lowering *fl, const syntax_stmt *s)
{
    if (s->orelse.count > 0)
        report(fl->fe, DIAG_UNSUPPORTED_STATEMENT, s->orelse.items[0]->span,
               "put the statements behind the loop",
               "Unsupported statement type: else of a for loop");
    loop l = {.syntax = s, .range = lower_range(fl, s->value)};
    if (s->target->kind != SYNTAX_NAME) {
        report(fl->fe, DIAG_BAD_LOOP, s->target->span, "write `for i in pl.range(n):`",
               "the target of a for loop must be a single loop variable");
        return;
    }
    l.target = scope_find(fl, s->target->text);
    names_bound(fl, &s->body, &l.assigned);
    l.range.stop = fixed_bound(fl, &l.assigned, l.range.stop);
    l.range.step = fixed_bound(fl, &l.assigned, l.range.step);
    lower_loop(fl, &l);
}
