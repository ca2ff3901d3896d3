/* SPDX-License-Identifier: MIT
 *
 * Step 1: what is stored never grows, so the eight growable fields (name, tag, three sections, errors, the
 * owner of a record, the text of an error) become boxes of exactly their size, without a capacity.
 */
#include "ladder/heap.h"
#include "ladder/ladder.h"
#include "ladder/rdata.h"

#include <string.h>
#include <time.h>

#include "wire/dns.h"

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

struct records {
        struct record *at;
        size_t n;
};

struct errors {
        struct error *at;
        size_t n;
};

struct entry {
        struct bytes name, tag;
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
            .qtype = question->qtype,
            .key_authenticated = question->authenticated,
            .timestamp = time(NULL),
            .inception = now,
            .ttl = life,
            .errors = {heap_get(response->ede_count * sizeof(struct error)), response->ede_count},
            .rcode = response->rcode,
            .authoritative = response->flags2 & DNS_AA,
            .recursion_available = response->flags3 & DNS_RA,
            .authenticated = response->flags3 & DNS_AD,
        };
        const struct wire_rr *rr = response->rrs;
        for (uint32_t i = 0; i < response->count; i++)
                entry->sections[rr[i].section].n++;
        for (unsigned s = 0; s < 3; s++) {
                struct records *list = &entry->sections[s];
                list->at = heap_get(list->n * sizeof *list->at);
                for (size_t i = 0; i < list->n; i++)
                        make_record(&list->at[i], response, rr++);
        }
        for (unsigned i = 0; i < response->ede_count; i++) {
                const struct wire_ede *ede = &response->ede[i];
                entry->errors.at[i] = (struct error){ede->code, copy(ede->text, ede->text_len)};
        }
        return entry;
}

static void drop(void *arg)
{
        struct entry *entry = arg;
        for (unsigned s = 0; s < 3; s++) {
                struct records *list = &entry->sections[s];
                for (size_t i = 0; i < list->n; i++) {
                        heap_put(list->at[i].owner.at, list->at[i].owner.len);
                        rdata_drop(&list->at[i].value.data, rdata_kind(list->at[i].value.type));
                }
                heap_put(list->at, list->n * sizeof *list->at);
        }
        for (size_t i = 0; i < entry->errors.n; i++)
                heap_put(entry->errors.at[i].text.at, entry->errors.at[i].text.len);
        heap_put(entry->errors.at, entry->errors.n * sizeof *entry->errors.at);
        heap_put(entry->name.at, entry->name.len);
        heap_put(entry->tag.at, entry->tag.len);
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

const struct ladder_layout ladder_step1 = {make, drop, matches, render};
