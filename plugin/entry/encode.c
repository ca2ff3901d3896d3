/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: see encode.h. */
#include "entry/encode.h"

#include <string.h>

#include "entry/header.h"
#include "entry/run.h"
#include "entry/stored.h"
#include "entry/writer.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/name.h"
#include "wire/rdata.h"

/* How a record's owner relates to what is known. */
enum owner {
        OWNER_QUESTION,
        OWNER_PREVIOUS,
        OWNER_NAME,
};

struct encoder {
        const struct entry_key *key;
        const struct wire_response *response; /* NULL: no answer */
        const struct encode_params *params;
        encode_tail tail; /* NULL: none */
        const void *tail_ctx;
        const uint8_t *qname; /* the key's */
        size_t qname_len;
        uint16_t qtype;
        uint32_t records;
        uint32_t runs;
        bool simple;
        uint8_t owners[WIRE_RRS_MAX]; /* enum owner, of each record */
        struct entry_writer writer;
};

/* All names have been expanded once by wire_response_parse(), within WIRE_WORK_MAX. */
static size_t read_name(const struct encoder *encoder, size_t off, struct wire_name *name)
{
        const struct wire_response *response = encoder->response;
        uint32_t work = WIRE_WORK_MAX;
        return wire_name_expand(response->packet, response->len, off, response->qname_len, &work, name);
}

static uint32_t rr_delta(const struct encoder *encoder, const struct wire_rr *rr)
{
        if (encoder->params->ageless)
                return rr->ttl;
        return rr->ttl > encoder->params->life ? rr->ttl - encoder->params->life : 0;
}

/* An owner that is the question's name is what the client asked, in its case, however the upstream wrote it.
 */
static enum owner rr_owner(const struct encoder *encoder, const struct wire_rr *rr,
                           struct wire_name *previous)
{
        const uint8_t *packet = encoder->response->packet;
        uint16_t start = get_be16(packet + rr->owner);
        if (start == (STORED_REF << 8 | DNS_HEADER) && encoder->response->qname != NULL)
                return OWNER_QUESTION;

        struct wire_name name;
        read_name(encoder, rr->owner, &name);
        if (name.len == encoder->qname_len && wire_name_equal(name.bytes, encoder->qname, name.len))
                return OWNER_QUESTION;
        if (name.len == previous->len && name.from_question == previous->from_question &&
            memcmp(name.bytes, previous->bytes, name.len) == 0)
                return OWNER_PREVIOUS;
        *previous = name;
        return OWNER_NAME;
}

static bool same_pointer(const struct encoder *encoder, const struct wire_rr *a, const struct wire_rr *b)
{
        const uint8_t *packet = encoder->response->packet;
        return packet[a->owner] >= STORED_REF && get_be16(packet + a->owner) == get_be16(packet + b->owner);
}

/* Does record i belong to the run of the record before it? */
static bool same_run(const struct encoder *encoder, uint32_t i)
{
        const struct wire_rr *a = &encoder->response->rrs[i - 1], *b = &encoder->response->rrs[i];
        bool same_owner = encoder->owners[i] == OWNER_PREVIOUS ||
                          (encoder->owners[i] == OWNER_QUESTION && encoder->owners[i - 1] == OWNER_QUESTION);
        return same_owner && a->section == b->section && a->type == b->type &&
               rr_delta(encoder, a) == rr_delta(encoder, b);
}

/* Are all records answers to the very question, whose TTL is the entry's life? It takes no look at names. */
static bool is_plain(const struct encoder *encoder)
{
        const struct wire_response *response = encoder->response;
        if (!response->plain || response->qtype != encoder->qtype || response->count > 255 ||
            encoder->params->truncated || encoder->params->ageless)
                return false;
        for (uint32_t i = 0; i < response->count; i++)
                if (response->rrs[i].ttl > encoder->params->life)
                        return false;
        return true;
}

