/* The IR of the quick start, built by hand with the builder as the front end would: what the tests
 * of IR, passes, emitter and compile driver share. Header-only, because helpers in this folder are
 * linked into tests that do not see hidden functions. */
#ifndef TESTS_SEED_PROGRAM_H
#define TESTS_SEED_PROGRAM_H

#include "ir/ir.h"
#include "ops/ops.h"

#define SEED_FILE "/home/user/script.py"

static inline pypto_span seed_span(int32_t line)
{
    return (pypto_span){SEED_FILE, line, 4, line, 40};
}

/* ---- short forms ---- */

static inline ir_type seed_memory(ir_kind kind, pypto_dtype dtype, int32_t ndim,
                                  const ir_expr *const *shape)
{
    ir_type type = {.kind = kind, .dtype = dtype, .ndim = ndim};
    for (int32_t i = 0; i < ndim; i++)
        type.shape[i] = shape[i];
    return type;
}

static inline ir_operand operand_var(ir_var *var)
{
    return (ir_operand){.kind = IR_OPERAND_VAR, .var = var};
}

static inline ir_operand operand_expr(const ir_expr *expr)
{
    return (ir_operand){.kind = IR_OPERAND_EXPR, .expr = expr};
}

static inline ir_operand operand_list(arena *a, int32_t count, const ir_expr *x, const ir_expr *y)
{
    const ir_expr **exprs = arena_array(a, const ir_expr *, 2);
    exprs[0] = x;
    exprs[1] = y;
    return (ir_operand){.kind = IR_OPERAND_LIST, .exprs = exprs, .count = count};
}

static inline ir_operand operand_dtype(pypto_dtype dtype)
{
    return (ir_operand){.kind = IR_OPERAND_DTYPE, .dtype = dtype};
}

static inline ir_operand operand_enum(int64_t number)
{
    return (ir_operand){.kind = IR_OPERAND_ENUM, .number = number};
}

/* target may be NULL. */
static inline ir_stmt *seed_do(ir_program *p, ir_block *into, int32_t line, ir_var *target,
                               op_id id, int32_t count, const ir_operand *operands)
{
    ir_stmt *s = ir_stmt_create(p, into, IR_DO, seed_span(line));
    s->target = target;
    s->op_def = op_get(id);
    s->operands = arena_array(p->a, ir_operand, OP_MAX_PARAMS); /* the rest: not given */
    s->operand_count = s->op_def->param_count;
    for (int32_t i = 0; i < count; i++)
        s->operands[i] = operands[i];
    return s;
}
#define DO(p, into, line, target, id, ...)                                       \
    seed_do((p), (into), (line), (target), (id),                                 \
            (int32_t)(sizeof((ir_operand[]){__VA_ARGS__}) / sizeof(ir_operand)), \
            (ir_operand[]){__VA_ARGS__})

static inline ir_stmt *seed_assign(ir_program *p, ir_block *into, int32_t line, ir_var *target,
                                   const ir_expr *value)
{
    ir_stmt *s = ir_stmt_create(p, into, IR_ASSIGN, seed_span(line));
    s->target = target;
    s->value = value;
    return s;
}

static inline ir_stmt *seed_alias(ir_program *p, ir_block *into, int32_t line, ir_var *target,
                                  ir_var *source)
{
    ir_stmt *s = ir_stmt_create(p, into, IR_ASSIGN, seed_span(line));
    s->target = target;
    s->source = source;
    return s;
}

static inline ir_stmt *seed_for(ir_program *p, ir_block *into, int32_t line, ir_var *var,
                                const ir_expr *stop)
{
    ir_stmt *s = ir_stmt_create(p, into, IR_FOR, seed_span(line));
    s->target = var;
    s->start = ir_int(p->a, 0);
    s->stop = stop;
    s->step = ir_int(p->a, 1);
    return s;
}

static inline ir_stmt *seed_if(ir_program *p, ir_block *into, int32_t line,
                               const ir_expr *condition)
{
    ir_stmt *s = ir_stmt_create(p, into, IR_IF, seed_span(line));
    s->value = condition;
    return s;
}

static inline ir_var *seed_local(ir_program *p, ir_function *f, const char *name, ir_type type,
                                 int32_t line)
{
    return ir_var_create(p, f, IR_VAR_LOCAL, name, type, seed_span(line));
}

