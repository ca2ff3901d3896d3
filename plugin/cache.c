/* SPDX-License-Identifier: MIT
 * Making and freeing a cache: options, clock, key. */
#include "cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "entry/header.h"
#include "entry/view.h"
#include "lifetime.h"
#include "wire/bytes.h"
#include "wire/dns.h"

static const uint64_t MAX_BYTES_MOST = UINT64_C(1) << 40;

void sardine_options_init(struct sardine_options *options, size_t sz)
{
        const struct sardine_options defaults = {
            .sz = sz,
            .max_ttl = 86400,
            .max_negative_ttl = 3600,
            .failure_ttl = 60,
            .stale_ttl = 30,
            .stale_backoff = 30,
            .max_networks = 4096,
            .max_entry_size = DNS_MAX_MESSAGE,
            .udp_payload_size = 1232,
            .one_hit_share = 10,
            .negative_share = 25,
            .stale_share = 25,
            .kept_share = 50,
        };
        memset(options, 0, sz);
        memcpy(options, &defaults, sz < sizeof defaults ? sz : sizeof defaults);
}

static void complain(const struct sardine_options *options, const char *what)
{
        if (options->log)
                options->log(options->log_ctx, SARDINE_LOG_ERROR, what);
}

static bool share_check(uint8_t share)
{
        return share >= 1 && share <= 100;
}

/* Every rule with the words for the operator who broke it (B61, B91). */
static int options_check(const struct sardine_options *o)
{
        const char *wrong = NULL;
        if (o->max_ttl == 0 || o->max_ttl > INT32_MAX)
                wrong = "max_ttl must be in 1..2147483647";
        else if (o->stale_ttl == 0)
                wrong = "stale_ttl must be above 0 (RFC 8767)";
        else if (o->min_ttl > o->max_ttl)
                wrong = "min_ttl is above max_ttl: nothing could be kept";
        else if (o->max_bytes > MAX_BYTES_MOST)
                wrong = "max_bytes is above 1 TiB";
        else if (o->failure_ttl > LIFETIME_FAILURE_CAP)
                wrong = "failure_ttl must be at most 300 (RFC 9520)";
        else if (o->max_entry_size < DNS_MIN_UDP || o->max_entry_size > DNS_MAX_MESSAGE)
                wrong = "max_entry_size must be in 512..65535";
        else if (o->udp_payload_size < DNS_MIN_UDP)
                wrong = "udp_payload_size must be in 512..65535";
        else if (o->dont_age > 1)
                wrong = "dont_age must be 0 or 1";
        else if (o->rotate > 1 || o->stale_positive > 1 || o->cap_by_signature > 1)
                wrong = "rotate, stale_positive and cap_by_signature must be 0 or 1";
        else if (!share_check(o->one_hit_share) || !share_check(o->negative_share) ||
                 !share_check(o->stale_share) || !share_check(o->kept_share))
                wrong = "one_hit_share, negative_share, stale_share and kept_share must be in 1..100";
        else if (o->refresh_percent > 50)
                wrong = "refresh_percent must be in 0..50";
        else if (o->segment_size && (o->segment_size < 4096 || o->segment_size > 262144 ||
                                     o->segment_size & (o->segment_size - 1)))
                wrong = "segment_size must be a power of two in 4096..262144";
        else if (o->n_split_options > CACHE_SPLITS_MAX || (o->n_split_options && !o->split_options))
                wrong = "at most 16 split_options";
        if (!wrong)
                return 0;
        complain(o, wrong);
        return SARDINE_ERR_OPTION;
}

