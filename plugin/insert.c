/* SPDX-License-Identifier: MIT
 * From a response to an entry: what is kept, and what may take the place of what (B40, B41, B45, B70, B71).
 * ENTRY_LAYOUT: flags of the header. */
#include "cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "entry/encode.h"
#include "entry/header.h"
#include "entry/view.h"
#include "lifetime.h"
#include "networks.h"
#include "token.h"
#include "verdict.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/name.h"
#include "wire/response.h"

enum {
        /* Room on the stack for the common message; larger ones use the heap. */
        SMALL_RRS = 32,
        SMALL_ENTRY = 2048,
        /* The entry of a message beyond this does not fit there: not to be tried, for it may cost much (B64).
         */
        SMALL_MESSAGE = 8 * SMALL_ENTRY,
};

struct insert {
        struct sardine_cache *cache;
        struct token token;
        struct wire_response response;
        struct encode_params params;
        struct network network; /* that the answer is for, if `scoped` */
        bool scoped;
        enum lifetime_kind kind;
        uint32_t now;
        uint64_t hash;                 /* of the token's key */
        struct answer_verdict verdict; /* params point into it */
        uint8_t *entry;                /* encoded: `small` or `large` */
        uint8_t *large;
        _Alignas(4) uint8_t small[SMALL_ENTRY];
};

/* Is it the answer to the token's question (RFC 5452 s9.1)? */
static unsigned matches_question(const struct insert *in)
{
        const struct wire_response *r = &in->response;
        size_t name_len;
        const uint8_t *name = entry_key_name(&in->token.key, &name_len);
        if (!r->qname) {
                /* A bare header can only say that it failed (B29). */
                return r->count == 0 && r->rcode != DNS_NOERROR && r->rcode != DNS_NXDOMAIN
                           ? 0
                           : SARDINE_REFUSED_MISMATCH;
        }
        bool same = r->qname_len == name_len && wire_name_equal(r->qname, name, name_len) &&
                    r->qtype == get_be16(in->token.key.bytes + KEY_AT_TYPE) && r->qclass == DNS_IN;
        return same ? 0 : SARDINE_REFUSED_MISMATCH;
}

/* Is it the network that was asked for, or what the policy lets be told of it? */
static bool same_network(const struct wire_ecs *asked, const struct wire_ecs *got, uint8_t most)
{
        if (asked->family != got->family || got->source > asked->source ||
            (got->source < asked->source && got->source < most))
                return false;
        struct wire_ecs masked = *asked;
        wire_ecs_mask(masked.addr, got->source);
        return memcmp(masked.addr, got->addr, sizeof got->addr) == 0;
}

/* For which network is it (RFC 7871 s7.3)? */
static unsigned choose_network(struct insert *in)
{
        const struct wire_ecs *asked = &in->token.ecs, *got = &in->response.ecs;
        in->scoped = false;
        if (got->family == ECS_NONE)
                return 0;
        uint8_t most = got->family == ECS_IPV4 ? in->token.limits.ipv4 : in->token.limits.ipv6;
        if (asked->family != ECS_NONE && !same_network(asked, got, most))
                return SARDINE_REFUSED_ECS;
        /* A scope longer than what was told: for a client that told no more than this it is right. For
         * another one of the same network only if nobody is ever told more: when the proxy, not the client,
         * chose; or when the policy wants no longer prefixes, an operator's word that the difference does not
         * matter. */
        in->network.exact = asked->family != ECS_NONE && got->scope > got->source && got->source < most;
        uint8_t prefix = got->scope < got->source ? got->scope : got->source;
        if (prefix > most)
                prefix = most;
        if (prefix == 0)
                return 0;
        in->scoped = true;
        in->network.code = network_code(got->family, prefix);
        memcpy(in->network.addr, got->addr, sizeof in->network.addr);
        wire_ecs_mask(in->network.addr, prefix);
        return 0;
}

