/* SPDX-License-Identifier: MIT */
#include "store/index.h"

#include <errno.h>

#include "store/memory.h"

int index_init(struct index *index, uint64_t limit, bool huge)
{
        *index = (struct index){.limit = limit, .huge = huge};
        index->buckets = memory_reserve(limit * sizeof(struct bucket));
        if (!index->buckets)
                return -ENOMEM;
        atomic_init(&index->size, BUCKETS_MIN);
        return 0;
}

void index_fini(struct index *index)
{
        memory_unreserve(index->buckets, index->limit * sizeof(struct bucket));
}

static size_t bytes_for(uint64_t size)
{
        return (size * sizeof(struct bucket) + PAGE - 1) & ~(size_t)(PAGE - 1);
}

size_t index_bytes(const struct index *index)
{
        return bytes_for(index_size(index));
}

size_t index_split_cost(const struct index *index)
{
        uint64_t size = index_size(index);
        return bytes_for(size + 1) - bytes_for(size);
}

static void moved(struct index *index)
{
        uint64_t moves = atomic_load_explicit(&index->moves, memory_order_relaxed);
        atomic_store_explicit(&index->moves, moves + 1, memory_order_release);
}

void index_split(struct index *index)
{
        uint64_t size = index_size(index);
        uint64_t from = size - (UINT64_C(1) << (63 - __builtin_clzll(size)));
        struct bucket *old = &index->buckets[from], *new = &index->buckets[size];
        bool leaves[SLOTS];
        for (unsigned i = 0; i < SLOTS; i++) {
                uint64_t slot = slot_get(&old->slot[i]);
                uint32_t hash = slot_hash(slot);
                leaves[i] = slot_location(slot) != 0 && index_address(hash, size + 1) != from &&
                            index_address(index_mix(hash), size + 1) != from;
                slot_set(&new->slot[i], leaves[i] ? slot : 0);
        }
        atomic_store_explicit(&index->size, size + 1, memory_order_release);
        moved(index);
        for (unsigned i = 0; i < SLOTS; i++)
                if (leaves[i])
                        slot_set(&old->slot[i], 0);
        size_t end = (size + 1) * sizeof(struct bucket);
        if (index->huge && end % BLOCK_SIZE == 0)
                memory_make_huge((uint8_t *)index->buckets + end - BLOCK_SIZE);
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

static slot_t *empty_slot(struct bucket *bucket, unsigned *count)
{
        slot_t *empty = NULL;
        unsigned n = 0;
        for (unsigned i = 0; i < SLOTS; i++)
                if (slot_location(slot_get(&bucket->slot[i])) == 0) {
                        empty = empty ? empty : &bucket->slot[i];
                        n++;
                }
        if (count)
                *count = n;
        return empty;
}

/* The other bucket of what is in `slot` of bucket `at`, if it may go there now; else `at`. */
static uint64_t other_bucket(const struct index *index, slot_t *slot, uint64_t at)
{
        const uint64_t size = index_size(index);
        uint32_t hash = slot_hash(slot_get(slot));
        uint64_t other = index_address(hash, size);
        if (other == at)
                other = index_address(index_mix(hash), size);
        return index->walkers && other < at ? at : other;
}

static void move_slot(struct index *index, slot_t *from, slot_t *to)
{
        slot_set(to, slot_get(from));
        moved(index);
}

/* Make bucket `at` give up a slot by moving one resident, after at most depth - 1 moves of others. */
static slot_t *make_vacancy(struct index *index, uint64_t at, unsigned depth)
{
        struct bucket *bucket = &index->buckets[at];
        for (unsigned i = 0; i < SLOTS; i++) {
                uint64_t other = other_bucket(index, &bucket->slot[i], at);
                if (other == at)
                        continue;
                slot_t *to = depth == 1 ? empty_slot(&index->buckets[other], NULL)
                                        : make_vacancy(index, other, depth - 1);
                if (to) {
                        move_slot(index, &bucket->slot[i], to);
                        return &bucket->slot[i];
                }
        }
        return NULL;
}

slot_t *index_vacancy(struct index *index, uint32_t hash)
{
        const uint64_t size = index_size(index);
        const uint64_t at[2] = {index_address(hash, size), index_address(index_mix(hash), size)};
        unsigned count[2];
        slot_t *empty[2];
        for (unsigned c = 0; c < 2; c++)
                empty[c] = empty_slot(&index->buckets[at[c]], &count[c]);
        if (empty[0] || empty[1])
                return empty[count[1] > count[0]];
        for (unsigned depth = 1; depth <= 2; depth++)
                for (unsigned c = 0; c < 2; c++) {
                        slot_t *slot = make_vacancy(index, at[c], depth);
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
        memory_discard((uint8_t *)index->buckets + bytes_for(BUCKETS_MIN),
                       bytes_for(size) - bytes_for(BUCKETS_MIN));
        memory_make_small(index->buckets, index->limit * sizeof(struct bucket));
}
