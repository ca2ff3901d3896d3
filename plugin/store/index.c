/* SPDX-License-Identifier: MIT */
#include "store/index.h"

#include <errno.h>

#include "store/fence.h"
#include "store/memory.h"

enum {
        /* So much of the index is in small pages, and it grows by them. Then it grows by huge ones: what is
         * not used yet of the last one is then little beside the entries. Small pages cannot be made huge
         * later without making readers wait. */
        SMALL = BLOCK_SIZE / 2,
        /* Two suffice for large tables; of small ones (20,000 entries) every hundredth or so would lose one.
         */
        MOVES = 3,
        GROUP = 4, /* residents looked at together */
};
_Static_assert(SLOTS % GROUP == 0, "whole groups");

static size_t bytes_for(uint64_t size)
{
        return memory_pages(size * sizeof(struct bucket));
}

/* Where the buckets begin in the reserved range, so that what comes after the small pages is on the boundary
 * of a huge one. */
static size_t before(const struct index *index)
{
        return index->huge ? BLOCK_SIZE - SMALL : 0;
}

static uint8_t *range(const struct index *index)
{
        return (uint8_t *)index->buckets - before(index);
}

static size_t range_len(const struct index *index)
{
        return before(index) + index->limit * sizeof(struct bucket);
}

int index_init(struct index *index, uint64_t limit, bool huge)
{
        *index = (struct index){.limit = limit, .huge = huge, .touched = bytes_for(BUCKETS_MIN)};
        uint8_t *p = memory_reserve(range_len(index));
        if (!p)
                return -ENOMEM;
        index->buckets = (struct bucket *)(void *)(p + before(index));
        atomic_init(&index->size, BUCKETS_MIN);
        return 0;
}

void index_fini(struct index *index)
{
        memory_unreserve(range(index), range_len(index));
}

size_t index_split_cost(const struct index *index)
{
        return bytes_for(index_size(index) + 1) > index->touched ? PAGE : 0;
}

static void touch_more(struct index *index, uint64_t budget)
{
        if (index->huge && index->touched % BLOCK_SIZE == SMALL && budget >= BLOCK_SIZE &&
            index->touched + BLOCK_SIZE <= index->limit * sizeof(struct bucket)) {
                memory_make_huge((uint8_t *)index->buckets + index->touched);
                index->touched += BLOCK_SIZE;
        } else {
                index->touched += PAGE;
        }
}

static void moved(struct index *index)
{
        uint64_t moves = atomic_load_explicit(&index->moves, memory_order_relaxed);
        atomic_store_explicit(&index->moves, moves + 1, memory_order_release);
}

void index_split(struct index *index, uint64_t budget)
{
        if (index_split_cost(index) > 0)
                touch_more(index, budget);
        uint64_t size = index_size(index);
        uint64_t from = size - (UINT64_C(1) << (63 - __builtin_clzll(size)));
        struct bucket *old = &index->buckets[from], *new = &index->buckets[size];
        bool leaves[SLOTS];
        for (unsigned i = 0; i < SLOTS; i++) {
                uint64_t slot = slot_get(&old->slot[i]);
                uint32_t hash = slot_hash(slot);
                leaves[i] = !slot_free(slot) && index_address(hash, size + 1) != from &&
                            index_address(index_mix(hash), size + 1) != from;
                slot_set(&new->slot[i], leaves[i] ? slot : 0);
        }
        atomic_store_explicit(&index->size, size + 1, memory_order_release);
        moved(index);
        for (unsigned i = 0; i < SLOTS; i++)
                if (leaves[i])
                        slot_set(&old->slot[i], 0);
}

slot_t *index_slot_of(struct index *index, uint32_t hash, uint32_t location)
{
        const uint64_t size = index_size(index);
        const uint32_t choices[2] = {hash, index_mix(hash)};
        for (unsigned c = 0; c < 2; c++) {
                struct bucket *bucket = &index->buckets[index_address(choices[c], size)];
                for (unsigned i = 0; i < SLOTS; i++) {
                        uint64_t slot = slot_get(&bucket->slot[i]);
                        if (slot_hash(slot) == hash && slot_location(slot) == location)
                                return &bucket->slot[i];
                }
        }
        return NULL;
}

static inline unsigned free_bit(const struct bucket *bucket, unsigned i)
{
        return (unsigned)slot_free(slot_get(&bucket->slot[i])) << i;
}

/* Which slots are free, a bit each. No branch and no loop: nobody could guess. */
static inline unsigned free_slots(const struct bucket *bucket)
{
        _Static_assert(SLOTS == 8, "all of them");
        return free_bit(bucket, 0) | free_bit(bucket, 1) | free_bit(bucket, 2) | free_bit(bucket, 3) |
               free_bit(bucket, 4) | free_bit(bucket, 5) | free_bit(bucket, 6) | free_bit(bucket, 7);
}

static inline slot_t *last_of(struct bucket *bucket, unsigned mask)
{
        return &bucket->slot[31 - __builtin_clz(mask)];
}

