/* SPDX-License-Identifier: MIT */
#include "store/evict.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "store/memory.h"
#include "store/store_impl.h"

enum {
        BATCH = 16,       /* entries whose buckets are fetched at once */
        LOOK_AT = 64,     /* entries that evict_some looks at before it takes whatever comes */
        VICTIMS = 4,      /* segments that one put reclaims at most */
        SPARES = 4,       /* segments that it passes over for each, */
        ASKS = 4096,      /* but none any more when a judge has been asked about so many entries */
        COMPACT_FROM = 8, /* segments in use; with fewer there is nothing to win */
        COMPACTIONS = 4,  /* segments compacted whenever one is filled, at most */
        LARGE_ENTRY = 512,
        SURVEY_MOST = 8192, /* segments that are looked at to choose one: 2 GiB of the largest */
};

unsigned evict_class(const struct store *store, enum store_kind kind, bool proven, uint32_t expiry,
                     uint32_t now)
{
        if (kind == STORE_NEGATIVE && store->kinds)
                return proven ? CLASS_NEGATIVE : CLASS_NEGATIVE_NEW;
        if (kind == STORE_KEPT && store->kinds)
                return CLASS_KEPT;
        if (!proven || store->proven == 0)
                return CLASS_NEW;
        uint32_t left = expiry > now ? expiry - now : 0;
        unsigned class = left < 60 ? 1 : left < 600 ? 2 : left < 3600 ? 3 : 4;
        return class < store->proven ? class : store->proven;
}

static bool is_new(unsigned class)
{
        return class == CLASS_NEW || class == CLASS_NEGATIVE_NEW;
}

static enum store_kind kind_of(unsigned class)
{
        switch (class) {
        case CLASS_NEGATIVE_NEW:
        case CLASS_NEGATIVE:
                return STORE_NEGATIVE;
        case CLASS_KEPT:
                return STORE_KEPT;
        default:
                return STORE_ORDINARY;
        }
}

static uint16_t *ghosts_of(const struct store *store)
{
        return atomic_load_explicit(&store->ghosts, memory_order_relaxed);
}

static bool haunted(const struct store *store)
{
        return atomic_load_explicit(&store->haunted, memory_order_relaxed);
}

static void set_haunted(struct store *store, bool haunted)
{
        atomic_store_explicit(&store->haunted, haunted, memory_order_relaxed);
}

static bool make_ghosts(struct store *store)
{
        size_t bytes = memory_pages(store_ghost_bytes(store));
        uint16_t *ghosts = memory_reserve(bytes);
        if (!ghosts)
                return false;
        set_haunted(store, false);
        /* They count as ours from now on, so they are. */
        memset(ghosts, 0, bytes);
        atomic_store_explicit(&store->ghosts, ghosts, memory_order_relaxed);
        return true;
}

void evict_forget(struct store *store)
{
        uint16_t *ghosts = ghosts_of(store);
        atomic_store_explicit(&store->ghosts, NULL, memory_order_relaxed);
        if (ghosts)
                memory_unreserve(ghosts, memory_pages(store_ghost_bytes(store)));
}

static uint16_t *ghost_place(const struct store *store, uint16_t *ghosts, uint32_t hash)
{
        return ghosts + (hash >> 7 & store->ghosts_mask);
}

static uint16_t ghost_of(uint32_t hash)
{
        return (uint16_t)(hash % UINT16_MAX + 1);
}

bool evict_lay_ghost(struct store *store, uint32_t hash)
{
        if (!ghosts_of(store) && !make_ghosts(store))
                return false;
        if (!haunted(store))
                return false;
        uint16_t *ghost = ghost_place(store, ghosts_of(store), hash);
        if (*ghost != ghost_of(hash))
                return false;
        *ghost = 0;
        return true;
}

/* Without the lock: they may be gone at any time. */
void evict_prefetch_ghost(const struct store *store, uint32_t hash)
{
        uint16_t *ghosts = ghosts_of(store);
        if (ghosts && haunted(store))
                __builtin_prefetch(ghost_place(store, ghosts, hash));
}

