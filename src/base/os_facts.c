/* What stat() says of a file, for those who may not know Linux: the artifact cache, which trusts
 * only what this user owns, and the compiler's identity, which is its size and time. */
#include "base/os.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
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

int64_t os_file_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void os_touch(const char *path)
{
    (void)utimensat(AT_FDCWD, path, NULL, 0);
}
