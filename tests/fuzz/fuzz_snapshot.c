/* SPDX-License-Identifier: MIT
 * Any bytes as an entry out of a snapshot: what entry_check() lets pass can be shown to every function that
 * takes an entry, and what is rendered from it is a response. The corpus's responses are first made entries,
 * which must pass, and then damaged in ways that their own bytes choose. */
#include <string.h>

#include "entry/check.h"
#include "entry/encode.h"
#include "entry/header.h"
#include "entry/page.h"
#include "entry/render.h"
#include "entry/view.h"
#include "fuzz/fuzz.h"
#include "lifetime.h"
#include "sardine.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/name.h"

enum {
        NOW = 1 << 25,
        DAMAGES = 64,
};

static _Alignas(ENTRY_ALIGN) uint8_t made[ENTRY_MAX], page[ENTRY_MAX];
static uint8_t reply[DNS_MAX_MESSAGE];
static struct wire_rr rrs[WIRE_RRS_MAX], reply_rrs[WIRE_RRS_MAX];

static void render(const uint8_t *entry, const struct entry_key *key, uint8_t choice)
{
        static const uint16_t limits[] = {512, 1232, DNS_MAX_MESSAGE, DNS_MAX_MESSAGE};
        uint8_t packet[DNS_HEADER + WIRE_NAME_MAX + 4] = {0};
        size_t len;
        const uint8_t *name = entry_key_name(key, &len);
        memcpy(packet + DNS_HEADER, name, len);
        for (size_t i = 0; i < len; i++) {
                uint8_t *c = packet + DNS_HEADER + i;
                if (*c >= 'a' && *c <= 'z' && (i + choice) % 3 == 0)
                        *c = (uint8_t)(*c - 0x20);
        }
        memcpy(packet + DNS_HEADER + len, key->bytes + KEY_AT_TYPE, 2);
        put_be16(packet + DNS_HEADER + len + 2, DNS_IN);
        const struct wire_query query = {
            .packet = packet,
            .qname = packet + DNS_HEADER,
            .qname_len = (uint8_t)len,
            .qtype = get_be16(key->bytes + KEY_AT_TYPE),
            .qclass = DNS_IN,
            .edns = choice & 1,
            .dnssec_ok = choice & 2,
        };
        const struct render_params params = {
            .query = &query,
            .now = NOW,
            .stale_ttl = 30,
            .limit = limits[choice >> 2 & 3],
            .udp_payload_size = 1232,
            .add_ede = -1,
            .rotate = choice >> 4,
        };
        struct render_result result;
        struct wire_response response;
        MUST(entry_render(entry, &params, reply, sizeof reply, &result));
        MUST(result.len <= params.limit);
        unsigned reason = wire_response_parse(reply, result.len, reply_rrs, WIRE_RRS_MAX, &response);
        MUST(reason == 0 || reason == SARDINE_REFUSED_COMPLEX);
}

static void use_answer(const uint8_t *entry, const struct entry_key *key, uint8_t choice)
{
        struct entry_view view;
        entry_view_init(&view, entry);
        MUST(entry_key_match(key, entry));
        if (view.no_answer)
                return;
        entry_view_has_answer_records(&view);
        MUST(entry_same_answer(entry, entry));
        render(entry, key, choice);
        render(entry, key, (uint8_t)~choice);
}

/* `bytes`: exactly so many, so that a sanitizer sees a step beyond. */
static bool try(const uint8_t *bytes, size_t len, uint8_t choice)
{
        struct entry_checked checked;
        if (!entry_check(bytes, len, &checked))
                return false;
        MUST(checked.size <= len && entry_size(bytes) == checked.size);
        uint8_t name[WIRE_NAME_MAX];
        struct entry_view view;
        entry_view_init(&view, bytes);
        entry_view_qname(&view, name);
        MUST(entry_key_match(&checked.key, bytes));
        MUST(checked.page == entry_is_page(bytes));
        if (!checked.page) {
                use_answer(bytes, &checked.key, choice);
                return true;
        }
        struct page_view networks;
        struct entry_key base = checked.key;
        entry_key_clear_page(&base);
        page_view_init(&networks, bytes);
        for (unsigned i = 0; i < networks.count; i++) {
                struct page_item item;
                page_item(&networks, i, &item);
                MUST(page_find(&networks, item.network) >= 0);
                use_answer(item.answer, &base, choice);
        }
        return true;
}

