/* SPDX-License-Identifier: MIT
 * What policies give answers, in snapshots. */
#include "../snapshot/file_kit.h"
#include "policy_kit.h"

#include <stdlib.h>

#include "entry/header.h"
#include "wire/dns.h"

static struct kit old, new;

static int setup(void **state)
{
        (void)state;
        kit_init(&old);
        kit_init(&new);
        policy_open(&old);
        kit_open(&new);
        policy_set(&old, "return { store = function(q, r)\n"
                         " if q.qname:within('a.example') then return {class = 3, group = 'blue'} end\n"
                         " if q.qname:within('b.example') then return {class = 7} end\n"
                         " if q.qname:within('c.example') then return {group = 'red'} end\n"
                         " if q.qname:within('near.example') then return {class = 5, group = 'near'} end\n"
                         "end }");
        static const char *const names[] = {"a.example", "b.example", "c.example", "plain.example"};
        for (unsigned i = 0; i < 4; i++) {
                char record[64];
                snprintf(record, sizeof record, "%s 300 IN A 192.0.2.1", names[i]);
                fill(&old, ASK(names[i], DNS_A), REPLY(names[i], DNS_A, .records = record));
        }
        fill_exact(&old);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        kit_close(&old);
        kit_close(&new);
        policy_done();
        return 0;
}

static void b84_classes_and_groups_come_back(void **state)
{
        (void)state;
        save(&old, path_of("s"));
        file_fresh(path_of("s"));
        assert_int_equal(load(&new, path_of("s")).entries, 4 + 2);
        char *before = contents(old.cache), *after = contents(new.cache);
        assert_string_equal(before, after);
        assert_non_null(strstr(after, "class 3 group blue"));
        assert_non_null(strstr(after, "class 7 group  "));
        assert_non_null(strstr(after, "class 0 group red"));
        assert_non_null(strstr(after, "class 5 group near net 1 16/"));
        free(before);
        free(after);
}

static int64_t purge_group(struct kit *kit, const char *group)
{
        const struct sardine_selector selector = {
            .sz = sizeof selector, .group = group, .group_len = (uint32_t)strlen(group)};
        return sardine_expunge(kit->cache, &selector);
}

/* The journal has the purge, and takes no more from the file than the purge took from the cache. */
static void b70_a_purged_group_does_not_come_back(void **state)
{
        (void)state;
        save(&old, path_of("s"));
        file_fresh(path_of("s"));
        const struct sardine_snapshot_options options = {.sz = sizeof options, .path = path_of("s")};
        assert_int_equal(sardine_snapshot_keep(old.cache, &options), 0);
        assert_int_equal(purge_group(&old, "blue"), 1);
        assert_int_equal(purge_group(&old, "near"), 1);
        assert_int_equal(purge_group(&old, "re"), 0);
        assert_int_equal(load(&new, path_of("s")).purged, 2);
        char *before = contents(old.cache), *after = contents(new.cache);
        assert_string_equal(before, after);
        assert_non_null(strstr(after, "group red"));
        free(before);
        free(after);
        unlink(path_of("s.purges"));
}

/* The byte of a policy in all its values, and the length of a group in all: what is refused is refused, and
 * what is taken can be shown. */
static void b85_forged_classes_and_groups(void **state)
{
        (void)state;
        save(&old, path_of("s"));
        struct bytes file = file_read(path_of("s"));
        static const uint8_t blue[] = {3 | POLICY_BYTE_GROUP, 4, 'b', 'l', 'u', 'e'};
        uint8_t *at = memmem(file.p, file.len, blue, sizeof blue);
        assert_non_null(at);
        for (unsigned i = 0; i < 512; i++) {
                uint8_t *byte = at + i / 256, before = *byte, value = (uint8_t)i;
                *byte = value;
                file_seal(file.p, file.len);
                file_write(path_of("t"), file.p, file.len);
                kit_close(&new);
                kit_open(&new);
                struct sardine_snapshot_result result = {.sz = sizeof result};
                assert_int_equal(sardine_snapshot_load(new.cache, path_of("t"), &result), 0);
                free(contents(new.cache));
                if (value == before || (i < 256 && value < 16 && value & POLICY_BYTE_GROUP))
                        assert_int_equal(result.damaged, 0);
                else if (i < 256 ? value >= 16 : value == 0 || value > SARDINE_TAG_MAX)
                        assert_true(result.damaged > 0);
                *byte = before;
        }
        free(file.p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(b84_classes_and_groups_come_back, setup, teardown),
            cmocka_unit_test_setup_teardown(b70_a_purged_group_does_not_come_back, setup, teardown),
            cmocka_unit_test_setup_teardown(b85_forged_classes_and_groups, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
