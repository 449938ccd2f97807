/* Scalar expressions as C text.
 *
 * The text means in C what the expression means in the DSL, with as few casts as that allows. What
 * needs care:
 *
 *   - C computes int32_t * 4 in 32 bits. An INDEX expression therefore casts one operand when C
 *     would take both for int. Widening conversions are otherwise left to C.
 *   - Types narrower than int are cast back after each operation. Overflow wraps, because programs
 *     are compiled with -fwrapv.
 *   - // and % are calls of pld_floordiv and pld_floormod; shifts by unknown counts of pld_shl,
 *     pld_shr.
 *   - Floats become integers by pld_f32_to_*, which is defined for every value.
 *   - FP16 and BF16 scalars are floats that hold a rounded value; each operation rounds once.
 *     Elements of tiles are their bits, converted where they are read and written.
 *
 * Parentheses follow C's precedence, plus those that compilers like to see around shifts, bit
 * operations and && inside ||. */
#include "codegen/emit_internal.h"

#include <math.h>
#include <string.h>

/* ---- types ---- */

const char *c_scalar_type(pypto_dtype dtype)
{
    if (ir_is_float(dtype))
        return "float";
    return dtype == PYPTO_BOOL ? "bool" : c_element_type(dtype);
}

const char *c_element_type(pypto_dtype dtype)
{
    switch (dtype) {
    case PYPTO_FP8E4M3FN:
    case PYPTO_FP8E5M2:
    case PYPTO_FP8E8M0:
    case PYPTO_FP4: /* two in a byte, like the next two */
    case PYPTO_INT4:
    case PYPTO_UINT4:
    case PYPTO_BOOL:
    case PYPTO_UINT8: return "uint8_t";
    case PYPTO_INT8: return "int8_t";
    case PYPTO_INT16: return "int16_t";
    case PYPTO_INT32: return "int32_t";
    case PYPTO_INT64:
    case PYPTO_TASK_ID:
    case PYPTO_INDEX: return "int64_t";
    case PYPTO_UINT16:
    case PYPTO_FP16:
    case PYPTO_BF16: return "uint16_t";
    case PYPTO_UINT32: return "uint32_t";
    case PYPTO_UINT64: return "uint64_t";
    case PYPTO_FP32: return "float";
    case PYPTO_DTYPE_COUNT: break;
    }
    return "void";
}

const char *compute_suffix(pypto_dtype dtype)
{
    switch (dtype) {
    case PYPTO_INT8: return "i8";
    case PYPTO_INT16: return "i16";
    case PYPTO_INT32: return "i32";
    case PYPTO_INT64:
    case PYPTO_INDEX: return "i64";
    case PYPTO_BOOL:
    case PYPTO_UINT8: return "u8";
    case PYPTO_UINT16: return "u16";
    case PYPTO_UINT32: return "u32";
    case PYPTO_UINT64: return "u64";
    default: return "f32";
    }
}

const char *c_dtype_name(pypto_dtype dtype)
{
    static const char *const names[PYPTO_DTYPE_COUNT] = {
#define DTYPE_NAME(name, text, bits, class_) "PYPTO_" #name,
        PYPTO_DTYPES(DTYPE_NAME)
#undef DTYPE_NAME
    };
    return (int)dtype >= 0 && dtype < PYPTO_DTYPE_COUNT ? names[dtype] : "PYPTO_DTYPE_COUNT";
}

/* What C computes values of that dtype in. */
static c_class class_of(pypto_dtype dtype)
{
    switch (dtype) {
    case PYPTO_UINT32: return C_UINT;
    case PYPTO_INT64:
    case PYPTO_TASK_ID:
    case PYPTO_INDEX: return C_LONG;
    case PYPTO_UINT64: return C_ULONG;
    case PYPTO_FP16:
    case PYPTO_BF16:
    case PYPTO_FP32: return C_FLOAT;
    default: return C_INT;
    }
}

