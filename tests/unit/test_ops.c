/* The op table and its type rules, by themselves: parsing of the text columns, lookup, effects,
 * enumerations, and what each rule accepts and refuses. */
#include "base/diag.h"
#include "ops/dtypes.h"
#include "ops/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* ---- the table ---- */

static void test_table_is_well_formed(void **state)
{
    (void)state;
    assert_null(op_table_problem());
    for (int32_t i = 0; i < OP_COUNT; i++) {
        const op_def *op = op_get((op_id)i);
        assert_int_equal(op->id, i);
        assert_non_null(op->rule);
        assert_true(op->on_host || op->on_chip || op->in_core);
        assert_true(strlen(op->doc) > 10);
        /* help() shows the first line alone. */
        assert_true(strcspn(op->doc, "\n") <= 100);
    }
}

/* Rows that share a spelling are forms of one operation, reached from the first. */
static void test_spellings_lead_to_their_rows(void **state)
{
    (void)state;
    for (int32_t i = 0; i < OP_COUNT; i++) {
        const op_def *op = op_get((op_id)i);
        for (const char *const *s = op->spellings; *s != NULL; s++) {
            const op_def *form = op_find(*s);
            while (form != NULL && form != op)
                form = form->next_form;
            assert_ptr_equal(form, op);
            assert_true(op_is_spelled(op, *s));
        }
    }
    assert_false(op_is_spelled(op_find("pl.load"), "pl.loa"));
    const op_def *store = op_find("pld.remote_store");
    assert_int_equal(store->id, OP_REMOTE_STORE);
    assert_int_equal(store->next_form->id, OP_REMOTE_STORE_TENSOR);
    assert_false(op_is_spelled(store->next_form, "pld.tile.remote_store"));
}

static void test_signature(void **state)
{
    (void)state;
    const op_def *load = op_find("pl.tile.load");
    assert_ptr_equal(load, op_get(OP_LOAD));
    assert_string_equal(load->spellings[0], "pl.load");
    assert_int_equal(load->param_count, 6);
    assert_string_equal(load->params[4].default_text, "MemorySpace.Vec");
    assert_string_equal(load->params[0].name, "tensor");
    assert_int_equal(load->params[0].kind, OPERAND_MEMORY);
    assert_int_equal(load->params[1].kind, OPERAND_OFFSETS);
    assert_int_equal(load->params[2].kind, OPERAND_EXTENTS);
    assert_null(load->params[2].default_text);

    const op_def *notify = op_get(OP_NOTIFY);
    int32_t op = op_param_index(notify, "op");
    assert_int_equal(op, 4);
    assert_true(notify->params[op].keyword_only);
    assert_false(notify->params[3].keyword_only);
    assert_int_equal(notify->params[op].kind, OPERAND_ENUM);
    assert_string_equal(notify->params[op].enum_name, "NotifyOp");
    assert_int_equal(op_param_index(notify, "signal"), -1);

    const op_def *reload = op_get(OP_REMOTE_LOAD);
    assert_string_equal(reload->params[4].default_text, "None");
    assert_int_equal(op_get(OP_ADD)->params[1].kind, OPERAND_TILE_OR_SCALAR);
    assert_int_equal(op_get(OP_ALLOC_WINDOW)->params[0].kind, OPERAND_INT_OR_SHAPE);
    assert_int_equal(op_get(OP_WORLD_SIZE)->param_count, 0);
}

static void test_effects(void **state)
{
    (void)state;
    const op_def *store = op_get(OP_STORE);
    assert_int_equal(store->result_param, 2);
    assert_true(op_writes(store, 2));
    assert_false(op_reads(store, 2));
    assert_false(op_writes(store, 0));
    assert_false(op_reads(op_get(OP_NOTIFY), 0));
    assert_true(op_writes(op_get(OP_NOTIFY), 0));
    assert_int_equal(op_get(OP_NOTIFY)->notifies, 1);
    assert_int_equal(op_get(OP_WAIT)->awaits, 1);
    assert_int_equal(op_get(OP_DEFER_WAIT)->awaits, 1);
    assert_int_equal(op_get(OP_LOAD)->awaits, 0);
    assert_true(op_reads(op_get(OP_WAIT), 0));
    assert_false(op_writes(op_get(OP_WAIT), 0));
    assert_int_equal(op_get(OP_LOAD)->result_param, -1);
}

