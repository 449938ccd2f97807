/* Where a function's variables live in the emitted C: which are emitted at all, as what, and where
 * they are declared.
 *
 * Dropped. A script may assign what nobody reads; C compilers warn about that. An assignment
 * without effect (scalar, alias, copy of a tile) to a variable that nobody reads is dropped, which
 * may make the variables it read unread in turn. Operations with effects stay, without their
 * target.
 *
 * Pointer or value. A handle that only ever names parameters is a pointer. One that names a view
 * made here (pld_index, pld_window_view) is a pld_tensor of its own, and so is every alias of such
 * a one: pointing at the other variable would see what that is rebound to later. A *parameter*
 * that the script rebinds to a view gets a copy of its own in the same way.
 *
 * Declaration. In this order of liking, for the innermost block that holds all occurrences:
 *   1. at its assignment, if that is the block's first occurrence and stands directly in the block
 *   2. in front of the `if` that assigns it on all paths, if that is the block's first occurrence
 *   3. at the top level of the function, cleared: a loop may carry it from iteration to iteration
 */
#include "codegen/emit_internal.h"

#include <stdlib.h>

/* ---- dropped statements ---- */

static void count_read(void *context, ir_var *var)
{
    emitter *e = context;
    e->vars[var->id].reads++;
}

static void count_stmt(void *context, ir_stmt *s)
{
    emitter *e = context;
    ir_visit_uses(s, count_read, e);
    if (s->target != NULL)
        e->vars[s->target->id].definitions++;
}

/* Operations that leave nothing behind but the handle they return, so that rebinding a name to
 * itself (`data = pl.store(t, o, data)`) assigns nothing. */
static bool assigns_itself(const ir_stmt *s)
{
    if (s->target == NULL)
        return false;
    if (s->kind == IR_ASSIGN)
        return s->source == s->target;
    return s->kind == IR_DO && s->op_def->result_param >= 0 &&
           s->operands[s->op_def->result_param].var == s->target;
}

bool is_dropped(const emitter *e, const ir_stmt *s)
{
    return s->kind == IR_ASSIGN && (s->source == s->target || e->vars[s->target->id].reads <= 0);
}

typedef VEC(ir_stmt *) stmt_list;

typedef struct dropping {
    emitter *e;
    stmt_list *assignments;     /* by variable id */
    VEC(const ir_var *) unread; /* whose assignments have not been looked at yet */
} dropping;

static void collect_assignment(void *context, ir_stmt *s)
{
    dropping *d = context;
    if (s->kind != IR_ASSIGN)
        return;
    if (s->source == s->target) /* dropped whoever reads the variable */
        d->e->vars[s->target->id].reads--;
    else
        vec_push(d->e->a, &d->assignments[s->target->id], s);
}

static void uncount_read(void *context, ir_var *var)
{
    dropping *d = context;
    if (--d->e->vars[var->id].reads == 0)
        vec_push(d->e->a, &d->unread, var);
}

/* Leaves in e->vars[].reads what statements that are not dropped read. */
static void drop_unread(emitter *e)
{
    dropping d = {.e = e};
    d.assignments = arena_array(e->a, stmt_list, e->f->vars.count + 1);
    ir_visit_stmts(&e->f->body, collect_assignment, &d);
    for (int64_t i = 0; i < e->f->vars.count; i++) {
        if (e->vars[i].reads <= 0)
            vec_push(e->a, &d.unread, e->f->vars.items[i]);
    }
    while (d.unread.count > 0) {
        const ir_var *var = d.unread.items[--d.unread.count];
        for (int64_t i = 0; i < d.assignments[var->id].count; i++)
            ir_visit_uses(d.assignments[var->id].items[i], uncount_read, &d);
    }
}

static void note_written(void *context, ir_stmt *s)
{
    emitter *e = context;
    if (s->target != NULL && !is_dropped(e, s))
        e->vars[s->target->id].written = true;
}

/* ---- pointer or value ---- */

typedef struct classing {
    emitter *e;
    bool changed;
} classing;

static bool is_tensor(const ir_var *var)
{
    return ir_is_memory(var->type.kind);
}

