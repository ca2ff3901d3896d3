/* SPDX-License-Identifier: MIT
 *
 * keep.h - snapshots in dnsdist, which ends without a word: by a signal that it does not catch, or by
 * _exit(). So that its caches are saved nevertheless, SIGTERM and SIGINT are caught here, once there is
 * anything to save.
 *
 * The part between the two [cdef] lines has no preprocessor directives: it is compiled into the Lua front.
 */
#ifndef HOST_KEEP_H
#define HOST_KEEP_H

#include <sardine.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* [cdef] */

/* Load the snapshot in the background, save it every `interval` seconds, and when dnsdist ends. Returns as
 * sardine_snapshot_keep() does; -ENOSPC with too many caches. sardine_dnsdist_destroy() ends it. */
int sardine_dnsdist_keep(sardine_cache *cache, const char *path, uint32_t interval);

/* Save all that are kept, for dnsdist is about to end. */
void sardine_dnsdist_ending(void);

/* [cdef] */

/* The cache is going. */
void sardine_dnsdist_keep_no_more(sardine_cache *cache);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
