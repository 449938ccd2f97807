/* Worker processes: start by exec and by fork, death, end, and the parent as a worker sees it.
 *
 * The program that is exec'd is this one: main() plays the worker when its name is "pypto-worker",
 * and the title says which. Tests that change signals, descriptors or children of their process run
 * in a forked child. */
#include "base/alloc.h"
#include "base/diag.h"
#include "base/os.h"
#include "child.h"
#include "process/channel.h"
#include "process/parent.h"
#include "process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char self[4096]; /* path of this program */
static int fds_before;
static channel_message message;

/* What a worker finds when it starts. */
typedef struct worker_facts {
    uint64_t fds; /* bit n: descriptor n is open */
    int32_t standard_is_null;
    int32_t blocked[65]; /* by signal */
    int32_t ignored[65];
    int32_t handled[65];
    char environment[64];
    char command_line[256];
    char name[16];
} worker_facts;

static void find_signals(worker_facts *facts)
{
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int number = 1; number <= 64; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) != 0)
            continue;
        facts->blocked[number] = sigismember(&mask, number);
        facts->ignored[number] = action.sa_handler == SIG_IGN;
        facts->handled[number] = action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL;
    }
}

static void find_descriptors(worker_facts *facts)
{
    struct stat null;
    stat("/dev/null", &null);
    facts->standard_is_null = 1;
    for (int fd = 0; fd < 64; fd++) {
        struct stat info;
        if (fcntl(fd, F_GETFD) >= 0)
            facts->fds |= (uint64_t)1 << fd;
        if (fd < 3 && (fstat(fd, &info) != 0 || info.st_rdev != null.st_rdev))
            facts->standard_is_null = 0;
    }
}

static void send_facts(int channel)
{
    static worker_facts facts;
    find_descriptors(&facts);
    find_signals(&facts);
    const char *variable = getenv("PYPTO_TEST_VARIABLE");
    snprintf(facts.environment, sizeof facts.environment, "%s", variable != NULL ? variable : "");
    prctl(PR_GET_NAME, facts.name);
    int fd = open("/proc/self/cmdline", O_RDONLY);
    ssize_t count = fd >= 0 ? read(fd, facts.command_line, sizeof facts.command_line - 1) : 0;
    for (ssize_t i = 0; i + 1 < count; i++)
        if (facts.command_line[i] == '\0')
            facts.command_line[i] = ' ';
    channel_send(channel, 1, &facts, sizeof facts, NULL, 0);
}

/* Answers until the channel closes; then ends with the last number that it was sent. */
static int echo_worker(int channel)
{
    static channel_message request;
    uint32_t last = 0;
    while (channel_receive(channel, -1, &request) == CHANNEL_OK) {
        last = request.type;
        channel_send(channel, request.type, request.payload, request.bytes, NULL, 0);
    }
    return (int)last;
}

static _Noreturn void sleep_forever(void)
{
    for (;;)
        pause();
}

/* What the exec'd copy of this program does; a title is one of the words below. */
static int play_worker(const char *title)
{
    if (strcmp(title, "facts") == 0)
        send_facts(3);
    parent_prepare_signals();
    if (strcmp(title, "sleep") == 0)
        sleep_forever();
    if (strcmp(title, "spin") == 0 && write(3, "s", 1) == 1)
        for (volatile int64_t i = 0;; i = i + 1)
            ;
    if (strncmp(title, "exit ", 5) == 0)
        return atoi(title + 5);
    return echo_worker(3);
}

static int set_up(void **state)
{
    (void)state;
    fds_before = child_count_fds();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    alloc_fail_at(0);
    int fds_after = child_count_fds();
    if (fds_after != fds_before)
        print_error("%d descriptors before, %d after\n", fds_before, fds_after);
    return fds_after == fds_before ? 0 : -1;
}

static process start(const char *title)
{
    process p;
    pypto_status status = process_spawn(self, title, &p);
    assert_true(status_ok(status));
    assert_true(p.pid > 0);
    return p;
}

