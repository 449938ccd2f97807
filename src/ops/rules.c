/* Checking an operation's operands against its signature. The type rules, by subject, are in rules_*.c.
 *
 * op_check() is what the front end calls. It first compares every operand with its kind in the table,
 * with one wording for all operations ("pl.add: lhs expected Tile, got Scalar"), so that a rule only
 * has to relate operands to each other. */
#include "ops/rules.h"

#include "base/text.h"
#include "ops/dtypes.h"

#include <stdarg.h>
#include <string.h>

/* A mask looks like a tile of bytes, and whoever uses it as one has taken it for a tile of 0 and 1. */
static bool misuses_mask(const op_call *call, diag_code code)
{
    if (code != DIAG_DTYPE_MISMATCH && code != DIAG_SHAPE_MISMATCH)
        return false;
    for (int32_t i = 0; i < call->op->param_count; i++) {
        const ir_operand *operand = &call->operands[i];
        if (operand->kind == IR_OPERAND_VAR && operand->var != NULL && operand->var->type.mask &&
            strcmp(call->op->params[i].name, "mask") != 0)
            return true;
    }
    return false;
}

/* Whatever is wrong with a deferred wait is an error of one class. */
static diag_code code_of(const op_call *call, diag_code code)
{
    return call->op->id == OP_DEFER_WAIT ? DIAG_BAD_DEFERRED_WAIT : code;
}

bool rule_fail(op_call *call, diag_code code, const ir_operand *at, const char *hint,
               const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *message = arena_vprintf(call->program->a, format, args);
    va_end(args);
    pypto_span span = at != NULL && at->span.line != 0 ? at->span : call->span;
    if (misuses_mask(call, code))
        hint =
            "a comparison gives a mask, one bit per element, 8 in a byte; pl.sels(mask, tile, scalar) and "
            "pl.sel(mask, x, y) make elements of it";
    diag_add(call->errors, code_of(call, code), span, hint, "%s: %s", call->op->spellings[0],
             message);
    return false;
}

ir_operand *rule_operand(op_call *call, op_operand kind)
{
    for (int32_t i = 0; i < call->op->param_count; i++) {
        if (call->op->params[i].kind == kind)
            return &call->operands[i];
    }
    return NULL;
}

void rule_extents(const ir_operand *list, int64_t *extents)
{
    for (int32_t i = 0; i < list->count; i++) {
        extents[i] = 0;
        (void)ir_is_const_int(list->exprs[i], &extents[i]);
    }
}

/* ---- operand kinds ---- */

static const char *operand_text(const ir_operand *operand)
{
    switch (operand->kind) {
    case IR_OPERAND_NONE: return "None";
    case IR_OPERAND_VAR: return ir_kind_name(operand->var->type.kind);
    case IR_OPERAND_EXPR: return ir_kind_name(IR_SCALAR);
    case IR_OPERAND_LIST: return "list";
    case IR_OPERAND_DTYPE: return "dtype";
    case IR_OPERAND_TEXT: return "string";
    case IR_OPERAND_ENUM: return "enumeration member";
    }
    return "?";
}

/* The same behind "got" and "not". */
static const char *operand_phrase(op_call *call, const ir_operand *operand)
{
    if (operand->kind == IR_OPERAND_ENUM && operand->text != NULL) /* a word that is no member */
        return arena_printf(call->program->a, "'%s'", operand->text);
    const char *noun = operand_text(operand);
    return operand->kind == IR_OPERAND_NONE
               ? noun
               : arena_printf(call->program->a, "%s %s", text_article(noun), noun);
}

/* What to write instead, where the mistake has a usual cause. */
static const char *kind_hint(op_operand wanted, const ir_operand *got)
{
    bool is_var = got->kind == IR_OPERAND_VAR;
    if (wanted == OPERAND_TILE && is_var && ir_is_memory(got->var->type.kind))
        return "load it into a tile first: pl.load(x, offsets, shapes)";
    if (wanted == OPERAND_TILE && got->kind == IR_OPERAND_EXPR)
        return "scalars use Python's operators: a + b";
    if (wanted == OPERAND_WINDOW && is_var && got->var->type.kind == IR_TENSOR)
        return "a plain tensor has no peers; declare the parameter as pld.DistributedTensor and pass "
               "a pld.window";
    if (wanted == OPERAND_COMM && is_var && got->var->type.kind == IR_WINDOW)
        return "get the handle first: ctx = pld.get_comm_ctx(window)";
    if (wanted == OPERAND_BUFFER)
        return "pass the name that pld.alloc_window_buffer was assigned to";
    return "help(operation) shows what each parameter takes";
}

