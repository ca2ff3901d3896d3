/* SPDX-License-Identifier: MIT
 *
 * Removal from a large cache in use: a hundred names and one suffix are expunged by one call while threads
 * look up. When are they gone, and what do the lookups notice? Then the same threads while all entries are
 * walked, dumped (each as a message) and the statistics are read.
 */
#include "bench.h"
#include "client.h"
#include "fill.h"
#include "times.h"
#include "workload.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NAMES       100
#define READERS_MAX 16
#define STILL_NS    1000000000 /* of lookups while nothing happens */
#define CHECKED     200000     /* questions looked up when all is done */

static const struct bench_option options[] = {
    {"entries", 5000000, "answers to fill in"},
    {"threads", 2, "threads that look up"},
    {"seed", 1, "of the question list and the order of lookups"},
    {0},
};

static const uint8_t suffix[] = "\2de"; /* one of the workload's ten */

static sardine_cache *cache;
static uint64_t entries, seed;
static uint64_t every; /* questions whose number is a multiple of this are expunged by name */

/* Since when all that is to be expunged may be missed; 0: not yet. */
static atomic_ullong expunging;
static atomic_bool over;

struct reader {
        pthread_t thread;
        unsigned number;
        struct times times;
        uint64_t refused;  /* lookups that did not find what is there */
        uint64_t last_hit; /* when a lookup of an expunged question began that still found it */
};

static bool below_suffix(const uint8_t *query, size_t len)
{
        size_t end = workload_question_end(query, len) - 4;
        return !memcmp(query + end - sizeof suffix, suffix, sizeof suffix);
}

static bool to_expunge(uint64_t i, const uint8_t *query, size_t len)
{
        return (i % every == 0 && i / every < NAMES) || below_suffix(query, len);
}

/* One lookup of a group is for one of the names. */
static void *read_all_the_time(void *arg)
{
        static _Thread_local struct times_group group;
        struct reader *reader = arg;
        bool doomed[TIMES_GROUP];
        for (uint64_t k = (uint64_t)reader->number << 48; !atomic_load(&over); k += TIMES_GROUP) {
                for (unsigned n = 0; n < TIMES_GROUP; n++) {
                        uint64_t i = fill_random(seed, k + n, n ? entries : NAMES) * (n ? 1 : every);
                        group.len[n] = workload_query(seed, i, group.query[n]);
                        doomed[n] = to_expunge(i, group.query[n], group.len[n]);
                }
                uint64_t began = times_lookup(&reader->times, cache, &group);
                uint64_t since = atomic_load(&expunging);
                for (unsigned n = 0; n < TIMES_GROUP; n++)
                        if (!doomed[n])
                                reader->refused += group.outcome[n] != SARDINE_HIT;
                        else if (group.outcome[n] == SARDINE_HIT && since)
                                reader->last_hit = began;
                        else if (group.outcome[n] != SARDINE_HIT && !since)
                                reader->refused++;
        }
        return NULL;
}

/* Run `what` while the readers read. Returns how long it took, in ns; *last_hit: see struct reader. */
static uint64_t beside_readers(void (*what)(void), const char *name, uint64_t *last_hit)
{
        static struct reader readers[READERS_MAX];
        unsigned n = (unsigned)bench_option("threads");
        struct times sum;
        uint64_t refused = 0;
        times_init(&sum);
        atomic_store(&over, false);
        for (unsigned r = 0; r < n; r++) {
                readers[r] = (struct reader){.number = r + 1};
                times_init(&readers[r].times);
                if (pthread_create(&readers[r].thread, NULL, read_all_the_time, &readers[r]))
                        bench_die("cannot start %u threads", n);
        }
        uint64_t start = bench_now();
        what();
        uint64_t elapsed = bench_now() - start;
        atomic_store(&over, true);
        *last_hit = 0;
        for (unsigned r = 0; r < n; r++) {
                pthread_join(readers[r].thread, NULL);
                times_add(&sum, &readers[r].times);
                times_fini(&readers[r].times);
                refused += readers[r].refused;
                if (*last_hit < readers[r].last_hit)
                        *last_hit = readers[r].last_hit;
        }
        char field[64];
        times_report(&sum, "lookup", name);
        snprintf(field, sizeof field, "refused%s", name);
        bench_report(field, "1", (double)refused);
        times_fini(&sum);
        return elapsed;
}

static void nothing(void)
{
        nanosleep(&(struct timespec){.tv_sec = STILL_NS / 1000000000, .tv_nsec = STILL_NS % 1000000000},
                  NULL);
}

