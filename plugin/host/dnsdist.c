/* SPDX-License-Identifier: MIT */
#include "host/dnsdist.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/flight.h"
#include "host/keep.h"
#include "host/message.h"
#include "host/refused.h"
#include "host/registry.h"
#include "host/top.h"
#include "host/watch.h"

enum {
        MAX_CACHES = 256,
        MAX_POOLS = 1024,
        /* What dnsdist has room for in a response over UDP. */
        UDP_RESPONSE_MAX = 4096,
};

static const char FLIGHT_TAG[] = "sardine";
static const char HIT_TAG[] = "sardine-hit";
static const char KEPT_TAG[] = "sardine-kept";
static const char LATE_TAG[] = "sardine-late";
static const char POOL_TAG[] = "sardine-pool";
/* Other values of FLIGHT_TAG than a flight. */
static const char PASSED_BY[] = "-";
static const char OPT_MARK = '+'; /* an OPT record follows */

/* dnsdist's FFI functions, as dnsdist-lua-ffi-interface.h of 1.7 and later declares them. */
static struct {
        void *(*get_header)(const void *dq);
        uint16_t (*get_len)(const void *dq);
        bool (*set_size)(void *dq, size_t size);
        void (*get_remoteaddr)(const void *dq, const void **addr, size_t *size);
        bool (*get_tcp)(const void *dq);
        int (*get_protocol)(const void *dq); /* from 1.8 on; NULL before */
        bool (*get_skip_cache)(const void *dq);
        bool (*is_temp_failure_ttl_set)(const void *dq);
        uint32_t (*get_temp_failure_ttl)(const void *dq);
        const char *(*get_tag)(const void *dq, const char *label);
        void (*set_tag)(void *dq, const char *label, const char *value);
        bool (*set_restartable)(void *dq); /* from 1.8 on; NULL before */
        /* For policies; NULL: none. */
        void (*get_localaddr)(const void *dq, const void **addr, size_t *size);
        uint16_t (*get_local_port)(const void *dq);
        void (*set_use_ecs)(void *dq, bool use);
        void (*set_ecs_prefix_length)(void *dq, uint16_t length);
} dnsdist;

static const char *missing;
static pthread_once_t resolved = PTHREAD_ONCE_INIT;

static void *find(const char *name)
{
        void *symbol = dlsym(RTLD_DEFAULT, name);
        if (symbol == NULL && missing == NULL)
                missing = name;
        return symbol;
}

static void resolve(void)
{
#define FIND(name) *(void **)&dnsdist.name = find("dnsdist_ffi_dnsquestion_" #name)
        FIND(get_header);
        FIND(get_len);
        FIND(set_size);
        FIND(get_remoteaddr);
        FIND(get_tcp);
        FIND(get_skip_cache);
        FIND(is_temp_failure_ttl_set);
        FIND(get_temp_failure_ttl);
        FIND(get_tag);
        FIND(set_tag);
#undef FIND
#define FIND(name) *(void **)&dnsdist.name = dlsym(RTLD_DEFAULT, "dnsdist_ffi_dnsquestion_" #name)
        FIND(get_localaddr);
        FIND(get_local_port);
        FIND(set_use_ecs);
        FIND(set_ecs_prefix_length);
#undef FIND
        *(void **)&dnsdist.get_protocol = dlsym(RTLD_DEFAULT, "dnsdist_ffi_dnsquestion_get_protocol");
        *(void **)&dnsdist.set_restartable = dlsym(RTLD_DEFAULT, "dnsdist_ffi_dnsquestion_set_restartable");
}

const char *sardine_dnsdist_missing(void)
{
        pthread_once(&resolved, resolve);
        return missing;
}

/* A flag of a cache, beside those of enum sardine_dnsdist_flag: responses may have to be replaced. */
enum {
        TAKE_QUERY = 1 << 16,
        HAS_POLICY = 1 << 17,
};

/* Caches. A number is never given twice, and leads to its slot. Threads find the slot without a lock. */
static struct {
        _Atomic uint32_t id;
        _Atomic uint32_t flags; /* enum sardine_dnsdist_flag, and whether queries are taken along */
        _Atomic uint32_t udp_size;
        _Atomic uint32_t watch; /* seconds between looks at the policy's file; 0: none */
        _Atomic(sardine_cache *) cache;
} caches[MAX_CACHES];

