/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: see key.h. */
#include "entry/key.h"

#include <endian.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "entry/header.h"
#include "entry/stored.h"
#include "sardine.h"
#include "wire/bytes.h"
#include "wire/name.h"

void entry_key_init(struct entry_key *key, const uint8_t *name, size_t name_len, uint16_t qtype, bool rd,
                    bool cd, const uint8_t *extra, size_t extra_len)
{
        put_be16(key->bytes + KEY_AT_TYPE, qtype);
        key->bytes[KEY_AT_FLAGS] = (uint8_t)((rd ? ENTRY_RD : 0) | (cd ? ENTRY_CD : 0));
        key->bytes[KEY_AT_NAME_LEN] = (uint8_t)name_len;
        key->bytes[KEY_AT_EXTRA_LEN] = (uint8_t)extra_len;
        key->bytes[KEY_AT_PAGE] = KEY_NO_PAGE;
        wire_name_fold(key->bytes + KEY_AT_NAME, name, name_len);
        if (extra_len > 0)
                memcpy(key->bytes + KEY_AT_NAME + name_len, extra, extra_len);
        key->len = (uint16_t)(KEY_AT_NAME + name_len + extra_len);
}

/* As an option of a code that no EDNS option has. */
static void put_mark(uint8_t *p, size_t host)
{
        put_be16(p, 0);
        p[2] = 1;
        p[3] = (uint8_t)host;
}

void entry_tag_init(struct entry_tag *tag, const char *text, size_t len)
{
        memset(tag, 0, sizeof *tag);
        if (len == 0)
                return;
        tag->len = (uint8_t)(1 + len + KEY_TAG_MARK);
        tag->extra[0] = (uint8_t)len;
        memcpy(tag->extra + 1, text, len);
        put_mark(tag->extra + 1 + len, 0);
}

bool entry_key_add_tag(struct entry_key *key, const char *tag, size_t len)
{
        uint8_t *extra = key->bytes + KEY_AT_NAME + key->bytes[KEY_AT_NAME_LEN];
        size_t extra_len = key->bytes[KEY_AT_EXTRA_LEN];
        size_t host = extra_len ? extra[0] : 0, options = extra_len ? extra_len - 1 - host : 0;
        size_t whole = 1 + host + len + options + KEY_TAG_MARK;
        if (host + len > SARDINE_TAG_MAX || whole > 255)
                return false;
        uint8_t *end = extra + 1 + host + len;
        memmove(end, extra + 1 + host, options);
        memcpy(extra + 1 + host, tag, len);
        put_mark(end + options, host);
        extra[0] = (uint8_t)(host + len);
        key->bytes[KEY_AT_EXTRA_LEN] = (uint8_t)whole;
        key->len = (uint16_t)(KEY_AT_NAME + key->bytes[KEY_AT_NAME_LEN] + whole);
        return true;
}

/* Where the page's number stands: after the name and extra. */
static size_t page_at(const struct entry_key *key)
{
        return KEY_AT_NAME + (size_t)key->bytes[KEY_AT_NAME_LEN] + key->bytes[KEY_AT_EXTRA_LEN];
}

void entry_key_set_page(struct entry_key *key, uint8_t code, uint16_t number)
{
        size_t at = page_at(key);
        key->bytes[KEY_AT_PAGE] = code;
        put_be16(key->bytes + at, number);
        key->len = (uint16_t)(at + PAGE_NUMBER);
}

void entry_key_clear_page(struct entry_key *key)
{
        key->bytes[KEY_AT_PAGE] = KEY_NO_PAGE;
        key->len = (uint16_t)page_at(key);
}

enum {
        KEY_OPTION_FIXED = 3, /* code and length of an option in the key */
};

/* Is it a tag and options, see key.h? The walk shows the tag. */
static bool extra_check(const uint8_t *extra, size_t len)
{
        if (len == 0)
                return true;
        size_t at = 1 + (size_t)extra[0];
        if (len == 1 || extra[0] > SARDINE_TAG_MAX)
                return false;
        while (at + KEY_OPTION_FIXED <= len)
                at += KEY_OPTION_FIXED + (size_t)extra[at + 2];
        return at == len;
}

bool entry_key_check(const uint8_t *bytes, size_t len)
{
        if (len <= KEY_AT_NAME || len > KEY_MAX)
                return false;
        size_t name_len = bytes[KEY_AT_NAME_LEN];
        const uint8_t *name = bytes + KEY_AT_NAME;
        if ((bytes[KEY_AT_FLAGS] & ~(ENTRY_RD | ENTRY_CD)) != 0 || name_len == 0 ||
            wire_name_length(name, bytes + len) != name_len || !wire_name_is_folded(name, name_len))
                return false;
        size_t at = KEY_AT_NAME + name_len + bytes[KEY_AT_EXTRA_LEN];
        return at == len && bytes[KEY_AT_PAGE] == KEY_NO_PAGE &&
               extra_check(name + name_len, bytes[KEY_AT_EXTRA_LEN]);
}

uint64_t entry_network_hash(uint8_t code, const uint8_t addr[16], const uint8_t *secret, size_t secret_len)
{
        uint8_t bytes[17] = {code};
        memcpy(bytes + 1, addr, 16);
        return XXH3_64bits_withSecret(bytes, sizeof bytes, secret, secret_len);
}

/* A key's hash is its question's, and the rest's if there is one. */
static uint64_t question_hash(const struct entry_key *key, size_t name_len, const uint8_t *secret,
                              size_t secret_len)
{
        return XXH3_64bits_withSecret(key->bytes + KEY_AT_TYPE, KEY_AT_NAME - KEY_AT_TYPE + name_len, secret,
                                      secret_len);
}

