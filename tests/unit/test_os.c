/* The OS layer: files, directories, descriptors, child programs, CPUs. Everything happens in one
 * temporary directory per test, and after each test as many descriptors are open as before. */
#include "base/alloc.h"
#include "base/diag.h"
#include "base/os.h"
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static arena *a;
static jmp_buf recovery;
static char *dir;
static int fds_before;

static int set_up(void **state)
{
    (void)state;
    fds_before = child_count_fds();
    a = arena_create();
    if (a == NULL)
        return -1;
    pypto_status status = os_temp_dir(a, NULL, &dir);
    return status_ok(status) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    alloc_fail_at(0);
    os_remove_tree(dir);
    bool removed = !os_file_exists(dir);
    arena_destroy(a);
    int fds_after = child_count_fds();
    if (fds_after != fds_before)
        print_error("%d descriptors before, %d after\n", fds_before, fds_after);
    return removed && fds_after == fds_before ? 0 : -1;
}

static const char *in_dir(const char *name)
{
    return arena_printf(a, "%s/%s", dir, name);
}

static void assert_ok(pypto_status status)
{
    char *text = pypto_status_text(&status);
    pypto_status_clear(&status);
    assert_string_equal(text, "");
    free(text);
}

/* Asserts the kind, and that the message names `word`. */
static void assert_failed(pypto_status status, pypto_error_kind kind, const char *word)
{
    assert_int_equal(status.kind, kind);
    assert_non_null(strstr(status.diagnostics->message, word));
    pypto_status_clear(&status);
}

static mode_t mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 07777;
}

static void files_read_back(void **state)
{
    (void)state;
    const char *path = in_dir("f");
    int64_t bytes = -1;
    assert_null(os_read_file(a, path, &bytes));
    assert_false(os_file_exists(path));

    assert_ok(os_write_file(path, "a\0b", 3));
    assert_true(os_file_exists(path));
    assert_int_equal(mode_of(path), 0600);
    char *content = os_read_file(a, path, &bytes);
    assert_int_equal(bytes, 3);
    assert_memory_equal(content, "a\0b", 4);

    assert_ok(os_write_file(path, "", 0));
    assert_string_equal(os_read_file(a, path, &bytes), "");
    assert_int_equal(bytes, 0);

    int64_t large = 3 * 1024 * 1024 + 1;
    char *many = arena_alloc(a, large);
    memset(many, 'x', (size_t)large);
    assert_ok(os_write_file(path, many, large));
    content = os_read_file(a, path, NULL);
    assert_int_equal(strlen(content), large);
    assert_null(os_read_file(a, dir, NULL));
}

/* Files whose size is not known before they are read. */
static void proc_files_read_whole(void **state)
{
    (void)state;
    int64_t bytes = 0;
    char *maps = os_read_file(a, "/proc/self/maps", &bytes);
    assert_non_null(maps);
    assert_int_equal(strlen(maps), bytes);
    assert_non_null(strstr(maps, "[stack]"));
}

static void failed_writes_leave_nothing(void **state)
{
    (void)state;
    assert_failed(os_write_file(in_dir("no/such"), "x", 1), PYPTO_ERROR_SYSTEM, "no/such");
    assert_int_equal(mkdir(in_dir("taken"), 0700), 0);
    assert_failed(os_write_file(in_dir("taken"), "x", 1), PYPTO_ERROR_SYSTEM, "taken");
    assert_int_equal(rmdir(in_dir("taken")), 0);
    assert_int_equal(rmdir(dir), 0); /* so it was empty */
    assert_int_equal(mkdir(dir, 0700), 0);
    alloc_fail_at(1);
    assert_failed(os_write_file("x", "x", 1), PYPTO_ERROR_MEMORY, "memory");
}

static void write_beyond_the_limit(void)
{
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {4096, 4096};
    CHILD_EQUAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
    static const char many[8192];
    pypto_status status = os_write_file(arena_printf(a, "%s/full", dir), many, sizeof many);
    CHILD_EQUAL(status.kind, PYPTO_ERROR_SYSTEM);
    CHILD_CHECK(strstr(status.diagnostics->message, "File too large") != NULL);
}

