/* SPDX-License-Identifier: MIT */
#include "ladder/reply.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/name.h"

enum {
        UDP_LIMIT = 1232,
        POINTER = 0xc000,
};

/* Room for `len` more bytes, or NULL. */
static uint8_t *room(struct reply *reply, size_t len)
{
        if (reply->len + len > reply->limit) {
                reply->full = true;
                return NULL;
        }
        uint8_t *at = reply->buf + reply->len;
        reply->len += len;
        return at;
}

void reply_begin(struct reply *reply, const struct wire_query *query, bool stream, uint8_t *buf, size_t cap)
{
        size_t limit = stream ? DNS_MAX_MESSAGE : query->udp_size < UDP_LIMIT ? query->udp_size : UDP_LIMIT;
        if (limit > cap)
                limit = cap;
        reply->query = query;
        reply->buf = buf;
        reply->len = DNS_HEADER + wire_query_question_len(query);
        reply->limit = limit - (query->edns ? DNS_OPT_FIXED : 0);
        reply->full = false;
        reply->n_names = 0;
        reply->n_ede = 0;
        memcpy(buf, query->packet, reply->len);
        memset(buf + 6, 0, 6);
}

void reply_header(struct reply *reply, uint8_t flags2, uint8_t flags3, uint16_t rcode)
{
        const struct wire_query *query = reply->query;
        if (!query->ad && !query->dnssec_ok)
                flags3 &= (uint8_t)~DNS_AD;
        reply->rcode = rcode;
        reply->buf[2] = (uint8_t)(DNS_QR | (flags2 & DNS_AA) | (query->rd ? DNS_RD : 0));
        reply->buf[3] =
            (uint8_t)((flags3 & (DNS_RA | DNS_AD)) | (query->cd ? DNS_CD : 0) | (rcode & DNS_RCODE_MASK));
}

bool reply_wants(const struct reply *reply, unsigned section, uint16_t type)
{
        if (reply->query->dnssec_ok || type == reply->query->qtype || reply->query->qtype == DNS_ANY)
                return true;
        switch (type) {
        case DNS_RRSIG:
        case DNS_NSEC:
        case DNS_NSEC3:
                return false;
        case DNS_DS:
        case DNS_DNSKEY:
                return section == WIRE_ANSWER;
        default:
                return true;
        }
}

void reply_bytes(struct reply *reply, const void *bytes, size_t len)
{
        uint8_t *at = room(reply, len);
        if (at && len)
                memcpy(at, bytes, len);
}

void reply_u16(struct reply *reply, uint16_t value)
{
        uint8_t *at = room(reply, 2);
        if (at)
                put_be16(at, value);
}

void reply_u32(struct reply *reply, uint32_t value)
{
        uint8_t *at = room(reply, 4);
        if (at)
                put_be32(at, value);
}

/* Remember the labels at `at`, which begin a name of `len` bytes, up to where it was known before. */
static void remember(struct reply *reply, const uint8_t *name, size_t at, size_t len, size_t new_bytes)
{
        for (size_t skip = 0; skip < new_bytes && name[skip]; skip += name[skip] + 1u) {
                if (reply->n_names == REPLY_NAMES || at + skip >= 0x4000)
                        return;
                reply->names[reply->n_names].at = (uint16_t)(at + skip);
                reply->names[reply->n_names++].len = (uint8_t)(len - skip);
        }
}

/* Is the name in the reply at `at` this one? We wrote it, so it need not be distrusted. */
static bool is_there(const struct reply *reply, size_t at, const uint8_t *name)
{
        for (;;) {
                while (reply->buf[at] >= 0xc0)
                        at = get_be16(reply->buf + at) & 0x3fff;
                if (reply->buf[at] != name[0])
                        return false;
                if (!name[0])
                        return true;
                if (!wire_name_equal(reply->buf + at + 1, name + 1, name[0]))
                        return false;
                at += name[0] + 1u;
                name += name[0] + 1u;
        }
}