/* One round trip; afterwards the worker has finished starting. */
static channel_result exchange(process *p, uint32_t type)
{
    if (channel_send(p->channel, type, "ping", 5, NULL, 0) != CHANNEL_OK)
        return CHANNEL_ERROR;
    channel_result result = channel_receive(p->channel, PATIENCE_MS, &message);
    return result == CHANNEL_OK && message.type != type ? CHANNEL_ERROR : result;
}

static bool wait_dead(process *p)
{
    for (int i = 0; i < PATIENCE_MS; i++) {
        if (process_dead(p))
            return true;
        usleep(1000);
    }
    return false;
}

static void assert_end(const process *p, const char *expected)
{
    char text[64];
    process_describe_exit(p, text, sizeof text);
    assert_string_equal(text, expected);
}

static void a_spawned_worker_answers_and_ends(void **state)
{
    (void)state;
    process p = start("echo");
    assert_true(p.channel > 2);
    assert_int_equal(fcntl(p.channel, F_GETFD), FD_CLOEXEC);
    assert_int_equal(exchange(&p, 9), CHANNEL_OK);
    assert_string_equal(message.payload, "ping");
    assert_false(process_dead(&p));
    process_close(&p, PATIENCE_MS);
    assert_true(p.reaped);
    assert_int_equal(p.exit_code, 9);
    assert_int_equal(p.exit_signal, 0);
    assert_end(&p, "exit code 9");
    process_close(&p, 0); /* again: nothing happens */
    process_kill(&p);
    assert_int_equal(p.channel, -1);
    assert_int_equal(p.pidfd, -1);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie */
    assert_int_equal(errno, ECHILD);
}

static void exit_codes_are_reported(void **state)
{
    (void)state;
    process p = start("exit 3");
    assert_true(wait_dead(&p));
    assert_int_equal(p.exit_code, 3);
    assert_end(&p, "exit code 3");
    assert_int_equal(channel_receive(p.channel, PATIENCE_MS, &message), CHANNEL_CLOSED);
    process_close(&p, 0);
}

static void a_missing_program_is_an_error(void **state)
{
    (void)state;
    process p;
    pypto_status status = process_spawn("/no/such/worker", "t", &p);
    assert_int_equal(status.kind, PYPTO_ERROR_DEVICE);
    assert_string_equal(status.diagnostics->code, "PYPTO-H408");
    assert_string_equal(status.diagnostics->message,
                        "cannot start the worker process /no/such/worker: "
                        "No such file or directory");
    assert_non_null(strstr(status.diagnostics->hint, "PYPTO_WORKER"));
    pypto_status_clear(&status);
    assert_int_equal(p.pid, 0);
    assert_int_equal(p.channel, -1);
    assert_true(process_dead(&p));
    process_close(&p, 0);
    alloc_fail_at(1);
    status = process_spawn(self, "t", &p);
    assert_int_equal(status.kind, PYPTO_ERROR_MEMORY);
    pypto_status_clear(&status);
}

static void handle(int number)
{
    (void)number;
}

static const worker_facts *receive_facts(int channel)
{
    CHILD_EQUAL(channel_receive(channel, PATIENCE_MS, &message), CHANNEL_OK);
    CHILD_EQUAL(message.bytes, sizeof(worker_facts));
    static worker_facts facts;
    memcpy(&facts, message.payload, sizeof facts);
    return &facts;
}

