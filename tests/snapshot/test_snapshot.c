/* SPDX-License-Identifier: MIT
 * Save, load, and what time, purges and other caches have to do with it (B35, B70, B84-B86). */
#include "file_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/dns.h"

static struct kit old, new;

static int setup(void **state)
{
        (void)state;
        kit_init(&old);
        kit_init(&new);
        new.clock_ms = 77000000; /* another process, another origin */
        kit_open(&old);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        kit_close(&old);
        if (new.cache)
                kit_close(&new);
        return 0;
}

static void assert_same_contents(void)
{
        char *before = contents(old.cache), *after = contents(new.cache);
        assert_string_equal(before, after);
        assert_true(strlen(before) > 0);
        free(before);
        free(after);
}

static const struct ask A = {.name = "a.example.com", .type = DNS_A, .rd = true};

static void b84_a_restart_keeps_everything(void **state)
{
        (void)state;
        fill_variety(&old, 300);
        for (int i = 0; i < 3; i++)
                assert_int_equal(look(&old, A)->outcome, SARDINE_HIT);
        struct sardine_snapshot_result saved = save(&old, path_of("s"));
        file_fresh(path_of("s"));
        kit_open(&new);
        struct sardine_snapshot_result loaded = load(&new, path_of("s"));
        assert_int_equal(loaded.entries, 308 + 1); /* the list of networks is an entry, too */
        assert_int_equal(loaded.expired + loaded.present + loaded.purged + loaded.refused + loaded.damaged,
                         0);
        assert_int_equal(loaded.bytes, saved.bytes);
        assert_null(loaded.why);
        assert_same_contents();
        /* and it is found */
        assert_int_equal(look(&new, A)->outcome, SARDINE_HIT);
        assert_int_equal(kit_stats(&new).misses, 0);
}

static void b84_what_is_for_exactly_one_prefix_length_stays_so(void **state)
{
        (void)state;
        fill_exact(&old);
        assert_int_equal(ask_near(&old, 16), SARDINE_HIT);
        assert_int_equal(ask_near(&old, 24), SARDINE_MISS);
        save(&old, path_of("s"));
        file_fresh(path_of("s"));
        kit_open(&new);
        assert_int_equal(load(&new, path_of("s")).entries, 1 + 1);
        assert_same_contents();
        assert_int_equal(ask_near(&new, 16), SARDINE_HIT);
        assert_int_equal(ask_near(&new, 24), SARDINE_MISS);
}

static void b84_on_disk_it_is_no_larger_than_in_memory(void **state)
{
        (void)state;
        fill_variety(&old, 300);
        struct sardine_stats stats = kit_stats(&old);
        struct sardine_snapshot_result saved = save(&old, path_of("s"));
        assert_true(saved.bytes <= stats.entry_bytes + stats.entries * 8 + 512);
}

static void b84_ages_continue_while_down(void **state)
{
        (void)state;
        fill_variety(&old, 10);
        save(&old, path_of("s"));
        file_age(path_of("s"), 100);
        kit_open(&new);
        struct sardine_snapshot_result loaded = load(&new, path_of("s"));
        assert_in_range(loaded.age, 100, 110);
        assert_true(loaded.expired >= 3); /* 60 and 90 seconds */
        struct got *got = look(&new, A);
        assert_int_equal(got->outcome, SARDINE_HIT);
        assert_in_range(first_ttl(got), 190, 200);
        assert_int_equal(look(&new, ASK("a.example.com", DNS_A, .rd = true, .cd = true))->outcome,
                         SARDINE_MISS);
}

static void b84_expired_comes_back_only_where_stale_is_wanted(void **state)
{
        (void)state;
        kit_close(&old);
        old.options.stale_window = 1000;
        kit_open(&old);
        fill(&old, A, REPLY("a.example.com", DNS_A, .records = "a.example.com 300 IN A 192.0.2.1"));
        kit_wait(&old, 400);
        assert_int_equal(save(&old, path_of("s")).entries, 1);
        kit_open(&new);
        assert_int_equal(load(&new, path_of("s")).expired, 1);
        assert_int_equal(kit_stats(&new).entries, 0);
        kit_close(&new);

        new.options.stale_window = 1000;
        kit_open(&new);
        assert_int_equal(load(&new, path_of("s")).entries, 1);
        struct ask stale = A;
        stale.flags = SARDINE_ALLOW_STALE;
        struct got *got = look(&new, stale);
        assert_int_equal(got->outcome, SARDINE_STALE);
        assert_in_range(got->answer.age, 100, 110);
        kit_close(&new);
        /* as good as new once more 900 seconds have passed: beyond the window */
        file_age(path_of("s"), 950);
        kit_open(&new);
        assert_int_equal(load(&new, path_of("s")).expired, 1);
}

static void b84_an_expired_one_is_not_written_without_stale(void **state)
{
        (void)state;
        fill(&old, A, REPLY("a.example.com", DNS_A, .records = "a.example.com 300 IN A 192.0.2.1"));
        kit_wait(&old, 300);
        assert_int_equal(save(&old, path_of("s")).entries, 0);
}

