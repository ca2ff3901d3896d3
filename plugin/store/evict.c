/* SPDX-License-Identifier: MIT */
#include "store/evict.h"

#include <errno.h>
#include <time.h>

#include "store/store_impl.h"

enum {
        BATCH = 16,          /* entries whose buckets are fetched at once */
        LOOK_AT = 64,        /* entries that evict_some looks at before it takes whatever comes */
        VICTIMS = 3,         /* segments that one put reclaims at most */
        SPARES = 4,          /* segments that it passes over for each */
        PROBATION_PART = 10, /* new entries may keep a tenth of the segments, whatever else is old */
        COMPACT_FROM = 8,    /* segments in use; with fewer there is nothing to win */
};

unsigned evict_class(const struct store *store, bool proven, uint32_t expiry, uint32_t now)
{
        if (!proven || store->classes == 1)
                return 0;
        uint32_t left = expiry > now ? expiry - now : 0;
        unsigned class = left < 60 ? 1 : left < 600 ? 2 : left < 3600 ? 3 : 4;
        return class < store->classes ? class : store->classes - 1;
}

static uint32_t *ghost_place(const struct store *store, uint32_t hash)
{
        /* Its high bits are not what the bucket's number is made of. */
        return &store->ghosts[hash >> 7 & store->ghosts_mask];
}

bool evict_lay_ghost(struct store *store, uint32_t hash)
{
        uint32_t *ghost = ghost_place(store, hash);
        if (*ghost != hash)
                return false;
        *ghost = 0;
        return true;
}

static void drop(struct store *store, slot_t *slot)
{
        uint64_t value = slot_get(slot);
        if (slot_popularity(value) > 0)
                *ghost_place(store, slot_hash(value)) = slot_hash(value);
        store_drop(store, slot);
}

struct candidate {
        const uint8_t *entry;
        uint32_t location;
        uint32_t hash;
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
                c->location = log_location(log, s, *offset);
                c->entry = log_at(log, c->location);
                c->hash = store_fold(store, store->options.hash(store->options.hash_ctx, c->entry));
                __builtin_prefetch(&store->index.buckets[index_address(c->hash, size)]);
                __builtin_prefetch(&store->index.buckets[index_address(index_mix(c->hash), size)]);
                *offset += log_stride(log, entry_size(c->entry));
        }
        return n;
}

static bool doomed(const struct store *store, const struct candidate *c)
{
        return purges_doom(&store->purges, &store->log, c->location);
}

static bool copy_forward(struct store *store, slot_t *slot, const struct candidate *c, bool proven,
                         uint32_t popularity, uint32_t now)
{
        struct log *log = &store->log;
        unsigned class = evict_class(store, proven, entry_expiry(c->entry), now);
        if (log_room(log, class) < log_stride(log, entry_size(c->entry))) {
                log_seal(log, class);
                if (!log_open(log, class, store_budget(store)))
                        return false;
        }
        slot_set(slot, slot_make(c->hash, popularity, log_append(log, class, c->entry)));
        log_kill(log, c->location);
        store->moved++;
        return true;
}

/* Go over the next entries, `max` at most, of the sealed segment that is being emptied. Returns how many
 * went: those beyond use, and those that are neither popular nor fresh. `copy`: so many bytes of popular ones
 * may have been copied out of this segment, then these go too. */
static unsigned sweep(struct store *store, struct sweep *sweep, unsigned max, uint32_t copy, uint32_t now)
{
        struct candidate batch[BATCH];
        unsigned n = gather(store, sweep->segment, &sweep->offset, batch, max < BATCH ? max : BATCH);
        unsigned gone = 0;
        const bool keep = sweep->holes && store->log.segments[sweep->segment].class > 0;
        for (unsigned i = 0; i < n; i++) {
                const struct candidate *c = &batch[i];
                slot_t *slot = index_slot_of(&store->index, c->hash, c->location);
                if (!slot)
                        continue;
                uint32_t popularity = slot_popularity(slot_get(slot));
                bool purged = doomed(store, c);
                uint64_t *reason = purged                              ? &store->expunged
                                   : store_wants(store, c->entry, now) ? &store->evicted
                                                                       : &store->expired;
                if ((keep || popularity > 0) && entry_expiry(c->entry) > now && !purged &&
                    sweep->copied < copy) {
                        sweep->copied += entry_size(c->entry);
                        if (copy_forward(store, slot, c, true, keep ? popularity : popularity / 2, now))
                                continue;
                }
                drop(store, slot);
                *reason += 1;
                gone++;
        }
        return gone;
}

static bool sweeping(const struct store *store, const struct sweep *sweep)
{
        const struct segment *segment = &store->log.segments[sweep->segment];
        return segment->state == SEGMENT_SEALED && segment->stamp == sweep->stamp;
}

/* Not this one, if nearly all of it is popular: copying it would win nothing. As if it had been copied. */
static bool spare(struct store *store, uint32_t s, uint32_t now)
{
        struct candidate batch[BATCH];
        struct segment *segment = &store->log.segments[s];
        uint32_t offset = 0, popular = 0;
        for (unsigned n; (n = gather(store, s, &offset, batch, BATCH)) > 0;)
                for (unsigned i = 0; i < n; i++) {
                        slot_t *slot = index_slot_of(&store->index, batch[i].hash, batch[i].location);
                        if (slot && slot_popularity(slot_get(slot)) > 0 && entry_expiry(batch[i].entry) > now)
                                popular += entry_size(batch[i].entry);
                }
        if (popular < store->log.segment_size / 4 * 3)
                return false;
        offset = 0;
        for (unsigned n; (n = gather(store, s, &offset, batch, BATCH)) > 0;)
                for (unsigned i = 0; i < n; i++) {
                        slot_t *slot = index_slot_of(&store->index, batch[i].hash, batch[i].location);
                        if (slot)
                                slot_set(slot, slot_make(batch[i].hash, slot_popularity(slot_get(slot)) / 2,
                                                         batch[i].location));
                }
        segment->class = CLASSES - 1;
        segment->stamp = ++store->log.stamp;
        return true;
}

