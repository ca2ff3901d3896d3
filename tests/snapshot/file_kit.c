/* SPDX-License-Identifier: MIT */
#include "file_kit.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/ecs.h"
#include "wire/response.h"

static char folder[] = "/tmp/sardine-snapshot-XXXXXX";

static void remove_folder(void)
{
        DIR *dir = opendir(folder);
        for (struct dirent *entry; dir && (entry = readdir(dir));)
                unlinkat(dirfd(dir), entry->d_name, 0);
        if (dir)
                closedir(dir);
        rmdir(folder);
}

const char *path_of(const char *name)
{
        static bool made;
        static char paths[8][128];
        static unsigned next;
        if (!made) {
                assert_non_null(mkdtemp(folder));
                atexit(remove_folder);
                made = true;
        }
        char *path = paths[next++ % 8];
        snprintf(path, sizeof paths[0], "%s/%s", folder, name);
        return path;
}

struct bytes file_read(const char *path)
{
        struct stat st;
        int fd = open(path, O_RDONLY);
        assert_true(fd >= 0 && fstat(fd, &st) == 0);
        struct bytes bytes = {.len = (size_t)st.st_size};
        bytes.p = aligned_alloc(8, (bytes.len + 16) & ~(size_t)7);
        assert_true(read(fd, bytes.p, bytes.len) == (ssize_t)bytes.len);
        close(fd);
        return bytes;
}

void file_write(const char *path, const uint8_t *bytes, size_t len)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        assert_true(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
        close(fd);
}

bool file_there(const char *path)
{
        return access(path, F_OK) == 0;
}

void file_seal(uint8_t *bytes, size_t len)
{
        struct snapshot_header *header = (void *)bytes;
        header->sum = XXH3_64bits(header, offsetof(struct snapshot_header, sum));
        struct block_header block;
        for (size_t at = sizeof *header; at + sizeof block <= len; at += block.length) {
                memcpy(&block, bytes + at, sizeof block);
                if (block.length > len - at - sizeof block)
                        break;
                block.sum = XXH3_64bits(bytes + at + sizeof block, block.length);
                block.own = XXH3_64bits(&block, offsetof(struct block_header, own));
                memcpy(bytes + at, &block, sizeof block);
                at += sizeof block;
        }
}

void file_edit(const char *path, void (*edit)(struct snapshot_header *header))
{
        struct bytes bytes = file_read(path);
        edit((struct snapshot_header *)(void *)bytes.p);
        file_seal(bytes.p, bytes.len);
        file_write(path, bytes.p, bytes.len);
        free(bytes.p);
}

static int64_t seconds_older;

static void make_older(struct snapshot_header *header)
{
        header->wall -= seconds_older;
        header->boot_id[0] ^= 1;
}

void file_age(const char *path, int64_t seconds)
{
        seconds_older = seconds;
        file_edit(path, make_older);
}

void file_fresh(const char *path)
{
        file_age(path, -50);
}

struct lines {
        sardine_cache *cache;
        char **line;
        size_t count, room;
};

/* How popular a page of networks was does not come back. */
static int add_line(void *ctx, const struct sardine_entry_view *e)
{
        struct lines *lines = ctx;
        static uint8_t message[65535];
        static struct wire_rr rrs[WIRE_RRS_MAX];
        struct wire_response response;
        int len = sardine_entry_message(lines->cache, e, message, sizeof message);
        assert_true(len > 0);
        assert_int_equal(wire_response_parse(message, (size_t)len, rrs, WIRE_RRS_MAX, &response), 0);
        char *text;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        for (uint32_t i = 0; i < e->qname_len; i++)
                fprintf(out, "%02x", e->qname[i]);
        fprintf(
            out,
            " %u rd %u cd %u do %u life %u ttl %u expired %u hits %u tag %.*s class %u group %.*s net %u %u/",
            e->qtype, e->rd, e->cd, e->dnssec_ok, e->life, e->ttl, e->expired, e->ecs_family ? 0 : e->hits,
            (int)e->tag_len, (const char *)e->tag, e->eviction_class, (int)e->group_len,
            (const char *)e->group, e->ecs_family, e->ecs_prefix);
        for (unsigned i = 0; i < 16; i++)
                fprintf(out, "%02x", e->ecs_addr[i]);
        fputc(' ', out);
        for (int i = 0; i < len; i++)
                fprintf(out, "%02x", message[i]);
        fclose(out);
        if (lines->count == lines->room) {
                lines->room = lines->room * 2 + 16;
                lines->line = realloc(lines->line, lines->room * sizeof *lines->line);
        }
        lines->line[lines->count++] = text;
        return 0;
}

