/* SPDX-License-Identifier: MIT
 * A full store: what it takes in, what it keeps, and that its limits are limits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>

#include "store/audit.h"
#include "store/entries.h"

static struct store *make(struct store_options options)
{
        struct store *store;
        options.hash = test_hash;
        assert_int_equal(store_create(&options, &store), 0);
        return store;
}

static struct store_stats stats_of(struct store *store)
{
        struct store_stats stats;
        store_stats_get(store, &stats);
        return stats;
}

enum {
        FAR = TEST_NOW + 100000,
};

static void b66_a_full_store_takes_new_data(void **state)
{
        (void)state;
        /* By entries, and by bytes that hold about as many. */
        const struct store_options limits[] = {
            {.max_bytes = 4 << 20, .max_entries = 2000},
            {.max_bytes = 288 << 10, .segment_size = 4096},
        };
        for (unsigned i = 0; i < 2; i++) {
                struct store *store = make(limits[i]);
                for (uint64_t key = 0; key < 40000; key++)
                        assert_int_equal(put(store, key, 1, 100, FAR, TEST_NOW), 0);
                for (uint64_t key = 39000; key < 40000; key++)
                        assert_int_equal(find(store, key, false), 1);
                struct store_stats stats = stats_of(store);
                assert_int_equal(stats.evicted, 40000 - stats.entries);
                assert_true(stats.entries > 1900 && stats.entries < 2700);
                audit(store);
                store_destroy(store);
        }
}

static void b67_hot_entry_survives(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.max_bytes = 4 << 20, .max_entries = 1000});
        const uint64_t hot = 1 << 20;
        uint32_t now = TEST_NOW, misses = 0;
        for (uint64_t key = 0; key < 1000; key++)
                put(store, key, 1, 100, now + 3600, now);
        /* A minute: a name that lives for two seconds, asked a hundred times a second among cold ones. */
        for (unsigned tick = 0; tick < 6000; tick++) {
                now = TEST_NOW + tick / 100;
                store_enter(store);
                const uint8_t *entry = store_find(store, key_hash(hot), test_match, &hot, true, NULL);
                bool fresh = entry && entry_expiry(entry) > now;
                store_leave(store);
                if (!fresh) {
                        misses++;
                        assert_true(put(store, hot, tick, 100, now + 2, now) >= 0);
                }
                put(store, 1000 + tick, 1, 100, now + 3600, now);
        }
        assert_int_equal(misses, 30);
        store_destroy(store);
}

static void b67_popular_entries_outlive_a_flood(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.max_bytes = 1 << 20});
        const uint64_t popular = 500;
        for (uint64_t key = 0; key < popular; key++)
                put(store, key, 1, 120, FAR, TEST_NOW);
        for (uint64_t flood = 0; flood < 100000; flood++) {
                put(store, 1000 + flood, 1, 120, FAR, TEST_NOW);
                find(store, flood % popular, true);
        }
        for (uint64_t key = 0; key < popular; key++)
                assert_int_equal(find(store, key, false), 1);
        store_destroy(store);
}

/* An expired popular entry has to go; when it comes back it is not among the first to go again. */
static void b67_ghosts_come_back_proven(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.max_bytes = 1 << 20});
        const uint64_t come_back = 50;
        uint32_t now = TEST_NOW;
        for (uint64_t key = 0; key < come_back; key++)
                put(store, key, 1, 120, now + 10, now);
        for (unsigned n = 0; n < 100; n++)
                for (uint64_t key = 0; key < come_back; key++)
                        find(store, key, true);
        now += 20;
        uint64_t next = 1000;
        while (stats_of(store).expired < come_back)
                put(store, next++, 1, 120, FAR, now);
        for (uint64_t key = 0; key < come_back; key++)
                assert_int_equal(put(store, key, 2, 120, FAR, now), 0);
        /* So many more that what was put at the same time is gone. */
        put(store, 999, 1, 120, FAR, now);
        while (find(store, 999, false) == 1)
                put(store, next++, 1, 120, FAR, now);
        unsigned there = 0;
        for (uint64_t key = 0; key < come_back; key++)
                there += find(store, key, false) == 2;
        assert_true(there >= come_back * 9 / 10);
        store_destroy(store);
}

