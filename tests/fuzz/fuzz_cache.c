/* SPDX-License-Identifier: MIT
 * Any bytes as a row of calls to one small cache with a clock of ours. Every answer that is inserted carries
 * in its rdata what it was inserted for, and a model remembers what was inserted last, so that each reply can
 * be checked: it is whole, within the client's limit, for this very question and network, the latest there
 * was, and no older than its TTLs allow. Limits and counters are checked after each call. */
#include <errno.h>
#include <string.h>

#include "cache.h"
#include "fuzz/fuzz.h"
#include "sardine.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/ecs.h"
#include "wire/name.h"
#include "wire/query.h"
#include "wire/response.h"

enum {
        NAMES = 5,
        TYPES = 4,
        TAGS = 3,
        NETWORKS = 48,
        KEYS = NAMES * TYPES * TAGS * 4, /* with RD and CD */
        CODES = 6,                       /* for everybody; prefixes that upstream answers for */
        STEPS = 200,
        IDENTITY = 16,
        MARK = 0xa5,
        STALE_TTL = 30,
};

static const uint8_t names[NAMES][16] = {"\1a\4test", "\1b\4test", "\3www\1a\4test", "\7EXAMPLE\3com", ""};
static const uint8_t name_lens[NAMES] = {8, 8, 12, 13, 1};
static const uint16_t types[TYPES] = {DNS_TXT, DNS_AAAA, 65280, DNS_A};
static const uint8_t prefixes[CODES] = {0, 8, 16, 20, 24, 48};

/* What is in rdata: which key, which network, which version. */
struct identity {
        uint8_t key, code, version;
        uint8_t net[6];
};

enum kind {
        KIND_NONE,
        KIND_DATA,
        KIND_DENIAL,
        KIND_FAILURE,
        KIND_TRUNCATED,
};

/* The latest that was taken in for a key and network. */
struct slot {
        uint32_t second;
        uint32_t ttl;
        uint8_t kind;
        uint8_t version;
        bool dnssec_ok;
};

static struct slot model[KEYS][CODES][NETWORKS];
static bool tainted[KEYS]; /* a mutated response was taken in: its replies are only checked for form */
static bool used[KEYS];
static bool all_tainted;

static sardine_cache *cache;
static struct sardine_options options;
static uint64_t clock_ms;
static uint64_t lookups, inserts;
static struct sardine_token token;
static int token_key; /* -1: none, or not one of ours */
static struct wire_ecs token_ecs;
static bool token_do;

static uint8_t reply[DNS_MAX_MESSAGE];
static struct wire_rr rrs[WIRE_RRS_MAX];

struct input {
        const uint8_t *p, *end;
};

static uint8_t take(struct input *in)
{
        return in->p < in->end ? *in->p++ : 0;
}

static uint64_t test_clock(void *ctx)
{
        (void)ctx;
        return clock_ms;
}

static uint32_t second(void)
{
        return (uint32_t)(clock_ms / 1000);
}

static int key_of(unsigned name, unsigned type, unsigned tag, bool rd, bool cd)
{
        return (int)((((name * TYPES + type) * TAGS + tag) * 2 + rd) * 2 + cd);
}

static void key_parts(int key, unsigned *name, unsigned *type)
{
        *type = (unsigned)key / 4 / TAGS % TYPES;
        *name = (unsigned)key / 4 / TAGS / TYPES;
}

/* Network i of the few that clients are in: 10.x.y.z, where nearby numbers share prefixes; from the middle on
 * IPv6. */
static void network_addr(unsigned i, struct wire_ecs *ecs)
{
        bool v6 = i >= NETWORKS / 2;
        *ecs = (struct wire_ecs){.family = v6 ? ECS_IPV6 : ECS_IPV4, .source = v6 ? 56 : 24};
        unsigned at = 0;
        ecs->addr[at++] = v6 ? 0x20 : 10;
        ecs->addr[at++] = (uint8_t)(i / 12);
        ecs->addr[at++] = (uint8_t)(i % 12 * 8);
        if (v6)
                ecs->addr[4] = (uint8_t)(i % 3), ecs->addr[5] = (uint8_t)i;
}

