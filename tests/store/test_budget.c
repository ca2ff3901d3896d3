/* SPDX-License-Identifier: MIT
 * Orders of puts that are as bad as can be for the budget. After every single operation both limits hold and
 * the statistics add up, and what was just put is there. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>

#include "store/audit.h"
#include "store/entries.h"

enum {
        FAR = TEST_NOW + 100000,
        SMALL = 60,
        MESSAGE_MOST = 65536,
};

/* A store, and what was done to it. */
struct watched {
        struct store *store;
        uint64_t added, expunged;
        uint32_t version, now;
        unsigned steps;
};

static void check(struct watched *w)
{
        struct store_stats s;
        store_stats_get(w->store, &s);
        assert_true(s.bytes <= s.max_bytes);
        assert_true(s.max_entries == 0 || s.entries <= s.max_entries);
        assert_true(s.entry_bytes + s.dead_bytes + s.index_bytes <= s.bytes);
        assert_true(s.entry_bytes >= s.entries * TEST_ENTRY_LEAST);
        assert_int_equal(s.expunged, w->expunged);
        assert_int_equal(s.entries + s.evicted + s.expired + s.expunged, w->added);
        if (++w->steps % 1024 == 0)
                audit(w->store);
}

static uint32_t whole(uint32_t size)
{
        return (size < TEST_ENTRY_LEAST ? TEST_ENTRY_LEAST : size) & ~3u;
}

/* Whatever is in the store: fresh data is never refused. */
static void watched_put(struct watched *w, uint64_t key, uint32_t size, uint32_t life)
{
        int result = put(w->store, key, ++w->version, whole(size), w->now + life, w->now);
        assert_true(result == 0 || result == 1);
        w->added += result == 0;
        assert_int_equal(find(w->store, key, true), w->version);
        check(w);
}

static void watched_remove(struct watched *w, uint64_t key)
{
        w->expunged += removes(w->store, key);
        check(w);
}

/* The smallest budget that a store takes. */
static uint64_t least_budget(struct store_options options)
{
        uint64_t refused = 1, taken = 64 << 20;
        while (refused + 1 < taken) {
                struct store *store;
                options.max_bytes = refused + (taken - refused) / 2;
                int err = store_create(&options, &store);
                if (err) {
                        assert_int_equal(err, -EINVAL);
                        refused = options.max_bytes;
                } else {
                        store_destroy(store);
                        taken = options.max_bytes;
                }
        }
        return taken;
}

static const uint32_t segment_sizes[] = {4096, 16384, 65536, ENTRY_MAX};
static const uint64_t entry_limits[] = {0, 1, 3, 40};

/* With every segment size and entry limit, at the smallest budget and a little above it. */
static void in_small_stores(void (*order)(struct watched *w, uint32_t most))
{
        for (unsigned size = 0; size < 4; size++)
                for (unsigned limit = 0; limit < 4; limit++)
                        for (unsigned above = 0; above < 4; above++) {
                                struct store_options options = {
                                    .hash = test_hash,
                                    .segment_size = segment_sizes[size],
                                    .max_entries = entry_limits[limit],
                                    .no_jemalloc = above & 1,
                                };
                                options.max_bytes = least_budget(options);
                                static const unsigned percent[] = {0, 1, 30, 500};
                                options.max_bytes += options.max_bytes * percent[above] / 100;
                                struct watched w = {.now = TEST_NOW};
                                assert_int_equal(store_create(&options, &w.store), 0);
                                uint32_t most = store_max_entry(w.store);
                                order(&w, most < MESSAGE_MOST ? most : MESSAGE_MOST);
                                audit(w.store);
                                store_destroy(w.store);
                        }
}

/* Large ones among small ones: each, every seventh, one in a hundred. */
static void mixed(struct watched *w, uint32_t most)
{
        static const unsigned one_in[] = {1, 2, 7, 100};
        for (unsigned i = 0; i < 4; i++)
                for (unsigned n = 0; n < 150; n++)
                        watched_put(w, w->version, n % one_in[i] ? SMALL : most, 1000);
}

static void b72_small_and_large_in_turns(void **state)
{
        (void)state;
        in_small_stores(mixed);
}

static void large_then_small(struct watched *w, uint32_t most)
{
        for (unsigned round = 0; round < 2; round++) {
                for (unsigned n = 0; n < 60; n++)
                        watched_put(w, w->version, most - 4 * n, 1000);
                for (unsigned n = 0; n < 600; n++)
                        watched_put(w, w->version, SMALL, 1000);
        }
}

static void b72_all_large_then_all_small(void **state)
{
        (void)state;
        in_small_stores(large_then_small);
}

