/* Expressions: what each form of syntax evaluates to.
 *
 * Scalars become expression trees; operations and calls become statements, whose result is a variable
 * that the expression then names. Evaluation goes in the order of writing, as Python's does.
 *
 * `target` travels down to the one operation that computes the value of an assignment, so that it can
 * compute in the assigned variable's own place. */
#include "frontend/expressions.h"
#include "frontend/calls.h"
#include "frontend/loops.h"
#include "frontend/lower.h"
#include "frontend/names.h"
#include "frontend/scalars.h"
#include "frontend/signature.h"
#include "frontend/subscripts.h"

#include "ops/dtypes.h"

#include <string.h>

static dsl_value unsupported(lowering *fl, const syntax_expr *e, const char *hint, const char *what)
{
    if (hint == NULL)
        hint =
            "a DSL expression has numbers, names, operators, lists, tuples, subscripts and calls";
    return report(fl->fe, DIAG_UNSUPPORTED_EXPRESSION, e->span, hint,
                  "Unsupported expression type: %s", what);
}

dsl_value eval(lowering *fl, const syntax_expr *e)
{
    return eval_into(fl, e, -1);
}

static dsl_value not_yet(lowering *fl, const char *path, pypto_span span)
{
    return report(fl->fe, DIAG_LATER, span, op_later_hint(path), "%s is not supported yet", path);
}

static dsl_value eval_name(lowering *fl, const syntax_expr *e)
{
    int64_t name = binding_find(fl, e->text);
    return name >= 0 ? binding_read(fl, name, e->span) : outer_name(fl, e->text, e->span);
}

static bool has_no_dtype(ir_kind kind)
{
    return kind == IR_BUFFER || kind == IR_COMM || kind == IR_NONE;
}

/* Attributes exist on pypto's own objects, and .shape and .dtype on tensors; those of element types are
 * called, see eval_call. */
static dsl_value eval_attribute(lowering *fl, const syntax_expr *e)
{
    dsl_value outer;
    if (outer_member(fl, e, &outer))
        return outer;
    dsl_value base = eval(fl, e->a);
    if (base.kind == VALUE_POISON)
        return base;
    if (base.kind == VALUE_PATH) {
        dsl_value v = path_value(fl->a, arena_printf(fl->a, "%s.%s", base.text, e->text), e->span);
        bool later = v.kind == VALUE_PATH && op_is_later(v.text);
        return later ? not_yet(fl, v.text, e->span) : v;
    }
    dsl_value shape;
    ir_type type;
    if (strcmp(e->text, "shape") == 0 && shape_value(fl, &base, e->span, &shape))
        return shape;
    if (strcmp(e->text, "dtype") == 0 && value_type(&base, &type) && !has_no_dtype(type.kind))
        return (dsl_value){.kind = VALUE_DTYPE, .dtype = type.dtype, .span = e->span};
    return report(fl->fe, DIAG_UNSUPPORTED_EXPRESSION, e->span, "values have .shape and .dtype",
                  "Standalone attribute access not supported: '.%s' of %s", e->text,
                  describe(fl->a, &base));
}

/* ---- calls ---- */

static dsl_value misplaced_word(lowering *fl, const char *path, pypto_span span)
{
    static const char *const scopes[] = {"pl.at", "pl.scope", "pl.manual_scope", "pl.cluster"};
    if (strcmp(path, "pl.spmd") == 0)
        return report(fl->fe, DIAG_BAD_SCOPE, span,
                      "write `with pl.spmd(n):` or `for i in pl.spmd(n):`",
                      "pl.spmd stands behind `with`, or is the iterator of a for loop");
    if (strcmp(path, "pl.split") == 0 || strcmp(path, "pl.cross_core_slot") == 0)
        return report(fl->fe, DIAG_BAD_SCOPE, span,
                      arena_printf(fl->a, "write optimizations=[%s(...)]", path),
                      "%s is an entry of optimizations=", path);
    for (size_t i = 0; i < sizeof scopes / sizeof scopes[0]; i++) {
        if (strcmp(scopes[i], path) == 0)
            return report(fl->fe, DIAG_BAD_SCOPE, span,
                          arena_printf(fl->a, "write `with %s(...):`", path),
                          "%s can only stand behind `with`", path);
    }
    return report(fl->fe, DIAG_BAD_LOOP, span, "write `for i in pl.range(n):`",
                  "%s can only be the iterator of a for loop", path);
}

