/* SPDX-License-Identifier: MIT */
#include "bench.h"
#include "client.h"

struct sardine_options client_options(void)
{
        struct sardine_options options;
        sardine_options_init(&options, sizeof options);
        return options;
}

sardine_cache *client_create(const struct sardine_options *options)
{
        sardine_cache *cache;
        int err = sardine_create(options, &cache);
        if (err)
                bench_die("sardine_create: %s", sardine_strerror(err));
        return cache;
}

struct sardine_stats client_stats(sardine_cache *cache)
{
        struct sardine_stats stats = {.sz = sizeof stats};
        sardine_stats_get(cache, &stats);
        return stats;
}

int client_lookup(sardine_cache *cache, const uint8_t *query, size_t len, uint8_t reply[REPLY_MAX],
                  size_t *reply_len, struct sardine_token *token)
{
        struct sardine_query q = {.sz = sizeof q, .packet = query, .len = len};
        struct sardine_answer a = {.sz = sizeof a, .buf = reply, .cap = REPLY_MAX, .token = token};
        int outcome = sardine_lookup(cache, &q, &a);
        *reply_len = a.len;
        return outcome;
}
