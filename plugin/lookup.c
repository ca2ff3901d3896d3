/* SPDX-License-Identifier: MIT
 * From a query to a reply, or to a token. ENTRY_LAYOUT: flags of the header. */
#include "cache.h"

#include <errno.h>
#include <string.h>

#include "entry/header.h"
#include "entry/render.h"
#include "entry/view.h"
#include "networks.h"
#include "token.h"
#include "verdict.h"
#include "wire/bytes.h"
#include "wire/cap.h"
#include "wire/dns.h"
#include "wire/name.h"

enum {
        /* Somebody who was asked to refresh and did not come back is given up after so many seconds. */
        REFRESH_PATIENCE = 10,
        /* Lookups of a batch that are under way side by side: about as many cache misses as a core has room
           for. */
        BATCH = 16,
        PREFETCH_MOST = 512, /* bytes of an entry */
        CACHE_LINE = 64,
        /* Padding of replies to clients that pad their queries on encrypted transports (RFC 8467 s4.1). */
        PAD_BLOCK = 468,
        EDE_STALE = 3,           /* RFC 8914 s4.4 */
        EDE_STALE_NXDOMAIN = 19, /* RFC 8914 s4.20 */
        QUERY_FLAGS =
            SARDINE_SKIP | SARDINE_CACHE_ONLY | SARDINE_ALLOW_STALE | SARDINE_COALESCE | SARDINE_PEEK,
};

/* An answer for this client. */
struct candidate {
        const uint8_t *entry; /* NULL: none */
        struct entry_life life;
        uint64_t mark; /* what it is known by in marks */
        uint32_t popularity;
        uint8_t scope; /* of the network it is for; 0: everybody */
};

/* One lookup's state, from the query to the outcome. */
struct lookup {
        struct sardine_cache *cache;
        const struct sardine_query *query;
        struct wire_query wire;
        struct entry_key key;
        uint64_t base_hash; /* of the key */
        uint32_t now;
        bool touch;
        const struct policy *policy;  /* NULL: none */
        struct query_verdict verdict; /* only with a policy */

        struct candidate fresh;
        /* What would have answered had it not expired, and may stand in (RFC 8767). */
        struct candidate expired;
        /* The failure that is to be told where nothing better is found (B41). */
        struct candidate failure;
        uint32_t stale_ttl; /* by the policy; 0: as the options say */
};

static bool is_stream(const struct sardine_query *query)
{
        return query->transport != SARDINE_UDP;
}

/* Can this entry answer this client at all, its age apart? `ext`: its entry_ext(). */
static bool serves(const struct lookup *l, const uint8_t *entry, uint8_t ext)
{
        if (l->wire.dnssec_ok && !(entry[ENTRY_AT_FLAGS] & ENTRY_DO))
                return false; /* B45: no signatures were asked for when this was fetched */
        if ((ext & EXT_TRUNCATED) && is_stream(l->query))
                return false; /* B15: it came for the whole */
        if (ext & (EXT_SCOPES | EXT_PAGE)) {
                struct entry_view view;
                entry_view_init(&view, entry);
                return !view.no_answer;
        }
        return true;
}

/* May it answer although it has expired? Failures never do, negative answers if the operator lets them. */
static __attribute__((noinline)) bool stands_in(const struct lookup *l, const struct candidate *c)
{
        const struct sardine_options *o = &l->cache->options;
        if (l->now - c->life.expiry >= o->stale_window)
                return false;
        struct entry_view view;
        entry_view_init(&view, c->entry);
        if (entry_view_is_failure(&view))
                return false;
        return !o->stale_positive || (view.rcode == DNS_NOERROR && entry_view_has_answer_records(&view));
}

static bool is_failure(const uint8_t *entry, uint8_t ext)
{
        if (!(ext & (EXT_RCODE | EXT_TRUNCATED)))
                return false;
        struct entry_view view;
        entry_view_init(&view, entry);
        return entry_view_is_failure(&view);
}

/* Take it if it is fresh, remember it if it may stand in. `ext`: its entry_ext(). A failure for a network
 * hides no answer for a larger one, and one for everybody no stale answer for a network: those may have come,
 * or gone stale, later. */
