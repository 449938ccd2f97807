/* The body of a scope as a function of its own: pl.at and pl.spmd in a wrapper make a kernel of their body,
 * pl.at in a host function makes a wrapper.
 *
 *     with pl.at(level=pl.Level.CORE_GROUP):        core scope(x, out, k):
 *         t = pl.load(x, [k, 0], [1, 8])      ->        t = pl.load(x, [k, 0], [1, 8])
 *         out = pl.store(t, [k, 0], out)                pl.store(t, [k, 0], out)
 *                                                   ...
 *                                                   call scope(x, out, k)
 *
 * The body keeps the names of the function around it. Those that it mentions are bound to parameters
 * before it is lowered, so that everything in it is in terms of the new function from the start: tensors
 * and windows by handle, scalars by value. What the body does not use after all is taken out again.
 * Directions follow from what the body does. Afterwards names that it has bound to storage from outside are
 * bound to that outside. What it has computed itself, tiles and numbers, stays inside (BINDING_INSIDE) until
 * it is read behind the scope: only then a number is computed there again, if that takes nothing of the
 * kernel, or else the scope gets a parameter more, through which it gives it.
 *
 * The new function has no instance: it belongs to its one caller, and stands in front of it in the
 * program. A scope in a loop body that is lowered again is made again, and the earlier one forgotten. */
#include "frontend/calls.h"
#include "frontend/expressions.h"
#include "frontend/flow.h"
#include "frontend/lower.h"
#include "frontend/scopes.h"
#include "frontend/statements.h"
#include "frontend/subscripts.h"

#include <string.h>

typedef struct capture {
    ir_var *param;
    ir_var *outer;
} capture;

typedef struct outlining {
    lowering *fl;
    const scope_call *results; /* NULL: values stay in the scope */
    ir_function *f;
    VEC(capture) captures;
    capture *args; /* those of them that are left, one per parameter */
    bool *used;    /* by variable of f */
} outlining;

bool is_own(const lowering *fl, const ir_var *var)
{
    return var->id < fl->ir->vars.count && fl->ir->vars.items[var->id] == var;
}

void clear_late_vars(lowering *fl)
{
    ir_block *body = &fl->ir->body;
    ir_block rest = *body;
    *body = (ir_block){0};
    for (int64_t i = 0; i < fl->late_vars.count; i++) {
        ir_stmt *s = ir_stmt_create(fl->fe->program, body, IR_ASSIGN, fl->ir->span);
        s->target = fl->late_vars.items[i];
        s->value = s->target->type.dtype == PYPTO_BOOL ? ir_bool(fl->a, false)
                                                       : ir_int_of(fl->a, 0, PYPTO_TASK_ID);
    }
    for (int64_t i = 0; i < rest.count; i++)
        vec_push(fl->a, body, rest.items[i]);
}

/* ---- which names the body mentions ---- */

typedef struct mentions {
    lowering *fl;
    name_set set;
} mentions;

static bool note_mention(void *context, const syntax_expr *e)
{
    mentions *m = context;
    lowering *fl = m->fl;
    int64_t name = e->kind == SYNTAX_NAME ? scope_find(fl, e->text) : -1;
    if (name >= 0 && fl->names.slots[name] < 0) {
        fl->names.slots[name] = m->set.count;
        vec_push(fl->a, &m->set, name);
    }
    return false;
}

static void mention_block(mentions *m, const syntax_block *block)
{
    for (int64_t i = 0; i < block->count; i++) {
        const syntax_stmt *s = block->items[i];
        (void)syntax_any(s->target, note_mention, m);
        (void)syntax_any(s->annotation, note_mention, m);
        (void)syntax_any(s->value, note_mention, m);
        for (int64_t k = 0; k < s->items.count; k++)
            (void)syntax_any(s->items.items[k], note_mention, m);
        mention_block(m, &s->body);
        mention_block(m, &s->orelse);
    }
}

static name_set mentioned(lowering *fl, const syntax_block *block)
{
    mentions m = {.fl = fl};
    mention_block(&m, block);
    for (int64_t i = 0; i < m.set.count; i++)
        fl->names.slots[m.set.items[i]] = -1;
    return m.set;
}

/* ---- from outside to inside ---- */

