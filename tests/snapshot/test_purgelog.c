/* SPDX-License-Identifier: MIT
 * The memory of purges has a bound, beyond which it says too much rather than too little; and a set of purges
 * removes what its records remove one by one (B70). */
#include "file_kit.h"

#include <stdio.h>
#include <stdlib.h>

#include "entry/page.h"
#include "entry/view.h"
#include "snapshot/file.h"
#include "snapshot/purgelog.h"
#include "snapshot/purgerecord.h"
#include "snapshot/purgeset.h"
#include "wire/bytes.h"
#include "wire/dns.h"

enum {
        CHUNK = 1000,
        MANY = 300000, /* more than the log has room for */
};

static const uint8_t everything[] = {0, PURGE_LEAST, 0, 0, 0, 0, 0, 0, 0, 0};

static void note_number(struct purgelog *log, unsigned i)
{
        char text[32];
        uint8_t name[255];
        struct sardine_selector selector = {.sz = sizeof selector, .name = name};
        snprintf(text, sizeof text, "n%u.example", i);
        selector.name_len = (uint32_t)sardine_name_from_text(text, name);
        purgelog_note(log, &selector);
}

/* How many records there are from there on; the first one is that of everything, or must not be. */
static unsigned count_from(const struct purgelog *log, uint64_t since, bool all)
{
        uint8_t bytes[CHUNK];
        unsigned n = 0;
        for (size_t len; (len = purgelog_read(log, &since, bytes, sizeof bytes)) > 0;) {
                assert_int_equal(purge_record_check(bytes, len), len);
                for (size_t at = 0; at < len; at += get_be16(bytes + at), n++)
                        assert_int_equal(memcmp(bytes + at, everything, sizeof everything) == 0,
                                         all && n == 0);
        }
        assert_int_equal(since, log->start + log->len);
        return n;
}

static void b70_nothing_is_kept_for_nobody(void **state)
{
        (void)state;
        struct purgelog log = {0};
        for (unsigned i = 0; i < CHUNK; i++)
                note_number(&log, i);
        assert_int_equal(log.len, 0);
        assert_null(log.bytes);
}

static void b70_too_many_purges_become_one_of_everything(void **state)
{
        (void)state;
        struct purgelog log = {0};
        uint64_t first, middle = 0, last;
        unsigned since_middle = 0, i;
        assert_true(purgelog_begin(&log, &first));
        for (i = 0; log.start == first && i < MANY; i++) {
                if (i == CHUNK) {
                        assert_true(purgelog_begin(&log, &middle));
                        assert_int_equal(count_from(&log, first, false), CHUNK);
                }
                note_number(&log, i);
                assert_true(log.room <= PURGELOG_MOST && log.len <= log.room);
        }
        assert_in_range(i, PURGELOG_MOST / 40, MANY - 1);
        /* Everything, and the one that had no room. */
        assert_int_equal(count_from(&log, first, true), 2);
        assert_int_equal(count_from(&log, middle, true), 2);
        assert_true(purgelog_begin(&log, &last));
        assert_int_equal(count_from(&log, last, false), 0);
        for (; since_middle < CHUNK; since_middle++)
                note_number(&log, since_middle);
        assert_int_equal(count_from(&log, last, false), CHUNK);
        assert_int_equal(count_from(&log, first, true), 2 + CHUNK);
        for (unsigned n = 0; n < 3; n++)
                purgelog_end(&log);
        assert_null(log.bytes);
        purgelog_fini(&log);
}

/* Whoever has read up to where it overflows has heard all of it. */
static void b70_who_has_read_it_is_not_told_again(void **state)
{
        (void)state;
        struct purgelog log = {0};
        uint64_t since, before_last, start;
        uint8_t bytes[PURGE_MAX];
        assert_true(purgelog_begin(&log, &since));
        start = before_last = since;
        for (unsigned i = 0;; i++) {
                assert_true(i < MANY);
                note_number(&log, i);
                if (log.start != start)
                        break;
                before_last = since;
                assert_true(purgelog_read(&log, &since, bytes, sizeof bytes) > 0);
        }
        assert_int_equal(count_from(&log, since, false), 1);
        assert_int_equal(count_from(&log, before_last, true), 2);
        purgelog_end(&log);
}

/* ---- a set of them ---- */

enum {
        ENTRIES = 400,
        RECORDS = 64,
        ROUNDS = 2000,
};

static struct {
        struct entry_checked checked;
        uint8_t *bytes;
} entries[ENTRIES];
static unsigned n_entries;

