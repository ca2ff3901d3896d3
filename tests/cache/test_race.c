/* SPDX-License-Identifier: MIT
 * Interleavings, forced: one thread stops at a seam of the library (the linker puts our functions in front of
 * the real ones) while another does the worst; then it goes on. */
#include "kit.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#include "networks.h"
#include "store/store.h"
#include "wire/dns.h"
#include "wire/ecs.h"

enum seam {
        NOWHERE,
        AT_THE_LOCK,   /* a writer, just before it takes the store's lock */
        BEFORE_A_PAGE, /* a reader that has found the base entry */
        WITH_A_PAGE,   /* and the page of networks */
};

static _Thread_local enum seam seam;
static _Thread_local unsigned pages_probed;
static sem_t arrived, go;

static void stop(enum seam here)
{
        if (seam != here)
                return;
        seam = NOWHERE;
        sem_post(&arrived);
        sem_wait(&go);
}

void __real_store_lock(struct store *store);
void __wrap_store_lock(struct store *store);
void __wrap_store_lock(struct store *store)
{
        stop(AT_THE_LOCK);
        __real_store_lock(store);
}

const uint8_t *__real_networks_page(sardine_cache *cache, struct entry_key *key,
                                    const struct network *network, uint16_t pages, bool touch,
                                    uint32_t *popularity);
const uint8_t *__wrap_networks_page(sardine_cache *cache, struct entry_key *key,
                                    const struct network *network, uint16_t pages, bool touch,
                                    uint32_t *popularity);
const uint8_t *__wrap_networks_page(sardine_cache *cache, struct entry_key *key,
                                    const struct network *network, uint16_t pages, bool touch,
                                    uint32_t *popularity)
{
        stop(BEFORE_A_PAGE);
        const uint8_t *page = __real_networks_page(cache, key, network, pages, touch, popularity);
        pages_probed++;
        stop(WITH_A_PAGE);
        return page;
}

static int setup(void **state)
{
        (void)state;
        sem_init(&arrived, 0, 0);
        sem_init(&go, 0, 0);
        kit_init(&kit);
        kit.options.max_entries = 0;
        kit.options.max_bytes = 1 << 20;
        kit.options.stale_window = 1000;
        kit_open(&kit);
        return 0;
}

/* A call in a thread of its own that stops on the way. */
struct call {
        pthread_t thread;
        enum seam seam;
        uint8_t packet[1024], buf[2048];
        struct sardine_query query;
        struct sardine_answer answer;
        struct sardine_token token;
        uint8_t *response; /* NULL: a lookup */
        size_t len;
        struct sardine_insert_result result;
        int outcome;
        unsigned pages_probed;
};

static void *run_call(void *arg)
{
        struct call *call = arg;
        seam = call->seam;
        pages_probed = 0;
        if (call->response) {
                call->result.sz = sizeof call->result;
                call->outcome =
                    sardine_insert(kit.cache, &call->token, call->response, call->len, NULL, &call->result);
        } else {
                call->outcome = sardine_lookup(kit.cache, &call->query, &call->answer);
        }
        call->pages_probed = pages_probed;
        return NULL;
}

static void begin(struct call *call)
{
        assert_int_equal(pthread_create(&call->thread, NULL, run_call, call), 0);
        sem_wait(&arrived);
}

static void end(struct call *call)
{
        sem_post(&go);
        pthread_join(call->thread, NULL);
        free(call->response);
}

static void prepare(struct call *call, enum seam where, struct ask ask)
{
        *call = (struct call){.seam = where};
        call->query = (struct sardine_query){.sz = sizeof call->query, .packet = call->packet};
        call->query.len = ask_packet(&ask, call->packet);
        call->answer =
            (struct sardine_answer){.sz = sizeof call->answer, .buf = call->buf, .cap = sizeof call->buf};
}

/* The question is asked upstream now; the answer is on its way in, and stops before the lock. */
static void begin_insert(struct call *call, struct ask ask, struct reply reply)
{
        prepare(call, AT_THE_LOCK, ask);
        assert_int_equal(sardine_token_init(kit.cache, &call->query, &call->token), 0);
        call->response = reply_packet(&reply, &call->len);
        begin(call);
}

static void end_purged(struct call *call)
{
        end(call);
        assert_int_equal(call->outcome, SARDINE_REFUSED);
        assert_int_equal(call->result.reason, SARDINE_REFUSED_PURGED);
}

