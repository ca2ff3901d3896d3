/* SPDX-License-Identifier: MIT */
#include "store/memory.h"

#include <stdio.h>
#include <sys/mman.h>

/* jemalloc's interface, if the process has it. We must not depend on the library: it cannot be loaded late.
 */
extern void *mallocx(size_t size, int flags) __attribute__((weak, visibility("default")));
extern void dallocx(void *p, int flags) __attribute__((weak, visibility("default")));
extern int mallctl(const char *name, void *old, size_t *old_len, void *new, size_t new_len)
    __attribute__((weak, visibility("default")));

/* As its MALLOCX_LG_ALIGN, MALLOCX_TCACHE_NONE and MALLOCX_ARENA. */
static int block_flags(const struct memory *memory)
{
        return BLOCK_SHIFT | 1 << 8 | (int)(memory->arena + 1) << 20;
}

static bool make_arena(struct memory *memory)
{
        if (!mallocx || !dallocx || !mallctl)
                return false;
        size_t len = sizeof memory->arena;
        if (mallctl("arenas.create", &memory->arena, &len, NULL, 0) != 0)
                return false;
        /* What we free is to be gone at once, so that our accounts are true. */
        static const char *const decays[] = {"dirty_decay_ms", "muzzy_decay_ms"};
        for (size_t i = 0; i < 2; i++) {
                char name[64];
                snprintf(name, sizeof name, "arena.%u.%s", memory->arena, decays[i]);
                ssize_t none = 0;
                mallctl(name, NULL, NULL, &none, sizeof none);
        }
        return true;
}

void memory_init(struct memory *memory, bool try_jemalloc, bool huge)
{
        *memory = (struct memory){.huge = huge};
        memory->jemalloc = try_jemalloc && make_arena(memory);
}

void memory_fini(struct memory *memory)
{
        if (!memory->jemalloc)
                return;
        char name[64];
        snprintf(name, sizeof name, "arena.%u.destroy", memory->arena);
        mallctl(name, NULL, NULL, NULL, 0);
}

static void *map_aligned(size_t len, int flags)
{
        flags |= MAP_PRIVATE | MAP_ANONYMOUS;
        uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (p == MAP_FAILED)
                return NULL;
        if (((uintptr_t)p & (BLOCK_SIZE - 1)) == 0)
                return p;
        munmap(p, len);
        p = mmap(NULL, len + BLOCK_SIZE, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (p == MAP_FAILED)
                return NULL;
        size_t before = -(uintptr_t)p & (BLOCK_SIZE - 1);
        if (before)
                munmap(p, before);
        if (before != BLOCK_SIZE)
                munmap(p + before + len, BLOCK_SIZE - before);
        return p + before;
}

/* Only advice: a system without huge pages refuses it, and nothing changes. */
static void *advise(void *p, size_t len, bool huge)
{
        if (p)
                madvise(p, len, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
        return p;
}

void *memory_block(struct memory *memory, bool huge)
{
        void *p = memory->jemalloc ? mallocx(BLOCK_SIZE, block_flags(memory)) : map_aligned(BLOCK_SIZE, 0);
        return advise(p, BLOCK_SIZE, huge);
}

void memory_block_free(struct memory *memory, void *block)
{
        if (memory->jemalloc)
                dallocx(block, block_flags(memory));
        else
                munmap(block, BLOCK_SIZE);
}

void *memory_reserve(size_t len)
{
        return advise(map_aligned(len, MAP_NORESERVE), len, false);
}

void memory_make_huge(void *block)
{
        advise(block, BLOCK_SIZE, true);
}

void memory_make_small(void *range, size_t len)
{
        advise(range, len, false);
}

void memory_unreserve(void *range, size_t len)
{
        munmap(range, len);
}

void memory_discard(void *from, size_t len)
{
        madvise(from, len, MADV_DONTNEED);
}
