/* Prints the IR as text: for PYPTO_DUMP=ir, program.ir beside a compiled program, and golden tests.
 *
 * Complete: everything that decides what a program does is in it, and what a pass has computed
 * appears as soon as it is there (device sets, scratch places, C names that differ from the
 * user's). Stable: the same IR gives the same bytes, and files are named without their directory.
 * One statement per line, its place behind a semicolon:
 *
 *     program orchestrator
 *     buffer 0 data_buf: devices all ; script.py:61
 *
 *     core reduce_step ; script.py:9
 *       param inp: in Tensor[[1, 256], fp32]
 *       param signal: inout DistributedTensor[[NR, 1], int32]
 *       dim NR = signal.shape[0]
 *       var acc: Tile[[1, 256], fp32] at 1024
 *       result out
 *       scratch 2048 bytes
 *       body
 *         acc = pl.load(data, [0, 0], [1, 256]) ; script.py:35
 *         for peer in range(0, nranks, 1) ; script.py:36
 *           if (peer != my_rank) ; script.py:37
 *
 * A variable whose name repeats in its function is told apart by its version: x, x.1, x.2.
 * Integers are INDEX and floats FP32 unless their dtype is written before them: int32(7). */
#include "ir/ir.h"
#include "ops/ops.h"

#include <math.h>
#include <string.h>

/* ---- names and places ---- */

static void print_var(text *out, const ir_var *var)
{
    text_add(out, var->name);
    if (var->version > 0)
        text_printf(out, ".%d", var->version);
}

static void print_place(text *out, const pypto_span *span)
{
    if (span->line > 0) {
        const char *file = span->file != NULL ? span->file : "?";
        const char *slash = strrchr(file, '/');
        text_printf(out, " ; %s:%d", slash != NULL ? slash + 1 : file, span->line);
    }
    text_add(out, "\n");
}

static void indent(text *out, int depth)
{
    for (int i = 0; i < depth; i++)
        text_add(out, "  ");
}

/* ---- expressions ---- */

static const char *operator_text(ir_operator op)
{
    switch (op) {
    case IR_NEG: return "-";
    case IR_NOT: return "not ";
    case IR_INVERT: return "~";
    case IR_ADD: return "+";
    case IR_SUB: return "-";
    case IR_MUL: return "*";
    case IR_DIV: return "/";
    case IR_FLOORDIV: return "//";
    case IR_MOD: return "%";
    case IR_SHL: return "<<";
    case IR_SHR: return ">>";
    case IR_BITAND: return "&";
    case IR_BITOR: return "|";
    case IR_BITXOR: return "^";
    case IR_MIN: return "min";
    case IR_MAX: return "max";
    case IR_LT: return "<";
    case IR_LE: return "<=";
    case IR_GT: return ">";
    case IR_GE: return ">=";
    case IR_EQ: return "==";
    case IR_NE: return "!=";
    case IR_AND: return "and";
    case IR_OR: return "or";
    }
    return "?";
}

static void print_float(text *out, double value)
{
    if (isnan(value)) {
        text_add(out, "nan");
        return;
    }
    if (isinf(value)) {
        text_add(out, value < 0 ? "-inf" : "inf");
        return;
    }
    int64_t start = out->length;
    text_printf(out, "%.9g", value);
    if (!out->failed && strpbrk(out->bytes + start, ".e") == NULL)
        text_add(out, ".0");
}

static void print_constant(text *out, const ir_expr *e)
{
    bool plain = e->dtype == (e->kind == IR_INT ? PYPTO_INDEX : PYPTO_FP32);
    if (!plain)
        text_printf(out, "%s(", pypto_dtype_name(e->dtype));
    if (e->kind == IR_FLOAT)
        print_float(out, e->real);
    else if (e->dtype == PYPTO_UINT64)
        text_printf(out, "%llu", (unsigned long long)e->integer);
    else
        text_printf(out, "%lld", (long long)e->integer);
    if (!plain)
        text_add(out, ")");
}

