/* SPDX-License-Identifier: MIT
 * What the adapter does to queries by itself, byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/message.h"

#define QUESTION       "\1a\7example\0\0\1\0\1"
#define HEAD(arcount)  "\x12\x34\1\0\0\1\0\0\0\0\0" arcount QUESTION
#define OPT(size, len) "\0\0\x29" size "\0\0\0\0" len
#define COOKIE                                                                                               \
        "\0\x0a\0\x08"                                                                                       \
        "12345678"
#define ECS "\0\x08\0\x07\0\1\x18\0\x0a\1\2"

struct bytes {
        const char *data;
        size_t len;
};
#define BYTES(text)                                                                                          \
        {                                                                                                    \
                text, sizeof(text) - 1                                                                       \
        }

static void told(struct bytes query, const struct message_network *network, struct bytes want)
{
        uint8_t message[256];
        memcpy(message, query.data, query.len);
        size_t len = message_set_network(message, query.len, want.len, 1232, network);
        assert_int_equal(len, want.len);
        assert_memory_equal(message, want.data, want.len);
        if (want.len <= query.len)
                return;
        memcpy(message, query.data, query.len);
        assert_int_equal(message_set_network(message, query.len, want.len - 1, 1232, network), 0);
}

static void networks_are_exchanged(void **state)
{
        (void)state;
        static const struct message_network none = {0},
                                            four = {.family = 1, .prefix = 20, .addr = {192, 0, 16}},
                                            six = {.family = 2, .prefix = 32, .addr = {0x20, 1, 0xd, 0xb8}};
        static const struct {
                struct bytes query;
                const struct message_network *network;
                struct bytes want;
        } cases[] = {
            {BYTES(HEAD("\0")), &none, BYTES(HEAD("\0"))},
            {BYTES(HEAD("\0")), &four,
             BYTES(HEAD("\1") OPT("\4\xd0", "\0\x0b") "\0\x08\0\x07\0\1\x14\0\xc0\0\x10")},
            {BYTES(HEAD("\1") OPT("\x10\0", "\0\0")), &six,
             BYTES(HEAD("\1") OPT("\x10\0", "\0\x0c") "\0\x08\0\x08\0\2\x20\0\x20\1\x0d\xb8")},
            {BYTES(HEAD("\1") OPT("\2\0", "\0\x0b") ECS), &none, BYTES(HEAD("\1") OPT("\2\0", "\0\0"))},
            {BYTES(HEAD("\1") OPT("\2\0", "\0\x17") ECS COOKIE), &none,
             BYTES(HEAD("\1") OPT("\2\0", "\0\x0c") COOKIE)},
            {BYTES(HEAD("\1") OPT("\2\0", "\0\x17") COOKIE ECS), &six,
             BYTES(HEAD("\1") OPT("\2\0", "\0\x18") COOKIE "\0\x08\0\x08\0\2\x20\0\x20\1\x0d\xb8")},
        };
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                told(cases[i].query, cases[i].network, cases[i].want);
}

static void do_is_added(void **state)
{
        (void)state;
        static const struct bytes plain = BYTES(HEAD("\0")),
                                  with = BYTES(HEAD("\1") "\0\0\x29\4\xd0\0\0\x80\0\0\0"),
                                  before = BYTES(HEAD("\1") OPT("\2\0", "\0\x0c") COOKIE),
                                  after = BYTES(HEAD("\1") "\0\0\x29\4\xd0\0\0\x80\0\0\x0c" COOKIE);
        uint8_t message[256];
        memcpy(message, plain.data, plain.len);
        assert_int_equal(message_add_do(message, plain.len, plain.len + MESSAGE_OPT - 1, 1232), 0);
        assert_int_equal(message_add_do(message, plain.len, plain.len + MESSAGE_OPT, 1232), with.len);
        assert_memory_equal(message, with.data, with.len);
        assert_int_equal(message_add_do(message, with.len, sizeof message, 1232), 0); /* it is there */
        memcpy(message, before.data, before.len);
        assert_int_equal(message_add_do(message, before.len, sizeof message, 1232), after.len);
        assert_memory_equal(message, after.data, after.len);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(networks_are_exchanged),
            cmocka_unit_test(do_is_added),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
