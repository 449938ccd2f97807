/* Worker sets for tests of whole programs: of each kind that can be had here. Under ThreadSanitizer only
 * threads are run: it does not support threads in a forked child. Included behind cmocka.h. */
#ifndef TESTS_WORKER_SETS_H
#define TESTS_WORKER_SETS_H

#include <pypto/pypto.h>

#if defined(__SANITIZE_THREAD__)
#define NO_FORK 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NO_FORK 1
#endif
#endif

static const pypto_start starts[] = {
    PYPTO_START_THREAD,
#ifndef NO_FORK
    PYPTO_START_FORK,
#endif
};
#define START_COUNT ((int)(sizeof starts / sizeof *starts))

/* A set of `count` devices with the ids first_id, first_id + 1, ...; `interrupted` may be NULL. */
static inline pypto_worker *make_set(pypto_start start, int32_t count, int32_t first_id,
                                     bool (*interrupted)(void *))
{
    int32_t ids[PYPTO_MAX_RANKS];
    for (int32_t i = 0; i < count; ++i)
        ids[i] = first_id + i;
    pypto_worker_options options = PYPTO_WORKER_OPTIONS_INIT;
    options.device_ids = ids;
    options.device_count = count;
    options.start = start;
    options.interrupted = interrupted;
    pypto_worker *worker = NULL;
    pypto_status status = pypto_worker_create(&options, &worker);
    if (status.kind != PYPTO_ERROR_NONE)
        fail_msg("create: %s", pypto_status_text(&status));
    return worker;
}

#endif
