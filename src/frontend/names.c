/* What a name means that is not the function's own: asked of the embedder once per (function, name),
 * remembered, and recorded as a fact on which the compiled program depends.
 *
 * pypto's own objects arrive as canonical dotted names ("pl.load", "pld.NotifyOp"), whatever the script
 * calls its modules, so `import pypto.language as anything` works. Attributes are appended to the
 * dotted name, and path_value() says what the whole stands for. */
#include "frontend/names.h"
#include "frontend/lower.h"
#include "frontend/scalars.h"
#include "frontend/signature.h"

#include "ops/dtypes.h"

#include <string.h>

/* ---- facts ---- */

static void add_value_text(text *out, const name_value *v)
{
    switch (v->kind) {
    case NAME_UNDEFINED: text_add(out, "undefined"); break;
    case NAME_INT: text_printf(out, "int %lld", (long long)v->integer); break;
    case NAME_UINT: text_printf(out, "int %llu", (unsigned long long)v->integer); break;
    case NAME_BOOL: text_printf(out, "bool %d", v->integer != 0); break;
    case NAME_FLOAT: {
        /* The bits: exact, and no printf depends on the locale. */
        uint64_t bits = 0;
        memcpy(&bits, &v->real, sizeof bits);
        text_printf(out, "float 0x%016llx", (unsigned long long)bits);
        break;
    }
    case NAME_NONE: text_add(out, "none"); break;
    case NAME_STRING:
        text_add(out, "string ");
        text_quoted(out, v->text);
        break;
    case NAME_PATH: text_printf(out, "path %s", v->text); break;
    case NAME_DYNAMIC: text_printf(out, "dynamic %s", v->text); break;
    case NAME_FUNCTION: text_printf(out, "function %s", v->text == NULL ? "" : v->text); break;
    case NAME_LIST:
        text_add(out, "list [");
        for (int32_t i = 0; i < v->count; i++) {
            text_add(out, i == 0 ? "" : ", ");
            add_value_text(out, &v->items[i]);
        }
        text_add(out, "]");
        break;
    case NAME_TYPE:
        text_printf(out, "type %s[", v->text);
        for (int32_t i = 0; i < v->count; i++) {
            text_add(out, i == 0 ? "" : ", ");
            add_value_text(out, &v->items[i]);
        }
        text_add(out, "]");
        break;
    case NAME_DIM:
        text_add(out, "dim (");
        add_value_text(out, &v->items[0]);
        text_printf(out, " %s ", v->text);
        add_value_text(out, &v->items[1]);
        text_add(out, ")");
        break;
    case NAME_OTHER: text_printf(out, "other %s", v->text); break;
    }
}

const char *name_value_text(arena *a, const name_value *v)
{
    text out = {.a = a};
    add_value_text(&out, v);
    return out.bytes;
}

const name_value *resolve_name(frontend *fe, int32_t function, const char *name)
{
    const char *key = arena_printf(fe->a, "%d %s", function, name);
    name_value *answer = map_get(&fe->answers, key);
    if (answer != NULL)
        return answer;
    answer = arena_new(fe->a, name_value);
    *answer = fe->embedder->resolve(fe->embedder->context, fe->a, function, name);
    map_set(&fe->answers, key, answer);
    frontend_fact fact = {function, arena_strdup(fe->a, name), name_value_text(fe->a, answer)};
    vec_push(fe->a, &fe->result->facts, fact);
    return answer;
}

/* ---- dotted paths ---- */

static pypto_dtype dtype_named(const char *name)
{
    for (int32_t i = 0; i < PYPTO_DTYPE_COUNT; i++) {
        if (strcmp(dtype_spelling((pypto_dtype)i), name) == 0)
            return (pypto_dtype)i;
    }
    return PYPTO_DTYPE_COUNT;
}

/* `import pypto.language` without an alias: the modules' full names become the short ones. */
static const char *short_path(arena *a, const char *path)
{
    static const struct {
        const char *full;
        const char *brief;
    } modules[] = {
        {"pypto.language.distributed", "pld"},
        {"pypto.language", "pl"},
        {"pl.distributed", "pld"},
        {"pl.Mem", "pl.MemorySpace"},
        {"pld.AtomicType", "pl.AtomicType"},
        {"pl.ND", "pl.TensorLayout.ND"},
        {"pl.DN", "pl.TensorLayout.DN"},
        {"pl.NZ", "pl.TensorLayout.NZ"},
        {"pl.MX_A_ZZ", "pl.TensorLayout.MX_A_ZZ"},
        {"pl.MX_B_NN", "pl.TensorLayout.MX_B_NN"},
    };
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++) {
        size_t length = strlen(modules[i].full);
        if (strncmp(path, modules[i].full, length) == 0 &&
            (path[length] == '.' || path[length] == '\0'))
            return arena_printf(a, "%s%s", modules[i].brief, path + length);
    }
    return path;
}

/* "pld.NotifyOp.Set" */
static bool is_member(const char *path, const enum_member *m)
{
    const char *const words[] = {m->module, m->enumeration, m->member};
    for (int i = 0; i < 3; i++) {
        size_t length = strlen(words[i]);
        if (strncmp(path, words[i], length) != 0 || path[length] != (i < 2 ? '.' : '\0'))
            return false;
        path += length + 1;
    }
    return true;
}

