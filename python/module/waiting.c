/* The GIL and Python's signal handlers around calls into the library that may wait.
 *
 * The library waits with the GIL released. When a signal interrupts the wait it asks waiting_interrupted(), which takes
 * the GIL, lets Python run its handlers, and says whether one raised: that exception then is the result of the call.
 * The thread state is noted per thread and not per worker set, because several threads may be in calls of
 * one set, each with its own. A handler may make another call: that one notes its own state and puts the former
 * back. */
#include "program.h"

/* Of this thread's innermost call; NULL outside of calls. */
static _Thread_local PyThreadState *released;

waiting waiting_begin(void)
{
    const waiting before = {released};
    released = PyEval_SaveThread();
    return before;
}

void waiting_end(waiting before)
{
    PyEval_RestoreThread(released);
    released = before.outer;
}

void waiting_pause(void)
{
    PyEval_RestoreThread(released);
}

void waiting_resume(void)
{
    released = PyEval_SaveThread();
}

bool waiting_interrupted(void *context)
{
    (void)context;
    waiting_pause();
    const bool raised = PyErr_Occurred() != NULL || PyErr_CheckSignals() < 0;
    waiting_resume();
    return raised;
}
