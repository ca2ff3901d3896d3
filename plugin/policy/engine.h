/* SPDX-License-Identifier: MIT
 * Between the core and the engine that evaluates policy files. The engine is a shared object of its own,
 * which the core opens when a policy is loaded for the first time; each side knows of the other what is here,
 * and nothing else. Neither keeps a pointer beyond the call unless its comment says so. */
#ifndef POLICY_ENGINE_H
#define POLICY_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/rules.h"
#include "sardine.h"
#include "wire/ecs.h"
#include "wire/response.h"

enum {
        POLICY_ENGINE_VERSION = 1, /* both come from one build */
};
#define POLICY_ENGINE_SYMBOL "sardine_policy_engine"

/* What the core does for the engine. Outlives it. */
struct policy_services {
        void (*rules_zone)(struct policy_rules *, const uint8_t *name, size_t len,
                           const struct policy_rule *);
        void (*rules_client)(struct policy_rules *, const struct subnet *, const struct policy_rule *);
        void (*rules_type)(struct policy_rules *, uint16_t type, const struct policy_rule *);
        uint32_t (*rules_ttl)(struct policy_rules *, const struct policy_ttl *,
                              const struct policy_ttl_item *, uint32_t count);
        uint32_t (*rules_tag)(struct policy_rules *, const char *text, size_t len);
        bool (*rules_listener)(struct policy_rules *, const struct policy_listener *);
        bool (*rules_host_tag)(struct policy_rules *, const char *name);
        /* Numbers of "AAAA", "TYPE65", "NXDOMAIN"; -1: unknown. */
        int (*type_number)(const char *name);
        int (*rcode_number)(const char *name);
};

/* A question, as the hooks see it. */
struct policy_question {
        const uint8_t *qname; /* wire form, any case */
        uint16_t qtype;
        bool rd, cd, dnssec_ok;
        const struct wire_ecs *ecs; /* the client's; family 0: none */
        const char *tag;            /* so far */
        size_t tag_len;
        /* Known to the key hook only. */
        const struct sardine_query *query; /* NULL: not known */
};

/* What the key hook wants. */
enum policy_network {
        POLICY_NETWORK_OWN = 0,   /* as without */
        POLICY_NETWORK_NONE = 1,  /* answers for everybody only */
        POLICY_NETWORK_LIMIT = 2, /* no longer a prefix than `limit` */
        POLICY_NETWORK_SET = 3,   /* as if the client were in `network` */
};
struct policy_key {
        bool skip;
        uint8_t network_is; /* enum policy_network */
        uint8_t limit;
        struct wire_ecs network;
        uint32_t max_ttl; /* that the reply may show; 0: no limit */
        char tag[POLICY_TAG_MAX];
        uint8_t tag_len;
};

/* An answer that is to be stored, as the tables have it, and what the store hook makes of it. */
struct policy_answer {
        const struct wire_response *response;
        bool negative;
        /* In and out. */
        bool refuse;
        uint32_t life; /* seconds */
        uint8_t class;
        /* Out. */
        char group[POLICY_TAG_MAX];
        uint8_t group_len;
};

/* An entry, for the evict and stale hooks. */
struct policy_entry {
        const uint8_t *qname; /* wire form, folded */
        uint16_t qtype;
        uint16_t rcode;
        const uint8_t *tag, *group;
        uint8_t tag_len, group_len;
        uint8_t class;
        uint8_t hits; /* 0..7 */
        bool negative;
        uint32_t age;     /* seconds since it came, about */
        uint32_t ttl;     /* seconds left; 0: expired */
        uint32_t expired; /* seconds since it expired */
        uint32_t size;    /* bytes */
};

/* Verdicts of evict and stale. */
enum {
        POLICY_NO_ANSWER = -1, /* the built-in choice */
        /* of evict: a weight, 0 to POLICY_WEIGHT_MOST, or POLICY_WEIGHT_KEEP */
        POLICY_NOT_STALE = -2, /* of stale: no. 0: serve it; above: with this TTL */
};

enum policy_hook {
        POLICY_HOOK_KEY,
        POLICY_HOOK_STORE,
        POLICY_HOOK_EVICT,
        POLICY_HOOK_STALE,
        POLICY_HOOKS,
};

struct policy_hook_stats {
        uint64_t calls, errors, timeouts, skipped;
};

/* A file's text, once evaluated: the tables are in `rules`, the hooks with the engine. */
struct policy_program;

struct policy_source {
        const char *path;
        bool all_libraries;
        sardine_log_fn log; /* kept with the program */
        void *log_ctx;
};

struct policy_engine {
        uint32_t version;
        /* Read and evaluate. On failure NULL, with the reason in `why`. *hooks: a bit for each enum
         * policy_hook that the file defines. */
        struct policy_program *(*load)(const struct policy_services *services,
                                       const struct policy_source *source, struct policy_rules *rules,
                                       uint32_t *hooks, char *why, size_t why_size);
        /* Nobody is in a hook of it any more, and nobody will be. */
        void (*unload)(struct policy_program *program);
        /* Any thread. The output has the built-in choice before, and after an error. */
        void (*key)(struct policy_program *program, const struct policy_question *question,
                    struct policy_key *key);
        void (*store)(struct policy_program *program, const struct policy_question *question,
                      struct policy_answer *answer);
        int (*evict)(struct policy_program *program, const struct policy_entry *entry);
        int (*stale)(struct policy_program *program, const struct policy_entry *entry, const char *why);
        void (*stats)(struct policy_program *program, struct policy_hook_stats stats[POLICY_HOOKS]);
};

#endif