static bool consider(struct lookup *l, const struct candidate *c, uint8_t ext)
{
        if (!serves(l, c->entry, ext))
                return false;
        if (c->life.expiry > l->now) {
                if (is_failure(c->entry, ext)) {
                        if (!l->failure.entry)
                                l->failure = *c;
                        return false;
                }
                l->fresh = *c;
                return true;
        }
        if (!l->expired.entry && stands_in(l, c))
                l->expired = *c;
        return false;
}

/* The network that the client is in: its ECS option if it sent one, else its address, which is what a proxy
 * in front of the upstream would have told it. false: none. A source prefix of 0 asks for no tailoring. */
static bool own_network(const struct lookup *l, struct wire_ecs *network)
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

static void limit_network(struct wire_ecs *network, struct policy_ecs limits)
{
        uint8_t most = network->family == ECS_IPV4 ? limits.ipv4 : limits.ipv6;
        if (network->source <= most)
                return;
        network->source = most;
        wire_ecs_mask(network->addr, most);
}

/* Before verdict.limits is looked at. */
static void want_limits(struct lookup *l)
{
        verdict_limits(l->policy, l->query, &l->key, &l->verdict);
}

/* As the policy wants it. */
static bool client_network(struct lookup *l, struct wire_ecs *network)
{
        if (!l->policy)
                return own_network(l, network);
        want_limits(l);
        if (l->verdict.network_set)
                *network = l->verdict.network;
        else if (!own_network(l, network))
                return false;
        limit_network(network, l->verdict.limits);
        return network->source > 0;
}

/* Longest covering prefix first (RFC 7871 s7.3.1). */
static __attribute__((noinline)) bool find_network(struct lookup *l, const struct entry_view *base)
{
        struct wire_ecs client;
        if (!client_network(l, &client))
                return false;
        for (uint8_t i = 0; i < base->scopes_count; i++) {
                const uint8_t *scope = base->scopes + SCOPE_ITEM * i;
                uint16_t pages = get_be16(scope + 1);
                struct network network = {.code = scope[0], .exact = pages & NETWORKS_EXACT};
                uint8_t prefix = network_prefix(network.code);
                if (network_family(network.code) != client.family || prefix > client.source ||
                    (network.exact && prefix != client.source))
                        continue;
                memcpy(network.addr, client.addr, sizeof network.addr);
                wire_ecs_mask(network.addr, prefix);
                /* What is for exactly this length is not to be taken for good for all of the network. */
                struct candidate c = {.scope = prefix + network.exact};
                const uint8_t *entry =
                    networks_page(l->cache, &l->key, &network, pages, l->touch, &c.popularity);
                if (!entry)
                        continue;
                struct page_view page;
                page_view_init(&page, entry);
                int at = page_find(&page, network.addr);
                if (at < 0)
                        continue;
                c.entry = page_answer(&page, (unsigned)at);
                c.life = page_life(&page, (unsigned)at);
                c.mark = networks_mark(l->cache, l->base_hash, &network);
                if (consider(l, &c, entry_ext(c.entry)))
                        return true;
        }
        return false;
}

static const uint8_t *find_base(struct lookup *l, struct candidate *c)
{
        c->entry =
            store_find(l->cache->store, l->base_hash, entry_key_match, &l->key, l->touch, &c->popularity);
        return c->entry;
}

static void find(struct lookup *l)
{
        struct candidate c = {.mark = l->base_hash};
        const uint8_t *base = find_base(l, &c);
        uint8_t ext = base ? entry_ext(base) : 0;
        while (ext & EXT_SCOPES) {
                struct entry_view view;
                entry_view_init(&view, base);
                if (!view.scopes || find_network(l, &view))
                        break;
                /* The network may just have moved to a page that was new to us; then there is a new base. */
                const uint8_t *looked_at = base;
                base = find_base(l, &c);
                ext = base ? entry_ext(base) : 0;
                if (base == looked_at)
                        break;
        }
        if (!l->fresh.entry && base) {
                c.life = entry_life(base);
                consider(l, &c, ext);
        }
}

