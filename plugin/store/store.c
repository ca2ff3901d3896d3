/* SPDX-License-Identifier: MIT */
#include "store/store.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/epoch.h"
#include "store/evict.h"
#include "store/store_impl.h"

enum {
        SEGMENT_LEAST = PAGE,
        SEGMENT_LEAST_AUTO = 4 * PAGE,
        SEGMENT_MOST = ENTRY_MAX,
        SEGMENTS_AUTO = 128, /* so many in a budget, if that gives a size within the bounds */
        SEGMENTS_MIN = 4,
        HUGE_FROM = 64 << 20, /* budgets from here on ask for huge pages */
        ENTRY_LEAST = 24,     /* bytes of the smallest entries that the index is prepared for */
        GHOSTS_LEAST = 256,
        GHOSTS_MOST = 1 << 18,
        BYTES_A_GHOST = 64, /* of the budget, at least: ghosts take 3 % of a small one */
        SPLITS_AHEAD = 4,   /* buckets split at once when one put found no slot */
        EVICT_STEP =
            8, /* entries evicted at once when max_entries is reached, in a store of EVICT_FROM or more */
        EVICT_FROM = 1000,
        PAUSE_NS = 20000,
        YIELDS = 1000,
        SHRINK_STEP = 512,  /* entries removed in one stretch under the lock */
        MAINTAIN_STEP = 16, /* segments given back at once */
};

/* More than any machine has: a larger budget is as good as this one. */
#define BYTES_MOST (UINT64_C(1) << 40)

static uint32_t choose_segment_size(const struct store_options *options)
{
        if (options->segment_size)
                return options->segment_size;
        uint32_t size = SEGMENT_LEAST_AUTO;
        while (size < SEGMENT_MOST && (uint64_t)size * 2 * SEGMENTS_AUTO <= options->max_bytes)
                size *= 2;
        return size;
}

static uint64_t index_limit(const struct store_options *options)
{
        uint64_t entries = options->max_bytes / (ENTRY_LEAST + sizeof(uint64_t));
        if (options->max_entries && options->max_entries < entries)
                entries = options->max_entries;
        /* Some more, for buckets that had to be split although the others were not full. */
        uint64_t buckets = entries / SLOTS_FULL + entries / 64 + BUCKETS_MIN;
        return buckets < UINT64_C(1) << HASH_BITS ? buckets : UINT64_C(1) << HASH_BITS;
}

static void set_shares(struct store_options *options)
{
        uint8_t *const share[] = {&options->new_share, &options->negative_share, &options->kept_share,
                                  &options->stale_share};
        static const uint8_t defaults[] = {10, 25, 50, 25};
        for (unsigned i = 0; i < 4; i++)
                if (*share[i] == 0)
                        *share[i] = defaults[i];
}

int store_create(const struct store_options *options, struct store **out)
{
        struct store_options with = *options;
        if (with.max_bytes > BYTES_MOST)
                with.max_bytes = BYTES_MOST;
        options = &with;
        uint32_t segment_size = choose_segment_size(options);
        if (!options->hash || options->max_bytes == 0 || segment_size < SEGMENT_LEAST ||
            segment_size > SEGMENT_MOST || (segment_size & (segment_size - 1)) != 0)
                return -EINVAL;
        struct store *store = aligned_alloc(_Alignof(struct store), sizeof *store);
        if (!store)
                return -ENOMEM;
        memset(store, 0, sizeof *store);
        store->options = *options;
        set_shares(&store->options);
        store->created = store->options;
        store->hash_mask = UINT64_MAX;
        if (options->hash_bits > 0 && options->hash_bits < HASH_BITS)
                store->hash_mask = ((UINT64_C(1) << options->hash_bits) - 1) << (64 - HASH_BITS);
        bool huge = options->max_bytes >= HUGE_FROM;
        int err = log_init(&store->log, options->max_bytes, segment_size, !options->no_jemalloc, huge);
        if (err)
                goto no_log;
        uint32_t ghosts = GHOSTS_LEAST;
        while (ghosts < GHOSTS_MOST && ghosts * (uint64_t)BYTES_A_GHOST * 2 <= options->max_bytes)
                ghosts *= 2;
        store->ghosts_mask = ghosts - 1;
        store->fixed = sizeof *store + store_ghost_bytes(store);
        err = index_init(&store->index, index_limit(options), huge);
        if (err)
                goto no_index;
        uint64_t room = store_budget(store), tables = log_block_overhead(&store->log);
        uint64_t segments = room > tables ? (room - tables) / segment_size : 0;
        if (segments < SEGMENTS_MIN) {
                err = -EINVAL;
                goto too_small;
        }
        store->kinds = segments >= 16;
        store->proven = segments < 16 ? 0 : segments < 64 ? 1 : CLASS_PROVEN_LAST;
        store->reserve = segments < 32 ? 1 : 2;
        /* Held so shortly that who waits does best to look again before going to sleep. */
        pthread_mutexattr_t attr;
        pthread_mutexattr_init(&attr);
        pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
        pthread_mutex_init(&store->lock, &attr);
        pthread_mutexattr_destroy(&attr);
        *out = store;
        return 0;
too_small:
        index_fini(&store->index);
no_index:
        log_fini(&store->log);
no_log:
        free(store);
        return err;
}

