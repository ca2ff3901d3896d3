/* SPDX-License-Identifier: MIT
 * Everything at once (B61, B69, B82, B83): readers check every reply against what its name must have, while
 * others insert, replace, purge, walk, wait and count in a cache so small that it reclaims all the time. Run
 * under TSan in CI. */
#include "kit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "wire/bytes.h"
#include "wire/dns.h"

enum {
        NAMES = 4000,
        ALWAYS = 50,         /* of these; put once and never purged or evicted */
        ROUNDS = 30000,      /* of a reader, at least */
        LAST_SECOND = 30000, /* of the test's clock: nothing that is always there grows old */
        PATIENCE = 12000,    /* how often somebody looks whether others have come as far as the test wants, */
        PATIENCE_NS = 10000000, /* and how long it sleeps in between: two minutes of a machine that is busy */
};

static sardine_cache *cache;
static _Atomic bool over;
static _Atomic bool everything; /* has happened that all_at_once is to see */
static _Atomic uint64_t clock_ms;

static uint64_t test_clock(void *ctx)
{
        (void)ctx;
        return atomic_load(&clock_ms);
}

/* cmocka's assertions belong to the main thread. */
#define CHECK(what)                                                                                          \
        do {                                                                                                 \
                if (!(what)) {                                                                               \
                        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                           \
                        abort();                                                                             \
                }                                                                                            \
        } while (0)

static uint32_t next_random(uint32_t *state)
{
        *state = *state * 1664525 + 1013904223;
        return *state >> 8;
}

/* Query and response for name i, both by hand: no allocation, no shared state. */
static size_t make_query(unsigned i, bool dnssec_ok, uint8_t *out)
{
        memset(out, 0, 12);
        put_be16(out, (uint16_t)i);
        out[2] = DNS_RD;
        out[5] = 1;
        size_t at = 12 + (size_t)sprintf((char *)out + 12, "%c%08x%ctest", 8, i, 4) + 1;
        put_be32(out + at, DNS_A << 16 | DNS_IN);
        at += 4;
        if (dnssec_ok) {
                static const uint8_t opt[11] = {0, 0, DNS_OPT, 4, 208, 0, 0, 0x80};
                memcpy(out + at, opt, 11);
                out[11] = 1;
                at += 11;
        }
        return at;
}

/* 1..8 addresses, each holding i and, in its first byte, how many there are. */
static size_t make_response(unsigned i, unsigned count, uint32_t ttl, uint8_t *out)
{
        size_t at = make_query(i, false, out);
        out[2] |= DNS_QR;
        out[7] = (uint8_t)count;
        for (unsigned k = 0; k < count; k++) {
                memcpy(out + at, "\xc0\x0c\0\1\0\1", 6);
                put_be32(out + at + 6, ttl);
                put_be16(out + at + 10, 4);
                put_be32(out + at + 12, count << 24 | i);
                at += 16;
        }
        return at;
}

static void check_reply(const uint8_t *reply, size_t len, unsigned i)
{
        unsigned count = reply[7];
        size_t at = 12 + 15 + 4;
        CHECK(count >= 1 && count <= 8);
        for (unsigned k = 0; k < count; k++, at += 16) {
                CHECK(at + 16 <= len);
                CHECK(get_be32(reply + at + 12) == (count << 24 | i));
        }
}

static int ask_one(unsigned i, uint32_t flags, bool dnssec_ok, struct sardine_token *token)
{
        uint8_t packet[64], buf[512];
        struct sardine_query q = {.sz = sizeof q, .packet = packet, .flags = flags};
        struct sardine_answer a = {.sz = sizeof a, .buf = buf, .cap = sizeof buf, .token = token};
        q.len = make_query(i, dnssec_ok, packet);
        int outcome = sardine_lookup(cache, &q, &a);
        if (outcome == SARDINE_HIT || outcome == SARDINE_STALE || outcome == SARDINE_REFRESH)
                check_reply(buf, a.len, i);
        return outcome;
}