/* Put, touch in reverse, one-hit wonders: never beyond either limit, after any put. */
static void b68_limits_hold_in_any_order(void **state)
{
        (void)state;
        const struct store_options limits[] = {
            {.max_bytes = 300 << 10, .segment_size = 4096},
            {.max_bytes = 2 << 20, .max_entries = 700},
            {.max_bytes = 300 << 10, .segment_size = 4096, .max_entries = 700, .stale_window = 1000},
        };
        for (unsigned i = 0; i < 3; i++) {
                struct store *store = make(limits[i]);
                struct random random = {i};
                uint32_t now = TEST_NOW;
                for (unsigned round = 0; round < 10; round++) {
                        for (uint64_t key = 0; key < 1000; key++) {
                                put(store, key, round, 60 + 4 * random_below(&random, 100), now + 50, now);
                                struct store_stats stats = stats_of(store);
                                assert_true(stats.bytes <= stats.max_bytes);
                                assert_true(!stats.max_entries || stats.entries <= stats.max_entries);
                        }
                        for (uint64_t key = 1000; key-- > 0;)
                                find(store, key, true);
                        for (uint64_t n = 0; n < 7000; n++) {
                                put(store, 1 << 30 | random_next(&random) >> 32, 1, 100, now + 500, now);
                                struct store_stats stats = stats_of(store);
                                assert_true(stats.bytes <= stats.max_bytes);
                                assert_true(!stats.max_entries || stats.entries <= stats.max_entries);
                        }
                        now += 20;
                        audit(store);
                }
                store_destroy(store);
        }
}

static void b71_newer_replaces_older(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.max_bytes = 1 << 20});
        const uint64_t key = 7;
        assert_int_equal(put(store, key, 1, 100, TEST_NOW + 3600, TEST_NOW), 0);
        uint32_t popularity = 0;
        for (unsigned n = 0; n < 50; n++)
                find(store, key, true);
        assert_int_equal(put(store, key, 2, 64, TEST_NOW + 60, TEST_NOW), 1);
        store_enter(store);
        const uint8_t *entry = store_find(store, key_hash(key), test_match, &key, false, &popularity);
        assert_int_equal(entry_version_of(entry), 2);
        assert_int_equal(entry_expiry(entry), TEST_NOW + 60);
        assert_true(popularity > 0);
        store_leave(store);
        struct store_stats stats = stats_of(store);
        assert_int_equal(stats.entries, 1);
        assert_int_equal(stats.entry_bytes, 64);
        assert_int_equal(stats.dead_bytes, 100);
        assert_int_equal(stats.evicted + stats.expired + stats.expunged, 0);
        store_destroy(store);
}

/* The store keeps what it is given; replaced and expired bytes go before anything that is alive. */
static void b66_dead_bytes_go_first(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.max_bytes = 1 << 20});
        const uint64_t keys = 2000;
        for (uint32_t round = 0; round < 50; round++)
                for (uint64_t key = 0; key < keys; key++)
                        assert_true(put(store, key, round, 200, FAR, TEST_NOW) >= 0);
        assert_int_equal(stats_of(store).evicted, 0);
        for (uint64_t key = 0; key < keys; key++)
                assert_int_equal(find(store, key, false), 49);
        /* Short-lived ones by the thousand, which never live at the same time. */
        uint32_t now = TEST_NOW;
        for (uint64_t n = 0; n < 40000; n++) {
                put(store, keys + n, 1, 200, now + 2, now);
                now += n % 500 == 0;
        }
        assert_int_equal(stats_of(store).evicted, 0);
        for (uint64_t key = 0; key < keys; key++)
                assert_int_equal(find(store, key, false), 49);
        store_destroy(store);
}

