/* SPDX-License-Identifier: MIT
 * Callers of other versions, and callers that pass nonsense. */
#include "kit.h"

#include <stddef.h>
#include <stdlib.h>

#include "abi.h"
#include "wire/dns.h"

static const struct ask plain = {.name = "a.example", .type = 1, .rd = true};

static int setup(void **state)
{
        (void)state;
        kit_init(&kit);
        kit_open(&kit);
        fill(&kit, plain, REPLY("a.example", 1, .records = "a.example 300 IN A 192.0.2.1"));
        return 0;
}

/* A struct of `size` bytes, of which the caller has the first ones of `full` only: on the heap, so that
 * memcheck and ASan see a byte too far. */
__attribute__((noinline)) static void *cut(const void *full, size_t size)
{
        void *p = malloc(size);
        memcpy(p, full, size);
        memcpy(p, &size, sizeof size);
        return p;
}

/* What every function says to a size: of its struct, one less than the smallest, and nonsense. */
#define SIZES(call, object, least)                                                                           \
        do {                                                                                                 \
                size_t was = (object).sz;                                                                    \
                const size_t bad[] = {0, 8, (least)-1, ABI_SIZE_MOST + 1, SIZE_MAX};                         \
                for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {                                      \
                        (object).sz = bad[i];                                                                \
                        assert_int_equal(call, -EINVAL);                                                     \
                }                                                                                            \
                (object).sz = was;                                                                           \
        } while (0)

static int count_one(void *ctx, const struct sardine_entry_view *entry)
{
        (void)entry;
        ++*(unsigned *)ctx;
        return 0;
}

static void sizes_that_are_none_are_refused(void **state)
{
        (void)state;
        uint8_t packet[1024], buf[512], response[] = {0};
        unsigned seen = 0;
        struct sardine_token token;
        struct sardine_query q = {.sz = sizeof q, .packet = packet, .len = ask_packet(&plain, packet)};
        struct sardine_answer a = {.sz = sizeof a, .buf = buf, .cap = sizeof buf, .token = &token};
        int outcome;
        SIZES(sardine_lookup(kit.cache, &q, &a), q, ABI_QUERY_LEAST);
        SIZES(sardine_lookup(kit.cache, &q, &a), a, ABI_ANSWER_LEAST);
        SIZES(sardine_lookup_batch(kit.cache, 1, &q, &a, &outcome), q, ABI_QUERY_LEAST);
        SIZES(sardine_lookup_batch(kit.cache, 1, &q, &a, &outcome), a, ABI_ANSWER_LEAST);
        SIZES(sardine_failed(kit.cache, &q, &a), q, ABI_QUERY_LEAST);
        SIZES(sardine_failed(kit.cache, &q, &a), a, ABI_ANSWER_LEAST);
        SIZES(sardine_token_init(kit.cache, &q, &token), q, ABI_QUERY_LEAST);
        SIZES(sardine_render(kit.cache, &q, response, 1, &a), q, ABI_QUERY_LEAST);
        SIZES(sardine_render(kit.cache, &q, response, 1, &a), a, ABI_ANSWER_LEAST);
        assert_int_equal(sardine_token_init(kit.cache, &q, &token), 0);
        struct sardine_insert_info info = {.sz = sizeof info};
        struct sardine_insert_result result = {.sz = sizeof result};
        SIZES(sardine_insert(kit.cache, &token, response, 1, &info, &result), info, ABI_INFO_LEAST);
        SIZES(sardine_insert(kit.cache, &token, response, 1, &info, &result), result, ABI_RESULT_LEAST);
        struct sardine_selector sel = {.sz = sizeof sel};
        SIZES((int)sardine_expunge(kit.cache, &sel), sel, ABI_SELECTOR_LEAST);
        SIZES((int)sardine_walk(kit.cache, &sel, count_one, &seen), sel, ABI_SELECTOR_LEAST);
        struct sardine_stats stats = {.sz = sizeof stats};
        SIZES(sardine_stats_get(kit.cache, &stats), stats, ABI_STATS_LEAST);
        struct sardine_options o;
        sardine_cache *cache;
        sardine_options_init(&o, sizeof o);
        SIZES(sardine_create(&o, &cache), o, ABI_OPTIONS_LEAST);
        assert_int_equal(seen, 0);
        assert_int_equal(sardine_lookup(kit.cache, &q, &a), SARDINE_HIT);
}