static struct {
        _Atomic uint32_t cache;
        char *name;
} pools[MAX_POOLS] = {{.name = (char[]){""}}};

static uint32_t n_caches;    /* numbers given so far */
static uint32_t n_pools = 1; /* the default pool is number 0 */
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool mark_hits;
static atomic_bool mark_kept;
static atomic_bool catch_timeouts;
static atomic_int no_server; /* enum sardine_dnsdist_no_server */

/* A thread of dnsdist: says which cache it is inside of, and has room to work. Left over by a thread that
 * ended, it serves the next one that begins. */
struct worker {
        _Atomic(sardine_cache *) inside;
        atomic_bool taken;
        struct worker *next;
        struct flight flight;
        struct top top;
        struct refused refused;
        char tag[FLIGHT_TEXT_SIZE];
        uint8_t reply[65535];
};

static _Atomic(struct worker *) workers;
static _Thread_local struct worker *this_worker;
static pthread_key_t worker_key;
static pthread_once_t worker_key_made = PTHREAD_ONCE_INIT;

static void worker_ends(void *worker)
{
        atomic_store(&((struct worker *)worker)->taken, false);
}

static void make_worker_key(void)
{
        /* Without a key, a thread that ends leaves its worker taken: a leak, nothing worse. */
        if (pthread_key_create(&worker_key, worker_ends) != 0)
                worker_key = (pthread_key_t)-1;
}

static struct worker *worker_of_thread(void)
{
        struct worker *worker = this_worker;
        if (worker != NULL)
                return worker;

        pthread_once(&worker_key_made, make_worker_key);
        for (worker = atomic_load(&workers); worker != NULL; worker = worker->next) {
                bool taken = false;
                if (atomic_compare_exchange_strong(&worker->taken, &taken, true))
                        break;
        }
        if (worker == NULL) {
                worker = calloc(1, sizeof *worker);
                if (worker == NULL)
                        return NULL;
                atomic_init(&worker->taken, true);
                top_init(&worker->top);
                refused_init(&worker->refused);
                worker->next = atomic_load(&workers);
                while (!atomic_compare_exchange_weak(&workers, &worker->next, worker))
                        ;
        }
        if (worker_key != (pthread_key_t)-1)
                pthread_setspecific(worker_key, worker);
        this_worker = worker;
        return worker;
}

/* Enter a cache, so that it is not freed before leave(). NULL when there is no such cache (any more). */
static sardine_cache *enter(struct worker *worker, uint32_t id)
{
        sardine_cache *cache = atomic_load_explicit(&caches[id % MAX_CACHES].cache, memory_order_acquire);
        if (cache == NULL)
                return NULL;
        /* Say it first, then look again: whoever frees the cache empties the slot first, then looks who is
         * inside. */
        atomic_store(&worker->inside, cache);
        if (atomic_load(&caches[id % MAX_CACHES].cache) == cache &&
            atomic_load(&caches[id % MAX_CACHES].id) == id)
                return cache;
        atomic_store_explicit(&worker->inside, NULL, memory_order_release);
        return NULL;
}

static void leave(struct worker *worker)
{
        atomic_store_explicit(&worker->inside, NULL, memory_order_release);
}

sardine_cache *registry_enter(uint32_t id)
{
        struct worker *worker = worker_of_thread();
        return worker != NULL ? enter(worker, id) : NULL;
}

void registry_leave(void)
{
        leave(this_worker);
}

bool registry_gone(uint32_t id)
{
        return atomic_load(&caches[id % MAX_CACHES].cache) == NULL ||
               atomic_load(&caches[id % MAX_CACHES].id) != id;
}

void registry_each(void (*fn)(void *ctx, uint32_t id), void *ctx)
{
        for (uint32_t i = 0; i < MAX_CACHES; i++)
                if (atomic_load(&caches[i].cache) != NULL)
                        fn(ctx, atomic_load(&caches[i].id));
}

void registry_each_thread(void (*fn)(void *ctx, struct top *top, struct refused *refused), void *ctx)
{
        for (struct worker *worker = atomic_load(&workers); worker != NULL; worker = worker->next)
                fn(ctx, &worker->top, &worker->refused);
}

