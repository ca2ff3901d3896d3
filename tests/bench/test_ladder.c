/* SPDX-License-Identifier: MIT
 * The benchmark's ladder measures nothing unless all rungs do the same: each must keep what the library
 * keeps, and give the same answers, as ldns reads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <ldns/ldns.h>

#include "ladder/heap.h"
#include "ladder/ladder.h"
#include "wire/bytes.h"
#include "wire/corpus.h"
#include "wire/dns.h"
#include "wire/name.h"
#include "workload.h"

enum {
        SARDINE = LADDER_RUNGS - 1,
        QUERY_MAX = 300,
        TTL = 3600,
};

static const char *corpus;
static uint64_t clock_now = 1000000;

static uint64_t clock_ms(void)
{
        return clock_now;
}

static int setup(void **state)
{
        (void)state;
        ladder_clock = clock_ms;
        return 0;
}

struct client {
        bool edns, dnssec_ok;
};

static const struct client clients[] = {{false, false}, {true, false}, {true, true}};

#define CLIENTS (sizeof clients / sizeof *clients)

/* This client's query for the question of a response, with its RD and CD. 0: it has none. */
static size_t make_query(const uint8_t *response, size_t len, const struct client *client,
                         uint8_t out[QUERY_MAX])
{
        if (len < DNS_HEADER || get_be16(response + 4) != 1)
                return 0;
        size_t name = wire_name_length(response + DNS_HEADER, response + len), at = DNS_HEADER + name + 4;
        if (name == 0 || at > len)
                return 0;
        memset(out, 0, QUERY_MAX);
        memcpy(out + DNS_HEADER, response + DNS_HEADER, name + 4);
        out[2] = response[2] & DNS_RD;
        out[3] = response[3] & DNS_CD;
        out[5] = 1;
        if (client->edns) {
                out[11] = 1;
                out[at + 2] = DNS_OPT;
                put_be16(out + at + 3, 4096);
                out[at + 7] = client->dnssec_ok ? 0x80 : 0;
                at += DNS_OPT_FIXED;
        }
        return at;
}

static ldns_pkt *parsed(const uint8_t *packet, size_t len)
{
        ldns_pkt *pkt = NULL;
        assert_int_equal(ldns_wire2pkt(&pkt, packet, len), LDNS_STATUS_OK);
        return pkt;
}

static ldns_rr_list *sorted(const ldns_rr_list *list)
{
        ldns_rr_list *copy = ldns_rr_list_clone(list);
        ldns_rr_list2canonical(copy);
        ldns_rr_list_sort(copy);
        return copy;
}

static bool same_records(const ldns_rr_list *one, const ldns_rr_list *other)
{
        ldns_rr_list *a = sorted(one), *b = sorted(other);
        bool same = ldns_rr_list_rr_count(a) == ldns_rr_list_rr_count(b);
        for (size_t i = 0; same && i < ldns_rr_list_rr_count(a); i++) {
                const ldns_rr *x = ldns_rr_list_rr(a, i), *y = ldns_rr_list_rr(b, i);
                same = ldns_rr_compare(x, y) == 0 && ldns_rr_ttl(x) == ldns_rr_ttl(y);
        }
        ldns_rr_list_deep_free(a);
        ldns_rr_list_deep_free(b);
        return same;
}

