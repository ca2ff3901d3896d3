/* SPDX-License-Identifier: MIT
 * Groups G and H of the behaviours: what goes when it is full, and that the limits hold. */
#include "kit.h"

#include <stdio.h>

#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/ecs.h"

static void check_limits(void)
{
        struct sardine_stats s = kit_stats(&kit);
        assert_true(s.bytes <= s.max_bytes);
        assert_true(s.max_entries == 0 || s.entries <= s.max_entries);
}

/* A response of about `size` bytes for ni.example TXT, by hand: ldns would take most of the time. */
static int ask_and_put(unsigned i, size_t size, uint32_t ttl)
{
        static uint8_t packet[65535];
        char name[32];
        snprintf(name, sizeof name, "n%u.example", i);
        struct ask ask = ASK(name, DNS_TXT, .transport = SARDINE_TCP);
        int outcome = look(&kit, ask)->outcome;
        if (outcome != SARDINE_MISS)
                return outcome;
        size_t at = ask_packet(&ask, packet);
        unsigned records = 0;
        packet[2] |= DNS_QR;
        do {
                memcpy(packet + at, "\xc0\x0c\0\x10\0\1", 6);
                put_be32(packet + at + 6, ttl);
                put_be16(packet + at + 10, 200);
                packet[at + 12] = 199;
                memset(packet + at + 13, 'a' + (int)(i % 26), 199);
                put_be32(packet + at + 13, records);
                at += 212;
                records++;
        } while (at + 212 <= size);
        put_be16(packet + 6, (uint16_t)records);
        assert_int_not_equal(put_packet(&kit, packet, at, NULL), SARDINE_REFUSED);
        return SARDINE_MISS;
}

static void b73_nearly_all_of_the_capacity_is_usable(void **state)
{
        (void)state;
        static const unsigned capacities[] = {20, 100, 2000};
        for (size_t c = 0; c < 3; c++) {
                kit.options.max_entries = capacities[c];
                kit_open(&kit);
                unsigned usable = capacities[c] * 95 / 100;
                for (unsigned i = 0; i < usable; i++)
                        assert_int_equal(ask_and_put(i, 0, 3600), SARDINE_MISS);
                assert_int_equal(kit_stats(&kit).evicted, 0);
                for (unsigned i = 0; i < usable; i++)
                        assert_int_equal(ask_and_put(i, 0, 3600), SARDINE_HIT);
                kit_close(&kit);
        }
        kit_open(&kit);
}

static void b67_a_hot_name_is_renewed_and_stays(void **state)
{
        (void)state;
        kit.options.max_entries = 1000;
        kit_open(&kit);
        for (unsigned i = 0; i < 1200; i++)
                ask_and_put(i, 0, 3600);
        unsigned misses = 0, cold = 2000;
        for (unsigned second = 0; second < 60; second++) {
                for (unsigned n = 0; n < 20; n++)
                        misses += ask_and_put(9999, 0, 2) == SARDINE_MISS;
                for (unsigned n = 0; n < 50; n++)
                        ask_and_put(cold++, 0, 3600);
                kit_wait(&kit, 1);
        }
        assert_true(misses <= 30);
        check_limits();
}

static void b68_limits_hold_in_every_order(void **state)
{
        (void)state;
        kit.options.max_entries = 500;
        kit.options.max_bytes = 1 << 20;
        kit.options.segment_size = 4096;
        kit_open(&kit);
        for (unsigned i = 0; i < 500; i++) {
                ask_and_put(i, 0, 3600);
                check_limits();
        }
        for (unsigned round = 0; round < 3; round++)
                for (unsigned i = 500; i-- > 0;)
                        ask_and_put(i, 0, 3600);
        for (unsigned i = 1000; i < 6000; i++) { /* asked once, ten times the capacity */
                ask_and_put(i, i % 7 ? 0 : 2000, 1 + i % 5);
                check_limits();
                if (i % 100 == 0)
                        kit_wait(&kit, 1);
        }
}

