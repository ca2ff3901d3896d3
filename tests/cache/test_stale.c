/* SPDX-License-Identifier: MIT
 * Stale answers per query and waiting for another's answer: B27, B37, B38, B39 (in part), B80. */
#include "kit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "pending.h"
#include "wire/bytes.h"
#include "wire/dns.h"

static const struct ask a = {.name = "a.example", .type = 1, .rd = true, .edns = true};
static const char *const data = "a.example 5 IN A 192.0.2.1";

static int failed(struct ask ask, struct sardine_answer *answer)
{
        static uint8_t buf[4096];
        uint8_t packet[1024];
        struct sardine_query q = {.sz = sizeof q, .packet = packet};
        q.len = ask_packet(&ask, packet);
        *answer = (struct sardine_answer){.sz = sizeof *answer, .buf = buf, .cap = sizeof buf};
        return sardine_failed(kit.cache, &q, answer);
}

static void b37_stale_stands_in_after_a_failure(void **state)
{
        (void)state;
        kit.options.stale_window = 3600;
        kit_open(&kit);
        struct sardine_answer answer;
        fill(&kit, a, REPLY("a.example", 1, .records = data));
        kit_wait(&kit, 10);
        struct got *got = look(&kit, a);
        assert_int_equal(got->outcome, SARDINE_MISS);
        assert_int_equal(got->answer.stale_available, 1);
        assert_int_equal(failed(a, &answer), SARDINE_STALE);
        assert_int_equal(answer.age, 5);
        assert_non_null(memmem(answer.buf, answer.len, "\0\x0f\0\2\0\3", 6)); /* EDE 3 */
        assert_int_equal(get_be32(answer.buf + 12 + 11 + 4 + 6), 5); /* TTL: the original, below 30 */
        /* For the back-off nobody asks upstream. */
        kit_wait(&kit, 29);
        assert_int_equal(look(&kit, a)->outcome, SARDINE_STALE);
        kit_wait(&kit, 1);
        assert_int_equal(look(&kit, a)->outcome, SARDINE_MISS);
        assert_int_equal(put(&kit, REPLY("a.example", 1, .records = data), NULL), SARDINE_REFRESHED);
        assert_int_equal(failed(a, &answer), SARDINE_HIT);
        struct sardine_stats s = kit_stats(&kit);
        assert_int_equal(s.rescued, 2);
        assert_int_equal(s.lookups, 4);
        assert_int_equal(failed(ASK("b.example", 1), &answer), SARDINE_MISS);
}

static void b37_backoff_ends_with_fresh_data(void **state)
{
        (void)state;
        kit.options.stale_window = 3600;
        kit_open(&kit);
        struct sardine_answer answer;
        fill(&kit, a, REPLY("a.example", 1, .records = data));
        kit_wait(&kit, 10);
        struct sardine_token token = look(&kit, a)->token;
        assert_int_equal(failed(a, &answer), SARDINE_STALE);
        assert_int_equal(put_token(&kit, &token, REPLY("a.example", 1, .records = data), NULL),
                         SARDINE_REFRESHED);
        assert_int_equal(look(&kit, a)->outcome, SARDINE_HIT);
        kit_wait(&kit, 6); /* expired again within the old back-off: the upstream is asked */
        assert_int_equal(look(&kit, a)->outcome, SARDINE_MISS);
}

static void b37_without_a_window_nothing_is_stale(void **state)
{
        (void)state;
        kit_open(&kit);
        struct sardine_answer answer;
        fill(&kit, a, REPLY("a.example", 1, .records = data));
        kit_wait(&kit, 5);
        assert_int_equal(look(&kit, a)->answer.stale_available, 0);
        assert_int_equal(failed(a, &answer), SARDINE_MISS);
}

