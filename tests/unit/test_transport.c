/* The segment's layout, the block allocator and the reservation of memory. */
#include "base/diag.h"
#include "base/os.h"
#include "transport/heap.h"
#include "transport/promise.h"
#include "transport/transport.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

static void test_areas_follow_each_other_and_fit(void **state)
{
    (void)state;
    const int64_t sizes[] = {(int64_t)16 << 20, (int64_t)1 << 30, (int64_t)1 << 40};
    for (int i = 0; i < 3; ++i) {
        for (int32_t ranks = 1; ranks <= PYPTO_MAX_RANKS; ranks += 7) {
            const int32_t subs = ranks % 4;
            set_header h = {0};
            if (!segment_plan(&h, ranks, subs, sizes[i])) {
                assert_int_equal(i, 0); /* only the smallest segment may be too small */
                continue;
            }
            const int64_t ranks_end =
                h.ranks_offset + (int64_t)sizeof(rank_header) * (ranks + subs);
            assert_true(h.ranks_offset >= (int64_t)sizeof(set_header));
            assert_true(h.control_offset >= ranks_end);
            assert_true(h.staging_offset >= h.control_offset + h.control_bytes);
            assert_true(h.heap_offset >= h.staging_offset + h.staging_bytes);
            assert_true(h.heap_offset + h.stride * ranks <= sizes[i]);
            assert_int_equal(h.stride % 4096, 0);
        }
    }
}

static void test_plan_refuses_nonsense(void **state)
{
    (void)state;
    set_header h = {0};
    assert_false(segment_plan(&h, 0, 0, 1 << 30));
    assert_false(segment_plan(&h, PYPTO_MAX_RANKS + 1, 0, 1 << 30));
    assert_false(segment_plan(&h, 1, -1, 1 << 30));
    assert_false(segment_plan(&h, 1, MAX_SUB_WORKERS + 1, 1 << 30));
    assert_false(segment_plan(&h, 1, 0, 4096));
    assert_false(segment_plan(&h, 1, 0, -1));
}

/* Random takes and gives: blocks never overlap, and when all are back the area is whole again. */
static void test_blocks_never_overlap(void **state)
{
    (void)state;
    enum { LIVE = 64 };
    heap_area area;
    heap_init(&area, (int64_t)1 << 30, HEAP_ALIGN);
    heap_block live[LIVE] = {{0, 0}};
    uint32_t random = 12345;
    for (int step = 0; step < 20000; ++step) {
        random = random * 1664525u + 1013904223u;
        heap_block *b = &live[random >> 8 & (LIVE - 1)];
        if (b->bytes != 0) {
            heap_give(&area, b->offset, b->bytes);
            b->bytes = 0;
            continue;
        }
        b->bytes = 1 + (random >> 14) % 100000;
        b->offset = heap_take(&area, b->bytes);
        assert_true(b->offset >= 0);
        assert_int_equal(b->offset % HEAP_ALIGN, 0);
        for (int i = 0; i < LIVE; ++i)
            if (&live[i] != b && live[i].bytes != 0)
                assert_true(b->offset + b->bytes <= live[i].offset ||
                            live[i].offset + live[i].bytes <= b->offset);
    }
    for (int i = 0; i < LIVE; ++i)
        if (live[i].bytes != 0)
            heap_give(&area, live[i].offset, live[i].bytes);
    assert_int_equal(area.free_count, 1);
    assert_int_equal(area.free_[0].offset, 0);
    assert_int_equal(area.free_[0].bytes, area.top);
    heap_destroy(&area);
}

/* Every second of many blocks given back: as many free ranges as there can be. */
static void test_heap_of_many_pieces(void **state)
{
    (void)state;
    enum { BLOCKS = 1000 };
    heap_area area;
    heap_init(&area, (int64_t)1 << 30, HEAP_ALIGN);
    for (int64_t i = 0; i < BLOCKS; ++i)
        assert_int_equal(heap_take(&area, 1), i * HEAP_ALIGN);
    for (int64_t i = 0; i < BLOCKS; i += 2)
        heap_give(&area, i * HEAP_ALIGN, 1);
    assert_int_equal(area.free_count, BLOCKS / 2);
    assert_true(area.free_count <= area.free_capacity);
    for (int64_t i = 1; i < BLOCKS; i += 2)
        heap_give(&area, i * HEAP_ALIGN, 1);
    assert_int_equal(area.free_count, 1);
    assert_int_equal(area.taken, 0);
    heap_destroy(&area);
}

