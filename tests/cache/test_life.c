/* SPDX-License-Identifier: MIT
 * Group B of the behaviours: ageing, negative answers, failures, stale data, what replaces what. */
#include "kit.h"

#include "wire/bytes.h"
#include "wire/dns.h"

#define SOA "example 3600 IN SOA ns.example. host.example. 1 2 3 4 60"

static const struct ask a = {"a.example", 1, .rd = true};

static struct reply a_ttl(const char *records)
{
        return REPLY("a.example", 1, .ra = true, .records = records);
}

static int outcome(struct ask ask)
{
        return look(&kit, ask)->outcome;
}

static void b28_ttl_one_lives_one_second_and_zero_never_shows(void **state)
{
        (void)state;
        kit_open(&kit);
        fill(&kit, a, a_ttl("a.example 1 IN A 192.0.2.1"));
        assert_int_equal(first_ttl(look(&kit, a)), 1);
        kit_wait(&kit, 1);
        assert_int_equal(outcome(a), SARDINE_MISS);
        unsigned reason;
        assert_int_equal(put(&kit, a_ttl("a.example 0 IN A 192.0.2.1"), &reason), SARDINE_REFUSED);
        assert_int_equal(reason, SARDINE_REFUSED_TTL_ZERO);
        assert_int_equal(outcome(a), SARDINE_MISS);
}

static void b28_ttls_age(void **state)
{
        (void)state;
        kit_open(&kit);
        fill(&kit, a, a_ttl("a.example 300 IN A 192.0.2.1"));
        for (uint32_t t = 0; t < 300; t += 60) {
                assert_int_equal(first_ttl(look(&kit, a)), 300 - t);
                kit_wait(&kit, 60);
        }
        assert_int_equal(outcome(a), SARDINE_MISS);
}

static void b29_answers_without_records(void **state)
{
        (void)state;
        kit_open(&kit);
        fill(&kit, a, REPLY("a.example", 1, .rcode = DNS_SERVFAIL));
        assert_int_equal(look(&kit, a)->answer.rcode, DNS_SERVFAIL);
        kit_wait(&kit, 59);
        assert_int_equal(outcome(a), SARDINE_HIT);
        kit_wait(&kit, 1);
        assert_int_equal(outcome(a), SARDINE_MISS);

        static const uint8_t refused[12] = {0, 0, DNS_QR, DNS_REFUSED};
        struct ask b = ASK("b.example", 1);
        assert_int_equal(outcome(b), SARDINE_MISS);
        assert_int_equal(put_packet(&kit, refused, sizeof refused, NULL), SARDINE_STORED);
        assert_int_equal(look(&kit, b)->answer.rcode, DNS_REFUSED);

        unsigned reason;
        struct ask c = ASK("c.example", 1);
        assert_int_equal(outcome(c), SARDINE_MISS);
        assert_int_equal(put(&kit, REPLY("c.example", 1), &reason), SARDINE_REFUSED);
        assert_int_equal(reason, SARDINE_REFUSED_NO_SOA);
        /* A bare header cannot claim success. */
        static const uint8_t noerror[12] = {0, 0, DNS_QR, 0};
        assert_int_equal(put_packet(&kit, noerror, sizeof noerror, &reason), SARDINE_REFUSED);
        assert_int_equal(reason, SARDINE_REFUSED_MISMATCH);
}

static void b30_failures_have_their_own_short_life(void **state)
{
        (void)state;
        kit.options.min_ttl = 3600;
        kit.options.failure_ttl = 300;
        kit_open(&kit);
        fill(&kit, a, REPLY("a.example", 1, .rcode = DNS_SERVFAIL));
        kit_wait(&kit, 299);
        assert_int_equal(outcome(a), SARDINE_HIT);
        kit_wait(&kit, 2);
        assert_int_equal(outcome(a), SARDINE_MISS);
}

