/* The GIL and Python's signal handlers around calls into the library that may wait.
 *
 * The library waits with the GIL released. When a signal interrupts the wait it asks waiting_interrupted(), which takes
 * the GIL, lets Python run its handlers, and says whether one raised: that exception then is the result of the call.
 * The thread state is noted per thread and not per worker set, because several threads may be in calls of
 * one set, each with its own. A handler may make another call: that one notes its own state and puts the former
 * back.
 *
 * Python leaves daemon threads alone when it ends. One that waits here has the set's turn, without which the set cannot be
 * closed; so such threads are interrupted first. */
#include "process/waiting.h"
#include "program.h"

/* Of this thread's innermost call; NULL outside of calls. */
static _Thread_local PyThreadState *released;
/* Protected by the GIL: the thread in which the interpreter ends (0: it does not yet), and the set of those that it
 * leaves to themselves. */
static unsigned long ending_thread;
static PyObject *abandoned;

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
    if (waiting_is_abandoned() && !PyErr_Occurred())
        PyErr_SetNone(PyExc_SystemExit); /* ends a thread without a word */
    const bool raised = PyErr_Occurred() != NULL || PyErr_CheckSignals() < 0;
    waiting_resume();
    return raised;
}

/* ---- the C compiler ---- */

compiler_wait compiler_wait_new(void)
{
    return (compiler_wait){.interrupts = {.event = -1, .asked = waiting_interrupted}};
}

/* Without an event, of which there may be too many, only a signal that comes during the compiler's poll() is seen. */
void compiler_waiting(void *context, bool begins)
{
    compiler_wait *wait = context;
    if (begins) {
        wait->before = waiting_begin();
        wait->interrupts.event = host_event_create();
        (void)host_relay_begin(wait->interrupts.event);
    } else {
        host_relay_end(wait->interrupts.event);
        os_close(&wait->interrupts.event);
        waiting_end(wait->before);
    }
}

/* ---- the end of the interpreter ---- */

bool waiting_is_abandoned(void)
{
    return ending_thread != 0 && ending_thread != PyThread_get_thread_ident();
}

bool waiting_has_abandoned(unsigned long thread)
{
    if (abandoned == NULL)
        return false;
    PyObject *number = PyLong_FromUnsignedLong(thread);
    const bool is = number != NULL && PySet_Contains(abandoned, number) == 1;
    Py_XDECREF(number);
    if (PyErr_Occurred())
        PyErr_Clear(); /* no memory: it may not be */
    return is;
}

PyObject *waiting_abandon(PyObject *module, PyObject *threads)
{
    (void)module;
    PyObject *set = PyFrozenSet_New(threads);
    if (set == NULL)
        return NULL;
    Py_XDECREF(abandoned);
    abandoned = set;
    ending_thread = PyThread_get_thread_ident();
    pypto_interrupt();
    Py_RETURN_NONE;
}
