/* SPDX-License-Identifier: MIT
 *
 * flight.h - what travels with a query to the backend and comes back with its response: the cache it missed,
 * the token, and, when the response may have to be replaced or rewritten, the client's own query. As text,
 * for a tag of dnsdist.
 */
#ifndef HOST_FLIGHT_H
#define HOST_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sardine.h>

enum {
        /* Longer queries are not taken along: nothing honest is near. */
        FLIGHT_QUERY_MAX = 1024,
        FLIGHT_FIXED = 7, /* cache, flags, token's length */
        FLIGHT_TEXT_SIZE =
            2 * (FLIGHT_FIXED + (int)sizeof(((struct sardine_token *)0)->bytes) + FLIGHT_QUERY_MAX) + 1,
};

enum flight_flag {
        FLIGHT_CHANGED = 1, /* the backend was asked otherwise than the client did: with DO, or for another
                               network */
        FLIGHT_REFRESH = 2, /* a fresh answer was there when the query was let through */
};

struct flight {
        uint32_t cache; /* its number; 0: the query met no cache */
        uint8_t flags;  /* enum flight_flag */
        struct sardine_token token;
        uint16_t query_len; /* 0: not taken along */
        uint8_t query[FLIGHT_QUERY_MAX];
};

/* Bytes as text, and back. The one returns where the text ends; the other moves *from past the digits, and
 * returns false when there are fewer, or other characters. */
char *flight_put_hex(char *to, const uint8_t *bytes, size_t n);
bool flight_get_hex(const char **from, uint8_t *bytes, size_t n);

void flight_write(const struct flight *flight, char text[FLIGHT_TEXT_SIZE]);

/* false: not written by flight_write(). */
bool flight_read(const char *text, struct flight *flight);

#endif
