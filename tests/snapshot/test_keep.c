/* SPDX-License-Identifier: MIT
 * The thread that keeps a snapshot, its journal of purges, and saves among everything else (B70, B84). Run
 * under TSan in CI. */
#include "file_kit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cache.h"
#include "snapshot/journal.h"
#include "snapshot/purgerecord.h"
#include "wire/dns.h"

static struct kit old, new;
static char log_text[4096];
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void log_line(void *ctx, int level, const char *text)
{
        (void)ctx;
        (void)level;
        pthread_mutex_lock(&log_lock);
        snprintf(log_text + strlen(log_text), sizeof log_text - strlen(log_text), "%s\n", text);
        pthread_mutex_unlock(&log_lock);
}

static int setup(void **state)
{
        (void)state;
        log_text[0] = 0;
        kit_init(&old);
        kit_init(&new);
        old.options.log = new.options.log = log_line;
        kit_open(&old);
        kit_open(&new);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        kit_close(&old);
        kit_close(&new);
        unlink(path_of("s"));
        unlink(path_of("s.purges"));
        return 0;
}

static const struct ask A = {.name = "a.example.com", .type = DNS_A, .rd = true};

static void keep(struct kit *kit, uint32_t interval, bool load, bool at_end)
{
        const struct sardine_snapshot_options options = {.sz = sizeof options,
                                                         .path = path_of("s"),
                                                         .interval = interval,
                                                         .load = load,
                                                         .save_at_end = at_end};
        assert_int_equal(sardine_snapshot_keep(kit->cache, &options), 0);
}

static struct sardine_snapshot_status status(struct kit *kit)
{
        struct sardine_snapshot_status s = {.sz = sizeof s};
        assert_int_equal(sardine_snapshot_status_get(kit->cache, &s), 0);
        return s;
}

enum {
        PATIENCE =
            18000, /* how often somebody looks whether the thread has done it, far beyond what it takes, */
        PATIENCE_NS = 10000000, /* and how long it sleeps in between */
};

/* Until the thread has done it. */
static void await(struct kit *kit, uint32_t loads, uint32_t saves)
{
        for (unsigned i = 0; i < PATIENCE; i++) {
                struct sardine_snapshot_status s = status(kit);
                if (s.loads >= loads && s.saves >= saves)
                        return;
                nanosleep(&(struct timespec){.tv_nsec = PATIENCE_NS}, NULL);
        }
        fail_msg("the keeper did not get there: %s", log_text);
}

static void b84_saved_at_the_end_and_loaded_at_the_start(void **state)
{
        (void)state;
        keep(&old, 0, true, true);
        fill_variety(&old, 50);
        char *before = contents(old.cache);
        assert_int_equal(sardine_snapshot_stop(old.cache), 0);
        assert_true(file_there(path_of("s")));
        file_fresh(path_of("s"));
        keep(&new, 0, true, true);
        await(&new, 1, 0);
        assert_int_equal(status(&new).loaded.entries, 8 + 1 + 50);
        char *after = contents(new.cache);
        assert_string_equal(before, after);
        free(before);
        free(after);
        assert_non_null(strstr(log_text, "none there yet"));
        assert_non_null(strstr(log_text, "loaded 59 entries"));
}

static void b84_destroying_the_cache_saves_it(void **state)
{
        (void)state;
        keep(&old, 0, false, true);
        fill_variety(&old, 1);
        kit_close(&old);
        assert_true(load(&new, path_of("s")).entries > 5);
        kit_open(&old);
}

static void b84_at_intervals_if_anything_has_changed(void **state)
{
        (void)state;
        keep(&old, 1, false, false);
        nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
        assert_int_equal(status(&old).saves, 0);
        fill_variety(&old, 1);
        await(&old, 0, 1);
        assert_true(file_there(path_of("s")));
}

static void b84_an_unused_cache_leaves_the_file_alone(void **state)
{
        (void)state;
        fill_variety(&old, 1);
        save(&old, path_of("s"));
        struct bytes before = file_read(path_of("s"));
        /* such as a configuration that is only checked; whether the load came to its end or not */
        keep(&new, 0, true, true);
        sardine_snapshot_stop(new.cache);
        struct bytes after = file_read(path_of("s"));
        assert_int_equal(before.len, after.len);
        assert_memory_equal(before.p, after.p, before.len);
        free(before.p);
        free(after.p);
}

