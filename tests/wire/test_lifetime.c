/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "lifetime.h"
#include "sardine.h"
#include "wire/packet.h"

enum {
        NOERROR = 0x8180,
        SERVFAIL = 0x8182,
        NXDOMAIN = 0x8183,
        REFUSED = 0x8185,
        AUTHORITATIVE = 0x8400, /* AA, no RA */
};

static struct wire_rr rrs[WIRE_RRS_MAX];
static struct wire_response response;
static uint32_t life;
static enum lifetime_kind kind;
static struct lifetime_limits limits;

static int defaults(void **state)
{
        (void)state;
        limits = (struct lifetime_limits){
            .max_ttl = 86400, .min_ttl = 0, .max_negative_ttl = 3600, .failure_ttl = 60};
        return 0;
}

static unsigned assess(const struct packet *packet)
{
        life = 0;
        assert_int_equal(wire_response_parse(exactly(packet->bytes, packet->len), packet->len, rrs,
                                             WIRE_RRS_MAX, &response),
                         0);
        return lifetime_assess(&response, &limits, &life, &kind);
}

static void assert_lives(const struct packet *packet, uint32_t seconds, enum lifetime_kind as)
{
        assert_int_equal(assess(packet), 0);
        assert_int_equal(life, seconds);
        assert_int_equal(kind, as);
        for (uint32_t i = 0; i < response.count; i++)
                assert_true(response.rrs[i].ttl >= life);
}

static void assert_refused(const struct packet *packet, unsigned reason)
{
        assert_int_equal(assess(packet), reason);
}

static void answer(struct packet *packet, unsigned flags, const char *name, unsigned type)
{
        start(packet, flags);
        add_question(packet, name, type);
}

static void b44_least_ttl_of_the_message(void **state)
{
        (void)state;
        struct packet packet;
        answer(&packet, NOERROR, "www.example", DNS_A);
        add_a(&packet, COUNT_ANSWER, "@", 300);
        assert_lives(&packet, 300, LIFETIME_POSITIVE);
        add_alias(&packet, COUNT_AUTHORITY, "example", DNS_NS, 200, "ns.example");
        assert_lives(&packet, 200, LIFETIME_POSITIVE);
        add_a(&packet, COUNT_ADDITIONAL, "ns.example", 100);
        assert_lives(&packet, 100, LIFETIME_POSITIVE);
        assert_int_equal(rrs[0].ttl, 300);
        assert_int_equal(rrs[1].ttl, 200);

        /* the whole chain */
        answer(&packet, NOERROR, "www.example", DNS_A);
        add_alias(&packet, COUNT_ANSWER, "@", DNS_CNAME, 5, "a.example");
        add_a(&packet, COUNT_ANSWER, "a.example", 300);
        assert_lives(&packet, 5, LIFETIME_POSITIVE);
}

static void b44_unequal_ttls_in_an_rrset(void **state)
{
        (void)state;
        struct packet packet;
        answer(&packet, NOERROR, "www.example", DNS_A);
        add_a(&packet, COUNT_ANSWER, "@", 300);
        add_a(&packet, COUNT_ANSWER, "www.example", 100);
        add_a(&packet, COUNT_ANSWER, "WWW.EXAMPLE", 200);
        add_rrsig(&packet, COUNT_ANSWER, "@", DNS_A, 150);
        add_a(&packet, COUNT_ADDITIONAL, "@", 3600);
        add_rr(&packet, COUNT_ADDITIONAL, "@", DNS_TXT, 4000, "", 1);
        add_rr(&packet, COUNT_ADDITIONAL, "b.example", DNS_TXT, 5000, "", 1);
        assert_lives(&packet, 100, LIFETIME_POSITIVE);
        const uint32_t want[] = {100, 100, 100, 100, 3600, 4000, 5000};
        for (unsigned i = 0; i < 7; i++)
                assert_int_equal(rrs[i].ttl, want[i]);

        /* a signature lower than what it covers, and one of another RRset */
        answer(&packet, NOERROR, "www.example", DNS_A);
        add_a(&packet, COUNT_ANSWER, "@", 300);
        add_rrsig(&packet, COUNT_ANSWER, "@", DNS_A, 200);
        add_rrsig(&packet, COUNT_ANSWER, "@", DNS_NSEC, 400);
        assert_lives(&packet, 200, LIFETIME_POSITIVE);
        assert_int_equal(rrs[0].ttl, 200);
        assert_int_equal(rrs[1].ttl, 200);
        assert_int_equal(rrs[2].ttl, 400);

        /* pointers to the question and nothing else; signatures of two RRsets are not one, though asked for
         */
        answer(&packet, NOERROR, "www.example", DNS_A);
        add_a(&packet, COUNT_ANSWER, "@", 300);
        add_a(&packet, COUNT_ANSWER, "@", 200);
        assert_lives(&packet, 200, LIFETIME_POSITIVE);
        assert_int_equal(rrs[0].ttl, 200);
        answer(&packet, NOERROR, "www.example", DNS_RRSIG);
        add_rrsig(&packet, COUNT_ANSWER, "@", DNS_A, 200);
        add_rrsig(&packet, COUNT_ANSWER, "@", DNS_NSEC, 400);
        assert_lives(&packet, 200, LIFETIME_POSITIVE);
        assert_int_equal(rrs[0].ttl, 200);
        assert_int_equal(rrs[1].ttl, 400);
}

