/* SPDX-License-Identifier: MIT */
#include "policy/names.h"

#include <stdbool.h>

#include "wire/name.h"

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

/* The character after a backslash. Returns how many characters it takes, or 0. */
static size_t unescape(const char *text, size_t len, uint8_t *out)
{
        if (len == 0)
                return 0;
        if (!is_digit(text[0])) {
                *out = (uint8_t)text[0];
                return 1;
        }
        if (len < 3 || !is_digit(text[1]) || !is_digit(text[2]))
                return 0;
        unsigned value =
            (unsigned)(text[0] - '0') * 100 + (unsigned)(text[1] - '0') * 10 + (unsigned)(text[2] - '0');
        *out = (uint8_t)value;
        return value < 256 ? 3 : 0;
}

size_t policy_name_from_text(const char *text, size_t len, uint8_t name[255])
{
        size_t at = 1, label = 0; /* where the next byte goes; where the label's length does */
        if (len == 1 && text[0] == '.')
                len = 0;
        else if (len == 0)
                return 0;
        for (size_t i = 0; i < len; i++) {
                uint8_t byte = (uint8_t)text[i];
                bool dot = byte == '.';
                if (byte == '\\') {
                        size_t taken = unescape(text + i + 1, len - i - 1, &byte);
                        if (taken == 0)
                                return 0;
                        i += taken;
                } else if (byte <= ' ' || byte == 0x7f) {
                        return 0;
                }
                if (dot) {
                        if (at - label - 1 == 0)
                                return 0;
                        name[label] = (uint8_t)(at - label - 1);
                        label = at++;
                } else {
                        if (at - label - 1 == 63 || at >= 254)
                                return 0;
                        name[at++] = wire_fold(byte);
                }
                if (at > 254 + (size_t)dot)
                        return 0;
        }
        if (at - label - 1 > 0) {
                name[label] = (uint8_t)(at - label - 1);
                label = at++;
        }
        if (at > WIRE_NAME_MAX)
                return 0;
        name[label] = 0;
        return label + 1;
}

size_t policy_name_to_text(const uint8_t *name, char text[POLICY_NAME_TEXT])
{
        char *out = text;
        if (*name == 0)
                *out++ = '.';
        for (; *name != 0; name += *name + 1u) {
                for (unsigned i = 1; i <= *name; i++) {
                        uint8_t c = wire_fold(name[i]);
                        if (c > ' ' && c < 0x7f) {
                                /* What zone files treat specially (RFC 1035 s5.1). */
                                if (c == '.' || c == '\\' || c == '"' || c == ';' || c == '(' || c == ')' ||
                                    c == '@' || c == '$')
                                        *out++ = '\\';
                                *out++ = (char)c;
                        } else {
                                *out++ = '\\';
                                *out++ = (char)('0' + c / 100);
                                *out++ = (char)('0' + c / 10 % 10);
                                *out++ = (char)('0' + c % 10);
                        }
                }
                *out++ = '.';
        }
        *out = '\0';
        return (size_t)(out - text);
}
