/* SPDX-License-Identifier: MIT
 *
 * Bytes: version (1), flags (1: 01 DO), generation (8), longest prefixes by the policy (2: IPv4, IPv6), ECS
 * family (1), source prefix (1), address (0 or 16), key. */
#include "token.h"

#include <string.h>

enum {
        TOKEN_VERSION = 2,
        TOKEN_DO = 0x01,
        TOKEN_AT_GENERATION = 2,
        TOKEN_FIXED = 14,
};

_Static_assert(sizeof(((struct sardine_token *)0)->bytes) >= TOKEN_FIXED + 16 + KEY_MAX,
               "room for every token");

void token_write(struct sardine_token *out, const struct token *token)
{
        uint8_t *p = out->bytes;
        *p++ = TOKEN_VERSION;
        *p++ = token->dnssec_ok ? TOKEN_DO : 0;
        memcpy(p, &token->generation, 8);
        p += 8;
        *p++ = token->limits.ipv4;
        *p++ = token->limits.ipv6;
        *p++ = token->ecs.family;
        *p++ = token->ecs.source;
        if (token->ecs.family != ECS_NONE) {
                memcpy(p, token->ecs.addr, 16);
                p += 16;
        }
        memcpy(p, token->key.bytes, token->key.len);
        out->len = (uint16_t)(p - out->bytes + token->key.len);
}

bool token_read(const struct sardine_token *in, struct token *token)
{
        const uint8_t *p = in->bytes;
        size_t left = in->len;
        if (left < TOKEN_FIXED || left > sizeof in->bytes || p[0] != TOKEN_VERSION || (p[1] & ~TOKEN_DO))
                return false;
        token->dnssec_ok = p[1] & TOKEN_DO;
        memcpy(&token->generation, p + 2, 8);
        token->limits = (struct policy_ecs){p[10], p[11]};
        token->ecs = (struct wire_ecs){.family = p[12], .source = p[13]};
        p += TOKEN_FIXED;
        left -= TOKEN_FIXED;
        if (token->ecs.family != ECS_NONE) {
                if (left < 16 || token->ecs.family > ECS_IPV6 ||
                    token->ecs.source > (token->ecs.family == ECS_IPV4 ? 32 : 128))
                        return false;
                memcpy(token->ecs.addr, p, 16);
                p += 16;
                left -= 16;
        }
        if (!entry_key_check(p, left) || p[KEY_AT_PAGE] != KEY_NO_PAGE)
                return false;
        memcpy(token->key.bytes, p, left);
        token->key.len = (uint16_t)left;
        return true;
}

size_t token_identity(const struct sardine_token *token, uint8_t id[sizeof((struct sardine_token *)0)->bytes])
{
        memcpy(id, token->bytes, token->len);
        memset(id + TOKEN_AT_GENERATION, 0, 8);
        return token->len;
}
