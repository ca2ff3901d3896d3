/* SPDX-License-Identifier: MIT
 * The row of options inside an OPT record (RFC 6891 s6.1.2). */
#ifndef WIRE_EDNS_H
#define WIRE_EDNS_H

#include <stddef.h>
#include <stdint.h>

#include "wire/bytes.h"

/* The option at p (p < end): its code, length, and data as the return value; the next one is at data +
 * length. NULL: it does not fit before `end`. */
static inline const uint8_t *edns_option(const uint8_t *p, const uint8_t *end, uint16_t *code, uint16_t *len)
{
        if (end - p < 4)
                return NULL;
        *code = get_be16(p);
        *len = get_be16(p + 2);
        p += 4;
        return end - p < *len ? NULL : p;
}

#endif
