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
 * compiled with -fno-strict-aliasing.) */
#include "codegen/emit_internal.h"

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
