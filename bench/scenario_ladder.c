/* SPDX-License-Identifier: MIT
 *
 * The seeds' steps, rung by rung, with the reference workload: fill (look up, miss, parse, store), then look
 * up random entries. Wire bytes in, wire bytes out, one thread. Each rung is measured in a process of its
 * own.
 */
#include "bench.h"
#include "ladder/heap.h"
#include "ladder/ladder.h"
#include "workload.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BATCH     256
#define TTL       86400
#define REPLY_MAX 4096
#define CHECKED   20000 /* replies compared with what the upstream said, at most */

static const struct bench_option options[] = {
    {"entries", 1000000, "answers to fill in"},
    {"lookups", 2000000, "lookups to time"},
    {"rung", LADDER_RUNGS, "0..5: only that step, 6: only sardine"},
    {"seed", 1, "of the question list and the order of lookups"},
    {0},
};

static const struct ladder_rung *rung;
static void *cache;
static uint64_t entries, lookups, seed;

static void report(const char *what, const char *unit, double value)
{
        char field[64];
        snprintf(field, sizeof field, "%s_%s", rung->name, what);
        bench_report(field, unit, value);
}

/* Questions and answers are made a batch at a time, outside the clock and in memory that was touched before.
 */
static void fill(void)
{
        static uint8_t query[BATCH][WORKLOAD_QUERY_MAX], response[BATCH][WORKLOAD_RESPONSE_MAX],
            buf[REPLY_MAX];
        static size_t query_len[BATCH], response_len[BATCH];
        static union ladder_token token;
        memset(query, 1, sizeof query);
        memset(response, 1, sizeof response);
        memset(buf, 1, sizeof buf);
        memset(&token, 1, sizeof token);

        int64_t allocations = bench_allocations();
        uint64_t rss = bench_rss(), elapsed = 0;
        cache = rung->create(entries);
        for (uint64_t done = 0; done < entries;) {
                unsigned n = entries - done < BATCH ? (unsigned)(entries - done) : BATCH, stored = 0;
                for (unsigned k = 0; k < n; k++) {
                        query_len[k] = workload_query(seed, done + k, query[k]);
                        response_len[k] = workload_response(query[k], query_len[k], TTL, false, response[k]);
                }
                uint64_t start = bench_now();
                for (unsigned k = 0; k < n; k++)
                        if (!rung->lookup(cache, query[k], query_len[k], false, buf, sizeof buf, &token))
                                stored += rung->insert(cache, &token, response[k], response_len[k]);
                elapsed += bench_now() - start;
                if (stored != n)
                        bench_die("%s: %u of %u answers were not new or not stored", rung->name, n - stored,
                                  n);
                done += n;
                if (done % (BATCH * 64) == 0)
                        bench_progress(rung->name, done, 2 * entries);
        }
        double n = (double)entries;
        rss = bench_rss() - rss;
        allocations = bench_allocations() - allocations;
        if (rung == &ladder_sardine) { /* its memory is not malloc's: by its own account, in whole pages */
                struct sardine_stats stats = {.sz = sizeof stats};
                sardine_stats_get(cache, &stats);
                report("bytes", "byte", (double)stats.bytes / n);
                if (heap_knows_classes())
                        report("class_bytes", "byte", (double)stats.bytes / n);
                if (allocations >= 0)
                        report("blocks", "1", (double)allocations / n);
        } else {
                report("bytes", "byte", (double)heap_count.bytes / n);
                if (heap_knows_classes())
                        report("class_bytes", "byte", (double)heap_count.class_bytes / n);
                report("blocks", "1", (double)heap_count.blocks / n);
        }
        report("rss", "byte", (double)rss / n);
        if (allocations >= 0)
                report("allocations", "1", (double)allocations / n);
        report("insert_per_s", "1/s", n / (double)elapsed * 1e9);
}

static uint64_t random_entry(uint64_t k)
{
        return (uint64_t)((unsigned __int128)workload_mix(seed ^ workload_mix(k)) * entries >> 64);
}

