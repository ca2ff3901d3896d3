/* SPDX-License-Identifier: MIT
 * sardine_explain(): the outcome of a lookup with its reason, and without a trace. */
#include "kit.h"

enum { A = LDNS_RR_TYPE_A };

static int setup(void **state)
{
        (void)state;
        kit_init(&kit);
        kit.options.stale_window = 1000;
        return 0;
}

/* The verdict; the outcome must be that of a lookup which nobody counts. */
static struct sardine_explanation explain(struct ask ask)
{
        uint8_t packet[1024];
        struct sardine_query query = {
            .sz = sizeof query,
            .packet = packet,
            .len = ask_packet(&ask, packet),
            .transport = ask.transport,
            .flags = ask.flags,
            .tag = ask.tag,
            .tag_len = ask.tag ? (uint32_t)strlen(ask.tag) : 0,
            .client = ask.client,
            .client_len = ask.client ? 4 : 0,
        };
        struct sardine_stats before = kit_stats(&kit), after;
        struct sardine_explanation e = {.sz = sizeof e};
        int outcome = sardine_explain(kit.cache, &query, &e);
        after = kit_stats(&kit);
        assert_memory_equal(&before, &after, sizeof before);
        ask.flags |= SARDINE_PEEK;
        struct got *got = look(&kit, ask);
        assert_int_equal(outcome, got->outcome);
        if (outcome == SARDINE_HIT) {
                assert_int_equal(e.reply_len, got->answer.len);
                assert_int_equal(e.ttl, got->answer.ttl);
        }
        return e;
}

static void test_hit_expired_and_absent(void **state)
{
        (void)state;
        kit_open(&kit);
        struct ask ask = ASK("a.example.", A);
        assert_int_equal(explain(ask).why, SARDINE_WHY_ABSENT);
        fill(&kit, ask, REPLY("a.example.", A, .records = "a.example. 100 IN A 192.0.2.1\n"));
        struct sardine_explanation e = explain(ask);
        assert_int_equal(e.why, SARDINE_WHY_HIT);
        assert_int_equal(e.life, 100);
        assert_int_equal(e.dnssec_ok, 0);
        assert_true(e.bytes > 0);
        kit_wait(&kit, 150);
        e = explain(ask);
        assert_int_equal(e.why, SARDINE_WHY_EXPIRED);
        assert_int_equal(e.expired, 50);
        assert_int_equal(e.stale_available, 1);
        ask.flags = SARDINE_ALLOW_STALE;
        e = explain(ask);
        assert_int_equal(e.why, SARDINE_WHY_EXPIRED);
        assert_true(e.reply_len > 0);
        ask.flags = 0;
        kit_wait(&kit, 1000);
        assert_int_equal(explain(ask).stale_available, 0);
}

static void test_what_keeps_an_answer_from_a_client(void **state)
{
        (void)state;
        kit_open(&kit);
        struct ask ask = ASK("a.example.", A, .rd = true);
        fill(&kit, ask, REPLY("a.example.", A, .rd = true, .records = "a.example. 100 IN A 192.0.2.1\n"));
        struct sardine_explanation e =
            explain(ASK("A.example.", A, .rd = true, .edns = true, .dnssec_ok = true));
        assert_int_equal(e.why, SARDINE_WHY_DNSSEC);
        e = explain(ASK("a.example.", A));
        assert_int_equal(e.why, SARDINE_WHY_FLAGS);
        assert_int_equal(e.rd, 1);
        assert_int_equal(e.cd, 0);
        e = explain(ASK("a.example.", A, .rd = true, .cd = true));
        assert_int_equal(e.why, SARDINE_WHY_FLAGS);
        e = explain(ASK("a.example.", A, .rd = true, .tag = "tenant"));
        assert_int_equal(e.why, SARDINE_WHY_TAG);
        assert_int_equal(explain(ASK("b.example.", A, .rd = true, .tag = "tenant")).why, SARDINE_WHY_ABSENT);
        e = explain(ASK("a.example.", A, .rd = true, .flags = SARDINE_SKIP));
        assert_int_equal(e.why, SARDINE_WHY_BYPASS);
        assert_int_equal(e.reason, SARDINE_BYPASS_HOST);
        e = explain(ASK("a.example.", LDNS_RR_TYPE_AXFR));
        assert_int_equal(e.reason, SARDINE_BYPASS_QTYPE);
}

static void test_truncated_answers_and_replies(void **state)
{
        (void)state;
        kit.options.truncated_ttl = 60;
        kit_open(&kit);
        struct ask ask = ASK("t.example.", A);
        fill(&kit, ask, REPLY("t.example.", A, .tc = true));
        assert_int_equal(explain(ask).why, SARDINE_WHY_HIT);
        ask.transport = SARDINE_TCP;
        assert_int_equal(explain(ask).why, SARDINE_WHY_TRUNCATED);

        char records[6000], *at = records;
        for (int i = 0; i < 60; i++)
                at += sprintf(at, "big.example. 100 IN A 192.0.2.%d\n", i);
        fill(&kit, ASK("big.example.", A), REPLY("big.example.", A, .records = records));
        struct sardine_explanation e = explain(ASK("big.example.", A));
        assert_int_equal(e.why, SARDINE_WHY_HIT);
        assert_int_equal(e.truncated, 1);
        assert_int_equal(explain(ASK("big.example.", A, .transport = SARDINE_DOT)).truncated, 0);
}

static void expunge(const char *name, bool below, int rcode)
{
        uint8_t wire[255];
        struct sardine_selector selector = {.sz = sizeof selector,
                                            .name = wire,
                                            .below = below,
                                            .use_rcode = rcode >= 0,
                                            .rcode = rcode >= 0 ? (uint32_t)rcode : 0};
        selector.name_len = (uint32_t)sardine_name_from_text(name, wire);
        assert_true(sardine_expunge(kit.cache, &selector) >= 0);
}