static void b84_what_was_there_before_is_saved_at_the_end(void **state)
{
        (void)state;
        fill_variety(&old, 1);
        keep(&old, 0, true, true);
        assert_int_equal(sardine_snapshot_stop(old.cache), 0);
        assert_true(load(&new, path_of("s")).entries > 5);
        /* and what came from another file */
        unlink(path_of("other"));
        rename(path_of("s"), path_of("other"));
        kit_close(&new);
        kit_open(&new);
        keep(&new, 0, false, true);
        load(&new, path_of("other"));
        assert_int_equal(sardine_snapshot_stop(new.cache), 0);
        assert_true(file_there(path_of("s")));
}

static void b84_on_demand(void **state)
{
        (void)state;
        assert_int_equal(sardine_snapshot_request(old.cache), -ENOENT);
        keep(&old, 0, false, false);
        fill_variety(&old, 1);
        assert_int_equal(sardine_snapshot_request(old.cache), 0);
        await(&old, 0, 1);
        struct sardine_snapshot_status s = status(&old);
        assert_int_equal(s.keeping, 1);
        assert_int_equal(s.save_error, 0);
        assert_true(s.saved.entries > 5);
        const struct sardine_snapshot_options again = {.sz = sizeof again, .path = path_of("s")};
        assert_int_equal(sardine_snapshot_keep(old.cache, &again), -EALREADY);
        assert_int_equal(sardine_snapshot_stop(old.cache), 0);
        assert_int_equal(status(&old).keeping, 0);
        assert_int_equal(sardine_snapshot_keep(old.cache, &again), 0); /* and again */
}

static void b84_a_folder_that_cannot_be_written_is_told_at_once(void **state)
{
        (void)state;
        const struct sardine_snapshot_options options = {.sz = sizeof options, .path = path_of("no/s")};
        assert_int_equal(sardine_snapshot_keep(old.cache, &options), 0);
        assert_non_null(strstr(log_text, "cannot be written to"));
        fill_variety(&old, 1);
        assert_int_equal(look(&old, A)->outcome, SARDINE_HIT);
}

static void b84_nothing_is_written_before_it_is_needed(void **state)
{
        (void)state;
        keep(&old, 0, true, true);
        assert_int_equal(sardine_snapshot_stop(old.cache), 0);
        assert_false(file_there(path_of("s")) || file_there(path_of("s.purges")));
}

static void b84_a_file_with_another_name_is_not_written_to(void **state)
{
        (void)state;
        file_write(path_of("victim"), (const uint8_t *)"mine", 4);
        assert_int_equal(link(path_of("victim"), path_of("s.new")), 0);
        assert_int_equal(sardine_snapshot_save(old.cache, path_of("s"), NULL), SARDINE_ERR_FOREIGN);
        unlink(path_of("s.new"));
        assert_int_equal(symlink(path_of("victim"), path_of("s.new")), 0);
        assert_int_equal(sardine_snapshot_save(old.cache, path_of("s"), NULL), SARDINE_ERR_FOREIGN);
        unlink(path_of("s.new"));
        assert_int_equal(link(path_of("victim"), path_of("s.purges")), 0);
        keep(&old, 0, false, false);
        sardine_expunge(old.cache, NULL);
        struct bytes victim = file_read(path_of("victim"));
        assert_int_equal(victim.len, 4);
        free(victim.p);
}

static void expunge(struct kit *kit, const char *name)
{
        uint8_t wire[255];
        struct sardine_selector selector = {.sz = sizeof selector, .name = wire, .below = 1};
        selector.name_len = (uint32_t)sardine_name_from_text(name, wire);
        sardine_expunge(kit->cache, &selector);
}

static void copy_file(const char *from, const char *to)
{
        char source[256];
        snprintf(source, sizeof source, "%s", path_of(from));
        if (!file_there(source)) {
                unlink(path_of(to));
                return;
        }
        struct bytes bytes = file_read(source);
        file_write(path_of(to), bytes.p, bytes.len);
        free(bytes.p);
}

