/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sardine.h"
#include "wire/packet.h"
#include "wire/query.h"

static unsigned parse(const struct packet *packet, struct wire_query *query)
{
        return wire_query_parse(exactly(packet->bytes, packet->len), packet->len, query);
}

static void assert_reason(const struct packet *packet, unsigned reason)
{
        struct wire_query query;
        assert_int_equal(parse(packet, &query), reason);
}

static void ask(struct packet *packet, unsigned flags, const char *name, unsigned type)
{
        start(packet, flags);
        add_question(packet, name, type);
}

static void plain_question(void **state)
{
        (void)state;
        struct packet packet;
        struct wire_query query;
        ask(&packet, 0x0100, "wWw.Example", DNS_AAAA);
        assert_int_equal(parse(&packet, &query), 0);
        assert_ptr_equal(query.qname, query.packet + DNS_HEADER);
        assert_int_equal(query.qname_len, 13);
        assert_memory_equal(query.qname, "\3wWw\7Example", 13);
        assert_int_equal(wire_query_question_len(&query), 17);
        assert_int_equal(query.qtype, DNS_AAAA);
        assert_int_equal(query.qclass, DNS_IN);
        assert_int_equal(query.udp_size, 512);
        assert_null(query.options);
        assert_int_equal(query.options_len, 0);
        assert_true(query.rd);
        assert_false(query.cd || query.ad || query.edns || query.dnssec_ok || query.padded);
        assert_int_equal(query.ecs.family, ECS_NONE);

        ask(&packet, 0x0030, "", DNS_NS);
        assert_int_equal(parse(&packet, &query), 0);
        assert_int_equal(query.qname_len, 1);
        assert_true(query.cd && query.ad);
        assert_false(query.rd);
}

static void edns(void **state)
{
        (void)state;
        struct packet packet;
        struct wire_query query;
        ask(&packet, 0x0100, "a.example", DNS_A);
        size_t at = start_opt(&packet, 1232, 0x8000);
        add_option(&packet, EDNS_COOKIE, "clientck", 8);
        add_option(&packet, EDNS_ECS, "\0\1\x18\0\xc0\0\2", 7);
        add_option(&packet, EDNS_PADDING, "\0\0\0", 3);
        add_option(&packet, 65001, "", 0);
        end_rdata(&packet, at);
        assert_int_equal(parse(&packet, &query), 0);
        assert_true(query.edns && query.dnssec_ok && query.padded);
        assert_int_equal(query.udp_size, 1232);
        assert_ptr_equal(query.options, query.packet + at);
        assert_int_equal(query.options_len, packet.len - at);
        assert_int_equal(query.ecs.family, ECS_IPV4);
        assert_int_equal(query.ecs.source, 24);

        /* an OPT without options; a size too small to be meant */
        for (unsigned size = 0; size <= 512; size += 256) {
                ask(&packet, 0x0100, "a.example", DNS_A);
                add_opt(&packet, size, 0);
                assert_int_equal(parse(&packet, &query), 0);
                assert_true(query.edns);
                assert_false(query.dnssec_ok || query.padded);
                assert_int_equal(query.udp_size, 512);
                assert_non_null(query.options);
                assert_int_equal(query.options_len, 0);
        }
        ask(&packet, 0x0100, "a.example", DNS_A);
        add_opt(&packet, 65535, 0);
        assert_int_equal(parse(&packet, &query), 0);
        assert_int_equal(query.udp_size, 65535);
}

static void padding(void **state)
{
        (void)state;
        struct packet packet;
        struct wire_query query;
        for (unsigned code = 0; code < 20; code++) {
                if (code == EDNS_ECS)
                        continue;
                ask(&packet, 0x0100, "a.example", DNS_A);
                size_t at = start_opt(&packet, 1232, 0);
                add_option(&packet, code, "12345678", 8);
                end_rdata(&packet, at);
                assert_int_equal(parse(&packet, &query), 0);
                assert_int_equal(query.padded, code == EDNS_PADDING);
        }
}

static void b12_options_parse_whatever_their_length(void **state)
{
        (void)state;
        static const uint8_t zeros[100];
        struct packet packet;
        struct wire_query query;
        const size_t lengths[] = {0, 8, 24, 31, 100};
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
                ask(&packet, 0x0100, "a.example", DNS_A);
                size_t at = start_opt(&packet, 1232, 0);
                add_option(&packet, EDNS_COOKIE, zeros, lengths[i]);
                add_option(&packet, EDNS_PADDING, zeros, lengths[i]);
                end_rdata(&packet, at);
                assert_int_equal(parse(&packet, &query), 0);
                assert_int_equal(query.options_len, 2 * (4 + lengths[i]));
                assert_true(query.padded);
        }
}

static void short_header(void **state)
{
        (void)state;
        struct packet packet;
        ask(&packet, 0x0100, "a.example", DNS_A);
        size_t whole = packet.len;
        for (packet.len = 0; packet.len < whole; packet.len++)
                assert_reason(&packet, SARDINE_BYPASS_MALFORMED);
        packet.len = DNS_MAX_MESSAGE;
        assert_reason(&packet, SARDINE_BYPASS_TRAILING);
        packet.len = DNS_MAX_MESSAGE + 1;
        assert_reason(&packet, SARDINE_BYPASS_MALFORMED);
}

