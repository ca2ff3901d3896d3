/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: flags of the header. */
#include "verdict.h"

#include <string.h>

#include "entry/header.h"
#include "wire/bytes.h"
#include "wire/dns.h"

/* The tag of a key: the host's. */
static const uint8_t *key_tag(const struct entry_key *key, size_t *len)
{
        const uint8_t *extra = key->bytes + KEY_AT_NAME + key->bytes[KEY_AT_NAME_LEN];
        *len = key->bytes[KEY_AT_EXTRA_LEN] ? extra[0] : 0;
        return extra + 1;
}

static void ask_key(const struct policy *policy, const struct sardine_query *query,
                    const struct wire_query *wire, struct policy_composed *tag, struct query_verdict *verdict,
                    bool *skip)
{
        const struct policy_question question = {
            .qname = wire->qname,
            .qtype = wire->qtype,
            .rd = wire->rd,
            .cd = wire->cd,
            .dnssec_ok = wire->dnssec_ok,
            .ecs = &wire->ecs,
            .tag = tag->tag,
            .tag_len = tag->len,
            .query = query,
        };
        struct policy_key key;
        key.skip = false;
        key.network_is = POLICY_NETWORK_OWN;
        key.max_ttl = 0;
        key.tag_len = 0;
        policy->engine->key(policy->program, &question, &key);
        *skip = key.skip;
        verdict->max_ttl = key.max_ttl;
        policy_rules_append(tag, key.tag, key.tag_len);
        if (key.network_is == POLICY_NETWORK_NONE) {
                verdict->limits = (struct policy_ecs){0, 0};
        } else if (key.network_is == POLICY_NETWORK_LIMIT) {
                verdict->limits = (struct policy_ecs){key.limit, key.limit};
        } else if (key.network_is == POLICY_NETWORK_SET) {
                verdict->network_set = true;
                verdict->network = key.network;
        }
}

unsigned verdict_key(const struct policy *policy, const struct sardine_query *query,
                     const struct wire_query *wire, struct entry_key *key, struct query_verdict *verdict)
{
        const struct policy_origin origin = {
            .client = query->client,
            .client_len = query->client_len,
            .local = query->local,
            .local_len = query->local_len,
            .local_port = (uint16_t)query->local_port,
            .host_tag = query->host_tag,
            .host_ctx = query->host_ctx,
        };
        struct policy_composed tag;
        policy_rules_compose(policy->rules, &origin, &tag);
        bool skip = false;
        if (policy_has(policy, POLICY_HOOK_KEY))
                ask_key(policy, query, wire, &tag, verdict, &skip);
        if (skip)
                return SARDINE_BYPASS_POLICY;
        if (tag.too_long || (tag.len && !entry_key_add_tag(key, tag.tag, tag.len)))
                return SARDINE_BYPASS_TOO_LONG;
        return 0;
}

void verdict_limits(const struct policy *policy, const struct sardine_query *query,
                    const struct entry_key *key, struct query_verdict *verdict)
{
        if (verdict->limited)
                return;
        size_t len;
        const uint8_t *name = entry_key_name(key, &len);
        struct policy_ecs tables =
            policy_rules_ecs(policy->rules, name, len, query->client, query->client_len);
        verdict->limits = policy_ecs_shorter(verdict->limits, tables);
        verdict->limited = true;
}

