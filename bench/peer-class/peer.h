/* SPDX-License-Identifier: MIT
 *
 * Another cache class, to measure beside ours: what scenario_peer.c loads. One thread at a time.
 */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What it is, with its version. */
const char *peer_name(void);

/* An empty cache for so many entries, in place of the one before. 0, or -1. */
int peer_create(uint64_t max_entries);
void peer_destroy(void);
uint64_t peer_entries(void);

/* Query bytes in; a pointer to the reply's bytes out, and their number, or 0: a miss. */
size_t peer_lookup(const uint8_t *query, size_t len, const uint8_t **reply);

/* The answer to the query that was looked up last. */
void peer_insert(const uint8_t *response, size_t len);

#ifdef __cplusplus
}
#endif
#endif
