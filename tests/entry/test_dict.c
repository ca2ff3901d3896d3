/* SPDX-License-Identifier: MIT */
#include "message.h"

#include "entry/dict.h"
#include "wire/name.h"

static void every_item_is_found_by_itself(void **state)
{
        (void)state;
        unsigned items = 0;
        for (unsigned code = DICT_FIRST; code <= DICT_LAST; code++) {
                const struct dict_item *item = dict_item((uint8_t)code);
                if (item->len == 0)
                        continue;
                items++;
                if (dict_is_ending((uint8_t)code)) {
                        assert_int_equal(wire_name_length(item->wire, item->wire + item->len), item->len);
                        assert_int_equal(dict_find(item->wire, item->len), code);
                } else {
                        /* As the first label of a longer name. */
                        uint8_t name[DICT_WIRE_MAX + 9];
                        assert_int_equal(item->wire[0] + 1, item->len);
                        memcpy(name, item->wire, item->len);
                        memcpy(name + item->len, "\7example", 9);
                        assert_int_equal(dict_find(name, item->len + 9u), code);
                }
        }
        assert_in_range(items, 100, DICT_LAST - DICT_FIRST + 1);
}

static void no_item_is_there_twice(void **state)
{
        (void)state;
        for (unsigned i = DICT_FIRST; i <= DICT_LAST; i++) {
                const struct dict_item *a = dict_item((uint8_t)i);
                for (unsigned j = DICT_FIRST; j < i; j++) {
                        const struct dict_item *b = dict_item((uint8_t)j);
                        assert_false(a->len != 0 && a->len == b->len &&
                                     memcmp(a->wire, b->wire, a->len) == 0);
                }
        }
}

static void all_is_lower_case(void **state)
{
        (void)state;
        for (unsigned code = DICT_FIRST; code <= DICT_LAST; code++) {
                const struct dict_item *item = dict_item((uint8_t)code);
                for (unsigned i = 0; i < item->len; i++)
                        assert_int_equal(item->wire[i], wire_fold(item->wire[i]));
        }
}

static uint8_t find(const char *text)
{
        uint8_t name[255];
        size_t len = name_wire(text, name);
        return dict_find(name, len);
}

static void only_whole_labels_in_lower_case_are_found(void **state)
{
        (void)state;
        assert_int_not_equal(find("com"), 0);
        assert_true(dict_is_ending(find("com")));
        assert_int_equal(find("com.example"), 0);
        assert_int_equal(find("Com"), 0);
        assert_int_equal(find("comm"), 0);
        assert_int_not_equal(find("www.example"), 0);
        assert_false(dict_is_ending(find("www.example")));
        assert_int_equal(find("WWW.example"), 0);
        assert_int_equal(find("ww.example"), 0);
        assert_int_equal(find("."), 0);
        assert_int_equal(find("an-unknown-label-of-some-length.example"), 0);
        /* "app" is both. */
        assert_true(dict_is_ending(find("app")));
        assert_false(dict_is_ending(find("app.example")));
}

static void the_next_shorter_ending_is_known(void **state)
{
        (void)state;
        assert_int_equal(dict_shorter(find("co.uk")), find("uk"));
        assert_int_equal(dict_shorter(find("google.com")), find("com"));
        assert_int_equal(dict_shorter(find("com")), 0);
        assert_int_equal(dict_shorter(find("in-addr.arpa")), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_item_is_found_by_itself),
            cmocka_unit_test(no_item_is_there_twice),
            cmocka_unit_test(all_is_lower_case),
            cmocka_unit_test(only_whole_labels_in_lower_case_are_found),
            cmocka_unit_test(the_next_shorter_ending_is_known),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