/* Find out every record's owner, the number of runs, and whether the simple body will do. */
static void survey(struct encoder *encoder)
{
        const struct wire_response *response = encoder->response;
        if (is_plain(encoder)) {
                encoder->records = response->count;
                encoder->simple = true;
                return;
        }
        struct wire_name previous; /* the last owner other than the question */
        previous.len = 0;
        encoder->records = encoder->params->truncated ? 0 : response->count;
        encoder->runs = 0;
        encoder->simple = encoder->records > 0 && encoder->records <= 255 && !encoder->params->ageless;
        for (uint32_t i = 0; i < encoder->records; i++) {
                const struct wire_rr *rr = &response->rrs[i];
                enum owner owner;
                if (i > 0 && same_pointer(encoder, rr - 1, rr)) {
                        owner = encoder->owners[i - 1] == OWNER_QUESTION ? OWNER_QUESTION : OWNER_PREVIOUS;
                } else {
                        owner = rr_owner(encoder, rr, &previous);
                        if (owner == OWNER_PREVIOUS && encoder->owners[i - 1] == OWNER_QUESTION)
                                owner = OWNER_NAME;
                }
                encoder->owners[i] = (uint8_t)owner;
                if (i == 0 || !same_run(encoder, i))
                        encoder->runs++;
                encoder->simple = encoder->simple && owner == OWNER_QUESTION && rr->section == WIRE_ANSWER &&
                                  rr->type == encoder->qtype && rr->ttl <= encoder->params->life;
        }
}

static void put_rdata(struct encoder *encoder, const struct wire_rr *rr)
{
        struct entry_writer *writer = &encoder->writer;
        const struct rdata_shape *shape = rdata_shape(rr->type);
        size_t at = rr->rdata, end = at + rr->rdlen;
        for (const struct rdata_field *field = shape->fields; field->kind != RDATA_END; field++) {
                const uint8_t *p = encoder->response->packet + at;
                size_t len = 0;
                struct wire_name name;
                switch (field->kind) {
                case RDATA_FIXED:
                        len = field->size;
                        break;
                case RDATA_STRING:
                        len = *p + 1u;
                        break;
                case RDATA_NAME:
                        at += read_name(encoder, at, &name);
                        writer_put_name(writer, &name, shape->compress);
                        break;
                case RDATA_REST:
                        len = end - at;
                        writer_put_varint(writer, (uint32_t)len);
                        break;
                }
                writer_put(writer, p, len);
                at += len;
        }
}

static void put_run_head(struct encoder *encoder, uint32_t first, uint32_t count)
{
        struct entry_writer *writer = &encoder->writer;
        const struct wire_rr *rr = &encoder->response->rrs[first];
        uint32_t delta = rr_delta(encoder, rr);
        bool other_type = rr->type != encoder->qtype;
        static const uint8_t owner_heads[] = {
            [OWNER_QUESTION] = RUN_OWNER_QUESTION,
            [OWNER_PREVIOUS] = RUN_OWNER_PREVIOUS,
            [OWNER_NAME] = RUN_OWNER_NAME,
        };

        writer_put8(writer, (uint8_t)(rr->section | owner_heads[encoder->owners[first]] |
                                      (other_type ? RUN_TYPE : 0) | (delta != 0 ? RUN_DELTA : 0) |
                                      (count != 1 ? RUN_COUNT : 0)));
        if (encoder->owners[first] == OWNER_NAME) {
                struct wire_name name;
                read_name(encoder, rr->owner, &name);
                writer_put_name(writer, &name, true);
        }
        if (other_type) {
                writer_put8(writer, (uint8_t)(rr->type < 256 ? rr->type : 0));
                if (rr->type == 0 || rr->type >= 256)
                        writer_put16(writer, rr->type);
        }
        if (delta != 0)
                writer_put_varint(writer, delta);
        if (count != 1)
                writer_put_varint(writer, count);
}

/* Rdata that has one length only. The common two are copied without a call. */
static inline void put_fixed(struct entry_writer *writer, const uint8_t *rdata, size_t len)
{
        if (len == 4)
                writer_put(writer, rdata, 4);
        else if (len == 16)
                writer_put(writer, rdata, 16);
        else
                writer_put(writer, rdata, len);
}

