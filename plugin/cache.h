/* SPDX-License-Identifier: MIT
 * A cache, as the files of the public interface see it: cache.c makes it, lookup.c, insert.c and inspect.c
 * use it. */
#ifndef CACHE_H
#define CACHE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "abi.h"
#include "counters.h"
#include "entry/key.h"
#include "entry/render.h"
#include "marks.h"
#include "pending.h"
#include "policy/engine.h"
#include "purged.h"
#include "sardine.h"
#include "snapshot/snapshot.h"
#include "store/store.h"
#include "wire/query.h"

enum {
        CACHE_SECRET = 192,
        CACHE_SPLITS_MAX = 16,
};

/* What a file was like when it was looked at. inode 0: it was not there. */
struct policy_file {
        uint64_t inode, size;
        struct timespec time;
};

/* What changes with the policy; under its lock. */
struct policy_state {
        pthread_mutex_t lock;
        char *path; /* NULL: no policy */
        uint32_t flags;
        struct policy_file file;
        uint64_t loads, load_failures;
        struct policy_hook_stats past[POLICY_HOOKS]; /* of policies that are gone */
};

struct policy;

struct sardine_cache {
        /* Set by sardine_create() and never changed. */
        struct sardine_options options;
        uint16_t splits[CACHE_SPLITS_MAX];
        struct store *store;
        uint8_t secret[CACHE_SECRET];
        uint64_t clock_origin; /* milliseconds */

        _Atomic(struct policy *) policy; /* NULL: none; see verdict.h */

        _Atomic uint64_t generation; /* of purges; written under the store's lock */
        /* Walks under way; under the store's lock. No page of networks is split meanwhile: what moves from a
         * page that is still to come to one that has been passed would be passed by. */
        uint32_t walks;
        uint8_t *scratch; /* for networks.c, ENTRY_MAX bytes once there has been an answer for a network;
                             under the store's lock */
        struct marks refreshing; /* entries that a caller was asked to fetch anew */
        struct marks failing;    /* expired entries that the upstream could not renew */
        struct pending pending;  /* questions that are being asked, for those who wait */
        struct snapshots snapshots;
        struct purged *purged; /* under the store's lock */
        struct counters counters;
        struct policy_state policy_state;
        bool keeps[POLICY_CLASSES]; /* the policy's classes of entries that stay; under the store's lock */
};

/* The cache second. */
uint32_t cache_now(const struct sardine_cache *cache);

/* May the key of a query with such a tag be more than the question? */
static inline bool cache_key_splits(const struct sardine_cache *cache, size_t tag_len)
{
        return tag_len || cache->options.n_split_options;
}

/* Make the key of a parsed query. Returns 0 or SARDINE_BYPASS_TOO_LONG. The one place where a key comes from
 * a query: lookup, token and insert all use its result (B17). */
unsigned cache_key(const struct sardine_cache *cache, const struct wire_query *wire, const void *tag,
                   size_t tag_len, struct entry_key *key);

static inline uint64_t cache_hash(const struct sardine_cache *cache, const struct entry_key *key)
{
        return entry_key_hash(key, cache->secret, sizeof cache->secret);
}

/* The hash of an entry's key, from the entry itself: the store's hash callback, with the cache as context. */
uint64_t cache_entry_hash(const void *cache, const uint8_t *entry);

/* Does this expired answer carry the list of a question's pages of networks, some of which may not have
 * expired? None lives longer than max_ttl, and one that is put when this answer may not even stand in any
 * more gets a list of its own. */
bool cache_entry_lingers(const void *cache, const uint8_t *entry, uint32_t now);

/* The question of this token has been answered, or has failed: wake those who wait for it. `key` is the
 * token's. */
void cache_wake(struct sardine_cache *cache, const struct sardine_token *token, const struct entry_key *key);

/* What a reply to this query looks like, ECS and extended errors apart. */
void cache_render_params(const struct sardine_cache *cache, const struct sardine_query *query,
                         const struct wire_query *wire, uint32_t now, struct render_params *params);

/* The caller's query: 0, -EINVAL or -E2BIG. */
int cache_query_check(const struct sardine_cache *cache, const struct sardine_query *query);

/* Remove what the purge dooms; what was asked upstream before this moment is not let in any more (B70).
 * `noted` is how snapshots are told: that, or more. Returns how many were removed. */
uint64_t cache_purge(sardine_cache *cache, struct store_purge *purge, const struct snapshot_purge *noted);

/* policies.c: a cache without a policy; and what there is goes, when nobody uses the cache any more. */
void policies_init(sardine_cache *cache);
void policies_fini(sardine_cache *cache);

/* The i-th struct of a caller's array, whose elements are as large as the first says. */
static inline void *element(const void *array, size_t i)
{
        size_t size;
        memcpy(&size, array, sizeof size);
        return (void *)((uintptr_t)array + i * size);
}

#endif