/* The library explains a bad option by logging it during sardine_create(). */
static _Thread_local struct {
        char *text;
        size_t size;
} explanation;

static void log_line(void *ctx, int level, const char *text)
{
        (void)ctx;
        if (explanation.size > 0)
                snprintf(explanation.text, explanation.size, "%s", text);
        else if (level <= SARDINE_LOG_WARNING)
                fprintf(stderr, "sardine: %s\n", text);
}

int sardine_dnsdist_create(const struct sardine_options *options, uint32_t flags, sardine_cache **cache,
                           char *why, size_t why_size)
{
        struct sardine_options opt;
        if (options == NULL || cache == NULL || options->sz != sizeof opt || (why == NULL && why_size > 0))
                return -EINVAL;
        opt = *options;
        opt.log = log_line;
        opt.log_ctx = NULL;

        pthread_mutex_lock(&registry);
        uint32_t id = n_caches;
        for (uint32_t tried = 0; tried < MAX_CACHES; tried++) {
                id = id % INT32_MAX + 1;
                if (atomic_load(&caches[id % MAX_CACHES].cache) == NULL)
                        break;
        }
        int err = -ENOSPC;
        if (atomic_load(&caches[id % MAX_CACHES].cache) == NULL) {
                if (why_size > 0)
                        why[0] = '\0';
                explanation.text = why;
                explanation.size = why_size;
                err = sardine_create(&opt, cache);
                explanation.size = 0;
        }
        if (err == 0) {
                n_caches = id;
                if (opt.stale_window > 0)
                        flags |= TAKE_QUERY;
                atomic_store(&caches[id % MAX_CACHES].id, id);
                atomic_store(&caches[id % MAX_CACHES].flags, flags);
                atomic_store(&caches[id % MAX_CACHES].udp_size, opt.udp_payload_size);
                atomic_store(&caches[id % MAX_CACHES].cache, *cache);
        }
        pthread_mutex_unlock(&registry);
        return err == 0 ? (int)id : err;
}

void sardine_dnsdist_destroy(uint32_t id)
{
        pthread_mutex_lock(&registry);
        sardine_cache *cache = NULL;
        if (atomic_load(&caches[id % MAX_CACHES].id) == id) {
                for (uint32_t i = 0; i < n_pools; i++)
                        atomic_compare_exchange_strong(&pools[i].cache, &(uint32_t){id}, 0);
                cache = atomic_exchange(&caches[id % MAX_CACHES].cache, NULL);
        }
        if (cache != NULL) {
                for (struct worker *worker = atomic_load(&workers); worker != NULL; worker = worker->next)
                        while (atomic_load(&worker->inside) == cache)
                                sched_yield();
                sardine_dnsdist_keep_no_more(cache);
                sardine_destroy(cache);
        }
        pthread_mutex_unlock(&registry);
}

/* Look at the files of policies that are watched. */
static void *watch_policies(void *unused)
{
        for (uint32_t seconds = 1;; seconds++) {
                nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
                struct worker *worker = worker_of_thread();
                for (uint32_t i = 0; worker != NULL && i < MAX_CACHES; i++) {
                        uint32_t watch = atomic_load(&caches[i].watch);
                        sardine_cache *cache = watch != 0 && seconds % watch == 0
                                                   ? enter(worker, atomic_load(&caches[i].id))
                                                   : NULL;
                        char why[512], line[600];
                        if (cache != NULL && sardine_policy_changed(cache) == 1) {
                                int err = sardine_policy_reload(cache, why, sizeof why);
                                snprintf(line, sizeof line, "policy reloaded%s%s", err ? " in vain: " : "",
                                         err ? why : "");
                                log_line(NULL, SARDINE_LOG_WARNING, line);
                        }
                        leave(worker);
                }
        }
        return unused;
}