void store_destroy(struct store *store)
{
        if (!store)
                return;
        pthread_mutex_destroy(&store->lock);
        index_fini(&store->index);
        log_fini(&store->log);
        purges_fini(&store->purges);
        evict_forget(store);
        free(store);
}

uint32_t store_max_entry(const struct store *store)
{
        return store->log.segment_size;
}

void store_enter(struct store *store)
{
        (void)store;
        epoch_enter();
}

void store_leave(struct store *store)
{
        (void)store;
        epoch_leave();
}

/* An entry as it was found. */
struct found {
        const uint8_t *entry; /* NULL: not there */
        slot_t *slot;
        uint64_t value; /* of the slot, at the time */
};

static inline struct found lookup(struct store *store, uint32_t hash, store_match match, const void *key)
{
        struct index *index = &store->index;
        for (;;) {
                uint64_t moves = atomic_load_explicit(&index->moves, memory_order_acquire);
                uint64_t size = index_size(index);
                struct bucket *bucket[2] = {&index->buckets[index_address(hash, size)],
                                            &index->buckets[index_address(index_mix(hash), size)]};
                __builtin_prefetch(bucket[1]);
                /* Both at once: which of the two it is in, nobody could guess. */
                for (unsigned mask = index_alike(bucket, hash); mask; mask &= mask - 1) {
                        unsigned i = (unsigned)__builtin_ctz(mask);
                        slot_t *slot = &bucket[i / SLOTS]->slot[i % SLOTS];
                        uint64_t value = slot_get(slot);
                        if (!slot_is(value, hash))
                                continue;
                        const uint8_t *entry = log_at(&store->log, slot_location(value));
                        if (match(key, entry))
                                return (struct found){entry, slot, value};
                }
                /* The slot loads above acquire: had we missed a slot because it was moved away, we would see
                 * the count of that move. So each turn is paid for by a move of the writer's, which takes it
                 * longer than us to look at two cache lines again. */
                if (atomic_load_explicit(&index->moves, memory_order_relaxed) == moves)
                        return (struct found){0};
        }
}

/* Has a purge that is under way doomed it? */
static inline bool is_doomed(const struct store *store, const struct found *found)
{
        return __builtin_expect(purges_any(&store->purges), 0) &&
               purges_doom(&store->purges, &store->log, slot_location(found->value));
}

/* As lookup(), but what a purge has doomed is not there. */
static inline struct found lookup_spared(struct store *store, uint32_t hash, store_match match,
                                         const void *key)
{
        struct found found = lookup(store, hash, match, key);
        if (found.entry && is_doomed(store, &found))
                found.entry = NULL;
        return found;
}

/* One more popular, the less probable the more popular it is already: 7 stands for a hundred hits, and a hot
 * slot is hardly ever written. */
static void touch_slot(const struct found *found)
{
        uint32_t popularity = slot_popularity(found->value);
        if (popularity == POPULARITY_MAX || (epoch_dice() & ((1u << popularity) - 1)) != 0)
                return;
        uint64_t value = found->value;
        atomic_compare_exchange_strong_explicit(found->slot, &value, value + (UINT64_C(1) << 32),
                                                memory_order_relaxed, memory_order_relaxed);
}

