/* SPDX-License-Identifier: MIT */
#include "bench.h"
#include "trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PHASE_SHARE 12
#define KIND_SHIFT  30
#define NEGATIVE    900 /* TTL of the flood's answers */

enum kind { ORDINARY, SCAN, FLOOD };

static uint64_t draw(const struct trace *trace, uint64_t about, uint64_t k)
{
        return workload_mix(workload_mix(trace->options.seed + about) ^ workload_mix(k));
}

static double fraction(uint64_t r)
{
        return (double)(r >> 11) * 0x1p-53;
}

/* Draws ranks by Walker's alias method: a rank for each of n equal shares, and another rank for what of the
 * share exceeds the first one's probability. */
struct zipf {
        uint64_t n;
        float *keep;
        uint32_t *other;
};

static void zipf_make(struct zipf *zipf, uint64_t n, double exponent)
{
        double *weight = malloc(n * sizeof *weight), sum = 0;
        uint32_t *small = malloc(n * sizeof *small), *large = malloc(n * sizeof *large), n_small = 0,
                 n_large = 0;
        zipf->n = n;
        zipf->keep = malloc(n * sizeof *zipf->keep);
        zipf->other = malloc(n * sizeof *zipf->other);
        for (uint64_t i = 0; i < n; i++)
                sum += weight[i] = pow((double)i + 1, -exponent);
        for (uint32_t i = 0; i < n; i++) {
                weight[i] *= (double)n / sum;
                if (weight[i] < 1)
                        small[n_small++] = i;
                else
                        large[n_large++] = i;
                zipf->keep[i] = 1;
                zipf->other[i] = i;
        }
        while (n_small && n_large) {
                uint32_t i = small[--n_small], from = large[n_large - 1];
                zipf->keep[i] = (float)weight[i];
                zipf->other[i] = from;
                weight[from] -= 1 - weight[i];
                if (weight[from] < 1) {
                        n_large--;
                        small[n_small++] = from;
                }
        }
        free(weight);
        free(small);
        free(large);
}

static uint32_t zipf_draw(const struct zipf *zipf, uint64_t r)
{
        uint32_t i = (uint32_t)((unsigned __int128)r * zipf->n >> 64);
        return fraction(workload_mix(r)) < (double)zipf->keep[i] ? i : zipf->other[i];
}

static void make_queries(struct trace *trace)
{
        uint64_t n = trace->options.names;
        size_t size = 0;
        trace->queries = bench_map(n * (WORKLOAD_QUERY_MAX + 1), false);
        trace->query_at = malloc(n * sizeof *trace->query_at);
        for (uint64_t i = 0; i < n; i++) {
                trace->query_at[i] = (uint32_t)size;
                trace->queries[size] =
                    (uint8_t)workload_query(trace->options.seed, i, trace->queries + size + 1);
                size += 1u + trace->queries[size];
                if (i % 65536 == 0)
                        bench_progress("make queries", i, n);
        }
}

void trace_make(struct trace *trace, const struct trace_options *options)
{
        *trace = (struct trace){.options = *options, .objects = options->names};
        const double beside[TRACE_PHASES] = {0, options->scan, options->flood};
        uint64_t end[TRACE_PHASES], n = 0;
        if (options->names * (WORKLOAD_QUERY_MAX + 1) > UINT32_MAX)
                bench_die("at most %llu names", UINT32_MAX / (WORKLOAD_QUERY_MAX + 1ull));
        for (unsigned phase = 0; phase < TRACE_PHASES; phase++) {
                uint64_t ordinary = phase ? options->queries / PHASE_SHARE : options->queries;
                n = end[phase] = n + (uint64_t)((double)ordinary / (1 - beside[phase]));
        }
        struct zipf zipf;
        zipf_make(&zipf, options->names, options->zipf);
        trace->n = n;
        trace->what = bench_map(n * sizeof *trace->what, false);
        unsigned phase = TRACE_STEADY;
        for (uint64_t k = 0; k < n; k++) {
                phase += k == end[phase];
                bool ordinary = fraction(draw(trace, 1, k)) >= beside[phase];
                if (ordinary && fraction(draw(trace, 2, k)) >= options->one_hit) {
                        trace->what[k] = zipf_draw(&zipf, draw(trace, 3, k));
                } else {
                        enum kind kind = ordinary ? ORDINARY : phase == TRACE_SCAN ? SCAN : FLOOD;
                        trace->what[k] = (uint32_t)trace->objects++ | (uint32_t)kind << KIND_SHIFT;
                }
                trace->ordinary[phase] += ordinary;
                if (k % 65536 == 0)
                        bench_progress("make the trace", k, n);
        }
        if (trace->objects >= 1u << KIND_SHIFT)
                bench_die("too many queries");
        free(zipf.keep);
        free(zipf.other);
        make_queries(trace);
        bench_progress("make queries", 1, 1);
}

