/* SPDX-License-Identifier: MIT
 *
 * soak: threads that look up, insert, purge, walk and count for as long as it is told to, through the public
 * functions, with a checker that knows for every question which answers may come. In rounds: each has a cache
 * of its own, with other limits. Ends with 0, or at the first thing that is wrong.
 *
 * The checker. Every answer says what it is the answer to, and its version. Versions of a question are
 * inserted in order. `begun` is the last version whose insert has begun, `done` the last that was stored,
 * `least` the least version that a lookup may still find that begins now: what was stored before, and has not
 * been purged.
 */
#include <sardine.h>

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
        NETWORKS = 64, /* answers for client networks that a tailored question has */
        GROUPS = 32,   /* suffixes that are purged as a whole */
        STRIPES = 1024,
        RECORDS = 6, /* at most, in an answer */
        QUERY_MAX = 128,
        RESPONSE_MAX = 512,
        THREADS_MAX = 64,
        INSERTS_THAT_TELL = 50000, /* how many of them may find no memory */
};

struct question {
        atomic_uint begun, done, least;
};

static struct {
        double minutes;
        unsigned long questions, threads, seed, bytes, round_seconds, quiet;
        bool full; /* no tiny caches, and a look at the process's memory */
} options = {.minutes = 10, .questions = 20000, .threads = 6, .seed = 1, .round_seconds = 10};

static struct question *questions;
static unsigned long tailored; /* questions below this come from networks, NETWORKS to a name */
static pthread_mutex_t stripes[STRIPES];
static pthread_rwlock_t no_purge = PTHREAD_RWLOCK_INITIALIZER;
static sardine_cache *cache;
static struct sardine_options limits;
static atomic_bool over;
static atomic_ullong lookups, hits, inserts, refused, purges, walks;

_Noreturn static void wrong(const char *format, ...)
{
        va_list args;
        va_start(args, format);
        fprintf(stderr, "\nsoak: ");
        vfprintf(stderr, format, args);
        fprintf(stderr, " (seed %lu)\n", options.seed);
        va_end(args);
        abort();
}

static uint64_t mix(uint64_t x)
{
        x += 0x9e3779b97f4a7c15u;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        return x ^ x >> 31;
}

static unsigned long below(uint64_t *state, unsigned long n)
{
        return (unsigned long)((unsigned __int128)mix((*state)++) * n >> 64);
}

static uint8_t *put16(uint8_t *at, unsigned value)
{
        at[0] = (uint8_t)(value >> 8);
        at[1] = (uint8_t)value;
        return at + 2;
}

static uint8_t *put32(uint8_t *at, uint32_t value)
{
        return put16(put16(at, value >> 16), value & 0xffff);
}

static unsigned long name_number(unsigned long q)
{
        return q < tailored ? q / NETWORKS : q; /* plain questions have higher numbers */
}

/* "<number>.g<group>.test": returns its length on the wire. */
static size_t make_name(unsigned long q, uint8_t *name)
{
        unsigned long number = name_number(q);
        return 1 + (size_t)sprintf((char *)name, "%c%08lx%cg%02lu%ctest", 8, number, 3, number % GROUPS, 4);
}

static size_t make_suffix(unsigned long group, uint8_t *name)
{
        return 1 + (size_t)sprintf((char *)name, "%cg%02lu%ctest", 3, group, 4);
}

/* An OPT, for tailored questions with the network. */
static uint8_t *put_opt(uint8_t *at, unsigned long q, unsigned scope)
{
        *at++ = 0;
        at = put32(put16(put16(at, 41), 1232), 0);
        if (q >= tailored)
                return put16(at, 0);
        at = put16(put16(put16(put16(at, 11), 8), 7), 1);
        *at++ = 24;
        *at++ = (uint8_t)scope;
        *at++ = 10;
        *at++ = (uint8_t)(q % NETWORKS);
        *at++ = (uint8_t)(q % 251);
        return at;
}

