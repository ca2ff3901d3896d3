/* SPDX-License-Identifier: MIT
 *
 * dnsdist.h - what the Lua front (lua/sardine.lua) calls in libsardine.so.
 *
 * dnsdist runs a Lua action once per thread and packet, in a Lua state of that thread. Such an action knows a
 * cache by the number of the pool that it serves, so that a cache can be attached, exchanged and detached
 * while the threads run. Packets are read and written through dnsdist's own FFI functions, found with
 * dlsym().
 *
 * The part between the two [cdef] lines has no preprocessor directives: it is compiled into the Lua front.
 */
#ifndef HOST_DNSDIST_H
#define HOST_DNSDIST_H

#include <sardine.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* [cdef] */

/* The name of a dnsdist function that this process does not have, so that nothing here can work; or NULL. */
const char *sardine_dnsdist_missing(void);

/* Create a cache and number it. Returns the number, above 0, and sets *cache, which is for statistics,
 * removal and inspection; or returns a negative error as sardine_create() does, -ENOSPC with too many caches,
 * and puts the library's explanation, if there is one, in `why`. */
int sardine_dnsdist_create(const struct sardine_options *options, sardine_cache **cache, char *why,
                           size_t why_size);

/* Detach a cache from every pool and free it. dnsdist's threads may go on: the call waits for those that are
 * inside the cache. The caller makes sure that nobody uses the `sardine_cache *` any more. */
void sardine_dnsdist_destroy(uint32_t cache);

/* The number of a pool, 0 or above; the default pool's name is "". -ENOSPC with too many pools, -ENOMEM. */
int sardine_dnsdist_pool(const char *name);

/* From now on the pool's queries use this cache; 0: none. */
void sardine_dnsdist_attach(uint32_t pool, uint32_t cache);

/* 1: hits get the tag "sardine-hit", so that rules for self-answered responses can tell them. Costs an
 * allocation. */
void sardine_dnsdist_mark_hits(int on);

/* In a query action. Returns 1 when dnsdist's packet now is the whole reply. Else 0; on a miss the token
 * travels with the query as the tag "sardine". `dq` is a dnsdist_ffi_dnsquestion_t. */
int sardine_dnsdist_lookup(uint32_t pool, void *dq);

/* In a response action: keep the response if its query carries a token. */
void sardine_dnsdist_store(void *dr);

/* [cdef] */

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