static inline const ir_expr *seed_pure(ir_program *p, op_id id, ir_var *operand, pypto_dtype dtype)
{
    ir_operand *operands = arena_new(p->a, ir_operand);
    if (operand != NULL)
        *operands = operand_var(operand);
    return ir_op(p->a, op_get(id), operands, operand != NULL ? 1 : 0, dtype, seed_span(1));
}

static inline const ir_expr *seed_ne(arena *a, ir_var *x, ir_var *y)
{
    return ir_binary(a, IR_NE, ir_ref(a, x), ir_ref(a, y), PYPTO_BOOL, seed_span(1));
}

/* ---- the program ---- */

typedef struct seed_params {
    ir_var *inp;
    ir_var *out;
    ir_var *data;
    ir_var *signal;
    ir_var *nr;
} seed_params;

/* The four parameters that kernel and wrapper share. */
static inline seed_params seed_device_params(ir_program *p, ir_function *f, int64_t size,
                                             pypto_dtype dtype, int32_t line)
{
    arena *a = p->a;
    seed_params v;
    const ir_expr *row[] = {ir_int(a, 1), ir_int(a, size)};
    v.nr = NULL;
    v.inp = ir_var_create(p, f, IR_VAR_PARAM, "inp", seed_memory(IR_TENSOR, dtype, 2, row),
                          seed_span(line + 1));
    v.out = ir_var_create(p, f, IR_VAR_PARAM, "out", seed_memory(IR_TENSOR, dtype, 2, row),
                          seed_span(line + 2));
    v.data = ir_var_create(p, f, IR_VAR_PARAM, "data", seed_memory(IR_WINDOW, dtype, 2, row),
                           seed_span(line + 3));
    v.nr = ir_var_create(p, f, IR_VAR_DIM, "NR", ir_scalar_type(PYPTO_INDEX), seed_span(line + 4));
    const ir_expr *cells[] = {ir_ref(a, v.nr), ir_int(a, 1)};
    v.signal = ir_var_create(p, f, IR_VAR_PARAM, "signal",
                             seed_memory(IR_WINDOW, PYPTO_INT32, 2, cells), seed_span(line + 4));
    v.out->direction = PLD_OUT;
    v.data->direction = PLD_INOUT;
    v.signal->direction = PLD_INOUT;
    ir_dim dim = {.var = v.nr, .param = 3, .scale = 1};
    vec_push(a, &f->dims, dim);
    vec_push(a, &f->results, v.out);
    return v;
}

