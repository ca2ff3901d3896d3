/* SPDX-License-Identifier: MIT
 * Any bytes as a response: what is accepted keeps the promises of wire/response.h and lifetime.h. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "lifetime.h"
#include "sardine.h"
#include "wire/dns.h"
#include "wire/name.h"
#include "wire/rdata.h"

static void check_name(const struct wire_name *name)
{
        MUST(wire_name_length(name->bytes, name->bytes + name->len) == name->len);
        unsigned labels = 0;
        size_t at = 0, boundary = 0;
        for (; name->bytes[at] != 0; at += name->bytes[at] + 1u, labels++) {
                if (at <= name->from_question)
                        boundary = at;
        }
        MUST(labels == name->labels);
        MUST(name->from_question == boundary || name->from_question >= name->len - 1u);
}

/* Names that are said to come from the question are its tails. */
static size_t check_expand(const struct wire_response *response, size_t off)
{
        struct wire_name name;
        uint32_t work = WIRE_WORK_MAX;
        size_t taken =
            wire_name_expand(response->packet, response->len, off, response->qname_len, &work, &name);
        MUST(taken != 0);
        check_name(&name);
        size_t tail = name.len - name.from_question;
        MUST(tail <= response->qname_len);
        if (tail > 0)
                MUST(memcmp(response->qname + response->qname_len - tail, name.bytes + name.from_question,
                            tail) == 0);
        return taken;
}

static void check_rr(const struct wire_response *response, const struct wire_rr *rr)
{
        MUST(rr->section <= WIRE_ADDITIONAL && rr->type != 0 && rr->type != DNS_OPT && rr->rclass == DNS_IN);
        MUST(rr->owner + check_expand(response, rr->owner) + 10 == rr->rdata);
        size_t at = rr->rdata, end = at + rr->rdlen;
        MUST(end <= response->len);
        const struct rdata_shape *shape = rdata_shape(rr->type);
        for (const struct rdata_field *field = shape->fields; field->kind != RDATA_END; field++) {
                if (field->kind == RDATA_FIXED)
                        at += field->size;
                else if (field->kind == RDATA_STRING)
                        at += response->packet[at] + 1u;
                else if (field->kind == RDATA_NAME)
                        at += check_expand(response, at);
                else
                        at = end;
                MUST(at <= end);
        }
        MUST(at == end);
        MUST(shape->fixed_len == 0 || shape->fixed_len == rr->rdlen);
}

static void check_lifetime(struct wire_response *response, const struct lifetime_limits *limits)
{
        uint32_t life = 0;
        enum lifetime_kind kind;
        unsigned reason = lifetime_assess(response, limits, &life, &kind);
        if (reason != SARDINE_REASON_NONE) {
                MUST(reason >= SARDINE_REFUSED_RCODE && reason < SARDINE_REASON_COUNT);
                return;
        }
        MUST(life > 0 && life <= limits->max_ttl);
        if (kind == LIFETIME_FAILURE)
                MUST(life <= LIFETIME_FAILURE_CAP && life <= limits->failure_ttl);
        else
                MUST(life >= limits->min_ttl && response->count > 0);
        if (kind == LIFETIME_NEGATIVE)
                MUST(life <= limits->max_negative_ttl);
        for (uint32_t i = 0; i < response->count; i++)
                MUST(response->rrs[i].ttl >= life && response->rrs[i].ttl <= 0x7fffffff);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct wire_rr rrs[WIRE_RRS_MAX];
        struct wire_response response;
        unsigned reason = wire_response_parse(data, size, rrs, WIRE_RRS_MAX, &response);
        if (reason != SARDINE_REASON_NONE) {
                MUST(reason == SARDINE_REFUSED_MALFORMED || reason == SARDINE_REFUSED_MISMATCH ||
                     reason == SARDINE_REFUSED_COMPLEX);
                return 0;
        }
        MUST(response.count <= WIRE_RRS_MAX && response.ede_count <= WIRE_EDE_MAX && response.rcode < 4096);
        for (uint32_t i = 0; i < response.count; i++)
                check_rr(&response, &rrs[i]);
        for (unsigned i = 0; i < response.ede_count; i++)
                MUST(response.ede[i].text >= data &&
                     response.ede[i].text + response.ede[i].text_len <= data + size);

        check_lifetime(&response, &(struct lifetime_limits){86400, 0, 3600, 60});
        check_lifetime(&response, &(struct lifetime_limits){UINT32_MAX, 30, UINT32_MAX, UINT32_MAX});
        return 0;
}
