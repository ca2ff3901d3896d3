/* SPDX-License-Identifier: MIT
 * Interleavings, forced: a reader or a walker stops in the middle of its work, inside a callback, while the
 * writer does the worst; then it goes on. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include "store/audit.h"
#include "store/entries.h"
#include "store/epoch.h"
#include "store/store_impl.h"

enum {
        FAR = TEST_NOW + 100000,
};

struct gate {
        sem_t arrived, go;
};

static void gate_init(struct gate *gate)
{
        sem_init(&gate->arrived, 0, 0);
        sem_init(&gate->go, 0, 0);
}

/* Of the thread that stops. */
static void gate_stop(struct gate *gate)
{
        sem_post(&gate->arrived);
        sem_wait(&gate->go);
}

/* Of the one that makes trouble meanwhile. */
static void gate_await(struct gate *gate)
{
        sem_wait(&gate->arrived);
}

static void gate_open(struct gate *gate)
{
        sem_post(&gate->go);
}

/* Hashes that the tests choose: the part that the index keeps is the low 29 bits of the key. */
static uint64_t chosen_hash(uint64_t key)
{
        return key << (64 - HASH_BITS);
}

static uint64_t chosen_hash_of(const void *ctx, const uint8_t *entry)
{
        (void)ctx;
        return chosen_hash(entry_key_of(entry));
}

static int put_chosen(struct store *store, uint64_t key, uint32_t version)
{
        _Alignas(4) uint8_t buf[64];
        entry_make(buf, key, version, sizeof buf, FAR);
        store_lock(store);
        int result = store_put_locked(store, chosen_hash(key), test_match, &key, buf, TEST_NOW);
        store_unlock(store);
        return result;
}

static int64_t find_chosen(struct store *store, uint64_t key)
{
        store_enter(store);
        const uint8_t *entry = store_find(store, chosen_hash(key), test_match, &key, false, NULL);
        int64_t result = entry ? (int64_t)entry_version_of(entry) : ABSENT;
        store_leave(store);
        return result;
}

static struct store *make(struct store_options options)
{
        struct store *store;
        if (!options.hash)
                options.hash = test_hash;
        assert_int_equal(store_create(&options, &store), 0);
        return store;
}

/* A reader that finds a key and keeps reading its entry until it is let go. */
struct holder {
        struct store *store;
        struct gate gate;
        pthread_t thread;
        uint64_t key;
        bool found, sound;
};

static void *hold(void *arg)
{
        struct holder *h = arg;
        store_enter(h->store);
        const uint8_t *entry = store_find(h->store, key_hash(h->key), test_match, &h->key, false, NULL);
        h->found = entry;
        gate_stop(&h->gate);
        h->sound = entry && entry_sound(entry) && entry_key_of(entry) == h->key;
        store_leave(h->store);
        return NULL;
}

static void hold_begin(struct holder *h, struct store *store, uint64_t key)
{
        *h = (struct holder){.store = store, .key = key};
        gate_init(&h->gate);
        assert_int_equal(pthread_create(&h->thread, NULL, hold, h), 0);
        gate_await(&h->gate);
        assert_true(h->found);
}

static void hold_end(struct holder *h)
{
        gate_open(&h->gate);
        pthread_join(h->thread, NULL);
        assert_true(h->sound);
}

static void b82_reader_in_a_segment_that_is_reclaimed(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.max_bytes = 256 << 10, .segment_size = 4096});
        put(store, 1, 1, 100, FAR, TEST_NOW);
        struct holder holder;
        hold_begin(&holder, store, 1);
        /* Nothing can be used again as long as the reader is there, so the store fills up, and evicts ... */
        uint64_t next = 2;
        while (put(store, next, 1, 100, FAR, TEST_NOW) == 0)
                assert_int_equal(find(store, next++, false), 1);
        assert_int_equal(put(store, next, 1, 100, FAR, TEST_NOW), -ENOMEM);
        assert_true(next > 1500);
        assert_int_equal(find(store, 1, false), ABSENT);
        audit(store);
        hold_end(&holder);
        /* ... and goes on when it has left. */
        for (unsigned n = 0; n < 5000; n++, next++)
                assert_int_equal(put(store, next, 1, 100, FAR, TEST_NOW), 0);
        audit(store);
        store_destroy(store);
}

