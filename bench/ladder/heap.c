/* SPDX-License-Identifier: MIT */
#include "ladder/heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern size_t nallocx(size_t size, int flags) __attribute__((weak, visibility("default")));

struct heap_count heap_count;

bool heap_knows_classes(void)
{
        return nallocx != NULL;
}

static void count(int64_t blocks, size_t size)
{
        heap_count.blocks += (uint64_t)blocks;
        heap_count.bytes += (uint64_t)blocks * size;
        if (nallocx)
                heap_count.class_bytes += (uint64_t)blocks * nallocx(size, 0);
}

static void *checked(void *block)
{
        if (!block) {
                fputs("ladder: no memory\n", stderr);
                exit(1);
        }
        heap_count.calls++;
        return block;
}

void *heap_get(size_t size)
{
        if (!size)
                return NULL;
        count(1, size);
        return checked(malloc(size));
}

void *heap_copy(const void *from, size_t size)
{
        return size ? memcpy(heap_get(size), from, size) : NULL;
}

void *heap_grow(void *block, size_t old_size, size_t new_size)
{
        if (old_size)
                count(-1, old_size);
        count(1, new_size);
        return checked(realloc(block, new_size));
}

void heap_put(void *block, size_t size)
{
        if (size)
                count(-1, size);
        free(block);
}
