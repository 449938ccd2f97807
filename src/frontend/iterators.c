/* What stands behind `in` of a for statement: pl.range and its relatives, and their arguments.
 *
 * pl.parallel, pl.unroll and pl.pipeline mean the same loop as pl.range here; they differ in what they
 * accept. pl.while_ has no bounds: its condition is the first statement of the body (loops.c). */
#include "frontend/expressions.h"
#include "frontend/loops.h"
#include "frontend/lower.h"
#include "frontend/names.h"

#include "ops/dtypes.h"

#include <string.h>

typedef struct iterator_row {
    const char *path;
    iterator_kind kind;
} iterator_row;

static const iterator_row rows[] = {
    {"pl.range", ITERATOR_RANGE},   {"pl.parallel", ITERATOR_PARALLEL},
    {"pl.unroll", ITERATOR_UNROLL}, {"pl.pipeline", ITERATOR_PIPELINE},
    {"pl.while_", ITERATOR_WHILE},
};

/* The arguments as they are written. */
typedef struct written {
    const iterator_row *row;
    const syntax_expr *bounds[3]; /* start, stop, step */
    const syntax_expr *stage;
    const syntax_expr *init_values;
    pypto_span init_span;
} written;

/* The dotted name of an object of pypto that e spells, NULL for anything else; reports nothing. */
static const char *spelled_path(lowering *fl, const syntax_expr *e)
{
    if (e->kind == SYNTAX_ATTRIBUTE) {
        const char *base = spelled_path(fl, e->a);
        return base == NULL ? NULL : arena_printf(fl->a, "%s.%s", base, e->text);
    }
    if (e->kind != SYNTAX_NAME || binding_find(fl, e->text) >= 0)
        return NULL;
    const name_value *v = resolve_name(fl->fe, fl->function, e->text);
    return v->kind == NAME_PATH ? v->text : NULL;
}

const char *called_path(lowering *fl, const syntax_expr *e)
{
    if (e == NULL || e->kind != SYNTAX_CALL)
        return NULL;
    const char *spelled = spelled_path(fl, e->a);
    if (spelled == NULL)
        return NULL;
    dsl_value v = path_value(fl->a, spelled, e->span);
    return v.kind == VALUE_PATH ? v.text : NULL;
}

bool calls_path(lowering *fl, const syntax_expr *e, const char *path)
{
    const char *called = called_path(fl, e);
    return called != NULL && strcmp(called, path) == 0;
}

bool bad_loop(lowering *fl, pypto_span span, const char *hint, const char *message)
{
    report(fl->fe, DIAG_BAD_LOOP, span, hint, "%s", message);
    return false;
}

static const iterator_row *find_iterator(lowering *fl, const syntax_expr *e)
{
    const char *hint = "write `for i in pl.range(n):`";
    if (e->kind != SYNTAX_CALL) {
        report(fl->fe, DIAG_BAD_LOOP, e->span, hint, "a for loop must use pl.range()");
        return NULL;
    }
    dsl_value callee = eval(fl, e->a);
    if (callee.kind == VALUE_POISON)
        return NULL;
    for (size_t i = 0; callee.kind == VALUE_PATH && i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(callee.text, rows[i].path) == 0)
            return &rows[i];
    }
    report(fl->fe, DIAG_BAD_LOOP, e->a->span, hint, "a for loop must use pl.range(), not %s",
           callee.kind == VALUE_PATH   ? callee.text
           : e->a->kind == SYNTAX_NAME ? e->a->text
                                       : describe(fl->a, &callee));
    return NULL;
}

static bool bad_keyword(lowering *fl, const written *w, const syntax_keyword *k)
{
    static const char *const obsolete[] = {"chunk", "chunk_policy", "chunk_size", "unroll"};
    for (size_t i = 0; i < sizeof obsolete / sizeof obsolete[0]; i++) {
        if (strcmp(k->name, obsolete[i]) == 0)
            return bad_loop(fl, k->span, "leave it out",
                            arena_printf(fl->a, "%s does not accept '%s='", w->row->path, k->name));
    }
    return bad_loop(
        fl, k->span, NULL,
        arena_printf(fl->a, "Unknown keyword argument '%s' of %s", k->name, w->row->path));
}

