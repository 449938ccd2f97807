/* Names that may not be bound when they are read, because only a loop binds them and that may have no turns.
 *
 * The binding of such a name is marked `open` where the loop ends. It is a binding like any other: its
 * value is that of the last turn, paths merge it, loops carry it. What differs is reading. The first read
 * on a path makes
 *
 *     if not m_bound: unbound("m")
 *
 * and behind it the binding is not open any more. m_bound is false at the head of the function and true at
 * the places that note_bound() has collected: the ends of paths behind which the name is bound. Nothing is
 * emitted for names that nobody reads. There is one guard for each name, for names are never unbound again:
 * a turn of an outer loop, too, finds what earlier turns have bound.
 *
 * Scalars and tiles lie in their name's own variable, which keeps the value over turns that bind nothing. A
 * handle has no variable: one that is the same storage whatever the loop does (a parameter, a tensor that
 * was made at the top level) is not open at all; one that may change under the name gets a variable. */
#include "frontend/expressions.h"
#include "frontend/flow.h"
#include "frontend/lower.h"

/* ---- where a name is bound ---- */

static void set_guard(lowering *fl, const name_storage *own, const bound_place *place)
{
    ir_stmt *s = arena_new(fl->a, ir_stmt);
    s->kind = IR_ASSIGN;
    s->span = place->span;
    s->target = own->guard;
    s->value = ir_bool(fl->a, true);
    insert_stmt(fl, place->block, place->block->count - (place->jumps ? 1 : 0), s);
}

/* What was checked on this path is known to be bound, and so is its guard to be true. */
static bool is_checked(const binding *b)
{
    return b->origin != NULL && b->origin->open;
}

static bool is_noted(const name_storage *own, const ir_block *block)
{
    for (int64_t i = own->places.count - 1; i >= 0; i--) {
        if (own->places.items[i].block == block)
            return true;
    }
    return false;
}

void note_bound(lowering *fl, int64_t name, const flow_path *paths, binding *const *bs,
                int64_t count)
{
    name_storage *own = &fl->names.storage[name];
    for (int64_t i = 0; i < count; i++) {
        const bool bound = bs[i]->state == BINDING_BOUND || bs[i]->state == BINDING_LOOP_END ||
                           bs[i]->state == BINDING_INSIDE;
        if (!bound || bs[i]->open || is_checked(bs[i]) || is_noted(own, paths[i].block))
            continue;
        const bound_place place = {paths[i].block, paths[i].jumps, bs[i]->span};
        vec_push(fl->a, &own->places, place);
        if (own->guard != NULL)
            set_guard(fl, own, &place);
    }
}

void mark_open(const binding *b)
{
    ir_var *var = b->open && b->state == BINDING_BOUND ? value_var(&b->v) : NULL;
    if (var != NULL && var->kind == IR_VAR_LOCAL)
        var->may_be_unset = true;
}

/* ---- what it is bound to ---- */

static int64_t definitions(const ir_block *block, const ir_var *var)
{
    int64_t count = 0;
    (void)ir_definition(block, var, &count);
    return count;
}

/* Storage that has been there since before any loop. */
static bool is_fixed(const lowering *fl, const ir_var *var)
{
    if (var->kind == IR_VAR_PARAM || var->type.kind == IR_BUFFER)
        return true;
    const ir_block *body = &fl->ir->body;
    for (int64_t i = 0; i < body->count; i++) {
        if (body->items[i]->target == var)
            return !is_cell(fl, var) && definitions(body, var) == 1;
    }
    return false;
}

/* Whether the variable holds what the name was bound to last, also where a later turn, or a turn of a loop
 * around, does not bind the name. */
static bool keeps_value(const lowering *fl, int64_t name, const ir_var *var, const ir_stmt *loop)
{
    if (var->kind == IR_VAR_PARAM || var->kind == IR_VAR_DIM || binding_owns(fl, name, var))
        return true;
    return ir_is_handle(var->type.kind) && loop != NULL && definitions(&loop->body, var) > 0;
}

binding *open_binding(lowering *fl, int64_t name, binding *b, const ir_stmt *loop, flow_path *paths,
                      binding *const *bs, int64_t count)
{
    if (b->state != BINDING_BOUND && b->state != BINDING_LOOP_END && b->state != BINDING_INSIDE)
        return b;
    ir_type type;
    ir_var *var = b->state == BINDING_BOUND ? value_var(&b->v) : NULL;
    if (var != NULL && ir_is_handle(var->type.kind) && is_fixed(fl, var)) {
        b->open = false;
        return b;
    }
    if (b->state == BINDING_BOUND && var == NULL && has_variables(&b->v)) {
        binding *left = state_binding(fl, BINDING_PARTIAL, b->span);
        left->by_loop = true;
        return left;
    }
    note_bound(fl, name, paths, bs, count);
    if (var != NULL && value_type(&b->v, &type) && !keeps_value(fl, name, var, loop)) {
        ir_var *own = binding_target(fl, name, &type, b->span);
        own->root = var->root;
        own->buffer = var->buffer;
        for (int64_t i = 0; i < count; i++) {
            mark_read(bs[i]);
            path_assign(fl, &paths[i], own, bs[i]);
        }
        b->v = var_value(fl->a, own, b->span);
    }
    b->open = true;
    mark_open(b);
    return b;
}

/* ---- reading it ---- */

static ir_var *guard_of(lowering *fl, int64_t name, pypto_span span)
{
    name_storage *own = &fl->names.storage[name];
    if (own->guard != NULL)
        return own->guard;
    own->guard = ir_var_create(fl->fe->program, fl->ir, IR_VAR_LOCAL,
                               arena_printf(fl->a, "%s_bound", fl->names.names[name]),
                               ir_scalar_type(PYPTO_BOOL), span);
    own->guard->is_made = true;
    vec_push(fl->a, &fl->notes->late_vars, own->guard);
    for (int64_t i = 0; i < own->places.count; i++)
        set_guard(fl, own, &own->places.items[i]);
    return own->guard;
}

void check_bound(lowering *fl, int64_t name, binding *b, pypto_span span)
{
    const ir_expr *unbound =
        ir_unary(fl->a, IR_NOT, ir_ref(fl->a, guard_of(fl, name, span)), PYPTO_BOOL, span);
    mark_open(b);
    if (fl->reached != NULL)
        unbound = ir_binary(fl->a, IR_AND, fl->reached, unbound, PYPTO_BOOL, span);
    ir_block *block = fl->block;
    ir_stmt *s = ir_stmt_create(fl->fe->program, block, IR_IF, span);
    s->value = unbound;
    fl->block = &s->body;
    const dsl_value said = string_value(fl->names.names[name], span);
    const op_id fails = fl->ir->plane == PLD_PLANE_HOST ? OP_HOST_UNBOUND : OP_UNBOUND;
    (void)lower_values(fl, op_get(fails), &said, 1, span, -1);
    fl->block = block;
    if (fl->sometimes)
        return;
    binding *bound = arena_new(fl->a, binding);
    *bound = *b;
    bound->open = false;
    bound->origin = b;
    binding_set(fl, name, bound);
}
