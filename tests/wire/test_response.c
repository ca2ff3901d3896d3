/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sardine.h"
#include "wire/name.h"
#include "wire/packet.h"
#include "wire/response.h"

static struct wire_rr rrs[WIRE_RRS_MAX];

static unsigned parse(const struct packet *packet, struct wire_response *response)
{
        return wire_response_parse(exactly(packet->bytes, packet->len), packet->len, rrs, WIRE_RRS_MAX,
                                   response);
}

static void assert_reason(const struct packet *packet, unsigned reason)
{
        struct wire_response response;
        assert_int_equal(parse(packet, &response), reason);
}

static void answer(struct packet *packet, unsigned flags, const char *name, unsigned type)
{
        start(packet, flags);
        add_question(packet, name, type);
}

static void sections_and_records(void **state)
{
        (void)state;
        struct packet packet;
        struct wire_response response;
        answer(&packet, 0x8580, "wWw.Example", DNS_A);
        size_t cname = packet.len;
        add_alias(&packet, COUNT_ANSWER, "@", DNS_CNAME, 300, "a.example");
        size_t a = packet.len;
        add_a(&packet, COUNT_ANSWER, "a.example", 60);
        add_alias(&packet, COUNT_AUTHORITY, "example", DNS_NS, 3600, "ns.example");
        add_opt(&packet, 4096, 0x8000);
        add_a(&packet, COUNT_ADDITIONAL, "ns.example", 120);

        assert_int_equal(parse(&packet, &response), 0);
        assert_int_equal(response.len, packet.len);
        assert_ptr_equal(response.qname, response.packet + DNS_HEADER);
        assert_int_equal(response.qname_len, 13);
        assert_int_equal(response.qtype, DNS_A);
        assert_int_equal(response.qclass, DNS_IN);
        assert_int_equal(response.rcode, DNS_NOERROR);
        assert_int_equal(response.flags2, 0x85);
        assert_int_equal(response.flags3, 0x80);
        assert_true(response.edns && response.dnssec_ok);
        assert_int_equal(response.ede_count, 0);
        assert_int_equal(response.ecs.family, ECS_NONE);

        assert_int_equal(response.count, 4);
        assert_int_equal(rrs[0].owner, cname);
        assert_int_equal(rrs[0].type, DNS_CNAME);
        assert_int_equal(rrs[0].rclass, DNS_IN);
        assert_int_equal(rrs[0].ttl, 300);
        assert_int_equal(rrs[0].rdata, cname + 12);
        assert_int_equal(rrs[0].rdlen, 11);
        assert_int_equal(rrs[0].section, WIRE_ANSWER);
        assert_int_equal(rrs[1].owner, a);
        assert_int_equal(rrs[1].rdlen, 4);
        assert_int_equal(rrs[2].section, WIRE_AUTHORITY);
        assert_int_equal(rrs[3].section, WIRE_ADDITIONAL);
        assert_int_equal(rrs[3].ttl, 120);
}

static bool is_plain(const struct packet *packet)
{
        struct wire_response response;
        assert_int_equal(parse(packet, &response), 0);
        return response.plain;
}