static void test_take_fails_where_it_must(void **state)
{
    (void)state;
    heap_area area;
    heap_init(&area, 3 * HEAP_ALIGN, HEAP_ALIGN);
    assert_int_equal(heap_take(&area, -1), -1);
    assert_int_equal(heap_take(&area, INT64_MAX), -1);
    assert_int_equal(heap_take(&area, 4 * HEAP_ALIGN), -1);
    assert_int_equal(heap_take(&area, 0), 0); /* even nothing gets an address of its own */
    assert_int_equal(heap_take(&area, 1), HEAP_ALIGN);
    assert_true(heap_must_grow(&area, 1));
    assert_int_equal(heap_take(&area, 1), 2 * HEAP_ALIGN);
    assert_int_equal(heap_take(&area, 1), -1);
    heap_destroy(&area);
}

static void test_more_memory_than_there_is_is_refused(void **state)
{
    (void)state;
    set_header *const sets[] = {NULL, &(set_header){0}};
    for (int i = 0; i < 2; ++i) {
        pypto_status status = promise_make(sets[i], INT64_MAX, "everything");
        assert_int_equal(status.kind, PYPTO_ERROR_MEMORY);
        assert_non_null(strstr(status.diagnostics->message, "everything"));
        pypto_status_clear(&status);
        status = promise_make(sets[i], 4096, "a page");
        assert_int_equal(status.kind, PYPTO_ERROR_NONE);
    }
    assert_int_equal(sets[1]->promised, 0);
}

/* Two that together ask for more than there is: whoever asks second is refused, until the first one's is in use or given
 * up. */
static void test_what_is_promised_is_nobody_elses(void **state)
{
    (void)state;
    set_header set = {0};
    const int64_t part = os_memory_left(INT64_MAX) / 8 * 5;
    assert_true(promise_try(&set, part));
    assert_int_equal(set.promised, part);
    pypto_status status = promise_make(&set, part, "a tile");
    assert_int_equal(status.kind, PYPTO_ERROR_MEMORY);
    assert_non_null(strstr(status.diagnostics->note, "about to be used by others"));
    pypto_status_clear(&status);
    assert_int_equal(set.promised, part);
    promise_keep(&set, part, part);
    assert_int_equal(set.promised, 0);
    assert_true(promise_try(&set, part));
    promise_keep(&set, part, part);
}

/* What is little is counted; where the machine has promised all that it has, much of it is refused. */
static void test_many_small_amounts(void **state)
{
    (void)state;
    set_header set = {0};
    for (int i = 0; i < 3; ++i)
        assert_true(promise_try(&set, 1 << 20));
    assert_int_equal(set.unasked, 3 << 20);
    assert_true(promise_try(&set, 1 << 20));
    assert_int_equal(set.unasked, 0);
    set.promised = INT64_MAX / 2;
    for (int i = 0; i < 3; ++i)
        assert_true(promise_try(&set, 1 << 20));
    assert_false(promise_try(&set, 1 << 20));
    assert_true(promise_try(&set, 1 << 20)); /* as few as before */
    promise_keep(&set, 1 << 20, 1 << 20);
    assert_int_equal(set.promised, INT64_MAX / 2);
}

static void test_promised_memory_is_touched(void **state)
{
    (void)state;
    set_header set = {0};
    const int64_t bytes = 70 << 20;
    char *memory =
        mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    memory[1] = 7;
    /* The call is to end: nothing is touched, nothing stays promised. */
    set.poison[call_slot(3)] = 3;
    set.promised = bytes;
    promise_touch(&set, 3, memory, bytes);
    assert_int_equal(set.promised, 0);
    unsigned char there;
    assert_int_equal(mincore(memory + (bytes - 4096), 4096, &there), 0);
    assert_int_equal(there & 1, 0);
    set.promised = bytes;
    promise_touch(&set, 4, memory, bytes);
    assert_int_equal(set.promised, 0);
    assert_int_equal(mincore(memory + (bytes - 4096), 4096, &there), 0);
    assert_int_equal(there & 1, 1);
    assert_int_equal(memory[1], 7);
    munmap(memory, (size_t)bytes);
}