/* Of extra, and of a page's number if it is the key of one. */
static uint64_t rest_hash(const uint8_t *rest, size_t len, uint8_t page, const uint8_t *secret,
                          size_t secret_len)
{
        return (XXH3_64bits_withSecret(rest, len, secret, secret_len) + page) * UINT64_C(0x9e3779b97f4a7c15);
}

uint64_t entry_key_hash_question(const struct entry_key *key, const uint8_t *secret, size_t secret_len)
{
        return question_hash(key, key->len - KEY_AT_NAME, secret, secret_len);
}

uint64_t entry_key_hash(const struct entry_key *key, const uint8_t *secret, size_t secret_len)
{
        size_t name_len = key->bytes[KEY_AT_NAME_LEN], at = KEY_AT_NAME + name_len;
        uint64_t question = question_hash(key, name_len, secret, secret_len);
        if (key->len == at)
                return question;
        return question ^
               rest_hash(key->bytes + at, key->len - at, key->bytes[KEY_AT_PAGE], secret, secret_len);
}

void entry_tag_hash(struct entry_tag *tag, const uint8_t *secret, size_t secret_len)
{
        tag->hash = tag->len ? rest_hash(tag->extra, tag->len, KEY_NO_PAGE, secret, secret_len) : 0;
}

/* Are the `len` > 0 bytes before the two ends the same? 8 bytes before each can be read: a label is short,
 * and a call or a loop over its bytes would take longer than all the rest. They may reach into the header's
 * expiry and life, which a writer may just be moving: those bits are shifted out, so the race means nothing.
 */
__attribute__((no_sanitize("thread"))) static inline bool same_tail(const uint8_t *a_end,
                                                                    const uint8_t *b_end, size_t len)
{
        uint64_t a, b;
        for (; len > sizeof a; len -= sizeof a) {
                memcpy(&a, a_end - len, sizeof a);
                memcpy(&b, b_end - len, sizeof b);
                if (a != b)
                        return false;
        }
        memcpy(&a, a_end - sizeof a, sizeof a);
        memcpy(&b, b_end - sizeof b, sizeof b);
        return le64toh(a ^ b) >> 8 * (sizeof a - len) == 0;
}

/* Does the stored name of a question say `name`? A header goes before each of them. */
static bool same_name(const uint8_t *stored, const uint8_t *name, size_t len)
{
        const uint8_t *end = name + len;
        for (;;) {
                uint8_t byte = *stored++;
                if (stored_is_label(byte)) {
                        if (byte != *name)
                                return false;
                        if (byte == 0)
                                return true;
                        stored += byte;
                        name += byte + 1u;
                        if (!same_tail(stored, name, byte))
                                return false;
                } else {
                        const struct dict_item *item = dict_item(byte);
                        if (item->len > end - name)
                                return false;
                        name += item->len;
                        if (!same_tail(item->wire + item->len, name, item->len))
                                return false;
                        if (dict_is_ending(byte))
                                return true;
                }
        }
}

/* The parts of the key that the ext byte announces; what it does not announce is absent. Moves on to the
 * name. */
static bool same_ext(const struct entry_key *key, const uint8_t **p)
{
        const uint8_t *at = *p;
        uint8_t ext = *at++;
        size_t extra_len = key->bytes[KEY_AT_EXTRA_LEN];
        uint8_t code = key->bytes[KEY_AT_PAGE];
        const uint8_t *extra = key->bytes + KEY_AT_NAME + key->bytes[KEY_AT_NAME_LEN];

        if (ext & EXT_RCODE)
                at++;
        uint8_t want = (extra_len ? EXT_EXTRA : 0) | (code != KEY_NO_PAGE ? EXT_PAGE : 0);
        if ((ext & (EXT_EXTRA | EXT_PAGE)) != want)
                return false;
        if (ext & EXT_EXTRA) {
                if (*at != extra_len)
                        return false;
                at += 1 + extra_len;
                if (!same_tail(at, extra + extra_len, extra_len))
                        return false;
        }
        if (ext & EXT_PAGE) {
                if (*at != code || memcmp(at + 1, extra + extra_len, PAGE_NUMBER) != 0)
                        return false;
                at += 1 + PAGE_NUMBER;
        }
        *p = at;
        return true;
}

bool entry_key_match(const void *opaque, const uint8_t *entry)
{
        const struct entry_key *key = opaque;
        uint16_t qtype = get_be16(key->bytes + KEY_AT_TYPE);
        uint8_t flags = entry[ENTRY_AT_FLAGS];
        const uint8_t *p = entry + ENTRY_HEADER;

        if (entry[ENTRY_AT_TYPE] != (qtype < 256 ? qtype : 0) ||
            (flags & (ENTRY_RD | ENTRY_CD)) != key->bytes[KEY_AT_FLAGS])
                return false;
        if (entry[ENTRY_AT_SIZE] == 0)
                p += ENTRY_SIZE32;
        if (entry[ENTRY_AT_TYPE] == 0) {
                if (get_be16(p) != qtype)
                        return false;
                p += 2;
        }
        if (flags & ENTRY_EXT) {
                if (!same_ext(key, &p))
                        return false;
        } else if (key->bytes[KEY_AT_EXTRA_LEN] != 0 || key->bytes[KEY_AT_PAGE] != KEY_NO_PAGE) {
                return false;
        }
        return same_name(p, key->bytes + KEY_AT_NAME, key->bytes[KEY_AT_NAME_LEN]);
}
