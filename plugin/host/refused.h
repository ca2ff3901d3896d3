/* SPDX-License-Identifier: MIT
 *
 * refused.h - the last responses of a thread that the cache did not keep, and why: for people who ask.
 */
#ifndef HOST_REFUSED_H
#define HOST_REFUSED_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "host/message.h"

enum {
        REFUSED_KEPT = 64,
};

struct refused_item {
        time_t at;
        uint32_t cache;
        uint32_t reason; /* enum sardine_reason */
        struct message_question question;
};

struct refused {
        pthread_mutex_t lock; /* the thread never waits for it */
        uint64_t n;           /* noted so far */
        struct refused_item items[REFUSED_KEPT];
};

void refused_init(struct refused *refused);

void refused_note(struct refused *refused, uint32_t cache, const uint8_t *response, size_t len,
                  uint32_t reason);

#endif