const uint8_t *store_find(struct store *store, uint64_t hash, store_match match, const void *key, bool touch,
                          uint32_t *popularity)
{
        struct found found = lookup_spared(store, store_fold(store, hash), match, key);
        if (!found.entry)
                return NULL;
        if (touch)
                touch_slot(&found);
        if (popularity)
                *popularity = slot_popularity(found.value);
        return found.entry;
}

/* The two buckets of a hash. */
static inline void choices(const struct store *store, uint32_t hash, struct bucket *bucket[2])
{
        uint64_t size = index_size(&store->index);
        bucket[0] = &store->index.buckets[index_address(hash, size)];
        bucket[1] = &store->index.buckets[index_address(index_mix(hash), size)];
}

void store_prefetch_bucket(struct store *store, uint64_t hash)
{
        struct bucket *bucket[2];
        choices(store, store_fold(store, hash), bucket);
        __builtin_prefetch(bucket[0]);
        __builtin_prefetch(bucket[1]);
}

void store_prefetch_place(struct store *store, uint64_t hash)
{
        store_prefetch_bucket(store, hash);
        evict_prefetch_ghost(store, store_fold(store, hash));
}

const uint8_t *store_prefetch_entry(struct store *store, uint64_t hash)
{
        enum {
                LINE = 64,
        };
        struct bucket *bucket[2];
        uint32_t folded = store_fold(store, hash);
        choices(store, folded, bucket);
        const uint8_t *entry = NULL;
        for (unsigned mask = index_alike(bucket, folded); mask; mask &= mask - 1) {
                unsigned i = (unsigned)__builtin_ctz(mask);
                uint64_t value = slot_get(&bucket[i / SLOTS]->slot[i % SLOTS]);
                if (!slot_is(value, folded))
                        continue;
                entry = log_at(&store->log, slot_location(value));
                __builtin_prefetch(entry);
                __builtin_prefetch(entry + LINE);
        }
        return entry;
}

void store_lock(struct store *store)
{
        if (pthread_mutex_trylock(&store->lock) == 0)
                return;
        atomic_fetch_add_explicit(&store->waiting, 1, memory_order_relaxed);
        pthread_mutex_lock(&store->lock);
        atomic_fetch_sub_explicit(&store->waiting, 1, memory_order_relaxed);
}

void store_lock_last(struct store *store)
{
        for (unsigned n = 0; n < YIELDS; n++) {
                if (atomic_load_explicit(&store->waiting, memory_order_relaxed) == 0)
                        break;
                sched_yield();
        }
        store_lock(store);
}

void store_set_policy(struct store *store, store_judge_fn judge, uint8_t new_share, uint8_t negative_share,
                      uint8_t stale_share)
{
        store_lock(store);
        store->options.judge = judge;
        store->options.new_share = new_share ? new_share : store->created.new_share;
        store->options.negative_share = negative_share ? negative_share : store->created.negative_share;
        store->options.stale_share = stale_share ? stale_share : store->created.stale_share;
        store_unlock(store);
}

void store_unlock(struct store *store)
{
        pthread_mutex_unlock(&store->lock);
}

const uint8_t *store_find_locked(struct store *store, uint64_t hash, store_match match, const void *key)
{
        return lookup_spared(store, store_fold(store, hash), match, key).entry;
}

const uint8_t *store_seek_locked(struct store *store, uint64_t hash, store_match match, const void *key,
                                 struct store_place *place)
{
        uint32_t folded = store_fold(store, hash);
        struct found found = lookup(store, folded, match, key);
        *place = (struct store_place){found.entry, found.slot, found.value, folded};
        return found.entry && is_doomed(store, &found) ? NULL : found.entry;
}

/* Split one bucket if there is memory for it. */
static bool grow(struct store *store)
{
        struct index *index = &store->index;
        if (index_size(index) == index->limit)
                return false;
        if (index_split_cost(index) > store_budget(store))
                log_release(&store->log);
        if (index_split_cost(index) > store_budget(store))
                return false;
        index_split(index, store_budget(store));
        return true;
}