/* As on a full disk, in the middle of the writing: the old file stays, no half of a new one. */
static void interrupted_writes_keep_the_old_file(void **state)
{
    (void)state;
    assert_ok(os_write_file(in_dir("full"), "old", 3));
    assert_int_equal(child_run(write_beyond_the_limit), 0);
    assert_string_equal(os_read_file(a, in_dir("full"), NULL), "old");
    assert_int_equal(unlink(in_dir("full")), 0);
    assert_int_equal(rmdir(dir), 0); /* so nothing else was there */
    assert_int_equal(mkdir(dir, 0700), 0);
}

static void rename_replaces(void **state)
{
    (void)state;
    assert_ok(os_write_file(in_dir("new"), "new", 3));
    assert_ok(os_write_file(in_dir("old"), "old", 3));
    assert_ok(os_rename(in_dir("new"), in_dir("old")));
    assert_string_equal(os_read_file(a, in_dir("old"), NULL), "new");
    assert_failed(os_rename(in_dir("new"), in_dir("old")), PYPTO_ERROR_SYSTEM, "rename");
}

static void directories_are_made_with_their_parents(void **state)
{
    (void)state;
    assert_ok(os_make_dirs(in_dir("a/b//c/")));
    assert_ok(os_make_dirs(in_dir("a/b/c")));
    assert_int_equal(mode_of(in_dir("a")), 0700);
    assert_int_equal(mode_of(in_dir("a/b/c")), 0700);
    assert_ok(os_make_dirs("/"));
    assert_ok(os_make_dirs("."));
    assert_ok(os_write_file(in_dir("file"), "", 0));
    assert_failed(os_make_dirs(in_dir("file")), PYPTO_ERROR_SYSTEM, "Not a directory");
    assert_failed(os_make_dirs(in_dir("file/below")), PYPTO_ERROR_SYSTEM, "Not a directory");
    assert_failed(os_make_dirs(""), PYPTO_ERROR_SYSTEM, "No such file");
    alloc_fail_at(1);
    assert_failed(os_make_dirs("x"), PYPTO_ERROR_MEMORY, "memory");
}

static void make_race(void)
{
    for (int i = 0; i < 50; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/race%d/x/y/z", dir, i);
        CHILD_CHECK(status_ok(os_make_dirs(path)));
    }
}

static void directories_may_be_made_by_many_at_once(void **state)
{
    (void)state;
    pid_t others[3];
    for (int i = 0; i < 3; i++) {
        others[i] = fork();
        if (others[i] == 0) {
            make_race();
            _exit(0);
        }
    }
    assert_int_equal(child_run(make_race), 0);
    for (int i = 0; i < 3; i++) {
        int status = -1;
        waitpid(others[i], &status, 0);
        assert_int_equal(status, 0);
    }
    assert_true(os_file_exists(in_dir("race49/x/y/z")));
}

static void temporary_directories_are_private_and_distinct(void **state)
{
    (void)state;
    char *first;
    char *second;
    assert_ok(os_temp_dir(a, dir, &first));
    assert_ok(os_temp_dir(a, dir, &second));
    assert_string_not_equal(first, second);
    assert_int_equal(strncmp(first, dir, strlen(dir)), 0);
    assert_int_equal(mode_of(first), 0700);
    assert_failed(os_temp_dir(a, in_dir("missing"), &first), PYPTO_ERROR_SYSTEM, "missing");
    char *before = getenv("TMPDIR");
    char *kept = before != NULL ? arena_strdup(a, before) : NULL;
    setenv("TMPDIR", in_dir(""), 1);
    assert_ok(os_temp_dir(a, NULL, &first));
    assert_int_equal(strncmp(first, dir, strlen(dir)), 0);
    if (kept != NULL)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
}

