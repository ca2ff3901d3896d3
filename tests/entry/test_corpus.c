/* SPDX-License-Identifier: MIT
 * Every message of the corpus that is fit to be kept: encoded, rendered, and compared by ldns, which shares
 * no code with us. */
#include "message.h"

#include <ldns/ldns.h>

#include "wire/bytes.h"
#include "wire/corpus.h"
#include "wire/name.h"
#include "wire/rdata.h"

static const char *corpus;
static struct taken taken;
static struct message reply, other;
static struct wire_rr reply_rrs[WIRE_RRS_MAX];

/* One message of the corpus, if it is kept. */
typedef void (*kept_fn)(const uint8_t *packet, size_t len);

/* Queries are made here from the name's bytes: corpus names hold more than text does. */
static struct wire_query query;
static unsigned try_ask(bool mixed, bool cd, bool ad, uint16_t size, bool dnssec_ok)
{
        const struct wire_response *response = &taken.response;
        static struct message message;
        message_start(&message,
                      (uint16_t)((response->flags2 & DNS_RD) << 8 | (cd ? DNS_CD : 0) | (ad ? DNS_AD : 0)));
        put_be16(message.bytes + 4, 1);
        uint8_t name[WIRE_NAME_MAX];
        wire_name_fold(name, response->qname, response->qname_len);
        for (size_t i = 0; mixed && i < response->qname_len; i++) {
                if (name[i] >= 'a' && name[i] <= 'z' && (i * 7 + message.len) % 3 != 0)
                        name[i] = (uint8_t)(name[i] - 0x20);
        }
        put_bytes(&message, name, response->qname_len);
        put_u16(&message, response->qtype);
        put_u16(&message, DNS_IN);
        if (size != 0)
                put_opt(&message, size, dnssec_ok ? 0x8000 : 0, NULL, 0);
        return wire_query_parse(message.bytes, message.len, &query);
}

static void ask(bool mixed, bool cd, bool ad, uint16_t size, bool dnssec_ok)
{
        assert_int_equal(try_ask(mixed, cd, ad, size, dnssec_ok), 0);
}

struct pass {
        kept_fn fn;
        unsigned kept;
};

static void pass_message(void *ctx, unsigned line, const char *kind, const uint8_t *packet, size_t len)
{
        struct pass *pass = ctx;
        (void)line;
        (void)kind;
        if (assess(&taken, packet, len) != 0 || taken.response.qname == NULL ||
            (taken.response.flags2 & DNS_TC) != 0)
                return;
        if (try_ask(false, false, false, 0, false) != 0) /* a question that is never kept */
                return;
        pass->kept++;
        pass->fn(packet, len);
}

static void for_all(kept_fn fn)
{
        struct pass pass = {.fn = fn};
        unsigned messages = corpus_read(corpus, pass_message, &pass);
        print_message("%u of %u messages are kept\n", pass.kept, messages);
        assert_in_range(pass.kept, 1000, messages);
}

static struct render_result render(uint16_t limit, struct message *out)
{
        struct render_result result;
        struct render_params params = {
            .query = &query,
            .now = TEST_NOW,
            .limit = limit,
            .udp_payload_size = 1232,
            .add_ede = -1,
        };
        assert_true(entry_render(taken.entry, &params, out->bytes, sizeof out->bytes, &result));
        assert_in_range(result.len, 0, limit);
        out->len = result.len;
        return result;
}

static ldns_pkt *parse(const uint8_t *packet, size_t len)
{
        ldns_pkt *pkt = NULL;
        if (ldns_wire2pkt(&pkt, packet, len) != LDNS_STATUS_OK)
                return NULL;
        return pkt;
}

/* Rdata without compression, in its own case. */
static size_t uncompressed(const ldns_rr *rr, uint8_t *out)
{
        ldns_buffer *buffer = ldns_buffer_new(DNS_MAX_MESSAGE);
        assert_int_equal(ldns_rr_rdata2buffer_wire(buffer, rr), LDNS_STATUS_OK);
        size_t len = ldns_buffer_position(buffer);
        memcpy(out, ldns_buffer_begin(buffer), len);
        ldns_buffer_free(buffer);
        return len;
}

/* Which bytes of the uncompressed rdata follow the question's case. */
static void mark_followers(const struct wire_rr *rr, bool *follows)
{
        const struct wire_response *response = &taken.response;
        const struct rdata_shape *shape = rdata_shape(rr->type);
        size_t at = rr->rdata, out = 0;
        memset(follows, 0, DNS_MAX_MESSAGE);
        for (const struct rdata_field *field = shape->fields; field->kind != RDATA_END; field++) {
                if (field->kind == RDATA_REST)
                        return;
                size_t len = field->kind == RDATA_FIXED ? field->size : response->packet[at] + 1u;
                if (field->kind == RDATA_NAME) {
                        struct wire_name name;
                        uint32_t work = WIRE_WORK_MAX;
                        len = wire_name_expand(response->packet, response->len, at, response->qname_len,
                                               &work, &name);
                        for (size_t i = name.from_question; i < name.len && shape->compress; i++)
                                follows[out + i] = true;
                        out += name.len;
                } else {
                        out += len;
                }
                at += len;
        }
}

