/* SPDX-License-Identifier: MIT
 *
 * message.h - the few things that the adapter does to DNS messages by itself.
 */
#ifndef HOST_MESSAGE_H
#define HOST_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
        MESSAGE_HEADER = 12,
        MESSAGE_OPT = 11, /* an OPT record without options */
        MESSAGE_SERVFAIL = 2,
        MESSAGE_NXDOMAIN = 3,
        MESSAGE_REFUSED = 5,
};

static inline unsigned message_rcode(const uint8_t *message)
{
        return message[3] & 15;
}

static inline bool message_truncated(const uint8_t *message)
{
        return (message[2] & 2) != 0;
}

static inline void message_set_truncated(uint8_t *message)
{
        message[2] |= 2;
}

/* Let the header's RD and CD be those of `from`. */
void message_copy_rd_cd(uint8_t *message, const uint8_t *from);

/* `query` is one that the library has looked up: one question, and nothing after it but perhaps an OPT.
 * Set DO in it, in an OPT that is added if there is none, and let it say at least `udp_size`. Returns the new
 * length, or 0 when it has DO already, or there is no room in `cap`. */
size_t message_add_do(uint8_t *query, size_t len, size_t cap, uint16_t udp_size);

/* Let such a query say that its client is in this network (`family` 1 or 2, RFC 7871 s6), or, with family 0,
 * nothing of it. An OPT is added if there is none and one is needed. Returns the new length, or 0 when there
 * is no room in `cap`. */
struct message_network {
        uint8_t family, prefix;
        uint8_t addr[16]; /* no bits behind the prefix */
};
size_t message_set_network(uint8_t *query, size_t len, size_t cap, uint16_t udp_size,
                           const struct message_network *network);

/* Of a response that is nothing but its question and an OPT with options: where the OPT begins. Else 0. */
size_t message_only_opt(const uint8_t *response, size_t len);

/* Where the question ends; `len` when the message ends before. */
size_t message_question_end(const uint8_t *message, size_t len);

/* Whose question it is, in lower case. */
struct message_question {
        uint16_t type;
        uint8_t name_len;
        uint8_t name[255];
};

static inline bool message_question_equals(const struct message_question *one,
                                           const struct message_question *other)
{
        return one->type == other->type && one->name_len == other->name_len &&
               memcmp(one->name, other->name, one->name_len) == 0;
}

/* Read the first question. false: there is none, or its name is compressed. */
bool message_question(const uint8_t *message, size_t len, struct message_question *question);

/* Write a response without records to such a query. Returns its length, at most that of the query. */
size_t message_empty_response(const uint8_t *query, size_t len, unsigned rcode, uint8_t *out);

#endif