static bool wrong_kind(op_call *call, int32_t index, const char *wanted)
{
    const op_param *param = &call->op->params[index];
    const ir_operand *operand = &call->operands[index];
    return rule_fail(call, DIAG_KIND_MISMATCH, operand, kind_hint(param->kind, operand),
                     param->kind == OPERAND_WINDOW ? "%s must be a %s, got %s"
                                                   : "%s expected %s, got %s",
                     param->name, wanted, operand_text(operand));
}

static bool check_handle(op_call *call, int32_t index)
{
    const ir_operand *operand = &call->operands[index];
    ir_kind kind = operand->kind == IR_OPERAND_VAR ? operand->var->type.kind : IR_NONE;
    switch (call->op->params[index].kind) {
    case OPERAND_TILE:
    case OPERAND_TILE_OR_SCALAR:
        if (kind == IR_TILE && pypto_dtype_packed(operand->var->type.dtype) &&
            !call->op->params[index].takes_packed)
            return rule_fail(call, DIAG_DTYPE_MISMATCH, operand, "convert it: pl.cast(x, pl.FP32)",
                             "does not accept %s tiles, which lie two elements in a byte",
                             pypto_dtype_name(operand->var->type.dtype));
        if (kind == IR_TILE)
            return true;
        return call->op->params[index].kind == OPERAND_TILE
                   ? wrong_kind(call, index, "Tile")
                   : operand->kind == IR_OPERAND_EXPR || wrong_kind(call, index, "Tile or Scalar");
    case OPERAND_MEMORY:
        return ir_is_memory(kind) || wrong_kind(call, index, "Tensor or DistributedTensor");
    case OPERAND_BLOCK:
        return kind == IR_TILE || ir_is_memory(kind) ||
               wrong_kind(call, index, "Tile, Tensor or DistributedTensor");
    case OPERAND_WINDOW: return kind == IR_WINDOW || wrong_kind(call, index, "DistributedTensor");
    case OPERAND_TENSOR: return kind == IR_TENSOR || wrong_kind(call, index, "Tensor");
    case OPERAND_ARRAY: return kind == IR_ARRAY || wrong_kind(call, index, "Array");
    case OPERAND_BUFFER: return kind == IR_BUFFER || wrong_kind(call, index, "Ptr handle");
    case OPERAND_COMM: return kind == IR_COMM || wrong_kind(call, index, "CommCtx");
    default: return true;
    }
}

static bool fits_index(op_call *call, const op_param *param, const ir_operand *at, const ir_expr *e)
{
    return !is_beyond_index(e) ||
           rule_fail(call, DIAG_BAD_SCALAR, at, "use a smaller number", "%s: %s does not fit index",
                     param->name, constant_text(call->program->a, e));
}

static bool check_scalar(op_call *call, int32_t index)
{
    const op_param *param = &call->op->params[index];
    const ir_operand *operand = &call->operands[index];
    if (operand->kind != IR_OPERAND_EXPR)
        return rule_fail(call, DIAG_KIND_MISMATCH, operand, "pass one number",
                         "%s must be a scalar, not %s", param->name, operand_phrase(call, operand));
    if (param->kind != OPERAND_SCALAR && !ir_is_integer(operand->expr->dtype))
        return rule_fail(call, DIAG_KIND_MISMATCH, operand, "convert it: pl.cast(x, pl.INDEX)",
                         "%s must be an integer or index scalar, not %s", param->name,
                         pypto_dtype_name(operand->expr->dtype));
    return param->kind == OPERAND_SCALAR || fits_index(call, param, operand, operand->expr);
}

