/* Places every tile of a kernel in its scratch memory.
 *
 * A tile variable keeps one place for the whole kernel, so loop-carried accumulators never move.
 * Two tiles may share bytes when they are never alive at the same time. Three steps:
 *
 * 1. Liveness (tile_lives.c): one interval of positions per tile; each statement has two positions, in front of
 *    it (even) and behind it (odd).
 * 2. Joining: where an elementwise operation (or a copy) is the last to need an operand and the
 *    first to write its result, both get one place. Everywhere else operands and result of a
 *    statement count as alive together (the result in front of the statement already): emitted
 *    loops may only write over what they read at the same index.
 * 3. Packing: largest first, each at the lowest 64-byte boundary where nobody alive with it lies.
 *
 * A kernel that other kernels call has its tiles behind theirs, so that one base serves the whole
 * task; scratch_bytes counts those of the callees too.
 *
 * Before: scratch_offset -1. After: offsets of all tiles that occur, function->scratch_bytes; or,
 * when the platform has less, an error with a map of what lies where. Deterministic: ties go by
 * first use, then by id. */
#include "ops/ops.h"
#include "passes/plan_scratch_internal.h"

#include "base/alloc.h"
#include "base/diag.h"

#include <stdlib.h>
#include <string.h>

#define SCRATCH_ALIGNMENT INT64_C(64)

/* ---- joining ---- */

static place *find_place(planner *pl, const ir_var *var)
{
    int32_t i = pl->place_of[var->id];
    if (i < 0)
        return NULL;
    while (pl->places[i].joined != i)
        i = pl->places[i].joined;
    return &pl->places[i];
}

/* Puts `result` where `operand` is, if that is needed up to the front of this statement only and
 * the result from here on only. */
static bool try_join(planner *pl, const ir_var *operand, const ir_var *result, int64_t position)
{
    place *from = find_place(pl, operand);
    place *to = find_place(pl, result);
    if (from == NULL || to == NULL || from == to || from->last != position ||
        to->first != position || from->bytes != to->bytes ||
        pypto_dtype_bytes(operand->type.dtype) != pypto_dtype_bytes(result->type.dtype) ||
        pypto_dtype_packed(operand->type.dtype) != pypto_dtype_packed(result->type.dtype))
        return false;
    to->joined = (int32_t)(from - pl->places);
    from->last = to->last;
    from->last_line = to->last_line;
    return true;
}

/* Forwards, in the numbering of the backward walk. */
static void join_block(planner *pl, const ir_block *block)
{
    for (int64_t i = 0; i < block->count; i++) {
        const ir_stmt *s = block->items[i];
        int64_t position = pl->position;
        pl->position += 2;
        if (s->kind == IR_ASSIGN && s->source != NULL && ir_is_private(s->source->type.kind))
            try_join(pl, s->source, s->target, position);
        if (s->kind == IR_DO && s->target != NULL && op_is_elementwise(s->op_def)) {
            for (int32_t k = 0; k < s->operand_count; k++)
                if (s->operands[k].kind == IR_OPERAND_VAR && op_in_place(s->op_def, k) &&
                    try_join(pl, s->operands[k].var, s->target, position))
                    break;
        }
        join_block(pl, &s->body);
        join_block(pl, &s->orelse);
    }
}

/* ---- packing ---- */