static void print_operand(text *out, const ir_operand *operand, const op_param *param)
{
    switch (operand->kind) {
    case IR_OPERAND_NONE: text_add(out, "None"); break;
    case IR_OPERAND_VAR: print_var(out, operand->var); break;
    case IR_OPERAND_EXPR: ir_print_expr(out, operand->expr); break;
    case IR_OPERAND_DTYPE: text_add(out, pypto_dtype_name(operand->dtype)); break;
    case IR_OPERAND_LIST:
        text_add(out, "[");
        for (int32_t i = 0; i < operand->count; i++) {
            if (i > 0)
                text_add(out, ", ");
            ir_print_expr(out, operand->exprs[i]);
        }
        text_add(out, "]");
        break;
    case IR_OPERAND_TEXT: text_quoted(out, operand->text); break;
    case IR_OPERAND_ENUM: {
        const char *enumeration = param != NULL ? param->enum_name : NULL;
        const char *member =
            enumeration != NULL ? enum_member_name(enumeration, operand->number) : NULL;
        if (member != NULL)
            text_printf(out, "%s.%s", enumeration, member);
        else
            text_printf(out, "enum(%lld)", (long long)operand->number);
        break;
    }
    }
}

/* Whether an operand says nothing: it was not given, or is the parameter's default. */
static bool is_default(const ir_operand *operand, const op_param *param)
{
    if (param == NULL || param->default_text == NULL)
        return false;
    if (operand->kind == IR_OPERAND_NONE)
        return true;
    const char *dot = strrchr(param->default_text, '.');
    const char *word = dot != NULL ? dot + 1 : param->default_text;
    if (operand->kind == IR_OPERAND_ENUM) {
        const char *member = enum_member_name(param->enum_name, operand->number);
        word += *word == '\''; /* words stand in quotes */
        return member != NULL && strncmp(member, word, strlen(member)) == 0 &&
               (word[strlen(member)] == '\0' || word[strlen(member)] == '\'');
    }
    int64_t number = 0;
    if (operand->kind == IR_OPERAND_EXPR && operand->expr->kind == IR_INT &&
        ir_is_const_int(operand->expr, &number))
        return number >= 0 && number <= 9 && word[0] == (char)('0' + number) && word[1] == '\0';
    return operand->kind == IR_OPERAND_EXPR && operand->expr->kind == IR_BOOL &&
           strcmp(word, operand->expr->integer != 0 ? "True" : "False") == 0;
}

/* "(a, b)", without defaults; keyword-only parameters of an operation, and those behind a default, with
 * their names. op is NULL for DSL functions. */
static void print_operands(text *out, const ir_operand *operands, int32_t count, const op_def *op)
{
    const char *separator = "";
    bool skipped = false;
    text_add(out, "(");
    for (int32_t i = 0; i < count; i++) {
        const op_param *param = op != NULL && i < op->param_count ? &op->params[i] : NULL;
        if (is_default(&operands[i], param)) {
            skipped = true;
            continue;
        }
        text_add(out, separator);
        separator = ", ";
        if (param != NULL && (param->keyword_only || skipped))
            text_printf(out, "%s=", param->name);
        print_operand(out, &operands[i], param);
    }
    text_add(out, ")");
}

static void print_binary(text *out, const ir_expr *e)
{
    bool call = e->op == IR_MIN || e->op == IR_MAX;
    if (call)
        text_add(out, operator_text(e->op));
    text_add(out, "(");
    ir_print_expr(out, e->a);
    if (call)
        text_add(out, ", ");
    else
        text_printf(out, " %s ", operator_text(e->op));
    ir_print_expr(out, e->b);
    text_add(out, ")");
}

void ir_print_expr(text *out, const ir_expr *e)
{
    if (e == NULL) {
        text_add(out, "None");
        return;
    }
    switch (e->kind) {
    case IR_INT:
    case IR_FLOAT: print_constant(out, e); break;
    case IR_BOOL: text_add(out, e->integer != 0 ? "True" : "False"); break;
    case IR_VAR: print_var(out, e->var); break;
    case IR_UNARY:
        text_printf(out, "(%s", operator_text(e->op));
        ir_print_expr(out, e->a);
        text_add(out, ")");
        break;
    case IR_BINARY: print_binary(out, e); break;
    case IR_CONVERT:
        text_printf(out, "%s(", pypto_dtype_name(e->dtype));
        ir_print_expr(out, e->a);
        text_add(out, ")");
        break;
    case IR_OP:
        text_add(out, e->op_def->spellings[0]);
        print_operands(out, e->operands, e->operand_count, e->op_def);
        break;
    }
}

void ir_print_type(text *out, const ir_type *type)
{
    text_add(out, ir_kind_name(type->kind));
    if (type->kind == IR_SCALAR)
        text_printf(out, "[%s]", pypto_dtype_name(type->dtype));
    if (!ir_is_memory(type->kind) && !ir_is_private(type->kind))
        return;
    text_add(out, "[[");
    for (int32_t i = 0; i < type->ndim; i++) {
        if (i > 0)
            text_add(out, ", ");
        ir_print_expr(out, type->shape[i]);
    }
    text_printf(out, "], %s%s]", pypto_dtype_name(type->dtype), type->ragged ? ", ragged" : "");
}