static void b66_stale_goes_before_fresh(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.max_bytes = 1 << 20, .stale_window = 10000});
        uint32_t now = TEST_NOW;
        for (uint64_t key = 0; key < 2000; key++)
                put(store, key, 1, 200, now + 10, now);
        now += 20;
        for (uint64_t key = 2000; key < 4000; key++)
                put(store, key, 1, 200, now + 5000, now);
        assert_int_equal(find(store, 0, false), 1);
        assert_int_equal(stats_of(store).evicted, 0);
        uint64_t next = 4000;
        while (stats_of(store).evicted < 1000)
                put(store, next++, 1, 200, now + 5000, now);
        for (uint64_t key = 2000; key < 4000; key++)
                assert_int_equal(find(store, key, false), 1);
        store_destroy(store);
}

/* The rank of a test entry is in its key. */
static uint64_t ranked(enum store_kind kind, uint64_t n)
{
        return (uint64_t)kind << 48 | n;
}

static enum store_kind rank_by_key(const void *ctx, const uint8_t *entry)
{
        (void)ctx;
        return (enum store_kind)(entry_key_of(entry) >> 48);
}

static unsigned there(struct store *store, enum store_kind kind, uint64_t from, uint64_t to)
{
        unsigned n = 0;
        for (uint64_t key = from; key < to; key++)
                n += find(store, ranked(kind, key), false) >= 0;
        return n;
}

/* Names asked for now and then, too seldom to be asked for again while new ones stay: at their second coming
 * they are told from those that come once. New negatives are not: there are too many. */
static void b67_newcomers_come_back_proven(void **state)
{
        (void)state;
        for (unsigned negative = 0; negative < 2; negative++) {
                struct store *store = make((struct store_options){.max_bytes = 1 << 20, .rank = rank_by_key});
                const enum store_kind kind = negative ? STORE_NEGATIVE : STORE_ORDINARY;
                const uint64_t seldom = 100;
                uint64_t next = 1000;
                for (unsigned turn = 1; turn <= 2; turn++) {
                        for (uint64_t key = 0; key < seldom; key++)
                                assert_int_equal(put(store, ranked(kind, key), turn, 100, FAR, TEST_NOW), 0);
                        /* Until what was put at the same time, and never before, is gone. */
                        const uint64_t once = ranked(kind, next++);
                        put(store, once, 1, 100, FAR, TEST_NOW);
                        while (find(store, once, false) == 1)
                                put(store, ranked(kind, next++), 1, 100, FAR, TEST_NOW);
                }
                unsigned stayed = there(store, kind, 0, seldom);
                assert_true(negative ? stayed < seldom / 10 : stayed > seldom * 6 / 10);
                store_destroy(store);
        }
}

static void b39_negatives_take_their_share_and_no_more(void **state)
{
        (void)state;
        const struct store_options limits[] = {
            {.max_bytes = 1 << 20}, {.max_bytes = 1 << 20, .max_entries = 200}, {.max_bytes = 32 << 20}};
        for (unsigned i = 0; i < 3; i++) {
                struct store_options options = limits[i];
                options.rank = rank_by_key;
                struct store *store = make(options);
                const uint64_t capacity = options.max_entries ? options.max_entries : options.max_bytes / 112;
                /* A quarter of what it holds, and never asked for again. */
                const uint64_t positive = capacity / 4;
                for (uint64_t key = 0; key < positive; key++)
                        put(store, ranked(STORE_ORDINARY, key), 1, 100, FAR, TEST_NOW);
                for (uint64_t key = 0; key < 6 * capacity; key++)
                        assert_int_equal(put(store, ranked(STORE_NEGATIVE, key), 1, 100, FAR, TEST_NOW), 0);
                assert_int_equal(there(store, STORE_ORDINARY, 0, positive), positive);
                /* The newest of them are there. */
                assert_true(there(store, STORE_NEGATIVE, 6 * capacity - capacity / 8, 6 * capacity) ==
                            capacity / 8);
                /* And when both come, negatives are cut down to a quarter. */
                for (uint64_t key = positive; key < 6 * capacity; key++) {
                        put(store, ranked(STORE_ORDINARY, key), 1, 100, FAR, TEST_NOW);
                        put(store, ranked(STORE_NEGATIVE, 10 * capacity + key), 1, 100, FAR, TEST_NOW);
                }
                unsigned negative = there(store, STORE_NEGATIVE, 0, 16 * capacity);
                uint64_t entries = stats_of(store).entries;
                /* To within a segment. */
                assert_true(negative <= entries / 4 + store_max_entry(store) / 100 &&
                            negative >= entries * 18 / 100);
                audit(store);
                store_destroy(store);
        }
}

