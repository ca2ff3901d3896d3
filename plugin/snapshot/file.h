/* SPDX-License-Identifier: MIT
 * Snapshot files: written whole or not at all, and read without trust. */
#ifndef SNAPSHOT_FILE_H
#define SNAPSHOT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "entry/check.h"
#include "snapshot/format.h"

/* The moment that a file's times count from, in the header, and everything else that is the same in all. */
void snapshot_header_init(struct snapshot_header *header);

struct snapshot_writer {
        int fd; /* -1: none */
        char *path, *temp;
        uint64_t bytes;
        uint32_t blocks;
};

/* A file to write to, made if there is none, and readable by its owner only. SARDINE_ERR_FOREIGN: writing to
 * it could change somebody else's. Returns the descriptor or a negative error. */
int snapshot_open_own(const char *path, int flags);

/* A new file beside `path`. 0, or a negative error: -EBUSY when somebody else is writing it. */
int snapshot_create(const char *path, const struct snapshot_header *header, struct snapshot_writer *writer);
int snapshot_put_block(struct snapshot_writer *writer, enum block_kind kind, const void *bytes, size_t len,
                       uint32_t count);
/* What has been put so far is on disk when it returns: a long wait, after which snapshot_finish() is a short
 * one. */
int snapshot_sync(struct snapshot_writer *writer);
/* Close the file and put it in the place of `path`, on disk for good. After an error nothing is left of it.
 */
int snapshot_finish(struct snapshot_writer *writer, uint64_t entries);
/* Nothing is left of it, and what was at `path` is still there. */
void snapshot_abandon(struct snapshot_writer *writer);

struct snapshot_reader {
        int fd;
        uint64_t size, offset;
        struct snapshot_header header;
        struct snapshot_end end;
        /* The present block, and how far it has been read. */
        struct block_header block;
        uint8_t *bytes;
        uint32_t at;
        uint32_t blocks;
        uint64_t damaged; /* blocks, or rests of blocks, that were passed over */
};

/* Open a file that claims to be whole. 0; -errno; or SARDINE_ERR_SNAPSHOT, and *why says what is wrong. */
int snapshot_open(const char *path, struct snapshot_reader *reader, const char **why);
void snapshot_close(struct snapshot_reader *reader);

/* Read from the start again. */
void snapshot_rewind(struct snapshot_reader *reader);

/* The next block of this kind whose sum is right. False: there is none; reader->damaged says whether all was
 * well. */
bool snapshot_next_block(struct snapshot_reader *reader, enum block_kind kind);

/* The next entry of the present block, checked; its expiry field is a `time` of format.h. It can be written
 * to until the next block. NULL: there is none. */
uint8_t *snapshot_next_entry(struct snapshot_reader *reader, struct entry_checked *checked);

/* How many seconds have passed since the file was written, 0 if the clock was set back by so little that this
 * is no wonder. Returns false when it was set back by more and nobody knows. */
bool snapshot_age(const struct snapshot_header *header, uint64_t *seconds);

#endif
