/* SPDX-License-Identifier: MIT
 * The adapter without dnsdist: this program exports dnsdist's FFI functions itself. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/dnsdist.h"
#include "host/flight.h"

/* A packet as dnsdist has it. */
struct packet {
        uint8_t data[4096];
        size_t len, room; /* 0: all of it */
        bool skip, failure_ttl_set, tcp;
        uint32_t failure_ttl;
        char token[4096], hit[8]; /* tags */
        bool has_token, has_hit;
};

#define EXPORT __attribute__((visibility("default")))

EXPORT void *dnsdist_ffi_dnsquestion_get_header(const void *dq);
EXPORT uint16_t dnsdist_ffi_dnsquestion_get_len(const void *dq);
EXPORT bool dnsdist_ffi_dnsquestion_set_size(void *dq, size_t size);
EXPORT void dnsdist_ffi_dnsquestion_get_remoteaddr(const void *dq, const void **addr, size_t *size);
EXPORT bool dnsdist_ffi_dnsquestion_get_tcp(const void *dq);
EXPORT bool dnsdist_ffi_dnsquestion_get_skip_cache(const void *dq);
EXPORT bool dnsdist_ffi_dnsquestion_is_temp_failure_ttl_set(const void *dq);
EXPORT uint32_t dnsdist_ffi_dnsquestion_get_temp_failure_ttl(const void *dq);
EXPORT const char *dnsdist_ffi_dnsquestion_get_tag(const void *dq, const char *label);
EXPORT void dnsdist_ffi_dnsquestion_set_tag(void *dq, const char *label, const char *value);

void *dnsdist_ffi_dnsquestion_get_header(const void *dq)
{
        return ((struct packet *)dq)->data;
}

uint16_t dnsdist_ffi_dnsquestion_get_len(const void *dq)
{
        return (uint16_t)((const struct packet *)dq)->len;
}

bool dnsdist_ffi_dnsquestion_set_size(void *dq, size_t size)
{
        struct packet *p = dq;
        if (size > (p->room ? p->room : sizeof p->data))
                return false;
        p->len = size;
        return true;
}

void dnsdist_ffi_dnsquestion_get_remoteaddr(const void *dq, const void **addr, size_t *size)
{
        static const uint8_t client[] = {192, 0, 2, 53};
        (void)dq;
        *addr = client;
        *size = sizeof client;
}

bool dnsdist_ffi_dnsquestion_get_tcp(const void *dq)
{
        return ((const struct packet *)dq)->tcp;
}

bool dnsdist_ffi_dnsquestion_get_skip_cache(const void *dq)
{
        return ((const struct packet *)dq)->skip;
}

bool dnsdist_ffi_dnsquestion_is_temp_failure_ttl_set(const void *dq)
{
        return ((const struct packet *)dq)->failure_ttl_set;
}

uint32_t dnsdist_ffi_dnsquestion_get_temp_failure_ttl(const void *dq)
{
        return ((const struct packet *)dq)->failure_ttl;
}

const char *dnsdist_ffi_dnsquestion_get_tag(const void *dq, const char *label)
{
        const struct packet *p = dq;
        if (strcmp(label, "sardine") == 0)
                return p->has_token ? p->token : NULL;
        return p->has_hit ? p->hit : NULL;
}

void dnsdist_ffi_dnsquestion_set_tag(void *dq, const char *label, const char *value)
{
        struct packet *p = dq;
        bool token = strcmp(label, "sardine") == 0;
        assert_in_range(strlen(value), 1, token ? sizeof p->token - 1 : sizeof p->hit - 1);
        strcpy(token ? p->token : p->hit, value);
        *(token ? &p->has_token : &p->has_hit) = true;
}

/* A query for <number>.example A. */
static void set_query(struct packet *p, unsigned number)
{
        static const uint8_t header[] = {0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0};
        static const uint8_t rest[] = "\7example\0\0\1\0\1";
        char label[12];
        int n = snprintf(label, sizeof label, "n%u", number);
        memset(p, 0, sizeof *p);
        memcpy(p->data, header, sizeof header);
        p->data[12] = (uint8_t)n;
        memcpy(p->data + 13, label, (size_t)n);
        memcpy(p->data + 13 + n, rest, sizeof rest - 1);
        p->len = 13 + (size_t)n + sizeof rest - 1;
}