static void put_body(struct encoder *encoder)
{
        struct entry_writer *writer = &encoder->writer;
        if (encoder->simple) {
                const struct wire_response *response = encoder->response;
                writer_put8(writer, (uint8_t)encoder->records);
                const size_t fixed_len = rdata_shape(encoder->qtype)->fixed_len;
                if (fixed_len) {
                        for (uint32_t i = 0; i < encoder->records; i++)
                                put_fixed(writer, response->packet + response->rrs[i].rdata, fixed_len);
                        return;
                }
                for (uint32_t i = 0; i < encoder->records; i++)
                        put_rdata(encoder, &response->rrs[i]);
                return;
        }
        writer_put_varint(writer, encoder->runs);
        for (uint32_t first = 0, end; first < encoder->records && !writer->full; first = end) {
                for (end = first + 1; end < encoder->records && same_run(encoder, end);)
                        end++;
                put_run_head(encoder, first, end - first);
                for (uint32_t i = first; i < end; i++)
                        put_rdata(encoder, &encoder->response->rrs[i]);
        }
}

static uint8_t ext_of(const struct encoder *encoder)
{
        const struct wire_response *response = encoder->response;
        unsigned ext = 0;
        if (encoder->key->bytes[KEY_AT_EXTRA_LEN] != 0)
                ext |= EXT_EXTRA;
        if (encoder->key->bytes[KEY_AT_PAGE] != KEY_NO_PAGE)
                ext |= EXT_PAGE;
        if (encoder->params->scopes != NULL)
                ext |= EXT_SCOPES;
        if (response != NULL) {
                ext |= response->rcode != DNS_NOERROR ? EXT_RCODE : 0;
                ext |= response->ede_count != 0 ? EXT_EDE : 0;
                ext |= encoder->params->truncated ? EXT_TRUNCATED : 0;
                ext |= encoder->params->ageless ? EXT_AGELESS : 0;
                ext |= encoder->params->class || encoder->params->group_len ? EXT_POLICY : 0;
        }
        return (uint8_t)ext;
}

static uint8_t flags_of(const struct encoder *encoder, uint8_t ext)
{
        const struct wire_response *response = encoder->response;
        unsigned flags = encoder->key->bytes[KEY_AT_FLAGS];
        if (ext != 0)
                flags |= ENTRY_EXT;
        if (response != NULL) {
                flags |= response->flags2 & DNS_AA ? ENTRY_AA : 0;
                flags |= response->flags3 & DNS_RA ? ENTRY_RA : 0;
                flags |= response->flags3 & DNS_AD ? ENTRY_AD : 0;
                flags |= encoder->params->dnssec_ok ? ENTRY_DO : 0;
                flags |= encoder->simple ? ENTRY_SIMPLE : 0;
        }
        return (uint8_t)flags;
}

static void put_ede(struct encoder *encoder)
{
        struct entry_writer *writer = &encoder->writer;
        writer_put8(writer, encoder->response->ede_count);
        for (unsigned i = 0; i < encoder->response->ede_count; i++) {
                const struct wire_ede *ede = &encoder->response->ede[i];
                writer_put16(writer, ede->code);
                writer_put_varint(writer, ede->text_len);
                if (ede->text_len > 0)
                        writer_put(writer, ede->text, ede->text_len);
        }
}

static void put_policy(struct encoder *encoder)
{
        const struct encode_params *params = encoder->params;
        writer_put8(&encoder->writer, (uint8_t)(params->class | (params->group_len ? POLICY_BYTE_GROUP : 0)));
        if (params->group_len) {
                writer_put8(&encoder->writer, params->group_len);
                writer_put(&encoder->writer, params->group, params->group_len);
        }
}