static void spawn_from_a_messy_process(void)
{
    child_close_others();
    setenv("PYPTO_TEST_VARIABLE", "through", 1);
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGUSR1, handle);
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    sigaddset(&some, SIGTERM);
    sigprocmask(SIG_SETMASK, &some, NULL);

    process other;
    process p;
    CHILD_CHECK(status_ok(process_spawn(self, "echo", &other)));
    CHILD_CHECK(status_ok(process_spawn(self, "facts", &p)));
    const worker_facts *facts = receive_facts(p.channel);
    CHILD_EQUAL(facts->fds, 15); /* 0, 1, 2 and the channel */
    CHILD_EQUAL(strcmp(facts->command_line, "pypto-worker facts"), 0);
    CHILD_EQUAL(strcmp(facts->environment, "through"), 0);
    for (int number = 1; number <= 64; number++) {
        CHILD_EQUAL(facts->blocked[number], number == SIGINT);
        CHILD_EQUAL(facts->ignored[number], 0);
    }
    CHILD_EQUAL(facts->handled[SIGUSR1], 0);
    process_close(&p, PATIENCE_MS);
    process_close(&other, PATIENCE_MS);
    CHILD_EQUAL(p.exit_code, 0);
    CHILD_EQUAL(child_count_fds(), 4); /* with the one for reports */
}

static void a_spawned_worker_starts_clean(void **state)
{
    (void)state;
    assert_int_equal(child_run(spawn_from_a_messy_process), 0);
}

/* Spawns with `first` to 2 closed. */
static void spawn_with_closed(int first)
{
    child_close_others();
    for (int fd = first; fd < 3; fd++)
        close(fd);
    process p;
    CHILD_CHECK(status_ok(process_spawn(self, "facts", &p)));
    CHILD_CHECK(p.channel > 2);
    CHILD_CHECK(p.pidfd == -1 || p.pidfd > 2);
    const worker_facts *facts = receive_facts(p.channel);
    CHILD_EQUAL(facts->fds, 15);
    CHILD_EQUAL(facts->standard_is_null, first == 0);
    process_close(&p, PATIENCE_MS);
    CHILD_EQUAL(p.exit_code, 0);
    for (int fd = first; fd < 3; fd++)
        CHILD_EQUAL(fcntl(fd, F_GETFD), -1);
}

static void spawn_with_all_closed(void)
{
    spawn_with_closed(0);
}

static void spawn_with_output_closed(void)
{
    int null = open("/dev/zero", O_RDWR); /* not /dev/null: so that the difference shows */
    dup2(null, 0);
    spawn_with_closed(1);
}

static void spawn_with_standard_close_on_exec(void)
{
    for (int fd = 0; fd < 3; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    child_close_others();
    process p;
    CHILD_CHECK(status_ok(process_spawn(self, "facts", &p)));
    CHILD_EQUAL(receive_facts(p.channel)->fds, 15);
    process_close(&p, PATIENCE_MS);
}

static void closed_standard_descriptors_become_dev_null(void **state)
{
    (void)state;
    assert_int_equal(child_run(spawn_with_all_closed), 0);
    assert_int_equal(child_run(spawn_with_output_closed), 0);
    assert_int_equal(child_run(spawn_with_standard_close_on_exec), 0);
}

/* Ctrl-C at the worst moments: before, while and after the worker starts. */
static void a_starting_worker_survives_ctrl_c(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        process p = start("echo");
        usleep((useconds_t)(i * 50));
        assert_int_equal(kill((pid_t)p.pid, SIGINT), 0);
        assert_int_equal(exchange(&p, 0), CHANNEL_OK);
        assert_int_equal(kill((pid_t)p.pid, SIGINT), 0);
        assert_int_equal(exchange(&p, 0), CHANNEL_OK);
        process_close(&p, PATIENCE_MS);
        assert_end(&p, "exit code 0");
    }
}

