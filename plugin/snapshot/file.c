/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: its version is in the header. */
#include "snapshot/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "entry/header.h"
#include "sardine.h"

enum {
        BOOT_ID_TEXT = 36,
        CLOCK_SLACK = 60, /* so far a clock may step back when it is corrected */
};

static uint64_t header_sum(const struct snapshot_header *header)
{
        return XXH3_64bits(header, offsetof(struct snapshot_header, sum));
}

static uint64_t block_own_sum(const struct block_header *block)
{
        return XXH3_64bits(block, offsetof(struct block_header, own));
}

/* The kernel's name for this run of the machine; zero when there is none. */
static void boot_id(uint8_t id[16])
{
        char text[BOOT_ID_TEXT] = "";
        memset(id, 0, 16);
        int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return;
        if (read(fd, text, sizeof text) == (ssize_t)sizeof text) {
                XXH128_hash_t hash = XXH3_128bits(text, sizeof text);
                memcpy(id, &hash, 16);
        }
        close(fd);
}

static int64_t seconds_of(clockid_t clock)
{
        struct timespec ts;
        return clock_gettime(clock, &ts) == 0 ? ts.tv_sec : 0;
}

void snapshot_header_init(struct snapshot_header *header)
{
        memset(header, 0, sizeof *header);
        memcpy(header->magic, SNAPSHOT_MAGIC, sizeof header->magic);
        header->order = SNAPSHOT_ORDER;
        header->version = SNAPSHOT_VERSION;
        header->layout = ENTRY_LAYOUT_VERSION;
        header->wall = seconds_of(CLOCK_REALTIME);
        header->boot = (uint64_t)seconds_of(CLOCK_BOOTTIME);
        boot_id(header->boot_id);
}

bool snapshot_age(const struct snapshot_header *header, uint64_t *seconds)
{
        static const uint8_t unknown[16];
        uint8_t id[16];
        boot_id(id);
        uint64_t boot = (uint64_t)seconds_of(CLOCK_BOOTTIME);
        if (memcmp(id, unknown, sizeof id) != 0 && memcmp(id, header->boot_id, sizeof id) == 0 &&
            boot >= header->boot) {
                *seconds = boot - header->boot;
                return true;
        }
        int64_t wall = seconds_of(CLOCK_REALTIME);
        if (header->wall < 0 || wall < 0 || wall < header->wall - CLOCK_SLACK)
                return false;
        *seconds = wall > header->wall ? (uint64_t)(wall - header->wall) : 0;
        return true;
}

static int put(struct snapshot_writer *writer, const void *bytes, size_t len)
{
        const uint8_t *p = bytes;
        while (len > 0) {
                ssize_t n = write(writer->fd, p, len);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                p += n;
                len -= (size_t)n;
                writer->bytes += (uint64_t)n;
        }
        return 0;
}

static void forget(struct snapshot_writer *writer)
{
        if (writer->fd >= 0)
                close(writer->fd);
        free(writer->path);
        free(writer->temp);
        *writer = (struct snapshot_writer){.fd = -1, .bytes = writer->bytes};
}

void snapshot_abandon(struct snapshot_writer *writer)
{
        if (writer->fd >= 0)
                unlink(writer->temp);
        forget(writer);
}

