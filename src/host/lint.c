/* The lint: what a call that has ended well has done with its signals that works by luck, from the accounts of the
 * ranks (sched/account.h) and the channels of collectives. Called by call.c when every rank has ended its
 * part and before windows are cleared; so nothing changes meanwhile.
 *
 * A kind of finding is told once for each pair of lines, however many ranks and cells it concerns. */
#include "host/report.h"
#include "sched/describe.h"
#include "sched/sched.h"

/* Findings that are told; of more only the number is. */
#define FINDINGS 16

typedef struct finding {
    diag_code code;
    signal_place place, other;
} finding;

typedef struct linting {
    pld_host *host;
    pypto_status *status;
    finding found[FINDINGS];
    int32_t count;
    int64_t untold;
} linting;

static bool same_place(signal_place a, signal_place b)
{
    return a.function == b.function && a.line == b.line;
}

/* Whether this has not been told yet; notes it. */
static bool is_news(linting *l, diag_code code, signal_place place, signal_place other)
{
    for (int32_t i = 0; i < l->count; ++i) {
        const finding *f = &l->found[i];
        if (f->code == code && same_place(f->place, place) && same_place(f->other, other))
            return false;
    }
    if (l->count == FINDINGS) {
        ++l->untold;
        return false;
    }
    l->found[l->count++] = (finding){code, place, other};
    return true;
}

static pypto_span span_of(const linting *l, signal_place place)
{
    return report_span(l->host->w, l->host->program_id, place.function - 1, place.line);
}

/* "at script.py:12" */
static void add_place(text *out, const linting *l, signal_place place)
{
    const pld_function *f = report_function(l->host->w, l->host->program_id, place.function - 1);
    if (f != NULL)
        text_printf(out, " at %s:%d", f->file, place.line);
}

static void add_cell(text *out, const linting *l, const signal_entry *e)
{
    char list[LIST_TEXT];
    text_printf(out, "'%s'%s of ", report_buffer(l->host->w, l->host->program_id, e->buffer),
                describe_list(list, sizeof list, e->cell, e->ndim));
    report_rank(out, l->host->w, e->device);
}

static bool is_wanted(const linting *l, diag_code code)
{
    const uint32_t bit = UINT32_C(1) << ((uint32_t)code - (uint32_t)DIAG_LINT_REUSED);
    return (l->host->lint_disabled & bit) == 0;
}

static void tell(linting *l, diag_code code, signal_place place, const char *hint, text *message)
{
    if (!message->failed && is_wanted(l, code))
        diag_add(l->status, code, span_of(l, place), hint, "%s", message->bytes);
    text_free(message);
}

/* ---- accounts ---- */

static rank_header *header_of(const linting *l, int32_t rank)
{
    return segment_rank(&l->host->w->seg, rank);
}

static const signal_entry *entry_of(const linting *l, int32_t rank, int64_t cell_offset)
{
    const signal_entry *e = segment_signal(header_of(l, rank), cell_offset, l->host->call);
    return e != NULL && signal_is(e, cell_offset, l->host->call) ? e : NULL;
}

static int64_t cell_of(const signal_entry *e)
{
    return atomic_load_explicit(&e->cell_offset, memory_order_relaxed);
}

static void look_for_reuse(linting *l, const signal_entry *e)
{
    if (e->reused.line == 0 || !is_news(l, DIAG_LINT_REUSED, e->reused, e->reused_after))
        return;
    text message = {0};
    text_add(&message, "a wait for ");
    add_cell(&message, l, e);
    text_add(&message, " was satisfied at once by what the wait");
    add_place(&message, l, e->reused_after);
    text_add(&message, " had seen before: nothing has come since, and the threshold has not grown");
    tell(
        l, DIAG_LINT_REUSED, e->reused,
        "raise `expected` from turn to turn, or take back what has arrived by a notify of -1 to the "
        "own cell",
        &message);
}