/* The process dies: what counts is what is on disk then. */
static void die(void)
{
        copy_file("s", "dead");
        copy_file("s.purges", "dead.purges");
}

static void keep_dead(struct kit *kit)
{
        file_fresh(path_of("dead"));
        const struct sardine_snapshot_options options = {
            .sz = sizeof options, .path = path_of("dead"), .load = 1};
        assert_int_equal(sardine_snapshot_keep(kit->cache, &options), 0);
        await(kit, 1, 0);
}

static void b70_a_purge_after_the_save_survives_the_process(void **state)
{
        (void)state;
        keep(&old, 0, false, false);
        fill_variety(&old, 5);
        sardine_snapshot_request(old.cache);
        await(&old, 0, 1);
        expunge(&old, "Example.COM");
        expunge(&old, "cdn.example");
        die();
        keep_dead(&new);
        assert_int_equal(look(&new, A)->outcome, SARDINE_MISS);
        assert_int_equal(look(&new, ASK("text.example", 257, .rd = true))->outcome, SARDINE_HIT);
        struct sardine_snapshot_status s = status(&new);
        assert_int_equal(s.loaded.purged, 3 + 1 + 1);
}

/* sardinectl purge, while the process is down: the same, from outside. */
static void b70_purges_missed_while_down(void **state)
{
        (void)state;
        uint8_t wire[255], record[PURGE_MAX];
        struct sardine_selector selector = {.sz = sizeof selector, .name = wire, .below = 1};
        selector.name_len = (uint32_t)sardine_name_from_text("example.com", wire);
        keep(&old, 0, false, true);
        fill_variety(&old, 5);
        assert_int_equal(sardine_snapshot_stop(old.cache), 0);
        int fd = journal_open(path_of("s.purges"));
        assert_true(fd >= 0);
        assert_int_equal(journal_append(fd, record, purge_record_write(&selector, record)), 0);
        close(fd);
        file_fresh(path_of("s"));
        keep(&new, 0, true, false);
        await(&new, 1, 0);
        assert_int_equal(status(&new).loaded.purged, 3);
        assert_int_equal(look(&new, A)->outcome, SARDINE_MISS);
        assert_int_equal(look(&new, ASK("text.example", 257, .rd = true))->outcome, SARDINE_HIT);
}

/* Of a purge that finds no more room: the journal goes with the snapshot, never before it. */
static void b70_a_journal_stays_with_a_snapshot_that_stays(void **state)
{
        (void)state;
        keep(&old, 0, false, false);
        fill_variety(&old, 5);
        sardine_snapshot_request(old.cache);
        await(&old, 0, 1);
        expunge(&old, "example.com");
        struct bytes journal = file_read(path_of("s.purges"));
        assert_true(journal.len > 0);
        free(journal.p);
        assert_int_equal(truncate(path_of("s.purges"), JOURNAL_MOST + 1), 0);
        /* nothing that unlink() removes */
        assert_int_equal(rename(path_of("s"), path_of("dead")), 0);
        assert_int_equal(mkdir(path_of("s"), 0700), 0);
        expunge(&old, "cdn.example");
        assert_non_null(strstr(log_text, "nor the old snapshot removed"));
        assert_true(file_there(path_of("s.purges")));
        assert_int_equal(rmdir(path_of("s")), 0);
        assert_int_equal(rename(path_of("dead"), path_of("s")), 0);
        expunge(&old, "none.example");
        assert_false(file_there(path_of("s")) || file_there(path_of("s.purges")));
}

/* Called when nearly all is in the new file, and just after that has taken the place of the old one. */
static void (*_Atomic near_the_end)(void), (*_Atomic at_the_end)(void); /* also the keeper looks */
struct snapshot_writer;
int __real_snapshot_sync(struct snapshot_writer *writer);
int __real_snapshot_finish(struct snapshot_writer *writer, uint64_t entries);
int __wrap_snapshot_sync(struct snapshot_writer *writer)
{
        void (*act)(void) = atomic_exchange(&near_the_end, NULL);
        if (act)
                act();
        return __real_snapshot_sync(writer);
}

