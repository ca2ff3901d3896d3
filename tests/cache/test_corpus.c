/* SPDX-License-Identifier: MIT
 * Every response of the corpus through the C ABI: inserted for its own question, or refused with a reason,
 * then looked up by a matrix of clients; once with CD, once without. Each reply is judged by ldns, which
 * shares no code with us: it must parse, fit, hold no record that the original does not have, and all RRsets
 * that this client is to get unless it says TC. */
#include "kit.h"

#include "wire/bytes.h"
#include "wire/corpus.h"
#include "wire/dns.h"
#include "wire/ecs.h"

static const char *corpus;
static int setup(void **state)
{
        (void)state;
        kit_init(&kit);
        kit.options.max_entries = 0;
        kit.options.max_bytes = 64 << 20;
        kit.options.udp_payload_size = 4096;
        kit_open(&kit);
        return 0;
}

struct client {
        const char *what;
        uint16_t size; /* 0: no EDNS */
        uint32_t transport;
        bool dnssec_ok, ad, cookie, ecs, mixed;
};

static const struct client clients[] = {
    {"plain UDP", 0, SARDINE_UDP, false, false, false, false, false},
    {"plain TCP", 0, SARDINE_TCP, false, false, false, false, true},
    {"UDP 512", 512, SARDINE_UDP, false, false, false, false, true},
    {"UDP 512 DO", 512, SARDINE_UDP, true, false, true, false, false},
    {"UDP 1232", 1232, SARDINE_UDP, false, true, true, false, true},
    {"UDP 1232 DO", 1232, SARDINE_UDP, true, true, false, true, false},
    {"UDP 4096", 4096, SARDINE_UDP, false, false, false, true, true},
    {"UDP 4096 DO", 4096, SARDINE_UDP, true, false, true, true, true},
    {"TCP", 1232, SARDINE_TCP, false, true, true, true, false},
    {"TCP DO", 1232, SARDINE_TCP, true, false, false, false, true},
    {"DoT DO", 512, SARDINE_DOT, true, true, true, true, true},
    {"DoH", 4096, SARDINE_DOH, false, false, false, false, false},
};

/* The query of such a client for the question at packet[12..]. */
static size_t make_query(const uint8_t *question, size_t len, bool rd, bool cd, const struct client *c,
                         uint8_t *out)
{
        memset(out, 0, 12);
        put_be16(out, 0x5a5a);
        out[2] = rd ? DNS_RD : 0;
        out[3] = (uint8_t)((cd ? DNS_CD : 0) | (c->ad ? DNS_AD : 0));
        out[5] = 1;
        memcpy(out + 12, question, len);
        for (size_t i = 0; i + 4 < len; i++) {
                uint8_t *b = out + 12 + i;
                if (*b >= 'A' && *b <= 'Z')
                        *b |= 0x20;
                if (c->mixed && i % 2 && *b >= 'a' && *b <= 'z')
                        *b &= (uint8_t)~0x20;
        }
        size_t at = 12 + len;
        if (c->size) {
                uint8_t *opt = out + at;
                memset(opt, 0, DNS_OPT_FIXED);
                put_be16(opt + 1, DNS_OPT);
                put_be16(opt + 3, c->size);
                opt[7] = c->dnssec_ok ? 0x80 : 0;
                at += DNS_OPT_FIXED;
                if (c->cookie) {
                        memcpy(out + at,
                               "\0\x0a\0\x08"
                               "COOKIE-C",
                               12);
                        at += 12;
                }
                if (c->ecs) {
                        const struct wire_ecs e = {.family = ECS_IPV4, .source = 24, .addr = {192, 0, 2}};
                        at += wire_ecs_write(&e, out + at);
                }
                put_be16(opt + 9, (uint16_t)(out + at - opt - DNS_OPT_FIXED));
                out[11] = 1;
        }
        return at;
}

