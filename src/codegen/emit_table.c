/* What the runtime needs besides the functions: entries, parameter tables, the program table.
 *
 * The runtime calls every function through one signature, f(context, args). The entry unpacks the
 * arguments, converts scalars to the parameter's dtype, and makes true what the function's
 * signature says and no call site proves:
 *
 *   - a window may be passed to a parameter of another shape or rank (the same bytes, packed):
 *     where a call site does that, or might, the entry makes a view of the declared shape
 *   - an extent that is constant, or a dimension's name that occurs twice: compared, with an error
 *   - a composite dimension, NR * 4: the remainder must be 0
 *
 * A parameter table describes shapes by numbers and by names. A composite dimension, which has no
 * row in f->dims, goes by its text: equal texts must have equal extents, which is what the names
 * are for. */
#include "codegen/emit_internal.h"

#include <string.h>

/* ---- call sites ---- */

typedef struct sites {
    const ir_function *callee;
    VEC(const ir_stmt *) calls;
    arena *a;
} sites;

static void find_call(void *context, ir_stmt *s)
{
    sites *found = context;
    if (s->kind == IR_CALL && s->callee == found->callee)
        vec_push(found->a, &found->calls, s);
}

static sites sites_of(emitter *e, const ir_function *callee)
{
    sites found = {.callee = callee, .a = e->a};
    for (int64_t i = 0; i < e->p->functions.count; i++)
        ir_visit_stmts(&e->p->functions.items[i]->body, find_call, &found);
    return found;
}

static const ir_dim *dim_of(const ir_function *f, const ir_var *var)
{
    for (int64_t i = 0; i < f->dims.count; i++)
        if (f->dims.items[i].var == var)
            return &f->dims.items[i];
    return NULL;
}

/* Whether a call's argument is known to have the extent that the parameter declares for dimension
 * d. */
static bool site_agrees(const ir_function *f, const ir_stmt *call, int64_t param, int32_t d)
{
    const ir_var *argument = call->operands[param].var;
    const ir_expr *declared = f->params.items[param]->type.shape[d];
    if (argument->type.ndim != f->params.items[param]->type.ndim)
        return false;
    if (declared->kind != IR_VAR)
        return ir_expr_equal(argument->type.shape[d], declared);
    const ir_dim *dim = dim_of(f, declared->var);
    if (dim == NULL || dim->scale != 1 || dim->offset != 0 || dim->quotient != 0)
        return false;
    const ir_var *definer = call->operands[dim->param].var;
    return (dim->param == param && dim->dim == d) ||
           (dim->dim < definer->type.ndim &&
            ir_expr_equal(argument->type.shape[d], definer->type.shape[dim->dim]));
}

static bool all_agree(const ir_function *f, const sites *found, int64_t param, int32_t d)
{
    for (int64_t i = 0; i < found->calls.count; i++)
        if (!site_agrees(f, found->calls.items[i], param, d))
            return false;
    return found->calls.count > 0;
}

/* The dimension of a parameter from which a name gets its value. */
static bool defines_dim(const ir_function *f, int64_t param, int32_t d)
{
    for (int64_t i = 0; i < f->dims.count; i++)
        if (f->dims.items[i].param == param && f->dims.items[i].dim == d)
            return true;
    return false;
}

/* ---- entries ---- */

typedef struct entry {
    emitter *e;
    const ir_function *f;
    bool *viewed;   /* by parameter */
    bool *declared; /* by dims row: its variable is declared */
    bool *unpacked; /* by parameter: a scalar that has a variable */
} entry;

static bool needs_view(const ir_function *f, const sites *found, int64_t param)
{
    const ir_var *var = f->params.items[param];
    if (var->type.kind != IR_WINDOW || var->type.ragged)
        return false;
    for (int32_t d = 0; d < var->type.ndim; d++)
        if (!all_agree(f, found, param, d) && !(defines_dim(f, param, d) && found->calls.count > 0))
            return true;
    for (int64_t i = 0; i < found->calls.count; i++)
        if (found->calls.items[i]->operands[param].var->type.ndim != var->type.ndim)
            return true;
    return false;
}

