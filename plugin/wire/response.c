/* SPDX-License-Identifier: MIT */
#include "wire/response.h"

#include "sardine.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/edns.h"
#include "wire/name.h"
#include "wire/rdata.h"

enum {
        OWNER = 2,     /* a pointer */
        RR_FIXED = 10, /* type, class, ttl, rdlength */
        TTL_MAX = 0x7fffffff,
        /* Types from here to 255 belong to questions and transactions, not to data (RFC 6895 s3.1). */
        META_FIRST = 128,
        META_LAST = 255,
        POINTER = 0xc000,
        TO_QUESTION = POINTER | DNS_HEADER,
};

struct parser {
        const uint8_t *packet;
        size_t len;
        size_t at;
        size_t question_len; /* of the name */
        uint32_t work;
        uint16_t proven; /* the last pointer that was an owner: what it points at expands */
        struct wire_response *response;
};

static unsigned malformed(const struct parser *parser)
{
        return parser->work == 0 ? SARDINE_REFUSED_COMPLEX : SARDINE_REFUSED_MALFORMED;
}

/* Records of one RRset repeat the same pointer: it is followed once. The OPT's owner is the root. */
static inline bool parse_owner(struct parser *parser)
{
        const uint8_t *p = parser->packet + parser->at;
        size_t left = parser->len - parser->at;
        uint16_t pointer = 0;
        if (left >= 2)
                pointer = get_be16(p);
        bool known = pointer >= POINTER && pointer == parser->proven;
        if ((known || (left >= 1 && *p == 0)) && parser->work > 0) {
                parser->work--;
                parser->at += known ? 2 : 1;
                return true;
        }
        struct wire_name name;
        size_t taken = wire_name_expand(parser->packet, parser->len, parser->at, parser->question_len,
                                        &parser->work, &name);
        if (taken == 2 && pointer >= POINTER)
                parser->proven = pointer;
        parser->at += taken;
        return taken != 0;
}

static unsigned parse_options(struct wire_response *response, const uint8_t *p, const uint8_t *end)
{
        while (p < end) {
                uint16_t code, len;
                const uint8_t *data = edns_option(p, end, &code, &len);
                if (data == NULL)
                        return SARDINE_REFUSED_MALFORMED;
                if (code == EDNS_ECS) {
                        if (response->ecs.family != ECS_NONE || !wire_ecs_parse(data, len, &response->ecs))
                                return SARDINE_REFUSED_MALFORMED;
                } else if (code == EDNS_EDE) {
                        if (len < 2)
                                return SARDINE_REFUSED_MALFORMED;
                        if (response->ede_count < WIRE_EDE_MAX)
                                response->ede[response->ede_count++] = (struct wire_ede){
                                    .code = get_be16(data), .text = data + 2, .text_len = len - 2};
                }
                p = data + len;
        }
        return SARDINE_REASON_NONE;
}

/* `p`: the fixed part. The VERSION is not looked at: a responder may show there what it could do, in a
 * message that has the format of the version that was asked for (RFC 6891 s6.1.3). */
static unsigned parse_opt(struct wire_response *response, const uint8_t *p)
{
        if (response->edns)
                return SARDINE_REFUSED_MALFORMED;
        response->edns = true;
        response->rcode |= (uint16_t)(p[4] << 4);
        response->dnssec_ok = (p[6] & 0x80) != 0;
        return parse_options(response, p + RR_FIXED, p + RR_FIXED + get_be16(p + 8));
}

static bool is_data(uint16_t type)
{
        return type != 0 && type != DNS_OPT && type != DNS_TSIG && (type < META_FIRST || type > META_LAST);
}

/* A row of records as most messages begin with one, and many have nothing else: a pointer to the question's
 * name, the question's type, IN. Returns how many; the first one that is not such, or not right, ends it and
 * is parse_rr()'s. */
static uint32_t parse_row(struct parser *parser, uint32_t most)
{
        struct wire_response *response = parser->response;
        const uint16_t type = response->qtype;
        if (response->qname == NULL || !is_data(type) || type == DNS_SIG)
                return 0;
        const uint8_t *packet = parser->packet;
        const uint32_t start = (uint32_t)TO_QUESTION << 16 | type;
        const size_t len = parser->len, fixed_len = rdata_shape(type)->fixed_len;
        size_t at = parser->at;
        uint32_t count = 0;
        for (; count < most && len - at >= OWNER + RR_FIXED && parser->work > 0; count++) {
                const uint8_t *p = packet + at;
                uint32_t ttl = get_be32(p + 6);
                size_t rdata = at + OWNER + RR_FIXED, rdlen = get_be16(p + 10);
                if (get_be32(p) != start || get_be16(p + 4) != DNS_IN || len - rdata < rdlen)
                        break;
                uint32_t work = parser->work - 1;
                if (fixed_len ? rdlen != fixed_len
                              : !rdata_check(packet, len, type, rdata, rdlen, parser->question_len, &work))
                        break;
                parser->work = work;
                response->rrs[count] = (struct wire_rr){
                    .ttl = ttl > TTL_MAX ? TTL_MAX : ttl,
                    .owner = (uint16_t)at,
                    .type = type,
                    .rclass = DNS_IN,
                    .rdata = (uint16_t)rdata,
                    .rdlen = (uint16_t)rdlen,
                    .section = WIRE_ANSWER,
                };
                at = rdata + rdlen;
        }
        parser->at = at;
        response->count = count;
        return count;
}