static void *reader(void *arg)
{
        uint32_t state = (uint32_t)(uintptr_t)arg;
        for (unsigned n = 0; n < ROUNDS || !atomic_load(&everything); n++) {
                unsigned r = next_random(&state);
                if (r % 4 == 0) /* what is always there is never missed */
                        CHECK(ask_one(r / 4 % ALWAYS, 0, false, NULL) == SARDINE_HIT);
                else
                        ask_one(r % NAMES, SARDINE_ALLOW_STALE, r & 0x1000, NULL);
        }
        return NULL;
}

static void *writer(void *arg)
{
        uint32_t state = (uint32_t)(uintptr_t)arg;
        uint8_t response[512];
        struct sardine_token token;
        for (unsigned n = 0; !atomic_load(&over); n++) {
                /* Readers that do not run keep nothing popular. */
                CHECK(ask_one(n % ALWAYS, 0, false, NULL) == SARDINE_HIT);
                unsigned r = next_random(&state), i = ALWAYS + r % (NAMES - ALWAYS);
                int outcome = ask_one(i, SARDINE_COALESCE, r & 0x1000, &token);
                if (outcome == SARDINE_WAIT) {
                        CHECK(sardine_wait(cache, &token, 1) >= 0);
                } else if (outcome == SARDINE_MISS || outcome == SARDINE_REFRESH) {
                        size_t len = make_response(i, 1 + r % 8, 1 + r % 100, response);
                        CHECK(sardine_insert(cache, &token, response, len, NULL, NULL) >= 0);
                }
                if (r % 16 == 0) { /* the ever-present are refreshed and replaced, too */
                        uint8_t packet[64];
                        struct sardine_query q = {.sz = sizeof q, .packet = packet};
                        q.len = make_query(n % ALWAYS, false, packet);
                        CHECK(sardine_token_init(cache, &q, &token) == 0);
                        size_t len = make_response(n % ALWAYS, 1 + r % 8, 80000, response);
                        CHECK(sardine_insert(cache, &token, response, len, NULL, NULL) >= 0);
                }
        }
        return NULL;
}

static int see(void *ctx, const struct sardine_entry_view *entry)
{
        (void)ctx;
        CHECK(entry->qname_len == 15);
        CHECK(entry->qtype == DNS_A);
        return 0;
}

static void *keeper(void *arg)
{
        uint32_t state = (uint32_t)(uintptr_t)arg;
        while (!atomic_load(&over)) {
                uint8_t packet[64];
                unsigned i = ALWAYS + next_random(&state) % (NAMES - ALWAYS);
                make_query(i, false, packet);
                struct sardine_selector sel = {.sz = sizeof sel, .name = packet + 12, .name_len = 15};
                CHECK(sardine_expunge(cache, &sel) >= 0);
                CHECK(sardine_walk(cache, NULL, see, NULL) >= ALWAYS);
                CHECK(sardine_purge_expired(cache, 0) >= 0);
                struct sardine_stats stats = {.sz = sizeof stats};
                CHECK(sardine_stats_get(cache, &stats) == 0);
                CHECK(stats.bytes <= stats.max_bytes && stats.entries <= stats.max_entries);
                if (atomic_load(&clock_ms) < LAST_SECOND * 1000)
                        atomic_fetch_add(&clock_ms, 500);
        }
        return NULL;
}

