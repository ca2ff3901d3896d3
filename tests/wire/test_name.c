/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/name.h"
#include "wire/packet.h"

static size_t length(const char *bytes, size_t len)
{
        const uint8_t *p = exactly(bytes, len);
        return wire_name_length(p, p + len);
}

static void length_of_plain_names(void **state)
{
        (void)state;
        assert_int_equal(length("\0", 1), 1);
        assert_int_equal(length("\3www\7example\0more", 17), 13);
        assert_int_equal(length("", 0), 0);
        assert_int_equal(length("\3www", 4), 0);
        assert_int_equal(length("\3ww", 3), 0);
        assert_int_equal(length("\x40", 1), 0);
        assert_int_equal(length("\3www\xc0\x0c", 6), 0);
        assert_int_equal(length("\3www\x80\0", 6), 0);
}

/* `len` bytes with the root: labels of one letter, and one of two when that does not divide. */
static void add_long(struct packet *packet, size_t len)
{
        for (; len > 2; len -= 2) {
                if (len == 4) {
                        add_labels(packet, "xy");
                        len = 1;
                        break;
                }
                add_labels(packet, "x");
        }
        add_u8(packet, 0);
}

static void length_is_at_most_255(void **state)
{
        (void)state;
        struct packet packet = {0};
        add_long(&packet, 255);
        assert_int_equal(packet.len, 255);
        assert_int_equal(length((char *)packet.bytes, packet.len), 255);
        packet.len = 0;
        add_labels(&packet, "ab");
        add_long(&packet, 253);
        assert_int_equal(packet.len, 256);
        assert_int_equal(length((char *)packet.bytes, packet.len), 0);
        packet.len = 0;
        add_labels(&packet, "x");
        add_long(&packet, 255);
        assert_int_equal(length((char *)packet.bytes, packet.len), 0);
        /* four labels of 63: 256 with the root */
        packet.len = 0;
        for (unsigned i = 0; i < 4; i++)
                add_labels(&packet, "0123456789012345678901234567890123456789012345678901234567890ab");
        add_u8(&packet, 0);
        assert_int_equal(packet.len, 257);
        assert_int_equal(length((char *)packet.bytes, packet.len), 0);
}

static void b26_only_letters_fold(void **state)
{
        (void)state;
        for (unsigned c = 0; c < 256; c++) {
                uint8_t want = (uint8_t)(c >= 'A' && c <= 'Z' ? c + 32 : c);
                assert_int_equal(wire_fold((uint8_t)c), want);
                /* at every place of a longer run, whichever way it is folded there */
                for (size_t len = 1; len <= 20; len++) {
                        uint8_t in[20], out[20], lower[20];
                        for (size_t i = 0; i < len; i++) {
                                in[i] = (uint8_t)(c + i);
                                lower[i] = wire_fold(in[i]);
                        }
                        assert_int_equal(wire_name_is_folded(in, len), memcmp(in, lower, len) == 0);
                        wire_name_fold(out, in, len);
                        assert_memory_equal(out, lower, len);
                        assert_true(wire_name_equal(in, lower, len));
                        wire_name_fold(in, in, len);
                        assert_memory_equal(in, lower, len);
                }
        }
}

static void b26_equal_but_for_case(void **state)
{
        (void)state;
        /* every pair of bytes, in the eight-byte part and in the tail */
        for (unsigned a = 0; a < 256; a++) {
                for (unsigned b = 0; b < 256; b++) {
                        uint8_t x[9] = "12345678", y[9] = "12345678";
                        bool same = wire_fold((uint8_t)a) == wire_fold((uint8_t)b);
                        x[8] = (uint8_t)a;
                        y[8] = (uint8_t)b;
                        assert_int_equal(wire_name_equal(x, y, 9), same);
                        assert_true(wire_name_equal(x, y, 8));
                        x[8] = y[8] = 0;
                        x[a % 8] = (uint8_t)a;
                        y[a % 8] = (uint8_t)b;
                        assert_int_equal(wire_name_equal(x, y, 8), same);
                }
        }
        assert_true(wire_name_equal((const uint8_t *)"", (const uint8_t *)"", 0));
}

static const char QUESTION[] = "wWw.Example";
enum {
        QUESTION_LEN = 13,
        AFTER_QUESTION = DNS_HEADER + QUESTION_LEN + 4,
};

