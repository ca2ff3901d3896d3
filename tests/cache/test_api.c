/* SPDX-License-Identifier: MIT
 * Counting, removing, walking, names: what operators see of the cache (B66, B74-B77, B88). */
#include "kit.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/dns.h"

static void fill_a(struct ask ask)
{
        char records[300];
        snprintf(records, sizeof records, "%s 300 IN A 192.0.2.1", ask.name);
        fill(&kit, ask, REPLY(ask.name, ask.type, .records = records));
}

static int64_t expunge(const char *text, bool below, uint16_t qtype)
{
        uint8_t name[255];
        struct sardine_selector sel = {.sz = sizeof sel, .name = name, .below = below, .qtype = qtype};
        sel.name_len = (uint32_t)sardine_name_from_text(text, name);
        return sardine_expunge(kit.cache, &sel);
}

static void b66_a_full_cache_takes_new_answers(void **state)
{
        (void)state;
        kit.options.max_entries = 2000;
        kit_open(&kit);
        char name[32];
        for (unsigned i = 0; i < 20000; i++) {
                snprintf(name, sizeof name, "n%u.example", i);
                fill_a(ASK(name, 1));
        }
        struct sardine_stats stats = kit_stats(&kit);
        assert_true(stats.entries <= 2000 && stats.entries >= 1900);
        assert_int_equal(stats.evicted, 20000 - stats.entries);
        for (unsigned i = 19000; i < 20000; i++) {
                snprintf(name, sizeof name, "n%u.example", i);
                assert_int_equal(look(&kit, ASK(name, 1))->outcome, SARDINE_HIT);
        }
}

static void b74_counters_add_up(void **state)
{
        (void)state;
        kit.options.stale_window = 100;
        kit_open(&kit);
        fill_a(ASK("a.example", 1));
        for (int i = 0; i < 100; i++) {
                look(&kit, ASK("a.example", 1, .transport = (uint32_t)i % 5));
                look(&kit, ASK("b.example", 1));
                look(&kit, ASK("a.example", 1, .flags = SARDINE_SKIP));
                look(&kit, ASK("b.example", 1, .flags = SARDINE_CACHE_ONLY));
                look(&kit, ASK("a.example", 1, .flags = SARDINE_PEEK));
        }
        kit_wait(&kit, 310);
        for (int i = 0; i < 10; i++)
                look(&kit, ASK("a.example", 1, .flags = SARDINE_ALLOW_STALE));
        struct sardine_stats s = kit_stats(&kit);
        assert_int_equal(s.hits, 100);
        assert_int_equal(s.stale, 10);
        assert_int_equal(s.misses, 101);
        assert_int_equal(s.bypass, 100);
        assert_int_equal(s.reasons[SARDINE_BYPASS_HOST], 100);
        assert_int_equal(s.cache_only_misses, 100);
        assert_int_equal(s.lookups, 411);
        look(&kit, ASK("c.example", 1));
        assert_int_equal(put(&kit, REPLY("c.example", 1, .rcode = 4), NULL), SARDINE_REFUSED);
        s = kit_stats(&kit);
        assert_int_equal(s.inserts, 2);
        assert_int_equal(s.stored + s.replaced + s.refreshed + s.refused, 2);
        assert_int_equal(s.reasons[SARDINE_REFUSED_RCODE], 1);
}

