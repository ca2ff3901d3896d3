/* SPDX-License-Identifier: MIT
 * From a query to a reply, or to a token. ENTRY_LAYOUT: flags of the header. */
#include "cache.h"

#include <errno.h>
#include <string.h>

#include "entry/header.h"
#include "entry/render.h"
#include "entry/view.h"
#include "token.h"
#include "wire/dns.h"

enum {
        EDE_STALE = 3,           /* RFC 8914 s4.4 */
        EDE_STALE_NXDOMAIN = 19, /* RFC 8914 s4.20 */
};

/* One lookup's state, from the query to the outcome. */
struct lookup {
        struct sardine_cache *cache;
        const struct sardine_query *query;
        struct wire_query wire;
        struct entry_key key;
        uint64_t base_hash; /* of the key without network */
        uint32_t now;
        bool touch;

        /* The entry chosen, if any. */
        const uint8_t *entry;
        uint64_t hash;
        uint32_t popularity;
        uint8_t scope; /* of the network it is for; 0: everybody */
        /* An entry that would have answered had it not expired. */
        const uint8_t *expired;
        uint64_t expired_hash;
        uint8_t expired_scope;
};

static bool is_stream(const struct sardine_query *query)
{
        return query->transport != SARDINE_UDP;
}

/* Can this entry answer this client at all, its age apart? */
static bool serves(const struct lookup *l, const uint8_t *entry)
{
        uint8_t flags = entry[ENTRY_AT_FLAGS];
        if (l->wire.dnssec_ok && !(flags & ENTRY_DO))
                return false; /* B45: no signatures were asked for when this was fetched */
        if (flags & ENTRY_EXT) {
                struct entry_view view;
                entry_view_init(&view, entry);
                if (view.no_answer)
                        return false;
                if ((view.ext & EXT_TRUNCATED) && is_stream(l->query))
                        return false; /* B15: it came for the whole */
        }
        return true;
}

/* Take the entry if it is fresh, remember it if it once was. */
static bool consider(struct lookup *l, const uint8_t *entry, uint64_t hash, uint32_t popularity,
                     uint8_t scope)
{
        if (!serves(l, entry))
                return false;
        if (entry_expiry(entry) > l->now) {
                l->entry = entry;
                l->hash = hash;
                l->popularity = popularity;
                l->scope = scope;
                return true;
        }
        if (!l->expired) {
                l->expired = entry;
                l->expired_hash = hash;
                l->expired_scope = scope;
        }
        return false;
}

/* The network that the client is in: its ECS option if it sent one, else its address, which is what a proxy
 * in front of the upstream would have told it. false: none. A source prefix of 0 asks for no tailoring. */
static bool client_network(const struct lookup *l, struct wire_ecs *network)
{
        if (l->wire.ecs.family != ECS_NONE) {
                *network = l->wire.ecs;
                return network->source > 0;
        }
        const struct sardine_query *q = l->query;
        if (!q->client || (q->client_len != 4 && q->client_len != 16))
                return false;
        *network = (struct wire_ecs){.family = q->client_len == 4 ? ECS_IPV4 : ECS_IPV6,
                                     .source = (uint8_t)(q->client_len * 8)};
        memcpy(network->addr, q->client, q->client_len);
        return true;
}

/* Longest covering prefix first (RFC 7871 s7.3.1). */
static bool find_network(struct lookup *l, const struct entry_view *base)
{
        struct wire_ecs network;
        if (!client_network(l, &network))
                return false;
        bool found = false;
        for (uint8_t i = 0; i < base->scopes_count && !found; i++) {
                uint8_t code = base->scopes[i], prefix = network_prefix(code);
                if (network_family(code) != network.family || prefix > network.source)
                        continue;
                uint8_t addr[16];
                memcpy(addr, network.addr, sizeof addr);
                wire_ecs_mask(addr, prefix);
                entry_key_set_network(&l->key, code, addr);
                uint64_t hash = cache_hash(l->cache, &l->key);
                uint32_t popularity;
                const uint8_t *entry =
                    store_find(l->cache->store, hash, entry_key_match, &l->key, l->touch, &popularity);
                found = entry && consider(l, entry, hash, popularity, prefix);
        }
        entry_key_clear_network(&l->key);
        return found;
}

static void find(struct lookup *l)
{
        uint32_t popularity;
        const uint8_t *base =
            store_find(l->cache->store, l->base_hash, entry_key_match, &l->key, l->touch, &popularity);
        if (!base)
                return;
        if (base[ENTRY_AT_FLAGS] & ENTRY_EXT) {
                struct entry_view view;
                entry_view_init(&view, base);
                if (view.scopes && find_network(l, &view))
                        return;
        }
        consider(l, base, l->base_hash, popularity, 0);
}

/* Is it this caller who should fetch the entry anew? One in the last part of a life gets a yes. */
static bool wins_refresh(struct lookup *l)
{
        uint32_t percent = l->cache->options.refresh_percent;
        uint32_t left = entry_expiry(l->entry) - l->now;
        uint32_t life = life_decode(entry_life_code(l->entry));
        if ((uint64_t)left * 100 > (uint64_t)life * percent || l->popularity == 0)
                return false;
        _Atomic uint64_t *place = cache_refreshing(l->cache, l->hash);
        uint64_t held = atomic_load_explicit(place, memory_order_relaxed);
        if (held != 0 && (uint32_t)held + CACHE_REFRESH_PATIENCE > l->now)
                return false;
        uint64_t mine = (l->hash & 0xffffffff00000000) | l->now;
        return atomic_compare_exchange_strong_explicit(place, &held, mine, memory_order_relaxed,
                                                       memory_order_relaxed);
}

