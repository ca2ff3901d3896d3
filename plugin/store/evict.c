/* SPDX-License-Identifier: MIT */
#include "store/evict.h"

#include <errno.h>
#include <time.h>

#include "store/store_impl.h"

enum {
        BATCH = 16,          /* entries whose buckets are fetched at once */
        LOOK_AT = 64,        /* entries that evict_one looks at before it takes the least useful */
        VICTIMS = 8,         /* segments that one put reclaims at most */
        PROBATION_PART = 10, /* new entries may keep a tenth of the segments, whatever else is old */
};

unsigned evict_class(const struct store *store, bool proven, uint32_t expiry, uint32_t now)
{
        if (!proven || store->classes == 1)
                return 0;
        uint32_t left = expiry > now ? expiry - now : 0;
        unsigned class = left < 60 ? 1 : left < 600 ? 2 : left < 3600 ? 3 : 4;
        return class < store->classes ? class : store->classes - 1;
}

struct candidate {
        const uint8_t *entry;
        uint32_t location;
        uint32_t hash;
        uint32_t offset;
};

/* The next entries of a segment from *offset on, alive or not; their buckets are on the way. */
static unsigned gather(const struct store *store, uint32_t s, uint32_t *offset, struct candidate *batch,
                       unsigned max)
{
        const struct log *log = &store->log;
        const uint64_t size = index_size(&store->index);
        unsigned n = 0;
        for (; n < max && *offset < log->segments[s].used; n++) {
                struct candidate *c = &batch[n];
                c->offset = *offset;
                c->location = log_location(log, s, *offset);
                c->entry = log_at(log, c->location);
                c->hash = store_fold(store, store->options.hash(store->options.hash_ctx, c->entry));
                __builtin_prefetch(&store->index.buckets[index_address(c->hash, size)]);
                __builtin_prefetch(&store->index.buckets[index_address(index_mix(c->hash), size)]);
                *offset += log_stride(log, entry_size(c->entry));
        }
        return n;
}

/* Move an entry to an open segment. Takes no memory from the system beyond `budget`. */
static bool copy_forward(struct store *store, slot_t *slot, const struct candidate *c, uint64_t budget,
                         uint32_t now)
{
        struct log *log = &store->log;
        unsigned class = evict_class(store, true, entry_expiry(c->entry), now);
        if (log_room(log, class) < log_stride(log, entry_size(c->entry))) {
                log_seal(log, class);
                if (!log_open(log, class, budget))
                        return false;
        }
        uint32_t location = log_append(log, class, c->entry);
        slot_set(slot, slot_make(c->hash, slot_popularity(slot_get(slot)) / 2, location));
        log_kill(log, c->location);
        store->moved++;
        return true;
}

/* Empty a sealed segment. Entries beyond use go; others move if `keep` or popular, within bounds. When
 * nothing can move any more: with `keep` the rest stays where it is, else it goes. */
static void reclaim(struct store *store, uint32_t s, bool keep, uint32_t now)
{
        struct log *log = &store->log;
        struct candidate batch[BATCH];
        uint32_t most = log->segment_size / 4 * 3, copied = 0;
        uint32_t offset = 0;
        for (unsigned n; (n = gather(store, s, &offset, batch, BATCH)) > 0;) {
                for (unsigned i = 0; i < n; i++) {
                        slot_t *slot = index_slot_of(&store->index, batch[i].hash, batch[i].location);
                        if (!slot)
                                continue;
                        if (!store_wants(store, batch[i].entry, now)) {
                                store_drop(store, slot);
                                store->expired++;
                                continue;
                        }
                        bool popular = slot_popularity(slot_get(slot)) > 0 &&
                                       entry_expiry(batch[i].entry) > now && copied < most;
                        if (keep || popular) {
                                uint64_t budget = keep ? store_budget(store) : 0;
                                copied += entry_size(batch[i].entry);
                                if (copy_forward(store, slot, &batch[i], budget, now))
                                        continue;
                                if (keep)
                                        return;
                        }
                        store_drop(store, slot);
                        store->evicted++;
                }
        }
}

/* The sealed segment that is most dead, if it is so for at least 1/part; expired counts as dead. */
static uint32_t most_dead(const struct store *store, uint32_t part, uint32_t now)
{
        const struct log *log = &store->log;
        uint32_t best = NO_SEGMENT, best_dead = log->segment_size / part;
        for (uint32_t s = 0; s < log->segments_limit; s++) {
                const struct segment *segment = &log->segments[s];
                if (segment->state != SEGMENT_SEALED)
                        continue;
                bool expired = (uint64_t)segment->max_expiry + store->options.stale_window < now;
                uint32_t dead = expired ? log->segment_size : segment->used - segment->live;
                if (dead > best_dead) {
                        best = s;
                        best_dead = dead;
                }
        }
        return best;
}

