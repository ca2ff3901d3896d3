/* SPDX-License-Identifier: MIT
 * A response on its way through: written for the waiting client as a hit would be, but not kept. */
#include "cache.h"

#include <errno.h>
#include <stdlib.h>

#include "entry/encode.h"
#include "entry/header.h"
#include "wire/dns.h"
#include "wire/name.h"
#include "wire/response.h"

/* What the two messages and the encoded answer need; too much for a host thread's stack. */
struct relay {
        struct wire_rr rrs[WIRE_RRS_MAX];
        struct wire_response response;
        _Alignas(ENTRY_ALIGN) uint8_t entry[ENTRY_MAX];
};

static bool answers(const struct wire_response *r, const struct wire_query *q)
{
        return !(r->flags2 & DNS_TC) && r->rcode <= DNS_RCODE_MASK && r->qname &&
               r->qname_len == q->qname_len && wire_name_equal(r->qname, q->qname, q->qname_len) &&
               r->qtype == q->qtype && r->qclass == q->qclass;
}

static int write_reply(struct relay *relay, const sardine_cache *cache, const struct sardine_query *query,
                       const struct wire_query *wire, struct sardine_answer *a)
{
        struct entry_key key;
        entry_key_init(&key, wire->qname, wire->qname_len, wire->qtype, wire->rd, wire->cd, NULL, 0);
        uint32_t now = cache_now(cache);
        /* Ageless: every TTL as it came, 0 too. */
        const struct encode_params encode = {
            .expiry = now + 1, .life = 1, .dnssec_ok = true, .ageless = true};
        if (!entry_encode(&key, &relay->response, &encode, relay->entry, sizeof relay->entry))
                return SARDINE_BYPASS;
        struct render_params params;
        cache_render_params(cache, query, wire, now, &params);
        struct wire_ecs echo = wire->ecs;
        if (echo.family != ECS_NONE && relay->response.ecs.family == echo.family) {
                echo.scope = relay->response.ecs.scope;
                params.ecs = &echo;
        }
        struct render_result result;
        bool fits = entry_render(relay->entry, &params, a->buf, a->cap, &result);
        a->len = result.len;
        a->rcode = result.rcode;
        return fits ? SARDINE_HIT : -EMSGSIZE;
}

int sardine_render(sardine_cache *cache, const struct sardine_query *query, const uint8_t *response,
                   size_t len, struct sardine_answer *a)
{
        if (abi_short(query, a)) {
                struct abi_full full;
                int outcome = abi_full_take(&full, query, a);
                if (!outcome) {
                        outcome = sardine_render(cache, &full.query, response, len, &full.answer);
                        abi_give(a, &full.answer, sizeof full.answer);
                }
                return outcome;
        }
        int err = cache_query_check(cache, query);
        if (!err)
                err = struct_check(a, sizeof *a);
        if (!err && (!a->buf || !response))
                err = -EINVAL;
        if (err)
                return err;
        struct wire_query wire;
        a->len = a->rcode = a->ttl = a->age = a->stale_available = a->dnssec_ok = 0;
        a->reason = wire_query_parse(query->packet, query->len, &wire);
        if (a->reason)
                return SARDINE_BYPASS;
        struct relay *relay = aligned_alloc(_Alignof(struct relay), sizeof *relay);
        if (!relay)
                return -ENOMEM;
        int outcome = SARDINE_BYPASS;
        a->reason = wire_response_parse(response, len, relay->rrs, WIRE_RRS_MAX, &relay->response);
        if (!a->reason && !answers(&relay->response, &wire))
                a->reason = SARDINE_REFUSED_MISMATCH;
        if (!a->reason)
                outcome = write_reply(relay, cache, query, &wire, a);
        free(relay);
        return outcome;
}
