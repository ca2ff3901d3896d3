/* SPDX-License-Identifier: MIT
 *
 * Step 4: the large members of the union are boxed, which leaves 24 bytes for a value with its type. A and
 * AAAA stay where they are; strings and names get a block of their own size, the rest one as large as its
 * fields.
 */
#include "ladder/heap.h"
#include "ladder/ladder.h"
#include "ladder/rdata.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include "wire/bytes.h"
#include "wire/dns.h"

enum { AUTHORITATIVE = 1, RECURSION_AVAILABLE = 2, AUTHENTICATED = 4, KEY_AUTHENTICATED = 8 };

struct bytes {
        uint8_t *at;
        size_t len;
};

struct string {
        uint16_t len;
        uint8_t bytes[];
};

/* As a Rust enum, again. */
struct value {
        union {
                uint8_t a[4];
                uint8_t aaaa[16];
                struct string *bytes;
                uint8_t *name;
                union rdata *rest; /* as much of it as the type's member takes */
        };
        uint16_t type;
};

static_assert(sizeof(struct value) == 24, "small");

struct record {
        uint8_t *owner; /* NULL: the question's name */
        struct value value;
        uint32_t ttl;
        uint16_t rclass;
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
        struct record *records;
        struct error *errors;
        uint16_t n_records, authority, additional, n_errors;
        uint16_t qtype; /* of the key, as is one flag */
        uint16_t rcode;
        uint8_t flags;
};

static struct bytes copy(const void *bytes, size_t len)
{
        return (struct bytes){heap_copy(bytes, len), len};
}

static size_t name_len(const uint8_t *name)
{
        return wire_name_length(name, name + WIRE_NAME_MAX);
}

static uint8_t *own_name(const struct ladder_question *question, const struct wire_response *response,
                         const struct wire_rr *rr)
{
        struct wire_name owner;
        uint32_t work = WIRE_WORK_MAX;
        if (get_be16(response->packet + rr->owner) == (0xc000 | DNS_HEADER))
                return NULL;
        wire_name_expand(response->packet, response->len, rr->owner, response->qname_len, &work, &owner);
        bool same =
            owner.len == question->name_len && wire_name_equal(owner.bytes, question->name, owner.len);
        return same ? NULL : heap_copy(owner.bytes, owner.len);
}

static void make_value(struct value *value, const struct wire_response *response, const struct wire_rr *rr)
{
        enum rdata_kind kind = rdata_kind(rr->type);
        size_t len;
        const uint8_t *bytes;
        value->type = rr->type;
        switch (kind) {
        case RDATA_A:
        case RDATA_AAAA:
                memcpy(value->aaaa, response->packet + rr->rdata, rr->rdlen);
                break;
        case RDATA_DOMAIN:
                bytes = rdata_spelled_out(response, rr, &len);
                value->name = heap_copy(bytes, len);
                break;
        case RDATA_BYTES:
                bytes = rdata_spelled_out(response, rr, &len);
                value->bytes = heap_get(sizeof *value->bytes + len);
                value->bytes->len = (uint16_t)len;
                memcpy(value->bytes->bytes, bytes, len);
                break;
        default: {
                union rdata data;
                rdata_parse(&data, kind, response, rr);
                value->rest = heap_copy(&data, rdata_member_size(kind));
        }
        }
}

static void write_value(const struct value *value, struct reply *reply)
{
        switch (rdata_kind(value->type)) {
        case RDATA_A:
                reply_bytes(reply, value->a, sizeof value->a);
                break;
        case RDATA_AAAA:
                reply_bytes(reply, value->aaaa, sizeof value->aaaa);
                break;
        case RDATA_DOMAIN:
                reply_name(reply, value->name, name_len(value->name), value->type != DNS_DNAME);
                break;
        case RDATA_BYTES:
                reply_bytes(reply, value->bytes->bytes, value->bytes->len);
                break;
        default:
                rdata_write(value->rest, value->type, reply);
        }
}

static void drop_value(struct value *value)
{
        enum rdata_kind kind = rdata_kind(value->type);
        switch (kind) {
        case RDATA_A:
        case RDATA_AAAA:
                break;
        case RDATA_DOMAIN:
                heap_put(value->name, name_len(value->name));
                break;
        case RDATA_BYTES:
                heap_put(value->bytes, sizeof *value->bytes + value->bytes->len);
                break;
        default:
                rdata_drop(value->rest, kind);
                heap_put(value->rest, rdata_member_size(kind));
        }
}

static void make_record(struct record *record, const struct ladder_question *question,
                        const struct wire_response *response, const struct wire_rr *rr)
{
        record->owner = own_name(question, response, rr);
        make_value(&record->value, response, rr);
        record->rclass = rr->rclass;
        record->ttl = rr->ttl;
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
            .records = heap_get(response->count * sizeof(struct record)),
            .errors = heap_get(response->ede_count * sizeof(struct error)),
            .n_records = (uint16_t)response->count,
            .n_errors = response->ede_count,
            .qtype = question->qtype,
            .rcode = response->rcode,
            .flags = (uint8_t)((response->flags2 & DNS_AA ? AUTHORITATIVE : 0) |
                               (response->flags3 & DNS_RA ? RECURSION_AVAILABLE : 0) |
                               (response->flags3 & DNS_AD ? AUTHENTICATED : 0) |
                               (question->authenticated ? KEY_AUTHENTICATED : 0)),
        };
        for (uint32_t i = 0; i < response->count; i++) {
                const struct wire_rr *rr = &response->rrs[i];
                entry->authority += rr->section < WIRE_AUTHORITY;
                entry->additional += rr->section < WIRE_ADDITIONAL;
                make_record(&entry->records[i], question, response, rr);
        }
        for (unsigned i = 0; i < response->ede_count; i++) {
                const struct wire_ede *ede = &response->ede[i];
                entry->errors[i] = (struct error){ede->code, copy(ede->text, ede->text_len)};
        }
        return entry;
}

static void drop(void *arg)
{
        struct entry *entry = arg;
        for (unsigned i = 0; i < entry->n_records; i++) {
                struct record *record = &entry->records[i];
                heap_put(record->owner, record->owner ? name_len(record->owner) : 0);
                drop_value(&record->value);
        }
        for (unsigned i = 0; i < entry->n_errors; i++)
                heap_put(entry->errors[i].text.at, entry->errors[i].text.len);
        heap_put(entry->records, entry->n_records * sizeof *entry->records);
        heap_put(entry->errors, entry->n_errors * sizeof *entry->errors);
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
        for (unsigned i = 0; i < entry->n_records; i++) {
                const struct record *record = &entry->records[i];
                unsigned section = (unsigned)(i >= entry->authority) + (i >= entry->additional);
                uint16_t type = record->value.type;
                if (!reply_wants(reply, section, type))
                        continue;
                reply_record(reply, record->owner, record->owner ? name_len(record->owner) : 0, type,
                             record->rclass, record->ttl - age);
                write_value(&record->value, reply);
                reply_record_end(reply, section);
        }
        for (unsigned i = 0; i < entry->n_errors; i++) {
                const struct error *error = &entry->errors[i];
                reply_error(reply, error->code, error->text.at, error->text.len);
        }
        return true;
}

const struct ladder_layout ladder_step4 = {make, drop, matches, render};