int __wrap_snapshot_finish(struct snapshot_writer *writer, uint64_t entries)
{
        int err = __real_snapshot_finish(writer, entries);
        void (*act)(void) = atomic_exchange(&at_the_end, NULL);
        if (act)
                act();
        return err;
}

/* The first cannot be noted, the second can. */
static void purge_twice(void)
{
        assert_int_equal(truncate(path_of("s.purges"), JOURNAL_MOST + 1), 0);
        expunge(&old, "cdn.example");
        assert_false(file_there(path_of("s.purges")));
        expunge(&old, "none.example");
        assert_true(file_there(path_of("s.purges")));
}

/* Both the file, which has what was purged, and the journal come too late for it; and the process dies when
 * the file has its name, and the journal is still the old one. */
static void b70_a_purge_that_no_journal_has_is_in_the_new_snapshot(void **state)
{
        (void)state;
        keep(&old, 0, false, false);
        fill_variety(&old, 5);
        expunge(&old, "example.com");
        near_the_end = purge_twice;
        at_the_end = die;
        sardine_snapshot_request(old.cache);
        await(&old, 0, 1);
        assert_null(near_the_end);
        assert_null(at_the_end);
        assert_true(file_there(path_of("dead.purges")));
        assert_false(file_there(path_of("s.purges")));
        file_fresh(path_of("s"));
        file_fresh(path_of("dead"));
        assert_int_equal(load(&new, path_of("s")).purged, 1 + 1 + 1);
        assert_int_equal(unlink(path_of("dead.purges")), 0);
        kit_close(&new);
        kit_open(&new);
        assert_int_equal(load(&new, path_of("dead")).purged, 1 + 1 + 1);
        char *before = contents(old.cache), *after = contents(new.cache);
        assert_string_equal(before, after);
        free(before);
        free(after);
}

static void purges_wait(void)
{
        assert_int_equal(pthread_mutex_trylock(&old.cache->snapshots.purging), EBUSY);
}

/* Else one would be neither in the file nor noted anywhere. */
static void b70_no_purge_begins_while_a_file_gets_its_name(void **state)
{
        (void)state;
        fill_variety(&old, 5);
        at_the_end = purges_wait;
        assert_int_equal(sardine_snapshot_save(old.cache, path_of("s"), NULL), 0);
        assert_null(at_the_end);
        expunge(&old, "example.com"); /* and then they can */
}

/* Two caches at one path, as of two processes while one takes over from the other. */
static void b70_a_journal_that_another_one_removed_begins_anew(void **state)
{
        (void)state;
        keep(&old, 0, false, false);
        keep(&new, 0, false, false);
        fill_variety(&old, 5);
        expunge(&new, "example.com");
        assert_true(file_there(path_of("s.purges")));
        sardine_snapshot_request(old.cache);
        await(&old, 0, 1);
        assert_false(file_there(path_of("s.purges")));
        expunge(&new, "example.com");
        assert_true(file_there(path_of("s.purges")));
        kit_close(&new);
        kit_open(&new);
        assert_int_equal(load(&new, path_of("s")).purged, 3); /* all below that name */
}

static void b70_purges_noted_by_many_at_once(void **state)
{
        (void)state;
        enum {
                PROCESSES = 8,
                EACH = 100,
        };
        uint8_t record[PURGE_MAX];
        const size_t len = purge_record_write(NULL, record);
        for (unsigned p = 0; p < PROCESSES; p++) {
                pid_t child = fork();
                assert_true(child >= 0);
                if (child > 0)
                        continue;
                for (unsigned i = 0; i < EACH; i++) {
                        int fd = journal_open(path_of("s.purges"));
                        if (fd < 0 || journal_append(fd, record, len) != 0)
                                _exit(1);
                        close(fd);
                }
                _exit(0);
        }
        for (unsigned p = 0; p < PROCESSES; p++) {
                int status;
                assert_true(wait(&status) > 0);
                assert_int_equal(status, 0);
        }
        struct bytes journal = file_read(path_of("s.purges"));
        assert_int_equal(journal.len, PROCESSES * EACH * len);
        free(journal.p);
}

