/* allreduce and reduce_scatter.
 *
 * allreduce folds in place. A few bytes go through the flags and a few more through the stages: one round, and
 * every rank folds all elements. Of more, each rank folds one slice of the elements, from all windows into
 * all windows, between two rounds: each byte moves once to the rank that folds it and once back, and
 * what a rank has folded leaves its cache for where it is read next. Slices end at cache lines of the window. Of a
 * target that counts in part, only that part is looked at.
 *
 * reduce_scatter does the same without writing to peers. */
#include "collective/fold.h"
#include "collective/operands.h"

#include "sched/describe.h"

#include <string.h>

static const fold *need_fold(pld_core *core, const pld_tensor *target, pld_reduce_op op)
{
    char name[NAME_TEXT];
    const fold *f = fold_of((pypto_dtype)target->dtype, op);
    if (f == NULL)
        task_fail(core, DIAG_BAD_COLLECTIVE,
                  "%s of %s cannot be reduced with operator %d: integers and FP16, BF16, FP32 can, "
                  "with Sum, Max, Min, Prod",
                  task_describe(core, target, name, sizeof name),
                  pypto_dtype_name((pypto_dtype)target->dtype), (int)op);
    return f;
}

/* A signal of mesh shape has a row for each rank; one of ring shape has two rows per step and a column for each. */
static void check_mode(pld_core *core, const pld_tensor *signal, pld_mode mode, int32_t ranks)
{
    char name[NAME_TEXT], shape[LIST_TEXT];
    const bool mesh = signal->ndim >= 1 && signal->shape[0] >= ranks;
    const bool ring =
        signal->ndim == 2 && signal->shape[0] >= 2 * (ranks - 1) && signal->shape[1] >= ranks;
    if ((mode == PLD_MESH && mesh) || (mode == PLD_RING && ring) ||
        (mode == PLD_AUTO && (mesh || ring)))
        return;
    task_fail(core, DIAG_BAD_SIGNAL,
              "signal %s of shape %s does not fit %d ranks: mode=\"mesh\" takes [P, 1], "
              "mode=\"ring\" [2*(P-1), P]",
              task_describe(core, signal, name, sizeof name),
              describe_list(shape, sizeof shape, signal->shape, signal->ndim), ranks);
}

/* Bytes of a rank between two looks at the poison. */
#define FOLD_PIECE (64 * 1024)

/* Folds elements [begin, end): sources and targets are the addresses of element 0. */
static void fold_range(pld_core *core, const fold *f, const char *const *sources,
                       int32_t source_count, char *const *targets, int32_t target_count,
                       int64_t begin, int64_t end)
{
    const char *from[PYPTO_MAX_RANKS];
    char *to[PYPTO_MAX_RANKS];
    const int64_t most = FOLD_PIECE / f->width;
    for (int64_t at = begin; at < end; at += most) {
        const int64_t left = end - at;
        for (int32_t i = 0; i < source_count; ++i)
            from[i] = sources[i] + at * f->width;
        for (int32_t i = 0; i < target_count; ++i)
            to[i] = targets[i] + at * f->width;
        f->run(from, source_count, to, target_count, left < most ? left : most);
        task_check(core);
    }
}

/* First element of rank r's slice; that of rank P is the end. */
static int64_t slice_begin(int64_t count, int64_t width, int32_t r, int32_t ranks)
{
    const int64_t per_line = CACHE_LINE / width;
    const int64_t lines = (count + per_line - 1) / per_line;
    const int64_t line = lines / ranks * r + lines % ranks * r / ranks;
    return line * per_line < count ? line * per_line : count;
}

/* The same slice of all windows into all windows; the own one first, while it is in the cache. */
static void fold_slice(const collective *c, const fold *f, const pld_tensor *target,
                       const region *r)
{
    const int32_t ranks = c->comm->nranks, me = c->comm->rank;
    const char *sources[PYPTO_MAX_RANKS] = {
        NULL}; /* for gcc, which does not know that there are ranks */
    char *targets[PYPTO_MAX_RANKS];
    for (int32_t p = 0; p < ranks; ++p)
        sources[p] = peer_address(c->comm, target->window, target->data, p);
    for (int32_t i = 0; i < ranks; ++i)
        targets[i] = peer_address(c->comm, target->window, target->data, (me + i) % ranks);
    const int64_t end = slice_begin(r->count, f->width, me + 1, ranks);
    for (int64_t at = slice_begin(r->count, f->width, me, ranks), count; at < end; at += count) {
        const int64_t inside = at % r->run, first = region_begin(r, at / r->run) + inside;
        count = r->run - inside < end - at ? r->run - inside : end - at;
        fold_range(c->core, f, sources, ranks, targets, ranks, first, first + count);
    }
}

