/* What a function writes must be declared so: a pl.Tensor parameter that is neither pl.Out nor pl.InOut
 * is only read.
 *
 * The host relies on it: a tensor that every dispatch only reads is neither copied back nor ordered
 * behind other readers, so a write to one would be lost, or race. Windows may be written whatever they
 * are declared as; their contents are ordered by signals.
 *
 * Called once for each lowered function, because only a whole body tells which parameters a name that
 * branches or loops rebind may stand for. Within a function, a callee counts as what it declares; its
 * own body is checked by itself. The first write of each parameter is reported. An output that is written
 * nowhere although its name is assigned to gets a warning. */
#include "frontend/lower.h"
#include "frontend/signature.h"

typedef struct write_check {
    lowering *fl;
    bool *reported; /* by variable */
    bool *written;  /* by variable: parameters */
    bool *seen;     /* by variable: on the way from one write to its parameters */
    pypto_span span;
} write_check;

static void check_target(write_check *check, ir_var *var);

/* A handle that is bound at run time stands for each source that a statement gives it. */
static void check_sources(write_check *check, const ir_block *block, const ir_var *var)
{
    for (int64_t i = 0; i < block->count; i++) {
        const ir_stmt *s = block->items[i];
        if (s->target == var && s->kind == IR_ASSIGN && s->source != NULL)
            check_target(check, s->source);
        for (int32_t k = 0; s->target == var && s->kind == IR_DO && k < s->operand_count; k++) {
            if (s->operands[k].kind == IR_OPERAND_VAR)
                check_target(check, s->operands[k].var);
        }
        check_sources(check, &s->body, var);
        check_sources(check, &s->orelse, var);
    }
}

static void check_target(write_check *check, ir_var *var)
{
    if (var->type.kind != IR_TENSOR)
        return;
    const ir_var *root = var->root;
    if (root == NULL) {
        if (!check->seen[var->id]) {
            check->seen[var->id] = true;
            check_sources(check, &check->fl->ir->body, var);
        }
        return;
    }
    check->written[root->id] = true;
    if (root->kind != IR_VAR_PARAM || root->type.kind != IR_TENSOR || root->direction != PLD_IN ||
        check->reported[root->id])
        return;
    check->reported[root->id] = true;
    report(check->fl->fe, DIAG_INPUT_WRITTEN, check->span,
           "declare it pl.Out[...] or pl.InOut[...]",
           "parameter '%s' is only read, so it cannot be written here", root->name);
}

static void check_write(write_check *check, const ir_operand *operand)
{
    if (operand->kind != IR_OPERAND_VAR)
        return;
    for (int64_t i = 0; i < check->fl->ir->vars.count; i++)
        check->seen[i] = false;
    check->span = operand->span;
    check_target(check, operand->var);
}

static void check_stmt(void *context, ir_stmt *s)
{
    write_check *check = context;
    for (int32_t i = 0; i < s->operand_count; i++) {
        bool writes = (s->kind == IR_DO && op_writes(s->op_def, i)) ||
                      (s->kind == IR_CALL && s->callee->params.items[i]->direction != PLD_IN);
        if (writes)
            check_write(check, &s->operands[i]);
    }
}

/* `out = pl.add(x, y)` binds the name to the tile: the caller's tensor does not change. Nothing is wrong
 * with that, unless the function writes the parameter nowhere. A program in class form is warned about when
 * its text is read. */
static void warn_of_rebound_outputs(const write_check *check)
{
    lowering *fl = check->fl;
    const frontend_embedder *embedder = fl->fe->embedder;
    if (embedder->warn == NULL || fl->syntax->class_form != fl->fe->checking)
        return;
    for (int64_t i = 0; i < fl->ir->params.count; i++) {
        const ir_var *param = fl->ir->params.items[i];
        int64_t name = binding_find(fl, param->name);
        if (param->direction != PLD_OUT || check->written[param->id] || name < 0)
            continue;
        const var_list *own = &fl->names.storage[name].vars;
        for (int64_t k = 0; k < own->count; k++) {
            if (own->items[k]->type.kind != IR_TILE)
                continue;
            embedder->warn(
                embedder->context, own->items[k]->span,
                arena_printf(fl->a,
                             "OutParamWriteDropped: '%s' is only rebound in '%s', which writes "
                             "nothing to the caller's tensor; write %s[:] = ... or "
                             "pl.store(tile, offsets, %s)",
                             param->name, fl->syntax->name, param->name, param->name));
            break;
        }
    }
}

void check_writes(lowering *fl)
{
    write_check check = {.fl = fl};
    check.reported = arena_array(fl->a, bool, fl->ir->vars.count);
    check.written = arena_array(fl->a, bool, fl->ir->vars.count);
    check.seen = arena_array(fl->a, bool, fl->ir->vars.count);
    ir_visit_stmts(&fl->ir->body, check_stmt, &check);
    warn_of_rebound_outputs(&check);
}