/* A caller of the first release passes shorter structs, once there are longer ones. */
static void callers_of_the_first_release_are_served(void **state)
{
        (void)state;
        uint8_t packet[1024], *buf = malloc(512);
        struct sardine_token token;
        const struct sardine_query full = {.packet = packet, .len = ask_packet(&plain, packet)};
        const struct sardine_answer empty = {.buf = buf, .cap = 512, .token = &token};
        struct sardine_query *q = cut(&full, ABI_QUERY_LEAST);
        struct sardine_answer *a = cut(&empty, ABI_ANSWER_LEAST);
        assert_int_equal(sardine_lookup(kit.cache, q, a), SARDINE_HIT);
        assert_int_equal(a->sz, ABI_ANSWER_LEAST);
        assert_int_equal(a->ttl, 300);
        assert_int_equal(buf[a->len - 1], 1);
        int outcome = -1;
        assert_int_equal(sardine_lookup_batch(kit.cache, 1, q, a, &outcome), 0);
        assert_int_equal(outcome, SARDINE_HIT);
        assert_int_equal(sardine_failed(kit.cache, q, a), SARDINE_HIT);
        assert_int_equal(sardine_token_init(kit.cache, q, &token), 0);

        size_t len;
        uint8_t *response =
            reply_packet(&REPLY("a.example", 1, .rcode = DNS_SERVFAIL, .records = NULL), &len);
        assert_int_equal(sardine_render(kit.cache, q, response, len, a), SARDINE_HIT);
        assert_int_equal(a->rcode, DNS_SERVFAIL);
        kit_wait(&kit, 301);
        const struct sardine_insert_info known = {.failure_ttl_set = 1, .failure_ttl = 7};
        struct sardine_insert_info *info = cut(&known, ABI_INFO_LEAST);
        struct sardine_insert_result *result = cut(&(struct sardine_insert_result){0}, ABI_RESULT_LEAST);
        assert_int_equal(sardine_insert(kit.cache, &token, response, len, info, result), SARDINE_REPLACED);
        assert_int_equal(result->sz, ABI_RESULT_LEAST);
        assert_int_equal(result->life, 7);

        struct sardine_selector *sel =
            cut(&(struct sardine_selector){.use_rcode = 1, .rcode = DNS_SERVFAIL}, ABI_SELECTOR_LEAST);
        unsigned seen = 0;
        assert_int_equal(sardine_walk(kit.cache, sel, count_one, &seen), 1);
        assert_int_equal(seen, 1);
        struct sardine_stats *stats = cut(&(struct sardine_stats){0}, ABI_STATS_LEAST);
        assert_int_equal(sardine_stats_get(kit.cache, stats), 0);
        assert_int_equal(stats->sz, ABI_STATS_LEAST);
        assert_int_equal(stats->entries, 1);
        assert_int_equal(stats->hits, 2);

        struct sardine_options with;
        sardine_options_init(&with, sizeof with);
        struct sardine_options *o = cut(&with, ABI_OPTIONS_LEAST);
        sardine_cache *cache;
        assert_int_equal(sardine_create(o, &cache), 0);
        sardine_destroy(cache);
        free(o);
        free(stats);
        free(sel);
        free(result);
        free(info);
        free(response);
        free(a);
        free(q);
        free(buf);
}

/* And one of a later release, longer ones: as long as it sets nothing that is not known here. */
static void callers_of_later_releases_are_served(void **state)
{
        (void)state;
        uint8_t packet[1024], buf[512];
        struct {
                struct sardine_query q;
                uint64_t newer;
        } q[2] = {{.q = {.sz = sizeof q[0], .packet = packet, .len = ask_packet(&plain, packet)}}};
        struct {
                struct sardine_answer a;
                uint64_t newer[2];
        } a[2] = {{.a = {.sz = sizeof a[0], .buf = buf, .cap = sizeof buf}}};
        assert_int_equal(sardine_lookup(kit.cache, &q[0].q, &a[0].a), SARDINE_HIT);
        assert_int_equal(a[0].a.sz, sizeof a[0]);
        int outcomes[2];
        q[1] = q[0];
        a[1] = a[0];
        assert_int_equal(sardine_lookup_batch(kit.cache, 2, &q[0].q, &a[0].a, outcomes), 0);
        assert_int_equal(outcomes[0], SARDINE_HIT);
        assert_int_equal(outcomes[1], SARDINE_HIT);
        q[0].newer = 1;
        assert_int_equal(sardine_lookup(kit.cache, &q[0].q, &a[0].a), -E2BIG);
        assert_int_equal(sardine_failed(kit.cache, &q[0].q, &a[0].a), -E2BIG);
        assert_int_equal(sardine_lookup_batch(kit.cache, 2, &q[0].q, &a[0].a, outcomes), 0);
        assert_int_equal(outcomes[0], -E2BIG);
        assert_int_equal(outcomes[1], SARDINE_HIT);
}

