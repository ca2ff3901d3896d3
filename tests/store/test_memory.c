/* SPDX-License-Identifier: MIT
 * Is what the store says that it takes what it takes? Run twice by meson: the second time with jemalloc in
 * the process and SARDINE_TEST_JEMALLOC set. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/entries.h"
#include "store/fence.h"

/* Resident bytes, counted page by page: the quick figure in statm may be off by hundreds of pages. Without
 * mapped files: of these the system brings in more than was asked for. With what a system that is short of
 * memory has put elsewhere meanwhile. */
static int64_t resident(void)
{
        char line[256];
        long kib = 0, part;
        FILE *file = fopen("/proc/self/smaps_rollup", "r");
        assert_non_null(file);
        while (fgets(line, sizeof line, file))
                if (sscanf(line, "Anonymous: %ld", &part) == 1 || sscanf(line, "Swap: %ld", &part) == 1)
                        kib += part;
        fclose(file);
        assert_true(kib > 0);
        return (int64_t)kib * 1024;
}

static bool sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(FENCE_BY_EXCHANGE)
        return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
        return true;
#endif
#endif
        return getenv("VALGRIND") != NULL;
}

static struct store_stats stats_of(struct store *store)
{
        struct store_stats stats;
        store_stats_get(store, &stats);
        return stats;
}

/* Beside 3 %: the last pages of everything, and what an arena
 * of jemalloc's takes for itself. */
static int64_t extra(void)
{
        return getenv("SARDINE_TEST_JEMALLOC") ? 1 << 20 : 128 << 10;
}

static void check(int64_t before, struct store *store)
{
        int64_t real = resident() - before, told = (int64_t)stats_of(store).bytes;
        int64_t slack = told * 3 / 100 + extra();
        if (real > told + slack || real < told - slack)
                fail_msg("resident %lld, accounted %lld", (long long)real, (long long)told);
}

static void fill(uint64_t max_bytes, uint32_t size, bool no_jemalloc)
{
        int64_t before = resident();
        struct store *store;
        struct store_options options = {
            .hash = test_hash, .max_bytes = max_bytes, .no_jemalloc = no_jemalloc};
        assert_int_equal(store_create(&options, &store), 0);
        assert_int_equal(stats_of(store).jemalloc, !no_jemalloc && getenv("SARDINE_TEST_JEMALLOC") != NULL);
        uint64_t key = 0, n = max_bytes / (size + 10);
        for (unsigned part = 1; part <= 6; part++) {
                while (key < n * part / 4)
                        assert_int_equal(put(store, key++, 1, size, TEST_NOW + 1000, TEST_NOW), 0);
                check(before, store);
                assert_true(stats_of(store).bytes <= max_bytes);
        }
        store_shrink(store, 0, TEST_NOW);
        assert_true(stats_of(store).bytes < 256 << 10);
        check(before, store);
        while (key < n * 2)
                assert_int_equal(put(store, key++, 1, size, TEST_NOW + 1000, TEST_NOW), 0);
        check(before, store);
        store_destroy(store);
        assert_true(resident() < before + extra());
}

static void b72_accounts_agree_with_resident_memory(void **state)
{
        (void)state;
        if (sanitized())
                skip();
        /* The first time touches code, stack and buffers too. */
        struct store *first;
        assert_int_equal(
            store_create(&(struct store_options){.hash = test_hash, .max_bytes = 4 << 20}, &first), 0);
        put(first, 1, 1, store_max_entry(first), TEST_NOW + 1, TEST_NOW);
        store_destroy(first);
        const uint64_t max_bytes[] = {4 << 20, 32 << 20, 160 << 20};
        const uint32_t sizes[] = {60, 1200, 16384};
        for (unsigned no_jemalloc = 0; no_jemalloc < 2; no_jemalloc++)
                for (unsigned i = 0; i < 3; i++)
                        for (unsigned s = 0; s < 3; s++)
                                fill(max_bytes[i], sizes[s], no_jemalloc);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(b72_accounts_agree_with_resident_memory),
        };
        return cmocka_run_group_tests_name("store memory", tests, NULL, NULL);
}
