/* SPDX-License-Identifier: MIT
 * A purge begins and is noted for snapshots in one hold of the store's lock, and is in the journal by then:
 * no save can begin in between (B70). store_unlock() is ours here, to look whenever it is called. */
#include "file_kit.h"

#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache.h"
#include "wire/dns.h"

void __real_store_unlock(struct store *store);
void __wrap_store_unlock(struct store *store);

static const struct ask A = {.name = "a.example.com", .type = DNS_A, .rd = true};

static _Atomic bool watched; /* the keeper's thread looks, too */
static pthread_t watcher;
static uint64_t generation, noted, since;
static unsigned begun;

static uint64_t journal_size(void)
{
        struct stat st;
        return stat(path_of("s.purges"), &st) == 0 ? (uint64_t)st.st_size : 0;
}

void __wrap_store_unlock(struct store *store)
{
        bool mine = watched && pthread_equal(pthread_self(), watcher);
        bool begins = false;
        if (mine) {
                const struct purgelog *purges = &kit.cache->snapshots.purges;
                uint64_t now_noted = purges->start + purges->len, now = atomic_load(&kit.cache->generation);
                begins = now != generation;
                assert_int_equal(now_noted != noted, begins);
                assert_int_equal(journal_size(), now_noted);
                generation = now;
                noted = now_noted;
                begun += begins;
        }
        __real_store_unlock(store);
        if (begins) {
                watched = false;
                assert_int_not_equal(look(&kit, A)->outcome, SARDINE_HIT);
                watched = true;
        }
}

static int setup(void **state)
{
        (void)state;
        kit_init(&kit);
        kit_open(&kit);
        fill_variety(&kit, 5);
        const struct sardine_snapshot_options options = {.sz = sizeof options, .path = path_of("s")};
        assert_int_equal(sardine_snapshot_keep(kit.cache, &options), 0);
        /* as if a save were under way */
        store_lock(kit.cache->store);
        assert_true(purgelog_begin(&kit.cache->snapshots.purges, &since));
        store_unlock(kit.cache->store);
        assert_int_equal(look(&kit, A)->outcome, SARDINE_HIT);
        generation = atomic_load(&kit.cache->generation);
        noted = 0;
        begun = 0;
        watcher = pthread_self();
        watched = true;
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        watched = false;
        store_lock(kit.cache->store);
        purgelog_end(&kit.cache->snapshots.purges);
        store_unlock(kit.cache->store);
        kit_close(&kit);
        unlink(path_of("s"));
        unlink(path_of("s.purges"));
        return 0;
}

static void b70_selectors(void **state)
{
        (void)state;
        uint8_t name[255];
        struct sardine_selector selectors[3] = {{.sz = sizeof *selectors, .qtype = DNS_A},
                                                {.sz = sizeof *selectors, .qtype = DNS_MX},
                                                {.sz = sizeof *selectors, .name = name, .below = 1}};
        selectors[2].name_len = (uint32_t)sardine_name_from_text("example.com", name);
        assert_true(sardine_expunge_many(kit.cache, 3, selectors) > 0);
        assert_int_equal(begun, 1);
        assert_true(noted > 0);
}

static void b70_everything(void **state)
{
        (void)state;
        assert_true(sardine_expunge(kit.cache, NULL) > 0);
        assert_int_equal(begun, 1);
}

static void b70_down_to_nothing(void **state)
{
        (void)state;
        assert_true(sardine_expunge_to(kit.cache, 0) > 0);
        assert_int_equal(begun, 1);
}

static void b70_a_list(void **state)
{
        (void)state;
        assert_true(sardine_expunge_list(kit.cache, "example.com", 11) > 0);
        assert_int_equal(begun, 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(b70_selectors, setup, teardown),
            cmocka_unit_test_setup_teardown(b70_everything, setup, teardown),
            cmocka_unit_test_setup_teardown(b70_down_to_nothing, setup, teardown),
            cmocka_unit_test_setup_teardown(b70_a_list, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
