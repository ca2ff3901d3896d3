/* SPDX-License-Identifier: MIT
 *
 * The reference workload through the public functions: fill with `entries` answers (look up, miss, insert),
 * then look up random ones. Wire bytes in, wire bytes out.
 */
#include "bench.h"
#include "client.h"
#include "fill.h"
#include "workload.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LOOKUPS 4000000 /* at most, in a pass */
#define SAMPLES 1000000 /* lookups timed one by one, at most */
#define CHECKED 20000   /* replies compared with what the upstream said, at most */
#define GROUP   32      /* queries in one call of sardine_lookup_batch() */

static const struct bench_option options[] = {
    {"entries", 1000000, "answers to fill in"},
    {"threads", 2, "threads of the second lookup pass"},
    {"budget", 0, "the cache's byte budget; 0: none but the entries"},
    {"seed", 1, "of the question list and the order of lookups"},
    {"rot13", 0, "1: turn the letters of all names by 13, so that no word of theirs is known"},
    {0},
};

static sardine_cache *cache;
static uint64_t entries, seed;
static uint64_t rss_before;
static int64_t allocations_before;
static bool rot13;

/* Queries of random entries, packed: a length byte, the query. */
static uint8_t *list;
static size_t list_size;
static uint64_t n_lookups;

static size_t make_query(uint64_t i, uint8_t query[WORKLOAD_QUERY_MAX])
{
        size_t len = workload_query(seed, i, query);
        if (rot13)
                for (size_t at = 12; query[at]; at += 1u + query[at])
                        for (size_t k = at + 1; k <= at + query[at]; k++)
                                if (query[k] >= 'a')
                                        query[k] = (uint8_t)('a' + (query[k] - 'a' + 13) % 26);
        return len;
}

static double share(uint64_t part, uint64_t of)
{
        return (double)part / (double)of;
}

static void make_pair(const void *ctx, uint64_t i, struct fill_pair *pair)
{
        (void)ctx;
        pair->query_len = make_query(i, pair->query);
        pair->response_len = workload_response(pair->query, pair->query_len, FILL_TTL, false, pair->response);
}

/* Look up, miss, insert: answers a second. */
static double fill_in(const char *step)
{
        if (!cache) {
                fill_touch();
                allocations_before = bench_allocations();
                rss_before = bench_rss();
                struct sardine_options opt = client_options();
                opt.max_entries = entries;
                opt.max_bytes = (uint64_t)bench_option("budget");
                cache = client_create(&opt);
        }
        return fill_with(cache, make_pair, NULL, 0, entries, NULL, step);
}

/* The first fill, and what it took. Returns the bytes. */
static double measure_fill(void)
{
        double first = fill_in("fill");
        uint64_t grown = bench_rss() - rss_before;
        int64_t allocations = bench_allocations() - allocations_before;
        struct sardine_stats stats = client_stats(cache);
        if (stats.entries != entries && !bench_option("budget"))
                bench_die("%llu of %llu entries are there", (unsigned long long)stats.entries,
                          (unsigned long long)entries);
        bench_report("entries", "1", (double)stats.entries);
        bench_report("bytes_per_entry_rss", "byte", share(grown, stats.entries));
        bench_report("bytes_per_entry_accounted", "byte", share(stats.bytes, stats.entries));
        if (bench_allocations() >= 0)
                bench_report("allocs_per_entry", "1", share((uint64_t)allocations, stats.entries));
        bench_report("insert_per_s", "1/s", first);
        return (double)grown;
}

/* The same once more into memory that the cache has already: the first time, much of it went into the
 * system's page faults. */
static void measure_refill(void)
{
        const struct sardine_selector everything = {.sz = sizeof everything};
        if (sardine_expunge(cache, &everything) < 0)
                bench_die("not everything could be expunged");
        bench_report("insert_per_s_steady", "1/s", fill_in("fill again"));
}