/* Not memcmp(), which libFuzzer looks into: it is called often. */
static bool same_address(const uint8_t a[16], const uint8_t b[16])
{
        uint64_t x[2], y[2];
        memcpy(x, a, 16);
        memcpy(y, b, 16);
        return x[0] == y[0] && x[1] == y[1];
}

/* The first of the networks that this prefix holds: in the model it stands for all of them. */
static unsigned first_network(const struct wire_ecs *client, unsigned prefix)
{
        static struct wire_ecs all[CODES][NETWORKS];
        unsigned code = 0;
        while (prefixes[code] != prefix)
                code++;
        for (unsigned i = 0; i < NETWORKS && all[code][i].family == ECS_NONE; i++) {
                network_addr(i, &all[code][i]);
                wire_ecs_mask(all[code][i].addr, prefix);
        }
        struct wire_ecs mine = *client;
        wire_ecs_mask(mine.addr, prefix);
        for (unsigned i = 0; i < NETWORKS; i++)
                if (all[code][i].family == mine.family && same_address(all[code][i].addr, mine.addr))
                        return i;
        return NETWORKS;
}

struct query {
        uint8_t packet[600];
        size_t len;
        struct sardine_query q;
        uint8_t client[16];
        char tag[4];
        unsigned tag_number;
        struct wire_query wire;
        unsigned reason; /* why it is no business of a cache's, 0: it is */
        int key;         /* -1: not one of ours */
        bool has_client;
        struct wire_ecs from; /* the client's network, ECS or address */
};

/* A query, crafted and maybe damaged; what it says is then read back from its bytes. */
static void make_query(struct input *in, struct query *query)
{
        memset(query, 0, sizeof *query);
        uint8_t what = take(in), flags = take(in), more = take(in);
        unsigned name = what % NAMES, type = what / NAMES % TYPES, network = take(in) % NETWORKS;
        uint8_t *p = query->packet;
        put_be16(p, (uint16_t)(what << 8 | more));
        p[2] = flags & 1;
        p[3] = (uint8_t)((flags & 2 ? DNS_CD : 0) | (flags & 4 ? DNS_AD : 0));
        p[5] = 1;
        p += DNS_HEADER;
        for (unsigned i = 0; i < name_lens[name]; i++) {
                uint8_t c = wire_fold(names[name][i]);
                *p++ = c >= 'a' && c <= 'z' && (i * more & 4) ? (uint8_t)(c - 0x20) : c;
        }
        put_be16(p, types[type]);
        put_be16(p + 2, DNS_IN);
        p += 4;
        struct wire_ecs ecs;
        network_addr(network, &ecs);
        if (flags & 8) {
                static const uint16_t sizes[] = {0, 512, 700, 1232, 4096, 65535};
                query->packet[11] = 1;
                memset(p, 0, DNS_OPT_FIXED);
                put_be16(p + 1, DNS_OPT);
                put_be16(p + 3, sizes[more % 6]);
                p[7] = flags & 0x10 ? 0x80 : 0;
                uint8_t *rdlen = p + 9;
                p += DNS_OPT_FIXED;
                if (flags & 0x20) {
                        if (more & 0x40)
                                ecs.source = (uint8_t)(ecs.source - more % 17);
                        if (more == 0xff)
                                ecs.source = 0;
                        wire_ecs_mask(ecs.addr, ecs.source);
                        p += wire_ecs_write(&ecs, p);
                }
                if (more & 0x10) {
                        memcpy(p, "\0\12\0\10cookie!", 12);
                        p += 12;
                }
                if (more & 0x20) {
                        memcpy(p, "\0\14\0\2\0", 6);
                        p += 6;
                }
                put_be16(rdlen, (uint16_t)(p - rdlen - 2));
        }
        query->len = (size_t)(p - query->packet);
        if ((more & 0x8f) == 0x8f) /* damage */
                for (uint8_t n = take(in) % 4 + 1; n > 0; n--) {
                        uint8_t at = take(in);
                        query->packet[at % query->len] = take(in);
                }
        query->tag_number = more % TAGS;
        memcpy(query->tag, "tag", 3);
        memcpy(query->client, ecs.addr, 16);
        query->q = (struct sardine_query){
            .sz = sizeof query->q,
            .packet = query->packet,
            .len = query->len,
            .transport = flags & 0x40 ? SARDINE_DOT : SARDINE_UDP,
            .flags = take(in) & (SARDINE_SKIP | SARDINE_CACHE_ONLY | SARDINE_ALLOW_STALE | SARDINE_PEEK),
            .tag_len = query->tag_number,
            .tag = query->tag,
        };
        if (flags & 0x80) {
                query->q.client = query->client;
                query->q.client_len = ecs.family == ECS_IPV4 ? 4 : 16;
        }

        query->reason = wire_query_parse(query->packet, query->len, &query->wire);
        query->key = -1;
        if (query->reason)
                return;
        const struct wire_query *wire = &query->wire;
        for (unsigned n = 0; n < NAMES; n++)
                for (unsigned t = 0; t < TYPES; t++)
                        if (wire->qname_len == name_lens[n] && wire->qtype == types[t] &&
                            wire_name_equal(wire->qname, names[n], name_lens[n]))
                                query->key = key_of(n, t, query->tag_number, wire->rd, wire->cd);
        query->has_client = wire->ecs.family != ECS_NONE ? wire->ecs.source > 0 : query->q.client != NULL;
        if (wire->ecs.family != ECS_NONE) {
                query->from = wire->ecs;
        } else if (query->q.client) {
                query->from = ecs;
                query->from.source = (uint8_t)(query->q.client_len * 8);
        }
}

