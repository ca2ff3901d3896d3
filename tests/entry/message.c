/* SPDX-License-Identifier: MIT */
#include "message.h"

#include "wire/bytes.h"

size_t name_wire(const char *text, uint8_t name[255])
{
        size_t len = 0;
        while (*text != 0 && strcmp(text, ".") != 0) {
                size_t label = strcspn(text, ".");
                assert_in_range(label, 1, 63);
                assert_in_range(len + label + 2, 1, 255);
                name[len++] = (uint8_t)label;
                memcpy(name + len, text, label);
                len += label;
                text += label + (text[label] == '.');
        }
        name[len++] = 0;
        return len;
}

void put_bytes(struct message *message, const void *bytes, size_t len)
{
        assert_in_range(message->len + len, 0, sizeof message->bytes);
        if (len > 0)
                memcpy(message->bytes + message->len, bytes, len);
        message->len += len;
}

void put_u8(struct message *message, unsigned value)
{
        uint8_t byte = (uint8_t)value;
        put_bytes(message, &byte, 1);
}

void put_u16(struct message *message, unsigned value)
{
        put_u8(message, value >> 8);
        put_u8(message, value & 0xff);
}

void put_u32(struct message *message, uint32_t value)
{
        put_u16(message, value >> 16);
        put_u16(message, value & 0xffff);
}

void put_name(struct message *message, const char *name)
{
        uint8_t wire[255];
        put_bytes(message, wire, name_wire(name, wire));
}

void put_pointer(struct message *message, size_t target)
{
        put_u16(message, 0xc000 | (unsigned)target);
}

void message_start(struct message *message, uint16_t flags)
{
        message->len = 0;
        put_u16(message, 0x1234);
        put_u16(message, flags);
        put_u32(message, 0);
        put_u32(message, 0);
}

static void count(struct message *message, size_t at)
{
        put_be16(message->bytes + at, (uint16_t)(get_be16(message->bytes + at) + 1));
}

void message_question(struct message *message, const char *name, uint16_t type)
{
        count(message, 4);
        put_name(message, name);
        put_u16(message, type);
        put_u16(message, DNS_IN);
}

size_t rr_begin(struct message *message, enum wire_section section, uint16_t type, uint32_t ttl)
{
        count(message, 6 + 2 * (size_t)section);
        put_u16(message, type);
        put_u16(message, DNS_IN);
        put_u32(message, ttl);
        put_u16(message, 0);
        return message->len;
}

void rr_end(struct message *message, size_t mark)
{
        put_be16(message->bytes + mark - 2, (uint16_t)(message->len - mark));
}

static void put_owner(struct message *message, const char *owner)
{
        if (owner != NULL)
                put_name(message, owner);
        else
                put_pointer(message, DNS_HEADER);
}

void put_rr(struct message *message, enum wire_section section, const char *owner, uint16_t type,
            uint32_t ttl, const void *rdata, size_t len)
{
        put_owner(message, owner);
        size_t mark = rr_begin(message, section, type, ttl);
        put_bytes(message, rdata, len);
        rr_end(message, mark);
}

void put_a(struct message *message, enum wire_section section, const char *owner, uint32_t ttl, uint32_t addr)
{
        uint8_t bytes[4];
        put_be32(bytes, addr);
        put_rr(message, section, owner, DNS_A, ttl, bytes, sizeof bytes);
}

void put_cname(struct message *message, const char *owner, uint32_t ttl, const char *target)
{
        uint8_t name[255];
        size_t len = name_wire(target, name);
        put_rr(message, WIRE_ANSWER, owner, DNS_CNAME, ttl, name, len);
}

void put_soa(struct message *message, const char *owner, uint32_t ttl, uint32_t minimum)
{
        put_owner(message, owner);
        size_t mark = rr_begin(message, WIRE_AUTHORITY, DNS_SOA, ttl);
        put_name(message, "ns1.example");
        put_name(message, "hostmaster.example");
        put_u32(message, 2026);
        put_u32(message, 7200);
        put_u32(message, 3600);
        put_u32(message, 1209600);
        put_u32(message, minimum);
        rr_end(message, mark);
}

