/* SPDX-License-Identifier: MIT
 *
 * What steps 0 to 5 share: the key, an index, and the path of a lookup and an insert. The index has its full
 * size from the start; it is for one thread, and nothing is evicted.
 */
#include "ladder/ladder.h"

#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "ladder/heap.h"
#include "lifetime.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/query.h"

enum {
        TAG_SHIFT = 48, /* the upper bits of a slot are of the hash, the rest is the entry's address */
        SMALL_RRS = 32,
};

struct cache {
        const struct ladder_layout *layout;
        uint64_t *slots; /* 0: free */
        uint64_t n_slots, entries;
};

static uint64_t coarse_clock(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
        return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

uint64_t (*ladder_clock)(void) = coarse_clock;

static void *cache_create(const struct ladder_layout *layout, uint64_t entries)
{
        struct cache *cache = heap_get(sizeof *cache);
        *cache = (struct cache){.layout = layout, .n_slots = entries + entries / 4 + 1};
        cache->slots = heap_get(cache->n_slots * sizeof *cache->slots);
        memset(cache->slots, 0, cache->n_slots * sizeof *cache->slots);
        return cache;
}

static void *entry_of(uint64_t slot)
{
        return (void *)(uintptr_t)(slot & ((UINT64_C(1) << TAG_SHIFT) - 1));
}

static void cache_destroy(void *arg)
{
        struct cache *cache = arg;
        for (uint64_t i = 0; i < cache->n_slots; i++)
                if (cache->slots[i])
                        cache->layout->drop(entry_of(cache->slots[i]));
        heap_put(cache->slots, cache->n_slots * sizeof *cache->slots);
        heap_put(cache, sizeof *cache);
}

static uint64_t cache_entries(void *arg)
{
        const struct cache *cache = arg;
        return cache->entries;
}

/* The slot of the question's entry, or the free one where it would go; NULL when all are taken. */
static uint64_t *find(const struct cache *cache, const struct ladder_question *question)
{
        uint64_t at = (uint64_t)((unsigned __int128)question->hash * cache->n_slots >> 64);
        uint64_t tag = question->hash << TAG_SHIFT;
        for (uint64_t i = 0; i < cache->n_slots; i++) {
                uint64_t *slot = &cache->slots[at];
                if (!*slot ||
                    ((*slot ^ tag) >> TAG_SHIFT == 0 && cache->layout->matches(entry_of(*slot), question)))
                        return slot;
                at = at + 1 == cache->n_slots ? 0 : at + 1;
        }
        return NULL;
}

static void make_question(struct ladder_question *question, const struct wire_query *query)
{
        question->qtype = query->qtype;
        question->authenticated = !query->cd;
        question->name_len = query->qname_len;
        question->tag_len = 0;
        wire_name_fold(question->name, query->qname, query->qname_len);
        question->hash = XXH3_64bits_withSeed(question->name, question->name_len,
                                              (uint64_t)question->qtype << 1 | question->authenticated);
}

static size_t cache_lookup(void *arg, const uint8_t *packet, size_t len, bool stream, uint8_t *buf,
                           size_t cap, union ladder_token *token)
{
        struct cache *cache = arg;
        struct wire_query query;
        struct ladder_question *question = &token->question;
        struct reply reply;
        question->name_len = 0;
        if (wire_query_parse(packet, len, &query))
                return 0;
        make_question(question, &query);
        uint64_t *slot = find(cache, question);
        if (!slot || !*slot)
                return 0;
        reply_begin(&reply, &query, stream, buf, cap);
        return cache->layout->render(entry_of(*slot), ladder_clock(), &reply) ? reply_end(&reply) : 0;
}

static bool is_answer(const struct wire_response *response, const struct ladder_question *question)
{
        return response->qname && response->qname_len == question->name_len &&
               response->qtype == question->qtype &&
               wire_name_equal(response->qname, question->name, question->name_len) &&
               !(response->flags2 & DNS_TC);
}

static bool store(struct cache *cache, const struct ladder_question *question, const uint8_t *packet,
                  size_t len, struct wire_rr *rrs, size_t room)
{
        static const struct lifetime_limits limits = {86400, 0, 3600, 60}; /* sardine's defaults */
        struct wire_response response;
        enum lifetime_kind kind;
        uint32_t life;
        if (wire_response_parse(packet, len, rrs, room, &response) || !is_answer(&response, question) ||
            lifetime_assess(&response, &limits, &life, &kind))
                return false;
        uint64_t *slot = find(cache, question);
        if (!slot)
                return false;
        if (*slot)
                cache->layout->drop(entry_of(*slot));
        else
                cache->entries++;
        void *entry = cache->layout->make(question, &response, life, ladder_clock());
        *slot = (uintptr_t)entry | question->hash << TAG_SHIFT;
        return true;
}

static bool cache_insert(void *cache, const union ladder_token *token, const uint8_t *packet, size_t len)
{
        const struct ladder_question *question = &token->question;
        struct wire_rr small[SMALL_RRS];
        if (!question->name_len || len < DNS_HEADER)
                return false;
        size_t count = (size_t)get_be16(packet + 6) + get_be16(packet + 8) + get_be16(packet + 10);
        if (count <= SMALL_RRS)
                return store(cache, question, packet, len, small, SMALL_RRS);
        if (count > WIRE_RRS_MAX)
                return false;
        struct wire_rr *large = heap_get(count * sizeof *large);
        bool stored = store(cache, question, packet, len, large, count);
        heap_put(large, count * sizeof *large);
        return stored;
}

#define STEP(n, what)                                                                                        \
        static void *create_##n(uint64_t entries)                                                            \
        {                                                                                                    \
                return cache_create(&ladder_step##n, entries);                                               \
        }                                                                                                    \
        static const struct ladder_rung rung_##n = {                                                         \
            .name = "step" #n,                                                                               \
            .about = what,                                                                                   \
            .create = create_##n,                                                                            \
            .destroy = cache_destroy,                                                                        \
            .lookup = cache_lookup,                                                                          \
            .insert = cache_insert,                                                                          \
            .entries = cache_entries,                                                                        \
        };

STEP(0, "growable lists of parsed records")
STEP(1, "exactly sized boxes")
STEP(2, "one record list, flags in one value")
STEP(3, "no owner where it is the question")
STEP(4, "large record data boxed")
STEP(5, "record data as wire bytes in one block")

const struct ladder_rung *const ladder_rungs[LADDER_RUNGS] = {&rung_0, &rung_1, &rung_2,        &rung_3,
                                                              &rung_4, &rung_5, &ladder_sardine};
