/* Valid extents of ragged tiles: which tile an operation takes them from, who reads them, and the statements that
 * copy them. */
#include "codegen/emit_ops_internal.h"

#include <string.h>

/* The first tile among the operands, NULL when there is none. */
static const ir_var *first_tile(const ir_operand *operands, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (operands[i].kind == IR_OPERAND_VAR && operands[i].var->type.kind == IR_TILE)
            return operands[i].var;
    return NULL;
}

/* The tile whose valid extents the result has. */
static const ir_var *valid_source(const ir_stmt *s)
{
    return s->op_def->valid_param >= 0 ? s->operands[s->op_def->valid_param].var
                                       : first_tile(s->operands, s->operand_count);
}

/* ---- who reads them ---- */

bool copies_itself(const ir_stmt *s)
{
    const ir_var *source = first_tile(s->operands, s->operand_count);
    return strstr(s->op_def->emit, ".bits}") != NULL && source != NULL &&
           source->scratch_offset == s->target->scratch_offset;
}

/* Nothing but valid extents is copied. */
static bool keeps_elements(const ir_stmt *s)
{
    if (s->kind == IR_ASSIGN)
        return s->source != NULL && s->source->type.kind == IR_TILE &&
               s->source->scratch_offset == s->target->scratch_offset;
    return s->kind == IR_DO && op_is_elementwise(s->op_def) && copies_itself(s);
}

void mark_tile_uses(const ir_stmt *s, tile_uses *uses)
{
    const bool assigned = s->kind == IR_ASSIGN && s->source != NULL;
    const bool computed = s->kind == IR_DO && op_is_elementwise(s->op_def);
    const ir_var *source = assigned ? s->source : computed ? valid_source(s) : NULL;
    /* By emit_valid_copy() and its like, from one operand. */
    const bool copied = assigned || (computed && strchr(s->op_def->emit, '\n') == NULL);
    if (copied && source != NULL && source != s->target && s->target->type.ragged)
        uses->valid[source->id] = true;
    if (s->target != NULL) {
        uses->pointer[s->target->id] |= !keeps_elements(s);
        uses->valid[s->target->id] |=
            s->kind == IR_DO && strstr(s->op_def->emit, "{out.valid}") != NULL;
    }
    if (assigned)
        uses->pointer[source->id] |= !keeps_elements(s);
    for (int32_t i = 0; i < s->operand_count; i++) {
        if (s->operands[i].kind != IR_OPERAND_VAR)
            continue;
        uses->pointer[s->operands[i].var->id] |= !keeps_elements(s);
        uses->valid[s->operands[i].var->id] |= !copied;
    }
}

/* ---- copying ---- */

void emit_valid_copy(emitter *e, const ir_stmt *s)
{
    const ir_var *target = s->target;
    const ir_var *source = s->kind == IR_ASSIGN ? s->source : valid_source(s);
    if (target == NULL || !target->type.ragged || source == NULL || source == target)
        return;
    text line = {.a = e->a};
    for (int32_t i = 0; i < target->type.ndim; i++) {
        bool reduced = !ir_expr_equal(target->type.shape[i], source->type.shape[i]);
        text_printf(&line, "%s%s[%d] = ", i > 0 ? ", " : "", tile_valid_name(e, target), i);
        if (reduced)
            text_add(&line, "1");
        else if (source->type.ragged)
            text_printf(&line, "%s[%d]", tile_valid_name(e, source), i);
        else
            text_add(&line, expr_int64(e, source->type.shape[i]));
    }
    emit_place(e, &s->span);
    emit_line(e, "%s;", line.bytes);
}

void emit_reshaped_valid(emitter *e, const ir_stmt *s)
{
    const ir_var *target = s->target;
    const ir_var *source = first_tile(s->operands, s->operand_count);
    if (!target->type.ragged || target == source)
        return;
    text line = {.a = e->a};
    int32_t k = 0;
    for (int32_t i = 0; i < target->type.ndim; i++) {
        int64_t extent = 0;
        text_printf(&line, "%s%s[%d] = ", i > 0 ? ", " : "", tile_valid_name(e, target), i);
        if (ir_is_const_int(target->type.shape[i], &extent) && extent == 1) {
            text_add(&line, "1");
            continue;
        }
        while (k < source->type.ndim && ir_is_const_int(source->type.shape[k], &extent) &&
               extent == 1)
            k++;
        text_printf(&line, "%s[%d]", tile_valid_name(e, source), k++);
    }
    emit_place(e, &s->span);
    emit_line(e, "%s;", line.bytes);
}

void emit_given_valid(emitter *e, const ir_stmt *s, const char *format)
{
    if (!s->target->type.ragged)
        return;
    op_template t = {s->op_def, s->operands, s->target, false};
    emit_place(e, &s->span);
    emit_line(e, "%s;", expand(e, &t, format));
}
