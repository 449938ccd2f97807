/* Loops over elements that several statements share.
 *
 * A loop costs the C compiler one to two milliseconds: it is vectorised, and every pass walks over it. A kernel
 * that is unrolled to thousands of tile operations has the same few over and over, with other tiles. So in
 * functions of many operations, loops that occur often become functions of their own:
 *
 *     static __attribute__((noinline)) void kernel_loop(float *restrict out, const float *restrict x)
 *
 * Tiles that an operation reads or writes at the same time do not overlap, unless they are in one place: those
 * are one parameter. That is why the parameters may be restrict here and nowhere else. Usual kernels have no
 * such functions: a call costs more than a short loop, and debuggers see the loop in the script's line. */
#include "codegen/emit_ops_internal.h"

#include "ops/dtypes.h"

#include <string.h>

/* Operations in a function from which on loops are shared, and how often one must occur. */
#define MANY_OPERATIONS 200
#define OFTEN 8

typedef struct shared_loop {
    const char *name; /* of the C function */
    int64_t uses;
} shared_loop;

/* A statement as a call: what its function looks like, and the arguments. */
typedef struct shared_form {
    const char *params;
    const char *body;
    const char *args;
} shared_form;

/* Whether the text depends on nothing but tiles and constants. */
static bool is_closed(const emitter *e, const ir_stmt *s)
{
    for (int32_t i = 0; i < s->operand_count; i++) {
        const ir_operand *x = &s->operands[i];
        const bool constant =
            x->kind == IR_OPERAND_EXPR &&
            (x->expr->kind == IR_INT || x->expr->kind == IR_FLOAT || x->expr->kind == IR_BOOL);
        const bool tile = x->kind == IR_OPERAND_VAR && x->var->type.kind == IR_TILE &&
                          x->var->scratch_offset >= 0 &&
                          e->vars[x->var->id].storage == STORAGE_TILE &&
                          !pypto_dtype_packed(x->var->type.dtype);
        if (x->kind == IR_OPERAND_LIST || (x->kind == IR_OPERAND_EXPR && !constant) ||
            (x->kind == IR_OPERAND_VAR && !tile))
            return false;
    }
    return true;
}

static bool can_share(emitter *e, const ir_stmt *s)
{
    return s->kind == IR_DO && op_is_elementwise(s->op_def) && s->target != NULL &&
           s->target->scratch_offset >= 0 && !pypto_dtype_packed(s->target->type.dtype) &&
           !loop_wants_places(s->op_def->emit) && !copies_itself(s) &&
           element_forms_of(e, s->op_def).rare == NULL && is_closed(e, s);
}

/* The operand before `index` (or the target, -1) that is in the same place; -2 if there is none, -3 if one is
 * there with another element type. */
static int32_t same_place(const ir_stmt *s, int32_t index)
{
    const ir_var *x = s->operands[index].var;
    for (int32_t i = -1; i < index; i++) {
        const ir_var *y = i < 0 ? s->target : s->operands[i].var;
        if (i >= 0 && s->operands[i].kind != IR_OPERAND_VAR)
            continue;
        if (y->scratch_offset == x->scratch_offset)
            return y->type.dtype == x->type.dtype ? i : -3;
    }
    return -2;
}

/* False when the statement must stay as it is. Names of variables are other ones meanwhile. */
static bool form_of(emitter *e, const ir_stmt *s, shared_form *form)
{
    if (!can_share(e, s))
        return false;
    const char **names = arena_array(e->a, const char *, s->operand_count + 1);
    text params = {.a = e->a};
    text args = {.a = e->a};
    bool fits = true;
    text_printf(&params, "%s *restrict out", c_element_type(s->target->type.dtype));
    text_add(&args, s->target->c_name);
    for (int32_t i = 0; i < s->operand_count; i++) {
        if (s->operands[i].kind != IR_OPERAND_VAR)
            continue;
        const ir_var *x = s->operands[i].var;
        const int32_t same = same_place(s, i);
        fits = fits && same != -3;
        names[i] = same == -1 ? "out" : same >= 0 ? names[same] : arena_printf(e->a, "x%d", i);
        if (same != -2)
            continue;
        text_printf(&params, ", const %s *restrict %s", c_element_type(x->type.dtype), names[i]);
        text_printf(&args, ", %s", x->c_name);
    }
    if (!fits)
        return false;
    const char **kept = arena_array(e->a, const char *, s->operand_count + 1);
    for (int32_t i = 0; i < s->operand_count; i++)
        if (s->operands[i].kind == IR_OPERAND_VAR)
            kept[i] = s->operands[i].var->c_name;
    for (int32_t i = 0; i < s->operand_count; i++)
        if (s->operands[i].kind == IR_OPERAND_VAR)
            s->operands[i].var->c_name = names[i];
    const char *value = op_element_text(e, s, element_forms_of(e, s->op_def).usual);
    for (int32_t i = s->operand_count - 1; i >= 0; i--)
        if (s->operands[i].kind == IR_OPERAND_VAR)
            s->operands[i].var->c_name = kept[i];
    const char *i = e->index;
    form->params = params.bytes;
    form->args = args.bytes;
    form->body = arena_printf(e->a, "for (int64_t %s = 0; %s < %lld; ++%s) out[%s] = %s;", i, i,
                              (long long)ir_static_elems(&s->target->type), i, i, value);
    return true;
}

static const char *key_of(emitter *e, const shared_form *form)
{
    return arena_printf(e->a, "%s\n%s", form->params, form->body);
}

static void count_operation(void *context, ir_stmt *s)
{
    int64_t *count = context;
    *count += s->kind == IR_DO && op_is_elementwise(s->op_def);
}

static void count_form(void *context, ir_stmt *s)
{
    emitter *e = context;
    shared_form form;
    if (!form_of(e, s, &form))
        return;
    const char *key = key_of(e, &form);
    shared_loop *loop = map_get(&e->loops, key);
    if (loop == NULL) {
        loop = arena_new(e->a, shared_loop);
        map_set(&e->loops, key, loop);
    }
    loop->uses++;
}

void emit_shared_loops(emitter *e)
{
    int64_t count = 0;
    e->loops = map_make(e->a);
    ir_visit_stmts(&e->f->body, count_operation, &count);
    if (count < MANY_OPERATIONS)
        return;
    ir_visit_stmts(&e->f->body, count_form, e);
    for (int64_t i = 0; i < e->loops.count; i++) {
        const map_entry *entry = &e->loops.entries[i];
        shared_loop *loop = entry->value;
        if (loop->uses < OFTEN)
            continue;
        const char *body = strchr(entry->key, '\n');
        loop->name =
            emit_free_name(e, arena_printf(e->a, "%s_loop_%lld", e->f->c_name, (long long)i));
        emit_own_place(e);
        emit_line(e, "static __attribute__((noinline)) void %s(%.*s)", loop->name,
                  (int)(body - entry->key), entry->key);
        emit_line(e, "{");
        e->depth++;
        emit_line(e, "%s", body + 1);
        e->depth--;
        emit_line(e, "}");
        emit_blank(e);
    }
}

bool emit_shared_call(emitter *e, const ir_stmt *s)
{
    shared_form form;
    if (e->loops.count == 0 || !form_of(e, s, &form))
        return false;
    const shared_loop *loop = map_get(&e->loops, key_of(e, &form));
    if (loop == NULL || loop->name == NULL)
        return false;
    emit_place(e, &s->span);
    emit_line(e, "%s(%s);", loop->name, form.args);
    return true;
}
