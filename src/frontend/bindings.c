/* The names of one function: what each is bound to at the point that is being lowered.
 *
 * Names are function-wide, as in Python: a name that is assigned anywhere in the function is the
 * function's own everywhere in it. What a name is bound to changes from statement to statement. Each
 * change is recorded on a trail, so that flow.c can lower one path after the other from the same state
 * and joins only what they changed: the cost of a branch is that of what stands in it.
 *
 * Scalars and tiles are values: a name's variable holds them, and assigning a value of the same type
 * computes into that variable again, so a loop-carried accumulator keeps one place. Handles (tensors,
 * windows, buffers, communicators) are only bound: `data = pl.store(t, o, data)` leaves `data` bound to
 * the variable that it was bound to, and no statement is made of it. Only where paths bind different
 * handles a name gets a variable of its own (binding.cell), which statements then set at run time.
 *
 * A name that is assigned once, to a constant, is that constant: it has no variable and may stand where
 * constants are needed, in shapes of tiles for example. */
#include "frontend/flow.h"
#include "frontend/lower.h"
#include "frontend/scopes.h"

/* ---- which names there are ---- */

typedef VEC(const syntax_expr *) target_list;

static void collect_target(arena *a, const syntax_expr *target, target_list *list)
{
    if (target == NULL)
        return;
    if (target->kind == SYNTAX_NAME)
        vec_push(a, list, target);
    if (target->kind == SYNTAX_STARRED)
        collect_target(a, target->a, list);
    if (syntax_is_sequence(target)) {
        for (int64_t i = 0; i < target->items.count; i++)
            collect_target(a, target->items.items[i], list);
    }
}

/* Every place of the block that binds a name, in the order of writing. */
static void collect_targets(arena *a, const syntax_block *block, target_list *list)
{
    for (int64_t i = 0; i < block->count; i++) {
        const syntax_stmt *s = block->items[i];
        bool binds = s->kind == SYNTAX_ASSIGN || s->kind == SYNTAX_AUGMENTED ||
                     s->kind == SYNTAX_FOR || (s->kind == SYNTAX_ANNOTATED && s->value != NULL);
        if (binds)
            collect_target(a, s->target, list);
        if (s->kind == SYNTAX_WITH) {
            for (int64_t k = 1; k < s->items.count; k += 2)
                collect_target(a, s->items.items[k], list);
        }
        for (int64_t k = 0; s->kind == SYNTAX_STMT_OTHER && k < s->items.count; k++)
            collect_target(a, s->items.items[k], list);
        collect_targets(a, &s->body, list);
        collect_targets(a, &s->orelse, list);
    }
}

int64_t binding_find(const lowering *fl, const char *name)
{
    const int64_t *at = map_get(&fl->names.index, name);
    return at == NULL ? -1 : *at;
}

static void grow_names(lowering *fl)
{
    name_scope *names = &fl->names;
    int64_t count = names->count;
    int64_t capacity = names->capacity == 0 ? 16 : names->capacity * 2;
    name_scope grown = *names;
    grown.capacity = capacity;
    grown.names = arena_array(fl->a, const char *, capacity);
    grown.bindings = arena_array(fl->a, binding *, capacity);
    grown.assignments = arena_array(fl->a, int32_t, capacity);
    grown.storage = arena_array(fl->a, name_storage, capacity);
    grown.crossings = arena_array(fl->a, name_crossing, capacity);
    grown.slots = arena_array(fl->a, int64_t, capacity);
    for (int64_t i = 0; i < count; i++) {
        grown.names[i] = names->names[i];
        grown.bindings[i] = names->bindings[i];
        grown.assignments[i] = names->assignments[i];
        grown.storage[i] = names->storage[i];
        grown.crossings[i] = names->crossings[i];
        grown.slots[i] = names->slots[i];
    }
    *names = grown;
}

void binding_declare(lowering *fl, const char *name, bool assigned)
{
    name_scope *names = &fl->names;
    int64_t index = binding_find(fl, name);
    if (index < 0) {
        if (names->index.a == NULL)
            names->index = map_make(fl->a);
        if (names->count == names->capacity)
            grow_names(fl);
        index = names->count++;
        names->names[index] = name;
        names->bindings[index] = arena_new(fl->a, binding);
        names->slots[index] = -1;
        int64_t *position = arena_new(fl->a, int64_t);
        *position = index;
        map_set(&names->index, name, position);
    }
    names->assignments[index] += assigned ? 1 : 0;
}

