/* The builder and the printer of the IR: folding, equality, sizes, texts of expressions and types.
 */
#include "seed_program.h"

#include "base/diag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static arena *a;

static int make_arena(void **state)
{
    (void)state;
    a = arena_create();
    return a == NULL ? -1 : 0;
}

static int drop_arena(void **state)
{
    (void)state;
    arena_destroy(a);
    return 0;
}

static const ir_expr *binary_of(ir_operator op, int64_t x, int64_t y, pypto_dtype dtype,
                                pypto_dtype result)
{
    return ir_binary(a, op, ir_int_of(a, x, dtype), ir_int_of(a, y, dtype), result, SPAN_NONE);
}

/* x op y in that dtype folds to the value. */
static void folds(ir_operator op, int64_t x, int64_t y, pypto_dtype dtype, int64_t value)
{
    const ir_expr *e = binary_of(op, x, y, dtype, dtype);
    assert_int_equal(e->kind, IR_INT);
    assert_int_equal(e->integer, value);
    assert_int_equal(e->dtype, dtype);
}

static void stays(ir_operator op, int64_t x, int64_t y, pypto_dtype dtype)
{
    const ir_expr *e = binary_of(op, x, y, dtype, dtype);
    assert_int_equal(e->kind, IR_BINARY);
}

static const char *printed(const ir_expr *e)
{
    text out = {.a = a};
    ir_print_expr(&out, e);
    return out.bytes;
}

static void division_rounds_down(void **state)
{
    (void)state;
    folds(IR_FLOORDIV, 7, 2, PYPTO_INDEX, 3);
    folds(IR_FLOORDIV, -7, 2, PYPTO_INDEX, -4);
    folds(IR_FLOORDIV, 7, -2, PYPTO_INDEX, -4);
    folds(IR_MOD, -1, 4, PYPTO_INDEX, 3);
    folds(IR_MOD, 1, -4, PYPTO_INDEX, -3);
    folds(IR_MOD, 6, 3, PYPTO_INT32, 0);
    folds(IR_FLOORDIV, INT32_MIN, -1, PYPTO_INT32, INT32_MIN);
    stays(IR_FLOORDIV, 1, 0, PYPTO_INDEX);
    stays(IR_MOD, 1, 0, PYPTO_INT8);
    stays(IR_FLOORDIV, INT64_MIN, -1, PYPTO_INT64);
}

static void narrow_integers_wrap(void **state)
{
    (void)state;
    folds(IR_ADD, 127, 1, PYPTO_INT8, -128);
    folds(IR_MUL, 300, 300, PYPTO_UINT16, 90000 % 65536);
    folds(IR_SUB, 0, 1, PYPTO_UINT32, UINT32_MAX);
    folds(IR_ADD, INT32_MAX, 1, PYPTO_INT32, INT32_MIN);
    assert_int_equal(ir_int_of(a, 300, PYPTO_UINT8)->integer, 44);
    assert_int_equal(ir_convert(a, ir_int(a, -1), PYPTO_UINT16, SPAN_NONE)->integer, 65535);
}

static void overflow_of_64_bits_stays(void **state)
{
    (void)state;
    stays(IR_ADD, INT64_MAX, 1, PYPTO_INDEX);
    stays(IR_SUB, INT64_MIN, 1, PYPTO_INT64);
    stays(IR_MUL, INT64_MAX, 2, PYPTO_INDEX);
    assert_int_equal(ir_unary(a, IR_NEG, ir_int(a, INT64_MIN), PYPTO_INDEX, SPAN_NONE)->kind,
                     IR_UNARY);
    /* UINT64 wraps like every unsigned type. */
    folds(IR_ADD, -1, 2, PYPTO_UINT64, 1);
    folds(IR_FLOORDIV, -1, 2, PYPTO_UINT64, INT64_MAX);
}