int sardine_dnsdist_policy(uint32_t id, const char *path, uint32_t flags, uint32_t watch, char *why,
                           size_t why_size)
{
        static bool watching; /* under the registry's lock */
        pthread_mutex_lock(&registry);
        sardine_cache *cache = atomic_load(&caches[id % MAX_CACHES].id) == id
                                   ? atomic_load(&caches[id % MAX_CACHES].cache)
                                   : NULL;
        int err = cache != NULL ? sardine_policy_load(cache, path, flags, why, why_size) : -EINVAL;
        if (err == 0)
                atomic_fetch_or(&caches[id % MAX_CACHES].flags, (uint32_t)HAS_POLICY);
        pthread_t thread;
        if (err == 0 && watch != 0 && !watching) {
                err = -pthread_create(&thread, NULL, watch_policies, NULL);
                watching = err == 0;
                if (watching)
                        pthread_detach(thread);
        }
        atomic_store(&caches[id % MAX_CACHES].watch, err == 0 ? watch : 0);
        pthread_mutex_unlock(&registry);
        return err;
}

int sardine_dnsdist_pool(const char *name)
{
        int result = -ENOSPC;
        pthread_mutex_lock(&registry);
        uint32_t i = 0;
        while (i < n_pools && strcmp(pools[i].name, name) != 0)
                i++;
        if (i < n_pools) {
                result = (int)i;
        } else if (i < MAX_POOLS) {
                pools[i].name = strdup(name);
                if (pools[i].name != NULL) {
                        n_pools++;
                        result = (int)i;
                } else {
                        result = -ENOMEM;
                }
        }
        pthread_mutex_unlock(&registry);
        return result;
}

void sardine_dnsdist_attach(uint32_t pool, uint32_t cache)
{
        if (pool < MAX_POOLS)
                atomic_store(&pools[pool].cache, cache);
}

void sardine_dnsdist_mark_hits(int on)
{
        atomic_store(&mark_hits, on != 0);
}

void sardine_dnsdist_mark_kept(int on)
{
        atomic_store(&mark_kept, on != 0);
}

static uint32_t transport_of(const void *dq)
{
        static const uint8_t by_protocol[] = {SARDINE_UDP, SARDINE_TCP, SARDINE_UDP /* DNSCrypt */,
                                              SARDINE_TCP, SARDINE_DOT, SARDINE_DOH,
                                              SARDINE_DOQ, SARDINE_DOH /* HTTP/3 */};
        if (dnsdist.get_protocol != NULL) {
                unsigned protocol = (unsigned)dnsdist.get_protocol(dq);
                if (protocol < sizeof by_protocol)
                        return by_protocol[protocol];
        }
        return dnsdist.get_tcp(dq) ? SARDINE_TCP : SARDINE_UDP;
}

static void make_query(struct sardine_query *query, const void *dq, const uint8_t *packet, size_t len)
{
        const void *client = NULL;
        size_t client_len = 0;
        dnsdist.get_remoteaddr(dq, &client, &client_len);
        *query = (struct sardine_query){
            .sz = sizeof *query,
            .packet = packet,
            .len = len,
            .client = client,
            .client_len = (uint32_t)client_len,
            .transport = transport_of(dq),
        };
}

static const char *tag_for_policy(void *dq, const char *name)
{
        return dnsdist.get_tag(dq, name);
}

/* What a policy may want to know of it beside. */
static void add_origin(struct sardine_query *query, uint32_t id, uint32_t pool, void *dq)
{
        if (!(atomic_load_explicit(&caches[id % MAX_CACHES].flags, memory_order_relaxed) & HAS_POLICY))
                return;
        const void *local = NULL;
        size_t local_len = 0;
        if (dnsdist.get_localaddr != NULL)
                dnsdist.get_localaddr(dq, &local, &local_len);
        query->local = local;
        query->local_len = local_len == 4 || local_len == 16 ? (uint32_t)local_len : 0;
        query->local_port = dnsdist.get_local_port != NULL ? dnsdist.get_local_port(dq) : 0;
        query->pool = pools[pool].name;
        query->host_tag = tag_for_policy;
        query->host_ctx = dq;
}

/* The policy's word on what the backend may be told of the client, for `useClientSubnet`. */
static void limit_ecs(const struct sardine_query *query, const struct sardine_answer *answer, void *dq)
{
        uint32_t limit = query->client_len == 4 ? answer->ecs_ipv4 : answer->ecs_ipv6;
        if (limit == 0 && dnsdist.set_use_ecs != NULL)
                dnsdist.set_use_ecs(dq, false);
        else if (limit != 0 && limit <= 128 && dnsdist.set_ecs_prefix_length != NULL)
                dnsdist.set_ecs_prefix_length(dq, (uint16_t)limit);
}

