/* SPDX-License-Identifier: MIT
 * Walking, selecting, removing, counting. ENTRY_LAYOUT: flags of the header. */
#include "cache.h"

#include <errno.h>
#include <string.h>

#include "entry/header.h"
#include "entry/page.h"
#include "entry/render.h"
#include "entry/view.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/name.h"

/* A selector, checked and folded once for the whole walk. */
struct selection {
        const struct sardine_selector *selector; /* NULL: everything */
        uint8_t name[255];
};

static int selection_init(struct selection *s, const struct sardine_selector *selector)
{
        s->selector = selector;
        if (!selector)
                return 0;
        int err = struct_check(selector, sizeof *selector);
        if (err)
                return err;
        if (selector->tag_len > SARDINE_TAG_MAX || (selector->tag_len && !selector->tag))
                return -EINVAL;
        if (selector->name) {
                const uint8_t *name = selector->name;
                size_t len = selector->name_len;
                if (len == 0 || len > 255 || wire_name_length(name, name + len) != len)
                        return SARDINE_ERR_NAME;
                wire_name_fold(s->name, name, len);
        }
        return 0;
}

/* Is `name` the selected one, or below it? Compared from label to label, so that "badexample" is not
 * "example". */
static bool name_selected(const struct selection *s, const uint8_t *name, size_t len)
{
        size_t want = s->selector->name_len;
        while (len > want && s->selector->below) {
                size_t label = 1u + name[0];
                name += label;
                len -= label;
        }
        return len == want && memcmp(name, s->name, len) == 0;
}

/* The tag out of the key's extra part. */
static const uint8_t *view_tag(const struct entry_view *view, uint32_t *len)
{
        *len = view->extra ? view->extra[0] : 0;
        return view->extra ? view->extra + 1 : NULL;
}

/* All conditions but the rcode's: what the key decides. */
static bool key_selected(const struct selection *s, const struct entry_view *view)
{
        const struct sardine_selector *sel = s->selector;
        if (!sel)
                return true;
        if (sel->qtype != 0 && sel->qtype != DNS_ANY && sel->qtype != view->qtype)
                return false;
        if (sel->use_tag) {
                uint32_t len;
                const uint8_t *tag = view_tag(view, &len);
                if (len != sel->tag_len || (len && memcmp(tag, sel->tag, len) != 0))
                        return false;
        }
        if (!sel->name)
                return true;
        uint8_t name[255];
        return name_selected(s, name, entry_view_qname(view, name));
}

static bool rcode_selected(const struct selection *s, const struct entry_view *answer)
{
        return !s->selector || !s->selector->use_rcode || s->selector->rcode == answer->rcode;
}

/* Visit every entry, while no page of networks is split. `purge`: what was asked upstream before this moment
 * is not let in any more (B70). */
static uint64_t walk_all(struct sardine_cache *cache, store_visitor visit, void *ctx, bool purge)
{
        uint64_t removed = 0;
        store_lock(cache->store);
        cache->walks++;
        if (purge)
                atomic_fetch_add_explicit(&cache->generation, 1, memory_order_release);
        store_unlock(cache->store);
        store_walk(cache->store, visit, ctx, purge, &removed);
        store_lock(cache->store);
        cache->walks--;
        store_unlock(cache->store);
        return removed;
}

struct walk {
        struct selection selection;
        sardine_walk_fn fn;
        void *ctx;
        int64_t calls;
        uint32_t now;
};

/* An answer, and what is the same for all answers of its entry: `shown` comes with that. */
static enum store_visit show(struct walk *w, struct sardine_entry_view *shown, const uint8_t *answer,
                             struct entry_life life)
{
        struct entry_view view;
        entry_view_init(&view, answer);
        if (!rcode_selected(&w->selection, &view))
                return STORE_GO_ON;
        shown->rcode = view.rcode;
        shown->ttl = life.expiry > w->now ? life.expiry - w->now : 0;
        shown->expired = life.expiry > w->now ? 0 : w->now - life.expiry;
        shown->life = life_decode(life.code);
        shown->bytes = view.size;
        shown->dnssec_ok = view.flags & ENTRY_DO ? 1 : 0;
        shown->entry = answer;
        w->calls++;
        return w->fn(w->ctx, shown) ? STORE_STOP : STORE_GO_ON;
}