/* The query becomes its response; the tags stay, as in dnsdist. */
static void set_response(struct packet *p, uint8_t rcode)
{
        static const uint8_t answer[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 0x2c, 0, 4, 192, 0, 2, 1};
        p->data[2] |= 0x80;
        p->data[3] = (uint8_t)(0x80 | rcode);
        if (rcode == 0) {
                p->data[7] = 1;
                memcpy(p->data + p->len, answer, sizeof answer);
                p->len += sizeof answer;
        }
}

static uint32_t new_cache(sardine_cache **cache)
{
        struct sardine_options opt;
        sardine_options_init(&opt, sizeof opt);
        opt.max_entries = 1000;
        int id = sardine_dnsdist_create(&opt, 0, cache, NULL, 0);
        assert_true(id > 0);
        return (uint32_t)id;
}

static void fill(uint32_t pool, unsigned number)
{
        struct packet p;
        set_query(&p, number);
        assert_int_equal(sardine_dnsdist_lookup(pool, &p), 0);
        assert_true(p.has_token);
        set_response(&p, 0);
        sardine_dnsdist_response(&p);
}

static bool is_hit(uint32_t pool, unsigned number)
{
        struct packet p;
        set_query(&p, number);
        return sardine_dnsdist_lookup(pool, &p) == 1;
}

static void test_nothing_is_missing(void **state)
{
        (void)state;
        assert_null(sardine_dnsdist_missing());
}

static void test_miss_store_hit(void **state)
{
        (void)state;
        sardine_cache *cache;
        uint32_t id = new_cache(&cache);
        sardine_dnsdist_attach(0, id);
        fill(0, 1);

        struct packet p, response;
        set_query(&response, 1);
        set_response(&response, 0);
        set_query(&p, 1);
        assert_int_equal(sardine_dnsdist_lookup(0, &p), 1);
        assert_int_equal(p.len, response.len);
        assert_memory_equal(p.data, response.data, p.len);
        assert_false(p.has_token);
        assert_false(p.has_hit);

        sardine_dnsdist_mark_hits(1);
        set_query(&p, 1);
        assert_int_equal(sardine_dnsdist_lookup(0, &p), 1);
        assert_true(p.has_hit);
        sardine_dnsdist_mark_hits(0);
        sardine_dnsdist_destroy(id);
}

static void test_skip_flags(void **state)
{
        (void)state;
        sardine_cache *cache;
        uint32_t id = new_cache(&cache);
        sardine_dnsdist_attach(0, id);
        fill(0, 1);

        struct packet p;
        set_query(&p, 1);
        p.skip = true;
        assert_int_equal(sardine_dnsdist_lookup(0, &p), 0);
        assert_false(p.has_token);

        set_query(&p, 2);
        assert_int_equal(sardine_dnsdist_lookup(0, &p), 0);
        set_response(&p, 0);
        p.skip = true;
        sardine_dnsdist_response(&p);
        assert_false(is_hit(0, 2));
        sardine_dnsdist_destroy(id);
}

static void test_what_is_kept_is_marked(void **state)
{
        (void)state;
        sardine_cache *cache;
        uint32_t id = new_cache(&cache);
        sardine_dnsdist_attach(0, id);
        for (unsigned number = 1; number <= 3; number++) {
                struct packet p;
                sardine_dnsdist_mark_kept(number > 1);
                set_query(&p, number);
                assert_int_equal(sardine_dnsdist_lookup(0, &p), 0);
                set_response(&p, 0);
                p.skip = number == 3;
                sardine_dnsdist_response(&p);
                assert_int_equal(p.has_hit, number == 2); /* the tag that is not a token */
        }
        sardine_dnsdist_mark_kept(0);
        sardine_dnsdist_destroy(id);
}

static void test_failure_ttl(void **state)
{
        (void)state;
        sardine_cache *cache;
        uint32_t id = new_cache(&cache);
        sardine_dnsdist_attach(0, id);
        for (unsigned number = 1; number <= 2; number++) {
                struct packet p;
                set_query(&p, number);
                assert_int_equal(sardine_dnsdist_lookup(0, &p), 0);
                set_response(&p, 2);
                p.failure_ttl_set = number == 2; /* to 0: not kept */
                sardine_dnsdist_response(&p);
                assert_int_equal(is_hit(0, number), number == 1);
        }
        sardine_dnsdist_destroy(id);
}

