/* SPDX-License-Identifier: MIT
 * One entry, many clients. */
#include "message.h"

#include <stdio.h>

#include "wire/bytes.h"
#include "wire/name.h"

static struct message message, reply, second;
static struct taken taken;
static struct wire_response response;
static struct wire_rr rrs[WIRE_RRS_MAX];

static void start(const char *name, uint16_t type, uint16_t flags)
{
        message_start(&message, (uint16_t)(DNS_QR << 8 | DNS_RD << 8 | flags));
        message_question(&message, name, type);
}

/* Render for this client, parse the reply, and see that it is for this client. */
static struct render_result render(const struct client *client, uint32_t age, uint16_t limit)
{
        struct render_result result = render_for(&taken, client, age, limit, &reply);
        parse_reply(&reply, &response, rrs);
        uint8_t name[255];
        assert_int_equal(response.qname_len, name_wire(client->name, name));
        assert_memory_equal(response.qname, name, response.qname_len);
        assert_int_equal(response.qtype, client->type);
        assert_int_equal(get_be16(reply.bytes), 0xbeef);
        assert_int_equal((response.flags2 & DNS_TC) != 0, result.truncated);
        assert_int_equal(response.edns, client->size != 0);
        return result;
}

/* How often a type is there, in any section. */
static unsigned count_type(uint16_t type)
{
        unsigned n = 0;
        for (uint32_t i = 0; i < response.count; i++)
                n += rrs[i].type == type;
        return n;
}

static void check_name_at(size_t off, const char *text)
{
        uint8_t expected[255];
        size_t len = name_wire(text, expected);
        struct wire_name name;
        uint32_t work = WIRE_WORK_MAX;
        assert_int_not_equal(
            wire_name_expand(response.packet, response.len, off, response.qname_len, &work, &name), 0);
        assert_int_equal(name.len, len);
        assert_memory_equal(name.bytes, expected, len);
}

static void b07_ad_is_shown_to_those_who_understand_it(void **state)
{
        (void)state;
        start("a.example", DNS_A, DNS_RA | DNS_AD);
        put_a(&message, WIRE_ANSWER, NULL, 300, 1);
        take(&taken, &message);
        for (unsigned bits = 0; bits < 4; bits++) {
                struct client client = {
                    .name = "a.example",
                    .type = DNS_A,
                    .rd = true,
                    .ad = bits & 1,
                    .dnssec_ok = bits & 2,
                    .size = bits & 2 ? 1232 : 0,
                };
                render(&client, 0, 1232);
                assert_int_equal((response.flags3 & DNS_AD) != 0, bits != 0);
        }
        message.bytes[3] &= (uint8_t)~DNS_AD;
        take(&taken, &message);
        struct client client = {.name = "a.example", .type = DNS_A, .rd = true, .ad = true};
        render(&client, 0, 512);
        assert_int_equal(response.flags3 & DNS_AD, 0);
}

static void b08_aa_and_ra_are_as_the_upstream_said(void **state)
{
        (void)state;
        struct client client = {.name = "a.example", .type = DNS_A, .rd = true};
        for (unsigned bits = 0; bits < 4; bits++) {
                start("a.example", DNS_A, (uint16_t)((bits & 1 ? DNS_AA << 8 : 0) | (bits & 2 ? DNS_RA : 0)));
                put_a(&message, WIRE_ANSWER, NULL, 300, 1);
                take(&taken, &message);
                render(&client, 0, 512);
                assert_int_equal(reply.bytes[2], message.bytes[2]);
                assert_int_equal(reply.bytes[3], message.bytes[3]);
        }
}

static void b04_rd_and_cd_are_this_clients(void **state)
{
        (void)state;
        start("a.example", DNS_A, 0);
        put_a(&message, WIRE_ANSWER, NULL, 300, 1);
        take(&taken, &message);
        for (unsigned bits = 0; bits < 4; bits++) {
                struct client client = {.name = "a.example", .type = DNS_A, .rd = bits & 1, .cd = bits & 2};
                render(&client, 0, 512);
                assert_int_equal((response.flags2 & DNS_RD) != 0, client.rd);
                assert_int_equal((response.flags3 & DNS_CD) != 0, client.cd);
        }
}

static void b26_the_question_has_this_clients_case(void **state)
{
        (void)state;
        start("wWw.ExAmPlE.oRg", DNS_A, DNS_RA);
        put_a(&message, WIRE_ANSWER, NULL, 300, 1);
        take(&taken, &message);
        struct client client = {.name = "WwW.eXaMpLe.OrG", .type = DNS_A, .rd = true};
        render(&client, 0, 512);
        check_name_at(rrs[0].owner, "WwW.eXaMpLe.OrG");
        assert_int_equal(reply.bytes[rrs[0].owner], 0xc0);
}

