/* The operating system, for everybody who is not transport, sched or process: files, clocks, CPUs,
 * child programs. */
#ifndef BASE_OS_H
#define BASE_OS_H

#include "base/arena.h"
#include "base/export.h"
#include "base/vec.h"

#include <pypto/status.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Monotonic time in nanoseconds. */
int64_t os_now_ns(void) EXPORTED(os_now_ns);
/* The time that files are stamped with, in nanoseconds since 1970. */
int64_t os_file_now_ns(void);
void os_sleep_ms(int32_t ms);

int32_t os_process_id(void) EXPORTED(os_process_id);
/* Whether another process traces this one, as debuggers do. */
bool os_is_traced(void);

/* The number behind a word that begins a line of a small file of the system, as in /proc/meminfo; with "" the number
 * that the file begins with. -1 when there is none ("max" too), or no such file. */
int64_t os_number_in(const char *path, const char *word) EXPORTED(os_number_in);

/* CPUs this process may use: the affinity mask, bounded by the cgroup quota (rounded up); >= 1. */
int32_t os_cpu_count(void) EXPORTED(os_cpu_count);
/* The CPU that the calling thread is on at this moment; -1: not known. */
int32_t os_cpu_now(void);
/* The part of it that concerns cgroups: fewest CPUs that the groups named in `membership` (the text
 * of /proc/self/cgroup) and their parents below `mount` grant, or 0 when they set no limit. */
int64_t os_cgroup_cpus(const char *mount, const char *membership);

/* Bytes that this process may still take before somebody is killed for it: of the machine, and of the cgroups above it. If
 * that is `enough` or more, it may be less than there is. */
int64_t os_memory_left(int64_t enough) EXPORTED(os_memory_left);
/* The part of it that concerns cgroups, as above; INT64_MAX when they set no limit. */
int64_t os_cgroup_memory_left(const char *mount, const char *membership, int64_t enough);

/* The whole file on the arena, NUL-terminated; *bytes may be NULL. NULL when it cannot be read. */
char *os_read_file(arena *a, const char *path, int64_t *bytes) EXPORTED(os_read_file);

/* write(), tried again when a signal interrupts it. The bytes written, or -1. */
int64_t os_write_some(int fd, const void *bytes, int64_t count);
/* Writes beside `path` and renames, so that readers see the old file or the whole new one.
 * Mode 0600. */
PYPTO_NODISCARD pypto_status os_write_file(const char *path, const void *bytes, int64_t count);

bool os_file_exists(const char *path);
/* The same without following a symbolic link: one that leads nowhere exists. */
bool os_entry_exists(const char *path);
/* Appends the text and a newline at once, so that lines of several processes stay whole. Failures are
 * ignored: what is written is for tests. */
void os_append_line(const char *path, const char *line);

/* What is known of a file or directory without opening it; symbolic links are followed. */
typedef struct os_facts {
    int64_t bytes;
    int64_t modified_ns; /* since 1970 */
    bool directory;
    bool is_private; /* owned by the user that this process runs as, and nobody else may write */
} os_facts;

/* False when it does not exist or cannot be reached. */
bool os_file_facts(const char *path, os_facts *facts) EXPORTED(os_file_facts);

/* Whether nobody but this user and root can have written it: a directory, or a regular file, that is no symbolic
 * link, belongs to one of the two, and gives nobody else the right to write. */
bool os_is_trusted(const char *path, bool directory) EXPORTED(os_is_trusted);

/* Lets nobody but its owner read or write a file; what cannot be changed stays. */
void os_make_private(const char *path);

/* Sets its modification time to now; what cannot be changed stays. */
void os_touch(const char *path);

/* The names in a directory, without "." and "..", in no order; on the arena. None when it cannot be
 * read. */
typedef VEC(const char *) os_names;
os_names os_list_dir(arena *a, const char *path) EXPORTED(os_list_dir);

/* Creates the directory and its parents, mode 0700. */
PYPTO_NODISCARD pypto_status os_make_dirs(const char *path);
/* A new private directory below `parent` (NULL: $TMPDIR, else /tmp); its path on the arena. */
PYPTO_NODISCARD pypto_status os_temp_dir(arena *a, const char *parent, char **path);
/* Removes a file, link or directory with all its content. Follows no symbolic link. What cannot be
 * removed stays. */
void os_remove_tree(const char *path) EXPORTED(os_remove_tree);
/* A resource limit of this process: "files", "processes", "address space", "file size" or "stack"; -1 when there is
 * none. */
int64_t os_limit(const char *what) EXPORTED(os_limit);
/* "`ulimit -n`, which is 12", as the shell counts; without the number when there is no limit. Returns `text`. */
#define OS_LIMIT_TEXT 64
const char *os_limit_text(const char *what, char *text, int64_t bytes);
/* "; see `ulimit -v`, which is 1024", or "" when there is no limit. */
const char *os_limit_note(const char *what, char *text, int64_t bytes);
/* Starts a thread that needs no more than this much stack, whatever ulimit -s says; 0 or the error. */
int os_start_thread(pthread_t *thread, int64_t stack_bytes, void *(*run)(void *), void *argument);
/* Atomically puts `from` in the place of `to`. */
PYPTO_NODISCARD pypto_status os_rename(const char *from, const char *to);

