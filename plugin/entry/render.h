/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: from an entry to the reply for one client. */
#ifndef ENTRY_RENDER_H
#define ENTRY_RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "entry/header.h"
#include "wire/query.h"

struct render_params {
        const struct wire_query *query; /* id, question's case, RD, CD, AD, DO, OPT */
        uint32_t now;                   /* cache second */
        const struct entry_life *life;  /* NULL: the entry's own; else the network's that it answers for */
        uint32_t stale_ttl;             /* when the entry is expired: the TTL shown is min(this, original) */
        uint16_t limit;                 /* longest reply that this client takes, 512..65535 */
        uint16_t udp_payload_size;      /* for our OPT */
        int add_ede;                    /* an EDE code to add (RFC 8914: 3, 19), or -1 */
        uint16_t pad_block;             /* pad the reply to a multiple of so many bytes (RFC 8467), or 0 */
        uint32_t rotate;                /* start each RRset at this record, counted around; 0: as stored */
        const struct wire_ecs *ecs;     /* ECS option to put into the OPT, or NULL */
};

struct render_result {
        size_t len; /* of the reply; with false: how much room it needs */
        uint16_t rcode;
        bool truncated;
};

/* Write the reply into out[0..cap), which does not overlap the query. Not for an entry without answer.
 * Header: id and question from the query, RD and CD from the query, AA and RA as stored, AD as stored if the
 * query had AD or DO (RFC 6840 s5.8), Z 0.
 * Records: in the stored order (but for `rotate`) and sections; TTL aged; without DO in the query, RRSIG,
 * NSEC and NSEC3 are left out unless they are the question's type or it is ANY, as are DS and DNSKEY outside
 * the answer section (RFC 4035 s3.2.1). Size: what exceeds `limit` is left out: additional RRsets first,
 * without TC, unless the message is a referral (RFC 9471); if answer and authority do not fit, all records go
 * and TC is set. An OPT if and only if the query had one. Returns false when the reply does not fit in `cap`.
 * Allocates nothing. */
bool entry_render(const uint8_t *entry, const struct render_params *params, uint8_t *out, size_t cap,
                  struct render_result *result);

#endif