static void test_pools(void **state)
{
        (void)state;
        sardine_cache *one, *two;
        uint32_t id1 = new_cache(&one), id2 = new_cache(&two);
        assert_int_equal(sardine_dnsdist_pool(""), 0);
        int pool = sardine_dnsdist_pool("test pool");
        assert_true(pool > 0);
        assert_int_equal(sardine_dnsdist_pool("test pool"), pool);

        sardine_dnsdist_attach(0, id1);
        fill(0, 1);
        assert_false(is_hit((uint32_t)pool, 1)); /* no cache there */
        sardine_dnsdist_attach((uint32_t)pool, id2);
        assert_false(is_hit((uint32_t)pool, 1)); /* another one */
        sardine_dnsdist_attach((uint32_t)pool, id1);
        assert_true(is_hit((uint32_t)pool, 1));
        sardine_dnsdist_destroy(id1);
        assert_false(is_hit((uint32_t)pool, 1));
        assert_false(is_hit(0, 1));
        sardine_dnsdist_destroy(id2);
        sardine_dnsdist_destroy(id2);
        sardine_dnsdist_attach(100000, id1); /* no such pool: nothing happens */
        assert_false(is_hit(100000, 1));
}

static void test_tags_that_are_not_ours(void **state)
{
        (void)state;
        static const char *const tags[] = {
            "",
            "-",
            "0",
            "00000001",
            "zzzzzzzzzzzzzz",
            "00000000000000", /* no cache */
            "ffffffff000000",
            "0000000100000",
            "00000001000000", /* no token */
            "000000010000ff", /* a token that is not there */
            "00000001000001zz",
            "000000010000010g",
            "0000000100000101",
            "é",
        };
        sardine_cache *cache;
        uint32_t id = new_cache(&cache);
        sardine_dnsdist_attach(0, id);
        for (size_t i = 0; i < sizeof tags / sizeof *tags + 2; i++) {
                struct packet p;
                set_query(&p, 1);
                set_response(&p, 0);
                p.has_token = true;
                if (i < sizeof tags / sizeof *tags)
                        strcpy(p.token, tags[i]);
                else /* the longest that a tag of ours could be, and longer */
                        memset(p.token, '0', i % 2 == 0 ? FLIGHT_TEXT_SIZE - 1 : FLIGHT_TEXT_SIZE);
                sardine_dnsdist_response(&p);
        }
        struct sardine_stats stats = {.sz = sizeof stats};
        sardine_stats_get(cache, &stats);
        assert_int_equal(stats.entries, 0);
        sardine_dnsdist_destroy(id);
}

static void test_answers_for_a_cache_that_is_gone(void **state)
{
        (void)state;
        sardine_cache *cache;
        uint32_t id = new_cache(&cache);
        struct packet p;
        sardine_dnsdist_attach(0, id);
        set_query(&p, 1);
        assert_int_equal(sardine_dnsdist_lookup(0, &p), 0);
        sardine_dnsdist_destroy(id);
        id = new_cache(&cache);
        sardine_dnsdist_attach(0, id);
        set_response(&p, 0);
        sardine_dnsdist_response(&p);
        assert_false(is_hit(0, 1));
        sardine_dnsdist_destroy(id);
}

/* The client had no OPT, so it must not get the one that its query was sent with. */
static void b55_do_added_for_a_cache_that_is_gone(void **state)
{
        (void)state;
        struct sardine_options opt;
        sardine_options_init(&opt, sizeof opt);
        sardine_cache *cache;
        int id = sardine_dnsdist_create(&opt, SARDINE_DNSDIST_ALWAYS_DO, &cache, NULL, 0);
        assert_true(id > 0);
        sardine_dnsdist_attach(0, (uint32_t)id);
        struct packet p, asked;
        set_query(&p, 1);
        asked = p;
        assert_int_equal(sardine_dnsdist_lookup(0, &p), 0);
        assert_int_equal(p.len, asked.len + 11);
        assert_int_equal(p.data[11], 1);
        sardine_dnsdist_destroy((uint32_t)id);
        p.data[2] |= 0x80;
        sardine_dnsdist_response(&p);
        assert_int_equal(p.len, asked.len);
        assert_int_equal(p.data[3] & 15, 2); /* SERVFAIL */
        assert_memory_equal(p.data + 4, asked.data + 4, asked.len - 4);
}