static void trees_go_but_not_what_links_point_to(void **state)
{
    (void)state;
    assert_ok(os_make_dirs(in_dir("outside/deep")));
    assert_ok(os_write_file(in_dir("outside/kept"), "kept", 4));
    assert_ok(os_make_dirs(in_dir("tree/a/b")));
    assert_ok(os_write_file(in_dir("tree/a/b/f"), "x", 1));
    assert_int_equal(symlink(in_dir("outside"), in_dir("tree/a/link")), 0);
    assert_int_equal(symlink("nowhere", in_dir("tree/dangling")), 0);
    for (int i = 0; i < 300; i++)
        assert_ok(os_write_file(in_dir(arena_printf(a, "tree/a/f%d", i)), "x", 1));
    os_remove_tree(in_dir("tree"));
    assert_false(os_file_exists(in_dir("tree")));
    assert_string_equal(os_read_file(a, in_dir("outside/kept"), NULL), "kept");

    assert_int_equal(symlink("outside", in_dir("link")), 0);
    os_remove_tree(in_dir("link/"));
    os_remove_tree(in_dir("link"));
    struct stat info;
    assert_int_equal(lstat(in_dir("link"), &info), -1);
    assert_true(os_file_exists(in_dir("outside/deep")));
    os_remove_tree(in_dir("outside/kept"));
    assert_false(os_file_exists(in_dir("outside/kept")));
    os_remove_tree(in_dir("missing"));
}

static void programs_are_found(void **state)
{
    (void)state;
    char *shell = os_find_program(a, "sh");
    assert_non_null(shell);
    assert_int_equal(shell[0], '/');
    assert_null(os_find_program(a, "no-such-program-here"));
    assert_null(os_find_program(a, ""));
    assert_string_equal(os_find_program(a, shell), shell);

    char *path = arena_strdup(a, getenv("PATH"));
    assert_ok(os_write_file(in_dir("tool"), "#!/bin/sh\n", 10));
    setenv("PATH", arena_printf(a, "/nowhere:%s", dir), 1);
    assert_null(os_find_program(a, "tool")); /* not executable */
    assert_int_equal(chmod(in_dir("tool"), 0700), 0);
    assert_string_equal(os_find_program(a, "tool"), in_dir("tool"));
    assert_ok(os_make_dirs(in_dir("folder")));
    assert_null(os_find_program(a, "folder"));

    /* An empty entry is the current directory; the answer is a full path all the same. */
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(dir), 0);
    setenv("PATH", "/nowhere:", 1);
    char *found = os_find_program(a, "tool");
    char *given = os_find_program(a, "./tool");
    assert_int_equal(chdir(here), 0);
    setenv("PATH", path, 1);
    assert_non_null(found);
    assert_int_equal(found[0], '/');
    assert_int_equal(access(found, X_OK), 0);
    assert_int_equal(access(given, X_OK), 0);
}

/* Runs a shell script; returns its exit code and the output through the pointer. */
static int32_t run_script(const char *script, char **output)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    int32_t code = -99;
    assert_ok(os_run(a, argv, NULL, output, &code));
    return code;
}

static void programs_run(void **state)
{
    (void)state;
    char *output;
    assert_int_equal(run_script("echo out; echo err >&2; exit 3", &output), 3);
    assert_string_equal(output, "out\nerr\n");
    assert_int_equal(run_script("kill -9 $$", &output), 128 + 9);
    assert_string_equal(output, "");
    assert_int_equal(run_script("cat; echo end", &output), 0); /* standard input is empty */
    assert_string_equal(output, "end\n");
    const char *spaces[] = {"printf", "%s|", "a b", "*", "$HOME", NULL};
    int32_t code;
    assert_ok(os_run(a, spaces, NULL, &output, &code)); /* no shell */
    assert_string_equal(output, "a b|*|$HOME|");
    const char *missing[] = {"no-such-program-here", NULL};
    assert_failed(os_run(a, missing, NULL, &output, &code), PYPTO_ERROR_SYSTEM,
                  "no-such-program-here");
    assert_int_equal(code, -1);
}

static void long_output_is_cut_and_does_not_block(void **state)
{
    (void)state;
    char *output;
    assert_int_equal(run_script("head -c 1000000 /dev/zero | tr '\\0' x; exit 4", &output), 4);
    assert_int_equal(strlen(output), 64 * 1024);
}

/* What a program leaves behind in the background must not keep us: it still runs when the call is over. */
static void background_processes_do_not_hold_the_call(void **state)
{
    (void)state;
    char *output;
    assert_int_equal(run_script("sleep 10000 & echo $!", &output), 0);
    assert_true(atoi(output) > 1);
    assert_int_equal(kill((pid_t)atoi(output), SIGKILL), 0);
}

