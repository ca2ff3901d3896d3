/* SPDX-License-Identifier: MIT
 *
 * What a policy adds to a lookup: the same hits with none, with tables of many suffixes, with a trivial key
 * hook, and with one that looks at the name and the client. The parts take turns, so that a busy machine
 * slows all of them alike.
 */
#include "bench.h"
#include "workload.h"

#include <sardine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
        KINDS = 4,
        ROUNDS = 20,
};

static const struct bench_option options[] = {
    {"names", 1000, "names that are asked for"},
    {"suffixes", 100000, "zones in the tables"},
    {"lookups", 50000, "of each kind, twenty times"},
    {"seed", 1, "of the names"},
    {0},
};

static uint64_t seed, names;
static uint8_t reply[65535];

static int ask(sardine_cache *cache, uint64_t name, struct sardine_token *token, uint8_t *query, size_t *len)
{
        static const uint8_t client[4] = {192, 0, 2, 77};
        *len = workload_query(seed, name, query);
        struct sardine_query q = {
            .sz = sizeof q, .packet = query, .len = *len, .client = client, .client_len = 4};
        struct sardine_answer a = {.sz = sizeof a, .buf = reply, .cap = sizeof reply, .token = token};
        return sardine_lookup(cache, &q, &a);
}

static sardine_cache *filled(const char *policy)
{
        struct sardine_options opt;
        sardine_cache *cache;
        char why[512] = "";
        sardine_options_init(&opt, sizeof opt);
        opt.max_entries = 2 * names;
        if (sardine_create(&opt, &cache) != 0)
                bench_die("sardine_create");
        if (policy && sardine_policy_load(cache, policy, 0, why, sizeof why) != 0)
                bench_die("policy: %s", why);
        for (uint64_t i = 0; i < names; i++) {
                uint8_t query[WORKLOAD_QUERY_MAX], response[WORKLOAD_RESPONSE_MAX];
                struct sardine_token token;
                size_t len;
                if (ask(cache, i, &token, query, &len) != SARDINE_MISS)
                        continue;
                size_t size = workload_response(query, len, 3600, true, response);
                if (sardine_insert(cache, &token, response, size, NULL, NULL) == SARDINE_REFUSED)
                        bench_die("an answer was refused");
        }
        return cache;
}

static void write_policy(const char *path, unsigned kind, const char *list)
{
        FILE *file = fopen(path, "w");
        if (!file)
                bench_die("%s", path);
        if (kind == 1)
                fprintf(file,
                        "return { ecs = { zones = { [list '%s'] = { ipv4 = 24, ipv6 = 56 } } },\n"
                        "  tags = { clients = { ['192.0.2.0/24'] = 'kids', ['198.51.100.0/24'] = 'guests' } "
                        "} }\n",
                        list);
        else if (kind == 2)
                fprintf(file, "return { key = function(q) return nil end }\n");
        else
                fprintf(file,
                        "return { key = function(q)\n"
                        "  if q.client:within('192.0.2.0/24') and not q.qname:within('example.org') then\n"
                        "    return 'kids' end end }\n");
        fclose(file);
}

static double hits(sardine_cache *cache, uint64_t lookups)
{
        uint8_t query[WORKLOAD_QUERY_MAX];
        size_t len;
        uint64_t start = bench_now();
        for (uint64_t i = 0; i < lookups; i++)
                if (ask(cache, i % names, NULL, query, &len) != SARDINE_HIT)
                        bench_die("not a hit");
        return (double)(bench_now() - start) / (double)lookups;
}

static void run(void)
{
        seed = (uint64_t)bench_option("seed");
        names = (uint64_t)bench_option("names");
        char folder[] = "/tmp/sardine-bench-XXXXXX", list[64], path[KINDS][64];
        if (!mkdtemp(folder))
                bench_die("%s", folder);
        snprintf(list, sizeof list, "%s/list", folder);
        FILE *file = fopen(list, "w");
        if (!file)
                bench_die("%s", list);
        for (uint64_t i = 0; i < (uint64_t)bench_option("suffixes"); i++)
                fprintf(file, "z%llu.example\n", (unsigned long long)i);
        fclose(file);
        sardine_cache *cache[KINDS];
        double least[KINDS];
        for (unsigned k = 0; k < KINDS; k++) {
                snprintf(path[k], sizeof path[k], "%s/policy%u.lua", folder, k);
                if (k > 0)
                        write_policy(path[k], k, list);
                uint64_t start = bench_now();
                cache[k] = filled(k > 0 ? path[k] : NULL);
                if (k == 1)
                        bench_report("tables_load_ms", "ms", (double)(bench_now() - start) / 1e6);
                least[k] = 1e9;
        }
        for (unsigned round = 0; round < ROUNDS; round++)
                for (unsigned k = 0; k < KINDS; k++) {
                        double ns = hits(cache[k], (uint64_t)bench_option("lookups"));
                        least[k] = ns < least[k] ? ns : least[k];
                }
        bench_report("lookup_ns", "ns", least[0]);
        bench_report("tables_ns", "ns", least[1] - least[0]);
        bench_report("key_hook_ns", "ns", least[2] - least[0]);
        bench_report("real_hook_ns", "ns", least[3] - least[0]);
        for (unsigned k = 0; k < KINDS; k++) {
                sardine_destroy(cache[k]);
                unlink(path[k]);
        }
        unlink(list);
        rmdir(folder);
}

const struct scenario scenario_policy = {
    .name = "policy",
    .about = "what tables and hooks of a policy add to a lookup",
    .options = options,
    .run = run,
};
