/* The control channel: messages, descriptors, time-outs, hang-up, and what a broken peer may
 * send. */
#include "base/diag.h"
#include "base/os.h"
#include "child.h"
#include "process/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int ends[2];
static int fds_before;
static channel_message message;

static int set_up(void **state)
{
    (void)state;
    fds_before = child_count_fds();
    return status_ok(channel_pair(ends)) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    os_close(&ends[0]);
    os_close(&ends[1]);
    int fds_after = child_count_fds();
    if (fds_after != fds_before)
        print_error("%d descriptors before, %d after\n", fds_before, fds_after);
    return fds_after == fds_before ? 0 : -1;
}

static void both_ends_are_high_and_close_on_exec(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_true(ends[i] > 2);
        assert_int_equal(fcntl(ends[i], F_GETFD), FD_CLOEXEC);
    }
}

static void messages_arrive_whole_and_in_order(void **state)
{
    (void)state;
    static char large[CHANNEL_MESSAGE_MAX];
    memset(large, 'w', sizeof large);
    assert_int_equal(channel_send(ends[0], 7, "hello", 6, NULL, 0), CHANNEL_OK);
    assert_int_equal(channel_send(ends[0], 8, NULL, 0, NULL, 0), CHANNEL_OK);
    assert_int_equal(channel_send(ends[0], 9, large, sizeof large, NULL, 0), CHANNEL_OK);

    assert_int_equal(channel_receive(ends[1], -1, &message), CHANNEL_OK);
    assert_int_equal(message.type, 7);
    assert_int_equal(message.bytes, 6);
    assert_int_equal(message.fd_count, 0);
    assert_string_equal(message.payload, "hello");
    assert_int_equal(channel_receive(ends[1], -1, &message), CHANNEL_OK);
    assert_int_equal(message.type, 8);
    assert_int_equal(message.bytes, 0);
    assert_int_equal(channel_receive(ends[1], -1, &message), CHANNEL_OK);
    assert_int_equal(message.bytes, sizeof large);
    assert_memory_equal(message.payload, large, sizeof large);

    assert_int_equal(channel_send(ends[1], 1, "b", 1, NULL, 0), CHANNEL_OK);
    assert_int_equal(channel_receive(ends[0], 0, &message), CHANNEL_OK);
}

static void too_much_is_refused(void **state)
{
    (void)state;
    static char larger[CHANNEL_MESSAGE_MAX + 1];
    int fds[CHANNEL_FDS_MAX + 1] = {0};
    assert_int_equal(channel_send(ends[0], 1, larger, sizeof larger, NULL, 0), CHANNEL_ERROR);
    assert_int_equal(channel_send(ends[0], 1, "", 0, fds, CHANNEL_FDS_MAX + 1), CHANNEL_ERROR);
    assert_int_equal(channel_receive(ends[1], 0, &message), CHANNEL_TIMEOUT);
}

static void descriptors_travel(void **state)
{
    (void)state;
    int pipes[CHANNEL_FDS_MAX][2];
    int sent[CHANNEL_FDS_MAX];
    for (int i = 0; i < CHANNEL_FDS_MAX; i++) {
        assert_int_equal(pipe(pipes[i]), 0);
        sent[i] = pipes[i][1];
    }
    assert_int_equal(channel_send(ends[0], 1, "x", 1, sent, CHANNEL_FDS_MAX), CHANNEL_OK);
    assert_int_equal(channel_receive(ends[1], 0, &message), CHANNEL_OK);
    assert_int_equal(message.fd_count, CHANNEL_FDS_MAX);
    for (int i = 0; i < CHANNEL_FDS_MAX; i++) {
        char byte = (char)('a' + i);
        char read_back = 0;
        assert_true(message.fds[i] > 2);
        assert_int_equal(fcntl(message.fds[i], F_GETFD), FD_CLOEXEC);
        assert_int_equal(write(message.fds[i], &byte, 1), 1);
        assert_int_equal(read(pipes[i][0], &read_back, 1), 1);
        assert_int_equal(read_back, byte);
        close(message.fds[i]);
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
}

static void ignore(int number)
{
    (void)number;
}

static void waiting_ends_in_time(void **state)
{
    (void)state;
    /* A signal each millisecond must neither end the wait nor start it anew: it would never end. */
    struct sigaction action = {.sa_handler = ignore};
    struct sigaction before;
    sigaction(SIGALRM, &action, &before);
    struct itimerval often = {{0, 1000}, {0, 1000}};
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    int64_t start = os_now_ns();
    channel_result result = channel_receive(ends[0], 50, &message);
    int64_t passed = os_now_ns() - start;
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    assert_int_equal(result, CHANNEL_TIMEOUT);
    assert_true(passed >= 50 * (int64_t)1000000);
    assert_int_equal(channel_receive(ends[0], 0, &message), CHANNEL_TIMEOUT);
}

static void a_closed_end_is_seen(void **state)
{
    (void)state;
    assert_int_equal(channel_send(ends[0], 5, "last", 5, NULL, 0), CHANNEL_OK);
    os_close(&ends[0]);
    /* What was sent before the end still counts. */
    assert_int_equal(channel_receive(ends[1], -1, &message), CHANNEL_OK);
    assert_int_equal(message.type, 5);
    assert_int_equal(channel_receive(ends[1], -1, &message), CHANNEL_CLOSED);
    assert_int_equal(channel_receive(ends[1], 0, &message), CHANNEL_CLOSED);
    assert_int_equal(channel_send(ends[1], 1, "x", 1, NULL, 0), CHANNEL_CLOSED);
}

/* The other side closes without having read what we sent: the kernel says "connection reset" before
 * it gives out what the other side had sent. */
static void unread_messages_do_not_hide_received_ones(void **state)
{
    (void)state;
    assert_int_equal(channel_send(ends[0], 5, "last words", 11, NULL, 0), CHANNEL_OK);
    assert_int_equal(channel_send(ends[1], 6, "unread", 7, NULL, 0), CHANNEL_OK);
    os_close(&ends[0]);
    assert_int_equal(channel_receive(ends[1], -1, &message), CHANNEL_OK);
    assert_string_equal(message.payload, "last words");
    assert_int_equal(channel_receive(ends[1], -1, &message), CHANNEL_CLOSED);
}

/* Sends a raw packet with a descriptor; the refused message must not leak it (tear_down counts). */
static void send_raw(const void *bytes, size_t count)
{
    int fd = ends[0];
    struct iovec part = {(void *)(uintptr_t)bytes, count};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr packet = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&packet);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    assert_int_equal(sendmsg(ends[0], &packet, 0), count);
}

