/* SPDX-License-Identifier: MIT */
#include "tool/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/bytes.h"

enum {
        /* The first four bytes, as this machine reads them. */
        PCAP_MICROS = 0xa1b2c3d4,
        PCAP_NANOS = 0xa1b23c4d,
        PCAP_HEADER = 24,
        PCAP_RECORD = 16,
        NG_SECTION = 0x0a0d0d0a,
        NG_ORDER = 0x1a2b3c4d,
        NG_INTERFACE = 1,
        NG_SIMPLE = 3,
        NG_PACKET = 6,
        NG_LEAST = 12, /* type, length, and length again at the end */
        NG_RESOLUTION = 9,
        BYTES_MAX = 16 << 20,

        LINK_NULL = 0,
        LINK_ETHERNET = 1,
        LINK_LOOP = 108,
        LINK_SLL = 113,
        LINK_SLL2 = 276,

        ETHERTYPE_V4 = 0x0800,
        ETHERTYPE_V6 = 0x86dd,
        ETHERTYPE_VLAN = 0x8100,
        ETHERTYPE_QINQ = 0x88a8,
        PROTOCOL_UDP = 17,
};

struct bytes {
        const uint8_t *at, *end;
};

static size_t left(const struct bytes *b)
{
        return (size_t)(b->end - b->at);
}

static bool skip(struct bytes *b, size_t n)
{
        if (left(b) < n)
                return false;
        b->at += n;
        return true;
}

/* From the link's header to that of IP. */
static bool skip_link(uint32_t link, struct bytes *b)
{
        unsigned type;
        switch (link) {
        case LINK_ETHERNET:
                if (!skip(b, 14))
                        return false;
                type = get_be16(b->at - 2);
                while (type == ETHERTYPE_VLAN || type == ETHERTYPE_QINQ) {
                        if (!skip(b, 4))
                                return false;
                        type = get_be16(b->at - 2);
                }
                return type == ETHERTYPE_V4 || type == ETHERTYPE_V6;
        case LINK_SLL:
                return skip(b, 16);
        case LINK_SLL2:
                return skip(b, 20);
        case LINK_NULL:
        case LINK_LOOP:
                return skip(b, 4);
        default: /* IP at once, which has several numbers */
                return true;
        }
}

/* From there to what UDP carries. Fragments are left out. */
static bool skip_ip_udp(struct bytes *b, struct capture_message *message)
{
        if (!left(b))
                return false;
        if (b->at[0] >> 4 == 4) {
                size_t header = (b->at[0] & 15u) * 4;
                if (left(b) < 20 || header < 20 || b->at[9] != PROTOCOL_UDP || get_be16(b->at + 6) & 0x3fff ||
                    !skip(b, header))
                        return false;
        } else if (b->at[0] >> 4 != 6 || left(b) < 40 || b->at[6] != PROTOCOL_UDP || !skip(b, 40)) {
                return false;
        }
        if (left(b) < 8)
                return false;
        message->from = get_be16(b->at);
        message->to = get_be16(b->at + 2);
        size_t len = get_be16(b->at + 4);
        if (len < 8 || len > left(b))
                return false;
        message->bytes = b->at + 8;
        message->len = len - 8;
        return true;
}

static uint32_t number(const struct capture *capture, const uint8_t *at)
{
        uint32_t value;
        memcpy(&value, at, sizeof value);
        return capture->swapped ? __builtin_bswap32(value) : value;
}

static unsigned short_number(const struct capture *capture, const uint8_t *at)
{
        uint16_t value;
        memcpy(&value, at, sizeof value);
        return capture->swapped ? __builtin_bswap16(value) : value;
}

static bool fail(struct capture *capture, const char *error)
{
        capture->error = error;
        return false;
}

/* So many bytes more into capture->bytes, from `at` on. */
static bool get(struct capture *capture, size_t at, size_t len)
{
        if (len > BYTES_MAX)
                return fail(capture, "damaged");
        if (at + len > capture->room) {
                uint8_t *bytes = realloc(capture->bytes, at + len);
                if (!bytes)
                        return fail(capture, "no memory");
                capture->bytes = bytes;
                capture->room = at + len;
        }
        if (fread(capture->bytes + at, 1, len, capture->file) == len)
                return true;
        return fail(capture, ferror(capture->file) ? "cannot be read" : "cut off");
}

/* Is there anything more? */
static bool more(struct capture *capture)
{
        int c = getc(capture->file);
        if (c == EOF)
                return ferror(capture->file) ? fail(capture, "cannot be read") : false;
        ungetc(c, capture->file);
        return true;
}

/* A whole block of pcapng, of which the first `have` bytes are there. Returns its length, or 0. */
static size_t get_block(struct capture *capture, size_t have)
{
        if (!get(capture, have, NG_LEAST - have))
                return 0;
        const uint8_t *b = capture->bytes;
        if (number(capture, b) == NG_SECTION) { /* the same either way round */
                uint32_t order = number(capture, b + 8);
                if (order == __builtin_bswap32(NG_ORDER))
                        capture->swapped = !capture->swapped;
                else if (order != NG_ORDER)
                        return fail(capture, "damaged");
                capture->n_interfaces = 0;
        }
        size_t len = number(capture, b + 4);
        if (len < NG_LEAST || len % 4 != 0)
                return fail(capture, "damaged");
        return get(capture, NG_LEAST, len - NG_LEAST) ? len : 0;
}

