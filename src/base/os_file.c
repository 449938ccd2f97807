/* Files and directories for the compiler's cache, its sources and its reports.
 *
 * Two rules. A result on the arena is allocated while no descriptor is open, because the arena may
 * jump away. And nothing that another process could read is ever half written: files appear by
 * rename, directories are private (0700) from the moment they exist.
 *
 * No fsync: a cache entry that a power cut has torn is recognised by its reader and made again, and
 * waiting for the disk would cost more than the compile. */
#include "base/os.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/os_at.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Reads up to `capacity` bytes of the file; the count, or -1. */
static int64_t read_up_to(const char *path, char *bytes, int64_t capacity)
{
    int fd = os_open_read(path);
    if (fd < 0)
        return -1;
    int64_t length = 0;
    while (length < capacity) {
        ssize_t count = read(fd, bytes + length, (size_t)(capacity - length));
        if (count > 0)
            length += count;
        else if (count == 0 || errno != EINTR) {
            length = count == 0 ? length : -1;
            break;
        }
    }
    os_close(&fd);
    return length;
}

char *os_read_file(arena *a, const char *path, int64_t *bytes)
{
    struct stat info;
    if (stat(path, &info) != 0 || S_ISDIR(info.st_mode))
        return NULL;
    /* The size is a guess: files in /proc say 0, others may grow. One byte of room is left over
     * when the whole file has been seen; else start again with more. */
    int64_t capacity = info.st_size > 0 ? info.st_size + 1 : 4096;
    for (;;) {
        char *content = arena_alloc(a, capacity);
        int64_t length = read_up_to(path, content, capacity);
        if (length < 0)
            return NULL;
        if (length < capacity) {
            content[length] = '\0';
            if (bytes != NULL)
                *bytes = length;
            return content;
        }
        if (!size_mul(capacity, 2, &capacity))
            return NULL;
    }
}

int os_write_and_close(int fd, const char *bytes, int64_t count)
{
    int error = 0;
    while (count > 0 && error == 0) {
        ssize_t written = write(fd, bytes, (size_t)count);
        if (written >= 0) {
            bytes += written;
            count -= written;
        } else if (errno != EINTR) {
            error = errno;
        }
    }
    /* Network file systems report a full disk only here. */
    if (close(fd) != 0 && errno != EINTR && error == 0)
        error = errno;
    return error;
}

pypto_status os_write_file(const char *path, const void *bytes, int64_t count)
{
    char *beside = alloc_printf("%s.XXXXXX", path);
    if (beside == NULL)
        return diag_no_memory();
    int error = 0;
    int made = mkostemp(beside, O_CLOEXEC);
    int fd = os_high_fd(made);
    if (fd < 0) {
        error = errno;
    } else {
        error = os_write_and_close(fd, bytes, count);
        if (error == 0 && rename(beside, path) != 0)
            error = errno;
    }
    if (error != 0 && made >= 0)
        unlink(beside);
    alloc_free(beside);
    return error == 0 ? STATUS_OK : diag_system(error, NULL, "write %s", path);
}

bool os_file_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

bool os_entry_exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

void os_append_line(const char *path, const char *line)
{
    char text[256];
    int length = snprintf(text, sizeof text, "%s\n", line);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd >= 0 && length > 0 && length < (int)sizeof text) {
        ssize_t written = write(fd, text, (size_t)length);
        (void)written;
    }
    os_close(&fd);
}

static bool is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Makes one directory; 0 or the error. Whatever mkdir thinks of it (a mount point, a read-only file
 * system, a race with another process), a directory that is there is good. */
static int make_dir(const char *path)
{
    if (mkdir(path, 0700) == 0)
        return 0;
    int error = errno;
    if (is_directory(path))
        return 0;
    return error == EEXIST ? ENOTDIR : error;
}

