/* The host's wait and the relay of SIGINT: see waiting.h. */
#include "process/waiting.h"

#include "base/os.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_PROCESSES 128
#define MAX_RELAYS 64
/* Descriptors that wait_by_number() sees; whoever has more has no limit that low. */
#define SELECT_MOST 65536
#define LONG_BITS ((int)sizeof(long) * 8)

static pthread_mutex_t relay_lock = PTHREAD_MUTEX_INITIALIZER;
static int relay_users;
static struct sigaction relay_previous;
/* Descriptor + 1; 0 is a free slot. Read by the handler. */
static _Atomic int relay_events[MAX_RELAYS];
static _Atomic uint32_t relay_signals;

int host_event_create(void)
{
    return os_high_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

void host_yield(void)
{
    sched_yield();
}

void host_ring(int event)
{
    const uint64_t one = 1;
    ssize_t written = write(event, &one, sizeof one);
    (void)written;
}

static void ring_relays(void)
{
    atomic_fetch_add_explicit(&relay_signals, 1, memory_order_relaxed);
    for (int i = 0; i < MAX_RELAYS; ++i) {
        const int event = atomic_load_explicit(&relay_events[i], memory_order_relaxed) - 1;
        if (event >= 0)
            host_ring(event);
    }
}

void host_relay_all(void)
{
    pthread_mutex_lock(&relay_lock); /* descriptors in use are open */
    ring_relays();
    pthread_mutex_unlock(&relay_lock);
}

static void relay(int number, siginfo_t *info, void *context)
{
    if ((relay_previous.sa_flags & SA_SIGINFO) != 0)
        relay_previous.sa_sigaction(number, info, context);
    else
        relay_previous.sa_handler(number);
    const int saved = errno;
    ring_relays(); /* afterwards: who wakes up on another thread asks what that handler has noted */
    errno = saved;
}

uint32_t host_relay_begin(int event)
{
    pthread_mutex_lock(&relay_lock);
    for (int i = 0; i < MAX_RELAYS; ++i) {
        if (atomic_load_explicit(&relay_events[i], memory_order_relaxed) == 0) {
            atomic_store_explicit(&relay_events[i], event + 1, memory_order_relaxed);
            break;
        }
    }
    if (relay_users++ == 0) {
        sigaction(SIGINT, NULL, &relay_previous);
        const bool handled =
            (relay_previous.sa_flags & SA_SIGINFO) != 0 ||
            (relay_previous.sa_handler != SIG_DFL && relay_previous.sa_handler != SIG_IGN);
        if (handled) {
            struct sigaction ours = relay_previous;
            ours.sa_flags |= SA_SIGINFO;
            ours.sa_sigaction = relay;
            sigaction(SIGINT, &ours, NULL);
        }
    }
    pthread_mutex_unlock(&relay_lock);
    return atomic_load_explicit(&relay_signals, memory_order_relaxed);
}

void host_relay_end(int event)
{
    pthread_mutex_lock(&relay_lock);
    for (int i = 0; i < MAX_RELAYS; ++i) {
        if (atomic_load_explicit(&relay_events[i], memory_order_relaxed) == event + 1) {
            atomic_store_explicit(&relay_events[i], 0, memory_order_relaxed);
            break;
        }
    }
    if (--relay_users == 0) {
        struct sigaction now;
        sigaction(SIGINT, NULL, &now);
        /* Somebody may have installed a handler of his own meanwhile: then it stays. */
        if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == relay)
            sigaction(SIGINT, &relay_previous, NULL);
    }
    pthread_mutex_unlock(&relay_lock);
}

