/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: see dict.h. */
#include "entry/dict.h"

#include <string.h>

#include "wire/bytes.h"

/* The 0 that closes a string literal is the root label of an ending. */
#define ENDING(text)                                                                                         \
        {                                                                                                    \
                .len = sizeof(text), .wire = text                                                            \
        }
#define LABEL(text)                                                                                          \
        {                                                                                                    \
                .len = sizeof(text) - 1, .wire = text                                                        \
        }

enum {
        ENDINGS = DICT_LABELS - DICT_FIRST,
};

/* What much of the world's DNS traffic has in common and will for years: large zones, the names that big
 * platforms serve from, conventional host names, and the digits of reverse names, where one byte for a label
 * counts most. */
const struct dict_item dict_items[] = {
    ENDING("\3com"),
    ENDING("\3net"),
    ENDING("\3org"),
    ENDING("\4info"),
    ENDING("\2io"),
    ENDING("\2de"),
    ENDING("\2uk"),
    ENDING("\2co\2uk"),
    ENDING("\2br"),
    ENDING("\3com\2br"),
    ENDING("\2jp"),
    ENDING("\2co\2jp"),
    ENDING("\2ne\2jp"),
    ENDING("\2fr"),
    ENDING("\2ru"),
    ENDING("\2nl"),
    ENDING("\2it"),
    ENDING("\2cn"),
    ENDING("\3com\2cn"),
    ENDING("\3com\2au"),
    ENDING("\2eu"),
    ENDING("\2pl"),
    ENDING("\2es"),
    ENDING("\2ch"),
    ENDING("\2se"),
    ENDING("\2ca"),
    ENDING("\2us"),
    ENDING("\2in"),
    ENDING("\2tv"),
    ENDING("\2me"),
    ENDING("\3app"),
    ENDING("\3dev"),
    ENDING("\3edu"),
    ENDING("\3gov"),
    ENDING("\3xyz"),
    ENDING("\5cloud"),
    ENDING("\7in-addr\4arpa"),
    ENDING("\3ip6\4arpa"),
    ENDING("\6google\3com"),
    ENDING("\12googleapis\3com"),
    ENDING("\21googleusercontent\3com"),
    ENDING("\7gstatic\3com"),
    ENDING("\10facebook\3com"),
    ENDING("\5fbcdn\3net"),
    ENDING("\11amazonaws\3com"),
    ENDING("\12cloudfront\3net"),
    ENDING("\6akamai\3net"),
    ENDING("\12akamaiedge\3net"),
    ENDING("\6akadns\3net"),
    ENDING("\7edgekey\3net"),
    ENDING("\11edgesuite\3net"),
    ENDING("\11microsoft\3com"),
    ENDING("\7windows\3net"),
    ENDING("\16trafficmanager\3net"),
    ENDING("\7outlook\3com"),
    ENDING("\6office\3com"),
    ENDING("\5apple\3com"),
    ENDING("\6icloud\3com"),
    ENDING("\12cloudflare\3com"),
    ENDING("\14root-servers\3net"),
    ENDING("\14gtld-servers\3net"),

    [ENDINGS] = LABEL("\0010"),
    LABEL("\0011"),
    LABEL("\0012"),
    LABEL("\0013"),
    LABEL("\0014"),
    LABEL("\0015"),
    LABEL("\0016"),
    LABEL("\0017"),
    LABEL("\0018"),
    LABEL("\0019"),
    LABEL("\1a"),
    LABEL("\1b"),
    LABEL("\1c"),
    LABEL("\1d"),
    LABEL("\1e"),
    LABEL("\1f"),
    LABEL("\3www"),
    LABEL("\3api"),
    LABEL("\3cdn"),
    LABEL("\4mail"),
    LABEL("\6static"),
    LABEL("\3img"),
    LABEL("\6images"),
    LABEL("\3app"),
    LABEL("\4edge"),
    LABEL("\5login"),
    LABEL("\4auth"),
    LABEL("\4data"),
    LABEL("\1m"),
    LABEL("\6assets"),
    LABEL("\5media"),
    LABEL("\5video"),
    LABEL("\4shop"),
    LABEL("\4news"),
    LABEL("\4blog"),
    LABEL("\3web"),
    LABEL("\2ns"),
    LABEL("\3ns1"),
    LABEL("\3ns2"),
    LABEL("\3ns3"),
    LABEL("\3dns"),
    LABEL("\4smtp"),
    LABEL("\2mx"),
    LABEL("\14autodiscover"),
    LABEL("\12hostmaster"),
    LABEL("\3ftp"),
    LABEL("\4test"),
    LABEL("\5admin"),
    LABEL("\4_tcp"),
    LABEL("\4_udp"),
    LABEL("\6_dmarc"),
    LABEL("\12_domainkey"),
    LABEL("\11us-east-1"),
    LABEL("\2s3"),
    LABEL("\7_dns-sd"),
    LABEL("\6client"),
    LABEL("\6events"),
    [DICT_LAST - DICT_FIRST] = {0},
};

