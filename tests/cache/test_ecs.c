/* SPDX-License-Identifier: MIT
 * Client subnets by returned scope (RFC 7871 s7.3): B03, B17-B23. */
#include "kit.h"

#include <stdio.h>

#include "entry/key.h"
#include "entry/view.h"
#include "networks.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/ecs.h"

/* An ECS option for a.b.c.0/source, with a scope. */
struct option {
        uint8_t bytes[24];
        size_t len;
};

static struct option ecs(uint8_t a, uint8_t b, uint8_t c, uint8_t source, uint8_t scope)
{
        struct wire_ecs e = {.family = ECS_IPV4, .source = source, .scope = scope, .addr = {a, b, c}};
        struct option o;
        wire_ecs_mask(e.addr, source);
        o.len = wire_ecs_write(&e, o.bytes);
        return o;
}

static struct got *ask_from(uint8_t a, uint8_t b, uint8_t c)
{
        struct option o = ecs(a, b, c, 24, 0);
        return look(&kit, ASK("cdn.example", 1, .rd = true, .options = o.bytes, .options_len = o.len));
}

/* What upstream answers to a.b.c.0/24 for `scope`, whatever is in the cache. */
static int put_around(uint8_t a, uint8_t b, uint8_t c, uint8_t scope, const char *address)
{
        struct option own = ecs(a, b, c, 24, 0), o = ecs(a, b, c, 24, scope);
        struct ask ask = ASK("cdn.example", 1, .rd = true, .options = own.bytes, .options_len = own.len);
        uint8_t packet[1024];
        struct sardine_query q = {.sz = sizeof q, .packet = packet};
        struct sardine_token token;
        q.len = ask_packet(&ask, packet);
        assert_int_equal(sardine_token_init(kit.cache, &q, &token), 0);
        char records[100];
        snprintf(records, sizeof records, "cdn.example 300 IN A %s", address);
        return put_token(&kit, &token,
                         REPLY("cdn.example", 1, .records = records, .opt = o.bytes, .opt_len = o.len), NULL);
}

/* The same after a miss. */
static int put_scoped(uint8_t a, uint8_t b, uint8_t c, uint8_t scope, const char *address)
{
        assert_int_equal(ask_from(a, b, c)->outcome, SARDINE_MISS);
        return put_around(a, b, c, scope, address);
}

static void expect_from(uint8_t a, uint8_t b, uint8_t c, const char *address, uint8_t scope)
{
        struct got *got = ask_from(a, b, c);
        assert_int_equal(got->outcome, SARDINE_HIT);
        if (!has_text(got, address))
                fail_msg("%s is not in the reply", address);
        unsigned opts;
        const uint8_t *opt = find_opt(got, &opts);
        assert_int_equal(opts, 1);
        struct option echo = ecs(a, b, c, 24, scope);
        assert_int_equal(get_be16(opt + 9), echo.len);
        assert_memory_equal(opt + 11, echo.bytes, echo.len);
}

static void b03_subnets_do_not_share_even_when_they_collide(void **state)
{
        (void)state;
        kit_close(&kit);
        kit_open_colliding(&kit);
        assert_int_equal(put_scoped(192, 0, 2, 24, "198.51.100.1"), SARDINE_STORED);
        assert_int_equal(ask_from(203, 0, 113)->outcome, SARDINE_MISS);
        expect_from(192, 0, 2, "198.51.100.1", 24);
}

static void b18_an_answer_serves_its_whole_scope(void **state)
{
        (void)state;
        assert_int_equal(put_scoped(198, 51, 100, 16, "192.0.2.1"), SARDINE_STORED);
        expect_from(198, 51, 100, "192.0.2.1", 16);
        expect_from(198, 51, 7, "192.0.2.1", 16);
        assert_int_equal(ask_from(198, 52, 7)->outcome, SARDINE_MISS);
        /* No ECS in the answer: good for everybody. */
        assert_int_equal(
            put(&kit, REPLY("cdn.example", 1, .records = "cdn.example 300 IN A 192.0.2.9"), NULL),
            SARDINE_REPLACED);
        expect_from(203, 0, 113, "192.0.2.9", 0);
        expect_from(198, 51, 7, "192.0.2.1", 16);
}

static void b20_longest_scope_wins_and_expunge_takes_all(void **state)
{
        (void)state;
        assert_int_equal(put_scoped(192, 0, 2, 24, "198.51.100.1"), SARDINE_STORED);
        assert_int_equal(put_scoped(198, 51, 100, 0, "198.51.100.2"), SARDINE_REPLACED);
        expect_from(192, 0, 2, "198.51.100.1", 24);
        expect_from(198, 51, 100, "198.51.100.2", 0);
        struct sardine_selector sel = {.sz = sizeof sel};
        uint8_t name[255];
        sel.name = name;
        sel.name_len = (uint32_t)sardine_name_from_text("cdn.example", name);
        assert_int_equal(sardine_expunge(kit.cache, &sel), 2);
        assert_int_equal(ask_from(192, 0, 2)->outcome, SARDINE_MISS);
        assert_int_equal(ask_from(198, 51, 100)->outcome, SARDINE_MISS);
}