static void b70_a_purge_of_everything_too(void **state)
{
        (void)state;
        keep(&old, 0, false, false);
        fill_variety(&old, 5);
        sardine_snapshot_request(old.cache);
        await(&old, 0, 1);
        sardine_expunge(old.cache, NULL);
        die();
        keep_dead(&new);
        assert_int_equal(kit_stats(&new).entries, 0);
}

/* What a list names no record can say: the old snapshot is void, and a new one is made at once. */
static void b70_what_a_list_removed_stays_removed(void **state)
{
        (void)state;
        keep(&old, 0, false, false);
        fill_variety(&old, 5);
        sardine_snapshot_request(old.cache);
        await(&old, 0, 1);
        /* nobody else saves: the next one is the list's */
        assert_int_equal(sardine_expunge_list(old.cache, "192.0.2.98", 10), 1);
        await(&old, 0, 2);
        die();
        keep_dead(&new);
        assert_int_equal(status(&new).loaded.purged, 0);
        char *before = contents(old.cache), *after = contents(new.cache);
        assert_string_equal(before, after);
        assert_null(strstr(after, "c0000262"));
        free(before);
        free(after);
}

/* The process dies before that: nothing of the old one comes back. */
static void b70_a_list_voids_the_old_snapshot(void **state)
{
        (void)state;
        fill_variety(&old, 5);
        save(&old, path_of("s"));
        /* a save is begun and blocked by somebody else's: the journal is all there is */
        char other[256];
        snprintf(other, sizeof other, "%s", path_of("s.new"));
        int fd = open(other, O_WRONLY | O_CREAT, 0600);
        assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
        keep(&old, 0, false, false);
        assert_int_equal(sardine_expunge_list(old.cache, "192.0.2.98", 10), 1);
        die();
        close(fd);
        unlink(other);
        keep_dead(&new);
        assert_int_equal(kit_stats(&new).entries, 0);
}

/* Saves fail for days, and purges go on: nobody has to know of them but the journal. */
static void b70_purges_take_no_memory_while_saves_fail(void **state)
{
        (void)state;
        fill_variety(&old, 5);
        save(&old, path_of("s"));
        char other[256];
        snprintf(other, sizeof other, "%s", path_of("s.new"));
        int fd = open(other, O_WRONLY | O_CREAT, 0600);
        assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
        keep(&old, 0, false, false);
        for (uint32_t i = 1; i <= 5; i++) {
                sardine_snapshot_request(old.cache);
                for (unsigned n = 0; n < PATIENCE && status(&old).failures < i; n++)
                        nanosleep(&(struct timespec){.tv_nsec = PATIENCE_NS}, NULL);
                assert_int_equal(status(&old).failures, i);
                for (unsigned n = 0; n < 100; n++)
                        expunge(&old, "example.com");
                struct sardine_cache *cache = old.cache;
                store_lock(cache->store);
                assert_int_equal(cache->snapshots.purges.users, 0);
                assert_int_equal(cache->snapshots.purges.room, 0);
                store_unlock(cache->store);
        }
        assert_int_equal(status(&old).save_error, -EBUSY);
        /* and holds, with the old file as with the new one */
        die();
        keep_dead(&new);
        assert_int_equal(look(&new, A)->outcome, SARDINE_MISS);
        close(fd);
        unlink(other);
        sardine_snapshot_request(old.cache);
        await(&old, 0, 1);
        assert_false(file_there(path_of("s.purges")));
}

static void b70_by_tag_rcode_and_type(void **state)
{
        (void)state;
        keep(&old, 0, false, false);
        fill_variety(&old, 5);
        sardine_snapshot_request(old.cache);
        await(&old, 0, 1);
        const struct sardine_selector tag = {.sz = sizeof tag, .use_tag = 1, .tag = "tenant", .tag_len = 6},
                                      rcode = {.sz = sizeof rcode, .use_rcode = 1, .rcode = DNS_NXDOMAIN},
                                      type = {.sz = sizeof type, .qtype = 257};
        int64_t gone = sardine_expunge(old.cache, &tag);
        gone += sardine_expunge(old.cache, &rcode);
        gone += sardine_expunge(old.cache, &type);
        assert_int_equal(gone, 3);
        die();
        keep_dead(&new);
        assert_int_equal(status(&new).loaded.purged, 3);
        char *before = contents(old.cache), *after = contents(new.cache);
        assert_string_equal(before, after);
        free(before);
        free(after);
}