static bool is_narrow(pypto_dtype dtype)
{
    return ir_is_integer(dtype) && pypto_dtype_bytes(dtype) < 4;
}

static bool is_half(pypto_dtype dtype)
{
    return dtype == PYPTO_FP16 || dtype == PYPTO_BF16;
}

/* ---- pieces ---- */

static c_expr primary(const char *code, c_class class)
{
    return (c_expr){code, PRECEDENCE_PRIMARY, class};
}

static const char *expr_parenthesised(emitter *e, c_expr c, int precedence)
{
    return c.precedence < precedence ? arena_printf(e->a, "(%s)", c.text) : c.text;
}

static c_expr cast(emitter *e, c_expr c, pypto_dtype to)
{
    const char *code =
        arena_printf(e->a, "(%s)%s", c_scalar_type(to), expr_parenthesised(e, c, PRECEDENCE_UNARY));
    return (c_expr){code, PRECEDENCE_UNARY, class_of(to)};
}

/* Rounds a float value to 16 bits and back, which is how such scalars are held. */
static c_expr round_half(emitter *e, c_expr c, pypto_dtype dtype)
{
    const char *type = dtype == PYPTO_FP16 ? "fp16" : "bf16";
    return primary(arena_printf(e->a, "pld_%s_to_float(pld_float_to_%s(%s))", type, type, c.text),
                   C_FLOAT);
}

/* After an operation: brings a value that C computed more widely back into its dtype. */
static c_expr settle(emitter *e, c_expr c, pypto_dtype dtype)
{
    if (is_narrow(dtype))
        return cast(e, c, dtype);
    return is_half(dtype) ? round_half(e, c, dtype) : c;
}

static c_expr convert_to_int(emitter *e, c_expr c, pypto_dtype from, pypto_dtype to)
{
    c_class class = class_of(to);
    bool widens = pypto_dtype_bytes(from) < pypto_dtype_bytes(to) && c.class == C_INT;
    if (from == PYPTO_BOOL || (widens && (class == C_LONG || class == C_INT)))
        return class == C_ULONG || class == C_UINT ? cast(e, c, to) : c;
    if (class_of(from) == C_LONG && class == C_LONG)
        return c;
    return cast(e, c, to);
}

/* Wide integers reach 16 bits through FP32, which must not round them to nearest first. */
static c_expr convert_to_float(emitter *e, c_expr c, pypto_dtype from, pypto_dtype to)
{
    if (ir_is_float(from))
        return c;
    if (!is_half(to) || pypto_dtype_bytes(from) < 4)
        return cast(e, c, PYPTO_FP32);
    return primary(arena_printf(e->a, "pld_%s_to_f32_odd(%s)", compute_suffix(from), c.text),
                   C_FLOAT);
}

c_expr expr_convert(emitter *e, c_expr c, pypto_dtype from, pypto_dtype to)
{
    if (from == to)
        return c;
    if (to == PYPTO_BOOL) {
        const char *zero = ir_is_float(from) ? "0.0f" : "0";
        return (c_expr){
            arena_printf(e->a, "%s != %s", expr_parenthesised(e, c, PRECEDENCE_LESS), zero),
            PRECEDENCE_EQUAL, C_INT};
    }
    if (!ir_is_float(to) && ir_is_float(from))
        return primary(arena_printf(e->a, "pld_f32_to_%s(%s)", compute_suffix(to), c.text),
                       class_of(to));
    if (!ir_is_float(to))
        return convert_to_int(e, c, from, to);
    c_expr value = convert_to_float(e, c, from, to);
    return is_half(to) ? round_half(e, value, to) : value;
}

/* ---- constants ---- */

static c_expr negative(const char *code, c_class class)
{
    return (c_expr){code, PRECEDENCE_UNARY, class};
}