static const char *tensor_argument(emitter *e, int64_t param)
{
    return arena_printf(e->a, "args[%lld].tensor", (long long)param);
}

static const char *scalar_argument(emitter *e, int64_t param, pypto_dtype dtype)
{
    bool real = ir_is_float(dtype);
    c_expr value = {
        arena_printf(e->a, "args[%lld].%s", (long long)param, real ? "real" : "integer"),
        PRECEDENCE_PRIMARY, C_LONG};
    if (!real)
        return expr_convert(e, value, PYPTO_INT64, dtype).text;
    c_expr single = {arena_printf(e->a, "(float)%s", value.text), PRECEDENCE_UNARY, C_FLOAT};
    return expr_convert(e, single, PYPTO_FP32, dtype).text;
}

/* What a dimension is made of: names of f->dims, and scalar parameters. */
static void declare_dims_of(void *context, ir_var *var)
{
    entry *en = context;
    for (int64_t i = 0; i < en->f->dims.count; i++) {
        const ir_dim *dim = &en->f->dims.items[i];
        if (dim->var != var || en->declared[i])
            continue;
        en->declared[i] = true;
        emit_dim(en->e, dim, tensor_argument(en->e, dim->param));
    }
    for (int64_t i = 0; i < en->f->params.count; i++) {
        const ir_var *param = en->f->params.items[i];
        if (param != var || en->unpacked[i])
            continue;
        en->unpacked[i] = true;
        emit_line(en->e, "const %s %s = %s;", c_scalar_type(param->type.dtype), param->c_name,
                  scalar_argument(en->e, i, param->type.dtype));
    }
}

/* The message is a printf format, `values` what it is given. */
static void emit_failure(entry *en, const char *condition, const char *message, const char *values)
{
    emitter *e = en->e;
    text quoted = {.a = e->a};
    text_quoted(&quoted, message);
    emit_line(e, "if (%s)", condition);
    e->depth++;
    emit_place(e, &en->f->span);
    emit_line(e, "%s(%s, %s, %s);", en->f->plane == PLD_PLANE_HOST ? "pld_host_fail" : "pld_fail",
              e->context, quoted.bytes, values);
    e->depth--;
}

/* The message is a printf format. */
static const char *doubled_percents(emitter *e, const char *string)
{
    text out = {.a = e->a};
    text_add(&out, "");
    for (const char *p = string; *p != '\0'; p++)
        text_add_n(&out, *p == '%' ? "%%" : p, *p == '%' ? 2 : 1);
    return out.bytes;
}

static void check_extent(entry *en, int64_t param, int32_t d)
{
    emitter *e = en->e;
    const ir_var *var = en->f->params.items[param];
    const ir_expr *declared = var->type.shape[d];
    ir_visit_expr(declared, declare_dims_of, en);
    const char *has = param_extent(e, param, tensor_argument(e, param), d);
    const char *message =
        arena_printf(e->a, "dimension %d of '%s' does not have the extent that '%s' declares: %s",
                     d, var->name, en->f->name, ir_expr_text(e->a, declared));
    emit_failure(
        en, arena_printf(e->a, "%s != %s", has, expr_text(e, declared, PRECEDENCE_SHIFT)),
        arena_printf(e->a, "%s, which is %%lld; it has %%lld", doubled_percents(e, message)),
        arena_printf(e->a, "(long long)%s, (long long)%s", expr_text(e, declared, PRECEDENCE_UNARY),
                     has));
}

