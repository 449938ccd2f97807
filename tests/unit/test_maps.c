/* What is mapped at an address, asked in both ways, and descriptors found by their file. */
#include "base/os.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE 4096

static int make_file(struct stat *info)
{
    const int fd = memfd_create("test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
    assert_int_equal(fstat(fd, info), 0);
    return fd;
}

static void check(int maps, const void *address, const os_mapping *wanted)
{
    os_mapping found[2];
    int ways = 0;
    assert_true(os_mapping_read((int64_t)(intptr_t)address, &found[ways++]));
    if (os_maps_are_quick(maps)) /* not before Linux 6.11 */
        assert_true(os_mapping_ask(maps, (int64_t)(intptr_t)address, &found[ways++]));
    for (int i = 0; i < ways; ++i) {
        const int64_t offset = (int64_t)(intptr_t)address - found[i].low + found[i].file_offset;
        assert_true(found[i].low <= (int64_t)(intptr_t)address);
        assert_true(found[i].high > (int64_t)(intptr_t)address);
        assert_int_equal(found[i].device, wanted->device);
        assert_int_equal(found[i].inode, wanted->inode);
        assert_int_equal(found[i].shared, wanted->shared);
        assert_int_equal(found[i].writable, wanted->writable);
        if (wanted->inode != 0)
            assert_int_equal(offset, wanted->file_offset);
    }
    assert_true(os_mapping_at(maps, (int64_t)(intptr_t)address, &found[0]));
}

static void test_mappings_of_every_kind(void **state)
{
    (void)state;
    struct stat info;
    int fd = make_file(&info);
    int maps = os_maps_open();
    assert_true(maps >= 3);
    static const struct {
        int access, flags;
        bool file;
    } kinds[] = {{PROT_READ | PROT_WRITE, MAP_SHARED, true},
                 {PROT_READ, MAP_SHARED, true},
                 {PROT_READ | PROT_WRITE, MAP_PRIVATE, true},
                 {PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, false}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        char *base = mmap(NULL, 2 * PAGE, kinds[i].access, kinds[i].flags, kinds[i].file ? fd : -1,
                          kinds[i].file ? PAGE : 0);
        assert_ptr_not_equal(base, MAP_FAILED);
        const os_mapping wanted = {.device = kinds[i].file ? info.st_dev : 0,
                                   .inode = kinds[i].file ? info.st_ino : 0,
                                   .file_offset = PAGE + 5000,
                                   .shared = kinds[i].flags == MAP_SHARED,
                                   .writable = (kinds[i].access & PROT_WRITE) != 0};
        check(maps, base + 5000, &wanted);
        assert_int_equal(munmap(base, 2 * PAGE), 0);
        os_mapping gone;
        if (os_mapping_at(maps, (int64_t)(intptr_t)base, &gone)) /* unless another thread took it */
            assert_true(!kinds[i].file || gone.inode != info.st_ino);
    }
    os_close(&maps);
    os_close(&fd);
}

static void test_no_mapping_at_zero(void **state)
{
    (void)state;
    int maps = os_maps_open();
    os_mapping found;
    assert_false(os_mapping_at(maps, 0, &found));
    assert_false(os_mapping_read(0, &found));
    assert_false(os_mapping_ask(-1, (int64_t)(intptr_t)&found, &found));
    os_close(&maps);
}

static void test_descriptors_are_found_by_their_file(void **state)
{
    (void)state;
    struct stat info;
    int fd = make_file(&info);
    bool writable = false;
    int found = os_find_descriptor(info.st_dev, info.st_ino, &writable);
    assert_true(found >= 3 && found != fd && writable);
    int64_t bytes = 0;
    assert_true(os_is_file(found, info.st_dev, info.st_ino, &bytes));
    assert_int_equal(bytes, 4 * PAGE);
    assert_false(os_is_file(found, info.st_dev, info.st_ino + 1, &bytes));
    assert_true((fcntl(found, F_GETFD) & FD_CLOEXEC) != 0);
    os_close(&found);

    /* One for reading will do if there is no better one; one that only names the file will not. */
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int reading = open(path, O_RDONLY | O_CLOEXEC);
    int naming = open(path, O_PATH | O_CLOEXEC);
    assert_true(reading >= 0 && naming >= 0);
    found = os_find_descriptor(info.st_dev, info.st_ino, &writable);
    assert_true(found >= 3 && writable);
    os_close(&found);
    os_close(&fd);
    found = os_find_descriptor(info.st_dev, info.st_ino, &writable);
    assert_true(found >= 3 && !writable);
    os_close(&found);
    os_close(&reading);
    assert_int_equal(os_find_descriptor(info.st_dev, info.st_ino, &writable), -1);
    os_close(&naming);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mappings_of_every_kind),
        cmocka_unit_test(test_no_mapping_at_zero),
        cmocka_unit_test(test_descriptors_are_found_by_their_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