static c_expr constant_int(emitter *e, const ir_expr *expr)
{
    long long value = (long long)expr->integer;
    c_class class = class_of(expr->dtype);
    if (class == C_ULONG)
        return primary(arena_printf(e->a, "UINT64_C(%llu)", (unsigned long long)value), C_ULONG);
    if (class == C_UINT)
        return primary(arena_printf(e->a, "%lldu", value), C_UINT);
    if (expr->integer == INT64_MIN)
        return primary("INT64_MIN", C_LONG);
    if (expr->integer == INT32_MIN)
        return primary("INT32_MIN", C_INT);
    long long size = value < 0 ? -value : value;
    bool small = size <= INT32_MAX;
    const char *code =
        arena_printf(e->a, small ? "%s%lld" : "%sINT64_C(%lld)", value < 0 ? "-" : "", size);
    c_class held = small ? C_INT : C_LONG;
    return value < 0 ? negative(code, held) : primary(code, held);
}

static c_expr constant_float(emitter *e, const ir_expr *expr)
{
    if (isnan(expr->real))
        return primary("__builtin_nanf(\"\")", C_FLOAT);
    if (isinf(expr->real))
        return expr->real > 0 ? primary("__builtin_inff()", C_FLOAT)
                              : negative("-__builtin_inff()", C_FLOAT);
    char *digits = arena_printf(e->a, "%.9g", expr->real);
    const char *point = strpbrk(digits, ".e") != NULL ? "" : ".0";
    const char *code = arena_printf(e->a, "%s%sf", digits, point);
    return code[0] == '-' ? negative(code, C_FLOAT) : primary(code, C_FLOAT);
}

/* ---- operators ---- */

typedef struct c_operator {
    const char *text;
    int precedence;
} c_operator;

static c_operator operator_of(ir_operator op)
{
    switch (op) {
    case IR_ADD: return (c_operator){"+", PRECEDENCE_SUM};
    case IR_SUB: return (c_operator){"-", PRECEDENCE_SUM};
    case IR_MUL: return (c_operator){"*", PRECEDENCE_PRODUCT};
    case IR_DIV: return (c_operator){"/", PRECEDENCE_PRODUCT};
    case IR_SHL: return (c_operator){"<<", PRECEDENCE_SHIFT};
    case IR_SHR: return (c_operator){">>", PRECEDENCE_SHIFT};
    case IR_BITAND: return (c_operator){"&", PRECEDENCE_BITAND};
    case IR_BITOR: return (c_operator){"|", PRECEDENCE_BITOR};
    case IR_BITXOR: return (c_operator){"^", PRECEDENCE_BITXOR};
    case IR_LT: return (c_operator){"<", PRECEDENCE_LESS};
    case IR_LE: return (c_operator){"<=", PRECEDENCE_LESS};
    case IR_GT: return (c_operator){">", PRECEDENCE_LESS};
    case IR_GE: return (c_operator){">=", PRECEDENCE_LESS};
    case IR_EQ: return (c_operator){"==", PRECEDENCE_EQUAL};
    case IR_NE: return (c_operator){"!=", PRECEDENCE_EQUAL};
    case IR_AND: return (c_operator){"&&", PRECEDENCE_AND};
    case IR_OR: return (c_operator){"||", PRECEDENCE_OR};
    default: return (c_operator){"?", PRECEDENCE_TERNARY};
    }
}

/* Operands of these stand in parentheses unless they are simple. */
static bool wants_simple_operands(ir_operator op)
{
    return op == IR_SHL || op == IR_SHR || op == IR_BITAND || op == IR_BITOR || op == IR_BITXOR;
}

/* The operand of a logical operator: comparisons may stand bare, the other logical operator may
 * not. */
static int logical_operand_precedence(const ir_expr *operand, ir_operator op, bool left)
{
    if (operand->kind == IR_BINARY && operand->op == op && left)
        return PRECEDENCE_OR;
    return PRECEDENCE_BITOR;
}

static bool is_literal(const ir_expr *e)
{
    return e->kind == IR_INT || e->kind == IR_BOOL;
}

