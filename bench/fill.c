/* SPDX-License-Identifier: MIT */
#include "fill.h"

#include "bench.h"
#include "workload.h"

#include <string.h>

#define BATCH 256

double fill(sardine_cache *cache, uint64_t seed, uint64_t from, uint64_t to, atomic_ullong *present,
            const char *step)
{
        static uint8_t query[BATCH][WORKLOAD_QUERY_MAX], response[BATCH][WORKLOAD_RESPONSE_MAX],
            reply[REPLY_MAX];
        static size_t query_len[BATCH], response_len[BATCH];
        static struct sardine_token token;
        uint64_t elapsed = 0;
        for (uint64_t done = from; done < to;) {
                unsigned n = to - done < BATCH ? (unsigned)(to - done) : BATCH, stored = 0;
                for (unsigned k = 0; k < n; k++) {
                        query_len[k] = workload_query(seed, done + k, query[k]);
                        response_len[k] =
                            workload_response(query[k], query_len[k], FILL_TTL, false, response[k]);
                }
                uint64_t start = bench_now();
                for (unsigned k = 0; k < n; k++) {
                        size_t len;
                        if (client_lookup(cache, query[k], query_len[k], reply, &len, &token) == SARDINE_MISS)
                                stored += sardine_insert(cache, &token, response[k], response_len[k], NULL,
                                                         NULL) == SARDINE_STORED;
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

uint64_t fill_random(uint64_t seed, uint64_t k, uint64_t n)
{
        return (uint64_t)((unsigned __int128)workload_mix(seed ^ workload_mix(k)) * n >> 64);
}
