/* SPDX-License-Identifier: MIT */
#include "message.h"

#include <stdio.h>

#include "entry/stored.h"
#include "entry/writer.h"

enum {
        ROOM = 1 << 16,
};

static uint8_t bytes[ROOM];
static struct entry_writer writer;
static uint8_t question[255];

static void start(const char *name)
{
        size_t len = name_wire(name, question);
        memset(bytes, 0xee, sizeof bytes);
        writer_init(&writer, bytes, sizeof bytes);
        writer_put(&writer, "headhead", 8);
        writer_put_question(&writer, question, len);
}

/* `follow_from`: how many of the name's labels come before the part that was taken from the question; -1:
 * none was. Returns where the name is stored. */
static size_t put_taken(const char *text, int follow_from, bool follow)
{
        struct wire_name name;
        size_t at = writer.pos;
        name.len = name.from_question = (uint8_t)name_wire(text, name.bytes);
        if (follow_from >= 0) {
                name.from_question = 0;
                while (follow_from-- > 0)
                        name.from_question =
                            (uint8_t)(name.from_question + name.bytes[name.from_question] + 1);
        }
        writer_put_name(&writer, &name, follow);
        assert_false(writer.full);
        return at;
}

static size_t put(const char *text)
{
        return put_taken(text, -1, true);
}

static void check(size_t at, const char *text)
{
        uint8_t expected[255], got[255];
        size_t len = name_wire(text, expected);
        assert_int_equal(stored_name_expand(bytes, bytes + at, got), len);
        assert_memory_equal(got, expected, len);
}

static size_t stored_len(size_t at)
{
        return (size_t)(stored_name_skip(bytes + at) - (bytes + at));
}

/* Does any part of the stored name follow the question's case? */
static bool follows(size_t at)
{
        struct name_walk walk;
        struct name_part part;
        name_walk_init(&walk, bytes, bytes + at);
        do
                name_walk_next(&walk, &part);
        while (!part.last);
        return part.follow;
}

static void varints_keep_their_value_in_as_few_bytes(void **state)
{
        (void)state;
        static const struct {
                uint32_t value;
                size_t len;
        } cases[] = {
            {0, 1},    {1, 1},     {239, 1},  {240, 2},        {241, 2},   {495, 2},
            {496, 2},  {4078, 2},  {4079, 2}, {4080, 5},       {65535, 5}, {0x7fffffff, 5},
            {3600, 2}, {86400, 5}, {255, 2},  {0xffffffff, 5},
        };
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                writer_init(&writer, bytes, sizeof bytes);
                writer_put_varint(&writer, cases[i].value);
                assert_int_equal(writer.pos, cases[i].len);
                const uint8_t *p = bytes;
                assert_int_equal(varint_get(&p), cases[i].value);
                assert_ptr_equal(p, bytes + cases[i].len);
        }
        for (uint32_t value = 0; value < 70000; value++) {
                writer_init(&writer, bytes, sizeof bytes);
                writer_put_varint(&writer, value);
                const uint8_t *p = bytes;
                assert_int_equal(varint_get(&p), value);
        }
}

static void names_come_back_and_share_their_ends(void **state)
{
        (void)state;
        start("www.example.org");
        check(8, "www.example.org");
        assert_int_equal(writer.pos, 8 + 1 + 8 + 1); /* dictionary, label, dictionary */
        size_t same = put("www.example.org");
        size_t above = put("example.org");
        size_t beside = put("host-a.example.org");
        size_t again = put("host-a.example.org");
        size_t below = put("x-y.host-a.example.org");
        size_t ending = put("org");
        size_t other = put("example.com");
        size_t root = put(".");
        check(same, "www.example.org");
        check(above, "example.org");
        check(beside, "host-a.example.org");
        check(again, "host-a.example.org");
        check(below, "x-y.host-a.example.org");
        check(ending, "org");
        check(other, "example.com");
        check(root, ".");
        assert_int_equal(stored_len(same), 2);
        assert_int_equal(stored_len(above), 2);
        assert_int_equal(stored_len(beside), 7 + 2);
        assert_int_equal(stored_len(again), 2);
        assert_int_equal(stored_len(below), 4 + 2);
        assert_int_equal(stored_len(ending), 1);
        assert_int_equal(stored_len(other), 8 + 1);
        assert_int_equal(stored_len(root), 1);
}

static void b26_other_names_keep_their_case(void **state)
{
        (void)state;
        start("www.example.org");
        size_t mixed = put("wWw.eXample.Org");
        size_t again = put("wWw.eXample.Org");
        size_t lower = put("mail.example.org");
        size_t upper = put("mail.EXAMPLE.org");
        check(mixed, "wWw.eXample.Org");
        check(again, "wWw.eXample.Org");
        check(lower, "mail.example.org");
        check(upper, "mail.EXAMPLE.org");
        assert_int_equal(stored_len(again), 2);
        assert_int_equal(stored_len(lower), 1 + 2);
        assert_false(follows(mixed) || follows(lower) || follows(upper));
}

