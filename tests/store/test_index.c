/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

#include "store/entries.h"
#include "store/index.h"

enum {
        SEEDS = 400, /* two moves are not enough for some of them */
};

static const uint32_t mask = (1u << HASH_BITS) - 1;

static void growth_moves_to_the_new_bucket_only(void **state)
{
        (void)state;
        struct random random = {1};
        for (uint64_t size = BUCKETS_MIN; size < 1100; size++) {
                uint64_t split = size;
                while (split >= size)
                        split -= UINT64_C(1) << (63 - __builtin_clzll(size));
                for (unsigned n = 0; n < 500; n++) {
                        uint32_t hash = (uint32_t)random_next(&random) & mask;
                        uint64_t before = index_address(hash, size), after = index_address(hash, size + 1);
                        assert_true(before < size && after <= size);
                        assert_true(after == before || (before == split && after == size));
                }
        }
}

/* The quick comparison and the plain one say the same, whatever is in the slots. */
static void hashes_are_found_where_they_are(void **state)
{
        (void)state;
        struct random random = {2};
        struct bucket room[3];
        for (unsigned n = 0; n < 20000; n++) {
                struct bucket *const bucket[2] = {&room[n % 3], &room[n % 7 % 3]};
                const uint32_t hash = (uint32_t)random_next(&random) & mask;
                unsigned expected = 0;
                for (unsigned i = 0; i < 3 * SLOTS; i++) {
                        /* The same one, one with a single bit changed, any, or none. */
                        uint64_t r = random_next(&random), low = r & UINT64_C(0x7ffffffff);
                        uint32_t other = i % 4 == 0   ? hash
                                         : i % 4 == 1 ? hash ^ 1u << r % HASH_BITS
                                                      : (uint32_t)(r >> 35);
                        slot_set(&room[i / SLOTS].slot[i % SLOTS],
                                 i % 5 == 4 ? 0 : (uint64_t)other << 35 | low);
                }
                for (unsigned i = 0; i < 2 * SLOTS; i++)
                        if (slot_hash(slot_get(&bucket[i / SLOTS]->slot[i % SLOTS])) == hash)
                                expected |= 1u << i;
                assert_int_equal(index_alike(bucket, hash), expected);
                assert_int_equal(index_alike_plain(bucket, hash), expected);
        }
}

static uint32_t inverse_multiplier(uint32_t odd)
{
        uint32_t inverse = odd;
        for (unsigned n = 0; n < 5; n++)
                inverse *= 2 - odd * inverse;
        return inverse;
}

static uint32_t unshift(uint32_t value, unsigned by)
{
        uint32_t result = value;
        for (unsigned n = 0; n < 4; n++)
                result = value ^ result >> by;
        return result;
}

static void mix_is_a_bijection(void **state)
{
        (void)state;
        struct random random = {2};
        for (unsigned n = 0; n < 100000; n++) {
                uint32_t hash = (uint32_t)random_next(&random) & mask;
                uint32_t back = unshift(index_mix(hash), 15);
                back = back * inverse_multiplier(0x297a2d39u) & mask;
                back = unshift(back, 14);
                back = back * inverse_multiplier(0x2c1b3c6du) & mask;
                assert_int_equal(unshift(back, 15), hash);
        }
}

