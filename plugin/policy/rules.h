/* SPDX-License-Identifier: MIT
 * The tables of a policy, compiled: what holds for a zone, a client's network, a type, an rcode. Filled by
 * the engine while it loads a policy file, finished, then only read, by any number of threads. */
#ifndef POLICY_RULES_H
#define POLICY_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "entry/key.h"
#include "policy/subnets.h"
#include "policy/suffixes.h"

enum {
        POLICY_CLASSES = 8,
        POLICY_CLASS_KEEP = 7,  /* of what is always kept */
        POLICY_NO_LIMIT = 0xff, /* of a prefix length */
        POLICY_TAG_MAX = 128,
        POLICY_HOST_TAGS_MAX = 8,
        POLICY_LISTENERS_MAX = 64,
        /* An entry of weight w stays about w times as long as it would; 0: it goes first. */
        POLICY_WEIGHT_MOST = 100,
        POLICY_WEIGHT_KEEP = 255,
};

/* The longest prefix by which answers are split, and told upstream; 0: neither. */
struct policy_ecs {
        uint8_t ipv4, ipv6;
};

struct policy_ttl {
        uint32_t at_least, at_most;
};

/* Which members of the structs below are set. */
enum policy_set {
        POLICY_SET_ECS = 1,
        POLICY_SET_NEVER = 2,
        POLICY_SET_CLASS = 4,
        POLICY_SET_TTL = 8,
        POLICY_SET_STALE = 16,
        POLICY_SET_TAG = 32,
};

/* What a zone, a type or a client network says. */
struct policy_rule {
        uint32_t set;
        uint32_t ttl; /* number of a set of TTL limits; policy_rules_ttl() */
        uint32_t tag; /* number of a tag; policy_rules_tag() */
        struct policy_ecs ecs;
        uint8_t never_store, class, stale;
        uint8_t zero[3]; /* rules are compared as bytes */
};

/* TTL limits: for all answers, and for some types and rcodes. */
struct policy_ttl_item {
        uint16_t code;
        bool is_rcode; /* else a type */
        struct policy_ttl limits;
};
struct policy_ttl_set {
        struct policy_ttl limits;
        uint32_t count;
        struct policy_ttl_item *items;
};

struct policy_listener {
        uint8_t addr[16];
        uint8_t addr_len; /* 0: any address */
        uint16_t port;    /* 0: any port */
        uint32_t tag;
};

/* Different rules, each kept once; number 0 says nothing. */
struct rule_pool {
        struct policy_rule *rules;
        uint32_t count, room;
        uint32_t *slots; /* by hash; 0: free */
        uint32_t mask;
};

/* Names with the number of their rule. */
struct zone_table {
        struct suffixes names;
        struct rule_pool rules;
};

struct policy_rules {
        /* Plain settings: the engine writes them. */
        struct policy_ecs ecs;  /* where nothing else is said */
        uint32_t ttl;           /* number of the set for all zones */
        uint8_t stale_negative; /* 0: no expired negative answer may stand in */
        uint8_t weights[POLICY_CLASSES];
        /* Percent of the cache's bytes that such entries may take; 0: the cache's own choice. */
        uint8_t share_negative, share_one_hit, share_stale;

        /* The rest through the functions below. */
        struct zone_table query_zones;  /* ecs */
        struct zone_table answer_zones; /* never_store, class, ttl, stale */
        struct subnets tag_clients;     /* with numbers of tags */
        struct subnets ecs_clients;     /* with what makes policy_ecs of a number */
        struct policy_rule *types;      /* sorted by `type_codes` */
        uint16_t *type_codes;
        uint32_t n_types;
        struct policy_ttl_set *ttls;
        uint32_t n_ttls;
        struct entry_tag *tags;
        uint32_t n_tags, tags_room;
        struct policy_listener listeners[POLICY_LISTENERS_MAX];
        uint32_t n_listeners;
        char *host_tags[POLICY_HOST_TAGS_MAX];
        uint32_t n_host_tags;
        bool failed; /* no memory at some time */
};

struct policy_rules *policy_rules_create(void);
void policy_rules_free(struct policy_rules *rules);

/* For the engine. What has no room is noted in `failed`. */
void policy_rules_zone(struct policy_rules *rules, const uint8_t *name, size_t len,
                       const struct policy_rule *rule);
void policy_rules_client(struct policy_rules *rules, const struct subnet *net,
                         const struct policy_rule *rule);
void policy_rules_type(struct policy_rules *rules, uint16_t type, const struct policy_rule *rule);
/* Returns the set's number. */
uint32_t policy_rules_ttl(struct policy_rules *rules, const struct policy_ttl *limits,
                          const struct policy_ttl_item *items, uint32_t count);
/* Returns the tag's number; at most POLICY_TAG_MAX bytes. */
uint32_t policy_rules_tag(struct policy_rules *rules, const char *text, size_t len);
/* false: there are too many. */
bool policy_rules_listener(struct policy_rules *rules, const struct policy_listener *listener);
bool policy_rules_host_tag(struct policy_rules *rules, const char *name);

/* All is there. false: no memory. */
bool policy_rules_finish(struct policy_rules *rules);

static inline struct policy_ecs policy_ecs_shorter(struct policy_ecs a, struct policy_ecs b)
{
        return (struct policy_ecs){a.ipv4 < b.ipv4 ? a.ipv4 : b.ipv4, a.ipv6 < b.ipv6 ? a.ipv6 : b.ipv6};
}

/* For the cache that it is to serve; see entry_tag_hash(). */
void policy_rules_hash_tags(struct policy_rules *rules, const uint8_t *secret, size_t secret_len);

/* For queries. `name` is folded; `client` of 0, 4 or 16 bytes. */
struct policy_ecs policy_rules_ecs(const struct policy_rules *rules, const uint8_t *name, size_t len,
                                   const uint8_t *client, size_t client_len);
static inline const struct entry_tag *policy_rules_client_tag(const struct policy_rules *rules,
                                                              const uint8_t *client, size_t len)
{
        return &rules->tags[subnets_find(&rules->tag_clients, client, len)];
}

/* A query's origin, as far as its host tells. */
typedef const char *(*policy_host_tag)(void *ctx, const char *name);
struct policy_origin {
        const uint8_t *client, *local;
        size_t client_len, local_len;
        uint16_t local_port;
        policy_host_tag host_tag;
        void *host_ctx;
};

/* A tag while it is put together: a part from each source, separated by '/'. Every source has its place, so
 * that no two of them can be mistaken for each other; empty ones at the end are left out. */
struct policy_composed {
        char tag[POLICY_TAG_MAX];
        uint8_t len;
        uint8_t slashes; /* that are due before the next part that is not empty */
        bool begun, too_long;
};

/* The tables' parts: of the listener, of the client's network, of the host. */
void policy_rules_compose(const struct policy_rules *rules, const struct policy_origin *origin,
                          struct policy_composed *composed);
/* The last part, the hook's. */
void policy_rules_append(struct policy_composed *composed, const char *text, size_t len);

/* For answers: what zone and type say together. */
void policy_rules_answer(const struct policy_rules *rules, const uint8_t *name, size_t len, uint16_t type,
                         struct policy_rule *rule);
/* The life of an answer within its limits. */
uint32_t policy_rules_life(const struct policy_rules *rules, const struct policy_rule *rule, uint16_t type,
                           uint16_t rcode, uint32_t life);

#endif
