/* SPDX-License-Identifier: MIT
 *
 * Step 5, where the seeds ended: the list of parsed records becomes one block of wire bytes, each record
 * behind its length, built in a scratch buffer that stays and copied to a block of exactly the size. What
 * holds no name that is to be compressed is copied into replies as it is; CNAME, NS, MX, SOA and their like
 * are taken apart.
 *
 * A record: 2 bytes length of what follows; 1 byte length of the owner, 0: the question's name; owner; type,
 * class, TTL; data with its names spelled out.
 */
#include "ladder/heap.h"
#include "ladder/ladder.h"
#include "ladder/rdata.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/rdata.h"

enum { AUTHORITATIVE = 1, RECURSION_AVAILABLE = 2, AUTHENTICATED = 4, KEY_AUTHENTICATED = 8 };
enum { RECORD_FIXED = 2 + 1 + 8 };

struct bytes {
        uint8_t *at;
        size_t len;
};

struct error {
        uint16_t code;
        struct bytes text;
};

struct entry {
        struct bytes name, tag;
        /* the value */
        time_t timestamp;
        uint64_t inception;
        uint32_t ttl, hits;
        struct bytes records;
        struct error *errors;
        uint16_t authority, additional; /* numbers of the records where these sections begin */
        uint16_t n_errors;
        uint16_t qtype; /* of the key, as is one flag */
        uint16_t rcode;
        uint8_t flags;
};

static struct {
        uint8_t *at;
        size_t room;
} scratch;

static struct bytes copy(const void *bytes, size_t len)
{
        return (struct bytes){heap_copy(bytes, len), len};
}

/* Length of the owner's name, or 0 when it is the question's. */
static size_t own_name(const struct ladder_question *question, const struct wire_response *response,
                       const struct wire_rr *rr, struct wire_name *owner)
{
        uint32_t work = WIRE_WORK_MAX;
        if (get_be16(response->packet + rr->owner) == (0xc000 | DNS_HEADER))
                return 0;
        wire_name_expand(response->packet, response->len, rr->owner, response->qname_len, &work, owner);
        bool same =
            owner->len == question->name_len && wire_name_equal(owner->bytes, question->name, owner->len);
        return same ? 0 : owner->len;
}

/* Into the scratch buffer, which is not the entries': it is left out of the count. Returns the end. */
static size_t put_record(size_t at, const struct ladder_question *question,
                         const struct wire_response *response, const struct wire_rr *rr)
{
        struct wire_name owner;
        size_t owner_len = own_name(question, response, rr, &owner), len;
        const uint8_t *data = rdata_spelled_out(response, rr, &len);
        if (at + RECORD_FIXED + owner_len + len > scratch.room) {
                scratch.room = 2 * (at + RECORD_FIXED + owner_len + len);
                scratch.at = realloc(scratch.at, scratch.room);
                if (!scratch.at)
                        abort();
        }
        uint8_t *p = scratch.at + at;
        put_be16(p, (uint16_t)(RECORD_FIXED - 2 + owner_len + len));
        p[2] = (uint8_t)owner_len;
        memcpy(p + 3, owner.bytes, owner_len);
        p += 3 + owner_len;
        put_be16(p, rr->type);
        put_be16(p + 2, rr->rclass);
        put_be32(p + 4, rr->ttl);
        memcpy(p + 8, data, len);
        return (size_t)(p + 8 + len - scratch.at);
}

static void *make(const struct ladder_question *question, const struct wire_response *response, uint32_t life,
                  uint64_t now)
{
        struct entry *entry = heap_get(sizeof *entry);
        *entry = (struct entry){
            .name = copy(question->name, question->name_len),
            .tag = copy(question->tag, question->tag_len),
            .timestamp = time(NULL),
            .inception = now,
            .ttl = life,
            .errors = heap_get(response->ede_count * sizeof(struct error)),
            .n_errors = response->ede_count,
            .qtype = question->qtype,
            .rcode = response->rcode,
            .flags = (uint8_t)((response->flags2 & DNS_AA ? AUTHORITATIVE : 0) |
                               (response->flags3 & DNS_RA ? RECURSION_AVAILABLE : 0) |
                               (response->flags3 & DNS_AD ? AUTHENTICATED : 0) |
                               (question->authenticated ? KEY_AUTHENTICATED : 0)),
        };
        size_t len = 0;
        for (uint32_t i = 0; i < response->count; i++) {
                const struct wire_rr *rr = &response->rrs[i];
                entry->authority += rr->section < WIRE_AUTHORITY;
                entry->additional += rr->section < WIRE_ADDITIONAL;
                len = put_record(len, question, response, rr);
        }
        entry->records = copy(scratch.at, len);
        for (unsigned i = 0; i < response->ede_count; i++) {
                const struct wire_ede *ede = &response->ede[i];
                entry->errors[i] = (struct error){ede->code, copy(ede->text, ede->text_len)};
        }
        return entry;
}

