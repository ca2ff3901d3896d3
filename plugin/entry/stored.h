/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: reading varints and stored names out of an entry. Entries are our own: nothing is checked. */
#ifndef ENTRY_STORED_H
#define ENTRY_STORED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "entry/dict.h"
#include "wire/bytes.h"

enum {
        STORED_REF = 0xc0,
        STORED_REF_FOLLOW = 0x2000,
        STORED_REF_MAX = 0x1fff,
};

enum {
        VARINT_2 = 0xf0, /* 15 first bytes of two-byte values */
        VARINT_5 = 0xff,
        VARINT_2_MAX = VARINT_2 + ((VARINT_5 - VARINT_2) << 8) - 1,
};

static inline uint32_t varint_get(const uint8_t **p)
{
        uint32_t first = *(*p)++;
        if (first < VARINT_2)
                return first;
        if (first < VARINT_5)
                return VARINT_2 + ((first - VARINT_2) << 8) + *(*p)++;
        *p += 4;
        return get_be32(*p - 4);
}

/* What a byte that starts a part of a stored name says. */
static inline bool stored_is_label(uint8_t byte)
{
        return byte < DICT_FIRST;
}
static inline bool stored_is_ref(uint8_t byte)
{
        return byte >= STORED_REF;
}
static inline uint16_t stored_ref_target(const uint8_t *p)
{
        return get_be16(p) & STORED_REF_MAX;
}
static inline bool stored_ref_follows(const uint8_t *p)
{
        return get_be16(p) & STORED_REF_FOLLOW;
}

/* What comes after the stored name at p. */
static inline const uint8_t *stored_name_skip(const uint8_t *p)
{
        for (;;) {
                uint8_t byte = *p++;
                if (stored_is_label(byte)) {
                        if (byte == 0)
                                return p;
                        p += byte;
                } else if (stored_is_ref(byte)) {
                        return p + 1;
                } else if (dict_is_ending(byte)) {
                        return p;
                }
        }
}

/* A part of a name as it is on the wire: a label, or an ending with all its labels. */
struct name_part {
        const uint8_t *wire;
        uint32_t at; /* its offset in the entry */
        uint8_t len;
        bool follow; /* it follows the question's case */
        bool last;
};

/* A walk over a stored name, through its references. */
struct name_walk {
        const uint8_t *entry;
        const uint8_t *p;
        bool follow;
};

static inline void name_walk_init(struct name_walk *walk, const uint8_t *entry, const uint8_t *p)
{
        *walk = (struct name_walk){.entry = entry, .p = p};
}

/* The next part. Not to be called again after the last one. */
static inline void name_walk_next(struct name_walk *walk, struct name_part *part)
{
        while (stored_is_ref(*walk->p)) {
                walk->follow |= stored_ref_follows(walk->p);
                walk->p = walk->entry + stored_ref_target(walk->p);
        }
        uint8_t byte = *walk->p;
        part->at = (uint32_t)(walk->p - walk->entry);
        part->follow = walk->follow;
        if (stored_is_label(byte)) {
                part->wire = walk->p;
                part->len = (uint8_t)(byte + 1);
                part->last = byte == 0;
                walk->p += byte + 1u;
        } else {
                const struct dict_item *item = dict_item(byte);
                part->wire = item->wire;
                part->len = item->len;
                part->last = dict_is_ending(byte);
                walk->p++;
        }
}

/* The whole name: returns its length. A part that follows the question's case is in lower case. */
size_t stored_name_expand(const uint8_t *entry, const uint8_t *p, uint8_t name[255]);

#endif