static struct sardine_answer room_for_answer(struct worker *worker)
{
        return (struct sardine_answer){
            .sz = sizeof(struct sardine_answer),
            .buf = worker->reply,
            .cap = sizeof worker->reply,
        };
}

/* Let the reply be dnsdist's packet. */
static bool put_reply(const struct worker *worker, void *dq, size_t len)
{
        if (!dnsdist.set_size(dq, len))
                return false;
        memcpy(dnsdist.get_header(dq), worker->reply, len);
        return true;
}

void sardine_dnsdist_choose(uint32_t pool, void *dq)
{
        char number[11];
        snprintf(number, sizeof number, "%u", (unsigned)pool);
        dnsdist.set_tag(dq, POOL_TAG, number);
}

static uint32_t chosen_pool(const void *dq)
{
        const char *number = dnsdist.get_tag(dq, POOL_TAG);
        return number != NULL ? (uint32_t)strtoul(number, NULL, 10) : 0;
}

/* For backends: the cache's, as far as dnsdist has room for it. */
static uint16_t udp_size_of(uint32_t id)
{
        uint32_t size = atomic_load_explicit(&caches[id % MAX_CACHES].udp_size, memory_order_relaxed);
        return (uint16_t)(size < UDP_RESPONSE_MAX ? size : UDP_RESPONSE_MAX);
}

/* Ask the backend with DO for a client that did not set it. The token is then one for that query. */
static void add_do(struct worker *worker, sardine_cache *cache, uint32_t id, uint32_t pool, void *dq)
{
        struct flight *flight = &worker->flight;
        uint8_t query[FLIGHT_QUERY_MAX + MESSAGE_OPT];
        struct sardine_query asked;
        memcpy(query, flight->query, flight->query_len);
        size_t len = message_add_do(query, flight->query_len, sizeof query, udp_size_of(id));
        make_query(&asked, dq, query, len);
        add_origin(&asked, id, pool, dq);
        struct sardine_token token;
        if (len == 0 || sardine_token_init(cache, &asked, &token) != 0 || !dnsdist.set_size(dq, len))
                return;
        memcpy(dnsdist.get_header(dq), query, len);
        flight->token = token;
        flight->flags |= FLIGHT_CHANGED;
}

static bool exchange_network(struct worker *worker, uint32_t id, const struct message_network *network,
                             void *dq)
{
        size_t len = dnsdist.get_len(dq);
        memcpy(worker->reply, dnsdist.get_header(dq), len);
        len = message_set_network(worker->reply, len, sizeof worker->reply, udp_size_of(id), network);
        return len > 0 && put_reply(worker, dq, len);
}

/* The policy's word on what the backend is told of the client. dnsdist can only add an option, so the one
 * that the query brings is exchanged here. If there is no room for that, or the query is too long to be taken
 * along, so that the response could not be made the client's own again, the backend is told of no network. */
static void tell_network(struct worker *worker, uint32_t id, const struct sardine_query *query,
                         const struct sardine_answer *answer, void *dq)
{
        if (!answer->ecs_set) {
                limit_ecs(query, answer, dq);
                return;
        }
        if (dnsdist.set_use_ecs != NULL)
                dnsdist.set_use_ecs(dq, false);
        struct message_network network = {.family = (uint8_t)answer->ecs_family,
                                          .prefix = (uint8_t)answer->ecs_prefix};
        memcpy(network.addr, answer->ecs_addr, sizeof network.addr);
        bool long_query = worker->flight.query_len == 0;
        if ((long_query && network.family != 0) || !exchange_network(worker, id, &network, dq)) {
                static const struct message_network none = {0};
                exchange_network(worker, id, &none, dq);
                worker->flight.token.len = 0; /* what comes is not what the policy wants to be kept */
        }
        if (!long_query)
                worker->flight.flags |= FLIGHT_CHANGED;
}