static ir_var *captured(outlining *o, ir_var *outer);

/* An expression of the function around in terms of parameters of the new one. */
static const ir_expr *inward(outlining *o, const ir_expr *e)
{
    arena *a = o->fl->a;
    switch (e->kind) {
    case IR_VAR: return ir_ref(a, captured(o, e->var));
    case IR_UNARY: return ir_unary(a, e->op, inward(o, e->a), e->dtype, e->span);
    case IR_BINARY: return ir_binary(a, e->op, inward(o, e->a), inward(o, e->b), e->dtype, e->span);
    case IR_CONVERT: return ir_convert(a, inward(o, e->a), e->dtype, e->span);
    default: return e;
    }
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

static ir_var *captured(outlining *o, ir_var *outer)
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
    vec_push(fl->a, &o->captures, c);
    for (int32_t d = 0; handle && d < type.ndim; d++)
        c.param->type.shape[d] = extent_inside(o, type.shape[d], index, d);
    return c.param;
}

static bool can_enter(const ir_var *var)
{
    ir_kind kind = var->type.kind;
    return kind == IR_SCALAR || kind == IR_TENSOR || kind == IR_WINDOW;
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
    if (v->kind == VALUE_VAR && !can_enter(v->var))
        return false;
    if (v->kind == VALUE_VAR)
        v->var = captured(o, v->var);
    return true;
}

/* Before the new function is entered: statements that fetching a name takes stand in the one around. So does
 * the check of a name that may not be bound, if the body starts with reading it. */
