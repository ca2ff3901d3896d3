/* SPDX-License-Identifier: MIT
 * What the rdata of each type is made of: taken once, at load, from ldns's record descriptions, so that one
 * table drives validation, encoding and rendering. Types that ldns does not know, or whose rdata holds no
 * name, are opaque bytes (RFC 3597). */
#ifndef WIRE_RDATA_H
#define WIRE_RDATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        RDATA_FIELDS_MAX = 5, /* NAPTR */
};

enum rdata_field_kind {
        RDATA_END = 0,
        RDATA_FIXED,  /* `size` bytes */
        RDATA_STRING, /* one character-string: length byte and text */
        RDATA_NAME,   /* a name */
        RDATA_REST,   /* what is left, may be empty; always last */
};

struct rdata_field {
        uint8_t kind; /* enum rdata_field_kind; runs of fixed fields are merged into one */
        uint8_t size; /* of RDATA_FIXED */
};

/* `fields` describe the whole rdata. A type without names has the single field REST, or FIXED when every
 * rdata of the type has the same length (A: 4, AAAA: 16). */
struct rdata_shape {
        struct rdata_field fields[RDATA_FIELDS_MAX + 1]; /* closed by RDATA_END */
        bool has_name;
        bool compress;     /* names may be compressed when sent: the types of RFC 1035 only (RFC 3597 s4) */
        uint8_t fixed_len; /* length of every rdata of this type, or 0 */
};

/* Never NULL; the table is built before main() or at dlopen() and never changes. */
const struct rdata_shape *rdata_shape(uint16_t type);

/* Does the rdata at msg[off..off+rdlen) fit its type? Names must expand within the message, their own bytes
 * within the rdata; fixed lengths must match; TXT and its kin must be whole character-strings; RRSIG, DS,
 * DNSKEY, NSEC, NSEC3, SVCB ... must have at least their fixed part. `work` as in wire_name_expand(). */
bool rdata_check(const uint8_t *msg, size_t len, uint16_t type, size_t off, size_t rdlen, size_t question_len,
                 uint32_t *work);

#endif