/* The query misses: note what its response will need. */
static void take_off(struct worker *worker, sardine_cache *cache, uint32_t id, uint32_t pool, bool refresh,
                     const struct sardine_query *query, const struct sardine_answer *answer, void *dq)
{
        struct flight *flight = &worker->flight;
        uint32_t flags = atomic_load_explicit(&caches[id % MAX_CACHES].flags, memory_order_relaxed);
        size_t len = dnsdist.get_len(dq);
        flight->cache = id;
        flight->flags = refresh ? FLIGHT_REFRESH : 0;
        flight->query_len = 0;
        if ((refresh || answer->ecs_set || flags & (TAKE_QUERY | SARDINE_DNSDIST_ALWAYS_DO)) &&
            len <= FLIGHT_QUERY_MAX) {
                memcpy(flight->query, dnsdist.get_header(dq), len);
                flight->query_len = (uint16_t)len;
                if ((refresh && answer->dnssec_ok) || flags & SARDINE_DNSDIST_ALWAYS_DO)
                        add_do(worker, cache, id, pool, dq);
        }
        tell_network(worker, id, query, answer, dq);
        flight_write(flight, worker->tag);
        dnsdist.set_tag(dq, FLIGHT_TAG, worker->tag);
        if (flags & SARDINE_DNSDIST_RESCUE && atomic_load_explicit(&catch_timeouts, memory_order_relaxed))
                dnsdist.set_restartable(dq);
}

/* When a reply that a rule has made has no records but an OPT, dnsdist writes that anew, without options: an
 * Extended DNS Error on a failure would be lost. Let it travel as a tag, for sardine_dnsdist_self_answered().
 */
static void save_opt(struct worker *worker, void *dq, size_t len)
{
        size_t at = message_only_opt(worker->reply, len);
        if (at == 0 || len - at > FLIGHT_QUERY_MAX)
                return;
        worker->tag[0] = OPT_MARK;
        flight_put_hex(worker->tag + 1, worker->reply + at, len - at);
        dnsdist.set_tag(dq, FLIGHT_TAG, worker->tag);
}

static void restore_opt(void *dr, const char *tag)
{
        uint8_t opt[FLIGHT_QUERY_MAX];
        size_t opt_len = strlen(tag) / 2;
        if (opt_len > sizeof opt || !flight_get_hex(&tag, opt, opt_len))
                return;
        size_t end = message_question_end(dnsdist.get_header(dr), dnsdist.get_len(dr));
        if (!dnsdist.set_size(dr, end + opt_len))
                return;
        uint8_t *message = dnsdist.get_header(dr);
        memcpy(message + end, opt, opt_len);
        message[11] = 1; /* ARCOUNT */
}

/* It passes without being looked up, but must be told from what never came here. */
static void pass_by(void *dq)
{
        if (atomic_load_explicit(&no_server, memory_order_relaxed) != SARDINE_DNSDIST_IGNORE)
                dnsdist.set_tag(dq, FLIGHT_TAG, PASSED_BY);
}

static void mark_hit(void *dq)
{
        if (atomic_load_explicit(&mark_hits, memory_order_relaxed))
                dnsdist.set_tag(dq, HIT_TAG, "1");
}

int sardine_dnsdist_lookup(uint32_t pool, void *dq)
{
        if (pool == SARDINE_DNSDIST_CHOSEN_POOL)
                pool = chosen_pool(dq);
        uint32_t id = pool < MAX_POOLS ? atomic_load_explicit(&pools[pool].cache, memory_order_acquire) : 0;
        struct worker *worker = id != 0 ? worker_of_thread() : NULL;
        sardine_cache *cache = worker != NULL ? enter(worker, id) : NULL;
        if (cache == NULL) {
                pass_by(dq);
                return 0;
        }

        struct sardine_query query;
        make_query(&query, dq, dnsdist.get_header(dq), dnsdist.get_len(dq));
        add_origin(&query, id, pool, dq);
        query.flags = dnsdist.get_skip_cache(dq) ? SARDINE_SKIP : 0;
        worker->flight.token.len = 0;
        struct sardine_answer answer = room_for_answer(worker);
        answer.token = &worker->flight.token;
        int outcome = sardine_lookup(cache, &query, &answer);
        if (watch_counts() && outcome >= 0 && outcome != SARDINE_BYPASS)
                top_count(&worker->top, id, query.packet, query.len,
                          outcome == SARDINE_HIT || outcome == SARDINE_STALE);
        bool miss = worker->flight.token.len > 0;
        if (miss) /* or the client that fetches a fresh answer for everybody */
                take_off(worker, cache, id, pool, outcome == SARDINE_REFRESH, &query, &answer, dq);
        leave(worker);

        if (!miss && (outcome == SARDINE_HIT || outcome == SARDINE_STALE) &&
            put_reply(worker, dq, answer.len)) {
                save_opt(worker, dq, answer.len);
                mark_hit(dq);
                return 1;
        }
        if (!miss)
                pass_by(dq);
        return 0;
}

