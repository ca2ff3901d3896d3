/* SPDX-License-Identifier: MIT */
#include "host/qps.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

enum {
        LIMITERS_MAX = 1024,
};

#define SECOND_NS UINT64_C(1000000000)

/* The bucket as a point in time: when it would be full again. Taking one moves the point by `each`, and it
 * may not be further off than a second. */
static struct {
        _Atomic uint64_t full_at;
        uint64_t each; /* nanoseconds; set before the number is known to anybody */
} limiters[LIMITERS_MAX];

static _Atomic uint32_t n_limiters;

int sardine_dnsdist_limiter(uint32_t per_second)
{
        uint32_t number = atomic_load(&n_limiters);
        do {
                if (number == LIMITERS_MAX)
                        return -ENOSPC;
        } while (!atomic_compare_exchange_weak(&n_limiters, &number, number + 1));
        limiters[number].each = per_second > 0 ? SECOND_NS / per_second : 2 * SECOND_NS;
        return (int)number;
}

int sardine_dnsdist_within(uint32_t limiter)
{
        if (limiter >= LIMITERS_MAX)
                return 0;
        struct timespec ts;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        uint64_t now = (uint64_t)ts.tv_sec * SECOND_NS + (uint64_t)ts.tv_nsec;
        uint64_t each = limiters[limiter].each;
        uint64_t full_at = atomic_load_explicit(&limiters[limiter].full_at, memory_order_relaxed);
        uint64_t then;
        do {
                then = (full_at > now ? full_at : now) + each;
                if (then - now > SECOND_NS)
                        return 0;
        } while (!atomic_compare_exchange_weak_explicit(&limiters[limiter].full_at, &full_at, then,
                                                        memory_order_relaxed, memory_order_relaxed));
        return 1;
}
