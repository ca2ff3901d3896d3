/* SPDX-License-Identifier: MIT */
#include "lifetime.h"

#include <string.h>

#include "sardine.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/name.h"

static uint32_t min_u32(uint32_t a, uint32_t b)
{
        return a < b ? a : b;
}

/* Names met while looking through a message, each read with a share of the same bounded work (B64). */
struct reader {
        const struct wire_response *response;
        uint32_t work;
};

static bool read_name(struct reader *reader, size_t off, struct wire_name *name)
{
        const struct wire_response *response = reader->response;
        return wire_name_expand(response->packet, response->len, off, response->qname_len, &reader->work,
                                name) != 0;
}

static bool same_name(const struct wire_name *a, const struct wire_name *b)
{
        return a->len == b->len && wire_name_equal(a->bytes, b->bytes, a->len);
}

/* The same bytes at both places and nothing but a pointer: the same name, without looking. */
static bool same_pointer(const struct wire_response *response, size_t a, size_t b)
{
        const uint8_t *packet = response->packet;
        return packet[a] >= 0xc0 && packet[a] == packet[b] && packet[a + 1] == packet[b + 1];
}

/* Replace the owner's labels at the end of `name` by the target's (RFC 6672 s2.2). */
static bool substitute(struct wire_name *name, const struct wire_name *owner, const struct wire_name *target)
{
        if (name->labels <= owner->labels)
                return false;
        size_t at = 0;
        for (unsigned i = owner->labels; i < name->labels; i++)
                at += name->bytes[at] + 1u;
        if (at + owner->len != name->len || !wire_name_equal(name->bytes + at, owner->bytes, owner->len) ||
            at + target->len > WIRE_NAME_MAX)
                return false;
        name->labels = (uint8_t)(name->labels - owner->labels + target->labels);
        memcpy(name->bytes + at, target->bytes, target->len);
        name->len = (uint8_t)(at + target->len);
        return true;
}

enum chain {
        CHAIN_DATA,  /* it ends at data of the question's type */
        CHAIN_ALIAS, /* it ends at an alias whose target has none */
        CHAIN_NONE,  /* nothing for the question's name */
        CHAIN_TOO_LONG,
};

/* Follow the question's name through the answer section (RFC 1034 s3.6.2, RFC 6672). Records are taken round
 * and round from where the last alias was, so that a chain in its usual order costs one pass; work is bounded
 * for any other. */
static enum chain follow_chain(struct reader *reader)
{
        const struct wire_response *response = reader->response;
        uint32_t answers = 0;
        while (answers < response->count && response->rrs[answers].section == WIRE_ANSWER)
                answers++;
        if (answers == 0 || response->qname == NULL)
                return CHAIN_NONE;
        if (response->qtype == DNS_ANY)
                return CHAIN_DATA;
        /* The common case needs no name: data for the very question, pointed at. */
        const struct wire_rr *first = &response->rrs[0];
        if (first->type == response->qtype &&
            get_be16(response->packet + first->owner) == (0xc000 | DNS_HEADER))
                return CHAIN_DATA;

        struct wire_name name, owner, target;
        if (!read_name(reader, DNS_HEADER, &name))
                return CHAIN_TOO_LONG;
        enum chain chain = CHAIN_NONE;
        size_t known = 0;  /* where in the packet the name in `owner` is */
        bool here = false; /* owner and name are the same */
        uint32_t at = 0, aliases = 0;
        for (uint32_t seen = 0; seen < answers; seen++, at = at + 1 == answers ? 0 : at + 1) {
                const struct wire_rr *rr = &response->rrs[at];
                if (reader->work == 0)
                        return CHAIN_TOO_LONG;
                reader->work--;
                if (rr->type != response->qtype && rr->type != DNS_CNAME && rr->type != DNS_DNAME)
                        continue;
                if (known == 0 || !same_pointer(response, known, rr->owner)) {
                        if (!read_name(reader, rr->owner, &owner))
                                return CHAIN_TOO_LONG;
                        here = same_name(&name, &owner);
                        known = rr->owner;
                }
                if (here && rr->type == response->qtype)
                        return CHAIN_DATA;
                if (rr->type != (here ? DNS_CNAME : DNS_DNAME))
                        continue;
                if (!read_name(reader, rr->rdata, &target))
                        return CHAIN_TOO_LONG;
                if (here)
                        name = target;
                else if (!substitute(&name, &owner, &target))
                        continue;
                chain = CHAIN_ALIAS;
                if (++aliases > answers) /* a loop */
                        break;
                here = same_name(&name, &owner);
                seen = UINT32_MAX; /* one more round, from here */
        }
        return chain;
}