static void b26_names_follow_the_question_or_keep_their_case(void **state)
{
        (void)state;
        start("wWw.ExAmPlE.Test", DNS_MX, DNS_RA);
        put_pointer(&message, DNS_HEADER);
        size_t mark = rr_begin(&message, WIRE_ANSWER, DNS_CNAME, 300);
        size_t alias = message.len;
        put_bytes(&message, "\5aLiAs", 6);
        put_pointer(&message, DNS_HEADER + 4);
        rr_end(&message, mark);
        put_pointer(&message, alias);
        mark = rr_begin(&message, WIRE_ANSWER, DNS_MX, 300);
        put_u16(&message, 10);
        put_name(&message, "Mx.Example.Test");
        rr_end(&message, mark);
        put_pointer(&message, alias);
        mark = rr_begin(&message, WIRE_ANSWER, DNS_MX, 300);
        put_u16(&message, 20);
        put_name(&message, "mx2.example.test");
        rr_end(&message, mark);
        put_pointer(&message, alias);
        mark = rr_begin(&message, WIRE_ANSWER, DNS_MX, 300);
        put_u16(&message, 30);
        put_name(&message, "mx3.example.test");
        rr_end(&message, mark);
        take(&taken, &message);

        static const char *const cases[][2] = {
            {"www.example.test", "aLiAs.example.test"},
            {"WWW.EXAMPLE.TEST", "aLiAs.EXAMPLE.TEST"},
            {"wWw.eXample.test", "aLiAs.eXample.test"},
            {"WWW.example.test", "aLiAs.example.test"},
        };
        for (unsigned i = 0; i < 4; i++) {
                struct client client = {.name = cases[i][0], .type = DNS_MX, .rd = true};
                render(&client, 0, 512);
                assert_int_equal(response.count, 4);
                check_name_at(rrs[0].owner, cases[i][0]);
                check_name_at(rrs[0].rdata, cases[i][1]);
                for (unsigned j = 1; j < 4; j++)
                        check_name_at(rrs[j].owner, cases[i][1]);
                check_name_at(rrs[1].rdata + 2u, "Mx.Example.Test");
                check_name_at(rrs[2].rdata + 2u, "mx2.example.test");
                check_name_at(rrs[3].rdata + 2u, "mx3.example.test");
                /* Lower case in the question: point there. Else it is spelled out once, then pointed at. */
                static const uint16_t ends[] = {2, 8 + 6, 8 + 2, 2};
                assert_int_equal(rrs[2].rdlen, 2 + 4 + ends[i]);
                assert_int_equal(rrs[3].rdlen, 2 + 4 + 2);
        }
}

/* Names in types newer than RFC 1035 are spelled out, to the letter. */
static void names_are_compressed_only_where_that_is_allowed(void **state)
{
        (void)state;
        start("_sip._udp.example.org", DNS_SRV, DNS_RA);
        for (unsigned i = 0; i < 2; i++) {
                put_pointer(&message, DNS_HEADER);
                size_t mark = rr_begin(&message, WIRE_ANSWER, DNS_SRV, 300);
                put_u16(&message, 1);
                put_u16(&message, 2);
                put_u16(&message, 5060);
                put_name(&message, "sip.example.org");
                rr_end(&message, mark);
        }
        put_rrsig(&message, WIRE_ANSWER, NULL, 300, DNS_SRV, "example.org");
        put_a(&message, WIRE_ADDITIONAL, "sip.example.org", 300, 5);
        take(&taken, &message);
        struct client client = {
            .name = "_SIP._UDP.EXAMPLE.ORG", .type = DNS_SRV, .rd = true, .dnssec_ok = true, .size = 1232};
        render(&client, 0, 1232);
        assert_int_equal(response.count, 4);
        for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(rrs[i].rdlen, 6 + 17);
                assert_memory_equal(reply.bytes + rrs[i].rdata + 6, "\3sip\7example\3org", 17);
        }
        assert_int_equal(rrs[2].rdlen, 18 + 13 + 64);
        assert_memory_equal(reply.bytes + rrs[2].rdata + 18, "\7example\3org", 13);
        check_name_at(rrs[3].owner, "sip.example.org");
}

static void the_root_is_never_pointed_at(void **state)
{
        (void)state;
        start(".", DNS_NS, DNS_RA);
        for (unsigned i = 0; i < 13; i++) {
                char name[] = "A.root-servers.net";
                uint8_t wire[255];
                name[0] = (char)('a' + i);
                put_rr(&message, WIRE_ANSWER, ".", DNS_NS, 300, wire, name_wire(name, wire));
        }
        take(&taken, &message);
        struct client client = {.name = ".", .type = DNS_NS, .rd = true};
        render(&client, 0, 512);
        assert_int_equal(response.count, 13);
        for (unsigned i = 0; i < 13; i++) {
                assert_int_equal(reply.bytes[rrs[i].owner], 0);
                assert_int_equal(rrs[i].rdlen, i == 0 ? 20 : 4);
        }
        start(".", DNS_TXT, DNS_RA);
        put_rr(&message, WIRE_ANSWER, ".", DNS_TXT, 300, "\1x", 2);
        take(&taken, &message);
        client.type = DNS_TXT;
        render(&client, 0, 512);
        assert_int_equal(reply.bytes[rrs[0].owner], 0);
}

