/* What is mapped at an address of this process, and by which descriptor it can be mapped elsewhere. For the
 * host, which passes on files that its caller shares.
 *
 * Since Linux 6.11 the kernel answers for one address. Before that, the text of all mappings has to be
 * read, which takes a large process a millisecond: os_maps_are_quick() tells which it is. */
#include "base/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* struct procmap_query and PROCMAP_QUERY of <linux/fs.h>, which older headers lack. */
typedef struct mapping_query {
    uint64_t size;
    uint64_t query_flags;
    uint64_t query_addr;
    uint64_t vma_start;
    uint64_t vma_end;
    uint64_t vma_flags;
    uint64_t vma_page_size;
    uint64_t vma_offset;
    uint64_t inode;
    uint32_t dev_major;
    uint32_t dev_minor;
    uint32_t vma_name_size;
    uint32_t build_id_size;
    uint64_t vma_name_addr;
    uint64_t build_id_addr;
} mapping_query;
#define MAPPING_QUERY _IOWR('f', 17, mapping_query)
#define MAPPING_WRITABLE 0x02u
#define MAPPING_SHARED 0x08u

int os_maps_open(void)
{
    return os_open_read("/proc/self/maps");
}

bool os_mapping_ask(int maps, int64_t address, os_mapping *found)
{
    mapping_query query = {.size = sizeof query, .query_addr = (uint64_t)address};
    if (maps < 0 || ioctl(maps, MAPPING_QUERY, &query) != 0)
        return false;
    *found = (os_mapping){.low = (int64_t)query.vma_start,
                          .high = (int64_t)query.vma_end,
                          .file_offset = (int64_t)query.vma_offset,
                          .device = makedev(query.dev_major, query.dev_minor),
                          .inode = query.inode,
                          .shared = (query.vma_flags & MAPPING_SHARED) != 0,
                          .writable = (query.vma_flags & MAPPING_WRITABLE) != 0};
    return true;
}

bool os_maps_are_quick(int maps)
{
    os_mapping found;
    return os_mapping_ask(maps, (int64_t)(intptr_t)&found, &found);
}

bool os_mapping_read(int64_t address, os_mapping *found)
{
    FILE *file = fopen("/proc/self/maps", "re");
    if (file == NULL)
        return false;
    char *line = NULL;
    size_t room = 0;
    bool is_it = false;
    while (!is_it && getline(&line, &room, file) > 0) {
        unsigned long long low, high, offset, inode;
        unsigned device_major, device_minor;
        char access[5];
        if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu", &low, &high, access, &offset,
                   &device_major, &device_minor, &inode) != 7)
            break;
        is_it = (unsigned long long)address >= low && (unsigned long long)address < high;
        *found = (os_mapping){.low = (int64_t)low,
                              .high = (int64_t)high,
                              .file_offset = (int64_t)offset,
                              .device = makedev(device_major, device_minor),
                              .inode = inode,
                              .shared = access[3] == 's',
                              .writable = access[1] == 'w'};
    }
    free(line);
    fclose(file);
    return is_it;
}

bool os_mapping_at(int maps, int64_t address, os_mapping *found)
{
    return os_mapping_ask(maps, address, found) || os_mapping_read(address, found);
}

bool os_is_file(int fd, uint64_t device, uint64_t inode, int64_t *bytes)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || info.st_dev != device || info.st_ino != inode)
        return false;
    *bytes = info.st_size;
    return true;
}

os_file_id os_file_of(int fd)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return (os_file_id){0};
    return (os_file_id){info.st_dev, info.st_ino};
}

int os_duplicate(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

/* 0: it cannot be mapped; 1: for reading; 2: for writing, too. */
static int access_of(int fd)
{
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_PATH) != 0)
        return 0;
    return (flags & O_ACCMODE) == O_RDWR ? 2 : (flags & O_ACCMODE) == O_RDONLY ? 1 : 0;
}

bool os_is_mapped(uint64_t address, int64_t bytes)
{
    const uint64_t low = address & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
    uint64_t high;
    if (__builtin_add_overflow(address, (uint64_t)bytes, &high))
        return false;
    /* MS_ASYNC does nothing but find the mappings. */
    return msync((void *)(uintptr_t)low, (size_t)(high - low), MS_ASYNC) == 0;
}

int os_find_descriptor(uint64_t device, uint64_t inode, bool *writable)
{
    DIR *directory = opendir("/proc/self/fd");
    int best = -1;
    int best_access = 0;
    for (const struct dirent *entry;
         directory != NULL && best_access < 2 && (entry = readdir(directory)) != NULL;) {
        char *end;
        const long number = strtol(entry->d_name, &end, 10);
        int64_t bytes;
        if (end == entry->d_name || *end != '\0' ||
            !os_is_file((int)number, device, inode, &bytes) ||
            access_of((int)number) <= best_access)
            continue;
        /* Another thread may close it, and open something else: only the copy is sure. */
        int copy = os_duplicate((int)number);
        if (copy < 0 || !os_is_file(copy, device, inode, &bytes) ||
            access_of(copy) <= best_access) {
            os_close(&copy);
            continue;
        }
        os_close(&best);
        best = copy;
        best_access = access_of(copy);
    }
    if (directory != NULL)
        closedir(directory);
    *writable = best_access == 2;
    return best;
}
