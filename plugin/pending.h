/* SPDX-License-Identifier: MIT
 * Questions that somebody is asking upstream, for hosts whose other callers can wait (B27, B80). A question
 * is identified as in the cache: the whole key, DO and the client's network (token_identity). Used on misses
 * only, and only when the host asks for it. */
#ifndef PENDING_H
#define PENDING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        PENDING_SHARDS = 16,
        /* Beyond so many nobody waits: each asks for itself. */
        PENDING_MAX = 65536,
        /* Somebody who asks for longer than this is no longer waited for. Milliseconds. */
        PENDING_PATIENCE = 5000,
};

struct pending_question;

struct pending {
        struct {
                pthread_mutex_t lock;
                pthread_cond_t ended;
                struct pending_question *first; /* guarded by lock */
        } shard[PENDING_SHARDS];
        _Atomic uint32_t count; /* relaxed; lets those who never coalesce pass by */
};

struct pending_id {
        const uint8_t *bytes;
        size_t len;
        uint64_t hash;
};

enum pending_wait {
        PENDING_ENDED, /* look up again */
        PENDING_LEAD,  /* took too long: the caller asks now */
        PENDING_LATE,  /* took too long, but somebody else has taken over */
};

void pending_init(struct pending *pending);
void pending_fini(struct pending *pending);

/* true: the caller is the one to ask. */
bool pending_begin(struct pending *pending, const struct pending_id *id);

/* It was answered, or failed. */
void pending_end(struct pending *pending, const struct pending_id *id);

enum pending_wait pending_wait(struct pending *pending, const struct pending_id *id, uint32_t timeout_ms);

#endif