static void b30_failure_ttl_of_the_host(void **state)
{
        (void)state;
        kit_open(&kit);
        size_t len;
        struct reply failure = REPLY("a.example", 1, .rcode = DNS_SERVFAIL);
        uint8_t *packet = reply_packet(&failure, &len);
        struct sardine_insert_info info = {.sz = sizeof info, .failure_ttl_set = 1, .failure_ttl = 0};
        struct sardine_insert_result result = {.sz = sizeof result};
        struct got *got = look(&kit, a);
        assert_int_equal(sardine_insert(kit.cache, &got->token, packet, len, &info, &result),
                         SARDINE_REFUSED);
        assert_int_equal(result.reason, SARDINE_REFUSED_FAILURE_OFF);
        info.failure_ttl = 5;
        assert_int_equal(sardine_insert(kit.cache, &got->token, packet, len, &info, &result), SARDINE_STORED);
        assert_int_equal(result.life, 5);
        info.failure_ttl = 100000; /* RFC 9520 has the last word */
        assert_int_equal(sardine_insert(kit.cache, &got->token, packet, len, &info, &result),
                         SARDINE_REFRESHED);
        assert_int_equal(result.life, 300);
        free(packet);
}

static void b31_negative_life_is_the_soas_minimum(void **state)
{
        (void)state;
        kit_open(&kit);
        fill(&kit, a, REPLY("a.example", 1, .rcode = DNS_NXDOMAIN, .records = "-- authority\n" SOA));
        kit_wait(&kit, 30);
        struct got *got = look(&kit, a);
        assert_int_equal(got->answer.rcode, DNS_NXDOMAIN);
        assert_int_equal(first_ttl(got), 30);
        kit_wait(&kit, 30);
        assert_int_equal(outcome(a), SARDINE_MISS);
        /* NODATA behind a CNAME lives no longer than the CNAME. */
        fill(&kit, ASK("c.example", 1),
             REPLY("c.example", 1, .records = "c.example 20 IN CNAME d.example.\n-- authority\n" SOA));
        kit_wait(&kit, 19);
        assert_int_equal(outcome(ASK("c.example", 1)), SARDINE_HIT);
        kit_wait(&kit, 1);
        assert_int_equal(outcome(ASK("c.example", 1)), SARDINE_MISS);
}

static void b32_negative_without_soa_is_not_kept(void **state)
{
        (void)state;
        kit_open(&kit);
        assert_int_equal(outcome(a), SARDINE_MISS);
        unsigned reason;
        assert_int_equal(put(&kit, REPLY("a.example", 1, .rcode = DNS_NXDOMAIN), &reason), SARDINE_REFUSED);
        assert_int_equal(reason, SARDINE_REFUSED_NO_SOA);
        assert_int_equal(outcome(a), SARDINE_MISS);
        assert_int_equal(kit_stats(&kit).reasons[SARDINE_REFUSED_NO_SOA], 1);
}

static void b33_every_cap_holds_for_negatives(void **state)
{
        (void)state;
        kit.options.max_ttl = 10;
        kit_open(&kit);
        fill(&kit, a, REPLY("a.example", 1, .rcode = DNS_NXDOMAIN, .records = "-- authority\n" SOA));
        kit_wait(&kit, 10);
        assert_int_equal(outcome(a), SARDINE_MISS);
        kit_close(&kit);
        kit.options.max_ttl = 86400;
        kit.options.max_negative_ttl = 7;
        kit_open(&kit);
        fill(&kit, a, REPLY("a.example", 1, .rcode = DNS_NXDOMAIN, .records = "-- authority\n" SOA));
        assert_int_equal(look(&kit, a)->answer.ttl, 7);
        assert_int_equal(first_ttl(look(&kit, a)), 60);
        kit_wait(&kit, 7);
        assert_int_equal(outcome(a), SARDINE_MISS);
}

static void b34_opt_is_not_a_record_with_a_ttl(void **state)
{
        (void)state;
        kit_open(&kit);
        fill(&kit, ASK("a.example", 1, .rd = true, .dnssec_ok = true),
             REPLY("a.example", 1, .records = "a.example 300 IN A 192.0.2.1", .edns = true,
                   .dnssec_ok = true));
        kit_wait(&kit, 100);
        unsigned count;
        struct got *got = look(&kit, ASK("a.example", 1, .rd = true, .edns = true));
        const uint8_t *opt = find_opt(got, &count);
        assert_int_equal(count, 1);
        assert_int_equal(get_be32(opt + 5), 0);
        assert_int_equal(first_ttl(got), 200);
        got = look(&kit, ASK("a.example", 1, .rd = true, .dnssec_ok = true));
        assert_int_equal(get_be32(find_opt(got, &count) + 5), 0x8000);
}

