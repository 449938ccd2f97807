/* How many CPUs this process may keep busy: what decides whether waiting ranks may spin.
 *
 * Two limits: the affinity mask (taskset, cpusets of a container) and the CPU-time quota of the
 * control groups above us (docker --cpus, Kubernetes limits). A quota applies to a group and
 * everything below it, so every parent counts; version 2 has one hierarchy, version 1 a hierarchy
 * per controller.
 *
 * Pitfall: /proc/self/cgroup may name a path that is not visible under our own mount (a container
 * whose mount shows only its own part). Walking up to the mount point finds the limit there too. */
#include "base/os.h"

#include "base/format.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Reads the beginning of a small file into `text`; false when there is none. */
static bool read_small(const char *path, char *text, int64_t bytes)
{
    int fd = os_open_read(path);
    if (fd < 0)
        return false;
    int64_t length = 0;
    while (length < bytes - 1) {
        ssize_t count = read(fd, text + length, (size_t)(bytes - 1 - length));
        if (count <= 0)
            break;
        length += count;
    }
    text[length] = '\0';
    os_close(&fd);
    return length > 0;
}

/* A number from the file `name` in `directory`. */
static bool read_number(const char *directory, const char *name, int64_t *number)
{
    char path[PATH_MAX + 64];
    char text[64];
    format_text(path, sizeof path, "%s/%s", directory, name);
    return read_small(path, text, sizeof text) && sscanf(text, "%" SCNd64, number) == 1;
}

/* Quota and period of one group; false when it sets no limit. */
static bool read_quota(const char *directory, int64_t *quota, int64_t *period)
{
    char path[PATH_MAX + 64];
    char text[64];
    format_text(path, sizeof path, "%s/cpu.max", directory);
    if (read_small(path, text, sizeof text)) /* version 2: "max 100000" or "150000 100000" */
        return sscanf(text, "%" SCNd64 " %" SCNd64, quota, period) == 2;
    return read_number(directory, "cpu.cfs_quota_us", quota) &&
           read_number(directory, "cpu.cfs_period_us", period);
}

/* The smallest limit of the group `mount`/`group` and its parents up to `mount`, or `least`. */
static int64_t least_of_parents(const char *mount, const char *group, int64_t least)
{
    char directory[PATH_MAX];
    int64_t mount_bytes = (int64_t)strlen(mount);
    /* ".." means a group outside of what we see: only the mount point itself can tell something. */
    bool visible = strstr(group, "..") == NULL;
    if (format_text(directory, sizeof directory, "%s%s", mount, visible ? group : "") >= PATH_MAX)
        return least;
    for (;;) {
        int64_t quota;
        int64_t period;
        if (read_quota(directory, &quota, &period) && quota > 0 && period > 0) {
            int64_t cpus = (quota - 1) / period + 1;
            least = least == 0 || cpus < least ? cpus : least;
        }
        char *slash = strrchr(directory, '/');
        if (slash == NULL || slash - directory < mount_bytes)
            return least;
        *slash = '\0';
    }
}

/* Whether `item` stands in a comma-separated list. */
static bool list_has(const char *list, const char *item)
{
    size_t length = strlen(item);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, item, length) == 0 && (at[length] == '\0' || at[length] == ','))
            return true;
    }
    return false;
}

int64_t os_cgroup_cpus(const char *mount, const char *membership)
{
    int64_t least = 0;
    char line[PATH_MAX];
    for (const char *at = membership; *at != '\0';) {
        int64_t bytes = (int64_t)strcspn(at, "\n");
        format_text(line, sizeof line, "%.*s", (int)bytes, at);
        at += bytes + (at[bytes] == '\n');

        /* hierarchy-number:controller,controller:/path */
        char *list = strchr(line, ':');
        char *group = list != NULL ? strchr(list + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *group++ = '\0';
        list++;
        if (list[0] == '\0') {
            least = least_of_parents(mount, group, least);
        } else if (list_has(list, "cpu")) {
            char controller[PATH_MAX];
            if (format_text(controller, sizeof controller, "%s/%s", mount, list) < PATH_MAX)
                least = least_of_parents(controller, group, least);
        }
    }
    return least;
}

int32_t os_cpu_count(void)
{
    cpu_set_t mask[64]; /* room for 65,536 CPUs; the kernel refuses a mask shorter than its own */
    int64_t cpus = sched_getaffinity(0, sizeof mask, mask) == 0 ? CPU_COUNT_S(sizeof mask, mask)
                                                                : sysconf(_SC_NPROCESSORS_ONLN);
    char membership[8192];
    if (read_small("/proc/self/cgroup", membership, sizeof membership)) {
        int64_t limit = os_cgroup_cpus("/sys/fs/cgroup", membership);
        if (limit > 0 && limit < cpus)
            cpus = limit;
    }
    return cpus > 0 ? (int32_t)cpus : 1;
}

int32_t os_cpu_now(void)
{
    return sched_getcpu();
}