static void b44_top_bit_of_a_ttl(void **state)
{
        (void)state;
        struct packet packet;
        answer(&packet, NOERROR, "www.example", DNS_A);
        add_a(&packet, COUNT_ANSWER, "@", 0x80000001);
        assert_lives(&packet, 86400, LIFETIME_POSITIVE);
        assert_int_equal(rrs[0].ttl, 0x7fffffff);
        limits.max_ttl = UINT32_MAX;
        assert_lives(&packet, 0x7fffffff, LIFETIME_POSITIVE);
}

static void b28_ttl_zero(void **state)
{
        (void)state;
        struct packet packet;
        for (unsigned section = COUNT_ANSWER; section <= COUNT_ADDITIONAL; section += 2) {
                answer(&packet, NOERROR, "www.example", DNS_A);
                add_a(&packet, COUNT_ANSWER, "@", 300);
                add_a(&packet, section, "a.example", 0);
                assert_refused(&packet, SARDINE_REFUSED_TTL_ZERO);
        }
        answer(&packet, NOERROR, "www.example", DNS_A);
        add_a(&packet, COUNT_ANSWER, "@", 1);
        assert_lives(&packet, 1, LIFETIME_POSITIVE);
        answer(&packet, SERVFAIL, "www.example", DNS_A);
        add_a(&packet, COUNT_ANSWER, "@", 0);
        assert_refused(&packet, SARDINE_REFUSED_TTL_ZERO);
        answer(&packet, NXDOMAIN, "www.example", DNS_A);
        add_soa(&packet, COUNT_AUTHORITY, "example", 60, 0);
        assert_refused(&packet, SARDINE_REFUSED_TTL_ZERO);
        answer(&packet, NXDOMAIN, "www.example", DNS_A);
        add_soa(&packet, COUNT_AUTHORITY, "example", 0, 60);
        assert_refused(&packet, SARDINE_REFUSED_TTL_ZERO);
}

static void b34_opt_has_no_ttl(void **state)
{
        (void)state;
        struct packet packet;
        const uint32_t fields[] = {0, 0x8000};
        for (unsigned i = 0; i < 2; i++) {
                answer(&packet, NOERROR, "www.example", DNS_A);
                add_a(&packet, COUNT_ANSWER, "@", 300);
                add_opt(&packet, 1232, fields[i]);
                assert_lives(&packet, 300, LIFETIME_POSITIVE);
        }
}

static void max_and_min_ttl(void **state)
{
        (void)state;
        struct packet packet;
        answer(&packet, NOERROR, "www.example", DNS_A);
        add_a(&packet, COUNT_ANSWER, "@", 300);
        limits.max_ttl = 10;
        assert_lives(&packet, 10, LIFETIME_POSITIVE);
        assert_int_equal(rrs[0].ttl, 300);
        limits.min_ttl = 10;
        assert_lives(&packet, 10, LIFETIME_POSITIVE);
        limits.min_ttl = 11;
        assert_refused(&packet, SARDINE_REFUSED_TTL_SHORT);
        limits.min_ttl = 0;
        limits.max_ttl = 0;
        assert_refused(&packet, SARDINE_REFUSED_TTL_SHORT);
}

