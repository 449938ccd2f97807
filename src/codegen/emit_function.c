/* One DSL function as one C function: the user's name, natural parameters, the script's statements.
 *
 *     #line 9 "script.py"
 *     static void reduce_step(pld_core *core, const pld_tensor *inp, ...)
 *     {
 *         char *const scratch = pld_scratch(core);
 *         float *const acc = (float *)(scratch + 1024); // tile [1, 256] fp32
 *         const int64_t NR = signal->shape[0];
 *
 *         ...
 *
 * Tiles are pointers off one base with constant distances, and NOT restrict. Tiles that are alive
 * at different times may share bytes, and then two restrict pointers to them in one function would
 * be undefined behaviour, whether or not anything overlaps at any moment. Compilers do not need
 * the promise: they see the distance between any two tiles, and vectorise loops over them without
 * run-time overlap tests. (That memory changes its type from tile to tile is why programs are
 * compiled with -fno-strict-aliasing.)
 *
 * A bound or step of a loop that the body could change, or that computes something, is evaluated
 * once, into a variable of the for statement.
 *
 * A task that was cancelled leaves at its next device call. A loop of a kernel or wrapper that makes
 * none at some turn gets pld_poll at the head of its body; loops over elements do not. */
#include "codegen/emit_internal.h"

static void emit_block(emitter *e, const ir_block *block);

/* ---- signature ---- */

static const char *param_text(emitter *e, const ir_var *param)
{
    const var_info *info = &e->vars[param->id];
    if (param->type.kind == IR_SCALAR)
        return arena_printf(e->a, "%s %s", c_scalar_type(param->type.dtype), param->c_name);
    return arena_printf(e->a, "const pld_tensor *%s",
                        info->param_name != NULL ? info->param_name : param->c_name);
}

static void emit_signature(emitter *e)
{
    const ir_function *f = e->f;
    const char **items = arena_array(e->a, const char *, f->params.count + 1);
    items[0] = f->plane == PLD_PLANE_HOST ? "pld_host *host" : "pld_core *core";
    for (int64_t i = 0; i < f->params.count; i++)
        items[i + 1] = param_text(e, f->params.items[i]);
    emit_list(e, arena_printf(e->a, "static void %s(", f->c_name), items, f->params.count + 1, ")");
}

/* ---- what stands at the top ---- */

/* "tile [1, 256] fp32" */
static const char *tile_comment(emitter *e, const ir_var *tile)
{
    text out = {.a = e->a};
    text_add(&out, tile->type.kind == IR_ARRAY ? "array [" : "tile [");
    for (int32_t i = 0; i < tile->type.ndim; i++) {
        if (i > 0)
            text_add(&out, ", ");
        ir_print_expr(&out, tile->type.shape[i]);
    }
    text_printf(&out, "] %s", pypto_dtype_name(tile->type.dtype));
    return out.bytes;
}

static bool is_emitted_tile(const emitter *e, const ir_var *var)
{
    const var_info *info = &e->vars[var->id];
    return info->storage == STORAGE_TILE && var->scratch_offset >= 0 &&
           (info->reads > 0 || info->definitions > 0);
}

/* A tile that only dropped statements write has no pointer. */
static bool needs_pointer(const emitter *e, const ir_var *var)
{
    return is_emitted_tile(e, var) && (e->vars[var->id].reads > 0 || e->vars[var->id].written);
}

static bool emit_tiles(emitter *e)
{
    bool any = false;
    for (int64_t i = 0; i < e->f->vars.count; i++) {
        const ir_var *var = e->f->vars.items[i];
        if (!needs_pointer(e, var))
            continue;
        if (!any)
            emit_line(e, "char *const scratch = pld_scratch(core);");
        any = true;
        const char *type = c_element_type(var->type.dtype);
        const char *address =
            var->scratch_offset == 0
                ? "scratch"
                : arena_printf(e->a, "(scratch + %lld)", (long long)var->scratch_offset);
        emit_line(e, "%s *const %s = (%s *)%s; /* %s */", type, var->c_name, type, address,
                  tile_comment(e, var));
        if (var->type.ragged)
            emit_line(e, "int64_t %s[%d] = {0};", tile_valid_name(e, var), var->type.ndim);
        if (var->type.ragged && !tile_valid_read(e, var))
            emit_line(e, "(void)%s;", tile_valid_name(e, var));
    }
    return any;
}

