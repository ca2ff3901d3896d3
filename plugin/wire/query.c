/* SPDX-License-Identifier: MIT */
#include "wire/query.h"

#include "sardine.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/edns.h"
#include "wire/name.h"

/* Types that ask for a transfer, for transaction data, or for nothing (RFC 6895 s3.1). ANY is an ordinary
 * question here. */
static bool is_cacheable_type(uint16_t type)
{
        return type != 0 && type != DNS_OPT && (type < DNS_TKEY || type > DNS_MAILA);
}

/* Where the record's fixed part begins, after an owner that need not make sense; NULL: no such place. */
static const uint8_t *skip_owner(const uint8_t *p, const uint8_t *end)
{
        while (p < end && *p != 0 && *p < 0x40)
                p += *p + 1;
        if (p >= end)
                return NULL;
        return *p == 0 ? p + 1 : end - p < 2 ? NULL : p + 2;
}

static unsigned parse_options(struct wire_query *query, const uint8_t *p, const uint8_t *end)
{
        query->options = p;
        query->options_len = (uint16_t)(end - p);
        while (p < end) {
                uint16_t code, len;
                const uint8_t *data = edns_option(p, end, &code, &len);
                if (data == NULL)
                        return SARDINE_BYPASS_MALFORMED;
                if (code == EDNS_ECS) {
                        /* One at most, and a query's scope is 0 (RFC 7871 s6). */
                        if (query->ecs.family != ECS_NONE || !wire_ecs_parse(data, len, &query->ecs) ||
                            query->ecs.scope != 0)
                                return SARDINE_BYPASS_MALFORMED;
                } else if (code == EDNS_PADDING) {
                        query->padded = true;
                }
                p = data + len;
        }
        return SARDINE_REASON_NONE;
}

static unsigned parse_additional(struct wire_query *query, const uint8_t *p, const uint8_t *end,
                                 unsigned count)
{
        for (; count > 0; count--) {
                const uint8_t *fixed = skip_owner(p, end);
                if (fixed == NULL || end - fixed < DNS_OPT_FIXED - 1)
                        return SARDINE_BYPASS_MALFORMED;
                if (get_be16(fixed) != DNS_OPT)
                        return SARDINE_BYPASS_RECORDS;
                if (*p != 0 || query->edns)
                        return SARDINE_BYPASS_MALFORMED;
                uint16_t size = get_be16(fixed + 2);
                uint16_t rdlen = get_be16(fixed + 8);
                p = fixed + 10;
                if (end - p < rdlen)
                        return SARDINE_BYPASS_MALFORMED;
                if (fixed[5] != 0)
                        return SARDINE_BYPASS_EDNS_VERSION;
                query->edns = true;
                query->dnssec_ok = (fixed[6] & 0x80) != 0;
                if (size > DNS_MIN_UDP)
                        query->udp_size = size;
                unsigned reason = parse_options(query, p, p + rdlen);
                if (reason != SARDINE_REASON_NONE)
                        return reason;
                p += rdlen;
        }
        return p == end ? SARDINE_REASON_NONE : SARDINE_BYPASS_TRAILING;
}

unsigned wire_query_parse(const uint8_t *packet, size_t len, struct wire_query *query)
{
        if (len < DNS_HEADER || len > DNS_MAX_MESSAGE)
                return SARDINE_BYPASS_MALFORMED;
        if ((packet[2] & (DNS_QR | DNS_OPCODE_MASK)) != 0)
                return SARDINE_BYPASS_NOT_QUERY;
        /* A query that says it was cut is not whole (RFC 1035 s4.1.1): nobody can tell what it asked for. */
        if ((packet[2] & DNS_TC) != 0)
                return SARDINE_BYPASS_MALFORMED;
        if (get_be16(packet + 4) != 1)
                return SARDINE_BYPASS_QDCOUNT;

        const uint8_t *end = packet + len;
        const uint8_t *qname = packet + DNS_HEADER;
        size_t qname_len = wire_name_length(qname, end);
        const uint8_t *p = qname + qname_len;
        if (qname_len == 0 || end - p < 4)
                return SARDINE_BYPASS_MALFORMED;

        *query = (struct wire_query){
            .packet = packet,
            .qname = qname,
            .qname_len = (uint8_t)qname_len,
            .qtype = get_be16(p),
            .qclass = get_be16(p + 2),
            .udp_size = DNS_MIN_UDP,
            .rd = (packet[2] & DNS_RD) != 0,
            .cd = (packet[3] & DNS_CD) != 0,
            .ad = (packet[3] & DNS_AD) != 0,
        };
        if (!is_cacheable_type(query->qtype))
                return SARDINE_BYPASS_QTYPE;
        if (query->qclass != DNS_IN)
                return SARDINE_BYPASS_QCLASS;
        if (get_be32(packet + 6) != 0) /* ANCOUNT and NSCOUNT */
                return SARDINE_BYPASS_RECORDS;
        return parse_additional(query, p + 4, end, get_be16(packet + 10));
}
