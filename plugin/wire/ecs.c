/* SPDX-License-Identifier: MIT */
#include "wire/ecs.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/dns.h"

enum {
        ECS_FIXED = 4, /* family, source, scope */
};

static size_t prefix_bytes(unsigned prefix)
{
        return (prefix + 7) / 8;
}

void wire_ecs_mask(uint8_t addr[16], unsigned prefix)
{
        size_t used = prefix_bytes(prefix);
        if (prefix % 8 != 0)
                addr[used - 1] &= (uint8_t)(0xff00 >> prefix % 8);
        memset(addr + used, 0, 16 - used);
}

bool wire_ecs_parse(const uint8_t *data, size_t len, struct wire_ecs *ecs)
{
        if (len < ECS_FIXED)
                return false;
        uint16_t family = get_be16(data);
        if (family != ECS_IPV4 && family != ECS_IPV6)
                return false;
        unsigned longest = family == ECS_IPV4 ? 32 : 128;
        uint8_t source = data[2], scope = data[3];
        if (source > longest || scope > longest)
                return false;
        size_t used = prefix_bytes(source);
        if (len != ECS_FIXED + used)
                return false;

        uint8_t addr[16] = {0};
        memcpy(addr, data + ECS_FIXED, used);
        wire_ecs_mask(addr, source);
        if (memcmp(addr, data + ECS_FIXED, used) != 0)
                return false;

        ecs->family = (uint8_t)family;
        ecs->source = source;
        ecs->scope = scope;
        memcpy(ecs->addr, addr, sizeof ecs->addr);
        return true;
}

size_t wire_ecs_write(const struct wire_ecs *ecs, uint8_t out[24])
{
        size_t used = prefix_bytes(ecs->source);
        put_be16(out, EDNS_ECS);
        put_be16(out + 2, (uint16_t)(ECS_FIXED + used));
        put_be16(out + 4, ecs->family);
        out[6] = ecs->source;
        out[7] = ecs->scope;
        memcpy(out + 8, ecs->addr, used);
        return 8 + used;
}