/* The oldest sealed segment, of new entries as long as these have more than their part. */
static uint32_t oldest(const struct store *store)
{
        const struct log *log = &store->log;
        uint32_t old[2] = {NO_SEGMENT, NO_SEGMENT}, count[2] = {0, 0};
        for (uint32_t s = 0; s < log->segments_limit; s++) {
                const struct segment *segment = &log->segments[s];
                if (segment->state != SEGMENT_SEALED)
                        continue;
                unsigned proven = segment->class > 0;
                count[proven]++;
                if (old[proven] == NO_SEGMENT || segment->stamp < log->segments[old[proven]].stamp)
                        old[proven] = s;
        }
        bool proven = count[0] <= (count[0] + count[1]) / PROBATION_PART && count[1] > 0;
        return old[proven];
}

static uint32_t victim(struct store *store, uint32_t now)
{
        uint32_t s = most_dead(store, 4, now);
        if (s == NO_SEGMENT)
                s = oldest(store);
        if (s == NO_SEGMENT) {
                for (unsigned c = 0; c < CLASSES; c++)
                        log_seal(&store->log, c);
                s = oldest(store);
        }
        return s;
}

static uint64_t available(const struct store *store)
{
        const struct log *log = &store->log;
        return log->n_warm + log->n_retired + (store_budget(store) >> log->segment_shift);
}

int evict_make_room(struct store *store, unsigned class, uint32_t stride, uint32_t now)
{
        struct log *log = &store->log;
        if (log_room(log, class) >= stride)
                return 0;
        log_seal(log, class);
        log_poll(log);
        uint32_t dead = most_dead(store, 2, now);
        if (dead != NO_SEGMENT)
                reclaim(store, dead, true, now);
        for (unsigned n = 0; n < VICTIMS && available(store) <= store->reserve; n++) {
                uint32_t s = victim(store, now);
                if (s == NO_SEGMENT)
                        break;
                reclaim(store, s, false, now);
        }
        for (unsigned waits = 0;; waits++) {
                /* Copying may have opened one. */
                if (log_room(log, class) >= stride)
                        return 0;
                log_seal(log, class);
                log_poll(log);
                if (log_open(log, class, store_budget(store)))
                        return 0;
                if (log->n_retired == 0 || waits == EPOCH_WAITS)
                        return -ENOMEM;
                nanosleep(&(struct timespec){.tv_nsec = EPOCH_WAIT_NS}, NULL);
        }
}

/* Put the cursor on the segment opened next after the one it was on, the very oldest after the newest. */
static bool advance(struct store *store)
{
        const struct log *log = &store->log;
        uint32_t next = NO_SEGMENT, first = NO_SEGMENT;
        for (uint32_t s = 0; s < log->segments_limit; s++) {
                const struct segment *segment = &log->segments[s];
                if ((segment->state != SEGMENT_OPEN && segment->state != SEGMENT_SEALED) ||
                    segment->live == 0)
                        continue;
                if (first == NO_SEGMENT || segment->stamp < log->segments[first].stamp)
                        first = s;
                if (segment->stamp > store->cursor.stamp &&
                    (next == NO_SEGMENT || segment->stamp < log->segments[next].stamp))
                        next = s;
        }
        if (next == NO_SEGMENT)
                next = first;
        if (next == NO_SEGMENT)
                return false;
        store->cursor.segment = next;
        store->cursor.offset = 0;
        store->cursor.stamp = log->segments[next].stamp;
        return true;
}

static bool on_segment(const struct store *store)
{
        const struct segment *segment = &store->log.segments[store->cursor.segment];
        return (segment->state == SEGMENT_OPEN || segment->state == SEGMENT_SEALED) &&
               segment->stamp == store->cursor.stamp && store->cursor.offset < segment->used;
}

bool evict_one(struct store *store, uint32_t now)
{
        slot_t *least = NULL;
        unsigned seen = 0;
        while (store->entries > 0 && seen < LOOK_AT) {
                if (!on_segment(store) && !advance(store))
                        break;
                struct candidate c;
                if (gather(store, store->cursor.segment, &store->cursor.offset, &c, 1) == 0)
                        continue;
                slot_t *slot = index_slot_of(&store->index, c.hash, c.location);
                if (!slot)
                        continue;
                seen++;
                uint64_t value = slot_get(slot);
                unsigned popularity = slot_popularity(value);
                if (!store_wants(store, c.entry, now)) {
                        store_drop(store, slot);
                        store->expired++;
                        return true;
                }
                if (popularity == 0 || entry_expiry(c.entry) <= now) {
                        least = slot;
                        break;
                }
                slot_set(slot, slot_make(c.hash, popularity - 1, c.location));
                if (!least || popularity - 1 < slot_popularity(slot_get(least)))
                        least = slot;
        }
        if (!least)
                return false;
        store_drop(store, least);
        store->evicted++;
        return true;
}