static void b35_clock_jumps_ahead(void **state)
{
        (void)state;
        kit_open(&kit);
        fill(&kit, a, a_ttl("a.example 300 IN A 192.0.2.1"));
        kit_wait(&kit, 10u * 365 * 86400);
        assert_int_equal(outcome(a), SARDINE_MISS);
        kit.clock_ms = UINT64_MAX;
        assert_int_equal(outcome(a), SARDINE_MISS);
        kit.clock_ms = 0; /* before the cache was made: time stands still, no wrap */
        assert_int_equal(outcome(a), SARDINE_HIT);
        assert_int_equal(first_ttl(look(&kit, a)), 300);
}

static void b36_without_ageing_ttls_stay_and_entries_still_expire(void **state)
{
        (void)state;
        kit.options.dont_age = 1;
        kit_open(&kit);
        fill(&kit, a, a_ttl("a.example 300 IN A 192.0.2.1"));
        kit_wait(&kit, 100);
        assert_int_equal(first_ttl(look(&kit, a)), 300);
        kit_wait(&kit, 200);
        assert_int_equal(outcome(a), SARDINE_MISS);
}

static void b40_fresh_negative_displaces_stale_positive(void **state)
{
        (void)state;
        kit.options.stale_window = 3600;
        kit_open(&kit);
        fill(&kit, a, a_ttl("a.example 5 IN A 192.0.2.1"));
        kit_wait(&kit, 10);
        fill(&kit, a, REPLY("a.example", 1, .rcode = DNS_NXDOMAIN, .records = "-- authority\n" SOA));
        assert_int_equal(look(&kit, a)->answer.rcode, DNS_NXDOMAIN);
}

/* Also when it is not kept itself: it is the newest truth that there is. */
static void b40_fresh_answers_that_are_not_kept_displace_stale_ones(void **state)
{
        (void)state;
        const struct reply fresh[] = {
            a_ttl("a.example 0 IN A 192.0.2.7"),
            a_ttl("a.example 3 IN A 192.0.2.7"), /* below min_ttl */
            REPLY("a.example", 1, .rcode = DNS_NXDOMAIN),
        };
        struct ask stale = a;
        stale.flags = SARDINE_ALLOW_STALE | SARDINE_PEEK;
        for (size_t i = 0; i < 3; i++) {
                kit.options.stale_window = 3600;
                kit.options.min_ttl = 5;
                kit_open(&kit);
                fill(&kit, a, a_ttl("a.example 5 IN A 192.0.2.1"));
                kit_wait(&kit, 3);
                /* Not while it is valid: its TTL is a promise. */
                assert_int_equal(look(&kit, ASK("a.example", 1, .rd = true, .cd = true))->outcome,
                                 SARDINE_MISS);
                struct sardine_query q = {.sz = sizeof q};
                struct sardine_token token;
                uint8_t packet[1024];
                q.packet = packet;
                q.len = ask_packet(&a, packet);
                assert_int_equal(sardine_token_init(kit.cache, &q, &token), 0);
                assert_int_equal(put_token(&kit, &token, fresh[i], NULL), SARDINE_REFUSED);
                assert_int_equal(outcome(a), SARDINE_HIT);
                kit_wait(&kit, 10);
                assert_int_equal(outcome(stale), SARDINE_STALE);
                /* Other rcodes do not. */
                assert_int_equal(put_token(&kit, &token, REPLY("a.example", 1, .rcode = DNS_SERVFAIL), NULL),
                                 SARDINE_REFUSED);
                assert_int_equal(put_token(&kit, &token, REPLY("a.example", 1, .rcode = 4), NULL),
                                 SARDINE_REFUSED);
                assert_int_equal(outcome(stale), SARDINE_STALE);
                assert_int_equal(put_token(&kit, &token, fresh[i], NULL), SARDINE_REFUSED);
                assert_int_equal(outcome(stale), SARDINE_MISS);
                kit_close(&kit);
        }
        kit_open(&kit);
}