static void test_purged_or_never_there(void **state)
{
        (void)state;
        kit_open(&kit);
        struct ask ask = ASK("a.example.", A), other = ASK("b.other.", A);
        fill(&kit, ask, REPLY("a.example.", A, .records = "a.example. 100 IN A 192.0.2.1\n"));
        assert_int_equal(explain(ask).purged, SARDINE_PURGED_NO);
        expunge("A.Example", false, -1);
        struct sardine_explanation e = explain(ask);
        assert_int_equal(e.why, SARDINE_WHY_ABSENT);
        assert_int_equal(e.purged, SARDINE_PURGED_YES);
        assert_int_equal(e.purged_ago, 0);
        kit_wait(&kit, 7);
        assert_int_equal(explain(ask).purged_ago, 7);
        assert_int_equal(explain(other).purged, SARDINE_PURGED_NO);
        /* What is there again is no matter of the past. */
        fill(&kit, ask, REPLY("a.example.", A, .records = "a.example. 100 IN A 192.0.2.1\n"));
        assert_int_equal(explain(ask).purged, SARDINE_PURGED_NO);
        expunge("other", true, LDNS_RCODE_NXDOMAIN);
        assert_int_equal(explain(other).purged, SARDINE_PURGED_PERHAPS);
        expunge("other", true, -1);
        assert_int_equal(explain(other).purged, SARDINE_PURGED_YES);
        assert_int_equal(sardine_expunge_list(kit.cache, "192.0.2.77", 10), 0);
        assert_int_equal(explain(other).purged, SARDINE_PURGED_PERHAPS);
        assert_int_equal(sardine_expunge(kit.cache, NULL), 1);
        assert_int_equal(explain(ask).purged, SARDINE_PURGED_YES);
        /* The last ones are remembered. */
        for (unsigned i = 0; i < 16; i++)
                expunge("c.example", false, -1);
        assert_int_equal(explain(ask).purged, SARDINE_PURGED_NO);
}

static void test_evicted(void **state)
{
        (void)state;
        kit.options.max_entries = 10;
        kit_open(&kit);
        for (unsigned i = 0; i < 20; i++) {
                char name[16], record[64];
                sprintf(name, "n%u.", i);
                sprintf(record, "n%u. 100 IN A 192.0.2.1", i);
                fill(&kit, ASK(name, A), REPLY(name, A, .records = record));
        }
        assert_int_equal(kit_stats(&kit).evicted, 10);
        struct sardine_explanation e = explain(ASK("n0.", A));
        assert_int_equal(e.why, SARDINE_WHY_ABSENT);
        assert_int_equal(e.purged, SARDINE_PURGED_NO);
        assert_int_equal(explain(ASK("n19.", A)).why, SARDINE_WHY_HIT);
}

static void test_networks(void **state)
{
        (void)state;
        static const uint8_t asked[] = {0, 8, 0, 7, 0, 1, 24, 0, 192, 0, 2};
        static const uint8_t answered[] = {0, 8, 0, 7, 0, 1, 24, 24, 192, 0, 2};
        static const uint8_t near[4] = {192, 0, 2, 77}, far[4] = {198, 51, 100, 1};
        kit_open(&kit);
        fill(&kit, ASK("a.example.", A, .edns = true, .options = asked, .options_len = sizeof asked),
             REPLY("a.example.", A, .edns = true, .opt = answered, .opt_len = sizeof answered,
                   .records = "a.example. 100 IN A 192.0.2.1\n"));
        assert_int_equal(explain(ASK("a.example.", A, .client = near)).why, SARDINE_WHY_HIT);
        assert_int_equal(explain(ASK("a.example.", A, .client = far)).why, SARDINE_WHY_NETWORK);
        assert_int_equal(explain(ASK("a.example.", A)).why, SARDINE_WHY_NETWORK);
        kit_wait(&kit, 150);
        struct sardine_explanation e =
            explain(ASK("a.example.", A, .client = near, .flags = SARDINE_ALLOW_STALE));
        assert_int_equal(e.why, SARDINE_WHY_EXPIRED);
        assert_int_equal(e.expired, 50);
        assert_true(e.reply_len > 0);
        /* It is for this network, and expired: another one has none. */
        assert_int_equal(explain(ASK("a.example.", A, .client = near)).why, SARDINE_WHY_EXPIRED);
        assert_int_equal(explain(ASK("a.example.", A, .client = far)).why, SARDINE_WHY_NETWORK);
}

static void test_arguments(void **state)
{
        (void)state;
        kit_open(&kit);
        struct sardine_query query = {.sz = sizeof query};
        struct sardine_explanation e = {.sz = sizeof e};
        assert_int_equal(sardine_explain(kit.cache, &query, &e), -EINVAL);
        assert_int_equal(sardine_explain(kit.cache, NULL, &e), -EINVAL);
        query.packet = (const uint8_t *)"";
        assert_int_equal(sardine_explain(kit.cache, &query, NULL), -EINVAL);
        e.sz = 4;
        assert_int_equal(sardine_explain(kit.cache, &query, &e), -EINVAL);
        e.sz = sizeof e;
        assert_int_equal(sardine_explain(kit.cache, &query, &e), SARDINE_BYPASS);
        assert_int_equal(e.reason, SARDINE_BYPASS_MALFORMED);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, kit_teardown)
        const struct CMUnitTest tests[] = {
            T(test_hit_expired_and_absent),
            T(test_what_keeps_an_answer_from_a_client),
            T(test_truncated_answers_and_replies),
            T(test_purged_or_never_there),
            T(test_evicted),
            T(test_networks),
            T(test_arguments),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
