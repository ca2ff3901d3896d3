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

/* What a cache does in dnsdist beyond the library's options. */
enum sardine_dnsdist_flag {
        SARDINE_DNSDIST_ALWAYS_DO = 1, /* ask backends with DO for every client, so that one answer serves
                                          all; write the response for the client that waits */
        SARDINE_DNSDIST_RESCUE = 2, /* put expired data in the place of SERVFAIL and REFUSED from a backend;
                                       without it only when no backend is up */
};

enum {
        SARDINE_DNSDIST_CHOSEN_POOL =
            0x7fffffff, /* the one that sardine_dnsdist_choose() chose, or the default */
};

/* What becomes of a query when no backend is up and there is no expired data. */
enum sardine_dnsdist_no_server {
        SARDINE_DNSDIST_IGNORE = 0,   /* sardine_dnsdist_self_answered() has nothing to do with it */
        SARDINE_DNSDIST_DROP = 1,     /* it is dropped */
        SARDINE_DNSDIST_SERVFAIL = 2, /* it gets dnsdist's SERVFAIL */
};

/* The name of a dnsdist function that this process does not have, so that nothing here can work; or NULL. */
const char *sardine_dnsdist_missing(void);

/* Create a cache and number it. `flags`: enum sardine_dnsdist_flag. Returns the number, above 0, and sets
 * *cache, which is for statistics, removal and inspection; or returns a negative error as sardine_create()
 * does, -ENOSPC with too many caches, and puts the library's explanation, if there is one, in `why`. */
int sardine_dnsdist_create(const struct sardine_options *options, uint32_t flags, sardine_cache **cache,
                           char *why, size_t why_size);

/* Detach a cache from every pool and free it. dnsdist's threads may go on: the call waits for those that are
 * inside the cache. The caller makes sure that nobody uses the `sardine_cache *` any more. */
void sardine_dnsdist_destroy(uint32_t cache);

/* Load a policy for this cache, as sardine_policy_load() does. `watch`: every so many seconds, look whether
 * the file has changed, and load it again then; 0: never. A thread of ours does that. */
int sardine_dnsdist_policy(uint32_t cache, const char *path, uint32_t flags, uint32_t watch, char *why,
                           size_t why_size);

/* The number of a pool, 0 or above; the default pool's name is "". -ENOSPC with too many pools, -ENOMEM. */
int sardine_dnsdist_pool(const char *name);

/* From now on the pool's queries use this cache; 0: none. */
void sardine_dnsdist_attach(uint32_t pool, uint32_t cache);

/* 1: hits get the tag "sardine-hit", so that rules for self-answered responses can tell them. Costs an
 * allocation. */
void sardine_dnsdist_mark_hits(int on);

/* 1: responses that were offered to the cache get the tag "sardine-kept". Costs an allocation. */
void sardine_dnsdist_mark_kept(int on);

/* dnsdist has been told to answer SERVFAIL when no backend is up: what that is to become (enum
 * sardine_dnsdist_no_server). Unless it is to be ignored, every query that a lookup lets pass gets a tag. */
void sardine_dnsdist_no_server(int what);

/* In a query action that lets the rules go on: the pool whose cache SARDINE_DNSDIST_CHOSEN_POOL stands for.
 */
void sardine_dnsdist_choose(uint32_t pool, void *dq);

/* In a query action. Returns 1 when dnsdist's packet now is the whole reply. Else 0; on a miss what is needed
 * later travels with the query as the tag "sardine". `dq` is a dnsdist_ffi_dnsquestion_t. */
int sardine_dnsdist_lookup(uint32_t pool, void *dq);

/* In a response action: keep the response if its query carries a token; let expired data take the place of a
 * failure; write it for the client that waits if the backend was asked with DO on its behalf. */
void sardine_dnsdist_response(void *dr);

/* 1: queries that miss in a cache with SARDINE_DNSDIST_RESCUE are kept by dnsdist so that they can be asked
 * again. Costs a copy. Returns 0 when this dnsdist cannot do that. */
int sardine_dnsdist_catch_timeouts(int on);

/* In an action for time-outs: when there is expired data for the client, the query gets the tag
 * "sardine-late". */
void sardine_dnsdist_timed_out(void *dr);

/* In an action for responses that dnsdist made itself, when there is the tag "sardine": no backend was up, or
 * dnsdist took the options from the OPT of a hit. Returns 1 when the response is to be dropped, else 0. */
int sardine_dnsdist_self_answered(void *dr);

/* [cdef] */

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
