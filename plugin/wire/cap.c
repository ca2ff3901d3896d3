/* SPDX-License-Identifier: MIT */
#include "wire/cap.h"

#include "wire/bytes.h"
#include "wire/dns.h"

static uint8_t *skip_name(uint8_t *p)
{
        while (*p != 0 && *p < 0xc0)
                p += *p + 1u;
        return p + (*p == 0 ? 1 : 2);
}

void wire_cap_ttls(uint8_t *message, size_t len, uint32_t most)
{
        enum {
                QUESTION = 4, /* after its name */
                FIXED = 10,   /* type, class, TTL, length */
        };
        uint8_t *p = message + DNS_HEADER, *end = message + len;
        unsigned records = 0;
        for (unsigned i = 6; i < DNS_HEADER; i += 2)
                records += get_be16(message + i);
        for (unsigned i = get_be16(message + 4); i > 0; i--)
                p = skip_name(p) + QUESTION;
        for (; records > 0 && p < end; records--) {
                p = skip_name(p);
                if (get_be16(p) != DNS_OPT && get_be32(p + 4) > most)
                        put_be32(p + 4, most);
                p += FIXED + get_be16(p + 8);
        }
}
