/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: see check.h. Reads as view.c, run.c and page.c do, but looks before each step. */
#include "entry/check.h"

#include <string.h>

#include "entry/header.h"
#include "entry/page.h"
#include "entry/run.h"
#include "entry/stored.h"
#include "sardine.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/name.h"
#include "wire/rdata.h"
#include "wire/response.h"

enum {
        META_FIRST = 128, /* types from here to 255 are in questions only */
        META_LAST = 255,
        EDE_TEXT_MAX = DNS_MAX_MESSAGE,
        PAGES_EXACT = 0x8000, /* of a number of pages: no part of the number */
        PAGE_COUNTS = 4,
};

struct reader {
        const uint8_t *entry;
        const uint8_t *p;
        const uint8_t *end;
        uint32_t work; /* labels and references that its names may still visit (B64) */
        const uint8_t *question;
        uint32_t most_delta;
};

static size_t left(const struct reader *r)
{
        return (size_t)(r->end - r->p);
}

static bool take8(struct reader *r, uint8_t *value)
{
        if (left(r) < 1)
                return false;
        *value = *r->p++;
        return true;
}

static bool take16(struct reader *r, uint16_t *value)
{
        if (left(r) < 2)
                return false;
        *value = get_be16(r->p);
        r->p += 2;
        return true;
}

static bool take_varint(struct reader *r, uint32_t *value)
{
        if (left(r) < 1)
                return false;
        size_t bytes = *r->p < VARINT_2 ? 1 : *r->p < VARINT_5 ? 2 : 5;
        if (left(r) < bytes)
                return false;
        *value = varint_get(&r->p);
        return true;
}

static bool skip(struct reader *r, size_t len)
{
        if (left(r) < len)
                return false;
        r->p += len;
        return true;
}

/* Nothing but the padding is left. */
static bool padded(const struct reader *r)
{
        static const uint8_t zero[ENTRY_ALIGN];
        return left(r) < ENTRY_ALIGN && memcmp(r->p, zero, left(r)) == 0;
}

/* Does a label of the question's name, or an ending in it, begin at offset `at`? Its root label does not
 * count. */
static bool in_question(const struct reader *r, uint32_t at)
{
        struct name_walk walk;
        struct name_part part;
        name_walk_init(&walk, r->entry, r->question);
        do {
                name_walk_next(&walk, &part);
                if (part.at == at)
                        return part.len > 1;
        } while (!part.last);
        return false;
}

/* The stored name at r->p, as name_walk and stored_name_skip() read it: every part in bounds, references
 * always to what is before them, the whole a name. A part that follows the question's case must be in the
 * question, and only where the reply may be compressed. Moves on. */
static bool check_name(struct reader *r, bool compress, uint8_t name[WIRE_NAME_MAX], size_t *name_len)
{
        const uint8_t *p = r->p, *after = NULL;
        size_t len = 0;
        for (;; r->work--) {
                if (p >= r->end || r->work == 0)
                        return false;
                uint8_t byte = *p;
                if (stored_is_ref(byte)) {
                        if (r->end - p < 2 || stored_ref_target(p) >= (size_t)(p - r->entry) ||
                            stored_ref_target(p) < ENTRY_HEADER)
                                return false;
                        if (!after)
                                after = p + 2;
                        if (stored_ref_follows(p)) {
                                if (!r->question || !compress || !in_question(r, stored_ref_target(p)))
                                        return false;
                        }
                        p = r->entry + stored_ref_target(p);
                        if (*p == 0)
                                return false;
                        continue;
                }
                const uint8_t *wire = p;
                size_t part = byte + 1u, stored = part;
                bool last = byte == 0;
                if (!stored_is_label(byte)) {
                        wire = dict_item(byte)->wire;
                        part = dict_item(byte)->len;
                        stored = 1;
                        last = dict_is_ending(byte);
                        if (part == 0)
                                return false;
                }
                if (len + part > WIRE_NAME_MAX || (size_t)(r->end - p) < stored)
                        return false;
                memcpy(name + len, wire, part);
                len += part;
                p += stored;
                if (last)
                        break;
        }
        r->p = after ? after : p;
        *name_len = len;
        return true;
}