/* At every size an entry costs between 9 and 9.5 bytes of buckets, and always finds a slot. */
static void every_size_is_as_full(void **state)
{
        (void)state;
        struct index index;
        assert_int_equal(index_init(&index, 60000, false), 0);
        struct random random = {3};
        uint32_t *hashes = malloc(400000 * sizeof *hashes);
        uint64_t entries = 0;
        for (; entries < 400000; entries++) {
                while (entries >= index_size(&index) * SLOTS_FULL)
                        index_split(&index, 0);
                uint32_t hash = (uint32_t)random_next(&random) & mask;
                slot_t *slot = index_vacancy(&index, hash);
                assert_non_null(slot);
                slot_set(slot, slot_make(hash, 0, (uint32_t)entries + 1));
                hashes[entries] = hash;
                if (entries < 10000 || entries % 1000 != 0)
                        continue;
                double bytes = (double)index_size(&index) * sizeof(struct bucket) / (double)entries;
                assert_true(bytes > 9.0 && bytes < 9.5);
        }
        for (uint64_t n = 0; n < entries; n++) {
                slot_t *slot = index_slot_of(&index, hashes[n], (uint32_t)n + 1);
                assert_non_null(slot);
                assert_int_equal(slot_hash(slot_get(slot)), hashes[n]);
        }
        free(hashes);
        index_fini(&index);
}

/* While a table is small, the luck of single buckets counts for more. */
static void small_tables_have_a_slot_for_all(void **state)
{
        (void)state;
        for (unsigned seed = 1; seed <= SEEDS; seed++) {
                struct index index;
                struct random random = {seed};
                assert_int_equal(index_init(&index, 4000, false), 0);
                for (uint64_t entries = 0; entries < 20000; entries++) {
                        while (entries >= index_size(&index) * SLOTS_FULL)
                                index_split(&index, 0);
                        uint32_t hash = (uint32_t)random_next(&random) & mask;
                        slot_t *slot = index_vacancy(&index, hash);
                        assert_non_null(slot);
                        slot_set(slot, slot_make(hash, 0, (uint32_t)entries + 1));
                }
                index_fini(&index);
        }
}

/* While a walker is in the middle, nothing moves from ahead of it to behind it. */
static void slots_do_not_pass_a_walker(void **state)
{
        (void)state;
        struct index index;
        assert_int_equal(index_init(&index, 4096, false), 0);
        struct random random = {4};
        uint32_t location = 0;
        while (location < 1000 * SLOTS_FULL) {
                while (location >= index_size(&index) * SLOTS_FULL)
                        index_split(&index, 0);
                uint32_t hash = (uint32_t)random_next(&random) & mask;
                slot_set(index_vacancy(&index, hash), slot_make(hash, 0, ++location));
        }
        struct walker walker;
        index_walk_begin(&index, &walker);
        index_walk_to(&walker, 400);
        uint8_t *ahead = calloc(location + 1, 1);
        for (uint64_t b = 400; b < index_size(&index); b++)
                for (unsigned i = 0; i < SLOTS; i++)
                        ahead[slot_location(slot_get(&index.buckets[b].slot[i]))] = 1;
        uint64_t moves = index.moves;
        for (unsigned n = 0; n < 400; n++) {
                uint32_t hash = (uint32_t)random_next(&random) & mask;
                slot_t *slot = index_vacancy(&index, hash);
                if (slot)
                        slot_set(slot, slot_make(hash, 0, ++location));
                if (location > 1000 * SLOTS_FULL)
                        location = 1000 * SLOTS_FULL; /* all the new ones alike: they do not matter */
        }
        assert_true(index.moves > moves + 50);
        for (uint64_t b = 0; b < 400; b++)
                for (unsigned i = 0; i < SLOTS; i++) {
                        uint32_t at = slot_location(slot_get(&index.buckets[b].slot[i]));
                        assert_true(at >= 1000 * SLOTS_FULL || !ahead[at] || at == 0);
                }
        index_walk_end(&index, &walker);
        assert_null(index.walkers);
        free(ahead);
        index_fini(&index);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(growth_moves_to_the_new_bucket_only),
            cmocka_unit_test(hashes_are_found_where_they_are),
            cmocka_unit_test(mix_is_a_bijection),
            cmocka_unit_test(every_size_is_as_full),
            cmocka_unit_test(small_tables_have_a_slot_for_all),
            cmocka_unit_test(slots_do_not_pass_a_walker),
        };
        return cmocka_run_group_tests_name("store index", tests, NULL, NULL);
}