/* One step of "made here" from sources to targets. */
static void class_stmt(void *context, ir_stmt *s)
{
    classing *c = context;
    if (s->target == NULL || !is_tensor(s->target) || assigns_itself(s))
        return;
    const ir_var *source = s->source;
    if (s->kind == IR_DO)
        source = s->op_def->result_param >= 0 ? s->operands[s->op_def->result_param].var : NULL;
    bool made_here = source == NULL || c->e->vars[source->id].storage == STORAGE_VALUE;
    var_info *info = &c->e->vars[s->target->id];
    if (made_here && info->storage == STORAGE_POINTER) {
        info->storage = STORAGE_VALUE;
        c->changed = true;
    }
}

static void class_vars(emitter *e)
{
    for (int64_t i = 0; i < e->f->vars.count; i++) {
        const ir_var *var = e->f->vars.items[i];
        e->vars[i].storage = is_tensor(var)                  ? STORAGE_POINTER
                             : ir_is_private(var->type.kind) ? STORAGE_TILE
                                                             : STORAGE_PLAIN;
    }
    classing c = {e, false};
    do {
        c.changed = false;
        ir_visit_stmts(&e->f->body, class_stmt, &c);
    } while (c.changed);

    for (int64_t i = 0; i < e->f->vars.count; i++) {
        const ir_var *var = e->f->vars.items[i];
        if (var->kind == IR_VAR_LOCAL && e->vars[i].reads <= 0 &&
            e->vars[i].storage != STORAGE_TILE)
            e->vars[i].storage = STORAGE_NONE;
        if (var->kind == IR_VAR_PARAM && e->vars[i].storage == STORAGE_VALUE)
            e->vars[i].param_name = emit_free_name(e, arena_printf(e->a, "%s_arg", var->c_name));
    }
}

/* ---- declarations ---- */

typedef struct scope {
    const ir_block *block;
    const struct scope *outer;
    const ir_stmt *owner; /* the statement of the outer block that holds this one */
    int depth;
} scope;

/* Of one variable, while all its occurrences are gathered. */
typedef struct occurrences {
    const scope *common; /* innermost scope around all so far; NULL before the first */
    const ir_stmt *first;
    bool first_defines;
    const scope *first_scope;
} occurrences;

typedef struct placing {
    emitter *e;
    occurrences *of; /* by variable id */
    const scope *scope;
    const ir_stmt *s;
} placing;

static const scope *common_scope(const scope *x, const scope *y)
{
    while (x != y) {
        if (x->depth >= y->depth)
            x = x->outer;
        else
            y = y->outer;
    }
    return x;
}

static void note_occurrence(placing *p, const ir_var *var, bool defines)
{
    occurrences *of = &p->of[var->id];
    if (of->common == NULL)
        *of = (occurrences){p->scope, p->s, defines, p->scope};
    else
        of->common = common_scope(of->common, p->scope);
}

static void note_read(void *context, ir_var *var)
{
    note_occurrence(context, var, false);
}

static void place_block(placing *p, const ir_block *block, const ir_stmt *owner)
{
    /* Scopes outlive this walk: occurrences point to them. */
    scope *here = arena_new(p->e->a, scope);
    *here = (scope){block, p->scope, owner, p->scope != NULL ? p->scope->depth + 1 : 0};
    for (int64_t i = 0; i < block->count; i++) {
        const ir_stmt *s = block->items[i];
        p->scope = here;
        p->s = s;
        if (is_dropped(p->e, s))
            continue;
        ir_visit_uses(s, note_read, p);
        if (s->target != NULL && s->kind != IR_FOR)
            note_occurrence(p, s->target, !assigns_itself(s));
        place_block(p, &s->body, s);
        place_block(p, &s->orelse, s);
    }
    p->scope = here->outer;
}

/* What control flow meets first: a read, an assignment on every path, or neither for certain. */
typedef enum touch { TOUCH_NONE, TOUCH_READ, TOUCH_SET } touch;

static touch touch_block(const emitter *e, const ir_block *block, const ir_var *var);