static uint64_t monotonic_ms(void)
{
        struct timespec ts;
        /* Coarse: a few milliseconds are nothing against a TTL, and it costs a quarter of the exact one. */
        clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
        return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

uint32_t cache_now(const struct sardine_cache *cache)
{
        uint64_t ms = cache->options.clock ? cache->options.clock(cache->options.clock_ctx) : monotonic_ms();
        /* A host's clock that steps back before the cache was made does not wrap (B35). */
        uint64_t age = ms > cache->clock_origin ? (ms - cache->clock_origin) / 1000 : 0;
        return age > UINT32_MAX - ENTRY_SECOND_ZERO ? UINT32_MAX : ENTRY_SECOND_ZERO + (uint32_t)age;
}

uint64_t cache_entry_hash(const void *ctx, const uint8_t *entry)
{
        struct entry_view view;
        entry_view_init(&view, entry);
        uint8_t name[255];
        size_t name_len = entry_view_qname(&view, name);
        struct entry_key key;
        entry_key_init(&key, name, name_len, view.qtype, view.flags & ENTRY_RD, view.flags & ENTRY_CD,
                       view.extra, view.extra_len);
        if (view.page)
                entry_key_set_page(&key, view.page_code, view.page_number);
        return cache_hash(ctx, &key);
}

bool cache_entry_lingers(const void *ctx, const uint8_t *entry, uint32_t now)
{
        const struct sardine_cache *cache = ctx;
        uint64_t most = (uint64_t)cache->options.stale_window + cache->options.max_ttl;
        if (!(entry[ENTRY_AT_FLAGS] & ENTRY_EXT) || now - entry_expiry(entry) >= most)
                return false;
        struct entry_view view;
        entry_view_init(&view, entry);
        return view.scopes && !view.no_answer;
}

/* Whose share of the budget does it count against? */
static enum store_kind rank(const void *ctx, const uint8_t *entry)
{
        const struct sardine_cache *cache = ctx;
        if ((entry[ENTRY_AT_FLAGS] & (ENTRY_SIMPLE | ENTRY_EXT)) == ENTRY_SIMPLE)
                return STORE_ORDINARY;
        struct entry_view view;
        entry_view_init(&view, entry);
        if (cache->keeps[view.class])
                return STORE_KEPT;
        return !view.no_answer && !entry_view_has_answer_records(&view) ? STORE_NEGATIVE : STORE_ORDINARY;
}

/* A budget for somebody who thinks in entries: ample for ordinary answers, never more than the machine has.
 */
static uint64_t derive_max_bytes(uint64_t max_entries)
{
        const uint64_t per_entry = 1024, least = 1 << 20, without_limit = 1 << 30;
        uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        if (max_entries == 0)
                return without_limit;
        if (max_entries > memory / per_entry)
                return memory;
        return max_entries * per_entry < least ? least : max_entries * per_entry;
}

int sardine_create(const struct sardine_options *wanted, sardine_cache **out)
{
        struct sardine_options with, *options = &with;
        if (!out)
                return -EINVAL;
        int err = abi_check(wanted, ABI_OPTIONS_LEAST, sizeof with);
        if (err)
                return err;
        sardine_options_init(&with, sizeof with);
        abi_take(&with, wanted, sizeof with);
        err = options_check(options);
        if (err)
                return err;
        struct sardine_cache *cache = aligned_alloc(64, (sizeof *cache + 63) & ~(size_t)63);
        if (!cache)
                return -ENOMEM;
        memset(cache, 0, sizeof *cache);
        cache->options = *options;
        for (uint32_t i = 0; i < options->n_split_options; i++)
                cache->splits[i] = options->split_options[i];
        cache->options.split_options = cache->splits;
        if (getrandom(cache->secret, sizeof cache->secret, 0) != (ssize_t)sizeof cache->secret)
                err = -EAGAIN;
        cache->clock_origin = 0;
        cache->clock_origin = options->clock ? options->clock(options->clock_ctx) : monotonic_ms();

        struct store_options store = {
            .hash = cache_entry_hash,
            .linger = cache_entry_lingers,
            .rank = rank,
            .ctx = cache,
            .max_entries = options->max_entries,
            .max_bytes = options->max_bytes,
            .segment_size = options->segment_size,
            .stale_window = options->stale_window,
            .stale_positive = options->stale_positive,
            .new_share = options->one_hit_share,
            .negative_share = options->negative_share,
            .kept_share = options->kept_share,
            .stale_share = options->stale_share,
        };
        if (store.max_bytes == 0)
                store.max_bytes = derive_max_bytes(options->max_entries);
        if (!err)
                err = store_create(&store, &cache->store);
        if (err) {
                if (err == -EINVAL) {
                        complain(options, "max_bytes is too small for a cache");
                        err = SARDINE_ERR_OPTION;
                }
                free(cache);
                return err;
        }
        pending_init(&cache->pending);
        policies_init(cache);
        snapshot_init(cache);
        cache->options.max_bytes = store.max_bytes;
        *out = cache;
        return 0;
}

int sardine_options_get(sardine_cache *cache, struct sardine_options *options)
{
        size_t sz = options ? options->sz : 0;
        if (!cache || sz < sizeof *options)
                return -EINVAL;
        memset(options, 0, sz);
        *options = cache->options;
        options->sz = sz;
        return 0;
}

void sardine_destroy(sardine_cache *cache)
{
        if (!cache)
                return;
        snapshot_end(cache);
        pending_fini(&cache->pending);
        policies_fini(cache);
        store_destroy(cache->store);
        free(cache->scratch);
        free(cache);
}

/* The key's extra part: tag length, tag, and the listed EDNS options that the query has, in the list's order,
 * so that the order in the packet does not matter (B24). Returns its length, 0 for nothing, or -1: too long.
 */
static int key_extra(const struct sardine_cache *cache, const struct wire_query *wire, const void *tag,
                     size_t tag_len, uint8_t extra[255])
{
        size_t len = 1;
        if (tag_len > SARDINE_TAG_MAX)
                return -1;
        extra[0] = (uint8_t)tag_len;
        if (tag_len)
                memcpy(extra + 1, tag, tag_len);
        len += tag_len;
        for (uint32_t i = 0; i < cache->options.n_split_options; i++) {
                const uint8_t *p = wire->options, *end = p ? p + wire->options_len : NULL;
                while (p && p < end) {
                        uint16_t code = get_be16(p), size = get_be16(p + 2);
                        if (code == cache->splits[i]) {
                                if (size > 255 || len + 3 + size > 255)
                                        return -1;
                                put_be16(extra + len, code);
                                extra[len + 2] = (uint8_t)size;
                                memcpy(extra + len + 3, p + 4, size);
                                len += 3u + size;
                        }
                        p += 4 + size;
                }
        }
        return len == 1 ? 0 : (int)len;
}

unsigned cache_key(const struct sardine_cache *cache, const struct wire_query *wire, const void *tag,
                   size_t tag_len, struct entry_key *key)
{
        uint8_t extra[255];
        int extra_len = 0;
        if (cache_key_splits(cache, tag_len)) {
                extra_len = key_extra(cache, wire, tag, tag_len, extra);
                if (extra_len < 0)
                        return SARDINE_BYPASS_TOO_LONG;
        }
        entry_key_init(key, wire->qname, wire->qname_len, wire->qtype, wire->rd, wire->cd, extra,
                       (size_t)extra_len);
        return 0;
}
