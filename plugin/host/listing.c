/* SPDX-License-Identifier: MIT */
#include "host/listing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
        MESSAGE_MAX = 65535,
        NAME_TEXT_SIZE = 1021,
        TYPE_A = 1,
        TYPE_AAAA = 28,
        HEADER = 12,
        RR_FIXED = 10, /* type, class, TTL, length */
        /* Few writes while the walk waits for them. */
        FILE_BUFFER = 1 << 20,
};

struct listing {
        sardine_cache *cache;
        FILE *to;
        bool raw;
        int64_t count;
        int error;
        time_t now;
        const struct sardine_dnsdist_filter *filter; /* dump_json() */
        const uint8_t *address;                      /* names_with() */
        uint32_t address_len;
        uint8_t message[MESSAGE_MAX];
};

const char *sardine_dnsdist_type(uint32_t type, char room[16])
{
        static const struct {
                uint16_t type;
                const char *name;
        } names[] = {
            {1, "A"},      {2, "NS"},      {5, "CNAME"}, {6, "SOA"},         {12, "PTR"},
            {13, "HINFO"}, {15, "MX"},     {16, "TXT"},  {17, "RP"},         {18, "AFSDB"},
            {24, "SIG"},   {25, "KEY"},    {28, "AAAA"}, {29, "LOC"},        {33, "SRV"},
            {35, "NAPTR"}, {36, "KX"},     {37, "CERT"}, {39, "DNAME"},      {43, "DS"},
            {44, "SSHFP"}, {46, "RRSIG"},  {47, "NSEC"}, {48, "DNSKEY"},     {50, "NSEC3"},
            {52, "TLSA"},  {53, "SMIMEA"}, {59, "CDS"},  {60, "CDNSKEY"},    {61, "OPENPGPKEY"},
            {64, "SVCB"},  {65, "HTTPS"},  {99, "SPF"},  {251, "IXFR"},      {252, "AXFR"},
            {255, "ANY"},  {256, "URI"},   {257, "CAA"}, {51, "NSEC3PARAM"},
        };
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (names[i].type == type)
                        return names[i].name;
        snprintf(room, 16, "TYPE%" PRIu32, type);
        return room;
}

static void put_network(FILE *to, const struct sardine_entry_view *entry)
{
        char text[INET6_ADDRSTRLEN];
        if (entry->ecs_family == 0)
                fputs("empty", to);
        else if (inet_ntop(entry->ecs_family == 1 ? AF_INET : AF_INET6, entry->ecs_addr, text, sizeof text))
                fprintf(to, "%s/%" PRIu32, text, entry->ecs_prefix);
}

static void put_base64(FILE *to, const uint8_t *bytes, size_t len)
{
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        for (size_t i = 0; i < len; i += 3) {
                size_t n = len - i < 3 ? len - i : 3;
                uint32_t bits = (uint32_t)bytes[i] << 16;
                if (n > 1)
                        bits |= (uint32_t)bytes[i + 1] << 8;
                if (n > 2)
                        bits |= bytes[i + 2];
                putc(digits[bits >> 18], to);
                putc(digits[bits >> 12 & 63], to);
                putc(n > 1 ? digits[bits >> 6 & 63] : '=', to);
                putc(n > 2 ? digits[bits & 63] : '=', to);
        }
}

/* What an entry of ours does not have, dnsdist's key, is 0; as it serves UDP clients too, it counts as
 * received over UDP. */
static int dump_entry(void *ctx, const struct sardine_entry_view *entry)
{
        struct listing *listing = ctx;
        char name[NAME_TEXT_SIZE], type[16];
        int len = sardine_entry_message(listing->cache, entry, listing->message, sizeof listing->message);
        if (len < 0 || sardine_name_to_text(entry->qname, entry->qname_len, name, sizeof name) < 0)
                return 0;
        int64_t left = entry->ttl > 0 ? (int64_t)entry->ttl : -(int64_t)entry->expired;
        int64_t age = (int64_t)entry->life - left; /* a little off, as the life is */
        int64_t added = (int64_t)listing->now - (age > 0 ? age : 0);
        unsigned flags = (entry->rd ? 0x0001u : 0) | (entry->cd ? 0x1000u : 0);
        fprintf(listing->to, "%s %" PRId64 " IN %s ; ecs ", name, left,
                sardine_dnsdist_type(entry->qtype, type));
        put_network(listing->to, entry);
        fprintf(listing->to,
                ", rcode %" PRIu32 ", key 0, length %d, received over UDP 1, added %" PRId64
                ", dnssecOK %" PRIu32 ", raw query flags %u",
                entry->rcode, len, added, entry->dnssec_ok, flags);
        if (listing->raw) {
                fputs(", base64response ", listing->to);
                put_base64(listing->to, listing->message, (size_t)len);
        }
        putc('\n', listing->to);
        listing->count++;
        if (ferror(listing->to))
                listing->error = errno;
        return listing->error;
}

