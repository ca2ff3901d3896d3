/* SPDX-License-Identifier: MIT
 * The log: where entries are. Blocks of 2 MiB cut into segments; entries are appended to open segments, back
 * to back. A segment's bytes are written once; it is used again as a whole, when nothing in it is alive and
 * no reader can be in it.
 *
 *      free --open--> open --seal--> sealed --retire--> retired --(epoch)--> free
 *
 * A location counts units (4 bytes, more in a store beyond 16 GiB) from the start of the first block, plus
 * one.
 *
 * Threads: readers call log_at() only. All else is for the holder of the store's lock. */
#ifndef STORE_LOG_H
#define STORE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/memory.h"
#include "store/store.h"

/* Which entries share a segment. */
enum {
        CLASS_NEW = 0,    /* nobody has asked again yet */
        CLASS_PROVEN = 1, /* and the next ones: somebody has, by the time left */
        CLASS_PROVEN_LAST = 4,
        CLASS_NEGATIVE_NEW,
        CLASS_NEGATIVE, /* proven */
        CLASS_KEPT,
        CLASSES = STORE_CLASSES,
        NO_SEGMENT = UINT32_MAX,
};

enum {
        DUES = 16,
        DUE_UNIT_SHIFT = 3,
};

enum segment_state {
        SEGMENT_NONE, /* its block is not there */
        SEGMENT_FREE,
        SEGMENT_OPEN,
        SEGMENT_SEALED,
        SEGMENT_RETIRED,
};

struct segment {
        uint64_t stamp;          /* open and sealed: order of opening. Retired: the epoch's tag */
        _Atomic uint64_t opened; /* the stamp that it was opened with; readers look at it */
        uint32_t used;           /* bytes appended */
        uint32_t live;           /* bytes of them that the index points at */
        uint32_t touched;        /* bytes of memory that count as ours */
        uint32_t max_expiry;     /* of anything appended since it was opened, refreshes included */
        uint32_t next;           /* in a list of free or retired ones */
        uint32_t base;           /* cache second of its opening */
        /* Live bytes, in units of 8, by expiry: in [0] what expires less than 8 seconds after `base`, in
         * each next one up to twice as late, in the last one all the rest. */
        uint16_t due[DUES];
        uint16_t entries; /* that the index points at */
        uint8_t state;
        uint8_t class;
};

struct log {
        struct memory memory;
        unsigned unit_shift, segment_shift;
        uint32_t segment_size;
        uint32_t blocks_limit;

        uint8_t *_Atomic *blocks; /* by number, NULL: not there */
        struct segment *segments;
        uint32_t n_blocks; /* below it, some may be missing */

        uint32_t open[CLASSES];
        /* Free segments: warm ones have memory that counts already, cold ones have not. */
        uint32_t warm, cold;
        uint32_t n_warm;
        uint32_t retired_first, retired_last, n_retired;

        _Atomic uint64_t stamp; /* the last given */
        uint64_t charged;       /* bytes that the budget must allow: whole segments */
        uint64_t touched;       /* bytes of memory */
        uint64_t used, live;
};

int log_init(struct log *log, uint64_t max_bytes, uint32_t segment_size, bool try_jemalloc, bool huge);
void log_fini(struct log *log);

static inline const uint8_t *log_at(const struct log *log, uint32_t location)
{
        uint32_t unit = location - 1;
        unsigned shift = BLOCK_SHIFT - log->unit_shift;
        const uint8_t *block = atomic_load_explicit(&log->blocks[unit >> shift], memory_order_acquire);
        return block + ((size_t)(unit & ((1u << shift) - 1)) << log->unit_shift);
}

static inline uint32_t log_segment_of(const struct log *log, uint32_t location)
{
        return (location - 1) >> (log->segment_shift - log->unit_shift);
}

/* Location of the byte at `offset` of a segment. */
static inline uint32_t log_location(const struct log *log, uint32_t segment, uint32_t offset)
{
        return (segment << (log->segment_shift - log->unit_shift)) + (offset >> log->unit_shift) + 1;
}

/* Bytes that an entry takes. */
static inline uint32_t log_stride(const struct log *log, uint32_t size)
{
        uint32_t unit = 1u << log->unit_shift;
        return (size + unit - 1) & ~(unit - 1);
}

static inline uint32_t log_room(const struct log *log, unsigned class)
{
        uint32_t s = log->open[class];
        return s == NO_SEGMENT ? 0 : log->segment_size - log->segments[s].used;
}

/* Append to the class's open segment, which must have room. Returns the location. */
uint32_t log_append(struct log *log, unsigned class, const uint8_t *entry);

/* The entry there gets this expiry, in place. */
void log_refresh(struct log *log, uint32_t location, uint32_t expiry);

/* Bytes of the segment that are alive and expired at that second, or a little less: what expired just now may
 * be left out. */
uint32_t log_expired(const struct segment *segment, uint32_t second);

/* The index does not point there any more. May retire the segment. */
void log_kill(struct log *log, uint32_t location);

/* The index points nowhere any more. */
void log_kill_all(struct log *log);

void log_seal(struct log *log, unsigned class);

/* Open a segment for the class, whose previous one is sealed; new memory may take at most `budget`. */
bool log_open(struct log *log, unsigned class, uint64_t budget, uint32_t now);

/* Retired segments that no reader can be in become free. */
void log_poll(struct log *log);

/* Give back the memory of a free segment that has some. Returns whether there was one. */
bool log_release(struct log *log);

/* Give back all blocks. All segments are free or open and empty of live bytes; no reader can be in any. */
void log_reset(struct log *log);

/* Segments whose block is there: all below this number. */
static inline uint32_t log_segments(const struct log *log)
{
        return log->n_blocks << (BLOCK_SHIFT - log->segment_shift);
}

/* Those of them that are open or sealed. */
static inline uint32_t log_segments_used(const struct log *log)
{
        return (uint32_t)(log->charged >> log->segment_shift) - log->n_warm - log->n_retired;
}

/* Memory of the tables, as far as they are in use. */
size_t log_overhead(const struct log *log);
/* And by how much they grow with one block more. */
size_t log_block_overhead(const struct log *log);

#endif