const char *param_extent(emitter *e, int64_t param, const char *tensor, int32_t d)
{
    const bool ragged = e->f->params.items[param]->type.ragged;
    return ragged ? arena_printf(e->a, "pld_extents(%s)[%d]", tensor, d)
                  : arena_printf(e->a, "%s->shape[%d]", tensor, d);
}

void emit_dim(emitter *e, const ir_dim *dim, const char *tensor)
{
    const char *name = dim->var->c_name;
    const char *extent = param_extent(e, dim->param, tensor, dim->dim);
    if (dim->offset > 0)
        extent = arena_printf(e->a, "%s - %lld", extent, (long long)dim->offset);
    if (dim->offset < 0)
        extent = arena_printf(e->a, "%s + %llu", extent, 0 - (unsigned long long)dim->offset);
    if (dim->quotient != 0)
        emit_line(e, "const int64_t %s = %s * %lld;", name, extent, (long long)dim->quotient);
    else if (dim->scale == 1)
        emit_line(e, "const int64_t %s = %s;", name, extent);
    else
        emit_line(e,
                  dim->offset != 0 ? "const int64_t %s = (%s) / %lld;"
                                   : "const int64_t %s = %s / %lld;",
                  name, extent, (long long)dim->scale);
}

static const char *tensor_param_name(const emitter *e, const ir_var *param)
{
    const var_info *info = &e->vars[param->id];
    return info->param_name != NULL ? info->param_name : param->c_name;
}

bool calls_library(const ir_stmt *s)
{
    return s->kind == IR_CALL || (s->kind == IR_DO && !op_is_elementwise(s->op_def));
}

/* Whether the C text of the body names the function's context. Everything but arithmetic on tiles
 * and scalars does; so does a device function's loop, which makes a device call at each turn. */
typedef struct context_use {
    const ir_function *f;
    bool used;
} context_use;

static void find_context_use(void *context, ir_stmt *s)
{
    context_use *use = context;
    use->used |= calls_library(s) || (s->kind == IR_FOR && use->f->plane != PLD_PLANE_HOST);
}

static void find_tile_uses(void *context, ir_stmt *s)
{
    mark_tile_uses(s, context);
}

/* What only copies onto itself have to do with. */
static void emit_unused_tiles(emitter *e)
{
    tile_uses uses = {arena_array(e->a, bool, e->f->vars.count),
                      arena_array(e->a, bool, e->f->vars.count)};
    ir_visit_stmts(&e->f->body, find_tile_uses, &uses);
    for (int64_t i = 0; i < e->f->vars.count; i++) {
        const ir_var *var = e->f->vars.items[i];
        if (!needs_pointer(e, var))
            continue;
        if (!uses.pointer[i])
            emit_line(e, "(void)%s;", var->c_name);
        if (var->type.ragged && !uses.valid[i])
            emit_line(e, "(void)%s;", tile_valid_name(e, var));
    }
}

static bool emit_unused(emitter *e, bool has_tiles)
{
    const ir_function *f = e->f;
    bool any = false;
    emit_unused_tiles(e);
    context_use use = {f, has_tiles};
    ir_visit_stmts(&f->body, find_context_use, &use);
    if (!use.used) {
        emit_line(e, "(void)%s;", e->context);
        any = true;
    }
    for (int64_t i = 0; i < f->params.count; i++) {
        const ir_var *param = f->params.items[i];
        bool used = e->vars[param->id].reads > 0 || e->vars[param->id].param_name != NULL;
        for (int64_t d = 0; d < f->dims.count; d++)
            used |= f->params.items[f->dims.items[d].param] == param &&
                    e->vars[f->dims.items[d].var->id].reads > 0;
        if (!used) {
            emit_line(e, "(void)%s;", param->c_name);
            any = true;
        }
    }
    return any;
}

