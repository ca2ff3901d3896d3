/* SPDX-License-Identifier: MIT
 * Pages of networks: what goes in comes out, equal answers are kept once, lives move in place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "entry/encode.h"
#include "entry/header.h"
#include "entry/page.h"
#include "entry/view.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/response.h"

enum {
        NOW = ENTRY_SECOND_ZERO,
        ANSWERS = 8,
};

static struct entry_key key;
static _Alignas(4) uint8_t answers[ANSWERS][256];
static _Alignas(4) uint8_t built[ENTRY_MAX];

/* Eight answers with two addresses each. */
static int setup(void **state)
{
        (void)state;
        static const uint8_t question[] = "\0\0\x80\0\0\1\0\2\0\0\0\0\3cdn\7example\0\0\1\0\1";
        for (unsigned n = 0; n < ANSWERS; n++) {
                uint8_t packet[128];
                struct wire_rr rrs[8];
                struct wire_response response;
                size_t at = sizeof question - 1;
                memcpy(packet, question, at);
                for (uint8_t i = 0; i < 2; i++, at += 16) {
                        memcpy(packet + at, "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc0\0\2\0", 16);
                        packet[at + 15] = (uint8_t)(2 * n + i);
                }
                assert_int_equal(wire_response_parse(packet, at, rrs, 8, &response), 0);
                entry_key_init(&key, response.qname, response.qname_len, DNS_A, true, false, NULL, 0);
                const struct encode_params params = {.expiry = NOW + 60, .life = 60};
                assert_int_not_equal(entry_encode(&key, &response, &params, answers[n], sizeof answers[n]),
                                     0);
        }
        return 0;
}

static void make_items(struct page_item *items, unsigned count)
{
        memset(items, 0, count * sizeof *items);
        for (unsigned i = 0; i < count; i++) {
                put_be32(items[i].network, (i * 2654435761u) & 0xffffff00u);
                items[i].life = (struct entry_life){.expiry = NOW + 1 + i, .code = life_encode(1 + i)};
                items[i].answer = answers[i % ANSWERS];
        }
}

static void b20_what_goes_in_comes_out(void **state)
{
        (void)state;
        static const unsigned counts[] = {1, 2, 63, 64, 255};
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
                struct page_item items[PAGE_NETWORKS_MAX];
                unsigned count = counts[c];
                make_items(items, count);
                entry_key_set_page(&key, network_code(ECS_IPV4, 24), (uint16_t)(7 + c));
                size_t size = page_build(&key, items, count, built, sizeof built);
                assert_int_not_equal(size, 0);
                assert_int_equal(entry_size(built), size);
                assert_true(entry_key_match(&key, built));
                assert_true(entry_is_page(built));
                assert_int_equal(entry_expiry(built), NOW + count); /* the latest */
                entry_key_set_page(&key, network_code(ECS_IPV4, 24), (uint16_t)(8 + c));
                assert_false(entry_key_match(&key, built));

                struct page_view page;
                page_view_init(&page, built);
                assert_int_equal(page.count, count);
                assert_int_equal(page.answer_count, count < ANSWERS ? count : ANSWERS);
                for (unsigned i = 0; i < count; i++) {
                        struct page_item item;
                        assert_int_equal(page_find(&page, items[i].network), i);
                        page_item(&page, i, &item);
                        assert_memory_equal(item.network, items[i].network, 16);
                        assert_int_equal(item.life.expiry, items[i].life.expiry);
                        assert_int_equal(item.life.code, items[i].life.code);
                        assert_true(entry_same_answer(item.answer, items[i].answer));
                }
                static const uint8_t none[16] = {1, 2, 3};
                assert_int_equal(page_find(&page, none), -1);
        }
}

static void a_network_costs_little_more_than_its_prefix(void **state)
{
        (void)state;
        struct page_item items[64];
        make_items(items, 64);
        entry_key_set_page(&key, network_code(ECS_IPV4, 24), 0);
        size_t size = page_build(&key, items, 64, built, sizeof built);
        assert_true(size <= 64 * 9 + ANSWERS * entry_size(answers[0]) + 48);
}

static void a_life_moves_in_place(void **state)
{
        (void)state;
        struct page_item items[5];
        make_items(items, 5);
        entry_key_set_page(&key, network_code(ECS_IPV6, 56), 0);
        assert_int_not_equal(page_build(&key, items, 5, built, sizeof built), 0);
        struct page_view page;
        page_view_init(&page, built);
        page_set_life(&page, 3, (struct entry_life){.expiry = NOW + 1000, .code = life_encode(900)});
        for (unsigned i = 0; i < 5; i++)
                assert_int_equal(page_life(&page, i).expiry, i == 3 ? NOW + 1000 : NOW + 1 + i);
        assert_int_equal(page_life(&page, 3).code, life_encode(900));
}

static void no_room_is_said(void **state)
{
        (void)state;
        struct page_item items[64];
        make_items(items, 64);
        entry_key_set_page(&key, network_code(ECS_IPV4, 24), 0);
        size_t size = page_build(&key, items, 64, built, sizeof built);
        assert_int_equal(page_build(&key, items, 64, built, size), size);
        for (size_t room = 0; room < size; room += 4)
                assert_int_equal(page_build(&key, items, 64, built, room), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(b20_what_goes_in_comes_out),
            cmocka_unit_test(a_network_costs_little_more_than_its_prefix),
            cmocka_unit_test(a_life_moves_in_place),
            cmocka_unit_test(no_room_is_said),
        };
        return cmocka_run_group_tests_name("entry/page", tests, setup, NULL);
}
