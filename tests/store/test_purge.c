/* SPDX-License-Identifier: MIT
 * Purges: gone from the first moment, whatever happens until all is removed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "store/audit.h"
#include "store/entries.h"
#include "store/store_impl.h"

enum {
        FAR = TEST_NOW + 100000,
        KEYS = 600,
        THIRD = 3,
};

/* Dooms every key that is a multiple of `every`. */
struct every {
        struct store_purge purge;
        uint64_t every;
};

static void release(struct store_purge *purge)
{
        free(purge);
}

static bool dooms(const struct store_purge *purge, const uint8_t *entry)
{
        return entry_key_of(entry) % ((const struct every *)purge)->every == 0;
}

static struct store_purge *begin(struct store *store, uint64_t every)
{
        struct every *e = malloc(sizeof *e);
        e->purge.dooms = dooms;
        e->purge.release = release;
        e->every = every;
        store_lock(store);
        store_purge_begin_locked(store, &e->purge);
        store_unlock(store);
        return &e->purge;
}

static struct store *make(uint64_t max_bytes)
{
        struct store *store;
        struct store_options options = {.hash = test_hash, .max_bytes = max_bytes, .segment_size = 4096};
        assert_int_equal(store_create(&options, &store), 0);
        return store;
}

static void fill(struct store *store, uint32_t version)
{
        for (uint64_t key = 0; key < KEYS; key++)
                put(store, key, version, 64, FAR, TEST_NOW);
}

static int64_t find_locked(struct store *store, uint64_t key)
{
        store_lock(store);
        const uint8_t *entry = store_find_locked(store, key_hash(key), test_match, &key);
        int64_t version = entry ? (int64_t)entry_version_of(entry) : ABSENT;
        store_unlock(store);
        return version;
}

static enum store_visit spared(void *ctx, const uint8_t *entry, uint32_t popularity)
{
        (void)popularity;
        assert_true(entry_key_of(entry) % THIRD != 0 || entry_version_of(entry) == 2);
        ++*(unsigned *)ctx;
        return STORE_GO_ON;
}

static void b69_b70_gone_at_once_and_newer_ones_stay(void **state)
{
        (void)state;
        struct store *store = make(1 << 20);
        fill(store, 1);
        struct store_purge *purge = begin(store, THIRD);
        for (uint64_t key = 0; key < KEYS; key++) {
                assert_int_equal(find(store, key, true), key % THIRD ? 1 : ABSENT);
                assert_int_equal(find_locked(store, key), key % THIRD ? 1 : ABSENT);
        }
        for (uint64_t key = 0; key < KEYS / 2; key += THIRD)
                put(store, key, 2, 64, FAR, TEST_NOW);
        unsigned seen = 0;
        assert_true(store_walk(store, spared, &seen, false, NULL));
        assert_int_equal(seen, KEYS - KEYS / THIRD / 2);
        assert_int_equal(store_purge(store, purge), KEYS / THIRD / 2);
        for (uint64_t key = 0; key < KEYS; key++)
                assert_int_equal(find(store, key, false), key % THIRD ? 1 : key < KEYS / 2 ? 2 : ABSENT);
        audit(store);
        /* The next one is not held up by what the last one spared. */
        assert_int_equal(store_purge(store, begin(store, 1)), KEYS - KEYS / THIRD / 2);
        assert_int_equal(stat_entries(store), 0);
        store_destroy(store);
}