static void only_what_answers_the_very_question_is_plain(void **state)
{
        (void)state;
        struct packet packet;
        const size_t question = DNS_HEADER;
        answer(&packet, 0x8180, "www.example", DNS_A);
        assert_false(is_plain(&packet)); /* nothing there */
        add_a(&packet, COUNT_ANSWER, "@", 60);
        add_a(&packet, COUNT_ANSWER, "@", 30);
        add_opt(&packet, 1232, 0);
        assert_true(is_plain(&packet));
        struct packet more = packet;
        add_a(&more, COUNT_ADDITIONAL, "@", 60);
        assert_false(is_plain(&more));
        more = packet;
        more.bytes[question + 1] = 'W'; /* follows it all the same */
        assert_true(is_plain(&more));

        answer(&packet, 0x8180, "www.example", DNS_A);
        add_a(&packet, COUNT_ANSWER, "@", 60);
        more = packet;
        add_a(&more, COUNT_ANSWER, "www.example", 60); /* spelled out */
        assert_false(is_plain(&more));
        more = packet;
        add_alias(&more, COUNT_ANSWER, "@", DNS_CNAME, 60, "a.example");
        assert_false(is_plain(&more));
        more = packet;
        add_alias(&more, COUNT_AUTHORITY, "example", DNS_NS, 60, "a.example");
        assert_false(is_plain(&more));

        answer(&packet, 0x8180, "www.example", DNS_AAAA);
        add_a(&packet, COUNT_ANSWER, "@", 60);
        assert_false(is_plain(&packet));
        answer(&packet, 0x8180, "www.example", DNS_ANY);
        add_a(&packet, COUNT_ANSWER, "@", 60);
        assert_false(is_plain(&packet));
        start(&packet, 0x8180); /* without a question */
        add_a(&packet, COUNT_ANSWER, "www.example", 60);
        assert_false(is_plain(&packet));
}

static void b29_header_only(void **state)
{
        (void)state;
        struct packet packet;
        struct wire_response response;
        start(&packet, 0x8185);
        assert_int_equal(parse(&packet, &response), 0);
        assert_null(response.qname);
        assert_int_equal(response.qname_len, 0);
        assert_int_equal(response.count, 0);
        assert_int_equal(response.rcode, DNS_REFUSED);
        assert_false(response.edns);
        add_opt(&packet, 1232, 0);
        assert_int_equal(parse(&packet, &response), 0);
        assert_true(response.edns);
}

static void b25_only_answers_to_queries(void **state)
{
        (void)state;
        struct packet packet;
        answer(&packet, 0x0180, "a.example", DNS_A);
        assert_reason(&packet, SARDINE_REFUSED_MISMATCH);
        for (unsigned opcode = 1; opcode < 16; opcode++) {
                answer(&packet, 0x8000 | opcode << 11, "a.example", DNS_A);
                assert_reason(&packet, SARDINE_REFUSED_MISMATCH);
        }
        answer(&packet, 0x8180, "a.example", DNS_A);
        add_question(&packet, "b.example", DNS_A);
        assert_reason(&packet, SARDINE_REFUSED_MISMATCH);
}

static void b25_signed_transactions(void **state)
{
        (void)state;
        struct packet packet;
        answer(&packet, 0x8180, "a.example", DNS_A);
        add_a(&packet, COUNT_ANSWER, "@", 60);
        size_t at = start_rr(&packet, COUNT_ADDITIONAL, "key", DNS_TSIG, 0);
        put_be16(packet.bytes + at - 8, DNS_ANY);
        add_name(&packet, "hmac-sha256");
        end_rdata(&packet, at);
        assert_reason(&packet, SARDINE_REFUSED_MISMATCH);

        answer(&packet, 0x8180, "a.example", DNS_A);
        at = start_rr(&packet, COUNT_ADDITIONAL, "", DNS_SIG, 0);
        for (unsigned i = 0; i < 9; i++)
                add_u16(&packet, 0);
        add_name(&packet, "key");
        end_rdata(&packet, at);
        assert_reason(&packet, SARDINE_REFUSED_MISMATCH);
        /* the same as a signature of data */
        put_be16(packet.bytes + at, DNS_A);
        assert_reason(&packet, SARDINE_REASON_NONE);
}

static void b44_top_bit_of_a_ttl(void **state)
{
        (void)state;
        struct packet packet;
        struct wire_response response;
        const uint32_t ttls[] = {0, 1, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff};
        answer(&packet, 0x8180, "a.example", DNS_A);
        for (size_t i = 0; i < 6; i++)
                add_a(&packet, COUNT_ANSWER, "@", ttls[i]);
        assert_int_equal(parse(&packet, &response), 0);
        for (size_t i = 0; i < 6; i++)
                assert_int_equal(rrs[i].ttl, i < 3 ? ttls[i] : 0x7fffffff);
}

