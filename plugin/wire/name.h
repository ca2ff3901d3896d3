/* SPDX-License-Identifier: MIT
 * Domain names (RFC 1035 s3.1, s4.1.4; case RFC 4343). Everything here takes hostile bytes. */
#ifndef WIRE_NAME_H
#define WIRE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        WIRE_NAME_MAX = 255,
        WIRE_LABELS_MAX = 127,
};

/* A name taken out of a message and expanded. */
struct wire_name {
        uint8_t len;    /* bytes used of `bytes`, the root label included: 1..255 */
        uint8_t labels; /* without the root label */
        /* Where the part begins that the message took, by compression pointer, from its question's name:
         * bytes[from_question..len) follows the question's letter case (B26). == len: no part does. */
        uint8_t from_question;
        uint8_t bytes[WIRE_NAME_MAX];
};

/* A-Z to a-z and nothing else: not [ \ ] ^ _ and their 0x20 partners. */
static inline uint8_t wire_fold(uint8_t c)
{
        return (uint8_t)(c | ((uint8_t)(c - 'A') < 26 ? 0x20 : 0));
}

/* Length of the uncompressed name at p, root label included; 0 when there is none before `end`. */
size_t wire_name_length(const uint8_t *p, const uint8_t *end);

/* Copy `len` bytes of an uncompressed name, folded. Safe on length bytes (< 'A'). May be in place. */
void wire_name_fold(uint8_t *out, const uint8_t *name, size_t len);

/* Would folding change nothing? */
bool wire_name_is_folded(const uint8_t *name, size_t len);

/* Equal but for letter case? */
bool wire_name_equal(const uint8_t *a, const uint8_t *b, size_t len);

/* Expand the possibly compressed name at msg[off]. Pointers must go strictly backward, below the start of the
 * name (or tail) that holds them, and not into the header; the whole is at most 255 bytes.
 * `question_len`: length of the question's uncompressed name at msg[12], or 0 for none.
 * `*work` is lowered by the labels and pointers visited; a message that uses it up is refused (B64).
 * Returns how many bytes the name takes at `off`, or 0: malformed, or no work left (*work == 0). */
size_t wire_name_expand(const uint8_t *msg, size_t len, size_t off, size_t question_len, uint32_t *work,
                        struct wire_name *name);

#endif
