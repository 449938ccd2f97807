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
 * before it is lowered (outline_names.c), so that everything in it is in terms of the new function from the start: tensors
 * and windows by handle, scalars by value. What the body does not use after all is taken out again.
 * Directions follow from what the body does. Afterwards names that it has bound to storage from outside are
 * bound to that outside. What it has computed itself, tiles and numbers, stays inside (BINDING_INSIDE) until
 * it is read behind the scope: only then a number is computed there again, if that takes nothing of the
 * kernel, or else the scope gets a parameter more, through which it gives it (outline_results.c).
 *
 * The new function has no instance: it belongs to its one caller, and stands in front of it in the
 * program. A scope in a loop body that is lowered again is made again, and the earlier one forgotten. */
#include "frontend/calls.h"
#include "frontend/expressions.h"
#include "frontend/flow.h"
#include "frontend/outline_internal.h"
#include "frontend/statements.h"

#include <string.h>

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
            const binding *b =
                fl->names.bindings[binding_find(fl, request->launch->independent[k])];
            if (b->v.kind == VALUE_VAR && b->v.var == outer)
                (void)add_independent(fl, i, request->span, &independent);
        }
    }
    ir_stmt *s = ir_stmt_create(fl->fe->program, fl->block, IR_CALL, request->span);
    s->callee = o->f;
    s->operands = operands;
    s->operand_count = (int32_t)f->params.count;
    attach_launch(fl, s, request->launch, independent);
    count_written(fl, s);
    return s;
}

/* ---- all of it ---- */

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

/* The body as the new function's; returns what it binds. */
static flow_path lower_scope_body(lowering *fl, outlining *o, const outline_request *request,
                                  const name_set *used, outline *here)
{
    function_notes notes = {.temporaries = fl->notes->temporaries};
    lowering body = *fl;
    body.names.storage = arena_array(fl->a, name_storage, fl->names.count + 1);
    body.ir = o->f;
    body.notes = &notes;
    body.outlined = here;
    body.block = &o->f->body;
    body.depth++;
    body.loops = 0;
    body.loop = NULL;
    body.carries = NULL;
    body.in_branch = false;
    body.launch = NULL;
    body.manual = false;
    enter_names(&body, o, used);
    const int64_t entered = body.trail.count;
    if (request->block_index >= 0)
        assign_name(
            &body, request->block_index,
            lower_values(&body, op_find("pl.tile.get_block_idx"), NULL, 0, request->block_span, -1),
            request->block_span);
    lower_block(&body, request->body);
    const flow_path end = path_here(&body, entered, body.block, false);
    settle_loop_variables(&body, &end);
    clear_late_vars(&body);
    binding_undo(&body, fl->trail.count);
    fl->notes->temporaries = notes.temporaries;
    return end;
}

bool lower_outlined(lowering *fl, const outline_request *request)
{
    const int64_t errors_before = fl->fe->error_count;
    outline here = {.outer = fl->outlined,
                    .depth = fl->depth + 1,
                    .spliced = fl->spliced,
                    .copies = request->copies};
    const name_set used = mentioned(fl, request->body);
    settle_names(fl, &used, request);

    outlining o = {.fl = fl};
    o.f = ir_function_create(fl->fe->program, request->name, request->plane, request->span);
    o.f->is_scope = true;
    const flow_path end = lower_scope_body(fl, &o, request, &used, &here);

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
            binding_poison(fl, end.changes.items[i].name);
    }
    if (here.returned != NULL) {
        if (!ok || !value_outside(&o, &here.value))
            here.value = !ok ? poison()
                             : report(fl->fe, DIAG_BAD_RETURN, here.returned->span,
                                      "return what pl.store or pl.assemble gave for a parameter",
                                      "the returned value is one of the scope at line %d alone",
                                      request->span.line);
        lower_returned(fl, here.returned, here.value);
    }
    return ok;
}

/* ---- one operation ---- */

/* An operand as the kernel sees it, under its name in the script; one without has that of the parameter. */
static ir_operand operand_inside(outlining *o, const ir_operand *operand, const char *role)
{
    ir_operand inside = *operand;
    dsl_value v = {.kind = VALUE_NONE};
    if (operand->kind == IR_OPERAND_VAR)
        v = settle(o->fl, var_value(o->fl->a, operand->var, operand->span));
    else if (operand->kind == IR_OPERAND_EXPR)
        v = settle(o->fl, scalar_value(operand->expr, operand->span));
    ir_var *outer = has_variables(&v) ? value_var(&v) : NULL;
    if (outer == NULL)
        return inside;
    ir_var *param = captured(o, outer);
    if (outer->is_made)
        param->name = role;
    if (operand->kind == IR_OPERAND_VAR)
        inside.var = param;
    else
        inside.expr = ir_ref(o->fl->a, param);
    return inside;
}

dsl_value lower_as_task(lowering *fl, const op_call *call)
{
    const op_def *op = call->op;
    const char *dot = strrchr(op->spellings[0], '.');
    const outline_request request = {.plane = PLD_PLANE_CORE,
                                     .name = dot != NULL ? dot + 1 : op->spellings[0],
                                     .span = call->span,
                                     .block_index = -1};
    outlining o = {.fl = fl};
    o.f = ir_function_create(fl->fe->program, request.name, request.plane, request.span);
    o.f->is_scope = true;
    ir_stmt *s = ir_stmt_create(fl->fe->program, &o.f->body, IR_DO, call->span);
    s->op_def = op;
    s->operand_count = op->param_count;
    s->operands = arena_array(fl->a, ir_operand, OP_MAX_PARAMS);
    for (int32_t i = 0; i < op->param_count; i++)
        s->operands[i] = operand_inside(&o, &call->operands[i], op->params[i].name);
    drop_unused(&o);
    ir_stmt *submission = emit_scope_call(&o, &request);
    if (fl->ir->plane == PLD_PLANE_HOST)
        spread_call(fl, submission);
    if (op->result_param < 0)
        return (dsl_value){.kind = VALUE_NONE, .span = call->span};
    return var_value(fl->a, call->operands[op->result_param].var, call->span);
}

/* ---- scopes in front of their callers ---- */

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