/* Operands that C would take for int, in an operation of 64 bits: one of them is cast. */
static void widen_one(emitter *e, const ir_expr *expr, c_expr *a, c_expr *b)
{
    if (a->class != C_INT || b->class != C_INT)
        return;
    if (is_literal(expr->a) && !is_literal(expr->b))
        *b = cast(e, *b, expr->dtype);
    else
        *a = cast(e, *a, expr->dtype);
}

static c_expr infix(emitter *e, const ir_expr *expr)
{
    c_operator op = operator_of(expr->op);
    c_expr a = expr_c(e, expr->a);
    c_expr b = expr_c(e, expr->b);
    bool arithmetic = expr->dtype != PYPTO_BOOL;
    if (arithmetic && class_of(expr->dtype) == C_LONG)
        widen_one(e, expr, &a, &b);

    int left = op.precedence;
    int right = op.precedence + 1;
    if (wants_simple_operands(expr->op))
        left = right = PRECEDENCE_UNARY;
    if (expr->op == IR_AND || expr->op == IR_OR) {
        left = logical_operand_precedence(expr->a, expr->op, true);
        right = logical_operand_precedence(expr->b, expr->op, false);
    }
    if (!arithmetic && op.precedence == PRECEDENCE_EQUAL)
        left = right = PRECEDENCE_SHIFT; /* (a < b) == c */
    const char *code = arena_printf(e->a, "%s %s %s", expr_parenthesised(e, a, left), op.text,
                                    expr_parenthesised(e, b, right));
    c_expr result = {code, op.precedence, arithmetic ? class_of(expr->dtype) : C_INT};
    return arithmetic ? settle(e, result, expr->dtype) : result;
}

/* A call of a helper that takes and returns int64_t. */
static c_expr call_helper(emitter *e, const char *name, const ir_expr *expr)
{
    const char *code =
        arena_printf(e->a, "%s(%s, %s)", name, expr_int64(e, expr->a), expr_int64(e, expr->b));
    c_expr result = primary(code, C_LONG);
    return class_of(expr->dtype) == C_LONG ? result : cast(e, result, expr->dtype);
}

/* UINT64, which the int64_t helpers do not cover. */
static c_expr unsigned_special(emitter *e, const ir_expr *expr)
{
    const char *a = expr_text(e, expr->a, PRECEDENCE_UNARY);
    const char *b = expr_text(e, expr->b, PRECEDENCE_UNARY);
    const char *code;
    switch (expr->op) {
    case IR_FLOORDIV: code = arena_printf(e->a, "%s == 0 ? 0 : %s / %s", b, a, b); break;
    case IR_MOD: code = arena_printf(e->a, "%s == 0 ? 0 : %s %% %s", b, a, b); break;
    case IR_MIN: code = arena_printf(e->a, "%s < %s ? %s : %s", a, b, a, b); break;
    case IR_MAX: code = arena_printf(e->a, "%s > %s ? %s : %s", a, b, a, b); break;
    default: code = arena_printf(e->a, "(uint64_t)%s < 64 ? %s >> %s : 0", b, a, b); break;
    }
    return (c_expr){code, PRECEDENCE_TERNARY, C_ULONG};
}

static c_expr float_special(emitter *e, const ir_expr *expr)
{
    const char *a = expr_c(e, expr->a).text;
    const char *b = expr_c(e, expr->b).text;
    const char *name = expr->op == IR_MIN ? "pld_min_f32" : "pld_max_f32";
    if (expr->op == IR_FLOORDIV) {
        a = expr_text(e, expr->a, PRECEDENCE_PRODUCT);
        b = expr_text(e, expr->b, PRECEDENCE_UNARY);
        return settle(e, primary(arena_printf(e->a, "__builtin_floorf(%s / %s)", a, b), C_FLOAT),
                      expr->dtype);
    }
    if (expr->op == IR_MOD) /* x - y * floor(x / y), without its rounding errors */
        return settle(
            e,
            primary(
                arena_printf(e->a, "__builtin_fmodf(__builtin_fmodf(%s, %s) + %s, %s)", a, b, b, b),
                C_FLOAT),
            expr->dtype);
    return primary(arena_printf(e->a, "%s(%s, %s)", name, a, b), C_FLOAT);
}

