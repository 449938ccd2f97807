/* Calls: a host function dispatches, a wrapper submits tasks, a kernel calls another one.
 *
 *     pld_submit(core, &step_function, PLD_ARGS(PLD_TENSOR(x), PLD_INT(r)), 2);
 *     pld_call_sub(host, &check_function, PLD_ARGS(PLD_TENSOR(x)), 1);
 *
 * What does not fit a line has its arguments in an array before it, because the call itself must stay on
 * one line: it notes __LINE__. A task with more to say than its arguments has that in front, too:
 *
 *     {
 *         const pld_task step_after[] = {gate, last};
 *         const pld_submit_options step_options = {.manual = true, .after = step_after, .after_count = 2};
 *         done = pld_submit_with(core, &step_function, step_args, 2, &step_options);
 *     } */
#include "codegen/emit_internal.h"

#include <string.h>

/* ---- arguments ---- */

static const char *argument_text(emitter *e, const ir_operand *operand, const ir_var *param)
{
    if (operand->kind == IR_OPERAND_VAR)
        return arena_printf(e->a, "PLD_TENSOR(%s)", handle_text(e, operand->var));
    if (ir_is_float(param->type.dtype))
        return arena_printf(e->a, "PLD_FLOAT(%s)", expr_c(e, operand->expr).text);
    return arena_printf(e->a, "PLD_INT(%s)", expr_int64(e, operand->expr));
}

static const char *join(emitter *e, const char *const *items, int64_t count)
{
    text out = {.a = e->a};
    text_add(&out, "");
    for (int64_t i = 0; i < count; i++)
        text_printf(&out, "%s%s", i > 0 ? ", " : "", items[i]);
    return out.bytes;
}

static const char *device_text(emitter *e, const ir_stmt *s)
{
    if (s->device != NULL)
        return expr_int64(e, s->device);
    return arena_printf(e->a, "%s++ %% pld_world_size(host)", e->turn);
}

/* A kernel that calls another: one C function calls the other. A window that the callee declares with
 * a shape of its own becomes a view first. */
static void emit_kernel_call(emitter *e, const ir_stmt *s)
{
    const ir_function *callee = s->callee;
    const char **args = arena_array(e->a, const char *, s->operand_count + 1);
    bool views = false;
    args[0] = "core";
    for (int32_t i = 0; i < s->operand_count; i++) {
        const ir_var *param = callee->params.items[i];
        const ir_operand *operand = &s->operands[i];
        if (operand->kind != IR_OPERAND_VAR) {
            args[i + 1] = expr_as(e, operand->expr, param->type.dtype).text;
            continue;
        }
        args[i + 1] = handle_text(e, operand->var);
        if (param->type.kind != IR_WINDOW || ir_static_elems(&param->type) < 0 ||
            ir_shape_equal(&param->type, &operand->var->type))
            continue;
        if (!views) {
            emit_line(e, "{");
            e->depth++;
            views = true;
        }
        text extents = {.a = e->a};
        for (int32_t d = 0; d < param->type.ndim; d++) {
            text_add(&extents, d > 0 ? ", " : "");
            ir_print_expr(&extents, param->type.shape[d]);
        }
        const char *name =
            emit_free_name(e, arena_printf(e->a, "%s_%s", callee->c_name, param->c_name));
        emit_place(e, &s->span);
        emit_line(e, "const pld_tensor %s = pld_view(core, %s, %d, PLD_EXTENTS(%s));", name,
                  args[i + 1], param->type.ndim, extents.bytes);
        args[i + 1] = arena_printf(e->a, "&%s", name);
    }
    emit_place(e, &s->span);
    emit_list(e, arena_printf(e->a, "%s(", callee->c_name), args, s->operand_count + 1, ");");
    if (views) {
        e->depth--;
        emit_line(e, "}");
    }
}

/* ---- how a task is launched ---- */

/* int64_t texts in braces, as the array `name` in front of the call. */
static void emit_array(emitter *e, const char *type, const char *name, const ir_expr *const *exprs,
                       int32_t count)
{
    const char **items = arena_array(e->a, const char *, count + 1);
    for (int32_t i = 0; i < count; i++)
        items[i] = expr_int64(e, exprs[i]);
    emit_list(e, arena_printf(e->a, "const %s %s[] = {", type, name), items, count, "};");
}

static const char *compare_name(ir_operator op)
{
    switch (op) {
    case IR_LT: return "PLD_LESS";
    case IR_LE: return "PLD_LESS_EQUAL";
    case IR_GT: return "PLD_GREATER";
    case IR_GE: return "PLD_GREATER_EQUAL";
    case IR_NE: return "PLD_NOT_EQUAL";
    default: return "PLD_EQUAL";
    }
}

/* The predicate's variable. */
static const char *emit_predicate(emitter *e, const ir_launch *l, const char *task)
{
    const char *indices = emit_free_name(e, arena_printf(e->a, "%s_element", task));
    const char *name = emit_free_name(e, arena_printf(e->a, "%s_predicate", task));
    emit_array(e, "int64_t", indices, l->element, l->tested->type.ndim);
    emit_line(e, "const pld_predicate %s = {%s, %s, %s, %s};", name, handle_text(e, l->tested),
              indices, compare_name(l->compare), expr_int64(e, l->limit));
    return name;
}

