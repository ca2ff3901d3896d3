/* SPDX-License-Identifier: MIT
 * Messages seen on real networks and in the test suites of other servers, judged by ldns as well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ldns/ldns.h>

#include "lifetime.h"
#include "sardine.h"
#include "wire/bytes.h"
#include "wire/corpus.h"
#include "wire/dns.h"
#include "wire/name.h"
#include "wire/query.h"
#include "wire/rdata.h"
#include "wire/response.h"

static const char *queries_path, *responses_path;

/* What we refuse although ldns reads it. */
struct refusal {
        unsigned line;
        unsigned reason;
};
static const struct refusal refused_queries[] = {
    {12, SARDINE_BYPASS_MALFORMED}, /* ECS: /32 with three bytes of address */
    {13, SARDINE_BYPASS_MALFORMED}, /* ECS: /1, scope 255 */
    {14, SARDINE_BYPASS_MALFORMED}, /* ECS: /255 */
    {15, SARDINE_BYPASS_MALFORMED}, /* an option longer than the OPT */
    {17, SARDINE_BYPASS_RECORDS},   /* TSIG */
    {23, SARDINE_BYPASS_RECORDS},   /* TSIG */
    {30, SARDINE_BYPASS_NOT_QUERY}, /* NOTIFY */
    {41, SARDINE_BYPASS_QTYPE},     /* TKEY */
};
static const struct refusal refused_responses[] = {
    {48, SARDINE_REFUSED_MISMATCH},    /* TSIG */
    {80, SARDINE_REFUSED_MALFORMED},   /* SVCB without its target */
    {85, SARDINE_REFUSED_MALFORMED},   /* OPT of one byte: no option */
    {86, SARDINE_REFUSED_MISMATCH},    /* NOTIFY */
    {87, SARDINE_REFUSED_MISMATCH},    /* UPDATE */
    {88, SARDINE_REFUSED_MISMATCH},    /* UPDATE */
    {100, SARDINE_REFUSED_MALFORMED},  /* TKEY as a record */
    {119, SARDINE_REFUSED_MALFORMED},  /* 64 zero bytes at its end */
    {203, SARDINE_REFUSED_MISMATCH},   /* UPDATE */
    {208, SARDINE_REFUSED_MISMATCH},   /* opcode 9 */
    {1107, SARDINE_REFUSED_MALFORMED}, /* class CH */
    {1791, SARDINE_REFUSED_MALFORMED}, /* class CH */
    {1792, SARDINE_REFUSED_MALFORMED}, /* class CH */
};

struct tally {
        const struct refusal *refusals; /* those still to come */
        size_t left;
        unsigned accepted;
        unsigned lived;
};

/* The packet as ldns sees it, or NULL. Both must agree, but for the known refusals. */
static ldns_pkt *judge(struct tally *tally, unsigned line, unsigned reason, const uint8_t *message,
                       size_t len)
{
        ldns_pkt *packet = NULL;
        bool sound = ldns_wire2pkt(&packet, message, len) == LDNS_STATUS_OK;
        if (reason == SARDINE_REASON_NONE) {
                if (!sound)
                        fail_msg("line %u: ldns does not accept it", line);
                tally->accepted++;
                return packet;
        }
        if (sound) {
                if (tally->left == 0 || tally->refusals->line != line || tally->refusals->reason != reason)
                        fail_msg("line %u: refused for %u, but ldns accepts it", line, reason);
                tally->refusals++;
                tally->left--;
                ldns_pkt_free(packet);
        }
        return NULL;
}

static void assert_same_name(const ldns_rdf *theirs, const uint8_t *ours, size_t len)
{
        assert_int_equal(ldns_rdf_size(theirs), len);
        assert_true(wire_name_equal(ldns_rdf_data(theirs), ours, len));
}

static void each_query(void *ctx, unsigned line, const char *kind, const uint8_t *message, size_t len)
{
        (void)kind;
        struct wire_query query;
        ldns_pkt *packet = judge(ctx, line, wire_query_parse(message, len, &query), message, len);
        if (packet == NULL)
                return;
        const ldns_rr *question = ldns_rr_list_rr(ldns_pkt_question(packet), 0);
        assert_same_name(ldns_rr_owner(question), query.qname, query.qname_len);
        assert_int_equal(ldns_rr_get_type(question), query.qtype);
        assert_int_equal(ldns_pkt_rd(packet), query.rd);
        assert_int_equal(ldns_pkt_cd(packet), query.cd);
        assert_int_equal(ldns_pkt_ad(packet), query.ad);
        assert_int_equal(ldns_pkt_edns(packet), query.edns);
        assert_int_equal(ldns_pkt_edns_do(packet), query.dnssec_ok);
        if (ldns_pkt_edns_udp_size(packet) > 512)
                assert_int_equal(ldns_pkt_edns_udp_size(packet), query.udp_size);
        const ldns_rdf *options = ldns_pkt_edns_data(packet);
        assert_int_equal(options == NULL ? 0 : ldns_rdf_size(options), query.options_len);
        ldns_pkt_free(packet);
}

