/* The control channel between host and worker: small messages, with descriptors, over a
 * SOCK_SEQPACKET pair. Rare traffic only (start, programs, end): dispatches go through shared
 * memory.
 *
 * Interrupted calls are resumed. A closed other end is CHANNEL_CLOSED, not an error. */
#ifndef PROCESS_CHANNEL_H
#define PROCESS_CHANNEL_H

#include <pypto/status.h>

#include <stdbool.h>
#include <stdint.h>

#define CHANNEL_MESSAGE_MAX 8192
#define CHANNEL_FDS_MAX 4

typedef struct channel_message {
    uint32_t type; /* the users' own numbering */
    uint32_t bytes;
    int32_t fd_count;
    int fds[CHANNEL_FDS_MAX]; /* when received: >= 3, close-on-exec, and the receiver's to close */
    char payload[CHANNEL_MESSAGE_MAX];
} channel_message;

typedef enum channel_result {
    CHANNEL_OK,
    CHANNEL_CLOSED,
    CHANNEL_TIMEOUT,
    CHANNEL_ERROR
} channel_result;

/* A connected pair, both ends >= 3 and close-on-exec. */
PYPTO_NODISCARD pypto_status channel_pair(int ends[2]);

/* Never raises SIGPIPE. */
channel_result channel_send(int fd, uint32_t type, const void *payload, uint32_t bytes,
                            const int *fds, int32_t fd_count);

/* Waits up to timeout_ms (-1: for ever). */
channel_result channel_receive(int fd, int32_t timeout_ms, channel_message *message);
#endif
