/* Failures in words: what a rank did when it failed, died or waited for ever. Called by call.c with
 * the set's lock held; reads what ranks publish in their headers. */
#include "host/report.h"
#include "base/alloc.h"
#include "sched/describe.h"
#include "sched/sched.h"

#include <signal.h>
#include <string.h>

/* ---- names ---- */

const pld_program *report_table(const pypto_worker *w, int32_t program)
{
    if (program < 0 || program >= w->program_count || w->programs[program] == NULL)
        return NULL;
    return w->programs[program]->table;
}

const pld_function *report_function(const pypto_worker *w, int32_t program, int32_t function)
{
    const pld_program *table = report_table(w, program);
    if (table == NULL)
        return NULL;
    return function >= 0 && function < table->nfunctions ? table->functions[function] : NULL;
}

const char *report_buffer(const pypto_worker *w, int32_t program, int32_t buffer)
{
    const pld_program *table = report_table(w, program);
    if (table == NULL)
        return "?";
    return buffer >= 0 && buffer < table->nbuffers ? table->buffers[buffer].name : "?";
}

void report_rank(text *out, const pypto_worker *w, int32_t rank)
{
    if (rank >= w->device_count) {
        text_printf(out, "SubWorker %d", rank - w->device_count);
        return;
    }
    text_printf(out, "rank %d", rank);
    if (w->device_ids[rank] != rank)
        text_printf(out, " (device %d)", w->device_ids[rank]);
}

/* That many ranks in a row are said as a range. */
#define RANGE 4

void report_ranks(text *out, const pypto_worker *w, uint64_t ranks)
{
    const char *separator = "";
    for (int32_t rank = 0; rank < w->device_count; ++rank) {
        if ((ranks >> rank & 1) == 0)
            continue;
        int32_t last = rank;
        while (last + 1 < w->device_count && (ranks >> (last + 1) & 1) != 0)
            ++last;
        text_add(out, separator);
        report_rank(out, w, rank);
        separator = ", ";
        if (last - rank + 1 < RANGE)
            continue;
        text_add(out, " to ");
        report_rank(out, w, last);
        rank = last;
    }
}

static void add_place(text *out, const pypto_worker *w, int32_t program, uint64_t breadcrumb)
{
    const pld_function *f = report_function(w, program, (int32_t)(breadcrumb >> 32) - 1);
    if (f == NULL)
        text_add(out, "between tasks");
    else
        text_printf(out, "%s at %s:%d", f->name, f->file, (int32_t)(uint32_t)breadcrumb);
}

pypto_span report_span(const pypto_worker *w, int32_t program, int32_t function, int32_t line)
{
    const pld_function *f = report_function(w, program, function);
    return (pypto_span){.file = f != NULL ? f->file : NULL, .line = f != NULL ? line : 0};
}

/* ---- states of all ranks ---- */

/* Of one rank; the others are counted. */
#define WAITS_SHOWN 8

static void add_wait_place(text *out, const pld_function *f, const wait_entry *wait)
{
    if (f == NULL)
        return;
    text_printf(out, ", in %s", f->name);
    if (wait->blocks > 1)
        text_printf(out, " (block %lld of %lld)", (long long)wait->block, (long long)wait->blocks);
    text_printf(out, " at %s:%d", f->file, wait->line);
}

static void add_wait(text *out, const pypto_worker *w, const wait_entry *wait)
{
    const pld_function *f = report_function(w, wait->program, wait->function);
    if (wait->kind == WAIT_DISPATCH) {
        text_printf(out, "%s waits for a dispatch of ", f != NULL ? f->name : "a dispatch");
        report_rank(out, w, wait->device);
        text_add(out, " whose output it reads");
        return;
    }
    const char *buffer = report_buffer(w, wait->program, wait->buffer);
    if (wait->kind == WAIT_COLLECTIVE) {
        text_printf(out, "is in %s on signal '%s' and waits for ", collective_name(wait->cmp),
                    buffer);
        report_rank(out, w, wait->device);
        add_wait_place(out, f, wait);
        return;
    }
    char cell[LIST_TEXT];
    const _Atomic int32_t *word =
        (const _Atomic int32_t *)(const void *)(w->seg.base + wait->cell_offset);
    text_printf(out, "%s '%s'%s %s %d, which is %d",
                wait->kind == WAIT_DEFERRED ? "is over only after" : "waits for", buffer,
                describe_list(cell, sizeof cell, wait->cell, wait->ndim),
                wait->cmp == PLD_EQ ? "==" : ">=", wait->expected,
                atomic_load_explicit(word, memory_order_relaxed));
    if (f != NULL && wait->param >= 0 && wait->param < f->nparams &&
        strcmp(f->params[wait->param].name, buffer) != 0)
        text_printf(out, " (parameter '%s')", f->params[wait->param].name);
    add_wait_place(out, f, wait);
}

