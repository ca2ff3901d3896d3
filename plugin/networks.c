/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: see networks.h. */
#include "networks.h"

#include <stdlib.h>
#include <string.h>

#include "entry/encode.h"
#include "entry/header.h"
#include "entry/render.h"
#include "entry/run.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/rdata.h"
#include "wire/response.h"

enum {
        /* A page with more networks, or of more bytes, is a reason to make another page. */
        PAGE_TARGET = 128,
        PAGE_TARGET_BYTES = 8192,
        /* What a page may grow to before that has helped: the page that is split is another one at first. */
        PAGE_MOST = 240,
        /* With all pages made, each has at least so much room: chance spreads networks unevenly. */
        PAGE_LEAST = 192,
};

static uint16_t page_of(uint64_t hash, uint16_t pages)
{
        uint32_t span = 1;
        while (span < pages)
                span <<= 1;
        uint32_t number = (uint32_t)hash & (span - 1);
        return (uint16_t)(number < pages ? number : number & (span / 2 - 1));
}

static uint64_t network_hash(const sardine_cache *cache, const struct network *network)
{
        return entry_network_hash(network->code, network->addr, cache->secret, sizeof cache->secret);
}

uint64_t networks_mark(const sardine_cache *cache, uint64_t base_hash, const struct network *network)
{
        return base_hash ^ network_hash(cache, network) ^ network->exact;
}

const uint8_t *networks_page(sardine_cache *cache, struct entry_key *key, const struct network *network,
                             uint16_t pages, bool touch, uint32_t *popularity)
{
        uint16_t number = page_of(network_hash(cache, network), pages & ~NETWORKS_EXACT);
        entry_key_set_page(key, network->code, number | (pages & NETWORKS_EXACT));
        const uint8_t *page =
            store_find(cache->store, cache_hash(cache, key), entry_key_match, key, touch, popularity);
        entry_key_clear_page(key);
        return page;
}

/* One insert, under the store's lock. */
struct put {
        sardine_cache *cache;
        const struct entry_key *base; /* the question's key */
        const struct network *network;
        uint32_t now;
        uint16_t pages; /* of the network's prefix length; 0: none is known */
        struct page_item items[PAGE_NETWORKS_MAX];
        unsigned count;
        size_t size;    /* of the page last written */
        uint8_t *built; /* ENTRY_MAX bytes: the cache's */
        bool splits;    /* may a crowded page be split? */
};

static const uint8_t *find_page(struct put *put, uint16_t number, struct entry_key *key, uint64_t *hash)
{
        *key = *put->base;
        entry_key_set_page(key, put->network->code, number | (put->network->exact ? NETWORKS_EXACT : 0));
        *hash = cache_hash(put->cache, key);
        return store_find_locked(put->cache->store, *hash, entry_key_match, key);
}

/* The page's networks that are still wanted, but for the one at `without`, behind those collected already. */
static void collect(struct put *put, const struct page_view *page, int without)
{
        const uint8_t *answers[PAGE_ANSWERS_MAX];
        page_answers(page, answers);
        for (unsigned i = 0; i < page->count && put->count < PAGE_NETWORKS_MAX; i++) {
                struct page_item *item = &put->items[put->count];
                page_network(page, i, item->network);
                item->life = page_life(page, i);
                item->answer = answers[page->which[i]];
                if ((int)i != without &&
                    (uint64_t)item->life.expiry + put->cache->options.stale_window > put->now)
                        put->count++;
        }
}

/* Drop the one that would go first anyway; the last item, just inserted, stays. */
static void drop_least(struct put *put)
{
        unsigned least = 0;
        for (unsigned i = 1; i + 1 < put->count; i++)
                if (put->items[i].life.expiry < put->items[least].life.expiry)
                        least = i;
        memmove(&put->items[least], &put->items[least + 1], (put->count - least - 1) * sizeof *put->items);
        put->count--;
}

/* Write items [first, first + count) as the page of `key`. 0, or the reason why it is not possible. */
static unsigned write_page(struct put *put, const struct entry_key *key, uint64_t hash, unsigned first,
                           unsigned count)
{
        struct store *store = put->cache->store;
        uint32_t room = store_max_entry(store);
        put->size =
            page_build(key, put->items + first, count, put->built, room < ENTRY_MAX ? room : ENTRY_MAX);
        if (put->size == 0)
                return SARDINE_REFUSED_TOO_LARGE;
        return store_put_locked(store, hash, entry_key_match, key, put->built, put->now) < 0
                   ? SARDINE_REFUSED_NO_MEMORY
                   : 0;
}