static void b61_b69_b82_b83_all_at_once(void **state)
{
        (void)state;
        struct sardine_options o;
        sardine_options_init(&o, sizeof o);
        o.max_entries = 1500;
        o.max_bytes = 1 << 20;
        o.segment_size = 4096;
        o.stale_window = 20;
        o.refresh_percent = 10;
        o.rotate = 1;
        o.clock = test_clock;
        assert_int_equal(sardine_create(&o, &cache), 0);
        for (unsigned i = 0; i < ALWAYS; i++) {
                struct sardine_token token;
                uint8_t response[512];
                assert_int_equal(ask_one(i, 0, false, &token), SARDINE_MISS);
                size_t len = make_response(i, 3, 80000, response);
                assert_int_equal(sardine_insert(cache, &token, response, len, NULL, NULL), SARDINE_STORED);
                for (int n = 0; n < 40; n++)
                        ask_one(i, 0, false, NULL);
        }
        atomic_store(&over, false);
        atomic_store(&everything, false);
        pthread_t readers[3], others[3];
        for (uintptr_t i = 0; i < 3; i++)
                assert_int_equal(pthread_create(&readers[i], NULL, reader, (void *)(i + 1)), 0);
        assert_int_equal(pthread_create(&others[0], NULL, writer, (void *)11), 0);
        assert_int_equal(pthread_create(&others[1], NULL, writer, (void *)12), 0);
        assert_int_equal(pthread_create(&others[2], NULL, keeper, (void *)13), 0);
        struct sardine_stats s = {.sz = sizeof s};
        for (unsigned n = 0; n < PATIENCE; n++) {
                CHECK(sardine_stats_get(cache, &s) == 0);
                if (s.evicted + s.expired > 0 && s.expunged > 0 && s.replaced > 0)
                        break;
                nanosleep(&(struct timespec){.tv_nsec = PATIENCE_NS}, NULL);
        }
        atomic_store(&everything, true);
        for (int i = 0; i < 3; i++)
                pthread_join(readers[i], NULL);
        atomic_store(&over, true);
        for (int i = 0; i < 3; i++)
                pthread_join(others[i], NULL);
        assert_int_equal(sardine_stats_get(cache, &s), 0);
        assert_true(s.evicted + s.expired > 0 && s.expunged > 0 && s.replaced > 0);
        assert_int_equal(s.lookups,
                         s.hits + s.stale + s.refresh + s.misses + s.bypass + s.cache_only_misses + s.waits);
        assert_int_equal(s.inserts, s.stored + s.replaced + s.refreshed + s.refused);
        sardine_destroy(cache);
}

/* A question with answers for many networks: some are there from the start, and while a writer brings others,
 * so that pages are made and split, no reader misses one of them, no walk passes one by, and no purge leaves
 * one behind. Nothing has to be evicted here. */
enum {
        FIRST_TAILORED = 0x10000000, /* names apart from the others */
        TAILORED = 12,               /* one after the other */
        KEPT = 40,                   /* networks of each that are there from the start */
        BROUGHT = 300,               /* and later */
        BYSTANDERS = 1000,           /* other names, so that a walk takes its time */
};

static _Atomic unsigned tailored; /* the name whose KEPT networks are all there */
static _Atomic unsigned purged;   /* the last name that somebody has begun to purge */

static size_t put_network(uint8_t *out, size_t at, unsigned network, uint8_t scope)
{
        const uint8_t opt[22] = {0,
                                 0,
                                 DNS_OPT,
                                 4,
                                 208,
                                 0,
                                 0,
                                 0,
                                 0,
                                 0,
                                 11,
                                 0,
                                 8,
                                 0,
                                 7,
                                 0,
                                 1,
                                 24,
                                 scope,
                                 10,
                                 (uint8_t)(network >> 8),
                                 (uint8_t)network};
        memcpy(out + at, opt, sizeof opt);
        out[11] = 1;
        return at + sizeof opt;
}

static int ask_network(unsigned i, unsigned network, struct sardine_token *token)
{
        uint8_t packet[80], buf[512];
        struct sardine_query q = {.sz = sizeof q, .packet = packet};
        struct sardine_answer a = {.sz = sizeof a, .buf = buf, .cap = sizeof buf, .token = token};
        q.len = put_network(packet, make_query(i, false, packet), network, 0);
        int outcome = sardine_lookup(cache, &q, &a);
        if (outcome == SARDINE_HIT)
                CHECK(buf[7] == 1 && get_be32(buf + 12 + 19 + 12) == (1u << 24 | network));
        return outcome;
}

/* false: a purge came between. */
static bool bring(unsigned i, unsigned network)
{
        uint8_t packet[80], response[512];
        struct sardine_query q = {.sz = sizeof q, .packet = packet};
        struct sardine_token token;
        q.len = put_network(packet, make_query(i, false, packet), network, 0);
        CHECK(sardine_token_init(cache, &q, &token) == 0);
        size_t at = make_response(i, 1, network < KEPT ? 80000 : 70000, response);
        put_be32(response + at - 4, 1u << 24 | network);
        at = put_network(response, at, network, 24);
        int outcome = sardine_insert(cache, &token, response, at, NULL, NULL);
        CHECK(outcome >= 0);
        return outcome != SARDINE_REFUSED;
}