static bool is_wanted(const struct sardine_dnsdist_filter *filter, const struct sardine_entry_view *entry)
{
        if (entry->bytes < filter->min_bytes || entry->hits < filter->min_hits)
                return false;
        if (filter->expires_within > 0 && (entry->ttl == 0 || entry->ttl > filter->expires_within))
                return false;
        return entry->ttl > 0 ? !filter->stale : !filter->fresh;
}

/* Text for JSON: a name has only printable ASCII already, a tag may have anything. */
static void put_json(FILE *to, const char *key, const uint8_t *text, size_t len)
{
        fprintf(to, ",\"%s\":\"", key);
        for (size_t i = 0; i < len; i++) {
                if (text[i] == '"' || text[i] == '\\')
                        fprintf(to, "\\%c", text[i]);
                else if (text[i] >= 0x20 && text[i] < 0x7f)
                        putc(text[i], to);
                else
                        fprintf(to, "\\u%04x", text[i]);
        }
        putc('"', to);
}

static int dump_object(void *ctx, const struct sardine_entry_view *entry)
{
        struct listing *listing = ctx;
        FILE *to = listing->to;
        char name[NAME_TEXT_SIZE], type[16];
        if (!is_wanted(listing->filter, entry) ||
            sardine_name_to_text(entry->qname, entry->qname_len, name, sizeof name) < 0)
                return 0;
        uint32_t age =
            entry->life + entry->expired > entry->ttl ? entry->life + entry->expired - entry->ttl : 0;
        fprintf(to, "{\"type\":\"%s\",\"rcode\":%" PRIu32 ",\"ttl\":%" PRIu32 ",\"expired\":%" PRIu32,
                sardine_dnsdist_type(entry->qtype, type), entry->rcode, entry->ttl, entry->expired);
        fprintf(to, ",\"life\":%" PRIu32 ",\"age\":%" PRIu32 ",\"bytes\":%" PRIu32 ",\"hits\":%" PRIu32,
                entry->life, age, entry->bytes, entry->hits);
        fprintf(to, ",\"rd\":%" PRIu32 ",\"cd\":%" PRIu32 ",\"do\":%" PRIu32, entry->rd, entry->cd,
                entry->dnssec_ok);
        put_json(to, "name", (const uint8_t *)name, strlen(name));
        if (entry->tag_len > 0)
                put_json(to, "tag", entry->tag, entry->tag_len);
        if (entry->ecs_family != 0) {
                fputs(",\"network\":\"", to);
                put_network(to, entry);
                putc('"', to);
        }
        if (listing->raw) {
                int len =
                    sardine_entry_message(listing->cache, entry, listing->message, sizeof listing->message);
                if (len > 0) {
                        fputs(",\"response\":\"", to);
                        put_base64(to, listing->message, (size_t)len);
                        putc('"', to);
                }
        }
        fputs("}\n", to);
        listing->count++;
        if (ferror(to))
                listing->error = errno;
        return listing->error != 0 || listing->count == (int64_t)listing->filter->max;
}

/* Make the file and let the walk fill it. */
static int64_t write_dump(struct listing *listing, const char *path, const char *head,
                          const struct sardine_selector *selector, sardine_walk_fn visit)
{
        int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0660);
        if (fd < 0)
                return -errno;
        FILE *to = fdopen(fd, "w");
        if (to == NULL) {
                close(fd);
                return -ENOMEM;
        }
        setvbuf(to, NULL, _IOFBF, FILE_BUFFER);
        listing->to = to;
        listing->now = time(NULL);
        fputs(head, to);
        int64_t walked = sardine_walk(listing->cache, selector, visit, listing);
        int64_t result = listing->error != 0 ? -listing->error : walked < 0 ? walked : listing->count;
        if (fclose(to) != 0 && result >= 0)
                result = -errno;
        return result;
}

int64_t sardine_dnsdist_dump_json(sardine_cache *cache, const char *path,
                                  const struct sardine_selector *selector,
                                  const struct sardine_dnsdist_filter *filter)
{
        struct listing *listing = calloc(1, sizeof *listing);
        if (listing == NULL)
                return -ENOMEM;
        listing->cache = cache;
        listing->filter = filter;
        listing->raw = filter->raw != 0;
        int64_t result = write_dump(listing, path, "", selector, dump_object);
        free(listing);
        return result;
}

