/* SPDX-License-Identifier: MIT
 * Replies beyond the plain copy: record order (B81), padding (B57), signatures' life (B44), relayed responses
 * (B45-B47 for hosts that always fetch with DO). */
#include "kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "wire/bytes.h"
#include "wire/dns.h"

static char *eight_addresses(const char *head, const char *owner, const char *tail)
{
        static char records[2048];
        char *p = records;
        p += sprintf(p, "%s", head);
        for (int i = 1; i <= 8; i++)
                p += sprintf(p, "%s 300 IN A 192.0.2.%d\n", owner, i);
        sprintf(p, "%s", tail);
        return records;
}

/* The last byte of the first address in the reply. */
static unsigned first_address(const struct got *got)
{
        ldns_rr_list *list = ldns_pkt_answer(got->pkt);
        for (size_t i = 0; i < ldns_rr_list_rr_count(list); i++) {
                ldns_rr *rr = ldns_rr_list_rr(list, i);
                if (ldns_rr_get_type(rr) == LDNS_RR_TYPE_A)
                        return ldns_rdf_data(ldns_rr_rdf(rr, 0))[3];
        }
        fail();
        return 0;
}

#define SIGNATURE "c.example 300 IN RRSIG A 8 2 300 20300101000000 20200101000000 1 example. AAAA"

static void b81_every_address_comes_first_as_often(void **state)
{
        (void)state;
        kit.options.rotate = 1;
        kit_open(&kit);
        fill(&kit, ASK("a.example", 1),
             REPLY("a.example", 1, .records = eight_addresses("", "a.example", "")));
        fill(&kit, ASK("b.example", 1, .dnssec_ok = true),
             REPLY("b.example", 1,
                   .records = eight_addresses("b.example 300 IN CNAME c.example\n", "c.example", SIGNATURE)));
        unsigned plain[9] = {0}, chained[9] = {0};
        for (int i = 0; i < 8000; i++) {
                struct got *got = look(&kit, ASK("a.example", 1));
                assert_int_equal(answers(got), 8);
                plain[first_address(got)]++;
                got = look(&kit, ASK("b.example", 1, .dnssec_ok = true));
                assert_int_equal(answers(got), 10);
                assert_int_equal(ldns_rr_get_type(ldns_rr_list_rr(ldns_pkt_answer(got->pkt), 0)),
                                 LDNS_RR_TYPE_CNAME);
                assert_int_equal(ldns_rr_get_type(ldns_rr_list_rr(ldns_pkt_answer(got->pkt), 9)),
                                 LDNS_RR_TYPE_RRSIG);
                chained[first_address(got)]++;
        }
        for (int i = 1; i <= 8; i++) {
                assert_in_range(plain[i], 850, 1150);
                assert_in_range(chained[i], 850, 1150);
        }
        /* Turned, not lost: all eight are there. */
        ldns_rr_list *list = ldns_pkt_answer(look(&kit, ASK("a.example", 1))->pkt);
        unsigned sum = 0;
        for (size_t i = 0; i < 8; i++)
                sum |= 1u << ldns_rdf_data(ldns_rr_rdf(ldns_rr_list_rr(list, i), 0))[3];
        assert_int_equal(sum, 0x1fe);
}

static void b81_rotation_of_variable_rdata(void **state)
{
        (void)state;
        kit.options.rotate = 1;
        kit_open(&kit);
        fill(&kit, ASK("t.example", DNS_TXT),
             REPLY("t.example", DNS_TXT,
                   .records = "t.example 9 IN TXT a\nt.example 9 IN TXT bb\nt.example 9 IN TXT ccc"));
        fill(&kit, ASK("m.example", DNS_MX),
             REPLY("m.example", DNS_MX,
                   .records = "m.example 9 IN MX 1 a.m.example.\nm.example 9 IN MX 2 b.m.example."));
        unsigned first[4] = {0}, mx[3] = {0};
        for (int i = 0; i < 300; i++) {
                struct got *got = look(&kit, ASK("t.example", DNS_TXT));
                assert_int_equal(answers(got), 3);
                assert_true(has_text(got, "\"a\"") && has_text(got, "\"bb\"") && has_text(got, "\"ccc\""));
                first[ldns_rdf_size(ldns_rr_rdf(ldns_rr_list_rr(ldns_pkt_answer(got->pkt), 0), 0)) - 1]++;
                got = look(&kit, ASK("m.example", DNS_MX));
                assert_true(has_text(got, "a.m.example.") && has_text(got, "b.m.example."));
                mx[ldns_rdf2native_int16(ldns_rr_rdf(ldns_rr_list_rr(ldns_pkt_answer(got->pkt), 0), 0))]++;
        }
        assert_true(first[1] > 50 && first[2] > 50 && first[3] > 50);
        assert_true(mx[1] > 50 && mx[2] > 50);
}

static void b81_off_is_stable_to_the_byte(void **state)
{
        (void)state;
        kit_open(&kit);
        fill(&kit, ASK("a.example", 1),
             REPLY("a.example", 1, .records = eight_addresses("", "a.example", "")));
        for (int i = 0; i < 100; i++)
                assert_int_equal(first_address(look(&kit, ASK("a.example", 1))), 1);
}