static dsl_value unknown_operation(lowering *fl, const char *path, pypto_span span)
{
    if (is_language_word(path)) /* the others are taken apart where they may stand */
        return misplaced_word(fl, path, span);
    const char *dot = strrchr(path, '.');
    if (dot != NULL && (strcmp(dot, ".get_byte") == 0 || strcmp(dot, ".get_bit") == 0))
        return report(fl->fe, DIAG_BAD_ANNOTATION, span, "pl.FP32, pl.INT32, ...",
                      "Unknown DataType '%.*s'", (int)(dot - path), path);
    const char *near = op_nearest(path);
    bool distributed = strncmp(path, "pld.", 4) == 0;
    text others = {.a = fl->a};
    text_add(&others, "help(pl) and help(pld) list the operations");
    if (distributed) {
        text_add(&others, "; the short forms are ");
        op_list_short_forms(&others, "pld");
    }
    return report(fl->fe, DIAG_UNKNOWN_OPERATION, span,
                  near == NULL ? others.bytes : arena_printf(fl->a, "did you mean '%s'?", near),
                  "Unknown %soperation '%s'", distributed ? "distributed " : "", path);
}

/* pl.dynamic("X") in a body names the symbol, as a constant of the script would. */
static dsl_value eval_dynamic(lowering *fl, const syntax_expr *e)
{
    bool one_string = e->items.count == 1 && e->items.items[0]->kind == SYNTAX_STRING;
    if (!one_string || e->keywords.count != 0)
        return report(fl->fe, DIAG_BAD_ARGUMENTS, e->span, "write pl.dynamic(\"NAME\")",
                      "pl.dynamic takes one string");
    const ir_expr *symbol = symbol_expr(fl, e->items.items[0]->text, e->span);
    return symbol == NULL ? poison() : scalar_value(symbol, e->span);
}

/* pl.FP32.get_byte(), also through a constant of the script. */
static dsl_value eval_dtype_method(lowering *fl, const dsl_value *base, const syntax_expr *e)
{
    const char *method = e->a->text;
    bool bytes = strcmp(method, "get_byte") == 0;
    if (!bytes && strcmp(method, "get_bit") != 0)
        return report(fl->fe, DIAG_UNKNOWN_OPERATION, e->a->span, "get_byte() or get_bit()",
                      "a dtype has no method '%s'", method);
    if (e->items.count + e->keywords.count != 0)
        return report(fl->fe, DIAG_BAD_ARGUMENTS, e->span, "write it with empty parentheses",
                      "%s() takes no arguments", method);
    int64_t bits = base->dtype == PYPTO_BOOL ? 1 : dtype_bits(base->dtype);
    return literal_int(fl->a, bytes ? pypto_dtype_bytes(base->dtype) : bits, e->span);
}

static dsl_value eval_path_call(lowering *fl, const char *path, const syntax_expr *e,
                                int64_t target)
{
    dsl_value result;
    if (lower_builtin(fl, path, e, &result))
        return result;
    const op_def *op = op_find(path);
    if (op != NULL)
        return lower_operation(fl, op, path, e, target);
    if (strcmp(path, "pl.dynamic") == 0)
        return eval_dynamic(fl, e);
    if (op_is_later(path))
        return not_yet(fl, path, e->a->span);
    if (strcmp(path, "pl.func_attr") == 0)
        return lower_func_attr(fl, e);
    return unknown_operation(fl, path, e->a->span);
}

/* Python's own functions have a counterpart more often than not. */
static const char *builtin_hint(const char *name)
{
    static const struct {
        const char *name, *hint;
    } hints[] = {
        {"range", "write pl.range(...)"},
        {"print", "write pl.printf(\"x is %d\", x)"},
        {"len", "write pl.tensor.dim(x, 0)"},
        {"int", "write pl.cast(x, pl.INT32)"},
        {"float", "write pl.cast(x, pl.FP32)"},
        {"bool", "write x != 0"},
        {"sum", "write pl.row_sum or pl.col_sum, or add in a loop"},
    };
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        if (strcmp(hints[i].name, name) == 0)
            return hints[i].hint;
    }
    return "a DSL function calls pl.* and pld.* operations and @pl.jit functions only";
}

