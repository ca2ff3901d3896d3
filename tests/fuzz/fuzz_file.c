/* SPDX-License-Identifier: MIT
 * Any blocks as a snapshot file: the bytes say which there are, what is in them, and what is wrong with them.
 * A reader sees those that are in order, whole, and no other; purges in them, whatever they are, can be asked
 * of any entry, and the set of them says what they say one by one. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "entry/encode.h"
#include "entry/header.h"
#include "entry/view.h"
#include "fuzz/fuzz.h"
#include "sardine.h"
#include "snapshot/file.h"
#include "snapshot/purgerecord.h"
#include "snapshot/purgeset.h"
#include "wire/bytes.h"
#include "wire/dns.h"

enum {
        BLOCKS = 16,
        ROOM = 1 << 16,
        /* An instruction: its first byte, then the length of the block's bytes (2), then these. */
        KIND = 7,
        OTHER_NUMBER = 8,
        OTHER_SUM = 16,
        OTHER_HEADER = 32,
        TOO_LONG = 64,
        NO_END = 128,
};

struct block {
        uint8_t op;
        const uint8_t *bytes;
        size_t len;
};

static uint8_t file[ROOM + BLOCKS * sizeof(struct block_header) + 256];
static _Alignas(ENTRY_ALIGN) uint8_t entry[1024];
static struct entry_checked checked;

/* www.example.com A with a tag. */
static void make_entry(void)
{
        static const uint8_t response[] = "\0\0\x81\x80\0\1\0\1\0\0\0\0\3www\7example\3com\0\0\1\0\1"
                                          "\xc0\x0c\0\1\0\1\0\0\1\0\0\4\xc0\0\2\1";
        static struct wire_rr rrs[WIRE_RRS_MAX];
        struct wire_response parsed;
        struct entry_key key;
        if (checked.size)
                return;
        MUST(wire_response_parse(response, sizeof response - 1, rrs, WIRE_RRS_MAX, &parsed) == 0);
        entry_key_init(&key, parsed.qname, parsed.qname_len, parsed.qtype, true, false,
                       (const uint8_t *)"\3tag", 4);
        const struct encode_params params = {.expiry = 1000, .life = 256};
        size_t len = entry_encode(&key, &parsed, &params, entry, sizeof entry);
        MUST(len > 0 && entry_check(entry, len, &checked));
}

static size_t put_block(size_t at, const struct block *block, uint32_t number)
{
        struct block_header header = {
            .kind = block->op & KIND,
            .length = (uint32_t)block->len + (block->op & TOO_LONG ? ROOM * 2 : 0),
            .number = number + (block->op & OTHER_NUMBER ? 1 : 0),
            .sum = XXH3_64bits(block->bytes, block->len) + (block->op & OTHER_SUM ? 1 : 0),
        };
        header.own =
            XXH3_64bits(&header, offsetof(struct block_header, own)) + (block->op & OTHER_HEADER ? 1 : 0);
        memcpy(file + at, &header, sizeof header);
        memcpy(file + at + sizeof header, block->bytes, block->len);
        return at + sizeof header + block->len;
}

static unsigned read_blocks(const uint8_t *data, size_t size, struct block blocks[BLOCKS])
{
        unsigned n = 0;
        while (size >= 3 && n < BLOCKS) {
                size_t len = get_be16(data + 1);
                if (len > size - 3)
                        len = size - 3;
                blocks[n++] = (struct block){data[0], data + 3, len};
                data += 3 + len;
                size -= 3 + len;
        }
        return n;
}

static void ask_purges(const uint8_t *bytes, size_t len)
{
        struct purgeset set = {0};
        struct entry_view view;
        bool any = false;
        entry_view_init(&view, entry);
        len = purge_record_check(bytes, len);
        for (size_t at = 0; at < len; at += get_be16(bytes + at))
                any = purge_record_removes(bytes + at, &checked.key, &view) || any;
        MUST(purgeset_add(&set, bytes, len));
        MUST(purgeset_removes(&set, &checked, entry) == any);
        MUST(purgeset_add(&set, bytes, len) && set.len <= len);
        purgeset_fini(&set);
}

/* Blocks of one kind, against what was put in. */
static void read_kind(struct snapshot_reader *reader, enum block_kind kind, const struct block *blocks,
                      unsigned n)
{
        const uint8_t wrong = OTHER_NUMBER | OTHER_HEADER | TOO_LONG;
        struct entry_checked found;
        unsigned i = 0;
        snapshot_rewind(reader);
        for (;; i++) {
                while (i < n && !(blocks[i].op & wrong) && (blocks[i].op & KIND) != BLOCK_END &&
                       ((blocks[i].op & KIND) != kind || blocks[i].op & OTHER_SUM))
                        i++;
                if (!snapshot_next_block(reader, kind))
                        break;
                MUST(i < n && (blocks[i].op & KIND) == kind && !(blocks[i].op & wrong));
                MUST(reader->block.length == blocks[i].len &&
                     memcmp(reader->bytes, blocks[i].bytes, blocks[i].len) == 0);
                if (kind == BLOCK_PURGES)
                        ask_purges(reader->bytes, reader->block.length);
                else
                        while (snapshot_next_entry(reader, &found))
                                MUST(found.size > 0);
        }
        MUST(i == n || blocks[i].op & wrong || (blocks[i].op & KIND) == BLOCK_END);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static int fd = -1;
        static char path[64];
        struct block blocks[BLOCKS];
        if (fd < 0) {
                make_entry();
                fd = memfd_create("snapshot", MFD_CLOEXEC);
                MUST(fd >= 0);
                snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        }
        if (size > ROOM)
                return 0;
        ask_purges(data, size);
        unsigned n = read_blocks(data, size, blocks);
        struct snapshot_header header;
        snapshot_header_init(&header);
        header.sum = XXH3_64bits(&header, offsetof(struct snapshot_header, sum));
        memcpy(file, &header, sizeof header);
        size_t len = sizeof header;
        for (unsigned i = 0; i < n; i++)
                len = put_block(len, &blocks[i], i);
        bool ended = n == 0 || !(blocks[0].op & NO_END);
        if (ended) {
                const struct snapshot_end end = {.blocks = n};
                const struct block last = {BLOCK_END, (const uint8_t *)&end, sizeof end};
                len = put_block(len, &last, n);
        }
        MUST(ftruncate(fd, 0) == 0 && pwrite(fd, file, len, 0) == (ssize_t)len);
        struct snapshot_reader reader;
        const char *why;
        int err = snapshot_open(path, &reader, &why);
        MUST(err == 0 || err == SARDINE_ERR_SNAPSHOT);
        MUST(err == 0 || !ended);
        if (err)
                return 0;
        for (enum block_kind kind = BLOCK_ENTRIES; kind <= BLOCK_PURGES; kind++)
                read_kind(&reader, kind, blocks, n);
        snapshot_close(&reader);
        return 0;
}