static bool is_dnssec(const ldns_rr *rr, ldns_pkt_section section, ldns_rr_type qtype)
{
        ldns_rr_type type = ldns_rr_get_type(rr);
        if (type == qtype || qtype == LDNS_RR_TYPE_ANY)
                return false;
        return type == LDNS_RR_TYPE_RRSIG || type == LDNS_RR_TYPE_NSEC || type == LDNS_RR_TYPE_NSEC3 ||
               ((type == LDNS_RR_TYPE_DS || type == LDNS_RR_TYPE_DNSKEY) && section != LDNS_SECTION_ANSWER);
}

/* Same record but for TTL and letter case: ldns compares so. */
static bool has_record(const ldns_rr_list *list, const ldns_rr *rr)
{
        for (size_t i = 0; i < ldns_rr_list_rr_count(list); i++) {
                ldns_rr *copy = ldns_rr_clone(ldns_rr_list_rr(list, i)), *mine = ldns_rr_clone(rr);
                ldns_rr2canonical(copy);
                ldns_rr2canonical(mine);
                ldns_rr_set_ttl(copy, 1);
                ldns_rr_set_ttl(mine, 1);
                bool same = ldns_rr_compare(copy, mine) == 0;
                ldns_rr_free(copy);
                ldns_rr_free(mine);
                if (same)
                        return true;
        }
        return false;
}

static ldns_rr_list *section_of(const ldns_pkt *pkt, ldns_pkt_section section)
{
        return section == LDNS_SECTION_ANSWER      ? ldns_pkt_answer(pkt)
               : section == LDNS_SECTION_AUTHORITY ? ldns_pkt_authority(pkt)
                                                   : ldns_pkt_additional(pkt);
}

/* ldns takes the OPT out of the additional section. */
static const char *judge(const ldns_pkt *original, const ldns_pkt *reply, const struct client *c)
{
        static const ldns_pkt_section sections[] = {LDNS_SECTION_ANSWER, LDNS_SECTION_AUTHORITY,
                                                    LDNS_SECTION_ADDITIONAL};
        ldns_rr_type qtype = ldns_rr_get_type(ldns_rr_list_rr(ldns_pkt_question(original), 0));
        if (ldns_pkt_get_rcode(reply) != ldns_pkt_get_rcode(original))
                return "another rcode";
        if (ldns_pkt_aa(reply) != ldns_pkt_aa(original) || ldns_pkt_ra(reply) != ldns_pkt_ra(original))
                return "AA or RA differs";
        if (ldns_pkt_ad(reply) != (ldns_pkt_ad(original) && (c->ad || c->dnssec_ok)))
                return "AD is wrong";
        if (ldns_pkt_edns(reply) != (c->size != 0))
                return "OPT where there is none to be, or the other way round";
        if (c->size && ldns_pkt_edns_do(reply) != c->dnssec_ok)
                return "DO is not the client's";
        for (unsigned s = 0; s < 3; s++) {
                ldns_rr_list *theirs = section_of(original, sections[s]),
                             *ours = section_of(reply, sections[s]);
                size_t expected = 0;
                for (size_t i = 0; i < ldns_rr_list_rr_count(theirs); i++) {
                        const ldns_rr *rr = ldns_rr_list_rr(theirs, i);
                        bool wanted = c->dnssec_ok || !is_dnssec(rr, sections[s], qtype);
                        expected += wanted;
                        if (wanted && !ldns_pkt_tc(reply) && sections[s] != LDNS_SECTION_ADDITIONAL &&
                            !has_record(ours, rr))
                                return "a record is missing without TC";
                }
                for (size_t i = 0; i < ldns_rr_list_rr_count(ours); i++) {
                        const ldns_rr *rr = ldns_rr_list_rr(ours, i);
                        if (!c->dnssec_ok && is_dnssec(rr, sections[s], qtype))
                                return "a DNSSEC record that was not asked for";
                        if (!has_record(theirs, rr))
                                return "a record that the original does not have";
                }
                size_t count = ldns_rr_list_rr_count(ours);
                if (count > expected)
                        return "a record twice";
                if (c->transport != SARDINE_UDP && count != expected)
                        return "not the whole on a stream";
        }
        return NULL;
}

