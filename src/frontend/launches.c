/* How a wrapper submits a task, beyond its arguments: which tasks come before it (deps=), how many blocks it
 * has, whether it runs at all (predicate=), which arguments order nothing (pl.no_dep, no_dep_args=), and who
 * learns its id (`as tid`, pl.submit).
 *
 * Ids are scalars of dtype TASK_ID; None is the id of no task. A name that deps= mentions may get its id
 * later, or on another path: what was never assigned counts as None. Such a name has a variable that the
 * function clears at its head (lowering.late_vars).
 *
 * The next call takes a request (lowering.launch), so that pl.submit and pl.spmd need not know how calls
 * are bound. */
#include "frontend/calls.h"
#include "frontend/expressions.h"
#include "frontend/loops.h"
#include "frontend/lower.h"
#include "frontend/scopes.h"
#include "frontend/subscripts.h"

#include "base/bits.h"
#include "ops/dtypes.h"

#include <string.h>

dsl_value no_task(arena *a, pypto_span span)
{
    return scalar_value(ir_int_of(a, 0, PYPTO_TASK_ID), span);
}

/* ---- deps ---- */

typedef VEC(const ir_expr *) task_list;

static bool add_tasks(lowering *fl, const dsl_value *v, task_list *tasks)
{
    if (v->kind == VALUE_POISON)
        return false;
    if (v->kind == VALUE_NONE)
        return true;
    if (v->kind == VALUE_TUPLE) {
        for (int32_t i = 0; i < v->count; i++) {
            if (!add_tasks(fl, &v->items[i], tasks))
                return false;
        }
        return true;
    }
    if (is_array(v) && v->var->type.dtype == PYPTO_TASK_ID) {
        const int64_t count = ir_static_elems(&v->var->type);
        for (int64_t i = 0; i < count; i++) {
            const dsl_value parts[2] = {*v, literal_int(fl->a, i, v->span)};
            const dsl_value element = lower_values(fl, op_get(OP_ARRAY_GET), parts, 2, v->span, -1);
            if (!add_tasks(fl, &element, tasks))
                return false;
        }
        return true;
    }
    if (v->kind == VALUE_SCALAR && v->expr->dtype == PYPTO_TASK_ID) {
        if (v->expr->kind != IR_INT)
            vec_push(fl->a, tasks, v->expr);
        return true;
    }
    report(fl->fe, DIAG_BAD_TASK_ID, v->span,
           "a task's id is what `with pl.at(...) as tid` or pl.submit gives",
           "deps= takes TaskId values, None, and arrays of TASK_ID, not %s", describe(fl->a, v));
    return false;
}

/* The variable of a name that has no id on every path that leads here. */
static const ir_expr *late_task(lowering *fl, int64_t name, pypto_span span)
{
    const ir_type type = ir_scalar_type(PYPTO_TASK_ID);
    ir_var *var = binding_target(fl, name, &type, span);
    for (int64_t i = 0; i < fl->notes->late_vars.count; i++) {
        if (fl->notes->late_vars.items[i] == var)
            return ir_ref(fl->a, var);
    }
    vec_push(fl->a, &fl->notes->late_vars, var);
    return ir_ref(fl->a, var);
}

static bool add_entry(lowering *fl, const syntax_expr *e, const char *own, task_list *tasks)
{
    int64_t name = e->kind == SYNTAX_NAME ? binding_find(fl, e->text) : -1;
    const binding *b = name >= 0 ? fl->names.bindings[name] : NULL;
    const binding_state state = b != NULL ? b->state : BINDING_BOUND;
    const bool open_task =
        b != NULL && b->open && b->v.kind == VALUE_SCALAR && b->v.expr->dtype == PYPTO_TASK_ID;
    if (state == BINDING_UNBOUND && own != NULL && strcmp(own, e->text) == 0)
        return bad_scope(fl, e->span, "assign None to it before, if an earlier task is meant",
                         arena_printf(fl->a,
                                      "a task cannot wait for '%s', which is produced by the "
                                      "task itself",
                                      own));
    if (state == BINDING_UNBOUND || state == BINDING_PARTIAL || open_task) {
        const ir_expr *task = late_task(fl, name, e->span);
        vec_push(fl->a, tasks, task);
        return true;
    }
    const dsl_value v = eval(fl, e);
    return add_tasks(fl, &v, tasks);
}

