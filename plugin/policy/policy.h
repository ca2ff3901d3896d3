/* SPDX-License-Identifier: MIT
 * A policy that is in use: the tables, and the engine's program with the hooks. */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include <stddef.h>
#include <stdint.h>

#include "policy/engine.h"

/* What it adds to keys. */
enum policy_keys {
        POLICY_KEYS_PLAIN,  /* nothing */
        POLICY_KEYS_CLIENT, /* the tag of the client's network */
        POLICY_KEYS_ANY,    /* what several sources or the hook say */
};

struct policy {
        struct policy_rules *rules;
        const struct policy_engine *engine;
        struct policy_program *program;
        uint32_t hooks; /* a bit for each enum policy_hook */
        uint8_t keys;   /* enum policy_keys */
};

static inline bool policy_has(const struct policy *policy, enum policy_hook hook)
{
        return policy->hooks >> hook & 1;
}

/* Read and compile. 0; -EINVAL: something is wrong with the file, see `why`; -ENOENT: no engine; -ENOMEM. */
int policy_load(const struct policy_source *source, struct policy **policy, char *why, size_t why_size);

/* Nobody uses it any more. */
void policy_free(struct policy *policy);

#endif
