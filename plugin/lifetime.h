/* SPDX-License-Identifier: MIT
 * How long an answer lives and which TTLs it shows (RFC 2308 s5, RFC 2181 s5.2, RFC 8767 s4, RFC 9520 s3.2).
 */
#ifndef LIFETIME_H
#define LIFETIME_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/response.h"

struct lifetime_limits {
        uint32_t max_ttl;
        uint32_t min_ttl;
        uint32_t max_negative_ttl;
        uint32_t failure_ttl; /* already the one for this response; 0: failures are not kept */
};

enum {
        LIFETIME_FAILURE_CAP = 300,
};

enum lifetime_kind {
        LIFETIME_POSITIVE,
        LIFETIME_NEGATIVE, /* NXDOMAIN or NODATA */
        LIFETIME_FAILURE,  /* SERVFAIL or REFUSED */
};

/* Work out the life of a response and correct the TTLs in response->rrs to what is to be shown at insert:
 * the RRset's minimum on each of its records, min(SOA TTL, MINIMUM) on the SOA of a negative answer.
 * Returns 0 and sets *life (> 0) and *kind, or the reason (SARDINE_REFUSED_...) why it is not kept.
 *
 * Rcodes other than those below are refused. What becomes of TC=1 is the caller's business.
 *
 * Positive: min over all records of the message (B42), capped by max_ttl. A TTL of 0 on any record: not kept.
 * A referral (NOERROR, no answer, NS in authority, no SOA) is positive data, and so is an alias at which an
 * authoritative server (RA=0) stops because the target is in no zone of its own.
 *
 * Negative (NXDOMAIN; NOERROR where the chain from the question ends without data of the question's type):
 * needs an SOA in authority; life also <= min(SOA TTL, MINIMUM) and max_negative_ttl.
 *
 * Failure: failure_ttl, at most 300, not above the TTL of any record; min_ttl does not apply.
 *
 * min_ttl: an answer with a shorter life is refused. Work is bounded as in wire_response_parse() (B64). */
unsigned lifetime_assess(struct wire_response *response, const struct lifetime_limits *limits, uint32_t *life,
                         enum lifetime_kind *kind);

/* Seconds until the first signature of the message expires, at wall clock time `now` (seconds since 1970, RFC
 * 4034 s3.1.5 serial arithmetic); UINT32_MAX without signatures. */
uint32_t lifetime_of_signatures(const struct wire_response *response, uint32_t now);

#endif