static void b74_a_batch_is_many_lookups(void **state)
{
        (void)state;
        enum {
                MANY = 100,
        };
        static uint8_t packets[MANY][1024], bufs[MANY][512];
        static struct sardine_query queries[MANY];
        static struct sardine_answer answers[MANY];
        static struct sardine_token tokens[MANY];
        int outcomes[MANY];
        kit_open(&kit);
        char name[32], address[32];
        for (unsigned i = 0; i < MANY; i += 2) {
                snprintf(name, sizeof name, "n%u.example", i);
                snprintf(address, sizeof address, "n%u.example 60 IN A 192.0.2.%u", i, i);
                fill(&kit, ASK(name, 1), REPLY(name, 1, .records = address));
        }
        struct sardine_stats before = kit_stats(&kit);
        for (unsigned i = 0; i < MANY; i++) {
                snprintf(name, sizeof name, "N%u.Example", i);
                struct ask ask = ASK(name, 1);
                queries[i] = (struct sardine_query){.sz = sizeof queries[i], .packet = packets[i]};
                queries[i].len = ask_packet(&ask, packets[i]);
                if (i % 10 == 9)
                        queries[i].flags = SARDINE_SKIP;
                answers[i] = (struct sardine_answer){
                    .sz = sizeof answers[i], .buf = bufs[i], .cap = sizeof bufs[i], .token = &tokens[i]};
        }
        answers[50].buf = NULL; /* one bad element harms nobody else */
        assert_int_equal(sardine_lookup_batch(kit.cache, MANY, queries, answers, outcomes), 0);
        for (unsigned i = 0; i < MANY; i++) {
                int expected = i == 50       ? -EINVAL
                               : i % 10 == 9 ? SARDINE_BYPASS
                               : i % 2 == 0  ? SARDINE_HIT
                                             : SARDINE_MISS;
                assert_int_equal(outcomes[i], expected);
                if (expected == SARDINE_HIT) {
                        assert_memory_equal(bufs[i], packets[i], 2);
                        assert_memory_equal(bufs[i] + 12, packets[i] + 12, queries[i].len - 12);
                        assert_int_equal(bufs[i][answers[i].len - 1], i);
                }
                if (expected == SARDINE_MISS)
                        assert_true(tokens[i].len > 0);
        }
        struct sardine_stats after = kit_stats(&kit);
        assert_int_equal(after.hits - before.hits, 49);
        assert_int_equal(after.misses - before.misses, 40);
        assert_int_equal(after.bypass - before.bypass, 10);
        assert_int_equal(sardine_lookup_batch(kit.cache, 0, NULL, NULL, NULL), 0);
        assert_int_equal(sardine_lookup_batch(kit.cache, 1, NULL, answers, outcomes), -EINVAL);
        assert_int_equal(sardine_lookup_batch(NULL, 1, queries, answers, outcomes), -EINVAL);
}

static void b75_the_host_hears_what_it_sent(void **state)
{
        (void)state;
        kit_open(&kit);
        fill(&kit, ASK("n.example", 1),
             REPLY("n.example", 1, .rcode = DNS_NXDOMAIN,
                   .records = "-- authority\nexample 60 IN SOA ns. host. 1 2 3 4 60"));
        kit_wait(&kit, 12);
        struct got *got = look(&kit, ASK("n.example", 1));
        assert_int_equal(got->answer.rcode, DNS_NXDOMAIN);
        assert_int_equal(got->answer.ttl, 48);
        assert_int_equal(got->answer.age, 0);
}

struct seen {
        unsigned count;
        unsigned stop_after;
        char names[4096];
};

static int see(void *ctx, const struct sardine_entry_view *e)
{
        struct seen *seen = ctx;
        char text[1024];
        assert_true(sardine_name_to_text(e->qname, e->qname_len, text, sizeof text) > 0);
        strcat(strcat(seen->names, text), " ");
        assert_int_equal(e->qclass, DNS_IN);
        assert_true(e->bytes > 0 && e->bytes % 4 == 0);
        return ++seen->count == seen->stop_after;
}

struct messages {
        unsigned count;
        size_t cap;
        int short_of_room;
        uint8_t buf[4096];
};

