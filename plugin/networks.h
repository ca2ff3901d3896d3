/* SPDX-License-Identifier: MIT
 * Answers that are good for a client network only (RFC 7871 s7.3). They are kept in pages (entry/page.h); the
 * question's base entry, the one for everybody, says for which prefix lengths there are pages and how many,
 * so that a lookup probes exactly those, and questions without such answers pay nothing. The number of pages
 * of a prefix length grows one by one (linear hashing), so that no insert has to rewrite more than a few
 * pages. */
#ifndef NETWORKS_H
#define NETWORKS_H

#include <stdbool.h>
#include <stdint.h>

#include "cache.h"
#include "entry/page.h"
#include "entry/view.h"

enum {
        /* In the number of pages and in the number of a page: these answers are only for clients that tell
         * exactly this prefix length, because the upstream would have liked to know more (RFC 7871 s7.3.1).
         */
        NETWORKS_EXACT = 0x8000,
};

struct network {
        uint8_t code;
        uint8_t addr[16]; /* masked */
        bool exact;
};

/* What a network's answer is known by, in marks: the same wherever its page is. */
uint64_t networks_mark(const sardine_cache *cache, uint64_t base_hash, const struct network *network);

/* In the reader's section: the page that the network is in if it is anywhere, or NULL. `pages` is the base
 * entry's word. `key` is the question's; it comes back without page. */
const uint8_t *networks_page(sardine_cache *cache, struct entry_key *key, const struct network *network,
                             uint16_t pages, bool touch, uint32_t *popularity);

/* Under the store's lock: keep `answer` (an entry for `key`, without page) for the network. `allow` says
 * whether it may take the place of the answer that is there, which stands as `life` says: 0 or the reason why
 * not. Returns enum sardine_insert_outcome, or minus the reason for a refusal. */
typedef unsigned (*networks_allow)(const void *ctx, const uint8_t *present, const struct entry_life *life);
int networks_put(sardine_cache *cache, const struct entry_key *key, const struct network *network,
                 const uint8_t *answer, uint32_t now, networks_allow allow, const void *ctx);

/* Under the store's lock: if the network's answer has expired, it is not to stand in any more. */
void networks_outdate(sardine_cache *cache, const struct entry_key *key, const struct network *network,
                      uint32_t now);

/* Under the store's lock: is there an answer that `usable` says yes to for a larger network that holds this
 * one?
 */
typedef bool (*networks_usable)(const void *ctx, const uint8_t *answer, const struct entry_life *life);
bool networks_covered(sardine_cache *cache, const struct entry_key *key, const struct network *network,
                      networks_usable usable, const void *ctx);

#endif
