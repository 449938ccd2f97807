/* Which files a recorded call leaves, and where: see trace.h and <pypto/records.h>. */
#include "trace/trace.h"

#include "base/alloc.h"
#include "base/os.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct writing {
    trace_run *run;
    char stamp[32];  /* the time, for names of files */
    text everything; /* the trace of all dispatches */
    pypto_status status;
} writing;

/* Names of folders and files are below the directory of the records. */
static const char *below(const writing *w, const char *folder, const char *name)
{
    return folder[0] == '\0' ? name : arena_printf(w->run->a, "%s/%s", folder, name);
}

static void put_bytes(writing *w, const char *folder, const char *name, const char *bytes,
                      int64_t count)
{
    const char *path = below(w, folder, name);
    if (status_ok(w->status))
        w->status = os_folder_write(w->run->wanted->directory, path, bytes, count);
}

static void put(writing *w, const char *folder, const char *name, const text *content)
{
    put_bytes(w, folder, name, content->length > 0 ? content->bytes : "", content->length);
}

/* ---- what an earlier call has left ---- */

/* "rank3", "d12": the letters, and a number behind them. */
static bool is_numbered(const char *name, const char *letters)
{
    const size_t count = strlen(letters);
    return strncmp(name, letters, count) == 0 && name[count] != '\0' &&
           strspn(name + count, "0123456789") == strlen(name + count);
}

