/* SPDX-License-Identifier: MIT */
#include "store/log.h"

#include <errno.h>
#include <string.h>

#include "entry/header.h"
#include "store/epoch.h"

enum {
        LINE = 64,
        AHEAD = 3, /* lines: two for most entries */
};

static void forget_lists(struct log *log)
{
        for (unsigned c = 0; c < CLASSES; c++)
                log->open[c] = NO_SEGMENT;
        log->warm = log->cold = NO_SEGMENT;
        log->retired_first = log->retired_last = NO_SEGMENT;
        log->n_warm = log->n_retired = 0;
}

static size_t blocks_bytes(uint32_t blocks)
{
        return (blocks * sizeof(uint8_t * _Atomic) + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static size_t segments_bytes(const struct log *log, uint32_t blocks)
{
        size_t segments = (size_t)blocks << (BLOCK_SHIFT - log->segment_shift);
        return (segments * sizeof(struct segment) + PAGE - 1) & ~(size_t)(PAGE - 1);
}

int log_init(struct log *log, uint64_t max_bytes, uint32_t segment_size, bool try_jemalloc, bool huge)
{
        *log = (struct log){.segment_size = segment_size, .unit_shift = 2};
        forget_lists(log);
        log->segment_shift = (unsigned)__builtin_ctz(segment_size);
        while (max_bytes >> log->unit_shift > UINT32_MAX - BLOCK_SIZE)
                log->unit_shift++;
        log->blocks_limit = (uint32_t)((max_bytes + BLOCK_SIZE - 1) >> BLOCK_SHIFT);
        log->blocks = memory_reserve(blocks_bytes(log->blocks_limit));
        if (!log->blocks)
                return -ENOMEM;
        log->segments = memory_reserve(segments_bytes(log, log->blocks_limit));
        if (!log->segments) {
                memory_unreserve(log->blocks, blocks_bytes(log->blocks_limit));
                return -ENOMEM;
        }
        memory_init(&log->memory, try_jemalloc, huge);
        return 0;
}

static size_t tables_bytes(const struct log *log, uint32_t blocks)
{
        return blocks_bytes(blocks) + segments_bytes(log, blocks);
}

size_t log_overhead(const struct log *log)
{
        return tables_bytes(log, log->n_blocks);
}

size_t log_block_overhead(const struct log *log)
{
        return tables_bytes(log, log->n_blocks + 1) - tables_bytes(log, log->n_blocks);
}

static void free_blocks(struct log *log)
{
        for (uint32_t b = 0; b < log->n_blocks; b++)
                memory_block_free(&log->memory, log->blocks[b]);
}

void log_fini(struct log *log)
{
        free_blocks(log);
        memory_fini(&log->memory);
        memory_unreserve(log->blocks, blocks_bytes(log->blocks_limit));
        memory_unreserve(log->segments, segments_bytes(log, log->blocks_limit));
}

void log_reset(struct log *log)
{
        free_blocks(log);
        memory_discard(log->blocks, blocks_bytes(log->n_blocks));
        memory_discard(log->segments, segments_bytes(log, log->n_blocks));
        forget_lists(log);
        log->n_blocks = 0;
        log->charged = log->touched = log->used = log->live = 0;
}

static uint8_t *segment_base(const struct log *log, uint32_t segment)
{
        return (uint8_t *)log_at(log, log_location(log, segment, 0));
}

static void push(struct log *log, uint32_t *list, uint32_t segment)
{
        log->segments[segment].next = *list;
        *list = segment;
}

static uint32_t pop(struct log *log, uint32_t *list)
{
        uint32_t segment = *list;
        *list = log->segments[segment].next;
        return segment;
}

/* One block more. With huge pages the first touch takes all of it, so all of it counts at once; the last one,
 * if the budget does not allow all of it, goes without. */
static bool add_block(struct log *log, uint64_t budget)
{
        const uint64_t tables = log_block_overhead(log);
        if (log->n_blocks == log->blocks_limit || budget < log->segment_size + tables)
                return false;
        bool huge = log->memory.huge && budget >= BLOCK_SIZE + tables;
        uint8_t *block = memory_block(&log->memory, huge);
        if (!block)
                return false;
        uint32_t per_block = BLOCK_SIZE >> log->segment_shift;
        uint32_t first = log->n_blocks * per_block;
        atomic_store_explicit(&log->blocks[log->n_blocks++], block, memory_order_release);
        for (uint32_t s = first + per_block; s-- > first;) {
                log->segments[s].state = SEGMENT_FREE;
                if (huge) {
                        log->segments[s].touched = log->segment_size;
                        push(log, &log->warm, s);
                } else {
                        push(log, &log->cold, s);
                }
        }
        if (huge) {
                log->n_warm += per_block;
                log->charged += BLOCK_SIZE;
                log->touched += BLOCK_SIZE;
        }
        return true;
}

bool log_open(struct log *log, unsigned class, uint64_t budget, uint32_t now)
{
        if (log->warm == NO_SEGMENT && log->cold == NO_SEGMENT && !add_block(log, budget))
                return false;
        uint32_t s;
        if (log->warm != NO_SEGMENT) {
                s = pop(log, &log->warm);
                log->n_warm--;
        } else if (budget >= log->segment_size) {
                s = pop(log, &log->cold);
                log->charged += log->segment_size;
        } else {
                return false;
        }
        struct segment *segment = &log->segments[s];
        segment->state = SEGMENT_OPEN;
        segment->class = (uint8_t) class;
        segment->stamp = ++log->stamp;
        atomic_store_explicit(&segment->opened, segment->stamp, memory_order_relaxed);
        segment->used = segment->live = segment->max_expiry = 0;
        segment->base = now;
        segment->entries = 0;
        memset(segment->due, 0, sizeof segment->due);
        log->open[class] = s;
        return true;
}

static void retire(struct log *log, uint32_t s)
{
        struct segment *segment = &log->segments[s];
        log->used -= segment->used;
        segment->state = SEGMENT_RETIRED;
        segment->stamp = epoch_retire();
        segment->next = NO_SEGMENT;
        if (log->retired_last == NO_SEGMENT)
                log->retired_first = s;
        else
                log->segments[log->retired_last].next = s;
        log->retired_last = s;
        log->n_retired++;
}

void log_poll(struct log *log)
{
        if (log->retired_first == NO_SEGMENT)
                return;
        uint64_t horizon = epoch_horizon();
        while (log->retired_first != NO_SEGMENT && log->segments[log->retired_first].stamp < horizon) {
                uint32_t s = pop(log, &log->retired_first);
                log->n_retired--;
                log->segments[s].state = SEGMENT_FREE;
                push(log, &log->warm, s);
                log->n_warm++;
        }
        if (log->retired_first == NO_SEGMENT)
                log->retired_last = NO_SEGMENT;
}

void log_seal(struct log *log, unsigned class)
{
        uint32_t s = log->open[class];
        if (s == NO_SEGMENT)
                return;
        log->open[class] = NO_SEGMENT;
        log->segments[s].state = SEGMENT_SEALED;
        if (log->segments[s].live == 0)
                retire(log, s);
}

static uint16_t *due_of(struct segment *segment, uint32_t expiry)
{
        uint32_t after = expiry > segment->base ? expiry - segment->base : 0;
        unsigned i = after < 8 ? 0 : 29 - (unsigned)__builtin_clz(after);
        return &segment->due[i < DUES ? i : DUES - 1];
}

/* The same for every entry of this size, so that what is added is taken away again. */
static uint16_t due_units(uint32_t stride)
{
        return (uint16_t)((stride + (1u << (DUE_UNIT_SHIFT - 1))) >> DUE_UNIT_SHIFT);
}

uint32_t log_expired(const struct segment *segment, uint32_t second)
{
        if (segment->max_expiry <= second)
                return segment->live;
        if (second < segment->base + 7)
                return 0;
        unsigned complete = 29 - (unsigned)__builtin_clz(second - segment->base + 1);
        uint32_t units = 0;
        for (unsigned i = 0; i < complete && i + 1 < DUES; i++)
                units += segment->due[i];
        uint32_t bytes = units << DUE_UNIT_SHIFT;
        return bytes < segment->live ? bytes : segment->live;
}

uint32_t log_append(struct log *log, unsigned class, const uint8_t *entry)
{
        uint32_t s = log->open[class];
        struct segment *segment = &log->segments[s];
        uint32_t size = entry_size(entry), stride = log_stride(log, size), offset = segment->used;
        memcpy(segment_base(log, s) + offset, entry, size);
        segment->used += stride;
        segment->live += stride;
        log->used += stride;
        log->live += stride;
        if (segment->max_expiry < entry_expiry(entry))
                segment->max_expiry = entry_expiry(entry);
        *due_of(segment, entry_expiry(entry)) += due_units(stride);
        segment->entries++;
        uint32_t touched = (segment->used + PAGE - 1) & ~(uint32_t)(PAGE - 1);
        if (touched > segment->touched) {
                log->touched += touched - segment->touched;
                segment->touched = touched;
        }
        /* Where the next one goes: else the lock would be held until its lines have come from memory. */
        uintptr_t end = (uintptr_t)segment_base(log, s) + segment->used;
        for (unsigned line = 0; line < AHEAD; line++)
                __builtin_prefetch((const void *)(end + line * LINE), 1);
        return log_location(log, s, offset);
}

void log_kill(struct log *log, uint32_t location)
{
        uint32_t s = log_segment_of(log, location);
        struct segment *segment = &log->segments[s];
        const uint8_t *entry = log_at(log, location);
        uint32_t stride = log_stride(log, entry_size(entry));
        *due_of(segment, entry_expiry(entry)) -= due_units(stride);
        segment->entries--;
        segment->live -= stride;
        log->live -= stride;
        if (segment->live == 0 && segment->state == SEGMENT_SEALED)
                retire(log, s);
}

void log_refresh(struct log *log, uint32_t location, uint32_t expiry)
{
        struct segment *segment = &log->segments[log_segment_of(log, location)];
        uint8_t *entry = (uint8_t *)log_at(log, location);
        uint16_t units = due_units(log_stride(log, entry_size(entry)));
        *due_of(segment, entry_expiry(entry)) -= units;
        *due_of(segment, expiry) += units;
        if (segment->max_expiry < expiry)
                segment->max_expiry = expiry;
        entry_set_expiry(entry, expiry);
}

void log_kill_all(struct log *log)
{
        for (unsigned c = 0; c < CLASSES; c++)
                log->open[c] = NO_SEGMENT;
        for (uint32_t s = 0; s < log_segments(log); s++) {
                struct segment *segment = &log->segments[s];
                if (segment->state != SEGMENT_OPEN && segment->state != SEGMENT_SEALED)
                        continue;
                segment->live = 0;
                retire(log, s);
        }
        log->live = 0;
}

bool log_release(struct log *log)
{
        if (log->warm == NO_SEGMENT)
                return false;
        uint32_t s = pop(log, &log->warm);
        log->n_warm--;
        memory_discard(segment_base(log, s), log->segment_size);
        log->charged -= log->segment_size;
        log->touched -= log->segments[s].touched;
        log->segments[s].touched = 0;
        push(log, &log->cold, s);
        return true;
}