/* The question's name: no references, and folded. */
static bool check_question(struct reader *r, uint8_t name[WIRE_NAME_MAX], size_t *len)
{
        const uint8_t *start = r->p;
        if (!check_name(r, false, name, len))
                return false;
        for (const uint8_t *p = start; p < r->p;) {
                if (stored_is_ref(*p))
                        return false;
                p += stored_is_label(*p) ? *p + 1u : 1u;
        }
        r->question = start;
        for (size_t i = 0; i < *len; i++)
                if (name[i] != wire_fold(name[i]))
                        return false;
        return true;
}

/* What wire_query_parse() lets pass. */
static bool is_question_type(uint16_t type)
{
        return type != 0 && type != DNS_OPT && (type < DNS_TKEY || type > DNS_MAILA);
}

static bool is_data_type(uint16_t type)
{
        return type != 0 && type != DNS_OPT && (type < META_FIRST || type > META_LAST);
}

static bool is_network_code(uint8_t code)
{
        return code >= 64 ? code > 64 && code <= 64 + 128 : code >= 1 && code <= 32;
}

static bool check_rdata(struct reader *r, uint16_t type)
{
        const struct rdata_shape *shape = rdata_shape(type);
        uint8_t name[WIRE_NAME_MAX];
        size_t len, total = 0;
        const uint8_t *first = r->p, *start = first;
        for (const struct rdata_field *field = shape->fields; field->kind != RDATA_END; field++) {
                const uint8_t *from = r->p;
                uint32_t rest;
                bool fits = false;
                switch (field->kind) {
                case RDATA_FIXED:
                        fits = skip(r, field->size);
                        break;
                case RDATA_STRING:
                        fits = left(r) > 0 && skip(r, *r->p + 1u);
                        break;
                case RDATA_NAME:
                        fits = check_name(r, shape->compress, name, &len);
                        break;
                case RDATA_REST:
                        fits = take_varint(r, &rest) && rest <= DNS_MAX_MESSAGE;
                        from = start = r->p;
                        fits = fits && skip(r, rest);
                        break;
                }
                if (!fits)
                        return false;
                total += field->kind == RDATA_NAME ? len : (size_t)(r->p - from);
        }
        if (total > DNS_MAX_MESSAGE)
                return false;
        /* A signature over nothing signs a transaction. */
        if (type == DNS_SIG && get_be16(first) == 0)
                return false;
        /* What has no names is as it was on the wire, and can be checked the same way. */
        uint32_t work = 1;
        return shape->has_name || rdata_check(r->entry, (size_t)(r->end - r->entry), type,
                                              (size_t)(start - r->entry), (size_t)(r->p - start), 0, &work);
}

static bool check_records(struct reader *r, uint16_t type, uint32_t count)
{
        for (; count > 0; count--)
                if (!check_rdata(r, type))
                        return false;
        return true;
}

static bool check_run(struct reader *r, uint16_t qtype, uint8_t *section, bool *named, uint32_t *records)
{
        uint8_t head, name[WIRE_NAME_MAX], short_type;
        size_t len;
        uint16_t type = qtype;
        uint32_t delta = 0, count = 1;
        if (!take8(r, &head) || head & 0x80 || (head & RUN_SECTION) > WIRE_ADDITIONAL ||
            (head & RUN_SECTION) < *section)
                return false;
        *section = head & RUN_SECTION;
        switch (head & RUN_OWNER) {
        case RUN_OWNER_QUESTION:
                *named = false;
                break;
        case RUN_OWNER_PREVIOUS:
                if (!*named)
                        return false;
                break;
        case RUN_OWNER_NAME:
                if (!check_name(r, true, name, &len))
                        return false;
                *named = true;
                break;
        default:
                return false;
        }
        if (head & RUN_TYPE) {
                if (!take8(r, &short_type))
                        return false;
                type = short_type;
                if (type == 0 && (!take16(r, &type) || type < 256))
                        return false;
        }
        if (!is_data_type(type) || (head & RUN_DELTA && (!take_varint(r, &delta) || delta > INT32_MAX)) ||
            (head & RUN_COUNT && !take_varint(r, &count)) || count == 0 || count > WIRE_RRS_MAX - *records)
                return false;
        if (delta > r->most_delta)
                r->most_delta = delta;
        *records += count;
        return check_records(r, type, count);
}

