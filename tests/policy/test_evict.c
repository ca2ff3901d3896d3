/* SPDX-License-Identifier: MIT
 * What leaves a full cache first, as a policy says: weights of classes, shares, what is always kept, and the
 * evict hook. Each test puts several times of what the cache holds, in equal parts of some zones, and counts
 * what is left of each. */
#include "policy_kit.h"

#include <stdio.h>

/* Whose limit counts. About as many of our answers fit in the one as in the other. */
enum limit { BY_BYTES, BY_ENTRIES };
enum { HOLDS = 1500 };

static void open_cache(enum limit limit)
{
        kit_init(&kit);
        kit.options.max_entries = limit == BY_ENTRIES ? HOLDS : 0;
        kit.options.max_bytes = limit == BY_ENTRIES ? 2 << 20 : 512 << 10;
        policy_open(&kit);
}

/* About 300 bytes, so that not so many are needed. */
static const char filling[] =
    "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstu"
    "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstu"
    "0123456789abcdefghijklmnopqrstuvwxyz0123456789";

enum kind { POSITIVE, NEGATIVE };

/* n1.zone, and ask for it again so many times. */
static void add(const char *zone, unsigned n, enum kind kind, unsigned again)
{
        enum { TXT = 16 };
        char name[64], records[600];
        snprintf(name, sizeof name, "n%u.%s", n, zone);
        if (kind == POSITIVE)
                snprintf(records, sizeof records, "%s 1000 IN TXT \"%s\"", name, filling);
        else /* the same size, but in a name */
                snprintf(records, sizeof records,
                         "-- authority\nexample 1000 IN SOA %.60s.%.60s.%.60s.%.49s host 1 2 3 4 1000",
                         filling, filling, filling, filling);
        fill(&kit, ASK(name, TXT),
             REPLY(name, TXT, .ra = true, .rcode = kind == NEGATIVE ? LDNS_RCODE_NXDOMAIN : 0,
                   .records = records));
        while (again-- > 0)
                assert_int_equal(look(&kit, ASK(name, TXT))->outcome, SARDINE_HIT);
}

struct left {
        unsigned entries;
        uint64_t bytes;
};

static int count(void *ctx, const struct sardine_entry_view *entry)
{
        struct left *left = ctx;
        left->entries++;
        left->bytes += entry->bytes;
        return 0;
}

/* What is left at and below this name. */
static struct left left_of(const char *zone)
{
        struct left left = {0, 0};
        uint8_t name[255];
        struct sardine_selector sel = {.sz = sizeof sel, .name = name, .below = 1};
        int len = sardine_name_from_text(zone, name);
        assert_true(len > 0);
        sel.name_len = (uint32_t)len;
        sardine_walk(kit.cache, &sel, count, &left);
        return left;
}

/* Of all that is there, in percent of the bytes. */
static unsigned percent(const char *zone)
{
        return (unsigned)(left_of(zone).bytes * 100 / left_of(".").bytes);
}

/* Numbers go on from one call to the next. */
static void flood(const char *const zones[], unsigned n_zones, unsigned n, enum kind kind, unsigned again)
{
        static unsigned next;
        for (unsigned i = 0; i < n; i++, next++)
                add(zones[i % n_zones], next, kind, again);
}

/* a : b is at least `least` : 10. */
static void assert_ratio(const char *a, const char *b, unsigned least)
{
        unsigned of_a = left_of(a).entries, of_b = left_of(b).entries;
        if (of_a * 10 < of_b * least)
                fail_msg("%s: %u entries, %s: %u", a, of_a, b, of_b);
}

static int class_of(void *ctx, const struct sardine_entry_view *entry)
{
        *(uint32_t *)ctx = entry->eviction_class;
        return 1;
}