static void emit_prologue(emitter *e)
{
    const ir_function *f = e->f;
    bool tiles = emit_tiles(e);
    bool any = tiles;
    for (int64_t i = 0; i < f->params.count; i++) {
        const ir_var *param = f->params.items[i];
        if (e->vars[param->id].param_name == NULL)
            continue;
        emit_line(e, "pld_tensor %s = *%s;", param->c_name, e->vars[param->id].param_name);
        any = true;
    }
    for (int64_t i = 0; i < f->dims.count; i++) {
        const ir_dim *dim = &f->dims.items[i];
        if (e->vars[dim->var->id].reads <= 0)
            continue;
        emit_dim(e, dim, tensor_param_name(e, f->params.items[dim->param]));
        any = true;
    }
    if (e->turn != NULL) {
        emit_line(e, "int64_t %s = 0; /* counts the dispatches without device= */", e->turn);
        any = true;
    }
    any |= emit_unused(e, tiles);
    if (any && f->body.count > 0)
        emit_blank(e);
}

/* ---- declarations ---- */

/* "const int32_t x" with the const as C wants it; `constant`: never assigned again. */
static const char *declarator(emitter *e, const ir_var *var, bool constant)
{
    const char *name = var->c_name;
    if (e->vars[var->id].storage == STORAGE_POINTER)
        return arena_printf(e->a, "const pld_tensor *%s%s", constant ? "const " : "", name);
    if (var->type.kind == IR_COMM)
        return arena_printf(e->a, "const pld_comm *%s%s", constant ? "const " : "", name);
    const char *type = var->type.kind == IR_BUFFER   ? "pld_buffer"
                       : var->type.kind == IR_SCALAR ? c_scalar_type(var->type.dtype)
                                                     : "pld_tensor";
    return arena_printf(e->a, "%s%s %s", constant ? "const " : "", type, name);
}

static const char *zero_value(const emitter *e, const ir_var *var)
{
    if (e->vars[var->id].storage == STORAGE_POINTER || var->type.kind == IR_COMM)
        return "NULL";
    if (var->type.kind != IR_SCALAR)
        return "{0}";
    return ir_is_float(var->type.dtype) ? "0.0f" : var->type.dtype == PYPTO_BOOL ? "false" : "0";
}

static bool is_declared_before(const emitter *e, const ir_stmt *s)
{
    const ir_var *const *first;
    return declared_before(e, s, &first) > 0;
}

static void emit_declarations_before(emitter *e, const ir_stmt *s)
{
    const ir_var *const *first;
    int64_t count = declared_before(e, s, &first);
    for (int64_t i = 0; i < count; i++) {
        const ir_var *var = first[i];
        emit_place(e, &s->span);
        if (e->vars[var->id].cleared)
            emit_line(e, "%s = %s;", declarator(e, var, false), zero_value(e, var));
        else
            emit_line(e, "%s;", declarator(e, var, false));
    }
}

/* What stands left of the value of an assignment: a declaration or the name. */
static const char *assigned_text(emitter *e, const ir_stmt *s)
{
    const var_info *info = &e->vars[s->target->id];
    if (info->defined_by == s)
        return declarator(e, s->target, info->definitions == 1);
    return s->target->c_name;
}

/* ---- simple statements ---- */

void emit_value(emitter *e, const ir_stmt *s, const char *value)
{
    emit_place(e, &s->span);
    if (s->target == NULL)
        emit_line(e, "%s;", value);
    else if (e->vars[s->target->id].storage == STORAGE_NONE)
        emit_line(e, "(void)%s;", value);
    else
        emit_line(e, "%s = %s;", assigned_text(e, s), value);
}