static void test_a_segment_is_zero_shared_and_unlinked(void **state)
{
    (void)state;
    segment host, rank;
    pypto_status status = transport_shm.create(4, 0, &host);
    assert_int_equal(status.kind, PYPTO_ERROR_NONE);
    struct stat info;
    assert_int_equal(fstat(host.fd, &info), 0);
    assert_int_equal(info.st_nlink, 0);
    assert_true(info.st_blocks < 4096); /* sparse */
    int64_t reserved = 0;
    status = heap_reserve(&host, host.set->heap_offset + host.set->stride * 3, &reserved, 8192,
                          "a test");
    assert_int_equal(status.kind, PYPTO_ERROR_NONE);
    assert_int_equal(reserved, 8192);
    int fd = host.fd;
    host.fd = -1;
    status = transport_shm.attach(fd, NULL, &rank);
    assert_int_equal(status.kind, PYPTO_ERROR_NONE);
    assert_int_equal(segment_slice(&rank, 3)[5000], 0);
    segment_slice(&host, 3)[5000] = 77;
    assert_int_equal(segment_slice(&rank, 3)[5000], 77);
    transport_shm.detach(&rank);
    transport_shm.detach(&host);
    assert_null(host.base);
}

static int64_t file_blocks(const segment *s)
{
    struct stat info;
    assert_int_equal(fstat(s->fd, &info), 0);
    return info.st_blocks;
}

static void test_trimming_gives_memory_back_and_zeroes(void **state)
{
    (void)state;
    segment s;
    pypto_status status = transport_shm.create(1, 0, &s);
    assert_int_equal(status.kind, PYPTO_ERROR_NONE);
    const int64_t area_offset = s.set->staging_offset;
    heap_area area;
    heap_init(&area, s.set->staging_bytes, HEAP_ALIGN);
    int64_t reserved = 0;
    const int64_t small = heap_take(&area, 8192), large = heap_take(&area, 8 << 20);
    status = heap_reserve(&s, area_offset, &reserved, large + (8 << 20), "a test");
    assert_int_equal(status.kind, PYPTO_ERROR_NONE);
    const int64_t full = file_blocks(&s);
    heap_trim(&s, area_offset, &area, &reserved, 0); /* nothing is free */
    assert_int_equal(file_blocks(&s), full);
    s.base[area_offset + large + 100] = 7;
    heap_give(&area, large, 8 << 20);
    heap_trim(&s, area_offset, &area, &reserved, 65536);
    assert_true(file_blocks(&s) < full - (7 << 20) / 512);
    assert_int_equal(area.top, 65536);
    assert_int_equal(reserved, 65536);
    heap_give(&area, small, 8192);
    assert_int_equal(area.free_count, 1);
    assert_int_equal(area.free_[0].bytes, area.top);
    heap_destroy(&area);
    transport_shm.detach(&s);
}

static void test_many_blocks_given_back_leave_as_many_holes(void **state)
{
    (void)state;
    heap_area area;
    heap_init(&area, 1 << 20, 64);
    int64_t blocks[200];
    for (int i = 0; i < 200; ++i)
        blocks[i] = heap_take(&area, 64);
    for (int i = 0; i < 200; i += 2)
        heap_give(&area, blocks[i], 64);
    assert_int_equal(area.free_count, 100);
    assert_true(area.free_capacity >= 100);
    for (int i = 0; i < 200; i += 2)
        assert_int_equal(heap_take(&area, 64), blocks[i]);
    for (int i = 199; i >= 0; --i)
        heap_give(&area, blocks[i], 64);
    assert_int_equal(area.free_count, 1);
    assert_int_equal(area.taken, 0);
    heap_destroy(&area);
}

static void test_poison_only_grows(void **state)
{
    (void)state;
    segment s;
    pypto_status status = transport_threads.create(2, 0, &s);
    assert_int_equal(status.kind, PYPTO_ERROR_NONE);
    segment_poison(&s, 5);
    segment_poison(&s, 3);
    segment_poison(&s, 2);
    assert_true(segment_poisoned(&s, 5, memory_order_seq_cst));
    assert_false(segment_poisoned(&s, 4, memory_order_seq_cst)); /* in flight beside it */
    assert_false(segment_poisoned(&s, 7, memory_order_seq_cst));
    transport_threads.detach(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heap_of_many_pieces),
        cmocka_unit_test(test_areas_follow_each_other_and_fit),
        cmocka_unit_test(test_plan_refuses_nonsense),
        cmocka_unit_test(test_blocks_never_overlap),
        cmocka_unit_test(test_take_fails_where_it_must),
        cmocka_unit_test(test_more_memory_than_there_is_is_refused),
        cmocka_unit_test(test_what_is_promised_is_nobody_elses),
        cmocka_unit_test(test_many_small_amounts),
        cmocka_unit_test(test_promised_memory_is_touched),
        cmocka_unit_test(test_a_segment_is_zero_shared_and_unlinked),
        cmocka_unit_test(test_trimming_gives_memory_back_and_zeroes),
        cmocka_unit_test(test_many_blocks_given_back_leave_as_many_holes),
        cmocka_unit_test(test_poison_only_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