static void check_remainder(entry *en, const ir_dim *dim)
{
    emitter *e = en->e;
    if (dim->scale == 1 || dim->scale == -1)
        return;
    const ir_var *var = en->f->params.items[dim->param];
    const char *extent = param_extent(e, dim->param, tensor_argument(e, dim->param), dim->dim);
    const char *has = extent;
    if (dim->offset != 0)
        extent = arena_printf(e->a, "(%s - %s)", extent,
                              expr_text(e, ir_int(e->a, dim->offset), PRECEDENCE_PRODUCT));
    const char *message =
        arena_printf(e->a, "dimension %d of '%s' is declared as %s in '%s'", dim->dim, var->name,
                     ir_expr_text(e->a, var->type.shape[dim->dim]), en->f->name);
    emit_failure(en, arena_printf(e->a, "%s %% %lld != 0", extent, (long long)dim->scale),
                 arena_printf(e->a, "%s, which its extent, %%lld, does not divide into",
                              doubled_percents(e, message)),
                 arena_printf(e->a, "(long long)%s", has));
}

static void emit_checks(entry *en, const sites *found)
{
    const ir_function *f = en->f;
    for (int64_t i = 0; i < f->dims.count; i++)
        check_remainder(en, &f->dims.items[i]);
    for (int64_t i = 0; i < f->params.count; i++) {
        const ir_var *var = f->params.items[i];
        /* The host function's tensors are checked where they come in, names included; what is left
         * is the relation between a name and expressions of it. */
        if (var->type.kind == IR_SCALAR || en->viewed[i])
            continue;
        for (int32_t d = 0; d < var->type.ndim; d++) {
            const ir_expr *extent = var->type.shape[d];
            bool known = extent->kind == IR_INT ||
                         (extent->kind == IR_VAR && extent->var->kind == IR_VAR_DIM);
            bool checked = f->plane == PLD_PLANE_HOST ? known : all_agree(f, found, i, d);
            if (!checked && !defines_dim(f, i, d))
                check_extent(en, i, d);
        }
    }
}

static void emit_views(entry *en)
{
    emitter *e = en->e;
    for (int64_t i = 0; i < en->f->params.count; i++) {
        const ir_var *var = en->f->params.items[i];
        if (!en->viewed[i])
            continue;
        text extents = {.a = e->a};
        text_add(&extents, "");
        for (int32_t d = 0; d < var->type.ndim; d++) {
            ir_visit_expr(var->type.shape[d], declare_dims_of, en);
            text_printf(&extents, "%s%s", d > 0 ? ", " : "", expr_int64(e, var->type.shape[d]));
        }
        emit_place(e, &en->f->span);
        emit_line(e, "const pld_tensor %s = pld_view(core, %s, %d, PLD_EXTENTS(%s));", var->c_name,
                  tensor_argument(e, i), var->type.ndim, extents.bytes);
    }
}

static void emit_entry(emitter *e, const ir_function *f)
{
    bool host = f->plane == PLD_PLANE_HOST;
    sites found = sites_of(e, f);
    entry en = {e, f, arena_array(e->a, bool, f->params.count + 1),
                arena_array(e->a, bool, f->dims.count + 1),
                arena_array(e->a, bool, f->params.count + 1)};
    for (int64_t i = 0; i < f->params.count && !host; i++)
        en.viewed[i] = needs_view(f, &found, i);

    const char **items = arena_array(e->a, const char *, f->params.count + 1);
    items[0] = e->context;
    for (int64_t i = 0; i < f->params.count; i++) {
        const ir_var *param = f->params.items[i];
        items[i + 1] = param->type.kind == IR_SCALAR ? scalar_argument(e, i, param->type.dtype)
                       : en.viewed[i]                ? arena_printf(e->a, "&%s", param->c_name)
                                                     : tensor_argument(e, i);
    }
    emit_line(e, "static void %s_entry(%s, const pld_arg *args)", f->c_name,
              host ? "pld_host *host" : "pld_core *core");
    emit_line(e, "{");
    e->depth++;
    if (f->params.count == 0)
        emit_line(e, "(void)args;");
    emit_checks(&en, &found);
    emit_views(&en);
    emit_list(e, arena_printf(e->a, "%s(", f->c_name), items, f->params.count + 1, ");");
    e->depth--;
    emit_line(e, "}");
    emit_blank(e);
}