/* Is it this caller who should fetch the answer anew? One in the last part of a life gets a yes. */
static __attribute__((noinline)) bool wins_refresh(struct lookup *l)
{
        uint32_t percent = l->cache->options.refresh_percent;
        uint32_t left = l->fresh.life.expiry - l->now;
        uint32_t life = life_decode(l->fresh.life.code);
        if ((uint64_t)left * 100 > (uint64_t)life * percent || l->fresh.popularity == 0)
                return false;
        return marks_take(&l->cache->refreshing, l->fresh.mark, l->now, REFRESH_PATIENCE);
}

static __attribute__((noinline)) void make_token(struct lookup *l, struct sardine_token *out)
{
        struct token token = {
            .generation = atomic_load_explicit(&l->cache->generation, memory_order_acquire),
            .dnssec_ok = l->wire.dnssec_ok,
            .ecs = l->wire.ecs,
            .limits = {POLICY_NO_LIMIT, POLICY_NO_LIMIT},
        };
        if (l->policy) {
                want_limits(l);
                token.limits = l->verdict.limits;
                if (l->verdict.network_set)
                        token.ecs = l->verdict.network;
        }
        token.key.len = l->key.len;
        memcpy(token.key.bytes, l->key.bytes, l->key.len);
        token_write(out, &token);
}

/* A different number for every reply of a thread, spread over all bits; never 0. */
static uint32_t next_turn(void)
{
        static _Thread_local uint32_t turn;
        turn += 0x9e3779b9;
        return (turn ^ turn >> 15) | 1u << 31;
}

static bool is_encrypted(const struct sardine_query *query)
{
        return query->transport == SARDINE_DOT || query->transport == SARDINE_DOH ||
               query->transport == SARDINE_DOQ;
}

void cache_render_params(const struct sardine_cache *cache, const struct sardine_query *query,
                         const struct wire_query *wire, uint32_t now, struct render_params *params)
{
        const struct sardine_options *o = &cache->options;
        uint16_t limit = wire->udp_size < o->udp_payload_size ? wire->udp_size : o->udp_payload_size;
        *params = (struct render_params){
            .query = wire,
            .now = now,
            .stale_ttl = o->stale_ttl,
            .limit = is_stream(query) ? DNS_MAX_MESSAGE : limit,
            .udp_payload_size = o->udp_payload_size,
            .add_ede = -1,
            .pad_block = wire->padded && is_encrypted(query) ? PAD_BLOCK : 0,
            .rotate = o->rotate ? next_turn() : 0,
        };
}

/* The longest TTL that this client is to see. */
static uint32_t ttl_cap(const struct lookup *l)
{
        uint32_t host = l->query->max_ttl, policy = l->policy ? l->verdict.max_ttl : 0;
        return host && (!policy || host < policy) ? host : policy;
}

static int render(struct lookup *l, struct sardine_answer *a, const struct candidate *c)
{
        struct wire_ecs echo;
        struct render_params params;
        bool stale = c == &l->expired;
        cache_render_params(l->cache, l->query, &l->wire, l->now, &params);
        params.life = &c->life;
        if (l->wire.ecs.family != ECS_NONE) {
                echo = l->wire.ecs;
                echo.scope = c->scope;
                params.ecs = &echo;
        }
        if (stale) {
                struct entry_view view;
                entry_view_init(&view, c->entry);
                params.add_ede = view.rcode == DNS_NXDOMAIN ? EDE_STALE_NXDOMAIN : EDE_STALE;
                if (l->stale_ttl)
                        params.stale_ttl = l->stale_ttl;
        }
        struct render_result result;
        bool fits = entry_render(c->entry, &params, a->buf, a->cap, &result);
        uint32_t cap = ttl_cap(l);
        if (cap && fits)
                wire_cap_ttls(a->buf, result.len, cap);
        a->len = result.len;
        a->rcode = result.rcode;
        a->ttl = stale ? 0 : c->life.expiry - l->now;
        a->age = stale ? l->now - c->life.expiry : 0;
        a->dnssec_ok = c->entry[ENTRY_AT_FLAGS] & ENTRY_DO ? 1 : 0;
        return fits ? 0 : -EMSGSIZE;
}

static void token_id(const struct sardine_token *token, uint64_t hash, uint8_t *room, struct pending_id *id)
{
        *id = (struct pending_id){.bytes = room, .len = token_identity(token, room), .hash = hash};
}