static void put_identity(uint8_t *p, int key, const struct identity *id)
{
        const uint8_t bytes[IDENTITY] = {MARK,        (uint8_t)key, (uint8_t)(key >> 8), id->code,
                                         id->version, id->net[0],   id->net[1],          id->net[2],
                                         id->net[3],  id->net[4],   id->net[5],          MARK};
        memcpy(p, bytes, IDENTITY);
}

/* Does what was inserted last for the key and network say the same as the reply? */
static void check_slot(const struct query *query, unsigned code, unsigned network, enum kind kind,
                       unsigned version, bool stale, uint32_t ttl)
{
        MUST(network < NETWORKS);
        const struct slot *slot = &model[query->key][code][network];
        MUST(slot->kind == kind && slot->version == version);
        MUST(!query->wire.dnssec_ok || slot->dnssec_ok);
        uint32_t age = second() - slot->second;
        if (stale) {
                MUST(age >= slot->ttl || age > 0);
                MUST(age < slot->ttl + options.stale_window);
                MUST(ttl > 0 && ttl <= STALE_TTL && ttl <= slot->ttl);
        } else if (options.dont_age) {
                MUST(age < slot->ttl && ttl == slot->ttl);
        } else {
                MUST(age < slot->ttl && ttl > 0 && ttl <= slot->ttl - age);
        }
}

static void check_identity(const struct query *query, const uint8_t *id, enum kind kind, bool stale,
                           uint32_t ttl)
{
        MUST(id[0] == MARK && id[11] == MARK);
        MUST((id[1] | id[2] << 8) == query->key);
        unsigned code = id[3], network = 0;
        MUST(code < CODES);
        if (prefixes[code] != 0) {
                MUST(query->has_client && prefixes[code] <= query->from.source);
                struct wire_ecs mine = query->from;
                wire_ecs_mask(mine.addr, prefixes[code]);
                MUST(memcmp(mine.addr, id + 5, 6) == 0);
                network = first_network(&query->from, prefixes[code]);
        }
        check_slot(query, code, network, kind, id[4], stale, ttl);
}

/* A reply without records: whichever network's it is, the model must know such an answer. */
static void check_empty(const struct query *query, enum kind kind)
{
        for (unsigned code = 0; code < CODES; code++) {
                unsigned network = 0;
                if (prefixes[code] != 0) {
                        if (!query->has_client || prefixes[code] > query->from.source)
                                continue;
                        network = first_network(&query->from, prefixes[code]);
                }
                if (network < NETWORKS && model[query->key][code][network].kind == kind)
                        return;
        }
        MUST(false);
}