static void kill_ends_a_worker(void **state)
{
    (void)state;
    process p = start("sleep");
    process_kill(&p);
    assert_true(p.reaped);
    assert_int_equal(p.exit_signal, SIGKILL);
    assert_int_equal(p.exit_code, -1);
    assert_end(&p, "signal 9 (SIGKILL)");
    process_close(&p, 0);

    p = start("echo");
    assert_int_equal(exchange(&p, 0), CHANNEL_OK);
    assert_int_equal(kill((pid_t)p.pid, SIGSTOP), 0);
    process_kill(&p); /* a stopped one, too */
    assert_end(&p, "signal 9 (SIGKILL)");
    process_close(&p, 0);

    p = start("echo");
    assert_int_equal(exchange(&p, 0), CHANNEL_OK);
    assert_int_equal(kill((pid_t)p.pid, SIGSEGV), 0);
    assert_true(wait_dead(&p));
    assert_end(&p, "signal 11 (SIGSEGV)");
    process_close(&p, 0);
}

static void a_process_that_sleeps_or_is_stopped_is_idle(void **state)
{
    (void)state;
    process p = start("echo");
    assert_int_equal(exchange(&p, 0), CHANNEL_OK);
    while (!process_is_idle(&p)) /* on the way to its wait for the next message */
        usleep(1000);
    assert_int_equal(kill((pid_t)p.pid, SIGSTOP), 0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)p.pid, &info, WSTOPPED | WNOWAIT), 0);
    assert_true(process_is_idle(&p));
    process_kill(&p);
    process_close(&p, 0);

    p = start("spin");
    char byte;
    assert_int_equal(read(p.channel, &byte, 1), 1);
    assert_false(process_is_idle(&p));
    process_kill(&p);
    assert_true(process_is_idle(&p)); /* not known */
    process_close(&p, 0);
}

static void descriptions_of_odd_ends(void **state)
{
    (void)state;
    process p = PROCESS_NONE;
    assert_end(&p, "unknown status");
    p.reaped = true;
    p.exit_code = -1;
    assert_end(&p, "unknown status");
    p.exit_signal = SIGRTMIN + 1;
    char text[64];
    char expected[64];
    process_describe_exit(&p, text, sizeof text);
    snprintf(expected, sizeof expected, "signal %d", SIGRTMIN + 1);
    assert_string_equal(text, expected);
    p.exit_signal = SIGKILL;
    process_describe_exit(&p, text, 7);
    assert_string_equal(text, "signal");
}

static void a_worker_that_does_not_end_is_killed(void **state)
{
    (void)state;
    for (int with_pidfd = 0; with_pidfd < 2; with_pidfd++) {
        process p = start("sleep");
        if (!with_pidfd)
            os_close(&p.pidfd); /* as on a kernel that forbids them */
        int64_t begin = os_now_ns();
        process_close(&p, 60);
        assert_true(os_now_ns() - begin >= 60 * (int64_t)1000000);
        assert_end(&p, "signal 9 (SIGKILL)");
    }
}

static void everything_works_without_pidfds(void **state)
{
    (void)state;
    process p = start("echo");
    os_close(&p.pidfd);
    assert_int_equal(exchange(&p, 4), CHANNEL_OK);
    assert_false(process_dead(&p));
    process_close(&p, PATIENCE_MS);
    assert_end(&p, "exit code 4");
    p = start("sleep");
    os_close(&p.pidfd);
    process_kill(&p);
    assert_end(&p, "signal 9 (SIGKILL)");
    process_close(&p, 0);
}

/* A copy of our end in some other process must not keep the worker from hearing that we closed
 * it. */
static void copies_of_the_channel_do_not_delay_the_end(void **state)
{
    (void)state;
    process p = start("echo");
    assert_int_equal(exchange(&p, 2), CHANNEL_OK);
    pid_t user_child = fork();
    if (user_child == 0)
        sleep_forever();
    process_close(&p, PATIENCE_MS);
    kill(user_child, SIGKILL);
    waitpid(user_child, NULL, 0);
    assert_end(&p, "exit code 2");
}

