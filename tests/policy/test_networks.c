/* SPDX-License-Identifier: MIT
 * Client networks as a policy wants them: which of them share an answer, and what the upstream is told. */
#include "policy_kit.h"

enum { A = LDNS_RR_TYPE_A };

/* Clients, as hosts know them. */
static const uint8_t here[4] = {192, 0, 2, 7}, there[4] = {198, 51, 100, 7};

/* An EDNS option that says 203.0.113.77/32. */
static const uint8_t own[] = {0, 8, 0, 8, 0, 1, 32, 0, 203, 0, 113, 77};

/* Look up; it must miss, and the upstream must be told this. NULL: whatever the query says. */
static void miss(struct ask ask, const char *told)
{
        struct got *got = look(&kit, ask);
        assert_int_equal(got->outcome, SARDINE_MISS);
        if (policy_stats(&kit).errors[SARDINE_HOOK_KEY])
                fail_msg("%s", policy_line);
        assert_int_equal(got->answer.ecs_set, told != NULL);
        if (!told)
                return;
        char text[64] = "";
        const uint8_t *p = got->answer.ecs_addr;
        if (got->answer.ecs_family == 1)
                snprintf(text, sizeof text, "%u.%u.%u.%u/%u", p[0], p[1], p[2], p[3],
                         (unsigned)got->answer.ecs_prefix);
        else if (got->answer.ecs_family == 2)
                snprintf(text, sizeof text, "%02x%02x:%02x%02x::/%u", p[0], p[1], p[2], p[3],
                         (unsigned)got->answer.ecs_prefix);
        assert_string_equal(text, told);
}

/* The upstream has been told this network, and answers for all of it. */
static void answer_for(const char *name, uint8_t family, uint8_t prefix, const uint8_t *addr)
{
        uint8_t opt[24] = {0, 8, 0, 0, 0, family, prefix, prefix};
        char records[64];
        unsigned bytes = (prefix + 7u) / 8, reason = 0;
        opt[3] = (uint8_t)(4 + bytes);
        memcpy(opt + 8, addr, bytes);
        snprintf(records, sizeof records, "%s 300 IN A 192.0.2.1", name);
        int outcome =
            put(&kit, REPLY(name, A, .records = records, .edns = true, .opt = opt, .opt_len = 8 + bytes),
                &reason);
        if (outcome != SARDINE_STORED)
                fail_msg("%d: %s", outcome, sardine_reason_name(reason));
}

static void answer_for_all(const char *name)
{
        char records[64];
        snprintf(records, sizeof records, "%s 300 IN A 192.0.2.1", name);
        assert_int_equal(put(&kit, REPLY(name, A, .records = records), NULL), SARDINE_STORED);
}

static void hit(struct ask ask)
{
        const struct got *got = look(&kit, ask);
        assert_int_equal(got->outcome, SARDINE_HIT);
        /* Nobody is going to be told. */
        assert_int_equal(got->answer.ecs_ipv4, 255);
        assert_int_equal(got->answer.ecs_set, 0);
}

static void a_network_of_the_hook_takes_the_place_of_the_clients(void **state)
{
        (void)state;
        const uint8_t four[4] = {10, 1, 2}, six[16] = {0x20, 0x01, 0x0d, 0xb8};
        policy_set(&kit, "return { key = function(q)\n"
                         "  if q.qname:is('four.example') then return {ecs = '10.1.2.0/24'} end\n"
                         "  if q.qname:is('six.example') then return {ecs = '2001:db8::/32'} end\n"
                         "end }");
        miss(ASK("four.example", A, .client = here), "10.1.2.0/24");
        answer_for("four.example", 1, 24, four);
        hit(ASK("four.example", A, .client = there));
        hit(ASK("four.example", A, .options = own, .options_len = sizeof own));
        miss(ASK("six.example", A, .options = own, .options_len = sizeof own), "2001:0db8::/32");
        answer_for("six.example", 2, 32, six);
        hit(ASK("six.example", A, .client = there));
        miss(ASK("other.example", A, .client = here), NULL);
        /* What is not from there is not taken for it. */
        assert_true(sardine_expunge(kit.cache, NULL) > 0);
        miss(ASK("four.example", A, .client = here), "10.1.2.0/24");
        const uint8_t other[] = {0, 8, 0, 7, 0, 1, 24, 24, 192, 0, 2};
        unsigned reason;
        assert_int_equal(put(&kit,
                             REPLY("four.example", A, .records = "four.example 300 IN A 192.0.2.1",
                                   .edns = true, .opt = other, .opt_len = sizeof other),
                             &reason),
                         SARDINE_REFUSED);
        assert_int_equal(reason, SARDINE_REFUSED_ECS);
}