static void *network_writer(void *arg)
{
        (void)arg;
        for (unsigned n = 1; n <= TAILORED; n++) {
                unsigned i = FIRST_TAILORED + n;
                for (unsigned k = 0; k < KEPT; k++)
                        while (!bring(i, k))
                                ;
                atomic_store(&tailored, i);
                for (unsigned k = 0; k < BROUGHT; k++)
                        bring(i, KEPT + k);
        }
        for (unsigned n = 0; n < PATIENCE && atomic_load(&purged) == 0; n++)
                nanosleep(&(struct timespec){.tv_nsec = PATIENCE_NS}, NULL);
        atomic_store(&over, true);
        return NULL;
}

static void *network_reader(void *arg)
{
        uint32_t state = (uint32_t)(uintptr_t)arg;
        while (!atomic_load(&over)) {
                unsigned i = atomic_load(&tailored);
                int outcome = ask_network(i, next_random(&state) % KEPT, NULL);
                CHECK(outcome == SARDINE_HIT || atomic_load(&purged) >= i);
        }
        return NULL;
}

static int see_network(void *ctx, const struct sardine_entry_view *entry)
{
        unsigned network = (unsigned)entry->ecs_addr[1] << 8 | entry->ecs_addr[2];
        if (network < KEPT)
                ((bool *)ctx)[network] = true;
        return 0;
}

static void *network_walker(void *arg)
{
        (void)arg;
        for (unsigned n = 0; !atomic_load(&over); n++) {
                unsigned i = atomic_load(&tailored);
                uint8_t packet[64];
                make_query(i, false, packet);
                struct sardine_selector sel = {.sz = sizeof sel, .name = packet + 12, .name_len = 15};
                if (n % 4 == 3) {
                        atomic_store(&purged, i);
                        CHECK(sardine_expunge(cache, &sel) >= 0);
                        for (unsigned k = 0; k < KEPT; k++)
                                CHECK(ask_network(i, k, NULL) == SARDINE_MISS);
                        while (atomic_load(&tailored) == i && !atomic_load(&over))
                                sched_yield();
                        continue;
                }
                bool seen[KEPT] = {false};
                CHECK(sardine_walk(cache, &sel, see_network, seen) >= KEPT);
                for (unsigned k = 0; k < KEPT; k++)
                        CHECK(seen[k]);
                /* No page is split while somebody walks. */
                nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
        }
        return NULL;
}

static void b20_b70_b76_b82_networks_while_pages_are_split(void **state)
{
        (void)state;
        struct sardine_options o;
        sardine_options_init(&o, sizeof o);
        o.max_bytes = 64 << 20;
        assert_int_equal(sardine_create(&o, &cache), 0);
        atomic_store(&over, false);
        for (unsigned i = 0; i < BYSTANDERS; i++) {
                struct sardine_token token;
                uint8_t response[512];
                assert_int_equal(ask_one(i, 0, false, &token), SARDINE_MISS);
                size_t len = make_response(i, 3, 80000, response);
                assert_int_equal(sardine_insert(cache, &token, response, len, NULL, NULL), SARDINE_STORED);
        }
        for (unsigned k = 0; k < KEPT; k++)
                assert_true(bring(FIRST_TAILORED, k));
        atomic_store(&tailored, FIRST_TAILORED);
        pthread_t threads[4];
        assert_int_equal(pthread_create(&threads[0], NULL, network_reader, (void *)1), 0);
        assert_int_equal(pthread_create(&threads[1], NULL, network_reader, (void *)2), 0);
        assert_int_equal(pthread_create(&threads[2], NULL, network_walker, NULL), 0);
        assert_int_equal(pthread_create(&threads[3], NULL, network_writer, NULL), 0);
        for (int i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        struct sardine_stats s = {.sz = sizeof s};
        assert_int_equal(sardine_stats_get(cache, &s), 0);
        assert_int_equal(s.evicted + s.expired, 0);
        assert_true(s.expunged > 0);
        sardine_destroy(cache);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(b20_b70_b76_b82_networks_while_pages_are_split),
            cmocka_unit_test(b61_b69_b82_b83_all_at_once),
        };
        return cmocka_run_group_tests_name("cache/threads", tests, NULL, NULL);
}