static void b72_the_budget_in_bytes_holds(void **state)
{
        (void)state;
        static const size_t sizes[] = {60, 1200, 16384, 60000};
        kit.options.max_entries = 0;
        kit.options.max_bytes = 8 << 20;
        kit_open(&kit);
        uint64_t least = kit_stats(&kit).bytes;
        for (size_t s = 0; s < 4; s++)
                for (unsigned i = 0; i < 24 * (1u << 20) / (sizes[s] + 300); i++) {
                        ask_and_put(100000 * (unsigned)s + i, sizes[s], 3600);
                        if (i % 16 == 0)
                                check_limits();
                }
        struct sardine_stats full = kit_stats(&kit);
        assert_true(full.evicted > 0);
        assert_true(full.entry_bytes > full.max_bytes / 2);
        assert_int_equal(sardine_expunge(kit.cache, NULL), full.entries);
        struct sardine_stats empty = kit_stats(&kit);
        assert_int_equal(empty.entries, 0);
        assert_true(empty.bytes <= least + (full.bytes - least) / 10);
        assert_int_equal(ask_and_put(1, 60000, 60), SARDINE_MISS);
        assert_int_equal(ask_and_put(1, 60000, 60), SARDINE_HIT);
}

/* NXDOMAIN for random labels, by hand; returns the outcome of the look. */
static int ask_random_label(unsigned i)
{
        static const uint8_t soa[] =
            "\xc0\0\0\6\0\1\0\0\1\x2c\0\x16\0\0\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\1\x2c";
        static uint8_t packet[2048];
        char name[32];
        snprintf(name, sizeof name, "x%u.random.example", i);
        struct ask ask = ASK(name, DNS_A);
        int outcome = look(&kit, ask)->outcome;
        if (outcome != SARDINE_MISS)
                return outcome;
        size_t at = ask_packet(&ask, packet);
        packet[2] |= DNS_QR;
        packet[3] = DNS_NXDOMAIN;
        memcpy(packet + at, soa, sizeof soa - 1);
        packet[at + 1] = (uint8_t)(DNS_HEADER + 1 + packet[DNS_HEADER]);
        packet[9] = 1;
        assert_int_not_equal(put_packet(&kit, packet, at + sizeof soa - 1, NULL), SARDINE_REFUSED);
        return SARDINE_MISS;
}

static int stale_outcome(const char *format, unsigned i, uint16_t type)
{
        char name[32];
        snprintf(name, sizeof name, format, i);
        return look(&kit,
                    ASK(name, type, .transport = SARDINE_TCP, .flags = SARDINE_ALLOW_STALE | SARDINE_PEEK))
            ->outcome;
}

static void b39_what_helps_is_kept_stale(void **state)
{
        (void)state;
        kit.options.max_entries = 200;
        kit.options.stale_window = 86400;
        kit.options.stale_positive = 1;
        kit_open(&kit);
        for (unsigned i = 0; i < 50; i++)
                assert_int_equal(ask_and_put(i, 0, 300), SARDINE_MISS);
        for (unsigned i = 0; i < 1000; i++)
                assert_int_equal(ask_random_label(i), SARDINE_MISS);
        check_limits();
        kit_wait(&kit, 301);
        for (unsigned i = 0; i < 50; i++)
                assert_int_equal(stale_outcome("n%u.example", i, DNS_TXT), SARDINE_STALE);
        for (unsigned i = 0; i < 1000; i++)
                assert_int_equal(stale_outcome("x%u.random.example", i, DNS_A), SARDINE_MISS);
}

static void b39_positives_survive_a_random_label_flood(void **state)
{
        (void)state;
        static const struct {
                uint64_t entries, bytes;
                unsigned positive;
        } sizes[] = {{200, 0, 50}, {0, 1 << 20, 1500}};
        for (unsigned s = 0; s < 2; s++) {
                kit.options.max_entries = sizes[s].entries;
                kit.options.max_bytes = sizes[s].bytes;
                kit.options.stale_window = 86400;
                kit.options.stale_positive = 1;
                kit_open(&kit);
                for (unsigned i = 0; i < sizes[s].positive; i++)
                        assert_int_equal(ask_and_put(i, 0, 600), SARDINE_MISS);
                for (unsigned i = 0; i < 20 * sizes[s].positive; i++)
                        assert_int_equal(ask_random_label(i), SARDINE_MISS);
                for (unsigned i = 0; i < sizes[s].positive; i++)
                        assert_int_equal(ask_and_put(i, 0, 600), SARDINE_HIT);
                assert_true(kit_stats(&kit).evicted > 0);
                check_limits();
                /* Nor does the flood push out what may stand in when all of it has expired. */
                kit_wait(&kit, 1000);
                for (unsigned i = 0; i < sizes[s].positive; i++)
                        assert_int_equal(stale_outcome("n%u.example", i, DNS_TXT), SARDINE_STALE);
                kit_close(&kit);
        }
        kit_open(&kit);
}

