/* SPDX-License-Identifier: MIT
 * What was removed while a snapshot was being written or read, or since it was written: what the file holds
 * of it must not come back. A purge is a record of bytes, the same in memory, in the file and in the journal
 * (FORMAT.md). */
#ifndef SNAPSHOT_PURGELOG_H
#define SNAPSHOT_PURGELOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "entry/check.h"
#include "sardine.h"

/* The purges of a cache that somebody still has to know of. Everything here is under the store's lock. */
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

/* The only user has no need of what was before that point. */
void purgelog_forget(struct purgelog *purges, uint64_t before);

/* What has been purged since that point. */
const uint8_t *purgelog_since(const struct purgelog *purges, uint64_t since, size_t *len);

/* Remember a purge, if anybody wants to know. `selector` is valid, or NULL: everything. */
void purgelog_note(struct purgelog *purges, const struct sardine_selector *selector);

enum {
        PURGE_MAX = 10 + 255 + 2 * SARDINE_TAG_MAX,
};

/* Write the record of a purge; returns its length. */
size_t purgelog_write(const struct sardine_selector *selector, uint8_t out[PURGE_MAX]);

/* How many of the bytes, from the start, are whole and valid records. */
size_t purgelog_check(const uint8_t *bytes, size_t len);

/* Is this entry removed by any of these (checked) records? */
bool purgelog_select(const uint8_t *bytes, size_t len, const struct entry_checked *checked,
                     const uint8_t *entry);

#endif