static void work_with_ignored_children(void)
{
    signal(SIGCHLD, SIG_IGN);
    process p;
    CHILD_CHECK(status_ok(process_spawn(self, "echo", &p)));
    CHILD_EQUAL(exchange(&p, 3), CHANNEL_OK);
    CHILD_CHECK(!process_dead(&p));
    process_close(&p, PATIENCE_MS);
    CHILD_CHECK(p.reaped);
    CHILD_EQUAL(p.exit_code, -1);
    CHILD_EQUAL(p.exit_signal, 0);

    CHILD_CHECK(status_ok(process_spawn(self, "exit 3", &p)));
    CHILD_CHECK(wait_dead(&p));
    CHILD_EQUAL(p.exit_code, -1);
    process_close(&p, 0);

    for (int with_pidfd = 0; with_pidfd < 2; with_pidfd++) {
        CHILD_CHECK(status_ok(process_spawn(self, "sleep", &p)));
        if (!with_pidfd)
            os_close(&p.pidfd);
        process_kill(&p);
        CHILD_CHECK(p.reaped);
        process_close(&p, 0);
    }
}

static void ignored_children_are_dead_with_unknown_status(void **state)
{
    (void)state;
    assert_int_equal(child_run(work_with_ignored_children), 0);
}

static void reap_behind_our_back(void)
{
    process p;
    CHILD_CHECK(status_ok(process_spawn(self, "exit 3", &p)));
    CHILD_EQUAL(waitpid(-1, NULL, 0), p.pid);
    CHILD_CHECK(process_dead(&p));
    CHILD_EQUAL(p.exit_code, -1);
    process_close(&p, 0);

    /* With our number recycled for a child of the program's own, only the pidfd is ours. */
    CHILD_CHECK(status_ok(process_spawn(self, "exit 3", &p)));
    int64_t ours = p.pid;
    CHILD_EQUAL(waitpid(-1, NULL, 0), ours);
    pid_t stranger = fork();
    if (stranger == 0)
        sleep_forever();
    p.pid = stranger;
    if (p.pidfd >= 0) {
        process_kill(&p);
        CHILD_EQUAL(waitpid(stranger, NULL, WNOHANG), 0); /* lives */
    }
    kill(stranger, SIGKILL);
    CHILD_EQUAL(waitpid(stranger, NULL, 0), stranger);
    process_close(&p, 0);
}

static void children_reaped_by_others_are_dead(void **state)
{
    (void)state;
    assert_int_equal(child_run(reap_behind_our_back), 0);
}

static int forked_echo(int channel, void *context)
{
    *(int *)context = 1; /* in the child's copy only */
    return echo_worker(channel);
}

static int forked_facts(int channel, void *context)
{
    (void)context;
    send_facts(channel);
    return 0;
}

static void a_forked_worker_answers_and_ends(void **state)
{
    (void)state;
    int touched = 0;
    process p;
    assert_true(status_ok(process_fork(forked_echo, &touched, NULL, 0, &p)));
    assert_int_equal(exchange(&p, 42), CHANNEL_OK);
    assert_int_equal(kill((pid_t)p.pid, SIGINT), 0);
    assert_int_equal(exchange(&p, 42), CHANNEL_OK);
    process_close(&p, PATIENCE_MS);
    assert_end(&p, "exit code 42");
    assert_int_equal(touched, 0);
}