static void test_limits(void **state)
{
        (void)state;
        enum { MORE = 2000 };
        int err = 0;
        char name[16];
        for (int i = 0; i < MORE && err >= 0; i++) {
                snprintf(name, sizeof name, "p%d", i);
                err = sardine_dnsdist_pool(name);
        }
        assert_int_equal(err, -ENOSPC);
        assert_int_equal(sardine_dnsdist_pool("p0"), sardine_dnsdist_pool("p0"));

        struct sardine_options opt;
        sardine_options_init(&opt, sizeof opt);
        opt.max_entries = 1;
        int ids[MORE];
        int n = 0;
        sardine_cache *cache;
        while (n < MORE && (err = sardine_dnsdist_create(&opt, 0, &cache, NULL, 0)) > 0)
                ids[n++] = err;
        assert_int_equal(err, -ENOSPC);
        assert_true(n >= 100);
        while (n > 0)
                sardine_dnsdist_destroy((uint32_t)ids[--n]);
        sardine_dnsdist_destroy(new_cache(&cache));
}

static void test_bad_option_is_explained(void **state)
{
        (void)state;
        struct sardine_options opt;
        sardine_cache *cache;
        char why[256];
        sardine_options_init(&opt, sizeof opt);
        opt.max_entry_size = 100;
        assert_int_equal(sardine_dnsdist_create(&opt, 0, &cache, why, sizeof why), SARDINE_ERR_OPTION);
        assert_non_null(strstr(why, "max_entry_size"));
        assert_int_equal(sardine_dnsdist_create(NULL, 0, &cache, why, sizeof why), -EINVAL);
        assert_int_equal(sardine_dnsdist_create(&opt, 0, NULL, why, sizeof why), -EINVAL);
}

static uint64_t clock_ms;

static uint64_t the_clock(void *ctx)
{
        (void)ctx;
        return clock_ms;
}

static void set_policy(int id, const char *policy)
{
        char path[] = "/tmp/sardine-adapter-XXXXXX", why[512];
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, policy, strlen(policy)), strlen(policy));
        assert_int_equal(sardine_dnsdist_policy((uint32_t)id, path, 0, 0, why, sizeof why), 0);
        close(fd);
        unlink(path);
}

/* A time-out of that query; is there expired data for it? */
static bool is_late(uint32_t pool, unsigned number)
{
        struct packet p;
        set_query(&p, number);
        assert_int_equal(sardine_dnsdist_lookup(pool, &p), 0);
        assert_true(p.has_token);
        sardine_dnsdist_timed_out(&p);
        return p.has_hit; /* the one other tag that the packet has room for */
}

/* What the policy put into the key still holds when nobody has answered; and looking is not yet failing. */
static void b37_a_time_out_finds_the_tenants_expired_data(void **state)
{
        (void)state;
        if (getenv("SARDINE_POLICY_ENGINE") == NULL)
                skip(); /* built without policies */
        struct sardine_options opt;
        sardine_options_init(&opt, sizeof opt);
        opt.stale_window = 3600;
        opt.clock = the_clock;
        sardine_cache *cache;
        int id = sardine_dnsdist_create(&opt, SARDINE_DNSDIST_RESCUE, &cache, NULL, 0);
        assert_true(id > 0);
        set_policy(id, "return { key = function(q) return q.pool end }");

        int tenant = sardine_dnsdist_pool("tenant");
        assert_true(tenant > 0);
        sardine_dnsdist_attach(0, (uint32_t)id);
        sardine_dnsdist_attach((uint32_t)tenant, (uint32_t)id);
        fill((uint32_t)tenant, 1);
        fill(0, 2);
        clock_ms += 400 * 1000;
        assert_true(is_late((uint32_t)tenant, 1));
        assert_false(is_late((uint32_t)tenant, 2)); /* somebody else's */
        assert_true(is_late(0, 2));
        struct sardine_stats stats = {.sz = sizeof stats};
        sardine_stats_get(cache, &stats);
        assert_int_equal(stats.rescued, 0);
        assert_int_equal(stats.stale, 0);
        assert_false(is_hit((uint32_t)tenant, 1)); /* there is no back-off */
        sardine_dnsdist_destroy((uint32_t)id);
}

static sardine_cache *afar;

