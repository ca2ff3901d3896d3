/* SPDX-License-Identifier: MIT
 *
 * Filling a cache with the reference workload: look up, miss, insert.
 */
#ifndef BENCH_FILL_H
#define BENCH_FILL_H

#include "client.h"
#include "workload.h"

#include <stdatomic.h>

#define FILL_TTL 86400

struct fill_pair {
        uint8_t query[WORKLOAD_QUERY_MAX + 32], /* with an option */
            response[WORKLOAD_RESPONSE_MAX];
        size_t query_len, response_len;
};

/* Make question and answer number `i`. */
typedef void (*fill_make)(const void *ctx, uint64_t i, struct fill_pair *pair);

/* Fill in answers [from, to). Questions and answers are made a batch at a time, outside the clock and in
 * memory that was touched before, so neither their cost nor their bytes are counted. Every answer must be new
 * and be stored. `present`, which may be NULL, follows: how many are in. Returns answers a second. */
double fill_with(sardine_cache *cache, fill_make make, const void *ctx, uint64_t from, uint64_t to,
                 atomic_ullong *present, const char *step);

/* The same with answers of the reference workload. */
double fill(sardine_cache *cache, uint64_t seed, uint64_t from, uint64_t to, atomic_ullong *present,
            const char *step);

/* Touch that memory, before anybody counts. */
void fill_touch(void);

/* A number below n, random by `k`. */
uint64_t fill_random(uint64_t seed, uint64_t k, uint64_t n);

#endif
