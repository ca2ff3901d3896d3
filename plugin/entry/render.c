/* SPDX-License-Identifier: MIT
 * ENTRY_LAYOUT: see render.h. */
#include "entry/render.h"

#include <string.h>

#include "entry/header.h"
#include "entry/run.h"
#include "entry/stored.h"
#include "entry/view.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/name.h"
#include "wire/rdata.h"
#include "wire/response.h"

enum {
        POINTER = 0xc000,
        POINTER_REACH = 0x4000,
        RR_FIXED = 10, /* type, class, TTL, rdlength */
        SIMPLE_HEAD = 2 + RR_FIXED,
        OPTION_FIXED = 4,
        EDE_FIXED = OPTION_FIXED + 2,
        ECS_MAX = 24,
        SECTIONS = 3,
        /* Comparisons of runs that a truncated reply is worth. */
        SPLIT_WORK = 256,
};

/* The reply being written. `pos` goes on beyond `cap`, where nothing is written, so that it ends up as the
 * length that would have been needed. */
struct reply {
        const struct entry_view *view;
        const struct render_params *params;
        uint8_t *out;
        size_t cap;
        size_t pos;
        size_t limit; /* for all but the OPT */
        struct entry_life life;
        uint32_t remaining;
        bool stale;
        bool truncated;
        uint32_t counts[SECTIONS];
};

static inline void put(struct reply *reply, const void *bytes, size_t len)
{
        if (reply->pos + len <= reply->cap)
                memcpy(reply->out + reply->pos, bytes, len);
        reply->pos += len;
}

static void put16(struct reply *reply, uint16_t value)
{
        uint8_t bytes[2];
        put_be16(bytes, value);
        put(reply, bytes, sizeof bytes);
}

static inline uint32_t shown_ttl(const struct reply *reply, uint32_t delta)
{
        bool ageless = reply->view->ext & EXT_AGELESS;
        if (!reply->stale)
                return ageless ? delta : delta + reply->remaining;
        uint32_t original = ageless ? delta : delta + life_decode(reply->life.code);
        return original < reply->params->stale_ttl ? original : reply->params->stale_ttl;
}

static size_t question_end(const struct reply *reply)
{
        return DNS_HEADER + wire_query_question_len(reply->params->query);
}

/* No record can be left out without telling: then none is sent. */
static __attribute__((noinline)) void truncate_all(struct reply *reply)
{
        memset(reply->counts, 0, sizeof reply->counts);
        reply->pos = question_end(reply);
        reply->truncated = true;
}

/* Which record of an RRset of `count` goes first (B81). */
static inline uint32_t first_record(const struct reply *reply, uint32_t count)
{
        return reply->params->rotate == 0 || count == 0 ? 0 : reply->params->rotate % count;
}

/* Records of a simple answer whose rdata have all the same length, which the caller knows at compile time
 * where it matters. `head` is all of a record before the rdata. */
static inline void put_alike(struct reply *reply, const uint8_t head[SIMPLE_HEAD], const uint8_t *rdata,
                             size_t len, uint32_t count)
{
        size_t total = count * (SIMPLE_HEAD + len);
        if (reply->pos + total <= reply->cap) {
                uint8_t *out = reply->out + reply->pos;
                for (; count > 0; count--, out += SIMPLE_HEAD + len, rdata += len) {
                        memcpy(out, head, SIMPLE_HEAD);
                        memcpy(out + SIMPLE_HEAD, rdata, len);
                }
        }
        reply->pos += total;
}

static inline void put_simple_records(struct reply *reply, uint8_t head[SIMPLE_HEAD], const uint8_t *p,
                                      uint32_t count, size_t fixed_len)
{
        if (fixed_len == 4) {
                put_alike(reply, head, p, 4, count);
        } else if (fixed_len == 16) {
                put_alike(reply, head, p, 16, count);
        } else if (fixed_len != 0) {
                put_alike(reply, head, p, fixed_len, count);
        } else {
                for (; count > 0 && reply->pos <= reply->limit; count--) {
                        uint32_t len = varint_get(&p);
                        put_be16(head + 10, (uint16_t)len);
                        put_alike(reply, head, p, len, 1);
                        p += len;
                }
        }
}

