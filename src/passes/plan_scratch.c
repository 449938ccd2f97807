/* Places every tile of a kernel in its scratch memory.
 *
 * A tile variable keeps one place for the whole kernel, so loop-carried accumulators never move.
 * Two tiles may share bytes when they are never alive at the same time. Three steps:
 *
 * 1. Liveness, backwards over the structured statements with sets of tiles. The result is one
 *    interval of positions per tile, the hull of all points where its value is needed; each
 *    statement has two, in front of it (even) and behind it (odd). What a loop's body reads of the
 *    turn before is found by a walk ahead (gather_block); such a tile is alive at both ends of the
 *    body, hence in the whole loop. (So is one that a branch of the body writes and that is read
 *    after the loop.) So each walk passes each statement once, however deeply loops are nested.
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
#include "passes/passes.h"

#include "base/alloc.h"
#include "base/diag.h"

#include <stdlib.h>
#include <string.h>

#define SCRATCH_ALIGNMENT INT64_C(64)

/* One place in scratch memory: a tile, or several that were joined. */
typedef struct place {
    ir_var *var; /* the tile; of joined ones the first */
    int32_t id;
    int32_t joined; /* index of the place that this one became part of, or its own */
    int64_t first;  /* positions: alive from first to last, both included */
    int64_t last;
    int64_t first_line;
    int64_t last_line;
    int64_t bytes;  /* of the tile */
    int64_t size;   /* the same, rounded up */
    int64_t offset; /* -1: not placed */
} place;

typedef struct planner {
    ir_program *p;
    ir_function *f;
    place *places;
    int32_t count;
    int32_t *place_of; /* by variable id, -1: no tile */
    int64_t words;     /* of a set of tiles */
    int64_t position;
    uint64_t *touched; /* tiles that the statement at hand reads, collected by note_use */
    /* Per loop, in the order in which both walks enter them: tiles that a turn needs at its start. */
    VEC(uint64_t *) needed;
    int64_t loop;             /* the next one of them */
    const uint64_t *at_break; /* of the innermost loop: alive behind it, and where a turn starts */
    const uint64_t *at_continue;
} planner;

/* ---- sets of tiles ---- */

static uint64_t *new_set(const planner *pl)
{
    return arena_array(pl->p->a, uint64_t, pl->words);
}

static uint64_t *copy_set(const planner *pl, const uint64_t *set)
{
    uint64_t *copy = new_set(pl);
    memcpy(copy, set, (size_t)pl->words * sizeof *copy);
    return copy;
}

/* True when `into` grew. */
static bool unite(const planner *pl, uint64_t *into, const uint64_t *set)
{
    bool grew = false;
    for (int64_t i = 0; i < pl->words; i++) {
        grew |= (set[i] & ~into[i]) != 0;
        into[i] |= set[i];
    }
    return grew;
}

static void set_bit(uint64_t *set, int32_t index)
{
    set[index / 64] |= UINT64_C(1) << (index % 64);
}

static void clear_bit(uint64_t *set, int32_t index)
{
    set[index / 64] &= ~(UINT64_C(1) << (index % 64));
}

/* ---- liveness ---- */

/* The tiles of the set are alive at that position. */
static void mark(planner *pl, const uint64_t *set, int64_t position, int64_t line)
{
    for (int64_t word = 0; word < pl->words; word++) {
        for (uint64_t bits = set[word]; bits != 0; bits &= bits - 1) {
            place *at = &pl->places[word * 64 + __builtin_ctzll(bits)];
            if (position < at->first) {
                at->first = position;
                at->first_line = line;
            }
            if (position > at->last) {
                at->last = position;
                at->last_line = line;
            }
        }
    }
}

static void note_use(void *context, ir_var *var)
{
    planner *pl = context;
    if (pl->place_of[var->id] >= 0)
        set_bit(pl->touched, pl->place_of[var->id]);
}

/* Moves `live` over the block backwards, as live_block() does, without marking anything. Jumps count
 * as needing nothing: what a loop needs is then what its body reads before it writes it. */
static void gather_block(planner *pl, const ir_block *block, uint64_t *live);