/* A TLD that is in the dictionary is pointed at as any other suffix. */
static void endings_are_compressed(void **state)
{
        (void)state;
        start("www.google.com", DNS_NS, DNS_RA);
        uint8_t wire[255];
        put_rr(&message, WIRE_ANSWER, NULL, DNS_NS, 300, wire, name_wire("ns1.other.com", wire));
        put_rr(&message, WIRE_ANSWER, NULL, DNS_NS, 300, wire, name_wire("ns9.google.com", wire));
        put_rr(&message, WIRE_ANSWER, NULL, DNS_NS, 300, wire, name_wire("ns9.server.net", wire));
        put_rr(&message, WIRE_ANSWER, NULL, DNS_NS, 300, wire, name_wire("ns9.another.net", wire));
        take(&taken, &message);
        static const uint16_t lens[2][4] = {{4 + 6 + 2, 4 + 2, 4 + 7 + 5, 4 + 8 + 2},
                                            {4 + 6 + 5, 4 + 7 + 2, 4 + 7 + 5, 4 + 8 + 2}};
        for (unsigned upper = 0; upper < 2; upper++) {
                struct client client = {
                    .name = upper ? "www.google.Com" : "WWW.google.com", .type = DNS_NS, .rd = true};
                render(&client, 0, 512);
                check_name_at(rrs[0].rdata, "ns1.other.com");
                check_name_at(rrs[1].rdata, "ns9.google.com");
                check_name_at(rrs[2].rdata, "ns9.server.net");
                check_name_at(rrs[3].rdata, "ns9.another.net");
                for (unsigned i = 0; i < 4; i++)
                        assert_int_equal(rrs[i].rdlen, lens[upper][i]);
        }
}

/* 300 seconds to live, and an SOA that lives longer. */
static void ageing_entry(bool ageless)
{
        start("a.example", DNS_A, DNS_RA);
        put_cname(&message, NULL, 500, "b.example");
        put_a(&message, WIRE_ANSWER, "b.example", 300, 1);
        assert_int_equal(assess(&taken, message.bytes, message.len), 0);
        assert_int_equal(taken.life, 300);
        taken.params.ageless = ageless;
        encode_assessed(&taken, false);
}

static void b28_b36_ttls_age_or_do_not(void **state)
{
        (void)state;
        struct client client = {.name = "a.example", .type = DNS_A, .rd = true};
        ageing_entry(false);
        for (uint32_t age = 0; age < 300; age++) {
                render(&client, age, 512);
                assert_int_equal(rrs[0].ttl, 500 - age);
                assert_int_equal(rrs[1].ttl, 300 - age);
        }
        ageing_entry(true);
        for (uint32_t age = 0; age < 300; age += 50) {
                render(&client, age, 512);
                assert_int_equal(rrs[0].ttl, 500);
                assert_int_equal(rrs[1].ttl, 300);
        }
        start("a.example", DNS_A, DNS_RA);
        put_a(&message, WIRE_ANSWER, NULL, 1, 1);
        take(&taken, &message);
        render(&client, 0, 512);
        assert_int_equal(rrs[0].ttl, 1);
}

static void stale_ttls_are_short_and_never_above_the_original(void **state)
{
        (void)state;
        struct client client = {.name = "a.example", .type = DNS_A, .rd = true};
        for (unsigned ageless = 0; ageless < 2; ageless++) {
                ageing_entry(ageless);
                render(&client, 300, 512);
                assert_int_equal(rrs[0].ttl, 30);
                assert_int_equal(rrs[1].ttl, 30);
                render(&client, 100000, 512);
                assert_int_equal(rrs[1].ttl, 30);
        }
        start("a.example", DNS_A, DNS_RA);
        put_a(&message, WIRE_ANSWER, NULL, 7, 1);
        take(&taken, &message);
        render(&client, 7, 512);
        assert_int_equal(rrs[0].ttl, 7);
}

static void b34_b54_b55_the_opt_is_ours(void **state)
{
        (void)state;
        /* NSID, a cookie, padding; version and flags of its own. */
        static const char options[] = "\0\3\0\4nsid\0\12\0\10cookie!!\0\14\0\4\0\0\0\0";
        for (unsigned rcode = 0; rcode <= DNS_NXDOMAIN; rcode++) {
                start("a.example", DNS_A, (uint16_t)(DNS_RA | rcode));
                if (rcode == DNS_NOERROR)
                        put_a(&message, WIRE_ANSWER, NULL, 300, 1);
                else if (rcode == DNS_NXDOMAIN)
                        put_soa(&message, "example", 300, 300);
                else if (rcode != DNS_SERVFAIL)
                        continue;
                put_opt(&message, 4096, 0x8000, options, sizeof options - 1);
                take(&taken, &message);
                for (unsigned dnssec_ok = 0; dnssec_ok < 2; dnssec_ok++) {
                        struct client client = {.name = "a.example",
                                                .type = DNS_A,
                                                .rd = true,
                                                .size = 4096,
                                                .dnssec_ok = dnssec_ok};
                        struct render_result result = render(&client, 100 * (rcode != DNS_SERVFAIL), 4096);
                        assert_int_equal(result.rcode, rcode);
                        assert_int_equal(response.rcode, rcode);
                        assert_int_equal(response.dnssec_ok, dnssec_ok);
                        /* The very bytes: our size, version 0, no option. */
                        uint8_t opt[DNS_OPT_FIXED] = {0, 0, 41, 4, 0xd0, 0, 0, dnssec_ok ? 0x80 : 0, 0, 0, 0};
                        assert_memory_equal(reply.bytes + reply.len - sizeof opt, opt, sizeof opt);
                }
                struct client plain = {.name = "a.example", .type = DNS_A, .rd = true};
                size_t with = reply.len;
                render(&plain, 0, 512);
                assert_int_equal(reply.len, with - DNS_OPT_FIXED);
        }
}

