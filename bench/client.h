/* SPDX-License-Identifier: MIT
 *
 * What a host does with the library, as short as the scenarios want it.
 */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <sardine.h>

#define REPLY_MAX 4096

/* Options of a cache with their defaults; `sz` is set. */
struct sardine_options client_options(void);

/* Ends the program when that fails. */
sardine_cache *client_create(const struct sardine_options *options);

struct sardine_stats client_stats(sardine_cache *cache);

/* Look up a query over UDP from nowhere in particular. Returns the outcome; `token` may be NULL. */
int client_lookup(sardine_cache *cache, const uint8_t *query, size_t len, uint8_t reply[REPLY_MAX],
                  size_t *reply_len, struct sardine_token *token);

#endif