static void b20_the_general_answer_first(void **state)
{
        (void)state;
        static const char chain[] =
            "cdn.example 300 IN CNAME Edge.cdn.example\nEdge.cdn.example 200 IN A 198.51.100.2";
        assert_int_equal(ask_from(10, 0, 0)->outcome, SARDINE_MISS);
        struct option general = ecs(10, 0, 0, 24, 0);
        assert_int_equal(put(&kit,
                             REPLY("cdn.example", 1, .ra = true, .ad = true, .records = chain,
                                   .opt = general.bytes, .opt_len = general.len),
                             NULL),
                         SARDINE_STORED);
        /* An internal client asks around the cache and gets an answer for its own network. */
        struct option own = ecs(192, 0, 2, 24, 0);
        struct ask ask = ASK("cdn.example", 1, .rd = true, .options = own.bytes, .options_len = own.len);
        uint8_t packet[1024];
        struct sardine_query q = {.sz = sizeof q, .packet = packet};
        struct sardine_token token;
        q.len = ask_packet(&ask, packet);
        assert_int_equal(sardine_token_init(kit.cache, &q, &token), 0);
        kit_wait(&kit, 50);
        own = ecs(192, 0, 2, 24, 24);
        assert_int_equal(put_token(&kit, &token,
                                   REPLY("cdn.example", 1, .records = "cdn.example 300 IN A 198.51.100.1",
                                         .opt = own.bytes, .opt_len = own.len),
                                   NULL),
                         SARDINE_STORED);
        expect_from(192, 0, 2, "198.51.100.1", 24);
        expect_from(10, 9, 9, "198.51.100.2", 0);
        /* Written again with its list of scopes, it is the same answer to the letter, as old as it was. */
        struct got *got = look(&kit, ASK("CDN.example", 1, .rd = true, .ad = true));
        assert_int_equal(got->outcome, SARDINE_HIT);
        assert_int_equal(answers(got), 2);
        assert_int_equal(first_ttl(got), 250);
        assert_true(has_text(got, "Edge."));
        assert_true(got->buf[3] & DNS_AD);
        kit_wait(&kit, 149);
        expect_from(10, 9, 9, "198.51.100.2", 0);
        kit_wait(&kit, 1);
        assert_int_equal(ask_from(10, 9, 9)->outcome, SARDINE_MISS);
        expect_from(192, 0, 2, "198.51.100.1", 24);
}

static void b20_families_and_lengths_are_identity(void **state)
{
        (void)state;
        assert_int_equal(put_scoped(192, 0, 2, 22, "198.51.100.1"), SARDINE_STORED);
        expect_from(192, 0, 3, "198.51.100.1", 22);
        assert_int_equal(ask_from(192, 0, 4)->outcome, SARDINE_MISS);
        static const uint8_t v6[] = {0, EDNS_ECS, 0, 7, 0, ECS_IPV6, 24, 0, 192, 0, 2};
        assert_int_equal(
            look(&kit, ASK("cdn.example", 1, .rd = true, .options = v6, .options_len = 11))->outcome,
            SARDINE_MISS);
}

static void b19_the_clients_address_selects_what_the_proxy_added(void **state)
{
        (void)state;
        static const uint8_t client[4] = {192, 0, 2, 77}, other[4] = {192, 0, 3, 77};
        struct ask ask = ASK("cdn.example", 1, .rd = true, .client = client);
        assert_int_equal(look(&kit, ask)->outcome, SARDINE_MISS);
        struct option o = ecs(192, 0, 2, 24, 24);
        assert_int_equal(put(&kit,
                             REPLY("cdn.example", 1, .records = "cdn.example 300 IN A 198.51.100.1",
                                   .opt = o.bytes, .opt_len = o.len),
                             NULL),
                         SARDINE_STORED);
        struct got *got = look(&kit, ask);
        assert_int_equal(got->outcome, SARDINE_HIT);
        unsigned opts;
        find_opt(got, &opts);
        assert_int_equal(opts, 0);
        ask.client = other;
        assert_int_equal(look(&kit, ask)->outcome, SARDINE_MISS);
}

static void b21_a_refresh_is_the_variants_own(void **state)
{
        (void)state;
        kit_close(&kit);
        kit.options.refresh_percent = 50;
        kit_open(&kit);
        assert_int_equal(put_scoped(192, 0, 2, 24, "198.51.100.1"), SARDINE_STORED);
        assert_int_equal(put_scoped(203, 0, 113, 0, "198.51.100.2"), SARDINE_REPLACED);
        for (int i = 0; i < 20; i++) {
                expect_from(192, 0, 2, "198.51.100.1", 24);
                expect_from(203, 0, 113, "198.51.100.2", 0);
        }
        kit_wait(&kit, 200);
        /* Each variant has a winner of its own, and its token asks with the variant's network. */
        struct got *got = ask_from(192, 0, 2);
        assert_int_equal(got->outcome, SARDINE_REFRESH);
        struct sardine_token token = got->token;
        assert_int_equal(ask_from(192, 0, 2)->outcome, SARDINE_HIT);
        assert_int_equal(ask_from(203, 0, 113)->outcome, SARDINE_REFRESH);
        unsigned reason;
        struct option other = ecs(203, 0, 113, 24, 24), own = ecs(192, 0, 2, 24, 24);
        struct reply fresh = REPLY("cdn.example", 1, .records = "cdn.example 300 IN A 198.51.100.9",
                                   .opt = other.bytes, .opt_len = other.len);
        assert_int_equal(put_token(&kit, &token, fresh, &reason), SARDINE_REFUSED);
        assert_int_equal(reason, SARDINE_REFUSED_ECS);
        fresh.opt = own.bytes;
        assert_int_equal(put_token(&kit, &token, fresh, NULL), SARDINE_REPLACED);
        expect_from(192, 0, 2, "198.51.100.9", 24);
        expect_from(203, 0, 113, "198.51.100.2", 0);
}

/* The general answer, fetched for a client without ECS. */
static int put_general(uint32_t ttl, const char *address)
{
        struct sardine_token token;
        uint8_t packet[1024];
        struct ask ask = ASK("cdn.example", 1, .rd = true);
        struct sardine_query q = {.sz = sizeof q, .packet = packet};
        q.len = ask_packet(&ask, packet);
        assert_int_equal(sardine_token_init(kit.cache, &q, &token), 0);
        char records[100];
        snprintf(records, sizeof records, "cdn.example %u IN A %s", ttl, address);
        return put_token(&kit, &token, REPLY("cdn.example", 1, .records = records), NULL);
}