static bool check_body(struct reader *r, uint8_t flags, uint8_t ext, uint16_t qtype)
{
        if (flags & ENTRY_SIMPLE) {
                uint8_t count;
                return !(ext & (EXT_AGELESS | EXT_TRUNCATED)) && is_data_type(qtype) && take8(r, &count) &&
                       count > 0 && check_records(r, qtype, count);
        }
        uint32_t runs, records = 0;
        uint8_t section = WIRE_ANSWER;
        bool named = false;
        if (!take_varint(r, &runs) || runs > WIRE_RRS_MAX || (ext & EXT_TRUNCATED && runs > 0))
                return false;
        for (; runs > 0; runs--)
                if (!check_run(r, qtype, &section, &named, &records))
                        return false;
        return true;
}

static bool check_scopes(struct reader *r, bool *no_answer)
{
        uint8_t count, code, before = 0xff;
        uint16_t pages;
        if (!take8(r, &count))
                return false;
        *no_answer = count & SCOPES_NO_ANSWER;
        count &= SCOPES_COUNT;
        if (count == 0 || count > SCOPES_MAX)
                return false;
        for (; count > 0; count--) {
                if (!take8(r, &code) || !take16(r, &pages) || !is_network_code(code) ||
                    (pages & ~PAGES_EXACT) == 0 || network_prefix(code) > before)
                        return false;
                before = network_prefix(code);
        }
        return true;
}

static bool check_ede(struct reader *r)
{
        uint8_t count;
        uint16_t code;
        uint32_t text, texts = 0;
        if (!take8(r, &count) || count == 0 || count > WIRE_EDE_MAX)
                return false;
        for (; count > 0; count--) {
                if (!take16(r, &code) || !take_varint(r, &text) || text > EDE_TEXT_MAX || !skip(r, text))
                        return false;
                texts += text;
        }
        return texts <= EDE_TEXT_MAX;
}

/* What a policy gave the answer. */
static bool check_policy(struct reader *r)
{
        uint8_t policy, len;
        if (!take8(r, &policy) || policy & ~(POLICY_BYTE_CLASS | POLICY_BYTE_GROUP))
                return false;
        return !(policy & POLICY_BYTE_GROUP) ||
               (take8(r, &len) && len > 0 && len <= SARDINE_TAG_MAX && skip(r, len));
}

/* The networks' bits beyond the prefix are zero: that is how they are looked for. */
static bool is_masked(const uint8_t *network, uint8_t code)
{
        unsigned bits = network_prefix(code) % 8;
        return bits == 0 || (uint8_t)(network[network_bytes(code) - 1] << bits) == 0;
}

static bool check_answer(const uint8_t *entry, size_t len, bool in_page, struct entry_checked *checked);

static bool check_page(struct reader *r, struct entry_checked *checked)
{
        size_t at = (size_t)(r->p - r->entry), pad = -at % ENTRY_ALIGN;
        static const uint8_t zero[ENTRY_ALIGN];
        if (left(r) < pad + PAGE_COUNTS || memcmp(r->p, zero, pad) != 0)
                return false;
        r->p += pad;
        unsigned networks = r->p[0], answers = r->p[1];
        uint8_t code = checked->key.bytes[KEY_AT_PAGE];
        size_t width = network_bytes(code);
        if (networks == 0 || answers == 0 || answers > networks || r->p[2] != 0 || r->p[3] != 0 ||
            left(r) < PAGE_COUNTS + networks * (4 + 1 + 1 + width))
                return false;
        const uint8_t *which = r->p + PAGE_COUNTS + networks * 5u, *addresses = which + networks;
        for (unsigned i = 0; i < networks; i++)
                if (which[i] >= answers || !is_masked(addresses + i * width, code))
                        return false;
        r->p = addresses + networks * width;
        pad = -(size_t)(r->p - r->entry) % ENTRY_ALIGN;
        if (left(r) < pad || memcmp(r->p, zero, pad) != 0)
                return false;
        r->p += pad;
        struct entry_key base = checked->key;
        entry_key_clear_page(&base);
        for (; answers > 0; answers--) {
                struct entry_checked answer;
                if (!check_answer(r->p, left(r), true, &answer) || answer.key.len != base.len ||
                    memcmp(answer.key.bytes, base.bytes, base.len) != 0)
                        return false;
                if (answer.most_delta > r->most_delta)
                        r->most_delta = answer.most_delta;
                r->p += answer.size;
        }
        return left(r) == 0;
}