static void signed_answer(void)
{
        start("a.example", DNS_A, DNS_RA | DNS_AD);
        put_a(&message, WIRE_ANSWER, NULL, 300, 1);
        put_rrsig(&message, WIRE_ANSWER, NULL, 300, DNS_A, "example");
        put_rr(&message, WIRE_AUTHORITY, "example", DNS_NS, 300, "\2ns\7Example", 12);
        put_rrsig(&message, WIRE_AUTHORITY, "example", 300, DNS_NS, "example");
        put_a(&message, WIRE_ADDITIONAL, "ns.Example", 300, 2);
        put_rrsig(&message, WIRE_ADDITIONAL, "ns.Example", 300, DNS_A, "example");
        take(&taken, &message);
}

static void b46_signatures_only_for_those_who_ask(void **state)
{
        (void)state;
        struct client client = {.name = "a.example", .type = DNS_A, .rd = true, .ad = true, .size = 1232};
        signed_answer();
        render(&client, 0, 1232);
        assert_int_equal(response.count, 3);
        assert_int_equal(count_type(DNS_RRSIG), 0);
        assert_int_not_equal(response.flags3 & DNS_AD, 0);
        check_name_at(rrs[1].owner, "example");
        check_name_at(rrs[1].rdata, "ns.Example");
        check_name_at(rrs[2].owner, "ns.Example");
        client.dnssec_ok = true;
        render(&client, 0, 1232);
        assert_int_equal(response.count, 6);
        assert_int_equal(count_type(DNS_RRSIG), 3);
}

static void b46_b78_denials_keep_their_soa(void **state)
{
        (void)state;
        start("nx.example", DNS_A, DNS_RA | DNS_NXDOMAIN);
        put_soa(&message, "example", 300, 300);
        put_rrsig(&message, WIRE_AUTHORITY, "example", 300, DNS_SOA, "example");
        for (unsigned i = 0; i < 3; i++) {
                static const char *const owners[] = {"n0.example", "n1.example", "n2.example"};
                put_rr(&message, WIRE_AUTHORITY, owners[i], DNS_NSEC3, 300, "\1\0\0\5\2ab\4wxyz\0\1\2", 15);
                put_rrsig(&message, WIRE_AUTHORITY, owners[i], 300, DNS_NSEC3, "example");
        }
        put_rr(&message, WIRE_AUTHORITY, "example", DNS_NSEC, 300, "\1z\7example\0\0\1\2", 14);
        put_rr(&message, WIRE_AUTHORITY, "sub.example", DNS_DS, 300, "\0\1\10\2hash", 8);
        take(&taken, &message);
        struct client client = {.name = "NX.example", .type = DNS_A, .rd = true, .size = 1232};
        render(&client, 100, 1232);
        assert_int_equal(response.rcode, DNS_NXDOMAIN);
        assert_int_equal(response.count, 1);
        assert_int_equal(rrs[0].type, DNS_SOA);
        assert_int_equal(rrs[0].ttl, 200);
        assert_int_equal(rrs[0].section, WIRE_AUTHORITY);
        client.dnssec_ok = true;
        render(&client, 100, 1232);
        assert_int_equal(response.count, 10);
}

static void b46_what_is_asked_for_is_shown(void **state)
{
        (void)state;
        static const uint16_t types[] = {DNS_RRSIG, DNS_NSEC, DNS_NSEC3PARAM, DNS_DNSKEY, DNS_DS, DNS_ANY};
        for (unsigned i = 0; i < sizeof types / sizeof types[0]; i++) {
                start("a.example", types[i], DNS_RA);
                if (types[i] == DNS_RRSIG)
                        put_rrsig(&message, WIRE_ANSWER, NULL, 300, DNS_A, "example");
                else if (types[i] == DNS_NSEC)
                        put_rr(&message, WIRE_ANSWER, NULL, DNS_NSEC, 300, "\1z\7example\0\0\1\2", 14);
                else if (types[i] == DNS_NSEC3PARAM)
                        put_rr(&message, WIRE_ANSWER, NULL, DNS_NSEC3PARAM, 300, "\1\0\0\5\2ab", 7);
                else if (types[i] == DNS_DNSKEY)
                        put_rr(&message, WIRE_ANSWER, NULL, DNS_DNSKEY, 300, "\1\1\3\15key", 7);
                else
                        put_rr(&message, WIRE_ANSWER, NULL, DNS_DS, 300, "\0\1\10\2hash", 8);
                put_rrsig(&message, WIRE_ANSWER, NULL, 300, types[i], "example");
                take(&taken, &message);
                struct client client = {.name = "a.example", .type = types[i], .rd = true};
                render(&client, 0, 512);
                bool signatures = types[i] == DNS_RRSIG || types[i] == DNS_ANY;
                assert_int_equal(response.count, signatures ? 2 : 1);
        }
}

