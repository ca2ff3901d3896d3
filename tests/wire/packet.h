/* SPDX-License-Identifier: MIT
 * Messages put together piece by piece, sound or broken, as a test wants them. */
#ifndef TESTS_WIRE_PACKET_H
#define TESTS_WIRE_PACKET_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/dns.h"

struct packet {
        size_t len;
        uint8_t bytes[1 << 17]; /* more than a message can have, so that too long ones can be made */
};

static inline void add_bytes(struct packet *packet, const void *bytes, size_t len)
{
        assert(len <= sizeof packet->bytes - packet->len);
        memcpy(packet->bytes + packet->len, bytes, len);
        packet->len += len;
}

static inline void add_u8(struct packet *packet, unsigned v)
{
        uint8_t byte = (uint8_t)v;
        add_bytes(packet, &byte, 1);
}

static inline void add_u16(struct packet *packet, unsigned v)
{
        uint8_t bytes[2];
        put_be16(bytes, (uint16_t)v);
        add_bytes(packet, bytes, sizeof bytes);
}

static inline void add_u32(struct packet *packet, uint32_t v)
{
        uint8_t bytes[4];
        put_be32(bytes, v);
        add_bytes(packet, bytes, sizeof bytes);
}

/* "www.example": labels without the root, so that a root, a pointer or nothing may follow. */
static inline void add_labels(struct packet *packet, const char *text)
{
        while (*text != '\0') {
                size_t len = strcspn(text, ".");
                add_u8(packet, (unsigned)len);
                add_bytes(packet, text, len);
                text += len + (text[len] == '.');
        }
}

static inline void add_name(struct packet *packet, const char *text)
{
        add_labels(packet, text);
        add_u8(packet, 0);
}

static inline void add_pointer(struct packet *packet, size_t target)
{
        add_u16(packet, (unsigned)(0xc000 | target));
}

/* A header with no counts yet. `flags`: header bytes 2 and 3. */
static inline void start(struct packet *packet, unsigned flags)
{
        packet->len = 0;
        add_u16(packet, 0x1234);
        add_u16(packet, flags);
        add_u32(packet, 0);
        add_u32(packet, 0);
}

enum {
        COUNT_QUESTION = 4,
        COUNT_ANSWER = 6,
        COUNT_AUTHORITY = 8,
        COUNT_ADDITIONAL = 10,
};

static inline void count(struct packet *packet, unsigned which)
{
        put_be16(packet->bytes + which, get_be16(packet->bytes + which) + 1);
}

static inline void add_question(struct packet *packet, const char *name, unsigned type)
{
        count(packet, COUNT_QUESTION);
        add_name(packet, name);
        add_u16(packet, type);
        add_u16(packet, DNS_IN);
}

/* What follows an owner. Rdata is to be added, then closed with end_rdata(). */
static inline size_t add_fixed(struct packet *packet, unsigned type, uint32_t ttl)
{
        add_u16(packet, type);
        add_u16(packet, DNS_IN);
        add_u32(packet, ttl);
        add_u16(packet, 0);
        return packet->len;
}

static inline void end_rdata(struct packet *packet, size_t rdata)
{
        put_be16(packet->bytes + rdata - 2, (uint16_t)(packet->len - rdata));
}

/* A record whose owner is spelled out, or "@": a pointer to the question's name. */
static inline size_t start_rr(struct packet *packet, unsigned section, const char *owner, unsigned type,
                              uint32_t ttl)
{
        count(packet, section);
        if (strcmp(owner, "@") == 0)
                add_pointer(packet, DNS_HEADER);
        else
                add_name(packet, owner);
        return add_fixed(packet, type, ttl);
}

static inline void add_rr(struct packet *packet, unsigned section, const char *owner, unsigned type,
                          uint32_t ttl, const void *rdata, size_t len)
{
        size_t at = start_rr(packet, section, owner, type, ttl);
        add_bytes(packet, rdata, len);
        end_rdata(packet, at);
}

static inline void add_a(struct packet *packet, unsigned section, const char *owner, uint32_t ttl)
{
        add_rr(packet, section, owner, DNS_A, ttl, "\xc0\x00\x02\x01", 4);
}

/* CNAME, DNAME, NS, PTR. */
static inline void add_alias(struct packet *packet, unsigned section, const char *owner, unsigned type,
                             uint32_t ttl, const char *target)
{
        size_t at = start_rr(packet, section, owner, type, ttl);
        add_name(packet, target);
        end_rdata(packet, at);
}

static inline void add_soa(struct packet *packet, unsigned section, const char *owner, uint32_t ttl,
                           uint32_t minimum)
{
        size_t at = start_rr(packet, section, owner, DNS_SOA, ttl);
        add_name(packet, "ns.example");
        add_name(packet, "hostmaster.example");
        for (unsigned i = 1; i <= 4; i++)
                add_u32(packet, i * 1000);
        add_u32(packet, minimum);
        end_rdata(packet, at);
}

static inline void add_rrsig(struct packet *packet, unsigned section, const char *owner, unsigned covered,
                             uint32_t ttl)
{
        size_t at = start_rr(packet, section, owner, DNS_RRSIG, ttl);
        add_u16(packet, covered);
        for (unsigned i = 0; i < 8; i++)
                add_u16(packet, i);
        add_name(packet, "example");
        add_bytes(packet, "signature", 9);
        end_rdata(packet, at);
}

/* The OPT's fixed part; options are to be added, then closed with end_rdata(). */
static inline size_t start_opt(struct packet *packet, unsigned size, uint32_t ttl_field)
{
        count(packet, COUNT_ADDITIONAL);
        add_u8(packet, 0);
        add_u16(packet, DNS_OPT);
        add_u16(packet, size);
        add_u32(packet, ttl_field);
        add_u16(packet, 0);
        return packet->len;
}

static inline void add_option(struct packet *packet, unsigned code, const void *data, size_t len)
{
        add_u16(packet, code);
        add_u16(packet, (unsigned)len);
        add_bytes(packet, data, len);
}

static inline void add_opt(struct packet *packet, unsigned size, uint32_t ttl_field)
{
        end_rdata(packet, start_opt(packet, size, ttl_field));
}

/* The bytes in a heap block of exactly their length, so that a sanitizer sees every step beyond. Stays until
 * the next call. */
static inline const uint8_t *exactly(const void *bytes, size_t len)
{
        static uint8_t *block;
        free(block);
        block = malloc(len > 0 ? len : 1);
        assert(block != NULL);
        memcpy(block, bytes, len);
        return block;
}

#endif