/* The common case: answers to the very question, without names in them. */
static void render_simple(struct reply *reply, const struct rdata_shape *shape)
{
        const uint8_t *start = reply->view->body + 1, *p = start;
        uint32_t count = start[-1], first = first_record(reply, count);
        uint8_t head[SIMPLE_HEAD];
        put_be16(head, POINTER | DNS_HEADER);
        put_be16(head + 2, reply->view->qtype);
        put_be16(head + 4, DNS_IN);
        put_be32(head + 6, shown_ttl(reply, 0));
        put_be16(head + 10, shape->fixed_len);

        for (uint32_t i = 0; i < first; i++)
                p = rdata_skip(shape, p);
        put_simple_records(reply, head, p, count - first, shape->fixed_len);
        if (first > 0)
                put_simple_records(reply, head, start, first, shape->fixed_len);
        reply->counts[WIRE_ANSWER] = count;
        if (reply->pos > reply->limit)
                truncate_all(reply);
}

/* What a general reply's names can point at: where in the packet the labels and endings stand that the names
 * of the entry share. 0: not there (yet). */
struct names {
        struct reply *reply;
        uint32_t mapped; /* entries of `at` in use */
        uint16_t endings[DICT_LABELS - DICT_FIRST];
        uint16_t at[STORED_REF_MAX + 1]; /* by offset in the entry */
};

/* An ending of the question, and the shorter ones in it, as far as they are in lower case. */
static void names_add_ending(struct names *names, uint8_t code, size_t at, size_t lower)
{
        while (code != 0) {
                uint8_t next = dict_shorter(code);
                if (at >= lower)
                        names->endings[code - DICT_FIRST] = (uint16_t)(DNS_HEADER + at);
                if (next != 0)
                        at += (size_t)(dict_item(code)->len - dict_item(next)->len);
                code = next;
        }
}

/* Of the client's question only what is in lower case is as good as the stored labels. */
static void names_init(struct names *names, struct reply *reply)
{
        const struct entry_view *view = reply->view;
        const struct wire_query *query = reply->params->query;
        names->reply = reply;
        names->mapped = view->size <= STORED_REF_MAX ? view->size : STORED_REF_MAX + 1;
        memset(names->endings, 0, sizeof names->endings);
        memset(names->at, 0, names->mapped * sizeof names->at[0]);

        size_t lower = query->qname_len;
        while (lower > 0 && query->qname[lower - 1] == wire_fold(query->qname[lower - 1]))
                lower--;
        struct name_walk walk;
        struct name_part part;
        name_walk_init(&walk, view->entry, view->name);
        for (size_t at = 0; at < query->qname_len; at += part.len) {
                name_walk_next(&walk, &part);
                if (part.last && part.len > 1)
                        names_add_ending(names, view->entry[part.at], at, lower);
                else if (!part.last && at >= lower)
                        names->at[part.at] = (uint16_t)(DNS_HEADER + at);
        }
}

/* Where on the wire the part of the question's name begins that is stored at offset `at`. */
static size_t question_wire(const struct entry_view *view, uint32_t at)
{
        struct name_walk walk;
        struct name_part part;
        size_t wire = 0;
        name_walk_init(&walk, view->entry, view->name);
        for (;;) {
                name_walk_next(&walk, &part);
                if (part.at == at || part.last)
                        return wire;
                wire += part.len;
        }
}

static void put_pointer(struct reply *reply, size_t target)
{
        put16(reply, (uint16_t)(POINTER | target));
}

/* If *place says where this is in the packet, point there; else it is going to be here. */
static bool point(struct reply *reply, uint16_t *place)
{
        if (*place != 0) {
                put_pointer(reply, *place);
                return true;
        }
        if (reply->pos < POINTER_REACH)
                *place = (uint16_t)reply->pos;
        return false;
}

static void put_ending(struct names *names, uint8_t code)
{
        while (!point(names->reply, &names->endings[code - DICT_FIRST])) {
                const struct dict_item *item = dict_item(code);
                code = dict_shorter(code);
                if (code == 0) {
                        put(names->reply, item->wire, item->len);
                        return;
                }
                put(names->reply, item->wire, (size_t)(item->len - dict_item(code)->len));
        }
}