/* What is new and fresh stays although others in its segments have expired: it is the flood's turn to give.
 */
static void b39_a_flood_does_not_live_on_what_expires(void **state)
{
        (void)state;
        const uint64_t budgets[] = {1 << 20, 8 << 20};
        for (unsigned i = 0; i < 2; i++) {
                struct store *store =
                    make((struct store_options){.max_bytes = budgets[i], .rank = rank_by_key});
                const uint64_t capacity = budgets[i] / 112, ordinary = capacity / 2;
                uint32_t now = TEST_NOW;
                for (uint64_t key = 0; key < ordinary; key++)
                        put(store, ranked(STORE_ORDINARY, key), 1, 100, key % 3 ? FAR : now + 10, now);
                now += 60;
                for (uint64_t key = 0; key < 4 * capacity; key++)
                        put(store, ranked(STORE_NEGATIVE, key), 1, 100, FAR, now);
                unsigned stayed = 0;
                for (uint64_t key = 0; key < ordinary; key++)
                        stayed += key % 3 && find(store, ranked(STORE_ORDINARY, key), false) == 1;
                assert_true(stayed >= ordinary * 2 / 3 * 9 / 10);
                assert_int_equal(there(store, STORE_NEGATIVE, 4 * capacity - 100, 4 * capacity), 100);
                audit(store);
                store_destroy(store);
        }
}

static void b39_stale_data_takes_its_share_and_no_more(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.max_bytes = 4 << 20, .stale_window = 86400});
        uint32_t now = TEST_NOW;
        const uint64_t capacity = (4 << 20) / 112;
        for (uint64_t key = 0; key < capacity; key++)
                put(store, key, 1, 100, now + 10, now);
        now += 100;
        /* What is fresh is popular, and yet less of it than there is room for: stale data would go on. */
        const uint64_t fresh = capacity * 6 / 10;
        for (uint64_t key = capacity; key < capacity + fresh; key++)
                put(store, key, 1, 100, FAR, now);
        unsigned stale = 0;
        for (uint64_t key = 0; key < capacity; key++)
                stale += find(store, key, false) == 1;
        for (uint64_t key = capacity; key < capacity + fresh; key++)
                assert_int_equal(find(store, key, false), 1);
        uint64_t entries = stats_of(store).entries;
        assert_true(stale > entries / 10 && stale <= entries / 2);
        audit(store);
        store_destroy(store);
}

/* What has expired in part is emptied before what is fresh, although that is older. */
static void b66_expired_goes_first_out_of_mixed_segments(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.max_bytes = 1 << 20});
        uint32_t now = TEST_NOW;
        const uint64_t capacity = (1 << 20) / 112;
        for (uint64_t key = 0; key < capacity / 2; key++)
                put(store, key, 1, 100, FAR, now);
        for (uint64_t key = capacity / 2; key < capacity * 9 / 10; key++)
                put(store, key, 1, 100, key % 2 ? now + 10 : FAR, now);
        now += 60;
        uint64_t next = capacity;
        while (stats_of(store).expired < capacity / 10)
                put(store, next++, 1, 100, FAR, now);
        for (uint64_t key = 0; key < capacity / 2; key++)
                assert_int_equal(find(store, key, false), 1);
        audit(store);
        store_destroy(store);
}

