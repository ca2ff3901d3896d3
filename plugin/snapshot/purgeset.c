/* SPDX-License-Identifier: MIT */
#include "snapshot/purgeset.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "entry/page.h"
#include "snapshot/purgerecord.h"
#include "wire/bytes.h"

enum {
        FIRST_HEADS = 64,
        SEED_TAG = 1,
        SEED_GROUP = 2,
};

struct purgeset_node {
        size_t at; /* of the record */
        uint64_t hash;
        uint32_t next;
};

void purgeset_fini(struct purgeset *set)
{
        free(set->bytes);
        free(set->nodes);
        free(set->heads);
        *set = (struct purgeset){0};
}

/* A purge of any name is one of all below the root. */
static const uint8_t root[1] = {0};

static uint64_t hash_name(const uint8_t *name, size_t len)
{
        return len ? XXH3_64bits(name, len) : XXH3_64bits(root, sizeof root);
}

/* `text` begins with its length. */
static uint64_t hash_text(const uint8_t *text, uint64_t seed)
{
        return XXH3_64bits_withSeed(text, 1u + text[0], seed);
}

/* What an entry must have for this record to remove it. */
static uint64_t hash_record(const uint8_t *record)
{
        const uint8_t *tag = purge_record_tag(record), *group = purge_record_group(record);
        return hash_name(record + PURGE_AT_NAME, record[PURGE_AT_NAME_LEN]) +
               (record[PURGE_AT_FLAGS] & PURGE_TAG ? hash_text(tag, SEED_TAG) : 0) +
               (group[0] ? hash_text(group, SEED_GROUP) : 0);
}

static bool more_heads(struct purgeset *set)
{
        uint32_t n = set->heads ? (set->mask + 1) * 2 : FIRST_HEADS;
        uint32_t *heads = calloc(n, sizeof *heads);
        if (!heads)
                return false;
        free(set->heads);
        set->heads = heads;
        set->mask = n - 1;
        for (uint32_t i = 1; i <= set->count; i++) {
                struct purgeset_node *node = &set->nodes[i];
                node->next = heads[node->hash & set->mask];
                heads[node->hash & set->mask] = i;
        }
        return true;
}

/* Room for `len` bytes more, and for one record more. */
static bool make_room(struct purgeset *set, size_t len)
{
        if (set->room - set->len < len) {
                size_t room = set->room * 2 + len;
                uint8_t *bytes = realloc(set->bytes, room);
                if (!bytes)
                        return false;
                set->bytes = bytes;
                set->room = room;
        }
        if (set->count + 1 >= set->nodes_room) {
                uint32_t room = set->nodes_room * 2 + FIRST_HEADS;
                struct purgeset_node *nodes = realloc(set->nodes, room * sizeof *nodes);
                if (!nodes)
                        return false;
                set->nodes = nodes;
                set->nodes_room = room;
        }
        return (set->heads && set->count <= set->mask) || more_heads(set);
}

static bool is_there(const struct purgeset *set, uint64_t hash, const uint8_t *record, size_t len)
{
        for (uint32_t i = set->heads ? set->heads[hash & set->mask] : 0; i; i = set->nodes[i].next) {
                const uint8_t *other = set->bytes + set->nodes[i].at;
                if (set->nodes[i].hash == hash && get_be16(other) == len && memcmp(other, record, len) == 0)
                        return true;
        }
        return false;
}

bool purgeset_add(struct purgeset *set, const uint8_t *bytes, size_t len)
{
        for (size_t at = 0, size; at < len; at += size) {
                const uint8_t *record = bytes + at;
                size = get_be16(record);
                uint64_t hash = hash_record(record);
                if (is_there(set, hash, record, size))
                        continue;
                if (!make_room(set, size))
                        return false;
                struct purgeset_node *node = &set->nodes[++set->count];
                uint32_t *head = &set->heads[hash & set->mask];
                *node = (struct purgeset_node){.at = set->len, .hash = hash, .next = *head};
                *head = set->count;
                memcpy(set->bytes + set->len, record, size);
                set->len += size;
        }
        return true;
}

static bool any_of(const struct purgeset *set, uint64_t hash, const struct entry_key *key,
                   const struct entry_view *answer)
{
        for (uint32_t i = set->heads[hash & set->mask]; i; i = set->nodes[i].next)
                if (set->nodes[i].hash == hash &&
                    purge_record_removes(set->bytes + set->nodes[i].at, key, answer))
                        return true;
        return false;
}

/* A record names all of what it is found by, or leaves some out. */
static bool removes_answer(const struct purgeset *set, const struct entry_key *key,
                           const struct entry_view *answer)
{
        size_t len;
        const uint8_t *name = entry_key_name(key, &len);
        const uint8_t *tag = key->bytes[KEY_AT_EXTRA_LEN] ? name + len : root;
        const uint64_t hash_tag = hash_text(tag, SEED_TAG);
        uint64_t hash_group = 0;
        if (!answer->no_answer && answer->group_len) {
                uint8_t group[256] = {answer->group_len};
                memcpy(group + 1, answer->group, answer->group_len);
                hash_group = hash_text(group, SEED_GROUP);
        }
        for (;;) {
                uint64_t hash = hash_name(name, len);
                if (any_of(set, hash, key, answer) || any_of(set, hash + hash_tag, key, answer))
                        return true;
                if (hash_group && (any_of(set, hash + hash_group, key, answer) ||
                                   any_of(set, hash + hash_tag + hash_group, key, answer)))
                        return true;
                if (len <= 1)
                        return false;
                len -= 1u + name[0];
                name += 1u + name[0];
        }
}

bool purgeset_removes(const struct purgeset *set, const struct entry_checked *checked, const uint8_t *entry)
{
        struct entry_view answer;
        if (set->count == 0)
                return false;
        if (!checked->page) {
                entry_view_init(&answer, entry);
                return removes_answer(set, &checked->key, &answer);
        }
        struct page_view networks;
        const uint8_t *answers[PAGE_ANSWERS_MAX];
        page_view_init(&networks, entry);
        page_answers(&networks, answers);
        for (unsigned i = 0; i < networks.answer_count; i++) {
                entry_view_init(&answer, answers[i]);
                if (removes_answer(set, &checked->key, &answer))
                        return true;
        }
        return false;
}
