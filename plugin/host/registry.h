/* SPDX-License-Identifier: MIT
 *
 * registry.h - the caches of this process by number, for threads of our own.
 */
#ifndef HOST_REGISTRY_H
#define HOST_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include <sardine.h>

/* The cache of that number, which stays until registry_leave(); or NULL. One at a time. */
sardine_cache *registry_enter(uint32_t id);
void registry_leave(void);

/* Somebody waits for this cache to be left: sardine_dnsdist_destroy() has been called. */
bool registry_gone(uint32_t id);

/* Call `fn` with the number of every cache that there is. */
void registry_each(void (*fn)(void *ctx, uint32_t id), void *ctx);

/* Call `fn` with what every thread has noted: its busiest names, the responses refused. */
struct top;
struct refused;
void registry_each_thread(void (*fn)(void *ctx, struct top *top, struct refused *refused), void *ctx);

#endif
