/* SPDX-License-Identifier: MIT
 * The busiest names: the heavy ones are found among many, and counts are never too high. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host/top.h"

static struct top *top;

static int setup(void **state)
{
        (void)state;
        top = calloc(1, sizeof *top);
        top_init(top);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        free(top);
        return 0;
}

static void ask(const char *label, int hit)
{
        uint8_t query[300] = {0, 0, 1, 0, 0, 1};
        size_t len = strlen(label);
        query[12] = (uint8_t)len;
        memcpy(query + 13, label, len);
        query[13 + len + 2] = 1;
        query[13 + len + 4] = 1;
        top_count(top, 7, query, 13 + len + 5, hit);
}

static const struct top_item *find(const struct top_table *table, const char *label)
{
        for (uint32_t i = 0; i < table->n; i++)
                if (table->items[i].question.name_len == strlen(label) + 2 &&
                    memcmp(table->items[i].question.name + 1, label, strlen(label)) == 0)
                        return &table->items[i];
        return NULL;
}

static void test_exact_while_they_are_few(void **state)
{
        (void)state;
        for (int i = 0; i < 30; i++)
                ask(i % 2 ? "WWW" : "www", i >= 10);
        ask("once", 0);
        const struct top_item *item = find(&top->asked, "www");
        assert_int_equal(item->queries, 30);
        assert_int_equal(item->hits, 20);
        assert_int_equal(item->error, 0);
        assert_int_equal(item->cache, 7);
        assert_int_equal(item->question.type, 1);
        assert_int_equal(find(&top->missed, "www")->queries, 10);
        assert_int_equal(find(&top->missed, "once")->queries, 1);
}

static void test_the_heavy_one_is_found_among_many(void **state)
{
        (void)state;
        char label[16];
        unsigned heavy = 0;
        for (int i = 0; i < 4000; i++) {
                snprintf(label, sizeof label, "n%d", i);
                ask(label, 0);
                if (i % 20 == 0) {
                        ask("heavy", 1);
                        heavy++;
                }
        }
        const struct top_item *item = find(&top->asked, "heavy");
        assert_non_null(item);
        assert_true(item->queries - item->error <= heavy);
        for (uint32_t i = 0; i < top->asked.n; i++) {
                const struct top_item *other = &top->asked.items[i];
                assert_true(other->hits <= other->queries - other->error);
                if (other != item)
                        assert_true(other->queries - other->error < item->queries - item->error);
        }
}

static void test_under_load_fewer_are_looked_at(void **state)
{
        (void)state;
        for (int i = 0; i < 400000; i++)
                ask(i % 4 ? "often" : "rarely", 1);
        assert_true(top->stride > 1);
        uint64_t often = find(&top->asked, "often")->queries, rarely = find(&top->asked, "rarely")->queries;
        assert_true(often > rarely);
}

static void test_what_is_no_question_is_passed_over(void **state)
{
        (void)state;
        uint8_t query[40] = {0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1};
        for (size_t len = 0; len < sizeof query; len++)
                top_count(top, 7, query, len, 0);
        query[12] = 63;
        for (size_t len = 0; len < sizeof query; len++)
                top_count(top, 7, query, len, 0);
        assert_int_equal(top->asked.n, 0);
        /* a reader has the lock: the query is passed over, nobody waits */
        pthread_mutex_lock(&top->lock);
        ask("www", 1);
        pthread_mutex_unlock(&top->lock);
        assert_int_equal(top->asked.n, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
            T(test_exact_while_they_are_few),
            T(test_the_heavy_one_is_found_among_many),
            T(test_under_load_fewer_are_looked_at),
            T(test_what_is_no_question_is_passed_over),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
