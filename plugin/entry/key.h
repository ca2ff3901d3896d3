/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: the canonical key: what shapes the answer upstream, and nothing else (B01-B05). One struct is
 * made by one function from one description of the query, and serves lookup, insert and token alike. */
#ifndef ENTRY_KEY_H
#define ENTRY_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "sardine.h"
#include "wire/ecs.h"

enum {
        KEY_AT_EXTRA_LEN = 0,
        KEY_AT_PAGE = 1, /* network code of the page, or KEY_NO_PAGE */
        /* From here on to the end of the name it is the question. */
        KEY_AT_TYPE = 2,  /* 2 bytes */
        KEY_AT_FLAGS = 4, /* ENTRY_RD | ENTRY_CD */
        KEY_AT_NAME_LEN = 5,
        KEY_AT_NAME = 6,
        KEY_NO_PAGE = 0xff,
        PAGE_NUMBER = 2,
        KEY_MAX = KEY_AT_NAME + 255 + 255 + PAGE_NUMBER,
};

/* The bytes are the key: fixed part, folded name, extra, page number. Two keys are equal when their bytes
 * are; the lengths up front make that unambiguous.
 * extra is empty, or: tag length (1), tag, then for each splitting option in the order of the cache's list:
 * code (2), length (1), data; then, if something has been added to the host's tag: 0 (2), 1 (1), the length
 * of the host's part (1). */
struct entry_key {
        uint16_t len;
        uint8_t bytes[KEY_MAX];
};

static inline const uint8_t *entry_key_name(const struct entry_key *key, size_t *len)
{
        *len = key->bytes[KEY_AT_NAME_LEN];
        return key->bytes + KEY_AT_NAME;
}

/* `name` is a valid uncompressed name in any case, `extra` at most 255 bytes. No ECS. */
void entry_key_init(struct entry_key *key, const uint8_t *name, size_t name_len, uint16_t qtype, bool rd,
                    bool cd, const uint8_t *extra, size_t extra_len);

/* Add `len` bytes to the tag. Such a key is never the same as one with another tag from the host, whatever
 * the two together spell. false: tag or key would be too long; the key is as it was. */
bool entry_key_add_tag(struct entry_key *key, const char *tag, size_t len);

/* A tag that is added again and again, made ready for that: as the extra of a key that has none, and what it
 * makes of a question's hash. */
enum {
        KEY_TAG_BLOCK = 16,
        KEY_TAG_MARK = 4, /* what stands behind a tag that has been added to */
        KEY_TAG_ROOM =
            (1 + SARDINE_TAG_MAX + KEY_TAG_MARK + KEY_TAG_BLOCK - 1) / KEY_TAG_BLOCK * KEY_TAG_BLOCK,
};
struct entry_tag {
        _Alignas(KEY_TAG_BLOCK) uint8_t extra[KEY_TAG_ROOM];
        uint64_t hash; /* with a secret, see entry_tag_hash() */
        uint8_t len;   /* of `extra`; 0: no tag */
};
_Static_assert(KEY_AT_NAME + 255 + KEY_TAG_ROOM <= KEY_MAX, "any name has room for whole blocks");

/* `len` is at most SARDINE_TAG_MAX. */
void entry_tag_init(struct entry_tag *tag, const char *text, size_t len);

/* Like entry_key_add_tag() of that text, for a key without extra. */
static inline void entry_key_set_tag(struct entry_key *key, const struct entry_tag *tag)
{
        size_t at = 0;
        do /* in as few pieces as possible: what has been written in pieces cannot be read at once */
                memcpy(key->bytes + key->len + at, tag->extra + at, KEY_TAG_BLOCK);
        while ((at += KEY_TAG_BLOCK) < tag->len);
        key->bytes[KEY_AT_EXTRA_LEN] = tag->len;
        key->len += tag->len;
}

/* Network codes, see LAYOUT.md. */
static inline uint8_t network_code(uint8_t family, uint8_t prefix)
{
        return (uint8_t)(family == ECS_IPV6 ? 64 + prefix : prefix);
}
static inline uint8_t network_family(uint8_t code)
{
        return code >= 64 ? ECS_IPV6 : ECS_IPV4;
}
static inline uint8_t network_prefix(uint8_t code)
{
        return code >= 64 ? code - 64 : code;
}
/* Bytes of the address that the prefix needs. */
static inline size_t network_bytes(uint8_t code)
{
        return (network_prefix(code) + 7u) / 8u;
}

/* Make it the key of a page of networks of this prefix length (replacing any page set before). */
void entry_key_set_page(struct entry_key *key, uint8_t code, uint16_t number);
/* Make it the key of the answer for everybody again. */
void entry_key_clear_page(struct entry_key *key);

/* Are these bytes (from a token: hostile) a key that entry_key_init could have made? Keys of pages are not.
 */
bool entry_key_check(const uint8_t *bytes, size_t len);

/* Keyed hash of a (masked) network: which page it is in, and what marks it. */
uint64_t entry_network_hash(uint8_t code, const uint8_t addr[16], const uint8_t *secret, size_t secret_len);

/* Keyed hash of the whole key. `secret` is random, at least 136 bytes, one for each cache (B02). */
uint64_t entry_key_hash(const struct entry_key *key, const uint8_t *secret, size_t secret_len);

/* The same, of a key that is a question and no more. It reads none of the bytes that entry_key_init() has
 * written one by one: that would take the processor a while. */
uint64_t entry_key_hash_question(const struct entry_key *key, const uint8_t *secret, size_t secret_len);

/* The hash of a key to which entry_key_set_tag() adds is its question's ^ tag->hash. */
void entry_tag_hash(struct entry_tag *tag, const uint8_t *secret, size_t secret_len);

/* Is `entry` the entry of exactly this key? A full comparison. `key` is a struct entry_key: the shape of the
 * function is the store's match callback. */
bool entry_key_match(const void *key, const uint8_t *entry);

#endif
