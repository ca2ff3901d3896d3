/* SPDX-License-Identifier: MIT */
#include "ladder/rdata.h"

#include <assert.h>
#include <string.h>

#include "ladder/heap.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/name.h"
#include "wire/rdata.h"

static_assert(sizeof(struct naptr) == 136 && sizeof(union rdata) == 136, "as large as NAPTR");
static_assert(sizeof(struct rdata_value) == 144, "and 8 for the type");

enum { TYPE_NAPTR = 35 };

enum rdata_kind rdata_kind(uint16_t type)
{
        switch (type) {
        case DNS_A:
                return RDATA_A;
        case DNS_AAAA:
                return RDATA_AAAA;
        case DNS_CNAME:
        case DNS_NS:
        case DNS_PTR:
        case DNS_DNAME:
                return RDATA_DOMAIN;
        case DNS_MX:
                return RDATA_MX;
        case DNS_SOA:
                return RDATA_SOA;
        case DNS_SRV:
                return RDATA_SRV;
        case TYPE_NAPTR:
                return RDATA_NAPTR;
        case DNS_SVCB:
        case DNS_HTTPS:
                return RDATA_SVCB;
        case DNS_RRSIG:
                return RDATA_RRSIG;
        case DNS_NSEC:
                return RDATA_NSEC;
        default:
                return RDATA_BYTES;
        }
}

size_t rdata_member_size(enum rdata_kind kind)
{
        static const uint8_t sizes[] = {
            [RDATA_A] = 4,
            [RDATA_AAAA] = 16,
            [RDATA_DOMAIN] = sizeof(struct domain),
            [RDATA_BYTES] = sizeof(struct text),
            [RDATA_MX] = sizeof(struct mx),
            [RDATA_SOA] = sizeof(struct soa),
            [RDATA_SRV] = sizeof(struct srv),
            [RDATA_NAPTR] = sizeof(struct naptr),
            [RDATA_SVCB] = sizeof(struct svcb),
            [RDATA_RRSIG] = sizeof(struct rrsig),
            [RDATA_NSEC] = sizeof(struct nsec),
        };
        return sizes[kind];
}

const uint8_t *rdata_spelled_out(const struct wire_response *response, const struct wire_rr *rr, size_t *len)
{
        static _Thread_local uint8_t out[DNS_MAX_MESSAGE + 2 * WIRE_NAME_MAX];
        const struct rdata_shape *shape = rdata_shape(rr->type);
        const uint8_t *p = response->packet + rr->rdata, *end = p + rr->rdlen;
        *len = rr->rdlen;
        if (!shape->has_name)
                return p;
        uint8_t *to = out;
        for (const struct rdata_field *field = shape->fields; field->kind != RDATA_END; field++) {
                size_t taken = 0;
                if (field->kind == RDATA_NAME) {
                        struct wire_name name;
                        uint32_t work = WIRE_WORK_MAX;
                        size_t at = (size_t)(p - response->packet);
                        p += wire_name_expand(response->packet, response->len, at, response->qname_len, &work,
                                              &name);
                        memcpy(to, name.bytes, name.len);
                        to += name.len;
                        continue;
                }
                if (field->kind == RDATA_FIXED)
                        taken = field->size;
                else
                        taken = field->kind == RDATA_STRING ? p[0] + 1u : (size_t)(end - p);
                memcpy(to, p, taken);
                to += taken;
                p += taken;
        }
        *len = (size_t)(to - out);
        return out;
}

static const uint8_t *take_domain(struct domain *domain, const uint8_t *p, const uint8_t *end)
{
        domain->len = (uint8_t)wire_name_length(p, end);
        domain->elsewhere = domain->len > sizeof domain->here ? heap_copy(p, domain->len) : NULL;
        if (!domain->elsewhere)
                memcpy(domain->here, p, domain->len);
        return p + domain->len;
}

/* The length is known, so nothing is left over. */
static const uint8_t *take_text(struct text *text, const uint8_t *p, size_t len)
{
        *text = (struct text){heap_copy(p, len), len, len};
        return p + len;
}

static const uint8_t *take_string(struct text *text, const uint8_t *p)
{
        return take_text(text, p + 1, p[0]);
}

void rdata_parse(union rdata *data, enum rdata_kind kind, const struct wire_response *response,
                 const struct wire_rr *rr)
{
        size_t len;
        const uint8_t *p = rdata_spelled_out(response, rr, &len), *end = p + len;
        switch (kind) {
        case RDATA_A:
                memcpy(data->a, p, sizeof data->a);
                break;
        case RDATA_AAAA:
                memcpy(data->aaaa, p, sizeof data->aaaa);
                break;
        case RDATA_DOMAIN:
                take_domain(&data->name, p, end);
                break;
        case RDATA_BYTES:
                take_text(&data->bytes, p, len);
                break;
        case RDATA_MX:
                data->mx.preference = get_be16(p);
                take_domain(&data->mx.exchange, p + 2, end);
                break;
        case RDATA_SOA:
                p = take_domain(&data->soa.mname, p, end);
                p = take_domain(&data->soa.rname, p, end);
                data->soa.serial = get_be32(p);
                data->soa.refresh = get_be32(p + 4);
                data->soa.retry = get_be32(p + 8);
                data->soa.expire = get_be32(p + 12);
                data->soa.minimum = get_be32(p + 16);
                break;
        case RDATA_SRV:
                data->srv.priority = get_be16(p);
                data->srv.weight = get_be16(p + 2);
                data->srv.port = get_be16(p + 4);
                take_domain(&data->srv.target, p + 6, end);
                break;
        case RDATA_NAPTR:
                data->naptr.order = get_be16(p);
                data->naptr.preference = get_be16(p + 2);
                p = take_string(&data->naptr.flags, p + 4);
                p = take_string(&data->naptr.services, p);
                p = take_string(&data->naptr.regexp, p);
                take_domain(&data->naptr.replacement, p, end);
                break;
        case RDATA_SVCB:
                data->svcb.priority = get_be16(p);
                p = take_domain(&data->svcb.target, p + 2, end);
                take_text(&data->svcb.params, p, (size_t)(end - p));
                break;
        case RDATA_RRSIG:
                data->rrsig.covered = get_be16(p);
                data->rrsig.algorithm = p[2];
                data->rrsig.labels = p[3];
                data->rrsig.ttl = get_be32(p + 4);
                data->rrsig.expiration = get_be32(p + 8);
                data->rrsig.inception = get_be32(p + 12);
                data->rrsig.key_tag = get_be16(p + 16);
                p = take_domain(&data->rrsig.signer, p + 18, end);
                take_text(&data->rrsig.signature, p, (size_t)(end - p));
                break;
        case RDATA_NSEC:
                p = take_domain(&data->nsec.next, p, end);
                take_text(&data->nsec.types, p, (size_t)(end - p));
                break;
        }
}

