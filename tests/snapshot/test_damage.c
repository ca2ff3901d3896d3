/* SPDX-License-Identifier: MIT
 * Files that are cut, flipped, forged or of another version, and disks that are full (B84, B85). */
#include "file_kit.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "wire/dns.h"

static struct kit old, new;
static struct bytes file;

static int setup(void **state)
{
        (void)state;
        kit_init(&old);
        kit_init(&new);
        new.options.stale_window = old.options.stale_window = 100000;
        kit_open(&old);
        fill_variety(&old, 20);
        fill_exact(&old);
        save(&old, path_of("s"));
        file = file_read(path_of("s"));
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        kit_close(&old);
        free(file.p);
        return 0;
}

/* Load these bytes into a new cache. What gets in can be shown (contents() parses it all). */
static int try(const uint8_t *bytes, size_t len, struct sardine_snapshot_result *result)
{
        struct sardine_snapshot_result own;
        result = result ? result : &own;
        *result = (struct sardine_snapshot_result){.sz = sizeof *result};
        file_write(path_of("t"), bytes, len);
        kit_open(&new);
        int err = sardine_snapshot_load(new.cache, path_of("t"), result);
        free(contents(new.cache));
        uint64_t entries = kit_stats(&new).entries;
        kit_close(&new);
        if (err)
                assert_int_equal(entries, 0);
        return err;
}

static void b84_a_file_cut_anywhere_is_refused(void **state)
{
        (void)state;
        assert_int_equal(try(file.p, file.len, NULL), 0);
        for (size_t len = 0; len < file.len; len++)
                assert_int_equal(try(file.p, len, NULL), SARDINE_ERR_SNAPSHOT);
}

static void b84_no_flipped_bit_gets_in(void **state)
{
        (void)state;
        for (size_t bit = 0; bit < file.len * 8; bit += bit % 5 + 1) {
                file.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
                struct sardine_snapshot_result result;
                if (try(file.p, file.len, &result) == 0)
                        assert_true(result.damaged > 0);
                file.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
}

static uint32_t next_random(uint32_t *state)
{
        *state = *state * 1664525 + 1013904223;
        return *state >> 8;
}

/* With sums that are right, what is refused is refused by looking at it. Whatever gets in is shown, and what
 * is shown is parsed as a response. */
static void b85_forged_entries_do_no_harm(void **state)
{
        (void)state;
        uint32_t random = 1;
        unsigned taken = 0, refused = 0;
        uint8_t *forged = aligned_alloc(8, (file.len + 8) & ~(size_t)7);
        for (unsigned round = 0; round < 10000; round++) {
                memcpy(forged, file.p, file.len);
                for (unsigned n = 1 + next_random(&random) % 4; n > 0; n--) {
                        size_t at = sizeof(struct snapshot_header) + sizeof(struct block_header);
                        at += next_random(&random) % (file.len - at);
                        forged[at] = round % 2 ? (uint8_t)next_random(&random)
                                               : forged[at] ^ (uint8_t)(1 << next_random(&random) % 8);
                }
                file_seal(forged, file.len);
                struct sardine_snapshot_result result;
                if (try(forged, file.len, &result) == 0 && result.damaged == 0)
                        taken++;
                else
                        refused++;
        }
        free(forged);
        /* both happen, or the test is about nothing */
        assert_true(taken > 500);
        assert_true(refused > 500);
}

static void newer(struct snapshot_header *header)
{
        header->version++;
}
static void other_layout(struct snapshot_header *header)
{
        header->layout--;
}
static void other_order(struct snapshot_header *header)
{
        header->order = __builtin_bswap32(header->order);
}
static void other_magic(struct snapshot_header *header)
{
        header->magic[0] = 'S';
}
static void many_splits(struct snapshot_header *header)
{
        header->n_split = SNAPSHOT_SPLITS + 1;
}

static void b84_other_versions_are_refused(void **state)
{
        (void)state;
        static const struct {
                void (*edit)(struct snapshot_header *header);
                const char *why;
        } cases[] = {
            {newer, "another version"},      {other_layout, "another version"}, {other_order, "byte order"},
            {other_magic, "not a snapshot"}, {many_splits, "damaged"},
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                file_write(path_of("t"), file.p, file.len);
                file_edit(path_of("t"), cases[i].edit);
                struct bytes edited = file_read(path_of("t"));
                struct sardine_snapshot_result result;
                assert_int_equal(try(edited.p, edited.len, &result), SARDINE_ERR_SNAPSHOT);
                assert_non_null(strstr(result.why, cases[i].why));
                free(edited.p);
        }
}

/* The header of the block at *at, which moves on. */
static struct block_header block_at(size_t *at)
{
        struct block_header block;
        memcpy(&block, file.p + *at, sizeof block);
        *at += sizeof block + block.length;
        return block;
}

static void b84_a_damaged_block_costs_only_itself(void **state)
{
        (void)state;
        size_t at = sizeof(struct snapshot_header), start = at + sizeof(struct block_header);
        assert_int_equal(block_at(&at).kind, BLOCK_ENTRIES);
        assert_int_equal(block_at(&at).kind, BLOCK_PAGES);
        file.p[start + 50] ^= 1;
        struct sardine_snapshot_result result;
        assert_int_equal(try(file.p, file.len, &result), 0);
        assert_int_equal(result.damaged, 1);
        assert_int_equal(result.entries, 20 + 1);
}

/* Blocks with good sums in another order, or twice, are not what was written. */
static void b85_blocks_have_their_place(void **state)
{
        (void)state;
        size_t at = sizeof(struct snapshot_header);
        struct block_header first = block_at(&at);
        first.number = 1;
        memcpy(file.p + sizeof(struct snapshot_header), &first, sizeof first);
        file_seal(file.p, file.len);
        assert_int_equal(try(file.p, file.len, NULL), SARDINE_ERR_SNAPSHOT);
}

static void b84_a_full_disk_leaves_the_old_file(void **state)
{
        (void)state;
        struct rlimit before, limit;
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
        signal(SIGXFSZ, SIG_IGN);
        for (size_t most = 0; most < file.len; most += 97) {
                limit = before;
                limit.rlim_cur = most;
                assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
                int err = sardine_snapshot_save(old.cache, path_of("s"), NULL);
                assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
                assert_int_equal(err, -EFBIG);
                assert_false(file_there(path_of("s.new")));
                struct bytes now = file_read(path_of("s"));
                assert_int_equal(now.len, file.len);
                assert_memory_equal(now.p, file.p, now.len);
                free(now.p);
        }
        assert_int_equal(sardine_snapshot_save(old.cache, path_of("s"), NULL), 0);
}

/* What a save that was killed leaves behind is in nobody's way. */
static void b84_leftovers_are_written_over(void **state)
{
        (void)state;
        file_write(path_of("s.new"), (const uint8_t *)"half a file, and a long one", 27);
        save(&old, path_of("s"));
        assert_false(file_there(path_of("s.new")));
        kit_open(&new);
        assert_int_equal(load(&new, path_of("s")).entries, 8 + 1 + 20 + 1 + 1);
        kit_close(&new);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(b84_a_file_cut_anywhere_is_refused, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_no_flipped_bit_gets_in, setup, teardown),
            cmocka_unit_test_setup_teardown(b85_forged_entries_do_no_harm, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_other_versions_are_refused, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_a_damaged_block_costs_only_itself, setup, teardown),
            cmocka_unit_test_setup_teardown(b85_blocks_have_their_place, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_a_full_disk_leaves_the_old_file, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_leftovers_are_written_over, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