static void settle_names(lowering *fl, const name_set *names, const outline_request *request)
{
    for (int64_t i = 0; i < names->count; i++) {
        binding *b = fl->names.bindings[names->items[i]];
        if (b->open && !reads_first(request->body, fl->names.names[names->items[i]]))
            continue;
        if (b->open) {
            (void)scope_read(fl, names->items[i], request->span);
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
        scope_set(fl, names->items[i], settled);
    }
}

/* A guard is of one function. */
static binding *left_open(lowering *fl, const binding *b)
{
    binding *left = state_binding(fl, BINDING_PARTIAL, b->span);
    left->by_loop = true;
    return left;
}

static void enter_names(outlining *o, const name_set *names)
{
    lowering *fl = o->fl;
    for (int64_t i = 0; i < names->count; i++) {
        binding *b = fl->names.bindings[names->items[i]];
        dsl_value v = b->v;
        if (b->open) {
            scope_set(fl, names->items[i], left_open(fl, b));
            continue;
        }
        if (b->state != BINDING_BOUND || !has_variables(&v))
            continue;
        binding *inside = copy_binding(fl, b);
        if (!value_inside(o, &v)) {
            inside->state = BINDING_OUTSIDE;
            inside->span = o->f->span;
        }
        inside->v = v;
        inside->cell = false;
        inside->origin = b;
        scope_set(fl, names->items[i], inside);
    }
    for (int64_t i = 0; i < fl->symbols.count; i++)
        fl->symbols.items[i].expr =
            fl->symbols.items[i].expr == NULL ? NULL : inward(o, fl->symbols.items[i].expr);
}

/* ---- what is used, and how ---- */

static void mark_var(void *context, ir_var *var)
{
    outlining *o = context;
    if (o->used[var->id])
        return;
    o->used[var->id] = true;
    for (int32_t d = 0; d < var->type.ndim; d++)
        ir_visit_expr(var->type.shape[d], mark_var, o);
    for (int64_t i = 0; i < o->f->dims.count; i++) {
        if (o->f->dims.items[i].var == var)
            mark_var(o, o->f->params.items[o->f->dims.items[i].param]);
    }
}

static void mark_stmt(void *context, ir_stmt *s)
{
    outlining *o = context;
    ir_visit_uses(s, mark_var, o);
    if (s->target != NULL)
        mark_var(o, s->target);
}

/* Takes out parameters and dimensions that nothing uses, and the rest of the variables that are left over. */
static void drop_unused(outlining *o)
{
    ir_function *f = o->f;
    o->used = arena_array(o->fl->a, bool, f->vars.count + 1);
    ir_visit_stmts(&f->body, mark_stmt, o);
    int64_t dims = 0;
    for (int64_t i = 0; i < f->dims.count; i++) {
        if (o->used[f->dims.items[i].var->id])
            f->dims.items[dims++] = f->dims.items[i];
    }
    f->dims.count = dims;
    int64_t kept = 0;
    o->args = arena_array(o->fl->a, capture, f->params.count + 1);
    for (int64_t i = 0; i < f->params.count; i++) {
        if (!o->used[f->params.items[i]->id])
            continue;
        for (int64_t d = 0; d < dims; d++) {
            if (f->dims.items[d].param == i)
                f->dims.items[d].param = (int32_t)kept;
        }
        o->args[kept] = o->captures.items[i];
        f->params.items[kept++] = f->params.items[i];
    }
    f->params.count = kept;
    int64_t vars = 0;
    for (int64_t i = 0; i < f->vars.count; i++) {
        ir_var *var = f->vars.items[i];
        bool fixed = var->kind == IR_VAR_PARAM || var->kind == IR_VAR_DIM;
        if (fixed && !o->used[i])
            continue;
        var->id = (int32_t)vars;
        f->vars.items[vars++] = var;
    }
    f->vars.count = vars;
    prune_variables(o->fl->fe, f);
}

/* How the body uses what a handle stands for. */
typedef struct access {
    bool reads;
    bool writes;
    pypto_span span; /* of the first write, else of the first use */
} access;

typedef struct accesses {
    const ir_function *f;
    access *of; /* by parameter */
} accesses;

static void note_access(accesses *all, const ir_operand *operand, bool reads, bool writes)
{
    if (operand->kind != IR_OPERAND_VAR || !ir_is_handle(operand->var->type.kind))
        return;
    for (int64_t i = 0; i < all->f->params.count; i++) {
        if (!ir_may_be(operand->var, all->f->params.items[i]))
            continue;
        access *of = &all->of[i];
        if (of->span.line == 0 || (writes && !of->writes))
            of->span = operand->span;
        of->reads = of->reads || reads;
        of->writes = of->writes || writes;
    }
}

static void find_accesses(void *context, ir_stmt *s)
{
    accesses *all = context;
    for (int32_t i = 0; i < s->operand_count; i++) {
        if (s->kind == IR_DO) {
            note_access(all, &s->operands[i], op_reads(s->op_def, i), op_writes(s->op_def, i));
        } else if (s->kind == IR_CALL) {
            pld_direction direction = s->callee->params.items[i]->direction;
            note_access(all, &s->operands[i], direction != PLD_OUT, direction != PLD_IN);
        }
    }
}

/* The call, with what the parameters stand for. */
static ir_stmt *emit_scope_call(outlining *o, const outline_request *request)
{
    lowering *fl = o->fl;
    const ir_function *f = o->f;
    accesses all = {f, arena_array(fl->a, access, f->params.count + 1)};
    ir_visit_stmts(&f->body, find_accesses, &all);
    ir_operand *operands = arena_array(fl->a, ir_operand, f->params.count + 1);
    uint64_t independent = 0;
    for (int64_t i = 0; i < f->params.count; i++) {
        ir_var *param = f->params.items[i];
        ir_var *outer = o->args[i].outer;
        const access *of = &all.of[i];
        param->direction = !of->writes ? PLD_IN : of->reads ? PLD_INOUT : PLD_OUT;
        bool handle = ir_is_handle(param->type.kind);
        operands[i] = (ir_operand){.kind = handle ? IR_OPERAND_VAR : IR_OPERAND_EXPR,
                                   .var = handle ? outer : NULL,
                                   .expr = handle ? NULL : ir_ref(fl->a, outer),
                                   .span = of->span.line > 0 ? of->span : request->span};
        for (int32_t k = 0; request->launch != NULL && k < request->launch->independent_count;
             k++) {
            const binding *b = fl->names.bindings[scope_find(fl, request->launch->independent[k])];
            if (i < 64 && b->v.kind == VALUE_VAR && b->v.var == outer)
                independent |= UINT64_C(1) << i;
        }
    }
    ir_stmt *s = ir_stmt_create(fl->fe->program, fl->block, IR_CALL, request->span);
    s->callee = o->f;
    s->operands = operands;
    s->operand_count = (int32_t)f->params.count;
    attach_launch(fl, s, request->launch, independent);
    return s;
}

/* ---- from inside to outside ---- */

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

/* False: the value exists in the body only. */
static bool value_outside(const outlining *o, dsl_value *v)
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

static void leave_name(const outlining *o, int64_t name, const binding *b)
{
    lowering *fl = o->fl;
    dsl_value v = b->v;
    if (b->open) {
        scope_set(fl, name, left_open(fl, b));
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
    if (b->state == BINDING_LOOP_END)
        left->v = scalar_value(ir_ref(fl->a, b->loop->target), b->span);
    if (inside) {
        left->span = o->f->span;
        left->scope = o->results;
    }
    /* A number that the function around has already goes on as a number: loops carry it. */
    const binding *before = fl->names.bindings[name];
    if (inside && b->v.kind == VALUE_SCALAR && before->state == BINDING_BOUND &&
        before->v.kind == VALUE_SCALAR)
        (void)keep_scope_value(fl, name, left);
    scope_set(fl, name, left);
}

/* ---- results ---- */

/* The last parameter of the scope, for what it has computed. */
static ir_var *add_result(lowering *fl, const scope_call *scope, int64_t name, const dsl_value *v,
                          const dsl_value *tensor)
{
    ir_function *f = scope->f;
    ir_var *param = ir_var_create(fl->fe->program, f, IR_VAR_PARAM, fl->names.names[name],
                                  tensor->var->type, v->span);
    param->direction = PLD_OUT;
    ir_function *around = fl->ir;
    ir_block *block = fl->block;
    fl->ir = f;
    fl->block = &f->body;
    const dsl_value target = var_value(fl->a, param, v->span);
    dsl_value *zeros = arena_array(fl->a, dsl_value, PYPTO_MAX_DIMS);
    for (int32_t d = 0; d < param->type.ndim; d++)
        zeros[d] = literal_int(fl->a, 0, v->span);
    const dsl_value origin = {
        .kind = VALUE_TUPLE, .items = zeros, .count = param->type.ndim, .span = v->span};
    if (v->kind == VALUE_SCALAR) {
        const dsl_value values[3] = {target, origin, *v};
        (void)lower_values(fl, op_get(OP_WRITE), values, 3, v->span, -1);
    } else if (v->var->type.kind == IR_TENSOR) {
        const dsl_value values[3] = {target, *v, origin};
        (void)lower_values(fl, op_get(OP_ASSEMBLE), values, 3, v->span, -1);
    } else {
        const dsl_value values[3] = {*v, origin, target};
        (void)lower_values(fl, op_get(OP_STORE), values, 3, v->span, -1);
    }
    fl->ir = around;
    fl->block = block;
    return param;
}

static void pass_result(lowering *fl, const scope_call *scope, ir_var *tensor)
{
    ir_stmt *call = scope->call;
    ir_operand *operands = arena_array(fl->a, ir_operand, call->operand_count + 1);
    for (int32_t i = 0; i < call->operand_count; i++)
        operands[i] = call->operands[i];
    operands[call->operand_count++] =
        (ir_operand){.kind = IR_OPERAND_VAR, .var = tensor, .span = call->span};
    call->operands = operands;
}

static int64_t place_of(const ir_block *block, const ir_stmt *s)
{
    int64_t at = 0;
    while (at < block->count && block->items[at] != s)
        at++;
    return at;
}

/* Statements of `from` go into the block of the call, in front of it or behind it. */
static void insert_beside(lowering *fl, const scope_call *scope, const ir_block *from, bool behind)
{
    int64_t at = place_of(scope->block, scope->call) + (behind ? 1 : 0);
    for (int64_t i = 0; i < from->count; i++)
        insert_stmt(fl, scope->block, at + i, from->items[i]);
}

static bool recomputed(lowering *fl, const scope_call *scope, const ir_expr *e,
                       const ir_expr **outside);

static bool recomputed_read(lowering *fl, const scope_call *scope, const ir_stmt *s,
                            const ir_expr **outside)
{
    const ir_operand *indices = &s->operands[1];
    dsl_value *items = arena_array(fl->a, dsl_value, indices->count + 1);
    const ir_var *tensor = s->operands[0].var;
    ir_var *outer = NULL;
    for (int32_t i = 0; i < scope->call->operand_count; i++) {
        if (scope->f->params.items[i] == tensor)
            outer = scope->call->operands[i].var;
    }
    bool ok = scope->defers && outer != NULL && indices->kind == IR_OPERAND_LIST;
    for (int32_t i = 0; ok && i < indices->count; i++) {
        const ir_expr *index;
        ok = recomputed(fl, scope, indices->exprs[i], &index);
        items[i] = ok ? scalar_value(index, s->span) : poison();
    }
    if (!ok)
        return false;
    const dsl_value values[2] = {
        var_value(fl->a, outer, s->span),
        {.kind = VALUE_TUPLE, .items = items, .count = indices->count, .span = s->span}};
    const dsl_value v = lower_values(fl, op_get(OP_READ), values, 2, s->span, -1);
    *outside = v.expr;
    return v.kind == VALUE_SCALAR;
}

static bool recomputed_var(lowering *fl, const scope_call *scope, const ir_var *var,
                           const ir_expr **outside)
{
    for (int32_t i = 0; i < scope->call->operand_count; i++) {
        if (scope->f->params.items[i] != var)
            continue;
        *outside = scope->call->operands[i].expr;
        return true;
    }
    int64_t count = 0;
    const ir_stmt *s = ir_definition(&scope->f->body, var, &count);
    if (count != 1 || place_of(&scope->f->body, s) == scope->f->body.count)
        return false;
    if (s->kind == IR_ASSIGN && s->value != NULL)
        return recomputed(fl, scope, s->value, outside);
    return s->kind == IR_DO && s->op_def->id == OP_READ && recomputed_read(fl, scope, s, outside);
}

/* An expression of the scope, computed once more behind it, of what the call passes. */
static bool recomputed(lowering *fl, const scope_call *scope, const ir_expr *e,
                       const ir_expr **outside)
{
    const ir_expr *x = NULL;
    const ir_expr *y = NULL;
    switch (e->kind) {
    case IR_INT:
    case IR_FLOAT:
    case IR_BOOL: *outside = e; return true;
    case IR_VAR: return recomputed_var(fl, scope, e->var, outside);
    case IR_UNARY:
        if (!recomputed(fl, scope, e->a, &x))
            return false;
        *outside = ir_unary(fl->a, e->op, x, e->dtype, e->span);
        return true;
    case IR_CONVERT:
        if (!recomputed(fl, scope, e->a, &x))
            return false;
        *outside = ir_convert(fl->a, x, e->dtype, e->span);
        return true;
    case IR_BINARY:
        if (!recomputed(fl, scope, e->a, &x) || !recomputed(fl, scope, e->b, &y))
            return false;
        *outside = ir_binary(fl->a, e->op, x, y, e->dtype, e->span);
        return true;
    case IR_OP: break;
    }
    return false;
}

/* Numbers that need nothing of the kernel: nobody waits for it. */
static bool recompute_number(lowering *fl, const scope_call *scope, int64_t name, binding *b)
{
    ir_block *block = fl->block;
    ir_block made = {0};
    const ir_expr *outside = NULL;
    fl->block = &made;
    bool ok = b->v.kind == VALUE_SCALAR && recomputed(fl, scope, b->v.expr, &outside);
    if (ok) {
        const ir_type type = ir_scalar_type(outside->dtype);
        const dsl_value v = scalar_value(outside, b->span);
        ir_var *var = scope_target(fl, name, &type, b->span);
        emit_assign(fl, var, &v, b->span);
        for (binding *same = b; same != NULL; same = same->origin) {
            same->state = BINDING_BOUND;
            same->v = var_value(fl->a, var, b->span);
        }
    }
    fl->block = block;
    if (ok)
        insert_beside(fl, scope, &made, true);
    return ok;
}

/* A tensor that the scope has created may, but no view of another one: that would be a copy then. */
static bool can_leave(const ir_function *f, const dsl_value *v, const ir_type *type)
{
    if (type->kind == IR_TENSOR && v->var->root != NULL && ir_static_elems(type) > 0) {
        const ir_stmt *s = find_definition(&f->body, v->var->root);
        return s != NULL && s->op_def->id == OP_CREATE_TENSOR && v->var == v->var->root;
    }
    return (type->kind == IR_TILE || type->kind == IR_SCALAR) && type->dtype != PYPTO_TASK_ID;
}

/* A tile becomes a tensor of the wrapper, a number one element of such a tensor, which is read behind the
 * call. */
bool keep_scope_value(lowering *fl, int64_t name, binding *b)
{
    const scope_call *scope = b->scope;
    ir_type type;
    if (scope == NULL || !value_type(&b->v, &type) || !can_leave(scope->f, &b->v, &type))
        return false;
    if (recompute_number(fl, scope, name, b))
        return true;
    if (!scope->gives)
        return false;
    ir_block *block = fl->block;
    ir_block made = {0};
    fl->block = &made;
    const bool number = type.kind == IR_SCALAR;
    dsl_value *extents = arena_array(fl->a, dsl_value, PYPTO_MAX_DIMS);
    for (int32_t d = 0; d < (number ? 1 : type.ndim); d++)
        extents[d] = number ? literal_int(fl->a, 1, b->span) : scalar_value(type.shape[d], b->span);
    const dsl_value values[2] = {
        {.kind = VALUE_TUPLE, .items = extents, .count = number ? 1 : type.ndim, .span = b->span},
        {.kind = VALUE_DTYPE, .dtype = type.dtype, .span = b->span}};
    dsl_value result = lower_values(fl, op_get(OP_CREATE_TENSOR), values, 2, b->span, -1);
    fl->block = block;
    if (result.kind != VALUE_VAR)
        return false;
    insert_beside(fl, scope, &made, false);
    (void)add_result(fl, scope, name, &b->v, &result);
    pass_result(fl, scope, result.var);
    if (number) {
        ir_block read = {0};
        const dsl_value zero = literal_int(fl->a, 0, b->span);
        const dsl_value origin = {.kind = VALUE_TUPLE, .items = &zero, .count = 1, .span = b->span};
        const dsl_value from[2] = {result, origin};
        fl->block = &read;
        result = lower_values(fl, op_get(OP_READ), from, 2, b->span, name);
        fl->block = block;
        insert_beside(fl, scope, &read, true);
    }
    for (binding *same = b; same != NULL; same = same->origin) {
        same->state = BINDING_BOUND;
        same->v = result;
    }
    return true;
}

/* ---- all of it ---- */

static void reserve_storage(lowering *fl, name_storage *saved)
{
    for (int64_t i = 0; i < fl->names.count; i++) {
        saved[i] = fl->names.storage[i];
        fl->names.storage[i] = (name_storage){0};
    }
}

static void restore_storage(lowering *fl, const name_storage *saved, int64_t count)
{
    for (int64_t i = 0; i < fl->names.count; i++)
        fl->names.storage[i] = i < count ? saved[i] : (name_storage){0};
}

/* Names of dimensions are looked up in this list, and mean parameters in the body. */
static void copy_symbols(lowering *fl)
{
    const dim_symbol *from = fl->symbols.items;
    int64_t count = fl->symbols.count;
    memset(&fl->symbols, 0, sizeof fl->symbols);
    for (int64_t i = 0; i < count; i++)
        vec_push(fl->a, &fl->symbols, from[i]);
}

/* A window is on the devices that dispatches name, and a scope names none. */
static bool check_windows(const outlining *o, const outline_request *request)
{
    for (int64_t i = 0; request->plane == PLD_PLANE_CHIP && i < o->f->params.count; i++) {
        if (o->f->params.items[i]->type.kind != IR_WINDOW)
            continue;
        report(o->fl->fe, DIAG_BAD_DEVICE, request->span,
               "write a per-device wrapper, and dispatch it with device=r",
               "the dispatch of a scope passes a window, '%s', so it needs 'device='",
               o->f->params.items[i]->name);
        return false;
    }
    return true;
}

/* One block of a kernel gives what it has computed. */
static bool can_give(const lowering *fl, const scope_call *scope)
{
    const ir_launch *launch = scope->call->launch;
    return fl->ir->plane == PLD_PLANE_CHIP && scope->f->plane == PLD_PLANE_CORE &&
           (launch == NULL || launch->blocks == NULL);
}

bool lower_outlined(lowering *fl, const outline_request *request)
{
    const lowering around = *fl;
    const int64_t names = fl->names.count;
    const int64_t errors_before = fl->fe->error_count;
    name_storage *storage = arena_array(fl->a, name_storage, names + 1);
    outline frame = {.outer = fl->outlined, .depth = fl->depth + 1, .spliced = fl->spliced};
    const name_set used = mentioned(fl, request->body);
    settle_names(fl, &used, request);
    const int64_t mark = fl->trail.count;

    outlining o = {.fl = fl};
    o.f = ir_function_create(fl->fe->program, request->name, request->plane, request->span);
    o.f->is_scope = true;
    reserve_storage(fl, storage);
    copy_symbols(fl);
    fl->ir = o.f;
    fl->block = &o.f->body;
    fl->depth++;
    fl->loops = 0;
    fl->loop = NULL;
    fl->carries = NULL;
    fl->in_branch = false;
    fl->outlined = &frame;
    fl->launch = NULL;
    fl->manual = false;
    memset(&fl->cells, 0, sizeof fl->cells);
    memset(&fl->late_vars, 0, sizeof fl->late_vars);
    enter_names(&o, &used);
    const int64_t entered = fl->trail.count;
    if (request->block_index >= 0)
        assign_name(
            fl, request->block_index,
            lower_values(fl, op_find("pl.tile.get_block_idx"), NULL, 0, request->block_span, -1),
            request->block_span);
    lower_block(fl, request->body);
    clear_late_vars(fl);
    const flow_path end = path_here(fl, entered, fl->block, false);
    scope_undo(fl, mark);

    restore_storage(fl, storage, names);
    memcpy(&fl->symbols, &around.symbols, sizeof fl->symbols);
    fl->ir = around.ir;
    fl->block = around.block;
    fl->depth = around.depth;
    fl->loops = around.loops;
    fl->loop = around.loop;
    fl->carries = around.carries;
    fl->in_branch = around.in_branch;
    fl->outlined = around.outlined;
    fl->manual = around.manual;
    memcpy(&fl->cells, &around.cells, sizeof fl->cells);
    memcpy(&fl->late_vars, &around.late_vars, sizeof fl->late_vars);
    fl->terminated = false;

    bool ok = fl->fe->error_count == errors_before;
    if (ok) {
        drop_unused(&o);
        scope_call *results = arena_new(fl->a, scope_call);
        ok = check_windows(&o, request);
        if (ok)
            *results = (scope_call){o.f, emit_scope_call(&o, request), fl->block, false, false};
        ok = ok && check_deferred(fl, request, results->call);
        results->defers = ok && has_deferred_wait(o.f);
        results->gives = ok && !results->defers && can_give(fl, results);
        if (ok)
            o.results = results;
    }
    for (int64_t i = 0; i < end.changes.count; i++) {
        if (ok)
            leave_name(&o, end.changes.items[i].name, end.changes.items[i].b);
        else
            scope_poison(fl, end.changes.items[i].name);
    }
    if (frame.returned != NULL) {
        if (!ok || !value_outside(&o, &frame.value))
            frame.value = !ok ? poison()
                              : report(fl->fe, DIAG_BAD_RETURN, frame.returned->span,
                                       "return what pl.store or pl.assemble gave for a parameter",
                                       "the returned value is one of the scope at line %d alone",
                                       request->span.line);
        lower_returned(fl, frame.returned, frame.value);
    }
    return ok;
}

static bool is_finished(const frontend *fe, const ir_function *f)
{
    for (int64_t i = fe->finished.count - 1; i >= 0; i--) {
        if (fe->finished.items[i] == f)
            return true;
    }
    return false;
}

static void finish_callee(void *context, ir_stmt *s)
{
    frontend *fe = context;
    if (s->kind != IR_CALL || s->callee == NULL || !s->callee->is_scope ||
        is_finished(fe, s->callee))
        return;
    finish_scopes(fe, s->callee);
    vec_push(fe->a, &fe->finished, s->callee);
}

void finish_scopes(frontend *fe, const ir_function *f)
{
    ir_visit_stmts(&f->body, finish_callee, fe);
}