/* The elements of a batch are as large as the first says; one that says otherwise harms itself only. */
static void sizes_within_a_batch(void **state)
{
        (void)state;
        enum { MANY = 40 };
        static uint8_t packet[1024], bufs[MANY][512];
        static struct sardine_query q[MANY];
        static struct sardine_answer a[MANY];
        int outcomes[MANY];
        size_t len = ask_packet(&plain, packet);
        for (unsigned i = 0; i < MANY; i++) {
                q[i] = (struct sardine_query){.sz = sizeof q[i], .packet = packet, .len = len};
                a[i] = (struct sardine_answer){.sz = sizeof a[i], .buf = bufs[i], .cap = sizeof bufs[i]};
        }
        /* also the first of a group that is looked up together */
        q[3].sz = 0;
        q[16].sz = 0;
        a[32].sz = SIZE_MAX;
        q[33].sz = sizeof q[0] + 8;
        q[34].flags = 1u << 31;
        assert_int_equal(sardine_lookup_batch(kit.cache, MANY, q, a, outcomes), 0);
        for (unsigned i = 0; i < MANY; i++) {
                bool bad = i == 3 || i == 16 || (i >= 32 && i <= 34);
                assert_int_equal(outcomes[i], bad ? -EINVAL : SARDINE_HIT);
                assert_int_equal(a[i].len > 0, !bad);
        }
        q[0].sz = sizeof q[0] + 1; /* nothing could be aligned */
        assert_int_equal(sardine_lookup_batch(kit.cache, MANY, q, a, outcomes), -EINVAL);
}

static void unknown_flags_transports_and_addresses_are_refused(void **state)
{
        (void)state;
        uint8_t packet[1024], buf[512];
        struct sardine_token token;
        struct sardine_answer a = {.sz = sizeof a, .buf = buf, .cap = sizeof buf, .token = &token};
        const uint32_t known =
            SARDINE_SKIP | SARDINE_CACHE_ONLY | SARDINE_ALLOW_STALE | SARDINE_COALESCE | SARDINE_PEEK;
        size_t len = ask_packet(&plain, packet);
        struct sardine_stats before = kit_stats(&kit);
        for (unsigned bit = 0; bit < 32; bit++) {
                struct sardine_query q = {.sz = sizeof q, .packet = packet, .len = len, .flags = 1u << bit};
                bool fine = q.flags & known;
                assert_int_equal(sardine_lookup(kit.cache, &q, &a) >= 0, fine);
                assert_int_equal(sardine_failed(kit.cache, &q, &a) >= 0, fine);
                assert_int_equal(sardine_token_init(kit.cache, &q, &token) >= 0, fine);
                if (!fine)
                        assert_int_equal(sardine_render(kit.cache, &q, packet, len, &a), -EINVAL);
        }
        struct sardine_query q = {.sz = sizeof q, .packet = packet, .len = len};
        for (q.transport = SARDINE_UDP; q.transport <= SARDINE_DOQ; q.transport++)
                assert_int_equal(sardine_lookup(kit.cache, &q, &a), SARDINE_HIT);
        assert_int_equal(sardine_lookup(kit.cache, &q, &a), -EINVAL);
        q.transport = SARDINE_UDP;
        const uint8_t address[16] = {192, 0, 2, 1};
        for (q.client_len = 0; q.client_len < 20; q.client_len++) {
                bool fine = q.client_len == 0 || q.client_len == 4 || q.client_len == 16;
                q.client = address;
                assert_int_equal(sardine_lookup(kit.cache, &q, &a), fine ? SARDINE_HIT : -EINVAL);
                q.client = NULL;
                assert_int_equal(sardine_lookup(kit.cache, &q, &a),
                                 q.client_len == 0 ? SARDINE_HIT : -EINVAL);
        }
        /* Mistakes are no lookups. */
        struct sardine_stats after = kit_stats(&kit);
        assert_int_equal(after.lookups - before.lookups, 4 + 5 + 3 + 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, kit_teardown)
        const struct CMUnitTest tests[] = {
            T(sizes_that_are_none_are_refused),
            T(callers_of_the_first_release_are_served),
            T(callers_of_later_releases_are_served),
            T(sizes_within_a_batch),
            T(unknown_flags_transports_and_addresses_are_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