bool verdict_answer(const struct policy *policy, const struct token *token,
                    const struct wire_response *response, bool negative, uint32_t *life,
                    struct answer_verdict *verdict)
{
        const struct policy_rules *rules = policy->rules;
        size_t name_len, tag_len;
        const uint8_t *name = entry_key_name(&token->key, &name_len);
        const uint8_t *tag = key_tag(&token->key, &tag_len);
        uint16_t type = get_be16(token->key.bytes + KEY_AT_TYPE);
        struct policy_rule rule;
        policy_rules_answer(rules, name, name_len, type, &rule);
        struct policy_answer answer = {
            .response = response,
            .negative = negative,
            .refuse = rule.set & POLICY_SET_NEVER && rule.never_store,
            .life = policy_rules_life(rules, &rule, type, response->rcode, *life),
            .class = rule.set & POLICY_SET_CLASS ? rule.class : 0,
        };
        if (!answer.refuse && policy_has(policy, POLICY_HOOK_STORE)) {
                const struct policy_question question = {
                    .qname = name,
                    .qtype = type,
                    .rd = token->key.bytes[KEY_AT_FLAGS] & ENTRY_RD,
                    .cd = token->key.bytes[KEY_AT_FLAGS] & ENTRY_CD,
                    .dnssec_ok = token->dnssec_ok,
                    .ecs = &token->ecs,
                    .tag = (const char *)tag,
                    .tag_len = tag_len,
                };
                policy->engine->store(policy->program, &question, &answer);
        }
        *life = answer.life;
        verdict->class = answer.class;
        verdict->group_len = answer.group_len;
        memcpy(verdict->group, answer.group, answer.group_len);
        return !answer.refuse;
}

/* Negative: nothing in the answer section, or no such name. */
static void show_entry(const struct entry_view *view, const struct entry_life *life, uint32_t now,
                       uint8_t name[255], struct policy_entry *entry)
{
        entry_view_qname(view, name);
        uint32_t lived = life_decode(life->code), left = life->expiry > now ? life->expiry - now : 0;
        uint32_t expired = life->expiry > now ? 0 : now - life->expiry;
        *entry = (struct policy_entry){
            .qname = name,
            .qtype = view->qtype,
            .rcode = view->rcode,
            .tag = view->extra ? view->extra + 1 : name,
            .tag_len = view->extra ? view->extra[0] : 0,
            .group = view->group ? view->group : name,
            .group_len = view->group_len,
            .class = view->class,
            .negative = view->rcode == DNS_NXDOMAIN || (!view->page && !entry_view_has_answer_records(view)),
            .age = left ? (lived > left ? lived - left : 0) : lived + expired,
            .ttl = left,
            .expired = expired,
            .size = view->size,
        };
}

bool verdict_stale(const struct policy *policy, const uint8_t *bytes, const struct entry_life *life,
                   uint32_t now, const char *why, uint32_t *ttl)
{
        struct entry_view view;
        uint8_t name[255];
        struct policy_entry entry;
        *ttl = 0;
        entry_view_init(&view, bytes);
        show_entry(&view, life, now, name, &entry);
        struct policy_rule rule;
        size_t len = entry_view_qname(&view, name);
        policy_rules_answer(policy->rules, name, len, view.qtype, &rule);
        bool may = rule.set & POLICY_SET_STALE ? rule.stale : true;
        if (entry.negative && !policy->rules->stale_negative)
                may = false;
        if (!policy_has(policy, POLICY_HOOK_STALE))
                return may;
        int verdict = policy->engine->stale(policy->program, &entry, why);
        if (verdict == POLICY_NO_ANSWER)
                return may;
        if (verdict > 0)
                *ttl = (uint32_t)verdict;
        return verdict != POLICY_NOT_STALE;
}

int verdict_evict(const struct policy *policy, const uint8_t *bytes, uint32_t popularity, uint32_t now)
{
        struct entry_view view;
        entry_view_init(&view, bytes);
        if (policy_has(policy, POLICY_HOOK_EVICT)) {
                uint8_t name[255];
                struct policy_entry entry;
                const struct entry_life life = entry_life(bytes);
                show_entry(&view, &life, now, name, &entry);
                entry.hits = (uint8_t)popularity;
                int verdict = policy->engine->evict(policy->program, &entry);
                if (verdict != POLICY_NO_ANSWER)
                        return verdict;
        }
        uint8_t weight = policy->rules->weights[view.class];
        return weight == 1 ? POLICY_NO_ANSWER : weight;
}
