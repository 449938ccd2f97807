/* The control channel: messages with descriptors over a SOCK_SEQPACKET pair. Host and worker loops
 * call it for start, programs and end.
 *
 * A message is one packet: a header of two words, then the payload; descriptors ride along as
 * SCM_RIGHTS. A packet always carries its header, so a received length of 0 is the end of the
 * channel.
 *
 * Pitfalls. When the other side closes with messages of ours still unread, the kernel reports
 * ECONNRESET once, *before* messages that it had sent us; they are still there and count first. And
 * received descriptors exist as soon as recvmsg returns: every path that refuses the message must
 * close them. */
#include "process/channel.h"

#include "base/diag.h"
#include "base/os.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

typedef struct packet_header {
    uint32_t type;
    uint32_t bytes; /* of the payload; again in the packet's length, which must agree */
} packet_header;

/* Room for the descriptors of one message, aligned as the kernel wants it. */
typedef union control_space {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * CHANNEL_FDS_MAX)];
} control_space;

pypto_status channel_pair(int ends[2])
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        ends[0] = ends[1] = -1;
        return diag_system(errno, NULL, "make a socket pair");
    }
    ends[0] = os_high_fd(ends[0]);
    int error = ends[0] < 0 ? errno : 0;
    ends[1] = os_high_fd(ends[1]);
    if (ends[1] < 0 && error == 0)
        error = errno;
    if (error == 0)
        return STATUS_OK;
    os_close(&ends[0]);
    os_close(&ends[1]);
    return diag_system(error, NULL, "make a socket pair");
}

channel_result channel_send(int fd, uint32_t type, const void *payload, uint32_t bytes,
                            const int *fds, int32_t fd_count)
{
    if (bytes > CHANNEL_MESSAGE_MAX || fd_count < 0 || fd_count > CHANNEL_FDS_MAX) {
        errno = EMSGSIZE;
        return CHANNEL_ERROR;
    }
    packet_header header = {type, bytes};
    struct iovec parts[2] = {
        {&header, sizeof header},
        {(void *)(uintptr_t)payload, bytes}, /* only read; iovec has no const */
    };
    struct msghdr packet = {.msg_iov = parts, .msg_iovlen = 2};
    control_space control;
    if (fd_count > 0) {
        size_t fd_bytes = sizeof(int) * (size_t)fd_count;
        memset(&control, 0, sizeof control);
        packet.msg_control = control.bytes;
        packet.msg_controllen = CMSG_SPACE(fd_bytes);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&packet);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(fd_bytes);
        memcpy(CMSG_DATA(rights), fds, fd_bytes);
    }
    ssize_t sent;
    do
        sent = sendmsg(fd, &packet, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return CHANNEL_OK;
    return errno == EPIPE || errno == ECONNRESET ? CHANNEL_CLOSED : CHANNEL_ERROR;
}

/* Waits until os_now_ns() reaches the deadline (-1: for ever) for something to receive, a hang-up
 * included. */
static channel_result wait_readable(int fd, int64_t deadline_ns)
{
    struct pollfd waits = {fd, POLLIN, 0};
    for (;;) {
        int left_ms = -1;
        if (deadline_ns >= 0) {
            int64_t left_ns = deadline_ns - os_now_ns();
            left_ms = left_ns > 0 ? (int)((left_ns + 999999) / 1000000) : 0;
        }
        int ready = poll(&waits, 1, left_ms);
        if (ready > 0)
            return CHANNEL_OK;
        if (ready == 0)
            return CHANNEL_TIMEOUT;
        if (errno != EINTR)
            return CHANNEL_ERROR;
    }
}

static void close_received(channel_message *message)
{
    for (int32_t i = 0; i < message->fd_count; i++)
        os_close(&message->fds[i]);
    message->fd_count = 0;
}

/* Takes the descriptors out of a received packet; false when one of them was lost on the way. All
 * that did arrive are in the message then, for the caller to close. */
static bool take_fds(struct msghdr *packet, channel_message *message)
{
    bool complete = (packet->msg_flags & MSG_CTRUNC) == 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(packet); c != NULL; c = CMSG_NXTHDR(packet, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
            fd = os_high_fd(fd);
            if (fd < 0)
                complete = false;
            else if (message->fd_count < CHANNEL_FDS_MAX)
                message->fds[message->fd_count++] = fd;
            else
                os_close(&fd);
        }
    }
    return complete;
}

/* One packet, without waiting. CHANNEL_TIMEOUT: there is none. */
static channel_result receive_packet(int fd, channel_message *message)
{
    packet_header header;
    control_space control;
    struct iovec parts[2] = {
        {&header, sizeof header},
        {message->payload, sizeof message->payload},
    };
    struct msghdr packet = {
        .msg_iov = parts,
        .msg_iovlen = 2,
        .msg_control = control.bytes,
        .msg_controllen = sizeof control,
    };
    message->fd_count = 0;
    ssize_t length = recvmsg(fd, &packet, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (length < 0) {
        /* After ECONNRESET the queue, and then the end, are read by the next call. */
        return errno == EAGAIN || errno == EINTR || errno == ECONNRESET ? CHANNEL_TIMEOUT
                                                                        : CHANNEL_ERROR;
    }
    if (length == 0)
        return CHANNEL_CLOSED;
    if (!take_fds(&packet, message) || (packet.msg_flags & MSG_TRUNC) != 0 ||
        (size_t)length < sizeof header || (size_t)length - sizeof header != header.bytes) {
        close_received(message);
        errno = EBADMSG;
        return CHANNEL_ERROR;
    }
    message->type = header.type;
    message->bytes = header.bytes;
    return CHANNEL_OK;
}

channel_result channel_receive(int fd, int32_t timeout_ms, channel_message *message)
{
    message->fd_count = 0;
    int64_t deadline_ns = timeout_ms < 0 ? -1 : os_now_ns() + (int64_t)timeout_ms * 1000000;
    for (;;) {
        channel_result result = wait_readable(fd, deadline_ns);
        if (result != CHANNEL_OK)
            return result;
        result = receive_packet(fd, message);
        if (result != CHANNEL_TIMEOUT)
            return result;
    }
}
