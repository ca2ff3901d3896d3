/* SPDX-License-Identifier: MIT
 *
 * The last rung: the library through its public functions, with default options.
 */
#include "ladder/ladder.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t clock_ms(void *ctx)
{
        (void)ctx;
        return ladder_clock();
}

static void *create(uint64_t entries)
{
        struct sardine_options options;
        sardine_cache *cache;
        sardine_options_init(&options, sizeof options);
        options.max_entries = entries;
        options.clock = clock_ms;
        int err = sardine_create(&options, &cache);
        if (err) {
                fprintf(stderr, "ladder: %s\n", sardine_strerror(err));
                exit(1);
        }
        return cache;
}

static void destroy(void *cache)
{
        sardine_destroy(cache);
}

static size_t lookup(void *cache, const uint8_t *query, size_t len, bool stream, uint8_t *buf, size_t cap,
                     union ladder_token *token)
{
        struct sardine_query q = {
            .sz = sizeof q, .packet = query, .len = len, .transport = stream ? SARDINE_TCP : SARDINE_UDP};
        struct sardine_answer a = {.sz = sizeof a, .buf = buf, .cap = cap, .token = &token->sardine};
        token->sardine.len = 0;
        return sardine_lookup(cache, &q, &a) == SARDINE_HIT ? a.len : 0;
}

static bool insert(void *cache, const union ladder_token *token, const uint8_t *response, size_t len)
{
        if (!token->sardine.len)
                return false;
        int outcome = sardine_insert(cache, &token->sardine, response, len, NULL, NULL);
        return outcome == SARDINE_STORED || outcome == SARDINE_REPLACED || outcome == SARDINE_REFRESHED;
}

static uint64_t entries(void *cache)
{
        struct sardine_stats stats = {.sz = sizeof stats};
        sardine_stats_get(cache, &stats);
        return stats.entries;
}

const struct ladder_rung ladder_sardine = {
    .name = "sardine",
    .about = "the library",
    .create = create,
    .destroy = destroy,
    .lookup = lookup,
    .insert = insert,
    .entries = entries,
};
