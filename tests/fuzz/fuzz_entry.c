/* SPDX-License-Identifier: MIT
 * Any bytes as a response, kept as an entry and rendered for a client that the message's ID chooses: what is
 * taken in can be found again, and every reply is whole, within the client's limit and from the response. */
#include <string.h>

#include "entry/encode.h"
#include "entry/header.h"
#include "entry/key.h"
#include "entry/render.h"
#include "entry/view.h"
#include "fuzz/fuzz.h"
#include "lifetime.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/name.h"

enum {
        NOW = 1 << 25,
        /* Bits of the ID's first byte. */
        CHOICE_EDNS = 0x01,
        CHOICE_DO = 0x02,
        CHOICE_AD = 0x04,
        CHOICE_CD = 0x08,
        CHOICE_AGELESS = 0x10,
        CHOICE_STALE = 0x20,
        CHOICE_LOWER = 0x40,
        CHOICE_ECS = 0x80,
};

static _Alignas(ENTRY_ALIGN) uint8_t entry[ENTRY_MAX], again[ENTRY_MAX];
static uint8_t reply[DNS_MAX_MESSAGE], full[DNS_MAX_MESSAGE];
static struct wire_rr rrs[WIRE_RRS_MAX], reply_rrs[WIRE_RRS_MAX];

/* The client's question: of the response, in another case. */
static void make_query(struct wire_query *query, uint8_t packet[DNS_HEADER + 259],
                       const struct entry_key *key, uint8_t choice)
{
        size_t len;
        const uint8_t *name = entry_key_name(key, &len);
        memset(packet, 0, DNS_HEADER);
        memcpy(packet + DNS_HEADER, name, len);
        for (size_t i = 0; i < len && !(choice & CHOICE_LOWER); i++) {
                uint8_t *c = packet + DNS_HEADER + i;
                if (*c >= 'a' && *c <= 'z' && (i + choice) % 3 != 0)
                        *c = (uint8_t)(*c - 0x20);
        }
        memcpy(packet + DNS_HEADER + len, key->bytes + KEY_AT_TYPE, 2);
        put_be16(packet + DNS_HEADER + len + 2, DNS_IN);
        *query = (struct wire_query){
            .packet = packet,
            .qname = packet + DNS_HEADER,
            .qname_len = (uint8_t)len,
            .qtype = get_be16(key->bytes + KEY_AT_TYPE),
            .qclass = DNS_IN,
            .rd = true,
            .cd = choice & CHOICE_CD,
            .ad = choice & CHOICE_AD,
            .edns = choice & CHOICE_EDNS,
            .dnssec_ok = (choice & CHOICE_EDNS) && (choice & CHOICE_DO),
        };
}

static void check_reply(const uint8_t *packet, const struct render_result *result, uint16_t limit,
                        const struct wire_query *query, const struct wire_response *origin)
{
        struct wire_response response;
        MUST_BE_WRITTEN(packet, result->len);
        MUST(result->len <= limit);
        MUST(wire_response_parse(packet, result->len, reply_rrs, WIRE_RRS_MAX, &response) == 0);
        MUST(response.qname_len == query->qname_len &&
             memcmp(response.qname, query->qname, wire_query_question_len(query)) == 0);
        MUST(response.count <= origin->count);
        MUST(response.edns == query->edns && response.dnssec_ok == query->dnssec_ok);
        MUST(response.rcode == origin->rcode);
        MUST(((response.flags2 & DNS_TC) != 0) == result->truncated);
        /* The records are the origin's, in their order. */
        for (uint32_t i = 0, j = 0; i < response.count; i++, j++) {
                const struct wire_rr *rr = &reply_rrs[i];
                while (j < origin->count &&
                       (origin->rrs[j].type != rr->type || origin->rrs[j].section != rr->section))
                        j++;
                MUST(j < origin->count);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct lifetime_limits limits = {
            .max_ttl = 86400, .max_negative_ttl = 3600, .failure_ttl = 60};
        static const uint16_t reply_limits[] = {512, 1232, 4096, DNS_MAX_MESSAGE};
        if (size < 2)
                return 0;
        uint8_t choice = data[0], other = data[1];
        struct wire_response response;
        uint32_t life;
        enum lifetime_kind kind;
        if (wire_response_parse(data, size, rrs, WIRE_RRS_MAX, &response) != 0 ||
            lifetime_assess(&response, &limits, &life, &kind) != 0 || response.qname == NULL)
                return 0;

        struct entry_key key;
        entry_key_init(&key, response.qname, response.qname_len, response.qtype, true, choice & CHOICE_CD,
                       (const uint8_t *)"\3tag", other & 0x40 ? 4 : 0);
        MUST(entry_key_check(key.bytes, key.len));
        struct encode_params encode = {
            .expiry = NOW + life,
            .life = life,
            .dnssec_ok = true,
            .ageless = choice & CHOICE_AGELESS,
        };
        UNWRITTEN(entry, sizeof entry);
        UNWRITTEN(reply, sizeof reply);
        UNWRITTEN(full, sizeof full);
        size_t length = entry_encode(&key, &response, &encode, entry, sizeof entry);
        if (length == 0)
                return 0;
        MUST_BE_WRITTEN(entry, length);
        MUST(length == entry_size(entry) && length % ENTRY_ALIGN == 0);
        MUST(entry_key_match(&key, entry));
        key.bytes[KEY_AT_FLAGS] ^= ENTRY_RD;
        MUST(!entry_key_match(&key, entry));
        key.bytes[KEY_AT_FLAGS] ^= ENTRY_RD;
        struct entry_view view;
        uint8_t qname[WIRE_NAME_MAX];
        entry_view_init(&view, entry);
        size_t name_len;
        const uint8_t *name = entry_key_name(&key, &name_len);
        MUST(entry_view_qname(&view, qname) == name_len && memcmp(qname, name, name_len) == 0);

        struct wire_query query;
        uint8_t question[DNS_HEADER + 259];
        make_query(&query, question, &key, choice);
        static const struct wire_ecs ecs = {
            .family = ECS_IPV4, .source = 24, .scope = 24, .addr = {192, 0, 2}};
        uint16_t limit = reply_limits[other % 4];
        struct render_params render = {
            .query = &query,
            .now = choice & CHOICE_STALE ? NOW + life : NOW,
            .stale_ttl = 30,
            .limit = limit,
            .udp_payload_size = 1232,
            .add_ede = choice & CHOICE_STALE ? 3 : -1,
            .pad_block = other & 0x10 ? 468 : 0,
            .rotate = other & 0x08 ? other : 0,
            .ecs = choice & CHOICE_ECS ? &ecs : NULL,
        };
        struct render_result result, unlimited;
        MUST(entry_render(entry, &render, reply, sizeof reply, &result));
        check_reply(reply, &result, limit, &query, &response);

        /* Without a limit: what does not fit in any message is truncated, else everything is there. */
        render.limit = DNS_MAX_MESSAGE;
        MUST(entry_render(entry, &render, full, sizeof full, &unlimited));
        check_reply(full, &unlimited, DNS_MAX_MESSAGE, &query, &response);
        MUST(!result.truncated || unlimited.truncated || unlimited.len > limit);
        if (unlimited.len <= limit && render.pad_block == 0)
                MUST(result.len == unlimited.len && memcmp(reply, full, result.len) == 0);

        /* The same response again is the same answer. */
        encode.expiry++;
        MUST(entry_encode(&key, &response, &encode, again, sizeof again) == length);
        MUST(entry_same_answer(entry, again));
        return 0;
}
