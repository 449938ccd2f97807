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

/* ---- dropped statements ---- */

static void count_read(void *context, ir_var *var)
{
    emitter *e = context;
    e->vars[var->id].reads++;
}

static void uncount_read(void *context, ir_var *var)
{
    emitter *e = context;
    e->vars[var->id].reads--;
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

typedef struct dropping {
    emitter *e;
    VEC(const ir_stmt *) dropped;
    bool changed;
} dropping;

static void drop_stmt(void *context, ir_stmt *s)
{
    dropping *d = context;
    if (!is_dropped(d->e, s))
        return;
    for (int64_t i = 0; i < d->dropped.count; i++)
        if (d->dropped.items[i] == s)
            return;
    vec_push(d->e->a, &d->dropped, s);
    ir_visit_uses(s, uncount_read, d->e);
    d->changed = true;
}

/* ---- pointer or value ---- */

typedef struct classing {
    emitter *e;
    bool changed;
} classing;

static bool is_tensor(const ir_var *var)
{
    return var->type.kind == IR_TENSOR || var->type.kind == IR_WINDOW;
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
        e->vars[i].storage = is_tensor(var)              ? STORAGE_POINTER
                             : var->type.kind == IR_TILE ? STORAGE_TILE
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

static void place_block(placing *p, const ir_block *block)
{
    /* Scopes outlive this walk: occurrences point to them. */
    scope *here = arena_new(p->e->a, scope);
    *here = (scope){block, p->scope, p->scope != NULL ? p->scope->depth + 1 : 0};
    for (int64_t i = 0; i < block->count; i++) {
        const ir_stmt *s = block->items[i];
        p->scope = here;
        p->s = s;
        if (is_dropped(p->e, s))
            continue;
        ir_visit_uses(s, note_read, p);
        if (s->target != NULL && s->kind != IR_FOR)
            note_occurrence(p, s->target, !assigns_itself(s));
        place_block(p, &s->body);
        place_block(p, &s->orelse);
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
    if (s->kind == IR_ASSIGN || s->kind == IR_DO)
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

/* The statement of a block that touches the variable first. */
static const ir_stmt *first_touching(const emitter *e, const ir_block *block, const ir_var *var,
                                     touch *how)
{
    for (int64_t i = 0; i < block->count; i++) {
        *how = touch_stmt(e, block->items[i], var);
        if (*how != TOUCH_NONE)
            return block->items[i];
    }
    return NULL;
}

static void place_declaration(emitter *e, const ir_var *var, const occurrences *of)
{
    var_info *info = &e->vars[var->id];
    if (of->common == NULL)
        return;
    if (of->first_defines && of->first_scope == of->common) {
        info->defined_by = of->first;
        return;
    }
    touch how = TOUCH_NONE;
    const ir_stmt *first = first_touching(e, of->common->block, var, &how);
    if (how == TOUCH_SET) {
        info->declare_before = first;
        return;
    }
    info->declare_before = first_touching(e, &e->f->body, var, &how);
    info->cleared = true;
}

void plan_vars(emitter *e)
{
    const ir_function *f = e->f;
    e->vars = arena_array(e->a, var_info, f->vars.count + 1);
    ir_visit_stmts(&f->body, count_stmt, e);
    dropping d = {.e = e};
    do {
        d.changed = false;
        ir_visit_stmts(&f->body, drop_stmt, &d);
    } while (d.changed);
    class_vars(e);

    placing p = {.e = e, .of = arena_array(e->a, occurrences, f->vars.count + 1)};
    place_block(&p, &f->body);
    for (int64_t i = 0; i < f->vars.count; i++) {
        const ir_var *var = f->vars.items[i];
        if (var->kind == IR_VAR_LOCAL && e->vars[i].storage != STORAGE_NONE &&
            e->vars[i].storage != STORAGE_TILE)
            place_declaration(e, var, &p.of[i]);
    }
}