/* Header and key. */
static bool check_head(struct reader *r, uint8_t *flags, uint8_t *ext, struct entry_checked *checked)
{
        const uint8_t *entry = r->entry;
        size_t len = left(r);
        if (len < ENTRY_HEADER || (entry[ENTRY_AT_SIZE] == 0 && len < ENTRY_HEADER + ENTRY_SIZE32))
                return false;
        uint32_t size = entry_size(entry);
        if (size > len || size > ENTRY_MAX || size % ENTRY_ALIGN != 0 ||
            (entry[ENTRY_AT_SIZE] == 0 && size <= ENTRY_SIZE_BYTE_MAX))
                return false;
        checked->size = size;
        r->end = entry + size;
        if (!skip(r, ENTRY_HEADER + (entry[ENTRY_AT_SIZE] == 0 ? ENTRY_SIZE32 : 0)))
                return false;
        uint16_t type = entry[ENTRY_AT_TYPE], number = 0;
        if (type == 0 && (!take16(r, &type) || type < 256))
                return false;
        uint8_t rcode, extra_len = 0, code = KEY_NO_PAGE, name[WIRE_NAME_MAX];
        const uint8_t *extra = NULL;
        size_t name_len;
        *flags = entry[ENTRY_AT_FLAGS];
        *ext = 0;
        if (*flags & ENTRY_EXT && (!take8(r, ext) || *ext == 0))
                return false;
        if (*ext & EXT_RCODE &&
            (!take8(r, &rcode) || (rcode != DNS_SERVFAIL && rcode != DNS_NXDOMAIN && rcode != DNS_REFUSED)))
                return false;
        if (*ext & EXT_EXTRA) {
                if (!take8(r, &extra_len) || extra_len == 0)
                        return false;
                extra = r->p;
                if (!skip(r, extra_len))
                        return false;
        }
        if (*ext & EXT_PAGE && (!take8(r, &code) || !is_network_code(code) || !take16(r, &number)))
                return false;
        if (!is_question_type(type) || !check_question(r, name, &name_len))
                return false;
        struct entry_key *key = &checked->key;
        entry_key_init(key, name, name_len, type, *flags & ENTRY_RD, *flags & ENTRY_CD, extra, extra_len);
        if (!entry_key_check(key->bytes, key->len))
                return false;
        checked->page = code != KEY_NO_PAGE;
        if (checked->page)
                entry_key_set_page(key, code, number);
        return true;
}

static bool check_answer(const uint8_t *entry, size_t len, bool in_page, struct entry_checked *checked)
{
        struct reader r = {.entry = entry, .p = entry, .end = entry + len, .work = WIRE_WORK_MAX};
        uint8_t flags, ext;
        bool no_answer = false;
        if (!check_head(&r, &flags, &ext, checked) || (in_page && ext & (EXT_PAGE | EXT_SCOPES)) ||
            (ext & EXT_SCOPES && !check_scopes(&r, &no_answer)))
                return false;
        checked->most_delta = 0;
        if (checked->page || no_answer) {
                uint8_t other = (uint8_t) ~(ENTRY_RD | ENTRY_CD | ENTRY_EXT);
                uint8_t other_ext = (uint8_t) ~(EXT_EXTRA | (no_answer ? EXT_SCOPES : EXT_PAGE));
                if (flags & other || ext & other_ext)
                        return false;
                if (no_answer)
                        return padded(&r);
                bool good = check_page(&r, checked);
                checked->most_delta = r.most_delta;
                return good;
        }
        if ((ext & EXT_EDE && !check_ede(&r)) || (ext & EXT_POLICY && !check_policy(&r)) ||
            !check_body(&r, flags, ext, get_be16(checked->key.bytes + KEY_AT_TYPE)))
                return false;
        checked->most_delta = r.most_delta;
        return padded(&r);
}

bool entry_check(const uint8_t *entry, size_t len, struct entry_checked *checked)
{
        return check_answer(entry, len, false, checked);
}