static int read_message(void *ctx, const struct sardine_entry_view *entry)
{
        struct messages *m = ctx;
        int len = sardine_entry_message(kit.cache, entry, m->buf, m->cap);
        if (len < 0) {
                assert_int_equal(len, -EMSGSIZE);
                m->short_of_room++;
                return 0;
        }
        ldns_pkt *pkt;
        assert_int_equal(ldns_wire2pkt(&pkt, m->buf, (size_t)len), LDNS_STATUS_OK);
        char *text = ldns_pkt2str(pkt);
        assert_non_null(strstr(text, "a.example.\t60\tIN\tA\t192.0.2.1\n"));
        assert_non_null(strstr(text, entry->dnssec_ok ? "RRSIG" : "192.0.2.1"));
        assert_int_equal(ldns_pkt_ancount(pkt), entry->dnssec_ok ? 2 : 1);
        assert_int_equal(ldns_pkt_rd(pkt), entry->rd);
        assert_int_equal(ldns_pkt_cd(pkt), entry->cd);
        assert_true(ldns_pkt_edns(pkt));
        free(text);
        ldns_pkt_free(pkt);
        m->count++;
        return 0;
}

static void b76_entries_as_messages(void **state)
{
        (void)state;
        kit_open(&kit);
        const char *signature =
            "a.example 60 IN RRSIG A 13 2 60 20991231000000 20200101000000 1 example. YWJj";
        char records[256];
        snprintf(records, sizeof records, "A.Example 60 IN A 192.0.2.1\n%s", signature);
        struct ask with_do = ASK("A.ExAmPlE", 1, .rd = true, .edns = true, .dnssec_ok = true);
        struct ask with_cd = ASK("a.example", 1, .cd = true);
        fill(&kit, with_do, REPLY("a.example", 1, .records = records));
        fill(&kit, with_cd, REPLY("a.example", 1, .records = "a.example 60 IN A 192.0.2.1"));
        static struct messages m = {.cap = sizeof m.buf};
        assert_int_equal(sardine_walk(kit.cache, NULL, read_message, &m), 2);
        assert_int_equal(m.count, 2);
        m.cap = 20;
        sardine_walk(kit.cache, NULL, read_message, &m);
        assert_int_equal(m.short_of_room, 2);
        assert_int_equal(sardine_entry_message(kit.cache, NULL, m.buf, m.cap), -EINVAL);
}

static void b76_walk_with_filters(void **state)
{
        (void)state;
        kit_open(&kit);
        fill_a(ASK("a.example", 1));
        fill_a(ASK("a.example", 1, .tag = "t"));
        fill(&kit, ASK("b.example", DNS_TXT),
             REPLY("b.example", DNS_TXT, .records = "b.example 60 IN TXT hello"));
        fill(&kit, ASK("x.test", 1), REPLY("x.test", 1, .rcode = DNS_SERVFAIL));
        struct seen seen = {0};
        assert_int_equal(sardine_walk(kit.cache, NULL, see, &seen), 4);
        struct sardine_selector sel = {.sz = sizeof sel, .qtype = DNS_TXT};
        memset(&seen, 0, sizeof seen);
        assert_int_equal(sardine_walk(kit.cache, &sel, see, &seen), 1);
        assert_string_equal(seen.names, "b.example. ");
        sel = (struct sardine_selector){.sz = sizeof sel, .use_rcode = 1, .rcode = DNS_SERVFAIL};
        memset(&seen, 0, sizeof seen);
        assert_int_equal(sardine_walk(kit.cache, &sel, see, &seen), 1);
        assert_string_equal(seen.names, "x.test. ");
        sel = (struct sardine_selector){.sz = sizeof sel, .use_tag = 1};
        assert_int_equal(sardine_walk(kit.cache, &sel, see, &seen), 3);
        memset(&seen, 0, sizeof seen);
        seen.stop_after = 2;
        assert_int_equal(sardine_walk(kit.cache, NULL, see, &seen), 2);
}

