/* SPDX-License-Identifier: MIT */
#include "pending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* All fields are guarded by the shard's lock. Freed by whoever sees it ended and without waiters. */
struct pending_question {
        struct pending_question *next;
        uint64_t since; /* when its present asker began; milliseconds */
        uint32_t waiters;
        bool ended; /* and out of the list */
        size_t len;
        uint8_t bytes[];
};

static uint64_t now_ms(void)
{
        struct timespec ts;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void pending_init(struct pending *pending)
{
        pthread_condattr_t attr;
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        for (unsigned i = 0; i < PENDING_SHARDS; i++) {
                pthread_mutex_init(&pending->shard[i].lock, NULL);
                pthread_cond_init(&pending->shard[i].ended, &attr);
                pending->shard[i].first = NULL;
        }
        pthread_condattr_destroy(&attr);
        atomic_init(&pending->count, 0);
}

void pending_fini(struct pending *pending)
{
        for (unsigned i = 0; i < PENDING_SHARDS; i++) {
                for (struct pending_question *q = pending->shard[i].first, *next; q; q = next) {
                        next = q->next;
                        free(q);
                }
                pthread_cond_destroy(&pending->shard[i].ended);
                pthread_mutex_destroy(&pending->shard[i].lock);
        }
}

/* The link that leads to the question, or to the end of the list. Others that were given up, and that nobody
 * waits for, are dropped on the way: a host may forget to say that they failed. */
static struct pending_question **find(struct pending *pending, unsigned shard, const struct pending_id *id)
{
        struct pending_question **link = &pending->shard[shard].first, *q;
        uint64_t now = now_ms();
        while ((q = *link) && (q->len != id->len || memcmp(q->bytes, id->bytes, id->len) != 0)) {
                if (q->waiters > 0 || now - q->since < PENDING_PATIENCE) {
                        link = &q->next;
                        continue;
                }
                *link = q->next;
                atomic_fetch_sub_explicit(&pending->count, 1, memory_order_relaxed);
                free(q);
        }
        return link;
}

static unsigned shard_of(const struct pending_id *id)
{
        return (unsigned)(id->hash >> 32) % PENDING_SHARDS;
}

bool pending_begin(struct pending *pending, const struct pending_id *id)
{
        unsigned shard = shard_of(id);
        bool lead = true;
        pthread_mutex_lock(&pending->shard[shard].lock);
        struct pending_question **link = find(pending, shard, id), *q = *link;
        if (q) {
                lead = now_ms() - q->since >= PENDING_PATIENCE;
                if (lead)
                        q->since = now_ms();
        } else if (atomic_load_explicit(&pending->count, memory_order_relaxed) < PENDING_MAX &&
                   (q = malloc(sizeof *q + id->len))) {
                *q = (struct pending_question){.since = now_ms(), .len = id->len};
                memcpy(q->bytes, id->bytes, id->len);
                *link = q;
                atomic_fetch_add_explicit(&pending->count, 1, memory_order_relaxed);
        }
        pthread_mutex_unlock(&pending->shard[shard].lock);
        return lead;
}

void pending_end(struct pending *pending, const struct pending_id *id)
{
        if (atomic_load_explicit(&pending->count, memory_order_relaxed) == 0)
                return;
        unsigned shard = shard_of(id);
        pthread_mutex_lock(&pending->shard[shard].lock);
        struct pending_question **link = find(pending, shard, id), *q = *link;
        if (q) {
                *link = q->next;
                atomic_fetch_sub_explicit(&pending->count, 1, memory_order_relaxed);
                q->ended = true;
                if (q->waiters == 0)
                        free(q);
                else
                        pthread_cond_broadcast(&pending->shard[shard].ended);
        }
        pthread_mutex_unlock(&pending->shard[shard].lock);
}

enum pending_wait pending_wait(struct pending *pending, const struct pending_id *id, uint32_t timeout_ms)
{
        unsigned shard = shard_of(id);
        enum pending_wait result = PENDING_ENDED;
        uint64_t deadline = now_ms() + timeout_ms;
        struct timespec until = {.tv_sec = (time_t)(deadline / 1000),
                                 .tv_nsec = (long)(deadline % 1000) * 1000000};
        pthread_mutex_lock(&pending->shard[shard].lock);
        struct pending_question *q = *find(pending, shard, id);
        if (q) {
                q->waiters++;
                int err = 0;
                while (!q->ended && err != ETIMEDOUT)
                        err = pthread_cond_timedwait(&pending->shard[shard].ended,
                                                     &pending->shard[shard].lock, &until);
                q->waiters--;
                if (q->ended) {
                        if (q->waiters == 0)
                                free(q);
                } else if (now_ms() - q->since >= timeout_ms) {
                        q->since = now_ms();
                        result = PENDING_LEAD;
                } else {
                        result = PENDING_LATE;
                }
        }
        pthread_mutex_unlock(&pending->shard[shard].lock);
        return result;
}
