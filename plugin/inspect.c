/* SPDX-License-Identifier: MIT
 * Walking, selecting, removing, counting. ENTRY_LAYOUT: flags of the header. */
#include "cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "entry/header.h"
#include "entry/page.h"
#include "entry/render.h"
#include "entry/view.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/name.h"

/* A selector, checked and folded once for the whole walk: a copy. */
struct selection {
        struct sardine_selector selector;
        uint8_t name[255], tag[SARDINE_TAG_MAX], group[SARDINE_TAG_MAX];
};

static int selection_init(struct selection *s, const struct sardine_selector *selector)
{
        s->selector = (struct sardine_selector){0};
        if (!selector)
                return 0;
        int err = abi_check(selector, ABI_SELECTOR_LEAST, sizeof s->selector);
        if (err)
                return err;
        abi_take(&s->selector, selector, sizeof s->selector);
        selector = &s->selector;
        if (selector->tag_len > SARDINE_TAG_MAX || (selector->tag_len && !selector->tag) ||
            selector->group_len > SARDINE_TAG_MAX || (selector->group_len && !selector->group))
                return -EINVAL;
        if (selector->tag_len)
                memcpy(s->tag, selector->tag, selector->tag_len);
        if (selector->group_len)
                memcpy(s->group, selector->group, selector->group_len);
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
        size_t want = s->selector.name_len;
        while (len > want && s->selector.below) {
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

/* What the key decides. `name` is the entry's. */
static bool key_selected(const struct selection *s, const struct entry_view *view, const uint8_t *name,
                         size_t name_len)
{
        const struct sardine_selector *sel = &s->selector;
        if (sel->qtype != 0 && sel->qtype != DNS_ANY && sel->qtype != view->qtype)
                return false;
        if (sel->use_tag) {
                uint32_t len;
                const uint8_t *tag = view_tag(view, &len);
                if (len != sel->tag_len || (len && memcmp(tag, s->tag, len) != 0))
                        return false;
        }
        return !sel->name || name_selected(s, name, name_len);
}

static bool answer_selected(const struct selection *s, const struct entry_view *answer)
{
        const struct sardine_selector *sel = &s->selector;
        if (sel->group_len &&
            (sel->group_len != answer->group_len || memcmp(s->group, answer->group, sel->group_len) != 0))
                return false;
        return !sel->use_rcode || sel->rcode == answer->rcode;
}

/* No page of networks is split between these two. */
static void walks_begin_locked(struct sardine_cache *cache)
{
        cache->walks++;
}
static void walks_end(struct sardine_cache *cache)
{
        store_lock(cache->store);
        cache->walks--;
        store_unlock(cache->store);
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
        if (!answer_selected(&w->selection, &view))
                return STORE_GO_ON;
        shown->rcode = view.rcode;
        shown->ttl = life.expiry > w->now ? life.expiry - w->now : 0;
        shown->expired = life.expiry > w->now ? 0 : w->now - life.expiry;
        shown->life = life_decode(life.code);
        shown->bytes = view.size;
        shown->dnssec_ok = view.flags & ENTRY_DO ? 1 : 0;
        shown->entry = answer;
        shown->eviction_class = view.class;
        shown->group = view.group;
        shown->group_len = view.group_len;
        w->calls++;
        return w->fn(w->ctx, shown) ? STORE_STOP : STORE_GO_ON;
}

static enum store_visit walk_visit(void *ctx, const uint8_t *entry, uint32_t popularity)
{
        struct walk *w = ctx;
        struct entry_view view;
        entry_view_init(&view, entry);
        if (view.no_answer && !view.page)
                return STORE_GO_ON;
        uint8_t name[255];
        size_t name_len = entry_view_qname(&view, name);
        if (!key_selected(&w->selection, &view, name, name_len))
                return STORE_GO_ON;
        struct sardine_entry_view shown = {
            .sz = sizeof shown,
            .qname = name,
            .qname_len = (uint32_t)name_len,
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
        store_lock(cache->store);
        walks_begin_locked(cache);
        store_unlock(cache->store);
        store_walk(cache->store, walk_visit, &w, false, NULL);
        walks_end(cache);
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
                if (answer_selected(s, &answer))
                        return true;
        }
        return false;
}

static bool selected(const struct selection *s, const uint8_t *entry, const struct entry_view *view,
                     const uint8_t *name, size_t name_len)
{
        if (!key_selected(s, view, name, name_len))
                return false;
        if (!s->selector.use_rcode && s->selector.group_len == 0)
                return true;
        return view->page ? page_selected(s, entry) : !view->no_answer && answer_selected(s, view);
}

/* Entries that any of these selects. */
struct expunge {
        struct store_purge purge;
        size_t n;
        struct selection
            selections[]; /* in order of their names, see name_order(); first those without one */
};

static int name_order(const struct selection *s, const uint8_t *name, size_t len)
{
        size_t own = s->selector.name ? s->selector.name_len : 0;
        if (own != len)
                return own < len ? -1 : 1;
        return memcmp(s->name, name, len);
}

static int selection_order(const void *a, const void *b)
{
        const struct selection *other = b;
        return name_order(a, other->name, other->selector.name ? other->selector.name_len : 0);
}

/* The first that has this name or a later one. */
static size_t first_with(const struct expunge *e, const uint8_t *name, size_t len)
{
        size_t low = 0, high = e->n;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (name_order(&e->selections[middle], name, len) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static bool expunge_dooms(const struct store_purge *purge, const uint8_t *entry)
{
        const struct expunge *e = (const struct expunge *)purge;
        struct entry_view view;
        entry_view_init(&view, entry);
        uint8_t name[255];
        size_t name_len = entry_view_qname(&view, name);
        for (size_t i = 0; i < e->n && !e->selections[i].selector.name; i++)
                if (selected(&e->selections[i], entry, &view, name, name_len))
                        return true;
        /* The name itself, and all that it is below. */
        for (size_t at = 0; at < name_len; at += 1u + name[at]) {
                const uint8_t *suffix = name + at;
                size_t len = name_len - at;
                for (size_t i = first_with(e, suffix, len);
                     i < e->n && name_order(&e->selections[i], suffix, len) == 0; i++)
                        if (selected(&e->selections[i], entry, &view, name, name_len))
                                return true;
        }
        return false;
}

static uint64_t purge_everything(struct sardine_cache *cache)
{
        const struct snapshot_purge everything = {.n = 0};
        struct keeper *keeper = snapshot_lock_purging(cache, &everything);
        atomic_fetch_add_explicit(&cache->generation, 1, memory_order_release);
        uint64_t removed = store_wipe_locked(cache->store);
        snapshot_unlock_purging(cache, keeper);
        return removed;
}

uint64_t cache_purge(sardine_cache *cache, struct store_purge *purge, const struct snapshot_purge *noted)
{
        struct keeper *keeper = snapshot_lock_purging(cache, noted);
        walks_begin_locked(cache);
        atomic_fetch_add_explicit(&cache->generation, 1, memory_order_release);
        store_purge_begin_locked(cache->store, purge);
        snapshot_unlock_purging(cache, keeper);
        uint64_t removed = store_purge(cache->store, purge);
        walks_end(cache);
        return removed;
}

static void expunge_release(struct store_purge *purge)
{
        free(purge);
}

int64_t sardine_expunge_many(sardine_cache *cache, size_t n, const struct sardine_selector *selectors)
{
        if (!cache || (n && (!selectors || !abi_is_stride(selectors->sz, ABI_SELECTOR_LEAST))))
                return -EINVAL;
        if (n > (PTRDIFF_MAX - sizeof(struct expunge)) / sizeof(struct selection))
                return -ENOMEM;
        if (n == 0)
                return 0;
        struct expunge *e = malloc(sizeof *e + n * sizeof *e->selections);
        if (!e)
                return -ENOMEM;
        e->purge.dooms = expunge_dooms;
        e->purge.release = expunge_release;
        e->n = n;
        int err = 0;
        for (size_t i = 0; i < n && !err; i++) {
                const struct sardine_selector *selector = element(selectors, i);
                err = selector->sz == selectors->sz ? selection_init(&e->selections[i], selector) : -EINVAL;
        }
        if (err) {
                free(e);
                return err;
        }
        qsort(e->selections, n, sizeof *e->selections, selection_order);
        const struct snapshot_purge noted = {
            .first = &e->selections[0].selector, .n = n, .stride = sizeof e->selections[0]};
        return (int64_t)cache_purge(cache, &e->purge, &noted);
}

int64_t sardine_expunge(sardine_cache *cache, const struct sardine_selector *selector)
{
        if (selector)
                return sardine_expunge_many(cache, 1, selector);
        if (!cache)
                return -EINVAL;
        return (int64_t)purge_everything(cache);
}

int64_t sardine_expunge_to(sardine_cache *cache, uint64_t n)
{
        if (!cache)
                return -EINVAL;
        return (int64_t)(n == 0 ? purge_everything(cache) : store_shrink(cache->store, n, cache_now(cache)));
}

struct purge {
        const sardine_cache *cache;
        uint32_t now;
        uint64_t horizon; /* entries that expired at or before it go */
        uint64_t left;    /* how many may still go */
};

static enum store_visit purge_visit(void *ctx, const uint8_t *entry, uint32_t popularity)
{
        (void)popularity;
        struct purge *p = ctx;
        if (p->left == 0)
                return STORE_STOP;
        if (entry_expiry(entry) > p->horizon || cache_entry_lingers(p->cache, entry, p->now))
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
            .cache = cache,
            .now = now,
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
        if (!stats || stats->sz < ABI_STATS_LEAST || stats->sz > ABI_SIZE_MOST)
                return -EINVAL;
        const struct counters *c = &cache->counters;
        struct store_stats store;
        store_stats_get(cache->store, &store);
        struct sardine_stats full = {
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
                full.reasons[i] = counters_sum(c, COUNT_REASON + i);
        full.lookups = full.hits + full.stale + full.refresh + full.misses + full.bypass +
                       full.cache_only_misses + full.waits;
        full.inserts = full.stored + full.replaced + full.refreshed + full.refused;
        abi_give(stats, &full, sizeof full);
        return 0;
}
