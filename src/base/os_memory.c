/* How much memory this process may still have: what the machine can give without a process being killed for it, and what
 * the control groups above us leave (docker --memory, Kubernetes limits, systemd's MemoryMax).
 *
 * Both count pages of files that can be dropped as there for the taking: MemAvailable does so by itself, the use of a
 * group has them in it. */
#include "base/os.h"

#include "base/format.h"
#include "base/os_cgroup.h"

/* A number of a file of a group; -1: it has none. */
static int64_t number_in(const char *directory, const char *file, const char *word)
{
    char path[PATH_MAX + 64];
    format_text(path, sizeof path, "%s/%s", directory, file);
    return os_number_in(path, word);
}

/* Pages of files in the use of a group. In version 1 the plain numbers are of the group alone. */
static int64_t droppable(const char *directory, bool version_1)
{
    const int64_t idle =
        number_in(directory, "memory.stat", version_1 ? "total_inactive_file" : "inactive_file");
    const int64_t in_use =
        number_in(directory, "memory.stat", version_1 ? "total_active_file" : "active_file");
    return (idle > 0 ? idle : 0) + (in_use > 0 ? in_use : 0);
}

int64_t os_cgroup_memory_left(const char *mount, const char *membership, int64_t enough)
{
    int64_t least = INT64_MAX;
    cgroups walk = cgroup_walk(mount, membership, "memory");
    while (cgroup_next(&walk)) {
        int64_t limit = number_in(walk.directory, "memory.max", ""); /* "max": there is none */
        int64_t used = number_in(walk.directory, "memory.current", "");
        const bool version_1 = used < 0;
        if (version_1) {
            limit = number_in(walk.directory, "memory.limit_in_bytes", "");
            used = number_in(walk.directory, "memory.usage_in_bytes", "");
        }
        if (limit < 0 || used < 0)
            continue;
        int64_t left = limit - used;
        if (left < enough) /* to count the pages is work for the kernel */
            left += droppable(walk.directory, version_1);
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