static bool check_list(op_call *call, int32_t index)
{
    const op_param *param = &call->op->params[index];
    const ir_operand *operand = &call->operands[index];
    if (operand->kind != IR_OPERAND_LIST)
        return rule_fail(call, DIAG_KIND_MISMATCH, operand, "write it in brackets: [0, 0]",
                         "%s must be a list or tuple, not %s", param->name,
                         operand_phrase(call, operand));
    if (operand->count > PYPTO_MAX_DIMS)
        return rule_fail(call, DIAG_KIND_MISMATCH, operand, "join dimensions",
                         "%s has %d entries; at most %d", param->name, operand->count,
                         PYPTO_MAX_DIMS);
    for (int32_t i = 0; i < operand->count; i++) {
        const ir_expr *entry = operand->exprs[i];
        if (!ir_is_integer(entry->dtype))
            return rule_fail(call, DIAG_BAD_INDEX, operand, "convert it: pl.cast(x, pl.INDEX)",
                             "%s %d must be an integer %sscalar, not %s: each entry must be "
                             "an index expression",
                             op_entry_name(param), i,
                             param->kind == OPERAND_VALID ? "" : "or index ",
                             pypto_dtype_name(entry->dtype));
        if (!fits_index(call, param, operand, entry))
            return false;
        int64_t value = 0;
        bool constant = ir_is_const_int(entry, &value);
        if (param->kind == OPERAND_EXTENTS && !constant)
            return rule_fail(
                call, DIAG_NOT_CONSTANT, operand,
                "tiles have a fixed shape; use a constant and handle the rest by a loop",
                "%s %d must be a constant (a positive static extent)", op_entry_name(param), i);
        if (param->kind != OPERAND_OFFSETS && param->kind != OPERAND_TILE_OR_OFFSETS &&
            param->kind != OPERAND_INDICES && param->kind != OPERAND_VALID &&
            param->kind != OPERAND_INT_OR_SHAPE && constant && value <= 0)
            return rule_fail(call, DIAG_SHAPE_MISMATCH, operand, "make it at least 1",
                             "%s %d is %lld: all dimensions must be positive", op_entry_name(param),
                             i, (long long)value);
    }
    return true;
}

/* "NotifyOp.AtomicAdd or NotifyOp.Set", "ReduceOp.Sum, Max, Min, or Prod"; words in quotes: "rint" or "floor". */
static const char *enum_choices(op_call *call, const op_param *param)
{
    int32_t total = 0, count = 0, seen = 0;
    const enum_member *all = enum_members(&total);
    for (int32_t i = 0; i < total; i++)
        count += strcmp(all[i].enumeration, param->enum_name) == 0 ? 1 : 0;
    text out = {.a = call->program->a};
    for (int32_t i = 0; i < total; i++) {
        if (strcmp(all[i].enumeration, param->enum_name) != 0)
            continue;
        const bool first = seen++ == 0;
        if (param->kind == OPERAND_WORD)
            text_printf(&out, "%s\"%s\"", first ? "" : " or ", all[i].member);
        else if (first || count == 2)
            text_printf(&out, "%s%s.%s", first ? "" : " or ", param->enum_name, all[i].member);
        else
            text_printf(&out, "%s%s", seen == count ? ", or " : ", ", all[i].member);
    }
    return count > 0 ? out.bytes : param->enum_name;
}

/* What was probably meant by a word that is no member. */
static const char *word_hint(op_call *call, const op_param *param, const ir_operand *operand)
{
    arena *a = call->program->a;
    int32_t count = 0;
    const enum_member *all = enum_members(&count);
    const char **words = arena_array(a, const char *, count);
    for (int32_t i = 0; i < count; i++)
        words[i] = strcmp(all[i].enumeration, param->enum_name) == 0 ? all[i].member : NULL;
    const char *near = operand->kind == IR_OPERAND_ENUM && operand->text != NULL
                           ? nearest_word(operand->text, words, count)
                           : NULL;
    return near == NULL ? "write one of them" : arena_printf(a, "did you mean '%s'?", near);
}

/* "Invalid rounding mode: " for a parameter that takes words of RoundingMode. */
static const char *invalid(op_call *call, const op_param *param)
{
    text out = {.a = call->program->a};
    text_add(&out, "");
    for (const char *at = param->enum_name; param->kind == OPERAND_WORD && *at != '\0'; at++) {
        const bool upper = *at >= 'A' && *at <= 'Z';
        text_printf(&out, "%s%c", upper ? " " : "", upper ? *at - 'A' + 'a' : *at);
    }
    return param->kind == OPERAND_WORD ? arena_printf(call->program->a, "Invalid%s: ", out.bytes)
                                       : "";
}

static bool check_enum(op_call *call, int32_t index)
{
    const op_param *param = &call->op->params[index];
    const ir_operand *operand = &call->operands[index];
    if (operand->kind == IR_OPERAND_ENUM &&
        enum_member_name(param->enum_name, operand->number) != NULL)
        return true;
    return rule_fail(call, DIAG_KIND_MISMATCH, operand, word_hint(call, param, operand),
                     "%s%s must be %s, not %s", invalid(call, param), param->name,
                     enum_choices(call, param), operand_phrase(call, operand));
}

/* A number becomes the member that it stands for. */
static bool check_word(op_call *call, int32_t index)
{
    ir_operand *operand = &call->operands[index];
    int64_t number = 0;
    if (operand->kind == IR_OPERAND_EXPR && operand->expr->kind == IR_INT &&
        ir_is_const_int(operand->expr, &number)) {
        operand->kind = IR_OPERAND_ENUM;
        operand->number = number;
    }
    return check_enum(call, index);
}

