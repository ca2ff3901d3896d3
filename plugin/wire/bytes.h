/* SPDX-License-Identifier: MIT
 * Big-endian integers at any alignment. The caller has checked the bounds. */
#ifndef WIRE_BYTES_H
#define WIRE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t get_be16(const uint8_t *p)
{
        return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t get_be32(const uint8_t *p)
{
        return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* In one store: byte by byte, what reads them together next would have to wait for them. */
static inline void put_be16(uint8_t *p, uint16_t v)
{
        v = htobe16(v);
        memcpy(p, &v, sizeof v);
}

static inline void put_be32(uint8_t *p, uint32_t v)
{
        v = htobe32(v);
        memcpy(p, &v, sizeof v);
}

#endif