static bool bind_keyword(lowering *fl, written *w, const syntax_keyword *k)
{
    static const char *const names[] = {"start", "stop", "step"};
    if (k->name == NULL)
        return bad_loop(fl, k->span, NULL,
                        arena_printf(fl->a, "%s does not accept **kwargs", w->row->path));
    if (strcmp(k->name, "stage") == 0 && w->row->kind != ITERATOR_PIPELINE)
        return bad_loop(fl, k->span, NULL, "stage= is only supported on pl.pipeline");
    const syntax_expr **at = strcmp(k->name, "init_values") == 0 ? &w->init_values
                             : strcmp(k->name, "stage") == 0     ? &w->stage
                                                                 : NULL;
    for (int n = 0; at == NULL && w->row->kind != ITERATOR_WHILE && n < 3; n++)
        at = strcmp(names[n], k->name) == 0 ? &w->bounds[n] : NULL;
    if (at == NULL)
        return bad_keyword(fl, w, k);
    if (*at != NULL)
        return bad_loop(
            fl, k->span, NULL,
            arena_printf(fl->a, "%s got multiple values for argument '%s'", w->row->path, k->name));
    if (at == &w->init_values)
        w->init_span = k->span;
    *at = k->value;
    return true;
}

/* range(stop), range(start, stop), range(start, stop, step), each also by keyword. */
static bool bind(lowering *fl, const syntax_expr *e, written *w)
{
    int64_t count = e->items.count;
    if (w->row->kind == ITERATOR_WHILE && count > 0)
        return bad_loop(fl, e->span, "the condition is the body's first statement: pl.cond(...)",
                        "pl.while_ takes init_values= only");
    if (count > 3)
        return bad_loop(fl, e->span, NULL,
                        arena_printf(fl->a, "%s takes 1 to 3 arguments, not %lld", w->row->path,
                                     (long long)count));
    for (int64_t i = 0; i < count; i++) {
        if (e->items.items[i]->kind == SYNTAX_STARRED)
            return bad_loop(fl, e->items.items[i]->span, "write the arguments one by one",
                            arena_printf(fl->a, "%s does not accept *args", w->row->path));
        w->bounds[count == 1 ? 1 : i] = e->items.items[i];
    }
    for (int64_t i = 0; i < e->keywords.count; i++) {
        if (!bind_keyword(fl, w, &e->keywords.items[i]))
            return false;
    }
    if (w->row->kind == ITERATOR_WHILE && w->init_values == NULL)
        return bad_loop(fl, e->span, "or write `while condition:`",
                        "pl.while_ requires init_values=");
    if (w->row->kind != ITERATOR_WHILE && w->bounds[1] == NULL)
        return bad_loop(fl, e->span, NULL,
                        arena_printf(fl->a, "%s requires at least 1 argument", w->row->path));
    if (w->init_values != NULL && w->init_values->kind != SYNTAX_TUPLE &&
        w->init_values->kind != SYNTAX_LIST)
        return bad_loop(fl, w->init_span, "write init_values=(a, b), or (a,) for one",
                        "init_values must be a list or tuple");
    if (w->init_values != NULL && w->row->kind == ITERATOR_UNROLL)
        return bad_loop(fl, w->init_span, "use pl.range",
                        "pl.unroll cannot be combined with init_values");
    return true;
}

static bool bound(lowering *fl, const syntax_expr *e, const char *what, const ir_expr **result)
{
    dsl_value v;
    if (e == NULL)
        return true;
    if (!eval_integer(fl, e, what, &v))
        return false;
    *result = as_index(fl->a, v.expr, e->span);
    return true;
}