static void check_form(const struct query *query, const struct sardine_answer *a,
                       struct wire_response *response)
{
        const struct wire_query *wire = &query->wire;
        MUST_BE_WRITTEN(reply, a->len);
        size_t limit = wire->udp_size < options.udp_payload_size ? wire->udp_size : options.udp_payload_size;
        MUST(a->len <= (query->q.transport == SARDINE_UDP ? limit : DNS_MAX_MESSAGE));
        MUST(wire_response_parse(reply, a->len, rrs, WIRE_RRS_MAX, response) == 0);
        MUST(memcmp(reply, query->packet, 2) == 0);
        MUST(response->qname_len == wire->qname_len &&
             memcmp(response->qname, wire->qname, wire_query_question_len(wire)) == 0);
        MUST(((reply[2] & DNS_RD) != 0) == wire->rd && ((reply[3] & DNS_CD) != 0) == wire->cd);
        MUST(wire->ad || wire->dnssec_ok || !(reply[3] & DNS_AD));
        MUST(response->edns == wire->edns && response->dnssec_ok == wire->dnssec_ok);
        MUST(response->rcode == a->rcode);
        MUST(response->ecs.family == ECS_NONE ||
             (response->ecs.family == wire->ecs.family && response->ecs.source == wire->ecs.source &&
              memcmp(response->ecs.addr, wire->ecs.addr, 16) == 0));
        for (uint32_t i = 0; i < response->count; i++) {
                uint16_t type = rrs[i].type;
                MUST(wire->dnssec_ok || type == wire->qtype || wire->qtype == DNS_ANY ||
                     (type != DNS_RRSIG && type != DNS_NSEC && type != DNS_NSEC3));
        }
}

static void check_reply(const struct query *query, const struct sardine_answer *a, bool stale)
{
        struct wire_response response;
        MUST(query->reason == 0);
        check_form(query, a, &response);
        if (all_tainted || (query->key >= 0 && tainted[query->key]))
                return;
        MUST(query->key >= 0);
        MUST(stale ? a->ttl == 0 && a->age < options.stale_window : a->ttl > 0 && a->age == 0);
        if (response.rcode == DNS_SERVFAIL) {
                MUST(!stale);
                check_empty(query, KIND_FAILURE);
                return;
        }
        unsigned identities = 0;
        for (uint32_t i = 0; i < response.count; i++) {
                const uint8_t *rdata = reply + rrs[i].rdata;
                if (rrs[i].type == DNS_SOA)
                        check_identity(query, rdata + rrs[i].rdlen - 20, KIND_DENIAL, stale, rrs[i].ttl);
                else if (rrs[i].type == query->wire.qtype && rrs[i].section == WIRE_ANSWER &&
                         rrs[i].rdlen >= IDENTITY)
                        check_identity(query, rdata + rrs[i].rdlen - IDENTITY, KIND_DATA, stale, rrs[i].ttl);
                else
                        continue;
                identities++;
        }
        if (response.flags2 & DNS_TC)
                MUST(query->q.transport == SARDINE_UDP && response.count == 0);
        else if (query->wire.qtype != DNS_A || response.rcode != DNS_NOERROR)
                MUST(identities > 0);
        else if (identities == 0)
                check_empty(query, KIND_DATA);
}

static void remember_token(const struct query *query)
{
        token_key = query->key;
        token_ecs = query->wire.ecs;
        token_do = query->wire.dnssec_ok;
}

/* `room`: for the reply. */
static void check_outcome(const struct query *query, const struct sardine_answer *a, int outcome)
{
        bool skip = query->q.flags & SARDINE_SKIP;
        if (!(query->q.flags & SARDINE_PEEK))
                lookups++;
        MUST((outcome == SARDINE_BYPASS) == (skip || query->reason != 0));
        MUST((outcome == SARDINE_BYPASS) == (a->reason != 0));
        switch (outcome) {
        case SARDINE_HIT:
        case SARDINE_REFRESH:
                check_reply(query, a, false);
                break;
        case SARDINE_STALE:
                check_reply(query, a, true);
                break;
        case SARDINE_MISS:
                MUST(a->len == 0);
                break;
        case -EMSGSIZE:
                MUST(a->len > a->cap && a->len <= DNS_MAX_MESSAGE);
                break;
        default:
                MUST(outcome == SARDINE_BYPASS);
        }
        if (token.len != 0)
                remember_token(query);
}

static void take_token(const struct sardine_token *fresh)
{
        MUST_BE_WRITTEN(fresh->bytes, fresh->len);
        memset(&token, 0, sizeof token);
        token.len = fresh->len;
        memcpy(token.bytes, fresh->bytes, fresh->len);
}