/* The variable that holds how the task is launched. */
static const char *emit_options(emitter *e, const ir_stmt *s, const char *task)
{
    const ir_launch *l = s->launch;
    const bool checks_blocks =
        l->blocks != NULL && l->blocks->kind != IR_INT; /* constants are positive */
    text fields = {.a = e->a};
    text_add(&fields, "");
    if (l->after_count > 0) {
        const char *after = emit_free_name(e, arena_printf(e->a, "%s_after", task));
        emit_array(e, "pld_task", after, l->after, l->after_count);
        text_printf(&fields, ", .after = %s, .after_count = %d", after, l->after_count);
    }
    if (l->tested != NULL)
        text_printf(&fields, ", .predicate = &%s", emit_predicate(e, l, task));
    if (checks_blocks)
        text_printf(&fields, ", .blocks = pld_blocks(core, %s)", expr_int64(e, l->blocks));
    else if (l->blocks != NULL)
        text_printf(&fields, ", .blocks = %s", expr_int64(e, l->blocks));
    if (l->manual)
        text_add(&fields, ", .manual = true");
    if (l->independent_args != 0)
        text_printf(&fields, ", .independent_args = 0x%llx",
                    (unsigned long long)l->independent_args);
    if (l->marked_args != 0)
        text_printf(&fields, ", .marked_args = 0x%llx", (unsigned long long)l->marked_args);
    const char *name = emit_free_name(e, arena_printf(e->a, "%s_options", task));
    if (checks_blocks)
        emit_place(e, &s->span);
    emit_line(e, "const pld_submit_options %s = {%s};", name,
              fields.length > 2 ? fields.bytes + 2 : "0");
    return name;
}

/* ---- all of them ---- */

/* "done = ", or nothing. */
static const char *result_text(emitter *e, const ir_stmt *s)
{
    if (s->target == NULL || e->vars[s->target->id].storage == STORAGE_NONE)
        return "";
    return arena_printf(e->a, "%s = ", s->target->c_name);
}

static const char *call_head(emitter *e, const ir_stmt *s, bool options)
{
    if (e->f->plane == PLD_PLANE_HOST && s->callee->plane == PLD_PLANE_SUB)
        return arena_printf(e->a, "pld_call_sub(host, &%s_function, ", s->callee->c_name);
    if (e->f->plane == PLD_PLANE_HOST)
        return arena_printf(e->a, "pld_dispatch(host, %s, &%s_function, ", device_text(e, s),
                            s->callee->c_name);
    if (s->callee == NULL)
        return arena_printf(e->a, "%spld_submit_join(core, ", result_text(e, s));
    return arena_printf(e->a, "%s%s(core, &%s_function, ", result_text(e, s),
                        options ? "pld_submit_with" : "pld_submit", s->callee->c_name);
}

/* In a block of its own, so that the names in front of the call are nobody else's. */
static void emit_long_call(emitter *e, const ir_stmt *s, const char *const *args)
{
    const ir_function *callee = s->callee;
    const char *task = callee != NULL ? callee->c_name : "join";
    const char *list = "NULL";
    const char *options = "";
    emit_place(e, &s->span);
    emit_line(e, "{");
    e->depth++;
    if (s->operand_count > 0) {
        list = emit_free_name(e, arena_printf(e->a, "%s_args", task));
        emit_list(e, arena_printf(e->a, "const pld_arg %s[] = {", list), args, s->operand_count,
                  "};");
    }
    if (s->launch != NULL)
        options = arena_printf(e->a, "&%s", emit_options(e, s, task));
    const char *head = call_head(e, s, s->launch != NULL);
    emit_place(e, &s->span);
    if (callee == NULL)
        emit_line(e, "%s%s);", head, options);
    else
        emit_line(e, "%s%s, %d%s%s);", head, list, s->operand_count, s->launch != NULL ? ", " : "",
                  options);
    e->depth--;
    emit_line(e, "}");
}

void emit_call(emitter *e, const ir_stmt *s)
{
    if (e->f->plane == PLD_PLANE_CORE) {
        emit_kernel_call(e, s);
        return;
    }
    const char **args = arena_array(e->a, const char *, s->operand_count + 1);
    for (int32_t i = 0; i < s->operand_count; i++)
        args[i] = argument_text(e, &s->operands[i], s->callee->params.items[i]);
    if (s->launch != NULL || s->callee == NULL) {
        emit_long_call(e, s, args);
        return;
    }
    const char *list = s->operand_count == 0
                           ? "NULL"
                           : arena_printf(e->a, "PLD_ARGS(%s)", join(e, args, s->operand_count));
    const char *line =
        arena_printf(e->a, "%s%s, %d);", call_head(e, s, false), list, s->operand_count);
    if (emit_fits(e, strlen(line), EMIT_CALL_COLUMNS) || s->operand_count == 0) {
        emit_place(e, &s->span);
        emit_line(e, "%s", line);
        return;
    }
    emit_long_call(e, s, args);
}