/* New negatives leave no ghost: a flood of them would drive out all others. */
static void drop(struct store *store, slot_t *slot, unsigned class)
{
        uint64_t value = slot_get(slot);
        uint16_t *ghosts = ghosts_of(store);
        if (ghosts && (slot_popularity(value) > 0 || class == CLASS_NEW)) {
                *ghost_place(store, ghosts, slot_hash(value)) = ghost_of(slot_hash(value));
                set_haunted(store, true);
        }
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
                c->hash = store_fold(store, store->options.hash(store->options.ctx, c->entry));
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

/* `from`: the class that it is in. */
static bool copy_forward(struct store *store, slot_t *slot, const struct candidate *c, unsigned from,
                         bool proven, uint32_t popularity, uint32_t now)
{
        struct log *log = &store->log;
        unsigned class = evict_class(store, kind_of(from), proven, entry_expiry(c->entry), now);
        if (log_room(log, class) < log_stride(log, entry_size(c->entry))) {
                log_seal(log, class);
                if (!log_open(log, class, store_budget(store), now))
                        return false;
        }
        slot_set(slot, slot_make(c->hash, popularity, log_append(log, class, c->entry)));
        log_kill(log, c->location);
        store->moved++;
        return true;
}

/* The popularity with which a fresh entry outlives its segment, or STORE_GOES. */
static int judge(const struct store *store, const uint8_t *entry, uint32_t popularity)
{
        int verdict = STORE_AS_EVER;
        if (store->options.judge)
                verdict = store->options.judge(store->options.ctx, entry, popularity);
        if (verdict == STORE_AS_EVER)
                return popularity > 0 ? (int)popularity / 2 : STORE_GOES;
        return verdict < POPULARITY_MAX ? verdict : POPULARITY_MAX;
}

/* Go over the next entries, `max` at most, of the sealed segment that is being emptied. Returns how many
 * went: those beyond use and, unless it keeps what is fresh, those that are not popular. `copy`: so many
 * bytes of others may have been copied out of this segment, then these go too. */
static unsigned sweep(struct store *store, struct sweep *sweep, unsigned max, uint32_t copy, uint32_t now)
{
        struct candidate batch[BATCH];
        unsigned n = gather(store, sweep->segment, &sweep->offset, batch, max < BATCH ? max : BATCH);
        unsigned gone = 0;
        const unsigned class = store->log.segments[sweep->segment].class;
        for (unsigned i = 0; i < n; i++) {
                const struct candidate *c = &batch[i];
                slot_t *slot = index_slot_of(&store->index, c->hash, c->location);
                if (!slot)
                        continue;
                uint32_t popularity = slot_popularity(slot_get(slot));
                bool purged = doomed(store, c);
                if (store_fresh(store, c->entry, now) && !purged && sweep->copied < copy) {
                        int stays = sweep->judged  ? (int)popularity / 2
                                    : sweep->keeps ? (int)popularity
                                                   : judge(store, c->entry, popularity);
                        if (stays >= 0) {
                                sweep->copied += entry_size(c->entry);
                                bool proven = !is_new(class) || popularity > 0 || stays > 0;
                                if (copy_forward(store, slot, c, class, proven, (uint32_t)stays, now))
                                        continue;
                        }
                }
                uint64_t *reason = purged                                     ? &store->expunged
                                   : store_wants(store, class, c->entry, now) ? &store->evicted
                                                                              : &store->expired;
                drop(store, slot, class);
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

/* What of a segment would stay, in bytes, and how much of that is popular. A judge is asked here, of one
 * entry after the other: what it wants to go goes at once, and leaves a hole; the popularity that it gives
 * counts.
 */
struct worth {
        uint32_t stays, popular;
};
static struct worth look_through(struct store *store, uint32_t s, unsigned *asked, uint32_t now)
{
        struct candidate batch[BATCH];
        struct worth worth = {0, 0};
        uint32_t offset = 0;
        for (unsigned n; (n = gather(store, s, &offset, batch, BATCH)) > 0;)
                for (unsigned i = 0; i < n; i++) {
                        const struct candidate *c = &batch[i];
                        slot_t *slot = index_slot_of(&store->index, c->hash, c->location);
                        if (!slot || !store_fresh(store, c->entry, now) || doomed(store, c))
                                continue;
                        int popularity = (int)slot_popularity(slot_get(slot));
                        int verdict = judge(store, c->entry, (uint32_t)popularity);
                        *asked += store->options.judge != NULL;
                        if (verdict == STORE_GOES) {
                                if (store->options.judge) {
                                        drop(store, slot, store->log.segments[s].class);
                                        store->evicted++;
                                }
                                continue;
                        }
                        if (verdict > popularity) {
                                popularity = verdict;
                                slot_set(slot, slot_make(c->hash, (uint32_t)popularity, c->location));
                        }
                        worth.stays += entry_size(c->entry);
                        worth.popular += popularity > 0 ? entry_size(c->entry) : 0;
                }
        return worth;
}

/* Not this one, if nearly all of it would stay: copying it would win nothing. As if it had been copied. */
static bool spare(struct store *store, struct sweep *sweep, unsigned *asked, uint32_t now)
{
        struct candidate batch[BATCH];
        struct segment *segment = &store->log.segments[sweep->segment];
        struct worth worth = look_through(store, sweep->segment, asked, now);
        sweep->judged = store->options.judge != NULL;
        if (worth.stays < store->log.segment_size / 4 * 3)
                return false;
        uint32_t offset = 0;
        for (unsigned n; (n = gather(store, sweep->segment, &offset, batch, BATCH)) > 0;)
                for (unsigned i = 0; i < n; i++) {
                        slot_t *slot = index_slot_of(&store->index, batch[i].hash, batch[i].location);
                        if (slot)
                                slot_set(slot, slot_make(batch[i].hash, slot_popularity(slot_get(slot)) / 2,
                                                         batch[i].location));
                }
        bool proven = worth.popular >= worth.stays / 2;
        if (proven && segment->class <= CLASS_PROVEN_LAST)
                segment->class = CLASS_PROVEN_LAST;
        else if (proven && segment->class == CLASS_NEGATIVE_NEW)
                segment->class = CLASS_NEGATIVE;
        segment->stamp = ++store->log.stamp;
        return true;
}

/* Move everything out of a segment that is mostly holes. Nothing but what is beyond use goes; when there is
 * no room for more, the rest stays where it is. */
static void compact(struct store *store, uint32_t s, uint32_t now)
{
        struct candidate batch[BATCH];
        uint32_t offset = 0;
        const unsigned class = store->log.segments[s].class;
        for (unsigned n; (n = gather(store, s, &offset, batch, BATCH)) > 0;)
                for (unsigned i = 0; i < n; i++) {
                        slot_t *slot = index_slot_of(&store->index, batch[i].hash, batch[i].location);
                        if (!slot)
                                continue;
                        bool purged = doomed(store, &batch[i]);
                        if (purged || !store_wants(store, class, batch[i].entry, now)) {
                                drop(store, slot, class);
                                *(purged ? &store->expunged : &store->expired) += 1;
                                continue;
                        }
                        uint32_t popularity = slot_popularity(slot_get(slot));
                        bool proven = !is_new(class) || popularity > 0;
                        if (!copy_forward(store, slot, &batch[i], class, proven, popularity, now))
                                return;
                }
}

/* Who shares a part of the budget. */
enum group {
        GROUP_NEW,
        GROUP_PROVEN,
        GROUP_NEGATIVE_NEW,
        GROUP_NEGATIVE,
        GROUP_KEPT,
        GROUPS,
};

static enum group group_of(unsigned class)
{
        switch (class) {
        case CLASS_NEW:
                return GROUP_NEW;
        case CLASS_NEGATIVE_NEW:
                return GROUP_NEGATIVE_NEW;
        case CLASS_NEGATIVE:
                return GROUP_NEGATIVE;
        case CLASS_KEPT:
                return GROUP_KEPT;
        default:
                return GROUP_PROVEN;
        }
}

/* A sealed segment, and how many of its bytes are the reason to choose it. */
struct most {
        uint32_t segment; /* NO_SEGMENT: none */
        uint32_t bytes;
};

static void consider(struct most *most, uint32_t segment, uint32_t bytes)
{
        if (bytes > most->bytes)
                *most = (struct most){segment, bytes};
}

/* What the segments are like. */
struct survey {
        struct most useless; /* dead, beyond use, never written */
        struct most beyond;  /* beyond use alone */
        struct most stale;   /* expired, but still wanted */
        uint64_t all_stale;  /* bytes of all */
        uint32_t oldest[GROUPS];
        uint64_t live[GROUPS], all_live; /* bytes, in open segments too */
        bool any;                        /* is there a sealed one? */
};

static void survey_one(const struct store *store, uint32_t s, uint32_t now, struct survey *all)
{
        const struct log *log = &store->log;
        const struct segment *segment = &log->segments[s];
        if (segment->state != SEGMENT_SEALED && segment->state != SEGMENT_OPEN)
                return;
        enum group group = group_of(segment->class);
        all->live[group] += segment->live;
        all->all_live += segment->live;
        if (segment->state == SEGMENT_OPEN)
                return;
        uint32_t window = store_window(store, segment->class);
        uint32_t expired = log_expired(segment, now), beyond = expired;
        if (window > 0)
                beyond = now > window ? log_expired(segment, now - window - 1) : 0;
        all->any = true;
        all->all_stale += expired - beyond;
        consider(&all->useless, s, log->segment_size - segment->live + beyond);
        consider(&all->beyond, s, beyond);
        consider(&all->stale, s, expired - beyond);
        uint32_t *oldest = &all->oldest[group];
        if (*oldest == NO_SEGMENT || segment->stamp < log->segments[*oldest].stamp)
                *oldest = s;
}

/* Of a very large store a part, another one each time; but never one without a sealed segment, if there is
 * any. */
static struct survey survey(struct store *store, uint32_t now)
{
        const struct most none = {NO_SEGMENT, 0};
        struct survey all = {.useless = none, .beyond = none, .stale = none};
        for (unsigned g = 0; g < GROUPS; g++)
                all.oldest[g] = NO_SEGMENT;
        const uint32_t end = log_segments(&store->log);
        for (uint32_t n = 0; n < end && (n < SURVEY_MOST || !all.any); n++) {
                if (store->surveyed >= end)
                        store->surveyed = 0;
                survey_one(store, store->surveyed++, now, &all);
        }
        return all;
}

static bool exceeds(uint64_t bytes, uint8_t share, const struct survey *all)
{
        return bytes * 100 > share * all->all_live;
}

/* Whose oldest segment goes. */
static enum group group_to_give(const struct store *store, const struct survey *all)
{
        const struct store_options *o = &store->options;
        const uint64_t *live = all->live;
        if (exceeds(live[GROUP_NEGATIVE_NEW] + live[GROUP_NEGATIVE], o->negative_share, all))
                return live[GROUP_NEGATIVE_NEW] > 0 ? GROUP_NEGATIVE_NEW : GROUP_NEGATIVE;
        if (exceeds(live[GROUP_KEPT], o->kept_share, all))
                return GROUP_KEPT;
        /* A flood of one kind leaves the other its half. */
        if (exceeds(live[GROUP_NEW] + live[GROUP_NEGATIVE_NEW], o->new_share, all))
                return live[GROUP_NEGATIVE_NEW] > live[GROUP_NEW] ? GROUP_NEGATIVE_NEW : GROUP_NEW;
        return GROUP_PROVEN;
}

/* The segment to empty, if there is any: that with the most useless bytes, if these are many; else, if too
 * much is stale, that with most of it; else the oldest one of those who have more than their share.
 * `entries`: it is not for room, so holes do not count. */
static struct sweep choose_victim(struct store *store, bool entries, uint32_t now)
{
        struct log *log = &store->log;
        struct survey all = survey(store, now);
        enum group group = group_to_give(store, &all);
        if (all.oldest[group] == NO_SEGMENT) {
                for (unsigned c = 0; c < CLASSES; c++)
                        if (group_of(c) == group || !all.any)
                                log_seal(log, c);
                all = survey(store, now);
        }
        static const enum group order[] = {GROUP_PROVEN, GROUP_NEW, GROUP_NEGATIVE_NEW, GROUP_NEGATIVE,
                                           GROUP_KEPT};
        struct sweep sweep = {.segment = all.oldest[group]};
        for (unsigned i = 0; i < GROUPS && sweep.segment == NO_SEGMENT; i++)
                sweep.segment = all.oldest[order[i]];
        const struct most *useless = entries ? &all.beyond : &all.useless;
        if (useless->bytes >= (entries ? log->segment_size / 8 : log->segment_size / 4)) {
                sweep.segment = useless->segment;
                sweep.clean = true;
        } else if (all.stale.segment != NO_SEGMENT &&
                   exceeds(all.all_stale, store->options.stale_share, &all)) {
                sweep.segment = all.stale.segment;
                sweep.clean = true;
        }
        if (sweep.segment != NO_SEGMENT) {
                const struct segment *segment = &log->segments[sweep.segment];
                sweep.stamp = segment->stamp;
                /* New ones only where it is not their turn to give. */
                sweep.keeps = sweep.clean && (!is_new(segment->class) || group_of(segment->class) != group);
        }
        return sweep;
}

static uint64_t available(const struct store *store)
{
        const struct log *log = &store->log;
        return log->n_warm + log->n_retired + (store_budget(store) >> log->segment_shift);
}

/* Moving an entry costs a little for its bytes and much for its slot: few large ones are moved for less. */
static bool worth_compacting(const struct log *log, const struct most *useless)
{
        if (useless->segment == NO_SEGMENT)
                return false;
        const struct segment *segment = &log->segments[useless->segment];
        bool large = (uint64_t)segment->entries * LARGE_ENTRY <= segment->live;
        return useless->bytes > log->segment_size / (large ? 8 : 2);
}

int evict_make_room(struct store *store, unsigned class, uint32_t stride, uint32_t now)
{
        struct log *log = &store->log;
        log_seal(log, class);
        log_poll(log);
        for (unsigned n = 0; n < COMPACTIONS && log_segments_used(log) >= COMPACT_FROM; n++) {
                struct survey all = survey(store, now);
                if (!worth_compacting(log, &all.useless))
                        break;
                compact(store, all.useless.segment, now);
        }
        /* Each victim may keep less, so that together they give at least one segment. */
        const uint32_t most = log->segment_size / 4 * 3;
        uint32_t copy = most;
        /* What a judge lets stay need not be popular: it is copied to the new ones as well as to the proven.
         */
        const unsigned reserve = store->reserve + (store->options.judge != NULL);
        unsigned asked = 0;
        for (unsigned n = 0; n < VICTIMS && available(store) <= reserve; n++, copy /= 2) {
                struct sweep victim = choose_victim(store, false, now);
                if (victim.segment == NO_SEGMENT)
                        break;
                for (unsigned spared = 0;
                     spared < SPARES && asked < ASKS && !victim.clean && spare(store, &victim, &asked, now);
                     spared++)
                        victim = choose_victim(store, false, now);
                /* Of what is left in it after the judge has been asked, or of what is clean, nothing more has
                 * to go to win a quarter of it. */
                bool enough = (victim.keeps || (store->options.judge && (victim.judged || victim.clean))) &&
                              n + 1 < VICTIMS;
                while (sweeping(store, &victim))
                        sweep(store, &victim, BATCH, enough ? most : copy, now);
        }
        for (unsigned waits = 0;; waits++) {
                /* Copying may have opened one. */
                if (log_room(log, class) >= stride)
                        return 0;
                log_seal(log, class);
                log_poll(log);
                if (log_open(log, class, store_budget(store), now))
                        return 0;
                if (log->n_retired == 0 || waits == EPOCH_WAITS)
                        return -ENOMEM;
                nanosleep(&(struct timespec){.tv_nsec = EPOCH_WAIT_NS}, NULL);
        }
}

unsigned evict_some(struct store *store, unsigned want, uint32_t now)
{
        /* A judge has been asked about each. */
        const uint32_t most = store->options.judge ? UINT32_MAX : store->log.segment_size / 4 * 3;
        unsigned gone = 0, looked = 0;
        while (store->entries > 0 && (gone == 0 || (gone < want && looked < LOOK_AT))) {
                if (!sweeping(store, &store->sweep))
                        store->sweep = choose_victim(store, true, now);
                uint32_t copy = looked < LOOK_AT ? most : 0;
                gone += sweep(store, &store->sweep, want - gone, copy, now);
                looked += want;
        }
        return gone;
}