static void b41_failures_never_hide_usable_data(void **state)
{
        (void)state;
        kit.options.stale_window = 3600;
        kit_open(&kit);
        fill(&kit, a, a_ttl("a.example 60 IN A 192.0.2.1"));
        struct sardine_query q = {.sz = sizeof q};
        struct sardine_token token;
        uint8_t packet[1024];
        q.packet = packet;
        q.len = ask_packet(&a, packet);
        assert_int_equal(sardine_token_init(kit.cache, &q, &token), 0);
        kit_wait(&kit, 10);
        unsigned reason;
        struct reply failure = REPLY("a.example", 1, .rcode = DNS_SERVFAIL);
        assert_int_equal(put_token(&kit, &token, failure, &reason), SARDINE_REFUSED);
        assert_int_equal(reason, SARDINE_REFUSED_FAILURE);
        kit_wait(&kit, 10);
        struct got *got = look(&kit, a);
        assert_int_equal(got->outcome, SARDINE_HIT);
        assert_int_equal(first_ttl(got), 40);
        /* Expired, but still there for stale serving: the failure does not push it out either. */
        kit_wait(&kit, 100);
        assert_int_equal(put_token(&kit, &token, failure, NULL), SARDINE_REFUSED);
        struct ask stale = a;
        stale.flags = SARDINE_ALLOW_STALE;
        assert_int_equal(outcome(stale), SARDINE_STALE);
        /* A failure does replace a failure, and data replaces a failure. */
        kit_wait(&kit, 3600);
        assert_int_equal(put_token(&kit, &token, failure, NULL), SARDINE_REPLACED);
        assert_int_equal(put_token(&kit, &token, a_ttl("a.example 60 IN A 192.0.2.9"), NULL),
                         SARDINE_REPLACED);
}

static void b42_a_message_lives_as_long_as_its_shortest_rrset(void **state)
{
        (void)state;
        kit_open(&kit);
        struct sardine_query q = {.sz = sizeof q};
        struct sardine_token token;
        uint8_t packet[1024];
        q.packet = packet;
        q.len = ask_packet(&a, packet);
        assert_int_equal(sardine_token_init(kit.cache, &q, &token), 0);
        assert_int_equal(
            put_token(&kit, &token,
                      a_ttl("a.example 300 IN A 192.0.2.1\n-- authority\nexample 50 IN NS ns.example\n"
                            "-- additional\nns.example 80 IN A 192.0.2.53"),
                      NULL),
            SARDINE_STORED);
        assert_int_equal(look(&kit, a)->answer.ttl, 50);
        /* Refreshed in part: every RRset shows what it now has, and the shortest decides. */
        kit_wait(&kit, 20);
        assert_int_equal(
            put_token(&kit, &token,
                      a_ttl("a.example 300 IN A 192.0.2.1\n-- authority\nexample 30 IN NS ns.example\n"
                            "-- additional\nns.example 60 IN A 192.0.2.53"),
                      NULL),
            SARDINE_REPLACED);
        struct got *got = look(&kit, a);
        assert_int_equal(got->answer.ttl, 30);
        assert_int_equal(first_ttl(got), 300);
        assert_int_equal(ldns_rr_ttl(ldns_rr_list_rr(ldns_pkt_authority(got->pkt), 0)), 30);
        assert_int_equal(ldns_rr_ttl(ldns_rr_list_rr(ldns_pkt_additional(got->pkt), 0)), 60);
        kit_wait(&kit, 30);
        assert_int_equal(outcome(a), SARDINE_MISS);
}