static int read_entries(void **state)
{
        (void)state;
        static struct kit kit;
        struct snapshot_reader reader;
        const char *why;
        kit_init(&kit);
        kit_open(&kit);
        fill_variety(&kit, 100);
        save(&kit, path_of("s"));
        kit_close(&kit);
        assert_int_equal(snapshot_open(path_of("s"), &reader, &why), 0);
        for (enum block_kind kind = BLOCK_ENTRIES; kind <= BLOCK_PAGES; kind++) {
                snapshot_rewind(&reader);
                while (snapshot_next_block(&reader, kind)) {
                        struct entry_checked checked;
                        for (uint8_t *entry; (entry = snapshot_next_entry(&reader, &checked));) {
                                assert_true(n_entries < ENTRIES);
                                entries[n_entries].checked = checked;
                                entries[n_entries].bytes = aligned_alloc(8, (checked.size + 7u) & ~7u);
                                memcpy(entries[n_entries++].bytes, entry, checked.size);
                        }
                }
        }
        snapshot_close(&reader);
        return 0;
}

static int free_entries(void **state)
{
        (void)state;
        while (n_entries > 0)
                free(entries[--n_entries].bytes);
        return 0;
}

static uint32_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
        random_state = random_state * 1664525 + 1013904223;
        return (random_state >> 8) % n;
}

static size_t random_record(uint8_t out[PURGE_MAX])
{
        static const char *const names[] = {".",           "example.com",     "a.example.com",  "example",
                                            "cdn.example", "www.example.org", "b.a.example.com"};
        static const char *const tags[] = {"", "tenant", "other"};
        static const uint16_t types[] = {0, DNS_A, DNS_MX, DNS_ANY, 257};
        uint8_t name[255];
        struct sardine_selector s = {.sz = sizeof s};
        if (random_below(4)) {
                s.name = name;
                s.name_len = (uint32_t)sardine_name_from_text(names[random_below(7)], name);
                s.below = random_below(2);
        }
        if (random_below(2))
                s.qtype = types[random_below(5)];
        if (random_below(2)) {
                s.use_tag = 1;
                s.tag = tags[random_below(3)];
                s.tag_len = (uint32_t)strlen(s.tag);
        }
        if (random_below(3) == 0) {
                s.use_rcode = 1;
                s.rcode = random_below(4);
        }
        if (random_below(8) == 0) {
                s.group = "g";
                s.group_len = 1;
        }
        return purge_record_write(&s, out);
}

static bool removed_by_one(const uint8_t *records, size_t len, unsigned i)
{
        struct entry_view view;
        const struct entry_key *key = &entries[i].checked.key;
        for (size_t at = 0; at < len; at += get_be16(records + at)) {
                if (!entries[i].checked.page) {
                        entry_view_init(&view, entries[i].bytes);
                        if (purge_record_removes(records + at, key, &view))
                                return true;
                        continue;
                }
                struct page_view page;
                page_view_init(&page, entries[i].bytes);
                for (unsigned k = 0; k < page.count; k++) {
                        entry_view_init(&view, page_answer(&page, k));
                        if (purge_record_removes(records + at, key, &view))
                                return true;
                }
        }
        return false;
}

static void b70_a_set_removes_what_its_records_remove(void **state)
{
        (void)state;
        unsigned went = 0, stayed = 0;
        for (unsigned round = 0; round < ROUNDS; round++) {
                uint8_t records[RECORDS * PURGE_MAX];
                struct purgeset set = {0};
                size_t len = 0, added = 0;
                for (unsigned n = random_below(3) ? 1 : random_below(RECORDS); n > 0; n--) {
                        len += random_record(records + len);
                        if (random_below(2)) {
                                assert_true(purgeset_add(&set, records + added, len - added));
                                added = len;
                        }
                }
                assert_true(purgeset_add(&set, records + added, len - added));
                for (unsigned i = 0; i < n_entries; i++) {
                        bool goes = removed_by_one(records, len, i);
                        assert_int_equal(purgeset_removes(&set, &entries[i].checked, entries[i].bytes), goes);
                        went += goes;
                        stayed += !goes;
                }
                purgeset_fini(&set);
        }
        assert_true(went > 1000 && stayed > 1000);
}

/* The same purge again and again takes no room. */
static void b70_a_set_knows_what_it_has(void **state)
{
        (void)state;
        struct purgeset set = {0};
        uint8_t record[PURGE_MAX];
        random_state = 7;
        size_t len = random_record(record);
        for (unsigned i = 0; i < CHUNK; i++)
                assert_true(purgeset_add(&set, record, len));
        assert_int_equal(set.count, 1);
        assert_int_equal(set.len, len);
        purgeset_fini(&set);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(b70_nothing_is_kept_for_nobody),
            cmocka_unit_test(b70_too_many_purges_become_one_of_everything),
            cmocka_unit_test(b70_who_has_read_it_is_not_told_again),
            cmocka_unit_test_setup_teardown(b70_a_set_removes_what_its_records_remove, read_entries,
                                            free_entries),
            cmocka_unit_test(b70_a_set_knows_what_it_has),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