static void b77_expunge_takes_every_variant_and_nothing_else(void **state)
{
        (void)state;
        kit_open(&kit);
        unsigned variants = 0;
        for (int rd = 0; rd < 2; rd++)
                for (int cd = 0; cd < 2; cd++)
                        for (int tag = 0; tag < 3; tag++, variants++)
                                fill_a(ASK("www.example", 1, .rd = rd, .cd = cd,
                                           .tag = tag == 0   ? NULL
                                                  : tag == 1 ? "one"
                                                             : "two"));
        fill_a(ASK("badexample", 1));
        fill_a(ASK("a.b.example", 1));
        fill_a(ASK("example", 1));
        assert_int_equal(expunge("WWW.Example", false, 28), 0);
        assert_int_equal(expunge("WWW.Example", false, 1), variants);
        assert_int_equal(expunge("example", true, 0), 2);
        assert_int_equal(look(&kit, ASK("badexample", 1))->outcome, SARDINE_HIT);
        assert_int_equal(expunge(".", true, 255), 1);
        assert_int_equal(kit_stats(&kit).entries, 0);
        assert_int_equal(kit_stats(&kit).expunged, variants + 3);
}

static void b77_many_at_once(void **state)
{
        (void)state;
        kit_open(&kit);
        for (char c = 'a'; c <= 'h'; c++) {
                char name[] = {c, '.', 'x', 0}, below[] = {'w', '.', c, '.', 'x', 0};
                fill_a(ASK(name, 1));
                fill_a(ASK(below, 1));
        }
        struct sardine_selector sel[3];
        uint8_t name[3][255];
        const char *texts[3] = {"b.x", "F.X", "d.x"};
        for (unsigned i = 0; i < 3; i++)
                sel[i] = (struct sardine_selector){
                    .sz = sizeof *sel,
                    .name = name[i],
                    .name_len = (uint32_t)sardine_name_from_text(texts[i], name[i]),
                    .below = i == 1,
                };
        sel[2].qtype = 28; /* d.x has none */
        assert_int_equal(sardine_expunge_many(kit.cache, 3, sel), 3);
        assert_int_equal(look(&kit, ASK("b.x", 1))->outcome, SARDINE_MISS);
        assert_int_equal(look(&kit, ASK("w.b.x", 1))->outcome, SARDINE_HIT);
        assert_int_equal(look(&kit, ASK("f.x", 1))->outcome, SARDINE_MISS);
        assert_int_equal(look(&kit, ASK("w.f.x", 1))->outcome, SARDINE_MISS);
        assert_int_equal(look(&kit, ASK("d.x", 1))->outcome, SARDINE_HIT);
        assert_int_equal(kit_stats(&kit).entries, 13);
}

/* The same name twice, selectors without a name, and the root among a hundred. */
static void b77_many_of_all_kinds(void **state)
{
        (void)state;
        kit_open(&kit);
        char text[32];
        uint8_t name[100][255];
        struct sardine_selector sel[103];
        for (unsigned i = 0; i < 200; i++) {
                snprintf(text, sizeof text, "%s%u.x", i % 3 ? "n" : "longer.n", i);
                fill_a(ASK(text, 1));
                if (i >= 100)
                        continue;
                sel[i] = (struct sardine_selector){.sz = sizeof *sel, .name = name[i], .below = i % 2};
                sel[i].name_len = (uint32_t)sardine_name_from_text(text, name[i]);
        }
        sel[100] = sel[50];
        sel[50].qtype = 28; /* not there; that without a type is found all the same */
        sel[101] = (struct sardine_selector){.sz = sizeof *sel, .use_rcode = 1, .rcode = DNS_SERVFAIL};
        sel[102] = (struct sardine_selector){
            .sz = sizeof *sel, .name = (const uint8_t *)"", .name_len = 1, .below = 1, .qtype = DNS_TXT};
        fill(&kit, ASK("f.y", 1), REPLY("f.y", 1, .rcode = DNS_SERVFAIL));
        fill(&kit, ASK("t.y", DNS_TXT), REPLY("t.y", DNS_TXT, .records = "t.y 60 IN TXT hello"));
        assert_int_equal(sardine_expunge_many(kit.cache, 103, sel), 102);
        for (unsigned i = 0; i < 200; i++) {
                snprintf(text, sizeof text, "%s%u.x", i % 3 ? "n" : "longer.n", i);
                assert_int_equal(look(&kit, ASK(text, 1))->outcome, i < 100 ? SARDINE_MISS : SARDINE_HIT);
        }
        assert_int_equal(kit_stats(&kit).entries, 100);
}

