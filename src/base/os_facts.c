/* Facts about the system, for those who may not know Linux. What stat() says of a file: the artifact
 * cache trusts only what this user owns, the compiler's identity is its size and time. The
 * limits of the process: for the `pypto` command. What the system says of itself in small files of text. */
#include "base/format.h"
#include "base/os.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
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

bool os_is_trusted(const char *path, bool directory)
{
    struct stat info;
    if (lstat(path, &info) != 0 || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return false;
    return (directory ? S_ISDIR(info.st_mode) : S_ISREG(info.st_mode)) &&
           (info.st_uid == geteuid() || info.st_uid == 0);
}

void os_make_private(const char *path)
{
    (void)chmod(path, S_IRUSR | S_IWUSR);
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

static const struct limit {
    const char *what;
    int resource;
    const char *option; /* of ulimit */
    int64_t unit;       /* in which that counts */
} limits[] = {
    {"files", RLIMIT_NOFILE, "-n", 1},        {"processes", RLIMIT_NPROC, "-u", 1},
    {"address space", RLIMIT_AS, "-v", 1024}, {"file size", RLIMIT_FSIZE, "-f", 1024},
    {"stack", RLIMIT_STACK, "-s", 1024},
};

static const struct limit *find_limit(const char *what)
{
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (strcmp(limits[i].what, what) == 0)
            return &limits[i];
    return NULL;
}

int64_t os_limit(const char *what)
{
    const struct limit *known = find_limit(what);
    struct rlimit limit;
    if (known == NULL || getrlimit((__rlimit_resource_t)known->resource, &limit) != 0 ||
        limit.rlim_cur == RLIM_INFINITY)
        return -1;
    return (int64_t)limit.rlim_cur;
}

const char *os_limit_text(const char *what, char *text, int64_t bytes)
{
    const struct limit *known = find_limit(what);
    const int64_t now = os_limit(what);
    if (now < 0)
        format_text(text, bytes, "`ulimit %s`", known->option);
    else
        format_text(text, bytes, "`ulimit %s`, which is %lld", known->option,
                    (long long)(now / known->unit));
    return text;
}

const char *os_limit_note(const char *what, char *text, int64_t bytes)
{
    char limit[OS_LIMIT_TEXT];
    if (os_limit(what) < 0)
        text[0] = '\0';
    else
        format_text(text, bytes, "; see %s", os_limit_text(what, limit, sizeof limit));
    return text;
}

int64_t os_number_in(const char *path, const char *word)
{
    FILE *file = fopen(path, "re");
    char line[256];
    int64_t number = -1;
    while (number < 0 && file != NULL && fgets(line, (int)sizeof line, file) != NULL) {
        long long value;
        const size_t length = strlen(word);
        if (strncmp(line, word, length) == 0 && sscanf(line + length, "%lld", &value) == 1)
            number = value;
    }
    if (file != NULL)
        fclose(file);
    return number;
}

bool os_is_traced(void)
{
    return os_number_in("/proc/self/status", "TracerPid:") > 0;
}
