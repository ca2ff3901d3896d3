/* SPDX-License-Identifier: MIT
 * A set of networks with a number each: which is the smallest one that an address is in? Built once into rows
 * of ranges that do not overlap, one row for each family; a search halves the row until the range is found.
 * The first bits of an IPv4 address tell where in the row to begin. */
#ifndef POLICY_SUBNETS_H
#define POLICY_SUBNETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/bytes.h"

typedef unsigned __int128 subnet_address;

struct subnet {
        uint8_t addr[16]; /* network order; bits beyond the prefix are zero */
        uint8_t family;   /* ECS_IPV4, ECS_IPV6 */
        uint8_t prefix;
};

struct subnet_item {
        subnet_address first, last;
        uint32_t value;
        uint8_t family;
};

struct subnet_range {
        uint32_t first, value;
};

struct subnets {
        /* While it is built: as they came. */
        struct subnet_item *items;
        size_t count, room;
        /* Then, by family - 1. Range i begins at first[i] and goes on to the next one's. */
        struct {
                subnet_address *first; /* of IPv6; of IPv4 while it is built */
                uint32_t *value;
                size_t count;
        } row[2];
        struct subnet_range *range4; /* of IPv4 */
        uint32_t *place4; /* range of the first address with these first bits; the last range behind them */
        unsigned shift4;  /* leaves those bits */
};

/* "192.0.2.0/24", "2001:db8::/32", or an address. false: none of these, or bits are set beyond the prefix. */
bool subnet_from_text(const char *text, struct subnet *net);

/* Is the address (4 or 16 bytes) in it? */
bool subnet_has(const struct subnet *net, const uint8_t *addr, size_t len);

void subnets_fini(struct subnets *set);

/* false: no memory. */
bool subnets_add(struct subnets *set, const struct subnet *net, uint32_t value);

/* All are added; of two equal ones either counts. false: no memory. */
bool subnets_finish(struct subnets *set);

/* For addresses of 16 bytes, in a set that has some networks. */
uint32_t subnets_find6(const struct subnets *set, const uint8_t *addr);

/* The value for an address of 4 or 16 bytes; 0: in no network. */
static inline uint32_t subnets_find(const struct subnets *set, const uint8_t *addr, size_t len)
{
        if (set->count == 0 || len != 4)
                return set->count && len == 16 ? subnets_find6(set, addr) : 0;
        uint32_t want = get_be32(addr);
        const uint32_t *place = &set->place4[want >> set->shift4];
        uint32_t at = place[0];
        /* Invariant: range `at` begins at `want` or before, and the one looked for is less than `left` on. */
        for (uint32_t left = place[1] - at + 1; left > 1;) {
                uint32_t half = left / 2;
                at += set->range4[at + half].first <= want ? half : 0;
                left -= half;
        }
        return set->range4[at].value;
}

#endif
