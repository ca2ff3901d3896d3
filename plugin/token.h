/* SPDX-License-Identifier: MIT
 * The miss token: the key of the question and what else insert must know of the moment it was asked. A host
 * may carry it through places that others can write to, so it is checked when it comes back. */
#ifndef TOKEN_H
#define TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "entry/key.h"
#include "policy/rules.h"
#include "sardine.h"
#include "wire/ecs.h"

struct token {
        uint64_t generation; /* of purges, when the question was asked */
        bool dnssec_ok;
        struct wire_ecs ecs;      /* the client's; family 0: none */
        struct policy_ecs limits; /* the policy's */
        struct entry_key key;     /* without network */
};

void token_write(struct sardine_token *out, const struct token *token);
/* false: hostile or damaged. */
bool token_read(const struct sardine_token *in, struct token *token);

/* What makes two tokens ask the same: all but the generation. Returns the length. */
size_t token_identity(const struct sardine_token *token,
                      uint8_t id[sizeof((struct sardine_token *)0)->bytes]);

#endif
