/* SPDX-License-Identifier: MIT
 * Random operations against a plain array that remembers what should be there. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

#include "store/audit.h"
#include "store/entries.h"

enum {
        KEYS = 6000,
        STEPS = 60000,
};

/* What is known of a key. The store may have evicted it, but must not show anything else. */
struct known {
        uint32_t version; /* 0: removed, or never there */
        uint32_t expiry;
        uint32_t size;
};

struct model {
        struct store *store;
        struct store_options options;
        struct known known[KEYS];
        struct random random;
        uint32_t now;
        uint32_t next_version;
        uint64_t added, removed;
        /* Of the last walk. */
        uint8_t seen[KEYS];
        uint32_t remove_every;
};

static void check_key(struct model *m, uint64_t key, const uint8_t *entry)
{
        const struct known *known = &m->known[key];
        assert_true(entry_sound(entry));
        assert_int_equal(entry_key_of(entry), key);
        assert_int_equal(entry_version_of(entry), known->version);
        assert_int_equal(entry_expiry(entry), known->expiry);
        assert_int_equal(entry_size(entry), known->size);
}

static const uint8_t *look(struct model *m, uint64_t key, bool touch)
{
        const uint8_t *entry = store_find(m->store, key_hash(key), test_match, &key, touch, NULL);
        if (entry)
                check_key(m, key, entry);
        return entry;
}

/* Forget what the store has evicted, and check that its counters say so. */
static void reconcile(struct model *m)
{
        uint64_t there = 0;
        store_enter(m->store);
        for (uint64_t key = 0; key < KEYS; key++)
                if (look(m, key, false))
                        there++;
        store_leave(m->store);
        struct store_stats stats;
        store_stats_get(m->store, &stats);
        assert_int_equal(there, stats.entries);
        assert_int_equal(m->added - m->removed - stats.evicted - stats.expired, there);
        assert_int_equal(stats.expunged, m->removed);
        assert_true(stats.bytes <= m->options.max_bytes);
        audit(m->store);
}

static void do_put(struct model *m)
{
        uint64_t key = random_below(&m->random, KEYS);
        bool large = random_below(&m->random, 200) == 0;
        uint32_t most = large ? store_max_entry(m->store) : 400;
        uint32_t size = (TEST_ENTRY_LEAST + random_below(&m->random, most - TEST_ENTRY_LEAST + 1)) & ~3u;
        uint32_t expiry = m->now + 1 + random_below(&m->random, 400);
        store_enter(m->store);
        bool was = look(m, key, false);
        store_leave(m->store);
        uint64_t before = stat_entries(m->store);
        int result = put(m->store, key, ++m->next_version, size, expiry, m->now);
        assert_true(result == 0 || result == 1);
        assert_true(was || result == 0);
        if (result == 0)
                m->added++;
        m->known[key] = (struct known){m->next_version, expiry, size};
        store_enter(m->store);
        assert_non_null(look(m, key, false));
        store_leave(m->store);
        assert_true(stat_entries(m->store) <= before + 1);
}

static void do_refresh(struct model *m)
{
        uint64_t key = random_below(&m->random, KEYS);
        store_lock(m->store);
        const uint8_t *entry = store_find_locked(m->store, key_hash(key), test_match, &key);
        if (entry) {
                check_key(m, key, entry);
                m->known[key].expiry = m->now + 1 + random_below(&m->random, 400);
                store_refresh_locked(m->store, key_hash(key), entry, m->known[key].expiry, 7);
                assert_int_equal(entry_life_code(entry), 7);
        }
        store_unlock(m->store);
}

static void do_remove(struct model *m)
{
        uint64_t key = random_below(&m->random, KEYS);
        store_enter(m->store);
        bool was = look(m, key, false);
        store_leave(m->store);
        assert_int_equal(removes(m->store, key), was);
        if (was) {
                m->removed++;
                m->known[key].version = 0;
        }
        assert_int_equal(find(m->store, key, false), ABSENT);
}

static enum store_visit visit(void *ctx, const uint8_t *entry, uint32_t popularity)
{
        struct model *m = ctx;
        uint64_t key = entry_key_of(entry);
        assert_true(popularity <= 7);
        check_key(m, key, entry);
        m->seen[key]++;
        if (m->remove_every && key % m->remove_every == 0) {
                m->known[key].version = 0;
                return STORE_REMOVE;
        }
        return STORE_GO_ON;
}

