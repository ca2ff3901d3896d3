/* SPDX-License-Identifier: MIT
 *
 * Filling a cache with the reference workload: look up, miss, insert.
 */
#ifndef BENCH_FILL_H
#define BENCH_FILL_H

#include "client.h"

#include <stdatomic.h>

#define FILL_TTL 86400

/* Fill in answers [from, to). Questions and answers are made a batch at a time, outside the clock and in
 * memory that was touched before, so neither their cost nor their bytes are counted. Every answer must be new
 * and be stored. `present`, which may be NULL, follows: how many are in. Returns answers a second. */
double fill(sardine_cache *cache, uint64_t seed, uint64_t from, uint64_t to, atomic_ullong *present,
            const char *step);

/* A number below n, random by `k`. */
uint64_t fill_random(uint64_t seed, uint64_t k, uint64_t n);

#endif
