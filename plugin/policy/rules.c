/* SPDX-License-Identifier: MIT */
#include "policy/rules.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static void pool_fini(struct rule_pool *pool)
{
        free(pool->rules);
        free(pool->slots);
}

static bool pool_grow(struct rule_pool *pool)
{
        uint32_t room = pool->room ? pool->room * 2 : 16;
        struct policy_rule *rules = realloc(pool->rules, room * sizeof *rules);
        if (!rules)
                return false;
        pool->rules = rules;
        uint32_t *slots = calloc((size_t)room * 2, sizeof *slots);
        if (!slots)
                return false;
        free(pool->slots);
        pool->slots = slots;
        pool->mask = room * 2 - 1;
        pool->room = room;
        if (pool->count == 0) {
                memset(&rules[0], 0, sizeof rules[0]);
                pool->count = 1;
        }
        for (uint32_t i = 1; i < pool->count; i++) {
                uint32_t at = (uint32_t)XXH3_64bits(&rules[i], sizeof rules[i]) & pool->mask;
                while (slots[at])
                        at = (at + 1) & pool->mask;
                slots[at] = i;
        }
        return true;
}

/* The number of a rule; 0 also when there is no memory, with *failed. */
static uint32_t pool_number(struct rule_pool *pool, const struct policy_rule *rule, bool *failed)
{
        if (rule->set == 0)
                return 0;
        if (pool->count + 1 >= pool->room && !pool_grow(pool)) {
                *failed = true;
                return 0;
        }
        uint32_t at = (uint32_t)XXH3_64bits(rule, sizeof *rule) & pool->mask;
        for (; pool->slots[at]; at = (at + 1) & pool->mask)
                if (memcmp(&pool->rules[pool->slots[at]], rule, sizeof *rule) == 0)
                        return pool->slots[at];
        pool->slots[at] = pool->count;
        pool->rules[pool->count] = *rule;
        return pool->count++;
}

/* What `rule` leaves open, `from` says. */
static void inherit(struct policy_rule *rule, const struct policy_rule *from)
{
        uint32_t missing = from->set & ~rule->set;
        if (missing & POLICY_SET_ECS)
                rule->ecs = from->ecs;
        if (missing & POLICY_SET_NEVER)
                rule->never_store = from->never_store;
        if (missing & POLICY_SET_CLASS)
                rule->class = from->class;
        if (missing & POLICY_SET_TTL)
                rule->ttl = from->ttl;
        if (missing & POLICY_SET_STALE)
                rule->stale = from->stale;
        rule->set |= missing;
}

struct policy_rules *policy_rules_create(void)
{
        struct policy_rules *rules = calloc(1, sizeof *rules);
        if (!rules)
                return NULL;
        uint64_t seed[2] = {0};
        /* Without one, who knows the names of a table could look for ones that collide. */
        if (getrandom(seed, sizeof seed, 0) != (ssize_t)sizeof seed)
                seed[0] = seed[1] = (uintptr_t)rules;
        suffixes_init(&rules->query_zones.names, seed[0]);
        suffixes_init(&rules->answer_zones.names, seed[1]);
        rules->ecs = (struct policy_ecs){POLICY_NO_LIMIT, POLICY_NO_LIMIT};
        rules->stale_negative = 1;
        for (unsigned i = 0; i < POLICY_CLASSES; i++)
                rules->weights[i] = 1;
        rules->weights[POLICY_CLASS_KEEP] = POLICY_WEIGHT_KEEP;
        const struct policy_ttl none = {0, UINT32_MAX};
        policy_rules_ttl(rules, &none, NULL, 0);
        policy_rules_tag(rules, "", 0);
        if (rules->failed) {
                policy_rules_free(rules);
                return NULL;
        }
        return rules;
}

void policy_rules_free(struct policy_rules *rules)
{
        if (!rules)
                return;
        suffixes_fini(&rules->query_zones.names);
        pool_fini(&rules->query_zones.rules);
        suffixes_fini(&rules->answer_zones.names);
        pool_fini(&rules->answer_zones.rules);
        subnets_fini(&rules->tag_clients);
        subnets_fini(&rules->ecs_clients);
        free(rules->types);
        free(rules->type_codes);
        for (uint32_t i = 0; i < rules->n_ttls; i++)
                free(rules->ttls[i].items);
        free(rules->ttls);
        free(rules->tags);
        for (uint32_t i = 0; i < rules->n_host_tags; i++)
                free(rules->host_tags[i]);
        free(rules);
}