static int64_t purge(const char *text)
{
        uint8_t name[255];
        struct sardine_selector sel = {.sz = sizeof sel, .name = name};
        sel.name_len = (uint32_t)sardine_name_from_text(text, name);
        return sardine_expunge(kit.cache, &sel);
}

static const struct ask a = ASK("a.example", 1);

static struct reply reply_a(const char *records)
{
        return REPLY("a.example", 1, .records = records);
}

static void b70_purge_while_an_answer_is_at_the_door(void **state)
{
        (void)state;
        struct call call;
        begin_insert(&call, a, reply_a("a.example 60 IN A 192.0.2.1"));
        assert_int_equal(purge("a.example"), 0);
        end_purged(&call);
        assert_int_equal(look(&kit, a)->outcome, SARDINE_MISS);
        /* An answer that was fetched after the purge is there when the old one gets in. */
        begin_insert(&call, a, reply_a("a.example 60 IN A 192.0.2.1"));
        assert_int_equal(sardine_expunge(kit.cache, NULL), 0);
        fill(&kit, a, reply_a("a.example 60 IN A 192.0.2.2"));
        end_purged(&call);
        struct got *got = look(&kit, a);
        assert_int_equal(got->outcome, SARDINE_HIT);
        assert_true(has_text(got, "192.0.2.2"));
        assert_int_equal(kit_stats(&kit).entries, 1);
}

/* One that is not kept would take away what has expired: not what came after a purge. */
static void b40_b70_purge_while_a_displacement_is_at_the_door(void **state)
{
        (void)state;
        struct call call;
        struct ask stale = ASK("a.example", 1, .flags = SARDINE_ALLOW_STALE);
        begin_insert(&call, a, reply_a("a.example 0 IN A 192.0.2.1"));
        assert_int_equal(purge("a.example"), 0);
        fill(&kit, a, reply_a("a.example 5 IN A 192.0.2.2"));
        kit_wait(&kit, 10);
        end(&call);
        assert_int_equal(call.result.reason, SARDINE_REFUSED_TTL_ZERO);
        assert_int_equal(look(&kit, stale)->outcome, SARDINE_STALE);
        /* Without a purge it does. */
        begin_insert(&call, a, reply_a("a.example 0 IN A 192.0.2.1"));
        end(&call);
        assert_int_equal(look(&kit, stale)->outcome, SARDINE_MISS);
}

/* Two answers to one question: the later in wins, whichever was asked for first (B71), unless it knows less.
 */
static void b45_b71_two_answers_at_the_door(void **state)
{
        (void)state;
        struct call call;
        begin_insert(&call, a, reply_a("a.example 60 IN A 192.0.2.1"));
        fill(&kit, a, reply_a("a.example 600 IN A 192.0.2.2"));
        end(&call);
        assert_int_equal(call.outcome, SARDINE_REPLACED);
        struct got *got = look(&kit, a);
        assert_true(has_text(got, "192.0.2.1"));
        assert_int_equal(first_ttl(got), 60);
        assert_int_equal(purge("a.example"), 1);
        struct ask secure = ASK("a.example", 1, .edns = true, .dnssec_ok = true);
        begin_insert(&call, a, reply_a("a.example 600 IN A 192.0.2.1"));
        fill(
            &kit, secure,
            REPLY("a.example", 1, .records = "a.example 60 IN A 192.0.2.2", .edns = true, .dnssec_ok = true));
        end(&call);
        assert_int_equal(call.outcome, SARDINE_REFUSED);
        assert_int_equal(call.result.reason, SARDINE_REFUSED_POORER);
        assert_true(has_text(look(&kit, a), "192.0.2.2"));
}

/* An ECS option for 10.1.n.0/24. */
struct option {
        uint8_t bytes[24];
        size_t len;
};

static struct option network(unsigned n, uint8_t scope)
{
        struct wire_ecs e = {.family = ECS_IPV4, .source = 24, .scope = scope, .addr = {10, 1, (uint8_t)n}};
        struct option o;
        o.len = wire_ecs_write(&e, o.bytes);
        return o;
}

/* The answer for the n-th network holds n. */
static struct reply reply_for(const char *name, unsigned n, const struct option *option, char text[64])
{
        snprintf(text, 64, "%s 300 IN A 192.0.2.%u", name, n);
        return REPLY(name, 1, .records = text, .opt = option->bytes, .opt_len = option->len);
}

static struct ask ask_for(const char *name, const struct option *option)
{
        return ASK(name, 1, .options = option->bytes, .options_len = option->len);
}

