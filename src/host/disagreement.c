/* Ranks that disagree about collectives without finding it out themselves, from their parts of a channel.
 *
 * Behind a call that has ended well: whether all ranks have done the same rooted rounds. One that takes part as a
 * receiver in what the root has not done finds it out, or waits for ever; a root that does what nobody else has done
 * goes on, and the next whole round finds it out (collective/channel.h). Here are those behind which none came. */
#include "collective/mismatch.h"
#include "host/report.h"

static void add_call(text *out, const pypto_worker *w, int32_t program, int32_t device,
                     const channel_entry *call)
{
    char what[ENTRY_TEXT];
    report_rank(out, w, device);
    if (call == NULL) {
        text_add(out, " has ended its part of the call");
        return;
    }
    describe_entry(report_table(w, program), call, what, sizeof what);
    text_printf(out, " calls %s", what);
}

void report_disagreement(pypto_status *status, const pypto_worker *w, int32_t program,
                         const int32_t devices[2], const channel_record *const records[2])
{
    const channel_entry *calls[2];
    (void)channels_differ(records[0], records[1], calls);
    const channel_entry *place = calls[0] != NULL ? calls[0] : calls[1];
    text line = {0};
    add_call(&line, w, program, devices[0], calls[0]);
    text_add(&line, "; ");
    add_call(&line, w, program, devices[1], calls[1]);
    diag_add(
        status, DIAG_COLLECTIVE_MISMATCH,
        place != NULL ? report_span(w, program, place->function, place->line) : SPAN_NONE,
        "every rank of a domain calls the same collectives in the same order: look for a branch "
        "or loop that comes out differently",
        "ranks disagree about a collective: %s",
        line.failed ? "they have called different ones" : line.bytes);
    text_free(&line);
}

/* All ranks against the first one of the domain. */
static pypto_status compare_channel(const pld_host *host, const host_window *window,
                                    int32_t channel)
{
    const int32_t ranks = __builtin_popcountll(window->devices);
    const channel_record *records[2] = {NULL, NULL};
    int32_t devices[2] = {0, 0};
    pypto_status status = STATUS_OK;
    for (int32_t device = 0; device < host->w->device_count; ++device) {
        if ((window->devices >> device & 1) == 0)
            continue;
        const char *slice = segment_slice(&host->w->seg, device) + window->offset;
        const channel_record *record = channel_record_at(slice, window->bytes, ranks, channel);
        const int32_t which = records[0] != NULL;
        records[which] = record;
        devices[which] = device;
        if (which == 1 && channel_histories_differ(records[0], records[1])) {
            report_disagreement(&status, host->w, host->program_id, devices, records);
            break;
        }
    }
    return status;
}

pypto_status compare_channels(const pld_host *host)
{
    for (int32_t i = 0; host->table->collectives_only && i < host->table->nbuffers; ++i) {
        const host_window *window = &host->windows[i];
        for (int32_t channel = 0; window->allocated && channel < window->view.channels; ++channel) {
            pypto_status status = compare_channel(host, window, channel);
            if (!status_ok(status))
                return status;
        }
    }
    return STATUS_OK;
}