const char *alias_text(emitter *e, const ir_var *target, const ir_var *source)
{
    bool from_value = e->vars[source->id].storage == STORAGE_VALUE;
    if (e->vars[target->id].storage == STORAGE_VALUE)
        return from_value ? source->c_name : arena_printf(e->a, "*%s", source->c_name);
    return source->c_name;
}

static void emit_assign(emitter *e, const ir_stmt *s)
{
    if (is_dropped(e, s))
        return;
    const ir_var *target = s->target;
    if (s->value != NULL) {
        emit_value(e, s, expr_as(e, s->value, target->type.dtype).text);
    } else if (!ir_is_private(target->type.kind)) {
        emit_value(e, s, alias_text(e, target, s->source));
        return;
    }
    if (target->type.kind == IR_TILE)
        emit_valid_copy(e, s);
    if (ir_is_private(target->type.kind) && target->scratch_offset != s->source->scratch_offset) {
        long long bytes = ir_static_bytes(&target->type);
        emit_place(e, &s->span);
        emit_line(e, "memcpy(%s, %s, %lld);", target->c_name, s->source->c_name, bytes);
    }
}

/* ---- control flow ---- */

typedef struct var_search {
    const ir_var *var;
    bool found;
} var_search;

static void find_assignment(void *context, ir_stmt *s)
{
    var_search *search = context;
    search->found |= s->target == search->var;
}

/* Whether a bound may be written into the loop's condition as it is. */
static bool stays_the_same(const ir_stmt *loop, const ir_expr *bound)
{
    while (bound->kind == IR_CONVERT)
        bound = bound->a;
    if (bound->kind == IR_INT)
        return true;
    if (bound->kind != IR_VAR)
        return false;
    var_search search = {bound->var, false};
    ir_visit_stmts(&loop->body, find_assignment, &search);
    return !search.found;
}

/* The declarations of the for statement besides the variable itself, and the text of bound or step.
 */
static const char *held_text(emitter *e, const ir_stmt *s, const ir_expr *bound, const char *suffix,
                             text *held)
{
    pypto_dtype dtype = s->target->type.dtype;
    const char *value = expr_as(e, bound, dtype).text;
    if (stays_the_same(s, bound))
        return value;
    const char *name = emit_free_name(e, arena_printf(e->a, "%s_%s", s->target->c_name, suffix));
    text_printf(held, ", %s = %s", name, value);
    return name;
}

static const char *condition_text(emitter *e, const ir_stmt *s, const char *stop, const char *step)
{
    const char *name = s->target->c_name;
    int64_t value;
    if (!ir_is_const_int(s->step, &value))
        return arena_printf(e->a, "%s > 0 ? %s < %s : %s > %s", step, name, stop, name, stop);
    return arena_printf(e->a, value > 0 ? "%s < %s" : "%s > %s", name, stop);
}

/* Whether a constant step past a bound still fits the loop variable, for any value of the bound. */
static bool step_fits(const ir_stmt *s, int64_t step)
{
    const ir_expr *stop = s->stop;
    int64_t bound;
    int64_t sum;
    if (step == 1 || step == -1)
        return true;
    if (ir_is_const_int(stop, &bound))
        return !__builtin_add_overflow(bound, step, &sum);
    while (stop->kind == IR_CONVERT && ir_is_integer(stop->a->dtype))
        stop = stop->a;
    return pypto_dtype_bytes(stop->dtype) <= 4 && step > INT32_MIN && step < INT32_MAX;
}

/* The step of a loop, which must not overflow. Where it might, it is taken only when it is smaller
 * than what is left (a difference of two int64_t is exact as uint64_t); else the variable becomes
 * the bound, which ends the loop. */