static void b31_negative_life_is_ttl_or_minimum(void **state)
{
        (void)state;
        struct packet packet;
        const unsigned flags[] = {NXDOMAIN, NOERROR};
        for (unsigned i = 0; i < 2; i++) {
                answer(&packet, flags[i], "www.example", DNS_A);
                add_soa(&packet, COUNT_AUTHORITY, "example", 3600, 60);
                add_rrsig(&packet, COUNT_AUTHORITY, "example", DNS_SOA, 3600);
                assert_lives(&packet, 60, LIFETIME_NEGATIVE);
                assert_int_equal(rrs[0].ttl, 60);
                assert_int_equal(rrs[1].ttl, 60);

                answer(&packet, flags[i], "www.example", DNS_A);
                add_soa(&packet, COUNT_AUTHORITY, "example", 30, 60);
                assert_lives(&packet, 30, LIFETIME_NEGATIVE);
                assert_int_equal(rrs[0].ttl, 30);

                answer(&packet, flags[i], "www.example", DNS_A);
                add_soa(&packet, COUNT_AUTHORITY, "example", 30, 0x80000000);
                assert_lives(&packet, 30, LIFETIME_NEGATIVE);
        }
        /* only an SOA in authority has a MINIMUM that counts */
        answer(&packet, NXDOMAIN, "www.example", DNS_A);
        add_soa(&packet, COUNT_AUTHORITY, "example", 3600, 60);
        add_rr(&packet, COUNT_AUTHORITY, "example", 65280, 3600, "\0\0\0\1", 4);
        add_soa(&packet, COUNT_ADDITIONAL, "example", 3600, 1);
        assert_lives(&packet, 60, LIFETIME_NEGATIVE);
        assert_int_equal(rrs[1].ttl, 3600);
        assert_int_equal(rrs[2].ttl, 3600);
        /* an SOA that is data shows its own TTL */
        answer(&packet, NOERROR, "example", DNS_SOA);
        add_soa(&packet, COUNT_ANSWER, "@", 3600, 60);
        assert_lives(&packet, 3600, LIFETIME_POSITIVE);
        /* so does one beside data */
        answer(&packet, NOERROR, "www.example", DNS_A);
        add_a(&packet, COUNT_ANSWER, "@", 7200);
        add_soa(&packet, COUNT_AUTHORITY, "example", 3600, 60);
        assert_lives(&packet, 3600, LIFETIME_POSITIVE);
}

static void b31_nodata_behind_aliases(void **state)
{
        (void)state;
        struct packet packet;
        answer(&packet, NOERROR, "www.example", DNS_AAAA);
        add_alias(&packet, COUNT_ANSWER, "@", DNS_CNAME, 20, "A.example");
        add_soa(&packet, COUNT_AUTHORITY, "example", 3600, 60);
        assert_lives(&packet, 20, LIFETIME_NEGATIVE);
        assert_int_equal(rrs[1].ttl, 60);

        /* data of the type, but not where the chain ends */
        add_rr(&packet, COUNT_ADDITIONAL, "a.example", DNS_AAAA, 60, "0123456789abcdef", 16);
        assert_lives(&packet, 20, LIFETIME_NEGATIVE);
        answer(&packet, NOERROR, "www.example", DNS_A);
        add_alias(&packet, COUNT_ANSWER, "@", DNS_CNAME, 20, "a.example");
        add_a(&packet, COUNT_ANSWER, "b.example", 60);
        add_soa(&packet, COUNT_AUTHORITY, "example", 3600, 60);
        assert_lives(&packet, 20, LIFETIME_NEGATIVE);
        /* and where it does */
        add_a(&packet, COUNT_ADDITIONAL, "x.example", 60);
        answer(&packet, NOERROR, "www.example", DNS_A);
        add_alias(&packet, COUNT_ANSWER, "@", DNS_CNAME, 20, "a.example");
        add_a(&packet, COUNT_ANSWER, "A.EXAMPLE", 60);
        add_soa(&packet, COUNT_AUTHORITY, "example", 3600, 60);
        assert_lives(&packet, 20, LIFETIME_POSITIVE);
        assert_int_equal(rrs[2].ttl, 3600);

        /* NXDOMAIN is about the end of the chain */
        answer(&packet, NXDOMAIN, "www.example", DNS_A);
        add_alias(&packet, COUNT_ANSWER, "@", DNS_CNAME, 20, "a.example");
        add_soa(&packet, COUNT_AUTHORITY, "example", 3600, 60);
        assert_lives(&packet, 20, LIFETIME_NEGATIVE);
}

