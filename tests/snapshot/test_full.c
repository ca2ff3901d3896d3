/* SPDX-License-Identifier: MIT
 * A disk with no room left, a real one: a small file system of our own (B70, B84). */
#include "file_kit.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "cache.h"
#include "wire/dns.h"

enum {
        DISK = 64 << 10,
};

static struct kit old, new;
static char log_text[8192];

static void log_line(void *ctx, int level, const char *text)
{
        (void)ctx;
        (void)level;
        size_t at = strlen(log_text);
        snprintf(log_text + at, sizeof log_text - at, "%s\n", text);
}

/* A mount that nobody but us sees. Who may not do that becomes root of a name space, if that is allowed. */
static bool mount_disk(void)
{
        char options[32];
        uid_t uid = getuid();
        if (unshare(CLONE_NEWNS) != 0) {
                if (unshare(CLONE_NEWNS | CLONE_NEWUSER) != 0)
                        return false;
                FILE *map = fopen("/proc/self/uid_map", "w");
                if (!map || fprintf(map, "0 %u 1", uid) < 0 || fclose(map) != 0)
                        return false;
        }
        snprintf(options, sizeof options, "size=%d", DISK);
        return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
               mount("tmpfs", path_of("."), "tmpfs", 0, options) == 0;
}

static void use_all_room(void)
{
        static const char zeros[4096];
        int fd = open(path_of("filler"), O_WRONLY | O_CREAT | O_APPEND, 0600);
        assert_true(fd >= 0);
        for (size_t size = sizeof zeros; size > 0; size /= 2)
                while (write(fd, zeros, size) > 0)
                        ;
        assert_int_equal(errno, ENOSPC);
        close(fd);
}

static int setup(void **state)
{
        (void)state;
        log_text[0] = 0;
        kit_init(&old);
        kit_init(&new);
        old.options.log = log_line;
        kit_open(&old);
        kit_open(&new);
        fill_variety(&old, 5);
        return 0;
}

static int teardown(void **state)
{
        static const char *const names[] = {"s", "s.new", "s.purges", "filler"};
        (void)state;
        kit_close(&old);
        kit_close(&new);
        for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
                unlink(path_of(names[i]));
        return 0;
}

static void b84_no_room_leaves_the_old_file(void **state)
{
        (void)state;
        save(&old, path_of("s"));
        struct bytes before = file_read(path_of("s"));
        use_all_room();
        for (unsigned i = 0; i < 3; i++) {
                assert_int_equal(sardine_snapshot_save(old.cache, path_of("s"), NULL), -ENOSPC);
                assert_false(file_there(path_of("s.new")));
                struct bytes now = file_read(path_of("s"));
                assert_int_equal(now.len, before.len);
                assert_memory_equal(now.p, before.p, now.len);
                free(now.p);
        }
        free(before.p);
        unlink(path_of("filler"));
        save(&old, path_of("s"));
        assert_int_equal(load(&new, path_of("s")).entries, 8 + 1 + 5);
}

static struct sardine_snapshot_status status(void)
{
        struct sardine_snapshot_status s = {.sz = sizeof s};
        assert_int_equal(sardine_snapshot_status_get(old.cache, &s), 0);
        return s;
}

static void request(uint32_t saves, uint32_t failures)
{
        sardine_snapshot_request(old.cache);
        for (unsigned i = 0; i < 18000; i++) {
                if (status().saves == saves && status().failures == failures)
                        return;
                nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        }
        fail_msg("the keeper did not get there: %s", log_text);
}

static void expunge(const char *name)
{
        uint8_t wire[255];
        struct sardine_selector selector = {.sz = sizeof selector, .name = wire, .below = 1};
        selector.name_len = (uint32_t)sardine_name_from_text(name, wire);
        assert_true(sardine_expunge(old.cache, &selector) > 0);
}

/* No room for the journal: then the snapshot goes, for it has what was purged. Later all is well again. */
static void b70_a_purge_without_room_for_it(void **state)
{
        (void)state;
        static const char *const names[] = {"cdn.example", "none.example", "example.org"};
        const struct sardine_snapshot_options options = {.sz = sizeof options, .path = path_of("s")};
        assert_int_equal(sardine_snapshot_keep(old.cache, &options), 0);
        request(1, 0);
        use_all_room();
        expunge("example.com");
        assert_false(file_there(path_of("s")));
        assert_non_null(strstr(log_text, "a purge could not be noted"));
        /* what it had room in is used up, too: saves fail, for days */
        use_all_room();
        for (uint32_t failures = 1; failures <= 3; failures++) {
                request(1, failures);
                assert_int_equal(status().save_error, -ENOSPC);
                assert_false(file_there(path_of("s.new")) || file_there(path_of("s")));
                expunge(names[failures - 1]);
                store_lock(old.cache->store);
                assert_int_equal(old.cache->snapshots.purges.room, 0);
                store_unlock(old.cache->store);
        }
        unlink(path_of("filler"));
        request(2, 3);
        expunge("broken.example");
        struct sardine_snapshot_result loaded = load(&new, path_of("s"));
        assert_int_equal(loaded.purged, 1);
        assert_int_equal(loaded.entries, 2);
        assert_int_equal(look(&new, ASK("broken.example", DNS_A, .rd = true))->outcome, SARDINE_MISS);
        assert_int_equal(look(&new, ASK("text.example", 257, .rd = true))->outcome, SARDINE_HIT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(b84_no_room_leaves_the_old_file, setup, teardown),
            cmocka_unit_test_setup_teardown(b70_a_purge_without_room_for_it, setup, teardown),
        };
        if (!mount_disk()) {
                fprintf(stderr, "not allowed to mount a file system: skipped\n");
                return 77;
        }
        int failed = cmocka_run_group_tests(tests, NULL, NULL);
        umount2(path_of("."), MNT_DETACH);
        return failed;
}
