/* SPDX-License-Identifier: MIT */
#include "purged.h"

#include <stdlib.h>

#include "snapshot/purgerecord.h"
#include "wire/bytes.h"

struct purged {
        uint64_t count;
        struct {
                uint32_t when;
                bool vague;
                uint8_t record[PURGE_MAX];
        } last[PURGED_LAST];
};

void purged_note(struct purged **purged, const struct sardine_selector *selector, bool vague, uint32_t now)
{
        if (!*purged && !(*purged = calloc(1, sizeof **purged)))
                return; /* then nobody can be told */
        unsigned at = (*purged)->count++ % PURGED_LAST;
        (*purged)->last[at].when = now;
        (*purged)->last[at].vague = vague;
        purge_record_write(selector, (*purged)->last[at].record);
}

uint32_t purged_find(const struct purged *purged, const struct entry_key *key, uint32_t *when)
{
        for (uint64_t n = purged ? purged->count : 0, oldest = n > PURGED_LAST ? n - PURGED_LAST : 0;
             n > oldest; n--) {
                unsigned at = (n - 1) % PURGED_LAST;
                const uint8_t *record = purged->last[at].record;
                const uint8_t *group = purge_record_group(record);
                bool vague = purged->last[at].vague || record[PURGE_AT_FLAGS] & PURGE_RCODE || group[0] > 0;
                /* What the answer was is not known: like it. */
                const struct entry_view answer = {.rcode = (uint8_t)get_be16(record + PURGE_AT_RCODE),
                                                  .group = group + 1,
                                                  .group_len = group[0]};
                if (!purge_record_removes(record, key, &answer))
                        continue;
                *when = purged->last[at].when;
                return vague ? SARDINE_PURGED_PERHAPS : SARDINE_PURGED_YES;
        }
        return SARDINE_PURGED_NO;
}