/* The longest zone says it; what no zone says, the type does. */
static void classes_by_zone_and_type(void **state)
{
        (void)state;
        static const struct {
                const char *name;
                uint16_t type;
                const char *records;
                uint32_t class;
        } answers[] = {
            {"a.example", 1, "a.example 300 IN A 192.0.2.1", 0},
            {"a.example", 28, "a.example 300 IN AAAA 2001:db8::1", 7},
            {"a.example", 15, "a.example 300 IN MX 1 b.example", 5},
            {"x.keep.example", 1, "x.keep.example 300 IN A 192.0.2.1", 7},
            {"x.keep.example", 15, "x.keep.example 300 IN MX 1 b.example", 7},
            {"not.keep.example", 1, "not.keep.example 300 IN A 192.0.2.1", 2},
        };
        open_cache(BY_BYTES);
        policy_set(&kit,
                   "return { always_keep = { zones = { 'keep.example' }, types = { 'AAAA' } },\n"
                   "  classes = { [5] = { types = { 'MX' } }, [2] = { zones = { 'not.keep.example' } } } }");
        for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
                fill(&kit, ASK(answers[i].name, answers[i].type),
                     REPLY(answers[i].name, answers[i].type, .records = answers[i].records));
                uint8_t name[255];
                uint32_t class = 99;
                struct sardine_selector sel = {.sz = sizeof sel, .name = name, .qtype = answers[i].type};
                sel.name_len = (uint32_t)sardine_name_from_text(answers[i].name, name);
                assert_int_equal(sardine_walk(kit.cache, &sel, class_of, &class), 1);
                assert_int_equal(class, answers[i].class);
        }
}

static const char *const zones[] = {"a.example", "b.example", "c.example", "d.example"};

static void weights_say_how_long_answers_stay(void **state)
{
        (void)state;
        for (enum limit limit = BY_BYTES; limit <= BY_ENTRIES; limit++)
                for (unsigned again = 0; again < 2; again++) {
                        open_cache(limit);
                        policy_set(&kit, "return { classes = {\n"
                                         "  [1] = { weight = 1, zones = { 'a.example' } },\n"
                                         "  [2] = { weight = 2, zones = { 'b.example' } },\n"
                                         "  [3] = { weight = 4, zones = { 'c.example' } },\n"
                                         "  [4] = { weight = 8, zones = { 'd.example' } } } }");
                        flood(zones, 4, 5 * HOLDS, POSITIVE, again);
                        print_message("%s, asked %u times: %u %u %u %u\n", limit ? "entries" : "bytes",
                                      again + 1, left_of(zones[0]).entries, left_of(zones[1]).entries,
                                      left_of(zones[2]).entries, left_of(zones[3]).entries);
                        assert_ratio("b.example", "a.example", 13);
                        assert_ratio("c.example", "b.example", 13);
                        assert_ratio("d.example", "c.example", 12);
                        assert_ratio("d.example", "a.example", 35);
                        policy_teardown(NULL);
                }
        open_cache(BY_BYTES); /* for the teardown */
}

/* However often it was asked for. */
static void weight_0_goes_first(void **state)
{
        (void)state;
        for (enum limit limit = BY_BYTES; limit <= BY_ENTRIES; limit++) {
                open_cache(limit);
                policy_set(&kit, "return { classes = { [1] = { weight = 0, zones = { 'a.example' } } } }");
                flood(zones, 2, 5 * HOLDS, POSITIVE, 3);
                print_message("%u %u\n", left_of("a.example").entries, left_of("b.example").entries);
                assert_ratio("b.example", "a.example", 50);
                if (limit == BY_BYTES)
                        policy_teardown(NULL);
        }
}

static void a_reload_changes_the_weights(void **state)
{
        (void)state;
        open_cache(BY_BYTES);
        policy_set(&kit, "return { classes = { [1] = { weight = 6, zones = { 'a.example' } },\n"
                         "  [2] = { zones = { 'b.example' } } } }");
        flood(zones, 2, 4 * HOLDS, POSITIVE, 0);
        assert_ratio("a.example", "b.example", 30);
        policy_set(&kit, "return { classes = { [1] = { zones = { 'a.example' } },\n"
                         "  [2] = { weight = 6, zones = { 'b.example' } } } }");
        flood(zones, 2, 4 * HOLDS, POSITIVE, 0);
        assert_ratio("b.example", "a.example", 30);
        /* Without a policy nothing of it is left. */
        assert_int_equal(sardine_policy_load(kit.cache, NULL, 0, NULL, 0), 0);
        flood(zones, 2, 4 * HOLDS, POSITIVE, 0);
        assert_ratio("b.example", "a.example", 8);
        assert_ratio("a.example", "b.example", 8);
}