static void b20_an_expired_general_answer_stays_expired(void **state)
{
        (void)state;
        assert_int_equal(put_scoped(192, 0, 2, 24, "198.51.100.1"), SARDINE_STORED);
        assert_int_equal(put_general(60, "198.51.100.2"), SARDINE_REPLACED);
        expect_from(203, 0, 113, "198.51.100.2", 0);
        kit_wait(&kit, 100);
        /* An answer for another network, or the same one again, gives it no new life. */
        assert_int_equal(put_scoped(10, 0, 0, 24, "198.51.100.3"), SARDINE_STORED);
        assert_int_equal(ask_from(203, 0, 113)->outcome, SARDINE_MISS);
        kit_wait(&kit, 250);
        assert_int_equal(put_scoped(192, 0, 2, 24, "198.51.100.1"), SARDINE_REFRESHED);
        assert_int_equal(ask_from(203, 0, 113)->outcome, SARDINE_MISS);
        expect_from(192, 0, 2, "198.51.100.1", 24);
        /* What can be found does not depend on the expired answer's place. */
        assert_true(sardine_purge_expired(kit.cache, 0) >= 0);
        expect_from(192, 0, 2, "198.51.100.1", 24);
}

static void b37_networks_do_not_disturb_a_stale_general_answer(void **state)
{
        (void)state;
        kit_close(&kit);
        kit.options.stale_window = 3600;
        kit_open(&kit);
        assert_int_equal(put_general(60, "198.51.100.2"), SARDINE_STORED);
        kit_wait(&kit, 100);
        assert_int_equal(put_around(10, 0, 0, 24, "198.51.100.3"), SARDINE_STORED);
        assert_int_equal(put_around(10, 1, 0, 24, "198.51.100.3"), SARDINE_STORED);
        assert_int_equal(put_around(10, 2, 0, 16, "198.51.100.4"), SARDINE_STORED);
        struct option o = ecs(203, 0, 113, 24, 0);
        struct ask ask = ASK("cdn.example", 1, .rd = true, .options = o.bytes, .options_len = o.len,
                             .flags = SARDINE_ALLOW_STALE);
        struct got *got = look(&kit, ask);
        assert_int_equal(got->outcome, SARDINE_STALE);
        assert_int_equal(got->answer.age, 40);
        assert_int_equal(first_ttl(got), 30);
        assert_true(has_text(got, "198.51.100.2"));
}

static int see_life(void *ctx, const struct sardine_entry_view *entry)
{
        if (entry->ecs_family == 0)
                *(uint32_t *)ctx = entry->life;
        return 0;
}

static void b20_a_list_of_networks_leaves_the_general_answer_as_it_is(void **state)
{
        (void)state;
        assert_int_equal(put_general(400, "198.51.100.2"), SARDINE_STORED);
        kit_wait(&kit, 300);
        assert_int_equal(put_around(10, 0, 0, 24, "198.51.100.3"), SARDINE_STORED);
        uint32_t life = 0;
        assert_int_equal(sardine_walk(kit.cache, NULL, see_life, &life), 2);
        assert_int_equal(life, 400);
        assert_int_equal(first_ttl(ask_from(203, 0, 113)), 100);
}

static void b22_a_scoped_negative_stays_in_its_scope(void **state)
{
        (void)state;
        assert_int_equal(put_scoped(192, 0, 2, 24, "198.51.100.1"), SARDINE_STORED);
        assert_int_equal(ask_from(203, 0, 113)->outcome, SARDINE_MISS);
        struct option o = ecs(203, 0, 113, 24, 24);
        assert_int_equal(put(&kit,
                             REPLY("cdn.example", 1, .rcode = DNS_NXDOMAIN,
                                   .records = "-- authority\nexample 60 IN SOA ns. host. 1 2 3 4 60",
                                   .opt = o.bytes, .opt_len = o.len),
                             NULL),
                         SARDINE_STORED);
        expect_from(192, 0, 2, "198.51.100.1", 24);
        assert_int_equal(ask_from(203, 0, 113)->answer.rcode, DNS_NXDOMAIN);
        assert_int_equal(ask_from(198, 51, 100)->outcome, SARDINE_MISS);
}

static void b23_source_zero_gets_no_tailored_answer(void **state)
{
        (void)state;
        static const uint8_t client[4] = {192, 0, 2, 77};
        assert_int_equal(put_scoped(192, 0, 2, 24, "198.51.100.1"), SARDINE_STORED);
        struct option none = ecs(0, 0, 0, 0, 0);
        assert_int_equal(look(&kit, ASK("cdn.example", 1, .rd = true, .options = none.bytes,
                                        .options_len = none.len, .client = client))
                             ->outcome,
                         SARDINE_MISS);
}

static void b63_ecs_that_contradicts_the_query_is_refused(void **state)
{
        (void)state;
        assert_int_equal(ask_from(192, 0, 2)->outcome, SARDINE_MISS);
        struct option o = ecs(203, 0, 113, 24, 24);
        unsigned reason;
        assert_int_equal(put(&kit,
                             REPLY("cdn.example", 1, .records = "cdn.example 300 IN A 198.51.100.1",
                                   .opt = o.bytes, .opt_len = o.len),
                             &reason),
                         SARDINE_REFUSED);
        assert_int_equal(reason, SARDINE_REFUSED_ECS);
}

/* Fill networks a.b.c.0/24 with eight different answers; returns how many are hits afterwards, each checked.
 */
static unsigned fill_networks(unsigned count)
{
        char records[64];
        for (unsigned i = 0; i < count; i++) {
                uint8_t a = 10, b = (uint8_t)(i >> 8), c = (uint8_t)i;
                snprintf(records, sizeof records, "cdn.example 300 IN A 192.0.2.%u", i % 8);
                struct option o = ecs(a, b, c, 24, 24);
                assert_int_equal(ask_from(a, b, c)->outcome, SARDINE_MISS);
                assert_int_equal(
                    put(&kit, REPLY("cdn.example", 1, .records = records, .opt = o.bytes, .opt_len = o.len),
                        NULL),
                    SARDINE_STORED);
        }
        unsigned hits = 0;
        for (unsigned i = 0; i < count; i++) {
                struct got *got = ask_from(10, (uint8_t)(i >> 8), (uint8_t)i);
                if (got->outcome != SARDINE_HIT)
                        continue;
                hits++;
                snprintf(records, sizeof records, "192.0.2.%u", i % 8);
                assert_true(has_text(got, records));
        }
        return hits;
}