/* How many pages there may be: a power of two, for only then are networks spread over them evenly. */
static unsigned pages_most(const struct put *put)
{
        unsigned most = 1;
        while (most < NETWORKS_EXACT / 2 && most * 2 * PAGE_LEAST <= put->cache->options.max_networks)
                most *= 2;
        return most;
}

/* How many networks a page may have. With all pages made, together as many as the operator wants. */
static unsigned page_most(const struct put *put)
{
        unsigned pages = pages_most(put), full = put->cache->options.max_networks / pages;
        return put->pages < pages || full > PAGE_MOST ? PAGE_MOST : full;
}

static struct entry_scope scope_at(const struct entry_view *base, unsigned i)
{
        const uint8_t *item = base->scopes + SCOPE_ITEM * i;
        return (struct entry_scope){item[0], get_be16(item + 1)};
}

static bool same_length(struct entry_scope a, struct entry_scope b)
{
        return a.code == b.code && ((a.pages ^ b.pages) & NETWORKS_EXACT) == 0;
}

/* In the order of the list: longest prefix first, and at one length those for exactly this length. */
static bool goes_before(struct entry_scope a, struct entry_scope b)
{
        uint8_t x = network_prefix(a.code), y = network_prefix(b.code);
        return x > y || (x == y && a.pages & NETWORKS_EXACT);
}

/* How many pages the base entry says there are for this network's prefix length. */
static uint16_t scope_pages(const struct entry_view *base, const struct network *network)
{
        const struct entry_scope mine = {network->code, network->exact ? NETWORKS_EXACT : 0};
        for (uint8_t i = 0; i < base->scopes_count; i++)
                if (same_length(scope_at(base, i), mine))
                        return scope_at(base, i).pages & ~NETWORKS_EXACT;
        return 0;
}

/* The place in the list of the prefix length whose first page expires first, or has gone already. Its other
 * pages are not found any more either, and expire. */
static unsigned least_length(const struct put *put, const struct entry_view *base)
{
        unsigned least = 0;
        uint32_t soonest = UINT32_MAX;
        for (uint8_t i = 0; i < base->scopes_count; i++) {
                struct entry_scope scope = scope_at(base, i);
                struct entry_key key = *put->base;
                entry_key_set_page(&key, scope.code, scope.pages & NETWORKS_EXACT);
                const uint8_t *page =
                    store_find_locked(put->cache->store, cache_hash(put->cache, &key), entry_key_match, &key);
                uint32_t expiry = page ? entry_expiry(page) : 0;
                if (expiry < soonest) {
                        soonest = expiry;
                        least = i;
                }
        }
        return least;
}

/* The base entry's list, with `pages` for the network's prefix length. Returns its length. */
static uint8_t scopes_with(const struct put *put, const struct entry_view *base, uint16_t pages,
                           struct entry_scope list[SCOPES_MAX])
{
        const struct entry_scope mine = {put->network->code,
                                         pages | (put->network->exact ? NETWORKS_EXACT : 0)};
        unsigned n = 0, left_out = SCOPES_MAX;
        bool placed = false;
        if (base && base->scopes_count == SCOPES_MAX && scope_pages(base, put->network) == 0)
                left_out = least_length(put, base);
        for (unsigned i = 0; base && i < base->scopes_count; i++) {
                struct entry_scope scope = scope_at(base, i);
                if (i == left_out || same_length(scope, mine))
                        continue;
                if (!placed && goes_before(mine, scope)) {
                        list[n++] = mine;
                        placed = true;
                }
                list[n++] = scope;
        }
        if (!placed)
                list[n++] = mine;
        return (uint8_t)n;
}

/* What writing the base entry again needs; too much for a stack. */
struct again {
        struct wire_rr rrs[WIRE_RRS_MAX];
        uint8_t packet[DNS_MAX_MESSAGE];
        _Alignas(ENTRY_ALIGN) uint8_t entry[ENTRY_MAX];
};

static uint32_t records_of(const struct entry_view *view)
{
        struct run_walk walk;
        struct entry_run run = {.owner = NULL};
        uint32_t records = 0;
        run_walk_init(&walk, view);
        while (walk.left > 0) {
                run_walk_next(&walk, &run);
                for (uint32_t i = 0; i < run.count; i++)
                        walk.p = rdata_skip(rdata_shape(run.type), walk.p);
                records += run.count;
        }
        return records;
}

/* The answer for everybody, written again with another list of scopes: rendered for a client that sees all of
 * it, in its last second, when TTLs are all that they ever exceed its life by and 1, and encoded once more.
 * Rare: once for each page that a question gets. */