/* A slot for a new entry, whatever it takes. */
static slot_t *make_slot(struct store *store, uint32_t hash, uint32_t now)
{
        struct index *index = &store->index;
        for (unsigned n = 0; n < 2; n++)
                if (store->entries >= index_size(index) * SLOTS_FULL)
                        grow(store);
        slot_t *slot = index_vacancy(index, hash);
        /* Many equal hashes would not be helped by any number of buckets. */
        for (unsigned n = 0; !slot && n < SPLITS_AHEAD && store->entries > index_size(index) * SLOTS / 2;
             n++) {
                if (!grow(store))
                        break;
                slot = index_vacancy(index, hash);
        }
        if (slot)
                return slot;
        const uint32_t choices[2] = {hash, index_mix(hash)};
        uint64_t size = index_size(index), least = UINT64_MAX;
        for (unsigned c = 0; c < 2; c++) {
                struct bucket *bucket = &index->buckets[index_address(choices[c], size)];
                for (unsigned i = 0; i < SLOTS; i++) {
                        uint64_t value = slot_get(&bucket->slot[i]);
                        const uint8_t *entry = log_at(&store->log, slot_location(value));
                        uint64_t worth = (uint64_t)slot_popularity(value) + 1;
                        if (entry_expiry(entry) <= now)
                                worth = 0;
                        /* Among equals the one that expires first. */
                        worth = worth << 32 | entry_expiry(entry);
                        if (worth < least) {
                                least = worth;
                                slot = &bucket->slot[i];
                        }
                }
        }
        store_drop(store, slot);
        store->evicted++;
        return slot;
}

int store_put_locked(struct store *store, uint64_t hash, store_match match, const void *key,
                     const uint8_t *entry, uint32_t now)
{
        struct store_place place;
        store_seek_locked(store, hash, match, key, &place);
        return store_put_at_locked(store, &place, match, key, entry, now);
}

int store_put_at_locked(struct store *store, const struct store_place *place, store_match match,
                        const void *key, const uint8_t *entry, uint32_t now)
{
        struct log *log = &store->log;
        uint32_t stride = log_stride(log, entry_size(entry));
        if (stride > log->segment_size)
                return -E2BIG;
        /* All that may evict comes before the entry is anywhere: this may well take the present entry. */
        struct found found = {place->entry, place->slot, place->value};
        bool proven = found.entry ? slot_popularity(found.value) > 0 : evict_lay_ghost(store, place->hash);
        const uint64_t max = store->options.max_entries;
        bool undisturbed = true;
        if (!found.entry && max && store->entries >= max) {
                evict_some(store, max < EVICT_FROM ? 1 : EVICT_STEP, now);
                undisturbed = false;
        }
        enum store_kind kind = STORE_ORDINARY;
        if (store->options.rank)
                kind = store->options.rank(store->options.ctx, entry);
        unsigned class = evict_class(store, kind, proven, entry_expiry(entry), now);
        if (log_room(log, class) < stride) {
                int err = evict_make_room(store, class, stride, now);
                if (err)
                        return err;
                undisturbed = false;
        }
        if (!undisturbed)
                found = lookup(store, place->hash, match, key);
        if (found.entry) {
                uint32_t location = log_append(log, class, entry);
                slot_set(found.slot, slot_make(place->hash, slot_popularity(slot_get(found.slot)), location));
                log_kill(log, slot_location(found.value));
                return 1;
        }
        slot_t *slot = make_slot(store, place->hash, now);
        slot_set(slot, slot_make(place->hash, 0, log_append(log, class, entry)));
        store->entries++;
        return 0;
}

static bool is_at(const void *place, const uint8_t *entry)
{
        return entry == place;
}

void store_refresh_locked(struct store *store, uint64_t hash, const uint8_t *entry, uint32_t expiry,
                          uint8_t life_code)
{
        entry_set_life_code((uint8_t *)entry, life_code);
        struct found found = lookup(store, store_fold(store, hash), is_at, entry);
        log_refresh(&store->log, slot_location(found.value), expiry);
}

void store_set_popularity_locked(struct store *store, uint64_t hash, store_match match, const void *key,
                                 uint32_t popularity)
{
        struct found found = lookup(store, store_fold(store, hash), match, key);
        if (found.entry)
                slot_set(found.slot,
                         slot_make(slot_hash(found.value), popularity, slot_location(found.value)));
}