static void b82_reader_while_everything_is_expunged(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.max_bytes = 8 << 20});
        uint64_t empty;
        struct store_stats stats;
        store_stats_get(store, &stats);
        empty = stats.bytes;
        for (uint64_t key = 0; key < 20000; key++)
                put(store, key, 1, 100, FAR, TEST_NOW);
        struct holder holder;
        hold_begin(&holder, store, 77);
        assert_int_equal(store_shrink(store, 0, TEST_NOW), 20000);
        for (uint64_t key = 0; key < 20000; key++)
                assert_int_equal(find(store, key, false), ABSENT);
        assert_int_equal(put(store, 77, 2, 100, FAR, TEST_NOW), 0);
        hold_end(&holder);
        assert_int_equal(find(store, 77, false), 2);
        audit(store);
        /* The memory that the reader kept goes back later. */
        assert_int_equal(store_shrink(store, 0, TEST_NOW), 1);
        store_stats_get(store, &stats);
        assert_int_equal(stats.bytes, empty);
        store_destroy(store);
}

static void reader_while_the_entry_is_replaced_and_moved(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.max_bytes = 1 << 20, .segment_size = 4096});
        put(store, 1, 1, 100, FAR, TEST_NOW);
        struct holder holder;
        hold_begin(&holder, store, 1);
        for (uint32_t version = 2; version < 200; version++) {
                assert_int_equal(put(store, 1, version, 500, FAR, TEST_NOW), 1);
                assert_int_equal(find(store, 1, false), version);
        }
        assert_true(removes(store, 1));
        hold_end(&holder);
        audit(store);
        store_destroy(store);
}

/* A reader that stops at the first entry that it compares. */
struct seeker {
        struct store *store;
        struct gate gate;
        pthread_t thread;
        uint64_t key;
        unsigned compared;
        int64_t found;
};

static bool match_and_stop(const void *ctx, const uint8_t *entry)
{
        struct seeker *s = (struct seeker *)ctx;
        if (s->compared++ == 0)
                gate_stop(&s->gate);
        return entry_key_of(entry) == s->key;
}

static void *seek(void *arg)
{
        struct seeker *s = arg;
        store_enter(s->store);
        const uint8_t *entry = store_find(s->store, chosen_hash(s->key), match_and_stop, s, false, NULL);
        s->found = entry ? (int64_t)entry_version_of(entry) : ABSENT;
        store_leave(s->store);
        return NULL;
}

static void seek_begin(struct seeker *s, struct store *store, uint64_t key)
{
        *s = (struct seeker){.store = store, .key = key};
        gate_init(&s->gate);
        assert_int_equal(pthread_create(&s->thread, NULL, seek, s), 0);
        gate_await(&s->gate);
}

static void seek_end(struct seeker *s)
{
        gate_open(&s->gate);
        pthread_join(s->thread, NULL);
}

static uint64_t twin(uint64_t key)
{
        return key | UINT64_C(1) << 40;
}

static uint64_t second(uint32_t hash, uint64_t size)
{
        return index_address(index_mix(hash), size);
}

/* The key is in its second bucket, its twin of the same hash in the first. The reader is busy with the twin
 * while the second bucket is split, and the key moves. */
static void b82_split_during_a_lookup(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.hash = chosen_hash_of, .max_bytes = 1 << 20});
        uint32_t key = 1;
        while (index_address(key, 64) == second(key, 64) || second(key, 128) == second(key, 64))
                key++;
        put_chosen(store, twin(key), 1);
        put_chosen(store, key, 2);
        slot_t *before = &store->index.buckets[second(key, 64)].slot[SLOTS - 1];
        assert_int_equal(slot_hash(slot_get(before)), key);
        struct seeker seeker;
        seek_begin(&seeker, store, key);
        for (uint64_t other = 1000; index_size(&store->index) < 128; other++)
                put_chosen(store, scramble(other) & ((1u << HASH_BITS) - 1), 1);
        assert_int_equal(find_chosen(store, key), 2);
        assert_int_not_equal(slot_hash(slot_get(before)), key);
        seek_end(&seeker);
        assert_int_equal(seeker.found, 2);
        audit(store);
        store_destroy(store);
}