static unsigned encode_again(const struct put *put, const struct entry_view *base,
                             const struct encode_params *params, struct again *again)
{
        uint8_t name[255];
        size_t name_len = entry_view_qname(base, name);
        /* In capitals: what was spelled out in lower case is spelled out again, and stays so. */
        for (size_t i = 0; i < name_len; i++)
                if (name[i] >= 'a' && name[i] <= 'z')
                        name[i] = (uint8_t)(name[i] - 0x20);
        uint8_t question[DNS_HEADER + 255 + 4] = {0};
        put_be16(question + 4, 1);
        memcpy(question + DNS_HEADER, name, name_len);
        put_be16(question + DNS_HEADER + name_len, base->qtype);
        put_be16(question + DNS_HEADER + name_len + 2, DNS_IN);
        const struct wire_query query = {
            .packet = question,
            .qname = question + DNS_HEADER,
            .qname_len = (uint8_t)name_len,
            .qtype = base->qtype,
            .qclass = DNS_IN,
            .ad = true,
            .dnssec_ok = true,
            .edns = base->ede_count != 0,
        };
        const struct render_params render = {
            .query = &query,
            .now = params->expiry - params->life,
            .limit = DNS_MAX_MESSAGE,
            .udp_payload_size = DNS_MIN_UDP,
            .add_ede = -1,
        };
        struct render_result rendered;
        struct wire_response response;
        if (!entry_render(base->entry, &render, again->packet, sizeof again->packet, &rendered) ||
            wire_response_parse(again->packet, rendered.len, again->rrs, WIRE_RRS_MAX, &response) ||
            response.count != records_of(base) || /* some had no room */
            !entry_encode(put->base, &response, params, again->entry, sizeof again->entry))
                return SARDINE_REFUSED_TOO_LARGE;
        again->entry[ENTRY_AT_LIFE] = entry_life_code(base->entry);
        return 0;
}

/* Make the base entry say how many pages there are. As a mere list it lives as long as the page that was just
 * written; with an answer for everybody that is still wanted, its life is that answer's. */
static unsigned announce(struct put *put, uint16_t pages, uint32_t expiry)
{
        struct store *store = put->cache->store;
        uint64_t hash = cache_hash(put->cache, put->base);
        const uint8_t *present = store_find_locked(store, hash, entry_key_match, put->base);
        struct entry_view base;
        bool answers = false;
        if (expiry <= put->now)
                expiry = put->now + 1;
        if (present) {
                entry_view_init(&base, present);
                answers = !base.no_answer &&
                          (uint64_t)entry_expiry(present) + put->cache->options.stale_window > put->now;
                if (base.no_answer && entry_expiry(present) > expiry)
                        expiry = entry_expiry(present);
                if (scope_pages(&base, put->network) == pages && (answers || base.no_answer)) {
                        if (!answers && expiry != entry_expiry(present))
                                store_refresh_locked(store, hash, present, expiry,
                                                     life_encode(expiry - put->now));
                        return 0;
                }
        }
        struct entry_scope list[SCOPES_MAX];
        struct encode_params params = {.expiry = expiry, .life = expiry - put->now, .scopes = list};
        params.scopes_count = scopes_with(put, present ? &base : NULL, pages, list);
        unsigned reason = 0;
        struct again *again = NULL;
        const uint8_t *entry = put->built;
        if (answers) {
                params.expiry = entry_expiry(present);
                params.life = 1;
                params.dnssec_ok = base.flags & ENTRY_DO;
                params.ageless = base.ext & EXT_AGELESS;
                params.truncated = base.ext & EXT_TRUNCATED;
                params.class = base.class;
                params.group = base.group;
                params.group_len = base.group_len;
                again = aligned_alloc(_Alignof(struct again), sizeof *again);
                reason = again ? encode_again(put, &base, &params, again) : SARDINE_REFUSED_NO_MEMORY;
                entry = again ? again->entry : NULL;
        } else if (!entry_encode_scopes(put->base, &params, put->built, ENTRY_MAX)) {
                reason = SARDINE_REFUSED_TOO_LARGE;
        }
        if (!reason && store_put_locked(store, hash, entry_key_match, put->base, entry, put->now) < 0)
                reason = SARDINE_REFUSED_NO_MEMORY;
        free(again);
        return reason;
}

/* One page more: the networks that belong there leave their old page. First the new page is written, then it
 * is announced, then the old one is written without them: a reader finds them all the time. */