static void same_dname(const ldns_rdf *a, const ldns_rdf *b)
{
        assert_int_equal(ldns_rdf_size(a), ldns_rdf_size(b));
        assert_true(wire_name_equal(ldns_rdf_data(a), ldns_rdf_data(b), ldns_rdf_size(a)));
}

static void same_record(const ldns_rr *original, const ldns_rr *rendered, const struct wire_rr *rr)
{
        static uint8_t a[DNS_MAX_MESSAGE], b[DNS_MAX_MESSAGE];
        static bool follows[DNS_MAX_MESSAGE];
        assert_int_equal(ldns_rr_get_type(original), rr->type);
        assert_int_equal(ldns_rr_get_type(rendered), rr->type);
        assert_int_equal(ldns_rr_get_class(rendered), ldns_rr_get_class(original));
        assert_int_equal(ldns_rr_ttl(rendered), rr->ttl);
        same_dname(ldns_rr_owner(original), ldns_rr_owner(rendered));
        size_t len = uncompressed(original, a);
        assert_int_equal(uncompressed(rendered, b), len);
        mark_followers(rr, follows);
        for (size_t i = 0; i < len; i++) {
                if (follows[i])
                        assert_int_equal(wire_fold(a[i]), wire_fold(b[i]));
                else
                        assert_int_equal(a[i], b[i]);
        }
}

static const ldns_rr_list *section_of(const ldns_pkt *pkt, unsigned section)
{
        return section == WIRE_ANSWER      ? ldns_pkt_answer(pkt)
               : section == WIRE_AUTHORITY ? ldns_pkt_authority(pkt)
                                           : ldns_pkt_additional(pkt);
}

/* Owners that the message itself pointed at its question, or that are its question, have the client's case.
 */
static void check_owner_case(const struct wire_rr *rr, const ldns_rr *rendered)
{
        const struct wire_response *response = &taken.response;
        struct wire_name name;
        uint32_t work = WIRE_WORK_MAX;
        wire_name_expand(response->packet, response->len, rr->owner, response->qname_len, &work, &name);
        const uint8_t *owner = ldns_rdf_data(ldns_rr_owner(rendered));
        if (name.len == query.qname_len && wire_name_equal(name.bytes, query.qname, name.len))
                assert_memory_equal(owner, query.qname, name.len);
        else
                assert_memory_equal(owner, name.bytes, name.from_question);
}

static void equal_for_the_asker(const uint8_t *packet, size_t len)
{
        ldns_pkt *original = parse(packet, len);
        assert_non_null(original);
        encode_assessed(&taken, false);
        ask(true, false, false, 4096, true);
        struct render_result result = render(DNS_MAX_MESSAGE, &reply);
        assert_false(result.truncated);
        assert_memory_equal(reply.bytes, query.packet, 2);
        assert_memory_equal(reply.bytes + DNS_HEADER, query.qname, wire_query_question_len(&query));
        /* All header bits, but for those of this client. */
        assert_int_equal(reply.bytes[2], packet[2]);
        enum {
                Z = 0x40, /* must be 0 (RFC 1035 s4.1.1), and is in ours */
        };
        assert_int_equal(reply.bytes[3] | DNS_CD, (packet[3] | DNS_CD) & ~Z);
        assert_int_equal(result.rcode, packet[3] & DNS_RCODE_MASK);

        ldns_pkt *rendered = parse(reply.bytes, reply.len);
        assert_non_null(rendered);
        assert_true(ldns_pkt_edns(rendered));
        assert_true(ldns_pkt_edns_do(rendered));
        assert_int_equal(ldns_pkt_edns_udp_size(rendered), 1232);
        const struct wire_rr *rr = taken.rrs;
        for (unsigned section = WIRE_ANSWER; section <= WIRE_ADDITIONAL; section++) {
                const ldns_rr_list *a = section_of(original, section), *b = section_of(rendered, section);
                assert_int_equal(ldns_rr_list_rr_count(a), ldns_rr_list_rr_count(b));
                for (size_t i = 0; i < ldns_rr_list_rr_count(a); i++, rr++) {
                        assert_int_equal(rr->section, section);
                        same_record(ldns_rr_list_rr(a, i), ldns_rr_list_rr(b, i), rr);
                        check_owner_case(rr, ldns_rr_list_rr(b, i));
                }
        }
        assert_ptr_equal(rr, taken.rrs + taken.response.count);
        ldns_pkt_free(original);
        ldns_pkt_free(rendered);
}

static void b08_b65_b78_rendered_is_what_came(void **state)
{
        (void)state;
        for_all(equal_for_the_asker);
}

static bool only_with_do(uint16_t type)
{
        return type == DNS_RRSIG || type == DNS_NSEC || type == DNS_NSEC3;
}

