/* Records of a call: memory for the notes of its ranks before, files and times out of them after (src/trace).
 *
 * The notes lie in the staging area, as long as the call. What a call records is what the set was told before
 * it was submitted. */
#include "base/alloc.h"
#include "base/os.h"
#include "base/settings.h"
#include "host/host.h"
#include "trace/trace.h"

#include <string.h>

#define MIB ((int64_t)1 << 20)
/* Of all ranks together, when the caller does not say. */
#define MOST_BYTES (256 * MIB)
#define RANK_BYTES (16 * MIB)
#define RANK_BYTES_CONTENT (64 * MIB)
#define RANK_BYTES_TIMES (1 * MIB)
/* Of a SubWorker: a few events for each call of a function. */
#define SUB_BYTES (1 * MIB)

struct recording {
    kept_records wanted;
    heap_block blocks[MAX_CONSUMERS]; /* SubWorkers behind the ranks */
    trace_log *logs[MAX_CONSUMERS];
};

static bool makes_files(const pypto_records *r)
{
    return r->swimlane > 0 || r->dump_args > 0 || r->pmu > 0 || r->dependencies || r->scope_stats;
}

static pypto_status check(const pypto_records *r)
{
    if (r == NULL)
        return STATUS_OK;
    if (r->size != sizeof *r)
        return diag_status(DIAG_BAD_RECORDS, "initialise it with PYPTO_RECORDS_INIT",
                           "pypto_records.size is %zu", r->size);
    if (makes_files(r) && (r->directory == NULL || r->directory[0] == '\0'))
        return diag_status(DIAG_BAD_RECORDS, "name a directory for the files",
                           "%s is required: records of a call have no directory",
                           r->per_rank ? "dfx_base" : "output_prefix");
    if (r->swimlane < 0 || r->swimlane > 4)
        return diag_status(DIAG_BAD_RECORDS, "0 is none, 4 all",
                           "swimlane must be a collection level in 0..4, got %d", r->swimlane);
    if (r->dump_args < 0 || r->dump_args > 2)
        return diag_status(DIAG_BAD_RECORDS, "0 is none, 1 what is marked, 2 all",
                           "dump_args must be a level in 0..2, got %d", r->dump_args);
    if (r->bytes_per_rank < 0)
        return diag_status(DIAG_BAD_RECORDS, "0 lets the library choose", "bytes_per_rank is %lld",
                           (long long)r->bytes_per_rank);
    return setting_check(SETTING_RECORD_BYTES);
}

/* A copy of it and its directory. */
static bool keep(kept_records *to, const pypto_records *from)
{
    *to = (kept_records){.what = PYPTO_RECORDS_INIT};
    if (from == NULL)
        return true;
    to->what = *from;
    if (from->directory == NULL)
        return true;
    to->directory = alloc_strdup(from->directory);
    to->what.directory = to->directory;
    return to->directory != NULL;
}

void records_forget(kept_records *kept)
{
    alloc_free(kept->directory);
    *kept = (kept_records){.what = PYPTO_RECORDS_INIT};
}

pypto_status pypto_worker_set_records(pypto_worker *w, const pypto_records *records)
{
    pypto_status status = check(records);
    kept_records kept;
    if (!status_ok(status))
        return status;
    if (!keep(&kept, records))
        return diag_no_memory();
    turns_enter(w);
    kept_records old = w->records;
    w->records = kept;
    turns_leave(w);
    records_forget(&old);
    return STATUS_OK;
}

bool records_wanted(const pypto_worker *w)
{
    return w->records.what.times || makes_files(&w->records.what);
}

/* ---- before ---- */

static uint32_t notes_of(const pypto_records *r)
{
    uint32_t what = TRACE_TIMES;
    if (r->swimlane > 0 || r->pmu > 0)
        what |= TRACE_BLOCKS;
    if (r->swimlane > 0 || r->dependencies || r->dump_args > 0)
        what |= TRACE_TASKS;
    if (r->swimlane >= 3)
        what |= TRACE_PHASES;
    if (r->scope_stats)
        what |= TRACE_SCOPES;
    if (r->dump_args > 0)
        what |= r->dump_args > 1 ? TRACE_CONTENT : TRACE_MARKED;
    return what;
}

