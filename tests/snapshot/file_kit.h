/* SPDX-License-Identifier: MIT
 * What the tests of snapshots have in common: a folder of their own, files as bytes, and what is in a cache
 * as text that can be compared. */
#ifndef FILE_KIT_H
#define FILE_KIT_H

#include "../cache/kit.h"
#include "snapshot/format.h"

/* A path in a folder that is removed at exit. Static text. */
const char *path_of(const char *name);

struct bytes {
        uint8_t *p;
        size_t len;
};
struct bytes file_read(const char *path);
void file_write(const char *path, const uint8_t *bytes, size_t len);
bool file_there(const char *path);

/* Make all sums right again. Follows the blocks' lengths as far as they make sense. */
void file_seal(uint8_t *bytes, size_t len);

/* As if it had been written so many seconds earlier, and the machine started again since. */
void file_age(const char *path, int64_t seconds);

/* As if no time had passed since, for half a minute at least: this machine may be slow. */
void file_fresh(const char *path);

/* Change the header of a file. */
void file_edit(const char *path, void (*edit)(struct snapshot_header *header));

/* All that is in the cache, a line for each answer with everything that a client could see, sorted. Heap. */
char *contents(sardine_cache *cache);

/* Load into the kit's cache; must succeed. */
struct sardine_snapshot_result load(struct kit *kit, const char *path);
struct sardine_snapshot_result save(struct kit *kit, const char *path);

/* Some of everything: positive, negative, failing, tagged, signed, with EDE, for networks. */
void fill_variety(struct kit *kit, unsigned networks);

/* near.example, for exactly 10.1.0.0/16: the upstream would have liked to know more. ask_near() asks for it,
 * with so many bits. */
void fill_exact(struct kit *kit);
int ask_near(struct kit *kit, uint8_t bits);

#endif