static void b43_stale_ttl_is_the_smaller_one(void **state)
{
        (void)state;
        kit.options.stale_window = 3600;
        kit_open(&kit);
        fill(&kit, a, a_ttl("a.example 5 IN A 192.0.2.1"));
        fill(&kit, ASK("b.example", 1), REPLY("b.example", 1, .records = "b.example 300 IN A 192.0.2.1"));
        kit_wait(&kit, 400);
        struct got *got = look(&kit, a);
        assert_int_equal(got->outcome, SARDINE_MISS);
        assert_int_equal(got->answer.stale_available, 1);
        struct ask stale = a;
        stale.flags = SARDINE_ALLOW_STALE;
        stale.edns = true;
        got = look(&kit, stale);
        assert_int_equal(got->outcome, SARDINE_STALE);
        assert_int_equal(first_ttl(got), 5);
        assert_int_equal(got->answer.age, 395);
        assert_int_equal(got->answer.ttl, 0);
        got = look(&kit, ASK("b.example", 1, .flags = SARDINE_ALLOW_STALE));
        assert_int_equal(first_ttl(got), 30);
        kit_wait(&kit, 3600);
        assert_int_equal(outcome(stale), SARDINE_MISS);
        /* After the refresh the new TTL shows. */
        assert_int_equal(put(&kit, a_ttl("a.example 77 IN A 192.0.2.1"), NULL), SARDINE_REFRESHED);
        assert_int_equal(first_ttl(look(&kit, a)), 77);
}

static void b44_odd_ttls(void **state)
{
        (void)state;
        kit_open(&kit);
        /* The top bit set means very large, and is capped (RFC 8767 s4). */
        static const uint8_t high[] = "\0\0\x80\0\0\1\0\1\0\0\0\0"
                                      "\1a\7example\0\0\1\0\1"
                                      "\xc0\x0c\0\1\0\1\x80\0\0\1\0\4\xc0\0\2\1";
        assert_int_equal(outcome(a), SARDINE_MISS);
        assert_int_equal(put_packet(&kit, high, sizeof high - 1, NULL), SARDINE_STORED);
        assert_int_equal(look(&kit, a)->answer.ttl, 86400);
        /* Unequal TTLs in one RRset: the lowest (RFC 2181 s5.2). */
        fill(&kit, ASK("b.example", 1),
             REPLY("b.example", 1, .records = "b.example 300 IN A 192.0.2.1\nb.example 100 IN A 192.0.2.2"));
        struct got *got = look(&kit, ASK("b.example", 1));
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(ldns_rr_ttl(ldns_rr_list_rr(ldns_pkt_answer(got->pkt), i)), 100);
        /* The whole chain counts. */
        fill(&kit, ASK("c.example", 1),
             REPLY("c.example", 1,
                   .records = "c.example 10 IN CNAME d.example.\nd.example 300 IN A 192.0.2.1"));
        assert_int_equal(look(&kit, ASK("c.example", 1))->answer.ttl, 10);
        assert_int_equal(
            ldns_rr_ttl(ldns_rr_list_rr(ldns_pkt_answer(look(&kit, ASK("c.example", 1))->pkt), 1)), 300);
}

#define RRSIG "a.example 300 IN RRSIG A 8 2 300 20300101000000 20200101000000 1 example. AAAA"

static void b45_do_data_serves_both_and_is_not_lost(void **state)
{
        (void)state;
        kit_open(&kit);
        struct ask with = a;
        with.dnssec_ok = true;
        fill(&kit, a, a_ttl("a.example 300 IN A 192.0.2.1"));
        assert_int_equal(outcome(with), SARDINE_MISS);
        assert_int_equal(put(&kit, a_ttl("a.example 300 IN A 192.0.2.1\n" RRSIG), NULL), SARDINE_REPLACED);
        struct got *got = look(&kit, a);
        assert_int_equal(got->outcome, SARDINE_HIT);
        assert_int_equal(count_type(got, DNS_RRSIG), 0);
        assert_int_equal(count_type(look(&kit, with), DNS_RRSIG), 1);
        struct sardine_query q = {.sz = sizeof q};
        struct sardine_token late;
        uint8_t packet[1024];
        q.packet = packet;
        q.len = ask_packet(&a, packet);
        assert_int_equal(sardine_token_init(kit.cache, &q, &late), 0);
        unsigned reason;
        assert_int_equal(put_token(&kit, &late, a_ttl("a.example 300 IN A 192.0.2.1"), &reason),
                         SARDINE_REFUSED);
        assert_int_equal(reason, SARDINE_REFUSED_POORER);
        assert_int_equal(count_type(look(&kit, with), DNS_RRSIG), 1);
        /* Once it has expired it keeps nothing out. */
        kit_wait(&kit, 300);
        assert_int_equal(put_token(&kit, &late, a_ttl("a.example 300 IN A 192.0.2.1"), NULL),
                         SARDINE_REPLACED);
}