static unsigned assess(struct insert *in, uint32_t failure_ttl)
{
        const struct sardine_options *o = &in->cache->options;
        const struct wire_response *r = &in->response;
        if (r->flags2 & DNS_TC) {
                if (r->count != 0 || o->truncated_ttl == 0 || r->rcode != DNS_NOERROR)
                        return SARDINE_REFUSED_TRUNCATED;
                in->params.truncated = true;
                in->params.life = o->truncated_ttl < o->max_ttl ? o->truncated_ttl : o->max_ttl;
                in->kind = LIFETIME_FAILURE; /* like a failure, it must not hide anything better */
                return 0;
        }
        const struct lifetime_limits limits = {
            .max_ttl = o->max_ttl,
            .min_ttl = o->min_ttl,
            .max_negative_ttl = o->max_negative_ttl,
            .failure_ttl = failure_ttl,
        };
        unsigned reason = lifetime_assess(&in->response, &limits, &in->params.life, &in->kind);
        if (!reason && o->cap_by_signature) {
                uint32_t left = lifetime_of_signatures(&in->response, (uint32_t)time(NULL));
                if (left < in->params.life)
                        in->params.life = left;
                if (left == 0 || in->params.life < o->min_ttl)
                        return SARDINE_REFUSED_TTL_SHORT;
        }
        return reason;
}

/* Encode into the small buffer, or the large one. 0, or why not. */
static unsigned encode(struct insert *in)
{
        in->entry = in->small;
        if (in->response.len <= SMALL_MESSAGE &&
            entry_encode(&in->token.key, &in->response, &in->params, in->small, sizeof in->small))
                return 0;
        if (!in->large && !(in->large = aligned_alloc(ENTRY_ALIGN, ENTRY_MAX)))
                return SARDINE_REFUSED_NO_MEMORY;
        in->entry = in->large;
        return entry_encode(&in->token.key, &in->response, &in->params, in->large, ENTRY_MAX)
                   ? 0
                   : SARDINE_REFUSED_TOO_LARGE;
}

/* May the new answer take the place of `present`? Newer wins, whatever the TTLs (B71), but for two cases. */
static unsigned may_replace(const void *ctx, const uint8_t *present, const struct entry_life *life)
{
        const struct insert *in = ctx;
        struct entry_view view;
        entry_view_init(&view, present);
        if (view.no_answer || entry_view_is_failure(&view))
                return 0;
        if (in->kind == LIFETIME_FAILURE &&
            (uint64_t)life->expiry + in->cache->options.stale_window > in->now)
                return SARDINE_REFUSED_FAILURE;
        if (life->expiry > in->now && (view.flags & ENTRY_DO) && !in->params.dnssec_ok)
                return SARDINE_REFUSED_POORER;
        return 0;
}

static void read_scopes(const struct entry_view *present, struct entry_scope scopes[SCOPES_MAX])
{
        for (uint8_t i = 0; i < present->scopes_count; i++) {
                const uint8_t *item = present->scopes + SCOPE_ITEM * i;
                scopes[i] = (struct entry_scope){item[0], get_be16(item + 1)};
        }
}

/* Keep the list of pages that the present entry has: encode again, with it. */
static unsigned encode_with_scopes(struct insert *in, const struct entry_view *present)
{
        struct entry_scope scopes[SCOPES_MAX];
        read_scopes(present, scopes);
        in->params.scopes = scopes;
        in->params.scopes_count = present->scopes_count;
        return encode(in);
}

/* Put, or move the expiry of the same answer. Under the store's lock. */
static int put(struct insert *in, const struct store_place *place, const uint8_t *present)
{
        struct store *store = in->cache->store;
        if (present && entry_same_answer(present, in->entry)) {
                store_refresh_locked(store, in->hash, present, entry_expiry(in->entry),
                                     entry_life_code(in->entry));
                return SARDINE_REFRESHED;
        }
        int put = store_put_at_locked(store, place, entry_key_match, &in->token.key, in->entry, in->now);
        if (put == -E2BIG)
                return -SARDINE_REFUSED_TOO_LARGE;
        if (put < 0)
                return -SARDINE_REFUSED_NO_MEMORY;
        return present ? SARDINE_REPLACED : SARDINE_STORED;
}

/* May a failure not hide it (B41)? */
static bool is_usable(const void *ctx, const uint8_t *answer, const struct entry_life *life)
{
        return may_replace(ctx, answer, life) != 0;
}

/* Would a failure for this network hide what is good for a larger one, or for everybody? */
static bool hides_usable(const struct insert *in)
{
        const uint8_t *base = store_find_locked(in->cache->store, in->hash, entry_key_match, &in->token.key);
        if (!base)
                return false;
        const struct entry_life life = entry_life(base);
        return is_usable(in, base, &life) ||
               networks_covered(in->cache, &in->token.key, &in->network, is_usable, in);
}

