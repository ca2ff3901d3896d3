/* SPDX-License-Identifier: MIT
 * Where a store's memory comes from: blocks for segments from a jemalloc arena of our own when the process
 * has jemalloc, else from mmap; one reserved range for the index. Pages count only once they are touched. */
#ifndef STORE_MEMORY_H
#define STORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        BLOCK_SHIFT = 21, /* a huge page, and aligned like one */
        BLOCK_SIZE = 1 << BLOCK_SHIFT,
        PAGE = 4096,
};

struct memory {
        bool jemalloc;
        bool huge; /* ask for huge pages */
        unsigned arena;
};

void memory_init(struct memory *memory, bool try_jemalloc, bool huge);
void memory_fini(struct memory *memory);

static inline size_t memory_pages(size_t bytes)
{
        return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

/* A zeroed or dirty block, or NULL. */
void *memory_block(struct memory *memory, bool huge);
void memory_block_free(struct memory *memory, void *block);

/* A zeroed range aligned to a block, in small pages, which costs nothing until it is touched; or NULL. */
void *memory_reserve(size_t len);
void memory_unreserve(void *range, size_t len);

/* Advice for an untouched block of such a range: a huge page on first touch. And back to small ones for all.
 */
void memory_make_huge(void *block);
void memory_make_small(void *range, size_t len);

/* Give these whole pages back to the system. Their bytes read as zero until they are written. */
void memory_discard(void *from, size_t len);

#endif
