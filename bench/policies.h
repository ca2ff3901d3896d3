/* SPDX-License-Identifier: MIT
 *
 * Eviction rules to compare with, on the events of a trace. They keep an object for each name, know exactly
 * what it costs, and never spend a byte on anything else: what a list of objects could at best be.
 */
#ifndef BENCH_POLICIES_H
#define BENCH_POLICIES_H

#include "trace.h"

struct simulation;

struct policy {
        const char *name;
        bool links;           /* pays for list links */
        uint32_t object_cost; /* 0: the object's own size */
        void (*used)(struct simulation *, uint32_t object);
        void (*evict)(struct simulation *); /* at least one object; NULL: new objects are refused */
        void (*keep)(struct simulation *, uint32_t object); /* a new object */
};

extern const struct policy policies[];
extern const unsigned n_policies;

struct policy_input {
        const struct trace *trace;
        const uint16_t *sizes; /* of the trace's objects, all that they cost but for links */
        uint32_t links;        /* bytes */
};

/* Misses of ordinary queries, by phase. A budget of 0 is no limit. */
void policy_run(const struct policy *policy, const struct policy_input *input, uint64_t budget,
                uint64_t misses[TRACE_PHASES]);

#endif