void binding_collect(lowering *fl, const syntax_block *block)
{
    target_list list = {0};
    collect_targets(fl->a, block, &list);
    for (int64_t i = 0; i < list.count; i++)
        binding_declare(fl, list.items[i]->text, true);
}

bool name_set_has(const name_set *set, int64_t name)
{
    for (int64_t i = 0; i < set->count; i++) {
        if (set->items[i] == name)
            return true;
    }
    return false;
}

void name_set_add(arena *a, name_set *set, int64_t name)
{
    if (!name_set_has(set, name))
        vec_push(a, set, name);
}

void names_bound(const lowering *fl, const syntax_block *block, name_set *set)
{
    target_list list = {0};
    collect_targets(fl->a, block, &list);
    for (int64_t i = 0; i < list.count; i++) {
        int64_t index = binding_find(fl, list.items[i]->text);
        if (fl->names.slots[index] >= 0)
            continue;
        fl->names.slots[index] = set->count;
        vec_push(fl->a, set, index);
    }
    for (int64_t i = 0; i < set->count; i++)
        fl->names.slots[set->items[i]] = -1;
}

/* ---- variables ---- */

static ir_var *new_local(lowering *fl, const char *name, const ir_type *type, pypto_span span)
{
    return ir_var_create(fl->fe->program, fl->ir, IR_VAR_LOCAL, name, *type, span);
}

ir_var *temporary(lowering *fl, const ir_type *type, pypto_span span)
{
    const char *name = NULL;
    do {
        name = arena_printf(fl->a, "t%d", fl->notes->temporaries++);
    } while (binding_find(fl, name) >= 0);
    ir_var *var = new_local(fl, name, type, span);
    var->is_made = true;
    return var;
}

void emit_assign(lowering *fl, ir_var *target, const dsl_value *v, pypto_span span)
{
    if (value_var(v) == target)
        return;
    ir_stmt *s = ir_stmt_create(fl->fe->program, fl->block, IR_ASSIGN, span);
    s->target = target;
    if (v->kind == VALUE_SCALAR)
        s->value = ir_convert(fl->a, v->expr, target->type.dtype, span);
    else
        s->source = v->var;
}

void clear_late_vars(lowering *fl)
{
    ir_block *body = &fl->ir->body;
    ir_block rest = *body;
    *body = (ir_block){0};
    for (int64_t i = 0; i < fl->notes->late_vars.count; i++) {
        ir_stmt *s = ir_stmt_create(fl->fe->program, body, IR_ASSIGN, fl->ir->span);
        s->target = fl->notes->late_vars.items[i];
        s->value = s->target->type.dtype == PYPTO_BOOL ? ir_bool(fl->a, false)
                                                       : ir_int_of(fl->a, 0, PYPTO_TASK_ID);
    }
    for (int64_t i = 0; i < rest.count; i++)
        vec_push(fl->a, body, rest.items[i]);
}

bool is_own(const lowering *fl, const ir_var *var)
{
    return var->id < fl->ir->vars.count && fl->ir->vars.items[var->id] == var;
}

static dsl_value settle_in_temporary(lowering *fl, const dsl_value *v)
{
    ir_type type;
    if (!value_type(v, &type))
        return *v;
    ir_var *var = temporary(fl, &type, v->span);
    if (v->kind == VALUE_VAR)
        var->root = v->var->root;
    emit_assign(fl, var, v, v->span);
    return var_value(fl->a, var, v->span);
}

