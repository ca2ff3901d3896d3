/* SPDX-License-Identifier: MIT
 * Reading a snapshot into a cache that is in use. What is in the cache already is fresher and stays; the lock
 * is held for a few entries at a time. Entries are hashed anew: the secret is another one. ENTRY_LAYOUT:
 * expiries, lives, flags. */
#include "snapshot/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache.h"
#include "entry/header.h"
#include "entry/page.h"
#include "entry/view.h"
#include "networks.h"
#include "snapshot/file.h"
#include "snapshot/journal.h"
#include "snapshot/purgerecord.h"
#include "snapshot/purgeset.h"
#include "wire/bytes.h"
#include "wire/dns.h"

enum {
        BATCH = 8,
        JOURNAL_MAX = 64 << 20,
        PUTS_A_NETWORK = 3, /* entries that one more network may add: two pages and the list of them */
};

/* An entry that may go in. */
struct loaded {
        struct entry_checked checked;
        uint8_t *entry;
        uint64_t hash;
        uint32_t popularity;
};

struct load {
        struct sardine_cache *cache;
        struct sardine_snapshot_result *result;
        struct snapshot_reader reader;
        uint64_t age;     /* seconds since the file's moment */
        uint64_t since;   /* purges from here on concern what is loaded and are not in `purges` yet */
        uint64_t evicted; /* by the store, when it began */
        uint32_t now;
        struct purgeset purges; /* from the journal, from the file, and since */
        int err;
        uint64_t room; /* entries that there is room for */
        bool full;
        unsigned n;
        struct loaded batch[BATCH];
        _Alignas(ENTRY_ALIGN) uint8_t answer[ENTRY_MAX];
};

static uint32_t least(uint32_t a, uint32_t b)
{
        return a < b ? a : b;
}

/* How long an answer may live at all by this cache's options, which need not be those of the one before. */
static uint32_t life_allowed(const struct load *load, const uint8_t *answer)
{
        const struct sardine_options *o = &load->cache->options;
        struct entry_view view;
        entry_view_init(&view, answer);
        if (view.no_answer)
                return o->max_ttl;
        if (view.ext & EXT_TRUNCATED)
                return least(o->truncated_ttl, o->max_ttl);
        if (view.rcode == DNS_SERVFAIL || view.rcode == DNS_REFUSED)
                return least(o->failure_ttl, o->max_ttl);
        if (view.rcode == DNS_NXDOMAIN)
                return least(o->max_negative_ttl, o->max_ttl);
        return o->max_ttl;
}

/* The time in the file at `field` as this cache's second, or 0: it is of no use any more. An answer never has
 * more to live than when it came, and no TTL shown passes what a TTL can be. */
static uint32_t expiry_of(const struct load *load, const uint8_t *field, uint8_t life, uint32_t allowed,
                          uint32_t most_delta)
{
        uint32_t time;
        memcpy(&time, field, sizeof time);
        uint32_t original = life_decode(life);
        if (load->reader.header.flags & SNAPSHOT_AGELESS) /* then it is no delta but the TTL */
                most_delta = 0;
        int64_t left = time_left(time), most = least(original + original / 16, allowed);
        if (left > most)
                left = most;
        left -= (int64_t)load->age;
        if (left <= -(int64_t)load->cache->options.stale_window || load->age > INT32_MAX ||
            (left > 0 && most_delta > INT32_MAX - (uint32_t)left) || most_delta > INT32_MAX - original ||
            left <= -(int64_t)load->now)
                return 0;
        return (uint32_t)(load->now + left);
}

/* What is there was asked for later. */
static unsigned keep_present(const void *ctx, const uint8_t *present, const struct entry_life *life)
{
        (void)ctx;
        (void)present;
        (void)life;
        return SARDINE_REFUSED_POORER;
}

static void count_put(struct load *load, int outcome)
{
        if (outcome == -SARDINE_REFUSED_POORER)
                load->result->present++;
        else if (outcome < 0)
                load->result->refused++;
        else
                load->result->entries++;
}

/* Nothing is thrown out for what is older than it. Under the lock, since when nobody else puts anything. */
static bool take_room(struct load *load, unsigned entries)
{
        load->full = load->full || load->room < entries;
        load->room -= load->full ? 0 : entries;
        return !load->full;
}

