/* What a scope with pld.system.defer_wait may do besides. Such a scope says when its task is over, and
 * computes nothing else: numbers, at most with some elements that it reads before. So the task is sure to
 * cost nothing while it waits, on a device too, where its registrations are all that is kept.
 *
 * Called with the finished function of each pl.at(CORE_GROUP) and pl.spmd and the call of it. A kernel
 * with a name of its own may defer as well; what else it does is its own business. */
#include "frontend/lower.h"
#include "frontend/scopes.h"

enum { MOST_CONDITIONS = 64 };

typedef struct deferral {
    lowering *fl;
    const ir_stmt *call; /* of the scope */
    bool registered;     /* on some path to here */
    bool failed;
} deferral;

static void refuse(deferral *d, pypto_span span, const char *hint, const char *message)
{
    if (!d->failed)
        report(d->fl->fe, DIAG_BAD_DEFERRED_WAIT, span, hint, "%s", message);
    d->failed = true;
}

static bool is_registration(const ir_stmt *s)
{
    return s->kind == IR_DO && s->op_def->id == OP_DEFER_WAIT;
}

static void find_registration(void *context, ir_stmt *s)
{
    const ir_stmt **found = context;
    if (*found == NULL && is_registration(s))
        *found = s;
}

static const ir_stmt *first_registration(const ir_block *block)
{
    const ir_stmt *found = NULL;
    ir_visit_stmts(block, find_registration, &found);
    return found;
}

bool has_deferred_wait(const ir_function *f)
{
    return first_registration(&f->body) != NULL;
}

static bool reads_memory(const ir_stmt *s)
{
    return s->kind == IR_DO && s->op_def->id == OP_READ;
}

static void find_read(void *context, ir_stmt *s)
{
    bool *found = context;
    *found = *found || reads_memory(s);
}

/* The signal must be a window that the wrapper has been given, as it is. */
static void check_signal(deferral *d, const ir_stmt *s)
{
    const ir_var *signal = s->operands[0].var;
    const ir_function *f = d->call->callee;
    for (int64_t i = 0; i < f->params.count; i++) {
        if (f->params.items[i] == signal && d->call->operands[i].var->kind == IR_VAR_PARAM)
            return;
    }
    refuse(
        d, s->operands[0].span, "pass the window itself, and the cell as offsets",
        "the signal of pld.system.defer_wait must be a direct DistributedTensor function parameter");
}

static void check_operation(deferral *d, const ir_stmt *s)
{
    const op_def *op = s->op_def;
    bool writes = s->target != NULL && s->target->type.kind == IR_TILE;
    for (int32_t i = 0; i < s->operand_count; i++)
        writes = writes || op_writes(op, i);
    if (reads_memory(s) && d->registered)
        refuse(d, s->span, "read before the first pld.system.defer_wait",
               "a deferred-wait task cannot execute tensor reads after a registration");
    else if (writes)
        refuse(d, s->span, "do it in a task of its own, with deps=[this one]",
               "a deferred-wait task cannot create or update payload tensors");
    else if (!reads_memory(s) && op->effects[0] != '\0')
        refuse(d, s->span, "do it in a task of its own, with deps=[this one]",
               "a deferred-wait task supports only a pre-registration tensor.read");
}

static int64_t conditions(deferral *d, const ir_block *block);

static int64_t loop_turns(deferral *d, const ir_stmt *s)
{
    int64_t start = 0;
    int64_t stop = 0;
    int64_t step = 0;
    bool known = s->kind == IR_FOR && ir_is_const_int(s->start, &start) &&
                 ir_is_const_int(s->stop, &stop) && ir_is_const_int(s->step, &step) && step != 0;
    int64_t turns = 0;
    if (known && step > 0 && stop > start)
        turns = (int64_t)(((uint64_t)stop - (uint64_t)start - 1) / (uint64_t)step) + 1;
    if (known && step < 0 && stop < start)
        turns = (int64_t)(((uint64_t)start - (uint64_t)stop - 1) / (0 - (uint64_t)step)) + 1;
    if (turns <= 0)
        refuse(d, s->span, "use pl.range with constants",
               "a loop that registers deferred waits needs a statically known positive trip count");
    return turns;
}

static int64_t loop_conditions(deferral *d, const ir_stmt *s)
{
    bool reads = false;
    if (first_registration(&s->body) == NULL) {
        (void)conditions(d, &s->body);
        return 0;
    }
    const int64_t turns = loop_turns(d, s);
    ir_visit_stmts(&s->body, find_read, &reads);
    if (reads && turns > 1)
        refuse(d, s->span, "read before the loop",
               "this loop may execute tensor reads in a turn after registering in an earlier one");
    const int64_t each = d->failed ? 0 : conditions(d, &s->body);
    int64_t all = 0;
    return __builtin_mul_overflow(turns, each, &all) ? INT64_MAX : all;
}

/* How many conditions a block registers at most. */
static int64_t conditions(deferral *d, const ir_block *block)
{
    int64_t count = 0;
    for (int64_t i = 0; i < block->count && !d->failed; i++) {
        const ir_stmt *s = block->items[i];
        int64_t more = 0;
        if (is_registration(s)) {
            check_signal(d, s);
            d->registered = true;
            more = 1;
        } else if (s->kind == IR_DO) {
            check_operation(d, s);
        } else if (s->kind == IR_CALL) {
            refuse(
                d, s->span, "write the condition in the scope itself",
                "a deferred-wait task supports only a pre-registration tensor.read, and no calls");
        } else if (s->kind == IR_FOR || s->kind == IR_WHILE) {
            more = loop_conditions(d, s);
        } else if (s->kind == IR_IF) {
            const bool before = d->registered;
            const int64_t first = conditions(d, &s->body);
            const bool registered = d->registered;
            d->registered = before;
            const int64_t second = conditions(d, &s->orelse);
            d->registered = d->registered || registered;
            more = first > second ? first : second;
        }
        if (__builtin_add_overflow(count, more, &count))
            count = INT64_MAX;
    }
    return count;
}

bool check_deferred(lowering *fl, const outline_request *request, const ir_stmt *call)
{
    const ir_function *f = call->callee;
    const ir_stmt *first = first_registration(&f->body);
    deferral d = {.fl = fl, .call = call};
    if (first == NULL)
        return true;
    if (call->launch != NULL && call->launch->tested != NULL)
        refuse(&d, first->span, "leave predicate= out",
               "a deferred-wait task cannot use a dispatch predicate");
    else if (call->launch != NULL && call->launch->blocks != NULL)
        refuse(
            &d, first->span, "write it in pl.at(CORE_GROUP), which has one block",
            "pld.system.defer_wait must be in a task-level scope: it must be a single-block task, "
            "and nesting in pl.spmd is unsupported");
    else if (request->early != NULL && request->early->integer != 0)
        refuse(&d, request->early->span, "its consumer may have it",
               "a deferred-wait task cannot use allow_early_resolve=True");
    if (!d.failed && conditions(&d, &f->body) > MOST_CONDITIONS && !d.failed)
        refuse(&d, first->span, "use several tasks",
               "a task registers at most 64 conditions of pld.system.defer_wait");
    return !d.failed;
}
