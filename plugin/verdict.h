/* SPDX-License-Identifier: MIT
 * What the cache's policy says of a query, of an answer, of an entry: tables first, then the hook if there is
 * one. A policy that was read from the cache is used inside the same reader section of the store only: it is
 * freed when nobody can be in such a section any more. */
#ifndef VERDICT_H
#define VERDICT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cache.h"
#include "entry/view.h"
#include "policy/policy.h"
#include "token.h"
#include "wire/query.h"
#include "wire/response.h"

static inline const struct policy *policy_of(const struct sardine_cache *cache)
{
        return atomic_load_explicit(&cache->policy, memory_order_acquire);
}

/* Of a query, beyond what goes into its key. */
struct query_verdict {
        struct policy_ecs limits; /* the hook's; with the tables' after verdict_limits() */
        bool limited;             /* the tables have been asked */
        bool network_set;
        struct wire_ecs network; /* when set: the one that the client is taken to be in */
        uint32_t max_ttl;        /* 0: no limit */
};

/* Before the policy is asked for anything else. */
static inline void verdict_init(struct query_verdict *verdict)
{
        verdict->limits = (struct policy_ecs){POLICY_NO_LIMIT, POLICY_NO_LIMIT};
        verdict->limited = verdict->network_set = false;
        verdict->max_ttl = 0;
}

/* Where only the client's network matters: adds its tag to the key, which is a question and no more. Returns
 * what the question's hash is to be xored with. */
static inline uint64_t verdict_tag(const struct policy *policy, const struct sardine_query *query,
                                   struct entry_key *key)
{
        const struct entry_tag *tag =
            policy_rules_client_tag(policy->rules, query->client, query->client_len);
        entry_key_set_tag(key, tag);
        return tag->hash;
}

/* Adds the policy's tag to the key, whatever it is made of, and lets the key hook have its say in the rest.
 * 0, SARDINE_BYPASS_POLICY or SARDINE_BYPASS_TOO_LONG. */
unsigned verdict_key(const struct policy *policy, const struct sardine_query *query,
                     const struct wire_query *wire, struct entry_key *key, struct query_verdict *verdict);

/* By how much of the client's address answers are split and upstreams are told. That takes a search for zone
 * and client, and most lookups end well without: so it is done when somebody wants to know, and once. */
void verdict_limits(const struct policy *policy, const struct sardine_query *query,
                    const struct entry_key *key, struct query_verdict *verdict);

/* Of an answer that is to be stored. `life` is what it would live, and then what it shall. */
struct answer_verdict {
        uint8_t class;
        uint8_t group_len;
        char group[POLICY_TAG_MAX];
};

/* false: it is not stored. */
bool verdict_answer(const struct policy *policy, const struct token *token,
                    const struct wire_response *response, bool negative, uint32_t *life,
                    struct answer_verdict *verdict);

/* May this expired entry answer? `allowed` is what the cache's options say. *ttl: to be shown, or 0. */
bool verdict_stale(const struct policy *policy, const uint8_t *entry, const struct entry_life *life,
                   uint32_t now, const char *why, uint32_t *ttl);

/* How an entry stands in eviction: a weight, POLICY_WEIGHT_KEEP, or POLICY_NO_ANSWER. */
int verdict_evict(const struct policy *policy, const uint8_t *entry, uint32_t popularity, uint32_t now);

#endif