static bool is_bounded_shift(const ir_expr *expr)
{
    int64_t count;
    return ir_is_const_int(expr->b, &count) && count >= 0 &&
           count < pypto_dtype_bytes(expr->dtype) * 8;
}

static c_expr binary_c(emitter *e, const ir_expr *expr)
{
    const char *helper = NULL;
    switch (expr->op) {
    case IR_FLOORDIV: helper = "pld_floordiv"; break;
    case IR_MOD: helper = "pld_floormod"; break;
    case IR_MIN: helper = "pld_min"; break;
    case IR_MAX: helper = "pld_max"; break;
    case IR_SHL: helper = is_bounded_shift(expr) ? NULL : "pld_shl"; break;
    case IR_SHR: helper = is_bounded_shift(expr) ? NULL : "pld_shr"; break;
    default: break;
    }
    if (helper == NULL)
        return infix(e, expr);
    if (ir_is_float(expr->dtype))
        return float_special(e, expr);
    if (expr->dtype == PYPTO_UINT64 && expr->op != IR_SHL)
        return unsigned_special(e, expr);
    return call_helper(e, helper, expr);
}

static c_expr unary_c(emitter *e, const ir_expr *expr)
{
    c_expr a = expr_c(e, expr->a);
    if (expr->op == IR_NOT && expr->a->dtype != PYPTO_BOOL)
        a = expr_convert(e, a, expr->a->dtype, PYPTO_BOOL);
    else if (class_of(expr->dtype) == C_LONG && a.class == C_INT && expr->op != IR_NOT)
        a = cast(e, a, expr->dtype);
    const char *sign = expr->op == IR_NEG ? "-" : expr->op == IR_NOT ? "!" : "~";
    /* -(-x), because --x is another operator. */
    bool twice = a.text[0] == '-' && expr->op == IR_NEG;
    const char *operand = expr_parenthesised(e, a, twice ? PRECEDENCE_PRIMARY : PRECEDENCE_UNARY);
    c_expr result = {arena_printf(e->a, "%s%s", sign, operand), PRECEDENCE_UNARY,
                     expr->op == IR_NOT ? C_INT : class_of(expr->dtype)};
    return is_narrow(expr->dtype) ? cast(e, result, expr->dtype) : result;
}

c_expr expr_c(emitter *e, const ir_expr *expr)
{
    switch (expr->kind) {
    case IR_INT: return constant_int(e, expr);
    case IR_FLOAT: return constant_float(e, expr);
    case IR_BOOL: return primary(expr->integer != 0 ? "true" : "false", C_INT);
    case IR_VAR: return primary(expr->var->c_name, class_of(expr->var->type.dtype));
    case IR_UNARY: return unary_c(e, expr);
    case IR_BINARY: return binary_c(e, expr);
    case IR_CONVERT: return expr_convert(e, expr_c(e, expr->a), expr->a->dtype, expr->dtype);
    case IR_OP:
        return primary(op_text(e, expr->op_def, expr->operands, NULL), class_of(expr->dtype));
    }
    return primary("0", C_INT);
}

const char *expr_text(emitter *e, const ir_expr *expr, int precedence)
{
    return expr_parenthesised(e, expr_c(e, expr), precedence);
}

c_expr expr_as(emitter *e, const ir_expr *expr, pypto_dtype dtype)
{
    return expr_convert(e, expr_c(e, expr), expr->dtype, dtype);
}

const char *expr_int64(emitter *e, const ir_expr *expr)
{
    c_expr c = expr_c(e, expr);
    bool is_unsigned =
        c.class == C_ULONG || (c.class == C_UINT && c.precedence < PRECEDENCE_PRIMARY);
    return is_unsigned ? cast(e, c, PYPTO_INT64).text : c.text;
}