static void b38_stale_data_never_keeps_fresh_data_out(void **state)
{
        (void)state;
        kit.options.max_entries = 100;
        kit.options.stale_window = 3600;
        kit_open(&kit);
        char name[32], records[64];
        for (int i = 0; i < 150; i++) {
                snprintf(name, sizeof name, "n%d.example", i);
                snprintf(records, sizeof records, "%s %d IN A 192.0.2.1", name, i < 100 ? 1 : 300);
                fill(&kit, ASK(name, 1), REPLY(name, 1, .records = records));
                if (i == 99)
                        kit_wait(&kit, 5);
        }
        unsigned stale = 0;
        for (int i = 0; i < 150; i++) {
                snprintf(name, sizeof name, "n%d.example", i);
                int outcome = look(&kit, ASK(name, 1, .flags = SARDINE_ALLOW_STALE | SARDINE_PEEK))->outcome;
                if (i >= 100)
                        assert_int_equal(outcome, SARDINE_HIT);
                else
                        stale += outcome == SARDINE_STALE;
        }
        assert_true(kit_stats(&kit).entries <= 100);
        assert_true(stale <= 50 && stale >= 40);
}

static void b39_operator_chooses_what_may_be_stale(void **state)
{
        (void)state;
        static const char *const nx = "-- authority\nexample 5 IN SOA ns. host. 1 2 3 4 60";
        for (uint8_t positive = 0; positive < 2; positive++) {
                kit.options.stale_window = 3600;
                kit.options.stale_positive = positive;
                kit_open(&kit);
                fill(&kit, a, REPLY("a.example", 1, .records = data));
                fill(&kit, ASK("nx.example", 1),
                     REPLY("nx.example", 1, .rcode = DNS_NXDOMAIN, .records = nx));
                fill(&kit, ASK("nodata.example", 1), REPLY("nodata.example", 1, .records = nx));
                fill(&kit, ASK("fail.example", 1), REPLY("fail.example", 1, .rcode = DNS_SERVFAIL));
                kit_wait(&kit, 100);
                struct ask stale = a;
                stale.flags = SARDINE_ALLOW_STALE;
                int other = positive ? SARDINE_MISS : SARDINE_STALE;
                assert_int_equal(look(&kit, stale)->outcome, SARDINE_STALE);
                assert_int_equal(look(&kit, ASK("nx.example", 1, .flags = SARDINE_ALLOW_STALE))->outcome,
                                 other);
                assert_int_equal(look(&kit, ASK("nodata.example", 1, .flags = SARDINE_ALLOW_STALE))->outcome,
                                 other);
                assert_int_equal(look(&kit, ASK("fail.example", 1, .flags = SARDINE_ALLOW_STALE))->outcome,
                                 SARDINE_MISS);
                kit_close(&kit);
        }
        kit_open(&kit);
}

/* Who asks for too long is no longer waited for (PENDING_PATIENCE): not so while the test has stopped the
 * clock, however long the machine makes it wait. The linker puts this in front of the C library's. */
static _Atomic bool stopped;
static struct timespec stopped_at;

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
        if (id != CLOCK_MONOTONIC || !atomic_load(&stopped))
                return __real_clock_gettime(id, ts);
        *ts = stopped_at;
        return 0;
}

static void stop_clock(void)
{
        clock_gettime(CLOCK_MONOTONIC, &stopped_at);
        atomic_store(&stopped, true);
}

static void start_clock(void)
{
        atomic_store(&stopped, false);
}

static struct ask coalescing(struct ask ask)
{
        ask.flags |= SARDINE_COALESCE;
        return ask;
}