static dsl_value eval_call(lowering *fl, const syntax_expr *e, int64_t target)
{
    dsl_value callee;
    if (lower_python_builtin(fl, e, target, &callee))
        return callee;
    if (is_bind_dynamic(fl, e))
        return (dsl_value){.kind = VALUE_NONE, .span = e->span};
    if (outer_member(fl, e->a, &callee)) {
        /* a method of the program, or a function of a module of the script */
    } else if (e->a->kind == SYNTAX_ATTRIBUTE) {
        dsl_value base = eval(fl, e->a->a);
        if (base.kind == VALUE_POISON)
            return base;
        if (base.kind == VALUE_DTYPE)
            return eval_dtype_method(fl, &base, e);
        if (base.kind != VALUE_PATH)
            return report(fl->fe, DIAG_UNSUPPORTED_EXPRESSION, e->a->span,
                          "operations are functions of pl and pld: pl.load(x, ...)",
                          "Unsupported function call: %s has no method '%s'",
                          describe(fl->a, &base), e->a->text);
        callee = path_value(fl->a, arena_printf(fl->a, "%s.%s", base.text, e->a->text), e->a->span);
    } else {
        callee = eval(fl, e->a);
    }
    if (callee.kind == VALUE_POISON)
        return callee;
    if (callee.kind == VALUE_PATH)
        return eval_path_call(fl, callee.text, e, target);
    if (callee.kind == VALUE_FUNCTION)
        return lower_call(fl, (int32_t)callee.integer, e);
    bool named = e->a->kind == SYNTAX_NAME || e->a->kind == SYNTAX_ATTRIBUTE;
    const char *name = named ? e->a->text : "";
    return report(fl->fe, DIAG_UNSUPPORTED_EXPRESSION, e->a->span, builtin_hint(name),
                  "Unsupported function call: '%s' is %s", name, describe(fl->a, &callee));
}

/* ---- subscripts and lists ---- */

static dsl_value eval_item(lowering *fl, const dsl_value *base, const syntax_expr *e)
{
    dsl_value index = poison();
    if (e->items.count != 1)
        return report(fl->fe, DIAG_BAD_INDEX, e->span, "write t[0][1] for a tuple in a tuple",
                      "a tuple takes one index");
    if (!eval_integer(fl, e->items.items[0], "the index of a tuple", &index))
        return poison();
    int64_t i = 0;
    if (!ir_is_const_int(index.expr, &i))
        return report(fl->fe, DIAG_BAD_INDEX, index.span,
                      "use a number or a constant of the script",
                      "the index of a tuple must be a constant");
    if (i < 0 || i >= base->count)
        return report(fl->fe, DIAG_BAD_INDEX, index.span, "indices count from 0",
                      i < 0 ? "index must be non-negative, not %lld"
                            : "index %lld is past the end of the tuple",
                      (long long)i);
    dsl_value item = base->items[i];
    item.span = e->span;
    return item;
}

static dsl_value eval_subscript(lowering *fl, const syntax_expr *e, int64_t target)
{
    dsl_value base = eval(fl, e->a);
    if (base.kind == VALUE_POISON)
        return base;
    if (base.kind == VALUE_TUPLE)
        return eval_item(fl, &base, e);
    bool memory = base.kind == VALUE_VAR &&
                  (ir_is_memory(base.var->type.kind) || base.var->type.kind == IR_TILE);
    if (memory)
        return lower_subscript(fl, base, e, target);
    if (is_array(&base))
        return lower_array_item(fl, base, e, target);
    return report(
        fl->fe, DIAG_BAD_INDEX, e->span, "tuples, tensors, tiles and arrays have elements",
        "Subscript requires Tuple, Tensor, Tile, or Array, not %s", describe(fl->a, &base));
}

/* The constant values that a comprehension runs over: range(...) or pl.range(...), or a list of the script.
 * False: something else. */
static bool comprehended(lowering *fl, const syntax_expr *over, dsl_value *values)
{
    bool range = calls_path(fl, over, "pl.range") ||
                 (over->kind == SYNTAX_CALL && over->a->kind == SYNTAX_NAME &&
                  strcmp(over->a->text, "range") == 0 && binding_find(fl, "range") < 0);
    if (!range) {
        *values = eval(fl, over);
        return values->kind == VALUE_TUPLE || values->kind == VALUE_POISON;
    }
    int64_t bounds[3] = {0, 0, 1};
    int64_t count = over->items.count;
    if (count < 1 || count > 3 || over->keywords.count > 0)
        return false;
    for (int64_t i = 0; i < count; i++) {
        const dsl_value v = eval(fl, over->items.items[i]);
        if (v.kind == VALUE_POISON) {
            *values = v;
            return true;
        }
        if (v.kind != VALUE_SCALAR || !ir_is_const_int(v.expr, &bounds[count == 1 ? 1 : i]))
            return false;
    }
    enum { MOST = 4096 };
    if (bounds[2] == 0)
        return false;
    VEC(dsl_value) items = {0};
    for (int64_t k = bounds[0];
         (bounds[2] > 0 ? k < bounds[1] : k > bounds[1]) && items.count <= MOST; k += bounds[2]) {
        const dsl_value item = literal_int(fl->a, k, over->span);
        vec_push(fl->a, &items, item);
    }
    *values = tuple_value(items.items, (int32_t)items.count, over->span);
    return items.count <= MOST;
}