/* NULL, or what is different. */
static const char *difference(const ldns_pkt *a, const ldns_pkt *b)
{
        if (ldns_pkt_get_rcode(a) != ldns_pkt_get_rcode(b))
                return "rcode";
        if (ldns_pkt_aa(a) != ldns_pkt_aa(b) || ldns_pkt_tc(a) != ldns_pkt_tc(b) ||
            ldns_pkt_rd(a) != ldns_pkt_rd(b) || ldns_pkt_ra(a) != ldns_pkt_ra(b) ||
            ldns_pkt_ad(a) != ldns_pkt_ad(b) || ldns_pkt_cd(a) != ldns_pkt_cd(b))
                return "flags";
        if (ldns_pkt_edns(a) != ldns_pkt_edns(b) || ldns_pkt_edns_do(a) != ldns_pkt_edns_do(b) ||
            ldns_pkt_edns_extended_rcode(a) != ldns_pkt_edns_extended_rcode(b))
                return "EDNS";
        const ldns_rdf *x = ldns_pkt_edns_data(a), *y = ldns_pkt_edns_data(b);
        if ((x && y) ? ldns_rdf_compare(x, y) != 0 : (x != y))
                return "EDNS options";
        if (!same_records(ldns_pkt_question(a), ldns_pkt_question(b)))
                return "question";
        if (!same_records(ldns_pkt_answer(a), ldns_pkt_answer(b)))
                return "answer";
        if (!same_records(ldns_pkt_authority(a), ldns_pkt_authority(b)))
                return "authority";
        return same_records(ldns_pkt_additional(a), ldns_pkt_additional(b)) ? NULL : "additional";
}

static uint8_t replies[LADDER_RUNGS][DNS_MAX_MESSAGE];
static size_t lens[LADDER_RUNGS];

/* Look up in all; true if they found it. All must agree. */
static bool look_up(void *caches[LADDER_RUNGS], const uint8_t *query, size_t len, unsigned line)
{
        static union ladder_token token;
        for (unsigned r = 0; r < LADDER_RUNGS; r++)
                lens[r] =
                    ladder_rungs[r]->lookup(caches[r], query, len, true, replies[r], DNS_MAX_MESSAGE, &token);
        if (!lens[SARDINE]) {
                for (unsigned r = 0; r < SARDINE; r++)
                        assert_int_equal(lens[r], 0);
                return false;
        }
        ldns_pkt *theirs = parsed(replies[SARDINE], lens[SARDINE]);
        for (unsigned r = 0; r < SARDINE; r++) {
                if (!lens[r])
                        fail_msg("line %u: %s has no answer", line, ladder_rungs[r]->name);
                ldns_pkt *mine = parsed(replies[r], lens[r]);
                const char *what = difference(mine, theirs);
                if (what)
                        fail_msg("line %u: %s is different from sardine: %s\n%s\n%s", line,
                                 ladder_rungs[r]->name, what, ldns_pkt2str(mine), ldns_pkt2str(theirs));
                ldns_pkt_free(mine);
        }
        ldns_pkt_free(theirs);
        return true;
}

/* Does ldns find the records of the response in the replies (all are the same) of a client with DO? */
static bool is_whole(const uint8_t *response, size_t len)
{
        ldns_pkt *original = parsed(response, len), *reply = parsed(replies[0], lens[0]);
        bool whole = ldns_pkt_ancount(original) == ldns_pkt_ancount(reply) &&
                     ldns_pkt_nscount(original) == ldns_pkt_nscount(reply) &&
                     ldns_rr_list_rr_count(ldns_pkt_additional(original)) ==
                         ldns_rr_list_rr_count(ldns_pkt_additional(reply));
        ldns_pkt_free(original);
        ldns_pkt_free(reply);
        return whole;
}

struct tally {
        unsigned kept, refused;
};