const char *ir_type_text(arena *a, const ir_type *type)
{
    text out = {.a = a};
    ir_print_type(&out, type);
    return out.bytes;
}

const char *ir_expr_text(arena *a, const ir_expr *e)
{
    text out = {.a = a};
    ir_print_expr(&out, e);
    return out.bytes;
}

/* ---- statements ---- */

static void print_block(text *out, const ir_block *block, int depth);

static void print_assigned(text *out, const ir_stmt *s)
{
    if (s->target == NULL)
        return;
    print_var(out, s->target);
    text_add(out, " = ");
}

static void print_list(text *out, const ir_expr *const *exprs, int32_t count)
{
    text_add(out, "[");
    for (int32_t i = 0; i < count; i++) {
        text_add(out, i > 0 ? ", " : "");
        ir_print_expr(out, exprs[i]);
    }
    text_add(out, "]");
}

static void print_launch(text *out, const ir_launch *l)
{
    if (l->blocks != NULL) {
        text_add(out, " blocks ");
        ir_print_expr(out, l->blocks);
    }
    if (l->manual)
        text_add(out, " manual");
    if (l->independent_args != 0)
        text_printf(out, " independent 0x%llx", (unsigned long long)l->independent_args);
    if (l->marked_args != 0)
        text_printf(out, " marked 0x%llx", (unsigned long long)l->marked_args);
    if (l->after_count > 0) {
        text_add(out, " after ");
        print_list(out, l->after, l->after_count);
    }
    if (l->tested != NULL) {
        text_add(out, " if ");
        print_var(out, l->tested);
        print_list(out, l->element, l->tested->type.ndim);
        text_printf(out, " %s ", operator_text(l->compare));
        ir_print_expr(out, l->limit);
    }
}

/* All of a statement but its indentation, blocks and place. */
static void print_head(text *out, const ir_stmt *s)
{
    switch (s->kind) {
    case IR_ASSIGN:
        print_assigned(out, s);
        if (s->source != NULL)
            print_var(out, s->source);
        else
            ir_print_expr(out, s->value);
        break;
    case IR_DO:
        print_assigned(out, s);
        text_add(out, s->op_def->spellings[0]);
        print_operands(out, s->operands, s->operand_count, s->op_def);
        break;
    case IR_CALL:
        print_assigned(out, s);
        text_printf(out, "call %s", s->callee != NULL ? s->callee->name : "nothing");
        print_operands(out, s->operands, s->operand_count, NULL);
        if (s->launch != NULL)
            print_launch(out, s->launch);
        if (s->device != NULL) {
            text_add(out, " device ");
            ir_print_expr(out, s->device);
        }
        if (s->spread != NULL)
            text_add(out, " device each");
        break;
    case IR_FOR:
        text_add(out, "for ");
        print_var(out, s->target);
        text_add(out, " in range(");
        ir_print_expr(out, s->start);
        text_add(out, ", ");
        ir_print_expr(out, s->stop);
        text_add(out, ", ");
        ir_print_expr(out, s->step);
        text_add(out, ")");
        break;
    case IR_WHILE:
        text_add(out, "while ");
        ir_print_expr(out, s->value);
        break;
    case IR_IF:
        text_add(out, "if ");
        ir_print_expr(out, s->value);
        break;
    case IR_BREAK: text_add(out, "break"); break;
    case IR_CONTINUE: text_add(out, "continue"); break;
    case IR_RETURN: text_add(out, "return"); break;
    }
}

static void print_stmt(text *out, const ir_stmt *s, int depth)
{
    indent(out, depth);
    print_head(out, s);
    print_place(out, &s->span);
    print_block(out, &s->body, depth + 1);
    if (s->orelse.count > 0) {
        indent(out, depth);
        text_add(out, "else\n");
        print_block(out, &s->orelse, depth + 1);
    }
}

static void print_block(text *out, const ir_block *block, int depth)
{
    for (int64_t i = 0; i < block->count; i++)
        print_stmt(out, block->items[i], depth);
}

/* ---- functions and programs ---- */