bool lower_deps(lowering *fl, const syntax_expr *list, const char *own, ir_launch *launch)
{
    task_list tasks = {0};
    bool ok = true;
    if (list == NULL)
        return true;
    if (list->kind == SYNTAX_COMPREHENSION) {
        const dsl_value v = eval_comprehension(fl, list);
        ok = add_tasks(fl, &v, &tasks);
    } else if (list->kind != SYNTAX_LIST) {
        return bad_scope(fl, list->span, "write deps=[first, second]",
                         "deps= must be a list literal");
    } else {
        for (int64_t i = 0; i < list->items.count; i++)
            ok = add_entry(fl, list->items.items[i], own, &tasks) && ok;
    }
    launch->after = tasks.items;
    launch->after_count = (int32_t)tasks.count;
    return ok;
}

/* ---- what else there is to say ---- */

bool check_bool_literal(lowering *fl, const char *word, const char *key, const syntax_expr *e)
{
    return e == NULL || e->kind == SYNTAX_BOOL ||
           bad_scope(fl, e->span, "write True or False",
                     arena_printf(fl->a, "%s: %s must be a boolean literal", word, key));
}

bool lower_name_list(lowering *fl, const char *word, const char *key, const syntax_expr *list,
                     const char *const **names, int32_t *count)
{
    if (list == NULL)
        return true;
    if (list->kind != SYNTAX_LIST)
        return bad_scope(fl, list->span, NULL,
                         arena_printf(fl->a, "%s: %s must be a list literal of names", word, key));
    const char **found = arena_array(fl->a, const char *, list->items.count + 1);
    for (int64_t i = 0; i < list->items.count; i++) {
        const syntax_expr *e = list->items.items[i];
        if (e->kind != SYNTAX_NAME)
            return bad_scope(fl, e->span, "write the name of a tensor",
                             arena_printf(fl->a, "%s: %s takes bare tensor names", word, key));
        for (int64_t k = 0; k < i; k++) {
            if (strcmp(found[k], e->text) != 0)
                continue;
            report(fl->fe, DIAG_BAD_TASK_ID, e->span, "name it once",
                   "%s: %s has '%s' more than once", word, key, e->text);
            return false;
        }
        int64_t name = binding_find(fl, e->text);
        const dsl_value v = name >= 0 ? binding_read(fl, name, e->span) : poison();
        if (name < 0)
            report(fl->fe, DIAG_BAD_TASK_ID, e->span, "name a tensor that is known here",
                   "%s: unknown name '%s' in %s", word, e->text, key);
        else if (v.kind != VALUE_POISON && !is_memory_value(&v))
            return bad_scope(fl, e->span, "write the name of a tensor",
                             arena_printf(fl->a, "%s: %s takes bare tensor names, and '%s' is %s",
                                          word, key, e->text, describe(fl->a, &v)));
        if (name < 0 || v.kind == VALUE_POISON)
            return false;
        found[i] = e->text;
    }
    *names = found;
    *count = (int32_t)list->items.count;
    return true;
}