/* A reference into a record that this client does not get. */
static void names_survive_the_records_they_were_written_in(void **state)
{
        (void)state;
        start("a.example", DNS_A, DNS_RA);
        put_a(&message, WIRE_ANSWER, NULL, 300, 1);
        put_rrsig(&message, WIRE_ANSWER, NULL, 300, DNS_A, "sIgner.zone.example");
        put_rr(&message, WIRE_AUTHORITY, "sIgner.zone.example", DNS_NS, 300, "\2ns\6sIgner\4zone\7example",
               24);
        put_rr(&message, WIRE_AUTHORITY, "sIgner.zone.example", DNS_NS, 300, "\2nt\6sIgner\4zone\7example",
               24);
        take(&taken, &message);
        for (unsigned dnssec_ok = 0; dnssec_ok < 2; dnssec_ok++) {
                struct client client = {
                    .name = "A.example", .type = DNS_A, .rd = true, .size = 1232, .dnssec_ok = dnssec_ok};
                render(&client, 0, 1232);
                uint32_t first = 1 + dnssec_ok;
                assert_int_equal(response.count, first + 2);
                check_name_at(rrs[first].owner, "sIgner.zone.example");
                check_name_at(rrs[first].rdata, "ns.sIgner.zone.example");
                check_name_at(rrs[first + 1].owner, "sIgner.zone.example");
                check_name_at(rrs[first + 1].rdata, "nt.sIgner.zone.example");
                assert_int_equal(rrs[first].rdlen, 3 + 2);
                assert_int_equal(rrs[first + 1].rdlen, 3 + 2);
        }
}

static void put_text(const char *owner, unsigned len)
{
        uint8_t text[256];
        memset(text, 'x', sizeof text);
        text[0] = (uint8_t)(len - 1);
        put_rr(&message, WIRE_ANSWER, owner, DNS_TXT, 300, text, len);
}

static void b49_what_does_not_fit_is_truncated(void **state)
{
        (void)state;
        static const uint16_t sizes[] = {0, 512, 1232, 4096};
        for (unsigned general = 0; general < 2; general++) {
                start("a.example", DNS_TXT, DNS_RA);
                if (general)
                        put_cname(&message, NULL, 300, "b.example");
                for (unsigned i = 0; i < 28; i++)
                        put_text(general ? "b.example" : NULL, 180);
                take(&taken, &message);
                for (unsigned i = 0; i < 4; i++) {
                        struct client client = {
                            .name = "a.example", .type = DNS_TXT, .rd = true, .size = sizes[i]};
                        struct render_result result = render(&client, 0, sizes[i] ? sizes[i] : 512);
                        assert_true(result.truncated);
                        assert_int_equal(response.count, 0);
                        assert_int_equal(reply.len, 12 + 15 + (sizes[i] ? DNS_OPT_FIXED : 0));
                }
                struct client client = {.name = "a.example", .type = DNS_TXT, .rd = true, .size = 4096};
                render(&client, 0, DNS_MAX_MESSAGE);
                size_t full = reply.len;
                assert_int_equal(response.count, 28 + general);
                assert_false(render(&client, 0, (uint16_t)full).truncated);
                assert_int_equal(response.count, 28 + general);
                assert_true(render(&client, 0, (uint16_t)(full - 1)).truncated);
                assert_int_equal(response.count, 0);
        }
}

/* Three names with an address each, as the additional data of `section`'s NS records. */
static void name_servers(enum wire_section section, unsigned servers)
{
        if (section == WIRE_ANSWER)
                start("zone.example", DNS_NS, DNS_RA);
        else
                start("a.zone.example", DNS_A, 0);
        char name[64];
        uint8_t wire[255];
        for (unsigned i = 0; i < servers; i++) {
                snprintf(name, sizeof name, "name-server-%u.zone.example", i);
                put_rr(&message, section, "zone.example", DNS_NS, 300, wire, name_wire(name, wire));
        }
        for (unsigned i = 0; i < servers; i++) {
                snprintf(name, sizeof name, "name-server-%u.zone.example", i);
                put_a(&message, WIRE_ADDITIONAL, name, 300, i);
        }
}

static void b49_additional_data_goes_without_tc(void **state)
{
        (void)state;
        struct client client = {.name = "zone.example", .type = DNS_NS, .rd = true};
        name_servers(WIRE_ANSWER, 12);
        take(&taken, &message);
        struct render_result result = render(&client, 0, 512);
        assert_false(result.truncated);
        assert_int_equal(count_type(DNS_NS), 12);
        assert_in_range(count_type(DNS_A), 1, 11);
        /* No address more would have fit. */
        assert_true(reply.len + 16 > 512);
        render(&client, 0, 1232);
        assert_int_equal(count_type(DNS_A), 12);
}

static void b49_glue_is_not_left_out_without_tc(void **state)
{
        (void)state;
        struct client client = {.name = "a.zone.example", .type = DNS_A, .rd = true};
        name_servers(WIRE_AUTHORITY, 12);
        take(&taken, &message);
        struct render_result result = render(&client, 0, 512);
        assert_true(result.truncated);
        assert_int_equal(count_type(DNS_NS), 12);
        assert_false(render(&client, 0, 1232).truncated);
        /* Other additional data of a referral may go. */
        name_servers(WIRE_AUTHORITY, 4);
        uint8_t text[256] = {255};
        put_rr(&message, WIRE_ADDITIONAL, "text.example", DNS_TXT, 300, text, 256);
        put_rr(&message, WIRE_ADDITIONAL, "text.example", DNS_TXT, 300, text, 256);
        take(&taken, &message);
        assert_false(render(&client, 0, 512).truncated);
        assert_int_equal(count_type(DNS_A), 4);
        assert_int_equal(count_type(DNS_TXT), 0);
}

