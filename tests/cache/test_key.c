/* SPDX-License-Identifier: MIT
 * Group A of the behaviours: what splits the cache, and what must not. */
#include "kit.h"

#include "wire/bytes.h"
#include "wire/dns.h"

#define A1 "192.0.2.1"
#define A2 "192.0.2.2"

static int setup_colliding(void **state)
{
        (void)state;
        kit_init(&kit);
        kit_open_colliding(&kit);
        return 0;
}

static void fill_a(struct ask ask, const char *address)
{
        char records[300];
        snprintf(records, sizeof records, "%s 300 IN A %s", ask.name, address);
        fill(&kit, ask, REPLY(ask.name, ask.type, .ra = true, .records = records));
}

static void expect(struct ask ask, const char *text)
{
        struct got *got = look(&kit, ask);
        assert_int_equal(got->outcome, SARDINE_HIT);
        if (!has_text(got, text))
                fail_msg("%s is not in the reply", text);
}

static void expect_miss(struct ask ask)
{
        assert_int_equal(look(&kit, ask)->outcome, SARDINE_MISS);
}

static void b01_colliding_flags_do_not_share(void **state)
{
        (void)state;
        fill_a(ASK("a.example", 1, .rd = true), A1);
        expect_miss(ASK("a.example", 1, .rd = true, .cd = true));
        expect_miss(ASK("a.example", 1));
        expect_miss(ASK("a.example", 28, .rd = true));
        expect(ASK("a.example", 1, .rd = true), A1);
}

static void b02_colliding_names_live_side_by_side(void **state)
{
        (void)state;
        fill_a(ASK("x.attack.example", 1, .rd = true), A1);
        expect_miss(ASK("www.bank.example", 1, .rd = true));
        fill_a(ASK("www.bank.example", 1, .rd = true), A2);
        expect(ASK("x.attack.example", 1, .rd = true), A1);
        expect(ASK("www.bank.example", 1, .rd = true), A2);
}

static void b02_hash_differs_from_cache_to_cache(void **state)
{
        (void)state;
        struct kit other;
        kit_init(&other);
        kit_open(&other);
        assert_memory_not_equal(kit.cache->secret, other.cache->secret, sizeof kit.cache->secret);
        struct entry_key key;
        entry_key_init(&key, (const uint8_t *)"\1a", 3, 1, true, false, NULL, 0);
        assert_int_not_equal(cache_hash(kit.cache, &key), cache_hash(other.cache, &key));
        sardine_destroy(other.cache);
}

static void b04_rd_and_cd_of_the_reply_are_the_querys(void **state)
{
        (void)state;
        /* The upstream answers with RD and CD that are not the client's: look() compares them to the query.
         */
        fill(&kit, ASK("a.example", 1, .rd = true),
             REPLY("a.example", 1, .rd = false, .cd = true, .records = "a.example 300 IN A " A1));
        expect(ASK("a.example", 1, .rd = true), A1);
        fill(&kit, ASK("c.example", 1, .rd = true, .cd = true),
             REPLY("c.example", 1, .rd = false, .cd = false, .records = "c.example 300 IN A " A1));
        expect(ASK("c.example", 1, .rd = true, .cd = true), A1);
}

static void b05_failure_for_rd_does_not_answer_non_rd(void **state)
{
        (void)state;
        fill(&kit, ASK("a.example", 1, .rd = true), REPLY("a.example", 1, .rcode = DNS_REFUSED));
        expect_miss(ASK("a.example", 1));
        fill_a(ASK("a.example", 1), A1);
        expect(ASK("a.example", 1), A1);
        assert_int_equal(look(&kit, ASK("a.example", 1, .rd = true))->answer.rcode, DNS_REFUSED);
}

static void b06_cd_data_never_answers_without_cd(void **state)
{
        (void)state;
        fill_a(ASK("bogus.example", 1, .rd = true, .cd = true), A1);
        expect_miss(ASK("bogus.example", 1, .rd = true));
        assert_int_equal(put(&kit, REPLY("bogus.example", 1, .rcode = DNS_SERVFAIL), NULL), SARDINE_STORED);
        expect(ASK("bogus.example", 1, .rd = true, .cd = true), A1);
        assert_int_equal(look(&kit, ASK("bogus.example", 1, .rd = true))->answer.rcode, DNS_SERVFAIL);
}