/* What poll() says of the event, which is fds[0]. */
static unsigned after_poll(const struct pollfd *fds, int ready, uint32_t *signals_seen)
{
    unsigned wake = 0;
    if (ready < 0)
        wake |= HOST_WAKE_SIGNAL;
    if (ready == 0)
        wake |= HOST_WAKE_TIMEOUT;
    if (ready > 0 && fds[0].revents != 0) {
        uint64_t value;
        ssize_t got = read(fds[0].fd, &value, sizeof value);
        (void)got;
        wake |= HOST_WAKE_EVENT;
    }
    const uint32_t signals = atomic_load_explicit(&relay_signals, memory_order_relaxed);
    if (signals != *signals_seen)
        wake |= HOST_WAKE_SIGNAL;
    *signals_seen = signals;
    return wake;
}

/* poll() for more entries than the process may have files, which it has when `ulimit -n` was lowered behind them. */
static int wait_by_number(struct pollfd *fds, nfds_t count, int32_t timeout_ms)
{
    unsigned long bits[SELECT_MOST / LONG_BITS] = {0};
    int last = -1;
    for (nfds_t i = 0; i < count; ++i) {
        fds[i].revents = 0;
        if (fds[i].fd < 0 || fds[i].fd >= SELECT_MOST)
            continue;
        bits[fds[i].fd / LONG_BITS] |= 1ul << fds[i].fd % LONG_BITS;
        last = fds[i].fd > last ? fds[i].fd : last;
    }
    struct timespec time = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    const int ready =
        (int)syscall(SYS_pselect6, last + 1, bits, NULL, NULL, timeout_ms < 0 ? NULL : &time, NULL);
    for (nfds_t i = 0; ready > 0 && i < count; ++i)
        if (fds[i].fd >= 0 && fds[i].fd < SELECT_MOST &&
            (bits[fds[i].fd / LONG_BITS] >> fds[i].fd % LONG_BITS & 1) != 0)
            fds[i].revents = POLLIN;
    return ready;
}

static int wait_for_any(struct pollfd *fds, nfds_t count, int32_t timeout_ms)
{
    const int ready = poll(fds, count, timeout_ms);
    return ready < 0 && errno == EINVAL ? wait_by_number(fds, count, timeout_ms) : ready;
}

unsigned host_wait_messages(int event, const process *processes, const bool *awaited, int32_t count,
                            int32_t timeout_ms, uint32_t *signals_seen)
{
    struct pollfd fds[2 * MAX_PROCESSES + 1];
    fds[0] = (struct pollfd){.fd = event, .events = POLLIN};
    for (int32_t i = 0; i < count; ++i) { /* -1 is ignored */
        fds[2 * i + 1] = (struct pollfd){awaited[i] ? processes[i].channel : -1, POLLIN, 0};
        fds[2 * i + 2] = (struct pollfd){awaited[i] ? processes[i].pidfd : -1, POLLIN, 0};
    }
    return after_poll(fds, wait_for_any(fds, 2 * (nfds_t)count + 1, timeout_ms), signals_seen);
}

unsigned host_wait(int event, const process *processes, int32_t count, int32_t timeout_ms,
                   uint32_t *signals_seen)
{
    struct pollfd fds[MAX_PROCESSES + 1];
    fds[0] = (struct pollfd){.fd = event, .events = POLLIN};
    for (int32_t i = 0; i < count; ++i) {
        /* A pidfd is readable when the process is dead; a channel hangs up. Dead ones already known
         * to be (reaped) are left out: -1 is ignored. */
        const bool has_pidfd = processes[i].pidfd >= 0;
        int fd = has_pidfd ? processes[i].pidfd : processes[i].channel;
        fds[i + 1] =
            (struct pollfd){.fd = processes[i].reaped ? -1 : fd, .events = has_pidfd ? POLLIN : 0};
    }
    const int ready = wait_for_any(fds, (nfds_t)count + 1, timeout_ms);
    unsigned wake = after_poll(fds, ready, signals_seen);
    for (int32_t i = 0; ready > 0 && i < count; ++i)
        if (fds[i + 1].revents != 0)
            wake |= HOST_WAKE_DEATH;
    return wake;
}