static void ignore(int number)
{
    (void)number;
}

static void signals_do_not_disturb_runs(void **state)
{
    (void)state;
    /* A handler that interrupts every call of ours, and a signal that is ignored here but not
     * there. */
    struct sigaction action = {.sa_handler = ignore};
    sigaction(SIGALRM, &action, NULL);
    signal(SIGTERM, SIG_IGN);
    struct itimerval often = {{0, 1000}, {0, 1000}};
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    char *output = NULL;
    int32_t code = run_script("sleep 0.1; echo done; kill -TERM $$", &output);
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGALRM, SIG_DFL);
    assert_int_equal(code, 128 + SIGTERM);
    assert_string_equal(output, "done\n");
}

static void run_ignoring_children(void)
{
    signal(SIGCHLD, SIG_IGN);
    const char *argv[] = {"sh", "-c", "echo kept", NULL};
    char *output;
    int32_t code = -99;
    CHILD_CHECK(status_ok(os_run(a, argv, NULL, &output, &code)));
    CHILD_EQUAL(code, -1);
    CHILD_EQUAL(strcmp(output, "kept\n"), 0);
}

static void the_exit_code_is_unknown_when_children_are_ignored(void **state)
{
    (void)state;
    assert_int_equal(child_run(run_ignoring_children), 0);
}

/* ---- interrupted programs ---- */

static volatile sig_atomic_t told; /* by the program that is to be interrupted */
static int told_event;

static void tell(int number)
{
    (void)number;
    const uint64_t one = 1;
    told = 1;
    ssize_t written = write(told_event, &one, sizeof one);
    (void)written;
}

static bool was_told(void *context)
{
    ++*(int *)context;
    return told != 0;
}

static bool not_at_all(void *context)
{
    (void)context;
    return false;
}

/* Whether a process computes, waits or could do so again: not even a zombie is alive. */
static bool is_alive(int64_t pid)
{
    const char *text = os_read_file(a, arena_printf(a, "/proc/%lld/stat", (long long)pid), NULL);
    const char *state = text == NULL ? NULL : strrchr(text, ')');
    return state != NULL && state[2] != 'Z' && state[2] != 'X';
}

/* A program and its helper, deaf to what is polite. */
static void an_interrupted_program_ends_with_all_that_it_has_started(void **state)
{
    (void)state;
    const struct sigaction handler = {.sa_handler = tell};
    struct sigaction usual;
    struct sigaction ctrl_c; /* a handler of it: else the program would stay in our process group */
    assert_int_equal(sigaction(SIGUSR1, &handler, &usual), 0);
    assert_int_equal(sigaction(SIGINT, &handler, &ctrl_c), 0);
    const char *script = arena_printf(a,
                                      "trap '' TERM\n"
                                      "(exec sleep 1000000) &\n"
                                      "echo $! > %s\n"
                                      "kill -USR1 %d\n"
                                      "wait\n",
                                      in_dir("helper"), (int)getpid());
    const char *argv[] = {"sh", "-c", script, NULL};
    int asked = 0;
    told = 0;
    told_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const os_interrupts interrupts = {told_event, was_told, &asked};
    char *output;
    int32_t code;
    assert_failed(os_run(a, argv, &interrupts, &output, &code), PYPTO_ERROR_INTERRUPTED,
                  "sh was interrupted");
    assert_true(asked >= 1);
    assert_int_equal(code, 128 + SIGKILL);
    const char *pid = os_read_file(a, in_dir("helper"), NULL);
    assert_non_null(pid);
    while (is_alive(atoll(pid)))
        os_sleep_ms(1);

    /* Nobody interrupts: it runs to its end, however often somebody is asked. */
    const char *quiet[] = {"sh", "-c", arena_printf(a, "kill -USR1 %d; exit 7", (int)getpid()),
                           NULL};
    const os_interrupts never = {told_event, not_at_all, NULL};
    assert_ok(os_run(a, quiet, &never, &output, &code));
    assert_int_equal(code, 7);
    assert_int_equal(sigaction(SIGUSR1, &usual, NULL), 0);
    assert_int_equal(sigaction(SIGINT, &ctrl_c, NULL), 0);
    os_close(&told_event);
}