static void put_name(struct names *names, const uint8_t *stored, bool compress)
{
        struct reply *reply = names->reply;
        struct name_walk walk;
        struct name_part part;
        name_walk_init(&walk, reply->view->entry, stored);
        do {
                name_walk_next(&walk, &part);
                if (part.follow) { /* only ever in names that may be compressed */
                        put_pointer(reply, DNS_HEADER + question_wire(reply->view, part.at));
                        return;
                }
                if (compress && part.last && part.len > 1) {
                        put_ending(names, reply->view->entry[part.at]);
                        return;
                }
                if (compress && !part.last && part.at < names->mapped && point(reply, &names->at[part.at]))
                        return;
                put(reply, part.wire, part.len);
        } while (!part.last);
}

static const uint8_t *put_rdata(struct names *names, const struct rdata_shape *shape, const uint8_t *p)
{
        for (const struct rdata_field *field = shape->fields; field->kind != RDATA_END; field++) {
                size_t len = 0;
                switch (field->kind) {
                case RDATA_FIXED:
                        len = field->size;
                        break;
                case RDATA_STRING:
                        len = *p + 1u;
                        break;
                case RDATA_NAME:
                        put_name(names, p, shape->compress);
                        p = stored_name_skip(p);
                        break;
                case RDATA_REST:
                        len = varint_get(&p);
                        break;
                }
                put(names->reply, p, len);
                p += len;
        }
        return p;
}

static const uint8_t *put_record(struct names *names, const struct entry_run *run, uint32_t ttl,
                                 const struct rdata_shape *shape, const uint8_t *rdata)
{
        struct reply *reply = names->reply;
        if (run->owner != NULL)
                put_name(names, run->owner, true);
        else if (reply->params->query->qname_len > 1)
                put_pointer(reply, DNS_HEADER);
        else
                put(reply, "", 1);

        uint8_t fixed[RR_FIXED] = {0};
        put_be16(fixed, run->type);
        put_be16(fixed + 2, DNS_IN);
        put_be32(fixed + 4, ttl);
        put(reply, fixed, sizeof fixed);
        size_t start = reply->pos;
        rdata = put_rdata(names, shape, rdata);
        if (start <= reply->cap)
                put_be16(reply->out + start - 2, (uint16_t)(reply->pos - start));
        return rdata;
}

/* Records that only clients that know DNSSEC get (RFC 4035 s3.2.1). */
static bool left_out(const struct reply *reply, const struct entry_run *run)
{
        uint16_t qtype = reply->view->qtype;
        if (reply->params->query->dnssec_ok || run->type == qtype || qtype == DNS_ANY)
                return false;
        switch (run->type) {
        case DNS_RRSIG:
        case DNS_NSEC:
        case DNS_NSEC3:
                return true;
        case DNS_DS:
        case DNS_DNSKEY:
                return run->section != WIRE_ANSWER;
        default:
                return false;
        }
}

static void skip_records(struct run_walk *walk, const struct entry_run *run)
{
        const struct rdata_shape *shape = rdata_shape(run->type);
        for (uint32_t i = 0; i < run->count; i++)
                walk->p = rdata_skip(shape, walk->p);
}

static bool same_owner(const struct entry_view *view, const struct entry_run *a, const struct entry_run *b)
{
        if (a->owner == NULL || b->owner == NULL)
                return a->owner == b->owner;
        uint8_t names[2][WIRE_NAME_MAX];
        size_t len = stored_name_expand(view->entry, a->owner, names[0]);
        return len == stored_name_expand(view->entry, b->owner, names[1]) &&
               wire_name_equal(names[0], names[1], len);
}

/* Where the additional section begins that is being cut. */
struct cut {
        struct run_walk walk;      /* before its first run */
        struct entry_run previous; /* the run before that */
        size_t pos;
        uint32_t kept; /* runs of it that fit, left out ones included */
};

/* Is part of the RRset of `dropped` among the runs that were kept? */
static bool splits(const struct reply *reply, const struct cut *cut, const struct entry_run *dropped)
{
        if (dropped->type == DNS_RRSIG) /* may go without the rest (RFC 4035 s3.1.1) */
                return false;
        struct run_walk walk = cut->walk;
        struct entry_run run = cut->previous;
        for (uint32_t i = 0; i < cut->kept; i++) {
                run_walk_next(&walk, &run);
                skip_records(&walk, &run);
                if (run.type == dropped->type && same_owner(reply->view, &run, dropped))
                        return true;
        }
        return false;
}

