/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

#include "store/audit.h"
#include "store/store_impl.h"

static bool in_use(const struct segment *segment)
{
        return segment->state == SEGMENT_OPEN || segment->state == SEGMENT_SEALED;
}

static uint32_t list_length(const struct log *log, uint32_t from, uint8_t state, bool warm)
{
        uint32_t n = 0;
        for (uint32_t s = from; s != NO_SEGMENT; s = log->segments[s].next, n++) {
                assert_int_equal(log->segments[s].state, state);
                if (state == SEGMENT_FREE && !warm)
                        assert_int_equal(log->segments[s].touched, 0);
        }
        return n;
}

/* How much is alive, and when it expires. */
struct content {
        uint32_t live;
        uint16_t due[DUES];
        uint16_t entries;
};

static void count_due(struct content *content, const struct segment *segment, uint32_t expiry,
                      uint32_t stride)
{
        unsigned i = 0;
        while (i + 1 < DUES && expiry >= segment->base + (UINT32_C(8) << i))
                i++;
        content->entries++;
        content->due[i] += (uint16_t)((stride + 4) / 8);
}

static void audit_index(struct store *store, struct content *contents)
{
        const struct log *log = &store->log;
        uint64_t size = index_size(&store->index), entries = 0;
        assert_true(size >= BUCKETS_MIN && size <= store->index.limit);
        for (uint64_t b = 0; b < size; b++)
                for (unsigned i = 0; i < SLOTS; i++) {
                        slot_t *slot = &store->index.buckets[b].slot[i];
                        uint64_t value = slot_get(slot);
                        if (slot_free(value)) {
                                assert_int_equal(value, 0);
                                continue;
                        }
                        entries++;
                        uint32_t s = log_segment_of(log, slot_location(value));
                        assert_true(s < log_segments(log) && in_use(&log->segments[s]));
                        const uint8_t *entry = log_at(log, slot_location(value));
                        uint32_t hash = slot_hash(value);
                        assert_int_equal(hash,
                                         store_fold(store, store->options.hash(store->options.ctx, entry)));
                        assert_true(index_address(hash, size) == b ||
                                    index_address(index_mix(hash), size) == b);
                        /* Nothing else points there. */
                        assert_ptr_equal(index_slot_of(&store->index, hash, slot_location(value)), slot);
                        uint32_t stride = log_stride(log, entry_size(entry));
                        contents[s].live += stride;
                        count_due(&contents[s], &log->segments[s], entry_expiry(entry), stride);
                }
        assert_int_equal(entries, store->entries);
}

void audit(struct store *store)
{
        const struct log *log = &store->log;
        struct content *contents = calloc(log_segments(log) + 1, sizeof *contents);
        audit_index(store, contents);
        uint64_t used_sum = 0, live_sum = 0, touched = 0;
        uint32_t free_segments = 0, retired = 0;
        for (uint32_t s = 0; s < log_segments(log); s++) {
                const struct segment *segment = &log->segments[s];
                touched += segment->touched;
                free_segments += segment->state == SEGMENT_FREE;
                retired += segment->state == SEGMENT_RETIRED;
                if (!in_use(segment)) {
                        assert_int_equal(contents[s].live, 0);
                        continue;
                }
                assert_int_equal(segment->live, contents[s].live);
                assert_int_equal(segment->entries, contents[s].entries);
                assert_memory_equal(segment->due, contents[s].due, sizeof segment->due);
                assert_true(segment->used <= log->segment_size && segment->used <= segment->touched);
                assert_true(segment->state == SEGMENT_OPEN || segment->live > 0);
                assert_int_equal(segment->state == SEGMENT_OPEN, log->open[segment->class] == s);
                used_sum += segment->used;
                live_sum += segment->live;
        }
        assert_int_equal(used_sum, log->used);
        assert_int_equal(live_sum, log->live);
        assert_int_equal(touched, log->touched);
        uint32_t warm = list_length(log, log->warm, SEGMENT_FREE, true);
        uint32_t cold = list_length(log, log->cold, SEGMENT_FREE, false);
        assert_int_equal(warm, log->n_warm);
        assert_int_equal(warm + cold, free_segments);
        assert_int_equal(list_length(log, log->retired_first, SEGMENT_RETIRED, true), log->n_retired);
        assert_int_equal(retired, log->n_retired);
        /* All that is not cold is charged, and the budget allows it. */
        uint32_t there = log->n_blocks << (BLOCK_SHIFT - log->segment_shift);
        assert_int_equal(log->charged, (uint64_t)(there - cold) * log->segment_size);
        assert_true(log->touched <= log->charged);
        assert_true(store->fixed + store->index.touched + log_overhead(log) + log->charged <=
                    store->options.max_bytes);
        if (store->options.max_entries)
                assert_true(store->entries <= store->options.max_entries);
        free(contents);
}
