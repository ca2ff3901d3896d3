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

/* The addresses of the A and AAAA records in the answers to this name (wire form), or the names (text) whose
 * answers have such a record of this address (network order; 4 or 16 bytes): a line for each, in no order,
 * some perhaps more than once. NULL without memory, else for sardine_dnsdist_free(). */
char *sardine_dnsdist_addresses_of(sardine_cache *cache, const uint8_t *name, uint32_t name_len);
char *sardine_dnsdist_names_with(sardine_cache *cache, const uint8_t *address, uint32_t address_len);
void sardine_dnsdist_free(char *list);

/* An address from text to network order. Returns 4 or 16, its length, or 0 if it is none. */
uint32_t sardine_dnsdist_address(const char *text, uint8_t address[16]);

/* [cdef] */

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