/* The option says 10 to the minus so many, or 2 with the top bit set. */
static uint64_t ticks_of(uint8_t resolution)
{
        uint64_t ticks = 1;
        if (resolution & 0x80)
                return (resolution & 0x7f) < 64 ? UINT64_C(1) << (resolution & 0x7f) : 0;
        for (; resolution > 0 && ticks <= UINT64_MAX / 10; resolution--)
                ticks *= 10;
        return resolution ? 0 : ticks;
}

static bool add_interface(struct capture *capture, size_t len)
{
        const uint8_t *b = capture->bytes;
        if (len < 20)
                return fail(capture, "damaged");
        if (capture->n_interfaces == CAPTURE_INTERFACES)
                return fail(capture, "of too many interfaces");
        struct capture_interface *i = &capture->interfaces[capture->n_interfaces++];
        *i = (struct capture_interface){short_number(capture, b + 8), number(capture, b + 12), 1000000};
        for (size_t at = 16; at + 4 <= len - 4;) {
                unsigned code = short_number(capture, b + at), size = short_number(capture, b + at + 2);
                if (code == 0 || at + 4 + size > len - 4)
                        break;
                if (code == NG_RESOLUTION && size == 1)
                        i->ticks = ticks_of(b[at + 4]);
                at += 4 + (size + 3u) / 4 * 4;
        }
        return i->ticks != 0 || fail(capture, "damaged");
}

bool capture_open(struct capture *capture, const char *path)
{
        *capture = (struct capture){.file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb")};
        if (!capture->file)
                return fail(capture, strerror(errno));
        if (!get(capture, 0, 4))
                return fail(capture, "not a capture");
        uint32_t magic = number(capture, capture->bytes);
        if (magic == NG_SECTION) {
                capture->ng = true;
                return get_block(capture, 4) > 0;
        }
        capture->swapped = magic == __builtin_bswap32(PCAP_MICROS) || magic == __builtin_bswap32(PCAP_NANOS);
        magic = number(capture, capture->bytes);
        if (magic != PCAP_MICROS && magic != PCAP_NANOS)
                return fail(capture, "not a capture");
        if (!get(capture, 4, PCAP_HEADER - 4))
                return false;
        /* Above the link's 16 bits may be others. */
        capture->interfaces[0] =
            (struct capture_interface){.link = number(capture, capture->bytes + 20) & 0xffff,
                                       .ticks = magic == PCAP_MICROS ? 1000000 : 1000000000};
        return true;
}

void capture_close(struct capture *capture)
{
        if (capture->file && capture->file != stdin)
                fclose(capture->file);
        free(capture->bytes);
}

/* The next packet of any kind. */
static bool next_packet(struct capture *capture, struct bytes *packet, const struct capture_interface **from,
                        uint64_t *ms)
{
        if (!more(capture) || !get(capture, 0, PCAP_RECORD))
                return false;
        uint32_t len = number(capture, capture->bytes + 8);
        if (!get(capture, PCAP_RECORD, len))
                return false;
        const uint8_t *b = capture->bytes;
        *from = &capture->interfaces[0];
        *packet = (struct bytes){b + PCAP_RECORD, b + PCAP_RECORD + len};
        *ms = number(capture, b) * UINT64_C(1000) + number(capture, b + 4) / ((*from)->ticks / 1000);
        return true;
}

static bool next_packet_ng(struct capture *capture, struct bytes *packet,
                           const struct capture_interface **from, uint64_t *ms)
{
        size_t len;
        while (more(capture) && (len = get_block(capture, 0)) > 0) {
                const uint8_t *b = capture->bytes;
                uint32_t type = number(capture, b), interface = 0, size;
                size_t start = type == NG_PACKET ? 28 : 12;
                if (type == NG_INTERFACE && !add_interface(capture, len))
                        return false;
                if (type != NG_PACKET && type != NG_SIMPLE)
                        continue;
                if (len < start + 4)
                        return fail(capture, "damaged");
                if (type == NG_PACKET)
                        interface = number(capture, b + 8);
                if (interface >= capture->n_interfaces)
                        return fail(capture, "damaged");
                *from = &capture->interfaces[interface];
                *ms = 0;
                if (type == NG_PACKET) {
                        uint64_t ticks = (uint64_t)number(capture, b + 12) << 32 | number(capture, b + 16);
                        *ms = (uint64_t)((unsigned __int128)ticks * 1000 / (*from)->ticks);
                        size = number(capture, b + 20);
                        if (size > len - start - 4)
                                return fail(capture, "damaged");
                } else {
                        size = number(capture, b + 8);
                        if ((*from)->snap && size > (*from)->snap)
                                size = (*from)->snap;
                        if (size > len - start - 4)
                                size = (uint32_t)(len - start - 4);
                }
                *packet = (struct bytes){b + start, b + start + size};
                return true;
        }
        return false;
}

bool capture_next(struct capture *capture, struct capture_message *message)
{
        struct bytes packet;
        const struct capture_interface *from;
        while ((capture->ng ? next_packet_ng : next_packet)(capture, &packet, &from, &message->ms)) {
                capture->packets++;
                if (skip_link(from->link, &packet) && skip_ip_udp(&packet, message))
                        return true;
        }
        return false;
}