static void release(struct store_purge *purge)
{
        free(purge);
}

static bool dooms_all(const struct store_purge *purge, const uint8_t *entry)
{
        (void)purge;
        (void)entry;
        return true;
}

/* A purge takes a while. The same answer that comes again meanwhile is new, and stays. */
static void b69_b70_answers_that_come_during_a_purge(void **state)
{
        (void)state;
        kit_open(&kit);
        fill_a(ASK("a.x", 1));
        fill_a(ASK("b.x", 1));
        struct store_purge *purge = calloc(1, sizeof *purge);
        purge->dooms = dooms_all;
        purge->release = release;
        store_lock(kit.cache->store);
        store_purge_begin_locked(kit.cache->store, purge);
        store_unlock(kit.cache->store);
        assert_int_equal(look(&kit, ASK("b.x", 1))->outcome, SARDINE_MISS);
        fill_a(ASK("a.x", 1));
        struct sardine_stats stats = kit_stats(&kit);
        assert_int_equal(stats.refreshed, 0);
        assert_int_equal(stats.stored, 3);
        assert_int_equal(look(&kit, ASK("a.x", 1))->outcome, SARDINE_HIT);
        assert_int_equal(store_purge(kit.cache->store, purge), 1);
        assert_int_equal(look(&kit, ASK("a.x", 1))->outcome, SARDINE_HIT);
        assert_int_equal(look(&kit, ASK("b.x", 1))->outcome, SARDINE_MISS);
        assert_int_equal(kit_stats(&kit).entries, 1);
}

static void expunge_down_and_purge_expired(void **state)
{
        (void)state;
        kit.options.stale_window = 50;
        kit_open(&kit);
        char name[32], records[64];
        for (unsigned i = 0; i < 100; i++) {
                snprintf(name, sizeof name, "n%u.example", i);
                snprintf(records, sizeof records, "%s %u IN A 192.0.2.1", name, i < 60 ? 10u : 1000u);
                fill(&kit, ASK(name, 1), REPLY(name, 1, .records = records));
        }
        assert_int_equal(sardine_purge_expired(kit.cache, 0), 0);
        kit_wait(&kit, 20);
        assert_int_equal(sardine_purge_expired(kit.cache, 0), 0); /* still wanted for stale answers */
        kit_wait(&kit, 50);
        assert_int_equal(sardine_purge_expired(kit.cache, 70), 30);
        assert_int_equal(sardine_purge_expired(kit.cache, 0), 30);
        assert_int_equal(kit_stats(&kit).entries, 40);
        assert_int_equal(sardine_expunge_to(kit.cache, 15), 25);
        assert_int_equal(kit_stats(&kit).entries, 15);
        assert_int_equal(sardine_expunge(kit.cache, NULL), 15);
        assert_int_equal(kit_stats(&kit).entries, 0);
        fill_a(ASK("again.example", 1));
        assert_int_equal(look(&kit, ASK("again.example", 1))->outcome, SARDINE_HIT);
}

static void b88_cache_only(void **state)
{
        (void)state;
        kit.options.stale_window = 100;
        kit_open(&kit);
        struct ask ask = ASK("a.example", 1, .flags = SARDINE_CACHE_ONLY);
        struct got *got = look(&kit, ask);
        assert_int_equal(got->outcome, SARDINE_MISS);
        assert_int_equal(got->token.len, 0);
        fill_a(ASK("a.example", 1));
        assert_int_equal(look(&kit, ask)->outcome, SARDINE_HIT);
        kit_wait(&kit, 310);
        assert_int_equal(look(&kit, ask)->outcome, SARDINE_MISS);
        ask.flags |= SARDINE_ALLOW_STALE;
        assert_int_equal(look(&kit, ask)->outcome, SARDINE_STALE);
        assert_int_equal(kit_stats(&kit).misses, 1);
}

