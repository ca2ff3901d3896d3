/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: the dictionary of stored names: labels and endings that a great many names share, one byte
 * each. Codes are part of the layout: never renumber, only append. */
#ifndef ENTRY_DICT_H
#define ENTRY_DICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        DICT_FIRST = 0x40, /* endings */
        DICT_LABELS = 0x80,
        DICT_LAST = 0xbf,
        DICT_WIRE_MAX = 24,
};

/* Two to a cache line. Whoever compares may read the 8 bytes up to the end of `wire`, however short it is. */
struct dict_item {
        uint8_t len; /* 0: the code is not given out */
        uint8_t unused[7];
        uint8_t wire[DICT_WIRE_MAX]; /* length-prefixed labels; an ending includes the root label */
};

extern const struct dict_item dict_items[DICT_LAST - DICT_FIRST + 1];

/* The item of a code in DICT_FIRST..DICT_LAST. */
static inline const struct dict_item *dict_item(uint8_t code)
{
        return &dict_items[code - DICT_FIRST];
}

static inline bool dict_is_ending(uint8_t code)
{
        return code < DICT_LABELS;
}

/* The code for what starts at the label boundary `name` (`left` bytes to the end of the name, root included):
 * an ending only if it is all that is left, else a label. Bytes must be equal to the letter. 0: none. */
uint8_t dict_find(const uint8_t *name, size_t left);

/* The longest ending that is the end of this ending ("co.uk": "uk"), or 0. */
uint8_t dict_shorter(uint8_t ending);

#endif