static void try_response(void *ctx, unsigned line, const char *kind, const uint8_t *response, size_t len)
{
        struct tally *tally = ctx;
        uint8_t query[QUERY_MAX];
        static union ladder_token token;
        (void)kind;
        size_t query_len = make_query(response, len, &clients[CLIENTS - 1], query);
        if (!query_len)
                return;
        void *caches[LADDER_RUNGS];
        bool kept[LADDER_RUNGS];
        struct heap_count before = heap_count;
        for (unsigned r = 0; r < LADDER_RUNGS; r++) {
                caches[r] = ladder_rungs[r]->create(8);
                size_t hit = ladder_rungs[r]->lookup(caches[r], query, query_len, true, replies[r],
                                                     DNS_MAX_MESSAGE, &token);
                assert_int_equal(hit, 0);
                kept[r] = ladder_rungs[r]->insert(caches[r], &token, response, len);
                assert_int_equal(ladder_rungs[r]->entries(caches[r]), kept[r]);
        }
        for (unsigned r = 0; r < SARDINE; r++)
                if (kept[r] != kept[SARDINE])
                        fail_msg("line %u: %s %s what sardine %s", line, ladder_rungs[r]->name,
                                 kept[r] ? "keeps" : "refuses", kept[SARDINE] ? "keeps" : "refuses");
        tally->kept += kept[0];
        tally->refused += !kept[0];
        for (unsigned c = 0; kept[0] && c < CLIENTS; c++) {
                query_len = make_query(response, len, &clients[c], query);
                assert_true(look_up(caches, query, query_len, line));
                if (clients[c].dnssec_ok && !is_whole(response, len))
                        fail_msg("line %u: records are missing", line);
        }
        if (kept[0]) { /* TTLs go down, and nothing outlives them */
                uint64_t start = clock_now;
                clock_now += 1000;
                look_up(caches, query, query_len, line);
                clock_now = start + 90000 * UINT64_C(1000);
                assert_false(look_up(caches, query, query_len, line));
                clock_now = start;
        }
        for (unsigned r = 0; r < LADDER_RUNGS; r++)
                ladder_rungs[r]->destroy(caches[r]);
        assert_int_equal(heap_count.blocks, before.blocks);
        assert_int_equal(heap_count.bytes, before.bytes);
}

static void rungs_agree_on_the_corpus(void **state)
{
        (void)state;
        struct tally tally = {0, 0};
        assert_int_not_equal(corpus_read(corpus, try_response, &tally), 0);
        print_message("%u responses kept by all rungs, %u by none\n", tally.kept, tally.refused);
        assert_true(tally.kept > 1000);
}

static void rungs_agree_on_the_workload(void **state)
{
        (void)state;
        enum { N = 2000 };
        void *caches[LADDER_RUNGS];
        uint64_t bytes[LADDER_RUNGS];
        uint8_t query[WORKLOAD_QUERY_MAX], response[WORKLOAD_RESPONSE_MAX], buf[WORKLOAD_RESPONSE_MAX];
        static union ladder_token token;
        for (unsigned r = 0; r < LADDER_RUNGS; r++) {
                uint64_t before = heap_count.bytes;
                caches[r] = ladder_rungs[r]->create(N);
                for (unsigned i = 0; i < N; i++) {
                        size_t len = workload_query(1, i, query);
                        size_t response_len = workload_response(query, len, TTL, false, response);
                        assert_int_equal(
                            ladder_rungs[r]->lookup(caches[r], query, len, false, buf, sizeof buf, &token),
                            0);
                        assert_true(ladder_rungs[r]->insert(caches[r], &token, response, response_len));
                }
                assert_int_equal(ladder_rungs[r]->entries(caches[r]), N);
                bytes[r] = heap_count.bytes - before;
        }
        for (unsigned i = 0; i < N; i++) {
                size_t len = workload_query(1, i, query);
                size_t response_len = workload_response(query, len, TTL, false, response);
                assert_true(look_up(caches, query, len, i));
                /* Here nothing is left to choose: to the byte what the upstream sent. */
                for (unsigned r = 0; r < LADDER_RUNGS; r++) {
                        assert_int_equal(lens[r], response_len);
                        assert_memory_equal(replies[r], response, response_len);
                }
        }
        for (unsigned r = 1; r < SARDINE; r++)
                assert_true(bytes[r] < bytes[r - 1]);
        for (unsigned r = 0; r < LADDER_RUNGS; r++)
                ladder_rungs[r]->destroy(caches[r]);
}

int main(int argc, char **argv)
{
        if (argc != 2) {
                fprintf(stderr, "usage: %s responses.txt\n", argv[0]);
                return 2;
        }
        corpus = argv[1];
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(rungs_agree_on_the_corpus),
            cmocka_unit_test(rungs_agree_on_the_workload),
        };
        return cmocka_run_group_tests(tests, setup, NULL);
}