/* As above, but the key is moved to the part of the first bucket where the reader has been already. */
static void b82_displacement_during_a_lookup(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.hash = chosen_hash_of, .max_bytes = 1 << 20});
        uint32_t key = 1;
        while (index_address(key, 64) == second(key, 64))
                key++;
        put_chosen(store, twin(key), 1);
        put_chosen(store, key, 2);
        struct bucket *first = &store->index.buckets[index_address(key, 64)];
        assert_int_equal(slot_hash(slot_get(&first->slot[SLOTS - 1])), key); /* the twin */
        struct seeker seeker;
        seek_begin(&seeker, store, key);
        /* Entries that can be in the second bucket only. */
        unsigned crowd = 0;
        for (uint32_t other = key + 1; crowd < SLOTS; other++)
                if (index_address(other, 64) == second(key, 64) && second(other, 64) == second(key, 64)) {
                        assert_int_equal(put_chosen(store, other, 1), 0);
                        crowd++;
                }
        assert_int_equal(slot_hash(slot_get(&first->slot[SLOTS - 2])), key); /* itself */
        seek_end(&seeker);
        assert_int_equal(seeker.found, 2);
        audit(store);
        store_destroy(store);
}

/* A lookup that finds nothing, and rightly so, ends although the twin is there and everything moves. */
static void b82_miss_is_a_miss(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.hash = chosen_hash_of, .max_bytes = 1 << 20});
        const uint32_t key = 5;
        put_chosen(store, twin(key), 1);
        struct seeker seeker;
        seek_begin(&seeker, store, key);
        for (uint64_t other = 1000; index_size(&store->index) < 256; other++)
                put_chosen(store, scramble(other) & ((1u << HASH_BITS) - 1), 1);
        seek_end(&seeker);
        assert_int_equal(seeker.found, ABSENT);
        store_destroy(store);
}

/* Everything goes, and with it the part of the index where the reader was about to look. */
static void b82_wipe_during_a_lookup(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.hash = chosen_hash_of, .max_bytes = 2 << 20});
        for (uint64_t other = 1000; index_size(&store->index) < 512; other++)
                put_chosen(store, scramble(other) & ((1u << HASH_BITS) - 1), 1);
        assert_int_equal(index_size(&store->index), 512);
        uint32_t key = 1;
        while (second(key, 512) < 256 || second(key, 512) == index_address(key, 512))
                key++;
        put_chosen(store, twin(key), 1);
        struct seeker seeker;
        seek_begin(&seeker, store, key);
        store_lock(store);
        store_wipe_locked(store);
        store_unlock(store);
        assert_int_equal(index_size(&store->index), BUCKETS_MIN);
        put_chosen(store, key, 2);
        seek_end(&seeker);
        assert_int_equal(seeker.found, 2);
        audit(store);
        store_destroy(store);
}

/* A walker that stops at one entry, and perhaps has doomed others. */
struct stroller {
        struct store *store;
        struct gate gate;
        pthread_t thread;
        uint64_t stop_at, doomed;
        uint32_t doomed_version; /* 0: any */
        bool stopped;
        unsigned n_seen, n_doomed;
        uint64_t removed;
        uint8_t seen[4096];
};

static enum store_visit stroll_visit(void *ctx, const uint8_t *entry, uint32_t popularity)
{
        (void)popularity;
        struct stroller *s = ctx;
        uint64_t key = entry_key_of(entry);
        s->n_seen++;
        if (key < sizeof s->seen)
                s->seen[key] = 1;
        if (!s->stopped && (s->stop_at == UINT64_MAX || key == s->stop_at)) {
                s->stopped = true;
                gate_stop(&s->gate);
        }
        if (key == s->doomed && (!s->doomed_version || entry_version_of(entry) == s->doomed_version)) {
                s->n_doomed++;
                return STORE_REMOVE;
        }
        return STORE_GO_ON;
}

