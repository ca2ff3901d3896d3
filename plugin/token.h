/* SPDX-License-Identifier: MIT
 * The miss token: the key of the question and what else insert must know of the moment it was asked. A host
 * may carry it through places that others can write to, so it is checked when it comes back. */
#ifndef TOKEN_H
#define TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "entry/key.h"
#include "sardine.h"
#include "wire/ecs.h"

struct token {
        uint64_t generation; /* of purges, when the question was asked */
        bool dnssec_ok;
        struct wire_ecs ecs;  /* the client's; family 0: none */
        struct entry_key key; /* without network */
};

void token_write(struct sardine_token *out, const struct token *token);
/* false: hostile or damaged. */
bool token_read(const struct sardine_token *in, struct token *token);

#endif