static void the_hook_may_want_answers_for_everybody(void **state)
{
        (void)state;
        policy_set(&kit, "return { key = function(q) return {ecs = false} end }");
        miss(ASK("a.example", A, .options = own, .options_len = sizeof own), "");
        answer_for_all("a.example");
        hit(ASK("a.example", A, .client = there));
        /* Without an option in the query there is none to leave out: the prefix lengths say it. */
        miss(ASK("b.example", A, .client = here), NULL);
        struct got *got = look(&kit, ASK("b.example", A, .client = here));
        assert_int_equal(got->answer.ecs_ipv4, 0);
        assert_int_equal(got->answer.ecs_ipv6, 0);
}

/* An upstream that has failed is followed by another one, which is told the same. */
static void a_failure_says_what_the_next_upstream_is_told(void **state)
{
        (void)state;
        policy_set(&kit, "return { key = function(q)\n"
                         "  if q.qname:is('none.example') then return {ecs = false} end\n"
                         "  if q.qname:is('six.example') then return {ecs = '2001:db8::/32'} end\n"
                         "  return {ecs = 20}\n"
                         "end }");
        const struct {
                const char *name;
                unsigned ipv4, family, prefix;
        } cases[] = {{"none.example", 0, 0, 0}, {"six.example", 255, 2, 32}, {"a.example", 20, 1, 20}};
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                const struct ask ask = ASK(cases[i].name, A, .options = own, .options_len = sizeof own);
                uint8_t packet[1024], reply[1024];
                struct sardine_query q = {.sz = sizeof q, .packet = packet, .failure = 2};
                q.len = ask_packet(&ask, packet);
                struct got *got = look(&kit, ask);
                assert_int_equal(got->outcome, SARDINE_MISS);
                struct sardine_token token = got->token, none = {.len = 0};
                struct sardine_token *tokens[] = {&token, &none, NULL};
                for (size_t t = 0; t < 3; t++) {
                        struct sardine_answer a = {
                            .sz = sizeof a, .buf = reply, .cap = sizeof reply, .token = tokens[t]};
                        assert_int_equal(sardine_failed(kit.cache, &q, &a), SARDINE_MISS);
                        assert_int_equal(a.ecs_ipv4, cases[i].ipv4);
                        assert_int_equal(a.ecs_set, 1);
                        assert_int_equal(a.ecs_family, cases[i].family);
                        assert_int_equal(a.ecs_prefix, cases[i].prefix);
                }
        }
}

static void the_hook_may_want_shorter_prefixes(void **state)
{
        (void)state;
        const uint8_t cut[4] = {203, 0, 112};
        policy_set(&kit, "return { key = function(q) return {ecs = 20} end }");
        miss(ASK("a.example", A, .options = own, .options_len = sizeof own), "203.0.112.0/20");
        answer_for("a.example", 1, 20, cut);
        const uint8_t near[] = {0, 8, 0, 8, 0, 1, 32, 0, 203, 0, 127, 1},
                      far[] = {0, 8, 0, 8, 0, 1, 32, 0, 203, 0, 128, 1},
                      shorter[] = {0, 8, 0, 6, 0, 1, 16, 0, 203, 0};
        hit(ASK("a.example", A, .options = near, .options_len = sizeof near));
        miss(ASK("a.example", A, .options = far, .options_len = sizeof far), "203.0.128.0/20");
        miss(ASK("a.example", A, .options = shorter, .options_len = sizeof shorter), NULL);
}

