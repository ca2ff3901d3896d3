/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <ldns/ldns.h>

#include "wire/packet.h"
#include "wire/rdata.h"

enum {
        TYPE_MD = 3,
        TYPE_MF = 4,
        TYPE_MB = 7,
        TYPE_MG = 8,
        TYPE_MR = 9,
        TYPE_HINFO = 13,
        TYPE_MINFO = 14,
        TYPE_RP = 17,
        TYPE_AFSDB = 18,
        TYPE_RT = 21,
        TYPE_NSAP_PTR = 23,
        TYPE_PX = 26,
        TYPE_LOC = 29,
        TYPE_NXT = 30,
        TYPE_NAPTR = 35,
        TYPE_KX = 36,
        TYPE_APL = 42,
        TYPE_IPSECKEY = 45,
        TYPE_HIP = 55,
        TYPE_TALINK = 58,
        TYPE_SPF = 99,
        TYPE_LP = 107,
        TYPE_EUI48 = 108,
        TYPE_CAA = 257,
        TYPE_AMTRELAY = 260,
        TYPE_DLV = 32769,
        QUESTION_LEN = 9,
};

static bool is_in(const unsigned *list, size_t n, unsigned type)
{
        for (size_t i = 0; i < n; i++) {
                if (list[i] == type)
                        return true;
        }
        return false;
}
#define IN(list, type) is_in(list, sizeof(list) / sizeof *(list), type)

static const unsigned compressible[] = {DNS_NS,  TYPE_MD, TYPE_MF, DNS_CNAME,  DNS_SOA, TYPE_MB,
                                        TYPE_MG, TYPE_MR, DNS_PTR, TYPE_MINFO, DNS_MX};
/* Those, and what must be understood when it comes compressed (RFC 3597 s4; DNAME by older servers). */
static const unsigned comes_compressed[] = {TYPE_RP,  TYPE_AFSDB, TYPE_RT, DNS_SIG,  TYPE_PX,
                                            TYPE_NXT, TYPE_NAPTR, DNS_SRV, DNS_DNAME};
static const unsigned never_compressed[] = {TYPE_KX,  DNS_RRSIG, DNS_NSEC, TYPE_TALINK,
                                            DNS_SVCB, DNS_HTTPS, TYPE_LP};

static void shapes_are_sound(void **state)
{
        (void)state;
        for (unsigned type = 0; type < 65536; type++) {
                const struct rdata_shape *shape = rdata_shape((uint16_t)type);
                assert_non_null(shape);
                unsigned n = 0, names = 0;
                for (; shape->fields[n].kind != RDATA_END; n++) {
                        assert_true(n < RDATA_FIELDS_MAX);
                        names += shape->fields[n].kind == RDATA_NAME;
                        if (shape->fields[n].kind == RDATA_REST)
                                assert_int_equal(shape->fields[n + 1].kind, RDATA_END);
                        if (shape->fields[n].kind == RDATA_FIXED) {
                                assert_int_not_equal(shape->fields[n].size, 0);
                                assert_int_not_equal(shape->fields[n + 1].kind, RDATA_FIXED);
                        }
                }
                assert_true(n > 0);
                assert_int_equal(shape->has_name, names > 0);
                if (!shape->has_name)
                        assert_int_equal(n, 1);
                assert_int_equal(shape->fixed_len,
                                 n == 1 && shape->fields[0].kind == RDATA_FIXED ? shape->fields[0].size : 0);
        }
}

static void which_types_hold_names(void **state)
{
        (void)state;
        for (unsigned type = 0; type < 65536; type++) {
                const struct rdata_shape *shape = rdata_shape((uint16_t)type);
                assert_int_equal(shape->compress, IN(compressible, type));
                assert_int_equal(shape->has_name, IN(compressible, type) || IN(comes_compressed, type) ||
                                                      IN(never_compressed, type));
        }
}

/* "2 n 20": fixed, name, fixed; s: string; *: rest */
static void assert_shape(unsigned type, const char *want)
{
        char text[64] = "", *p = text;
        for (const struct rdata_field *f = rdata_shape((uint16_t)type)->fields; f->kind != RDATA_END; f++) {
                if (p != text)
                        *p++ = ' ';
                if (f->kind == RDATA_FIXED)
                        p += sprintf(p, "%u", f->size);
                else
                        *p++ = f->kind == RDATA_STRING ? 's' : f->kind == RDATA_NAME ? 'n' : '*';
                *p = '\0';
        }
        assert_string_equal(text, want);
}