static void make_whole(struct packet *packet)
{
        answer(packet, 0x8180, "www.example", DNS_MX);
        size_t at = start_rr(packet, COUNT_ANSWER, "@", DNS_MX, 60);
        add_u16(packet, 10);
        add_labels(packet, "mx");
        add_pointer(packet, DNS_HEADER + 4);
        end_rdata(packet, at);
        add_rrsig(packet, COUNT_ANSWER, "@", DNS_MX, 60);
        add_soa(packet, COUNT_AUTHORITY, "example", 60, 60);
        at = start_opt(packet, 1232, 0);
        add_option(packet, EDNS_EDE, "\0\3text", 6);
        end_rdata(packet, at);
        add_a(packet, COUNT_ADDITIONAL, "mx.example", 60);
}

static void b53_cut_anywhere(void **state)
{
        (void)state;
        struct packet packet;
        make_whole(&packet);
        assert_reason(&packet, SARDINE_REASON_NONE);
        size_t whole = packet.len;
        for (packet.len = 0; packet.len < whole; packet.len++)
                assert_reason(&packet, SARDINE_REFUSED_MALFORMED);
        packet.len = whole;
        add_u8(&packet, 0);
        assert_reason(&packet, SARDINE_REFUSED_MALFORMED);
}

static void b53_counts_that_lie(void **state)
{
        (void)state;
        struct packet packet;
        make_whole(&packet);
        for (unsigned at = COUNT_QUESTION; at <= COUNT_ADDITIONAL; at += 2) {
                uint16_t right = get_be16(packet.bytes + at);
                const uint16_t wrong[] = {(uint16_t)(right + 1), (uint16_t)(right - 1), 0xffff};
                for (size_t i = 0; i < 3; i++) {
                        struct wire_response response;
                        put_be16(packet.bytes + at, wrong[i]);
                        assert_int_not_equal(parse(&packet, &response), 0);
                }
                put_be16(packet.bytes + at, right);
        }
        assert_reason(&packet, SARDINE_REASON_NONE);
}

static void b53_longer_than_a_message(void **state)
{
        (void)state;
        struct packet packet;
        answer(&packet, 0x8180, "a.example", DNS_A);
        while (packet.len + 16 + 65 <= DNS_MAX_MESSAGE)
                add_a(&packet, COUNT_ANSWER, "@", 60);
        size_t at = start_rr(&packet, COUNT_ANSWER, "@", 65280, 60);
        while (packet.len < DNS_MAX_MESSAGE)
                add_u8(&packet, 0);
        end_rdata(&packet, at);
        assert_reason(&packet, SARDINE_REASON_NONE);
        add_u8(&packet, 0);
        end_rdata(&packet, at);
        assert_reason(&packet, SARDINE_REFUSED_MALFORMED);
}

static void b58_malformed_opt(void **state)
{
        (void)state;
        struct packet packet;
        const unsigned lengths[] = {5, 6, 7, 8, 0xffff};
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
                answer(&packet, 0x8180, "a.example", DNS_A);
                size_t at = start_opt(&packet, 1232, 0);
                add_u16(&packet, 65001);
                add_u16(&packet, lengths[i]);
                add_u32(&packet, 0);
                end_rdata(&packet, at);
                assert_reason(&packet, SARDINE_REFUSED_MALFORMED);
        }
        answer(&packet, 0x8180, "a.example", DNS_A);
        add_opt(&packet, 1232, 0);
        add_opt(&packet, 1232, 0);
        assert_reason(&packet, SARDINE_REFUSED_MALFORMED);

        for (unsigned section = COUNT_ANSWER; section <= COUNT_ADDITIONAL; section += 2) {
                answer(&packet, 0x8180, "a.example", DNS_A);
                add_rr(&packet, section, "", DNS_OPT, 0, "", 0);
                assert_reason(&packet,
                              section == COUNT_ADDITIONAL ? SARDINE_REASON_NONE : SARDINE_REFUSED_MALFORMED);
                answer(&packet, 0x8180, "a.example", DNS_A);
                add_rr(&packet, section, "x", DNS_OPT, 0, "", 0);
                assert_reason(&packet, SARDINE_REFUSED_MALFORMED);
        }
        /* a pointer to a root label is the root, but no OPT's owner */
        answer(&packet, 0x8180, "", DNS_NS);
        add_rr(&packet, COUNT_ADDITIONAL, "@", DNS_OPT, 0, "", 0);
        assert_reason(&packet, SARDINE_REFUSED_MALFORMED);
}

