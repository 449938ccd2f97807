/* Whose turn it is, when several threads use a worker set.
 *
 * `lock` is held while the set's state is touched, and by the one thread that waits in poll for what is in flight. A thread
 * that only has something to do rings that one, which lends it the lock (`wanted` says that somebody is there) and then
 * waits on; so a call can be submitted while another thread waits for an earlier one. Threads that wait take turns at
 * `turn`. `gate` keeps the waiting thread from taking the lock back before whoever asked for it has had it.
 *
 * Order: turn, gate, lock. The gate is given up as soon as the lock is there. */
#include "host/host.h"
#include "process/waiting.h"

void turns_init(pypto_worker *w)
{
    pthread_mutex_init(&w->turn, NULL);
    pthread_mutex_init(&w->gate, NULL);
    pthread_mutex_init(&w->lock, NULL);
    atomic_store_explicit(&w->wanted, false, memory_order_relaxed);
}

void turns_destroy(pypto_worker *w)
{
    pthread_mutex_destroy(&w->turn);
    pthread_mutex_destroy(&w->gate);
    pthread_mutex_destroy(&w->lock);
}

void turns_enter(pypto_worker *w)
{
    if (pthread_mutex_trylock(&w->lock) == 0)
        return;
    pthread_mutex_lock(&w->gate);
    /* Before the ring: whoever is woken by it looks at this next. */
    atomic_store_explicit(&w->wanted, true, memory_order_seq_cst);
    host_ring(w->event);
    pthread_mutex_lock(&w->lock);
    atomic_store_explicit(&w->wanted, false, memory_order_seq_cst);
    pthread_mutex_unlock(&w->gate);
}

void turns_leave(pypto_worker *w)
{
    pthread_mutex_unlock(&w->lock);
}

void turns_enter_to_wait(pypto_worker *w)
{
    pthread_mutex_lock(&w->turn);
    turns_enter(w);
}

void turns_leave_waiting(pypto_worker *w)
{
    pthread_mutex_unlock(&w->lock);
    pthread_mutex_unlock(&w->turn);
}

bool turns_wanted(const pypto_worker *w)
{
    return atomic_load_explicit(&w->wanted, memory_order_seq_cst);
}

void turns_lend(pypto_worker *w)
{
    pthread_mutex_unlock(&w->lock);
    pthread_mutex_lock(&w->gate);
    pthread_mutex_lock(&w->lock);
    pthread_mutex_unlock(&w->gate);
}