/* Move everything out of a segment that is mostly holes. Nothing but what is beyond use goes; when there is
 * no room for more, the rest stays where it is. */
static void compact(struct store *store, uint32_t s, uint32_t now)
{
        struct candidate batch[BATCH];
        uint32_t offset = 0;
        bool proven = store->log.segments[s].class > 0;
        for (unsigned n; (n = gather(store, s, &offset, batch, BATCH)) > 0;)
                for (unsigned i = 0; i < n; i++) {
                        slot_t *slot = index_slot_of(&store->index, batch[i].hash, batch[i].location);
                        if (!slot)
                                continue;
                        bool purged = doomed(store, &batch[i]);
                        if (purged || !store_wants(store, batch[i].entry, now)) {
                                drop(store, slot);
                                *(purged ? &store->expunged : &store->expired) += 1;
                                continue;
                        }
                        uint32_t popularity = slot_popularity(slot_get(slot));
                        if (!copy_forward(store, slot, &batch[i], proven || popularity > 0, popularity, now))
                                return;
                }
}

/* What the sealed segments are like. */
struct survey {
        uint32_t
            deadest; /* NO_SEGMENT, or that with the most bytes that are no use: dead, expired, never used */
        uint32_t dead;                /* how many these are */
        uint32_t oldest[2], count[2]; /* of new entries; of proven ones */
};

static struct survey survey(const struct store *store, uint32_t now)
{
        const struct log *log = &store->log;
        struct survey all = {.deadest = NO_SEGMENT, .oldest = {NO_SEGMENT, NO_SEGMENT}};
        const uint32_t end = log_segments(log);
        for (uint32_t s = 0; s < end; s++) {
                const struct segment *segment = &log->segments[s];
                if (segment->state != SEGMENT_SEALED)
                        continue;
                bool expired = (uint64_t)segment->max_expiry + store->options.stale_window < now;
                uint32_t dead = expired ? log->segment_size : log->segment_size - segment->live;
                if (dead > all.dead) {
                        all.deadest = s;
                        all.dead = dead;
                }
                unsigned proven = segment->class > 0;
                all.count[proven]++;
                uint32_t *oldest = &all.oldest[proven];
                if (*oldest == NO_SEGMENT || segment->stamp < log->segments[*oldest].stamp)
                        *oldest = s;
        }
        return all;
}

/* The segment to empty, if there is any: that with the most useless bytes, if these are so many or more; else
 * the oldest one, of new entries as long as these have more than their part. */
static struct sweep choose_victim(struct store *store, uint32_t least_dead, uint32_t now)
{
        struct survey all = survey(store, now);
        if (all.count[0] + all.count[1] == 0) {
                for (unsigned c = 0; c < CLASSES; c++)
                        log_seal(&store->log, c);
                all = survey(store, now);
        }
        bool proven = all.count[0] <= (all.count[0] + all.count[1]) / PROBATION_PART && all.count[1] > 0;
        struct sweep sweep = {.segment = all.oldest[proven]};
        if (all.dead >= least_dead) {
                sweep.segment = all.deadest;
                sweep.holes = true;
        }
        if (sweep.segment != NO_SEGMENT)
                sweep.stamp = store->log.segments[sweep.segment].stamp;
        return sweep;
}

static uint64_t available(const struct store *store)
{
        const struct log *log = &store->log;
        return log->n_warm + log->n_retired + (store_budget(store) >> log->segment_shift);
}

int evict_make_room(struct store *store, unsigned class, uint32_t stride, uint32_t now)
{
        struct log *log = &store->log;
        log_seal(log, class);
        log_poll(log);
        if (log_segments_used(log) >= COMPACT_FROM) {
                struct survey all = survey(store, now);
                if (all.dead > log->segment_size / 2)
                        compact(store, all.deadest, now);
        }
        /* Each victim may keep less, so that together they give at least one segment. */
        uint32_t copy = log->segment_size / 4 * 3;
        for (unsigned n = 0; n < VICTIMS && available(store) <= store->reserve; n++, copy /= 2) {
                struct sweep victim = choose_victim(store, log->segment_size / 4, now);
                if (victim.segment == NO_SEGMENT)
                        break;
                for (unsigned spared = 0;
                     spared < SPARES && !victim.holes && spare(store, victim.segment, now); spared++)
                        victim = choose_victim(store, log->segment_size / 4, now);
                while (sweeping(store, &victim))
                        sweep(store, &victim, BATCH, copy, now);
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

unsigned evict_some(struct store *store, unsigned want, uint32_t now)
{
        unsigned gone = 0, looked = 0;
        while (store->entries > 0 && (gone == 0 || (gone < want && looked < LOOK_AT))) {
                if (!sweeping(store, &store->sweep))
                        store->sweep = choose_victim(store, store->log.segment_size, now);
                uint32_t copy = looked < LOOK_AT ? store->log.segment_size / 4 * 3 : 0;
                gone += sweep(store, &store->sweep, want - gone, copy, now);
                looked += want;
        }
        return gone;
}