void trace_free(struct trace *trace)
{
        bench_unmap(trace->what, trace->n * sizeof *trace->what);
        bench_unmap(trace->queries, trace->options.names * (WORKLOAD_QUERY_MAX + 1));
        free(trace->query_at);
}

struct trace_event trace_event(const struct trace *trace, uint64_t k, struct trace_clock *clock)
{
        uint32_t kind = trace->what[k] >> KIND_SHIFT;
        struct trace_event event = {
            .object = trace->what[k] & ((1u << KIND_SHIFT) - 1),
            .ordinary = kind == ORDINARY,
            .phase = clock->ordinary < trace->ordinary[0]                        ? TRACE_STEADY
                     : clock->ordinary < trace->ordinary[0] + trace->ordinary[1] ? TRACE_SCAN
                                                                                 : TRACE_FLOOD,
            .nxdomain = kind == FLOOD,
            .second = (uint32_t)((double)clock->ordinary / trace->options.per_s),
        };
        clock->ordinary += event.ordinary;
        return event;
}

size_t trace_query(const struct trace *trace, const struct trace_event *event,
                   uint8_t buf[WORKLOAD_QUERY_MAX], const uint8_t **query)
{
        if (event->object < trace->options.names) {
                const uint8_t *at = trace->queries + trace->query_at[event->object];
                *query = at + 1;
                return at[0];
        }
        *query = buf;
        if (!event->nxdomain)
                return workload_query(trace->options.seed, event->object, buf);
        static const uint8_t head[12] = {0, 0, 1, 0, 0, 1}, tail[] = "\7flooded\7example\0\0\1\0";
        memcpy(buf, head, sizeof head);
        uint64_t r = draw(trace, 4, event->object);
        buf[12] = 12;
        for (unsigned i = 0; i < 12; i++, r /= 26)
                buf[13 + i] = (uint8_t)('a' + r % 26);
        memcpy(buf + 25, tail, sizeof tail);
        buf[25 + sizeof tail - 1] = 1; /* class IN */
        return 25 + sizeof tail;
}

uint32_t trace_ttl(const struct trace *trace, uint64_t k, const struct trace_event *event)
{
        static const uint32_t ttls[10] = {30, 30, 60, 60, 300, 300, 300, 3600, 3600, 86400};
        if (event->nxdomain)
                return NEGATIVE;
        uint32_t ttl = ttls[draw(trace, 5, event->object) % 10];
        uint64_t r = draw(trace, 6, k);
        return r & 1 ? ttl : 1 + (uint32_t)((r >> 1) % ttl);
}

size_t trace_response(const struct trace *trace, uint64_t k, const struct trace_event *event,
                      const uint8_t *query, size_t len, uint8_t response[WORKLOAD_RESPONSE_MAX])
{
        uint32_t ttl = trace_ttl(trace, k, event);
        if (event->nxdomain) {
                static const uint8_t soa[] = {0xc0,
                                              25,
                                              0,
                                              6,
                                              0,
                                              1,
                                              0,
                                              0,
                                              NEGATIVE >> 8,
                                              NEGATIVE & 255,
                                              0,
                                              38,
                                              2,
                                              'n',
                                              's',
                                              0xc0,
                                              25,
                                              10,
                                              'h',
                                              'o',
                                              's',
                                              't',
                                              'm',
                                              'a',
                                              's',
                                              't',
                                              'e',
                                              'r',
                                              0xc0,
                                              25,
                                              0,
                                              0,
                                              0,
                                              1,
                                              0,
                                              0,
                                              14,
                                              16,
                                              0,
                                              0,
                                              2,
                                              88,
                                              0,
                                              9,
                                              58,
                                              128,
                                              0,
                                              0,
                                              NEGATIVE >> 8,
                                              NEGATIVE & 255};
                memcpy(response, query, len);
                response[2] |= 0x84;
                response[3] = 0x83; /* RA, NXDOMAIN */
                response[9] = 1;
                memcpy(response + len, soa, sizeof soa);
                return len + sizeof soa;
        }
        size_t response_len = workload_response(query, len, ttl, false, response);
        /* New data: another last byte of the last record, in front of the OPT. */
        uint64_t r = draw(trace, 7, k);
        if (fraction(r) < trace->options.changed)
                response[response_len - 12] = (uint8_t)('a' + workload_mix(r) % 26);
        return response_len;
}
