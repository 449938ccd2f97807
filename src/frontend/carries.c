/* Explicit carries, `for i, (a, b) in pl.range(n, init_values=(x, y)):`, and pl.while_.
 *
 * They are assignments a, b = x, y before the loop, a, b = e1, e2 in place of `r, s = pl.yield_(e1, e2)`, and
 * r, s = a, b behind it. All other names of such a body live in it only: they are hidden, with their storage,
 * while the loop is lowered like any other (loops.c). */
#include "frontend/calls.h"
#include "frontend/expressions.h"
#include "frontend/loops_internal.h"
#include "frontend/statements.h"

#include <string.h>

/* The part of the target that holds the carried values: (a, b) of `i, (a, b)`, all of it for
 * pl.while_. NULL after reporting. */
static const syntax_expr *carried_target(lowering *fl, const syntax_stmt *s, const iterator *range)
{
    const syntax_expr *target = s->target;
    bool is_while = range->kind == ITERATOR_WHILE;
    const char *form = is_while ? "write `for (a, b) in pl.while_(init_values=(x, y)):`"
                                : "write `for i, (a, b) in pl.range(n, init_values=(x, y)):`";
    if (!syntax_is_sequence(target)) {
        bad_loop(fl, target->span, form,
                 "the loop target must be a tuple when init_values is used");
        return NULL;
    }
    const syntax_expr *names = target;
    if (!is_while) {
        bool shaped = target->items.count == 2 && target->items.items[0]->kind == SYNTAX_NAME &&
                      syntax_is_sequence(target->items.items[1]);
        if (!shaped) {
            bad_loop(fl, target->span, form, "the loop target must be `i, (a, b)`");
            return NULL;
        }
        names = target->items.items[1];
    }
    for (int64_t i = 0; i < names->items.count; i++) {
        if (names->items.items[i]->kind != SYNTAX_NAME) {
            bad_loop(fl, names->items.items[i]->span, form,
                     "the loop target must be made of variable names");
            return NULL;
        }
    }
    const syntax_expr *const counter = is_while ? NULL : target->items.items[0];
    for (int64_t i = 0; counter != NULL && i < names->items.count; i++) {
        if (strcmp(names->items.items[i]->text, counter->text) == 0 &&
            strcmp(counter->text, "_") != 0) {
            report(fl->fe, DIAG_BAD_ASSIGNMENT, names->items.items[i]->span,
                   "give the counter another name",
                   "conflicting bindings: '%s' is named for two values", counter->text);
            return NULL;
        }
    }
    if (!check_named_once(fl, names))
        return NULL;
    if (names->items.count == range->init_values->items.count)
        return names;
    bad_loop(fl, names->span, form,
             arena_printf(fl->a, "Mismatch: %lld names take %lld init_values",
                          (long long)names->items.count,
                          (long long)range->init_values->items.count));
    return NULL;
}

/* The names of `r, s = pl.yield_(...)`; none for another statement. */
static void yield_targets(lowering *fl, const syntax_stmt *s, name_set *names)
{
    if (s->kind != SYNTAX_ASSIGN || !calls_path(fl, s->value, "pl.yield_"))
        return;
    for (int64_t i = 0; syntax_is_sequence(s->target) && i < s->target->items.count; i++) {
        const syntax_expr *item = s->target->items.items[i];
        if (item->kind == SYNTAX_NAME)
            vec_push(fl->a, names, binding_find(fl, item->text));
    }
    if (s->target->kind == SYNTAX_NAME)
        vec_push(fl->a, names, binding_find(fl, s->target->text));
}

/* What a name was outside the body that it is local to. */
typedef struct shadow {
    int64_t name;
    name_storage storage;
    binding *b;
} shadow;
typedef VEC(shadow) shadow_list;

static void hide(lowering *fl, const name_set *names, shadow_list *shadows)
{
    for (int64_t i = 0; i < names->count; i++) {
        int64_t name = names->items[i];
        shadow hidden = {name, fl->names.storage[name], fl->names.bindings[name]};
        vec_push(fl->a, shadows, hidden);
        fl->names.storage[name] = (name_storage){0};
    }
}

static void unhide(lowering *fl, const shadow_list *shadows)
{
    for (int64_t i = 0; i < shadows->count; i++) {
        const shadow *hidden = &shadows->items[i];
        fl->names.storage[hidden->name] = hidden->storage;
        binding_set(fl, hidden->name, hidden->b);
    }
}

/* The names of a body with explicit carries that nobody outside it knows. */
static void local_names(lowering *fl, const loop *l, const carry_frame *carries, name_set *locals)
{
    name_set bound = {0};
    name_set results = {0};
    names_bound(fl, &l->body, &bound);
    for (int64_t i = 0; i < l->body.count; i++)
        yield_targets(fl, l->body.items[i], &results);
    for (int64_t i = 0; i < bound.count; i++) {
        if (!name_set_has(&results, bound.items[i]) && bound.items[i] != l->target)
            name_set_add(fl->a, locals, bound.items[i]);
    }
    for (int32_t i = 0; i < carries->count; i++)
        name_set_add(fl->a, locals, carries->names[i]);
}