static int count_networks(void *ctx, const struct sardine_entry_view *entry)
{
        assert_int_equal(entry->ecs_family, ECS_IPV4);
        assert_int_equal(entry->ecs_prefix, 24);
        assert_int_equal(entry->ecs_addr[0], 10);
        ++*(unsigned *)ctx;
        return 0;
}

static void b64_thousands_of_networks_grow_page_by_page(void **state)
{
        (void)state;
        enum {
                MANY = 3000,
        };
        assert_int_equal(fill_networks(MANY), MANY);
        unsigned seen = 0;
        assert_int_equal(sardine_walk(kit.cache, NULL, count_networks, &seen), MANY);
        assert_int_equal(seen, MANY);
        /* Name, key and the eight answers are shared: an answer for a network costs little more than its
         * prefix. */
        struct sardine_stats s = kit_stats(&kit);
        assert_true(s.entries < MANY / 20);
        assert_true(s.entry_bytes / MANY < 20);
        /* Answers for everybody come and go in between and nothing is lost. */
        assert_int_equal(put_scoped(203, 0, 113, 0, "198.51.100.7"), SARDINE_REPLACED);
        expect_from(203, 0, 113, "198.51.100.7", 0);
        expect_from(10, 11, 183, "192.0.2.7", 24);
        /* Refreshed in place, each by itself. */
        kit_wait(&kit, 200);
        struct option o = ecs(10, 0, 5, 24, 24), query = ecs(10, 0, 5, 24, 0);
        struct ask ask = ASK("cdn.example", 1, .rd = true, .options = query.bytes, .options_len = query.len);
        uint8_t packet[1024];
        struct sardine_query q = {.sz = sizeof q, .packet = packet};
        struct sardine_token token;
        q.len = ask_packet(&ask, packet);
        assert_int_equal(sardine_token_init(kit.cache, &q, &token), 0);
        assert_int_equal(put_token(&kit, &token,
                                   REPLY("cdn.example", 1, .records = "cdn.example 300 IN A 192.0.2.5",
                                         .opt = o.bytes, .opt_len = o.len),
                                   NULL),
                         SARDINE_REFRESHED);
        kit_wait(&kit, 150);
        assert_int_equal(first_ttl(ask_from(10, 0, 5)), 150);
        assert_int_equal(ask_from(10, 0, 13)->outcome, SARDINE_MISS);
        uint8_t name[255];
        struct sardine_selector sel = {.sz = sizeof sel, .name = name};
        sel.name_len = (uint32_t)sardine_name_from_text("cdn.example", name);
        assert_true(sardine_expunge(kit.cache, &sel) > 0);
        assert_int_equal(ask_from(10, 0, 5)->outcome, SARDINE_MISS);
        assert_int_equal(kit_stats(&kit).entries, 0);
}

static void b64_networks_of_a_name_are_bounded(void **state)
{
        (void)state;
        kit_close(&kit);
        kit.options.max_networks = 500;
        kit_open(&kit);
        unsigned hits = fill_networks(3000);
        assert_true(hits <= 500 && hits >= 250);
        /* The last one in is always there. */
        assert_int_equal(ask_from(10, 2999 >> 8, 2999 & 255)->outcome, SARDINE_HIT);
        kit_close(&kit);
        kit.options.max_networks = 0;
        kit_open(&kit);
        assert_int_equal(ask_from(10, 0, 0)->outcome, SARDINE_MISS);
        struct option o = ecs(10, 0, 0, 24, 24);
        unsigned reason;
        assert_int_equal(put(&kit,
                             REPLY("cdn.example", 1, .records = "cdn.example 300 IN A 192.0.2.5",
                                   .opt = o.bytes, .opt_len = o.len),
                             &reason),
                         SARDINE_REFUSED);
        assert_int_equal(reason, SARDINE_REFUSED_ECS);
}

/* In caches so small that the list of prefix lengths, a page, and other answers cannot all stay. Hardly ever
 * one takes the other's place twice. */
static void b64_what_was_stored_is_found_next(void **state)
{
        (void)state;
        uint32_t seed = 1, refused = 0;
        for (unsigned room = 2; room <= 9; room++) {
                kit_close(&kit);
                kit_init(&kit);
                kit.options.max_entries = room;
                kit_open(&kit);
                for (unsigned i = 0; i < 3000; i++) {
                        char name[16], record[64];
                        snprintf(name, sizeof name, "n%u.example", i % (room + 2));
                        snprintf(record, sizeof record, "%s 300 IN A 192.0.2.1", name);
                        if (i % 3 == 0 && look(&kit, ASK(name, 1))->outcome == SARDINE_MISS)
                                put(&kit, REPLY(name, 1, .records = record), NULL);
                        seed = seed * 1103515245 + 12345;
                        uint8_t a = (uint8_t)(seed >> 28), b = (uint8_t)(seed >> 20),
                                c = (uint8_t)(seed >> 12);
                        int outcome = put_around(a, b, c, (uint8_t)(16 + seed % 9), "198.51.100.1");
                        if (outcome == SARDINE_REFUSED)
                                refused++;
                        else if (ask_from(a, b, c)->outcome != SARDINE_HIT)
                                fail_msg("room for %u, answer %u: outcome %d, but not found", room, i,
                                         outcome);
                }
        }
        assert_true(refused < 8 * 3000 / 100);
}

static void b64_pages_of_large_answers(void **state)
{
        (void)state;
        /* A kilobyte each and all different: pages are split by size. */
        kit_close(&kit);
        kit.options.max_bytes = 64 << 20;
        kit_open(&kit);
        char records[4096];
        for (unsigned round = 0; round < 2; round++)
                for (unsigned i = 0; i < 200; i++) {
                        char *p = records;
                        for (unsigned k = 0; k < 5; k++)
                                p += sprintf(p, "cdn.example 300 IN TXT \"%0200u %u\"\n", i, k);
                        struct option q = ecs(10, 0, (uint8_t)i, 24, 0), o = ecs(10, 0, (uint8_t)i, 24, 24);
                        struct got *got = look(&kit, ASK("cdn.example", DNS_TXT, .options = q.bytes,
                                                         .options_len = q.len, .transport = SARDINE_TCP));
                        assert_int_equal(got->outcome, round ? SARDINE_HIT : SARDINE_MISS);
                        if (round)
                                assert_int_equal(answers(got), 5);
                        else
                                assert_int_equal(put(&kit,
                                                     REPLY("cdn.example", DNS_TXT, .records = records,
                                                           .opt = o.bytes, .opt_len = o.len),
                                                     NULL),
                                                 SARDINE_STORED);
                }
}

