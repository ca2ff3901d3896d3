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

#define SUSPECT 20000   /* ns: a lookup that took longer may have been descheduled */
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

/* Time that the thread did not run although it wanted to, which is wall time less processor time, is taken
 * off the slowest of the group; but not if the thread went to sleep by itself, because then it was the lookup
 * that waited for something. */
uint64_t times_lookup(struct times *times, sardine_cache *cache, struct times_group *group)
{
        static _Thread_local uint8_t reply[REPLY_MAX];
        uint64_t took[TIMES_GROUP];
        unsigned slowest = 0;
        struct rusage before = thread_usage();
        uint64_t processor = processor_time(), first = bench_now(), start = first, end = first;
        for (unsigned i = 0; i < TIMES_GROUP; i++, start = end) {
                size_t len;
                group->outcome[i] = client_lookup(cache, group->query[i], group->len[i], reply, &len, NULL);
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
        uint64_t lookups = 0;
        for (unsigned i = 0; i < TIMES_GROUP; i++)
                lookups += took[i];
        read_clock(times, bench_now(), lookups);
        return first;
}

double times_percentile(const struct times *times, double share)
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

void times_report(const struct times *times, const char *suffix)
{
        report("lookups", suffix, "1", (double)times->n);
        report("lookup_us_p50", suffix, "us", times_percentile(times, 0.5) / 1e3);
        report("lookup_us_p99", suffix, "us", times_percentile(times, 0.99) / 1e3);
        report("lookup_us_p999", suffix, "us", times_percentile(times, 0.999) / 1e3);
        report("lookup_us_p9999", suffix, "us", times_percentile(times, 0.9999) / 1e3);
        report("lookup_us_max", suffix, "us", (double)times->max / 1e3);
        report("lookup_us_max_wall", suffix, "us", (double)times->max_wall / 1e3);
        report("lookups_above_1ms", suffix, "1", (double)times->above_1ms);
        report("clock_us_max", suffix, "us", (double)times->clock_max / 1e3);
        report("clock_above_1ms", suffix, "1", (double)times->clock_above_1ms);
        report("page_faults", suffix, "1", (double)times->faults);
        report("sleeps", suffix, "1", (double)times->slept);
}