/* An answer of `strings` strings, good for 10.n.0.0/16; the question is cN.example TXT. */
static void bring_for_network(unsigned question, unsigned n, unsigned strings)
{
        struct wire_ecs e = {.family = ECS_IPV4, .source = 16, .addr = {10, (uint8_t)n}};
        uint8_t asked[24], got[24], packet[1024];
        size_t asked_len = wire_ecs_write(&e, asked), at;
        e.scope = 16;
        char name[32];
        static char records[16384];
        snprintf(name, sizeof name, "c%u.example", question);
        at = (size_t)sprintf(records, "%s 300 IN TXT \"%u-%u\"", name, n, strings);
        for (unsigned i = 0; i < strings; i++)
                at += (size_t)sprintf(records + at, " \"%0120u\"", n);
        struct ask ask =
            ASK(name, DNS_TXT, .transport = SARDINE_TCP, .options = asked, .options_len = asked_len);
        struct sardine_query q = {.sz = sizeof q, .packet = packet};
        struct sardine_token token;
        q.len = ask_packet(&ask, packet);
        assert_int_equal(sardine_token_init(kit.cache, &q, &token), 0);
        struct reply reply = REPLY(name, DNS_TXT, .records = records, .opt = got);
        reply.opt_len = wire_ecs_write(&e, got);
        assert_int_not_equal(put_token(&kit, &token, reply, NULL), SARDINE_REFUSED);
        check_limits();
        /* With few entries, all of them in demand, the list's coming may cost the page its place. */
        struct got *answer = look(&kit, ask);
        assert_true(answer->outcome == SARDINE_HIT || kit.options.max_entries != 0);
        snprintf(name, sizeof name, "\"%u-%u\"", n, strings);
        assert_true(answer->outcome != SARDINE_HIT || has_text(answer, name));
}

/* Pages of networks are entries that are written anew, larger, with each network, and smaller when they are
 * split or an answer shrinks. */
static void b20_b72_pages_that_grow(void **state)
{
        (void)state;
        static const uint64_t entries[] = {0, 5, 30};
        for (unsigned limit = 0; limit < 3; limit++) {
                kit.options.max_entries = entries[limit];
                kit.options.max_bytes = 600 << 10;
                kit.options.segment_size = 32768;
                kit_open(&kit);
                for (unsigned n = 0; n < 256; n++)
                        for (unsigned question = 0; question < 4; question++) {
                                bring_for_network(question, n, n % 16 == 15 ? 60 : n % 3);
                                if (n % 8 == 7) /* one of before, larger, then smaller */
                                        bring_for_network(question, n / 2, n % 16 == 7 ? 40 : 0);
                        }
                for (unsigned i = 0; i < 200; i++) {
                        ask_and_put(i, i % 9 ? 0 : 20000, 3600);
                        check_limits();
                        bring_for_network(i % 7, i, i % 5 ? 0 : 50);
                }
                assert_true(kit_stats(&kit).evicted > 0);
                kit_close(&kit);
        }
        kit_open(&kit);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
        const struct CMUnitTest tests[] = {
            T(b73_nearly_all_of_the_capacity_is_usable),
            T(b67_a_hot_name_is_renewed_and_stays),
            T(b68_limits_hold_in_every_order),
            T(b72_the_budget_in_bytes_holds),
            T(b20_b72_pages_that_grow),
            T(b39_what_helps_is_kept_stale),
            T(b39_positives_survive_a_random_label_flood),
        };
        return cmocka_run_group_tests_name("cache/limits", tests, NULL, NULL);
}
