/* The worker's side of life and death: signals that concern only the parent are ignored, and the
 * parent's end is noticed. Called by the worker's control thread (src/runtime) and by
 * process_fork's child.
 *
 * The parent's pidfd is the truth; the channel's hang-up is the same news where pidfds are
 * forbidden. The channel alone would not do: a forked child of the calling program, or a sibling
 * worker started by fork, may hold a copy of the parent's end and keep it open. */
#include "process/parent.h"

#include "base/os.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

int parent_open(bool *gone)
{
    *gone = false;
    pid_t parent = getppid();
    if (parent == 0)
        return -1; /* it lives in another pid namespace and has no number here */
    int pidfd = os_open_pidfd(parent);
    bool missing = pidfd < 0 && errno == ESRCH;
    /* When it ended before the pidfd was open, somebody else is our parent now, and the pidfd may
     * be that of a stranger who got its number. */
    if (missing || getppid() != parent) {
        *gone = true;
        os_close(&pidfd);
    }
    return pidfd;
}

/* Whether a message is waiting: the end of the channel, too, makes it "readable". */
static bool has_message(int channel)
{
    char byte;
    ssize_t length;
    do
        length = recv(channel, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    while (length < 0 && (errno == EINTR || errno == ECONNRESET)); /* as in channel.c */
    return length > 0;
}

bool parent_wait_message(int parent_pidfd, int channel)
{
    for (;;) {
        struct pollfd waits[2] = {{channel, POLLIN, 0}, {parent_pidfd, POLLIN, 0}};
        if (poll(waits, 2, -1) < 0) {
            if (errno == EINTR)
                continue;
            return false;
        }
        if (waits[0].revents != 0 || waits[1].revents != 0)
            return has_message(channel);
    }
}

static void set_handler(int number, void (*handler)(int))
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(number, &action, NULL); /* fails for SIGKILL, SIGSTOP and the C library's own: good */
}

void parent_prepare_signals(void)
{
    /* First these two, so that there is no moment in which a Ctrl-C would end us. */
    set_handler(SIGINT, SIG_IGN);
    set_handler(SIGPIPE, SIG_IGN);
    for (int number = 1; number <= SIGRTMAX; number++)
        if (number != SIGINT && number != SIGPIPE)
            set_handler(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_NAME, "pypto-worker");
}
