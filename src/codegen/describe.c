/* program.json: the functions of a program, what each calls, and where it stands in program.c.
 *
 *     {"name": "host", "functions": [
 *     {"name": "step", "c_name": "step", "plane": "core", "lines": [19, 30], "calls": [],
 *      "params": [{"name": "x", "direction": "In", "shape": [-1, 64], "dtype": "fp32"}], "results": [0]},
 *     {"name": "allreduce", ..., "collective": "allreduce__sum__fp32"},
 *     ...]}
 *
 * One line per function, callees first, the host function last. Numbers of `calls` are places in the list, those
 * of `results` places in `params`. A dimension that is no constant is -1, a scalar has the shape null.
 * `collective` names what a kernel does that was made for a collective of a host function: the operation, the
 * operator or root, the element type. It is the same for any number of cores and any size. */
#include "codegen/describe.h"

#include "ops/ops.h"

#include <ctype.h>
#include <string.h>

/* ---- collectives ---- */

static const ir_operand *operand_named(const ir_stmt *s, const char *name)
{
    const int32_t index = op_param_index(s->op_def, name);
    return index >= 0 && s->operands[index].kind != IR_OPERAND_NONE ? &s->operands[index] : NULL;
}

static const char *lower_case(arena *a, const char *word)
{
    char *copy = arena_strdup(a, word);
    for (char *p = copy; *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
    return copy;
}

/* What of the operands makes it another operation: "__sum", "__root0", or nothing. */
static const char *qualifier(arena *a, const ir_stmt *s)
{
    const ir_operand *op = operand_named(s, "op");
    const ir_operand *root = operand_named(s, "root");
    int64_t rank;
    if (op != NULL)
        return arena_printf(a, "__%s", lower_case(a, enum_member_name("ReduceOp", op->number)));
    if (root == NULL)
        return "";
    return ir_is_const_int(root->expr, &rank) ? arena_printf(a, "__root%lld", (long long)rank)
                                              : "__root_of_the_call";
}

static const char *collective_name(arena *a, const ir_stmt *s)
{
    const char *name = strrchr(s->op_def->spellings[0], '.') + 1;
    const ir_operand *mode = operand_named(s, "mode");
    const ir_operand *data = operand_named(s, "target");
    const bool ring =
        mode != NULL && strcmp(enum_member_name("CollectiveMode", mode->number), "ring") == 0;
    /* A barrier moves no elements: by convention it goes by the commonest type. */
    const pypto_dtype dtype = data != NULL ? data->var->type.dtype : PYPTO_FP32;
    return arena_printf(a, "%s%s%s__%s", name, ring ? "_ring" : "", qualifier(a, s),
                        pypto_dtype_name(dtype));
}

/* ---- functions ---- */

typedef struct calls {
    text *out;
    bool *seen; /* by index of the callee */
    bool any;
} calls;

static void add_callee(void *context, ir_stmt *s)
{
    calls *c = context;
    if (s->kind != IR_CALL || s->callee == NULL || c->seen[s->callee->index])
        return;
    c->seen[s->callee->index] = true;
    text_printf(c->out, "%s%d", c->any ? ", " : "", s->callee->index);
    c->any = true;
}

static void add_calls(text *out, const ir_program *p, const ir_function *f)
{
    calls c = {out, arena_array(p->a, bool, p->functions.count), false};
    text_add(out, ", \"calls\": [");
    ir_visit_stmts(&f->body, add_callee, &c);
    text_add(out, "]");
}

static void add_param(text *out, const ir_var *param)
{
    static const char *const directions[] = {"In", "Out", "InOut"};
    const ir_type *type = &param->type;
    text_add(out, "{\"name\": ");
    text_json(out, param->name);
    text_printf(out, ", \"direction\": \"%s\", \"shape\": ", directions[param->direction]);
    if (type->kind == IR_SCALAR)
        text_add(out, "null");
    for (int32_t d = 0; type->kind != IR_SCALAR && d < type->ndim; d++) {
        int64_t extent = -1;
        (void)ir_is_const_int(type->shape[d], &extent);
        text_printf(out, "%s%lld", d == 0 ? "[" : ", ", (long long)extent);
    }
    if (type->kind != IR_SCALAR)
        text_add(out, type->ndim == 0 ? "[]" : "]");
    text_printf(out, ", \"dtype\": \"%s\"}", pypto_dtype_name(type->dtype));
}

static void add_results(text *out, const ir_function *f)
{
    text_add(out, ", \"results\": [");
    for (int64_t i = 0; i < f->results.count; i++) {
        int64_t place = -1;
        for (int64_t k = 0; k < f->params.count; k++)
            if (f->params.items[k] == f->results.items[i])
                place = k;
        text_printf(out, "%s%lld", i > 0 ? ", " : "", (long long)place);
    }
    text_add(out, "]");
}

static void add_function(text *out, const ir_program *p, const ir_function *f,
                         const emit_lines_of *lines)
{
    static const char *const planes[] = {"host", "chip", "core", "sub"};
    text_add(out, "{\"name\": ");
    text_json(out, f->name);
    text_add(out, ", \"c_name\": ");
    text_json(out, f->c_name);
    text_printf(out, ", \"plane\": \"%s\", \"lines\": [%lld, %lld]", planes[f->plane],
                (long long)lines->first, (long long)lines->last);
    add_calls(out, p, f);
    if (f->is_collective) {
        text_add(out, ", \"collective\": ");
        text_json(out, collective_name(p->a, f->body.items[0]));
    }
    text_add(out, ", \"params\": [");
    for (int64_t i = 0; i < f->params.count; i++) {
        text_add(out, i > 0 ? ", " : "");
        add_param(out, f->params.items[i]);
    }
    text_add(out, "]");
    add_results(out, f);
    text_add(out, "}");
}

void describe_program(text *out, const ir_program *p, const emit_lines_of *lines)
{
    text_add(out, "{\"name\": ");
    text_json(out, p->name);
    text_add(out, ", \"functions\": [");
    for (int64_t i = 0; i < p->functions.count; i++) {
        text_add(out, i > 0 ? ",\n" : "\n");
        add_function(out, p, p->functions.items[i], &lines[i]);
    }
    text_add(out, "]}\n");
}