static int compare(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

char *contents(sardine_cache *cache)
{
        struct lines lines = {.cache = cache};
        assert_true(sardine_walk(cache, NULL, add_line, &lines) >= 0);
        if (lines.count)
                qsort(lines.line, lines.count, sizeof *lines.line, compare);
        char *text;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        for (size_t i = 0; i < lines.count; i++) {
                fprintf(out, "%s\n", lines.line[i]);
                free(lines.line[i]);
        }
        fclose(out);
        free(lines.line);
        return text;
}

struct sardine_snapshot_result load(struct kit *kit, const char *path)
{
        struct sardine_snapshot_result result = {.sz = sizeof result};
        assert_int_equal(sardine_snapshot_load(kit->cache, path, &result), 0);
        return result;
}

struct sardine_snapshot_result save(struct kit *kit, const char *path)
{
        struct sardine_snapshot_result result = {.sz = sizeof result};
        assert_int_equal(sardine_snapshot_save(kit->cache, path, &result), 0);
        return result;
}

static void fill_network(struct kit *kit, unsigned i)
{
        struct wire_ecs e = {.family = ECS_IPV4, .source = 24, .addr = {10, (uint8_t)(i >> 8), (uint8_t)i}};
        uint8_t asked[24], told[24];
        struct ask ask = ASK("cdn.example", DNS_A, .rd = true, .options = asked);
        ask.options_len = wire_ecs_write(&e, asked);
        e.scope = 24;
        size_t told_len = wire_ecs_write(&e, told);
        char records[64];
        snprintf(records, sizeof records, "cdn.example 300 IN A 192.0.2.%u", i % 7);
        fill(kit, ask,
             REPLY("cdn.example", DNS_A, .ra = true, .records = records, .edns = true, .opt = told,
                   .opt_len = told_len));
}

static struct ask near_ask(uint8_t bits, uint8_t scope, uint8_t *option)
{
        const struct wire_ecs e = {
            .family = ECS_IPV4, .source = bits, .scope = scope, .addr = {10, 1, bits > 16 ? 2 : 0}};
        struct ask ask = ASK("near.example", DNS_A, .rd = true, .options = option);
        ask.options_len = wire_ecs_write(&e, option);
        return ask;
}

void fill_exact(struct kit *kit)
{
        uint8_t asked[24], told[24];
        const struct ask ask = near_ask(16, 0, asked), answer = near_ask(16, 24, told);
        fill(kit, ask,
             REPLY("near.example", DNS_A, .ra = true, .records = "near.example 300 IN A 192.0.2.1",
                   .edns = true, .opt = told, .opt_len = answer.options_len));
}

int ask_near(struct kit *kit, uint8_t bits)
{
        uint8_t asked[24];
        return look(kit, near_ask(bits, 0, asked))->outcome;
}

void fill_variety(struct kit *kit, unsigned networks)
{
        fill(kit, ASK("a.example.com", DNS_A, .rd = true),
             REPLY("a.example.com", DNS_A, .ra = true,
                   .records = "a.example.com 300 IN A 192.0.2.1\na.example.com 300 IN A 192.0.2.2"));
        fill(kit, ASK("a.example.com", DNS_A, .rd = true, .tag = "tenant"),
             REPLY("a.example.com", DNS_A, .ra = true, .records = "a.example.com 600 IN A 192.0.2.99"));
        fill(kit, ASK("a.example.com", DNS_A, .rd = true, .cd = true),
             REPLY("a.example.com", DNS_A, .ra = true, .records = "a.example.com 90 IN A 192.0.2.98"));
        fill(kit, ASK("www.example.org", DNS_AAAA, .rd = true, .edns = true, .dnssec_ok = true),
             REPLY("www.example.org", DNS_AAAA, .ra = true, .ad = true, .edns = true, .dnssec_ok = true,
                   .records = "www.example.org 300 IN CNAME Host.Example.Net\n"
                              "host.example.net 60 IN AAAA 2001:db8::1\n"
                              "-- authority\nexample.net 900 IN NS ns1.example.net\n"
                              "-- additional\nns1.example.net 900 IN A 192.0.2.53"));
        fill(kit, ASK("none.example", DNS_MX, .rd = true),
             REPLY("none.example", DNS_MX, .rcode = DNS_NXDOMAIN, .ra = true,
                   .records = "-- authority\nexample 300 IN SOA ns.example host.example 1 2 3 4 60"));
        static const uint8_t ede[] = {0, 15, 0, 9, 0, 22, 'n', 'o', 'b', 'o', 'd', 'y', '!'};
        fill(kit, ASK("broken.example", DNS_A, .rd = true),
             REPLY("broken.example", DNS_A, .rcode = DNS_SERVFAIL, .edns = true, .opt = ede,
                   .opt_len = sizeof ede));
        fill(kit, ASK("text.example", 257, .rd = true),
             REPLY("text.example", 257, .ra = true,
                   .records = "text.example 3600 IN CAA 0 issue \"ca.example\""));
        fill(kit, ASK(".", DNS_NS), REPLY(".", DNS_NS, .records = ". 5000 IN NS a.root-servers.net"));
        for (unsigned i = 0; i < networks; i++)
                fill_network(kit, i);
}
