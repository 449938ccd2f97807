/* One element of a tile, array or mask as C text: where it is stored, and the value that C computes with.
 *
 * 16-bit floats are converted where their bits are read and rounded where the result is written; so are types
 * of 8 and 4 bits that are for storage only. Elements of 4 bits lie two in a byte. */
#include "codegen/emit_ops_internal.h"
#include "ops/dtypes.h"

const char *element_suffix(pypto_dtype dtype)
{
    if (dtype == PYPTO_FP16 || dtype == PYPTO_BF16)
        return dtype == PYPTO_FP16 ? "fp16" : "bf16";
    return dtype_is_storage(dtype) ? "u8" : compute_suffix(dtype);
}

/* Of a conversion: pld_<...>_to_float, pld_float_to_<...>. */
static const char *conversion_suffix(pypto_dtype dtype)
{
    return dtype_is_storage(dtype) ? pypto_dtype_name(dtype) : element_suffix(dtype);
}

static bool converts(pypto_dtype dtype)
{
    return dtype == PYPTO_FP16 || dtype == PYPTO_BF16 || dtype_is_storage(dtype);
}

const char *value_of_bits(emitter *e, pypto_dtype dtype, const char *bits)
{
    if (converts(dtype))
        return arena_printf(e->a, "pld_%s_to_%s(%s)", conversion_suffix(dtype),
                            dtype_is_floating(dtype) ? "float" : "int", bits);
    return dtype == PYPTO_BOOL ? arena_printf(e->a, "%s != 0", bits) : bits;
}

const char *bits_of_value(emitter *e, pypto_dtype dtype, const char *value)
{
    if (dtype_is_floating(dtype) && converts(dtype))
        return arena_printf(e->a, "pld_float_to_%s(%s)", conversion_suffix(dtype), value);
    if (dtype_is_storage(dtype))
        return arena_printf(e->a, "(uint8_t)(%s & 15)", value);
    return pypto_dtype_bytes(dtype) < 4
               ? arena_printf(e->a, "(%s)(%s)", c_element_type(dtype), value)
               : value;
}

/* An element's bits; of a type of 4 bits in the lower half, with the other element above. */
static const char *stored_element(emitter *e, const ir_var *tile)
{
    if (!pypto_dtype_packed(tile->type.dtype))
        return arena_printf(e->a, "%s[%s]", tile->c_name, e->index);
    return arena_printf(e->a, "(uint8_t)(%s[(%s) / 2] >> (%s) %% 2 * 4)", tile->c_name, e->index,
                        e->index);
}

const char *element_text(emitter *e, const ir_operand *operand)
{
    if (operand->kind != IR_OPERAND_VAR)
        return expr_text(e, operand->expr, PRECEDENCE_UNARY);
    return value_of_bits(e, operand->var->type.dtype, stored_element(e, operand->var));
}

const char *tile_element(emitter *e, const ir_var *tile, const ir_operand *indices)
{
    return arena_printf(e->a, "%s[pld_tile_index(core, %d, %s, %s)]", tile->c_name, tile->type.ndim,
                        tile_extents(e, tile, tile->type.ndim, false),
                        list_text(e, "PLD_AT", indices->exprs, indices->count));
}

const char *array_slot(emitter *e, const ir_var *array, const ir_operand *index)
{
    int64_t number = 0;
    if (ir_is_const_int(index->expr, &number)) /* its type rule has checked it */
        return arena_printf(e->a, "%s[%lld]", array->c_name, (long long)number);
    text name = {.a = e->a};
    text_quoted(&name, array->name);
    return arena_printf(e->a, "%s[pld_array_index(core, %s, %s, %s)]", array->c_name, name.bytes,
                        expr_int64(e, array->type.shape[0]), expr_int64(e, index->expr));
}

const char *cast_text(emitter *e, const op_template *t, const ir_operand *operand)
{
    static const char *const rounding[] = {"rint", "rint",  "round", "floor",
                                           "ceil", "trunc", "odd"};
    pypto_dtype from = operand->var->type.dtype;
    pypto_dtype to = t->target->type.dtype;
    const ir_operand *given = &t->operands[op_param_index(t->op, "mode")];
    int64_t mode = given->kind == IR_OPERAND_NONE ? 2 : given->number;
    const char *value = value_of_bits(e, from, stored_element(e, operand->var));
    if (to == PYPTO_BOOL)
        return arena_printf(e->a, "(uint8_t)(%s != 0)", value);
    if (!dtype_is_floating(to) && dtype_is_floating(from))
        return arena_printf(e->a, "pld_f32_to_%s(pld_%s_f32(%s))",
                            dtype_is_storage(to) ? pypto_dtype_name(to) : compute_suffix(to),
                            rounding[mode], value);
    if (!dtype_is_floating(to))
        return dtype_is_storage(to) ? bits_of_value(e, to, value)
                                    : arena_printf(e->a, "(%s)(%s)", c_element_type(to), value);
    if (!dtype_is_floating(from)) {
        /* Through FP32, which rounds wide integers: to odd, so that what follows rounds as if once. */
        bool twice = pypto_dtype_bytes(from) >= 4 && to != PYPTO_FP32;
        value = twice ? arena_printf(e->a, "pld_%s_to_f32_odd(%s)", compute_suffix(from), value)
                      : arena_printf(e->a, "(float)(%s)", value);
    }
    if (to == PYPTO_FP32)
        return value;
    bool directed = dtype_is_floating(from) && mode >= 3;
    return directed ? arena_printf(e->a, "pld_float_to_%s_%s(%s)", conversion_suffix(to),
                                   rounding[mode], value)
                    : bits_of_value(e, to, value);
}

const char *pad_text(emitter *e, pypto_dtype dtype, const ir_operand *pad)
{
    int64_t which = pad->kind == IR_OPERAND_ENUM ? pad->number : 1;
    if (pad->kind == IR_OPERAND_EXPR && pad->expr->kind == IR_FLOAT && pad->expr->real != 0)
        which = pad->expr->real > 0 ? 2 : 3;
    if (ir_is_float(dtype))
        return bits_of_value(e, dtype,
                             which == 1   ? "0.0f"
                             : which == 2 ? "__builtin_inff()"
                                          : "-__builtin_inff()");
    const bool is_signed = compute_suffix(dtype)[0] == 'i';
    if (which == 1 || (which == 3 && !is_signed))
        return "0";
    return arena_printf(e->a, "%sINT%d_%s", is_signed ? "" : "U", (int)pypto_dtype_bytes(dtype) * 8,
                        which == 2 ? "MAX" : "MIN");
}

const char *pointer_text(emitter *e, const ir_operand *operand, pypto_dtype dtype)
{
    if (operand->kind == IR_OPERAND_VAR)
        return arena_printf(e->a, "%s, 1", operand->var->c_name);
    return arena_printf(e->a, "(const %s[]){%s}, 0", c_element_type(dtype),
                        bits_of_value(e, dtype, expr_c(e, operand->expr).text));
}

const char *bit_text(emitter *e, const ir_var *mask)
{
    const int bits = (int)pypto_dtype_bytes(mask->type.dtype) * 8;
    return arena_printf(e->a, "(%s[%s * %s + %s / %d] >> %s %% %d & 1) != 0", mask->c_name, e->row,
                        expr_int64(e, mask->type.shape[mask->type.ndim - 1]), e->column, bits,
                        e->column, bits);
}