static void b07_ad_is_shown_to_those_who_understand_it(void **state)
{
        (void)state;
        fill(&kit, ASK("a.example", 1, .rd = true, .dnssec_ok = true),
             REPLY("a.example", 1, .ra = true, .ad = true, .records = "a.example 300 IN A " A1));
        struct got *got = look(&kit, ASK("a.example", 1, .rd = true));
        assert_int_equal(got->outcome, SARDINE_HIT);
        assert_false(got->buf[3] & DNS_AD);
        got = look(&kit, ASK("a.example", 1, .rd = true, .ad = true));
        assert_int_equal(got->outcome, SARDINE_HIT);
        assert_true(got->buf[3] & DNS_AD);
        got = look(&kit, ASK("a.example", 1, .rd = true, .dnssec_ok = true));
        assert_true(got->buf[3] & DNS_AD);
        got = look(&kit, ASK("a.example", 1, .rd = true));
        assert_false(got->buf[3] & DNS_AD);
        assert_int_equal(kit_stats(&kit).entries, 1);
}

static void b08_aa_and_ra_are_replayed(void **state)
{
        (void)state;
        fill(&kit, ASK("r.example", 1),
             REPLY("r.example", 1, .ra = true, .records = "r.example 300 IN A " A1));
        struct got *got = look(&kit, ASK("r.example", 1));
        assert_int_equal(got->buf[2], DNS_QR);
        assert_int_equal(got->buf[3], DNS_RA);
        fill(&kit, ASK("s.example", 1),
             REPLY("s.example", 1, .aa = true, .records = "s.example 300 IN A " A1));
        got = look(&kit, ASK("s.example", 1));
        assert_int_equal(got->buf[2], DNS_QR | DNS_AA);
        assert_int_equal(got->buf[3], 0);
}

static void b09_one_truth_with_and_without_edns(void **state)
{
        (void)state;
        fill_a(ASK("a.example", 1, .edns = true), A1);
        expect(ASK("a.example", 1), A1);
        expect(ASK("a.example", 1, .size = 512), A1);
}

static void b10_cookies_do_not_split(void **state)
{
        (void)state;
        fill_a(ASK("a.example", 1, .edns = true), A1);
        for (uint8_t i = 0; i < 100; i++) {
                uint8_t cookie[12] = {0, EDNS_COOKIE, 0, 8, i, (uint8_t)(i * 7), 3, 4, 5, 6, 7, 8};
                expect(ASK("a.example", 1, .options = cookie, .options_len = sizeof cookie), A1);
        }
        assert_int_equal(kit_stats(&kit).hits, 100);
        assert_int_equal(kit_stats(&kit).misses, 1);
}

static bool contains(const uint8_t *hay, size_t len, const char *needle)
{
        return memmem(hay, len, needle, strlen(needle)) != NULL;
}

static void b11_no_cookie_travels_from_client_to_client(void **state)
{
        (void)state;
        static const uint8_t first[] = "\0\x0a\0\x08"
                                       "CLIENT-1",
                             both[] = "\0\x0a\0\x10"
                                      "CLIENT-1SERVER-1",
                             second[] = "\0\x0a\0\x08"
                                        "CLIENT-2";
        fill(&kit, ASK("a.example", 1, .options = first, .options_len = 12),
             REPLY("a.example", 1, .records = "a.example 300 IN A " A1, .opt = both, .opt_len = 20));
        struct got *got = look(&kit, ASK("a.example", 1, .options = second, .options_len = 12));
        assert_int_equal(got->outcome, SARDINE_HIT);
        assert_false(contains(got->buf, got->answer.len, "CLIENT-1"));
        assert_false(contains(got->buf, got->answer.len, "SERVER-1"));
}

static void b12_b13_options_do_not_split_unless_listed(void **state)
{
        (void)state;
        fill_a(ASK("a.example", 1, .edns = true), A1);
        uint8_t padding[104] = {0, EDNS_PADDING, 0, 100}, cookies[28] = {0, EDNS_COOKIE, 0, 24};
        expect(ASK("a.example", 1, .options = padding, .options_len = 104), A1);
        expect(ASK("a.example", 1, .options = cookies, .options_len = 28), A1);
        for (uint8_t i = 0; i < 50; i++) {
                uint8_t vendor[10] = {0xfd, 0xe9, 0, 6, i, 1, 2, 3, 4, 5};
                expect(ASK("a.example", 1, .options = vendor, .options_len = sizeof vendor), A1);
        }
        assert_int_equal(kit_stats(&kit).misses, 1);
}

