/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: from a checked response to an entry. */
#ifndef ENTRY_ENCODE_H
#define ENTRY_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "entry/key.h"
#include "wire/response.h"

/* For how many pages of networks of a prefix length a question has. */
struct entry_scope {
        uint8_t code;
        uint16_t pages;
};

struct encode_params {
        uint32_t expiry; /* cache second */
        uint32_t life;   /* seconds from now to expiry, > 0 */
        bool dnssec_ok;  /* the question upstream had DO */
        bool ageless;
        bool truncated; /* keep as a bare TC=1 answer: no records are written */
        /* Scopes list to keep with an answer for everybody; NULL: none. */
        const struct entry_scope *scopes;
        uint8_t scopes_count;
        /* What the policy gave the answer: eviction class, and a group; NULL: none. */
        uint8_t class;
        uint8_t group_len;
        const uint8_t *group;
};

/* Write the entry for `key` into out[0..room), 4-aligned. TTLs of records must already be what should be
 * shown at insert (RRset minimum, negative TTL): see lifetime.h; none is below `params->life`, unless
 * ageless. When adjacent records differ in TTL they just become different runs. Returns its length (a
 * multiple of 4), or 0 when `room` is too small. */
size_t entry_encode(const struct entry_key *key, const struct wire_response *response,
                    const struct encode_params *params, uint8_t *out, size_t room);

/* The entry that says only: this question has pages of networks, see `params->scopes`. */
size_t entry_encode_scopes(const struct entry_key *key, const struct encode_params *params, uint8_t *out,
                           size_t room);

/* What page.c puts behind an entry's name. */
struct entry_writer;
typedef void (*encode_tail)(struct entry_writer *writer, const void *ctx);

/* An entry that is not an answer: header and name for `key`, then what `tail` writes. */
size_t entry_encode_tail(const struct entry_key *key, const struct encode_params *params, encode_tail tail,
                         const void *ctx, uint8_t *out, size_t room);

/* Same answer, whatever the expiry and life: then the old one is only given the new expiry. */
bool entry_same_answer(const uint8_t *a, const uint8_t *b);

#endif
