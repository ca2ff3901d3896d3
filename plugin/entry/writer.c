/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: see writer.h. */
#include "entry/writer.h"

#include <string.h>

#include "entry/stored.h"

void writer_put_varint(struct entry_writer *writer, uint32_t value)
{
        if (value < VARINT_2) {
                writer_put8(writer, (uint8_t)value);
        } else if (value <= VARINT_2_MAX) {
                writer_put16(writer, (uint16_t)(VARINT_2 * 0x100 + value - VARINT_2));
        } else {
                uint8_t bytes[5] = {VARINT_5};
                put_be32(bytes + 1, value);
                writer_put(writer, bytes, sizeof bytes);
        }
}

void writer_put_question(struct entry_writer *writer, const uint8_t *name, size_t len)
{
        writer->question_at = writer->pos;
        writer->question = name;
        writer->question_len = len;
        for (size_t at = 0; at < len; at += name[at] + 1u) {
                uint8_t code = dict_find(name + at, len - at);
                if (code == 0) {
                        writer_put(writer, name + at, name[at] + 1u);
                        continue;
                }
                writer_put8(writer, code);
                if (dict_is_ending(code))
                        break;
        }
}

/* The hash of a suffix from the hash of what follows its first label. */
static uint32_t suffix_hash(uint32_t tail, const uint8_t *label)
{
        size_t len = label[0] + 1u;
        uint64_t hash = tail, part;
        for (; len >= sizeof part; label += sizeof part, len -= sizeof part) {
                memcpy(&part, label, sizeof part);
                hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
                hash ^= hash >> 32;
        }
        part = 0;
        memcpy(&part, label, len);
        hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
        return (uint32_t)(hash >> 32);
}

/* Is what is stored at `at` this very suffix? Its length and part that follows are known to be the same. */
static bool same_suffix(const struct entry_writer *writer, size_t at, const uint8_t *name, size_t len,
                        size_t follow)
{
        struct name_walk walk;
        struct name_part part;
        name_walk_init(&walk, writer->entry, writer->entry + at);
        while (len > follow) {
                name_walk_next(&walk, &part);
                for (size_t i = 0; i < part.len; i++) /* most are short: no call for each */
                        if (part.wire[i] != name[i])
                                return false;
                name += part.len;
                len -= part.len;
        }
        return true;
}

/* The slot of a suffix: its own, or a free one for it, or NULL. Bounded work, whatever the names. */
static struct suffix *suffix_slot(struct entry_writer *writer, uint32_t hash, const uint8_t *name, size_t len,
                                  size_t follow)
{
        for (uint32_t i = 0; i < SUFFIX_PROBES; i++) {
                struct suffix *suffix = &writer->suffixes[(hash + i) % SUFFIX_SLOTS];
                if (suffix->at == 0 ||
                    (suffix->hash == hash && suffix->len == len && suffix->follow == follow &&
                     same_suffix(writer, suffix->at, name, len, follow)))
                        return suffix;
        }
        return NULL;
}

/* A name's labels: where each begins on the wire, and the hash of the suffix from there on. */
struct labels {
        unsigned count;
        uint8_t start[WIRE_LABELS_MAX];
        uint32_t hash[WIRE_LABELS_MAX];
};

/* Of the labels before `end`. */
static void find_labels(struct labels *labels, const uint8_t *name, size_t end, size_t follow)
{
        labels->count = 0;
        for (size_t at = 0; at < end && name[at] != 0; at += name[at] + 1u)
                labels->start[labels->count++] = (uint8_t)at;
        uint32_t tail = (uint32_t)follow;
        for (unsigned i = labels->count; i-- > 0; tail = labels->hash[i])
                labels->hash[i] = suffix_hash(tail, name + labels->start[i]);
}

static void index_question(struct entry_writer *writer)
{
        struct labels labels;
        find_labels(&labels, writer->question, writer->question_len, 0);
        memset(writer->suffixes, 0, sizeof writer->suffixes);
        writer->indexed = true;

        struct name_walk walk;
        struct name_part part = {.last = false};
        name_walk_init(&walk, writer->entry, writer->entry + writer->question_at);
        for (unsigned i = 0; i < labels.count && !part.last; i++) {
                size_t len = writer->question_len - labels.start[i];
                struct suffix *slot =
                    suffix_slot(writer, labels.hash[i], writer->question + labels.start[i], len, 0);
                name_walk_next(&walk, &part);
                if (slot != NULL && !part.last)
                        *slot = (struct suffix){labels.hash[i], (uint16_t)part.at, (uint8_t)len, 0};
        }
}

/* Where in the entry the last `len` bytes of the question's name begin; 0: inside an ending, or the root. */
static size_t question_suffix(const struct entry_writer *writer, size_t len)
{
        struct name_walk walk;
        struct name_part part;
        size_t left = writer->question_len;
        name_walk_init(&walk, writer->entry, writer->entry + writer->question_at);
        for (;;) {
                name_walk_next(&walk, &part);
                if (left == len && len > 1)
                        return part.at;
                if (part.last)
                        return 0;
                left -= part.len;
        }
}

void writer_put_name(struct entry_writer *writer, const struct wire_name *name, bool follow)
{
        if (writer->full)
                return;
        if (!writer->indexed)
                index_question(writer);

        /* The part that follows the question, if any, begins at `end`. One that begins inside an ending
         * cannot follow: it becomes lower case. */
        uint8_t folded[WIRE_NAME_MAX];
        const uint8_t *bytes = name->bytes;
        size_t len = name->len, end = len, target = 0;
        if (follow && name->from_question < len) {
                size_t from = name->from_question;
                memcpy(folded, bytes, from);
                wire_name_fold(folded + from, bytes + from, len - from);
                bytes = folded;
                target = question_suffix(writer, len - from);
                if (target != 0)
                        end = from;
        }
        size_t following = len - end;

        struct labels labels;
        find_labels(&labels, bytes, end, following);
        for (unsigned i = 0; i < labels.count; i++) {
                const uint8_t *label = bytes + labels.start[i];
                size_t left = len - labels.start[i];
                uint8_t code = dict_find(label, left);
                if (code != 0 && dict_is_ending(code)) {
                        writer_put8(writer, code);
                        return;
                }
                struct suffix *slot = suffix_slot(writer, labels.hash[i], label, left, following);
                if (slot != NULL && slot->at != 0) {
                        writer_put16(writer, (uint16_t)(STORED_REF << 8 | slot->at));
                        return;
                }
                if (slot != NULL && writer->pos <= STORED_REF_MAX)
                        *slot = (struct suffix){labels.hash[i], (uint16_t)writer->pos, (uint8_t)left,
                                                (uint8_t)following};
                if (code != 0)
                        writer_put8(writer, code);
                else
                        writer_put(writer, label, label[0] + 1u);
        }
        if (target != 0)
                writer_put16(writer, (uint16_t)(STORED_REF << 8 | STORED_REF_FOLLOW | target));
        else
                writer_put8(writer, 0);
}