static void tables_cut_what_clients_and_hooks_say(void **state)
{
        (void)state;
        policy_set(&kit,
                   "return { ecs = { ipv4 = 0, ipv6 = 0, zones = { ['cdn.example'] = { ipv4 = 24 } } },\n"
                   "  key = function(q)\n"
                   "    if q.qname:label(1) == 'hook' then return {ecs = '10.1.2.3/32'} end\n"
                   "  end }");
        miss(ASK("www.cdn.example", A, .options = own, .options_len = sizeof own), "203.0.113.0/24");
        miss(ASK("www.example", A, .options = own, .options_len = sizeof own), "");
        miss(ASK("hook.cdn.example", A, .client = here), "10.1.2.0/24");
        miss(ASK("hook.example", A, .client = here), "");
}

/* Of what zone and client say, the shorter prefix counts. */
static void prefixes_by_client_network(void **state)
{
        (void)state;
        policy_set(&kit, "return { ecs = { zones = { ['cdn.example'] = { ipv4 = 24, ipv6 = 56 } },\n"
                         "  clients = { ['192.0.2.0/24'] = { ipv4 = 16 }, ['192.0.2.7'] = false,\n"
                         "              ['198.51.100.0/24'] = { ipv4 = 28 } } } }");
        static const uint8_t neighbour[4] = {192, 0, 2, 9}, stranger[4] = {10, 0, 0, 1};
        static const struct {
                const char *name;
                const uint8_t *client;
                uint32_t ipv4, ipv6;
        } limits[] = {
            {"www.cdn.example", here, 0, 0},       {"www.cdn.example", neighbour, 16, 0},
            {"www.cdn.example", there, 24, 0},     {"www.example", there, 28, 0},
            {"www.cdn.example", stranger, 24, 56}, {"www.example", stranger, 255, 255},
        };
        for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
                struct got *got = look(&kit, ASK(limits[i].name, A, .client = limits[i].client));
                assert_int_equal(got->answer.ecs_ipv4, limits[i].ipv4);
                assert_int_equal(got->answer.ecs_ipv6, limits[i].ipv6);
        }
        policy_set(&kit, "return { ecs = false }");
        assert_int_equal(look(&kit, ASK("www.example", A, .client = here))->answer.ecs_ipv4, 0);
}

static void without_a_policy_nothing_is_exchanged(void **state)
{
        (void)state;
        miss(ASK("a.example", A, .options = own, .options_len = sizeof own), NULL);
        policy_set(&kit, "return { key = function(q) end }");
        miss(ASK("a.example", A, .options = own, .options_len = sizeof own), NULL);
        policy_set(&kit, "return { key = function(q) return {ecs = 'nonsense'} end }");
        struct got *got = look(&kit, ASK("a.example", A, .options = own, .options_len = sizeof own));
        assert_int_equal(got->answer.ecs_set, 0);
        assert_int_equal(policy_stats(&kit).errors[SARDINE_HOOK_KEY], 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(a_network_of_the_hook_takes_the_place_of_the_clients,
                                            policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(the_hook_may_want_answers_for_everybody, policy_setup,
                                            policy_teardown),
            cmocka_unit_test_setup_teardown(a_failure_says_what_the_next_upstream_is_told, policy_setup,
                                            policy_teardown),
            cmocka_unit_test_setup_teardown(the_hook_may_want_shorter_prefixes, policy_setup,
                                            policy_teardown),
            cmocka_unit_test_setup_teardown(tables_cut_what_clients_and_hooks_say, policy_setup,
                                            policy_teardown),
            cmocka_unit_test_setup_teardown(prefixes_by_client_network, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(without_a_policy_nothing_is_exchanged, policy_setup,
                                            policy_teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