static inline ir_function *seed_kernel(ir_program *p, int64_t size, pypto_dtype dtype)
{
    arena *a = p->a;
    ir_function *f = ir_function_create(p, "reduce_step", PLD_PLANE_CORE, seed_span(8));
    seed_params v = seed_device_params(p, f, size, dtype, 8);
    const ir_expr *row[] = {ir_int(a, 1), ir_int(a, size)};
    ir_type tile = seed_memory(IR_TILE, dtype, 2, row);
    ir_operand origin = operand_list(a, 2, ir_int(a, 0), ir_int(a, 0));
    ir_operand whole = operand_list(a, 2, ir_int(a, 1), ir_int(a, size));
    const ir_expr *one = ir_int_of(a, 1, PYPTO_INT32);

    ir_var *ctx = seed_local(p, f, "ctx", (ir_type){.kind = IR_COMM}, 14);
    ir_var *my_rank = seed_local(p, f, "my_rank", ir_scalar_type(PYPTO_INT32), 15);
    ir_var *nranks = seed_local(p, f, "nranks", ir_scalar_type(PYPTO_INT32), 16);
    ir_var *local = seed_local(p, f, "local", tile, 19);
    ir_var *peer =
        ir_var_create(p, f, IR_VAR_LOOP, "peer", ir_scalar_type(PYPTO_INDEX), seed_span(23));
    ir_var *src =
        ir_var_create(p, f, IR_VAR_LOOP, "src", ir_scalar_type(PYPTO_INDEX), seed_span(29));
    ir_var *acc = seed_local(p, f, "acc", tile, 37);
    ir_var *other =
        ir_var_create(p, f, IR_VAR_LOOP, "peer", ir_scalar_type(PYPTO_INDEX), seed_span(38));
    ir_var *peer_tile = seed_local(p, f, "peer_tile", tile, 40);

    DO(p, &f->body, 14, ctx, OP_GET_COMM_CTX, operand_var(v.data));
    seed_assign(p, &f->body, 15, my_rank, seed_pure(p, OP_RANK, ctx, PYPTO_INT32));
    seed_assign(p, &f->body, 16, nranks, seed_pure(p, OP_NRANKS, ctx, PYPTO_INT32));
    const ir_expr *ranks = ir_convert(a, ir_ref(a, nranks), PYPTO_INDEX, seed_span(16));
    const ir_expr *me = ir_convert(a, ir_ref(a, my_rank), PYPTO_INDEX, seed_span(16));

    DO(p, &f->body, 19, local, OP_LOAD, operand_var(v.inp), origin, whole);
    DO(p, &f->body, 20, v.data, OP_STORE, operand_var(local), origin, operand_var(v.data));

    ir_stmt *loop = seed_for(p, &f->body, 23, peer, ranks);
    ir_stmt *guard = seed_if(p, &loop->body, 24,
                             ir_binary(a, IR_NE, ir_ref(a, peer), me, PYPTO_BOOL, seed_span(24)));
    DO(p, &guard->body, 25, NULL, OP_NOTIFY, operand_var(v.signal), operand_expr(ir_ref(a, peer)),
       operand_list(a, 2, ir_ref(a, my_rank), ir_int(a, 0)), operand_expr(one), operand_enum(0));
    loop = seed_for(p, &f->body, 29, src, ranks);
    guard = seed_if(p, &loop->body, 30,
                    ir_binary(a, IR_NE, ir_ref(a, src), me, PYPTO_BOOL, seed_span(30)));
    DO(p, &guard->body, 31, NULL, OP_WAIT, operand_var(v.signal),
       operand_list(a, 2, ir_ref(a, src), ir_int(a, 0)), operand_expr(one), operand_enum(1));

    DO(p, &f->body, 37, acc, OP_LOAD, operand_var(v.data), origin, whole);
    loop = seed_for(p, &f->body, 38, other, ranks);
    guard = seed_if(p, &loop->body, 39,
                    ir_binary(a, IR_NE, ir_ref(a, other), me, PYPTO_BOOL, seed_span(39)));
    DO(p, &guard->body, 40, peer_tile, OP_REMOTE_LOAD, operand_var(v.data),
       operand_expr(ir_ref(a, other)), origin, whole);
    DO(p, &guard->body, 43, acc, OP_ADD, operand_var(acc), operand_var(peer_tile));

    DO(p, &f->body, 46, v.out, OP_STORE, operand_var(acc), origin, operand_var(v.out));
    ir_stmt_create(p, &f->body, IR_RETURN, seed_span(46));
    return f;
}

static inline ir_stmt *seed_call(ir_program *p, ir_block *into, int32_t line, ir_function *callee,
                                 int32_t count, ir_var *const *args, const ir_expr *device)
{
    ir_stmt *s = ir_stmt_create(p, into, IR_CALL, seed_span(line));
    s->callee = callee;
    s->operands = arena_array(p->a, ir_operand, count + 1);
    s->operand_count = count;
    for (int32_t i = 0; i < count; i++)
        s->operands[i] = operand_var(args[i]);
    s->device = device;
    return s;
}

static inline ir_function *seed_wrapper(ir_program *p, ir_function *kernel, int64_t size,
                                        pypto_dtype dtype)
{
    ir_function *f = ir_function_create(p, "chip_orch", PLD_PLANE_CHIP, seed_span(49));
    seed_params v = seed_device_params(p, f, size, dtype, 49);
    ir_var *args[] = {v.inp, v.out, v.data, v.signal};
    seed_call(p, &f->body, 56, kernel, 4, args, NULL);
    ir_stmt_create(p, &f->body, IR_RETURN, seed_span(56));
    return f;
}

static inline ir_var *seed_buffer(ir_program *p, ir_function *f, const char *name,
                                  const ir_expr *bytes, int32_t line)
{
    ir_var *var = seed_local(p, f, name, (ir_type){.kind = IR_BUFFER}, line);
    var->buffer = (int32_t)p->buffers.count;
    ir_buffer buffer = {.name = var->name, .span = seed_span(line)};
    vec_push(p->a, &p->buffers, buffer);
    DO(p, &f->body, line, var, OP_ALLOC_WINDOW, operand_expr(bytes),
       (ir_operand){.kind = IR_OPERAND_NONE});
    return var;
}

