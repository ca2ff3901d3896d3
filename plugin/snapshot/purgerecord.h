/* SPDX-License-Identifier: MIT
 * A purge as a record of bytes: the same in memory, in the file and in the journal (FORMAT.md). */
#ifndef SNAPSHOT_PURGERECORD_H
#define SNAPSHOT_PURGERECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "entry/check.h"
#include "entry/view.h"
#include "sardine.h"

/* Length of the whole (2), flags, type (2; 0: any), rcode (2), name length, name, tag length, tag, group
 * length, group. */
enum {
        PURGE_AT_FLAGS = 2,
        PURGE_AT_TYPE = 3,
        PURGE_AT_RCODE = 5,
        PURGE_AT_NAME_LEN = 7,
        PURGE_AT_NAME = 8,
        PURGE_LEAST = 10,
        PURGE_MAX = PURGE_LEAST + 255 + 2 * SARDINE_TAG_MAX,
        PURGE_BELOW = 1,
        PURGE_TAG = 2,
        PURGE_RCODE = 4,
        PURGE_FLAGS = 7,
};

/* Write it; returns its length. `selector` is valid, or NULL: everything. */
size_t purge_record_write(const struct sardine_selector *selector, uint8_t out[PURGE_MAX]);

/* How many of the bytes, from the start, are whole and valid records. */
size_t purge_record_check(const uint8_t *bytes, size_t len);

/* Tag and group, each after its length. */
const uint8_t *purge_record_tag(const uint8_t *record);
const uint8_t *purge_record_group(const uint8_t *record);

/* Does it remove this answer to the (checked) question? As in the cache, a page goes as a whole when one of
 * its answers does. */
bool purge_record_removes(const uint8_t *record, const struct entry_key *key,
                          const struct entry_view *answer);

#endif