dsl_value eval_comprehension(lowering *fl, const syntax_expr *e)
{
    dsl_value values;
    if (e->b->kind != SYNTAX_NAME || !comprehended(fl, e->c, &values))
        return report(fl->fe, DIAG_UNSUPPORTED_EXPRESSION, e->span,
                      "write [ids[k] for k in range(4)]",
                      "Unsupported expression type: a ListComp that does not run over constants");
    if (values.kind == VALUE_POISON)
        return values;
    /* The name is the comprehension's own: afterwards it is again what it was. */
    binding_declare(fl, e->b->text, false);
    const int64_t name = binding_find(fl, e->b->text);
    const int64_t mark = fl->trail.count;
    dsl_value *items = arena_array(fl->a, dsl_value, values.count + 1);
    bool ok = true;
    for (int32_t i = 0; i < values.count && ok; i++) {
        bind_name(fl, name, values.items[i], e->b->span);
        items[i] = eval(fl, e->a);
        ok = items[i].kind != VALUE_POISON;
    }
    binding_undo(fl, mark);
    if (!ok)
        return poison();
    return tuple_value(items, values.count, e->span);
}

static dsl_value eval_items(lowering *fl, const syntax_expr *e)
{
    dsl_value *items = arena_array(fl->a, dsl_value, e->items.count);
    bool ok = true;
    for (int64_t i = 0; i < e->items.count; i++) {
        const syntax_expr *item = e->items.items[i];
        items[i] =
            item->kind == SYNTAX_STARRED ? unsupported(fl, item, NULL, "Starred") : eval(fl, item);
        ok = ok && items[i].kind != VALUE_POISON;
    }
    if (!ok)
        return poison();
    return tuple_value(items, (int32_t)e->items.count, e->span);
}

/* ---- all of them ---- */

dsl_value eval_into(lowering *fl, const syntax_expr *e, int64_t target)
{
    switch (e->kind) {
    case SYNTAX_NAME: return eval_name(fl, e);
    case SYNTAX_INT:
        if (e->overflow)
            return report(fl->fe, DIAG_BAD_SCALAR, e->span, "use a smaller number",
                          "the number does not fit 64 bits");
        return e->is_unsigned ? literal_uint(fl->a, (uint64_t)e->integer, e->span)
                              : literal_int(fl->a, e->integer, e->span);
    case SYNTAX_FLOAT: return literal_float(fl->a, e->real, e->span);
    case SYNTAX_BOOL: return literal_bool(fl->a, e->integer != 0, e->span);
    case SYNTAX_NONE: return (dsl_value){.kind = VALUE_NONE, .span = e->span};
    case SYNTAX_STRING: return string_value(e->text, e->span);
    case SYNTAX_ATTRIBUTE: return eval_attribute(fl, e);
    case SYNTAX_CALL: return eval_call(fl, e, target);
    case SYNTAX_SUBSCRIPT: return eval_subscript(fl, e, target);
    case SYNTAX_TUPLE:
    case SYNTAX_LIST: return eval_items(fl, e);
    case SYNTAX_UNARY: return eval_unary(fl, e, target);
    case SYNTAX_BINARY: return eval_binary(fl, e, target);
    case SYNTAX_COMPARE: return eval_comparison(fl, e);
    case SYNTAX_BOOLOP: return eval_logic(fl, e);
    case SYNTAX_IFEXP: return lower_conditional(fl, e, target);
    case SYNTAX_STARRED: return unsupported(fl, e, NULL, "Starred");
    case SYNTAX_COMPREHENSION:
        return unsupported(fl, e, "only deps= takes one; elsewhere write a loop", "ListComp");
    case SYNTAX_SLICE: return unsupported(fl, e, NULL, "Slice");
    case SYNTAX_OTHER: return unsupported(fl, e, NULL, e->text);
    }
    return poison();
}

bool eval_integer(lowering *fl, const syntax_expr *e, const char *what, dsl_value *v)
{
    *v = eval(fl, e);
    if (v->kind == VALUE_POISON)
        return false;
    if (v->kind == VALUE_SCALAR && is_beyond_index(v->expr)) {
        report(fl->fe, DIAG_BAD_SCALAR, e->span, "use a smaller number",
               "%s: %s does not fit index", what, constant_text(fl->a, v->expr));
        return false;
    }
    if (v->kind == VALUE_SCALAR && ir_is_integer(v->expr->dtype))
        return true;
    report(fl->fe, DIAG_BAD_SCALAR, e->span, "convert it: pl.cast(x, pl.INDEX)",
           "%s must be an integer scalar, not %s", what, describe(fl->a, v));
    return false;
}