/* The reply must be what the upstream said, but for a lower TTL. */
static void check_replies(void)
{
        static uint8_t query[WORKLOAD_QUERY_MAX], expected[WORKLOAD_RESPONSE_MAX], buf[REPLY_MAX];
        static union ladder_token token;
        for (uint64_t k = 0; k < lookups && k < CHECKED; k++) {
                size_t len = workload_query(seed, random_entry(k), query);
                size_t want = workload_response(query, len, TTL, false, expected);
                size_t got = rung->lookup(cache, query, len, false, buf, sizeof buf, &token);
                size_t at = workload_question_end(expected, want);
                for (unsigned record = 0; got == want && record < expected[7]; record++) {
                        memcpy(expected + at + 6, buf + at + 6, 4);
                        at += 12u + (unsigned)(expected[at + 10] << 8 | expected[at + 11]);
                }
                if (got != want || memcmp(buf, expected, want))
                        bench_die("%s: a reply differs from what the upstream sent", rung->name);
        }
}

/* A counter of cache misses of this process, stopped; -1 where there is none. */
static int miss_counter(void)
{
        struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                       .size = sizeof attr,
                                       .config = PERF_COUNT_HW_CACHE_MISSES,
                                       .disabled = 1,
                                       .exclude_kernel = 1,
                                       .exclude_hv = 1};
        return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

/* Not inlined, so that a profiler can be told to count nothing else. */
__attribute__((noinline)) void ladder_pass(const uint8_t *query, uint64_t n)
{
        static uint8_t buf[REPLY_MAX];
        static union ladder_token token;
        uint64_t hits = 0;
        for (uint64_t k = 0; k < n; k++, query += 1 + query[0])
                hits += rung->lookup(cache, query + 1, query[0], false, buf, sizeof buf, &token) != 0;
        if (hits != n)
                bench_die("%s: lookups missed", rung->name);
}

static void look_up(void)
{
        size_t list_size = lookups * (WORKLOAD_QUERY_MAX + 1);
        uint8_t *list = bench_map(list_size, false), *at = list;
        for (uint64_t k = 0; k < lookups; k++, at += 1 + at[0]) {
                at[0] = (uint8_t)workload_query(seed, random_entry(k), at + 1);
                if (k % 16384 == 0)
                        bench_progress(rung->name, lookups + k, 2 * lookups + 1);
        }
        int counter = miss_counter();
        if (counter >= 0)
                ioctl(counter, PERF_EVENT_IOC_ENABLE, 0);
        uint64_t start = bench_now();
        ladder_pass(list, lookups);
        uint64_t elapsed = bench_now() - start;
        report("lookup_ns", "ns", (double)elapsed / (double)lookups);
        uint64_t misses;
        if (counter >= 0 && !ioctl(counter, PERF_EVENT_IOC_DISABLE, 0) &&
            read(counter, &misses, sizeof misses) == sizeof misses)
                report("cache_misses", "1", (double)misses / (double)lookups);
        bench_unmap(list, list_size);
}

static void measure(void)
{
        fill();
        check_replies();
        look_up();
}

static void ladder_run(void)
{
        unsigned only = (unsigned)bench_option("rung");
        entries = (uint64_t)bench_option("entries");
        lookups = (uint64_t)bench_option("lookups");
        seed = (uint64_t)bench_option("seed");
        if (!entries || !lookups || only > LADDER_RUNGS)
                bench_die("entries and lookups must be at least 1, rung at most %d", LADDER_RUNGS - 1);
        for (unsigned r = 0; r < LADDER_RUNGS; r++) {
                int status;
                if (only != LADDER_RUNGS && only != r)
                        continue;
                rung = ladder_rungs[r];
                pid_t child = fork();
                if (child < 0)
                        bench_die("fork: %s", strerror(errno));
                if (!child) {
                        measure();
                        exit(0);
                }
                if (waitpid(child, &status, 0) != child || status)
                        bench_die("%s failed", rung->name);
                bench_progress(rung->name, 1, 1);
        }
}

const struct scenario scenario_ladder = {
    .name = "ladder",
    .about = "the seeds' steps from parsed records to wire bytes, and the library: what each of them bought",
    .options = options,
    .run = ladder_run,
};
