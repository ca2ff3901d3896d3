/* SPDX-License-Identifier: MIT
 * An upstream's response: hostile bytes in, a checked list of records out. What passes here has counts that
 * match its content, names that expand, rdata that its type allows, and no byte left over (B53, B58, B59). */
#ifndef WIRE_RESPONSE_H
#define WIRE_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/ecs.h"

enum wire_section {
        WIRE_ANSWER = 0,
        WIRE_AUTHORITY = 1,
        WIRE_ADDITIONAL = 2,
};

enum {
        /* No message of 65535 bytes has more: 12 header, 11 bytes a record. */
        WIRE_RRS_MAX = 5957,
        /* Labels and pointers that all names of one message may visit; an owner that repeats the last pointer
         * (or is the question's name) counts as one. An honest 64 KiB message stays below; one that does not
         * is refused as too complex (B64). */
        WIRE_WORK_MAX = 32768,
        WIRE_EDE_MAX = 4,
};

/* One record, without the OPT. Offsets are into the packet. */
struct wire_rr {
        uint32_t ttl; /* as seen, but the top bit set becomes 0x7fffffff (RFC 8767 s4) */
        uint16_t owner;
        uint16_t type;
        uint16_t rclass;
        uint16_t rdata;
        uint16_t rdlen;
        uint16_t section;
};

/* An extended error (RFC 8914): pointers go into the packet. */
struct wire_ede {
        const uint8_t *text;
        uint16_t code;
        uint16_t text_len;
};

struct wire_response {
        const uint8_t *packet;
        size_t len;
        const uint8_t *qname; /* uncompressed; NULL when QDCOUNT is 0 */
        struct wire_rr *rrs;  /* answer, authority, additional, in the packet's order, OPT left out */
        uint32_t count;       /* of rrs */
        uint16_t qtype;
        uint16_t qclass;
        uint16_t rcode; /* 12 bits: header and OPT (RFC 6891 s6.1.3) */
        uint8_t qname_len;
        uint8_t flags2, flags3; /* header bytes 2 and 3 as they came */
        bool edns;
        bool dnssec_ok;
        /* There are records, and all are in the answer section, of the question's type, with a pointer to the
         * question's name for an owner: most messages, and much need not be asked about them. */
        bool plain;
        uint8_t ede_count;
        struct wire_ecs ecs; /* family 0: none */
        struct wire_ede ede[WIRE_EDE_MAX];
};

/* Check and view. `rrs` is the caller's room for `room` records (WIRE_RRS_MAX always suffices).
 * A header-only message (12 bytes, QDCOUNT 0) is fine (B29). Owners and rdata names are proven to expand.
 * Returns 0, or SARDINE_REFUSED_MALFORMED, _COMPLEX, or _MISMATCH: QR=0, opcode not QUERY, QDCOUNT > 1, or a
 * TSIG or SIG(0) that binds the message to one client. The caller looks at TC and compares the question. */
unsigned wire_response_parse(const uint8_t *packet, size_t len, struct wire_rr *rrs, size_t room,
                             struct wire_response *response);

#endif