/* The option of a client with a source prefix of its own choice, and an answer to it. */
static struct got *ask_with(const struct option *o)
{
        return look(&kit, ASK("cdn.example", 1, .rd = true, .options = o->bytes, .options_len = o->len));
}

static int put_with(const struct option *own, const struct option *answered, const char *address)
{
        struct ask ask = ASK("cdn.example", 1, .rd = true, .options = own->bytes, .options_len = own->len);
        uint8_t packet[1024];
        struct sardine_query q = {.sz = sizeof q, .packet = packet, .len = ask_packet(&ask, packet)};
        struct sardine_token token;
        assert_int_equal(sardine_token_init(kit.cache, &q, &token), 0);
        char records[100];
        snprintf(records, sizeof records, "cdn.example 300 IN A %s", address);
        return put_token(
            &kit, &token,
            REPLY("cdn.example", 1, .records = records, .opt = answered->bytes, .opt_len = answered->len),
            NULL);
}

/* RFC 7871 s7.3.1: the upstream would have liked to know more than the client told. The answer is right for
 * clients that tell as much, and for no others of the same network. */
static void b20_a_scope_beyond_the_source_is_for_that_source_only(void **state)
{
        (void)state;
        struct option source20 = ecs(192, 0, 16, 20, 0), scope28 = ecs(192, 0, 16, 20, 28);
        struct option source24 = ecs(192, 0, 16, 24, 0), source19 = ecs(192, 0, 16, 19, 0);
        assert_int_equal(put_with(&source20, &scope28, "198.51.100.20"), SARDINE_STORED);
        struct got *got = ask_with(&source20);
        assert_int_equal(got->outcome, SARDINE_HIT);
        assert_true(has_text(got, "198.51.100.20"));
        /* Who caches the reply must not take it for good for all of its network either. */
        unsigned opts;
        const uint8_t *opt = find_opt(got, &opts);
        assert_int_equal(opts, 1);
        assert_int_equal(opt[11 + 6], 20);
        assert_true(opt[11 + 7] > 20);
        assert_int_equal(ask_with(&source24)->outcome, SARDINE_MISS);
        assert_int_equal(ask_with(&source19)->outcome, SARDINE_MISS);
        const uint8_t address[4] = {192, 0, 16, 1};
        assert_int_equal(look(&kit, ASK("cdn.example", 1, .rd = true, .client = address))->outcome,
                         SARDINE_MISS);
        /* An answer for the whole network stands beside it, for all others. */
        struct option scope20 = ecs(192, 0, 16, 24, 20);
        assert_int_equal(put_with(&source24, &scope20, "198.51.100.24"), SARDINE_STORED);
        assert_true(has_text(ask_with(&source24), "198.51.100.24"));
        assert_true(has_text(ask_with(&source20), "198.51.100.20"));
        kit_wait(&kit, 100);
        assert_int_equal(put_with(&source20, &scope28, "198.51.100.20"), SARDINE_REFRESHED);
        kit_wait(&kit, 250);
        assert_int_equal(ask_with(&source24)->outcome, SARDINE_MISS);
        assert_true(has_text(ask_with(&source20), "198.51.100.20"));
        assert_true(sardine_expunge(kit.cache, NULL) > 0);
        assert_int_equal(ask_with(&source20)->outcome, SARDINE_MISS);
}

/* When the proxy chose how much to tell, it never tells more: the answer is good for the network. */
static void b20_a_scope_beyond_what_the_proxy_tells_is_for_the_network(void **state)
{
        (void)state;
        const uint8_t address[4] = {192, 0, 2, 1}, neighbour[4] = {192, 0, 2, 77}, other[4] = {192, 0, 3, 1};
        struct option answered = ecs(192, 0, 2, 24, 32);
        assert_int_equal(look(&kit, ASK("cdn.example", 1, .rd = true, .client = address))->outcome,
                         SARDINE_MISS);
        assert_int_equal(put(&kit,
                             REPLY("cdn.example", 1, .records = "cdn.example 300 IN A 198.51.100.1",
                                   .opt = answered.bytes, .opt_len = answered.len),
                             NULL),
                         SARDINE_STORED);
        assert_int_equal(look(&kit, ASK("cdn.example", 1, .rd = true, .client = neighbour))->outcome,
                         SARDINE_HIT);
        assert_int_equal(look(&kit, ASK("cdn.example", 1, .rd = true, .client = other))->outcome,
                         SARDINE_MISS);
}

static int put_failure(const struct option *own, const struct option *answered)
{
        struct ask ask = ASK("cdn.example", 1, .rd = true, .options = own->bytes, .options_len = own->len);
        uint8_t packet[1024];
        struct sardine_query q = {.sz = sizeof q, .packet = packet, .len = ask_packet(&ask, packet)};
        struct sardine_token token;
        assert_int_equal(sardine_token_init(kit.cache, &q, &token), 0);
        return put_token(
            &kit, &token,
            REPLY("cdn.example", 1, .rcode = DNS_SERVFAIL, .opt = answered->bytes, .opt_len = answered->len),
            NULL);
}