struct tally {
        unsigned stored, refused, not_asked, replies, truncated;
};

static void one_fetch(struct tally *t, unsigned line, const uint8_t *packet, size_t len, bool cd)
{
        size_t question = 12;
        while (question < len && packet[question] && packet[question] < 0xc0)
                question += 1u + packet[question];
        if (len < 12 || question + 5 > len || packet[question] || get_be16(packet + 4) != 1) {
                t->not_asked++; /* without a question there is none to answer */
                return;
        }
        question += 5 - 12;
        /* Asked upstream with DO and with the RD that the response echoes, so that it may be kept. */
        static const struct client fetcher = {"fetch", 4096, SARDINE_TCP, true, true, false, false, false};
        uint8_t query[1024];
        bool rd = packet[2] & DNS_RD;
        assert_int_equal(sardine_expunge(kit.cache, NULL) >= 0, 1);
        struct ask how = {.transport = SARDINE_TCP};
        size_t query_len = make_query(packet + 12, question, rd, cd, &fetcher, query);
        struct got *got = look_packet(&kit, query, query_len, &how);
        if (got->outcome == SARDINE_BYPASS) {
                t->not_asked++;
                return;
        }
        unsigned reason;
        if (put_packet(&kit, packet, len, &reason) == SARDINE_REFUSED) {
                assert_true(reason >= SARDINE_REFUSED_MALFORMED && reason < SARDINE_REASON_COUNT);
                t->refused++;
                return;
        }
        t->stored++;
        ldns_pkt *original;
        assert_int_equal(ldns_wire2pkt(&original, packet, len), LDNS_STATUS_OK);
        for (size_t i = 0; i < sizeof clients / sizeof *clients; i++) {
                const struct client *c = &clients[i];
                how.transport = c->transport;
                query_len = make_query(packet + 12, question, rd, cd, c, query);
                got = look_packet(&kit, query, query_len, &how);
                if (got->outcome !=
                    SARDINE_HIT) /* an answer for a network is not for those who are elsewhere */
                        continue;
                size_t limit = c->transport != SARDINE_UDP ? 65535 : c->size ? c->size : 512;
                const char *wrong = got->answer.len > limit ? "too long" : judge(original, got->pkt, c);
                if (memmem(got->buf, got->answer.len, "COOKIE-C", 8))
                        wrong = "a cookie";
                if (wrong)
                        fail_msg("line %u, %s: %s", line, c->what, wrong);
                t->replies++;
                t->truncated += ldns_pkt_tc(got->pkt);
        }
        ldns_pkt_free(original);
        how.transport = SARDINE_TCP;
        query_len = make_query(packet + 12, question, rd, !cd, &fetcher, query);
        if (cd && look_packet(&kit, query, query_len, &how)->outcome != SARDINE_MISS)
                fail_msg("line %u: unchecked data for a client that wants it checked", line);
}

static void one_message(void *ctx, unsigned line, const char *kind, const uint8_t *packet, size_t len)
{
        (void)kind;
        one_fetch(ctx, line, packet, len, false);
        one_fetch(ctx, line, packet, len, true);
}

static void b06_b49_corpus_for_a_matrix_of_clients(void **state)
{
        (void)state;
        struct tally t = {0};
        assert_true(corpus_read(corpus, one_message, &t) > 1000);
        print_message(
            "%u stored, %u refused, %u without a question to ask; %u replies, %u of them truncated\n",
            t.stored, t.refused, t.not_asked, t.replies, t.truncated);
        assert_true(t.stored > 3000);
        assert_true(t.replies > t.stored * 11);
        assert_true(t.truncated > 0);
}

int main(int argc, char **argv)
{
        if (argc != 2)
                return 2;
        corpus = argv[1];
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(b06_b49_corpus_for_a_matrix_of_clients, setup, kit_teardown),
        };
        return cmocka_run_group_tests_name("cache/corpus", tests, NULL, NULL);
}
