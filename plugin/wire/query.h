/* SPDX-License-Identifier: MIT
 * A client's query: hostile bytes in, a checked view out. */
#ifndef WIRE_QUERY_H
#define WIRE_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/ecs.h"

/* Pointers go into the packet. */
struct wire_query {
        const uint8_t *packet;
        const uint8_t *qname;   /* uncompressed, the client's own case */
        const uint8_t *options; /* EDNS options, checked to be well-formed; NULL without OPT */
        uint16_t options_len;
        uint16_t qtype;
        uint16_t qclass;
        uint16_t udp_size; /* what the client takes over UDP: 512 without OPT, never below 512 */
        uint8_t qname_len;
        bool rd, cd, ad;
        bool edns;
        bool dnssec_ok;
        bool padded;         /* has a padding option (RFC 7830) */
        struct wire_ecs ecs; /* family 0: none */
};

/* Check and view. Returns 0 (SARDINE_REASON_NONE) or the reason (SARDINE_BYPASS_...) why such a packet is no
 * business of a cache's: then the view is not to be used. */
unsigned wire_query_parse(const uint8_t *packet, size_t len, struct wire_query *query);

/* Length of question section's only entry: name, type, class. */
static inline size_t wire_query_question_len(const struct wire_query *query)
{
        return query->qname_len + 4u;
}

#endif