/* The additional section has been cut before `run`: it and what `walk` still holds is dropped. That needs no
 * TC, except for addresses in a referral (RFC 9471), but no RRset may be in parts. */
static void cut_additional(struct reply *reply, const struct cut *cut, struct run_walk *walk,
                           struct entry_run *run, bool referral)
{
        uint64_t work = (uint64_t)cut->kept * (walk->left + 1);
        bool split = work > SPLIT_WORK;
        for (;;) {
                if (!left_out(reply, run)) {
                        if (referral && (run->type == DNS_A || run->type == DNS_AAAA))
                                reply->truncated = true;
                        split = split || splits(reply, cut, run);
                }
                if (walk->left == 0 || (split && (!referral || reply->truncated)))
                        break;
                skip_records(walk, run);
                run_walk_next(walk, run);
        }
        if (split) {
                reply->pos = cut->pos;
                reply->counts[WIRE_ADDITIONAL] = 0;
        }
}

static __attribute__((noinline)) void render_general(struct reply *reply)
{
        struct names names;
        names_init(&names, reply);

        struct run_walk walk;
        struct entry_run run = {.owner = NULL};
        struct cut cut = {.pos = 0};
        bool ns = false, soa = false;
        run_walk_init(&walk, reply->view);
        while (walk.left > 0) {
                struct run_walk before = walk;
                struct entry_run previous = run;
                run_walk_next(&walk, &run);
                if (run.section == WIRE_ADDITIONAL && cut.pos == 0)
                        cut = (struct cut){before, previous, reply->pos, 0};
                ns |= run.section == WIRE_AUTHORITY && run.type == DNS_NS;
                soa |= run.section == WIRE_AUTHORITY && run.type == DNS_SOA;
                if (left_out(reply, &run)) {
                        skip_records(&walk, &run);
                        cut.kept++;
                        continue;
                }

                const struct rdata_shape *shape = rdata_shape(run.type);
                uint32_t ttl = shown_ttl(reply, run.delta);
                size_t start = reply->pos;
                uint32_t first = run.section == WIRE_ANSWER ? first_record(reply, run.count) : 0;
                for (uint32_t i = 0; i < first; i++)
                        walk.p = rdata_skip(shape, walk.p);
                for (uint32_t i = first; i < run.count && reply->pos <= reply->limit; i++)
                        walk.p = put_record(&names, &run, ttl, shape, walk.p);
                const uint8_t *turned = run.rdata;
                for (uint32_t i = 0; i < first && reply->pos <= reply->limit; i++)
                        turned = put_record(&names, &run, ttl, shape, turned);
                if (reply->pos > reply->limit) {
                        if (run.section != WIRE_ADDITIONAL) {
                                truncate_all(reply);
                                return;
                        }
                        reply->pos = start;
                        walk.p = run.rdata;
                        bool referral = ns && !soa && reply->counts[WIRE_ANSWER] == 0 &&
                                        reply->view->rcode == DNS_NOERROR;
                        cut_additional(reply, &cut, &walk, &run, referral);
                        return;
                }
                reply->counts[run.section] += run.count;
                cut.kept++;
        }
}

static void put_ede(struct reply *reply, uint16_t code, const uint8_t *text, size_t text_len)
{
        put16(reply, EDNS_EDE);
        put16(reply, (uint16_t)(2 + text_len));
        put16(reply, code);
        if (text_len > 0)
                put(reply, text, text_len);
}

/* All extended errors, with their texts if these fit, or none. */
static __attribute__((noinline)) void put_edes(struct reply *reply)
{
        const struct entry_view *view = reply->view;
        int added = reply->params->add_ede;
        size_t codes = (size_t)EDE_FIXED * (view->ede_count + (added >= 0 ? 1u : 0u));
        size_t texts = 0;
        const uint8_t *p = view->ede;
        for (unsigned i = 0; i < view->ede_count; i++) {
                p += 2;
                uint32_t len = varint_get(&p);
                p += len;
                texts += len;
        }
        if (reply->pos + codes > reply->limit)
                return;
        bool with_text = reply->pos + codes + texts <= reply->limit;
        p = view->ede;
        for (unsigned i = 0; i < view->ede_count; i++) {
                uint16_t code = get_be16(p);
                p += 2;
                uint32_t len = varint_get(&p);
                put_ede(reply, code, p, with_text ? len : 0);
                p += len;
        }
        if (added >= 0)
                put_ede(reply, (uint16_t)added, NULL, 0);
}