static inline ir_function *seed_host(ir_program *p, ir_function *wrapper, int64_t size,
                                     pypto_dtype dtype)
{
    arena *a = p->a;
    ir_function *f = ir_function_create(p, "orchestrator", PLD_PLANE_HOST, seed_span(59));
    ir_var *nr = ir_var_create(p, f, IR_VAR_DIM, "NR", ir_scalar_type(PYPTO_INDEX), seed_span(60));
    const ir_expr *cube[] = {ir_ref(a, nr), ir_int(a, 1), ir_int(a, size)};
    const ir_expr *row[] = {ir_int(a, 1), ir_int(a, size)};
    ir_var *inputs = ir_var_create(p, f, IR_VAR_PARAM, "inputs",
                                   seed_memory(IR_TENSOR, dtype, 3, cube), seed_span(60));
    ir_var *outputs = ir_var_create(p, f, IR_VAR_PARAM, "outputs",
                                    seed_memory(IR_TENSOR, dtype, 3, cube), seed_span(61));
    outputs->direction = PLD_OUT;
    ir_dim dim = {.var = nr, .scale = 1};
    vec_push(a, &f->dims, dim);
    vec_push(a, &f->results, outputs);

    const ir_expr *world = seed_pure(p, OP_WORLD_SIZE, NULL, PYPTO_INT64);
    ir_var *data_buf =
        seed_buffer(p, f, "data_buf", ir_int(a, size * pypto_dtype_bytes(dtype)), 63);
    ir_var *signal_buf =
        seed_buffer(p, f, "signal_buf",
                    ir_binary(a, IR_MUL, world, ir_int(a, 4), PYPTO_INT64, seed_span(64)), 64);

    ir_var *r = ir_var_create(p, f, IR_VAR_LOOP, "r", ir_scalar_type(PYPTO_INDEX), seed_span(66));
    const ir_expr *cells[] = {world, ir_int(a, 1)};
    ir_var *data = seed_local(p, f, "data", seed_memory(IR_WINDOW, dtype, 2, row), 67);
    ir_var *signal = seed_local(p, f, "signal", seed_memory(IR_WINDOW, PYPTO_INT32, 2, cells), 68);
    ir_var *in_r = seed_local(p, f, "inputs_r", seed_memory(IR_TENSOR, dtype, 2, row), 69);
    ir_var *out_r = seed_local(p, f, "outputs_r", seed_memory(IR_TENSOR, dtype, 2, row), 69);
    in_r->root = inputs;
    out_r->root = outputs;

    ir_stmt *loop = seed_for(p, &f->body, 66, r, world);
    DO(p, &loop->body, 67, data, OP_WINDOW, operand_var(data_buf),
       operand_list(a, 2, ir_int(a, 1), ir_int(a, size)), operand_dtype(dtype));
    DO(p, &loop->body, 68, signal, OP_WINDOW, operand_var(signal_buf),
       operand_list(a, 2, world, ir_int(a, 1)), operand_dtype(PYPTO_INT32));
    DO(p, &loop->body, 69, in_r, OP_SUBSCRIPT, operand_var(inputs),
       operand_list(a, 1, ir_ref(a, r), NULL));
    DO(p, &loop->body, 69, out_r, OP_SUBSCRIPT, operand_var(outputs),
       operand_list(a, 1, ir_ref(a, r), NULL));
    ir_var *args[] = {in_r, out_r, data, signal};
    seed_call(p, &loop->body, 69, wrapper, 4, args, ir_ref(a, r));
    ir_stmt_create(p, &f->body, IR_RETURN, seed_span(70));
    return f;
}

/* The whole program: SIZE and dtype of the script's constants. */
static inline ir_program *seed_program(arena *a, int64_t size, pypto_dtype dtype)
{
    ir_program *p = ir_program_create(a, "orchestrator");
    ir_function *kernel = seed_kernel(p, size, dtype);
    ir_function *wrapper = seed_wrapper(p, kernel, size, dtype);
    seed_host(p, wrapper, size, dtype);
    return p;
}

#endif