void put_rrsig(struct message *message, enum wire_section section, const char *owner, uint32_t ttl,
               uint16_t covered, const char *signer)
{
        put_owner(message, owner);
        size_t mark = rr_begin(message, section, DNS_RRSIG, ttl);
        put_u16(message, covered);
        put_u8(message, 13);
        put_u8(message, 2);
        put_u32(message, ttl);
        put_u32(message, 0x70000000);
        put_u32(message, 0x60000000);
        put_u16(message, 4711);
        put_name(message, signer);
        for (unsigned i = 0; i < 64; i++)
                put_u8(message, 0xa0 + i);
        rr_end(message, mark);
}

void put_opt(struct message *message, uint16_t size, uint32_t ttl, const void *rdata, size_t len)
{
        put_u8(message, 0);
        count(message, 10);
        put_u16(message, DNS_OPT);
        put_u16(message, size);
        put_u32(message, ttl);
        put_u16(message, (unsigned)len);
        put_bytes(message, rdata, len);
}

void make_query(struct message *message, const struct client *client, struct wire_query *query)
{
        message_start(message, (uint16_t)((client->rd ? DNS_RD << 8 : 0) | (client->cd ? DNS_CD : 0) |
                                          (client->ad ? DNS_AD : 0)));
        put_be16(message->bytes, 0xbeef);
        message_question(message, client->name, client->type);
        if (client->size != 0)
                put_opt(message, client->size, client->dnssec_ok ? 0x8000 : 0, NULL, 0);
        assert_int_equal(wire_query_parse(message->bytes, message->len, query), 0);
}

unsigned assess(struct taken *taken, const uint8_t *packet, size_t len)
{
        static const struct lifetime_limits limits = {
            .max_ttl = 86400,
            .max_negative_ttl = 3600,
            .failure_ttl = 60,
        };
        unsigned reason = wire_response_parse(packet, len, taken->rrs, WIRE_RRS_MAX, &taken->response);
        if (reason == 0)
                reason = lifetime_assess(&taken->response, &limits, &taken->life, &taken->kind);
        if (reason == 0)
                taken->params = (struct encode_params){
                    .expiry = TEST_NOW + taken->life,
                    .life = taken->life,
                    .dnssec_ok = true,
                };
        return reason;
}

void encode_assessed(struct taken *taken, bool cd)
{
        const struct wire_response *response = &taken->response;
        entry_key_init(&taken->key, response->qname, response->qname_len, response->qtype,
                       response->flags2 & DNS_RD, cd, NULL, 0);
        taken->size = entry_encode(&taken->key, response, &taken->params, taken->entry, sizeof taken->entry);
        assert_int_not_equal(taken->size, 0);
        assert_int_equal(taken->size, entry_size(taken->entry));
        assert_int_equal(taken->size % ENTRY_ALIGN, 0);
        assert_true(entry_key_match(&taken->key, taken->entry));
}

void take(struct taken *taken, const struct message *message)
{
        assert_int_equal(assess(taken, message->bytes, message->len), 0);
        encode_assessed(taken, false);
}

struct render_result render_for(const struct taken *taken, const struct client *client, uint32_t age,
                                uint16_t limit, struct message *reply)
{
        struct message query_message;
        struct wire_query query;
        struct render_result result;
        make_query(&query_message, client, &query);
        struct render_params params = {
            .query = &query,
            .now = TEST_NOW + age,
            .stale_ttl = 30,
            .limit = limit,
            .udp_payload_size = 1232,
            .add_ede = -1,
        };
        assert_true(entry_render(taken->entry, &params, reply->bytes, sizeof reply->bytes, &result));
        reply->len = result.len;
        assert_in_range(reply->len, 0, limit);
        return result;
}

void parse_reply(const struct message *reply, struct wire_response *response, struct wire_rr *rrs)
{
        assert_int_equal(wire_response_parse(reply->bytes, reply->len, rrs, WIRE_RRS_MAX, response), 0);
}