/* Up to a multiple of the block, or as far as the limit goes. */
static __attribute__((noinline)) void put_padding(struct reply *reply)
{
        size_t block = reply->params->pad_block, least = reply->pos + OPTION_FIXED;
        if (least > reply->limit)
                return;
        size_t want = (least + block - 1) / block * block;
        size_t len = (want < reply->limit ? want : reply->limit) - least;
        put16(reply, EDNS_PADDING);
        put16(reply, (uint16_t)len);
        if (reply->pos + len <= reply->cap)
                memset(reply->out + reply->pos, 0, len);
        reply->pos += len;
}

static void put_opt(struct reply *reply, const uint8_t *ecs, size_t ecs_len)
{
        size_t start = reply->pos;
        uint8_t fixed[DNS_OPT_FIXED] = {0};
        put_be16(fixed + 1, DNS_OPT);
        put_be16(fixed + 3, reply->params->udp_payload_size);
        fixed[7] = reply->params->query->dnssec_ok ? 0x80 : 0;
        put(reply, fixed, sizeof fixed);
        if (ecs_len > 0)
                put(reply, ecs, ecs_len);
        /* `limit` has room for what is there so far. */
        reply->limit += reply->pos - start;
        if (reply->view->ede_count != 0 || reply->params->add_ede >= 0)
                put_edes(reply);
        if (reply->params->pad_block != 0)
                put_padding(reply);
        if (start + DNS_OPT_FIXED <= reply->cap)
                put_be16(reply->out + start + 9, (uint16_t)(reply->pos - start - DNS_OPT_FIXED));
        reply->counts[WIRE_ADDITIONAL]++;
}

static inline void write_header(const struct reply *reply)
{
        const struct wire_query *query = reply->params->query;
        uint8_t flags = reply->view->flags;
        uint8_t *out = reply->out;
        if (!query->ad && !query->dnssec_ok)
                flags &= (uint8_t)~ENTRY_AD;
        memcpy(out, query->packet, 2);
        out[2] = (uint8_t)(DNS_QR | (flags & ENTRY_AA) * DNS_AA / ENTRY_AA | reply->truncated * DNS_TC |
                           query->rd * DNS_RD);
        out[3] = (uint8_t)((flags & ENTRY_RA) * DNS_RA / ENTRY_RA | (flags & ENTRY_AD) * DNS_AD / ENTRY_AD |
                           query->cd * DNS_CD | (reply->view->rcode & DNS_RCODE_MASK));
        put_be16(out + 4, 1);
        for (unsigned i = 0; i < SECTIONS; i++)
                put_be16(out + 6 + 2 * i, (uint16_t)reply->counts[i]);
}

bool entry_render(const uint8_t *entry, const struct render_params *params, uint8_t *out, size_t cap,
                  struct render_result *result)
{
        struct entry_view view;
        entry_view_init(&view, entry);
        const struct wire_query *query = params->query;
        struct entry_life life = params->life != NULL ? *params->life : entry_life(entry);
        struct reply reply = {
            .view = &view,
            .params = params,
            .out = out,
            .cap = cap,
            .pos = DNS_HEADER,
            .limit = params->limit,
            .life = life,
            .stale = life.expiry <= params->now,
            .remaining = life.expiry - params->now,
            .truncated = view.ext & EXT_TRUNCATED,
        };
        uint8_t ecs[ECS_MAX];
        size_t ecs_len = 0;
        if (query->edns) {
                if (params->ecs != NULL)
                        ecs_len = wire_ecs_write(params->ecs, ecs);
                reply.limit -= DNS_OPT_FIXED + ecs_len;
        }

        put(&reply, query->qname, wire_query_question_len(query));
        const struct rdata_shape *shape = rdata_shape(view.qtype);
        if (view.flags & ENTRY_SIMPLE && !shape->has_name && query->qname_len > 1)
                render_simple(&reply, shape);
        else
                render_general(&reply);
        if (query->edns)
                put_opt(&reply, ecs, ecs_len);

        result->len = reply.pos;
        result->rcode = view.rcode;
        result->truncated = reply.truncated;
        if (reply.pos > cap)
                return false;
        write_header(&reply);
        return true;
}
