/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: the dictionary of stored names: labels and endings that a great many names share, one byte
 * each. Codes are part of the layout: never renumber, only append. */
#ifndef ENTRY_DICT_H
#define ENTRY_DICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        DICT_FIRST = 0x40,
        DICT_LAST = 0xbf,
};

struct dict_item {
        const uint8_t *wire; /* length-prefixed labels; an ending includes the root label */
        uint8_t len;
        bool ending;
};

/* The item of a code, or NULL for a code that is not given out. */
const struct dict_item *dict_item(uint8_t code);

/* The code for what starts at the label boundary `name` (`left` bytes to the end of the name, root included):
 * an ending only if it is all that is left, else a label. Bytes must be equal to the letter. 0: none. */
uint8_t dict_find(const uint8_t *name, size_t left);

#endif
