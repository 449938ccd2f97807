/* A memory file of its own, mapped here, for others to map: what pypto_shared_alloc() gives (host/shared.c). */
#ifndef TRANSPORT_MEMORY_FILE_H
#define TRANSPORT_MEMORY_FILE_H

#include <pypto/status.h>

#include <stdint.h>

typedef struct memory_file {
    int64_t low; /* its addresses */
    int64_t high;
    int fd;          /* >= 3, close-on-exec; -1: none */
    uint64_t device; /* as fstat() says */
    uint64_t inode;
} memory_file;

/* Zeroed, with pages behind all of it, so that a shortage is an error now and no SIGBUS later; its size is final. */
PYPTO_NODISCARD pypto_status memory_file_create(int64_t bytes, memory_file *file);
void memory_file_destroy(memory_file *file);

#endif
