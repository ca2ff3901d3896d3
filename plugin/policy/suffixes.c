/* SPDX-License-Identifier: MIT */
#include "policy/suffixes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
        SLOTS_LEAST = 16,
        LABELS = 128, /* no name has more, the root included */
};

void suffixes_init(struct suffixes *set, uint64_t seed)
{
        *set = (struct suffixes){.seed = seed};
}

void suffixes_fini(struct suffixes *set)
{
        free(set->slots);
        free(set->items);
        free(set->names);
        *set = (struct suffixes){0};
}

static uint32_t hash_of(const struct suffixes *set, const uint8_t *name, size_t len)
{
        return (uint32_t)(XXH3_64bits_withSeed(name, len, set->seed) >> 32);
}

/* The slot with this name, or the free one where it belongs. */
static inline uint64_t *probe(const struct suffixes *set, uint32_t hash, const uint8_t *name, size_t len)
{
        for (uint64_t at = hash & set->mask;; at = (at + 1) & set->mask) {
                uint64_t slot = set->slots[at];
                if (slot == 0)
                        return &set->slots[at];
                if (slot >> 32 != hash)
                        continue;
                const uint8_t *there = set->names + set->items[(uint32_t)slot - 1].name;
                if (*there == len && memcmp(there + 1, name, len) == 0)
                        return &set->slots[at];
        }
}

/* At most half of the slots are ever used. */
static bool grow_slots(struct suffixes *set)
{
        uint64_t size = set->slots ? (set->mask + 1) * 2 : SLOTS_LEAST;
        uint64_t *slots = calloc(size, sizeof *slots), *old = set->slots;
        if (!slots)
                return false;
        uint64_t old_size = old ? set->mask + 1 : 0;
        set->mask = size - 1;
        for (uint64_t i = 0; i < old_size; i++) {
                if (old[i] == 0)
                        continue;
                uint64_t at = (old[i] >> 32) & set->mask;
                while (slots[at] != 0)
                        at = (at + 1) & set->mask;
                slots[at] = old[i];
        }
        free(old);
        set->slots = slots;
        return true;
}

static bool reserve(struct suffixes *set, size_t len)
{
        if (!set->slots || (set->count + 1) * 2 > set->mask + 1)
                if (set->count >= UINT32_MAX / 2 || !grow_slots(set))
                        return false;
        if (set->count == set->items_room) {
                size_t room = set->items_room ? set->items_room * 2 : 16;
                void *items = realloc(set->items, room * sizeof *set->items);
                if (!items)
                        return false;
                set->items = items;
                set->items_room = room;
        }
        if (set->names_len + 1 + len > set->names_room) {
                size_t room = set->names_room ? set->names_room * 2 : 512;
                uint8_t *names = room <= UINT32_MAX ? realloc(set->names, room) : NULL;
                if (!names)
                        return false;
                set->names = names;
                set->names_room = room;
        }
        return true;
}

static unsigned labels_of(const uint8_t *name)
{
        unsigned labels = 0;
        for (; *name != 0; name += *name + 1u)
                labels++;
        return labels;
}

uint32_t *suffixes_put(struct suffixes *set, const uint8_t *name, size_t len)
{
        if (!reserve(set, len))
                return NULL;
        uint32_t hash = hash_of(set, name, len);
        uint64_t *slot = probe(set, hash, name, len);
        if (*slot == 0) {
                unsigned labels = labels_of(name);
                set->items[set->count] = (struct suffix_item){.name = (uint32_t)set->names_len};
                set->names[set->names_len] = (uint8_t)len;
                memcpy(set->names + set->names_len + 1, name, len);
                set->names_len += 1 + len;
                set->count++;
                set->depths[labels / 64] |= UINT64_C(1) << labels % 64;
                *slot = (uint64_t)hash << 32 | set->count;
        }
        return &set->items[(uint32_t)*slot - 1].value;
}

int64_t suffixes_find(const struct suffixes *set, const uint8_t *name, size_t len)
{
        uint8_t start[LABELS];
        unsigned labels = 0, at = 0;
        if (set->count == 0)
                return SUFFIX_NONE;
        for (; name[at] != 0; at += name[at] + 1u)
                start[labels++] = (uint8_t)at;
        start[labels] = (uint8_t)at;
        for (unsigned word = labels / 64 + 1; word-- > 0;) {
                uint64_t depths = set->depths[word];
                if (word == labels / 64 && labels % 64 != 63)
                        depths &= (UINT64_C(2) << labels % 64) - 1;
                while (depths != 0) {
                        unsigned bit = 63u - (unsigned)__builtin_clzll(depths);
                        depths ^= UINT64_C(1) << bit;
                        unsigned from = start[labels - (word * 64 + bit)];
                        uint64_t slot =
                            *probe(set, hash_of(set, name + from, len - from), name + from, len - from);
                        if (slot != 0)
                                return (int64_t)(uint32_t)slot - 1;
                }
        }
        return SUFFIX_NONE;
}