static void *stroll(void *arg)
{
        struct stroller *s = arg;
        store_walk(s->store, stroll_visit, s, true, &s->removed);
        return NULL;
}

static void stroll_begin(struct stroller *s, struct store *store, uint64_t stop_at, uint64_t doomed)
{
        memset(s, 0, sizeof *s);
        s->store = store;
        s->stop_at = stop_at;
        s->doomed = doomed;
        gate_init(&s->gate);
        assert_int_equal(pthread_create(&s->thread, NULL, stroll, s), 0);
        gate_await(&s->gate);
}

static void stroll_end(struct stroller *s)
{
        gate_open(&s->gate);
        pthread_join(s->thread, NULL);
}

static void walk_sees_all_while_the_index_grows(void **state)
{
        (void)state;
        static struct stroller stroller;
        /* Stop at the very first entry, and at some in the middle. */
        for (uint64_t stop_at = 0; stop_at < 12; stop_at++) {
                struct store *store =
                    make((struct store_options){.max_bytes = 4 << 20, .segment_size = 4096});
                for (uint64_t key = 0; key < 4096; key++)
                        put(store, key, 1, 64, FAR, TEST_NOW);
                stroll_begin(&stroller, store, stop_at ? stop_at * 300 : UINT64_MAX, UINT64_MAX);
                /* A walker that stands still bars the way to some free slots: a few entries have to go. */
                uint8_t gone[4096] = {0};
                unsigned n_gone = 0;
                for (uint64_t key = 4096; key < 16384; key++) {
                        put(store, key, 1, 64, FAR, TEST_NOW);
                        if (put(store, key % 4096, 2, 64, FAR, TEST_NOW) == 0)
                                gone[key % 4096] = 1;
                }
                for (unsigned key = 0; key < 4096; key++)
                        n_gone += gone[key] |= find(store, key, false) == ABSENT;
                stroll_end(&stroller);
                for (unsigned key = 0; key < 4096; key++)
                        assert_true(gone[key] || stroller.seen[key]);
                assert_true(n_gone < 4096 / 20);
                audit(store);
                store_destroy(store);
        }
}

/* What the visitor wants removed is replaced, after it was seen and before it could be removed. */
static void b70_removal_meets_replacement(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.hash = chosen_hash_of, .max_bytes = 1 << 20});
        put_chosen(store, 0, 1);
        put_chosen(store, 1, 1);
        assert_int_equal(slot_hash(slot_get(&store->index.buckets[1].slot[SLOTS - 1])), 1);
        static struct stroller stroller;
        stroll_begin(&stroller, store, 1, 0);
        assert_int_equal(stroller.n_doomed, 1);
        assert_int_equal(put_chosen(store, 0, 2), 1);
        stroll_end(&stroller);
        assert_int_equal(stroller.n_doomed, 2);
        assert_int_equal(stroller.removed, 1);
        assert_int_equal(find_chosen(store, 0), ABSENT);
        assert_int_equal(find_chosen(store, 1), 1);
        struct store_stats stats;
        store_stats_get(store, &stats);
        assert_int_equal(stats.expunged, 1);
        assert_int_equal(stats.entries, 1);
        store_destroy(store);
}

static bool nobody_reads(void)
{
        uint64_t tag = epoch_retire();
        return tag < epoch_horizon();
}

/* Under the lock, which the walker is waiting for: put until the key's entry is where its first one was, in
 * the same segment, opened again. The slot cannot be told from the one that the walker has seen. */