static void work_without_standard_descriptors(void)
{
    close(0);
    close(1);
    close(2);
    int fd = os_open_read("/proc/self/stat");
    CHILD_CHECK(fd > 2);
    CHILD_EQUAL(fcntl(fd, F_GETFD), FD_CLOEXEC);
    os_close(&fd);
    const char *argv[] = {"sh", "-c", "echo x; echo y >&2", NULL};
    char *output;
    int32_t code = -99;
    CHILD_CHECK(status_ok(os_run(a, argv, NULL, &output, &code)));
    CHILD_EQUAL(code, 0);
    CHILD_EQUAL(strcmp(output, "x\ny\n"), 0);
    CHILD_CHECK(status_ok(os_write_file(arena_printf(a, "%s/w", dir), "w", 1)));
    CHILD_EQUAL(fcntl(0, F_GETFD), -1);
    CHILD_EQUAL(fcntl(1, F_GETFD), -1);
    CHILD_EQUAL(fcntl(2, F_GETFD), -1);
}

static void closed_standard_descriptors_stay_closed(void **state)
{
    (void)state;
    assert_int_equal(child_run(work_without_standard_descriptors), 0);
}

static void descriptors_move_up(void)
{
    int plain = dup(2); /* without close-on-exec */
    CHILD_CHECK(plain > 2);
    CHILD_EQUAL(os_high_fd(plain), plain);
    CHILD_EQUAL(fcntl(plain, F_GETFD), FD_CLOEXEC);
    int moved = os_high_fd(1);
    CHILD_CHECK(moved > 2);
    CHILD_EQUAL(fcntl(1, F_GETFD), -1);
    errno = EMFILE;
    CHILD_EQUAL(os_high_fd(-1), -1);
    CHILD_EQUAL(errno, EMFILE);
    CHILD_EQUAL(os_high_fd(999), -1);
    CHILD_EQUAL(errno, EBADF);
    os_close(&moved);
    CHILD_EQUAL(moved, -1);
    os_close(&moved);
}

static void descriptors(void **state)
{
    (void)state;
    assert_int_equal(child_run(descriptors_move_up), 0);
    assert_int_equal(os_open_read(in_dir("missing")), -1);
    assert_int_equal(errno, ENOENT);
}

/* The arena jumps while files are read and programs run: no descriptor may be lost (tear_down). */
static void jumps_leak_nothing(void **state)
{
    (void)state;
    assert_ok(os_write_file(in_dir("f"), "0123456789", 10));
    const char *path = in_dir("f");
    const char *argv[] = {"true", NULL};
    char *output;
    int32_t code;
    for (volatile int n = 1; n <= 3; n++) {
        arena *small = arena_create();
        arena_set_recovery(small, &recovery);
        if (setjmp(recovery) == 0) {
            alloc_fail_at(n);
            os_read_file(small, path, NULL);
            pypto_status status = os_run(small, argv, NULL, &output, &code);
            pypto_status_clear(&status);
        }
        alloc_fail_at(0);
        arena_destroy(small);
    }
}

static void on_one_cpu(void)
{
    cpu_set_t mask;
    CHILD_EQUAL(sched_getaffinity(0, sizeof mask, &mask), 0);
    size_t cpu = 0;
    while (!CPU_ISSET(cpu, &mask))
        cpu++;
    CPU_ZERO(&mask);
    CPU_SET(cpu, &mask);
    CHILD_EQUAL(sched_setaffinity(0, sizeof mask, &mask), 0);
    CHILD_EQUAL(os_cpu_count(), 1);
}

static void cpus_follow_the_affinity(void **state)
{
    (void)state;
    int32_t cpus = os_cpu_count();
    assert_true(cpus >= 1);
    assert_true(cpus <= sysconf(_SC_NPROCESSORS_CONF));
    assert_int_equal(child_run(on_one_cpu), 0);
}