static void b46_b47_one_body_for_do_and_without(void **state)
{
        (void)state;
        kit_open(&kit);
        struct ask nx = {"nx.example", 1, .dnssec_ok = true};
        fill(&kit, nx,
             REPLY("nx.example", 1, .rcode = DNS_NXDOMAIN, .ad = true,
                   .records =
                       "-- authority\n" SOA "\n"
                       "example 3600 IN RRSIG SOA 8 1 3600 20300101000000 20200101000000 1 example. AAAA\n"
                       "example 60 IN NSEC zz.example. A NS SOA RRSIG NSEC\n"
                       "example 60 IN RRSIG NSEC 8 1 60 20300101000000 20200101000000 1 example. AAAA"));
        struct got *got = look(&kit, ASK("nx.example", 1, .ad = true));
        assert_int_equal(ldns_pkt_nscount(got->pkt), 1);
        assert_int_equal(count_type(got, DNS_SOA), 1);
        assert_true(got->buf[3] & DNS_AD);
        assert_int_equal(ldns_pkt_nscount(look(&kit, nx)->pkt), 4);
        assert_int_equal(kit_stats(&kit).entries, 1);
        /* Asked for by type, it is data. */
        static const uint16_t types[] = {DNS_RRSIG, DNS_NSEC, DNS_ANY};
        for (size_t i = 0; i < 3; i++) {
                fill(&kit, ASK("example", types[i]),
                     REPLY("example", types[i],
                           .records = types[i] == DNS_RRSIG
                                          ? "example 60 IN RRSIG NSEC 8 1 60 20300101000000 20200101000000 1 "
                                            "example. AAAA"
                                          : "example 60 IN NSEC zz.example. A NS SOA RRSIG NSEC"));
                assert_int_equal(answers(look(&kit, ASK("example", types[i]))), 1);
        }
        /* B47: an unsigned zone that answers without OPT is a hit for the next DO client. */
        struct ask plain = {"u.example", 1, .dnssec_ok = true};
        fill(&kit, plain, REPLY("u.example", 1, .records = "u.example 60 IN A 192.0.2.1"));
        assert_int_equal(outcome(plain), SARDINE_HIT);
}

static void b71_newer_wins_with_a_shorter_ttl(void **state)
{
        (void)state;
        kit_open(&kit);
        fill(&kit, a, a_ttl("a.example 3600 IN A 192.0.2.1"));
        struct sardine_query q = {.sz = sizeof q};
        struct sardine_token token;
        uint8_t packet[1024];
        q.packet = packet;
        q.len = ask_packet(&a, packet);
        assert_int_equal(sardine_token_init(kit.cache, &q, &token), 0);
        assert_int_equal(put_token(&kit, &token, a_ttl("a.example 60 IN A 192.0.2.2"), NULL),
                         SARDINE_REPLACED);
        struct got *got = look(&kit, a);
        assert_true(has_text(got, "192.0.2.2"));
        assert_int_equal(first_ttl(got), 60);
        /* The same again with another TTL only moves the expiry. */
        assert_int_equal(put_token(&kit, &token, a_ttl("a.example 30 IN A 192.0.2.2"), NULL),
                         SARDINE_REFRESHED);
        assert_int_equal(first_ttl(look(&kit, a)), 30);
        assert_int_equal(kit_stats(&kit).entries, 1);
}

