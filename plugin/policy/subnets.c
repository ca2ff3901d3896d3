/* SPDX-License-Identifier: MIT */
#include "policy/subnets.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "wire/ecs.h"

bool subnet_from_text(const char *text, struct subnet *net)
{
        char addr[INET6_ADDRSTRLEN];
        const char *slash = strchr(text, '/');
        size_t len = slash ? (size_t)(slash - text) : strlen(text);
        if (len >= sizeof addr)
                return false;
        memcpy(addr, text, len);
        addr[len] = '\0';
        memset(net, 0, sizeof *net);
        unsigned most;
        if (inet_pton(AF_INET, addr, net->addr) == 1) {
                net->family = ECS_IPV4;
                most = 32;
        } else if (inet_pton(AF_INET6, addr, net->addr) == 1) {
                net->family = ECS_IPV6;
                most = 128;
        } else {
                return false;
        }
        unsigned prefix = most;
        if (slash) {
                const char *p = slash + 1;
                for (prefix = 0; *p >= '0' && *p <= '9' && prefix <= most; p++)
                        prefix = prefix * 10 + (unsigned)(*p - '0');
                if (p == slash + 1 || *p != '\0' || prefix > most)
                        return false;
        }
        net->prefix = (uint8_t)prefix;
        uint8_t masked[16];
        memcpy(masked, net->addr, sizeof masked);
        wire_ecs_mask(masked, prefix);
        return memcmp(masked, net->addr, sizeof masked) == 0;
}

bool subnet_has(const struct subnet *net, const uint8_t *addr, size_t len)
{
        if (len != (net->family == ECS_IPV4 ? 4 : 16))
                return false;
        unsigned whole = net->prefix / 8u, rest = net->prefix % 8u;
        if (memcmp(addr, net->addr, whole) != 0)
                return false;
        return rest == 0 || ((addr[whole] ^ net->addr[whole]) >> (8 - rest)) == 0;
}

static subnet_address number(const uint8_t *addr, size_t len)
{
        subnet_address n = 0;
        for (size_t i = 0; i < len; i++)
                n = n << 8 | addr[i];
        return n;
}

void subnets_fini(struct subnets *set)
{
        free(set->items);
        for (unsigned i = 0; i < 2; i++) {
                free(set->row[i].first);
                free(set->row[i].value);
        }
        free(set->range4);
        free(set->place4);
        *set = (struct subnets){0};
}

bool subnets_add(struct subnets *set, const struct subnet *net, uint32_t value)
{
        if (set->count == set->room) {
                size_t room = set->room ? set->room * 2 : 16;
                void *items = realloc(set->items, room * sizeof *set->items);
                if (!items)
                        return false;
                set->items = items;
                set->room = room;
        }
        unsigned bits = net->family == ECS_IPV4 ? 32 : 128;
        subnet_address first = number(net->addr, bits / 8);
        subnet_address size = net->prefix == 0 ? 0 : (subnet_address)1 << (bits - net->prefix);
        subnet_address last = net->prefix == 0
                                  ? (bits == 32 ? (subnet_address)UINT32_MAX : ~(subnet_address)0)
                                  : first + size - 1;
        set->items[set->count++] = (struct subnet_item){first, last, value, net->family};
        return true;
}

/* Outer before inner. */
static int in_order(const void *a, const void *b)
{
        const struct subnet_item *x = a, *y = b;
        if (x->family != y->family)
                return x->family < y->family ? -1 : 1;
        if (x->first != y->first)
                return x->first < y->first ? -1 : 1;
        return x->last > y->last ? -1 : x->last < y->last;
}

struct row_builder {
        struct subnets *set;
        unsigned row;
};

