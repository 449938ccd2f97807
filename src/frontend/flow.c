/* Paths: what names are bound to where several ways through the function meet, and the if statement.
 *
 * Each way is lowered from the same state; path_here() notes what it has changed, binding_undo() takes that
 * back. Where paths meet, only names that some path has changed are looked at. The same value on all
 * paths is kept. Values of one type get one variable: paths that have another one assign it at their
 * end (in front of the break or continue that ends them). Numbers of different width get one of the widest
 * type; of tiles that differ only in whether their valid extents are computed, the variable has extents.
 * Other different types make a conflict, which is an error only if the name is read afterwards. Used by
 * loops.c too. */
#include "frontend/flow.h"
#include "frontend/lower.h"
#include "frontend/scalars.h"
#include "frontend/statements.h"

#include "ops/dtypes.h"

#include <stdlib.h>

void mark_read(binding *b)
{
    for (; b != NULL; b = b->origin)
        b->read = true;
}

/* The same meaning at a place where paths have met. */
binding *copy_binding(lowering *fl, const binding *b)
{
    binding *copy = arena_new(fl->a, binding);
    *copy = *b;
    copy->depth = fl->depth;
    copy->read = false;
    copy->origin = NULL;
    return copy;
}

binding *conflict_binding(lowering *fl, const binding *x, const binding *y)
{
    binding *b = arena_new(fl->a, binding);
    b->state = BINDING_CONFLICT;
    b->v = x->v;
    b->other = y->v;
    b->span = x->span;
    b->other_span = y->span;
    b->depth = fl->depth;
    return b;
}

binding *state_binding(lowering *fl, binding_state state, pypto_span span)
{
    binding *b = arena_new(fl->a, binding);
    b->state = state;
    b->span = span;
    b->depth = fl->depth;
    return b;
}

/* INDEX and INT64 are one type to a script. */
bool same_type(const binding *x, const binding *y)
{
    ir_type a;
    ir_type b;
    if (!value_type(&x->v, &a) || !value_type(&y->v, &b))
        return false;
    if (a.kind == IR_SCALAR && b.kind == IR_SCALAR && dtype_is_index(a.dtype) &&
        dtype_is_index(b.dtype))
        return true;
    return ir_type_equal(&a, &b);
}

bool type_widens(const ir_type *narrow, const ir_type *wide)
{
    if (narrow->kind == IR_SCALAR && wide->kind == IR_SCALAR)
        return dtype_widens(narrow->dtype, wide->dtype);
    return narrow->kind != IR_SCALAR && ir_value_fits(narrow, wide);
}

/* Tiles, tensors or windows of one element type and shape: ragged if any of them is. */
static bool ragged_meeting(binding *const *bs, int64_t count, ir_type *type)
{
    if (!value_type(&bs[0]->v, type) || type->kind == IR_SCALAR)
        return false;
    for (int64_t i = 1; i < count; i++) {
        ir_type other;
        if (!value_type(&bs[i]->v, &other))
            return false;
        if (ir_value_fits(type, &other))
            *type = other;
        else if (!ir_value_fits(&other, type))
            return false;
    }
    return true;
}

bool meeting_type(lowering *fl, binding *const *bs, int64_t count, ir_type *type)
{
    bool same = value_type(&bs[0]->v, type);
    for (int64_t i = 1; i < count; i++)
        same = same && same_type(bs[0], bs[i]);
    if (same || ragged_meeting(bs, count, type))
        return true;
    const dsl_value **values = arena_array(fl->a, const dsl_value *, count);
    for (int64_t i = 0; i < count; i++)
        values[i] = &bs[i]->v;
    pypto_dtype dtype;
    if (!scalar_meeting(values, count, &dtype))
        return false;
    *type = ir_scalar_type(dtype);
    return true;
}

/* ---- paths ---- */

flow_path path_here(lowering *fl, int64_t mark, ir_block *block, bool jumps)
{
    flow_path p = {.block = block, .jumps = jumps};
    for (int64_t i = mark; i < fl->trail.count; i++) {
        int64_t name = fl->trail.items[i].name;
        if (fl->names.slots[name] >= 0)
            continue;
        name_change change = {name, fl->names.bindings[name]};
        fl->names.slots[name] = p.changes.count;
        vec_push(fl->a, &p.changes, change);
    }
    for (int64_t i = 0; i < p.changes.count; i++)
        fl->names.slots[p.changes.items[i].name] = -1;
    return p;
}

