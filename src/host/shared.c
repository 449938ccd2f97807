/* Memory that a program asks for so that workers see it in place: pypto_shared_alloc().
 *
 * Each block is a memory file of its own, which workers attach like any other file that the caller has mapped
 * (attach.c). The book of blocks only saves asking the system about them at each call. A forked child has the book,
 * the descriptors and the mappings, too: what it frees goes from its own address space. */
#include "base/alloc.h"
#include "base/os.h"
#include "host/host.h"
#include "transport/memory_file.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t book_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static memory_file *book; /* sorted by address */
static int64_t book_count;
static int64_t book_capacity;

static void lock_book(void)
{
    pthread_mutex_lock(&book_lock);
}

static void unlock_book(void)
{
    pthread_mutex_unlock(&book_lock);
}

static void install_fork_handlers(void)
{
    pthread_atfork(lock_book, unlock_book, unlock_book);
}

/* The first block that ends behind the address. */
static int64_t place_in_book(int64_t address)
{
    int64_t from = 0, to = book_count;
    while (from < to) {
        const int64_t middle = from + (to - from) / 2;
        if (book[middle].high <= address)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

bool shared_find(int64_t low, int64_t high, os_mapping *mapping, int *fd)
{
    lock_book();
    const int64_t i = place_in_book(low);
    const bool found = i < book_count && book[i].low <= low && high <= book[i].high;
    if (found) {
        *mapping = (os_mapping){.low = book[i].low,
                                .high = book[i].high,
                                .device = book[i].device,
                                .inode = book[i].inode,
                                .shared = true,
                                .writable = true};
        *fd = book[i].fd;
    }
    unlock_book();
    return found;
}

static bool enter(const memory_file *block)
{
    lock_book();
    const bool room = alloc_grow(book, book_capacity, book_count + 1);
    if (room) {
        const int64_t i = place_in_book(block->low);
        memmove(&book[i + 1], &book[i], (size_t)(book_count - i) * sizeof *book);
        book[i] = *block;
        ++book_count;
    }
    unlock_book();
    return room;
}

pypto_status pypto_shared_alloc(int64_t bytes, void **address)
{
    pthread_once(&fork_once, install_fork_handlers);
    *address = NULL;
    if (bytes < 0)
        return diag_status(DIAG_NO_SPACE, NULL, "a shared tensor of %lld bytes cannot be made",
                           (long long)bytes);
    memory_file block;
    pypto_status status = memory_file_create(bytes > 0 ? bytes : 1, &block);
    if (!status_ok(status))
        return status;
    if (!enter(&block)) {
        memory_file_destroy(&block);
        return diag_no_memory();
    }
    *address = (void *)(intptr_t)block.low;
    return STATUS_OK;
}

void pypto_shared_free(void *address)
{
    const int64_t low = (int64_t)(intptr_t)address;
    memory_file block = {.fd = -1};
    lock_book();
    const int64_t i = place_in_book(low);
    if (address != NULL && i < book_count && book[i].low == low) {
        block = book[i];
        --book_count;
        memmove(&book[i], &book[i + 1], (size_t)(book_count - i) * sizeof *book);
    }
    unlock_book();
    if (block.fd < 0)
        return;
    memory_file_destroy(&block);
    workers_forget_file(block.device, block.inode);
}