static void b70_the_journal_starts_anew_with_a_save(void **state)
{
        (void)state;
        keep(&old, 0, false, false);
        fill_variety(&old, 5);
        expunge(&old, "example.com");
        struct bytes journal = file_read(path_of("s.purges"));
        assert_true(journal.len > 0);
        free(journal.p);
        sardine_snapshot_request(old.cache);
        await(&old, 0, 1);
        assert_false(file_there(path_of("s.purges")));
        /* what comes after the purge is kept */
        fill(&old, A, REPLY("a.example.com", DNS_A, .records = "a.example.com 300 IN A 192.0.2.1"));
        sardine_snapshot_request(old.cache);
        await(&old, 0, 2);
        die();
        keep_dead(&new);
        assert_int_equal(look(&new, A)->outcome, SARDINE_HIT);
}

static void b85_a_journal_cut_off_hides_nothing_behind_it(void **state)
{
        (void)state;
        fill_variety(&old, 5);
        save(&old, path_of("s"));
        file_write(path_of("s.purges"), (const uint8_t[]){0, 20, 0}, 3);
        keep(&old, 0, false, false);
        expunge(&old, "example.com");
        die();
        keep_dead(&new);
        assert_int_equal(look(&new, A)->outcome, SARDINE_MISS);
}

/* Its last record was being written when the machine went down. */
static void b85_a_journal_cut_off_counts_as_far_as_it_goes(void **state)
{
        (void)state;
        keep(&old, 0, false, false);
        fill_variety(&old, 5);
        sardine_snapshot_request(old.cache);
        await(&old, 0, 1);
        expunge(&old, "example.com");
        die();
        struct bytes journal = file_read(path_of("dead.purges"));
        uint8_t longer[600];
        memcpy(longer, journal.p, journal.len);
        memcpy(longer + journal.len, journal.p, journal.len - 1);
        file_write(path_of("dead.purges"), longer, journal.len * 2 - 1);
        free(journal.p);
        keep_dead(&new);
        assert_int_equal(look(&new, A)->outcome, SARDINE_MISS);
        assert_int_equal(status(&new).loaded.purged, 3);
}

/* Whichever moment of a save a purge falls into. */
static void b70_what_was_purged_during_a_save(void **state)
{
        (void)state;
        keep(&old, 0, false, false);
        for (unsigned round = 0; round < 40; round++) {
                fill_variety(&old, 200);
                sardine_snapshot_request(old.cache);
                nanosleep(&(struct timespec){.tv_nsec = 50000 * (round % 20)}, NULL);
                if (round % 2)
                        sardine_expunge(old.cache, NULL);
                else
                        expunge(&old, ".");
                await(&old, 0, round + 1);
                die();
                kit_close(&new);
                kit_open(&new);
                load(&new, path_of("dead"));
                assert_int_equal(look(&new, ASK("none.example", DNS_MX, .rd = true))->outcome, SARDINE_MISS);
        }
}

/* Purges, lookups, inserts and a load, all while saves run. What is purged once never comes back. */
enum {
        NAMES = 3000,
};

static _Atomic bool over;

static void put_name(unsigned i)
{
        char name[32], record[64];
        snprintf(name, sizeof name, "n%u.%s", i, i % 2 ? "gone.example" : "stays.example");
        snprintf(record, sizeof record, "%s 300 IN A 192.0.2.1", name);
        fill(&old, ASK(name, DNS_A), REPLY(name, DNS_A, .records = record));
}

static void *looker(void *arg)
{
        (void)arg;
        uint8_t packet[1024], reply[1024];
        struct ask ask = ASK("n0.stays.example", DNS_A);
        struct sardine_query q = {.sz = sizeof q, .packet = packet};
        q.len = ask_packet(&ask, packet);
        while (!atomic_load(&over)) {
                struct sardine_answer a = {.sz = sizeof a, .buf = reply, .cap = sizeof reply};
                if (sardine_lookup(old.cache, &q, &a) != SARDINE_HIT)
                        abort();
        }
        return NULL;
}