static void zone_put(struct policy_rules *rules, struct zone_table *table, const uint8_t *name, size_t len,
                     const struct policy_rule *rule)
{
        uint32_t *value = suffixes_put(&table->names, name, len);
        if (!value) {
                rules->failed = true;
                return;
        }
        struct policy_rule whole = *rule;
        if (*value)
                inherit(&whole, &table->rules.rules[*value]);
        *value = pool_number(&table->rules, &whole, &rules->failed);
}

void policy_rules_zone(struct policy_rules *rules, const uint8_t *name, size_t len,
                       const struct policy_rule *rule)
{
        struct policy_rule part = {.set = rule->set & POLICY_SET_ECS, .ecs = rule->ecs};
        if (part.set)
                zone_put(rules, &rules->query_zones, name, len, &part);
        part = *rule;
        part.set &= ~(uint32_t)POLICY_SET_ECS;
        part.ecs = (struct policy_ecs){0};
        if (part.set)
                zone_put(rules, &rules->answer_zones, name, len, &part);
}

/* Above 0. */
static uint32_t ecs_number(struct policy_ecs ecs)
{
        return 1u + ecs.ipv4 + ((uint32_t)ecs.ipv6 << 8);
}

static struct policy_ecs ecs_of_number(uint32_t number)
{
        return (struct policy_ecs){(uint8_t)(number - 1), (uint8_t)((number - 1) >> 8)};
}

void policy_rules_client(struct policy_rules *rules, const struct subnet *net, const struct policy_rule *rule)
{
        if (rule->set & POLICY_SET_TAG && !subnets_add(&rules->tag_clients, net, rule->tag))
                rules->failed = true;
        if (rule->set & POLICY_SET_ECS && !subnets_add(&rules->ecs_clients, net, ecs_number(rule->ecs)))
                rules->failed = true;
}

static uint32_t type_place(const struct policy_rules *rules, uint16_t type)
{
        uint32_t at = 0;
        while (at < rules->n_types && rules->type_codes[at] < type)
                at++;
        return at;
}

void policy_rules_type(struct policy_rules *rules, uint16_t type, const struct policy_rule *rule)
{
        uint32_t at = type_place(rules, type);
        if (at < rules->n_types && rules->type_codes[at] == type) {
                struct policy_rule whole = *rule;
                inherit(&whole, &rules->types[at]);
                rules->types[at] = whole;
                return;
        }
        uint32_t behind = rules->n_types - at;
        struct policy_rule *types = realloc(rules->types, (rules->n_types + 1) * sizeof *types);
        if (types)
                rules->types = types;
        uint16_t *codes = realloc(rules->type_codes, (rules->n_types + 1) * sizeof *codes);
        if (codes)
                rules->type_codes = codes;
        if (!types || !codes) {
                rules->failed = true;
                return;
        }
        memmove(types + at + 1, types + at, behind * sizeof *types);
        memmove(codes + at + 1, codes + at, behind * sizeof *codes);
        types[at] = *rule;
        codes[at] = type;
        rules->n_types++;
}

uint32_t policy_rules_ttl(struct policy_rules *rules, const struct policy_ttl *limits,
                          const struct policy_ttl_item *items, uint32_t count)
{
        struct policy_ttl_set *last = rules->n_ttls ? &rules->ttls[rules->n_ttls - 1] : NULL;
        /* A long list of zones has the same limits again and again. */
        if (last && count == 0 && last->count == 0 && memcmp(&last->limits, limits, sizeof *limits) == 0)
                return rules->n_ttls - 1;
        struct policy_ttl_set *ttls = realloc(rules->ttls, (rules->n_ttls + 1) * sizeof *ttls);
        struct policy_ttl_item *copy = count ? malloc(count * sizeof *copy) : NULL;
        if (ttls)
                rules->ttls = ttls;
        if (!ttls || (count && !copy)) {
                free(copy);
                rules->failed = true;
                return 0;
        }
        if (count)
                memcpy(copy, items, count * sizeof *copy);
        ttls[rules->n_ttls] = (struct policy_ttl_set){.limits = *limits, .count = count, .items = copy};
        return rules->n_ttls++;
}

