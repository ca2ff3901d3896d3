/* SPDX-License-Identifier: MIT
 * sardine_explain() with a policy: it looks where a lookup looks, and says what the policy said. */
#include "policy_kit.h"

enum { A = LDNS_RR_TYPE_A };

static const uint8_t kid[4] = {192, 0, 2, 7}, adult[4] = {198, 51, 100, 7};

static const char tenants[] = "return { key = function(q)\n"
                              "  if q.name == 'live.example.' then return {skip = true} end\n"
                              "  return q.client and q.client:within('192.0.2.0/24') and 'kids' or 'others'\n"
                              "end }";

static int setup(void **state)
{
        (void)state;
        kit_init(&kit);
        kit.options.stale_window = 3600;
        kit.options.truncated_ttl = 60;
        policy_open(&kit);
        return 0;
}

/* The outcome must be that of a lookup. */
static struct sardine_explanation explain(struct ask ask, int outcome)
{
        uint8_t packet[1024];
        const struct sardine_query query = {
            .sz = sizeof query,
            .packet = packet,
            .len = ask_packet(&ask, packet),
            .transport = ask.transport,
            .flags = ask.flags,
            .client = ask.client,
            .client_len = 4,
        };
        struct sardine_stats before = kit_stats(&kit), after;
        struct sardine_explanation e = {.sz = sizeof e};
        assert_int_equal(sardine_explain(kit.cache, &query, &e), outcome);
        after = kit_stats(&kit);
        assert_memory_equal(&before, &after, sizeof before);
        ask.flags |= SARDINE_PEEK;
        struct got *got = look(&kit, ask);
        assert_int_equal(got->outcome, outcome);
        assert_int_equal(e.reason, got->answer.reason);
        return e;
}

static const char *const data = "a.example 100 IN A 192.0.2.1";

static void b17_a_policys_tag_is_part_of_the_key(void **state)
{
        (void)state;
        policy_set(&kit, tenants);
        struct ask ask = ASK("a.example", A, .client = kid), other = ASK("a.example", A, .client = adult);
        assert_int_equal(explain(ask, SARDINE_MISS).why, SARDINE_WHY_ABSENT);
        fill(&kit, ask, REPLY("a.example", A, .records = data));
        struct sardine_explanation e = explain(ask, SARDINE_HIT);
        assert_int_equal(e.why, SARDINE_WHY_HIT);
        assert_int_equal(e.life, 100);
        assert_true(e.bytes > 0);
        assert_int_equal(explain(other, SARDINE_MISS).why, SARDINE_WHY_TAG);
        ask.edns = ask.dnssec_ok = true;
        assert_int_equal(explain(ask, SARDINE_MISS).why, SARDINE_WHY_DNSSEC);
        ask.dnssec_ok = false;
        ask.rd = true;
        assert_int_equal(explain(ask, SARDINE_MISS).why, SARDINE_WHY_FLAGS);
        ask.rd = false;

        kit_wait(&kit, 150);
        e = explain(ask, SARDINE_MISS);
        assert_int_equal(e.why, SARDINE_WHY_EXPIRED);
        assert_int_equal(e.expired, 50);
        assert_int_equal(e.stale_available, 1);
        ask.flags = SARDINE_ALLOW_STALE;
        assert_int_equal(explain(ask, SARDINE_STALE).why, SARDINE_WHY_EXPIRED);
        assert_int_equal(explain(other, SARDINE_MISS).why, SARDINE_WHY_ABSENT);

        struct ask whole = ASK("t.example", A, .client = kid);
        fill(&kit, whole, REPLY("t.example", A, .tc = true));
        assert_int_equal(explain(whole, SARDINE_HIT).why, SARDINE_WHY_HIT);
        whole.transport = SARDINE_TCP;
        assert_int_equal(explain(whole, SARDINE_MISS).why, SARDINE_WHY_TRUNCATED);
}

static void b17_a_policy_may_pass_a_query_by(void **state)
{
        (void)state;
        struct ask ask = ASK("live.example", A, .client = kid);
        fill(&kit, ask, REPLY("live.example", A, .records = "live.example 100 IN A 192.0.2.1"));
        policy_set(&kit, tenants);
        struct sardine_explanation e = explain(ask, SARDINE_BYPASS);
        assert_int_equal(e.why, SARDINE_WHY_BYPASS);
        assert_int_equal(e.reason, SARDINE_BYPASS_POLICY);
        assert_int_equal(e.bytes, 0);
}

/* Its second call is the lookup's, and may say another thing. */
static void b17_a_policy_that_changes_its_mind(void **state)
{
        (void)state;
        policy_set(&kit,
                   "local n = 0\n"
                   "return { key = function(q) n = n + 1 return n % 2 == 0 and {skip = true} or nil end }");
        uint8_t packet[1024];
        struct ask ask = ASK("a.example", A);
        const struct sardine_query query = {
            .sz = sizeof query, .packet = packet, .len = ask_packet(&ask, packet)};
        struct sardine_explanation e = {.sz = sizeof e};
        assert_int_equal(sardine_explain(kit.cache, &query, &e), SARDINE_BYPASS);
        assert_int_equal(e.why, SARDINE_WHY_BYPASS);
        assert_int_equal(e.reason, SARDINE_BYPASS_POLICY);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, policy_teardown)
        const struct CMUnitTest tests[] = {
            T(b17_a_policys_tag_is_part_of_the_key),
            T(b17_a_policy_may_pass_a_query_by),
            T(b17_a_policy_that_changes_its_mind),
        };
        return cmocka_run_group_tests_name("policy/explain", tests, NULL, NULL);
}