static size_t make_query(unsigned long q, uint8_t *out)
{
        memset(out, 0, 12);
        put16(out, (unsigned)q & 0xffff);
        out[2] = 1;
        out[5] = out[11] = 1;
        uint8_t *at = out + 12 + make_name(q, out + 12);
        at = put16(put16(at, 1), 1);
        return (size_t)(put_opt(at, q, 0) - out);
}

/* Each record's address is a hash of question and version, so that nothing else can be taken for it. The
 * first one says the version. */
static uint32_t address(unsigned long q, uint32_t version, unsigned record)
{
        return record == 0 ? version : (uint32_t)mix((uint64_t)q << 32 ^ version ^ (uint64_t)record << 56);
}

static size_t make_response(unsigned long q, uint32_t version, uint32_t ttl, uint8_t *out)
{
        make_query(q, out);
        unsigned records = 2 + (unsigned)(mix(version ^ q) % (RECORDS - 1));
        out[2] |= 0x80;
        out[7] = (uint8_t)records;
        uint8_t *at = out + 12 + make_name(q, out + 12) + 4;
        for (unsigned k = 0; k < records; k++) {
                memcpy(at, "\xc0\x0c\0\1\0\1", 6);
                at = put32(put16(put32(at + 6, ttl), 4), address(q, version, k));
        }
        return (size_t)(put_opt(at, q, 24) - out);
}

