/* SPDX-License-Identifier: MIT
 *
 * Answers for client networks (RFC 7871): every name has one for each /24 network, but few different ones.
 * Filled in random order (look up, miss, insert), looked up at random. The same with a tenth and a hundredth
 * of the networks a name and as many more names, so that the cache holds as much: what a lookup costs must
 * not depend on how many answers a name has.
 */
#include "bench.h"
#include "client.h"
#include "fill.h"
#include "workload.h"

#include <stdio.h>
#include <string.h>

#define RECORDS  2
#define OPT_LEN  11
#define ECS_LEN  11 /* the option: code, length, family, source, scope, three bytes of address */
#define BATCH    256
#define TTL      3600 /* to twice that, by network: answers do not expire together */
#define LOOKUPS  2000000
#define CHECKED  20000
#define QUERY    (WORKLOAD_QUERY_MAX + ECS_LEN)
#define RESPONSE (QUERY + RECORDS * 16)

static const struct bench_option options[] = {
    {"names", 1000, "questions"},
    {"subnets", 1000, "/24 networks, each with an answer to every question"},
    {"answers", 8, "different answers a question has"},
    {"seed", 1, "of names, networks and orders"},
    {0},
};

static uint64_t seed;
static unsigned n_answers;

struct shape {
        uint64_t names, subnets;
};

static size_t make_query(const struct shape *shape, uint64_t pair, uint8_t query[QUERY])
{
        uint64_t subnet = pair / shape->names;
        size_t len = workload_query(seed, pair % shape->names, query);
        size_t end = workload_question_end(query, len);
        /* Network numbers all over the address space: multiplying by an odd number is a bijection. */
        uint32_t address = (uint32_t)(subnet * 0x9e3779b1u + seed) & 0xffffff;
        const uint8_t ecs[ECS_LEN] = {
            0, 8, 0, 7, 0, 1, 24, 0, (uint8_t)(address >> 16), (uint8_t)(address >> 8), (uint8_t)address};
        query[end - 4] = 0;
        query[end - 3] = 1; /* A */
        query[len - 1] = ECS_LEN;
        memcpy(query + len, ecs, ECS_LEN);
        return len + ECS_LEN;
}

/* Question, two addresses, the query's OPT with the scope set. */
static size_t make_response(uint64_t names, uint64_t pair, const uint8_t *query, size_t len,
                            uint8_t response[RESPONSE])
{
        size_t end = workload_question_end(query, len);
        uint64_t name = pair % names, r = workload_mix(pair + seed);
        uint64_t data = workload_mix(name * n_answers + r % n_answers + (seed << 32));
        uint32_t ttl = TTL + (uint32_t)(workload_mix(pair / names + seed) % TTL);
        memcpy(response, query, end);
        response[2] |= 0x84; /* QR, AA */
        response[3] = 0x80;  /* RA */
        response[7] = RECORDS;
        uint8_t *at = response + end;
        for (unsigned k = 0; k < RECORDS; k++, data = workload_mix(data)) {
                const uint8_t record[16] = {0xc0,
                                            12,
                                            0,
                                            1,
                                            0,
                                            1,
                                            (uint8_t)(ttl >> 24),
                                            (uint8_t)(ttl >> 16),
                                            (uint8_t)(ttl >> 8),
                                            (uint8_t)ttl,
                                            0,
                                            4,
                                            (uint8_t)data,
                                            (uint8_t)(data >> 8),
                                            (uint8_t)(data >> 16),
                                            (uint8_t)(data >> 24)};
                memcpy(at, record, sizeof record);
                at += sizeof record;
        }
        memcpy(at, query + end, len - end);
        at[OPT_LEN + 7] = 24;
        return (size_t)(at - response) + len - end;
}

/* The pairs of name and network in an order that looks random: a step that has no factor in common with their
 * number visits each once. */
static uint64_t stride(uint64_t pairs)
{
        uint64_t step = (uint64_t)((double)pairs * 0.6180339887) | 1;
        for (uint64_t a = step, b = pairs;; a = step, b = pairs) {
                while (b) {
                        uint64_t rest = a % b;
                        a = b;
                        b = rest;
                }
                if (a == 1)
                        return step;
                step += 2;
        }
}

struct order {
        const struct shape *shape;
        uint64_t pairs, step;
};

static void make_pair(const void *ctx, uint64_t i, struct fill_pair *pair)
{
        const struct order *order = ctx;
        uint64_t number = (uint64_t)((unsigned __int128)i * order->step % order->pairs);
        pair->query_len = make_query(order->shape, number, pair->query);
        pair->response_len =
            make_response(order->shape->names, number, pair->query, pair->query_len, pair->response);
}

static double fill_in(sardine_cache *cache, const struct shape *shape)
{
        uint64_t pairs = shape->names * shape->subnets;
        const struct order order = {shape, pairs, stride(pairs)};
        return fill_with(cache, make_pair, &order, 0, pairs, NULL, "fill");
}