/* Files below a directory of this user's (os_folder.c): `root` itself and whatever lies below it is reached without following
 * symbolic links, and directories there belong to this user; else it is an error, and nothing is touched. A name is a path
 * below `root`, "" is `root`. */
/* Makes `root`, with its parents, and the directory `name`. */
PYPTO_NODISCARD pypto_status os_folder_make(const char *root, const char *name);
/* Writes a file as os_write_file() does; directories of its name are made, with mode 0700. A link in its place is replaced. */
PYPTO_NODISCARD pypto_status os_folder_write(const char *root, const char *name, const void *bytes,
                                             int64_t count);
/* As os_remove_tree() and os_list_dir(); where there is a link on the way, nothing happens. */
void os_folder_remove(const char *root, const char *name);
os_names os_folder_list(arena *a, const char *root, const char *name);

/* The full path of a program found in $PATH (or of `name` itself when it has a slash), or NULL. */
char *os_find_program(arena *a, const char *name);

/* How a wait can be ended from outside. */
typedef struct os_interrupts {
    int event; /* an eventfd, non-blocking: readable when it is worth asking; -1: signals alone are */
    bool (*asked)(void *context); /* whether to give up; on the waiting thread */
    void *context;
} os_interrupts;

/* Runs a program without a shell, standard input empty, output and errors together in *output (on
 * the arena, at most 64 KiB of it). *exit_code is the exit code, 128 + signal, or -1 when nobody
 * can know it (the calling program ignores SIGCHLD or reaped our child): then judge by what the
 * program left. Interrupted system calls go on, unless `interrupts` (which may be NULL) says to give up: then the
 * program and those that it has started are ended, and the status is CANCELLED. */
PYPTO_NODISCARD pypto_status os_run(arena *a, const char *const *argv,
                                    const os_interrupts *interrupts, char **output,
                                    int32_t *exit_code);

/* The path of the file behind a descriptor, if there is one and it still leads to that file. */
bool os_path_of(int fd, char *path, int64_t bytes);

/* Directory of the shared library (or program) that this code is linked into; on the arena. */
char *os_library_dir(arena *a) EXPORTED(os_library_dir);
/* Its full path. */
char *os_library_path(arena *a);

/* An open-for-reading descriptor >= 3 with close-on-exec, or -1 with errno. */
int os_open_read(const char *path);
/* Moves a descriptor to a number >= 3 and sets close-on-exec; returns it, or -1 with errno, and
 * then the descriptor is closed. Accepts -1, so that it can wrap the call that opens. */
int os_high_fd(int fd);
/* A descriptor that becomes readable when the process ends (>= 3, close-on-exec), or -1 with errno:
 * ENOSYS or EPERM where the kernel or its sandbox has no pidfds. */
int os_open_pidfd(int64_t pid);
/* Closes and sets -1. Accepts -1. */
void os_close(int *fd) EXPORTED(os_close);

/* Which file an open descriptor is of; {0, 0} for one that is not open. */
typedef struct os_file_id {
    uint64_t device; /* st_dev and st_ino */
    uint64_t inode;
} os_file_id;
os_file_id os_file_of(int fd);

/* Another descriptor of the same open file (>= 3, close-on-exec), or -1 with errno. */
int os_duplicate(int fd);

/* A mapping of this process: addresses [low, high), and the file behind it, if there is one. */
typedef struct os_mapping {
    int64_t low;
    int64_t high;
    int64_t file_offset; /* of `low` */
    uint64_t device;     /* st_dev and st_ino of the file */
    uint64_t inode;
    bool shared; /* what is written is seen by others that map the file */
    bool writable;
} os_mapping;

/* A descriptor for os_mapping_at(), good in this process only (>= 3, close-on-exec), or -1 with errno. */
int os_maps_open(void);
/* Whether os_mapping_at() takes less than a microsecond or so, and not a thousand times that. */
bool os_maps_are_quick(int maps);
/* The mapping that has the address; false when there is none. */
bool os_mapping_at(int maps, int64_t address, os_mapping *found);
/* Its two ways: asking the kernel (false, too, where it does not answer), and reading the text. */
bool os_mapping_ask(int maps, int64_t address, os_mapping *found);
bool os_mapping_read(int64_t address, os_mapping *found);
/* Whether all of these bytes are in mappings of this process, whoever may use them. */
bool os_is_mapped(uint64_t address, int64_t bytes) EXPORTED(os_is_mapped);
/* A copy of a descriptor that this process has open on the file (>= 3, close-on-exec), if possible one for
 * writing; -1: there is none. */
int os_find_descriptor(uint64_t device, uint64_t inode, bool *writable);
/* Whether the descriptor is open on that file, and its size now. */
bool os_is_file(int fd, uint64_t device, uint64_t inode, int64_t *bytes);
#endif