static slot_t *free_slot(struct bucket *bucket)
{
        unsigned mask = free_slots(bucket);
        return mask ? last_of(bucket, mask) : NULL;
}

void index_walk_begin(struct index *index, struct walker *walker)
{
        atomic_init(&walker->at, 0);
        walker->next = index->walkers;
        index->walkers = walker;
}

void index_walk_end(struct index *index, struct walker *walker)
{
        struct walker **p = &index->walkers;
        while (*p != walker)
                p = &(*p)->next;
        *p = walker->next;
}

void index_walk_to(struct walker *walker, uint64_t bucket)
{
        atomic_store_explicit(&walker->at, bucket, memory_order_relaxed);
        full_fence();
}

/* Could a slot that moves now from one bucket to another escape a walker? */
static bool may_escape(const struct index *index, uint64_t from, uint64_t to)
{
        if (to > from)
                return false;
        for (const struct walker *w = index->walkers; w; w = w->next) {
                uint64_t at = atomic_load_explicit(&w->at, memory_order_relaxed);
                if (to < at + WALK_BUCKETS && from >= at)
                        return true;
        }
        return false;
}

/* Copy a slot to a free one of another bucket, so that it may be overwritten where it is. */
static bool move_slot(struct index *index, uint64_t from, slot_t *slot, uint64_t to, slot_t *free)
{
        slot_set(free, slot_get(slot));
        if (index->walkers) {
                /* A walker that has come by meanwhile has either seen the copy, or is seen now. */
                full_fence();
                if (may_escape(index, from, to)) {
                        slot_set(free, 0);
                        return false;
                }
        }
        moved(index);
        return true;
}

/* The buckets from which residents are about to move, the last one first. */
struct path {
        uint64_t bucket;
        const struct path *before;
};

static bool leads_through(const struct path *path, uint64_t bucket)
{
        for (; path; path = path->before)
                if (path->bucket == bucket)
                        return true;
        return false;
}

/* Make the bucket at the end of the path give up a slot by moving one resident, after at most depth - 1 moves
 * of others. Where the residents could go is fetched side by side; mostly one of the first few has room. No
 * move leads back to a bucket of the path: that makes no room that fewer moves would not have made, and the
 * residents there would not be those any more for whom `other` was found. */
static slot_t *make_vacancy(struct index *index, const struct path *path, unsigned depth)
{
        const uint64_t from = path->bucket;
        const uint64_t size = index_size(index);
        for (unsigned first = 0; first < SLOTS; first += GROUP) {
                slot_t *group = &index->buckets[from].slot[first];
                uint64_t other[GROUP];
                for (unsigned i = 0; i < GROUP; i++) {
                        uint32_t hash = slot_hash(slot_get(&group[i]));
                        uint64_t one = index_address(hash, size);
                        other[i] = one != from ? one : index_address(index_mix(hash), size);
                        __builtin_prefetch(&index->buckets[other[i]]);
                }
                for (unsigned i = 0; i < GROUP; i++) {
                        uint64_t to = other[i];
                        if (leads_through(path, to) || may_escape(index, from, to))
                                continue;
                        const struct path on = {to, path};
                        slot_t *empty =
                            depth == 1 ? free_slot(&index->buckets[to]) : make_vacancy(index, &on, depth - 1);
                        if (empty && move_slot(index, from, &group[i], to, empty))
                                return &group[i];
                }
        }
        return NULL;
}

slot_t *index_vacancy(struct index *index, uint32_t hash)
{
        const uint64_t size = index_size(index);
        const uint64_t at[2] = {index_address(hash, size), index_address(index_mix(hash), size)};
        const unsigned mask[2] = {free_slots(&index->buckets[at[0]]), free_slots(&index->buckets[at[1]])};
        if (mask[0] | mask[1]) {
                unsigned emptier = __builtin_popcount(mask[1]) > __builtin_popcount(mask[0]);
                return last_of(&index->buckets[at[emptier]], mask[emptier]);
        }
        for (unsigned depth = 1; depth <= MOVES; depth++)
                for (unsigned c = 0; c < 2; c++) {
                        slot_t *slot = make_vacancy(index, &(const struct path){at[c], NULL}, depth);
                        if (slot)
                                return slot;
                }
        return NULL;
}

void index_reset(struct index *index)
{
        uint64_t size = index_size(index);
        for (uint64_t b = 0; b < size; b++)
                for (unsigned i = 0; i < SLOTS; i++)
                        slot_set(&index->buckets[b].slot[i], 0);
        atomic_store_explicit(&index->size, BUCKETS_MIN, memory_order_release);
        moved(index);
        /* A reader that still has the old size finds zeroes. */
        size_t least = bytes_for(BUCKETS_MIN);
        memory_discard((uint8_t *)index->buckets + least, index->touched - least);
        memory_make_small(range(index), range_len(index));
        index->touched = least;
}