static void test_planes(void **state)
{
    (void)state;
    assert_true(op_allowed(op_get(OP_WORLD_SIZE), PLD_PLANE_HOST));
    assert_false(op_allowed(op_get(OP_WORLD_SIZE), PLD_PLANE_CORE));
    assert_true(op_allowed(op_get(OP_LOAD), PLD_PLANE_CORE));
    assert_false(op_allowed(op_get(OP_LOAD), PLD_PLANE_CHIP));
    assert_true(op_allowed(op_get(OP_CAST), PLD_PLANE_CHIP));
    assert_true(op_is_elementwise(op_get(OP_ADD)));
    assert_false(op_is_elementwise(op_get(OP_LOAD)));
}

static void test_nearest(void **state)
{
    (void)state;
    assert_null(op_find("pl.laod"));
    assert_string_equal(op_nearest("pl.laod"), "pl.load");
    assert_string_equal(op_nearest("pl.remote_load"), "pld.remote_load");
    assert_string_equal(op_nearest("pld.notify"), "pld.system.notify");
    assert_string_equal(op_nearest("pld.system.notfy"), "pld.system.notify");
    assert_null(op_nearest("pl.zzzzzzzzzzzzz"));
    const char *const names[] = {"alpha", NULL, "beta"};
    assert_string_equal(nearest_word("aplha", names, 3), "alpha");
    assert_string_equal(nearest_word("bet", names, 3), "beta");
    assert_null(nearest_word("x", names, 3));
    assert_null(nearest_word("", names, 3));
}