/* What the answer is. CHAIN_ALIAS without SOA: a resolver (RA) would have followed the alias, so there is no
 * data and no word on how long; an authoritative server stops where its zones end: that is data. */
static unsigned classify(struct reader *reader, enum lifetime_kind *kind)
{
        const struct wire_response *response = reader->response;
        bool soa = false, ns = false;
        for (uint32_t i = 0; i < response->count; i++) {
                const struct wire_rr *rr = &response->rrs[i];
                if (rr->section != WIRE_AUTHORITY)
                        continue;
                soa |= rr->type == DNS_SOA;
                ns |= rr->type == DNS_NS;
        }

        enum chain chain = CHAIN_NONE;
        if (response->rcode == DNS_NOERROR)
                chain = follow_chain(reader);
        if (chain == CHAIN_TOO_LONG)
                return SARDINE_REFUSED_COMPLEX;
        *kind = LIFETIME_POSITIVE;
        if (chain == CHAIN_DATA)
                return SARDINE_REASON_NONE;
        if (soa) {
                *kind = LIFETIME_NEGATIVE;
                return SARDINE_REASON_NONE;
        }
        if (response->rcode == DNS_NXDOMAIN)
                return SARDINE_REFUSED_NO_SOA;
        bool referral = ns && (response->count == 0 || response->rrs[0].section != WIRE_ANSWER);
        bool leaves_zone = chain == CHAIN_ALIAS && (response->flags3 & DNS_RA) == 0;
        return referral || leaves_zone ? SARDINE_REASON_NONE : SARDINE_REFUSED_NO_SOA;
}

/* MINIMUM is the last of the five numbers at the end of the rdata. */
static void limit_soa(struct wire_response *response)
{
        for (uint32_t i = 0; i < response->count; i++) {
                struct wire_rr *rr = &response->rrs[i];
                if (rr->section != WIRE_AUTHORITY || rr->type != DNS_SOA)
                        continue;
                rr->ttl = min_u32(rr->ttl, get_be32(response->packet + rr->rdata + rr->rdlen - 4));
        }
}

/* The type of the RRset that a record belongs to: signatures go with what they cover. */
static uint16_t rrset_type(const struct wire_response *response, const struct wire_rr *rr)
{
        return rr->type == DNS_RRSIG ? get_be16(response->packet + rr->rdata) : rr->type;
}

static bool same_owner(struct reader *reader, size_t a, size_t b)
{
        if (same_pointer(reader->response, a, b))
                return true;
        struct wire_name names[2];
        return read_name(reader, a, &names[0]) && read_name(reader, b, &names[1]) &&
               same_name(&names[0], &names[1]);
}

/* The lowest TTL of a row of records, which is that of all now. */
static uint32_t level(struct wire_rr *rrs, uint32_t first, uint32_t end)
{
        uint32_t ttl = UINT32_MAX;
        for (uint32_t i = first; i < end; i++)
                ttl = min_u32(ttl, rrs[i].ttl);
        for (uint32_t i = first; i < end; i++)
                rrs[i].ttl = ttl;
        return ttl;
}

