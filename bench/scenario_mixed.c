/* SPDX-License-Identifier: MIT
 *
 * A full cache in use: nine lookups of questions that come again and again, then a question that is new and
 * whose answer is inserted, which evicts another. With one thread, and with several.
 */
#include "bench.h"
#include "client.h"
#include "fill.h"
#include "workload.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 64
#define SHARE       10 /* one of so many operations is an insert */
#define CHUNK       64 /* inserts whose packets are made at once, outside the clock */

static const struct bench_option options[] = {
    {"entries", 1000000, "entries that the cache holds"},
    {"threads", 2, "threads of the second pass"},
    {"operations", 4000000, "lookups and inserts of each thread and pass"},
    {"seed", 1, "of the question list and the order of lookups"},
    {0},
};

static sardine_cache *cache;
static uint64_t entries, seed, operations;

struct worker {
        pthread_t thread;
        pthread_barrier_t *start;
        uint64_t first; /* number of its first new question */
        uint64_t elapsed, lookups, hits, inserts, stored;
};

struct work {
        uint8_t query[CHUNK * SHARE][WORKLOAD_QUERY_MAX];
        size_t len[CHUNK * SHARE];
        uint8_t response[CHUNK][WORKLOAD_RESPONSE_MAX];
        size_t response_len[CHUNK];
        uint8_t reply[REPLY_MAX];
        struct sardine_token token;
};

static void *run(void *arg)
{
        struct worker *w = arg;
        struct work *work = calloc(1, sizeof *work);
        memset(work, 1, sizeof *work);
        pthread_barrier_wait(w->start);
        for (uint64_t done = 0; done < operations; done += CHUNK * SHARE) {
                for (unsigned i = 0; i < CHUNK * SHARE; i++) {
                        bool new = i % SHARE == SHARE - 1;
                        uint64_t question =
                            new ? w->first++ : 2 * fill_random(seed ^ w->first, done + i, entries / 2);
                        work->len[i] = workload_query(seed, question, work->query[i]);
                        if (new)
                                work->response_len[i / SHARE] = workload_response(
                                    work->query[i], work->len[i], FILL_TTL, false, work->response[i / SHARE]);
                }
                uint64_t start = bench_now();
                for (unsigned i = 0; i < CHUNK * SHARE; i++) {
                        size_t len;
                        int outcome = client_lookup(cache, work->query[i], work->len[i], work->reply, &len,
                                                    &work->token);
                        if (i % SHARE != SHARE - 1) {
                                w->lookups++;
                                w->hits += outcome == SARDINE_HIT;
                        } else if (outcome == SARDINE_MISS) {
                                w->inserts++;
                                w->stored += sardine_insert(cache, &work->token, work->response[i / SHARE],
                                                            work->response_len[i / SHARE], NULL,
                                                            NULL) == SARDINE_STORED;
                        }
                }
                w->elapsed += bench_now() - start;
        }
        free(work);
        return NULL;
}

/* Operations a second of all threads together, counting the time that they spend on them. */
static double pass(unsigned threads, uint64_t first, struct worker *sum)
{
        struct worker workers[THREADS_MAX];
        pthread_barrier_t start;
        double rate = 0;
        pthread_barrier_init(&start, NULL, threads);
        for (unsigned t = 0; t < threads; t++) {
                workers[t] = (struct worker){.start = &start, .first = first + t * operations};
                if (pthread_create(&workers[t].thread, NULL, run, &workers[t]))
                        bench_die("cannot start %u threads", threads);
        }
        for (unsigned t = 0; t < threads; t++) {
                struct worker *w = &workers[t];
                pthread_join(w->thread, NULL);
                rate += (double)(w->lookups + w->inserts) * 1e9 / (double)w->elapsed;
                sum->lookups += w->lookups;
                sum->hits += w->hits;
                sum->inserts += w->inserts;
                sum->stored += w->stored;
        }
        pthread_barrier_destroy(&start);
        return rate;
}

/* Every second entry is what is asked again and again: let the cache know. */
static void make_popular(void)
{
        static uint8_t query[WORKLOAD_QUERY_MAX], reply[REPLY_MAX];
        for (uint64_t k = 0; k < 4 * (entries / 2); k++) {
                size_t reply_len, len = workload_query(seed, 2 * (k % (entries / 2)), query);
                client_lookup(cache, query, len, reply, &reply_len, NULL);
                if (k % 65536 == 0)
                        bench_progress("make popular", k, 2 * entries);
        }
}

static void mixed_run(void)
{
        unsigned threads = (unsigned)bench_option("threads");
        entries = (uint64_t)bench_option("entries");
        operations = (uint64_t)bench_option("operations") / (CHUNK * SHARE) * (CHUNK * SHARE);
        seed = (uint64_t)bench_option("seed");
        if (entries < 2 || !operations || threads < 1 || threads > THREADS_MAX)
                bench_die("entries at least 2, operations %d, threads 1 to %d", CHUNK * SHARE, THREADS_MAX);
        struct sardine_options opt = client_options();
        opt.max_entries = entries;
        cache = client_create(&opt);
        fill(cache, seed, 0, entries, NULL, "fill");
        make_popular();
        struct worker sum = {0};
        bench_progress("one thread", 0, 2);
        double one = pass(1, entries, &sum);
        bench_progress("all threads", 1, 2);
        double all = pass(threads, entries + operations, &sum);
        bench_progress("all threads", 1, 1);
        if (sum.stored != sum.inserts)
                bench_die("%llu of %llu inserts were not stored",
                          (unsigned long long)(sum.inserts - sum.stored), (unsigned long long)sum.inserts);
        struct sardine_stats stats = client_stats(cache);
        bench_report("entries", "1", (double)stats.entries);
        bench_report("operations_per_s_1", "1/s", one);
        bench_report("threads", "1", threads);
        bench_report("operations_per_s", "1/s", all);
        bench_report("speedup", "1", all / one);
        bench_report("inserts", "1", (double)sum.inserts);
        bench_report("hit_ratio", "1", (double)sum.hits / (double)sum.lookups);
        bench_report("evicted", "1", (double)stats.evicted);
        sardine_destroy(cache);
}

const struct scenario scenario_mixed = {
    .name = "mixed",
    .about = "90 % lookups, 10 % inserts in a full cache, with one thread and with several",
    .options = options,
    .run = mixed_run,
};