/* ---- tables ---- */

typedef struct dim_names {
    arena *a;
    VEC(const char *) names;
} dim_names;

static int64_t name_index(dim_names *dims, const char *name)
{
    for (int64_t i = 0; i < dims->names.count; i++)
        if (strcmp(dims->names.items[i], name) == 0)
            return i;
    vec_push(dims->a, &dims->names, name);
    return dims->names.count - 1;
}

/* A number, or -1 - k for the name k of the dimension. */
static int64_t extent_code(emitter *e, dim_names *dims, const ir_expr *extent)
{
    int64_t value;
    if (ir_is_const_int(extent, &value))
        return value;
    return -1 - name_index(dims, ir_expr_text(e->a, extent));
}

static const char *quoted(emitter *e, const char *string)
{
    text out = {.a = e->a};
    text_quoted(&out, string != NULL ? string : "?");
    return out.bytes;
}

/* "PLD_READS | PLD_AWAITS"; "0" for what is no window of a kernel. */
static const char *uses_of(emitter *e, const ir_var *param)
{
    static const struct {
        pld_use use;
        const char *name;
    } names[] = {{PLD_USES_NOTHING, "PLD_USES_NOTHING"},
                 {PLD_READS, "PLD_READS"},
                 {PLD_WRITES, "PLD_WRITES"},
                 {PLD_NOTIFIES, "PLD_NOTIFIES"},
                 {PLD_AWAITS, "PLD_AWAITS"},
                 {PLD_FENCES, "PLD_FENCES"}};
    if (param->uses == 0)
        return "0";
    text out = {.a = e->a};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((param->uses & names[i].use) != 0)
            text_printf(&out, "%s%s", out.length > 0 ? " | " : "", names[i].name);
    return out.bytes;
}

static void emit_param(emitter *e, const ir_function *f, int64_t index, dim_names *dims)
{
    static const char *const directions[] = {"PLD_IN", "PLD_OUT", "PLD_INOUT"};
    const ir_var *param = f->params.items[index];
    const char *kind = param->type.kind == IR_SCALAR   ? "PLD_PARAM_SCALAR"
                       : param->type.kind == IR_WINDOW ? "PLD_PARAM_WINDOW"
                                                       : "PLD_PARAM_TENSOR";
    text shape = {.a = e->a};
    text_add(&shape, param->type.ndim == 0 ? "0" : "");
    for (int32_t d = 0; d < param->type.ndim; d++)
        text_printf(&shape, "%s%lld", d > 0 ? ", " : "",
                    (long long)extent_code(e, dims, param->type.shape[d]));
    int32_t world_dim = index < f->world_dims.count ? f->world_dims.items[index] : -1;
    emit_line(e, "{%s, %s, %s, %s, %d, {%s}, %d, %s},", quoted(e, param->name), kind,
              directions[param->direction], c_dtype_name(param->type.dtype), param->type.ndim,
              shape.bytes, world_dim, uses_of(e, param));
}