static void add_state(text *out, pypto_worker *w, uint64_t call, int32_t rank)
{
    const rank_header *h = segment_rank(&w->seg, rank);
    if (!w->seg.transport->one_process && process_dead(&w->processes[rank])) {
        char how[64];
        process_describe_exit(&w->processes[rank], how, sizeof how);
        text_printf(out, "dead, %s, in ", how);
        add_place(out, w, atomic_load_explicit(&h->breadcrumb_program, memory_order_relaxed),
                  atomic_load_explicit(&h->breadcrumb, memory_order_relaxed));
        return;
    }
    const failure_record *failure = &h->failure[call_slot(call)];
    if (atomic_load_explicit(&failure->call, memory_order_acquire) == call) {
        text_add(out, "failed in ");
        add_place(out, w, failure->program,
                  (uint64_t)(failure->function + 1) << 32 | (uint32_t)failure->line);
        text_printf(out, ": %s", failure->text);
        return;
    }
    const uint32_t waits = atomic_load_explicit(&h->wait_count, memory_order_relaxed);
    if (epoch_is_parked(atomic_load_explicit(&h->epoch, memory_order_relaxed)) && waits > 0) {
        for (uint32_t i = 0; i < waits && i < WAITS_SHOWN; ++i) {
            wait_entry wait;
            wait_copy(&wait, &h->waits[i]);
            text_add(out, i > 0 ? "\n          " : "");
            add_wait(out, w, &wait);
        }
        if (waits > WAITS_SHOWN)
            text_printf(out, "\n          and %u more", waits - WAITS_SHOWN);
        return;
    }
    if (atomic_load_explicit(&h->dropped_call, memory_order_relaxed) == call) {
        text_add(out, "stopped in ");
        add_place(out, w, atomic_load_explicit(&h->breadcrumb_program, memory_order_relaxed),
                  atomic_load_explicit(&h->dropped, memory_order_relaxed));
        return;
    }
    const uint64_t breadcrumb = atomic_load_explicit(&h->breadcrumb, memory_order_relaxed);
    if (breadcrumb != 0) {
        text_add(out, "running ");
        add_place(out, w, atomic_load_explicit(&h->breadcrumb_program, memory_order_relaxed),
                  breadcrumb);
        return;
    }
    text_add(out, "idle");
}

/* Ranks in a row of which the same is to be said share a line, as report_ranks() has it. */
void report_states(pypto_worker *w, uint64_t call, pypto_status *status)
{
    text states[PYPTO_MAX_RANKS] = {0};
    for (int32_t rank = 0; rank < w->device_count; ++rank)
        add_state(&states[rank], w, call, rank);
    for (int32_t rank = 0; rank < w->device_count; ++rank) {
        int32_t last = rank;
        while (last + 1 < w->device_count && !states[rank].failed && !states[last + 1].failed &&
               strcmp(states[rank].bytes, states[last + 1].bytes) == 0)
            ++last;
        if (last - rank + 1 < RANGE)
            last = rank;
        text line = {0};
        text_add(&line, "  ");
        report_ranks(&line, w, UINT64_MAX >> (63 - (last - rank)) << rank);
        text_printf(&line, ": %s", states[rank].failed ? "?" : states[rank].bytes);
        if (!line.failed)
            diag_note(status, "%s", line.bytes);
        text_free(&line);
        rank = last;
    }
    for (int32_t rank = 0; rank < w->device_count; ++rank)
        text_free(&states[rank]);
    for (int32_t sub = w->device_count; sub < consumer_count(w); ++sub) {
        text line = {0};
        text_add(&line, "  ");
        report_rank(&line, w, sub);
        text_add(&line, ": ");
        if (sub_lives(w, sub))
            add_state(&line, w, call, sub);
        else
            text_add(&line, "dead");
        if (!line.failed && sub < w->device_count + w->sub_wanted)
            diag_note(status, "%s", line.bytes);
        text_free(&line);
    }
}