static void shapes_of_known_types(void **state)
{
        (void)state;
        assert_shape(DNS_A, "4");
        assert_shape(DNS_AAAA, "16");
        assert_shape(TYPE_EUI48, "6");
        assert_shape(DNS_NS, "n");
        assert_shape(DNS_DNAME, "n");
        assert_shape(DNS_SOA, "n n 20");
        assert_shape(TYPE_MINFO, "n n");
        assert_shape(DNS_MX, "2 n");
        assert_shape(DNS_SRV, "6 n");
        assert_shape(TYPE_NAPTR, "4 s s s n");
        assert_shape(TYPE_PX, "2 n n");
        assert_shape(TYPE_NXT, "n *");
        assert_shape(DNS_RRSIG, "18 n *");
        assert_shape(DNS_SIG, "18 n *");
        assert_shape(DNS_NSEC, "n *");
        assert_shape(DNS_SVCB, "2 n *");
        assert_shape(DNS_HTTPS, "2 n *");
        const unsigned opaque[] = {
            0,         DNS_TXT,  TYPE_SPF,      TYPE_HINFO, DNS_DS,        DNS_DNSKEY,
            DNS_NSEC3, TYPE_CAA, TYPE_IPSECKEY, TYPE_HIP,   TYPE_AMTRELAY, TYPE_APL,
            DNS_OPT,   TYPE_LOC, TYPE_NSAP_PTR, DNS_TSIG,   DNS_TKEY,      DNS_NSEC3PARAM,
            TYPE_DLV,  263,      264,           65535};
        for (size_t i = 0; i < sizeof opaque / sizeof *opaque; i++)
                assert_shape(opaque[i], "*");
}

static uint32_t work;
static bool check(unsigned type, const void *bytes, size_t len)
{
        work = 10000;
        return rdata_check(exactly(bytes, len), len, (uint16_t)type, 0, len, 0, &work);
}

/* Records in presentation format, as ldns puts them on the wire. `open`: how many bytes from the end may be
 * missing without anybody noticing, because rdata of this type ends with what has no length. */
static void ldns_rdata_passes(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                size_t open;
        } records[] = {
            {"A 192.0.2.1", 0},
            {"AAAA 2001:db8::1", 0},
            {"NS ns.example.", 0},
            {"CNAME a.b.example.", 0},
            {"SOA ns.example. h.example. 1 2 3 4 5", 0},
            {"PTR host.example.", 0},
            {"HINFO \"cpu\" \"os\"", 0},
            {"MINFO a.example. b.example.", 0},
            {"MX 10 mx.example.", 0},
            {"TXT \"hello\"", 0},
            {"RP a.example. b.example.", 0},
            {"AFSDB 1 a.example.", 0},
            {"X25 \"311061700956\"", 0},
            {"ISDN \"150862028003217\" \"004\"", 4},
            {"RT 10 a.example.", 0},
            {"PX 10 a.example. b.example.", 0},
            {"GPOS \"1\" \"2\" \"3\"", 0},
            {"SRV 1 2 3 a.example.", 0},
            {"NAPTR 1 2 \"S\" \"SIP+D2U\" \"!a!b!\" a.example.", 0},
            {"KX 10 a.example.", 0},
            {"DNAME a.example.", 0},
            {"DS 1 8 2 0011", 2},
            {"SSHFP 1 1 0011", 2},
            {"RRSIG A 8 2 3600 20300101000000 20200101000000 1 example. AAAA", 3},
            {"NSEC b.example. A RRSIG", 8},
            {"DNSKEY 257 3 8 AAAA", 3},
            {"NSEC3 1 0 1 AABB 2T7B4G4VSA5SMI47K61MV5BV1A22BOJR A", 3},
            {"NSEC3PARAM 1 0 1 AABB", 0},
            {"TLSA 3 1 1 0011", 2},
            {"CDS 1 8 2 0011", 2},
            {"EUI48 00-11-22-33-44-55", 0},
            {"EUI64 00-11-22-33-44-55-66-77", 0},
            {"L64 10 2001:db8:0:1", 0},
            {"NID 10 0011:2233:4455:6677", 0},
            {"LP 10 a.example.", 0},
            {"CAA 0 issue \"ca\"", 2},
            {"URI 1 2 \"u\"", 1},
            {"SVCB 1 a.example. alpn=h2", 7},
            {"HTTPS 1 a.example. port=443", 6},
        };
        for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
                char line[200];
                snprintf(line, sizeof line, "x.example. 60 IN %s", records[i].text);
                ldns_rr *rr = NULL;
                assert_int_equal(ldns_rr_new_frm_str(&rr, line, 0, NULL, NULL), LDNS_STATUS_OK);
                uint8_t wire[512];
                size_t len = 0;
                for (size_t k = 0; k < ldns_rr_rd_count(rr); k++) {
                        ldns_rdf *rdf = ldns_rr_rdf(rr, k);
                        memcpy(wire + len, ldns_rdf_data(rdf), ldns_rdf_size(rdf));
                        len += ldns_rdf_size(rdf);
                }
                unsigned type = ldns_rr_get_type(rr);
                if (!check(type, wire, len))
                        fail_msg("refused: %s", line);
                for (size_t cut = 0; cut < len; cut++) {
                        if (check(type, wire, cut) != (cut >= len - records[i].open))
                                fail_msg("cut to %zu: %s", cut, line);
                }
                if (records[i].open == 0) {
                        wire[len] = 0xff;
                        if (check(type, wire, len + 1))
                                fail_msg("one byte more: %s", line);
                }
                ldns_rr_free(rr);
        }
}