static void drop(void *arg)
{
        struct entry *entry = arg;
        for (unsigned i = 0; i < entry->n_errors; i++)
                heap_put(entry->errors[i].text.at, entry->errors[i].text.len);
        heap_put(entry->errors, entry->n_errors * sizeof *entry->errors);
        heap_put(entry->records.at, entry->records.len);
        heap_put(entry->name.at, entry->name.len);
        heap_put(entry->tag.at, entry->tag.len);
        heap_put(entry, sizeof *entry);
}

static bool matches(const void *arg, const struct ladder_question *question)
{
        const struct entry *entry = arg;
        return entry->qtype == question->qtype &&
               !(entry->flags & KEY_AUTHENTICATED) == !question->authenticated &&
               entry->name.len == question->name_len && entry->tag.len == question->tag_len &&
               !memcmp(entry->name.at, question->name, question->name_len) &&
               (!question->tag_len || !memcmp(entry->tag.at, question->tag, question->tag_len));
}

/* Of a type whose names are compressed. */
static void write_names(struct reply *reply, const struct rdata_shape *shape, const uint8_t *p,
                        const uint8_t *end)
{
        for (const struct rdata_field *field = shape->fields; field->kind != RDATA_END; field++) {
                size_t len = (size_t)(end - p);
                if (field->kind == RDATA_NAME) {
                        len = wire_name_length(p, end);
                        reply_name(reply, p, len, true);
                        p += len;
                        continue;
                }
                if (field->kind == RDATA_FIXED)
                        len = field->size;
                else if (field->kind == RDATA_STRING)
                        len = p[0] + 1u;
                reply_bytes(reply, p, len);
                p += len;
        }
}

static bool render(void *arg, uint64_t now, struct reply *reply)
{
        struct entry *entry = arg;
        uint32_t age = (uint32_t)((now - entry->inception) / 1000);
        if (age >= entry->ttl)
                return false;
        entry->hits++;
        reply_header(reply, entry->flags & AUTHORITATIVE ? DNS_AA : 0,
                     (uint8_t)((entry->flags & RECURSION_AVAILABLE ? DNS_RA : 0) |
                               (entry->flags & AUTHENTICATED ? DNS_AD : 0)),
                     entry->rcode);
        const uint8_t *p = entry->records.at, *all = p + entry->records.len;
        for (unsigned i = 0; p < all; i++) {
                const uint8_t *end = p + 2 + get_be16(p), *owner = p + 3;
                size_t owner_len = p[2];
                unsigned section = (unsigned)(i >= entry->authority) + (i >= entry->additional);
                const uint8_t *fixed = owner + owner_len;
                uint16_t type = get_be16(fixed);
                p = end;
                if (!reply_wants(reply, section, type))
                        continue;
                reply_record(reply, owner_len ? owner : NULL, owner_len, type, get_be16(fixed + 2),
                             get_be32(fixed + 4) - age);
                const struct rdata_shape *shape = rdata_shape(type);
                if (shape->compress && shape->has_name)
                        write_names(reply, shape, fixed + 8, end);
                else
                        reply_bytes(reply, fixed + 8, (size_t)(end - fixed - 8));
                reply_record_end(reply, section);
        }
        for (unsigned i = 0; i < entry->n_errors; i++) {
                const struct error *error = &entry->errors[i];
                reply_error(reply, error->code, error->text.at, error->text.len);
        }
        return true;
}

const struct ladder_layout ladder_step5 = {make, drop, matches, render};