static void chains_in_any_order(void **state)
{
        (void)state;
        struct packet packet;
        static const char *const names[] = {"q.example", "a.example", "b.example", "c.example"};
        /* all orders of three aliases and the data */
        for (unsigned order = 0; order < 256; order++) {
                unsigned seen = 0;
                answer(&packet, NOERROR, "q.example", DNS_A);
                for (unsigned i = 0; i < 4; i++) {
                        unsigned k = order >> 2 * i & 3;
                        seen |= 1u << k;
                        if (k == 3)
                                add_a(&packet, COUNT_ANSWER, names[3], 60);
                        else
                                add_alias(&packet, COUNT_ANSWER, names[k], DNS_CNAME, 60, names[k + 1]);
                }
                add_soa(&packet, COUNT_AUTHORITY, "example", 50, 60);
                /* without the data or with a gap before it, it is negative */
                assert_lives(&packet, 50, seen == 15 ? LIFETIME_POSITIVE : LIFETIME_NEGATIVE);
        }
        /* loops end */
        answer(&packet, NOERROR, "a.example", DNS_A);
        add_alias(&packet, COUNT_ANSWER, "@", DNS_CNAME, 60, "b.example");
        add_alias(&packet, COUNT_ANSWER, "b.example", DNS_CNAME, 60, "a.example");
        assert_refused(&packet, SARDINE_REFUSED_NO_SOA);
        answer(&packet, NOERROR, "a.example", DNS_A);
        add_alias(&packet, COUNT_ANSWER, "@", DNS_CNAME, 60, "a.example");
        assert_refused(&packet, SARDINE_REFUSED_NO_SOA);
        answer(&packet, NOERROR, "a.b.example", DNS_A);
        add_alias(&packet, COUNT_ANSWER, "b.example", DNS_DNAME, 60, "c.b.example");
        assert_refused(&packet, SARDINE_REFUSED_NO_SOA);
}

static void dname_chains(void **state)
{
        (void)state;
        struct packet packet;
        /* with the CNAME made from it, and without */
        for (unsigned with = 0; with < 2; with++) {
                answer(&packet, NOERROR, "x.y.Old.example", DNS_A);
                add_alias(&packet, COUNT_ANSWER, "oLd.example", DNS_DNAME, 60, "new.example");
                if (with)
                        add_alias(&packet, COUNT_ANSWER, "@", DNS_CNAME, 60, "x.y.new.example");
                add_a(&packet, COUNT_ANSWER, "x.y.new.example", 60);
                assert_lives(&packet, 60, LIFETIME_POSITIVE);
        }
        /* to and from the root */
        answer(&packet, NOERROR, "x.old", DNS_A);
        add_alias(&packet, COUNT_ANSWER, "old", DNS_DNAME, 60, "");
        add_alias(&packet, COUNT_ANSWER, "", DNS_DNAME, 60, "new");
        add_a(&packet, COUNT_ANSWER, "x.new", 60);
        assert_lives(&packet, 60, LIFETIME_POSITIVE);
        /* not of the name itself, nor of a name that only ends in the same letters */
        answer(&packet, NOERROR, "old.example", DNS_A);
        add_alias(&packet, COUNT_ANSWER, "@", DNS_DNAME, 60, "new.example");
        add_a(&packet, COUNT_ANSWER, "new.example", 60);
        assert_refused(&packet, SARDINE_REFUSED_NO_SOA);
        answer(&packet, NOERROR, "x.bold.example", DNS_A);
        add_alias(&packet, COUNT_ANSWER, "old.example", DNS_DNAME, 60, "new.example");
        add_a(&packet, COUNT_ANSWER, "x.bnew.example", 60);
        assert_refused(&packet, SARDINE_REFUSED_NO_SOA);
        answer(&packet, NOERROR, "x.bold.example", DNS_A);
        add_alias(&packet, COUNT_ANSWER, "cold.example", DNS_DNAME, 60, "new.example");
        add_a(&packet, COUNT_ANSWER, "x.new.example", 60);
        assert_refused(&packet, SARDINE_REFUSED_NO_SOA);
        /* then there is no alias either that an authoritative server could stop at */
        answer(&packet, AUTHORITATIVE, "x.bold.example", DNS_A);
        add_alias(&packet, COUNT_ANSWER, "cold.example", DNS_DNAME, 60, "new.example");
        assert_refused(&packet, SARDINE_REFUSED_NO_SOA);
        /* asked for, it is data */
        answer(&packet, NOERROR, "old.example", DNS_DNAME);
        add_alias(&packet, COUNT_ANSWER, "@", DNS_DNAME, 60, "new.example");
        assert_lives(&packet, 60, LIFETIME_POSITIVE);
        /* as long as a name may get, and one byte more: 2 + 64 + 64 + 62 + (62 or 63) + 1 */
        for (int last = 61; last <= 62; last++) {
                static const char a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
                char target[256], whole[260];
                snprintf(target, sizeof target, "%s.%s.%.61s.%.*s", a, a, a, last, a);
                snprintf(whole, sizeof whole, "x.%s", target);
                answer(&packet, NOERROR, "x.old", DNS_A);
                add_alias(&packet, COUNT_ANSWER, "old", DNS_DNAME, 60, target);
                if (last == 61)
                        add_a(&packet, COUNT_ANSWER, whole, 60);
                if (last == 61)
                        assert_lives(&packet, 60, LIFETIME_POSITIVE);
                else
                        assert_refused(&packet, SARDINE_REFUSED_NO_SOA);
        }
}

