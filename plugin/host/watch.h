/* SPDX-License-Identifier: MIT
 *
 * watch.h - for those who watch the caches: the last hour in steps, what the caches hold, the busiest names.
 *
 * One thread of our own does the work, once somebody watches. Counters cost it nothing; a walk over a cache
 * is made only when it was asked for, and so seldom that it takes 2 % of one processor at most.
 */
#ifndef HOST_WATCH_H
#define HOST_WATCH_H

#include <sardine.h>

#include "host/survey.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* [cdef] */

enum {
        SARDINE_WATCH_STEP = 10,    /* seconds from point to point */
        SARDINE_WATCH_POINTS = 360, /* an hour */
};

/* A cache's counters at a moment. */
struct sardine_dnsdist_point {
        uint64_t at;                                          /* seconds since 1970 */
        uint64_t hits, stale, refresh, misses, bypass, other; /* lookups; other: cache-only misses, waits */
        uint64_t inserts, refused, evicted;
        uint64_t entries, bytes;
};

/* Begin to watch, if nobody has yet. Returns 0, or a negated errno value. */
int sardine_dnsdist_watch(void);

/* The cache's points after the moment `since`, the oldest first: writes at most `max`, returns how many. */
uint32_t sardine_dnsdist_history(uint32_t cache, uint64_t since, struct sardine_dnsdist_point *points,
                                 uint32_t max);

/* The latest survey of the cache; asks for a newer one when it is time for that. Returns 1, or 0 when there
 * is none yet.
 */
int sardine_dnsdist_surveyed(uint32_t cache, struct sardine_dnsdist_survey *survey);

/* The names that the cache is asked most, or, counting misses alone, that miss most when `misses` is 1: a
 * line "queries hits type name" for each, the first one first, `max` at most; numbers are estimates of the
 * last minutes. For sardine_dnsdist_free(); NULL without memory. */
char *sardine_dnsdist_top(uint32_t cache, uint32_t max, int misses);

/* The last responses that the cache did not keep, the newest first, `max` at most; of those to this name
 * (wire form, lower case) and type, or to all when name_len is 0. A line "seconds-ago reason type name" for
 * each; for sardine_dnsdist_free(); NULL without memory. Needs no sardine_dnsdist_watch(). */
char *sardine_dnsdist_refused(uint32_t cache, const uint8_t *name, uint32_t name_len, uint32_t type,
                              uint32_t max);

/* [cdef] */

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

/* 1: names are counted. */
int watch_counts(void);

#endif