static void split(struct put *put)
{
        uint16_t number = put->pages, span = 1;
        while (span * 2u <= number)
                span = (uint16_t)(span * 2);
        struct entry_key from_key, to_key;
        uint64_t from_hash, to_hash;
        const uint8_t *from = find_page(put, (uint16_t)(number - span), &from_key, &from_hash);
        put->count = 0;
        if (from) {
                struct page_view page;
                page_view_init(&page, from);
                collect(put, &page, -1);
        }
        unsigned moved = 0; /* these are sorted to the front */
        for (unsigned i = 0; i < put->count; i++) {
                struct network network = {.code = put->network->code};
                memcpy(network.addr, put->items[i].network, sizeof network.addr);
                if (page_of(network_hash(put->cache, &network), (uint16_t)(number + 1)) != number)
                        continue;
                struct page_item item = put->items[moved];
                put->items[moved++] = put->items[i];
                put->items[i] = item;
        }
        find_page(put, number, &to_key, &to_hash);
        /* Items point into the old page: what a put moves or reuses is only safe to read before it. Both
         * pages are therefore built from a copy. */
        uint8_t *copy = from ? aligned_alloc(ENTRY_ALIGN, entry_size(from)) : NULL;
        if (from && !copy)
                return;
        for (unsigned i = 0; i < put->count; i++)
                put->items[i].answer = copy + (put->items[i].answer - from);
        if (copy)
                memcpy(copy, from, entry_size(from));
        unsigned reason = moved ? write_page(put, &to_key, to_hash, 0, moved) : 0;
        if (!moved) /* one from a time whose list of pages was evicted */
                store_remove_locked(put->cache->store, to_hash, entry_key_match, &to_key);
        uint32_t expiry = moved ? entry_expiry(put->built) : put->now + 1;
        if (!reason)
                reason = announce(put, (uint16_t)(number + 1), expiry);
        if (!reason && moved && moved < put->count)
                write_page(put, &from_key, from_hash, moved, put->count - moved);
        else if (!reason && moved)
                store_remove_locked(put->cache->store, from_hash, entry_key_match, &from_key);
        free(copy);
}

/* The page's answer that is equal to this one, or else this one. */
static const uint8_t *same_answer(const struct page_view *page, const uint8_t *answer)
{
        const uint8_t *there = page->answers;
        for (unsigned i = 0; i < page->answer_count; i++, there += entry_size(there))
                if (entry_same_answer(there, answer))
                        return there;
        return answer;
}

static int put_answer(struct put *put, const uint8_t *answer, networks_allow allow, const void *ctx)
{
        struct store *store = put->cache->store;
        uint64_t hash = cache_hash(put->cache, put->base);
        const uint8_t *present = store_find_locked(store, hash, entry_key_match, put->base);
        if (present) {
                struct entry_view base;
                entry_view_init(&base, present);
                put->pages = scope_pages(&base, put->network);
        }
        if (put->pages == 0)
                put->pages = 1;
        struct entry_key key;
        const uint8_t *old =
            find_page(put, page_of(network_hash(put->cache, put->network), put->pages), &key, &hash);
        int at = -1;
        const uint8_t *same = answer;
        if (old) {
                struct page_view page;
                page_view_init(&page, old);
                at = page_find(&page, put->network->addr);
                if (at >= 0) {
                        struct entry_life was = page_life(&page, (unsigned)at), is = entry_life(answer);
                        const uint8_t *there = page_answer(&page, (unsigned)at);
                        unsigned reason = allow(ctx, there, &was);
                        if (reason)
                                return -(int)reason;
                        if (entry_same_answer(there, answer)) {
                                page_set_life(&page, (unsigned)at, is);
                                if (is.expiry > entry_expiry(old))
                                        store_refresh_locked(store, hash, old, is.expiry, is.code);
                                unsigned lost = announce(put, put->pages, is.expiry);
                                return lost ? -(int)lost : SARDINE_REFRESHED;
                        }
                }
                collect(put, &page, at);
                same = same_answer(&page, answer);
        }
        unsigned most = page_most(put);
        if (most == 0)
                return -SARDINE_REFUSED_ECS;
        struct page_item *mine = &put->items[put->count < PAGE_NETWORKS_MAX ? put->count++ : put->count - 1];
        memcpy(mine->network, put->network->addr, sizeof mine->network);
        mine->life = entry_life(answer);
        mine->answer = same;
        while (put->count > most)
                drop_least(put);
        unsigned reason;
        while ((reason = write_page(put, &key, hash, 0, put->count)) == SARDINE_REFUSED_TOO_LARGE &&
               put->count > 1)
                drop_least(put);
        bool crowded = put->count > PAGE_TARGET || (put->size > PAGE_TARGET_BYTES && put->count > 1);
        if (!reason)
                reason = announce(put, put->pages, entry_expiry(put->built));
        if (reason)
                return -(int)reason;
        if (crowded && put->splits && put->pages < pages_most(put) && put->cache->walks == 0)
                split(put); /* if that fails, the answer is there all the same */
        return at >= 0 ? SARDINE_REPLACED : SARDINE_STORED;
}

