/* SPDX-License-Identifier: MIT
 * The numbers of a snapshot file: FORMAT.md describes it. */
#ifndef SNAPSHOT_FORMAT_H
#define SNAPSHOT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

enum {
        SNAPSHOT_VERSION = 1,
        SNAPSHOT_ORDER = 0x01020304,
        SNAPSHOT_SPLITS = 16,
        /* A block is closed when it has so many bytes... */
        BLOCK_TARGET = 1 << 18,
        /* ... so that with one more entry it has at most these. */
        BLOCK_MAX = 1 << 19,
};

/* Bits of snapshot_header.flags. */
enum {
        SNAPSHOT_AGELESS = 1, /* TTLs are shown as they came (options.dont_age) */
};

#define SNAPSHOT_MAGIC "sardsnap"
/* Beside the file, with its name and this: the purges since. */
#define SNAPSHOT_JOURNAL ".purges"

struct snapshot_header {
        char magic[8];
        uint32_t order;
        uint16_t version;
        uint16_t layout; /* ENTRY_LAYOUT_VERSION */
        int64_t wall;    /* seconds since 1970 at the moment that entries' times count from */
        uint64_t boot;   /* seconds of CLOCK_BOOTTIME at that moment */
        uint8_t boot_id[16];
        uint32_t flags;
        uint32_t n_split; /* options.split_options: they are part of keys */
        uint16_t split[SNAPSHOT_SPLITS];
        uint64_t sum; /* of all before it */
};

enum block_kind {
        BLOCK_ENTRIES = 1,
        BLOCK_PAGES = 2,  /* answers for client networks; after the entries of their questions when loaded */
        BLOCK_PURGES = 3, /* what was removed while the file was written */
        BLOCK_END = 4,    /* the last one: struct snapshot_end */
};

struct block_header {
        uint32_t kind;
        uint32_t length; /* of what follows */
        uint32_t count;  /* of entries or purges in it */
        uint32_t number; /* of the block, from 0 */
        uint64_t sum;    /* of what follows */
        uint64_t own;    /* of all before it */
};

struct snapshot_end {
        uint64_t entries;
        uint64_t blocks; /* before this one */
};

/* An entry's time in the file, where its expiry is in memory: seconds from the header's moment to its expiry,
 * plus 2^28, in the low 29 bits; its popularity above. */
enum {
        TIME_BITS = 29,
        TIME_ZERO = 1 << (TIME_BITS - 1),
        TIME_MASK = (1 << TIME_BITS) - 1,
};

static inline uint32_t time_make(int64_t left, uint32_t popularity)
{
        if (left < -TIME_ZERO)
                left = -TIME_ZERO;
        if (left >= TIME_ZERO)
                left = TIME_ZERO - 1;
        return popularity << TIME_BITS | (uint32_t)(left + TIME_ZERO);
}
static inline int32_t time_left(uint32_t time)
{
        return (int32_t)(time & TIME_MASK) - TIME_ZERO;
}
static inline uint32_t time_popularity(uint32_t time)
{
        return time >> TIME_BITS;
}

#endif
