/* SPDX-License-Identifier: MIT
 * The tables of a policy: each key does what its name says, the longest suffix and the smallest network win.
 */
#include "policy_kit.h"

#include "policy/subnets.h"
#include "policy/suffixes.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The life that an A record of 1000 seconds gets; 0: it is not kept. */
static uint32_t life(const char *name)
{
        char records[300];
        unsigned reason;
        snprintf(records, sizeof records, "%s 1000 IN A 192.0.2.1", name);
        look(&kit, ASK(name, 1));
        if (put(&kit, REPLY(name, 1, .ra = true, .records = records), &reason) == SARDINE_REFUSED)
                return 0;
        return look(&kit, ASK(name, 1))->answer.ttl;
}

static void ttl_limits_by_zone_type_and_rcode(void **state)
{
        (void)state;
        policy_set(
            &kit,
            "return { ttl = { at_most = 900, types = { AAAA = { at_most = 50 } },\n"
            "  rcodes = { NXDOMAIN = { at_most = 5 } },\n"
            "  zones = { ['example'] = { at_most = 300 }, ['b.example.'] = { at_least = 1, at_most = 700 },\n"
            "            ['long.example'] = { at_least = 800 } } } }");
        assert_int_equal(life("other.test"), 900);
        assert_int_equal(life("example"), 300);
        assert_int_equal(life("a.example"), 300);
        assert_int_equal(life("x.y.b.EXAMPLE"), 700);
        assert_int_equal(life("bb.example"), 300);
        fill(&kit, ASK("no.test", 1),
             REPLY("no.test", 1, .rcode = 3,
                   .records = "-- authority\ntest 300 IN SOA ns.test host.test 1 2 3 4 300"));
        assert_int_equal(look(&kit, ASK("no.test", 1))->answer.ttl, 5);
        fill(&kit, ASK("six.test", 28), REPLY("six.test", 28, .records = "six.test 300 IN AAAA 2001:db8::1"));
        assert_int_equal(look(&kit, ASK("six.test", 28))->answer.ttl, 50);
}

static void never_store_by_zone_and_type(void **state)
{
        (void)state;
        policy_set(&kit, "return { never_store = { zones = { 'secret.example' }, types = { 'TXT', 65 } } }");
        assert_int_equal(life("a.secret.example"), 0);
        assert_int_equal(life("notsecret.example"), 1000);
        unsigned reason;
        look(&kit, ASK("t.example", 16));
        assert_int_equal(put(&kit, REPLY("t.example", 16, .records = "t.example 300 IN TXT x"), &reason),
                         SARDINE_REFUSED);
        assert_int_equal(reason, SARDINE_REFUSED_POLICY);
}

static void b24_tags_by_client_network(void **state)
{
        (void)state;
        const uint8_t kid[4] = {10, 1, 2, 3}, aunt[4] = {10, 1, 2, 9}, other[4] = {10, 9, 9, 9};
        policy_set(&kit,
                   "return { tags = { clients = { ['10.1.0.0/16'] = 'kids', ['10.1.2.9'] = 'aunt' } } }");
        fill(&kit, ASK("a.example", 1, .client = kid),
             REPLY("a.example", 1, .records = "a.example 300 IN A 192.0.2.1"));
        assert_int_equal(look(&kit, ASK("a.example", 1, .client = kid))->outcome, SARDINE_HIT);
        assert_int_equal(look(&kit, ASK("a.example", 1, .client = aunt))->outcome, SARDINE_MISS);
        assert_int_equal(look(&kit, ASK("a.example", 1, .client = other))->outcome, SARDINE_MISS);
}

/* /24 for the CDN, nothing for the rest: an answer for a network serves everybody where the policy says so.
 */