static void *loader(void *arg)
{
        const char *path = arg;
        while (!atomic_load(&over))
                sardine_snapshot_load(old.cache, path, NULL);
        return NULL;
}

static void b84_saves_among_everything_else(void **state)
{
        (void)state;
        char path[256];
        pthread_t threads[2];
        kit_close(&old);
        kit_close(&new);
        old.options.max_entries = new.options.max_entries = 2 * NAMES;
        kit_open(&new);
        kit_open(&old);
        for (unsigned i = 0; i < NAMES; i++)
                put_name(i);
        keep(&old, 1, false, true);
        sardine_snapshot_request(old.cache);
        await(&old, 0, 1);
        atomic_store(&over, false);
        pthread_create(&threads[0], NULL, looker, NULL);
        snprintf(path, sizeof path, "%s", path_of("s"));
        pthread_create(&threads[1], NULL, loader, path);
        sardine_snapshot_request(old.cache);
        expunge(&old, "gone.example");
        for (unsigned i = 0; i < 10; i++) {
                sardine_snapshot_request(old.cache);
                sardine_snapshot_save(old.cache, path_of("other"), NULL);
                expunge(&old, "nothing.example");
        }
        /* One save may have done for all that were wanted so far. */
        await(&old, 0, 2);
        sardine_snapshot_request(old.cache);
        await(&old, 0, 3);
        atomic_store(&over, true);
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
        kit_close(&old);
        load(&new, path_of("other"));
        assert_int_equal(kit_stats(&new).entries, NAMES / 2);
        kit_open(&old);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(b84_saved_at_the_end_and_loaded_at_the_start, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_destroying_the_cache_saves_it, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_at_intervals_if_anything_has_changed, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_an_unused_cache_leaves_the_file_alone, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_what_was_there_before_is_saved_at_the_end, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_on_demand, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_a_folder_that_cannot_be_written_is_told_at_once, setup,
                                            teardown),
            cmocka_unit_test_setup_teardown(b84_nothing_is_written_before_it_is_needed, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_a_file_with_another_name_is_not_written_to, setup, teardown),
            cmocka_unit_test_setup_teardown(b70_a_purge_after_the_save_survives_the_process, setup, teardown),
            cmocka_unit_test_setup_teardown(b85_a_journal_cut_off_hides_nothing_behind_it, setup, teardown),
            cmocka_unit_test_setup_teardown(b70_purges_missed_while_down, setup, teardown),
            cmocka_unit_test_setup_teardown(b70_a_journal_stays_with_a_snapshot_that_stays, setup, teardown),
            cmocka_unit_test_setup_teardown(b70_a_purge_that_no_journal_has_is_in_the_new_snapshot, setup,
                                            teardown),
            cmocka_unit_test_setup_teardown(b70_a_journal_that_another_one_removed_begins_anew, setup,
                                            teardown),
            cmocka_unit_test_setup_teardown(b70_no_purge_begins_while_a_file_gets_its_name, setup, teardown),
            cmocka_unit_test_setup_teardown(b70_purges_noted_by_many_at_once, setup, teardown),
            cmocka_unit_test_setup_teardown(b70_a_purge_of_everything_too, setup, teardown),
            cmocka_unit_test_setup_teardown(b70_what_a_list_removed_stays_removed, setup, teardown),
            cmocka_unit_test_setup_teardown(b70_a_list_voids_the_old_snapshot, setup, teardown),
            cmocka_unit_test_setup_teardown(b70_what_was_purged_during_a_save, setup, teardown),
            cmocka_unit_test_setup_teardown(b70_purges_take_no_memory_while_saves_fail, setup, teardown),
            cmocka_unit_test_setup_teardown(b70_by_tag_rcode_and_type, setup, teardown),
            cmocka_unit_test_setup_teardown(b70_the_journal_starts_anew_with_a_save, setup, teardown),
            cmocka_unit_test_setup_teardown(b85_a_journal_cut_off_counts_as_far_as_it_goes, setup, teardown),
            cmocka_unit_test_setup_teardown(b84_saves_among_everything_else, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