static void look_for_wrap(linting *l, const signal_entry *e)
{
    if (e->wrapped.line == 0 || !is_news(l, DIAG_LINT_WRAPPED, e->wrapped, (signal_place){0}))
        return;
    text message = {0};
    add_cell(&message, l, e);
    text_add(&message, " went beyond the range of INT32");
    tell(l, DIAG_LINT_WRAPPED, e->wrapped, "reset the cell now and then, or add less", &message);
}

static void look_for_mixture(linting *l, const signal_entry *e)
{
    for (int32_t rank = 0; e->set.line != 0 && rank < l->host->w->device_count; ++rank) {
        const signal_entry *other = entry_of(l, rank, cell_of(e));
        if (other == NULL || other->added.line == 0 ||
            !is_news(l, DIAG_LINT_MIXED, e->set, other->added))
            continue;
        text message = {0};
        add_cell(&message, l, e);
        text_add(&message, " is set here, and added to");
        add_place(&message, l, other->added);
        text_add(&message, ": a set that comes behind an addition wipes it out");
        tell(l, DIAG_LINT_MIXED, e->set,
             "use NotifyOp.AtomicAdd for both, or a cell for each sender", &message);
    }
}

/* `e` is the owner's entry. */
static void look_for_overshot(linting *l, const signal_entry *e)
{
    if (e->waits == 0 || e->last.cmp != PLD_EQ)
        return;
    int64_t sum = 0;
    signal_place last = {0};
    for (int32_t rank = 0; rank < l->host->w->device_count; ++rank) {
        const signal_entry *sender = entry_of(l, rank, cell_of(e));
        if (sender == NULL || atomic_load_explicit(&sender->notifies, memory_order_relaxed) == 0)
            continue;
        if (sender->lowered)
            return;
        sum += sender->sum;
        last = sender->added;
    }
    if (sum <= e->last.expected || !is_news(l, DIAG_LINT_OVERSHOT, e->last.place, last))
        return;
    text message = {0};
    text_printf(&message, "a wait for == %d on ", e->last.expected);
    add_cell(&message, l, e);
    text_printf(&message, " was satisfied, and then the cell went on to %lld (notified",
                (long long)sum);
    add_place(&message, l, last);
    text_add(&message, "): a later look would have missed the value");
    tell(l, DIAG_LINT_OVERSHOT, e->last.place, "wait with WaitCmp.Ge", &message);
}

static void look_at_accounts(linting *l, int32_t rank)
{
    const signal_accounts *all = &header_of(l, rank)->accounts[call_slot(l->host->call)];
    if (all->call != l->host->call)
        return;
    for (int32_t i = 0; i < all->count; ++i) {
        const signal_entry *e = &all->entries[all->used[i]];
        if (atomic_load_explicit(&e->call, memory_order_relaxed) != l->host->call)
            continue;
        look_for_wrap(l, e);
        look_for_mixture(l, e);
        if (e->device == rank) {
            look_for_reuse(l, e);
            look_for_overshot(l, e);
        }
    }
}

/* ---- channels ---- */

/* Who notified a cell last, as far as it is on record. */
static signal_place notified_at(const linting *l, int64_t cell_offset)
{
    for (int32_t rank = 0; rank < l->host->w->device_count; ++rank) {
        const signal_entry *e = entry_of(l, rank, cell_offset);
        if (e != NULL && atomic_load_explicit(&e->notifies, memory_order_relaxed) > 0)
            return (signal_place){e->function + 1, e->line};
    }
    return (signal_place){0};
}

