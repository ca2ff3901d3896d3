/* SPDX-License-Identifier: MIT
 * Why a query hits or misses. ENTRY_LAYOUT: flags of the header. */
#include "cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "entry/header.h"
#include "entry/view.h"
#include "token.h"
#include "wire/dns.h"

/* The question, as lookups see it: the policy has had its say in the key. */
struct question {
        struct sardine_cache *cache;
        const struct sardine_query *query;
        struct wire_query wire;
        struct entry_key key;
        uint32_t now;
};

/* The token of the query has the key that a lookup would use (B17). 0, a reason, or an error. */
static int question_init(struct question *q, struct sardine_cache *cache, const struct sardine_query *query)
{
        *q = (struct question){.cache = cache, .query = query, .now = cache_now(cache)};
        struct sardine_token token;
        struct token read;
        int reason = sardine_token_init(cache, query, &token);
        if (reason)
                return reason;
        if (!token_read(&token, &read))
                return SARDINE_ERR_TOKEN;
        q->key = read.key;
        return (int)wire_query_parse(query->packet, query->len, &q->wire);
}

/* Between store_enter() and store_leave(). */
static const uint8_t *find(const struct question *q, const struct entry_key *key, uint32_t *popularity)
{
        return store_find(q->cache->store, cache_hash(q->cache, key), entry_key_match, key, false,
                          popularity);
}

static void describe(const struct question *q, const struct entry_view *view, uint32_t popularity,
                     struct sardine_explanation *e)
{
        struct entry_life life = entry_life(view->entry);
        e->rcode = view->rcode;
        e->ttl = life.expiry > q->now ? life.expiry - q->now : 0;
        e->expired = life.expiry > q->now ? 0 : q->now - life.expiry;
        e->life = life_decode(life.code);
        e->bytes = view->size;
        e->hits = popularity;
        e->dnssec_ok = view->flags & ENTRY_DO ? 1 : 0;
        e->rd = view->flags & ENTRY_RD ? 1 : 0;
        e->cd = view->flags & ENTRY_CD ? 1 : 0;
}

/* The entry under this key. Returns its verdict for the client, or SARDINE_WHY_ABSENT. */
static enum sardine_why look_at(const struct question *q, const struct entry_key *key,
                                struct sardine_explanation *e)
{
        uint32_t popularity = 0;
        const uint8_t *entry = find(q, key, &popularity);
        if (!entry)
                return SARDINE_WHY_ABSENT;
        struct entry_view view;
        entry_view_init(&view, entry);
        if (view.no_answer)
                return SARDINE_WHY_NETWORK;
        describe(q, &view, popularity, e);
        if (e->ttl == 0)
                return SARDINE_WHY_EXPIRED;
        if (q->wire.dnssec_ok && !e->dnssec_ok)
                return SARDINE_WHY_DNSSEC;
        if (view.ext & EXT_TRUNCATED && q->query->transport != SARDINE_UDP)
                return SARDINE_WHY_TRUNCATED;
        return SARDINE_WHY_HIT;
}

/* The same question with other RD and CD bits. */
static enum sardine_why other_flags(const struct question *q, struct sardine_explanation *e)
{
        for (unsigned other = 1; other < 4; other++) {
                struct entry_key key = q->key;
                key.bytes[KEY_AT_FLAGS] ^= (uint8_t)((other & 1 ? ENTRY_RD : 0) | (other & 2 ? ENTRY_CD : 0));
                if (look_at(q, &key, e) == SARDINE_WHY_HIT)
                        return SARDINE_WHY_FLAGS;
        }
        return SARDINE_WHY_ABSENT;
}

struct elsewhere {
        const struct question *question;
        struct sardine_explanation *e;
};

static int seen_elsewhere(void *ctx, const struct sardine_entry_view *entry)
{
        struct elsewhere *elsewhere = ctx;
        const struct question *q = elsewhere->question;
        bool flags = entry->rd == q->wire.rd && entry->cd == q->wire.cd;
        if (!flags || entry->ttl == 0 || entry->ecs_family != 0)
                return 0;
        struct sardine_explanation *e = elsewhere->e;
        e->rcode = entry->rcode;
        e->ttl = entry->ttl;
        e->life = entry->life;
        e->bytes = entry->bytes;
        e->hits = entry->hits;
        e->dnssec_ok = entry->dnssec_ok;
        e->rd = entry->rd;
        e->cd = entry->cd;
        e->why = SARDINE_WHY_TAG;
        return 1;
}

