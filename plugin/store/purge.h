/* SPDX-License-Identifier: MIT
 * Purges under way. Finding all that a purge removes means looking at every entry, which takes as long as
 * that takes; so from its first moment on, whoever finds an entry asks whether a purge has doomed it. What
 * was put later is not meant, and is told apart by where it is: entries are only ever appended to segments.
 *
 * Threads: begun and ended under the store's lock; readers ask in their sections. */
#ifndef STORE_PURGE_H
#define STORE_PURGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/log.h"
#include "store/store.h"

struct purges {
        struct store_purge *_Atomic active;
        struct store_purge *ended; /* readers may still be asking them; under the lock */
};

static inline bool purges_any(const struct purges *purges)
{
        return atomic_load_explicit(&purges->active, memory_order_acquire) != NULL;
}

/* Is the entry at `location` doomed by any of them? */
bool purges_doom(const struct purges *purges, const struct log *log, uint32_t location);

/* By this one? */
bool purge_dooms(const struct store_purge *purge, const struct log *log, uint32_t location);

void purges_begin(struct purges *purges, const struct log *log, struct store_purge *purge);
void purges_end(struct purges *purges, struct store_purge *purge);

/* Nobody reads any more. */
void purges_fini(struct purges *purges);

#endif
