/* The dispatch queue: records arrive whole and in order across block ends, blocks are recycled and
 * never while the reader may still need them. */
#include "runtime/queue.h"

#include "base/diag.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct fixture {
    segment seg;
    queue_memory memory;
    queue_writer writer;
} fixture;

static void open_queue(fixture *f)
{
    pypto_status status = transport_threads.create(1, 0, &f->seg);
    assert_int_equal(status.kind, PYPTO_ERROR_NONE);
    f->memory = (queue_memory){.seg = &f->seg};
    heap_init(&f->memory.area, f->seg.set->control_bytes, HEAP_ALIGN);
    status = queue_writer_init(&f->writer, &f->memory, segment_rank(&f->seg, 0));
    assert_int_equal(status.kind, PYPTO_ERROR_NONE);
}

static void close_queue(fixture *f)
{
    queue_writer_destroy(&f->writer);
    heap_destroy(&f->memory.area);
    transport_threads.detach(&f->seg);
}

/* Record n has n % 5 dependencies and n % 37 arguments, all marked with n. */
static void post(fixture *f, int64_t n)
{
    queue_record *record;
    pypto_status status =
        queue_reserve(&f->writer, RECORD_DISPATCH, 1, (int32_t)(n % 5), (int32_t)(n % 37), &record);
    assert_int_equal(status.kind, PYPTO_ERROR_NONE);
    record->function = (int32_t)n;
    for (int32_t i = 0; i < record->dep_count; ++i)
        record_deps(record)[i] = (queue_dep){.device = i, .sequence = (uint64_t)n};
    for (int32_t i = 0; i < record->item_count; ++i)
        record_args(record)[i] = (queue_arg){.integer = n * 100 + i};
    assert_int_equal(queue_publish(&f->writer, record), n);
}

static bool record_is(queue_record *record, int64_t n)
{
    bool right = record->function == (int32_t)n && record->dep_count == n % 5 &&
                 record->item_count == n % 37;
    for (int32_t i = 0; right && i < record->dep_count; ++i)
        right = record_deps(record)[i].sequence == (uint64_t)n;
    for (int32_t i = 0; right && i < record->item_count; ++i)
        right = record_args(record)[i].integer == n * 100 + i;
    return right;
}

static void test_posting_first_and_reading_later(void **state)
{
    (void)state;
    fixture f;
    open_queue(&f);
    queue_reader reader;
    queue_reader_init(&reader, &f.seg, segment_rank(&f.seg, 0));
    assert_null(queue_peek(&reader));
    for (int64_t n = 1; n <= 3000; ++n)
        post(&f, n);
    for (int64_t n = 1; n <= 3000; ++n) {
        queue_record *record = queue_peek(&reader);
        assert_non_null(record);
        assert_ptr_equal(record, queue_peek(&reader));
        assert_true(record_is(record, n));
        queue_pop(&reader, record);
    }
    assert_null(queue_peek(&reader));
    close_queue(&f);
}

#define TURNS 20000

static void *read_all(void *argument)
{
    fixture *f = argument;
    rank_header *header = segment_rank(&f->seg, 0);
    queue_reader reader;
    queue_reader_init(&reader, &f->seg, header);
    int64_t wrong = 0;
    for (int64_t n = 1; n <= TURNS; ++n) {
        queue_record *record;
        while ((record = queue_peek(&reader)) == NULL)
            ;
        wrong += !record_is(record, n);
        queue_pop(&reader, record);
        atomic_store_explicit(&header->completed, (uint64_t)n, memory_order_seq_cst);
    }
    return (void *)(intptr_t)wrong;
}

static void test_a_reader_that_keeps_up_lets_blocks_be_reused(void **state)
{
    (void)state;
    fixture f;
    open_queue(&f);
    rank_header *header = segment_rank(&f.seg, 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_all, &f), 0);
    for (int64_t n = 1; n <= TURNS; ++n) {
        post(&f, n);
        while (atomic_load_explicit(&header->completed, memory_order_acquire) + 50 < (uint64_t)n)
            ;
    }
    void *wrong;
    pthread_join(thread, &wrong);
    assert_int_equal((intptr_t)wrong, 0);
    /* 20,000 records of 3.4 KiB on average went through a handful of blocks. */
    assert_in_range(f.memory.area.top, QUEUE_BLOCK_BYTES, 16 * QUEUE_BLOCK_BYTES);
    close_queue(&f);
}

static void test_a_record_larger_than_a_block_gets_one_of_its_own(void **state)
{
    (void)state;
    fixture f;
    open_queue(&f);
    queue_reader reader;
    queue_reader_init(&reader, &f.seg, segment_rank(&f.seg, 0));
    for (int i = 0; i < 3; ++i) {
        queue_record *record;
        pypto_status status = queue_reserve(&f.writer, RECORD_DISPATCH, 1, 0, 5000, &record);
        assert_int_equal(status.kind, PYPTO_ERROR_NONE);
        record_args(record)[4999].integer = i;
        queue_publish(&f.writer, record);
        queue_record *got = queue_peek(&reader);
        assert_int_equal(record_args(got)[4999].integer, i);
        queue_pop(&reader, got);
        atomic_store(&segment_rank(&f.seg, 0)->completed, (uint64_t)i + 1);
    }
    close_queue(&f);
}

static void test_a_flood_is_given_back(void **state)
{
    (void)state;
    fixture f;
    open_queue(&f);
    queue_reader reader;
    rank_header *header = segment_rank(&f.seg, 0);
    queue_reader_init(&reader, &f.seg, header);
    int64_t n = 0;
    for (int round = 0; round < 3; ++round) {
        const int64_t flood = round == 0 ? 10000 : 1;
        for (int64_t i = 0; i < flood; ++i)
            post(&f, ++n);
        for (queue_record *record; (record = queue_peek(&reader)) != NULL;) {
            assert_true(record_is(record, (int64_t)reader.taken + 1));
            queue_pop(&reader, record);
        }
        if (round == 0)
            assert_true(f.memory.area.top > (int64_t)16 << 20);
        atomic_store(&header->completed, (uint64_t)n);
        queue_shrink(&f.memory, &f.writer, 1);
    }
    assert_true(f.memory.area.top <= (int64_t)8 << 20);
    close_queue(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_posting_first_and_reading_later),
        cmocka_unit_test(test_a_reader_that_keeps_up_lets_blocks_be_reused),
        cmocka_unit_test(test_a_flood_is_given_back),
        cmocka_unit_test(test_a_record_larger_than_a_block_gets_one_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