static void b13_listed_options_split(void **state)
{
        (void)state;
        static const uint16_t listed[] = {65001, EDNS_COOKIE};
        kit_close(&kit);
        kit_init(&kit);
        kit.options.split_options = listed;
        kit.options.n_split_options = 2;
        kit_open(&kit);
        for (uint8_t i = 0; i < 50; i++) {
                uint8_t vendor[10] = {0xfd, 0xe9, 0, 6, i, 1, 2, 3, 4, 5};
                fill_a(ASK("a.example", 1, .options = vendor, .options_len = sizeof vendor), A1);
        }
        assert_int_equal(kit_stats(&kit).misses, 50);
        assert_int_equal(kit_stats(&kit).entries, 50);
        /* B24: the order of options in the packet is nothing. */
        uint8_t one[22] = {0xfd, 0xe9, 0, 6, 77, 1, 2, 3, 4, 5, 0, EDNS_COOKIE, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8};
        uint8_t two[22] = {0, EDNS_COOKIE, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0xfd, 0xe9, 0, 6, 77, 1, 2, 3, 4, 5};
        fill_a(ASK("a.example", 1, .options = one, .options_len = 22), A2);
        expect(ASK("a.example", 1, .options = two, .options_len = 22), A2);
}

static void b15_transports_share_one_entry(void **state)
{
        (void)state;
        fill_a(ASK("a.example", 1, .transport = SARDINE_TCP), A1);
        for (uint32_t t = SARDINE_UDP; t <= SARDINE_DOQ; t++)
                expect(ASK("a.example", 1, .transport = t), A1);
        assert_int_equal(kit_stats(&kit).entries, 1);
}

static void b24_tags_keep_tenants_apart(void **state)
{
        (void)state;
        fill_a(ASK("a.example", 1, .tag = "open"), A1);
        expect_miss(ASK("a.example", 1, .tag = "filtered"));
        expect_miss(ASK("a.example", 1));
        fill(&kit, ASK("a.example", 1, .tag = "filtered"),
             REPLY("a.example", 1, .rcode = DNS_NXDOMAIN,
                   .records = "-- authority\nexample 300 IN SOA ns. host. 1 2 3 4 300"));
        expect(ASK("a.example", 1, .tag = "open"), A1);
        assert_int_equal(look(&kit, ASK("a.example", 1, .tag = "filtered"))->answer.rcode, DNS_NXDOMAIN);
        struct sardine_selector sel = {.sz = sizeof sel, .use_tag = 1, .tag = "filtered", .tag_len = 8};
        assert_int_equal(sardine_expunge(kit.cache, &sel), 1);
        expect(ASK("a.example", 1, .tag = "open"), A1);
        expect_miss(ASK("a.example", 1, .tag = "filtered"));
}

static void b25_only_plain_questions_are_looked_at(void **state)
{
        (void)state;
        static const struct {
                uint8_t opcode;
                uint16_t type;
                unsigned reason;
        } odd[] = {
            {4, 6, SARDINE_BYPASS_NOT_QUERY}, /* NOTIFY */
            {5, 6, SARDINE_BYPASS_NOT_QUERY}, /* UPDATE */
            {0, DNS_AXFR, SARDINE_BYPASS_QTYPE},  {0, DNS_IXFR, SARDINE_BYPASS_QTYPE},
            {0, DNS_MAILB, SARDINE_BYPASS_QTYPE}, {0, DNS_MAILA, SARDINE_BYPASS_QTYPE},
        };
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
                struct got *got = look(&kit, ASK("example", odd[i].type, .opcode = odd[i].opcode));
                assert_int_equal(got->outcome, SARDINE_BYPASS);
                assert_int_equal(got->answer.reason, odd[i].reason);
                assert_int_equal(got->token.len, 0);
                assert_int_equal(put(&kit, REPLY("example", odd[i].type, .rcode = DNS_REFUSED), NULL),
                                 SARDINE_ERR_TOKEN);
        }
        /* A record behind the question that signs it: TSIG, SIG(0). */
        struct ask ask = ASK("example", 6);
        uint8_t packet[1024];
        size_t len = ask_packet(&ask, packet);
        static const uint8_t signatures[][11] = {{0, 0, DNS_TSIG, 0, 255}, {0, 0, DNS_SIG, 0, 255}};
        packet[11] = 1;
        for (size_t i = 0; i < 2; i++) {
                memcpy(packet + len, signatures[i], sizeof *signatures);
                struct got *got = look_packet(&kit, packet, len + sizeof *signatures, &ask);
                assert_int_equal(got->outcome, SARDINE_BYPASS);
                assert_int_equal(got->answer.reason, SARDINE_BYPASS_RECORDS);
        }
        /* Other classes: CH, HS, NONE, ANY. */
        packet[11] = 0;
        static const uint8_t classes[] = {3, 4, 254, 255};
        for (size_t i = 0; i < sizeof classes; i++) {
                packet[len - 1] = classes[i];
                struct got *got = look_packet(&kit, packet, len, &ask);
                assert_int_equal(got->outcome, SARDINE_BYPASS);
                assert_int_equal(got->answer.reason, SARDINE_BYPASS_QCLASS);
                assert_int_equal(got->token.len, 0);
        }
        assert_int_equal(kit_stats(&kit).entries, 0);
}