static void ecs_prefix_lengths_by_zone(void **state)
{
        (void)state;
        const uint8_t ecs[] = {0, 8, 0, 8, 0, 1, 32, 0, 192, 0, 2, 1},
                      near[] = {0, 8, 0, 8, 0, 1, 32, 0, 192, 0, 2, 9},
                      far[] = {0, 8, 0, 8, 0, 1, 32, 0, 198, 51, 100, 1},
                      got[] = {0, 8, 0, 8, 0, 1, 32, 32, 192, 0, 2, 1};
        policy_set(&kit, "return { ecs = { ipv4 = 0, ipv6 = 0, zones = { ['cdn.example'] = { ipv4 = 24, ipv6 "
                         "= 56 } } } }");
        static const char *const names[] = {"a.cdn.example", "plain.example"};
        for (unsigned i = 0; i < 2; i++) {
                char records[64];
                snprintf(records, sizeof records, "%s 300 IN A 192.0.2.1", names[i]);
                struct got *first = look(&kit, ASK(names[i], 1, .options = ecs, .options_len = sizeof ecs));
                assert_int_equal(first->answer.ecs_ipv4, i == 0 ? 24 : 0);
                put(&kit,
                    REPLY(names[i], 1, .records = records, .edns = true, .opt = got, .opt_len = sizeof got),
                    NULL);
                assert_int_equal(
                    look(&kit, ASK(names[i], 1, .options = near, .options_len = sizeof near))->outcome,
                    SARDINE_HIT);
                assert_int_equal(
                    look(&kit, ASK(names[i], 1, .options = far, .options_len = sizeof far))->outcome,
                    i == 0 ? SARDINE_MISS : SARDINE_HIT);
        }
}

static void b39_stale_only_for_positives(void **state)
{
        (void)state;
        policy_set(&kit,
                   "return { stale_from = { negative = false, zones = { ['bank.example'] = false } } }");
        assert_int_equal(life("a.example"), 1000);
        assert_int_equal(life("bank.example"), 1000);
        fill(&kit, ASK("no.example", 1),
             REPLY("no.example", 1, .rcode = 3,
                   .records = "-- authority\nexample 900 IN SOA ns.example host.example 1 2 3 4 900"));
        kit_wait(&kit, 1100);
        assert_int_equal(look(&kit, ASK("a.example", 1, .flags = SARDINE_ALLOW_STALE))->outcome,
                         SARDINE_STALE);
        assert_int_equal(look(&kit, ASK("bank.example", 1, .flags = SARDINE_ALLOW_STALE))->outcome,
                         SARDINE_MISS);
        assert_int_equal(look(&kit, ASK("no.example", 1, .flags = SARDINE_ALLOW_STALE))->outcome,
                         SARDINE_MISS);
}

static int look_at(const uint8_t local[4], uint32_t port, struct sardine_token *token, uint8_t *packet,
                   size_t *len)
{
        static uint8_t reply[1024];
        *len = ask_packet(&ASK("www.example", 1), packet);
        struct sardine_query q = {.sz = sizeof q,
                                  .packet = packet,
                                  .len = *len,
                                  .local = local,
                                  .local_len = 4,
                                  .local_port = port};
        struct sardine_answer a = {.sz = sizeof a, .buf = reply, .cap = sizeof reply, .token = token};
        return sardine_lookup(kit.cache, &q, &a);
}

/* What is fetched for clients of one listener is not given to those of another. */
static void b24_tags_by_listener(void **state)
{
        (void)state;
        static const uint8_t a[4] = {192, 0, 2, 1}, b[4] = {192, 0, 2, 2};
        static const struct {
                const uint8_t *local;
                uint32_t port;
                int outcome;
        } asked[] = {
            {a, 53, SARDINE_MISS},   {a, 53, SARDINE_HIT},   {b, 53, SARDINE_MISS}, {b, 53, SARDINE_HIT},
            {b, 5300, SARDINE_MISS}, {a, 5300, SARDINE_HIT}, {a, 54, SARDINE_HIT}, /* as b, 53: no tag */
        };
        policy_set(&kit, "return { tags = { listeners = { ['192.0.2.1:53'] = 'x', [':5300'] = 'y' } } }");
        for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
                struct sardine_token token;
                uint8_t packet[1024];
                size_t len;
                assert_int_equal(look_at(asked[i].local, asked[i].port, &token, packet, &len),
                                 asked[i].outcome);
                if (asked[i].outcome == SARDINE_MISS)
                        assert_int_equal(
                            put_token(&kit, &token,
                                      REPLY("www.example", 1, .records = "www.example 300 IN A 192.0.2.9"),
                                      NULL),
                            SARDINE_STORED);
        }
}