dsl_value settle(lowering *fl, dsl_value v)
{
    if (v.kind == VALUE_TUPLE) {
        dsl_value *items = arena_array(fl->a, dsl_value, v.count);
        for (int32_t i = 0; i < v.count; i++)
            items[i] = settle(fl, v.items[i]);
        v.items = items;
        return v;
    }
    if (v.kind == VALUE_SCALAR) {
        bool constant =
            v.expr->kind == IR_INT || v.expr->kind == IR_FLOAT || v.expr->kind == IR_BOOL;
        bool fixed = v.expr->kind == IR_VAR &&
                     (v.expr->var->kind == IR_VAR_PARAM || v.expr->var->kind == IR_VAR_DIM);
        return constant || fixed ? v : settle_in_temporary(fl, &v);
    }
    /* A handle without a root is one that is set at run time. */
    if (v.kind == VALUE_VAR && (ir_is_private(v.var->type.kind) || v.var->root == NULL))
        return settle_in_temporary(fl, &v);
    return v;
}

/* ---- bindings ---- */

void binding_set(lowering *fl, int64_t name, binding *b)
{
    name_change change = {name, fl->names.bindings[name]};
    vec_push(fl->a, &fl->trail, change);
    fl->names.bindings[name] = b;
}

void binding_undo(lowering *fl, int64_t mark)
{
    while (fl->trail.count > mark) {
        const name_change *last = &fl->trail.items[--fl->trail.count];
        fl->names.bindings[last->name] = last->b;
    }
}

void bind_name(lowering *fl, int64_t name, dsl_value v, pypto_span span)
{
    binding *b = arena_new(fl->a, binding);
    b->state = v.kind == VALUE_POISON ? BINDING_POISONED : BINDING_BOUND;
    b->v = v;
    b->span = span;
    b->depth = fl->depth;
    binding_set(fl, name, b);
}

void binding_poison(lowering *fl, int64_t name)
{
    bind_name(fl, name, poison(), SPAN_NONE);
}

bool binding_owns(const lowering *fl, int64_t name, const ir_var *var)
{
    const var_list *own = &fl->names.storage[name].vars;
    for (int64_t i = 0; i < own->count; i++) {
        if (own->items[i] == var)
            return true;
    }
    return false;
}

bool is_cell(const lowering *fl, const ir_var *var)
{
    for (int64_t i = 0; i < fl->notes->cells.count; i++) {
        if (fl->notes->cells.items[i] == var)
            return true;
    }
    return false;
}

void insert_stmt(lowering *fl, ir_block *block, int64_t at, ir_stmt *s)
{
    vec_push(fl->a, block, s);
    for (int64_t i = block->count - 1; i > at; i--)
        block->items[i] = block->items[i - 1];
    block->items[at] = s;
}

static ir_stmt *new_assign(lowering *fl, ir_var *target, const ir_expr *number, pypto_span span)
{
    ir_stmt *s = arena_new(fl->a, ir_stmt);
    s->kind = IR_ASSIGN;
    s->span = span;
    s->target = target;
    s->value = number;
    return s;
}

/* What a loop variable's own variable holds when the loop does not run: what the name was before. A loop
 * that surely runs needs nothing, and only a C compiler does not see it: 0. */
static void set_before_loop(lowering *fl, int64_t name, binding *b, ir_var *var)
{
    binding *previous = b->previous;
    if (previous->state == BINDING_LOOP_END)
        keep_loop_variable(fl, name, previous);
    bool number = previous->state == BINDING_BOUND && previous->v.kind == VALUE_SCALAR &&
                  ir_is_integer(previous->v.expr->dtype);
    pypto_span span = b->loop->span;
    if (!number) {
        insert_stmt(fl, &fl->ir->body, 0, new_assign(fl, var, ir_int(fl->a, 0), span));
        return;
    }
    mark_read(previous);
    if (value_var(&previous->v) == var)
        return;
    const int64_t at = ir_index_of(b->block, b->loop);
    const ir_expr *before = ir_convert(fl->a, previous->v.expr, PYPTO_INDEX, span);
    insert_stmt(fl, b->block, at, new_assign(fl, var, before, span));
}

/* Reading a loop variable after its loop is rare, so the statements that it needs are put in then: the
 * first of the body stores it in the name's own variable. */
void keep_loop_variable(lowering *fl, int64_t name, binding *b)
{
    const ir_type type = ir_scalar_type(PYPTO_INDEX);
    ir_var *var = binding_target(fl, name, &type, b->loop->span);
    set_before_loop(fl, name, b, var);
    insert_stmt(fl, &b->loop->body, 0,
                new_assign(fl, var, ir_ref(fl->a, b->loop->target), b->loop->span));
    for (binding *same = b; same != NULL; same = same->origin) {
        same->state = BINDING_BOUND;
        same->v = var_value(fl->a, var, b->span);
    }
}