static void shifts_are_bounded(void **state)
{
    (void)state;
    folds(IR_SHL, 1, 4, PYPTO_INDEX, 16);
    folds(IR_SHL, 1, 7, PYPTO_INT8, -128);
    folds(IR_SHR, -16, 2, PYPTO_INDEX, -4);
    folds(IR_SHR, -1, 60, PYPTO_UINT64, 15);
    stays(IR_SHL, 1, 64, PYPTO_INDEX);
    stays(IR_SHL, 1, 8, PYPTO_INT8);
    stays(IR_SHL, 1, -1, PYPTO_INDEX);
    stays(IR_SHL, INT64_MAX, 1, PYPTO_INDEX);
}

static void comparisons_give_bool(void **state)
{
    (void)state;
    const ir_expr *e = binary_of(IR_LT, -1, 1, PYPTO_INT32, PYPTO_BOOL);
    assert_int_equal(e->kind, IR_BOOL);
    assert_int_equal(e->integer, 1);
    /* Unsigned: the bit pattern of -1 is large. */
    e = binary_of(IR_LT, -1, 1, PYPTO_UINT64, PYPTO_BOOL);
    assert_int_equal(e->integer, 0);
    e = ir_binary(a, IR_AND, ir_bool(a, true), ir_bool(a, false), PYPTO_BOOL, SPAN_NONE);
    assert_int_equal(e->integer, 0);
    e = ir_unary(a, IR_NOT, ir_bool(a, true), PYPTO_BOOL, SPAN_NONE);
    assert_int_equal(e->integer, 0);
}

static double rounded(double value, pypto_dtype dtype)
{
    const ir_expr *e = ir_convert(a, ir_float(a, value), dtype, SPAN_NONE);
    assert_int_equal(e->kind, IR_FLOAT);
    return e->real;
}

static void floats_round_once_to_nearest_even(void **state)
{
    (void)state;
    assert_true(rounded(65519.0, PYPTO_FP16) == 65504.0);
    assert_true(rounded(65520.0, PYPTO_FP16) > 1e30); /* infinity */
    assert_true(rounded(1.0 + 0x1p-11, PYPTO_FP16) == 1.0);
    assert_true(rounded(1.0 + 3 * 0x1p-11, PYPTO_FP16) == 1.0 + 0x1p-9);
    assert_true(rounded(0x1p-24, PYPTO_FP16) == 0x1p-24);
    assert_true(rounded(0x1p-25, PYPTO_FP16) == 0.0);
    assert_true(rounded(1.0 + 0x1p-8, PYPTO_BF16) == 1.0);
    assert_true(rounded(1.0 + 3 * 0x1p-8, PYPTO_BF16) == 1.0 + 0x1p-6);
    assert_true(ir_float(a, 0.1)->real == (double)0.1f);
    const ir_expr *sum =
        ir_binary(a, IR_ADD, ir_float(a, 16777216.0), ir_float(a, 1.0), PYPTO_FP32, SPAN_NONE);
    assert_true(sum->real == 16777216.0);
    /* Division by 0 is computed where it happens. */
    assert_int_equal(
        ir_binary(a, IR_DIV, ir_float(a, 1.0), ir_float(a, 0.0), PYPTO_FP32, SPAN_NONE)->kind,
        IR_BINARY);
}

static void conversions_fold(void **state)
{
    (void)state;
    assert_int_equal(ir_convert(a, ir_float(a, -2.75), PYPTO_INT32, SPAN_NONE)->integer, -2);
    assert_int_equal(ir_convert(a, ir_float(a, 1e30), PYPTO_INT32, SPAN_NONE)->kind, IR_CONVERT);
    assert_true(ir_convert(a, ir_int(a, 16777217), PYPTO_FP32, SPAN_NONE)->real == 16777216.0);
    assert_int_equal(ir_convert(a, ir_int(a, 5), PYPTO_BOOL, SPAN_NONE)->integer, 1);
    const ir_expr *same = ir_int(a, 5);
    assert_ptr_equal(ir_convert(a, same, PYPTO_INDEX, SPAN_NONE), same);
    assert_true(ir_int_of(a, 3, PYPTO_FP32)->real == 3.0);
}