static void b26_case_is_the_clients(void **state)
{
        (void)state;
        /* look() compares the reply's question with the query's to the letter. */
        fill(&kit, ASK("wWw.ExAmPlE", 1),
             REPLY("wWw.ExAmPlE", 1,
                   .records = "wWw.ExAmPlE 300 IN CNAME Target.OTHER.ExAmPlE\n"
                              "Target.OTHER.ExAmPlE 300 IN A " A1));
        expect(ASK("WwW.eXaMpLe", 1), A1);
        expect(ASK("www.example", 1), A1);
        /* 0x5b and 0x7b differ by 0x20 but are no letters. */
        fill_a(ASK("\\091.example", 1), A1);
        expect_miss(ASK("\\123.example", 1));
}

static void b26_target_spelled_out_keeps_its_case(void **state)
{
        (void)state;
        /* By hand, for ldns would compress: the CNAME's target is written in full. */
        static const uint8_t packet[] = "\0\0\x80\0\0\1\0\1\0\0\0\0"
                                        "\3www\7example\0\0\1\0\1"
                                        "\xc0\x0c\0\5\0\1\0\0\1\x2c\0\x0d"
                                        "\3cdn\7example";
        assert_int_equal(look(&kit, ASK("www.example", 1))->outcome, SARDINE_MISS);
        assert_int_equal(put_packet(&kit, packet, sizeof packet, NULL), SARDINE_STORED);
        struct got *got = look(&kit, ASK("WWW.EXAMPLE", 1));
        assert_int_equal(got->outcome, SARDINE_HIT);
        assert_true(has_text(got, "cdn.example."));
        assert_false(has_text(got, "cdn.EXAMPLE."));
}

int main(void)
{
#define T(f)         cmocka_unit_test_setup_teardown(f, kit_setup_open, kit_teardown)
#define COLLIDING(f) cmocka_unit_test_setup_teardown(f, setup_colliding, kit_teardown)
        const struct CMUnitTest tests[] = {
            COLLIDING(b01_colliding_flags_do_not_share),
            COLLIDING(b02_colliding_names_live_side_by_side),
            T(b02_hash_differs_from_cache_to_cache),
            T(b04_rd_and_cd_of_the_reply_are_the_querys),
            T(b05_failure_for_rd_does_not_answer_non_rd),
            T(b06_cd_data_never_answers_without_cd),
            T(b07_ad_is_shown_to_those_who_understand_it),
            T(b08_aa_and_ra_are_replayed),
            T(b09_one_truth_with_and_without_edns),
            T(b10_cookies_do_not_split),
            T(b11_no_cookie_travels_from_client_to_client),
            T(b12_b13_options_do_not_split_unless_listed),
            T(b13_listed_options_split),
            T(b15_transports_share_one_entry),
            T(b24_tags_keep_tenants_apart),
            T(b25_only_plain_questions_are_looked_at),
            T(b26_case_is_the_clients),
            T(b26_target_spelled_out_keeps_its_case),
        };
        return cmocka_run_group_tests_name("cache/key", tests, NULL, NULL);
}