static void b80_one_asks_and_the_others_wait(void **state)
{
        (void)state;
        kit_open(&kit);
        stop_clock();
        assert_int_equal(look(&kit, coalescing(a))->outcome, SARDINE_MISS);
        for (int i = 0; i < 999; i++)
                assert_int_equal(look(&kit, coalescing(a))->outcome, SARDINE_WAIT);
        assert_int_equal(kit_stats(&kit).misses, 1);
        assert_int_equal(kit_stats(&kit).waits, 999);
        struct sardine_token token = look(&kit, coalescing(a))->token;
        assert_int_equal(put(&kit, REPLY("a.example", 1, .records = data), NULL), SARDINE_STORED);
        assert_int_equal(sardine_wait(kit.cache, &token, 1000), SARDINE_HIT);
        assert_int_equal(look(&kit, coalescing(a))->outcome, SARDINE_HIT);
        /* A refused answer and a reported failure end the waiting as well. */
        assert_int_equal(look(&kit, coalescing(ASK("b.example", 1)))->outcome, SARDINE_MISS);
        token = look(&kit, coalescing(ASK("b.example", 1)))->token;
        assert_int_equal(put(&kit, REPLY("b.example", 1, .rcode = 4), NULL), SARDINE_REFUSED);
        assert_int_equal(sardine_wait(kit.cache, &token, 1000), SARDINE_HIT);
        assert_int_equal(look(&kit, coalescing(ASK("b.example", 1)))->outcome, SARDINE_MISS);
        struct sardine_answer answer;
        assert_int_equal(failed(ASK("b.example", 1), &answer), SARDINE_MISS);
        assert_int_equal(look(&kit, coalescing(ASK("b.example", 1)))->outcome, SARDINE_MISS);
        start_clock();
}

static void b27_identity_is_the_caches(void **state)
{
        (void)state;
        kit_open(&kit);
        stop_clock();
        assert_int_equal(look(&kit, coalescing(ASK("a.example", 1, .rd = true)))->outcome, SARDINE_MISS);
        assert_int_equal(look(&kit, coalescing(ASK("A.Example", 1, .rd = true)))->outcome, SARDINE_WAIT);
        assert_int_equal(
            look(&kit, coalescing(ASK("a.example", 1, .rd = true, .transport = SARDINE_TCP)))->outcome,
            SARDINE_WAIT);
        assert_int_equal(look(&kit, coalescing(ASK("a.example", 1, .rd = true, .dnssec_ok = true)))->outcome,
                         SARDINE_MISS);
        assert_int_equal(look(&kit, coalescing(ASK("a.example", 1, .rd = true, .cd = true)))->outcome,
                         SARDINE_MISS);
        assert_int_equal(look(&kit, coalescing(ASK("a.example", 1, .rd = true, .tag = "t")))->outcome,
                         SARDINE_MISS);
        static const uint8_t ecs[] = {0, EDNS_ECS, 0, 7, 0, 1, 24, 0, 192, 0, 2};
        assert_int_equal(
            look(&kit, coalescing(ASK("a.example", 1, .rd = true, .options = ecs, .options_len = 11)))
                ->outcome,
            SARDINE_MISS);
        start_clock();
}

static void b80_a_peek_takes_part_in_nothing(void **state)
{
        (void)state;
        kit_open(&kit);
        struct ask peek = coalescing(ASK("a.example", 1, .rd = true));
        peek.flags |= SARDINE_PEEK;
        assert_int_equal(look(&kit, peek)->outcome, SARDINE_MISS);
        assert_int_equal(look(&kit, coalescing(ASK("a.example", 1, .rd = true)))->outcome, SARDINE_MISS);
}

static void b79_threads_whose_clocks_were_read_a_second_apart(void **state)
{
        (void)state;
        static struct marks marks;
        const uint64_t hash = UINT64_C(0x123456789abcdef0);
        assert_true(marks_take(&marks, hash, 101, 10));
        assert_false(marks_take(&marks, hash, 100, 10));
        assert_true(marks_has(&marks, hash, 100, 10));
        assert_false(marks_take(&marks, hash, 110, 10));
        assert_true(marks_take(&marks, hash, 111, 10));
        assert_true(marks_has(&marks, hash, 500, UINT32_MAX));
}

enum {
        WAITERS = 16,
};

struct waiter {
        pthread_t thread;
        struct sardine_token token;
        uint32_t timeout;
        int result;
};

