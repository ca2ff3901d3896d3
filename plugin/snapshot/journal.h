/* SPDX-License-Identifier: MIT
 * The file beside a snapshot with the purges since (FORMAT.md). */
#ifndef SNAPSHOT_JOURNAL_H
#define SNAPSHOT_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

enum {
        JOURNAL_MOST = 48 << 20, /* bytes; loading takes somewhat more */
};

/* Open it for appending; made if it is not there. A record that was cut off at its end is removed, for it
 * would hide those behind it. The descriptor, or a negative error. */
int journal_open(const char *path);

/* What is in it, if that is at most so much: records, of which the last may be cut off. On the heap. Returns
 * 0 or a negative error. */
int journal_read(int fd, size_t most, uint8_t **bytes, size_t *len);

/* Returns 0 or a negative error; then the last record may be cut off. */
int journal_append(int fd, const uint8_t *bytes, size_t len);

#endif