dsl_value path_value(arena *a, const char *path, pypto_span span)
{
    path = short_path(a, path);
    if (strncmp(path, "pl.", 3) == 0) {
        pypto_dtype dtype = dtype_named(path + 3);
        if (dtype != PYPTO_DTYPE_COUNT)
            return (dsl_value){.kind = VALUE_DTYPE, .dtype = dtype, .span = span};
    }
    int32_t count = 0;
    const enum_member *members = enum_members(&count);
    for (int32_t i = 0; i < count; i++) {
        const enum_member *m = &members[i];
        if (is_member(path, m))
            return (dsl_value){
                .kind = VALUE_ENUM, .text = m->enumeration, .integer = m->value, .span = span};
    }
    return (dsl_value){.kind = VALUE_PATH, .text = path, .span = span};
}

/* ---- names ---- */

static dsl_value value_of(lowering *fl, const name_value *v, pypto_span span)
{
    arena *a = fl->a;
    switch (v->kind) {
    case NAME_UNDEFINED: return poison();
    case NAME_INT: return literal_int(a, v->integer, span);
    case NAME_UINT: return literal_uint(a, (uint64_t)v->integer, span);
    case NAME_FLOAT: return literal_float(a, v->real, span);
    case NAME_BOOL: return literal_bool(a, v->integer != 0, span);
    case NAME_NONE: return (dsl_value){.kind = VALUE_NONE, .span = span};
    case NAME_STRING: return string_value(v->text, span);
    case NAME_PATH: return path_value(a, v->text, span);
    case NAME_DYNAMIC: {
        const ir_expr *symbol = symbol_expr(fl, v->text, span);
        return symbol == NULL ? poison() : scalar_value(symbol, span);
    }
    case NAME_FUNCTION:
        return (dsl_value){.kind = VALUE_FUNCTION, .integer = v->function, .span = span};
    case NAME_LIST: {
        dsl_value *items = arena_array(a, dsl_value, v->count);
        for (int32_t i = 0; i < v->count; i++)
            items[i] = value_of(fl, &v->items[i], span);
        return tuple_value(items, v->count, span);
    }
    case NAME_TYPE: return (dsl_value){.kind = VALUE_OTHER, .text = "Annotation", .span = span};
    case NAME_DIM: {
        dsl_value x = value_of(fl, &v->items[0], span);
        dsl_value y = value_of(fl, &v->items[1], span);
        bool ok = x.kind == VALUE_SCALAR && y.kind == VALUE_SCALAR;
        return ok ? scalar_binary(fl, v->text, x, y, span) : poison();
    }
    case NAME_OTHER: return (dsl_value){.kind = VALUE_OTHER, .text = v->text, .span = span};
    }
    return poison();
}

dsl_value outer_name(lowering *fl, const char *name, pypto_span span)
{
    const name_value *v = resolve_name(fl->fe, fl->function, name);
    if (v->kind != NAME_UNDEFINED)
        return value_of(fl, v, span);
    const char *near = nearest_word(name, fl->names.names, fl->names.count);
    return report(fl->fe, DIAG_UNDEFINED_NAME, span,
                  near != NULL ? arena_printf(fl->a, "did you mean '%s'?", near)
                               : "define it in this function, or before it in the module",
                  "Undefined variable '%s'", name);
}

/* The dotted name that the expression spells when its first part is none of the function's own
 * names; NULL otherwise. */
static const char *spelled(lowering *fl, const syntax_expr *e)
{
    if (e->kind == SYNTAX_NAME)
        return binding_find(fl, e->text) < 0 ? e->text : NULL;
    const char *base = e->kind == SYNTAX_ATTRIBUTE ? spelled(fl, e->a) : NULL;
    return base == NULL ? NULL : arena_printf(fl->a, "%s.%s", base, e->text);
}

static bool is_self(const lowering *fl, const syntax_expr *e)
{
    return fl->syntax->program != NULL && e->kind == SYNTAX_NAME && strcmp(e->text, "self") == 0;
}

const name_value *outer_meaning(lowering *fl, const syntax_expr *e)
{
    const char *name = spelled(fl, e);
    if (name == NULL || is_self(fl, e))
        return NULL;
    if (e->kind == SYNTAX_NAME || is_self(fl, e->a))
        return resolve_name(fl->fe, fl->function, name);
    const name_value *base = outer_meaning(fl, e->a);
    if (base == NULL)
        return NULL;
    if (base->kind == NAME_OTHER)
        return resolve_name(fl->fe, fl->function, name);
    name_value *member = arena_new(fl->a, name_value);
    *member = (name_value){.kind = NAME_PATH};
    if (base->kind != NAME_PATH)
        return NULL;
    member->text = arena_printf(fl->a, "%s.%s", base->text, e->text);
    return member;
}

bool outer_member(lowering *fl, const syntax_expr *e, dsl_value *v)
{
    if (e->kind != SYNTAX_ATTRIBUTE)
        return false;
    bool sibling = is_self(fl, e->a);
    const name_value *base = sibling ? NULL : outer_meaning(fl, e->a);
    if (!sibling && (base == NULL || base->kind != NAME_OTHER))
        return false;
    const name_value *member = outer_meaning(fl, e);
    if (member == NULL)
        return false;
    if (member->kind != NAME_UNDEFINED)
        *v = value_of(fl, member, e->span);
    else if (sibling)
        *v = report(fl->fe, DIAG_UNDEFINED_NAME, e->span,
                    "methods are called as self.name(...); write it in the same class",
                    "'%s' is not defined in program '%s'", e->text, fl->syntax->program);
    else if (member->text != NULL)
        *v = report(fl->fe, DIAG_SCRIPT_RAISED, e->span, NULL, "Failed to parse function '%s': %s",
                    fl->syntax->name, member->text);
    else
        *v =
            report(fl->fe, DIAG_UNDEFINED_NAME, e->span,
                   "give it one before the function, or correct the name",
                   "Undefined variable '%s': %s has no such attribute", e->text, spelled(fl, e->a));
    return true;
}