static void b58_options(void **state)
{
        (void)state;
        struct packet packet;
        struct wire_response response;
        answer(&packet, 0x8183, "a.example", DNS_A);
        size_t at = start_opt(&packet, 1232, 0);
        add_option(&packet, EDNS_COOKIE, "clientckserverck", 16);
        add_option(&packet, EDNS_ECS, "\0\1\x18\x10\xc0\0\2", 7);
        size_t first = packet.len;
        add_option(&packet, EDNS_EDE, "\0\x16no", 4);
        add_option(&packet, EDNS_EDE, "\0\x03", 2);
        add_option(&packet, EDNS_PADDING, "\0\0\0", 3);
        end_rdata(&packet, at);
        assert_int_equal(parse(&packet, &response), 0);
        assert_int_equal(response.rcode, DNS_NXDOMAIN);
        assert_int_equal(response.ecs.family, ECS_IPV4);
        assert_int_equal(response.ecs.source, 24);
        assert_int_equal(response.ecs.scope, 16);
        assert_int_equal(response.ede_count, 2);
        assert_int_equal(response.ede[0].code, 22);
        assert_int_equal(response.ede[0].text_len, 2);
        assert_ptr_equal(response.ede[0].text, response.packet + first + 6);
        assert_int_equal(response.ede[1].code, 3);
        assert_int_equal(response.ede[1].text_len, 0);

        /* more errors than are kept */
        answer(&packet, 0x8182, "a.example", DNS_A);
        at = start_opt(&packet, 1232, 0);
        for (unsigned i = 0; i < WIRE_EDE_MAX + 3; i++) {
                uint8_t code[2] = {0, (uint8_t)i};
                add_option(&packet, EDNS_EDE, code, 2);
        }
        end_rdata(&packet, at);
        assert_int_equal(parse(&packet, &response), 0);
        assert_int_equal(response.ede_count, WIRE_EDE_MAX);
        assert_int_equal(response.ede[WIRE_EDE_MAX - 1].code, WIRE_EDE_MAX - 1);

        static const struct {
                unsigned code;
                const char *data;
                size_t len, times;
        } bad[] = {
            {EDNS_EDE, "\0", 1, 1},
            {EDNS_EDE, "", 0, 1},
            {EDNS_ECS, "\0\1\x18\0\1\2", 6, 1},
            {EDNS_ECS, "\0\1\0\0", 4, 2},
        };
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                answer(&packet, 0x8180, "a.example", DNS_A);
                at = start_opt(&packet, 1232, 0);
                for (size_t n = 0; n < bad[i].times; n++)
                        add_option(&packet, bad[i].code, bad[i].data, bad[i].len);
                end_rdata(&packet, at);
                assert_reason(&packet, SARDINE_REFUSED_MALFORMED);
        }
}

static void b56_rcode_is_12_bits(void **state)
{
        (void)state;
        struct packet packet;
        struct wire_response response;
        for (unsigned rcode = 0; rcode < 4096; rcode++) {
                answer(&packet, 0x8180 | (rcode & 15), "a.example", DNS_A);
                add_opt(&packet, 1232, (uint32_t)(rcode >> 4) << 24);
                assert_int_equal(parse(&packet, &response), 0);
                assert_int_equal(response.rcode, rcode);
        }
        /* the version is the responder's own business */
        answer(&packet, 0x8180, "a.example", DNS_A);
        add_opt(&packet, 1232, 0x00010000);
        assert_int_equal(parse(&packet, &response), 0);
        assert_int_equal(response.rcode, 0);
}

