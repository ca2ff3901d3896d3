/* SPDX-License-Identifier: MIT
 * What the tests of the cache have in common: a cache with a clock that the test moves, queries and responses
 * made from text by ldns, and checks on replies read back by ldns. */
#ifndef KIT_H
#define KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <ldns/ldns.h>
#include <errno.h>

#include "cache.h"
#include "sardine.h"

struct kit {
        struct sardine_options options;
        sardine_cache *cache;
        uint64_t clock_ms;
};

/* Options with the kit's clock; change them, then kit_open(). */
void kit_init(struct kit *kit);
void kit_open(struct kit *kit);
/* As kit_open(), with all hashes cut to one bit, so that only full comparison keeps keys apart. */
void kit_open_colliding(struct kit *kit);
void kit_close(struct kit *kit);
void kit_wait(struct kit *kit, uint32_t seconds);

/* The cache of tests that need but one, made anew for each of them. kit_setup() leaves it to the test to
 * change options and to open it. */
extern struct kit kit;
int kit_setup(void **state);
int kit_setup_open(void **state);
int kit_teardown(void **state);

/* A query to be. Zero means: UDP, RD=0, no EDNS. */
struct ask {
        const char *name; /* text, this very case */
        uint16_t type;
        uint8_t opcode;
        bool rd, cd, ad, edns, dnssec_ok;
        uint8_t edns_version;
        uint16_t size;          /* EDNS payload size */
        const uint8_t *options; /* EDNS options, code and length included */
        size_t options_len;
        uint32_t transport;
        uint32_t flags; /* enum sardine_query_flag */
        const char *tag;
        const uint8_t *client; /* IPv4 address */
};
#define ASK(n, t, ...) ((struct ask){.name = (n), .type = (t), ##__VA_ARGS__})

size_t ask_packet(const struct ask *ask, uint8_t out[1024]);

/* A response to be: records as zone file text, one a line; "-- authority" and "-- additional" change the
 * section. */
struct reply {
        const char *name;
        uint16_t type;
        uint8_t rcode;
        bool aa, ra, ad, tc, rd, cd;
        bool no_question;
        const char *records; /* NULL: none */
        const uint8_t *opt;  /* EDNS options; used with `edns` */
        size_t opt_len;
        bool edns, dnssec_ok;
        uint8_t ext_rcode;
};
#define REPLY(n, t, ...) ((struct reply){.name = (n), .type = (t), ##__VA_ARGS__})

/* Heap, 65535 bytes. */
uint8_t *reply_packet(const struct reply *reply, size_t *len);

/* A lookup and what it gave. */
struct got {
        int outcome;
        struct sardine_answer answer;
        struct sardine_token token;
        uint8_t buf[65535];
        ldns_pkt *pkt; /* parsed, when there is a reply */
};

/* Look up. The result belongs to the kit: one static, good until the next call. */
struct got *look(struct kit *kit, struct ask ask);
struct got *look_packet(struct kit *kit, const uint8_t *packet, size_t len, const struct ask *how);

/* Insert for the last look's token (or `token`). Returns the outcome; *reason may be NULL. */
int put(struct kit *kit, struct reply reply, unsigned *reason);
int put_token(struct kit *kit, const struct sardine_token *token, struct reply reply, unsigned *reason);
int put_packet(struct kit *kit, const uint8_t *packet, size_t len, unsigned *reason);

/* look() must miss, then put() must store. */
void fill(struct kit *kit, struct ask ask, struct reply reply);

struct sardine_stats kit_stats(struct kit *kit);

/* Of the last reply. */
uint32_t first_ttl(const struct got *got);
unsigned answers(const struct got *got);
bool has_text(const struct got *got, const char *text); /* in ldns's presentation of the whole reply */
unsigned count_type(const struct got *got, uint16_t type);
/* First OPT's position in the raw reply, or NULL; `count` gets the number of OPTs. */
const uint8_t *find_opt(const struct got *got, unsigned *count);

#endif
