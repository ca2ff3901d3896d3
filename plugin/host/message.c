/* SPDX-License-Identifier: MIT */
#include "host/message.h"

#include <string.h>

enum {
        FLAG2_QR = 0x80,
        FLAG2_RD = 0x01,
        FLAG3_CD = 0x10,
        QTYPE_AND_QCLASS = 4,
        DO_BIT = 0x80,
        /* Offsets in an OPT record, RFC 6891 s6.1.2 */
        OPT_AT_SIZE = 3,
        OPT_AT_FLAGS = 7,
        OPT_AT_LEN = 9,
        OPTION_HEADER = 4,
        OPTION_ECS = 8,
};

static unsigned get16(const uint8_t *p)
{
        return (unsigned)(p[0] << 8 | p[1]);
}

static void put16(uint8_t *p, size_t value)
{
        p[0] = (uint8_t)(value >> 8);
        p[1] = (uint8_t)value;
}

void message_copy_rd_cd(uint8_t *message, const uint8_t *from)
{
        message[2] = (uint8_t)((message[2] & ~FLAG2_RD) | (from[2] & FLAG2_RD));
        message[3] = (uint8_t)((message[3] & ~FLAG3_CD) | (from[3] & FLAG3_CD));
}

size_t message_question_end(const uint8_t *message, size_t len)
{
        size_t at = MESSAGE_HEADER;
        while (at < len && message[at] != 0)
                at += message[at] + 1u;
        at += 1 + QTYPE_AND_QCLASS;
        return at < len ? at : len;
}

/* Returns the new length, 0: no room. */
static size_t add_opt(uint8_t *query, size_t len, size_t cap)
{
        static const uint8_t opt[MESSAGE_OPT] = {0, 0, 41};
        if (cap - len < sizeof opt)
                return 0;
        memcpy(query + len, opt, sizeof opt);
        query[11] = 1; /* ARCOUNT */
        return len + sizeof opt;
}

static void raise_size(uint8_t *opt, uint16_t udp_size)
{
        if (get16(opt + OPT_AT_SIZE) < udp_size)
                put16(opt + OPT_AT_SIZE, udp_size);
}

size_t message_add_do(uint8_t *query, size_t len, size_t cap, uint16_t udp_size)
{
        size_t at = message_question_end(query, len);
        if (at == len)
                len = add_opt(query, len, cap);
        else if (len - at < MESSAGE_OPT || query[at + OPT_AT_FLAGS] & DO_BIT)
                return 0;
        if (len == 0)
                return 0;
        query[at + OPT_AT_FLAGS] |= DO_BIT;
        raise_size(query + at, udp_size);
        return len;
}

/* The options of a whole OPT at the end of a query but for this one. Returns the new length. */
static size_t take_option(uint8_t *query, size_t at, size_t len, unsigned code)
{
        size_t option = at + MESSAGE_OPT;
        while (len - option >= OPTION_HEADER) {
                size_t size = OPTION_HEADER + get16(query + option + 2);
                if (size > len - option)
                        break;
                if (get16(query + option) == code) {
                        memmove(query + option, query + option + size, len - option - size);
                        len -= size;
                } else {
                        option += size;
                }
        }
        put16(query + at + OPT_AT_LEN, len - at - MESSAGE_OPT);
        return len;
}

size_t message_set_network(uint8_t *query, size_t len, size_t cap, uint16_t udp_size,
                           const struct message_network *network)
{
        size_t at = message_question_end(query, len), bytes = (network->prefix + 7u) / 8;
        if (len - at >= MESSAGE_OPT)
                len = take_option(query, at, len, OPTION_ECS);
        if (network->family == 0)
                return len;
        if (at == len) {
                len = add_opt(query, len, cap);
                if (len == 0)
                        return 0;
                raise_size(query + at, udp_size);
        }
        if (cap - len < OPTION_HEADER + 4 + bytes)
                return 0;
        uint8_t *option = query + len;
        put16(option, OPTION_ECS);
        put16(option + 2, 4 + bytes);
        put16(option + OPTION_HEADER, network->family);
        option[OPTION_HEADER + 2] = network->prefix;
        option[OPTION_HEADER + 3] = 0; /* scope */
        memcpy(option + OPTION_HEADER + 4, network->addr, bytes);
        len += OPTION_HEADER + 4 + bytes;
        put16(query + at + OPT_AT_LEN, len - at - MESSAGE_OPT);
        return len;
}

size_t message_empty_response(const uint8_t *query, size_t len, unsigned rcode, uint8_t *out)
{
        size_t end = message_question_end(query, len);
        memcpy(out, query, end);
        out[2] = (uint8_t)(FLAG2_QR | (query[2] & FLAG2_RD));
        out[3] = (uint8_t)((query[3] & FLAG3_CD) | rcode);
        memset(out + 6, 0, 6); /* ANCOUNT, NSCOUNT, ARCOUNT */
        return end;
}

size_t message_only_opt(const uint8_t *response, size_t len)
{
        static const uint8_t counts[] = {0, 1, 0, 0, 0, 0, 0, 1};
        if (len < MESSAGE_HEADER || memcmp(response + 4, counts, sizeof counts) != 0)
                return 0;
        size_t end = message_question_end(response, len);
        return len - end > MESSAGE_OPT ? end : 0;
}

bool message_question(const uint8_t *message, size_t len, struct message_question *question)
{
        size_t end = MESSAGE_HEADER;
        if (len <= end || (message[4] == 0 && message[5] == 0))
                return false;
        while (end < len && message[end] != 0) {
                if (message[end] > 63)
                        return false;
                end += 1u + message[end];
        }
        end++;
        if (end + 4 > len || end - MESSAGE_HEADER > sizeof question->name)
                return false;
        question->name_len = (uint8_t)(end - MESSAGE_HEADER);
        for (size_t i = 0; i < question->name_len; i++) {
                uint8_t byte = message[MESSAGE_HEADER + i];
                question->name[i] = byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte;
        }
        question->type = (uint16_t)(message[end] << 8 | message[end + 1]);
        return true;
}