binding **path_bindings(lowering *fl, const flow_path *p, const name_set *names)
{
    binding **ends = arena_array(fl->a, binding *, names->count);
    for (int64_t i = 0; i < names->count; i++) {
        fl->names.slots[names->items[i]] = i;
        ends[i] = fl->names.bindings[names->items[i]];
    }
    for (int64_t i = 0; i < p->changes.count; i++) {
        int64_t slot = fl->names.slots[p->changes.items[i].name];
        if (slot >= 0)
            ends[slot] = p->changes.items[i].b;
    }
    for (int64_t i = 0; i < names->count; i++)
        fl->names.slots[names->items[i]] = -1;
    return ends;
}

void path_assign(lowering *fl, flow_path *p, ir_var *target, const binding *b)
{
    ir_block *saved = fl->block;
    fl->block = p->block;
    int64_t before = p->block->count;
    emit_assign(fl, target, &b->v, b->span);
    if (p->jumps && p->block->count > before) {
        ir_stmt **items = p->block->items;
        ir_stmt *jump = items[before - 1];
        items[before - 1] = items[before];
        items[before] = jump;
    }
    fl->block = saved;
}

/* ---- merging ---- */

/* One variable for all. */
static binding *merge_values(lowering *fl, int64_t name, flow_path *paths, binding **bs,
                             int64_t count, ir_type type)
{
    ir_var *target = NULL;
    for (int64_t i = 0; i < count && target == NULL; i++) {
        ir_var *var = value_var(&bs[i]->v);
        if (var != NULL && binding_owns(fl, name, var) && ir_type_equal(&var->type, &type))
            target = var;
    }
    if (target == NULL)
        target = binding_target(fl, name, &type, bs[0]->span);
    if (ir_is_handle(type.kind)) {
        const ir_var *first = bs[0]->v.var;
        target->root = first->root;
        target->buffer = first->buffer;
        for (int64_t i = 1; i < count; i++) {
            const ir_var *var = bs[i]->v.var;
            target->root = var->root == target->root ? target->root : NULL;
            target->buffer = var->buffer == target->buffer ? target->buffer : -1;
        }
    }
    for (int64_t i = 0; i < count; i++)
        path_assign(fl, &paths[i], target, bs[i]);
    binding *merged = state_binding(fl, BINDING_BOUND, bs[0]->span);
    merged->v = var_value(fl->a, target, bs[0]->span);
    return merged;
}

static bool any_in_state(binding *const *bs, int64_t count, binding_state state)
{
    for (int64_t i = 0; i < count; i++) {
        if (bs[i]->state == state)
            return true;
    }
    return false;
}

static bool all_in_state(binding *const *bs, int64_t count, binding_state state)
{
    for (int64_t i = 0; i < count; i++) {
        if (bs[i]->state != state)
            return false;
    }
    return true;
}

static bool is_any_open(binding *const *bs, int64_t count)
{
    bool open = false;
    for (int64_t i = 0; i < count; i++)
        open = open || bs[i]->open;
    return open;
}

/* Where paths differ, the variable of a loop that has ended is a number like any other, and what a scope
 * has computed a result of it. */
static void keep_values(lowering *fl, int64_t name, binding **bs, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (bs[i]->state != BINDING_BOUND && bs[i]->state != BINDING_LOOP_END &&
            bs[i]->state != BINDING_INSIDE)
            return;
    }
    for (int64_t i = 0; i < count; i++)
        keep_value(fl, name, bs[i]);
}