static void fill_networks(const char *name, unsigned from, unsigned to)
{
        for (unsigned n = from; n < to; n++) {
                struct option asked = network(n, 0), got = network(n, 24);
                char text[64];
                fill(&kit, ask_for(name, &asked), reply_for(name, n, &got, text));
        }
}

static void begin_lookup(struct call *call, enum seam where, const char *name, unsigned n)
{
        struct option option = network(n, 0);
        prepare(call, where, ask_for(name, &option));
        begin(call);
}

/* It is a hit, with the answer for the n-th network. */
static void end_hit(struct call *call, unsigned n)
{
        end(call);
        assert_int_equal(call->outcome, SARDINE_HIT);
        const uint8_t address[4] = {192, 0, 2, (uint8_t)n};
        assert_non_null(memmem(call->buf, call->answer.len, address, sizeof address));
}

static void b70_purge_while_a_networks_answer_is_at_the_door(void **state)
{
        (void)state;
        fill_networks("cdn.example", 0, 5);
        struct call call;
        struct option asked = network(7, 0), got = network(7, 24);
        char text[64];
        begin_insert(&call, ask_for("cdn.example", &asked), reply_for("cdn.example", 7, &got, text));
        assert_int_equal(purge("cdn.example"), 2); /* the list, and a page */
        fill_networks("cdn.example", 3, 4);
        end_purged(&call);
        for (unsigned n = 0; n < 10; n++) {
                struct option option = network(n, 0);
                assert_int_equal(look(&kit, ask_for("cdn.example", &option))->outcome,
                                 n == 3 ? SARDINE_HIT : SARDINE_MISS);
        }
}

/* A reader knows of one page; before it has looked there the page is split, and half of its networks leave it
 * for the new one. */
static void b20_b82_page_split_during_a_lookup(void **state)
{
        (void)state;
        unsigned looked_again = 0;
        for (unsigned question = 0; question < 20; question++) {
                char name[32];
                snprintf(name, sizeof name, "cdn%u.example", question);
                fill_networks(name, 0, 128);
                struct call call;
                begin_lookup(&call, BEFORE_A_PAGE, name, question * 5);
                fill_networks(name, 128, 140);
                end_hit(&call, question * 5);
                looked_again += call.pages_probed > 1;
                purge(name);
        }
        /* It was in the half that left, now and then. */
        assert_true(looked_again > 0);
}

/* A reader holds a page. The page is written again and again, goes, and so does everything else, until the
 * reader alone keeps the memory from being used again. */
static void b82_page_replaced_and_reclaimed_under_a_reader(void **state)
{
        (void)state;
        for (unsigned round = 0; round < 3; round++) {
                fill_networks("cdn.example", 0, 20);
                struct call call;
                begin_lookup(&call, WITH_A_PAGE, "cdn.example", 11);
                fill_networks("cdn.example", 20, 200);
                if (round == 1)
                        assert_true(purge("cdn.example") > 0);
                if (round == 2)
                        assert_true(sardine_expunge(kit.cache, NULL) > 0);
                int outcome = SARDINE_STORED;
                for (unsigned i = 0; outcome != SARDINE_REFUSED; i++) {
                        char name[32], records[64];
                        assert_true(i < 100000);
                        snprintf(name, sizeof name, "n%u-%u.example", round, i);
                        snprintf(records, sizeof records, "%s 300 IN A 198.51.100.1", name);
                        assert_int_equal(look(&kit, ASK(name, 1))->outcome, SARDINE_MISS);
                        unsigned reason;
                        outcome = put(&kit, REPLY(name, 1, .records = records), &reason);
                        assert_true(outcome == SARDINE_STORED || reason == SARDINE_REFUSED_NO_MEMORY);
                        struct sardine_stats stats = kit_stats(&kit);
                        assert_true(stats.bytes <= stats.max_bytes);
                }
                end_hit(&call, 11);
                /* And now there is room again. */
                fill(&kit, a, reply_a("a.example 60 IN A 192.0.2.1"));
                sardine_expunge(kit.cache, NULL);
        }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, kit_teardown)
        const struct CMUnitTest tests[] = {
            T(b70_purge_while_an_answer_is_at_the_door), T(b40_b70_purge_while_a_displacement_is_at_the_door),
            T(b45_b71_two_answers_at_the_door),          T(b70_purge_while_a_networks_answer_is_at_the_door),
            T(b20_b82_page_split_during_a_lookup),       T(b82_page_replaced_and_reclaimed_under_a_reader),
        };
        return cmocka_run_group_tests_name("cache/race", tests, NULL, NULL);
}