static void do_walk(struct model *m)
{
        memset(m->seen, 0, sizeof m->seen);
        m->remove_every = random_below(&m->random, 3) ? 0 : 2 + random_below(&m->random, 20);
        uint64_t before = stat_entries(m->store), removed = 0, seen = 0, doomed = 0;
        assert_true(store_walk(m->store, visit, m, true, &removed));
        for (unsigned key = 0; key < KEYS; key++) {
                assert_true(m->seen[key] <= 1); /* nobody moves anything meanwhile */
                seen += m->seen[key];
                doomed += m->remove_every && m->seen[key] && key % m->remove_every == 0;
        }
        assert_int_equal(seen, before);
        assert_int_equal(removed, doomed);
        assert_int_equal(stat_entries(m->store), before - removed);
        m->removed += removed;
}

static void do_shrink(struct model *m)
{
        uint64_t before = stat_entries(m->store);
        uint64_t n = random_below(&m->random, 4) ? random_below(&m->random, (uint32_t)before + 2) : 0;
        uint64_t gone = store_shrink(m->store, n, m->now);
        assert_int_equal(stat_entries(m->store), before < n ? before : n);
        assert_int_equal(gone, before < n ? 0 : before - n);
        m->removed += gone;
}

static void run(const struct store_options *options, uint64_t seed)
{
        struct model *m = calloc(1, sizeof *m);
        m->options = *options;
        m->options.hash = test_hash;
        m->random.state = scramble(seed);
        m->now = TEST_NOW;
        assert_int_equal(store_create(&m->options, &m->store), 0);
        for (unsigned step = 0; step < STEPS; step++) {
                uint32_t dice = random_below(&m->random, 10000);
                if (dice < 5500)
                        do_put(m);
                else if (dice < 8500)
                        find(m->store, random_below(&m->random, KEYS / 4), true);
                else if (dice < 9200)
                        do_refresh(m);
                else if (dice < 9960)
                        do_remove(m);
                else if (dice < 9975)
                        do_walk(m);
                else if (dice < 9980)
                        store_maintain(m->store, m->now);
                else if (dice < 9982)
                        do_shrink(m);
                if (dice % 64 == 0)
                        m->now++;
                if (step % 500 == 0)
                        reconcile(m);
        }
        reconcile(m);
        store_destroy(m->store);
        free(m);
}

static unsigned seeds(void)
{
        const char *text = getenv("SARDINE_TEST_SEEDS");
        return text ? (unsigned)atoi(text) : 3;
}

static void run_seeds(const struct store_options *options)
{
        for (unsigned seed = 0; seed < seeds(); seed++)
                run(options, seed);
}

static void all_fits(void **state)
{
        (void)state;
        run_seeds(&(struct store_options){.max_bytes = 8 << 20, .segment_size = 4096});
}

static void bytes_bind(void **state)
{
        (void)state;
        run_seeds(&(struct store_options){.max_bytes = 400 << 10, .segment_size = 4096});
}

static void bytes_bind_with_stale_window(void **state)
{
        (void)state;
        run_seeds(&(struct store_options){.max_bytes = 500 << 10, .segment_size = 8192, .stale_window = 100});
}

static void entries_bind(void **state)
{
        (void)state;
        run_seeds(&(struct store_options){.max_bytes = 2 << 20, .max_entries = 1500, .segment_size = 4096});
}

static void b64_hashes_collide(void **state)
{
        (void)state;
        for (uint32_t bits = 4; bits <= 8; bits += 2)
                run_seeds(
                    &(struct store_options){.max_bytes = 400 << 10, .segment_size = 4096, .hash_bits = bits});
}

static void the_least_store(void **state)
{
        (void)state;
        run_seeds(&(struct store_options){.max_bytes = 72 << 10, .segment_size = 4096});
}

static void without_jemalloc(void **state)
{
        (void)state;
        run_seeds(&(struct store_options){.max_bytes = 400 << 10, .segment_size = 4096, .no_jemalloc = true});
}

static void large_enough_for_huge_pages(void **state)
{
        (void)state;
        run_seeds(&(struct store_options){.max_bytes = 64 << 20});
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(all_fits),
            cmocka_unit_test(bytes_bind),
            cmocka_unit_test(bytes_bind_with_stale_window),
            cmocka_unit_test(entries_bind),
            cmocka_unit_test(b64_hashes_collide),
            cmocka_unit_test(the_least_store),
            cmocka_unit_test(without_jemalloc),
            cmocka_unit_test(large_enough_for_huge_pages),
        };
        return cmocka_run_group_tests_name("store model", tests, NULL, NULL);
}
