/* SPDX-License-Identifier: MIT
 * Counters that many threads bump: the first threads have a stripe each, which nobody else writes, the others
 * share one; the reader adds them up. */
#ifndef COUNTERS_H
#define COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

#include "sardine.h"

enum counter {
        COUNT_HIT,
        COUNT_STALE,
        COUNT_REFRESH,
        COUNT_MISS,
        COUNT_BYPASS,
        COUNT_CACHE_ONLY_MISS,
        COUNT_WAIT,
        COUNT_RESCUED,
        COUNT_STORED,
        COUNT_REPLACED,
        COUNT_REFRESHED,
        COUNT_REFUSED,
        COUNT_REASON, /* + enum sardine_reason */
        COUNTERS = COUNT_REASON + SARDINE_REASON_COUNT,
};

enum {
        COUNTER_STRIPES = 16,
        COUNTER_SHARED = COUNTER_STRIPES - 1,
};

struct counters {
        /* Each value: atomic, relaxed. */
        struct {
                _Alignas(64) _Atomic uint64_t value[COUNTERS];
        } stripe[COUNTER_STRIPES];
};

void counters_add(struct counters *counters, enum counter which);
uint64_t counters_sum(const struct counters *counters, enum counter which);

#endif