static uint32_t get32(const uint8_t *at)
{
        return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Which version is it? Everything about it must be right. */
static uint32_t version_of(unsigned long q, const uint8_t *query, const uint8_t *reply, size_t len)
{
        size_t question = 12 + strlen((const char *)query + 12) + 1 + 4;
        if (len < question + 16 || memcmp(reply, query, 2) || memcmp(reply + 12, query + 12, question - 12))
                wrong("question %lu: a reply to something else", q);
        uint32_t version = get32(reply + question + 12);
        unsigned records = 2 + (unsigned)(mix(version ^ q) % (RECORDS - 1));
        if (reply[6] || reply[7] != records || len < question + 16 * records)
                wrong("question %lu, version %u: %u records", q, version, reply[7]);
        for (unsigned k = 1; k < records; k++)
                if (get32(reply + question + 16 * k + 12) != address(q, version, k))
                        wrong("question %lu, version %u: record %u is another's", q, version, k);
        return version;
}

static void raise_to(atomic_uint *value, unsigned to)
{
        unsigned is = atomic_load(value);
        while (is < to && !atomic_compare_exchange_weak(value, &is, to))
                ;
}

static void look_up(unsigned long q, unsigned flags)
{
        uint8_t query[QUERY_MAX], reply[1232];
        struct sardine_token token;
        unsigned least = atomic_load(&questions[q].least);
        struct sardine_query in = {.sz = sizeof in, .packet = query, .flags = flags};
        struct sardine_answer out = {.sz = sizeof out, .buf = reply, .cap = sizeof reply, .token = &token};
        in.len = make_query(q, query);
        int outcome = sardine_lookup(cache, &in, &out);
        atomic_fetch_add_explicit(&lookups, 1, memory_order_relaxed);
        if (outcome == SARDINE_MISS)
                return;
        if (outcome != SARDINE_HIT && outcome != SARDINE_STALE && outcome != SARDINE_REFRESH)
                wrong("question %lu: outcome %d, reason %s", q, outcome, sardine_reason_name(out.reason));
        atomic_fetch_add_explicit(&hits, 1, memory_order_relaxed);
        uint32_t version = version_of(q, query, reply, out.len);
        unsigned begun = atomic_load(&questions[q].begun);
        if (version < least || version > begun)
                wrong("question %lu: version %u, but %u to %u are all that may be", q, version, least, begun);
}

static void insert(unsigned long q, uint32_t ttl, bool again)
{
        uint8_t query[QUERY_MAX], response[RESPONSE_MAX];
        struct sardine_token token;
        struct sardine_query in = {.sz = sizeof in, .packet = query};
        pthread_mutex_t *stripe = &stripes[name_number(q) % STRIPES];
        pthread_mutex_lock(stripe);
        struct question *question = &questions[q];
        /* The same answer again, which only moves the expiry, must not meet a purge: it would not show
         * whether it came before or after. */
        if (again)
                pthread_rwlock_rdlock(&no_purge);
        unsigned version = atomic_load(&question->done);
        if (!again || version < atomic_load(&question->least) || version == 0) {
                version = atomic_load(&question->begun) + 1;
                atomic_store(&question->begun, version);
        }
        in.len = make_query(q, query);
        if (sardine_token_init(cache, &in, &token))
                wrong("question %lu: no token", q);
        size_t len = make_response(q, version, ttl, response);
        struct sardine_insert_result result = {.sz = sizeof result};
        int outcome = sardine_insert(cache, &token, response, len, NULL, &result);
        /* Memory may be short for a moment when a reader is not given the processor. */
        bool no_memory = outcome == SARDINE_REFUSED && result.reason == SARDINE_REFUSED_NO_MEMORY;
        if (no_memory)
                atomic_fetch_add(&refused, 1);
        else if (outcome < 0 || (outcome == SARDINE_REFUSED && result.reason != SARDINE_REFUSED_PURGED))
                wrong("question %lu: insert %d, reason %s", q, outcome, sardine_reason_name(result.reason));
        atomic_fetch_add_explicit(&inserts, 1, memory_order_relaxed);
        if (outcome != SARDINE_REFUSED) {
                atomic_store(&question->done, version);
                raise_to(&question->least, version);
        }
        if (again)
                pthread_rwlock_unlock(&no_purge);
        pthread_mutex_unlock(stripe);
}

/* Questions [from, to) of a group. */
struct range {
        unsigned long from, to;
        unsigned long group; /* GROUPS: of all */
};

/* What had been stored before the call is gone after it. */
static void purge(struct range range, const struct sardine_selector *selector)
{
        unsigned *was = malloc((range.to - range.from) * sizeof *was);
        if (!was)
                wrong("no memory for the checker");
        pthread_rwlock_wrlock(&no_purge);
        for (unsigned long q = range.from; q < range.to; q++)
                was[q - range.from] = atomic_load(&questions[q].done);
        if (sardine_expunge(cache, selector) < 0)
                wrong("expunge failed");
        for (unsigned long q = range.from; q < range.to; q++)
                if (range.group == GROUPS || name_number(q) % GROUPS == range.group)
                        raise_to(&questions[q].least, was[q - range.from] + 1);
        pthread_rwlock_unlock(&no_purge);
        free(was);
        atomic_fetch_add(&purges, 1);
}

static void purge_something(uint64_t *state)
{
        uint8_t name[QUERY_MAX];
        struct sardine_selector selector = {.sz = sizeof selector, .name = name};
        unsigned long dice = below(state, 100);
        if (dice < 80) {
                unsigned long q = below(state, options.questions);
                struct range range = {q, q + 1, GROUPS};
                if (q < tailored) {
                        range.from = q / NETWORKS * NETWORKS;
                        range.to = range.from + NETWORKS;
                }
                selector.name_len = (uint32_t)make_name(q, name);
                purge(range, &selector);
        } else if (dice < 98) {
                unsigned long group = below(state, GROUPS);
                selector.name_len = (uint32_t)make_suffix(group, name);
                selector.below = 1;
                purge((struct range){0, options.questions, group}, &selector);
        } else {
                purge((struct range){0, options.questions, GROUPS}, NULL);
        }
}

static int see(void *ctx, const struct sardine_entry_view *entry)
{
        uint8_t message[RESPONSE_MAX];
        unsigned *seen = ctx;
        int len = sardine_entry_message(cache, entry, message, sizeof message);
        if (entry->qname_len != 19 || len < 12 + 19 + 4 + 32)
                wrong("the walk shows %u bytes of a name, a message of %d", entry->qname_len, len);
        return ++*seen > 50000;
}

static void check_statistics(void)
{
        struct sardine_stats s = {.sz = sizeof s};
        if (sardine_stats_get(cache, &s))
                wrong("no statistics");
        if (s.bytes > s.max_bytes)
                wrong("%llu bytes in a budget of %llu", (unsigned long long)s.bytes,
                      (unsigned long long)s.max_bytes);
        if (limits.max_entries && s.entries > limits.max_entries)
                wrong("%llu entries where %llu may be", (unsigned long long)s.entries,
                      (unsigned long long)limits.max_entries);
}

/* Names that are asked more often have lower numbers. */
static unsigned long choose(uint64_t *state)
{
        return below(state, 1 + below(state, options.questions));
}

static void *work(void *arg)
{
        uint64_t state = mix(options.seed ^ mix((uintptr_t)arg));
        /* Everything that is not a lookup or an insert looks at the whole cache: rarer in a large one. */
        unsigned long rare = options.full ? 2000000 : 4000;
        while (!atomic_load_explicit(&over, memory_order_relaxed)) {
                unsigned long dice = below(&state, rare);
                unsigned seen = 0;
                if (dice == 0) {
                        purge_something(&state);
                } else if (dice == 1) {
                        sardine_walk(cache, NULL, see, &seen);
                        atomic_fetch_add(&walks, 1);
                } else if (dice == 2) {
                        if (sardine_expunge_to(cache, below(&state, options.questions)) < 0)
                                wrong("expunge_to failed");
                } else if (dice == 3) {
                        if (sardine_purge_expired(cache, below(&state, options.questions)) < 0)
                                wrong("purge_expired failed");
                } else if (dice < 16) {
                        check_statistics();
                } else if (dice % 10 < 3) {
                        insert(choose(&state), 1 + (uint32_t)below(&state, dice % 2 ? 3 : 3000),
                               dice % 40 == 1);
                } else {
                        look_up(choose(&state), dice % 3 ? 0 : SARDINE_ALLOW_STALE);
                }
        }
        return NULL;
}

static double now(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double resident_mb(void)
{
        unsigned long long pages = 0;
        FILE *f = fopen("/proc/self/statm", "r");
        if (!f || fscanf(f, "%*s %llu", &pages) != 1)
                wrong("cannot read /proc/self/statm");
        fclose(f);
        return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576;
}

static void progress(double start, unsigned round, bool last)
{
        static double said;
        bool terminal = isatty(STDERR_FILENO);
        double t = now();
        if (!last && t - said < (terminal ? 1 : 30))
                return;
        said = t;
        struct sardine_stats s = {.sz = sizeof s};
        if (cache)
                sardine_stats_get(cache, &s);
        fprintf(
            stderr,
            "%s%5.1f min, round %u: %.1f M lookups (%.0f %% hits), %.1f M inserts, %llu purges, %llu walks, "
            "%llu entries, %.0f MB resident%s",
            terminal ? "\r\033[K" : "", (t - start) / 60, round, (double)atomic_load(&lookups) / 1e6,
            100.0 * (double)atomic_load(&hits) / (1.0 + (double)atomic_load(&lookups)),
            (double)atomic_load(&inserts) / 1e6, (unsigned long long)atomic_load(&purges),
            (unsigned long long)atomic_load(&walks), (unsigned long long)s.entries, resident_mb(),
            terminal && !last ? "" : "\n");
}

static void choose_limits(uint64_t *state)
{
        static const uint32_t segments[] = {4096, 4096, 8192, 32768, 0};
        sardine_options_init(&limits, sizeof limits);
        limits.stale_window = below(state, 2) ? 2 : 0;
        limits.refresh_percent = below(state, 2) ? 20 : 0;
        limits.rotate = 0;
        limits.max_networks = below(state, 2) ? 4096 : 16;
        if (options.full) {
                limits.max_bytes = options.bytes;
                return;
        }
        limits.segment_size = segments[below(state, sizeof segments / sizeof *segments)];
        if (below(state, 2))
                limits.max_entries = 100 + below(state, options.questions);
        limits.max_bytes = (1 << 20) + below(state, options.questions * 160);
}

static void run_round(uint64_t *state, unsigned round, double start, double end)
{
        pthread_t threads[THREADS_MAX];
        choose_limits(state);
        for (unsigned long q = 0; q < options.questions; q++)
                atomic_store(&questions[q].least, atomic_load(&questions[q].begun) + 1);
        int err = sardine_create(&limits, &cache);
        if (err)
                wrong("sardine_create: %s", sardine_strerror(err));
        atomic_store(&over, false);
        for (uintptr_t t = 0; t < options.threads; t++)
                if (pthread_create(&threads[t], NULL, work, (void *)(round * THREADS_MAX + t)))
                        wrong("cannot start %lu threads", options.threads);
        while (now() < end) {
                nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
                progress(start, round, false);
        }
        atomic_store(&over, true);
        for (unsigned t = 0; t < options.threads; t++)
                pthread_join(threads[t], NULL);
        check_statistics();
        struct sardine_stats s = {.sz = sizeof s};
        sardine_expunge(cache, NULL);
        sardine_stats_get(cache, &s);
        if (s.entries)
                wrong("%llu entries after everything was expunged", (unsigned long long)s.entries);
        sardine_destroy(cache);
        cache = NULL;
}

static void parse(int argc, char **argv)
{
        for (int i = 1; i < argc; i++) {
                char *value = i + 1 < argc ? argv[i + 1] : NULL;
                if (!strcmp(argv[i], "--full")) {
                        options.full = true;
                        continue;
                }
                unsigned long number = value ? strtoul(value, NULL, 10) : 0;
                if (value && !strcmp(argv[i], "--minutes"))
                        options.minutes = strtod(value, NULL);
                else if (value && !strcmp(argv[i], "--questions"))
                        options.questions = number;
                else if (value && !strcmp(argv[i], "--threads"))
                        options.threads = number;
                else if (value && !strcmp(argv[i], "--seed"))
                        options.seed = number;
                else if (value && !strcmp(argv[i], "--bytes"))
                        options.bytes = number;
                else if (value && !strcmp(argv[i], "--round"))
                        options.round_seconds = number;
                else {
                        fprintf(stderr, "usage: soak [--minutes N] [--questions N] [--threads N] [--seed N]\n"
                                        "            [--round SECONDS] [--full [--bytes N]]\n");
                        exit(2);
                }
                i++;
        }
        if (options.questions < 1000 || options.threads < 1 || options.threads > THREADS_MAX ||
            options.minutes <= 0 || options.round_seconds < 1 || (options.full && options.bytes < 1 << 20)) {
                fprintf(stderr,
                        "soak: at least 1000 questions, 1 to %d threads, some time, --bytes with --full\n",
                        THREADS_MAX);
                exit(2);
        }
}

int main(int argc, char **argv)
{
        parse(argc, argv);
        questions = calloc(options.questions, sizeof *questions);
        if (!questions)
                wrong("no memory");
        tailored = options.questions / 8 / NETWORKS * NETWORKS;
        for (unsigned i = 0; i < STRIPES; i++)
                pthread_mutex_init(&stripes[i], NULL);
        uint64_t state = mix(options.seed);
        double start = now(), end = start + options.minutes * 60, settled = 0;
        unsigned round = 0;
        while (now() < end) {
                double stop = now() + (double)options.round_seconds;
                run_round(&state, ++round, start, stop < end ? stop : end);
                /* The second round has what the first one had: after that, nothing may grow. */
                double resident = resident_mb();
                if (round == 2)
                        settled = resident;
                if (options.full && round > 2 && resident > settled * 1.05 + 4)
                        wrong("%.0f MB are resident after round %u, %.0f were after round 2", resident, round,
                              settled);
        }
        progress(start, round, true);
        /* When next to nothing is done, readers that are not given the processor can make it so. */
        if (atomic_load(&inserts) >= INSERTS_THAT_TELL && atomic_load(&refused) * 100 > atomic_load(&inserts))
                wrong("%llu inserts had no memory", (unsigned long long)atomic_load(&refused));
        free(questions);
        return 0;
}
