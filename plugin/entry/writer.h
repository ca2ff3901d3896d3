/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: writing an entry: bytes, varints, and names with references to suffixes that are there. */
#ifndef ENTRY_WRITER_H
#define ENTRY_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/name.h"

enum {
        SUFFIX_SLOTS = 512,
        SUFFIX_PROBES = 8,
};

/* The end of a stored name, from a label on. Two suffixes are the same when their bytes are and the same part
 * of them follows the question's case. */
struct suffix {
        uint32_t hash;
        uint16_t at;    /* offset in the entry; 0: free */
        uint8_t len;    /* on the wire */
        uint8_t follow; /* how many bytes at its end follow the question's case */
};

struct entry_writer {
        uint8_t *entry;
        size_t pos;
        size_t room;
        bool full; /* something did not fit: the entry is not good */

        /* The question's name, in the entry and on the wire (the key's: folded). */
        size_t question_at;
        const uint8_t *question;
        size_t question_len;

        /* Made when the first name comes that is not the question's. */
        bool indexed;
        struct suffix suffixes[SUFFIX_SLOTS];
};

static inline void writer_init(struct entry_writer *writer, uint8_t *entry, size_t room)
{
        writer->entry = entry;
        writer->pos = 0;
        writer->room = room;
        writer->full = false;
        writer->indexed = false;
}

static inline void writer_put(struct entry_writer *writer, const void *bytes, size_t len)
{
        if (len > writer->room - writer->pos) {
                writer->full = true;
                return;
        }
        memcpy(writer->entry + writer->pos, bytes, len);
        writer->pos += len;
}

static inline void writer_put8(struct entry_writer *writer, uint8_t value)
{
        writer_put(writer, &value, 1);
}

static inline void writer_put16(struct entry_writer *writer, uint16_t value)
{
        uint8_t bytes[2];
        put_be16(bytes, value);
        writer_put(writer, bytes, sizeof bytes);
}

void writer_put_varint(struct entry_writer *writer, uint32_t value);

/* The question's name, folded; once, before any other name. `name` is kept. */
void writer_put_question(struct entry_writer *writer, const uint8_t *name, size_t len);

/* Any other name. With `follow`, what the message took from its question by a compression pointer follows the
 * question's case; else the name is kept to the letter. */
void writer_put_name(struct entry_writer *writer, const struct wire_name *name, bool follow);

#endif