static enum store_visit walk_visit(void *ctx, const uint8_t *entry, uint32_t popularity)
{
        struct walk *w = ctx;
        struct entry_view view;
        entry_view_init(&view, entry);
        if ((view.no_answer && !view.page) || !key_selected(&w->selection, &view))
                return STORE_GO_ON;
        uint8_t name[255];
        struct sardine_entry_view shown = {
            .sz = sizeof shown,
            .qname = name,
            .qname_len = (uint32_t)entry_view_qname(&view, name),
            .qtype = view.qtype,
            .qclass = DNS_IN,
            .hits = popularity,
            .rd = view.flags & ENTRY_RD ? 1 : 0,
            .cd = view.flags & ENTRY_CD ? 1 : 0,
        };
        shown.tag = view_tag(&view, &shown.tag_len);
        if (!view.page)
                return show(w, &shown, entry, entry_life(entry));
        struct page_view page;
        page_view_init(&page, entry);
        shown.ecs_family = network_family(page.code);
        shown.ecs_prefix = network_prefix(page.code);
        for (unsigned i = 0; i < page.count; i++) {
                struct page_item item;
                page_item(&page, i, &item);
                memcpy(shown.ecs_addr, item.network, sizeof shown.ecs_addr);
                if (show(w, &shown, item.answer, item.life) == STORE_STOP)
                        return STORE_STOP;
        }
        return STORE_GO_ON;
}

int64_t sardine_walk(sardine_cache *cache, const struct sardine_selector *selector, sardine_walk_fn fn,
                     void *ctx)
{
        if (!cache || !fn)
                return -EINVAL;
        struct walk w = {.fn = fn, .ctx = ctx, .now = cache_now(cache)};
        int err = selection_init(&w.selection, selector);
        if (err)
                return err;
        walk_all(cache, walk_visit, &w, false);
        return w.calls;
}

int sardine_entry_message(sardine_cache *cache, const struct sardine_entry_view *entry, uint8_t *buf,
                          size_t cap)
{
        if (!cache || !entry || !entry->entry || !buf)
                return -EINVAL;
        uint8_t question[DNS_HEADER + 255 + 4] = {0};
        put_be16(question + 4, 1);
        memcpy(question + DNS_HEADER, entry->qname, entry->qname_len);
        put_be16(question + DNS_HEADER + entry->qname_len, (uint16_t)entry->qtype);
        put_be16(question + DNS_HEADER + entry->qname_len + 2, (uint16_t)entry->qclass);
        question[2] = entry->rd ? DNS_RD : 0;
        question[3] = entry->cd ? DNS_CD : 0;
        const struct wire_query query = {
            .packet = question,
            .qname = question + DNS_HEADER,
            .qname_len = (uint8_t)entry->qname_len,
            .qtype = (uint16_t)entry->qtype,
            .qclass = (uint16_t)entry->qclass,
            .udp_size = DNS_MAX_MESSAGE,
            .rd = entry->rd,
            .cd = entry->cd,
            .edns = true,
            .dnssec_ok = true,
        };
        uint32_t now = cache_now(cache);
        const struct entry_life life = {.expiry = now + entry->ttl - entry->expired,
                                        .code = life_encode(entry->life)};
        const struct render_params params = {
            .query = &query,
            .now = now,
            .life = &life,
            .stale_ttl = cache->options.stale_ttl,
            .limit = DNS_MAX_MESSAGE,
            .udp_payload_size = cache->options.udp_payload_size,
            .add_ede = -1,
        };
        struct render_result result;
        return entry_render(entry->entry, &params, buf, cap, &result) ? (int)result.len : -EMSGSIZE;
}

/* A page goes as a whole, also when only some of its answers have the rcode: better one fetch too many than
 * an answer too few removed. */
static bool page_selected(const struct selection *s, const uint8_t *entry)
{
        struct page_view page;
        page_view_init(&page, entry);
        for (unsigned i = 0; i < page.count; i++) {
                struct entry_view answer;
                entry_view_init(&answer, page_answer(&page, i));
                if (rcode_selected(s, &answer))
                        return true;
        }
        return false;
}

static enum store_visit expunge_visit(void *ctx, const uint8_t *entry, uint32_t popularity)
{
        (void)popularity;
        const struct selection *s = ctx;
        struct entry_view view;
        entry_view_init(&view, entry);
        if (!key_selected(s, &view))
                return STORE_GO_ON;
        bool all = !s->selector || !s->selector->use_rcode;
        bool goes =
            view.page ? page_selected(s, entry) : all || (!view.no_answer && rcode_selected(s, &view));
        return goes ? STORE_REMOVE : STORE_GO_ON;
}