static void put_page(struct load *load, struct loaded *loaded)
{
        struct page_view page;
        struct entry_key base = loaded->checked.key;
        entry_key_clear_page(&base);
        page_view_init(&page, loaded->entry);
        struct network network = {.code = page.code};
        const struct entry_key *key = &loaded->checked.key;
        network.exact = get_be16(key->bytes + key->len - PAGE_NUMBER) & NETWORKS_EXACT;
        for (unsigned i = 0; i < page.count; i++) {
                struct page_item item;
                page_item(&page, i, &item);
                uint32_t expiry = expiry_of(load, page.expiries + 4u * i, item.life.code,
                                            life_allowed(load, item.answer), loaded->checked.most_delta);
                if (expiry == 0) {
                        load->result->expired++;
                        continue;
                }
                if (!take_room(load, PUTS_A_NETWORK))
                        return;
                memcpy(load->answer, item.answer, entry_size(item.answer));
                entry_set_expiry(load->answer, expiry);
                entry_set_life_code(load->answer, item.life.code);
                memcpy(network.addr, item.network, sizeof network.addr);
                count_put(load, networks_put(load->cache, &base, &network, load->answer, load->now,
                                             keep_present, NULL));
        }
}

static void put_entry(struct load *load, struct loaded *loaded)
{
        struct store *store = load->cache->store;
        const struct entry_key *key = &loaded->checked.key;
        if (store_find_locked(store, loaded->hash, entry_key_match, key)) {
                load->result->present++;
                return;
        }
        if (!take_room(load, 1))
                return;
        int put = store_put_locked(store, loaded->hash, entry_key_match, key, loaded->entry, load->now);
        if (put >= 0 && loaded->popularity > 0)
                store_set_popularity_locked(store, loaded->hash, entry_key_match, key, loaded->popularity);
        if (put < 0)
                load->result->refused++;
        else
                load->result->entries++;
}

static void look_for_room(struct load *load)
{
        struct store_stats stats;
        store_stats_locked(load->cache->store, &stats);
        load->full = stats.evicted != load->evicted;
        load->room = stats.max_entries ? stats.max_entries - stats.entries : UINT64_MAX;
}

/* Take those out of the batch that were purged meanwhile. */
static void drop_purged(struct load *load)
{
        unsigned left = 0;
        for (unsigned i = 0; i < load->n; i++)
                if (purgeset_removes(&load->purges, &load->batch[i].checked, load->batch[i].entry))
                        load->result->purged++;
                else
                        load->batch[left++] = load->batch[i];
        load->n = left;
}

/* Take the lock at a moment when nobody has purged anything that the batch was not asked about. That is
 * looked at without it, for nobody is to wait for us. */
static void lock_with_purges_known(struct load *load)
{
        struct sardine_cache *cache = load->cache;
        size_t len;
        store_lock_last(cache->store);
        while ((len = purgelog_read(&cache->snapshots.purges, &load->since, load->answer,
                                    sizeof load->answer)) > 0) {
                store_unlock(cache->store);
                if (!purgeset_add(&load->purges, load->answer, len)) {
                        load->err = -ENOMEM;
                        load->n = 0;
                }
                drop_purged(load);
                store_lock_last(cache->store);
        }
}

static void put_batch(struct load *load)
{
        struct sardine_cache *cache = load->cache;
        if (load->n == 0)
                return;
        store_enter(cache->store);
        for (unsigned i = 0; i < load->n; i++)
                store_prefetch_bucket(cache->store, load->batch[i].hash);
        store_leave(cache->store);
        lock_with_purges_known(load);
        look_for_room(load);
        for (unsigned i = 0; i < load->n; i++) {
                struct loaded *loaded = &load->batch[i];
                if (loaded->checked.page)
                        put_page(load, loaded);
                else
                        put_entry(load, loaded);
        }
        store_unlock(cache->store);
        load->n = 0;
}

/* Get it ready to be put, if it is still good for anything. */
static bool prepare(struct load *load, struct loaded *loaded)
{
        uint8_t *entry = loaded->entry;
        uint32_t time;
        memcpy(&time, entry + ENTRY_AT_EXPIRY, sizeof time);
        loaded->popularity = time_popularity(time);
        if (purgeset_removes(&load->purges, &loaded->checked, entry)) {
                load->result->purged++;
                return false;
        }
        if (loaded->checked.page)
                return true;
        uint32_t expiry = expiry_of(load, entry + ENTRY_AT_EXPIRY, entry_life_code(entry),
                                    life_allowed(load, entry), loaded->checked.most_delta);
        if (expiry == 0) {
                load->result->expired++;
                return false;
        }
        entry_set_expiry(entry, expiry);
        loaded->hash = cache_hash(load->cache, &loaded->checked.key);
        return true;
}

