/* SPDX-License-Identifier: MIT
 * The last purges, for those who ask why an answer is not here (explain.c). */
#ifndef PURGED_H
#define PURGED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "entry/key.h"
#include "sardine.h"

enum {
        PURGED_LAST = 16,
};

struct purged; /* NULL: none yet */

/* Everything here is under the store's lock. `selector`: see purgerecord.h; `vague`: it says more than what
 * was removed. */
void purged_note(struct purged **purged, const struct sardine_selector *selector, bool vague, uint32_t now);

/* Did one of them remove the answer to this question, if it was here? enum sardine_purged; the newest that
 * did, and when. */
uint32_t purged_find(const struct purged *purged, const struct entry_key *key, uint32_t *when);

#endif