/* As a purge of everything. */
static void bar_inflight(struct sardine_cache *cache)
{
        store_lock(cache->store);
        atomic_fetch_add_explicit(&cache->generation, 1, memory_order_release);
        store_unlock(cache->store);
}

int64_t sardine_expunge(sardine_cache *cache, const struct sardine_selector *selector)
{
        if (!cache)
                return -EINVAL;
        struct selection s;
        int err = selection_init(&s, selector);
        if (err)
                return err;
        if (selector)
                return (int64_t)walk_all(cache, expunge_visit, &s, true);
        bar_inflight(cache);
        return (int64_t)store_shrink(cache->store, 0, cache_now(cache));
}

int64_t sardine_expunge_to(sardine_cache *cache, uint64_t n)
{
        if (!cache)
                return -EINVAL;
        if (n == 0)
                bar_inflight(cache);
        return (int64_t)store_shrink(cache->store, n, cache_now(cache));
}

struct purge {
        uint64_t horizon; /* entries that expired at or before it go */
        uint64_t left;    /* how many may still go */
};

static enum store_visit purge_visit(void *ctx, const uint8_t *entry, uint32_t popularity)
{
        (void)popularity;
        struct purge *p = ctx;
        if (p->left == 0)
                return STORE_STOP;
        if (entry_expiry(entry) > p->horizon)
                return STORE_GO_ON;
        p->left--;
        return STORE_REMOVE;
}

int64_t sardine_purge_expired(sardine_cache *cache, uint64_t n)
{
        if (!cache)
                return -EINVAL;
        struct store_stats stats;
        store_stats_get(cache->store, &stats);
        uint32_t now = cache_now(cache), window = cache->options.stale_window;
        struct purge p = {
            .horizon = now > window ? now - window : 0,
            .left = stats.entries > n ? stats.entries - n : 0,
        };
        uint64_t removed = 0;
        store_walk(cache->store, purge_visit, &p, false, &removed);
        store_maintain(cache->store, now);
        return (int64_t)removed;
}

int sardine_stats_get(sardine_cache *cache, struct sardine_stats *stats)
{
        if (!cache)
                return -EINVAL;
        size_t sz = stats ? stats->sz : 0;
        if (sz < sizeof *stats)
                return -EINVAL;
        const struct counters *c = &cache->counters;
        struct store_stats store;
        store_stats_get(cache->store, &store);
        memset(stats, 0, sz);
        *stats = (struct sardine_stats){
            .sz = sz,
            .entries = store.entries,
            .max_entries = store.max_entries,
            .bytes = store.bytes,
            .max_bytes = store.max_bytes,
            .entry_bytes = store.entry_bytes,
            .index_bytes = store.index_bytes,
            .dead_bytes = store.dead_bytes,
            .hits = counters_sum(c, COUNT_HIT),
            .stale = counters_sum(c, COUNT_STALE),
            .refresh = counters_sum(c, COUNT_REFRESH),
            .misses = counters_sum(c, COUNT_MISS),
            .bypass = counters_sum(c, COUNT_BYPASS),
            .cache_only_misses = counters_sum(c, COUNT_CACHE_ONLY_MISS),
            .waits = counters_sum(c, COUNT_WAIT),
            .rescued = counters_sum(c, COUNT_RESCUED),
            .stored = counters_sum(c, COUNT_STORED),
            .replaced = counters_sum(c, COUNT_REPLACED),
            .refreshed = counters_sum(c, COUNT_REFRESHED),
            .refused = counters_sum(c, COUNT_REFUSED),
            .evicted = store.evicted,
            .expired = store.expired,
            .expunged = store.expunged,
            .moved = store.moved,
            .jemalloc = store.jemalloc,
            .huge_pages = store.huge_pages,
        };
        for (unsigned i = 0; i < SARDINE_REASON_COUNT; i++)
                stats->reasons[i] = counters_sum(c, COUNT_REASON + i);
        stats->lookups = stats->hits + stats->stale + stats->refresh + stats->misses + stats->bypass +
                         stats->cache_only_misses + stats->waits;
        stats->inserts = stats->stored + stats->replaced + stats->refreshed + stats->refused;
        return 0;
}
