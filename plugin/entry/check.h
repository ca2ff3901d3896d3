/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: is this an entry? Everything else in this folder trusts entries, for this library wrote them;
 * bytes that come from a file may be anything (B85). */
#ifndef ENTRY_CHECK_H
#define ENTRY_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "entry/key.h"

struct entry_checked {
        struct entry_key key; /* with page, for a page */
        uint32_t size;
        uint32_t most_delta; /* the largest of its runs (and of its answers' runs, for a page) */
        bool page;
};

/* Is there, at the 4-aligned `entry`, a whole entry within `len` bytes that encode.c or page.c could have
 * written? Expiries and lives are not judged. What passes can be shown to every function that takes an
 * entry: nothing outside of it is read, no loop is endless, names are names, rdata fits its type, and what is
 * rendered from it passes wire_response_parse(). Deltas are below 2^31. */
bool entry_check(const uint8_t *entry, size_t len, struct entry_checked *checked);

#endif
