/* SPDX-License-Identifier: MIT
 *
 * The allocator of the ladder's layouts: the C library's (or jemalloc's, when that is preloaded), with
 * everything counted that an entry holds.
 */
#ifndef LADDER_HEAP_H
#define LADDER_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_count {
        uint64_t blocks;      /* that are allocated now */
        uint64_t bytes;       /* in them, as asked for */
        uint64_t class_bytes; /* the same, each block as large as jemalloc makes it; 0 without jemalloc */
        uint64_t calls;       /* of heap_get() and heap_grow() that asked for memory, so far */
};

extern struct heap_count heap_count;

/* Is jemalloc's nallocx() there to ask? */
bool heap_knows_classes(void);

/* These end the program when there is no memory. NULL for no bytes. */
void *heap_get(size_t size);
void *heap_copy(const void *from, size_t size);
void *heap_grow(void *block, size_t old_size, size_t new_size);

/* `size`: as it was asked for. */
void heap_put(void *block, size_t size);

#endif