int64_t sardine_dnsdist_dump(sardine_cache *cache, const char *path, int raw)
{
        struct listing *listing = calloc(1, sizeof *listing);
        if (listing == NULL)
                return -ENOMEM;
        listing->cache = cache;
        listing->raw = raw != 0;
        int64_t result =
            write_dump(listing, path, "; dnsdist's packet cache dump follows\n;\n", NULL, dump_entry);
        free(listing);
        return result;
}

/* The records of a message that the library wrote, so that it is known to be whole. */
struct records {
        const uint8_t *at;
        uint32_t left;
        uint16_t type;
        uint16_t len;
        const uint8_t *data;
};

static uint16_t be16(const uint8_t *p)
{
        return (uint16_t)(p[0] << 8 | p[1]);
}

static const uint8_t *skip_name(const uint8_t *p)
{
        while (*p != 0 && *p < 0xc0)
                p += *p + 1;
        return p + (*p == 0 ? 1 : 2);
}

static struct records records_of(const uint8_t *message)
{
        return (struct records){
            .at = skip_name(message + HEADER) + 4,
            .left = (uint32_t)be16(message + 6) + be16(message + 8) + be16(message + 10),
        };
}

static bool next_record(struct records *records)
{
        if (records->left == 0)
                return false;
        records->left--;
        const uint8_t *fixed = skip_name(records->at);
        records->type = be16(fixed);
        records->len = be16(fixed + 8);
        records->data = fixed + RR_FIXED;
        records->at = records->data + records->len;
        return true;
}

static bool is_address(const struct records *record)
{
        return record->type == TYPE_A || record->type == TYPE_AAAA;
}

static bool write_message(struct listing *listing, const struct sardine_entry_view *entry)
{
        return entry->rcode == 0 &&
               sardine_entry_message(listing->cache, entry, listing->message, sizeof listing->message) > 0;
}

static int list_addresses(void *ctx, const struct sardine_entry_view *entry)
{
        struct listing *listing = ctx;
        if (!write_message(listing, entry))
                return 0;
        struct records record = records_of(listing->message);
        char text[INET6_ADDRSTRLEN];
        while (next_record(&record))
                if (is_address(&record) &&
                    inet_ntop(record.type == TYPE_A ? AF_INET : AF_INET6, record.data, text, sizeof text))
                        fprintf(listing->to, "%s\n", text);
        return 0;
}

static int list_names(void *ctx, const struct sardine_entry_view *entry)
{
        struct listing *listing = ctx;
        if (!write_message(listing, entry))
                return 0;
        struct records record = records_of(listing->message);
        char name[NAME_TEXT_SIZE];
        while (next_record(&record)) {
                if (is_address(&record) && record.len == listing->address_len &&
                    memcmp(record.data, listing->address, record.len) == 0 &&
                    sardine_name_to_text(entry->qname, entry->qname_len, name, sizeof name) > 0) {
                        fprintf(listing->to, "%s\n", name);
                        return 0;
                }
        }
        return 0;
}

static char *list(sardine_cache *cache, const struct sardine_selector *selector, sardine_walk_fn visit,
                  const uint8_t *address, uint32_t address_len)
{
        char *text = NULL;
        size_t size = 0;
        struct listing *listing = calloc(1, sizeof *listing);
        FILE *to = listing != NULL ? open_memstream(&text, &size) : NULL;
        if (to != NULL) {
                listing->cache = cache;
                listing->to = to;
                listing->address = address;
                listing->address_len = address_len;
                sardine_walk(cache, selector, visit, listing);
                bool failed = ferror(to) != 0;
                if (fclose(to) != 0 || failed) {
                        free(text);
                        text = NULL;
                }
        }
        free(listing);
        return text;
}

char *sardine_dnsdist_addresses_of(sardine_cache *cache, const uint8_t *name, uint32_t name_len)
{
        const struct sardine_selector selector = {.sz = sizeof selector, .name = name, .name_len = name_len};
        return list(cache, &selector, list_addresses, NULL, 0);
}

char *sardine_dnsdist_names_with(sardine_cache *cache, const uint8_t *address, uint32_t address_len)
{
        return list(cache, NULL, list_names, address, address_len);
}

void sardine_dnsdist_free(char *list)
{
        free(list);
}

uint32_t sardine_dnsdist_address(const char *text, uint8_t address[16])
{
        if (inet_pton(AF_INET, text, address) == 1)
                return 4;
        return inet_pton(AF_INET6, text, address) == 1 ? 16 : 0;
}
