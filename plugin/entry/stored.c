/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: see stored.h. */
#include "entry/stored.h"

size_t stored_name_expand(const uint8_t *entry, const uint8_t *p, uint8_t name[255])
{
        struct name_walk walk;
        struct name_part part;
        size_t len = 0;
        name_walk_init(&walk, entry, p);
        do {
                name_walk_next(&walk, &part);
                memcpy(name + len, part.wire, part.len);
                len += part.len;
        } while (!part.last);
        return len;
}
