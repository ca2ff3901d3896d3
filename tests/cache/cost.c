/* SPDX-License-Identifier: MIT
 * usage: cost MESSAGE
 * Inserts one of the largest and worst messages there are; the instructions of sardine_insert() are counted
 * from outside (test_cost.py). Prints what became of it. Without MESSAGE: prints their names. */
#include <stdio.h>
#include <string.h>

#include "sardine.h"
#include "wire/bytes.h"
#include "wire/dns.h"

enum {
        QUESTION = 27, /* behind the question: a.example */
        FURTHEST = 0x3fff,
};

static uint8_t packet[DNS_MAX_MESSAGE];
static size_t at;
static unsigned records;

static void put_pointer(size_t to)
{
        put_be16(packet + at, (uint16_t)(0xc000 | to));
        at += 2;
}

static void put_fixed(uint16_t type, uint16_t rdlen)
{
        put_be16(packet + at, type);
        put_be16(packet + at + 2, DNS_IN);
        put_be32(packet + at + 4, 300);
        put_be16(packet + at + 8, rdlen);
        at += 10;
        records++;
}

static void put_a(void)
{
        put_fixed(DNS_A, 4);
        put_be32(packet + at, records);
        at += 4;
}

static void put_first(void)
{
        put_pointer(DNS_HEADER);
        put_a();
}

/* A record whose owner has as many labels as there can be; where that name is. */
static size_t put_longest(void)
{
        size_t owner = at;
        for (unsigned i = 0; i < 122; i++) {
                packet[at++] = 1;
                packet[at++] = (uint8_t)('a' + i % 26);
        }
        put_pointer(DNS_HEADER);
        put_a();
        return owner;
}

/* Each owner points at the one before. */
static void owners_in_a_chain(void)
{
        put_first();
        for (size_t before = DNS_HEADER; at + 16 <= sizeof packet;) {
                size_t here = at;
                put_pointer(before);
                put_a();
                before = here <= FURTHEST ? here : before;
        }
}

/* A chain in data that nobody looks at, and owners that want it followed. */
static void chain_in_opaque_data(void)
{
        put_pointer(DNS_HEADER);
        put_fixed(65280, 8000);
        size_t before = DNS_HEADER;
        for (unsigned i = 0; i < 4000; i++) {
                size_t here = at;
                put_pointer(before);
                before = here;
        }
        while (at + 18 <= sizeof packet) {
                packet[at++] = 1;
                packet[at++] = 'x';
                put_pointer(before);
                put_a();
        }
}

/* The same longest name again and again. */
static void longest_owner(void)
{
        put_first();
        size_t owner = put_longest();
        while (at + 16 <= sizeof packet) {
                put_pointer(owner);
                put_a();
        }
}

/* Two of them by turns, so that remembering the last one does not help. */
static void longest_owners_by_turns(void)
{
        put_first();
        size_t owner = put_longest();
        for (unsigned i = 0; at + 16 <= sizeof packet; i++) {
                put_pointer(i % 2 ? owner : owner + 2);
                put_a();
        }
}

static void longest_names_in_rdata(void)
{
        put_first();
        size_t owner = put_longest();
        while (at + 14 <= sizeof packet) {
                put_pointer(DNS_HEADER);
                put_fixed(DNS_NS, 2);
                put_pointer(owner);
        }
}

/* As many of these as the limit on work lets pass. */
static void longest_names_within_the_limit(void)
{
        put_first();
        size_t owner = put_longest();
        for (unsigned i = 0; i < 200; i++) {
                put_pointer(DNS_HEADER);
                put_fixed(DNS_NS, 2);
                put_pointer(owner);
        }
        while (at + 16 <= sizeof packet) {
                put_pointer(DNS_HEADER);
                put_a();
        }
}

/* Aliases that lead to each other, in the order that serves nobody. */
static void aliases_backwards(void)
{
        for (unsigned i = 2000; i-- > 0;) {
                if (i == 0) {
                        put_pointer(DNS_HEADER);
                } else {
                        packet[at] = 3;
                        put_be16(packet + at + 1, (uint16_t)(0x4141 + (i / 50 << 8) + i % 50));
                        packet[at + 3] = 'x';
                        at += 4;
                        put_pointer(DNS_HEADER + 2);
                }
                put_fixed(DNS_CNAME, 6);
                packet[at] = 3;
                put_be16(packet + at + 1, (uint16_t)(0x4141 + ((i + 1) / 50 << 8) + (i + 1) % 50));
                packet[at + 3] = 'x';
                at += 4;
                put_pointer(DNS_HEADER + 2);
        }
}

/* Honest. */
static void one_set(void)
{
        while (at + 16 <= sizeof packet)
                put_first();
}

/* No answer looks like this. */
static void an_owner_each(void)
{
        put_first();
        while (at + 19 <= sizeof packet) {
                packet[at++] = 2;
                put_be16(packet + at, (uint16_t)records);
                at += 2;
                put_pointer(DNS_HEADER);
                put_a();
        }
}

/* Sets without end: one record each, all of one name. */
static void a_type_each(void)
{
        put_first();
        for (unsigned type = 1000; at + 12 <= sizeof packet; type++) {
                put_pointer(DNS_HEADER);
                put_fixed((uint16_t)type, 0);
        }
}

static const struct {
        const char *name;
        void (*make)(void);
} messages[] = {
#define M(f)                                                                                                 \
        {                                                                                                    \
#f, f                                                                                        \
        }
    M(owners_in_a_chain),      M(chain_in_opaque_data),
    M(longest_owner),          M(longest_owners_by_turns),
    M(longest_names_in_rdata), M(longest_names_within_the_limit),
    M(aliases_backwards),      M(one_set),
    M(an_owner_each),          M(a_type_each),
};

int main(int argc, char **argv)
{
        static const uint8_t question[] = "\0\1\0\0\0\1\0\0\0\0\0\0\1a\7example\0\0\1\0\1";
        uint8_t reply[512];
        struct sardine_token token;
        struct sardine_query q = {.sz = sizeof q, .packet = question, .len = QUESTION};
        struct sardine_answer a = {.sz = sizeof a, .buf = reply, .cap = sizeof reply, .token = &token};
        struct sardine_insert_result result = {.sz = sizeof result};
        memcpy(packet, question, QUESTION);
        at = QUESTION;
        for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
                if (argc < 2)
                        puts(messages[i].name);
                else if (strcmp(argv[1], messages[i].name) == 0)
                        messages[i].make();
        if (argc < 2)
                return 0;
        if (!records)
                return 2;
        packet[2] = DNS_QR;
        put_be16(packet + 6, (uint16_t)records);
        sardine_cache *cache;
        struct sardine_options options;
        sardine_options_init(&options, sizeof options);
        options.max_entry_size = DNS_MAX_MESSAGE;
        if (sardine_create(&options, &cache) != 0 || sardine_lookup(cache, &q, &a) != SARDINE_MISS)
                return 3;
        int outcome = sardine_insert(cache, &token, packet, at, NULL, &result);
        printf("%u records, %zu bytes: %s\n", records, at,
               outcome == SARDINE_REFUSED ? sardine_reason_name(result.reason) : "stored");
        sardine_destroy(cache);
        return 0;
}
