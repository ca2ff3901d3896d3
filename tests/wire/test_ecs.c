/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/ecs.h"
#include "wire/packet.h"

static bool parse(const char *data, size_t len, struct wire_ecs *ecs)
{
        return wire_ecs_parse(exactly(data, len), len, ecs);
}

static void parses(void **state)
{
        (void)state;
        struct wire_ecs ecs;
        assert_true(parse("\0\1\x18\x10\xc0\0\2", 7, &ecs));
        assert_int_equal(ecs.family, ECS_IPV4);
        assert_int_equal(ecs.source, 24);
        assert_int_equal(ecs.scope, 16);
        assert_memory_equal(ecs.addr, "\xc0\0\2\0\0\0\0\0\0\0\0\0\0\0\0", 16);
        assert_true(parse("\0\1\0\0", 4, &ecs));
        assert_int_equal(ecs.source, 0);
        assert_true(parse("\0\2\x39\0\x20\x01\x0d\xb8\0\0\0\x80", 12, &ecs));
        assert_int_equal(ecs.family, ECS_IPV6);
        assert_int_equal(ecs.source, 57);
        assert_true(parse("\0\1\x18\x20\xc0\0\2", 7, &ecs)); /* a scope may be longer than the source */
}

static void refuses(void **state)
{
        (void)state;
        struct wire_ecs ecs;
        assert_false(parse("", 0, &ecs));
        assert_false(parse("\0\1\0", 3, &ecs));
        assert_false(parse("\0\0\0\0", 4, &ecs));
        assert_false(parse("\0\3\0\0", 4, &ecs));
        assert_false(parse("\1\1\0\0", 4, &ecs));
        assert_false(parse("\0\1\x21\0\1\2\3\4\5", 9, &ecs));
        assert_false(parse("\0\1\x18\x21\1\2\3", 7, &ecs));
        assert_false(parse("\0\2\0\x81", 4, &ecs));
        assert_false(parse("\0\2\x81\0\1\2\3\4\5\6\7\x08\x09\1\2\3\4\5\6\7\x08", 21, &ecs));
        assert_false(parse("\0\1\x18\0\1\2", 6, &ecs));
        assert_false(parse("\0\1\x18\0\1\2\3\0", 8, &ecs));
        assert_false(parse("\0\1\x17\0\1\2\3", 7, &ecs)); /* a bit beyond /23 */
        assert_false(parse("\0\1\x11\0\1\2\x40", 7, &ecs));
}

static void mask_clears_what_is_beyond(void **state)
{
        (void)state;
        for (unsigned prefix = 0; prefix <= 128; prefix++) {
                uint8_t addr[16];
                memset(addr, 0xff, sizeof addr);
                wire_ecs_mask(addr, prefix);
                for (unsigned bit = 0; bit < 128; bit++)
                        assert_int_equal(addr[bit / 8] >> (7 - bit % 8) & 1, bit < prefix);
        }
}

static void what_is_written_parses(void **state)
{
        (void)state;
        for (unsigned family = ECS_IPV4; family <= ECS_IPV6; family++) {
                for (unsigned source = 0; source <= (family == ECS_IPV4 ? 32u : 128u); source++) {
                        struct wire_ecs ecs = {.family = (uint8_t)family, .source = (uint8_t)source}, back;
                        ecs.scope = (uint8_t)(source / 2);
                        memset(ecs.addr, 0xa5, family == ECS_IPV4 ? 4 : 16);
                        wire_ecs_mask(ecs.addr, source);
                        uint8_t out[24];
                        size_t len = wire_ecs_write(&ecs, out);
                        assert_int_equal(len, 8 + (source + 7) / 8);
                        assert_int_equal(get_be16(out), EDNS_ECS);
                        assert_int_equal(get_be16(out + 2), len - 4);
                        assert_true(wire_ecs_parse(exactly(out + 4, len - 4), len - 4, &back));
                        assert_memory_equal(&back, &ecs, sizeof ecs);
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(parses),
            cmocka_unit_test(refuses),
            cmocka_unit_test(mask_clears_what_is_beyond),
            cmocka_unit_test(what_is_written_parses),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