/* `wide`: with the four byte size. Returns the size, or 0: no room. */
static size_t write_entry(struct encoder *encoder, bool wide, uint8_t *out, size_t room)
{
        struct entry_writer *writer = &encoder->writer;
        const uint8_t *key = encoder->key->bytes;
        const uint8_t *extra = encoder->qname + encoder->qname_len;
        size_t extra_len = key[KEY_AT_EXTRA_LEN];
        uint16_t qtype = encoder->qtype;
        uint8_t ext = ext_of(encoder);

        writer_init(writer, out, room);
        uint8_t header[ENTRY_HEADER + ENTRY_SIZE32] = {
            [ENTRY_AT_LIFE] = life_encode(encoder->params->life),
            [ENTRY_AT_FLAGS] = flags_of(encoder, ext),
            [ENTRY_AT_TYPE] = (uint8_t)(qtype < 256 ? qtype : 0),
        };
        memcpy(header + ENTRY_AT_EXPIRY, &encoder->params->expiry, sizeof encoder->params->expiry);
        writer_put(writer, header, wide ? ENTRY_HEADER + ENTRY_SIZE32 : ENTRY_HEADER);
        if (qtype == 0 || qtype >= 256)
                writer_put16(writer, qtype);
        if (ext != 0)
                writer_put8(writer, ext);
        if (ext & EXT_RCODE)
                writer_put8(writer, (uint8_t)encoder->response->rcode);
        if (ext & EXT_EXTRA) {
                writer_put8(writer, (uint8_t)extra_len);
                writer_put(writer, extra, extra_len);
        }
        if (ext & EXT_PAGE) {
                writer_put8(writer, key[KEY_AT_PAGE]);
                writer_put(writer, extra + extra_len, PAGE_NUMBER);
        }
        writer_put_question(writer, encoder->qname, encoder->qname_len);
        if (ext & EXT_SCOPES) {
                uint8_t count = encoder->params->scopes_count;
                writer_put8(writer, encoder->response != NULL ? count : count | SCOPES_NO_ANSWER);
                for (uint8_t i = 0; i < count; i++) {
                        writer_put8(writer, encoder->params->scopes[i].code);
                        writer_put16(writer, encoder->params->scopes[i].pages);
                }
        }
        if (ext & EXT_EDE)
                put_ede(encoder);
        if (ext & EXT_POLICY)
                put_policy(encoder);
        if (encoder->response != NULL)
                put_body(encoder);
        if (encoder->tail != NULL)
                encoder->tail(writer, encoder->tail_ctx);
        static const uint8_t padding[ENTRY_ALIGN];
        writer_put(writer, padding, -writer->pos % ENTRY_ALIGN);
        if (writer->full)
                return 0;

        uint32_t size = (uint32_t)writer->pos;
        if (wide)
                memcpy(out + ENTRY_HEADER, &size, sizeof size);
        else
                out[ENTRY_AT_SIZE] = (uint8_t)(size / ENTRY_ALIGN);
        return size;
}

/* The four bytes for the size come before what references point at, so it has to be known first whether they
 * are needed: hardly ever. */
static size_t write_fitting(struct encoder *encoder, uint8_t *out, size_t room)
{
        encoder->qname = entry_key_name(encoder->key, &encoder->qname_len);
        encoder->qtype = get_be16(encoder->key->bytes + KEY_AT_TYPE);
        if (encoder->response != NULL)
                survey(encoder);
        size_t size =
            write_entry(encoder, false, out, room < ENTRY_SIZE_BYTE_MAX ? room : ENTRY_SIZE_BYTE_MAX);
        if (size == 0 && room > ENTRY_SIZE_BYTE_MAX)
                size = write_entry(encoder, true, out, room);
        return size;
}

static size_t encode(const struct entry_key *key, const struct wire_response *response,
                     const struct encode_params *params, encode_tail tail, const void *tail_ctx, uint8_t *out,
                     size_t room)
{
        struct encoder encoder;
        encoder.key = key;
        encoder.response = response;
        encoder.params = params;
        encoder.tail = tail;
        encoder.tail_ctx = tail_ctx;
        return write_fitting(&encoder, out, room);
}

size_t entry_encode(const struct entry_key *key, const struct wire_response *response,
                    const struct encode_params *params, uint8_t *out, size_t room)
{
        return encode(key, response, params, NULL, NULL, out, room);
}

size_t entry_encode_scopes(const struct entry_key *key, const struct encode_params *params, uint8_t *out,
                           size_t room)
{
        return encode(key, NULL, params, NULL, NULL, out, room);
}

size_t entry_encode_tail(const struct entry_key *key, const struct encode_params *params, encode_tail tail,
                         const void *ctx, uint8_t *out, size_t room)
{
        return encode(key, NULL, params, tail, ctx, out, room);
}

bool entry_same_answer(const uint8_t *a, const uint8_t *b)
{
        uint32_t size = entry_size(a);
        return size == entry_size(b) &&
               memcmp(a + ENTRY_AT_SIZE, b + ENTRY_AT_SIZE, size - ENTRY_AT_SIZE) == 0;
}