void cache_wake(struct sardine_cache *cache, const struct sardine_token *token, const struct entry_key *key)
{
        if (atomic_load_explicit(&cache->pending.count, memory_order_relaxed) == 0)
                return;
        uint8_t room[sizeof token->bytes];
        struct pending_id id;
        token_id(token, cache_hash(cache, key), room, &id);
        pending_end(&cache->pending, &id);
}

/* The policy's word on what the upstream is told. */
static __attribute__((noinline)) void tell_network(struct lookup *l, struct sardine_answer *a)
{
        if (!l->policy)
                return;
        want_limits(l);
        a->ecs_ipv4 = l->verdict.limits.ipv4;
        a->ecs_ipv6 = l->verdict.limits.ipv6;
        struct wire_ecs told = l->verdict.network_set ? l->verdict.network : l->wire.ecs;
        if (told.family == ECS_NONE)
                return;
        limit_network(&told, l->verdict.limits);
        a->ecs_set = l->verdict.network_set || told.source < l->wire.ecs.source;
        a->ecs_family = told.source > 0 ? told.family : ECS_NONE;
        a->ecs_prefix = told.source;
        memcpy(a->ecs_addr, told.addr, sizeof a->ecs_addr);
}

/* A miss: does this caller ask upstream, or does it wait for another? */
static int miss(struct lookup *l, struct sardine_answer *a)
{
        tell_network(l, a);
        if (l->query->flags & SARDINE_CACHE_ONLY || !a->token)
                return SARDINE_MISS;
        make_token(l, a->token);
        if (!(l->query->flags & SARDINE_COALESCE) || l->query->flags & SARDINE_PEEK)
                return SARDINE_MISS;
        uint8_t room[sizeof a->token->bytes];
        struct pending_id id;
        token_id(a->token, l->base_hash, room, &id);
        return pending_begin(&l->cache->pending, &id) ? SARDINE_MISS : SARDINE_WAIT;
}

/* May the expired candidate answer, as far as the policy is concerned? */
static bool policy_lets(struct lookup *l, const char *why)
{
        return !l->policy ||
               verdict_stale(l->policy, l->expired.entry, &l->expired.life, l->now, why, &l->stale_ttl);
}

static int hit(struct lookup *l, struct sardine_answer *a)
{
        int err = render(l, a, &l->fresh);
        if (err || !l->cache->options.refresh_percent || !a->token ||
            l->query->flags & (SARDINE_CACHE_ONLY | SARDINE_PEEK) || !wins_refresh(l))
                return err ? err : SARDINE_HIT;
        tell_network(l, a);
        make_token(l, a->token);
        return SARDINE_REFRESH;
}

/* No fresh answer: one that stands in, a failure, or a miss. */
static __attribute__((noinline)) int answer_else(struct lookup *l, struct sardine_answer *a)
{
        if (l->expired.entry) {
                bool failing = l->failure.entry || marks_has(&l->cache->failing, l->expired.mark, l->now,
                                                             l->cache->options.stale_backoff);
                bool may = policy_lets(l, failing ? "failing" : "allowed");
                if (may && (failing || l->query->flags & SARDINE_ALLOW_STALE)) {
                        int err = render(l, a, &l->expired);
                        return err ? err : SARDINE_STALE;
                }
                a->stale_available = may;
        }
        l->fresh = l->failure;
        return l->fresh.entry ? hit(l, a) : miss(l, a);
}

static inline int answer(struct lookup *l, struct sardine_answer *a)
{
        find(l);
        return l->fresh.entry ? hit(l, a) : answer_else(l, a);
}

static enum counter counter_of(const struct lookup *l, int outcome)
{
        switch (outcome) {
        case SARDINE_MISS:
                return l->query->flags & SARDINE_CACHE_ONLY ? COUNT_CACHE_ONLY_MISS : COUNT_MISS;
        case SARDINE_STALE:
                return COUNT_STALE;
        case SARDINE_REFRESH:
                return COUNT_REFRESH;
        case SARDINE_WAIT:
                return COUNT_WAIT;
        default: /* a hit, or one that the caller had no room for */
                return l->fresh.entry ? COUNT_HIT : COUNT_STALE;
        }
}

