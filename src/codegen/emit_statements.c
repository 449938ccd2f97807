/* The statements of a script in their order: blocks, assignments with the declarations in front of
 * them, branches. Each has the place in the script that the script gave it. */
#include "codegen/emit_internal.h"

/* ---- declarations ---- */

/* "const int32_t x" with the const as C wants it; `constant`: never assigned again. */
static const char *declarator(emitter *e, const ir_var *var, bool constant)
{
    const char *name = var->c_name;
    if (e->vars[var->id].storage == STORAGE_POINTER)
        return arena_printf(e->a, "const pld_tensor *%s%s", constant ? "const " : "", name);
    if (var->type.kind == IR_COMM)
        return arena_printf(e->a, "const pld_comm *%s%s", constant ? "const " : "", name);
    const char *type = var->type.kind == IR_BUFFER   ? "pld_buffer"
                       : var->type.kind == IR_SCALAR ? c_scalar_type(var->type.dtype)
                                                     : "pld_tensor";
    return arena_printf(e->a, "%s%s %s", constant ? "const " : "", type, name);
}

static const char *zero_value(const emitter *e, const ir_var *var)
{
    if (e->vars[var->id].storage == STORAGE_POINTER || var->type.kind == IR_COMM)
        return "NULL";
    if (var->type.kind != IR_SCALAR)
        return "{0}";
    return ir_is_float(var->type.dtype) ? "0.0f" : var->type.dtype == PYPTO_BOOL ? "false" : "0";
}

static bool is_declared_before(const emitter *e, const ir_stmt *s)
{
    const ir_var *const *first;
    return declared_before(e, s, &first) > 0;
}

static void emit_declarations_before(emitter *e, const ir_stmt *s)
{
    const ir_var *const *first;
    int64_t count = declared_before(e, s, &first);
    for (int64_t i = 0; i < count; i++) {
        const ir_var *var = first[i];
        emit_place(e, &s->span);
        if (e->vars[var->id].cleared)
            emit_line(e, "%s = %s;", declarator(e, var, false), zero_value(e, var));
        else
            emit_line(e, "%s;", declarator(e, var, false));
    }
}

/* What stands left of the value of an assignment: a declaration or the name. */
static const char *assigned_text(emitter *e, const ir_stmt *s)
{
    const var_info *info = &e->vars[s->target->id];
    if (info->defined_by == s)
        return declarator(e, s->target, info->definitions == 1);
    return s->target->c_name;
}

/* ---- simple statements ---- */

void emit_value(emitter *e, const ir_stmt *s, const char *value)
{
    emit_place(e, &s->span);
    if (s->target == NULL)
        emit_line(e, "%s;", value);
    else if (e->vars[s->target->id].storage == STORAGE_NONE)
        emit_line(e, "(void)%s;", value);
    else
        emit_line(e, "%s = %s;", assigned_text(e, s), value);
}

const char *alias_text(emitter *e, const ir_var *target, const ir_var *source)
{
    bool from_value = e->vars[source->id].storage == STORAGE_VALUE;
    if (e->vars[target->id].storage == STORAGE_VALUE)
        return from_value ? source->c_name : arena_printf(e->a, "*%s", source->c_name);
    return source->c_name;
}

static void emit_assign(emitter *e, const ir_stmt *s)
{
    if (is_dropped(e, s))
        return;
    const ir_var *target = s->target;
    if (s->value != NULL) {
        emit_value(e, s, expr_as(e, s->value, target->type.dtype).text);
    } else if (!ir_is_private(target->type.kind)) {
        emit_value(e, s, alias_text(e, target, s->source));
        return;
    }
    if (target->type.kind == IR_TILE)
        emit_valid_copy(e, s);
    if (ir_is_private(target->type.kind) && target->scratch_offset != s->source->scratch_offset) {
        long long bytes = ir_static_bytes(&target->type);
        emit_place(e, &s->span);
        emit_line(e, "memcpy(%s, %s, %lld);", target->c_name, s->source->c_name, bytes);
    }
}

/* ---- branches and blocks ---- */

static const ir_stmt *else_if(const emitter *e, const ir_stmt *s)
{
    bool chains = s->orelse.count == 1 && s->orelse.items[0]->kind == IR_IF &&
                  !is_declared_before(e, s->orelse.items[0]);
    return chains ? s->orelse.items[0] : NULL;
}

static void emit_if(emitter *e, const ir_stmt *s)
{
    const char *head = "";
    for (;;) {
        emit_place(e, &s->span);
        emit_line(e, "%sif (%s) {", head, expr_c(e, s->value).text);
        e->depth++;
        emit_block(e, &s->body);
        e->depth--;
        const ir_stmt *next = else_if(e, s);
        if (next == NULL)
            break;
        s = next;
        head = "} else ";
    }
    if (s->orelse.count > 0) {
        emit_line(e, "} else {");
        e->depth++;
        emit_block(e, &s->orelse);
        e->depth--;
    }
    emit_line(e, "}");
}

static void emit_stmt(emitter *e, const ir_stmt *s)
{
    emit_declarations_before(e, s);
    switch (s->kind) {
    case IR_ASSIGN: emit_assign(e, s); break;
    case IR_DO: emit_operation(e, s); break;
    case IR_CALL: emit_call(e, s); break;
    case IR_FOR: emit_for(e, s); break;
    case IR_WHILE: emit_while(e, s); break;
    case IR_IF: emit_if(e, s); break;
    case IR_BREAK:
        emit_place(e, &s->span);
        emit_line(e, "break;");
        break;
    case IR_CONTINUE:
        emit_place(e, &s->span);
        emit_line(e, "continue;");
        break;
    case IR_RETURN:
        emit_place(e, &s->span);
        emit_line(e, "return;");
        break;
    }
}

/* Statements of a block from `first` on; false: what follows is never reached. */
static bool emit_stmts(emitter *e, const ir_block *block, int64_t first, int64_t count)
{
    for (int64_t i = first; i < first + count; i++) {
        const ir_stmt_kind kind = block->items[i]->kind;
        if (block == &e->f->body && i + 1 == block->count && kind == IR_RETURN)
            return false; /* C returns at the end by itself */
        emit_stmt(e, block->items[i]);
        if (kind == IR_RETURN || kind == IR_BREAK || kind == IR_CONTINUE)
            return false;
    }
    return true;
}

void emit_block(emitter *e, const ir_block *block)
{
    const int32_t *groups = frame_groups(e, block);
    bool reached = true;
    for (int64_t i = 0, count; i < block->count && reached; i += count) {
        const bool own = groups != NULL && groups[i] > 0;
        count = own ? groups[i] : 1;
        if (own) {
            emit_line(e, "{");
            e->depth++;
        }
        reached = emit_stmts(e, block, i, count);
        if (own) {
            e->depth--;
            emit_line(e, "}");
        }
    }
}
