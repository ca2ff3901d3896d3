/* SPDX-License-Identifier: MIT
 * The bytes that LAYOUT.md promises. */
#include "message.h"

#include <stdio.h>

#include "entry/dict.h"
#include "entry/run.h"

static struct message message;
static struct taken taken, second;

static void start(const char *name, uint16_t type)
{
        message_start(&message, DNS_QR << 8 | DNS_RD << 8 | DNS_RA);
        message_question(&message, name, type);
}

/* What should be in the entry from the flags on. */
static struct message expected;

static void expect(unsigned flags, unsigned type)
{
        expected.len = 0;
        put_u8(&expected, flags | ENTRY_RD | ENTRY_RA | ENTRY_DO);
        put_u8(&expected, type);
}

static void check_bytes(void)
{
        size_t end = ENTRY_AT_FLAGS + expected.len;
        assert_int_equal(taken.size, (end + 3) / 4 * 4);
        assert_int_equal(taken.entry[ENTRY_AT_SIZE], taken.size / 4);
        assert_memory_equal(taken.entry + ENTRY_AT_FLAGS, expected.bytes, expected.len);
        for (size_t at = end; at < taken.size; at++)
                assert_int_equal(taken.entry[at], 0);
        assert_int_equal(entry_expiry(taken.entry), TEST_NOW + taken.life);
        assert_int_equal(entry_life_code(taken.entry), life_encode(taken.life));
}

static uint8_t code_of(const char *text)
{
        uint8_t name[255];
        size_t len = name_wire(text, name);
        return dict_find(name, len);
}

static void two_addresses_take_a_byte_and_themselves(void **state)
{
        (void)state;
        start("www.sardine.example", DNS_A);
        put_a(&message, WIRE_ANSWER, NULL, 300, 0xc0000201);
        put_a(&message, WIRE_ANSWER, NULL, 300, 0xc0000202);
        take(&taken, &message);
        expect(ENTRY_SIMPLE, DNS_A);
        put_u8(&expected, code_of("www.x"));
        put_bytes(&expected, "\7sardine\7example", 17);
        put_u8(&expected, 2);
        put_u32(&expected, 0xc0000201);
        put_u32(&expected, 0xc0000202);
        check_bytes();
}

static void text_has_its_length_before_it(void **state)
{
        (void)state;
        start("txt.example.com", DNS_TXT);
        put_rr(&message, WIRE_ANSWER, NULL, DNS_TXT, 60, "\5hello", 6);
        put_rr(&message, WIRE_ANSWER, NULL, DNS_TXT, 60, "\1a\1b", 4);
        take(&taken, &message);
        expect(ENTRY_SIMPLE, DNS_TXT);
        put_bytes(&expected, "\3txt\7example", 12);
        put_u8(&expected, code_of("com"));
        put_u8(&expected, 2);
        put_bytes(&expected, "\6\5hello", 7);
        put_bytes(&expected, "\4\1a\1b", 5);
        check_bytes();
}

static void an_alias_is_told_once(void **state)
{
        (void)state;
        start("www.sardine.example", DNS_A);
        put_rr(&message, WIRE_ANSWER, NULL, DNS_CNAME, 600, "\4edge\xc0\x10", 7);
        size_t target = message.len - 7;
        for (unsigned i = 1; i <= 2; i++) {
                put_pointer(&message, target);
                size_t mark = rr_begin(&message, WIRE_ANSWER, DNS_A, 300);
                put_u32(&message, i);
                rr_end(&message, mark);
        }
        take(&taken, &message);
        expect(0, DNS_A);
        size_t above = ENTRY_HEADER + 1; /* where "sardine.example" begins */
        put_u8(&expected, code_of("www.x"));
        put_bytes(&expected, "\7sardine\7example", 17);
        put_u8(&expected, 2);
        /* A CNAME of the question's name, with a longer TTL by 300. */
        put_u8(&expected, RUN_TYPE | RUN_DELTA);
        put_u8(&expected, DNS_CNAME);
        put_bytes(&expected, "\xf0\x3c", 2);
        size_t alias = ENTRY_AT_FLAGS + expected.len;
        put_u8(&expected, code_of("edge.x"));
        put_u16(&expected, 0xe000 | (unsigned)above);
        /* Two addresses of that name. */
        put_u8(&expected, RUN_OWNER_NAME | RUN_COUNT);
        put_pointer(&expected, alias);
        put_u8(&expected, 2);
        put_u32(&expected, 1);
        put_u32(&expected, 2);
        check_bytes();
}

static void an_owner_that_is_the_question_costs_nothing(void **state)
{
        (void)state;
        start("www.sardine.example", DNS_A);
        put_a(&message, WIRE_ANSWER, NULL, 300, 1);
        take(&taken, &message);
        start("www.sardine.example", DNS_A);
        put_a(&message, WIRE_ANSWER, "WWW.Sardine.Example", 300, 1);
        take(&second, &message);
        assert_true(entry_same_answer(taken.entry, second.entry));
}

static bool is_simple(void)
{
        take(&taken, &message);
        return taken.entry[ENTRY_AT_FLAGS] & ENTRY_SIMPLE;
}