static void fork_from_a_messy_process(void)
{
    child_close_others();
    signal(SIGTERM, SIG_IGN);
    signal(SIGUSR1, handle);
    sigset_t some;
    sigset_t after;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    sigprocmask(SIG_SETMASK, &some, NULL);
    int context = 0;
    process others[2] = {PROCESS_NONE, PROCESS_NONE};
    CHILD_CHECK(status_ok(process_fork(forked_echo, &context, NULL, 0, &others[0])));
    process p;
    CHILD_CHECK(status_ok(process_fork(forked_facts, NULL, others, 2, &p)));

    const worker_facts *facts = receive_facts(p.channel);
    CHILD_CHECK((facts->fds >> others[0].channel & 1) == 0);
    CHILD_CHECK(others[0].pidfd < 0 || (facts->fds >> others[0].pidfd & 1) == 0);
    CHILD_CHECK((facts->fds >> p.channel & 1) == 0);
    CHILD_EQUAL(__builtin_popcountll(facts->fds), 4);
    for (int number = 1; number <= 64; number++) {
        CHILD_EQUAL(facts->blocked[number], 0);
        CHILD_EQUAL(facts->handled[number], 0);
        CHILD_EQUAL(facts->ignored[number], number == SIGINT || number == SIGPIPE);
    }
    CHILD_EQUAL(strcmp(facts->name, "pypto-worker"), 0);

    /* Nothing has changed here. */
    sigprocmask(SIG_SETMASK, NULL, &after);
    CHILD_EQUAL(sigismember(&after, SIGUSR2), 1);
    CHILD_EQUAL(sigismember(&after, SIGTERM), 0);
    CHILD_CHECK(others[0].channel > 2 && fcntl(others[0].channel, F_GETFD) >= 0);
    process_close(&p, PATIENCE_MS);
    process_close(&others[0], PATIENCE_MS);
    CHILD_EQUAL(p.exit_code, 0);
    CHILD_EQUAL(others[0].exit_code, 0);
    CHILD_EQUAL(child_count_fds(), 4); /* with the one for reports */
}

static void a_forked_worker_starts_clean(void **state)
{
    (void)state;
    assert_int_equal(child_run(fork_from_a_messy_process), 0);
}

static process inherited;

static void disown_in_a_forked_child(void)
{
    process_disown(&inherited);
    CHILD_EQUAL(inherited.pid, 0);
    CHILD_EQUAL(inherited.channel, -1);
    CHILD_CHECK(process_dead(&inherited));
    process_close(&inherited, 0);
    process_kill(&inherited);
}

static void a_forked_child_of_the_user_disowns(void **state)
{
    (void)state;
    inherited = start("echo");
    assert_int_equal(child_run(disown_in_a_forked_child), 0);
    assert_int_equal(exchange(&inherited, 1), CHANNEL_OK); /* untouched */
    process_close(&inherited, PATIENCE_MS);
    assert_end(&inherited, "exit code 1");
}

static void *spawn_repeatedly(void *stop)
{
    while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED)) {
        process p;
        pypto_status status = process_spawn(self, "echo", &p);
        CHILD_CHECK(status_ok(status));
        process_close(&p, PATIENCE_MS);
    }
    return NULL;
}