/* Popular ones would be copied to where new ones are. */
static void b70_reclaiming_brings_nothing_back(void **state)
{
        (void)state;
        for (uint64_t max_bytes = 96 << 10; max_bytes <= 256 << 10; max_bytes += 32 << 10) {
                struct store *store = make(max_bytes);
                fill(store, 1);
                for (unsigned n = 0; n < 20; n++)
                        for (uint64_t key = 0; key < KEYS; key++)
                                find(store, key, true);
                struct store_purge *purge = begin(store, THIRD);
                for (uint64_t other = KEYS; other < 20 * KEYS; other++) {
                        put(store, other, 1, 64, FAR, TEST_NOW);
                        for (uint64_t key = other % 64; key < KEYS; key += 64) {
                                int64_t found = find(store, key, true);
                                assert_true(found == ABSENT || (found == 1 && key % THIRD != 0));
                        }
                        if (other % 16 == 0 && other % THIRD != 0) /* holes, for compaction */
                                removes(store, other - 8);
                }
                store_purge(store, purge);
                for (uint64_t key = 0; key < KEYS; key += THIRD)
                        assert_int_equal(find(store, key, false), ABSENT);
                struct store_stats stats;
                store_stats_get(store, &stats);
                assert_true(stats.moved > 0);
                audit(store);
                store_destroy(store);
        }
}

static void b83_purges_overlap_and_end_in_any_order(void **state)
{
        (void)state;
        for (unsigned order = 0; order < 2; order++) {
                struct store *store = make(1 << 20);
                fill(store, 1);
                struct store_purge *first = begin(store, 2);
                put(store, 0, 2, 64, FAR, TEST_NOW);
                struct store_purge *second = begin(store, 3);
                put(store, 6, 2, 64, FAR, TEST_NOW);
                assert_int_equal(find(store, 0, false), ABSENT); /* the second dooms that, too */
                uint64_t removed = store_purge(store, order ? first : second);
                for (uint64_t key = 0; key < KEYS; key++)
                        assert_int_equal(find(store, key, false), key == 6                       ? 2
                                                                  : key % 2 == 0 || key % 3 == 0 ? ABSENT
                                                                                                 : 1);
                removed += store_purge(store, order ? second : first);
                assert_int_equal(removed, KEYS / 2 + KEYS / 6 - 1);
                assert_int_equal(stat_entries(store), KEYS / 3 + 1);
                audit(store);
                store_destroy(store);
        }
}

/* A reader that is in the middle of asking a purge when that ends. */
struct asked {
        struct store_purge purge;
        sem_t *arrived, *go;
        uint64_t doomed;
};

static _Thread_local bool slow;

static bool dooms_slowly(const struct store_purge *purge, const uint8_t *entry)
{
        const struct asked *asked = (const struct asked *)purge;
        if (slow) {
                sem_post(asked->arrived);
                sem_wait(asked->go);
        }
        return entry_key_of(entry) == asked->doomed; /* reads what must not be freed yet */
}

static void *ask(void *store)
{
        slow = true;
        return (void *)(intptr_t)find(store, 7, false);
}

static void b82_b83_reader_asks_while_the_purge_ends(void **state)
{
        (void)state;
        struct store *store = make(1 << 20);
        fill(store, 1);
        sem_t arrived, go;
        sem_init(&arrived, 0, 0);
        sem_init(&go, 0, 0);
        struct asked *asked = malloc(sizeof *asked);
        *asked = (struct asked){.purge.dooms = dooms_slowly,
                                .purge.release = release,
                                .arrived = &arrived,
                                .go = &go,
                                .doomed = 7};
        store_lock(store);
        store_purge_begin_locked(store, &asked->purge);
        store_unlock(store);
        pthread_t reader;
        void *found;
        assert_int_equal(pthread_create(&reader, NULL, ask, store), 0);
        sem_wait(&arrived);
        assert_int_equal(store_purge(store, &asked->purge), 1);
        assert_int_equal(store_purge(store, begin(store, 100)), KEYS / 100);
        sem_post(&go);
        pthread_join(reader, &found);
        assert_int_equal((intptr_t)found, ABSENT);
        store_destroy(store);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(b69_b70_gone_at_once_and_newer_ones_stay),
            cmocka_unit_test(b70_reclaiming_brings_nothing_back),
            cmocka_unit_test(b83_purges_overlap_and_end_in_any_order),
            cmocka_unit_test(b82_b83_reader_asks_while_the_purge_ends),
        };
        return cmocka_run_group_tests_name("store/purge", tests, NULL, NULL);
}
