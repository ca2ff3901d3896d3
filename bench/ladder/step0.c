/* SPDX-License-Identifier: MIT
 *
 * Step 0, where the seeds began: three growable lists of records, every record owns its name, its data is a
 * union as large as NAPTR. Lists grow as records are added: 4 elements first, then twice as many, as growable
 * containers do. The length of a string is known when it is made, so it has a capacity but no spare room.
 */
#include "ladder/heap.h"
#include "ladder/ladder.h"
#include "ladder/rdata.h"

#include <string.h>
#include <time.h>

#include "wire/dns.h"

struct record {
        struct text owner;
        struct rdata_value value;
        uint32_t ttl;
        uint16_t rclass;
};

struct error {
        uint16_t code;
        struct text text;
};

struct records {
        struct record *at;
        size_t n, room;
};

struct errors {
        struct error *at;
        size_t n, room;
};

struct entry {
        struct text name, tag;
        uint16_t qtype;
        bool key_authenticated;
        /* the value */
        time_t timestamp;
        uint64_t inception;
        uint32_t ttl, hits;
        struct records sections[3];
        struct errors errors;
        uint16_t rcode;
        bool authoritative, recursion_available, authenticated;
};

static void copy(struct text *text, const void *bytes, size_t len)
{
        *text = (struct text){heap_copy(bytes, len), len, len};
}

/* Room for one more of `n` elements. */
static void grow(void *at, size_t n, size_t *room, size_t size)
{
        void **block = at;
        if (n < *room)
                return;
        size_t wanted = *room ? 2 * *room : 4;
        *block = heap_grow(*block, *room * size, wanted * size);
        *room = wanted;
}

static struct record *push_record(struct records *list)
{
        grow(&list->at, list->n, &list->room, sizeof *list->at);
        return &list->at[list->n++];
}

static void push_error(struct errors *list, const struct wire_ede *ede)
{
        grow(&list->at, list->n, &list->room, sizeof *list->at);
        struct error *error = &list->at[list->n++];
        error->code = ede->code;
        copy(&error->text, ede->text, ede->text_len);
}

static void *make(const struct ladder_question *question, const struct wire_response *response, uint32_t life,
                  uint64_t now)
{
        struct entry *entry = heap_get(sizeof *entry);
        *entry = (struct entry){
            .qtype = question->qtype,
            .key_authenticated = question->authenticated,
            .timestamp = time(NULL),
            .inception = now,
            .ttl = life,
            .rcode = response->rcode,
            .authoritative = response->flags2 & DNS_AA,
            .recursion_available = response->flags3 & DNS_RA,
            .authenticated = response->flags3 & DNS_AD,
        };
        copy(&entry->name, question->name, question->name_len);
        copy(&entry->tag, question->tag, question->tag_len);
        for (uint32_t i = 0; i < response->count; i++) {
                const struct wire_rr *rr = &response->rrs[i];
                struct record *record = push_record(&entry->sections[rr->section]);
                struct wire_name owner;
                uint32_t work = WIRE_WORK_MAX;
                wire_name_expand(response->packet, response->len, rr->owner, response->qname_len, &work,
                                 &owner);
                copy(&record->owner, owner.bytes, owner.len);
                record->value.type = rr->type;
                record->rclass = rr->rclass;
                record->ttl = rr->ttl;
                rdata_parse(&record->value.data, rdata_kind(rr->type), response, rr);
        }
        for (unsigned i = 0; i < response->ede_count; i++)
                push_error(&entry->errors, &response->ede[i]);
        return entry;
}

static void drop(void *arg)
{
        struct entry *entry = arg;
        for (unsigned s = 0; s < 3; s++) {
                struct records *list = &entry->sections[s];
                for (size_t i = 0; i < list->n; i++) {
                        heap_put(list->at[i].owner.at, list->at[i].owner.room);
                        rdata_drop(&list->at[i].value.data, rdata_kind(list->at[i].value.type));
                }
                heap_put(list->at, list->room * sizeof *list->at);
        }
        for (size_t i = 0; i < entry->errors.n; i++)
                heap_put(entry->errors.at[i].text.at, entry->errors.at[i].text.room);
        heap_put(entry->errors.at, entry->errors.room * sizeof *entry->errors.at);
        heap_put(entry->name.at, entry->name.room);
        heap_put(entry->tag.at, entry->tag.room);
        heap_put(entry, sizeof *entry);
}

static bool matches(const void *arg, const struct ladder_question *question)
{
        const struct entry *entry = arg;
        return entry->qtype == question->qtype && entry->key_authenticated == question->authenticated &&
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
        reply_header(
            reply, entry->authoritative ? DNS_AA : 0,
            (uint8_t)((entry->recursion_available ? DNS_RA : 0) | (entry->authenticated ? DNS_AD : 0)),
            entry->rcode);
        for (unsigned s = 0; s < 3; s++) {
                for (size_t i = 0; i < entry->sections[s].n; i++) {
                        const struct record *record = &entry->sections[s].at[i];
                        uint16_t type = record->value.type;
                        if (!reply_wants(reply, s, type))
                                continue;
                        reply_record(reply, record->owner.at, record->owner.len, type, record->rclass,
                                     record->ttl - age);
                        rdata_write(&record->value.data, type, reply);
                        reply_record_end(reply, s);
                }
        }
        for (size_t i = 0; i < entry->errors.n; i++) {
                const struct error *error = &entry->errors.at[i];
                reply_error(reply, error->code, error->text.at, error->text.len);
        }
        return true;
}

const struct ladder_layout ladder_step0 = {make, drop, matches, render};