static void types_that_are_their_own_data(void **state)
{
        (void)state;
        struct packet packet;
        answer(&packet, NOERROR, "www.example", DNS_CNAME);
        add_alias(&packet, COUNT_ANSWER, "@", DNS_CNAME, 60, "a.example");
        assert_lives(&packet, 60, LIFETIME_POSITIVE);
        answer(&packet, NOERROR, "www.example", DNS_ANY);
        add_rr(&packet, COUNT_ANSWER, "@", DNS_TXT, 60, "", 1);
        assert_lives(&packet, 60, LIFETIME_POSITIVE);
        answer(&packet, NOERROR, "www.example", DNS_RRSIG);
        add_rrsig(&packet, COUNT_ANSWER, "@", DNS_A, 60);
        assert_lives(&packet, 60, LIFETIME_POSITIVE);
        answer(&packet, NOERROR, "www.example", DNS_ANY);
        assert_refused(&packet, SARDINE_REFUSED_NO_SOA);
        /* a signature alone is no data of the type it covers */
        answer(&packet, NOERROR, "www.example", DNS_A);
        add_rrsig(&packet, COUNT_ANSWER, "@", DNS_A, 60);
        assert_refused(&packet, SARDINE_REFUSED_NO_SOA);
}

static void b32_negative_without_soa(void **state)
{
        (void)state;
        struct packet packet;
        answer(&packet, NXDOMAIN, "www.example", DNS_A);
        assert_refused(&packet, SARDINE_REFUSED_NO_SOA);
        add_alias(&packet, COUNT_AUTHORITY, "example", DNS_NS, 60, "ns.example");
        assert_refused(&packet, SARDINE_REFUSED_NO_SOA);
        answer(&packet, NOERROR, "www.example", DNS_A);
        assert_refused(&packet, SARDINE_REFUSED_NO_SOA);
        add_soa(&packet, COUNT_ADDITIONAL, "example", 60, 60);
        assert_refused(&packet, SARDINE_REFUSED_NO_SOA);
        answer(&packet, NOERROR, "www.example", DNS_A);
        add_alias(&packet, COUNT_ANSWER, "@", DNS_CNAME, 20, "a.example");
        assert_refused(&packet, SARDINE_REFUSED_NO_SOA);
        add_alias(&packet, COUNT_AUTHORITY, "example", DNS_NS, 60, "ns.example");
        assert_refused(&packet, SARDINE_REFUSED_NO_SOA);
        /* no question, no negative answer either */
        start(&packet, NXDOMAIN);
        assert_refused(&packet, SARDINE_REFUSED_NO_SOA);
        start(&packet, NOERROR);
        assert_refused(&packet, SARDINE_REFUSED_NO_SOA);
}