static void kept_entries_outlive_a_flood(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.max_bytes = 1 << 20, .rank = rank_by_key});
        const uint64_t capacity = (1 << 20) / 112, kept = capacity / 3;
        for (uint64_t key = 0; key < kept; key++)
                put(store, ranked(STORE_KEPT, key), 1, 100, FAR, TEST_NOW);
        for (uint64_t key = 0; key < 5 * capacity; key++) {
                put(store, ranked(STORE_ORDINARY, key), 1, 100, FAR, TEST_NOW);
                find(store, ranked(STORE_ORDINARY, key), true);
        }
        assert_int_equal(there(store, STORE_KEPT, 0, kept), kept);
        /* They are no danger: too many of them go like others. */
        for (uint64_t key = kept; key < 5 * capacity; key++)
                assert_int_equal(put(store, ranked(STORE_KEPT, key), 1, 100, FAR, TEST_NOW), 0);
        assert_int_equal(there(store, STORE_KEPT, 5 * capacity - 100, 5 * capacity), 100);
        assert_true(there(store, STORE_ORDINARY, 0, 5 * capacity) > capacity / 4);
        audit(store);
        store_destroy(store);
}

static int judge_by_key(const void *ctx, const uint8_t *entry, uint32_t popularity)
{
        (void)ctx;
        uint64_t key = entry_key_of(entry);
        return key % 3 == 0 ? STORE_AS_EVER : key % 3 == 1 ? (int)popularity : STORE_GOES;
}

static void the_judge_is_obeyed(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.max_bytes = 1 << 20, .judge = judge_by_key});
        const uint64_t capacity = (1 << 20) / 112, ours = capacity / 4;
        for (uint64_t key = 0; key < ours; key++)
                put(store, key, 1, 100, FAR, TEST_NOW);
        /* Popular, all of them. */
        for (uint64_t key = 0; key < ours; key++)
                find(store, key, true);
        uint64_t next = ours;
        while (find(store, 2, false) >= 0 || find(store, ours / 3 * 3 - 1, false) >= 0)
                put(store, next++ * 3 + 2, 1, 100, FAR, TEST_NOW);
        unsigned kept = 0;
        for (uint64_t key = 0; key + 3 < ours; key++) {
                int64_t found = find(store, key, false);
                assert_true(key % 3 != 2 || found == ABSENT);
                kept += key % 3 == 1 && found == 1;
        }
        /* But for those that one put would have had to copy too much of. */
        assert_true(kept >= ours / 3 / 2);
        /* One that would keep everything cannot: there is always room. */
        for (uint64_t n = 0; n < 10 * capacity; n++)
                assert_int_equal(put(store, (next + n) * 3 + 1, 1, 100, FAR, TEST_NOW), 0);
        audit(store);
        store_destroy(store);
}

static void b72_bytes_hold_whatever_the_sizes(void **state)
{
        (void)state;
        for (unsigned jemalloc = 0; jemalloc < 2; jemalloc++) {
                struct store *store =
                    make((struct store_options){.max_bytes = 8 << 20, .no_jemalloc = !jemalloc});
                const uint32_t most = store_max_entry(store);
                struct random random = {jemalloc};
                for (uint64_t key = 0; key < 60000; key++) {
                        uint32_t kind = random_below(&random, 1000);
                        uint32_t size = kind < 900   ? 60 + random_below(&random, 200)
                                        : kind < 995 ? 1200
                                        : kind < 999 ? 16384
                                                     : most;
                        assert_true(put(store, key, 1, size & ~3u, FAR, TEST_NOW) == 0);
                        assert_int_equal(find(store, key, true), 1);
                        struct store_stats stats = stats_of(store);
                        assert_true(stats.bytes <= stats.max_bytes);
                }
                struct store_stats stats = stats_of(store);
                assert_true(stats.entry_bytes > stats.max_bytes / 2);
                audit(store);
                store_destroy(store);
                /* All large, then all small, for which the index has to grow in a full store, then all large.
                 */
                store = make((struct store_options){.max_bytes = 8 << 20, .no_jemalloc = !jemalloc});
                for (unsigned phase = 0; phase < 3; phase++) {
                        uint32_t size = phase == 1 ? 60 : 16384;
                        for (uint64_t n = 0; n < (phase == 1 ? 200000 : 2000); n++) {
                                assert_int_equal(
                                    put(store, (uint64_t)(phase + 1) << 32 | n, 1, size, FAR, TEST_NOW), 0);
                        }
                        stats = stats_of(store);
                        assert_true(stats.bytes <= stats.max_bytes);
                        /* The index keeps its size, so large entries have less room the second time. */
                        assert_true(stats.entries * (size + 10) > stats.max_bytes * 8 / 10);
                        audit(store);
                }
                store_destroy(store);
        }
}

