/* SPDX-License-Identifier: MIT
 * What was removed while a snapshot is being written or read: what the file holds of it must not come back.
 * Bounded: when purges do not stop, the oldest are put together as one purge of everything. */
#ifndef SNAPSHOT_PURGELOG_H
#define SNAPSHOT_PURGELOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sardine.h"

enum {
        PURGELOG_MOST = 4 << 20, /* bytes; some 150,000 purges of a name */
};

/* The purges of a cache that somebody still has to know of, as records (purgerecord.h). Everything here is
 * under the store's lock. */
struct purgelog {
        uint8_t *bytes;
        size_t len, room;
        uint64_t start; /* how many bytes of history came before bytes[0] */
        unsigned users;
};

void purgelog_fini(struct purgelog *purges);

/* From now on purges are remembered; `since` is the present point of the history. False: no memory. */
bool purgelog_begin(struct purgelog *purges, uint64_t *since);
void purgelog_end(struct purgelog *purges);

/* Copy records from that point of the history on, as many whole ones as there is room for (for one at least),
 * and move the point behind them. 0: no more. */
size_t purgelog_read(const struct purgelog *purges, uint64_t *since, uint8_t *out, size_t room);

/* Remember a purge, if anybody wants to know. `selector` is valid, or NULL: everything. */
void purgelog_note(struct purgelog *purges, const struct sardine_selector *selector);

#endif