static void referral_is_data(void **state)
{
        (void)state;
        struct packet packet;
        answer(&packet, AUTHORITATIVE & ~0x0400, "www.sub.example", DNS_A);
        add_alias(&packet, COUNT_AUTHORITY, "sub.example", DNS_NS, 7200, "ns.sub.example");
        add_a(&packet, COUNT_ADDITIONAL, "ns.sub.example", 7200);
        assert_lives(&packet, 7200, LIFETIME_POSITIVE);
        /* with an SOA it is NODATA */
        answer(&packet, NOERROR, "www.sub.example", DNS_A);
        add_alias(&packet, COUNT_AUTHORITY, "sub.example", DNS_NS, 7200, "ns.sub.example");
        add_soa(&packet, COUNT_AUTHORITY, "sub.example", 7200, 60);
        assert_lives(&packet, 60, LIFETIME_NEGATIVE);
}

static void alias_that_leaves_the_zone_is_data(void **state)
{
        (void)state;
        struct packet packet;
        answer(&packet, AUTHORITATIVE, "www.example", DNS_A);
        add_alias(&packet, COUNT_ANSWER, "@", DNS_CNAME, 20, "www.elsewhere");
        assert_lives(&packet, 20, LIFETIME_POSITIVE);
        /* records beside the question are none */
        answer(&packet, AUTHORITATIVE, "www.example", DNS_A);
        add_a(&packet, COUNT_ANSWER, "www.elsewhere", 20);
        assert_refused(&packet, SARDINE_REFUSED_NO_SOA);
}

static void b33_all_caps_hold_for_negative_answers(void **state)
{
        (void)state;
        struct packet packet;
        answer(&packet, NXDOMAIN, "www.example", DNS_A);
        add_soa(&packet, COUNT_AUTHORITY, "example", 90000, 80000);
        assert_lives(&packet, 3600, LIFETIME_NEGATIVE);
        assert_int_equal(rrs[0].ttl, 80000);
        limits.max_ttl = 10;
        assert_lives(&packet, 10, LIFETIME_NEGATIVE);
        limits.max_ttl = 86400;
        limits.max_negative_ttl = 5;
        assert_lives(&packet, 5, LIFETIME_NEGATIVE);
        limits.min_ttl = 6;
        assert_refused(&packet, SARDINE_REFUSED_TTL_SHORT);
        limits.min_ttl = 0;
        limits.max_negative_ttl = 0;
        assert_refused(&packet, SARDINE_REFUSED_TTL_SHORT);
}

static void b29_failures_without_records(void **state)
{
        (void)state;
        struct packet packet;
        const unsigned flags[] = {SERVFAIL, REFUSED};
        for (unsigned i = 0; i < 2; i++) {
                answer(&packet, flags[i], "www.example", DNS_A);
                assert_lives(&packet, 60, LIFETIME_FAILURE);
                start(&packet, flags[i]);
                assert_lives(&packet, 60, LIFETIME_FAILURE);
                limits.failure_ttl = 0;
                assert_refused(&packet, SARDINE_REFUSED_FAILURE_OFF);
                defaults(NULL);
        }
}

static void b30_failures_are_not_kept_long(void **state)
{
        (void)state;
        struct packet packet;
        answer(&packet, SERVFAIL, "www.example", DNS_A);
        limits.min_ttl = 3600;
        assert_lives(&packet, 60, LIFETIME_FAILURE);
        limits.failure_ttl = 300;
        assert_lives(&packet, 300, LIFETIME_FAILURE);
        limits.failure_ttl = 301;
        assert_lives(&packet, 300, LIFETIME_FAILURE);
        limits.failure_ttl = UINT32_MAX;
        assert_lives(&packet, 300, LIFETIME_FAILURE);
        limits.max_ttl = 30;
        assert_lives(&packet, 30, LIFETIME_FAILURE);
        add_alias(&packet, COUNT_AUTHORITY, "example", DNS_NS, 7, "ns.example");
        assert_lives(&packet, 7, LIFETIME_FAILURE);
}

static void b56_other_rcodes(void **state)
{
        (void)state;
        struct packet packet;
        for (unsigned rcode = 0; rcode < 4096; rcode++) {
                answer(&packet, 0x8180 | (rcode & 15), "www.example", DNS_A);
                add_a(&packet, COUNT_ANSWER, "@", 300);
                add_opt(&packet, 1232, (uint32_t)(rcode >> 4) << 24);
                unsigned want = SARDINE_REFUSED_RCODE;
                if (rcode == DNS_NOERROR || rcode == DNS_SERVFAIL || rcode == DNS_REFUSED)
                        want = SARDINE_REASON_NONE;
                else if (rcode == DNS_NXDOMAIN)
                        want = SARDINE_REFUSED_NO_SOA;
                assert_refused(&packet, want);
        }
}