void reply_name(struct reply *reply, const uint8_t *name, size_t len, bool compress)
{
        const struct wire_query *query = reply->query;
        if (!compress || len == 1) {
                reply_bytes(reply, name, len);
                return;
        }
        if (len == query->qname_len && wire_name_equal(name, query->qname, len)) {
                reply_u16(reply, POINTER | DNS_HEADER);
                return;
        }
        if (!reply->n_names)
                remember(reply, query->qname, DNS_HEADER, query->qname_len, query->qname_len);
        for (size_t skip = 0; name[skip]; skip += name[skip] + 1u) {
                for (unsigned i = 0; i < reply->n_names; i++) {
                        if (reply->names[i].len != len - skip ||
                            !is_there(reply, reply->names[i].at, name + skip))
                                continue;
                        size_t at = reply->len, target = reply->names[i].at;
                        reply_bytes(reply, name, skip);
                        reply_u16(reply, (uint16_t)(POINTER | target));
                        if (!reply->full)
                                remember(reply, name, at, len, skip);
                        return;
                }
        }
        size_t at = reply->len;
        reply_bytes(reply, name, len);
        if (!reply->full)
                remember(reply, name, at, len, len);
}

void reply_record(struct reply *reply, const uint8_t *owner, size_t owner_len, uint16_t type, uint16_t rclass,
                  uint32_t ttl)
{
        if (owner)
                reply_name(reply, owner, owner_len, true);
        else if (reply->query->qname_len == 1)
                reply_bytes(reply, reply->query->qname, 1);
        else
                reply_u16(reply, POINTER | DNS_HEADER);
        uint8_t *at = room(reply, 10);
        if (!at)
                return;
        put_be16(at, type);
        put_be16(at + 2, rclass);
        put_be32(at + 4, ttl);
        reply->record = reply->len;
}

void reply_record_end(struct reply *reply, unsigned section)
{
        if (reply->full)
                return;
        put_be16(reply->buf + reply->record - 2, (uint16_t)(reply->len - reply->record));
        uint8_t *count = reply->buf + 6 + 2 * section;
        put_be16(count, (uint16_t)(get_be16(count) + 1));
}

void reply_error(struct reply *reply, uint16_t code, const uint8_t *text, size_t len)
{
        if (reply->n_ede < WIRE_EDE_MAX)
                reply->ede[reply->n_ede++] = (struct reply_ede){code, (uint16_t)len, text};
}

size_t reply_end(struct reply *reply)
{
        if (reply->full) {
                reply->buf[2] |= DNS_TC;
                memset(reply->buf + 6, 0, 6);
                reply->len = DNS_HEADER + wire_query_question_len(reply->query);
        }
        if (!reply->query->edns)
                return reply->len;
        size_t opt = reply->len;
        reply->limit += DNS_OPT_FIXED;
        uint8_t *at = room(reply, DNS_OPT_FIXED);
        memset(at, 0, DNS_OPT_FIXED);
        put_be16(at + 1, DNS_OPT);
        put_be16(at + 3, UDP_LIMIT);
        at[5] = (uint8_t)(reply->rcode >> 4);
        at[7] = reply->query->dnssec_ok ? 0x80 : 0;
        for (unsigned i = 0; i < reply->n_ede; i++) {
                const struct reply_ede *ede = &reply->ede[i];
                if (reply->len + 6 + ede->len > reply->limit)
                        break;
                reply_u16(reply, EDNS_EDE);
                reply_u16(reply, (uint16_t)(2 + ede->len));
                reply_u16(reply, ede->code);
                reply_bytes(reply, ede->text, ede->len);
        }
        put_be16(reply->buf + opt + 9, (uint16_t)(reply->len - opt - DNS_OPT_FIXED));
        uint8_t *count = reply->buf + 10;
        put_be16(count, (uint16_t)(get_be16(count) + 1));
        return reply->len;
}