static void make_token(const struct lookup *l, struct sardine_token *out)
{
        struct token token = {
            .generation = atomic_load_explicit(&l->cache->generation, memory_order_acquire),
            .dnssec_ok = l->wire.dnssec_ok,
            .ecs = l->wire.ecs,
        };
        token.key.len = l->key.len;
        memcpy(token.key.bytes, l->key.bytes, l->key.len);
        token_write(out, &token);
}

static int render(struct lookup *l, struct sardine_answer *a, const uint8_t *entry, uint8_t scope, bool stale)
{
        const struct sardine_options *o = &l->cache->options;
        struct wire_ecs echo;
        uint16_t limit = l->wire.udp_size < o->udp_payload_size ? l->wire.udp_size : o->udp_payload_size;
        struct render_params params = {
            .query = &l->wire,
            .now = l->now,
            .stale_ttl = o->stale_ttl,
            .limit = is_stream(l->query) ? DNS_MAX_MESSAGE : limit,
            .udp_payload_size = o->udp_payload_size,
            .add_ede = -1,
        };
        if (l->wire.ecs.family != ECS_NONE) {
                echo = l->wire.ecs;
                echo.scope = scope;
                params.ecs = &echo;
        }
        if (stale) {
                struct entry_view view;
                entry_view_init(&view, entry);
                params.add_ede = view.rcode == DNS_NXDOMAIN ? EDE_STALE_NXDOMAIN : EDE_STALE;
        }
        struct render_result result;
        bool fits = entry_render(entry, &params, a->buf, a->cap, &result);
        a->len = result.len;
        a->rcode = result.rcode;
        uint32_t expiry = entry_expiry(entry);
        a->ttl = expiry > l->now ? expiry - l->now : 0;
        a->age = expiry > l->now ? 0 : l->now - expiry;
        return fits ? 0 : -EMSGSIZE;
}

static int answer(struct lookup *l, struct sardine_answer *a)
{
        const struct sardine_options *o = &l->cache->options;
        uint32_t flags = l->query->flags;
        find(l);
        int outcome = SARDINE_MISS;
        enum counter counter = flags & SARDINE_CACHE_ONLY ? COUNT_CACHE_ONLY_MISS : COUNT_MISS;
        if (l->entry) {
                int err = render(l, a, l->entry, l->scope, false);
                outcome = err ? err : SARDINE_HIT;
                counter = COUNT_HIT;
                if (!err && o->refresh_percent && a->token &&
                    !(flags & (SARDINE_CACHE_ONLY | SARDINE_PEEK)) && wins_refresh(l)) {
                        outcome = SARDINE_REFRESH;
                        counter = COUNT_REFRESH;
                }
        } else if (l->expired && l->now - entry_expiry(l->expired) < o->stale_window) {
                if (flags & SARDINE_ALLOW_STALE) {
                        int err = render(l, a, l->expired, l->expired_scope, true);
                        outcome = err ? err : SARDINE_STALE;
                        counter = COUNT_STALE;
                } else {
                        a->stale_available = 1;
                }
        }
        if (a->token &&
            (outcome == SARDINE_REFRESH || (outcome == SARDINE_MISS && !(flags & SARDINE_CACHE_ONLY))))
                make_token(l, a->token);
        if (!(flags & SARDINE_PEEK))
                counters_add(&l->cache->counters, counter);
        return outcome;
}

/* Parse the query and make the key: 0, or the reason why not. */
static unsigned prepare(struct lookup *l)
{
        if (l->query->flags & SARDINE_SKIP)
                return SARDINE_BYPASS_HOST;
        unsigned reason = wire_query_parse(l->query->packet, l->query->len, &l->wire);
        if (!reason)
                reason = cache_key(l->cache, &l->wire, l->query->tag, l->query->tag_len, &l->key);
        return reason;
}

static int query_check(const struct sardine_cache *cache, const struct sardine_query *q)
{
        if (!cache)
                return -EINVAL;
        int err = struct_check(q, sizeof *q);
        return err ? err : !q->packet || (q->tag_len && !q->tag) ? -EINVAL : 0;
}

int sardine_lookup(sardine_cache *cache, const struct sardine_query *query, struct sardine_answer *a)
{
        int err = query_check(cache, query);
        if (!err)
                err = struct_check(a, sizeof *a);
        if (!err && !a->buf)
                err = -EINVAL;
        if (err)
                return err;
        struct lookup l;
        l.cache = cache;
        l.query = query;
        l.touch = !(query->flags & SARDINE_PEEK);
        l.entry = l.expired = NULL;
        a->len = a->reason = a->rcode = a->ttl = a->age = a->stale_available = 0;
        if (a->token)
                a->token->len = 0;
        a->reason = prepare(&l);
        if (a->reason) {
                if (l.touch) {
                        counters_add(&cache->counters, COUNT_BYPASS);
                        counters_add(&cache->counters, COUNT_REASON + a->reason);
                }
                return SARDINE_BYPASS;
        }
        l.base_hash = cache_hash(cache, &l.key);
        l.now = cache_now(cache);
        store_enter(cache->store);
        int outcome = answer(&l, a);
        store_leave(cache->store);
        return outcome;
}

int sardine_token_init(sardine_cache *cache, const struct sardine_query *query, struct sardine_token *token)
{
        int err = query_check(cache, query);
        if (err || !token)
                return err ? err : -EINVAL;
        struct lookup l = {.cache = cache, .query = query};
        token->len = 0;
        unsigned reason = prepare(&l);
        if (reason)
                return (int)reason;
        make_token(&l, token);
        return 0;
}