/* In the reader's section, for the policy's sake: parse the query, make the key and its hash. 0, or the
 * reason why not. */
static unsigned prepare(struct lookup *l)
{
        const struct sardine_query *query = l->query;
        if (query->flags & SARDINE_SKIP)
                return SARDINE_BYPASS_HOST;
        unsigned reason = wire_query_parse(query->packet, query->len, &l->wire);
        if (!reason)
                reason = cache_key(l->cache, &l->wire, query->tag, query->tag_len, &l->key);
        l->policy = policy_of(l->cache);
        if (reason)
                return reason;
        if (l->policy)
                verdict_init(&l->verdict);
        unsigned keys = l->policy ? l->policy->keys : POLICY_KEYS_PLAIN;
        if (keys != POLICY_KEYS_ANY && !cache_key_splits(l->cache, query->tag_len)) {
                l->base_hash = entry_key_hash_question(&l->key, l->cache->secret, CACHE_SECRET);
                if (keys == POLICY_KEYS_CLIENT)
                        l->base_hash ^= verdict_tag(l->policy, query, &l->key);
                return 0;
        }
        if (keys != POLICY_KEYS_PLAIN)
                reason = verdict_key(l->policy, query, &l->wire, &l->key, &l->verdict);
        l->base_hash = cache_hash(l->cache, &l->key);
        return reason;
}

int cache_query_check(const struct sardine_cache *cache, const struct sardine_query *q)
{
        if (!cache)
                return -EINVAL;
        int err = struct_check(q, sizeof *q);
        if (err)
                return err;
        bool fine = q->packet && (q->tag || !q->tag_len) && !(q->flags & ~(uint32_t)QUERY_FLAGS) &&
                    q->transport <= SARDINE_DOQ &&
                    (q->client_len == 0 || ((q->client_len == 4 || q->client_len == 16) && q->client)) &&
                    (q->local_len == 0 || ((q->local_len == 4 || q->local_len == 16) && q->local));
        return fine ? 0 : -EINVAL;
}

/* Check the arguments, clear the outputs. 0 or an error. */
static int begin(struct lookup *l, sardine_cache *cache, const struct sardine_query *query,
                 struct sardine_answer *a)
{
        int err = cache_query_check(cache, query);
        if (!err)
                err = struct_check(a, sizeof *a);
        if (!err && !a->buf)
                err = -EINVAL;
        if (err)
                return err;
        l->cache = cache;
        l->query = query;
        l->touch = !(query->flags & SARDINE_PEEK);
        l->fresh.entry = l->expired.entry = l->failure.entry = NULL;
        l->stale_ttl = 0;
        a->len = a->reason = a->rcode = a->ttl = a->age = a->stale_available = a->dnssec_ok = 0;
        a->ecs_ipv4 = a->ecs_ipv6 = POLICY_NO_LIMIT;
        a->ecs_set = 0;
        return 0;
}

/* In the reader's section: make the key. 0, or SARDINE_BYPASS with a->reason. */
static int start(struct lookup *l, struct sardine_answer *a)
{
        if (a->token)
                a->token->len = 0;
        a->reason = prepare(l);
        if (a->reason)
                return SARDINE_BYPASS;
        l->now = cache_now(l->cache);
        return 0;
}

static void count(const struct lookup *l, int outcome, unsigned reason)
{
        if (!l->touch)
                return;
        counters_add(&l->cache->counters, outcome == SARDINE_BYPASS ? COUNT_BYPASS : counter_of(l, outcome));
        if (outcome == SARDINE_BYPASS)
                counters_add(&l->cache->counters, COUNT_REASON + reason);
}

/* All that a hit goes through in one piece: calls, and what they save and pass, were a quarter of its time.
 */
__attribute__((flatten)) int sardine_lookup(sardine_cache *cache, const struct sardine_query *query,
                                            struct sardine_answer *a)
{
        if (abi_short(query, a))
                return abi_lookup(sardine_lookup, cache, query, a);
        struct lookup l;
        int outcome = begin(&l, cache, query, a);
        if (outcome < 0)
                return outcome;
        store_enter(cache->store);
        outcome = start(&l, a);
        if (outcome == 0)
                outcome = answer(&l, a);
        store_leave(cache->store);
        count(&l, outcome, a->reason);
        return outcome;
}