static void test_names_to_come(void **state)
{
    (void)state;
    const char *const later[] = {"pl.gather",       "pl.tile.gather", "pl.tensor.scatter",
                                 "pl.system.fence", "pl.prefetch",    "pl.HF8",
                                 "pl.system.bar_v", "pl.create_l1"};
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        assert_true(op_is_later(later[i]));
    /* What is there already, in other places only, or nowhere. */
    const char *const others[] = {"pl.load", "pl.tile.add", "pl.allreduce", "pld.exp",
                                  "exp",     "pl.",         "pl.ex",        "pl.exps",
                                  "",        "pl.add sub"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(op_is_later(others[i]));
}

static void test_enums(void **state)
{
    (void)state;
    int32_t count = 0;
    assert_non_null(enum_members(&count));
    assert_true(count >= 4);
    assert_int_equal(enum_find("NotifyOp", "Set")->value, PLD_SET);
    assert_int_equal(enum_find("WaitCmp", "Ge")->value, PLD_GE);
    assert_null(enum_find("NotifyOp", "Ge"));
    assert_string_equal(enum_member_name("WaitCmp", 0), "Eq");
    assert_null(enum_member_name("WaitCmp", 7));
}

static void test_dtypes(void **state)
{
    (void)state;
    assert_true(dtype_holds(PYPTO_INT8, -128));
    assert_false(dtype_holds(PYPTO_INT8, 128));
    assert_true(dtype_holds(PYPTO_UINT32, 4294967295));
    assert_false(dtype_holds(PYPTO_UINT32, -1));
    assert_true(dtype_holds(PYPTO_INDEX, INT64_MIN));
    assert_true(dtype_holds(PYPTO_UINT64, INT64_MAX));
    assert_false(dtype_holds(PYPTO_FP32, 0));
    assert_true(dtype_widens(PYPTO_INT32, PYPTO_INDEX));
    assert_true(dtype_widens(PYPTO_UINT8, PYPTO_INT16));
    assert_false(dtype_widens(PYPTO_UINT16, PYPTO_INT16));
    assert_false(dtype_widens(PYPTO_INT8, PYPTO_UINT16));
    assert_true(dtype_widens(PYPTO_BF16, PYPTO_FP32));
    assert_false(dtype_widens(PYPTO_BF16, PYPTO_FP16));
    assert_false(dtype_same_category(PYPTO_INT32, PYPTO_FP32));
    assert_string_equal(dtype_spelling(PYPTO_BF16), "BF16");
}

/* ---- rules ---- */

typedef struct fixture {
    arena *a;
    ir_program *p;
    ir_function *f;
    ir_var *dim;
} fixture;

static jmp_buf memory_exhausted; /* set by main, which outlives every arena */

static int set_up(void **state)
{
    arena *a = arena_create();
    if (a == NULL)
        return -1;
    arena_set_recovery(a, &memory_exhausted);
    fixture *x = arena_new(a, fixture);
    x->a = a;
    x->p = ir_program_create(a, "p");
    x->f = ir_function_create(x->p, "f", PLD_PLANE_CORE, SPAN_NONE);
    x->dim = ir_var_create(x->p, x->f, IR_VAR_DIM, "NR", ir_scalar_type(PYPTO_INDEX), SPAN_NONE);
    *state = x;
    return 0;
}

static int tear_down(void **state)
{
    fixture *x = *state;
    arena_destroy(x->a);
    return 0;
}

/* rows < 0: the dynamic dimension. */
static ir_operand memory(fixture *x, ir_kind kind, pypto_dtype dtype, int64_t rows, int64_t columns)
{
    ir_type type = {.kind = kind, .dtype = dtype, .ndim = 2};
    type.shape[0] = rows < 0 ? ir_ref(x->a, x->dim) : ir_int(x->a, rows);
    type.shape[1] = ir_int(x->a, columns);
    ir_var *var = ir_var_create(x->p, x->f, kind == IR_TILE ? IR_VAR_LOCAL : IR_VAR_PARAM, "m",
                                type, SPAN_NONE);
    return (ir_operand){.kind = IR_OPERAND_VAR, .var = var};
}

static ir_operand plain(fixture *x, ir_kind kind)
{
    ir_type type = {.kind = kind};
    ir_var *var = ir_var_create(x->p, x->f, IR_VAR_LOCAL, "h", type, SPAN_NONE);
    return (ir_operand){.kind = IR_OPERAND_VAR, .var = var};
}

static ir_operand expr(const ir_expr *e)
{
    return (ir_operand){.kind = IR_OPERAND_EXPR, .expr = e};
}

static ir_operand number(fixture *x, int64_t value)
{
    return expr(ir_int(x->a, value));
}

static ir_operand list2(fixture *x, const ir_expr *first, const ir_expr *second)
{
    const ir_expr **exprs = arena_array(x->a, const ir_expr *, 2);
    exprs[0] = first;
    exprs[1] = second;
    return (ir_operand){.kind = IR_OPERAND_LIST, .exprs = exprs, .count = second == NULL ? 1 : 2};
}

static ir_operand pair(fixture *x, int64_t first, int64_t second)
{
    return list2(x, ir_int(x->a, first), ir_int(x->a, second));
}

static ir_operand dtype_operand(pypto_dtype dtype)
{
    return (ir_operand){.kind = IR_OPERAND_DTYPE, .dtype = dtype};
}

static ir_operand enum_operand(int64_t value)
{
    return (ir_operand){.kind = IR_OPERAND_ENUM, .number = value};
}

#define OPERANDS(...) ((ir_operand[OP_MAX_PARAMS]){__VA_ARGS__})

static ir_type accepts(fixture *x, op_id id, ir_operand *operands)
{
    pypto_status errors = STATUS_OK;
    op_call call = {x->p, x->f, op_get(id), operands, SPAN_NONE, &errors};
    ir_type result;
    bool ok = op_check(&call, &result);
    if (!ok)
        print_message("%s\n", errors.diagnostics->message);
    pypto_status_clear(&errors);
    assert_true(ok);
    return result;
}

static void refuses(fixture *x, op_id id, ir_operand *operands, diag_code code, const char *words)
{
    pypto_status errors = STATUS_OK;
    op_call call = {x->p, x->f, op_get(id), operands, SPAN_NONE, &errors};
    ir_type result;
    assert_false(op_check(&call, &result));
    assert_non_null(errors.diagnostics);
    assert_null(errors.diagnostics->next);
    assert_string_equal(errors.diagnostics->code, diag_lookup(code)->code);
    if (strstr(errors.diagnostics->message, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", errors.diagnostics->message, words);
    pypto_status_clear(&errors);
}

static void test_load(void **state)
{
    fixture *x = *state;
    ir_operand tensor = memory(x, IR_TENSOR, PYPTO_FP32, 4, 8);
    ir_operand dynamic = memory(x, IR_WINDOW, PYPTO_FP32, -1, 8);
    ir_type tile = accepts(x, OP_LOAD, OPERANDS(tensor, pair(x, 1, 0), pair(x, 3, 8)));
    assert_int_equal(tile.kind, IR_TILE);
    assert_int_equal(ir_static_elems(&tile), 24);
    (void)accepts(x, OP_LOAD, OPERANDS(dynamic, pair(x, 100, 0), pair(x, 3, 8)));
    const ir_expr *somewhere = ir_ref(x->a, x->dim);
    (void)accepts(x, OP_LOAD,
                  OPERANDS(tensor, list2(x, somewhere, ir_int(x->a, 0)), pair(x, 4, 8)));

    refuses(x, OP_LOAD, OPERANDS(tensor, pair(x, 2, 0), pair(x, 3, 8)), DIAG_OUT_OF_BOUNDS,
            "reads past the end of dimension 0");
    refuses(x, OP_LOAD, OPERANDS(dynamic, pair(x, 0, 1), pair(x, 3, 8)), DIAG_OUT_OF_BOUNDS,
            "reads past the end of dimension 1");
    refuses(x, OP_LOAD, OPERANDS(dynamic, pair(x, 0, -1), pair(x, 3, 8)), DIAG_OUT_OF_BOUNDS,
            "must be non-negative");
    refuses(x, OP_LOAD, OPERANDS(tensor, list2(x, somewhere, ir_int(x->a, 0)), pair(x, 5, 8)),
            DIAG_OUT_OF_BOUNDS, "dimension 0");
    refuses(x, OP_LOAD, OPERANDS(tensor, pair(x, INT64_MAX, 0), pair(x, 3, 8)), DIAG_OUT_OF_BOUNDS,
            "dimension 0");
    refuses(x, OP_LOAD, OPERANDS(tensor, list2(x, somewhere, NULL), pair(x, 3, 8)),
            DIAG_SHAPE_MISMATCH, "offsets rank is 1");
    refuses(x, OP_LOAD, OPERANDS(tensor, pair(x, 0, 0), list2(x, ir_int(x->a, 4), NULL)),
            DIAG_SHAPE_MISMATCH, "shapes rank is 1");
    refuses(x, OP_LOAD, OPERANDS(tensor, pair(x, 0, 0), list2(x, ir_int(x->a, 4), somewhere)),
            DIAG_NOT_CONSTANT, "shape 1 must be a constant");
    refuses(x, OP_LOAD, OPERANDS(tensor, pair(x, 0, 0), pair(x, 4, 0)), DIAG_SHAPE_MISMATCH,
            "must be positive");
    refuses(x, OP_LOAD, OPERANDS(tensor, number(x, 0), pair(x, 4, 8)), DIAG_KIND_MISMATCH,
            "offsets must be a list or tuple");
    refuses(x, OP_LOAD, OPERANDS(tensor, list2(x, ir_float(x->a, 1.0), somewhere), pair(x, 4, 8)),
            DIAG_BAD_INDEX, "offset 0 must be an integer or index scalar");
    refuses(x, OP_LOAD, OPERANDS(plain(x, IR_COMM), pair(x, 0, 0), pair(x, 4, 8)),
            DIAG_KIND_MISMATCH, "tensor expected Tensor or DistributedTensor, got CommCtx");
}

static void test_store(void **state)
{
    fixture *x = *state;
    ir_operand tensor = memory(x, IR_TENSOR, PYPTO_FP32, 4, 8);
    ir_operand tile = memory(x, IR_TILE, PYPTO_FP32, 2, 8);
    ir_type result = accepts(x, OP_STORE, OPERANDS(tile, pair(x, 2, 0), tensor));
    assert_int_equal(result.kind, IR_TENSOR);
    ir_operand row = memory(x, IR_TILE, PYPTO_FP32, 8, 1);
    row.var->type.ndim = 1;
    (void)accepts(x, OP_STORE, OPERANDS(row, pair(x, 3, 0), tensor));
    refuses(x, OP_STORE, OPERANDS(tile, pair(x, 3, 0), tensor), DIAG_OUT_OF_BOUNDS,
            "writes past the end of dimension 0");
    ir_operand wrong = memory(x, IR_TILE, PYPTO_INT32, 2, 8);
    refuses(x, OP_STORE, OPERANDS(wrong, pair(x, 0, 0), tensor), DIAG_DTYPE_MISMATCH, "int32");
    ir_operand deep = memory(x, IR_TILE, PYPTO_FP32, 2, 8);
    deep.var->type.ndim = 3;
    deep.var->type.shape[2] = ir_int(x->a, 1);
    refuses(x, OP_STORE, OPERANDS(deep, pair(x, 0, 0), tensor), DIAG_SHAPE_MISMATCH, "rank 3");
    refuses(x, OP_STORE, OPERANDS(tensor, pair(x, 0, 0), tensor), DIAG_KIND_MISMATCH,
            "tile expected Tile, got Tensor");
}

static void test_signals(void **state)
{
    fixture *x = *state;
    ir_operand signal = memory(x, IR_WINDOW, PYPTO_INT32, -1, 1);
    ir_operand add = enum_operand(PLD_ATOMIC_ADD);
    ir_operand peer = number(x, 1);
    ir_operand cell = pair(x, 0, 0);
    ir_operand one = number(x, 1);
    (void)accepts(x, OP_NOTIFY, OPERANDS(signal, peer, cell, one, add));
    (void)accepts(x, OP_NOTIFY, OPERANDS(signal, peer, cell, number(x, 0), enum_operand(PLD_SET)));
    (void)accepts(x, OP_WAIT, OPERANDS(signal, cell, one, enum_operand(PLD_GE)));

    refuses(x, OP_NOTIFY, OPERANDS(signal, peer, cell, one, enum_operand(2)), DIAG_KIND_MISMATCH,
            "must be NotifyOp.AtomicAdd or NotifyOp.Set");
    refuses(x, OP_WAIT, OPERANDS(signal, cell, one, one), DIAG_KIND_MISMATCH,
            "must be WaitCmp.Eq or WaitCmp.Ge");
    refuses(x, OP_NOTIFY, OPERANDS(signal, cell, cell, one, add), DIAG_KIND_MISMATCH,
            "peer must be a scalar");
    refuses(x, OP_NOTIFY, OPERANDS(signal, peer, cell, cell, add), DIAG_KIND_MISMATCH,
            "value must be a scalar");
    refuses(x, OP_WAIT, OPERANDS(signal, cell, cell, enum_operand(PLD_GE)), DIAG_KIND_MISMATCH,
            "expected must be a scalar");
    refuses(x, OP_NOTIFY, OPERANDS(signal, expr(ir_float(x->a, 1.0)), cell, one, add),
            DIAG_KIND_MISMATCH, "peer must be an integer or index scalar");
    refuses(x, OP_NOTIFY, OPERANDS(signal, number(x, -1), cell, one, add), DIAG_OUT_OF_BOUNDS,
            "peer -1 does not exist");
    refuses(x, OP_NOTIFY, OPERANDS(signal, peer, cell, number(x, 1LL << 40), add), DIAG_BAD_SCALAR,
            "does not fit int32");
    refuses(x, OP_NOTIFY, OPERANDS(signal, peer, pair(x, 0, 1), one, add), DIAG_OUT_OF_BOUNDS,
            "dimension 1");
    refuses(x, OP_WAIT,
            OPERANDS(signal, list2(x, ir_int(x->a, 0), NULL), one, enum_operand(PLD_GE)),
            DIAG_SHAPE_MISMATCH, "offsets rank");
    ir_operand floats = memory(x, IR_WINDOW, PYPTO_FP32, 2, 1);
    refuses(x, OP_WAIT, OPERANDS(floats, cell, one, enum_operand(PLD_GE)), DIAG_DTYPE_MISMATCH,
            "signal dtype must be INT32");
    ir_operand tensor = memory(x, IR_TENSOR, PYPTO_INT32, 2, 1);
    refuses(x, OP_NOTIFY, OPERANDS(tensor, peer, cell, one, add), DIAG_KIND_MISMATCH,
            "must be a DistributedTensor, got Tensor");
}

static void test_identity(void **state)
{
    fixture *x = *state;
    ir_operand window = memory(x, IR_WINDOW, PYPTO_FP32, 2, 8);
    assert_int_equal(accepts(x, OP_GET_COMM_CTX, OPERANDS(window)).kind, IR_COMM);
    assert_int_equal(accepts(x, OP_RANK, OPERANDS(plain(x, IR_COMM))).dtype, PYPTO_INT32);
    refuses(x, OP_NRANKS, OPERANDS(window), DIAG_KIND_MISMATCH, "expected CommCtx");
    ir_operand tensor = memory(x, IR_TENSOR, PYPTO_FP32, 2, 8);
    refuses(x, OP_GET_COMM_CTX, OPERANDS(tensor), DIAG_KIND_MISMATCH, "DistributedTensor");
}

static void test_elementwise(void **state)
{
    fixture *x = *state;
    ir_operand floats = memory(x, IR_TILE, PYPTO_FP32, 2, 8);
    ir_operand ints = memory(x, IR_TILE, PYPTO_INT8, 2, 8);
    ir_operand other = memory(x, IR_TILE, PYPTO_FP32, 2, 4);
    ir_type result = accepts(x, OP_ADD, OPERANDS(floats, floats));
    assert_true(ir_type_equal(&result, &floats.var->type));

    ir_operand *with_literal = OPERANDS(floats, number(x, 3));
    (void)accepts(x, OP_MUL, with_literal);
    assert_int_equal(with_literal[1].expr->kind, IR_FLOAT);
    assert_true(with_literal[1].expr->real == 3.0);
    ir_operand *small = OPERANDS(ints, number(x, 100));
    (void)accepts(x, OP_SUB, small);
    assert_int_equal(small[1].expr->dtype, PYPTO_INT8);

    refuses(x, OP_SUB, OPERANDS(ints, number(x, 300)), DIAG_BAD_SCALAR, "does not fit");
    refuses(x, OP_SUB, OPERANDS(ints, expr(ir_float(x->a, 1.5))), DIAG_BAD_SCALAR,
            "same numeric dtype category");
    refuses(x, OP_ADD, OPERANDS(floats, expr(ir_ref(x->a, x->dim))), DIAG_BAD_SCALAR, "index");
    refuses(x, OP_ADD, OPERANDS(floats, expr(ir_bool(x->a, true))), DIAG_BAD_SCALAR, "bool");
    refuses(x, OP_ADD, OPERANDS(floats, ints), DIAG_DTYPE_MISMATCH, "fp32 and int8");
    refuses(x, OP_ADD, OPERANDS(floats, other), DIAG_SHAPE_MISMATCH, "shape mismatch");
    refuses(x, OP_ADD, OPERANDS(number(x, 1), floats), DIAG_KIND_MISMATCH,
            "lhs expected Tile, got Scalar");
    ir_operand tensor = memory(x, IR_TENSOR, PYPTO_FP32, 2, 8);
    refuses(x, OP_ADD, OPERANDS(floats, tensor), DIAG_KIND_MISMATCH, "got Tensor");
}

static void test_alloc_window(void **state)
{
    fixture *x = *state;
    ir_operand none = {.kind = IR_OPERAND_NONE};
    ir_operand *shape = OPERANDS(pair(x, 4, 8), dtype_operand(PYPTO_FP32));
    assert_int_equal(accepts(x, OP_ALLOC_WINDOW, shape).kind, IR_BUFFER);
    int64_t bytes = 0;
    assert_true(ir_is_const_int(shape[0].expr, &bytes));
    assert_int_equal(bytes, 128);
    assert_int_equal(shape[1].kind, IR_OPERAND_NONE);
    /* What the rule made of it is accepted again. */
    (void)accepts(x, OP_ALLOC_WINDOW, shape);
    ir_operand *dynamic =
        OPERANDS(list2(x, ir_ref(x->a, x->dim), ir_int(x->a, 3)), dtype_operand(PYPTO_INT32));
    (void)accepts(x, OP_ALLOC_WINDOW, dynamic);
    text printed = {.a = x->a};
    ir_print_expr(&printed, dynamic[0].expr);
    assert_string_equal(printed.bytes, "(NR * 12)");

    refuses(x, OP_ALLOC_WINDOW, OPERANDS(number(x, 4), dtype_operand(PYPTO_FP32)),
            DIAG_BAD_WINDOW_ALLOCATION, "dtype= is only valid when the first argument is a shape");
    refuses(x, OP_ALLOC_WINDOW, OPERANDS(pair(x, 4, 8), none), DIAG_BAD_WINDOW_ALLOCATION,
            "requires dtype=");
    refuses(x, OP_ALLOC_WINDOW,
            OPERANDS((ir_operand){.kind = IR_OPERAND_LIST}, dtype_operand(PYPTO_FP32)),
            DIAG_BAD_WINDOW_ALLOCATION, "shape must be non-empty");
    refuses(x, OP_ALLOC_WINDOW, OPERANDS(pair(x, 4, 0), dtype_operand(PYPTO_FP32)),
            DIAG_BAD_WINDOW_ALLOCATION, "all dimensions must be positive");
    refuses(x, OP_ALLOC_WINDOW, OPERANDS(number(x, 0), none), DIAG_BAD_WINDOW_ALLOCATION,
            "must be positive");
    refuses(x, OP_ALLOC_WINDOW, OPERANDS(pair(x, INT64_MAX / 2, 8), dtype_operand(PYPTO_FP32)),
            DIAG_BAD_WINDOW_ALLOCATION, "does not fit 64 bits");
}

static void test_window(void **state)
{
    fixture *x = *state;
    ir_operand buffer = plain(x, IR_BUFFER);
    ir_stmt *allocation = ir_stmt_create(x->p, &x->f->body, IR_DO, SPAN_NONE);
    allocation->op_def = op_get(OP_ALLOC_WINDOW);
    allocation->target = buffer.var;
    allocation->operands = OPERANDS(number(x, 128));
    ir_operand fp32 = dtype_operand(PYPTO_FP32);
    ir_type view = accepts(x, OP_WINDOW, OPERANDS(buffer, pair(x, 4, 8), fp32));
    assert_int_equal(view.kind, IR_WINDOW);
    assert_int_equal(ir_static_elems(&view), 32);
    (void)accepts(x, OP_WINDOW,
                  OPERANDS(buffer, list2(x, ir_ref(x->a, x->dim), ir_int(x->a, 8)), fp32));
    refuses(x, OP_WINDOW, OPERANDS(buffer, pair(x, 4, 9), fp32), DIAG_WINDOW_TOO_LARGE,
            "144 bytes is larger than its buffer 'h' of 128 bytes");
    refuses(x, OP_WINDOW, OPERANDS(buffer, pair(x, 4, -1), fp32), DIAG_SHAPE_MISMATCH,
            "must be positive");
    refuses(x, OP_WINDOW, OPERANDS(plain(x, IR_COMM), pair(x, 4, 8), fp32), DIAG_KIND_MISMATCH,
            "Ptr handle");
}

static void test_views(void **state)
{
    fixture *x = *state;
    ir_operand tensor = memory(x, IR_TENSOR, PYPTO_FP32, 4, 8);
    ir_operand first = list2(x, ir_int(x->a, 3), NULL);
    ir_type row = accepts(x, OP_SUBSCRIPT, OPERANDS(tensor, first));
    assert_int_equal(row.ndim, 1);
    refuses(x, OP_SUBSCRIPT, OPERANDS(tensor, list2(x, ir_int(x->a, 4), NULL)), DIAG_OUT_OF_BOUNDS,
            "index 4 is outside dimension 0, which has 0 to 3");
    refuses(x, OP_SUBSCRIPT, OPERANDS(tensor, list2(x, ir_int(x->a, -1), NULL)), DIAG_OUT_OF_BOUNDS,
            "index -1");
    refuses(x, OP_SUBSCRIPT, OPERANDS(tensor, pair(x, 0, 0)), DIAG_BAD_INDEX, "read an element");
    ir_operand three = pair(x, 0, 0);
    three.exprs = (const ir_expr *const[]){three.exprs[0], three.exprs[0], three.exprs[0]};
    three.count = 3;
    refuses(x, OP_SUBSCRIPT, OPERANDS(tensor, three), DIAG_BAD_INDEX,
            "3 indices but the tensor is 2D");
    ir_type slice = accepts(x, OP_SLICE, OPERANDS(tensor, pair(x, 1, 8), pair(x, 3, 0)));
    assert_int_equal(slice.kind, IR_TENSOR);
    assert_int_equal(slice.ndim, 2);
    refuses(x, OP_SLICE, OPERANDS(tensor, pair(x, 2, 8), pair(x, 3, 0)), DIAG_OUT_OF_BOUNDS,
            "past the end of dimension 0");
}

static void test_scalars(void **state)
{
    fixture *x = *state;
    assert_int_equal(
        accepts(x, OP_CONST, OPERANDS(number(x, -4), dtype_operand(PYPTO_INT32))).dtype,
        PYPTO_INT32);
    refuses(x, OP_CONST, OPERANDS(number(x, 300), dtype_operand(PYPTO_INT8)), DIAG_BAD_SCALAR,
            "does not fit int8");
    refuses(x, OP_CONST, OPERANDS(expr(ir_ref(x->a, x->dim)), dtype_operand(PYPTO_INT8)),
            DIAG_NOT_CONSTANT, "numeric literal");
    ir_operand varies = expr(ir_ref(x->a, x->dim));
    (void)accepts(x, OP_CAST, OPERANDS(varies, dtype_operand(PYPTO_FP32)));
    refuses(x, OP_CAST, OPERANDS(varies, dtype_operand(PYPTO_BOOL)), DIAG_BAD_SCALAR, "bool");
    refuses(x, OP_CAST, OPERANDS(varies, number(x, 1)), DIAG_KIND_MISMATCH, "a dtype");
    (void)accepts(x, OP_WORLD_SIZE, OPERANDS(number(x, 0)));
}

#define RULE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_is_well_formed),
        cmocka_unit_test(test_spellings_lead_to_their_rows),
        cmocka_unit_test(test_signature),
        cmocka_unit_test(test_effects),
        cmocka_unit_test(test_planes),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_names_to_come),
        cmocka_unit_test(test_enums),
        cmocka_unit_test(test_dtypes),
        RULE_TEST(test_load),
        RULE_TEST(test_store),
        RULE_TEST(test_signals),
        RULE_TEST(test_identity),
        RULE_TEST(test_elementwise),
        RULE_TEST(test_alloc_window),
        RULE_TEST(test_window),
        RULE_TEST(test_views),
        RULE_TEST(test_scalars),
    };
    if (setjmp(memory_exhausted) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
