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
#include "base/os_cgroup.h"

#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Quota and period of one group; false when it sets no limit. */
static bool read_quota(const cgroups *walk, int64_t *quota, int64_t *period)
{
    char path[PATH_MAX + 64];
    char text[64];
    format_text(path, sizeof path, "%s/cpu.max", walk->directory);
    if (read_small_file(path, text, sizeof text)) /* version 2: "max 100000" or "150000 100000" */
        return sscanf(text, "%" SCNd64 " %" SCNd64, quota, period) == 2;
    *quota = cgroup_number(walk, "cpu.cfs_quota_us", "");
    *period = cgroup_number(walk, "cpu.cfs_period_us", "");
    return true;
}

int64_t os_cgroup_cpus(const char *mount, const char *membership)
{
    int64_t least = 0;
    cgroups walk = cgroup_walk(mount, membership, "cpu");
    while (cgroup_next(&walk)) {
        int64_t quota;
        int64_t period;
        if (!read_quota(&walk, &quota, &period) || quota <= 0 || period <= 0)
            continue;
        const int64_t cpus = (quota - 1) / period + 1;
        least = least == 0 || cpus < least ? cpus : least;
    }
    return least;
}

int32_t os_cpu_count(void)
{
    cpu_set_t mask[64]; /* room for 65,536 CPUs; the kernel refuses a mask shorter than its own */
    int64_t cpus = sched_getaffinity(0, sizeof mask, mask) == 0 ? CPU_COUNT_S(sizeof mask, mask)
                                                                : sysconf(_SC_NPROCESSORS_ONLN);
    char membership[8192];
    if (read_small_file("/proc/self/cgroup", membership, sizeof membership)) {
        int64_t limit = os_cgroup_cpus(CGROUP_MOUNT, membership);
        if (limit > 0 && limit < cpus)
            cpus = limit;
    }
    return cpus > 0 ? (int32_t)cpus : 1;
}

int32_t os_cpu_now(void)
{
    return sched_getcpu();
}