static void b57_padding_for_those_who_pad(void **state)
{
        (void)state;
        kit_open(&kit);
        fill(&kit, ASK("a.example", 1), REPLY("a.example", 1, .records = "a.example 300 IN A 192.0.2.1"));
        uint8_t padding[24] = {0, EDNS_PADDING, 0, 20};
        struct ask ask = ASK("a.example", 1, .options = padding, .options_len = sizeof padding);
        for (ask.transport = SARDINE_UDP; ask.transport <= SARDINE_DOQ; ask.transport++) {
                struct got *got = look(&kit, ask);
                assert_int_equal(got->outcome, SARDINE_HIT);
                if (ask.transport >= SARDINE_DOT)
                        assert_int_equal(got->answer.len, 468);
                else
                        assert_true(got->answer.len < 100);
        }
        assert_true(look(&kit, ASK("a.example", 1, .edns = true, .transport = SARDINE_DOT))->answer.len <
                    100);
        assert_int_equal(kit_stats(&kit).entries, 1);
}

static void b44_no_entry_outlives_its_signatures(void **state)
{
        (void)state;
        char records[300], when[16];
        time_t end = time(NULL) + 100;
        strftime(when, sizeof when, "%Y%m%d%H%M%S", gmtime(&end));
        snprintf(records, sizeof records,
                 "a.example 300 IN A 192.0.2.1\na.example 300 IN RRSIG A 8 2 300 %s 20200101000000 1 "
                 "example. AAAA",
                 when);
        struct ask ask = ASK("a.example", 1, .dnssec_ok = true);
        kit_open(&kit);
        fill(&kit, ask, REPLY("a.example", 1, .records = records));
        assert_int_equal(look(&kit, ask)->answer.ttl, 300);
        kit_close(&kit);
        kit.options.cap_by_signature = 1;
        kit_open(&kit);
        fill(&kit, ask, REPLY("a.example", 1, .records = records));
        assert_in_range(look(&kit, ask)->answer.ttl, end - time(NULL), 100);
        assert_int_equal(look(&kit, ASK("b.example", 1, .dnssec_ok = true))->outcome, SARDINE_MISS);
        unsigned reason;
        assert_int_equal(
            put(&kit,
                REPLY("b.example", 1,
                      .records =
                          "b.example 300 IN A 192.0.2.1\n"
                          "b.example 300 IN RRSIG A 8 2 300 20210101000000 20200101000000 1 example. AAAA"),
                &reason),
            SARDINE_REFUSED);
        assert_int_equal(reason, SARDINE_REFUSED_TTL_SHORT);
}

static void b46_relayed_responses_are_made_for_the_client(void **state)
{
        (void)state;
        kit_open(&kit);
        struct reply reply = REPLY(
            "a.example", 1, .ad = true, .edns = true, .dnssec_ok = true,
            .records = "a.example 0 IN A 192.0.2.1\n"
                       "a.example 300 IN RRSIG A 8 2 300 20300101000000 20200101000000 1 example. AAAA");
        size_t len;
        uint8_t *response = reply_packet(&reply, &len), packet[1024], buf[1024];
        struct ask ask = ASK("A.Example", 1, .rd = true);
        struct sardine_query q = {.sz = sizeof q, .packet = packet};
        struct sardine_answer answer = {.sz = sizeof answer, .buf = buf, .cap = sizeof buf};
        q.len = ask_packet(&ask, packet);
        assert_int_equal(sardine_render(kit.cache, &q, response, len, &answer), SARDINE_HIT);
        /* Question to the letter, one record with its TTL of 0, no OPT, no AD, RD of the query. */
        assert_int_equal(answer.len, q.len + 16);
        assert_memory_equal(buf + 12, packet + 12, q.len - 12);
        assert_memory_equal(buf + q.len, "\xc0\x0c\0\1\0\1\0\0\0\0\0\4\xc0\0\2\1", 16);
        assert_memory_equal(buf + 2, "\x81\0\0\1\0\1\0\0\0\0", 10);
        ask.dnssec_ok = true;
        q.len = ask_packet(&ask, packet);
        assert_int_equal(sardine_render(kit.cache, &q, response, len, &answer), SARDINE_HIT);
        assert_memory_equal(buf + 4, "\0\1\0\2\0\0\0\1", 8);
        assert_true(buf[3] & DNS_AD);
        /* Not an answer to this question, or not whole: left alone. */
        ask.name = "b.example";
        q.len = ask_packet(&ask, packet);
        assert_int_equal(sardine_render(kit.cache, &q, response, len, &answer), SARDINE_BYPASS);
        assert_int_equal(answer.reason, SARDINE_REFUSED_MISMATCH);
        assert_int_equal(sardine_render(kit.cache, &q, response, len - 1, &answer), SARDINE_BYPASS);
        assert_int_equal(answer.reason, SARDINE_REFUSED_MALFORMED);
        assert_int_equal(sardine_render(kit.cache, &q, NULL, len, &answer), -EINVAL);
        assert_int_equal(kit_stats(&kit).lookups, 0);
        free(response);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
        const struct CMUnitTest tests[] = {
            T(b81_every_address_comes_first_as_often), T(b81_rotation_of_variable_rdata),
            T(b81_off_is_stable_to_the_byte),          T(b57_padding_for_those_who_pad),
            T(b44_no_entry_outlives_its_signatures),   T(b46_relayed_responses_are_made_for_the_client),
        };
        return cmocka_run_group_tests_name("cache/reply", tests, NULL, NULL);
}