/* A failure for a network would be found before what is good for a larger one, or for everybody. */
static void b41_a_networks_failure_hides_nothing_usable(void **state)
{
        (void)state;
        struct option own = ecs(192, 0, 2, 24, 0), scope24 = ecs(192, 0, 2, 24, 24);
        struct option elsewhere = ecs(198, 51, 100, 24, 0), scope_elsewhere = ecs(198, 51, 100, 24, 24);
        assert_int_equal(put_scoped(192, 0, 2, 16, "198.51.100.16"), SARDINE_STORED);
        assert_int_equal(put_failure(&own, &scope24), SARDINE_REFUSED);
        expect_from(192, 0, 2, "198.51.100.16", 16);
        /* It says nothing about others. */
        assert_int_equal(put_failure(&elsewhere, &scope_elsewhere), SARDINE_STORED);
        assert_int_equal(ask_with(&elsewhere)->answer.rcode, DNS_SERVFAIL);
        assert_int_equal(sardine_expunge(kit.cache, NULL) > 0, 1);
        assert_int_equal(put_scoped(203, 0, 113, 0, "198.51.100.1"), SARDINE_STORED);
        assert_int_equal(put_failure(&own, &scope24), SARDINE_REFUSED);
        expect_from(192, 0, 2, "198.51.100.1", 0);
        kit_wait(&kit, 301);
        assert_int_equal(put_failure(&own, &scope24), SARDINE_STORED);
}

/* Neither those that were there first, nor those for everybody. */
static void b41_failures_hide_no_other_variant(void **state)
{
        (void)state;
        kit_close(&kit);
        kit.options.stale_window = 3600;
        kit_open(&kit);
        struct option own = ecs(192, 0, 2, 24, 0), scope24 = ecs(192, 0, 2, 24, 24);
        assert_int_equal(put_failure(&own, &scope24), SARDINE_STORED);
        assert_int_equal(ask_with(&own)->answer.rcode, DNS_SERVFAIL);
        assert_int_equal(put_around(192, 0, 9, 16, "198.51.100.16"), SARDINE_STORED);
        expect_from(192, 0, 2, "198.51.100.16", 16);
        /* It has expired, and now nobody gets an answer. */
        kit_wait(&kit, 301);
        struct option elsewhere = ecs(203, 0, 113, 24, 0);
        assert_int_equal(ask_with(&elsewhere)->outcome, SARDINE_MISS);
        assert_int_equal(put(&kit, REPLY("cdn.example", 1, .rcode = DNS_SERVFAIL), NULL), SARDINE_REPLACED);
        assert_int_equal(ask_with(&elsewhere)->answer.rcode, DNS_SERVFAIL);
        struct got *got = ask_with(&own);
        assert_int_equal(got->outcome, SARDINE_STALE);
        assert_true(has_text(got, "198.51.100.16"));
        uint8_t packet[1024], buf[1024];
        struct ask ask = ASK("cdn.example", 1, .rd = true, .options = own.bytes, .options_len = own.len);
        struct sardine_query q = {.sz = sizeof q, .packet = packet, .len = ask_packet(&ask, packet)};
        struct sardine_answer a = {.sz = sizeof a, .buf = buf, .cap = sizeof buf};
        assert_int_equal(sardine_failed(kit.cache, &q, &a), SARDINE_STALE);
        assert_int_equal(a.rcode, DNS_NOERROR);
        ask.options = elsewhere.bytes;
        q.len = ask_packet(&ask, packet);
        assert_int_equal(sardine_failed(kit.cache, &q, &a), SARDINE_HIT);
        assert_int_equal(a.rcode, DNS_SERVFAIL);
        /* The failure is forgotten: time to try again. */
        kit_wait(&kit, kit.options.failure_ttl + kit.options.stale_backoff);
        assert_int_equal(ask_with(&own)->outcome, SARDINE_MISS);
        assert_int_equal(ask_with(&own)->answer.stale_available, 1);
        assert_int_equal(ask_with(&elsewhere)->outcome, SARDINE_MISS);
        assert_int_equal(ask_with(&elsewhere)->answer.stale_available, 0);
}

static void b40_a_networks_stale_answer_is_displaced(void **state)
{
        (void)state;
        kit_close(&kit);
        kit.options.stale_window = 3600;
        kit_open(&kit);
        assert_int_equal(put_scoped(192, 0, 2, 24, "198.51.100.1"), SARDINE_STORED);
        assert_int_equal(put_scoped(192, 0, 3, 24, "198.51.100.3"), SARDINE_STORED);
        kit_wait(&kit, 301);
        struct option own = ecs(192, 0, 2, 24, 0), other = ecs(192, 0, 3, 24, 0);
        struct option scope24 = ecs(192, 0, 2, 24, 24);
        struct ask stale = ASK("cdn.example", 1, .rd = true, .options = own.bytes, .options_len = own.len,
                               .flags = SARDINE_ALLOW_STALE);
        assert_int_equal(look(&kit, stale)->outcome, SARDINE_STALE);
        struct ask ask = stale;
        ask.flags = 0;
        uint8_t packet[1024];
        struct sardine_query q = {.sz = sizeof q, .packet = packet, .len = ask_packet(&ask, packet)};
        struct sardine_token token;
        assert_int_equal(sardine_token_init(kit.cache, &q, &token), 0);
        assert_int_equal(put_token(&kit, &token,
                                   REPLY("cdn.example", 1, .records = "cdn.example 0 IN A 192.0.2.1",
                                         .opt = scope24.bytes, .opt_len = scope24.len),
                                   NULL),
                         SARDINE_REFUSED);
        assert_int_equal(look(&kit, stale)->outcome, SARDINE_MISS);
        stale.options = other.bytes;
        assert_int_equal(look(&kit, stale)->outcome, SARDINE_STALE);
}

