/* Operations as statements. Most become one call of the device library. Elementwise ones become a loop over
 * the elements of the result, packed as tiles are, whose body compilers vectorise:
 *
 *     for (int64_t i = 0; i < 256; ++i) acc[i] = acc[i] + peer_tile[i];
 *
 * Ones that tell rows from columns become two loops. What is written per operation is in the table
 * (emit_templates.c). */
#include "codegen/emit_ops_internal.h"
#include <string.h>

/* Whether the text asks for the row, with all columns of the last axis in it. */
static bool wants_rows(const char *format)
{
    static const char *const words[] = {".row}", ".bit}", "{row}", "{column}"};
    bool found = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        found |= strstr(format, words[i]) != NULL;
    return found;
}

bool loop_wants_places(const char *format)
{
    return wants_rows(format) || strstr(format, ".column}") != NULL;
}

/* Rows and columns by themselves, for operations that tell them apart. */
static void emit_broadcast(emitter *e, const ir_stmt *s)
{
    bool by_row = wants_rows(s->op_def->emit);
    const ir_var *out = s->target;
    int64_t first = 1;
    (void)ir_is_const_int(out->type.shape[by_row ? out->type.ndim - 1 : 0], &first);
    long long elems = (long long)ir_static_elems(&out->type);
    long long columns = by_row ? (long long)first : elems / (long long)first;
    const char *i = e->index;
    e->row = emit_free_name(e, "row");
    e->column = emit_free_name(e, "column");
    emit_place(e, &s->span);
    emit_line(e, "for (int64_t %s = 0; %s < %lld; ++%s)", e->row, e->row, elems / columns, e->row);
    e->index = arena_printf(e->a, "%s * %lld + %s", e->row, columns, e->column);
    e->depth++;
    emit_place(e, &s->span);
    emit_line(e, "for (int64_t %s = 0; %s < %lld; ++%s)", e->column, e->column, columns, e->column);
    e->depth++;
    emit_place(e, &s->span);
    emit_line(e, "%s[%s] = %s;", out->c_name, e->index,
              op_element_text(e, s, element_forms_of(e, s->op_def).usual));
    e->depth -= 2;
    e->index = i;
}

/* Two elements of 4 bits: a byte of the result. */
static const char *pair_text(emitter *e, const ir_stmt *s, const char *expression)
{
    const char *i = e->index;
    e->index = arena_printf(e->a, "2 * %s", i);
    const char *low = op_element_text(e, s, expression);
    e->index = arena_printf(e->a, "2 * %s + 1", i);
    const char *high = op_element_text(e, s, expression);
    e->index = i;
    return arena_printf(e->a, "(uint8_t)(%s | %s << 4)", low, high);
}

/* A line, or two if it is too long for one. */
static void emit_loop(emitter *e, const ir_stmt *s, const char *head, const char *body)
{
    emit_place(e, &s->span);
    if (emit_fits(e, strlen(head) + 1 + strlen(body), EMIT_COLUMNS)) {
        emit_line(e, "%s %s", head, body);
        return;
    }
    emit_line(e, "%s", head);
    e->depth++;
    emit_place(e, &s->span);
    emit_line(e, "%s", body);
    e->depth--;
}

/* Ragged tiles are computed as a whole, too: loads have cleared what is not valid, no operation on
 * elements traps, and one loop without a remainder is fast. */
static void emit_elementwise(emitter *e, const ir_stmt *s)
{
    const char *sets_valid = strchr(s->op_def->emit, '\n');
    if (s->op_def->id == OP_RESHAPE)
        emit_reshaped_valid(e, s);
    else if (sets_valid != NULL)
        emit_given_valid(e, s, sets_valid + 1);
    else
        emit_valid_copy(e, s);
    if (copies_itself(s))
        return;
    if (emit_shared_call(e, s))
        return;
    if (loop_wants_places(s->op_def->emit)) {
        emit_broadcast(e, s);
        return;
    }
    const char *i = e->index;
    const bool packed = pypto_dtype_packed(s->target->type.dtype);
    const int64_t count =
        packed ? ir_static_bytes(&s->target->type) : ir_static_elems(&s->target->type);
    const char *head =
        arena_printf(e->a, "for (int64_t %s = 0; %s < %lld; ++%s)", i, i, (long long)count, i);
    const bool pairs = packed && strstr(s->op_def->emit, ".cast}") != NULL;
    const element_forms forms = element_forms_of(e, s->op_def);
    const char *value = pairs ? pair_text(e, s, forms.usual) : op_element_text(e, s, forms.usual);
    const char *body = arena_printf(e->a, "%s[%s] = %s;", s->target->c_name, i, value);
    if (forms.rare == NULL) {
        emit_loop(e, s, head, body);
        return;
    }
    const char *rare = emit_free_name(e, "rare");
    emit_place(e, &s->span);
    emit_line(e, "{");
    e->depth++;
    emit_place(e, &s->span);
    emit_line(e, "bool %s = false;", rare);
    emit_loop(e, s, head,
              arena_printf(e->a, "%s |= %s;", rare,
                           expand(e, &(op_template){s->op_def, s->operands, s->target, true},
                                  forms.condition)));
    emit_loop(e, s, arena_printf(e->a, "if (%s) %s", rare, head),
              arena_printf(e->a, "%s[%s] = %s;", s->target->c_name, i,
                           op_element_text(e, s, forms.rare)));
    emit_loop(e, s, arena_printf(e->a, "else %s", head), body);
    e->depth--;
    emit_line(e, "}");
}

void emit_operation(emitter *e, const ir_stmt *s)
{
    if (op_is_elementwise(s->op_def)) {
        emit_elementwise(e, s);
        return;
    }
    const char *value = op_text(e, s->op_def, s->operands, s->target);
    bool through_operand = s->op_def->result_param >= 0;
    if (s->target != NULL && !ir_is_private(s->target->type.kind) && !through_operand) {
        emit_value(e, s, value);
        return;
    }
    emit_place(e, &s->span);
    emit_line(e, "%s;", value);
    if (s->target != NULL && !through_operand && strstr(s->op_def->emit, "{out.valid}") == NULL)
        emit_valid_copy(e, s);
    if (s->target == NULL || !through_operand)
        return;
    const ir_var *source = s->operands[s->op_def->result_param].var;
    if (source != s->target && e->vars[s->target->id].storage != STORAGE_NONE)
        emit_value(e, s, alias_text(e, s->target, source));
}