static int load_blocks(struct load *load, enum block_kind kind)
{
        struct sardine_cache *cache = load->cache;
        snapshot_rewind(&load->reader);
        while (snapshot_next_block(&load->reader, kind)) {
                if (atomic_load_explicit(&cache->snapshots.stop, memory_order_relaxed))
                        return -ECANCELED;
                load->age = 0;
                if (!snapshot_age(&load->reader.header, &load->age))
                        return SARDINE_ERR_SNAPSHOT;
                load->now = cache_now(cache);
                for (;;) {
                        struct loaded *loaded = &load->batch[load->n];
                        loaded->entry = snapshot_next_entry(&load->reader, &loaded->checked);
                        if (!loaded->entry)
                                break;
                        if (loaded->checked.page != (kind == BLOCK_PAGES)) {
                                load->result->refused++;
                                continue;
                        }
                        if (prepare(load, loaded) && ++load->n == (loaded->checked.page ? 1 : BATCH))
                                put_batch(load);
                        if (load->full || load->err)
                                break;
                }
                put_batch(load);
                if (load->err)
                        return load->err;
                if (load->full) {
                        load->result->why = "the cache is full";
                        return 0;
                }
        }
        return 0;
}

static int read_purges(struct load *load)
{
        int err = 0;
        while (!err && snapshot_next_block(&load->reader, BLOCK_PURGES)) {
                size_t len = load->reader.block.length;
                if (len != purge_record_check(load->reader.bytes, len))
                        return SARDINE_ERR_SNAPSHOT;
                err = purgeset_add(&load->purges, load->reader.bytes, len) ? 0 : -ENOMEM;
        }
        /* One that cannot be read may be anything. */
        return !err && load->reader.damaged ? SARDINE_ERR_SNAPSHOT : err;
}

/* Its last record may have been cut off: the process ended while it was written. */
static int read_journal(struct load *load, const char *path)
{
        char *journal;
        if (asprintf(&journal, "%s" SNAPSHOT_JOURNAL, path) < 0)
                return -ENOMEM;
        int fd = open(journal, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
        int err = fd < 0 ? -errno : 0;
        free(journal);
        if (fd < 0)
                return err == -ENOENT || err == -ENOTDIR ? 0 : err;
        uint8_t *bytes;
        size_t len;
        err = journal_read(fd, JOURNAL_MAX, &bytes, &len);
        close(fd);
        if (err)
                return err;
        if (!purgeset_add(&load->purges, bytes, purge_record_check(bytes, len)))
                err = -ENOMEM;
        free(bytes);
        return err;
}

/* Answers to other questions than the keys say would be found with other options. */
static const char *unfit(const struct load *load)
{
        struct snapshot_header mine;
        const struct snapshot_header *theirs = &load->reader.header;
        snapshot_header_of(load->cache, &mine);
        if (mine.flags != theirs->flags)
                return "written by a cache with another dont_age";
        if (mine.n_split != theirs->n_split || memcmp(mine.split, theirs->split, sizeof mine.split) != 0)
                return "written by a cache with other split_options";
        return NULL;
}

static int load_file(struct load *load)
{
        struct sardine_snapshot_result *result = load->result;
        uint64_t age = 0;
        result->bytes = load->reader.size;
        result->why = unfit(load);
        if (!result->why && !snapshot_age(&load->reader.header, &age))
                result->why = "from the future: the clock was set back, so nobody knows how old it is";
        if (result->why)
                return SARDINE_ERR_SNAPSHOT;
        result->age = age < UINT32_MAX ? (uint32_t)age : UINT32_MAX;
        int err = read_purges(load);
        if (err) {
                result->why = "its list of purges cannot be read";
                return err;
        }
        err = load_blocks(load, BLOCK_ENTRIES);
        if (!err && !result->why)
                err = load_blocks(load, BLOCK_PAGES);
        result->damaged = load->reader.damaged;
        return err;
}

int snapshot_load(struct sardine_cache *cache, const char *path, struct sardine_snapshot_result *result)
{
        struct load *load = aligned_alloc(64, (sizeof *load + 63) & ~(size_t)63);
        if (!load)
                return -ENOMEM;
        memset(load, 0, offsetof(struct load, batch));
        load->cache = cache;
        load->result = result;
        struct store_stats stats;
        store_lock(cache->store);
        store_stats_locked(cache->store, &stats);
        bool begun = purgelog_begin(&cache->snapshots.purges, &load->since);
        store_unlock(cache->store);
        load->evicted = stats.evicted;
        /* The journal first: a file that is exchanged in between knows more than the old journal says. */
        int err = begun ? read_journal(load, path) : -ENOMEM;
        if (err && begun)
                result->why = "its journal of purges cannot be read";
        if (!err)
                err = snapshot_open(path, &load->reader, &result->why);
        if (!err) {
                err = load_file(load);
                snapshot_close(&load->reader);
        }
        if (begun) {
                store_lock(cache->store);
                purgelog_end(&cache->snapshots.purges);
                store_unlock(cache->store);
        }
        purgeset_fini(&load->purges);
        free(load);
        return err;
}