static void b72_memory_goes_back(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.max_bytes = 32 << 20});
        uint64_t empty = stats_of(store).bytes;
        for (uint64_t key = 0; key < 150000; key++)
                put(store, key, 1, 128, FAR, TEST_NOW);
        assert_true(stats_of(store).bytes > 19 << 20);
        assert_int_equal(store_shrink(store, 0, TEST_NOW), 150000);
        struct store_stats stats = stats_of(store);
        assert_int_equal(stats.entries, 0);
        assert_int_equal(stats.bytes, empty);
        assert_int_equal(stats.expunged, 150000);
        audit(store);
        for (uint64_t key = 0; key < 1000; key++) {
                assert_int_equal(find(store, key, false), ABSENT);
                assert_int_equal(put(store, key, 2, 128, FAR, TEST_NOW), 0);
                assert_int_equal(find(store, key, false), 2);
        }
        store_destroy(store);
}

static void b73_all_of_the_capacity_is_used(void **state)
{
        (void)state;
        const uint64_t max_entries[] = {1, 2, 10, 100, 1000, 20000};
        for (unsigned i = 0; i < 6; i++) {
                uint64_t max = max_entries[i];
                struct store *store =
                    make((struct store_options){.max_bytes = (1 << 20) + max * 1024, .max_entries = max});
                for (uint64_t key = 0; key < max; key++)
                        put(store, key, 1, 130, FAR, TEST_NOW);
                assert_int_equal(stats_of(store).entries, max);
                assert_int_equal(stats_of(store).evicted, 0);
                /* And it stays so. */
                for (uint64_t key = max; key < 4 * max + 1000; key++) {
                        assert_int_equal(put(store, key, 1, 130, FAR, TEST_NOW), 0);
                        assert_int_equal(find(store, key, false), 1);
                        uint64_t entries = stats_of(store).entries;
                        assert_true(entries <= max && entries >= max - max / 20);
                }
                audit(store);
                store_destroy(store);
        }
        /* By bytes: nothing goes before 95 % are taken. */
        const uint64_t max_bytes[] = {1 << 20, 8 << 20, 64 << 20};
        for (unsigned i = 0; i < 3; i++) {
                struct store *store = make((struct store_options){.max_bytes = max_bytes[i]});
                for (uint64_t key = 0; stats_of(store).evicted == 0; key++) {
                        struct store_stats stats = stats_of(store);
                        assert_true(put(store, key, 1, 130, FAR, TEST_NOW) == 0);
                        if (stats_of(store).evicted > 0)
                                assert_true(stats.bytes >= max_bytes[i] / 100 * 95);
                }
                store_destroy(store);
        }
}

static void b61_degenerate_sizes(void **state)
{
        (void)state;
        struct store *store = NULL;
        const struct store_options refused[] = {
            {.hash = test_hash},
            {.hash = test_hash, .max_bytes = 1},
            {.hash = test_hash, .max_bytes = 20000},
            {.hash = test_hash, .max_bytes = 1 << 20, .segment_size = 1},
            {.hash = test_hash, .max_bytes = 1 << 20, .segment_size = 5000},
            {.hash = test_hash, .max_bytes = 1 << 20, .segment_size = 1 << 20},
            {.hash = test_hash, .max_bytes = 1 << 20, .segment_size = UINT32_C(1) << 31},
            {.max_bytes = 1 << 20},
        };
        for (unsigned i = 0; i < sizeof refused / sizeof refused[0]; i++)
                assert_int_equal(store_create(&refused[i], &store), -EINVAL);
        store = make((struct store_options){.max_bytes = UINT64_MAX, .max_entries = UINT64_MAX});
        assert_int_equal(put(store, 1, 1, 100, FAR, TEST_NOW), 0);
        assert_int_equal(find(store, 1, false), 1);
        assert_true(stats_of(store).bytes < 3 << 20);
        store_destroy(store);
        /* An entry as large as can be, and one that is larger. */
        store = make((struct store_options){.max_bytes = 1 << 20, .segment_size = 16384});
        assert_int_equal(store_max_entry(store), 16384);
        assert_int_equal(put(store, 1, 1, 16384, FAR, TEST_NOW), 0);
        assert_int_equal(put(store, 1, 2, 16388, FAR, TEST_NOW), -E2BIG);
        assert_int_equal(find(store, 1, false), 1);
        store_destroy(store);
        /* Units larger than entries are aligned to: beyond 16 GiB. */
        store = make((struct store_options){.max_bytes = UINT64_C(100) << 30});
        for (uint64_t key = 0; key < 10000; key++)
                assert_int_equal(put(store, key, 1, 100 + 4 * (key % 9), FAR, TEST_NOW), 0);
        for (uint64_t key = 0; key < 10000; key++)
                assert_int_equal(find(store, key, false), 1);
        audit(store);
        store_destroy(store);
}

