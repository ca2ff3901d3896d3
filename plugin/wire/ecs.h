/* SPDX-License-Identifier: MIT
 * The EDNS client subnet option (RFC 7871 s6). */
#ifndef WIRE_ECS_H
#define WIRE_ECS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        ECS_NONE = 0,
        ECS_IPV4 = 1,
        ECS_IPV6 = 2,
};

struct wire_ecs {
        uint8_t family; /* 0: no option */
        uint8_t source; /* prefix length */
        uint8_t scope;
        uint8_t addr[16]; /* network order; bits beyond `source` are zero */
};

/* Parse option data (after code and length). Family 1 or 2, prefix lengths in range, exactly as many address
 * bytes as the source prefix needs, no bit set beyond it (RFC 7871 s6: else FORMERR). false: malformed. */
bool wire_ecs_parse(const uint8_t *data, size_t len, struct wire_ecs *ecs);

/* Write the whole option, code and length included, into out[24]; returns its length (8..24). */
size_t wire_ecs_write(const struct wire_ecs *ecs, uint8_t out[24]);

/* Clear all bits of a 16-byte address beyond `prefix` (0..128). */
void wire_ecs_mask(uint8_t addr[16], unsigned prefix);

#endif