static const char *advance_text(emitter *e, const ir_stmt *s, const char *stop, const char *step)
{
    const char *name = s->target->c_name;
    int64_t value;
    const char *up = arena_printf(e->a, "(uint64_t)%s - (uint64_t)%s", stop, name);
    const char *down = arena_printf(e->a, "(uint64_t)%s - (uint64_t)%s", name, stop);
    if (!ir_is_const_int(s->step, &value))
        return arena_printf(e->a,
                            "%s = (%s > 0 ? %s > (uint64_t)%s : %s > 0 - (uint64_t)%s) ? "
                            "%s + %s : %s",
                            name, step, up, step, down, step, name, step, stop);
    if (value == 1 || value == -1)
        return arena_printf(e->a, value == 1 ? "++%s" : "--%s", name);
    const char *size = value > 0 || value == INT64_MIN ? step : step + 1; /* without its sign */
    const char *sign = value > 0 || value == INT64_MIN ? "+" : "-";
    if (step_fits(s, value))
        return arena_printf(e->a, "%s %s= %s", name, sign, size);
    return arena_printf(e->a, "%s = %s > %s%s ? %s %s %s : %s", name, value > 0 ? up : down,
                        value == INT64_MIN ? "(uint64_t)" : "", size, name, sign, size, stop);
}

/* An operation that touches nothing but tiles, arrays and scalars is compiled into the kernel. */
static bool calls_device(const ir_stmt *s)
{
    for (int32_t i = 0; i < s->operand_count; i++) {
        if (s->operands[i].kind == IR_OPERAND_VAR && !ir_is_private(s->operands[i].var->type.kind))
            return s->op_def->effects[0] != '\0';
    }
    return false;
}

/* Whether a block passes, on every path through it, a device call that ends a cancelled task:
 * those that move data, signal, or submit. A loop in it may have no turns. */
static bool always_checks(const ir_block *block)
{
    for (int64_t i = 0; i < block->count; i++) {
        const ir_stmt *s = block->items[i];
        if (s->kind == IR_CALL || (s->kind == IR_DO && calls_device(s)) ||
            (s->kind == IR_IF && always_checks(&s->body) && always_checks(&s->orelse)))
            return true;
    }
    return false;
}

/* A kernel that computes must notice that its call was cancelled. */
static bool needs_poll(const emitter *e, const ir_stmt *loop)
{
    return e->f->plane != PLD_PLANE_HOST && !always_checks(&loop->body);
}

static void emit_for(emitter *e, const ir_stmt *s)
{
    text held = {.a = e->a};
    text_add(&held, "");
    const char *stop = held_text(e, s, s->stop, "end", &held);
    const char *step = held_text(e, s, s->step, "step", &held);
    const char *start = expr_as(e, s->start, s->target->type.dtype).text;
    int64_t constant_step;
    emit_place(e, &s->span);
    if (!ir_is_const_int(s->step, &constant_step)) {
        emit_line(e, "if (%s == 0)", expr_text(e, s->step, PRECEDENCE_LESS));
        emit_place(e, &s->span);
        emit_line(e, "    %s(%s, \"the step of pl.range is 0\");",
                  e->f->plane == PLD_PLANE_HOST ? "pld_host_fail" : "pld_fail", e->context);
        emit_place(e, &s->span);
    }
    emit_line(e, "for (%s %s = %s%s; %s; %s) {", c_scalar_type(s->target->type.dtype),
              s->target->c_name, start, held.bytes, condition_text(e, s, stop, step),
              advance_text(e, s, stop, step));
    e->depth++;
    if (needs_poll(e, s))
        emit_line(e, "pld_poll(core);");
    emit_block(e, &s->body);
    e->depth--;
    emit_line(e, "}");
}

static void emit_while(emitter *e, const ir_stmt *s)
{
    emit_place(e, &s->span);
    emit_line(e, "while (%s) {", expr_c(e, s->value).text);
    e->depth++;
    if (needs_poll(e, s))
        emit_line(e, "pld_poll(core);");
    emit_block(e, &s->body);
    e->depth--;
    emit_line(e, "}");
}

static const ir_stmt *else_if(const emitter *e, const ir_stmt *s)
{
    bool chains = s->orelse.count == 1 && s->orelse.items[0]->kind == IR_IF &&
                  !is_declared_before(e, s->orelse.items[0]);
    return chains ? s->orelse.items[0] : NULL;
}

