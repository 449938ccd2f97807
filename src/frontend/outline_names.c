/* Names at the border of a scope that becomes a function: what they mean inside it, and behind it.
 *
 * On the way in, variables of the function around become parameters, made when they are first needed
 * (captured()); values are rewritten in terms of them. Extents of tensors are dimensions of the new function,
 * unless they are computed from parameters alone. On the way out, what is bound to a parameter is bound to what
 * was passed for it; anything else stays inside. A communication domain enters as the window that it is of. */
#include "frontend/flow.h"
#include "frontend/outline_internal.h"
#include "frontend/statements.h"

/* ---- from outside to inside ---- */

static const ir_expr *captured_value(void *context, ir_var *outer)
{
    outlining *o = context;
    return ir_ref(o->fl->a, captured(o, outer));
}

/* An expression of the function around in terms of parameters of the new one. Operations do not occur: names
 * that stand for more than a variable have been settled. */
static const ir_expr *inward(outlining *o, const ir_expr *e)
{
    return ir_substitute(o->fl->a, e, captured_value, o);
}

static void find_changing(void *context, ir_var *var)
{
    bool *found = context;
    *found = *found || (var->kind != IR_VAR_DIM && var->kind != IR_VAR_PARAM);
}

static bool has_operation(const ir_expr *e)
{
    return e != NULL && (e->kind == IR_OP || has_operation(e->a) || has_operation(e->b));
}

static bool is_changing(const ir_expr *extent)
{
    bool changing = has_operation(extent);
    ir_visit_expr(extent, find_changing, &changing);
    return changing;
}

/* An extent that is computed from what never changes is that computation; any other one is read off
 * the tensor itself. */
static const ir_expr *extent_inside(outlining *o, const ir_expr *extent, int32_t param, int32_t d)
{
    if (!is_changing(extent))
        return inward(o, extent);
    lowering *fl = o->fl;
    const ir_type type = ir_scalar_type(PYPTO_INDEX);
    const char *name = arena_printf(fl->a, "extent%lld", (long long)o->f->dims.count);
    ir_dim dim = {.param = param, .dim = d, .scale = 1};
    dim.var = ir_var_create(fl->fe->program, o->f, IR_VAR_DIM, name, type, o->f->span);
    vec_push(fl->a, &o->f->dims, dim);
    return ir_ref(fl->a, dim.var);
}

ir_var *captured(outlining *o, ir_var *outer)
{
    for (int64_t i = 0; i < o->captures.count; i++) {
        if (o->captures.items[i].outer == outer)
            return o->captures.items[i].param;
    }
    lowering *fl = o->fl;
    ir_type type = outer->type;
    bool handle = ir_is_handle(type.kind);
    /* Scalars that extents are made of come first. */
    for (int32_t d = 0; handle && d < type.ndim; d++) {
        if (!is_changing(type.shape[d]))
            (void)inward(o, type.shape[d]);
    }
    const int32_t index = (int32_t)o->f->params.count;
    capture c = {ir_var_create(fl->fe->program, o->f, IR_VAR_PARAM, outer->name, type, outer->span),
                 outer};
    c.param->is_extent = outer->kind == IR_VAR_DIM || outer->is_extent;
    vec_push(fl->a, &o->captures, c);
    for (int32_t d = 0; handle && d < type.ndim; d++)
        c.param->type.shape[d] = extent_inside(o, type.shape[d], index, d);
    return c.param;
}

static bool can_enter(const ir_var *var)
{
    ir_kind kind = var->type.kind;
    return kind == IR_SCALAR || ir_is_memory(kind);
}

/* No task is given a domain: the new function asks for that of the window, at its start. */
static ir_var *domain_inside(outlining *o, const ir_var *outer)
{
    lowering *fl = o->fl;
    ir_var *window = captured(o, outer->root);
    ir_var *domain =
        ir_var_create(fl->fe->program, o->f, IR_VAR_LOCAL, outer->name, outer->type, outer->span);
    domain->root = window;
    ir_stmt *s = ir_stmt_create(fl->fe->program, &o->f->body, IR_DO, o->f->span);
    s->op_def = op_get(OP_GET_COMM_CTX);
    s->operands = arena_array(fl->a, ir_operand, OP_MAX_PARAMS);
    s->operands[0] = (ir_operand){.kind = IR_OPERAND_VAR, .var = window, .span = o->f->span};
    s->operand_count = s->op_def->param_count;
    s->target = domain;
    return domain;
}

/* False: a value that has no place in the new function. */
static bool value_inside(outlining *o, dsl_value *v)
{
    if (v->kind == VALUE_TUPLE) {
        dsl_value *items = arena_array(o->fl->a, dsl_value, v->count);
        for (int32_t i = 0; i < v->count; i++) {
            items[i] = v->items[i];
            if (!value_inside(o, &items[i]))
                return false;
        }
        v->items = items;
        return true;
    }
    if (v->kind == VALUE_SCALAR)
        v->expr = inward(o, v->expr);
    if (is_domain_of_window(v)) {
        v->var = domain_inside(o, v->var);
        return true;
    }
    if (v->kind == VALUE_VAR && !can_enter(v->var))
        return false;
    if (v->kind == VALUE_VAR)
        v->var = captured(o, v->var);
    return true;
}

