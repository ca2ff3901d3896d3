/* SPDX-License-Identifier: MIT
 * Notes about a few entries for a short time, by their hash: "is being refreshed", "could not be refreshed".
 * A table of fixed size; two entries that fall on the same place push each other's note out or do without,
 * and either is harmless for what it is used for. Lock-free. */
#ifndef MARKS_H
#define MARKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
        MARKS = 512,
};

struct marks {
        /* Upper half of the hash and the cache second of the note; 0: free. Atomic, relaxed. */
        _Atomic uint64_t place[MARKS];
};

/* Note it, unless the place has a note (of whomever) younger than `patience` seconds. At most one of many
 * callers gets true. */
bool marks_take(struct marks *marks, uint64_t hash, uint32_t now, uint32_t patience);

/* Note it, whatever was there. */
void marks_set(struct marks *marks, uint64_t hash, uint32_t now);

/* Is there a note of it, younger than `patience` seconds? */
bool marks_has(const struct marks *marks, uint64_t hash, uint32_t now, uint32_t patience);

/* Take its note away. */
void marks_clear(struct marks *marks, uint64_t hash);

#endif
