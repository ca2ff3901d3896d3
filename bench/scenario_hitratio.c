/* SPDX-License-Identifier: MIT
 *
 * What is missed when the cache is too small: the library itself, its clock simulated, beside eviction rules
 * that are simulated on the same queries with the same bytes.
 */
#include "bench.h"
#include "client.h"
#include "policies.h"
#include "trace.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MB           (1u << 20)
#define INDEX_BYTES  9 /* what an entry's slot costs, slack included; charged to every rule */
#define BUDGETS_MAX  3
#define POLICIES_MAX 8
#define CHECK_EVERY  65536

static const struct bench_option options[] = {
    {"queries", 12000000, "ordinary queries of the first phase"},
    {"names", 2000000, "names that are asked again"},
    {"zipf", 1, "exponent of their popularity"},
    {"one_hit", 20, "percent of ordinary queries for names that are never asked again"},
    {"changed", 30, "percent of answers with other data than the one before"},
    {"scan", 50, "percent of queries that are a scan's, in the second phase"},
    {"flood", 80, "percent of queries for random labels, in the third phase"},
    {"rate", 4000, "ordinary queries a second"},
    {"budget", 0, "bytes; 0: 8, 32 and 128 MB one after the other"},
    {"links", 8, "bytes charged to an object for SIEVE's, S3-FIFO's and LRU's list links"},
    {"seed", 1, "of everything random"},
    {0},
};

static struct trace trace;
static uint64_t budgets[BUDGETS_MAX];
static unsigned n_budgets;
static uint16_t *sizes;
static uint64_t misses[POLICIES_MAX][BUDGETS_MAX][TRACE_PHASES], floor_misses[TRACE_PHASES];

static uint64_t simulated_ms(void *ctx)
{
        return *(const uint64_t *)ctx;
}

struct host {
        sardine_cache *cache;
        uint64_t ms;
        struct sardine_token token;
        uint8_t query[WORKLOAD_QUERY_MAX], response[WORKLOAD_RESPONSE_MAX], reply[REPLY_MAX];
};

static struct host *host_create(uint64_t budget)
{
        struct host *host = calloc(1, sizeof *host);
        struct sardine_options opt = client_options();
        opt.max_bytes = budget;
        opt.clock = simulated_ms;
        opt.clock_ctx = &host->ms;
        host->cache = client_create(&opt);
        return host;
}

static void host_destroy(struct host *host)
{
        sardine_destroy(host->cache);
        free(host);
}

/* Returns whether it missed. */
static bool host_ask(struct host *host, uint64_t k, const struct trace_event *event)
{
        const uint8_t *query;
        size_t reply_len, len = trace_query(&trace, event, host->query, &query);
        host->ms = event->second * 1000ull;
        int outcome = client_lookup(host->cache, query, len, host->reply, &reply_len, &host->token);
        if (outcome == SARDINE_HIT)
                return false;
        if (outcome != SARDINE_MISS)
                bench_die("lookup: outcome %d", outcome);
        size_t response_len = trace_response(&trace, k, event, query, len, host->response);
        if (sardine_insert(host->cache, &host->token, host->response, response_len, NULL, NULL) < 0)
                bench_die("an insert failed");
        return true;
}

/* What each entry takes, by the library's own count in a cache that holds them all. A name that is asked only
 * once is taken to be as large as one of the other names. */
static void measure_sizes(void)
{
        uint64_t names = trace.options.names, before = 0, sum = 0;
        struct host *host = host_create(16ull << 30);
        struct trace_event event = {0};
        struct trace_clock clock = {0};
        uint16_t flood = 0;
        sizes = bench_map(trace.objects * sizeof *sizes, false);
        for (uint64_t i = 0; i <= names; i++) {
                event.object = (uint32_t)i;
                event.nxdomain = i == names;
                host_ask(host, i, &event);
                uint64_t now = client_stats(host->cache).entry_bytes;
                if (i < names)
                        sizes[i] = (uint16_t)(now - before + INDEX_BYTES);
                else
                        flood = (uint16_t)(now - before + INDEX_BYTES);
                sum += i < names ? sizes[i] : 0;
                before = now;
                if (i % 65536 == 0)
                        bench_progress("measure sizes", i, names + 1);
        }
        bench_progress("measure sizes", 1, 1);
        host_destroy(host);
        for (uint64_t k = 0; k < trace.n; k++) {
                event = trace_event(&trace, k, &clock);
                if (event.object >= names)
                        sizes[event.object] = event.nxdomain ? flood : sizes[event.object % names];
        }
        bench_report("bytes_per_object", "byte", (double)sum / (double)names);
}

