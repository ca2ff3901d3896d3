/* SPDX-License-Identifier: MIT
 * What travels with a query, and the adapter's edits of messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host/flight.h"
#include "host/message.h"

static struct flight out, in;
static char text[FLIGHT_TEXT_SIZE];

static void fill(size_t token_len, size_t query_len)
{
        memset(&out, 0, sizeof out);
        out.cache = 0x12345678;
        out.flags = FLIGHT_CHANGED;
        out.token.len = (uint16_t)token_len;
        out.query_len = (uint16_t)query_len;
        for (size_t i = 0; i < token_len; i++)
                out.token.bytes[i] = (uint8_t)(i * 7);
        for (size_t i = 0; i < query_len; i++)
                out.query[i] = (uint8_t)(i * 13);
}

static void test_there_and_back(void **state)
{
        (void)state;
        const size_t lengths[][2] = {
            {0, 0}, {40, 0}, {0, 12}, {57, 33}, {sizeof out.token.bytes, FLIGHT_QUERY_MAX}};
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
                fill(lengths[i][0], lengths[i][1]);
                flight_write(&out, text);
                memset(&in, 0, sizeof in);
                assert_true(flight_read(text, &in));
                assert_memory_equal(&in, &out, sizeof in);
        }
}

static void test_cut_and_changed_texts(void **state)
{
        (void)state;
        fill(20, 30);
        flight_write(&out, text);
        size_t len = strlen(text);
        for (size_t cut = 0; cut < len; cut++) {
                char *copy = strdup(text);
                copy[cut] = '\0';
                /* What is cut in the query is a shorter query; the rest is noticed. */
                bool whole = cut % 2 == 0 && cut >= 2 * (FLIGHT_FIXED + 20);
                assert_int_equal(flight_read(copy, &in), whole);
                memcpy(copy, text, len);
                copy[cut] = 'G';
                assert_false(flight_read(copy, &in));
                free(copy);
        }
}

static const uint8_t plain[] = {0x12, 0x34, 1, 0x10, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 0, 0, 1, 0, 1};
static const uint8_t with_opt[] = {0x12, 0x34, 1, 0, 0,  1, 0, 0, 0, 0,    0,    1, 1, 'a', 0,  0, 1,
                                   0,    1,    0, 0, 41, 4, 0, 0, 0, 0x40, 0x01, 0, 4, 0,   10, 0, 0};

static void b45_do_is_added(void **state)
{
        (void)state;
        static const uint8_t opt[] = {0, 0, 41, 4, 0xd0, 0, 0, 0x80, 0, 0, 0};
        uint8_t query[64];
        memcpy(query, plain, sizeof plain);
        assert_int_equal(message_add_do(query, sizeof plain, sizeof plain + 10, 1232), 0);
        assert_memory_equal(query, plain, sizeof plain);
        assert_int_equal(message_add_do(query, sizeof plain, sizeof query, 1232), sizeof plain + sizeof opt);
        assert_memory_equal(query, plain, 11);
        assert_int_equal(query[11], 1);
        assert_memory_equal(query + sizeof plain, opt, sizeof opt);
        /* and not twice */
        assert_int_equal(message_add_do(query, sizeof plain + sizeof opt, sizeof query, 1232), 0);
}

static void b45_do_is_set_in_the_clients_opt(void **state)
{
        (void)state;
        uint8_t query[64], expected[64];
        for (int smaller = 0; smaller < 2; smaller++) {
                memcpy(query, with_opt, sizeof with_opt);
                memcpy(expected, with_opt, sizeof with_opt);
                expected[26] |= 0x80;
                if (!smaller)
                        expected[22] = 5; /* 1280 instead of 1024 */
                assert_int_equal(message_add_do(query, sizeof with_opt, sizeof query, smaller ? 1000 : 1280),
                                 sizeof with_opt);
                assert_memory_equal(query, expected, sizeof with_opt);
        }
}

static void test_nothing_happens_to_what_is_cut(void **state)
{
        (void)state;
        for (size_t len = MESSAGE_HEADER; len < sizeof with_opt; len++) {
                uint8_t *query = malloc(len), *response = malloc(len);
                memcpy(query, with_opt, len);
                size_t done = message_add_do(query, len, len, 1232);
                assert_true(done == 0 || done == len);
                assert_true(message_empty_response(query, len, MESSAGE_SERVFAIL, response) <= len);
                free(query);
                free(response);
        }
}

static void test_empty_response(void **state)
{
        (void)state;
        static const uint8_t expected[] = {0x12, 0x34, 0x81, 0x02, 0, 1, 0, 0, 0, 0,
                                           0,    0,    1,    'a',  0, 0, 1, 0, 1};
        uint8_t response[sizeof with_opt];
        assert_int_equal(message_empty_response(with_opt, sizeof with_opt, MESSAGE_SERVFAIL, response),
                         sizeof expected);
        assert_memory_equal(response, expected, sizeof expected);
        assert_int_equal(message_rcode(response), MESSAGE_SERVFAIL);
        assert_false(message_truncated(response));
        message_set_truncated(response);
        assert_true(message_truncated(response));
        message_copy_rd_cd(response, (const uint8_t[]){0, 0, 0, 0x10});
        assert_int_equal(response[2], 0x82);
        assert_int_equal(response[3], 0x12);
}

static void b48_a_response_with_nothing_but_an_opt(void **state)
{
        (void)state;
        uint8_t response[sizeof with_opt];
        memcpy(response, with_opt, sizeof with_opt);
        assert_int_equal(message_only_opt(response, sizeof response), sizeof plain);
        for (size_t len = 0; len <= sizeof plain + MESSAGE_OPT; len++) /* none, cut, or without options */
                assert_int_equal(message_only_opt(response, len), 0);
        for (int count = 5; count < 12; count += 2) {
                response[count] ^= 2;
                assert_int_equal(message_only_opt(response, sizeof response), 0);
                response[count] ^= 2;
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_there_and_back),
            cmocka_unit_test(test_cut_and_changed_texts),
            cmocka_unit_test(b45_do_is_added),
            cmocka_unit_test(b45_do_is_set_in_the_clients_opt),
            cmocka_unit_test(test_nothing_happens_to_what_is_cut),
            cmocka_unit_test(test_empty_response),
            cmocka_unit_test(b48_a_response_with_nothing_but_an_opt),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
