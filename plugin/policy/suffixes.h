/* SPDX-License-Identifier: MIT
 * A set of domain names, each standing for itself and everything below, with a number each: which is the
 * longest one that a name is in? The name's suffixes are looked up from the longest down, if some name of the
 * set has as many labels and bytes; in a filter first, so that a name in none of a million zones seldom
 * touches the large table. Built once, then only read. */
#ifndef POLICY_SUFFIXES_H
#define POLICY_SUFFIXES_H

#include <stddef.h>
#include <stdint.h>

enum {
        SUFFIX_NONE = -1,
};

struct suffixes {
        uint64_t *slots; /* upper half: hash, lower half: item + 1; 0: free */
        uint64_t mask;
        uint64_t *filter;
        struct suffix_item *items;
        uint8_t *names; /* length (1), wire form */
        size_t count, items_room, names_len, names_room;
        uint64_t seed;
        uint64_t depths[2];  /* a bit for each number of labels that some name has */
        uint64_t lengths[4]; /* and for each length in bytes */
        unsigned least;      /* labels */
};

struct suffix_item {
        uint32_t name; /* where in `names` */
        uint32_t value;
};

void suffixes_init(struct suffixes *set, uint64_t seed);
void suffixes_fini(struct suffixes *set);

/* Where the value of a name (wire form, folded) is kept; a new one's is 0. NULL: no memory. Good until the
 * next call. */
uint32_t *suffixes_put(struct suffixes *set, const uint8_t *name, size_t len);

/* The item of the longest suffix that `name` (wire form, folded, valid) is equal to or below; SUFFIX_NONE. */
int64_t suffixes_find(const struct suffixes *set, const uint8_t *name, size_t len);

static inline uint32_t suffixes_value(const struct suffixes *set, int64_t item)
{
        return set->items[item].value;
}

/* An item's name. */
static inline const uint8_t *suffixes_name(const struct suffixes *set, size_t item, size_t *len)
{
        const uint8_t *name = set->names + set->items[item].name;
        *len = *name;
        return name + 1;
}

#endif
