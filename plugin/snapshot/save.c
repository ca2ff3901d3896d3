/* SPDX-License-Identifier: MIT
 * Writing a snapshot, while everybody else goes on. The walk holds no lock and copies what it sees; between
 * its reader sections, which are short, the copies are written, so that a slow disk keeps nobody waiting.
 * ENTRY_LAYOUT: expiries, lives. */
#include "snapshot/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "entry/header.h"
#include "entry/page.h"
#include "snapshot/file.h"

/* Copies that are to become blocks of one kind. */
struct gathering {
        uint8_t *bytes;
        size_t len, room;
};

struct save {
        struct sardine_cache *cache;
        struct snapshot_writer writer;
        struct gathering entries, pages;
        uint32_t now;     /* the file's moment, as a cache second */
        uint32_t horizon; /* what expired at or before it is of no use any more */
        uint64_t since;   /* purges from here on are not in the file yet */
        uint64_t count;
        int err;
};

static uint8_t *reserve(struct gathering *gathering, size_t len)
{
        if (gathering->room - gathering->len < len) {
                size_t room = gathering->room * 2 + len + BLOCK_MAX;
                uint8_t *bytes = realloc(gathering->bytes, room);
                if (!bytes)
                        return NULL;
                gathering->bytes = bytes;
                gathering->room = room;
        }
        uint8_t *place = gathering->bytes + gathering->len;
        gathering->len += len;
        return place;
}

static void put_time(const struct save *save, uint8_t *out, uint32_t expiry, uint32_t popularity)
{
        uint32_t time = time_make((int64_t)expiry - save->now, popularity);
        memcpy(out, &time, sizeof time);
}

/* Expiries and lives may be moved by a writer while we copy: those one by one, the rest as it is. */
static void copy_page(const struct save *save, uint8_t *out, const uint8_t *entry)
{
        struct page_view page;
        page_view_init(&page, entry);
        size_t expiries = (size_t)(page.expiries - entry), lives = (size_t)(page.lives - entry),
               which = (size_t)(page.which - entry);
        memcpy(out + ENTRY_AT_SIZE, entry + ENTRY_AT_SIZE, expiries - ENTRY_AT_SIZE);
        for (unsigned i = 0; i < page.count; i++) {
                struct entry_life life = page_life(&page, i);
                put_time(save, out + expiries + 4u * i, life.expiry, 0);
                out[lives + i] = life.code;
        }
        memcpy(out + which, entry + which, entry_size(entry) - which);
}

static enum store_visit copy(void *ctx, const uint8_t *entry, uint32_t popularity)
{
        struct save *save = ctx;
        uint32_t expiry = entry_expiry(entry), size = entry_size(entry);
        if (expiry <= save->horizon)
                return STORE_GO_ON;
        bool page = entry_is_page(entry);
        uint8_t *out = reserve(page ? &save->pages : &save->entries, size);
        if (!out) {
                save->err = -ENOMEM;
                return STORE_STOP;
        }
        put_time(save, out, expiry, popularity);
        out[ENTRY_AT_LIFE] = entry_life_code(entry);
        if (page)
                copy_page(save, out, entry);
        else
                memcpy(out + ENTRY_AT_SIZE, entry + ENTRY_AT_SIZE, size - ENTRY_AT_SIZE);
        return STORE_GO_ON;
}

/* Write whole blocks, and with `all` what is left. */
static int write_blocks(struct save *save, struct gathering *gathering, enum block_kind kind, bool all)
{
        size_t at = 0;
        while (gathering->len - at >= (all ? 1 : BLOCK_TARGET)) {
                size_t end = at;
                uint32_t count = 0;
                for (; end < gathering->len && end - at < BLOCK_TARGET; count++)
                        end += entry_size(gathering->bytes + end);
                int err = snapshot_put_block(&save->writer, kind, gathering->bytes + at, end - at, count);
                if (err)
                        return err;
                save->count += count;
                at = end;
        }
        gathering->len -= at;
        if (at > 0)
                memmove(gathering->bytes, gathering->bytes + at, gathering->len);
        return 0;
}

static bool write_some(void *ctx)
{
        struct save *save = ctx;
        save->err = write_blocks(save, &save->entries, BLOCK_ENTRIES, false);
        if (!save->err)
                save->err = write_blocks(save, &save->pages, BLOCK_PAGES, false);
        if (!save->err && atomic_load_explicit(&save->cache->snapshots.stop, memory_order_relaxed))
                save->err = -ECANCELED;
        return !save->err;
}

/* What was purged while the file was written, so that it stays purged. */
static int write_purges(struct save *save)
{
        struct sardine_cache *cache = save->cache;
        save->entries.len = 0;
        uint8_t *bytes = reserve(&save->entries, BLOCK_TARGET);
        if (!bytes)
                return -ENOMEM;
        for (;;) {
                store_lock(cache->store);
                size_t len = purgelog_read(&cache->snapshots.purges, &save->since, bytes, BLOCK_TARGET);
                store_unlock(cache->store);
                int err = len > 0 ? snapshot_put_block(&save->writer, BLOCK_PURGES, bytes, len, 0) : 0;
                if (err || len == 0)
                        return err;
        }
}

static int save_all(struct save *save)
{
        struct sardine_cache *cache = save->cache;
        store_walk_resting(cache->store, copy, write_some, save);
        if (!save->err)
                save->err = write_blocks(save, &save->entries, BLOCK_ENTRIES, true);
        if (!save->err)
                save->err = write_blocks(save, &save->pages, BLOCK_PAGES, true);
        if (!save->err)
                save->err = write_purges(save);
        if (!save->err)
                save->err = snapshot_sync(&save->writer);
        return save->err;
}

/* Purges wait meanwhile: so when the file gets its name it has all that there were, and those to come find
 * the journal that belongs to it. Nearly everything is on disk already. */
static int finish(struct save *save, const char *path)
{
        snapshot_hold_purges(save->cache);
        int err = write_purges(save);
        if (err)
                snapshot_abandon(&save->writer);
        else
                err = snapshot_finish(&save->writer, save->count);
        snapshot_release_purges(save->cache, err ? NULL : path);
        return err;
}

void snapshot_header_of(const struct sardine_cache *cache, struct snapshot_header *header)
{
        const struct sardine_options *o = &cache->options;
        snapshot_header_init(header);
        header->flags = o->dont_age ? SNAPSHOT_AGELESS : 0;
        header->n_split = o->n_split_options;
        for (uint32_t i = 0; i < o->n_split_options; i++)
                header->split[i] = o->split_options[i];
}

int snapshot_save(struct sardine_cache *cache, const char *path, struct sardine_snapshot_result *result)
{
        struct save save = {.cache = cache, .now = cache_now(cache)};
        struct snapshot_header header;
        uint32_t window = cache->options.stale_window;
        snapshot_header_of(cache, &header);
        save.horizon = save.now > window ? save.now - window : 0;
        store_lock(cache->store);
        bool begun = purgelog_begin(&cache->snapshots.purges, &save.since);
        cache->walks += begun; /* no page of networks is split meanwhile */
        store_unlock(cache->store);
        if (!begun)
                return -ENOMEM;
        int err = snapshot_create(path, &header, &save.writer);
        if (!err) {
                err = save_all(&save);
                if (err)
                        snapshot_abandon(&save.writer);
                else
                        err = finish(&save, path);
                result->bytes = save.writer.bytes;
                result->entries = save.count;
        }
        store_lock(cache->store);
        cache->walks--;
        purgelog_end(&cache->snapshots.purges);
        store_unlock(cache->store);
        free(save.entries.bytes);
        free(save.pages.bytes);
        return err;
}
