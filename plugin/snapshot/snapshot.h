/* SPDX-License-Identifier: MIT
 * Snapshots of a cache, as the cache and the files of this folder see them. */
#ifndef SNAPSHOT_SNAPSHOT_H
#define SNAPSHOT_SNAPSHOT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sardine.h"
#include "snapshot/format.h"
#include "snapshot/purgelog.h"

struct keeper;

/* A cache's part in it. */
struct snapshots {
        /* Purges begin one by one, and none while a snapshot gets its name. Before a keeper's lock, which is
         * before the store's. */
        pthread_mutex_t purging;
        struct purgelog purges;
        struct keeper *_Atomic keeper; /* NULL: no thread keeps a snapshot */
        struct keeper *ended;          /* under the store's lock */
        _Atomic bool stop;             /* loading and saving are to break off */
        _Atomic uint64_t loaded;       /* entries, from other files than the keeper's */
};

/* The header of a snapshot of this cache, at this moment. */
void snapshot_header_of(const struct sardine_cache *cache, struct snapshot_header *header);

/* Either of the two below. */
typedef int (*snapshot_work)(struct sardine_cache *cache, const char *path,
                             struct sardine_snapshot_result *result);

int snapshot_save(struct sardine_cache *cache, const char *path, struct sardine_snapshot_result *result);

int snapshot_load(struct sardine_cache *cache, const char *path, struct sardine_snapshot_result *result);

/* Do one of them: clears the result first, and says how long it took. */
int snapshot_timed(struct sardine_cache *cache, const char *path, snapshot_work work,
                   struct sardine_snapshot_result *result);

int snapshot_keep(struct sardine_cache *cache, const struct sardine_snapshot_options *options);
void snapshot_status(struct sardine_cache *cache, struct sardine_snapshot_status *status);

/* What a purge removes: `n` valid selectors, `stride` bytes apart; none: everything. */
struct snapshot_purge {
        const struct sardine_selector *first;
        size_t n, stride;
        bool vague; /* or less than that */
};

/* A purge begins: note it, and return with the store's lock, under which it must have begun. Then no save and
 * no load can begin between the two, and see what goes without hearing of it. */
struct keeper *snapshot_lock_purging(struct sardine_cache *cache, const struct snapshot_purge *purge);
void snapshot_unlock_purging(struct sardine_cache *cache, struct keeper *keeper);

/* No purge begins until they are released: then, if `saved` is the file that they are noted beside, it knows
 * of all of them, and is on disk. NULL: nothing was saved. */
void snapshot_hold_purges(struct sardine_cache *cache);
void snapshot_release_purges(struct sardine_cache *cache, const char *saved);

/* A new cache. */
void snapshot_init(struct sardine_cache *cache);

/* The cache is going. */
void snapshot_end(struct sardine_cache *cache);

#endif
