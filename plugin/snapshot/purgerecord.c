/* SPDX-License-Identifier: MIT */
#include "snapshot/purgerecord.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/name.h"

size_t purge_record_write(const struct sardine_selector *selector, uint8_t out[PURGE_MAX])
{
        static const struct sardine_selector everything;
        const struct sardine_selector *s = selector ? selector : &everything;
        size_t name_len = s->name ? s->name_len : 0, tag_len = s->use_tag ? s->tag_len : 0;
        size_t len = PURGE_LEAST + name_len + tag_len + s->group_len;
        put_be16(out, (uint16_t)len);
        out[PURGE_AT_FLAGS] = (uint8_t)((s->below ? PURGE_BELOW : 0) | (s->use_tag ? PURGE_TAG : 0) |
                                        (s->use_rcode ? PURGE_RCODE : 0));
        put_be16(out + PURGE_AT_TYPE, s->qtype == DNS_ANY ? 0 : (uint16_t)s->qtype);
        put_be16(out + PURGE_AT_RCODE, (uint16_t)s->rcode);
        out[PURGE_AT_NAME_LEN] = (uint8_t)name_len;
        if (name_len)
                wire_name_fold(out + PURGE_AT_NAME, s->name, name_len);
        out[PURGE_AT_NAME + name_len] = (uint8_t)tag_len;
        if (tag_len)
                memcpy(out + PURGE_AT_NAME + name_len + 1, s->tag, tag_len);
        uint8_t *group = out + PURGE_AT_NAME + name_len + 1 + tag_len;
        group[0] = (uint8_t)s->group_len;
        if (s->group_len)
                memcpy(group + 1, s->group, s->group_len);
        return len;
}

size_t purge_record_check(const uint8_t *bytes, size_t len)
{
        size_t at = 0;
        while (len - at >= PURGE_LEAST) {
                const uint8_t *p = bytes + at;
                size_t size = get_be16(p), name_len = p[PURGE_AT_NAME_LEN], least = PURGE_LEAST + name_len;
                if (size > len - at || size < least || p[PURGE_AT_FLAGS] & ~PURGE_FLAGS)
                        break;
                least += p[PURGE_AT_NAME + name_len];
                if (size < least || size != least + p[least - 1] ||
                    (name_len &&
                     wire_name_length(p + PURGE_AT_NAME, p + PURGE_AT_NAME + name_len) != name_len))
                        break;
                at += size;
        }
        return at;
}

const uint8_t *purge_record_tag(const uint8_t *record)
{
        return record + PURGE_AT_NAME + record[PURGE_AT_NAME_LEN];
}

const uint8_t *purge_record_group(const uint8_t *record)
{
        const uint8_t *tag = purge_record_tag(record);
        return tag + 1 + tag[0];
}

static bool name_selected(const uint8_t *record, const uint8_t *name, size_t len)
{
        size_t want = record[PURGE_AT_NAME_LEN];
        if (want == 0)
                return true;
        while (len > want && record[PURGE_AT_FLAGS] & PURGE_BELOW) {
                size_t label = 1u + name[0];
                name += label;
                len -= label;
        }
        return len == want && memcmp(name, record + PURGE_AT_NAME, len) == 0;
}

static bool answer_selected(const uint8_t *record, const struct entry_view *answer)
{
        const uint8_t *group = purge_record_group(record);
        if (!(record[PURGE_AT_FLAGS] & PURGE_RCODE) && group[0] == 0)
                return true;
        if (answer->no_answer)
                return false;
        if (group[0] && (answer->group_len != group[0] || memcmp(answer->group, group + 1, group[0]) != 0))
                return false;
        return !(record[PURGE_AT_FLAGS] & PURGE_RCODE) || answer->rcode == get_be16(record + PURGE_AT_RCODE);
}

bool purge_record_removes(const uint8_t *record, const struct entry_key *key, const struct entry_view *answer)
{
        uint16_t type = get_be16(record + PURGE_AT_TYPE);
        if (type != 0 && type != get_be16(key->bytes + KEY_AT_TYPE))
                return false;
        size_t name_len;
        const uint8_t *name = entry_key_name(key, &name_len);
        if (!name_selected(record, name, name_len))
                return false;
        if (record[PURGE_AT_FLAGS] & PURGE_TAG) {
                const uint8_t *tag = purge_record_tag(record), *extra = name + name_len;
                uint8_t len = key->bytes[KEY_AT_EXTRA_LEN] ? extra[0] : 0;
                if (len != tag[0] || (len && memcmp(extra + 1, tag + 1, len) != 0))
                        return false;
        }
        return answer_selected(record, answer);
}
