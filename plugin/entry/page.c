/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: see page.h. */
#include "entry/page.h"

#include <stdatomic.h>
#include <string.h>

#include "entry/encode.h"
#include "entry/header.h"
#include "entry/view.h"
#include "entry/writer.h"

enum {
        PAGE_COUNTS = 4, /* number of networks, of answers, 2 zero */
};

static size_t aligned(size_t at)
{
        return (at + ENTRY_ALIGN - 1) & ~(size_t)(ENTRY_ALIGN - 1);
}

bool entry_is_page(const uint8_t *entry)
{
        if (!(entry[ENTRY_AT_FLAGS] & ENTRY_EXT))
                return false;
        struct entry_view view;
        entry_view_init(&view, entry);
        return view.page != NULL;
}

void page_view_init(struct page_view *page, const uint8_t *entry)
{
        struct entry_view view;
        entry_view_init(&view, entry);
        const uint8_t *p = view.page;
        page->entry = entry;
        page->code = view.page_code;
        page->width = (uint8_t)network_bytes(view.page_code);
        page->count = p[0];
        page->answer_count = p[1];
        page->expiries = p + PAGE_COUNTS;
        page->lives = page->expiries + 4u * page->count;
        page->which = page->lives + page->count;
        page->networks = page->which + page->count;
        size_t end = (size_t)(page->networks - entry) + (size_t)page->width * page->count;
        page->answers = entry + aligned(end);
}

int page_find(const struct page_view *page, const uint8_t network[16])
{
        const uint8_t *p = page->networks;
        const size_t width = page->width;
        if (width > sizeof(uint64_t)) {
                for (unsigned i = 0; i < page->count; i++, p += width)
                        if (memcmp(p, network, width) == 0)
                                return (int)i;
                return -1;
        }
        /* Whatever is read beyond the last one is in an answer: there is one. */
        uint64_t want = 0, mask = 0, have;
        memcpy(&want, network, width);
        memset(&mask, 0xff, width);
        for (unsigned i = 0; i < page->count; i++, p += width) {
                memcpy(&have, p, sizeof have);
                if ((have & mask) == want)
                        return (int)i;
        }
        return -1;
}

static _Atomic uint32_t *expiry_of(const struct page_view *page, unsigned at)
{
        return (_Atomic uint32_t *)(uintptr_t)(page->expiries + 4u * at);
}

static _Atomic uint8_t *life_of(const struct page_view *page, unsigned at)
{
        return (_Atomic uint8_t *)(uintptr_t)(page->lives + at);
}

struct entry_life page_life(const struct page_view *page, unsigned at)
{
        return (struct entry_life){
            .expiry = atomic_load_explicit(expiry_of(page, at), memory_order_relaxed),
            .code = atomic_load_explicit(life_of(page, at), memory_order_relaxed),
        };
}

void page_set_life(const struct page_view *page, unsigned at, struct entry_life life)
{
        atomic_store_explicit(expiry_of(page, at), life.expiry, memory_order_relaxed);
        atomic_store_explicit(life_of(page, at), life.code, memory_order_relaxed);
}

const uint8_t *page_answer(const struct page_view *page, unsigned at)
{
        const uint8_t *answer = page->answers;
        for (unsigned i = 0; i < page->which[at]; i++)
                answer += entry_size(answer);
        return answer;
}

void page_answers(const struct page_view *page, const uint8_t *answers[PAGE_ANSWERS_MAX])
{
        const uint8_t *answer = page->answers;
        for (unsigned i = 0; i < page->answer_count; i++, answer += entry_size(answer))
                answers[i] = answer;
}

void page_network(const struct page_view *page, unsigned at, uint8_t network[16])
{
        memset(network, 0, 16);
        memcpy(network, page->networks + (size_t)page->width * at, page->width);
}

void page_item(const struct page_view *page, unsigned at, struct page_item *item)
{
        page_network(page, at, item->network);
        item->life = page_life(page, at);
        item->answer = page_answer(page, at);
}

/* Number the different answers: which[i] for each item, first[n] for each answer. Returns how many. */
static unsigned number_answers(const struct page_item *items, unsigned count, uint8_t *which,
                               const uint8_t *first[PAGE_ANSWERS_MAX])
{
        enum {
                PLACES_BITS = 9, /* twice as many as there can be answers */
                PLACES = 1 << PLACES_BITS,
        };
        uint16_t places[PLACES] = {0}; /* number + 1 */
        unsigned answers = 0;
        for (unsigned i = 0; i < count; i++) {
                const uint8_t *answer = items[i].answer;
                uint32_t at =
                    ((uint32_t)((uintptr_t)answer / ENTRY_ALIGN) * 0x9e3779b1u) >> (32 - PLACES_BITS);
                while (places[at] && first[places[at] - 1] != answer)
                        at = (at + 1) % PLACES;
                if (!places[at]) {
                        first[answers++] = answer;
                        places[at] = (uint16_t)answers;
                }
                which[i] = (uint8_t)(places[at] - 1);
        }
        return answers;
}

struct page_parts {
        const struct page_item *items;
        unsigned count;
        unsigned answer_count;
        size_t width;
        uint8_t which[PAGE_NETWORKS_MAX];
        const uint8_t *answers[PAGE_ANSWERS_MAX];
};

static void align(struct entry_writer *w)
{
        static const uint8_t zero[ENTRY_ALIGN];
        writer_put(w, zero, aligned(w->pos) - w->pos);
}

static void put_parts(struct entry_writer *w, const void *ctx)
{
        const struct page_parts *parts = ctx;
        align(w);
        writer_put8(w, (uint8_t)parts->count);
        writer_put8(w, (uint8_t)parts->answer_count);
        writer_put16(w, 0);
        for (unsigned i = 0; i < parts->count; i++)
                writer_put(w, &parts->items[i].life.expiry, sizeof parts->items[i].life.expiry);
        for (unsigned i = 0; i < parts->count; i++)
                writer_put8(w, parts->items[i].life.code);
        writer_put(w, parts->which, parts->count);
        for (unsigned i = 0; i < parts->count; i++)
                writer_put(w, parts->items[i].network, parts->width);
        align(w);
        for (unsigned i = 0; i < parts->answer_count; i++)
                writer_put(w, parts->answers[i], entry_size(parts->answers[i]));
}

size_t page_build(const struct entry_key *key, const struct page_item *items, unsigned count, uint8_t *out,
                  size_t room)
{
        struct page_parts parts = {.items = items, .count = count};
        parts.width = network_bytes(key->bytes[KEY_AT_PAGE]);
        parts.answer_count = number_answers(items, count, parts.which, parts.answers);
        struct entry_life latest = items[0].life;
        for (unsigned i = 1; i < count; i++)
                if (items[i].life.expiry > latest.expiry)
                        latest = items[i].life;
        const struct encode_params params = {.expiry = latest.expiry, .life = life_decode(latest.code)};
        return entry_encode_tail(key, &params, put_parts, &parts, out, room);
}