static void b25_only_queries(void **state)
{
        (void)state;
        struct packet packet;
        ask(&packet, 0x8100, "a.example", DNS_A);
        assert_reason(&packet, SARDINE_BYPASS_NOT_QUERY);
        for (unsigned opcode = 1; opcode < 16; opcode++) {
                ask(&packet, opcode << 11, "a.example", DNS_SOA);
                assert_reason(&packet, SARDINE_BYPASS_NOT_QUERY);
        }
        ask(&packet, 0x0300, "a.example", DNS_A); /* TC */
        assert_reason(&packet, SARDINE_BYPASS_MALFORMED);

        start(&packet, 0x0100);
        assert_reason(&packet, SARDINE_BYPASS_QDCOUNT);
        ask(&packet, 0x0100, "a.example", DNS_A);
        add_question(&packet, "b.example", DNS_A);
        assert_reason(&packet, SARDINE_BYPASS_QDCOUNT);
}

static void b25_types_and_classes(void **state)
{
        (void)state;
        struct packet packet;
        for (unsigned type = 0; type < 65536; type++) {
                ask(&packet, 0x0100, "a.example", type);
                bool bypass = type == 0 || type == DNS_OPT || (type >= DNS_TKEY && type <= DNS_MAILA);
                assert_reason(&packet, bypass ? SARDINE_BYPASS_QTYPE : SARDINE_REASON_NONE);
        }
        const unsigned classes[] = {0, 2, 3, 4, 254, 255, 257};
        for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
                ask(&packet, 0x0100, "a.example", DNS_TXT);
                put_be16(packet.bytes + packet.len - 2, (uint16_t)classes[i]);
                assert_reason(&packet, SARDINE_BYPASS_QCLASS);
        }
}

static void bad_question_names(void **state)
{
        (void)state;
        struct packet packet;
        start(&packet, 0x0100);
        count(&packet, COUNT_QUESTION);
        add_pointer(&packet, DNS_HEADER);
        add_u32(&packet, DNS_A << 16 | DNS_IN);
        assert_reason(&packet, SARDINE_BYPASS_MALFORMED);

        start(&packet, 0x0100);
        count(&packet, COUNT_QUESTION);
        add_labels(&packet, "a");
        add_pointer(&packet, DNS_HEADER);
        add_u32(&packet, DNS_A << 16 | DNS_IN);
        assert_reason(&packet, SARDINE_BYPASS_MALFORMED);

        start(&packet, 0x0100);
        count(&packet, COUNT_QUESTION);
        for (unsigned i = 0; i < 128; i++)
                add_labels(&packet, "a");
        add_u8(&packet, 0);
        add_u32(&packet, DNS_A << 16 | DNS_IN);
        assert_reason(&packet, SARDINE_BYPASS_MALFORMED);
}

static void b60_records_other_than_one_opt(void **state)
{
        (void)state;
        struct packet packet;
        for (unsigned section = COUNT_ANSWER; section <= COUNT_ADDITIONAL; section += 2) {
                ask(&packet, 0x0100, "a.example", DNS_A);
                add_a(&packet, section, "@", 60);
                assert_reason(&packet, SARDINE_BYPASS_RECORDS);
                ask(&packet, 0x0100, "a.example", DNS_A);
                add_a(&packet, section, "b.example", 60);
                add_opt(&packet, 1232, 0);
                assert_reason(&packet, SARDINE_BYPASS_RECORDS);
        }
        ask(&packet, 0x0100, "a.example", DNS_A);
        add_opt(&packet, 1232, 0);
        add_rr(&packet, COUNT_ADDITIONAL, "key", DNS_TSIG, 0, "", 0);
        assert_reason(&packet, SARDINE_BYPASS_RECORDS);
        ask(&packet, 0x0100, "a.example", DNS_A);
        add_rr(&packet, COUNT_ADDITIONAL, "", DNS_SIG, 0, "", 0);
        assert_reason(&packet, SARDINE_BYPASS_RECORDS);
        /* an OPT where no OPT can be */
        ask(&packet, 0x0100, "a.example", DNS_A);
        add_rr(&packet, COUNT_ANSWER, "", DNS_OPT, 0, "", 0);
        assert_reason(&packet, SARDINE_BYPASS_RECORDS);
}

static void b60_trailing_bytes(void **state)
{
        (void)state;
        struct packet packet;
        ask(&packet, 0x0100, "a.example", DNS_A);
        add_u8(&packet, 0);
        assert_reason(&packet, SARDINE_BYPASS_TRAILING);
        /* a whole OPT that no count speaks of */
        ask(&packet, 0x0100, "a.example", DNS_A);
        add_opt(&packet, 1232, 0);
        put_be16(packet.bytes + COUNT_ADDITIONAL, 0);
        assert_reason(&packet, SARDINE_BYPASS_TRAILING);
        ask(&packet, 0x0100, "a.example", DNS_A);
        add_opt(&packet, 1232, 0);
        add_u8(&packet, 0);
        assert_reason(&packet, SARDINE_BYPASS_TRAILING);
}