static void with_question(struct packet *packet)
{
        start(packet, 0x8180);
        add_question(packet, QUESTION, DNS_A);
        assert_int_equal(packet->len, AFTER_QUESTION);
}

static uint32_t work;
static size_t expand(const struct packet *packet, size_t off, struct wire_name *name)
{
        work = 1000;
        return wire_name_expand(exactly(packet->bytes, packet->len), packet->len, off, QUESTION_LEN, &work,
                                name);
}

static void expand_spelled_out(void **state)
{
        (void)state;
        struct packet packet;
        struct wire_name name;
        with_question(&packet);
        add_name(&packet, "a.bc");
        assert_int_equal(expand(&packet, AFTER_QUESTION, &name), 6);
        assert_int_equal(name.len, 6);
        assert_int_equal(name.labels, 2);
        assert_int_equal(name.from_question, 6);
        assert_memory_equal(name.bytes, "\1a\2bc", 6);
        assert_int_equal(work, 1000 - 3);

        assert_int_equal(expand(&packet, DNS_HEADER, &name), QUESTION_LEN);
        assert_int_equal(name.from_question, QUESTION_LEN);
        assert_memory_equal(name.bytes, packet.bytes + DNS_HEADER, QUESTION_LEN);

        add_u8(&packet, 0);
        assert_int_equal(expand(&packet, packet.len - 1, &name), 1);
        assert_int_equal(name.len, 1);
        assert_int_equal(name.labels, 0);
        assert_int_equal(name.from_question, 1);
}

static void b26_tail_from_question(void **state)
{
        (void)state;
        struct packet packet;
        struct wire_name name;
        with_question(&packet);
        size_t whole = packet.len;
        add_pointer(&packet, DNS_HEADER);
        assert_int_equal(expand(&packet, whole, &name), 2);
        assert_int_equal(name.len, QUESTION_LEN);
        assert_int_equal(name.labels, 2);
        assert_int_equal(name.from_question, 0);
        assert_memory_equal(name.bytes, packet.bytes + DNS_HEADER, QUESTION_LEN);

        size_t tail = packet.len;
        add_labels(&packet, "mail");
        add_pointer(&packet, DNS_HEADER + 4);
        assert_int_equal(expand(&packet, tail, &name), 7);
        assert_int_equal(name.from_question, 5);
        assert_int_equal(name.labels, 2);
        assert_memory_equal(name.bytes, "\4mail\7Example", 14);

        /* by way of another name */
        size_t twice = packet.len;
        add_labels(&packet, "x");
        add_pointer(&packet, tail);
        assert_int_equal(expand(&packet, twice, &name), 4);
        assert_int_equal(name.from_question, 7);
        assert_int_equal(name.labels, 3);
        assert_memory_equal(name.bytes, "\1x\4mail\7Example", 16);

        /* the question's root label */
        size_t root = packet.len;
        add_labels(&packet, "y");
        add_pointer(&packet, DNS_HEADER + QUESTION_LEN - 1);
        assert_int_equal(expand(&packet, root, &name), 4);
        assert_int_equal(name.len, 3);
        assert_int_equal(name.from_question, 2);

        /* the zero byte that begins the question's type is no part of its name */
        size_t beyond = packet.len;
        add_pointer(&packet, DNS_HEADER + QUESTION_LEN);
        assert_int_equal(expand(&packet, beyond, &name), 2);
        assert_int_equal(name.len, 1);
        assert_int_equal(name.from_question, 1);

        /* without a question nothing comes from it */
        work = 1000;
        assert_int_equal(wire_name_expand(packet.bytes, packet.len, tail, 0, &work, &name), 7);
        assert_int_equal(name.from_question, name.len);
}

static void assert_refused(const struct packet *packet, size_t off)
{
        struct wire_name name;
        assert_int_equal(expand(packet, off, &name), 0);
        assert_int_not_equal(work, 0);
}