/* Ask for another name each time, as a client at 203.0.113.77/32 whose query is padded to this length, with
 * room for so many bytes more. Returns whether what comes is kept; *told: whether the backend learns the
 * policy's network. It must never learn the client's, and the client never sees another than its own. */
static bool ask_from_afar(size_t len, size_t room, bool *told)
{
        static unsigned number;
        static const uint8_t opt[] = {0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0}, ecs[] = {0, 8, 0, 8, 0, 1, 32, 0},
                             client[] = {203, 0, 113, 77},
                             wanted[] = {0, 8, 0, 10, 0, 2, 48, 0, 0x20, 1, 0xd, 0xb8, 0, 5};
        struct packet p;
        set_query(&p, 100 + number++);
        size_t at = p.len;
        p.data[11] = 1; /* ARCOUNT */
        memcpy(p.data + at, opt, sizeof opt);
        memcpy(p.data + at + sizeof opt, ecs, sizeof ecs);
        memcpy(p.data + at + sizeof opt + sizeof ecs, client, sizeof client);
        size_t padding = at + sizeof opt + sizeof ecs + sizeof client, rest = len - padding - 4;
        p.data[padding + 1] = 12;
        p.data[padding + 2] = (uint8_t)(rest >> 8);
        p.data[padding + 3] = (uint8_t)rest;
        size_t options = len - at - sizeof opt;
        p.data[at + 9] = (uint8_t)(options >> 8);
        p.data[at + 10] = (uint8_t)options;
        p.len = len;
        p.room = len + room;
        assert_int_equal(sardine_dnsdist_lookup(0, &p), 0);
        assert_null(memmem(p.data, p.len, client, sizeof client));
        *told = memmem(p.data, p.len, wanted, sizeof wanted) != NULL;

        /* The backend repeats what it was told. */
        static const uint8_t answer[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 0x2c, 0, 4, 192, 0, 2, 1};
        memmove(p.data + at + sizeof answer, p.data + at, p.len - at);
        memcpy(p.data + at, answer, sizeof answer);
        p.len += sizeof answer;
        p.room = 0;
        p.data[2] |= 0x80;
        p.data[3] |= 0x80;
        p.data[7] = 1;
        struct sardine_stats before = {.sz = sizeof before}, after = {.sz = sizeof after};
        sardine_stats_get(afar, &before);
        sardine_dnsdist_response(&p);
        sardine_stats_get(afar, &after);
        assert_null(memmem(p.data, p.len, wanted + 8, 6));
        return after.stored > before.stored;
}

static void what_cannot_be_exchanged_is_not_told(void **state)
{
        (void)state;
        if (getenv("SARDINE_POLICY_ENGINE") == NULL)
                skip(); /* built without policies */
        uint32_t id = new_cache(&afar);
        sardine_dnsdist_attach(0, id);
        set_policy((int)id, "return { key = function(q) return {ecs = '2001:db8:5::/48'} end }");
        bool told;
        assert_true(ask_from_afar(300, 100, &told));
        assert_true(told);
        assert_false(ask_from_afar(300, 1, &told)); /* two more are needed */
        assert_false(told);
        assert_true(ask_from_afar(300, 2, &told));
        assert_true(told);
        assert_true(ask_from_afar(FLIGHT_QUERY_MAX, 100, &told));
        assert_true(told);
        assert_false(ask_from_afar(FLIGHT_QUERY_MAX + 1, 100, &told));
        assert_false(told);
        set_policy((int)id, "return { key = function(q) return {ecs = false} end }");
        assert_true(ask_from_afar(FLIGHT_QUERY_MAX + 1, 0, &told));
        assert_false(told);
        sardine_dnsdist_destroy(id);
}

/* A query of the tenant's, whose backend could not be told of the policy's network, comes to nothing. Then
 * there is no token, and without one the question would be looked up as that of a client from anywhere. */