static void write_limit(const char *file, const char *content)
{
    char *path = arena_printf(a, "%s/%s", dir, file);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    assert_ok(os_make_dirs(path));
    *slash = '/';
    assert_ok(os_write_file(path, content, (int64_t)strlen(content)));
}

static void cpus_follow_the_cgroup(void **state)
{
    (void)state;
    assert_int_equal(os_cgroup_cpus(dir, "0::/job/step\n"), 0);
    write_limit("job/step/cpu.max", "max 100000\n");
    assert_int_equal(os_cgroup_cpus(dir, "0::/job/step\n"), 0);
    write_limit("job/step/cpu.max", "250000 100000\n");
    assert_int_equal(os_cgroup_cpus(dir, "0::/job/step\n"), 3); /* 2.5 CPUs */
    write_limit("job/cpu.max", "50000 100000\n");
    assert_int_equal(os_cgroup_cpus(dir, "0::/job/step\n"), 1); /* the parent's half */
    write_limit("job/cpu.max", "800000 100000\n");
    assert_int_equal(os_cgroup_cpus(dir, "0::/job/step\n"), 3);
    write_limit("cpu.max", "200000 100000\n"); /* the mount point itself: a container's own limit */
    assert_int_equal(os_cgroup_cpus(dir, "0::/job/step\n"), 2);
    assert_int_equal(os_cgroup_cpus(dir, "0::/\n"), 2);
    assert_int_equal(os_cgroup_cpus(dir, "0::/not/visible/here\n"), 2);
    assert_int_equal(os_cgroup_cpus(dir, "0::/../outside"), 2);
    assert_int_equal(os_cgroup_cpus(dir, "nonsense\n\n1:cpu\n"), 0);
    assert_int_equal(os_cgroup_cpus(dir, ""), 0);
}