/* An RRset that is not in a row: what fits of it must not go alone. */
static void b49_no_rrset_goes_in_part(void **state)
{
        (void)state;
        struct client client = {.name = "zone.example", .type = DNS_NS, .rd = true};
        name_servers(WIRE_ANSWER, 8);
        for (unsigned i = 0; i < 20; i++)
                put_a(&message, WIRE_ADDITIONAL, "Name-server-3.zone.example", 300, 100 + i);
        take(&taken, &message);
        assert_false(render(&client, 0, 512).truncated);
        assert_int_equal(count_type(DNS_NS), 8);
        assert_int_equal(count_type(DNS_A), 0);
        render(&client, 0, 1232);
        assert_int_equal(count_type(DNS_A), 28);
}

/* Types with a length of their own, with strings, and an RRset of the question's own name in the additional
 * section: skipped over when it is cut. */
static void b49_every_shape_can_be_left_out(void **state)
{
        (void)state;
        static const uint8_t naptr[] = "\0\1\0\2\1s\7SIP+D2U\0\4_sip\4_udp\7example";
        uint8_t text[256] = {255};
        start("a.example", 108, DNS_RA); /* EUI48 */
        put_rr(&message, WIRE_ANSWER, NULL, 108, 300, "\0\1\2\3\4\5", 6);
        put_rr(&message, WIRE_ANSWER, NULL, 108, 300, "\6\7\10\11\12\13", 6);
        take(&taken, &message);
        struct client client = {.name = "a.example", .type = 108, .rd = true};
        render(&client, 0, 512);
        assert_int_equal(response.count, 2);
        assert_memory_equal(reply.bytes + rrs[0].rdata, "\0\1\2\3\4\5", 6);
        assert_memory_equal(reply.bytes + rrs[1].rdata, "\6\7\10\11\12\13", 6);

        put_a(&message, WIRE_ADDITIONAL, NULL, 300, 7);
        put_rr(&message, WIRE_ADDITIONAL, NULL, 35, 300, naptr, sizeof naptr);
        put_rr(&message, WIRE_ADDITIONAL, "text.example", DNS_TXT, 300, text, 256);
        put_rr(&message, WIRE_ADDITIONAL, "text.example", DNS_TXT, 300, text, 256);
        put_rr(&message, WIRE_ADDITIONAL, NULL, 35, 300, naptr, sizeof naptr);
        put_a(&message, WIRE_ADDITIONAL, "b.example", 300, 8);
        take(&taken, &message);
        /* The second half of the NAPTR RRset would not fit: no additional data at all. */
        assert_false(render(&client, 0, 512).truncated);
        assert_int_equal(response.count, 2);
        render(&client, 0, 1232);
        assert_int_equal(response.count, 8);
        for (unsigned i = 3; i < 7; i += 3) {
                assert_int_equal(rrs[i].rdlen, sizeof naptr);
                assert_memory_equal(reply.bytes + rrs[i].rdata, naptr, sizeof naptr);
        }
}

/* Further than compression pointers and our own references reach. */
static void a_large_answer_comes_back(void **state)
{
        (void)state;
        char name[64];
        start("example.org", DNS_MX, DNS_RA);
        unsigned n = 0;
        for (; message.len < DNS_MAX_MESSAGE - 64; n++) {
                put_pointer(&message, DNS_HEADER);
                size_t mark = rr_begin(&message, WIRE_ANSWER, DNS_MX, 300);
                put_u16(&message, n);
                snprintf(name, sizeof name, "Host-%u.sub-%u", n, n % 700);
                uint8_t wire[255];
                put_bytes(&message, wire, name_wire(name, wire) - 1);
                put_pointer(&message, DNS_HEADER);
                rr_end(&message, mark);
        }
        take(&taken, &message);
        for (unsigned upper = 0; upper < 2; upper++) {
                struct client client = {
                    .name = upper ? "EXAMPLE.org" : "example.org", .type = DNS_MX, .rd = true};
                assert_false(render(&client, 0, DNS_MAX_MESSAGE).truncated);
                assert_in_range(reply.len, 0x8000, message.len);
                assert_int_equal(response.count, n);
                for (unsigned i = 0; i < n; i++) {
                        snprintf(name, sizeof name, "Host-%u.sub-%u.%s", i, i % 700, client.name);
                        assert_int_equal(get_be16(reply.bytes + rrs[i].rdata), i);
                        check_name_at(rrs[i].rdata + 2u, name);
                }
        }
}

static void b48_b57_extended_errors(void **state)
{
        (void)state;
        char option[] = "\0\17\0\26\0\6this is bogus indeed\0\17\0\2\0\26";
        start("a.example", DNS_A, DNS_RA | DNS_SERVFAIL);
        put_opt(&message, 1232, 0, option, sizeof option - 1);
        take(&taken, &message);
        struct client client = {.name = "a.example", .type = DNS_A, .rd = true, .size = 1232};
        render(&client, 0, 1232);
        assert_int_equal(response.ede_count, 2);
        assert_int_equal(response.ede[0].code, 6);
        assert_int_equal(response.ede[0].text_len, 20);
        assert_memory_equal(response.ede[0].text, "this is bogus indeed", 20);
        assert_int_equal(response.ede[1].code, 22);
        assert_int_equal(response.ede[1].text_len, 0);
        /* None without EDNS. */
        client.size = 0;
        render(&client, 0, 512);
        assert_int_equal(response.ede_count, 0);
}

