/* SPDX-License-Identifier: MIT
 * Memory out of a pool that is kept: a target makes a cache for each input, and that must not cost system
 * calls and page faults. The store's (store/memory.h), and large pieces that the library takes for the length
 * of a call: its aligned_alloc() and free() are renamed to these (see meson.build). */
#include <sanitizer/asan_interface.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "store/memory.h"

#undef aligned_alloc
#undef free
#undef memcmp
void *aligned_alloc(size_t alignment, size_t size);
void free(void *p);

enum {
        BLOCKS = 2,
        RANGES = 4, /* at a time: the index, the log's two tables, and one to spare */
        RANGE_SIZE = 256 << 10,
        PIECES = 6,
        PIECE_SIZE = 512 << 10,
        REDZONE = 1024,
        PIECE_FROM = 32 << 10, /* smaller ones are for the ordinary allocator */
};

static _Alignas(BLOCK_SIZE) uint8_t blocks[BLOCKS][BLOCK_SIZE];
static bool block_taken[BLOCKS];
static _Alignas(PAGE) uint8_t ranges[RANGES][RANGE_SIZE];
static size_t range_taken[RANGES];
static _Alignas(PAGE) uint8_t pieces[PIECES][PIECE_SIZE];
static size_t piece_taken[PIECES]; /* its size */

/* Poisoned: bytes behind a piece that is taken, the first ones of a piece that is not. All of it would be
 * right, and slow. */
void *pool_alloc(size_t alignment, size_t size)
{
        for (unsigned i = 0; i < PIECES && size >= PIECE_FROM && size <= PIECE_SIZE - REDZONE; i++)
                if (piece_taken[i] == 0) {
                        MUST(alignment <= PAGE);
                        piece_taken[i] = size;
                        ASAN_UNPOISON_MEMORY_REGION(pieces[i], REDZONE);
                        ASAN_POISON_MEMORY_REGION(pieces[i] + size, REDZONE);
                        return pieces[i];
                }
        return aligned_alloc(alignment, size);
}

void pool_free(void *p)
{
        if ((uint8_t *)p < pieces[0] || (uint8_t *)p >= (uint8_t *)(pieces + PIECES)) {
                free(p);
                return;
        }
        unsigned i = (unsigned)((uint8_t(*)[PIECE_SIZE])p - pieces);
        MUST(p == pieces[i] && piece_taken[i] > 0);
        ASAN_UNPOISON_MEMORY_REGION(pieces[i] + piece_taken[i], REDZONE);
        ASAN_POISON_MEMORY_REGION(pieces[i], REDZONE);
        piece_taken[i] = 0;
}

int pool_memcmp(const void *a, const void *b, size_t n)
{
        const uint8_t *p = a, *q = b;
        for (; n >= 8; n -= 8, p += 8, q += 8) {
                uint64_t x, y;
                memcpy(&x, p, 8);
                memcpy(&y, q, 8);
                if (x != y)
                        break;
        }
        for (; n > 0; n--, p++, q++)
                if (*p != *q)
                        return *p - *q;
        return 0;
}

void memory_init(struct memory *memory, bool try_jemalloc, bool huge)
{
        (void)try_jemalloc;
        *memory = (struct memory){.huge = huge};
}

void memory_fini(struct memory *memory)
{
        (void)memory;
}

void *memory_block(struct memory *memory, bool huge)
{
        (void)memory;
        (void)huge;
        for (unsigned i = 0; i < BLOCKS; i++)
                if (!block_taken[i]) {
                        block_taken[i] = true;
                        return blocks[i];
                }
        return NULL;
}

void memory_block_free(struct memory *memory, void *block)
{
        (void)memory;
        block_taken[(uint8_t(*)[BLOCK_SIZE])block - blocks] = false;
}

void *memory_reserve(size_t len)
{
        MUST(len <= RANGE_SIZE);
        for (unsigned i = 0; i < RANGES; i++)
                if (range_taken[i] == 0) {
                        range_taken[i] = len;
                        return ranges[i];
                }
        MUST(false);
        return NULL;
}

void memory_unreserve(void *range, size_t len)
{
        memset(range, 0, len);
        range_taken[(uint8_t(*)[RANGE_SIZE])range - ranges] = 0;
}

void memory_make_huge(void *block)
{
        (void)block;
}

void memory_make_small(void *range, size_t len)
{
        (void)range;
        (void)len;
}

void memory_discard(void *from, size_t len)
{
        memset(from, 0, len);
}
