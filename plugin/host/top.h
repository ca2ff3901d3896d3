/* SPDX-License-Identifier: MIT
 *
 * top.h - what a thread is asked most often: a few dozen names with counts that are never too high ("space
 * saving", less its error). Some queries are looked at, the fewer the more there are, so that the rest pay
 * for one decrement.
 */
#ifndef HOST_TOP_H
#define HOST_TOP_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "host/message.h"

enum {
        TOP_NAMES = 128,
};

struct top_item {
        uint64_t queries, hits; /* that were seen, each for all that were passed over */
        uint64_t error;         /* of queries, at most */
        uint32_t cache;
        struct message_question question;
};

struct top_table {
        uint32_t n;
        uint32_t hashes[TOP_NAMES];
        struct top_item items[TOP_NAMES];
};

struct top {
        uint32_t countdown; /* the thread's own */
        uint32_t stride;    /* a query in so many is looked at */
        uint32_t samples;   /* since the last ageing */
        time_t aged;
        pthread_mutex_t lock;           /* of the rest; the thread never waits for it */
        struct top_table asked, missed; /* of what missed, only the misses */
};

void top_init(struct top *top);

void top_sample(struct top *top, uint32_t cache, const uint8_t *query, size_t len, bool hit);

/* A query that the library found to be well-formed. */
static inline void top_count(struct top *top, uint32_t cache, const uint8_t *query, size_t len, bool hit)
{
        if (--top->countdown == 0)
                top_sample(top, cache, query, len, hit);
}

#endif