static void assert_same_rdata(const ldns_rr *theirs, const uint8_t *message, size_t len,
                              const struct wire_rr *rr, size_t question_len)
{
        const struct rdata_shape *shape = rdata_shape(rr->type);
        size_t at = rr->rdata, named = 0;
        for (const struct rdata_field *field = shape->fields; field->kind != RDATA_END; field++) {
                struct wire_name name;
                uint32_t work = WIRE_WORK_MAX;
                switch (field->kind) {
                case RDATA_FIXED:
                        at += field->size;
                        break;
                case RDATA_STRING:
                        at += message[at] + 1u;
                        break;
                case RDATA_REST:
                        at = rr->rdata + rr->rdlen;
                        break;
                case RDATA_NAME:
                        at += wire_name_expand(message, len, at, question_len, &work, &name);
                        while (ldns_rdf_get_type(ldns_rr_rdf(theirs, named)) != LDNS_RDF_TYPE_DNAME)
                                named++;
                        assert_same_name(ldns_rr_rdf(theirs, named++), name.bytes, name.len);
                        break;
                }
        }
        assert_int_equal(at, rr->rdata + rr->rdlen);
        if (!shape->has_name) {
                size_t size = 0;
                for (size_t i = 0; i < ldns_rr_rd_count(theirs); i++)
                        size += ldns_rdf_size(ldns_rr_rdf(theirs, i));
                assert_int_equal(size, rr->rdlen);
        }
}

static void each_response(void *ctx, unsigned line, const char *kind, const uint8_t *message, size_t len)
{
        (void)kind;
        static struct wire_rr rrs[WIRE_RRS_MAX];
        struct tally *tally = ctx;
        struct wire_response response;
        unsigned reason = wire_response_parse(message, len, rrs, WIRE_RRS_MAX, &response);
        ldns_pkt *packet = judge(tally, line, reason, message, len);
        if (packet == NULL)
                return;
        if (response.qname != NULL) {
                const ldns_rr *question = ldns_rr_list_rr(ldns_pkt_question(packet), 0);
                assert_same_name(ldns_rr_owner(question), response.qname, response.qname_len);
                assert_int_equal(ldns_rr_get_type(question), response.qtype);
        } else {
                assert_int_equal(ldns_rr_list_rr_count(ldns_pkt_question(packet)), 0);
        }
        assert_int_equal(response.edns, ldns_pkt_edns(packet));
        assert_int_equal(response.dnssec_ok, ldns_pkt_edns_do(packet));
        assert_int_equal(response.rcode,
                         ldns_pkt_edns_extended_rcode(packet) << 4 | ldns_pkt_get_rcode(packet));

        const ldns_rr_list *sections[] = {ldns_pkt_answer(packet), ldns_pkt_authority(packet),
                                          ldns_pkt_additional(packet)};
        uint32_t n = 0;
        for (unsigned section = WIRE_ANSWER; section <= WIRE_ADDITIONAL; section++) {
                for (size_t i = 0; i < ldns_rr_list_rr_count(sections[section]); i++, n++) {
                        const ldns_rr *theirs = ldns_rr_list_rr(sections[section], i);
                        const struct wire_rr *rr = &rrs[n];
                        assert_true(n < response.count);
                        assert_int_equal(rr->section, section);
                        assert_int_equal(rr->type, ldns_rr_get_type(theirs));
                        assert_int_equal(rr->rclass, ldns_rr_get_class(theirs));
                        assert_int_equal(rr->ttl,
                                         ldns_rr_ttl(theirs) > INT32_MAX ? INT32_MAX : ldns_rr_ttl(theirs));
                        struct wire_name owner;
                        uint32_t work = WIRE_WORK_MAX;
                        assert_int_not_equal(
                            wire_name_expand(message, len, rr->owner, response.qname_len, &work, &owner), 0);
                        assert_same_name(ldns_rr_owner(theirs), owner.bytes, owner.len);
                        assert_same_rdata(theirs, message, len, rr, response.qname_len);
                }
        }
        assert_int_equal(n, response.count);
        ldns_pkt_free(packet);

        const struct lifetime_limits limits = {
            .max_ttl = 86400, .min_ttl = 0, .max_negative_ttl = 3600, .failure_ttl = 60};
        uint32_t life = 0;
        enum lifetime_kind as;
        if (lifetime_assess(&response, &limits, &life, &as) == SARDINE_REASON_NONE) {
                tally->lived++;
                assert_in_range(life, 1, 86400);
                for (uint32_t i = 0; i < response.count; i++)
                        assert_true(rrs[i].ttl >= life);
        }
}

static void queries(void **state)
{
        (void)state;
        struct tally tally = {refused_queries, sizeof refused_queries / sizeof *refused_queries, 0, 0};
        unsigned all = corpus_read(queries_path, each_query, &tally);
        assert_int_equal(tally.left, 0);
        assert_true(all > 500 && tally.accepted > all * 9 / 10);
}

static void b59_responses(void **state)
{
        (void)state;
        struct tally tally = {refused_responses, sizeof refused_responses / sizeof *refused_responses, 0, 0};
        unsigned all = corpus_read(responses_path, each_response, &tally);
        assert_int_equal(tally.left, 0);
        assert_true(all > 1700 && tally.accepted > all * 9 / 10);
        assert_true(tally.lived > all * 8 / 10);
}

int main(int argc, char **argv)
{
        if (argc != 3)
                return 1;
        queries_path = argv[1];
        responses_path = argv[2];
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(queries),
            cmocka_unit_test(b59_responses),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