static void lookup(struct input *in)
{
        struct query query;
        make_query(in, &query);
        uint8_t small = take(in);
        UNWRITTEN(reply, sizeof reply);
        struct sardine_token fresh;
        UNWRITTEN(&fresh, sizeof fresh);
        struct sardine_answer a = {
            .sz = sizeof a, .buf = reply, .cap = small < 8 ? small * 20u : sizeof reply, .token = &fresh};
        int outcome = sardine_lookup(cache, &query.q, &a);
        take_token(&fresh);
        check_outcome(&query, &a, outcome);
}

static void batch(struct input *in)
{
        enum { MOST = 20 };
        static struct query queries[MOST];
        static uint8_t room[MOST][4096];
        static struct sardine_token tokens[MOST];
        struct sardine_query q[MOST] = {0};
        struct sardine_answer a[MOST] = {0};
        int outcomes[MOST];
        unsigned n = take(in) % (MOST + 1);
        UNWRITTEN(room, sizeof room);
        UNWRITTEN(tokens, sizeof tokens);
        for (unsigned i = 0; i < n; i++) {
                make_query(in, &queries[i]);
                q[i] = queries[i].q;
                a[i] = (struct sardine_answer){
                    .sz = sizeof a[i], .buf = room[i], .cap = sizeof room[i], .token = &tokens[i]};
        }
        MUST(sardine_lookup_batch(cache, n, q, a, outcomes) == 0);
        for (unsigned i = 0; i < n; i++) {
                if (outcomes[i] >= 0)
                        memcpy(reply, room[i], a[i].len);
                take_token(&tokens[i]);
                check_outcome(&queries[i], &a[i], outcomes[i]);
        }
}

static void failed(struct input *in)
{
        struct query query;
        make_query(in, &query);
        UNWRITTEN(reply, sizeof reply);
        struct sardine_answer a = {.sz = sizeof a, .buf = reply, .cap = sizeof reply};
        int outcome = sardine_failed(cache, &query.q, &a);
        if (outcome == SARDINE_HIT || outcome == SARDINE_STALE)
                check_reply(&query, &a, outcome == SARDINE_STALE);
        else
                MUST(outcome == SARDINE_MISS || outcome == SARDINE_BYPASS);
}

/* A response to the token's question, with what to expect of it. */
struct response {
        uint8_t packet[4096];
        size_t len;
        struct identity id;
        unsigned network; /* the model's */
        uint32_t ttl;
        enum kind kind;
};

static uint8_t *put_record(uint8_t *p, uint16_t type, uint32_t ttl, const void *rdata, size_t len)
{
        put_be16(p, 0xc00c);
        put_be16(p + 2, type);
        put_be16(p + 4, DNS_IN);
        put_be32(p + 6, ttl);
        put_be16(p + 10, (uint16_t)len);
        memcpy(p + 12, rdata, len);
        return p + 12 + len;
}

static uint8_t *put_records(struct response *r, uint8_t *p, unsigned type, uint8_t what, uint8_t *counts)
{
        uint8_t id[300] = {0};
        unsigned count = what % 5 + 1;
        static const uint8_t signature[] = {0, 1, 8, 2, 0, 0, 1, 44, 0x7f, 0, 0,
                                            0, 0, 0, 0, 0, 0, 1, 0,  9,    9};
        for (unsigned i = 0; i < count; i++) {
                id[0] = 200;
                switch (types[type]) {
                case DNS_TXT:
                        put_identity(id + 201 - IDENTITY, token_key, &r->id);
                        id[1] = (uint8_t)i;
                        p = put_record(p, DNS_TXT, r->ttl, id, 201);
                        break;
                case DNS_A: { /* no room for it */
                        const uint8_t address[4] = {192, 0, 2, (uint8_t)i};
                        p = put_record(p, DNS_A, r->ttl, address, 4);
                        break;
                }
                default:
                        put_identity(id, token_key, &r->id);
                        id[12] = (uint8_t)i;
                        p = put_record(p, types[type], r->ttl, id, IDENTITY);
                }
        }
        counts[1] = (uint8_t)count;
        if (what & 0x20) {
                uint8_t rrsig[sizeof signature];
                memcpy(rrsig, signature, sizeof signature);
                put_be16(rrsig, types[type]);
                p = put_record(p, DNS_RRSIG, r->ttl, rrsig, sizeof rrsig);
                counts[1]++;
        }
        if (what & 0x40) { /* with a name of its own */
                p = put_record(p, DNS_NS, r->ttl + 7, "\2ns\300\14", 5);
                counts[3]++;
        }
        return p;
}