/* By the class that the store hook gives. */
static void classes_of_the_store_hook_have_their_weights(void **state)
{
        (void)state;
        open_cache(BY_BYTES);
        policy_set(&kit,
                   "return { classes = { [3] = { weight = 6 } },\n"
                   "  store = function(q, r) if q.qname:within('a.example') then return {class = 3} end "
                   "end }");
        flood(zones, 2, 5 * HOLDS, POSITIVE, 1);
        assert_ratio("a.example", "b.example", 30);
}

/* Positives and negatives in equal numbers, all asked for again: only the share tells them apart. */
static void b39_a_policys_share_of_negatives(void **state)
{
        (void)state;
        static const char *const negatives[] = {"no.example"}, *const positives[] = {"yes.example"};
        static const struct {
                const char *policy; /* NULL: none */
                unsigned least, most;
        } shares[] = {
            {"return { shares = { negative = 5 } }", 1, 8},
            {"return { shares = { negative = 60 } }", 40, 63},
            {NULL, 15, 28},
            {"return { shares = { negative = 5 } }", 1, 8},
        };
        for (enum limit limit = BY_BYTES; limit <= BY_ENTRIES; limit++) {
                open_cache(limit);
                for (unsigned i = 0; i < sizeof shares / sizeof shares[0]; i++) {
                        if (shares[i].policy)
                                policy_set(&kit, shares[i].policy);
                        else
                                sardine_policy_load(kit.cache, NULL, 0, NULL, 0);
                        for (unsigned n = 0; n < 3 * HOLDS; n++) {
                                flood(negatives, 1, 1, NEGATIVE, 1);
                                flood(positives, 1, 1, POSITIVE, 1);
                        }
                        unsigned is = percent("no.example");
                        print_message("%s: %u %%\n", shares[i].policy ? shares[i].policy : "none", is);
                        if (is < shares[i].least || is > shares[i].most)
                                fail_msg("%u percent", is);
                }
                if (limit == BY_BYTES)
                        policy_teardown(NULL);
        }
}

/* What was asked for again is as much as fits; then comes a flood of what nobody asks for again. */
static void a_policys_share_of_one_hit_answers(void **state)
{
        (void)state;
        static const struct {
                const char *policy;
                unsigned least, most;
        } shares[] = {
            {"return { shares = { one_hit = 5 } }", 1, 9},
            {"return { shares = { one_hit = 50 } }", 35, 54},
            {"return { shares = { one_hit = 5 } }", 1, 9},
        };
        open_cache(BY_BYTES);
        for (unsigned i = 0; i < sizeof shares / sizeof shares[0]; i++) {
                policy_set(&kit, shares[i].policy);
                flood(&zones[0], 1, 2 * HOLDS, POSITIVE, 3);
                flood(&zones[1], 1, 3 * HOLDS, POSITIVE, 0);
                unsigned is = percent("b.example");
                print_message("%s: %u %%\n", shares[i].policy, is);
                if (is < shares[i].least || is > shares[i].most)
                        fail_msg("%u percent", is);
        }
}

/* All that proved useful expires; then comes a flood of fresh answers that nobody asks for again. */
static void b39_a_policys_share_of_stale_answers(void **state)
{
        (void)state;
        static const struct {
                const char *policy;
                unsigned least, most;
        } shares[] = {
            {"return { shares = { stale = 10 } }", 3, 13},
            {"return { shares = { stale = 60 } }", 40, 63},
        };
        for (unsigned i = 0; i < 2; i++) {
                kit_init(&kit);
                kit.options.max_entries = 0;
                kit.options.max_bytes = 512 << 10;
                kit.options.stale_window = 86400;
                policy_open(&kit);
                policy_set(&kit, shares[i].policy);
                flood(&zones[0], 1, 2 * HOLDS, POSITIVE, 3);
                kit_wait(&kit, 2000);
                flood(&zones[1], 1, 3 * HOLDS, POSITIVE, 0);
                unsigned is = percent("a.example");
                print_message("%s: %u %%\n", shares[i].policy, is);
                if (is < shares[i].least || is > shares[i].most)
                        fail_msg("%u percent", is);
                if (i == 0)
                        policy_teardown(NULL);
        }
}

