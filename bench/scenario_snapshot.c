/* SPDX-License-Identifier: MIT
 *
 * A cache saved to a file and loaded again: how long both take, what an entry takes on disk, and how long
 * lookups take meanwhile.
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
#include <unistd.h>

static const struct bench_option options[] = {
    {"entries", 10000000, "in the cache"},
    {"seed", 1, "of the question list and the order of lookups"},
    {0},
};

static sardine_cache *cache;
static uint64_t seed, entries;
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

typedef int (*work)(sardine_cache *cache, const char *path, struct sardine_snapshot_result *result);

/* With somebody looking things up meanwhile, and then alone. */
static void measure(const char *name, work fn, const char *path, bool busy)
{
        struct sardine_snapshot_result result = {.sz = sizeof result};
        struct times times;
        pthread_t reader;
        char field[64];
        atomic_store(&over, !busy);
        times_init(&times);
        if (busy && pthread_create(&reader, NULL, look_up, &times))
                bench_die("cannot start a thread");
        int err = fn(cache, path, &result);
        atomic_store(&over, true);
        if (busy)
                pthread_join(reader, NULL);
        if (err)
                bench_die("%s: %s", path, result.why ? result.why : sardine_strerror(err));
        snprintf(field, sizeof field, "%s_s%s", name, busy ? "_with_lookups" : "");
        bench_report(field, "s", (double)result.micros / 1e6);
        snprintf(field, sizeof field, "%s_entries%s", name, busy ? "_with_lookups" : "");
        bench_report(field, "1", (double)result.entries);
        if (busy) {
                snprintf(field, sizeof field, "_during_%s", name);
                times_report(&times, field);
        } else {
                bench_report("file_bytes", "byte", (double)result.bytes);
                bench_report("file_bytes_an_entry", "byte", (double)result.bytes / (double)result.entries);
        }
        times_fini(&times);
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
        measure("save", sardine_snapshot_save, path, false);
        measure("save", sardine_snapshot_save, path, true);
        sardine_destroy(cache);
        cache = client_create(&opt);
        measure("load", sardine_snapshot_load, path, false);
        sardine_destroy(cache);
        cache = client_create(&opt);
        measure("load", sardine_snapshot_load, path, true);
        sardine_destroy(cache);
        unlink(path);
}

const struct scenario scenario_snapshot = {
    "snapshot",
    "a cache saved to a file and loaded again: time, bytes an entry, lookups meanwhile",
    options,
    snapshot_run,
};