/* Behind a round with the data in messages or stages: folds what all ranks have sent into `result`. */
static void fold_sent(const collective *c, const fold *f, bool staged, int64_t offset,
                      const char *own, char *result, int64_t count)
{
    const char *sources[PYPTO_MAX_RANKS];
    int32_t p = 0;
    do { /* so, compilers see that there is one */
        sources[p] = p == c->comm->rank ? own
                     : staged           ? round_stage(c, p) + offset
                                        : round_message(c, p);
    } while (++p < c->comm->nranks);
    fold_range(c->core, f, sources, c->comm->nranks, &result, 1, 0, count);
}

/* Of more, folding everything on every rank takes longer than a second round. */
#define STAGED_FOLD 2048
static_assert(STAGED_FOLD <= STAGE_BYTES, "what is folded so goes through a stage");

void(pld_allreduce)(pld_core *core, const pld_tensor *target, const pld_tensor *signal,
                    pld_reduce_op op, pld_mode mode)
{
    need_part_of_window(core, "target", target, signal);
    const fold *f = need_fold(core, target, op);
    const pld_comm *comm = signal->window->comm;
    check_mode(core, signal, mode, comm->nranks);
    const region r = region_of(target);
    const int64_t bytes = r.count * f->width;
    char packed[STAGED_FOLD], *values = r.run == r.count ? target->data : packed;
    collective_call call = describe_target(COLLECTIVE_ALLREDUCE, comm, target, r.count);
    call.run = r.run;
    call.op = (uint8_t)op;
    call.mode = (uint8_t)mode;
    collective c;
    collective_enter(&c, core, signal, &call);
    if (comm->nranks == 1) {
        /* The value itself. */
    } else if (bytes <= STAGED_FOLD) {
        const bool staged = bytes > FLAG_MESSAGE;
        do {
            if (values == packed)
                region_pack(&r, f->width, target->data, packed);
            if (staged)
                round_stage_all(&c, values, bytes);
            else
                round_all(&c, values, bytes);
        } while (round_again(&c));
        fold_sent(&c, f, staged, 0, values, values, r.count);
        if (values == packed)
            region_unpack(&r, f->width, packed, target->data);
    } else {
        round_all(&c, NULL, 0);
        fold_slice(&c, f, target, &r);
        round_all(&c, NULL, 0);
    }
    collective_leave(&c);
}

void(pld_reduce_scatter)(pld_core *core, const pld_tensor *target, const pld_tensor *signal,
                         pld_reduce_op op)
{
    need_window(core, "target", target, signal);
    const fold *f = need_fold(core, target, op);
    const pld_comm *comm = signal->window->comm;
    const int64_t row = need_parts(core, "target", target, comm->nranks), count = row / f->width;
    collective_call call = describe_target(COLLECTIVE_REDUCE_SCATTER, comm, target, count);
    call.op = (uint8_t)op;
    collective c;
    collective_enter(&c, core, signal, &call);
    char *mine = target->data + row * comm->rank;
    if (comm->nranks == 1) {
        /* The value itself. */
    } else if (row <= FLAG_MESSAGE) {
        do
            round_parts(&c, target->data, row);
        while (round_again(&c));
        fold_sent(&c, f, false, 0, mine, mine, count);
    } else if (row * comm->nranks <= STAGE_BYTES) {
        do
            round_stage_parts(&c, target->data, row);
        while (round_again(&c));
        fold_sent(&c, f, true, row * comm->rank, mine, mine, count);
    } else {
        const char *sources[PYPTO_MAX_RANKS];
        for (int32_t p = 0; p < comm->nranks; ++p)
            sources[p] = peer_address(comm, target->window, mine, p);
        round_all(&c, NULL, 0);
        fold_range(core, f, sources, comm->nranks, &mine, 1, 0, count);
        round_all(&c, NULL, 0);
    }
    collective_leave(&c);
}