int snapshot_open_own(const char *path, int flags)
{
        struct stat st;
        int fd = open(path, flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (fd < 0)
                return errno == ELOOP || errno == ENXIO ? SARDINE_ERR_FOREIGN : -errno;
        int err = fstat(fd, &st) != 0 ? -errno : 0;
        if (!err && (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink > 1))
                err = SARDINE_ERR_FOREIGN;
        if (!err && fchmod(fd, 0600) != 0)
                err = -errno;
        if (err)
                close(fd);
        return err ? err : fd;
}

/* The lock keeps two writers from one file. It goes with the file when that is renamed: who opened it before
 * and got the lock after holds somebody else's snapshot. */
static int open_locked(struct snapshot_writer *writer)
{
        struct stat mine, named;
        int fd = snapshot_open_own(writer->temp, O_WRONLY);
        if (fd < 0)
                return fd;
        writer->fd = fd;
        if (flock(writer->fd, LOCK_EX | LOCK_NB) != 0)
                return errno == EWOULDBLOCK ? -EBUSY : -errno;
        if (fstat(writer->fd, &mine) != 0)
                return -errno;
        if (lstat(writer->temp, &named) != 0 || named.st_ino != mine.st_ino || named.st_dev != mine.st_dev)
                return -EBUSY;
        return ftruncate(writer->fd, 0) == 0 ? 0 : -errno;
}

int snapshot_create(const char *path, const struct snapshot_header *header, struct snapshot_writer *writer)
{
        *writer = (struct snapshot_writer){.fd = -1, .path = strdup(path)};
        if (!writer->path || asprintf(&writer->temp, "%s.new", path) < 0) {
                writer->temp = NULL;
                forget(writer);
                return -ENOMEM;
        }
        int err = open_locked(writer);
        if (err) {
                forget(writer);
                return err;
        }
        struct snapshot_header sealed = *header;
        sealed.sum = header_sum(&sealed);
        err = put(writer, &sealed, sizeof sealed);
        if (err)
                snapshot_abandon(writer);
        return err;
}

int snapshot_put_block(struct snapshot_writer *writer, enum block_kind kind, const void *bytes, size_t len,
                       uint32_t count)
{
        struct block_header block = {
            .kind = kind,
            .length = (uint32_t)len,
            .count = count,
            .number = writer->blocks,
            .sum = XXH3_64bits(bytes, len),
        };
        block.own = block_own_sum(&block);
        int err = put(writer, &block, sizeof block);
        if (!err)
                err = put(writer, bytes, len);
        writer->blocks++;
        return err;
}

/* The new name, too, must be on disk. */
static int sync_folder(char *path)
{
        int fd = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        /* Some file systems cannot do this for a folder; then they need not. */
        int err = fsync(fd) == 0 || errno == EINVAL ? 0 : -errno;
        close(fd);
        return err;
}

int snapshot_sync(struct snapshot_writer *writer)
{
        return fsync(writer->fd) == 0 ? 0 : -errno;
}

int snapshot_finish(struct snapshot_writer *writer, uint64_t entries)
{
        struct snapshot_end end = {.entries = entries, .blocks = writer->blocks};
        int err = snapshot_put_block(writer, BLOCK_END, &end, sizeof end, 0);
        if (!err)
                err = snapshot_sync(writer);
        if (!err && rename(writer->temp, writer->path) != 0)
                err = -errno;
        if (err) {
                snapshot_abandon(writer);
                return err;
        }
        err = sync_folder(writer->path);
        forget(writer);
        return err;
}

static bool get(struct snapshot_reader *reader, void *bytes, size_t len, uint64_t offset)
{
        uint8_t *p = bytes;
        while (len > 0) {
                ssize_t n = pread(reader->fd, p, len, (off_t)offset);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return false;
                p += n;
                len -= (size_t)n;
                offset += (uint64_t)n;
        }
        return true;
}

static bool block_header_good(const struct block_header *block)
{
        return block->own == block_own_sum(block) && block->length <= BLOCK_MAX;
}

/* What is wrong with the file as a whole, or NULL. */
static const char *examine(struct snapshot_reader *reader)
{
        struct snapshot_header *h = &reader->header;
        const size_t tail = sizeof(struct block_header) + sizeof(struct snapshot_end);
        if (!get(reader, h, sizeof *h, 0) || memcmp(h->magic, SNAPSHOT_MAGIC, sizeof h->magic) != 0)
                return "not a snapshot";
        if (h->order != SNAPSHOT_ORDER)
                return "written on a machine with another byte order";
        if (h->version != SNAPSHOT_VERSION || h->layout != ENTRY_LAYOUT_VERSION)
                return "written by another version of the library";
        if (h->sum != header_sum(h) || h->n_split > SNAPSHOT_SPLITS)
                return "its header is damaged";
        if (reader->size < sizeof *h + tail ||
            !get(reader, &reader->block, sizeof reader->block, reader->size - tail) ||
            !get(reader, &reader->end, sizeof reader->end, reader->size - sizeof reader->end) ||
            !block_header_good(&reader->block) || reader->block.kind != BLOCK_END ||
            reader->block.length != sizeof reader->end ||
            reader->block.sum != XXH3_64bits(&reader->end, sizeof reader->end) ||
            reader->block.number != reader->end.blocks)
                return "it has no end: cut off";
        return NULL;
}

int snapshot_open(const char *path, struct snapshot_reader *reader, const char **why)
{
        struct stat st;
        *reader = (struct snapshot_reader){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
        *why = NULL;
        if (reader->fd < 0)
                return -errno;
        if (fstat(reader->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
                snapshot_close(reader);
                *why = "not a file";
                return SARDINE_ERR_SNAPSHOT;
        }
        reader->size = (uint64_t)st.st_size;
        *why = examine(reader);
        if (!*why && !(reader->bytes = aligned_alloc(ENTRY_ALIGN, BLOCK_MAX))) {
                snapshot_close(reader);
                return -ENOMEM;
        }
        if (*why) {
                snapshot_close(reader);
                return SARDINE_ERR_SNAPSHOT;
        }
        posix_fadvise(reader->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
        snapshot_rewind(reader);
        return 0;
}

void snapshot_close(struct snapshot_reader *reader)
{
        if (reader->fd >= 0)
                close(reader->fd);
        free(reader->bytes);
        reader->fd = -1;
        reader->bytes = NULL;
}

void snapshot_rewind(struct snapshot_reader *reader)
{
        reader->offset = sizeof reader->header;
        reader->blocks = 0;
        reader->block = (struct block_header){0};
        reader->at = 0;
}

bool snapshot_next_block(struct snapshot_reader *reader, enum block_kind kind)
{
        struct block_header *block = &reader->block;
        for (;;) {
                /* After a header that is wrong nobody knows where the next one is. */
                if (!get(reader, block, sizeof *block, reader->offset) || !block_header_good(block) ||
                    block->number != reader->blocks) {
                        reader->damaged++;
                        break;
                }
                reader->offset += sizeof *block;
                if (block->kind == BLOCK_END)
                        break;
                uint64_t start = reader->offset;
                reader->offset += block->length;
                reader->blocks++;
                if (block->kind != (uint32_t)kind)
                        continue;
                if (get(reader, reader->bytes, block->length, start) &&
                    block->sum == XXH3_64bits(reader->bytes, block->length)) {
                        reader->at = 0;
                        return true;
                }
                reader->damaged++;
        }
        *block = (struct block_header){0};
        reader->at = 0;
        return false;
}

uint8_t *snapshot_next_entry(struct snapshot_reader *reader, struct entry_checked *checked)
{
        uint8_t *entry = reader->bytes + reader->at;
        if (reader->at == reader->block.length)
                return NULL;
        if (!entry_check(entry, reader->block.length - reader->at, checked)) {
                reader->damaged++;
                reader->at = reader->block.length;
                return NULL;
        }
        reader->at += checked->size;
        return entry;
}
