/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: an entry's parts before the body, as a view. One walk over the header serves the key
 * comparison's slow cases, rendering, the walk and statistics. */
#ifndef ENTRY_VIEW_H
#define ENTRY_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "entry/header.h"

struct entry_view {
        const uint8_t *entry;
        const uint8_t *name;   /* stored name of the question */
        const uint8_t *extra;  /* NULL: none */
        const uint8_t *scopes; /* SCOPE_ITEM bytes each; NULL: none */
        const uint8_t *page;   /* what follows the name in a page, 4-aligned; NULL: not a page */
        const uint8_t *ede;    /* after the count; NULL: none */
        const uint8_t *group;  /* the policy's; NULL: none */
        const uint8_t *body;   /* NULL when there is no answer for everybody */
        uint32_t size;
        uint16_t qtype;
        uint16_t page_number;
        uint8_t page_code;
        uint8_t rcode;
        uint8_t flags; /* enum entry_flag */
        uint8_t ext;   /* enum entry_ext */
        uint8_t extra_len;
        uint8_t scopes_count;
        uint8_t ede_count;
        uint8_t class; /* for eviction, by the policy */
        uint8_t group_len;
        bool no_answer;
};

void entry_view_init(struct entry_view *view, const uint8_t *entry);

/* Its ext byte, without the rest of a view; 0: none. */
static inline uint8_t entry_ext(const uint8_t *entry)
{
        if (!(entry[ENTRY_AT_FLAGS] & ENTRY_EXT))
                return 0;
        return entry[ENTRY_HEADER + (entry[ENTRY_AT_SIZE] ? 0 : ENTRY_SIZE32) +
                     (entry[ENTRY_AT_TYPE] ? 0 : 2)];
}

/* The question's name, expanded and folded: returns its length. */
size_t entry_view_qname(const struct entry_view *view, uint8_t name[255]);

/* Does it say that there is no answer, rather than give one? Failures, and bare TC. */
bool entry_view_is_failure(const struct entry_view *view);

/* Is there a record in the answer section? */
bool entry_view_has_answer_records(const struct entry_view *view);

#endif