static ir_var *index_var(const char *name)
{
    ir_program *p = ir_program_create(a, "p");
    ir_function *f = ir_function_create(p, "f", PLD_PLANE_CORE, seed_span(1));
    return ir_var_create(p, f, IR_VAR_LOCAL, name, ir_scalar_type(PYPTO_INDEX), seed_span(1));
}

static const ir_expr *sum_of(ir_operator op, const ir_expr *x, const ir_expr *y)
{
    return ir_binary(a, op, x, y, PYPTO_INDEX, SPAN_NONE);
}

static void neutral_elements_go_and_chains_join(void **state)
{
    (void)state;
    const ir_expr *n = ir_ref(a, index_var("n"));
    assert_ptr_equal(sum_of(IR_ADD, n, ir_int(a, 0)), n);
    assert_ptr_equal(sum_of(IR_ADD, ir_int(a, 0), n), n);
    assert_ptr_equal(sum_of(IR_MUL, ir_int(a, 1), n), n);
    assert_ptr_equal(sum_of(IR_FLOORDIV, n, ir_int(a, 1)), n);
    assert_ptr_equal(sum_of(IR_SUB, sum_of(IR_ADD, n, ir_int(a, 5)), ir_int(a, 5)), n);
    assert_string_equal(printed(sum_of(IR_ADD, sum_of(IR_ADD, n, ir_int(a, 5)), ir_int(a, 2))),
                        "(n + 7)");
    assert_string_equal(printed(sum_of(IR_SUB, sum_of(IR_ADD, n, ir_int(a, 1)), ir_int(a, 3))),
                        "(n - 2)");
    /* 0 * n is not simplified, 0 - n is no neutral element. */
    assert_int_equal(sum_of(IR_SUB, ir_int(a, 0), n)->kind, IR_BINARY);
}

static void equality_is_structural(void **state)
{
    (void)state;
    ir_var *x = index_var("x");
    ir_var *y = index_var("y");
    const ir_expr *xy = sum_of(IR_MUL, ir_ref(a, x), ir_ref(a, y));
    const ir_expr *yx = sum_of(IR_MUL, ir_ref(a, y), ir_ref(a, x));
    assert_true(ir_expr_equal(xy, yx));
    assert_false(ir_expr_equal(sum_of(IR_SUB, ir_ref(a, x), ir_ref(a, y)),
                               sum_of(IR_SUB, ir_ref(a, y), ir_ref(a, x))));
    assert_false(ir_expr_equal(ir_ref(a, x), ir_ref(a, y)));
    assert_true(ir_expr_equal(ir_int(a, 4), ir_int_of(a, 4, PYPTO_INT64)));
    assert_false(ir_expr_equal(ir_float(a, 0.0), ir_float(a, -0.0)));
    assert_false(ir_expr_equal(NULL, xy));

    const ir_expr *shape[] = {ir_int(a, 2), ir_ref(a, x)};
    ir_type tensor = seed_memory(IR_TENSOR, PYPTO_FP32, 2, shape);
    ir_type window = seed_memory(IR_WINDOW, PYPTO_FP32, 2, shape);
    ir_type half = seed_memory(IR_TENSOR, PYPTO_FP16, 2, shape);
    assert_true(ir_type_equal(&tensor, &tensor));
    assert_false(ir_type_equal(&tensor, &window));
    assert_false(ir_type_equal(&tensor, &half));
    assert_true(ir_shape_equal(&tensor, &half));
}

static void static_sizes_do_not_overflow(void **state)
{
    (void)state;
    const ir_expr *small[] = {ir_int(a, 3), ir_int(a, 5)};
    const ir_expr *huge[] = {ir_int(a, INT64_MAX), ir_int(a, 2)};
    const ir_expr *dynamic[] = {ir_int(a, 3), ir_ref(a, index_var("n"))};
    ir_type type = seed_memory(IR_TILE, PYPTO_FP32, 2, small);
    assert_int_equal(ir_static_elems(&type), 15);
    type = seed_memory(IR_TILE, PYPTO_FP32, 2, huge);
    assert_int_equal(ir_static_elems(&type), -1);
    type = seed_memory(IR_TENSOR, PYPTO_FP32, 2, dynamic);
    assert_int_equal(ir_static_elems(&type), -1);
}