/* The time is shown, and only what no machine takes for it fails. */
static void a_million_zones_load_in_seconds(void **state)
{
        (void)state;
        enum { ZONES = 1000000, BOUND = 100 };
        char list[] = "/tmp/sardine-list-XXXXXX", policy[128];
        int fd = mkstemp(list);
        FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
        assert_non_null(file);
        for (unsigned i = 0; i < ZONES; i++)
                fprintf(file, "z%u.example\n", i);
        assert_int_equal(fclose(file), 0);
        snprintf(policy, sizeof policy, "return { never_store = { zones = list '%s' } }", list);
        struct timespec start, end;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
        policy_set(&kit, policy);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        unlink(list);
        print_message("a million zones: %.1f s\n",
                      (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9);
        assert_true(end.tv_sec - start.tv_sec < BOUND);
        assert_int_equal(life("a.z0.example"), 0);
        assert_int_equal(life("z999999.example"), 0);
        assert_int_equal(life("z1000000.example"), 1000);
}

/* A few labels, each of one letter, some many times. */
static uint8_t any_name(uint8_t name[48])
{
        uint8_t len = 0;
        for (unsigned labels = (unsigned)rand() % 5; labels > 0; labels--) {
                uint8_t label = rand() % 3 ? 1 : 9;
                name[len++] = label;
                memset(name + len, 'a' + rand() % 4, label);
                len += label;
        }
        name[len++] = 0;
        return len;
}

/* Against a search through all of them. */
static void suffixes_like_a_plain_search(void **state)
{
        (void)state;
        enum { NAMES = 500, ASKED = 20000 };
        static uint8_t names[NAMES][48], lens[NAMES];
        unsigned found_some = 0;
        struct suffixes set;
        suffixes_init(&set, 7);
        srand(5);
        for (unsigned i = 0; i < NAMES; i++) {
                lens[i] = any_name(names[i]);
                *suffixes_put(&set, names[i], lens[i]) = 1;
        }
        for (unsigned i = 0; i < ASKED; i++) {
                uint8_t name[48], len = any_name(name);
                size_t best = 0;
                for (unsigned at = 0; best == 0 && at < len; at += name[at] + 1u)
                        for (unsigned j = 0; j < NAMES; j++)
                                if (lens[j] == len - at && memcmp(name + at, names[j], lens[j]) == 0)
                                        best = lens[j];
                int64_t item = suffixes_find(&set, name, len);
                size_t found = 0;
                if (item != SUFFIX_NONE)
                        suffixes_name(&set, (size_t)item, &found);
                assert_int_equal(found, best);
                found_some += best > 1;
        }
        assert_true(found_some > ASKED / 10 && found_some < ASKED);
        suffixes_fini(&set);
}

static void subnets_like_a_plain_search(void **state)
{
        (void)state;
        enum { NETS = 300 };
        static struct subnet nets[NETS];
        struct subnets set = {0};
        srand(6);
        for (uint32_t i = 0; i < NETS; i++) {
                char text[64];
                unsigned prefix = 8 + (unsigned)rand() % 25;
                uint32_t addr = ((uint32_t)(rand() & 0x0303) << 16 | (uint32_t)(rand() & 0x0303)) &
                                ~(uint32_t)0 << (32 - prefix);
                snprintf(text, sizeof text, "%u.%u.%u.%u/%u", addr >> 24, addr >> 16 & 255, addr >> 8 & 255,
                         addr & 255, prefix);
                assert_true(subnet_from_text(text, &nets[i]));
                assert_true(subnets_add(&set, &nets[i], 1 + nets[i].prefix));
        }
        assert_true(subnets_finish(&set));
        for (unsigned i = 0; i < 20000; i++) {
                uint8_t addr[4] = {rand() & 3, rand() & 3, rand() & 3, rand() & 3};
                uint32_t best = 0;
                for (uint32_t j = 0; j < NETS; j++)
                        if (subnet_has(&nets[j], addr, 4) && 1u + nets[j].prefix > best)
                                best = 1 + nets[j].prefix;
                assert_int_equal(subnets_find(&set, addr, 4), best);
        }
        subnets_fini(&set);
        struct subnet net;
        static const char *const bad[] = {"",       "/",        "1.2.3.4/33", "1.2.3.4/8",
                                          "::/129", "1.2.3.4/", "x",          "1.2.3.4/8x"};
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                assert_false(subnet_from_text(bad[i], &net));
        assert_true(subnet_from_text("::/0", &net) && subnet_from_text("0.0.0.0/0", &net));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(ttl_limits_by_zone_type_and_rcode, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(never_store_by_zone_and_type, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(b24_tags_by_client_network, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(ecs_prefix_lengths_by_zone, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(b39_stale_only_for_positives, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(b24_tags_by_listener, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(a_million_zones_load_in_seconds, policy_setup, policy_teardown),
            cmocka_unit_test(suffixes_like_a_plain_search),
            cmocka_unit_test(subnets_like_a_plain_search),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