/* The caller's arrays: elements are as large as the first ones say. */
struct batch {
        const struct sardine_query *queries;
        struct sardine_answer *answers;
        size_t query_size, answer_size;
};

static const struct sardine_query *batch_query(const struct batch *b, size_t i)
{
        return (const void *)((uintptr_t)b->queries + i * b->query_size);
}

static struct sardine_answer *batch_answer(const struct batch *b, size_t i)
{
        return (void *)((uintptr_t)b->answers + i * b->answer_size);
}

/* Does this element say so too? Else it is not one. */
static bool batch_has(const struct batch *b, size_t i)
{
        return batch_query(b, i)->sz == b->query_size && batch_answer(b, i)->sz == b->answer_size;
}

/* The lines of an entry after the first two, of which the first has just been asked for. */
static void prefetch_rest(const uint8_t *entry)
{
        uint32_t size = entry_size(entry);
        if (size > PREFETCH_MOST)
                size = PREFETCH_MOST;
        for (uint32_t at = 2 * CACHE_LINE; at < size; at += CACHE_LINE)
                __builtin_prefetch(entry + at);
}

__attribute__((flatten)) static void lookup_group(sardine_cache *cache, const struct batch *b, size_t first,
                                                  size_t n, int *outcomes)
{
        struct lookup l[BATCH];
        const uint8_t *entry[BATCH];
        store_enter(cache->store);
        for (size_t i = 0; i < n; i++) {
                outcomes[i] = batch_has(b, first + i)
                                  ? begin(&l[i], cache, batch_query(b, first + i), batch_answer(b, first + i))
                                  : -EINVAL;
                if (outcomes[i] == 0)
                        outcomes[i] = start(&l[i], batch_answer(b, first + i));
                if (outcomes[i] == 0)
                        store_prefetch_bucket(cache->store, l[i].base_hash);
        }
        for (size_t i = 0; i < n; i++)
                entry[i] = outcomes[i] == 0 ? store_prefetch_entry(cache->store, l[i].base_hash) : NULL;
        for (size_t i = 0; i < n; i++)
                if (entry[i])
                        prefetch_rest(entry[i]);
        for (size_t i = 0; i < n; i++) {
                struct sardine_answer *a = batch_answer(b, first + i);
                bool bad = outcomes[i] < 0;
                if (outcomes[i] == 0)
                        outcomes[i] = answer(&l[i], a);
                if (!bad)
                        count(&l[i], outcomes[i], a->reason);
        }
        store_leave(cache->store);
}

int sardine_lookup_batch(sardine_cache *cache, size_t n, const struct sardine_query *queries,
                         struct sardine_answer *answers, int *outcomes)
{
        if (!cache ||
            (n && (!queries || !answers || !outcomes || !abi_is_stride(queries->sz, ABI_QUERY_LEAST) ||
                   !abi_is_stride(answers->sz, ABI_ANSWER_LEAST))))
                return -EINVAL;
        if (n == 0)
                return 0;
        const struct batch b = {queries, answers, queries->sz, answers->sz};
        if (abi_short(queries, answers)) {
                for (size_t i = 0; i < n; i++)
                        outcomes[i] = batch_has(&b, i)
                                          ? sardine_lookup(cache, batch_query(&b, i), batch_answer(&b, i))
                                          : -EINVAL;
                return 0;
        }
        for (size_t done = 0; done < n; done += BATCH)
                lookup_group(cache, &b, done, n - done < BATCH ? n - done : BATCH, outcomes + done);
        return 0;
}

/* What came instead of an answer, for the policy. */
static const char *failure_name(uint32_t rcode)
{
        switch (rcode) {
        case DNS_NOERROR:
                return "timeout";
        case DNS_SERVFAIL:
                return "servfail";
        case DNS_REFUSED:
                return "refused";
        default:
                return "failure";
        }
}

static bool asks_for(const struct wire_query *wire, const struct entry_key *key)
{
        size_t len;
        const uint8_t *name = entry_key_name(key, &len);
        return len == wire->qname_len && wire_name_equal(name, wire->qname, len) &&
               get_be16(key->bytes + KEY_AT_TYPE) == wire->qtype &&
               key->bytes[KEY_AT_FLAGS] == ((wire->rd ? ENTRY_RD : 0) | (wire->cd ? ENTRY_CD : 0));
}

