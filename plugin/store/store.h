/* SPDX-License-Identifier: MIT
 * The store: entries in append-only segments, found through an index of one 8-byte slot each, within a budget
 * that always holds. It knows an entry's expiry and size (entry/header.h) and nothing else of it.
 *
 * Threads. Readers take no lock: store_enter(), store_find(), read the entry, store_leave(). Between the two
 * every entry found stays as it is (but for expiry and life, which are atomic) even if it is replaced, moved
 * or evicted meanwhile. Writers hold the store's one lock: store_lock() ... store_unlock(); everything named
 * *_locked wants it held. A writer need not enter.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

enum {
        STORE_CLASSES = 8, /* kinds of segments, see evict.h */
};

/* Is `entry` the entry for `key`? */
typedef bool (*store_match)(const void *key, const uint8_t *entry);

/* The hash of the key of `entry`: the same that the store's callers pass with that key. Reclaiming asks for
 * it. */
typedef uint64_t (*store_hash)(const void *ctx, const uint8_t *entry);

/* Eviction, in the few words that the store understands. Two callbacks tell it more; both run under the
 * store's lock, must not call the store, and get store_options.ctx.
 *
 * `rank` is asked when an entry is put: whose share of the budget does it count against?
 *
 * `judge` is asked when an entry that is fresh comes up for eviction, never on the way of a lookup: bounded
 * work for each put that needs room. Its answer: the popularity with which the entry stays (0: as one that
 * nobody has asked for again, which is not proven by that), STORE_GOES, or STORE_AS_EVER: it stays if it is
 * popular. What stays is copied, or stays in its place if that is most of its segment; where a put would have
 * to copy more than is good, the rest goes.
 *
 * Shares are enforced when room is needed: what exceeds its share goes before anything else does, but for
 * dead and expired bytes. A store of less than 16 segments has no shares. */
enum store_kind {
        STORE_ORDINARY,
        STORE_NEGATIVE, /* up to negative_share */
        STORE_KEPT,     /* goes when it has expired, or when all of its kind exceed kept_share */
};
typedef enum store_kind (*store_rank_fn)(const void *ctx, const uint8_t *entry);

enum {
        STORE_GOES = -1,
        STORE_AS_EVER = -2,
};
typedef int (*store_judge_fn)(const void *ctx, const uint8_t *entry, uint32_t popularity);

/* Is this expired entry still needed for something else than its answer? Then it stays as if it were fresh.
 */
typedef bool (*store_linger_fn)(const void *ctx, const uint8_t *entry, uint32_t now);

struct store_options {
        store_hash hash;
        store_linger_fn linger; /* NULL: none */
        store_rank_fn rank;     /* NULL: all ordinary */
        store_judge_fn judge;   /* NULL: as ever */
        const void *ctx;
        uint64_t max_entries;  /* 0: no limit */
        uint64_t max_bytes;    /* everything included; > 0 */
        uint32_t segment_size; /* power of two, or 0: chosen from max_bytes */
        uint32_t stale_window; /* entries expired for no longer than this may still be wanted */
        bool stale_positive;   /* but none of kind STORE_NEGATIVE */
        /* Percent of the bytes in use; 0: the default. */
        uint8_t new_share;      /* of entries that were not asked for again. 10 */
        uint8_t negative_share; /* 25 */
        uint8_t kept_share;     /* 50 */
        uint8_t stale_share;    /* of what has expired and is still wanted. 25 */
        bool no_jemalloc;       /* tests: use mmap although the process has jemalloc */
        uint32_t hash_bits;     /* tests: keep only so many bits of every hash, to force collisions; 0: all */
};

/* 0; -EINVAL: no hash, a segment size that cannot be, or max_bytes too small for a store; -ENOMEM. */
int store_create(const struct store_options *options, struct store **store);
void store_destroy(struct store *store); /* the caller is alone */

/* The largest entry that can be put. */
uint32_t store_max_entry(const struct store *store);

/* Reader section: short, and without a call that takes the lock. Never blocks, never fails, may not nest; no
 * registration: threads come and go. */
void store_enter(struct store *store);
void store_leave(struct store *store);

/* The entry for key, or NULL. Between enter and leave. With `touch` a popularity hint is left in the slot
 * (written only when that changes it). `popularity` (0..7) is an output and may be NULL. */
const uint8_t *store_find(struct store *store, uint64_t hash, store_match match, const void *key, bool touch,
                          uint32_t *popularity);

/* For a caller with several keys at hand, to have their memory fetched side by side: first the buckets of
 * all, then the entries of all, then find. Between enter and leave; no effect but time. An entry that is
 * likely to be the one is returned, or NULL: its first two lines are on their way. */
void store_prefetch_bucket(struct store *store, uint64_t hash);
const uint8_t *store_prefetch_entry(struct store *store, uint64_t hash);

/* For a writer who will put something with this hash soon. May be called by anybody at any time. */
void store_prefetch_place(struct store *store, uint64_t hash);

/* From now on, this judge (NULL: none) and these shares, in percent; 0: as it was created with. Takes the
 * lock itself. */
void store_set_policy(struct store *store, store_judge_fn judge, uint8_t new_share, uint8_t negative_share,
                      uint8_t stale_share);

void store_lock(struct store *store);
void store_unlock(struct store *store);
/* For who takes the lock again and again: those who wait go first, within reason. The lock is not fair:
 * without this they could find it taken each time that they wake up. */