static void a_forked_child_has_a_cache_of_its_own(void **state)
{
        (void)state;
        kit_open(&kit);
        fill_a(ASK("a.example", 1));
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                bool well = look(&kit, ASK("a.example", 1))->outcome == SARDINE_HIT;
                fill_a(ASK("b.example", 1));
                well = well && expunge("a.example", false, 0) == 1 && kit_stats(&kit).entries == 1 &&
                       look(&kit, ASK("b.example", 1))->outcome == SARDINE_HIT;
                sardine_destroy(kit.cache);
                _exit(well ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(look(&kit, ASK("a.example", 1))->outcome, SARDINE_HIT);
        assert_int_equal(look(&kit, ASK("b.example", 1))->outcome, SARDINE_MISS);
}

static void names_between_text_and_wire(void **state)
{
        (void)state;
        uint8_t name[255];
        char text[1024];
        static const char *const same[] = {".", "www.example.com.", "a\\.b.example.", "\\000\\255.example."};
        for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
                int len = sardine_name_from_text(same[i], name);
                assert_true(len > 0);
                assert_int_equal(sardine_name_to_text(name, (size_t)len, text, sizeof text), strlen(same[i]));
                assert_string_equal(text, same[i]);
        }
        static const char *const bad[] = {
            "a..b", "\\256.example",
            "0123456789012345678901234567890123456789012345678901234567890123.example"};
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
                assert_int_equal(sardine_name_from_text(bad[i], name), SARDINE_ERR_NAME);
        assert_int_equal(sardine_name_to_text((const uint8_t *)"\3ab", 3, text, sizeof text),
                         SARDINE_ERR_NAME);
        assert_int_equal(sardine_name_to_text((const uint8_t *)"\1a", 3, text, 2), -EMSGSIZE);
}

static void texts_exist(void **state)
{
        (void)state;
        for (unsigned i = 0; i < SARDINE_REASON_COUNT; i++)
                if (i <= SARDINE_BYPASS_POLICY || i >= SARDINE_REFUSED_MALFORMED)
                        assert_string_not_equal(sardine_reason_name(i), "unknown");
        assert_string_equal(sardine_reason_name(9999), "unknown");
        assert_string_not_equal(sardine_strerror(SARDINE_ERR_TOKEN), sardine_strerror(SARDINE_ERR_OPTION));
        assert_string_equal(sardine_strerror(-12345), "unknown error");
        assert_string_not_equal(sardine_strerror(-EINVAL), "unknown error");
        assert_int_equal(sardine_abi_version(), SARDINE_ABI_VERSION);
        assert_string_equal(sardine_version(), SARDINE_VERSION);
        kit_open(&kit);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
        const struct CMUnitTest tests[] = {
            T(b66_a_full_cache_takes_new_answers),
            T(b74_counters_add_up),
            T(b74_a_batch_is_many_lookups),
            T(b75_the_host_hears_what_it_sent),
            T(b76_walk_with_filters),
            T(b76_entries_as_messages),
            T(b77_expunge_takes_every_variant_and_nothing_else),
            T(b77_many_at_once),
            T(b77_many_of_all_kinds),
            T(b69_b70_answers_that_come_during_a_purge),
            T(expunge_down_and_purge_expired),
            T(b88_cache_only),
            T(a_forked_child_has_a_cache_of_its_own),
            T(names_between_text_and_wire),
            T(texts_exist),
        };
        return cmocka_run_group_tests_name("cache/api", tests, NULL, NULL);
}