/* pl.while_: the condition is the first statement. */
static bool take_condition(lowering *fl, const syntax_stmt *s, loop *l)
{
    const syntax_stmt *first = s->body.count > 0 ? s->body.items[0] : NULL;
    bool found =
        first != NULL && first->kind == SYNTAX_EXPR && calls_path(fl, first->value, "pl.cond");
    if (!found || first->value->items.count != 1 || first->value->keywords.count != 0)
        return bad_loop(fl, first != NULL ? first->span : s->span, "write pl.cond(i < n)",
                        "the body of a pl.while_ loop must start with pl.cond(condition)");
    l->condition = first->value->items.items[0];
    l->body = (syntax_block){.items = s->body.items + 1, .count = s->body.count - 1};
    return true;
}

/* A pl.yield_ of another number of names has been reported. */
static void bind_results(lowering *fl, const syntax_stmt *yield, const dsl_value *values,
                         int32_t count)
{
    name_set names = {0};
    yield_targets(fl, yield, &names);
    for (int64_t i = 0; i < names.count; i++)
        assign_name(fl, names.items[i], names.count == count ? values[i] : poison(), yield->span);
}

/* In a wrapper None is a task that the loop may carry another one for. */
static dsl_value tasks_of_none(lowering *fl, dsl_value init)
{
    dsl_value *items = arena_array(fl->a, dsl_value, init.count + 1);
    if (init.kind != VALUE_TUPLE || fl->ir->plane != PLD_PLANE_CHIP)
        return init;
    for (int32_t i = 0; i < init.count; i++)
        items[i] = init.items[i].kind == VALUE_NONE ? no_task(fl->a, init.span) : init.items[i];
    init.items = items;
    return init;
}

void lower_carrying(lowering *fl, const syntax_stmt *s, const iterator *range)
{
    loop l = {.syntax = s, .body = s->body, .range = *range, .target = -1};
    dsl_value init = eval(fl, range->init_values);
    const syntax_expr *names = carried_target(fl, s, range);
    if (names == NULL || (range->kind == ITERATOR_WHILE && !take_condition(fl, s, &l)))
        return;
    carry_frame carries = {.count = (int32_t)names->items.count};
    int64_t *indices = arena_array(fl->a, int64_t, carries.count);
    for (int32_t i = 0; i < carries.count; i++)
        indices[i] = binding_find(fl, names->items.items[i]->text);
    carries.names = indices;
    l.carries = &carries;
    l.no_jumps = jump_refusal(range->kind);
    if (range->kind != ITERATOR_WHILE) {
        l.target = binding_find(fl, s->target->items.items[0]->text);
        l.target_span = s->target->items.items[0]->span;
    }
    name_set locals = {0};
    shadow_list shadows = {0};
    local_names(fl, &l, &carries, &locals);
    l.range.stop = fixed_bound(fl, &locals, l.range.stop);
    l.range.step = fixed_bound(fl, &locals, l.range.step);
    if (init.kind == VALUE_TUPLE)
        init = settle(fl, init);
    init = tasks_of_none(fl, init);
    hide(fl, &locals, &shadows);
    for (int32_t i = 0; i < carries.count; i++) {
        assign_name(fl, indices[i], init.kind == VALUE_TUPLE ? init.items[i] : poison(), s->span);
        name_set_add(fl->a, &l.assigned, indices[i]);
    }
    lower_loop(fl, &l);
    dsl_value *values = arena_array(fl->a, dsl_value, carries.count);
    for (int32_t i = 0; i < carries.count && !fl->terminated; i++)
        values[i] = binding_read(fl, indices[i], s->span);
    unhide(fl, &shadows);
    if (carries.yield != NULL && !fl->terminated)
        bind_results(fl, carries.yield, values, carries.count);
}

static int64_t target_count(const syntax_stmt *s)
{
    return syntax_is_sequence(s->target) ? s->target->items.count : 1;
}

bool lower_yield(lowering *fl, const syntax_stmt *s)
{
    if (!calls_path(fl, s->value, "pl.yield_") || fl->in_branch)
        return false;
    carry_frame *carries = fl->carries;
    int64_t count = s->value->items.count;
    if (carries == NULL)
        return !bad_loop(fl, s->span, "assign the value: names carry it by themselves",
                         "pl.yield_ stands in an if, or in a loop with init_values");
    if (s->kind != SYNTAX_ASSIGN)
        return !bad_loop(fl, s->span, "write result = pl.yield_(value)",
                         "a loop with init_values requires an assignment-form pl.yield_");
    carries->yield = s;
    if (syntax_is_sequence(s->target) && !check_named_once(fl, s->target))
        return true;
    if (count != carries->count || count != target_count(s))
        return !bad_loop(
            fl, s->span, NULL,
            arena_printf(fl->a,
                         "Mismatch: pl.yield_ gives %lld values to %lld names, and the loop "
                         "has %d init_values",
                         (long long)count, (long long)target_count(s), carries->count));
    dsl_value *values = arena_array(fl->a, dsl_value, count);
    for (int64_t i = 0; i < count; i++) {
        dsl_value v = eval(fl, s->value->items.items[i]);
        values[i] = count > 1 ? settle(fl, v) : v;
    }
    for (int64_t i = 0; i < count; i++)
        assign_name(fl, carries->names[i], values[i], s->span);
    return true;
}