static void make_response(struct input *in, struct response *r)
{
        unsigned name, type;
        key_parts(token_key, &name, &type);
        uint8_t what = take(in), how = take(in), scope = take(in);
        memset(r->packet, 0, DNS_HEADER);
        r->id = (struct identity){.version = how % 4};
        r->ttl = 1 + take(in);
        r->network = 0;
        uint8_t *p = r->packet, *counts = p + 6;
        p[2] = DNS_QR;
        p[3] = (uint8_t)(DNS_RA | (how & 0x10 ? DNS_AD : 0));
        p[5] = 1;
        p += DNS_HEADER;
        memcpy(p, names[name], name_lens[name]);
        p += name_lens[name];
        put_be16(p, types[type]);
        put_be16(p + 2, DNS_IN);
        p += 4;

        struct wire_ecs ecs = token_ecs;
        bool with_ecs = how & 0x20 && ecs.source > 0;
        if (token_ecs.family == ECS_NONE && how & 0x40) { /* the proxy's */
                network_addr(scope % NETWORKS, &ecs);
                with_ecs = true;
        }
        if (with_ecs) {
                unsigned code = scope % CODES;
                ecs.scope = prefixes[code];
                /* The model knows these prefixes only, and networks of its own only. */
                if (ecs.scope > ecs.source || ecs.scope > (ecs.family == ECS_IPV4 ? 32 : 128) ||
                    (r->network = code ? first_network(&ecs, ecs.scope) : 0) == NETWORKS) {
                        ecs.scope = 0;
                        code = r->network = 0;
                }
                struct wire_ecs masked = ecs;
                wire_ecs_mask(masked.addr, ecs.scope);
                r->id.code = (uint8_t)code;
                memcpy(r->id.net, masked.addr, sizeof r->id.net);
        }

        r->kind = what < 160   ? KIND_DATA
                  : what < 200 ? KIND_DENIAL
                  : what < 225 ? KIND_FAILURE
                               : KIND_TRUNCATED;
        switch (r->kind) {
        case KIND_DATA:
                p = put_records(r, p, type, what, counts);
                break;
        case KIND_DENIAL: {
                uint8_t soa[2 + 20] = {0};
                put_identity(soa + 2, token_key, &r->id);
                put_be32(soa + 18, r->ttl); /* MINIMUM */
                p = put_record(p, DNS_SOA, r->ttl, soa, sizeof soa);
                counts[3] = 1;
                r->packet[3] |= what & 1 ? DNS_NXDOMAIN : DNS_NOERROR;
                break;
        }
        case KIND_FAILURE:
                r->packet[3] |= DNS_SERVFAIL;
                r->ttl = options.failure_ttl;
                break;
        default:
                r->packet[2] |= DNS_TC;
                r->ttl = options.truncated_ttl;
        }
        if (with_ecs || how & 0x80) {
                memset(p, 0, DNS_OPT_FIXED);
                put_be16(p + 1, DNS_OPT);
                uint8_t *rdlen = p + 9;
                p += DNS_OPT_FIXED;
                if (with_ecs)
                        p += wire_ecs_write(&ecs, p);
                if (how & 0x80) {
                        memcpy(p, "\0\17\0\4\0\1why", 8);
                        p += 8;
                }
                put_be16(rdlen, (uint16_t)(p - rdlen - 2));
                counts[5] = 1;
        }
        r->len = (size_t)(p - r->packet);
}

static void insert_response(const struct response *r, bool damaged)
{
        struct sardine_insert_result result = {.sz = sizeof result};
        int outcome = sardine_insert(cache, &token, r->packet, r->len, NULL, &result);
        if (outcome == SARDINE_ERR_TOKEN)
                return;
        MUST(outcome >= SARDINE_STORED && outcome <= SARDINE_REFUSED);
        MUST((outcome == SARDINE_REFUSED) == (result.reason != 0) &&
             (outcome == SARDINE_REFUSED) == (result.life == 0));
        inserts++;
        if (outcome == SARDINE_REFUSED)
                return;
        if (damaged) {
                tainted[token_key] = true;
                return;
        }
        used[token_key] = true;
        MUST(result.life <= r->ttl);
        model[token_key][r->id.code][r->network] = (struct slot){
            .second = second(),
            .ttl = r->ttl,
            .kind = (uint8_t)r->kind,
            .version = r->id.version,
            .dnssec_ok = token_do,
        };
}

