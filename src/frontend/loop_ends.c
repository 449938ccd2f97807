/* Where the turns of a loop end: what the next turn starts with, and what names are bound to behind the loop.
 *
 * The paths that meet are the ends of turns (also by continue) and the breaks. First each of them brings its
 * values to where the next turn expects them: settle_ends(), which says what is missing when that takes a
 * variable, or a wider one, that the loop does not have; then the body is lowered again (loops.c). When
 * nothing is missing, finish_loop() binds the names for what follows: to what all paths agree on, which is
 * also that of the way past a loop that may not run. */
#include "frontend/loops_internal.h"

meeting meet(lowering *fl, const loop *l)
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

bool settle_ends(lowering *fl, const loop *l, meeting *m, name_set *missing)
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

void finish_loop(lowering *fl, const loop *l, meeting *m)
{
    int64_t first = l->endless ? m->turns : 0;
    int64_t count = m->paths.count - first;
    if (l->target >= 0)
        binding_set(fl, l->target, after_target(fl, l, m));
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
            binding_set(fl, l->assigned.items[i], after);
    }
    fl->terminated = count == 0 && l->endless;
}

void remember(lowering *fl, const loop *l, const meeting *m, loop_memory *memory,
              const name_set *missing)
{
    for (int64_t i = 0; i < l->assigned.count; i++) {
        int64_t name = l->assigned.items[i];
        if (!name_set_has(missing, name))
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