/* What is not kept has displaced the answer for everybody, and nothing else. */
static void b40_networks_outlive_the_displaced_general_answer(void **state)
{
        (void)state;
        kit_close(&kit);
        kit.options.stale_window = 3600;
        kit.options.max_bytes = 1 << 20;
        kit_open(&kit);
        for (uint8_t i = 0; i < 200; i++)
                assert_int_equal(put_scoped(10, 0, i, 24, "192.0.2.7"), SARDINE_STORED);
        struct ask ask = ASK("cdn.example", 1, .rd = true, .flags = SARDINE_ALLOW_STALE);
        for (int round = 0; round < 2; round++) { /* the second finds the mere list */
                assert_int_equal(look(&kit, ask)->outcome, SARDINE_MISS);
                assert_int_equal(
                    put(&kit, REPLY("cdn.example", 1, .records = "cdn.example 10 IN A 198.51.100.7"), NULL),
                    SARDINE_REPLACED);
                kit_wait(&kit, 20);
                assert_int_equal(look(&kit, ask)->outcome, SARDINE_STALE);
                struct ask fresh = ASK("cdn.example", 1, .rd = true);
                for (int again = 0; again < 2; again++) {
                        unsigned reason;
                        look(&kit, fresh);
                        put(&kit, REPLY("cdn.example", 1, .records = "cdn.example 0 IN A 198.51.100.8"),
                            &reason);
                        assert_int_equal(reason, SARDINE_REFUSED_TTL_ZERO);
                        assert_int_equal(look(&kit, ask)->outcome, SARDINE_MISS);
                }
                sardine_purge_expired(kit.cache, 0);
                for (uint8_t i = 0; i < 200; i++)
                        expect_from(10, 0, i, "192.0.2.7", 24);
        }
        for (unsigned i = 0; i < 30000; i++) {
                char name[32], records[64];
                snprintf(name, sizeof name, "n%u.example", i);
                snprintf(records, sizeof records, "%s 300 IN A 192.0.2.1", name);
                fill(&kit, ASK(name, 1), REPLY(name, 1, .records = records));
                if (i % 16 == 0)
                        expect_from(10, 0, (uint8_t)(i % 200), "192.0.2.7", 24);
        }
        assert_true(kit_stats(&kit).evicted > 10000);
        kit_wait(&kit, 86400 + 3600);
        sardine_purge_expired(kit.cache, 0);
        assert_int_equal(kit_stats(&kit).entries, 0);
}

/* A network's answer that came while the one for everybody could still stand in outlives that as well. */
static void b41_networks_outlive_the_window_of_the_general_answer(void **state)
{
        (void)state;
        kit_close(&kit);
        kit.options.stale_window = 3600;
        kit.options.max_ttl = 300;
        kit_open(&kit);
        assert_int_equal(put_scoped(192, 0, 2, 24, "198.51.100.1"), SARDINE_STORED);
        assert_int_equal(put_general(60, "198.51.100.2"), SARDINE_REPLACED);
        kit_wait(&kit, 60 + 3590);
        assert_int_equal(put_scoped(192, 0, 2, 24, "198.51.100.3"), SARDINE_REPLACED);
        kit_wait(&kit, 20);
        sardine_purge_expired(kit.cache, 0);
        expect_from(192, 0, 2, "198.51.100.3", 24);
        kit_wait(&kit, 3600 + 300);
        sardine_purge_expired(kit.cache, 0);
        assert_int_equal(kit_stats(&kit).entries, 0);
}

/* The option in a reply is the client's own, whatever the proxy told upstream for another client. */
static void b23_no_option_travels_from_client_to_client(void **state)
{
        (void)state;
        struct option theirs = ecs(192, 0, 2, 24, 0), own = ecs(203, 0, 113, 24, 0);
        fill(&kit, ASK("cdn.example", 1, .rd = true),
             REPLY("cdn.example", 1, .records = "cdn.example 300 IN A 198.51.100.1", .opt = theirs.bytes,
                   .opt_len = theirs.len));
        unsigned opts;
        struct got *got = ask_with(&own);
        assert_int_equal(got->outcome, SARDINE_HIT);
        const uint8_t *opt = find_opt(got, &opts);
        assert_int_equal(get_be16(opt + 9), own.len);
        assert_memory_equal(opt + 11, own.bytes, own.len);
        assert_null(memmem(got->buf, got->answer.len, theirs.bytes, theirs.len));
        /* And none for those who sent none. */
        got = look(&kit, ASK("cdn.example", 1, .rd = true, .edns = true));
        assert_int_equal(get_be16(find_opt(got, &opts) + 9), 0);
        /* A host that does not want them to share says so with the tag. */
        assert_int_equal(look(&kit, ASK("cdn.example", 1, .rd = true, .tag = "own subnet",
                                        .options = own.bytes, .options_len = own.len))
                             ->outcome,
                         SARDINE_MISS);
}

/* RFC 7871 s7.3: a scope of 0 is an answer for all clients, as is an answer without the option. */
static void b18_a_scope_of_zero_is_for_both_families(void **state)
{
        (void)state;
        assert_int_equal(put_scoped(192, 0, 2, 0, "198.51.100.1"), SARDINE_STORED);
        struct wire_ecs v6 = {.family = ECS_IPV6, .source = 56, .addr = {0x20, 1, 0xd, 0xb8}};
        struct option o;
        o.len = wire_ecs_write(&v6, o.bytes);
        struct got *got = ask_with(&o);
        assert_int_equal(got->outcome, SARDINE_HIT);
        unsigned opts;
        const uint8_t *opt = find_opt(got, &opts);
        assert_memory_equal(opt + 11, o.bytes, o.len); /* its own option, with scope 0 */
        assert_int_equal(look(&kit, ASK("cdn.example", 1, .rd = true))->outcome, SARDINE_HIT);
}

