/* SPDX-License-Identifier: MIT
 *
 * The library beside another cache class, in one process and one thread, with the same query bytes in and
 * response bytes out: fill, fill again into memory that was used before, look up. The other class is a shared
 * object with the functions of peer-class/peer.h, named by SARDINE_BENCH_PEER; peer-class/build makes one.
 */
#include "bench.h"
#include "client.h"
#include "fill.h"
#include "peer-class/peer.h"
#include "workload.h"

#include <dlfcn.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define BATCH   256
#define LOOKUPS 2000000
#define GROUP   32

static const struct bench_option options[] = {
    {"entries", 1000000, "answers to fill in"},
    {"huge_pages", 1,
     "0: none for anybody. 1: if the other class is to have them, its allocator must be told"},
    {"seed", 1, "of the question list and the order of lookups"},
    {0},
};

static uint64_t entries, seed;
static sardine_cache *cache;

static struct {
        int (*create)(uint64_t);
        void (*destroy)(void);
        uint64_t (*entries)(void);
        size_t (*lookup)(const uint8_t *, size_t, const uint8_t **);
        void (*insert)(const uint8_t *, size_t);
        const char *(*name)(void);
} peer;

static void *function(void *object, const char *name)
{
        void *found = dlsym(object, name);
        if (!found)
                bench_die("the peer has no %s", name);
        return found;
}

static void load_peer(void)
{
        const char *path = getenv("SARDINE_BENCH_PEER");
        if (!path)
                bench_die(
                    "SARDINE_BENCH_PEER is to name the shared object that bench/peer-class/build makes");
        void *object = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
        if (!object)
                bench_die("%s", dlerror());
        *(void **)&peer.create = function(object, "peer_create");
        *(void **)&peer.destroy = function(object, "peer_destroy");
        *(void **)&peer.entries = function(object, "peer_entries");
        *(void **)&peer.lookup = function(object, "peer_lookup");
        *(void **)&peer.insert = function(object, "peer_insert");
        *(void **)&peer.name = function(object, "peer_name");
        fprintf(stderr, "beside %s\n", peer.name());
}

/* As fill(), for the peer. Questions [0, entries); it may give some up. */
static double fill_peer(const char *step)
{
        static uint8_t query[BATCH][WORKLOAD_QUERY_MAX], response[BATCH][WORKLOAD_RESPONSE_MAX];
        static size_t query_len[BATCH], response_len[BATCH];
        uint64_t elapsed = 0;
        for (uint64_t done = 0; done < entries;) {
                unsigned n = entries - done < BATCH ? (unsigned)(entries - done) : BATCH;
                for (unsigned k = 0; k < n; k++) {
                        query_len[k] = workload_query(seed, done + k, query[k]);
                        response_len[k] =
                            workload_response(query[k], query_len[k], FILL_TTL, false, response[k]);
                }
                uint64_t start = bench_now();
                for (unsigned k = 0; k < n; k++) {
                        const uint8_t *reply;
                        if (!peer.lookup(query[k], query_len[k], &reply))
                                peer.insert(response[k], response_len[k]);
                }
                elapsed += bench_now() - start;
                done += n;
                if (done % (BATCH * 64) == 0)
                        bench_progress(step, done, entries);
        }
        bench_progress(step, 1, 1);
        return (double)entries * 1e9 / (double)elapsed;
}

static size_t lookup_ours(const uint8_t *query, size_t len)
{
        static uint8_t reply[REPLY_MAX];
        size_t reply_len;
        return client_lookup(cache, query, len, reply, &reply_len, NULL) == SARDINE_HIT ? reply_len : 0;
}

static size_t lookup_theirs(const uint8_t *query, size_t len)
{
        const uint8_t *reply;
        return peer.lookup(query, len, &reply);
}

/* Mean of random lookups, in ns. The same for both; the queries are made outside the clock. */
static double lookup_ns(size_t (*lookup)(const uint8_t *, size_t), double *hits, const char *step)
{
        static uint8_t query[BATCH][WORKLOAD_QUERY_MAX];
        static size_t len[BATCH];
        uint64_t elapsed = 0, found = 0, done = 0;
        for (; done < LOOKUPS; done += BATCH) {
                for (unsigned k = 0; k < BATCH; k++)
                        len[k] = workload_query(seed, fill_random(seed, done + k, entries), query[k]);
                uint64_t start = bench_now();
                for (unsigned k = 0; k < BATCH; k++)
                        found += lookup(query[k], len[k]) != 0;
                elapsed += bench_now() - start;
                if (done % (BATCH * 64) == 0)
                        bench_progress(step, done, LOOKUPS);
        }
        bench_progress(step, 1, 1);
        *hits = (double)found / (double)done;
        return (double)elapsed / (double)done;
}

