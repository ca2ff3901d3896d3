/* SPDX-License-Identifier: MIT
 *
 * One cache that nobody told how much will come: what an entry and a lookup cost as it grows from nothing to
 * millions of entries, how long a lookup can take while it does, and what a cache for few entries takes.
 */
#include "bench.h"
#include "client.h"
#include "workload.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define BATCH      256
#define TTL        86400
#define BUDGET     (14e9)
#define LOOKUPS    2000000
#define FEW        100
#define GROUP      16      /* lookups between two readings of the processor time */
#define SUSPECT    20000   /* ns: a lookup that took longer may have been descheduled */
#define STILL      2000000 /* timed lookups while nothing grows */
#define BIN        50      /* ns */
#define BINS       2000000 /* to 100 ms */
#define START_READ 10000   /* entries that must be there before the reader starts */

static const struct bench_option options[] = {
    {"entries", 10000000, "grow to as many; 1e8 takes 13 GB and a quarter of an hour"},
    {"seed", 1, "of the question list and the order of lookups"},
    {0},
};

static sardine_cache *cache;
static uint64_t seed;
static atomic_ullong present; /* entries that the reader may expect */
static atomic_bool growing;

/* How long lookups took, one by one. */
struct times {
        uint64_t n, misses, above_1ms;
        uint64_t faults, slept; /* page faults, and times that the thread went to sleep by itself */
        uint64_t max, max_wall;
        uint32_t *bins;
};

static uint64_t random_entry(uint64_t k, uint64_t n)
{
        return (uint64_t)((unsigned __int128)workload_mix(seed ^ workload_mix(k)) * n >> 64);
}

static void fill_to(uint64_t from, uint64_t to, double *per_s)
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
                        response_len[k] = workload_response(query[k], query_len[k], TTL, false, response[k]);
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
                atomic_store(&present, done);
                if (done % (BATCH * 64) == 0)
                        bench_progress("grow", done, to);
        }
        bench_progress("grow", 1, 1);
        *per_s = (double)(to - from) * 1e9 / (double)elapsed;
}

