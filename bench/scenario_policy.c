/* SPDX-License-Identifier: MIT
 *
 * What a policy adds to a lookup: the same hits with none, with tables of many zones and client networks,
 * with a trivial key hook, with one that looks at the name and the client, and with an evict hook, which is
 * none of a lookup's business. What the tables add to a lookup that misses, which has to say what the
 * upstream is told of the client's network. Then what an evict hook adds to inserts into a full cache. The
 * parts take turns, so that a busy machine slows all of them alike.
 */
#include "bench.h"
#include "workload.h"

#include <sardine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum kind {
        NO_POLICY,
        TABLES,
        KEY_HOOK,
        REAL_HOOK,
        EVICT_HOOK,
        KINDS,
};

enum {
        ROUNDS = 100,
        CLIENTS = 4096,
        INSERTS = 256,        /* made ready, then timed together */
        FULL_BYTES = 8 << 20, /* of the caches that are inserted into */
};

static const struct bench_option options[] = {
    {"names", 1000, "names that are asked for"},
    {"suffixes", 1000000, "zones in the tables"},
    {"networks", 10000, "client networks in the tables"},
    {"lookups", 10000, "of each kind, a hundred times"},
    {"inserts", 4096, "into a full cache without and with an evict hook, a hundred times"},
    {"seed", 1, "of the names"},
    {0},
};

static uint64_t seed, names;
static uint8_t (*queries)[WORKLOAD_QUERY_MAX]; /* of the names, then of as many that are never there */
static size_t *query_len;
static uint8_t clients[CLIENTS][4]; /* take turns; all of them are in one of the networks */
static uint8_t reply[65535];

static int ask(sardine_cache *cache, const uint8_t *query, size_t len, struct sardine_token *token)
{
        static unsigned turn;
        struct sardine_query q = {.sz = sizeof q,
                                  .packet = query,
                                  .len = len,
                                  .client = clients[turn++ % CLIENTS],
                                  .client_len = 4};
        struct sardine_answer a = {.sz = sizeof a, .buf = reply, .cap = sizeof reply, .token = token};
        return sardine_lookup(cache, &q, &a);
}

static sardine_cache *create(const char *policy, uint64_t max_entries, uint64_t max_bytes)
{
        struct sardine_options opt;
        sardine_cache *cache;
        char why[512] = "";
        sardine_options_init(&opt, sizeof opt);
        opt.max_entries = max_entries;
        opt.max_bytes = max_bytes;
        if (sardine_create(&opt, &cache) != 0)
                bench_die("sardine_create");
        if (policy && sardine_policy_load(cache, policy, 0, why, sizeof why) != 0)
                bench_die("policy: %s", why);
        return cache;
}

static sardine_cache *filled(const char *policy)
{
        sardine_cache *cache = create(policy, 2 * names, 0);
        for (uint64_t i = 0; i < names; i++) {
                uint8_t response[WORKLOAD_RESPONSE_MAX];
                struct sardine_token token;
                if (ask(cache, queries[i], query_len[i], &token) != SARDINE_MISS)
                        continue;
                size_t size = workload_response(queries[i], query_len[i], 3600, true, response);
                if (sardine_insert(cache, &token, response, size, NULL, NULL) == SARDINE_REFUSED)
                        bench_die("an answer was refused");
        }
        return cache;
}

static void write_policy(const char *path, enum kind kind, const char *zones, const char *networks)
{
        FILE *file = fopen(path, "w");
        if (!file)
                bench_die("%s", path);
        switch (kind) {
        case TABLES:
                fprintf(file,
                        "return { ecs = { zones = { [list '%s'] = { ipv4 = 24, ipv6 = 56 } } },\n"
                        "  tags = { clients = { [list '%s'] = 'kids', ['192.0.2.0/24'] = 'guests' } } }\n",
                        zones, networks);
                break;
        case KEY_HOOK:
                fprintf(file, "return { key = function(q) return nil end }\n");
                break;
        case EVICT_HOOK:
                fprintf(file, "return { evict = function(e) return nil end }\n");
                break;
        default:
                fprintf(file,
                        "return { key = function(q)\n"
                        "  if q.client:within('10.0.0.0/8') and not q.qname:within('example.org') then\n"
                        "    return 'kids' end end }\n");
        }
        fclose(file);
}

