/* Files below a directory that is this user's alone, as the records of calls: see os.h. What python/pypto/ir/folder.py
 * does for the artifacts.
 *
 * Somebody who may write into one of the directories above could put a link in the place of ours, and so choose what
 * we overwrite or remove. So each step is taken from the descriptor of the directory before it, none of them
 * through a link, and each directory must belong to this user. */
#include "base/os_at.h"

#include "base/alloc.h"
#include "base/diag.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
/* Of this module; behind those of the system. */
#define NOT_OURS 10000

/* A descriptor of the directory if it is one of this user's; else -1 and errno. */
static int enter(int parent, const char *name)
{
    struct stat info;
    int fd = os_high_fd(openat(parent, name, DIRECTORY));
    if (fd < 0) {
        /* Of a link the system says that it is no directory. */
        if (errno == ENOTDIR && fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) == 0)
            errno = S_ISLNK(info.st_mode) ? ELOOP : ENOTDIR;
        return -1;
    }
    if (fstat(fd, &info) == 0 && info.st_uid == geteuid())
        return fd;
    os_close(&fd);
    errno = NOT_OURS;
    return -1;
}

/* Without slashes at its end, behind which a link is followed. */
static int enter_root(const char *root)
{
    size_t length = strlen(root);
    while (length > 1 && root[length - 1] == '/')
        --length;
    char *path = alloc_printf("%.*s", (int)length, root);
    const int fd = path == NULL ? -1 : enter(AT_FDCWD, path);
    const int error = path == NULL ? ENOMEM : errno;
    alloc_free(path);
    errno = error;
    return fd;
}

/* The first part of a name, for the caller to release, and where the next one begins; NULL: the memory is exhausted. */
static char *first_part(const char **name)
{
    const size_t length = strcspn(*name, "/");
    char *part = alloc_printf("%.*s", (int)length, *name);
    *name += length;
    *name += strspn(*name, "/");
    return part;
}

/* The directory that holds the last part of `name`, and that part; -1 and errno. */
static int enter_parent(const char *root, const char *name, bool make, const char **last)
{
    int fd = enter_root(root);
    *last = name;
    while (fd >= 0 && strchr(*last, '/') != NULL) {
        char *part = first_part(last);
        int below = -1;
        if (part == NULL)
            errno = ENOMEM;
        else if (!make || mkdirat(fd, part, 0700) == 0 || errno == EEXIST)
            below = enter(fd, part);
        const int error = errno;
        alloc_free(part);
        os_close(&fd);
        errno = error;
        fd = below;
    }
    return fd;
}

static pypto_status refused(int error, const char *doing, const char *root, const char *name)
{
    const char *const slash = name[0] == '\0' ? "" : "/";
    if (error == ENOMEM)
        return diag_no_memory();
    if (error == NOT_OURS)
        return diag_status(DIAG_SYSTEM, "choose a directory of your own",
                           "cannot %s %s%s%s: a directory of it belongs to another user", doing,
                           root, slash, name);
    if (error == ELOOP)
        return diag_status(
            DIAG_SYSTEM, "remove the link",
            "cannot %s %s%s%s: a part of it is a symbolic link, which is not followed", doing, root,
            slash, name);
    return diag_system(error, NULL, "%s %s%s%s", doing, root, slash, name);
}

pypto_status os_folder_make(const char *root, const char *name)
{
    pypto_status status = os_make_dirs(root);
    if (!status_ok(status))
        return status;
    const char *last;
    int fd = enter_parent(root, name, true, &last);
    int made = fd;
    if (fd >= 0 && last[0] != '\0')
        made = mkdirat(fd, last, 0700) == 0 || errno == EEXIST ? enter(fd, last) : -1;
    const int error = made < 0 ? errno : 0;
    if (made != fd)
        os_close(&made);
    os_close(&fd);
    return error == 0 ? STATUS_OK : refused(error, "use the directory", root, name);
}

/* 0 or the error. */
static int write_at(int parent, const char *name, const void *bytes, int64_t count)
{
    char beside[64];
    (void)snprintf(beside, sizeof beside, ".%.32s.%d.tmp", name, (int)getpid());
    (void)unlinkat(parent, beside, 0);
    int fd = os_high_fd(
        openat(parent, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (fd < 0)
        return errno;
    int error = os_write_and_close(fd, bytes, count);
    if (error == 0 && renameat(parent, beside, parent, name) != 0)
        error = errno;
    if (error != 0)
        (void)unlinkat(parent, beside, 0);
    return error;
}

pypto_status os_folder_write(const char *root, const char *name, const void *bytes, int64_t count)
{
    const char *last;
    int parent = enter_parent(root, name, true, &last);
    const int error = parent < 0 ? errno : write_at(parent, last, bytes, count);
    os_close(&parent);
    return error == 0 ? STATUS_OK : refused(error, "write", root, name);
}

void os_folder_remove(const char *root, const char *name)
{
    const char *last;
    int parent = enter_parent(root, name, false, &last);
    if (parent >= 0)
        os_remove_at(parent, last);
    os_close(&parent);
}

typedef struct place {
    const char *root;
    const char *name;
} place;

static int open_place(const void *context)
{
    const place *p = context;
    if (p->name[0] == '\0')
        return enter_root(p->root);
    const char *last;
    int parent = enter_parent(p->root, p->name, false, &last);
    const int fd = parent < 0 ? -1 : enter(parent, last);
    os_close(&parent);
    return fd;
}

os_names os_folder_list(arena *a, const char *root, const char *name)
{
    const place p = {root, name};
    return os_list_with(a, open_place, &p);
}