pypto_status os_make_dirs(const char *path)
{
    char *prefix = alloc_strdup(path);
    if (prefix == NULL)
        return diag_no_memory();
    int error = make_dir(prefix);
    if (error == ENOENT && path[0] != '\0') {
        error = 0;
        for (char *slash = strchr(prefix + 1, '/'); slash != NULL && error == 0;
             slash = strchr(slash + 1, '/')) {
            *slash = '\0';
            error = make_dir(prefix);
            *slash = '/';
        }
        if (error == 0)
            error = make_dir(prefix);
    }
    alloc_free(prefix);
    return error == 0 ? STATUS_OK : diag_system(error, NULL, "make the directory %s", path);
}

pypto_status os_temp_dir(arena *a, const char *parent, char **path)
{
    if (parent == NULL)
        parent = getenv("TMPDIR");
    if (parent == NULL || parent[0] == '\0')
        parent = "/tmp";
    char *made = arena_printf(a, "%s/pypto-XXXXXX", parent);
    if (mkdtemp(made) == NULL)
        return diag_system(errno, "set TMPDIR to a directory that you may write to",
                           "make a temporary directory in %s", parent);
    *path = made;
    return STATUS_OK;
}

static void remove_content(int directory);

void os_remove_at(int parent, const char *name)
{
    if (unlinkat(parent, name, 0) == 0)
        return;
    int error = errno;
    if (error != EISDIR && error != EPERM)
        return;
    int fd = os_high_fd(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (fd < 0)
        return;
    remove_content(fd);
    unlinkat(parent, name, AT_REMOVEDIR);
}

/* Takes over the descriptor. */
static void remove_content(int directory)
{
    DIR *listing = fdopendir(directory);
    if (listing == NULL) {
        os_close(&directory);
        return;
    }
    for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            os_remove_at(directory, entry->d_name);
    }
    closedir(listing);
}

void os_remove_tree(const char *path)
{
    os_remove_at(AT_FDCWD, path);
}

pypto_status os_rename(const char *from, const char *to)
{
    if (rename(from, to) != 0)
        return diag_system(errno, NULL, "rename %s to %s", from, to);
    return STATUS_OK;
}

/* How many entries a directory has now, or copies up to `count` names of it. Takes over the descriptor. */
static int64_t names_of(int directory, char **names, int64_t count)
{
    DIR *listing = directory < 0 ? NULL : fdopendir(directory);
    if (listing == NULL) {
        os_close(&directory);
        return 0;
    }
    int64_t seen = 0;
    for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (names != NULL && seen == count)
            break;
        if (names != NULL)
            snprintf(names[seen], NAME_MAX + 1, "%s", entry->d_name);
        seen++;
    }
    closedir(listing);
    return seen;
}

os_names os_list_with(arena *a, int (*open_it)(const void *context), const void *context)
{
    /* Room first, because the arena may jump while the directory is open. */
    os_names found = {0};
    int64_t count = names_of(open_it(context), NULL, 0);
    char **names = arena_array(a, char *, count + 1);
    for (int64_t i = 0; i < count; i++)
        names[i] = arena_alloc(a, NAME_MAX + 1);
    count = names_of(open_it(context), names, count);
    for (int64_t i = 0; i < count; i++)
        vec_push(a, &found, names[i]);
    return found;
}

static int open_path(const void *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

os_names os_list_dir(arena *a, const char *path)
{
    return os_list_with(a, open_path, path);
}

int64_t os_write_some(int fd, const void *bytes, int64_t count)
{
    ssize_t written;
    do
        written = write(fd, bytes, (size_t)count);
    while (written < 0 && errno == EINTR);
    return written;
}

bool os_path_of(int fd, char *path, int64_t bytes)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, (size_t)bytes - 1);
    if (length <= 0 || length >= bytes - 1 || path[0] != '/')
        return false;
    path[length] = '\0';
    struct stat wanted, found;
    return fstat(fd, &wanted) == 0 && stat(path, &found) == 0 && wanted.st_dev == found.st_dev &&
           wanted.st_ino == found.st_ino;
}