/* As lookup_ns(), in batches. */
static double batch_ns(void)
{
        static uint8_t query[BATCH][WORKLOAD_QUERY_MAX], reply[GROUP][WORKLOAD_UDP_SIZE];
        static size_t len[BATCH];
        uint64_t elapsed = 0, done = 0;
        for (; done < LOOKUPS; done += BATCH) {
                for (unsigned k = 0; k < BATCH; k++)
                        len[k] = workload_query(seed, fill_random(seed, done + k, entries), query[k]);
                uint64_t start = bench_now();
                for (unsigned k = 0; k < BATCH; k += GROUP) {
                        struct sardine_query q[GROUP] = {{0}};
                        struct sardine_answer a[GROUP] = {{0}};
                        int outcome[GROUP];
                        for (unsigned i = 0; i < GROUP; i++) {
                                q[i].sz = sizeof *q;
                                q[i].packet = query[k + i];
                                q[i].len = len[k + i];
                                a[i].sz = sizeof *a;
                                a[i].buf = reply[i];
                                a[i].cap = sizeof *reply;
                        }
                        sardine_lookup_batch(cache, GROUP, q, a, outcome);
                }
                elapsed += bench_now() - start;
        }
        return (double)elapsed / (double)done;
}

/* Both must answer the same. */
static void compare_replies(void)
{
        static uint8_t query[WORKLOAD_QUERY_MAX], ours[REPLY_MAX];
        for (uint64_t k = 0; k < 10000; k++) {
                size_t len = workload_query(seed, fill_random(seed, ~k, entries), query), our_len;
                const uint8_t *theirs;
                size_t their_len = peer.lookup(query, len, &theirs);
                if (client_lookup(cache, query, len, ours, &our_len, NULL) != SARDINE_HIT)
                        bench_die("the library missed");
                if (their_len && (our_len != their_len || memcmp(ours, theirs, 8)))
                        bench_die("the two answer differently");
        }
}

static void peer_run(void)
{
        entries = (uint64_t)bench_option("entries");
        seed = (uint64_t)bench_option("seed");
        if (!entries)
                bench_die("entries must be at least 1");
        bool huge = bench_option("huge_pages") != 0;
        if (!huge)
                prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
        load_peer();

        /* What it frees is for its second fill. */
        mallopt(M_TRIM_THRESHOLD, INT_MAX);
        uint64_t rss = bench_rss();
        if (peer.create(entries))
                bench_die("the peer could not be made");
        double peer_fill = fill_peer("fill the peer");
        uint64_t peer_bytes = bench_rss() - rss, there = peer.entries();

        rss = bench_rss();
        struct sardine_options opt = client_options();
        opt.max_entries = entries;
        cache = client_create(&opt);
        double our_fill = fill(cache, seed, 0, entries, NULL, "fill");
        uint64_t our_bytes = bench_rss() - rss;
        compare_replies();

        double our_hits, peer_hits;
        double our_ns = lookup_ns(lookup_ours, &our_hits, "look up");
        double peer_ns = lookup_ns(lookup_theirs, &peer_hits, "look up in the peer");
        double batch = batch_ns();
        double chase = bench_chase_ns(our_bytes, huge);

        /* Once more, into memory that the process has. */
        peer.destroy();
        if (peer.create(entries))
                bench_die("the peer could not be made");
        double peer_refill = fill_peer("fill the peer again");
        const struct sardine_selector everything = {.sz = sizeof everything};
        if (sardine_expunge(cache, &everything) != (int64_t)entries)
                bench_die("not everything could be expunged");
        double our_refill = fill(cache, seed, 0, entries, NULL, "fill again");

        bench_report("entries", "1", (double)entries);
        bench_report("huge_pages", "1", huge);
        bench_report("entries_peer", "1", (double)there);
        bench_report("bytes_per_entry_rss", "byte", (double)our_bytes / (double)entries);
        bench_report("bytes_per_entry_rss_peer", "byte", (double)peer_bytes / (double)there);
        bench_report("lookup_ns_mean", "ns", our_ns);
        bench_report("lookup_ns_mean_peer", "ns", peer_ns);
        bench_report("times_faster", "1", peer_ns / our_ns);
        bench_report("lookup_batch_ns", "ns", batch);
        bench_report("times_faster_batch", "1", peer_ns / batch);
        bench_report("hit_ratio", "1", our_hits);
        bench_report("hit_ratio_peer", "1", peer_hits);
        bench_report("insert_per_s", "1/s", our_fill);
        bench_report("insert_per_s_peer", "1/s", peer_fill);
        bench_report("times_faster_fill", "1", our_fill / peer_fill);
        bench_report("insert_per_s_again", "1/s", our_refill);
        bench_report("insert_per_s_again_peer", "1/s", peer_refill);
        bench_report("times_faster_fill_again", "1", our_refill / peer_refill);
        bench_report("chase_ns", "ns", chase);
        bench_report("ratio", "1", our_ns / chase);
        peer.destroy();
        sardine_destroy(cache);
}

const struct scenario scenario_peer = {
    .name = "peer",
    .about = "the library beside another cache class (SARDINE_BENCH_PEER, see peer-class/): fill and look up",
    .options = options,
    .run = peer_run,
};