/* Zones that nobody asks for, and the zone of every fourth name. */
static void write_zones(const char *path)
{
        FILE *file = fopen(path, "w");
        if (!file)
                bench_die("%s", path);
        for (uint64_t i = 0; i < (uint64_t)bench_option("suffixes"); i++)
                fprintf(file, "z%llu.example\n", (unsigned long long)i);
        for (uint64_t i = 0; i < 2 * names; i += 4) {
                char text[WORKLOAD_QUERY_MAX];
                workload_text(seed, i, text);
                const char *zone = strchr(text, '.') + 1;
                fprintf(file, "%.*s\n", (int)strcspn(zone, " "), zone);
        }
        fclose(file);
}

/* Networks of 256 addresses, and clients all over them. */
static void write_networks(const char *path)
{
        FILE *file = fopen(path, "w");
        uint64_t count = (uint64_t)bench_option("networks");
        if (!file || count == 0 || count > 1 << 16)
                bench_die("%s: 1 to 65536 networks", path);
        for (uint64_t i = 0; i < count; i++)
                fprintf(file, "10.%u.%u.0/24\n", (unsigned)(i >> 8), (unsigned)(i & 255));
        for (unsigned i = 0; i < CLIENTS; i++) {
                uint64_t random = workload_mix(seed + i), n = random % count;
                const uint8_t client[4] = {10, (uint8_t)(n >> 8), (uint8_t)n, (uint8_t)(random >> 56)};
                memcpy(clients[i], client, sizeof client);
        }
        fclose(file);
}

/* Of the names, or of those that are never there. A pass over them first: the other kinds have just had the
 * processor's caches. */
static double timed(sardine_cache *cache, int outcome)
{
        static struct sardine_token token;
        uint64_t lookups = (uint64_t)bench_option("lookups"), start = 0, k = 0;
        bool miss = outcome == SARDINE_MISS;
        for (uint64_t i = 0; i < names + lookups; i++, k = k + 1 < names ? k + 1 : 0) {
                uint64_t at = miss ? names + k : k;
                if (i == names)
                        start = bench_now();
                if (ask(cache, queries[at], query_len[at], miss ? &token : NULL) != outcome)
                        bench_die("not the outcome that was expected");
        }
        return (double)(bench_now() - start) / (double)lookups;
}

static uint64_t evict_calls(sardine_cache *cache)
{
        struct sardine_policy_stats stats = {.sz = sizeof stats};
        if (sardine_policy_stats_get(cache, &stats) != 0)
                bench_die("sardine_policy_stats_get");
        return stats.calls[SARDINE_HOOK_EVICT];
}

/* Of names that were never there. `next`: the first of them. */
static double inserts(sardine_cache *cache, uint64_t *next, uint64_t count)
{
        static struct sardine_token tokens[INSERTS];
        static uint8_t responses[INSERTS][WORKLOAD_RESPONSE_MAX];
        size_t sizes[INSERTS];
        uint64_t ns = 0, done = 0;
        while (done < count) {
                for (unsigned i = 0; i < INSERTS; i++) {
                        uint8_t query[WORKLOAD_QUERY_MAX];
                        size_t len = workload_query(seed, (*next)++, query);
                        if (ask(cache, query, len, &tokens[i]) != SARDINE_MISS)
                                bench_die("not a miss");
                        sizes[i] = workload_response(query, len, 3600, true, responses[i]);
                }
                uint64_t start = bench_now();
                for (unsigned i = 0; i < INSERTS; i++)
                        if (sardine_insert(cache, &tokens[i], responses[i], sizes[i], NULL, NULL) ==
                            SARDINE_REFUSED)
                                bench_die("an answer was refused");
                ns += bench_now() - start;
                done += INSERTS;
        }
        return (double)ns / (double)done;
}