static bool tags_grow(struct policy_rules *rules)
{
        uint32_t room = rules->tags_room ? rules->tags_room * 2 : 4;
        struct entry_tag *tags = aligned_alloc(_Alignof(struct entry_tag), room * sizeof *tags);
        if (!tags)
                return false;
        if (rules->n_tags)
                memcpy(tags, rules->tags, rules->n_tags * sizeof *tags);
        free(rules->tags);
        rules->tags = tags;
        rules->tags_room = room;
        return true;
}

uint32_t policy_rules_tag(struct policy_rules *rules, const char *text, size_t len)
{
        for (uint32_t i = rules->n_tags; i-- > 0;)
                if (rules->tags[i].extra[0] == len && memcmp(rules->tags[i].extra + 1, text, len) == 0)
                        return i;
        if (rules->n_tags == rules->tags_room && !tags_grow(rules)) {
                rules->failed = true;
                return 0;
        }
        entry_tag_init(&rules->tags[rules->n_tags], text, len);
        return rules->n_tags++;
}

bool policy_rules_listener(struct policy_rules *rules, const struct policy_listener *listener)
{
        if (rules->n_listeners == POLICY_LISTENERS_MAX)
                return false;
        rules->listeners[rules->n_listeners++] = *listener;
        return true;
}

bool policy_rules_host_tag(struct policy_rules *rules, const char *name)
{
        if (rules->n_host_tags == POLICY_HOST_TAGS_MAX)
                return false;
        char *copy = strdup(name);
        if (copy)
                rules->host_tags[rules->n_host_tags++] = copy;
        else
                rules->failed = true;
        return true;
}

/* Names inherit from the longest name above them: shorter ones first, so that those have inherited already.
 */
static bool zone_finish(struct policy_rules *rules, struct zone_table *table)
{
        struct suffixes *names = &table->names;
        for (unsigned depth = 1; depth < 128; depth++) {
                if (!(names->depths[depth / 64] >> depth % 64 & 1))
                        continue;
                for (size_t i = 0; i < names->count; i++) {
                        size_t len;
                        const uint8_t *name = suffixes_name(names, i, &len);
                        unsigned labels = 0;
                        for (const uint8_t *p = name; *p; p += *p + 1u)
                                labels++;
                        if (labels != depth)
                                continue;
                        size_t first = *name + 1u;
                        int64_t parent = suffixes_find(names, name + first, len - first);
                        if (parent == SUFFIX_NONE)
                                continue;
                        struct policy_rule whole = table->rules.rules[names->items[i].value];
                        inherit(&whole, &table->rules.rules[names->items[parent].value]);
                        names->items[i].value = pool_number(&table->rules, &whole, &rules->failed);
                }
        }
        return !rules->failed;
}

bool policy_rules_finish(struct policy_rules *rules)
{
        return zone_finish(rules, &rules->query_zones) && zone_finish(rules, &rules->answer_zones) &&
               subnets_finish(&rules->tag_clients) && subnets_finish(&rules->ecs_clients) && !rules->failed;
}

void policy_rules_hash_tags(struct policy_rules *rules, const uint8_t *secret, size_t secret_len)
{
        for (uint32_t i = 0; i < rules->n_tags; i++)
                entry_tag_hash(&rules->tags[i], secret, secret_len);
}

struct policy_ecs policy_rules_ecs(const struct policy_rules *rules, const uint8_t *name, size_t len,
                                   const uint8_t *client, size_t client_len)
{
        const struct zone_table *zones = &rules->query_zones;
        int64_t zone = suffixes_find(&zones->names, name, len);
        struct policy_ecs ecs =
            zone == SUFFIX_NONE ? rules->ecs : zones->rules.rules[suffixes_value(&zones->names, zone)].ecs;
        uint32_t of_client = subnets_find(&rules->ecs_clients, client, client_len);
        return of_client ? policy_ecs_shorter(ecs, ecs_of_number(of_client)) : ecs;
}

static void put_byte(struct policy_composed *c, char byte)
{
        if (c->len == POLICY_TAG_MAX)
                c->too_long = true;
        else
                c->tag[c->len++] = byte;
}

static void begin_part(struct policy_composed *c)
{
        c->slashes += c->begun;
        c->begun = true;
}