/* Expired data in place of a failure. Returns whether there was any. Without a token nobody knows any more
 * whose answers the client may see. */
static bool rescue(struct worker *worker, sardine_cache *cache, unsigned rcode, void *dr)
{
        if (worker->flight.token.len == 0)
                return false;
        struct sardine_query query;
        make_query(&query, dr, worker->flight.query, worker->flight.query_len);
        query.failure = rcode;
        struct sardine_answer answer = room_for_answer(worker);
        answer.token = &worker->flight.token;
        int outcome = sardine_failed(cache, &query, &answer);
        if (outcome != SARDINE_STALE && outcome != SARDINE_HIT)
                return false;
        return put_reply(worker, dr, answer.len);
}

/* A response without records, as the client's EDNS wants it. `cache` may be NULL: then without OPT. */
static size_t empty_reply(struct worker *worker, sardine_cache *cache, const struct sardine_query *query,
                          unsigned rcode)
{
        uint8_t response[FLIGHT_QUERY_MAX];
        size_t len = message_empty_response(query->packet, query->len, rcode, response);
        struct sardine_answer answer = room_for_answer(worker);
        if (cache != NULL && sardine_render(cache, query, response, len, &answer) == SARDINE_HIT)
                return answer.len;
        memcpy(worker->reply, response, len);
        return len;
}

/* The backend was asked with DO: give the client what it asked for. What cannot be written for it, it does
 * not get: a truncated response makes it come again over TCP, anything else is a failure. */
static void write_for_client(struct worker *worker, sardine_cache *cache, void *dr)
{
        const uint8_t *response = dnsdist.get_header(dr);
        size_t len = dnsdist.get_len(dr);
        if (len <= MESSAGE_HEADER)
                return; /* a bare header has nothing that the client did not ask for */
        struct sardine_query query;
        make_query(&query, dr, worker->flight.query, worker->flight.query_len);
        struct sardine_answer answer = room_for_answer(worker);
        if (cache != NULL && sardine_render(cache, &query, response, len, &answer) == SARDINE_HIT) {
                put_reply(worker, dr, answer.len);
                return;
        }
        bool truncated = message_truncated(response);
        unsigned rcode = message_rcode(response);
        if (!truncated && (rcode == 0 || rcode == MESSAGE_NXDOMAIN))
                rcode = MESSAGE_SERVFAIL;
        len = empty_reply(worker, cache, &query, rcode);
        if (truncated)
                message_set_truncated(worker->reply);
        put_reply(worker, dr, len);
}

/* The flight that this response ends, or NULL. */
static struct worker *landing(void *dr)
{
        const char *tag = dnsdist.get_tag(dr, FLIGHT_TAG);
        struct worker *worker = tag != NULL && tag[0] != PASSED_BY[0] ? worker_of_thread() : NULL;
        return worker != NULL && flight_read(tag, &worker->flight) ? worker : NULL;
}

static void keep(struct worker *worker, sardine_cache *cache, void *dr)
{
        if (worker->flight.token.len == 0)
                return;
        struct sardine_insert_info info = {.sz = sizeof info};
        if (dnsdist.is_temp_failure_ttl_set(dr)) {
                info.failure_ttl_set = 1;
                info.failure_ttl = dnsdist.get_temp_failure_ttl(dr);
        }
        struct sardine_insert_result result = {.sz = sizeof result};
        const uint8_t *response = dnsdist.get_header(dr);
        size_t len = dnsdist.get_len(dr);
        if (sardine_insert(cache, &worker->flight.token, response, len, &info, &result) == SARDINE_REFUSED)
                refused_note(&worker->refused, worker->flight.cache, response, len, result.reason);
        if (atomic_load_explicit(&mark_kept, memory_order_relaxed))
                dnsdist.set_tag(dr, KEPT_TAG, "1");
}