static unsigned parse_rr(struct parser *parser, unsigned section, size_t room)
{
        struct wire_response *response = parser->response;
        size_t owner = parser->at;
        if (!parse_owner(parser))
                return malformed(parser);
        const uint8_t *p = parser->packet + parser->at;
        if (parser->len - parser->at < RR_FIXED)
                return SARDINE_REFUSED_MALFORMED;
        uint16_t type = get_be16(p), rclass = get_be16(p + 2), rdlen = get_be16(p + 8);
        uint32_t ttl = get_be32(p + 4);
        size_t rdata = parser->at + RR_FIXED;
        if (parser->len - rdata < rdlen)
                return SARDINE_REFUSED_MALFORMED;
        parser->at = rdata + rdlen;

        if (type == DNS_OPT) {
                if (section != WIRE_ADDITIONAL || parser->packet[owner] != 0)
                        return SARDINE_REFUSED_MALFORMED;
                return parse_opt(response, p);
        }
        /* A signed transaction is between two parties (RFC 8945, RFC 2931): no answer for anybody else. */
        if (type == DNS_TSIG || (type == DNS_SIG && rdlen >= 2 && get_be16(p + RR_FIXED) == 0))
                return SARDINE_REFUSED_MISMATCH;
        if (!is_data(type) || rclass != DNS_IN)
                return SARDINE_REFUSED_MALFORMED;
        if (!rdata_check(parser->packet, parser->len, type, rdata, rdlen, parser->question_len,
                         &parser->work))
                return malformed(parser);
        if (response->count == room)
                return SARDINE_REFUSED_COMPLEX;
        response->rrs[response->count++] = (struct wire_rr){
            .ttl = ttl > TTL_MAX ? TTL_MAX : ttl,
            .owner = (uint16_t)owner,
            .type = type,
            .rclass = rclass,
            .rdata = (uint16_t)rdata,
            .rdlen = rdlen,
            .section = (uint16_t)section,
        };
        return SARDINE_REASON_NONE;
}

static unsigned parse_question(struct parser *parser)
{
        struct wire_response *response = parser->response;
        const uint8_t *end = parser->packet + parser->len;
        const uint8_t *qname = parser->packet + DNS_HEADER;
        size_t qname_len = wire_name_length(qname, end);
        const uint8_t *p = qname + qname_len;
        if (qname_len == 0 || end - p < 4)
                return SARDINE_REFUSED_MALFORMED;
        response->qname = qname;
        response->qname_len = (uint8_t)qname_len;
        response->qtype = get_be16(p);
        response->qclass = get_be16(p + 2);
        parser->question_len = qname_len;
        parser->proven = TO_QUESTION;
        parser->at += qname_len + 4;
        return SARDINE_REASON_NONE;
}

unsigned wire_response_parse(const uint8_t *packet, size_t len, struct wire_rr *rrs, size_t room,
                             struct wire_response *response)
{
        if (len < DNS_HEADER || len > DNS_MAX_MESSAGE)
                return SARDINE_REFUSED_MALFORMED;
        if ((packet[2] & (DNS_QR | DNS_OPCODE_MASK)) != DNS_QR)
                return SARDINE_REFUSED_MISMATCH;
        unsigned questions = get_be16(packet + 4);
        if (questions > 1)
                return SARDINE_REFUSED_MISMATCH;

        /* Field by field: most of it is room for what hardly any message has. */
        response->packet = packet;
        response->len = len;
        response->qname = NULL;
        response->rrs = rrs;
        response->count = 0;
        response->qtype = response->qclass = 0;
        response->rcode = packet[3] & DNS_RCODE_MASK;
        response->qname_len = 0;
        response->flags2 = packet[2];
        response->flags3 = packet[3];
        response->edns = response->dnssec_ok = response->plain = false;
        response->ede_count = 0;
        response->ecs.family = ECS_NONE;
        struct parser parser = {
            .packet = packet,
            .len = len,
            .at = DNS_HEADER,
            .work = WIRE_WORK_MAX,
            .response = response,
        };
        if (questions == 1) {
                unsigned reason = parse_question(&parser);
                if (reason != SARDINE_REASON_NONE)
                        return reason;
        }
        const unsigned answers = get_be16(packet + 6);
        const uint32_t row = parse_row(&parser, answers < room ? answers : (uint32_t)room);
        for (unsigned section = WIRE_ANSWER; section <= WIRE_ADDITIONAL; section++) {
                unsigned left = get_be16(packet + 6 + 2 * section);
                if (section == WIRE_ANSWER)
                        left -= row;
                for (; left > 0; left--) {
                        unsigned reason = parse_rr(&parser, section, room);
                        if (reason != SARDINE_REASON_NONE)
                                return reason;
                }
        }
        response->plain = row > 0 && response->count == row;
        return parser.at == len ? SARDINE_REASON_NONE : SARDINE_REFUSED_MALFORMED;
}