/* As start(), for a question that was asked upstream: with the key of its token if there is one, for what the
 * policy saw then may not be there to be seen any more. */
static int start_again(struct lookup *l, struct sardine_answer *a, const struct sardine_token *token)
{
        struct token read;
        bool known = token->len > 0;
        if (known && !token_read(token, &read))
                return SARDINE_ERR_TOKEN;
        l->policy = policy_of(l->cache);
        if (!known)
                return start(l, a);
        a->reason = wire_query_parse(l->query->packet, l->query->len, &l->wire);
        if (a->reason)
                return SARDINE_BYPASS;
        if (!asks_for(&l->wire, &read.key))
                return SARDINE_ERR_TOKEN;
        l->key = read.key;
        l->verdict = (struct query_verdict){.limits = read.limits, .limited = true};
        if (read.ecs.family != ECS_NONE) {
                l->verdict.network_set = true;
                l->verdict.network = read.ecs;
        }
        l->base_hash = cache_hash(l->cache, &l->key);
        l->now = cache_now(l->cache);
        return 0;
}

int sardine_failed(sardine_cache *cache, const struct sardine_query *query, struct sardine_answer *a)
{
        if (abi_short(query, a))
                return abi_lookup(sardine_failed, cache, query, a);
        struct lookup l;
        int outcome = begin(&l, cache, query, a);
        if (outcome != 0)
                return outcome;
        l.touch = false;
        bool peek = query->flags & SARDINE_PEEK;
        struct sardine_token token = {.len = 0};
        if (a->token)
                token = *a->token;
        store_enter(cache->store);
        outcome = start_again(&l, a, &token);
        if (outcome != 0) {
                store_leave(cache->store);
                return outcome;
        }
        find(&l);
        outcome = SARDINE_MISS;
        bool stale = !l.fresh.entry && l.expired.entry && policy_lets(&l, failure_name(query->failure));
        if (!l.fresh.entry && !stale)
                l.fresh = l.failure;
        const struct candidate *c = stale ? &l.expired : &l.fresh;
        if (c->entry) {
                int err = render(&l, a, c);
                outcome = err ? err : stale ? SARDINE_STALE : SARDINE_HIT;
                if (stale && !peek)
                        marks_set(&cache->failing, c->mark, l.now);
                if (!peek)
                        counters_add(&cache->counters, COUNT_RESCUED);
        }
        if (outcome == SARDINE_MISS)
                tell_network(&l, a);
        if (!peek && token.len == 0)
                make_token(&l, &token);
        store_leave(cache->store);
        if (peek)
                return outcome;
        cache_wake(cache, &token, &l.key);
        return outcome;
}

int sardine_wait(sardine_cache *cache, const struct sardine_token *token, uint32_t timeout_ms)
{
        struct token read;
        if (!cache || !token)
                return -EINVAL;
        if (!token_read(token, &read))
                return SARDINE_ERR_TOKEN;
        uint8_t room[sizeof token->bytes];
        struct pending_id id;
        token_id(token, cache_hash(cache, &read.key), room, &id);
        switch (pending_wait(&cache->pending, &id, timeout_ms)) {
        case PENDING_ENDED:
                return SARDINE_HIT;
        case PENDING_LEAD:
                return SARDINE_MISS;
        default:
                return SARDINE_WAIT;
        }
}

int sardine_token_init(sardine_cache *cache, const struct sardine_query *query, struct sardine_token *token)
{
        struct sardine_query full = {.sz = 0};
        int err = query && query->sz < sizeof full ? abi_check(query, ABI_QUERY_LEAST, sizeof full) : 0;
        if (!err && query && query->sz < sizeof full) {
                abi_take(&full, query, sizeof full);
                query = &full;
        }
        if (!err)
                err = cache_query_check(cache, query);
        if (err || !token)
                return err ? err : -EINVAL;
        struct lookup l = {.cache = cache, .query = query};
        token->len = 0;
        store_enter(cache->store);
        unsigned reason = prepare(&l);
        if (!reason)
                make_token(&l, token);
        store_leave(cache->store);
        return (int)reason;
}