void sardine_dnsdist_response(void *dr)
{
        struct worker *worker = landing(dr);
        if (worker == NULL || dnsdist.get_len(dr) < MESSAGE_HEADER)
                return;

        const struct flight *flight = &worker->flight;
        sardine_cache *cache = enter(worker, flight->cache);
        bool rescued = false;
        if (cache != NULL && !dnsdist.get_skip_cache(dr)) {
                uint32_t flags =
                    atomic_load_explicit(&caches[flight->cache % MAX_CACHES].flags, memory_order_relaxed);
                unsigned rcode = message_rcode(dnsdist.get_header(dr));
                bool failed = rcode == MESSAGE_SERVFAIL || rcode == MESSAGE_REFUSED;
                if (failed && flight->query_len > 0 &&
                    (flags & SARDINE_DNSDIST_RESCUE || flight->flags & FLIGHT_REFRESH))
                        rescued = rescue(worker, cache, rcode, dr);
                if (!rescued)
                        keep(worker, cache, dr);
        }
        if (!rescued && flight->flags & FLIGHT_CHANGED)
                write_for_client(worker, cache, dr);
        leave(worker);
}

int sardine_dnsdist_catch_timeouts(int on)
{
        if (dnsdist.set_restartable == NULL)
                return 0;
        atomic_store(&catch_timeouts, on != 0);
        return 1;
}

void sardine_dnsdist_timed_out(void *dr)
{
        struct worker *worker = landing(dr);
        if (worker == NULL || worker->flight.query_len == 0 || worker->flight.token.len == 0)
                return;
        struct sardine_query query;
        make_query(&query, dr, worker->flight.query, worker->flight.query_len);
        query.flags = SARDINE_PEEK;
        struct sardine_answer answer = room_for_answer(worker);
        answer.token = &worker->flight.token;
        sardine_cache *cache = enter(worker, worker->flight.cache);
        int outcome = cache != NULL ? sardine_failed(cache, &query, &answer) : SARDINE_MISS;
        leave(worker);
        if (outcome == SARDINE_STALE || outcome == SARDINE_HIT)
                dnsdist.set_tag(dr, LATE_TAG, "1");
}

void sardine_dnsdist_no_server(int what)
{
        atomic_store(&no_server, what);
}

int sardine_dnsdist_self_answered(void *dr)
{
        int what = atomic_load(&no_server);
        uint8_t header[MESSAGE_HEADER];
        if (dnsdist.get_len(dr) < sizeof header)
                return 0;
        const char *tag = dnsdist.get_tag(dr, FLIGHT_TAG);
        if (tag != NULL && tag[0] == OPT_MARK) {
                restore_opt(dr, tag + 1);
                return 0;
        }
        memcpy(header, dnsdist.get_header(dr), sizeof header);
        if (message_rcode(header) != MESSAGE_SERVFAIL)
                return 0;

        struct worker *worker = landing(dr);
        if (worker != NULL && worker->flight.query_len > 0) {
                sardine_cache *cache = enter(worker, worker->flight.cache);
                bool rescued =
                    cache != NULL && what != SARDINE_DNSDIST_IGNORE && rescue(worker, cache, 0, dr);
                if (rescued) {
                        mark_hit(dr);
                } else if (worker->flight.flags & FLIGHT_CHANGED && what != SARDINE_DNSDIST_DROP) {
                        struct sardine_query query;
                        make_query(&query, dr, worker->flight.query, worker->flight.query_len);
                        put_reply(worker, dr, empty_reply(worker, cache, &query, MESSAGE_SERVFAIL));
                }
                leave(worker);
                /* The flags that the client sent have been restored in what we replaced. */
                message_copy_rd_cd(dnsdist.get_header(dr), header);
                if (rescued)
                        return 0;
        }
        return what == SARDINE_DNSDIST_DROP;
}