static void b59_bad_pointers(void **state)
{
        (void)state;
        struct packet packet;
        with_question(&packet);
        size_t at = packet.len;
        const size_t targets[] = {
            0,      DNS_HEADER - 1, at,     at + 1,
            at + 2, at + 100,       0x3fff, DNS_HEADER + 1, /* inside a label of the question */
        };
        for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
                with_question(&packet);
                add_pointer(&packet, targets[i]);
                add_name(&packet, "abc");
                assert_refused(&packet, at);
        }

        /* loops: of one, of two, and through labels */
        with_question(&packet);
        add_labels(&packet, "abc");
        add_pointer(&packet, at);
        assert_refused(&packet, at);
        with_question(&packet);
        add_pointer(&packet, at + 2);
        add_pointer(&packet, at);
        assert_refused(&packet, at);
        assert_refused(&packet, at + 2);
        with_question(&packet);
        add_labels(&packet, "a");
        add_labels(&packet, "b");
        add_pointer(&packet, at + 2);
        assert_refused(&packet, at);

        /* a tail must lie below the tail that points to it, not only below the name */
        with_question(&packet);
        add_labels(&packet, "a");
        add_pointer(&packet, at + 4);
        add_labels(&packet, "b");
        add_pointer(&packet, at);
        assert_refused(&packet, at + 4);

        /* cut short */
        with_question(&packet);
        add_u8(&packet, 0xc0);
        assert_refused(&packet, at);
        with_question(&packet);
        assert_refused(&packet, at);
        add_labels(&packet, "abc");
        assert_refused(&packet, at);
        packet.len--;
        assert_refused(&packet, at);

        /* label types that do not exist */
        for (unsigned type = 0x40; type < 0xc0; type += 0x3f) {
                with_question(&packet);
                add_u8(&packet, type);
                for (unsigned i = 0; i < 200; i++)
                        add_u8(&packet, 0);
                assert_refused(&packet, at);
        }
}

static void b64_at_most_255_bytes(void **state)
{
        (void)state;
        struct packet packet;
        struct wire_name name;
        start(&packet, 0x8180);
        size_t at = packet.len;
        add_long(&packet, 253);
        size_t longest = packet.len;
        add_labels(&packet, "x");
        add_pointer(&packet, at);
        size_t too_long = packet.len;
        add_labels(&packet, "xy");
        add_pointer(&packet, at);
        work = 1000;
        assert_int_equal(wire_name_expand(packet.bytes, packet.len, longest, 0, &work, &name), 4);
        assert_int_equal(name.len, 255);
        assert_int_equal(name.labels, 127);
        assert_int_equal(wire_name_expand(packet.bytes, packet.len, too_long, 0, &work, &name), 0);
        assert_int_not_equal(work, 0);
}

static void b64_work_is_bounded(void **state)
{
        (void)state;
        struct packet packet;
        struct wire_name name;
        start(&packet, 0x8180);
        add_name(&packet, "a");
        for (unsigned i = 0; i < 100; i++)
                add_pointer(&packet, i == 0 ? DNS_HEADER : packet.len - 2);
        size_t last = packet.len - 2;
        /* 100 pointers, a label, the root */
        work = 102;
        assert_int_equal(wire_name_expand(packet.bytes, packet.len, last, 0, &work, &name), 2);
        assert_int_equal(work, 0);
        assert_int_equal(name.len, 3);
        for (uint32_t less = 0; less < 102; less++) {
                work = less;
                assert_int_equal(wire_name_expand(packet.bytes, packet.len, last, 0, &work, &name), 0);
                assert_int_equal(work, 0);
        }

        /* finding a label of the question counts too */
        start(&packet, 0x8180);
        add_question(&packet, "a.b.c.d", DNS_A);
        size_t at = packet.len;
        add_pointer(&packet, DNS_HEADER + 6);
        work = 1000;
        assert_int_equal(wire_name_expand(packet.bytes, packet.len, at, 9, &work, &name), 2);
        assert_int_equal(work, 1000 - 3 - 3); /* a, b, c; pointer, d, root */
        work = 2;
        assert_int_equal(wire_name_expand(packet.bytes, packet.len, at, 9, &work, &name), 0);
        assert_int_equal(work, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(length_of_plain_names), cmocka_unit_test(length_is_at_most_255),
            cmocka_unit_test(b26_only_letters_fold), cmocka_unit_test(b26_equal_but_for_case),
            cmocka_unit_test(expand_spelled_out),    cmocka_unit_test(b26_tail_from_question),
            cmocka_unit_test(b59_bad_pointers),      cmocka_unit_test(b64_at_most_255_bytes),
            cmocka_unit_test(b64_work_is_bounded),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