static touch touch_stmt(const emitter *e, const ir_stmt *s, const ir_var *var)
{
    if (is_dropped(e, s))
        return TOUCH_NONE;
    if (ir_reads(s, var))
        return TOUCH_READ;
    if (s->kind == IR_ASSIGN || s->kind == IR_DO || s->kind == IR_CALL)
        return s->target == var ? TOUCH_SET : TOUCH_NONE;
    touch body = touch_block(e, &s->body, var);
    touch orelse = touch_block(e, &s->orelse, var);
    if (body == TOUCH_NONE && orelse == TOUCH_NONE)
        return TOUCH_NONE;
    /* Set on one path only, or in a loop that may not run: not certain, so treat it as a read. */
    return s->kind == IR_IF && body == TOUCH_SET && orelse == TOUCH_SET ? TOUCH_SET : TOUCH_READ;
}

static touch touch_block(const emitter *e, const ir_block *block, const ir_var *var)
{
    for (int64_t i = 0; i < block->count; i++) {
        touch t = touch_stmt(e, block->items[i], var);
        if (t != TOUCH_NONE)
            return t;
    }
    return TOUCH_NONE;
}

/* The statement that holds a variable's first occurrence, of the block of a scope around that. */
static const ir_stmt *first_touching(const occurrences *of, const scope *around)
{
    const ir_stmt *s = of->first;
    for (const scope *at = of->first_scope; at != around; at = at->outer)
        s = at->owner;
    return s;
}

static void place_declaration(emitter *e, const ir_var *var, const occurrences *of)
{
    var_info *info = &e->vars[var->id];
    if (of->common == NULL)
        return;
    if (of->first_defines && of->first_scope == of->common) {
        if (of->first->kind == IR_CALL) /* which may take a block of its own */
            info->declare_before = of->first;
        else
            info->defined_by = of->first;
        return;
    }
    const ir_stmt *first = first_touching(of, of->common);
    if (touch_stmt(e, first, var) == TOUCH_SET) {
        info->declare_before = first;
        return;
    }
    const scope *function = of->common;
    while (function->outer != NULL)
        function = function->outer;
    info->declare_before = first_touching(of, function);
    info->cleared = true;
}

/* The variable's statement goes along, because qsort() hands nothing else to the comparison. */
typedef struct placed {
    const ir_stmt *before;
    const ir_var *var;
} placed;

static int compare_placed(const void *x, const void *y)
{
    const placed *a = x;
    const placed *b = y;
    if (a->before != b->before)
        return (uintptr_t)a->before < (uintptr_t)b->before ? -1 : 1;
    return a->var->id < b->var->id ? -1 : 1;
}

static void sort_declarations(emitter *e)
{
    int64_t count = 0;
    placed *all = arena_array(e->a, placed, e->f->vars.count + 1);
    for (int64_t i = 0; i < e->f->vars.count; i++) {
        if (e->vars[i].declare_before != NULL)
            all[count++] = (placed){e->vars[i].declare_before, e->f->vars.items[i]};
    }
    qsort(all, (size_t)count, sizeof *all, compare_placed);
    e->before = arena_array(e->a, const ir_var *, count + 1);
    e->before_count = count;
    for (int64_t i = 0; i < count; i++)
        e->before[i] = all[i].var;
}

int64_t declared_before(const emitter *e, const ir_stmt *s, const ir_var *const **first)
{
    int64_t low = 0;
    int64_t high = e->before_count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        uintptr_t at = (uintptr_t)e->vars[e->before[middle]->id].declare_before;
        if (at < (uintptr_t)s)
            low = middle + 1;
        else
            high = middle;
    }
    *first = e->before + low;
    int64_t count = 0;
    while (low + count < e->before_count && e->vars[e->before[low + count]->id].declare_before == s)
        count++;
    return count;
}

void plan_vars(emitter *e)
{
    const ir_function *f = e->f;
    e->vars = arena_array(e->a, var_info, f->vars.count + 1);
    ir_visit_stmts(&f->body, count_stmt, e);
    drop_unread(e);
    ir_visit_stmts(&f->body, note_written, e);
    class_vars(e);

    placing p = {.e = e, .of = arena_array(e->a, occurrences, f->vars.count + 1)};
    place_block(&p, &f->body, NULL);
    for (int64_t i = 0; i < f->vars.count; i++) {
        const ir_var *var = f->vars.items[i];
        if (var->kind == IR_VAR_LOCAL && e->vars[i].storage != STORAGE_NONE &&
            e->vars[i].storage != STORAGE_TILE)
            place_declaration(e, var, &p.of[i]);
    }
    sort_declarations(e);
}
