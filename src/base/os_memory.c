/* How much memory this process may still have: what the machine can give without a process being killed for it, and what
 * the control groups above us leave (docker --memory, Kubernetes limits, systemd's MemoryMax).
 *
 * Both count pages of files that can be dropped as there for the taking: MemAvailable does so by itself, the use of a
 * group has them in it. */
#include "base/os.h"

#include "base/os_cgroup.h"

/* Pages of files in the use of a group. In version 1 the plain numbers are of the group alone. */
static int64_t droppable(const cgroups *walk, bool version_1)
{
    const int64_t idle =
        cgroup_number(walk, "memory.stat", version_1 ? "total_inactive_file" : "inactive_file");
    const int64_t in_use =
        cgroup_number(walk, "memory.stat", version_1 ? "total_active_file" : "active_file");
    return (idle > 0 ? idle : 0) + (in_use > 0 ? in_use : 0);
}

int64_t os_cgroup_memory_left(const char *mount, const char *membership, int64_t enough)
{
    int64_t least = INT64_MAX;
    cgroups walk = cgroup_walk(mount, membership, "memory");
    while (cgroup_next(&walk)) {
        int64_t limit = cgroup_number(&walk, "memory.max", ""); /* "max": there is none */
        int64_t used = cgroup_number(&walk, "memory.current", "");
        const bool version_1 = used < 0;
        if (version_1) {
            limit = cgroup_number(&walk, "memory.limit_in_bytes", "");
            used = cgroup_number(&walk, "memory.usage_in_bytes", "");
        }
        if (limit < 0 || used < 0)
            continue;
        int64_t left = limit - used;
        if (left < enough) /* to count the pages is work for the kernel */
            left += droppable(&walk, version_1);
        left = left < 0 ? 0 : left;
        least = left < least ? left : least;
    }
    return least;
}

int64_t os_memory_left(int64_t enough)
{
    char text[8192];
    const int64_t kib = os_number_in("/proc/meminfo", "MemAvailable:");
    int64_t left = kib < 0 ? INT64_MAX : kib * 1024;
    if (read_small_file("/proc/self/cgroup", text, sizeof text)) {
        const int64_t of_groups = os_cgroup_memory_left(CGROUP_MOUNT, text, enough);
        left = of_groups < left ? of_groups : left;
    }
    return left;
}