static void what_is_always_kept_survives_a_flood(void **state)
{
        (void)state;
        for (enum limit limit = BY_BYTES; limit <= BY_ENTRIES; limit++) {
                open_cache(limit);
                policy_set(&kit, "return { always_keep = { zones = { 'keep.example' } } }");
                for (unsigned n = 0; n < HOLDS / 4; n++)
                        add("keep.example", n, POSITIVE, 0);
                flood(zones, 4, 5 * HOLDS, POSITIVE, 2);
                assert_int_equal(left_of("keep.example").entries, HOLDS / 4);
                /* More than half of the cache is not kept for them. */
                for (unsigned n = HOLDS / 4; n < 4 * HOLDS; n++)
                        add("keep.example", n, POSITIVE, 0);
                flood(zones, 4, HOLDS, POSITIVE, 2);
                print_message("%u %%\n", percent("keep.example"));
                assert_in_range(percent("keep.example"), 40, 60);
                if (limit == BY_BYTES)
                        policy_teardown(NULL);
        }
}

static void the_evict_hooks_answers_count(void **state)
{
        (void)state;
        enum { KEPT = HOLDS / 5 };
        for (enum limit limit = BY_BYTES; limit <= BY_ENTRIES; limit++) {
                open_cache(limit);
                policy_set(&kit, "local verdicts = { a = 'drop', c = 4, d = 'keep' }\n"
                                 "return { evict = function(e)\n"
                                 "  assert(e.qtype == types.TXT and e.ttl <= 1000 and e.class == 0)\n"
                                 "  return verdicts[e.qname:label(-2)]\n"
                                 "end }");
                for (unsigned n = 0; n < KEPT; n++) {
                        add("d.example", n, POSITIVE, 0);
                        flood(zones, 3, 5 * HOLDS / KEPT, POSITIVE, 1);
                }
                print_message("%u %u %u %u\n", left_of(zones[0]).entries, left_of(zones[1]).entries,
                              left_of(zones[2]).entries, left_of(zones[3]).entries);
                struct sardine_policy_stats stats = policy_stats(&kit);
                assert_true(stats.calls[SARDINE_HOOK_EVICT] > 0);
                if (stats.errors[SARDINE_HOOK_EVICT])
                        fail_msg("%s", policy_line);
                assert_ratio("b.example", "a.example", 20);
                assert_ratio("c.example", "b.example", 20);
                assert_true(left_of("d.example").entries >= KEPT * 97 / 100);
                if (limit == BY_BYTES)
                        policy_teardown(NULL);
        }
}

/* The hook comes before the class. */
static void the_evict_hook_overrules_the_tables(void **state)
{
        (void)state;
        open_cache(BY_BYTES);
        policy_set(&kit, "return { classes = { [1] = { weight = 20, zones = { 'a.example' } } },\n"
                         "  evict = function(e) if e.class == 1 then return 1 end return 6 end }");
        flood(zones, 2, 5 * HOLDS, POSITIVE, 0);
        assert_ratio("b.example", "a.example", 30);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_teardown(classes_by_zone_and_type, policy_teardown),
            cmocka_unit_test_teardown(weights_say_how_long_answers_stay, policy_teardown),
            cmocka_unit_test_teardown(weight_0_goes_first, policy_teardown),
            cmocka_unit_test_teardown(a_reload_changes_the_weights, policy_teardown),
            cmocka_unit_test_teardown(classes_of_the_store_hook_have_their_weights, policy_teardown),
            cmocka_unit_test_teardown(b39_a_policys_share_of_negatives, policy_teardown),
            cmocka_unit_test_teardown(a_policys_share_of_one_hit_answers, policy_teardown),
            cmocka_unit_test_teardown(b39_a_policys_share_of_stale_answers, policy_teardown),
            cmocka_unit_test_teardown(what_is_always_kept_survives_a_flood, policy_teardown),
            cmocka_unit_test_teardown(the_evict_hooks_answers_count, policy_teardown),
            cmocka_unit_test_teardown(the_evict_hook_overrules_the_tables, policy_teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