/* An outcome, or minus the reason for a refusal. */
static int insert_locked(struct insert *in)
{
        struct store *store = in->cache->store;
        if (in->token.generation != atomic_load_explicit(&in->cache->generation, memory_order_relaxed))
                return -SARDINE_REFUSED_PURGED;
        if (in->scoped && in->kind == LIFETIME_FAILURE && hides_usable(in))
                return -SARDINE_REFUSED_FAILURE;
        if (in->scoped)
                return networks_put(in->cache, &in->token.key, &in->network, in->entry, in->now, may_replace,
                                    in);
        struct store_place place;
        const uint8_t *present = store_seek_locked(store, in->hash, entry_key_match, &in->token.key, &place);
        if (present) {
                const struct entry_life life = entry_life(present);
                unsigned reason = may_replace(in, present, &life);
                struct entry_view view;
                entry_view_init(&view, present);
                if (!reason && view.scopes)
                        reason = encode_with_scopes(in, &view);
                if (reason)
                        return -(int)reason;
        }
        return put(in, &place, present);
}

/* What a policy may not pass over. */
static uint32_t within_options(const struct insert *in, uint32_t life)
{
        const struct sardine_options *o = &in->cache->options;
        if (life > o->max_ttl)
                life = o->max_ttl;
        if (in->kind == LIFETIME_FAILURE && life > LIFETIME_FAILURE_CAP)
                life = LIFETIME_FAILURE_CAP;
        uint32_t left =
            o->cap_by_signature ? lifetime_of_signatures(&in->response, (uint32_t)time(NULL)) : life;
        return life < left ? life : left;
}

/* The policy's word on an answer that could be kept. */
static unsigned ask_policy(struct insert *in)
{
        if (!policy_of(in->cache))
                return 0;
        store_enter(in->cache->store);
        const struct policy *policy = policy_of(in->cache);
        uint32_t life = in->params.life;
        bool keep = !policy || verdict_answer(policy, &in->token, &in->response,
                                              in->kind == LIFETIME_NEGATIVE, &life, &in->verdict);
        store_leave(in->cache->store);
        if (!policy)
                return 0;
        if (!keep)
                return SARDINE_REFUSED_POLICY;
        life = within_options(in, life);
        /* To live longer than it came for, it has to show so. */
        for (uint32_t i = 0; life > in->params.life && i < in->response.count; i++)
                if (in->response.rrs[i].ttl < life)
                        in->response.rrs[i].ttl = life;
        in->params.life = life;
        in->params.class = in->verdict.class;
        in->params.group = (const uint8_t *)in->verdict.group;
        in->params.group_len = in->verdict.group_len;
        return 0;
}

/* Take the answer for everybody away, and leave the list of pages for as long as any of them may live. false:
 * the present entry is still there. */
static bool leave_list(struct insert *in, const struct entry_view *present, uint32_t now)
{
        struct entry_scope scopes[SCOPES_MAX];
        read_scopes(present, scopes);
        const struct encode_params params = {
            .expiry = now + in->cache->options.max_ttl,
            .life = in->cache->options.max_ttl,
            .scopes = scopes,
            .scopes_count = present->scopes_count,
        };
        const struct entry_key *key = &in->token.key;
        return entry_encode_scopes(key, &params, in->small, sizeof in->small) &&
               store_put_locked(in->cache->store, in->hash, entry_key_match, key, in->small, now) >= 0;
}

/* It is not kept, and yet it is the newest truth: what has expired does not stand in any more (B40). */
static void displace_stale(struct insert *in)
{
        struct store *store = in->cache->store;
        const struct entry_key *key = &in->token.key;
        uint32_t now = cache_now(in->cache);
        store_lock(store);
        if (in->token.generation != atomic_load_explicit(&in->cache->generation, memory_order_relaxed)) {
                store_unlock(store);
                return;
        }
        const uint8_t *present = store_find_locked(store, in->hash, entry_key_match, key);
        if (in->scoped) {
                networks_outdate(in->cache, key, &in->network, now);
        } else if (present && entry_expiry(present) <= now) {
                struct entry_view view;
                entry_view_init(&view, present);
                if (!view.no_answer && !(view.scopes && leave_list(in, &view, now)))
                        store_remove_locked(store, in->hash, entry_key_match, key);
        }
        store_unlock(store);
}