static void gather_stmt(planner *pl, const ir_stmt *s, uint64_t *live)
{
    bool jumps = s->kind == IR_RETURN || s->kind == IR_BREAK || s->kind == IR_CONTINUE;
    if (jumps)
        memset(live, 0, (size_t)pl->words * sizeof *live);
    if (s->kind == IR_FOR || s->kind == IR_WHILE) {
        int64_t index = pl->needed.count;
        uint64_t *entry = new_set(pl);
        vec_push(pl->p->a, &pl->needed, entry);
        gather_block(pl, &s->body, entry);
        unite(pl, live, pl->needed.items[index]);
    }
    if (s->kind == IR_IF) {
        uint64_t *orelse = copy_set(pl, live);
        gather_block(pl, &s->orelse, orelse);
        gather_block(pl, &s->body, live);
        unite(pl, live, orelse);
    }
    int32_t target = s->target != NULL ? pl->place_of[s->target->id] : -1;
    if (target >= 0)
        clear_bit(live, target);
    pl->touched = live;
    ir_visit_uses(s, note_use, pl);
}

static void gather_block(planner *pl, const ir_block *block, uint64_t *live)
{
    for (int64_t i = block->count - 1; i >= 0; i--)
        gather_stmt(pl, block->items[i], live);
}

static void live_block(planner *pl, const ir_block *block, uint64_t *live);

static void live_loop(planner *pl, const ir_stmt *s, uint64_t *live)
{
    const uint64_t *at_break = pl->at_break;
    const uint64_t *at_continue = pl->at_continue;
    uint64_t *behind = copy_set(pl, live);
    unite(pl, live, pl->needed.items[pl->loop++]);
    uint64_t *turn = copy_set(pl, live);
    pl->at_break = behind;
    pl->at_continue = live;
    live_block(pl, &s->body, turn);
    pl->at_break = at_break;
    pl->at_continue = at_continue;
}

static void live_if(planner *pl, const ir_stmt *s, uint64_t *live)
{
    uint64_t *orelse = copy_set(pl, live);
    live_block(pl, &s->orelse, orelse);
    live_block(pl, &s->body, live);
    unite(pl, live, orelse);
}

/* Moves `live` from behind the statement to before it. */
static void live_stmt(planner *pl, const ir_stmt *s, uint64_t *live)
{
    bool nested = s->kind == IR_FOR || s->kind == IR_WHILE || s->kind == IR_IF;
    size_t set_bytes = (size_t)pl->words * sizeof *live;
    if (s->kind == IR_FOR || s->kind == IR_WHILE)
        live_loop(pl, s, live);
    if (s->kind == IR_IF)
        live_if(pl, s, live);
    if (s->kind == IR_RETURN)
        memset(live, 0, set_bytes);
    if (s->kind == IR_BREAK)
        memcpy(live, pl->at_break, set_bytes);
    if (s->kind == IR_CONTINUE)
        memcpy(live, pl->at_continue, set_bytes);

    pl->position -= 2;
    int32_t target = s->target != NULL ? pl->place_of[s->target->id] : -1;
    if (target >= 0)
        set_bit(live, target); /* written here, even if never read */
    if (!nested)
        mark(pl, live, pl->position + 1, s->span.line);
    pl->touched = live;
    ir_visit_uses(s, note_use, pl);
    mark(pl, live, pl->position, s->span.line);
    if (target >= 0 && !ir_reads(s, s->target))
        clear_bit(live, target);
}

static void live_block(planner *pl, const ir_block *block, uint64_t *live)
{
    for (int64_t i = block->count - 1; i >= 0; i--)
        live_stmt(pl, block->items[i], live);
}

static void count_stmt(void *context, ir_stmt *s)
{
    (void)s;
    *(int64_t *)context += 2;
}

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
    pl->words = pl->count / 64 + 1;
    return true;
}

/* `base`: where the tiles of its callers end. */
static void plan_function(ir_program *p, ir_function *f, const platform *target, int64_t base,
                          pypto_status *errors)
{
    planner pl = {.p = p, .f = f};
    int64_t bytes = -1;
    if (collect_tiles(&pl)) {
        ir_visit_stmts(&f->body, count_stmt, &pl.position);
        gather_block(&pl, &f->body, new_set(&pl));
        live_block(&pl, &f->body, new_set(&pl));
        pl.position = 0;
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