static void emit_if(emitter *e, const ir_stmt *s)
{
    const char *head = "";
    for (;;) {
        emit_place(e, &s->span);
        emit_line(e, "%sif (%s) {", head, expr_c(e, s->value).text);
        e->depth++;
        emit_block(e, &s->body);
        e->depth--;
        const ir_stmt *next = else_if(e, s);
        if (next == NULL)
            break;
        s = next;
        head = "} else ";
    }
    if (s->orelse.count > 0) {
        emit_line(e, "} else {");
        e->depth++;
        emit_block(e, &s->orelse);
        e->depth--;
    }
    emit_line(e, "}");
}

static void emit_stmt(emitter *e, const ir_stmt *s)
{
    emit_declarations_before(e, s);
    switch (s->kind) {
    case IR_ASSIGN: emit_assign(e, s); break;
    case IR_DO: emit_operation(e, s); break;
    case IR_CALL: emit_call(e, s); break;
    case IR_FOR: emit_for(e, s); break;
    case IR_WHILE: emit_while(e, s); break;
    case IR_IF: emit_if(e, s); break;
    case IR_BREAK:
        emit_place(e, &s->span);
        emit_line(e, "break;");
        break;
    case IR_CONTINUE:
        emit_place(e, &s->span);
        emit_line(e, "continue;");
        break;
    case IR_RETURN:
        emit_place(e, &s->span);
        emit_line(e, "return;");
        break;
    }
}

/* Statements of a block from `first` on; false: what follows is never reached. */
static bool emit_stmts(emitter *e, const ir_block *block, int64_t first, int64_t count)
{
    for (int64_t i = first; i < first + count; i++) {
        const ir_stmt_kind kind = block->items[i]->kind;
        if (block == &e->f->body && i + 1 == block->count && kind == IR_RETURN)
            return false; /* C returns at the end by itself */
        emit_stmt(e, block->items[i]);
        if (kind == IR_RETURN || kind == IR_BREAK || kind == IR_CONTINUE)
            return false;
    }
    return true;
}

static void emit_block(emitter *e, const ir_block *block)
{
    const int32_t *groups = frame_groups(e, block);
    bool reached = true;
    for (int64_t i = 0, count; i < block->count && reached; i += count) {
        const bool own = groups != NULL && groups[i] > 0;
        count = own ? groups[i] : 1;
        if (own) {
            emit_line(e, "{");
            e->depth++;
        }
        reached = emit_stmts(e, block, i, count);
        if (own) {
            e->depth--;
            emit_line(e, "}");
        }
    }
}

static void find_turn(void *context, ir_stmt *s)
{
    bool *found = context;
    *found |= s->kind == IR_CALL && s->device == NULL && s->callee->plane != PLD_PLANE_SUB;
}

void emit_function(emitter *e, const ir_function *f)
{
    static const char *const kinds[] = {"host function", "per-device wrapper", "in-core kernel"};
    if (f->plane == PLD_PLANE_SUB)
        return; /* it has no code here */
    e->f = f;
    e->context = f->plane == PLD_PLANE_HOST ? "host" : "core";
    e->index = emit_free_name(e, "i");
    bool turn = false;
    if (f->plane == PLD_PLANE_HOST)
        ir_visit_stmts(&f->body, find_turn, &turn);
    e->turn = turn ? emit_free_name(e, "turn") : NULL;
    plan_vars(e);
    plan_frames(e);
    emit_shared_loops(e);

    emit_line(e, "/* %s: %s, %s:%d */", emit_comment_text(e, f->name), kinds[f->plane],
              emit_comment_text(e, emit_base_name(f->span.file != NULL ? f->span.file : "?")),
              f->span.line);
    emit_place(e, &f->span);
    emit_signature(e);
    emit_line(e, "{");
    e->depth++;
    emit_prologue(e);
    emit_block(e, &f->body);
    e->depth--;
    emit_line(e, "}");
}