static void make_list(void)
{
        n_lookups = 2 * entries < LOOKUPS ? 2 * entries : LOOKUPS;
        list_size = n_lookups * (WORKLOAD_QUERY_MAX + 1);
        list = bench_map(list_size, false);
        uint8_t *at = list;
        for (uint64_t k = 0; k < n_lookups; k++) {
                uint64_t r = workload_mix(seed ^ workload_mix(k));
                uint64_t i = (uint64_t)((unsigned __int128)r * entries >> 64);
                at[0] = (uint8_t)make_query(i, at + 1);
                at += 1 + at[0];
                if (k % 65536 == 0)
                        bench_progress("make queries", k, n_lookups + 1);
        }
}

/* The reply must be what the upstream said, but for a lower TTL. With a budget some entries may be gone. */
static void check_replies(void)
{
        static uint8_t expected[WORKLOAD_RESPONSE_MAX], buf[REPLY_MAX];
        const uint8_t *query = list;
        uint64_t hits = 0, n = n_lookups < CHECKED ? n_lookups : CHECKED;
        for (uint64_t k = 0; k < n; k++, query += 1 + query[0]) {
                size_t len, want = workload_response(query + 1, query[0], FILL_TTL, false, expected);
                int outcome = client_lookup(cache, query + 1, query[0], buf, &len, NULL);
                if (outcome == SARDINE_MISS && bench_option("budget"))
                        continue;
                if (outcome != SARDINE_HIT || len != want)
                        bench_die("lookup: outcome %d, %zu bytes where the upstream sent %zu", outcome, len,
                                  want);
                hits++;
                size_t at = workload_question_end(buf, len);
                for (unsigned record = 0; record < expected[7]; record++) {
                        memcpy(expected + at + 6, buf + at + 6, 4);
                        at += 12u + (unsigned)(expected[at + 10] << 8 | expected[at + 11]);
                }
                if (memcmp(buf, expected, at))
                        bench_die("a reply differs from what the upstream sent");
        }
        bench_report("hit_ratio", "1", share(hits, n));
}

struct pass {
        pthread_t thread;
        pthread_barrier_t *start;
        uint64_t skip; /* so many lookups from the start of the list */
        uint64_t elapsed;
};

static void *lookup_pass(void *arg)
{
        struct pass *pass = arg;
        uint8_t *buf = malloc(REPLY_MAX);
        const uint8_t *query = list, *first;
        size_t len;
        for (uint64_t k = 0; k < pass->skip; k++)
                query += 1 + query[0];
        first = query;
        pthread_barrier_wait(pass->start);
        uint64_t start = bench_now();
        for (uint64_t k = pass->skip; k < n_lookups; k++, query += 1 + query[0])
                client_lookup(cache, query + 1, query[0], buf, &len, NULL);
        for (query = list; query < first; query += 1 + query[0])
                client_lookup(cache, query + 1, query[0], buf, &len, NULL);
        pass->elapsed = bench_now() - start;
        free(buf);
        return NULL;
}

/* All threads go through the whole list, each from a place of its own. Lookups a second of all together. */
static double lookup_rate(unsigned threads)
{
        struct pass *pass = calloc(threads, sizeof *pass);
        pthread_barrier_t start;
        double rate = 0;
        pthread_barrier_init(&start, NULL, threads);
        for (unsigned t = 0; t < threads; t++) {
                pass[t] = (struct pass){.start = &start, .skip = n_lookups / threads * t};
                if (pthread_create(&pass[t].thread, NULL, lookup_pass, &pass[t]))
                        bench_die("cannot start %u threads", threads);
        }
        for (unsigned t = 0; t < threads; t++) {
                pthread_join(pass[t].thread, NULL);
                rate += share(n_lookups, pass[t].elapsed) * 1e9;
        }
        pthread_barrier_destroy(&start);
        free(pass);
        return rate;
}

/* The same lookups as in a pass of one thread, in groups. Mean time of a lookup; filling in the structs is
 * part of it. */