static bool try_copy(const uint8_t *bytes, size_t len, uint8_t choice)
{
        uint8_t *copy =
            aligned_alloc(ENTRY_ALIGN, len ? (len + ENTRY_ALIGN - 1) & ~(size_t)(ENTRY_ALIGN - 1) : 4);
        MUST(copy);
        memcpy(copy, bytes, len);
        bool good = try(copy, len, choice);
        free(copy);
        return good;
}

static void damage(uint8_t *entry, size_t len, const uint8_t *data, size_t size)
{
        uint32_t random = 1;
        for (size_t i = 0; i < size && i < 32; i++)
                random = random * 31 + data[i];
        for (unsigned n = 0; n < DAMAGES; n++) {
                random = random * 1664525 + 1013904223;
                size_t at = (random >> 8) % len;
                uint8_t was = entry[at],
                        is = n % 2 ? (uint8_t)(was ^ (1 << n / 2 % 8)) : data[(random >> 4) % size];
                entry[at] = is;
                try_copy(entry, len, (uint8_t)random);
                try_copy(entry, at, (uint8_t)random);
                entry[at] = was;
        }
}

static size_t make_page(const struct entry_key *key)
{
        struct entry_key of_page = *key;
        entry_key_set_page(&of_page, network_code(ECS_IPV4, 20), 3);
        struct page_item items[3] = {
            {.network = {10, 1, 16}}, {.network = {10, 2, 32}}, {.network = {10, 3}}};
        for (unsigned i = 0; i < 3; i++) {
                items[i].life = (struct entry_life){NOW + 100 + i, 100};
                items[i].answer = made;
        }
        return page_build(&of_page, items, 3, page, sizeof page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct lifetime_limits limits = {
            .max_ttl = 86400, .max_negative_ttl = 3600, .failure_ttl = 60};
        if (size < 2)
                return 0;
        try_copy(data, size, data[0]);
        struct wire_response response;
        uint32_t life;
        enum lifetime_kind kind;
        if (wire_response_parse(data, size, rrs, WIRE_RRS_MAX, &response) != 0 ||
            lifetime_assess(&response, &limits, &life, &kind) != 0 || response.qname == NULL)
                return 0;
        struct entry_key key;
        entry_key_init(&key, response.qname, response.qname_len, response.qtype, true, data[0] & 1,
                       (const uint8_t *)"\3tag", data[1] & 0x40 ? 4 : 0);
        static const struct entry_scope scopes[] = {{64 + 56, 9}, {24, 2}};
        const struct encode_params encode = {
            .expiry = NOW + life,
            .life = life,
            .dnssec_ok = data[0] & 2,
            .ageless = data[0] & 4,
            .scopes = data[0] & 8 ? scopes : NULL,
            .scopes_count = data[0] & 8 ? 2 : 0,
        };
        size_t len = entry_encode(&key, &response, &encode, made, sizeof made);
        if (len == 0)
                return 0;
        /* Lookups do not ask for these, so no cache has them. */
        if (response.qtype == 0 || response.qtype == DNS_OPT ||
            (response.qtype >= DNS_TKEY && response.qtype <= DNS_MAILA)) {
                MUST(!try_copy(made, len, data[1]));
                return 0;
        }
        MUST(try_copy(made, len, data[1]));
        damage(made, len, data, size);
        if (encode.scopes)
                return 0;
        len = make_page(&key);
        if (len == 0)
                return 0;
        MUST(try_copy(page, len, data[1]));
        damage(page, len, data, size);
        return 0;
}
