/* SPDX-License-Identifier: MIT
 *
 * One cache that nobody told how much will come: what an entry and a lookup cost as it grows from nothing to
 * millions of entries, how long a lookup can take while it does, and what a cache for few entries takes.
 */
#include "bench.h"
#include "client.h"
#include "fill.h"
#include "times.h"
#include "workload.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define BATCH      256
#define BUDGET     (14e9)
#define LOOKUPS    2000000
#define FEW        100
#define STILL      2000000 /* timed lookups while nothing grows */
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

static struct times grown, still;
static uint64_t misses;

/* A group of lookups of entries that are there. */
static void look_up(struct times *times, uint64_t k)
{
        static _Thread_local struct times_group group;
        uint64_t n = atomic_load(&present);
        for (unsigned i = 0; i < TIMES_GROUP; i++)
                group.len[i] = workload_query(seed, fill_random(seed, k + i, n), group.query[i]);
        times_lookup(times, cache, &group);
        for (unsigned i = 0; i < TIMES_GROUP; i++)
                misses += group.outcome[i] != SARDINE_HIT;
}

static void *read_while_growing(void *arg)
{
        while (atomic_load(&present) < START_READ && atomic_load(&growing))
                nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        for (uint64_t k = 0; atomic_load(&growing); k += TIMES_GROUP)
                look_up(arg, k);
        return NULL;
}

static void report(const char *name, const char *suffix, const char *unit, double value)
{
        char field[64];
        snprintf(field, sizeof field, "%s%s", name, suffix);
        bench_report(field, unit, value);
}

static double lookup_ns(uint64_t n)
{
        static uint8_t query[BATCH][WORKLOAD_QUERY_MAX], reply[REPLY_MAX];
        static size_t query_len[BATCH];
        uint64_t elapsed = 0, done = 0;
        for (; done < LOOKUPS; done += BATCH) {
                for (unsigned k = 0; k < BATCH; k++)
                        query_len[k] = workload_query(seed, fill_random(seed, done + k, n), query[k]);
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
        opt.max_entries = max_entries;
        opt.max_bytes = max_bytes;
        uint64_t rss = bench_rss();
        cache = client_create(&opt);
        fill(cache, seed, 0, FEW, NULL, "fill");
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
        fill(cache, seed, 0, FEW, NULL, "fill");
        sardine_destroy(cache);
        measure_few("_for_100", FEW, 0);
        measure_few("_with_100", 0, (uint64_t)BUDGET);

        times_init(&grown);
        times_init(&still);
        pthread_t reader;
        opt.max_bytes = (uint64_t)BUDGET;
        uint64_t rss = bench_rss();
        atomic_store(&present, 0);
        cache = client_create(&opt);
        for (uint64_t size = 1000000; from < entries; size *= 10) {
                uint64_t to = size < entries ? size : entries;
                char suffix[32];
                snprintf(suffix, sizeof suffix, "_%gm", (double)to / 1e6);
                atomic_store(&growing, true);
                if (pthread_create(&reader, NULL, read_while_growing, &grown))
                        bench_die("cannot start a thread");
                double per_s = fill(cache, seed, from, to, &present, "grow");
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
        bench_report("entries", "1", (double)entries);
        bench_report("misses_growing", "1", (double)misses);
        for (uint64_t k = 0; k < STILL; k += TIMES_GROUP) {
                look_up(&still, k);
                if (k % (TIMES_GROUP * 1024) == 0)
                        bench_progress("look up one by one", k, STILL);
        }
        bench_progress("look up one by one", 1, 1);
        times_report(&grown, "lookup", "_growing");
        times_report(&still, "lookup", "_still");
        times_fini(&grown);
        times_fini(&still);
        sardine_destroy(cache);
}

const struct scenario scenario_scale = {
    .name = "scale",
    .about =
        "a cache that grows: bytes and lookups at 1 and 10 million entries, the longest lookup meanwhile",
    .options = options,
    .run = scale_run,
};