static bool is_ours(const char *name)
{
    static const char *const names[] = {"chip_swimlane_records.json",
                                        "deps.json",
                                        "scope_stats",
                                        "args_dump",
                                        "pmu.csv",
                                        "name_map.json",
                                        "dispatch_program.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (strcmp(name, names[i]) == 0)
            return true;
    return strncmp(name, "merged_swimlane_", 16) == 0 || strncmp(name, "name_map_", 9) == 0;
}

static pypto_status remove_stale(arena *a, const char *directory)
{
    pypto_status status = STATUS_OK;
    const os_names names = os_folder_list(a, directory, "");
    for (int64_t i = 0; status_ok(status) && i < names.count; ++i) {
        const char *name = names.items[i];
        if (is_ours(name))
            os_folder_remove(directory, name);
        if (!is_numbered(name, "rank") && !is_numbered(name, "sub"))
            continue;
        status = os_folder_make(directory, name); /* else files could not be put there either */
        const os_names inside = os_folder_list(a, directory, name);
        for (int64_t k = 0; k < inside.count; ++k)
            if (is_numbered(inside.items[k], "d"))
                os_folder_remove(directory, arena_printf(a, "%s/%s", name, inside.items[k]));
    }
    return status;
}

/* ---- a dispatch ---- */

/* The last part of the folder that holds dfx_outputs: the artifact's name. */
static const char *map_name(const writing *w)
{
    const pypto_records *wanted = w->run->wanted;
    if (wanted->per_rank)
        return "name_map.json";
    char *path = arena_strdup(w->run->a, wanted->directory);
    char *slash = strrchr(path, '/');
    if (slash != NULL) {
        *slash = '\0';
        slash = strrchr(path, '/');
    }
    const char *name = slash != NULL ? slash + 1 : path;
    return name[0] != '\0' ? arena_printf(w->run->a, "name_map_%s.json", name) : "name_map.json";
}

static void write_content(writing *w, const trace_dispatch *d, const char *folder)
{
    text index = {.a = w->run->a}, content = {0};
    const char *inner = below(w, folder, "args_dump");
    trace_contents(w->run, d, arena_printf(w->run->a, "%s/%s", w->run->wanted->directory, inner),
                   &index, &content);
    if (content.failed && status_ok(w->status))
        w->status = diag_no_memory();
    put(w, inner, "args_dump.json", &index);
    put(w, inner, "args.bin", &content);
    text_free(&content);
}

/* Files about the order among tasks, which swimlanes show, too. */
static void write_order(writing *w, const trace_dispatch *d, const char *folder)
{
    trace_run *run = w->run;
    const trace_graph graph = trace_graph_of(run, d);
    text deps = {.a = run->a}, names = {.a = run->a};
    trace_deps(run, d, &graph, &deps);
    put(w, folder, "deps.json", &deps);
    trace_names(run, &names);
    put(w, folder, map_name(w), &names);
    if (run->wanted->swimlane == 0)
        return;
    text lanes = {.a = run->a}, merged = {.a = run->a};
    trace_swimlane(run, d, &lanes);
    put(w, folder, "chip_swimlane_records.json", &lanes);
    trace_chrome_begin(&merged);
    trace_chrome_add(run, d, &graph, &merged);
    trace_chrome_end(&merged);
    put(w, folder, arena_printf(run->a, "merged_swimlane_%s.json", w->stamp), &merged);
    if (run->wanted->per_rank)
        trace_chrome_add(run, d, &graph, &w->everything);
}

static void write_dispatch(writing *w, const trace_dispatch *d)
{
    trace_run *run = w->run;
    const pypto_records *wanted = run->wanted;
    const char *folder = "";
    if (wanted->per_rank) {
        int32_t number;
        const char *owner = trace_owner(run, d, &number);
        folder = arena_printf(run->a, "%s%d/d%d", owner, number, d->index);
        text program = {.a = run->a};
        text_add(&program, "{\"program\":");
        json_string(&program, trace_function(run, d->taken->function));
        text_add(&program, "}\n");
        put(w, folder, "dispatch_program.json", &program);
    }
    if (wanted->swimlane > 0 || wanted->dependencies)
        write_order(w, d, folder);
    if (wanted->scope_stats) {
        text stats = {.a = run->a};
        trace_scopes(run, d, &stats);
        put(w, below(w, folder, "scope_stats"), "scope_stats.jsonl", &stats);
    }
    if (wanted->dump_args > 0)
        write_content(w, d, folder);
    if (wanted->pmu > 0) {
        text pmu = {.a = run->a};
        trace_pmu(run, d, &pmu);
        put(w, folder, "pmu.csv", &pmu);
    }
}

static void write_all(writing *w)
{
    trace_run *run = w->run;
    const pypto_records *wanted = run->wanted;
    w->everything.a = run->a;
    trace_chrome_begin(&w->everything);
    for (int32_t owner = 0; owner < run->consumer_count; ++owner)
        for (int64_t i = 0; i < run->consumers[owner].dispatches.count; ++i)
            if (wanted->per_rank || i == 0)
                write_dispatch(w, run->consumers[owner].dispatches.items[i]);
    trace_chrome_order(run, &w->everything);
    trace_chrome_end(&w->everything);
    if (wanted->per_rank && wanted->swimlane > 0)
        put(w, "", arena_printf(run->a, "merged_swimlane_%s.json", w->stamp), &w->everything);
}

static void stamp_now(char *stamp, size_t bytes)
{
    const time_t now = time(NULL);
    struct tm parts;
    if (localtime_r(&now, &parts) == NULL || strftime(stamp, bytes, "%Y%m%d_%H%M%S", &parts) == 0)
        (void)snprintf(stamp, bytes, "%lld", (long long)now);
}

/* ---- what the host calls ---- */

static pypto_status prepare(arena *a, void *context)
{
    const pypto_records *wanted = context;
    pypto_status status = os_folder_make(wanted->directory, "");
    return status_ok(status) ? remove_stale(a, wanted->directory) : status;
}

typedef struct request {
    const pld_program *table;
    const pypto_records *wanted;
    trace_log *const *logs;
    int32_t rank_count, consumer_count;
    pypto_dispatch_times *times;
    int32_t count;
} request;

static trace_run *read_run(arena *a, const request *asked)
{
    trace_run *run = arena_new(a, trace_run);
    *run = (trace_run){.a = a,
                       .table = asked->table,
                       .wanted = asked->wanted,
                       .rank_count = asked->rank_count,
                       .consumer_count = asked->consumer_count};
    trace_read(run, asked->logs);
    return run;
}

static pypto_status write_files(arena *a, void *context)
{
    writing *w = arena_new(a, writing);
    *w = (writing){.run = read_run(a, context), .status = STATUS_OK};
    stamp_now(w->stamp, sizeof w->stamp);
    write_all(w);
    return w->status;
}

static pypto_status fill_times(arena *a, void *context)
{
    request *asked = context;
    const trace_run *run = read_run(a, asked);
    int64_t count = 0;
    for (int32_t rank = 0; rank < run->rank_count; ++rank) {
        /* Fewer times would look like fewer dispatches. */
        if (run->consumers[rank].dropped > 0)
            return diag_status(DIAG_NO_SPACE,
                               "raise PYPTO_RECORD_BYTES, or pypto_records.bytes_per_rank",
                               "the times of rank %d found no room: %lld bytes are too few for the "
                               "dispatches of this call",
                               rank, (long long)asked->logs[rank]->capacity);
        count += run->consumers[rank].dispatches.count;
    }
    asked->times = alloc_zeroed(count + 1, (int64_t)sizeof *asked->times);
    if (asked->times == NULL)
        return diag_no_memory();
    for (int32_t rank = 0; rank < run->rank_count; ++rank) {
        for (int64_t i = 0; i < run->consumers[rank].dispatches.count; ++i) {
            const trace_dispatch *d = run->consumers[rank].dispatches.items[i];
            asked->times[asked->count++] =
                (pypto_dispatch_times){.rank = rank,
                                       .index = d->index,
                                       .name = trace_function(run, d->taken->function),
                                       .taken_ns = d->taken->taken_ns,
                                       .begun_ns = d->begun != NULL ? d->begun->begun_ns : 0,
                                       .wrapper_ns = d->wrapper != NULL ? d->wrapper->ended_ns : 0,
                                       .over_ns = d->over != NULL ? d->over->over_ns : 0};
        }
    }
    return STATUS_OK;
}

pypto_status trace_prepare(const pypto_records *wanted)
{
    pypto_records copy = *wanted;
    return arena_run(prepare, &copy);
}

pypto_status trace_write(const pld_program *table, const pypto_records *wanted,
                         trace_log *const *logs, int32_t rank_count, int32_t consumer_count)
{
    request asked = {table, wanted, logs, rank_count, consumer_count, NULL, 0};
    return arena_run(write_files, &asked);
}

pypto_status trace_times(const pld_program *table, trace_log *const *logs, int32_t rank_count,
                         pypto_dispatch_times **times, int32_t *count)
{
    request asked = {table, NULL, logs, rank_count, rank_count, NULL, 0};
    pypto_status status = arena_run(fill_times, &asked);
    *times = asked.times;
    *count = asked.count;
    return status;
}
