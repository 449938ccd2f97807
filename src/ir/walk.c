/* Walks over the IR for passes, verifier and emitter: which variables something reads, all statements of
 * a block, and an expression in terms of other variables. Order is the order of writing, so that what a pass builds from a walk is
 * deterministic. */
#include "ir/ir.h"

static void visit_operand(const ir_operand *operand, ir_var_visitor visit, void *context)
{
    switch (operand->kind) {
    case IR_OPERAND_VAR: visit(context, operand->var); break;
    case IR_OPERAND_EXPR: ir_visit_expr(operand->expr, visit, context); break;
    case IR_OPERAND_LIST:
        for (int32_t i = 0; i < operand->count; i++)
            ir_visit_expr(operand->exprs[i], visit, context);
        break;
    case IR_OPERAND_NONE:
    case IR_OPERAND_DTYPE:
    case IR_OPERAND_ENUM:
    case IR_OPERAND_TEXT: break;
    }
}

void ir_visit_expr(const ir_expr *e, ir_var_visitor visit, void *context)
{
    if (e == NULL)
        return;
    if (e->kind == IR_VAR)
        visit(context, e->var);
    ir_visit_expr(e->a, visit, context);
    ir_visit_expr(e->b, visit, context);
    for (int32_t i = 0; i < e->operand_count; i++)
        visit_operand(&e->operands[i], visit, context);
}

static void visit_launch(const ir_launch *l, ir_var_visitor visit, void *context)
{
    ir_visit_expr(l->blocks, visit, context);
    for (int32_t i = 0; i < l->after_count; i++)
        ir_visit_expr(l->after[i], visit, context);
    if (l->tested == NULL)
        return;
    visit(context, l->tested);
    for (int32_t i = 0; i < l->tested->type.ndim; i++)
        ir_visit_expr(l->element[i], visit, context);
    ir_visit_expr(l->limit, visit, context);
}

void ir_visit_uses(const ir_stmt *s, ir_var_visitor visit, void *context)
{
    ir_visit_expr(s->value, visit, context);
    if (s->source != NULL)
        visit(context, s->source);
    for (int32_t i = 0; i < s->operand_count; i++)
        visit_operand(&s->operands[i], visit, context);
    ir_visit_expr(s->device, visit, context);
    if (s->launch != NULL)
        visit_launch(s->launch, visit, context);
    ir_visit_expr(s->start, visit, context);
    ir_visit_expr(s->stop, visit, context);
    ir_visit_expr(s->step, visit, context);
}

typedef struct search {
    const ir_var *var;
    bool found;
} search;

static void match(void *context, ir_var *var)
{
    search *s = context;
    s->found |= var == s->var;
}

bool ir_reads(const ir_stmt *s, const ir_var *var)
{
    search reads = {var, false};
    ir_visit_uses(s, match, &reads);
    return reads.found;
}

const ir_stmt *ir_definition(const ir_block *block, const ir_var *var, int64_t *count)
{
    const ir_stmt *found = NULL;
    for (int64_t i = 0; i < block->count; i++) {
        const ir_stmt *s = block->items[i];
        if (s->target == var) {
            found = s;
            ++*count;
        }
        const ir_stmt *below = ir_definition(&s->body, var, count);
        found = below != NULL ? below : found;
        below = ir_definition(&s->orelse, var, count);
        found = below != NULL ? below : found;
    }
    return found;
}

const ir_stmt *ir_operation_of(const ir_block *block, const ir_var *var)
{
    for (int64_t i = 0; i < block->count; i++) {
        const ir_stmt *s = block->items[i];
        if (s->target == var && s->kind == IR_DO)
            return s;
        const ir_stmt *inner = ir_operation_of(&s->body, var);
        if (inner == NULL)
            inner = ir_operation_of(&s->orelse, var);
        if (inner != NULL)
            return inner;
    }
    return NULL;
}

int64_t ir_index_of(const ir_block *block, const ir_stmt *s)
{
    int64_t index = 0;
    while (index < block->count && block->items[index] != s)
        index++;
    return index;
}

const ir_expr *ir_substitute(arena *a, const ir_expr *e, ir_replacement replace, void *context)
{
    const ir_expr *x = NULL;
    const ir_expr *y = NULL;
    switch (e->kind) {
    case IR_INT:
    case IR_FLOAT:
    case IR_BOOL: return e;
    case IR_VAR: return replace(context, e->var);
    case IR_UNARY:
        x = ir_substitute(a, e->a, replace, context);
        return x == NULL ? NULL : ir_unary(a, e->op, x, e->dtype, e->span);
    case IR_CONVERT:
        x = ir_substitute(a, e->a, replace, context);
        return x == NULL ? NULL : ir_convert(a, x, e->dtype, e->span);
    case IR_BINARY:
        x = ir_substitute(a, e->a, replace, context);
        y = x == NULL ? NULL : ir_substitute(a, e->b, replace, context);
        return y == NULL ? NULL : ir_binary(a, e->op, x, y, e->dtype, e->span);
    case IR_OP: break;
    }
    return NULL;
}

bool ir_may_be(const ir_var *handle, const ir_var *param)
{
    return handle->root != NULL ? handle->root == param : handle->type.kind == param->type.kind;
}

void ir_visit_stmts(const ir_block *block, ir_stmt_visitor visit, void *context)
{
    for (int64_t i = 0; i < block->count; i++) {
        ir_stmt *s = block->items[i];
        visit(context, s);
        ir_visit_stmts(&s->body, visit, context);
        ir_visit_stmts(&s->orelse, visit, context);
    }
}
