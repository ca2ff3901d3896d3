/* SPDX-License-Identifier: MIT */
#include "snapshot/purgelog.h"

#include <stdlib.h>
#include <string.h>

#include "snapshot/purgerecord.h"
#include "wire/bytes.h"

enum {
        ROOM_FIRST = 8 * PURGE_MAX,
};

void purgelog_fini(struct purgelog *purges)
{
        free(purges->bytes);
        *purges = (struct purgelog){0};
}

bool purgelog_begin(struct purgelog *purges, uint64_t *since)
{
        if (!purges->bytes) {
                purges->bytes = malloc(ROOM_FIRST);
                if (!purges->bytes)
                        return false;
                purges->room = ROOM_FIRST;
        }
        purges->users++;
        *since = purges->start + purges->len;
        return true;
}

void purgelog_end(struct purgelog *purges)
{
        if (--purges->users > 0)
                return;
        purges->start += purges->len;
        free(purges->bytes);
        purges->bytes = NULL;
        purges->len = purges->room = 0;
}

size_t purgelog_read(const struct purgelog *purges, uint64_t *since, uint8_t *out, size_t room)
{
        /* What was before `start` has become part of what is first there. */
        size_t from = *since > purges->start ? (size_t)(*since - purges->start) : 0, to = from, len;
        while (to < purges->len && (len = get_be16(purges->bytes + to)) <= room - (to - from))
                to += len;
        memcpy(out, purges->bytes + from, to - from);
        *since = purges->start + to;
        return to - from;
}

/* Room for one more record. */
static bool make_room(struct purgelog *purges)
{
        if (purges->room - purges->len >= PURGE_MAX)
                return true;
        size_t room = purges->room < PURGELOG_MOST / 2 ? purges->room * 2 : PURGELOG_MOST;
        uint8_t *bytes = purges->room < room ? realloc(purges->bytes, room) : NULL;
        if (!bytes)
                return false;
        purges->bytes = bytes;
        purges->room = room;
        return true;
}

/* With no room for more, all that was said becomes: everything was purged. Whoever has not read to the end
 * reads that. */
void purgelog_note(struct purgelog *purges, const struct sardine_selector *selector)
{
        if (purges->users == 0)
                return;
        if (!make_room(purges)) {
                uint64_t end = purges->start + purges->len;
                purges->len = purge_record_write(NULL, purges->bytes);
                purges->start = end - purges->len;
        }
        purges->len += purge_record_write(selector, purges->bytes + purges->len);
}
