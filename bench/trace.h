/* SPDX-License-Identifier: MIT
 *
 * Queries over time, to try eviction on. Ordinary traffic: names of the reference workload with Zipf
 * popularity, and names that are asked once. Three phases: ordinary traffic alone; with a scan beside it
 * (new names, one after the other); with a flood beside it (random labels below one name, which do not
 * exist). The ordinary traffic has the same rate in all of them, and the clock goes by it.
 */
#ifndef BENCH_TRACE_H
#define BENCH_TRACE_H

#include "workload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum trace_phase { TRACE_STEADY, TRACE_SCAN, TRACE_FLOOD, TRACE_PHASES };

struct trace_options {
        uint64_t seed, names, queries; /* ordinary queries of the first phase; the others have a twelfth */
        double zipf;
        double one_hit, changed, scan, flood; /* shares, 0..1, see README.md */
        double per_s;                         /* ordinary queries a second */
};

/* One query: what it asks for is a number below struct trace's `objects`. */
struct trace_event {
        uint32_t object;
        uint32_t ordinary : 1, phase : 2, nxdomain : 1;
        uint32_t second; /* of the simulated clock */
};

struct trace {
        struct trace_options options;
        uint64_t n, objects;
        uint64_t ordinary[TRACE_PHASES];
        uint32_t *what;     /* object, and a kind in the top bits: trace_event() knows */
        uint8_t *queries;   /* of the names that are asked again, packed */
        uint32_t *query_at; /* in `queries`: a length byte, the query */
};

void trace_make(struct trace *trace, const struct trace_options *options);
void trace_free(struct trace *trace);

/* Events in order: `second` of the one before goes in, so start with a zeroed `clock`. */
struct trace_clock {
        uint64_t ordinary;
};
struct trace_event trace_event(const struct trace *trace, uint64_t k, struct trace_clock *clock);

/* The query of event k. Returns its length; *query points into the trace or to `buf`. */
size_t trace_query(const struct trace *trace, const struct trace_event *event,
                   uint8_t buf[WORKLOAD_QUERY_MAX], const uint8_t **query);

/* The life that an answer would have if it was fetched for event k: whole, or what another cache left of it.
 */
uint32_t trace_ttl(const struct trace *trace, uint64_t k, const struct trace_event *event);

/* The answer itself; `changed` of them are new data. */
size_t trace_response(const struct trace *trace, uint64_t k, const struct trace_event *event,
                      const uint8_t *query, size_t len, uint8_t response[WORKLOAD_RESPONSE_MAX]);

#endif