static struct sardine_selector selectors[NAMES + 1];
static uint8_t names[NAMES][WORKLOAD_QUERY_MAX];
static int64_t expunged;

static void make_selectors(void)
{
        for (unsigned k = 0; k < NAMES; k++) {
                size_t len = workload_query(seed, k * every, names[k]);
                selectors[k] = (struct sardine_selector){
                    .sz = sizeof *selectors,
                    .name = names[k] + 12,
                    .name_len = (uint32_t)(workload_question_end(names[k], len) - 4 - 12),
                };
        }
        selectors[NAMES] = (struct sardine_selector){
            .sz = sizeof *selectors, .name = suffix, .name_len = sizeof suffix, .below = 1};
}

static void expunge(void)
{
        /* The readers are to be under way. */
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        atomic_store(&expunging, bench_now());
        expunged = sardine_expunge_many(cache, NAMES + 1, selectors);
}

static int dump(void *ctx, const struct sardine_entry_view *entry)
{
        static uint8_t message[65535];
        uint64_t *bytes = ctx;
        int len = sardine_entry_message(cache, entry, message, sizeof message);
        if (len < 0)
                bench_die("an entry could not be written as a message");
        *bytes += (uint64_t)len;
        return 0;
}

static int64_t dumped;
static uint64_t dumped_bytes;

static void walk(void)
{
        dumped = sardine_walk(cache, NULL, dump, &dumped_bytes);
}

static uint64_t statistics;

static void read_statistics(void)
{
        for (uint64_t start = bench_now(); bench_now() < start + STILL_NS; statistics++)
                client_stats(cache);
}

/* What is left is what should be left. */
static void check(void)
{
        static uint8_t query[WORKLOAD_QUERY_MAX], reply[REPLY_MAX];
        uint64_t n = entries < CHECKED ? entries : CHECKED;
        for (uint64_t k = 0; k < n + NAMES; k++) {
                uint64_t i = k < n ? fill_random(seed, ~k, entries) : (k - n) * every;
                size_t reply_len, len = workload_query(seed, i, query);
                int wanted = to_expunge(i, query, len) ? SARDINE_MISS : SARDINE_HIT;
                if (client_lookup(cache, query, len, reply, &reply_len, NULL) != wanted)
                        bench_die("question %llu is %s", (unsigned long long)i,
                                  wanted == SARDINE_MISS ? "still there" : "gone, too");
        }
}

static void expunge_run(void)
{
        uint64_t last_hit, ignored, doomed = 0;
        entries = (uint64_t)bench_option("entries");
        seed = (uint64_t)bench_option("seed");
        if (entries < 1000 || bench_option("threads") < 1 || bench_option("threads") > READERS_MAX)
                bench_die("at least 1000 entries, 1 to %d threads", READERS_MAX);
        every = entries / NAMES;
        for (uint64_t i = 0; i < entries; i++) {
                uint8_t query[WORKLOAD_QUERY_MAX];
                size_t len = workload_query(seed, i, query);
                doomed += to_expunge(i, query, len);
        }
        struct sardine_options opt = client_options();
        opt.max_entries = entries;
        cache = client_create(&opt);
        fill(cache, seed, 0, entries, NULL, "fill");
        make_selectors();
        bench_report("entries", "1", (double)entries);
        beside_readers(nothing, "_still", &ignored);
        double took = (double)beside_readers(expunge, "_expunging", &last_hit) / 1e6 - 20;
        uint64_t start = atomic_load(&expunging);
        if (expunged < 0 || (uint64_t)expunged != doomed)
                bench_die("%lld entries were expunged, not %llu", (long long)expunged,
                          (unsigned long long)doomed);
        check();
        bench_report("expunged", "1", (double)expunged);
        bench_report("gone_ms", "ms", last_hit > start ? (double)(last_hit - start) / 1e6 : 0);
        bench_report("expunge_ms", "ms", took);
        took = (double)beside_readers(walk, "_dumping", &ignored) / 1e6;
        if (dumped != (int64_t)(entries - doomed))
                bench_die("%lld entries were walked over", (long long)dumped);
        bench_report("dump_ms", "ms", took);
        beside_readers(read_statistics, "_statistics", &ignored);
        bench_report("statistics_per_s", "1/s", (double)statistics * 1e9 / STILL_NS);
        sardine_destroy(cache);
}

const struct scenario scenario_expunge = {
    .name = "expunge",
    .about = "names and a suffix removed from 5 million entries while threads look up; then a dump, and "
             "statistics",
    .options = options,
    .run = expunge_run,
};