static void put_text(struct policy_composed *c, const char *text, size_t len)
{
        if (len == 0)
                return;
        for (; c->slashes > 0; c->slashes--)
                put_byte(c, '/');
        if (len > POLICY_TAG_MAX - (size_t)c->len) {
                c->too_long = true;
                return;
        }
        memcpy(c->tag + c->len, text, len);
        c->len += (uint8_t)len;
}

static void put_tag(struct policy_composed *c, const struct entry_tag *tag)
{
        put_text(c, (const char *)tag->extra + 1, tag->extra[0]);
}

/* What a host says may be anything, from its clients for one: it must not look like two parts. */
static void put_foreign(struct policy_composed *c, const char *text)
{
        static const char hex[] = "0123456789abcdef";
        for (; *text; text++) {
                const char escaped[] = {'%', hex[(unsigned char)*text >> 4], hex[*text & 15]};
                bool plain = *text != '/' && *text != '%';
                put_text(c, plain ? text : escaped, plain ? 1 : sizeof escaped);
        }
}

static uint32_t listener_tag(const struct policy_rules *rules, const struct policy_origin *origin)
{
        for (uint32_t i = 0; i < rules->n_listeners; i++) {
                const struct policy_listener *l = &rules->listeners[i];
                if ((l->port == 0 || l->port == origin->local_port) &&
                    (l->addr_len == 0 ||
                     (l->addr_len == origin->local_len && memcmp(l->addr, origin->local, l->addr_len) == 0)))
                        return l->tag;
        }
        return 0;
}

void policy_rules_compose(const struct policy_rules *rules, const struct policy_origin *origin,
                          struct policy_composed *c)
{
        c->len = c->slashes = 0;
        c->begun = c->too_long = false;
        if (rules->n_listeners) {
                begin_part(c);
                put_tag(c, &rules->tags[listener_tag(rules, origin)]);
        }
        if (rules->tag_clients.count) {
                begin_part(c);
                put_tag(c, policy_rules_client_tag(rules, origin->client, origin->client_len));
        }
        for (uint32_t i = 0; i < rules->n_host_tags; i++) {
                begin_part(c);
                const char *value =
                    origin->host_tag ? origin->host_tag(origin->host_ctx, rules->host_tags[i]) : NULL;
                if (value)
                        put_foreign(c, value);
        }
}

void policy_rules_append(struct policy_composed *c, const char *text, size_t len)
{
        begin_part(c);
        put_text(c, text, len);
}

void policy_rules_answer(const struct policy_rules *rules, const uint8_t *name, size_t len, uint16_t type,
                         struct policy_rule *rule)
{
        const struct zone_table *zones = &rules->answer_zones;
        int64_t zone = suffixes_find(&zones->names, name, len);
        *rule = zone == SUFFIX_NONE ? (struct policy_rule){0}
                                    : zones->rules.rules[suffixes_value(&zones->names, zone)];
        uint32_t at = type_place(rules, type);
        if (at == rules->n_types || rules->type_codes[at] != type)
                return;
        const struct policy_rule *of_type = &rules->types[at];
        if (of_type->set & POLICY_SET_NEVER && of_type->never_store) {
                rule->set |= POLICY_SET_NEVER;
                rule->never_store = 1;
        }
        inherit(rule, of_type);
}

static void narrow(struct policy_ttl *limits, const struct policy_ttl *more)
{
        if (more->at_least > limits->at_least)
                limits->at_least = more->at_least;
        if (more->at_most < limits->at_most)
                limits->at_most = more->at_most;
}

static void narrow_by(struct policy_ttl *limits, const struct policy_ttl_set *set, uint16_t type,
                      uint16_t rcode)
{
        narrow(limits, &set->limits);
        for (uint32_t i = 0; i < set->count; i++)
                if (set->items[i].code == (set->items[i].is_rcode ? rcode : type))
                        narrow(limits, &set->items[i].limits);
}

uint32_t policy_rules_life(const struct policy_rules *rules, const struct policy_rule *rule, uint16_t type,
                           uint16_t rcode, uint32_t life)
{
        struct policy_ttl limits = {0, UINT32_MAX};
        narrow_by(&limits, &rules->ttls[rules->ttl], type, rcode);
        if (rule->set & POLICY_SET_TTL)
                narrow_by(&limits, &rules->ttls[rule->ttl], type, rcode);
        if (life < limits.at_least)
                life = limits.at_least;
        return life > limits.at_most ? limits.at_most : life;
}