static void lookups(char path[KINDS][64])
{
        sardine_cache *cache[KINDS];
        double least[KINDS], missed[KINDS];
        for (unsigned k = 0; k < KINDS; k++) {
                uint64_t start = bench_now();
                cache[k] = filled(k != NO_POLICY ? path[k] : NULL);
                if (k == TABLES)
                        bench_report("tables_load_ms", "ms", (double)(bench_now() - start) / 1e6);
                least[k] = missed[k] = 1e9;
        }
        uint64_t calls = evict_calls(cache[EVICT_HOOK]);
        for (unsigned round = 0; round < ROUNDS; round++)
                for (unsigned k = 0; k < KINDS; k++) {
                        double ns = timed(cache[k], SARDINE_HIT);
                        least[k] = ns < least[k] ? ns : least[k];
                        if (k > TABLES)
                                continue;
                        ns = timed(cache[k], SARDINE_MISS);
                        missed[k] = ns < missed[k] ? ns : missed[k];
                }
        if (evict_calls(cache[EVICT_HOOK]) != calls)
                bench_die("a lookup has called the evict hook");
        bench_report("lookup_ns", "ns", least[NO_POLICY]);
        bench_report("tables_ns", "ns", least[TABLES] - least[NO_POLICY]);
        bench_report("miss_ns", "ns", missed[NO_POLICY]);
        bench_report("tables_miss_ns", "ns", missed[TABLES] - missed[NO_POLICY]);
        bench_report("key_hook_ns", "ns", least[KEY_HOOK] - least[NO_POLICY]);
        bench_report("real_hook_ns", "ns", least[REAL_HOOK] - least[NO_POLICY]);
        bench_report("lookup_evict_hook_ns", "ns", least[EVICT_HOOK] - least[NO_POLICY]);
        for (unsigned k = 0; k < KINDS; k++)
                sardine_destroy(cache[k]);
}

static void evictions(const char *policy)
{
        sardine_cache *cache[2] = {create(NULL, 0, FULL_BYTES), create(policy, 0, FULL_BYTES)};
        uint64_t next[2] = {0}, count = (uint64_t)bench_option("inserts");
        double least[2] = {1e9, 1e9};
        for (unsigned k = 0; k < 2; k++) {
                struct sardine_stats stats = {.sz = sizeof stats};
                do {
                        inserts(cache[k], &next[k], INSERTS);
                        sardine_stats_get(cache[k], &stats);
                } while (stats.evicted == 0);
                inserts(cache[k], &next[k], count);
        }
        uint64_t calls = evict_calls(cache[1]), from = next[1];
        for (unsigned round = 0; round < ROUNDS; round++)
                for (unsigned k = 0; k < 2; k++) {
                        double ns = inserts(cache[k], &next[k], count);
                        least[k] = ns < least[k] ? ns : least[k];
                }
        bench_report("insert_full_ns", "ns", least[0]);
        bench_report("insert_evict_hook_ns", "ns", least[1] - least[0]);
        bench_report("evict_hook_calls", "1",
                     (double)(evict_calls(cache[1]) - calls) / (double)(next[1] - from));
        for (unsigned k = 0; k < 2; k++)
                sardine_destroy(cache[k]);
}

static void run(void)
{
        seed = (uint64_t)bench_option("seed");
        names = (uint64_t)bench_option("names");
        queries = bench_map(2 * names * sizeof *queries, false);
        query_len = bench_map(2 * names * sizeof *query_len, false);
        for (uint64_t i = 0; i < 2 * names; i++)
                query_len[i] = workload_query(seed, i, queries[i]);
        char folder[] = "/tmp/sardine-bench-XXXXXX", zones[64], networks[64], path[KINDS][64];
        if (!mkdtemp(folder))
                bench_die("%s", folder);
        snprintf(zones, sizeof zones, "%s/zones", folder);
        snprintf(networks, sizeof networks, "%s/networks", folder);
        write_zones(zones);
        write_networks(networks);
        for (unsigned k = 0; k < KINDS; k++) {
                snprintf(path[k], sizeof path[k], "%s/policy%u.lua", folder, k);
                if (k != NO_POLICY)
                        write_policy(path[k], k, zones, networks);
        }
        lookups(path);
        evictions(path[EVICT_HOOK]);
        for (unsigned k = 0; k < KINDS; k++)
                unlink(path[k]);
        unlink(zones);
        unlink(networks);
        rmdir(folder);
        bench_unmap(queries, 2 * names * sizeof *queries);
        bench_unmap(query_len, 2 * names * sizeof *query_len);
}

const struct scenario scenario_policy = {
    .name = "policy",
    .about = "what tables and hooks of a policy add to a lookup, and to an insert that needs room",
    .options = options,
    .run = run,
};