static uint64_t now_ms(void)
{
        struct timespec ts;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void *wait_there(void *arg)
{
        struct waiter *w = arg;
        w->result = sardine_wait(kit.cache, &w->token, w->timeout);
        return NULL;
}

/* Returns the token of the one who asks. */
static struct sardine_token start_waiters(struct waiter *w, struct ask ask, uint32_t timeout)
{
        stop_clock();
        struct got *got = look(&kit, coalescing(ask));
        struct sardine_token leader = got->token;
        assert_int_equal(got->outcome, SARDINE_MISS);
        for (int i = 0; i < WAITERS; i++) {
                got = look(&kit, coalescing(ask));
                assert_int_equal(got->outcome, SARDINE_WAIT);
                w[i].token = got->token;
                w[i].timeout = timeout;
        }
        start_clock();
        for (int i = 0; i < WAITERS; i++)
                assert_int_equal(pthread_create(&w[i].thread, NULL, wait_there, &w[i]), 0);
        return leader;
}

static void b80_insert_wakes_all(void **state)
{
        (void)state;
        kit_open(&kit);
        struct waiter w[WAITERS];
        struct sardine_token leader = start_waiters(w, a, 60000);
        usleep(20000);
        assert_int_equal(put_token(&kit, &leader, REPLY("a.example", 1, .records = data), NULL),
                         SARDINE_STORED);
        for (int i = 0; i < WAITERS; i++) {
                pthread_join(w[i].thread, NULL);
                assert_int_equal(w[i].result, SARDINE_HIT);
        }
}

static void b80_a_dead_leader_is_replaced_once(void **state)
{
        (void)state;
        kit_open(&kit);
        /* On a busy machine they may wait so much longer than they want to that the second one is given up,
         * too, and rightly so: then more patient ones show it. */
        bool in_time = false;
        for (uint32_t patience = 300; !in_time && patience < PENDING_PATIENCE; patience *= 2) {
                char name[32];
                snprintf(name, sizeof name, "a%u.example", patience);
                struct ask ask = ASK(name, 1);
                struct waiter w[WAITERS];
                uint64_t start = now_ms();
                start_waiters(w, ask, patience); /* who asks never comes back */
                int leaders = 0;
                for (int i = 0; i < WAITERS; i++) {
                        pthread_join(w[i].thread, NULL);
                        assert_int_not_equal(w[i].result, SARDINE_HIT);
                        leaders += w[i].result == SARDINE_MISS;
                }
                in_time = now_ms() - start < 2 * patience;
                assert_true(leaders == 1 || (leaders > 1 && !in_time));
        }
        assert_true(in_time);
}

static void waiting_takes_only_tokens(void **state)
{
        (void)state;
        kit_open(&kit);
        struct sardine_token none = {0};
        assert_int_equal(sardine_wait(kit.cache, &none, 1), SARDINE_ERR_TOKEN);
        assert_int_equal(sardine_wait(NULL, &none, 1), -EINVAL);
        none = look(&kit, a)->token; /* nobody asks: nothing to wait for */
        assert_int_equal(sardine_wait(kit.cache, &none, 1000), SARDINE_HIT);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
        const struct CMUnitTest tests[] = {
            T(b37_stale_stands_in_after_a_failure),
            T(b37_backoff_ends_with_fresh_data),
            T(b37_without_a_window_nothing_is_stale),
            T(b38_stale_data_never_keeps_fresh_data_out),
            T(b39_operator_chooses_what_may_be_stale),
            T(b80_one_asks_and_the_others_wait),
            T(b80_a_peek_takes_part_in_nothing),
            T(b79_threads_whose_clocks_were_read_a_second_apart),
            T(b27_identity_is_the_caches),
            T(b80_insert_wakes_all),
            T(b80_a_dead_leader_is_replaced_once),
            T(waiting_takes_only_tokens),
        };
        return cmocka_run_group_tests_name("cache/stale", tests, NULL, NULL);
}