binding *merge_bindings(lowering *fl, int64_t name, pypto_span span, flow_path *paths, binding **bs,
                        int64_t count)
{
    bool one = true;
    for (int64_t i = 1; i < count; i++)
        one = one && bs[i] == bs[0];
    if (one)
        return bs[0];
    if (any_in_state(bs, count, BINDING_POISONED))
        return state_binding(fl, BINDING_POISONED, span);
    if (any_in_state(bs, count, BINDING_UNBOUND) || any_in_state(bs, count, BINDING_PARTIAL)) {
        for (int64_t i = 0; i < count; i++)
            if (bs[i]->state == BINDING_PARTIAL && bs[i]->by_loop)
                return copy_binding(fl, bs[i]);
        bool nowhere = all_in_state(bs, count, BINDING_UNBOUND);
        return state_binding(fl, nowhere ? BINDING_UNBOUND : BINDING_PARTIAL, span);
    }
    keep_values(fl, name, bs, count);
    const bool open = is_any_open(bs, count);
    if (open)
        note_bound(fl, name, paths, bs, count);
    bool same = true;
    for (int64_t i = 1; i < count; i++) {
        if (bs[0]->state != BINDING_BOUND || bs[i]->state != BINDING_BOUND)
            return conflict_binding(fl, bs[0], bs[i]);
    }
    for (int64_t i = 0; i < count; i++) {
        mark_read(bs[i]);
        same = same && same_value(&bs[0]->v, &bs[i]->v);
    }
    if (same) {
        binding *b = copy_binding(fl, bs[0]);
        b->open = open;
        return b;
    }
    ir_type type;
    if (!meeting_type(fl, bs, count, &type)) {
        for (int64_t i = 1; i < count; i++) {
            if (!meeting_type(fl, (binding *[]){bs[0], bs[i]}, 2, &type))
                return conflict_binding(fl, bs[0], bs[i]);
        }
        return conflict_binding(fl, bs[0], bs[1]);
    }
    binding *b = merge_values(fl, name, paths, bs, count, type);
    b->open = open;
    mark_open(b);
    return b;
}

static int compare_names(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x;
    int64_t b = *(const int64_t *)y;
    return a < b ? -1 : a > b;
}

/* Where two paths meet: merges what one of them has changed, in the order of the names. */
static void join(lowering *fl, pypto_span span, flow_path *paths)
{
    name_set changed = {0};
    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < paths[k].changes.count; i++) {
            int64_t name = paths[k].changes.items[i].name;
            if (fl->names.slots[name] >= 0)
                continue;
            fl->names.slots[name] = 0;
            vec_push(fl->a, &changed, name);
        }
    }
    if (changed.count > 0)
        qsort(changed.items, (size_t)changed.count, sizeof *changed.items, compare_names);
    binding **first = path_bindings(fl, &paths[0], &changed);
    binding **second = path_bindings(fl, &paths[1], &changed);
    for (int64_t i = 0; i < changed.count; i++) {
        binding *bs[2] = {first[i], second[i]};
        binding_set(fl, changed.items[i], merge_bindings(fl, changed.items[i], span, paths, bs, 2));
    }
}

/* ---- if ---- */

typedef struct branch {
    flow_path end;
    bool terminated;
} branch;

static branch lower_branch(lowering *fl, const syntax_block *syntax, ir_block *block)
{
    lowering inside = *fl;
    inside.block = block;
    inside.in_branch = true;
    inside.depth++;
    lower_block(&inside, syntax);
    branch result = {path_here(&inside, fl->trail.count, block, false), inside.terminated};
    binding_undo(&inside, fl->trail.count);
    return result;
}

static void continue_from(lowering *fl, const flow_path *p)
{
    for (int64_t i = 0; i < p->changes.count; i++)
        binding_set(fl, p->changes.items[i].name, p->changes.items[i].b);
}

void lower_if(lowering *fl, const syntax_stmt *s)
{
    dsl_value test;
    bool ok = condition(fl, s->value, "if", &test);
    /* A condition that the constants of the script decide chooses what is compiled at all. */
    if (ok && test.expr->kind == IR_BOOL) {
        bool in_branch = fl->in_branch;
        fl->in_branch = true;
        const bool first = test.expr->integer != 0;
        leave_out(fl, first ? &s->orelse : &s->body);
        lower_block(fl, first ? &s->body : &s->orelse);
        fl->in_branch = in_branch;
        return;
    }
    ir_stmt *stmt = ir_stmt_create(fl->fe->program, fl->block, IR_IF, s->span);
    stmt->value = ok ? test.expr : ir_bool(fl->a, true);
    branch first = lower_branch(fl, &s->body, &stmt->body);
    branch second = lower_branch(fl, &s->orelse, &stmt->orelse);
    fl->terminated = first.terminated && second.terminated;
    if (fl->terminated)
        return;
    if (first.terminated || second.terminated) {
        continue_from(fl, first.terminated ? &second.end : &first.end);
        return;
    }
    flow_path paths[2] = {first.end, second.end};
    join(fl, s->span, paths);
}