/* The reply against the unlimited one for the same client. */
static void check_for_client(uint16_t size, bool dnssec_ok, bool ad, bool cd, uint16_t limit)
{
        struct wire_response full, limited;
        static struct wire_rr full_rrs[WIRE_RRS_MAX];
        ask(true, cd, ad, size, dnssec_ok);
        assert_false(render(DNS_MAX_MESSAGE, &other).truncated);
        bool truncated = render(limit, &reply).truncated;
        parse_reply(&other, &full, full_rrs);
        parse_reply(&reply, &limited, reply_rrs);

        assert_memory_equal(reply.bytes + DNS_HEADER, query.qname, wire_query_question_len(&query));
        assert_int_equal((limited.flags2 & DNS_TC) != 0, truncated);
        assert_int_equal((limited.flags3 & DNS_CD) != 0, cd);
        if (!ad && !dnssec_ok)
                assert_int_equal(limited.flags3 & DNS_AD, 0);
        else
                assert_int_equal(limited.flags3 & DNS_AD, taken.response.flags3 & DNS_AD);
        assert_int_equal(limited.edns, size != 0);
        assert_int_equal(limited.dnssec_ok, dnssec_ok);

        uint32_t needed = 0, got = 0;
        for (uint32_t i = 0; i < full.count; i++)
                needed += full_rrs[i].section != WIRE_ADDITIONAL;
        for (uint32_t i = 0; i < limited.count; i++)
                got += reply_rrs[i].section != WIRE_ADDITIONAL;
        if (truncated)
                assert_true(other.len > limit);
        else
                assert_int_equal(needed, got);
        if (other.len <= limit) {
                assert_false(truncated);
                assert_int_equal(reply.len, other.len);
                assert_memory_equal(reply.bytes, other.bytes, reply.len);
        }

        ldns_pkt *pkt = parse(reply.bytes, reply.len);
        assert_non_null(pkt);
        assert_int_equal(ldns_pkt_edns(pkt), size != 0);
        uint32_t seen = 0;
        for (unsigned section = WIRE_ANSWER; section <= WIRE_ADDITIONAL; section++) {
                const ldns_rr_list *list = section_of(pkt, section);
                seen += (uint32_t)ldns_rr_list_rr_count(list);
                for (size_t i = 0; i < ldns_rr_list_rr_count(list) && !dnssec_ok; i++) {
                        uint16_t type = (uint16_t)ldns_rr_get_type(ldns_rr_list_rr(list, i));
                        assert_false(only_with_do(type) && type != query.qtype && query.qtype != DNS_ANY);
                }
        }
        assert_int_equal(seen, limited.count);
        ldns_pkt_free(pkt);
}

static void good_for_every_client(const uint8_t *packet, size_t len)
{
        (void)packet;
        (void)len;
        for (unsigned bits = 0; bits < 4; bits++) {
                bool ad = bits & 1, cd = bits & 2;
                encode_assessed(&taken, cd);
                check_for_client(0, false, ad, cd, 512);
                static const uint16_t sizes[] = {512, 1232, 4096};
                for (unsigned i = 0; i < 3; i++) {
                        check_for_client(sizes[i], false, ad, cd, sizes[i]);
                        check_for_client(sizes[i], true, ad, cd, sizes[i]);
                }
        }
}

static void b07_b46_b49_b54_b55_good_for_every_client(void **state)
{
        (void)state;
        for_all(good_for_every_client);
}

/* Encoding what was rendered gives the same entry again, whatever the case and whoever asked. */
static void same_again(const uint8_t *packet, size_t len)
{
        (void)packet;
        (void)len;
        encode_assessed(&taken, false);
        ask(true, false, true, 4096, true);
        render(DNS_MAX_MESSAGE, &reply);
        static struct taken second;
        parse_reply(&reply, &second.response, second.rrs);
        second.response.rrs = second.rrs;
        second.params = taken.params;
        encode_assessed(&second, false);
        render(DNS_MAX_MESSAGE, &other);
        assert_int_equal(reply.len, other.len);
        assert_memory_equal(reply.bytes, other.bytes, reply.len);

        struct render_params params = {.query = &query,
                                       .now = TEST_NOW,
                                       .limit = DNS_MAX_MESSAGE,
                                       .udp_payload_size = 1232,
                                       .add_ede = -1};
        struct render_result result;
        assert_true(entry_render(second.entry, &params, other.bytes, sizeof other.bytes, &result));
        assert_int_equal(result.len, reply.len);
        assert_memory_equal(other.bytes, reply.bytes, reply.len);
}

static void b81_the_same_bytes_again(void **state)
{
        (void)state;
        for_all(same_again);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(b08_b65_b78_rendered_is_what_came),
            cmocka_unit_test(b07_b46_b49_b54_b55_good_for_every_client),
            cmocka_unit_test(b81_the_same_bytes_again),
        };
        if (argc != 2)
                return 2;
        corpus = argv[1];
        return cmocka_run_group_tests(tests, NULL, NULL);
}