static void print_variable_row(text *out, const ir_var *var)
{
    static const char *const kinds[] = {"param", "var", "loop", "dim"};
    static const char *const directions[] = {"in ", "out ", "inout "};

    text_printf(out, "  %s ", kinds[var->kind]);
    print_var(out, var);
    text_add(out, ": ");
    if (var->kind == IR_VAR_PARAM && var->type.kind != IR_SCALAR)
        text_add(out, directions[var->direction]);
    ir_print_type(out, &var->type);
    if (var->root != NULL && var->root != var) {
        text_add(out, " of ");
        print_var(out, var->root);
    }
    if (var->buffer >= 0)
        text_printf(out, " buffer %d", var->buffer);
    if (ir_is_private(var->type.kind) && var->scratch_offset >= 0)
        text_printf(out, " at %lld", (long long)var->scratch_offset);
    if (var->c_name != NULL && strcmp(var->c_name, var->name) != 0)
        text_printf(out, " c %s", var->c_name);
    text_add(out, "\n");
}

/* dim NR = (x.shape[0] - 2) / 4 */
static void print_dim(text *out, const ir_function *f, const ir_dim *dim)
{
    text_add(out, "  dim ");
    print_var(out, dim->var);
    text_add(out, dim->offset != 0 ? " = (" : " = ");
    print_var(out, f->params.items[dim->param]);
    text_printf(out, ".shape[%d]", dim->dim);
    if (dim->offset != 0)
        text_printf(out, " - %lld)", (long long)dim->offset);
    if (dim->scale != 1)
        text_printf(out, " / %lld", (long long)dim->scale);
    if (dim->quotient != 0)
        text_printf(out, " * %lld", (long long)dim->quotient);
    text_add(out, "\n");
}

static void print_world_dims(text *out, const ir_function *f)
{
    for (int64_t i = 0; i < f->world_dims.count && i < f->params.count; i++) {
        if (f->world_dims.items[i] < 0)
            continue;
        text_add(out, "  world ");
        print_var(out, f->params.items[i]);
        text_printf(out, ".shape[%d]\n", f->world_dims.items[i]);
    }
}

void ir_print_function(text *out, const ir_function *f)
{
    static const char *const planes[] = {"host", "chip", "core", "sub"};

    text_printf(out, "%s %s", planes[f->plane], f->name);
    if (f->c_name != NULL && strcmp(f->c_name, f->name) != 0)
        text_printf(out, " c %s", f->c_name);
    print_place(out, &f->span);
    for (int64_t i = 0; i < f->vars.count; i++)
        if (f->vars.items[i]->kind != IR_VAR_DIM)
            print_variable_row(out, f->vars.items[i]);
    for (int64_t i = 0; i < f->dims.count; i++)
        print_dim(out, f, &f->dims.items[i]);
    print_world_dims(out, f);
    for (int64_t i = 0; i < f->results.count; i++) {
        text_add(out, "  result ");
        print_var(out, f->results.items[i]);
        text_add(out, "\n");
    }
    if (f->scratch_bytes > 0)
        text_printf(out, "  scratch %lld bytes\n", (long long)f->scratch_bytes);
    text_add(out, "  body\n");
    print_block(out, &f->body, 2);
}

static void print_device_set(text *out, const ir_device_set *set)
{
    if (set->all) {
        text_add(out, ": devices all");
        return;
    }
    if (set->mask == 0)
        return; /* not inferred yet */
    text_add(out, ": devices {");
    const char *separator = "";
    for (int device = 0; device < PYPTO_MAX_RANKS; device++) {
        if ((set->mask >> device & 1) != 0) {
            text_printf(out, "%s%d", separator, device);
            separator = ", ";
        }
    }
    text_add(out, "}");
}

static const char *signals_text(pld_collectives collectives)
{
    return collectives == PLD_ONE_SIGNAL     ? ", a signal of collectives"
           : collectives == PLD_MANY_SIGNALS ? ", signals of collectives"
                                             : "";
}

void ir_print_program(text *out, const ir_program *p)
{
    text_printf(out, "program %s\n", p->name);
    for (int64_t i = 0; i < p->buffers.count; i++) {
        text_printf(out, "buffer %lld %s", (long long)i, p->buffers.items[i].name);
        print_device_set(out, &p->buffers.items[i].devices);
        text_add(out, signals_text(p->buffers.items[i].collectives));
        print_place(out, &p->buffers.items[i].span);
    }
    for (int64_t i = 0; i < p->functions.count; i++) {
        text_add(out, "\n");
        ir_print_function(out, p->functions.items[i]);
    }
}
