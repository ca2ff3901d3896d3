/* SPDX-License-Identifier: MIT */
#include "wire/name.h"

#include <string.h>

#include "wire/dns.h"

enum {
        LABEL_MAX = 63,
        POINTER = 0xc0,
};

size_t wire_name_length(const uint8_t *p, const uint8_t *end)
{
        size_t room = (size_t)(end - p);
        if (room > WIRE_NAME_MAX)
                room = WIRE_NAME_MAX;
        size_t at = 0;
        while (at < room) {
                uint8_t label = p[at];
                if (label == 0)
                        return at + 1;
                if (label > LABEL_MAX)
                        return 0;
                at += label + 1u;
        }
        return 0;
}

/* Bit 5, the difference between the cases, of those of eight bytes that are capital letters. */
static uint64_t capitals8(uint64_t bytes)
{
        const uint64_t ones = 0x0101010101010101;
        uint64_t low = bytes & ones * 0x7f;
        uint64_t from_a = low + ones * (0x80 - 'A');
        uint64_t past_z = low + ones * (0x7f - 'Z');
        uint64_t upper = (from_a ^ past_z) & ~bytes & ones * 0x80;
        return upper >> 2;
}

/* wire_fold() on eight bytes at once. */
static uint64_t fold8(uint64_t bytes)
{
        return bytes | capitals8(bytes);
}

static uint64_t load8(const uint8_t *p)
{
        uint64_t bytes;
        memcpy(&bytes, p, sizeof bytes);
        return bytes;
}

static void put_folded(uint8_t *out, const uint8_t *name)
{
        uint64_t folded = fold8(load8(name));
        memcpy(out, &folded, sizeof folded);
}

/* What is left at the end is part of eight bytes that end there, unless there are none. */
void wire_name_fold(uint8_t *out, const uint8_t *name, size_t len)
{
        if (len < 8) {
                for (size_t i = 0; i < len; i++)
                        out[i] = wire_fold(name[i]);
                return;
        }
        for (size_t i = 0; i < len - 8; i += 8)
                put_folded(out + i, name + i);
        put_folded(out + len - 8, name + len - 8);
}

bool wire_name_is_folded(const uint8_t *name, size_t len)
{
        if (len < 8) {
                for (size_t i = 0; i < len; i++)
                        if (name[i] != wire_fold(name[i]))
                                return false;
                return true;
        }
        uint64_t capitals = capitals8(load8(name + len - 8));
        for (size_t i = 0; i < len - 8; i += 8)
                capitals |= capitals8(load8(name + i));
        return capitals == 0;
}

/* Mostly they are the same to the letter. */
static inline bool equal8(const uint8_t *a, const uint8_t *b)
{
        uint64_t x = load8(a), y = load8(b);
        return x == y || fold8(x) == fold8(y);
}

bool wire_name_equal(const uint8_t *a, const uint8_t *b, size_t len)
{
        if (len < 8) {
                for (size_t i = 0; i < len; i++)
                        if (wire_fold(a[i]) != wire_fold(b[i]))
                                return false;
                return true;
        }
        for (size_t i = 0; i < len - 8; i += 8)
                if (!equal8(a + i, b + i))
                        return false;
        return equal8(a + len - 8, b + len - 8);
}

/* Does a label of the question's name start at `target`? */
static bool is_question_label(const uint8_t *msg, size_t target, uint32_t *work)
{
        size_t at = DNS_HEADER;
        while (at < target) {
                if (*work == 0)
                        return false;
                --*work;
                at += msg[at] + 1u;
        }
        return at == target;
}

size_t wire_name_expand(const uint8_t *msg, size_t len, size_t off, size_t question_len, uint32_t *work,
                        struct wire_name *name)
{
        size_t start = off; /* of the labels being read: the name's own, then each tail's */
        size_t taken = 0;   /* bytes at `off`, known from the first pointer or the root on */
        size_t out = 0;
        unsigned labels = 0;
        bool in_question = false;

        for (;;) {
                size_t at = start;
                uint8_t byte;
                for (;;) {
                        if (*work == 0 || at >= len)
                                return 0;
                        --*work;
                        byte = msg[at];
                        if (byte == 0 || byte >= POINTER)
                                break;
                        if (byte > LABEL_MAX)
                                return 0;
                        at += byte + 1u;
                        labels++;
                        /* The root label has to fit too. */
                        if (out + (at - start) >= WIRE_NAME_MAX)
                                return 0;
                }
                if (at != start) {
                        memcpy(name->bytes + out, msg + start, at - start);
                        out += at - start;
                }

                if (byte == 0) {
                        name->bytes[out++] = 0;
                        if (taken == 0)
                                taken = at + 1 - off;
                        break;
                }

                if (at + 1 >= len)
                        return 0;
                if (taken == 0)
                        taken = at + 2 - off;
                size_t target = (size_t)(byte & ~POINTER) << 8 | msg[at + 1];
                if (target < DNS_HEADER || target >= start)
                        return 0;
                if (!in_question && target < DNS_HEADER + question_len) {
                        if (!is_question_label(msg, target, work))
                                return 0;
                        in_question = true;
                        name->from_question = (uint8_t)out;
                }
                start = target;
        }

        name->len = (uint8_t)out;
        name->labels = (uint8_t)labels;
        if (!in_question)
                name->from_question = name->len;
        return taken;
}
