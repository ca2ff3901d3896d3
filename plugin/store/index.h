/* SPDX-License-Identifier: MIT
 * The index: buckets of eight slots, one cache line each. An entry is in one of two buckets, both computed
 * from the part of its hash that the slot keeps, so that growing never touches an entry.
 *
 * Slot:  | hash 29 | popularity 3 | location 32 |   0: empty (no location is 0)
 *
 * Growth is linear hashing: bucket by bucket, whenever there are more than seven entries a bucket. In a round
 * of doubling, the buckets not yet split are twice as full as the others; moving residents to their other
 * bucket, three moves deep at most, evens that out. Simulated with 2 million random hashes, looking at every
 * phase of a round (inserts that found both buckets full / that needed two moves / that found no place):
 *
 *      entries a slot   bytes an entry   filling                churning at that size
 *      0.85             9.41             17-40 % / < 1.1 % / 0   13-22 % / < 0.03 % / 0
 *      0.88             9.09             28-48 % / < 4.5 % / 0   19-32 % / < 0.2 % / 0
 *      0.92             8.70             45-55 % / < 19 % / 0.3 %
 *
 * Threads: slots, size and moves are atomic. Readers probe; one writer at a time does the rest. */
#ifndef STORE_INDEX_H
#define STORE_INDEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/fence.h"

#if defined(__SSE2__) && !defined(FENCE_BY_EXCHANGE)
#include <emmintrin.h>
#endif

enum {
        SLOTS = 8,
        SLOTS_FULL = 7, /* entries a bucket, beyond which the index grows */
        HASH_BITS = 29,
        BUCKETS_MIN = 64, /* a page */
        POPULARITY_MAX = 7,
};

typedef _Atomic uint64_t slot_t;

struct bucket {
        _Alignas(64) slot_t slot[SLOTS];
};

struct index {
        struct bucket *buckets; /* constant */
        _Atomic uint64_t size;  /* buckets in use, >= BUCKETS_MIN */
        /* Counts whenever a slot may have vanished from where a reader would have found it, after its copy
         * has been put elsewhere. A reader that found nothing looks again when this changed meanwhile. */
        _Atomic uint64_t moves;
        uint64_t limit;         /* buckets that the range can hold; constant */
        size_t touched;         /* bytes of memory that count as ours */
        bool huge;              /* use huge pages when it is large; constant */
        struct walker *walkers; /* the writer's lock */
};

enum {
        WALK_BUCKETS = 8,
};

/* Somebody who looks at all buckets in order without the lock, WALK_BUCKETS at a time. Slots do not move from
 * where it has not been to where it has. */
struct walker {
        _Atomic uint64_t at; /* the first bucket of those that it is looking at */
        struct walker *next;
};

static inline uint64_t slot_make(uint32_t hash, uint32_t popularity, uint32_t location)
{
        return (uint64_t)hash << 35 | (uint64_t)popularity << 32 | location;
}
static inline uint32_t slot_hash(uint64_t slot)
{
        return (uint32_t)(slot >> 35);
}
static inline uint32_t slot_popularity(uint64_t slot)
{
        return slot >> 32 & POPULARITY_MAX;
}
static inline uint32_t slot_location(uint64_t slot)
{
        return (uint32_t)slot;
}
static inline bool slot_free(uint64_t slot)
{
        return slot_location(slot) == 0;
}
static inline uint64_t slot_get(const slot_t *slot)
{
        return atomic_load_explicit(slot, memory_order_acquire);
}
static inline void slot_set(slot_t *slot, uint64_t value)
{
        atomic_store_explicit(slot, value, memory_order_release);
}
static inline bool slot_is(uint64_t slot, uint32_t hash)
{
        return slot_hash(slot) == hash && !slot_free(slot);
}

/* The bucket for a hash among `size`: as many low bits as the larger of the two table sizes has, one less if
 * that bucket does not exist yet. */
static inline uint64_t index_address(uint32_t hash, uint64_t size)
{
        uint64_t mask = (UINT64_C(2) << (63 - __builtin_clzll(size - 1))) - 1;
        uint64_t bucket = hash & mask;
        return bucket < size ? bucket : bucket & mask >> 1;
}

/* A bijection of 29-bit hashes: the second choice is the address of this. */
static inline uint32_t index_mix(uint32_t hash)
{
        const uint32_t mask = (1u << HASH_BITS) - 1;
        hash ^= hash >> 15;
        hash = hash * 0x2c1b3c6du & mask;
        hash ^= hash >> 14;
        hash = hash * 0x297a2d39u & mask;
        return hash ^ hash >> 15;
}

static inline uint64_t index_size(const struct index *index)
{
        return atomic_load_explicit(&index->size, memory_order_acquire);
}

/* Which of the slots of two buckets have this hash: a bit each, those of the first bucket lowest. Empty slots
 * count as any others. The loads acquire. */
static inline unsigned index_alike_plain(struct bucket *const bucket[2], uint32_t hash)
{
        unsigned mask = 0;
        for (unsigned i = 2 * SLOTS; i-- > 0;)
                mask = mask << 1 | (slot_hash(slot_get(&bucket[i / SLOTS]->slot[i % SLOTS])) == hash);
        return mask;
}

static inline unsigned index_alike(struct bucket *const bucket[2], uint32_t hash)
{
#if defined(__SSE2__) && !defined(FENCE_BY_EXCHANGE)
        /* The upper halves of two slots each; loads of x86 acquire, if the compiler leaves them in their
         * place. */
        const __m128i want = _mm_set1_epi32((int)(hash << 3)), bits = _mm_set1_epi32(~POPULARITY_MAX);
        __m128i same[2 * SLOTS / 4];
        for (unsigned i = 0; i < 2 * SLOTS / 4; i++) {
                const __m128 *slots = (const __m128 *)(const void *)&bucket[i / 2]->slot[i % 2 * 4];
                __m128 upper = _mm_shuffle_ps(slots[0], slots[1], _MM_SHUFFLE(3, 1, 3, 1));
                same[i] = _mm_cmpeq_epi32(_mm_and_si128(_mm_castps_si128(upper), bits), want);
        }
        atomic_signal_fence(memory_order_acquire);
        return (unsigned)_mm_movemask_epi8(
            _mm_packs_epi16(_mm_packs_epi32(same[0], same[1]), _mm_packs_epi32(same[2], same[3])));
#else
        return index_alike_plain(bucket, hash);
#endif
}

/* Room for `limit` buckets, none of it touched but the first BUCKETS_MIN. 0 or -ENOMEM. */
int index_init(struct index *index, uint64_t limit, bool huge);
void index_fini(struct index *index);

/* What the next split at least adds to `touched`. */
size_t index_split_cost(const struct index *index);

/* Split one bucket; `touched` may grow by `budget`, which allows the cost. The index must be below its limit.
 */
void index_split(struct index *index, uint64_t budget);

/* Under the lock. */
void index_walk_begin(struct index *index, struct walker *walker);
void index_walk_end(struct index *index, struct walker *walker);
/* Before looking at the buckets from `bucket` on. Needs no lock. */
void index_walk_to(struct walker *walker, uint64_t bucket);

/* The slot for this hash and location, or NULL. */
slot_t *index_slot_of(struct index *index, uint32_t hash, uint32_t location);

/* A slot that may take an entry with this hash, emptied or overwritten by nobody else as long as the caller
 * holds the lock; NULL when there is none even after moving others. The slot may still hold the value of an
 * entry that has been copied elsewhere: just overwrite it. */
slot_t *index_vacancy(struct index *index, uint32_t hash);

/* Forget everything and be as small as at first. */
void index_reset(struct index *index);

#endif
