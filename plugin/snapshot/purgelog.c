/* SPDX-License-Identifier: MIT */
#include "snapshot/purgelog.h"

#include <stdlib.h>
#include <string.h>

#include "entry/page.h"
#include "entry/view.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/name.h"

/* A record: length of the whole (2), flags, type (2; 0: any), rcode (2), name length, name, tag length, tag,
 * group length, group. */
enum {
        AT_FLAGS = 2,
        AT_TYPE = 3,
        AT_RCODE = 5,
        AT_NAME_LEN = 7,
        AT_NAME = 8,
        RECORD_LEAST = 10,
        FLAG_BELOW = 1,
        FLAG_TAG = 2,
        FLAG_RCODE = 4,
        FLAGS = 7,
        ROOM_FIRST = 8 * PURGE_MAX,
};

void purgelog_fini(struct purgelog *purges)
{
        free(purges->bytes);
        *purges = (struct purgelog){0};
}

bool purgelog_begin(struct purgelog *purges, uint64_t *since)
{
        if (!purges->bytes) {
                purges->bytes = malloc(ROOM_FIRST);
                if (!purges->bytes)
                        return false;
                purges->room = ROOM_FIRST;
        }
        purges->users++;
        *since = purges->start + purges->len;
        return true;
}

void purgelog_end(struct purgelog *purges)
{
        if (--purges->users > 0)
                return;
        purges->start += purges->len;
        free(purges->bytes);
        purges->bytes = NULL;
        purges->len = purges->room = 0;
}

void purgelog_forget(struct purgelog *purges, uint64_t before)
{
        size_t len;
        if (purges->users > 1)
                return;
        const uint8_t *rest = purgelog_since(purges, before, &len);
        memmove(purges->bytes, rest, len);
        purges->len = len;
        purges->start = before;
}

const uint8_t *purgelog_since(const struct purgelog *purges, uint64_t since, size_t *len)
{
        size_t at = (size_t)(since - purges->start);
        *len = purges->len - at;
        return purges->bytes + at;
}

size_t purgelog_write(const struct sardine_selector *selector, uint8_t out[PURGE_MAX])
{
        static const struct sardine_selector everything;
        const struct sardine_selector *s = selector ? selector : &everything;
        size_t name_len = s->name ? s->name_len : 0, tag_len = s->use_tag ? s->tag_len : 0;
        size_t len = RECORD_LEAST + name_len + tag_len + s->group_len;
        put_be16(out, (uint16_t)len);
        out[AT_FLAGS] = (uint8_t)((s->below ? FLAG_BELOW : 0) | (s->use_tag ? FLAG_TAG : 0) |
                                  (s->use_rcode ? FLAG_RCODE : 0));
        put_be16(out + AT_TYPE, s->qtype == DNS_ANY ? 0 : (uint16_t)s->qtype);
        put_be16(out + AT_RCODE, (uint16_t)s->rcode);
        out[AT_NAME_LEN] = (uint8_t)name_len;
        if (name_len)
                wire_name_fold(out + AT_NAME, s->name, name_len);
        out[AT_NAME + name_len] = (uint8_t)tag_len;
        if (tag_len)
                memcpy(out + AT_NAME + name_len + 1, s->tag, tag_len);
        uint8_t *group = out + AT_NAME + name_len + 1 + tag_len;
        group[0] = (uint8_t)s->group_len;
        if (s->group_len)
                memcpy(group + 1, s->group, s->group_len);
        return len;
}

/* Without memory everything is forgotten, and that everything was purged is what is left to say: the room for
 * that is always there. */
void purgelog_note(struct purgelog *purges, const struct sardine_selector *selector)
{
        if (purges->users == 0)
                return;
        if (purges->room - purges->len < 2 * PURGE_MAX) {
                size_t room = purges->room * 2;
                uint8_t *bytes = realloc(purges->bytes, room);
                if (bytes) {
                        purges->bytes = bytes;
                        purges->room = room;
                } else if (purges->room - purges->len < PURGE_MAX) {
                        return; /* the last record says it already */
                } else {
                        selector = NULL;
                }
        }
        purges->len += purgelog_write(selector, purges->bytes + purges->len);
}

size_t purgelog_check(const uint8_t *bytes, size_t len)
{
        size_t at = 0;
        while (len - at >= RECORD_LEAST) {
                const uint8_t *p = bytes + at;
                size_t size = get_be16(p), least = RECORD_LEAST + p[AT_NAME_LEN], name_len = p[AT_NAME_LEN];
                if (size > len - at || size < least || p[AT_FLAGS] & ~FLAGS)
                        break;
                least += p[AT_NAME + name_len];
                if (size < least || size != least + p[least - 1] ||
                    (name_len && wire_name_length(p + AT_NAME, p + AT_NAME + name_len) != name_len))
                        break;
                at += size;
        }
        return at;
}

static bool name_selected(const uint8_t *record, const uint8_t *name, size_t len)
{
        size_t want = record[AT_NAME_LEN];
        if (want == 0)
                return true;
        while (len > want && record[AT_FLAGS] & FLAG_BELOW) {
                size_t label = 1u + name[0];
                name += label;
                len -= label;
        }
        return len == want && memcmp(name, record + AT_NAME, len) == 0;
}

static const uint8_t *group_of(const uint8_t *record)
{
        const uint8_t *tag = record + AT_NAME + record[AT_NAME_LEN];
        return tag + 1 + tag[0];
}

static bool answer_selected(const uint8_t *record, const uint8_t *answer)
{
        const uint8_t *group = group_of(record);
        struct entry_view view;
        entry_view_init(&view, answer);
        if (view.no_answer)
                return false;
        if (group[0] && (view.group_len != group[0] || memcmp(view.group, group + 1, group[0]) != 0))
                return false;
        return !(record[AT_FLAGS] & FLAG_RCODE) || view.rcode == get_be16(record + AT_RCODE);
}

/* As for a purge in the cache, a page goes as a whole when one of its answers does. */
static bool page_selected(const uint8_t *record, const uint8_t *entry)
{
        struct page_view networks;
        page_view_init(&networks, entry);
        for (unsigned i = 0; i < networks.count; i++)
                if (answer_selected(record, page_answer(&networks, i)))
                        return true;
        return false;
}

static bool selected(const uint8_t *record, const struct entry_checked *checked, const uint8_t *entry)
{
        const uint8_t *key = checked->key.bytes;
        uint16_t type = get_be16(record + AT_TYPE);
        if (type != 0 && type != get_be16(key + KEY_AT_TYPE))
                return false;
        size_t name_len;
        const uint8_t *name = entry_key_name(&checked->key, &name_len);
        if (!name_selected(record, name, name_len))
                return false;
        if (record[AT_FLAGS] & FLAG_TAG) {
                const uint8_t *tag = record + AT_NAME + record[AT_NAME_LEN], *extra = name + name_len;
                uint8_t len = key[KEY_AT_EXTRA_LEN] ? extra[0] : 0;
                if (len != tag[0] || (len && memcmp(extra + 1, tag + 1, len) != 0))
                        return false;
        }
        if (!(record[AT_FLAGS] & FLAG_RCODE) && group_of(record)[0] == 0)
                return true;
        return checked->page ? page_selected(record, entry) : answer_selected(record, entry);
}

bool purgelog_select(const uint8_t *bytes, size_t len, const struct entry_checked *checked,
                     const uint8_t *entry)
{
        for (size_t at = 0; at < len; at += get_be16(bytes + at))
                if (selected(bytes + at, checked, entry))
                        return true;
        return false;
}