static bool surely_runs(const iterator *it)
{
    int64_t start = 0;
    int64_t stop = 0;
    int64_t step = 0;
    if (!ir_is_const_int(it->start, &start) || !ir_is_const_int(it->stop, &stop) ||
        !ir_is_const_int(it->step, &step))
        return false;
    return step > 0 ? start < stop : start > stop;
}

static bool is_world_size(const lowering *fl, const ir_expr *e)
{
    if (e->kind == IR_OP)
        return e->op_def->id == OP_WORLD_SIZE;
    for (int64_t i = 0; e->kind == IR_VAR && i < fl->notes->world_sizes.count; i++) {
        if (fl->notes->world_sizes.items[i] == e->var)
            return true;
    }
    return false;
}

/* A domain has at least one rank. */
static bool is_rank_count(const lowering *fl, const ir_expr *e)
{
    while (e->kind == IR_CONVERT)
        e = e->a;
    if (e->kind == IR_OP)
        return e->op_def->id == OP_NRANKS;
    for (int64_t i = 0; e->kind == IR_VAR && i < fl->notes->rank_counts.count; i++) {
        if (fl->notes->rank_counts.items[i] == e->var)
            return true;
    }
    return false;
}

static bool check_stage(lowering *fl, const syntax_expr *e, const written *w)
{
    if (w->row->kind != ITERATOR_PIPELINE)
        return true;
    if (w->stage == NULL)
        return bad_loop(fl, e->span, "write stage=2", "pl.pipeline requires stage=");
    dsl_value v;
    int64_t stage = 0;
    if (!eval_integer(fl, w->stage, "stage", &v))
        return false;
    if (!ir_is_const_int(v.expr, &stage))
        return bad_loop(fl, w->stage->span, NULL, "stage must be a compile-time constant");
    return stage >= 1 || bad_loop(fl, w->stage->span, NULL, "stage must be >= 1");
}

static bool check_bounds(lowering *fl, const syntax_expr *e, const written *w, const iterator *it)
{
    int64_t number = 0;
    bool constant = ir_is_const_int(it->start, &number) && ir_is_const_int(it->stop, &number) &&
                    ir_is_const_int(it->step, &number);
    if (w->row->kind == ITERATOR_UNROLL && !constant)
        return bad_loop(fl, e->span, "use pl.range for bounds that are known at run time only",
                        "pl.unroll needs compile-time constant integer bounds");
    if (ir_is_const_int(it->step, &number) && number == 0)
        return bad_loop(fl, w->bounds[2]->span, NULL,
                        arena_printf(fl->a, "%s: step cannot be zero", w->row->path));
    return true;
}

iterator lower_iterator(lowering *fl, const syntax_expr *e)
{
    iterator it = {.start = ir_int(fl->a, 0), .stop = ir_int(fl->a, 0), .step = ir_int(fl->a, 1)};
    written w = {.row = find_iterator(fl, e)};
    if (w.row == NULL || !bind(fl, e, &w))
        return it;
    it.kind = w.row->kind;
    it.init_values = w.init_values;
    it.ok = bound(fl, w.bounds[0], "start", &it.start);
    it.ok = bound(fl, w.bounds[1], "stop", &it.stop) && it.ok;
    it.ok = bound(fl, w.bounds[2], "step", &it.step) && it.ok;
    it.ok = it.ok && check_stage(fl, e, &w) && check_bounds(fl, e, &w, &it);
    int64_t start = 0;
    int64_t step = 0;
    bool upwards = it.ok && it.kind != ITERATOR_WHILE && ir_is_const_int(it.start, &start) &&
                   start == 0 && ir_is_const_int(it.step, &step) && step > 0;
    it.over_world = upwards && step == 1 && is_world_size(fl, it.stop);
    it.surely_runs = it.over_world || (upwards && is_rank_count(fl, it.stop)) || surely_runs(&it);
    return it;
}
