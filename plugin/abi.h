/* SPDX-License-Identifier: MIT
 * The public structs as callers of other versions know them. A caller compiled against an older header passes
 * shorter ones: everything inside the library works on structs of full size, so they are copied on the way in
 * and back on the way out. Fields are only ever appended; a size below stays as it was in the first release.
 */
#ifndef ABI_H
#define ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "sardine.h"

#define ABI_UP_TO(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

enum {
        ABI_OPTIONS_LEAST = ABI_UP_TO(struct sardine_options, clock_ctx),
        ABI_QUERY_LEAST = ABI_UP_TO(struct sardine_query, tag),
        ABI_ANSWER_LEAST = ABI_UP_TO(struct sardine_answer, dnssec_ok),
        ABI_INFO_LEAST = ABI_UP_TO(struct sardine_insert_info, failure_ttl),
        ABI_RESULT_LEAST = ABI_UP_TO(struct sardine_insert_result, life),
        ABI_SELECTOR_LEAST = ABI_UP_TO(struct sardine_selector, rcode),
        ABI_STATS_LEAST = ABI_UP_TO(struct sardine_stats, huge_pages),
        ABI_SIZE_MOST = 4096, /* what says more is not a size */
};

/* For a struct that begins with its size: 0 when it has at least `least` bytes and nothing set beyond
 * `known`, else -EINVAL or -E2BIG. */
int abi_check(const void *in, size_t least, size_t known);

/* The same for a struct that must be complete. */
static inline int struct_check(const void *in, size_t known)
{
        size_t size = 0;
        if (in)
                memcpy(&size, in, sizeof size);
        return size == known ? 0 : abi_check(in, known, known);
}

/* Can the structs of an array be of this size? */
bool abi_is_stride(size_t size, size_t least);

/* Copy from the caller's struct, which has been checked, what both know; the rest of `full` stays. */
void abi_take(void *full, const void *in, size_t known);

/* And back, with zeros behind what the library knows. The caller's size stays. */
void abi_give(void *out, const void *full, size_t known);

/* Is one of the two shorter than the library's, but long enough? */
bool abi_short(const struct sardine_query *query, const struct sardine_answer *answer);

/* Both of full size. 0, -EINVAL or -E2BIG. */
struct abi_full {
        struct sardine_query query;
        struct sardine_answer answer;
};
int abi_full_take(struct abi_full *full, const struct sardine_query *query,
                  const struct sardine_answer *answer);

/* Call it with these. */
typedef int (*abi_lookup_fn)(sardine_cache *cache, const struct sardine_query *query,
                             struct sardine_answer *answer);
int abi_lookup(abi_lookup_fn fn, sardine_cache *cache, const struct sardine_query *query,
               struct sardine_answer *answer);

#endif
