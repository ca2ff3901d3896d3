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

enum {
        MAX_CACHES = 256,
        MAX_POOLS = 1024,
        /* A tag's value: the cache's number, then the token's bytes, all in hex. */
        TAG_ID_DIGITS = 8,
        TAG_SIZE = TAG_ID_DIGITS + 2 * sizeof(((struct sardine_token *)0)->bytes) + 1,
};

static const char TOKEN_TAG[] = "sardine";
static const char HIT_TAG[] = "sardine-hit";

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
        *(void **)&dnsdist.get_protocol = dlsym(RTLD_DEFAULT, "dnsdist_ffi_dnsquestion_get_protocol");
}

const char *sardine_dnsdist_missing(void)
{
        pthread_once(&resolved, resolve);
        return missing;
}

/* Caches. A number is never given twice, and leads to its slot. Threads find the slot without a lock. */
static struct {
        _Atomic uint32_t id;
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

/* A thread of dnsdist: says which cache it is inside of, and has room to work. Left over by a thread that
 * ended, it serves the next one that begins. */
struct worker {
        _Atomic(sardine_cache *) inside;
        atomic_bool taken;
        struct worker *next;
        struct sardine_token token;
        char tag[TAG_SIZE];
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

int sardine_dnsdist_create(const struct sardine_options *options, sardine_cache **cache, char *why,
                           size_t why_size)
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
                atomic_store(&caches[id % MAX_CACHES].id, id);
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
                sardine_destroy(cache);
        }
        pthread_mutex_unlock(&registry);
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

static char *put_hex(char *to, const uint8_t *bytes, size_t n)
{
        static const char digits[] = "0123456789abcdef";
        for (size_t i = 0; i < n; i++) {
                *to++ = digits[bytes[i] >> 4];
                *to++ = digits[bytes[i] & 15];
        }
        *to = '\0';
        return to;
}

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the text after the digits, or NULL when there are fewer. */
static const char *get_hex(const char *from, uint8_t *bytes, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                int high = hex_digit(from[0]);
                int low = high < 0 ? -1 : hex_digit(from[1]);
                if (low < 0)
                        return NULL;
                bytes[i] = (uint8_t)(high << 4 | low);
                from += 2;
        }
        return from;
}

static void send_token_along(struct worker *worker, uint32_t id, void *dq)
{
        const uint8_t number[] = {(uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id};
        char *end = put_hex(worker->tag, number, sizeof number);
        put_hex(end, worker->token.bytes, worker->token.len);
        dnsdist.set_tag(dq, TOKEN_TAG, worker->tag);
}

int sardine_dnsdist_lookup(uint32_t pool, void *dq)
{
        uint32_t id = pool < MAX_POOLS ? atomic_load_explicit(&pools[pool].cache, memory_order_acquire) : 0;
        struct worker *worker = id != 0 ? worker_of_thread() : NULL;
        sardine_cache *cache = worker != NULL ? enter(worker, id) : NULL;
        if (cache == NULL)
                return 0;

        const void *client = NULL;
        size_t client_len = 0;
        dnsdist.get_remoteaddr(dq, &client, &client_len);

        struct sardine_query query = {
            .sz = sizeof query,
            .packet = dnsdist.get_header(dq),
            .len = dnsdist.get_len(dq),
            .client = client,
            .client_len = (uint32_t)client_len,
            .transport = transport_of(dq),
            .flags = dnsdist.get_skip_cache(dq) ? SARDINE_SKIP : 0,
        };
        worker->token.len = 0;
        struct sardine_answer answer = {
            .sz = sizeof answer,
            .buf = worker->reply,
            .cap = sizeof worker->reply,
            .token = &worker->token,
        };
        int outcome = sardine_lookup(cache, &query, &answer);
        leave(worker);

        switch (outcome) {
        case SARDINE_HIT:
        case SARDINE_STALE:
                if (!dnsdist.set_size(dq, answer.len))
                        return 0;
                memcpy(dnsdist.get_header(dq), worker->reply, answer.len);
                if (atomic_load_explicit(&mark_hits, memory_order_relaxed))
                        dnsdist.set_tag(dq, HIT_TAG, "1");
                return 1;
        case SARDINE_MISS:
        case SARDINE_REFRESH: /* this client fetches the fresh answer for everybody */
                if (worker->token.len > 0)
                        send_token_along(worker, id, dq);
                return 0;
        default:
                return 0;
        }
}

void sardine_dnsdist_store(void *dr)
{
        const char *tag = dnsdist.get_tag(dr, TOKEN_TAG);
        struct worker *worker = tag != NULL && !dnsdist.get_skip_cache(dr) ? worker_of_thread() : NULL;
        if (worker == NULL)
                return;

        uint8_t number[4];
        size_t digits = strlen(tag);
        if (digits < TAG_ID_DIGITS || digits >= TAG_SIZE || digits % 2 != 0)
                return;
        struct sardine_token *token = &worker->token;
        token->len = (uint16_t)((digits - TAG_ID_DIGITS) / 2);
        const char *rest = get_hex(tag, number, sizeof number);
        if (rest == NULL || get_hex(rest, token->bytes, token->len) == NULL)
                return;

        uint32_t id =
            (uint32_t)number[0] << 24 | (uint32_t)number[1] << 16 | (uint32_t)number[2] << 8 | number[3];
        sardine_cache *cache = enter(worker, id);
        if (cache == NULL)
                return;
        struct sardine_insert_info info = {.sz = sizeof info};
        if (dnsdist.is_temp_failure_ttl_set(dr)) {
                info.failure_ttl_set = 1;
                info.failure_ttl = dnsdist.get_temp_failure_ttl(dr);
        }
        /* Refusals are counted by the cache; there is nobody here to tell. */
        sardine_insert(cache, token, dnsdist.get_header(dr), dnsdist.get_len(dr), &info, NULL);
        leave(worker);
}