bool lower_blocks(lowering *fl, const syntax_expr *e, const char *what, ir_launch *launch)
{
    const dsl_value v = eval(fl, e);
    int64_t number = 0;
    if (v.kind == VALUE_POISON)
        return false;
    if (v.kind != VALUE_SCALAR || !ir_is_integer(v.expr->dtype))
        return bad_scope(fl, e->span, "convert it: pl.cast(x, pl.INDEX)",
                         arena_printf(fl->a, "%s must be an integer expression, not %s", what,
                                      describe(fl->a, &v)));
    if (is_beyond_index(v.expr) || (ir_is_const_int(v.expr, &number) && number <= 0))
        return bad_scope(fl, e->span, "at least one block runs",
                         arena_printf(fl->a, "%s must be positive: a positive integer, not %s",
                                      what, constant_text(fl->a, v.expr)));
    launch->blocks = as_index(fl->a, v.expr, e->span);
    return true;
}

static bool compare_operator(const char *word, ir_operator *op)
{
    static const struct {
        const char *word;
        ir_operator op;
    } rows[] = {{"<", IR_LT},  {"<=", IR_LE}, {">", IR_GT},
                {">=", IR_GE}, {"==", IR_EQ}, {"!=", IR_NE}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].word, word) == 0) {
            *op = rows[i].op;
            return true;
        }
    }
    return false;
}

bool lower_predicate(lowering *fl, const syntax_expr *e, ir_launch *launch)
{
    static const char hint[] = "write predicate=(flags[0, 0] > 0)";
    if (e == NULL)
        return true;
    if (e->kind != SYNTAX_COMPARE || e->items.count != 1 ||
        !compare_operator(e->texts.items[0], &launch->compare))
        return bad_scope(fl, e->span, hint, "predicate= must be a single comparison");
    const syntax_expr *element = e->a;
    const dsl_value tensor =
        element->kind == SYNTAX_SUBSCRIPT ? eval(fl, element->a) : (dsl_value){.kind = VALUE_NONE};
    if (tensor.kind == VALUE_POISON)
        return false;
    bool full = is_memory_value(&tensor) && element->items.count == tensor.var->type.ndim;
    for (int64_t i = 0; full && i < element->items.count; i++)
        full = element->items.items[i]->kind != SYNTAX_SLICE;
    if (!full)
        return bad_scope(fl, element->span, hint,
                         "predicate= must compare one tensor element with an integer");
    const ir_expr **indices = arena_array(fl->a, const ir_expr *, element->items.count + 1);
    for (int64_t i = 0; i < element->items.count; i++) {
        dsl_value index;
        if (!eval_integer(fl, element->items.items[i], "an index of predicate=", &index))
            return false;
        indices[i] = as_index(fl->a, index.expr, index.span);
    }
    dsl_value limit;
    if (!eval_integer(fl, e->items.items[0], "what predicate= compares with", &limit))
        return false;
    launch->tested = tensor.var;
    launch->element = indices;
    launch->limit = limit.expr;
    return true;
}

const syntax_expr *without_no_dep(lowering *fl, const syntax_expr *e, bool *independent)
{
    *independent = false;
    if (e == NULL || !calls_path(fl, e, "pl.no_dep"))
        return e;
    if (e->items.count != 1 || e->keywords.count != 0 ||
        e->items.items[0]->kind == SYNTAX_STARRED) {
        bad_scope(fl, e->span, "write pl.no_dep(x)", "pl.no_dep takes exactly one argument");
        return NULL;
    }
    *independent = true;
    return e->items.items[0];
}

bool add_independent(lowering *fl, int64_t argument, pypto_span span, uint64_t *set)
{
    *set |= word_bit(argument);
    return word_bit(argument) != 0 ||
           bad_scope(fl, span,
                     "pass it earlier; what a scope uses is passed in the order of its first use",
                     arena_printf(fl->a,
                                  "pl.no_dep and no_dep_args= are for the first 64 arguments of a "
                                  "task, and this is number %lld",
                                  (long long)argument + 1));
}

