/* The control groups above this process. A limit applies to a group and everything below it, so every parent counts;
 * version 2 has one hierarchy, version 1 a hierarchy per controller. Called by os_cpu.c and os_memory.c.
 *
 * Pitfall: /proc/self/cgroup may name a path that is not visible under our own mount (a container
 * whose mount shows only its own part). Walking up to the mount point finds the limit there too. */
#include "base/os_cgroup.h"

#include "base/format.h"
#include "base/os.h"

#include <string.h>
#include <unistd.h>

bool read_small_file(const char *path, char *text, int64_t bytes)
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

int64_t cgroup_number(const cgroups *walk, const char *file, const char *word)
{
    char path[PATH_MAX + 64];
    format_text(path, sizeof path, "%s/%s", walk->directory, file);
    return os_number_in(path, word);
}

cgroups cgroup_walk(const char *mount, const char *membership, const char *controller)
{
    return (cgroups){.mount = mount, .controller = controller, .rest = membership, .top = -1};
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

/* Begins with the group of a line, hierarchy-number:controller,controller:/path, if it is one of those asked for. */
static bool begin_line(cgroups *walk, char *line)
{
    char *list = strchr(line, ':');
    char *group = list != NULL ? strchr(list + 1, ':') : NULL;
    if (group == NULL)
        return false;
    *group++ = '\0';
    list++;
    if (list[0] != '\0' && !list_has(list, walk->controller))
        return false;
    /* ".." means a group outside of what we see: only the mount point itself can tell something. */
    const bool visible = strstr(group, "..") == NULL;
    walk->top = (int64_t)strlen(walk->mount) + (list[0] != '\0' ? (int64_t)strlen(list) + 1 : 0);
    return format_text(walk->directory, sizeof walk->directory, "%s%s%s%s", walk->mount,
                       list[0] != '\0' ? "/" : "", list, visible ? group : "") < PATH_MAX;
}

bool cgroup_next(cgroups *walk)
{
    if (walk->top >= 0) {
        char *slash = strrchr(walk->directory, '/');
        if (slash != NULL && slash - walk->directory >= walk->top) {
            *slash = '\0';
            return true;
        }
        walk->top = -1;
    }
    char line[PATH_MAX];
    while (*walk->rest != '\0') {
        const int64_t bytes = (int64_t)strcspn(walk->rest, "\n");
        format_text(line, sizeof line, "%.*s", (int)bytes, walk->rest);
        walk->rest += bytes + (walk->rest[bytes] == '\n');
        if (begin_line(walk, line))
            return true;
        walk->top = -1;
    }
    return false;
}