static void b24_a_failure_without_a_token_gets_nothing_of_anothers(void **state)
{
        (void)state;
        if (getenv("SARDINE_POLICY_ENGINE") == NULL)
                skip(); /* built without policies */
        enum { FAILS, TIMES_OUT, FINDS_NO_SERVER, IS_ANSWERED, WAYS };
        struct sardine_options opt;
        sardine_options_init(&opt, sizeof opt);
        opt.stale_window = 3600;
        opt.clock = the_clock;
        sardine_cache *cache;
        int id = sardine_dnsdist_create(&opt, SARDINE_DNSDIST_RESCUE, &cache, NULL, 0);
        assert_true(id > 0);
        set_policy(id, "return { key = function(q)\n"
                       "  return {tag = q.pool, ecs = q.pool == 'tenant' and '2001:db8:5::/48' or nil}\n"
                       "end }");
        int tenant = sardine_dnsdist_pool("tenant");
        assert_true(tenant > 0);
        sardine_dnsdist_attach(0, (uint32_t)id);
        sardine_dnsdist_attach((uint32_t)tenant, (uint32_t)id);
        fill(0, 7);
        sardine_dnsdist_no_server(SARDINE_DNSDIST_SERVFAIL);
        sardine_dnsdist_mark_kept(1);
        for (int expired = 0; expired <= 1; expired++) {
                for (int way = 0; way < WAYS; way++) {
                        struct packet p;
                        set_query(&p, 7);
                        p.room = p.len; /* none for an option */
                        assert_int_equal(sardine_dnsdist_lookup((uint32_t)tenant, &p), 0);
                        assert_true(p.has_token);
                        p.room = 0;
                        if (way == TIMES_OUT) {
                                sardine_dnsdist_timed_out(&p);
                        } else {
                                set_response(&p, way == IS_ANSWERED ? 0 : 2);
                                if (way == FINDS_NO_SERVER)
                                        assert_int_equal(sardine_dnsdist_self_answered(&p), 0);
                                else
                                        sardine_dnsdist_response(&p);
                                assert_int_equal(p.data[3] & 15, way == IS_ANSWERED ? 0 : 2);
                                assert_int_equal(p.data[7], way == IS_ANSWERED);
                        }
                        assert_false(p.has_hit); /* neither late, nor kept */
                }
                clock_ms += 400 * 1000;
        }
        sardine_dnsdist_mark_kept(0);
        sardine_dnsdist_no_server(SARDINE_DNSDIST_IGNORE);
        sardine_dnsdist_destroy((uint32_t)id);
}

static atomic_bool stop;

static void *look_up_and_store(void *arg)
{
        unsigned number = 0;
        (void)arg;
        while (!atomic_load(&stop)) {
                struct packet p;
                set_query(&p, number++ % 100);
                if (sardine_dnsdist_lookup(0, &p) == 0) {
                        set_response(&p, 0);
                        sardine_dnsdist_response(&p);
                }
        }
        return NULL;
}

/* B61: caches come and go under load, and so do threads. */
static void b61_exchange_and_free_under_load(void **state)
{
        (void)state;
        enum { THREADS = 4, ROUNDS = 200 };
        pthread_t threads[THREADS];
        sardine_cache *cache;
        uint32_t old = 0;
        for (int round = 0; round < ROUNDS; round++) {
                if (round % 20 == 0) {
                        atomic_store(&stop, false);
                        for (int i = 0; i < THREADS; i++)
                                assert_int_equal(pthread_create(&threads[i], NULL, look_up_and_store, NULL),
                                                 0);
                }
                uint32_t id = new_cache(&cache);
                sardine_dnsdist_attach(0, id);
                if (old != 0)
                        sardine_dnsdist_destroy(old);
                old = id;
                if (round % 20 == 19) {
                        atomic_store(&stop, true);
                        for (int i = 0; i < THREADS; i++)
                                pthread_join(threads[i], NULL);
                }
        }
        sardine_dnsdist_destroy(old);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_nothing_is_missing),
            cmocka_unit_test(test_miss_store_hit),
            cmocka_unit_test(test_skip_flags),
            cmocka_unit_test(test_what_is_kept_is_marked),
            cmocka_unit_test(test_failure_ttl),
            cmocka_unit_test(test_pools),
            cmocka_unit_test(test_tags_that_are_not_ours),
            cmocka_unit_test(test_answers_for_a_cache_that_is_gone),
            cmocka_unit_test(b55_do_added_for_a_cache_that_is_gone),
            cmocka_unit_test(b37_a_time_out_finds_the_tenants_expired_data),
            cmocka_unit_test(what_cannot_be_exchanged_is_not_told),
            cmocka_unit_test(b24_a_failure_without_a_token_gets_nothing_of_anothers),
            cmocka_unit_test(test_limits),
            cmocka_unit_test(test_bad_option_is_explained),
            cmocka_unit_test(b61_exchange_and_free_under_load),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
