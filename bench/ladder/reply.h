/* SPDX-License-Identifier: MIT
 *
 * Writes a reply for a client: header, question, records with compressed names, OPT. Shared by steps 0 to 5.
 */
#ifndef LADDER_REPLY_H
#define LADDER_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/query.h"
#include "wire/response.h"

#define REPLY_NAMES 64 /* places that later names may point to; what comes after is spelled out */

struct reply_ede {
        uint16_t code, len;
        const uint8_t *text;
};

struct reply {
        const struct wire_query *query;
        uint8_t *buf;
        size_t len, limit;
        bool full;     /* more came than the client can take */
        size_t record; /* where the rdata of the record being written begins */
        uint16_t rcode;
        unsigned n_names;
        struct {
                uint16_t at;
                uint8_t len; /* of the whole name that begins there */
        } names[REPLY_NAMES];
        struct reply_ede ede[WIRE_EDE_MAX];
        unsigned n_ede;
};

void reply_begin(struct reply *reply, const struct wire_query *query, bool stream, uint8_t *buf, size_t cap);

/* The header's flags (AA; RA and AD) and the RCODE of the answer. */
void reply_header(struct reply *reply, uint8_t flags2, uint8_t flags3, uint16_t rcode);

/* Is this client to get records of this type? Those of DNSSEC only with DO. */
bool reply_wants(const struct reply *reply, unsigned section, uint16_t type);

/* A record: begin, its rdata piece by piece, end. `owner` NULL: the question's name. */
void reply_record(struct reply *reply, const uint8_t *owner, size_t owner_len, uint16_t type, uint16_t rclass,
                  uint32_t ttl);
void reply_bytes(struct reply *reply, const void *bytes, size_t len);
void reply_u16(struct reply *reply, uint16_t value);
void reply_u32(struct reply *reply, uint32_t value);
void reply_name(struct reply *reply, const uint8_t *name, size_t len, bool compress);
void reply_record_end(struct reply *reply, unsigned section);

/* The text must stay until reply_end(). */
void reply_error(struct reply *reply, uint16_t code, const uint8_t *text, size_t len);

/* Length of the reply: what is there, or a truncated one. */
size_t reply_end(struct reply *reply);

#endif
