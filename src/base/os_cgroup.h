/* The control groups above this process, one after the other: see os_cgroup.c. Of src/base alone. */
#ifndef BASE_OS_CGROUP_H
#define BASE_OS_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define CGROUP_MOUNT "/sys/fs/cgroup"

/* Filled in by cgroup_walk(). */
typedef struct cgroups {
    const char *mount;
    const char *controller;
    const char *rest; /* of the text of /proc/self/cgroup */
    char directory[PATH_MAX];
    int64_t
        top; /* bytes of `directory` that are its hierarchy's mount point; -1: the next line is to be read */
} cgroups;

/* A walk over the groups named in `membership` (the text of /proc/self/cgroup), which has to live as long, and their
 * parents below `mount`; of version 1 those of the hierarchy of that controller. */
cgroups cgroup_walk(const char *mount, const char *membership, const char *controller);
/* Goes to the next one, whose directory is walk->directory then; false: there is none. */
bool cgroup_next(cgroups *walk);
/* A number of a file of that group, see os_number_in(); -1: it has none. */
int64_t cgroup_number(const cgroups *walk, const char *file, const char *word);

/* Reads the beginning of a small file into `text`; false when there is none. */
bool read_small_file(const char *path, char *text, int64_t bytes);
#endif