/* An upstream that answers for every prefix length makes lookups probe no more than so many. */
static void b64_prefix_lengths_of_a_name_are_bounded(void **state)
{
        (void)state;
        char records[100];
        unsigned hits = 0;
        for (unsigned prefix = 1; prefix <= 128; prefix++) {
                struct wire_ecs e = {.family = ECS_IPV6, .source = (uint8_t)prefix, .scope = (uint8_t)prefix};
                memset(e.addr, 0x55, sizeof e.addr);
                wire_ecs_mask(e.addr, prefix);
                struct option own, answered;
                answered.len = wire_ecs_write(&e, answered.bytes);
                e.scope = 0;
                own.len = wire_ecs_write(&e, own.bytes);
                /* Those of /5, /10 ... live longer. */
                struct ask ask =
                    ASK("cdn.example", 1, .rd = true, .options = own.bytes, .options_len = own.len);
                uint8_t packet[1024];
                struct sardine_query q = {.sz = sizeof q, .packet = packet};
                struct sardine_token token;
                q.len = ask_packet(&ask, packet);
                assert_int_equal(sardine_token_init(kit.cache, &q, &token), 0);
                snprintf(records, sizeof records, "cdn.example %u IN A 192.0.2.%u", prefix % 5 ? 300 : 3000,
                         prefix);
                assert_int_equal(put_token(&kit, &token,
                                           REPLY("cdn.example", 1, .records = records, .opt = answered.bytes,
                                                 .opt_len = answered.len),
                                           NULL),
                                 SARDINE_STORED);
                /* The one that just came is there. */
                assert_int_equal(ask_with(&own)->outcome, SARDINE_HIT);
        }
        const uint8_t *base;
        struct ask ask = ASK("cdn.example", 1, .rd = true);
        uint8_t packet[1024];
        struct wire_query wire;
        struct entry_key key;
        size_t len = ask_packet(&ask, packet);
        assert_int_equal(wire_query_parse(packet, len, &wire), 0);
        assert_int_equal(cache_key(kit.cache, &wire, NULL, 0, &key), 0);
        store_lock(kit.cache->store);
        base = store_find_locked(kit.cache->store, cache_hash(kit.cache, &key), entry_key_match, &key);
        struct entry_view view;
        entry_view_init(&view, base);
        store_unlock(kit.cache->store);
        assert_int_equal(view.scopes_count, SCOPES_MAX);
        /* What is left: those that live long, then the latest. */
        for (unsigned prefix = 1; prefix <= 128; prefix++) {
                struct wire_ecs e = {.family = ECS_IPV6, .source = (uint8_t)prefix};
                memset(e.addr, 0x55, sizeof e.addr);
                wire_ecs_mask(e.addr, prefix);
                struct option own;
                own.len = wire_ecs_write(&e, own.bytes);
                struct got *got = ask_with(&own);
                char address[32];
                snprintf(address, sizeof address, "192.0.2.%u", prefix);
                bool its_own = got->outcome == SARDINE_HIT && has_text(got, address);
                hits += its_own;
                if (prefix % 5 == 0)
                        assert_true(its_own);
        }
        assert_int_equal(hits, SCOPES_MAX);
        assert_true(kit_stats(&kit).entries <= 129);
}

/* The answer for everybody expires and is cleaned away: those for networks live on. */
static void b41_networks_outlive_the_general_answer(void **state)
{
        (void)state;
        kit_close(&kit);
        kit.options.max_bytes = 1 << 20;
        kit_open(&kit);
        for (uint8_t i = 0; i < 200; i++)
                assert_int_equal(put_scoped(10, 0, i, 24, "192.0.2.7"), SARDINE_STORED);
        struct option o = ecs(203, 0, 113, 24, 0), q = ecs(203, 0, 113, 24, 0);
        assert_int_equal(
            look(&kit, ASK("cdn.example", 1, .rd = true, .options = q.bytes, .options_len = q.len))->outcome,
            SARDINE_MISS);
        assert_int_equal(put(&kit,
                             REPLY("cdn.example", 1, .records = "cdn.example 10 IN A 198.51.100.7",
                                   .opt = o.bytes, .opt_len = o.len),
                             NULL),
                         SARDINE_REPLACED);
        kit_wait(&kit, 20);
        sardine_purge_expired(kit.cache, 0);
        for (uint8_t i = 0; i < 200; i++)
                expect_from(10, 0, i, "192.0.2.7", 24);
        /* Nor does making room take the list away. */
        for (unsigned i = 0; i < 30000; i++) {
                char name[32], records[64];
                snprintf(name, sizeof name, "n%u.example", i);
                snprintf(records, sizeof records, "%s 300 IN A 192.0.2.1", name);
                fill(&kit, ASK(name, 1), REPLY(name, 1, .records = records));
                if (i % 16 == 0)
                        expect_from(10, 0, (uint8_t)(i % 200), "192.0.2.7", 24);
        }
        assert_true(kit_stats(&kit).evicted > 10000);
        assert_int_equal(ask_from(203, 0, 113)->outcome, SARDINE_MISS);
        /* Nothing lingers for ever. */
        kit_wait(&kit, 86400);
        sardine_purge_expired(kit.cache, 0);
        assert_int_equal(kit_stats(&kit).entries, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup_open, kit_teardown)
        const struct CMUnitTest tests[] = {
            T(b03_subnets_do_not_share_even_when_they_collide),
            T(b18_an_answer_serves_its_whole_scope),
            T(b20_longest_scope_wins_and_expunge_takes_all),
            T(b20_the_general_answer_first),
            T(b20_families_and_lengths_are_identity),
            T(b19_the_clients_address_selects_what_the_proxy_added),
            T(b20_an_expired_general_answer_stays_expired),
            T(b20_a_list_of_networks_leaves_the_general_answer_as_it_is),
            T(b37_networks_do_not_disturb_a_stale_general_answer),
            T(b21_a_refresh_is_the_variants_own),
            T(b22_a_scoped_negative_stays_in_its_scope),
            T(b23_source_zero_gets_no_tailored_answer),
            T(b64_thousands_of_networks_grow_page_by_page),
            T(b64_networks_of_a_name_are_bounded),
            T(b20_a_scope_beyond_the_source_is_for_that_source_only),
            T(b20_a_scope_beyond_what_the_proxy_tells_is_for_the_network),
            T(b18_a_scope_of_zero_is_for_both_families),
            T(b41_a_networks_failure_hides_nothing_usable),
            T(b41_failures_hide_no_other_variant),
            T(b40_a_networks_stale_answer_is_displaced),
            T(b40_networks_outlive_the_displaced_general_answer),
            T(b41_networks_outlive_the_window_of_the_general_answer),
            T(b23_no_option_travels_from_client_to_client),
            T(b64_prefix_lengths_of_a_name_are_bounded),
            T(b64_what_was_stored_is_found_next),
            T(b64_pages_of_large_answers),
            T(b41_networks_outlive_the_general_answer),
            T(b63_ecs_that_contradicts_the_query_is_refused),
        };
        return cmocka_run_group_tests_name("cache/ecs", tests, NULL, NULL);
}
