/* SPDX-License-Identifier: MIT
 *
 * survey.h - what a cache holds, added up in a walk over it: by type, by rcode, by the life that is left, by
 * zone.
 */
#ifndef HOST_SURVEY_H
#define HOST_SURVEY_H

#include <sardine.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* [cdef] */

enum {
        SARDINE_SURVEY_TYPES = 24,
        SARDINE_SURVEY_RCODES = 24, /* 0..22 by number, then all others */
        SARDINE_SURVEY_LIVES = 9,
};

struct sardine_dnsdist_share {
        uint64_t entries, bytes; /* bytes of the answers alone, as struct sardine_entry_view has them */
};

struct sardine_dnsdist_survey {
        uint64_t at;                           /* seconds since 1970 when it was finished; 0: there is none */
        uint32_t took_ms;                      /* how long the walk took */
        uint32_t n_types;                      /* types listed, the most frequent first */
        struct sardine_dnsdist_share all;      /* answers for networks count one by one */
        struct sardine_dnsdist_share stale;    /* of these: expired */
        struct sardine_dnsdist_share signed_;  /* fetched with DO */
        struct sardine_dnsdist_share networks; /* for client networks */
        uint32_t types[24];
        struct sardine_dnsdist_share of_type[24];
        struct sardine_dnsdist_share other_types;
        struct sardine_dnsdist_share of_rcode[24];
        /* Life left, at most: 0 (stale), 10, 60, 300, 900, 3600, 21600, 86400 seconds, and beyond. */
        struct sardine_dnsdist_share of_life[9];
};

/* Walk the cache now. `labels` above 0: *zones becomes a list of names of that many labels, the largest
 * first, a line "entries bytes name" for each; for sardine_dnsdist_free(). Returns 0, or -ENOMEM. */
int sardine_dnsdist_measure(sardine_cache *cache, struct sardine_dnsdist_survey *survey, uint32_t labels,
                            char **zones);

/* [cdef] */

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

/* As above, for a thread of ours: `stop` is asked now and then whether to give up; then -EINTR. */
int survey_walk(sardine_cache *cache, struct sardine_dnsdist_survey *survey, uint32_t labels, char **zones,
                int (*stop)(void *ctx), void *ctx);

#endif