static uint64_t processor_time(void)
{
        struct timespec t;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct rusage thread_usage(void)
{
        struct rusage usage;
        getrusage(RUSAGE_THREAD, &usage);
        return usage;
}

/* A few lookups one by one by the wall clock. Time that the thread did not run although it wanted to, which
 * is wall time less processor time, is taken off the slowest of them; but not if the thread went to sleep by
 * itself, because then it was the lookup that waited for something. */
static void time_group(struct times *times, uint64_t k)
{
        static _Thread_local uint8_t query[GROUP][WORKLOAD_QUERY_MAX], reply[REPLY_MAX];
        uint64_t query_len[GROUP], took[GROUP], n = atomic_load(&present);
        unsigned slowest = 0;
        for (unsigned i = 0; i < GROUP; i++)
                query_len[i] = workload_query(seed, random_entry(k + i, n), query[i]);
        struct rusage before = thread_usage();
        uint64_t processor = processor_time(), first = bench_now(), start = first, end = first;
        for (unsigned i = 0; i < GROUP; i++, start = end) {
                size_t len;
                int outcome = client_lookup(cache, query[i], query_len[i], reply, &len, NULL);
                end = bench_now();
                took[i] = end - start;
                times->misses += outcome != SARDINE_HIT;
                if (took[i] > took[slowest])
                        slowest = i;
        }
        processor = processor_time() - processor;
        struct rusage after = thread_usage();
        bool slept = after.ru_nvcsw != before.ru_nvcsw;
        uint64_t wall = end - first;
        if (took[slowest] > times->max_wall)
                times->max_wall = took[slowest];
        if (took[slowest] > SUSPECT && wall > processor && !slept)
                took[slowest] -= wall - processor < took[slowest] ? wall - processor : took[slowest];
        for (unsigned i = 0; i < GROUP; i++) {
                times->bins[took[i] / BIN < BINS ? took[i] / BIN : BINS - 1]++;
                times->above_1ms += took[i] > 1000000;
                if (took[i] > times->max)
                        times->max = took[i];
        }
        times->n += GROUP;
        times->faults += (uint64_t)(after.ru_minflt - before.ru_minflt);
        times->slept += slept;
}

static void *read_while_growing(void *arg)
{
        while (atomic_load(&present) < START_READ && atomic_load(&growing))
                nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        for (uint64_t k = 0; atomic_load(&growing); k += GROUP)
                time_group(arg, k);
        return NULL;
}

static double percentile(const struct times *times, double share)
{
        uint64_t below = 0, wanted = (uint64_t)ceil(share * (double)times->n);
        unsigned bin = 0;
        while (bin < BINS - 1 && (below += times->bins[bin]) < wanted)
                bin++;
        return (bin + 1.0) * BIN;
}

static void report(const char *name, const char *suffix, const char *unit, double value)
{
        char field[64];
        snprintf(field, sizeof field, "%s%s", name, suffix);
        bench_report(field, unit, value);
}

static void report_times(const struct times *times, const char *suffix)
{
        report("lookups", suffix, "1", (double)times->n);
        report("misses", suffix, "1", (double)times->misses);
        report("lookup_us_p9999", suffix, "us", percentile(times, 0.9999) / 1e3);
        report("lookup_us_max", suffix, "us", (double)times->max / 1e3);
        report("lookup_us_max_wall", suffix, "us", (double)times->max_wall / 1e3);
        report("page_faults", suffix, "1", (double)times->faults);
        report("sleeps", suffix, "1", (double)times->slept);
        report("lookups_above_1ms", suffix, "1", (double)times->above_1ms);
}

static double lookup_ns(uint64_t n)
{
        static uint8_t query[BATCH][WORKLOAD_QUERY_MAX], reply[REPLY_MAX];
        static size_t query_len[BATCH];
        uint64_t elapsed = 0, done = 0;
        for (; done < LOOKUPS; done += BATCH) {
                for (unsigned k = 0; k < BATCH; k++)
                        query_len[k] = workload_query(seed, random_entry(done + k, n), query[k]);
                uint64_t start = bench_now();
                for (unsigned k = 0; k < BATCH; k++) {
                        size_t len;
                        client_lookup(cache, query[k], query_len[k], reply, &len, NULL);
                }
                elapsed += bench_now() - start;
                if (done % (BATCH * 64) == 0)
                        bench_progress("look up", done, LOOKUPS);
        }
        bench_progress("look up", 1, 1);
        return (double)elapsed / (double)done;
}

/* A cache with room for a hundred entries, and one with room for millions that holds a hundred. */
static void measure_few(const char *suffix, uint64_t max_entries, uint64_t max_bytes)
{
        struct sardine_options opt = client_options();
        double per_s;
        opt.max_entries = max_entries;
        opt.max_bytes = max_bytes;
        uint64_t rss = bench_rss();
        cache = client_create(&opt);
        fill_to(0, FEW, &per_s);
        report("bytes_rss", suffix, "byte", (double)(bench_rss() - rss));
        report("bytes_accounted", suffix, "byte", (double)client_stats(cache).bytes);
        sardine_destroy(cache);
}

static void check_memory(uint64_t entries)
{
        char line[128];
        unsigned long long kib = 0;
        FILE *f = fopen("/proc/meminfo", "r");
        while (f && fgets(line, sizeof line, f) && sscanf(line, "MemAvailable: %llu", &kib) != 1)
                ;
        if (f)
                fclose(f);
        if ((double)entries * 140 > BUDGET)
                bench_die("so many entries do not fit in %.0f GB", BUDGET / 1e9);
        if ((double)entries * 140 + 500e6 > (double)kib * 1024)
                bench_die("so many entries need %.1f GB, and %.1f GB are available",
                          (double)entries * 140e-9 + 0.5, (double)kib * 1024e-9);
}

static void scale_run(void)
{
        uint64_t entries = (uint64_t)bench_option("entries"), from = 0;
        double base = 0;
        seed = (uint64_t)bench_option("seed");
        if (entries < START_READ)
                bench_die("entries must be at least %d", START_READ);
        check_memory(entries);
        /* The first cache of the process brings code and tables of the library into memory. */
        struct sardine_options opt = client_options();
        cache = client_create(&opt);
        fill_to(0, FEW, &base);
        sardine_destroy(cache);
        measure_few("_for_100", FEW, 0);
        measure_few("_with_100", 0, (uint64_t)BUDGET);

        static uint32_t grown_bins[BINS], still_bins[BINS];
        struct times grown = {.bins = grown_bins}, still = {.bins = still_bins};
        memset(grown_bins, 1, sizeof grown_bins); /* to have it in memory before anything is measured */
        memset(grown_bins, 0, sizeof grown_bins);
        pthread_t reader;
        opt.max_bytes = (uint64_t)BUDGET;
        uint64_t rss = bench_rss();
        atomic_store(&present, 0);
        cache = client_create(&opt);
        for (uint64_t size = 1000000; from < entries; size *= 10) {
                uint64_t to = size < entries ? size : entries;
                char suffix[32];
                double per_s;
                snprintf(suffix, sizeof suffix, "_%gm", (double)to / 1e6);
                atomic_store(&growing, true);
                if (pthread_create(&reader, NULL, read_while_growing, &grown))
                        bench_die("cannot start a thread");
                fill_to(from, to, &per_s);
                atomic_store(&growing, false);
                pthread_join(reader, NULL);
                struct sardine_stats stats = client_stats(cache);
                if (stats.entries != to)
                        bench_die("%llu of %llu entries are there", (unsigned long long)stats.entries,
                                  (unsigned long long)to);
                report("bytes_per_entry_rss", suffix, "byte", (double)(bench_rss() - rss) / (double)to);
                report("bytes_per_entry_accounted", suffix, "byte", (double)stats.bytes / (double)to);
                report("insert_per_s", suffix, "1/s", per_s);
                double ns = lookup_ns(to);
                report("lookup_ns_mean", suffix, "ns", ns);
                if (!from)
                        base = ns;
                else
                        report("lookup_cost", suffix, "1", ns / base);
                from = to;
        }
        for (uint64_t k = 0; k < STILL; k += GROUP) {
                time_group(&still, k);
                if (k % (GROUP * 1024) == 0)
                        bench_progress("look up one by one", k, STILL);
        }
        bench_progress("look up one by one", 1, 1);
        bench_report("entries", "1", (double)entries);
        report_times(&grown, "_growing");
        report_times(&still, "_still");
        sardine_destroy(cache);
}

const struct scenario scenario_scale = {
    .name = "scale",
    .about =
        "a cache that grows: bytes and lookups at 1 and 10 million entries, the longest lookup meanwhile",
    .options = options,
    .run = scale_run,
};