static bool render_with(const struct client *client, struct render_params *params,
                        struct render_result *result)
{
        struct wire_query query;
        static struct message query_message;
        make_query(&query_message, client, &query);
        params->query = &query;
        bool good = entry_render(taken.entry, params, reply.bytes, sizeof reply.bytes, result);
        reply.len = result->len;
        parse_reply(&reply, &response, rrs);
        return good;
}

static void b57_an_error_can_be_added(void **state)
{
        (void)state;
        start("a.example", DNS_A, DNS_RA);
        put_a(&message, WIRE_ANSWER, NULL, 300, 1);
        take(&taken, &message);
        struct client client = {.name = "a.example", .type = DNS_A, .rd = true, .size = 1232};
        struct render_params params = {
            .now = TEST_NOW + 400, .stale_ttl = 30, .limit = 1232, .udp_payload_size = 1232, .add_ede = 3};
        struct render_result result;
        assert_true(render_with(&client, &params, &result));
        assert_int_equal(response.ede_count, 1);
        assert_int_equal(response.ede[0].code, 3);
        assert_int_equal(rrs[0].ttl, 30);
        client.size = 0;
        assert_true(render_with(&client, &params, &result));
        assert_false(response.edns);
}

/* First the texts go, then the codes, and only then records. */
static void b57_errors_go_before_records(void **state)
{
        (void)state;
        uint8_t option[4 + 2 + 300] = {0, EDNS_EDE, 302 >> 8, 302 & 0xff, 0, 6};
        memset(option + 6, 't', 300);
        start("a.example", DNS_TXT, DNS_RA);
        put_text(NULL, 200);
        put_text(NULL, 256);
        put_opt(&message, 1232, 0, option, sizeof option);
        take(&taken, &message);
        struct client client = {.name = "a.example", .type = DNS_TXT, .rd = true, .size = 512};
        struct render_result result;
        struct render_params params = {.now = TEST_NOW, .udp_payload_size = 1232, .add_ede = -1};
        size_t bare = 12 + 15 + 12 + 200 + 12 + 256 + DNS_OPT_FIXED;
        bool seen[3] = {false};
        for (params.limit = 512; params.limit < 900; params.limit++) {
                assert_true(render_with(&client, &params, &result));
                assert_in_range(reply.len, 0, params.limit);
                bool fits = bare <= params.limit;
                assert_int_equal(result.truncated, !fits);
                assert_int_equal(response.count, fits ? 2 : 0);
                size_t used = fits ? bare : 12 + 15 + DNS_OPT_FIXED;
                unsigned level = used + 306 <= params.limit ? 2 : used + 6 <= params.limit ? 1 : 0;
                seen[level] = true;
                assert_int_equal(response.ede_count, level > 0);
                assert_int_equal(reply.len, used + (level == 2 ? 306 : level == 1 ? 6 : 0));
        }
        assert_true(seen[0] && seen[1] && seen[2]);
}

static void the_client_subnet_is_echoed(void **state)
{
        (void)state;
        start("a.example", DNS_A, DNS_RA);
        put_a(&message, WIRE_ANSWER, NULL, 300, 1);
        take(&taken, &message);
        struct client client = {.name = "a.example", .type = DNS_A, .rd = true, .size = 1232};
        struct wire_ecs ecs = {.family = ECS_IPV4, .source = 24, .scope = 20, .addr = {192, 0, 2}};
        struct render_params params = {
            .now = TEST_NOW, .limit = 1232, .udp_payload_size = 1232, .add_ede = 19, .ecs = &ecs};
        struct render_result result;
        assert_true(render_with(&client, &params, &result));
        assert_int_equal(response.ecs.family, ECS_IPV4);
        assert_int_equal(response.ecs.source, 24);
        assert_int_equal(response.ecs.scope, 20);
        assert_memory_equal(response.ecs.addr, ecs.addr, 16);
        assert_int_equal(response.ede_count, 1);
}

static void a_bare_tc_entry_says_only_that(void **state)
{
        (void)state;
        start("a.example", DNS_A, DNS_RA);
        put_a(&message, WIRE_ANSWER, NULL, 300, 1);
        assert_int_equal(assess(&taken, message.bytes, message.len), 0);
        taken.params.truncated = true;
        encode_assessed(&taken, false);
        struct client client = {.name = "a.example", .type = DNS_A, .rd = true, .size = 1232};
        assert_true(render(&client, 0, 1232).truncated);
        assert_int_equal(response.count, 0);
}

