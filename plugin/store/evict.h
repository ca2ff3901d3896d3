/* SPDX-License-Identifier: MIT
 * What goes when there is no room. Under the store's lock. */
#ifndef STORE_EVICT_H
#define STORE_EVICT_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

/* The class of segments where an entry belongs: each kind has its own, and of ordinary ones the new are apart
 * from those that proved useful, these by the time that they have left, so that what is in a segment dies
 * together. */
unsigned evict_class(const struct store *store, enum store_kind kind, bool proven, uint32_t expiry,
                     uint32_t now);

/* Did an entry with this hash have to go lately that was popular, or too new for that? Then not again. */
bool evict_lay_ghost(struct store *store, uint32_t hash);

/* To be asked that soon. May be called by anybody at any time. */
void evict_prefetch_ghost(const struct store *store, uint32_t hash);

/* Nobody was ever here: the ghosts' memory goes back to the system. */
void evict_forget(struct store *store);

/* The class's open segment has no room for `stride` bytes: make some, by reclaiming segments if need be.
 * 0, or -ENOMEM: the system gives no memory, or a reader has been sleeping inside a section for too long. */
int evict_make_room(struct store *store, unsigned class, uint32_t stride, uint32_t now);

/* Remove about `want` entries, at least one if there are any; in place, the segments are emptied bit by bit.
 * Returns how many went. */
unsigned evict_some(struct store *store, unsigned want, uint32_t now);

#endif