static void look_for_remains(linting *l, const host_window *window, int32_t device,
                             const channel_record *record, int64_t first, int64_t end)
{
    const char *slice = segment_slice(&l->host->w->seg, device) + window->offset;
    const signal_place place = {record->now.function + 1, record->now.line};
    for (int64_t i = first; i < end; ++i) {
        const int32_t value = atomic_load_explicit(
            (const _Atomic int32_t *)(const void *)(slice + i * 4), memory_order_relaxed);
        if (value == 0)
            continue;
        const signal_place notify = notified_at(l, slice + i * 4 - l->host->w->seg.base);
        if (!is_news(l, DIAG_LINT_LEFT, place, notify))
            continue;
        text message = {0};
        text_printf(&message, "cell %lld of '%s' of ", (long long)i,
                    report_buffer(l->host->w, l->host->program_id, window->view.buffer));
        report_rank(&message, l->host->w, device);
        text_printf(&message, ", a signal of %s, is %d at the end of the call",
                    collective_name(record->now.what.kind), value);
        if (notify.line != 0) {
            text_add(&message, " (notified");
            add_place(&message, l, notify);
            text_add(&message, ")");
        }
        tell(l, DIAG_LINT_LEFT, place,
             "take back what was added, or give notifies of your own a window of their own",
             &message);
    }
}

static void look_for_clamped(linting *l, int32_t device, const channel_record *record)
{
    const signal_place place = {record->now.function + 1, record->clamped_line};
    if (record->clamped_line == 0 || !is_news(l, DIAG_LINT_CLAMPED, place, (signal_place){0}))
        return;
    text message = {0};
    text_printf(&message, "send_counts[%d] of ", record->clamped_rank);
    report_rank(&message, l->host->w, device);
    text_printf(&message, " is %d, and a part of the target has %d rows: the others are not sent",
                record->clamped_count, record->clamped_to);
    tell(l, DIAG_LINT_CLAMPED, place, "make input and target larger, or send in several rounds",
         &message);
}

static void look_at_channels(linting *l, const host_window *window)
{
    const int32_t ranks = __builtin_popcountll(window->devices);
    const int64_t cells = window->bytes / 4;
    for (int32_t device = 0; device < l->host->w->device_count; ++device) {
        if ((window->devices >> device & 1) == 0)
            continue;
        const char *slice = segment_slice(&l->host->w->seg, device) + window->offset;
        for (int32_t i = 0; i < window->view.channels; ++i) {
            const channel_record *record = channel_record_at(slice, window->bytes, ranks, i);
            if (record->now.what.kind == 0)
                continue;
            const int64_t first = (int64_t)i * ranks;
            const int64_t end = first + ranks < cells ? first + ranks : cells;
            look_for_remains(l, window, device, record, first, end);
            look_for_clamped(l, device, record);
        }
    }
}

/* ---- devices ---- */

/* A one-shot run has more devices than its program uses; workers that stay may have other programs. Without any
 * dispatch there was nothing to do. */
static void look_for_idle(linting *l)
{
    const pld_host *host = l->host;
    text message = {0};
    int32_t idle = 0;
    for (int32_t rank = 0; rank < host->w->device_count; ++rank)
        if ((host->dispatched >> rank & 1) == 0)
            text_printf(&message, "%s%d", idle++ > 0 ? ", " : "", rank);
    if (idle > 0 && host->dispatched != 0 && !message.failed && is_wanted(l, DIAG_LINT_IDLE)) {
        pypto_span span = {.file = host->function->file, .line = host->function->line};
        diag_add(l->status, DIAG_LINT_IDLE, span,
                 "give the run as many device_ids as the program uses, or loop over "
                 "pld.world_size()",
                 "%s dispatches nothing on %s %s of the run's %d devices", host->function->name,
                 idle == 1 ? "rank" : "ranks", message.bytes, host->w->device_count);
    }
    text_free(&message);
}

void lint_call(pld_host *host, pypto_status *status)
{
    linting l = {.host = host, .status = status};
    for (int32_t rank = 0; rank < host->w->device_count; ++rank)
        look_at_accounts(&l, rank);
    for (int32_t i = 0; i < host->table->nbuffers; ++i)
        if (host->windows[i].allocated && host->windows[i].view.channels > 0)
            look_at_channels(&l, &host->windows[i]);
    if (l.untold > 0)
        diag_note(status, "and %lld more findings", (long long)l.untold);
    if (host->w->one_shot)
        look_for_idle(&l);
}
