/* SPDX-License-Identifier: MIT
 * The store from inside. */
#ifndef STORE_STORE_IMPL_H
#define STORE_STORE_IMPL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "entry/header.h"
#include "store/index.h"
#include "store/log.h"
#include "store/purge.h"
#include "store/store.h"

/* How long to wait at most for readers to leave: 20 ms. */
enum {
        EPOCH_WAITS = 400,
        EPOCH_WAIT_NS = 50000,
};

/* How far the emptying of a segment has come. */
struct sweep {
        uint64_t stamp; /* the segment's at the time: is it still the same? */
        uint32_t segment;
        uint32_t offset;
        uint32_t copied; /* bytes moved elsewhere */
        bool clean;      /* chosen because much of it is no use, */
        bool keeps;      /* and what is fresh in it stays */
        bool judged;     /* what is to go has gone: what is left stays */
};

struct store {
        /* What readers use, constant but for the atomics in the index. */
        struct index index;
        struct log log;
        struct store_options options, created; /* as they are, and as they were at first */
        uint64_t hash_mask;
        struct purges purges;

        /* All below: under the lock. */
        _Alignas(64) pthread_mutex_t lock;
        _Atomic uint32_t waiting; /* for it; a hint */
        size_t fixed;             /* bytes of this struct and the ghosts, there or not; constant */
        uint64_t entries;
        uint64_t evicted, expired, expunged, moved;
        unsigned proven;  /* classes of proven entries; constant */
        bool kinds;       /* are there classes for kinds? constant */
        unsigned reserve; /* segments to have free beyond the next one; constant */
        /* Entries that had to go and were popular, or new and not negative: when they come back they need not
         * prove themselves. So a name that is asked for now and then is told from those asked for once over a
         * longer time than the bytes of new ones can stay. Each hash has one place, which remembers the last
         * one by what the place does not say of it. 0: nobody. They come with the first entry and go with a
         * wipe. */
        uint16_t *_Atomic ghosts; /* both relaxed: others than the writer only prefetch */
        _Atomic bool haunted;     /* is there any? A cache that fills up for the first time need not look */
        uint32_t ghosts_mask;     /* constant */
        struct sweep sweep;       /* of evict_some */
        uint32_t surveyed;        /* where the next look at segments begins */
};

static inline uint32_t store_fold(const struct store *store, uint64_t hash)
{
        return (uint32_t)((hash & store->hash_mask) >> (64 - HASH_BITS));
}

static inline size_t store_ghost_bytes(const struct store *store)
{
        return (store->ghosts_mask + 1) * sizeof *store->ghosts;
}

/* Bytes that may still be taken from the system. */
static inline uint64_t store_budget(const struct store *store)
{
        uint64_t bytes = store->fixed + store->index.touched + log_overhead(&store->log) + store->log.charged;
        return bytes < store->options.max_bytes ? store->options.max_bytes - bytes : 0;
}

/* For how long an entry of this class may be of use after it expired. */
static inline uint32_t store_window(const struct store *store, unsigned class)
{
        bool negative = class == CLASS_NEGATIVE || class == CLASS_NEGATIVE_NEW;
        return negative && store->options.stale_positive ? 0 : store->options.stale_window;
}

/* Is it as good as fresh? */
static inline bool store_fresh(const struct store *store, const uint8_t *entry, uint32_t now)
{
        return entry_expiry(entry) > now ||
               (store->options.linger && store->options.linger(store->options.ctx, entry, now));
}

/* Is there any use for it, fresh or stale? */
static inline bool store_wants(const struct store *store, unsigned class, const uint8_t *entry, uint32_t now)
{
        uint32_t expiry = entry_expiry(entry), window = store_window(store, class);
        return store_fresh(store, entry, now) || (window > 0 && now - expiry <= window);
}

/* The entry that this slot points at goes. */
static inline void store_drop(struct store *store, slot_t *slot)
{
        uint32_t location = slot_location(slot_get(slot));
        slot_set(slot, 0);
        log_kill(&store->log, location);
        store->entries--;
}

#endif