void store_lock_last(struct store *store);

/* As store_find, for a writer. */
const uint8_t *store_find_locked(struct store *store, uint64_t hash, store_match match, const void *key);

/* Copy `entry` in, in place of the key's present entry if there is one (its popularity goes on). Makes room
 * by reclaiming and evicting as needed, with bounded work; afterwards max_entries and max_bytes hold.
 * Pointers from store_find_locked() before the call are not valid after it.
 * 0: new; 1: replaced; -E2BIG: larger than store_max_entry(); -ENOMEM: the system refused, or all that could
 * be used again is held back by a reader that has been in its section for 20 ms. */
int store_put_locked(struct store *store, uint64_t hash, store_match match, const void *key,
                     const uint8_t *entry, uint32_t now);

/* The same in two steps, for who has to see the present entry first: store_find_locked() that remembers where
 * it looked, and the rest. The place is good until something is put or removed, or the lock is given back. */
struct store_place {
        /* The store's own. */
        const uint8_t *entry; /* doomed ones too */
        _Atomic uint64_t *slot;
        uint64_t value;
        uint32_t hash;
};
const uint8_t *store_seek_locked(struct store *store, uint64_t hash, store_match match, const void *key,
                                 struct store_place *place);
int store_put_at_locked(struct store *store, const struct store_place *place, store_match match,
                        const void *key, const uint8_t *entry, uint32_t now);

/* Give the present entry (from store_find_locked, with this hash) a new expiry and life, in place. */
void store_refresh_locked(struct store *store, uint64_t hash, const uint8_t *entry, uint32_t expiry,
                          uint8_t life_code);

/* Give the key's entry, if it is there, a popularity (0..7), as if it had been looked up before. */
void store_set_popularity_locked(struct store *store, uint64_t hash, store_match match, const void *key,
                                 uint32_t popularity);

/* Remove the key's entry. Returns whether there was one. */
bool store_remove_locked(struct store *store, uint64_t hash, store_match match, const void *key);

/* Visit every entry. What is there during the whole walk is seen at least once. The visitor runs inside a
 * reader section; sections are short, so that reclaiming goes on. Returns false when the visitor stopped it
 * (by returning STORE_STOP). The visitor must not call the store. */
enum store_visit {
        STORE_GO_ON = 0,
        STORE_STOP = 1,
        STORE_REMOVE = 2, /* remove this entry (if it is still the same one) */
};
typedef enum store_visit (*store_visitor)(void *ctx, const uint8_t *entry, uint32_t popularity);

/* Takes the lock by itself, for short stretches, when the visitor removes; not to be called with it held.
 * `removed`: how many were, may be NULL. `expunged` says under which counter removals go (else expired). */
bool store_walk(struct store *store, store_visitor visit, void *ctx, bool expunged, uint64_t *removed);

/* The same, for a visitor that removes nothing and wants to do slow things with what it has seen: `rest` is
 * called again and again between reader sections. It stops the walk by returning false. */
typedef bool (*store_rest)(void *ctx);
bool store_walk_resting(struct store *store, store_visitor visit, store_rest rest, void *ctx);

/* A purge: what is there when it begins and `dooms` says so of is gone for store_find(), store_find_locked()
 * and store_walk() at once; store_purge() removes it for good. Perhaps the head of
 * something larger that `dooms` knows; the store releases it, for readers may go on asking it for a little
 * while after its end. */
struct store_purge {
        bool (*dooms)(const struct store_purge *purge, const uint8_t *entry); /* set by the caller, */
        void (*release)(struct store_purge *purge);                           /* both */
        /* The store's own. */
        struct store_purge *_Atomic next;
        struct store_purge *next_ended;
        uint64_t stamp, retired;
        struct store_purge_end {
                uint32_t segment, end; /* that was open; the location where it ended */
        } open[STORE_CLASSES];
};

void store_purge_begin_locked(struct store *store, struct store_purge *purge);

/* Go and remove what it has doomed, and end it. Takes the lock itself, for short stretches. Returns how many
 * entries this removed. */
uint64_t store_purge(struct store *store, struct store_purge *purge);

/* Remove all but `n` entries, least useful first; counted as expunged. Takes the lock itself, for short
 * stretches unless n is 0. Returns how many went. With n == 0 all memory beyond the smallest store's goes
 * back to the system. */
uint64_t store_shrink(struct store *store, uint64_t n, uint32_t now);

/* The same with n == 0, for who holds the lock. */
uint64_t store_wipe_locked(struct store *store);

/* Housekeeping that may be done at any time by anybody: give back memory of segments that became free, finish
 * index growth. Takes the lock itself, bounded work. */
void store_maintain(struct store *store, uint32_t now);

struct store_stats {
        uint64_t entries, max_entries;
        uint64_t bytes, max_bytes; /* all memory: segments in use, index, the struct itself */
        uint64_t entry_bytes;      /* live entries */
        uint64_t dead_bytes;       /* removed or replaced, not reclaimed */
        uint64_t index_bytes;
        uint64_t evicted, expired, expunged, moved;
        bool jemalloc, huge_pages;
};
void store_stats_get(struct store *store, struct store_stats *stats);
void store_stats_locked(struct store *store, struct store_stats *stats);
uint64_t store_evicted_locked(const struct store *store);

#endif