/* One TTL for an RRset and its signatures, the lowest (RFC 2181 s5.2). Servers send them in a row; when the
 * same RRset is met again further on, it is taken for another one. */
static void level_rrsets(struct reader *reader, struct wire_response *response)
{
        struct wire_rr *rrs = response->rrs;
        for (uint32_t first = 0, end; first < response->count; first = end) {
                uint16_t type = rrset_type(response, &rrs[first]);
                for (end = first + 1; end < response->count; end++)
                        if (rrs[end].section != rrs[first].section ||
                            rrset_type(response, &rrs[end]) != type ||
                            !same_owner(reader, rrs[first].owner, rrs[end].owner))
                                break;
                level(rrs, first, end);
        }
}

/* Data for the question and nothing else, in one RRset: signatures could cover several. */
static bool is_one_rrset(const struct wire_response *response)
{
        return response->rcode == DNS_NOERROR && response->plain && response->qtype != DNS_RRSIG;
}

unsigned lifetime_assess(struct wire_response *response, const struct lifetime_limits *limits, uint32_t *life,
                         enum lifetime_kind *kind)
{
        struct reader reader = {.response = response, .work = WIRE_WORK_MAX};
        uint32_t ttl = limits->max_ttl;

        if (is_one_rrset(response)) {
                uint32_t lowest = level(response->rrs, 0, response->count);
                if (lowest == 0)
                        return SARDINE_REFUSED_TTL_ZERO;
                *kind = LIFETIME_POSITIVE;
                ttl = min_u32(ttl, lowest);
                if (ttl == 0 || ttl < limits->min_ttl)
                        return SARDINE_REFUSED_TTL_SHORT;
                *life = ttl;
                return SARDINE_REASON_NONE;
        }
        switch (response->rcode) {
        case DNS_SERVFAIL:
        case DNS_REFUSED:
                if (limits->failure_ttl == 0)
                        return SARDINE_REFUSED_FAILURE_OFF;
                *kind = LIFETIME_FAILURE;
                ttl = min_u32(ttl, min_u32(limits->failure_ttl, LIFETIME_FAILURE_CAP));
                break;
        case DNS_NOERROR:
        case DNS_NXDOMAIN: {
                unsigned reason = classify(&reader, kind);
                if (reason != SARDINE_REASON_NONE)
                        return reason;
                if (*kind == LIFETIME_NEGATIVE) {
                        ttl = min_u32(ttl, limits->max_negative_ttl);
                        limit_soa(response);
                }
                break;
        }
        default:
                return SARDINE_REFUSED_RCODE;
        }

        reader.work = WIRE_WORK_MAX;
        level_rrsets(&reader, response);
        if (reader.work == 0)
                return SARDINE_REFUSED_COMPLEX;
        for (uint32_t i = 0; i < response->count; i++) {
                if (response->rrs[i].ttl == 0)
                        return SARDINE_REFUSED_TTL_ZERO;
                ttl = min_u32(ttl, response->rrs[i].ttl);
        }
        if (ttl == 0 || (*kind != LIFETIME_FAILURE && ttl < limits->min_ttl))
                return SARDINE_REFUSED_TTL_SHORT;
        *life = ttl;
        return SARDINE_REASON_NONE;
}

uint32_t lifetime_of_signatures(const struct wire_response *response, uint32_t now)
{
        const size_t expiration = 8; /* in the rdata (RFC 4034 s3.1) */
        uint32_t left = UINT32_MAX;
        for (uint32_t i = 0; i < response->count; i++) {
                const struct wire_rr *rr = &response->rrs[i];
                if (rr->type != DNS_RRSIG)
                        continue;
                int32_t mine = (int32_t)(get_be32(response->packet + rr->rdata + expiration) - now);
                if (mine < 0)
                        mine = 0;
                if ((uint32_t)mine < left)
                        left = (uint32_t)mine;
        }
        return left;
}
