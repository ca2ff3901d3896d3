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
};

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

size_t message_add_do(uint8_t *query, size_t len, size_t cap, uint16_t udp_size)
{
        static const uint8_t opt[MESSAGE_OPT] = {0, 0, 41};
        size_t at = message_question_end(query, len);
        if (at == len) {
                if (cap - len < sizeof opt)
                        return 0;
                memcpy(query + at, opt, sizeof opt);
                query[11] = 1; /* ARCOUNT */
                len += sizeof opt;
        } else if (len - at < MESSAGE_OPT || query[at + OPT_AT_FLAGS] & DO_BIT) {
                return 0;
        }
        query[at + OPT_AT_FLAGS] |= DO_BIT;
        if ((query[at + OPT_AT_SIZE] << 8 | query[at + OPT_AT_SIZE + 1]) < udp_size) {
                query[at + OPT_AT_SIZE] = (uint8_t)(udp_size >> 8);
                query[at + OPT_AT_SIZE + 1] = (uint8_t)udp_size;
        }
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