bool store_remove_locked(struct store *store, uint64_t hash, store_match match, const void *key)
{
        struct found found = lookup(store, store_fold(store, hash), match, key);
        if (!found.entry)
                return false;
        store_drop(store, found.slot);
        store->expunged++;
        return true;
}

struct walk {
        struct store *store;
        struct walker walker;
        store_visitor visit;       /* NULL: nobody is shown anything */
        struct store_purge *purge; /* NULL: none; else what it dooms is removed */
        void *ctx;
        bool expunged;
        bool stopped;
        uint64_t removed;
        /* What the visitor wants removed from the present buckets, as slot values. */
        uint64_t doomed[WALK_BUCKETS * SLOTS];
        unsigned n_doomed;
};

/* What is to be done with the entry of this slot. */
static enum store_visit walk_ask(struct walk *walk, uint64_t value)
{
        struct store *store = walk->store;
        uint32_t location = slot_location(value);
        if (walk->purge)
                return purge_dooms(walk->purge, &store->log, location) ? STORE_REMOVE : STORE_GO_ON;
        if (purges_doom(&store->purges, &store->log, location))
                return STORE_GO_ON;
        return walk->visit(walk->ctx, log_at(&store->log, location), slot_popularity(value));
}

/* Show the entries of some buckets. */
static void walk_visit(struct walk *walk, uint64_t from, uint64_t to)
{
        struct store *store = walk->store;
        walk->n_doomed = 0;
        for (uint64_t b = from; b < to; b++)
                for (unsigned i = 0; i < SLOTS; i++) {
                        uint64_t value = slot_get(&store->index.buckets[b].slot[i]);
                        if (!slot_free(value))
                                __builtin_prefetch(log_at(&store->log, slot_location(value)));
                }
        for (uint64_t b = from; b < to; b++)
                for (unsigned i = 0; i < SLOTS && !walk->stopped; i++) {
                        uint64_t value = slot_get(&store->index.buckets[b].slot[i]);
                        if (slot_free(value))
                                continue;
                        enum store_visit answer = walk_ask(walk, value);
                        if (answer == STORE_STOP)
                                walk->stopped = true;
                        else if (answer == STORE_REMOVE)
                                walk->doomed[walk->n_doomed++] = value;
                }
}

/* Remove the doomed, under the lock, unless the segment was used again since `stamp`, for then their
 * locations may mean something else. Returns whether all were still where they were seen. */
static bool walk_remove(struct walk *walk, uint64_t stamp)
{
        struct store *store = walk->store;
        bool all = true;
        for (unsigned i = 0; i < walk->n_doomed; i++) {
                uint32_t location = slot_location(walk->doomed[i]);
                slot_t *slot = index_slot_of(&store->index, slot_hash(walk->doomed[i]), location);
                const struct segment *segment = &store->log.segments[log_segment_of(&store->log, location)];
                if (!slot || segment->stamp > stamp) {
                        all = false;
                        continue;
                }
                store_drop(store, slot);
                walk->removed++;
                if (walk->expunged)
                        store->expunged++;
                else
                        store->expired++;
        }
        walk->n_doomed = 0;
        return all;
}

/* Without the lock at first. What was to be removed but was moved or replaced meanwhile is shown again, and
 * then nothing can change. */
static void walk_some(struct walk *walk, uint64_t from, uint64_t to)
{
        struct store *store = walk->store;
        uint64_t stamp = atomic_load_explicit(&store->log.stamp, memory_order_acquire);
        store_enter(store);
        index_walk_to(&walk->walker, from);
        walk_visit(walk, from, to);
        store_leave(store);
        if (walk->n_doomed == 0)
                return;
        bool stopped = walk->stopped;
        store_lock(store);
        if (!walk_remove(walk, stamp) && !stopped && to <= index_size(&store->index)) {
                walk_visit(walk, from, to);
                walk_remove(walk, UINT64_MAX);
        }
        store_unlock(store);
}

static bool walk_all(struct walk *walk, store_rest rest)
{
        struct store *store = walk->store;
        store_lock(store);
        index_walk_begin(&store->index, &walk->walker);
        store_unlock(store);
        uint64_t size;
        for (uint64_t b = 0; b < (size = index_size(&store->index)) && !walk->stopped; b += WALK_BUCKETS) {
                walk_some(walk, b, b + WALK_BUCKETS < size ? b + WALK_BUCKETS : size);
                if (rest && !walk->stopped)
                        walk->stopped = !rest(walk->ctx);
        }
        store_lock(store);
        index_walk_end(&store->index, &walk->walker);
        store_unlock(store);
        return !walk->stopped;
}