/* Three names, whose answers grow and shrink: smoothly, in leaps, by turns. */
static void replaced(struct watched *w, uint32_t most)
{
        for (uint32_t size = SMALL; size < most; size += size / 4)
                watched_put(w, 1, size, 1000);
        for (uint32_t size = most; size > SMALL; size -= size / 4)
                watched_put(w, 2, size, 1000);
        for (unsigned n = 0; n < 200; n++) {
                watched_put(w, 1, n % 2 ? SMALL : most, 1000);
                watched_put(w, 2, n % 2 ? most : SMALL, 1000);
                watched_put(w, 3, n % 5 ? SMALL : most / (1 + n % 7), 1000);
        }
}

static void b72_one_name_grows_and_shrinks(void **state)
{
        (void)state;
        in_small_stores(replaced);
}

static enum store_visit every_fifth(void *ctx, const uint8_t *entry, uint32_t popularity)
{
        (void)ctx, (void)popularity;
        return entry_key_of(entry) % 5 == 0 ? STORE_REMOVE : STORE_GO_ON;
}

/* Anything, in any order. */
static void anything(struct watched *w, uint32_t most)
{
        struct random random = {most};
        for (unsigned n = 0; n < 1200; n++) {
                uint64_t key = random_below(&random, 300), removed;
                uint32_t what = random_below(&random, 64);
                if (what == 0) {
                        w->expunged += store_shrink(w->store, random_below(&random, 30), w->now);
                        check(w);
                } else if (what == 1) {
                        store_walk(w->store, every_fifth, NULL, true, &removed);
                        w->expunged += removed;
                        check(w);
                } else if (what == 2) {
                        store_maintain(w->store, w->now);
                        check(w);
                } else if (what == 3) {
                        w->now += random_below(&random, 20);
                } else if (what < 12) {
                        watched_remove(w, key);
                } else if (what < 20) {
                        store_lock(w->store);
                        const uint8_t *entry = store_find_locked(w->store, key_hash(key), test_match, &key);
                        if (entry)
                                store_refresh_locked(w->store, key_hash(key), entry, w->now + 30, 30);
                        store_unlock(w->store);
                        check(w);
                } else {
                        uint32_t size = what < 50 ? random_below(&random, 400) : random_below(&random, most);
                        watched_put(w, key, what == 63 ? most : size, 1 + random_below(&random, 40));
                }
        }
}

static void b72_any_order(void **state)
{
        (void)state;
        in_small_stores(anything);
}

/* The same where there are shares and classes: more segments, kinds, a window for stale data. */
static enum store_kind rank_by_key(const void *ctx, const uint8_t *entry)
{
        (void)ctx;
        return (enum store_kind)(entry_key_of(entry) % 3);
}

static void b72_any_order_with_kinds(void **state)
{
        (void)state;
        for (unsigned i = 0; i < 12; i++) {
                struct store_options options = {
                    .hash = test_hash,
                    .rank = rank_by_key,
                    .segment_size = i % 2 ? 4096 : 16384,
                    .max_bytes = (UINT64_C(300) + 50 * i) << 10,
                    .max_entries = i % 3 ? 0 : 200,
                    .stale_window = i % 4 ? 0 : 100,
                };
                struct watched w = {.now = TEST_NOW};
                assert_int_equal(store_create(&options, &w.store), 0);
                uint32_t most = store_max_entry(w.store);
                mixed(&w, most);
                anything(&w, most);
                large_then_small(&w, most);
                replaced(&w, most);
                anything(&w, most);
                audit(w.store);
                store_destroy(w.store);
        }
}

/* A reader that stays: puts may be refused, the limits hold all the same. */
static void b72_a_reader_that_stays(void **state)
{
        (void)state;
        struct store_options options = {.hash = test_hash, .segment_size = 16384, .max_bytes = 400 << 10};
        struct watched w = {.now = TEST_NOW};
        assert_int_equal(store_create(&options, &w.store), 0);
        watched_put(&w, 1, SMALL, 1000);
        store_enter(w.store);
        unsigned refused = 0;
        for (uint64_t key = 2; refused < 10; key++) {
                int result = put(w.store, key, 1, key % 3 ? SMALL : 16384, FAR, TEST_NOW);
                assert_true(result == 0 || result == -ENOMEM);
                w.added += result == 0;
                refused += result != 0;
                check(&w);
        }
        store_leave(w.store);
        mixed(&w, 16384);
        audit(w.store);
        store_destroy(w.store);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(b72_small_and_large_in_turns),   cmocka_unit_test(b72_all_large_then_all_small),
            cmocka_unit_test(b72_one_name_grows_and_shrinks), cmocka_unit_test(b72_any_order),
            cmocka_unit_test(b72_any_order_with_kinds),       cmocka_unit_test(b72_a_reader_that_stays),
        };
        return cmocka_run_group_tests_name("store budget", tests, NULL, NULL);
}
