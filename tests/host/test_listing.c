/* SPDX-License-Identifier: MIT
 * The dump and the lists, with messages that a test with a real server would not easily make. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/listing.h"
#include "host/survey.h"

static sardine_cache *cache;

static int setup(void **state)
{
        (void)state;
        struct sardine_options opt;
        sardine_options_init(&opt, sizeof opt);
        return sardine_create(&opt, &cache);
}

static int teardown(void **state)
{
        (void)state;
        sardine_destroy(cache);
        return 0;
}

/* Keep a response to the A query for a label; `records` follow its question. */
static void keep(const char *label, size_t label_len, uint8_t rcode, const uint8_t counts[3],
                 const uint8_t *records, size_t len)
{
        uint8_t message[2048] = {0, 1, 1, 0, 0, 1};
        size_t end = 12;
        message[end++] = (uint8_t)label_len;
        memcpy(message + end, label, label_len);
        end += label_len;
        memcpy(message + end, "\0\0\1\0\1", 5);
        end += 5;
        struct sardine_query query = {.sz = sizeof query, .packet = message, .len = end};
        struct sardine_token token;
        assert_int_equal(sardine_token_init(cache, &query, &token), 0);
        message[2] |= 0x80;
        message[3] = rcode;
        for (int i = 0; i < 3; i++)
                message[7 + 2 * i] = counts[i];
        memcpy(message + end, records, len);
        assert_int_equal(sardine_insert(cache, &token, message, end + len, NULL, NULL), SARDINE_STORED);
}

#define A_RECORD "\xc0\x0c\0\1\0\1\0\0\1\x2c\0\4\xc0\0\2\1"

static void b76_additional_records_count(void **state)
{
        (void)state;
        static const char records[] = A_RECORD "\1a\xc0\x0c\0\x1c\0\1\0\0\1\x2c\0\x10"
                                               " \1\r\xb8\0\0\0\0\0\0\0\0\0\0\0\1";
        keep("x", 1, 0, (const uint8_t[]){1, 0, 1}, (const uint8_t *)records, sizeof records - 1);
        uint8_t address[16];
        assert_int_equal(sardine_dnsdist_address("2001:db8::1", address), 16);
        char *list = sardine_dnsdist_names_with(cache, address, 16);
        assert_string_equal(list, "x.\n");
        sardine_dnsdist_free(list);
        list = sardine_dnsdist_addresses_of(cache, (const uint8_t *)"\1X", 3);
        assert_string_equal(list, "192.0.2.1\n2001:db8::1\n");
        sardine_dnsdist_free(list);
        assert_int_equal(sardine_dnsdist_address("2001:db8::1::", address), 0);
        assert_int_equal(sardine_dnsdist_address("", address), 0);
}

static void b76_odd_names_are_escaped(void **state)
{
        (void)state;
        keep("a\n\0;", 4, 0, (const uint8_t[]){1, 0, 0}, (const uint8_t *)A_RECORD, sizeof A_RECORD - 1);
        uint8_t address[16];
        assert_int_equal(sardine_dnsdist_address("192.0.2.1", address), 4);
        char *list = sardine_dnsdist_names_with(cache, address, 4);
        assert_string_equal(list, "a\\010\\000\\;.\n");
        sardine_dnsdist_free(list);
}

static void test_nothing_to_list(void **state)
{
        (void)state;
        char *list = sardine_dnsdist_addresses_of(cache, (const uint8_t *)"", 1);
        assert_string_equal(list, "");
        sardine_dnsdist_free(list);
}

static void test_a_full_disk(void **state)
{
        (void)state;
        for (int i = 0; i < 100; i++) {
                char label[8];
                int len = snprintf(label, sizeof label, "n%d", i);
                keep(label, (size_t)len, 0, (const uint8_t[]){1, 0, 0}, (const uint8_t *)A_RECORD,
                     sizeof A_RECORD - 1);
        }
        char path[] = "/tmp/sardine-dump-XXXXXX";
        close(mkstemp(path));
        assert_int_equal(sardine_dnsdist_dump(cache, path, 0), -EEXIST);
        unlink(path);
        struct rlimit before;
        getrlimit(RLIMIT_FSIZE, &before);
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 1000, .rlim_max = before.rlim_max});
        int64_t result = sardine_dnsdist_dump(cache, path, 1);
        setrlimit(RLIMIT_FSIZE, &before);
        assert_int_equal(result, -EFBIG);
        unlink(path);
        assert_int_equal(sardine_dnsdist_dump(cache, path, 1), 100);
        unlink(path);
}

static void b76_json_is_escaped(void **state)
{
        (void)state;
        keep("q\"\\\1", 4, 0, (const uint8_t[]){1, 0, 0}, (const uint8_t *)A_RECORD, sizeof A_RECORD - 1);
        char path[] = "/tmp/sardine-dump-XXXXXX", line[1024];
        int fd = mkstemp(path);
        const struct sardine_dnsdist_filter filter = {.raw = 1};
        assert_int_equal(sardine_dnsdist_dump_json(cache, path, NULL, &filter), -EEXIST);
        close(fd);
        unlink(path);
        assert_int_equal(sardine_dnsdist_dump_json(cache, path, NULL, &filter), 1);
        FILE *from = fopen(path, "r");
        assert_non_null(fgets(line, sizeof line, from));
        /* in text a quote is \", a backslash is \\; JSON doubles the backslashes again */
        assert_non_null(strstr(line, "\"name\":\"q\\\"\\\\\\\\\\\\001.\""));
        fclose(from);
        unlink(path);
}

static void b76_a_survey_counts_everything_once(void **state)
{
        (void)state;
        for (int i = 0; i < 300; i++) {
                char label[8];
                int len = snprintf(label, sizeof label, "n%d", i % 100);
                if (i < 100)
                        keep(label, (size_t)len, 0, (const uint8_t[]){1, 0, 0}, (const uint8_t *)A_RECORD,
                             sizeof A_RECORD - 1);
        }
        struct sardine_dnsdist_survey survey;
        struct sardine_stats stats = {.sz = sizeof stats};
        char *zones = NULL;
        assert_int_equal(sardine_dnsdist_measure(cache, &survey, 1, &zones), 0);
        sardine_stats_get(cache, &stats);
        assert_int_equal(survey.all.entries, 100);
        assert_int_equal(survey.all.bytes, stats.entry_bytes);
        assert_int_equal(survey.n_types, 1);
        assert_int_equal(survey.of_type[0].entries, 100);
        uint64_t lives = 0;
        for (int i = 0; i < SARDINE_SURVEY_LIVES; i++)
                lives += survey.of_life[i].entries;
        assert_int_equal(lives, 100);
        size_t lines = 0;
        for (const char *at = zones; (at = strchr(at, '\n')) != NULL; at++)
                lines++;
        assert_int_equal(lines, 100); /* zones of one label: every name */
        sardine_dnsdist_free(zones);
        assert_int_equal(sardine_dnsdist_measure(cache, &survey, 0, NULL), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
            T(b76_additional_records_count),        T(b76_odd_names_are_escaped), T(b76_json_is_escaped),
            T(b76_a_survey_counts_everything_once), T(test_nothing_to_list),      T(test_a_full_disk),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
