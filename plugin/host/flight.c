/* SPDX-License-Identifier: MIT */
#include "host/flight.h"

#include <string.h>

char *flight_put_hex(char *to, const uint8_t *bytes, size_t n)
{
        static const char digits[] = "0123456789abcdef";
        for (size_t i = 0; i < n; i++) {
                *to++ = digits[bytes[i] >> 4];
                *to++ = digits[bytes[i] & 15];
        }
        *to = '\0';
        return to;
}

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool flight_get_hex(const char **from, uint8_t *bytes, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                int high = hex_digit((*from)[0]);
                int low = high < 0 ? -1 : hex_digit((*from)[1]);
                if (low < 0)
                        return false;
                bytes[i] = (uint8_t)(high << 4 | low);
                *from += 2;
        }
        return true;
}

void flight_write(const struct flight *flight, char text[FLIGHT_TEXT_SIZE])
{
        uint32_t cache = flight->cache;
        uint16_t token_len = flight->token.len;
        const uint8_t fixed[FLIGHT_FIXED] = {
            (uint8_t)(cache >> 24), (uint8_t)(cache >> 16),    (uint8_t)(cache >> 8), (uint8_t)cache,
            flight->flags,          (uint8_t)(token_len >> 8), (uint8_t)token_len,
        };
        text = flight_put_hex(text, fixed, sizeof fixed);
        text = flight_put_hex(text, flight->token.bytes, token_len);
        flight_put_hex(text, flight->query, flight->query_len);
}

bool flight_read(const char *text, struct flight *flight)
{
        uint8_t fixed[FLIGHT_FIXED];
        size_t digits = strnlen(text, FLIGHT_TEXT_SIZE);
        if (digits == FLIGHT_TEXT_SIZE || digits % 2 != 0 || !flight_get_hex(&text, fixed, sizeof fixed))
                return false;
        flight->cache =
            (uint32_t)fixed[0] << 24 | (uint32_t)fixed[1] << 16 | (uint32_t)fixed[2] << 8 | fixed[3];
        flight->flags = fixed[4];
        size_t token_len = (size_t)fixed[5] << 8 | fixed[6];
        size_t left = digits / 2 - sizeof fixed;
        if (token_len > left || token_len > sizeof flight->token.bytes || left - token_len > FLIGHT_QUERY_MAX)
                return false;
        flight->token.len = (uint16_t)token_len;
        flight->query_len = (uint16_t)(left - token_len);
        return flight_get_hex(&text, flight->token.bytes, token_len) &&
               flight_get_hex(&text, flight->query, flight->query_len);
}