static int64_t bytes_of(const pypto_records *r, int32_t ranks)
{
    const int64_t asked =
        r->bytes_per_rank > 0 ? r->bytes_per_rank : setting_int(SETTING_RECORD_BYTES);
    if (asked > 0)
        return asked;
    if (!makes_files(r))
        return RANK_BYTES_TIMES;
    const int64_t wanted = r->dump_args > 0 ? RANK_BYTES_CONTENT : RANK_BYTES;
    return wanted * ranks > MOST_BYTES ? MOST_BYTES / ranks : wanted;
}

static pypto_status no_room(const pypto_worker *w, int64_t bytes)
{
    return diag_status(
        DIAG_NO_SPACE,
        "let ranks have less with PYPTO_RECORD_BYTES, or with "
        "pypto_records.bytes_per_rank; or record less",
        "there is no memory for the records of a call: %lld MiB for each of %d ranks",
        (long long)(bytes >> 20), w->device_count);
}

static pypto_status take_log(pld_host *host, int32_t rank, int64_t bytes)
{
    pypto_worker *w = host->w;
    struct recording *recording = host->recording;
    int64_t offset, whole;
    if (!size_add(bytes, (int64_t)sizeof(trace_log), &whole))
        return no_room(w, bytes);
    pypto_status status = stage_take(w, whole, "records of a call", &offset);
    if (!status_ok(status)) {
        pypto_status_clear(&status);
        return no_room(w, bytes);
    }
    recording->blocks[rank] = (heap_block){offset, whole};
    trace_log *log = (trace_log *)(void *)(w->seg.base + w->seg.set->staging_offset + offset);
    *log = (trace_log){.capacity = bytes, .what = notes_of(&recording->wanted.what)};
    recording->logs[rank] = log;
    return STATUS_OK;
}

pypto_status records_begin(pld_host *host)
{
    pypto_worker *w = host->w;
    alloc_free(w->times); /* of an earlier call */
    w->times = NULL;
    w->time_count = 0;
    struct recording *recording = host->recording = alloc_zeroed(1, (int64_t)sizeof *recording);
    if (recording == NULL || !keep(&recording->wanted, &w->records.what))
        return diag_no_memory();
    pypto_status status = STATUS_OK;
    if (makes_files(&recording->wanted.what))
        status = trace_prepare(&recording->wanted.what);
    const int64_t bytes = bytes_of(&recording->wanted.what, w->device_count);
    for (int32_t i = 0; status_ok(status) && i < consumer_count(w); ++i)
        status = take_log(host, i, i < w->device_count || bytes < SUB_BYTES ? bytes : SUB_BYTES);
    const int64_t now = os_now_ns(); /* making room can take its time */
    for (int32_t i = 0; status_ok(status) && i < consumer_count(w); ++i)
        recording->logs[i]->origin_ns = now;
    return status;
}

int64_t records_log(const pld_host *host, int32_t device)
{
    return host->recording == NULL
               ? 0
               : (int64_t)((const char *)host->recording->logs[device] - host->w->seg.base);
}

/* ---- after ---- */

void records_end(pld_host *host, pypto_status *status)
{
    pypto_worker *w = host->w;
    const struct recording *recording = host->recording;
    pypto_status written = STATUS_OK;
    if (makes_files(&recording->wanted.what))
        written = trace_write(host->table, &recording->wanted.what, recording->logs,
                              w->device_count, consumer_count(w));
    if (status_ok(written) && recording->wanted.what.times)
        written =
            trace_times(host->table, recording->logs, w->device_count, &w->times, &w->time_count);
    if (status_ok(*status))
        diag_append(status, &written);
    else
        pypto_status_clear(&written); /* the call's own failure is what matters */
}

void records_release(pld_host *host)
{
    struct recording *recording = host->recording;
    if (recording == NULL)
        return;
    for (int32_t i = 0; i < consumer_count(host->w); ++i)
        if (recording->logs[i] != NULL)
            heap_give(&host->w->staging, recording->blocks[i].offset, recording->blocks[i].bytes);
    records_forget(&recording->wanted);
    alloc_free(recording);
    host->recording = NULL;
}

int32_t pypto_worker_times(pypto_worker *w, const pypto_dispatch_times **times)
{
    turns_enter(w);
    *times = w->times;
    const int32_t count = w->time_count;
    turns_leave(w);
    return count;
}
