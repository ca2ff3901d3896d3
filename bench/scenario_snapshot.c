/* SPDX-License-Identifier: MIT
 *
 * A cache saved to a file and loaded again: how long both take, what an entry takes on disk, and how long
 * lookups and inserts take meanwhile.
 */
#include "bench.h"
#include "client.h"
#include "fill.h"
#include "times.h"
#include "workload.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FILL_STEP 65536
#define STILL_S   5

static const struct bench_option options[] = {
    {"entries", 10000000, "in the cache"},
    {"inserts", 50000, "a second, by the thread that inserts"},
    {"seed", 1, "of the question list and the order of lookups"},
    {0},
};

static sardine_cache *cache;
static uint64_t seed, entries;
static uint64_t next_new; /* question that has not been asked yet */
static atomic_bool over;

static void *look_up(void *arg)
{
        static struct times_group group;
        for (uint64_t k = 0; !atomic_load(&over); k += TIMES_GROUP) {
                for (unsigned i = 0; i < TIMES_GROUP; i++)
                        group.len[i] =
                            workload_query(seed, fill_random(seed, k + i, entries), group.query[i]);
                times_lookup(arg, cache, &group);
        }
        return NULL;
}

static uint64_t refused;

/* New questions, so many a second; what is not inserting is looking at the clock. */
static void *insert(void *arg)
{
        static struct times_inserts group;
        static uint8_t query[WORKLOAD_QUERY_MAX], reply[REPLY_MAX];
        const uint64_t pace = (uint64_t)(1e9 * TIMES_GROUP / bench_option("inserts"));
        for (uint64_t due = bench_now(); !atomic_load(&over); due += pace) {
                for (unsigned i = 0; i < TIMES_GROUP; i++) {
                        size_t reply_len, len = workload_query(seed, next_new++, query);
                        if (client_lookup(cache, query, len, reply, &reply_len, &group.token[i]) !=
                            SARDINE_MISS)
                                bench_die("a new question is there already");
                        group.len[i] = workload_response(query, len, FILL_TTL, false, group.response[i]);
                }
                times_insert(arg, cache, &group);
                for (unsigned i = 0; i < TIMES_GROUP; i++)
                        refused += group.outcome[i] != SARDINE_STORED;
                while (bench_now() < due)
                        ;
        }
        return NULL;
}

typedef int (*work)(sardine_cache *cache, const char *path, struct sardine_snapshot_result *result);

/* Saving and loading, with nobody beside it, or one who looks up, or one who inserts. */
static const struct beside {
        const char *suffix, *call;
        void *(*run)(void *times);
} alone = {.suffix = ""}, lookups = {"_with_lookups", "lookup", look_up},
  inserts = {"_with_inserts", "insert", insert};

static void measure(const char *name, work fn, const char *path, const struct beside *beside)
{
        struct sardine_snapshot_result result = {.sz = sizeof result};
        struct times times;
        pthread_t thread;
        char field[64];
        atomic_store(&over, false);
        times_init(&times);
        refused = 0;
        if (beside->run && pthread_create(&thread, NULL, beside->run, &times))
                bench_die("cannot start a thread");
        int err = fn(cache, path, &result);
        atomic_store(&over, true);
        if (beside->run)
                pthread_join(thread, NULL);
        if (err)
                bench_die("%s: %s", path, result.why ? result.why : sardine_strerror(err));
        if (result.entries) {
                snprintf(field, sizeof field, "%s_s%s", name, beside->suffix);
                bench_report(field, "s", (double)result.micros / 1e6);
                snprintf(field, sizeof field, "%s_entries%s", name, beside->suffix);
                bench_report(field, "1", (double)result.entries);
        }
        if (beside->run) {
                snprintf(field, sizeof field, "_during_%s", name);
                times_report(&times, beside->call, field);
                snprintf(field, sizeof field, "inserts_refused_during_%s", name);
                if (beside->run == insert)
                        bench_report(field, "1", (double)refused);
        } else {
                bench_report("file_bytes", "byte", (double)result.bytes);
                bench_report("file_bytes_an_entry", "byte", (double)result.bytes / (double)result.entries);
        }
        times_fini(&times);
}

/* What inserts are like by themselves. */
static int nothing(sardine_cache *unused, const char *path, struct sardine_snapshot_result *result)
{
        (void)unused;
        (void)path;
        (void)result;
        nanosleep(&(struct timespec){.tv_sec = STILL_S}, NULL);
        return 0;
}

static void snapshot_run(void)
{
        struct sardine_options opt = client_options();
        char path[] = "/var/tmp/sardine-bench-XXXXXX";
        entries = (uint64_t)bench_option("entries");
        seed = (uint64_t)bench_option("seed");
        opt.max_bytes = entries * 140 + (1 << 20);
        int fd = mkstemp(path);
        if (fd < 0)
                bench_die("cannot write to /var/tmp");
        close(fd);
        cache = client_create(&opt);
        fill(cache, seed, 0, entries, NULL, "fill");
        struct sardine_stats stats = client_stats(cache);
        bench_report("memory_bytes_an_entry", "byte", (double)stats.bytes / (double)stats.entries);
        measure("save", sardine_snapshot_save, path, &alone);
        measure("save", sardine_snapshot_save, path, &lookups);
        sardine_destroy(cache);
        const struct beside *const besides[] = {&alone, &lookups, &inserts};
        next_new = entries;
        for (unsigned i = 0; i < 3; i++) {
                cache = client_create(&opt);
                measure("load", sardine_snapshot_load, path, besides[i]);
                if (i < 2)
                        sardine_destroy(cache);
        }
        measure("nothing_growing", nothing, path, &inserts);
        /* The same in a full cache, where each insert makes room. */
        while (client_stats(cache).evicted == 0) {
                fill(cache, seed, next_new, next_new + FILL_STEP, NULL, "fill up");
                next_new += FILL_STEP;
        }
        measure("nothing_full", nothing, path, &inserts);
        measure("save", sardine_snapshot_save, path, &inserts);
        sardine_destroy(cache);
        unlink(path);
}

const struct scenario scenario_snapshot = {
    "snapshot",
    "a cache saved to a file and loaded again: time, bytes an entry, lookups and inserts meanwhile",
    options,
    snapshot_run,
};
