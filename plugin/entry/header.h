/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: the fixed header, and the little that the store needs to know of an entry. See LAYOUT.md. */
#ifndef ENTRY_HEADER_H
#define ENTRY_HEADER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Of LAYOUT.md. Snapshots of another one are not read. */
enum {
        ENTRY_LAYOUT_VERSION = 1,
};

enum {
        ENTRY_ALIGN = 4,
        ENTRY_AT_EXPIRY = 0,
        ENTRY_AT_LIFE = 4,
        ENTRY_AT_SIZE = 5,
        ENTRY_AT_FLAGS = 6,
        ENTRY_AT_TYPE = 7,
        ENTRY_HEADER = 8,
        ENTRY_SIZE32 = 4, /* more header, when the size byte is 0 */
        ENTRY_SIZE_BYTE_MAX = 255 * ENTRY_ALIGN,
        /* No honest message needs more. One that does (names by the thousand that begin past what a reference
         * reaches) is not encoded. */
        ENTRY_MAX = 1 << 18,
};

enum entry_flag {
        ENTRY_RD = 0x01,
        ENTRY_CD = 0x02,
        ENTRY_DO = 0x04,
        ENTRY_AA = 0x08,
        ENTRY_RA = 0x10,
        ENTRY_AD = 0x20,
        ENTRY_SIMPLE = 0x40,
        ENTRY_EXT = 0x80,
};

enum entry_ext {
        EXT_RCODE = 0x01,
        EXT_EXTRA = 0x02,
        EXT_PAGE = 0x04,
        EXT_SCOPES = 0x08,
        EXT_EDE = 0x10,
        EXT_TRUNCATED = 0x20,
        EXT_AGELESS = 0x40,
        EXT_POLICY = 0x80,
};

/* The policy byte. */
enum {
        POLICY_BYTE_CLASS = 0x07,
        POLICY_BYTE_GROUP = 0x08, /* the group's length and the group follow */
};

/* The list of scopes. Top bit of the count: no answer for everybody, nothing after the list. */
enum {
        SCOPES_NO_ANSWER = 0x80,
        SCOPES_COUNT = 0x7f,
        /* Prefix lengths of one question, and so probes of a lookup. Longer lists lose those whose answers
         * expire first. */
        SCOPES_MAX = 32,
        SCOPE_ITEM = 3, /* network code, number of pages (2) */
};

/* Cache second 0 of a new cache, so that ages may reach below it. */
enum {
        ENTRY_SECOND_ZERO = 1 << 24,
};

/* How an answer stands in time: an entry's own, or one of a page's networks. */
struct entry_life {
        uint32_t expiry; /* cache second */
        uint8_t code;
};

/* expiry and life are written by the store's writer (under its lock) while readers read: atomic, relaxed. */
static inline uint32_t entry_expiry(const uint8_t *entry)
{
        return atomic_load_explicit((const _Atomic uint32_t *)(const void *)(entry + ENTRY_AT_EXPIRY),
                                    memory_order_relaxed);
}

static inline void entry_set_expiry(uint8_t *entry, uint32_t second)
{
        atomic_store_explicit((_Atomic uint32_t *)(void *)(entry + ENTRY_AT_EXPIRY), second,
                              memory_order_relaxed);
}

static inline uint8_t entry_life_code(const uint8_t *entry)
{
        return atomic_load_explicit((const _Atomic uint8_t *)(const void *)(entry + ENTRY_AT_LIFE),
                                    memory_order_relaxed);
}

static inline void entry_set_life_code(uint8_t *entry, uint8_t code)
{
        atomic_store_explicit((_Atomic uint8_t *)(void *)(entry + ENTRY_AT_LIFE), code, memory_order_relaxed);
}

/* Bytes from the entry's start to the next one's, a multiple of ENTRY_ALIGN. */
static inline uint32_t entry_size(const uint8_t *entry)
{
        if (entry[ENTRY_AT_SIZE] != 0)
                return entry[ENTRY_AT_SIZE] * 4u;
        uint32_t size;
        memcpy(&size, entry + ENTRY_HEADER, sizeof size);
        return size;
}

static inline uint8_t life_encode(uint32_t seconds)
{
        if (seconds < 16)
                return (uint8_t)seconds;
        unsigned shift = 27 - (unsigned)__builtin_clz(seconds); /* leaves 5 significant bits */
        if (shift > 14)
                return 0xff;
        return (uint8_t)((shift + 1) << 4 | ((seconds >> shift) & 15));
}

static inline uint32_t life_decode(uint8_t code)
{
        return code < 16 ? code : (16u + (code & 15u)) << ((code >> 4) - 1);
}

static inline struct entry_life entry_life(const uint8_t *entry)
{
        return (struct entry_life){.expiry = entry_expiry(entry), .code = entry_life_code(entry)};
}

#endif
