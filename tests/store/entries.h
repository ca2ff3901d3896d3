/* SPDX-License-Identifier: MIT
 * Entries for the tests: a real header, then a 64-bit key, a version, and filler that follows from both, so
 * that a torn or foreign entry shows. */
#ifndef TESTS_STORE_ENTRIES_H
#define TESTS_STORE_ENTRIES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "entry/header.h"
#include "store/store.h"

enum {
        TEST_ENTRY_LEAST = 24,
        TEST_NOW = ENTRY_SECOND_ZERO,
};

static inline uint64_t scramble(uint64_t x)
{
        x += 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return x ^ (x >> 31);
}

struct random {
        uint64_t state;
};

static inline uint64_t random_next(struct random *r)
{
        return scramble(r->state++);
}

static inline uint32_t random_below(struct random *r, uint32_t n)
{
        return (uint32_t)((random_next(r) >> 32) * n >> 32);
}

/* `buf` has room for `size` bytes, a multiple of 4 that is at least TEST_ENTRY_LEAST. */
static inline const uint8_t *entry_make(uint8_t *buf, uint64_t key, uint32_t version, uint32_t size,
                                        uint32_t expiry)
{
        memset(buf, 0, ENTRY_HEADER);
        entry_set_expiry(buf, expiry);
        uint32_t at = ENTRY_HEADER;
        if (size <= 255 * 4) {
                buf[ENTRY_AT_SIZE] = (uint8_t)(size / 4);
        } else {
                memcpy(buf + at, &size, 4);
                at += 4;
        }
        memcpy(buf + at, &key, 8);
        memcpy(buf + at + 8, &version, 4);
        at += 12;
        uint8_t fill = (uint8_t)scramble(key ^ (uint64_t)version << 40);
        memset(buf + at, fill, size - at);
        return buf;
}

static inline const uint8_t *entry_payload(const uint8_t *entry)
{
        return entry + ENTRY_HEADER + (entry[ENTRY_AT_SIZE] == 0 ? 4 : 0);
}

static inline uint64_t entry_key_of(const uint8_t *entry)
{
        uint64_t key;
        memcpy(&key, entry_payload(entry), 8);
        return key;
}

static inline uint32_t entry_version_of(const uint8_t *entry)
{
        uint32_t version;
        memcpy(&version, entry_payload(entry) + 8, 4);
        return version;
}

/* Is it whole? */
static inline bool entry_sound(const uint8_t *entry)
{
        uint8_t fill = (uint8_t)scramble(entry_key_of(entry) ^ (uint64_t)entry_version_of(entry) << 40);
        const uint8_t *end = entry + entry_size(entry);
        for (const uint8_t *p = entry_payload(entry) + 12; p < end; p++)
                if (*p != fill)
                        return false;
        return true;
}

static inline uint64_t key_hash(uint64_t key)
{
        return scramble(key ^ 0x5a5a);
}

static inline uint64_t test_hash(const void *ctx, const uint8_t *entry)
{
        (void)ctx;
        return key_hash(entry_key_of(entry));
}

static inline bool test_match(const void *key, const uint8_t *entry)
{
        return entry_key_of(entry) == *(const uint64_t *)key;
}

static inline int put(struct store *store, uint64_t key, uint32_t version, uint32_t size, uint32_t expiry,
                      uint32_t now)
{
        static _Thread_local _Alignas(4) uint8_t buf[ENTRY_MAX + 4];
        entry_make(buf, key, version, size, expiry);
        store_lock(store);
        int result = store_put_locked(store, key_hash(key), test_match, &key, buf, now);
        store_unlock(store);
        return result;
}

static inline bool removes(struct store *store, uint64_t key)
{
        store_lock(store);
        bool result = store_remove_locked(store, key_hash(key), test_match, &key);
        store_unlock(store);
        return result;
}

enum {
        ABSENT = -1,
        TORN = -2,
};

/* The version found, ABSENT or TORN. */
static inline int64_t find(struct store *store, uint64_t key, bool touch)
{
        store_enter(store);
        const uint8_t *entry = store_find(store, key_hash(key), test_match, &key, touch, NULL);
        int64_t result = entry ? entry_sound(entry) ? (int64_t)entry_version_of(entry) : TORN : ABSENT;
        store_leave(store);
        return result;
}

static inline uint64_t stat_entries(struct store *store)
{
        struct store_stats stats;
        store_stats_get(store, &stats);
        return stats.entries;
}

#endif
