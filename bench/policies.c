/* SPDX-License-Identifier: MIT */
#include "bench.h"
#include "policies.h"

#include <string.h>

#define NIL            UINT32_MAX
#define PURGE_INTERVAL 60
#define SMALL_SHARE    10  /* S3-FIFO: a tenth is for new objects */
#define DNSDIST_ENTRY  394 /* bytes an entry of dnsdist 2.1.1's cache class, measured with this workload */

enum place { NOWHERE, MAIN, SMALL, GHOST };

struct object {
        uint32_t expiry, prev, next; /* towards head and tail; a ghost's prev is its number */
        uint8_t place, hot;
};

struct list {
        uint32_t head, tail, n;
        uint64_t bytes;
};

struct simulation {
        const struct policy *policy;
        const struct policy_input *input;
        struct object *objects;
        struct list lists[SMALL + 1]; /* by place */
        uint64_t budget;
        uint32_t hand, ghosts;
};

static uint32_t cost(const struct simulation *sim, uint32_t object)
{
        if (sim->policy->object_cost)
                return sim->policy->object_cost;
        return sim->input->sizes[object] + (sim->policy->links ? sim->input->links : 0);
}

static void push(struct simulation *sim, enum place place, uint32_t object)
{
        struct list *list = &sim->lists[place];
        struct object *o = &sim->objects[object];
        o->place = (uint8_t)place;
        o->prev = NIL;
        o->next = list->head;
        if (list->head != NIL)
                sim->objects[list->head].prev = object;
        else
                list->tail = object;
        list->head = object;
        list->n++;
        list->bytes += cost(sim, object);
}

static void pull(struct simulation *sim, uint32_t object)
{
        struct object *o = &sim->objects[object];
        struct list *list = &sim->lists[o->place];
        *(o->prev != NIL ? &sim->objects[o->prev].next : &list->head) = o->next;
        *(o->next != NIL ? &sim->objects[o->next].prev : &list->tail) = o->prev;
        o->place = NOWHERE;
        list->n--;
        list->bytes -= cost(sim, object);
}

static uint64_t bytes(const struct simulation *sim)
{
        return sim->lists[MAIN].bytes + sim->lists[SMALL].bytes;
}

static void keep_plain(struct simulation *sim, uint32_t object)
{
        sim->objects[object].hot = 0;
        push(sim, MAIN, object);
}

static void used_plain(struct simulation *sim, uint32_t object)
{
        (void)sim;
        (void)object;
}

static void lru_used(struct simulation *sim, uint32_t object)
{
        pull(sim, object);
        push(sim, MAIN, object);
}

static void lru_evict(struct simulation *sim)
{
        pull(sim, sim->lists[MAIN].tail);
}

static void sieve_used(struct simulation *sim, uint32_t object)
{
        sim->objects[object].hot = 1;
}

/* The hand goes from the tail to the head, spares once what was used, and stays where it took something. */
static void sieve_evict(struct simulation *sim)
{
        uint32_t at = sim->hand != NIL ? sim->hand : sim->lists[MAIN].tail;
        while (sim->objects[at].hot) {
                sim->objects[at].hot = 0;
                at = sim->objects[at].prev != NIL ? sim->objects[at].prev : sim->lists[MAIN].tail;
        }
        sim->hand = sim->objects[at].prev;
        pull(sim, at);
}

static void s3fifo_used(struct simulation *sim, uint32_t object)
{
        if (sim->objects[object].hot < 3)
                sim->objects[object].hot++;
}

static void s3fifo_keep(struct simulation *sim, uint32_t object)
{
        struct object *o = &sim->objects[object];
        bool known = o->place == GHOST && sim->ghosts - o->prev <= sim->lists[MAIN].n;
        o->hot = 0;
        push(sim, known ? MAIN : SMALL, object);
}

static void s3fifo_evict(struct simulation *sim)
{
        for (;;) {
                bool small = sim->lists[SMALL].n &&
                             (sim->lists[SMALL].bytes > sim->budget / SMALL_SHARE || !sim->lists[MAIN].n);
                uint32_t object = sim->lists[small ? SMALL : MAIN].tail;
                struct object *o = &sim->objects[object];
                pull(sim, object);
                if (small ? o->hot > 1 : o->hot > 0) {
                        o->hot = small ? 0 : (uint8_t)(o->hot - 1);
                        push(sim, MAIN, object);
                        continue;
                }
                if (small) {
                        o->place = GHOST;
                        o->prev = ++sim->ghosts;
                }
                return;
        }
}

const struct policy policies[] = {
    {"sieve", true, 0, sieve_used, sieve_evict, keep_plain},
    {"s3fifo", true, 0, s3fifo_used, s3fifo_evict, s3fifo_keep},
    {"lru", true, 0, lru_used, lru_evict, keep_plain},
    {"no_eviction", false, 0, used_plain, NULL, keep_plain},
    {"dnsdist", false, DNSDIST_ENTRY, used_plain, NULL, keep_plain},
};
const unsigned n_policies = sizeof policies / sizeof *policies;

static void purge_expired(struct simulation *sim, uint32_t now)
{
        for (uint32_t at = sim->lists[MAIN].head, next; at != NIL; at = next) {
                next = sim->objects[at].next;
                if (sim->objects[at].expiry <= now)
                        pull(sim, at);
        }
}

static void keep(struct simulation *sim, uint32_t object)
{
        uint32_t needed = cost(sim, object);
        if (sim->budget && !sim->policy->evict && bytes(sim) + needed > sim->budget)
                return;
        while (sim->budget && bytes(sim) + needed > sim->budget)
                sim->policy->evict(sim);
        sim->policy->keep(sim, object);
}

void policy_run(const struct policy *policy, const struct policy_input *input, uint64_t budget,
                uint64_t misses[TRACE_PHASES])
{
        const struct trace *trace = input->trace;
        struct list empty = {.head = NIL, .tail = NIL};
        struct simulation sim = {.policy = policy, .input = input, .budget = budget, .hand = NIL};
        struct trace_clock clock = {0};
        uint32_t purged = 0;
        sim.lists[MAIN] = sim.lists[SMALL] = empty;
        sim.objects = bench_map(trace->objects * sizeof *sim.objects, true);
        memset(misses, 0, TRACE_PHASES * sizeof *misses);
        for (uint64_t k = 0; k < trace->n; k++) {
                struct trace_event event = trace_event(trace, k, &clock);
                if (!policy->evict && event.second >= purged + PURGE_INTERVAL) {
                        purge_expired(&sim, event.second);
                        purged = event.second;
                }
                struct object *o = &sim.objects[event.object];
                bool there = o->place == MAIN || o->place == SMALL,
                     miss = !there || o->expiry <= event.second;
                misses[event.phase] += miss && event.ordinary;
                if (there)
                        policy->used(&sim, event.object);
                else
                        keep(&sim, event.object);
                if (miss)
                        o->expiry = event.second + trace_ttl(trace, k, &event);
        }
        bench_unmap(sim.objects, trace->objects * sizeof *sim.objects);
}