enum {
        SLOTS = 512, /* four times the items: few probes */
        LONGEST = 1 + 17 + 1 + 3 + 1,
};
_Static_assert(LONGEST <= 3 * sizeof(uint64_t), "compared in three pieces");

/* Codes by hash, with the length of what they stand for, so that the items of others need not be fetched;
 * rows of them are closed by a 0. */
static struct {
        uint8_t code, len;
} slots[SLOTS];
static uint8_t shorter[ENDINGS];

static inline uint32_t slot_of(const uint8_t *p, size_t len)
{
        uint32_t some = (uint32_t)p[len / 2] << 24 | (uint32_t)p[len - 2] << 16 | get_be16(p);
        return (some ^ (uint32_t)len << 10) * 0x9e3779b1u >> 23;
}

static inline uint64_t load8(const uint8_t *p)
{
        uint64_t bytes;
        memcpy(&bytes, p, sizeof bytes);
        return bytes;
}

static inline uint32_t load4(const uint8_t *p)
{
        uint32_t bytes;
        memcpy(&bytes, p, sizeof bytes);
        return bytes;
}

/* For 2 to LONGEST bytes; a call would take longer than all the rest. */
static inline bool same(const uint8_t *a, const uint8_t *b, size_t len)
{
        if (len < 4)
                return a[0] == b[0] && a[1] == b[1] && a[len - 1] == b[len - 1];
        if (len < 8)
                return ((load4(a) ^ load4(b)) | (load4(a + len - 4) ^ load4(b + len - 4))) == 0;
        uint64_t middle = len > 16 ? load8(a + 8) ^ load8(b + 8) : 0;
        return ((load8(a) ^ load8(b)) | middle | (load8(a + len - 8) ^ load8(b + len - 8))) == 0;
}

static inline uint8_t find(const uint8_t *p, size_t len, bool ending)
{
        for (uint32_t slot = slot_of(p, len); slots[slot].code != 0; slot = (slot + 1) % SLOTS) {
                uint8_t code = slots[slot].code;
                if (slots[slot].len == len && dict_is_ending(code) == ending &&
                    same(dict_item(code)->wire, p, len))
                        return code;
        }
        return 0;
}

uint8_t dict_find(const uint8_t *name, size_t left)
{
        if (left <= 1)
                return 0;
        if (left <= LONGEST) {
                uint8_t code = find(name, left, true);
                if (code != 0)
                        return code;
        }
        return *name < LONGEST ? find(name, *name + 1u, false) : 0;
}

uint8_t dict_shorter(uint8_t ending)
{
        return shorter[ending - DICT_FIRST];
}

__attribute__((constructor)) static void build_table(void)
{
        for (unsigned code = DICT_FIRST; code <= DICT_LAST; code++) {
                const struct dict_item *item = dict_item((uint8_t)code);
                if (item->len == 0)
                        continue;
                uint32_t slot = slot_of(item->wire, item->len);
                while (slots[slot].code != 0)
                        slot = (slot + 1) % SLOTS;
                slots[slot].code = (uint8_t)code;
                slots[slot].len = item->len;
        }
        for (unsigned i = 0; i < ENDINGS; i++) {
                const struct dict_item *item = &dict_items[i];
                for (size_t at = 0; at + 1 < item->len && shorter[i] == 0; at += item->wire[at] + 1u) {
                        if (at > 0)
                                shorter[i] = find(item->wire + at, item->len - at, true);
                }
        }
}
