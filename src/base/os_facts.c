/* Facts about the system, for those who may not know Linux. What stat() says of a file: the artifact
 * cache trusts only what this user owns, the compiler's identity is its size and time. What a
 * directory holds, and the limits of the process: for the `pypto` command. */
#include "base/os.h"

#include "base/vec.h"

#include <dirent.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

bool os_file_facts(const char *path, os_facts *facts)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return false;
    *facts = (os_facts){
        .bytes = info.st_size,
        .modified_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec,
        .directory = S_ISDIR(info.st_mode),
        .is_private = info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0,
    };
    return true;
}

char **os_list_dir(arena *a, const char *path)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return NULL;
    /* The descriptor is closed before anything is put on the arena, which may jump: names go there in
     * a second reading. */
    VEC(char *) names = {0};
    int64_t bytes = 0;
    for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir))
        bytes += (int64_t)strlen(e->d_name) + 1;
    (void)closedir(dir);
    char *text = arena_alloc(a, bytes + 1);
    dir = opendir(path);
    if (dir == NULL)
        return NULL;
    int64_t used = 0;
    for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        int64_t length = (int64_t)strlen(e->d_name) + 1;
        if (used + length > bytes)
            break;
        memcpy(text + used, e->d_name, (size_t)length);
        used += length;
    }
    (void)closedir(dir);
    for (char *at = text; at < text + used; at += strlen(at) + 1) {
        if (strcmp(at, ".") != 0 && strcmp(at, "..") != 0)
            vec_push(a, &names, at);
    }
    vec_push(a, &names, NULL);
    return names.items;
}

int64_t os_limit(const char *what)
{
    static const struct {
        const char *what;
        int resource;
    } known[] = {
        {"files", RLIMIT_NOFILE},
        {"processes", RLIMIT_NPROC},
        {"address space", RLIMIT_AS},
        {"file size", RLIMIT_FSIZE},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct rlimit limit;
        if (strcmp(known[i].what, what) == 0 &&
            getrlimit((__rlimit_resource_t)known[i].resource, &limit) == 0 &&
            limit.rlim_cur != RLIM_INFINITY)
            return (int64_t)limit.rlim_cur;
    }
    return -1;
}