void emit_table(emitter *e, const ir_function *f)
{
    static const char *const planes[] = {"PLD_PLANE_HOST", "PLD_PLANE_CHIP", "PLD_PLANE_CORE",
                                         "PLD_PLANE_SUB"};
    e->f = f;
    e->context = f->plane == PLD_PLANE_HOST ? "host" : "core";
    emit_own_place(e);
    if (f->plane != PLD_PLANE_SUB)
        emit_entry(e, f);

    emit_own_place(e);
    dim_names dims = {.a = e->a};
    for (int64_t i = 0; i < f->dims.count; i++)
        vec_push(e->a, &dims.names, f->dims.items[i].var->name);
    if (f->params.count > 0) {
        emit_line(e, "static const pld_param %s_params[] = {", f->c_name);
        e->depth++;
        for (int64_t i = 0; i < f->params.count; i++)
            emit_param(e, f, i, &dims);
        e->depth--;
        emit_line(e, "};");
    }
    if (dims.names.count > 0) {
        const char **names = arena_array(e->a, const char *, dims.names.count);
        for (int64_t i = 0; i < dims.names.count; i++)
            names[i] = quoted(e, dims.names.items[i]);
        emit_list(e, arena_printf(e->a, "static const char *const %s_dims[] = {", f->c_name), names,
                  dims.names.count, "};");
    }
    emit_line(e, "static const pld_function %s_function = {", f->c_name);
    e->depth++;
    emit_line(e, ".name = %s,", quoted(e, f->name));
    emit_line(e, ".file = %s,", quoted(e, f->span.file));
    emit_line(e, ".line = %d,", f->span.line);
    emit_line(e, ".plane = %s,", planes[f->plane]);
    if (f->plane != PLD_PLANE_SUB)
        emit_line(e, "%s = %s_entry,", f->plane == PLD_PLANE_HOST ? ".run_host" : ".run",
                  f->c_name);
    if (f->scratch_bytes > 0)
        emit_line(e, ".scratch_bytes = %lld,", (long long)f->scratch_bytes);
    if (f->params.count > 0) {
        emit_line(e, ".nparams = %lld,", (long long)f->params.count);
        emit_line(e, ".params = %s_params,", f->c_name);
    }
    if (dims.names.count > 0) {
        emit_line(e, ".ndims = %lld,", (long long)dims.names.count);
        emit_line(e, ".dims = %s_dims,", f->c_name);
    }
    e->depth--;
    emit_line(e, "};");
    emit_blank(e);
}

static const char *collectives_name(pld_collectives collectives)
{
    switch (collectives) {
    case PLD_NO_COLLECTIVES: break;
    case PLD_ONE_SIGNAL: return "PLD_ONE_SIGNAL";
    case PLD_MANY_SIGNALS: return "PLD_MANY_SIGNALS";
    }
    return "PLD_NO_COLLECTIVES";
}

void emit_program_table(emitter *e)
{
    const ir_program *p = e->p;
    const char **items = arena_array(e->a, const char *, p->functions.count + p->buffers.count + 1);
    for (int64_t i = 0; i < p->functions.count; i++)
        items[i] = arena_printf(e->a, "&%s_function", p->functions.items[i]->c_name);
    emit_list(e, "static const pld_function *const program_functions[] = {", items,
              p->functions.count, "};");
    for (int64_t i = 0; i < p->buffers.count; i++)
        items[i] = arena_printf(e->a, "{%s, %d, %s}", quoted(e, p->buffers.items[i].name),
                                p->buffers.items[i].span.line,
                                collectives_name(p->buffers.items[i].collectives));
    if (p->buffers.count > 0)
        emit_list(e, "static const pld_buffer_info program_buffers[] = {", items, p->buffers.count,
                  "};");

    emit_blank(e);
    emit_line(e, "PYPTO_API const pld_program pypto_program = {");
    e->depth++;
    emit_line(e, ".abi = PLD_ABI,");
    emit_line(e, ".size = sizeof(pld_program),");
    emit_line(e, ".name = %s,", quoted(e, p->name));
    emit_line(e, ".nfunctions = %lld,", (long long)p->functions.count);
    emit_line(e, ".host = %lld,", (long long)p->functions.count - 1);
    emit_line(e, ".functions = program_functions,");
    if (p->buffers.count > 0) {
        emit_line(e, ".nbuffers = %lld,", (long long)p->buffers.count);
        if (p->collectives_only)
            emit_line(e, ".collectives_only = 1,");
        emit_line(e, ".buffers = program_buffers,");
    }
    e->depth--;
    emit_line(e, "};");
}