static void use_again(struct store *store, uint64_t key, uint64_t value)
{
        _Alignas(4) uint8_t buf[4096];
        for (uint64_t other = 1000;; other++) {
                assert_true(other < 100000);
                uint32_t room = log_room(&store->log, CLASS_NEW);
                uint64_t k = room ? other : key;
                entry_make(buf, k, room ? 1 : 2, room ? room : 64, FAR);
                assert_true(store_put_locked(store, chosen_hash(k), test_match, &k, buf, TEST_NOW) >= 0);
                const uint8_t *entry = store_find_locked(store, chosen_hash(key), test_match, &key);
                slot_t *slot = index_slot_of(&store->index, (uint32_t)key, slot_location(value));
                if (entry && entry_version_of(entry) == 2 && slot && slot_get(slot) == value)
                        return;
        }
}

/* What the visitor wants removed is evicted, and something newer is at the same place. */
static void b70_removal_meets_a_place_used_again(void **state)
{
        (void)state;
        struct store *store =
            make((struct store_options){.hash = chosen_hash_of, .max_bytes = 96 << 10, .segment_size = 4096});
        put_chosen(store, 1, 1);
        slot_t *slot = &store->index.buckets[1].slot[SLOTS - 1];
        uint64_t value = slot_get(slot);
        assert_int_equal(slot_hash(value), 1);
        static struct stroller stroller;
        stroll_begin(&stroller, store, 1, 1);
        stroller.doomed_version = 1;
        store_lock(store);
        gate_open(&stroller.gate);
        while (!nobody_reads())
                sched_yield();
        use_again(store, 1, value);
        store_unlock(store);
        pthread_join(stroller.thread, NULL);
        assert_int_equal(stroller.removed, 0);
        assert_int_equal(stroller.n_doomed, 1);
        assert_int_equal(find_chosen(store, 1), 2);
        audit(store);
        store_destroy(store);
}

/* The same, but somebody else has removed it. */
static void b70_removal_meets_removal(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.hash = chosen_hash_of, .max_bytes = 1 << 20});
        put_chosen(store, 0, 1);
        put_chosen(store, 1, 1);
        static struct stroller stroller;
        stroll_begin(&stroller, store, 1, 0);
        store_lock(store);
        assert_true(store_remove_locked(store, chosen_hash(0), test_match, &(uint64_t){0}));
        store_unlock(store);
        stroll_end(&stroller);
        assert_int_equal(stroller.removed, 0);
        struct store_stats stats;
        store_stats_get(store, &stats);
        assert_int_equal(stats.expunged, 1);
        assert_int_equal(stats.entries, 1);
        store_destroy(store);
}

/* Everything goes while a walker is in the middle. */
static void walk_meets_shrink(void **state)
{
        (void)state;
        struct store *store = make((struct store_options){.max_bytes = 4 << 20});
        for (uint64_t key = 0; key < 4096; key++)
                put(store, key, 1, 64, FAR, TEST_NOW);
        static struct stroller stroller;
        stroll_begin(&stroller, store, 2000, 2000);
        assert_int_equal(store_shrink(store, 0, TEST_NOW), 4096);
        put(store, 5000, 1, 64, FAR, TEST_NOW);
        stroll_end(&stroller);
        assert_int_equal(stroller.removed, 0);
        assert_int_equal(find(store, 5000, false), 1);
        audit(store);
        store_destroy(store);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(b82_reader_in_a_segment_that_is_reclaimed),
            cmocka_unit_test(b82_reader_while_everything_is_expunged),
            cmocka_unit_test(reader_while_the_entry_is_replaced_and_moved),
            cmocka_unit_test(b82_split_during_a_lookup),
            cmocka_unit_test(b82_displacement_during_a_lookup),
            cmocka_unit_test(b82_miss_is_a_miss),
            cmocka_unit_test(b82_wipe_during_a_lookup),
            cmocka_unit_test(walk_sees_all_while_the_index_grows),
            cmocka_unit_test(b70_removal_meets_replacement),
            cmocka_unit_test(b70_removal_meets_a_place_used_again),
            cmocka_unit_test(b70_removal_meets_removal),
            cmocka_unit_test(walk_meets_shrink),
        };
        return cmocka_run_group_tests_name("store races", tests, NULL, NULL);
}