static void number(struct packet *packet, unsigned i)
{
        char label[5] = {(char)('a' + i / 17576 % 26), (char)('a' + i / 676 % 26), (char)('a' + i / 26 % 26),
                         (char)('a' + i % 26)};
        add_labels(packet, label);
        add_u8(packet, 0);
}

/* Aliases from 0 to `n`, first to last or last to first. */
static void long_chain(struct packet *packet, unsigned n, bool backwards)
{
        answer(packet, NOERROR, "aaaa", DNS_A);
        for (unsigned i = 0; i < n; i++) {
                unsigned k = backwards ? n - 1 - i : i;
                count(packet, COUNT_ANSWER);
                number(packet, k);
                size_t at = add_fixed(packet, DNS_CNAME, 60);
                number(packet, k + 1);
                end_rdata(packet, at);
        }
        count(packet, COUNT_ANSWER);
        number(packet, n);
        size_t at = add_fixed(packet, DNS_A, 60);
        add_u32(packet, 0);
        end_rdata(packet, at);
}

static void b64_chains_cost_bounded_work(void **state)
{
        (void)state;
        struct packet packet;
        long_chain(&packet, 2500, false);
        assert_lives(&packet, 60, LIFETIME_POSITIVE);
        long_chain(&packet, 16, true);
        assert_lives(&packet, 60, LIFETIME_POSITIVE);
        long_chain(&packet, 2500, true);
        assert_refused(&packet, SARDINE_REFUSED_COMPLEX);
}

static void b64_owners_cost_bounded_work(void **state)
{
        (void)state;
        struct packet packet;
        /* honest: as many records as there can be, of one owner, or each of its own */
        answer(&packet, NOERROR, "www.example.com", DNS_A);
        while (packet.len + 16 <= DNS_MAX_MESSAGE)
                add_a(&packet, COUNT_ANSWER, "@", 60);
        assert_lives(&packet, 60, LIFETIME_POSITIVE);
        answer(&packet, NOERROR, "www.example.com", DNS_A);
        add_a(&packet, COUNT_ANSWER, "@", 60);
        for (unsigned i = 0; packet.len + 20 <= DNS_MAX_MESSAGE; i++) {
                count(&packet, COUNT_ADDITIONAL);
                number(&packet, i);
                size_t at = add_fixed(&packet, DNS_A, 60);
                add_u32(&packet, 0);
                end_rdata(&packet, at);
        }
        assert_lives(&packet, 60, LIFETIME_POSITIVE);
        /* not: two spellings of one pointer to many labels take turns */
        answer(&packet, NOERROR, "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z", DNS_A);
        for (unsigned i = 0; i < 1100; i++) {
                add_a(&packet, COUNT_ANSWER, "@", 60);
                if (i % 2 == 0) {
                        packet.len -= 16;
                        add_labels(&packet, "a");
                        add_pointer(&packet, DNS_HEADER + 2);
                        size_t at = add_fixed(&packet, DNS_A, 60);
                        add_u32(&packet, 0);
                        end_rdata(&packet, at);
                }
        }
        assert_refused(&packet, SARDINE_REFUSED_COMPLEX);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, defaults)
        const struct CMUnitTest tests[] = {
            TEST(b44_least_ttl_of_the_message),
            TEST(b44_unequal_ttls_in_an_rrset),
            TEST(b44_top_bit_of_a_ttl),
            TEST(b28_ttl_zero),
            TEST(b34_opt_has_no_ttl),
            TEST(max_and_min_ttl),
            TEST(b31_negative_life_is_ttl_or_minimum),
            TEST(b31_nodata_behind_aliases),
            TEST(chains_in_any_order),
            TEST(dname_chains),
            TEST(types_that_are_their_own_data),
            TEST(b32_negative_without_soa),
            TEST(referral_is_data),
            TEST(alias_that_leaves_the_zone_is_data),
            TEST(b33_all_caps_hold_for_negative_answers),
            TEST(b29_failures_without_records),
            TEST(b30_failures_are_not_kept_long),
            TEST(b56_other_rcodes),
            TEST(b64_chains_cost_bounded_work),
            TEST(b64_owners_cost_bounded_work),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
