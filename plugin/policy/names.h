/* SPDX-License-Identifier: MIT
 * Names between text and wire form, for policies: no allocation, always lower case. */
#ifndef POLICY_NAMES_H
#define POLICY_NAMES_H

#include <stddef.h>
#include <stdint.h>

enum {
        POLICY_NAME_TEXT = 1024, /* room for every name as text */
};

/* "www.example.com", with or without the last dot, with escapes (RFC 1035 s5.1), to folded wire form. Returns
 * its length, or 0: not a name. */
size_t policy_name_from_text(const char *text, size_t len, uint8_t name[255]);

/* A valid wire form to text with the last dot. Returns the length. */
size_t policy_name_to_text(const uint8_t *name, char text[POLICY_NAME_TEXT]);

#endif
