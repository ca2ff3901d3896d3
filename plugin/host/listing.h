/* SPDX-License-Identifier: MIT
 *
 * listing.h - what is in a cache, for dnsdist's console: the dump, names by address, addresses by name. The
 * walk is done here and not in Lua, since C must not call back into code that LuaJIT has compiled.
 *
 * The part between the two [cdef] lines has no preprocessor directives: it is compiled into the Lua front.
 */
#ifndef HOST_LISTING_H
#define HOST_LISTING_H

#include <sardine.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* [cdef] */

/* Write what is in the cache to a file that must not be there yet, a line for an entry, as dnsdist 2.0 does;
 * with `raw`, the response at its end. Returns how many entries were written, or a negated errno value. */
int64_t sardine_dnsdist_dump(sardine_cache *cache, const char *path, int raw);

/* Which entries of those that a selector selects; 0: no condition. */
struct sardine_dnsdist_filter {
        uint32_t min_bytes;
        uint32_t min_hits;       /* popularity */
        uint32_t expires_within; /* fresh, but not for more than so many seconds */
        uint32_t fresh, stale;   /* 1: only those */
        uint32_t raw;            /* 1: with the response */
        uint32_t max;            /* entries written, at most */
};

/* Write such entries to a file that must not be there yet, a JSON object on a line for each. Returns as
 * sardine_dnsdist_dump(). */
int64_t sardine_dnsdist_dump_json(sardine_cache *cache, const char *path,
                                  const struct sardine_selector *selector,
                                  const struct sardine_dnsdist_filter *filter);

/* The addresses of the A and AAAA records in the answers to this name (wire form), or the names (text) whose
 * answers have such a record of this address (network order; 4 or 16 bytes): a line for each, in no order,
 * some perhaps more than once. NULL without memory, else for sardine_dnsdist_free(). */
char *sardine_dnsdist_addresses_of(sardine_cache *cache, const uint8_t *name, uint32_t name_len);
char *sardine_dnsdist_names_with(sardine_cache *cache, const uint8_t *address, uint32_t address_len);
void sardine_dnsdist_free(char *list);

/* "A", "AAAA", "TYPE65280": writes to `room` and returns it, or static text. */
const char *sardine_dnsdist_type(uint32_t type, char room[16]);

/* An address from text to network order. Returns 4 or 16, its length, or 0 if it is none. */
uint32_t sardine_dnsdist_address(const char *text, uint8_t address[16]);

/* [cdef] */

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
