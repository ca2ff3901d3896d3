/* SPDX-License-Identifier: MIT
 * A policy that is in use: the tables, and the engine's program with the hooks. */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include <stddef.h>
#include <stdint.h>

#include "policy/engine.h"

struct policy {
        struct policy_rules *rules;
        const struct policy_engine *engine;
        struct policy_program *program;
        uint32_t hooks; /* a bit for each enum policy_hook */
        bool keys;      /* it has something to say of keys */
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