void store_purge_begin_locked(struct store *store, struct store_purge *purge)
{
        purges_begin(&store->purges, &store->log, purge);
}

uint64_t store_purge(struct store *store, struct store_purge *purge)
{
        struct walk walk = {.store = store, .purge = purge, .expunged = true};
        walk_all(&walk, NULL);
        store_lock(store);
        purges_end(&store->purges, purge);
        store_unlock(store);
        return walk.removed;
}

bool store_walk(struct store *store, store_visitor visit, void *ctx, bool expunged, uint64_t *removed)
{
        struct walk walk = {.store = store, .visit = visit, .ctx = ctx, .expunged = expunged};
        bool whole = walk_all(&walk, NULL);
        if (removed)
                *removed = walk.removed;
        return whole;
}

bool store_walk_resting(struct store *store, store_visitor visit, store_rest rest, void *ctx)
{
        struct walk walk = {.store = store, .visit = visit, .ctx = ctx};
        return walk_all(&walk, rest);
}

static void wipe(struct store *store)
{
        struct log *log = &store->log;
        index_reset(&store->index);
        store->entries = 0;
        evict_forget(store);
        log_kill_all(log);
        for (unsigned waits = 0;; waits++) {
                log_poll(log);
                if (log->n_retired == 0 || waits == EPOCH_WAITS)
                        break;
                nanosleep(&(struct timespec){.tv_nsec = EPOCH_WAIT_NS}, NULL);
        }
        if (log->n_retired == 0)
                log_reset(log);
        else
                while (log_release(log))
                        ;
}

uint64_t store_wipe_locked(struct store *store)
{
        uint64_t before = store->entries;
        wipe(store);
        store->expunged += before;
        return before;
}

uint64_t store_shrink(struct store *store, uint64_t n, uint32_t now)
{
        store_lock(store);
        uint64_t before = store->entries, todo = before > n ? before - n : 0, gone = 0;
        if (n == 0) {
                gone = store_wipe_locked(store);
        }
        while (gone < todo && store->entries > 0) {
                uint64_t evicted = store->evicted, expired = store->expired;
                unsigned step = 0;
                while (step < SHRINK_STEP && gone + step < todo && store->entries > 0)
                        step += evict_some(store, todo - gone - step < EVICT_STEP ? 1 : EVICT_STEP, now);
                /* They went because somebody asked for it. */
                store->evicted = evicted;
                store->expired = expired;
                store->expunged += step;
                gone += step;
                /* A pause, for the lock is not fair. */
                store_unlock(store);
                nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
                store_lock(store);
        }
        store_unlock(store);
        return gone;
}

void store_maintain(struct store *store, uint32_t now)
{
        (void)now;
        store_lock(store);
        log_poll(&store->log);
        for (unsigned n = 0; n < MAINTAIN_STEP && store->log.n_warm > store->reserve; n++)
                log_release(&store->log);
        store_unlock(store);
}

uint64_t store_evicted_locked(const struct store *store)
{
        return store->evicted;
}

void store_stats_locked(struct store *store, struct store_stats *stats)
{
        const struct log *log = &store->log;
        *stats = (struct store_stats){
            .entries = store->entries,
            .max_entries = store->options.max_entries,
            .bytes = store->fixed - (store->ghosts ? 0 : store_ghost_bytes(store)) + store->index.touched +
                     log_overhead(log) + log->touched,
            .max_bytes = store->options.max_bytes,
            .entry_bytes = log->live,
            .dead_bytes = log->used - log->live,
            .index_bytes = store->index.touched,
            .evicted = store->evicted,
            .expired = store->expired,
            .expunged = store->expunged,
            .moved = store->moved,
            .jemalloc = log->memory.jemalloc,
            .huge_pages = log->memory.huge,
        };
}

void store_stats_get(struct store *store, struct store_stats *stats)
{
        store_lock(store);
        store_stats_locked(store, stats);
        store_unlock(store);
}