/* Whether the script marks the variable for dumps, by pl.dump_tag before or by dumps= of this task. */
static bool is_marked(const lowering *fl, const ir_var *var, const launch_request *request)
{
    for (int64_t i = 0; i < fl->notes->tagged.count; i++) {
        if (fl->notes->tagged.items[i] == var)
            return true;
    }
    for (int32_t i = 0; request != NULL && i < request->marked_count; i++) {
        const binding *b = fl->names.bindings[binding_find(fl, request->marked[i])];
        if (b->v.kind == VALUE_VAR && b->v.var == var)
            return true;
    }
    return false;
}

static uint64_t marked_args(const lowering *fl, const ir_stmt *call, const launch_request *request)
{
    uint64_t marked = 0;
    for (int32_t i = 0; i < call->operand_count; i++) {
        const ir_operand *operand = &call->operands[i];
        if (operand->kind == IR_OPERAND_VAR && is_marked(fl, operand->var, request))
            marked |= word_bit(i);
    }
    return marked;
}

void attach_launch(lowering *fl, ir_stmt *call, launch_request *request, uint64_t independent_args)
{
    if (request != NULL)
        request->call = call;
    if (fl->ir->plane != PLD_PLANE_CHIP)
        return;
    ir_launch launch = request != NULL ? request->launch : (ir_launch){0};
    launch.manual = launch.manual || fl->manual;
    launch.independent_args |= independent_args;
    launch.marked_args = marked_args(fl, call, request);
    bool plain = launch.blocks == NULL && !launch.manual && launch.independent_args == 0 &&
                 launch.marked_args == 0 && launch.after_count == 0 && launch.tested == NULL;
    if (plain)
        return;
    ir_launch *own = arena_new(fl->a, ir_launch);
    *own = launch;
    call->launch = own;
}

ir_var *capture_task(lowering *fl, ir_stmt *call, int64_t name, pypto_span span)
{
    const ir_type type = ir_scalar_type(PYPTO_TASK_ID);
    call->target = binding_target(fl, name, &type, span);
    if (name >= 0)
        bind_name(fl, name, var_value(fl->a, call->target, span), span);
    return call->target;
}

/* ---- pl.submit ---- */

enum { KEY_DEPS, KEY_DUMPS, KEY_EARLY, KEY_PREDICATE, KEY_CORE_NUM, KEY_SYNC_START, SUBMIT_KEYS };
static const char *const submit_keys[] = {
    "deps", "dumps", "allow_early_resolve", "predicate", "core_num", "sync_start", NULL};

/* The call self.k(a, b) of pl.submit(self.k, a, b, deps=[...]); what is not the kernel's goes to `given`. */
static syntax_expr *inner_call(lowering *fl, const syntax_expr *e, bool blocks,
                               const syntax_expr **given)
{
    syntax_expr *call = arena_new(fl->a, syntax_expr);
    *call = (syntax_expr){.kind = SYNTAX_CALL, .span = e->span, .a = e->items.items[0]};
    for (int64_t i = 1; i < e->items.count; i++)
        vec_push(fl->a, &call->items, e->items.items[i]);
    for (int64_t i = 0; i < e->keywords.count; i++) {
        const syntax_keyword *k = &e->keywords.items[i];
        int at = 0;
        while (at < (blocks ? SUBMIT_KEYS : KEY_CORE_NUM) &&
               (k->name == NULL || strcmp(submit_keys[at], k->name) != 0))
            at++;
        if (at < (blocks ? SUBMIT_KEYS : KEY_CORE_NUM))
            given[at] = k->value;
        else
            vec_push(fl->a, &call->keywords, *k);
    }
    return call;
}