static void insert(struct input *in)
{
        struct response r;
        if (token_key < 0 || token.len == 0)
                return;
        make_response(in, &r);
        uint8_t damage = take(in);
        for (unsigned n = damage > 240 ? damage - 240 : 0; n > 0; n--) {
                size_t at = (size_t)take(in) << 8 | take(in);
                r.packet[at % r.len] = take(in);
        }
        if (damage == 240)
                r.len -= take(in) % r.len;
        insert_response(&r, damage >= 240);
}

/* Answers of one question for many networks: pages are made and split. */
static void flood(struct input *in)
{
        struct query query;
        make_query(in, &query);
        if (query.reason || query.key < 0 || !query.wire.edns || query.wire.ecs.family == ECS_NONE ||
            get_be16(query.wire.options) != EDNS_ECS)
                return;
        unsigned first = take(in) % NETWORKS, end = first + take(in) % 32;
        struct input start = *in;
        for (unsigned i = first; i < end && i < NETWORKS; i++) {
                struct wire_ecs ecs;
                network_addr(i, &ecs);
                /* The options begin with the ECS: replaced in place where the length is the same. */
                if (ecs.family != query.wire.ecs.family || ecs.source != query.wire.ecs.source)
                        continue;
                wire_ecs_write(&ecs, query.packet + (query.wire.options - query.packet));
                if (sardine_token_init(cache, &query.q, &token) != 0)
                        return;
                token_key = query.key;
                token_ecs = ecs;
                token_do = query.wire.dnssec_ok;
                struct response r;
                *in = start;
                make_response(in, &r);
                insert_response(&r, false);
        }
}

static void damage_token(struct input *in)
{
        struct sardine_token was = token;
        for (unsigned n = take(in) % 4; n > 0; n--) {
                uint8_t at = take(in);
                token.bytes[at] = take(in);
        }
        if (take(in) == 0)
                token.len = (uint16_t)(take(in) << 8 | take(in));
        struct response r;
        if (token_key >= 0) {
                make_response(in, &r);
                insert_response(&r, true);
                if (memcmp(&was, &token, sizeof token) != 0)
                        all_tainted = true;
        }
        token = was;
}

static int see(void *ctx, const struct sardine_entry_view *entry)
{
        ++*(int64_t *)ctx;
        /* as far as it says */
        uint8_t tag[255], text[1100];
        MUST(entry->tag_len <= SARDINE_TAG_MAX);
        memcpy(tag, entry->tag_len ? entry->tag : tag, entry->tag_len);
        MUST(entry->ecs_prefix <= (entry->ecs_family == ECS_IPV4 ? 32u : 128u));
        MUST(sardine_name_to_text(entry->qname, entry->qname_len, (char *)text, sizeof text) > 0);
        return 0;
}

static void select_some(struct input *in, struct sardine_selector *sel, bool remove)
{
        uint8_t what = take(in);
        unsigned name = what % NAMES, tag = take(in) % TAGS;
        *sel = (struct sardine_selector){.sz = sizeof *sel};
        if (what & 0x80) {
                sel->name = names[name];
                sel->name_len = name_lens[name];
                sel->below = what >> 6 & 1;
        }
        if (what & 0x20)
                sel->qtype = types[what % TYPES];
        if (what & 0x10) {
                sel->use_tag = 1;
                sel->tag_len = tag;
                sel->tag = "tag";
        }
        if ((what & 0x1f) == 0x0f) {
                sel->use_rcode = 1;
                sel->rcode = DNS_NXDOMAIN;
        }
        if (!remove || sel->use_rcode)
                return;
        /* Nothing of what is selected may be seen again. */
        for (int key = 0; key < KEYS; key++) {
                unsigned n, t;
                key_parts(key, &n, &t);
                if ((sel->name && n != name) || (sel->qtype && sel->qtype != types[t]) ||
                    (sel->use_tag && (unsigned)key / 4 % TAGS != tag) || !used[key])
                        continue;
                memset(model[key], 0, sizeof model[key]);
                used[key] = false;
        }
}