__attribute__((noinline)) static double look_up_in_batches(void)
{
        static uint8_t buf[GROUP][WORKLOAD_UDP_SIZE];
        struct sardine_query q[GROUP] = {{0}};
        struct sardine_answer a[GROUP] = {{0}};
        int outcome[GROUP];
        const uint8_t *query = list;
        uint64_t hits = 0, start = bench_now();
        for (uint64_t k = 0; k < n_lookups;) {
                unsigned n = n_lookups - k < GROUP ? (unsigned)(n_lookups - k) : GROUP;
                for (unsigned i = 0; i < n; i++, query += 1 + query[0]) {
                        q[i].sz = sizeof *q;
                        q[i].packet = query + 1;
                        q[i].len = query[0];
                        a[i].sz = sizeof *a;
                        a[i].buf = buf[i];
                        a[i].cap = sizeof *buf;
                }
                if (sardine_lookup_batch(cache, n, q, a, outcome))
                        bench_die("a batch was refused");
                for (unsigned i = 0; i < n; i++)
                        hits += outcome[i] == SARDINE_HIT;
                k += n;
        }
        double elapsed = (double)(bench_now() - start);
        if (hits != n_lookups && !bench_option("budget"))
                bench_die("%llu of %llu lookups in batches hit", (unsigned long long)hits,
                          (unsigned long long)n_lookups);
        return elapsed / (double)n_lookups;
}

static int by_value(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
        return x < y ? -1 : x > y;
}

/* Each lookup between two readings of the clock; the median cost of two readings with nothing between them is
 * taken off. */
static void report_percentiles(void)
{
        static uint8_t buf[REPLY_MAX];
        const uint8_t *query = list;
        uint64_t n = n_lookups < SAMPLES ? n_lookups : SAMPLES;
        uint32_t *sample = calloc(n, sizeof *sample);
        for (uint64_t k = 0; k < n; k++) {
                uint64_t start = bench_now();
                sample[k] = (uint32_t)(bench_now() - start);
        }
        qsort(sample, n, sizeof *sample, by_value);
        double clock = sample[n / 2];
        for (uint64_t k = 0; k < n; k++, query += 1 + query[0]) {
                size_t len;
                uint64_t start = bench_now();
                client_lookup(cache, query + 1, query[0], buf, &len, NULL);
                sample[k] = (uint32_t)(bench_now() - start);
        }
        qsort(sample, n, sizeof *sample, by_value);
        bench_report("lookup_ns_p50", "ns", fmax(0, sample[n / 2] - clock));
        bench_report("lookup_ns_p99", "ns", fmax(0, sample[n * 99 / 100] - clock));
        free(sample);
}

static void seed_run(void)
{
        unsigned threads = (unsigned)bench_option("threads");
        entries = (uint64_t)bench_option("entries");
        seed = (uint64_t)bench_option("seed");
        rot13 = bench_option("rot13") != 0;
        if (!entries || !threads)
                bench_die("entries and threads must be at least 1");
        double grown = measure_fill();
        measure_refill();
        make_list();
        check_replies();
        bench_progress("look up", 0, 3);
        double one = lookup_rate(1);
        bench_progress("look up", 1, 3);
        double all = lookup_rate(threads);
        bench_progress("look up", 2, 3);
        double batch = look_up_in_batches();
        bench_progress("look up", 1, 1);
        bench_report("lookup_ns_mean", "ns", 1e9 / one);
        report_percentiles();
        bench_report("threads", "1", threads);
        bench_report("lookup_per_s", "1/s", all);
        bench_report("lookup_speedup", "1", all / one);
        bench_report("lookup_batch_ns", "ns", batch);

        struct sardine_stats stats = client_stats(cache);
        bench_unmap(list, list_size);
        sardine_destroy(cache);
        double chase = bench_chase_ns((uint64_t)grown, stats.huge_pages);
        bench_report("chase_ns", "ns", chase);
        bench_report("ratio", "1", 1e9 / one / chase);
        bench_report("batch_ratio", "1", batch / chase);
        bench_report("huge_pages", "1", stats.huge_pages);
        bench_report("jemalloc", "1", stats.jemalloc);
}

const struct scenario scenario_seed = {
    .name = "seed",
    .about = "the reference workload: bytes an entry, fills and lookups a second",
    .options = options,
    .run = seed_run,
};
