/* SPDX-License-Identifier: MIT */
#include "store/purge.h"

#include "store/epoch.h"

/* Was it put before the purge began? Later ones are in segments opened later, or behind the end of what the
 * segments that were open then had. */
static bool older(const struct store_purge *purge, const struct log *log, uint32_t location)
{
        uint32_t s = log_segment_of(log, location);
        if (atomic_load_explicit(&log->segments[s].opened, memory_order_relaxed) > purge->stamp)
                return false;
        for (unsigned c = 0; c < CLASSES; c++)
                if (purge->open[c].segment == s)
                        return location < purge->open[c].end;
        return true;
}

bool purge_dooms(const struct store_purge *purge, const struct log *log, uint32_t location)
{
        return older(purge, log, location) && purge->dooms(purge, log_at(log, location));
}

bool purges_doom(const struct purges *purges, const struct log *log, uint32_t location)
{
        const struct store_purge *purge = atomic_load_explicit(&purges->active, memory_order_acquire);
        while (purge && !purge_dooms(purge, log, location))
                purge = atomic_load_explicit(&purge->next, memory_order_acquire);
        return purge != NULL;
}

void purges_begin(struct purges *purges, const struct log *log, struct store_purge *purge)
{
        purge->stamp = log->stamp;
        for (unsigned c = 0; c < CLASSES; c++) {
                uint32_t s = log->open[c];
                purge->open[c] = (struct store_purge_end){.segment = s};
                if (s != NO_SEGMENT)
                        purge->open[c].end = log_location(log, s, log->segments[s].used);
        }
        atomic_store_explicit(&purge->next, atomic_load_explicit(&purges->active, memory_order_relaxed),
                              memory_order_relaxed);
        atomic_store_explicit(&purges->active, purge, memory_order_release);
}

/* Free those that no reader can be asking. */
static void reap(struct purges *purges, uint64_t horizon)
{
        struct store_purge **link = &purges->ended;
        while (*link) {
                struct store_purge *purge = *link;
                if (purge->retired < horizon) {
                        *link = purge->next_ended;
                        purge->release(purge);
                } else {
                        link = &purge->next_ended;
                }
        }
}

void purges_end(struct purges *purges, struct store_purge *purge)
{
        struct store_purge *_Atomic *link = &purges->active;
        while (atomic_load_explicit(link, memory_order_relaxed) != purge)
                link = &atomic_load_explicit(link, memory_order_relaxed)->next;
        atomic_store_explicit(link, atomic_load_explicit(&purge->next, memory_order_relaxed),
                              memory_order_release);
        purge->retired = epoch_retire();
        purge->next_ended = purges->ended;
        purges->ended = purge;
        reap(purges, epoch_horizon());
}

void purges_fini(struct purges *purges)
{
        reap(purges, UINT64_MAX);
}