static void b65_sections_and_order_stay(void **state)
{
        (void)state;
        start("a.example", DNS_AAAA, DNS_RA);
        put_cname(&message, NULL, 300, "b.other.example");
        put_cname(&message, "b.other.example", 600, "c.third.example");
        put_soa(&message, "third.example", 300, 300);
        take(&taken, &message);
        assert_int_equal(taken.kind, LIFETIME_NEGATIVE);
        struct client client = {.name = "a.example", .type = DNS_AAAA, .rd = true};
        render(&client, 10, 512);
        assert_int_equal(response.count, 3);
        check_name_at(rrs[0].owner, "a.example");
        check_name_at(rrs[0].rdata, "b.other.example");
        check_name_at(rrs[1].owner, "b.other.example");
        check_name_at(rrs[1].rdata, "c.third.example");
        assert_int_equal(rrs[1].section, WIRE_ANSWER);
        check_name_at(rrs[2].owner, "third.example");
        assert_int_equal(rrs[2].section, WIRE_AUTHORITY);
        assert_int_equal(rrs[2].type, DNS_SOA);
        assert_int_equal(rrs[1].ttl, 590);
}

static void b81_the_order_is_stable(void **state)
{
        (void)state;
        start("a.example", DNS_A, DNS_RA);
        put_cname(&message, NULL, 300, "b.example");
        for (unsigned i = 0; i < 8; i++)
                put_a(&message, WIRE_ANSWER, "b.example", 300, i * 77 % 8);
        take(&taken, &message);
        struct client client = {.name = "a.example", .type = DNS_A, .rd = true};
        render_for(&taken, &client, 5, 512, &second);
        for (unsigned i = 0; i < 8; i++) {
                render(&client, 5, 512);
                assert_int_equal(reply.len, second.len);
                assert_memory_equal(reply.bytes, second.bytes, reply.len);
                for (unsigned j = 0; j < 8; j++)
                        assert_int_equal(reply.bytes[rrs[1 + j].rdata + 3], j * 77 % 8);
        }
}

/* Every answer, in every room: never a byte beyond it, and the room that is asked for suffices. */
static void too_little_room_is_told(void **state)
{
        (void)state;
        for (unsigned general = 0; general < 2; general++) {
                if (general) {
                        signed_answer();
                } else {
                        start("a.example", DNS_A, DNS_RA);
                        for (unsigned i = 0; i < 5; i++)
                                put_a(&message, WIRE_ANSWER, NULL, 300, i);
                        take(&taken, &message);
                }
                struct client client = {
                    .name = "a.example", .type = DNS_A, .rd = true, .size = 1232, .dnssec_ok = true};
                struct wire_query query;
                static struct message query_message;
                make_query(&query_message, &client, &query);
                struct render_params params = {
                    .query = &query, .now = TEST_NOW, .limit = 1232, .udp_payload_size = 1232, .add_ede = 3};
                struct render_result result;
                assert_true(entry_render(taken.entry, &params, second.bytes, sizeof second.bytes, &result));
                size_t needed = result.len;
                for (size_t cap = 0; cap < needed; cap++) {
                        memset(reply.bytes, 0xee, needed);
                        assert_false(entry_render(taken.entry, &params, reply.bytes, cap, &result));
                        assert_int_equal(result.len, needed);
                        for (size_t i = cap; i < needed; i++)
                                assert_int_equal(reply.bytes[i], 0xee);
                }
                assert_true(entry_render(taken.entry, &params, reply.bytes, needed, &result));
                assert_memory_equal(reply.bytes, second.bytes, needed);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(b04_rd_and_cd_are_this_clients),
            cmocka_unit_test(b07_ad_is_shown_to_those_who_understand_it),
            cmocka_unit_test(b08_aa_and_ra_are_as_the_upstream_said),
            cmocka_unit_test(b26_the_question_has_this_clients_case),
            cmocka_unit_test(b26_names_follow_the_question_or_keep_their_case),
            cmocka_unit_test(names_are_compressed_only_where_that_is_allowed),
            cmocka_unit_test(the_root_is_never_pointed_at),
            cmocka_unit_test(endings_are_compressed),
            cmocka_unit_test(b28_b36_ttls_age_or_do_not),
            cmocka_unit_test(stale_ttls_are_short_and_never_above_the_original),
            cmocka_unit_test(b34_b54_b55_the_opt_is_ours),
            cmocka_unit_test(b46_signatures_only_for_those_who_ask),
            cmocka_unit_test(b46_b78_denials_keep_their_soa),
            cmocka_unit_test(b46_what_is_asked_for_is_shown),
            cmocka_unit_test(names_survive_the_records_they_were_written_in),
            cmocka_unit_test(b49_what_does_not_fit_is_truncated),
            cmocka_unit_test(b49_additional_data_goes_without_tc),
            cmocka_unit_test(b49_glue_is_not_left_out_without_tc),
            cmocka_unit_test(b49_no_rrset_goes_in_part),
            cmocka_unit_test(b49_every_shape_can_be_left_out),
            cmocka_unit_test(a_large_answer_comes_back),
            cmocka_unit_test(b48_b57_extended_errors),
            cmocka_unit_test(b57_an_error_can_be_added),
            cmocka_unit_test(b57_errors_go_before_records),
            cmocka_unit_test(the_client_subnet_is_echoed),
            cmocka_unit_test(a_bare_tc_entry_says_only_that),
            cmocka_unit_test(b65_sections_and_order_stay),
            cmocka_unit_test(b81_the_order_is_stable),
            cmocka_unit_test(too_little_room_is_told),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
