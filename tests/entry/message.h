/* SPDX-License-Identifier: MIT
 * Making messages and entries for tests. Names are plain text without escapes; "." is the root. */
#ifndef TESTS_ENTRY_MESSAGE_H
#define TESTS_ENTRY_MESSAGE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "entry/encode.h"
#include "entry/header.h"
#include "entry/key.h"
#include "entry/render.h"
#include "entry/view.h"
#include "lifetime.h"
#include "wire/dns.h"
#include "wire/query.h"
#include "wire/response.h"

struct message {
        size_t len;
        uint8_t bytes[DNS_MAX_MESSAGE];
};

/* Text to an uncompressed name: its length. */
size_t name_wire(const char *text, uint8_t name[255]);

/* Flags: header bytes 2 and 3. QR is up to the caller. */
void message_start(struct message *message, uint16_t flags);
void message_question(struct message *message, const char *name, uint16_t type);

void put_bytes(struct message *message, const void *bytes, size_t len);
void put_u8(struct message *message, unsigned value);
void put_u16(struct message *message, unsigned value);
void put_u32(struct message *message, uint32_t value);
void put_name(struct message *message, const char *name);
void put_pointer(struct message *message, size_t target);

/* A record in three steps: write the owner; begin (returns a mark); write the rdata; end. */
size_t rr_begin(struct message *message, enum wire_section section, uint16_t type, uint32_t ttl);
void rr_end(struct message *message, size_t mark);
/* All at once. An owner of NULL is a pointer to the question. */
void put_rr(struct message *message, enum wire_section section, const char *owner, uint16_t type,
            uint32_t ttl, const void *rdata, size_t len);
void put_a(struct message *message, enum wire_section section, const char *owner, uint32_t ttl,
           uint32_t addr);
void put_cname(struct message *message, const char *owner, uint32_t ttl, const char *target);
void put_soa(struct message *message, const char *owner, uint32_t ttl, uint32_t minimum);
/* A signature over `covered`, of 64 bytes. */
void put_rrsig(struct message *message, enum wire_section section, const char *owner, uint32_t ttl,
               uint16_t covered, const char *signer);
/* An OPT with this rdata. */
void put_opt(struct message *message, uint16_t size, uint32_t ttl, const void *rdata, size_t len);

/* A client's query. */
struct client {
        const char *name;
        uint16_t type;
        uint16_t size; /* of its OPT, 0: none */
        bool rd, cd, ad, dnssec_ok;
};
void make_query(struct message *message, const struct client *client, struct wire_query *query);

enum {
        TEST_NOW = 1 << 25,
        TEST_ENTRY_MAX = 1 << 17,
};

/* A response taken in: parsed, its lifetime worked out, encoded under its own question's key. */
struct taken {
        struct entry_key key;
        struct wire_response response;
        struct encode_params params;
        uint32_t life;
        enum lifetime_kind kind;
        size_t size;
        struct wire_rr rrs[WIRE_RRS_MAX];
        _Alignas(4) uint8_t entry[TEST_ENTRY_MAX];
};

/* Parse and assess: 0, or the reason for a refusal. */
unsigned assess(struct taken *taken, const uint8_t *packet, size_t len);
/* Encode what was assessed: with RD as in the response, `cd`, fetched with DO. */
void encode_assessed(struct taken *taken, bool cd);
/* All of it; must succeed. */
void take(struct taken *taken, const struct message *message);

/* The reply for this client, TEST_NOW + age. Must fit. */
struct render_result render_for(const struct taken *taken, const struct client *client, uint32_t age,
                                uint16_t limit, struct message *reply);
/* The reply parsed by wire_response_parse(), which must accept it. */
void parse_reply(const struct message *reply, struct wire_response *response, struct wire_rr *rrs);

#endif