static void b34_opt_is_no_record(void **state)
{
        (void)state;
        struct packet packet;
        struct wire_response response;
        answer(&packet, 0x8180, "a.example", DNS_A);
        add_opt(&packet, 1232, 0);
        add_a(&packet, COUNT_ADDITIONAL, "ns.example", 300);
        assert_int_equal(parse(&packet, &response), 0);
        assert_int_equal(response.count, 1);
        assert_int_equal(rrs[0].type, DNS_A);
        assert_false(response.dnssec_ok);
}

static void b59_types_and_classes(void **state)
{
        (void)state;
        struct packet packet;
        for (unsigned type = 0; type < 300; type++) {
                answer(&packet, 0x8180, "a.example", DNS_A);
                add_rr(&packet, COUNT_ANSWER, "@", type, 60, "\0\1", 2);
                struct wire_response response;
                unsigned reason = parse(&packet, &response);
                if (type == DNS_TSIG)
                        assert_int_equal(reason, SARDINE_REFUSED_MISMATCH);
                else if (type == 0 || type == DNS_OPT || (type >= 128 && type < 256))
                        assert_int_equal(reason, SARDINE_REFUSED_MALFORMED);
                else if (type >= 110 && type < 128) /* unknown, of any content (RFC 3597) */
                        assert_int_equal(reason, 0);
        }
        for (unsigned rclass = 0; rclass < 300; rclass++) {
                answer(&packet, 0x8180, "a.example", DNS_A);
                size_t at = start_rr(&packet, COUNT_ANSWER, "@", DNS_A, 60);
                add_u32(&packet, 0);
                end_rdata(&packet, at);
                put_be16(packet.bytes + at - 8, (uint16_t)rclass);
                assert_reason(&packet, rclass == DNS_IN ? SARDINE_REASON_NONE : SARDINE_REFUSED_MALFORMED);
        }
}

static void b59_rdata_that_does_not_fit(void **state)
{
        (void)state;
        struct packet packet;
        static const uint8_t zeros[20];
        for (unsigned len = 0; len < 20; len++) {
                answer(&packet, 0x8180, "a.example", DNS_A);
                add_rr(&packet, COUNT_ANSWER, "@", DNS_A, 60, zeros, len);
                assert_reason(&packet, len == 4 ? SARDINE_REASON_NONE : SARDINE_REFUSED_MALFORMED);
                answer(&packet, 0x8180, "a.example", DNS_A);
                add_rr(&packet, COUNT_ANSWER, "@", DNS_AAAA, 60, zeros, len);
                assert_reason(&packet, len == 16 ? SARDINE_REASON_NONE : SARDINE_REFUSED_MALFORMED);
        }
        answer(&packet, 0x8180, "a.example", DNS_A);
        size_t at = start_rr(&packet, COUNT_ANSWER, "@", DNS_A, 60);
        add_u32(&packet, 0);
        for (unsigned rdlen = 5; rdlen < 65536; rdlen += 97) {
                put_be16(packet.bytes + at - 2, (uint16_t)rdlen);
                assert_reason(&packet, SARDINE_REFUSED_MALFORMED);
        }
}

