/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: from a checked response to an entry. */
#ifndef ENTRY_ENCODE_H
#define ENTRY_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "entry/key.h"
#include "wire/response.h"

struct encode_params {
        uint32_t expiry; /* cache second */
        uint32_t life;   /* seconds from now to expiry, > 0 */
        bool dnssec_ok;  /* the question upstream had DO */
        bool ageless;
        bool truncated; /* keep as a bare TC=1 answer: no records are written */
        /* Scopes list to keep with an answer for everybody; NULL: none. */
        const uint8_t *scopes;
        uint8_t scopes_count;
};

/* Write the entry for `key` into out[0..room), 4-aligned. TTLs of records must already be what should be
 * shown at insert (RRset minimum, negative TTL): see lifetime.h; none is below `params->life`, unless
 * ageless. When adjacent records differ in TTL they just become different runs. Returns its length (a
 * multiple of 4), or 0 when `room` is too small. */
size_t entry_encode(const struct entry_key *key, const struct wire_response *response,
                    const struct encode_params *params, uint8_t *out, size_t room);

/* The entry that says only: this question has entries for the networks in `params->scopes`. */
size_t entry_encode_scopes(const struct entry_key *key, const struct encode_params *params, uint8_t *out,
                           size_t room);

/* Same answer, whatever the expiry and life: then the old one is only given the new expiry. */
bool entry_same_answer(const uint8_t *a, const uint8_t *b);

#endif