void settle_names(lowering *fl, const name_set *names, const outline_request *request)
{
    for (int64_t i = 0; i < names->count; i++) {
        binding *b = fl->names.bindings[names->items[i]];
        if (b->open && !reads_first(request->body, fl->names.names[names->items[i]]))
            continue;
        if (b->open) {
            (void)binding_read(fl, names->items[i], request->span);
            b = fl->names.bindings[names->items[i]];
        }
        keep_value(fl, names->items[i], b);
        bool plain =
            b->v.kind == VALUE_VAR || (b->v.kind == VALUE_SCALAR && b->v.expr->kind == IR_VAR);
        if (b->state != BINDING_BOUND || plain || !has_variables(&b->v))
            continue;
        binding *settled = copy_binding(fl, b);
        settled->v = settle(fl, b->v);
        settled->origin = b;
        binding_set(fl, names->items[i], settled);
    }
}

/* A guard is of one function. */
static binding *left_open(lowering *fl, const binding *b)
{
    binding *left = state_binding(fl, BINDING_PARTIAL, b->span);
    left->by_loop = true;
    return left;
}

void enter_names(lowering *inside, outlining *o, const name_set *names)
{
    for (int64_t i = 0; i < names->count; i++) {
        binding *b = inside->names.bindings[names->items[i]];
        dsl_value v = b->v;
        if (b->open) {
            binding_set(inside, names->items[i], left_open(inside, b));
            continue;
        }
        if (b->state != BINDING_BOUND || !has_variables(&v))
            continue;
        binding *entered = copy_binding(inside, b);
        if (!value_inside(o, &v)) {
            entered->state = BINDING_OUTSIDE;
            entered->span = o->f->span;
        }
        entered->v = v;
        entered->cell = false;
        entered->origin = b;
        binding_set(inside, names->items[i], entered);
    }
    /* Dimensions are looked up by name in this list. */
    for (int64_t i = 0; i < o->fl->notes->symbols.count; i++) {
        dim_symbol symbol = o->fl->notes->symbols.items[i];
        symbol.expr = symbol.expr == NULL ? NULL : inward(o, symbol.expr);
        vec_push(inside->a, &inside->notes->symbols, symbol);
    }
}

/* ---- from inside to outside ---- */

void settle_loop_variables(lowering *inside, const flow_path *end)
{
    for (int64_t i = 0; i < end->changes.count; i++) {
        const int64_t name = end->changes.items[i].name;
        binding *b = end->changes.items[i].b;
        if (b->state == BINDING_LOOP_END && !b->open && crosses_scopes(inside, name))
            keep_loop_variable(inside, name, b);
    }
}

/* The variable outside that a handle of the body stands for; NULL when there is none. */
static ir_var *outer_of(const outlining *o, const ir_var *var)
{
    for (int depth = 0; depth < 64; depth++) {
        for (int64_t i = 0; i < o->captures.count; i++) {
            if (o->captures.items[i].param == var)
                return o->captures.items[i].outer;
        }
        int64_t count = 0;
        const ir_stmt *s = ir_definition(&o->f->body, var, &count);
        if (count != 1 || s->kind != IR_ASSIGN || s->source == NULL)
            return NULL;
        var = s->source;
    }
    return NULL;
}

bool value_outside(const outlining *o, dsl_value *v)
{
    if (v->kind == VALUE_TUPLE) {
        dsl_value *items = arena_array(o->fl->a, dsl_value, v->count);
        for (int32_t i = 0; i < v->count; i++) {
            items[i] = v->items[i];
            if (!value_outside(o, &items[i]))
                return false;
        }
        v->items = items;
        return true;
    }
    if (!has_variables(v))
        return true;
    ir_var *var = value_var(v);
    ir_var *outer = var == NULL ? NULL : outer_of(o, var);
    if (outer == NULL)
        return false;
    *v = var_value(o->fl->a, outer, v->span);
    return true;
}

void leave_name(const outlining *o, int64_t name, const binding *b)
{
    lowering *fl = o->fl;
    dsl_value v = b->v;
    if (b->open) {
        binding_set(fl, name, left_open(fl, b));
        return;
    }
    if (b->state == BINDING_BOUND && value_outside(o, &v)) {
        assign_name(fl, name, v, b->span);
        return;
    }
    bool inside = b->state == BINDING_BOUND || b->state == BINDING_LOOP_END;
    binding *left = state_binding(fl, inside ? BINDING_INSIDE : b->state, b->span);
    *left = (binding){.state = left->state,
                      .v = b->v,
                      .other = b->other,
                      .span = b->span,
                      .other_span = b->other_span,
                      .by_loop = b->by_loop,
                      .depth = fl->depth};
    if (inside) {
        left->span = o->f->span;
        left->scope = crosses_scopes(fl, name) ? o->results : NULL;
    }
    /* A number that the function around has already goes on as a number: loops carry it. */
    const binding *before = fl->names.bindings[name];
    if (inside && b->v.kind == VALUE_SCALAR && before->state == BINDING_BOUND &&
        before->v.kind == VALUE_SCALAR)
        (void)keep_scope_value(fl, name, left);
    binding_set(fl, name, left);
}