static void b56_edns_version(void **state)
{
        (void)state;
        struct packet packet;
        for (uint32_t version = 1; version < 256; version++) {
                ask(&packet, 0x0100, "a.example", DNS_A);
                add_opt(&packet, 1232, version << 16);
                assert_reason(&packet, SARDINE_BYPASS_EDNS_VERSION);
        }
}

static void b58_malformed_opt(void **state)
{
        (void)state;
        struct packet packet;
        /* RDLENGTH 8, an option that takes more or less than the 4 bytes left */
        const unsigned lengths[] = {5, 6, 7, 8, 0xffff, 0, 1, 2, 3};
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
                ask(&packet, 0x0100, "a.example", DNS_A);
                size_t at = start_opt(&packet, 1232, 0);
                add_u16(&packet, 65001);
                add_u16(&packet, lengths[i]);
                add_u32(&packet, 0xffffffff);
                end_rdata(&packet, at);
                /* a length of 0 leaves room for another option, whose length does not fit */
                assert_reason(&packet, SARDINE_BYPASS_MALFORMED);
        }
        /* RDLENGTH beyond the packet */
        ask(&packet, 0x0100, "a.example", DNS_A);
        size_t at = start_opt(&packet, 1232, 0);
        put_be16(packet.bytes + at - 2, 1);
        assert_reason(&packet, SARDINE_BYPASS_MALFORMED);
        /* a record cut short at every byte */
        ask(&packet, 0x0100, "a.example", DNS_A);
        size_t before = packet.len;
        at = start_opt(&packet, 1232, 0);
        add_option(&packet, EDNS_COOKIE, "clientck", 8);
        end_rdata(&packet, at);
        size_t whole = packet.len;
        for (packet.len = before; packet.len < whole; packet.len++)
                assert_reason(&packet, SARDINE_BYPASS_MALFORMED);
        /* two of them */
        ask(&packet, 0x0100, "a.example", DNS_A);
        add_opt(&packet, 1232, 0);
        add_opt(&packet, 1232, 0);
        assert_reason(&packet, SARDINE_BYPASS_MALFORMED);
        /* owners: a name, a pointer, a label type that does not exist */
        ask(&packet, 0x0100, "a.example", DNS_A);
        add_rr(&packet, COUNT_ADDITIONAL, "x", DNS_OPT, 0, "", 0);
        assert_reason(&packet, SARDINE_BYPASS_MALFORMED);
        ask(&packet, 0x0100, "a.example", DNS_A);
        add_rr(&packet, COUNT_ADDITIONAL, "@", DNS_OPT, 0, "\0\x0c\0\0", 4);
        assert_reason(&packet, SARDINE_BYPASS_MALFORMED);
        /* a count without a record */
        ask(&packet, 0x0100, "a.example", DNS_A);
        count(&packet, COUNT_ADDITIONAL);
        assert_reason(&packet, SARDINE_BYPASS_MALFORMED);
        add_labels(&packet, "abc");
        assert_reason(&packet, SARDINE_BYPASS_MALFORMED);
        packet.len--;
        assert_reason(&packet, SARDINE_BYPASS_MALFORMED);
        add_u8(&packet, 0xc0);
        assert_reason(&packet, SARDINE_BYPASS_MALFORMED);
}

static void malformed_ecs(void **state)
{
        (void)state;
        struct packet packet;
        static const struct {
                const char *data;
                size_t len;
        } bad[] = {
            {"\0\1\x20\0\xd5\x3d\x1d", 7},   /* too few bytes for /32 */
            {"\0\1\x18\x18\xd5\x3d\x1d", 7}, /* a scope in a query */
            {"\0\7\0\0", 4},
            {"", 0},
        };
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                ask(&packet, 0x0100, "a.example", DNS_A);
                size_t at = start_opt(&packet, 1232, 0);
                add_option(&packet, EDNS_ECS, bad[i].data, bad[i].len);
                end_rdata(&packet, at);
                assert_reason(&packet, SARDINE_BYPASS_MALFORMED);
        }
        ask(&packet, 0x0100, "a.example", DNS_A);
        size_t at = start_opt(&packet, 1232, 0);
        add_option(&packet, EDNS_ECS, "\0\1\0\0", 4);
        add_option(&packet, EDNS_ECS, "\0\1\0\0", 4);
        end_rdata(&packet, at);
        assert_reason(&packet, SARDINE_BYPASS_MALFORMED);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(plain_question),
            cmocka_unit_test(edns),
            cmocka_unit_test(padding),
            cmocka_unit_test(b12_options_parse_whatever_their_length),
            cmocka_unit_test(short_header),
            cmocka_unit_test(b25_only_queries),
            cmocka_unit_test(b25_types_and_classes),
            cmocka_unit_test(bad_question_names),
            cmocka_unit_test(b60_records_other_than_one_opt),
            cmocka_unit_test(b60_trailing_bytes),
            cmocka_unit_test(b56_edns_version),
            cmocka_unit_test(b58_malformed_opt),
            cmocka_unit_test(malformed_ecs),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
