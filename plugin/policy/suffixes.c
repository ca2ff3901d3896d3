/* SPDX-License-Identifier: MIT */
#include "policy/suffixes.h"

#include <endian.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
        SLOTS_LEAST = 16,
        FILTER_SLOTS = 16,
};

void suffixes_init(struct suffixes *set, uint64_t seed)
{
        *set = (struct suffixes){.seed = seed};
}

void suffixes_fini(struct suffixes *set)
{
        free(set->slots);
        free(set->filter);
        free(set->items);
        free(set->names);
        *set = (struct suffixes){0};
}

/* Byte 0 lowest. */
static inline uint64_t load8(const uint8_t *p)
{
        uint64_t word;
        memcpy(&word, p, sizeof word);
        return le64toh(word);
}

static uint32_t hash_of(const struct suffixes *set, const uint8_t *name, size_t len)
{
        return (uint32_t)(XXH3_64bits_withSeed(name, len, set->seed) >> 32);
}

/* The filter has two bits in one word for each name. Half of the slots are used at most, so a quarter of the
 * bits are set at most, and of sixteen names that are not there about one passes. Only the first eight bytes
 * and the length count: that is quick, and tells most names apart. */
struct filter_place {
        uint64_t *word, bits;
};

static inline struct filter_place filter_place(const struct suffixes *set, const uint8_t *name, size_t len)
{
        uint64_t hash = ((load8(name) ^ set->seed) + len) * UINT64_C(0x9e3779b97f4a7c15);
        hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
        return (struct filter_place){&set->filter[(hash >> 32 & set->mask) / FILTER_SLOTS],
                                     UINT64_C(1) << (hash >> 58) | UINT64_C(1) << (hash >> 26 & 63)};
}

/* Names that are too short for it are not in it. */
static inline bool filter_takes(size_t len)
{
        return len >= sizeof(uint64_t);
}

static void filter_put(struct suffixes *set, const uint8_t *name, size_t len)
{
        if (!filter_takes(len))
                return;
        struct filter_place place = filter_place(set, name, len);
        *place.word |= place.bits;
}

static inline bool filter_passes(const struct suffixes *set, const uint8_t *name, size_t len)
{
        if (!filter_takes(len))
                return true;
        struct filter_place place = filter_place(set, name, len);
        return (*place.word & place.bits) == place.bits;
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
        uint64_t *filter = calloc(size / FILTER_SLOTS, sizeof *filter);
        if (!slots || !filter) {
                free(slots);
                free(filter);
                return false;
        }
        free(set->filter);
        set->filter = filter;
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
        for (size_t i = 0; i < set->count; i++) {
                size_t len;
                const uint8_t *name = suffixes_name(set, i, &len);
                filter_put(set, name, len);
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
                set->lengths[len / 64] |= UINT64_C(1) << len % 64;
                if (labels < set->least || set->count == 1)
                        set->least = labels;
                filter_put(set, name, len);
                *slot = (uint64_t)hash << 32 | set->count;
        }
        return &set->items[(uint32_t)*slot - 1].value;
}

static inline bool has_bit(const uint64_t *words, size_t bit)
{
        return words[bit / 64] >> bit % 64 & 1;
}

int64_t suffixes_find(const struct suffixes *set, const uint8_t *name, size_t len)
{
        if (set->count == 0)
                return SUFFIX_NONE;
        size_t at = 0;
        for (unsigned depth = labels_of(name);; depth--) {
                if (has_bit(set->depths, depth) && has_bit(set->lengths, len - at) &&
                    filter_passes(set, name + at, len - at)) {
                        uint64_t slot = *probe(set, hash_of(set, name + at, len - at), name + at, len - at);
                        if (slot != 0)
                                return (int64_t)(uint32_t)slot - 1;
                }
                if (depth <= set->least)
                        return SUFFIX_NONE;
                at += name[at] + 1u;
        }
}
