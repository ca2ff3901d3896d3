/* SPDX-License-Identifier: MIT */
#include "times.h"

#include "bench.h"
#include "client.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define SUSPECT 20000   /* ns: a call that took longer may have been descheduled */
#define BIN     50      /* ns */
#define BINS    2000000 /* to 100 ms */

void times_init(struct times *times)
{
        *times = (struct times){.bins = bench_map(BINS * sizeof *times->bins, false)};
        /* In memory before anything is measured. */
        memset(times->bins, 0, BINS * sizeof *times->bins);
}

void times_fini(struct times *times)
{
        bench_unmap(times->bins, BINS * sizeof *times->bins);
}

static void keep_larger(uint64_t *max, uint64_t value)
{
        if (*max < value)
                *max = value;
}

void times_add(struct times *sum, const struct times *times)
{
        sum->n += times->n;
        sum->above_1ms += times->above_1ms;
        sum->faults += times->faults;
        sum->slept += times->slept;
        sum->clock_above_1ms += times->clock_above_1ms;
        keep_larger(&sum->max, times->max);
        keep_larger(&sum->max_wall, times->max_wall);
        keep_larger(&sum->clock_max, times->clock_max);
        for (unsigned bin = 0; bin < BINS; bin++)
                sum->bins[bin] += times->bins[bin];
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

/* What happens to a thread that does nothing but look at the clock is done to it by the machine. */
static void read_clock(struct times *times, uint64_t from, uint64_t span)
{
        for (uint64_t last = from, now; last < from + span; last = now) {
                now = bench_now();
                keep_larger(&times->clock_max, now - last);
                times->clock_above_1ms += now - last > 1000000;
        }
}

struct work {
        sardine_cache *cache;
        struct times_group *lookups; /* or */
        struct times_inserts *inserts;
};

static void look_up(const struct work *work, unsigned i)
{
        static _Thread_local uint8_t reply[REPLY_MAX];
        size_t len;
        struct times_group *group = work->lookups;
        group->outcome[i] = client_lookup(work->cache, group->query[i], group->len[i], reply, &len, NULL);
}

static void insert(const struct work *work, unsigned i)
{
        struct times_inserts *group = work->inserts;
        group->outcome[i] =
            sardine_insert(work->cache, &group->token[i], group->response[i], group->len[i], NULL, NULL);
}

/* Time that the thread did not run although it wanted to, which is wall time less processor time, is taken
 * off the slowest of the group; but not if the thread went to sleep by itself, because then it was the call
 * that waited for something. */
static inline uint64_t time_group(struct times *times, void (*call)(const struct work *work, unsigned i),
                                  const struct work *work)
{
        uint64_t took[TIMES_GROUP];
        unsigned slowest = 0;
        struct rusage before = thread_usage();
        uint64_t processor = processor_time(), first = bench_now(), start = first, end = first;
        for (unsigned i = 0; i < TIMES_GROUP; i++, start = end) {
                call(work, i);
                end = bench_now();
                took[i] = end - start;
                if (took[i] > took[slowest])
                        slowest = i;
        }
        processor = processor_time() - processor;
        struct rusage after = thread_usage();
        bool slept = after.ru_nvcsw != before.ru_nvcsw;
        uint64_t wall = end - first;
        keep_larger(&times->max_wall, took[slowest]);
        if (took[slowest] > SUSPECT && wall > processor && !slept)
                took[slowest] -= wall - processor < took[slowest] ? wall - processor : took[slowest];
        for (unsigned i = 0; i < TIMES_GROUP; i++) {
                times->bins[took[i] / BIN < BINS ? took[i] / BIN : BINS - 1]++;
                times->above_1ms += took[i] > 1000000;
                keep_larger(&times->max, took[i]);
        }
        times->n += TIMES_GROUP;
        times->faults += (uint64_t)(after.ru_minflt - before.ru_minflt);
        times->slept += slept;
        uint64_t calls = 0;
        for (unsigned i = 0; i < TIMES_GROUP; i++)
                calls += took[i];
        read_clock(times, bench_now(), calls);
        return first;
}

uint64_t times_lookup(struct times *times, sardine_cache *cache, struct times_group *group)
{
        const struct work work = {.cache = cache, .lookups = group};
        return time_group(times, look_up, &work);
}

void times_insert(struct times *times, sardine_cache *cache, struct times_inserts *group)
{
        const struct work work = {.cache = cache, .inserts = group};
        time_group(times, insert, &work);
}

double times_percentile(const struct times *times, double share)
{
        uint64_t below = 0, wanted = (uint64_t)ceil(share * (double)times->n);
        unsigned bin = 0;
        while (bin < BINS - 1 && (below += times->bins[bin]) < wanted)
                bin++;
        return (bin + 1.0) * BIN;
}

void times_report(const struct times *times, const char *call, const char *suffix)
{
        const struct {
                const char *name, *unit;
                double value;
        } fields[] = {
            {"%ss%s", "1", (double)times->n},
            {"%s_us_p50%s", "us", times_percentile(times, 0.5) / 1e3},
            {"%s_us_p99%s", "us", times_percentile(times, 0.99) / 1e3},
            {"%s_us_p999%s", "us", times_percentile(times, 0.999) / 1e3},
            {"%s_us_p9999%s", "us", times_percentile(times, 0.9999) / 1e3},
            {"%s_us_max%s", "us", (double)times->max / 1e3},
            {"%s_us_max_wall%s", "us", (double)times->max_wall / 1e3},
            {"%ss_above_1ms%s", "1", (double)times->above_1ms},
            {"%s_clock_us_max%s", "us", (double)times->clock_max / 1e3},
            {"%s_clock_above_1ms%s", "1", (double)times->clock_above_1ms},
            {"%s_page_faults%s", "1", (double)times->faults},
            {"%s_sleeps%s", "1", (double)times->slept},
        };
        char name[64];
        for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++) {
                snprintf(name, sizeof name, fields[i].name, call, suffix);
                bench_report(name, fields[i].unit, fields[i].value);
        }
}
