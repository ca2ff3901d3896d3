/* SPDX-License-Identifier: MIT
 * Many purges (purgerecord.h), to be asked of entry after entry: are there any that remove it? Found by what
 * they name, so that ten thousand cost an entry no more than ten. */
#ifndef SNAPSHOT_PURGESET_H
#define SNAPSHOT_PURGESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "entry/check.h"

/* Zeroed: empty. */
struct purgeset {
        uint8_t *bytes; /* the records, back to back */
        size_t len, room;
        struct purgeset_node *nodes; /* one for each; in [0] none */
        uint32_t count, nodes_room;
        uint32_t *heads; /* by hash; 0: none */
        uint32_t mask;
};

void purgeset_fini(struct purgeset *set);

/* Add (checked) records. False: no memory, and the set is of no use any more. */
bool purgeset_add(struct purgeset *set, const uint8_t *bytes, size_t len);

/* Is this (checked) entry removed by any of them? */
bool purgeset_removes(const struct purgeset *set, const struct entry_checked *checked, const uint8_t *entry);

#endif
