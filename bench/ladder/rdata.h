/* SPDX-License-Identifier: MIT
 *
 * Record data as parsed fields, for steps 0 to 4. The sizes are the seeds': NAPTR is the largest with 136
 * bytes, and a value with its type has 144.
 */
#ifndef LADDER_RDATA_H
#define LADDER_RDATA_H

#include <stddef.h>
#include <stdint.h>

#include "ladder/reply.h"
#include "wire/response.h"

/* Bytes that can grow. */
struct text {
        uint8_t *at;
        size_t len, room;
};

/* A name in wire form: most fit where they are. */
struct domain {
        uint8_t *elsewhere;
        uint8_t here[47];
        uint8_t len;
};

union rdata {
        uint8_t a[4];
        uint8_t aaaa[16];
        struct domain name; /* CNAME, NS, PTR, DNAME */
        struct text bytes;  /* TXT, and types that nothing here has to look into */
        struct mx {
                uint16_t preference;
                struct domain exchange;
        } mx;
        struct soa {
                struct domain mname, rname;
                uint32_t serial, refresh, retry, expire, minimum;
        } soa;
        struct srv {
                uint16_t priority, weight, port;
                struct domain target;
        } srv;
        struct naptr {
                uint16_t order, preference;
                struct text flags, services, regexp;
                struct domain replacement;
        } naptr;
        struct svcb { /* HTTPS too */
                uint16_t priority;
                struct domain target;
                struct text params;
        } svcb;
        struct rrsig {
                uint16_t covered;
                uint8_t algorithm, labels;
                uint32_t ttl, expiration, inception;
                uint16_t key_tag;
                struct domain signer;
                struct text signature;
        } rrsig;
        struct nsec {
                struct domain next;
                struct text types;
        } nsec;
};

/* As a Rust enum: the data, and which it is. */
struct rdata_value {
        union rdata data;
        uint16_t type;
};

/* Which member of the union a type uses. */
enum rdata_kind {
        RDATA_A,
        RDATA_AAAA,
        RDATA_DOMAIN,
        RDATA_BYTES,
        RDATA_MX,
        RDATA_SOA,
        RDATA_SRV,
        RDATA_NAPTR,
        RDATA_SVCB,
        RDATA_RRSIG,
        RDATA_NSEC,
};

enum rdata_kind rdata_kind(uint16_t type);
size_t rdata_member_size(enum rdata_kind kind);

/* A record's data with its names spelled out; good until the next call. */
const uint8_t *rdata_spelled_out(const struct wire_response *response, const struct wire_rr *rr, size_t *len);

void rdata_parse(union rdata *data, enum rdata_kind kind, const struct wire_response *response,
                 const struct wire_rr *rr);
void rdata_write(const union rdata *data, uint16_t type, struct reply *reply);
void rdata_drop(union rdata *data, enum rdata_kind kind);

#endif