static void b70_what_was_purged_stays_purged(void **state)
{
        (void)state;
        kit_open(&kit);
        struct got *got = look(&kit, a);
        struct sardine_token token = got->token;
        struct sardine_selector sel = {.sz = sizeof sel};
        uint8_t name[255];
        sel.name = name;
        sel.name_len = (uint32_t)sardine_name_from_text("a.example", name);
        assert_int_equal(sardine_expunge(kit.cache, &sel), 0);
        unsigned reason;
        assert_int_equal(put_token(&kit, &token, a_ttl("a.example 60 IN A 192.0.2.2"), &reason),
                         SARDINE_REFUSED);
        assert_int_equal(reason, SARDINE_REFUSED_PURGED);
        fill(&kit, a, a_ttl("a.example 60 IN A 192.0.2.3"));
        assert_int_equal(outcome(a), SARDINE_HIT);
}

static void b79_one_caller_is_asked_to_refresh(void **state)
{
        (void)state;
        kit.options.refresh_percent = 10;
        kit_open(&kit);
        fill(&kit, a, a_ttl("a.example 100 IN A 192.0.2.1"));
        fill(&kit, ASK("b.example", 1), REPLY("b.example", 1, .records = "b.example 100 IN A 192.0.2.1"));
        for (int i = 0; i < 20; i++)
                assert_int_equal(outcome(a), SARDINE_HIT);
        kit_wait(&kit, 91);
        /* Never asked for before: not worth a refresh. */
        assert_int_equal(outcome(ASK("b.example", 1)), SARDINE_HIT);
        struct sardine_token token = {0};
        unsigned winners = 0;
        for (int i = 0; i < 50; i++) {
                struct got *got = look(&kit, a);
                if (got->outcome == SARDINE_REFRESH) {
                        winners++;
                        token = got->token;
                        assert_int_equal(first_ttl(got), 9);
                }
        }
        assert_int_equal(winners, 1);
        assert_int_equal(put_token(&kit, &token, a_ttl("a.example 100 IN A 192.0.2.1"), NULL),
                         SARDINE_REFRESHED);
        assert_int_equal(first_ttl(look(&kit, a)), 100);
}

static void b21_a_refresh_says_with_which_do(void **state)
{
        (void)state;
        kit.options.refresh_percent = 10;
        kit_open(&kit);
        for (int with_do = 0; with_do < 2; with_do++) {
                struct ask fetch = a;
                fetch.edns = fetch.dnssec_ok = with_do;
                fill(&kit, fetch, a_ttl("a.example 100 IN A 192.0.2.1"));
                assert_int_equal(outcome(a), SARDINE_HIT);
                kit_wait(&kit, 95);
                struct got *got = look(&kit, a);
                assert_int_equal(got->outcome, SARDINE_REFRESH);
                assert_int_equal(got->answer.dnssec_ok, with_do);
                kit_wait(&kit, 5);
                assert_int_equal(look(&kit, a)->answer.dnssec_ok, 0); /* a miss */
        }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
        const struct CMUnitTest tests[] = {
            T(b28_ttl_one_lives_one_second_and_zero_never_shows),
            T(b28_ttls_age),
            T(b29_answers_without_records),
            T(b30_failures_have_their_own_short_life),
            T(b30_failure_ttl_of_the_host),
            T(b31_negative_life_is_the_soas_minimum),
            T(b32_negative_without_soa_is_not_kept),
            T(b33_every_cap_holds_for_negatives),
            T(b34_opt_is_not_a_record_with_a_ttl),
            T(b35_clock_jumps_ahead),
            T(b36_without_ageing_ttls_stay_and_entries_still_expire),
            T(b40_fresh_negative_displaces_stale_positive),
            T(b40_fresh_answers_that_are_not_kept_displace_stale_ones),
            T(b41_failures_never_hide_usable_data),
            T(b42_a_message_lives_as_long_as_its_shortest_rrset),
            T(b43_stale_ttl_is_the_smaller_one),
            T(b44_odd_ttls),
            T(b45_do_data_serves_both_and_is_not_lost),
            T(b46_b47_one_body_for_do_and_without),
            T(b70_what_was_purged_stays_purged),
            T(b71_newer_wins_with_a_shorter_ttl),
            T(b21_a_refresh_says_with_which_do),
            T(b79_one_caller_is_asked_to_refresh),
        };
        return cmocka_run_group_tests_name("cache/life", tests, NULL, NULL);
}