static void a_small_store_is_small(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.max_bytes = 1 << 20, .max_entries = 100});
        for (uint64_t key = 0; key < 20000; key++) {
                put(store, key, 1, 130, FAR, TEST_NOW);
                find(store, key / 2, true);
        }
        assert_int_equal(stats_of(store).entries, 100);
        assert_true(stats_of(store).bytes <= 256 << 10);
        store_destroy(store);
}

/* Each hash has sixteen slots, however large the index: a new entry still gets in. */
static void b64_one_hash_for_all(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.max_bytes = 4 << 20, .hash_bits = 1});
        uint64_t index = stats_of(store).index_bytes;
        for (uint64_t key = 0; key < 5000; key++) {
                assert_int_equal(put(store, key, 1, 100, FAR, TEST_NOW), 0);
                assert_int_equal(find(store, key, true), 1);
                assert_true(stats_of(store).entries <= 32);
        }
        assert_int_equal(stats_of(store).index_bytes, index);
        store_destroy(store);
}

static void maintenance_gives_back_what_is_free(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.max_bytes = 16 << 20});
        for (uint64_t key = 0; key < 60000; key++)
                put(store, key, 1, 128, FAR, TEST_NOW);
        for (uint64_t key = 0; key < 60000; key++)
                assert_true(removes(store, key));
        uint64_t before = stats_of(store).bytes;
        for (unsigned n = 0; n < 20; n++)
                store_maintain(store, TEST_NOW);
        assert_true(stats_of(store).bytes < before / 4);
        audit(store);
        assert_int_equal(stats_of(store).expunged, 60000);
        store_destroy(store);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(b66_a_full_store_takes_new_data),
            cmocka_unit_test(b67_hot_entry_survives),
            cmocka_unit_test(b67_popular_entries_outlive_a_flood),
            cmocka_unit_test(b67_ghosts_come_back_proven),
            cmocka_unit_test(b67_newcomers_come_back_proven),
            cmocka_unit_test(b68_limits_hold_in_any_order),
            cmocka_unit_test(b71_newer_replaces_older),
            cmocka_unit_test(b66_dead_bytes_go_first),
            cmocka_unit_test(b66_stale_goes_before_fresh),
            cmocka_unit_test(b39_negatives_take_their_share_and_no_more),
            cmocka_unit_test(b39_a_flood_does_not_live_on_what_expires),
            cmocka_unit_test(b39_stale_data_takes_its_share_and_no_more),
            cmocka_unit_test(b66_expired_goes_first_out_of_mixed_segments),
            cmocka_unit_test(kept_entries_outlive_a_flood),
            cmocka_unit_test(the_judge_is_obeyed),
            cmocka_unit_test(b72_bytes_hold_whatever_the_sizes),
            cmocka_unit_test(b72_memory_goes_back),
            cmocka_unit_test(b73_all_of_the_capacity_is_used),
            cmocka_unit_test(b61_degenerate_sizes),
            cmocka_unit_test(a_small_store_is_small),
            cmocka_unit_test(b64_one_hash_for_all),
            cmocka_unit_test(maintenance_gives_back_what_is_free),
        };
        return cmocka_run_group_tests_name("store eviction", tests, NULL, NULL);
}