/* One integer without brackets counts the elements of operand 0 in row-major order, whatever its
 * rank: it becomes a list with an entry per dimension. */
static bool check_indices(op_call *call, int32_t index)
{
    ir_operand *operand = &call->operands[index];
    if (operand->kind == IR_OPERAND_EXPR && ir_is_integer(operand->expr->dtype)) {
        if (!fits_index(call, &call->op->params[index], operand, operand->expr))
            return false;
        arena *a = call->program->a;
        const ir_type *type = &call->operands[0].var->type;
        const ir_expr **entries = arena_array(a, const ir_expr *, type->ndim);
        const ir_expr *rest = operand->expr;
        for (int32_t i = type->ndim - 1; i > 0; i--) {
            rest = ir_convert(a, rest, PYPTO_INDEX, operand->span);
            const ir_expr *extent = ir_convert(a, type->shape[i], PYPTO_INDEX, operand->span);
            entries[i] = ir_binary(a, IR_MOD, rest, extent, PYPTO_INDEX, operand->span);
            rest = ir_binary(a, IR_FLOORDIV, rest, extent, PYPTO_INDEX, operand->span);
        }
        entries[0] = rest;
        operand->kind = IR_OPERAND_LIST;
        operand->exprs = entries;
        operand->count = type->ndim;
    }
    return check_list(call, index);
}

static bool check_operand(op_call *call, int32_t index)
{
    const op_param *param = &call->op->params[index];
    const ir_operand *operand = &call->operands[index];
    if (operand->kind == IR_OPERAND_NONE && param->default_text != NULL)
        return true;
    switch (param->kind) {
    case OPERAND_SCALAR:
    case OPERAND_INT: return check_scalar(call, index);
    case OPERAND_TILE_OR_OFFSETS:
        if (operand->kind == IR_OPERAND_LIST)
            return check_list(call, index);
        return (operand->kind == IR_OPERAND_VAR && operand->var->type.kind == IR_TILE) ||
               wrong_kind(call, index, "Tile or list");
    case OPERAND_INT_OR_SHAPE:
        return operand->kind == IR_OPERAND_LIST ? check_list(call, index)
                                                : check_scalar(call, index);
    case OPERAND_OFFSETS:
    case OPERAND_EXTENTS:
    case OPERAND_VALID:
    case OPERAND_SHAPE: return check_list(call, index);
    case OPERAND_DTYPE:
        if (operand->kind == IR_OPERAND_DTYPE && operand->dtype == PYPTO_TASK_ID &&
            call->op->id != OP_ARRAY_CREATE)
            return rule_fail(call, DIAG_KIND_MISMATCH, operand,
                             "use pl.array.create(n, pl.TASK_ID)",
                             "ids of tasks are in scalars and arrays only");
        return operand->kind == IR_OPERAND_DTYPE ||
               wrong_kind(call, index, "a dtype (pl.FP32, ...)");
    case OPERAND_TEXT:
        return operand->kind == IR_OPERAND_TEXT || wrong_kind(call, index, "a string");
    case OPERAND_ENUM: return check_enum(call, index);
    case OPERAND_WORD: return check_word(call, index);
    case OPERAND_INDICES: return check_indices(call, index);
    case OPERAND_PAD:
        return operand->kind == IR_OPERAND_ENUM || operand->kind == IR_OPERAND_EXPR ||
               wrong_kind(call, index, "a pad value (pl.PadValue.zero, ...)");
    case OPERAND_BOOL:
        return (operand->kind == IR_OPERAND_EXPR && operand->expr->kind == IR_BOOL) ||
               wrong_kind(call, index, "True or False");
    default: return check_handle(call, index);
    }
}

/* What all ranks take part in has one shape on all of them; allreduce compares what counts of its target. */
static bool check_whole(op_call *call)
{
    for (int32_t i = 0; call->op->as_task && i < call->op->param_count; i++) {
        const ir_operand *operand = &call->operands[i];
        const bool part = call->op->id == OP_ALLREDUCE && i == 0;
        if (operand->kind == IR_OPERAND_VAR && operand->var->type.ragged && !part)
            return rule_fail(
                call, DIAG_SHAPE_MISMATCH, operand, "pass a slice without valid_shape= and clamp=",
                "%s is a view that is valid in part only, which a collective does not take",
                call->op->params[i].name);
    }
    return true;
}

bool op_check(op_call *call, ir_type *result)
{
    for (int32_t i = 0; i < call->op->param_count; i++) {
        if (!check_operand(call, i))
            return false;
    }
    *result = (ir_type){.kind = IR_NONE};
    return check_whole(call) && call->op->rule(call, result);
}