static unsigned parse(struct insert *in, const uint8_t *packet, size_t len, struct wire_rr *small,
                      struct wire_rr **heap)
{
        size_t count = len >= DNS_HEADER
                           ? (size_t)get_be16(packet + 6) + get_be16(packet + 8) + get_be16(packet + 10)
                           : 0;
        if (count <= SMALL_RRS)
                return wire_response_parse(packet, len, small, SMALL_RRS, &in->response);
        if (count > WIRE_RRS_MAX)
                return SARDINE_REFUSED_MALFORMED;
        *heap = malloc(count * sizeof **heap);
        if (!*heap)
                return SARDINE_REFUSED_NO_MEMORY;
        return wire_response_parse(packet, len, *heap, count, &in->response);
}

/* An outcome, or minus the reason for a refusal. */
static int insert(struct insert *in, const uint8_t *packet, size_t len, uint32_t failure_ttl,
                  struct wire_rr *small, struct wire_rr **heap)
{
        unsigned reason = len > in->cache->options.max_entry_size ? SARDINE_REFUSED_TOO_LARGE : 0;
        if (!reason)
                reason = parse(in, packet, len, small, heap);
        if (!reason)
                reason = matches_question(in);
        if (!reason)
                reason = assess(in, failure_ttl);
        if ((reason == SARDINE_REFUSED_TTL_ZERO || reason == SARDINE_REFUSED_TTL_SHORT ||
             reason == SARDINE_REFUSED_NO_SOA) &&
            in->cache->options.stale_window > 0 && in->response.rcode != DNS_SERVFAIL &&
            in->response.rcode != DNS_REFUSED && !choose_network(in))
                displace_stale(in);
        if (!reason)
                reason = choose_network(in);
        if (!reason)
                reason = ask_policy(in);
        if (!reason) {
                in->now = cache_now(in->cache);
                in->params.expiry = in->now + in->params.life;
                in->params.dnssec_ok = in->token.dnssec_ok;
                in->params.ageless = in->cache->options.dont_age;
                reason = encode(in);
        }
        if (reason)
                return -(int)reason;
        store_lock(in->cache->store);
        int outcome = insert_locked(in);
        store_unlock(in->cache->store);
        if (outcome >= 0) {
                uint64_t mark = in->hash;
                if (in->scoped)
                        mark = networks_mark(in->cache, mark, &in->network);
                marks_clear(&in->cache->refreshing, mark);
                marks_clear(&in->cache->failing, mark);
        }
        return outcome;
}

int sardine_insert(sardine_cache *cache, const struct sardine_token *token, const uint8_t *response,
                   size_t len, const struct sardine_insert_info *info, struct sardine_insert_result *result)
{
        if (!cache || !token || !response)
                return -EINVAL;
        struct sardine_insert_info known = {.sz = 0};
        int err = info ? abi_check(info, ABI_INFO_LEAST, sizeof known) : 0;
        if (!err && result)
                err = abi_check(result, ABI_RESULT_LEAST, sizeof *result);
        if (err)
                return err;
        if (info)
                abi_take(&known, info, sizeof known);
        struct insert in;
        if (!token_read(token, &in.token))
                return SARDINE_ERR_TOKEN;
        in.cache = cache;
        in.hash = cache_hash(cache, &in.token.key);
        store_prefetch_place(cache->store, in.hash);
        in.large = NULL;
        in.params = (struct encode_params){0};
        uint32_t failure_ttl = cache->options.failure_ttl;
        if (known.failure_ttl_set)
                failure_ttl =
                    known.failure_ttl < LIFETIME_FAILURE_CAP ? known.failure_ttl : LIFETIME_FAILURE_CAP;
        struct wire_rr small[SMALL_RRS], *heap = NULL;
        int outcome = insert(&in, response, len, failure_ttl, small, &heap);
        free(heap);
        free(in.large);
        cache_wake(cache, token, &in.token.key);
        unsigned reason = outcome < 0 ? (unsigned)-outcome : SARDINE_REASON_NONE;
        if (reason) {
                outcome = SARDINE_REFUSED;
                counters_add(&cache->counters, COUNT_REASON + reason);
        }
        counters_add(&cache->counters, COUNT_STORED + (unsigned)outcome);
        if (result) {
                const struct sardine_insert_result full = {.reason = reason,
                                                           .life = reason ? 0 : in.params.life};
                abi_give(result, &full, sizeof full);
        }
        return outcome;
}
