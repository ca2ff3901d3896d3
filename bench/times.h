/* SPDX-License-Identifier: MIT
 *
 * How long single lookups and inserts take, and what of that is not theirs.
 */
#ifndef BENCH_TIMES_H
#define BENCH_TIMES_H

#include "workload.h"

#include <sardine.h>

#include <stdint.h>

#define TIMES_GROUP 16 /* calls between two readings of the processor time */

/* Of one thread; or of several, added up. */
struct times {
        uint64_t n, above_1ms;
        uint64_t faults, slept; /* page faults, and groups in which the thread went to sleep by itself */
        uint64_t max, max_wall;
        uint64_t clock_max, clock_above_1ms; /* between two readings of the clock with nothing in between */
        uint32_t *bins;
};

/* Queries made by the caller, and what came of them. */
struct times_group {
        uint8_t query[TIMES_GROUP][WORKLOAD_QUERY_MAX];
        size_t len[TIMES_GROUP];
        int outcome[TIMES_GROUP];
};

/* The same for inserts: responses, and the tokens that the lookups left. */
struct times_inserts {
        struct sardine_token token[TIMES_GROUP];
        uint8_t response[TIMES_GROUP][WORKLOAD_RESPONSE_MAX];
        size_t len[TIMES_GROUP];
        int outcome[TIMES_GROUP];
};

void times_init(struct times *times);
void times_fini(struct times *times);
void times_add(struct times *sum, const struct times *times);

/* Look the queries up one by one; then, for as long as that took, just read the clock. Returns when the first
 * lookup began. */
uint64_t times_lookup(struct times *times, sardine_cache *cache, struct times_group *group);

/* Insert the responses, likewise. */
void times_insert(struct times *times, sardine_cache *cache, struct times_inserts *group);

/* In ns: what `share` of the calls do not exceed. */
double times_percentile(const struct times *times, double share);

/* The fields lookups, lookup_us_p50/p99/p999/p9999/max ..., with this at the end of their names; `call`:
 * "lookup" or "insert". */
void times_report(const struct times *times, const char *call, const char *suffix);

#endif
