/* SPDX-License-Identifier: MIT
 * Any bytes as a query: what is accepted keeps the promises of wire/query.h. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "sardine.h"
#include "wire/dns.h"
#include "wire/edns.h"
#include "wire/name.h"
#include "wire/query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct wire_query query;
        unsigned reason = wire_query_parse(data, size, &query);
        MUST(reason <= SARDINE_BYPASS_EDNS_VERSION && reason != SARDINE_BYPASS_HOST);
        if (reason != SARDINE_REASON_NONE)
                return 0;

        const uint8_t *end = data + size;
        MUST(query.packet == data && query.qname == data + DNS_HEADER);
        MUST(wire_name_length(query.qname, end) == query.qname_len && query.qname_len > 0);
        MUST(query.udp_size >= DNS_MIN_UDP);
        size_t length = DNS_HEADER + wire_query_question_len(&query);
        if (query.edns)
                length += DNS_OPT_FIXED + query.options_len;
        MUST(length == size);
        MUST(query.edns == (query.options != NULL));
        MUST(query.edns || query.options_len == 0);

        bool padded = false, ecs = false;
        for (const uint8_t *p = query.options; p != end && query.edns;) {
                uint16_t code, len;
                p = edns_option(p, end, &code, &len);
                MUST(p != NULL);
                padded |= code == EDNS_PADDING;
                if (code == EDNS_ECS) {
                        uint8_t out[24];
                        ecs = true;
                        MUST(wire_ecs_write(&query.ecs, out) == len + 4u && memcmp(out + 4, p, len) == 0);
                }
                p += len;
        }
        MUST(padded == query.padded);
        MUST(ecs == (query.ecs.family != ECS_NONE));

        uint8_t folded[WIRE_NAME_MAX];
        wire_name_fold(folded, query.qname, query.qname_len);
        MUST(wire_name_length(folded, folded + query.qname_len) == query.qname_len);
        MUST(wire_name_equal(folded, query.qname, query.qname_len));
        return 0;
}