static void write_domain(struct reply *reply, const struct domain *domain, bool compress)
{
        reply_name(reply, domain->elsewhere ? domain->elsewhere : domain->here, domain->len, compress);
}

static void write_text(struct reply *reply, const struct text *text)
{
        reply_bytes(reply, text->at, text->len);
}

static void write_string(struct reply *reply, const struct text *text)
{
        const uint8_t len = (uint8_t)text->len;
        reply_bytes(reply, &len, 1);
        write_text(reply, text);
}

void rdata_write(const union rdata *data, uint16_t type, struct reply *reply)
{
        switch (rdata_kind(type)) {
        case RDATA_A:
                reply_bytes(reply, data->a, sizeof data->a);
                break;
        case RDATA_AAAA:
                reply_bytes(reply, data->aaaa, sizeof data->aaaa);
                break;
        case RDATA_DOMAIN:
                write_domain(reply, &data->name, type != DNS_DNAME);
                break;
        case RDATA_BYTES:
                write_text(reply, &data->bytes);
                break;
        case RDATA_MX:
                reply_u16(reply, data->mx.preference);
                write_domain(reply, &data->mx.exchange, true);
                break;
        case RDATA_SOA:
                write_domain(reply, &data->soa.mname, true);
                write_domain(reply, &data->soa.rname, true);
                reply_u32(reply, data->soa.serial);
                reply_u32(reply, data->soa.refresh);
                reply_u32(reply, data->soa.retry);
                reply_u32(reply, data->soa.expire);
                reply_u32(reply, data->soa.minimum);
                break;
        case RDATA_SRV:
                reply_u16(reply, data->srv.priority);
                reply_u16(reply, data->srv.weight);
                reply_u16(reply, data->srv.port);
                write_domain(reply, &data->srv.target, false);
                break;
        case RDATA_NAPTR:
                reply_u16(reply, data->naptr.order);
                reply_u16(reply, data->naptr.preference);
                write_string(reply, &data->naptr.flags);
                write_string(reply, &data->naptr.services);
                write_string(reply, &data->naptr.regexp);
                write_domain(reply, &data->naptr.replacement, false);
                break;
        case RDATA_SVCB:
                reply_u16(reply, data->svcb.priority);
                write_domain(reply, &data->svcb.target, false);
                write_text(reply, &data->svcb.params);
                break;
        case RDATA_RRSIG: {
                const struct rrsig *sig = &data->rrsig;
                reply_u16(reply, sig->covered);
                reply_bytes(reply, &sig->algorithm, 1);
                reply_bytes(reply, &sig->labels, 1);
                reply_u32(reply, sig->ttl);
                reply_u32(reply, sig->expiration);
                reply_u32(reply, sig->inception);
                reply_u16(reply, sig->key_tag);
                write_domain(reply, &sig->signer, false);
                write_text(reply, &sig->signature);
                break;
        }
        case RDATA_NSEC:
                write_domain(reply, &data->nsec.next, false);
                write_text(reply, &data->nsec.types);
                break;
        }
}

static void drop_domain(struct domain *domain)
{
        heap_put(domain->elsewhere, domain->elsewhere ? domain->len : 0);
}

static void drop_text(struct text *text)
{
        heap_put(text->at, text->room);
}

void rdata_drop(union rdata *data, enum rdata_kind kind)
{
        switch (kind) {
        case RDATA_A:
        case RDATA_AAAA:
                break;
        case RDATA_DOMAIN:
                drop_domain(&data->name);
                break;
        case RDATA_BYTES:
                drop_text(&data->bytes);
                break;
        case RDATA_MX:
                drop_domain(&data->mx.exchange);
                break;
        case RDATA_SOA:
                drop_domain(&data->soa.mname);
                drop_domain(&data->soa.rname);
                break;
        case RDATA_SRV:
                drop_domain(&data->srv.target);
                break;
        case RDATA_NAPTR:
                drop_text(&data->naptr.flags);
                drop_text(&data->naptr.services);
                drop_text(&data->naptr.regexp);
                drop_domain(&data->naptr.replacement);
                break;
        case RDATA_SVCB:
                drop_domain(&data->svcb.target);
                drop_text(&data->svcb.params);
                break;
        case RDATA_RRSIG:
                drop_domain(&data->rrsig.signer);
                drop_text(&data->rrsig.signature);
                break;
        case RDATA_NSEC:
                drop_domain(&data->nsec.next);
                drop_text(&data->nsec.types);
                break;
        }
}