/* The same question under another tag or with other splitting options: only a walk can tell. */
static void look_elsewhere(const struct question *q, struct sardine_explanation *e)
{
        const struct sardine_selector selector = {
            .sz = sizeof selector,
            .name = q->wire.qname,
            .name_len = q->wire.qname_len,
            .qtype = q->wire.qtype,
        };
        struct elsewhere elsewhere = {q, e};
        sardine_walk(q->cache, &selector, seen_elsewhere, &elsewhere);
}

/* Was it removed, if it was here? */
static void look_back(const struct question *q, struct sardine_explanation *e)
{
        struct sardine_cache *cache = q->cache;
        uint32_t when;
        store_lock(cache->store);
        e->purged = purged_find(cache->purged, &q->key, &when);
        store_unlock(cache->store);
        if (e->purged)
                e->purged_ago = q->now > when ? q->now - when : 0;
}

/* What a lookup comes to, without a trace. */
static int peek(const struct question *q, struct sardine_explanation *e)
{
        struct sardine_query query = *q->query;
        query.flags = (query.flags & SARDINE_ALLOW_STALE) | SARDINE_PEEK;
        uint8_t *reply = malloc(DNS_MAX_MESSAGE);
        if (!reply)
                return -ENOMEM;
        struct sardine_answer answer = {.sz = sizeof answer, .buf = reply, .cap = DNS_MAX_MESSAGE};
        int outcome = sardine_lookup(q->cache, &query, &answer);
        if (outcome == SARDINE_HIT || outcome == SARDINE_STALE) {
                e->reply_len = (uint32_t)answer.len;
                e->truncated = reply[2] & DNS_TC ? 1 : 0;
                e->rcode = answer.rcode;
                e->ttl = answer.ttl;
                e->expired = answer.age;
                e->dnssec_ok = answer.dnssec_ok;
        }
        e->stale_available = answer.stale_available;
        e->reason = answer.reason;
        free(reply);
        return outcome;
}

int sardine_explain(sardine_cache *cache, const struct sardine_query *query, struct sardine_explanation *e)
{
        int err = cache_query_check(cache, query);
        if (!err)
                err = struct_check(e, sizeof *e);
        if (err)
                return err;
        memset((uint8_t *)e + sizeof e->sz, 0, sizeof *e - sizeof e->sz);

        struct question q;
        int reason = question_init(&q, cache, query);
        if (reason < 0)
                return reason;
        if (reason) {
                e->reason = (uint32_t)reason;
                e->why = SARDINE_WHY_BYPASS;
                return SARDINE_BYPASS;
        }
        store_enter(cache->store);
        enum sardine_why why = look_at(&q, &q.key, e);
        store_leave(cache->store);

        int outcome = peek(&q, e);
        if (outcome < 0)
                return outcome;
        if (outcome == SARDINE_HIT) {
                e->why = SARDINE_WHY_HIT;
        } else if (outcome == SARDINE_BYPASS) { /* a policy may say another thing each time */
                e->why = SARDINE_WHY_BYPASS;
        } else if (outcome == SARDINE_STALE) { /* whatever became of the answer for everybody */
                e->why = SARDINE_WHY_EXPIRED;
        } else if (why != SARDINE_WHY_ABSENT) {
                /* It may have expired, or gone, between the two looks. And if a network's answer could stand
                 * in, there is one. */
                e->why = why == SARDINE_WHY_HIT || (why == SARDINE_WHY_NETWORK && e->stale_available)
                             ? SARDINE_WHY_EXPIRED
                             : why;
        } else {
                store_enter(cache->store);
                e->why = other_flags(&q, e);
                store_leave(cache->store);
                if (e->why == SARDINE_WHY_ABSENT) {
                        memset(&e->rcode, 0, sizeof *e - offsetof(struct sardine_explanation, rcode));
                        look_back(&q, e);
                        look_elsewhere(&q, e);
                }
        }
        return outcome;
}