static void only_plain_answers_are_simple(void **state)
{
        (void)state;
        start("a.example", DNS_A);
        put_a(&message, WIRE_ANSWER, NULL, 300, 1);
        assert_true(is_simple());
        put_a(&message, WIRE_ANSWER, "b.example", 300, 1);
        assert_false(is_simple());

        start("a.example", DNS_A);
        put_a(&message, WIRE_ANSWER, NULL, 300, 1);
        put_a(&message, WIRE_ADDITIONAL, NULL, 300, 1);
        assert_false(is_simple());

        start("a.example", DNS_A);
        put_a(&message, WIRE_ANSWER, NULL, 300, 1);
        put_rrsig(&message, WIRE_ANSWER, NULL, 300, DNS_A, "example");
        assert_false(is_simple());

        start("a.example", DNS_ANY);
        put_a(&message, WIRE_ANSWER, NULL, 300, 1);
        assert_false(is_simple());

        /* A TTL above the life: capped at a day. */
        start("a.example", DNS_A);
        put_a(&message, WIRE_ANSWER, NULL, 86401, 1);
        assert_false(is_simple());

        start("a.example", DNS_A);
        for (unsigned i = 0; i < 255; i++)
                put_a(&message, WIRE_ANSWER, NULL, 300, i);
        assert_true(is_simple());
        put_a(&message, WIRE_ANSWER, NULL, 300, 255);
        assert_false(is_simple());

        start("a.example", DNS_A);
        put_a(&message, WIRE_ANSWER, NULL, 300, 1);
        assert_int_equal(assess(&taken, message.bytes, message.len), 0);
        taken.params.ageless = true;
        encode_assessed(&taken, false);
        assert_int_equal(taken.entry[ENTRY_AT_FLAGS] & ENTRY_SIMPLE, 0);
}

static void the_same_answer_is_recognized_at_any_life(void **state)
{
        (void)state;
        for (unsigned ttl = 100; ttl <= 300; ttl += 200) {
                start("a.example", DNS_A);
                put_rr(&message, WIRE_ANSWER, NULL, DNS_CNAME, ttl + 20, "\1b\xc0\x0e", 4);
                put_a(&message, WIRE_ANSWER, "b.example", ttl, 7);
                take(ttl == 100 ? &taken : &second, &message);
        }
        assert_int_not_equal(entry_expiry(taken.entry), entry_expiry(second.entry));
        assert_true(entry_same_answer(taken.entry, second.entry));

        /* One bit of one address. */
        message.bytes[message.len - 1] ^= 1;
        take(&second, &message);
        assert_false(entry_same_answer(taken.entry, second.entry));
        /* One more record. */
        message.bytes[message.len - 1] ^= 1;
        put_a(&message, WIRE_ANSWER, "b.example", 300, 8);
        take(&second, &message);
        assert_false(entry_same_answer(taken.entry, second.entry));
        assert_false(entry_same_answer(second.entry, taken.entry));
}

static void too_little_room_is_an_error_and_never_overrun(void **state)
{
        (void)state;
        start("www.sardine.example", DNS_TXT);
        for (unsigned i = 0; i < 30; i++) {
                char text[64];
                int len =
                    snprintf(text + 1, sizeof text - 1, "text %u of thirty to make this one a large one", i);
                text[0] = (char)len;
                put_rr(&message, WIRE_ANSWER, i % 2 ? NULL : "Other.sardine.example", DNS_TXT, 60, text,
                       (size_t)len + 1);
        }
        put_opt(&message, 1232, 0, "\0\17\0\7\0\6hello", 11);
        take(&taken, &message);
        assert_true(taken.size > ENTRY_SIZE_BYTE_MAX);
        static _Alignas(4) uint8_t out[4096];
        for (size_t room = 0; room < taken.size; room++) {
                memset(out, 0xee, sizeof out);
                assert_int_equal(entry_encode(&taken.key, &taken.response, &taken.params, out, room), 0);
                for (size_t i = room; i < taken.size; i++)
                        assert_int_equal(out[i], 0xee);
        }
        assert_int_equal(entry_encode(&taken.key, &taken.response, &taken.params, out, taken.size),
                         taken.size);
        assert_memory_equal(out, taken.entry, taken.size);
}

/* A TTL below the life breaks the contract; it must not wrap around. */
static void a_ttl_below_the_life_counts_as_the_life(void **state)
{
        (void)state;
        start("a.example", DNS_A);
        put_a(&message, WIRE_ANSWER, NULL, 300, 1);
        assert_int_equal(assess(&taken, message.bytes, message.len), 0);
        taken.rrs[0].ttl = 10;
        encode_assessed(&taken, false);
        struct client client = {.name = "a.example", .type = DNS_A, .rd = true};
        static struct message reply;
        struct wire_response response;
        render_for(&taken, &client, 0, 512, &reply);
        parse_reply(&reply, &response, second.rrs);
        assert_int_equal(second.rrs[0].ttl, 300);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(two_addresses_take_a_byte_and_themselves),
            cmocka_unit_test(text_has_its_length_before_it),
            cmocka_unit_test(an_alias_is_told_once),
            cmocka_unit_test(an_owner_that_is_the_question_costs_nothing),
            cmocka_unit_test(only_plain_answers_are_simple),
            cmocka_unit_test(the_same_answer_is_recognized_at_any_life),
            cmocka_unit_test(too_little_room_is_an_error_and_never_overrun),
            cmocka_unit_test(a_ttl_below_the_life_counts_as_the_life),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
