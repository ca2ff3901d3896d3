/* SPDX-License-Identifier: MIT
 * Readers, writers and walkers at once; meant for ThreadSanitizer too. Nothing here depends on timing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "store/audit.h"
#include "store/entries.h"

enum {
        PINNED = 300, /* keys that are there all the time */
        NOISE = 6000, /* keys that come and go */
        READERS = 3,
        ROUNDS = 4,
};

struct stress {
        struct store *store;
        bool pinned_stay; /* the budget is so large that nothing is evicted */
        _Atomic bool stop;
        /* Else nothing but the odd noise is evicted, when a walker bars the way to a free slot: it expires
         * before the pinned keys and is not popular. */
        _Atomic uint64_t missed, torn, went_back, foreign;
        _Atomic uint64_t found, walks, unseen;
};

static void *reader(void *arg)
{
        struct stress *s = arg;
        struct random random = {scramble((uintptr_t)&random)};
        uint32_t versions[PINNED] = {0};
        while (!atomic_load(&s->stop)) {
                uint64_t key = random_below(&random, PINNED + PINNED / 4);
                if (key >= PINNED)
                        key = PINNED + random_below(&random, NOISE);
                int64_t version = find(s->store, key, key < PINNED && random_below(&random, 4) == 0);
                if (version == TORN)
                        atomic_fetch_add(&s->torn, 1);
                if (version >= 0)
                        atomic_fetch_add(&s->found, 1);
                if (key >= PINNED)
                        continue;
                if (version == ABSENT)
                        atomic_fetch_add(&s->missed, 1);
                else if (version < versions[key])
                        atomic_fetch_add(&s->went_back, 1);
                else
                        versions[key] = (uint32_t)version;
        }
        return NULL;
}

struct seen {
        struct stress *stress;
        uint8_t key[PINNED];
};

static enum store_visit visit(void *ctx, const uint8_t *entry, uint32_t popularity)
{
        (void)popularity;
        struct seen *seen = ctx;
        if (!entry_sound(entry))
                atomic_fetch_add(&seen->stress->torn, 1);
        uint64_t key = entry_key_of(entry);
        if (key < PINNED)
                seen->key[key] = 1;
        return key >= PINNED && key % 64 == 0 ? STORE_REMOVE : STORE_GO_ON;
}

static void release(struct store_purge *purge)
{
        free(purge);
}

static bool dooms_noise(const struct store_purge *purge, const uint8_t *entry)
{
        (void)purge;
        uint64_t key = entry_key_of(entry);
        return key >= PINNED && key % 64 == 1;
}

static void *walker(void *arg)
{
        struct stress *s = arg;
        while (!atomic_load(&s->stop)) {
                struct seen seen = {.stress = s};
                store_walk(s->store, visit, &seen, true, NULL);
                struct store_purge *purge = malloc(sizeof *purge);
                purge->dooms = dooms_noise;
                purge->release = release;
                store_lock(s->store);
                store_purge_begin_locked(s->store, purge);
                store_unlock(s->store);
                store_purge(s->store, purge);
                atomic_fetch_add(&s->walks, 1);
                for (unsigned i = 0; i < PINNED; i++)
                        if (!seen.key[i])
                                atomic_fetch_add(&s->unseen, 1);
        }
        return NULL;
}

/* Sizes and order so that the index grows, slots are displaced, segments are compacted and used again. */
static void *writer(void *arg)
{
        struct stress *s = arg;
        struct random random = {scramble((uintptr_t)&random)};
        uint32_t version = 1;
        for (unsigned round = 0; round < ROUNDS; round++) {
                for (unsigned i = 0; i < NOISE; i++) {
                        uint32_t size = (TEST_ENTRY_LEAST + random_below(&random, 200)) & ~3u;
                        put(s->store, PINNED + i, ++version, size, TEST_NOW + 500, TEST_NOW);
                        if (i % 3 == 0)
                                put(s->store, random_below(&random, PINNED), ++version, size, TEST_NOW + 1000,
                                    TEST_NOW);
                        if (i % 16 == 0)
                                removes(s->store, PINNED + random_below(&random, NOISE));
                }
                for (unsigned i = 0; i < NOISE; i++)
                        removes(s->store, PINNED + i);
                store_maintain(s->store, TEST_NOW);
        }
        return NULL;
}

static void run(struct stress *s, const struct store_options *options)
{
        struct store_options with = *options;
        with.hash = test_hash;
        assert_int_equal(store_create(&with, &s->store), 0);
        for (unsigned key = 0; key < PINNED; key++)
                assert_int_equal(put(s->store, key, 1, 100, TEST_NOW + 1000, TEST_NOW), 0);
        pthread_t readers[READERS], walks, writes;
        for (unsigned i = 0; i < READERS; i++)
                assert_int_equal(pthread_create(&readers[i], NULL, reader, s), 0);
        assert_int_equal(pthread_create(&walks, NULL, walker, s), 0);
        /* Nobody may be late: the writer does not wait for anybody. */
        while (s->found == 0 || s->walks == 0)
                sched_yield();
        assert_int_equal(pthread_create(&writes, NULL, writer, s), 0);
        pthread_join(writes, NULL);
        atomic_store(&s->stop, true);
        pthread_join(walks, NULL);
        for (unsigned i = 0; i < READERS; i++)
                pthread_join(readers[i], NULL);
        audit(s->store);
        assert_int_equal(s->torn, 0);
        if (s->pinned_stay) {
                struct store_stats stats;
                store_stats_get(s->store, &stats);
                assert_int_equal(stats.expired, 0);
                assert_true(stats.evicted < NOISE / 50);
                assert_true(stats.moved > 0);
                assert_int_equal(s->missed, 0);
                assert_int_equal(s->went_back, 0);
                assert_int_equal(s->unseen, 0);
        }
        store_destroy(s->store);
}

static void b82_what_is_there_is_found(void **state)
{
        (void)state;
        struct stress s = {.pinned_stay = true};
        run(&s, &(struct store_options){.max_bytes = 4 << 20, .segment_size = 4096});
}

static void b82_with_colliding_hashes(void **state)
{
        (void)state;
        struct stress s = {.pinned_stay = true};
        run(&s, &(struct store_options){.max_bytes = 4 << 20, .segment_size = 4096, .hash_bits = 12});
}

static void b83_under_eviction(void **state)
{
        (void)state;
        struct stress s = {0};
        run(&s, &(struct store_options){.max_bytes = 256 << 10, .segment_size = 4096});
}

static void b83_few_entries(void **state)
{
        (void)state;
        struct stress s = {0};
        run(&s, &(struct store_options){.max_bytes = 1 << 20, .max_entries = 500});
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(b82_what_is_there_is_found),
            cmocka_unit_test(b82_with_colliding_hashes),
            cmocka_unit_test(b83_under_eviction),
            cmocka_unit_test(b83_few_entries),
        };
        return cmocka_run_group_tests_name("store stress", tests, NULL, NULL);
}