static void b26_what_was_taken_from_the_question_follows_it(void **state)
{
        (void)state;
        start("www.example.org");
        /* The upstream's question was in some client's case: that is not to be kept. */
        size_t a = put_taken("host.eXaMpLe.oRg", 1, true);
        size_t exact = put("host.example.org");
        size_t b = put_taken("host.eXaMpLe.oRg", 1, true);
        size_t whole = put_taken("wWw.eXaMpLe.oRg", 0, true);
        size_t never = put_taken("host.eXaMpLe.oRg", 1, false);
        check(a, "host.example.org");
        check(exact, "host.example.org");
        check(b, "host.example.org");
        check(whole, "www.example.org");
        check(never, "host.eXaMpLe.oRg");
        assert_true(follows(a) && follows(b) && follows(whole));
        assert_false(follows(exact) || follows(never));
        assert_int_equal(stored_len(a), 5 + 2);
        assert_int_equal(stored_len(b), 2);
        assert_int_equal(stored_len(exact), 5 + 2);
}

static void b26_an_ending_taken_from_the_question_follows_it_if_it_is_whole(void **state)
{
        (void)state;
        start("www.example.co.uk");
        size_t ending = put_taken("host.Co.uK", 1, true);
        size_t again = put_taken("host.Co.uK", 1, true);
        size_t inside = put_taken("host.xy.uK", 2, true);
        size_t root = put_taken("host.", 1, true);
        check(ending, "host.co.uk");
        check(again, "host.co.uk");
        check(inside, "host.xy.uk");
        check(root, "host");
        assert_true(follows(ending) && follows(again));
        assert_false(follows(inside) || follows(root));
        assert_int_equal(stored_len(ending), 5 + 2);
        assert_int_equal(stored_len(again), 2);
        start("example.com");
        size_t longer = put_taken("ns1.google.Com", 2, true);
        size_t once_more = put_taken("ns1.google.Com", 2, true);
        check(longer, "ns1.google.com");
        check(once_more, "ns1.google.com");
        assert_false(follows(longer));
        assert_int_equal(stored_len(longer), 1 + 1);
        start("google.com");
        size_t whole = put_taken("x.gOOgle.Com", 1, true);
        check(whole, "x.google.com");
        assert_true(follows(whole));
}

static void the_root_as_question(void **state)
{
        (void)state;
        start(".");
        check(8, ".");
        size_t a = put("a.root-servers.net");
        size_t b = put_taken("host.", 1, true);
        check(a, "a.root-servers.net");
        check(b, "host");
        assert_int_equal(stored_len(a), 2);
}

/* More names than there are slots, and further on than a reference reaches. */
static void a_thousand_names_come_back(void **state)
{
        (void)state;
        start("example.org");
        static size_t at[2000];
        char text[64];
        for (unsigned i = 0; i < 2000; i++) {
                snprintf(text, sizeof text, "host-%u.sub-%u.example.org", i, i % 700);
                at[i] = put(text);
        }
        assert_true(writer.pos > STORED_REF_MAX);
        for (unsigned i = 0; i < 2000; i++) {
                snprintf(text, sizeof text, "host-%u.sub-%u.example.org", i, i % 700);
                check(at[i], text);
        }
        /* What they all share was there first. */
        assert_int_equal(stored_len(at[1999]), 10 + 8 + 2);
}

static void names_of_127_labels_come_back(void **state)
{
        (void)state;
        char text[256];
        for (unsigned i = 0; i < 127; i++) {
                text[2 * i] = (char)('a' + i % 26);
                text[2 * i + 1] = '.';
        }
        text[254] = 0;
        start(text);
        size_t same = put(text);
        size_t part = put(text + 20);
        text[0] = 'z';
        size_t other = put(text);
        check(other, text);
        check(part, text + 20);
        text[0] = 'a';
        check(same, text);
        assert_int_equal(stored_len(same), 2);
        assert_int_equal(stored_len(other), 2 + 2);
}

static void what_does_not_fit_is_noticed(void **state)
{
        (void)state;
        size_t len = name_wire("www.example.org", question);
        for (size_t room = 0; room < 40; room++) {
                uint8_t small[40];
                struct wire_name name;
                name.len = name.from_question = (uint8_t)name_wire("host.example.com", name.bytes);
                memset(small, 0xee, sizeof small);
                writer_init(&writer, small, room);
                writer_put(&writer, "headhead", 8);
                writer_put_question(&writer, question, len);
                writer_put_name(&writer, &name, true);
                writer_put_varint(&writer, 70000);
                assert_int_equal(writer.full, room < 8 + 10 + (5 + 8 + 1) + 5);
                for (size_t i = room; i < sizeof small; i++)
                        assert_int_equal(small[i], 0xee);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(varints_keep_their_value_in_as_few_bytes),
            cmocka_unit_test(names_come_back_and_share_their_ends),
            cmocka_unit_test(b26_other_names_keep_their_case),
            cmocka_unit_test(b26_what_was_taken_from_the_question_follows_it),
            cmocka_unit_test(b26_an_ending_taken_from_the_question_follows_it_if_it_is_whole),
            cmocka_unit_test(the_root_as_question),
            cmocka_unit_test(a_thousand_names_come_back),
            cmocka_unit_test(names_of_127_labels_come_back),
            cmocka_unit_test(what_does_not_fit_is_noticed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