/* While one thread starts workers, another execs programs, which list what they have inherited. */
static void look_for_leaks(void)
{
    child_close_others();
    int stop = 0;
    pthread_t spawner;
    CHILD_EQUAL(pthread_create(&spawner, NULL, spawn_repeatedly, &stop), 0);
    arena *a = arena_create();
    for (int i = 0; i < 60; i++) {
        /* `echo` is the shell's own, so the glob is read by the process that inherited. */
        const char *argv[] = {"sh", "-c", "echo /proc/$$/fd/*", NULL};
        char *output;
        int32_t code = -1;
        CHILD_CHECK(status_ok(os_run(a, argv, NULL, &output, &code)));
        CHILD_EQUAL(code, 0);
        int count = 0;
        for (const char *at = strstr(output, "/fd/"); at != NULL; at = strstr(at + 1, "/fd/"))
            count++;
        CHILD_CHECK(count >= 3 && count <= 4); /* the fourth is the listing itself */
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    pthread_join(spawner, NULL);
    arena_destroy(a);
    CHILD_EQUAL(child_count_fds(), 4); /* with the one for reports */
}

static void descriptors_do_not_leak_into_other_programs(void **state)
{
    (void)state;
    assert_int_equal(child_run(look_for_leaks), 0);
}

static void messages_come_before_the_hang_up(void **state)
{
    (void)state;
    int ends[2];
    assert_true(status_ok(channel_pair(ends)));
    assert_int_equal(channel_send(ends[0], 1, "x", 1, NULL, 0), CHANNEL_OK);
    assert_true(parent_wait_message(-1, ends[1]));
    assert_true(parent_wait_message(-1, ends[1])); /* it has not been taken */
    assert_int_equal(channel_send(ends[1], 2, "unread", 7, NULL, 0), CHANNEL_OK);
    os_close(&ends[0]);
    assert_true(parent_wait_message(-1, ends[1]));
    assert_int_equal(channel_receive(ends[1], 0, &message), CHANNEL_OK);
    assert_false(parent_wait_message(-1, ends[1]));
    os_close(&ends[1]);
}

/* The worker below tells what it saw through this pipe, its parent being gone. */
static int verdict[2];

/* Waits on a channel whose other end lives on; so only the parent's end can end the wait. */
static void watch_parent(int ready, int channel)
{
    bool gone = true;
    int pidfd = parent_open(&gone);
    char answer = 'f';
    if (gone)
        answer = 'g';
    else if (pidfd < 0)
        answer = 's'; /* no pidfds here */
    (void)!write(ready, "r", 1);
    if (answer == 'f' && parent_wait_message(pidfd, channel))
        answer = 'm';
    (void)!write(verdict[1], &answer, 1);
    _exit(0);
}

static void a_worker_sees_the_end_of_its_parent(void **state)
{
    (void)state;
    int ends[2];
    int ready[2];
    assert_true(status_ok(channel_pair(ends)));
    assert_int_equal(pipe2(verdict, O_CLOEXEC), 0);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t parent = fork();
    if (parent == 0) {
        if (fork() == 0)
            watch_parent(ready[1], ends[1]);
        char byte;
        (void)!read(ready[0], &byte, 1);
        raise(SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(parent, &status, 0), parent);
    close(verdict[1]);
    char answer = '-';
    assert_int_equal(read(verdict[0], &answer, 1), 1);
    close(verdict[0]);
    close(ready[0]);
    close(ready[1]);
    os_close(&ends[0]);
    os_close(&ends[1]);
    if (answer == 's')
        skip();
    assert_int_equal(answer, 'f');
}

static void the_parent_has_a_pidfd(void **state)
{
    (void)state;
    bool gone = true;
    int pidfd = parent_open(&gone);
    assert_false(gone);
    assert_true(pidfd == -1 || pidfd > 2);
    os_close(&pidfd);
}

#define PROCESS_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[0], "pypto-worker") == 0)
        return play_worker(argv[1]);
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        PROCESS_TEST(a_spawned_worker_answers_and_ends),
        PROCESS_TEST(exit_codes_are_reported),
        PROCESS_TEST(a_missing_program_is_an_error),
        PROCESS_TEST(a_spawned_worker_starts_clean),
        PROCESS_TEST(closed_standard_descriptors_become_dev_null),
        PROCESS_TEST(a_starting_worker_survives_ctrl_c),
        PROCESS_TEST(kill_ends_a_worker),
        PROCESS_TEST(a_process_that_sleeps_or_is_stopped_is_idle),
        PROCESS_TEST(descriptions_of_odd_ends),
        PROCESS_TEST(a_worker_that_does_not_end_is_killed),
        PROCESS_TEST(everything_works_without_pidfds),
        PROCESS_TEST(copies_of_the_channel_do_not_delay_the_end),
        PROCESS_TEST(ignored_children_are_dead_with_unknown_status),
        PROCESS_TEST(children_reaped_by_others_are_dead),
        PROCESS_TEST(a_forked_worker_answers_and_ends),
        PROCESS_TEST(a_forked_worker_starts_clean),
        PROCESS_TEST(a_forked_child_of_the_user_disowns),
        PROCESS_TEST(descriptors_do_not_leak_into_other_programs),
        PROCESS_TEST(messages_come_before_the_hang_up),
        PROCESS_TEST(a_worker_sees_the_end_of_its_parent),
        PROCESS_TEST(the_parent_has_a_pidfd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
