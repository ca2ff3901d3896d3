/* SPDX-License-Identifier: MIT
 * Lists of what must not be there any more. */
#include "../cache/kit.h"

#include <stdlib.h>

#include "wire/bytes.h"

static int setup(void **state)
{
        (void)state;
        kit_init(&kit);
        kit.options.max_entries = 20000;
        kit_open(&kit);
        return 0;
}

static void keep(const char *name, uint16_t type, const char *records)
{
        fill(&kit, ASK(name, type), REPLY(name, type, .ra = true, .records = records));
}

static bool there(const char *name, uint16_t type)
{
        return look(&kit, ASK(name, type))->outcome == SARDINE_HIT;
}

static int64_t block(const char *list)
{
        return sardine_expunge_list(kit.cache, list, strlen(list));
}

static void b90_what_a_list_names_goes_by_name_and_by_content(void **state)
{
        (void)state;
        keep("bad.example", 1, "bad.example 300 IN A 192.0.2.1");
        keep("www.bad.example", 16, "www.bad.example 300 IN TXT x");
        keep("notbad.example", 1, "notbad.example 300 IN A 192.0.2.1");
        keep("in-net.example", 1, "in-net.example 300 IN A 192.0.2.1\nin-net.example 300 IN A 203.0.113.77");
        keep("six.example", 28, "six.example 300 IN AAAA 2001:db8:bad::1");
        keep("alias.example", 1,
             "alias.example 300 IN CNAME X.Bad.example\nX.Bad.example 300 IN A 192.0.2.1");
        keep("glue.example", 2,
             "glue.example 300 IN NS ns.other.\n-- additional\nns.other. 300 IN A 203.0.113.1");
        keep("good.example", 1, "good.example 300 IN A 203.0.114.1");
        assert_int_equal(block("# what is bad\n\n BAD.example. \r\n203.0.113.0/24\t# net\n2001:db8:bad::1"),
                         5);
        assert_false(there("bad.example", 1));
        assert_false(there("www.bad.example", 16));
        assert_false(there("in-net.example", 1));
        assert_false(there("six.example", 28));
        assert_false(there("alias.example", 1));
        assert_true(there("notbad.example", 1));
        assert_true(there("good.example", 1));
        assert_true(there("glue.example", 2)); /* not what it answers */
}

static void b90_answers_for_networks_too(void **state)
{
        (void)state;
        const uint8_t ecs[] = {0, 8, 0, 7, 0, 1, 24, 0, 192, 0, 2},
                      scoped[] = {0, 8, 0, 7, 0, 1, 24, 24, 192, 0, 2};
        const struct ask ask = ASK("cdn.example", 1, .options = ecs, .options_len = sizeof ecs);
        fill(&kit, ask,
             REPLY("cdn.example", 1, .ra = true, .records = "cdn.example 300 IN A 203.0.113.5", .edns = true,
                   .opt = scoped, .opt_len = sizeof scoped));
        assert_int_equal(look(&kit, ask)->outcome, SARDINE_HIT);
        assert_int_equal(block("203.0.113.5"), 1);
        assert_int_equal(look(&kit, ask)->outcome, SARDINE_MISS);
}

static void b90_a_long_list_in_one_pass(void **state)
{
        (void)state;
        char name[64], records[100];
        for (unsigned i = 0; i < 12000; i++) {
                snprintf(name, sizeof name, "h.z%u.example", i);
                snprintf(records, sizeof records, "%s 300 IN A 192.0.2.1", name);
                keep(name, 1, records);
        }
        char *list = malloc(10000 * 24), *end = list;
        for (unsigned i = 0; i < 10000; i++)
                end += sprintf(end, "z%u.example\n", i);
        assert_int_equal(sardine_expunge_list(kit.cache, list, (size_t)(end - list)), 10000);
        free(list);
        assert_false(there("h.z9999.example", 1));
        assert_true(there("h.z10000.example", 1));
}

static void b90_what_is_in_flight_does_not_come_back(void **state)
{
        (void)state;
        unsigned reason;
        look(&kit, ASK("bad.example", 1));
        assert_int_equal(block("bad.example"), 0);
        assert_int_equal(
            put(&kit, REPLY("bad.example", 1, .records = "bad.example 300 IN A 192.0.2.1"), &reason),
            SARDINE_REFUSED);
        assert_int_equal(reason, SARDINE_REFUSED_PURGED);
}

static void a_bad_line_removes_nothing(void **state)
{
        (void)state;
        keep("bad.example", 1, "bad.example 300 IN A 192.0.2.1");
        assert_int_equal(block("bad.example\nnot a name\n"), -EINVAL);
        assert_int_equal(block("bad.example\na..b\n"), -EINVAL);
        assert_true(there("bad.example", 1));
        assert_int_equal(sardine_expunge_list(kit.cache, NULL, 0), 0);
        assert_true(there("bad.example", 1));
}

/* Every option alone has the effect that its name says, and reads back as what is in effect. */
static void b91_effective_options_read_back(void **state)
{
        (void)state;
        static const struct {
                size_t at;
                uint32_t value, otherwise;
        } options[] = {
#define OPTION(name, value, otherwise) {offsetof(struct sardine_options, name), value, otherwise}
            OPTION(max_ttl, 100, 86400),  OPTION(min_ttl, 5, 0),          OPTION(max_negative_ttl, 7, 3600),
            OPTION(failure_ttl, 9, 60),   OPTION(truncated_ttl, 3, 0),    OPTION(stale_ttl, 11, 30),
            OPTION(stale_window, 99, 0),  OPTION(max_networks, 12, 4096), OPTION(max_entry_size, 600, 65535),
            OPTION(stale_backoff, 4, 30),
#undef OPTION
        };
        const size_t n = sizeof options / sizeof options[0];
        for (size_t i = 0; i < n; i++) {
                struct sardine_options in, out = {.sz = sizeof out};
                sardine_options_init(&in, sizeof in);
                in.max_entries = 1000;
                memcpy((char *)&in + options[i].at, &options[i].value, sizeof options[i].value);
                sardine_cache *cache;
                assert_int_equal(sardine_create(&in, &cache), 0);
                assert_int_equal(sardine_options_get(cache, &out), 0);
                for (size_t j = 0; j < n; j++) {
                        uint32_t is;
                        memcpy(&is, (char *)&out + options[j].at, sizeof is);
                        assert_int_equal(is, j == i ? options[j].value : options[j].otherwise);
                }
                assert_int_equal(out.max_entries, 1000);
                assert_int_equal(out.max_bytes, 1 << 20); /* derived */
                assert_int_equal(out.udp_payload_size, 1232);
                sardine_destroy(cache);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(b90_what_a_list_names_goes_by_name_and_by_content, setup,
                                            kit_teardown),
            cmocka_unit_test_setup_teardown(b90_answers_for_networks_too, setup, kit_teardown),
            cmocka_unit_test_setup_teardown(b90_a_long_list_in_one_pass, setup, kit_teardown),
            cmocka_unit_test_setup_teardown(b90_what_is_in_flight_does_not_come_back, setup, kit_teardown),
            cmocka_unit_test_setup_teardown(a_bad_line_removes_nothing, setup, kit_teardown),
            cmocka_unit_test(b91_effective_options_read_back),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