static void b59_bad_pointers(void **state)
{
        (void)state;
        struct packet packet;
        answer(&packet, 0x8180, "a.example", DNS_NS);
        size_t owner = packet.len;
        size_t at = start_rr(&packet, COUNT_ANSWER, "@", DNS_NS, 60);
        add_labels(&packet, "ns");
        size_t pointer = packet.len;
        add_pointer(&packet, DNS_HEADER);
        end_rdata(&packet, at);
        assert_reason(&packet, SARDINE_REASON_NONE);
        const size_t targets[] = {0, 4, DNS_HEADER + 1, owner + 2, at, pointer, pointer + 2, 0x3fff};
        for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
                /* at + 0 is the target's own start; owner + 2 is the type: 0, a root label, which is allowed
                 */
                put_be16(packet.bytes + pointer, (uint16_t)(0xc000 | targets[i]));
                assert_reason(&packet,
                              targets[i] == owner + 2 ? SARDINE_REASON_NONE : SARDINE_REFUSED_MALFORMED);
                put_be16(packet.bytes + pointer, 0xc000 | DNS_HEADER);
                if (targets[i] == owner + 2)
                        continue;
                put_be16(packet.bytes + owner, (uint16_t)(0xc000 | targets[i]));
                assert_reason(&packet, SARDINE_REFUSED_MALFORMED);
                put_be16(packet.bytes + owner, 0xc000 | DNS_HEADER);
        }
        /* a question has nothing to point back to */
        start(&packet, 0x8180);
        count(&packet, COUNT_QUESTION);
        add_pointer(&packet, DNS_HEADER);
        add_u32(&packet, DNS_A << 16 | DNS_IN);
        assert_reason(&packet, SARDINE_REFUSED_MALFORMED);
}

static void room_for_records(void **state)
{
        (void)state;
        struct packet packet;
        struct wire_response response;
        answer(&packet, 0x8180, "a.example", DNS_A);
        for (unsigned i = 0; i < 3; i++)
                add_a(&packet, COUNT_ANSWER, "@", 60);
        add_opt(&packet, 1232, 0); /* needs none */
        assert_int_equal(wire_response_parse(packet.bytes, packet.len, rrs, 3, &response), 0);
        assert_int_equal(response.count, 3);
        assert_int_equal(wire_response_parse(packet.bytes, packet.len, rrs, 2, &response),
                         SARDINE_REFUSED_COMPLEX);
        /* the most that a message can hold: 11 bytes each */
        start(&packet, 0x8180);
        while (packet.len + 11 <= DNS_MAX_MESSAGE)
                add_rr(&packet, COUNT_ANSWER, "", 65280, 60, "", 0);
        assert_int_equal(parse(&packet, &response), 0);
        assert_true(response.count <= WIRE_RRS_MAX);
}

/* Honest messages as large as they can be are taken, whatever their names. */
static void b64_honest_and_large(void **state)
{
        (void)state;
        struct packet packet;
        answer(&packet, 0x8180, "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z.a.b.c.d.ip6.arpa",
               DNS_A);
        while (packet.len + 16 <= DNS_MAX_MESSAGE)
                add_a(&packet, COUNT_ANSWER, "@", 60);
        assert_reason(&packet, SARDINE_REASON_NONE);

        answer(&packet, 0x8180, "www.example.com", DNS_NS);
        for (unsigned i = 0; packet.len + 18 <= DNS_MAX_MESSAGE; i++) {
                size_t at = start_rr(&packet, COUNT_ANSWER, "@", DNS_NS, 60);
                char label[4] = {(char)('a' + i / 676 % 26), (char)('a' + i / 26 % 26), (char)('a' + i % 26)};
                add_labels(&packet, label);
                add_pointer(&packet, DNS_HEADER);
                end_rdata(&packet, at);
        }
        assert_reason(&packet, SARDINE_REASON_NONE);

        answer(&packet, 0x8180, "www.example.com", DNS_A);
        while (packet.len + 25 <= DNS_MAX_MESSAGE)
                add_a(&packet, COUNT_ADDITIONAL, "ns.b.c.d", 60);
        assert_reason(&packet, SARDINE_REASON_NONE);
}

