/* SPDX-License-Identifier: MIT
 *
 * Step 2: one list of records instead of three, with two 16-bit offsets where authority and additional
 * section begin, and the booleans in one value.
 */
#include "ladder/heap.h"
#include "ladder/ladder.h"
#include "ladder/rdata.h"

#include <string.h>
#include <time.h>

#include "wire/dns.h"

enum { AUTHORITATIVE = 1, RECURSION_AVAILABLE = 2, AUTHENTICATED = 4, KEY_AUTHENTICATED = 8 };

struct bytes {
        uint8_t *at;
        size_t len;
};

struct record {
        struct bytes owner;
        struct rdata_value value;
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

static void make_record(struct record *record, const struct wire_response *response, const struct wire_rr *rr)
{
        struct wire_name owner;
        uint32_t work = WIRE_WORK_MAX;
        wire_name_expand(response->packet, response->len, rr->owner, response->qname_len, &work, &owner);
        record->owner = copy(owner.bytes, owner.len);
        record->value.type = rr->type;
        record->rclass = rr->rclass;
        record->ttl = rr->ttl;
        rdata_parse(&record->value.data, rdata_kind(rr->type), response, rr);
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
                make_record(&entry->records[i], response, rr);
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
                heap_put(record->owner.at, record->owner.len);
                rdata_drop(&record->value.data, rdata_kind(record->value.type));
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
                reply_record(reply, record->owner.at, record->owner.len, type, record->rclass,
                             record->ttl - age);
                rdata_write(&record->value.data, type, reply);
                reply_record_end(reply, section);
        }
        for (unsigned i = 0; i < entry->n_errors; i++) {
                const struct error *error = &entry->errors[i];
                reply_error(reply, error->code, error->text.at, error->text.len);
        }
        return true;
}

const struct ladder_layout ladder_step2 = {make, drop, matches, render};