static void to_the_future(struct snapshot_header *header)
{
        header->wall += 100000;
        header->boot_id[0] ^= 1;
}

static void only_the_wall_clock(struct snapshot_header *header)
{
        header->wall += 100000;
        header->boot -= 50;
}

static void long_ago(struct snapshot_header *header)
{
        header->wall = 0;
        header->boot_id[0] ^= 1;
}

static void b35_a_clock_that_was_set_back_is_refused(void **state)
{
        (void)state;
        fill_variety(&old, 3);
        save(&old, path_of("s"));
        file_edit(path_of("s"), to_the_future);
        kit_open(&new);
        struct sardine_snapshot_result result = {.sz = sizeof result};
        assert_int_equal(sardine_snapshot_load(new.cache, path_of("s"), &result), SARDINE_ERR_SNAPSHOT);
        assert_non_null(strstr(result.why, "clock"));
        assert_int_equal(kit_stats(&new).entries, 0);
}

static void b35_within_one_boot_the_wall_clock_does_not_matter(void **state)
{
        (void)state;
        fill_variety(&old, 3);
        save(&old, path_of("s"));
        file_edit(path_of("s"), only_the_wall_clock);
        kit_open(&new);
        struct sardine_snapshot_result loaded = load(&new, path_of("s"));
        assert_in_range(loaded.age, 50, 60);
        assert_in_range(first_ttl(look(&new, A)), 240, 250);
}

static void b35_a_clock_far_ahead_expires_all(void **state)
{
        (void)state;
        kit_close(&old);
        old.options.stale_window = UINT32_MAX;
        kit_open(&old);
        fill_variety(&old, 3);
        save(&old, path_of("s"));
        file_edit(path_of("s"), long_ago);
        new.options.stale_window = UINT32_MAX;
        kit_open(&new);
        assert_int_equal(load(&new, path_of("s")).entries, 0);
}

static void b86_what_is_there_already_stays(void **state)
{
        (void)state;
        fill_variety(&old, 5);
        save(&old, path_of("s"));
        kit_open(&new);
        fill(&new, A, REPLY("a.example.com", DNS_A, .records = "a.example.com 50 IN A 203.0.113.7"));
        struct sardine_snapshot_result loaded = load(&new, path_of("s"));
        assert_int_equal(loaded.present, 1);
        struct got *got = look(&new, A);
        assert_true(has_text(got, "203.0.113.7"));
        /* a second time all of it is there */
        loaded = load(&new, path_of("s"));
        assert_int_equal(loaded.entries, 0);
        assert_int_equal(loaded.present, 8 + 1 + 5);
}

static void b84_nothing_is_evicted_for_it(void **state)
{
        (void)state;
        fill_variety(&old, 0);
        save(&old, path_of("s"));
        new.options.max_entries = 1;
        kit_open(&new);
        fill(&new, ASK("fresh.example", DNS_A),
             REPLY("fresh.example", DNS_A, .records = "fresh.example 50 IN A 203.0.113.7"));
        /* However many there are. */
        for (unsigned n = 0; n < 40; n++) {
                char name[32], record[64];
                snprintf(name, sizeof name, "n%u.example", n);
                snprintf(record, sizeof record, "%s 300 IN A 192.0.2.1", name);
                fill(&old, ASK(name, DNS_A), REPLY(name, DNS_A, .records = record));
                save(&old, path_of("s"));
                struct sardine_snapshot_result loaded = load(&new, path_of("s"));
                assert_non_null(loaded.why);
                assert_int_equal(loaded.entries, 0);
        }
        assert_int_equal(kit_stats(&new).evicted, 0);
        assert_int_equal(look(&new, ASK("fresh.example", DNS_A))->outcome, SARDINE_HIT);
}

static void b84_other_options_cap_what_comes_back(void **state)
{
        (void)state;
        fill_variety(&old, 3);
        save(&old, path_of("s"));
        new.options.max_ttl = 40;
        new.options.max_negative_ttl = 20;
        new.options.failure_ttl = 0;
        kit_open(&new);
        load(&new, path_of("s"));
        struct got *got = look(&new, A);
        assert_int_equal(got->outcome, SARDINE_HIT);
        assert_in_range(got->answer.ttl, 30, 40);
        got = look(&new, ASK("none.example", DNS_MX, .rd = true));
        assert_int_equal(got->outcome, SARDINE_HIT);
        assert_in_range(got->answer.ttl, 10, 20);
        assert_int_equal(look(&new, ASK("broken.example", DNS_A, .rd = true))->outcome, SARDINE_MISS);
}

static void b84_keys_made_otherwise_are_refused(void **state)
{
        (void)state;
        static const uint16_t split[] = {65001};
        struct sardine_snapshot_result result = {.sz = sizeof result};
        fill_variety(&old, 3);
        save(&old, path_of("s"));
        new.options.split_options = split;
        new.options.n_split_options = 1;
        kit_open(&new);
        assert_int_equal(sardine_snapshot_load(new.cache, path_of("s"), &result), SARDINE_ERR_SNAPSHOT);
        assert_non_null(strstr(result.why, "split_options"));
        kit_close(&new);
        new.options.n_split_options = 0;
        new.options.dont_age = 1;
        kit_open(&new);
        assert_int_equal(sardine_snapshot_load(new.cache, path_of("s"), &result), SARDINE_ERR_SNAPSHOT);
        assert_non_null(strstr(result.why, "dont_age"));
}