/* The place of the network's answer in its page; -1: there is none. */
static int find_answer(sardine_cache *cache, const struct entry_key *base_key, const struct network *network,
                       uint16_t pages, struct page_view *page)
{
        struct entry_key key = *base_key;
        uint16_t number = page_of(network_hash(cache, network), pages);
        entry_key_set_page(&key, network->code, number | (network->exact ? NETWORKS_EXACT : 0));
        const uint8_t *entry =
            store_find_locked(cache->store, cache_hash(cache, &key), entry_key_match, &key);
        if (!entry)
                return -1;
        page_view_init(page, entry);
        return page_find(page, network->addr);
}

static bool find_base(sardine_cache *cache, const struct entry_key *key, struct entry_view *base)
{
        const uint8_t *entry = store_find_locked(cache->store, cache_hash(cache, key), entry_key_match, key);
        if (entry)
                entry_view_init(base, entry);
        return entry != NULL;
}

static bool is_there(sardine_cache *cache, const struct entry_key *key, const struct network *network)
{
        struct entry_view base;
        struct page_view page;
        return find_base(cache, key, &base) &&
               find_answer(cache, key, network, scope_pages(&base, network), &page) >= 0;
}

int networks_put(sardine_cache *cache, const struct entry_key *key, const struct network *network,
                 const uint8_t *answer, uint32_t now, networks_allow allow, const void *ctx)
{
        if (!cache->scratch && !(cache->scratch = aligned_alloc(ENTRY_ALIGN, ENTRY_MAX)))
                return -SARDINE_REFUSED_NO_MEMORY;
        struct put put;
        put.cache = cache;
        put.base = key;
        put.network = network;
        put.now = now;
        put.pages = 0;
        put.count = 0;
        put.built = cache->scratch;
        put.splits = true;
        uint64_t evicted = store_evicted_locked(cache->store);
        int outcome = put_answer(&put, answer, allow, ctx);
        if (outcome < 0 || store_evicted_locked(cache->store) == evicted || is_there(cache, key, network))
                return outcome;
        /* The list or a page that was split needed room in a small cache, and this page had to give it. */
        put.pages = 0;
        put.count = 0;
        put.splits = false;
        int again = put_answer(&put, answer, allow, ctx);
        if (again < 0)
                return again;
        return is_there(cache, key, network) ? outcome : -SARDINE_REFUSED_NO_MEMORY;
}

void networks_outdate(sardine_cache *cache, const struct entry_key *key, const struct network *network,
                      uint32_t now)
{
        struct entry_view base;
        struct page_view page;
        if (!find_base(cache, key, &base))
                return;
        uint16_t pages = scope_pages(&base, network);
        int at = pages ? find_answer(cache, key, network, pages, &page) : -1;
        if (at >= 0 && page_life(&page, (unsigned)at).expiry <= now)
                page_set_life(&page, (unsigned)at, (struct entry_life){.expiry = 1});
}

bool networks_covered(sardine_cache *cache, const struct entry_key *key, const struct network *network,
                      networks_usable usable, const void *ctx)
{
        struct entry_view base;
        if (!find_base(cache, key, &base))
                return false;
        for (uint8_t i = 0; i < base.scopes_count; i++) {
                struct entry_scope scope = scope_at(&base, i);
                struct network larger = {.code = scope.code};
                uint8_t prefix = network_prefix(scope.code);
                if (scope.pages & NETWORKS_EXACT ||
                    network_family(scope.code) != network_family(network->code) ||
                    prefix >= network_prefix(network->code))
                        continue;
                memcpy(larger.addr, network->addr, sizeof larger.addr);
                wire_ecs_mask(larger.addr, prefix);
                struct page_view page;
                int at = find_answer(cache, key, &larger, scope.pages, &page);
                if (at < 0)
                        continue;
                struct entry_life life = page_life(&page, (unsigned)at);
                if (usable(ctx, page_answer(&page, (unsigned)at), &life))
                        return true;
        }
        return false;
}