static void variables_of_one_name_have_versions(void **state)
{
    (void)state;
    ir_program *p = ir_program_create(a, "p");
    ir_function *f = ir_function_create(p, "f", PLD_PLANE_CORE, seed_span(1));
    ir_var *first = seed_local(p, f, "x", ir_scalar_type(PYPTO_INDEX), 1);
    ir_var *second = seed_local(p, f, "x", ir_scalar_type(PYPTO_FP32), 2);
    assert_int_equal(first->version, 0);
    assert_int_equal(second->version, 1);
    assert_int_equal(second->id, 1);
    assert_string_equal(printed(ir_ref(a, second)), "x.1");
    assert_int_equal(first->scratch_offset, -1);
    assert_int_equal(first->buffer, -1);
}

static void expressions_print_with_their_types(void **state)
{
    (void)state;
    const ir_expr *n = ir_ref(a, index_var("n"));
    assert_string_equal(printed(ir_int(a, -3)), "-3");
    assert_string_equal(printed(ir_int_of(a, 7, PYPTO_INT32)), "int32(7)");
    assert_string_equal(printed(ir_int_of(a, -1, PYPTO_UINT64)), "uint64(18446744073709551615)");
    assert_string_equal(printed(ir_float(a, 1)), "1.0");
    assert_string_equal(printed(ir_float(a, 0.1)), "0.100000001");
    assert_string_equal(printed(ir_float(a, -1e30)), "-1.00000002e+30");
    assert_string_equal(printed(ir_float(a, (double)__builtin_inff())), "inf");
    assert_string_equal(printed(ir_bool(a, true)), "True");
    assert_string_equal(printed(ir_convert(a, n, PYPTO_INT32, SPAN_NONE)), "int32(n)");
    assert_string_equal(printed(sum_of(IR_MIN, n, ir_int(a, 2))), "min(n, 2)");
    assert_string_equal(printed(ir_unary(a, IR_NEG, n, PYPTO_INDEX, SPAN_NONE)), "(-n)");
    assert_string_equal(printed(sum_of(IR_MOD, sum_of(IR_SUB, n, ir_int(a, 1)), ir_int(a, 4))),
                        "((n - 1) % 4)");
}

typedef struct visits {
    char names[256];
} visits;

static void note_var(void *context, ir_var *var)
{
    visits *v = context;
    strcat(v->names, var->name);
    strcat(v->names, " ");
}

static void walking_visits_in_order(void **state)
{
    (void)state;
    ir_program *p = seed_program(a, 8, PYPTO_INT32);
    const ir_function *kernel = p->functions.items[0];
    const ir_stmt *loop = kernel->body.items[5];
    visits v = {""};
    ir_visit_uses(loop, note_var, &v);
    assert_string_equal(v.names, "nranks ");
    ir_visit_uses(loop->body.items[0], note_var, &v);
    assert_string_equal(v.names, "nranks peer my_rank ");
    ir_visit_uses(loop->body.items[0]->body.items[0], note_var, &v);
    assert_string_equal(v.names, "nranks peer my_rank signal peer my_rank ");
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, make_arena, drop_arena)
    const struct CMUnitTest tests[] = {
        CASE(division_rounds_down),
        CASE(narrow_integers_wrap),
        CASE(overflow_of_64_bits_stays),
        CASE(shifts_are_bounded),
        CASE(comparisons_give_bool),
        CASE(floats_round_once_to_nearest_even),
        CASE(conversions_fold),
        CASE(neutral_elements_go_and_chains_join),
        CASE(equality_is_structural),
        CASE(static_sizes_do_not_overflow),
        CASE(variables_of_one_name_have_versions),
        CASE(expressions_print_with_their_types),
        CASE(walking_visits_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