static void *simulate(void *arg)
{
        struct policy_input input = {&trace, sizes, (uint32_t)bench_option("links")};
        (void)arg;
        for (unsigned p = 0; p < n_policies; p++)
                for (unsigned b = 0; b < n_budgets; b++)
                        policy_run(&policies[p], &input, budgets[b], misses[p][b]);
        policy_run(&policies[0], &input, 0, floor_misses);
        return NULL;
}

static void run_library(unsigned b, uint64_t ours[TRACE_PHASES])
{
        struct host *host = host_create(budgets[b]);
        struct trace_clock clock = {0};
        char step[32];
        snprintf(step, sizeof step, "sardine, %llu MB", (unsigned long long)(budgets[b] / MB));
        for (uint64_t k = 0; k < trace.n; k++) {
                struct trace_event event = trace_event(&trace, k, &clock);
                ours[event.phase] += host_ask(host, k, &event) && event.ordinary;
                if (k % CHECK_EVERY == 0) {
                        bench_progress(step, k, trace.n);
                        if (client_stats(host->cache).bytes > budgets[b])
                                bench_die("the cache takes more than its budget");
                }
        }
        bench_progress(step, 1, 1);
        host_destroy(host);
}

static void report(const char *what, unsigned b, const char *phase, const char *unit, double value)
{
        char field[64];
        snprintf(field, sizeof field, "%s_%gmb%s", what, (double)budgets[b] / MB, phase);
        bench_report(field, unit, value);
}

static void hitratio_run(void)
{
        static const char *const phase_names[TRACE_PHASES] = {"", "_scan", "_flood"};
        static uint64_t ours[BUDGETS_MAX][TRACE_PHASES];
        struct trace_options opt = {
            .seed = (uint64_t)bench_option("seed"),
            .names = (uint64_t)bench_option("names"),
            .queries = (uint64_t)bench_option("queries"),
            .zipf = bench_option("zipf"),
            .one_hit = bench_option("one_hit") / 100,
            .changed = bench_option("changed") / 100,
            .scan = bench_option("scan") / 100,
            .flood = bench_option("flood") / 100,
            .per_s = bench_option("rate"),
        };
        if (!opt.names || opt.queries < 1000 || opt.one_hit > 1 || opt.scan > 0.99 || opt.flood > 0.99 ||
            opt.per_s < 1)
                bench_die("an option's value makes no sense");
        uint64_t budget = (uint64_t)bench_option("budget");
        if (budget && budget < MB)
                bench_die("the budget must be at least %u", MB);
        n_budgets = budget ? 1 : BUDGETS_MAX;
        for (unsigned b = 0; b < n_budgets; b++)
                budgets[b] = budget ? budget : (uint64_t)8 * MB << 2 * b;
        trace_make(&trace, &opt);
        measure_sizes();
        pthread_t simulations;
        if (pthread_create(&simulations, NULL, simulate, NULL))
                bench_die("cannot start a thread");
        for (unsigned b = 0; b < n_budgets; b++)
                run_library(b, ours[b]);
        pthread_join(simulations, NULL);

        for (unsigned phase = 0; phase < TRACE_PHASES; phase++) {
                double n = (double)trace.ordinary[phase];
                for (unsigned b = 0; b < n_budgets; b++) {
                        report("miss_sardine", b, phase_names[phase], "1", (double)ours[b][phase] / n);
                        for (unsigned p = 0; p < n_policies; p++) {
                                char field[32];
                                snprintf(field, sizeof field, "miss_%s", policies[p].name);
                                report(field, b, phase_names[phase], "1", (double)misses[p][b][phase] / n);
                        }
                        report("miss_unbounded", b, phase_names[phase], "1", (double)floor_misses[phase] / n);
                        report("points_above_sieve", b, phase_names[phase], "percent",
                               100 * ((double)ours[b][phase] - (double)misses[0][b][phase]) / n);
                }
        }
        bench_report("queries", "1", (double)trace.n);
        bench_report("simulated_time", "s", (double)opt.queries / opt.per_s);
        bench_unmap(sizes, trace.objects * sizeof *sizes);
        trace_free(&trace);
}

const struct scenario scenario_hitratio = {
    .name = "hitratio",
    .about =
        "misses of a cache that is too small, beside other eviction rules; steady, with a scan, with a flood",
    .options = options,
    .run = hitratio_run,
};