static void b84_ttls_that_do_not_age_come_back_as_they_were(void **state)
{
        (void)state;
        kit_close(&old);
        old.options.dont_age = new.options.dont_age = 1;
        kit_open(&old);
        fill_variety(&old, 3);
        save(&old, path_of("s"));
        file_age(path_of("s"), 20);
        kit_open(&new);
        load(&new, path_of("s"));
        assert_int_equal(first_ttl(look(&new, A)), 300);
}

static void api_says_what_is_wrong(void **state)
{
        (void)state;
        struct sardine_snapshot_result result = {.sz = sizeof result};
        assert_int_equal(sardine_snapshot_load(old.cache, path_of("nothing"), &result), -ENOENT);
        assert_int_equal(sardine_snapshot_load(old.cache, NULL, &result), -EINVAL);
        assert_int_equal(sardine_snapshot_save(NULL, path_of("s"), &result), -EINVAL);
        assert_int_equal(sardine_snapshot_save(old.cache, path_of("no/folder"), &result), -ENOENT);
        result.sz = 4;
        assert_int_equal(sardine_snapshot_save(old.cache, path_of("s"), &result), -EINVAL);
        /* what is no file is not read, nor waited for */
        mkfifo(path_of("pipe"), 0600);
        assert_int_equal(sardine_snapshot_load(old.cache, path_of("pipe"), NULL), SARDINE_ERR_SNAPSHOT);
        assert_int_equal(sardine_snapshot_load(old.cache, "/", NULL), SARDINE_ERR_SNAPSHOT);
        /* nor is it written through a symbolic link */
        assert_int_equal(symlink(path_of("elsewhere"), path_of("s.new")), 0);
        assert_int_equal(sardine_snapshot_save(old.cache, path_of("s"), NULL), SARDINE_ERR_FOREIGN);
        assert_false(file_there(path_of("elsewhere")));
        unlink(path_of("s.new"));
}

static void b84_an_empty_cache_makes_a_good_file(void **state)
{
        (void)state;
        assert_int_equal(save(&old, path_of("s")).entries, 0);
        kit_open(&new);
        assert_int_equal(load(&new, path_of("s")).entries, 0);
}

/* Purges that happen while a load runs: the clock is asked once a block, in the midst of it. */
static uint64_t purging_clock(void *ctx)
{
        struct kit *kit = ctx;
        static bool inside;
        if (!inside && kit->cache && kit->clock_ms % 2 == 1) {
                inside = true;
                uint8_t name[255];
                struct sardine_selector below = {.sz = sizeof below, .name = name, .below = 1};
                below.name_len = (uint32_t)sardine_name_from_text("example.com", name);
                sardine_expunge(kit->cache, &below);
                inside = false;
        }
        return kit->clock_ms;
}

static void b70_a_purge_during_a_load_is_not_undone(void **state)
{
        (void)state;
        fill_variety(&old, 3);
        save(&old, path_of("s"));
        new.options.clock = purging_clock;
        kit_open(&new);
        new.clock_ms |= 1;
        struct sardine_snapshot_result loaded = load(&new, path_of("s"));
        new.clock_ms &= ~(uint64_t)1;
        assert_int_equal(loaded.purged, 3);
        assert_int_equal(look(&new, A)->outcome, SARDINE_MISS);
        assert_int_equal(look(&new, ASK("text.example", 257, .rd = true))->outcome, SARDINE_HIT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(b84_a_restart_keeps_everything, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_what_is_for_exactly_one_prefix_length_stays_so, setup,
                                            teardown),
            cmocka_unit_test_setup_teardown(b84_on_disk_it_is_no_larger_than_in_memory, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_ages_continue_while_down, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_expired_comes_back_only_where_stale_is_wanted, setup,
                                            teardown),
            cmocka_unit_test_setup_teardown(b84_an_expired_one_is_not_written_without_stale, setup, teardown),
            cmocka_unit_test_setup_teardown(b35_a_clock_that_was_set_back_is_refused, setup, teardown),
            cmocka_unit_test_setup_teardown(b35_within_one_boot_the_wall_clock_does_not_matter, setup,
                                            teardown),
            cmocka_unit_test_setup_teardown(b35_a_clock_far_ahead_expires_all, setup, teardown),
            cmocka_unit_test_setup_teardown(b86_what_is_there_already_stays, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_nothing_is_evicted_for_it, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_other_options_cap_what_comes_back, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_keys_made_otherwise_are_refused, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_ttls_that_do_not_age_come_back_as_they_were, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_an_empty_cache_makes_a_good_file, setup, teardown),
            cmocka_unit_test_setup_teardown(b70_a_purge_during_a_load_is_not_undone, setup, teardown),
            cmocka_unit_test_setup_teardown(api_says_what_is_wrong, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
