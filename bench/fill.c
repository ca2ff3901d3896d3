/* SPDX-License-Identifier: MIT */
#include "fill.h"

#include "bench.h"

#include <string.h>

#define BATCH 256

static struct fill_pair pairs[BATCH];
static uint8_t reply[REPLY_MAX];
static struct sardine_token token;

void fill_touch(void)
{
        memset(pairs, 1, sizeof pairs);
        memset(reply, 1, sizeof reply);
        memset(&token, 1, sizeof token);
}

double fill_with(sardine_cache *cache, fill_make make, const void *ctx, uint64_t from, uint64_t to,
                 atomic_ullong *present, const char *step)
{
        uint64_t elapsed = 0;
        for (uint64_t done = from; done < to;) {
                unsigned n = to - done < BATCH ? (unsigned)(to - done) : BATCH, stored = 0;
                for (unsigned k = 0; k < n; k++)
                        make(ctx, done + k, &pairs[k]);
                uint64_t start = bench_now();
                for (unsigned k = 0; k < n; k++) {
                        const struct fill_pair *pair = &pairs[k];
                        size_t len;
                        if (client_lookup(cache, pair->query, pair->query_len, reply, &len, &token) ==
                            SARDINE_MISS)
                                stored += sardine_insert(cache, &token, pair->response, pair->response_len,
                                                         NULL, NULL) == SARDINE_STORED;
                }
                elapsed += bench_now() - start;
                if (stored != n)
                        bench_die("%u of %u answers were not new or not stored", n - stored, n);
                done += n;
                if (present)
                        atomic_store(present, done);
                if (done / (BATCH * 64) != (done - n) / (BATCH * 64))
                        bench_progress(step, done, to);
        }
        bench_progress(step, 1, 1);
        return (double)(to - from) * 1e9 / (double)elapsed;
}

static void make_pair(const void *ctx, uint64_t i, struct fill_pair *pair)
{
        const uint64_t *seed = ctx;
        pair->query_len = workload_query(*seed, i, pair->query);
        pair->response_len = workload_response(pair->query, pair->query_len, FILL_TTL, false, pair->response);
}

double fill(sardine_cache *cache, uint64_t seed, uint64_t from, uint64_t to, atomic_ullong *present,
            const char *step)
{
        return fill_with(cache, make_pair, &seed, from, to, present, step);
}

uint64_t fill_random(uint64_t seed, uint64_t k, uint64_t n)
{
        return (uint64_t)((unsigned __int128)workload_mix(seed ^ workload_mix(k)) * n >> 64);
}