static void malformed_packets_are_errors(void **state)
{
    (void)state;
    static uint32_t packet[2 + CHANNEL_MESSAGE_MAX / 4 + 1];
    packet[1] = 100; /* announces 100 bytes */
    const size_t lengths[] = {1, 7, 8, 107, 109, sizeof packet};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        send_raw(packet, lengths[i]);
        assert_int_equal(channel_receive(ends[1], 0, &message), CHANNEL_ERROR);
        assert_int_equal(message.fd_count, 0);
    }
    send_raw(packet, 108);
    assert_int_equal(channel_receive(ends[1], 0, &message), CHANNEL_OK);
    assert_int_equal(message.fd_count, 1);
    os_close(&message.fds[0]);
}

/* A receiver that may open no more descriptors gets an error, not a message with some missing. */
static void receive_at_the_limit(void)
{
    int sent[3] = {ends[0], ends[0], ends[0]};
    CHILD_EQUAL(channel_send(ends[0], 1, "x", 1, sent, 3), CHANNEL_OK);
    int next = dup(ends[0]);
    close(next);
    struct rlimit limit = {(rlim_t)next + 1, (rlim_t)next + 1};
    CHILD_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHILD_EQUAL(channel_receive(ends[1], 0, &message), CHANNEL_ERROR);
    CHILD_EQUAL(dup(ends[0]), next); /* none is left open */
}

static void the_descriptor_limit_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(child_run(receive_at_the_limit), 0);
}

static void use_low_descriptors(void)
{
    int fds[2];
    close(0);
    close(1);
    close(2);
    CHILD_CHECK(status_ok(channel_pair(fds)));
    CHILD_CHECK(fds[0] > 2 && fds[1] > 2);
    CHILD_EQUAL(channel_send(fds[0], 1, "x", 1, &fds[0], 1), CHANNEL_OK);
    CHILD_EQUAL(channel_receive(fds[1], 0, &message), CHANNEL_OK);
    CHILD_EQUAL(message.fd_count, 1);
    CHILD_CHECK(message.fds[0] > 2);
    CHILD_EQUAL(fcntl(message.fds[0], F_GETFD), FD_CLOEXEC);
    for (int fd = 0; fd < 3; fd++)
        CHILD_EQUAL(fcntl(fd, F_GETFD), -1);
}

static void descriptors_stay_above_the_standard_ones(void **state)
{
    (void)state;
    assert_int_equal(child_run(use_low_descriptors), 0);
}

static void no_descriptors_left(void)
{
    struct rlimit limit = {3, 3};
    int fds[2] = {7, 7};
    CHILD_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    pypto_status status = channel_pair(fds);
    CHILD_EQUAL(status.kind, PYPTO_ERROR_SYSTEM);
    CHILD_EQUAL(fds[0], -1);
    CHILD_EQUAL(fds[1], -1);
}

static void a_pair_may_fail(void **state)
{
    (void)state;
    assert_int_equal(child_run(no_descriptors_left), 0);
}

static void send_many(void)
{
    char payload[4000] = {0};
    for (uint32_t i = 0; i < 2000; i++)
        CHILD_EQUAL(channel_send(ends[0], i, payload, sizeof payload, NULL, 0), CHANNEL_OK);
}

static void a_full_channel_waits_for_its_reader(void **state)
{
    (void)state;
    pid_t sender = fork();
    if (sender == 0) {
        alarm(PATIENCE_S);
        os_close(&ends[1]); /* so that it ends when the reader is gone */
        send_many();
        _exit(0);
    }
    for (uint32_t i = 0; i < 2000; i++) {
        assert_int_equal(channel_receive(ends[1], PATIENCE_MS, &message), CHANNEL_OK);
        assert_int_equal(message.type, i);
    }
    int status = -1;
    waitpid(sender, &status, 0);
    assert_int_equal(status, 0);
}

#define CHANNEL_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHANNEL_TEST(both_ends_are_high_and_close_on_exec),
        CHANNEL_TEST(messages_arrive_whole_and_in_order),
        CHANNEL_TEST(too_much_is_refused),
        CHANNEL_TEST(descriptors_travel),
        CHANNEL_TEST(waiting_ends_in_time),
        CHANNEL_TEST(a_closed_end_is_seen),
        CHANNEL_TEST(unread_messages_do_not_hide_received_ones),
        CHANNEL_TEST(malformed_packets_are_errors),
        CHANNEL_TEST(the_descriptor_limit_is_an_error),
        CHANNEL_TEST(descriptors_stay_above_the_standard_ones),
        CHANNEL_TEST(a_pair_may_fail),
        CHANNEL_TEST(a_full_channel_waits_for_its_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