/* ---- first cause ---- */

#define LOST_FILE_HINT \
    "a mapped file that holds a tensor may have ended before the tensor ends, or its file system may be full"
#define CRASH_HINT                                                                                   \
    "if nobody killed it, the kernel crashed near this line: look for an index that leaves a tile, " \
    "or run with PYPTO_TRANSPORT=threads under gdb"

#define KILLED_HINT                                                                               \
    "if nobody killed it, the machine ran out of memory (see dmesg): use smaller tiles, tensors " \
    "and numbers of blocks, or fewer devices"

pypto_status report_failure(pypto_worker *w, uint64_t call)
{
    const failure_record *first = NULL;
    int32_t first_rank = -1;
    for (int32_t rank = 0; rank < consumer_count(w); ++rank) {
        const failure_record *f = &segment_rank(&w->seg, rank)->failure[call_slot(call)];
        if (atomic_load_explicit(&f->call, memory_order_acquire) != call)
            continue;
        if (first == NULL || f->order < first->order) {
            first = f;
            first_rank = rank;
        }
    }
    if (first == NULL)
        return STATUS_OK;
    pypto_status status = STATUS_OK;
    const pld_function *f = report_function(w, first->program, first->function);
    text who = {0};
    report_rank(&who, w, first_rank);
    diag_add(&status, (diag_code)first->code,
             report_span(w, first->program, first->function, first->line), NULL,
             "%s failed on %s: %s", f != NULL ? f->name : "a task",
             who.failed ? "a rank" : who.bytes, first->text);
    text_free(&who);
    if (first_rank < w->device_count) /* words that scripts look for; SubWorkers say theirs */
        diag_note(&status, "chip_process dev=%d: %s: %s", w->device_ids[first_rank],
                  pypto_error_kind_name(diag_lookup((diag_code)first->code)->kind), first->text);
    if (first->note[0] != '\0')
        diag_note(&status, "%s", first->note);
    return status;
}

pypto_status report_deaths(pypto_worker *w)
{
    if (w->seg.transport->one_process)
        return STATUS_OK;
    for (int32_t rank = 0; rank < w->device_count; ++rank) {
        if (!process_dead(&w->processes[rank]))
            continue;
        const rank_header *h = segment_rank(&w->seg, rank);
        const uint64_t breadcrumb = atomic_load_explicit(&h->breadcrumb, memory_order_relaxed);
        const int32_t program = atomic_load_explicit(&h->breadcrumb_program, memory_order_relaxed);
        char how[64];
        process_describe_exit(&w->processes[rank], how, sizeof how);
        text what = {0};
        report_rank(&what, w, rank);
        text_printf(&what, " (pid %lld) died, %s, in ", (long long)w->processes[rank].pid, how);
        add_place(&what, w, program, breadcrumb);
        pypto_status status = STATUS_OK;
        const bool lost_file = w->processes[rank].exit_signal == SIGBUS && w->files != NULL;
        diag_add(
            &status, DIAG_WORKER_DIED,
            report_span(w, program, (int32_t)(breadcrumb >> 32) - 1, (int32_t)(uint32_t)breadcrumb),
            lost_file                                   ? LOST_FILE_HINT
            : breadcrumb == 0                           ? NULL
            : w->processes[rank].exit_signal == SIGKILL ? KILLED_HINT
                                                        : CRASH_HINT,
            "the worker of %s", what.failed ? "a rank" : what.bytes);
        text_free(&what);
        diag_note(&status, "chip_process dev=%d: pid %lld exited before mailbox completion: %s",
                  w->device_ids[rank], (long long)w->processes[rank].pid, how);
        return status;
    }
    return STATUS_OK;
}