static void relay(struct input *in)
{
        struct query query;
        make_query(in, &query);
        struct response r;
        if (query.key < 0 || token.len == 0)
                return;
        int was = token_key;
        token_key = query.key;
        make_response(in, &r);
        token_key = was;
        uint8_t damage = take(in);
        if (damage > 128)
                r.packet[damage % r.len] = take(in);
        UNWRITTEN(reply, sizeof reply);
        struct sardine_answer a = {.sz = sizeof a, .buf = reply, .cap = sizeof reply};
        int outcome = sardine_render(cache, &query.q, r.packet, r.len, &a);
        struct wire_response response;
        if (outcome == SARDINE_HIT)
                check_form(&query, &a, &response);
        else
                MUST(outcome == SARDINE_BYPASS);
}

static void check_limits(void)
{
        struct sardine_stats s = {.sz = sizeof s};
        MUST(sardine_stats_get(cache, &s) == 0);
        MUST(s.bytes <= s.max_bytes && (s.max_entries == 0 || s.entries <= s.max_entries));
        MUST(s.lookups == lookups && s.inserts == inserts);
        uint64_t bypass = 0, refused = 0;
        for (unsigned i = 0; i < SARDINE_REASON_COUNT; i++)
                *(i < SARDINE_REFUSED_MALFORMED ? &bypass : &refused) += s.reasons[i];
        MUST(bypass == s.bypass && refused == s.refused);
}

static void step(struct input *in)
{
        struct sardine_selector sel;
        int64_t seen = 0;
        uint8_t what = take(in);
        switch (what % 16) {
        case 0:
        case 1:
        case 2:
        case 3:
                lookup(in);
                break;
        case 4:
        case 5:
        case 6:
                insert(in);
                break;
        case 7:
                clock_ms += (uint64_t)take(in) * (what & 0x80 ? 1000 : 100);
                break;
        case 8:
                select_some(in, &sel, true);
                MUST(sardine_expunge(cache, &sel) >= 0);
                break;
        case 9:
                select_some(in, &sel, false);
                MUST(sardine_walk(cache, &sel, see, &seen) == seen);
                break;
        case 10:
                if (what & 0x80)
                        MUST(sardine_expunge_to(cache, take(in)) >= 0);
                else
                        MUST(sardine_purge_expired(cache, take(in)) >= 0);
                break;
        case 11:
                failed(in);
                break;
        case 12:
                relay(in);
                break;
        case 13:
                batch(in);
                break;
        case 14: /* costs as much as all others together */
                if (what & 0x80)
                        flood(in);
                else
                        lookup(in);
                break;
        case 15:
                damage_token(in);
                break;
        }
        check_limits();
}

static void open_cache(struct input *in)
{
        uint8_t how = take(in), more = take(in);
        static const uint32_t networks[] = {0, 3, 300, 4096};
        sardine_options_init(&options, sizeof options);
        options.max_bytes = 256 << 10;
        options.segment_size = 4096u << more % 3;
        options.max_entries = how & 1 ? 12 : 0;
        options.stale_window = how & 2 ? 40 : 0;
        options.stale_ttl = STALE_TTL;
        options.refresh_percent = how & 4 ? 20 : 0;
        options.dont_age = how >> 3 & 1;
        options.rotate = how >> 4 & 1;
        options.truncated_ttl = how & 0x20 ? 5 : 0;
        options.max_networks = networks[how >> 6];
        options.failure_ttl = 20;
        options.clock = test_clock;
        MUST(sardine_create(&options, &cache) == 0);
        memset(cache->secret, MARK, sizeof cache->secret); /* one input, one course of events */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input in = {data, data + size};
        for (int key = 0; key < KEYS; key++)
                if (used[key])
                        memset(model[key], 0, sizeof model[key]);
        memset(used, 0, sizeof used);
        memset(tainted, 0, sizeof tainted);
        all_tainted = false;
        clock_ms = 5000;
        lookups = inserts = 0;
        token.len = 0;
        token_key = -1;
        token_ecs.family = ECS_NONE;
        open_cache(&in);
        for (unsigned n = 0; n < STEPS && in.p < in.end; n++)
                step(&in);
        sardine_destroy(cache);
        return 0;
}