/* From `first` on it is `value`. */
static void emit(const struct row_builder *b, subnet_address first, uint32_t value)
{
        size_t n = b->set->row[b->row].count;
        if (n > 0 && b->set->row[b->row].first[n - 1] == first)
                n--;
        b->set->row[b->row].count = n;
        if (n > 0 && b->set->row[b->row].value[n - 1] == value)
                return;
        b->set->row[b->row].first[n] = first;
        b->set->row[b->row].value[n] = value;
        b->set->row[b->row].count = n + 1;
}

static bool build_row(struct subnets *set, unsigned row, const struct subnet_item *items, size_t count)
{
        enum {
                DEPTH = 130, /* networks inside each other, equal ones joined */
        };
        const struct row_builder b = {set, row};
        struct subnet_item stack[DEPTH];
        size_t depth = 0;
        set->row[row].first = calloc(2 * count + 1, sizeof *set->row[row].first);
        set->row[row].value = calloc(2 * count + 1, sizeof *set->row[row].value);
        if (!set->row[row].first || !set->row[row].value)
                return false;
        set->row[row].count = 0;
        emit(&b, 0, 0);
        for (size_t i = 0; i <= count; i++) {
                /* Networks end where this one begins, or all of them after the last one. */
                while (depth > 0 && (i == count || stack[depth - 1].last < items[i].first)) {
                        depth--;
                        subnet_address next = stack[depth].last + 1;
                        uint32_t outer = depth > 0 ? stack[depth - 1].value : 0;
                        if (next != 0 && (depth == 0 || stack[depth - 1].last >= next))
                                emit(&b, next, outer);
                }
                if (i == count)
                        break;
                if (depth > 0 && stack[depth - 1].first == items[i].first &&
                    stack[depth - 1].last == items[i].last)
                        depth--;
                stack[depth++] = items[i];
                emit(&b, items[i].first, items[i].value);
        }
        return true;
}

/* Make the row of IPv4 ready for searches: about one range, or less, for each value of the first bits. */
static bool index_row4(struct subnets *set)
{
        enum {
                BITS_LEAST = 8,
                BITS_MOST = 16,
        };
        size_t count = set->row[0].count;
        unsigned bits = BITS_LEAST;
        while (bits < BITS_MOST && (size_t)1 << bits < 2 * count)
                bits++;
        set->shift4 = 32 - bits;
        set->range4 = malloc(count * sizeof *set->range4);
        set->place4 = malloc((((size_t)1 << bits) + 1) * sizeof *set->place4);
        if (!set->range4 || !set->place4)
                return false;
        for (size_t i = 0; i < count; i++)
                set->range4[i] = (struct subnet_range){(uint32_t)set->row[0].first[i], set->row[0].value[i]};
        free(set->row[0].first);
        free(set->row[0].value);
        set->row[0].first = NULL;
        set->row[0].value = NULL;
        uint32_t at = 0;
        for (uint32_t i = 0; i < 1u << bits; i++) {
                while (at + 1 < count && set->range4[at + 1].first <= i << set->shift4)
                        at++;
                set->place4[i] = at;
        }
        set->place4[(size_t)1 << bits] = (uint32_t)count - 1;
        return true;
}

bool subnets_finish(struct subnets *set)
{
        if (set->count == 0)
                return true;
        qsort(set->items, set->count, sizeof *set->items, in_order);
        size_t ipv4 = 0;
        while (ipv4 < set->count && set->items[ipv4].family == ECS_IPV4)
                ipv4++;
        bool built =
            build_row(set, 0, set->items, ipv4) && build_row(set, 1, set->items + ipv4, set->count - ipv4);
        free(set->items);
        set->items = NULL;
        set->room = 0;
        return built && index_row4(set);
}

uint32_t subnets_find6(const struct subnets *set, const uint8_t *addr)
{
        const subnet_address *first = set->row[1].first;
        subnet_address want = number(addr, 16);
        size_t at = 0;
        for (size_t left = set->row[1].count; left > 1;) {
                size_t half = left / 2;
                at += first[at + half] <= want ? half : 0;
                left -= half;
        }
        return set->row[1].value[at];
}