static uint64_t random_pair(uint64_t k, uint64_t pairs)
{
        return (uint64_t)((unsigned __int128)workload_mix(seed ^ workload_mix(k)) * pairs >> 64);
}

/* Some answers may have left when a name has more than the cache keeps; those that are there must be right.
 * Returns the share that is there. */
static double check(sardine_cache *cache, const struct shape *shape)
{
        uint8_t query[QUERY], expected[RESPONSE], reply[REPLY_MAX];
        uint64_t pairs = shape->names * shape->subnets, hits = 0;
        for (uint64_t k = 0; k < CHECKED; k++) {
                uint64_t pair = random_pair(k, pairs);
                size_t len, query_len = make_query(shape, pair, query),
                            end = workload_question_end(query, query_len),
                            want = make_response(shape->names, pair, query, query_len, expected);
                int outcome = client_lookup(cache, query, query_len, reply, &len, NULL);
                if (outcome == SARDINE_MISS)
                        continue;
                if (outcome != SARDINE_HIT || len != want)
                        bench_die("lookup: outcome %d, %zu bytes where the upstream sent %zu", outcome, len,
                                  want);
                for (unsigned record = 0; record < RECORDS; record++)
                        memcpy(expected + end + 16 * record + 6, reply + end + 16 * record + 6, 4); /* TTL */
                if (memcmp(reply + end, expected + end, RECORDS * 16))
                        bench_die("a reply differs from what the upstream sent for that network");
                if (memcmp(reply + len - 4, expected + want - 4, 4))
                        bench_die("a reply has another network or scope than the upstream's");
                hits++;
        }
        return (double)hits / CHECKED;
}

static double lookup_ns(sardine_cache *cache, const struct shape *shape)
{
        static uint8_t query[BATCH][QUERY], reply[REPLY_MAX];
        static size_t query_len[BATCH];
        uint64_t elapsed = 0;
        for (uint64_t done = 0; done < LOOKUPS; done += BATCH) {
                for (unsigned k = 0; k < BATCH; k++)
                        query_len[k] = make_query(
                            shape, random_pair(CHECKED + done + k, shape->names * shape->subnets), query[k]);
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
        return (double)elapsed / ((LOOKUPS + BATCH - 1) / BATCH * BATCH);
}

static void report(const char *name, const char *suffix, const char *unit, double value)
{
        char field[64];
        snprintf(field, sizeof field, "%s%s", name, suffix);
        bench_report(field, unit, value);
}

static void measure(const struct shape *shape, const char *suffix)
{
        double variants = (double)(shape->names * shape->subnets);
        fill_touch();
        uint64_t rss = bench_rss();
        struct sardine_options opt = client_options();
        if (shape->subnets > opt.max_networks)
                opt.max_networks = (uint32_t)shape->subnets;
        sardine_cache *cache = client_create(&opt);
        double rate = fill_in(cache, shape);
        uint64_t grown = bench_rss() - rss;
        struct sardine_stats stats = client_stats(cache);
        report("bytes_per_variant_rss", suffix, "byte", (double)grown / variants);
        report("bytes_per_variant_accounted", suffix, "byte", (double)stats.bytes / variants);
        report("bytes_per_variant_live", suffix, "byte", (double)stats.entry_bytes / variants);
        report("bytes_per_variant_dead", suffix, "byte", (double)stats.dead_bytes / variants);
        report("insert_per_s", suffix, "1/s", rate);
        report("hit_ratio", suffix, "1", check(cache, shape));
        report("lookup_ns_mean", suffix, "ns", lookup_ns(cache, shape));
        sardine_destroy(cache);
}

static void ecs_run(void)
{
        struct shape shape = {(uint64_t)bench_option("names"), (uint64_t)bench_option("subnets")};
        seed = (uint64_t)bench_option("seed");
        n_answers = (unsigned)bench_option("answers");
        if (!shape.names || !shape.subnets || shape.subnets > 1 << 24 || !n_answers)
                bench_die("names, subnets and answers must be at least 1, subnets at most 2^24");
        bench_report("names", "1", (double)shape.names);
        bench_report("subnets", "1", (double)shape.subnets);
        bench_report("answers", "1", n_answers);
        measure(&shape, "");
        for (unsigned less = 10; less <= 100 && shape.subnets >= less; less *= 10) {
                struct shape other = {shape.names * less, shape.subnets / less};
                char suffix[32];
                snprintf(suffix, sizeof suffix, "_%llu_subnets", (unsigned long long)other.subnets);
                measure(&other, suffix);
        }
}

const struct scenario scenario_ecs = {
    .name = "ecs",
    .about = "answers for client networks: bytes an answer, lookups whatever their number",
    .options = options,
    .run = ecs_run,
};