static void b59_lengths(void **state)
{
        (void)state;
        static const uint8_t zeros[64];
        for (size_t len = 0; len <= 32; len++) {
                assert_int_equal(check(DNS_A, zeros, len), len == 4);
                assert_int_equal(check(DNS_AAAA, zeros, len), len == 16);
                assert_int_equal(check(DNS_DNSKEY, zeros, len), len >= 4);
                assert_int_equal(check(DNS_DS, zeros, len), len >= 4);
                assert_int_equal(check(DNS_NSEC, zeros, len), len >= 1);
                assert_int_equal(check(DNS_SVCB, zeros, len), len >= 3);
                assert_int_equal(check(DNS_RRSIG, zeros, len), len >= 19);
                assert_int_equal(check(DNS_NSEC3, zeros, len), len >= 6);
                assert_int_equal(check(DNS_SOA, zeros, len), len == 22);
                assert_true(check(65280, zeros, len));
                assert_true(check(TYPE_IPSECKEY, zeros, len));
        }
}

static void text_is_strings(void **state)
{
        (void)state;
        const unsigned types[] = {DNS_TXT, TYPE_SPF};
        for (size_t i = 0; i < 2; i++) {
                assert_true(check(types[i], "\0", 1));
                assert_true(check(types[i], "\1a\0\2bc", 6));
                assert_false(check(types[i], "", 0));
                assert_false(check(types[i], "\1", 1));
                assert_false(check(types[i], "\1a\3bc", 5));
        }
        assert_true(check(TYPE_HINFO, "\1a\0", 3));
        assert_false(check(TYPE_HINFO, "\1a", 2));
        assert_false(check(TYPE_HINFO, "\1a\1b\1c", 6));
}

/* Put the type's fixed part and strings, then one name made by `name`, then the rest. */
static bool check_name(unsigned type, const char *labels, size_t pointer)
{
        struct packet packet;
        start(&packet, 0x8180);
        add_question(&packet, "example", DNS_A);
        size_t at = packet.len;
        static const uint8_t zeros[255];
        for (const struct rdata_field *f = rdata_shape((uint16_t)type)->fields; f->kind != RDATA_END; f++) {
                if (f->kind == RDATA_FIXED)
                        add_bytes(&packet, zeros, f->size);
                else if (f->kind == RDATA_STRING)
                        add_u8(&packet, 0);
                else if (f->kind == RDATA_NAME) {
                        add_labels(&packet, labels);
                        if (pointer == 0)
                                add_u8(&packet, 0);
                        else
                                add_pointer(&packet, pointer);
                }
        }
        work = 10000;
        return rdata_check(exactly(packet.bytes, packet.len), packet.len, (uint16_t)type, at, packet.len - at,
                           QUESTION_LEN, &work);
}

static void compressed_names_where_they_may_be(void **state)
{
        (void)state;
        for (unsigned type = 0; type < 65536; type++) {
                if (!rdata_shape((uint16_t)type)->has_name)
                        continue;
                assert_true(check_name(type, "a.b", 0));
                assert_true(check_name(type, "", 0));
                bool may = !IN(never_compressed, type);
                assert_int_equal(check_name(type, "a.b", DNS_HEADER), may);
                assert_int_equal(check_name(type, "", DNS_HEADER), may);
                assert_false(check_name(type, "a", 4));
                assert_false(check_name(type, "a", 0x3fff));
                assert_false(check_name(type, "a", DNS_HEADER + QUESTION_LEN + 4 + 600));
        }
}

static void b59_names_stay_within_rdata(void **state)
{
        (void)state;
        struct packet packet;
        start(&packet, 0x8180);
        add_question(&packet, "example", DNS_A);
        size_t at = packet.len;
        add_u16(&packet, 10);
        add_name(&packet, "mx.example");
        /* the name is whole in the message, but not in an rdata that ends earlier */
        for (size_t rdlen = 0; rdlen <= packet.len - at; rdlen++) {
                work = 1000;
                assert_int_equal(
                    rdata_check(packet.bytes, packet.len, DNS_MX, at, rdlen, QUESTION_LEN, &work),
                    rdlen == packet.len - at);
                assert_int_equal(
                    rdata_check(packet.bytes, packet.len, TYPE_KX, at, rdlen, QUESTION_LEN, &work),
                    rdlen == packet.len - at);
        }
}

static void b64_names_cost_work(void **state)
{
        (void)state;
        assert_true(check_name(DNS_SOA, "a.b", DNS_HEADER));
        assert_int_equal(work, 10000 - 2 * 5); /* a, b, pointer, example, root */
        struct packet packet;
        packet.len = 0;
        add_name(&packet, "a.b.c");
        work = 3;
        assert_false(rdata_check(packet.bytes, packet.len, DNS_NS, 0, packet.len, 0, &work));
        assert_int_equal(work, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(shapes_are_sound),
            cmocka_unit_test(which_types_hold_names),
            cmocka_unit_test(shapes_of_known_types),
            cmocka_unit_test(ldns_rdata_passes),
            cmocka_unit_test(b59_lengths),
            cmocka_unit_test(text_is_strings),
            cmocka_unit_test(compressed_names_where_they_may_be),
            cmocka_unit_test(b59_names_stay_within_rdata),
            cmocka_unit_test(b64_names_cost_work),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
