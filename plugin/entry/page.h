/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: pages: the answers of one question for many client networks (RFC 7871). A page is an entry of
 * its own, found under the question's key with a prefix length and a page number; it holds a row of networks
 * of that prefix length, each with its own life, and each different answer once. */
#ifndef ENTRY_PAGE_H
#define ENTRY_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "entry/header.h"
#include "entry/key.h"

enum {
        PAGE_NETWORKS_MAX = 255,
        PAGE_ANSWERS_MAX = 255,
};

struct page_view {
        const uint8_t *entry;
        const uint8_t *expiries; /* 4 bytes each, host order, atomic */
        const uint8_t *lives;    /* atomic */
        const uint8_t *which;    /* number of the answer */
        const uint8_t *networks; /* `width` bytes each */
        const uint8_t *answers;  /* entries, back to back */
        uint8_t count;           /* of networks */
        uint8_t answer_count;
        uint8_t width;
        uint8_t code;
};

/* What a page is built from, and what it is taken apart into. */
struct page_item {
        uint8_t network[16]; /* masked */
        struct entry_life life;
        const uint8_t
            *answer; /* an entry for the same question, without page; equal ones at the same place */
};

bool entry_is_page(const uint8_t *entry);
void page_view_init(struct page_view *page, const uint8_t *entry);

/* The place of a (masked) network, or -1. */
int page_find(const struct page_view *page, const uint8_t network[16]);

struct entry_life page_life(const struct page_view *page, unsigned at);
const uint8_t *page_answer(const struct page_view *page, unsigned at);
/* All answers of the page, by number. */
void page_answers(const struct page_view *page, const uint8_t *answers[PAGE_ANSWERS_MAX]);
void page_network(const struct page_view *page, unsigned at, uint8_t network[16]);
void page_item(const struct page_view *page, unsigned at, struct page_item *item);

/* Move a network's expiry, in place; by the store's writer. The page's own expiry is the latest of its
 * networks': the caller sees to that. */
void page_set_life(const struct page_view *page, unsigned at, struct entry_life life);

/* Write the page for `key` (with page). What is at the same place is stored once. Returns its length, or 0:
 * no room. */
size_t page_build(const struct entry_key *key, const struct page_item *items, unsigned count, uint8_t *out,
                  size_t room);

#endif