static bool read_request(lowering *fl, const char *word, const syntax_expr *e, bool blocks,
                         const syntax_expr *const *given, launch_request *request)
{
    if (blocks && given[KEY_CORE_NUM] == NULL)
        return bad_scope(fl, e->span, "write core_num=n",
                         arena_printf(fl->a, "%s requires core_num=", word));
    return lower_deps(fl, given[KEY_DEPS], NULL, &request->launch) &&
           lower_predicate(fl, given[KEY_PREDICATE], &request->launch) &&
           check_bool_literal(fl, word, submit_keys[KEY_EARLY], given[KEY_EARLY]) &&
           check_bool_literal(fl, word, submit_keys[KEY_SYNC_START], given[KEY_SYNC_START]) &&
           lower_name_list(fl, word, submit_keys[KEY_DUMPS], given[KEY_DUMPS], &request->marked,
                           &request->marked_count) &&
           (!blocks ||
            lower_blocks(fl, given[KEY_CORE_NUM], submit_keys[KEY_CORE_NUM], &request->launch));
}

static bool need_wrapper(lowering *fl, const char *word, pypto_span span)
{
    if (fl->ir->plane == PLD_PLANE_CHIP)
        return true;
    report(fl->fe, DIAG_WRONG_PLANE, span,
           "tasks are submitted by a per-device wrapper (@pl.jit, FunctionType.Orchestration)",
           "'%s' can only be used in a per-device wrapper, outside of pl.at(CORE_GROUP)", word);
    return false;
}

dsl_value lower_submit(lowering *fl, const syntax_expr *e, bool blocks)
{
    const char *word = blocks ? "pl.spmd_submit" : "pl.submit";
    const syntax_expr *given[SUBMIT_KEYS] = {NULL};
    launch_request request = {0};
    dsl_value kernel = {.kind = VALUE_NONE};
    if (!need_wrapper(fl, word, e->span))
        return poison();
    if (e->items.count > 0 && e->items.items[0]->kind != SYNTAX_STARRED)
        kernel = eval(fl, e->items.items[0]);
    if (kernel.kind == VALUE_POISON)
        return kernel;
    if (kernel.kind != VALUE_FUNCTION)
        return report(fl->fe, DIAG_BAD_SCOPE, e->span, "write pl.submit(self.kernel, x, y)",
                      "%s: the first argument must be a kernel of the program, not %s", word,
                      describe(fl->a, &kernel));
    const syntax_expr *call = inner_call(fl, e, blocks, given);
    if (!read_request(fl, word, e, blocks, given, &request))
        return poison();
    fl->launch = &request;
    const dsl_value result = lower_call(fl, (int32_t)kernel.integer, call);
    fl->launch = NULL;
    if (result.kind == VALUE_POISON)
        return result;
    if (request.call == NULL)
        return report(fl->fe, DIAG_BAD_SCOPE, e->span, "submit an in-core function",
                      "%s: an inlined function is no task", word);
    dsl_value *items = arena_array(fl->a, dsl_value, 2);
    items[0] = result;
    items[1] = var_value(fl->a, capture_task(fl, request.call, -1, e->span), e->span);
    return tuple_value(items, 2, e->span);
}

dsl_value lower_join(lowering *fl, const syntax_expr *e)
{
    static const char hint[] = "write tid = pl.system.task_dummy(deps=[first, second])";
    ir_launch *launch = arena_new(fl->a, ir_launch);
    if (!need_wrapper(fl, "pl.system.task_dummy", e->span))
        return poison();
    if (e->items.count > 0)
        return report(fl->fe, DIAG_BAD_TASK_ID, e->span, hint,
                      "pl.system.task_dummy does not accept positional arguments");
    if (e->keywords.count != 1 || e->keywords.items[0].name == NULL ||
        strcmp(e->keywords.items[0].name, "deps") != 0)
        return report(fl->fe, DIAG_BAD_TASK_ID, e->span, hint,
                      "pl.system.task_dummy requires keyword argument 'deps', and no other");
    if (!lower_deps(fl, e->keywords.items[0].value, NULL, launch))
        return poison();
    ir_stmt *s = ir_stmt_create(fl->fe->program, fl->block, IR_CALL, e->span);
    s->launch = launch;
    return var_value(fl->a, capture_task(fl, s, -1, e->span), e->span);
}