static void cpus_follow_the_cgroup_version_1(void **state)
{
    (void)state;
    const char *membership = "9:cpuset:/\n4:cpu,cpuacct:/docker/x\n2:memory:/docker/x\n0::/\n";
    assert_int_equal(os_cgroup_cpus(dir, membership), 0);
    write_limit("cpu,cpuacct/docker/x/cpu.cfs_quota_us", "-1\n");
    write_limit("cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
    assert_int_equal(os_cgroup_cpus(dir, membership), 0);
    write_limit("cpu,cpuacct/docker/x/cpu.cfs_quota_us", "150000\n");
    assert_int_equal(os_cgroup_cpus(dir, membership), 2);
    write_limit("cpu,cpuacct/cpu.cfs_quota_us", "90000\n");
    write_limit("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    assert_int_equal(os_cgroup_cpus(dir, membership), 1);
}

static void memory_follows_the_cgroup(void **state)
{
    (void)state;
    const char *membership = "0::/job/step\n";
    assert_int_equal(os_cgroup_memory_left(dir, membership, 0), INT64_MAX);
    write_limit("job/step/memory.max", "max\n");
    write_limit("job/step/memory.current", "600\n");
    assert_int_equal(os_cgroup_memory_left(dir, membership, 0), INT64_MAX);
    write_limit("job/step/memory.max", "1000\n");
    assert_int_equal(os_cgroup_memory_left(dir, membership, 1000), 400);
    /* Pages of files can be dropped; those that are shared memory cannot. */
    write_limit("job/step/memory.stat",
                "anon 300\nfile 250\nshmem 50\ninactive_file 150\nactive_file 50\n");
    assert_int_equal(os_cgroup_memory_left(dir, membership, 400), 400); /* enough without */
    assert_int_equal(os_cgroup_memory_left(dir, membership, 401), 600);
    /* The parent's limit is one for all of its groups. */
    write_limit("job/memory.max", "5000\n");
    write_limit("job/memory.current", "4900\n");
    assert_int_equal(os_cgroup_memory_left(dir, membership, 1000), 100);
    write_limit("job/memory.current", "5100\n");
    assert_int_equal(os_cgroup_memory_left(dir, membership, 1000), 0);
    assert_int_equal(os_cgroup_memory_left(dir, "0::/\n", 1000), INT64_MAX);
}

static void memory_follows_the_cgroup_version_1(void **state)
{
    (void)state;
    const char *membership = "4:cpu,cpuacct:/docker/x\n2:memory:/docker/x\n0::/\n";
    assert_int_equal(os_cgroup_memory_left(dir, membership, 0), INT64_MAX);
    write_limit("memory/docker/x/memory.limit_in_bytes", "9223372036854771712\n");
    write_limit("memory/docker/x/memory.usage_in_bytes", "100\n");
    assert_true(os_cgroup_memory_left(dir, membership, INT64_MAX) > INT64_MAX / 2);
    write_limit("memory/memory.limit_in_bytes", "3000\n"); /* of a container */
    write_limit("memory/memory.usage_in_bytes", "2900\n");
    write_limit("memory/memory.stat",
                "inactive_file 1\ntotal_inactive_file 30\ntotal_active_file 7\n");
    assert_int_equal(os_cgroup_memory_left(dir, membership, 1000), 137);
}

static void the_library_knows_where_it_is(void **state)
{
    (void)state;
    char self[4096] = {0};
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    assert_string_equal(os_library_path(a), self); /* unit tests link statically */
    *strrchr(self, '/') = '\0';
    assert_string_equal(os_library_dir(a), self);
}

static void descriptors_have_paths(void **state)
{
    (void)state;
    const char *name = in_dir("a file");
    char path[4096];
    int fd = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_true(os_path_of(fd, path, sizeof path));
    char real[PATH_MAX]; /* the folder of temporary files may be a symbolic link */
    assert_non_null(realpath(name, real));
    assert_string_equal(path, real);
    assert_false(os_path_of(fd, path, 8)); /* too little room */
    assert_int_equal(unlink(name), 0);
    assert_false(os_path_of(fd, path, sizeof path));
    int other = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600); /* another file of that name */
    assert_true(other >= 0);
    assert_false(os_path_of(fd, path, sizeof path));
    close(fd);
    close(other);
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    assert_false(os_path_of(pipes[0], path, sizeof path));
    close(pipes[0]);
    close(pipes[1]);
}

static int64_t monotonic_ns(void)
{
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void time_goes_on(void **state)
{
    (void)state;
    const int64_t before = monotonic_ns();
    const int64_t first = os_now_ns();
    usleep(2000);
    const int64_t second = os_now_ns();
    const int64_t after = monotonic_ns();
    assert_true(before <= first && second <= after);
    assert_true(second - first >= 2000000);
}

static void ended_processes_are_seen(void **state)
{
    (void)state;
    int fd = os_open_pidfd(getpid());
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        skip();
    assert_true(fd > 2);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    os_close(&fd);
    assert_int_equal(os_open_pidfd(-5), -1);
}

#define OS_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OS_TEST(files_read_back),
        OS_TEST(proc_files_read_whole),
        OS_TEST(failed_writes_leave_nothing),
        OS_TEST(interrupted_writes_keep_the_old_file),
        OS_TEST(rename_replaces),
        OS_TEST(directories_are_made_with_their_parents),
        OS_TEST(directories_may_be_made_by_many_at_once),
        OS_TEST(temporary_directories_are_private_and_distinct),
        OS_TEST(trees_go_but_not_what_links_point_to),
        OS_TEST(programs_are_found),
        OS_TEST(programs_run),
        OS_TEST(long_output_is_cut_and_does_not_block),
        OS_TEST(background_processes_do_not_hold_the_call),
        OS_TEST(signals_do_not_disturb_runs),
        OS_TEST(an_interrupted_program_ends_with_all_that_it_has_started),
        OS_TEST(the_exit_code_is_unknown_when_children_are_ignored),
        OS_TEST(closed_standard_descriptors_stay_closed),
        OS_TEST(descriptors),
        OS_TEST(jumps_leak_nothing),
        OS_TEST(cpus_follow_the_affinity),
        OS_TEST(cpus_follow_the_cgroup),
        OS_TEST(cpus_follow_the_cgroup_version_1),
        OS_TEST(memory_follows_the_cgroup),
        OS_TEST(memory_follows_the_cgroup_version_1),
        OS_TEST(the_library_knows_where_it_is),
        OS_TEST(descriptors_have_paths),
        OS_TEST(time_goes_on),
        OS_TEST(ended_processes_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
