/* SPDX-License-Identifier: MIT */
#include "wire/rdata.h"

#include <ldns/ldns.h>

#include "wire/dns.h"
#include "wire/name.h"

enum {
        /* Types from here on hold no names. DLV (32769) is one of them. */
        TYPES = 264,
        TYPE_RP = 17,
        TYPE_AFSDB = 18,
        TYPE_RT = 21,
        TYPE_NSAP_PTR = 23,
        TYPE_PX = 26,
        TYPE_NXT = 30,
        TYPE_NAPTR = 35,
};

struct type_row {
        struct rdata_shape shape;                        /* what an encoder needs */
        struct rdata_field fields[RDATA_FIELDS_MAX + 1]; /* what a check needs: also of types without names */
        bool strings;                                    /* one or more character-strings: TXT, SPF */
        bool compressed; /* names may arrive compressed: as sent, and those of RFC 3597 s4 */
};

static struct type_row rows[TYPES];
static const struct type_row opaque = {
    .shape = {.fields = {{RDATA_REST, 0}}},
    .fields = {{RDATA_REST, 0}},
};

/* ldns's field types in our terms. What has a structure of its own that we need not know is the rest. */
static struct rdata_field field_of(ldns_rdf_type type)
{
        switch (type) {
        case LDNS_RDF_TYPE_DNAME:
                return (struct rdata_field){RDATA_NAME, 0};
        case LDNS_RDF_TYPE_INT8:
        case LDNS_RDF_TYPE_ALG:
        case LDNS_RDF_TYPE_CERTIFICATE_USAGE:
        case LDNS_RDF_TYPE_SELECTOR:
        case LDNS_RDF_TYPE_MATCHING_TYPE:
                return (struct rdata_field){RDATA_FIXED, 1};
        case LDNS_RDF_TYPE_INT16:
        case LDNS_RDF_TYPE_TYPE:
        case LDNS_RDF_TYPE_CLASS:
        case LDNS_RDF_TYPE_CERT_ALG:
                return (struct rdata_field){RDATA_FIXED, 2};
        case LDNS_RDF_TYPE_INT32:
        case LDNS_RDF_TYPE_TIME:
        case LDNS_RDF_TYPE_PERIOD:
        case LDNS_RDF_TYPE_A:
                return (struct rdata_field){RDATA_FIXED, 4};
        case LDNS_RDF_TYPE_EUI48:
                return (struct rdata_field){RDATA_FIXED, 6};
        case LDNS_RDF_TYPE_EUI64:
        case LDNS_RDF_TYPE_ILNP64:
                return (struct rdata_field){RDATA_FIXED, 8};
        case LDNS_RDF_TYPE_AAAA:
                return (struct rdata_field){RDATA_FIXED, 16};
        case LDNS_RDF_TYPE_STR:
        case LDNS_RDF_TYPE_TAG:
        case LDNS_RDF_TYPE_NSEC3_SALT:
        case LDNS_RDF_TYPE_NSEC3_NEXT_OWNER:
                return (struct rdata_field){RDATA_STRING, 0};
        default:
                return (struct rdata_field){RDATA_REST, 0};
        }
}

/* False: something follows what only a parser of this very type could measure (APL, HIP, TKEY). */
static bool describe(struct type_row *row, const ldns_rr_descriptor *descriptor)
{
        size_t least = ldns_rr_descriptor_minimum(descriptor);
        size_t most = ldns_rr_descriptor_maximum(descriptor);
        unsigned n = 0;
        for (size_t i = 0; i < most; i++) {
                struct rdata_field field = field_of(ldns_rr_descriptor_field_type(descriptor, i));
                if (n > 0 && row->fields[n - 1].kind == RDATA_REST)
                        return false;
                if (i >= least) /* may be missing */
                        field = (struct rdata_field){RDATA_REST, 0};
                if (n > 0 && field.kind == RDATA_FIXED && row->fields[n - 1].kind == RDATA_FIXED) {
                        row->fields[n - 1].size = (uint8_t)(row->fields[n - 1].size + field.size);
                        continue;
                }
                if (n == RDATA_FIELDS_MAX)
                        return false;
                row->fields[n++] = field;
        }
        return true;
}

static bool may_arrive_compressed(uint16_t type)
{
        switch (type) {
        case TYPE_RP:
        case TYPE_AFSDB:
        case TYPE_RT:
        case DNS_SIG:
        case TYPE_PX:
        case TYPE_NXT:
        case TYPE_NAPTR:
        case DNS_SRV:
        case DNS_DNAME: /* RFC 6672 s2.5 forbids to send it so; older servers did */
                return true;
        default:
                return false;
        }
}

static void build_row(uint16_t type)
{
        struct type_row *row = &rows[type];
        const ldns_rr_descriptor *descriptor = ldns_rr_descript(type);

        if (descriptor->_variable == LDNS_RDF_TYPE_STR) {
                *row = opaque;
                row->strings = true;
                return;
        }
        /* NSAP-PTR holds a name (RFC 1348), which ldns takes for a string. Nobody uses it. */
        if (type == TYPE_NSAP_PTR || !describe(row, descriptor)) {
                *row = opaque;
                return;
        }

        struct rdata_shape *shape = &row->shape;
        for (const struct rdata_field *field = row->fields; field->kind != RDATA_END; field++)
                shape->has_name |= field->kind == RDATA_NAME;
        if (shape->has_name) {
                for (unsigned i = 0; i < RDATA_FIELDS_MAX; i++)
                        shape->fields[i] = row->fields[i];
                shape->compress = descriptor->_compress == LDNS_RR_COMPRESS;
                row->compressed = shape->compress || may_arrive_compressed(type);
        } else if (row->fields[0].kind == RDATA_FIXED && row->fields[1].kind == RDATA_END) {
                shape->fields[0] = row->fields[0];
                shape->fixed_len = row->fields[0].size;
        } else {
                shape->fields[0] = (struct rdata_field){RDATA_REST, 0};
        }
}

__attribute__((constructor)) static void build_table(void)
{
        for (uint16_t type = 0; type < TYPES; type++)
                build_row(type);
}

static const struct type_row *row_of(uint16_t type)
{
        return type < TYPES ? &rows[type] : &opaque;
}

const struct rdata_shape *rdata_shape(uint16_t type)
{
        return &row_of(type)->shape;
}

static bool are_strings(const uint8_t *p, const uint8_t *end)
{
        if (p == end)
                return false;
        while (p < end)
                p += *p + 1;
        return p == end;
}

bool rdata_check(const uint8_t *msg, size_t len, uint16_t type, size_t off, size_t rdlen, size_t question_len,
                 uint32_t *work)
{
        const struct type_row *row = row_of(type);
        size_t end = off + rdlen;

        if (row->shape.fixed_len)
                return rdlen == row->shape.fixed_len;
        if (row->strings)
                return are_strings(msg + off, msg + end);

        for (const struct rdata_field *field = row->fields; field->kind != RDATA_END; field++) {
                size_t taken = 0;
                switch (field->kind) {
                case RDATA_FIXED:
                        taken = field->size;
                        break;
                case RDATA_STRING:
                        if (off == end)
                                return false;
                        taken = msg[off] + 1u;
                        break;
                case RDATA_NAME:
                        if (row->compressed) {
                                struct wire_name name;
                                taken = wire_name_expand(msg, len, off, question_len, work, &name);
                        } else {
                                taken = wire_name_length(msg + off, msg + end);
                        }
                        if (taken == 0)
                                return false;
                        break;
                case RDATA_REST:
                        return true;
                }
                if (taken > end - off)
                        return false;
                off += taken;
        }
        return off == end;
}