static void b64_pointer_chains(void **state)
{
        (void)state;
        struct packet packet;
        /* every owner points to the owner before it */
        answer(&packet, 0x8180, "a", DNS_A);
        size_t before = DNS_HEADER;
        while (before < 0x4000) {
                size_t owner = packet.len;
                add_pointer(&packet, before);
                count(&packet, COUNT_ANSWER);
                size_t at = add_fixed(&packet, DNS_A, 60);
                add_u32(&packet, 0);
                end_rdata(&packet, at);
                before = owner;
        }
        assert_reason(&packet, SARDINE_REFUSED_COMPLEX);

        /* one long chain in data that nobody looks at, and 4000 owners that want it followed */
        answer(&packet, 0x8180, "a", DNS_A);
        size_t at = start_rr(&packet, COUNT_ANSWER, "@", 65280, 60);
        for (before = DNS_HEADER; packet.len < 0x3ffe;) {
                size_t here = packet.len;
                add_pointer(&packet, before);
                before = here;
        }
        end_rdata(&packet, at);
        for (unsigned i = 0; i < 4000 && packet.len + 18 <= DNS_MAX_MESSAGE; i++) {
                count(&packet, COUNT_ANSWER);
                add_labels(&packet, "x");
                add_pointer(&packet, before);
                at = add_fixed(&packet, DNS_A, 60);
                add_u32(&packet, 0);
                end_rdata(&packet, at);
        }
        assert_reason(&packet, SARDINE_REFUSED_COMPLEX);

        /* the same, asked for by rdata */
        answer(&packet, 0x8180, "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z", DNS_NS);
        while (packet.len + 14 <= DNS_MAX_MESSAGE) {
                at = start_rr(&packet, COUNT_ANSWER, "@", DNS_NS, 60);
                add_pointer(&packet, DNS_HEADER + 2);
                end_rdata(&packet, at);
        }
        assert_reason(&packet, SARDINE_REFUSED_COMPLEX);
}

/* All the work there is may be used, and not one step more. */
static void b64_the_very_limit(void **state)
{
        (void)state;
        struct packet packet;
        answer(&packet, 0x8180, "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z", DNS_NS);
        /* 1 for the owner; a pointer, 26 labels and the root in rdata */
        uint32_t left = WIRE_WORK_MAX;
        for (; left >= 29; left -= 29) {
                size_t at = start_rr(&packet, COUNT_ANSWER, "@", DNS_NS, 60);
                add_pointer(&packet, DNS_HEADER);
                end_rdata(&packet, at);
        }
        for (; left > 0; left--) {
                assert_reason(&packet, SARDINE_REASON_NONE);
                add_a(&packet, COUNT_ANSWER, "@", 60);
        }
        assert_reason(&packet, SARDINE_REASON_NONE);
        add_a(&packet, COUNT_ANSWER, "@", 60);
        assert_reason(&packet, SARDINE_REFUSED_COMPLEX);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(sections_and_records),
            cmocka_unit_test(only_what_answers_the_very_question_is_plain),
            cmocka_unit_test(b29_header_only),
            cmocka_unit_test(b25_only_answers_to_queries),
            cmocka_unit_test(b25_signed_transactions),
            cmocka_unit_test(b44_top_bit_of_a_ttl),
            cmocka_unit_test(b53_cut_anywhere),
            cmocka_unit_test(b53_counts_that_lie),
            cmocka_unit_test(b53_longer_than_a_message),
            cmocka_unit_test(b58_malformed_opt),
            cmocka_unit_test(b58_options),
            cmocka_unit_test(b56_rcode_is_12_bits),
            cmocka_unit_test(b34_opt_is_no_record),
            cmocka_unit_test(b59_types_and_classes),
            cmocka_unit_test(b59_rdata_that_does_not_fit),
            cmocka_unit_test(b59_bad_pointers),
            cmocka_unit_test(room_for_records),
            cmocka_unit_test(b64_honest_and_large),
            cmocka_unit_test(b64_pointer_chains),
            cmocka_unit_test(b64_the_very_limit),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