void keep_value(lowering *fl, int64_t name, binding *b)
{
    if (b->state == BINDING_LOOP_END)
        keep_loop_variable(fl, name, b);
    else if (b->state == BINDING_INSIDE)
        (void)keep_scope_value(fl, name, b);
    mark_open(b);
}

static dsl_value unbound(lowering *fl, int64_t name, pypto_span span)
{
    return report(
        fl->fe, DIAG_UNDEFINED_NAME, span,
        "assign it before it is read; a name that a function assigns is its own everywhere "
        "in it",
        "Undefined variable '%s': nothing is assigned to it before this line",
        fl->names.names[name]);
}

dsl_value binding_read(lowering *fl, int64_t name, pypto_span span)
{
    binding *b = fl->names.bindings[name];
    for (binding *seen = b; seen != NULL; seen = seen->origin)
        seen->read = true;
    dsl_value v = b->v;
    switch (b->state) {
    case BINDING_UNBOUND: return unbound(fl, name, span);
    case BINDING_POISONED: return poison();
    case BINDING_BOUND: break;
    case BINDING_LOOP_END:
        keep_loop_variable(fl, name, b);
        v = b->v;
        break;
    case BINDING_PARTIAL:
        v = b->by_loop
                ? report(fl->fe, DIAG_UNDEFINED_NAME, span, "assign it before the loop, too",
                         "Variable '%s' may not be defined: the loop at line %d may not run",
                         fl->names.names[name], b->span.line)
                : report(fl->fe, DIAG_UNDEFINED_NAME, span,
                         "assign it in both branches, or before the if",
                         "Undefined variable '%s' on some paths: it is assigned in only one branch "
                         "of the 'if' at line %d",
                         fl->names.names[name], b->span.line);
        binding_poison(fl, name);
        break;
    case BINDING_OUTSIDE:
        v = report(fl->fe, DIAG_BAD_SCOPE, span, "take the number that is needed before the scope",
                   "'%s' is a %s of the function around the scope at line %d, and cannot enter it",
                   fl->names.names[name], type_name(fl->a, &b->v), b->span.line);
        binding_poison(fl, name);
        break;
    case BINDING_INSIDE:
        if (keep_scope_value(fl, name, b)) {
            v = b->v;
            break;
        }
        v = report(fl->fe, DIAG_BAD_SCOPE, span,
                   "store it into a tensor in the scope, and read that behind it",
                   "'%s' is a %s of the scope at line %d, and does not outlive it",
                   fl->names.names[name], type_name(fl->a, &b->v), b->span.line);
        binding_poison(fl, name);
        break;
    case BINDING_CONFLICT:
        v = report(fl->fe, DIAG_RETYPED_NAME, span, retype_hint(fl->a, &b->v, &b->other),
                   "Cannot reassign '%s' with a different type: %s at line %d, %s at line %d, and "
                   "both reach this line",
                   fl->names.names[name], type_name(fl->a, &b->v), b->span.line,
                   type_name(fl->a, &b->other), b->other_span.line);
        binding_poison(fl, name);
        break;
    }
    if (b->open && b->state == BINDING_BOUND)
        check_bound(fl, name, b, span);
    v.span = span;
    return v;
}

/* Reuses the name's variable of that type: what it held is dead once the name is assigned again.
 * Handles are new each time, because another name may be bound to the same one. */
ir_var *binding_target(lowering *fl, int64_t name, const ir_type *type, pypto_span span)
{
    if (name < 0)
        return temporary(fl, type, span);
    if (ir_is_handle(type->kind))
        return new_local(fl, fl->names.names[name], type, span);
    var_list *own = &fl->names.storage[name].vars;
    for (int64_t i = 0; i < own->count; i++) {
        if (ir_type_equal(&own->items[i]->type, type))
            return own->items[i];
    }
    ir_var *var = new_local(fl, fl->names.names[name], type, span);
    vec_push(fl->a, own, var);
    return var;
}