static int compare_places(const void *x, const void *y)
{
    const place *a = *(const place *const *)x;
    const place *b = *(const place *const *)y;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

static int compare_offsets(const void *x, const void *y)
{
    const place *a = *(const place *const *)x;
    const place *b = *(const place *const *)y;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* The lowest offset where `new` fits between those that are alive with it. `placed` is in order of
 * offsets. -1: sizes overflow. */
static int64_t lowest_offset(const place *new, place *const *placed, int64_t count)
{
    int64_t offset = 0;
    for (int64_t i = 0; i < count; i++) {
        const place *other = placed[i];
        if (other->last < new->first || new->last < other->first)
            continue;
        if (other->offset - offset >= new->size)
            break;
        if (other->offset + other->size > offset)
            offset = other->offset + other->size;
    }
    int64_t end;
    return size_add(offset, new->size, &end) ? offset : -1;
}

/* Every place that occurs, in the order of packing. */
static place **occurring_places(planner *pl, int64_t *count)
{
    place **order = arena_array(pl->p->a, place *, pl->count + 1);
    *count = 0;
    for (int32_t i = 0; i < pl->count; i++)
        if (pl->places[i].joined == i && pl->places[i].last >= 0)
            order[(*count)++] = &pl->places[i];
    qsort(order, (size_t)*count, sizeof *order, compare_places);
    return order;
}

/* The bytes that all places need, or -1 when their sizes overflow. */
static int64_t pack(planner *pl)
{
    int64_t count;
    place **order = occurring_places(pl, &count);
    place **placed = arena_array(pl->p->a, place *, count + 1);
    int64_t bytes = 0;
    for (int64_t i = 0; i < count; i++) {
        place *new = order[i];
        new->offset = lowest_offset(new, placed, i);
        if (new->offset < 0)
            return -1;
        if (new->offset + new->size > bytes)
            bytes = new->offset + new->size;
        int64_t at = i;
        for (; at > 0 && placed[at - 1]->offset > new->offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = new;
    }
    return bytes;
}

/* ---- results ---- */

static void add_map(planner *pl, pypto_status *errors, int64_t limit)
{
    int64_t count;
    place **order = occurring_places(pl, &count);
    qsort(order, (size_t)count, sizeof *order, compare_offsets);
    text table = {.a = pl->p->a};
    text_printf(&table, "%12s %12s  %-11s tile", "offset", "bytes", "lines");
    for (int64_t i = 0; i < count; i++) {
        const place *at = order[i];
        text_printf(&table, "\n%12lld %12lld  %-5lld-%5lld ", (long long)at->offset,
                    (long long)at->bytes, (long long)at->first_line, (long long)at->last_line);
        text_printf(&table, "%s ", at->var->name);
        ir_print_type(&table, &at->var->type);
        if (at->offset + at->size > limit)
            text_add(&table, "  <- beyond the limit");
    }
    diag_note(errors, "%s", table.bytes);
}

static void report_too_large(planner *pl, pypto_status *errors, int64_t bytes,
                             const platform *target)
{
    if (bytes < 0) {
        diag_add(errors, DIAG_SCRATCH_TOO_LARGE, pl->f->span, "use smaller tiles",
                 "the tiles of '%s' are larger than any memory", pl->f->name);
        return;
    }
    diag_add(errors, DIAG_SCRATCH_TOO_LARGE, pl->f->span,
             "use smaller tiles, loop over parts of the data, or compile for platform \"cpu\", "
             "which has no such limit",
             "the tiles of '%s' need %lld bytes at the same time; a kernel on \"%s\" has %lld",
             pl->f->name, (long long)bytes, target->name, (long long)target->scratch_bytes);
    add_map(pl, errors, target->scratch_bytes);
}

static void store_results(planner *pl, int64_t bytes, int64_t base)
{
    for (int32_t i = 0; i < pl->f->vars.count; i++) {
        const place *at = find_place(pl, pl->f->vars.items[i]);
        if (at != NULL)
            pl->f->vars.items[i]->scratch_offset = base + at->offset;
    }
    pl->f->scratch_bytes = bytes > 0 ? base + bytes : 0;
}

/* False when a size overflows. */
static bool collect_tiles(planner *pl)
{
    pl->places = arena_array(pl->p->a, place, pl->f->vars.count + 1);
    pl->place_of = arena_array(pl->p->a, int32_t, pl->f->vars.count + 1);
    for (int64_t i = 0; i < pl->f->vars.count; i++) {
        ir_var *var = pl->f->vars.items[i];
        pl->place_of[i] = -1;
        if (!ir_is_private(var->type.kind))
            continue;
        pl->place_of[i] = pl->count;
        place *at = &pl->places[pl->count];
        *at = (place){.var = var,
                      .id = var->id,
                      .joined = pl->count,
                      .first = INT64_MAX,
                      .last = -1,
                      .offset = -1};
        pl->count++;
        at->bytes = ir_static_bytes(&var->type);
        if (at->bytes < 0 || !size_add(at->bytes, SCRATCH_ALIGNMENT - 1, &at->size))
            return false;
        at->size -= at->size % SCRATCH_ALIGNMENT;
    }
    return true;
}

/* `base`: where the tiles of its callers end. */
static void plan_function(ir_program *p, ir_function *f, const platform *target, int64_t base,
                          pypto_status *errors)
{
    planner pl = {.p = p, .f = f};
    int64_t bytes = -1;
    if (collect_tiles(&pl)) {
        find_lives(&pl);
        join_block(&pl, &f->body);
        bytes = pack(&pl);
    }
    if (bytes < 0 || (target->scratch_bytes > 0 && base + bytes > target->scratch_bytes))
        report_too_large(&pl, errors, bytes < 0 ? bytes : base + bytes, target);
    else
        store_results(&pl, bytes, base);
}

/* What a kernel's calls of other kernels need to know, or tell it. */
typedef struct call_walk {
    ir_function *caller;
    int64_t *bases; /* by function */
} call_walk;

static void push_base(void *context, ir_stmt *s)
{
    call_walk *walk = context;
    if (s->kind != IR_CALL)
        return;
    int64_t end = walk->bases[walk->caller->index];
    if (walk->caller->scratch_bytes > end)
        end = walk->caller->scratch_bytes;
    end += (SCRATCH_ALIGNMENT - end % SCRATCH_ALIGNMENT) % SCRATCH_ALIGNMENT;
    if (end > walk->bases[s->callee->index])
        walk->bases[s->callee->index] = end;
}

static void pull_bytes(void *context, ir_stmt *s)
{
    call_walk *walk = context;
    if (s->kind == IR_CALL && s->callee->scratch_bytes > walk->caller->scratch_bytes)
        walk->caller->scratch_bytes = s->callee->scratch_bytes;
}

/* Of wrappers, which run beside the cores. */
static const platform no_limit = {.name = "any platform"};

/* Callees stand before callers: down for the bases, up for the sizes. */
pypto_status pass_plan_scratch(ir_program *p, const platform *target)
{
    pypto_status errors = STATUS_OK;
    call_walk walk = {NULL, arena_array(p->a, int64_t, p->functions.count + 1)};
    for (int64_t i = p->functions.count - 1; i >= 0; i--) {
        walk.caller = p->functions.items[i];
        if (walk.caller->plane == PLD_PLANE_CHIP)
            plan_function(p, walk.caller, &no_limit, 0,
                          &errors); /* arrays; its kernels are tasks */
        if (walk.caller->plane != PLD_PLANE_CORE)
            continue;
        plan_function(p, walk.caller, target, walk.bases[i], &errors);
        ir_visit_stmts(&walk.caller->body, push_base, &walk);
    }
    for (int64_t i = 0; i < p->functions.count; i++) {
        walk.caller = p->functions.items[i];
        if (walk.caller->plane == PLD_PLANE_CORE)
            ir_visit_stmts(&walk.caller->body, pull_bytes, &walk);
    }
    return errors;
}
